"""Ogawa et al. 2013 (pathwise SSNSV): Fig. 4, Table 1 with its split, and Figs. 5-8.

    python examples/papers/ogawa2013.py [DATA_FOLDER] [OUTPUT_FOLDER] [--page FOLDER] [--sets toy,bcd] [--ijcnn1 1]

100 values of C in [0.01, 100], one rule for five of them, as the paper, on its four sets (Ogawa 2014, Fig. 6, names
them); of the larger two coordinate descent sees some rows only.
"""

from __future__ import annotations

import pictures
from known_loss import rejections
from study import Study, arguments, line, mean

TABLE = (
    "data",
    "variant",
    "start",
    "points certified",
    "rejection",
    "CPU s",
    "line search s",
    "rule s",
    "wasted s",
    "Init. s",
    "speed-up",
    "saved",
)
PLAIN = ("--solver", "cd", "--shrinking", "off")


def main() -> None:
    """Make the page."""
    given = arguments(
        __doc__,
        grid=(100, "points of the paths"),
        sweeps=(1000, "of coordinate descent, a point"),
        magic04=(10, "coordinate descent: every so-many-th row"),
        ijcnn1=(20, "the same"),
    )
    study = Study(
        "ogawa2013", "Ogawa et al. 2013: Safe screening of non-support vectors in pathwise SVM computation", given
    )
    binary, toy = study.data / "binary", study.made("ogawa-toy")
    sets = {
        "toy": (toy,),
        "bcd": (binary / "breast_cancer.libsvm.gz", "--scale", "standard"),
        "pcmac": (binary / "pcmac.libsvm.gz", "--scale", "maxabs"),
        "magic04": (binary / "magic04.libsvm.gz", "--scale", "standard"),
        "ijcnn1": (binary / "ijcnn1.libsvm.gz",),
    }
    sets = {name: how for name, how in sets.items() if study.there(name, how[0])}
    points = ("--cmin", 0.01, "--cmax", 100, "--grid", given.grid)

    if "toy" in sets:
        study.section(
            "Figure 4: one rule for all C in [1, 10] on the toy", "From the solutions at both ends, at a gap of 1e-10."
        )
        study.header("rule", "R", "L", "of", "published")
        for rule in ("ssnsv", "essnsv"):
            last = study.path("toy", "svm", toy, rule, "--c-list", "1,10", "--tol", "1e-10")[-1]
            fixed, n = (last["screened_R"], last["screened_L"]), sum(last[k] for k in ("n_R", "n_L", "n_E"))
            study.say(
                line((rule, *(f"{one:.0f}" for one in fixed), f"{n:.0f}", "529 and 1" if rule == "ssnsv" else ""))
            )

    thin = {"magic04": given.magic04, "ijcnn1": given.ijcnn1}
    for form, rules in (("C", "none,heuristic,ssnsv,essnsv"), ("s", "none,ssnsv,essnsv")):
        study.section(f"Table 1: one rule for five values of C ({form}-form)", WHAT if form == "C" else "")
        study.header(*TABLE)
        for name, (file, *more) in sets.items():
            starts = "warm,cold" if form == "C" and name not in thin else "warm"
            how = ("--max-epochs", given.sweeps, "--chunk", 5, "--chunk-form", form, "--start", starts)
            few = study.thinned(file, thin.get(name, 1))
            table(study, name, study.compare(name, "svm", few, rules, *PLAIN, *how, *points, *more))

    study.section("Table 1 with the default solver", "Warm starts, every point to a relative gap of 1e-8, C-form.")
    study.header(*TABLE)
    for name, (file, *more) in sets.items():
        rules = "none,heuristic,ssnsv,essnsv"
        table(study, name, study.compare(name, "svm", file, rules, "--chunk", 5, *points, "--tol", "1e-8", *more))

    study.section(
        "Figures 5-8: share fixed before each solve, and its time",
        "References at 1e-8 by the default solver. `loss known`: the line search is given the loss at the optimum, of "
        "a path solved before (`known_loss.py`), and not a bound on it: the most that any bound can give.",
    )
    study.header("data", "rule", "form", "mean rejection")
    shares, times = [], []
    for name, (file, *more) in sets.items():
        curves = figure(study, name, file, *points, *more)
        for rule, (C, known) in rejections(file, 0.01, 100.0, given.grid, *more[1:]).items():
            curves[0][f"{rule} C, loss known"] = C, known
            study.say(line((name, rule, "C, loss known", f"{sum(known) / len(known):.3f}")))
        shares.append((f"{name}: share fixed", curves[0]))
        times.append((f"{name}: seconds a point", curves[1]))
    study.picture(lambda to: pictures.lines(to, "ogawa2013-figs5-8.svg", shares), "Figs. 5-8, top: share fixed over C")
    study.picture(
        lambda to: pictures.lines(to, "ogawa2013-figs5-8-time.svg", times, logy=True),
        "Figs. 5-8, bottom: seconds of each point",
    )
    study.finish(NOTES)


