"""Arrays that grow while a file is read."""

from __future__ import annotations

import numpy as np

GROWTH = 1.2  # arrays grow by this factor, so that at most a fifth of them is unused at the end


class Growing:
    """A one-dimensional array that grows in place."""

    def __init__(self, dtype):
        self.array = np.empty(1024, dtype=dtype)
        self.size = 0

    def extend(self, values) -> None:
        """Append values."""
        if self.size + values.size > self.array.size:
            self.array.resize(int(GROWTH * self.array.size) + values.size, refcheck=False)
        self.array[self.size : self.size + values.size] = values
        self.size += values.size

    def widen(self) -> None:
        """Go on with 64-bit integers."""
        self.array = self.array.astype(np.int64)

    def finish(self) -> np.ndarray:
        """Return what was appended; nothing can be appended any more."""
        self.array.resize(self.size, refcheck=False)
        return self.array
