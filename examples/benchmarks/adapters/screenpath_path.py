"""screenpath itself. Its own tolerance is a certified relative gap, so the target is the setting."""

from __future__ import annotations

import screenpath

name = "screenpath"


def ladder(target: float) -> list[float]:
    return [target]


def supports(problem) -> bool:
    return hasattr(screenpath, f"{problem.model}_path")


def prepare(problem):
    return problem.model, problem.X, problem.y


def run(data, grid, tolerance, **options):
    """The PathResult, for the callers that want its steps."""
    model, X, y = data
    solve = screenpath.svm_path if model == "svm" else screenpath.lad_path
    return solve(X, y, grid=grid, tol=tolerance, **options)


def solve_path(data, grid, tolerance):
    yield from run(data, grid, tolerance).coefficients
