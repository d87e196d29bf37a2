"""Whether the mean score over the folds has turned, so that nothing is to be hoped for behind the end of a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from screenpath.errors import UsageError
from screenpath.store.choose import Choice, one_se_above

LEAST = 3  # points on which anything is founded: one alone may be chance
PATIENCE = 0.2  # share of a grid for which the best has to stand before it is believed


def patience(points: int) -> int:
    """Return for how many points the best score of a grid of so many has to stand; as many are added at once."""
    return max(LEAST, math.ceil(PATIENCE * points))


def turned(choice: Choice, higher: bool) -> bool:
    """Tell whether the score has turned at the end of the grid, which all folds have reached.

    It has where none of the last points is better than the best before them (nor is a plateau), or where each of the
    last ``LEAST`` means is more than one standard error worse than the best: the rule by which the most regularised
    step is chosen, asked of the other end. Means that are all the same have not begun to move.
    """
    last = choice.mean.size - 1
    if np.all(choice.mean == choice.mean[0]):
        return False
    if last - choice.best >= patience(choice.mean.size):
        return True
    loss = -choice.mean if higher else choice.mean
    beyond = loss[max(choice.best + 1, last - LEAST + 1) :]
    return beyond.size == LEAST and bool(np.all(beyond > one_se_above(loss, choice.se, choice.best)))


def grown(first: np.ndarray, folds, most: int, further, has_turned, walk) -> tuple[np.ndarray, Any]:
    """Go on behind the end of a grid until the mean score has turned, some points at a time, ``most`` in all.

    ``folds`` is what was found over the ``first`` grid, and ``further(count) -> ndarray`` gives points behind it.
    ``has_turned(grid, folds) -> bool`` is true also where nothing may follow for another reason. ``walk(grid, folds)``
    goes on with the folds over a longer grid, and returns None where there is no time for it.
    """
    grid = first
    while not has_turned(grid, folds):
        count = min(len(grid) + patience(len(grid)) - len(first), most)
        longer = np.concatenate([first, further(count)])
        more = walk(longer, folds) if len(longer) > len(grid) else None
        if more is None:
            break
        grid, folds = longer, more
    return grid, folds


def check_spacing(grid, screening, rule: str, default: str) -> None:
    """Refuse a grid that cannot go on: one without a spacing, and a rule that needs a solution at its end."""
    if len(grid) < 2:
        raise UsageError("`until_turn` goes on as the grid is spaced", "use `grid` with 2 or more points")
    if screening.needs_far_end:
        raise UsageError(
            f"`rule={rule}` needs a solution at the end of the grid, which `until_turn` moves", f"use `rule={default}`"
        )


def turn_line(growth: dict) -> tuple[str, str]:
    """Return what the closing table says of a grid that goes on: ``until_turn`` of cv.json."""
    added = growth["added_points"]
    at = ", ".join(f"{name} = {value:.6g}" for name, value in growth["last"].items())
    to = f"{added} further point{'' if added == 1 else 's'} to {at}"
    if not growth["turned"]:
        return "warning", f"the mean score has not turned within {to}"
    return "mean score", f"has turned within {to}" if added else f"had turned by the end of the grid ({at})"
