"""Ogawa et al. 2014, linear kernel: Fig. 1, Table III with times, Table IV both ways, Figs. 4, 5 and 6.

    python examples/papers/ogawa2014_linear.py [DATA_FOLDER] [OUTPUT_FOLDER] [--page FOLDER] [--sets toy,bcd]

The paper's sets of Table III (acoustic, url, kdd) are replaced by the larger ones of the data folder.
"""

from __future__ import annotations

import json

import pictures
from ogawa2014 import RULES, TIGHT, Both, figure4, figure5, rates, ratios
from study import SPEEDS, Study, arguments, line

# Seconds of Full, Shrink, BT1, Shrink+BT1, IT, Shrink+IT
PUBLISHED = {
    "toy": "",
    "bcd": "389 35.2 174 34.8 177 34.8",
    "dna": "67 9.09 13.6 8.05 13.4 8.14",
    "digit1": "369 59.3 221 56.7 167 56.9",
    "satimage": "3435 33.7 3256 33.2 3248 33.2",
    "usps (for gisette)": "1532 350 894 318 899 329",
    "mushrooms": "19.8 2.64 8.12 2.08 8.57 2.03",
    "pcmac (for news20)": "2619 1665 2495 1697 2427 1769",
    "shuttle": "37135 67 35945 63.6 36386 67.8",
}
SWEPT = ("toy", "bcd", "mushrooms")  # by coordinate descent too


def main() -> None:
    """Make the page."""
    given = arguments(
        __doc__,
        eps=(1e-3, "accuracy of the eps-path"),
        cmax=(1e4, "its end"),
        tol=(1e-4, "relative gap of its points"),
        cd_eps=(1e-2, "the same for coordinate descent"),
        cd_cmax=(100.0, "the same"),
        sweeps=(5000, "of it, a point"),
        usps=(4, "every so-many-th row"),
        shuttle=(10, "the same"),
        grid=(60, "points of Fig. 5"),
    )
    study = Study("ogawa2014_linear", "Ogawa et al. 2014: Safe sample screening for SVMs (linear kernel)", given)
    b, m = study.data / "binary", study.data / "multiclass"
    toy = study.made("ogawa2014-toy")
    every = {
        "toy": (toy,),
        "bcd": (b / "breast_cancer.libsvm.gz", "--scale", "standard"),
        "dna": (m / "dna.libsvm.gz", "--positive", 3),
        "digit1": (b / "digit1.libsvm.gz",),
        "satimage": (m / "satimage.libsvm.gz", "--positive", 1, "--scale", "standard"),
        "usps (for gisette)": (study.thinned(m / "usps.libsvm.gz", given.usps), "--positive", 4),
        "mushrooms": (b / "mushrooms.libsvm.gz",),
        "pcmac (for news20)": (b / "pcmac.libsvm.gz", "--scale", "maxabs"),
        "shuttle": (study.thinned(m / "shuttle.libsvm.gz", given.shuttle), "--positive", 1, "--scale", "standard"),
        "ijcnn1": (b / "ijcnn1.libsvm.gz",),
        "w8a": (b / "w8a.libsvm.gz",),
        "covtype": (b / "covtype20k.libsvm.gz", "--scale", "maxabs"),
        "rcv1": (b / "rcv1sub.binary.libsvm.gz",),
        "pcmac": (b / "pcmac.libsvm.gz", "--scale", "maxabs"),
        "magic04": (b / "magic04.libsvm.gz", "--scale", "standard"),
    }
    sets = {name: how for name, how in every.items() if study.there(name, how[0])}

    def some(*names):
        return {name: sets[name] for name in names if name in sets}

    if "toy" in sets:
        study.section(
            "Figure 1: the toy at C = 10, screened from C_ref = 5", "The reference has a relative gap of 1e-8."
        )
        study.header("rule", "screened in R", "of", "screened in L", "of")
        for rule, step in zip(RULES, rates(study, "toy", toy, 5, 10), strict=True):
            study.say(line((rule, *(f"{step[k]:.0f}" for k in ("screened_R", "n_R", "screened_L", "n_L")))))
    table3(study, some("toy", "ijcnn1", "w8a", "covtype", "rcv1"))

    study.section(f"Table IV, linear kernel: eps-path ({given.eps:g}) up to C = {given.cmax:g}, default solver", BOTH)
    study.header(*SPEEDS)
    both = Both(study, given, "on")
    for name, (file, *more) in some(*PUBLISHED).items():
        both.lines(name, file, PUBLISHED[name], *more)
    both.summary("No rule over IT")
    study.section(
        f"Table IV, linear kernel: eps-path ({given.cd_eps:g}) up to C = {given.cd_cmax:g}, coordinate descent",
        f"The paper's kind of solver and its six variants, at most {given.sweeps} sweeps a point; a shorter path, "
        "since its sweeps are many. Ratios to Full (none) and, for variants with shrinking, to Shrink.",
    )
    study.header(*SPEEDS)
    path = ("--cmin", 0.001, "--cmax", given.cd_cmax, "--eps-path", given.cd_eps, "--tol", given.tol)
    for name, (file, *more) in some(*SWEPT).items():
        how = ("--solver", "cd", "--shrinking", "both", "--max-epochs", given.sweeps)
        study.speeds(name, study.compare(name, "svm", file, "none,bt1,it", *how, *path, *more), ratios(PUBLISHED[name]))

    figure4(study, some("toy", "bcd", "dna", "digit1", "satimage"), study.name)
    path = ("--cmin", 0.001, "--cmax", given.cmax, "--grid", given.grid, "--tol", given.tol)
    medium = some("toy", "usps (for gisette)", "mushrooms", "pcmac (for news20)", "shuttle")
    figure5(study, medium, study.name, *path)
    figure6(study, some("toy", "bcd", "pcmac", "magic04", "ijcnn1"))
    study.finish(NOTES)


