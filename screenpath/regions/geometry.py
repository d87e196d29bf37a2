"""Regions that provably contain an optimum, and the support functions that every rule shares.

A rule answers with a :class:`Ball`, :class:`Dome` or :class:`Lens`; a sample (or feature) ``v`` is decided by the
smallest and largest value of ``v.x`` over the region. No data lives here: the products ``v.c`` of all samples
with a centre arrive as arrays, so the same code serves dense, sparse, kernel and distributed rows. The methods of
regions are those of :class:`screenpath.problem.base.Region`.

Objects made at every step, here and elsewhere, never change but are not frozen: setting a frozen field takes four
times as long, and a path over little data makes a hundred of them per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from screenpath.kernels.problem import box as kernels
from screenpath.kernels.rows import gram
from screenpath.kernels.screen.dome import dome_bounds
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma

# The one place for rounding: every comparison that screens keeps this slack, relative to the magnitudes compared,
ROUNDING = 1e-12
# and every squared radius made from a gap is enlarged by this much of the summed magnitudes of the gap's terms.
GAP_ROUNDING = 1e-14


@dataclass(slots=True)
class Point:
    """A vector together with its products with every row, where they are known."""

    vector: np.ndarray  # shape (d,): the point itself (for a kernel model its dual coefficients)
    # shape (n,): ``v_i . vector`` for every row ``v_i``; None where nobody has computed them yet
    products: Any
    sqnorm: float  # squared norm of the vector in the space of the rows

    def scaled(self, factor: float) -> Point:
        """Return ``factor * self``; products follow without touching the data."""
        products = None if self.products is None else factor * self.products
        return Point(factor * self.vector, products, factor * factor * self.sqnorm)

    def distance(self, other: Point) -> float:
        return float(np.linalg.norm(self.vector - other.vector))

    def inner(self, other: Point) -> tuple[float, float]:
        """Return the inner product with another point, and its error beyond a tiny part of both norms."""
        return float(self.vector @ other.vector), 0.0


@dataclass(slots=True)
class KernelPoint(Point):
    """A combination of the rows, given by its dual coefficients: ``sum_i vector_i v_i``."""

    products: np.ndarray  # always known, ``Q vector`` with ``Q_ij = v_i.v_j``; they carry the inner product
    spread: float  # at least ``sum_i |vector_i| ||v_i||``: what the rounding of a product is relative to
    error: float  # a product ``v_i . vector`` is off by at most this times ``||v_i||``

    def scaled(self, factor: float) -> KernelPoint:
        products, spread = factor * self.products, abs(factor) * self.spread * OUTWARD
        error = (abs(factor) * self.error + 4.0 * UNIT * spread) * OUTWARD
        return KernelPoint(factor * self.vector, products, factor * factor * self.sqnorm, spread, error)

    def distance(self, other: KernelPoint) -> float:  # type: ignore[override]  # points of one space alone meet
        """Return the distance to another point, ``sqrt((a - b)'Q(a - b))``, rounded down.

        The balls around two points that are nearer to each other have more in common: the ball around ``m`` of the way
        has the squared radius ``(1 - m) r1^2 + m r2^2 - m (1 - m) ||a - b||^2``.
        """
        return sqrt(max(self.apart(other)[0], 0.0))

    def apart(self, other: KernelPoint) -> tuple[float, float]:
        """Return bounds of the squared distance to another point."""
        square, terms = kernels.apart_squared(self.vector, self.products, other.vector, other.products)
        reach = self.spread + other.spread
        lost = gamma(self.vector.size + 8) * terms + reach * (self.error + other.error + 8.0 * UNIT * reach)
        return square - lost * OUTWARD, max(square + lost * OUTWARD, 0.0)

    def inner(self, other: KernelPoint) -> tuple[float, float]:  # type: ignore[override]  # as there
        value, terms = gram.inner(self.vector, other.products)
        return value, (self.spread * other.error + gamma(self.vector.size + 8) * terms) * OUTWARD


def between(a: Point, b: Point, share: float) -> Point:
    """Return ``share a + (1 - share) b``, whose products with the rows are known; ``sqnorm`` is a bound."""
    rest = 1.0 - share
    vector, products = share * a.vector + rest * b.vector, share * a.products + rest * b.products
    sqnorm = (share * sqrt(a.sqnorm) + rest * sqrt(b.sqnorm)) ** 2
    if isinstance(a, KernelPoint) and isinstance(b, KernelPoint):
        spread = (share * a.spread + rest * b.spread) * OUTWARD
        error = (share * a.error + rest * b.error + 4.0 * UNIT * spread) * OUTWARD
        return KernelPoint(vector, products, sqnorm, spread, error)
    return Point(vector, products, sqnorm)


@dataclass(slots=True)
class Ball:
    """``{x : ||x - c|| <= r}``."""

    center: Point
    radius: float

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.center,)

    @property
    def extent(self) -> float:
        return sqrt(self.center.sqnorm) + self.radius

    def bounds(self, products, norms, sizes=None) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest ``v.x`` over the region for every row, two arrays of shape (n,).

        ``products`` has ``v.p`` for each point of :attr:`points`, ``norms`` has ``||v||`` (within the region's
        subspace, if it has one), and ``sizes`` the norms that rounding is relative to, where they are others.
        """
        reach = self.radius * norms
        return products[0] - reach, products[0] + reach

    def decide(self, products, norms, c, extent, rounding: float, status) -> tuple[int, int]:
        """Write to ``status`` on which side of ``c`` the whole region is for every row; return ``n_R, n_L``.

        See :meth:`bounds` and ``kernels.box_decide``. ``extent(region)`` is the size to which ``rounding``, the error
        of a product with a row of norm 1, is relative.
        """
        size = extent(self)
        return kernels.box_decide_ball(products[0], 1.0, norms, self.radius, size, c, rounding, status, 0, c.size)


@dataclass(slots=True)
class Dome:
    """``{x : ||x - c|| <= r, a.(x - c) <= delta}`` with ``||a|| = 1``."""

    center: Point
    radius: float
    normal: Point  # unit vector ``a``
    # ``delta``, in the units of the radius. ``delta >= r`` is the ball; ``delta < -r`` would be empty, which only
    # rounding can produce: the nearest non-empty dome (one point) is used
    offset: float
    axis: float = ROUNDING  # a product of the normal with a row of norm 1 is off by at most this

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.center, self.normal)

    @property
    def extent(self) -> float:
        return sqrt(self.center.sqnorm) + self.radius

    def bounds(self, products, norms, sizes=None) -> tuple[np.ndarray, np.ndarray]:
        off = self.axis * (norms if sizes is None else sizes)
        return dome_bounds(*products, norms, self.radius, self.offset, off)

    def decide(self, products, norms, c, extent, rounding, status) -> tuple[int, int]:
        lower, upper = self.bounds(products, norms)
        return kernels.box_decide(lower, upper, norms, extent(self), c, rounding, status)


