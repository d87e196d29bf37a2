"""Proximal Newton steps for penalties on groups of features, on working sets of groups, with screening inside.

A step is the minimiser of a quadratic model of the losses plus the penalty as it is, over the groups of the working
set: proximal steps group after group (:mod:`screenpath.kernels.solve.groups`) find which weights are not 0, and Newton
steps on these, where the penalty is smooth, the rest. The model is exact while no row passes a kink: a few steps are
enough. The best free intercept is taken at every point, and eliminated from the model. Of the data only the columns of
the working set are copied; all else is as for single features (:mod:`screenpath.solve.sparse_newton`).
"""

from __future__ import annotations

from copy import copy

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from screenpath.data.safe.memory import SPARSE, in_force
from screenpath.errors import UsageError
from screenpath.kernels.solve import groups as kernels
from screenpath.numbers import sparse as sp
from screenpath.problem.sparse_types import SparseReduced
from screenpath.screen.groups import screen_groups
from screenpath.solve import sparse_newton
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
        run, progress, screen_below, screened, epochs = _Run(reduced), Progress(IDLE), np.inf, 0, 0
        while True:
            budget.note(run.gap, run.primal, run.touched)
            converged = run.gap <= tol * abs(run.primal)
            if converged or budget.spent(epochs) or progress.stalls(run.gap, run.primal, EXACT * run.gap):
                break
            if dynamic and run.gap <= screen_below:
                screen_below = AGAIN * run.gap
                found = run.screen()
                screened += found
                if found:
                    continue
            target = INNER * max(tol * abs(run.primal), INNER * run.gap)
            run, steps = run.improved(target, min(STEPS, budget.epochs - epochs))
            epochs += steps
        return Solution(run.w, None, epochs, run.touched, converged, screened, self.name)


