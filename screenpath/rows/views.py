"""The same data by rows and by columns, for models that screen samples and features at once.

The views of shards have all lines of the data, but only columns in memory hold values: the others look empty.
Quantities of a column are computed from it alone, and sums over columns in order, so a path on shards has the bytes of
the path in memory. Only bounds on the intercepts of several classes are sums over rows, which may be rounded
differently.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.rows import rows as kernels
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import row_pointers, shared_csr, short
from screenpath.rows.base import Counted, TwoViews
from screenpath.rows.column_shards import ColumnShards, HeldColumns

NO_INDICES = np.empty(0, dtype=np.int32)  # a dense view stores no indices


class Meter(Counted):
    def __init__(self, n: int, source: Counted | None = None):
        self.n, self.touched, self._source = n, 0, source

    @property
    def read(self) -> int | None:  # type: ignore[override]  # computed, not set
        return None if self._source is None else self._source.read


class Views(TwoViews):
    """Data in memory, row by row and column by column.

    Each view is a tuple ``(data, indices, indptr)``. For dense data ``data`` is the flattened array, ``indices`` is
    empty, and entry ``p`` of line ``k`` has the index ``p - indptr[k]``: the kernels use the same loops for both. The
    row view shares the memory of ``X``, shape (n, d), if that is C-contiguous or CSR.
    """

    def __init__(self, X, inexact: float = 0.0):
        self.n, self.d = (int(size) for size in X.shape)
        self.inexact = inexact
        self.dense = not sp.issparse(X)
        if self.dense:
            self.by_row = _flat(X, self.n, self.d)
            self.by_column = _flat(X.T, self.d, self.n)
        else:
            X = sp.csr_array(X)
            X.sum_duplicates()
            self.by_row, self.by_column = _arrays(X), _arrays(X.tocsc())
        # Both by columns, for the same bits as in blocks of columns.
        self.row_sqnorms, self.column_sqnorms = np.zeros(self.n), np.empty(self.d)
        measure(self.by_column, self.row_sqnorms, np.zeros(self.n, dtype=np.int64), self.column_sqnorms)
        self.meter = Meter(self.size)

    @classmethod
    def of_rows(cls, rows, times: int = 1) -> Views:
        """Return the views of rows, all of them ``times`` (1 or 2) one after the other."""
        X = shared_csr(rows.data, rows.indices, rows.indptr, (rows.n, rows.d)) if rows.sparse else rows.X
        if times > 1:
            X = sp.vstack([X] * times, format="csr") if rows.sparse else np.concatenate([X] * times)
        return cls(X, rows.inexact)

    whole = True

    @property
    def row_ends(self) -> np.ndarray:  # type: ignore[override]
        return self.by_row[2]

    @property
    def column_ends(self) -> np.ndarray:  # type: ignore[override]
        return self.by_column[2]

    def columns(self, mark=None) -> tuple:
        return self.by_column

    def rows(self, mark=None) -> tuple:
        return self.by_row

    def blocks(self, mark=None):
        yield None, self.by_column

    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        return line_of(self.by_column, j, self.n)

    def row(self, i: int, mark=None) -> tuple[np.ndarray, np.ndarray]:
        return line_of(self.by_row, i, self.d)

    @property
    def size(self) -> int:
        return int(self.by_row[0].size)


def check_not_zero(views: TwoViews) -> None:
    """Raise if every value is zero, perhaps because a free intercept has taken what all samples share."""
    if not views.column_sqnorms.any():
        found = "there is nothing to fit: every feature is 0 in all samples, or the same in all beside a free intercept"
        raise DataError(f"{found}, as with one sample", "check the data file")


def measure(view: tuple, row_squares: np.ndarray, counts: np.ndarray, column_squares: np.ndarray) -> None:
    """Add a block's squares and numbers of values to those of the samples; write the squares of its columns."""
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


