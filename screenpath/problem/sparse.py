r"""Sparse SVM: smoothed hinge loss with an elastic-net penalty, binary and multi-class (Hong 2019).

Objective   min_W  P(W) = 1/n sum_(i,c) s_i l(1 - m_ic) + alpha/2 ||W||^2 + beta ||W||_1,   sum_i s_i = n
            l(t) = 0 (t < 0),  t^2/(2 gamma) (0 <= t <= gamma),  t - gamma/2 (t > gamma),   0 < gamma < 1
Dual        max    D(theta) = 1/n sum s theta - gamma/(2n) ||theta||^2 - 1/(2 alpha) ||S_beta(u)||^2,  0 <= theta <= 1
            u = X' psi(theta) / n,   W_theta = S_beta(u) / alpha,   theta(W)_ic = clip((1 - m_ic)/gamma, 0, 1)
Stop        gap = P - D <= tol * P, computed here on the full data, outside the solver.

The exact hinge ``l(t) = max(t, 0)`` is ``gamma = 0``: the dual is then concave, but not strongly, and has no balls.
The squared hinge ``l(t) = 1/2 max(0, t)^2``, whose dual variables ``v >= 0`` have no upper end, is one of a width
``gamma`` that no ``t = 1 - m`` reaches where ``P(W) <= P(0)``: the loss of one sample alone would be above ``P(0)``.
There ``1/2 t^2 = gamma l(t)``, and ``v = gamma theta``: with weights of the mean ``gamma`` instead of 1 all numbers are
those of the squared hinge. ``gamma`` is a power of two, so that it rounds nothing. The rules only ever find that a dual
variable is 0, the one end of its box. A pair whose ``P(W)`` is above ``P(0)`` would be certified as that of the
smoothed hinge: none is reported, as every step is at least as good as zero (``no_worse``). At ``w = 0`` each ``t`` is
1, which is not optimal for any finite ``alpha``, unless ``w`` is: the path begins where the largest margin of the
weights of that dual point is 1.
At ``alpha = 0`` the primal has none, and dual points have ``|u_j| <= beta``. The box contains 0, so *any* point of it
becomes one when divided by the excess of its largest ``|u_j|`` over ``beta``, rounding included: every pair has a gap.

A regression has targets ``y`` in place of the hinge's 1, and a loss with two ends, such as Huber's ``h(t) = t^2/(2
gamma)`` for ``|t| <= gamma``, else ``|t| - gamma/2``, of ``t = y - x.w``, whose dual variables are in [-1, 1]:
``D(theta) = 1/n sum s y theta - ...``. All else is the same with ``low`` and ``high`` for 0 and 1, and the targets as
kinks ``c`` of the loss; the paper's dual ball has its centre on the line through ``theta`` and ``c/gamma``. At
``w = 0`` dual variables are between their ends: the path begins as that of the squared hinge, where the largest
``|x_i.w|`` of the weights of that dual point is the largest target.

Binary: one margin a sample, ``m_i = y_i x_i.w``. Multi-class: a margin for each other class ``c != y_i``,
``m_ic = x_i.(w_{y_i} - w_c)``. ``beta`` is fixed; the path runs over ``alpha``, from large to small. A feature with
``|u_j| <= beta`` has no weight; ``m > 1`` implies ``theta = 0`` (R), ``m < 1 - gamma`` implies ``theta = 1`` (L).

Weights of the samples are divided by their mean (the loss is a weighted mean), so that a weight of 2 is the sample
twice. The inner product of dual points is ``<a, b> = sum_(i,c) s_i a_ic b_ic``, ``psi`` has the factor ``s_i``, and a
column ``x^j`` the norm ``(sum_i s_i x_ij^2)^1/2``: in this Hilbert space ``D`` is strongly concave with ``gamma/n`` and
``u`` linear as without weights, so that every ball, lens and conditioning step of the rules holds word for word. What
a margin says about ``theta`` does not depend on the weight. Division by the mean is rounded: a weight may be off by
``3 UNIT`` of itself, some of the ``EXTRA`` operations in the bounds of ``problem/penalised_rounding.py``.
"""

from __future__ import annotations

from copy import copy
from math import fsum, inf

import numpy as np

