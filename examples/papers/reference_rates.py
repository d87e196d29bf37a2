"""Screening rate at C from the solution at a smaller C_ref: the data of Ogawa 2014's Figs. 4 and 6.

``reference_rates.py DATA --c 10 --ratios 0.1,0.5,0.9``: fixed C, C_ref = ratio C (Fig. 4).
``reference_rates.py DATA --reference 1e4 --ratios 0.5,0.95``: fixed C_ref in units of C_min, C = C_ref / ratio
(Fig. 6).
The dome tests (``ssnsv``, ``essnsv``) take the solution at 1.3 C as their feasible point, as the paper's does.

One line a rule: the rows decided over the rows that are at an end of their box at C. ``--c-min`` prints C_min, the
largest C at which the closed form (every dual variable at its upper end) is the solution, and stops.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from screenpath.models.builders import svm_model
from screenpath.path import PathOptions, walk
from screenpath.prepare import prepare
from screenpath.read.labels import binary_labels
from screenpath.read.libsvm import read_libsvm
from screenpath.rows.memory import MemoryRows
from screenpath.rules import STATIC, parse_rule
from screenpath.solvers import make_solver

sys.path.insert(0, str(Path(__file__).parent))
from tables import head, line  # a neighbour of this file, not a package

FEASIBLE = 1.3  # the dome test's feasible point is the solution at this multiple of C (Ogawa 2014, Appendix B)


def load(file: Path, scale: str, storage: str, positive: float | None):
    """Return the SVM of a LIBSVM file."""
    data = read_libsvm(file)
    X, _ = prepare(data.X, scale=scale, storage=storage)
    signs, _ = binary_labels(data.y, positive)
    return svm_model(MemoryRows(X), signs)


def c_min(model) -> float:
    """Return the largest C at which the closed form holds."""
    return model.closed_form()[2]


def solutions(model, parameters) -> dict:
    """Return the certificate (relative gap 1e-8) at each of the parameters."""
    grid = np.unique(parameters)
    path = walk(model, grid, parse_rule("dvi+gap"), make_solver("auto"), PathOptions(tol=1e-8))
    found = {C: certificate for C, (_, certificate) in zip(grid, path, strict=True)}
    short = [C for C, certificate in found.items() if certificate.rel_gap > 1e-8]
    if short:
        raise SystemExit(f"not solved to a relative gap of 1e-8: C = {short}")
    return found


def rate(model, rule: str, solved: dict, reference: float, C: float) -> float:
    """Return the rows that the rule decides over those that are at an end of their box."""
    static = STATIC[rule]()
    far = (solved[FEASIBLE * C],) if static.needs_far_end else ()
    screened = model.screen(static.region(model, solved[reference], C, *far))
    return model.counts(solved[C], screened)["screening_rate"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--set", required=True, help="its name in the table")
    parser.add_argument("--scale", default="none")
    parser.add_argument("--storage", default="auto")
    parser.add_argument("--positive", type=float, help="this label against all others")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--c", type=float, help="the C that is screened")
    what.add_argument("--reference", type=float, help="C_ref over C_min")
    what.add_argument("--c-min", action="store_true")
    parser.add_argument("--ratios", default="0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95", help="C_ref / C")
    parser.add_argument("--rules", default="bt1,bt2,it")
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    model = load(given.file, given.scale, given.storage, given.positive)
    if given.c_min:
        print(repr(float(c_min(model))))
        return
    ratios = [float(text) for text in given.ratios.split(",")]
    rules = given.rules.split(",")
    fixed = given.c or given.reference * c_min(model)
    pairs = [(ratio * fixed, fixed) if given.c else (fixed, fixed / ratio) for ratio in ratios]
    far = [FEASIBLE * C for _, C in pairs if any(STATIC[rule].needs_far_end for rule in rules)]
    solved = solutions(model, [C for pair in pairs for C in pair] + far)
    rates = {rule: [rate(model, rule, solved, *pair) for pair in pairs] for rule in rules}
    print(head([f"{given.set}: screening rate, C_ref / C =", *ratios], text=1))
    for rule in rules:
        print(line([rule, *(f"{value:.3f}" for value in rates[rule])]))
    print()
    if given.csv:
        with open(given.csv, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["C_ref", "C", *rules])
            writer.writerows([*pair, *(rates[rule][k] for rule in rules)] for k, pair in enumerate(pairs))


if __name__ == "__main__":
    main()
