r"""Bounds on the rounding error of a gap with feature penalties, from the sizes of data and point, without a data pass.

The gap is the sum of the shares of rows and columns (``kernels/problem/share.py``), none of which is negative:

    sum_i s_i [l(t_i) - theta_i t_i + gamma/2 theta_i^2] + sum_j [kink_j + (S_beta(u_j) - alpha w_j)^2 / (2 alpha)]

Each is convex in what was summed over the data, so that the larger of its values at both ends of an error bounds it.
Its slope is ``theta_i(w) - theta_i``, of rate ``1/gamma``, and ``S_beta(u_j)/alpha - w_j``, of rate ``1/alpha``. Errors
of ``t`` and ``u`` thus enter multiplied by the distance from the optimum, or squared: :func:`rise` sums both ends over
all rows, or all columns. At ``alpha = 0``, where ``S`` is 0 for certain, a column's share is ``kink_j`` alone, and its
slope ``-w_j``. ``T`` and ``U`` bound the norms of the errors (``T`` that of dual variables, with the weights ``s``).
They include the rounding of the terms themselves, and of the weights.

**A sparse SVM** divides its weights by their mean. They may be products that were rounded: a sample's part of their sum
is ``r_i`` times the exact one, where ``r_i`` is 1 to ``inexact``. With the exact parts, ``theta_i r_i / (1 + inexact)``
is a dual point (in its box, and its sums are those of ``theta``, made smaller by one factor), worth at least that
factor of the dual value; the losses grow by ``inexact`` of them at most. That costs the gap no more than ``2 inexact``
of the primal value.

**An L1-SVM** has ``alpha = 0``, ``gamma = 1``, no upper end, and ``t_i`` and ``theta_i`` times the root of the weight:
``s = |y| - F'w - y b``, where ``y_i`` is the label times that root. The weight, its root, and the products ``f_ij =
y_i x_ij`` with it, are rounded: an entry of a column, a ``y_i`` and an ``|y_i|`` may be off by ``4 UNIT`` of itself,
which the terms below count as they count the rounding of a scaling (``EXTRA``). With ``r = max(s, 0)`` as computed, the
dual point is ``a = scale r'``: ``r'`` is ``r`` with the entries of one class multiplied by the factor that makes
``y.r' = 0`` exact, and ``scale`` leaves room for what is not known of ``f_j.r'``.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import l1svm as kernels
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, WEIGHTS_ERROR, gamma
from screenpath.regions.geometry import ROUNDING

SMALLEST = 2.0**-1022  # below it a processor takes a hundred times as long for a sum
EXTRA = 16  # operations beside those of a sum's terms: a value's own scaling, the division by n, the term of the gap


def extra(data: float) -> int:
    """Return how many operations count beside those of a sum's terms if values of the data are off by ``data``."""
    return EXTRA + (max(ceil(data / UNIT) - 4, 0) if data else 0)


def rise(slope: float, off: float, curve: float, steepest: float = inf) -> float:
    """Return the most that shares grow by whose arguments are off by ``off``, as norms; ``steepest`` bounds slopes."""
    return min((slope + 0.5 * off / curve) * off, steepest * off)


def proven(primal: float, primal_error: float, gap: float, rounding: float, part: float = 1.0) -> dict:
    """Return the fields of a certificate; what overflows proves nothing.

    If ``part`` of the point at hand alone is a dual point ``theta``, so is 0, and ``D(part theta) >= part D(theta)``.
    """
    if part < 1.0:
        scaled = OUTWARD * (part * gap + OUTWARD * (1.0 - part) * (primal + primal_error))
        gap, rounding = scaled, rounding + max(scaled - gap, 0.0)
    gap, rounding = (gap, rounding) if isfinite(gap) else (inf, 0.0)
    return {"primal": primal, "primal_error": primal_error, "gap": gap, "rounding": rounding}


class Slacks(NamedTuple):
    """The slacks of the rules' comparisons and sums, relative to the sizes of what is compared."""

    rows: float  # rows, columns: of products of a row, or a column, with a vector, changed one term after the other
    columns: float
    row_norms: float  # row_norms, column_norms: share of a full squared norm that subtracting its terms may lose
    column_norms: float
    floor: float  # more than underflow may lose of a squared norm
    squares: float  # share of a squared radius that subtracting known coordinates may lose


