r"""The lever: what a ball around the optimal ``w`` decides of rows whose linear forms have a free intercept.

Let ``(w, b)`` and a feasible ``theta`` have the pair's ball of centre ``c`` and radius ``r``. Take weights ``v >= 0``,
``sum v = 1``, with ``theta + kappa v`` in the box (rows without signs, ``problem.intercept``), ``mu = X'v`` and
``tau_mu = sum_i v_i (c_i - x_i.c)``. Were the linear form of a row ``x`` below

    x.c + tau_mu - rho,   rho = r D where C kappa D >= 2 r, else r^2/(C kappa) + C kappa/4 D^2,   D = ||x - mu||

then the dual point with the rows of ``v`` raised and ``x`` lowered would have an empty ball: so it is not, for any
optimal ``(w, b)``. With ``theta - kappa v`` in the box, the same from above. It is the ball's own bound with ``x - mu``
in place of ``x``: the intercept costs nothing where the lever is long enough.

For one pair, one lever and a fixed part ``delta`` of what its rows can carry (of the dual at C = 1), the bound from
below, of a row or of a held-out sample,

    low(C) = x.c(C) + tau(C) - r(C)^2 / (C delta) - C delta/4 ||x - mu||^2,   c(C) = (w + C G'theta)/2

is concave in C: the first two terms are linear, and so is ``r(C)^2/C`` except a term in ``1/C``, which is convex. What
is above a kink at both ends of a range of C is so within it. From above it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any

import numpy as np

from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.screen import lever as kernels
from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.regions.geometry import GAP_ROUNDING, ROUNDING, Ball, KernelPoint, between

# `kappa` of the levers, times 2 r over the typical distance of a row from the mean (dual at C = 1): of those that few
# rows make, and of those that many share, whose centres are nearer to the middle.
SIZES, SHARED = (0.25, 1.0, 4.0, 16.0), (2.0,)
RANGE_SIZES = (1 / 16, 0.25, 1.0, 4.0, 16.0)  # for the ball at the parameter that levers of a range of C are made for
SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.0)  # of the first of two balls in those between them


@dataclass(slots=True)
class LeverBall:
    """A ball around the optimal ``w`` with the dual point from which levers are made."""

    ball: Ball  # of a pair at ``C``; the products of its centre with the rows are known
    C: float
    theta: np.ndarray  # shape (N,)
    residue: float  # what the signed sum of ``theta`` is off by at most
    one: bool = False  # whether linear models try one lever on either side, and read only the rows it is made of


@dataclass(slots=True)
class LeverPencil:
    """Two balls around the optimal ``w`` at one ``C``, each with a dual point, and all that lies between them.

    A point of the way from one dual point to the other has the ball with the centre as far on the way: the bound from
    which levers follow is linear in the dual point. That ball holds the intersection of the two.
    """

    first: LeverBall
    second: LeverBall

    def balls(self, products: tuple[np.ndarray, np.ndarray]) -> list[LeverBall]:
        """Return the balls of some points of the way; ``products`` are those of the two centres with the rows."""
        (one, two), (a, b) = (self.first, self.second), (self.first.ball, self.second.ball)
        left, right = replace(a.center, products=products[0]), replace(b.center, products=products[1])
        size = sqrt(left.sqnorm) + sqrt(right.sqnorm)
        apart = max(left.distance(right) - ROUNDING * size, 0.0)
        found = []
        for share in SHARES:
            rest = 1.0 - share
            mixed, parts = share * a.radius**2 + rest * b.radius**2, share * rest * apart * apart
            radius = sqrt(max(mixed - parts, 0.0) + 16.0 * UNIT * mixed) * OUTWARD
            theta = one.theta + rest * (two.theta - one.theta)
            residue = share * one.residue + rest * two.residue + 4.0 * UNIT * float(np.abs(theta).sum())
            found.append(LeverBall(Ball(between(left, right, share), radius), one.C, theta, residue))
        return found


@dataclass(slots=True)
class Seen:
    """Signless rows as a ball around ``w`` sees them, the dual scaled by C; arrays of shape (n,)."""

    tau: np.ndarray  # ``c_i - x_i.c``, at the ball's centre c
    down: np.ndarray  # down, up: by how much a dual variable can fall and rise within its box; negative counts as 0
    up: np.ndarray
    slack: np.ndarray  # what rounding may have added to ``tau``, and to what it is compared with
    typical: float  # a typical distance of the rows from their middle: the levers' sizes go by it


@dataclass(slots=True)
class Levered(Seen):
    """Rows of numbers."""

    norms: np.ndarray  # norms, spread: shape (n,); ``||x_i||``, and at least the distance of ``x_i`` from ``mean``
    spread: np.ndarray
    mean: np.ndarray  # shape (d,): any fixed point; near the middle of the rows the bounds are sharp
    place: Callable  # ``place(index)`` returns a ``Matrix``, and where in it the rows of ``index`` are
    product: float  # relative error of a product with a row

    def decide(self, radius: float, sizes: tuple = SIZES, shared: tuple = SHARED) -> np.ndarray:
        """Return -1 where ``x.w + b`` is above the kink of a row at every optimum, +1 where it is below, else 0."""
        radius = max(radius, kernels.LEAST)
        fore, aft = chosen(self, radius, sizes, shared)
        count = fore.offsets.shape[0]
        rows, where = self.place(np.concatenate([fore.rows, aft.rows]))
        offsets, centers = np.concatenate([fore.offsets, aft.offsets]), np.empty((2 * count, self.mean.size))
        lengths, away = np.empty((2, 2 * count))
        split, first = fore.rows.size, slice(0, count)
        for lever, of, half in ((fore, where[:split], first), (aft, where[split:], slice(count, None))):
            kernels.lever_centers(
                rows, of, lever.weights, self.mean, ROUNDING, centers[half], lengths[half], away[half]
            )
        status, unsure = np.empty(self.tau.size, dtype=np.int8), np.empty(self.tau.size, dtype=np.int64)
        left = kernels.decide_by_levers(self.tau, self.slack, self.spread, radius, count, offsets, away, status, unsure)
        if left:
            index = unsure[:left]
            rows, where = self.place(index)
            seen, levers = (self.tau, self.slack), kernels.Levers(offsets, away, centers, lengths)
            kernels.decide_exactly(
                rows, where, index, self.norms, seen, radius, levers, 4.0 * self.product, ROUNDING, status
            )  # fmt: skip
        return status


@dataclass(slots=True)
class KernelLevered(Seen):
    """Signless rows behind a kernel."""

    norms: np.ndarray  # shape (n,)
    # ``combined(index, weights)`` returns the products of all rows with ``sum_k weights_k x_index[k]``, and what they
    # are off by over the norm of their row
    combined: Callable

    def decide(self, radius: float, sizes: tuple = SIZES) -> np.ndarray:
        """Return -1 where ``x.w + b`` is above the kink of a row at every optimum, +1 where it is below, else 0."""
        radius, status = max(radius, kernels.LEAST), np.zeros(self.tau.size, dtype=np.int8)
        for lever, side in zip(chosen(self, radius, sizes), (1.0, -1.0), strict=True):
            for (offset, kappa), weights in zip(lever.offsets[::-1], lever.weights[::-1], strict=True):
                used = np.flatnonzero(weights)
                if kappa <= 0.0 or not used.size:
                    continue
                index, share = lever.rows[used], weights[used]
                products, off = self.combined(index, share)
                spread = float(share @ self.norms[index])
                square = max(float(share @ products[index]), 0.0) + (off + 2.0 * ROUNDING * spread) * spread
                seen, own = (self.tau, self.slack), (float(offset), float(kappa))
                kernels.decide_by_products(seen, self.norms, products, square, off, radius, side, own, ROUNDING, status)
        return status


@dataclass(slots=True)
class Chosen:
    """The rows of the levers of one side, in the order of their use."""

    rows: np.ndarray  # int64 of shape (m,)
    offsets: np.ndarray  # shape (k, 2): ``tau`` at the centre of each lever, and its ``kappa``; 0 where it says nothing
    weights: np.ndarray  # shape (k, m)


def chosen(seen: Seen, radius: float, sizes: tuple, shared: tuple = ()) -> tuple[Chosen, Chosen]:
    """Return the levers that bound linear forms from below, and those that bound them from above."""
    kappa = np.array((*sizes, *shared)) * (2.0 * radius / (seen.typical or 1.0))
    sharing = np.array([*(1 for _ in sizes), *(kernels.SHARING for _ in shared)])
    above = _side(seen, kappa, sharing, 1.0, seen.tau, seen.up)
    return above, _side(seen, kappa, sharing, -1.0, -seen.tau, seen.down)


def _side(seen: Seen, sizes: np.ndarray, sharing: np.ndarray, side: float, order, room: np.ndarray) -> Chosen:
    rows = kernels.foremost(order, room)
    offsets, weights = np.empty((sizes.size, 2)), np.empty((sizes.size, rows.size))
    kernels.lever_weights(
        seen.tau[rows], seen.slack[rows], room[rows], sizes, sharing, side, ROUNDING, offsets, weights
    )
    return Chosen(rows, offsets, weights)


# -- levers for a whole range of C -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RangeLevers:
    """A pair and ``k`` of its levers, the first half of which bound from below."""

    C: float
    pair: np.ndarray  # shape (9,): numbers of the pair, from which its ball at any C follows
    forms: np.ndarray  # shape (2, m): products of ``m`` samples with ``w`` and with ``G'theta``
    # shape (3, k): ``tau(C)`` of each lever as ``levers[0] + C levers[1]``, rounding included, and what it carries at
    # C = 1
    levers: np.ndarray

    def radius(self, C: float) -> float:
        return _radius(self.pair, self.C, C)

    def sign(self, k: int) -> float:
        """Return 1 for a lever that bounds from below, -1 from above."""
        return 1.0 if 2 * k < self.levers.shape[1] else -1.0

    def shows(self, k: int, rows, apart, norms, low: float, high: float, kinks=0.0) -> np.ndarray:
        """Tell which linear forms ``x.w* + b*`` are on a lever's side of their kink for all C from ``low`` to ``high``.

        ``rows`` are numbers of samples; ``apart`` and ``norms`` are upper bounds of their distances from the lever's
        centre and their norms.
        """
        sign, middle = self.sign(k), sqrt(low * high)
        sure = np.ones(rows.size, dtype=bool)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # what is no number shows nothing
            delta = np.minimum(self.levers[2, k], 2.0 * max(self.radius(middle), kernels.LEAST) / (middle * apart))
            for C in {low, high}:
                r = self.radius(C)
                form = 0.5 * (self.forms[0, rows] + C * self.forms[1, rows])
                form += self.levers[0, k] + C * self.levers[1, k] - kinks
                width = r * r / (C * delta) + 0.25 * C * delta * apart * apart
                rounding = self.pair[8] * (1.0 + C / self.C) * norms
                rounding += ROUNDING * (np.abs(form) + 2.0 * np.abs(kinks) + width)
                sure &= sign * form > width + rounding
        return sure


def _radius(pair, C0: float, C: float) -> float:
    w_sq, total_sq, inner, slack, sum_error, total_error, relative, shift, _ = pair.tolist()
    own = box_kernels.pair_radius(C, C0, w_sq, total_sq, inner, slack, sum_error, total_error, relative)
    return (own + C * shift) * (1.0 + ROUNDING)


@dataclass(frozen=True, slots=True)
class PairLevers:
    """Levers of a pair that serve a range of C."""

    pair: np.ndarray  # pair, levers: as of :class:`RangeLevers`
    levers: np.ndarray
    rows: list  # the rows of each lever, and their weights, which sum up to 1: two arrays each
    duals: np.ndarray  # shape (N,): products of the rows, signs included, with ``G'theta``


def extent_of(certificate) -> float:
    """Return at least the norm of the centre of a pair's ball at its own C."""
    return 0.5 * (sqrt(certificate.point.sqnorm) + certificate.C * sqrt(certificate.total_sq))


