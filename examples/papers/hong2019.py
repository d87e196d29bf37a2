"""Hong et al. 2019 (sparse SVMs, SIFS): Tables 1, 3, 4 and 6, Figs. 1-16.

    python examples/papers/reproduce.py hong2019

The synthetic sets are generated. The paper states neither its gamma nor where its solver starts.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path

import pictures
import verdicts
from study import UNSURE, Page, mark, relative, shown

# By the paper's set: what stands for it, published speed-ups
SYNTHETIC = {
    "syn1": {"iss": 15.3, "ifs": 42.6, "sifs": 34.2},
    "syn2": {"iss": 5.8, "ifs": 28.1, "sifs": 53.7},
    "syn3": {"iss": 4.9, "ifs": 36.0, "sifs": 76.8},
    "syn-multi1": {"iss": 6.9, "ifs": 18.9, "sifs": 34.5},
    "syn-multi2": {"iss": 3.8, "ifs": 29.9, "sifs": 37.3},
    "syn-multi3": {"iss": 4.3, "ifs": 186.2, "sifs": 299.9},
}
SIZES = {  # of the paper: samples and features
    "syn1": (10000, 1000), "syn2": (10000, 10000), "syn3": (1000, 10000), "syn-multi1": (10000, 1000),
    "syn-multi2": (10000, 10000), "syn-multi3": (1000, 10000),
}  # fmt: skip
DENSE = ("syn1", "syn3")  # stored so
GRAIN = 250  # features of a set are a multiple: a fiftieth of them tells five classes apart
REAL = {
    "pcmac": ("real-sim", {"gap": 7.91, "sifs": 195.0}),
    "pcmac, unit norm": ("real-sim", {"gap": 7.91, "sifs": 195.0}),
    "rcv1": ("rcv1-train", {"gap": 7.9, "sifs": 277.1}),
    "reuters_r8": ("rcv1-multiclass", {"iss": 8.7, "ifs": 11.4, "sifs": 96.0}),
    "news20": ("news20", {"iss": 24.6, "ifs": 5.3, "sifs": 197.3}),
}
STAND_INS = {"news20-1": "rcv1-test", "w8a": "url", "mushrooms": "kddb"}  # of Figs. 11-13, and the paper's set
FIGURES = {
    2: "syn2", 6: "syn-multi2", 7: "news20", 8: "syn1", 9: "syn3", 10: "rcv1", 11: "news20-1", 12: "w8a",
    13: "mushrooms", 14: "syn-multi1", 15: "syn-multi3", 16: "reuters_r8",
}  # fmt: skip
PARTS = ("syn-multi1", "syn-multi2", "syn-multi3", "news20")  # whose unscreened paths would take an hour and more
SHARES = (0.05, 0.1, 0.5, 0.9)  # of beta_max and alpha_max in Table 4
PUBLISHED4 = (
    (6.31, 7.14, 21.04, 146.66),
    (6.14, 7.18, 21.83, 156.63),
    (5.75, 7.18, 20.99, 154.60),
    (6.39, 7.66, 23.16, 173.56),
)
NEWS20 = (3993, 62060), "news20.t", (3993, 62060)  # features and samples of Table 5; rows and features of LIBSVM's file
COLUMNS = (
    "data", "for", "pairs", "rule", "start", "certified", "CPU s", "rule s", "epochs", "passes", "scaling ratio",
    "speed-up", "published", "verdict",
)  # fmt: skip
SDCA = Path(__file__).with_name("sdca.py")
BASELINE = ("--solver", f"{SDCA}:AcceleratedSDCA")
ONCE = ("--repeats", 1)


def generated(name: str, given) -> str:
    """Return the place of a synthetic set of the wanted size."""
    n, p = (size // given.shrunk for size in SIZES[name])
    return f"made:hong-{name} --n {n // 10 * 10} --p {max(p // GRAIN, 2) * GRAIN}"


def options(study, name: str) -> tuple:
    """Return file and options of a set: smoothing and storage."""
    file, *more = study.set(name)
    gamma = study.given.sharp if name in SYNTHETIC else study.given.smoothing
    stored = ("--storage", "dense") if name in DENSE else ()
    return file, ("--smoothing", gamma, *stored, *more)


def grid(study) -> tuple:
    """Return the paper's grid."""
    return "--betas", study.given.betas, "--alphas", study.given.alphas


