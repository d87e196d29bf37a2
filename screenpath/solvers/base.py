"""The contract of solvers: what each takes and returns besides the reduced problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


@dataclass(slots=True)
class Budget:
    """Limits of one solve.

    Parameters
    ----------
    epochs : int
        Sweeps or Newton iterations.
    deadline : float
        ``time.monotonic()`` value after which no further kernel call starts.
    """

    epochs: int
    deadline: float


@dataclass(slots=True)
class Solution:
    """What a solver returns.

    Parameters
    ----------
    w : ndarray of shape (d,) or None
        Best primal point; None where the model takes that of the dual point.
    alpha : ndarray of shape (k,) or None
        Feasible dual point of the survivors, multiplied by C; None where the model takes that of the primal point.
    epochs : int
        Sweeps or Newton iterations.
    touched : float
        Rows of the reduced problem touched.
    converged : bool
        Whether the reduced gap met its target.
    screened : int
        Survivors that the dynamic rule fixed while solving.
    solver : str
        Which solver ran, e.g. ``newton`` or ``cd+newton``.
    decided : callable, optional
        Returns what the dynamic rule fixed while solving, an ndarray of int8 of shape (k,): -1 at the lower end, +1 at
        the upper end, 0 undecided. Only an audit asks for it.
    """

    w: Any
    alpha: Any
    epochs: int
    touched: float
    converged: bool
    screened: int
    solver: str
    decided: Callable[[], np.ndarray] | None = None


@runtime_checkable
class Solver(Protocol):
    """Solves reduced problems of its model, from the start they bring, for any rule.

    Attributes
    ----------
    name : str
        For records.
    """

    name: str

    def solve(self, reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap.

        Parameters
        ----------
        reduced : Reduced
            Of the model: what screening left, with a start.
        tol : float
            Relative gap of the reduced problem to reach.
        budget : Budget
        dynamic : bool
            Screen with the gap ball of the current iterate whenever the gap is evaluated.
        rank : int
            Number of the grid point: a solver that draws random numbers mixes it into its seed.

        Returns
        -------
        Solution
        """
        ...

    def compiled(self, rows) -> bool:
        """Tell whether a compiled walk on these rows (``walk.compiled``) solves as this solver does."""
        return False
