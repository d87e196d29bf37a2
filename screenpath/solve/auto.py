"""Choice of the solver by size and progress."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from screenpath.problem.reduced import Reduced
from screenpath.solve.base import Budget, Solution, Solver
from screenpath.solve.face import FaceDescent
from screenpath.solve.multipliers import Multipliers
from screenpath.solve.newton import CALL_ITERATIONS, Newton

WIDE, WIDE_DENSE = 600, 5000  # features from which rows get sweeps first: there a Newton system needs many products
FEW_DENSE = 4000  # rows up to which dense data get sweeps
LITTLE = 2_000_000  # stored values of sparse rows up to which a solve is short enough for a compiled walk


class Auto(Solver):
    """Newton's method; on wide rows coordinate sweeps and steps on the face first (``solve.face``).

    These finish in most cases, from the line through the last two steps in a few rounds. Otherwise
    they bring the first digits cheaply, and a gap ball that leaves Newton's method a small problem. On few other rows
    they come where Newton's method does not end soon. With a free intercept sweeps come by way of multipliers
    (``solve.multipliers``). The step's record says which solvers ran. ``most``, if set,
    limits the sweeps before Newton's method.
    """

    name = "auto"

    def __init__(self, seed: int = 0):
        self.most: int | None = None
        self.faces, self.freed, self.newton = FaceDescent(seed), Multipliers(seed), Newton()

    @staticmethod
    def sweeps_first(sparse: bool, n: int, d: int) -> bool:
        """Tell whether coordinate sweeps come before Newton's method, on data of ``n`` rows and ``d`` features."""
        return d >= WIDE if sparse else d >= WIDE_DENSE and n <= FEW_DENSE

    def looks_ahead(self, rows) -> bool:
        """Tell whether to start on the line through the last two dual points: if sweeps come first."""
        return self.sweeps_first(rows.sparse, rows.n, rows.d)

    def compiled(self, rows) -> Solver | None:
        """Return the solver for a compiled walk on these rows: the one that comes first."""
        if not self.sweeps_first(rows.sparse, rows.n, rows.d):
            return self.newton
        return self.faces if rows.sparse and rows.size <= LITTLE and self.most is None else None

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        n = reduced.theta.size  # of all dual variables: the choice is that of the data, not of what screening left
        how: dict[str, Any] = {"tol": tol, "dynamic": dynamic, "rank": rank}
        d = reduced.start_w.size
        # With a free intercept two problems are one too many on dense rows, where Newton's method is nearly as fast.
        if self.sweeps_first(reduced.sparse, n, d) and (reduced.sparse or reduced.free is None):
            return self._sweep(reduced, budget, **how)
        if reduced.size > min(d, FEW_DENSE):
            return self.newton.solve(reduced, budget=budget, **how)
        # Rows that may all lie on their kinks: from a start far from such a point Newton's method may cycle.
        tried = self.newton.solve(reduced, budget=replace(budget, epochs=min(budget.epochs, CALL_ITERATIONS)), **how)
        if tried.converged or not CALL_ITERATIONS <= tried.epochs < budget.epochs:
            return tried
        return self._sweep(reduced, budget.after(tried.epochs, tried.touched), **how).after(tried)

    def _sweep(self, reduced: Reduced, budget: Budget, *, tol: float, dynamic: bool, rank: int) -> Solution:
        few = replace(budget, epochs=min(self.most or budget.epochs, budget.epochs))
        sweeps: Solver = self.faces if reduced.free is None else self.freed
        first = sweeps.solve(reduced, tol=tol, budget=few, dynamic=dynamic, rank=rank)
        if first.converged or budget.spent(first.epochs):
            return first
        margins, free = reduced.products(first.w), reduced.free
        again = replace(
            reduced, start_alpha=first.alpha, start_sum=first.w, start_w=first.w, start_margins=margins,
            free=free and replace(free, intercept=first.intercept),
        )  # fmt: skip
        first.touched += reduced.size
        rest = budget.after(first.epochs, first.touched)
        second = self.newton.solve(again, tol=tol, budget=rest, dynamic=dynamic, rank=rank)
        return second.after(first, screened=max(first.screened, second.screened), faces=first.faces)
