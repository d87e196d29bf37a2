"""Proximal stochastic dual coordinate ascent: the solver family of Hong 2019 (Shalev-Shwartz & Zhang 2016).

One dual variable at a time is maximised exactly, in random order, with ``v = X' psi(theta)/n`` kept and
``w = S_beta(v)/alpha`` formed where it is read. Where features were screened, the rows and columns left are copied
first, so that an epoch costs what survives. Stops when the gap of the reduced problem is at most ``tol`` times its
primal value.

The accelerated outer loop of the paper's reference is :mod:`screenpath.solve.acc_sdca`.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.rows import rows as row_kernels
from screenpath.kernels.solve import sdca as kernels
from screenpath.problem.sparse_types import SparseCertificate, SparseReduced
from screenpath.screen.sparse import tighten
from screenpath.solve.base import Budget, Solution, Solver

VISITS = 50_000_000  # values of one kernel call: bounds the time until a signal or a deadline is noticed
FIRST_CHECK, LAST_CHECK = 2, 50  # sweeps between two gap evaluations, at first and at most
GROWTH = 4  # by a quarter each time
SCREEN_AGAIN = 0.5  # the gap must fall by this factor before the dynamic rule is applied again


class ProximalSDCA(Solver):
    """Proximal SDCA.

    Parameters
    ----------
    seed : int, default 0
        Seed of the random order; each solve starts its generator from the seed and the parameter's rank.
    warm : bool, default True
        Start from the previous grid point; else from ``theta = 0``.
    """

    name = "sdca"

    def __init__(self, seed: int = 0, warm: bool = True):
        self.seed, self.warm = seed, warm

    def solve(self, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solve.base.Solver`.

        Returns
        -------
        Solution
            ``alpha`` holds all dual variables, on the scale [0, 1].
        """
        # A second round at the same alpha goes on from the first one, cold start or not.
        warm = self.warm or reduced.start.alpha == reduced.alpha
        run = _Run(reduced, random_state(self.seed, rank), warm)
        screened = 0
        screen_below = SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        while not run.ended(tol, budget):
            if dynamic and run.gap <= screen_below:
                screened += run.screen()
                screen_below = SCREEN_AGAIN * run.gap
            if run.order.size == 0:
                break
            run.descend(tol, budget, screen_below if dynamic else -1.0)
        theta, w = run.point()
        return Solution(w, theta, run.epochs, run.touched, run.converged, screened, self.name)


def random_state(seed: int, rank: int) -> np.ndarray:
    """Return the state of the generator for one grid point, shape (1,): a hash of both numbers (splitmix64)."""
    wrap = 2**64 - 1
    x = (seed * 0x9E3779B97F4A7C15 + rank + 1) & wrap
    for _ in range(2):
        x = (x + 0x9E3779B97F4A7C15) & wrap
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & wrap
        x ^= x >> 31
    state = np.empty(1, dtype=np.uint64)
    state[0] = max(x, 1)
    return state


class _Copy:
    """Rows and columns of the data, copied row by row (or the data itself)."""

    def __init__(self, model, lines, columns, part, sqnorms):
        self.lines, self.columns, self.part, self.sqnorms = lines, columns, part, sqnorms
        self.samples = model.samples._replace(labels=model.labels[lines], weights=model.weights[lines])
        self.has_line, self.has_column = np.zeros(model.n, dtype=bool), np.zeros(model.d, dtype=bool)
        self.has_line[lines], self.has_column[columns] = True, True
        self.fitted = None  # features for which it was found to serve, with any samples

    def fits(self, model, at) -> bool:
        """Tell whether it holds every surviving row and column, and not many columns more."""
        whole = self.lines.size == model.n
        if whole and self.fitted is not None and not sums.differ(self.fitted, at.keep):
            return True
        if not kernels.covers(model.n, model.d, self.has_line, self.has_column, self.columns.size, at.duals, at.keep):
            return False
        self.fitted = at.keep
        return True


class _Copies:
    """The last copy of one solve: where the dynamic rule decides little, it serves on.

    None is kept for another grid point. Sums over more columns than survive have other last digits, and the steps of a
    run that was resumed, or of a part of the grid, would be those of a copy that only the whole run has made.
    """

    def __init__(self):
        self._last = None

    def fitting(self, model, at) -> tuple[_Copy, int]:
        """Return a copy with all that survives, and the values touched to make it."""
        if self._last is not None and self._last.fits(model, at):
            return self._last, 0
        self._last, views = None, model.views  # an earlier copy must go before the next one is made
        if at.keep.all():
            # There is nothing to gain: the sweeps visit surviving samples only, wherever they are.
            whole = np.arange(model.n), np.arange(model.d), views.by_row, views.row_sqnorms
            self._last = _Copy(model, *whole)
            return self._last, 0
        lines, columns, *part = kernels.gather_rows(
            views.by_row, views.by_column[0], views.dense, model.n, model.d, at.duals, at.keep
        )
        sqnorms = np.empty(lines.size)
        row_kernels.csr_squared_norms(part[0], part[2], sqnorms)
        self._last = _Copy(model, lines, columns, tuple(part), sqnorms)
        return self._last, part[0].size


