r"""The box model seen through a kernel (Ogawa 2014, Section IV-D; Wang 2014, DVI_s*). No free bias.

Objective   min_w  P_C(w) = 1/2 ||w||^2 + C sum_i phi_i(c_i - z_i.w)  in the kernel's space, z_i = s_i Phi(x_i)
Dual        max    D_C(theta) = C c.theta - C^2/2 theta'Q theta,  Q_ij = s_i s_j K(x_i, x_j),  theta_i in [lo_i, hi_i]
Stop        gap = P - D <= tol * P, on the full data, with w = C sum_i theta_i z_i.

Everything is said with Q: ``z_i.w = C (Q theta)_i``, ``||w||^2 = C^2 theta'Q theta``, ``||z_i|| = sqrt(Q_ii)``. The
reference's ``total`` is the vector ``Q theta``, updated by the entries of theta that change, so that BT1 costs no
kernel row and BT2 and IT cost those in which the guess differs from a dual point already multiplied (Section IV-E).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screenpath.geometry import GAP_ROUNDING, ROUNDING, Ball, KernelPoint
from screenpath.kernels import box as kernels
from screenpath.kernels import start as start_kernels
from screenpath.kernels.parting import box_closed_form, box_ends
from screenpath.models.box import BoxModel, Certificate, Screened

# Rounding of one product (Q theta)_i, relative to the sum of the magnitudes it is formed from, ...
PRODUCT_ROUNDING = 1e-15
FEW = 32  # entries that change; what else products could be updated from is not worth a look
UPDATES = 16  # ... and how many updates add as much again


def product_rounding(updates: int) -> float:
    """Return the rounding of a product that has been updated so often."""
    return PRODUCT_ROUNDING * (1.0 + updates / UPDATES)


@dataclass(slots=True)
class Multiplied:
    """A dual point and its products.

    Parameters
    ----------
    theta, total : ndarray of shape (n,)
        The point and ``Q theta``.
    updates : int
        Times ``total`` has been updated since it was last formed from all rows.
    """

    theta: np.ndarray
    total: np.ndarray
    updates: int


@dataclass(slots=True)
class KernelReduced:
    """What screening left to solve, with ``alpha = C theta``.

    Parameters
    ----------
    rows : rows.gram.GramRows
    index : ndarray of int64 of shape (k,)
        Surviving samples.
    c, lo, hi, norms : ndarray of shape (k,)
        Kinks, ends of the box multiplied by C, and ``sqrt(Q_ii)``.
    start_alpha : ndarray of shape (k,)
    start_products : ndarray of shape (k,)
        ``z_i.w`` of the survivors for the w that the starting alpha and the fixed rows give.
    start_w_sq : float
        ``||w||^2`` of that w.
    offset : float
        ``sum c_i alpha_i`` over the fixed rows.
    start : ndarray of shape (n,)
        Dual variables that the solver starts from (theta scale), fixed rows included.
    ahead : float
        ``ahead * start_products`` estimates the products at the optimum.
    """

    rows: object
    index: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    start_alpha: np.ndarray
    start_products: np.ndarray
    start_w_sq: float
    offset: float
    start: np.ndarray
    ahead: float

    @property
    def size(self) -> int:
        """Return the number of survivors."""
        return self.c.size


class KernelModel(BoxModel):
    """A box model whose rows are known through a kernel.

    Parameters
    ----------
    rows : rows.gram.GramRows
        Signs included.
    c, lo, hi : ndarray of shape (n,)
    name : str
    """

    fresh_every = 64  # a pass over a kernel matrix is long

    def __init__(self, rows, c, lo, hi, name="svm"):
        super().__init__(rows, c, lo, hi, name=name)
        self._loose = float(np.maximum(np.abs(lo), np.abs(hi)) @ self.norms)  # all losses, as if all were active
        self._cancellation = product_rounding(self.fresh_every) / ROUNDING
        self._changes = np.empty(self.size, dtype=np.int64), np.empty(self.size)  # where a list of changes is written
        self._guess = None  # the last guess with its products, and what it was made for
        self._guess_for = (None, 0.0)
        self._start = (None, None)  # where the solver has started, and from which reference

    # -- products ------------------------------------------------------------------------------------------------

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``z_i.w`` for a w given by its dual coefficients, shape (n,)."""
        return self.rows.weighted_sum(w)

    def middle(self, reference: Certificate, theta: np.ndarray, C: float):
        """Return the point halfway between the reference's w and ``C sum theta_i z_i``, see :meth:`BoxModel.middle`."""
        guess = self._multiplied(reference, theta, C)
        point = reference.point
        vector, products = np.empty((2, self.size))
        sqnorm, dual_sq, spread = kernels.box_halfway(
            point.vector, point.products, theta, guess.total, C, self.norms, vector, products
        )
        spread = C * spread + point.spread
        center = KernelPoint(vector, products, max(sqnorm, 0.0), 0.5 * spread)
        return center, C * C * dual_sq, product_rounding(max(guess.updates, reference.updates)) * spread * spread

    def _multiplied(self, reference, theta, C) -> Multiplied:
        """Return the guess with its products, which become the last guess."""
        self._guess = Multiplied(theta, *self._updated(theta, self._guess, reference))
        self._guess_for = (reference, C)
        return self._guess

    def _updated(self, theta, near: Multiplied | None, reference) -> tuple[np.ndarray, int]:
        """Return ``Q theta`` and its updates, from ``near`` or the reference, whichever differs in fewer entries."""
        if near is not None and near.updates < self.fresh_every:
            index, step = self._changes
            changed, nonzero, apart = start_kernels.changes(theta, near.theta, reference.theta, index, step)
            if changed == 0:
                return near.total, near.updates
            if changed < nonzero and (changed < FEW or changed <= apart):
                total = near.total.copy()
                self.rows.add_sum(index[:changed], step[:changed], total)
                return total, near.updates + 1
        return self.updated_sum(theta, reference)

    def _spread(self, theta: np.ndarray) -> float:
        """Return ``sum_j |theta_j| ||z_j||``: what the rounding of a product is relative to."""
        return float(np.abs(theta) @ self.norms)

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(self, C: float, w, theta: np.ndarray, reference=None, margins=None) -> Certificate:
        """Evaluate both objectives on the full data; ``w`` is always that of the dual point."""
        known, start = self._start
        self._start = (None, None)
        total, updates = self._updated(theta, start if known is reference else None, reference)
        return self._pair(C, theta, total, updates)

    def _pair(self, C, theta, total, updates) -> Certificate:
        margins = C * total
        xi, ell, magnitude = kernels.box_summary(self.c, margins, self.lo, self.hi, theta, 0, self.size)
        n_R, n_L, _ = box_ends(theta, self.lo, self.hi, np.empty(self.size, dtype=np.int8), 0, self.size)
        total_sq = max(float(theta @ total), 0.0)
        spread = self._spread(theta)
        w_sq, rounding = C * C * total_sq, product_rounding(updates)
        return Certificate(
            C=C,
            point=KernelPoint(C * theta, margins, w_sq, C * spread),
            theta=theta,
            total=total,
            total_sq=total_sq,
            inner=C * total_sq,
            xi=xi,
            ell=ell,
            error=GAP_ROUNDING * (xi + magnitude) + rounding * self._loose * C * spread,
            primal=0.5 * w_sq + C * xi,
            dual=C * ell - 0.5 * w_sq,
            n_R=n_R,
            n_L=n_L,
            updates=updates,
            total_error=rounding * spread * spread,
        )

    def state(self, certificate: Certificate) -> dict:
        """Return the arrays from which :meth:`restore` makes the same certificate again."""
        guess = self._guess or Multiplied(np.zeros(0), np.zeros(0), self.fresh_every)
        return {
            "C": certificate.C,
            "theta": certificate.theta,
            "total": certificate.total,
            "updates": certificate.updates,
            "guess": guess.theta,
            "guess_total": guess.total,
            "guess_updates": guess.updates,
        }

    def restore(self, state) -> Certificate:
        """Return the certificate of :meth:`state`, byte for byte; no kernel row is touched."""
        guess = np.asarray(state["guess"])
        if guess.size:
            self._guess = Multiplied(guess, np.asarray(state["guess_total"]), int(state["guess_updates"]))
        return self._pair(
            float(state["C"]), np.asarray(state["theta"]), np.asarray(state["total"]), int(state["updates"])
        )

    def closed_form(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return ``s``, ``Q s`` and the largest C up to which ``theta = s`` is optimal (Ogawa 2014, Lemma 9)."""
        s = box_closed_form(self.c, self.lo, self.hi)
        total = self.rows.weighted_sum(s)
        return s, total, self.range_of(total)

    def start(self, C: float) -> Certificate:
        """Return the first reference, see :meth:`BoxModel.start`; one pass over the matrix."""
        s, total, limit = self.closed_form()
        return self._pair(min(C, limit) if limit > 0.0 else C, s, total, 0)

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def extent(self, ball: Ball) -> float:
        """Return the size of which ``ROUNDING`` bounds the error of a product, cancellation included."""
        return ball.extent + self._cancellation * ball.center.spread

    def reduce(self, C: float, screened: Screened, reference: Certificate) -> KernelReduced:
        """Build the problem of the survivors.

        They start from the reference's dual point, from one on the way to the guess (:meth:`_toward`), or with some of
        them at the end of their box where the guess has them (:meth:`_turned`).
        """
        guess, share = self._toward(C, screened, reference)
        ends = (reference.theta, reference.total, guess.theta, guess.total)
        start, total, step = np.empty((3, self.size))
        index, linear, changed = start_kernels.start_part(
            screened.status, self.c, self.lo, self.hi, *ends, share, start, total, step
        )
        if changed:
            total += self.rows.weighted_sum(step)
        updates = reference.updates
        if share > 0.0 or changed:
            updates = max(updates, guess.updates) + 1
        ahead = _ahead(C, share, screened, reference)
        if share == 0.0 and guess is not reference:
            turned = self._turned(C, screened, start, total, step)
            if turned is not None:
                total, updates, ahead = turned, updates + 1, 1.0
                start += step
        self._start = (reference, Multiplied(start, total, updates))
        (c, lo, hi, norms, alpha, products), square = start_kernels.start_survivors(
            index, C, self.c, self.lo, self.hi, self.norms, start, total
        )
        return KernelReduced(
            rows=self.rows,
            index=index,
            c=c,
            lo=lo,
            hi=hi,
            norms=norms,
            start_alpha=alpha,
            start_products=products,
            start_w_sq=C * C * max(square, 0.0),
            offset=C * linear,
            start=start,
            ahead=ahead,
        )

    def _toward(self, C, screened, reference):
        """Return the point to go to from the reference's before the solve, and how far.

        BT2 and IT know the products of their guess s, so the solver may start anywhere between the two at no kernel
        row. After the part ``1 - C0/C`` of the way, ``alpha = C0 theta + (C - C0) s``: it grows with C on the samples
        in L and stays on the others. ``alpha = C theta`` is kept unless the gap there is far smaller.
        """
        if self._guess_for[0] is not reference or self._guess_for[1] != C:
            return reference, 0.0  # the rule has made no guess
        guess, share = self._guess, max(1.0 - reference.C / C, 0.0)
        ends = (reference.theta, reference.total, guess.theta, guess.total)
        return guess, start_kernels.start_share(screened.status, self.c, self.lo, self.hi, *ends, C, share)

    def _turned(self, C, screened, start, total, step) -> np.ndarray | None:
        """Return the products after survivors have changed ends as the guess suggests; None where this is no gain.

        ``step`` is set to what has to be added to ``start``. The kernel rows are those that the solver would need.
        """
        box = (screened.status, self.c, self.lo, self.hi)
        guess = self._guess
        if not start_kernels.start_turns(*box, start, total, guess.theta, guess.total, C, step):
            return None
        turned = total + self.rows.weighted_sum(step)
        before = start_kernels.start_gap(*box, start, total, C)
        after = start_kernels.start_gap(*box, start + step, turned, C)
        return turned if after < start_kernels.WORTH * before else None

    def lift(self, C: float, reduced: KernelReduced, solution):
        """Return (None, theta) of the full problem: w is that of the dual point."""
        theta = reduced.start.copy()
        start_kernels.start_lift(reduced.index, reduced.start_alpha, solution.alpha, C, self.lo, self.hi, theta)
        return None, theta

    def counts(self, certificate: Certificate, screened: Screened) -> dict:
        """Return the counts and ratios of a step; the coefficients are ``s_i alpha_i``: ``w = sum coef_i Phi(x_i)``."""
        counts = super().counts(certificate, screened)
        counts["coefficients"] = self.rows.signs * certificate.point.vector
        return counts


def _ahead(C: float, share: float, screened: Screened, reference: Certificate) -> float:
    """Return what the products of the start are multiplied by to estimate those at the optimum.

    The start is ``C/C0`` times the reference's w, which moves every sample away from its kink. The pair's ball, with
    the reference and the start at opposite ends, says that the optimum is within a radius of its centre between them.
    Without a rule nobody has asked for a ball: the solver is the plain one that rules are compared with.
    """
    return 0.5 * (1.0 + reference.C / C) if screened.by_region and share == 0.0 else 1.0
