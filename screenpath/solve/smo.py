"""Solver of a kernel model's reduced problem: greedy pair steps on a working set, finished by projected Newton steps.

Each epoch takes a working set of survivors (all of them, those that shrinking leaves, or as many as fit in memory),
makes pair steps on its square part of the kernel matrix, and then, in the hybrid, Newton steps on the coordinates that
are inside their box. Pair steps find out which these are; one Newton step then solves for them exactly. Stops when the
duality gap of the reduced problem is at most ``tol`` times its primal value.

With a free intercept the signed sum of the dual variables is kept. Pair steps raise one signless variable and lower
another by as much; Newton steps have the sum as a constraint, for which the factor in use is asked once more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.problem import intercept as intercept_kernels
from screenpath.kernels.rows import gram
from screenpath.kernels.solve import smo as kernels
from screenpath.kernels.solve import smo_free as free_kernels
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.problem.intercept import NONE, balanced_to
from screenpath.problem.kernel import KernelReduced, sum_error
from screenpath.regions.geometry import ROUNDING
from screenpath.regions.lever import KernelLevered
from screenpath.solve.base import Budget, Solution, Solver
from screenpath.solve.face_newton import FaceNewton
from screenpath.solve.plugins import takes_plugins

NAMES = ("auto", "newton", "smo")
AIM = 0.5  # a working set is solved to this fraction of the gap that is asked for
PAIR_STEP = 4e-9  # seconds of a pair step, a coordinate of the working set
FACTOR = 1e-10  # seconds of a Newton step, a cubed free coordinate: factors of some faces, at BLAS speed
PATIENCE = 100  # epochs without progress after which rounding must be what stands in the way, ...
FEW, FEWER = 16, 20  # ... and with so few survivors, whose epochs leave nothing to wait for
FALL = 0.99  # progress is a gap below this part of the smallest so far, or a dual value that rises beyond its rounding
REBUILD = 0.7  # a smaller working set replaces the last one once it is below this fraction of it
SPARE = 32  # coordinates that a working set chosen by an estimate takes to be on the safe side
STEPS = 1000  # pair steps of an epoch at least, if it takes so many, ...
LONGEST = 4  # ... and up to this many times as many once its working set has proved to be the right one


@dataclass(frozen=True, slots=True)
class Held:
    """Limits on how many coordinates held at an end of their box a working set takes.

    ``first`` and ``later`` are per coordinate that is not held: in the first epoch, and in those after it, when more is
    known of who has to move. ``besides`` is added.
    """

    first: float
    later: float
    besides: int


# The time of a pair step is in proportion to its working set, and most who are held stay where they are. Newton steps
# take hardly longer for them, and an epoch that lacks one is lost.
FOR_PAIRS, FOR_NEWTON = Held(0.5, 0.05, 0), Held(1e6, 1.0, 64)


class Smo(Solver):
    """Greedy coordinate ascent, with or without shrinking and Newton steps.

    ``shrinking`` leaves out of an epoch the coordinates at an end of their box whose gradient points outward by more
    than any coordinate violates its optimality. All of them are checked again when the gap is evaluated. At first the
    gradient is that of an estimate of the optimum, if the problem brings one.
    """

    def __init__(self, newton: bool = True, shrinking: bool = True):
        self.newton, self.shrinking = newton, shrinking
        self.name = "smo+newton" if newton else "smo"

    def run(self, reduced: KernelReduced) -> Run:
        return Run(reduced) if reduced.free is None else FreeRun(reduced)

    def solve(self, reduced: KernelReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        run = self.run(reduced)
        epochs, converged = 0, False
        touched, reduced.rows.touched = reduced.rows.touched, 0  # fractions add up alike whatever came before
        while True:
            converged = run.check(tol, dynamic)
            budget.note(run.gap, run.primal, reduced.rows.touched + run.touched)
            if converged or run.alive.size == 0 or run.stuck:
                break
            if epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            run.epoch(AIM * tol * abs(run.primal), self.shrinking, self.newton)
            epochs += 1
        extra, reduced.rows.touched = reduced.rows.touched, touched  # booked once, by the walk
        touched = extra + run.touched
        return Solution(None, run.alpha, epochs, touched, converged, run.screened, self.name, lambda: run.decided)


class Run:
    """State of one solve, on the survivors."""

    def __init__(self, reduced: KernelReduced):
        self.reduced = reduced
        self.alpha = np.minimum(np.maximum(reduced.start_alpha, reduced.lo), reduced.hi)
        self.products = reduced.start_products.copy()
        self.w_sq = reduced.start_w_sq
        self.alive = np.arange(reduced.size)
        self.decided = np.zeros(reduced.size, dtype=np.int8)
        self.screened, self.touched, self.primal, self.stuck = 0, 0.0, np.inf, False
        self.newton = FaceNewton(reduced.rows.plan.free)
        self.error = reduced.start_error  # of a product, over the norm of its row
        # Smallest gap so far, the dual value at the last progress, and the epochs since.
        self.least, self.highest, self.waited = np.inf, -np.inf, 0
        self.members = np.empty(0, dtype=np.int64)  # the last working set, and its part of Q
        self.square: Any = None
        self.guessed, self.part = False, 1.0  # whether it was chosen by an estimate; its share of what was wanted
        self.times = 1  # by how much its next epoch may be longer than the first
        # Products of points of the box, fixed rows included, are at most this large, over the norm of their row.
        self.reach = 2.0 * reduced.reach
        self.kinks, self.floor = reduced.c, 0.0  # where the products have their kinks, and what these are off by
        step = self.alpha - reduced.start_alpha
        if step.any():
            self.move(np.flatnonzero(step), step[step != 0.0])

    # -- gap and screening ---------------------------------------------------------------------------------------

    def check(self, tol: float, dynamic: bool) -> bool:
        """Evaluate the reduced gap; if ``dynamic``, screen with its ball. Return whether the target is met."""
        r = self.reduced
        gap, linear = self.terms()
        self.primal, self.gap = r.offset + linear - 0.5 * self.w_sq + gap, gap
        if gap <= tol * abs(self.primal):
            return True
        dual, self.waited = self.primal - gap, self.waited + 1
        if gap < FALL * self.least or dual > self.highest + self.blur(linear):
            self.least, self.highest, self.waited = min(gap, self.least), max(dual, self.highest), 0
        self.stuck = self.stuck or self.waited > (FEWER if r.size <= FEW else PATIENCE)
        if dynamic:
            # At least the gap of the reduced problem, rounding counted as a certificate does.
            terms = self.kinks, self.products, r.lo, r.hi, self.alpha, r.norms, self.error, self.floor, 0, r.size
            loss, _, _, slack = box_kernels.box_terms(*terms)
            self._screen((slack + r.slope * loss) * (1.0 + gamma(r.size + 16)))
        return False

    def terms(self) -> tuple[float, float]:
        """Return the gap of the reduced problem, and ``sum c_i alpha_i``."""
        r = self.reduced
        loss, linear, _ = box_kernels.box_summary(self.kinks, self.products, r.lo, r.hi, self.alpha, 0, r.size)
        # The fixed rows are on their side, so only survivors leave a gap: sum phi_i(t_i) - alpha_i t_i.
        return loss - linear + float(self.alpha @ self.products), linear

    def blur(self, linear: float) -> float:
        """Return the rounding error of the dual value, which grows with the norms."""
        size = np.abs(self.alpha)
        return self.error * float(size @ self.reduced.norms) + UNIT * (abs(linear) + self.w_sq)

    def decide(self, gap: float) -> np.ndarray:
        """Return the decisions of the iterate's ball on each survivor; ``gap`` is at least that of the problem."""
        r, status, radius = self.reduced, np.empty(self.reduced.size, dtype=np.int8), self.radius(gap)
        box_kernels.box_decide_ball(
            self.products, 1.0, r.norms, radius, self.extent(radius), r.c, ROUNDING, status, 0, r.size
        )
        return status

    def radius(self, gap: float) -> float:
        """Return the radius of the iterate's ball; exact slopes change the fixed rows' sum."""
        return (float(np.sqrt(gap)) + self.reduced.slope * self.reduced.reach) * OUTWARD

    def extent(self, radius: float) -> float:
        """Return the size to which ``ROUNDING`` is relative in a product with a point of the iterate's ball."""
        return float(np.sqrt(max(self.w_sq, 0.0)) + radius + self.error / ROUNDING * OUTWARD)

    def _screen(self, gap: float) -> None:
        r, status = self.reduced, self.decide(gap)
        fresh = self.alive[status[self.alive] != 0]
        if fresh.size == 0:
            return
        ends = np.where(status[fresh] < 0, r.lo[fresh], r.hi[fresh])
        step = ends - self.alpha[fresh]
        self.alpha[fresh] = ends
        moved = step != 0.0
        if moved.any():
            self.move(fresh[moved], step[moved])
        self.alive = self.alive[status[self.alive] == 0]
        self.screened += fresh.size
        self.decided[fresh] = status[fresh]

    def move(self, index: np.ndarray, step: np.ndarray) -> None:
        """Update products and norm for an alpha that has changed by ``step``."""
        r = self.reduced
        before = float(step @ self.products[index])
        self.products += r.rows.sum_at(r.index[index], step, r.index)
        spread = gram.spread_at(step, r.norms, index) * (1.0 + gamma(index.size + 8))
        added = sum_error(r.rows, index.size, spread, True)
        self.error = (self.error + added + 2.0 * UNIT * self.reach) * OUTWARD
        self.w_sq += before + float(step @ self.products[index])

    # -- one epoch -----------------------------------------------------------------------------------------------

    def epoch(self, target: float, shrinking: bool, newton: bool) -> None:
        """Improve the dual on a working set, then update the products of all survivors."""
        r = self.reduced
        self._choose(shrinking, FOR_NEWTON if newton else FOR_PAIRS)
        W = self.members
        # What is not in the set may leave a part of the gap. What shrinking has left out leaves none now, and pair
        # steps count on that; to a Newton step a smaller target is hardly more work.
        target *= min(1.0, W.size / self.alive.size) if newton else self.part
        # Some may have been screened since the set was chosen: these stay.
        alpha, t, lo, hi, diagonal = kernels.take(
            W, self.kinks, self.products, r.lo, r.hi, r.norms, self.alpha, self.decided
        )
        left, limit = self.left(W, lo, hi, alpha, t), W.size if newton else self.times * max(W.size, STEPS)
        while True:
            steps = self.pairs(W, diagonal, lo, hi, alpha, t, limit, target)
            self.touched += 2.0 * steps * W.size / r.rows.n
            before, left = left, self.left(W, lo, hi, alpha, t)
            if left <= target or not newton or not _pairs_are_cheaper(before, left, target, lo, hi, alpha):
                break
        if newton:
            self.touched += self.newton.improve(self.square, lo, hi, alpha, t, target) * W.size / r.rows.n
        index, step = kernels.put(W, alpha, self.alpha)
        self.stuck = self.stuck or (index.size == 0 and not self.guessed)
        self.move(index, step)

    def left(self, W: np.ndarray, lo, hi, alpha, t) -> float:
        """Return a working set's part of the gap."""
        return kernels.slack(t, lo, hi, alpha)

    def pairs(self, W: np.ndarray, diagonal, lo, hi, alpha, t, limit: int, target: float) -> int:
        """Take pair steps on a working set, in place; return how many."""
        return kernels.smo(self.square.parts, diagonal, lo, hi, alpha, t, limit, target)

    def _choose(self, shrinking: bool, held: Held) -> None:
        """Choose the working set and copy its part of the kernel matrix, unless the last one still serves."""
        r = self.reduced
        alive = self._active(held) if shrinking else self.alive
        most, stored = r.rows.plan.square, r.rows.whole and r.size == r.rows.n
        self.part = 1.0
        if stored and alive.size > min(REBUILD * r.size, most):
            alive = np.arange(r.size)  # the matrix as it is
        elif alive.size > most:
            self.part = most / alive.size
            alive = np.sort(alive[np.argsort(-self._violation(alive), kind="stable")[:most]])
        if self.square is not None and alive.size >= REBUILD * self.members.size:
            member = np.zeros(r.size, dtype=bool)
            member[self.members] = True
            if member[alive].all():
                self.times = min(2 * self.times, LONGEST)
                return
        self.times = 1
        self.members, self.square = alive, r.rows.square(r.index[alive])

    def _active(self, held: Held) -> np.ndarray:
        """Return the survivors that may have to move; at first by an estimate of their products at the optimum."""
        r = self.reduced
        first = self.square is None
        self.guessed = first and r.ahead != 1.0
        products = r.ahead * self.products if self.guessed else self.products
        share, spare = held.first if first else held.later, SPARE if self.guessed else 0
        found = kernels.active(
            self.kinks_at(products), products, r.lo, r.hi, self.alpha, self.alive, share, held.besides, spare
        )
        return found if found.size else self.alive

    def kinks_at(self, products: np.ndarray) -> np.ndarray:
        """Return the kinks of estimated products."""
        return self.kinks

    def _violation(self, index: np.ndarray) -> np.ndarray:
        """Return how much the coordinates violate their optimality; a little more for those inside their box."""
        r, alpha = self.reduced, self.alpha[index]
        t = self.kinks[index] - self.products[index]
        low, high = alpha <= r.lo[index], alpha >= r.hi[index]
        violation = np.maximum(np.where(high, 0.0, t), np.where(low, 0.0, -t))
        return np.maximum(violation, 0.0) + 1e-3 * violation.max() * ~(low | high)


