"""Predictions of a kernel run: its support vectors are read again from the training data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from screenpath.data.prepare import Preparation
from screenpath.errors import RunFolderError
from screenpath.rows.gram import HeldOutRows
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction
from screenpath.runs.open import Run
from screenpath.runs.training import training_data


def kernel_values(run: Run, step: dict, X, training: str | None = None) -> np.ndarray:
    """Return ``f(x) = sum_i y_i alpha_i K(x_i, x)`` for new data.

    Parameters
    ----------
    run, step, training
        As of :func:`screenpath.runs.predict.decision_values`.
    X : csr_array of shape (m, d)
        In the units of the data file, with the columns that the run has.

    Returns
    -------
    ndarray of shape (m,)

    Raises
    ------
    DataError
        If the training data are not there, or are not those of the run.
    RunFolderError
        If the run's record of its kernel is damaged.
    """
    data = training_data(run, training)
    function, preparation = _function(run), _preparation(run)
    coefficients = run.coefficients(step)[0][0]
    support = np.flatnonzero(coefficients)
    if support.size == 0:
        return np.zeros(X.shape[0])
    dense = run.record["data"]["storage"] == "dense"
    rows = preparation.narrowed(sp.csr_array(data.X)[support])
    prepared = preparation.apply(rows.toarray() if dense else rows)
    new = preparation.apply(X.toarray() if dense else X)
    return HeldOutRows(KernelBlocks(prepared, function), new) @ coefficients[support]


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
