"""ReHLine (Dai and Qiu 2023), warm-started along the path through its compiled entry point.

The estimator classes copy and check the data at every C; the compiled function does not, which is the fastest
way to use the package. Its dual variable Lambda lies in [0, 1] for any C, so the previous one is the warm start.
"""

from __future__ import annotations

import numpy as np
from rehline._internal import rehline_internal, rehline_result, rehline_sparse_internal
from scipy import sparse

name = "rehline"
MAX_SWEEPS = 10_000_000
NO_ROWS = np.empty((0, 0))
NO_VECTOR = np.empty(0)


def ladder(target: float) -> list[float]:
    """Its stop is |primal - dual| / max(1, |primal|, |dual|), an upper bound on the suboptimality."""
    return [target * factor for factor in (3, 1, 0.3, 0.1, 0.01)]


def supports(problem) -> bool:
    return problem.model in ("svm", "lad")


def prepare(problem):
    """Loss as a sum of ReLU(u x.w + v): hinge u = -y, v = 1; absolute value u = +-1, v = -+y."""
    y = problem.y
    if problem.model == "svm":
        U, V = -y[None, :], np.ones((1, len(y)))
    else:
        U, V = np.vstack([np.ones_like(y), -np.ones_like(y)]), np.vstack([-y, y])
    if sparse.issparse(problem.X):
        return rehline_sparse_internal, problem.X, U, V
    return rehline_internal, np.asfortranarray(problem.X), U, V


def solve_path(data, grid, tolerance):
    for result in results(data, grid, tolerance):
        yield result.beta


def results(data, grid, tolerance):
    """The package's own result objects, one for each C (beta and the dual Lambda)."""
    solve, X, U, V = data
    no_constraints = np.empty((0, X.shape[1]))
    no_rehu = np.empty((0, X.shape[0]))
    warm = None
    for C in grid:
        result = rehline_result()
        if warm is not None:
            result.Lambda = warm
        solve(result, X, no_constraints, NO_VECTOR, NO_VECTOR, C * U, C * V, no_rehu, no_rehu, no_rehu,
              MAX_SWEEPS, tolerance, 1, 0, 100)  # fmt: skip
        warm = result.Lambda
        yield result


def dual_points(problem, tolerance):
    """theta at each C, for lower bounds: Lambda itself for the hinge, the difference of the two for LAD."""
    for result in results(prepare(problem), problem.grid, tolerance):
        yield result.Lambda[0] if problem.model == "svm" else result.Lambda[1] - result.Lambda[0]
