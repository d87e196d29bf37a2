"""Kernel values that are given: a matrix, or what a function of rows returns.

Bounds hold for a positive definite matrix alone. So the smallest number of a geometric sequence is added to the
diagonal with which a Cholesky factor proves that it is one (Rump 2006); the problem is that of this matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf

from screenpath.errors import DataError, UsageError
from screenpath.numbers.accurate import two_products, two_sum
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction

MOST = 8192  # rows: the matrix of all pairs is kept
APART = 1e-9  # part of the largest value by which values on both sides of the diagonal may differ
RIDGE = 1e-6  # largest number that is added to the diagonal, over the largest value there


class GivenBlocks(KernelBlocks):
    """Blocks of given values; of a precomputed kernel the rows ``X`` are values themselves, with the training rows."""

    def __init__(self, X, function: KernelFunction, inexact: float = 0.0):
        self.function, self.inexact, self.shift, self.sparse = function, inexact, None, False
        self.X = self.prepared(X)
        (self.n, self.d), self.squares = X.shape, np.zeros(X.shape[0])
        if self.n > MOST:
            raise UsageError(f"a given kernel is for at most {MOST:,} rows, these are {self.n:,}", "use `kernel=rbf`")
        self.K = self._values(self.X, self.X)
        self.K[np.diag_indices(self.n)] += ridge_of(self.K)
        self.diagonal, self.error = self.K.diagonal().copy(), 0.0
        self.sizes = np.sqrt(self.diagonal) * OUTWARD

    def _values(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the kernel between rows and training rows; of all training rows made symmetric."""
        call, square = self.function.call, rows is others
        found = rows if call is None else np.asarray(call(rows, others), dtype=np.float64)
        if found.shape != (len(rows), len(others)):
            what = f"a kernel of {len(rows)} and {len(others)} rows has the shape {found.shape}"
            raise DataError(what, "pass K(x_i, x_j) of all pairs of rows with the training rows")
        found = found + self.function.constant
        if not np.isfinite(found).all():
            raise DataError("a kernel value is infinite or no number", "check the kernel")
        if square and np.abs(found - found.T).max(initial=0.0) > APART * np.abs(found).max(initial=0.0):
            raise DataError("the kernel of the training rows is not symmetric", "check the kernel")
        return np.tril(found) + np.tril(found, -1).T if square else found

    def block(self, rows, columns=None, others=None) -> np.ndarray:
        columns = slice(None) if columns is None else columns
        if others is None:
            return self.K[rows][:, columns]
        if self.function.call is None:
            return others[rows][:, columns] + self.function.constant
        return self._values(others[rows], self.X[columns])

    def diagonal_of(self, squares) -> np.ndarray:
        """Refuse to tell the kernel of new rows with themselves: only that with training rows is known."""
        what = "a given kernel does not tell how large new rows are, by which labels are proven"
        raise UsageError(what, "leave out `certify` or `removals`")

    def precise_sums(self, rows, support, weights) -> np.ndarray:
        out = np.zeros((weights.shape[0], 2, rows.size))
        for k, j in enumerate(support):
            product, rest = two_products(self.K[rows, j], weights[:, k, None])
            total, lost = two_sum(out[:, 0], product)
            out[:, 0], out[:, 1] = total, out[:, 1] + (rest + lost)
        out[:, 0], out[:, 1] = two_sum(out[:, 0], out[:, 1])
        return out

    def precise_error(self, terms: int) -> float:
        return (4.0 * gamma(terms + 8) ** 2 + (terms + 8.0) * 2.0**-160) * OUTWARD


def ridge_of(K: np.ndarray) -> float:
    """Return what is added to the diagonal of a symmetric matrix to prove it positive definite.

    A factor of ``A`` proves that no eigenvalue is below ``-(n + 2) UNIT`` times its trace; twice as much, and the
    rounding of the diagonal, is taken off before.
    """
    n, most = len(K), float(K.diagonal().max(initial=0.0))
    lost = 2.0 * (n + 4.0) * UNIT * n * most
    ridge = 2.0 * lost
    while 0.0 < ridge <= RIDGE * most:
        A = K.copy()
        A[np.diag_indices(n)] += ridge - lost
        if dpotrf(A, lower=1, overwrite_a=1, clean=0)[1] == 0:
            return ridge
        ridge *= 10.0
    least = float(np.linalg.eigvalsh(K)[0]) if n else 0.0
    what = f"the kernel of the training rows is not positive definite: its smallest eigenvalue is about {least:.3g}"
    raise DataError(what, "its problem has no dual bound and no certificate: pass another kernel")


def blocks_of(X, function: KernelFunction, inexact: float) -> KernelBlocks:
    """Return the blocks of a kernel function between data rows."""
    return (GivenBlocks if function.given else KernelBlocks)(X, function, inexact)
