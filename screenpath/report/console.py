"""What a person sees on stderr: a bar and a table on a terminal, plain lines elsewhere, nothing when quiet.

With ``log_format="json"`` every line is an object for machines: time, level, event, and what the event knows by name.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from screenpath.data.words.tables import clock, dump_json, now
from screenpath.errors import fitted, shown, write

LINE_EVERY_SECONDS = 30.0
LINE_EVERY_SHARE = 0.1
BAR_EVERY_SECONDS = 1.0
PATIENCE = 2.0  # seconds of work without any progress, unless it was asked for
COMPILING = "compiling the numerical kernels"
DUMB = ("dumb", "unknown")  # terminals that cannot move their cursor
NARROW = 70  # terminals with fewer columns have no room for a bar
MEGABYTE = 1e6


@dataclass
class Activity:
    title: str
    unit: str = ""  # what is counted; empty if nothing is
    total: float = 0.0  # of these units; 0 if unknown
    done: float = 0.0
    # whether ``total`` is only a bound: then the time left is unknown
    bound: bool = False
    # ``covered() -> float``, the share of the work that is done, if it is not ``done / total``
    covered: Callable | None = None
    look: Callable | None = None  # ``look() -> (file, done, total)`` in bytes, or None: called if nothing counts
    pulse: Any = None  # ``solve.base.Pulse`` of the step under way
    step: Any = None  # ``walk.step.Step``: the last finished one
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self):
        self._first = self._share()

    def refresh(self) -> None:
        """Update the progress by ``look``, if nothing counts."""
        found = self.look() if self.look is not None else None
        if found is not None:
            title = f"reading {os.path.basename(found[0])}"
            if title != self.title and self.unit:  # the next file
                self.began = time.monotonic()
            self.title, self.unit, self.done, self.total = title, "MB", found[1] / MEGABYTE, found[2] / MEGABYTE

    def turn(self, title: str) -> None:
        """Continue with something that is not counted: its time left is unknown."""
        if self.unit in ("", "MB"):
            self.title, self.unit, self.done, self.total = title, "", 0.0, 0.0
            self.look, self.covered, self.began = None, None, time.monotonic()
            self._first = self._share()

    def _share(self) -> float:
        if self.covered is not None:
            return self.covered()
        return 0.0 if self.bound or not self.total else self.done / self.total

    @property
    def gone(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float | None:
        """Return the seconds left at the present rate; None if unknown."""
        share = self._share()
        if not share > self._first:
            return None
        left = self.gone * (1.0 - share) / (share - self._first)
        return left if isfinite(left) and left > 0.0 else None

    # -- for people ----------------------------------------------------------------------------------------------

    def count(self) -> str:
        """Return ``12 of 100 done``."""
        if not self.unit:
            return ""
        if self.unit == "MB":
            return f"{self.done:.0f} of {self.total:.0f} MB"
        most = "at most " if self.bound else ""
        unit = "" if self.unit == "steps" else f"{self.unit} "
        return f"{self.done:.0f} {f'of {most}{self.total:.0f} ' if self.total else ''}{unit}done"

    def times(self) -> str:
        """Return the time gone and the time left in words; nothing within the first second."""
        if self.gone < 1.0:
            return ""
        gone, left = f"{duration(self.gone)} gone", self.left
        return gone if left is None else f"{gone}, about {duration(left)} left"

    @property
    def counted(self) -> str:
        """Return the count as it stands at a bar."""
        return self.count().removesuffix(" done")

    @property
    def clocks(self) -> str:
        """Return the times as they stand at a bar."""
        return duration(self.gone) + ("" if self.left is None else f", {duration(self.left)} left")

    @property
    def note(self) -> str:
        """Return the gap of the step under way, or of the last one."""
        where, s = self.under_way(), self.step
        if where is not None and where[1] > 1.0:
            return f"{_brief(where[0])} gap {'?' if where[2] is None else f'{where[2]:.0e}'}"
        return "" if s is None else f"step {s.step} {_brief(s.parameters)} gap {s.rel_gap:.0e}"

    def progress(self) -> str:
        parts = [self.count(), self.times()]
        if self.step is not None:
            s = self.step
            parts[:0] = [f"step {s.step} ({values(s.parameters)})"]
            parts[2:2] = [f"relative gap {s.rel_gap:.1e}", f"{100.0 * s.rejection_ratio:.1f} % screened"]
        return f"{self.title}: {', '.join(part for part in parts if part)}"

    def heartbeat(self) -> str:
        """Return the line for what is still under way."""
        where, done = self.under_way(), ", ".join(filter(None, (self.count(), self.times())))
        if where is None:
            return f"{self.title}: {done}"
        parameters, seconds, gap, passes = where
        known = "gap not known yet" if gap is None else f"relative gap {gap:.1e} so far, {passes:.1f} passes"
        point = f"{values(parameters)} under way for {duration(seconds)}, {known}"
        return f"{self.title}: {point}; {done}"

    def under_way(self) -> tuple | None:
        """Return parameters, seconds, relative gap (None: unknown) and passes of the step under way."""
        pulse = self.pulse
        parameters = pulse.parameters if pulse is not None else None
        if parameters is None:
            return None
        gap = pulse.rel_gap if isfinite(pulse.rel_gap) else None
        return parameters, time.monotonic() - pulse.since, gap, pulse.passes

    # -- for machines --------------------------------------------------------------------------------------------

    def fields(self) -> dict:
        left = self.left
        found = {"title": self.title, "unit": self.unit or None, "done": self.done, "total": self.total or None}
        found |= {"total_is_bound": self.bound, "elapsed_s": round(self.gone, 3)}
        return {**found, "left_s": None if left is None else round(left, 3)}

    def step_fields(self) -> dict:
        """Return the last finished step by name."""
        s = self.step
        if s is None:
            return {}
        known = {"step": s.step, "parameters": dict(s.parameters), "status": s.status, "rel_gap": s.rel_gap}
        return {**known, "rejection_ratio": s.rejection_ratio, "passes": s.passes}

    def beat_fields(self) -> dict:
        """Return the step under way by name."""
        where = self.under_way()
        names = ("parameters", "under_way_s", "rel_gap", "passes")
        return {} if where is None else dict(zip(names, where, strict=True))


def values(parameters: dict) -> str:
    """Return ``C = 0.1``."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in parameters.items())


