"""Search for false certificates where numbers of the problem are computed from the data and rounded.

Usage: python tests/safety/fuzz_data.py --steps 20000 [--seed 0]

Targets have sizes from 1e-15 to 1e15, and so has epsilon; weights of samples and of classes multiply each other and the
level of a quantile. The judge forms all of that in fractions of the numbers of the data, with and without a free
intercept (``rational.py``). What the independent checker says of each step is judged as well.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction as F
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.catalogue.losses import LOSSES
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.store.certificates import states_of
from screenpath.verify import Verification, _judge, checker_of
from screenpath.verify.data import Block
from screenpath.verify.file import BETWEEN, NOTHING, pack
from screenpath.walk.loop import PathOptions, walk
from tests.safety.fuzz_rounding import fuzz
from tests.safety.problems import judged
from tests.safety.rational import Exact, ExactFree, dot, faults

KINDS = ("svr", "svr", "svr", "quantile", "lad", "svm")


class Held:
    """Rows in memory as the checker's source of data; those of a free intercept have a last column of ones."""

    def __init__(self, X, y):
        self.n, self.d = len(y), X.shape[1]
        self.X, self.y = X, y

    def passed(self, indices: bool):
        """Yield the one block."""
        n, d = self.X.shape
        yield Block(0, self.y, np.arange(n + 1) * d, np.tile(np.arange(d), n), self.X.ravel())


def random_data(rng, kind: str):
    """Return rows, targets, own and classes' weights, and the options of the loss."""
    n, d = int(rng.integers(2, 3 if kind == "svr" else 4)), int(rng.integers(1, 3))
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(1, 17)))
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-6.0, 6.0)
    epsilon, size = 10.0 ** rng.uniform(-15.0, 15.0, 2)
    if rng.random() < 0.4:
        epsilon = size * 10.0 ** rng.uniform(-16.0, 1.0)
    y = size * float(rng.random() < 0.5) + rng.normal(size=n) * float(rng.choice([epsilon, 5.0 * epsilon, size]))
    tau = float(rng.choice([0.1, 1e-17, 1.0 / 3.0, rng.random()]))
    options = {"svr": {"epsilon": float(epsilon)}, "quantile": {"tau": tau}}
    if kind == "svm":
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    own = np.round(rng.uniform(0.1, 3.0, n), 1) if rng.random() < 0.5 else None
    classes = np.round(rng.uniform(0.1, 3.0, n), 2) if own is not None and rng.random() < 0.5 else None
    return X, y, own, classes, options.get(kind, {})


def exact_losses(kind: str, y, own, classes, options: dict) -> tuple:
    """Return kinks and both ends of the boxes as fractions of the data's numbers."""
    own, classes = (np.ones(len(y)) if part is None else part for part in (own, classes))
    s = [F(float(a)) * F(float(b)) for a, b in zip(own, classes, strict=True)]
    y, none = [F(float(t)) for t in y], [F(0)] * len(y)
    if kind == "svr":
        epsilon = F(options["epsilon"])
        return [sign * t - epsilon for sign in (1, -1) for t in y], none + none, s + s
    if kind == "quantile":
        tau = F(options["tau"])
        return y, [(tau - 1) * v for v in s], [tau * v for v in s]
    return (y, [-v for v in s], s) if kind == "lad" else ([F(1)] * len(y), none, s)


def proven(model, kind: str, X, y, weights, options: dict, tol: float, step, certificate) -> bool:
    """Tell whether the independent checker accepts a step that is certified."""
    free = hasattr(certificate, "intercept")
    header = {"model": kind, "tol": tol, "bias": 1.0 if free else 0.0, "labels": {"+1": 1.0, "-1": -1.0}, **options}
    header["data"] = {"n_samples": len(y), "n_features": X.shape[1]}
    if weights is not None:
        header["weights"] = weights
    if free:
        header["intercept"] = "free"
    source = Held(np.hstack([X, np.ones((len(y), 1))]) if free else X, np.asarray(y, dtype=float))
    source.d = X.shape[1]
    states, w = states_of(certificate.theta, model.lo, model.hi), certificate.point.vector
    entry = {
        "step": 0, "status": "certified", "C": float(certificate.C), "primal": float(step.primal),
        "primal_error": float(max(step.primal - step.gap - step.dual, 0.0)), "gap": float(step.gap),
        "states": pack(states), "claims": pack(np.full(states.size, NOTHING, dtype=np.uint8)),
        "between": certificate.theta[states == BETWEEN], "w": np.append(w, certificate.intercept) if free else w,
    }  # fmt: skip
    found = Verification("", 1, tol=tol)
    for pair in checker_of(header).check(header, [entry], source):
        _judge(found, pair)
    return found.proven == 1


