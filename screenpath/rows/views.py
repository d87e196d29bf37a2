"""The same data by rows and by columns, for models that screen samples and features at once."""

from __future__ import annotations

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.rows import rows as kernels
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import shared_csr, short
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
    row_ends, column_ends : ndarray of int64
        Their ``indptr``.
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
        else:
            X = sp.csr_array(X)
            X.sum_duplicates()
            self.by_row, self.by_column = _arrays(X), _arrays(X.tocsc())
        # By columns, both of them, as blocks of columns give them too: to the last bit.
        self.row_sqnorms, self.column_sqnorms = np.zeros(self.n), np.empty(self.d)
        measure(self.by_column, self.row_sqnorms, np.zeros(self.n, dtype=np.int64), self.column_sqnorms)
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

    whole = True

    @property
    def row_ends(self) -> np.ndarray:  # type: ignore[override]
        return self.by_row[2]

    @property
    def column_ends(self) -> np.ndarray:  # type: ignore[override]
        return self.by_column[2]

    def columns(self, mark=None) -> tuple:
        """Return the view by columns, all of it."""
        return self.by_column

    def rows(self, mark=None) -> tuple:
        """Return the view by rows, all of it."""
        return self.by_row

    def blocks(self, mark=None):
        """Yield the view by columns, in one piece."""
        yield None, self.by_column

    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a column as float64, and the samples they belong to."""
        return line_of(self.by_column, j, self.n)

    def row(self, i: int, mark=None) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a row as float64, and the features they belong to."""
        return line_of(self.by_row, i, self.d)

    @property
    def size(self) -> int:
        """Return the number of stored values."""
        return int(self.by_row[0].size)

    @property
    def nbytes(self) -> int:
        """Return the bytes of both views."""
        return sum(part.nbytes for view in (self.by_row, self.by_column) for part in view)


def check_not_zero(views: TwoViews) -> None:
    """Raise where every value is zero."""
    if not views.column_sqnorms.any():
        raise DataError("every feature is zero in every sample: there is nothing to fit", "check the data file")


def measure(view: tuple, row_squares: np.ndarray, counts: np.ndarray, column_squares: np.ndarray) -> None:
    """Add a block's squares, and how many values there are, to those of the samples; write those of its columns."""
    sums.row_squares(view, row_squares.size, row_squares, counts)
    kernels.csr_squared_norms(view[0], view[2], column_squares)


def line_of(view: tuple, line: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stored values of a line of a view as float64, and their places; a full line has no indices to read."""
    data, indices, indptr = view
    start, stop = int(indptr[line]), int(indptr[line + 1])
    return data[start:stop].astype(np.float64), np.arange(length) if stop - start == length else indices[start:stop]


def _flat(X, lines: int, length: int):
    data = np.ascontiguousarray(X).ravel()
    return data, NO_INDICES, np.arange(lines + 1, dtype=np.int64) * length


def _arrays(X):
    return np.ascontiguousarray(X.data), short(X.indices, max(X.shape)), X.indptr.astype(np.int64)
