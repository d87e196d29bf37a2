"""Regions that provably contain an optimum, and the support functions that every rule shares.

A rule answers with a :class:`Ball`, :class:`Dome` or :class:`Lens`; a sample (or feature) ``v`` is decided by the
smallest and largest value of ``v.x`` over the region. No data lives here: the products ``v.c`` of all samples
with a centre arrive as arrays, so the same code serves dense, sparse, kernel and distributed rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The one place for rounding: every comparison that screens keeps this slack, relative to the magnitudes compared,
ROUNDING = 1e-12
# and every squared radius made from a gap is enlarged by this much of the summed magnitudes of the gap's terms.
GAP_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class Point:
    """A vector together with its products with every row, where they are known.

    Parameters
    ----------
    vector : ndarray of shape (d,)
        The point itself (for a kernel model its dual coefficients).
    products : ndarray of shape (n,) or None
        ``v_i . vector`` for every row ``v_i``; None where nobody has computed them yet.
    sqnorm : float
        Squared norm of the vector in the space of the rows.
    """

    vector: np.ndarray
    products: np.ndarray | None
    sqnorm: float

    def scaled(self, factor: float) -> Point:
        """Return ``factor * self``; products follow without touching the data."""
        products = None if self.products is None else factor * self.products
        return Point(factor * self.vector, products, factor * factor * self.sqnorm)


@dataclass(frozen=True, slots=True)
class Ball:
    """``{x : ||x - c|| <= r}``.

    Parameters
    ----------
    center : Point
    radius : float
    """

    center: Point
    radius: float

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points whose products with the rows the bounds need."""
        return (self.center,)

    @property
    def extent(self) -> float:
        """Return the largest norm a point of the region can have (scale of the rounding error)."""
        return np.sqrt(self.center.sqnorm) + self.radius

    def bounds(self, products: tuple[np.ndarray, ...], norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest ``v.x`` over the region for every row.

        Parameters
        ----------
        products : tuple of ndarray of shape (n,)
            ``v.p`` for each point of :attr:`points`.
        norms : ndarray of shape (n,)
            ``||v||``.

        Returns
        -------
        lower, upper : ndarray of shape (n,)
        """
        reach = self.radius * norms
        return products[0] - reach, products[0] + reach


@dataclass(frozen=True, slots=True)
class Dome:
    """``{x : ||x - c|| <= r, a.(x - c) <= delta}`` with ``||a|| = 1``.

    Parameters
    ----------
    center : Point
    radius : float
    normal : Point
        Unit vector ``a``.
    offset : float
        ``delta``, in the units of the radius. ``delta >= r`` is the ball; ``delta < -r`` would be empty, which only
        rounding can produce: the nearest non-empty dome (one point) is used.
    """

    center: Point
    radius: float
    normal: Point
    offset: float

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points whose products with the rows the bounds need."""
        return (self.center, self.normal)

    @property
    def extent(self) -> float:
        """Return the largest norm a point of the region can have."""
        return np.sqrt(self.center.sqnorm) + self.radius

    def bounds(self, products: tuple[np.ndarray, ...], norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest ``v.x`` over the region, see :meth:`Ball.bounds`."""
        vc, va = products
        upper = dome_support(vc, va, norms, self.radius, self.offset)
        lower = -dome_support(-vc, -va, norms, self.radius, self.offset)
        return lower, upper


@dataclass(frozen=True, slots=True)
class Lens:
    """Intersection of two balls.

    Parameters
    ----------
    first, second : Ball
    """

    first: Ball
    second: Ball

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points whose products with the rows the bounds need."""
        return (self.first.center, self.second.center)

    @property
    def extent(self) -> float:
        """Return the largest norm a point of the region can have."""
        return min(self.first.extent, self.second.extent)

    def bounds(self, products: tuple[np.ndarray, ...], norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest ``v.x`` over the region, see :meth:`Ball.bounds`."""
        v1, v2 = products
        distance = float(np.linalg.norm(self.first.center.vector - self.second.center.vector))
        r1, r2 = self.first.radius, self.second.radius
        upper = lens_support(v1, v2, norms, distance, r1, r2)
        lower = -lens_support(-v1, -v2, norms, distance, r1, r2)
        # Rounding must not make the intersection weaker than one of its balls.
        upper = np.minimum(upper, np.minimum(v1 + r1 * norms, v2 + r2 * norms))
        return np.maximum(lower, np.maximum(v1 - r1 * norms, v2 - r2 * norms)), upper


def dome_support(vc, va, norms, radius, offset):
    """Largest ``v.x`` over a dome.

    Parameters
    ----------
    vc, va, norms : ndarray of shape (n,)
        ``v.c``, ``v.a`` and ``||v||``.
    radius, offset : float
        ``r`` and ``delta``.

    Returns
    -------
    ndarray of shape (n,)
    """
    offset = min(max(offset, -radius), radius)
    ball = vc + radius * norms
    cap = np.sqrt(max(radius * radius - offset * offset, 0.0))
    cut = vc + offset * va + cap * np.sqrt(np.maximum(norms * norms - va * va, 0.0))
    # The half-space only matters for v whose ball maximiser c + r v/||v|| violates it.
    return np.where(va * radius <= offset * norms, ball, cut)


def lens_support(v1, v2, norms, distance, r1, r2):
    """Largest ``v.x`` over the intersection of two balls (Ogawa 2014, Theorem 8).

    Parameters
    ----------
    v1, v2, norms : ndarray of shape (n,)
        ``v.m1``, ``v.m2`` and ``||v||``.
    distance : float
        ``||m1 - m2||``.
    r1, r2 : float
        Radii.

    Returns
    -------
    ndarray of shape (n,)
        Where one ball lies inside the other, or rounding has pulled the two apart, the smaller ball answers.
    """
    if distance <= abs(r1 - r2) or distance >= r1 + r2:
        return v1 + r1 * norms if r1 <= r2 else v2 + r2 * norms
    zeta = (distance * distance + r2 * r2 - r1 * r1) / (2.0 * distance)
    along = (v1 - v2) / distance  # v.phi / ||phi||
    circle = np.sqrt(max(r2 * r2 - zeta * zeta, 0.0))
    rim = v2 + zeta * along + circle * np.sqrt(np.maximum(norms * norms - along * along, 0.0))
    out = np.where(along * r1 < (zeta - distance) * norms, v1 + r1 * norms, rim)
    return np.where(along * r2 > zeta * norms, v2 + r2 * norms, out)


def condition(center: np.ndarray, radius: float, known: np.ndarray, values: np.ndarray | float):
    """Tighten a ball with coordinates of the optimum that are known (Hong 2019, Lemmas 5 and 6).

    Parameters
    ----------
    center : ndarray of shape (m,)
    radius : float
    known : ndarray of bool of shape (m,)
        Which coordinates are known.
    values : ndarray of shape (known.sum(),) or float
        Their values.

    Returns
    -------
    center : ndarray of shape (m,)
        The centre with the known coordinates set to their values.
    radius : float
        ``sqrt(r^2 - ||values - c_known||^2)``, 0 where rounding makes that negative.
    """
    tightened = center.copy()
    tightened[known] = values
    moved = tightened[known] - center[known]
    return tightened, float(np.sqrt(max(radius * radius - float(moved @ moved), 0.0)))
