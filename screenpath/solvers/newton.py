"""Semismooth Newton on the proximal dual of a reduced box problem: certified in a few passes.

Method of multipliers on the dual with a semismooth Newton inner solver (the scheme of Li, Sun and Toh 2018, SSNAL),
on a working set of rows near their kink: superlinear, and insensitive to the conditioning that makes coordinate descent
crawl. Stops when the duality gap of the reduced problem is at most ``tol`` times its primal value.
"""

from __future__ import annotations

import numpy as np

from screenpath.geometry import GAP_ROUNDING, ROUNDING
from screenpath.kernels import newton as kernels
from screenpath.models.reduced import Reduced
from screenpath.solvers.base import Budget, Solution

MOST_ITERATIONS = 1000  # of one solve; a hundred are rare, so this only bounds the time spent on a hopeless tolerance


class Newton:
    """Semismooth Newton / augmented Lagrangian."""

    name = "newton"

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap.

        Parameters
        ----------
        reduced : Reduced
        tol : float
            Relative gap of the reduced problem to reach.
        budget : Budget
            ``epochs`` bounds the Newton iterations. One solve is one kernel call: the deadline is seen after it.
        dynamic : bool
            Screen with the gap ball of the current pair before each choice of a working set.
        rank : int
            Number of the grid point; not used, nothing here is random.

        Returns
        -------
        Solution
        """
        if reduced.sparse:
            dense, csr = np.empty((0, 0)), reduced.rows
        else:
            dense, csr = reduced.rows, (np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64))
        alpha = np.minimum(np.maximum(reduced.start_alpha, reduced.lo), reduced.hi)
        w = reduced.start_w.copy()
        iterations, touched, screened, gap, primal = kernels.newton_box(
            dense, *csr, reduced.sparse, reduced.c, reduced.lo, reduced.hi, reduced.norms, reduced.base,
            reduced.offset, alpha, w, reduced.start_margins, tol, min(budget.epochs, MOST_ITERATIONS), dynamic,
            ROUNDING, GAP_ROUNDING,
        )  # fmt: skip
        return Solution(w, alpha, iterations, touched, gap <= tol * abs(primal), screened, self.name)
