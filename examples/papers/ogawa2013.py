"""Ogawa et al. 2013 (pathwise SSNSV): Fig. 4, Table 1 with its split, and Figs. 5-8.

    python examples/papers/reproduce.py ogawa2013

100 values of C in [0.01, 100], one rule for five of them, as the paper, on its four sets (Ogawa 2014, Fig. 6, names
them); of the larger two coordinate descent sees some rows only.
"""

from __future__ import annotations

import pictures
import verdicts
from known_loss import rejections
from study import RATE, REJECTED, UNSURE, Page, cpu, mark, mean, relative, shares, whole

COLUMNS = (
    "data", "variant", "start", "steps certified", REJECTED, RATE, "CPU s", "line search s", "rule s", "wasted s",
    "Init. s", "speed-up", "saved",
)  # fmt: skip
PLAIN = ("--solver", "cd", "--shrinking", "off")
SAVED = (65, 41, 36, 32)  # percent, of the four sets, from the most to the least: the text does not say whose is whose
COARSE = 25  # steps of an audited path behind a kernel
FEW = 0.1  # share of the samples that is not many
TOY = 529, 1  # in R and L, of Fig. 4
SETS = {
    "toy": ("made:ogawa-toy",),
    "bcd": ("binary/breast_cancer.libsvm.gz", "--scale", "standard"),
    "pcmac": ("binary/pcmac.libsvm.gz", "--scale", "maxabs"),
    "magic04": ("binary/magic04.libsvm.gz", "--scale", "standard"),
    "ijcnn1": ("binary/ijcnn1.libsvm.gz",),
}


def figure4(study) -> None:
    """Write what one rule for C in [1, 10] fixes on the toy."""
    if not study.some("toy"):
        return
    file, *_ = study.set("toy")
    study.table("From the solutions at both ends, at a gap of 1e-10.", "rule", "R", "L", "of", "published", "verdict")
    for rule in ("ssnsv", "essnsv"):
        last = study.path("toy", "svm", file, rule, "--c-list", "1,10", "--tol", "1e-10")[-1]
        fixed, n = (last["screened_R"], last["screened_L"]), sum(last[k] for k in ("n_R", "n_L", "n_E"))
        said, verdict = "", ""
        if rule == "ssnsv":
            verdict = verdicts.of_share(sum(TOY) / n, sum(fixed) / n)
            said = f"{TOY[0]} and {TOY[1]}"
            verdict = mark(study.claim("toy: samples fixed by one rule", sum(TOY), sum(fixed), verdict))
        study.row(rule, *(f"{one:.0f}" for one in fixed), f"{n:.0f}", said, verdict)


def table1(study) -> None:
    """Write Table 1 in both forms, by the paper's kind of solver and by the default one."""
    given = study.given
    thin = {"magic04": given.magic04, "ijcnn1": given.ijcnn1}
    points = path_of(study)
    for form, rules in (("C", "none,heuristic,ssnsv,essnsv"), ("s", "none,ssnsv,essnsv")):
        study.table(f"{form}-form. " + (WHAT.format(**thin) if form == "C" else ""), *COLUMNS)
        for name, (file, *more) in study.some(*SETS).items():
            starts = "warm,cold" if form == "C" and name not in thin else "warm"
            how = ("--max-epochs", given.sweeps, "--chunk", 5, "--chunk-form", form, "--start", starts)
            few = study.thin(file, thin.get(name, 1))
            rows = study.compare(name, "svm", few, rules, *PLAIN, *how, *points, *more)
            lines(study, name, rows)
            if form == "C":
                study.found.setdefault("cd", {})[name] = [row for row in rows if row["start"] == "warm"]
    study.table("By the default solver: warm starts, every step to a relative gap of 1e-8, C-form.", *COLUMNS)
    for name, (file, *more) in study.some(*SETS).items():
        rules = "none,heuristic,ssnsv,essnsv"
        rows = study.compare(name, "svm", file, rules, "--chunk", 5, *points, "--tol", "1e-8", *more)
        study.found.setdefault("newton", {})[name] = rows
        lines(study, name, rows)
    judge(study)
    cases = {name: ("svm", file, *points, "--tol", "1e-8", *more) for name, (file, *more) in study.some(*SETS).items()}
    study.printed(cases, {"ssnsv": "SSNSV", "essnsv": "ESSNSV"})


