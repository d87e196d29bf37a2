"""Semismooth Newton on the proximal dual of a reduced box problem: certified in a few passes.

Method of multipliers on the dual with a semismooth Newton inner solver (the scheme of Li, Sun and Toh 2018, SSNAL),
on a working set of rows near their kink: superlinear, and insensitive to the conditioning that makes coordinate descent
crawl. Stops when the duality gap of the reduced problem is at most ``tol`` times its primal value.
"""

from __future__ import annotations

import math
import time

import numpy as np

from screenpath.kernels.problem import box
from screenpath.kernels.rows.barrier import Team, make_board
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import newton as kernels
from screenpath.problem.reduced import Reduced
from screenpath.solve.base import Budget, Progress, Solution, Solver

CALL_ITERATIONS = 100  # of one kernel call: bounds the time until a signal or a deadline is noticed
STALLS = 4  # such calls in a row that do not halve the gap, after which rounding is to blame


def set_up(reduced: Reduced, columns: int, signs=None) -> tuple:
    """Return the rows of a problem, a workspace with everything but the start, and a team of one thread.

    ``columns`` are those of the rows and one that a solver adds; ``signs`` those of signless rows.
    """
    stored, where, own = reduced.stored()
    room = kernels.workspace(reduced.size, columns, reduced.sparse)
    problem = reduced.c, reduced.lo, reduced.hi, reduced.norms, reduced.start_alpha
    for row, values in zip(room.vectors, problem, strict=False):
        row[:] = values
    room.lists[kernels.WHERE], room.marks[kernels.SIGNS] = where, own if signs is None else signs
    table = kernels.table_of(1, 0 if reduced.sparse else columns)
    return matrix_of(stored), room, Team(table, make_board(1), 0)


class Newton(Solver):
    """Semismooth Newton / augmented Lagrangian."""

    name = "newton"

    def compiled(self, rows) -> Solver:
        return self

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        k, v, w = reduced.size, reduced.start_sum.copy(), reduced.start_w.copy()
        X, room, team = set_up(reduced, w.size)
        vectors, lists = room.vectors, room.lists
        margins = reduced.start_margins
        iterations, touched, errors, progress = 0, 0, reduced.errors, Progress(STALLS)
        while True:
            vectors[kernels.T], lists[kernels.ALIVE] = reduced.c - margins, np.arange(k)
            limit = min(budget.epochs - iterations, CALL_ITERATIONS)
            done, work, count, gap, primal = kernels.minimise(
                X, k, reduced.offset, v, w, tol, limit, dynamic, errors, 0.0, room, team
            )
            iterations, touched = iterations + done, touched + work
            budget.note(gap, primal, touched)
            converged = gap <= tol * abs(primal)
            if (
                converged
                or done < limit
                or not math.isfinite(gap)
                or iterations >= budget.epochs
                or progress.stalls(gap)
                or time.monotonic() > budget.deadline
            ):
                break
            margins = reduced.products(w)
            touched += reduced.size
            widths = float((reduced.hi - reduced.lo) @ reduced.norms)
            moved = box.moved_by(float(work), np.linalg.norm(w), np.linalg.norm(w - v), widths)
            errors = errors._replace(total=errors.total + float(moved))  # the next call goes on with ``v``
        alpha, alive = vectors[kernels.ALPHA].copy(), lists[kernels.ALIVE, :count].copy()

        def decided() -> np.ndarray:
            status = np.where(alpha <= reduced.lo, -1, 1).astype(np.int8)
            status[alive] = 0
            return status

        return Solution(w, alpha, iterations, touched, converged, reduced.size - alive.size, self.name, decided)
