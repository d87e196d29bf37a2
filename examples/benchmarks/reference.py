"""Lower bounds on the optimal values of a grid, from two independent sources where time allows."""

from __future__ import annotations

import numpy as np
from adapters import OURS, adapter
from problems import Problem
from suboptimality import dual

TIGHT = 1e-9  # relative gap of the reference solves
TIGHT_REHLINE = 1e-8


def bounds_from_screenpath(problem: Problem) -> np.ndarray:
    """The dual objectives that screenpath certifies at a relative gap of 1e-9.

    They are taken at its word here; any solver found below one of them stops the benchmark (check_bounds).
    """
    ours = adapter(OURS)
    result = ours.run(ours.prepare(problem), problem.grid, TIGHT)
    return np.array([step.dual for step in result.steps])


def bounds_from_rehline(problem: Problem) -> np.ndarray:
    """Dual objectives, in plain numpy, of the feasible dual points that rehline returns."""
    points = adapter("rehline").dual_points(problem, TIGHT_REHLINE)
    return np.array([dual(problem, theta, C) for C, theta in zip(problem.grid, points, strict=True)])
