"""A free intercept by multipliers, for wide rows of which there are not too many.

The augmented Lagrangian of ``sum_i alpha_i = rest`` is a box problem of rows with one more column, ``rho^1/2``, whose
kinks are ``c_i - mu``: an intercept that is penalised around ``mu``. What solves such problems best, sweeps and steps
on the face (:mod:`screenpath.solve.face`), so serves a free intercept too. By how much the solution misses the sum,
``m``, falls piecewise linearly with ``mu``: the next ``mu`` is the solution's intercept ``mu + rho m`` at first, then
where the line through the last two would be 0. The sum is soon so nearly right that the dual variables between their
ends can share out what is missing.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from screenpath.kernels.rows.matrix import Matrix, matrix_of, products, taken
from screenpath.kernels.solve import multiplier as kernels
from screenpath.problem.faces import Faces
from screenpath.problem.reduced import Reduced
from screenpath.solve.base import Budget, Solver

RHO = 0.1  # times the square of a typical distance of the rows from their middle: the same at all grid points
LOOSE, TIGHT = 3.0, 0.9  # times the tolerance: of the first problem, whose multiplier is a guess, and of those after it
MOST = 8  # problems


class Multipliers:
    """The augmented problems of one run of :class:`screenpath.solve.intercept.FreeNewton`.

    The run's iterate moves: ``w``, ``b``, the dual point, and the products.
    """

    def __init__(self, run):
        self.run, size = run, run.c.size
        self.rho = RHO * (run.reduced.typical**2 or 1.0)
        self.every, self.plus = np.arange(size), np.ones(size, dtype=np.int8)
        self.rows, self.norms = self._augmented(run.rows, run.where, run.reduced.norms)
        self.faces: Faces | None = run.reduced.faces
        run.touched += size

    def _augmented(self, X: Matrix, where: np.ndarray, norms: np.ndarray) -> tuple[Matrix, np.ndarray]:
        """Return copies of rows with the column of the intercept, and their norms."""
        plus, every, last = np.ones(where.size, dtype=np.int8), np.arange(where.size), math.sqrt(self.rho)
        if X.sparse:
            rows = taken(X, where, plus, every, last, self.run.w.size)
        else:
            rows = matrix_of(np.column_stack([X.dense[where], np.full(where.size, last)]))
        return rows, np.sqrt(np.square(norms) + self.rho)

    def _fetch(self, numbers: np.ndarray) -> tuple:
        rows, norms = self.run.reduced.fetch(numbers)
        longer, norms = self._augmented(matrix_of(rows), np.arange(numbers.size), norms)
        return (longer.data, longer.indices, longer.indptr), norms

    def summed(self) -> tuple[float, float, float]:
        """Return the excess of the dual variables' sum, the sum of their sizes, and how many are free."""
        run = self.run
        return kernels.summed(run.alpha.size, run.reduced.rest, run.lo, run.hi, run.alpha, self.plus)

    def share_out(self) -> None:
        """Subtract the excess of the sum from the dual variables between their ends, as far as they allow."""
        run, (missing, _, free) = self.run, self.summed()
        if free == 0.0 or missing == 0.0:
            return
        longer, run.alpha = np.append(run.v, 0.0), run.alpha.copy()
        kernels.share_out(
            self.rows, run.alpha.size, missing, free, longer, self.every, run.lo, run.hi, run.alpha, self.plus
        )  # fmt: skip
        run.v, run.touched = longer[:-1], run.touched + free

    def problem(self, mu: float) -> Reduced:
        """Return the box problem around an intercept, from the dual point of the run."""
        run, X = self.run, self.rows
        rows = (X.data, X.indices, X.indptr) if X.sparse else X.dense
        point, margins = np.append(run.v, math.sqrt(self.rho) * self.summed()[0]), np.empty(run.c.size)
        products(self.rows, point, margins, 0, margins.size)
        run.touched += margins.size
        return Reduced(
            take=lambda: rows, sparse=bool(X.sparse), place=None, index=run.reduced.index, c=run.c - mu, lo=run.lo,
            hi=run.hi, norms=self.norms, offset=run.reduced.offset + mu * run.reduced.rest, errors=run.reduced.errors,
            start_alpha=run.alpha, start_sum=point, start_w=point, start_margins=margins, theta=run.reduced.theta,
            fetch=self._fetch, faces=self.faces,
        )  # fmt: skip

    def solve(self, solver: Solver, *, tol: float, budget: Budget, rank: int) -> bool:
        """Move the run's iterate until its gap is small enough; return whether it is."""
        run, d = self.run, self.run.w.size
        self.share_out()
        mu = run.b - self.rho * self.summed()[0]
        before = math.nan, 0.0
        for k in range(MOST):
            left = replace(budget, epochs=budget.epochs - run.iterations, touched=budget.touched + run.touched)
            aim = (TIGHT if k else LOOSE) * tol
            found = solver.solve(self.problem(mu), tol=aim, budget=left, dynamic=False, rank=rank)
            self.faces = found.faces
            run.iterations, run.touched = run.iterations + found.epochs, run.touched + found.touched
            run.w, run.v, run.alpha = found.w[:d].copy(), found.w[:d], found.alpha
            now = mu, self.summed()[0]
            run.b = mu + self.rho * now[1]
            mu, before = kernels.next_multiplier(*now, *before, run.b), now
            self.share_out()
            run.form_products()
            missing, size, _ = self.summed()
            run.feasible = abs(missing) <= kernels.EXACT * size
            run.evaluate()
            if run.feasible and run.gap <= tol * abs(run.primal):
                return True
            if run.iterations >= budget.epochs or time.monotonic() > budget.deadline:
                return False
        return False
