"""The box model behind a kernel with a free intercept: :mod:`screenpath.problem.kernel`, with :mod:`.intercept`.

As everywhere behind a kernel, ``w = C sum_i theta_i z_i`` is that of the dual point, whose signed sum is 0: so
``1/2 ||w - w_theta||^2`` is 0 in the gap up to rounding. A lever's centre combines few rows; its products
with all rows need few rows of the kernel matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.problem import intercept as kernels
from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.problem.box_types import Certificate, Screened, one_sided
from screenpath.problem.free import HIDDEN, FreeIntercept
from screenpath.problem.intercept import Balanced, inside
from screenpath.problem.kernel import KernelModel
from screenpath.problem.kernel_products import FAR, KernelReduced, Multiplied, combined
from screenpath.problem.reduced import Freed
from screenpath.problem.smooth import sums
from screenpath.regions.lever import KernelLevered, distance

TRIES = 5  # times that a dual point is moved until it sums to 0 at the intercept of its own w
LOOK = 8  # rows on which a sum is looked at before it is formed on all
SAMPLE = 64  # rows from which a typical distance is taken


class FreeKernelModel(FreeIntercept, KernelModel):
    """A box model behind a kernel whose intercept is free; parameters as of :class:`KernelModel`."""

    def __init__(self, rows, c, lo, hi, name="svm", **rounding):
        super().__init__(rows, c, lo, hi, name, **rounding)
        self.set_up()
        if self.bend is not None:
            nothing = np.zeros(self.size)
            t = self.placed(nothing)[-1]
            self.bounds[box_kernels.ZERO] = sums(t, t, self.lo, self.hi, nothing, 0.0, self.bend)[0]
        present = np.flatnonzero(self.signless.width > 0.0)
        index = present[np.unique(np.linspace(0, present.size - 1, min(SAMPLE, present.size)).astype(np.int64))]
        products, off = self.products_of(index, np.full(index.size, 1.0 / index.size))
        length, square = float(self.norms[index].mean()), float(products[index].mean())
        apart = np.square(self.norms) - 2.0 * products + square  # from the mean of some rows
        self.typical = float(np.sqrt(max(float(np.median(apart[present])), 0.0)))
        lost = off / length + self.rounding if length > 0.0 else 0.0
        self.sampled = index, length, distance(self.norms, products, square, length, lost)

    def closed_form(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return what :meth:`FreeIntercept.closed_form` does; 0 as the dual point where that is optimal for no C.

        Of the products of its dual point, which cost all kernel rows, few are needed to see that.
        """
        if self.bend is not None:
            return KernelModel.closed_form(self)
        if self._closed_form_known is None:
            touched, t = self.rows.touched, self.placed(np.zeros(self.size))[-1]
            if np.count_nonzero((t == 0.0) & (self.signless.width > 0.0)) > 1:
                theta = self.balanced(self.optimal_at_zero(), t).theta
                index, few = np.flatnonzero(theta), np.flatnonzero(self.signless.width > 0.0)[:LOOK]
                found = np.abs(self.rows.sum_at(index, theta[index], few))
                self.rows.touched = touched
                if np.any(found > 2.0 * HIDDEN * self._spread(theta) * self.norms[few]):
                    nothing = np.zeros(self.size)
                    self._closed_form_known = nothing, nothing, 0.0
        return super().closed_form()

    # -- certificates --------------------------------------------------------------------------------------------

    def certify(self, C: float, w, theta: np.ndarray, reference=None, margins=None, intercept=None) -> Certificate:
        """Evaluate both objectives on the full data; if the signed sum of ``theta`` is not 0, rows are moved.

        With a given intercept nothing is: the primal point is that of ``theta`` whatever its sum is.
        """
        known, near = self._start
        self._start = (None, None)
        near, theta = near if known is reference else None, one_sided(self, theta)
        if near is None and reference is not None and reference.rough is not None:
            numbers = reference.total, reference.updates, reference.product_error, reference.rough
            near = Multiplied(reference.theta, *numbers, reference.theta)
        for tries in range(TRIES):
            spread = self._spread(theta)
            alone = near is not None and (reference is None or near.rough is not None or reference.rough is not None)
            found = self._updated(theta, near, near if alone else reference, spread)
            if near is not None and near.rough is not None and found.updates:  # else all of them have been formed
                found = replace(found, rough=near.rough, since=near.since).followed(self.rows, C)
            point = self._placed(C, theta, found.total, intercept)
            while found.rough is not None and (index := self._unsure(C, found, spread, *point)).size:
                found = found.settled(self.rows, index, spread)
                point = self._placed(C, theta, found.total, intercept)
            if point[1].theta is theta or intercept is not None or tries == TRIES - 1:
                break
            near, theta = found, one_sided(self, point[1].theta)
        return self._pair(C, found, spread, point)

    def _placed(self, C, theta, total, intercept=None) -> tuple[tuple, Balanced]:
        """Return the intercept of a dual point (see :meth:`placed`), and the point with a signed sum of 0 there."""
        likely = inside(theta, self.lo, self.hi)
        placed = self.placed(self.forms_of(C, theta, total), likely, intercept)
        return placed, self.balanced(theta, placed[-1], likely)

    def summing_to_zero(self, found: Certificate) -> np.ndarray:
        """Return the dual point of a pair with a given intercept, moved there until its signed sum is 0."""
        return self._placed(found.C, found.theta, found.total, found.intercept)[1].theta

    def _pair(self, C, known: Multiplied, spread: float, point=None) -> Certificate:
        theta, rough, off = known.theta, known.rough, self._off(C, known.product_error, spread)
        (low, high, b, t), point = point or self._placed(C, theta, known.total)
        floor = (2.0 * UNIT * abs(b) if theta.any() else 0.0) + float(self.bounds[box_kernels.KINK])
        residue, shift, cost = self.residue(point, theta, t, off, floor)
        cost += 0.0 if self.bend is None else residue * residue * float(self.bend.max())
        numbers = self._numbers(C, known, spread, floor, b, shift, cost)
        numbers["error"] += cost + residue * self.largest_kink
        if rough is not None:  # whoever asks for products of all rows with the point
            numbers["point"].error += C * OUTWARD * float((rough / self.norms).max())
        return Certificate(
            **numbers, rough=rough, shift=shift, cost=cost, intercept=b, low=low, high=high, residue=residue
        )

    def _unsure(self, C, known: Multiplied, spread: float, placed: tuple, point: Balanced) -> np.ndarray:
        """Return the rows that ``rough`` leaves on no side, to be formed in float64: all others add 0 to losses, ``w``
        and gap, and their kinks are beyond the best intercepts, whatever their products are within their errors.
        """
        low, high, b, t = placed
        off = C * known.rough + self._off(C, known.product_error, spread) * self.norms + self.bounds[box_kernels.KINK]
        off += 8.0 * UNIT * (np.abs(self.c) + C * np.abs(known.total) + abs(b)) + (high - low)
        sure = (known.theta == 0.0) & (self.lo == 0.0) & (t + OUTWARD * off < 0.0)
        sure[[row for row in (point.fall, point.rise) if row >= 0]] = False
        return np.flatnonzero((known.rough != 0.0) & ~sure)

    def form_error(self, certificate) -> np.ndarray:
        error = super().form_error(certificate) + 2.0 * UNIT * abs(certificate.intercept)
        return error if certificate.rough is None else error + certificate.C * certificate.rough

    def at_zero(self, C: float, theta: np.ndarray) -> Certificate:
        return self.certify(C, None, theta)

    def restore(self, state) -> Certificate:
        found = super().restore(state)
        if not np.isfinite(found.residue):
            raise ValueError("its dual variables do not sum to 0")
        return found

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def _toward(self, C, screened, reference):
        """Start the solver from the reference: a guess belongs to another intercept."""
        return reference, 0.0

    def seen(self, tau, down, up, slack) -> KernelLevered:
        return KernelLevered(tau, down, up, slack, self.typical, self.norms, self.products_of)

    def middle_of(self, points: tuple) -> tuple[np.ndarray, float, list[float]]:
        index, length, spread = self.sampled
        return spread, length, [float((self.signs * point.products)[index].mean()) for point in points]

    def products_of(self, index: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        return combined(self.rows, index, weights)

    def mixture(self, index: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the coefficients of ``sum_k share_k x_index[k]``, and an upper bound of its squared norm."""
        center = np.zeros(self.size)
        center[index] = share
        inner, error = self.products_of(index, share)
        return center, float(share @ inner[index]) + error * float(share @ self.norms[index])

    def reduce(self, C: float, screened: Screened, reference) -> KernelReduced:  # type: ignore[override]
        reduced = super().reduce(C, screened, reference)
        if self.rows.roughens:
            t = self.c - reference.C * reference.total - self.signs * reference.intercept
            reduced.near.roughen(np.flatnonzero((self.lo == 0.0) & (t < -FAR)))
        fixed = reduced.near.theta.copy()
        fixed[reduced.index] = 0.0
        rest, unsure = kernels.excess(fixed, self.signs)
        rest_error = C * (unsure + reduced.slope * float(np.abs(fixed).sum()))
        reduced.free = Freed(self.signs, -C * rest, reference.intercept, self.typical, rest_error)
        return reduced
