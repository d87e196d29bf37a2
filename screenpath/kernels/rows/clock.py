"""The monotonic clock, for kernels that time their own phases."""

import time


def seconds() -> float:
    """Return the seconds of a clock that never goes back; only differences mean anything. See ``kernels.machine``."""
    return time.perf_counter()
