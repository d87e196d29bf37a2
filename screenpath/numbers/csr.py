"""CSR arrays: as scipy has them, without the copies that it makes where row pointers are wider than indices; a constant
feature behind the others.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike


def shared_csr(data, indices, indptr, shape: tuple) -> sp.csr_array:
    """Return a CSR array that shares values and indices with what is given.

    ``sp.csr_array`` has one type for indices and row pointers, the wider of the two: 64-bit row pointers, as the
    kernels take them, would make a copy of the indices of twice their size, and of all that is made of it (columns).
    """
    if indptr[-1] <= np.iinfo(indices.dtype).max:
        indptr = indptr.astype(indices.dtype, copy=False)
    return sp.csr_array((data, indices, indptr), shape=shape)


def row_pointers(counts, dtype: DTypeLike = np.int64) -> np.ndarray:
    """Return where rows of so many values begin, and where the last one ends."""
    ends = np.zeros(len(counts) + 1, dtype=dtype)
    np.cumsum(counts, out=ends[1:])
    return ends


def counted_csr(values: np.ndarray, indices: np.ndarray, counts: np.ndarray, width: int) -> sp.csr_array:
    """Return the CSR array of rows of so many values, its indices 64-bit where they are, or where it takes that."""
    kind = np.int64 if indices.dtype == np.int64 or values.size > np.iinfo(np.int32).max else np.int32
    places, ends = indices.astype(kind, copy=False), row_pointers(counts, kind)
    return sp.csr_array((values, places, ends), shape=(counts.size, width))


def with_constant(values, indices, indptr, width: int, constant: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sparse rows with a feature more behind the others, which has the same value in all of them.

    Parameters
    ----------
    values : ndarray of shape (nnz,)
    indices, indptr : ndarray of shape (nnz,) and (n + 1,)
        Of types that hold what they are to hold: they are kept.
    width : int
        How many features there are.
    constant : float
    """
    ends = indptr[1:]
    longer = indptr + np.arange(indptr.size, dtype=indptr.dtype)
    return np.insert(values, ends, constant), np.insert(indices, ends, width), longer
