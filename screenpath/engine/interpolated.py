"""The model of a linear path at any C of its range: the mean of the two steps around it, with its proven gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.data.files.dataset import RowsLike
from screenpath.errors import NoStep, UsageError
from screenpath.problem.between import Between, Range, Solved
from screenpath.walk.step import SKIPPED


@dataclass(frozen=True, repr=False)
class Interpolated:
    """The model of a path at one ``C``: without a solve, and without the data. Weights and intercept are means of two.

    ``gap`` and ``rel_gap`` are upper bounds of the gap of these weights on the full data, rounding counted, and of the
    gap over the primal value (:mod:`screenpath.problem.between` has the formula).
    """

    path: Any  # Result
    C: float
    steps: tuple  # the two Steps around C; one if C is that of a step
    share: float  # how far C is from the first of them to the second, from 0 to 1
    gap: float
    rel_gap: float

    def __repr__(self) -> str:
        return f"<Interpolated: C = {self.C:.6g}, {self.words}>"

    @property
    def words(self) -> str:
        """Return where it lies, and what is proven."""
        first, *second = (step.step for step in self.steps)
        where = f"between steps {first} and {second[0]}" if second else f"step {first}" if self.path[1:] else "solved"
        return f"{where}, relative gap at most {self.rel_gap:.2g}"

    def mean(self, of) -> Any:
        """Return the mean of what ``of`` returns for the steps."""
        first, *second = map(of, self.steps)
        return (1.0 - self.share) * first + self.share * second[0] if second else first

    @property
    def coef(self) -> Any:
        """Return the weights in the units of the data, as :meth:`Result.coef` has them."""
        return self.mean(self.path.weights_of)

    @property
    def intercept(self) -> float | np.ndarray:
        """Return the intercept in the units of the data, or one a class."""
        return self.mean(lambda step: self.path._solution(step)[1])

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return ``x.w + b`` of new rows, see :meth:`Result.decision_function`."""
        rows = self.path._rows(X)
        return self.mean(lambda step: self.path._forms(rows, step))

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return labels, or the values of a regression, see :meth:`Result.predict`."""
        return self.path._labelled(self.decision_function(X))


def interpolated(path, C: float) -> Interpolated | None:
    """Return the model at ``C``; None if the path has no solved steps around it."""
    steps = sorted(filter(is_solved, path.steps), key=lambda step: step.C)
    grid = [step.C for step in steps]
    if not grid or not grid[0] <= C <= grid[-1]:
        return None
    k = int(np.searchsorted(grid, C))
    if grid[k] == C:
        return Interpolated(path, C, (steps[k],), 0.0, steps[k].gap, steps[k].rel_gap)
    between = Between.of(*(solved(path, step) for step in steps[k - 1 : k + 1]))
    return Interpolated(path, C, tuple(steps[k - 1 : k + 1]), between.share(C), between.gap(C), between.rel_gap(C))


def at_missing(path, missing: NoStep) -> Interpolated:
    """Return the model at the C that no step of a path has; where there is none, raise what says so."""
    found = interpolated(path, missing.wanted["C"]) if is_linear(path) else None
    if found is None:
        raise missing
    return found


def is_solved(step) -> bool:
    """Tell whether a step has a solution, with a gap that is known."""
    return step.status != SKIPPED and step.primal is not None and step.gap is not None and step.C > 0.0


def solved(path, step) -> Solved:
    """Return a step of a linear path as :class:`Between` takes it."""
    return Solved(step.C, step.primal, step.dual, step.gap, *path._penalised(step))


def is_linear(path) -> bool:
    """Tell whether a path has a grid of C, and weights of features: those of a kernel belong to samples."""
    return not path._of_samples and list(path.steps[0].parameters) == ["C"]


def check_linear(path) -> None:
    """Refuse a path that is not linear."""
    if not is_linear(path):
        raise UsageError(
            "only linear paths over C are interpolated: svm, lad, quantile and svr without a kernel",
            "name a step of the path",
        )


def worst_between(path) -> Range:
    """Return the worst C of all between the steps, and what is proven there."""
    found = Range()
    for step in path.steps:
        if is_solved(step):
            found.add(solved(path, step))
    return found
