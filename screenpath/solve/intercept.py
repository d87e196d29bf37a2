"""Semismooth Newton for box models with a free intercept, on a working set of rows near their kink.

Problems whose intercept is penalised around a guess come first (:mod:`screenpath.kernels.solve.multiplier`): one or two
of them are enough, almost always. Else the intercept is eliminated exactly at every evaluation, so that each iterate is
feasible in the dual (:mod:`screenpath.kernels.solve.intercept_newton`). Stops when the duality gap of the reduced
problem is at most ``tol`` times its primal value.
"""

from __future__ import annotations

import math
import time

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import box, intercept
from screenpath.kernels.rows.barrier import alone
from screenpath.kernels.rows.matrix import Matrix, listed_products, matrix_of, taken, weighted_sum
from screenpath.kernels.rows.newton_system import DIRECT, GRAM, inner
from screenpath.kernels.solve import intercept_newton as kernels
from screenpath.kernels.solve import multiplier, newton
from screenpath.kernels.solve.newton import (
    AIM,
    NEAR_LEAST,
    NEAR_PER_FEATURE,
    NEAR_SHARE,
    POOR_START,
    ROUGH,
    SIGMA_LEAST,
    SIGMA_MOST,
    ZONE,
)  # fmt: skip
from screenpath.numbers.rounding import UNIT, gamma
from screenpath.problem.free import FreeReduced
from screenpath.regions.geometry import ROUNDING
from screenpath.regions.lever import Levered
from screenpath.solve.base import Budget, Progress, Solution, Solver
from screenpath.solve.face import FaceDescent
from screenpath.solve.multipliers import Multipliers
from screenpath.solve.newton import STALLS, set_up
from screenpath.solve.plugins import takes_plugins

CALL_ITERATIONS = 100  # of one kernel call: bounds the time until a signal or a deadline is noticed
FEW_ROWS = 10_000  # survivors up to which faces come first
MULTIPLIED = 0.3  # of a target, which free rows may keep: sharing out what their sum is off by takes its part too
NAMES = ("auto", "newton")


