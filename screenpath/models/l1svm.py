r"""L1-regularised squared-hinge SVM with a free (unpenalised) bias (Zhao, Liu, Cox 2014).

Objective   min_{w,b} P(w, b) = 1/2 sum_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1                    (eq. 1)
Dual        max_alpha D(alpha) = 1.alpha - 1/2 ||alpha||^2,  alpha >= 0, y.alpha = 0, |f_j.alpha| <= lambda   (eq. 2)
            with the signed columns f_j = y * x^j; alpha_i = max(0, 1 - y_i (x_i.w + b)) at the optimum.
Stop        gap = P - D <= tol * P, computed here on the full data, outside the solver.

``|f_j.alpha| < lambda`` implies ``w_j = 0``. With ``theta = alpha / lambda`` the feasible set does not depend on lambda
and the optimum is the projection of ``1 / lambda`` on it (eq. 3). The slice ``y.theta = 0`` replaces every ``f_j`` by
its projection on the complement of ``y``: the column of ``X`` centred at its mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from screenpath.errors import DataError
from screenpath.geometry import GAP_ROUNDING, ROUNDING
from screenpath.kernels import l1svm as kernels


@dataclass(slots=True)
class L1Certificate:
    """What is known about one pair on the full data; the reference of the next step.

    Parameters
    ----------
    lam : float
        Parameter at which the pair was certified.
    w : ndarray of shape (m,)
    bias : float
        Exact minimiser of the objective for this ``w``.
    slack : ndarray of shape (n,)
        ``1 - y_i (x_i.w + b)``.
    theta : ndarray of shape (n,)
        Feasible dual point, divided by ``lam``.
    products : ndarray of shape (m,)
        ``f_j . theta``, at most 1 in size.
    primal, dual : float
    error : float
        Bound on the rounding error of ``primal - dual``.
    scale : float
        ``theta`` is ``max(slack, 0)`` times this over ``lam``.
    """

    lam: float
    w: np.ndarray
    bias: float
    slack: np.ndarray
    theta: np.ndarray
    products: np.ndarray
    primal: float
    dual: float
    error: float
    scale: float

    @property
    def gap(self) -> float:
        """Return primal minus dual, not below 0."""
        return max(self.primal - self.dual, 0.0)

    @property
    def rel_gap(self) -> float:
        """Return the gap relative to the primal objective."""
        return self.gap / self.primal


@dataclass(slots=True)
class Kept:
    """Features that screening left.

    Parameters
    ----------
    index : ndarray of int64
        Their numbers, increasing.
    size : int
        Number of all features.
    """

    index: np.ndarray
    size: int

    @property
    def status(self) -> np.ndarray:
        """Return -1 for the features that are gone and 0 for the others, shape (m,), int8."""
        status = np.full(self.size, -1, dtype=np.int8)
        status[self.index] = 0
        return status


@dataclass(slots=True)
class L1Reduced:
    """The problem on the surviving features.

    Parameters
    ----------
    columns : ndarray of shape (k, n), or tuple (data, indices, begin, end)
        Signed columns, float64; sparse ones in their order, but not necessarily one right after the other.
    index : ndarray of int64 of shape (k,)
        Their numbers in the full problem.
    signs : ndarray of shape (n,)
        Labels -1, +1: the column of the bias.
    lam : float
    norms, spreads : ndarray of shape (k,)
        Norms of the columns, and of the columns centred at their mean.
    start_w : ndarray of shape (k,)
    start_bias : float
    start_slack : ndarray of shape (n,) or None
        ``1 - y (x.w + b)`` of the start; None where a weight of the reference was screened away.
    start_products : ndarray of shape (k,) or None
        Products of the columns with ``max(start_slack, 0)``, where they are known.
    inner_products : callable
        ``f_a . f_b`` and ``f_a . y`` for some of the columns, over all samples; for sparse columns.
    fresh : bool
        Whether the starting point comes from another parameter (a cold start may then ignore it).
    """

    columns: np.ndarray | tuple
    index: np.ndarray
    signs: np.ndarray
    lam: float
    norms: np.ndarray
    spreads: np.ndarray
    start_w: np.ndarray
    start_bias: float
    start_slack: np.ndarray | None
    start_products: np.ndarray | None
    inner_products: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    fresh: bool

    @property
    def sparse(self) -> bool:
        """Tell whether the columns are sparse arrays."""
        return isinstance(self.columns, tuple)

    @property
    def size(self) -> int:
        """Return the number of surviving features."""
        return self.index.size


class L1SVM:
    """Full problem.

    Parameters
    ----------
    columns : rows.columns.Columns
        Signed columns of ``m`` features over ``n`` samples.

    Attributes
    ----------
    null_bias : float
        ``(n+ - n-) / n``, the bias where ``w = 0`` (eq. 8).
    null_products : ndarray of shape (m,)
        ``f_j . (1 - y null_bias)``; also the product of ``f_j`` with the projection of 1 on the complement of ``y``.
    spreads : ndarray of shape (m,)
        Norms of the columns centred at their mean.
    coarse_norms : ndarray of float32 of shape (2, m)
        Norms of the columns centred and as they are, rounded up.
    lam_max : float
        Smallest lambda with ``w = 0``: the largest of ``|null_products|`` (eq. 7).

    Raises
    ------
    DataError
        If all labels are the same.
    """

    name = "l1svm"

    def __init__(self, columns):
        self.rows, self.signs = columns, columns.signs
        self.samples, self.size = columns.d, columns.n
        self.null_bias = float(self.signs.mean())
        if abs(self.null_bias) == 1.0:
            raise DataError("all samples have the same label", "the model needs samples of both classes")
        self.spreads = columns.spreads()
        # A constant column is its mean times y, so its centred products are 0; rounding must not make it look alive.
        self.flat = self.spreads <= 1e-13 * columns.norms
        self._no_flat, self._all = not self.flat.any(), np.flatnonzero(~self.flat)
        self._norms = np.where(self.flat, 0.0, columns.norms)
        self.null_products = self._products(1.0 - self.null_bias * self.signs)
        self.coarse_norms = np.nextafter(np.stack([self.spreads, columns.norms]).astype(np.float32), np.float32(np.inf))
        self.lam_max = float(np.max(np.abs(self.null_products), initial=0.0))

    def _products(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``f_j . alpha`` for an ``alpha`` with ``y.alpha = 0``, shape (m,); one data pass."""
        products = self.rows.products(alpha)
        products[self.flat] = 0.0
        return products

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(self, lam: float, w: np.ndarray | None, theta=None, reference=None) -> L1Certificate:
        """Evaluate both objectives on the full data.

        The dual point is made from ``w``: with the exact bias ``y.alpha = 0`` holds, and scaling by
        ``clip(1.alpha / ||alpha||^2, 0, lam / max |f_j.alpha|)`` makes it feasible and best along its ray.

        Parameters
        ----------
        lam : float
        w : ndarray of shape (m,) or None
            None for the closed form ``w = 0``.
        theta, reference
            Not needed by this model.

        Returns
        -------
        L1Certificate
        """
        lam = float(lam)
        if w is None:
            w, bias = np.zeros(self.size), self.null_bias
            slack = 1.0 - bias * self.signs
            alpha, total, squares = kernels.positive_part(slack)
            products = self.null_products
        else:
            slack = 1.0 - self.rows.combine(w)
            bias = kernels.bias_root(slack, self.signs, 0.0)
            alpha, total, squares = kernels.positive_part(slack)
            products = self._products(alpha)
        # Rounding of the products counts as violation: the dual point is feasible with room for it.
        reach = np.abs(products) + GAP_ROUNDING * np.sqrt(squares) * self._norms
        scale = dual_scale(lam, total, squares, float(np.max(reach, initial=0.0)))
        primal = 0.5 * squares + lam * float(np.abs(w).sum())
        dual = scale * total - 0.5 * scale * scale * squares
        return L1Certificate(
            lam=lam,
            w=w,
            bias=bias,
            slack=slack,
            theta=alpha * (scale / lam),
            products=products * (scale / lam),
            primal=primal,
            dual=dual,
            error=GAP_ROUNDING * (primal + total + squares),
            scale=scale,
        )

    def state(self, certificate: L1Certificate) -> dict:
        """Return the arrays from which :meth:`restore` makes the same certificate again (a checkpoint's content)."""
        return {"lam": certificate.lam, "w": certificate.w}

    def restore(self, state) -> L1Certificate:
        """Return the certificate of :meth:`state`, byte for byte; one data pass."""
        w = np.asarray(state["w"])
        return self.certify(float(state["lam"]), w if w.any() else None)

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self, lam: float) -> L1Certificate:
        """Return the first reference: ``w = 0``, optimal for every lambda from ``lam_max`` up (eq. 8)."""
        return self.certify(max(lam, self.lam_max), None)

    def exact_until(self, reference: L1Certificate, lam: float) -> bool:
        """Tell whether ``w = 0`` is optimal at ``lam``."""
        return lam >= self.lam_max

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def screen(self, region) -> Kept:
        """Keep the features whose constraint ``|f_j.theta| <= 1`` the region allows to be met with equality."""
        lower, upper = region.bounds(tuple(point.products for point in region.points), self.spreads)
        goal = 1.0 - ROUNDING * (1.0 + self.rows.norms * region.extent)
        return self.kept(np.flatnonzero(np.maximum(upper, -lower) >= goal))

    def kept(self, index: np.ndarray) -> Kept:
        """Return decisions that leave some features, but for constant ones: their weight is always 0."""
        return Kept(index if self._no_flat else index[~self.flat[index]], self.size)

    def nothing_screened(self) -> Kept:
        """Return decisions that leave every feature to the solver, but for constant ones: their weight is always 0."""
        return Kept(self._all, self.size)

    def all_screened(self) -> Kept:
        """Return decisions that leave no feature."""
        return Kept(np.empty(0, dtype=np.int64), self.size)

    def reduce(self, lam: float, screened: Kept, reference: L1Certificate) -> L1Reduced:
        """Build the problem on the surviving features; the others have weight 0."""
        index = screened.index
        whole = index.size == self.size
        if self.rows.sparse:
            columns = self.rows.slices(None if whole else index)
        else:
            columns = self.rows.whole() if whole else self.rows.take_columns(index)
        start = reference.w[index]
        intact = np.count_nonzero(start) == np.count_nonzero(reference.w)
        known = intact and reference.scale > 0.0
        return L1Reduced(
            columns=columns,
            index=index,
            signs=self.signs,
            lam=lam,
            norms=self.rows.norms[index],
            spreads=self.spreads[index],
            start_w=start,
            start_bias=reference.bias,
            start_slack=reference.slack if intact else None,
            start_products=reference.products[index] * (reference.lam / reference.scale) if known else None,
            inner_products=lambda chosen: self.rows.inner_products(index[chosen]),
            fresh=reference.lam != lam,
        )

    def lift(self, lam: float, reduced: L1Reduced, solution) -> tuple[np.ndarray, None]:
        """Return the weights of all features; the certificate makes the dual point."""
        w = np.zeros(self.size)
        w[reduced.index] = solution.w
        return w, None

    # -- records -------------------------------------------------------------------------------------------------

    def parameters(self, lam: float) -> dict:
        """Return the parameter as the step table names it."""
        return {"lambda": float(lam)}

    def counts(self, certificate: L1Certificate, screened: Kept) -> dict:
        """Return the counts, ratios and coefficients of a step.

        R are samples outside the margin (dual variable 0), E those inside; rejection ratio and screening rate count
        features.
        """
        active = int(np.count_nonzero(certificate.w))
        outside = int(np.count_nonzero(certificate.theta <= 0.0))
        gone = self.size - screened.index.size
        return {
            "n_R": outside,
            "n_L": 0,
            "n_E": self.samples - outside,
            "screened_R": 0,
            "screened_L": 0,
            "n_survivors": self.samples,
            "rejection_ratio": gone / max(self.size, 1),
            "screening_rate": gone / (self.size - active) if self.size > active else 0.0,
            "n_features_screened": gone,
            "nnz_w": active,
            "coefficients": np.append(certificate.w, certificate.bias),
        }


def dual_scale(lam: float, total: float, squares: float, largest: float) -> float:
    """Return the factor that makes ``alpha`` dual feasible and best along its ray.

    Parameters
    ----------
    lam : float
    total, squares : float
        ``1.alpha`` and ``||alpha||^2``.
    largest : float
        ``max |f_j . alpha|``, rounding error included.
    """
    if squares == 0.0:
        return 0.0
    best = total / squares
    return min(best, lam / largest) if largest > 0.0 else best