def judge(study) -> None:
    """Claim the savings of the rule, and that the heuristic is slower on three of the four sets."""
    cd = {name: rows for name, rows in study.found.get("cd", {}).items() if name != "toy"}
    by = {name: {row["rule"]: row for row in rows} for name, rows in cd.items()}
    gains = [relative(rows["none"], rows["ssnsv"]) for rows in by.values()]
    if len(by) == len(SAVED):
        ours = sorted((1.0 - 1.0 / gain if gain else -float("inf") for gain in gains), reverse=True)
        for rank, (said, share) in enumerate(zip(SAVED, ours, strict=True), 1):
            found = share if share > -float("inf") else None
            study.claim(f"share of the time saved, number {rank} of four sets", said / 100, found, saved(said, found))
    pairs = {name: (rows["heuristic"], rows["ssnsv"]) for name, rows in by.items() if whole(*rows.values())}
    slower = sum(a["cpu_s"] > b["cpu_s"] for a, b in pairs.values())
    told = f"{slower} of {len(pairs)} finished"
    holds = slower == 3 if len(pairs) == len(SAVED) else None
    study.claim("the heuristic is slower than the rule on three of four sets", "holds", told, verdicts.of_order(holds))


def saved(said: float, found: float | None) -> str:
    """Judge a share of time saved as the speed-up that it is."""
    return verdicts.of_ratio(1.0 / (1.0 - said / 100), None if found is None else 1.0 / (1.0 - found))


def path_of(study) -> tuple:
    """Return the paper's grid."""
    return "--cmin", 0.01, "--cmax", 100, "--grid", study.given.grid


def lines(study, name: str, rows) -> None:
    """Write Table 1's lines with its split."""
    for row in rows:
        base = next(one for one in rows if one["rule"] == "none" and one["start"] == row["start"])
        ratio, search = relative(base, row), cpu(row, "search_s")
        told = (f"{ratio:.2f}", f"{100 * (1 - 1 / ratio):.0f} %") if ratio else (UNSURE, "")
        study.row(
            name, row["rule"], row["start"], f"{row['certified']:.0f} of {row['points']:.0f}", *shares(row),
            f"{row['cpu_s']:.3g}", f"{search:.2g}", f"{cpu(row, 'rule_s') - search:.2g}",
            f"{cpu(row, 'wasted_s'):.2g}", f"{cpu(row, 'init_s'):.2g}", *told,
        )  # fmt: skip


def figures5_8(study) -> None:
    """Write and draw what the rules fix over C, and the seconds of each step."""
    study.table(
        "References at 1e-8 by the default solver. `loss known`: the line search is given the loss at the optimum, as "
        "a path solved before to a relative gap of 1e-10 proves it (`known_loss.py`), not a bound known beforehand. "
        "Such a proof is worth nothing where it is below 0: the gap is then above the loss.",
        "data", "rule", "form", REJECTED, RATE, "floors below 0",
    )  # fmt: skip
    panels, times = [], []
    for name, (file, *more) in study.some(*SETS).items():
        curves, seconds = figure(study, name, file, *path_of(study), *more)
        for rule, known in rejections(file, 0.01, 100.0, study.given.grid, *more[1:]).items():
            curves[f"{rule} C, loss known"] = known.C, known.rejection
            study.row(
                name, rule, "C, loss known", f"{known.mean:.3f}", f"{known.rate:.3f}", f"{known.below} of {known.of}"
            )
            study.found.setdefault("figures", {})[name, rule, "known"] = known.mean
        panels.append((f"{name}: share fixed", curves))
        times.append((f"{name}: seconds a step", seconds))
    study.picture(lambda to: pictures.lines(to, "ogawa2013-figs5-8.svg", panels), "Figs. 5-8, top: share fixed over C")
    study.picture(
        lambda to: pictures.lines(to, "ogawa2013-figs5-8-time.svg", times, logy=True),
        "Figs. 5-8, bottom: seconds of each step",
    )


