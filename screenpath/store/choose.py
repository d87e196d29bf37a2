"""From the scores of the folds to a grid point: mean, standard error, best, and the one-standard-error choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from screenpath.errors import ResourceError

# Means that differ by less, relatively, are equal: sums over folds of rounded fractions differ by some ulps where the
# counts behind them are the same. The scores themselves are of solutions that are far less accurate.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Choice:
    """Scores over a grid and what follows from them."""

    # mean, se: shape (steps,): mean over the folds (of all repeats) and its standard error, ``std(ddof=1) / sqrt(number
    # of folds)``. nan where a fold has no score; means that are equal but for rounding are the same number. Folds share
    # training samples, so that the standard error is a convention, not a guarantee.
    mean: np.ndarray
    se: np.ndarray
    best: int  # step of the best mean; of equal ones the first in the order of the walk, the most regularised
    # most regularised step whose mean is within one standard error of the best (Breiman et al. 1984, section 3.4.3)
    one_se: int


def choose(scores, higher: bool) -> Choice:
    """Choose a step; the first in the order of the walk is the most regularised.

    Paths of C go upwards, those of lambda downwards; a grid of (alpha, beta) counts the larger beta, then the larger
    alpha, as the more regularised. ``scores``, shape (folds, steps), are nan where a fold did not get to the step.
    """
    scores = np.asarray(scores, dtype=np.float64)
    mean = levelled(scores.mean(axis=0))
    one = scores.shape[0] == 1  # the part of a job array: nothing is known of its uncertainty
    se = np.full(mean.shape, np.nan) if one else scores.std(axis=0, ddof=1) / math.sqrt(scores.shape[0])
    if not np.isfinite(mean).any():
        raise ResourceError("no grid point has a score in all folds", "use a smaller grid")
    return Choice(mean, se, *best_and_one_se(mean, se, higher))


def best_and_one_se(mean, se, higher: bool) -> tuple[int, int]:
    """Return the best step and the first within one standard error of it; nan means are passed over."""
    mean = levelled(mean)
    loss = np.where(np.isfinite(mean), -mean if higher else mean, np.inf)
    best = int(loss.argmin())
    return best, int(np.flatnonzero(loss <= one_se_above(loss, se, best))[0])


def one_se_above(loss, se, best: int) -> float:
    """Return the largest loss within one standard error of the best, none without a standard error."""
    return loss[best] + np.nan_to_num(se[best]) + ROUNDING * abs(loss[best])


def levelled(means) -> np.ndarray:
    """Return means of shape (steps,), those that are equal but for rounding as the same number."""
    means = np.array(means, dtype=np.float64)
    order = np.argsort(means, kind="stable")
    ranked = means[order]
    with np.errstate(invalid="ignore"):  # nan and infinities stay what they are
        apart = ~(np.diff(ranked) <= ROUNDING * np.minimum(np.abs(ranked[1:]), np.abs(ranked[:-1])))
    first = np.maximum.accumulate(np.where(np.append(True, apart), np.arange(means.size), 0))
    means[order] = ranked[first]
    return means


def at_boundary(grid: list[dict], best: int) -> str | None:
    """Say which parameter of the best step stands at an end of its values; None for an inner one.

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
