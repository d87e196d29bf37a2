"""Memory of a kernel matrix: how much is free, how much it takes, and how much of it is stored."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.data.safe.memory import as_option
from screenpath.errors import ResourceError, UsageError

BLOCK_BYTES = 1 << 26  # one block of kernel values while rows are computed
MOST = 1 << 62  # bytes: a record may name any whole number
BLOCK_SHARE, BLOCK_LEAST = 1 / 16, 1 << 20  # of the allowed memory, if that is less; and the least bytes
SQUARE = 1024  # survivors whose square part must always fit
LEAST_ROWS = 64  # rows below which a cache is pointless
CACHE_SHARE = 0.6  # of the memory for cached rows; the rest is for the square part of the working set
MOST_FREE = 4000  # coordinates of a Newton step: beyond it the factor takes longer than the pair steps it saves
FACTOR_BYTES = 14  # of the factor, per pair of these: 8, and its border
CHOICES = ("auto", "full", "cache")


def free_memory() -> int:
    """Return the bytes this process may still take: of the machine, or of its control group if that is less."""
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
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.3g} TB"


@dataclass(frozen=True, slots=True)
class Allowance:
    """Memory that a kernel matrix may take, as a part of a larger limit."""

    size: int  # bytes for this matrix and its work arrays
    beside: int = 0  # bytes of the limit that are not for matrices
    shares: int = 1  # number of matrices that share the rest

    @classmethod
    def of(cls, limit: int, beside: int, shares: int = 1) -> Allowance:
        """Divide what a limit leaves."""
        return cls(max(limit - beside, 0) // shares, beside, shares)

    def limit_for(self, need: int) -> str:
        """Return the option value with which a matrix could take ``need`` bytes."""
        return as_option(1.01 * need * self.shares + self.beside)


@dataclass(frozen=True, slots=True)
class GramPlan:
    """How a kernel matrix is stored."""

    full: bool  # all of it; otherwise ``rows`` of its rows in a cache
    need: int  # need, allowed: bytes of the plan and bytes that may be taken
    allowed: int
    rows: int  # rows of the cache (n for a full matrix)
    block: int  # bytes of rows computed at once
    square: int  # largest working set whose square part may be copied
    free: int  # most coordinates whose part of the matrix may be factorised
    n: int
    itemsize: int

    @property
    def most(self) -> int:
        """Return the bytes that may be taken, with square part and factor at their largest."""
        paid = 8 * min(self.n, SQUARE) ** 2
        return self.need + max(8 * self.square**2 - paid, 0) + FACTOR_BYTES * self.free**2

    def describe(self) -> str:
        """Return the sentence printed before anything is allocated."""
        kept = "precomputed" if self.full else f"a cache of {self.rows} of its {self.n} rows"
        return (
            f"kernel matrix {self.n} x {self.n}, float{8 * self.itemsize}: {kept}, "
            f"{show_bytes(self.need)} of the {show_bytes(self.allowed)} allowed"
        )


def plan_gram(n: int, itemsize: int, max_memory: int | Allowance | None, keep: str = "auto") -> GramPlan:
    """Decide how a kernel matrix of ``n`` rows is stored: ``full``, a ``cache``, or ``auto``, full if it fits.

    By default half of the free memory is allowed. A requested form that does not fit is an error.
    """
    if keep not in CHOICES:
        raise UsageError(f"unknown way '{keep}' of keeping the kernel matrix", f"use one of {', '.join(CHOICES)}")
    given = max_memory if max_memory is not None else free_memory() // 2
    given = given if isinstance(given, Allowance) else Allowance(given)
    allowed = min(given.size, MOST)
    row = n * itemsize
    block = _block(n, allowed)
    work = 2 * block + 8 * min(n, SQUARE) ** 2
    need = n * row + work
    if keep != "cache" and need <= allowed:
        return GramPlan(True, need, allowed, n, block, *_working_set(n, allowed - need), n, itemsize)
    if keep == "full":
        enough = given.limit_for(_enough(n, need - 2 * block))
        raise ResourceError(
            f"the kernel matrix needs {show_bytes(need)}, but {show_bytes(allowed)} are allowed",
            f"use `max_memory={enough}` if you have it, `dtype=float32` for half of the matrix, or `gram=cache`",
        )
    rows = min(n, int(CACHE_SHARE * (allowed - work)) // row)
    if rows < min(LEAST_ROWS, n):
        least = _enough(n, int(work - 2 * block + row * min(LEAST_ROWS, n) / CACHE_SHARE) + 1)
        raise ResourceError(
            f"a cache of {LEAST_ROWS} kernel rows needs {show_bytes(least)}, but {show_bytes(allowed)} are allowed",
            f"use `max_memory={given.limit_for(least)}`",
        )
    left = allowed - work - rows * row
    return GramPlan(False, work + rows * row, allowed, rows, block, *_working_set(n, left), n, itemsize)


def _block(n: int, allowed: int) -> int:
    return min(BLOCK_BYTES, 8 * n * n, max(int(BLOCK_SHARE * allowed), BLOCK_LEAST))


def _enough(n: int, fixed: int) -> int:
    """Return what must be allowed for ``fixed`` bytes and two blocks, whose size depends on what is allowed."""
    least = fixed
    while fixed + 2 * _block(n, least) > least:
        least = fixed + 2 * _block(n, least)
    return least


def _working_set(n: int, left: int) -> tuple[int, int]:
    """Return the largest working set, and the most coordinates of it that are factorised, in ``left`` bytes.

    The square part of ``SQUARE`` rows is counted already.
    """
    left += 8 * min(n, SQUARE) ** 2
    square = max(int(np.sqrt(left / (8 + FACTOR_BYTES))), int(np.sqrt(max(left - FACTOR_BYTES * MOST_FREE**2, 0) / 8)))
    square = min(max(square, SQUARE), n)
    return square, min(int(np.sqrt(max(left - 8 * square**2, 0) / FACTOR_BYTES)), MOST_FREE)