from screenpath.kernels.problem import sparse as kernels
from screenpath.numbers import accurate
from screenpath.numbers.rounding import ALIKE, OUTWARD, SHARES_ERROR, TINY, UNIT
from screenpath.problem.penalised_rounding import SparseRounding
from screenpath.problem.penalised_sharp import sharpened
from screenpath.problem.sparse_sums import SHARP, SparseSums
from screenpath.problem.sparse_types import (
    HINGE,
    NO_INTERCEPT,
    NO_TOTALS,
    Level,
    SparseCertificate,
    SparseReduced,
    SparseScreened,
    counts_of,
)

FINE = 1e-9  # relative gap that leaves enough room for whatever tolerance is asked for
LOOSE = 1e-6  # what is looked at ahead of a kernel's decision is what it could be with numbers so much larger
# Of beta, at alpha = 0: what bounds of |u_j| have to stay within, and what a dual point that does not is divided for.
# Whoever looks again, with rounding of his own, finds a dual point.
WITHIN, INWARD = 1.0 - 32.0 * UNIT, 1.0 - 64.0 * UNIT
AHEAD = 1.1  # sums are formed where a ball a little larger than the last one could lead to a weight


class SparseModel(SparseSums):
    """Full problem at one ``beta``.

    Parameters
    ----------
    views : rows.base.TwoViews
    labels : ndarray of int64 of shape (n,)
        -1 and +1, or class numbers 0 .. classes - 1.
    classes : int
        1 for the binary model, else the number of classes (at least 3).
    beta : float
    gamma : float
        Smoothing of the hinge; 0 is the exact one, which ``SHARP`` stands for, and infinity the squared one.
    weights : ndarray of shape (n,), optional
        Of the samples, at least 0.
    targets : ndarray of shape (n,), optional
        Kinks of a regression, whose dual variables are between the ``ends``. Its labels are 1; where every row is
        there twice (a tube, kinks ``y - epsilon`` and ``-y - epsilon``), those of the second half are -1.
    signs : ndarray of int8 of shape (d,), optional
        Of weights that are at least 0 (+1) or at most 0 (-1): the soft threshold has one side, and a feature no
        weight where ``u_j`` is on the other, or within ``beta``.
    """

    col_total = NO_TOTALS
    intercept = False  # whether the model has an unpenalised one
    null_level = 0.0  # the best for w = 0
    tail: np.ndarray | None = None  # what the kinks, as rounded, lack

    def __init__(self, views, labels, classes: int, beta: float, gamma: float, weights=None, targets=None,
                 ends: tuple[float, float] = HINGE, signs=None):  # fmt: skip
        super().__init__(views, labels, classes, beta, gamma, weights, targets, ends, signs)
        self._closed: tuple[float, bool] | None = None
        self.reach = 0.0  # radius of the gap ball by which features were screened last
        self.pairs = self.n * (classes - 1 if classes > 1 else 1)  # dual variables
        self.mass = self.pairs * self.mean  # sum of their weights
        inexact = 0.0 if weights is None else SHARES_ERROR
        if accurate.two_sum(self.high, -1.0)[1] != 0.0:  # a quantile's lower end is rounded, and again with a weight
            inexact += 2.0 * UNIT * (1 + (weights is not None))
        weights = self.weights if self.weighted else None
        self.kinks_sq = float(self.weights @ np.square(targets)) if self.regression else self.mass
        self.rounding = SparseRounding(
            views, classes, self.pairs, self.gamma, weights, self.mean, inexact, self.kinks_sq, self.high - self.low
        )
        self.all_kept, self.row_sq = np.ones(classes * self.d, dtype=np.int8), np.tile(views.row_sqnorms, classes)
        self.u_kinks = self.column_sums(self.weigh(self.kinks if self.regression else self.ones))
        # The dual point of w = 0, where a path begins, and its sums; twice the point that rows are seen from.
        self.highest = min(1.0 / self.gamma, 1.0)
        self.top, self.u_top, self.twice = self.highest * self.ones, self.highest * self.u_kinks, np.zeros(self.d)
        if self.regression:
            with np.errstate(over="ignore"):  # beside a gamma near 0, that of the loss itself
                self.top = np.clip(targets / self.gamma, *ends)
            self.u_top = self.column_sums(self.weigh(self.top))
        self.row_sizes = views.row_sqnorms  # of rows and that point
        if classes == 1 and not self.weighted:
            self.col_sq = views.column_sqnorms
        else:
            shares = np.tile(self.weights, classes)  # of the dual variables that involve a class
            if classes > 1:
                shares[labels * self.n + np.arange(self.n)] *= classes - 1.0
            self.col_sq = self._column_squares(classes, shares)
        upper = self.rounding.upper_norms  # a bound grows with a norm: none is below the exact one
        self.row_norm, self.col_norm = upper(views.row_sqnorms, self.d), upper(self.col_sq, classes * self.n) / self.n
        alike = classes == 1 and not self.weighted
        sizes, present = views.column_sqnorms, self.given > 0.0  # a sample without weight takes part in nothing
        sizes = sizes if present.all() else self._column_squares(1, present.astype(np.float64))
        self.feature_norm = self.col_norm if alike else upper(sizes, self.n) / self.n
        # Of no feature, for a start: the row norms that were summed last, see kernels.conditioning.keep_columns.
        self.known_norms = np.zeros(classes * self.d, dtype=np.int8), np.zeros(classes * self.n)

    def at(self, beta: float) -> SparseModel:
        """Return the model of the same data at another ``beta``."""
        model = copy(self)
        model.beta, model.reach, model._closed = float(beta), 0.0, None
        return model

    @property
    def width(self) -> float:
        """Return the width of the quadratic part of the loss, as given; infinite for the squared hinge."""
        return inf if self.squared else self.gamma

    @property
    def sharp(self) -> bool:
        return self.gamma == SHARP

    def smoothed(self, gamma: float) -> SparseModel:
        """Return the model of the same data at the same ``beta`` with a hinge of another width."""
        model = copy(self)
        model.gamma, model.rounding, model._closed = gamma, copy(self.rounding), None
        model.rounding.smoothing = gamma
        return model

    # -- the intercept -------------------------------------------------------------------------------------------

    def placed(self, scores: np.ndarray, intercept=None, guess=0.0) -> Level:
        """Add the intercept, if any, to the scores and return it: the best, searched from ``guess``, unless given."""
        return NO_INTERCEPT

    def answers(self, inside: np.ndarray) -> np.ndarray:
        """Return unit lines, shape (0 or 1, k), by which a free intercept answers; rows count with roots of weights."""
        return np.empty((0, inside.size))

    def balance(self, scores: np.ndarray, theta: np.ndarray) -> bool:
        """Correct the rounding that keeps ``theta(w)`` from being a dual point; tell whether it moved."""
        return False

    def residue(self, scores: np.ndarray, theta: np.ndarray, extent: float) -> dict:
        """Return the difference of an exact dual point, as fields of a certificate."""
        return {}

    # -- passes over the data ------------------------------------------------------------------------------------

    def psi_of(self, certificate: SparseCertificate) -> np.ndarray:
        return self.weigh(certificate.theta) if certificate.psi is None else certificate.psi

    def _passes(
        self, w: np.ndarray, psi: np.ndarray, reference: SparseCertificate, scores: np.ndarray | None, room: float
    ):
        """Return scores, ``X' psi / n`` with bounds on its errors (see :meth:`certify`), and the features computed."""
        out, slack, multiply = np.empty(w.size), np.empty(w.size), scores is None
        scores = np.empty(self.ones.size) if multiply else scores
        view = self.views.columns(None if self.views.whole else self._formed(w, psi, reference, room))
        earlier = kernels.Earlier(
            self.psi_of(reference), reference.u, reference.u_slack, self.feature_norm, self.col_norm
        )
        off, sums = self.rounding.slacks.columns, (out, slack)
        touched, features = kernels.pair_sums(
            view, w, self.signs, psi, earlier, self.beta, room, off, sums, multiply, scores
        )
        self.rows.touched += touched
        return scores, sums, features

    def _formed(self, w: np.ndarray, psi: np.ndarray, reference: SparseCertificate, room: float) -> np.ndarray:
        """Mark the features whose sums ``kernels.pair_sums`` may compute, and perhaps a few more."""
        now, then = psi.reshape(-1, self.n), self.psi_of(reference).reshape(-1, self.n)
        drift, size, off = np.linalg.norm(now - then, axis=1), np.linalg.norm(now, axis=1), self.rounding.slacks.columns
        rates = drift + off * (drift + size)
        errors = reference.u_slack + (rates[:, None] * self.feature_norm).ravel()
        most = self.outward(reference.u) + errors + room * self.col_norm
        return (w != 0.0) | (most * (1.0 + LOOSE) > self.beta * (1.0 - off - LOOSE))

    # -- certificate ---------------------------------------------------------------------------------------------

    def certify(
        self, alpha: float, w, theta, reference: SparseCertificate | None = None, sums=None, intercept=None
    ) -> SparseCertificate:
        """Evaluate both objectives on the full data: one ``X w`` with sparse ``w`` and the necessary part of ``X'
        psi``.

        The dual reads ``S_beta(u)``. Where the reference's ``u_j``, its error and ``||x^j|| ||psi - psi_0|| / n`` sum
        up to no more than ``beta`` it is 0 whatever ``u_j``, and the column is not touched: the gap is still that of
        the full data.

        ``w``, ``theta`` (shape (classes * d,) and (classes * n,), or None): the pair, ``theta`` between its ends. One
        may be None: the primal point of ``theta``, or ``theta(w)``. ``reference``: an earlier certificate of this
        model, whose ``u`` bounds the new one. ``sums``, ``intercept``: ``u`` and ``u_slack``, and the intercept, of a
        restored pair, which continues with the same numbers.
        """
        scores, psi, features, room, level = None, None, self.every, 0.0, None
        guess = 0.0 if reference is None else reference.intercept
        if theta is None:
            scores, theta, psi = self.scores(w), np.empty(self.ones.size), np.empty(self.ones.size)
            level = self.placed(scores, intercept, guess)
            kernels.respond(scores, self.samples, self.free, theta, psi)
            if self.balance(scores, theta):
                psi = self.weigh(theta)
        elif sums is None and theta is self.top:
            sums = self.u_top, np.zeros(self.u_top.size)
        if sums is None:
            psi = self.weigh(theta) if psi is None else psi
            if w is None or reference is None:
                sums = self.column_sums(psi), np.zeros(self.u_kinks.size)
            else:
                room = AHEAD * self.reach
                scores, sums, features = self._passes(w, psi, reference, scores, room)
        u, u_slack = sums
        if w is None:  # at alpha = 0, or as good as that, a dual point has no other weights of its own than 0
            inverse = 1.0 / alpha if alpha > 0.0 else np.inf
            w = self.shrunk(u) * inverse if inverse < np.inf else np.zeros(u.size)
        if scores is None:
            scores = self.scores(w)
        if level is None:
            level = self.placed(scores, intercept, guess)
        most = 0.0
        if alpha == 0.0:
            given = theta
            theta, u, u_slack, most = self.within_beta(theta, u, u_slack)
            psi = psi if theta is given else None
        loss, loss_slack, *terms = kernels.sample_terms(scores, self.samples, theta)
        samples = loss / self.n, max(loss_slack / self.n, 0.0), *terms
        return self.pair(alpha, w, scores, theta, (u, u_slack), samples, features, room, psi, level, most)

    def within_beta(self, theta: np.ndarray, u: np.ndarray, slack: np.ndarray) -> tuple:
        """Return a dual point at ``alpha = 0`` on the ray of a point of the box, ``u`` and ``u_slack``, and a bound on
        the largest ``|u_j|``; the largest one up to ``theta``, as the dual is concave, and at least 0 where it is used.
        """
        lengths = np.linalg.norm(self.weigh(theta).reshape(self.classes, self.n), axis=1) + 1e-150
        errors = self.rounding.column * np.outer(lengths, self.feature_norm).ravel() + 8.0 * TINY
        most = OUTWARD * self.dual_norm(u, slack + errors)
        if most <= WITHIN * self.beta:
            return theta, u, slack, most
        if not most < np.inf:
            return np.zeros(theta.size), np.zeros(u.size), np.zeros(u.size), 0.0
        factor = INWARD * self.beta / most
        return factor * theta, factor * u, factor * slack, OUTWARD * factor * most

    def pair(
        self, alpha: float, w, scores, theta, sums, samples, features, room=0.0, psi=None, level=NO_INTERCEPT, most=0.0
    ) -> SparseCertificate:
        """Return the certificate of a pair whose sums over the data are known, rounding included.

        ``w``, ``scores``, ``theta``, ``room``, ``psi``: as in :class:`SparseCertificate`; ``sums`` are its ``u`` and
        ``u_slack``. ``samples``: its fields from ``loss`` to ``n_L``. ``features`` (int64): ``w`` and ``S_beta(u)`` are
        0 outside of these. ``level``: the intercept included in the scores. ``most``: at ``alpha = 0``, a bound on the
        largest ``|u_j|``.
        """
        u, u_slack = sums
        penalty = self.penalty_terms(w, u, features, alpha)
        w_sq, w_l1, kink, lag_sq, lag_w, reach, active, nonzero = penalty
        terms = (*samples, w_sq, w_l1, kink, lag_sq, lag_w, nonzero)
        found = SparseCertificate(
            alpha, self.beta, w, scores, theta, u, u_slack, *terms, formed=features, room=room, psi=psi,
            intercept=level.intercept, low=level.low, high=level.high,
            **self.residue(scores, theta, reach * self.n + abs(level.intercept)),
        )  # fmt: skip
        self.rounding.finish(found, reach, active, most)
        return found

    def penalty_terms(self, w: np.ndarray, u: np.ndarray, features: np.ndarray, alpha: float) -> tuple:
        """Return what a certificate needs of the penalty, see ``kernels.problem.sparse.feature_terms``."""
        return kernels.feature_terms(w, u, self.signs, features, self.feature_norm, alpha, self.beta)

    sharpened = sharpened

    def fallbacks(self, alpha: float, reference: SparseCertificate) -> list[SparseCertificate]:
        zero, none = np.zeros(self.u_kinks.size), np.zeros(self.ones.size)
        pairs = (zero, none), (zero, None), (reference.w, reference.theta), (None, reference.theta)
        return [self._known(alpha, *pair) for pair in pairs]

    def _known(self, alpha: float, w, theta) -> SparseCertificate:
        """Return the certificate of a pair, in twice the precision if its gap is mostly rounding."""
        found = self.certify(alpha, w, theta)
        return self.sharpened(found, FINE) if found.rounding > 0.5 * found.gap else found

    def no_worse(self, alpha: float, certificate: SparseCertificate, reference: SparseCertificate) -> SparseCertificate:
        null = self.null_loss
        squares = 0.5 * reference.w_sq * (alpha / reference.alpha) if alpha > 0.0 else 0.0
        before = reference.loss + squares + self.beta * reference.w_l1
        if certificate.primal <= min(null, before) * (1.0 + ALIKE):
            return certificate
        w = np.zeros(self.u_kinks.size) if null < before else reference.w
        return self.certify(alpha, w, certificate.theta, certificate)

    def combined(self, alpha: float, primal: SparseCertificate, dual: SparseCertificate) -> SparseCertificate:
        return primal if primal is dual else self._known(alpha, primal.w, dual.theta)

    def gap_at(self, certificate: SparseCertificate, alpha: float) -> float:
        """Return an upper bound of the gap of a certified pair at another ``alpha``."""
        if alpha == certificate.alpha:
            return certificate.gap
        rest, lag_sq, error = self.rounding.parts(certificate, alpha)
        gap = OUTWARD * (rest + 0.5 * lag_sq + error)
        return gap if gap < np.inf else np.inf

    # -- closed-form start ---------------------------------------------------------------------------------------

    @property
    def ones_error(self) -> np.ndarray:
        """Return bounds on the errors of ``u_kinks`` and ``u_top``, shape (classes * d,)."""
        size = self.rounding.column * np.sqrt(self.classes * self.mass) * self.rounding.peak
        more = 2.0 * self.highest if self.squared else 2.0 if self.regression else 1.0
        return size * np.tile(self.feature_norm, self.classes) * more

    @property
    def null_loss(self) -> float:
        """Return the loss at ``w = 0``."""
        if self.regression:
            t = self.kinks - self.labels * self.null_level
            return fsum(self.weights * (self.top * (t - 0.5 * self.gamma * self.top))) / self.n
        return self.mass / self.n * (self.highest * (1.0 - 0.5 * self.gamma * self.highest))

    @property
    def beta_max(self) -> float:
        """Return the ``beta`` from which ``w = 0`` is always optimal (Hong 2019, Lemma 4); 0 if all is rounding."""
        return accurate.largest(np.maximum(self.outward(self.u_top), 0.0), self.ones_error, self._accurate_sum)

    def _accurate_sum(self, f: int) -> tuple[float, float]:
        """Return an entry of ``u_top`` towards a weight, exact for the stored data, and the rounding of that."""
        c, j = divmod(f, self.d)
        values, places = self.views.column(j)
        psi = self.weigh(self.top)[c * self.n : (c + 1) * self.n][places]
        total, error = accurate.inner(values, psi)
        stored = (8.0 if self.weighted or self.regression else 4.0) * UNIT * accurate.dot(np.abs(values), np.abs(psi))
        found = abs(total) if self.signs[f] == 0 else max(self.signs[f] * total, 0.0)
        return found / self.n, (error + stored) / self.n

    @property
    def bend(self) -> float:
        """Return the margin up to which ``theta`` is that of ``w = 0``: of a regression the size of its targets."""
        if self.regression:
            return float(np.max(np.abs(self.kinks - self.labels * self.null_level)[self.weights > 0.0]))
        return 1.0 if self.squared else 1.0 - self.gamma

    def _top(self) -> tuple[float, bool]:
        """Return the ``alpha`` from which ``theta = 1`` is surely optimal, and whether that is more than rounding."""
        if self._closed is None:
            touched, shrunk, error = self.rows.touched, self.shrunk(self.u_top), self.ones_error
            scores = self.scores(shrunk).reshape(self.classes, self.n)
            if self.dual_norm(self.u_top, error) <= self.beta:
                self._closed = 0.0, False
            else:
                off = 2.0 * (self.rounding.row * accurate.norm(shrunk) + accurate.norm(error))
                top = max(self._most(scores, off * self.row_norm[: self.n]), 0.0) / self.bend
                self._closed = top * OUTWARD, bool(np.any(np.abs(shrunk) > error))
            self.rows.touched = touched  # of a restored walk, it would count in another step
        return self._closed

    def _margins(self, scores: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Return the largest margin of each sample and its error; samples of weight 0 are ignored."""
        if self.regression:
            margins = np.abs(scores[0])
        elif self.classes == 1:
            margins = self.labels * scores[0]
        else:
            margins = scores[self.labels, np.arange(self.n)] - np.min(scores, axis=0)
        if self.weighted:
            margins = np.where(self.weights > 0.0, margins, -np.inf)
        return margins + error

    def _most(self, scores: np.ndarray, error: np.ndarray) -> float:
        """Return the largest margin."""
        return float(np.max(self._margins(scores, error)))

    def alpha_max(self) -> float:
        """Return the ``alpha`` from which ``theta = 1`` is optimal (Hong 2019, Lemma 4); 0 if ``w = 0`` is."""
        top, matters = self._top()
        return top if matters else 0.0

    def start(self, alpha: float) -> SparseCertificate:
        """Return the closed form at ``alpha_max`` or a larger ``alpha``; if both are 0, ``w = 0`` is always optimal."""
        return self.certify(max(alpha, self._top()[0]) or 1.0, None, self.top)

    def exact_until(self, reference: SparseCertificate, alpha: float) -> bool:
        """Tell whether the start is optimal at ``alpha``: its dual point, of a hinge, or ``w = 0`` at any."""
        if reference.theta is not self.top:
            return False
        top = self._top()[0]
        return alpha >= top and (top == 0.0 or not (self.squared or self.regression))

    # -- screening and the reduced problem -----------------------------------------------------------------------

    def nothing_screened(self) -> SparseScreened:
        found = SparseScreened(self.free.copy(), self.all_kept.copy(), self.row_sq.copy(), self.col_sq.copy())
        found.col_total = self.col_total.copy()
        return found

    def reduce(self, alpha: float, screened: SparseScreened, reference: SparseCertificate) -> SparseReduced:
        return SparseReduced(self, alpha, screened, reference)

    def lift(self, alpha: float, reduced: SparseReduced, solution):
        """Return the pair of the full problem; a primal solver leaves the dual point to :meth:`certify`."""
        return solution.w, solution.alpha

    # -- records -------------------------------------------------------------------------------------------------

    def parameters(self, alpha: float) -> dict:
        return {"alpha": float(alpha), "beta": self.beta}

    counts = counts_of
