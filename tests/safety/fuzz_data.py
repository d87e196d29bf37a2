"""Search for false certificates where numbers of the problem are computed from the data and rounded.

Usage: python tests/safety/fuzz_data.py --steps 20000 [--seed 0] [--scales none,maxabs,standard,l2] [--text]

Targets have sizes from 1e-15 to 1e15, and so has epsilon; weights of samples and of classes multiply each other and the
level of a quantile; columns or rows may be scaled. The judge forms all of that in fractions of the numbers of the data,
without an intercept or with a free one (``rational.py``). What the independent checker says of each step is judged too.
"""

from __future__ import annotations

import io
import sys
from fractions import Fraction as F
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.catalogue.losses import LOSSES
from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.prepare import SCALES, prepare
from screenpath.data.files.write_libsvm import write_libsvm
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_free_solver, make_solver
from screenpath.store.certificates import states_of
from screenpath.verify import Verification, _judge
from screenpath.verify.data import Block, scaled
from screenpath.verify.file import BETWEEN, NOTHING, pack
from screenpath.verify.products import check
from screenpath.walk.loop import PathOptions, walk
from tests.safety.fuzz_rounding import search
from tests.safety.judge import exact_rows
from tests.safety.rational import Exact, ExactFree, dot, faults

KINDS = ("svr", "svr", "svr", "quantile", "lad", "svm")


class Held:
    """Rows in memory as the checker's source of data, which it scales itself."""

    def __init__(self, X, y, header: dict):
        self.n, self.d, self.X, self.y, self.header = len(y), X.shape[1], X, np.asarray(y, dtype=float), header

    def passed(self, indices: bool):
        n, d = self.X.shape
        block = Block(0, self.y, np.arange(n + 1) * d, np.tile(np.arange(d), n), self.X.ravel())
        yield scaled(block, self.header, d)


def random_data(rng, kind: str):
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


class Case:
    """A problem with weights of samples and of classes, its model, and both in fractions of the data's numbers."""

    def __init__(self, kind, X, y, own, classes, options, free, tol, scale="none", storage="dense"):
        self.kind, self.X, self.y, self.options, self.free, self.tol = kind, X, y, options, free, tol
        self.weights = own if classes is None else own * classes
        data = sp.csr_array(X) if storage == "sparse" else X
        self.prepared, self.preparation = prepare(data, scale, storage=storage, weights=self.weights, free=free)
        rows = MemoryRows(self.prepared, 1, self.preparation.inexact)
        self.model = LOSSES[kind].model(rows, y, self.weights, "free" if free else None, **options)
        self.losses = exact_losses(kind, y, own, classes, options)

    def exact(self, C: float, kind=None) -> Exact:
        found = (kind or (ExactFree if self.free else Exact))(self.model, C, self.losses)
        made = self.preparation
        if made.scale is not None or made.kind == "l2":  # a shift alone is exact
            found = found if self.free else Fractions(self.model, C, self.losses)
            shift, scale = np.zeros(self.X.shape[1]), np.ones(self.X.shape[1])
            header = {
                "scaling": "standard", "bias": 0.0, "shift": shift if made.shift is None else made.shift,
                "scale": scale if made.scale is None else made.scale,
            }  # fmt: skip
            rows = exact_rows({"scaling": "l2", "bias": 0.0} if made.kind == "l2" else header, self.X.tolist())
            signs = [int(sign) for sign in self.model.signs]
            found.G = [[sign * v for v in rows[i % len(rows)]] for i, sign in enumerate(signs)]
        return found

    def walk(self, grid, rule: str, **limits):
        parse, make = (parse_rule, make_free_solver) if self.free else (parse_rule, make_solver)
        return walk(self.model, grid, parse(rule), make("newton"), PathOptions(tol=self.tol, **limits))

    def proven(self, step, certificate) -> bool:
        made, n = self.preparation, len(self.y)
        header = {
            "model": self.kind, "tol": self.tol, "bias": float(self.free), "labels": {"+1": 1.0, "-1": -1.0},
            "data": {"n_samples": n, "n_features": self.X.shape[1]}, "scaling": made.kind, **self.options,
        }  # fmt: skip
        parts = {"weights": self.weights, "scale": made.scale, "shift": made.shift}
        header |= {name: part for name, part in parts.items() if part is not None}
        header |= {"intercept": "free"} if self.free else {}
        states, w = states_of(certificate.theta, self.model.lo, self.model.hi), certificate.point.vector
        entry = {
            "step": 0, "status": "certified", "C": float(certificate.C), "primal": float(step.primal),
            "primal_error": float(max(step.primal - step.gap - step.dual, 0.0)), "gap": float(step.gap),
            "states": pack(states), "claims": pack(np.full(states.size, NOTHING, dtype=np.uint8)),
            "between": certificate.theta[states == BETWEEN],
            "w": np.append(w, certificate.intercept) if self.free else w,
        }  # fmt: skip
        found = Verification("", 1, tol=self.tol)
        for pair in check(header, [entry], Held(self.X, self.y, header)):
            _judge(found, pair)
        return found.proven == 1

    def judge(self, step, certificate, exact: Exact, lowest: F) -> tuple[str, list[str]]:
        """Return the status of a step, with what the checker says, and its false claims.

        ``lowest`` is at most the optimum: where it shows that all holds, none is looked for, which takes long.
        """
        point, C = [*certificate.point.vector, *([certificate.intercept] if self.free else [])], step.parameters["C"]
        optimum, status, found = exact.optimum, step.status, []
        for best in (lambda: lowest, optimum):
            exact.optimum = best
            found = faults(self.model, C, self.tol, Reported(step, point), None, exact)
            if not found:
                break
        exact.optimum = optimum
        if self.free:  # an intercept far from 0 is no better than its last digit
            found = [claim for claim in found if claim != "worse than zero"]
        if status == "certified":
            holds, primal = self.proven(step, certificate), exact.primal([float(v) for v in point])
            status = "certified, proven" if holds else "certified, not proven"
            away = F(self.tol) * primal
            if holds and primal - lowest > away and primal - optimum() > away:
                found.append("certified and proven by the checker, but false")
        return status, found


