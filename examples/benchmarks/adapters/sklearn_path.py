"""scikit-learn's LinearSVC and LinearSVR (its copy of LIBLINEAR, without the cap on sweeps); no warm start."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR

name = "scikit-learn"
MAX_SWEEPS = 10_000_000


def ladder(target: float) -> list[float]:
    """Its stop is the largest violation of the dual's optimality conditions, in no fixed relation to the target."""
    return [10.0**-k for k in range(1, 11)]


def supports(problem) -> bool:
    return problem.model in ("svm", "lad")


def prepare(problem):
    return problem.model, problem.X, problem.y


def solve_path(data, grid, tolerance):
    model, X, y = data
    for C in grid:
        common = {"C": C, "tol": tolerance, "max_iter": MAX_SWEEPS, "fit_intercept": False, "random_state": 0}
        if model == "svm":
            solver = LinearSVC(loss="hinge", dual=True, **common)
        else:
            solver = LinearSVR(loss="epsilon_insensitive", epsilon=0.0, dual=True, **common)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the judge decides what has converged
            yield np.ravel(solver.fit(X, y).coef_)
