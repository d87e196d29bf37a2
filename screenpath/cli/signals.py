"""Ctrl-C and SIGTERM of a command."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading

from screenpath.engine.interrupts import Interrupts, Stopped
from screenpath.errors import tell

AGAIN = 0.01  # seconds until a signal during an import, or a swallowed Stopped, is raised again
GRACE = 20.0  # seconds for a long step to end by itself; schedulers wait about 30 between SIGTERM and SIGKILL
TIMERS = hasattr(signal, "setitimer")  # Windows has none
ALARM = getattr(signal, "SIGALRM" if TIMERS else "SIGBREAK")
IMPORTS = "<frozen importlib"  # file name of the code that imports
LLVM = "llvmlite.binding."  # modules that call LLVM
CLASSES = "numba.core.serialize"  # module that finds the class of a kernel's return value, once for each class
ENTRANCE = "_run"  # of cli.app: imports above it do not count


def later(seconds: float, number: int) -> threading.Timer:
    """Start and return a thread that sends this process a signal after some seconds."""
    if TIMERS:
        timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    else:  # os.kill of Windows ends a process
        timer = threading.Timer(seconds, _thread.interrupt_main, (number,))
    timer.daemon = True
    timer.start()
    return timer


def importing(frame) -> bool:
    """Tell whether a module is being imported at a frame: an exception raised there may be lost."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORTS):
            return True
        if frame.f_code.co_name == ENTRANCE and frame.f_globals.get("__name__") == "screenpath.cli.app":
            return False
        frame = frame.f_back
    return False


def calling_back(frame) -> bool:
    """Tell whether LLVM is being called at a frame, or compiled code waits there for the class of its return value.

    An exception between a call of LLVM and the record that an object belongs to LLVM would free it twice; compiled code
    does not check whether there is a class.
    """
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(LLVM) or name == CLASSES:
            return True
        frame = frame.f_back
    return False


class Signals(Interrupts):
    """Turns the first SIGINT or SIGTERM into :class:`Stopped`; a second one ends the process at once.

    Compiled kernels are not interrupted: Python runs the handler when the kernel call returns, and every kernel call is
    of bounded length. Nor are imports: before there are files to keep (``keeping``) the process just ends, later the
    signal waits for the end of the import, as it does for calls of LLVM, and of numba for a kernel's return value. The
    handler may run in a destructor, from which no exception escapes: it is raised again a moment later, until it does.
    """

    numbers = (signal.SIGINT, signal.SIGTERM)
    patient = False  # the process ends

    def __init__(self, say=tell):
        super().__init__()
        self.say = say  # called at the first signal
        self._bell: threading.Timer | None = None

    def __enter__(self):
        self._hook, sys.unraisablehook = sys.unraisablehook, self._swallowed
        try:
            self._install(ALARM, self._raise_again)
            return super().__enter__()
        except BaseException:  # the first signal, before all handlers are set
            self.__exit__()
            raise

    def __exit__(self, *exception):
        self._ring(0.0)
        sys.unraisablehook = self._hook
        super().__exit__(*exception)

    def _handle(self, number, frame):
        cuts = importing(frame)
        if cuts and not self.keeping:
            os._exit(128 + number)
        if cuts or calling_back(frame):
            later(AGAIN, number)
            return
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
        self.say(f"stopping: {self.kept} (again to abort at once)")
        if self._held:
            return
        if self.softly():
            self._ring(GRACE)
            return
        self._told = True
        raise Stopped(number)

    def _swallowed(self, unraisable):
        """Raise again what could not escape; print anything else that is not a consequence of it."""
        if isinstance(unraisable.exc_value, Stopped):
            self._ring(AGAIN)
        elif not self._cut():
            self._hook(unraisable)

    def _ring(self, seconds: float) -> None:
        """Have :meth:`_raise_again` called once after some seconds; for 0, not at all."""
        if TIMERS:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return
        if self._bell is not None:
            self._bell.cancel()
        self._bell = later(seconds, ALARM) if seconds else None

    def _raise_again(self, number, frame):
        if self.received is None:  # Ctrl-Break
            self._handle(number, frame)
        elif self._held:
            self._told = False
        elif importing(frame) or calling_back(frame):
            self._ring(AGAIN)
        else:
            self._told = True
            raise Stopped(self.received)