class Fractions(Exact):
    def primal(self, w) -> F:
        return super().primal([F(v) for v in w])


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


def from_text(X, y) -> tuple:
    text = io.BytesIO()
    write_libsvm(text, X, y)
    text.seek(0)
    data = read_libsvm(text, n_features=X.shape[1])
    return data.X.toarray(), data.y


def check_data(seed: int, scales=("none",), text: bool = False):
    """Walk one random path, of data from ``text`` if that is asked for; yields as ``fuzz_rounding.check_path`` does."""
    rng = np.random.default_rng(seed)
    kind, free = str(rng.choice(KINDS)), bool(rng.random() < 0.4)
    X, y, own, classes, options = random_data(rng, kind)
    if free and kind == "svm":
        y[:2] = 1.0, -1.0
    tol = float(rng.choice([1e-3, 1e-6, 1e-9, 1e-12, 1e-14]))
    grid = np.unique(10.0 ** rng.uniform(-8.0, 8.0, int(rng.integers(1, 4))))
    scale = str(rng.choice(scales))
    with np.errstate(all="ignore"):
        case = Case(kind, *(from_text(X, y) if text else (X, y)), own, classes, options, free, tol, scale)
        case.X, case.y, case.losses = X, y, exact_losses(kind, y, own, classes, options)  # the judge reads no text
        words = f"{kind}, {'free, ' if free else ''}y {np.abs(y).max():.2g}, {options}, weights {case.weights}"
        for step, certificate in case.walk(grid, "gap" if free else "dvi+gap", max_epochs=200):
            exact = case.exact(step.parameters["C"])
            status, found = case.judge(step, certificate, exact, dual_value(exact, certificate.theta, free))
            yield status, found, f"{words}, scale {scale}, tol {tol:g}, C {step.parameters['C']:.3g}"


class Reported:
    """A step with its intercept as the last coefficient."""

    def __init__(self, step, point):
        self.status, self.primal, self.dual, self.gap = step.status, step.primal, step.dual, step.gap
        self.coefficients = np.array(point, dtype=float)


if __name__ == "__main__":
    scales = {"default": "none", "help": f"some of {', '.join(SCALES)}, joined by commas"}
    text = {"action": "store_true", "help": "write the data as LIBSVM text, and read it"}

    def checked(given):
        return partial(check_data, scales=given.scales.split(","), text=given.text)

    sys.exit(search(__doc__, 20_000, checked, scales=scales, text=text))
