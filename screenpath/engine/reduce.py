"""Small data that suffice for every C of a range: rows that may matter there, and one mean row for each side.

A row on one side of its kink at the optimum of every C of the range adds a linear function to the objective. Those of
one side add up to that of their mean row with the sum of their weights, which lies on that side too; rows without a
slope there add nothing. So the reduced problem has the same optima and the same optimal value for every C of the range
(Ogawa 2013). Several C prove the sides: between two, the ball of the interpolated solution
(:mod:`screenpath.problem.between`), or with a free intercept the levers of both (:mod:`screenpath.regions.lever`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.option import Option
from screenpath.data.files.dataset import FileLike
from screenpath.data.words.labels import label_text
from screenpath.engine.path import Path
from screenpath.engine.run_problem import problem_of_run
from screenpath.engine.stored import StoredPath, load_run
from screenpath.errors import UsageError, folder_of
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD
from screenpath.problem.between import Between, Solved
from screenpath.problem.between_levers import LeversBetween
from screenpath.problem.grid import log_grid
from screenpath.regions.geometry import Ball
from screenpath.screen.box import pair_ball, pair_radius
from screenpath.store.open import Run

ACCURACY = 1e-10  # relative gap of the solutions, if that of the run is larger
SPACING = 1.1  # ratio of neighbouring C, at most
FEWER, ROUNDS = 0.98, 5  # steps are added, at most so often, while that leaves fewer than this share of the rows open
SOME, NEARLY = 8, 0.05  # for rows open between so many neighbours, or this share of them: others seldom are decided


@dataclass(frozen=True, repr=False)
class ReducedData:
    """Rows, targets and weights with the optimum of a whole run, for every C from ``low`` to ``high``."""

    X: np.ndarray | sp.csr_array  # the kept rows, then the means: in the units of the data, or as scaled by the run
    y: np.ndarray  # labels are -1 and +1
    weights: np.ndarray  # a mean row weighs as much as its rows
    kept: np.ndarray  # numbers (from 0) of the rows that are kept
    low: float
    high: float
    of: int  # rows of the data
    problem: str  # what is solved with the weights s_i
    scaled: str  # kind of scaling
    labels: tuple  # of the data, those of -1 and +1; none of a regression
    bias: float

    def __repr__(self) -> str:
        return f"<ReducedData: {self.statement[0]}>"

    @property
    def statement(self) -> list[str]:
        """Return what the data suffice for, and how another solver is to take them: a line each."""
        means = self.y.size - self.kept.size
        lines = [
            f"{self.kept.size:,} of {self.of:,} rows and {means} mean row{'s' * (means != 1)}",
            f"same optimum for every C from {self.low:g} to {self.high:g}: {self.problem}",
        ]
        lines += [f"add the constant feature {self.bias:g} to each row: it is not written"] if self.bias else []
        lines += [f"rows are scaled as by the run ({self.scaled}): do not scale them"] if self.scaled != "none" else []
        signs = [f"{side} is {label_text(label)}" for side, label in zip(("-1", "+1"), self.labels, strict=False)]
        return lines + ([f"labels: {', '.join(signs)}"] if signs else [])


def reduce_run(
    run: FileLike, low: float | None = None, high: float | None = None, training: FileLike | tuple | None = None
) -> ReducedData:
    """Return small data with the optimum of a run for every C of a range: for any solver that accepts weights.

    The run is of ``svm``, ``lad``, ``quantile`` or ``svr`` without a kernel, of two labels. Its training data (or
    ``training``, as of :func:`load_run`) are read, and a path between the ends is solved: by default those of the run.
    """
    low, high = (Option(n, kind="positive").checked(one) for n, one in (("low", low), ("high", high)))
    path = run if training is None and isinstance(run, StoredPath) else load_run(folder_of(run), training)
    return reduced(path.run, low, high, path.training)


def reduced(run: Run, low: float | None, high: float | None, training: str | tuple | None = None) -> ReducedData:
    if run.model not in LOSSES or run.kernel or run.classes or run.parameters != ["C"]:
        what = "only data of linear paths are reduced: svm of two labels, lad, quantile and svr"
        raise UsageError(what, "leave the data whole")
    grid = np.sort([row["C"] for row in run.steps])
    low, high = grid[0] if low is None else float(low), grid[-1] if high is None else float(high)
    if not 0.0 < low < high < np.inf:
        raise UsageError(f"C from {low:g} to {high:g} is no range", "give two ends above 0, the smaller one first")
    spaced = log_grid(low, high, 2 + int(np.log(high / low) / np.log(SPACING)))
    values = np.unique([*spaced, *grid[(grid > low) & (grid < high)]])
    with problem_of_run(run, training, ACCURACY) as (spec, options, data):
        status, values = _status(spec, options, data, values)
        X, y, weights, kept = _rows(Path.of(spec, options, data, values).model, data, LOSSES[run.model], status)
    scaled = data.preparation.kind if data.preparation.fill is None else f"{data.preparation.kind}, gaps filled"
    bias = 0.0 if spec.free_bias else data.preparation.bias
    ends = float(low), float(high)
    return ReducedData(X, y, weights, kept, *ends, data.shape[0], spec.objective, scaled, tuple(run.sides[:2]), bias)


def _status(spec, options: dict, data, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return -1 (lower end) or +1 for every dual variable that is there at the optimum of every C, else 0; and the
    steps that were solved for it.

    Steps are added where they may pay: between two that leave a variable open which is on one side nearly everywhere.
    """
    whole = np.ones(values.size - 1, dtype=bool), slice(None)
    known = np.array([*_sides(spec, options, data, values, *whole)])
    status = _common(known)
    rows = np.flatnonzero(status == 0)
    known = known[:, rows]
    for _ in range(ROUNDS):
        one_side = (known >= 0).all(axis=0) | (known <= 0).all(axis=0)
        nearly = one_side & (np.count_nonzero(known == 0, axis=0) <= max(SOME, NEARLY * len(known)))
        split = (known[:, nearly] == 0).any(axis=1)
        if not split.any():
            break
        values = np.sort(np.append(values, np.sqrt(values[:-1] * values[1:])[split]))
        known, new = np.repeat(known, 1 + split, axis=0), np.repeat(split, 1 + split)
        finer = np.array([*_sides(spec, options, data, values, new, rows)])
        known[new] = np.where(finer != 0, finer, known[new])
        status[rows] = _common(known)
        left = status[rows] == 0
        fewer = np.count_nonzero(left) < FEWER * rows.size
        rows, known = rows[left], known[:, left]
        if status.any() and not fewer:
            break
    return status, values


