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


def beta_grid(betas, beta_max: float, min_ratio: float) -> np.ndarray:
    """Return the values of ``beta`` of a sparse-SVM grid, from the largest down.

    Parameters
    ----------
    betas : int or sequence of float
        How many, log-spaced from ``beta_max`` to ``min_ratio * beta_max``; or the values. Values above ``beta_max``
        are allowed: all weights are zero there.
    beta_max : float
    min_ratio : float
        In (0, 1].

    Returns
    -------
    ndarray

    Raises
    ------
    UsageError
    """
    _check_ratio(min_ratio, "--beta-min-ratio")
    if np.ndim(betas) > 0:
        return explicit_grid(betas)[::-1].copy()
    return _downward(int(betas), beta_max, min_ratio, "--betas")


def alpha_grid(alphas, alpha_max: float, min_ratio: float, references: int = 0) -> np.ndarray:
    """Return the values of ``alpha`` of one row of a sparse-SVM grid, from the largest down.

    Parameters
    ----------
    alphas : int or sequence of float
        How many, log-spaced from ``alpha_max`` to ``min_ratio * alpha_max``; or the values.
    alpha_max : float
    min_ratio : float
        In (0, 1].
    references : int, default 0
        With explicit values: so many further values, log-spaced, before each of them (Hong 2019, Table 4: a single
        pair is reached through a path of references).

    Returns
    -------
    ndarray

    Raises
    ------
    UsageError
    """
    _check_ratio(min_ratio, "--alpha-min-ratio")
    if references < 0:
        raise UsageError(f"--references must not be negative, it is {references}")
    if np.ndim(alphas) == 0:
        return _downward(int(alphas), alpha_max, min_ratio, "--alphas")
    wanted = explicit_grid(alphas)[::-1]
    points, last = [], max(alpha_max, wanted[0])
    for alpha in wanted:
        points.extend(np.geomspace(last, alpha, references + 2)[1:-1] if alpha < last else [])
        points.append(alpha)
        last = alpha
    return np.array(points)


def _check_ratio(ratio: float, option: str) -> None:
    if not 0.0 < ratio <= 1.0:
        raise UsageError(f"{option} must be above 0 and at most 1, not {ratio}")


def _downward(count: int, top: float, ratio: float, option: str) -> np.ndarray:
    if count < 1:
        raise UsageError(f"a grid needs at least 1 point, not {count}", f"use {option} N with N >= 1")
    if count > 1 and ratio == 1.0:
        raise UsageError(f"{count} grid points need a range: the ratio of its ends is 1", f"use {option} 1")
    return log_grid(ratio * top, top, count)[::-1].copy() if count > 1 else np.array([top])
