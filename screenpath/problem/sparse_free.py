"""The sparse SVM (:mod:`.sparse`) of two classes with an unpenalised intercept.

Objective   min_{w,b}  1/n sum_i s_i l(1 - y_i (x_i.w + b)) + alpha/2 ||w||^2 + beta ||w||_1
Dual        as without b, and  sum_i s_i y_i theta_i = 0

``b`` is always the best one for ``w``, a root that is found exactly up to rounding
(``kernels.problem.sparse_intercept``), and part of the scores. Then ``theta(w)`` satisfies the equality, the gap is the
same sum as without ``b``, and the balls around ``w`` and ``theta`` are the same: ``P`` is as strongly convex in
``w`` when it is minimised over ``b``, and the dual only gains a plane. One row can take the rounding error of the
equality: each certificate counts it.

For the exact hinge (``gamma = 0``) the best intercepts are an interval between kinks, and ``b`` is its middle. Its dual
points say nothing about ``b``: the gap is the same sum for any ``b``. With ``w = 0`` and one class larger, other
dual points of that class would do as well as the one below: ``w = 0`` may be optimal below ``beta_max`` too.

Features are decided in the plane, where a column counts by its distance from its mean over the dual variables that
survive. Samples are decided with the scores of rows seen from the mean of all rows, whose best intercepts bound ``b``.

With ``w = 0`` each sample of the smaller class (by weight) has ``theta = 1`` and each of the larger ``r``, the ratio of
the weights. For two equal classes that stays optimal down to ``alpha_max``; else the path is solved from
``alpha_max`` on, which has the same formula.
"""

from __future__ import annotations

from math import fsum, inf, sqrt

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.problem import sparse_intercept as kernels
from screenpath.kernels.problem.intercept import best_of
from screenpath.numbers.rounding import UNIT
from screenpath.problem.intercept import ONE_CLASS, Signless, balanced_to
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_types import HINGE, Level, SparseCertificate

TRIES = 3  # corrections of a signed sum: the first leaves its rounding


