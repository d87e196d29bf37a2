"""Proximal Newton steps for penalties on groups of features, on working sets of groups, with screening inside.

A step is the minimiser of a quadratic model of the losses plus the penalty as it is, over the groups of the working
set: proximal steps group after group (:mod:`screenpath.kernels.solve.groups`) find which weights are not 0, and Newton
steps on these, where the penalty is smooth, the rest. The model is exact while no row passes a kink: a few steps are
enough. The best free intercept is taken at every point, and eliminated from the model. The rows that are not fixed, and
the columns of the working set, are copied.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from screenpath.errors import UsageError
from screenpath.kernels.solve import groups as kernels
from screenpath.numbers import sparse as sp
from screenpath.problem.sparse_types import Level, SparseReduced
from screenpath.screen.groups import screen_groups
from screenpath.solve.base import Budget, Progress, Solution, Solver
from screenpath.solve.sharp import continued

SWEEPS, STEPS, TURNS = 20, 8, 60  # sweeps and Newton steps of one turn of a small problem, and turns
MANY = 10  # groups by which a working set may grow, or by its own size
INNER = 0.2  # part of the gap, or of its target, to which a working set is solved
EXACT = 1e-3  # part of the norm of the first proximal gradient to which a small problem is solved
ARMIJO, SHORTEST = 1e-4, 1e-10
IDLE = 8  # looks at all groups without progress, after which rounding is to blame
AGAIN = 0.2  # part of its last value that the gap has to fall to before the dynamic rule is applied again


class GroupNewton(Solver):
    """Proximal Newton for groups of features; deterministic."""

    name = "group-newton"

    def solve(self, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem; at ``alpha = 0`` see :func:`screenpath.solve.sharp.continued`."""
        if reduced.alpha == 0.0:
            return continued(self, reduced, tol=tol, budget=budget, dynamic=False)
        run, progress, screen_below, screened = _Run(reduced), Progress(IDLE), np.inf, 0
        while True:
            run.look()
            budget.note(run.gap, run.value, run.touched)
            converged = run.gap <= tol * abs(run.value)
            late = run.epochs >= budget.epochs or time.monotonic() > budget.deadline
            if converged or late or progress.stalls(run.gap, run.value, EXACT * run.gap):
                break
            if dynamic and run.gap <= screen_below:
                screen_below = AGAIN * run.gap
                found = run.screen()
                screened += found
                if found:
                    continue
            run.improve(INNER * max(tol * abs(run.value), INNER * run.gap), budget)
        return Solution(run.w, None, run.epochs, run.touched, converged, screened, self.name)


