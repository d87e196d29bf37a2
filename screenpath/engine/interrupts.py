"""Ctrl-C: stop between two kernel calls, but never in the middle of writing a step."""

from __future__ import annotations

import contextlib
import signal
import threading
import traceback
from collections.abc import Callable


class Stopped(BaseException):
    """Raised in the main thread by the first signal, whose number and 128 are the exit code of a command."""

    def __init__(self, number: int):
        super().__init__(f"signal {number}")
        self.number = number


class Interrupts:
    """Turns the first Ctrl-C of a Python program into :class:`Stopped`; a second one is ``KeyboardInterrupt``.

    Only the main thread hears of signals: in another one nothing is changed. Compiled kernels are not interrupted:
    Python runs the handler when the kernel call returns, and every kernel call is of bounded length.

    Attributes
    ----------
    received : int or None
        The first signal.
    keeping : bool
        Whether there are files to keep.
    kept : str
        What is said to the first signal.
    softly : callable
        ``softly() -> bool``: asks what is under way to end by itself, and tells whether it will; :meth:`check` then
        raises.
    """

    numbers: tuple = (signal.SIGINT,)
    patient = True  # the program goes on: what compiles must not be cut (screenpath.errors.waits)

    def __init__(self):
        self.received, self.keeping = None, False
        self.kept = "finished steps are kept"
        self.softly: Callable[[], bool] = lambda: False
        self._held = self._told = False
        self._before = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in self.numbers:
                self._install(number, self._handle)
        return self

    def _install(self, number: int, handler) -> None:
        self._before[number] = signal.getsignal(number)  # first: a signal may come in between
        signal.signal(number, handler)

    def __exit__(self, *exception):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self):
        """Put off a signal until the block is done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    @contextlib.contextmanager
    def cutting(self):
        """Take a failure of what :class:`Stopped` came out of for the signal: it had no chance to end properly."""
        try:
            yield
        except Exception as error:
            if self.received is None or not self._cut():
                raise
            # What they hold, say an archive that was to be closed, goes here and not where its end would be told.
            cause: BaseException | None = error
            while cause is not None:
                traceback.clear_frames(cause.__traceback__)
                cause = cause.__context__
            raise Stopped(self.received) from None

    def _cut(self) -> bool:
        """Tell whether what fails now may do so for want of what :class:`Stopped` cut."""
        return self._told and not self._held

    def hold(self) -> None:
        """Put off signals for good: what is left is to complete the files. A second signal still aborts."""
        self._held = True

    def check(self) -> None:
        """Raise :class:`Stopped` if a signal came while it was held and nobody has been told."""
        if self.received is not None and not self._told:
            self._told = True
            raise Stopped(self.received)

    def _handle(self, number, frame):
        if self.received is not None or not self.keeping:
            raise KeyboardInterrupt
        self.received = number
        if not self._held and not self.softly():
            self._told = True
            raise Stopped(number)
