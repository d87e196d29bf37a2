"""A free intercept by multipliers, for wide rows of which there are not too many.

The augmented Lagrangian of ``sum_i s_i alpha_i = rest`` is a box problem of rows with one more column, ``s_i rho^1/2``,
whose kinks are ``c_i - s_i mu``: an intercept that is penalised around ``mu``. What solves such problems best, sweeps
and steps on the face (:mod:`screenpath.solve.face`), so serves a free intercept too. By how much the solution misses
the sum, ``m``, falls piecewise linearly with ``mu``: the next ``mu`` is the solution's intercept ``mu + rho m`` at
first, then where the line through the last two would be 0. The sum is soon so nearly right that the dual variables
between their ends can share out what is missing.
"""

from __future__ import annotations

import math

import numpy as np

from screenpath.kernels.rows.matrix import Matrix, listed_products, matrix_of, taken
from screenpath.kernels.rows.newton_system import inner
from screenpath.kernels.solve import multiplier as kernels
from screenpath.problem.reduced import Reduced
from screenpath.solve.base import Budget, Solution, Solver
from screenpath.solve.face import FaceDescent

RHO = 0.1  # times the square of a typical distance of the rows from their middle: the same at all grid points
LOOSE, TIGHT = 3.0, 0.9  # times the tolerance: of the first problem, whose multiplier is a guess, and of those after it
MOST = 8  # problems
SHARE = 0.3  # of a target, which free rows may keep: sharing out what their sum is off by takes its part too


class Multipliers(Solver):
    """Sweeps and steps on the face for problems with a free intercept; ``seed`` is that of :class:`FaceDescent`."""

    name = FaceDescent.name

    def __init__(self, seed: int = 0):
        self.faces = FaceDescent(seed, SHARE)
        self.kept: tuple = None, 0.0, None  # values of the sparse rows of a path, and those rows with one column more

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        run = Augmented(reduced, self)
        mu, before, converged = run.b - run.rho * run.missing, (math.nan, 0.0), False
        for k in range(MOST):
            left, aim = budget.after(run.epochs, run.touched), (TIGHT if k else LOOSE) * tol
            found = self.faces.solve(run.problem(mu), tol=aim, budget=left, dynamic=False, rank=rank)
            now = mu, run.take(found, mu)
            mu, before = kernels.next_multiplier(*now, *before, run.b), now
            gap, primal = run.gap()
            budget.note(gap, primal, run.touched)
            converged = run.feasible and gap <= tol * abs(primal)
            if converged or budget.spent(run.epochs):
                break
        return Solution(
            run.w if converged else run.v[:-1], run.alpha, run.epochs, run.touched, converged, 0, self.name,
            lambda: np.zeros(run.size, dtype=np.int8), run.faces, run.b,
        )  # fmt: skip


    def rows_of(self, reduced: Reduced, bias: float) -> tuple:
        """Return rows with the intercept's column, where the survivors are, and signs; sparse rows are copied once."""
        stored, where, signs = reduced.stored()
        X, d = matrix_of(stored), reduced.start_w.size
        if not X.sparse:
            return longer(X, where, signs, bias, d), np.arange(where.size), np.ones(where.size, dtype=np.int8)
        if self.kept[0] is not X.data or self.kept[1] != bias:
            every = np.arange(X.indptr.size - 1)
            self.kept = X.data, bias, longer(X, every, np.ones(every.size, dtype=np.int8), bias, d)
        return self.kept[2], where, signs


def longer(X: Matrix, where: np.ndarray, signs: np.ndarray, bias: float, d: int) -> Matrix:
    """Return signed copies of rows of ``d`` columns, and one column more."""
    if X.sparse:
        return taken(X, where, signs, np.arange(where.size), bias, d)
    return matrix_of(signs[:, None] * np.column_stack([X.dense[where], np.full(where.size, bias)]))


def _stored(X: Matrix):
    return (X.data, X.indices, X.indptr) if X.sparse else X.dense


