"""Semismooth Newton on active features and the quadratic zone of the smoothed hinge.

The objective is piecewise quadratic: with the signs of the weights and the zone E of dual variables strictly between 0
and 1 held, its minimiser over the active weights A solves ``(alpha I + Z'Z/(n gamma)) step = -gradient``, ``Z`` the
rows of E and columns of A. The step is followed by a line search that stops weights at 0 where they would change sign.
From the previous grid point one or two steps usually suffice. Where the line search fails, a step along the scaled
gradient follows. Stops when the gap of the reduced problem is at most ``tol`` times its primal value.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.problem import sparse_intercept as intercepts
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import sparse_newton as kernels
from screenpath.numbers.accurate import dot
from screenpath.problem.sparse_types import Level, SparseCertificate, SparseReduced
from screenpath.screen.sparse import tighten
from screenpath.solve.base import Budget, Progress, Solution, Solver
from screenpath.solve.plugins import takes_plugins
from screenpath.solve.sharp import continued

NAMES = ("auto", "newton")
CG_LIMIT = 1000  # iterations of conjugate gradients
LITTLE = 1_000_000  # values that the copy of a zone may have however few the data have
DENSE_FROM = 0.67  # density of the active columns from which the zone is copied dense
ARMIJO = 1e-4
LOOSEST, TIGHTEST = 0.1, 0.01  # relative residuals of conjugate gradients
SHORTEST = 1e-12  # step length below which a step has failed
IDLE = 60  # steps without progress, after which rounding is to blame (or an overflow)
GAIN = 1e-3  # progress is, too, an objective lower by this part of what may be left
SCREEN_AGAIN = 0.5  # the gap must fall by this factor before the dynamic rule is applied again


class SparseNewton(Solver):
    """Semismooth Newton for the sparse SVM; deterministic."""

    name = "newton"

    def solve(self, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve for ``w``; with the exact hinge, and at ``alpha = 0``, by :func:`solve.sharp.continued`."""
        if reduced.model.sharp or reduced.alpha == 0.0:
            return continued(self, reduced, tol=tol, budget=budget, dynamic=dynamic)
        run = _Run(reduced)
        epochs, screened, converged, progress = 0, 0, False, Progress(IDLE)
        screen_below = SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        while True:
            converged = run.gap <= tol * abs(run.primal)
            budget.note(run.gap, run.primal, run.touched)
            stalled = progress.stalls(run.gap, run.primal, GAIN * min(run.gap, abs(run.primal)))
            if converged or stalled or budget.spent(epochs):
                break
            if dynamic and run.gap <= screen_below:
                screened += run.screen()
                screen_below = SCREEN_AGAIN * run.gap
            if not (run.step(tol) or run.step(tol, newton=False)):
                break
            epochs += 1
        return Solution(run.w, None, epochs, run.touched, converged, screened, self.name)


