"""Rows of several labels behind one kernel, two labels at a time.

A value between rows of two labels belongs to one pair alone, those within a label to all of its pairs: the latter are
kept, and each value is formed once while the pairs take turns; in 4 bytes (:class:`FixedValues`) where that does, for
new memory is slow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.data.safe.memory import free_memory
from screenpath.kernels.rows import gram as kernels
from screenpath.rows.gram import HEIGHT, Allowance, GramRows, Space, plan_within
from screenpath.rows.kernel_functions import FixedValues, KernelBlocks

HIGH = 1024  # rows of two labels whose values are formed at once
COARSE = 1e-4  # gap for which values of 4 bytes are likely to do
MOST = 4096  # rows of a pair whose matrix is kept during its turn, 128 MB


class SharedRows(GramRows):
    """Rows with class numbers in place of signs; :meth:`part` gives those of two classes with signs."""

    def _plan(self, max_memory, bounded):
        """Return the plan of the largest pair, beside what is kept of all labels: at most half of what is allowed."""
        sizes = np.bincount(self.signs.astype(np.int64))
        given = Allowance(free_memory() // 2) if max_memory is None else max_memory
        given = given if isinstance(given, Allowance) else Allowance(given)
        within = (12 if bounded else 8) * int(np.square(sizes).sum())  # in 4 bytes, and in 8 where these do not do
        self._remembers = 2 * within <= given.size
        if self._remembers:
            given = Allowance(given.size - within, given.beside + within, given.shares)
        self.allowed, self._known, self._room = given, {}, Space()
        self._turn: tuple = ((None,), None)  # kind of numbers and first rows of the labels of a pair, and its matrix
        pairs = np.add.outer(sizes, sizes)[np.triu_indices(sizes.size, 1)]
        self._largest = int(pairs[pairs <= MOST].max(initial=0))
        return plan_within(int(pairs.max(initial=0)), self.dtype.itemsize, given, MOST)

    def part(self, index: np.ndarray, signs: np.ndarray) -> GramRows:
        """Return the rows of two classes, one after the other, with signs; their coefficients are those of all rows."""
        return PairRows(self, index, signs)

    def within(self, index: np.ndarray, kind: type) -> np.ndarray:
        """Return the matrix of all rows of a label, in numbers of a ``kind``."""
        label = self.signs[index[0]], kind
        if label in self._known:
            return self._known[label]
        found: np.ndarray = np.empty((index.size, index.size), dtype=kind)
        for start in range(0, index.size, HEIGHT):
            rows = slice(start, min(start + HEIGHT, index.size))
            self._write(found, start, index[rows], 0, index[: rows.stop])
        kernels.mirror(found, 0, index.size)
        if self._remembers:
            self._known[label] = found
        return found

    def _write(self, found: np.ndarray, first: int, rows: np.ndarray, left: int, columns: np.ndarray) -> None:
        """Write values between some rows of the data to a part of a matrix."""
        tile = self.blocks.block(rows, columns)
        if found.dtype == np.int32:
            kernels.to_fixed(tile, 1.0 / FixedValues(self.blocks).unit, found, first, left)
        else:
            found[first : first + rows.size, left : left + columns.size] = tile

    def matrix_of(self, pair: PairRows) -> np.ndarray:
        """Return the matrix of a pair, in the first rows and columns of an array, until another one is asked for."""
        m, kind = int(np.count_nonzero(pair.signs > 0.0)), np.int32 if pair.keeps else np.float64
        n, one, other, (last, found) = pair.n, pair.index[:m], pair.index[m:], self._turn
        turn = kind, int(one[0]), int(other[0])
        if turn == last:
            return found
        if last[0] is not kind:
            last, found = (), self._room.array(self._largest, self._largest, kind)
        if turn[:2] != last[:2]:
            found[:m, :m] = self.within(one, kind)
        found[m:n, m:n] = self.within(other, kind)
        for start in range(0, m, HIGH):
            rows = slice(start, min(start + HIGH, m))
            self._write(found, start, one[rows], m, other)
            found[m:n, rows] = found[rows, m:n].T
        self._turn = turn, found
        return found


class PairRows(GramRows):
    """Some of the rows of ``shared``, with signs of their own."""

    def __init__(self, shared: SharedRows, index: np.ndarray, signs: np.ndarray):
        vars(self).update(vars(shared))
        self.shared, self.index, self.signs, self.n, self.touched = shared, index, signs, index.size, 0
        self.where, self.columns = None, ()  # of all rows
        self.later = plan_within(self.n, self.dtype.itemsize, shared.allowed, MOST)
        self.plan = replace(self.later, whole=False)
        self._take(SomeBlocks(shared.blocks, index))
        self.fixed = FixedValues(self.blocks) if self.later.whole and shared.blocks.function.exponential else None

    def _take(self, blocks) -> None:
        super()._take(blocks)
        self.spaces = self.shared.spaces  # where the next pair has its square
        self.blocks.steady = False

    def begin(self, tol: float) -> None:
        """Take the turn, for gaps of ``tol``: the matrix may be formed. What a model asks before it are a few rows."""
        if self.plan is not self.later:
            self.plan = self.later
            self.keep(self.keeps or (self.fixed is not None and tol >= COARSE))  # as restored, or as is likely to do

    def kept_values(self) -> tuple[np.ndarray | None, float]:
        if not (self.keeps or self.plan.whole):
            return None, 1.0
        return self.shared.matrix_of(self), self.fixed.unit if self.fixed is not None and self.keeps else 1.0

    def folded(self, weights: np.ndarray) -> np.ndarray:
        """Return the weight of each row of all in a sum of ``z``."""
        found = np.zeros(self.shared.n)
        found[self.index] = self.signs * weights
        return found


class SomeBlocks(KernelBlocks):
    """Blocks between some of the rows of others."""

    def __init__(self, blocks: KernelBlocks, index: np.ndarray):
        vars(self).update(vars(blocks))
        self.whole, self.index, self.n = blocks, index, index.size
        self.diagonal, self.sizes = blocks.diagonal[index], blocks.sizes[index]

    def block(self, rows, columns=None, others=None, room=None) -> np.ndarray:
        columns = self.index if columns is None else self.index[columns]
        return self.whole.block(self.index[rows] if others is None else rows, columns, others, room)

    def rough_sums(self, rows, weights, columns) -> np.ndarray:
        return self.whole.rough_sums(self.index[rows], weights, self.index[columns])

    def write(self, out, rows, columns, first) -> None:
        self.whole.write(out, self.index[rows], self.index[columns], first)

    def precise_sums(self, rows, support, weights) -> np.ndarray:
        return self.whole.precise_sums(self.index[rows], self.index[support], weights)
