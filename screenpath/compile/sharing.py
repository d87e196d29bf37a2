"""The folder of compiled kernels, shared by processes and users. This module holds no kernel.

Each kernel is compiled by one process, and others wait for it. Waits form no cycle: a process that compiles a kernel
waits only for those that the kernel calls, and calls form none. A killed process loses its locks, a stopped one is
waited for at most ``PATIENCE`` seconds; if files cannot be locked, every process compiles for itself.

Compiled kernels run as this user, so only files that nobody but this user and root can change are loaded.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import time
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCKS = "locks"
PATIENCE = 60.0  # seconds; the longest kernel takes a quarter of that on a busy machine
POLL = 0.01  # seconds
SYSTEM = 0  # user number of root, which everybody must trust


def user_cache() -> Path:
    """Return the user's cache folder: XDG_CACHE_HOME, if it is absolute, or ~/.cache; OSError without a home folder."""
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache") / "screenpath"
    except RuntimeError as error:
        raise OSError(str(error)) from error


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
    kind = fcntl.LOCK_EX | fcntl.LOCK_NB if how == "take" else fcntl.LOCK_UN
    try:
        fcntl.lockf(file, kind, 1, _place(name))
    except (BlockingIOError, PermissionError):  # some systems raise the second
        return False
    return True


def take_turn(folder: Path, name: str) -> bool:
    """Take the turn to compile an entry; return whether it is ours, which is always so if files cannot be locked."""
    file = _locks(folder)
    if file is None or fcntl is None:
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
    if file is not None and fcntl is not None:
        with contextlib.suppress(OSError):  # as above
            _lock(file, name, "release")


def changeable(folder: Path) -> Path | None:
    """Return the first of a folder and its parents that other users can change or replace, None if there is none.

    ``folder`` must be resolved: whoever can change a link, or rename a parent, chooses what is under its name. In a
    sticky folder such as ``/tmp`` others can neither rename nor remove files of ours, so it may hold a folder of ours.
    Parents that do not exist yet are skipped.
    """
    if not hasattr(os, "getuid"):
        return None
    return next((one for one in (*reversed(folder.parents), folder) if one.exists() and _by_others(one)), None)


def _by_others(folder: Path) -> bool:
    """Tell whether a folder belongs to another user, or others may write to it."""
    state = folder.stat()
    return state.st_uid not in (SYSTEM, os.getuid()) or (_writable(state) and not state.st_mode & stat.S_ISVTX)


def _writable(state: os.stat_result) -> bool:
    """Tell whether somebody besides the owner may write; a group with no other member may."""
    mode = state.st_mode
    return bool(mode & stat.S_IWOTH) or bool(mode & stat.S_IWGRP and not _alone(state.st_uid, state.st_gid))


def _alone(user: int, group: int) -> bool:
    """Tell whether a group is the private group of a single user."""
    import grp
    import pwd

    try:
        owner, known = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return owner.pw_gid == group and owner.pw_name == known.gr_name and set(known.gr_mem) <= {owner.pw_name}


def read_own(path: Path) -> bytes:
    """Return the bytes of a plain file that this user or root alone can write to; else an OSError."""
    # Check the open file, because its name may change meanwhile. A pipe must not block.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        state = os.fstat(file.fileno())
        mine = not hasattr(os, "getuid") or (state.st_uid in (SYSTEM, os.getuid()) and not _writable(state))
        if not stat.S_ISREG(state.st_mode) or not mine:
            raise PermissionError(f"{path} can be changed by another user")
        return file.read()
