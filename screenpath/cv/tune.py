"""Several values of a kernel's gamma: which of them need all folds, and the best pair of gamma and C.

With several values of epsilon, each of them with every gamma is tried alike. A gamma is dropped as soon as the folds
walked so far prove that it cannot have the best mean score, whatever the other folds say: no score is better than
perfect. Without ``certify`` this is proven for every C of the grid, with it for every C between its ends, by the bounds
of :mod:`screenpath.cv.certify`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from screenpath.catalogue.scores import ROUNDING, averaged, optimism
from screenpath.cv.certify import ErrorBounds
from screenpath.data.words.tables import csv_text
from screenpath.engine.options import gammas_error
from screenpath.errors import UsageError
from screenpath.rows.kernel_functions import parse_gamma, scale_of
from screenpath.walk.step import CERTIFIED

LOW, HIGH = 0.01, 10.0  # ends of a number of values, over the gamma that suits the spread of the data
MOST = 1000
COLUMNS = ("C", "mean", "se", "n_folds", "best")  # after the values


def values_of(text: str, d: int, X) -> list[float]:
    """Return values of gamma, increasing: a number of them around ``scale``, or those listed, for ``d`` features."""
    if text.strip().isdecimal() and int(text):
        count, scale = int(text), scale_of(X, d)
        if count > MOST:
            raise UsageError(f"`gammas={text}` are more than {MOST} values", "use fewer, for example 10")
        spread = np.geomspace(LOW, HIGH, count) if count > 1 else np.ones(1)
        return [float(f"{scale * value:.6g}") for value in spread]  # as they are printed, so that they can be typed
    values = [parse_gamma(one, d, X) for one in text.split(",")]
    if len(set(values)) < len(values) or min(values) <= 0.0 or not all(map(math.isfinite, values)):
        raise gammas_error(text)
    return sorted(values)


def nearest_first(gammas: Sequence[float], scale: float) -> list[float]:
    """Return the values in the order of the walk: good ones early prove most of the others worse."""
    return sorted(gammas, key=lambda gamma: (abs(math.log(gamma / scale)), gamma))


@dataclass(frozen=True)
class Tried:
    """What folds say about one gamma, and one epsilon where several are tried."""

    gamma: float
    epsilon: float | None
    scores: np.ndarray  # shape (folds walked, steps)
    folds: int  # in all
    higher: bool  # whether a higher score is better
    certified: bool  # whether every step of these folds is
    least: float | None = None  # with ``certify``: the exact solution has no smaller error, at any C of the range
    dropped: bool = False  # whether these folds prove that another gamma is better

    @property
    def named(self) -> dict[str, float]:
        """Return its values by name."""
        return {"gamma": self.gamma, **({} if self.epsilon is None else {"epsilon": self.epsilon})}

    @property
    def loss(self) -> np.ndarray:
        """Return by how much each step's mean score is worse than perfect, at least: shape (steps,)."""
        return (1.0 - self.scores if self.higher else self.scores).sum(axis=0) / self.folds

    def best(self) -> tuple[float, int]:
        """Return the smallest mean loss and the first step that has it, up to rounding."""
        loss = self.loss
        return float(loss.min()), int(np.flatnonzero(loss <= loss.min() + ROUNDING)[0])


def tried(named: dict, paths: list, folds: int, higher: bool, certify: bool, known: float) -> Tried:
    """Return what the paths of the first folds say about values; ``known`` is the mean loss of the best so far."""
    scores = np.array([[row["score"] for row in path.rows] for path in paths])
    certified = all(row["status"] == CERTIFIED for path in paths for row in path.rows)
    found = Tried(named["gamma"], named.get("epsilon"), scores, folds, higher, certified)
    worse = found.best()[0] > known + ROUNDING
    if certify and (worse or len(paths) == folds):
        bounds = ErrorBounds([path.held_out for path in paths])
        found = replace(found, least=bounds.lower / bounds.denominator * len(paths) / folds * (1.0 - ROUNDING))
        worse = worse and found.least > known + ROUNDING
    return replace(found, dropped=worse and len(paths) < folds)