class _Run:
    """Working arrays of one solve."""

    copy: _Copy
    converged: bool

    def __init__(self, reduced: SparseReduced, random: np.ndarray, warm: bool):
        self.model, self.alpha, self.at, self.copies = reduced.model, reduced.alpha, reduced.screened, _Copies()
        self.own_copy = False
        self.touched, self.epochs, self.random = 0, 0, random
        self.state, self.terms = np.array([0, FIRST_CHECK, FIRST_CHECK]), np.empty(3)
        start = reduced.start
        self._gather(start.theta, warm, start.u, start.u_slack)

    def _gather(self, start: np.ndarray, warm: bool, start_u, u_slack) -> None:
        """Go over to the rows and columns that survive, and form ``v`` from the dual point.

        ``start_u`` holds ``X' psi(start) / n`` wherever ``u_slack`` is 0; where the dual point is that of ``start`` it
        need not be summed again.
        """
        m, at = self.model, self.at
        self.copy = None  # type: ignore[assignment]  # an earlier copy must go before the next one is made
        self.copy, touched = self.copies.fitting(m, at)
        lines, columns = self.copy.lines, self.copy.columns
        self.full, self.theta = np.empty(start.size), np.empty(m.classes * lines.size)
        self.status = np.empty(self.theta.size, dtype=np.int8)
        self.order, self.fixed_L, moved = kernels.localise_duals(
            lines, m.n, m.classes, m.weights, at.duals, start, warm, self.full, self.status, self.theta
        )
        self.v, self.shrink, missing, places = kernels.localise_weights(
            columns, m.d, m.classes, at.keep, not moved, start_u, u_slack, m.beta
        )
        if missing.size:
            u = np.empty(at.keep.size)
            touched += sums.column_sums(m.views.by_column, m.n, missing, m.weigh(self.full), 1.0 / m.n, u)
            self.v[places] = u[missing]
        self.w = np.empty(self.v.size)
        self.touched += touched
        self._evaluate()

    def ended(self, tol: float, budget: Budget) -> bool:
        """Tell whether the run is at its tolerance, which is noted, or has used its budget up."""
        self.converged = self.gap <= tol * abs(self.primal)
        budget.note(self.gap, self.primal, self.touched)
        return self.converged or self.epochs >= budget.epochs or time.monotonic() > budget.deadline

    def descend(self, tol: float, budget: Budget, screen_below: float) -> None:
        """Sweep until the gap is small enough for the caller, in kernel calls of bounded length."""
        m, copy, state = self.model, self.copy, self.state
        limits = kernels.Limits(budget.epochs, VISITS, tol, screen_below, GROWTH, LAST_CHECK)
        while True:
            self.touched += kernels.descend(
                copy.part, m.views.dense, copy.samples, copy.columns.size, self.alpha, m.beta, self.shrink,
                copy.sqnorms, self.fixed_L, self.status, self.theta, self.v, self.w, self.order, self.random, limits,
                state, self.terms,
            )  # fmt: skip
            if state[1] == state[2]:  # the last sweep was followed by an evaluation
                break
            if time.monotonic() > budget.deadline:
                self._evaluate()
                break
        self.epochs = int(state[0])

    def _evaluate(self) -> None:
        m, copy = self.model, self.copy
        self.touched += kernels.evaluate(
            copy.part, m.views.dense, copy.samples, copy.columns.size, self.alpha, m.beta, self.shrink, self.fixed_L,
            self.status, self.theta, self.v, self.w, self.terms,
        )  # fmt: skip

    @property
    def primal(self) -> float:
        """Return the objective of the reduced problem at the last evaluation."""
        return float(self.terms[0])

    @property
    def gap(self) -> float:
        """Return the gap of the reduced problem at the last evaluation."""
        return float(self.terms[1])

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the dual variables and the weights of the full problem."""
        m, w = self.model, np.zeros(self.at.keep.size)
        kernels.spread(self.copy.lines, self.copy.columns, m.n, m.d, m.classes, self.theta, self.w, self.full, w)
        return self.full, w

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many dual variables and features they decide."""
        m = self.model
        if not self.own_copy:
            self.at, self.own_copy = self.at.copy(), True
        point = self._certificate(*self.point())
        found = tighten(m, self.at, point, self.alpha)
        if found:
            self._gather(point.theta, True, point.u, point.u_slack)
        return found

    def _certificate(self, theta: np.ndarray, w: np.ndarray) -> SparseCertificate:
        """Return what the gap balls need of the current pair; a ``v`` kept over many steps has rounding errors."""
        m, view = self.model, self.model.views.by_column
        features, _ = sums.mask(w, self.at.keep, np.empty(w.size))
        scores, u, psi = np.zeros(theta.size), np.zeros(w.size), m.weigh(theta)
        self.touched += sums.products(view, m.n, w, scores)
        self.touched += sums.column_sums(view, m.n, features, psi, 1.0 / m.n, u)
        primal, gap, apart_sq = (float(term) for term in self.terms)
        samples = primal, gap, 0.0, m.mass, apart_sq, 0, 0
        return m.pair(self.alpha, w, scores, theta, u, np.zeros(w.size), samples, features, psi=psi)
