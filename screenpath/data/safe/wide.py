"""Wide data with few values: features that occur nowhere have no column.

A vector of one number a feature would be most of the work where the largest index is far above the number of stored
values. Only the features that occur become columns of the problem; their numbers are kept, and restored in all that
is written. Features that never occur have weight 0 in every model, and 0 in every scaling.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import DataError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr, is_sparse

ORDINARY = 1 << 20  # columns that no vector is too long for
WIDEST = 2**53  # more features no index has ever had; their numbers are exact as float64
TIMES = 4  # stored values; with more columns than that most of them are empty


def is_wide(d: int, nnz: int) -> bool:
    """Tell whether most of ``d`` columns are empty, and so many that it matters."""
    return d > ORDINARY + TIMES * nnz


def check_width(name, width: int) -> None:
    """Refuse more features than can be numbered where their numbers are float64: files of coefficients, shards."""
    if width > WIDEST:
        raise DataError(
            f"{name} has {width:,} features: no number of a feature is beyond 2^53",
            "check the largest index of the data",
        )


def occurring(X) -> np.ndarray | None:
    """Return the columns of wide sparse rows that occur, increasing, one at least; None for all other rows."""
    if not is_sparse(X) or not is_wide(X.shape[1], X.nnz):
        return None
    columns = np.unique((X if isinstance(X, Csr) else sp.csr_array(X)).indices).astype(np.int64)
    return columns if columns.size else np.zeros(1, dtype=np.int64)


def on_columns(X, columns: np.ndarray):
    """Return rows, CSR of shape (n, k), with these columns alone: increasing, from 0; what is in others is left out."""
    X = sp.csr_array(X)
    places, known = find(columns, X.indices)
    kind = sp.get_index_dtype(maxval=max(X.nnz, columns.size))
    ends = X.indptr
    if not known.all():
        ends = np.concatenate([[0], np.cumsum(known)])[ends]
    values = X.data if known.all() else X.data[known]
    return sp.csr_array((values, places[known].astype(kind), ends.astype(kind)), shape=(X.shape[0], columns.size))


def find(numbers: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each number that is wanted among increasing ones, and whether it is there."""
    places = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    return places, numbers[places] == wanted


def spread(coefficients: np.ndarray, columns: np.ndarray, d: int):
    """Return coefficients, shape (m, k), as sparse rows over ``d`` features; the last axis is that of ``columns``."""
    rows, places = np.nonzero(coefficients)  # nan, of a step that was not reached, counts
    return sp.csr_array((coefficients[rows, places], (rows, columns[places])), shape=(coefficients.shape[0], d))
