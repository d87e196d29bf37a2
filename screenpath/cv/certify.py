r"""Bounds on the cross-validation error of the SVM, linear or behind a kernel, over *every* C of a range.

The idea is that of Shibagaki et al. (2015): certified solutions at some C decide held-out samples for whole intervals
of C, and the certain errors are a lower bound on the cross-validation error at every C.

Between two neighbours ``C0 < C1`` of the grid, ``C = (1 - s) C0 + s C1``, the certified pairs are interpolated: the
primal points and the dual ones, times C, linearly in ``s``. That is feasible at every C between, and optimal where the
path has no kink between them. The gap-inflated ball of this pair (:func:`screenpath.screen.box.pair_radius`) has
the centre ``c(s) = (1 - s) c0 + s c1``, ``c_k = (w_k + C_k G'theta_k)/2``, and, the loss ``xi`` being convex in w, a
squared radius of at most::

    r(s)^2 = (1 - s) r0^2 + s r1^2 + s (1 - s) K,    K = (C1 - C0) (xi0 - xi1) - ||c1 - c0||^2,

with ``r_k`` the radius at ``C_k`` itself. With K raised to at least 0, ``x.c(s) - ||x|| r(s)`` is convex in ``s``. So
a held-out sample that is certainly wrong at both ends is undecided on one closed interval between them, if on any,
given by the roots of a quadratic, and the heaviest pile of such intervals over one C, found by sweeping their sorted
end points, is what the bound has to give away. Nothing is sampled.

Rounding: radii and products carry the slack of :mod:`screenpath.regions.geometry`, and so do the quadratics; all of it
errs towards "undecided". Errors are counted in whole numbers, and so are weights: :func:`whole_weights`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from fractions import Fraction

import numpy as np

from screenpath.numbers import sparse as sp
from screenpath.problem.between import open_shares
from screenpath.regions.geometry import GAP_ROUNDING, ROUNDING, KernelPoint
from screenpath.regions.lever import Distances, RangeLevers, pair_levers
from screenpath.screen.box import pair_radius

LARGEST = 2**62  # below it, sums of int64 are exact


@dataclass(frozen=True)
class Line:
    """What a certified pair says about the held-out samples; 8 (m + d) bytes, behind a kernel 8 (m + 2 n)."""

    C: float
    # ``(w + C G'theta)/2``, shape (d,); behind a kernel its dual coefficients, shape (n,)
    center: np.ndarray
    # what the centre's products with another centre are formed with: itself, behind a kernel its products with the
    # training rows
    trained: np.ndarray
    radius_sq: float  # the optimum at C is no further from the centre, rounding included
    xi: float  # xi, xi_error: sum of the training losses of ``w``, and a bound on its rounding error
    xi_error: float
    products: np.ndarray  # shape (m,): held-out rows times the centre
    extent: float  # norm by which the rounding of the products is bounded
    errors: int  # weight of the held-out samples that ``w`` gets wrong; a product of 0 counts as negative

    def certain_errors(self, fold: HeldOut) -> int:
        """Return how many samples, by weight, the optimum at this C certainly gets wrong."""
        p = fold.margins(self, -fold.signs)
        return fold.weight(p > fold.norms * math.sqrt(self.radius_sq) * (1.0 + ROUNDING))

    def undecided(self, fold: HeldOut, second: Line, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the closed intervals of ``s`` in [0, 1] on which samples are not certainly on the given side.

        ``second`` is the next line; ``side``, shape (m,), is -1 or +1: the sign of ``x.w*`` that is to be certain.
        Start and end have the shape (m,); ``start > end`` where a sample is certain for all ``s``.
        """
        p0, p1 = fold.margins(self, side), fold.margins(second, side)
        return open_shares(p0, p1, fold.norms, self.radius_sq, second.radius_sq, bend(self, second))