def path(study, name: str, rule: str = "sifs", *more) -> list[dict]:
    """Return the step table of a set under a rule, by the default solver; walked once."""
    known = study.found.setdefault("paths", {})
    if (name, rule, more) not in known:
        file, how = options(study, name)
        known[name, rule, more] = study.path(name, "sparse-svm", file, rule, *how, *more, *grid(study))
    return known[name, rule, more]


def over(steps: list[dict], column: str) -> float:
    """Return the mean of a column over all pairs, as the paper's scaling ratios."""
    return statistics.mean(step[column] for step in steps)


def synthetic(study) -> None:
    """Write Tables 1 and 6, synthetic sets, then the printed rules beside ours."""
    study.table(TEXT.format(**vars(study.given)), *COLUMNS)
    for name in study.some(*SYNTHETIC):
        lines(study, name, name, "none,iss,ifs,sifs", SYNTHETIC[name], *ONCE)
    some = study.some(*study.given.printed.split(","))
    cases = {}
    for name in some:
        file, how = options(study, name)
        cases[name] = ("sparse-svm", file, "--betas", 2, "--alphas", study.given.audited, *how)
    study.printed(cases, {"iss": "ISS", "ifs": "IFS", "sifs": "SIFS"}, "mean_scaling")


def real(study) -> None:
    """Write Tables 3 and 6, real sets."""
    study.table(REALS.format(**vars(study.given)), *COLUMNS)
    for name in study.some(*REAL):
        paper, published = REAL[name]
        rules = "none,iss,ifs,sifs,gap" if "gap" in published else "none,iss,ifs,sifs"
        turns = ("--start", study.given.starts, *ONCE) if name == "pcmac" else ONCE
        found = lines(study, name, paper, rules, published, *turns)
        if name == "pcmac":
            file, how = options(study, name)
            plain = ("--solver", f"{SDCA}:ProximalSDCA")
            rows = study.compare(name, "sparse-svm", file, rules, *plain, *how, *grid(study), *turns)
            speeds(study, f"{name}, plain SDCA", paper, rows, {})
        if {"iss", "ifs"} <= published.keys():
            first = "iss" if published["iss"] > published["ifs"] else "ifs"
            ours = {rule: found[rule] for rule in ("iss", "ifs")}
            holds = None if None in ours.values() else max(ours, key=ours.get) == first
            told = ", ".join(f"{rule} {shown(value or UNSURE)}" for rule, value in ours.items())
            study.claim(f"{name}: {first.upper()} gains more than the other", "holds", told, verdicts.of_order(holds))
    (features, samples), file, (rows, columns) = NEWS20
    if "news20" in study.some(*REAL):
        study.say(
            f"\nThe paper's Table 5 has a news20 of {features:,} features and {samples:,} samples: exchanged, these "
            f"are the {rows:,} rows and {columns:,} features of LIBSVM's {file}. Ours is prepared otherwise."
        )


def lines(study, name, paper, rules, published, *how) -> dict:
    """Write the lines of a set: all rules on the whole grid, or on a part of it and SIFS alone on the whole."""
    file, more = options(study, name)
    if name not in PARTS:
        rows = study.compare(name, "sparse-svm", file, rules, *BASELINE, *grid(study), *more, *how)
        return speeds(study, name, paper, rows, published)
    steps, given = path(study, name), study.given
    part = ("--beta", f"{steps[given.part * given.alphas]['beta']:.10g}", "--alphas", given.alphas)
    rows = study.compare(name, "sparse-svm", file, rules, *BASELINE, *part, *more, *how)
    found = speeds(study, f"{name}, part", paper, rows, published)
    if not given.quick:
        rows = study.compare(name, "sparse-svm", file, "sifs", *BASELINE, *grid(study), *more, *how)
        speeds(study, name, paper, rows, {})
    return found


