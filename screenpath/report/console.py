"""What a person sees on stderr: a bar and a table on a terminal, plain lines elsewhere, nothing when quiet.

With ``log_format="json"`` every line is an object for machines: time, level, event, and what the event knows by name.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from screenpath.data.words.tables import clock, dump_json, now
from screenpath.errors import fitted, shown, write
from screenpath.report.activity import Activity

if TYPE_CHECKING:  # rich is imported for a bar alone
    from screenpath.report.rich_parts import Bar

LINE_EVERY_SECONDS = 30.0
LINE_EVERY_SHARE = 0.1
BAR_EVERY_SECONDS = 1.0  # also the time without a bar
COMPILING = "compiling the numerical kernels"
DUMB = ("dumb", "unknown")  # terminals that cannot move their cursor


class Console:
    """Progress and summary on stderr.

    A ``quiet`` one prints nothing (errors are printed elsewhere); there is progress unless quiet, or as ``progress``
    says. ``words`` turns a message into one for the shell: ``errors.flags``.
    """

    def __init__(self, quiet: bool, progress: bool | None, words=str, log_format: str = "text"):
        self.quiet, self.words, self.json = quiet, words, log_format == "json"
        self.progress = not quiet if progress is None else progress
        self.terminal = sys.stderr.isatty() and os.environ.get("TERM") not in DUMB and not self.json
        self._bar: Bar | None = None
        self._said, self._said_at = 0.0, time.monotonic()
        self._activity = Activity("")
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None

    # -- messages ------------------------------------------------------------------------------------------------

    def say(self, text: str, event: str = "message") -> None:
        if not self.quiet:
            self.tell(text, event)

    def tell(self, text: str, event: str = "message", level: str = "info", **known) -> None:
        """Print a line, or the object of an event, even if quiet."""
        text = self.words(text)
        if self.json:
            text = dump_json({"time": now(), "level": level, "event": event, "message": text, **known})
            write(text.encode("ascii", "backslashreplace").decode("ascii"))
        else:
            write(fitted(shown(text)))

    def summary(self, lines: list[tuple[str, str]]) -> None:
        if self.quiet:
            return
        lines = [(what, shown(self.words(value))) for what, value in lines]
        if self.json:
            self.tell("the run has ended", "summary", items=[list(line) for line in lines])
            return
        if self.terminal:
            from screenpath.report.rich_parts import print_table

            print_table(lines)
            return
        width = max(len(what) for what, _ in lines)
        for what, value in lines:
            write(f"{what:<{width}}  {value}")

    # -- what is under way ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def compiling(self, check=None, usual: float = 0.0):
        """Report once if a kernel must be compiled before the block ends; ``check()`` may forbid it.

        ``usual``: seconds that it takes on most machines, which give the time left.
        """
        from screenpath.kernels.compilation import on_first_compile

        before, names, started = self._activity, [], []
        covered = (lambda: before.gone / usual) if usual else None

        def begin():
            if check is not None:
                check()
            self.say("compiling the numerical kernels (kept for later runs) ...")
            started.append(time.monotonic())

        def each(name):
            names.append(name)
            if before.unit not in ("", "MB"):  # something counted continues meanwhile
                return
            if not before.title.startswith(COMPILING):
                before.turn(COMPILING, covered)
                before.began = started[0]
            before.title = f"{COMPILING}: {name}, number {len(names)}"

        on_first_compile(begin, each)
        try:
            yield
        finally:
            on_first_compile(None)

    @contextlib.contextmanager
    def busy(self, title: str, look=None, unit: str = "", total: float = 0.0):
        """Show progress until the block ends; yields the Activity.

        ``look() -> (file, done, total)`` in bytes, or None if unknown; ``unit`` is what :meth:`count` counts, ``total``
        how much of it there is.
        """
        activity = Activity(title, unit, total, look=look)
        self._begin(activity)
        try:
            yield activity
        finally:
            self.stop()

    def start(self, title: str, total: int, done: int, bound: bool = False, covered=None, pulse=None) -> None:
        self._begin(Activity(title, "steps", total, done, bound, covered, pulse=pulse))

    def advance(self, step) -> None:
        """Count a step as done."""
        self.count(1, step)

    def count(self, done: float, step=None, always: bool = False, more: str = "") -> None:
        """Count units as done; print it if it is time, or ``always``, followed by ``more``."""
        a = self._activity
        a.done, a.step = a.done + done, step
        if self._bar is not None:
            self._bar.show(a)
        if not self.progress or self.terminal:
            return
        share = (a.done - self._said) / a.total
        if always or share >= LINE_EVERY_SHARE or a.done >= a.total or self._silence() >= LINE_EVERY_SECONDS:
            self._said, self._said_at = a.done, time.monotonic()
            self._line("progress", f"{a.progress()}{more}", a.step_fields())

    def stop(self) -> None:
        self._over.set()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self, activity: Activity) -> None:
        self.stop()
        self._activity = activity
        self._said, self._said_at = activity.done, time.monotonic()
        if not self.progress:
            return
        if self.terminal and activity.unit:
            self._show(activity)
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, args=(activity, self._over), daemon=True)
        self._watcher.start()

    def _silence(self) -> float:
        return time.monotonic() - self._said_at

    def _watch(self, activity: Activity, over: threading.Event) -> None:
        """Show from time to time what is under way, because a step may take long."""
        with contextlib.suppress(OSError):  # nobody reads stderr any more
            while not over.wait(BAR_EVERY_SECONDS):
                activity.refresh()
                if self.terminal:
                    self._show(activity)
                elif self._silence() >= LINE_EVERY_SECONDS:
                    self._said_at = time.monotonic()
                    self._line("heartbeat", activity.heartbeat(), activity.beat_fields())

    def _show(self, activity: Activity) -> None:
        from screenpath.report.rich_parts import Bar

        if self._bar is None:
            self._bar = Bar(activity)
        self._bar.show(activity)

    def _line(self, event: str, text: str, known: dict) -> None:
        if self.json:
            self.tell(text, event, **self._activity.fields(), **known)
        else:
            write(fitted(f"{clock()} {shown(self.words(text))}"))
