"""What the model of the sparse SVM, its rules and its solvers exchange."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from screenpath.numbers.rounding import Proven

NO_FEATURES, NO_TOTALS = np.empty(0, dtype=np.int64), np.empty(0)
HINGE = 0.0, 1.0  # the ends of its dual variables


@dataclass(slots=True)
class SparseVector:
    """A vector of length ``size`` as its non-zero entries, ``index`` (int64) increasing: long paths stay small."""

    index: np.ndarray
    values: np.ndarray
    size: int

    @classmethod
    def of(cls, dense: np.ndarray, among: np.ndarray | None = None) -> SparseVector:
        """Return the sparse form of an array that is 0 outside of the entries ``among``, which are in order."""
        if among is None or 4 * among.size > dense.size:
            among = np.flatnonzero(dense)
        index = among[dense[among] != 0.0]
        return cls(index, dense[index], dense.size)

    def extended(self, value: float) -> SparseVector:
        """Return the vector with one value more, kept even if it is 0."""
        return SparseVector(np.append(self.index, self.size), np.append(self.values, value), self.size + 1)

    def dense(self) -> np.ndarray:
        out = np.zeros(self.size)
        out[self.index] = self.values
        return out


class Level(NamedTuple):
    """The intercept included in scores, and both ends of the best ones."""

    intercept: float
    low: float = 0.0
    high: float = 0.0


NO_INTERCEPT = Level(0.0, 0.0, 0.0)


@dataclass(slots=True)
class SparseCertificate(Proven):
    """What is known about one pair (w, theta) on the full data; the reference of the next step."""

    alpha: float  # alpha, beta: parameters at which the pair was certified
    beta: float
    w: np.ndarray  # shape (classes * d,)
    scores: np.ndarray  # shape (classes * n,): ``X w_c``
    theta: np.ndarray  # shape (classes * n,)
    # u, u_slack: shape (classes * d,): ``X' psi(theta) / n``, and error bounds of its entries. These are 0 (rounding
    # apart), except where ``w`` is 0 and ``|u| + u_slack <= beta``: there the entry has no share in either objective
    u: np.ndarray
    u_slack: np.ndarray
    loss: float  # loss, loss_slack: mean loss; the losses' share of the gap
    loss_slack: float
    theta_sum: float  # theta_sum, theta_sq, apart_sq: ``sum c theta``, ``||theta||^2`` and ``||theta - theta(w)||^2``
    theta_sq: float
    apart_sq: float
    n_R: int  # n_R, n_L, nonzero: dual variables at their lower and at their upper end; weights that are not zero
    n_L: int
    w_sq: float  # w_sq, w_l1, kink, lag_sq, lag_w: of the penalty, see ``kernels.problem.sparse.feature_terms``
    w_l1: float
    kink: float
    lag_sq: float
    lag_w: float
    nonzero: int
    _: KW_ONLY
    formed: np.ndarray = field(default_factory=lambda: NO_FEATURES)  # int64, see ``room``
    room: float = 0.0  # no dual point within ``room`` of ``theta`` gives a feature outside ``formed`` a weight
    # shape (classes * n,) or None: ``psi(theta)`` if it is at hand, see :meth:`SparseModel.psi_of`
    psi: np.ndarray | None = None
    # primal, primal_error, gap, rounding: at ``alpha``, see :class:`screenpath.numbers.rounding.Proven`; written by
    # ``SparseRounding.finish``
    primal: float = np.inf
    primal_error: float = 0.0
    gap: float = np.inf
    rounding: float = 0.0
    # t_error, u_error, floor: bounds on the norms of the rounding errors of all margins and of ``u`` (at ``alpha = 0``
    # on the latter's effect on the gap), and on underflow
    t_error: float = 0.0
    u_error: float = 0.0
    floor: float = 0.0
    # intercept, low, high: of a free intercept: the one that is part of the ``scores``, and both ends of the best for
    # ``w``; see :class:`Level`
    intercept: float = 0.0
    low: float = 0.0
    high: float = 0.0
    # off, shift, cost: bounds on the difference of an exact dual point, whose signed sums are 0: itself, in ``u``, and
    # in the gap
    off: float = 0.0
    shift: float = 0.0
    cost: float = 0.0
    part: float = 1.0  # at ``alpha = 0`` the part of ``theta`` that surely is a dual point

    @property
    def at(self) -> tuple:
        return (self.alpha, self.beta)

    @property
    def feasible(self) -> bool:
        """Tell whether dual variables have room for what is left of the signed sums; true without intercepts."""
        return self.off < np.inf


@dataclass(slots=True)
class SparseScreened:
    """Decisions over all dual variables and weights, with the effect of conditioning on the norms."""

    # int8 of shape (classes * n,): -1: at the lower end (R); +1: at the upper end (L); 0: survives. The pairs (own
    # class, sample) of a multi-class model are -1
    duals: np.ndarray
    keep: np.ndarray  # int8 of shape (classes * d,): 0: the weight is zero; 1: survives
    # row_part, col_part: squared norms of samples (one per class) over surviving features, of columns over surviving
    # dual variables. The norm of a column whose weight is proven not to be 0 may be larger: it decides nothing any more
    row_part: np.ndarray
    col_part: np.ndarray
    # int64 of shape (triggerings, 2): dual variables and weights found by each triggering of ISS and IFS, -1 if it did
    # not run
    record: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    # shape (classes * d,): with a free intercept sums of columns over surviving dual variables; else empty
    col_total: np.ndarray = field(default_factory=lambda: NO_TOTALS)

    @property
    def status(self) -> np.ndarray:
        """Return all decisions as one array, for an audit: dual variables, then 1 for a weight that is zero."""
        return np.concatenate([self.duals, 1 - self.keep])

    def copy(self) -> SparseScreened:
        """Return decisions that can be added to without changing these."""
        return SparseScreened(
            self.duals.copy(), self.keep.copy(), self.row_part.copy(), self.col_part.copy(), self.record,
            self.col_total.copy(),
        )  # fmt: skip


@dataclass(slots=True)
class SparseReduced:
    """The reduced problem at one ``alpha``.

    The data is not copied: surviving features are columns of the full data, and a fixed dual variable keeps its value
    (its loss is 0, or linear). The solver begins at ``start``, the previous step, whose arrays have full length.
    """

    model: Any  # a SparseModel, whose module imports this one
    alpha: float
    screened: SparseScreened
    start: SparseCertificate


def counts_of(model: Any, certificate: SparseCertificate, screened: SparseScreened) -> dict:
    """Return counts, ratios and coefficients of a step.

    The scaling ratio is ``1 - (n - n~)(p - p~)/(n p)``; the counts of each triggering of ISS and IFS are joined by
    ``;`` in their order. Divided by ``n_R + n_L`` and by ``n_inactive_features`` they are Hong's rejection ratios.
    """
    weights, duals = screened.keep.size, screened.duals
    screened_L, zeroed = int(np.count_nonzero(duals > 0)), weights - int(np.count_nonzero(screened.keep))
    screened_R = int(np.count_nonzero(duals < 0)) - (model.n if model.classes > 1 else 0)
    fixed, ends = screened_R + screened_L, certificate.n_R + certificate.n_L
    inactive = weights - certificate.nonzero
    extras = {
        "n_inactive_features": inactive, "feature_screening_rate": zeroed / inactive if inactive else 0.0,
        "scaling_ratio": 1.0 - (1.0 - fixed / model.pairs) * (1.0 - zeroed / weights),
        "iss_found": _joined(screened.record[:, 0]), "ifs_found": _joined(screened.record[:, 1]),
    }  # fmt: skip
    return {
        "n_R": certificate.n_R, "n_L": certificate.n_L, "n_E": model.pairs - ends, "screened_R": screened_R,
        "screened_L": screened_L, "n_survivors": model.pairs - fixed, "rejection_ratio": fixed / model.pairs,
        "screening_rate": fixed / ends if ends else 0.0, "n_features_screened": zeroed, "nnz_w": certificate.nonzero,
        "coefficients": SparseVector.of(certificate.w, certificate.formed), "extras": extras,
    }  # fmt: skip


def _joined(found: np.ndarray) -> str:
    return ";".join([str(count) for count in found.tolist() if count >= 0])
