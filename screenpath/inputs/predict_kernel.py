"""Predictions of a kernel run: its support vectors are read again from the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.data.files.prepare import Preparation
from screenpath.errors import RunFolderError
from screenpath.inputs.training import training_data
from screenpath.numbers import sparse as sp
from screenpath.rows.gram import HeldOutRows
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction
from screenpath.store.open import Run


def kernel_values(run: Run, step: dict, X, training: str | None = None) -> np.ndarray:
    """Return ``f(x) = sum_i y_i alpha_i K(x_i, x) + b``, shape (m,), for new data.

    ``X``, CSR of shape (m, d), is in the units of the data file, with the columns that the run has; the rest is as of
    :func:`screenpath.engine.predict.decision_values`.
    """
    found = support_of(run, step, training, dense=run.record["data"]["storage"] == "dense")
    if found.coefficients.size == 0:
        return np.full(X.shape[0], found.intercept)
    new = found.preparation.apply(X if sp.issparse(found.rows) else X.toarray())
    return HeldOutRows(KernelBlocks(found.rows, found.function), new) @ found.coefficients + found.intercept


@dataclass(frozen=True)
class Support:
    """The part of the training data that a step's decisions are made of."""

    function: KernelFunction
    preparation: Preparation  # of new rows
    rows: Any  # ndarray or csr_array of shape (m, d): prepared support vectors
    coefficients: np.ndarray  # shape (m,)
    intercept: float  # 0 where there is none


def support_of(run: Run, step: dict, training: str | None = None, dense: bool = True) -> Support:
    """Return the support vectors of a step, prepared; arguments and errors as of :func:`kernel_values`."""
    data = training_data(run, training)
    function, preparation = _function(run), _preparation(run)
    (coefficients,), (intercept,) = run.coefficients(step)
    support = np.flatnonzero(coefficients)
    rows = preparation.narrowed(sp.csr_array(data.X)[support])
    rows = preparation.apply(rows.toarray() if dense else rows)
    return Support(function, preparation, rows, coefficients[support], float(intercept))


def _function(run: Run) -> KernelFunction:
    record = run.record["kernel"]
    try:
        chosen = {name: record[name] for name in ("gamma", "degree", "coef0") if name in record}
        return KernelFunction(record["kernel"], **chosen, constant=record["constant"])
    except (KeyError, TypeError):
        raise RunFolderError(
            f"{run.path / 'run.json'} is damaged: the kernel is not complete", "compute the path again with `force`"
        ) from None


def _preparation(run: Run) -> Preparation:
    record = run.record["preparation"]
    scale, shift = (None if record[name] is None else np.array(record[name]) for name in ("scale", "shift"))
    columns = None if run.numbers is None else run.numbers - 1
    return Preparation(record["scaling"], scale, shift, 0.0, run.n_columns, columns)