def speeds(study, name, paper, rows, published) -> dict:
    """Write a line for each variant; return the ratios to ``none`` at the same start, of warm starts."""
    found = {}
    for row in rows:
        base = next(one for one in rows if one["rule"] == rows[0]["rule"] and one["start"] == row["start"])
        ratio = relative(base, row) if rows[0]["rule"] == "none" else None
        said, verdict = published.get(row["rule"], "") if row["start"] == "warm" else "", ""
        if said:
            verdict = mark(study.claim(f"speed-up, {name}, {row['rule']}", said, ratio, verdicts.of_ratio(said, ratio)))
        if row["start"] == "warm":
            found[row["rule"]] = ratio
        told = "" if rows[0]["rule"] != "none" else UNSURE if ratio is None else f"{ratio:.1f}"
        study.row(
            name, paper, f"{row['points']:.0f}", row["rule"], row["start"], f"{row['certified']:.0f}",
            f"{row['cpu_s']:.3g}", f"{row['rule_s']:.2g}", f"{row['epochs']:.0f}", f"{row['passes_per_step']:.3g}",
            f"{row['mean_scaling']:.3f}", told, said, verdict,
        )  # fmt: skip
    study.found.setdefault("speeds", {})[name] = found
    return found


def table4(study) -> None:
    """Write the speed-ups of single pairs: SIFS through a path of references against a cold start."""
    for name in study.some("pcmac"):
        file, how = options(study, name)
        study.table(
            f"CPU seconds of `none` from a cold start at the pair over those of SIFS through {study.given.references} "
            f"references, on {name} (for real-sim). In brackets: published, and the verdict.",
            "beta / beta_max", *(f"alpha / alpha_max = {share}" for share in SHARES),
        )  # fmt: skip
        most = study.path(name, "sparse-svm", file, "none", "--betas", 1, "--alphas", 1, *how)[0]["beta"]
        for share, published in zip(SHARES, PUBLISHED4, strict=True):
            beta = f"{share * most:.10g}"
            top = study.path(name, "sparse-svm", file, "none", "--beta", beta, "--alphas", 1, *how)[0]["alpha"]
            cells = []
            for part, said in zip(SHARES, published, strict=True):
                pair = ("--beta", beta, "--alpha", f"{part * top:.10g}", *BASELINE, *how, *ONCE)
                ratio = single(study, name, file, pair)
                verdict = study.claim(f"one pair, {share} and {part}", said, ratio, verdicts.of_ratio(said, ratio))
                cells.append(f"{ratio:.2f} ({said} {verdicts.SIGNS[verdict]})")
            study.row(share, *cells)


def single(study, name, file, pair) -> float:
    """Return the ratio of one pair, in turns."""
    turns = []
    for _ in range(study.repeats):
        none = study.compare(name, "sparse-svm", file, "none", "--start", "cold", *pair)[0]
        more = ("--references", study.given.references)
        sifs = study.compare(name, "sparse-svm", file, "sifs", *more, *pair)[0]
        turns.append(none["cpu_s"] / sifs["cpu_s"])
    return statistics.median(turns)