def least(study, name, file, *options) -> float:
    """Return C_min, below which the solution is known in closed form (Lemma 9)."""
    study.path(name, "svm", file, "none", "--c-list", "1e-300", *options)
    record = json.loads((study.out / name / "none" / "run.json").read_text(encoding="utf-8"))
    return float(record["closed_form_until"])


def table3(study, sets) -> None:
    """Write screening rates and seconds of one problem, solved from one reference."""
    study.section("Table III: one problem at C = C_ref / 0.9 with C_ref = 500 C_min", THREE)
    study.header(
        "data",
        "C",
        "Full s",
        "Shrink s",
        "BT1 s",
        "Shrink+BT1 s",
        "rule s",
        "rate",
        "IT s",
        "Shrink+IT s",
        "rule s",
        "rate",
    )
    for name, (file, *options) in sets.items():
        first = 500 * least(study, name, file, *options)
        last = first / 0.9
        rate = {
            rule: f"{s['screening_rate']:.3f}"
            for rule, s in zip(RULES, rates(study, name, file, first, last, *options), strict=True)
        }
        rows = study.compare(
            name,
            "svm",
            file,
            "none,bt1,it",
            "--solver",
            "cd",
            "--shrinking",
            "both",
            "--max-epochs",
            1000,
            "--reference",
            f"{first:.10g}",
            "--c",
            f"{last:.10g}",
            *options,
        )
        took = {(r["rule"], r["shrinking"]): f"{r['total_s'] - r['init_s']:.2g}" for r in rows}  # of the second point
        rule = {r["rule"]: f"{r['rule_s']:.2g}" for r in rows if r["shrinking"]}
        cells = [took["none", False], took["none", True]]
        for one in ("bt1", "it"):
            cells += [took[one, False], took[one, True], rule[one], rate[one]]
        study.say(line((name, f"{last:.4g}", *cells)))


