"""Memory: how much is free, how much a kernel matrix takes, and what is kept of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.errors import ResourceError, UsageError

BLOCK_BYTES = 1 << 26  # one block of kernel values while rows are computed
SQUARE = 1024  # survivors whose square part must always fit
LEAST_ROWS = 64  # rows below which a cache is pointless
CACHE_SHARE = 0.6  # of the memory goes to cached rows, the rest to the square part of the working set
CHOICES = ("auto", "full", "cache")


def free_memory() -> int:
    """Return the bytes this process may still take: of the machine, or of its control group where that is less."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        free = min(free, max(int(limit.read_text()) - int(used.read_text()), 0))
    return free


def show_bytes(count: float) -> str:
    """Return a size with a unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.3g} TB"


@dataclass(frozen=True, slots=True)
class GramPlan:
    """How a kernel matrix is kept.

    Parameters
    ----------
    full : bool
        All of it; else ``rows`` of its rows in a cache.
    need, allowed : int
        Bytes of the plan and bytes that may be taken.
    rows : int
        Rows of the cache (n for a full matrix).
    square : int
        Largest working set whose square part may be copied.
    n, itemsize : int
    """

    full: bool
    need: int
    allowed: int
    rows: int
    square: int
    n: int
    itemsize: int

    def describe(self) -> str:
        """Return the sentence that is said before anything is allocated."""
        kept = "precomputed" if self.full else f"a cache of {self.rows} of its {self.n} rows"
        return (
            f"kernel matrix {self.n} x {self.n}, float{8 * self.itemsize}: {kept}, "
            f"{show_bytes(self.need)} of the {show_bytes(self.allowed)} allowed"
        )


def plan_gram(n: int, itemsize: int, max_memory: int | None, keep: str = "auto") -> GramPlan:
    """Decide how a kernel matrix of ``n`` rows is kept.

    Parameters
    ----------
    n : int
    itemsize : int
        Bytes of a stored value.
    max_memory : int, optional
        Bytes; half of the free memory by default.
    keep : {"auto", "full", "cache"}
        ``auto`` precomputes the matrix where it fits.

    Raises
    ------
    ResourceError
        If what is asked for does not fit.
    """
    if keep not in CHOICES:
        raise UsageError(f"unknown way '{keep}' of keeping the kernel matrix", f"use one of {', '.join(CHOICES)}")
    allowed = free_memory() // 2 if max_memory is None else max_memory
    row = n * itemsize
    work = 2 * min(BLOCK_BYTES, 8 * n * n) + 8 * min(n, SQUARE) ** 2
    need = n * row + work
    if keep != "cache" and need <= allowed:
        square = min(n, int(np.sqrt((allowed - need) / 8 + min(n, SQUARE) ** 2)))
        return GramPlan(True, need, allowed, n, square, n, itemsize)
    if keep == "full":
        raise ResourceError(
            f"the kernel matrix needs {show_bytes(need)}, but {show_bytes(allowed)} are allowed",
            f"use --max-memory {show_bytes(need * 1.01).replace(' ', '')} if you have it, --dtype float32 for half of "
            "the matrix, or --gram cache",
        )
    rows = min(n, int(CACHE_SHARE * (allowed - work)) // row)
    if rows < min(LEAST_ROWS, n):
        least = int(work + row * min(LEAST_ROWS, n) / CACHE_SHARE) + 1
        raise ResourceError(
            f"a cache of {LEAST_ROWS} kernel rows needs {show_bytes(least)}, but {show_bytes(allowed)} are allowed",
            f"use --max-memory {show_bytes(least * 1.01).replace(' ', '')}",
        )
    left = allowed - work - rows * row
    square = min(n, int(np.sqrt(left / 8 + min(n, SQUARE) ** 2)))
    return GramPlan(False, work + rows * row, allowed, rows, square, n, itemsize)