@takes_plugins
def make_free_solver(name: str, seed: int = 0, shrinking: bool = True, warm: bool = True) -> FreeNewton:
    """Return the solver of that name for models with a free intercept; it sweeps nothing that could shrink.

    Raises
    ------
    UsageError
        For any other name, or a cold start.
    """
    if name not in NAMES:
        raise UsageError(f"with `intercept=free` there is no solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm:
        raise UsageError("with `intercept=free` a solver starts from the previous grid point", "leave out `start`")
    return FreeNewton(name == "auto", seed)


class FreeNewton(Solver):
    """Semismooth Newton, with an intercept penalised around a guess, or eliminated.

    Parameters
    ----------
    faces : bool, default False
        On wide sparse rows, of which there are not too many, sweeps and steps on the face come first
        (:mod:`screenpath.solve.multipliers`); on few dense rows where Newton's method does not end soon.
    seed : int, default 0
        Of the sweeps.
    """

    name = "newton"

    def __init__(self, faces: bool = False, seed: int = 0):
        self.faces = FaceDescent(seed, MULTIPLIED) if faces else None

    def looks_ahead(self, rows) -> bool:
        return rows.d > DIRECT

    def compiled(self, rows) -> Solver | None:
        """Return the solver that a compiled walk is to use: by multipliers, and without looking ahead."""
        return None if self.looks_ahead(rows) else self

    def solve(self, reduced: FreeReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        name, known, first, faces = self.name, False, None, None
        wide = reduced.sparse and reduced.start_w.size > DIRECT
        if reduced.size and not wide:
            first = self._penalised(reduced, tol, budget, dynamic)
            if first.converged:
                return first
        run = Run(reduced)
        if first is not None:
            run.iterations, run.touched = first.epochs, first.touched
        slow = first is None or run.iterations >= CALL_ITERATIONS and reduced.size <= reduced.start_w.size
        if slow and self.faces is not None and 0 < reduced.size <= FEW_ROWS:
            problems = Multipliers(run)
            done, faces = problems.solve(self.faces, tol=tol, budget=budget, rank=rank), problems.faces
            name = self.faces.name if first is None else f"{name}+{self.faces.name}"
            name, known = name if done else f"{name}+{self.name}", True
        while not run.stops(tol, budget, known):
            known = False
            if dynamic:
                run.screen()
            run.improve(tol, budget)
        run.take_best()
        alpha = reduced.signs * run.alpha
        fixed = run.status * reduced.signs

        def decided() -> np.ndarray:
            return fixed.astype(np.int8)

        return Solution(
            run.w, alpha, run.iterations, run.touched, run.gap <= tol * abs(run.primal),
            int(np.count_nonzero(fixed)), name, decided, faces,
        )  # fmt: skip

    def _penalised(self, reduced: FreeReduced, tol: float, budget: Budget, dynamic: bool) -> Solution:
        """Solve problems whose intercept is penalised around a guess, see ``kernels.solve.multiplier``."""
        w, v, signs = np.append(reduced.start_w, 0.0), np.append(reduced.start_sum, 0.0), reduced.signs
        X, room, team = set_up(reduced, w.size, signs)
        room.vectors[newton.T] = reduced.c - reduced.start_margins - signs * reduced.start_intercept
        room.lists[newton.ALIVE] = np.arange(reduced.size)
        done, touched, gap, primal, solved = multiplier.minimise_free(
            X, reduced.size, reduced.offset, reduced.rest, reduced.start_intercept,
            reduced.typical or 1.0, v, w, tol,
            min(budget.epochs, CALL_ITERATIONS), dynamic, reduced.errors, room, team,
        )  # fmt: skip
        budget.note(gap, primal, touched)
        return Solution(w[:-1], room.vectors[newton.ALPHA].copy(), done, touched, solved, 0, self.name)


class Run:
    """One solve: the signless problem, its iterate, and what is known of it.

    ``w`` and ``v`` are the primal point and that of the dual point, ``s`` the products with ``w``, ``status`` what the
    dynamic rule has fixed.
    """

    def __init__(self, reduced: FreeReduced):
        signs = reduced.signs
        stored, self.where, _ = reduced.stored()
        self.reduced, self.rows = reduced, matrix_of(stored)
        self.c, self.lo, self.hi = np.empty((3, reduced.size))
        intercept.signless(reduced.c, reduced.lo, reduced.hi, signs, self.c, self.lo, self.hi)
        self.alpha, self.s = signs * reduced.start_alpha, signs * reduced.start_margins
        self.w, self.v, self.b = reduced.start_w.copy(), reduced.start_sum.copy(), reduced.start_intercept
        self.status, self.t = np.zeros(reduced.size, dtype=np.int8), np.zeros(reduced.size)
        self.iterations, self.touched = 0, 0.0
        self.gap, self.last, self.primal, self.drift = math.inf, math.inf, 0.0, math.inf
        self.far = math.inf
        self.feasible, self.idle, self.progress = False, False, Progress(STALLS)
        self.best: tuple = ()

    def evaluate(self) -> None:
        """Compute the gap of the pair, its primal value, and the farthest that a row has moved from its kink."""
        loss, linear, ell, self.far = kernels.evaluate(self.c, self.s, self.b, self.lo, self.hi, self.alpha, self.t)
        apart = self.w - self.v
        self.gap = 0.5 * inner(apart, apart) + loss - linear
        self.primal = 0.5 * inner(self.w, self.w) - inner(self.v, self.w) + ell - linear + loss + self.reduced.offset

    def form_products(self) -> None:
        """Compute the products of all rows with ``w``."""
        listed_products(self.rows, self.where, self.w, self.s)
        self.touched += self.c.size

    def stops(self, tol: float, budget: Budget, known: bool = False) -> bool:
        """Evaluate the pair if it is not ``known``, and tell whether it is good enough, or nothing more can be done."""
        if not known:
            self.last = self.gap
            self.evaluate()
        if self.feasible:
            self.drift = self.far
        budget.note(self.gap, self.primal, self.touched)
        if self.feasible and self.gap <= tol * abs(self.primal):
            return True
        if self.feasible and not (self.best and self.gap >= self.best[0]):
            self.best = self.gap, self.primal, self.w.copy(), self.alpha.copy()
        stalled = self.feasible and self.gap > 0.5 * self.last
        if stalled:
            self.drift = math.inf
        return (
            (self.idle and stalled)
            or (self.feasible and self.progress.stalls(self.gap))
            or not self.gap < math.inf
            or self.iterations >= budget.epochs
            or time.monotonic() > budget.deadline
            or not self.c.size
        )

    def take_best(self) -> None:
        """Go back to the pair with the smallest gap: at the end of the arithmetic's accuracy the last may be worse."""
        if self.best and not self.gap <= self.best[0]:
            self.gap, self.primal, self.w, self.alpha = self.best

    def screen(self) -> None:
        """Fix rows that the ball of the pair and its levers decide."""
        if not self.feasible:
            return
        reduced, errors, apart = self.reduced, self.reduced.errors, self.w - self.v
        size, far = math.sqrt(inner(self.w, self.w)), math.sqrt(inner(apart, apart))
        error = 2.0 * errors.relative * reduced.norms * size
        error += 4.0 * UNIT * (np.abs(self.c) + np.abs(self.s) + abs(self.b))
        off, cost, shift = self._residue(error)
        if not off < math.inf:
            return
        # The sum in the gap at the ends of what each distance is known to: no term is negative, so nothing cancels.
        upper, lower = (self.hi - self.alpha) * (self.t + error), (self.alpha - self.lo) * (error - self.t)
        slackness = float(np.maximum(np.maximum(upper, lower), 0.0).sum()) * (1.0 + gamma(self.c.size + 8)) + cost
        losses = float(np.maximum(self.lo * self.t, self.hi * self.t).sum())
        widths = float(((self.hi - self.lo) * reduced.norms).sum())
        errors, touched = errors._replace(total=errors.total + shift), self.touched + 4.0 * self.c.size
        radius = box.radius_around(slackness, losses, size, far, widths, self.c.size, touched, errors)
        slack = errors.rounding * (reduced.norms * (size + radius) + np.abs(self.c))
        free = self.status == 0
        seen = Levered(
            self.c - self.s, np.where(free, self.alpha - self.lo - off, 0.0),
            np.where(free, self.hi - self.alpha - off, 0.0), slack, reduced.typical, reduced.norms, reduced.spread,
            reduced.mean, self._place, errors.relative,
        )  # fmt: skip
        found = np.where(free, seen.decide(radius), 0)
        self.status = np.where(found != 0, found, self.status).astype(np.int8)

    def _residue(self, error: np.ndarray) -> tuple[float, float, float]:
        """Return what the sum of the dual variables is off by, and what taking it changes, as ``verify`` does.

        A row with room for it takes it, the nearest to its kink: what that adds to the sum in the gap at most, and how
        far it moves the sum over rows. All are infinite where no row has room. ``error`` is that of the distances.
        """
        reduced = self.reduced
        value = float(self.alpha.sum()) - reduced.rest
        unsure = reduced.rest_error + gamma(self.c.size + 8) * float(np.abs(self.alpha).sum())
        most, cost, shift = (abs(value) + unsure) * (1.0 + ROUNDING), 0.0, 0.0
        for room, needed in ((self.alpha - self.lo, value + unsure > 0.0), (self.hi - self.alpha, value < unsure)):
            if needed:
                far = np.where(room >= most, np.abs(self.t) + error, math.inf)
                nearest = int(np.argmin(far))
                if not far[nearest] < math.inf:
                    return math.inf, math.inf, math.inf
                cost, shift = max(cost, most * far[nearest]), max(shift, most * reduced.norms[nearest])
        return most, cost, shift

    def _place(self, index: np.ndarray) -> tuple:
        """Return the arrays of the rows, and where in them some are."""
        self.touched += index.size
        return self.rows, self.where[index]

    def _taken(self, index: np.ndarray) -> Matrix:
        """Return a copy of rows."""
        self.touched += index.size
        if not self.rows.sparse:
            return matrix_of(self.rows.dense[self.where[index]])
        return taken(self.rows, self.where, np.ones(self.where.size, dtype=np.int8), index, 0.0, 0)

    def improve(self, tol: float, budget: Budget) -> None:
        """Put rows far from their kink at the end they belong to, and solve for the others."""
        near, rest = self._parted()
        rows = self._taken(near)
        sigma = self._first_sigma(near)
        c, lo, hi, alpha, s = (values[near] for values in (self.c, self.lo, self.hi, self.alpha, self.s))
        limit = min(budget.epochs - self.iterations, CALL_ITERATIONS)
        # Dense rows are shifted by their mean, and the intercept with them: far from the origin nothing cancels.
        moved = 0.0
        if not self.reduced.sparse:
            rows = matrix_of(rows.dense - self.reduced.mean)
            moved = inner(self.reduced.mean, self.w)
        s -= moved
        offset = self.reduced.offset + inner(self.alpha, self.c) - inner(alpha, c)
        done, touched, b, _ = kernels.minimise_centred(
            rows, offset, rest, self.b + moved, self.w, self.v, AIM * tol, sigma, limit, c, lo, hi, alpha, s, alone()
        )  # fmt: skip
        self.b = b if self.reduced.sparse else b - inner(self.reduced.mean, self.w)
        self.alpha[near] = alpha
        self.form_products()
        self.idle = done == 0 and near.size == self.c.size
        self.iterations, self.touched = self.iterations + done, self.touched + touched
        self.feasible = True

    def _parted(self) -> tuple[np.ndarray, float]:
        """Return the rows near their kink, and what their dual variables sum up to; the others are put at their ends.

        The sum must be one that they can have, and the rows of the working set are more where it is not.
        """
        n, d = self.t.size, self.w.size
        want = max(NEAR_PER_FEATURE * d, int(NEAR_SHARE * n), NEAR_LEAST)
        border = math.inf
        if self.drift < math.inf:
            border = self.drift
        elif not self.feasible and want < n and self.gap < POOR_START * abs(self.primal):
            border = float(np.partition(np.abs(self.t), want)[want])
        ends, near, moved = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        while True:
            count, away, fixed, least, most = kernels.part(
                self.t, self.status, self.lo, self.hi, self.alpha, border, ends, near, moved
            )
            rest = self.reduced.rest - fixed
            if least <= rest <= most or border == math.inf:
                break
            border = 4.0 * border if border < np.abs(self.t).max() else math.inf
        rest = min(max(rest, least), most)  # beyond rounding, every decision being right, there is nothing to cut off
        index = moved[:away]
        if away:
            step = ends[index] - self.alpha[index]
            weighted_sum(self._taken(index), step, self.v, 0, away)
            self.alpha[index] = ends[index]
        return near[:count], rest

    def _first_sigma(self, near: np.ndarray) -> float:
        """Return the proximal parameter whose zone between the clips holds a few rows a feature."""
        d, n = self.w.size, near.size
        square = float(np.square(self.reduced.spread[near]).sum()) / max(n, 1)
        widest = float((self.hi[near] - self.lo[near]).max(initial=0.0))
        if square == 0.0 or widest == 0.0:
            return 1.0
        if d > DIRECT and n > GRAM:
            return ROUGH / square
        size, want = np.abs(self.t[near]), ZONE * d + 5
        zone = float(np.partition(size, want)[want] if want < n else size.max())
        sigma = widest / (zone or size.max() or 1e-300)
        return min(max(sigma, SIGMA_LEAST / square), SIGMA_MOST / square)