@dataclass(frozen=True)
class HeldOut:
    """Held-out samples of one fold and the lines of its certified solutions."""

    signs: np.ndarray  # shape (m,)
    norms: np.ndarray  # shape (m,): of the prepared rows, bias included, enlarged for rounding
    weights: np.ndarray  # ndarray of int or object of shape (m,): how often each sample counts, in whole numbers
    lines: list  # of Line, or FreeLine with a free intercept, in the order of C

    @classmethod
    def of(cls, X, signs, lines, weights=None) -> HeldOut:
        """Return the record of prepared rows ``X`` of shape (m, d); ``weights`` are those of the samples, 1 if None."""
        norms = X.norms if hasattr(X, "norms") else np.sqrt(sp.row_squares(X))  # those behind a kernel know theirs
        signs = np.asarray(signs, dtype=np.float64)
        whole = np.ones(signs.size, dtype=np.int64) if weights is None else whole_weights(weights)
        return cls(signs, norms * (1.0 + ROUNDING), whole, lines)

    @property
    def total(self) -> int:
        """Return how many samples there are, by weight."""
        return int(self.weights.sum())

    def weight(self, chosen) -> int:
        """Return how many samples are chosen, by weight."""
        return int(self.weights[chosen].sum())

    def margins(self, line: Line, side: np.ndarray) -> np.ndarray:
        """Return ``side x.c``, lowered by its rounding."""
        return side * line.products - ROUNDING * self.norms * line.extent


