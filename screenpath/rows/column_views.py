"""Columns in shards for a model that screens samples and features: passes on disk, survivors in memory both ways.

Passes prepare the columns block by block. The views that kernels get have all lines of the data, of which only columns
that could be read hold values: the others look empty. What is formed of a column is formed of it alone, and sums over
columns are formed in order: a path on such shards has the bytes of the path in memory. Bounds on the intercepts of
several classes alone are sums over rows, and may be rounded otherwise.
"""

from __future__ import annotations

import numpy as np

from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import row_pointers, shared_csr
from screenpath.rows.base import TwoViews
from screenpath.rows.column_shards import ColumnShards
from screenpath.rows.held import HeldColumns
from screenpath.rows.views import NO_INDICES, Meter, Views, line_of, measure


class ShardViews(HeldColumns, TwoViews):
    """Both views of columns on disk; see :class:`rows.base.TwoViews` for the operations.

    Parameters
    ----------
    source : ColumnShards
    """

    whole = False

    def __init__(self, source: ColumnShards):
        HeldColumns.__init__(self, source)
        self.n, self.d, self.dense = source.n, source.d, not source.sparse
        self.meter = Meter(source.size)
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
        """Return the number of values that the columns store."""
        return self.source.size

    @property
    def nbytes(self) -> int:
        """Return the bytes that a pass reads from the files."""
        return self.source.nbytes

    def hold(self, index: np.ndarray) -> None:
        """Have columns in memory; views of others are dropped."""
        before = self._held
        if np.any(self._where[index] < 0):
            self._by_row = None  # before there are larger ones
        super().hold(index)
        if self._held is not before:
            self._view = None

    def columns(self, mark: np.ndarray) -> tuple:  # type: ignore[override]
        """Return the view by columns; those in which ``mark`` is 0 may be empty."""
        self.hold(self._marked(mark))
        if self._view is None:
            counts = np.zeros(self.d, dtype=np.int64)
            counts[self._held] = self.source.counts[self._held]
            indices = self._arrays[1] if self.sparse else NO_INDICES
            self._view = self._arrays[0].ravel(), indices, row_pointers(counts)
        return self._view

    def rows(self, mark: np.ndarray) -> tuple:  # type: ignore[override]
        """Return the view by rows of the columns in memory, those that are marked among them."""
        data, indices, ends = self.columns(mark)
        if self._by_row is None:
            samples = indices if self.sparse else np.tile(np.arange(self.n, dtype=np.int32), self._held.size)
            held = shared_csr(data, samples, ends, (self.d, self.n))
            turned = sp.csr_array(held.T)
            self._by_row = turned.data, turned.indices.astype(NO_INDICES.dtype), turned.indptr.astype(np.int64)
        return self._by_row

    def blocks(self, mark: np.ndarray | None = None):
        """Yield columns shard by shard, from disk where they are not all in memory: which they are, and their view."""
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
        """Return the stored values of a column as float64, and the samples they belong to."""
        ((which, view),) = self.blocks(_mark(np.array([j]), self.d))
        return line_of(view, j if which is None else 0, self.n)

    def row(self, i: int, mark: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a row in the columns in memory, and the features they belong to."""
        return line_of(self.rows(mark), i, self.d)

    def _marked(self, mark: np.ndarray) -> np.ndarray:
        """Return the columns of the features that are marked in some class."""
        return np.flatnonzero((mark.reshape(-1, self.d) != 0).any(axis=0))


def views_of(rows) -> Views | ShardViews:
    """Return both views of rows in memory, or of columns on disk, where they stay."""
    return ShardViews(rows) if isinstance(rows, ColumnShards) else Views.of_rows(rows)


def _mark(index: np.ndarray, d: int) -> np.ndarray:
    mark = np.zeros(d, dtype=np.bool_)
    mark[index] = True
    return mark
