"""Feature columns in memory: the operations of sample rows on the transposed data."""

from __future__ import annotations

import numpy as np

from screenpath.data.safe.memory import VALUES_AT_ONCE
from screenpath.errors import UsageError
from screenpath.kernels.solve import l1newton as newton
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import shared_csr
from screenpath.rows.base import FeatureColumns
from screenpath.rows.memory import MemoryRows

NO_SAMPLES = np.empty(0, dtype=np.int32)
KEPT = 2500  # most columns whose inner products are stored, about 50 MB


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


def sign_sparse(data, indices, signs: np.ndarray) -> None:
    """Multiply sparse columns by the signs of the samples, in place."""
    for start in range(0, data.size, VALUES_AT_ONCE):
        part = slice(start, start + VALUES_AT_ONCE)
        data[part] *= signs[indices[part]]


class KeptProducts(FeatureColumns):
    """Columns whose inner products are stored, because solvers request those of nearly the same features repeatedly."""

    def forget(self) -> None:
        """Drop the stored inner products: runs compared on the same data must each compute their own."""
        self._known, self._position = np.empty(0, dtype=np.int64), np.full(self.n, -1)
        self._gram, self._sums = np.empty((0, 0)), np.empty(0)

    @property
    def known(self) -> np.ndarray:
        return self._known

    def know(self, index: np.ndarray) -> None:
        if np.array_equal(index, self._known):
            return
        self.forget()
        self._keep(index)

    def inner_products(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the inner products; up to ``KEPT`` columns are stored, a request beyond that starts again."""
        self.touched += self._keep(index)
        chosen = self._position[index]
        return self._gram[chosen[:, None], chosen], self._sums[chosen]

    def some(self, index: np.ndarray) -> tuple:
        data, samples, *ends = self.slices(index)
        places = np.zeros((2, self.n), dtype=np.int64)
        places[:, index] = ends
        return data, samples, *places

    def _keep(self, index: np.ndarray) -> int:
        """Compute the missing inner products of these columns; return how many columns that touches."""
        position = self._position
        fresh = index[position[index] < 0]
        if self._known.size + fresh.size > max(KEPT, index.size):
            self.forget()
            position, fresh = self._position, index
        known, total = self._known, self._known.size + fresh.size
        if total > self._sums.size:
            old, size = known.size, max(total, min(2 * total, KEPT))
            gram, sums = np.empty((size, size)), np.empty(size)
            gram[:old, :old], sums[:old] = self._gram[:old, :old], self._sums[:old]
            self._gram, self._sums = gram, sums
        if fresh.size:
            self._known = np.concatenate([known, fresh])
            before, new = np.arange(known.size), np.arange(known.size, total)
            newton.full_products(*self.slices(self._known), self.signs, before, new, self._gram, self._sums)
            position[fresh] = new
        return total if fresh.size else 0


class Columns(MemoryRows, KeptProducts):
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
        self.forget()

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
        return super().some(index) if self.stored is None else self.slices()