@dataclass(slots=True)
class Lens:
    """Intersection of two balls."""

    # first, second: where their squared radii carry a slack of ``GAP_ROUNDING`` of the squared norms, as all rules give
    # them, the rounding of :func:`lens_support` stays below that slack, thin lenses included
    first: Ball
    second: Ball

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.first.center, self.second.center)

    @property
    def extent(self) -> float:
        return max(self.first.extent, self.second.extent)

    @property
    def distance(self) -> float:
        """Return the distance of the centres."""
        return self.first.center.distance(self.second.center)

    def bounds(self, products, norms, sizes=None) -> tuple[np.ndarray, np.ndarray]:
        return self._bounds(products, norms, self.extent)

    def _bounds(self, products, norms, extent: float) -> tuple[np.ndarray, np.ndarray]:
        (v1, v2), shape = products, (self.distance, self.first.radius, self.second.radius, extent)
        return -lens_support(-v1, -v2, norms, *shape), lens_support(v1, v2, norms, *shape)

    def decide(self, products, norms, c, extent, rounding, status) -> tuple[int, int]:
        """Write to ``status`` what is decided, see :meth:`Ball.decide`.

        The slack for rounding is that of the larger ball: what the other decides by itself stays decided.
        """
        size = max(extent(self.first), extent(self.second))
        kernels.box_decide(*self._bounds(products, norms, size), norms, size, c, rounding, status)
        alone = np.empty_like(status)
        for ball, known in zip((self.first, self.second), products, strict=True):
            if any(ball.decide((known,), norms, c, extent, rounding, alone)):
                np.copyto(status, alone, where=alone != 0)
        return int(np.count_nonzero(status < 0)), int(np.count_nonzero(status > 0))


def axis_uncertainty(extent: float, distance: float) -> float:
    """Return the error bound of a product with the unit vector between two centres, for a row of norm 1."""
    return ROUNDING * (1.0 + extent / distance) if distance > 0.0 else np.inf


def lens_support(v1, v2, norms, distance, r1, r2, extent):
    """Return the largest ``v.x`` over the intersection of two balls (Ogawa 2014, Theorem 8), shape (n,).

    The plane of the rim cuts the lens into a dome of either ball. If the larger ball's maximiser lies in the smaller
    ball, it is the answer, else the smaller ball's dome gives it. Distances are taken from the smaller ball's centre:
    from the larger one's, a small lens would drown in rounding. If one ball lies inside the other, or rounding has
    pulled the two apart, the smaller ball gives the answer.

    ``v1``, ``v2`` and ``norms``, shape (n,), are ``v.m1``, ``v.m2`` and ``||v||``, ``distance`` is ``||m1 - m2||``;
    the rounding of ``v1`` and ``v2`` is relative to ``extent``, the largest norm of a point of the balls.
    """
    if r1 > r2:
        v1, v2, r1, r2 = v2, v1, r2, r1
    if distance <= r2 - r1 or distance >= r1 + r2:
        return v1 + r1 * norms
    height = ((distance - r2) * (distance + r2) + r1 * r1) / (2.0 * distance)  # of the rim's plane, towards m2
    away = (v1 - v2) / distance
    uncertainty = axis_uncertainty(extent, distance)
    (_, dome), second = dome_bounds(v1, away, norms, r1, -height, uncertainty * norms), v2 + r2 * norms
    inside = (away + uncertainty * norms) * r2 >= (distance - height) * norms
    return np.minimum(np.where(inside, second, dome), np.minimum(second, v1 + r1 * norms))