def figures(study) -> None:
    """Draw the scaling ratios of the synthetic sets, and what each triggering finds, in the paper's order."""
    study.table(PICTURES, "data", "scaling ratio: ISS", "IFS", "SIFS", "features found", "samples found")
    some = study.some(*SYNTHETIC, *REAL, *STAND_INS)
    for name in some:
        rules = ("iss", "ifs", "sifs") if name in SYNTHETIC else ("sifs",)
        ratio = {rule: over(path(study, name, rule), "scaling_ratio") for rule in rules}
        found = {kind: over(path(study, name), column) for kind, column in
                 (("features", "feature_screening_rate"), ("samples", "screening_rate"))}  # fmt: skip
        cells = (f"{ratio[rule]:.4f}" if rule in ratio else "" for rule in ("iss", "ifs", "sifs"))
        study.row(name, *cells, *(f"{share:.3f}" for share in found.values()))
        if name in SYNTHETIC:
            said = {"iss": 0.7, "ifs": 0.98, "sifs": 0.98 if "multi" in name else 0.999}
            if "multi" in name:
                said["ifs"] = 0.7
            for rule, share in said.items():
                verdict, figure = verdicts.of_at_least(share, ratio[rule]), 5 if "multi" in name else 1
                study.claim(f"scaling ratio of {rule.upper()}, {name}", share, ratio[rule], verdict, f"Figure {figure}")
        elif name == "news20":
            for kind, share in (("features", 0.99), ("samples", 0.95)):
                verdict = verdicts.of_at_least(share, found[kind])
                study.claim(f"inactive {kind} found on news20", share, found[kind], verdict, "Figure 7")
        for number in (number for number, shown_ in FIGURES.items() if shown_ == name):
            told = ", ".join(f"{kind} {share:.3f}" for kind, share in found.items())
            study.claim(f"{name}: most of what is inactive is found", "holds", told,
                        verdicts.of_order(min(found.values()) > 0.5), f"Figure {number}")  # fmt: skip
    for _, about, draw in sorted(drawings(study, some), key=lambda one: one[0]):
        study.picture(draw, about)


def drawings(study, some):
    """Yield number, title and ``draw(folder)`` of each figure."""
    for number, names in ((1, ("syn1", "syn2", "syn3")), (5, ("syn-multi1", "syn-multi2", "syn-multi3"))):
        for name in (one for one in names if one in some):
            runs = {rule: path(study, name, rule) for rule in ("iss", "ifs", "sifs")}
            draw = partial(pictures.heat_maps, name=f"hong2019-scaling-{name}.png", runs=runs)
            yield number, f"Fig. {number}: {name}", draw
    shown_ = [(number, name, name, path(study, name)) for number, name in FIGURES.items() if name in some]
    if "pcmac" in some:
        totals = {}
        for number, first in ((3, "samples"), (4, "features")):
            steps = path(study, "pcmac", "sifs", "--first", first)
            totals[first] = over(steps, "scaling_ratio")
            shown_.append((number, "pcmac", f"pcmac-{first}", steps))
        told, same = (
            ", ".join(f"{one:.6f}" for one in totals.values()),
            len({round(t, 9) for t in totals.values()}) == 1,
        )
        verdict = verdicts.of_order(same)
        study.claim("pcmac: the order of ISS and IFS has no impact", "holds", told, verdict, "Figures 3 and 4")
    for number, name, label, steps in shown_:
        paper = STAND_INS.get(name) or REAL.get(name, (name,))[0]
        about = label + (f" (for {paper})" if paper != name else "")
        draw = partial(pictures.triggerings, name=f"hong2019-{label}.svg", steps=steps)
        yield number, f"Fig. {number}: {about}", draw


TEXT = """\
Accelerated proximal SDCA, relative gap 1e-6 of every pair on the full data, gamma = {sharp}; every pair starts at the
previous one (`warm`) or at theta = 0 (`cold`), with and without rules. The paper's grid: {betas} values of `beta` from
beta_max to 0.05 of it, and of each {alphas} values of `alpha` from alpha_max to 0.01 of it. One run of each variant. On
the multi-class sets all variants walk a `part` of the grid, the {alphas} pairs of one beta. The rules are ours, which
hold for inexact references and decide more than the printed ones where a better reference is at hand."""
REALS = """\
As above, gamma = {smoothing}. `gap` is the dynamic rule that stands beside SIFS in the paper's Table 3 (Shibagaki et
al. 2016). `pcmac` has raw counts; `unit norm` has rows of norm 1 (`--scale l2`), as the paper's texts from LIBSVM."""
PICTURES = """\
By the default solver on the whole grid. Scaling ratios, means over all pairs; then, of all that is inactive, what ISS
and IFS find (SIFS, features first), in pictures at the values of beta nearest to the paper's. The sets of Figs. 11-13,
rcv1-test, url and kddb, are not at hand: in their places stand one newsgroup of news20 against the rest, w8a (web
pages) and mushrooms (categories as indicators, as in kddb), which show data of such a kind, not of such a size."""