def whole_weights(weights) -> np.ndarray:
    """Return weights as whole numbers in the same proportion, exactly: floating-point numbers are fractions.

    They are int64 where their sum fits, else Python's own integers.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if np.all(weights == np.floor(weights)) and weights.sum() < LARGEST:  # as most are
        return weights.astype(np.int64) // max(np.gcd.reduce(weights.astype(np.int64)), 1)
    ratios = [float(weight).as_integer_ratio() for weight in weights]
    common = max((below for _, below in ratios), default=1)  # powers of 2, each divides the largest
    whole = [above * (common // below) for above, below in ratios]
    shared = math.gcd(*whole) or 1
    whole = [number // shared for number in whole]
    return np.array(whole, dtype=np.int64 if sum(whole) < LARGEST else object)


def certified_line(certificate, X, products, fold: HeldOut, model=None) -> Line | FreeLine:
    """Return the line of a certificate of the box model, or of the kernel model, whose ``w`` is that of its dual point.

    ``X`` are the prepared held-out rows of the fold, shape (m, d), or HeldOutRows; ``products``, shape (m,), is ``X
    w``; and ``model`` is that of the certificate where this has a free intercept.
    """
    if certificate.intercept is not None:
        return free_line(certificate, model, X, products, fold)
    C, w, xi = certificate.C, certificate.point.vector, certificate.xi
    wrong = fold.weight((products > 0.0) != (fold.signs > 0.0))
    radius = pair_radius(certificate, C)
    extent = 0.5 * (math.sqrt(certificate.point.sqnorm) + C * math.sqrt(certificate.total_sq))
    if isinstance(certificate.point, KernelPoint):
        # Sums over the training rows: their rounding is relative to what they are formed from.
        extent += C * math.sqrt(certificate.total_error / GAP_ROUNDING)
        return Line(C, w, certificate.point.products, radius * radius, xi, certificate.error, products, extent, wrong)
    center = 0.5 * (w + C * certificate.total)
    return Line(C, center, center, radius * radius, xi, certificate.error, X @ center, extent, wrong)


def bend(first: Line, second: Line) -> float:
    """Return ``K``, at least 0: what the squared radius gains in the middle, times 4."""
    step = second.C - first.C
    moved_sq = float((second.center - first.center) @ (second.trained - first.trained))
    rounding = step * (first.xi_error + second.xi_error) + 4.0 * GAP_ROUNDING * (first.extent**2 + second.extent**2)
    return max(step * (first.xi - second.xi) - moved_sq + rounding, 0.0)


def heaviest(starts, ends, weights) -> tuple[int, float]:
    """Return the largest total weight of closed intervals with a point in common, and the middle of such points.

    ``starts <= ends`` and ``weights`` (int or object) have the shape (m,); the intervals lie within [0, 1].
    """
    if starts.size == 0:
        return 0, 0.5
    by_start, by_end = np.argsort(starts, kind="stable"), np.argsort(ends, kind="stable")
    at, sorted_ends = starts[by_start], ends[by_end]
    opened = np.cumsum(weights[by_start])
    closed = np.concatenate([np.zeros(1, dtype=weights.dtype), np.cumsum(weights[by_end])])
    # The heaviest point is some start; of equal starts the last has counted them all.
    weight = opened - closed[np.searchsorted(sorted_ends, at, side="left")]
    top = int(np.argmax(weight))
    until = sorted_ends[np.searchsorted(sorted_ends, at[top], side="left")]
    return int(weight[top]), float(0.5 * (at[top] + until))


@dataclass(frozen=True)
class Segment:
    """Bounds between two neighbours of the grid, in units of ``1 / ErrorBounds.denominator``."""

    low: float  # low, high: ends in C
    high: float
    lower: int  # lower, upper: bounds on the error that hold at every C of the segment
    upper: int
    weakest: float  # a C at which the lower bound is reached


class ErrorBounds:
    """The bounds over all segments of a grid; a finer grid is worked out only where it is new.

    A held-out sample of weight ``s`` in a fold whose weights sum up to ``m`` weighs ``s L/m``, ``L`` the least common
    multiple of all sums, and the mean over the folds divides by ``denominator = L x folds``. The folds, two or more,
    have the same values of C.
    """

    def __init__(self, folds: list[HeldOut]):
        sizes = [fold.total for fold in folds]
        whole = math.lcm(*sizes)
        self.denominator = whole * len(sizes)
        # Python's own integers where 64 bits would not do: slower, and as exact.
        self._kind = np.int64 if self.denominator < LARGEST else object
        self._weights = [whole // size for size in sizes]
        self._known: dict = {}
        self.update(folds)

    def update(self, folds: list[HeldOut], again=()) -> None:
        """Take in the lines of a finer grid, and those of the values of C that were solved again."""
        self._folds = folds
        self._known = {ends: segment for ends, segment in self._known.items() if not set(ends) & set(again)}
        self.grid = [line.C for line in folds[0].lines]
        self.errors = [self._total(k, lambda fold, line: line.errors) for k in range(len(self.grid))]
        self.segments = [self._segment(k) for k in range(len(self.grid) - 1)]

    @property
    def best(self) -> int:
        """Return the step with the least error found; of equal ones the first."""
        return self.errors.index(min(self.errors))

    @property
    def lower(self) -> int:
        return min(segment.lower for segment in self.segments)

    @property
    def difference(self) -> float:
        """Return by how much any C of the range could be better than the best one found."""
        return max(self.errors[self.best] - self.lower, 0) / self.denominator

    def record(self) -> dict:
        """Return the range of C, the best error found in it, and what no C of it falls below."""
        return {
            "cmin": self.grid[0], "cmax": self.grid[-1], "best_error": self.errors[self.best] / self.denominator,
            "best_C": self.grid[self.best], "lower_bound": self.lower / self.denominator, "difference": self.difference,
        }  # fmt: skip

    def weak(self, target: float) -> list[Segment]:
        """Return the segments whose lower bound is more than ``target`` below the best error found, weakest first."""
        limit = self._limit(target)
        return sorted((s for s in self.segments if s.lower < limit), key=lambda s: (s.lower, s.low))

    def loose(self, target: float) -> list[float]:
        """Return the values of C whose own solutions are too inaccurate to certify the target there."""
        limit = self._limit(target)
        certain = [self._total(k, lambda fold, line: line.certain_errors(fold)) for k in range(len(self.grid))]
        return [C for C, errors in zip(self.grid, certain, strict=True) if errors < limit]

    def _limit(self, target: float) -> Fraction:
        return self.errors[self.best] - Fraction(target) * self.denominator

    def _total(self, k: int, count) -> int:
        return sum(s * count(fold, fold.lines[k]) for fold, s in zip(self._folds, self._weights, strict=True))

    def _segment(self, k: int) -> Segment:
        low, high = self.grid[k], self.grid[k + 1]
        if (low, high) not in self._known:
            lower, s = self._heaviest(k, wrong=True)
            upper, _ = self._heaviest(k, wrong=False)
            self._known[low, high] = Segment(low, high, self.denominator - lower, upper, (1.0 - s) * low + s * high)
        return self._known[low, high]

    def _heaviest(self, k: int, wrong: bool) -> tuple[int, float]:
        """Return the largest weight over one ``s`` of samples not certainly wrong (or right), and such an s."""
        starts, ends, weights = [], [], []
        for fold, weight in zip(self._folds, self._weights, strict=True):
            side = -fold.signs if wrong else fold.signs
            start, end = fold.lines[k].undecided(fold, fold.lines[k + 1], side)
            left = np.flatnonzero(start <= end)
            starts.append(start[left])
            ends.append(end[left])
            weights.append(weight * fold.weights[left].astype(self._kind))
        return heaviest(np.concatenate(starts), np.concatenate(ends), np.concatenate(weights))


AHEAD = 1.1  # the next C of a common grid, over the pair's
PIECES = 4  # into which the range between two grid points is divided


@dataclass(frozen=True)
class FreeLine(RangeLevers):
    """What a pair says about ``m`` held-out samples with the help of ``k`` levers; see :class:`RangeLevers`."""

    apart: np.ndarray  # shape (k, m): at least the distance of each sample from a lever's centre
    errors: int  # weight of the samples that ``w`` and its intercept get wrong; a linear form of 0 counts as negative
    # arrays of a certificate: of each lever, where its rows end, which they are, and their weights
    made: dict = field(default_factory=dict)

    def certain(self, fold, low: float, high: float, side: np.ndarray) -> np.ndarray:
        """Tell of each sample whether ``x.w* + b*`` has the sign ``side`` for all C from ``low`` to ``high``."""
        found = np.zeros(side.size, dtype=bool)
        for k in range(self.levers.shape[1]):
            rows = np.flatnonzero((side == self.sign(k)) & ~found)
            if self.levers[2, k] > 0.0 and rows.size:
                found[rows] = self.shows(k, rows, self.apart[k, rows], fold.norms[rows], low, high)
        return found

    def certain_errors(self, fold) -> int:
        """Return how many samples, by weight, the optimum at this C certainly gets wrong."""
        return fold.weight(self.certain(fold, self.C, self.C, -fold.signs))

    def undecided(self, fold, second: FreeLine, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for the way to the next line, what :meth:`Line.undecided` does."""
        step = second.C - self.C
        cuts = self.C * (second.C / self.C) ** np.linspace(0.0, 1.0, PIECES + 1)
        cuts[-1] = second.C
        start, end = np.ones(side.size), np.zeros(side.size)
        for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            left = ~(self.certain(fold, low, high, side) | second.certain(fold, low, high, side))
            start[left] = np.minimum(start[left], max((low - self.C) / step, 0.0))
            end[left] = np.maximum(end[left], min((high - self.C) / step, 1.0))
        return start, end

    def arrays(self) -> dict:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("C", "errors", "made")}


