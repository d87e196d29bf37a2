"""The model of a linear path at any C, or level, of its range: the mean of two steps, with its proven gap."""

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
    """The model of a path at one ``C``, or level: without a solve, and without the data. Its weights are means of two.

    ``gap`` and ``rel_gap`` are upper bounds of the gap of these weights on the full data, rounding counted, and of the
    gap over the primal value (:mod:`screenpath.problem.between` has the formula).
    """

    path: Any  # Result
    C: float  # or the level: tau, epsilon
    steps: tuple  # the two Steps around C; one if C is that of a step
    share: float  # how far C is from the first of them to the second, from 0 to 1
    gap: float
    rel_gap: float

    def __repr__(self) -> str:
        return f"<Interpolated: {self.name} = {self.C:.6g}, {self.words}>"

    @property
    def name(self) -> str:
        """Return what :attr:`C` is: C, tau or epsilon."""
        return followed(self.path)

    @property
    def words(self) -> str:
        first, *second = (step.step for step in self.steps)
        where = f"between steps {first} and {second[0]}" if second else f"step {first}" if self.path[1:] else "solved"
        return f"{where}, relative gap at most {self.rel_gap:.2g}"

    def mean(self, of) -> Any:
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
    """Return the model at ``C``, or at that level; None if the path has no solved steps around it."""
    name = followed(path)
    steps = sorted(filter(is_solved, path.steps), key=lambda step: step.cells[name])
    grid = [step.cells[name] for step in steps]
    if not grid or not grid[0] <= C <= grid[-1]:
        return None
    k = int(np.searchsorted(grid, C))
    if grid[k] == C:
        return Interpolated(path, C, (steps[k],), 0.0, steps[k].gap, steps[k].rel_gap)
    between = Between.of(*(solved(path, step) for step in steps[k - 1 : k + 1]))
    return Interpolated(path, C, tuple(steps[k - 1 : k + 1]), between.share(C), between.gap(C), between.rel_gap(C))


def at_missing(path, missing: NoStep) -> Interpolated:
    """Return the model at the C, or level, that no step of a path has; where there is none, raise what says so."""
    name = followed(path)
    found = interpolated(path, missing.wanted[name]) if name else None
    if found is None:
        raise missing
    return found


def is_solved(step) -> bool:
    """Tell whether a step has a solution, with a gap that is known."""
    known = step.status != SKIPPED and step.primal is not None and step.gap is not None
    return known and (step.cells.get("C", 1.0) > 0.0)


def solved(path, step) -> Solved:
    """Return a step of a linear path as :class:`Between` takes it."""
    return solved_of(step.cells, followed(path), *path._penalised(step))


def solved_of(cells: dict, name: str, w: np.ndarray, off: float = 0.0) -> Solved:
    """Return a row of the step table as :class:`Between` takes it, with the penalised weights and their error."""
    at, primal, dual, gap = (cells[key] for key in (name, "primal", "dual", "gap"))
    slope = (cells["slope"], cells["slope_error"]) if "slope" in cells else None
    return Solved(at, primal, dual, gap, w, off, slope)


def followed(path) -> str:
    """Return what a path with weights of features follows: C, or a level of the loss; empty if it is neither."""
    first = path.steps[0]
    names = list(first.parameters)
    pairs = np.ndim(getattr(first, "coefficients", None)) == 2  # of labels: their sums are not those of one row
    return "" if path._of_samples or pairs else names[0] if names == ["C"] or "slope" in first.cells else ""


def is_linear(path) -> bool:
    """Tell whether a path has a grid of C, and weights of features: those of a kernel belong to samples."""
    return followed(path) == "C"


def check_linear(path, levels: bool = False) -> None:
    """Refuse a path that is not linear; one over a level of the loss unless ``levels``."""
    if not is_linear(path) and not (levels and followed(path)):
        what = "are interpolated" if levels else "are solved between their steps"
        why = f"only linear paths over C {what}: svm, lad, quantile and svr without a kernel"
        raise UsageError(why, "name a step of the path")


def worst_between(path) -> Range:
    """Return the worst C of all between the steps, and what is proven there."""
    found = Range()
    for step in path.steps:
        if is_solved(step):
            found.add(solved(path, step))
    return found
