"""For which C of a whole path the label of a new row is proven: between the steps, too, and without the training data.

At every C the optimum lies within ``sqrt(2 gap)`` of the interpolated weights, as the objective is strongly convex; the
bound on the gap is that of :mod:`screenpath.problem.between`.
"""

from __future__ import annotations

from itertools import pairwise
from math import floor, log, log10

import numpy as np

from screenpath.data.files.cells import completed
from screenpath.data.words.labels import label_text
from screenpath.engine.interpolated import is_linear, is_solved, solved
from screenpath.errors import UsageError
from screenpath.inputs.run_data import preparation_of
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import gamma
from screenpath.problem.between import Between, open_shares
from screenpath.regions.geometry import ROUNDING

DIGITS = 6  # of the ends of intervals, rounded inwards
ROWS = 1 << 14  # at once


class StableLabels:
    """Intervals of C on which the label of each of the m rows is proven, for a path of SVMs in a run folder.

    Parameters
    ----------
    path : StoredPath
        Of two labels, without a kernel and without a free intercept.
    X : csr_array of shape (m, d)
        New rows in the units of the data, with the columns that the path has.

    Attributes
    ----------
    low, high : float
        Ends of the path.
    intervals : list of list
        For each row ``(label, low, high)`` in the order of C.
    """

    def __init__(self, path, X):
        run = path.run
        if not is_linear(path) or run.labels is None or run.classes or "threshold" in run.record["columns"]:
            what = "svm of two labels, without a kernel and without a chosen threshold"
            raise UsageError(f"`stable` is for {what}", "leave out `stable`")
        if run.record["options"].get("intercept") == "free":
            hint = "compute it with `intercept=none` or `bias=1`"
            raise UsageError("`stable` needs a run without a free intercept", hint)
        steps = sorted(filter(is_solved, path.steps), key=lambda step: step.C)
        if len(steps) < 2:
            raise UsageError(f"`stable` needs a path: {run.path} has one step", "leave out `stable`")
        self.low, self.high = steps[0].C, steps[-1].C
        known = [(step, solved(path, step)) for step in steps]
        self.intervals: list[list] = []
        for start in range(0, X.shape[0], ROWS):
            self.intervals += self._of(path, known, X[start : start + ROWS])

    def __repr__(self) -> str:
        return f"<StableLabels: {self.statement}>"

    def _of(self, path, steps: list[tuple], X) -> list[list]:
        """Return the intervals of some rows."""
        run, p = path.run, preparation_of(path.run)
        sizes = abs(p.apply(X) if p.kind == "l2" else completed(X, p.fill))
        norms, shift = self._norms(run, p, X, sizes), np.abs(0.0 if p.shift is None else p.shift)
        ends: list[tuple] = []
        for step, known in steps:
            weights, intercept = path._solution(step)
            lost = sizes @ np.abs(weights) + abs(intercept) + 2.0 * float((np.abs(weights) * shift).sum())
            ends.append((known, path._forms(X, step), 4.0 * gamma(2 * weights.size + 16) * lost))
        undecided: dict[int, list] = {-1: [], 1: []}
        for (first, p0, lost0), (second, p1, lost1) in pairwise(ends):
            between, moved = Between.of(first, second), norms * max(first.off, second.off)
            squares = 2.0 * first.gap, 2.0 * second.gap, 2.0 * between.bend
            for side, open_ones in undecided.items():
                start, end = open_shares(side * p0 - lost0 - moved, side * p1 - lost1 - moved, norms, *squares)
                C = [np.where(at == 1.0, second.C, first.C + at * (second.C - first.C)) for at in (start, end)]
                open_ones.append(np.where(start <= end, C, np.inf))
        whole = np.array([[a.C, b.C] for (a, *_), (b, *_) in pairwise(ends)])[:, :, None]
        found: list[list] = [[] for _ in range(norms.size)]
        for open_ones, label in zip(undecided.values(), run.sides, strict=True):
            unproven = np.array(open_ones)  # (segments, 2, m)
            for k in np.flatnonzero((unproven != whole).any(axis=(0, 1))):  # of most rows one side alone
                some = unproven[:, :, k]
                found[k] += self._proven(label_text(label), some[np.isfinite(some[:, 0])])
        for intervals in found:
            intervals.sort(key=lambda one: one[1])
        return found

    @staticmethod
    def _norms(run, p, X, sizes) -> np.ndarray:
        """Return upper bounds of the norms of the rows as the model sees them, the constant feature included."""
        bias = run.record["preparation"].get("bias") or 0.0
        X = p.apply(X.toarray() if p.shift is not None else X)
        scale = 1.0 if p.scale is None else p.scale
        moved = 0.0 if p.shift is None else np.linalg.norm((sizes.toarray() + np.abs(p.shift)) / scale, axis=1)
        squares = np.asarray((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1)).ravel() + bias * bias
        return (np.sqrt(squares) + gamma(4) * moved) * (1.0 + ROUNDING)

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


def _rounded(C: float, up: bool) -> float:
    """Return a number of ``DIGITS`` digits, at least ``C`` or at most."""
    unit = 10.0 ** (floor(log10(C)) + 1 - DIGITS)
    return float(f"{(np.ceil if up else np.floor)(C / unit) * unit:.{DIGITS}g}")
