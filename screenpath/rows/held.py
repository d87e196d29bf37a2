"""Columns of shards that are kept in memory, those that were asked for last."""

from __future__ import annotations

from typing import Any

import numpy as np

from screenpath.data.safe.memory import in_force
from screenpath.data.safe.needs import F8
from screenpath.numbers.csr import row_pointers

FEWER = "stop at a larger lambda, where fewer features have a weight"
SPARE = 2  # times the columns asked for that may be kept in memory


class HeldColumns:
    """Columns on disk, of which those that were asked for stay in memory, up to ``SPARE`` times as many as the last.

    Parameters
    ----------
    source : ColumnShards
    """

    sparse: bool

    def __init__(self, source: Any):
        self.source, self.sparse, self._starts = source, source.sparse, source.starts
        self._held, self._where = np.empty(0, dtype=np.int64), np.full(source.d, -1)
        self._arrays: tuple = self._empty()

    def _part(self, k: int, chosen: np.ndarray) -> tuple:
        """Return columns of shard ``k`` as they are to be kept."""
        found = self.source.block(k, chosen)
        return found if self.sparse else (found,)

    def hold(self, index: np.ndarray) -> None:
        """Have columns in memory: those that are there stay, others are read."""
        if not np.any(self._where[index] < 0):
            return
        wanted = np.union1d(self._held, index)
        if wanted.size > SPARE * index.size:
            wanted = np.unique(index)
        counts = self.source.counts[wanted]
        value = F8 + (self._arrays[1].dtype.itemsize if self.sparse else 0)
        in_force().check(value * int(counts.sum()), f"{wanted.size:,} columns of {self.source.d:,}", FEWER)
        arrays = self._empty(wanted.size, counts)
        old = self._where[wanted]
        for here in np.split(np.arange(wanted.size), np.searchsorted(wanted, self._starts[1:-1])):
            kept, read = here[old[here] >= 0], here[old[here] < 0]
            self._copy(arrays, kept, self._arrays, old[kept])
            if read.size:
                k = int(np.searchsorted(self._starts, wanted[read[0]], side="right")) - 1
                found = self._part(k, wanted[read] - self._starts[k])
                self._copy(arrays, read, found, np.arange(read.size))
        self._where[self._held] = -1
        self._where[wanted] = np.arange(wanted.size)
        self._held, self._arrays = wanted, arrays

    def _empty(self, count: int = 0, counts=()) -> tuple:
        """Return room for columns in memory."""
        if not self.sparse:
            return (np.empty((count, self.source.n)),)
        indptr = row_pointers(counts)
        return np.empty(indptr[-1]), np.empty(indptr[-1], dtype=self.source.kinds[1]), indptr

    def _copy(self, to: tuple, places, of: tuple, rows) -> None:
        """Copy columns from one set of arrays to another."""
        if not places.size:
            return
        if not self.sparse:
            to[0][places] = of[0][rows]
            return
        length = of[2][rows + 1] - of[2][rows]
        steps = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        target, origin = np.repeat(to[2][places], length) + steps, np.repeat(of[2][rows], length) + steps
        to[0][target], to[1][target] = of[0][origin], of[1][origin]
