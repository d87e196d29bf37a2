"""Rows seen through a kernel: the matrix ``Q_ij = s_i s_j K(x_i, x_j)``, precomputed or row by row in a cache."""

from __future__ import annotations

import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from screenpath.data.safe.memory import as_option, free_memory, in_force, in_words
from screenpath.errors import ResourceError, UsageError
from screenpath.kernels.rows import gram as kernels
from screenpath.numbers import sparse as sp
from screenpath.rows.base import Counted
from screenpath.rows.kernel_functions import BLOCK_BYTES, HeldOutRows, KernelBlocks
from screenpath.rows.memory import usable_threads

MOST = 1 << 62  # bytes: a record may name any whole number
BLOCK_SHARE, BLOCK_LEAST = 1 / 16, 1 << 20  # of the allowed memory, if that is less; and the least bytes
SQUARE = 1024  # survivors whose square part must always fit
LEAST_ROWS = 64  # rows below which a cache is pointless
CACHE_SHARE = 0.6  # of the memory for cached rows; the rest is for the square part of the working set
MOST_FREE = 4000  # coordinates of a Newton step: beyond it the factor takes longer than the pair steps it saves
FACTOR_BYTES = 14  # of the factor, per pair of these: 8, and its border
CHOICES = ("auto", "full", "cache")