class FreeSparseModel(SparseModel):
    """A sparse SVM of two classes with a free intercept; parameters as of :class:`SparseModel`.

    A UsageError is raised if all samples that count are of one class; a regression has none.
    """

    intercept = True
    signless: Signless  # the rows' kinks; with the exact hinge alone

    def __init__(self, views, labels, classes, beta, gamma, weights=None, targets=None, ends=HINGE, signs=None):
        super().__init__(views, labels, classes, beta, gamma, weights, targets, ends, signs)
        self.even = False  # whether there are two classes of the same weight
        if self.sharp and self.regression:
            self.signless = self._signless()
        if self.regression:
            scores, psi = np.zeros(self.n), np.empty(self.n)
            if self.sharp:
                self.null_level = self._placed_at_kinks(scores, None).intercept
            else:
                self.null_level = kernels.settle(scores, self.samples, self.free, 0.0)
            sums.respond(scores, self.samples, self.free, self.top, psi)
            self.balance(scores, self.top)
            self.u_top = self.column_sums(self.weigh(self.top))
        else:
            self._of_classes(labels)
        self.col_total = self.n * self._centre()

    def _of_classes(self, labels) -> None:
        """Set the dual point of ``w = 0`` from the weights of the classes."""
        up, down = fsum(self.given[labels > 0]), fsum(self.given[labels < 0])
        if not min(up, down) > 0.0:
            raise UsageError(*ONE_CLASS)
        if self.sharp:
            self.signless = self._signless()
        self.ratio, share = min(up, down) / max(up, down), up / (up + down)
        self.even = self.ratio == 1.0
        if self.squared:  # the best intercept is the difference of the classes' shares
            level, values = 2.0 * share - 1.0, (2.0 * (1.0 - share) / self.gamma, 2.0 * share / self.gamma)
        else:
            level, values = 0.0, (1.0, self.ratio) if up <= down else (self.ratio, 1.0)
        if self.squared or not self.even:
            self.top = np.where(labels > 0, *values)
            self.balance(np.full(self.n, level), self.top)
            self.u_top = self.column_sums(self.weigh(self.top))

    def _signless(self) -> Signless:
        low, high = self.low * self.weights, self.high * self.weights
        return Signless.of(self.kinks, low, high, self.labels.astype(np.int8))

    def _centre(self) -> np.ndarray:
        """Set the point from which rows are seen to their weighted mean, and return it."""
        mean, sizes = self.column_sums(self.weights), self.views.row_sqnorms
        self.twice = 2.0 * mean
        self.row_sq = sizes - self.scores(self.twice)
        self.row_sizes = (np.sqrt(sizes) + sqrt(float(mean @ mean))) ** 2
        return mean

    # -- the intercept and dual points ---------------------------------------------------------------------------

    def placed(self, scores: np.ndarray, intercept=None, guess=0.0) -> Level:
        if self.sharp:
            return self._placed_at_kinks(scores, intercept)
        if intercept is None:
            b = kernels.settle(scores, self.samples, self.free, guess)
        else:
            b = intercept
            scores += b
        fall, rise = (max(room, 0.0) for room in kernels.level_ends(scores, self.samples))
        low, high = b - fall, b + rise
        if intercept is None and low < high:
            middle = best_of(low, high)
            scores += middle - b
            b = middle
        return Level(b, low, high)

    def _placed_at_kinks(self, scores: np.ndarray, intercept) -> Level:
        """Add the intercept to the scores for the exact hinge: the middle of the best ones, or the one given."""
        with np.errstate(invalid="ignore", over="ignore"):  # of weights that overflow: their gap is infinite
            low, high = self.signless.best(self.signless.kinks - scores)
            b = best_of(low, high) if intercept is None else intercept
            scores += b
        return Level(b, low, high)

    def answers(self, inside: np.ndarray) -> np.ndarray:
        if not inside.size:
            return np.empty((0, 0))
        # A norm by BLAS takes longer than the whole step.
        return (self.labels[inside] * self.roots[inside] / np.sqrt(self.weights[inside].sum() or 1.0))[None, :]

    def balance(self, scores: np.ndarray, theta: np.ndarray) -> bool:
        """Let the rows that lose least take the rounding error of the signed sum; tell whether one did.

        With the exact hinge more may be left, as the rows at their kink are at one end in ``theta(w)``: many take it.
        """
        moved = self._fill_kinks(scores, theta) if self.sharp else False
        for _ in range(TRIES):
            found, error = kernels.excess(theta, self.labels, self.given)
            if not abs(found) > error:
                break
            row, _ = kernels.nearest(scores, theta, self.samples, self.given, found, abs(found))
            if row < 0:
                break
            value = min(max(theta[row] - self.labels[row] * found / self.given[row], self.low), self.high)
            if value == theta[row]:
                break
            theta[row], moved = value, True
        return moved

    def _fill_kinks(self, scores: np.ndarray, theta: np.ndarray) -> bool:
        """Move the rows nearest to their kink until only rounding is left; tell whether that succeeded."""
        mass, t, ends = self.given * theta, self.kinks - self.labels * scores, (self.low, self.high)
        low, high = self.low * self.given, self.high * self.given
        filled = balanced_to(mass, t, low, high, self.signless.signs, 0.0)
        rows = np.flatnonzero(filled != mass)
        theta[rows] = np.clip(filled[rows] / self.given[rows], *ends)
        return bool(rows.size)

    def residue(self, scores: np.ndarray, theta: np.ndarray, extent: float) -> dict:
        """Return the difference of an exact dual point: one row takes what is left of the signed sum."""
        found, error = kernels.excess(theta, self.labels, self.given)
        size = (abs(found) + error) * (1.0 + 8.0 * UNIT)
        if size == 0.0:
            return {}
        off = shift = cost = 0.0
        for way in (1.0, -1.0) if error >= abs(found) else (found,):
            row, slope = kernels.nearest(scores, theta, self.samples, self.given, way, size)
            if row < 0:
                return {"off": inf, "shift": inf, "cost": inf}
            more, weight = size / self.given[row], self.weights[row] / self.n
            slope += self.rounding.row * (extent + 4.0 * abs(float(self.kinks[row]))) + self.gamma * more
            off = max(off, more * sqrt(self.weights[row]))
            shift = max(shift, weight * more * self.row_norm[row])
            cost = max(cost, weight * more * slope)
        return {name: value * (1.0 + 16.0 * UNIT) for name, value in (("off", off), ("shift", shift), ("cost", cost))}

    # -- closed-form start ---------------------------------------------------------------------------------------

    def exact_until(self, reference: SparseCertificate, alpha: float) -> bool:
        """Tell whether the start's dual point is optimal at ``alpha``: for equal classes, or with ``w = 0``."""
        known = self.even or self._top()[0] == 0.0
        return known and super().exact_until(reference, alpha)

    @property
    def null_loss(self) -> float:
        if self.regression:
            return super().null_loss
        r, small = self.ratio, self.ratio / (1.0 + self.ratio)  # the smaller class's share of the weights
        if self.squared:
            return 2.0 * small * (1.0 - small)
        return (1.0 - small) * 0.5 * self.gamma * r * r + small * (2.0 - self.gamma * (r + 0.5))

    def _most(self, scores: np.ndarray, error: np.ndarray) -> float:
        """Return half the largest distance of two scores, the upper one of class +1; of a regression, of any two."""
        if self.regression:
            there = self.weights > 0.0
            return 0.5 * float((scores[0] + error)[there].max() + (error - scores[0])[there].max())
        margins = self._margins(scores, error)
        return 0.5 * float(margins[self.labels > 0].max() + margins[self.labels < 0].max())

    # -- records -------------------------------------------------------------------------------------------------

    def counts(self, certificate: SparseCertificate, screened) -> dict:
        """Return counts and ratios of a step, and both ends of the best intercepts; the weights end with one."""
        found = super().counts(certificate, screened)
        found["coefficients"] = found["coefficients"].extended(certificate.intercept)
        found["extras"] |= {"intercept_low": certificate.low, "intercept_high": certificate.high}
        return found
