"""All values of an exponential kernel between the rows of a data set, each a whole number of 4 bytes.

Such a value is at most the largest of the diagonal, of which the number is a share: it is off by half a unit, 2^-32 of
that, where float32 would be off by up to 2^-25. Each is formed in the same tile whatever is asked for, so that it is
the same in a run that goes on as in one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from screenpath.kernels.rows import gram as kernels
from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.rows.kernel_functions import KernelBlocks

LARGEST = 2**31 - 1  # number of the largest value


class FixedValues:
    """Values between all rows of ``blocks``, which are of an exponential kernel, computed when first asked for."""

    def __init__(self, blocks: KernelBlocks):
        self.blocks, self.unit = blocks, (1.0 + blocks.function.constant) / LARGEST
        # Half a unit; of the number itself and its unit each some roundings
        self.error = (0.5 / LARGEST + 16.0 * UNIT) * OUTWARD
        self._values: np.ndarray | None = None

    def values(self, each: Callable, height: int, width: int) -> np.ndarray:
        """Return the numbers, int32 of shape (n, n), formed in tiles of so many rows and columns.

        ``each`` calls a function for each start, with memory for a tile.
        """
        if self._values is None:
            n = self.blocks.n
            found = np.empty((n, n), dtype=np.int32)

            def one(start: int, room: np.ndarray) -> None:
                rows = slice(start, min(start + height, n))
                for left in range(0, rows.stop, width):
                    tile = self.blocks.block(rows, slice(left, min(left + width, n)), room=room)
                    kernels.to_fixed(tile, 1.0 / self.unit, found, start, left)

            each(range(0, n, height), one)
            kernels.mirror(found, 0, n)
            self._values = found
        return self._values
