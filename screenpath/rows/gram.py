"""Rows seen through a kernel, ``Q_ij = s_i s_j K(x_i, x_j)``: sums of them formed from the data, and the square of the
rows in use.

Of more than a few rows no matrix of all pairs is kept in float64. A sum of rows costs what its rows cost to compute, in
tiles that stay in the processor's cache, and a solver asks only for those whose dual variables have changed. Of some
thousand rows of which many are asked for, all values are kept in 4 bytes each (:class:`FixedValues`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from weakref import proxy

import numpy as np

from screenpath.data.safe.memory import as_option, free_memory, in_force, in_words
from screenpath.errors import ResourceError
from screenpath.kernels.rows import gram as kernels
from screenpath.numbers import sparse as sp
from screenpath.rows.base import Counted
from screenpath.rows.given_kernel import GivenBlocks
from screenpath.rows.kernel_functions import BLOCK_BYTES, FixedValues, HeldOutRows, KernelBlocks
from screenpath.rows.memory import usable_threads

MOST = 1 << 62  # bytes: a record may name any whole number
ROUGH_ROWS = 12000  # from so many on, sums cost more than what float32 asks for besides
ROUGH_WIDTH = 2048  # columns of a tile in float32
HEIGHT, WIDTH = 128, 1024  # rows and columns of a tile of dense data: its values stay in the processor's cache
WHOLE = 2048  # rows whose matrix is kept, 32 MB: rows of so few are asked for again and again
SQUARE = 1024  # rows whose square must always fit
MOST_HELD = 8192  # rows whose square is kept: 256 MB
FEW = 2048  # rows, more of which may be kept in 4 bytes a value
MANY = 0.25  # share of them in one sum, from which on all values are formed at once and kept
MOST_FREE = 4000  # coordinates of a Newton step: beyond it the factor takes longer than the pair steps it saves
FACTOR_BYTES = 14  # of the factor, per pair of these: 8, and its border
FIXED_SHARE = 0.25  # of the memory that may be taken: the square of the rows in use comes first
SPARE = 1.2  # rows of a square for one in use: one that was in use before stays while there is room
PADDING = 16  # values between two rows of the square: columns a power of two apart share few lines of a cache
ROUND_TO = 4 << 20  # bytes; unit of the remaining memory in a plan
# A value over the least on the diagonal that counts as 0 in float32: products of such values are no normal numbers,
# which take a hundred times as long.
NOTHING = 2.0**-40
FLOAT32_RANGE = 2.0**-100, 2.0**100  # of squared norms whose products float32 holds without under- or overflow


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


@dataclass(frozen=True, slots=True)
class GramPlan:
    """How many rows of a kernel matrix a solver may use at once."""

    whole: bool  # whether all of the matrix is kept
    fixed: bool  # whether all of it may be kept in 4 bytes a value
    square: int  # rows whose square may be kept
    free: int  # most coordinates whose part of the matrix may be factorised
    most: int  # bytes that are taken at most
    allowed: int  # bytes that may be taken
    n: int

    def describe(self) -> str:
        """Return the sentence printed before anything is allocated."""
        most = "perhaps all of them" if self.fixed else f"at most {self.square}^2 of them"
        kept = "the whole matrix" if self.whole else f"values computed as needed, {most} kept"
        return f"kernel of {self.n} rows: {kept}, {in_words(self.most)} of the {in_words(self.allowed)} allowed"


def plan_gram(n: int, itemsize: int, max_memory: int | Allowance | None, most=None, bounded=False) -> GramPlan:
    """Decide how many rows may be used at once; by default half of the free memory is allowed.

    The matrix is kept of up to ``most`` rows, by default few; of more, values that are ``bounded``, as those of an
    exponential kernel, may be kept in 4 bytes each. Of each pair of rows in use there are a value that is
    kept, a copy, and if few are free a factor's entry.
    """
    given = max_memory if max_memory is not None else free_memory() // 2
    given = given if isinstance(given, Allowance) else Allowance(given)
    allowed, pair, few = min(given.size, MOST), 2 * itemsize, min(n, SQUARE)
    left = allowed - min(2 * BLOCK_BYTES, 8 * n * min(n, HEIGHT))
    if left < pair * few**2:
        least = allowed - left + pair * few**2
        raise ResourceError(
            f"the kernel values of {few} rows need {in_words(least)}, but {in_words(allowed)} are allowed",
            f"use `max_memory={as_option(1.01 * least * given.shares + given.beside)}`",
        )
    whole = itemsize == 8 and n <= (WHOLE if most is None else most) and 8 * n**2 <= left - pair * few**2
    fixed = bounded and itemsize == 8 and FEW < n <= MOST_HELD and not whole and 4 * n**2 <= FIXED_SHARE * left
    left -= 8 * n**2 * whole + 4 * n**2 * fixed
    square = min(max(few, int(np.sqrt(left / (pair + FACTOR_BYTES)))), n, MOST_HELD)
    free = min(square, MOST_FREE, int(np.sqrt((left - pair * square**2) / FACTOR_BYTES)))
    most_taken = allowed - left + pair * square**2 + FACTOR_BYTES * free**2
    return GramPlan(whole, fixed, square, free, most_taken, allowed, n)


class GramRows(Counted):
    """Signed rows ``z_i`` known through the matrix ``Q_ij = z_i.z_j``, of data ``X``, shape (n, d).

    ``signs``, shape (N,), is as long as the data, or twice as long: then ``z_i`` and ``z_(n + i)`` are of the same row,
    whose kernel values are formed once. ``touched`` counts rows that are summed. See :func:`plan_gram` for
    ``max_memory``. Sums are formed in float64; the square that a solver works on is float32, or with the ``dtype``
    float64, where that does not get it on, float64. Tiles are computed by ``threads``, on which results do not depend.
    ``tell`` is called with one sentence about the memory before it is allocated, ``inexact`` is that of
    :class:`KernelBlocks`.
    """

    where: np.ndarray | None = None  # which rows of a matrix that is shared these are, ...
    columns: tuple[slice, ...] = ()  # ... and among which columns of it
    hasty = False  # whether sums of float64 do where more precise ones are asked for

    def __init__(self, X, function, signs, max_memory=None, dtype=np.float64, threads=1, tell=None, inexact=0.0):
        self.n, self.d = (int(size) for size in X.shape)
        self.sparse = sp.issparse(X)
        self.dtype = np.dtype(dtype)
        self.signs = np.asarray(signs, dtype=np.float64)
        self.plan = self._plan(max_memory, function.exponential)
        if tell is not None:
            tell(self.plan.describe())
        self.touched: float = 0
        self.threads = usable_threads(threads)
        self._tiles: list[np.ndarray] = []  # where threads form their tiles
        self.features = function.name != "precomputed"
        self._take((GivenBlocks if function.given else KernelBlocks)(X, function, inexact))

    def _plan(self, max_memory, bounded: bool) -> GramPlan:
        return plan_within(self.n, self.dtype.itemsize, max_memory, bounded=bounded)

    def _take(self, blocks: KernelBlocks) -> None:
        self.blocks = blocks
        self.norms = np.tile(self.blocks.sizes, self.signs.size // self.n)  # shape (N,): ``sqrt(Q_ii)``, rounded up
        self.error = self.blocks.error  # of ``Q_ij`` over ``norms_i norms_j``
        some = self.blocks.diagonal[self.blocks.diagonal > 0.0]
        inside = some.size == 0 or (some.min() > FLOAT32_RANGE[0] and some.max() < FLOAT32_RANGE[1])
        self._plain = np.dtype(np.float32 if inside else np.float64)
        self.least = NOTHING * float(some.min(initial=1.0))
        self._matrix: np.ndarray | None = None
        self.fixed = FixedValues(blocks) if self.plan.fixed else None  # may be kept
        self.keeps = False  # whether they are
        self.spaces = Space(), Space(), Space()  # of a compact copy, a factor, and the square: of one solve at a time
        self.square = Square(self, self._plain)

    def with_gamma(self, value: float) -> GramRows:
        """Return the same rows behind the same kernel with another gamma."""
        found = copy(self)
        found._take(self.blocks.with_gamma(value))
        return found

    def signed(self, signs: np.ndarray) -> GramRows:
        """Return the same rows with other signs; what is known of the kernel's values is that of both."""
        if self.plan.whole:
            self.matrix  # noqa: B018  # one for all
        found = copy(self)
        found.signs, found.touched, found.square = signs, 0, Square(found, self.square.dtype)
        return found

    def take_matrix(self, matrix: np.ndarray, error: float, where: np.ndarray, columns: tuple[slice, ...]) -> None:
        """Use a matrix between rows, without signs, whose values are off by at most ``error``; these are at ``where``,
        and all of them in ``columns``.
        """
        self.blocks.error = self.error = max(self.error, error)
        self._matrix, self.plan, self.where, self.columns = matrix, replace(self.plan, whole=True), where, columns
        self.fixed, self.keeps = None, False
        self.forget()

    @property
    def nbytes(self) -> int:
        """Return the bytes of the kernel values that may be kept."""
        return self._plain.itemsize * (self.n if self.plan.whole or self.fixed is not None else self.plan.square) ** 2

    def describe(self) -> dict:
        """Return the kernel, and how many of its rows are used at once, for records."""
        kept = {"rows_kept": self.plan.square, "dtype": self.dtype.name, "bytes": self.nbytes}
        return {**self.blocks.function.describe(), **kept}

    def forget(self, fine: bool = False) -> None:
        """Empty the square where its values might depend on what was formed before: all steps start alike, in float32
        or, if ``fine``, as after :meth:`sharpen`.
        """
        dtype = max(self._plain, self.dtype) if fine else self._plain
        same = self.blocks.steady and self.square.dtype == dtype == np.float32
        if not same or self.square.rows.keeps != self.keeps:
            self.square = Square(self, dtype)

    def sharpen(self) -> bool:
        """Let the square be float64 from now on; tell whether that is new."""
        sharper = self.dtype > self.square.dtype
        if sharper:
            self.square = Square(self, self.dtype)
        return sharper

    def keep(self, kept: bool) -> None:
        """Let all values be those of :attr:`fixed` from now on, or never again."""
        self.keeps, self.fixed = kept, self.fixed if kept else None
        self.error = self.blocks.error + (self.fixed.error if self.fixed is not None else 0.0)
        self.square = Square(self, self.square.dtype)

    @property
    def keeping(self) -> int:
        """Return whether values are kept in 4 bytes each, for a checkpoint: 0 for not yet, 1 or, for never, 2."""
        return int(self.keeps) if self.fixed is not None else 2

    @keeping.setter
    def keeping(self, state: int) -> None:
        if state and self.fixed is not None:
            self.keep(state == 1)

    @property
    def matrix(self) -> np.ndarray:
        """Return all of the matrix without signs, computed when it is first asked for."""
        if self._matrix is None:
            self._matrix = np.empty((self.n, self.n))
            for start in range(0, self.n, HEIGHT):
                rows = slice(start, start + HEIGHT)
                self._matrix[rows] = self.blocks.block(rows)
        return self._matrix

    def kept_values(self) -> tuple[np.ndarray | None, float]:
        """Return the values of all pairs, without signs, and their unit; None where not all of them are kept."""
        if self.fixed is not None and self.keeps:
            return self.fixed.values(self._each, *self._tile(self.n)), self.fixed.unit
        return self.matrix if self.plan.whole else None, 1.0

    def held_out(self, X) -> HeldOutRows:
        return self.blocks.held_out(X)

    # -- sums ----------------------------------------------------------------------------------------------------

    @property
    def mirrored(self) -> bool:
        return self.signs.size > self.n

    def place(self, index: np.ndarray) -> np.ndarray:
        """Return which data rows some ``z`` are of."""
        return index % self.n if self.mirrored else index

    def in_matrix(self, rows: np.ndarray) -> np.ndarray:
        """Return which rows of the matrix some data rows are."""
        return rows if self.where is None else self.where[rows]

    def folded(self, weights: np.ndarray) -> np.ndarray:
        """Return the weight of each data row in a sum of ``z``, shape (n,)."""
        signed = self.signs * weights
        return signed[: self.n] + signed[self.n :] if self.mirrored else signed

    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        """Return ``Q theta``, shape (N,); rows with a zero weight are not touched."""
        index = theta.nonzero()[0]
        return self.sum_at(index, theta[index])

    def sum_at(self, index: np.ndarray, weights: np.ndarray, target: np.ndarray | None = None) -> np.ndarray:
        """Return ``sum_k weights[k] Q[index[k]]`` in float64, its entries ``target`` or all of them.

        Its error is to be asked for afterwards (:attr:`error`, :meth:`depth`): a sum of many rows may be the first one
        of values that are kept.
        """
        if target is None and self.plan.fixed and self.fixed and not self.keeps and index.size >= MANY * self.n:
            self.keep(True)
        size = self.n if target is None else target.size
        self.touched += index.size * size / self.n if target is not None else index.size
        out, signed, index = np.zeros(size), weights * self.signs[index], self.place(index)
        where, (values, unit) = None if target is None else self.place(target), self.kept_values()
        if values is None:
            self._add(index, signed, where, out)
        elif where is not None:
            kernels.add_rows_at(values, self.in_matrix(index), unit * signed, self.in_matrix(where), out)
        else:  # rows in full, and of a sum what is of these rows: columns that are chosen are slower
            whole = np.zeros(self.n if self.where is None else values.shape[1])
            for part in self.columns or (slice(0, whole.size),):
                kernels.add_rows(values, self.in_matrix(index), unit * signed, whole[part], part.start)
            out = whole if self.where is None else whole[self.where]
        if target is not None:
            return out * self.signs[target]
        return (np.concatenate([out, out]) if self.mirrored else out) * self.signs

    def _add(self, index: np.ndarray, weights: np.ndarray, where: np.ndarray | None, out: np.ndarray) -> None:
        """Add a sum over data rows to ``out``, its entries ``where`` or all, tile by tile."""
        height, width = self._tile(index.size)

        def one(start: int, room: np.ndarray) -> None:
            columns = slice(start, min(start + width, out.size))
            place = columns if where is None else where[columns]
            for first in range(0, index.size, height):
                rows = slice(first, first + height)
                out[columns] += weights[rows] @ self.blocks.block(index[rows], place, room=room)

        self._each(range(0, out.size if index.size else 0, width), one)

    def _each(self, starts: range, one) -> None:
        """Call a function for each start, on threads, with memory for a tile: new memory is slow."""

        def with_room(start: int) -> None:
            room = self._tiles.pop() if self._tiles else np.empty(HEIGHT * WIDTH)
            one(start, room)
            self._tiles.append(room)

        if self.threads == 1 or len(starts) < 2:
            for start in starts:
                with_room(start)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(with_room, starts))

    @property
    def has_rough_sums(self) -> bool:
        """Tell whether :meth:`rough_sum_at` may be used."""
        return not (self.plan.whole or self.mirrored) and self.blocks.roughens

    @property
    def roughens(self) -> bool:
        """Tell whether rows may be rough from point to point."""
        return self.spares and self.n >= ROUGH_ROWS and self.has_rough_sums

    def rough_sum_at(self, index, weights, target) -> np.ndarray:
        """Return :meth:`sum_at` in float32, and bounds of what it is off by, shape (2, m)."""
        self.touched += index.size * target.size / self.n
        out, signed = np.zeros((2, target.size)), weights * self.signs[index]

        def one(start: int, _) -> None:
            part = slice(start, start + ROUGH_WIDTH)
            out[:, part] = self.blocks.rough_sums(index, signed, target[part])

        self._each(range(0, target.size if index.size else 0, ROUGH_WIDTH), one)
        out[0] *= self.signs[target]
        return out

    def _tile(self, count: int) -> tuple[int, int]:
        """Return rows and columns of a tile of a sum over so many rows; sparse data is fastest in few products."""
        if self.blocks.sparse:
            return max(1, min(HEIGHT, BLOCK_BYTES // (8 * self.n))), self.n
        return HEIGHT, WIDTH * max(1, HEIGHT // max(count, 1))

    def depth(self, m: int) -> float:
        """Return an upper bound of the number of consecutive operations in a sum over ``m`` rows."""
        if self.plan.whole or self.keeps:
            return min(m, m // 4 + 4) + 13.0
        height = self._tile(m)[0]
        return min(m, height) + -(-m // height) + 12.0

    def precise_sums(self, target: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the entries ``target`` of ``Q weights[q]`` from the data, as sums of two doubles, shape (q, 2, m).

        Their error is at most the second number returned times ``norms[target] (|weights| @ norms)``; while ``hasty``
        they are those of float64, and no error is known.
        """
        if self.hasty:
            sums = np.stack([self.sum_at(one.nonzero()[0], one[one != 0.0], target) for one in weights])
            return np.stack([sums, np.zeros(sums.shape)], axis=1), np.inf
        support = np.flatnonzero(weights.any(axis=0))
        self.touched += support.size * target.size / self.n
        signed = np.ascontiguousarray((weights * self.signs)[:, support])
        sums = self.blocks.precise_sums(self.place(target), self.place(support), signed)
        return sums * self.signs[target], self.blocks.precise_error(support.size)


class Space:
    """Memory of one array after the other: new memory is slow."""

    def __init__(self):
        self._bytes = np.empty(0, dtype=np.uint8)

    def array(self, rows: int, columns: int, dtype) -> np.ndarray:
        """Return room for an array of shape (rows, columns), in that of the last one if it fits."""
        need = rows * columns * np.dtype(dtype).itemsize
        if need > self._bytes.size:
            self._bytes = np.empty(need, dtype=np.uint8)
        return self._bytes[:need].view(dtype).reshape(rows, columns)


class Square:
    """Kernel values between the rows in use, without signs; what is known is kept while these change."""

    def __init__(self, rows: GramRows, dtype: np.dtype):
        # Which own the square: all memory is free as soon as nobody uses the rows.
        self.rows, self.values, self.dtype = proxy(rows), np.empty((0, 0), dtype=dtype), dtype
        self.unit = 1.0  # of the values
        self._held = np.empty(0, dtype=np.int64)
        self._slots = np.full(rows.n, -1, dtype=np.int64)

    def slots(self, index: np.ndarray) -> np.ndarray:
        """Return the places of rows ``z``, at most ``plan.square`` of them, in ``values``, computing what is new."""
        index, (kept, unit) = self.rows.place(index), self.rows.kept_values()
        if kept is not None:
            self.values, self.unit = kept, unit
            return self.rows.in_matrix(index)
        wanted = np.unique(index) if self.rows.mirrored else index
        new = wanted[self._slots[wanted] < 0]
        if self._held.size + new.size > self.values.shape[0]:
            self._keep(wanted[self._slots[wanted] >= 0], wanted.size)
        before, held = self._held.size, np.concatenate([self._held, new])
        for first in range(before, held.size, HEIGHT):
            last = min(first + HEIGHT, held.size)
            self.rows.blocks.write(self.values, held[first:last], held[:last], first)
        kernels.mirror(self.values, before, held.size)
        self._held, self._slots[new] = held, np.arange(before, held.size)
        return self._slots[index]

    def _keep(self, index: np.ndarray, needed: int) -> None:
        """Forget all other rows, and make room for as many as are needed."""
        slots, size = np.sort(self._slots[index]), min(int(SPARE * needed), self.rows.plan.square)
        kept = self.part(slots, small=True)  # each value as it was formed
        if size > self.values.shape[0]:  # perhaps in the same memory, with longer rows
            self.values = self.rows.spaces[2].array(size, size + PADDING, self.dtype)
        self.values[: slots.size, : slots.size] = kept
        held = self._held[slots]
        self._slots[self._held] = -1
        self._held, self._slots[held] = held, np.arange(held.size)

    def part(self, slots: np.ndarray, small: bool = False) -> np.ndarray:
        """Return a compact copy of the values between rows at these places, valid until the next one; in float32 small
        values are 0 in it unless asked for.
        """
        out = self.rows.spaces[0].array(slots.size, slots.size, self.dtype)
        least = self.rows.least if self.dtype.itemsize == 4 and not small else 0.0
        kernels.gather(self.values, slots, slots, self.unit, out, least)
        return out


def plan_within(n: int, itemsize: int, max_memory: int | Allowance | None, most=None, bounded=False) -> GramPlan:
    """Return how many rows are used at once, within what the limit in force leaves.

    Allowances follow from data and options alone, so that a command takes the same steps each time. If more memory than
    estimated is taken already (another interpreter, other libraries), the rest counts, in large units for the same
    reason. An error would not help: a larger limit would allow more rows, which would not fit either.
    """
    plan, limit = plan_gram(n, itemsize, max_memory, most, bounded), in_force()
    if limit.left is not None and plan.most > limit.left:
        given = max_memory if isinstance(max_memory, Allowance) else Allowance(plan.allowed)
        size = limit.left // ROUND_TO * ROUND_TO - ROUND_TO  # the process may grow meanwhile
        # A larger limit loses up to twice as much as well.
        less = Allowance(size, given.beside + given.shares * (given.size - size + 2 * ROUND_TO), given.shares)
        plan = plan_gram(n, itemsize, less, most, bounded)
        limit.check(plan.most, f"the kernel values of {n:,} rows")
    return plan
