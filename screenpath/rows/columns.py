"""Feature columns in memory: the same few operations as sample rows, asked of the transposed data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from screenpath.kernels import l1svm as kernels
from screenpath.rows.memory import MemoryRows


class Columns(MemoryRows):
    r"""Signed feature columns ``f_j = y * x^j``, stored one after the other.

    They are the rows of ``(diag(y) X)'``: ``products(v)`` is ``margins`` of the base class, ``combine(w)`` its
    ``weighted_sum`` (columns with a zero weight are not touched), and ``touched`` counts columns.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (samples, features)
        float64 or float32; copied column by column.
    signs : ndarray of shape (samples,)
        Labels -1 and +1.
    threads : int, default 1

    Attributes
    ----------
    n, d : int
        Features and samples.
    norms : ndarray of shape (n,)
        ``||f_j||``.
    """

    def __init__(self, X, signs, threads: int = 1):
        signs = np.asarray(signs).astype(X.dtype)
        if sp.issparse(X):
            transposed = sp.csr_array(X).T.tocsr()
            transposed.data = transposed.data * signs[transposed.indices]
        else:
            transposed = np.multiply(X.T, signs, order="C")
        super().__init__(transposed, threads)
        self.signs = signs.astype(np.float64)

    @classmethod
    def of_rows(cls, rows: MemoryRows, signs, threads: int = 1) -> Columns:
        """Return the signed columns of sample rows (a copy: the rows stay as they are)."""
        if not rows.sparse:
            return cls(rows.X, signs, threads)
        X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n, rows.d))
        return cls(X, signs, threads)

    def products(self, v: np.ndarray) -> np.ndarray:
        """Return ``f_j . v`` for every feature; ``v`` has one entry a sample."""
        return self.margins(v)

    def combine(self, w: np.ndarray) -> np.ndarray:
        """Return ``sum_j w_j f_j``, one entry a sample."""
        return self.weighted_sum(w)

    def spreads(self) -> np.ndarray:
        """Return ``||f_j - (f_j.y) y / n||``, the norms of the columns centred at their mean."""
        out = np.empty(self.n)
        if self.sparse:
            kernels.sparse_spreads(self.data, self.indices, self.indptr, self.signs, out)
        else:
            kernels.dense_spreads(self.X, self.signs, out)
        self.touched += self.n
        return out

    def take_columns(self, index: np.ndarray):
        """Return a contiguous float64 copy of some columns, as :meth:`MemoryRows.take`."""
        return self.take(index, np.ones(index.size))
