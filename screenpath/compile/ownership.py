"""Folders and files that only this user and root can change: compiled kernels run as this user.

This module holds no kernel.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

SYSTEM = 0  # user number of root, which everybody must trust


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
    """Return the bytes of a plain file that this user or root has written and nobody else may write to; else
    OSError.
    """
    # Check the open file, because its name may change meanwhile. A pipe must not block.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        state = os.fstat(file.fileno())
        mine = not hasattr(os, "getuid") or (state.st_uid in (SYSTEM, os.getuid()) and not _writable(state))
        if not stat.S_ISREG(state.st_mode) or not mine:
            raise PermissionError(f"{path} can be changed by another user")
        return file.read()