def duration(seconds: float) -> str:
    """Return ``5 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds == inf:
        return "for ever"
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _brief(parameters: dict) -> str:
    return " ".join(f"{name}={value:.3g}" for name, value in parameters.items())


class Bar:
    """The bar on a terminal; rich renders the texts of the activity anew ten times a second."""

    def __init__(self, activity: Activity):
        from rich.console import Console as Terminal
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.table import Column

        console, uncut = Terminal(stderr=True), Column(no_wrap=True, overflow="crop")
        words: list[ProgressColumn] = [
            TextColumn(f"{{task.fields[activity].{name}}}", markup=False, table_column=column)
            for name, column in (("title", None), ("counted", None), ("note", uncut), ("clocks", None))
        ]
        if console.width >= NARROW:
            words.insert(1, BarColumn(bar_width=None))
        self._progress = Progress(*words, console=console, transient=True)
        self._task = self._progress.add_task("", total=None, activity=activity)
        self.show(activity)
        self._progress.start()

    def show(self, activity: Activity) -> None:
        total = activity.total if activity.total and not activity.bound else None
        self._progress.update(self._task, total=total, completed=activity.done)

    def stop(self) -> None:
        self._progress.stop()


class Console:
    """Progress and summary on stderr.

    A ``quiet`` one prints nothing (errors are printed elsewhere); there is progress unless quiet, or as ``progress``
    says. ``words`` turns a message into one for the shell: ``errors.flags``.
    """

    def __init__(self, quiet: bool, progress: bool | None, words=str, log_format: str = "text"):
        self.quiet, self.words, self.json = quiet, words, log_format == "json"
        self.progress = not quiet if progress is None else progress
        self._patience = 0.0 if progress or log_format == "json" else PATIENCE
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
            from rich.console import Console as Terminal
            from rich.table import Table
            from rich.text import Text

            table = Table(show_header=False)
            table.add_column(style="bold")
            table.add_column(justify="right")
            for what, value in lines:
                table.add_row(what, Text(value))  # no markup: a folder may be called [red]
            Terminal(stderr=True).print(table)
            return
        width = max(len(what) for what, _ in lines)
        for what, value in lines:
            write(f"{what:<{width}}  {value}")

    # -- what is under way ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def compiling(self, check=None):
        """Report once if a kernel must be compiled before the block ends; ``check()`` may forbid it."""
        from screenpath.kernels.compilation import ANNOUNCED, on_first_compile

        before, names, started = self._activity, [], []

        def begin():
            if check is not None:
                check()
            self.say(ANNOUNCED)
            started.append(time.monotonic())

        def each(name):
            names.append(name)
            if before.unit not in ("", "MB"):  # something counted continues meanwhile
                return
            if not before.title.startswith(COMPILING):
                before.turn(COMPILING)
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
        self.count(1, step)

    def count(self, done: float, step=None, always: bool = False, more: str = "") -> None:
        """Count units as done; print it if it is time, or ``always``, followed by ``more``."""
        a = self._activity
        a.done, a.step = a.done + done, step
        if self._bar is not None:
            self._bar.show(a)
        if not self.progress or self.terminal or (a.gone < self._patience and not always):
            return
        total = a.total or inf
        share = (a.done - self._said) / total
        if always or share >= LINE_EVERY_SHARE or a.done >= total or self._silence() >= LINE_EVERY_SECONDS:
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
        if self.terminal and activity.unit and not self._patience:
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
                if activity.gone < self._patience:
                    continue
                activity.refresh()
                if self.terminal:
                    self._show(activity)
                elif self._silence() >= LINE_EVERY_SECONDS:
                    self._said_at = time.monotonic()
                    self._line("heartbeat", activity.heartbeat(), activity.beat_fields())

    def _show(self, activity: Activity) -> None:
        if self._bar is None:
            self._bar = Bar(activity)
        self._bar.show(activity)

    def _line(self, event: str, text: str, known: dict) -> None:
        if self.json:
            self.tell(text, event, **self._activity.fields(), **known)
        else:
            write(fitted(f"{clock()} {shown(self.words(text))}"))