class _Run:
    """Working arrays of one solve. ``rows`` are those whose dual variable is not fixed."""

    def __init__(self, reduced: SparseReduced):
        self.model, self.alpha, self.at = reduced.model, reduced.alpha, reduced.screened.copy()
        self.level, self.epochs, self.before = reduced.start.intercept, 0, self.model.rows.touched
        self.w = np.where(self.at.keep != 0, reduced.start.w, 0.0)
        self.restrict()

    @property
    def touched(self) -> int:
        return self.model.rows.touched - self.before

    def restrict(self) -> None:
        """Take what is not decided: rows, features, and what fixed rows add to loss and sums."""
        m, fixed = self.model, self.at.duals > 0
        self.w = np.where(self.at.keep != 0, self.w, 0.0)
        self.features, self.rows = np.flatnonzero(self.at.keep), np.flatnonzero(self.at.duals == 0)
        X = m.columns_of(self.features)
        self.signed = m.labels * m.weights
        self.u_fixed = X[fixed].T @ (self.signed[fixed] * m.high) / m.n
        self.b_fixed = float(self.signed[fixed].sum()) * m.high / m.n
        kinks = m.kinks[fixed]
        self.loss_fixed = float(m.weights[fixed] @ (m.high * (kinks - 0.5 * m.gamma * m.high))) / m.n
        self.X, self.y, self.s, self.c = X[self.rows], m.labels[self.rows], m.weights[self.rows], m.kinks[self.rows]
        self.theta = None

    # -- a point ---------------------------------------------------------------------------------------------------

    def respond(self, scores: np.ndarray, w: np.ndarray):
        """Return intercept, dual variables and objective of weights whose scores on the rows are known."""
        m, b = self.model, self.level
        if m.intercept:
            b = self.best(scores, b)
        t = self.c - self.y * (scores + b)
        theta = np.clip(t / m.gamma, m.low, m.high)
        loss = float(self.s @ (theta * (t - 0.5 * m.gamma * theta))) / m.n + self.loss_fixed - self.b_fixed * b
        loss -= float(self.u_fixed @ w[self.features])
        penalty = 0.5 * self.alpha * float(w @ w) + m.beta * float(m.groups.size(w).sum())
        return b, theta, loss + penalty

    def best(self, scores: np.ndarray, b: float) -> float:
        """Return the root of the signed sum, which falls with the intercept: Newton steps within an interval."""
        m, low, high = self.model, -np.inf, np.inf
        for _ in range(100):
            t = self.c - self.y * (scores + b)
            theta = np.clip(t / m.gamma, m.low, m.high)
            total = float((self.s * self.y) @ theta) / m.n + self.b_fixed
            low, high = (b, high) if total > 0.0 else (low, b)
            slope = float(self.s[(theta > m.low) & (theta < m.high)].sum()) / (m.n * m.gamma)
            new = b + (total / slope if slope > 0.0 else np.copysign(1.0 + abs(b), total))
            if not low < new < high:
                new = 0.5 * (low + high) if np.isfinite(low + high) else new
            if abs(total) <= 1e-16 * m.mass / m.n or new == b or new in (low, high):
                break
            b = new
        return b

    def look(self) -> None:
        """Compute the point's dual variables, sums and gap over all features that are left."""
        m, place = self.model, np.flatnonzero(self.w[self.features])
        scores = self.X[:, place] @ self.w[self.features[place]]
        self.level, self.theta, self.value = self.respond(scores, self.w)
        self.u = np.zeros(self.w.size)
        self.u[self.features] = self.X.T @ (self.s * self.y * self.theta) / m.n + self.u_fixed
        m.rows.touched += self.rows.size * (self.features.size + place.size)
        _, _, kink, lag_sq, *_ = m.penalty_terms(self.w, self.u, self.features, self.alpha)
        self.gap = kink + 0.5 * lag_sq

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many rows and features they decide."""
        m = self.model
        scores, theta = m.scores(self.w) + self.level, np.where(self.at.duals > 0, m.high, m.low)
        theta[self.rows] = self.theta
        level = Level(self.level, self.level, self.level)
        loss = max(
            self.value - 0.5 * self.alpha * float(self.w @ self.w) - m.beta * float(m.groups.size(self.w).sum()), 0.0
        )
        samples = loss, 0.0, 0.0, m.mass, 0.0, 0, 0  # ||theta||^2 is at most that
        point = m.pair(
            self.alpha, self.w, scores, theta, (self.u, np.zeros(self.u.size)), samples, m.every, level=level
        )
        before = int(np.count_nonzero(self.at.duals)) - int(np.count_nonzero(self.at.keep))
        self.at = screen_groups(m, self.at, point, self.alpha, (True, True), paper=False)
        found = int(np.count_nonzero(self.at.duals)) - int(np.count_nonzero(self.at.keep)) - before
        if found:
            self.restrict()
        return found

    # -- a working set -----------------------------------------------------------------------------------------------

    def improve(self, target: float, budget: Budget) -> None:
        """Solve the problem on the groups that matter now to about the gap ``target``."""
        m, g = self.model, self.model.groups
        excess = g.norms(g.soft(self.u, m.beta * g.share)) - m.beta * g.parts
        excess[g.sums(self.at.keep.astype(np.int64)) == 0] = -np.inf
        active = g.norms(self.w) > 0.0
        other = np.flatnonzero(~active & (excess > 0.0))
        other = other[np.argsort(-excess[other], kind="stable")][: max(MANY, int(active.sum()))]
        active[other] = True
        chosen = g.order[active[g.of[g.order]] & (self.at.keep[g.order] != 0)]  # group by group
        ends = np.flatnonzero(np.diff(g.of[chosen], prepend=-1, append=-1)).astype(np.int64)
        parts = m.beta * g.parts[g.of[chosen[ends[:-1]]]]
        X = self.X[:, np.searchsorted(self.features, chosen)]
        for _ in range(STEPS):
            if not self._step(X, chosen, ends, parts) or self.epochs >= budget.epochs:
                break
            u = self.u.copy()
            u[chosen] = (
                X.T @ (self.s * self.y * self.theta) / m.n + self.u_fixed[np.searchsorted(self.features, chosen)]
            )
            only = np.zeros(u.size)
            only[chosen] = u[chosen]
            self.u = u
            _, _, kink, lag_sq, *_ = m.penalty_terms(self.w, only, chosen, self.alpha)
            if kink + 0.5 * lag_sq <= target:
                break

    def _step(self, X, chosen: np.ndarray, ends: np.ndarray, parts: np.ndarray) -> bool:
        """Take one proximal Newton step on the chosen features; return False if it leads nowhere."""
        m, w = self.model, self.w[chosen]
        self.epochs += 1
        inside = (self.theta > m.low) & (self.theta < m.high)
        Z, roots = X[inside], np.sqrt(self.s[inside] / (m.n * m.gamma))
        Z = Z.multiply(roots[:, None]).tocsr() if sp.issparse(Z) else roots[:, None] * Z
        m.rows.touched += Z.shape[0] * Z.shape[1]
        Z = Z.toarray() if sp.issparse(Z) else Z
        if m.intercept and np.any(roots):  # rows without weight have no part in it
            Z = Z - np.outer(roots, roots @ Z) / float(roots @ roots)
        H = Z.T @ Z
        if not np.all(np.isfinite(H)):
            return False
        ridge = self.alpha + 1e-13 * float(np.trace(H)) / max(w.size, 1)
        H[np.diag_indices(w.size)] += ridge
        gradient = self.alpha * w - self.u[chosen]
        z = small_problem(H, H @ w - gradient, (ends, parts, m.beta * m.groups.share), w, (Z, ridge))
        step, t, scores = z - w, 1.0, X @ w
        moved = X @ step
        sizes = self._penalty(w, ends, parts)
        expected = -(float(gradient @ step) + self._penalty(z, ends, parts) - sizes)
        if not expected > 0.0:
            return False
        new = self.w.copy()
        while t >= SHORTEST:
            new[chosen] = w + t * step if t < 1.0 else z
            level, theta, value = self.respond(scores + t * moved, new)
            if value <= self.value - ARMIJO * t * expected + 1e-15 * abs(self.value):
                self.w, self.level, self.theta, self.value = new, level, theta, value
                return True
            t *= 0.5
        return False

    def _penalty(self, z: np.ndarray, ends: np.ndarray, parts: np.ndarray) -> float:
        norms = np.sqrt(np.add.reduceat(z * z, ends[:-1]))
        return float(parts @ norms) + self.model.beta * self.model.groups.share * float(np.abs(z).sum())


def small_problem(H: np.ndarray, c: np.ndarray, penalty: tuple, start: np.ndarray, factors: tuple) -> np.ndarray:
    """Return the minimiser of ``1/2 z'Hz - c'z + sum_g parts_g ||z_g|| + limit ||z||_1``, nearly, from ``start``.

    ``penalty`` holds the ends of the groups, their parts, and the limit; ``factors`` are ``Z`` and ``ridge``, where
    ``H = Z'Z + ridge I``.
    """
    ends, parts, limit = penalty
    of = np.repeat(np.arange(parts.size), np.diff(ends))
    blocks = [H[a:b, a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    rates = np.array([np.linalg.eigvalsh(block)[-1] for block in blocks]) * (1.0 + 1e-12)
    z, first, last = start.copy(), None, _value(H, c, penalty, start)
    for _ in range(TURNS):
        r = H @ z - c
        largest = kernels.descend_blocks(H, ends, parts, limit, rates, z, r, SWEEPS if first else 2, 0.0)
        first = largest if first is None else first
        if largest <= EXACT * first:
            break
        last = _value(H, c, penalty, z)
        for _ in range(STEPS):
            there = np.flatnonzero(z)
            if not there.size:
                break
            norms = np.sqrt(np.add.reduceat(z * z, ends[:-1]))
            curve, unit = parts[of[there]] / norms[of[there]], z[there] / norms[of[there]]
            slope = (H @ z - c)[there] + limit * np.sign(z[there]) + parts[of[there]] * unit
            try:
                step = _newton(H, factors, there, of[there], curve, unit, slope)
            except LinAlgError:
                break
            new = z.copy()
            new[there] -= step
            if limit > 0.0:
                new[np.sign(new) != np.sign(z)] = 0.0
            value = _value(H, c, penalty, new)
            if not value < last:
                break
            z, last = new, value
    return z


def _newton(H, factors: tuple, there, of, curve, unit, slope) -> np.ndarray:
    """Solve the Newton system on the weights that are not 0: ``H`` plus each group's ``curve (I - unit unit')``.

    Of more weights than rows by the rows: beside ``Z'Z`` the matrix has blocks whose inverse is known.
    """
    Z, ridge = factors
    if there.size <= Z.shape[0]:
        matrix = H[np.ix_(there, there)] - np.where(of[:, None] == of, curve[:, None] * np.outer(unit, unit), 0.0)
        matrix[np.diag_indices(there.size)] += curve
        return cho_solve(cho_factor(matrix, check_finite=False), slope, check_finite=False)
    Z, starts = Z[:, there], np.flatnonzero(np.diff(of, prepend=-1))
    which = np.cumsum(np.diff(of, prepend=-1) != 0) - 1

    def divided(v):  # (ridge + curve) I - curve unit unit'
        along = np.add.reduceat(v * unit, starts, axis=-1)[..., which]
        return (v + (curve / ridge) * unit * along) / (ridge + curve)

    inner = Z @ divided(Z).T
    inner[np.diag_indices(len(Z))] += 1.0
    first = divided(slope)
    return first - divided(cho_solve(cho_factor(inner, check_finite=False), Z @ first, check_finite=False) @ Z)


def _value(H: np.ndarray, c: np.ndarray, penalty: tuple, z: np.ndarray) -> float:
    ends, parts, limit = penalty
    norms = np.sqrt(np.add.reduceat(z * z, ends[:-1]))
    return 0.5 * float(z @ (H @ z)) - float(c @ z) + float(parts @ norms) + limit * float(np.abs(z).sum())


def make_group_solver(name: str, seed: int = 0, warm: bool = True) -> Solver:
    """Return the solver of that name: ``auto`` and ``newton`` are the one there is."""
    if name not in ("auto", "newton"):
        raise UsageError(f"with `groups` there is no solver '{name}'", "use auto")
    return GroupNewton()
