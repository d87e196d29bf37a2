"""The judge: objective values in plain numpy, apart from every solver and outside every timer.

A path is judged by its worst point: max over the grid of (P(w) - D) / D, where D is a lower bound on the
optimal value, the dual objective of a feasible point (gap at most 1e-9 relative, so the bound is as good as
the optimum for targets down to 1e-7). Nothing here imports screenpath.
"""

from __future__ import annotations

import numpy as np
from problems import Problem


def primal(problem: Problem, w: np.ndarray, C: float) -> float:
    """1/2 |w|^2 + C sum(loss): hinge loss max(0, 1 - y x.w) for 'svm', |y - x.w| for 'lad'."""
    scores = problem.X @ w
    if problem.model == "svm":
        loss = np.maximum(0.0, 1.0 - problem.y * scores).sum()
    else:
        loss = np.abs(problem.y - scores).sum()
    return 0.5 * float(w @ w) + C * float(loss)


def dual(problem: Problem, theta: np.ndarray, C: float) -> float:
    """C c.theta - 1/2 |C G^T theta|^2, a lower bound on the optimum for any theta in its box.

    theta in [0, 1]^n, c = 1, G = diag(y) X for 'svm'; theta in [-1, 1]^n, c = y, G = X for 'lad'.
    A theta outside the box by rounding is clipped into it.
    """
    svm = problem.model == "svm"
    theta = np.clip(theta, 0.0 if svm else -1.0, 1.0)
    w = C * (problem.X.T @ (problem.y * theta if svm else theta))
    linear = theta.sum() if svm else problem.y @ theta
    return C * float(linear) - 0.5 * float(w @ w)


def path_suboptimality(problem: Problem, path: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Relative suboptimality of each w of a path against lower bounds on the optimal values.

    Parameters
    ----------
    path : ndarray, shape (n_C, d)
    bounds : ndarray, shape (n_C,)
        Dual objective values, positive.

    Returns
    -------
    ndarray, shape (n_C,)
        Infinite where a w is not finite.
    """
    values = np.array([primal(problem, w, C) for w, C in zip(path, problem.grid, strict=True)])
    return np.where(np.isfinite(values), (values - bounds) / bounds, np.inf)


class BoundBroken(Exception):
    """Some w has an objective below the claimed lower bound: the bound is wrong."""


def check_bounds(relative: np.ndarray, who: str, slack: float = 1e-10) -> None:
    """Any solver that lands below a claimed lower bound disproves it; the benchmark must then stop."""
    if relative.min() < -slack:
        at = int(relative.argmin())
        raise BoundBroken(f"{who} is {-relative[at]:.1e} (relative) below the lower bound at grid point {at}")
