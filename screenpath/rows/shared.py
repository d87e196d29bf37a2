"""Values of an exponential kernel between all rows of a data set, for folds that take parts of them.

Exponents are computed once for all values of gamma, the values of one gamma once for all folds: a fold copies its part.
"""

from __future__ import annotations

import numpy as np

from screenpath.data.safe.memory import free_memory, in_force
from screenpath.kernels.rows import gram as kernels
from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.rows.gram import HEIGHT, GramRows, Space
from screenpath.rows.kernel_functions import HeldOutRows, KernelBlocks

MOST = 8192  # rows: of more, active sets need a small part of the matrix


def may_share(n: int, processes: int) -> bool:
    """Tell whether the values of ``n`` rows fit: exponents, values of a gamma and of a fold, for each process."""
    return n <= MOST and not in_force() and 3 * 8 * n * n <= free_memory() // 2 // processes


class SharedValues:
    """Values between the rows of ``blocks``, whose gamma is the largest that is asked for."""

    def __init__(self, blocks: KernelBlocks):
        self.blocks, self._gamma, self._values = blocks, 0.0, np.empty((blocks.n, blocks.n))
        self._exponents = np.zeros((blocks.n, blocks.n))  # those on and below the diagonal
        for start in range(0, blocks.n, HEIGHT):
            stop = min(start + HEIGHT, blocks.n)
            self._exponents[start:stop, :stop] = blocks.arguments(slice(start, stop), slice(0, stop))
        self._room, self.spaces = np.empty(0), (Space(), Space(), Space())  # where a fold's parts, and its copies, are
        # An exponent of a smaller gamma is as much smaller, errors included, and rounded twice more.
        self.error = (blocks.error + 4.0 * UNIT) * OUTWARD

    def values(self, gamma: float) -> np.ndarray:
        """Return the matrix of all pairs, valid until the next gamma."""
        if gamma != self._gamma:
            ratio, function = gamma / self.blocks.function.gamma, self.blocks.function
            for start in range(0, self.blocks.n, HEIGHT):
                stop = min(start + HEIGHT, self.blocks.n)
                part = ratio * self._exponents[start:stop, :stop]
                kernels.exponentials(part)
                part += function.constant
                self._values[start:stop, :stop] = part
                self._values[:stop, start:stop] = part.T
            self._gamma = gamma
        return self._values

    def give(self, rows: GramRows, trained: np.ndarray, test: HeldOutRows, held_out: np.ndarray) -> None:
        """Give the values between its rows, and between these and the held-out ones, to a fold, until the next one.

        New memory would be slow, and the last fold may not have been collected yet.
        """
        values, k = self.values(rows.blocks.function.gamma), trained.size
        if k * (k + held_out.size) > self._room.size:
            self._room = np.empty(k * (k + held_out.size))
        own = self._room[: k * k].reshape(k, k)
        test.values = self._room[k * k : k * k + k * held_out.size].reshape(held_out.size, k)
        kernels.gather(values, trained, trained, own, 0.0)
        kernels.gather(values, held_out, trained, test.values, 0.0)
        rows.take_matrix(own, self.error)
        rows.spaces = self.spaces
