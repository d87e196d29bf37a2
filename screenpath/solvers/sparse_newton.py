"""Semismooth Newton on active features and the quadratic zone of the smoothed hinge.

The objective is piecewise quadratic: with the signs of the weights and the zone E of dual variables strictly between 0
and 1 held, its minimiser over the active weights A solves ``(alpha I + Z'Z/(n gamma)) step = -gradient``, ``Z`` the
rows of E and columns of A. The step is followed by a line search that stops weights at 0 where they would change sign.
From the previous grid point one or two steps usually suffice. A sweep of proximal coordinate descent, which always
makes progress, takes over where the line search fails. Stops when the gap of the reduced problem is at most ``tol``
times its primal value.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from screenpath.kernels import sparse as sums
from screenpath.kernels import sparse_newton as kernels
from screenpath.models.sparse import Certificate, Reduced
from screenpath.rules.sparse import tighten
from screenpath.solvers.base import Budget, Solution

CG_LIMIT = 50  # iterations before a direct factorisation is tried
DIRECT_LIMIT = 1500  # largest system that is factorised
ARMIJO = 1e-4
SHORTEST = 1e-3  # step length below which a sweep of coordinate descent takes over
SCREEN_AGAIN = 0.5  # the gap must fall by this factor before the dynamic rule is applied again


class SparseNewton:
    """Semismooth Newton for the sparse SVM; deterministic."""

    name = "newton"

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap.

        Returns
        -------
        Solution
            ``alpha`` is None: the dual point is ``theta(w)``, which the certificate forms itself.
        """
        run = _Run(reduced)
        epochs, screened, converged = 0, 0, False
        screen_below = SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        while True:
            converged = run.gap <= tol * abs(run.primal)
            if converged or epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            if dynamic and run.gap <= screen_below:
                screened += run.screen()
                screen_below = SCREEN_AGAIN * run.gap
            if not run.newton_step(tol):
                run.sweep()
            epochs += 1
        return Solution(run.w, None, epochs, run.touched, converged, screened, self.name)