class ShardViews(HeldColumns, TwoViews):
    """Both views of columns on disk."""

    whole = False

    def __init__(self, source: ColumnShards):
        HeldColumns.__init__(self, source)
        self.n, self.d, self.dense, self.inexact = source.n, source.d, not source.sparse, source.preparation.inexact
        self.meter = Meter(source.size, source)
        counts = np.zeros(self.n, dtype=np.int64)
        self.row_sqnorms, self.column_sqnorms = np.zeros(self.n), np.empty(self.d)
        for part, view in self.blocks():
            found = np.empty(part.size)
            measure(view, self.row_sqnorms, counts, found)
            self.column_sqnorms[part] = found
        self.row_ends, self.column_ends = row_pointers(counts), row_pointers(source.counts)
        self._view: tuple | None = None
        self._by_row: tuple | None = None

    @property
    def size(self) -> int:
        return self.source.size

    def hold(self, index: np.ndarray) -> None:
        """Load columns into memory; views of others are dropped."""
        before = self._held
        if np.any(self._where[index] < 0):
            self._by_row = None  # before there are larger ones
        super().hold(index)
        if self._held is not before:
            self._view = None

    def columns(self, mark: np.ndarray) -> tuple:  # type: ignore[override]
        self.hold(self._marked(mark))
        if self._view is None:
            counts = np.zeros(self.d, dtype=np.int64)
            counts[self._held] = self.source.counts[self._held]
            indices = self._arrays[1] if self.sparse else NO_INDICES
            self._view = self._arrays[0].ravel(), indices, row_pointers(counts)
        return self._view

    def rows(self, mark: np.ndarray) -> tuple:  # type: ignore[override]
        """Return the view by rows of the columns in memory, which include the marked ones."""
        data, indices, ends = self.columns(mark)
        if self._by_row is None:
            samples = indices if self.sparse else np.tile(np.arange(self.n, dtype=np.int32), self._held.size)
            held = shared_csr(data, samples, ends, (self.d, self.n))
            turned = sp.csr_array(held.T)
            self._by_row = turned.data, turned.indices.astype(NO_INDICES.dtype), turned.indptr.astype(np.int64)
        return self._by_row

    def blocks(self, mark: np.ndarray | None = None):
        """Yield columns shard by shard, from disk unless all are in memory: which they are, and their view."""
        marked = None if mark is None else self._marked(mark)
        if marked is not None and not np.any(self._where[marked] < 0):
            yield None, self.columns(_mark(marked, self.d))
            return
        parts = []
        for k, (start, stop) in enumerate(zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)):
            if marked is None:
                parts.append((k, None, np.arange(start, stop)))
                continue
            here = marked[np.searchsorted(marked, start) : np.searchsorted(marked, stop)]
            if here.size:
                parts.append((k, here - start, here))
        found = self.source.each(self.source.block, [part[:2] for part in parts])
        for (_, _, which), block in zip(parts, found, strict=True):
            if self.sparse:
                yield which, block
            else:
                yield which, (block.ravel(), NO_INDICES, np.arange(which.size + 1, dtype=np.int64) * self.n)

    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        ((which, view),) = self.blocks(_mark(np.array([j]), self.d))
        return line_of(view, j if which is None else 0, self.n)

    def row(self, i: int, mark: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return line_of(self.rows(mark), i, self.d)

    def _marked(self, mark: np.ndarray) -> np.ndarray:
        """Return the columns of the features that are marked in some class."""
        return np.flatnonzero((mark.reshape(-1, self.d) != 0).any(axis=0))


def views_of(rows, times: int = 1) -> Views | ShardViews:
    """Return both views of rows in memory, each of them so many times, or of columns on disk."""
    return ShardViews(rows) if isinstance(rows, ColumnShards) else Views.of_rows(rows, times)


def _mark(index: np.ndarray, d: int) -> np.ndarray:
    mark = np.zeros(d, dtype=np.bool_)
    mark[index] = True
    return mark
