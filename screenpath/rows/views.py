"""The same data by rows and by columns, for models that screen samples and features at once."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from screenpath.errors import DataError
from screenpath.kernels import rows as kernels
from screenpath.numbers.csr import shared_csr
from screenpath.rows.base import Counted, TwoViews

NO_INDICES = np.empty(0, dtype=np.int32)  # a dense view stores no indices


class Meter(Counted):
    """Count of the stored values, ``n`` in all, that were touched; ``touched / n`` is the number of data passes."""

    def __init__(self, n: int):
        self.n, self.touched = n, 0


class Views(TwoViews):
    """Data in memory, row by row and column by column.

    Each view is a tuple ``(data, indices, indptr)``. For dense data ``data`` is the flattened array, ``indices`` is
    empty, and entry ``p`` of line ``k`` has the index ``p - indptr[k]``: the kernels serve both with the same loops.

    Parameters
    ----------
    X : ndarray of shape (n, d) or scipy.sparse of shape (n, d)
        float64 or float32. The row view shares its memory where it is C-contiguous or CSR.

    Attributes
    ----------
    n, d : int
        Samples and features.
    by_row, by_column : tuple of ndarray
    dense : bool
    row_sqnorms, column_sqnorms : ndarray of shape (n,), (d,)
        Squared Euclidean norms.
    meter : Meter
        Values touched so far by any operation.
    """

    def __init__(self, X):
        self.n, self.d = (int(size) for size in X.shape)
        self.dense = not sp.issparse(X)
        if self.dense:
            self.by_row = _flat(X, self.n, self.d)
            self.by_column = _flat(X.T, self.d, self.n)
            square = np.einsum("ij,ij->i", X, X, dtype=np.float64), np.einsum("ij,ij->j", X, X, dtype=np.float64)
        else:
            X = sp.csr_array(X)
            X.sum_duplicates()
            self.by_row, self.by_column = _arrays(X), _arrays(X.tocsc())
            square = _line_sums(self.by_row), _line_sums(self.by_column)
        self.row_sqnorms, self.column_sqnorms = square
        self.meter = Meter(self.size)

    @classmethod
    def of_rows(cls, rows) -> Views:
        """Return both views of ``MemoryRows``; the row view shares its memory."""
        if not rows.sparse:
            return cls(rows.X)
        return cls(shared_csr(rows.data, rows.indices, rows.indptr, (rows.n, rows.d)))

    @classmethod
    def from_parts(cls, n, d, dense, by_row, by_column, row_sqnorms, column_sqnorms) -> Views:
        """Put a view together from the arrays of another one (a worker process that shares them)."""
        views = cls.__new__(cls)
        views.n, views.d, views.dense = n, d, dense
        views.by_row, views.by_column = by_row, by_column
        views.meter = Meter(views.size)
        views.row_sqnorms, views.column_sqnorms = row_sqnorms, column_sqnorms
        return views

    @property
    def size(self) -> int:
        """Return the number of stored values."""
        return int(self.by_row[0].size)

    @property
    def nbytes(self) -> int:
        """Return the bytes of both views."""
        return sum(part.nbytes for view in (self.by_row, self.by_column) for part in view)

    def check_not_zero(self) -> None:
        """Raise where every value is zero."""
        if not self.column_sqnorms.any():
            raise DataError("every feature is zero in every sample: there is nothing to fit", "check the data file")


def _flat(X, lines: int, length: int):
    data = np.ascontiguousarray(X).ravel()
    return data, NO_INDICES, np.arange(lines + 1, dtype=np.int64) * length


def _arrays(X):
    indices = X.indices if X.indices.dtype in (np.int32, np.int64) else X.indices.astype(np.int64)
    return np.ascontiguousarray(X.data), indices, X.indptr.astype(np.int64)


def _line_sums(view) -> np.ndarray:
    data, _, indptr = view
    out = np.empty(indptr.size - 1)
    kernels.csr_squared_norms(data, indptr, out)
    return out
