"""Choice of the solver by size and progress."""

from __future__ import annotations

from dataclasses import replace

from screenpath.models.reduced import Reduced
from screenpath.solvers.base import Budget, Solution, Solver
from screenpath.solvers.cd import CoordinateDescent
from screenpath.solvers.newton import Newton

WIDE, WIDE_DENSE = 600, 5000  # features from which rows get sweeps first: there a Newton system needs many products
SWEEPS = 40
MORE_SWEEPS, FEW_ROWS = 100, 4000  # of data with few rows, where that many often end the solve


class Auto(Solver):
    """Newton's method; on wide rows a bounded number of coordinate sweeps first.

    Where there are few samples and many features, sweeps converge fast, often to the end; elsewhere they bring the
    first digits for little over short sparse rows, and with them the gap ball that leaves Newton's method a small
    problem. The step's record says which solvers ran.

    Parameters
    ----------
    seed : int, default 0
    shrinking : bool, default True
        Of the sweeps.

    Attributes
    ----------
    most : int, optional
        Sweeps before Newton's method takes over, in place of the number that suits the data.
    """

    name = "auto"

    def __init__(self, seed: int = 0, shrinking: bool = True):
        self.most: int | None = None
        self.sweeps, self.newton = CoordinateDescent(seed, shrinking), Newton()

    @staticmethod
    def sweeps_first(sparse: bool, n: int, d: int) -> bool:
        """Tell whether coordinate sweeps come before Newton's method, on data of ``n`` rows and ``d`` features."""
        return d >= WIDE if sparse else d >= WIDE_DENSE and n <= FEW_ROWS

    def compiled(self, rows) -> bool:
        """Tell whether a compiled walk on these rows solves as this solver does: where it is Newton's method alone."""
        return not self.sweeps_first(rows.sparse, rows.n, rows.d)

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solvers.base.Solver`."""
        n = reduced.theta.size  # of all dual variables: the choice is that of the data, not of what screening left
        if not self.sweeps_first(reduced.sparse, n, reduced.start_w.size) or reduced.size == 0:
            return self.newton.solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
        most = self.most or (MORE_SWEEPS if n <= FEW_ROWS else SWEEPS)
        few = replace(budget, epochs=min(most, budget.epochs))
        first = self.sweeps.solve(reduced, tol=tol, budget=few, dynamic=dynamic, rank=rank)
        if first.converged or first.epochs >= budget.epochs:
            return first
        margins = reduced.products(first.w)
        again = replace(reduced, start_alpha=first.alpha, start_sum=first.w, start_w=first.w, start_margins=margins)
        rest = replace(budget, epochs=budget.epochs - first.epochs, touched=budget.touched + first.touched)
        second = self.newton.solve(again, tol=tol, budget=rest, dynamic=dynamic, rank=rank)
        return Solution(
            second.w,
            second.alpha,
            first.epochs + second.epochs,
            first.touched + reduced.size + second.touched,
            second.converged,
            max(first.screened, second.screened),
            "cd+newton",
            second.decided,
        )