def seen_by(certificate, model, duals: np.ndarray) -> Seen:
    """Return the signless rows as a pair's ball at its own C sees them; ``duals`` are products with ``G'theta``."""
    C, own, signs = certificate.C, model.signless, model.signs
    value, widest = C * (signs * certificate.theta), np.maximum(np.abs(own.lo), np.abs(own.hi))
    # A row at its bound has no room: none that rounding makes, here or in `verify`, which forms it by other operations.
    off = C * (certificate.residue + (16.0 * UNIT + 4.0 * model.inexact) * widest)
    tau = own.kinks - 0.5 * signs * (certificate.point.products + C * duals)
    slack = model.rounding * (model.norms * extent_of(certificate) + np.abs(own.kinks))
    return Seen(tau, value - C * own.lo - off, C * own.hi - value - off, slack, model.typical)


def pair_levers(certificate, model, ahead: float) -> PairLevers:
    """Return levers of a pair, made for its ball at C = ``ahead``; one data pass of a linear model."""
    C, point, own, signs = certificate.C, certificate.point, model.signless, model.signs
    behind, extent = isinstance(point, KernelPoint), extent_of(certificate)
    duals = certificate.total if behind else model.margins(certificate.total)
    seen, sizes = seen_by(certificate, model, duals), (sqrt(point.sqnorm), sqrt(certificate.total_sq))
    if behind:
        extent += C * sqrt(certificate.total_error / GAP_ROUNDING)
    numbers = np.array([
        point.sqnorm, certificate.total_sq, certificate.inner, certificate.slack, certificate.sum_error,
        certificate.total_error, certificate.relative, certificate.shift, model.rounding * extent,
    ])  # fmt: skip
    radius = _radius(numbers, C, ahead)
    levers, rows = [], []
    for side, lever in zip((1.0, -1.0), chosen(seen, max(radius, kernels.LEAST), RANGE_SIZES), strict=True):
        of = lever.rows
        at = own.kinks[of] - 0.5 * signs[of] * point.products[of], -0.5 * signs[of] * duals[of]
        error = model.norms[of] * 0.5 * sizes[0] + np.abs(own.kinks[of]), model.norms[of] * 0.5 * sizes[1]
        beside = ROUNDING * abs(certificate.intercept)  # the forms behind a kernel are freed of it
        for (_, carried), weights in zip(lever.offsets, lever.weights, strict=True):
            a, b = (float(weights @ (v - side * model.rounding * e)) for v, e in zip(at, error, strict=True))
            levers.append([a - side * beside, b, carried / C])
            rows.append((of[weights > 0.0], weights[weights > 0.0]))
    return PairLevers(numbers, np.array(levers).T, rows, duals)