def notes(study) -> str:
    """Return what the tables show."""
    text, found = study.printed_notes(), study.found.get("speeds", {})
    for label, rule, theirs, ours, gain in study.found.get("printed", []):
        if rule == "sifs":
            text += (
                f"- **Our SIFS is not the printed one**: on {label} its scaling ratio is {ours['mean_scaling']:.3f}, "
            )
            text += f"the printed one's {theirs['mean_scaling']:.3f} ({gain:+.3f}).\n"
    raw, unit = (found.get(name, {}).get("sifs") for name in ("pcmac", "pcmac, unit norm"))
    if raw and unit:
        text += f"- **Scaling counts**: SIFS gains {raw:.1f} on raw counts of pcmac and {unit:.1f} on rows of norm 1.\n"
    single = [one for one in study.claims if one["claim"].startswith("one pair")]
    if single:
        losses = sum(one["ours"] < 1.0 for one in single)
        text += f"- **Table 4**: {losses} of {len(single)} pairs are a loss here; gains are up to "
        text += (
            f"{max(one['ours'] for one in single):.1f}, published up to {max(one['published'] for one in single)}.\n"
        )
    return text


PAGE = Page(
    name="hong2019",
    title="Hong et al. 2019: Scaling up sparse support vector machines by simultaneous feature and sample reduction",
    family="sparse",
    settings={
        "betas": (10, 3, "values of beta"),
        "alphas": (100, 60, "values of alpha"),
        "audited": (100, 20, "the same, of the comparison with the printed rules"),
        "part": (5, 1, "which beta the unscreened solver has where it has no time for all"),
        "sharp": (0.05, 0.05, "gamma of synthetic sets"),
        "smoothing": (0.5, 0.5, "gamma of real sets"),
        "references": (50, 10, "of Table 4"),
        "starts": ("warm,cold", "warm", "of pcmac's paths"),
        "printed": ("syn3,syn-multi3,pcmac", "syn3,syn-multi3,pcmac", "sets that the printed rules are compared on"),
        "shrunk": (1, 10, "what the sizes of synthetic sets are divided by"),
    },
    sets={
        **{name: (partial(generated, name),) for name in SYNTHETIC},
        "pcmac": ("binary/pcmac.libsvm.gz",),
        "pcmac, unit norm": ("binary/pcmac.libsvm.gz", "--scale", "l2"),
        "rcv1": ("binary/rcv1sub.binary.libsvm.gz",),
        "reuters_r8": ("multiclass/reuters_r8.libsvm.gz",),
        "news20": ("multiclass/news20.libsvm.gz",),
        "news20-1": ("multiclass/news20.libsvm.gz", "--positive", 1),
        "w8a": ("binary/w8a.libsvm.gz",),
        "mushrooms": ("binary/mushrooms.libsvm.gz",),
    },
    sections={
        "Tables 1 and 6: synthetic sets": synthetic,
        "Tables 3 and 6: real sets": real,
        "Table 4: single pairs": table4,
        "Figures 1-16: scaling ratios and triggerings": figures,
    },
    notes=notes,
    thin={"rcv1": (1, 20), "reuters_r8": (1, 10), "news20": (1, 20), "news20-1": (1, 20), "w8a": (1, 20),
          "mushrooms": (1, 10)},
)  # fmt: skip
