"""Dual coordinate descent on a reduced box problem, with shrinking and dynamic gap screening.

Minimises the negative dual one coordinate at a time (Hsieh et al. 2008; LIBLINEAR's method). Stops when the duality
gap of the reduced problem is at most ``tol`` times its primal value. Known for its cheap first digits; on badly
conditioned data the Newton solver is the one to use.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels import box as box_kernels
from screenpath.kernels import cd as kernels
from screenpath.kernels.matrix import listed_products, listed_sum, matrix_of
from screenpath.models.geometry import GAP_ROUNDING, ROUNDING, Ball, Point
from screenpath.models.reduced import Reduced
from screenpath.numbers.rounding import UNIT
from screenpath.solvers.base import Budget, Solution, Solver

VISITS = 2_000_000  # row visits of one kernel call: bounds the time until a signal or a deadline is noticed
FIRST_CHECK, LAST_CHECK = 5, 100  # sweeps between two gap evaluations, at first and at most


class CoordinateDescent(Solver):
    """Dual coordinate descent.

    Parameters
    ----------
    seed : int, default 0
        Seed of the random order. Each solve starts its generator from the seed and the parameter's rank, so a path
        gives the same numbers whether it is run at once or resumed.
    shrinking : bool, default True
        Skip rows that sit at an end of their box with a clearly outward gradient until the next gap evaluation.
    warm : bool, default True
        Start where the reduced problem says; else every solve starts from the point of the box nearest to zero, as
        LIBLINEAR does.
    """

    name = "cd"

    def __init__(self, seed: int = 0, shrinking: bool = True, warm: bool = True):
        self.seed, self.shrinking, self.warm = seed, shrinking, warm

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solvers.base.Solver`."""
        run = Descent(reduced, np.random.SeedSequence((self.seed, rank)))
        if not self.warm:
            run.restart()
        interval, epochs, converged = FIRST_CHECK, 0, False
        while True:
            converged = run.check(tol, dynamic)
            budget.note(run.gap, run.primal, run.touched)
            if converged or not np.isfinite(run.gap) or run.alive.size == 0:
                break
            if epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            todo = min(interval, budget.epochs - epochs)
            run.sweep(todo, self.shrinking, budget)
            epochs += todo
            interval = min(LAST_CHECK, interval + interval // 4 + 1)
        return Solution(run.w, run.alpha, epochs, run.touched, converged, run.screened, self.name, lambda: run.decided)


class Descent:
    """Working arrays of one solve.

    Parameters
    ----------
    reduced : Reduced
    seed : SeedSequence
    copied : bool, default True
        Work on a copy of the survivors. Long sparse rows are read as fast where they are.
    """

    def __init__(self, reduced: Reduced, seed: np.random.SeedSequence, copied: bool = True):
        self.reduced, self.copied = reduced, copied
        if copied:
            reduced.copy()
        stored, self.where, self.signs = reduced.stored()
        self.rows = matrix_of(stored)
        self.alpha = reduced.start_alpha.copy()
        self.sqnorms = reduced.norms**2
        self.alive = np.arange(reduced.size)
        self.random = np.maximum(seed.generate_state(1, np.uint64), np.uint64(1))
        self.touched = 0.0
        self.screened = 0
        self.decided = np.zeros(reduced.size, dtype=np.int8)
        self.w = reduced.start_sum.copy()
        self.widths = float((reduced.hi - reduced.lo) @ reduced.norms)
        self.margins = np.empty(reduced.size)  # of the last check, of what was alive before it
        self.moved = True  # whether w has been since
        # Products with the start, where they are known: until it moves.
        self.formed = reduced.start_margins if reduced.start_w is reduced.start_sum else None
        self.offset = reduced.offset

    def restart(self) -> None:
        """Leave the start that the problem brings for the point of the box nearest to zero."""
        self._move(self.alive, np.clip(0.0, self.reduced.lo, self.reduced.hi))

    def sweep(self, sweeps: int, shrinking: bool, budget: Budget, rows: np.ndarray | None = None) -> None:
        """Run ``sweeps`` sweeps over some rows, by default all that are alive, in kernel calls of bounded length."""
        r, rows, self.moved, self.formed = self.reduced, self.alive if rows is None else rows, True, None
        each = max(1, VISITS // max(rows.size, 1))
        while sweeps > 0 and time.monotonic() <= budget.deadline:
            now = min(each, sweeps)
            problem = r.c, r.lo, r.hi, self.sqnorms, self.alpha, self.w, rows, shrinking, now, self.random
            if self.copied:
                touched, _ = kernels.cd_sweeps(self.rows, *problem)
            else:
                touched, _ = kernels.placed_sweeps(self.rows, self.where, self.signs, *problem)
            self.touched += touched
            sweeps -= now

    def foresees(self, tol: float) -> bool:
        """Tell whether the start's relative gap is above ``tol``, as far as its products with the rows are foreseen;
        these are its margins then, and no pass is needed to say that the start is not the end.
        """
        r = self.reduced
        if r.foreseen is None:
            return False
        self.margins = r.foreseen
        self._evaluate(r.foreseen)
        return tol * abs(self.primal) < self.gap < np.inf

    def check(self, tol: float, dynamic: bool) -> bool:
        """Evaluate the gap of what is alive; screen with its ball where asked. Return whether the target is met.

        Rows that were screened are at the end of their box for good. Should ``w`` leave one of them on the wrong side
        of its kink, the certificate on the full data says so.
        """
        self.alive.sort(kind="stable")  # sweeps have permuted it
        margins = self._products()
        c, w_sq, terms = self._evaluate(margins)
        if self.gap <= tol * abs(self.primal):
            return True
        if dynamic and np.isfinite(self.gap):
            # Margins are off by the rounding of a product, and w by that of its updates.
            size, off = np.sqrt(w_sq), UNIT * (self.touched + 64.0)
            error = (GAP_ROUNDING + off) * (terms + size * self.widths)
            self._screen(margins, c, max(self.gap, 0.0) + error, w_sq)
        return False

    def _evaluate(self, margins: np.ndarray) -> tuple:
        """Form the gap and the primal value of what is alive; return its kinks, ``||w||^2``, and the sum of sizes."""
        c, lo, hi, alpha = self._of_alive()
        loss, linear, magnitude = box_kernels.box_summary(c, margins, lo, hi, alpha, 0, margins.size)
        w_sq = float(self.w @ self.w)
        pull = w_sq - float(alpha @ margins)  # the sum of the fixed rows, times w
        self.primal = 0.5 * w_sq - pull + loss + self.offset
        self.gap = w_sq - pull + loss - linear
        return c, w_sq, w_sq + abs(pull) + loss + magnitude

    def _of_alive(self) -> tuple:
        r = self.reduced
        every = r.c, r.lo, r.hi, self.alpha
        return every if self.alive.size == r.size else tuple(values[self.alive] for values in every)

    def _screen(self, margins, c, squared_radius, w_sq):
        # Here w is the primal point of the dual iterate, so the ball of theory is centred at w with r^2 = gap.
        r, alive = self.reduced, self.alive
        ball = Ball(Point(self.w, margins, w_sq), float(np.sqrt(squared_radius)))
        status = np.empty(alive.size, dtype=np.int8)
        norms = r.norms if alive.size == r.size else r.norms[alive]
        shape = ball.radius, ball.extent, c, ROUNDING, status, 0, alive.size
        if not any(box_kernels.box_decide_ball(margins, 1.0, norms, *shape)):
            return
        self.alive, fresh, values = kernels.parted(status, alive, r.lo, r.hi, self.decided)
        self._move(fresh, values)
        self.offset += float(r.c[fresh] @ values)
        self.screened += fresh.size

    def _products(self) -> np.ndarray:
        """Return the margins of what is alive; they are noted too."""
        alive, formed, self.moved, self.formed = self.alive, self.formed, False, None
        if formed is not None and alive.size == formed.size:
            self.margins = formed
            return formed
        self.touched += alive.size
        if alive.size == self.reduced.size:
            self.margins = self.reduced.products(self.w)
            return self.margins
        margins = np.empty(alive.size)
        listed_products(self.rows, self.where[alive], self.w, margins)
        margins *= self.signs[alive]
        self.margins[alive] = margins
        return margins

    def _move(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Give the dual variables of some rows other values."""
        step = values - self.alpha[rows]
        self.alpha[rows] = values
        touched = listed_sum(self.rows, self.where[rows], step * self.signs[rows], self.w)
        self.touched, self.moved, self.formed = self.touched + touched, self.moved or touched > 0, None
