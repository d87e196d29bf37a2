"""Wide data with few values: features that never occur have no column.

If the largest index is far above the number of stored values, vectors with one number per feature would be most of the
work. Only the features that occur become columns of the problem; their numbers are kept, and restored in all output.
Features that never occur have weight 0 in every model, and 0 in every scaling.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import DataError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr, is_sparse

ORDINARY = 1 << 20  # columns for which vectors are never too long
WIDEST = 2**53  # most features: their numbers are exact as float64
TIMES = 4  # with more columns than this times the stored values, most are empty


def is_wide(d: int, nnz: int) -> bool:
    """Tell whether most of ``d`` columns are empty, and so many that it matters."""
    return d > ORDINARY + TIMES * nnz


def check_width(name, width: int) -> None:
    """Refuse more features than float64 can number, which files of coefficients and shards need."""
    if width > WIDEST:
        raise DataError(
            f"{name} has {width:,} features: no number of a feature is beyond 2^53",
            "check the largest index of the data",
        )


def occurring(X) -> np.ndarray | None:
    """Return the columns of wide sparse rows that occur, increasing, at least one; None for all other rows."""
    if not is_sparse(X) or not is_wide(X.shape[1], X.nnz):
        return None
    columns = np.unique((X if isinstance(X, Csr) else sp.csr_array(X)).indices).astype(np.int64)
    return columns if columns.size else np.zeros(1, dtype=np.int64)


def on_columns(X, columns: np.ndarray):
    """Return rows, CSR of shape (n, k), reduced to these columns (increasing, from 0)."""
    X = sp.csr_array(X)
    places, known = find(columns, X.indices)
    kind = sp.get_index_dtype(maxval=max(X.nnz, columns.size))
    ends = X.indptr
    if not known.all():
        ends = np.concatenate([[0], np.cumsum(known)])[ends]
    values = X.data if known.all() else X.data[known]
    return sp.csr_array((values, places[known].astype(kind), ends.astype(kind)), shape=(X.shape[0], columns.size))


def find(numbers: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each wanted number among increasing ones, and whether it is there."""
    places = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    return places, numbers[places] == wanted


def spread(coefficients: np.ndarray, columns: np.ndarray, d: int):
    """Return coefficients, shape (m, k), as sparse rows over ``d`` features; the last axis is that of ``columns``."""
    rows, places = np.nonzero(coefficients)  # nan, of a step that was not reached, is stored
    return sp.csr_array((coefficients[rows, places], (rows, columns[places])), shape=(coefficients.shape[0], d))
