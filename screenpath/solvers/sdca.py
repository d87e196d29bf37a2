"""Proximal stochastic dual coordinate ascent: the solver family of Hong 2019 (Shalev-Shwartz & Zhang 2016).

One dual variable at a time is maximised exactly, in random order, with ``v = X' psi(theta)/n`` kept and
``w = S_beta(v)/alpha`` formed where it is read. Where features were screened, the rows and columns left are copied
first, so that an epoch costs what survives. Stops when the gap of the reduced problem is at most ``tol`` times its
primal value.

The accelerated outer loop of the paper's reference is left out: it pays where ``max ||x||^2 / (alpha gamma)`` is well
above ``n``, and on the papers' grids it is below.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels import rows as row_kernels
from screenpath.kernels import sdca as kernels
from screenpath.kernels import sparse as sums
from screenpath.models.sparse import Certificate, Reduced
from screenpath.rules.sparse import tighten
from screenpath.solvers.base import Budget, Solution

VISITS = 50_000_000  # values of one kernel call: bounds the time until a signal or a deadline is noticed
FIRST_CHECK, LAST_CHECK = 2, 50  # sweeps between two gap evaluations, at first and at most
SCREEN_AGAIN = 0.5  # the gap must fall by this factor before the dynamic rule is applied again


class ProximalSDCA:
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

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap.

        Returns
        -------
        Solution
            ``alpha`` holds all dual variables, on the scale [0, 1].
        """
        # A second round at the same alpha goes on from the first one, cold start or not.
        warm = self.warm or reduced.start.alpha == reduced.alpha
        run = _Run(reduced, np.random.SeedSequence((self.seed, rank)), warm)
        interval, epochs, screened = FIRST_CHECK, 0, 0
        screen_below = SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        while True:
            converged = run.gap <= tol * abs(run.primal)
            if converged or epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            if dynamic and run.gap <= screen_below:
                screened += run.screen()
                screen_below = SCREEN_AGAIN * run.gap
            if run.order.size == 0:
                break
            todo = min(interval, budget.epochs - epochs)
            run.sweep(todo, budget.deadline)
            epochs += todo
            run.evaluate()
            interval = min(LAST_CHECK, interval + interval // 4 + 1)
        return Solution(run.w, run.theta, epochs, run.touched, converged, screened, self.name)


class _Run:
    """Working arrays of one solve."""

    def __init__(self, reduced: Reduced, seed: np.random.SeedSequence, warm: bool):
        self.model, self.alpha, self.at = reduced.model, reduced.alpha, reduced.screened
        self.own_copy = False
        self.touched = 0
        self.random = np.maximum(seed.generate_state(1, np.uint64), np.uint64(1))
        status = self.at.duals
        self.theta = np.where(status == 0, reduced.start.theta if warm else 0.0, status > 0)
        self._gather()
        self.evaluate()

    def _gather(self) -> None:
        """Copy the surviving rows and columns and form ``v`` from the dual point.

        Where no feature went there is nothing to gain: the sweeps visit surviving samples only, wherever they are.
        """
        m, at = self.model, self.at
        views = m.views
        features = np.flatnonzero(at.keep)
        self.part = None  # an earlier copy must go before the next one is made
        if features.size == at.keep.size:
            self.lines, self.columns, self.part = np.arange(m.n), np.arange(m.d), views.by_row
            self.sqnorms = views.row_sqnorms
        else:
            self.lines, self.columns, *self.part = kernels.gather_rows(
                *views.by_row, views.by_column[0], views.dense, m.n, m.d, m.labels, m.classes, at.duals, at.keep
            )
            self.touched += self.part[0].size
            self.sqnorms = np.empty(self.lines.size)
            row_kernels.csr_squared_norms(self.part[0], self.part[2], self.sqnorms)
        u = np.zeros(at.keep.size)
        self.touched += sums.column_sums(*views.by_column, m.n, features, m.weigh(self.theta), 1.0 / m.n, u)
        self.v = u.reshape(m.classes, m.d)[:, self.columns].ravel()
        keep = at.keep.reshape(m.classes, m.d)[:, self.columns].ravel()
        self.shrink = np.where(keep, m.beta, np.inf)
        self.local_status = np.ascontiguousarray(at.duals.reshape(m.classes, m.n)[:, self.lines]).ravel()
        self.order = np.flatnonzero(self.local_status == 0)

    def sweep(self, count: int, deadline: float) -> None:
        """Run ``count`` sweeps in kernel calls of bounded length."""
        m = self.model
        local = np.ascontiguousarray(self.theta.reshape(m.classes, m.n)[:, self.lines]).ravel()
        each = max(1, VISITS // max(self.part[0].size * m.classes, 1))
        while count > 0 and time.monotonic() <= deadline:
            now = min(each, count)
            self.touched += kernels.sweeps(
                *self.part, m.views.dense, m.labels[self.lines], m.classes, m.n, self.columns.size, m.gamma, self.alpha,
                self.shrink, self.sqnorms, self.local_status, local, self.v, self.order, now, self.random,
            )  # fmt: skip
            count -= now
        self.theta.reshape(m.classes, m.n)[:, self.lines] = local.reshape(m.classes, -1)

    def evaluate(self) -> None:
        """Evaluate the reduced gap; the penalty has no share in it, ``w`` being the point of the dual."""
        m = self.model
        weights = np.sign(self.v) * np.maximum(np.abs(self.v) - self.shrink, 0.0) / self.alpha
        self.w = np.zeros(m.classes * m.d)
        self.w.reshape(m.classes, m.d)[:, self.columns] = weights.reshape(m.classes, -1)
        self.scores = np.empty(self.theta.size)
        self.touched += sums.products(*m.views.by_column, m.n, self.w, self.scores)
        loss, slack, self.apart_sq = kernels.reduced_terms(
            self.scores, m.labels, m.n, m.classes, m.gamma, self.at.duals, self.theta
        )
        self.w_sq = float(np.sum(weights**2))
        self.primal = loss / m.n + 0.5 * self.alpha * self.w_sq + m.beta * float(np.sum(np.abs(weights)))
        self.gap = max(slack / m.n, 0.0)

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many dual variables and features they decide."""
        m = self.model
        if not self.own_copy:
            self.at, self.own_copy = self.at.copy(), True
        u = np.zeros(self.w.size)
        u.reshape(m.classes, m.d)[:, self.columns] = self.v.reshape(m.classes, -1)
        found = tighten(m, self.at, self._point(u), self.alpha)
        if found:
            self.theta = np.where(self.at.duals == 0, self.theta, self.at.duals > 0)
            self._gather()
            self.evaluate()
        return found

    def _point(self, u: np.ndarray) -> Certificate:
        """Return what the gap balls need of the current pair."""
        alpha = self.alpha
        return Certificate(
            alpha, self.model.beta, self.w, self.scores, self.theta, u, np.zeros(u.size), self.primal, 0.0, self.w_sq,
            0.0, alpha**2 * self.w_sq, 0.0, alpha * self.w_sq, 0.0, 0.0, 0.0, self.apart_sq, self.primal, self.gap,
            0, 0, 0,
        )  # fmt: skip