class _Run:
    """Working arrays of one solve."""

    def __init__(self, reduced: SparseReduced):
        self.model, self.alpha = reduced.model, reduced.alpha
        self.view = self.model.views.columns(reduced.screened.keep)
        self.at, self.own_copy = reduced.screened, False
        self.touched, self.rise = 0, 0.0
        start, size = reduced.start, self.model.ones.size
        self.theta, self.psi, self.scores = np.empty(size), np.empty(size), start.scores
        self.u, self.u_slack, self.level = start.u, start.u_slack, start.intercept
        self._restrict(start.w, start.theta)

    # -- evaluation ----------------------------------------------------------------------------------------------

    def _restrict(self, w: np.ndarray, theta: np.ndarray) -> None:
        """Start from ``w`` on the surviving features; sums over the data are recomputed only where they change."""
        self.w, self.features = np.where(self.at.keep != 0, w, 0.0), np.flatnonzero(self.at.keep)
        if np.any(self.w != w):
            self._multiply()
        self._respond()
        if np.any(self.theta != theta):
            self._new_u()
        self._evaluate()

    def _multiply(self) -> None:
        self.scores = np.zeros(self.theta.size)
        self.level, self.rise = 0.0, self.level  # the scores have none; the best one is near the last
        self.touched += sums.products(self.view, self.model.n, self.w, self.scores)

    def _respond(self) -> None:
        m = self.model
        if m.intercept:
            self.scores = self.scores.copy()
            self.level += intercepts.settle(self.scores, m.samples, self.at.duals, self.rise)
            self.rise = 0.0
        loss = sums.respond(self.scores, m.samples, self.at.duals, self.theta, self.psi)
        self.loss = loss / m.n

    def _new_u(self) -> None:
        n = self.model.n
        self.u, self.u_slack = np.empty(self.w.size), np.zeros(self.w.size)
        self.touched += sums.column_sums(self.view, n, self.features, self.psi, 1.0 / n, self.u)

    def _evaluate(self) -> None:
        """Compute objective and gap; the losses have no share of the gap."""
        m = self.model
        w_sq, w_l1, kink, lag_sq, *_ = sums.feature_terms(
            self.w, self.u, m.signs, self.features, m.feature_norm, self.alpha, m.beta
        )
        self.primal, self.gap = self.loss + (0.5 * w_sq + m.beta * w_l1), kink + 0.5 * lag_sq

    # -- steps ---------------------------------------------------------------------------------------------------

    def step(self, tol: float, newton: bool = True) -> bool:
        """Take a step, Newton's or along the scaled gradient; return False if the line search finds no decrease."""
        m = self.model
        size = self.features.size
        active, signs, rhs = np.empty(size, np.int64), np.empty(size), np.empty(size)
        count = kernels.pick(self.w, self.u, m.signs, self.alpha, m.beta, self.features, active, signs, rhs)
        if count == 0 or not self.gap > 0.0:  # which screening may have made of it
            return False
        active, signs, rhs = active[:count], signs[:count], rhs[:count]
        accuracy = 0.3 * np.sqrt(tol * abs(self.primal) / self.gap)  # the gap is quadratic in the residual
        if newton:
            direction = self._direction(active, rhs, min(LOOSEST, max(accuracy, TIGHTEST)))
        else:
            direction = rhs / (self.alpha + m.col_sq[active] / (m.n * m.gamma))
        step = 1.0
        new = np.empty_like(self.w), *(np.empty_like(self.psi) for _ in range(3))
        near = np.array([self.level]) if m.intercept else None
        while step >= SHORTEST:
            loss, penalty, expected, touched = kernels.trial(
                self.view, m.samples, self.at.duals, self.alpha, m.beta, self.w, (active, signs, rhs, direction), step,
                new, near,
            )  # fmt: skip
            self.touched += touched
            if expected > 0.0 and loss + penalty <= self.primal - ARMIJO * expected + 1e-15 * abs(self.primal):
                self.w, self.scores, self.theta, self.psi = new
                self.loss, self.level = loss, self.level if near is None else float(near[0])
                self._new_u()
                self._evaluate()
                return True
            step *= 0.5
        return False

    def _direction(self, active: np.ndarray, rhs: np.ndarray, accuracy: float) -> np.ndarray:
        """Return the Newton step on the active weights; the copy of a large zone is never larger than the data."""
        m = self.model
        place = np.empty(self.theta.size, dtype=np.int64)
        inside = kernels.quadratic_zone(self.at.duals, self.theta, (m.low, m.high), place)
        level = m.answers(inside)
        columns, ends = active % m.d, self.view[2]
        room = int(np.sum(ends[columns + 1] - ends[columns]))
        self.touched += room
        out, scale = np.empty(active.size), 1.0 / (m.n * m.gamma)
        if m.classes == 1 and room > DENSE_FROM * active.size * m.n:
            Z = np.empty((active.size, inside.size))
            kernels.gather_dense(self.view, m.samples, m.roots, active, place, inside, Z)
            copy = matrix_of(Z)
        else:
            ptr, most = np.empty(active.size + 1, dtype=np.int64), max(m.views.size, LITTLE)
            while True:  # a sample of the class itself has several rows: the first call then counts
                data, where = np.empty(room), np.empty(room, dtype=np.int32)
                stored = kernels.gather(self.view, m.samples, m.roots, active, place, data, where, ptr)
                if stored <= room or stored > most:
                    break
                del data, where  # before the larger ones are made
                room = stored
            if stored > most:  # the copy would be larger than the data, as it can be with several classes
                return self._without_a_copy(active, place, scale, rhs, accuracy)
            copy = matrix_of((data, where, ptr))
        kernels.conjugate_gradients(copy, inside.size, level, self.alpha, scale, rhs, accuracy, CG_LIMIT, out)
        return out

    def _without_a_copy(self, active: np.ndarray, place: np.ndarray, scale: float, rhs: np.ndarray, accuracy: float):
        """Return the Newton step of several classes by conjugate gradients that pass over the data twice each."""
        m, zone = self.model, place >= 0
        own = np.tile(m.labels * m.n + np.arange(m.n), m.classes)
        out, residual, search = np.zeros(rhs.size), rhs.copy(), np.zeros(self.w.size)
        search[active] = rhs
        square = first = dot(rhs, rhs)
        for _ in range(CG_LIMIT):
            scores, image = np.zeros(zone.size), np.zeros(search.size)
            self.touched += sums.products(self.view, m.n, search, scores)
            psi = m.weigh(np.where(zone, scores[own] - scores, 0.0))
            self.touched += sums.column_sums(self.view, m.n, active, psi, scale, image)
            along, image = search[active], self.alpha * search[active] + image[active]
            curvature = dot(along, image)
            if not curvature > 0.0:  # squares have left the range of floating point
                break
            out += square / curvature * along
            residual -= square / curvature * image
            square, before = dot(residual, residual), square
            if square <= accuracy * accuracy * first:
                break
            search[active] = residual + square / before * along
        return out

    # -- dynamic screening ---------------------------------------------------------------------------------------

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many dual variables and features they decide."""
        if not self.own_copy:
            self.at, self.own_copy = self.at.copy(), True
        found = tighten(self.model, self.at, self._point(), self.alpha)
        if found:
            self.theta, held = np.empty(self.theta.size), self.theta
            self._restrict(self.w, held)
        return found

    def _point(self) -> SparseCertificate:
        """Return what the gap balls need of the current pair; ``theta = theta(w)`` by construction."""
        m = self.model
        samples = self.loss, 0.0, 0.0, m.mass, 0.0, 0, 0  # ||theta||^2 is at most that
        return m.pair(
            self.alpha, self.w, self.scores, self.theta, (self.u, self.u_slack), samples, self.features, psi=self.psi,
            level=Level(self.level, self.level, self.level),
        )  # fmt: skip


@takes_plugins
def make_sparse_solver(name: str, seed: int = 0, warm: bool = True) -> SparseNewton:
    """Return the solver of that name; ``auto`` is Newton, which takes the best free intercept at every point."""
    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm:
        raise UsageError(f"the solver '{name}' starts from the previous grid point", "leave out cold starts")
    return SparseNewton()
