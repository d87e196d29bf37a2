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
from screenpath.models.box import BoxModel, Certificate, Screened

# Rounding of one product (Q theta)_i, relative to the sum of the magnitudes it is formed from, ...
PRODUCT_ROUNDING = 1e-15
FEW = 32  # entries of a guess that change; what else it could be updated from is not worth a look
UPDATES = 16  # ... and how many updates add as much again


def product_rounding(updates: int) -> float:
    """Return the rounding of a product that has been updated so often."""
    return PRODUCT_ROUNDING * (1.0 + updates / UPDATES)


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
    fixed : ndarray of shape (n,)
        Dual variables of the fixed rows (theta scale), 0 for survivors.
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
    fixed: np.ndarray

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
        self._guess = None  # the last guess of BT2 and IT with its products, and how often these have been updated

    # -- products ------------------------------------------------------------------------------------------------

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``z_i.w`` for a w given by its dual coefficients, shape (n,)."""
        return self.rows.weighted_sum(w)

    def middle(self, reference: Certificate, theta: np.ndarray, C: float):
        """Return the point halfway between the reference's w and ``C sum theta_i z_i``, see :meth:`BoxModel.middle`.

        ``Q theta`` is updated from the reference or from the last guess, whichever differs in fewer entries.
        """
        total, updates = self._guess_total(reference, theta)
        self._guess = (theta, total, updates)
        point = reference.point
        vector, products = np.empty((2, self.size))
        sqnorm, dual_sq, spread = kernels.box_halfway(
            point.vector, point.products, theta, total, C, self.norms, vector, products
        )
        spread = C * spread + point.spread
        center = KernelPoint(vector, products, max(sqnorm, 0.0), 0.5 * spread)
        return center, C * C * dual_sq, product_rounding(max(updates, reference.updates)) * spread * spread

    def _guess_total(self, reference, theta):
        if self._guess is not None and self._guess[2] < self.fresh_every:
            step = np.empty(self.size)
            changed, _ = kernels.difference(theta, self._guess[0], self.signs, step)
            if changed == 0:
                return self._guess[1:]
            if changed < FEW or changed < np.count_nonzero(theta != reference.theta):
                return self._guess[1] + self.rows.weighted_sum(step), self._guess[2] + 1
        return self.updated_sum(theta, reference)

    def _spread(self, theta: np.ndarray) -> float:
        """Return ``sum_j |theta_j| ||z_j||``: what the rounding of a product is relative to."""
        return float(np.abs(theta) @ self.norms)

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(self, C: float, w, theta: np.ndarray, reference=None, margins=None) -> Certificate:
        """Evaluate both objectives on the full data; ``w`` is always that of the dual point."""
        total, updates = self.updated_sum(theta, reference)
        return self._pair(C, theta, total, updates)

    def _pair(self, C, theta, total, updates) -> Certificate:
        margins = C * total
        xi, ell, magnitude, n_R, n_L = kernels.box_summary(self.c, margins, self.lo, self.hi, theta)
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
        guess = self._guess or (np.zeros(0), np.zeros(0), self.fresh_every)
        return {
            "C": certificate.C,
            "theta": certificate.theta,
            "total": certificate.total,
            "updates": certificate.updates,
            "guess": guess[0],
            "guess_total": guess[1],
            "guess_updates": guess[2],
        }

    def restore(self, state) -> Certificate:
        """Return the certificate of :meth:`state`, byte for byte; no kernel row is touched."""
        guess = np.asarray(state["guess"])
        if guess.size:
            self._guess = (guess, np.asarray(state["guess_total"]), int(state["guess_updates"]))
        return self._pair(
            float(state["C"]), np.asarray(state["theta"]), np.asarray(state["total"]), int(state["updates"])
        )

    def closed_form(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return ``s``, ``Q s`` and the largest C up to which ``theta = s`` is optimal (Ogawa 2014, Lemma 9)."""
        s = np.where(self.c > 0.0, self.hi, self.lo)
        total = self.rows.weighted_sum(s)
        return s, total, self.range_of(total)

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def extent(self, ball: Ball) -> float:
        """Return the size of which ``ROUNDING`` bounds the error of a product, cancellation included."""
        return ball.extent + self._cancellation * ball.center.spread

    def reduce(self, C: float, screened: Screened, reference: Certificate) -> KernelReduced:
        """Build the problem of the survivors, which start from the reference's dual point.

        The starting products come from the reference's by the entries of theta that the screening changes.
        """
        fixed = np.empty(self.size)
        index, linear, _ = kernels.box_part(screened.status, self.lo, self.hi, self.c, reference.theta, fixed)
        start = np.where(screened.status == 0, reference.theta, fixed)
        total, _ = self.updated_sum(start, reference)
        c, lo, hi, norms, alpha, products = kernels.box_survivors(
            index, C, self.c, self.lo, self.hi, self.norms, start, total
        )
        alpha *= C
        products *= C
        return KernelReduced(
            rows=self.rows,
            index=index,
            c=c,
            lo=lo,
            hi=hi,
            norms=norms,
            start_alpha=alpha,
            start_products=products,
            start_w_sq=C * C * max(float(start @ total), 0.0),
            offset=C * linear,
            fixed=fixed,
        )

    def lift(self, C: float, reduced: KernelReduced, solution):
        """Return (None, theta) of the full problem: w is that of the dual point."""
        kernels.box_lift(reduced.fixed, reduced.index, solution.alpha, C, self.lo, self.hi)
        return None, reduced.fixed

    def counts(self, certificate: Certificate, screened: Screened) -> dict:
        """Return the counts and ratios of a step; the coefficients are ``s_i alpha_i``: ``w = sum coef_i Phi(x_i)``."""
        counts = super().counts(certificate, screened)
        counts["coefficients"] = self.rows.signs * certificate.point.vector
        return counts
