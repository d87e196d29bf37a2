"""What two steps with a free intercept prove about linear forms at every C between them, for piecewise-linear losses.

The ball is that of their mean (:mod:`screenpath.problem.between`), the intercept follows from levers
(:mod:`screenpath.regions.lever`): the room that a row has in its box is a mean, too, so what both ends can carry is
carried between. For a lever that carries ``delta``, a form is certainly above its kink where this is above 0::

    (1 - s) p0 + s p1 - r(s)^2 / delta - delta/4 D^2,   r(s)^2 = (1 - s) r0^2 + s r1^2 + s (1 - s) K,

or, where ``delta D >= 2 r``, ``(1 - s) p0 + s p1 - r(s) D``. Both are convex in ``s``, so it is not on one interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.kernels.screen.lever import LEAST
from screenpath.numbers.rounding import OUTWARD
from screenpath.problem.between import FEW, Between, Solved, not_above, open_shares
from screenpath.regions.geometry import ROUNDING
from screenpath.regions.lever import SIZES, Seen, chosen, distance, extent_of, seen_by


@dataclass(frozen=True)
class LeversBetween:
    """Levers of two certificates with a free intercept, for linear forms of any rows at every C between them.

    Arrays have an entry for each of the ``k`` levers, the first half of which bound from below.
    """

    first: float  # first, second: values of C
    second: float
    squares: tuple[float, float, float]  # of the radius, as :func:`open_shares` takes them
    centers: np.ndarray  # shape (2, d): of the balls at both ends
    errors: np.ndarray  # shape (2,): of a row's product with a centre, over the row's norm
    rounding: float  # relative error of a product
    taus: np.ndarray  # shape (k, 2): ``tau`` at both ends, rounding included
    carried: np.ndarray  # shape (k,): of the dual times C
    middles: list  # of (centre, its squared norm, mean norm of its rows)

    @classmethod
    def of(cls, model, first, second) -> LeversBetween:
        """Return the levers of two certificates of a model; two data passes."""
        pairs = first, second
        known = Between.of(*(Solved(one.C, one.primal, one.dual, one.gap, one.point.vector) for one in pairs))
        worst = math.sqrt(known.worst[1])
        # The centres that are known are off by half the error of ``G'theta``.
        away = 0.5 * OUTWARD * max(one.C * (one.sum_error + one.shift) for one in pairs)
        more = away * (2.0 * worst + away) + FEW * (abs(first.primal) + abs(second.primal))
        squares = OUTWARD * (first.gap + more), OUTWARD * (second.gap + more), known.bend
        seen = [seen_by(one, model, model.margins(one.total)) for one in pairs]
        tau, slack = (np.array([getattr(one, name) for one in seen]) for name in ("tau", "slack"))
        down, up = (np.minimum(getattr(seen[0], name), getattr(seen[1], name)) for name in ("down", "up"))
        taus, carried, middles = [], [], []
        of = Seen(tau.mean(axis=0), down, up, slack.max(axis=0), model.typical)
        for side, lever in zip((1.0, -1.0), chosen(of, max(worst + away, LEAST), SIZES), strict=True):
            for (_, most), weights in zip(lever.offsets, lever.weights, strict=True):
                index, share = lever.rows[weights > 0.0], weights[weights > 0.0]
                taus.append((tau[:, index] - side * slack[:, index]) @ share)
                carried.append(float(most))
                middles.append((*model.mixture(index, share), float(share @ model.norms[index])))
        centers = np.array([0.5 * (one.point.vector + one.C * one.total) for one in pairs])
        errors = np.array([model.rounding * extent_of(one) for one in pairs])
        return cls(
            first.C, second.C, squares, centers, errors, model.rounding, np.array(taus), np.array(carried), middles
        )

    def open_shares(self, products: Callable, norms: np.ndarray, kinks: Any = 0.0) -> np.ndarray:
        """Return the shares at which forms ``x.w* + b*`` are not certainly above their kinks, and not below them.

        They have the shape (2, 2, m), see :func:`open_shares`. ``products(vector)`` returns those of the ``m`` rows, of
        at most these ``norms``, with a vector.
        """
        forms = np.array([products(center) - kinks for center in self.centers])
        rounding = self.errors[:, None] * norms + ROUNDING * (np.abs(forms) + 2.0 * np.abs(kinks))
        out = np.empty((2, 2, norms.size))
        out[:, 0], out[:, 1] = 0.0, 1.0
        order, count = np.argsort(-self.carried, kind="stable"), len(self.middles)
        for side, sign in enumerate((1.0, -1.0)):
            every = order[(2 * order // count == side) & (self.carried[order] > 0.0)]
            for some in every[:1], every[1:]:  # the longest decides most
                left = np.flatnonzero(out[side, 0] <= out[side, 1])
                if not left.size * some.size:
                    continue
                apart = np.array([
                    distance(norms[left], products(center)[left], square, spread, self.rounding)
                    for center, square, spread in (self.middles[k] for k in some)
                ])  # fmt: skip
                taus = self.taus[some].T[:, :, None]
                above = sign * (forms[:, None, left] + taus) - (rounding[:, None, left] + ROUNDING * np.abs(taus))
                start, end = self._open(above, apart, np.repeat(self.carried[some, None], left.size, axis=1))
                out[side, 0, left] = np.maximum(out[side, 0, left], start.max(axis=0))
                out[side, 1, left] = np.minimum(out[side, 1, left], end.min(axis=0))
        return out

    def _open(self, above: np.ndarray, apart: np.ndarray, carried: np.ndarray) -> np.ndarray:
        """Return the closed intervals that each lever leaves, for forms ``above`` their kinks at both ends, shape (2,
        levers, m).

        What the bound is lowered by is ``r D`` where the lever is long enough for every radius of the way.
        """
        r0, r1, K = self.squares
        long = carried * apart >= 2.0 * OUTWARD * math.sqrt(max(r0, r1) + 0.25 * K)
        found = np.empty(above.shape)
        if long.any():
            found[:, long] = open_shares(above[0, long], above[1, long], apart[long], r0, r1, K)
        if long.all():
            return found
        above, apart, carried = above[:, ~long], apart[~long], carried[~long]
        bent, sure = K / carried, np.ones(apart.size, dtype=bool)
        widths = np.array([[r0], [r1]]) / carried + 0.25 * carried * np.square(apart)
        first, second = above - widths - 8.0 * ROUNDING * (widths + bent)
        found[:, ~long] = not_above(bent, second - first - bent, first, sure, sure)
        return found