@dataclass(slots=True)
class LeverRange:
    """What levers of a pair decide for all C from ``low`` to ``high``: one region for each C."""

    reference: Any
    low: float
    high: float

    def decide(self, model, products: Callable) -> np.ndarray:
        """Return decisions on signless rows as :meth:`Levered.decide`; ``products(center)`` takes a pass a lever."""
        far = max(self.low, self.high, key=lambda C: abs(log(C / self.reference.C)))
        ready = pair_levers(self.reference, model, far)
        forms = model.signs * np.stack([self.reference.point.products, ready.duals])
        levers = RangeLevers(self.reference.C, ready.pair, forms, ready.levers)
        distances = Distances(model, np.square(model.norms), products, model.rounding)
        kinks, status = model.signless.kinks, np.zeros(model.size, dtype=np.int8)
        for k in np.argsort(-ready.levers[2], kind="stable"):  # the longest decide most
            left = np.flatnonzero(status == 0)
            if ready.levers[2, k] <= 0.0 or not left.size:
                break
            apart = distances.of(*ready.rows[k])[left]
            shown = levers.shows(k, left, apart, model.norms[left], self.low, self.high, kinks[left])
            status[left[shown]] = -levers.sign(k)
        return status


@dataclass(slots=True)
class Distances:
    """Distances of samples from combinations of training rows."""

    model: Any
    squares: np.ndarray  # shape (m,): of the samples' norms
    products: Callable  # of the samples with a vector of features, or of coefficients behind a kernel
    off: float  # relative error of a product

    def of(self, index: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return upper bounds of the distances from ``sum_k share_k x_index[k]``."""
        center, square = self.model.mixture(index, share)
        spread = float(share @ self.model.norms[index])
        return distance(np.sqrt(self.squares), self.products(center), square, spread, self.off)


def distance(norms: np.ndarray, products: np.ndarray, square: float, spread: float, off: float) -> np.ndarray:
    """Return upper bounds of the distances of rows of these ``norms`` from a combination of training rows.

    Of the combination, ``square`` is its squared norm, ``spread`` the mean norm of its rows; ``off`` is the relative
    error of a product with it.
    """
    apart = np.square(norms) - 2.0 * products + square
    return np.sqrt(np.maximum(apart, 0.0) + 4.0 * off * np.square(norms + spread)) * (1.0 + ROUNDING)
