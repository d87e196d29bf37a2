"""Values of an exponential kernel between all rows of a data set, for folds that take parts of them.

Exponents are computed once for all values of gamma, the values of one gamma once for all folds.
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
    """Tell whether the values of ``n`` rows fit: exponents, and the values of a gamma twice, for each process."""
    return n <= MOST and not in_force() and 3 * 8 * n * n <= free_memory() // 2 // processes


class SharedValues:
    """Values between the rows of ``blocks``, whose gamma is the largest that is asked for."""

    def __init__(self, blocks: KernelBlocks):
        self.blocks, self._gamma, self._values = blocks, 0.0, np.empty((blocks.n, blocks.n))
        self.rough = np.empty((blocks.n, blocks.n), dtype=np.float32)  # the same, without a bound
        self._exponents = np.zeros((blocks.n, blocks.n))  # those on and below the diagonal
        for start in range(0, blocks.n, HEIGHT):
            stop = min(start + HEIGHT, blocks.n)
            self._exponents[start:stop, :stop] = blocks.arguments(slice(start, stop), slice(0, stop))
        # Where a fold's held-out values, and its copies, are written; new memory would be slow.
        self._room, self.spaces = Space(), (Space(), Space(), Space())
        # An exponent of a smaller gamma is as much smaller, errors included, and rounded twice more.
        self.error = (blocks.error + 4.0 * UNIT) * OUTWARD

    def values(self, gamma: float) -> np.ndarray:
        """Return the matrix of all pairs, valid until the next gamma."""
        if gamma != self._gamma:
            ratio, function = gamma / self.blocks.function.gamma, self.blocks.function
            for start in range(0, self.blocks.n, HEIGHT):
                stop = min(start + HEIGHT, self.blocks.n)
                part = ratio * self._exponents[start:stop, :stop]
                self.rough[start:stop, :stop] = part
                kernels.rough_exponentials(self.rough, start, stop, stop, function.constant)
                kernels.exponentials(part)
                part += function.constant
                self._values[start:stop, :stop] = part
                self._values[:stop, start:stop] = part.T
            kernels.mirror(self.rough, 0, self.blocks.n)
            self._gamma = gamma
        return self._values

    def give(self, rows: GramRows, trained: np.ndarray, test: HeldOutRows, held_out: np.ndarray) -> None:
        """Give the values between its rows, and between these and the held-out ones, to a fold, until the next one."""
        values, rows.spaces = self.values(rows.blocks.function.gamma), self.spaces
        test.values = self._room.array(trained.size, held_out.size, np.float64)
        kernels.gather(values, trained, held_out, test.values, 0.0)
        rows.take_matrix(values, self.error, self.rough, trained)
