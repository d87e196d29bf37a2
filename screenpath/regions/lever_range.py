"""What a pair with a free intercept proves for a whole range of C: about held-out samples, and about the rows
themselves.

A lever (:mod:`.lever`) bounds ``x.w* + b*`` for any ``x``. For one pair, one lever and a fixed part ``delta`` of what
its rows can carry (of the dual at C = 1), the bound from below

    low(C) = x.c(C) + tau(C) - r(C)^2 / (C delta) - C delta/4 ||x - mu||^2,   c(C) = (w + C G'theta)/2

is concave in C: the first two terms are linear, and so is ``r(C)^2/C`` except a term in ``1/C``, which is convex. What
is above a kink at both ends of a range of C is so within it. From above it is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.kernels.problem import box as kernels
from screenpath.kernels.screen.lever import LEAST
from screenpath.regions.geometry import GAP_ROUNDING, ROUNDING, KernelPoint
from screenpath.regions.lever import Seen, chosen

SIZES = (1 / 16, 0.25, 1.0, 4.0, 16.0)  # of the levers, for the ball at the parameter that they are made for


@dataclass(frozen=True)
class RangeLevers:
    """A pair and ``k`` of its levers, the first half of which bound from below.

    Parameters
    ----------
    pair : ndarray of shape (9,)
        Numbers of the pair, from which its ball at any C follows.
    forms : ndarray of shape (2, m)
        Products of ``m`` samples with ``w`` and with ``G'theta``.
    levers : ndarray of shape (3, k)
        ``tau(C)`` of each lever as ``levers[0] + C levers[1]``, rounding included, and what it carries at C = 1.
    """

    C: float
    pair: np.ndarray
    forms: np.ndarray
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
        sign, middle = self.sign(k), math.sqrt(low * high)
        sure = np.ones(rows.size, dtype=bool)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # what is no number shows nothing
            delta = np.minimum(self.levers[2, k], 2.0 * max(self.radius(middle), LEAST) / (middle * apart))
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
    own = kernels.pair_radius(C, C0, w_sq, total_sq, inner, slack, sum_error, total_error, relative)
    return (own + C * shift) * (1.0 + ROUNDING)


@dataclass(frozen=True, slots=True)
class PairLevers:
    """Levers of a pair that serve a range of C.

    Parameters
    ----------
    pair, levers : ndarray
        As of :class:`RangeLevers`.
    rows : list of tuple of ndarray
        The rows of each lever, and their weights, which sum up to 1.
    duals : ndarray of shape (N,)
        Products of the rows, signs included, with ``G'theta``.
    """

    pair: np.ndarray
    levers: np.ndarray
    rows: list
    duals: np.ndarray


def pair_levers(certificate, model, ahead: float) -> PairLevers:
    """Return levers of a pair, made for its ball at C = ``ahead``; one data pass of a linear model."""
    C, point = certificate.C, certificate.point
    own, signs = model.signless, model.signs
    behind = isinstance(point, KernelPoint)
    duals = certificate.total if behind else model.margins(certificate.total)
    value, off = C * (signs * certificate.theta), C * certificate.residue
    tau = own.kinks - 0.5 * signs * (point.products + C * duals)
    sizes = math.sqrt(point.sqnorm), math.sqrt(certificate.total_sq)
    extent = 0.5 * (sizes[0] + C * sizes[1])
    slack = model.rounding * (model.norms * extent + np.abs(own.kinks))
    seen = Seen(tau, value - C * own.lo - off, C * own.hi - value - off, slack, model.typical)
    if behind:
        extent += C * math.sqrt(certificate.total_error / GAP_ROUNDING)
    numbers = np.array([
        point.sqnorm, certificate.total_sq, certificate.inner, certificate.slack, certificate.sum_error,
        certificate.total_error, certificate.relative, certificate.shift, model.rounding * extent,
    ])  # fmt: skip
    radius = _radius(numbers, C, ahead)
    levers, rows = [], []
    for side, lever in zip((1.0, -1.0), chosen(seen, max(radius, LEAST), SIZES), strict=True):
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
        """Return the decisions on signless rows of a model, as :meth:`.lever.Levered.decide` does.

        ``products(center)`` returns those of the signless rows with a vector; a data pass for each lever.
        """
        far = max(self.low, self.high, key=lambda C: abs(math.log(C / self.reference.C)))
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
    """Distances of samples from combinations of training rows.

    Parameters
    ----------
    squares : ndarray of shape (m,)
        Of the samples' norms.
    products : callable
        ``products(center)`` returns those of the samples with a vector: of features, or of coefficients behind a
        kernel.
    off : float
        Relative error of a product.
    """

    model: Any
    squares: np.ndarray
    products: Callable
    off: float

    def of(self, index: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return upper bounds of the distances from ``sum_k share_k x_index[k]``."""
        center, square = self.model.mixture(index, share)
        apart = self.squares - 2.0 * self.products(center) + square
        reach = np.sqrt(self.squares) + float(share @ self.model.norms[index])
        return np.sqrt(np.maximum(apart, 0.0) + 4.0 * self.off * np.square(reach)) * (1.0 + ROUNDING)
