r"""Box models with a free intercept: :mod:`screenpath.models.intercept` has the problem, :mod:`.lever` what is decided.

A pair is ``(w, theta)`` as in :mod:`screenpath.models.box`; the intercept is always the best one for ``w``. Its gap is

    1/2 ||w - w_theta||^2 + C sum_i (phi_i(t_i) - theta_i t_i),   t_i = c_i - g_i.w - s_i b,

as long as ``sum_i s_i theta_i = 0``: each certificate sees to that, and counts what rounding leaves of the sum as a
further distance of ``theta``. So the pair's ball, and with it the walk, is that of the model without intercept.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields

import numpy as np

from screenpath.kernels import box as box_kernels
from screenpath.kernels import intercept as kernels
from screenpath.kernels import partition
from screenpath.models import ends
from screenpath.models.box import BoxModel
from screenpath.models.box_types import Certificate, Screened
from screenpath.models.geometry import ROUNDING, Point
from screenpath.models.intercept import Balanced, Signless, balanced, best_of
from screenpath.models.lever import LeverBall, Levered
from screenpath.models.options import INTERVAL
from screenpath.models.reduced import Reduced
from screenpath.numbers.rounding import UNIT


@dataclass(slots=True)
class FreeCertificate(Certificate):
    """What is known about one pair on the full data, its intercept included.

    Parameters
    ----------
    intercept, low, high : float
        The best intercept for ``w``, and both ends of the interval of the best.
    residue : float
        What the signed sum of ``theta`` is off by at most: an exact dual point differs by this in one row.
    """

    _: KW_ONLY
    intercept: float = 0.0
    low: float = 0.0
    high: float = 0.0
    residue: float = 0.0


@dataclass(slots=True)
class FreeReduced(Reduced):
    """What screening left of a problem with a free intercept; its rows are signless, all else is as they say.

    Parameters
    ----------
    signs : ndarray of shape (k,)
    rest : float
        What the signed dual variables (times C) of the survivors sum up to.
    start_intercept : float
    spread : ndarray of shape (k,)
        Distances of the rows from ``mean``, at least.
    mean : ndarray of shape (d,)
    typical : float
        Median of all rows' distances.
    product : float
        Relative error of a product with a row.
    """

    _: KW_ONLY
    signs: np.ndarray
    rest: float
    start_intercept: float
    spread: np.ndarray
    mean: np.ndarray
    typical: float
    product: float


class FreeModel(BoxModel):
    """A box model whose intercept is free: not penalised.

    Parameters
    ----------
    rows, c, lo, hi, signs, mirrored, name
        As of :class:`screenpath.models.box.BoxModel`.

    Raises
    ------
    UsageError
        Where no intercept is best: all rows pull it the same way.
    """

    def __init__(self, rows, c, lo, hi, signs=None, mirrored=False, name="svm"):
        super().__init__(rows, c, lo, hi, signs, mirrored, name)
        self.signless = Signless.of(self.c, self.lo, self.hi, self.signs)
        self.largest = float(np.maximum(np.abs(self.lo), np.abs(self.hi)).max())
        self.largest_kink = float(np.abs(self.c).max())
        # Here and not when a step first asks for it: a resumed path counts the same passes.
        self.around: tuple[np.ndarray, np.ndarray, float] = self._middle()
        # The losses at w = 0 with the best intercept.
        at_zero = np.zeros(self.size)
        t = self.c - self.signs * best_of(*self.signless.interval(at_zero))
        self.bounds[box_kernels.ZERO] = float(np.maximum(self.lo * t, self.hi * t).sum())

    @property
    def compiled(self) -> bool:
        """Tell that no compiled walk knows the problem."""
        return False

    # -- certificates --------------------------------------------------------------------------------------------

    def certify(self, C, w, theta, reference=None, margins=None) -> FreeCertificate:
        """Evaluate both objectives on the full data, see :meth:`BoxModel.certify`.

        ``theta`` need not sum to 0: rows nearest to their kink are moved. ``margins`` are products with ``w`` alone.
        """
        if w is None:
            w = C * self.updated_sum(theta, reference)[0]
        if margins is None:
            margins = self.margins(w)
        place = self._placed(margins)
        point = self._balanced(theta, place[-1])
        total, updates, error = self.updated_sum(point.theta, reference)
        return self._certificate(C, w, point.theta, total, updates, margins, error, (*place, point))

    def _balanced(self, theta, t) -> Balanced:
        return balanced(theta, t, self.lo, self.hi, self.signs, self.largest)

    def _placed(self, products: np.ndarray) -> tuple:
        """Return both ends of the best intercepts, the one that is reported, and ``c - g.w - s b``."""
        low, high = self.signless.interval(products)
        b = best_of(low, high)
        t = np.empty(self.size)
        kernels.distances(self.c, products, self.signs, b, t)
        return low, high, b, t

    def _certificate(self, C, w, theta, total, updates, margins, sum_error, place=None) -> FreeCertificate:
        if place is None:
            place = self._placed(margins)
            place = (*place, self._balanced(theta, place[-1]))
        low, high, b, t, point = place
        slope, floor = self._form_errors(w, b)
        sums = kernels.all_terms(self.c, margins + self.signs * b, self.lo, self.hi, theta, self.norms, slope, floor)
        residue, shift, cost = self._residue(point, theta, t, slope, floor)
        w_sq, *numbers = box_kernels.box_objectives(
            C, w, total, sum_error + shift, *sums[:3], sums[3] + cost, slope, floor, self.bounds
        )
        n_R, n_L, _ = partition.box_ends(theta, self.lo, self.hi, np.empty(self.size, dtype=np.int8), 0, self.size)
        numbers += [n_R, n_L, updates, sum_error]
        found = FreeCertificate(
            C, Point(w, margins, w_sq), theta, total, *numbers, relative=self.relative, shift=shift, cost=cost,
            intercept=b, low=low, high=high, residue=residue,
        )  # fmt: skip
        found.error += cost + residue * self.largest_kink
        return found

    def _form_errors(self, w, b: float) -> tuple[float, float]:
        """Return what :meth:`product_errors` does for ``g.w + s b``, as if ``b`` were one coefficient more."""
        slope, floor = box_kernels.product_errors(w, self.bounds)
        if slope == 0.0 == floor:  # w = 0: nothing is added to the intercept
            return 0.0, 0.0
        return 1.25 * slope, floor + 2.0 * UNIT * abs(b)

    def kinks_of(self, certificate) -> tuple[np.ndarray, np.ndarray]:
        """Return ``c - s b`` as sums of two doubles."""
        other = -self.signs * certificate.intercept
        total = self.c + other
        part = total - self.c
        return total, (self.c - (total - part)) + (other - part)

    def errors_of(self, certificate) -> tuple[float, float]:
        """Return what the linear forms of a certificate are off by, as :meth:`product_errors` does."""
        return self._form_errors(certificate.point.vector, certificate.intercept)

    def _residue(self, point: Balanced, theta, t, slope: float, floor: float) -> tuple[float, float, float]:
        """Return what the signed sum of ``theta`` is off by, and what that is in the sum over rows and in the gap."""
        if point.residue == 0.0:
            return 0.0, 0.0, 0.0
        if point.theta is not theta or not np.isfinite(point.residue):
            return np.inf, np.inf, np.inf  # numbers beyond the range of floating point
        norms = max(float(self.norms[row]) for row in point.rows)
        most = max(float(abs(t[row]) + slope * self.norms[row]) for row in point.rows) + floor
        more = point.residue * (1.0 + 8.0 * UNIT)
        return more, more * norms, more * most

    # -- closed-form start ---------------------------------------------------------------------------------------

    @property
    def closed_until(self) -> float:
        """Return that there is no parameter up to which a closed form is known to be optimal."""
        return 0.0

    def start(self, C: float) -> FreeCertificate:
        """Return the first reference: ``w = 0`` with the best intercept, and a dual point that is optimal there."""
        zero = np.zeros(self.size)
        t = self._placed(zero)[-1]
        theta = np.where(t > 0.0, self.hi, self.lo)
        at_kink = (t == 0.0) & (self.lo < self.hi)
        if at_kink.any():  # any value will do: all of them have the same share of their box, up or down from its end
            low, high = (np.where((self.signs > 0) == up, self.lo, self.hi)[at_kink] for up in (True, False))
            signs = self.signs[at_kink]
            left = -kernels.excess(np.where(at_kink, 0.0, theta), self.signs)[0] - float((signs * low).sum())
            theta[at_kink] = low + min(max(left / float((signs * (high - low)).sum()), 0.0), 1.0) * (high - low)
        return self.certify(C, np.zeros(self.rows.d), theta, None, zero)

    def exact_until(self, reference, C: float) -> bool:
        """Tell that no closed form is known."""
        return False

    def held(self, reference, C: float):
        """Return the pair that is known at ``C`` without a solve: the reference's ``w`` and ``alpha``, or none.

        Rounding moves the signed sum of ``theta``, which is put right: one sum over the rows that are not 0.
        """
        if not C > reference.C or not ends.rests(self, reference):
            return None
        point = reference.point
        return self.certify(C, point.vector, reference.C / C * reference.theta, None, point.products), ends.CONSTANT

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def _middle(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the mean of the rows, distances of the rows from it (rounded up), and their median; two passes."""
        rows = self.rows
        mean = rows.weighted_sum(np.full(rows.n, 1.0 / rows.n))
        length, product = float(np.sqrt(mean @ mean)), self.bounds[box_kernels.PRODUCT]
        square = np.square(rows.norms) - 2.0 * rows.margins(mean) + length * length
        square = np.maximum(square, 0.0) + 4.0 * product * np.square(rows.norms + length)
        spread = np.sqrt(square) * (1.0 + ROUNDING)
        typical = float(np.median(spread))
        return mean, np.concatenate([spread, spread]) if self.mirrored else spread, typical

    def screen(self, region: LeverBall) -> Screened:
        """Decide every dual variable that the ball and its levers decide; no pass over the data."""
        center, own = region.ball.center, self.signless
        # `region` has the products of its centre: it is a multiple of a point that was certified.
        tau, slack, down, up = np.empty((4, self.size))
        kernels.seen_from(
            own.kinks, self.signs, center.products, 1.0, self.norms, region.ball.extent, self.rounding, region.theta,
            region.C, own.lo, own.hi, region.C * region.residue, tau, slack, down, up,
        )  # fmt: skip
        mean, spread, typical = self.around
        seen = Levered(
            tau, down, up, slack, self.norms, spread, mean, typical, self._signless_rows,
            self.bounds[box_kernels.PRODUCT],
        )  # fmt: skip
        status = seen.decide(region.ball.radius) * self.signs
        return Screened(status, int(np.count_nonzero(status < 0)), int(np.count_nonzero(status > 0)), True)

    def _signless_rows(self, index: np.ndarray):
        return self.rows.take(self._where(index), np.ones(index.size))

    def reduce(self, C: float, screened: Screened, reference) -> FreeReduced:
        """Build the problem of the survivors, see :meth:`BoxModel.reduce`."""
        plain = super().reduce(C, screened, reference)
        index = plain.index
        fixed = plain.theta.copy()
        fixed[index] = 0.0
        mean, spread, typical = self.around
        plain.place = None  # a copy of the rows is needed, without their signs
        return FreeReduced(
            *(getattr(plain, field.name) for field in fields(Reduced) if field.name != "_rows"),
            signs=self.signs[index], rest=-C * kernels.excess(fixed, self.signs)[0],
            start_intercept=reference.intercept, spread=spread[index], mean=mean, typical=typical,
            product=self.bounds[box_kernels.PRODUCT],
        )  # fmt: skip

    def _take(self, index: np.ndarray):
        """Return a copy of surviving rows without their signs; that of all rows is kept."""
        if index.size < self.size or self.mirrored:
            self._whole = None
            return self._signless_rows(index)
        if self._whole is None:
            self._whole = self.rows.whole()
        return self._whole

    # -- records -------------------------------------------------------------------------------------------------

    def counts(self, certificate, screened: Screened) -> dict:
        """Return the counts, ratios and coefficients of a step; the intercept is the last coefficient."""
        found = super().counts(certificate, screened)
        found["coefficients"] = np.append(found["coefficients"], certificate.intercept)
        found["extras"] = dict(zip(INTERVAL, (float(certificate.low), float(certificate.high)), strict=True))
        return found
