"""Kernel values that are given: a matrix, or what a function of rows returns.

Bounds hold for a positive definite matrix alone. So the smallest number of a geometric sequence is added to the
diagonal with which a Cholesky factor proves that it is one (Rump 2006); the problem is that of this matrix.
The matrix may be mapped from a file: it is read in parts, and never copied as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpftrf

from screenpath.errors import DataError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.accurate import two_products, two_sum
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction

MOST = 8192  # rows: a factor of the matrix of all pairs is formed, of half its size
# Part of the largest value by which values on both sides of the diagonal may differ; of values that float32 has rounded
APART, APART32 = 1e-9, 1e-5
# Largest number that is added to the diagonal, over the largest value there; of values that float32 has rounded
RIDGE, RIDGE32 = 1e-6, 1e-4
HEIGHT = 256  # rows looked at, at a time


class GivenBlocks(KernelBlocks):
    """Blocks of given values; of a precomputed kernel the rows ``X`` are values themselves, with the training rows."""

    def __init__(self, X, function: KernelFunction, inexact: float = 0.0):
        self.function, self.inexact, self.shift, self.sparse = function, inexact, None, False
        self.X = self.prepared(X)
        (self.n, self.d), self.squares = X.shape, np.zeros(X.shape[0])
        if self.n > MOST:
            raise UsageError(f"a given kernel is for at most {MOST:,} rows, these are {self.n:,}", "use `kernel=rbf`")
        self.K = self._shaped(self.X, self.n, self.n) if function.call is None else self._called(self.X, self.X)
        self.skew = is_skew(self.K)
        self.ridge, self.diagonal = 0.0, self.K.diagonal().astype(np.float64) + function.constant
        self.ridge = ridge_of(self.block, self.diagonal, RIDGE if self.K.dtype == np.float64 else RIDGE32)
        self.diagonal, self.error = self.diagonal + self.ridge, 0.0
        self.sizes = np.sqrt(self.diagonal) * OUTWARD

    def prepared(self, X):
        """Return rows as they are, and values in the type that they have: most are never looked at."""
        if self.function.call is not None:
            return super().prepared(X)
        return X.toarray() if sp.issparse(X) else np.asarray(X)

    def _called(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        assert self.function.call is not None
        found = self.function.call(rows, others)
        found = sp.csr_array(found).toarray() if sp.issparse(found) else found
        return self._shaped(np.asarray(found, dtype=np.float64), len(rows), len(others))

    @staticmethod
    def _shaped(found: np.ndarray, rows: int, others: int) -> np.ndarray:
        if found.shape != (rows, others):
            what = f"a kernel of {rows} and {others} rows has the shape {found.shape}"
            raise DataError(what, "pass K(x_i, x_j) of all pairs of rows with the training rows")
        return found

    def block(self, rows, columns=None, others=None, room=None) -> np.ndarray:
        """Return values as of :meth:`KernelBlocks.block`; of a pair of training rows that below the diagonal."""
        columns = slice(0, self.n) if columns is None else columns
        if others is not None:
            of_all = self.function.call is None
            found = part(others, rows, columns) if of_all else self._called(others[rows], self.X[columns])
            if not np.isfinite(found).all():
                raise DataError("a kernel value of a new row is infinite or no number", "check the kernel")
            return found.astype(np.float64) + self.function.constant
        found = part(self.K, rows, columns).astype(np.float64)
        of_rows, of_columns = np.arange(self.n)[rows][:, None], np.arange(self.n)[columns]
        if self.skew:
            found = np.where(of_rows < of_columns, part(self.K, columns, rows).T, found)
        found += self.function.constant
        found[of_rows == of_columns] += self.ridge
        return found

    def diagonal_of(self, squares) -> np.ndarray:
        """Refuse to tell the kernel of new rows with themselves: only that with training rows is known."""
        what = "a given kernel does not tell how large new rows are, by which labels are proven"
        raise UsageError(what, "leave out `certify`, `interval` or `removals`")

    def precise_sums(self, rows, support, weights) -> np.ndarray:
        out = np.zeros((weights.shape[0], 2, rows.size))
        for k in range(support.size):
            product, rest = two_products(self.block(rows, support[k : k + 1])[:, 0], weights[:, k, None])
            total, lost = two_sum(out[:, 0], product)
            out[:, 0], out[:, 1] = total, out[:, 1] + (rest + lost)
        out[:, 0], out[:, 1] = two_sum(out[:, 0], out[:, 1])
        return out

    def precise_error(self, terms: int) -> float:
        return (4.0 * gamma(terms + 8) ** 2 + (terms + 8.0) * 2.0**-160) * OUTWARD


def part(K: np.ndarray, rows, columns) -> np.ndarray:
    """Return a part of a matrix; of two lists of numbers those of all pairs."""
    several = not (isinstance(rows, slice) or isinstance(columns, slice))
    return K[np.ix_(rows, columns)] if several else K[rows, columns]


def is_skew(K: np.ndarray) -> bool:
    """Tell whether values on both sides of the diagonal differ by rounding; DataError if by more, or if one is none."""
    largest, apart, at = 0.0, 0.0, (0, 0)
    for start in range(0, len(K), HEIGHT):
        below = K[start : start + HEIGHT]
        wrong = np.argwhere(~np.isfinite(below))
        if wrong.size:
            (i, j), value = wrong[0], below[tuple(wrong[0])]
            what = f"a kernel value is infinite or no number: that of the rows {start + i + 1} and {j + 1} is {value}"
            raise DataError(what, "check the kernel")
        largest = max(largest, float(np.abs(below).max()))
        below = below[:, : start + len(below)]
        off = np.abs(below - K[: below.shape[1], start : start + HEIGHT].T)
        i, j = np.unravel_index(np.argmax(off), off.shape)
        if off[i, j] > apart:
            apart, at = float(off[i, j]), (start + int(i) + 1, int(j) + 1)
    if apart > (APART if K.dtype == np.float64 else APART32) * largest:
        what = f"the kernel of the training rows is not symmetric: values of the rows {at[0]} and {at[1]}"
        raise DataError(f"{what} differ by {apart:.3g}", "pass (K + K.T) / 2 if that is meant")
    return apart > 0.0


def ridge_of(values: Callable[[slice, slice], np.ndarray], diagonal: np.ndarray, largest: float = RIDGE) -> float:
    """Return what is added to the diagonal of a symmetric matrix to prove it positive definite.

    ``values`` returns parts of it. A factor of ``A`` proves that no eigenvalue is below ``-(n + 2) UNIT`` times its
    trace; twice as much, and the rounding of the diagonal, is taken off before. The factor takes half of the matrix.
    """
    n, most = diagonal.size, float(diagonal.max(initial=0.0))
    lost = 2.0 * (n + 4.0) * UNIT * n * most
    ridge = 2.0 * lost
    while 0.0 < ridge <= largest * most:
        if dpftrf(n + n % 2, packed(values, n, ridge - lost), transr="N", uplo="L", overwrite_a=1)[1] == 0:
            return ridge
        ridge *= 10.0
    least = float(np.linalg.eigvalsh(values(slice(0, n), slice(0, n)))[0]) if n else 0.0
    what = f"the kernel of the training rows is not positive definite: its smallest eigenvalue is about {least:.3g}"
    raise DataError(what, "its problem has no dual bound and no certificate: pass another kernel")


def packed(values: Callable[[slice, slice], np.ndarray], n: int, ridge: float) -> np.ndarray:
    """Return a symmetric matrix plus a number on its diagonal in the rectangular packed form of LAPACK.

    One of odd size gets a row of the unit matrix more. Of the halves, the first has its columns below a row, the second
    stands as an upper triangle in the corner that is left.
    """
    half = (n + 1) // 2
    form, k = np.zeros((2 * half + 1, half), order="F"), np.arange(half)
    for start in range(0, half, HEIGHT):
        columns = slice(start, min(start + HEIGHT, half))
        form[1 + start : 1 + n, columns] = np.tril(values(slice(start, n), columns))
    for start in range(half, n, HEIGHT):
        rows = slice(start, min(start + HEIGHT, n))
        above = np.triu(values(slice(half, rows.stop), rows), half - start)
        form[: len(above), start - half : len(above)] += above
    form[k + 1, k] += ridge
    form[k, k] += np.where(k < n - half, ridge, 1.0)
    return form.reshape(-1, order="F")