def walk(session) -> list:
    """Walk the folds of a session with each gamma, take the best one for all data, too, and return its folds.

    Where the time is up first, the folds so far are returned without rows: there is nothing to choose from.
    """
    task, every, best, kept = session.task, [], None, None
    epsilons = [{} if value is None else {"epsilon": value} for value in session.options["epsilons"] or [None]]
    values = [{"gamma": gamma, **more} for gamma in session.gammas for more in epsilons]
    with session.console.busy(f"cv {session.spec.name}", unit="folds", total=len(values) * len(session.splits)):
        for named in values:
            options = {**task.options, **named, "largest_gamma": max(session.gammas)}
            session.task = replace(task, options=options, run=" ".join([task.run, *map(repr, named.values())]))
            found, folds = _walk_one(session, named, math.inf if best is None else best.best()[0])
            if found is None:
                return [replace(fold, rows=[]) for fold in folds]
            every.append(found)
            if not found.dropped and chosen(every) is found:
                best, kept = found, (session.task, folds)
    assert best is not None and kept is not None  # the first gamma has nothing to be dropped for
    (session.task, folds), session.tried = kept, (every, best)
    session.tuned = record(every, session.grid, best)
    session.sink.write_output("gammas.csv", table(every, session.grid, best))
    session.take_tuned(best.named)
    return folds


def _walk_one(session, named: dict, known: float) -> tuple[Tried | None, list]:
    """Walk as many folds as it takes to know whether the values of the session's task may beat the ``known`` mean loss.

    Return what they say, None where the time was up, and their paths.
    """
    o, splits, grid = session.options, session.splits, session.grid
    folder, folds, found = session.next_round(), [], None
    words = "".join(f", {name} = {value:.3g}" for name, value in named.items())
    batch = len(splits) if o["scheduler"] else o["jobs"]
    for start in range(0, len(splits), batch):
        part = splits[start : start + batch]
        folds += session.walk_folds(grid, o["tol"], folder, words, splits=part)
        if not all(len(fold.rows) == len(grid) for fold in folds):
            return None, folds
        for count in range(start + 1, len(folds) + 1):  # as few as prove it, with any number of jobs
            found = tried(named, folds[:count], len(splits), session.score.higher, o["certify"], known)
            if found.dropped:
                return found, folds
    return found, folds


def chosen(every: Sequence[Tried]) -> Tried:
    """Return the gamma with the best mean score; of equal ones the smallest."""
    whole = [one for one in in_order(every) if not one.dropped]
    least = min(one.best()[0] for one in whole)
    return next(one for one in whole if one.best()[0] <= least + ROUNDING)


def in_order(every: Sequence[Tried]) -> list[Tried]:
    return sorted(every, key=lambda one: tuple(one.named.values()))


def optimism_of(every: Sequence[Tried], best: Tried) -> float | None:
    """Return the optimism of the best of all pairs; dropped gammas have not been scored in all folds."""
    whole = [best, *(one for one in every if not one.dropped and one is not best)]
    return optimism(np.concatenate([one.scores for one in whole], axis=1), best.best()[1], best.higher)


def table(every: Sequence[Tried], grid: Sequence[float], best: Tried) -> str:
    """Return gammas.csv: mean and standard error of every pair, over the folds that were walked."""
    rows = []
    for one in in_order(every):
        mean, se = averaged(one.scores)
        for step, C in enumerate(grid):
            mark = int(one is best and step == one.best()[1])
            rows.append((*one.named.values(), float(C), float(mean[step]), float(se[step]), len(one.scores), mark))
    return csv_text((*best.named, *COLUMNS), rows)


def record(every: Sequence[Tried], grid: Sequence[float], best: Tried) -> dict:
    """Return the entries of cv.json: the chosen gamma, and what is known about each; ``difference``, with
    ``certify``, is by how much any gamma, with any C of the range, could be better than the chosen pair.
    """
    found = []
    for one in in_order(every):
        entry = {**one.named, "folds": len(one.scores), "dropped": one.dropped, "certified": one.certified}
        loss, step = one.best()
        if not one.dropped:
            entry |= {"C": float(grid[step]), "mean": 1.0 - loss if one.higher else loss}
        found.append(entry | ({} if one.least is None else {"lower_bound": one.least}))
    bounds = [one.least for one in every if one.least is not None]
    difference = {"difference": max(best.best()[0] - min(bounds), 0.0)} if bounds else {}
    return {**best.named, "pairs": len(found) * len(grid), "gammas": found, **difference}


def refined(found: dict, bounds: ErrorBounds, added: int) -> dict:
    """Return the entry of cv.json with the bounds of the chosen gamma, to whose grid values of C have been added."""
    new = bounds.record()
    own = {"C": new["best_C"], "mean": 1.0 - new["best_error"], "lower_bound": new["lower_bound"]}
    every = [one | own if one["gamma"] == found["gamma"] else one for one in found["gammas"]]
    lowest = min(one["lower_bound"] for one in every if "lower_bound" in one)
    difference = max(new["best_error"] - lowest, 0.0)
    return {**found, "gammas": every, "pairs": found["pairs"] + added, "difference": difference}
