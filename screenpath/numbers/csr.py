"""CSR arrays without the copies that scipy makes if row pointers are wider than indices; a constant last feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from screenpath.numbers import sparse as sp


@dataclass(frozen=True, slots=True)
class Csr:
    """Sparse rows as read, without duplicate entries: the arrays of a ``csr_array``, which need no scipy.

    Parameters
    ----------
    data : ndarray of shape (nnz,)
    indices, indptr : ndarray of shape (nnz,) and (n + 1,)
    shape : (int, int)
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
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
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        full[rows, self.indices] = self.data
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
    """Return sparse rows, whose indices count ``width`` features, with a last feature that is ``constant`` in all of
    them.

    The types of ``indices`` and ``indptr`` are kept: they must hold the new numbers.
    """
    ends = indptr[1:]
    longer = indptr + np.arange(indptr.size, dtype=indptr.dtype)
    return np.insert(values, ends, constant), np.insert(indices, ends, width), longer
