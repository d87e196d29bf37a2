"""The box models behind a kernel (Ogawa 2014, Section IV-D; Wang 2014, DVI_s*), without intercept.

Objective   min_w  P_C(w) = 1/2 ||w||^2 + C sum_i phi_i(c_i - z_i.w)  in the kernel's space, z_i = s_i Phi(x_i)
Dual        max    D_C(theta) = C c.theta - C^2/2 theta'Q theta,  Q_ij = s_i s_j K(x_i, x_j),  theta_i in [lo_i, hi_i]
Stop        gap = P - D <= tol * P, on the full data, with w = C sum_i theta_i z_i.

Everything is expressed by Q: ``z_i.w = C (Q theta)_i``, ``||w||^2 = C^2 theta'Q theta``, ``||z_i|| = sqrt(Q_ii)``. The
reference's ``total`` is the vector ``Q theta``, updated by the entries of theta that change, so that BT1 costs no
kernel row and BT2 and IT cost those in which the guess differs from a dual point already multiplied (Section IV-E).

Rounding: a kernel value is off by at most ``rows.error ||z_i|| ||z_j||``, so ``(Q theta)_i`` by ``||z_i||`` times one
number, which accompanies every vector of products: ``rows.error``, and ``gamma`` of the operations in a row, times the
spread ``sum_j |theta_j| ||z_j||`` of the summands. ``w`` has the coefficients ``C theta_i`` that are reported,
rounded: within ``UNIT`` times C times the spread of the dual point's own.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import box as kernels
from screenpath.kernels.problem.partition import ROWS, box_closed_form, box_ends, box_survivors
from screenpath.kernels.rows import gram
from screenpath.kernels.solve import start as start_kernels
from screenpath.numbers import states
from screenpath.numbers.accurate import two_sum
from screenpath.numbers.rounding import OUTWARD, UNIT, blurred, gamma, meets
from screenpath.problem import ends, smooth
from screenpath.problem.box import BoxModel
from screenpath.problem.box_types import Certificate, Screened, one_sided
from screenpath.problem.kernel_products import KernelReduced, Multiplied, drift, formed, moved, spread_of, sum_error
from screenpath.problem.sharp import kernel_sharpened
from screenpath.regions.geometry import Ball, KernelPoint

MANY = 1024  # rows from which on a closed form is looked at before it is formed
FEW = 32  # entries that change; what else products could be updated from is not worth a look


class KernelModel(BoxModel):
    """A box model whose rows, signs included, are known through a kernel."""

    refines = True
    compiled = False  # a walk of its own would have to read the matrix
    fresh_every = 64  # a pass over a kernel matrix is long

    def __init__(self, rows, c, lo, hi, name: str = "svm", bend=None, **rounding):
        super().__init__(rows, c, lo, hi, name=name, **rounding)
        self.bend = bend
        self.mirrored, self.signs = rows.mirrored, rows.signs.astype(np.int8)
        self._changes = np.empty(self.size, dtype=np.int64), np.empty(self.size)  # where a list of changes is written
        self._guess: Any = None  # Multiplied: the last guess with its products, and what it was made for
        self._guess_for: tuple[Any, float] = (None, 0.0)
        self._start: tuple[Any, Any] = (None, None)  # from which reference the solver has started, and where

    def _bounds(self) -> np.ndarray:
        """Return the error bounds of sums over rows; those of products are kept separately here."""
        if not np.isfinite(self.norms).all():
            row = int(np.flatnonzero(~np.isfinite(self.norms))[0])
            power = self.rows.blocks.function.name == "poly"
            raise DataError(
                f"overflow: the kernel of row {row + 1} with itself exceeds the range of floating point",
                "scale the data (`scale=maxabs`)" + ", or take a smaller `gamma` or `degree`" * power,
            )
        steep, inflated = np.maximum(np.abs(self.lo), np.abs(self.hi)), 1.0 + gamma(self.size + 8)
        bounds = np.zeros(kernels.TINY + 1)
        bounds[kernels.ROW_SUM] = gamma(ROWS + self.size // ROWS + 16)
        bounds[kernels.ALL_NORMS] = float(steep @ self.norms) * inflated
        bounds[kernels.ALL_KINKS] = float(steep @ np.abs(self.c)) * inflated
        bounds[kernels.ALL_ONES] = float(steep.sum()) * inflated
        bounds[kernels.KINK] = float((np.abs(self.tail) * (steep > 0.0)).max(initial=0.0))
        bounds[kernels.ZERO] = float(np.maximum(self.lo * self.c, self.hi * self.c).sum())
        bounds[kernels.SLOPE] = self.inexact
        return bounds

    # -- products ------------------------------------------------------------------------------------------------

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``z_i.w`` for a w given by its dual coefficients, shape (n,)."""
        return self.rows.weighted_sum(w)

    def middle(self, reference: Certificate, theta: np.ndarray, C: float):
        """Return the point halfway between the reference's w and ``C sum theta_i z_i``, see :meth:`BoxModel.middle`."""
        spread = self._spread(theta)
        self._guess = guess = self._updated(theta, self._guess, reference, spread)
        self._guess_for = (reference, C)
        point = cast(KernelPoint, reference.point)
        vector, products = np.empty((2, self.size))
        sqnorm, dual_sq, terms = kernels.box_halfway(
            point.vector, point.products, theta, guess.total, C, vector, products
        )
        spread = 0.5 * (C * spread + point.spread) * OUTWARD
        error = (0.5 * (C * guess.product_error + point.error) + 4.0 * UNIT * spread) * OUTWARD
        center = KernelPoint(vector, products, max(sqnorm, 0.0), spread, error)
        rounding = spread * (error + 4.0 * UNIT * (spread + error)) + gamma(self.size + 8) * terms
        return center, C * C * dual_sq, rounding * OUTWARD, 0.0

    def _updated(self, theta, near: Multiplied | None, reference, spread: float) -> Multiplied:
        """Return ``theta`` with its products, from those of ``near`` or the reference: whichever differs in fewer
        entries. ``spread`` is that of ``theta``.
        """
        index, step = self._changes
        for known in (near, reference):
            if known is None or known.updates >= self.fresh_every:
                continue
            changed, nonzero, apart = start_kernels.changes(theta, known.theta, reference.theta, index, step)
            if changed == 0:
                return Multiplied(theta, known.total, known.updates, known.product_error)
            if changed < nonzero and (changed < FEW or changed <= apart):
                return Multiplied(theta, *moved(known, self.rows, index[:changed], step[:changed], spread))
        return formed(self.rows, theta)

    def _sum_error(self, weights: np.ndarray) -> float:
        """Return the error of ``Q weights`` computed from all rows."""
        return sum_error(self.rows, int(np.count_nonzero(weights)), self._spread(weights))

    def _spread(self, theta: np.ndarray) -> float:
        """Return an upper bound of ``sum_j |theta_j| ||z_j||``, to which the rounding of a product is relative."""
        return spread_of(theta, self.norms)

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(self, C: float, w, theta: np.ndarray, reference=None, margins=None) -> Certificate:
        """Evaluate both objectives on the full data; ``w`` is always that of the dual point."""
        known, start = self._start
        self._start = (None, None)
        theta = one_sided(self, theta)
        spread = self._spread(theta)
        return self._pair(C, self._updated(theta, start if known is reference else None, reference, spread), spread)

    def _pair(self, C, known: Multiplied, spread: float) -> Certificate:
        return Certificate(**self._numbers(C, known, spread, float(self.bounds[kernels.KINK])))

    def _numbers(self, C, known: Multiplied, spread: float, floor=0.0, b=0.0, shift=0.0, cost=0.0) -> dict[str, Any]:
        """Return the fields of a certificate for a dual point whose products are known.

        ``floor`` is what the intercept ``b``, and the kinks, add to the error of linear forms. ``shift`` and ``cost``
        are those of :class:`Certificate`.
        """
        theta, total, product_error, slope = known.theta, known.total, known.product_error, self.bounds[kernels.SLOPE]
        # By the rounding of C theta, of the difference of two of a row, and of the ends of the box.
        moved = ((1.0 + self.mirrored) * UNIT + slope) * C * spread
        off = self._off(C, product_error, spread)
        forms, box, bent = C * total + self.signs * b, (self.lo, self.hi, theta), 0.0
        if self.bend is None:
            xi, ell, plain, slack = kernels.box_sums(self.c, forms, *box, self.norms, off, floor)
            unsure = off * self.bounds[kernels.ALL_NORMS] + floor * self.bounds[kernels.ALL_ONES]
        else:
            # Less the intercept first: what rounds off kinks far from 0 may be more than the slopes of losses.
            kinks, rest = two_sum(self.c, -self.signs * b)
            rest += self.tail
            t, error = kinks - C * total + rest, off * self.norms + 4.0 * UNIT * np.abs(rest)
            xi, ell, plain, slack, bent, unsure = smooth.sums(self.c, t, *box, error, self.bend)
        n_R, n_L, nonzero = box_ends(theta, self.lo, self.hi, np.empty(self.size, dtype=np.int8), 0, self.size)
        total_sq, terms = gram.inner(theta, total)
        total_sq, total_error = max(total_sq, 0.0), spread * product_error + gamma(nonzero + 8) * terms
        total_error *= 1.0 + gamma(self.size)
        w_sq, all_rows = C * C * total_sq, self.bounds[kernels.ROW_SUM] + slope
        loss_error = all_rows * xi + unsure
        slack, away = (slack + cost) * (1.0 + all_rows) + 2.0 * slope * (xi + bent), moved + C * shift
        gap = (0.5 * away * away + C * slack) * OUTWARD
        gap += kernels.UNDERFLOW * (1.0 + C) if nonzero or slack > 0.0 else 0.0
        w_sq_error = C * C * (total_error + 8.0 * UNIT * total_sq) + moved * (2.0 * C * math.sqrt(total_sq) + moved)
        return {
            "C": C,
            "point": KernelPoint(C * theta, C * total, w_sq, C * spread * OUTWARD, off),
            "theta": theta,
            "total": total,
            "total_sq": total_sq,
            "inner": C * total_sq,
            "xi": xi,
            "ell": ell,
            "slack": slack,
            "error": loss_error + all_rows * (xi + 2.0 * (self.bounds[kernels.ALL_KINKS] + bent)),
            "primal": 0.5 * w_sq + C * xi,
            "primal_error": (C * loss_error + 0.5 * w_sq_error) * OUTWARD,
            "gap": gap,
            "rounding": max(gap - C * plain, 0.0),
            "n_R": n_R,
            "n_L": n_L,
            "updates": known.updates,
            "total_error": total_error,
            "product_error": product_error,
        }

    @staticmethod
    def _off(C, product_error, spread: float) -> float:
        """Return the error of the product of a row with ``w``, over the norm of the row."""
        return C * (product_error + 4.0 * UNIT * (spread + product_error)) * OUTWARD

    def forms_of(self, C: float, theta: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return the forms that the box model of the dual point has, see :mod:`screenpath.problem.smooth`."""
        return C * total if self.bend is None else C * total + self.bend * theta

    def form_error(self, certificate: Certificate) -> np.ndarray:
        """Return the error of each linear form of a certificate."""
        return cast(KernelPoint, certificate.point).error * self.norms + np.abs(self.tail)

    def sharpened(self, certificate: Certificate, tol: float) -> Certificate:
        """Return a certificate with a narrower bound on rounding.

        Sums that have been updated many times gather errors: formed anew, at the cost of their rows, they are far
        cheaper than sums in twice the precision. These are for losses with kinks.
        """
        if certificate.updates:
            certificate = self.certify(certificate.C, None, certificate.theta)
            if meets(certificate, tol) and not blurred(certificate, tol):
                return certificate
        return kernel_sharpened(self, certificate, tol) if self.bend is None else certificate

    def fallbacks(self, C: float, reference: Certificate) -> list[Certificate]:
        return [self.certify(C, None, theta) for theta in (np.zeros(self.size), reference.theta)]

    def goes_on(self, C: float, certificate: Certificate, reference: Certificate) -> bool:
        """Tell whether zero, or the reference's w, has a smaller primal value at ``C`` than a certified pair."""
        point = reference.point
        known = kernels.above_known(C, certificate.primal, point.sqnorm, reference.xi, self.bounds)
        return known != kernels.NOWHERE

    def no_worse(self, C: float, certificate: Certificate, reference: Certificate) -> Certificate:
        """Return the certificate: another w would come with its own dual point, which is not as near the optimum."""
        return certificate

    def combined(self, C: float, primal: Certificate, dual: Certificate) -> Certificate:
        """Return the certificate with the better primal point: each dual point has its own here."""
        return primal

    def after(self, certificate: Certificate, reference: Certificate | None, faces=None) -> Certificate:
        """Return the certificate with what the next step begins with: one that is cut short will have changed it."""
        certificate.memory = self._guess, self.rows.keeping
        return certificate

    def state(self, certificate: Certificate) -> dict:
        guess, keeping = certificate.memory or (self._guess, self.rows.keeping)
        guess = guess or Multiplied(np.zeros(0), np.zeros(0), self.fresh_every, 0.0)
        return {
            "C": certificate.C,
            "theta": certificate.theta,
            "total": certificate.total,
            "updates": certificate.updates,
            "product_error": certificate.product_error,
            "rough": np.zeros(0) if certificate.rough is None else certificate.rough,
            "fixed": keeping,
            "guess": guess.theta,
            "guess_total": guess.total,
            "guess_updates": guess.updates,
            "guess_error": guess.product_error,
        }

    def restore(self, state) -> Certificate:
        """Return the certificate of :meth:`state`; no kernel row is touched."""
        theta = states.vector(state, "theta", self.size, self.lo, self.hi)
        total = states.vector(state, "total", self.size)
        C, updates = states.positive(state, "C"), states.count(state, "updates")
        if np.size(state.get("guess")):
            guess, its_total = (states.vector(state, name, self.size) for name in ("guess", "guess_total"))
            its_updates, its_error = states.count(state, "guess_updates"), states.number(state, "guess_error", 0.0)
            self._guess = Multiplied(guess, its_total, its_updates, its_error)
        product_error = states.number(state, "product_error", 0.0)
        self.rows.keeping = states.count(state, "fixed") if "fixed" in state else 0  # as earlier versions
        rough = states.vector(state, "rough", self.size, 0.0) if np.size(state.get("rough", ())) else None
        return self._pair(C, Multiplied(theta, total, updates, product_error, rough), self._spread(theta))

    def closed_form(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return ``s``, ``Q s`` and the largest C up to which ``theta = s`` is optimal (Ogawa 2014, Lemma 9).

        Of a smoothed loss, which has a kink at either end of its curve, none is looked for: a solve begins at 0.
        """
        if self.bend is not None:
            return np.zeros(self.size), np.zeros(self.size), 0.0
        s = box_closed_form(self.c, self.lo, self.hi)
        total = self.slope_of(s)
        return s, total, self.range_of(total)

    def slope_of(self, theta: np.ndarray) -> np.ndarray:
        return self.rows.weighted_sum(theta)

    def start(self, C: float) -> Certificate:
        """Return the first reference, see :meth:`BoxModel.start`: one pass over the matrix; of many rows zero, if the
        closed form is not optimal at ``C``.
        """
        if self.size > MANY and self._surely_beyond(C):
            return self.certify(C, None, np.zeros(self.size))
        s, total, limit = self.closed_form()
        at = min(C, limit) if limit > 0.0 else C
        return self._pair(at, Multiplied(s, total, 0, self._sum_error(s)), self._spread(s))

    def _surely_beyond(self, C: float) -> bool:
        """Tell whether the closed form, whose products cost all kernel rows, is not optimal at ``C``, by a few rows."""
        s, touched = box_closed_form(self.c, self.lo, self.hi), self.rows.touched
        index, some = np.flatnonzero(s), np.unique(np.linspace(0, self.size - 1, FEW).astype(np.int64))
        t = self.c[some] - C * self.rows.sum_at(index, s[index], some)
        self.rows.touched = touched  # set-up
        return bool(np.any((t * self.c[some] < 0.0) & (self.lo[some] < self.hi[some])))

    def polished(self, reference: Certificate, C: float, gap: float) -> Certificate | None:
        """Return the pair of a constant end, more accurate; see :func:`problem.ends.refined`."""
        if self.rows.keeps:  # what goes on to be good for every C is not to rest on values of 4 bytes
            self.rows.keep(False)
            reference, self._guess = self.certify(reference.C, None, reference.theta), None
        self.rows.hasty = reference.rounding < gap  # sums in twice the precision take far longer than all else
        found = ends.refined(self, reference, C, gap)
        unmet, self.rows.hasty = self.rows.hasty and found is not None and not found.gap < gap, False
        return ends.refined(self, reference, C, gap) if unmet else found

    def held(self, reference: Certificate, C: float) -> tuple[Certificate, str] | None:
        """Return the pair known at ``C`` without a solve, see :mod:`problem.ends`; no kernel row is touched."""
        name = ends.known(self, reference, C)
        if name is None:
            return None
        theta, total, error, rough = reference.theta, reference.total, reference.product_error, reference.rough
        if name == ends.CONSTANT:
            ratio = reference.C / C
            theta, total = ratio * theta, ratio * total
            error = drift(ratio * error, self._spread(theta))
            rough = None if rough is None else ratio * OUTWARD * rough
        self._start = reference, Multiplied(theta, total, reference.updates, error, rough, theta)
        return self.certify(C, None, theta, reference), name

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def extent(self, ball: Ball) -> float:
        """Return the size to which ``self.rounding`` is relative in a product, cancellation included."""
        return ball.extent + cast(KernelPoint, ball.center).error / self.rounding * OUTWARD

    # A kernel model has solvers of its own, and these are given its own problems.
    def reduce(  # type: ignore[override]
        self, C: float, screened: Screened, reference: Certificate
    ) -> KernelReduced:
        """Build the problem of the survivors.

        They start from the reference's dual point, from one on the way to the guess (:meth:`_toward`), or with some of
        them at the end of their box where the guess has them (:meth:`_turned`).
        """
        guess, share = self._toward(C, screened, reference)
        problem, way = self._way(screened, reference, guess)
        start, total, step = np.empty((3, self.size))
        index, linear, changed = start_kernels.start_part(problem, way, share, start, total, step)
        error = reference.product_error
        if share > 0.0:  # between the two: products and the point itself are rounded
            both = self._spread(reference.theta) + self._spread(guess.theta)
            error = drift(max(error, guess.product_error), 4.0 * both)
        if changed:
            total += self.rows.weighted_sum(step)
            error = drift(error + self._sum_error(step), self._spread(start))
        updates = max(reference.updates, guess.updates) + 1 if share > 0.0 or changed else reference.updates
        if share == 0.0 and guess is not reference:
            turned = self._turned(C, screened, start, total, step)
            if turned is not None:
                total, updates = turned, updates + 1
                start += step
                error = drift(error + self._sum_error(step), self._spread(start))
        near = Multiplied(start, total, updates, error, reference.rough, start)
        c, lo, hi, norms, _, _ = out = np.empty((6, index.size))
        box_survivors(index, C, self.c, self.lo, self.hi, self.norms, start, total, out, 0)
        reduced = KernelReduced(
            self.rows, index, c, lo, hi, norms, C, (self.lo, self.hi), near, self.bounds[kernels.ALL_NORMS], C * linear,
            float(self.bounds[kernels.SLOPE]), float(self.bounds[kernels.KINK]),
            bend=None if self.bend is None else self.bend[index],
        )  # fmt: skip
        self._start = (reference, reduced.near)
        return reduced

    def _way(self, screened, known, guess) -> tuple:
        """Return the problem, and the way from a known point to the guess, as the kernels of ``start`` take them."""
        way = known.theta, known.total, guess.theta, guess.total
        return (screened.status, self.c, self.lo, self.hi), way

    def _toward(self, C, screened, reference):
        """Return the point towards which the start moves from the reference's before the solve, and how far.

        BT2 and IT know the products of their guess s, so the solver may start anywhere between the two at no kernel
        row. After the part ``1 - C0/C`` of the way, ``alpha = C0 theta + (C - C0) s``: it grows with C on the samples
        in L and stays on the others. ``alpha = C theta`` is kept unless the gap there is far smaller.
        """
        if self._guess_for[0] is not reference or self._guess_for[1] != C:
            return reference, 0.0  # the rule has made no guess
        guess, share = self._guess, max(1.0 - reference.C / C, 0.0)
        return guess, start_kernels.start_share(*self._way(screened, reference, guess), C, share)

    def _turned(self, C, screened, start, total, step) -> np.ndarray | None:
        """Return the products after survivors have changed ends as the guess suggests; None if that gains nothing.

        ``step`` becomes the change of ``start``. The kernel rows read are those that the solver would need.
        """
        problem, way = self._way(screened, Multiplied(start, total, 0, 0.0), self._guess)
        if not start_kernels.start_turns(problem, way, C, step):
            return None
        turned = total + self.rows.weighted_sum(step)
        way = start, total, start + step, turned
        before, after = (start_kernels.start_gap(problem, way, share, C) for share in (0.0, 1.0))
        return turned if after < start_kernels.WORTH * before else None

    def lift(self, C: float, reduced: KernelReduced, solution):  # type: ignore[override]  # as of `reduce`
        """Return (None, theta): w is that of the dual point."""
        theta = reduced.near.theta.copy()
        self._start = (self._start[0], reduced.near)
        self._guess = None if reduced.formed else self._guess  # as rough as what has been formed again was
        start_kernels.start_lift(reduced.index, reduced.alpha, solution.alpha, C, self.lo, self.hi, theta)
        return None, theta

    def counts(self, certificate: Certificate, screened: Screened) -> dict:
        """Return the counts and ratios of a step; the coefficients are of data rows: ``w = sum coef_i Phi(x_i)``."""
        counts = super().counts(certificate, screened)
        own = counts["coefficients"]  # a free intercept is behind them
        counts["coefficients"] = np.append(self.rows.folded(own[: self.size]), own[self.size :])
        return counts