class _Run:
    """Working arrays of one solve."""

    def __init__(self, reduced: Reduced):
        self.model, self.alpha = reduced.model, reduced.alpha
        self.view = *self.model.rows.by_column, self.model.rows.dense
        self.at, self.own_copy = reduced.screened, False
        self.values_touched = 0
        start, size = reduced.start, self.model.ones.size
        self.features = np.flatnonzero(self.at.keep)
        self.w = start.w * self.at.keep
        self.theta, self.psi, self.scores = np.empty(size), np.empty(size), start.scores
        if np.count_nonzero(self.w) != start.nonzero:
            self._new_scores()
        self.u = start.u
        self._respond()
        if not np.array_equal(self.theta, start.theta):
            self._new_u()
        self._evaluate()

    @property
    def touched(self) -> float:
        """Return the values touched, in average rows."""
        rows = self.model.rows
        return self.values_touched * rows.n / max(rows.size, 1)

    # -- evaluation ----------------------------------------------------------------------------------------------

    def _new_scores(self) -> None:
        self.scores = np.empty(self.theta.size)
        self.values_touched += sums.products(*self.view, self.model.n, self.w, self.scores)

    def _respond(self) -> None:
        m = self.model
        loss = sums.respond(self.scores, m.labels, m.n, m.classes, m.gamma, self.at.status, self.theta, self.psi)
        penalty = 0.5 * self.alpha * float(np.sum(self.w**2)) + m.beta * float(np.sum(np.abs(self.w)))
        self.primal = loss / m.n + penalty

    def _new_u(self) -> None:
        n = self.model.n
        self.u = np.empty(self.w.size)
        self.values_touched += sums.column_sums(*self.view, n, self.features, self.psi, 1.0 / n, self.u)

    def _evaluate(self) -> None:
        terms = kernels.gap_terms(self.w, self.u, self.alpha, self.model.beta, self.features)
        self.gap, self.w_sq, self.lag_sq, self.w_shrunk, self.shrunk_sq = terms
        self.gap = max(self.gap, 0.0)

    # -- steps ---------------------------------------------------------------------------------------------------

    def newton_step(self, tol: float) -> bool:
        """Take one Newton step; return False where the line search finds no decrease."""
        m = self.model
        active, signs, rhs = np.empty(self.features.size, np.int64), np.empty(self.w.size), np.empty(self.w.size)
        count = kernels.pick(self.w, self.u, self.alpha, m.beta, self.features, active, signs, rhs)
        if count == 0:
            return False
        active, signs, rhs = active[:count], signs[:count], rhs[:count]
        accuracy = 0.3 * np.sqrt(tol * abs(self.primal) / self.gap)  # the gap is quadratic in the residual
        direction = self._direction(active, rhs, min(0.1, max(accuracy, 1e-8)))
        step = 1.0
        new = np.empty_like(self.w), np.empty_like(self.psi), np.empty_like(self.psi), np.empty_like(self.psi)
        while step >= SHORTEST:
            primal, expected, touched = kernels.trial(
                *self.view, m.n, m.labels, m.classes, m.gamma, self.at.status, self.alpha, m.beta, self.w, active,
                count, signs, rhs, direction, step, *new,
            )  # fmt: skip
            self.values_touched += touched
            if expected > 0.0 and primal <= self.primal - ARMIJO * expected + 1e-15 * abs(self.primal):
                self.w, self.scores, self.theta, self.psi = new
                self.primal = primal
                self._new_u()
                self._evaluate()
                return True
            step *= 0.5
        return False

    def sweep(self) -> None:
        """Run one sweep of proximal coordinate descent over the surviving features."""
        m = self.model
        self.w, self.scores = self.w.copy(), self.scores.copy()
        self.values_touched += kernels.descend(
            *self.view, m.n, m.labels, m.classes, m.gamma, self.at.status, self.alpha, m.beta, m.col_sq,
            self.features, self.w, self.scores,
        )  # fmt: skip
        self._respond()
        self._new_u()
        self._evaluate()

    def _direction(self, active: np.ndarray, rhs: np.ndarray, accuracy: float) -> np.ndarray:
        m = self.model
        place = np.empty(self.theta.size, dtype=np.int64)
        zone = kernels.quadratic_zone(self.at.status, self.theta, place)
        ptr = np.empty(active.size + 1, dtype=np.int64)
        room = 0
        while True:  # the first call counts
            data, where = np.empty(room), np.empty(room, dtype=np.int64)
            stored = kernels.gather(*self.view, m.n, m.labels, m.classes, active, active.size, place, data, where, ptr)
            if stored <= room:
                break
            room = stored
        columns = m.rows.by_column[2]
        self.values_touched += int(np.sum(columns[active % m.d + 1] - columns[active % m.d]))
        out, scale = np.empty(active.size), 1.0 / (m.n * m.gamma)
        limit = CG_LIMIT if min(active.size, zone) <= DIRECT_LIMIT else 20 * CG_LIMIT
        _, converged = kernels.conjugate_gradients(data, where, ptr, zone, self.alpha, scale, rhs, accuracy, limit, out)
        if not converged and min(active.size, zone) <= DIRECT_LIMIT:
            return _factorised(data, where, ptr, zone, self.alpha, scale, rhs)
        return out

    # -- dynamic screening ---------------------------------------------------------------------------------------

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many dual variables and features they decide."""
        if not self.own_copy:
            self.at, self.own_copy = self.at.copy(), True
        before = self.model.rows.touched
        found = tighten(self.model, self.at, self._point(), self.alpha)
        if found:
            self.features = np.flatnonzero(self.at.keep)
            kept = self.w * self.at.keep
            moved = not np.array_equal(kept, self.w)
            self.w, held = kept, self.theta.copy()
            if moved:
                self._new_scores()
            self._respond()
            if not np.array_equal(held, self.theta):
                self._new_u()
            self._evaluate()
        self.model.rows.touched, screening = before, self.model.rows.touched - before
        self.values_touched += screening * self.model.rows.size / max(self.model.rows.n, 1)
        return found

    def _point(self) -> Certificate:
        """Return what the gap balls need of the current pair; ``theta = theta(w)`` by construction."""
        return Certificate(
            self.alpha, self.w, self.scores, self.theta, self.u, self.primal, 0.0, self.w_sq, 0.0, self.shrunk_sq, 0.0,
            self.w_shrunk, self.lag_sq, 0.0, 0.0, 0.0, self.primal, self.gap, 0, 0, 0,
        )  # fmt: skip


def _factorised(data, where, ptr, zone: int, alpha: float, scale: float, rhs: np.ndarray) -> np.ndarray:
    """Solve the Newton system by a Cholesky factor of its smaller side."""
    size = rhs.size
    Z = np.zeros((size, zone))
    Z[np.repeat(np.arange(size), np.diff(ptr)), where] = data
    if size <= zone:
        matrix = scale * (Z @ Z.T)
        matrix[np.diag_indices(size)] += alpha
        return cho_solve(cho_factor(matrix, check_finite=False), rhs, check_finite=False)
    # (alpha I + s Z'Z)^-1 b = (b - Z' (alpha/s I + Z Z')^-1 Z b) / alpha, Z by rows here
    matrix = Z.T @ Z
    matrix[np.diag_indices(zone)] += alpha / scale
    inner = cho_solve(cho_factor(matrix, check_finite=False), Z.T @ rhs, check_finite=False)
    return (rhs - Z @ inner) / alpha
