"""Ogawa et al. 2014, RBF kernel: Table IV both ways (eps-path to C = 1e4, six variants), Figs. 4 and 5.

    python examples/papers/ogawa2014_kernel.py [DATA_FOLDER] [OUTPUT_FOLDER] [--page FOLDER] [--gammas 0.1,1,10]

Sets with more than two labels are one label against the rest: dna 3, satimage 1, shuttle 1, usps 4. Of the larger ones
every so-many-th row is taken (--mushrooms 1 --shuttle 1 --usps 1: all; the kernel matrix of shuttle then has 15 GB).
"""

from __future__ import annotations

from ogawa2014 import Both, figure4, figure5
from study import SPEEDS, Study, arguments

# Seconds of Full, Shrink, BT1, Shrink+BT1, IT, Shrink+IT for gamma = 0.1/d, 1/d, 10/d
PUBLISHED = {
    "bcd": ("43.8 4.51 9.08 2.8 8.48 2.87", "2.73 0.68 0.435 0.295 0.464 0.294", "0.73 0.4 0.312 0.221 0.266 0.213"),
    "dna": ("298 106 253 87.7 242 80.7", "13.9 5.27 7.14 2.5 7.03 2.62", "4.98 2.68 3.18 1.96 2.71 1.82"),
    "digit1": ("938 261 928 262 741 203", "94.3 27.3 70.9 19.4 60.7 16.8", "6.93 2.71 2.92 0.77 2.45 0.794"),
    "satimage": ("1365 565 1325 547 1178 488", "635 218 392 129 277 88.7", "31 20.4 3.89 1.5 3.87 1.68"),
    "mushrooms": ("1938 618 1838 572 1395 423", "239 103 164 62.3 134 50.6", "94.3 56.3 70.5 44.2 66.2 40.9"),
    "shuttle": (
        "278232 63192 275688 63608 253219 51932",
        "214165 60608 203155 56161 180839 48867",
        "167690 54364 129490 45644 125675 44463",
    ),
    "usps (for gisette)": (
        "375 143 365 132 296 103",
        "63.9 30.1 33.4 13.5 25.4 10.2",
        "34.3 20.7 27.8 16.8 24.9 15.9",
    ),
    "pcmac (for news20)": (
        "10358 5565 10239 5493 10245 5770",
        "33960 12797 34019 12918 30373 10152",
        "270984 67348 270313 67062 264433 56427",
    ),
}
MULTIPLES = ("0.1", "1", "10")


def main() -> None:
    """Make the page."""
    given = arguments(
        __doc__,
        eps=(1e-3, "accuracy of the eps-path"),
        cmax=(1e4, "its end"),
        tol=(1e-4, "relative gap of its points"),
        gammas=("0.1,1,10", "multiples of 1/d"),
        ends=("1", "of these, those that go on to the end"),
        mushrooms=(8, "every so-many-th row"),
        shuttle=(40, "the same"),
        usps=(8, "the same"),
        satimage=(4, "the same"),
        dna=(2, "the same"),
        digit1=(2, "the same"),
        pcmac=(2, "the same"),
        grid=(60, "points of Fig. 5"),
    )
    study = Study("ogawa2014_kernel", "Ogawa et al. 2014: Safe sample screening for SVMs (RBF kernel)", given)
    b, m = study.data / "binary", study.data / "multiclass"
    sets = {
        "bcd": (b / "breast_cancer.libsvm.gz", "--scale", "standard"),
        "dna": (study.thinned(m / "dna.libsvm.gz", given.dna), "--positive", 3),
        "digit1": (study.thinned(b / "digit1.libsvm.gz", given.digit1),),
        "satimage": (study.thinned(m / "satimage.libsvm.gz", given.satimage), "--positive", 1, "--scale", "standard"),
        "mushrooms": (study.thinned(b / "mushrooms.libsvm.gz", given.mushrooms),),
        "shuttle": (study.thinned(m / "shuttle.libsvm.gz", given.shuttle), "--positive", 1, "--scale", "standard"),
        "usps (for gisette)": (study.thinned(m / "usps.libsvm.gz", given.usps), "--positive", 4),
        "pcmac (for news20)": (study.thinned(b / "pcmac.libsvm.gz", given.pcmac), "--scale", "maxabs"),
    }
    sets = {name: how for name, how in sets.items() if study.there(name, how[0])}
    gammas = given.gammas.split(",")

    study.section(
        f"Table IV, RBF kernel: eps-path ({given.eps:g}) up to C = {given.cmax:g}", TEXT.format(**vars(given))
    )
    study.header(*SPEEDS)
    both = Both(study, given, "both", "--solver", "smo", "--kernel", "rbf")
    for name, (file, *more) in sets.items():
        for multiple in gammas:
            seconds = PUBLISHED[name][MULTIPLES.index(multiple)]
            whole = multiple in given.ends.split(",")
            both.lines(f"{name}, {multiple}/d", file, seconds, "--gamma", f"{multiple}/d", *more, to_the_end=whole)
    both.summary("Shrink over Shrink+IT")

    rbf = ("--kernel", "rbf", "--gamma", "1/d")
    small = {f"{name}, 1/d": (*sets[name], *rbf) for name in ("bcd", "dna", "digit1", "satimage") if name in sets}
    figure4(study, small, study.name)
    medium = {f"{name}, 1/d": (*how, *rbf) for name, how in sets.items() if name not in ("bcd", "dna", "digit1")}
    figure5(study, medium, study.name, "--cmin", 0.001, "--cmax", given.cmax, "--grid", given.grid, "--tol", given.tol)
    study.finish(NOTES)


TEXT = """\
The six variants; `none` is Full, `none+shrinking` is Shrink. Ratios to Full and, for variants with shrinking, to
Shrink. The kernel matrix is computed before the clocks start. The points have a relative gap of {tol:g}. Twice: until
no dual variable is at C (L is empty), where the paper's Algorithm 1 ends, and to the end of the range, as the paper's
C_T: in between the solution is constant (gamma = {ends}/d). Rows: all of bcd; every {dna}nd, {digit1}nd,
{satimage}th, {mushrooms}th, {shuttle}th, {usps}th and {pcmac}nd of dna, digit1, satimage, mushrooms, shuttle, usps
and pcmac. usps (4 against the rest) stands for gisette (4 against 9), pcmac for the text of news20."""
NOTES = """\
- **IT's gain over shrinking alone is in part not screening.** BT2 and IT know the products of their guess s of the
  dual point, so that the solver starts where alpha grows with C on the samples of L alone; a solver without rule
  could make that guess with its own kernel rows, and would gain nearly as much. BT1, which screens and does nothing
  else, is the rule's own worth.
- **Both ways the gain is the same**: from where L is empty on, every point is certified from what is known, with and
  without a rule. Before that was so, the tail cost Shrink as much as the rest and Shrink+IT nothing, and most of IT's
  gain to C = 1e4 lay there (2.65 in the middle, up to 10, with an earlier build). The published ratios are of LIBSVM
  on all rows; these are of single runs on a thousand rows, a tenth of a second each, and vary by as much.
- **Full and Shrink are not LIBSVM's**: pair steps here take a working set of the rows that matter, so that `none`
  does less than LIBSVM without shrinking, and there is less to save.
- Screening rates of BT2 alone are lower than in the paper's Fig. 4: its guess is the paper's, its ball holds for
  references with a gap. IT is never below BT1, as published.
- Sets: scalings are not stated in the paper; gisette and news20.binary are not at hand, and what stands for them has
  other sizes, as have the thinned sets. No time is compared with the paper's, ratios are."""


if __name__ == "__main__":
    main()
