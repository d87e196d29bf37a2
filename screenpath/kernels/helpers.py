"""Extra processes that compile kernels in parallel with the first one. This module holds no kernel."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

from screenpath.kernels.compilation import ensure_compiled

MOST = 3  # processes: what a kernel needs is compiled before it, so that more find little to do
# `-m` and `-c` let Python import from the current folder first, where anybody's numpy.py may lie.
START = """
import sys
sys.path[:] = [sys.argv.pop(1), *filter(None, sys.path)]
from screenpath.kernels.helpers import main
main()
"""
_helpers: list[subprocess.Popen] = []


def helpers() -> int:
    """Return how many extra processes may compile: one less than the processors, and not many."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST, processors - 1)


def start_helpers(modules: tuple) -> None:
    """Compile kernel modules in extra processes while this one compiles those it needs.

    They begin with the last module, which this process reaches last. A process that fails to start is ignored.
    Each ends when this process does, however it ends: that closes the pipe which the helper reads.
    """
    root = str(Path(__file__).parents[2])
    backwards = [*reversed(modules)]
    for k in range(min(helpers(), len(modules))):
        words = [sys.executable, "-c", START, root, *backwards[k:], *backwards[:k]]
        nowhere = subprocess.DEVNULL
        with contextlib.suppress(OSError):
            _helpers.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere))


def stop_helpers() -> None:
    while _helpers:
        with _helpers.pop() as one:
            one.kill()


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def main() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    ensure_compiled(*sys.argv[1:])