class Augmented:
    """Rows with the column of the intercept, and the iterate: a dual point and its sum ``v``, a primal point ``w`` with
    its intercept ``b``; ``missing`` is the excess of the dual variables' sum.
    """

    def __init__(self, reduced: Reduced, solver: Multipliers):
        assert reduced.free is not None
        self.reduced, self.free, self.size = reduced, reduced.free, reduced.size
        self.rho = RHO * self.free.typical**2
        stored, self.where, self.signs = reduced.stored()
        self.stored, self.norms = matrix_of(stored), np.sqrt(np.square(reduced.norms) + self.rho)
        self.place = solver.rows_of(reduced, math.sqrt(self.rho))
        self.alpha, self.v, self.b = reduced.start_alpha.copy(), np.append(reduced.start_sum, 0.0), self.free.intercept
        self.w, self.faces, self.epochs, self.touched = reduced.start_w, reduced.faces, 0, 0.0
        self.foreseen = reduced.foreseen
        self._share_out()

    def _fetch(self, numbers: np.ndarray) -> tuple:
        assert self.reduced.fetch is not None
        rows, norms = self.reduced.fetch(numbers)
        signs, d = self.free.signs[numbers], self.reduced.start_w.size
        X = longer(matrix_of(rows), np.arange(numbers.size), signs, math.sqrt(self.rho), d)
        return _stored(X), np.sqrt(np.square(norms) + self.rho)

    def _share_out(self) -> None:
        """Subtract the excess of the sum from the dual variables between their ends, as far as they allow."""
        r, problem = self.reduced, (self.size, self.free.rest, self.reduced.lo, self.reduced.hi, self.alpha, self.signs)
        self.missing, _, movable = kernels.summed(*problem)
        if movable > 0.0 and self.missing != 0.0:
            kernels.share_out(
                self.stored, self.size, self.missing, movable, self.v, self.where, r.lo, r.hi, self.alpha, self.signs
            )
            self.touched += movable
        self.missing, size, _ = kernels.summed(*problem)
        self.feasible = abs(self.missing) <= kernels.EXACT * size

    def _products(self, point: np.ndarray) -> np.ndarray:
        out = np.empty(self.size)
        rows, where, signs = self.place
        listed_products(rows, where, point, out)
        out *= signs
        self.touched += self.size
        return out

    def problem(self, mu: float) -> Reduced:
        """Return the box problem around an intercept, from the iterate."""
        r, (X, *place), point, foreseen = self.reduced, self.place, self.v.copy(), self.foreseen
        point[-1] = math.sqrt(self.rho) * self.missing
        if foreseen is None:
            margins = self._products(point)
        else:  # the rows need not be read for a start whose gap is large
            foreseen = margins = foreseen + self.rho * self.missing * self.signs
        return Reduced(
            take=lambda: _stored(taken(X, *place, np.arange(self.size), 0.0, 0) if X.sparse else X),
            sparse=bool(X.sparse), place=(_stored(X), *place),
            index=r.index, c=r.c - mu * self.signs, lo=r.lo, hi=r.hi, norms=self.norms,
            offset=r.offset + mu * self.free.rest, errors=r.errors, start_alpha=self.alpha, start_sum=point,
            start_w=point if foreseen is None else point[:], start_margins=margins, theta=r.theta, foreseen=foreseen,
            fetch=self._fetch, faces=self.faces,
        )  # fmt: skip

    def take(self, found: Solution, mu: float) -> float:
        """Take the solution of the problem around ``mu``, and return by how much it misses the sum."""
        self.faces, self.epochs, self.touched = found.faces, self.epochs + found.epochs, self.touched + found.touched
        self.alpha, self.v, self.foreseen = found.alpha, found.w, None
        r = self.reduced
        missing = kernels.summed(self.size, self.free.rest, r.lo, r.hi, self.alpha, self.signs)[0]
        self.w, self.b = self.v[:-1].copy(), mu + self.rho * missing
        self._share_out()
        return missing

    def gap(self) -> tuple[float, float]:
        """Return the gap of the iterate, and its primal value."""
        r, forms = self.reduced, self._products(np.append(self.w, 0.0)) + self.b * self.signs
        t, v = r.c - forms, self.v[:-1]
        loss = float(np.maximum(r.lo * t, r.hi * t).sum())
        slackness = float(np.maximum((r.hi - self.alpha) * t, (r.lo - self.alpha) * t).sum())
        gap = slackness + 0.5 * inner(self.w - v, self.w - v)
        return gap, 0.5 * inner(self.w, self.w) - inner(v, self.w) + inner(self.alpha, forms) + loss + r.offset
