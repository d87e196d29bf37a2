"""Bounds on the rounding error of a sparse SVM's gap, from the sizes of data and point, without a pass over the data.

The gap at ``alpha`` is a sum of terms none of which is negative (Fenchel and Young; ``t`` margins' slacks, ``u`` sums):

    1/n sum_i s_i [l(t_i) - theta_i t_i + gamma/2 theta_i^2] + sum_j [kink_j + (S_beta(u_j) - alpha w_j)^2 / (2 alpha)]

Each bracket is convex in what was summed over the data. Its slope is ``theta_i(w) - theta_i``, of rate ``1/gamma``, and
``S_beta(u_j)/alpha - w_j``, of rate ``1/alpha``. Errors of ``t`` and ``u`` thus enter multiplied by the distance from
the optimum, or squared. At ``alpha = 0``, where ``S`` is 0 for certain, the second bracket is ``kink_j`` alone, and its
slope ``-w_j``. ``T`` and ``U`` bound their norms (``T`` that of dual variables, with the weights ``s``). They include
the rounding of the terms themselves, and of dividing the weights by their mean.

The weights may be products that were rounded: a sample's part of their sum is ``r_i`` times the exact one, where
``r_i`` is 1 to ``inexact``. With the exact parts, ``theta_i r_i / (1 + inexact)`` is a dual point (in its box, and its
sums are those of ``theta``, made smaller by one factor), worth at least that factor of the dual value; the losses grow
by ``inexact`` of them at most. That costs the gap no more than ``2 inexact`` of the primal value.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from screenpath.errors import DataError
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, gamma
from screenpath.regions.geometry import ROUNDING

SMALLEST = 2.0**-1022  # below it a processor takes a hundred times as long for a sum
EXTRA = 16  # operations beside those of a sum's terms: a value's own scaling, the division by n, the term of the gap


class Slacks(NamedTuple):
    """The slacks of the rules' comparisons and sums, relative to the sizes of what is compared.

    Parameters
    ----------
    rows, columns : float
        Of products of a row, or a column, with a vector, changed one term after the other.
    row_norms, column_norms : float
        Share of a full squared norm that subtracting its terms may lose.
    floor : float
        More than underflow may lose of a squared norm.
    squares : float
        Share of a squared radius that subtracting known coordinates may lose.
    """

    rows: float
    columns: float
    row_norms: float
    column_norms: float
    floor: float
    squares: float


class SparseRounding:
    """Bounds for one data set.

    Parameters
    ----------
    views : rows.base.TwoViews
    pairs : int
        Dual variables.
    smoothing : float
        Of the hinge.
    weights : ndarray of shape (n,), optional
        Of the samples, of mean ``unit``.
    inexact : float, default 0
        Largest relative error of a sample's part of the sum of the weights, as they are given.

    Raises
    ------
    DataError
        If the square of a value or a sum of squares overflows.
    """

    def __init__(self, views, classes: int, pairs: int, smoothing: float, weights=None, unit: float = 1.0,
                 inexact: float = 0.0):  # fmt: skip
        for squares, what in ((views.row_sqnorms, "sample"), (views.column_sqnorms, "feature")):
            check_range(squares, what)
        self.n, self.pairs, self.weights, self.smoothing = views.n, pairs, classes * views.d, smoothing
        self.inexact = inexact
        longest = [int(np.diff(ends).max(initial=0)) for ends in (views.row_ends, views.column_ends)]
        self.row, self.column = gamma(longest[0] + EXTRA), gamma(longest[1] + classes + EXTRA)
        self.total, self.penalty = gamma(classes * views.n + EXTRA), gamma(self.weights + EXTRA)
        self.spread = sqrt(2.0 * classes) if classes > 1 else 1.0  # of two scores' errors over the pairs
        self.root, self.peak = (
            sqrt(pairs * unit),
            1.0,
        )  # norm of a dual point of ones; most that a weight adds to a norm
        squares = views.row_sqnorms
        if weights is not None:
            self.root, self.peak = self.root * (1.0 + self.total), sqrt(weights.max()) * OUTWARD
            squares = squares * weights
        self.lost_pairs, self.lost_sums = pairs * TINY, 8.0 * TINY * sqrt(self.weights)  # by underflow
        # ||X|| / n, and what the psi of a dual point of norm 1 can amount to.
        self.size = float(self.upper_norms(squares.sum(), views.size)) * sqrt(classes) / views.n
        terms = longest[0], longest[1] * classes
        rows, columns = (max(ROUNDING, gamma(8 * count + 8 * EXTRA)) for count in terms)
        row_norms, column_norms = (max(1e-13, gamma(2 * count + EXTRA)) for count in terms)
        squares = gamma(2 * max(self.weights, classes * views.n) + 8 * EXTRA)
        self.slacks = Slacks(rows, columns, row_norms, column_norms, SMALLEST, squares)
        self.grown = 1.0 + max(ROUNDING, 16.0 * self.total)  # of a squared radius that is summed over dual variables

    def upper_norms(self, squares, terms: int):
        """Return upper bounds of norms, from computed sums of so many squares."""
        return np.sqrt(squares + 2.0 * (terms + 1) * TINY) * (1.0 + gamma(terms + EXTRA))

    def finish(self, c, reach: float, active: int) -> None:
        """Write the primal objective, the gap and their error bounds to a certificate whose sums are known.

        ``reach`` and ``active``: see ``kernels.problem.sparse.feature_terms``; norms over n.
        """
        theta, root_alpha, root_lag = sqrt(c.theta_sq), sqrt(c.alpha), sqrt(c.lag_sq)
        reach += abs(c.intercept) * self.root / self.n  # as if of one column more, of ones
        T = c.t_error = self.row * (self.spread * self.n * reach * self.peak + 4.0 * self.root)
        c.cost += c.off * T / self.n
        if c.alpha > 0.0:
            own = 2.0 * c.beta * sqrt(active) + root_alpha * (root_lag + 2.0 * sqrt(c.w_sq))
            c.u_error = self.column * (theta + 1e-150) * self.size + 4.0 * UNIT * own + self.lost_sums + c.shift
        else:
            c.u_error = self.column * self.spread * self.peak * (theta + 1e-150) * reach
            c.u_error += (8.0 * (UNIT * c.beta + TINY) + c.shift) * c.w_l1
        penalty = 0.5 * c.w_sq + c.beta * c.w_l1
        c.primal = c.loss + penalty
        best = theta + sqrt(c.apart_sq)  # at least ||theta(w)||
        off = min((best + 0.5 * T / self.smoothing) * T, self.root * T) / self.n
        c.floor = self.floor(c.w_l1, root_alpha * root_lag)
        c.primal_error = OUTWARD * (off + (self.total + self.inexact) * c.loss + self.penalty * penalty + c.floor)
        rest, lag_sq, c.rounding = self.parts(c, c.alpha)
        c.gap = OUTWARD * (rest + 0.5 * lag_sq + c.rounding)
        if not c.gap < inf:
            c.gap, c.rounding = inf, 0.0

    def parts(self, c, alpha: float) -> tuple[float, float, float]:
        """Return the parts of the gap of a certified pair at some ``alpha``.

        Returns
        -------
        rest : float
            The samples' share and the kinks.
        lag_sq : float
            ``||S - alpha w||^2 / alpha``; half of it is the other part of the penalty's share.
        error : float
            Bound on the rounding error of ``rest + lag_sq / 2``, and of ``rest + lag_sq / 4`` when doubled.
        """
        lag_sq, unsure = c.lag_sq, self.penalty * (c.kink + c.lag_sq) + c.floor
        if alpha != c.alpha:  # S - alpha w = (S - alpha_0 w) + (alpha_0 - alpha) w
            ratio, step = c.alpha / alpha, (c.alpha - alpha) / c.alpha
            lag_sq = max(ratio * (c.lag_sq + 2.0 * step * c.lag_w + step * step * c.w_sq), 0.0)
            sizes = sqrt(c.lag_sq) + abs(step) * sqrt(c.w_sq)
            unsure += ratio * (self.penalty * sizes * sizes + c.floor * (1.0 + step * step))
        T, U = c.t_error, c.u_error
        samples = min((sqrt(c.apart_sq + self.lost_pairs) + 0.5 * T / self.smoothing) * T, self.root * T) / self.n
        penalty = (sqrt(lag_sq) / sqrt(alpha) + 0.5 * U / alpha) * U if alpha > 0.0 else U
        unsure += self.total * (c.loss_slack + UNIT * c.loss) + self.of_weights(c, alpha)
        return c.loss_slack + c.kink, lag_sq, samples + penalty + unsure + c.cost

    def of_weights(self, c, alpha: float) -> float:
        """Return a bound on the effect of the given weights' rounding on the gap at some ``alpha``."""
        ratio = alpha / c.alpha if alpha > 0.0 else 1.0
        return 2.0 * self.inexact * (c.loss + 0.5 * ratio * c.w_sq + c.beta * c.w_l1) if self.inexact else 0.0

    def floor(self, w_l1: float, lag: float) -> float:
        """Return a bound on the underflow in the sums over dual variables and weights; ``lag = ||S - alpha w||``."""
        return 16.0 * TINY * (self.pairs + self.weights + w_l1 + sqrt(self.weights) * lag)


def check_range(squares, what: str) -> None:
    """Raise a DataError if the squared norm of a line of the data has overflowed."""
    bad = np.flatnonzero(~np.isfinite(squares))
    if bad.size:
        raise DataError(
            f"overflow: the squared norm of {what} {bad[0] + 1} exceeds the range of floating point",
            "scale the data: `scale=maxabs`, or divide the features by a constant",
        )
