r"""Linear models with an L2 penalty and a piecewise-linear loss (Wang 2014; Ogawa 2014).

Objective   min_w  P_C(w) = 1/2 ||w||^2 + C sum_i phi_i(c_i - g_i.w),   phi_i(t) = max(lo_i t, hi_i t)
Dual        max    D_C(theta) = C c.theta - 1/2 ||C G'theta||^2,        theta_i in [lo_i, hi_i],   w_theta = C G'theta
Stop        gap = P - D <= tol * P, computed here on the full data, outside the solver, rounding counted, as a sum of
            terms that are never negative: 1/2 ||w - w_theta||^2 + C sum_i (phi_i(t_i) - theta_i t_i), t_i = c_i - g_i.w

===================  ============  ==================  ==============
model                g_i           c_i                 [lo, hi]
===================  ============  ==================  ==============
svm (hinge)          y_i x_i       1                   [0, 1]
lad                  x_i           y_i                 [-1, 1]
quantile, level tau  x_i           y_i                 [tau - 1, tau]
svr, two rows each   x_i; -x_i     y_i-eps; -y_i-eps   [0, 1]
===================  ============  ==================  ==============

Sample and class weights multiply ``[lo, hi]``. ``g_i.w > c_i`` implies ``theta_i = lo_i`` (R), ``<`` implies
``theta_i = hi_i`` (L), ``=`` leaves it between (E). A bias is an extra constant feature and is penalised.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from screenpath.kernels.problem import box as kernels
from screenpath.kernels.problem import partition
from screenpath.numbers import states
from screenpath.problem import INTERVAL, box_rounding, ends, unread
from screenpath.problem.base import RegionModel, Resumable
from screenpath.problem.box_types import Certificate, KnownSum, Screened
from screenpath.problem.reduced import Faces, Reduced
from screenpath.problem.sharp import sharpened
from screenpath.regions.geometry import GAP_ROUNDING, ROUNDING, Point

BEFORE = "before_C", "before_theta", "before_margins", "before_total"  # of a checkpoint: see `BoxModel.after`
FEW = 0.05  # share of screened rows below which a copy of the others costs more than the solver would save


class BoxModel(RegionModel, Resumable):
    """Full problem: the data rows and the box of their dual variables.

    Parameters
    ----------
    rows : rows.MemoryRows or another implementation of the Rows contract
        ``n`` data rows of width ``d``.
    c, lo, hi : ndarray of shape (N,)
        Kink and slopes of each loss. ``N = n``, or ``2 n`` for a mirrored model.
    signs : ndarray of shape (n,) or None
        ``g_i = signs_i x_i``; None for all ones.
    mirrored : bool, default False
        Every data row counts twice, the second half of the dual variables with ``g = -x`` (epsilon-SVR). One pass
        over the data still serves both.
    name : str
        Name used in messages and records.
    tail : ndarray of shape (N,) or float, default 0
        Rounding error of ``c``: a kink of the problem is ``c + tail``.
    inexact : float, default 0
        Largest relative error of ``lo`` and ``hi``.
    """

    fresh_every = 16  # steps after which the sum over rows is formed anew instead of updated
    level: float | None = None  # of a path over a level of the loss
    bend: np.ndarray | None = None  # shape (N,), behind a kernel, of a smoothed loss: see :mod:`problem.smooth`
    parameter = "C"  # what a path follows
    further: Callable | None = None  # ``further(certificate) -> dict`` of further columns of a step
    fresh_unread = 256  # where few rows are read at a step: an update has few, and its rounding is counted

    def __init__(self, rows, c, lo, hi, signs=None, mirrored=False, name="svm", tail=0.0, inexact=0.0):
        self.rows, self.c, self.lo, self.hi, self.tail, self.inexact = rows, c, lo, hi, tail, inexact
        self.mirrored, self.name = mirrored, name
        # One byte each: with many rows every vector of float64 is much memory.
        base = np.ones(rows.n, dtype=np.int8) if signs is None else np.asarray(signs).astype(np.int8)
        self.signs = np.concatenate([base, -base]) if mirrored else base
        self.positive = signs is None and not mirrored  # all signs +1: products need no second look
        self.norms = np.concatenate([rows.norms, rows.norms]) if mirrored else rows.norms
        self.size = self.c.size
        self._whole = None
        self.measure: tuple | None = None  # in which a walk measures rows that it does not read, see `unread`
        self._closed_until = None
        self._closed: tuple | None = None  # the closed form, while a walk may have points at which it is optimal
        self.bounds = self._bounds()
        self.relative = max(GAP_ROUNDING, 2.0 * self.bounds[kernels.FEATURE_SUM])
        self.rounding = max(ROUNDING, 4.0 * self.bounds[kernels.PRODUCT])

    def _bounds(self) -> np.ndarray:
        """Return the error bounds of the model's numbers, in the order of ``kernels.problem.box``."""
        return box_rounding.bounds(self)

    @property
    def compiled(self) -> bool:
        return not self.mirrored

    # -- passes over the data ------------------------------------------------------------------------------------

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``g_i.w`` for every dual variable, shape (N,); one data pass."""
        products = self.rows.margins(w)
        if self.positive:
            return products
        if self.mirrored:
            products = np.concatenate([products, products])
        kernels.sign(products, self.signs, 0, self.size)
        return products

    def weighted_sum(self, theta: np.ndarray, overwrite: bool = False) -> np.ndarray:
        """Return ``G'theta``, shape (d,); rows with a zero weight are not read. ``theta`` may be overwritten."""
        if self.positive:
            return self.rows.weighted_sum(theta)
        out = theta if overwrite else theta.copy()
        kernels.sign(out, self.signs, 0, self.size)
        return self._signed_sum(out)

    def _signed_sum(self, weights: np.ndarray) -> np.ndarray:
        """Return the sum over the data rows with weights that include the signs."""
        if self.mirrored:
            weights = weights[: self.rows.n] + weights[self.rows.n :]
        return self.rows.weighted_sum(weights)

    def cornered(self, w: np.ndarray, b: float) -> tuple[np.ndarray, KnownSum]:
        """Return margins, and the sum over rows at the ends that they and an intercept point to; one data pass of rows
        in memory. Not of a mirrored model.
        """
        theta = np.empty(self.size)

        def weigh(products, first, last):
            rows, signs = slice(first, last), self.signs[first:last]
            theta[rows] = np.where(self.c[rows] > signs * (products + b), self.hi[rows], self.lo[rows])
            return signs * theta[rows]

        margins, total = self.rows.margins_and_sum(w, weigh)
        kernels.sign(margins, self.signs, 0, self.size)
        return margins, KnownSum(theta, total, 0, kernels.sum_error(float(np.count_nonzero(theta)), self.bounds))

    def updated_sum(self, theta: np.ndarray, reference: Certificate | KnownSum | None) -> tuple[np.ndarray, int, float]:
        """Return ``G'theta``, from the reference's sum and the rows that changed if those are fewer; its number of
        updates (0 for a sum over all rows); and a bound on the norm of its rounding error.
        """
        if reference is not None and theta is reference.theta:  # another primal point for it, see `no_worse`
            return reference.total, reference.updates, reference.sum_error
        if reference is None or reference.updates >= self.fresh_every:
            return self._fresh_sum(theta)
        step = np.empty(self.size)
        changed, nonzero = kernels.difference(theta, reference.theta, self.signs, step, 0, self.size)
        if changed >= nonzero:
            del step
            return self._fresh_sum(theta)
        if changed == 0:
            return reference.total, reference.updates, reference.sum_error
        error = kernels.sum_drift(reference.sum_error, float(changed), self.bounds)
        return reference.total + self._signed_sum(step), reference.updates + 1, error

    def _fresh_sum(self, theta: np.ndarray) -> tuple[np.ndarray, int, float]:
        """Return the sum over all rows as :meth:`updated_sum` does."""
        return self.weighted_sum(theta), 0, kernels.sum_error(float(np.count_nonzero(theta)), self.bounds)

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(self, C: float, w: np.ndarray | None, theta: np.ndarray, reference=None, margins=None) -> Certificate:
        """Evaluate both objectives on the full data.

        ``w`` None takes ``C G'theta``; ``theta`` must be inside its box. ``reference`` is an earlier certificate whose
        sum over rows is updated instead of computed anew; ``margins`` are ``g_i.w`` if known.
        """
        total, updates, error = self.updated_sum(theta, reference)
        if w is None:
            w = C * total
        if margins is None:
            margins = self.margins(w)
        return self._certificate(C, w, theta, total, updates, margins, error)

    sharpened = sharpened

    def moved(self, certificate: Certificate, w: np.ndarray) -> Certificate:
        """Return the certificate of another primal point with the same dual point; one data pass."""
        known = certificate.updates, self.margins(w), certificate.sum_error
        return self._certificate(certificate.C, w, certificate.theta, certificate.total, *known)

    def kinks_of(self, certificate: Certificate) -> tuple[np.ndarray, np.ndarray]:
        """Return the kinks of all ``g.w``, as a sum of two doubles."""
        return self.c, np.broadcast_to(self.tail, self.c.shape)

    def errors_of(self, certificate: Certificate) -> tuple[float, float]:
        """Return ``a`` and ``b``: but for their own rounding, distances from kinks are off by ``a norms + b``."""
        return kernels.product_errors(certificate.point.vector, self.bounds)

    def take(self, index: np.ndarray):
        """Return a copy of the rows ``g_i`` of some dual variables."""
        return self.rows.take(self._where(index), self.signs[index].astype(np.float64))

    def fallbacks(self, C: float, reference: Certificate) -> list[Certificate]:
        pairs = (None, np.zeros(self.size)), (None, reference.theta), (reference.point.vector, reference.theta)
        return [self.certify(C, *pair) for pair in pairs]

    def no_worse(self, C: float, certificate: Certificate, reference: Certificate) -> Certificate:
        """Return a certificate with the reference's ``w`` or zero if better at ``C``: a dual solver may stop worse."""
        point = reference.point
        place = kernels.above_known(C, certificate.primal, point.sqnorm, reference.xi, self.bounds)
        if place == kernels.NOWHERE:
            return certificate
        w, margins = point.vector, point.products
        if place == kernels.AT_ZERO:
            w, margins = np.zeros(w.size), np.zeros(self.size)
        return self.certify(C, w, certificate.theta, certificate, margins)

    def combined(self, C: float, primal: Certificate, dual: Certificate) -> Certificate:
        if primal is dual:
            return primal
        return self.certify(C, primal.point.vector, dual.theta, dual, primal.point.products)

    def state(self, certificate: Certificate) -> dict:
        return {
            "C": certificate.C, "w": certificate.point.vector, "theta": certificate.theta, "total": certificate.total,
            "updates": certificate.updates, "sum_error": certificate.sum_error,
            **({} if certificate.before is None else dict(zip(BEFORE, certificate.before, strict=True))),
            **({} if certificate.faces is None else certificate.faces.state()), **unread.state(certificate),
            # Those of the closed form, say, are not those of a pass in their last digits.
            **({} if certificate.memory is not None else {"margins": certificate.point.products}),
        }  # fmt: skip

    def restore(self, state) -> Certificate:
        """Return the certificate of :meth:`state`; a data pass for the margins, and one for the sum."""
        w, total = (states.vector(state, name, self.rows.d) for name in ("w", "total"))
        theta = states.vector(state, "theta", self.size, self.lo, self.hi)
        C, updates = states.positive(state, "C"), states.count(state, "updates")
        sum_error = states.number(state, "sum_error", 0.0, box_rounding.largest_sum_error(self, updates))
        box_rounding.check_sum(self, theta, total, sum_error)
        margins = self.margins(w)
        if "margins" in state:
            formed, margins = margins, states.vector(state, "margins", self.size)
            slope, floor = kernels.product_errors(w, self.bounds)
            if not np.all(np.abs(margins - formed) <= 4.0 * (slope * self.norms + floor)):
                raise ValueError("margins are not those of w")
        certificate = self._certificate(C, w, theta, total, updates, margins, sum_error)
        if BEFORE[0] in state:
            earlier = states.vector(state, BEFORE[1], self.size, self.lo, self.hi)
            margins, sums = states.vector(state, BEFORE[2], self.size), states.vector(state, BEFORE[3], self.rows.d)
            certificate.before = states.positive(state, BEFORE[0]), earlier, margins, sums
        certificate.faces = Faces.restored(state, self.size)
        unread.restore(self, certificate, state)
        return certificate

    def _certificate(self, C, w, theta, total, updates, margins, sum_error) -> Certificate:
        w_sq, *numbers = kernels.box_certificate(  # in the order of the certificate's entries
            C, w, theta, total, sum_error, margins, self.c, self.lo, self.hi, self.norms, self.bounds
        )
        numbers += [updates, sum_error]
        known = {"relative": self.relative, "level": self.level}
        return Certificate(C, Point(w, margins, w_sq), theta, total, *numbers, **known)

    # -- closed-form start ---------------------------------------------------------------------------------------

    def closed_form(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return ``s``, ``G's`` and the largest C up to which ``theta = s`` is optimal (Ogawa 2014, Lemma 9).

        ``s_i`` is ``hi_i`` where ``c_i > 0`` and ``lo_i`` elsewhere; valid while every ``c_i - g_i.w`` keeps its sign.
        """
        self._closed = self._closed_form()
        return self._closed[:3]

    def _closed_form(self) -> tuple:
        """Return what :meth:`closed_form` does, and ``G G's``."""
        s = partition.box_closed_form(self.c, self.lo, self.hi)
        total = self.weighted_sum(s)
        slope = self.margins(total)
        return s, total, self.range_of(slope), slope

    def slope_of(self, theta: np.ndarray) -> np.ndarray:
        """Return the products of the rows with ``G'theta``."""
        return self.margins(self.weighted_sum(theta))

    def range_of(self, slope: np.ndarray) -> float:
        """Return the largest C up to which no ``c_i - C slope_i`` of a row with weight changes its sign."""
        self._closed_until = kernels.box_range(self.c, np.where(self.lo < self.hi, slope, 0.0))
        return self._closed_until

    @property
    def closed_until(self) -> float:
        """Return the largest C at which the closed form is optimal (Ogawa 2014's C_min); two passes at most, set-up."""
        if self._closed_until is None:
            touched = self.rows.touched
            self._closed_until = self.closed_form()[2]
            self.rows.touched = touched
        return self._closed_until

    def start(self, C: float) -> Certificate:
        """Return the first reference: the closed form at the largest parameter <= C where it is optimal.

        If none exists (because a target is exactly 0, say) the same pair is taken at ``C``: its gap is known, and every
        rule is safe with it. If zero has no loss, the start is zero: no solver could reach a relative gap of a primal
        value of 0.
        """
        limit = (closed := self._closed or self._closed_form())[2]
        self._closed = closed if limit > C else None
        if not limit > 0.0 and self.bounds[kernels.ZERO] == 0.0:
            return self.certify(C, None, np.zeros(self.size))
        return self._certificate_of(closed, min(C, limit) if limit > 0.0 else C)

    def exact_until(self, reference: Certificate, C: float) -> bool:
        return C <= reference.C and self.level is None and self.bend is None

    rests = ends.rests

    def polished(self, reference: Certificate, C: float, gap: float) -> Certificate | None:
        return ends.polished(self, reference, C, gap)

    def held(self, reference: Certificate, C: float) -> tuple[Certificate, str] | None:
        """Return the pair that is known at ``C`` without a solve, at the ends of a path; see :mod:`problem.ends`."""
        name = ends.known(self, reference, C)
        if name == ends.CONSTANT:
            return self._certificate(C, *ends.constant(self, reference, C)), name
        return (self._closed_at(C), name) if name else None

    def _closed_at(self, C: float) -> Certificate:
        """Return the certificate of the closed form; only a resumed path's first such point takes passes, as set-up."""
        if self._closed is None:
            touched = self.rows.touched
            self._closed = self._closed_form()
            self.rows.touched = touched
        return self._certificate_of(self._closed, C)

    def _certificate_of(self, closed: tuple, C: float) -> Certificate:
        s, total, _, slope = closed
        error = kernels.sum_error(float(np.count_nonzero(s)), self.bounds)
        return self._certificate(C, C * total, s, total, 0, C * slope, error)

    def after(self, certificate: Certificate, reference: Certificate | None, faces=None) -> Certificate:
        if reference is None:
            return certificate
        if reference.C < certificate.C:
            certificate.before = reference.C, reference.theta, reference.point.products, reference.total
        certificate.faces = faces
        return certificate

    def losses(self, near: Certificate) -> Callable[[np.ndarray], tuple[float, float]]:
        def loss(products):
            t = self.c - products
            return float(np.maximum(self.lo * t, self.hi * t).sum()), 0.0

        return loss

    def guess(self, products: np.ndarray, factor: float) -> tuple[np.ndarray, float, float | None]:
        """Return the dual point with rows at the end of their side of ``factor products``, its ``c . theta``, and what
        a free intercept's signed sum is off by; None without one.
        """
        guess = np.empty(self.size)
        return guess, kernels.box_guess(self.c, products, factor, self.lo, self.hi, guess), None

    def corner(self, products: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the dual point that products suggest, rows at the end of their side; and how much an exactly feasible
        one near it differs in ``c . theta``, and in the sum over rows, at most.
        """
        return np.where(self.c > products, self.hi, self.lo), 0.0, 0.0

    def middle(self, reference: Certificate, theta: np.ndarray, C: float) -> tuple[Point, float, float, float]:
        """Return the point halfway between the reference's w and ``C G'theta`` (centre of a pair's ball).

        Returns ``center``: its products with the rows are not known; ``dual_sq``: ``||C G'theta||^2``; ``rounding``:
        bound on the rounding error of the squared norms beyond a tiny part of their own size; ``shift``: bound on the
        distance of the centre from its exact position.
        """
        total, _, error = self.updated_sum(theta, reference)
        center, shift = 0.5 * (reference.point.vector + C * total), 0.5 * C * error
        dual_sq, center_sq = C * C * float(total @ total), float(center @ center)
        rounding = 4.0 * shift * (np.sqrt(dual_sq) + np.sqrt(center_sq) + shift)
        return Point(center, None, center_sq), dual_sq, rounding, shift

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def screen(self, region) -> Screened:
        status = np.empty(self.size, dtype=np.int8)
        products = tuple(p.products if p.products is not None else self.margins(p.vector) for p in region.points)
        n_R, n_L = region.decide(products, self.norms, self.c, self.extent, self.rounding, status)
        return Screened(status, n_R, n_L)

    def extent(self, region) -> float:
        """Return the size to which ``ROUNDING`` is relative in a product with a row of norm 1."""
        return region.extent

    def nothing_screened(self) -> Screened:
        return Screened(np.zeros(self.size, dtype=np.int8), 0, 0)

    def reduce(self, C: float, screened: Screened, reference: Certificate) -> Reduced:
        """Build the problem of the survivors, or of all rows if hardly any is fixed; fixed rows enter by their sum."""
        if 0 < screened.n_R + screened.n_L < FEW * self.size:
            screened = self.nothing_screened()
        known, start_total, ell, ahead, apart = self._looking_ahead(C, reference)
        theta = known.copy()
        index, linear, moved = partition.box_part(screened.status, self.lo, self.hi, self.c, theta, ell)
        if moved.size or apart is not None:  # few of them, so the sum at the start costs little
            step = np.zeros(self.size) if apart is None else apart
            partition.box_moves(moved, screened.status, self.lo, self.hi, self.signs, theta, step)
            start_total = start_total + self._signed_sum(step)
            del step, apart  # with many rows each of these is much memory
        earlier = 0.0 if ahead is None or reference.before is None else reference.before[0]
        error = kernels.start_error(
            earlier, reference.C, C, reference.sum_error, float(moved.size), float(self.size), self.fresh_every,
            self.bounds,
        )  # fmt: skip
        if index.size == self.size:
            c, norms, lo, hi = self.c, self.norms, C * self.lo, C * self.hi
            start, margins = C * known, reference.point.products
        else:
            c, lo, hi, norms, start, margins = out = np.empty((6, index.size))
            pair = known, reference.point.products
            partition.box_survivors(index, C, self.c, self.lo, self.hi, self.norms, *pair, out, 0)
        stored = self.rows.stored
        return Reduced(
            take=lambda: self._take(index), sparse=self.rows.sparse,
            place=None if stored is None else (stored, self._where(index), self.signs[index]), index=index, c=c, lo=lo,
            hi=hi, norms=norms, offset=C * linear, errors=kernels.errors_of(C, error, self.rounding, self.bounds),
            start_alpha=start, start_sum=C * start_total, start_w=reference.point.vector, start_margins=margins,
            theta=theta, foreseen=None if ahead is None else ahead[index], fetch=self.fetch, faces=reference.faces,
        )  # fmt: skip

    def _looking_ahead(self, C: float, reference: Certificate) -> tuple:
        """Return the dual point to start from, its sum over rows, ``c . theta``, the predicted products with its ``w``
        or None, and the rows missing from the sum, as signed weights, or None.

        The start is the reference's; or, if that remembers the one before it, the line through both at ``C``: while no
        row reaches or leaves its kink, ``alpha = C theta`` is linear in C, and so is ``w``.
        """
        if reference.before is None or not C > reference.C:
            return reference.theta, reference.total, reference.ell, None, None
        before, earlier, margins, total = reference.before
        apart = np.empty(self.size)
        theta, linear = partition.box_line(
            before, earlier, reference.C, reference.theta, C, self.lo, self.hi, self.signs, self.c, apart
        )
        total = partition.sum_line(before, total, reference.C, reference.total, C)
        ahead = partition.margin_line(before, margins, reference.C, reference.point.products, C)
        return theta, total, linear, ahead, apart

    def fetch(self, index: np.ndarray) -> tuple:
        """Return a copy of rows, and their norms, that a walk had before it was stopped: it does not count as work."""
        touched = self.rows.touched
        rows = self._take(index)
        self.rows.touched = touched
        return rows, self.norms[index]

    def _where(self, index: np.ndarray) -> np.ndarray:
        return index % self.rows.n if self.mirrored else index

    def _take(self, index: np.ndarray):
        """Return a copy of surviving rows; that of all rows is kept: an unscreened path needs it at every step."""
        if index.size < self.size:
            self._whole = None
            return self.take(index)
        if self._whole is None:
            touched = self.rows.touched
            every = self.rows.whole() if self.positive else self.rows.take(self._where(index), self.signs.astype(float))
            self._whole, self.rows.touched = every, touched  # set-up, not work of a step: a resumed path counts alike
        return self._whole

    def forget(self) -> None:
        """Drop the copy of all rows that an unscreened path keeps."""
        self._whole = None

    def lift(self, C: float, reduced: Reduced, solution) -> tuple[np.ndarray, np.ndarray]:
        """Return the pair (w, theta) of the full problem; survivors are clipped to their box, the rest is fixed."""
        partition.box_lift(reduced.theta, reduced.index, solution.alpha, C, self.lo, self.hi)
        return solution.w, reduced.theta

    # -- records -------------------------------------------------------------------------------------------------

    def parameters(self, C: float) -> dict:
        return {self.parameter: float(C if self.level is None else self.level)}

    def counts(self, certificate: Certificate, screened: Screened) -> dict:
        w, ends = certificate.point.vector, (certificate.n_R, certificate.n_L)
        n_E, survivors, ratio, rate = partition.shares(self.size, *ends, screened.n_R, screened.n_L)
        found: dict = {
            "n_R": certificate.n_R, "n_L": certificate.n_L, "n_E": n_E, "screened_R": screened.n_R,
            "screened_L": screened.n_L, "n_survivors": survivors, "rejection_ratio": ratio, "screening_rate": rate,
            "n_features_screened": 0, "nnz_w": int(np.count_nonzero(w)), "coefficients": w,
        }  # fmt: skip
        if certificate.intercept is not None:  # the last coefficient
            found["coefficients"] = np.append(w, certificate.intercept)
            found["extras"] = dict(zip(INTERVAL, (float(certificate.low), float(certificate.high)), strict=True))
        if self.further is not None:
            found["extras"] = {**found.get("extras", {}), **self.further(certificate)}
        return found