def dual_value(exact, theta, free: bool) -> F:
    """Return a dual value: of the point in the exact boxes, one row taking what is left of the sum; or 0."""
    theta = [min(max(F(float(v)), lo), hi) for lo, v, hi in zip(exact.lo, theta, exact.hi, strict=True)]
    if free:
        rest = dot(exact.signs, theta)
        moved = [v - s * rest for s, v in zip(exact.signs, theta, strict=True)]
        room = [i for i, v in enumerate(moved) if exact.lo[i] <= v <= exact.hi[i]]
        if not room:
            return F(0)
        theta[room[0]] = moved[room[0]]
    sums = [dot(theta, column) for column in zip(*exact.G, strict=True)]
    return exact.C * dot(exact.c, theta) - exact.C**2 * dot(sums, sums) / 2


def check_data(seed: int):
    """Walk one random path; yields as ``fuzz_rounding.check_path`` does."""
    rng = np.random.default_rng(seed)
    kind, free = str(rng.choice(KINDS)), bool(rng.random() < 0.4)
    X, y, own, classes, options = random_data(rng, kind)
    if free and kind == "svm":
        y[:2] = 1.0, -1.0
    weights = own if classes is None else own * classes
    model = LOSSES[kind].model(MemoryRows(X), y, weights, "free" if free else None, **options)
    losses = exact_losses(kind, y, own, classes, options)
    tol = float(rng.choice([1e-3, 1e-6, 1e-9, 1e-12, 1e-14]))
    grid = np.unique(10.0 ** rng.uniform(-8.0, 8.0, int(rng.integers(1, 4))))
    words = f"{kind}, {'free, ' if free else ''}y {np.abs(y).max():.2g}, {options}, weights {weights}, tol {tol:g}"
    with np.errstate(all="ignore"):
        rule, path = parse_rule("gap" if free else "dvi+gap"), PathOptions(tol=tol, max_epochs=200)
        for step, certificate in walk(model, grid, rule, make_solver("newton"), path):
            C = step.parameters["C"]
            exact = (ExactFree if free else Exact)(model, C, losses)
            point = [*certificate.point.vector, *([certificate.intercept] if free else [])]
            # The pair's own dual point in the exact boxes, where it shows that all holds: an optimum takes long.
            lowest, optimum, status = dual_value(exact, certificate.theta, free), exact.optimum, step.status
            exact.optimum = lambda value=lowest: value
            found = faults(model, C, tol, Reported(step, point), None, exact)
            if found:
                exact.optimum = optimum
                found = faults(model, C, tol, Reported(step, point), None, exact)
            if free and status != "certified":  # an intercept far from 0 is no better than its last digit
                found = [claim for claim in found if claim != "worse than zero"]
            primal = exact.primal([float(v) for v in point])
            if status == "certified":
                holds = proven(model, kind, X, y, weights, options, tol, step, certificate)
                status = "certified, proven" if holds else "certified, not proven"
                if holds and primal - lowest > F(tol) * primal and primal - optimum() > F(tol) * primal:
                    found.append("certified and proven by the checker, but false")
            yield status, found, f"{words}, C {C:.3g}"


class Reported:
    """A step with its intercept as the last coefficient."""

    def __init__(self, step, point):
        self.status, self.primal, self.dual, self.gap = step.status, step.primal, step.dual, step.gap
        self.coefficients = np.array(point, dtype=float)


def main() -> int:
    """Return 0 where no claim was false, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    statuses, found = fuzz(arguments.steps, arguments.seed, lambda text: print(text, file=sys.stderr), check_data)
    print(f"{sum(statuses.values())} steps ({dict(statuses)}), {len(found)} false claims")
    return judged(found, "seed {}: {} ({})")


if __name__ == "__main__":
    sys.exit(main())
