"""Dual coordinate descent on a reduced box problem, with shrinking and dynamic gap screening.

Minimises the negative dual one coordinate at a time (Hsieh et al. 2008; LIBLINEAR's method). Stops when the duality
gap of the reduced problem is at most ``tol`` times its primal value. Known for its cheap first digits; on badly
conditioned data the Newton solver is the one to use.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import cd, descent
from screenpath.problem.reduced import Reduced
from screenpath.solve.base import Budget, Solution, Solver

VISITS = 2_000_000  # row visits of one kernel call: bounds the time until a signal or a deadline is noticed
FIRST_CHECK, LAST_CHECK = 5, 100  # sweeps between two gap evaluations, at first and at most


def draws(seed: int, rank: int) -> np.ndarray:
    """Return the random state of a solve, see ``kernels.solve.cd.draws``, for any seed."""
    return cd.draws(np.uint64(seed % 2**64), np.uint64(rank))


class CoordinateDescent(Solver):
    """Dual coordinate descent.

    Each solve starts its random order from ``seed`` and the rank of the parameter, so a path gives the same numbers
    whether it is run at once or resumed. With ``shrinking``, rows that sit at an end of their box with a clearly
    outward gradient are skipped until the next gap evaluation. If not ``warm``, every solve starts from the point of
    the box nearest to zero, as LIBLINEAR does, and not where the reduced problem says.
    """

    name = "cd"

    def __init__(self, seed: int = 0, shrinking: bool = True, warm: bool = True):
        self.seed, self.shrinking, self.warm = seed, shrinking, warm

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        run = Descent(reduced, draws(self.seed, rank))
        if not self.warm:
            run.restart()
        interval, epochs, converged = FIRST_CHECK, 0, False
        while True:
            converged = run.check(tol, dynamic)
            budget.note(run.gap, run.primal, run.touched)
            if converged or not np.isfinite(run.gap) or run.alive.size == 0 or budget.spent(epochs):
                break
            todo = min(interval, budget.epochs - epochs)
            run.sweep(todo, self.shrinking, budget)
            epochs += todo
            interval = min(LAST_CHECK, interval + interval // 4 + 1)
        return Solution(run.w, run.alpha, epochs, run.touched, converged, run.screened, self.name, lambda: run.decided)


class Descent:
    """Working arrays of one solve, as ``kernels.solve.descent`` takes them; ``random`` comes from :func:`draws`.

    ``copied``: work on a copy of the survivors. Long sparse rows are read as fast in place.
    """

    gap = property(lambda self: float(self.point.now[descent.GAP]))
    primal = property(lambda self: float(self.point.now[descent.PRIMAL]))
    touched = property(lambda self: float(self.point.now[descent.TOUCHED]))
    screened = property(lambda self: int(self.point.now[descent.SCREENED]))
    w, alpha, decided = (property(attrgetter(f"point.{name}")) for name in ("w", "alpha", "decided"))

    def __init__(self, reduced: Reduced, random: np.ndarray, copied: bool = True):
        r = self.reduced = reduced
        if copied:
            r.copy()
        stored, where, signs = r.stored()
        self.task = cd.Task(
            matrix_of(stored), where, signs, r.c, r.lo, r.hi, r.norms, r.norms**2, r.errors, r.index, r.theta.size
        )  # fmt: skip
        self.alive = np.arange(r.size)
        margins, told = np.empty(r.size), descent.STALE
        if r.start_w is r.start_sum:  # products with the start are known, until it moves
            margins, told = r.start_margins.copy(), descent.KNOWN
        elif r.foreseen is not None:
            margins, told = r.foreseen, descent.FORESEEN
        decided, now = np.zeros(r.size, dtype=np.int8), descent.begun(self.task, r.offset, told)
        self.point = cd.Iterate(r.start_alpha.copy(), r.start_sum.copy(), margins, decided, random, now)

    def restart(self) -> None:
        """Replace the problem's start by the point of the box nearest to zero."""
        descent.place(self.task, self.point, self.alive, np.clip(0.0, self.reduced.lo, self.reduced.hi))

    def sweep(self, sweeps: int, shrinking: bool, budget: Budget) -> None:
        """Run ``sweeps`` sweeps over all alive rows, in kernel calls of bounded length."""
        self.point.now[descent.TOLD] = descent.STALE
        each = max(1, VISITS // max(self.alive.size, 1))
        while sweeps > 0 and not budget.late:
            now = min(each, sweeps)
            touched, _ = cd.cd_sweeps(self.task, self.point, self.alive, shrinking, now)
            self.point.now[descent.TOUCHED] += touched
            sweeps -= now

    def check(self, tol: float, dynamic: bool) -> bool:
        """Evaluate the gap of the alive rows; if ``dynamic``, screen with its ball. Tell whether the target is met."""
        self.alive.sort(kind="stable")  # sweeps have permuted it
        how = descent.How(tol, 1.0, dynamic, 0, 0, 0.0)
        self.alive, met = descent.look(self.task, self.point, self.alive, how)
        return met
