"""What a write that fails says."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path


@contextlib.contextmanager
def failures_named(path: Path | str):
    """Name the file that a write failed on; where numpy says "16 requested and 11 written" the disk is full."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        number = errno.ENOSPC if error.errno is None else error.errno
        raise OSError(number, os.strerror(number), str(path)) from None
