"""Data that come as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.data.dataset import Dataset
from screenpath.data.frames import is_table, names_of, rows_of
from screenpath.data.labels import label_number
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp


def canonical(X):
    """Return sparse rows without a place that is stored twice: the norm of a row is formed from its stored values.

    What was passed in stays as it is; it is returned where there is nothing to add up or to sort.
    """
    if getattr(X, "has_canonical_format", True):
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def texts_of(y) -> tuple[str, ...] | None:
    """Return the different labels, sorted, where labels are texts; None where they are numbers."""
    y = np.asarray(y)
    if y.dtype.kind not in "USOT":
        return None
    if not all(isinstance(label, str) for label in y.ravel().tolist()):
        return None
    return tuple(sorted(set(map(str, y.ravel().tolist()))))


def numbered(y, names: tuple[str, ...] | None):
    """Return labels that are texts as their places among ``names``; numbers as they are."""
    if names is None:
        return y
    places = {name: float(k) for k, name in enumerate(names)}
    return np.array([places[label] for label in np.asarray(y).ravel().tolist()])


def check_data(X, y):
    """Return data and labels as arrays that every model accepts; rows of a table are read from its columns."""
    if not sp.issparse(X):
        X = rows_of(X) if is_table(X) else np.asarray(X)
        if X.ndim != 2:
            raise DataError(f"the data must have two dimensions (samples, features), not {X.ndim}")
    else:
        X = canonical(X)
    if X.dtype.kind == "c":  # numpy would drop a part of each
        raise DataError("the data are complex numbers", "give their real and imaginary parts as features")
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    try:
        y = np.asarray(y, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise DataError(
            "the labels are neither all numbers nor all texts", "leave out rows whose label is not known"
        ) from None
    if y.size != X.shape[0]:
        raise DataError(f"{X.shape[0]} rows but {y.size} labels")
    if y.size == 0:
        raise DataError("the data has no rows")
    values = X.data if sp.issparse(X) else X
    if not (np.isfinite(values).all() and np.isfinite(y).all()):
        raise DataError("the data holds nan or infinite values", "remove or impute them first")
    return X, y


@dataclass(frozen=True)
class Given:
    """What a Python function was given: checked arrays, and the names and texts behind their numbers."""

    X: Any  # ndarray or csr_array of shape (n, d)
    y: np.ndarray  # shape (n,): of labels that are texts their places among ``texts``
    names: tuple[str, ...] | None  # of the columns
    texts: tuple[str, ...] | None  # the different labels, sorted, where these are texts
    written: Any  # array_like; ``y`` as a run folder keeps it: texts where labels are texts

    @classmethod
    def of(cls, X, y) -> Given:
        """Return data and labels as they were passed in, checked; see :func:`check_data`."""
        names, texts = names_of(X), texts_of(y)
        X, numbers = check_data(X, numbered(y, texts))
        return cls(X, numbers, names, texts, numbers if texts is None else y)

    @property
    def two_labels(self) -> tuple:
        """Return the labels of a classifier of two classes, the one behind -1 first."""
        low, high = float(self.y.min()), float(self.y.max())
        return (low, high) if self.texts is None else (self.texts[int(low)], self.texts[int(high)])

    def class_weight(self, weights):
        """Return class weights with the numbers of labels that are texts."""
        if self.texts is None or not isinstance(weights, dict):
            return weights
        return {label_number(label, self.texts, "class_weight"): weight for label, weight in weights.items()}


def dataset_of(data, source: str) -> Dataset:
    """Return arrays ``(X, y)`` as reading a file returns them."""
    try:
        X, y = data
    except (TypeError, ValueError):
        raise DataError("data are the name of a file, or a pair of arrays: (X, y)") from None
    given = Given.of(X, y)
    X = sp.csr_array(given.X, dtype=np.float64)
    X.sum_duplicates()
    return Dataset(X, given.y, source, names=given.names, label_names=given.texts)
