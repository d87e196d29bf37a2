"""Sparse SVMs with the squared hinge, built on those with the smoothed hinge (:mod:`.sparse`, :mod:`.sparse_free`).

Objective   min_W  P(W) = 1/n sum_(i,c) s_i 1/2 max(0, 1 - m_ic)^2 + alpha/2 ||W||^2 + beta ||W||_1,   sum_i s_i = n
Dual        max    D(v) = 1/n sum s (v - v^2/2) - 1/(2 alpha) ||S_beta(X' psi(v) / n)||^2,   v >= 0,   v(W) = max(0, t)

This is a smoothed hinge of a width ``gamma`` that no ``t = 1 - m`` reaches where ``P(W) <= P(0)``: the loss of one
sample alone would be above ``P(0)``. There ``1/2 t^2 = gamma l(t)``, and ``v = gamma theta``, so that the code for the
smoothed hinge works unchanged: the weights of the samples have the mean ``gamma`` instead of 1, and all numbers are
those of the squared hinge. ``gamma`` is a power of two, so that it rounds nothing. The rules only ever find that a dual
variable is 0, the one end of its box.

A pair whose ``P(W)`` is above ``P(0)`` would be certified as that of the smoothed hinge: none is reported, as every
step is at least as good as zero (``no_worse``).

At ``w = 0`` each ``t`` is 1, or twice the share of the other class with a free intercept. That is not optimal for any
finite ``alpha``, unless ``w`` is: the path begins where the largest margin of the weights of that dual point is 1.
"""

from __future__ import annotations

from math import fsum, inf, log2

import numpy as np

from screenpath.errors import DataError
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel

WIDEST = 511  # binary exponent of a width: its square is a float64


class SquaredHingeModel(SparseModel):
    """A sparse SVM with the squared hinge; parameters as of :class:`SparseModel`, except ``gamma``, which it finds."""

    def __init__(self, views, labels, classes, beta, gamma=None, weights=None, shared=None):
        self.unit = width_beyond(views.n, classes, weights) if shared is None else shared.unit
        super().__init__(views, labels, classes, beta, self.unit, weights, shared)
        if shared is None:
            self._begin_squared()

    def _begin_squared(self) -> None:
        """Find the dual point of ``w = 0``."""
        self.top, self.u_top = self.ones / self.gamma, self.u_ones / self.gamma

    @property
    def width(self) -> float:
        """Return the width of the quadratic part of the loss: infinite."""
        return inf

    @property
    def ones_error(self) -> np.ndarray:
        return super().ones_error * (2.0 / self.gamma)

    @property
    def null_loss(self) -> float:
        return 0.5 * self.pairs / self.n

    @property
    def bend(self) -> float:
        """Return the margin at which the first dual variable is 0."""
        return 1.0

    def exact_until(self, reference, alpha: float) -> bool:
        """Tell whether ``w = 0`` is optimal, for any ``alpha``."""
        return self._top()[0] == 0.0 and super().exact_until(reference, alpha)


class FreeSquaredHingeModel(SquaredHingeModel, FreeSparseModel):
    """A sparse SVM of two classes with the squared hinge and a free intercept."""

    share: float  # of the larger label, by weight

    def __init__(self, views, labels, classes, beta, gamma=None, weights=None, shared=None):
        if shared is not None:
            self.share = shared.share
        super().__init__(views, labels, classes, beta, gamma, weights, shared)

    def _begin_squared(self) -> None:
        """Find the dual point of ``w = 0`` with its best intercept, the difference of the shares of the classes."""
        up, down = (fsum(self.given[self.labels * sign > 0]) for sign in (1, -1))
        self.share = up / (up + down)
        t = np.where(self.labels > 0, 2.0 * (1.0 - self.share), 2.0 * self.share)
        self.top = t / self.gamma
        self.balance(np.full(self.n, 2.0 * self.share - 1.0), self.top)
        self.u_top = self.column_sums(self.weigh(self.top))

    @property
    def null_loss(self) -> float:
        return 2.0 * self.share * (1.0 - self.share)


def width_beyond(n: int, classes: int, weights) -> float:
    """Return a width of the smoothed hinge that no sample reaches with an objective not above that of ``w = 0``.

    ``t^2 s_i / (2 n) <= P(0) <= (classes - 1) / 2`` (or 1/2): ``t <= (n (classes - 1) / s_i)^1/2``.
    """
    least = 0.0  # log2, as the share of a weight among all may be no float64
    if weights is not None:
        given = np.asarray(weights, dtype=np.float64)
        least = log2(given[given > 0.0].min()) + log2(n) - log2(fsum(given))
    power = int(0.5 * (log2(1.01 * n * max(classes - 1, 1)) - least)) + 1  # with room for rounding
    if power > WIDEST:
        raise DataError(
            "a weight is too small beside the others for the squared hinge", "give such samples the weight 0"
        )
    return 2.0**power
