"""skglm's LinearSVC: working sets and Anderson-accelerated coordinate descent on the dual, warm-started."""

from __future__ import annotations

import warnings

import numpy as np
from skglm import LinearSVC
from sklearn.exceptions import ConvergenceWarning

name = "skglm"


def ladder(target: float) -> list[float]:
    return [10.0**-k for k in range(2, 10)]


def supports(problem) -> bool:
    return problem.model == "svm"


def prepare(problem):
    return problem.X, problem.y


def solve_path(data, grid, tolerance):
    X, y = data
    solver = LinearSVC(tol=tolerance, fit_intercept=False, warm_start=True, max_iter=200)
    for C in grid:
        solver.C = C
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the judge decides what has converged
            yield np.ravel(solver.fit(X, y).coef_).copy()
