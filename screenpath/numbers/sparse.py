"""scipy.sparse, loaded on first use: a path on dense rows needs only :func:`issparse`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np


def issparse(X) -> bool:
    """Tell whether this is an array or a matrix of scipy.sparse, without loading it."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(X))


def row_squares(X) -> np.ndarray:
    """Return the squared norms of rows, dense or sparse, in float64: as float32 the small ones would be 0."""
    if issparse(X):
        X = X.astype(np.float64)
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def index_type(largest: int) -> type:
    """Return the type of indices up to the largest; scipy has it under a public name from 1.15 on only."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.sparse"), name)
