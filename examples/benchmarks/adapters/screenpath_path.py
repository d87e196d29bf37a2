"""screenpath itself. Its own tolerance is a certified relative gap, so the target is the setting.

The conversion of the data (checks, storage, signs) is its preparation, as for every solver here; the norms of the rows,
the model and all that a grid point takes are timed.
"""

from __future__ import annotations

import time
from inspect import signature

import screenpath
from screenpath.catalogue.losses import LAD, SVM
from screenpath.data.files.arrays import check_data
from screenpath.data.files.prepare import prepare as store
from screenpath.engine.path import Path, limits_of
from screenpath.engine.result import PathResult
from screenpath.problem.grid import explicit_grid
from screenpath.rows.memory import MemoryRows

name = "screenpath"
DEFAULTS = {  # of svm_path and lad_path
    key: signature(screenpath.svm_path).parameters[key].default
    for key in ("rule", "solver", "max_epochs", "time_limit", "seed")
}


def ladder(target: float) -> list[float]:
    return [target]


def supports(problem) -> bool:
    return hasattr(screenpath, f"{problem.model}_path")


def prepare(problem, storage="auto"):
    X, y = check_data(problem.X, problem.y)
    return (SVM if problem.model == "svm" else LAD), *store(X, storage=storage), y


def run(data, grid, tolerance, **options):
    """The PathResult, for the callers that want its steps."""
    loss, X, preparation, y = data
    kind, spec, began = {**DEFAULTS, **options}, loss.spec(), time.monotonic()
    model = loss.model(MemoryRows(X), y)
    limits = limits_of({**kind, "tol": tolerance}, began, certificates=False)
    path = Path(model, explicit_grid(grid), spec.rule(kind["rule"]), spec.solver(kind["solver"], kind["seed"]), limits)
    return PathResult(path.steps(), preparation, None)


def solve_path(data, grid, tolerance):
    yield from run(data, grid, tolerance).coefficients
