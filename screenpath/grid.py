"""Grids of parameters."""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError


def log_grid(low: float, high: float, count: int) -> np.ndarray:
    """Return ``count`` values from ``low`` to ``high``, equally spaced in the logarithm, ends exact.

    Parameters
    ----------
    low, high : float
        Positive and finite, ``low <= high``.
    count : int
        At least 1; a single value is ``low`` and then needs ``low == high``, or is the one value asked for.

    Returns
    -------
    ndarray of shape (count,)

    Raises
    ------
    UsageError
        For ends that make no grid.
    """
    if count < 1:
        raise UsageError(f"a grid needs at least 1 point, not {count}", "use --grid N with N >= 1")
    for name, value in (("lower", low), ("upper", high)):
        if not (np.isfinite(value) and value > 0.0):
            raise UsageError(f"the {name} end of the grid must be positive and finite, not {value}")
    if low > high or (count > 1 and low == high):
        raise UsageError(f"the grid's lower end {low:g} must be below its upper end {high:g}", "swap --cmin and --cmax")
    if count == 1:
        return np.array([low])
    grid = np.geomspace(low, high, count)
    grid[0], grid[-1] = low, high
    return grid


def explicit_grid(values) -> np.ndarray:
    """Return the given parameters as an increasing array.

    Raises
    ------
    UsageError
        If a value is not positive and finite, or appears twice.
    """
    grid = np.sort(np.asarray(list(values), dtype=np.float64))
    if grid.size == 0:
        raise UsageError("the list of parameters is empty", "give for example --c-list 0.1,1,10")
    if not np.all(np.isfinite(grid)) or grid[0] <= 0.0:
        raise UsageError("every parameter of the list must be positive and finite")
    if np.any(np.diff(grid) == 0.0):
        raise UsageError(f"the parameter {grid[:-1][np.diff(grid) == 0.0][0]:g} appears twice in the list")
    return grid
