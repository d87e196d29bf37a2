"""Ctrl-C stops a run between two kernel calls, never in the middle of writing a step."""

from __future__ import annotations

import contextlib
import signal
import threading
import traceback
from collections.abc import Callable


class Stopped(BaseException):
    """Raised in the main thread by the first signal; a command's exit code is its number plus 128."""

    def __init__(self, number: int):
        super().__init__(f"signal {number}")
        self.number = number


def _not_softly() -> bool:
    return False


class Interrupts:
    """Turns the first Ctrl-C of a Python program into :class:`Stopped`; a second one is ``KeyboardInterrupt``.

    Only the main thread gets signals: in another thread this changes nothing. Compiled kernels are not interrupted:
    Python runs the handler when the kernel returns, and each call is of bounded length.
    """

    numbers: tuple = (signal.SIGINT,)
    patient = True  # the program continues, so a compilation must not be cut (screenpath.errors.waits)

    def __init__(self):
        self.received, self.keeping = None, False  # the first signal; whether there are files to keep
        self.kept = "finished steps are kept"  # the answer to the first signal
        # asks the work under way to end by itself, and tells whether it will; then :meth:`check` raises
        self.softly: Callable[[], bool] = _not_softly
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
        self.softly = _not_softly  # who was asked holds this, and all of a run's memory
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self):
        """Delay a signal until the block is done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    @contextlib.contextmanager
    def cutting(self):
        """Take an error in code that :class:`Stopped` interrupted for the signal: it could not end properly."""
        try:
            yield
        except Exception as error:
            if self.received is None or not self._cut():
                raise
            # Free what the frames hold, such as an open archive, here: its destructor may complain.
            cause: BaseException | None = error
            while cause is not None:
                traceback.clear_frames(cause.__traceback__)
                cause = cause.__context__
            raise Stopped(self.received) from None

    def _cut(self) -> bool:
        return self._told and not self._held

    def hold(self) -> None:
        """Ignore the first signal from now on, while files are completed. A second one still aborts."""
        self._held = True

    def check(self) -> None:
        """Raise :class:`Stopped` if a signal came while it was held."""
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
