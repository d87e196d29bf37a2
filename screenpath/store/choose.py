"""From the scores of the folds to a step: mean, standard error, best, and the one-standard-error choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from screenpath.errors import ResourceError

# Relative difference up to which means are equal: sums of rounded fractions over folds differ by some ulps if the
# underlying counts are equal. The solutions behind the scores are far less accurate.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Choice:
    """Scores over a grid and the chosen steps."""

    # mean, se: shape (steps,): mean over the folds (of all repeats) and its standard error, ``std(ddof=1) / sqrt(number
    # of folds)``. nan if a fold has no score; means that differ by rounding are the same number. Folds share
    # training samples, so the standard error is a convention, not a guarantee.
    mean: np.ndarray
    se: np.ndarray
    best: int  # step of the best mean; ties go to the first in the order of the walk, the most regularised
    # most regularised step whose mean is within one standard error of the best (Breiman et al. 1984, section 3.4.3)
    one_se: int


def choose(scores, higher: bool) -> Choice:
    """Choose a step; the first in the order of the walk is the most regularised.

    C increases along its paths, lambda decreases; on a grid of (alpha, beta) the larger beta, then the larger alpha,
    counts as more regularised. ``scores``, shape (folds, steps), are nan if a fold did not reach the step.
    """
    scores = np.asarray(scores, dtype=np.float64)
    mean = levelled(scores.mean(axis=0))
    one = scores.shape[0] == 1  # the part of a job array: its uncertainty is unknown
    se = np.full(mean.shape, np.nan) if one else scores.std(axis=0, ddof=1) / math.sqrt(scores.shape[0])
    if not np.isfinite(mean).any():
        raise ResourceError("no grid point has a score in all folds", "use a smaller grid")
    return Choice(mean, se, *best_and_one_se(mean, se, higher))


def best_and_one_se(mean, se, higher: bool) -> tuple[int, int]:
    """Return the best step and the first within one standard error of it; nan means are skipped."""
    mean = levelled(mean)
    loss = np.where(np.isfinite(mean), -mean if higher else mean, np.inf)
    best = int(loss.argmin())
    return best, int(np.flatnonzero(loss <= one_se_above(loss, se, best))[0])


def one_se_above(loss, se, best: int) -> float:
    """Return the largest loss within one standard error of the best; the best loss without a standard error."""
    return loss[best] + np.nan_to_num(se[best]) + ROUNDING * abs(loss[best])


def levelled(means) -> np.ndarray:
    """Return means of shape (steps,), replacing those that differ by rounding by the same number."""
    means = np.array(means, dtype=np.float64)
    order = np.argsort(means, kind="stable")
    ranked = means[order]
    with np.errstate(invalid="ignore"):  # nan and infinities are kept
        apart = ~(np.diff(ranked) <= ROUNDING * np.minimum(np.abs(ranked[1:]), np.abs(ranked[:-1])))
    first = np.maximum.accumulate(np.where(np.append(True, apart), np.arange(means.size), 0))
    means[order] = ranked[first]
    return means


def at_boundary(grid: list[dict], best: int) -> str | None:
    """Return which parameter of the best step is at an end of its values, in words; None for an inner one.

    ``grid`` has the parameters of every step; of two, the first varies within the rows of the second.
    """
    names = list(grid[0])
    said = []
    for rank, name in enumerate(names):
        others = names[rank + 1 :]
        values = [p[name] for p in grid if all(p[other] == grid[best][other] for other in others)]
        low, high = min(values), max(values)
        if low < high and grid[best][name] in (low, high):
            said.append(f"{name} at the {'lower' if grid[best][name] == low else 'upper'} end of the grid")
    return " and ".join(said) or None
