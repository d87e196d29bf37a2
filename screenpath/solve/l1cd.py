"""Coordinate descent over features for the L1-regularised squared hinge, with working sets and a Newton finish.

Plain sweeps over all features are Zhao 2014's solver. Working sets solve for the features nearest to their constraint
first and look at the others once in a while. On a working set, a few sweeps are followed by Newton steps: the Hessian
over the samples inside the margin, with the bias eliminated, makes a small Lasso whose solution is the new point.

Stops when the duality gap of the reduced problem is at most ``tol`` times its primal value.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import l1svm as kernels
from screenpath.kernels.solve import l1newton
from screenpath.numbers.rounding import gamma
from screenpath.problem.l1svm import L1Reduced, halfway
from screenpath.regions.geometry import ROUNDING
from screenpath.solve.base import Budget, Solution, Solver
from screenpath.solve.plugins import takes_plugins

SOLVERS = ("auto", "cd", "newton")
VALUES = 20_000_000  # stored values visited by one kernel call: bounds the time until a deadline is noticed
FIRST_CHECK, LAST_CHECK = 5, 100  # sweeps between two gap evaluations, at first and at most
FIRST_SET = 16  # features of the smallest working set beyond the support
FEWEST = FIRST_SET  # features that are solved for sooner than looked at whether they can be dropped
# Share of the gap at hand to which a working set is solved. By Newton steps the last digits cost little.
SWEEP_SHARE, NEWTON_SHARE = 0.1, 1e-3
IDLE = 60  # gap evaluations without progress after which rounding is to blame
NEWTON_LIMIT = 2500  # largest working set whose Hessian is formed
# Of a Newton step: accuracy of its small Lasso relative to the violation at its start, sweeps of that Lasso at most,
# ridge of the Hessian relative to ||f_j||^2.
NEWTON_OPTIONS = np.array([1e-2, 1000.0, 1e-11])


class FeatureDescent(Solver):
    """Coordinate descent over features.

    ``shrinking`` skips zero weights that are clearly inside their constraint: until the problem of the others is
    solved, as LIBLINEAR does; with working sets, until the next gap evaluation. With ``working_sets`` a growing set of
    features is solved for, instead of sweeps over all survivors; ``newton`` finishes each set with Newton steps. A path
    that is not ``warm`` starts every solve from ``w = 0``, not from the previous grid point.
    """

    def __init__(self, shrinking=True, working_sets=True, newton=True, warm=True):
        self.shrinking, self.working_sets, self.warm = shrinking, working_sets, warm
        self.newton = newton and working_sets
        self.name = "cd+newton" if self.newton else "cd"

    def solve(self, reduced: L1Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        run = _Run(reduced, budget, self)
        interval = FIRST_CHECK
        share = NEWTON_SHARE if self.newton else SWEEP_SHARE
        converged = run.check(tol, dynamic)
        while not converged and not run.spent():
            if not self.working_sets:
                interval = run.sweep_all(interval, tol)
            else:
                chosen = run.choose()
                if self.newton and chosen.size == run.alive.size:
                    converged = run.solve_set(chosen, tol * run.primal)
                    continue
                run.solve_set(chosen, max(0.5 * tol * run.primal, share * run.gap))
            converged = run.check(tol, dynamic)

        def decided() -> np.ndarray:
            status = np.full(run.w.size, -1, dtype=np.int8)
            status[run.alive] = 0
            return status[reduced.index]

        return Solution(run.w, np.empty(0), run.epochs, run.touched, converged, run.screened, self.name, decided)


class _Sums(NamedTuple):
    """Sums of a point over some features; ``products`` of the columns with ``r = max(slack, 0)``."""

    products: np.ndarray
    primal: float
    gap: float
    scale: float
    total: float
    squares: float
    balance: float
    weight: float
    reach: float


class _Run:
    """Working arrays of one solve."""

    def __init__(self, reduced: L1Reduced, budget: Budget, options: FeatureDescent):
        self.model, self.lam, self.budget, self.options = reduced.model, reduced.lam, budget, options
        self.alive, start = reduced.index, reduced.start
        self.columns = self.model.rows.some(self.alive)
        self.counts = self.columns[3] - self.columns[2]  # values that each column stores
        each = max(1, int(self.counts[self.alive].sum()) // max(self.alive.size, 1))
        self.visits = max(1, VALUES // each)  # columns of one kernel call
        self.epochs, self.touched, self.screened = 0, 0.0, 0
        cold = start.lam != self.lam and not options.warm  # a start at this parameter is no other step's
        self.w = np.zeros(self.model.size)
        if not cold:
            self.w[self.alive] = start.w[self.alive]
        self.bias = np.array([0.0 if cold else start.bias])
        self.formed = True  # whether the slack has not been changed since all of it was
        whole = not cold and np.count_nonzero(self.w) == np.count_nonzero(start.w)
        if whole:
            self.slack = start.slack.copy()
        else:
            self.form_slack()
        self.products = np.zeros(self.w.size)
        self.means: np.ndarray | None = None  # along which a step takes the bias with it, once they are asked for
        self.known: np.ndarray | None = None  # products of the starting point, until it has moved
        if whole and start.scale > 0.0:
            self.known = start.products[self.alive] * (start.lam / start.scale)
        self.room = FIRST_SET
        self.primal = self.gap = np.inf  # over all survivors, when last evaluated
        self.best, self.idle = np.inf, 0  # smallest gap met, gap evaluations since then

    def spent(self) -> bool:
        """Tell whether the budget is used up, or rounding keeps the gap from falling any further."""
        return self.idle > IDLE or self.budget.spent(self.epochs)

    def note(self, gap: float, target: float) -> bool:
        """Count gap evaluations that bring nothing new; return whether the target is met."""
        self.idle = 0 if gap < self.best else self.idle + 1
        self.best = min(gap, self.best)
        return gap <= target

    def form_slack(self) -> None:
        """Form the slack of all samples anew: changed many times, it gathers rounding errors."""
        self.slack = self.model.ones - self.bias * self.model.signs
        support = np.flatnonzero(self.w)
        kernels.columns_add(self.columns, support, -self.w[support], self.slack)
        self.touched += support.size
        self.bias[0] = kernels.bias_root(self.slack, self.model.signs, self.bias[0])
        self.formed = True

    def evaluate(self, index: np.ndarray) -> _Sums:
        """Return the sums of the problem on some features."""
        m, products = self.model, self.known  # the certificate of the starting point has those of all
        fresh, self.known = products is None, None
        if products is None:
            products = np.empty(index.size)
            self.touched += index.size
        found = kernels.evaluate(
            self.columns, index, m.signs, self.slack, self.w, m.norms, m.allowed, m.rounding.column, self.lam,
            not fresh, products,
        )  # fmt: skip
        return _Sums(products, *found)

    def check(self, tol: float, dynamic: bool) -> bool:
        """Evaluate the gap over all surviving features; screen with its ball where asked."""
        dynamic = dynamic and self.alive.size > FEWEST
        if dynamic and not self.formed:
            self.form_slack()
        sums = self.evaluate(self.alive)
        self.products[self.alive], self.primal, self.gap = sums.products, sums.primal, sums.gap
        self.budget.note(self.gap, self.primal, self.touched)
        if self.note(self.gap, tol * self.primal):
            return True
        if dynamic and self._screen(sums):
            sums = self.evaluate(self.alive)
            self.products[self.alive], self.primal, self.gap = sums.products, sums.primal, sums.gap
        return False

    def _screen(self, sums: _Sums) -> bool:
        """Drop the features the gap ball decides; return whether the point moved (a weight had to be set to 0)."""
        # |f_j.alpha*| <= scale |f_j.alpha| + spread_j sqrt(2 gap): the gap ball around the feasible scale * alpha; and
        # the ball halfway between that and alpha.
        m, lam, scale = self.model, self.lam, sums.scale
        column, norm = m.rounding.column, sqrt(sums.squares)
        off = m.rounding.slack(int(np.count_nonzero(self.w)), sums.reach, float(self.bias[0]))
        taken = kernels.imbalance(sums.total, sums.balance, column)
        gap = sums.gap + (norm + 0.5 * off) * off + taken * scale * sums.total
        terms = sums.primal + sums.squares + scale * (sums.total + scale * sums.squares)
        gap = max(gap + (column + gamma(self.alive.size)) * terms, 0.0)
        sizes, spreads = m.outward(sums.products, self.alive), m.spreads[self.alive]
        radius = sqrt(2.0 * gap) + taken * scale * norm
        part, other = halfway(gap, scale, norm, max(off, taken * scale * norm))
        extent = max(radius, other) + max(part, 1.0) * sqrt(2.0 * sums.primal)
        bound = np.minimum(scale * sizes + radius * spreads, part * sizes + other * spreads)
        slack = max(ROUNDING, 8.0 * (column + taken))
        gone = bound < lam - slack * (lam + extent * m.norms[self.alive])
        dropped = self.alive[gone]
        self.alive = self.alive[~gone]
        self.screened += dropped.size
        nonzero = dropped[self.w[dropped] != 0.0]
        if nonzero.size == 0:
            return False
        self.w[nonzero] = 0.0
        self.form_slack()
        return True

    def choose(self) -> np.ndarray:
        """Return the working set: the support and the features nearest to their constraint.

        The distance of column ``f_j`` at ``alpha`` to ``|f_j.alpha| = lam`` is ``(lam - |f_j.alpha|) / ||f_j||``, with
        the centred norm. Those beyond it all belong to the set; the room beyond the support doubles at each turn.
        """
        alive = self.alive
        if alive.size <= self.room:
            return alive
        sizes = self.model.outward(self.products[alive], alive)
        distance = (self.lam - sizes) / np.maximum(self.model.spreads[alive], 1e-300)
        distance[self.w[alive] != 0.0] = -np.inf
        support = int(np.count_nonzero(self.w[alive]))
        outside = int(np.count_nonzero(distance < 0.0)) - support
        size = support + max(self.room, outside + outside // 4)
        self.room *= 2
        if size >= alive.size:
            return alive
        return np.sort(alive[np.argpartition(distance, size)[:size]])

    # -- coordinate descent --------------------------------------------------------------------------------------

    def sweep_all(self, interval: int, tol: float) -> int:
        """Sweep over all survivors, or until those that shrinking leaves are solved for; return the next interval."""
        left, room, best, idle = self.alive, np.inf, self.best, self.idle
        self.best, self.idle, solved = np.inf, 0, False  # of those that are left
        while not (solved or self.spent()):
            left, room = self.sweep(left, interval, room)
            interval = min(LAST_CHECK, interval + interval // 4 + 1)
            solved = left.size == self.alive.size
            if not solved:
                sums = self.evaluate(left)
                solved = self.note(sums.gap, tol * sums.primal)
        self.best, self.idle = best, idle if solved else self.idle
        return interval

    def sweep(self, active: np.ndarray, sweeps: int, room: float = np.inf) -> tuple[np.ndarray, float]:
        """Sweep over features in bounded kernel calls; return what shrinking leaves, and the last violation."""
        m = self.model
        if self.means is None:  # a step along a centred column passes over all samples
            self.means = np.where(self.counts == m.samples, m.means, 0.0)
        sweeps = min(sweeps, self.budget.epochs - self.epochs)
        each = max(1, self.visits // max(active.size, 1))
        while sweeps > 0 and not self.budget.late:
            now = min(each, sweeps)
            active = active.copy()
            visited, room, size = kernels.descend(
                self.columns, m.signs, self.lam, (m.sqnorms, self.means, m.allowed), self.w, self.slack, self.bias,
                active, self.options.shrinking, room, now,
            )  # fmt: skip
            active, self.formed = active[:size], False
            self.touched += visited
            self.epochs += now
            sweeps -= now
            if room == 0.0:
                break
        return active, room

    def solve_set(self, chosen: np.ndarray, target: float) -> bool:
        """Solve the problem on a working set to an absolute gap, by Newton steps where these can be afforded."""
        interval, self.best = FIRST_CHECK, np.inf  # of this set
        k, hessian = chosen.size, None  # products of columns, with `z`, and the samples that they are over: none yet
        if self.options.newton and k <= NEWTON_LIMIT:
            hessian = np.zeros((k, k)), np.zeros(k), np.zeros(self.slack.size, dtype=np.int8)
        products = self.products[chosen]  # of the gap evaluation that led here
        while True:
            going, gap = self.newton_steps(chosen, hessian, products, target) if hessian else (False, np.inf)
            if not going and not gap <= target:
                self.sweep(chosen, interval)
                interval = min(LAST_CHECK, 2 * interval)
                sums = self.evaluate(chosen)
                products, gap = sums.products, sums.gap
            if self.note(gap, target):
                return True
            if self.spent():
                return False

    # -- Newton steps --------------------------------------------------------------------------------------------

    def newton_steps(self, chosen: np.ndarray, hessian: tuple, products: np.ndarray, target: float):
        """Take steps while the gap falls; return whether the last could be taken, and the gap, inf without any."""
        m, k = self.model, chosen.size
        most = min(max(1, self.visits // (k * (k + 1) + 1)), self.budget.epochs - self.epochs)  # of one kernel call
        problem = l1newton.Problem(self.columns, m.signs, self.lam, m.sqnorms, m.norms, m.rounding.column, m.allowed)
        tried, taken, going, gap = l1newton.newton_steps(
            problem, chosen, (self.w, self.slack, self.bias), products, hessian, NEWTON_OPTIONS, target, self.best, most
        )
        self.epochs += tried
        self.touched += (tried + taken) * k
        self.formed &= taken == 0
        return going, gap


@takes_plugins
def make_feature_solver(name: str, seed: int = 0) -> FeatureDescent:
    """Return the solver of that name; it draws no random numbers."""
    if name not in SOLVERS:
        raise UsageError(f"unknown solver '{name}' for l1svm", f"use one of {', '.join(SOLVERS)}")
    return FeatureDescent(newton=name != "cd")
