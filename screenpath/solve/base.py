"""The contract of solvers: what each takes and returns in addition to the reduced problem.

Methods that this contract describes have docstrings only for what they add.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Any, Protocol, runtime_checkable

import numpy as np

from screenpath.problem.reduced import Faces

HALF = 0.5  # a solve gets on while the gap falls to this part of the smallest one before, within a few evaluations


@dataclass(slots=True)
class Pulse:
    """Progress of the step under way, which another thread may read at any moment."""

    parameters: dict | None = None  # of the step; None between two steps
    since: float = 0.0  # ``time.monotonic()`` value at which it began
    rel_gap: float = nan  # of the reduced problem when it was last known, nan before
    passes: float = 0.0  # over the data until then
    stopped: bool = False  # whether the solve under way is to end as if its deadline had come
    _rows: int = field(default=1, repr=False)

    def begin(self, parameters: dict, rows: int) -> None:
        self.rel_gap, self.passes, self._rows, self.since = nan, 0.0, max(rows, 1), time.monotonic()
        self.parameters = parameters

    def note(self, gap: float, primal: float, touched: float) -> None:
        """Record the gap of the reduced problem, and the rows touched for this step so far."""
        self.rel_gap = gap / abs(primal) if primal else nan
        self.passes = touched / self._rows

    def end(self) -> None:
        self.parameters = None


@dataclass(slots=True)
class Budget:
    """Limits of one solve."""

    epochs: int  # sweeps or Newton iterations
    until: float  # ``time.monotonic()`` value after which no further kernel call starts
    pulse: Pulse | None = None  # receives the progress of the solve, and may end it
    touched: float = 0.0  # rows touched for the same step before this solve

    @property
    def deadline(self) -> float:
        """Return the time after which no further kernel call starts: long ago if the solve was stopped."""
        return -inf if self.pulse is not None and self.pulse.stopped else self.until

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def spent(self, epochs: int) -> bool:
        """Tell whether so many epochs are all there are, or it is late."""
        return epochs >= self.epochs or self.late

    def after(self, epochs: int, touched: float) -> Budget:
        """Return what is left for another solve of the same step after so many epochs and rows touched."""
        return replace(self, epochs=self.epochs - epochs, touched=self.touched + touched)

    def note(self, gap: float, primal: float, touched: float) -> None:
        """Report the gap of the reduced problem and the rows that this solve has touched."""
        if self.pulse is not None:
            self.pulse.note(gap, primal, self.touched + touched)


@dataclass(slots=True)
class Progress:
    """Tells when a solve has stalled, which means that rounding prevents progress, by one rule for all solvers.

    Progress is a gap below half the smallest one before, or an objective better by more than ``gain``. ``patience``:
    evaluations in a row that may bring none.
    """

    patience: int
    waited: int = 0
    least: float = inf
    best: float = inf

    def stalls(self, gap: float, objective: float = inf, gain: float = 0.0) -> bool:
        """Record an evaluation, with an objective that falls; return whether the solve has stalled."""
        self.waited += 1
        if gap < HALF * self.least or objective < self.best - gain:
            self.waited, self.least, self.best = 0, min(gap, self.least), min(objective, self.best)
        return self.waited > self.patience


@dataclass(slots=True)
class Solution:
    """What a solver returns."""

    w: Any  # shape (d,): best primal point; None where the model takes that of the dual point
    # shape (k,): feasible dual point of the survivors, multiplied by C; None where the model takes that of the primal
    # point
    alpha: Any
    epochs: int  # sweeps or Newton iterations
    touched: float  # rows of the reduced problem touched
    converged: bool  # whether the reduced gap met its target, or will in all likelihood: the certificate tells
    screened: int  # survivors that the dynamic rule fixed while solving
    solver: str  # which solver ran, e.g. ``newton`` or ``cd+newton``
    # Returns what the dynamic rule fixed while solving, int8 of shape (k,): -1 at the lower end, +1 at the upper end, 0
    # undecided. Only an audit asks for it.
    decided: Callable[[], np.ndarray] | None = None
    faces: Faces | None = None  # steps that the solver has taken, for those of the next grid point
    intercept: float = 0.0  # a free one that belongs to the pair, from which another solver may go on

    def after(self, first: Solution, **changes) -> Solution:
        """Return the solution as that of two solvers, the first of which has not converged."""
        epochs, touched = first.epochs + self.epochs, first.touched + self.touched
        return replace(self, epochs=epochs, touched=touched, solver=f"{first.solver}+{self.solver}", **changes)


@runtime_checkable
class Solver(Protocol):
    """Solves reduced problems of its model, from the start they bring, for any rule.

    A plug-in (``--solver mine.py:MySolver``) needs :meth:`solve` alone.

    Attributes
    ----------
    name : str
        For records.
    on_faces : bool, default False
        Whether it needs the compiled walk of ``walk.compiled_faces``.
    """

    name: str
    on_faces: bool = False

    def solve(self, reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap.

        Parameters
        ----------
        reduced : Reduced
            Of the model: what screening left, k rows of d features in the units of the scaled data, with a start. See
            ``problem.reduced.Reduced``; others are KernelReduced, L1Reduced and SparseReduced.
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
            ``w`` of shape (d,), ``alpha`` of shape (k,) and on the scale of ``C theta``. Nothing in it is trusted: the
            certificate is computed on the full data.
        """
        ...

    def looks_ahead(self, rows) -> bool:
        """Tell whether a start on the line through the last two dual points is better than the last one."""
        return False

    def compiled(self, rows) -> Solver | None:
        """Return the solver whose kernel a compiled walk on these rows uses, with the same numbers; None if none."""
        return None
