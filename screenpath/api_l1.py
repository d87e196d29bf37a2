"""The Python API of the L1-regularised squared-hinge SVM."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from screenpath.api import check_data, two_labels
from screenpath.errors import DataError, UsageError
from screenpath.grid import explicit_grid, log_grid
from screenpath.models.l1svm import L1SVM
from screenpath.prepare import prepare
from screenpath.results import PathResult, path_options, walked
from screenpath.rows.columns import Columns
from screenpath.rules.l1svm import parse_feature_rule
from screenpath.solvers.l1cd import FeatureDescent
from screenpath.steps import Steps

SOLVERS = ("auto", "cd", "newton")


def l1_svm_path(
    X,
    y,
    *,
    grid=20,
    log=False,
    lambda_min_ratio=0.05,
    rule="vi+gap",
    solver="auto",
    tol=1e-6,
    scale="none",
    storage="auto",
    dtype=np.float64,
    threads=1,
    max_epochs=100_000,
    time_limit=None,
) -> PathResult:
    r"""Compute a certified path of L1-regularised squared-hinge SVMs with a free bias (Zhao, Liu, Cox 2014).

    ``min_{w,b} 1/2 sum_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1``; the bias is not penalised.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : array_like of shape (n,)
        Two labels; the larger is +1.
    grid : int or sequence of float, default 20
        Number K of values ``lambda_max / k``, k = 1..K (the paper's grid), or the values themselves, walked from the
        largest down.
    log : bool, default False
        Space the K values evenly in the logarithm, from ``lambda_max`` to ``lambda_min_ratio * lambda_max``.
    lambda_min_ratio : float, default 0.05
        Used with ``log``.
    rule : {"vi+gap", "vi", "gap", "none"}
    solver : {"auto", "newton", "cd"}
        ``auto`` and ``newton`` finish working sets by Newton steps, ``cd`` uses coordinate descent alone.
    tol : float, default 1e-6
        Relative duality gap of every grid point, on the full data.
    scale : {"none", "maxabs", "standard", "l2"}
        Coefficients are reported in the units of ``X`` all the same.
    storage : {"auto", "dense", "sparse"}
    dtype : float64 or float32
        Type of the stored values; everything that decides or certifies is float64.
    threads : int, default 1
    max_epochs : int
        Sweeps and Newton steps of one grid point.
    time_limit : float, optional
        Seconds for the whole call; grid points after it are steps ``skipped``, with coefficients of nan.

    Returns
    -------
    PathResult

    Raises
    ------
    DataError, UsageError

    Examples
    --------
    >>> import numpy as np
    >>> from screenpath import l1_svm_path
    >>> X = np.array([[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]])
    >>> path = l1_svm_path(X, [1, 1, -1, -1], grid=3)
    >>> [step.nnz_w for step in path.steps]
    [0, 1, 2]
    """
    began = time.monotonic()
    model, preparation = l1_svm_model(X, y, scale=scale, storage=storage, dtype=dtype, threads=threads)
    values = lambda_grid(model, grid, log, lambda_min_ratio)
    how = parse_feature_rule(rule), make_feature_solver(solver)
    found = run_l1_path(model, values, *how, tol, max_epochs, time_limit, began)
    return PathResult(found, preparation, two_labels(check_data(X, y)[1]))


def l1_svm_model(X, y, *, scale="none", storage="auto", dtype=np.float64, threads=1):
    """Return the model of some data, and the map back to the data's units.

    Returns
    -------
    model : L1SVM
    preparation : Preparation
        Its bias is 1: the coefficients of a step end with the free bias.
    """
    from screenpath.read.labels import binary_labels

    X, y = check_data(X, y)
    signs, _ = binary_labels(y)
    prepared, preparation = prepare(X, scale, 0.0, storage, dtype, narrow=True)
    return L1SVM(Columns(prepared, signs, threads)), replace(preparation, bias=1.0)


def lambda_grid(model: L1SVM, grid, log: bool = False, lambda_min_ratio: float = 0.05) -> np.ndarray:
    """Return decreasing values of lambda: ``lambda_max / k``, log-spaced, or the ones given.

    Raises
    ------
    DataError
        If the grid hangs on ``lambda_max`` and that is 0 (no feature differs between the classes).
    UsageError
        For a count below 1 or a ratio outside (0, 1).
    """
    if np.ndim(grid) > 0:
        return explicit_grid(grid)[::-1].copy()
    if int(grid) < 1:
        raise UsageError(f"a grid needs at least 1 point, not {grid}", "use `grid=N` with N >= 1")
    if model.lam_max == 0.0:
        raise DataError(
            "lambda_max is 0 but for rounding: no feature separates the two classes, so every lambda gives w = 0",
            "check labels and features (is each feature the same in both classes?), or give the values themselves",
        )
    if not log:
        return model.lam_max / np.arange(1, int(grid) + 1)
    if not 0.0 < lambda_min_ratio < 1.0:
        raise UsageError(f"`lambda_min_ratio` must lie between 0 and 1, not {lambda_min_ratio}")
    if int(grid) == 1:
        return np.array([model.lam_max])
    return log_grid(lambda_min_ratio * model.lam_max, model.lam_max, int(grid))[::-1].copy()


def make_feature_solver(name: str) -> FeatureDescent:
    """Return the solver of that name.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    if name not in SOLVERS:
        raise UsageError(f"unknown solver '{name}' for l1svm", f"use one of {', '.join(SOLVERS)}")
    return FeatureDescent(newton=name != "cd")


def run_l1_path(
    model, values, screening, solver, tol=1e-6, max_epochs=100_000, time_limit=None, began=None
) -> Steps:  # fmt: skip
    """Walk a grid and return a step for each of its points."""
    options = path_options(tol, max_epochs, time_limit, began)
    return walked(model, values, screening, solver, options, blank=np.full(model.size + 1, np.nan))