class _Run(sparse_newton._Run):
    """Working arrays of one solve, see there; ``u`` is 0 at features that are decided."""

    def _evaluate(self) -> None:
        self.u = np.where(self.at.keep != 0, self.u, 0.0)
        self.primal, self.gap = self._objectives(self.features)

    def _objectives(self, features: np.ndarray) -> tuple[float, float]:
        """Return the objective, and the gap of the problem of these features, outside of which weights are 0."""
        m = self.model
        w_sq, size, kink, lag_sq, *_ = m.penalty_terms(self.w, self.u, features, self.alpha)
        return self.loss + (0.5 * w_sq + m.beta * size), kink + 0.5 * lag_sq

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many rows and features they decide."""
        before = self.at
        self.at = screen_groups(self.model, before, self._point(), self.alpha, (True, True), paper=False)
        found = int(np.count_nonzero(self.at.status != before.status))
        if found:
            self.theta, held = np.empty(self.theta.size), self.theta
            self._restrict(self.w, held)
        return found

    # -- a working set -----------------------------------------------------------------------------------------------

    def improved(self, target: float, steps: int) -> tuple[_Run, int]:
        """Solve the problem on the groups that matter now to about the gap ``target``; return the point and steps."""
        m, g = self.model, self.model.groups
        excess = g.norms(g.soft(self.u, m.beta * g.share)) - m.beta * g.parts
        excess[g.sums(self.at.keep.astype(np.int64)) == 0] = -np.inf
        active = g.norms(self.w) > 0.0
        other = np.flatnonzero(~active & (excess > 0.0))
        other = other[np.argsort(-excess[other], kind="stable")][: max(MANY, int(active.sum()))]
        active[other] = True
        chosen = g.order[active[g.of[g.order]] & (self.at.keep[g.order] != 0)]  # group by group
        ends = np.flatnonzero(np.diff(g.of[chosen], prepend=-1, append=-1)).astype(np.int64)
        penalty = ends, m.beta * g.parts[g.of[chosen[ends[:-1]]]], m.beta * g.share
        size = chosen.size * (2 * int(np.count_nonzero(self.at.duals == 0)) + 3 * chosen.size)
        in_force().check(8 * size, f"a working set of {chosen.size:,} features", SPARSE.hint)
        X, run, taken = m.columns_of(chosen), self, 0
        while taken < steps:
            taken += 1
            there = run._step(X, chosen, penalty)
            if there is None:
                break
            run, there.u = there, run.u.copy()
            run.u[chosen] = X.T @ run.psi / m.n
            if run._objectives(chosen)[1] <= target:
                break
        if run is not self:
            run._new_u()
            run._evaluate()
        return run, taken

    def _step(self, X, chosen: np.ndarray, penalty: tuple) -> _Run | None:
        """Return the point after one proximal Newton step on the chosen features; None if it leads nowhere."""
        m, w, there = self.model, self.w[chosen], copy(self)
        inside = (self.at.duals == 0) & (self.theta > m.low) & (self.theta < m.high)
        roots = m.roots[inside] / np.sqrt(m.n * m.gamma)
        Z = X[inside].toarray() if sp.issparse(X) else X[inside]
        there.touched += Z.size
        Z = roots[:, None] * Z
        if m.intercept and np.any(roots):  # rows without weight have no part in it
            Z = Z - np.outer(roots, roots @ Z) / float(roots @ roots)
        H = Z.T @ Z
        if not np.all(np.isfinite(H)):
            return None
        ridge = self.alpha + 1e-13 * float(np.trace(H)) / max(w.size, 1)
        H[np.diag_indices(w.size)] += ridge
        gradient = self.alpha * w - self.u[chosen]
        z = small_problem(H, H @ w - gradient, penalty, w, (Z, ridge))
        step, t = z - w, 1.0
        moved = X @ step
        expected = -(float(gradient @ step) + _size(penalty, z) - _size(penalty, w))
        if not expected > 0.0:
            return None
        while t >= SHORTEST:
            there.w, there.scores, there.level = self.w.copy(), self.scores + t * moved, self.level
            there.w[chosen] = w + t * step if t < 1.0 else z
            there.theta, there.psi = np.empty(self.theta.size), np.empty(self.psi.size)
            there._respond()
            there.primal, _ = there._objectives(chosen)
            if there.primal <= self.primal - ARMIJO * t * expected + 1e-15 * abs(self.primal):
                return there
            t *= 0.5
        return None


def small_problem(H: np.ndarray, c: np.ndarray, penalty: tuple, start: np.ndarray, factors: tuple) -> np.ndarray:
    """Return the minimiser of ``1/2 z'Hz - c'z + sum_g parts_g ||z_g|| + limit ||z||_1``, nearly, from ``start``.

    ``penalty`` holds the ends of the groups, their parts, and the limit; ``factors`` are ``Z`` and ``ridge``, where
    ``H = Z'Z + ridge I``.
    """
    ends, parts, limit = penalty
    of = np.repeat(np.arange(parts.size), np.diff(ends))
    blocks = [H[a:b, a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    rates = np.array([np.linalg.eigvalsh(block)[-1] for block in blocks]) * (1.0 + 1e-12)
    z, first = start.copy(), None
    for _ in range(TURNS):
        r = H @ z - c
        largest = kernels.descend_blocks(H, ends, parts, limit, rates, z, r, SWEEPS if first else 2)
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
    """Solve ``H`` and groups' ``curve (I - unit unit')`` on nonzero weights, by the rows if those are fewer."""
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
    return 0.5 * float(z @ (H @ z)) - float(c @ z) + _size(penalty, z)


def _size(penalty: tuple, z: np.ndarray) -> float:
    ends, parts, limit = penalty
    return float(parts @ np.sqrt(np.add.reduceat(z * z, ends[:-1]))) + limit * float(np.abs(z).sum())


def make_group_solver(name: str, seed: int = 0, warm: bool = True) -> Solver:
    """Return the solver of that name: ``auto`` and ``newton`` are the one there is."""
    if name not in ("auto", "newton"):
        raise UsageError(f"with `groups` there is no solver '{name}'", "use auto")
    return GroupNewton()
