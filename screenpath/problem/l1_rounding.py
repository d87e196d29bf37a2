r"""What rounding can add to the gap of the L1-regularised squared hinge, and how a dual point is made feasible exactly.

For a dual point ``a >= 0`` with ``y.a = 0`` and ``|f_j.a| <= lambda`` the gap is a sum of terms none of which is
negative; the bias ``b`` is not in it:

    1/2 ||s_+ - a||^2 + s_-.a + sum_j (lambda |w_j| - w_j f_j.a),    s = |y| - F'w - y b

where ``y_i`` is the label times the root of the sample's weight. That weight, its root, and the products
``f_ij = y_i x_ij`` with it, are rounded: an entry of a column, a ``y_i`` and an ``|y_i|`` may be off by ``4 UNIT`` of
itself, which the terms below count as they count the rounding of a scaling (``EXTRA``). Without weights these numbers
are exact.

With ``r = max(s, 0)`` as computed, ``a = scale r'``: ``r'`` is ``r`` with the entries of one class multiplied by the
factor that makes ``y.r' = 0`` exact, and ``scale`` leaves room for what is not known of ``f_j.r'``. Errors of ``s`` are
multiplied by ``s_+ - a``, which vanishes at the optimum; those of ``f_j.a`` by ``w_j``.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, sqrt

from screenpath.kernels.problem import l1svm as kernels
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, WEIGHTS_ERROR, gamma

EXTRA = 16  # operations beside those of a sum's terms: a value's own scaling, the bias, the terms of the gap


class L1Rounding:
    """Bounds for data of so many samples and features.

    ``length`` is ``||y||``, of weighted samples, not below the exact one. ``data`` is the largest relative error of a
    value of the data; up to ``4 UNIT`` of it is part of ``EXTRA``. With ``doubtful``, norms of columns include the
    uncertainty of the data, as so many times the rounding of ``column``.
    """

    def __init__(
        self, samples: int, features: int, length: float | None = None, data: float = 0.0, doubtful: bool = False
    ):
        self.data, self.doubtful = data, doubtful
        self.extra = EXTRA + (max(ceil(data / UNIT) - 4, 0) if data else 0)
        self.samples, self.root = samples, sqrt(samples) if length is None else length
        self.inexact = 0.0 if length is None else 0.5 * WEIGHTS_ERROR + 2.0 * UNIT
        self.column, self.terms = gamma(samples + self.extra), samples + features + EXTRA

    def slack(self, terms: int, reach: float, bias: float) -> float:
        """Return a bound on the norm of the error of ``s``, for ``terms`` weights that are not 0.

        ``reach`` is ``sum |w_j| ||f_j||``.
        """
        lost = self.terms * max(self.root, sqrt(self.samples)) * TINY
        depth = max(terms, self.samples) if self.doubtful else terms
        return gamma(depth + self.extra) * (reach + 2.0 * self.root * (1.0 + abs(bias))) + lost

    def proof(self, lam: float, scale: float, hoped: float, sums, weights, off: float) -> dict:
        """Return the primal objective, the gap and the bounds on their rounding, as the fields of a certificate.

        Parameters
        ----------
        hoped : float
            The largest ``scale`` without rounding: the difference is due to rounding.
        sums : tuple of float
            ``|y|.r``, ``||r||^2`` and ``y.r``.
        weights : tuple
            How many are not zero, ``||w||_1``, ``sum |w_j| ||f_j||`` and ``sum w_j f_j.r``.
        off : float
            Bound on the norm of the error of ``s``.
        """
        (total, squares, balance), (terms, weight, reach, pull) = sums, weights
        tail, norm = gamma(terms + EXTRA), sqrt(squares + self.samples * TINY) * (1.0 + self.column)
        taken = kernels.imbalance(total, balance, self.column)
        primal = 0.5 * squares + lam * weight
        floor = self.terms * TINY * (1.0 + (1.0 + scale) * weight)
        primal_error = OUTWARD * ((norm + 0.5 * off) * off + self.column * squares + tail * lam * weight + floor)
        apart = (abs(1.0 - scale) + (taken + 4.0 * UNIT) * scale) * norm + off
        unsure = scale * kernels.blur(total, squares, balance, self.column) * reach
        unsure += 2.0 * tail * (lam * weight + unsure) + floor
        gap = OUTWARD * (0.5 * apart * apart + max(lam * weight - scale * pull + unsure, 0.0))
        core = 0.5 * (1.0 - hoped) * (1.0 - hoped) * squares + max(lam * weight - hoped * pull, 0.0)
        rounding = max(gap - core, 0.0)
        if not isfinite(gap):
            gap, rounding = inf, 0.0
        return {"primal": primal, "primal_error": primal_error, "gap": gap, "rounding": rounding}
