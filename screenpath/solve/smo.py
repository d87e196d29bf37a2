"""Solver of a kernel model's reduced problem: an active set, and pair steps and Newton steps on its square.

Each epoch takes an active set of survivors: those inside their box, and of either side those whose gradient asks most
to leave it. Its square of kernel values is kept from epoch to epoch, in float32, and from step to step where its values
are the same whatever was formed before (:attr:`KernelBlocks.steady`). On it :mod:`.active_set` brings the
set's part of the gap down. Then the rows of the dual variables that have changed are formed in float64: the sums that
they bring up to date say how large the gap is, correct what float32 got wrong, and are the certificate's. Stops when
the gap of the reduced problem is at most ``tol`` times its primal value.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.problem import intercept as intercept_kernels
from screenpath.kernels.solve import active_set as kernels
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.problem.intercept import balanced_to, inside
from screenpath.problem.kernel_products import FAR, KernelReduced, Multiplied, combined
from screenpath.problem.smooth import sums
from screenpath.regions.geometry import ROUNDING
from screenpath.regions.lever import KernelLevered
from screenpath.rows.kernel_functions import ROUGH_UNIT
from screenpath.solve.active_set import ActiveSet
from screenpath.solve.base import Budget, Progress, Solution, Solver
from screenpath.solve.face_newton import FaceNewton
from screenpath.solve.plugins import takes_plugins

NAMES = ("auto", "newton", "smo")
AIM, LATER = 0.4, 0.2  # an active set is solved to this fraction of the gap that is asked for, first and later
MORE = 256  # survivors that an active set takes from either side beyond those it must: another epoch costs more
WRONG = 2000  # survivors on the wrong side of their kink that enter an active set at once, at least
PATIENCE = 12  # epochs without progress after which rounding must be what stands in the way
SHORT = 0.5  # an epoch that leaves more of the gap, or goes less of its way, is one that float32 has misled
BLURRED = 0.01  # share of the largest kink by which float32 may be wrong about a gradient (:func:`blur_of_float32`)
LEVEL, LEAST = 6, 1200  # a first point is that of one in so many survivors, if there are so many, ...
COARSE = 3e-3  # ... to this relative gap


class Smo(Solver):
    """Steps on an active set of dual variables, with or without Newton's.

    Without ``shrinking`` every survivor is in the active set, if its square may be kept.
    """

    def __init__(self, newton: bool = True, shrinking: bool = True):
        self.newton, self.shrinking = newton, shrinking
        self.name = "smo+newton" if newton else "smo"

    def run(self, reduced: KernelReduced) -> Run:
        return Run(reduced) if reduced.free is None else FreeRun(reduced)

    def solve(self, reduced: KernelReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        touched, reduced.rows.touched = reduced.rows.touched, 0  # fractions add up alike whatever came before
        reduced.leave_fixed(reduced.alpha, tol)
        reduced.rows.forget(fine=blur_of_float32(reduced) > BLURRED)
        self.start(reduced, tol, budget)
        run = self.run(reduced.firm())
        epochs, converged = 0, False
        while True:
            converged = run.check(tol, dynamic)
            if converged and run.reduced is not reduced:  # the others are looked at, and those that matter join
                reduced.follow(run.reduced.near)
                run = self.run(reduced)
                converged = run.check(tol, dynamic)
                if not converged:
                    reduced.settle(run.kinks - run.products)
                    run = self.run(reduced.firm())
                    run.check(tol, dynamic)
            budget.note(run.gap, run.primal, reduced.rows.touched)
            if converged or run.alive.size == 0 or run.stuck:
                break
            if epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            run.epoch((LATER if epochs else AIM) * tol * abs(run.primal), self.shrinking, self.newton)
            epochs += 1
        reduced.near, whole = run.reduced.near, run.reduced is reduced
        extra, reduced.rows.touched = reduced.rows.touched, touched  # booked once, by the walk
        decided = run.decided if whole else np.zeros(reduced.size, dtype=np.int8)
        return Solution(None, reduced.alpha, epochs, extra, converged, run.screened, self.name, lambda: decided)

    def start(self, reduced: KernelReduced, tol: float, budget: Budget) -> None:
        """Move a start at zero to a point whose dual variables are mostly right.

        The same problem of one survivor in ``LEVEL``, at as many times the C, has nearly the same ``w``, by which most
        of the others are on their side.
        """
        r = reduced
        if r.size < LEAST or r.near.theta.any():
            return
        some = np.sort(np.random.default_rng(0).permutation(r.size)[: r.size // LEVEL])
        times, nothing = r.size / some.size, np.zeros(r.near.theta.size)
        few = r.part(some, near=Multiplied(nothing, nothing, 0, 0.0), offset=0.0, C=times * r.C)
        free = None if r.free is None else replace(r.free, rest=0.0, rest_error=0.0)
        few = replace(few, lo=times * few.lo, hi=times * few.hi, free=free)
        if free is not None and r.rows.has_rough_sums:  # others are looked at when these are solved
            few.near.roughen(np.setdiff1d(np.arange(nothing.size), few.index, assume_unique=True))
        r.rows.touched += self.solve(few, tol=max(tol, COARSE), budget=budget, dynamic=False).touched
        few.follow(few.near)
        run, all_of_them = self.run(r), r.near.rough is not None and not r.near.rough.any()
        t = run.kinks_at(few.C * few.near.total[r.index]) - few.C * few.near.total[r.index]
        if all_of_them:
            r.near.roughen(r.index[(r.lo == 0.0) & (t < -FAR)])
        ends = np.where(t > 0.0, r.hi, r.lo) if r.bend is None else np.clip(t / r.ridge, r.lo, r.hi)
        r.leave_fixed(ends, tol)
        r.advance(np.arange(r.size), ends)
        if all_of_them:
            r.follow(r.near)
            run.read()
            run.terms()
            r.settle(run.kinks - run.products)


class Run:
    """State of one solve, on the survivors."""

    free = False  # whether an intercept keeps the signed sum of the dual variables as it is

    def __init__(self, reduced: KernelReduced):
        self.reduced, self.signs = reduced, reduced.rows.signs[reduced.index]
        self.alive = np.arange(reduced.size)
        self.decided = np.zeros(reduced.size, dtype=np.int8)
        self.screened, self.primal, self.stuck = 0, np.inf, False
        self.newton = FaceNewton(reduced.rows.plan.free, self.free, reduced.rows.spaces[1])
        self.progress = Progress(PATIENCE)
        self.gap = np.inf
        # Where the products have their kinks, and what these are off by.
        self.kinks, self.floor = reduced.c, reduced.tail
        self.read()

    def read(self) -> None:
        """Take alpha, products, their error over the norm of a row, and ``||w||^2`` from the problem."""
        r = self.reduced
        self.alpha, self.products, self.error, self.w_sq = r.alpha, r.products, r.error, r.w_sq

    def kinks_at(self, products: np.ndarray) -> np.ndarray:
        """Return where products have their kinks, with the intercept that is best for them if there is one."""
        return self.reduced.c

    # -- gap and screening ---------------------------------------------------------------------------------------

    def check(self, tol: float, dynamic: bool) -> bool:
        """Evaluate the reduced gap; if ``dynamic``, screen with its ball. Return whether the target is met."""
        r, before = self.reduced, self.gap
        gap, linear = self.terms()
        self.primal, self.gap = r.offset + linear - 0.5 * self.w_sq + gap, gap
        if gap <= tol * abs(self.primal):
            return True
        # The rounding error of the dual value grows with the norms.
        blur = self.error * float(np.abs(self.alpha) @ r.norms) + UNIT * (abs(linear) + self.w_sq)
        self.stuck = self.stuck or not np.isfinite(gap) or self.progress.stalls(gap, gap - self.primal, blur)
        if SHORT * before < gap and before < np.inf:
            r.rows.sharpen()
        if dynamic:
            # At least the gap of the reduced problem, rounding counted as a certificate does.
            terms = self.kinks, self.products, r.lo, r.hi, self.alpha, r.norms, self.error, self.floor, 0, r.size
            loss, _, _, slack = box_kernels.box_terms(*terms)
            self._screen((slack + r.slope * loss) * (1.0 + gamma(r.size + 16)))
        return False

    def terms(self) -> tuple[float, float]:
        """Return the gap of the reduced problem, and ``sum c_i alpha_i``."""
        r = self.reduced
        if r.bend is not None:
            t = self.kinks - (self.products - r.ridge * self.alpha)
            gap = sums(self.kinks, t, r.lo, r.hi, self.alpha, 0.0, r.ridge)[2]
            return gap, float(self.alpha @ self.kinks)
        loss, linear, _ = box_kernels.box_summary(self.kinks, self.products, r.lo, r.hi, self.alpha, 0, r.size)
        # The fixed rows are on their side, so only survivors leave a gap: sum phi_i(t_i) - alpha_i t_i.
        return loss - linear + float(self.alpha @ self.products), linear

    def decide(self, gap: float) -> np.ndarray:
        """Return the decisions of the iterate's ball on each survivor; ``gap`` is at least that of the problem."""
        r, status, radius = self.reduced, np.empty(self.reduced.size, dtype=np.int8), self.radius(gap)
        box_kernels.box_decide_ball(
            self.products, 1.0, r.norms, radius, self.extent(radius), r.c, ROUNDING, status, 0, r.size
        )
        return status

    def radius(self, gap: float) -> float:
        """Return the radius of the iterate's ball; exact slopes change the fixed rows' sum."""
        return (float(np.sqrt(gap)) + self.reduced.slope * self.reduced.C * self.reduced.reach) * OUTWARD

    def extent(self, radius: float) -> float:
        """Return the size to which ``ROUNDING`` is relative in a product with a point of the iterate's ball."""
        return float(np.sqrt(max(self.w_sq, 0.0)) + radius + self.error / ROUNDING * OUTWARD)

    def _screen(self, gap: float) -> None:
        r, status = self.reduced, self.decide(gap)
        fresh = self.alive[status[self.alive] != 0]
        if fresh.size == 0:
            return
        self.move(fresh, np.where(status[fresh] < 0, r.lo[fresh], r.hi[fresh]))
        self.alive = self.alive[status[self.alive] == 0]
        self.screened += fresh.size
        self.decided[fresh] = status[fresh]

    def move(self, index: np.ndarray, alpha: np.ndarray, search: bool = False) -> float:
        """Move survivors to ``alpha``, see :meth:`KernelReduced.advance`."""
        share = self.reduced.advance(index, alpha, self.kinks[index] if search else None)
        self.read()
        return share

    # -- one epoch -----------------------------------------------------------------------------------------------

    def epoch(self, target: float, shrinking: bool, newton: bool) -> None:
        """Improve the dual on an active set, then form the rows of the dual variables that have changed."""
        r, alive, signs = self.reduced, self.alive, self.signs
        known, between, wrong = kernels.signless_part(alive, signs, self.kinks, self.products, r.lo, r.hi, self.alpha)
        # Of either side as many as are wrong, and some who may become so.
        room = (min(wrong, max(WRONG, 2 * between)) + between) // 2 + MORE if shrinking else r.size
        most = r.size if r.rows.plan.square == r.rows.n else r.rows.plan.square  # two of one data row share its values
        chosen = kernels.members(*known, room, most, -np.inf, np.inf)
        index = alive[chosen]
        t, lo, hi, beta = known.take(chosen, axis=1)
        part = ActiveSet(r.rows.square, r.index[index], t, lo, hi, beta, None if r.bend is None else r.ridge[index])
        part.solve(target, self.newton if newton else None, self.free)
        share = self.move(index, signs[index] * part.beta, True)
        if share < SHORT and not r.rows.sharpen():
            self.stuck = self.stuck or share == 0.0


