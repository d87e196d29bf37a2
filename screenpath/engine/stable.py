"""For which C of a whole path the label of a new row is proven: between the steps, too.

At every C the optimum lies within ``sqrt(2 gap)`` of the interpolated weights, as the objective is strongly convex; the
bound on the gap is that of :mod:`screenpath.problem.between`, from the weights alone. What a free intercept is then
follows from the dual points, with which the path is solved again: :mod:`screenpath.problem.between_levers`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import floor, log, log10
from typing import Any, NamedTuple

import numpy as np

from screenpath.data.files.cells import completed
from screenpath.data.words.labels import label_text
from screenpath.engine.interpolated import is_linear, is_solved, solved
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD, gamma
from screenpath.problem.between import Between, Solved, open_shares
from screenpath.regions.geometry import ROUNDING

TOL = 1e-8  # relative gap of the steps that are solved again, if that of the run is larger
DIGITS = 6  # of the ends of intervals, rounded inwards
ROWS = 1 << 12  # at once


class StableLabels:
    """Intervals of C on which the label of each of the m rows is proven, for a path of SVMs in a run folder.

    The path has no kernel; with a free intercept or several labels its training data are read. ``X``, csr, has new rows
    in the units of the data, with the columns of the path.

    Attributes
    ----------
    low, high : float
        Ends of the path.
    intervals : list of list
        For each row ``(label, low, high)`` in the order of C.
    """

    def __init__(self, path, X):
        run = path.run
        if run.labels is None:
            raise UsageError(f"{run.model} is a regression: it has no labels to prove", "leave out `stable`")
        if not is_linear(path) or run.voting or "threshold" in run.record["columns"]:
            what = "svm without a kernel, without votes of pairs of labels and without a chosen threshold"
            raise UsageError(f"`stable` is for {what}", "leave out `stable`")
        steps = sorted(filter(is_solved, path.steps), key=lambda step: step.C)
        if len(steps) < 2:
            raise UsageError(f"`stable` needs a path: {run.path} has one step", "leave out `stable`")
        self.grid = np.array([step.C for step in steps])
        left = _again(path, self.grid) if reads_training(run) else _by_balls(path, steps)
        self.intervals: list[list] = []
        for start in range(0, X.shape[0], ROWS):
            self.intervals += self._of(run, left(X[start : start + ROWS]))

    @property
    def low(self) -> float:
        return float(self.grid[0])

    @property
    def high(self) -> float:
        return float(self.grid[-1])

    def __repr__(self) -> str:
        return f"<StableLabels: {self.statement}>"

    def _of(self, run, left: list[np.ndarray]) -> list[list]:
        """Return the intervals of some rows, for what is left open between neighbours: each of shape (2, 2, m)."""
        shares = np.array(left).transpose(1, 0, 2, 3)  # (sides, segments, 2, m)
        whole = np.stack([self.grid[:-1], self.grid[1:]], axis=1)[:, :, None]
        at = whole[:, :1] + shares * (whole[:, 1:] - whole[:, :1])
        at = np.where(shares == 1.0, whole[:, 1:], at)
        at = np.where(shares[:, :, :1] <= shares[:, :, 1:], at, np.inf)
        found: list[list] = [[] for _ in range(at.shape[3])]
        for unproven, label in zip(at, run.classes or run.sides[::-1], strict=True):
            for k in np.flatnonzero((unproven != whole).any(axis=(0, 1))):  # of most rows one side alone
                some = unproven[:, :, k]
                found[k] += self._proven(label_text(label), some[np.isfinite(some[:, 0])])
        for intervals in found:
            intervals.sort(key=lambda one: one[1])
        return found

    def _proven(self, label: str, unproven: np.ndarray):
        """Yield what closed intervals of C leave, shape (k, 2) in their order."""
        since = self.low
        for low, high in (*unproven.tolist(), (np.inf, np.inf)):
            until = self.high if low == np.inf else _rounded(low * (1.0 - ROUNDING), up=False)
            begin = since if since == self.low else _rounded(since * (1.0 + ROUNDING), up=True)
            if until > begin:
                yield label, begin, until
            since = high

    @property
    def shares(self) -> np.ndarray:
        """Return for each row the share of the range, in the logarithm, on which its label is proven."""
        whole = log(self.high / self.low)
        return np.array([sum(log(high / low) for _, low, high in one) / whole for one in self.intervals])

    def texts(self) -> list[str]:
        """Return the intervals of each row in words: ``+1 0.01..0.47; -1 0.52..10``."""
        return ["; ".join(f"{label} {low:.6g}..{high:.6g}" for label, low, high in one) for one in self.intervals]

    @property
    def statement(self) -> str:
        shares = self.shares
        whole = sum(len(one) == 1 and one[0][1:] == (self.low, self.high) for one in self.intervals)
        rows = f"{whole:,} of {shares.size:,} rows have one proven label for all C from {self.low:g} to {self.high:g}"
        return f"{rows}; labels are proven for {100.0 * shares.mean():.2f} % of the range on average"


def reads_training(run) -> bool:
    """Tell whether the dual points of the path are needed."""
    return bool(run.classes) or run.record["options"].get("intercept") == "free"


def _by_balls(path, steps: list) -> Callable:
    """Return a function of rows: the shares of C between neighbours at which forms are perhaps not above 0, and below.

    Without a free intercept the weights of the run suffice.
    """
    run, p = path.run, path.run.preparation
    known = [(solved(path, step), *path._solution(step)) for step in steps]

    def left(X) -> list[np.ndarray]:
        sizes = abs(p.apply(X) if p.kind == "l2" else completed(X, p.fill))
        norms, shift = _norms(run, p, X, sizes), np.abs(0.0 if p.shift is None else p.shift)
        ends = []
        for step, (one, weights, intercept) in zip(steps, known, strict=True):
            lost = sizes @ np.abs(weights) + abs(intercept) + 2.0 * float((np.abs(weights) * shift).sum())
            ends.append((one, path._forms(X, step), 4.0 * gamma(2 * weights.size + 16) * lost))
        found = []
        for (first, p0, lost0), (second, p1, lost1) in pairwise(ends):
            between, moved = Between.of(first, second), norms * max(first.off, second.off)
            squares = 2.0 * first.gap, 2.0 * second.gap, 2.0 * between.bend
            forms = [(side * p0 - lost0 - moved, side * p1 - lost1 - moved) for side in (1, -1)]
            found.append(np.array([open_shares(*of, norms, *squares) for of in forms]))
        return found

    return left


def _again(path, grid: np.ndarray) -> Callable:
    """Return the function of :func:`_by_balls` for a free intercept or several labels: the path is solved again."""
    from screenpath.engine.path import Path
    from screenpath.engine.run_problem import problem_of_run  # which compute, and load numba
    from screenpath.problem.between_levers import LeversBetween

    run = path.run
    with problem_of_run(run, path.training, TOL) as (spec, asked, data):
        way = Path.of(spec, asked, data, grid)
        models = way.model.parts or (way.model,)
        bounds = LeversBetween.of if models[0].free else Balls.of
        steps = (pair if way.model.parts else [pair] for _, pair in way.walk())
        known = [
            ([bounds(*of) for of in zip(models, *ends, strict=True)], [[_weights(one) for one in end] for end in ends])
            for ends in pairwise(steps)
        ]
        d, preparation = way.model.rows.d, data.preparation

    def left(X) -> list[np.ndarray]:
        rows = preparation.apply(X)[:, :d]
        norms = np.sqrt(sp.row_squares(rows)) * (1.0 + ROUNDING)

        def products(vector):
            return np.asarray(rows @ vector).ravel()

        if run.classes:
            return [_of_classes(*one, products, norms) for one in known]
        return [one.open_shares(products, norms) for (one,), _ in known]

    return left


def _weights(certificate) -> tuple[np.ndarray, float]:
    return certificate.point.vector, certificate.intercept or 0.0


class Balls(NamedTuple):
    """The balls of two certificates without a free intercept, as :class:`LeversBetween` has them."""

    centers: list
    errors: list  # of a row's product with a centre, over the row's norm
    squares: tuple[float, float, float]

    @classmethod
    def of(cls, model, *ends) -> Balls:
        between = Between.of(*(Solved(one.C, one.primal, one.dual, one.gap, one.point.vector) for one in ends))
        centers = [0.5 * (one.point.vector + one.C * one.total) for one in ends]
        errors = [
            model.rounding * float(np.linalg.norm(center)) + OUTWARD * one.C * (one.sum_error + one.shift)
            for center, one in zip(centers, ends, strict=True)
        ]
        return cls(centers, errors, (ends[0].gap, ends[1].gap, between.bend))

    def open_shares(self, products: Callable, norms: np.ndarray, kinks: Any = 0.0) -> np.ndarray:
        forms = [products(center) - kinks for center in self.centers]
        lost = [error * norms + ROUNDING * (np.abs(form) + 2.0 * np.abs(kinks))
                for error, form in zip(self.errors, forms, strict=True)]  # fmt: skip
        (p0, p1), (lost0, lost1) = forms, lost
        return np.array([open_shares(side * p0 - lost0, side * p1 - lost1, norms, *self.squares) for side in (1, -1)])


def _of_classes(bounds: list, ends: list, products: Callable, norms: np.ndarray) -> np.ndarray:
    """Return the shares at which the form of each class is perhaps not the largest, shape (classes, 2, m).

    It is where it is above a number that all others are below: the middle of the two largest at an end.
    """
    out, row = np.zeros((len(bounds), 2, norms.size)), np.arange(norms.size)
    out[:, 1] = 1.0
    for classes in ends:
        forms = np.array([products(w) + b for w, b in classes])
        *_, second, best = np.argsort(forms, axis=0)
        middle = 0.5 * (forms[second, row] + forms[best, row])
        shares = np.array([one.open_shares(products, norms, middle) for one in bounds])
        own = np.arange(len(bounds))[:, None] == best
        start, stop = np.where(own[:, None], shares[:, 0], shares[:, 1]).transpose(1, 0, 2)
        empty = start > stop
        start, stop = np.where(empty, 1.0, start).min(axis=0), np.where(empty, 0.0, stop).max(axis=0)
        out[best, 0, row], out[best, 1, row] = np.maximum(out[best, 0, row], start), np.minimum(out[best, 1, row], stop)
    return out


def _norms(run, p, X, sizes) -> np.ndarray:
    """Return upper bounds of the norms of the rows as the model sees them, the constant feature included."""
    bias = run.record["preparation"].get("bias") or 0.0
    X = p.apply(X.toarray() if p.shift is not None else X)
    scale = 1.0 if p.scale is None else p.scale
    moved = 0.0 if p.shift is None else np.linalg.norm((sizes.toarray() + np.abs(p.shift)) / scale, axis=1)
    return (np.sqrt(sp.row_squares(X) + bias * bias) + gamma(4) * moved) * (1.0 + ROUNDING)


def _rounded(C: float, up: bool) -> float:
    """Return a number of ``DIGITS`` digits, at least ``C`` or at most."""
    unit = 10.0 ** (floor(log10(C)) + 1 - DIGITS)
    return float(f"{(np.ceil if up else np.floor)(C / unit) * unit:.{DIGITS}g}")
