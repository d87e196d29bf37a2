r"""Bounds on the cross-validation error of the linear SVM over *every* C of a range (Shibagaki et al. 2015).

From a pair (w, theta) certified at any C0, the optimum at C lies in the ball with centre ``(w + C t)/2``,
``t = G'theta``, and squared radius ``r^2 = ||(w + C t)/2||^2 + C (xi - ell)`` (the gap-inflated ball of
:mod:`screenpath.rules.box`). A held-out ``x`` is certainly positive at every C with ``x.(w + C t)/2 > r(C) ||x||``. Between
two neighbours of the grid, a sample that is certainly wrong by either of them is an error; what is left undecided is one
interval of C a sample, and the heaviest pile of such intervals over one C, found by sweeping their sorted end points, is
what the bound has to give away.

Rounding: ``r^2`` is enlarged by the bound on the error of ``xi - ell`` and by ``GAP_ROUNDING``, every product by
``ROUNDING``; all of it errs towards "undecided". Errors are counted in whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from screenpath.geometry import GAP_ROUNDING, ROUNDING

SHORTEN = 1e-9  # of every interval, for the rounding of its end


@dataclass(frozen=True)
class Line:
    """What a certified pair says about the held-out samples at any C.

    Parameters
    ----------
    C : float
        Parameter of the pair.
    at_zero, slope : ndarray of shape (m,)
        ``x.w`` and ``x.t``: the centre's product is ``(x.w + C x.t)/2``.
    radius : tuple (float, float, float)
        ``r(C)^2 = radius[0] + radius[1] C + radius[2] C^2``, whose root is convex for C > 0.
    norm_w, norm_t : float
        For the rounding of the products.
    """

    C: float
    at_zero: np.ndarray
    slope: np.ndarray
    radius: tuple
    norm_w: float
    norm_t: float


@dataclass(frozen=True)
class HeldOut:
    """Held-out samples of one fold and the lines of its certified solutions.

    Parameters
    ----------
    signs : ndarray of shape (m,)
    norms : ndarray of shape (m,)
        Of the prepared rows, bias included, enlarged for rounding.
    lines : list of Line
        In the order of C.
    """

    signs: np.ndarray
    norms: np.ndarray
    lines: list

    @classmethod
    def of(cls, X, signs, lines) -> HeldOut:
        """Return the record of prepared rows ``X`` of shape (m, d)."""
        squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
        norms = np.sqrt(np.asarray(squares, dtype=np.float64).ravel()) * (1.0 + ROUNDING)
        return cls(np.asarray(signs, dtype=np.float64), norms, lines)

    def errors(self, line: Line) -> int:
        """Return how many samples the solution itself gets wrong; a product of 0 counts as negative."""
        return int(np.count_nonzero((line.at_zero > 0.0) != (self.signs > 0.0)))


def reference_line(certificate, X, products) -> Line:
    """Return the line of a certificate of the box model.

    Parameters
    ----------
    certificate : models.box.Certificate
    X : ndarray or csr_array of shape (m, d)
        Prepared held-out rows.
    products : ndarray of shape (m,)
        ``X w``.
    """
    w_sq, t_sq = certificate.point.sqnorm, certificate.total_sq
    constant = (0.25 + GAP_ROUNDING) * w_sq
    linear = 0.5 * certificate.inner + certificate.xi - certificate.ell + certificate.error
    quadratic = (0.25 + GAP_ROUNDING) * t_sq
    radius = convex(constant, linear, quadratic)
    return Line(certificate.C, products, X @ certificate.total, radius, math.sqrt(w_sq), math.sqrt(t_sq))


def convex(a: float, b: float, c: float) -> tuple:
    """Return a quadratic not below ``a + b C + c C^2`` for C > 0 whose square root is convex there.

    The root is convex where the discriminant is not positive. With ``b < 0`` it can be positive by rounding only, since
    a squared radius is not negative: ``a`` is raised. With ``b > 0`` both roots are negative: ``c`` is raised.
    """
    if b * b <= 4.0 * a * c:
        return a, b, c
    if b < 0.0 and c > 0.0:
        return b * b / (4.0 * c) * (1.0 + ROUNDING), b, c
    if b > 0.0 and a > 0.0:
        return a, b, b * b / (4.0 * a) * (1.0 + ROUNDING)
    return a, b, math.inf  # w = 0 or t = 0 away from the optimum: nothing is certain


def reach(line: Line, side: np.ndarray, norms: np.ndarray, end: float) -> np.ndarray:
    """Return how far towards ``end`` each sample is certainly on the given side.

    Parameters
    ----------
    line : Line
    side : ndarray of shape (m,)
        -1 or +1: the sign of ``x.w*`` that is to be certain.
    norms : ndarray of shape (m,)
    end : float
        The neighbouring C.

    Returns
    -------
    ndarray of shape (m,)
        Certain from ``line.C`` up to this C; infinite (with the sign of ``end - line.C``) where it is certain at
        ``end`` too, and ``line.C`` where nothing is certain.
    """
    a, b, c = line.radius
    out = np.full(norms.size, line.C)
    if not math.isfinite(c):
        return out
    p = side * line.at_zero - 2.0 * ROUNDING * norms * line.norm_w
    q = side * line.slope - 2.0 * ROUNDING * norms * line.norm_t

    def certain(C, p, q, norms):  # by how much is concave in C: two certain points vouch for all between
        return 0.5 * (p + C * q) > norms * np.sqrt(np.maximum(a + C * (b + C * c), 0.0)) * (1.0 + ROUNDING)

    here = certain(line.C, p, q, norms)
    there = here & certain(end, p, q, norms)
    out[there] = math.copysign(math.inf, end - line.C)
    some = np.flatnonzero(here & ~there)
    p, q, norms = p[some], q[some], norms[some]
    # The crossing is a root of A C^2 + B C + D, the difference of the squares.
    A, B, D = 0.25 * q * q - norms**2 * c, 0.5 * p * q - norms**2 * b, 0.25 * p * p - norms**2 * a
    with np.errstate(all="ignore"):
        half = -0.5 * (B + np.copysign(np.sqrt(np.maximum(B * B - 4.0 * A * D, 0.0)), B))
        roots = np.stack([half / A, D / half])
    inside = (roots >= min(line.C, end)) & (roots <= max(line.C, end))
    distance = np.where(inside, np.abs(roots - line.C), 0.0).max(axis=0)
    stop = line.C + math.copysign(1.0 - SHORTEN, end - line.C) * distance
    out[some] = np.where(certain(stop, p, q, norms), stop, line.C)
    return out


def heaviest(starts, ends, weights, otherwise: float) -> tuple[int, float]:
    """Return the largest total weight of closed intervals with a point in common, and the middle of such points.

    Parameters
    ----------
    starts, ends : ndarray of shape (m,)
        ``starts <= ends``.
    weights : ndarray of int or object of shape (m,)
    otherwise : float
        Point to return where there are no intervals.

    Returns
    -------
    weight : int
    point : float
    """
    if starts.size == 0:
        return 0, otherwise
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
    """Bounds between two neighbours of the grid, in units of ``1 / Certified.denominator``.

    Parameters
    ----------
    low, high : float
        Ends in C.
    lower, upper : int
        Bounds on the error that hold at every C of the segment.
    weakest : float
        A C at which the lower bound is reached.
    """

    low: float
    high: float
    lower: int
    upper: int
    weakest: float


class Certified:
    """The bounds over all segments of a grid; a finer grid is worked out only where it is new.

    A held-out sample of a fold of size ``m`` weighs ``L/m``, ``L`` the least common multiple of all sizes, and the mean
    over the folds divides by ``denominator = L x folds``.

    Parameters
    ----------
    folds : list of HeldOut
        With the same values of C each, two or more.
    """

    def __init__(self, folds: list[HeldOut]):
        sizes = [fold.signs.size for fold in folds]
        whole = math.lcm(*sizes)
        self.denominator = whole * len(sizes)
        # Python's own integers where 64 bits would not do: slower, and as exact.
        self._kind = np.int64 if self.denominator < 2**62 else object
        self._weights = [whole // size for size in sizes]
        self._known: dict = {}
        self.update(folds)

    def update(self, folds: list[HeldOut]) -> None:
        """Take in the lines of a finer grid."""
        self._folds = folds
        self.grid = [line.C for line in folds[0].lines]
        pairs = list(zip(folds, self._weights, strict=True))
        self.errors = [sum(s * fold.errors(fold.lines[k]) for fold, s in pairs) for k in range(len(self.grid))]
        self.segments = [self._segment(k) for k in range(len(self.grid) - 1)]

    @property
    def best(self) -> int:
        """Return the step with the least error found; of equal ones the first."""
        return self.errors.index(min(self.errors))

    @property
    def lower(self) -> int:
        """Return the lower bound over the whole range."""
        return min(segment.lower for segment in self.segments)

    @property
    def difference(self) -> float:
        """Return by how much any C of the range could be better than the best one found."""
        return max(self.errors[self.best] - self.lower, 0) / self.denominator

    def weak(self, target: float) -> list[Segment]:
        """Return the segments whose lower bound is more than ``target`` below the best error found, weakest first."""
        limit = self.errors[self.best] - target * self.denominator
        return sorted((s for s in self.segments if s.lower < limit), key=lambda s: (s.lower, s.low))

    def _segment(self, k: int) -> Segment:
        ends = self.grid[k], self.grid[k + 1]
        if ends not in self._known:
            lower, weakest = self._undecided(k, *ends, wrong=True)
            upper, _ = self._undecided(k, *ends, wrong=False)
            self._known[ends] = Segment(*ends, self.denominator - lower, upper, weakest)
        return self._known[ends]

    def _undecided(self, k: int, low: float, high: float, wrong: bool) -> tuple[int, float]:
        """Return the largest weight of samples over one C that are not certainly wrong (or right), and such a C."""
        starts, ends, weights = [], [], []
        for fold, weight in zip(self._folds, self._weights, strict=True):
            side = -fold.signs if wrong else fold.signs
            start = reach(fold.lines[k], side, fold.norms, high)
            end = reach(fold.lines[k + 1], side, fold.norms, low)
            left = np.flatnonzero(start <= end)  # a closed interval of C is undecided
            starts.append(start[left])
            ends.append(end[left])
            weights.append(np.full(left.size, weight, dtype=self._kind))
        return heaviest(np.concatenate(starts), np.concatenate(ends), np.concatenate(weights), 0.5 * (low + high))


def new_points(certified: Certified, target: float, limit: int) -> list[float]:
    """Return where the grid should be finer: one point in each of the weakest segments.

    The point at which the bound is weakest, kept off the ends of its segment by a quarter of its width in log C.

    Parameters
    ----------
    certified : Certified
    target : float
    limit : int
        How many at most.

    Returns
    -------
    list of float
        Increasing; empty where no segment is weak or can be divided.
    """
    found = []
    for segment in certified.weak(target):
        ratio = segment.high / segment.low
        point = min(max(segment.weakest, segment.low * ratio**0.25), segment.high / ratio**0.25)
        if ratio > 1.0 + 1e-9 and len(found) < limit:
            found.append(float(point))
    return sorted(found)
