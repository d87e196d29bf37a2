"""What models with a free intercept have in common, linear or behind a kernel (:mod:`.intercept` states the
problem).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.problem import intercept as kernels
from screenpath.numbers.accurate import two_sum
from screenpath.numbers.rounding import UNIT
from screenpath.problem import INTERVAL
from screenpath.problem.box import BoxModel
from screenpath.problem.box_types import Screened
from screenpath.problem.intercept import NONE, Balanced, Signless, balanced
from screenpath.regions.lever import LeverBall, LeverPencil

HIDDEN = 1e-14  # part of the sizes of what is summed that a sum of 0 may differ from it by
CLOSE = 1e-9  # by this much the closed form is left earlier: its certificates count what rounding may do


class FreeIntercept(BoxModel):
    """A box model with its own intercept: its best values, and dual points whose signed sum is 0."""

    compiled: Any = False  # a compiled walk that knows the problem
    _closed_form_known: tuple | None = None

    def set_up(self) -> None:
        """Prepare the signless rows.

        Raises
        ------
        UsageError
            If no intercept is best, because all rows pull it the same way.
        """
        self.signless = Signless.of(self.c, self.lo, self.hi, self.signs)
        self.largest = float(np.maximum(np.abs(self.lo), np.abs(self.hi)).max())
        present = self.signless.width > 0.0  # a row without weight takes part in nothing
        self.largest_kink = float(np.abs(self.c[present]).max())
        self.largest_norm = float(self.norms[present].max())
        # The losses at w = 0 with the best intercept.
        t = self.placed(np.zeros(self.size))[-1]
        self.bounds[box_kernels.ZERO] = float(np.maximum(self.lo * t, self.hi * t).sum())

    def balanced(self, theta, t, likely=NONE) -> Balanced:
        """Return a dual point near ``theta`` whose signed sum is 0, ``t`` being the distances from the kinks.

        ``likely`` are rows that are tried first.
        """
        return balanced(theta, t, self.lo, self.hi, self.signs, self.largest, likely)

    def placed(self, products: np.ndarray, likely=NONE) -> tuple:
        """Return both ends of the best intercepts, the one that is reported, and ``c - g.w - s b``.

        ``likely`` are rows with kinks near it.
        """
        low, high = self.signless.interval(products, likely)
        b = kernels.best_of(low, high)
        t = np.empty(self.size)
        kernels.distances(self.c, products, self.signs, b, t)
        return low, high, b, t

    def kinks_of(self, certificate) -> tuple[np.ndarray, np.ndarray]:
        """Return ``c - s b`` as sums of two doubles."""
        total, rest = two_sum(self.c, -self.signs * certificate.intercept)
        return total, rest + self.tail

    def losses(self, near):
        """Return a function of a point's products, see :meth:`BoxModel.losses`: its loss with the best intercept."""
        likely = kernels.inside(near.theta, self.lo, self.hi)

        def loss(products):
            _, _, b, t = self.placed(products, likely)
            found = float(np.maximum(self.lo * t, self.hi * t).sum())
            return found, 4.0 * UNIT * abs(b) * self.bounds[box_kernels.ALL_ONES]

        return loss

    def guess(self, products: np.ndarray, factor: float) -> tuple[np.ndarray, float, float]:
        """Return the dual point of :meth:`BoxModel.guess`; rows near their kink are moved until it sums to 0."""
        t = self.placed(factor * products)[-1]
        found = self.balanced(np.where(t > 0.0, self.hi, self.lo), t)
        return found.theta, float(np.einsum("i,i", self.c, found.theta)), found.residue

    def corner(self, products: np.ndarray) -> tuple[np.ndarray, float, float]:
        theta, _, residue = self.guess(products, 1.0)
        if not np.isfinite(residue):
            return theta, np.inf, np.inf
        return theta, residue * self.largest_kink, residue * self.largest_norm

    def residue(self, point: Balanced, theta, t, slope: float, floor: float) -> tuple[float, float, float]:
        """Return the error of the signed sum of ``theta``, and its effect on the sum over rows and on the gap."""
        residue = point.residue if point.theta is theta else np.inf  # beyond the range of floating point
        shift, cost = kernels.residue_costs(residue, point.fall, point.rise, self.norms, t, slope, floor)
        return (residue * (1.0 + 8.0 * UNIT) if residue else 0.0), shift, cost

    def optimal_at_zero(self) -> np.ndarray:
        """Return a dual point that is optimal with ``w = 0`` and the best intercept for every small enough C."""
        t = self.placed(np.zeros(self.size))[-1]
        theta = np.where(t > 0.0, self.hi, self.lo)
        at_kink = (t == 0.0) & (self.lo < self.hi)
        if at_kink.any():  # any value will do: all of them have the same share of their box, up or down from its end
            signs, first, last = self.signs[at_kink], self.lo[at_kink], self.hi[at_kink]
            low, high = np.where(signs > 0, first, last), np.where(signs > 0, last, first)
            left = -kernels.excess(np.where(at_kink, 0.0, theta), self.signs)[0] - float((signs * low).sum())
            theta[at_kink] = low + min(max(left / float((signs * (high - low)).sum()), 0.0), 1.0) * (high - low)
        return theta

    def closed_form(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a dual point ``s``, products of the rows with ``G's``, and the largest C up to which it is optimal.

        While every row stays on its side of ``w = 0``'s best intercept, ``w = C G's``. If several rows are at that
        intercept, as those of the larger class, ``s`` on them is a separate problem, and no such C is known unless
        ``G's = 0``: then ``w = 0`` is optimal for every C, as far as rounding lets that be seen.
        """
        if self._closed_form_known is None:
            theta, touched = self.optimal_at_zero(), self.rows.touched
            theta = self.balanced(theta, self.placed(np.zeros(self.size))[-1]).theta
            slope = self.slope_of(theta)
            self._closed_form_known = theta, slope, self._range(theta, slope)
            self.rows.touched = touched  # set-up, not work of a step: a resumed path counts alike
        return self._closed_form_known

    def _range(self, theta: np.ndarray, slope: np.ndarray) -> float:
        own, drift = self.signless, self.signs * slope
        t = self.signs * self.placed(np.zeros(self.size))[-1]
        open_rows = own.width > 0.0
        at, above, below = (np.flatnonzero(open_rows & where) for where in (t == 0.0, t > 0.0, t < 0.0))
        unsure = HIDDEN * float(np.einsum("i,i", np.abs(theta), self.norms)) * self.norms  # without a library's threads
        if at.size > 1:
            hidden, most = np.all((np.abs(drift) <= unsure)[open_rows]), 4.0 * float(unsure[open_rows].max()) or 1.0
            return float(np.abs(t[open_rows & (t != 0.0)]).min(initial=np.inf)) / most if hidden else 0.0
        c, most = own.kinks, np.inf
        # Each row above stays above each below, or on its side of the one that is at the intercept.
        while True:
            ahead = c[above] - most * drift[above] if most < np.inf else -drift[above]
            behind = c[below] - most * drift[below] if most < np.inf else -drift[below]
            high, low = (
                above[np.argmin(ahead)] if above.size else None,
                below[np.argmax(behind)] if below.size else None,
            )
            pairs = [(high, low)] if not at.size else [(high, at[0]), (at[0], low)]
            found = most
            for i, j in pairs:
                if i is not None and j is not None and drift[i] > drift[j]:
                    found = min(found, (c[i] - c[j]) / (drift[i] - drift[j]))
            if not found < most:
                return most * (1.0 - CLOSE)
            most = found

    @property
    def closed_until(self) -> float:
        """Return the largest C at which the closed form is known to be optimal; two passes at most."""
        return self.closed_form()[2]

    def exact_until(self, reference, C: float) -> bool:
        return self.closed_until >= C and np.array_equal(reference.theta, self.closed_form()[0])

    @abstractmethod
    def mixture(self, index: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a combination of signless rows, in the form that outside rows are multiplied with, and its squared
        norm.
        """

    @abstractmethod
    def slope_of(self, theta: np.ndarray) -> np.ndarray:
        """Return the products of the rows with ``G'theta``."""

    # -- screening -----------------------------------------------------------------------------------------------

    def screen(self, region) -> Screened:
        """Decide by balls and their levers; a pass over the data for each centre that needs one."""
        if isinstance(region, LeverPencil):
            known = tuple(self._with_products(one).ball.center.products for one in (region.first, region.second))
            balls = region.balls(known)
        else:
            balls = [self._with_products(region)]
        status = self.decide(balls[0])
        for ball in balls[1:]:
            status = np.where(status != 0, status, self.decide(ball))
        return self.screened(status)

    def _with_products(self, region: LeverBall) -> LeverBall:
        """Return the ball with the products of its centre."""
        center = region.ball.center
        if center.products is not None:
            return region
        known = replace(center, products=self.margins(center.vector))
        return replace(region, ball=replace(region.ball, center=known))

    def screened(self, signless: np.ndarray) -> Screened:
        """Return decisions on signless rows as those on the rows with signs."""
        status = signless * self.signs
        return Screened(status, int(np.count_nonzero(status < 0)), int(np.count_nonzero(status > 0)), True)

    @abstractmethod
    def decide(self, region: LeverBall) -> np.ndarray:
        """Return the decisions of a ball and its levers on signless rows; the products of its centre are known."""

    # -- records -------------------------------------------------------------------------------------------------

    def counts(self, certificate, screened: Screened) -> dict:
        """Return the counts, ratios and coefficients of a step; the intercept is the last coefficient."""
        found = super().counts(certificate, screened)
        found["coefficients"] = np.append(found["coefficients"], certificate.intercept)
        found["extras"] = dict(zip(INTERVAL, (float(certificate.low), float(certificate.high)), strict=True))
        return found