def figure(study, name: str, file, *options) -> tuple:
    """Return what the rules fix over C, and the seconds of each step, as curves; write the means."""
    curves, times = {}, {}
    forms = [("none", ""), ("heuristic", "")] + [(rule, form) for form in "Cs" for rule in ("ssnsv", "essnsv")]
    for rule, form in forms:
        chunks = ("--chunk", 5, "--chunk-form", form) if form else ()
        steps = study.path(name, "svm", file, rule, *chunks, "--tol", "1e-8", *options)
        C, label = [step["C"] for step in steps], f"{rule} {form}".strip()
        times[label] = C, [step["screen_s"] + step["solve_s"] for step in steps]
        if form:
            curves[label] = C, [step["rejection_ratio"] for step in steps]
            share, rate = mean(steps, "rejection_ratio"), mean(steps, "screening_rate")
            study.found.setdefault("figures", {})[name, rule, form] = share
            study.row(name, rule, form, f"{share:.3f}", f"{rate:.3f}", "")
    if name != "toy":
        share = study.found["figures"][name, "ssnsv", "C"]
        number = 5 + [one for one in SETS if one != "toy"].index(name)
        verdict = verdicts.of_order(share > 0.0)
        study.claim(f"the rule screens samples of {name} out", "> 0", share, verdict, f"Figure {number}")
    return curves, times


def kernels(study) -> None:
    """Write what the kernelised rules of Section 3 fix, and judge what Section 6 says of Gaussian kernels."""
    study.table(
        f"The rules behind kernels, the far end of the path as the feasible point, audited; few is less than {FEW:g}.",
        "data", "kernel", "steps solved", f"{REJECTED}: SSNSV", "ESSNSV", "DVI", "unsafe",
    )  # fmt: skip
    for name, (file, *more) in study.some("toy", "bcd").items():
        for kernel in ("rbf --gamma 0.1/d", "rbf --gamma 1/d", "rbf --gamma 10/d", "poly --gamma 1/d --degree 2"):
            how = ("--kernel", *kernel.split(), "--audit", "--repeats", 1, "--cmin", 0.01, "--cmax", 100)
            how = (*how, "--grid", min(study.given.grid, COARSE))
            rows = study.compare(name, "svm", file, "ssnsv,essnsv,dvi", *how, *more)
            shares, unsafe = [row["solved_rejection"] for row in rows], sum(row["unsafe"] for row in rows)
            study.row(name, kernel, f"{rows[0]['solved']:.0f}", *(f"{share:.3f}" for share in shares), unsafe)
            if kernel.startswith("rbf"):
                verdict = verdicts.of_order(shares[0] < FEW)
                study.claim(f"{name}, {kernel}: SSNSV screens few samples out", "holds", shares[0], verdict)


WHAT = """\
Coordinate descent without shrinking; `warm`: it starts at the previous step, `cold`: every solve starts at zero, as
LIBLINEAR's does. The parts of the time as in the paper's table: the line search for a feasible point, the rule,
solves that had to be repeated (wasted), and Init., here the first step and the far end. `saved` is 1 - 1/speed-up. Of
magic04 and ijcnn1 every {magic04}th and {ijcnn1}th row is taken here, and warm starts alone."""


def notes(study) -> str:
    """Return what the tables show."""
    text, found = study.printed_notes(), study.found
    unfinished = [f"{name} ({rows[0]['certified']:.0f} of {rows[0]['points']:.0f} steps)"
                  for name, rows in found.get("cd", {}).items() if not whole(rows[0])]  # fmt: skip
    if unfinished:
        text += (
            f"- **Not finished** by coordinate descent without a rule: {', '.join(unfinished)}. No ratio is given.\n"
        )
    for name, rows in found.get("newton", {}).items():
        by = {row["rule"]: row for row in rows}
        order = sorted(by, key=lambda rule: by[rule]["cpu_s"])
        text += f"- **{name}** by the default solver, fastest first: {', '.join(order)}.\n"
    for (name, rule, form), share in found.get("figures", {}).items():
        if form == "known" and rule == "essnsv":
            best = max(found["figures"][name, rule, one] for one in "Cs")
            text += f"- **ESSNSV on {name}**: {best:.3f} in the better form, {share:.3f} behind the known loss"
            text += ", which is no upper limit.\n" if best > share + 1e-3 else ".\n"
    return text


PAGE = Page(
    name="ogawa2013",
    title="Ogawa et al. 2013: Safe screening of non-support vectors in pathwise SVM computation",
    family="box",
    settings={
        "grid": (100, 100, "steps of the paths"),
        "sweeps": (10000, 1000, "of coordinate descent, a step"),
        "magic04": (10, 20, "coordinate descent: every so-many-th row"),
        "ijcnn1": (20, 50, "the same"),
    },
    sets=SETS,
    sections={
        "Figure 4: one rule for all C in [1, 10] on the toy": figure4,
        "Table 1: one rule for five values of C": table1,
        "Figures 5-8: share fixed before each solve, and its time": figures5_8,
        "Sections 3 and 6: behind kernels": kernels,
    },
    notes=notes,
)
