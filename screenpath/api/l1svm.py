"""The Python API of the L1-regularised squared-hinge SVM."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.api.keywords import ClassWeight, Values, checked_by
from screenpath.catalogue.builders import checked_weights, row_weights
from screenpath.data.files.arrays import Given
from screenpath.data.files.dataset import RowsLike
from screenpath.data.files.prepare import checked_penalties, prepare
from screenpath.engine.result import PathResult, run_l1_path
from screenpath.engine.saving import Origin
from screenpath.errors import UsageError
from screenpath.problem.grid import lambda_grid
from screenpath.problem.l1svm import L1SVM
from screenpath.rows.columns import Columns
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.solve.l1cd import make_feature_solver


@checked_by("l1svm")
def l1_svm_path(
    X: RowsLike, y: ArrayLike, *,
    grid: int | Values = 20, log: bool = False, lambda_min_ratio: float = 0.05,
    class_weight: ClassWeight = None, sample_weight: ArrayLike | None = None, penalty_weights: ArrayLike | None = None,
    rule: str = "vi+gap", solver: str = "auto", tol: float = 1e-6,
    scale: str = "none", storage: str = "auto", dtype: DTypeLike = np.float64,
    threads: int = 1, max_epochs: int = 100_000, time_limit: float | None = None,
) -> PathResult:  # fmt: skip
    r"""Compute a certified path of L1-regularised squared-hinge SVMs with a free bias (Zhao, Liu, Cox 2014).

    ``min_{w,b} 1/2 sum_i s_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1``; the bias is not penalised.

    Parameters
    ----------
    X : ndarray, scipy.sparse or table (pandas, polars, pyarrow) of shape (n, d)
    y : array_like of shape (n,)
        Two labels; the larger is +1.
    grid : int or sequence of float, default 20
        Number K of values ``lambda_max / k``, k = 1..K (the paper's grid), or the values themselves, walked from the
        largest down.
    log : bool, default False
        Space the K values evenly in the logarithm, from ``lambda_max`` to ``lambda_min_ratio * lambda_max``.
    lambda_min_ratio : float, default 0.05
        Used with ``log``.
    class_weight, sample_weight
        Weights ``s_i``, as of :func:`screenpath.api.losses.loss_path`.
    penalty_weights : array_like of shape (d,), optional
        ``p_j > 0``: the penalty is ``lambda sum_j p_j |w_j|``, of the weights of scaled features.
    rule : {"vi+gap", "vi", "gap", "none"}
    solver : {"auto", "newton", "cd"}
        ``auto`` and ``newton`` finish working sets by Newton steps, ``cd`` uses coordinate descent alone.
    tol, scale, storage, dtype, threads, max_epochs, time_limit
        As of :func:`screenpath.api.losses.loss_path`.

    Returns
    -------
    PathResult

    Raises
    ------
    DataError, UsageError

    Examples
    --------
    >>> from screenpath import l1_svm_path
    >>> X = [[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]]
    >>> path = l1_svm_path(X, [1, 1, -1, -1], grid=3)
    >>> [step.nnz_w for step in path.steps]
    [0, 1, 2]
    """
    began = time.monotonic()
    data = Given.of(X, y)
    model, preparation = l1_svm_model(
        data.X, data.y, scale=scale, storage=storage, dtype=dtype, threads=threads,
        class_weight=data.class_weight(class_weight), sample_weight=sample_weight,
        penalty_weights=penalty_weights,
    )  # fmt: skip
    values = lambda_grid(model, grid, log, lambda_min_ratio)
    how = parse_feature_rule(rule), make_feature_solver(solver)
    found = run_l1_path(model, values, *how, tol, max_epochs, time_limit, began)
    asked = {
        "rule": rule, "solver": solver, "tol": tol, "scale": scale, "storage": storage, "dtype": dtype,
        "threads": threads, "max_epochs": max_epochs, "class_weight": class_weight, "weights": sample_weight,
        "penalty_weights": penalty_weights,
    }  # fmt: skip
    origin = Origin("l1svm", data.X, data.written, asked, data.mark())
    return PathResult(found, preparation, data.two_labels, origin=origin, feature_names=data.names)


def l1_svm_model(
    X, y, *, scale="none", storage="auto", dtype=np.float64, threads=1, class_weight=None, sample_weight=None,
    penalty_weights=None,
):  # fmt: skip
    """Return the model of data that are checked (``data.files.arrays.Given``), and the map back to the data's units.

    Returns
    -------
    model : L1SVM
    preparation : Preparation
        Its bias is 1: the coefficients of a step end with the free bias.
    """
    from screenpath.data.words.labels import binary_labels

    signs, _ = binary_labels(y)
    given = checked_weights(y, sample_weight)
    if penalty_weights is not None and scale == "l2":
        raise UsageError("`penalty_weights` are of features, `scale=l2` scales rows", "leave out one of the two")
    penalties = checked_penalties(penalty_weights, X.shape[1])
    prepared, preparation = prepare(X, scale, 0.0, storage, dtype, given, narrow=True, penalties=penalties)
    return L1SVM(Columns(prepared, signs, threads, row_weights(y, class_weight, given))), replace(preparation, bias=1.0)
