"""Box models with a free intercept: :mod:`.intercept` states the problem, ``regions.lever`` the rules.

A pair is ``(w, theta)`` as in :mod:`screenpath.problem.box`; the intercept is always the best one for ``w``. Its gap is

    1/2 ||w - w_theta||^2 + C sum_i (phi_i(t_i) - theta_i t_i),   t_i = c_i - g_i.w - s_i b,

as long as ``sum_i s_i theta_i = 0``: each certificate ensures that, and counts the rounding error of the sum as a
further distance of ``theta``. So the pair's ball, and with it the walk, is that of the model without intercept.
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.problem import intercept as kernels
from screenpath.kernels.problem import partition
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.screen import lever as lever_kernels
from screenpath.kernels.walk.compiled_types import Free
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import gamma
from screenpath.problem import ends
from screenpath.problem.base import Region
from screenpath.problem.box_types import Certificate, Screened
from screenpath.problem.free_base import FreeIntercept
from screenpath.problem.reduced import Freed, Reduced
from screenpath.regions.geometry import ROUNDING, Point
from screenpath.regions.lever import LeverBall, Levered, LeverPencil, LeverRange

FAR = 0.05  # part of a row's distance from the origin that its distance from the middle counts as, at least


class FreeModel(FreeIntercept):
    """A box model whose intercept is free: not penalised. Parameters as of :class:`screenpath.problem.box.BoxModel`.

    Raises
    ------
    UsageError
        If no intercept is best, because all rows pull it the same way.
    """

    def __init__(self, rows, c, lo, hi, signs=None, mirrored=False, name="svm", **rounding):
        super().__init__(rows, c, lo, hi, signs, mirrored, name, **rounding)
        self.set_up()
        # Here and not when a step first asks for it: a resumed path counts the same passes.
        self.around: tuple[np.ndarray, np.ndarray, float] = self._middle()

    @property
    def compiled(self) -> bool:
        return not self.mirrored

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

    def certify(self, C, w, theta, reference=None, margins=None) -> Certificate:
        """Evaluate both objectives on the full data, see :meth:`BoxModel.certify`.

        ``theta`` need not sum to 0: rows nearest to their kink are moved. ``margins`` are products with ``w`` alone.
        """
        if w is None:
            w = C * self.updated_sum(theta, reference)[0]
        if margins is None:
            margins = self.margins(w)
        likely = kernels.inside(theta, self.lo, self.hi)
        place = self.placed(margins, likely)
        point = self.balanced(theta, place[-1], likely)
        total, updates, error = self.updated_sum(point.theta, reference)
        return self._certificate(C, w, point.theta, total, updates, margins, error, (*place, point))

    def _certificate(self, C, w, theta, total, updates, margins, sum_error, place=None) -> Certificate:
        if place is None:
            likely = kernels.inside(theta, self.lo, self.hi)
            place = self.placed(margins, likely)
            place = (*place, self.balanced(theta, place[-1], likely))
        low, high, b, t, point = place
        slope, floor = kernels.form_errors(w, b, self.bounds)
        sums = self._terms(margins + self.signs * b, theta, slope, floor)
        residue, shift, cost = self.residue(point, theta, t, slope, floor)
        w_sq, *numbers = box_kernels.box_objectives(
            C, w, total, sum_error + shift, *sums[:3], sums[3] + cost, slope, floor, self.bounds
        )
        n_R, n_L, _ = partition.box_ends(theta, self.lo, self.hi, np.empty(self.size, dtype=np.int8), 0, self.size)
        numbers += [n_R, n_L, updates, sum_error]
        found = Certificate(
            C, Point(w, margins, w_sq), theta, total, *numbers, relative=self.relative, shift=shift, cost=cost,
            intercept=b, low=low, high=high, residue=residue,
        )  # fmt: skip
        found.error += cost + residue * self.largest_kink
        return found

    def _terms(self, forms: np.ndarray, theta: np.ndarray, slope: float, floor: float) -> tuple:
        """Return the sums of ``kernels.problem.box.box_terms`` over all rows, in blocks."""
        sums = (0.0, 0.0, 0.0, 0.0)
        for s in range(0, self.size, partition.ROWS):
            e = min(s + partition.ROWS, self.size)
            part = box_kernels.box_terms(self.c, forms, self.lo, self.hi, theta, self.norms, slope, floor, s, e)
            sums = tuple(a + b for a, b in zip(sums, part, strict=True))
        return sums

    def errors_of(self, certificate) -> tuple[float, float]:
        return kernels.form_errors(certificate.point.vector, certificate.intercept, self.bounds)

    # -- closed-form start ---------------------------------------------------------------------------------------

    def start(self, C: float) -> Certificate:
        """Return the first reference: the closed form at the largest parameter <= C where it is optimal.

        If there is none, ``w = 0`` with the best intercept, and a dual point that is optimal there.
        """
        theta, _, limit = self.closed_form()
        if not limit > 0.0:
            return self.certify(C, np.zeros(self.rows.d), theta, None, np.zeros(self.size))
        return self.certify(min(C, limit), None, theta)

    def slope_of(self, theta: np.ndarray) -> np.ndarray:
        """Return the products of the rows with ``G'theta``."""
        return self.margins(self.weighted_sum(theta))

    def polished(self, reference, C: float) -> Certificate | None:
        return ends.polished(self, reference, C, free=True)

    def held(self, reference, C: float):
        """Return the pair known at ``C`` without a solve, the reference's ``w`` and ``alpha``, if any.

        Rounding moves the signed sum of ``theta``, which is corrected: one sum over the rows that are not 0.
        """
        if not C > reference.C or not ends.rests(self, reference):
            return None
        point = reference.point
        return self.certify(C, point.vector, reference.C / C * reference.theta, None, point.products), ends.CONSTANT

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def _middle(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the mean of the rows that have weight, distances of all rows from it (rounded up), and the median of
        theirs; two passes.
        """
        rows, present = self.rows, self.signless.width[: self.rows.n] > 0.0
        mean = rows.weighted_sum(present / np.count_nonzero(present))
        length, product = float(np.sqrt(mean @ mean)), self.bounds[box_kernels.PRODUCT]
        square = np.square(rows.norms) - 2.0 * rows.margins(mean) + length * length
        square = np.maximum(square, 0.0) + 4.0 * product * np.square(rows.norms + length)
        spread = np.sqrt(square) * (1.0 + ROUNDING)
        typical = float(np.median(spread[present]))
        return mean, np.concatenate([spread, spread]) if self.mirrored else spread, typical

    def decide(self, region: LeverBall) -> np.ndarray:
        """Return the decisions of a ball and its levers on signless rows; the products of its centre are known."""
        if region.one:
            return self._decide_by_one_each(region)
        center, own = region.ball.center, self.signless
        tau, slack, down, up = np.empty((4, self.size))
        lever_kernels.seen_from(
            own.kinks, self.signs, center.products, 1.0, self.norms, region.ball.extent, self.rounding, region.theta,
            region.C, own.lo, own.hi, region.C * region.residue, tau, slack, down, up,
        )  # fmt: skip
        mean, spread, typical = self.around
        seen = Levered(
            tau, down, up, slack, typical, self.norms, spread, mean, self.signless_place,
            self.bounds[box_kernels.PRODUCT],
        )  # fmt: skip
        return seen.decide(region.ball.radius)

    def _decide_by_one_each(self, region: LeverBall) -> np.ndarray:
        """Return the decisions of one lever on either side; only the rows that make them are read."""
        own, center, extent = self.signless, region.ball.center, region.ball.extent
        (mean, spread, typical), radius = self.around, max(region.ball.radius, lever_kernels.LEAST)
        tau, status = np.empty(self.size), np.empty(self.size, dtype=np.int8)
        listed, weights = np.empty((2, lever_kernels.FEWER), dtype=np.int64), np.empty((2, lever_kernels.FEWER))
        offsets, (lengths, away), centers = np.empty((2, 2)), np.empty((2, 2)), np.empty((2, mean.size))
        counts = lever_kernels.one_lever_each(
            own.kinks, self.signs, center.products, 1.0, self.norms, extent, self.rounding, region.theta, region.C,
            own.lo, own.hi, region.C * region.residue, self.largest, radius, typical or 1.0, tau, listed, weights,
            offsets,
        )  # fmt: skip
        for h, count in enumerate(counts):
            rows, where = self.signless_place(listed[h, :count])
            own_part = slice(h, h + 1)
            lever_kernels.lever_centers(
                rows, where, weights[own_part], mean, ROUNDING, centers[own_part], lengths[own_part],
                away[own_part],
            )  # fmt: skip
        lever_kernels.decide_by_one_each(
            tau, own.kinks, self.signs, self.norms, extent, self.rounding, spread, radius, offsets, away, status, 0,
            self.size,
        )  # fmt: skip
        return status * self.signs

    def screen(self, region) -> Screened:
        """Decide by balls and their levers, or by any region through the best intercepts of its points."""
        if isinstance(region, LeverRange):
            return self.screened(region.decide(self, lambda center: self.signs * self.margins(center)))
        levers = isinstance(region, LeverBall | LeverPencil)
        return super().screen(region) if levers else self.screened(self._by_interval(region))

    def _by_interval(self, region: Region) -> np.ndarray:
        """Return the decisions of a region without a dual point on signless rows.

        With a fixed centre ``mu`` the kinks ``c_i - (x_i - mu).w`` lie in ranges, and each best ``mu.w + b`` lies
        between the best for their lower and for their upper ends.
        """
        mean, spread, _ = self.around
        length = float(np.sqrt(mean @ mean))
        size, own = self.extent(region), self.signless
        products = tuple(
            self.signs * (self.margins(p.vector) if p.products is None else p.products) - float(mean @ p.vector)
            for p in region.points
        )
        # A larger norm is a looser bound; products with rows far from the origin are not as good as their spread asks.
        lower, upper = region.bounds(products, np.maximum(spread, FAR * (self.norms + length)))
        error = self.rounding * ((self.norms + length) * size + np.abs(own.kinks))
        low, high = own.kinks - upper - error, own.kinks - lower + error
        least, most = own.best(low)[0], own.best(high)[1]
        return np.where(least > high, -1, np.where(most < low, 1, 0)).astype(np.int8)

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
        mass = float(np.abs(reference.theta).sum() + np.abs(plain.theta).sum())
        plain.errors = plain.errors._replace(total=plain.errors.total + C * reference.shift)
        unsure = gamma(self.size + 8) + self.bounds[box_kernels.SLOPE]
        rest_error = C * (unsure * mass + reference.residue)
        plain.free = Freed(self.signs, rest, rest_error, reference.intercept, self.typical or 1.0)
        return plain

    def _take(self, index: np.ndarray):
        """Return a copy of surviving rows without their signs; that of all rows is kept."""
        if index.size < self.size or self.mirrored:
            self._whole = None
            return self.signless_rows(index)
        if self._whole is None:
            self._whole = self.rows.whole()
        return self._whole