@dataclass(frozen=True, slots=True)
class Allowance:
    """Memory that a kernel matrix may take, as a part of a larger limit."""

    size: int  # bytes for this matrix and its work arrays
    beside: int = 0  # bytes of the limit that are not for matrices
    shares: int = 1  # number of matrices that share the rest

    @classmethod
    def of(cls, limit: int, beside: int, shares: int = 1) -> Allowance:
        """Divide what a limit leaves."""
        return cls(max(limit - beside, 0) // shares, beside, shares)

    def limit_for(self, need: int) -> str:
        """Return the option value with which a matrix could take ``need`` bytes."""
        return as_option(1.01 * need * self.shares + self.beside)


@dataclass(frozen=True, slots=True)
class GramPlan:
    """How a kernel matrix is stored."""

    full: bool  # all of it; otherwise ``rows`` of its rows in a cache
    need: int  # need, allowed: bytes of the plan and bytes that may be taken
    allowed: int
    rows: int  # rows of the cache (n for a full matrix)
    block: int  # bytes of rows computed at once
    square: int  # largest working set whose square part may be copied
    free: int  # most coordinates whose part of the matrix may be factorised
    n: int
    itemsize: int

    @property
    def most(self) -> int:
        """Return the bytes that may be taken, with square part and factor at their largest."""
        paid = 8 * min(self.n, SQUARE) ** 2
        return self.need + max(8 * self.square**2 - paid, 0) + FACTOR_BYTES * self.free**2

    def describe(self) -> str:
        """Return the sentence printed before anything is allocated."""
        kept = "precomputed" if self.full else f"a cache of {self.rows} of its {self.n} rows"
        return (
            f"kernel matrix {self.n} x {self.n}, float{8 * self.itemsize}: {kept}, "
            f"{in_words(self.need)} of the {in_words(self.allowed)} allowed"
        )


def plan_gram(n: int, itemsize: int, max_memory: int | Allowance | None, keep: str = "auto") -> GramPlan:
    """Decide how a kernel matrix of ``n`` rows is stored: ``full``, a ``cache``, or ``auto``, full if it fits.

    By default half of the free memory is allowed. A requested form that does not fit is an error.
    """
    if keep not in CHOICES:
        raise UsageError(f"unknown way '{keep}' of keeping the kernel matrix", f"use one of {', '.join(CHOICES)}")
    given = max_memory if max_memory is not None else free_memory() // 2
    given = given if isinstance(given, Allowance) else Allowance(given)
    allowed = min(given.size, MOST)
    row = n * itemsize
    block = _block(n, allowed)
    work = 2 * block + 8 * min(n, SQUARE) ** 2
    need = n * row + work
    if keep != "cache" and need <= allowed:
        return GramPlan(True, need, allowed, n, block, *_working_set(n, allowed - need), n, itemsize)
    if keep == "full":
        enough = given.limit_for(_enough(n, need - 2 * block))
        raise ResourceError(
            f"the kernel matrix needs {in_words(need)}, but {in_words(allowed)} are allowed",
            f"use `max_memory={enough}` if you have it, `dtype=float32` for half of the matrix, or `gram=cache`",
        )
    rows = min(n, int(CACHE_SHARE * (allowed - work)) // row)
    if rows < min(LEAST_ROWS, n):
        least = _enough(n, int(work - 2 * block + row * min(LEAST_ROWS, n) / CACHE_SHARE) + 1)
        raise ResourceError(
            f"a cache of {LEAST_ROWS} kernel rows needs {in_words(least)}, but {in_words(allowed)} are allowed",
            f"use `max_memory={given.limit_for(least)}`",
        )
    left = allowed - work - rows * row
    return GramPlan(False, work + rows * row, allowed, rows, block, *_working_set(n, left), n, itemsize)


def _block(n: int, allowed: int) -> int:
    return min(BLOCK_BYTES, 8 * n * n, max(int(BLOCK_SHARE * allowed), BLOCK_LEAST))


def _enough(n: int, fixed: int) -> int:
    """Return what must be allowed for ``fixed`` bytes and two blocks, whose size depends on what is allowed."""
    least = fixed
    while fixed + 2 * _block(n, least) > least:
        least = fixed + 2 * _block(n, least)
    return least


def _working_set(n: int, left: int) -> tuple[int, int]:
    """Return the largest working set, and the most coordinates of it that are factorised, in ``left`` bytes.

    The square part of ``SQUARE`` rows is counted already.
    """
    left += 8 * min(n, SQUARE) ** 2
    square = max(int(np.sqrt(left / (8 + FACTOR_BYTES))), int(np.sqrt(max(left - FACTOR_BYTES * MOST_FREE**2, 0) / 8)))
    square = min(max(square, SQUARE), n)
    return square, min(int(np.sqrt(max(left - 8 * square**2, 0) / FACTOR_BYTES)), MOST_FREE)


FEW = 0.4  # share of the columns below which a sum over rows reads only these
ROUND_TO = 4 << 20  # bytes; unit of the remaining memory in a plan
FLOAT32_RANGE = 2.0**-100, 2.0**127  # of squared norms whose products float32 holds without under- or overflow
FLOAT32 = 2.0**-23  # exceeds the relative error of rounding to float32
TILE = 256  # rows and columns of a block of the precomputed matrix


@dataclass(eq=False, slots=True)
class SquarePart:
    """The square part of a kernel matrix for some rows, each copied when first needed."""

    source: np.ndarray  # float64 or float32 of shape (n, n): the stored matrix
    index: np.ndarray  # int64 of shape (m,): rows and columns of the part
    values: np.ndarray  # shape (m, m): rows of the part that ``filled`` marks are valid
    filled: np.ndarray  # int8 of shape (m,)

    @property
    def parts(self) -> tuple:
        """Return the arguments of :func:`kernels.solve.smo.smo`."""
        return self.source, self.index, self.values, self.filled

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """Return the values, of which at least the rows ``wanted`` are valid."""
        kernels.fill(self.parts, wanted)
        return self.values


class GramRows(Counted):
    """Signed rows ``z_i`` known through the matrix ``Q_ij = z_i.z_j``, of data ``X``, shape (n, d).

    ``touched`` counts rows of the matrix. See :func:`plan_gram` for ``max_memory`` and ``keep``.

    With the ``dtype`` float32 the solver works on rounded values; sums that certify or screen are computed from the
    data in float64. Blocks of the matrix are computed by ``threads``, on which results do not depend. ``tell`` is
    called with one sentence about the memory before it is allocated, ``inexact`` is that of :class:`KernelBlocks`.
    """

    def __init__(
        self, X, function, signs, max_memory=None, dtype=np.float64, keep="auto", threads=1, tell=None, inexact=0.0
    ):
        self.n, self.d = (int(size) for size in X.shape)
        self.sparse = sp.issparse(X)
        self.dtype = np.dtype(dtype)
        self.plan = _plan_within(self.n, self.dtype.itemsize, max_memory, keep)
        if tell is not None:
            tell(self.plan.describe())
        self.signs = np.asarray(signs, dtype=np.float64)
        self.blocks = KernelBlocks(X, function, inexact)
        self.norms = self.blocks.sizes  # shape (n,): ``sqrt(Q_ii)``, rounded up
        # Bounds of the error of ``Q_ij`` over ``norms_i norms_j``, in sums that certify or screen and in a solver's.
        self.error = self.blocks.error
        self.stored_error = self.error if self.exact else self.error + self._float32_error()
        self.touched: float = 0
        self._height = max(1, min(self.n, self.plan.block // (8 * self.n)))
        self._slots = OrderedDict()  # row number to slot of the store, least recently used first
        self._store = np.empty((self.plan.rows, self.n), dtype=self.dtype)
        self._scratch = np.empty(0)  # of the square part in use
        self.seconds = 0.0  # of computing the whole matrix
        if self.plan.full:
            began = time.perf_counter()
            self._fill(usable_threads(threads))
            self.seconds = time.perf_counter() - began

    @property
    def exact(self) -> bool:
        return self.dtype == np.float64

    @property
    def whole(self) -> bool:
        """Tell whether :meth:`square` of all rows is the stored matrix itself."""
        return self.plan.full and self.exact

    @property
    def nbytes(self) -> int:
        return self._store.nbytes

    def describe(self) -> dict:
        """Return the kernel and how its matrix is stored, for records."""
        return {
            **self.blocks.function.describe(),
            "matrix": "full" if self.plan.full else "cache",
            "rows_kept": self.plan.rows,
            "dtype": self.dtype.name,
            "bytes": self.nbytes,
            "seconds": self.seconds,
        }

    def _float32_error(self) -> float:
        """Return the relative error of rounding the values to float32; inf beyond its range."""
        some = self.blocks.diagonal[self.blocks.diagonal > 0.0]
        inside = some.size == 0 or (some.min() > FLOAT32_RANGE[0] and some.max() < FLOAT32_RANGE[1])
        return FLOAT32 if inside else np.inf

    def forget(self) -> None:
        """Empty the cache of rows, so that all paths start alike; a precomputed matrix stays."""
        self._slots.clear()

    def held_out(self, X) -> HeldOutRows:
        return self.blocks.held_out(X)

    # -- sums ----------------------------------------------------------------------------------------------------

    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        """Return ``Q theta``, shape (n,); rows with a zero weight are not touched."""
        index = theta.nonzero()[0]
        out = np.zeros(self.n)
        self.add_sum(index, theta[index], out)
        return out

    def add_sum(self, index: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_k weights[k] Q[index[k]]``, the index ascending, to ``out`` of shape (n,), in float64."""
        self.touched += index.size
        if self.whole:
            kernels.add_rows(self._store, index, weights, out)
            return
        for cut in self._slices(index.size):
            part = index[cut]
            if self.exact:
                kernels.add_rows(self._store, self._fetch(part), weights[cut], out)
            else:
                out += ((weights[cut] * self.signs[part]) @ self.blocks.block(part)) * self.signs

    def depth(self, m: int) -> float:
        """Return an upper bound of the number of consecutive operations in a sum over ``m`` rows."""
        slices = 1 if self.whole else -(-m // min(self._height, self.plan.rows))
        return min(m, m // 4 + 4 * slices) + slices + 12.0 if self.exact else m + slices + 12.0

    def precise_sums(self, target: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the entries ``target`` of ``Q weights[q]`` from the data, as sums of two doubles, shape (q, 2, m).

        Their error is at most the second number returned times ``norms[target] (|weights| @ norms)``.
        """
        support = np.flatnonzero(weights.any(axis=0))
        self.touched += support.size * target.size / self.n
        sums = self.blocks.precise_sums(target, support, np.ascontiguousarray((weights * self.signs)[:, support]))
        return sums * self.signs[target], self.blocks.precise_error(support.size)

    def sum_at(self, index: np.ndarray, weights: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return ``sum_k weights[k] Q[index[k], target]`` from the stored values, for a solver."""
        self.touched += index.size * target.size / self.n
        few = target.size < FEW * self.n
        out = np.zeros(target.size if few else self.n)
        for part in [slice(None)] if self.plan.full else self._slices(index.size):
            rows = index[part] if self.plan.full else self._fetch(index[part])
            if few:
                kernels.add_rows_at(self._store, rows, weights[part], target, out)
            else:
                kernels.add_rows(self._store, rows, weights[part], out)
        return out if few else out[target]

    def square(self, index: np.ndarray) -> SquarePart:
        """Return ``Q[index][:, index]``; it shares its memory with the last one, which becomes invalid.

        The index ascends; it has at most ``plan.square`` rows, or all of them if a float64 matrix is stored.
        """
        m = index.size
        if self.whole and m == self.n:
            return SquarePart(self._store, index, self._store, np.ones(m, dtype=np.int8))
        if self._scratch.size == 0:  # the largest size: pages are allocated when written
            self._scratch = np.empty(self.plan.square**2)
        values = self._scratch[: m * m].reshape(m, m)
        if self.plan.full:
            return SquarePart(self._store, index, values, np.zeros(m, dtype=np.int8))
        for part in self._slices(m):
            kernels.gather(self._store, self._fetch(index[part]), index, values[part])
        return SquarePart(values, index, values, np.ones(m, dtype=np.int8))

    # -- rows ----------------------------------------------------------------------------------------------------

    def _slices(self, size: int) -> list[slice]:
        """Cut ``size`` rows into parts that fit into the cache and into one block."""
        height = min(self._height, self.plan.rows)
        return [slice(start, min(start + height, size)) for start in range(0, size, height)]

    def _signed(self, rows, columns=slice(None)) -> np.ndarray:
        block = self.blocks.block(rows, columns)
        block *= self.signs[rows][:, None]
        block *= self.signs[columns]
        return block

    def _fill(self, threads: int) -> None:
        """Compute the matrix in blocks, each once: the other triangle is its mirror image."""
        size = min(self._height, TILE)
        cuts = [slice(start, min(start + size, self.n)) for start in range(0, self.n, size)]

        def one(pair):
            rows, columns = pair
            block = self._signed(rows, columns)
            if rows == columns:  # the last digit of a product may depend on the order of its rows
                block = np.tril(block, -1)
                block += block.T
                self._store[rows, columns] = block
            else:
                self._store[rows, columns] = block
                self._store[columns, rows] = block.T

        pairs = [(rows, columns) for k, rows in enumerate(cuts) for columns in cuts[k:]]
        if threads == 1:
            for pair in pairs:
                one(pair)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(one, pairs))
        np.fill_diagonal(self._store, self.blocks.diagonal)

    def _fetch(self, index: np.ndarray) -> np.ndarray:
        """Load rows into the cache, at most as many as it and one block hold; return their slots."""
        wanted = index.tolist()
        missing = []
        for i in wanted:
            if i in self._slots:
                self._slots.move_to_end(i)
            else:
                missing.append(i)
        if missing:
            block = self._signed(np.array(missing))
            block[np.arange(len(missing)), missing] = self.blocks.diagonal[missing]
            for k, i in enumerate(missing):
                full = len(self._slots) == self.plan.rows
                slot = self._slots.popitem(last=False)[1] if full else len(self._slots)
                self._slots[i] = slot
                self._store[slot] = block[k]
        return np.array([self._slots[i] for i in wanted], dtype=np.int64)


def _plan_within(n: int, itemsize: int, max_memory: int | Allowance | None, keep: str) -> GramPlan:
    """Return how the matrix is stored, within what the limit in force leaves.

    Allowances follow from data and options alone, so that a command takes the same steps each time. If more memory than
    estimated is taken already (another interpreter, other libraries), the rest counts, in large units for the same
    reason. An error would not help: a larger limit would allow a larger matrix, which would not fit either.
    """
    plan, limit = plan_gram(n, itemsize, max_memory, keep), in_force()
    if limit.left is not None and plan.most > limit.left:
        given = max_memory if isinstance(max_memory, Allowance) else Allowance(plan.allowed)
        size = limit.left // ROUND_TO * ROUND_TO
        # A larger limit loses up to ROUND_TO as well.
        less = Allowance(size, given.beside + given.shares * (given.size - size + ROUND_TO), given.shares)
        plan = plan_gram(n, itemsize, less, keep)
        limit.check(plan.most, f"the kernel matrix of {n:,} rows")
    return plan
