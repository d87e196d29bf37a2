"""Compile ahead, in extra processes too, announce it, and keep it out of every timing. This module holds no kernel.

A kernel module may define ``warm_up()``, which calls its kernels once on tiny arrays of the canonical types
(float64 values, int8 statuses, int64 row pointers, ...). That function is the module's list of signatures.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import logging
import os
import pkgutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from numba.core import event

import screenpath.kernels as kernels

GARBAGE = 50_000  # objects after which garbage is looked for meanwhile: what a compiler makes is mostly in use
ANNOUNCED = "compiling the numerical kernels: up to 4 minutes in a first run, kept for later ones ..."
LOGGER = logging.getLogger("screenpath")  # where nobody has set up logging, its warnings go to stderr
MOST = 3  # processes: what a kernel needs is compiled before it, so that more find little to do
# `-m` and `-c` let Python import from the current folder first, where anybody's numpy.py may lie.
START = """
import sys
sys.path[:] = [sys.argv.pop(1), *filter(None, sys.path)]
from screenpath.kernels.compilation import main
main()
"""
_helpers: list[subprocess.Popen] = []


class _Recorder(event.Listener):
    """Adds up compile time; loads from the cache are not compilations. numba's compiler lock orders the calls."""

    def __init__(self):
        self.seconds = self.processor = 0.0
        self.announce: Callable[[], None] | None = None
        self.each: Callable[[str], None] | None = None
        self.logged = False
        self._depth = 0  # a kernel that calls another compiles it inside its own compilation
        self._started = 0.0, 0.0
        self._garbage = gc.get_threshold()

    def on_start(self, event):
        if self._depth == 0:
            announce, self.announce = self.announce or self.log, None
            announce()
            self._started, self._garbage = (time.perf_counter(), time.process_time()), gc.get_threshold()
            if 0 < self._garbage[0] < GARBAGE:
                gc.set_threshold(GARBAGE, *self._garbage[1:])
        self._depth += 1
        function = getattr(event.data["dispatcher"], "py_func", None)
        if self.each is not None and function is not None and function.__module__.startswith(kernels.__name__):
            self.each(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")

    def log(self):
        """Log the first compilation if nobody has asked for the announcement."""
        if not self.logged:
            LOGGER.warning(ANNOUNCED)
        self.logged = True

    def on_end(self, _event):
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started[0]
            self.processor += time.process_time() - self._started[1]
            gc.set_threshold(*self._garbage)


_recorder = _Recorder()
event.register("numba:compile", _recorder)
_warmed: set[str] = set()


def compile_seconds() -> float:
    """Return the seconds this process has spent compiling kernels so far (0.0 with a warm cache)."""
    return _recorder.seconds


def clock() -> float:
    """Return a clock in seconds that stands still while kernels compile; only differences mean anything.

    Timings taken with it never contain a compilation, even of a signature that nobody foresaw.
    """
    return time.perf_counter() - _recorder.seconds


def processor_clock() -> float:
    """Return a clock of the processor seconds of this process, all threads together, as :func:`clock`."""
    return time.process_time() - _recorder.processor


class Clocks(NamedTuple):
    """What this process has spent, in seconds; of the first and the last only differences mean anything."""

    clock: float  # as of :func:`clock`
    compiling: float  # as of :func:`compile_seconds`
    processor: float  # as of :func:`processor_clock`


def clocks() -> Clocks:
    """Return all clocks at once."""
    return Clocks(clock(), compile_seconds(), processor_clock())


def on_first_compile(announce: Callable[[], None] | None, each: Callable[[str], None] | None = None) -> None:
    """Have a function called once, just before the next compilation of this process; None withdraws it.

    From then on ``each`` is called with the name of every kernel that is compiled, or that another process compiles.
    """
    _recorder.announce, _recorder.each = announce, each


def kernel_modules() -> list[str]:
    """Return the names of the kernel modules, sorted: those that define ``warm_up``."""
    return [name for name in sorted(_places()) if hasattr(_module(name), "warm_up")]


@functools.cache
def _places() -> dict[str, str]:
    """Return the kernel modules by their names: where each is imported from."""
    found = pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")
    return {one.name.rpartition(".")[2]: one.name for one in found if not one.ispkg}


def _module(name: str):
    return importlib.import_module(_places()[name])


def ensure_compiled(*names: str) -> list[tuple[str, float]]:
    """Load the canonical signatures of kernel modules (all by default), compiling what the cache lacks.

    Returns the modules that this call loaded for the first time, each with the seconds it took.
    """
    done = []
    for name in names or kernel_modules():
        if name not in _warmed:
            started = time.perf_counter()
            _module(name).warm_up()
            _warmed.add(name)
            done.append((name, time.perf_counter() - started))
    return done


# -- extra processes that compile in parallel with the first one -------------------------------------------------------


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
