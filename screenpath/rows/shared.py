"""Values of an exponential kernel between all rows of a data set, for folds that take parts of them.

Exponents are computed once for all values of gamma, the values of one gamma once for all folds.
"""

from __future__ import annotations

import numpy as np

from screenpath.data.safe.memory import free_memory, in_force
from screenpath.kernels.rows import gram as kernels
from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.rows.gram import GramRows, Space
from screenpath.rows.kernel_functions import HeldOutRows, KernelBlocks

HIGH = 32  # rows whose values are formed at once: they stay in the processor's cache
MOST = 12288  # rows, 1.8 GB: of more, active sets need a small part of the matrix


def may_share(n: int, processes: int) -> bool:
    """Tell whether the values of ``n`` rows fit, for each process: those of a gamma, half as many exponents, and what a
    fold has held out.
    """
    return n <= MOST and not in_force() and 2 * 8 * n * n <= free_memory() // 2 // processes


class SharedValues:
    """Values between the rows of ``blocks``, whose gamma is the largest that is asked for.

    ``order``, shape (n,), is which row of the data each of these is: those that a fold holds out are best beside each
    other, where nothing of them need be copied.
    """

    def __init__(self, blocks: KernelBlocks, order: np.ndarray):
        self.blocks, self._gamma, self._values = blocks, 0.0, np.empty((blocks.n, blocks.n))
        self._place = np.argsort(order)
        rows = [slice(start, min(start + HIGH, blocks.n)) for start in range(0, blocks.n, HIGH)]
        # Of some rows each, on and below the diagonal
        self._exponents = [(part, blocks.arguments(part, slice(0, part.stop))) for part in rows]
        # Where a fold's copies, and held-out values that are apart, are written; new memory would be slow.
        self._room, self.spaces = Space(), (Space(), Space(), Space())
        # An exponent of a smaller gamma is as much smaller, errors included, and rounded twice more.
        self.error = (blocks.error + 4.0 * UNIT) * OUTWARD

    def values(self, gamma: float) -> np.ndarray:
        """Return the matrix of all pairs, valid until the next gamma."""
        if gamma != self._gamma:
            function = self.blocks.function
            for rows, exponents in self._exponents:
                how = gamma / function.gamma, float(function.constant)
                kernels.exponentials(exponents, *how, self._values, rows.start)
                kernels.mirror(self._values, rows.start, rows.stop)
            self._gamma = gamma
        return self._values

    def give(self, rows: GramRows, trained: np.ndarray, test: HeldOutRows, held_out: np.ndarray) -> None:
        """Give the values between its rows, and between these and the held-out ones, to a fold, until the next one."""
        values, rows.spaces = self.values(rows.blocks.function.gamma), self.spaces
        where, tested = self._place[trained], self._place[held_out]
        columns: tuple[slice, ...] = (slice(0, self.blocks.n),)
        first, last = int(tested[0]), int(tested[-1])
        if (np.diff(tested) == 1).all() and ((where < first) | (where > last)).all():  # what is trained on may be, too
            test.values, columns = (values, where, first), (slice(0, first), slice(last + 1, self.blocks.n))
        else:
            copied = self._room.array(trained.size, held_out.size, np.float64)
            kernels.gather(values, where, tested, 1.0, copied, 0.0)
            test.values = copied, np.arange(trained.size), 0
        rows.take_matrix(values, self.error, where, columns)
