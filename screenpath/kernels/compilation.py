"""Compile ahead, announce it, and keep compile time out of every timing. This module holds no kernel.

A kernel module may define ``warm_up()``, which calls its kernels once on tiny arrays of the canonical types
(float64 values, int8 statuses, int64 row pointers, ...). That function is the module's list of signatures.
"""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import pkgutil
import time
from collections.abc import Callable

from numba.core import event

import screenpath.kernels as kernels

GARBAGE = 50_000  # objects after which garbage is looked for meanwhile: what a compiler makes is mostly in use
LOGGER = logging.getLogger("screenpath")  # where nobody has set up logging, its warnings go to stderr


class _Recorder(event.Listener):
    """Adds up compile time; loads from the cache are not compilations. numba's compiler lock orders the calls."""

    def __init__(self):
        self.seconds = 0.0
        self.announce: Callable[[], None] | None = None
        self.each: Callable[[str], None] | None = None
        self.logged = False
        self._depth = 0  # a kernel that calls another compiles it inside its own compilation
        self._started = 0.0
        self._garbage = gc.get_threshold()

    def on_start(self, event):
        if self._depth == 0:
            announce, self.announce = self.announce or self.log, None
            announce()
            self._started, self._garbage = time.perf_counter(), gc.get_threshold()
            if 0 < self._garbage[0] < GARBAGE:
                gc.set_threshold(GARBAGE, *self._garbage[1:])
        self._depth += 1
        function = getattr(event.data["dispatcher"], "py_func", None)
        if self.each is not None and function is not None and function.__module__.startswith(kernels.__name__):
            self.each(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")

    def log(self):
        """Log the first compilation if nobody has asked for the announcement."""
        if not self.logged:
            LOGGER.warning("compiling the numerical kernels (kept for later runs) ...")
        self.logged = True

    def on_end(self, _event):
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started
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