class FreeRun(Run):
    """State of one solve whose signed sum is kept; the intercept is the best one wherever the gap is looked at."""

    def __init__(self, reduced: KernelReduced):
        assert reduced.free is not None
        self.free, self.signs = reduced.free, reduced.free.signs[reduced.index]
        self.signed, self.b = self.signs.astype(np.float64), 0.0
        super().__init__(reduced)
        self.newton: SumNewton = SumNewton(reduced.rows.plan.free)
        self.width = reduced.hi - reduced.lo
        self.level = float(np.where(self.signed > 0.0, reduced.hi, -reduced.lo).sum()) - self.free.rest
        self.balance()

    # -- the intercept and the sum -------------------------------------------------------------------------------

    def best(self, products: np.ndarray) -> float:
        """Return the intercept that is best for products."""
        if not self.width.any():
            return 0.0
        beta, slack = self.signed * (self.reduced.c - products), 4.0 * UNIT * self.width.size * float(self.width.sum())
        low, high = intercept_kernels.best_interval(beta, self.width, self.level, slack, NONE, np.empty((2, beta.size)))
        return low + 0.5 * (high - low)

    def kinks_at(self, products: np.ndarray) -> np.ndarray:
        """Return where products have their kinks, with the intercept that is best for them."""
        return self.reduced.c - self.signed * self.best(products)

    def place(self) -> None:
        """Take the intercept that is best now."""
        self.b = self.best(self.products)
        self.kinks, self.floor = self.reduced.c - self.signed * self.b, 2.0 * UNIT * abs(self.b)

    def balance(self) -> None:
        """Bring the sum of the dual variables back to what it must be: those nearest to their kinks are moved."""
        r = self.reduced
        if not r.size:
            return
        self.place()
        free = self.decided == 0
        lo, hi = np.where(free, r.lo, self.alpha), np.where(free, r.hi, self.alpha)
        found = balanced_to(self.alpha, self.kinks - self.products, lo, hi, self.signs, self.free.rest)
        if found is not self.alpha:
            step = found - self.alpha
            index = np.flatnonzero(step)
            self.alpha = found
            self.move(index, step[index])

    # -- gap and screening ---------------------------------------------------------------------------------------

    def terms(self) -> tuple[float, float]:
        self.place()
        return super().terms()[0], float(self.alpha @ self.reduced.c)

    def decide(self, gap: float) -> np.ndarray:
        """Return what the ball of the iterate and its levers decide."""
        r = self.reduced
        found, error = intercept_kernels.excess(self.alpha, self.signs)
        residue = abs(found - self.free.rest) + error + self.free.rest_error + 4.0 * UNIT * abs(self.free.rest)
        t, free = self.kinks - self.products, self.decided == 0
        lo, hi = np.where(free, r.lo, self.alpha), np.where(free, r.hi, self.alpha)
        near = intercept_kernels.inside(self.alpha, lo, hi)
        found = intercept_kernels.nearest_movable(t, self.alpha, lo, hi, self.signs, residue, near, False)
        rows = [k for k in found if k >= 0]
        status = np.zeros(r.size, dtype=np.int8)
        if len(rows) < 2:
            return status
        off = residue * max(abs(t[k]) + self.error * r.norms[k] + self.floor for k in rows)
        radius = self.radius(gap + off) + residue * max(r.norms[k] for k in rows)
        slack = ROUNDING * (r.norms * self.extent(radius) + np.abs(r.c))
        up, down = hi - self.alpha - residue, self.alpha - lo - residue
        flipped = self.signed < 0.0
        seen = KernelLevered(
            self.signed * (r.c - self.products), np.where(flipped, up, down), np.where(flipped, down, up), slack,
            self.free.typical, r.norms, self._combined,
        )  # fmt: skip
        return np.where(free, seen.decide(radius) * self.signs, self.decided).astype(np.int8)

    def _combined(self, index: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the products of the survivors, without signs, with a combination of some; and their error."""
        r, order = self.reduced, np.argsort(index)
        index, weights = index[order], weights[order]
        out = r.rows.sum_at(r.index[index], weights * self.signed[index], r.index)
        spread = float(weights @ r.norms[index]) * (1.0 + gamma(index.size + 8))
        return out * self.signed, sum_error(r.rows, index.size, spread, True)

    def _screen(self, gap: float) -> None:
        before = self.screened
        super()._screen(gap)
        if self.screened > before:
            self.balance()

    # -- one epoch -----------------------------------------------------------------------------------------------

    def left(self, W: np.ndarray, lo, hi, alpha, t) -> float:
        return free_kernels.free_slack(t, self.signed[W], lo, hi, alpha)[0]

    def pairs(self, W: np.ndarray, diagonal, lo, hi, alpha, t, limit: int, target: float) -> int:
        self.newton.signs = self.signed[W]
        return free_kernels.smo_free(self.square.parts, diagonal, self.newton.signs, lo, hi, alpha, t, limit, target)


class SumNewton(FaceNewton):
    """Newton steps on faces of the box that keep the sum of ``signs``, of the working set, times the coordinates."""

    signs: np.ndarray

    def measure(self, t, lo, hi, alpha) -> tuple[float, np.ndarray]:
        left, b = free_kernels.free_slack(t, self.signs, lo, hi, alpha)
        return left, t - b * self.signs

    def on_face(self, Q, free, where, pull, step) -> np.ndarray:
        """Return the maximum without bounds of those in ``where`` that keeps the sum."""
        signs, others = self.signs[free], step.copy()
        others[where] = 0.0
        own = signs[where]
        found, along = self.solve(Q, free[where], pull[where]), self.solve(Q, free[where], own)
        bent = float(own @ along)
        return found - along * ((float(own @ found) + float(signs @ others)) / bent) if bent > 0.0 else found

    def face_step(self, Q, free, t, low, high) -> np.ndarray:
        """Return a step as :meth:`FaceNewton.face_step` does, cut so that it keeps the sum where bounds have cut it."""
        step = super().face_step(Q, free, t, low, high)
        moves = self.signs[free] * step
        rise, fall = float(moves[moves > 0.0].sum()), -float(moves[moves < 0.0].sum())
        if rise > fall:
            step[moves > 0.0] *= fall / rise
        elif fall > rise:
            step[moves < 0.0] *= rise / fall
        return step


def _pairs_are_cheaper(before: float, left: float, target: float, lo, hi, alpha) -> bool:
    """Tell whether more pair steps, at the rate of the last round, cost less than a Newton step.

    ``before`` and ``left``: the working set's part of the gap before and after as many pair steps as it has
    coordinates.
    """
    if not 0.0 < left < 0.5 * before:
        return False
    rounds = np.log(left / target) / np.log(before / left)
    free = np.count_nonzero((alpha > lo) & (alpha < hi))
    return rounds * PAIR_STEP * alpha.size**2 < FACTOR * free**3


@takes_plugins
def make_kernel_solver(name: str, seed: int = 0, shrinking: bool = True, warm: bool = True) -> Smo:
    """Return the solver of that name: ``smo`` takes pair steps only, ``newton`` (= ``auto``) both.

    No kernel solver has a cold start.
    """
    if name not in NAMES:
        raise UsageError(f"a kernel model has no solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm:
        raise UsageError("a kernel model's solver starts from the previous grid point", "leave out `start`")
    return Smo(newton=name != "smo", shrinking=shrinking)
