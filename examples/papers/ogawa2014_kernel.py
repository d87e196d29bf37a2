"""Ogawa et al. 2014, RBF kernel: Table IV both ways (eps-path to C = 1e4, six variants), Figs. 4 and 5.

    python examples/papers/reproduce.py ogawa2014_kernel

Sets with more than two labels are one label against the rest: dna 3, satimage 1, shuttle 1, usps 4. Of the medium ones
every so-many-th row is taken: the kernel matrix of shuttle has 15 GB.
"""

from __future__ import annotations

import ogawa2014
from study import Page

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
SMALL = ("bcd", "dna", "digit1", "satimage")


def cases(study, *labels: str, whole: bool = False) -> dict:
    """Return file and options of sets with every gamma, by label."""
    return {
        f"{label}, {multiple}/d": (file, *more, "--kernel", "rbf", "--gamma", f"{multiple}/d")
        for label, (file, *more) in study.some(*labels, whole=whole).items()
        for multiple in study.given.gammas.split(",")
    }


def table4(study) -> None:
    """Write Table IV."""
    text = TEXT.format(**vars(study.given))
    both = ogawa2014.Both(study, text, "both", "--solver", "smo", "--kernel", "rbf")
    for label, (file, *more) in study.some(*PUBLISHED).items():
        for multiple in study.given.gammas.split(","):
            seconds = PUBLISHED[label][MULTIPLES.index(multiple)]
            whole = multiple in study.given.ends.split(",")
            both.lines(f"{label}, {multiple}/d", file, seconds, "--gamma", f"{multiple}/d", *more, to_the_end=whole)
    both.summary("Shrink over Shrink+IT")
    parts = {name: dict(zip(MULTIPLES, PUBLISHED[name], strict=True)) for name in study.some(*PUBLISHED)}
    ogawa2014.published(study, {f"{name}, {one}/d": said for name, part in parts.items() for one, said in part.items()})
    path = ("--cmin", 0.1, "--cmax", 10, "--grid", 20)
    some = {name: ("svm", *how, *path) for name, how in cases(study, *SMALL[: study.given.printed]).items()}
    study.printed(some, ogawa2014.PRINTED)


def figure4(study) -> None:
    """Write and draw Fig. 4, its panels of RBF kernels; the linear ones are on the other page."""
    ogawa2014.figure4(study, cases(study, *SMALL, whole=True))


def figure5(study) -> None:
    """Write and draw Fig. 5, its panels of RBF kernels."""
    ogawa2014.figure5(study, cases(study, *(label for label in PUBLISHED if label not in SMALL)))


TEXT = """\
The six variants; `none` is Full, `none+shrinking` is Shrink. Ratios to Full and, for variants with shrinking, to
Shrink. The kernel matrix is computed before the clocks start. eps-path of {eps:g}, its steps to a relative gap of
{tol:g}, until no dual variable is at C (L is empty), where the paper's Algorithm 1 ends; for gamma = {ends}/d also to
C = {cmax:g}, the paper's C_T: in between the solution is constant. usps (4 against the rest) stands for gisette (4
against 9), pcmac for the text of news20."""


PAGE = Page(
    name="ogawa2014_kernel",
    title="Ogawa et al. 2014: Safe sample screening for SVMs (RBF kernel)",
    family="kernel",
    settings={
        "eps": (1e-3, 1e-2, "accuracy of the eps-path"),
        "cmax": (1e4, 1e3, "its end"),
        "eps5": (1e-3, 1e-3, "accuracy of the eps-path of Fig. 5"),
        "cmax5": (1e4, 1e4, "its end"),
        "tol": (1e-4, 1e-4, "relative gap of its steps"),
        "gammas": ("0.1,1,10", "0.1,1,10", "multiples of 1/d"),
        "ends": ("1", "1", "of these, those that go on to the end"),
        "shares": ("0.5,0.7,0.8,0.9,0.95,0.99", "0.5,0.9", "C_ref / C of Fig. 4"),
        "printed": (4, 2, "how many of the small sets the printed rules are compared on"),
    },
    sets={
        "bcd": ("binary/breast_cancer.libsvm.gz", "--scale", "standard"),
        "dna": ("multiclass/dna.libsvm.gz", "--positive", 3),
        "digit1": ("binary/digit1.libsvm.gz",),
        "satimage": ("multiclass/satimage.libsvm.gz", "--positive", 1, "--scale", "standard"),
        "mushrooms": ("binary/mushrooms.libsvm.gz",),
        "shuttle": ("multiclass/shuttle.libsvm.gz", "--positive", 1, "--scale", "standard"),
        "usps (for gisette)": ("multiclass/usps.libsvm.gz", "--positive", 4),
        "pcmac (for news20)": ("binary/pcmac.libsvm.gz", "--scale", "maxabs"),
    },
    sections={
        "Table IV: eps-path, RBF kernel": table4,
        "Figure 4: screening rate at C = 10, RBF kernel": figure4,
        "Figure 5: screening rate over the path, RBF kernel": figure5,
    },
    notes=ogawa2014.notes,
    thin={
        "dna": (1, 5),
        "digit1": (1, 4),
        "satimage": (1, 10),
        "mushrooms": (8, 20),
        "shuttle": (40, 100),
        "usps (for gisette)": (8, 20),
        "pcmac (for news20)": (2, 5),
    },
)