class FreeRun(Run):
    """State of one solve whose signed sum is kept; the intercept is the best one wherever the gap is looked at."""

    free = True

    def __init__(self, reduced: KernelReduced):
        assert reduced.free is not None
        self.freed = reduced.free
        super().__init__(reduced)
        self.width = reduced.hi - reduced.lo
        self.level = float(np.where(self.signs > 0.0, reduced.hi, -reduced.lo).sum()) - self.freed.rest
        self.slack = 4.0 * UNIT * reduced.size * float(self.width.sum())
        self.balance()

    def read(self) -> None:
        super().read()
        self.near = inside(self.alpha, self.reduced.lo, self.reduced.hi)

    # -- the intercept and the sum -------------------------------------------------------------------------------

    def best(self, products: np.ndarray) -> float:
        """Return the intercept that is best for products."""
        if self.slack == 0.0:
            return 0.0
        beta, room = self.signs * (self.reduced.c - products), np.empty((2, self.width.size))
        return intercept_kernels.best_of(
            *intercept_kernels.best_interval(beta, self.width, self.level, self.slack, self.near, room)
        )

    def kinks_at(self, products: np.ndarray) -> np.ndarray:
        return self.reduced.c - self.signs * self.best(products)

    def balance(self) -> None:
        """Bring the sum of the dual variables back to what it must be: those nearest to their kinks are moved."""
        r = self.reduced
        if not r.size:
            return
        free = self.decided == 0
        lo, hi = np.where(free, r.lo, self.alpha), np.where(free, r.hi, self.alpha)
        signs = self.signs.astype(np.int8)
        # Not at the reference's intercept, in whose rounding a sharpened certificate and that of a checkpoint differ.
        t = self.kinks_at(self.products) - self.products
        found = balanced_to(self.alpha, t, lo, hi, signs, self.freed.rest)
        if found is not self.alpha:
            index = np.flatnonzero(found != self.alpha)
            self.move(index, found[index])

    # -- gap and screening ---------------------------------------------------------------------------------------

    def terms(self) -> tuple[float, float]:
        b = self.best(self.products)
        self.kinks, self.floor = self.reduced.c - self.signs * b, 2.0 * UNIT * abs(b) + self.reduced.tail
        return super().terms()[0], float(self.alpha @ self.reduced.c)

    def decide(self, gap: float) -> np.ndarray:
        """Return what the ball of the iterate and its levers decide."""
        r, signs = self.reduced, self.signs.astype(np.int8)
        found, error = intercept_kernels.excess(self.alpha, signs)
        residue = abs(found - self.freed.rest) + error + self.freed.rest_error + 4.0 * UNIT * abs(self.freed.rest)
        t, free = self.kinks - self.products, self.decided == 0
        lo, hi = np.where(free, r.lo, self.alpha), np.where(free, r.hi, self.alpha)
        near = inside(self.alpha, lo, hi)
        found = intercept_kernels.nearest_movable(t, self.alpha, lo, hi, signs, residue, near, False)
        rows = [k for k in found if k >= 0]
        status = np.zeros(r.size, dtype=np.int8)
        if len(rows) < 2:
            return status
        off = residue * max(abs(t[k]) + self.error * r.norms[k] + self.floor for k in rows)
        radius = self.radius(gap + off) + residue * max(r.norms[k] for k in rows)
        slack = ROUNDING * (r.norms * self.extent(radius) + np.abs(r.c))
        up, down = hi - self.alpha - residue, self.alpha - lo - residue
        flipped = self.signs < 0.0
        seen = KernelLevered(
            self.signs * (r.c - self.products), np.where(flipped, up, down), np.where(flipped, down, up), slack,
            self.freed.typical, r.norms, lambda some, weights: combined(r.rows, r.index[some], weights, r.index),
        )  # fmt: skip
        return np.where(free, seen.decide(radius) * self.signs, self.decided).astype(np.int8)

    def _screen(self, gap: float) -> None:
        before = self.screened
        super()._screen(gap)
        if self.screened > before:
            self.balance()


def blur_of_float32(reduced: KernelReduced) -> float:
    """Return what float32 gets wrong of a gradient when one variable crosses its box, over the largest kink."""
    size, width, kink = (float(v.max(initial=0.0)) for v in (reduced.norms, reduced.hi - reduced.lo, abs(reduced.c)))
    return ROUGH_UNIT * size * size * width / kink if kink > 0.0 else 0.0


@takes_plugins
def make_kernel_solver(name: str, seed: int = 0, shrinking: bool = True, warm: bool = True) -> Smo:
    """Return the solver of a name: ``smo`` takes pair steps alone, ``newton`` (= ``auto``) both; none starts cold."""
    if name not in NAMES:
        raise UsageError(f"a kernel model has no solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm:
        raise UsageError("a kernel model's solver starts from the previous grid point", "leave out `start`")
    return Smo(newton=name != "smo", shrinking=shrinking)
