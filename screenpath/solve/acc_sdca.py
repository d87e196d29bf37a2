"""Accelerated proximal SDCA: the baseline that Hong 2019 names (Shalev-Shwartz & Zhang 2016, Acc-Prox-SDCA).

Each outer step minimises ``P(w) + kappa/2 ||w - y||^2`` roughly by proximal SDCA, ``y`` ahead of the last two points.
The term makes the problem as strongly convex as is good for one pass, ``kappa = max ||x||^2 / (gamma n) - alpha``;
where that is not positive the method is proximal SDCA itself. With ``v' = v + kappa y`` in place of ``v`` and
``alpha + kappa`` in place of ``alpha`` the sweeps are the same, and so is the gap that they report.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from screenpath.problem.sparse_types import SparseReduced
from screenpath.solve.base import Budget, Solution
from screenpath.solve.sdca import FIRST_CHECK, SCREEN_AGAIN, ProximalSDCA, _Run, random_state


class AcceleratedSDCA(ProximalSDCA):
    """Accelerated proximal SDCA.

    Parameters
    ----------
    seed, warm
        See :class:`screenpath.solve.sdca.ProximalSDCA`.
    """

    name = "acc-sdca"

    def solve(self, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solve.base.Solver`."""
        model, alpha = reduced.model, reduced.alpha
        kappa = float(model.views.row_sqnorms.max(initial=0.0)) / (model.gamma * model.n) - alpha
        if kappa <= 0.0:
            found = super().solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
            found.solver = self.name
            return found
        run = _Run(reduced, random_state(self.seed, rank), self.warm or reduced.start.alpha == alpha)
        eta = sqrt(0.5 * alpha / (0.5 * alpha + kappa))
        screened, screen_below = 0, SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        last, ahead, target = run.w.copy(), run.w.copy(), 0.5 * eta * run.gap
        while not run.ended(tol, budget):
            if dynamic and run.gap <= screen_below:
                found_now = run.screen()
                screened, screen_below = screened + found_now, SCREEN_AGAIN * run.gap
                if found_now:  # other features: the momentum begins anew
                    last, ahead, target = run.w.copy(), run.w.copy(), 0.5 * eta * run.gap
            if run.order.size == 0:
                break
            w = _step(run, kappa, ahead, target, budget)
            ahead = w + (1.0 - eta) / (1.0 + eta) * (w - last)
            last, target = w, (1.0 - 0.5 * eta) * target
        theta, w = run.point()
        return Solution(w, theta, run.epochs, run.touched, run.converged, screened, self.name)


def _step(run: _Run, kappa: float, ahead: np.ndarray, target: float, budget: Budget) -> np.ndarray:
    """Minimise the outer step's problem to a gap; return its weights, and leave the run with its own problem's gap."""
    alpha = run.alpha
    run.v += kappa * ahead
    run.alpha, run.state[1:] = alpha + kappa, FIRST_CHECK
    run.descend(0.0, budget, target)
    w = run.w.copy()
    run.v -= kappa * ahead
    run.alpha = alpha
    run._evaluate()
    return w
