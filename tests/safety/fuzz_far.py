"""Search for false certificates and unsafe decisions on sparse columns far from 0 with a free intercept.

Usage: python tests/safety/fuzz_far.py --steps 5000 [--seed 0]

Every row is stored, some columns are near 1e6 to 1e12. What is prepared is the data but for an exact shift, which is
compared in fractions; so are each step's claims, and each decision with the optimum of the fractions.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.catalogue.losses import LOSSES
from screenpath.data.files.prepare import prepare
from screenpath.rows.memory import MemoryRows
from screenpath.screen.intercept import parse_free_rule
from screenpath.solve.intercept import make_free_solver
from screenpath.walk.loop import PathOptions, walk
from tests.safety.fuzz_data import Reported, exact_losses, proven
from tests.safety.fuzz_rounding import fuzz
from tests.safety.problems import judged
from tests.safety.rational import ExactFree, dot, faults

RULES = ("gap", "dvi+gap", "essnsv", "essnsv+gap", "dvi")
KINDS = ("svm", "svm", "lad", "quantile")


class Optimum(ExactFree):
    """Objectives that remember where the smallest value is."""

    def __init__(self, model, C: float, losses):
        super().__init__(model, C, losses)
        self.found: tuple | None = None

    def _best(self, w) -> F:
        value = super()._best(w)
        if self.found is None or value < self.found[0]:
            self.found = value, w
        return value

    def wrong(self, decided) -> list[int]:
        """Return the rows that are decided and on the other side of their kink, whichever intercept is best."""
        value = self.optimum()
        w = self.found[1]
        kinks = [s * (c - dot(g, w)) for c, g, s in zip(self.c, self.G, self.signs, strict=True)]
        best = [b for b in kinks if self.primal([*w, b]) == value]
        rows = np.flatnonzero(decided).tolist()
        away = {i: [int(decided[i]) * self.signs[i] * (kinks[i] - b) for b in (min(best), max(best))] for i in rows}
        return [i for i in rows if self.lo[i] < self.hi[i] and max(away[i]) < 0]


def random_data(rng, kind: str):
    """Return rows, targets, weights of samples and the options of the loss."""
    n, d = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2.0, 2.0, d)
    far = rng.random(d) < 0.8
    far[0] = True
    X += np.where(far, rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(6.0, 12.0, d), 0.0)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0) if kind == "svm" else np.round(rng.normal(size=n), 3)
    y[:2] = 1.0, -1.0
    weights = np.round(rng.uniform(0.1, 3.0, n), 1) if rng.random() < 0.5 else None
    if weights is not None and rng.random() < 0.3:
        weights[-1] = 0.0
    return X, y, weights, {"tau": float(rng.choice([0.1, 0.5, 1.0 / 3.0]))} if kind == "quantile" else {}


def check_far(seed: int):
    """Walk one random path; yields as ``fuzz_rounding.check_path`` does, decisions as part of the status."""
    rng = np.random.default_rng(seed)
    kind, rule, tol = str(rng.choice(KINDS)), str(rng.choice(RULES)), float(rng.choice([1e-3, 1e-6, 1e-9]))
    X, y, weights, options = random_data(rng, kind)
    prepared, preparation = prepare(sp.csr_array(X), storage="sparse", weights=weights, free=True)
    near, shift = prepared.toarray(), np.zeros(X.shape[1]) if preparation.shift is None else preparation.shift
    exact = all(F(a) + F(b) == F(c) for a, b, c in zip(near.ravel(), np.tile(shift, len(X)), X.ravel(), strict=True))
    model = LOSSES[kind].model(MemoryRows(prepared), y, weights, "free", **options)
    losses, decisions = exact_losses(kind, y, weights, None, options), []

    def kept(model, parameter, rank, reference, certificate, decided):
        decisions.append(np.zeros(len(X)) if decided is None else np.array(decided))
        return {}

    grid = np.unique(10.0 ** rng.uniform(-6.0, 4.0, int(rng.integers(2, 5))))
    words = f"{kind}, {rule}, columns at {shift}, weights {weights}, tol {tol:g}"
    with np.errstate(all="ignore"):
        path = PathOptions(tol=tol, max_epochs=2000, audit=kept)
        for step, certificate in walk(model, grid, parse_free_rule(rule), make_free_solver("newton"), path):
            C = step.parameters["C"]
            judge, point = Optimum(model, C, losses), [*certificate.point.vector, certificate.intercept]
            found = ["the shift is not exact"] * (not exact)
            found += [f"row {i} is decided wrongly" for i in judge.wrong(decisions[-1])]
            best, status = judge.found[0], step.status
            judge.optimum = lambda value=best: value
            found += [claim for claim in faults(model, C, tol, Reported(step, point), None, judge) if claim != ZERO]
            if status == "certified":
                holds = proven(model, kind, near, y, weights, options, tol, step, certificate)
                status = "certified, proven" if holds else "certified, not proven"
            yield status, found, f"{words}, C {C:.3g}, {np.count_nonzero(decisions[-1])} decided"


ZERO = "worse than zero"  # an intercept far from 0 is no better than its last digit


def main() -> int:
    """Return 0 where no claim was false, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    statuses, found = fuzz(arguments.steps, arguments.seed, lambda text: print(text, file=sys.stderr), check_far)
    print(f"{sum(statuses.values())} steps ({dict(statuses)}), {len(found)} false claims")
    return judged(found, "seed {}: {} ({})")


if __name__ == "__main__":
    sys.exit(main())