class SparseRounding:
    """Bounds for one data set with so many dual variables, ``pairs``, of a hinge with that ``smoothing``.

    ``weights``, shape (n,), are those of the samples, of mean ``unit``; ``inexact`` is the largest relative error of a
    sample's part of their sum, as they are given. ``kinks_sq`` is the sum of the weighted squares of the losses' kinks,
    by default of ones; dual variables have ends that are ``width`` apart. A DataError is raised if the square of a
    value or a sum of squares overflows.
    """

    def __init__(self, views, classes: int, pairs: int, smoothing: float, weights=None, unit: float = 1.0,
                 inexact: float = 0.0, kinks_sq: float | None = None, width: float = 1.0):  # fmt: skip
        for squares, what in ((views.row_sqnorms, "sample"), (views.column_sqnorms, "feature")):
            check_range(squares, what)
        self.n, self.pairs, self.weights, self.smoothing = views.n, pairs, classes * views.d, smoothing
        self.inexact = inexact
        longest = [int(np.diff(ends).max(initial=0)) for ends in (views.row_ends, views.column_ends)]
        self.data = min(views.inexact, gamma(longest[0] + EXTRA))  # a row's norm is a sum of as many terms
        more = extra(self.data)
        self.row, self.column = gamma(longest[0] + more), gamma(longest[1] + classes + more)
        self.total, self.penalty = gamma(classes * views.n + EXTRA), gamma(self.weights + EXTRA)
        self.spread = sqrt(2.0 * classes) if classes > 1 else 1.0  # of two scores' errors over the pairs
        # norm of a dual point of ones; most that a weight adds to a norm
        self.root, self.peak = sqrt(pairs * unit), 1.0
        squares = views.row_sqnorms
        if weights is not None:
            self.root, self.peak = self.root * (1.0 + self.total), sqrt(weights.max()) * OUTWARD
            squares = squares * weights
        ones = kinks_sq is None or kinks_sq == pairs * unit
        # norm of the kinks, and most that the shares change by where all margins do by 1
        self.kinks = self.root if ones else sqrt(kinks_sq or 0.0) * (1.0 + 2.0 * self.total)
        self.steep = self.root * width
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

    def finish(self, c, reach: float, active: int, most: float = 0.0) -> None:
        """Write the primal objective, the gap and their error bounds to a certificate whose sums are known.

        ``reach`` and ``active``: see ``kernels.problem.sparse.feature_terms``; norms over n. At ``alpha = 0`` no
        ``|u_j|`` is above ``most``.
        """
        theta, root_alpha, root_lag = sqrt(c.theta_sq), sqrt(c.alpha), sqrt(c.lag_sq)
        reach += abs(c.intercept) * self.root / self.n  # as if of one column more, of ones
        T = c.t_error = self.row * (self.spread * self.n * reach * self.peak + 4.0 * self.kinks)
        c.cost += c.off * T / self.n
        if c.alpha > 0.0:
            own = 2.0 * c.beta * sqrt(active) + root_alpha * (root_lag + 2.0 * sqrt(c.w_sq))
            c.u_error = self.column * (theta + 1e-150) * self.size + 4.0 * UNIT * own + self.lost_sums + c.shift
        else:
            c.u_error = self.column * self.spread * self.peak * (theta + 1e-150) * reach
            c.u_error += (8.0 * (UNIT * c.beta + TINY) + c.shift) * c.w_l1
        penalty = 0.5 * c.w_sq + c.beta * c.w_l1
        off = rise(theta + sqrt(c.apart_sq), T, self.smoothing, self.root) / self.n  # at least ||theta(w)||
        c.floor = self.floor(c.w_l1, root_alpha * root_lag)
        primal_error = OUTWARD * (off + (self.total + self.inexact) * c.loss + self.penalty * penalty + c.floor)
        rest, lag_sq, rounding = self.parts(c, c.alpha)
        if most + c.shift > c.beta and c.alpha == 0.0:
            c.part = c.beta / (most + c.shift) / OUTWARD
        gap = OUTWARD * (rest + 0.5 * lag_sq + rounding)
        found = proven(c.loss + penalty, primal_error, gap, rounding, c.part)
        c.primal, c.primal_error, c.gap, c.rounding = found.values()

    def parts(self, c, alpha: float) -> tuple[float, float, float]:
        """Return the parts of the gap of a certified pair at some ``alpha``.

        These are ``rest``, the samples' share and the kinks; ``lag_sq = ||S - alpha w||^2 / alpha``, half of which is
        the other part of the penalty's share; and a bound on the rounding error of ``rest + lag_sq / 2``, and of
        ``rest + lag_sq / 4`` when doubled.
        """
        lag_sq, unsure = c.lag_sq, self.penalty * (c.kink + c.lag_sq) + c.floor
        if alpha != c.alpha:  # S - alpha w = (S - alpha_0 w) + (alpha_0 - alpha) w
            ratio, step = c.alpha / alpha, (c.alpha - alpha) / c.alpha
            lag_sq = max(ratio * (c.lag_sq + 2.0 * step * c.lag_w + step * step * c.w_sq), 0.0)
            sizes = sqrt(c.lag_sq) + abs(step) * sqrt(c.w_sq)
            unsure += ratio * (self.penalty * sizes * sizes + c.floor * (1.0 + step * step))
        T, U = c.t_error, c.u_error
        samples = rise(sqrt(c.apart_sq + self.lost_pairs), T, self.smoothing, self.steep) / self.n
        penalty = rise(sqrt(lag_sq) / sqrt(alpha), U, alpha) if alpha > 0.0 else U
        unsure += self.total * (c.loss_slack + UNIT * c.loss) + self.of_weights(c, alpha)
        return c.loss_slack + c.kink, lag_sq, samples + penalty + unsure + c.cost

    def of_weights(self, c, alpha: float) -> float:
        """Return a bound on the effect of the given weights' rounding on the gap at some ``alpha``."""
        ratio = alpha / c.alpha if alpha > 0.0 else 1.0
        return 2.0 * self.inexact * (c.loss + 0.5 * ratio * c.w_sq + c.beta * c.w_l1) if self.inexact else 0.0

    def floor(self, w_l1: float, lag: float) -> float:
        """Return a bound on the underflow in the sums over dual variables and weights; ``lag = ||S - alpha w||``."""
        return 16.0 * TINY * (self.pairs + self.weights + w_l1 + sqrt(self.weights) * lag)


