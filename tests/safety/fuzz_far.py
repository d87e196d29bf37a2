"""Search for false certificates and unsafe decisions on sparse columns far from 0 with a free intercept.

Usage: python tests/safety/fuzz_far.py --steps 5000 [--seed 0]

Every row is stored, some columns are near 1e6 to 1e12. What is prepared is the data but for an exact shift, which is
compared in fractions; so are each step's claims, and each decision with the optimum of the fractions.
"""

from __future__ import annotations

import sys
from fractions import Fraction as F
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.safety.fuzz_data import Case
from tests.safety.fuzz_rounding import search
from tests.safety.rational import ExactFree, dot

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
    case, decisions = Case(kind, X, y, weights, None, options, True, tol, storage="sparse"), []
    near, shift = case.prepared.toarray(), case.preparation.shift
    shift = np.zeros(X.shape[1]) if shift is None else shift
    exact = all(F(a) + F(b) == F(c) for a, b, c in zip(near.ravel(), np.tile(shift, len(X)), X.ravel(), strict=True))

    def kept(model, parameter, rank, reference, certificate, decided):
        decisions.append(np.zeros(len(X)) if decided is None else np.array(decided))
        return {}

    grid = np.unique(10.0 ** rng.uniform(-6.0, 4.0, int(rng.integers(2, 5))))
    words = f"{kind}, {rule}, columns at {shift}, weights {weights}, tol {tol:g}"
    with np.errstate(all="ignore"):
        for step, certificate in case.walk(grid, rule, max_epochs=2000, audit=kept):
            C = step.parameters["C"]
            optimum = case.exact(C, Optimum)
            found = ["the shift is not exact"] * (not exact)
            found += [f"row {i} is decided wrongly" for i in optimum.wrong(decisions[-1])]
            status, false = case.judge(step, certificate, optimum, optimum.found[0])
            yield status, found + false, f"{words}, C {C:.3g}, {np.count_nonzero(decisions[-1])} decided"


if __name__ == "__main__":
    sys.exit(search(__doc__, 5_000, lambda given: check_far))
