"""How much private memory this process may take, and how much it takes."""

from __future__ import annotations

import math
import os
import resource
from pathlib import Path

from screenpath.errors import ResourceError, UsageError

STATUS = Path("/proc/self/status")


def private_bytes() -> int:
    """Return the resident bytes of this process without those of mapped files, which the system can drop.

    Where the system does not say (no ``/proc``), the largest resident size so far.
    """
    if STATUS.exists():
        for line in STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def physical_bytes() -> int:
    """Return the size of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def in_words(size: float) -> str:
    """Return a number of bytes as people write it, for example ``1.5 GB`` (1024-based)."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


ROW_VECTORS = 10  # float64 vectors with an entry a row that a path holds at once
COLUMN_VECTORS = 16  # and those with an entry a feature


def parse_bytes(text: str) -> int:
    """Return the bytes of ``500M``, ``8G``, ``1.5GB`` or a plain number of bytes.

    Raises
    ------
    UsageError
    """
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = stripped[-1:] if stripped[-1:] in units else ""
    try:
        value = float(stripped.removesuffix(unit) if unit else stripped)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise UsageError(f"'{text}' is not an amount of memory", "write for example 500M or 8G")
    return int(value * units[unit])


class MemoryLimit:
    """The limit of ``--max-memory``: asked before each large array is made.

    Parameters
    ----------
    limit : int or None
        Private bytes this process may take; None sets no limit.
    """

    def __init__(self, limit: int | None = None):
        self.limit = limit

    def check(self, needed: int, what: str, hint: str) -> None:
        """Raise where ``needed`` more bytes would cross the limit.

        Raises
        ------
        ResourceError
            Saying ``what`` needs the memory, and the ``hint``.
        """
        if self.limit is None:
            return
        taken = private_bytes()
        if taken + needed > self.limit:
            raise ResourceError(
                f"{what} needs {in_words(needed)} beside the {in_words(taken)} in use: more than --max-memory "
                f"{in_words(self.limit)}",
                hint,
            )

    def check_vectors(self, n: int, d: int, source: str) -> None:
        """Raise where the vectors of a path over ``n`` rows and ``d`` features cannot fit, whatever the rows take.

        Without a limit of the user the machine's memory is one.

        Raises
        ------
        ResourceError
        """
        needed = 8 * (ROW_VECTORS * n + COLUMN_VECTORS * d)
        what = f"a path on {n:,} rows and {d:,} features of {source} (the vectors alone)"
        self.check(needed, what, "check the largest index of the data; or raise --max-memory")
        if needed > physical_bytes():
            raise ResourceError(
                f"{what} needs {in_words(needed)}: more than this machine has", "check the largest index of the data"
            )
