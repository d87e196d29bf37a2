"""Predictions of a run on new data."""

from __future__ import annotations

import numpy as np

from screenpath.data.files.prepare import Preparation
from screenpath.data.safe.wide import on_columns
from screenpath.data.words.labels import label_text
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp
from screenpath.store.open import Run

UNLABELLED = 0.0  # stands for "no label" in files, unless it is a label of the run


def decision_values(run: Run, step: dict, X, training: str | None = None) -> tuple[np.ndarray, str | None]:
    """Return the linear forms of a step for new data.

    Parameters
    ----------
    step : dict
        Row of the step table.
    X : csr_array of shape (m, any)
        In the units of the data file; features unknown to the model are ignored.
    training : str, optional
        Training data of a kernel run, if they have moved.

    Returns
    -------
    values : ndarray of shape (m,), or (m, classes)
        ``x.w + intercept``, for ``--scale l2`` with ``x`` divided by its norm.
    notice : str or None
        Which features were ignored or are missing.
    """
    d, notice = run.n_features, None
    if X.shape[1] > d:
        notice = f"features above {d}, the width of the run, are ignored"
    elif X.shape[1] < d:
        notice = f"the data shows {X.shape[1]:,} of the {d:,} features of the run; the others are 0 in every row"
    X = sp.csr_array(X[:, :d]) if X.shape[1] > d else X
    X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    if run.numbers is not None:
        X = on_columns(X, run.numbers - 1)
    if run.kernel:
        from screenpath.inputs.run_data import kernel_values

        return kernel_values(run, step, X, training), notice
    weights, intercepts = run.coefficients(step)
    if run.record["preparation"].get("scaling") == "l2":  # the only scaling that the coefficients do not undo
        X = Preparation("l2", None, None, 0.0, X.shape[1]).apply(X)
    values = X @ weights.T + intercepts
    return (values if run.classes else values[:, 0]), notice


def predicted_labels(run: Run, values: np.ndarray) -> np.ndarray:
    """Return labels as text, by the sign or the largest of the linear forms; 0 means -1, as in LIBLINEAR."""
    if run.classes:
        return np.array([label_text(label) for label in run.classes])[values.argmax(axis=1)]
    return np.where(values > 0.0, label_text(run.labels["+1"]), label_text(run.labels["-1"]))


def known_rows(run: Run, y: np.ndarray) -> np.ndarray:
    """Tell which rows have a label, or a target; nan means none, and so does 0 where it is not a label.

    Any other label unknown to a classifier is an error: the file belongs to another task.
    """
    labels = run.sides
    if not labels or "rest" in labels:
        return np.isfinite(y)
    known = np.isin(y, labels)
    strange = y[~known & (y != UNLABELLED) & np.isfinite(y)]
    if strange.size:
        names = ", ".join(label_text(label) for label in sorted(labels))
        raise DataError(
            f"the data has the label {label_text(strange[0])}; the run is a classifier of the labels {names}",
            "predict data of the same task; write the label ? where it is unknown, or say `no_labels`",
        )
    return known


def not_scored(run: Run, y: np.ndarray) -> str | None:
    """Return a notice where rows with the label 0 count as unlabelled, though other rows have labels."""
    known = known_rows(run, y)
    count = int(np.count_nonzero(~known & (y == UNLABELLED)))
    if not count or not known.any():
        return None
    rows = f"{count} of {y.size} rows are" if count > 1 else f"1 of {y.size} rows is"
    names = ", ".join(label_text(label) for label in sorted(run.sides))
    return f"{rows} not scored: the label 0 is none of the run ({names}), and is taken as not known"
