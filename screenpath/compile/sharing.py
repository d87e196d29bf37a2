"""Several processes share the work of compiling: each kernel is compiled by one. This module holds no kernel.

A process waits for a kernel that another one compiles. Waits form no cycle: a process that compiles a kernel waits only
for those that the kernel calls, and calls form none. A killed process loses its locks, a stopped one is waited for at
most ``PATIENCE`` seconds; if files cannot be locked, every process compiles for itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from pathlib import Path

LOCKS = "locks"
PATIENCE = 60.0  # seconds; the longest kernel takes a quarter of that on a busy machine
POLL = 0.01  # seconds


@functools.cache
def _locks(folder: Path) -> int | None:
    """Return the file of a folder whose bytes represent its entries. Closing it would release all its locks."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / LOCKS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except (OSError, AttributeError):
        return None


def _place(name: str) -> int:
    """Return the byte that represents an entry: its name ends in a hash."""
    return int(name.rpartition(".")[0].rpartition("-")[2][:12], 16)


def _lock(file: int, name: str, how: str) -> bool:
    import fcntl

    kind = fcntl.LOCK_EX | fcntl.LOCK_NB if how == "take" else fcntl.LOCK_UN
    try:
        fcntl.lockf(file, kind, 1, _place(name))
    except BlockingIOError:
        return False
    except PermissionError:  # some systems raise this instead
        return False
    return True


def take_turn(folder: Path, name: str) -> bool:
    """Take the turn to compile an entry; return whether it is ours, which is always so if files cannot be locked."""
    file = _locks(folder)
    if file is None or sys.platform == "win32":
        return True
    try:
        return _lock(file, name, "take")
    except OSError:  # a file system without locks
        return True


def wait_for_turn(folder: Path, name: str) -> None:
    """Wait while another process compiles an entry."""
    until = time.monotonic() + PATIENCE
    while not take_turn(folder, name) and time.monotonic() < until:
        time.sleep(POLL)


def end_turn(folder: Path, name: str) -> None:
    """Release an entry, which exists now, or will not."""
    file = _locks(folder)
    if file is not None and sys.platform != "win32":
        with contextlib.suppress(OSError):  # as above
            _lock(file, name, "release")