def free_line(certificate, model, X, products: np.ndarray, fold) -> FreeLine:
    """Return the line of a certificate with a free intercept, of ``model`` on the training part.

    ``X`` are the prepared held-out rows, shape (m, d + 1), or HeldOutRows; behind those of a linear model stands the
    constant of the intercept. ``products``, shape (m,), are their linear forms, intercept included.
    """
    C, point = certificate.C, certificate.point
    wrong = fold.weight((products > 0.0) != (fold.signs > 0.0))
    ready = pair_levers(certificate, model, AHEAD * C)
    if isinstance(point, KernelPoint):
        forms = np.stack([products - certificate.intercept, (products - certificate.intercept) / C])
        distances = Distances(model, np.square(X.norms), lambda center: X @ center, 2.0 * X.blocks.error + ROUNDING)
    else:
        X = X[:, :-1]
        forms = np.stack([X @ point.vector, X @ certificate.total])
        distances = Distances(model, sp.row_squares(X), lambda center: X @ center, model.rounding)
    apart = [
        distances.of(*rows) if carried > 0.0 else np.zeros(products.size)
        for rows, carried in zip(ready.rows, ready.levers[2], strict=True)
    ]
    used = [rows for rows, carried in zip(ready.rows, ready.levers[2], strict=True) if carried > 0.0]
    made = {
        "lever_ends": np.cumsum([rows.size for rows, _ in used], dtype=np.int64),
        "lever_rows": np.concatenate([np.empty(0, dtype=np.int64), *(rows for rows, _ in used)]),
        "lever_weights": np.concatenate([np.empty(0), *(weights for _, weights in used)]),
    }
    return FreeLine(C, ready.pair, forms, ready.levers, np.array(apart), wrong, made)