def figure6(study, sets) -> None:
    """Write and draw the intersection test against the dome test."""
    study.section(
        "Figure 6: intersection test (IT) and dome test (DT) from C_ref = 1e4 C_min",
        "DT is given the solution at 1.3 C as its feasible point, as in the paper. References at 1e-8.",
    )
    study.header("data", "C_ref / C", "IT", "DT")
    panels = []
    for name, (file, *options) in sets.items():
        first, curves = 1e4 * least(study, name, file, *options), {"IT": ([], []), "DT": ([], [])}
        for share in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
            C = first / share
            it = study.path(
                name, "svm", file, "it", "--reference", f"{first:.10g}", "--c", f"{C:.10g}", *TIGHT, *options
            )
            grid = ",".join(f"{value:.10g}" for value in (first, C, 1.3 * C))  # ends where the feasible point is taken
            dt = study.path(name, "svm", file, "ssnsv", "--c-list", grid, *TIGHT, *options)
            found = it[-1]["screening_rate"], dt[1]["screening_rate"]
            study.say(line((name, share, *(f"{one:.3f}" for one in found))))
            for curve, one in zip(curves.values(), found, strict=True):
                curve[0].append(share)
                curve[1].append(one)
        panels.append((name, curves))
    if panels:
        study.picture(
            lambda to: pictures.lines(to, f"{study.name}-fig6.svg", panels, xlabel="C_ref / C", logx=False),
            "Fig. 6: IT and DT",
        )


THREE = """\
Coordinate descent to 1e-6, seconds of the second problem by the clock (rule, solve, certificate), started from the
reference in all six variants; rates behind references of 1e-8. Published rates: BT1 0.178, 0.108, 0.136, 0.138 and IT
0.51, 0.125, 0.136, 0.139; seconds of Full, Shrink, Shrink+BT1, Shrink+IT: 98.2, 2.57, 2.21, 1.21 (acoustic); 1881,
327, 247, 228 (url); 2801, 115, 97.2, 88.1 (kdd-a); 16875, 4558, 4028, 3293 (kdd-b)."""
BOTH = """\
Twice: until no dual variable is at C (L is empty), where the paper's Algorithm 1 ends, and to the end of the range;
in between the solution is constant. Where L never empties (classes that overlap) there is one set of lines. Newton's
method has no shrinking: `none` stands beside the paper's ratio to Full. usps (4 against the rest) stands for gisette
(4 against 9), pcmac for the text of news20; of usps and shuttle every so-many-th row is taken."""
NOTES = """\
- **Coordinate descent to C = 1e4 at eps = 1e-3 is not run**: unscreened it needs thousands of sweeps a point (digit1:
  over 6,000 at C = 100), hours a set, as in the paper's table. Its six variants are compared on a shorter path; the
  whole one is walked by the default solver, for which what a rule saves is small beside Newton's few passes.
- **IT costs more than it saves** on the toys and mushrooms, which Newton's method solves in three passes a point;
  BT1, whose ball needs no pass over the rows, gains nearly everywhere. By coordinate descent to 1e-4 a rule can cost
  passes: where the rough solution leaves a screened row on the wrong side of its kink, the point is solved again, to
  a tighter gap.
- **Table III**: the paper's sets of millions of rows are not at hand. Rates depend on the set more than on its size.
- **Fig. 1** and the rates of Fig. 4 are those of references at 1e-8. BT2's ball, as ours is made safe, decides hardly
  anything alone; its half of IT adds to BT1 on the toys and digit1.
- **Fig. 6** agrees with the paper's words: IT is clearly better on B.C.D. and IJCNN1 (here but for C_ref / C = 0.5),
  and worse on MAGIC (here up to 0.8); on PCMAC, where the paper finds them comparable, it is better here. DT has the
  solution at 1.3 C, which the paper calls a bit unfair to IT.
- Scalings are not stated in the paper; satimage and shuttle raw would be other problems."""


if __name__ == "__main__":
    main()