def _common(known: np.ndarray) -> np.ndarray:
    """Return the sides that are the same from each step to the next, else 0."""
    return np.where((known > 0).all(axis=0), 1, np.where((known < 0).all(axis=0), -1, 0))


def _sides(spec, options: dict, data, values: np.ndarray, asked: np.ndarray, which) -> Iterator[np.ndarray]:
    """Yield the sides of some dual variables from one step to the next, int8, where they are asked for."""
    way = Path.of(spec, options, data, values)
    for ends, wanted in zip(pairwise(certificate for _, certificate in way.walk()), asked, strict=True):
        if wanted:
            yield _between(way.model, *ends, which).astype(np.int8)


def _between(model, first, second, which) -> np.ndarray:
    """Return the sides of some dual variables from one solved C to the next."""
    if first.intercept is not None:
        levers, signs = LeversBetween.of(model, first, second), model.signs[which]
        left = levers.open_shares(
            lambda vector: signs * model.margins(vector)[which], model.norms[which], model.signless.kinks[which]
        )
        above, below = left[:, 0] > left[:, 1]
        return signs * np.where(above, -1, np.where(below, 1, 0))
    ends = [Solved(one.C, one.primal, one.dual, one.gap, one.point.vector) for one in (first, second)]
    radius = sqrt(Between.of(*ends).worst[1])
    # The centre of a pair's ball lies halfway between w and the primal point of its dual.
    radius += max(pair_ball(one, one.C).radius - pair_radius(one, one.C) for one in (first, second))
    one, other = (model.screen(Ball(one.point, OUTWARD * radius)).status for one in (first, second))
    return np.where(one == other, one, 0)[which]


def _rows(model, data, loss, status: np.ndarray) -> tuple:
    """Return rows, targets and weights of the reduced data, and which rows were kept."""
    n, p = model.rows.n, data.preparation
    sides = status.reshape(-1, n)  # two dual variables a row if the loss is mirrored
    slopes = np.where(status > 0, model.hi, model.lo).reshape(-1, n)
    settled = np.all(sides != 0, axis=0)
    kept = np.flatnonzero(~settled)
    group = np.where(settled & np.any(slopes != 0.0, axis=0), 4.0 * sides[0] + (data.targets if loss.signed else 0), 0)
    s = np.ones(n) if data.weights is None else data.weights
    parts = [s * (group == one) for one in np.unique(group[group != 0.0])]
    taken = model.rows.take(kept, np.ones(kept.size))
    taken = sp.csr_array(taken, shape=(kept.size, model.rows.d)) if isinstance(taken, tuple) else taken
    sums = [model.rows.weighted_sum(part) / part.sum() for part in parts]
    means = np.array(sums).reshape(len(sums), model.rows.d)
    X = sp.csr_array(sp.vstack([taken, means])) if sp.issparse(taken) else np.vstack([taken, means])
    X = X[:, : p.n_features]
    if p.kind == "none" and p.shift is not None:  # columns far from 0 were centred, which changes the intercept alone
        X = X + (sp.csr_array(np.ones((X.shape[0], 1))) @ sp.csr_array(p.shift[None]) if sp.issparse(X) else p.shift)
    targets = [float(part @ data.targets) / float(part.sum()) for part in parts]
    y, weights = np.append(data.targets[kept], targets), np.append(s[kept], [part.sum() for part in parts])
    return p.widened(X), y, weights, kept
