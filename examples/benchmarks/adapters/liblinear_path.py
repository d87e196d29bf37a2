"""LIBLINEAR through its official Python package: -s 3 (L1-loss SVC, dual), -s 13 -p 0 (L1-loss SVR, dual).

Its dual solvers stop after 300 sweeps whatever the tolerance, so some targets are out of its reach.
"""

from __future__ import annotations

import numpy as np
from liblinear.liblinearutil import parameter, train
from liblinear.liblinearutil import problem as liblinear_problem
from scipy import sparse

name = "liblinear"


def ladder(target: float) -> list[float]:
    return [1e-1, 1e-2, 1e-4, 1e-7]


def supports(problem) -> bool:
    return problem.model in ("svm", "lad")


def prepare(problem):
    rows = problem.X if sparse.issparse(problem.X) else sparse.csr_matrix(problem.X)
    return liblinear_problem(problem.y, rows), problem.model, problem.X.shape[1]


def solve_path(data, grid, tolerance):
    rows, model, d = data
    kind = "-s 3" if model == "svm" else "-s 13 -p 0"
    for C in grid:
        trained = train(rows, parameter(f"{kind} -c {float(C)!r} -e {float(tolerance)!r} -B -1 -q"))
        w = np.zeros(d)
        w[: trained.nr_feature] = np.ctypeslib.as_array(trained.w, (trained.nr_feature,))
        yield w if model == "lad" or trained.get_labels()[0] == 1 else -w