def table(study, name: str, rows) -> None:
    """Write Table 1's lines with its split."""
    for row in rows:
        base = next(one for one in rows if one["rule"] == "none" and one["start"] == row["start"])
        ratio = row["speedup"] / base["speedup"]
        study.say(
            line(
                (
                    name,
                    row["rule"],
                    row["start"],
                    f"{row['certified']:.0f} of {row['points']:.0f}",
                    f"{row['mean_rejection']:.3f}",
                    f"{row['cpu_s']:.3g}",
                    f"{row['search_s']:.2g}",
                    f"{row['rule_s'] - row['search_s']:.2g}",
                    f"{row['wasted_s']:.2g}",
                    f"{row['init_s']:.2g}",
                    f"{ratio:.2f}",
                    f"{100 * (1 - 1 / ratio):.0f} %",
                )
            )
        )


def figure(study, name: str, file, *options) -> tuple:
    """Return what the rules fix over C, and the seconds of each point, as curves; write the means."""
    shares, times = {}, {}
    for rule, form in (
        ("none", ""),
        ("heuristic", ""),
        ("ssnsv", "C"),
        ("essnsv", "C"),
        ("ssnsv", "s"),
        ("essnsv", "s"),
    ):
        chunks = ("--chunk", 5, "--chunk-form", form) if form else ()
        steps = study.path(name, "svm", file, rule, *chunks, "--tol", "1e-8", *options)
        C, label = [step["C"] for step in steps], f"{rule} {form}".strip()
        times[label] = C, [step["screen_s"] + step["solve_s"] for step in steps]
        if form:
            shares[label] = C, [step["rejection_ratio"] for step in steps]
            study.say(line((name, rule, form, f"{mean(steps, 'rejection_ratio'):.3f}")))
    return shares, times


WHAT = """\
Coordinate descent without shrinking; `warm`: it starts at the previous point, `cold`: every solve starts at zero, as
LIBLINEAR's does. The parts of the time as in the paper's table: the line search for a feasible point, the rule,
solves that had to be repeated (wasted), and Init., here the first point and the far end. `saved` is 1 - 1/speed-up;
the paper has 65, 36, 32 and 41 % for its rule on four sets, with the heuristic slower than the rule on three of them
and slower than no screening on PCMAC. Of magic04 and ijcnn1 every tenth and twentieth row is taken here, and warm
starts alone."""
NOTES = """\
- **The reversal against the heuristic**: in the paper the rule beats it on three of four sets. Here the heuristic is
  the fastest wherever it guesses well, from warm and from cold starts: its second solve is given the few rows that it
  had guessed wrong, and it may end a point after three rounds. It wastes more from cold starts, where a repeated
  solve begins at zero.
- **The rule's savings** are smaller than published. It is the paper's where references are exact; behind a relative
  gap of 1e-6 at the reference (Table 1) the dome's half-space is moved by what the reference may be off, which on
  ijcnn1 and magic04 leaves nothing of it. The figures, behind 1e-8, show what the rule is worth there. LIBLINEAR's
  references are cruder than both; a rule that takes them for exact screens more than is safe.
- **The line search** is negligible in the paper. Here the bound on the loss goes with it, some eighty evaluations of
  the objective and three passes a chunk: more than Newton's method takes for a point of magic04 or ijcnn1.
- **C-form and s-form**: the C-form proves the loss of the feasible point before the rule is used, the s-form tries it
  and proves it by the certificate of each point, or gives the rule up. Both begin behind a first point that is solved.
  An exact line search needs the loss at the optimum; `loss known` in the figures' table is what it would give. The
  bound costs a few hundredths on the toy and magic04 and nothing on pcmac; on ijcnn1 it costs a quarter of what could
  be rejected, on bcd nearly all, where the s-form finds as much as there is.
- The four sets are B.C.D., PCMAC, MAGIC and IJCNN1 (Ogawa 2014, Fig. 6, names them); which of the four savings is
  whose is not in the text at hand, nor are scalings. Where points are not certified, the solver ran out of its sweeps
  on badly conditioned data."""


if __name__ == "__main__":
    main()