class L1Rounding:
    """Bounds for data of so many samples and features.

    ``length`` is ``||y||``, of weighted samples, not below the exact one. ``data`` is the largest relative error of a
    value of the data; up to ``4 UNIT`` of it is part of ``EXTRA``.
    """

    def __init__(self, samples: int, features: int, length: float | None = None, data: float = 0.0):
        self.data = data
        self.extra = extra(data)
        self.samples, self.root = samples, sqrt(samples) if length is None else length
        self.inexact = 0.0 if length is None else 0.5 * WEIGHTS_ERROR + 2.0 * UNIT
        self.column, self.terms = gamma(samples + self.extra), samples + features + EXTRA

    def slack(self, terms: int, reach: float, bias: float) -> float:
        """Bound the norm of the error of ``s``, for ``terms`` nonzero weights; ``reach`` is ``sum |w_j| ||f_j||``."""
        lost = self.terms * max(self.root, sqrt(self.samples)) * TINY
        return gamma(terms + self.extra) * (reach + 2.0 * self.root * (1.0 + abs(bias))) + lost

    def proof(self, lam: float, scale: float, hoped: float, sums, weights, off: float) -> dict:
        """Return the primal objective, the gap and the bounds on their rounding, as the fields of a certificate.

        ``hoped`` is the largest ``scale`` without rounding: the difference is due to rounding. ``sums`` are ``|y|.r``,
        ``||r||^2`` and ``y.r``; ``weights`` how many are not zero, ``||w||_1``, ``sum |w_j| ||f_j||``, and the shares
        of the columns over ``lam``. ``off`` bounds the norm of the error of ``s``.
        """
        (total, squares, balance), (terms, weight, reach, kink) = sums, weights
        tail, norm = gamma(terms + EXTRA), sqrt(squares + self.samples * TINY) * (1.0 + self.column)
        taken = kernels.imbalance(total, balance, self.column)
        floor = self.terms * TINY * (1.0 + (1.0 + scale) * weight)
        primal_error = OUTWARD * (rise(norm, off, 1.0) + self.column * squares + tail * lam * weight + floor)
        apart = (abs(1.0 - scale) + (taken + 4.0 * UNIT) * scale) * norm + off
        unsure = scale * kernels.blur(total, squares, balance, self.column) * reach
        unsure += 2.0 * tail * (lam * weight + unsure) + floor
        gap = OUTWARD * (0.5 * apart * apart + lam * kink + unsure)
        part = hoped / scale if scale > 0.0 else 1.0
        core = 0.5 * (1.0 - hoped) * (1.0 - hoped) * squares + max(lam * (weight - part * (weight - kink)), 0.0)
        return proven(0.5 * squares + lam * weight, primal_error, gap, max(gap - core, 0.0))


def check_range(squares, what: str) -> None:
    """Raise a DataError if the squared norm of a line of the data has overflowed."""
    bad = np.flatnonzero(~np.isfinite(squares))
    if bad.size:
        raise DataError(
            f"overflow: the squared norm of {what} {bad[0] + 1} exceeds the range of floating point",
            "scale the data: `scale=maxabs`, or divide the features by a constant",
        )
