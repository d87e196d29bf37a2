"""Box models with a free intercept: :mod:`.intercept` states the problem, ``regions.lever`` the rules.

A pair is ``(w, theta)`` as in :mod:`screenpath.problem.box`; the intercept is always the best one for ``w``. Its gap is

    1/2 ||w - w_theta||^2 + C sum_i (phi_i(t_i) - theta_i t_i),   t_i = c_i - g_i.w - s_i b,

as long as ``sum_i s_i theta_i = 0``: each certificate ensures that, and counts the rounding error of the sum as a
further distance of ``theta``. So the pair's ball, and with it the walk, is that of the model without intercept.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.problem import intercept as kernels
from screenpath.kernels.problem import partition
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.screen import lever as lever_kernels
from screenpath.kernels.walk.compiled_types import Free
from screenpath.numbers import sparse as sp
from screenpath.numbers.accurate import two_sum
from screenpath.numbers.rounding import UNIT
from screenpath.problem import ends, unread
from screenpath.problem.base import Region
from screenpath.problem.box import BoxModel
from screenpath.problem.box_types import Certificate, Screened
from screenpath.problem.intercept import NONE, Balanced, Signless, balanced, inside
from screenpath.problem.reduced import Freed, Reduced
from screenpath.regions.geometry import ROUNDING, Point
from screenpath.regions.lever import KernelLevered, LeverBall, Levered, LeverPencil, LeverRange

FAR = 0.05  # part of a row's distance from the origin that its distance from the middle counts as, at least
HIDDEN = 1e-14  # part of the sizes of what is summed that a sum of 0 may differ from it by
MIDDLE = 0.1  # part of their mean that the median of the rows' distances from the middle is at least, to be typical
SHORT = 1.4  # times the last C: a step for which the intercept is foreseen; the line through two far ones misses it
CLOSE = 1e-9  # by this much the closed form is left earlier: its certificates count what rounding may do


class FreeIntercept(BoxModel):
    """A box model with its own intercept: its best values, and dual points whose signed sum is 0."""

    _closed_form_known: tuple | None = None

    def set_up(self) -> None:
        """Prepare the signless rows, see :meth:`Signless.of`."""
        self.signless = Signless.of(self.c, self.lo, self.hi, self.signs)
        self.largest = float(np.maximum(np.abs(self.lo), np.abs(self.hi)).max())
        present = self.signless.width > 0.0  # a row without weight takes part in nothing
        self.largest_kink = float(np.abs(self.c[present]).max())
        self.largest_norm = float(self.norms[present].max())
        # The losses at w = 0 with the best intercept.
        t = self.placed(np.zeros(self.size))[-1]
        self.bounds[box_kernels.ZERO] = float(np.maximum(self.lo * t, self.hi * t).sum())

    def balanced(self, theta, t, likely=NONE) -> Balanced:
        """Return a dual point near ``theta`` of signed sum 0, ``t`` being distances from kinks; ``likely`` go first."""
        return balanced(theta, t, self.lo, self.hi, self.signs, self.largest, likely)

    def placed(self, products: np.ndarray, likely=NONE, intercept: float | None = None) -> tuple:
        """Return both ends of the best intercepts, the reported (or given) one, and ``c - g.w - s b``."""
        low, high = self.signless.interval(products, likely) if intercept is None else (intercept, intercept)
        b = kernels.best_of(low, high) if intercept is None else intercept
        t = np.empty(self.size)
        kernels.distances(self.c, products, self.signs, b, t)
        return low, high, b, t

    def kinks_of(self, certificate) -> tuple[np.ndarray, np.ndarray]:
        """Return ``c - s b`` as sums of two doubles."""
        total, rest = two_sum(self.c, -self.signs * certificate.intercept)
        return total, rest + self.tail

    def losses(self, near):
        """Return a function of a point's products, see :meth:`BoxModel.losses`: its loss with the best intercept."""
        likely = inside(near.theta, self.lo, self.hi)

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
        present = self.lo < self.hi
        at_kink = (t == 0.0) & present
        if np.array_equal(at_kink, present):  # no row has a loss: only without rounding is the gap 0, as its target is
            theta[:] = 0.0
        elif at_kink.any():  # any value will do: all of them have the same share of their box, up or down from its end
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

    def start(self, C: float) -> Certificate:
        """Return the closed form at the largest C where it is optimal, or a dual point that is with ``w = 0``."""
        theta, _, limit = self.closed_form()
        return self.certify(min(C, limit), None, theta) if limit > 0.0 else self.at_zero(C, theta)

    def at_zero(self, C: float, theta: np.ndarray) -> Certificate:
        """Return the certificate at ``w = 0``."""
        return self.certify(C, np.zeros(self.rows.d), theta, None, np.zeros(self.size))

    @property
    def closed_until(self) -> float:
        """Return the largest C at which the closed form is known to be optimal; two passes at most."""
        return self.closed_form()[2]

    def exact_until(self, reference, C: float) -> bool:
        return self.closed_until >= C and np.array_equal(reference.theta, self.closed_form()[0])

    @abstractmethod
    def mixture(self, index: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a combination of signless rows, as outside rows are multiplied with it, and its squared norm."""

    # -- screening -----------------------------------------------------------------------------------------------

    def screen(self, region) -> Screened:
        """Decide by balls and levers, or any region by its points' best intercepts; a pass for each new centre."""
        if not isinstance(region, LeverBall | LeverPencil):
            return self.screened(self._by_interval(region))
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
        return Screened.of(signless * self.signs)

    def decide(self, region: LeverBall) -> np.ndarray:
        """Return the decisions of a ball and its levers on signless rows; the products of its centre are known."""
        tau, slack, down, up = np.empty((4, self.size))
        lever_kernels.seen_from(*self._lever_records(region, self.extent(region.ball)), tau, slack, down, up)
        return self.seen(tau, down, up, slack).decide(region.ball.radius)

    def _lever_records(self, region: LeverBall, extent: float) -> tuple:
        """Return the rows, and the ball's centre with its dual point, as the kernels of levers take them."""
        own, C = self.signless, region.C
        rows = lever_kernels.Rows(own.kinks, self.signs, self.norms, own.lo, own.hi)
        products, off = region.ball.center.products, C * region.residue
        return rows, lever_kernels.Pair(products, 1.0, region.theta, C, off, extent, self.rounding)

    def _by_interval(self, region: Region) -> np.ndarray:
        """Return the decisions of a region without a dual point on signless rows.

        With a fixed centre ``mu`` the kinks ``c_i - (x_i - mu).w`` lie in ranges, and each best ``mu.w + b`` lies
        between the best for their lower and for their upper ends.
        """
        (spread, length, inner), own = self.middle_of(region.points), self.signless
        products = tuple(
            self.signs * (self.margins(p.vector) if p.products is None else p.products) - with_mean
            for p, with_mean in zip(region.points, inner, strict=True)
        )
        # A larger norm is a looser bound; products with rows far from the origin are not as good as their spread asks.
        sizes = self.norms + length
        lower, upper = region.bounds(products, np.maximum(spread, FAR * sizes), sizes)
        error = self.rounding * (sizes * self.extent(region) + np.abs(own.kinks))
        low, high = own.kinks - upper - error, own.kinks - lower + error
        least, most = own.best(low)[0], own.best(high)[1]
        return np.where(least > high, -1, np.where(most < low, 1, 0)).astype(np.int8)

    @abstractmethod
    def middle_of(self, points: tuple) -> tuple[np.ndarray, float, list[float]]:
        """Return bounds of the rows' distances from a point near their middle, its norm, and its products with some."""

    @abstractmethod
    def seen(self, tau: np.ndarray, down: np.ndarray, up: np.ndarray, slack: np.ndarray) -> Levered | KernelLevered:
        """Return the signless rows as a ball sees them, see :class:`regions.lever.Seen`."""


class FreeModel(FreeIntercept):
    """A box model whose intercept is free: not penalised. Parameters as of :class:`screenpath.problem.box.BoxModel`."""

    def __init__(self, rows, c, lo, hi, signs=None, mirrored=False, name="svm", around=None, **rounding):
        super().__init__(rows, c, lo, hi, signs, mirrored, name, **rounding)
        self.set_up()
        # Here and not when a step first asks for it: a resumed path counts the same passes.
        self.around: tuple[np.ndarray, np.ndarray, float] = self._middle() if around is None else around

    @property
    def free(self) -> Free:
        """Return what a compiled walk needs for the intercept."""
        own, (mean, spread, typical) = self.signless, self.around
        return Free(
            own.kinks, own.lo, own.hi, own.width, spread, mean, own.level, own.slack, typical or 1.0, self.largest,
            self.largest_kink,
        )  # fmt: skip

    @property
    def typical(self) -> float:
        """Return a typical distance of the rows from their middle."""
        return self.around[2]

    # -- certificates --------------------------------------------------------------------------------------------

    def certify(self, C, w, theta, reference=None, margins=None, intercept=None) -> Certificate:
        """Evaluate both objectives on the full data, see :meth:`BoxModel.certify`.

        ``theta`` need not sum to 0: rows nearest to their kink are moved. ``margins`` are products with ``w`` alone.
        The intercept is the best one unless given.
        """
        if w is None:
            w = C * self.updated_sum(theta, reference)[0]
        if margins is None:
            margins = self.margins(w)
        likely = inside(theta, self.lo, self.hi)
        place = self.placed(margins, likely, intercept)
        point = self.balanced(theta, place[-1], likely)
        total, updates, error = self.updated_sum(point.theta, reference)
        return self._certificate(C, w, point.theta, total, updates, margins, error, (*place, point))

    def _certificate(self, C, w, theta, total, updates, margins, sum_error, place=None) -> Certificate:
        if place is None:
            likely = inside(theta, self.lo, self.hi)
            place = self.placed(margins, likely)
            place = (*place, self.balanced(theta, place[-1], likely))
        low, high, b, t, point = place
        slope, floor = kernels.form_errors(w, b, self.bounds)
        forms = margins + self.signs * b
        sums = box_kernels.box_sums(self.c, forms, self.lo, self.hi, theta, self.norms, slope, floor)
        residue, shift, cost = self.residue(point, theta, t, slope, floor)
        w_sq, *numbers = box_kernels.box_objectives(
            C, w, total, sum_error + shift, *sums[:3], sums[3] + cost, slope, floor, self.bounds
        )
        n_R, n_L, _ = partition.box_ends(theta, self.lo, self.hi, np.empty(self.size, dtype=np.int8), 0, self.size)
        numbers += [n_R, n_L, updates, sum_error]
        found = Certificate(
            C, Point(w, margins, w_sq), theta, total, *numbers, relative=self.relative, shift=shift, cost=cost,
            intercept=b, low=low, high=high, residue=residue, level=self.level,
        )  # fmt: skip
        found.error += cost + residue * self.largest_kink
        return found

    def errors_of(self, certificate) -> tuple[float, float]:
        return kernels.form_errors(certificate.point.vector, certificate.intercept, self.bounds)

    # -- closed-form end ----------------------------------------------------------------------------------------------

    def held(self, reference, C: float):
        """Return the reference's ``w`` and ``alpha`` if known at ``C``; a sum over rows corrects that of ``theta``."""
        if not C > reference.C or not ends.rests(self, reference):
            return None
        point = reference.point
        return self.certify(C, point.vector, reference.C / C * reference.theta, None, point.products), ends.CONSTANT

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def _middle(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return in two passes the mean of rows with weight, bounds of all distances from it, and a typical one."""
        rows, present = self.rows, self.signless.width[: self.rows.n] > 0.0
        mean = rows.weighted_sum(present / np.count_nonzero(present))
        square = unread.square_distances(rows, mean, self.bounds[box_kernels.PRODUCT])
        spread = np.sqrt(square) * (1.0 + ROUNDING)
        typical, usual = float(np.median(spread[present])), float(np.mean(spread[present]))
        typical = typical if typical > MIDDLE * usual else usual  # most rows may be at the middle
        return mean, np.concatenate([spread, spread]) if self.mirrored else spread, typical

    def decide(self, region: LeverBall) -> np.ndarray:
        return self._decide_by_one_each(region) if region.one else super().decide(region)

    def seen(self, tau, down, up, slack) -> Levered:
        mean, spread, typical = self.around
        return Levered(
            tau, down, up, slack, typical, self.norms, spread, mean, self.signless_place,
            self.bounds[box_kernels.PRODUCT],
        )  # fmt: skip

    def _decide_by_one_each(self, region: LeverBall) -> np.ndarray:
        """Return the decisions of one lever on either side; only the rows that make them are read."""
        own = self._lever_records(region, region.ball.extent)
        (mean, spread, typical), radius = self.around, max(region.ball.radius, lever_kernels.LEAST)
        tau, status = np.empty(self.size), np.empty(self.size, dtype=np.int8)
        listed, weights = np.empty((2, lever_kernels.FEWER), dtype=np.int64), np.empty((2, lever_kernels.FEWER))
        offsets, (lengths, away), centers = np.empty((2, 2)), np.empty((2, 2)), np.empty((2, mean.size))
        counts = lever_kernels.one_lever_each(*own, self.largest, radius, typical or 1.0, tau, listed, weights, offsets)
        for h, count in enumerate(counts):
            rows, where = self.signless_place(listed[h, :count])
            own_part = slice(h, h + 1)
            lever_kernels.lever_centers(
                rows, where, weights[own_part], mean, ROUNDING, centers[own_part], lengths[own_part],
                away[own_part],
            )  # fmt: skip
        lever_kernels.decide_by_one_each(*own, tau, spread, radius, offsets, away, status)
        return status * self.signs

    def screen(self, region) -> Screened:
        """Decide by balls and their levers, or by any region through the best intercepts of its points."""
        if isinstance(region, LeverRange):
            return self.screened(region.decide(self, lambda center: self.signs * self.margins(center)))
        return super().screen(region)

    def middle_of(self, points: tuple) -> tuple:
        mean, spread, _ = self.around
        return spread, float(np.sqrt(mean @ mean)), [float(mean @ point.vector) for point in points]

    def mixture(self, index: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, float]:
        """Return ``sum_k share_k x_index[k]``, without signs, and its squared norm."""
        taken = self.signless_rows(index)
        whole = sp.csr_array(taken, shape=(index.size, self.rows.d)) if isinstance(taken, tuple) else taken
        center = np.asarray(share @ whole).ravel()
        return center, float(center @ center)

    def signless_place(self, index: np.ndarray) -> tuple:
        """Return a matrix as kernels take it, and where in it some rows are; copies if not in memory."""
        stored = self.rows.stored
        if stored is None:
            return matrix_of(self.signless_rows(index)), np.arange(index.size)
        self.rows.touched += index.size
        return matrix_of(stored), self._where(index)

    def signless_rows(self, index: np.ndarray):
        """Return a copy of rows without their signs."""
        return self.rows.take(self._where(index), np.ones(index.size))

    def reduce(self, C: float, screened: Screened, reference) -> Reduced:
        plain = super().reduce(C, screened, reference)
        index = plain.index
        status = screened.status if index.size < self.size else self.nothing_screened().status
        rest = kernels.rest_of(C, index, status, reference.theta, plain.theta, self.signs, True)
        plain.errors = plain.errors._replace(total=plain.errors.total + C * reference.shift)
        plain.free = Freed(self.signs, rest, self._foreseen(C, reference), self.typical or 1.0)
        return plain

    def _foreseen(self, C: float, reference) -> float:
        """Return the intercept to start from: that of the reference, or for a short step on the line through the last
        two. That of the step before is where the rows between their ends are at their kinks.
        """
        if reference.before is None or not reference.C < C < SHORT * reference.C:
            return reference.intercept
        before, theta, margins, _ = reference.before
        between = (self.lo < theta) & (theta < self.hi)
        if not between.any():
            return reference.intercept
        earlier = float(np.mean(self.signs[between] * (self.c - margins)[between]))
        return reference.intercept + (reference.intercept - earlier) * (C - reference.C) / (reference.C - before)

    def _take(self, index: np.ndarray):
        """Return a copy of surviving rows without their signs; that of all rows is kept."""
        if index.size < self.size or self.mirrored:
            self._whole = None
            return self.signless_rows(index)
        if self._whole is None:
            self._whole = self.rows.whole()
        return self._whole
