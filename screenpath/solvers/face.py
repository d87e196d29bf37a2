"""Coordinate sweeps, and steps on the face that they find: for wide data with not too many rows.

Each round sweeps over the rows that are free or on the wrong side of their kink, and then moves the free ones together
by conjugate gradients (``kernels.face``). Near the solution, where a path starts from the line through its last two
points, two or three rounds do. Where the free rows are many and nearly dependent, steps end at the box again and again:
it says that it has not converged, and Newton's method is the one to go on.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels import face as kernels
from screenpath.models.reduced import Reduced
from screenpath.solvers.base import Budget, Solution, Solver
from screenpath.solvers.cd import Descent

SWEEPS = 3  # of a round
PRODUCTS, FORCING = 80, 0.05  # of conjugate gradients: most of a round, and the relative residual to reach
PROX = 1e-6  # of a system, times the squared norms
SHARE = 0.3  # of the target, which the free rows may keep
POOR, PATIENCE = 0.5, 2  # a round that leaves more than POOR of the gap is one too many, of which there may be some


class FaceDescent(Solver):
    """Coordinate sweeps and steps on the face of the box.

    Parameters
    ----------
    seed : int, default 0
        Of the order of the sweeps, see :class:`screenpath.solvers.cd.CoordinateDescent`.
    """

    name = "cd+cg"

    def __init__(self, seed: int = 0):
        self.seed = seed

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solvers.base.Solver`."""
        run = Descent(reduced, np.random.SeedSequence((self.seed, rank)))
        epochs, last, poor = 0, np.inf, 0
        while True:
            converged = run.check(tol, dynamic)
            budget.note(run.gap, run.primal, run.touched)
            poor += run.gap > POOR * last
            if converged or not np.isfinite(run.gap) or run.alive.size == 0 or poor > PATIENCE:
                break
            if epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            last = run.gap
            epochs += self._round(run, tol, min(SWEEPS, budget.epochs - epochs), budget)
        return Solution(run.w, run.alpha, epochs, run.touched, converged, run.screened, self.name, lambda: run.decided)

    def _round(self, run: Descent, tol: float, sweeps: int, budget: Budget) -> int:
        """Sweep, then step; return the sweeps."""
        r, alpha, rows = run.reduced, run.alpha, run.alive
        t = (r.c - run.margins)[rows]
        low, high = alpha[rows] <= r.lo[rows], alpha[rows] >= r.hi[rows]
        rows = rows[np.where(low, t > 0.0, np.where(high, t < 0.0, True))]
        run.sweep(sweeps, False, budget, rows)
        rows.sort()  # the sweeps have permuted it
        face = rows[(alpha[rows] > r.lo[rows]) & (alpha[rows] < r.hi[rows]) & (run.sqnorms[rows] > 0.0)]
        if face.size:
            run.touched += kernels.face_step(
                run.rows, r.c, r.lo, r.hi, run.sqnorms, alpha, run.w, face,
                PROX, SHARE * tol * abs(run.primal), FORCING, PRODUCTS,
            )  # fmt: skip
        return sweeps
