"""The monotonic clock, for kernels that time their own phases."""

import os
import time

import numpy as np
from numba import config, types
from numba.extending import register_jitable

if config.DISABLE_JIT or os.name != "posix":
    seconds = time.perf_counter
else:
    _gettime = types.ExternalFunction("clock_gettime", types.intc(types.intc, types.CPointer(types.int64)))
    _MONOTONIC = time.CLOCK_MONOTONIC

    @register_jitable
    def seconds():
        """Return the seconds of a clock that never goes back; only differences mean anything."""
        parts = np.empty(2, np.int64)
        _gettime(_MONOTONIC, parts.ctypes)
        return parts[0] + 1e-9 * parts[1]
