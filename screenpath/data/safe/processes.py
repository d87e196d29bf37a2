"""How further processes of Python start: without the current folder among those that they import from."""

from __future__ import annotations

import contextlib
import os

SAFE_PATH = "PYTHONSAFEPATH"  # known to Python 3.11 and later


@contextlib.contextmanager
def without_current_folder():
    """Let no process that starts meanwhile import from the current folder before it knows its parent's path.

    ``multiprocessing`` starts Python with ``-c``, which puts the current folder first: anybody's ``struct.py`` may lie
    there.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
