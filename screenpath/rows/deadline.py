"""A moment at which work has to end, as other processes and other machines understand it.

On one machine all processes share the monotonic clock, which nobody can set. Another machine has to go by the time of
day; a clock that was set back there gives nobody more time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Deadline:
    """The moment."""

    at: float  # ``time.monotonic()`` value on the machine it was made on
    machine: str  # what tells that machine, since it was started, from others; empty where nothing does
    left: float  # left, made: seconds that were left, and the time of day, when it was made
    made: float

    @classmethod
    def of(cls, at: float) -> Deadline:
        """Return the moment of a ``time.monotonic()`` value of this machine."""
        return cls(at, machine(), at - time.monotonic(), time.time())

    def here(self) -> float:
        """Return the ``time.monotonic()`` value of the moment on the machine that asks."""
        if self.machine and self.machine == machine():
            return self.at
        return time.monotonic() + self.left - max(time.time() - self.made, 0.0)


def machine() -> str:
    """Return what tells this machine, since it was started, from others."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""
