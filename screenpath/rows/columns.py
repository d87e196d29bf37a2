"""Feature columns in memory: the operations of sample rows on the transposed data."""

from __future__ import annotations

import numpy as np

from screenpath.data.safe.memory import VALUES_AT_ONCE
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import shared_csr
from screenpath.rows.base import FeatureColumns
from screenpath.rows.memory import MemoryRows

NO_SAMPLES = np.empty(0, dtype=np.int32)


def weighted_signs(signs, weights) -> np.ndarray:
    """Return ``z_i = y_i sqrt(s_i)``."""
    signs = np.asarray(signs).astype(np.float64)
    return signs if weights is None else signs * np.sqrt(weights)


def as_columns(F, *sparse) -> tuple:
    """Return columns as kernels take them, from the rows of an array or of (data, indices, indptr): values, samples,
    and where each begins and ends; dense ones have no samples.
    """
    if sparse:
        indices, ends = sparse
        return F, indices, ends[:-1], ends[1:]
    ends = np.arange(F.shape[0] + 1) * F.shape[1]
    return F.ravel(), NO_SAMPLES, ends[:-1], ends[1:]


def spread(columns, index: np.ndarray) -> tuple:
    """Return :meth:`slices` of some columns, each at its number among all."""
    data, samples, *ends = columns.slices(index)
    places = np.zeros((2, columns.n), dtype=np.int64)
    places[:, index] = ends
    return data, samples, *places


def sign_sparse(data, indices, signs: np.ndarray) -> None:
    """Multiply sparse columns by the signs of the samples, in place."""
    for start in range(0, data.size, VALUES_AT_ONCE):
        part = slice(start, start + VALUES_AT_ONCE)
        data[part] *= signs[indices[part]]


class Columns(MemoryRows, FeatureColumns):
    r"""Signed feature columns ``f_j = z * x^j``, stored one after the other; ``z_i = y_i sqrt(s_i)``.

    The columns are the rows of ``(diag(z) X)'``: ``products(v)`` is ``margins`` of the base class, ``combine(w)`` its
    ``weighted_sum``, and ``touched`` counts columns. ``X``, shape (samples, features), is copied column by column;
    ``signs`` are labels -1 and +1, ``weights``, for float64 values only, the ``s`` of at least 0.
    """

    def __init__(self, X, signs, threads: int = 1, weights=None, inexact: float = 0.0):
        if weights is not None and X.dtype != np.float64:
            raise UsageError("weights would be rounded to `dtype=float32`", "leave one of them out")
        signs = weighted_signs(signs, weights).astype(X.dtype)
        if sp.issparse(X):
            transposed = sp.csr_array(X).T.tocsr()
            sign_sparse(transposed.data, transposed.indices, signs)
        else:
            transposed = np.multiply(X.T, signs, order="C")
        super().__init__(transposed, threads, inexact)
        self.signs = signs.astype(np.float64)

    @classmethod
    def of_rows(cls, rows: MemoryRows, signs, threads: int = 1, weights=None) -> Columns:
        """Return the signed columns of sample rows (a copy)."""
        if not rows.sparse:
            return cls(rows.X, signs, threads, weights, rows.inexact)
        X = shared_csr(rows.data, rows.indices, rows.indptr, (rows.n, rows.d))
        return cls(X, signs, threads, weights, rows.inexact)

    def products(self, v: np.ndarray) -> np.ndarray:
        return self.margins(v)

    def combine(self, w: np.ndarray) -> np.ndarray:
        return self.weighted_sum(w)

    def slices(self, index: np.ndarray | None = None) -> tuple:
        """Return slices without a copy, except of values that are not float64."""
        if self.stored is None and index is not None:
            taken = self.take(index, np.ones(index.size))
            return as_columns(*taken) if self.sparse else as_columns(taken)
        data, indices, begin, end = as_columns(*self.whole()) if self.sparse else as_columns(self.whole())
        return (data, indices, begin, end) if index is None else (data, indices, begin[index], end[index])

    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if not self.sparse:
            return self.X[j].astype(np.float64), np.arange(self.d)
        stored = slice(self.indptr[j], self.indptr[j + 1])
        return self.data[stored].astype(np.float64), self.indices[stored]

    def some(self, index: np.ndarray) -> tuple:
        return spread(self, index) if self.stored is None else self.slices()
