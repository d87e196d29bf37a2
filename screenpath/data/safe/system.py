"""What Linux, macOS and Windows do differently: files that are opened and locked, memory of machine and process."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from pathlib import Path
from typing import Any

fcntl: Any
resource: Any
msvcrt: Any
try:
    import fcntl
    import resource
except ImportError:  # Windows
    import msvcrt

    fcntl = resource = None

# Flags of a system that has them: a file is bytes, not lines; a link is not followed; a pipe does not block.
BINARY, NO_LINKS, AT_ONCE = (getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
PLACE = 1 << 30  # of the byte that Windows locks: nobody else can read it, so it is one that no lock file has
PROCESS, COUNTERS, MEMORY = -1, 72, 64  # Windows: handle of this process; bytes of what it tells


def open_bytes(path: Path, flags: int, mode: int = 0o666) -> int:
    """Return a descriptor of a file; a symbolic link is an OSError."""
    if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | BINARY | NO_LINKS, mode)


def read_at(descriptor: int, size: int, start: int) -> bytes:
    """Return up to ``size`` bytes from a place of a file, and leave the place of the next read or write."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, start)
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, size)
    os.lseek(descriptor, before, os.SEEK_SET)
    return data


def lock(descriptor: int) -> None:
    """Lock a file until it is closed; BlockingIOError if another process has it."""
    if fcntl is not None:
        return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.lseek(descriptor, PLACE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(errno.EAGAIN, str(error)) from None
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def peak_bytes() -> int:
    """Return the largest resident size of this process so far; on Windows its private bytes now."""
    if resource is None:
        return _told("K32GetProcessMemoryInfo", COUNTERS, 56, ctypes.c_void_p(PROCESS))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def physical_bytes() -> int:
    """Return the size of this machine's memory."""
    if not hasattr(os, "sysconf"):
        return _told("GlobalMemoryStatusEx", MEMORY, 8)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def free_bytes() -> int:
    """Return the bytes of it that are free; half of all on macOS, which does not tell."""
    if not hasattr(os, "sysconf"):
        return _told("GlobalMemoryStatusEx", MEMORY, 16)
    known = "SC_AVPHYS_PAGES" in os.sysconf_names
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") if known else physical_bytes() // 2


def _told(function: str, size: int, start: int, *handle) -> int:
    """Return a number of what a function of Windows writes into a structure, whose size is in front."""
    told = ctypes.create_string_buffer(struct.pack("<I", size), size)
    windows: Any = ctypes
    if not getattr(windows.windll.kernel32, function)(*handle, told, *([size] if handle else [])):
        raise OSError(f"{function} does not answer")
    return struct.unpack_from("<Q", told, start)[0]
