"""Rows held in memory, dense or CSR."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from types import SimpleNamespace

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.rows import rows as kernels
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import shared_csr, short
from screenpath.rows.base import WalkedRows

BLOCK = 4096  # rows of one unit of work; fixed, so that sums do not depend on the number of threads
CACHED = 1 << 15  # values that stay in a cache from one loop over their rows to the next
# Stored values and rows up to which a signal can wait for a step to end.
LARGEST, LONGEST = 20_000_000, 1_000_000


def usable_threads(requested: int) -> int:
    """Return the requested thread count, at most what this process may use (its affinity mask)."""
    if not isinstance(requested, Integral) or requested < 1:
        raise UsageError(f"`threads` must be a whole number of at least 1, not {requested!r}")
    if requested == 1:
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return min(requested, allowed)


def ordinary(array: np.ndarray) -> np.ndarray:
    """Return a read-only array as a writeable one, because compiled code treats the two as different types.

    Nobody writes to rows. The memory is the same: a file that is mapped read-only is not copied.
    """
    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = interface["data"][0], False
    return np.asarray(SimpleNamespace(__array_interface__=interface, keeps=array))


class MemoryRows(WalkedRows):
    """Sample rows in memory, shape (n, d), float64 or float32, an array or scipy.sparse, which becomes CSR.

    Passes over all rows and compiled walks (``pool``) use ``threads``, on which results do not depend.
    """

    def __init__(self, X, threads: int = 1, inexact: float = 0.0):
        self.sparse, self.inexact = sp.issparse(X), inexact
        if self.sparse:
            X = X.tocsr()
            self.data = ordinary(np.ascontiguousarray(X.data))
            # One canonical type each: no second compilation.
            self.indices, self.indptr = ordinary(short(X.indices, X.shape[1])), X.indptr.astype(np.int64)
        else:
            self.X = ordinary(np.ascontiguousarray(X))
        self.n, self.d = (int(size) for size in X.shape)
        self.threads = usable_threads(threads)
        self.pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        self.touched = 0
        self._workspace: dict = {}
        self.norms = np.sqrt(squared_norms(self._arrays))
        self._blocks = sum_blocks(self.n, self.size, self.d)
        self._row_parts, self._block_parts = _parts(self.n, self.threads), _parts(len(self._blocks), self.threads)

    @property
    def size(self) -> int:
        return int(self.data.size if self.sparse else self.X.size)

    def lent(self, key, make):
        if key not in self._workspace:
            self._workspace.clear()
            self._workspace[key] = make()
        return self._workspace[key]

    @property
    def nbytes(self) -> int:
        if self.sparse:
            return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes
        return self.X.nbytes

    @property
    def kinds(self):
        return (self.data.dtype, self.indices.dtype) if self.sparse else (self.X.dtype, None)

    @property
    def sum_edges(self) -> np.ndarray:
        return np.array([0, *(stop for _, stop in self._blocks)], dtype=np.int64)

    @property
    def stored(self):
        if self.kinds[0] != np.float64:
            return None
        return self._arrays if self.sparse else self.X

    @property
    def _arrays(self) -> tuple:
        return (self.data, self.indices, self.indptr) if self.sparse else (self.X,)

    @property
    def compiled(self) -> bool:
        """Tell whether a compiled walk may read the rows: in calls during which no signal is handled, see ``brief``."""
        return self.stored is not None

    @property
    def brief(self) -> bool:  # type: ignore[override]
        """Several threads share such walks on dense rows; on sparse ones they share the passes of the loop."""
        return self.size <= LARGEST and self.n <= LONGEST and (self.threads == 1 or not self.sparse)

    def margins(self, w: np.ndarray) -> np.ndarray:
        out = np.empty(self.n)
        w = np.ascontiguousarray(w, dtype=np.float64)
        products = kernels.csr_products if self.sparse else kernels.dense_products
        arrays = self._arrays
        self._each(lambda part: products(*arrays, w, out, *part), self._row_parts)
        self.touched += self.n
        return out

    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        add, arrays = kernels.csr_sum if self.sparse else kernels.dense_sum, self._arrays
        partial = np.zeros((len(self._blocks), self.d))

        def one(blocks):
            return sum(add(*arrays, theta, partial[k], *self._blocks[k]) for k in range(*blocks))

        self.touched += sum(self._each(one, self._block_parts))
        return _whole(partial)

    def margins_and_sum(self, w, weigh):
        products, add = (
            (kernels.csr_products, kernels.csr_sum) if self.sparse else (kernels.dense_products, kernels.dense_sum)
        )
        out, weights, partial = np.empty(self.n), np.empty(self.n), np.zeros((len(self._blocks), self.d))
        arrays, some = self._arrays, max(1, CACHED * self.n // max(self.size, 1))
        w = np.ascontiguousarray(w, dtype=np.float64)

        def one(blocks):
            for k in range(*blocks):
                first, last = self._blocks[k]
                for s in range(first, last, some):
                    e = min(s + some, last)
                    products(*arrays, w, out, s, e)
                    weights[s:e] = weigh(out[s:e], s, e)
                    add(*arrays, weights, partial[k], s, e)

        self._each(one, self._block_parts)
        self.touched += self.n
        return out, _whole(partial)

    def take(self, index: np.ndarray, signs: np.ndarray):
        self.touched += index.size
        if not self.sparse:
            out = np.empty((index.size, self.d))
            parts = [slice(*part) for part in _parts(index.size, self.threads)]
            self._each(lambda part: kernels.dense_take(self.X, index[part], signs[part], out[part]), parts)
            return out
        nnz = int(np.sum(self.indptr[index + 1] - self.indptr[index]))
        rows = (np.empty(nnz), np.empty(nnz, dtype=self.indices.dtype), np.empty(index.size + 1, dtype=np.int64))
        kernels.csr_take(*self._arrays, index, signs, *rows)
        return rows

    def part(self, index: np.ndarray, signs: np.ndarray) -> MemoryRows:
        """Return a copy of some rows, without signs, that shares threads and work space."""
        X = shared_csr(self.data, self.indices, self.indptr, (self.n, self.d)) if self.sparse else self.X
        found = MemoryRows(X[index], self.threads, self.inexact)
        found.pool, found._workspace = self.pool, self._workspace
        return found

    def whole(self):
        """Return all rows as :meth:`take` would, without a copy of float64 values."""
        if not self.sparse:
            return self.X if self.X.dtype == np.float64 else self.X.astype(np.float64)
        return self.data.astype(np.float64, copy=False), self.indices, self.indptr

    def _each(self, work, parts: list) -> list:
        """Call ``work`` with each part, the first one in this thread, and return the results in order."""
        if self.pool is None or len(parts) < 2:
            return [work(part) for part in parts]
        others = [self.pool.submit(work, part) for part in parts[1:]]
        return [work(parts[0]), *(other.result() for other in others)]


def _whole(partial: np.ndarray) -> np.ndarray:
    """Return the sum over blocks in a fixed order: its bytes do not depend on the number of threads."""
    return partial[0] if len(partial) == 1 else partial.sum(axis=0)


def squared_norms(arrays: tuple) -> np.ndarray:
    """Return the squared norms of rows, dense (X,) or sparse (data, indices, indptr)."""
    out = np.empty(len(arrays[0]) if len(arrays) == 1 else arrays[2].size - 1)
    if len(arrays) == 1:
        kernels.dense_squared_norms(*arrays, out)
    else:
        kernels.csr_squared_norms(arrays[0], arrays[2], out)
    return out


def _parts(n: int, count: int) -> list[tuple[int, int]]:
    """Cut ``range(n)`` into ``count`` parts of about the same size, fewer if there are fewer entries."""
    count = max(1, min(count, n))
    if count == 1:
        return [(0, n)]
    edges = [n * k // count for k in range(count + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def sum_blocks(n: int, size: int, d: int) -> list[tuple[int, int]]:
    """Cut the rows into at most 16 blocks whose partial sums stay below a quarter of the data's size."""
    return _parts(n, max(1, min(16, n // BLOCK, size // max(4 * d, 1))))


def prepared_rows(X, preparation, threads: int = 1) -> MemoryRows:
    """Return prepared data as rows; float32 values count as the exact data."""
    return MemoryRows(X, threads, preparation.inexact if X.dtype == np.float64 else 0.0)
