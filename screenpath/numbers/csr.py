"""CSR arrays without the copies that scipy makes if row pointers are wider than indices; a constant last feature; wide
data with few values.

If the largest index is far above the number of stored values, vectors with one number per feature would be most of the
work. Only the features that occur become columns of the problem; their numbers are kept, and restored in all output.
Features that never occur have weight 0 in every model, and 0 in every scaling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from screenpath.errors import DataError
from screenpath.numbers import sparse as sp


@dataclass(frozen=True, slots=True)
class Csr:
    """Sparse rows as read, without duplicate entries: the arrays of a ``csr_array``, which need no scipy."""

    data: np.ndarray  # data, indices: shape (nnz,)
    indices: np.ndarray
    indptr: np.ndarray  # shape (n + 1,)
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        return self.data.size

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def array(self) -> sp.csr_array:
        """Return the rows as scipy has them, with shared arrays."""
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    def __getitem__(self, rows: slice) -> Csr:
        start, stop, _ = rows.indices(self.shape[0])
        stop = max(start, stop)
        part, ends = slice(self.indptr[start], self.indptr[stop]), self.indptr[start : stop + 1]
        return Csr(self.data[part], self.indices[part], ends - ends[0], (stop - start, self.shape[1]))

    def toarray(self) -> np.ndarray:
        full = np.zeros(self.shape, dtype=self.dtype)
        places = np.repeat(np.arange(self.shape[0]) * self.shape[1], np.diff(self.indptr))
        places += self.indices
        full.ravel()[places] = self.data
        return full

    def columns(self, index: np.ndarray) -> np.ndarray:
        """Return some columns, increasing, as a dense array."""
        full = np.zeros((self.shape[0], index.size), dtype=self.dtype)
        places, there = np.searchsorted(index, self.indices), np.isin(self.indices, index)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        full[rows[there], places[there]] = self.data[there]
        return full


def is_sparse(X) -> bool:
    """Tell whether rows are sparse: as read, or as scipy has them."""
    return isinstance(X, Csr) or sp.issparse(X)


def shared_csr(data, indices, indptr, shape: tuple) -> sp.csr_array:
    """Return a CSR array that shares values and indices with the arguments.

    ``sp.csr_array`` has one type for indices and row pointers, the wider one: 64-bit row pointers, as in kernels, would
    copy the indices to twice their size, also in everything derived (columns).
    """
    if indptr[-1] <= np.iinfo(indices.dtype).max:
        indptr = indptr.astype(indices.dtype, copy=False)
    return sp.csr_array((data, indices, indptr), shape=shape)


def short(indices: np.ndarray, count: int) -> np.ndarray:
    """Return numbers below ``count`` as int32, the type that kernels are compiled for, if it holds them."""
    return indices.astype(np.int32 if count <= np.iinfo(np.int32).max else np.int64, copy=False)


def row_pointers(counts, dtype: DTypeLike = np.int64) -> np.ndarray:
    """Return where rows with these numbers of values begin, and where the last one ends."""
    ends = np.zeros(len(counts) + 1, dtype=dtype)
    np.cumsum(counts, out=ends[1:])
    return ends


def counted_csr(values: np.ndarray, indices: np.ndarray, counts: np.ndarray, width: int) -> Csr:
    """Return sparse rows with these numbers of values; indices are 64-bit if they were, or if needed."""
    kind = np.int64 if indices.dtype == np.int64 or values.size > np.iinfo(np.int32).max else np.int32
    places, ends = indices.astype(kind, copy=False), row_pointers(counts, kind)
    return Csr(values, places, ends, (counts.size, width))


def with_constant(values, indices, indptr, width: int, constant: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sparse rows with one feature more, ``constant`` in all; the index types must hold the new numbers."""
    ends = indptr[1:]
    longer = indptr + np.arange(indptr.size, dtype=indptr.dtype)
    return np.insert(values, ends, constant), np.insert(indices, ends, width), longer


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
    kind = sp.index_type(max(X.nnz, columns.size))
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
