r"""L1-regularised squared-hinge SVM with a free (unpenalised) bias (Zhao, Liu, Cox 2014).

Objective   min_{w,b} P(w, b) = 1/2 sum_i s_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1                (eq. 1)
Dual        max_alpha D(alpha) = |z|.alpha - 1/2 ||alpha||^2,  alpha >= 0, z.alpha = 0, |f_j.alpha| <= lambda (eq. 2)
            with z_i = y_i sqrt(s_i) and the signed columns f_j = z * x^j; at the optimum
            alpha_i = sqrt(s_i) max(0, 1 - y_i (x_i.w + b)).
Stop        gap = P - D <= tol * P, computed here on the full data, outside the solver.

``|f_j.alpha| < lambda`` implies ``w_j = 0``. With ``theta = alpha / lambda`` the feasible set does not depend on lambda
and the optimum is the projection of ``|z| / lambda`` on it (eq. 3). The slice ``z.theta = 0`` replaces every ``f_j`` by
its projection on the complement of ``z``: the column of ``X`` centred at its weighted mean, times ``z``. Without
weights ``z = y`` and ``|z| = 1``: the paper's problem. With them it is the same problem in which ``z`` takes the place
of the bias's column ``y``, and ``|z|`` that of 1; so are its regions, which only use that ``theta`` is a projection on
the feasible set (both balls and the half-space of the rule ``vi``), and that ``z.theta = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import l1svm as kernels
from screenpath.numbers import accurate, states
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, Proven, gamma
from screenpath.problem.base import PathModel, Resumable
from screenpath.problem.penalised_rounding import L1Rounding, check_range
from screenpath.problem.penalised_sharp import l1_sharpened as sharpened
from screenpath.regions.geometry import ROUNDING


@dataclass(slots=True)
class L1Certificate(Proven):
    """What is known about one pair on the full data; the reference of the next step."""

    lam: float  # parameter at which the pair was certified
    w: np.ndarray  # shape (m,)
    bias: float  # minimiser of the objective for this ``w``, as near as a double comes
    slack: np.ndarray  # shape (n,): ``|z_i| - z_i (x_i.w + b)``
    # shape (n,); dual point, divided by ``lam``: feasible but for rounding, see ``problem/penalised_rounding.py``
    theta: np.ndarray
    products: np.ndarray  # shape (m,): ``f_j . theta``, at most 1 in size
    scale: float  # ``theta`` is ``max(slack, 0)`` times this over ``lam``
    off: float  # bound on the norm of the error of ``slack``
    slip: float  # how far ``theta`` is from the feasible point that the gap belongs to, relative to its norm
    # Upper bound of the gap between ``w`` and that point: what a region around ``theta`` is made of. A sharpened
    # certificate has a dual point of its own, and a smaller ``gap``.
    theta_gap: float
    primal: float  # primal, primal_error, gap, rounding: see :class:`screenpath.numbers.rounding.Proven`
    primal_error: float
    gap: float
    rounding: float

    @property
    def at(self) -> tuple:
        return (self.lam,)


def halfway(gap: float, scale: float, norm: float, off: float) -> tuple[float, float]:
    """Return a ball with the dual optimum: its centre as a part of ``r = max(slack, 0)``, and its radius.

    Not only ``1/2 ||scale r - alpha*||^2`` is at most the distance of the feasible ``scale r``'s dual value from the
    optimum, but ``1/2 ||r - alpha*||^2`` also at most the primal's: ``slack.alpha* <= r.alpha*``,
    ``w.F alpha* <= lam ||w||_1`` and ``z.alpha* = 0``. The sum of both is the gap, so the centre is halfway
    between the two points, and the square of the radius ``gap - 1/4 ||r - scale r||^2`` (Tran et al. 2023, RYU). It is
    smaller than the ball of the dual point alone if the two are near each other.

    ``gap`` is not below the exact one, ``norm`` is ``||r||``, and ``off`` bounds the distance of ``r`` and ``scale r``
    from points of which this is true.
    """
    apart = max(abs(1.0 - scale) * norm - 2.0 * off, 0.0)
    square = gap * (1.0 + 16.0 * UNIT) - 0.25 * apart * apart * (1.0 - 16.0 * UNIT)
    return 0.5 * (1.0 + scale), sqrt(max(square, 0.0)) * OUTWARD + off


@dataclass(slots=True)
class KeptFeatures:
    """Features that screening kept: their numbers, increasing, of ``size`` in all."""

    index: np.ndarray
    size: int

    @property
    def status(self) -> np.ndarray:
        """Return -1 for screened features and 0 for the others, shape (m,), int8."""
        status = np.full(self.size, -1, dtype=np.int8)
        status[self.index] = 0
        return status


@dataclass(slots=True)
class L1Reduced:
    """The reduced problem at one ``lam``, on the columns of the full data: what ``screened`` keeps, from ``start``."""

    model: L1SVM
    lam: float
    screened: KeptFeatures
    start: L1Certificate

    @property
    def index(self) -> np.ndarray:
        """Return the numbers of the surviving features."""
        return self.screened.index


class L1SVM(PathModel, Resumable):
    """Full problem.

    Parameters
    ----------
    columns : rows.columns.Columns
        Signed columns of ``m`` features over ``n`` samples.
    allowed : ndarray of int8 of shape (m,), optional
        Signs that weights may have, 0 for any: a feature with one has the constraint on this side alone.

    Attributes
    ----------
    null_bias : float
        ``(s+ - s-) / s``, weights of the classes, the bias where ``w = 0`` (eq. 8).
    null_slack, null_products : ndarray of shape (n,), (m,)
        ``|z| - z null_bias``, the projection of ``|z|`` on the complement of ``z``, and its products with the columns.
    norms, sqnorms, spreads : ndarray of shape (m,)
        Norms of the columns, their squares, and norms of the columns centred at their mean; not below the exact ones.
    means : ndarray of shape (m,)
        Of the columns, over all samples; as computed.
    settled_from : float
        For this lambda and every larger one ``w = 0`` is surely optimal.
    lam_max : float
        Smallest lambda with ``w = 0``: the largest of ``|null_products|`` (eq. 7). Rounded up, it is ``settled_from``;
        where all products are 0 but for rounding, that of the data included, it is 0.

    Raises
    ------
    DataError
        If all labels (of samples with a weight above 0) are the same, or a squared norm overflows.
    """

    name = "l1svm"

    def __init__(self, columns, allowed=None):
        self.rows, self.signs = columns, columns.signs
        self.samples, self.size = columns.d, columns.n
        self.allowed = np.zeros(self.size, dtype=np.int8) if allowed is None else allowed
        self.ones = np.abs(self.signs)
        weighted = bool(np.any(self.ones != 1.0))
        shares = self.signs * self.ones
        # Weights of the classes; without weights these are counts.
        self.positive, self.negative = (float(np.sum(part[part > 0.0])) for part in (shares, -shares))
        self.total = self.positive + self.negative
        self.null_bias = (self.positive - self.negative) / self.total if self.total < inf else 1.0
        if abs(self.null_bias) == 1.0:
            raise DataError(
                "all samples have the same label, or nearly all the weight" if weighted else
                "all samples have the same label", "the model needs samples of both classes",
            )  # fmt: skip
        check_range(columns.norms, "feature")
        length = sqrt(self.total) * (1.0 + gamma(self.samples)) if weighted else None
        self.rounding = L1Rounding(self.samples, self.size, length, columns.inexact)
        up, floor = 1.0 + 2.0 * self.rounding.column, np.sqrt(2.0 * self.samples * TINY)
        self.norms, sums = columns.norms * up + floor, columns.products(self.signs)
        self.sqnorms, self.means = self.norms**2, sums / self.total
        # The difference is off by some roundings of both squares; columns far from their mean are centred before.
        squares = np.maximum(self.sqnorms - self.means * sums, 0.0) + 8.0 * self.rounding.column * self.sqnorms
        # Of a mean times z, which was exact with labels, and of the data.
        unsure = 4.0 * self.rounding.inexact + 2.0 * self.rounding.data
        self.spreads = np.minimum(np.sqrt(squares) * up + floor + unsure * self.norms, self.norms)
        self._all = np.arange(self.size)
        self.null_slack = self.ones - self.null_bias * self.signs
        self.null_products = self.rows.products(self.null_slack)
        self.settled_from, self.lam_max = self._tops()

    def outward(self, products: np.ndarray, features=slice(None)) -> np.ndarray:
        """Return how far products of ``features`` go towards weights that are allowed: ``|f_j.r|``, or one side."""
        signs = self.allowed[features]
        return np.where(signs == 0, np.abs(products), np.where(signs < 0, -products, products))

    def _tops(self) -> tuple[float, float]:
        """Return ``settled_from`` and ``lam_max``; products whose rounding could matter are recomputed."""
        weighted, found = self.rounding.inexact > 0.0, {}

        def form(j: int) -> tuple[float, float]:
            # s f_j.(|z| - z null_bias) is a sum of the values times |z| and the other class's weight, without weights
            # whole numbers; the mean of a column drops out.
            values, places = self.rows.column(j)
            parts = self.ones[places] * np.where(self.signs[places] > 0.0, 2.0 * self.negative, 2.0 * self.positive)
            total, error = accurate.inner(values, parts)
            mass = accurate.dot(np.abs(values), parts)
            data = (16.0 if weighted else 4.0) * UNIT * mass
            if weighted:  # the weights of the classes are sums, and the parts and values products
                error += (16.0 * UNIT + 2.0 * gamma(self.samples)) * mass
            error += self.rounding.data * mass * OUTWARD
            size = max(float(self.outward(np.array([total]), [j])[0]), 0.0) / self.total
            found[j] = size + error / self.total
            return size, (error + data) / self.total

        errors = 2.0 * self.rounding.root * self.rounding.column * self.norms
        sizes = np.maximum(self.outward(self.null_products), 0.0)
        top = accurate.largest(sizes, errors, form)
        bounds = np.minimum(sizes + errors, self.rounding.root * self.spreads)
        for j in np.flatnonzero(bounds > top * (1.0 + 1e-9)).tolist() if top > 0.0 else ():
            form(j)
        for j, bound in found.items():
            bounds[j] = min(bounds[j], bound)
        settled = float(np.max(bounds, initial=0.0)) * OUTWARD
        return settled, settled if top > 0.0 else 0.0

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(self, lam: float, w: np.ndarray | None, theta=None, reference=None) -> L1Certificate:
        """Evaluate both objectives on the full data; ``w`` None is the closed form ``w = 0``, ``theta`` is not needed.

        The dual point is made from ``w``: with the exact bias ``z.alpha = 0`` holds up to rounding, and scaling by
        ``clip(|z|.alpha / ||alpha||^2, 0, lam / max |f_j.alpha|)`` makes it feasible and best along its ray.
        """
        lam = float(lam)
        if w is None:
            w, bias = np.zeros(self.size), self.null_bias
            slack = self.null_slack
            alpha, *sums = kernels.positive_part(slack, self.signs)
            products = self.null_products
        else:
            slack = self.ones - self.rows.combine(w)
            bias = kernels.bias_root(slack, self.signs, 0.0)
            alpha, *sums = kernels.positive_part(slack, self.signs)
            products = self.rows.products(alpha)
        inside, column = np.empty(self.size), self.rounding.column
        scale, hoped, terms, weight, reach, kink = kernels.certified_terms(
            w, products, (self.norms, self.spreads, self.allowed), lam, column, OUTWARD, *sums, inside
        )
        off = self.rounding.slack(terms, reach, bias)
        proof = self.rounding.proof(lam, scale, hoped, sums, (terms, weight, reach, kink), off)
        if scale > 0.0 and proof["gap"] > proof["primal"] + proof["primal_error"]:  # rounding has spoilt the point: 0
            scale, inside = 0.0, np.zeros(self.size)
            proof = self.rounding.proof(lam, scale, scale, sums, (terms, weight, reach, weight), off)
        return L1Certificate(
            lam=lam, w=w, bias=bias, slack=slack, theta=alpha * (scale / lam), products=inside, scale=scale, off=off,
            slip=kernels.imbalance(sums[0], sums[2], column) + 4.0 * UNIT, theta_gap=proof["gap"], **proof,
        )  # fmt: skip

    def sharpened(self, certificate: L1Certificate, tol: float) -> L1Certificate:
        return sharpened(self, certificate)

    def fallbacks(self, lam: float, reference: L1Certificate) -> list[L1Certificate]:
        known = self.certify(lam, None), self.certify(lam, reference.w)
        return [sharpened(self, one) if one.rounding > 0.5 * one.gap else one for one in known]

    def no_worse(self, lam: float, certificate: L1Certificate, reference: L1Certificate) -> L1Certificate:
        """Return the certificate: the solvers descend from the reference's weights, which descend from zero."""
        return certificate

    def combined(self, lam: float, primal: L1Certificate, dual: L1Certificate) -> L1Certificate:
        """Return the certificate with the better primal point, which determines the dual point."""
        return primal

    def state(self, certificate: L1Certificate) -> dict:
        return {"lam": certificate.lam, "w": certificate.w}

    def restore(self, state) -> L1Certificate:
        """Return the certificate of :meth:`state`; one data pass."""
        w = states.vector(state, "w", self.size)
        return self.certify(states.positive(state, "lam"), w if w.any() else None)

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self, lam: float) -> L1Certificate:
        """Return the first reference: ``w = 0``, optimal for every lambda from ``lam_max`` up (eq. 8)."""
        return self.certify(max(lam, self.settled_from), None)

    def exact_until(self, reference: L1Certificate, lam: float) -> bool:
        return lam >= self.settled_from

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def slack_of(self, reference: L1Certificate) -> float:
        """Return the slack of a comparison with the products of a reference, relative to the sizes compared."""
        return max(ROUNDING, 8.0 * (self.rounding.column + reference.slip))

    def screen(self, region, slack: float = ROUNDING) -> KeptFeatures:
        """Keep the features whose constraint ``|f_j.theta| <= 1`` the region allows to be met with equality."""
        products = tuple(point.products for point in region.points)
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = region.bounds(products, self.spreads, self.norms)
            goal = 1.0 - slack * (1.0 + self.norms * region.extent)
        most = np.where(self.allowed > 0, upper, np.where(self.allowed < 0, -lower, np.maximum(upper, -lower)))
        return KeptFeatures(np.flatnonzero(~(most < goal)), self.size)  # no number decides nothing

    def nothing_screened(self) -> KeptFeatures:
        return KeptFeatures(self._all, self.size)

    def all_screened(self) -> KeptFeatures:
        return KeptFeatures(np.empty(0, dtype=np.int64), self.size)

    def reduce(self, lam: float, screened: KeptFeatures, reference: L1Certificate) -> L1Reduced:
        return L1Reduced(self, lam, screened, reference)

    def lift(self, lam: float, reduced: L1Reduced, solution) -> tuple[np.ndarray, None]:
        """Return the weights of all features; :meth:`certify` makes the dual point."""
        return solution.w, None

    # -- records -------------------------------------------------------------------------------------------------

    def parameters(self, lam: float) -> dict:
        return {"lambda": float(lam)}

    def counts(self, certificate: L1Certificate, screened: KeptFeatures) -> dict:
        """Return the counts, ratios and coefficients of a step.

        R are samples outside the margin (dual variable 0), E those inside; rejection ratio and screening rate count
        features.
        """
        active, coefficients = int(np.count_nonzero(certificate.w)), np.empty(self.size + 1)
        coefficients[:-1], coefficients[-1] = certificate.w, certificate.bias
        outside = int(np.count_nonzero(certificate.theta <= 0.0))
        gone = self.size - screened.index.size
        return {
            "n_R": outside, "n_L": 0, "n_E": self.samples - outside, "screened_R": 0, "screened_L": 0,
            "n_survivors": self.samples, "rejection_ratio": gone / max(self.size, 1),
            "screening_rate": gone / (self.size - active) if self.size > active else 0.0, "n_features_screened": gone,
            "nnz_w": active, "coefficients": coefficients,
        }  # fmt: skip
