"""What a person sees on stderr: a bar and a table on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from screenpath.errors import shown, tell

if TYPE_CHECKING:  # rich is imported for a bar alone
    from screenpath.report.rich_parts import Bar

LINE_EVERY_SECONDS = 30.0
LINE_EVERY_SHARE = 0.1


class Console:
    """Progress and summary on stderr.

    Parameters
    ----------
    quiet : bool
        Say nothing at all (errors are printed elsewhere).
    progress : bool or None
        None: progress unless quiet.
    words : callable, optional
        What makes a message one of the shell: ``errors.flags``.
    """

    def __init__(self, quiet: bool, progress: bool | None, words=str):
        self.quiet, self.words = quiet, words
        self.progress = not quiet if progress is None else progress
        self.terminal = sys.stderr.isatty()
        self._bar: Bar | None = None

    def say(self, text: str) -> None:
        """Print a line unless quiet."""
        if not self.quiet:
            tell(self.words(text))

    @contextlib.contextmanager
    def compiling(self, check=None):
        """Say so, once, if a kernel has to be compiled before the block ends; ``check()`` may forbid it."""
        from screenpath.kernels.compilation import on_first_compile

        def begin():
            if check is not None:
                check()
            self.say("compiling the numerical kernels (kept for later runs) ...")

        on_first_compile(begin)
        try:
            yield
        finally:
            on_first_compile(None)

    def start(self, title: str, total: int, done: int) -> None:
        """Begin the progress of a path of ``total`` steps, ``done`` of which are there already."""
        self._title, self._total, self._done = title, total, done
        self._said, self._said_at = done, time.monotonic()
        if self.progress and self.terminal:
            from screenpath.report.rich_parts import start_bar

            self._bar = start_bar(title, total, done)

    def advance(self, step) -> None:
        """Count a step as done."""
        self._done += 1
        if self._bar is not None:
            self._bar.advance(step)
        elif self.progress:
            self._line(step)

    def _line(self, step) -> None:
        now = time.monotonic()
        share = (self._done - self._said) / self._total
        if share < LINE_EVERY_SHARE and now - self._said_at < LINE_EVERY_SECONDS and self._done < self._total:
            return
        self._said, self._said_at = self._done, now
        where = ", ".join(f"{name} = {value:.4g}" for name, value in step.parameters.items())
        done = f"{self._done} of {self._total} done"  # a count; the number of the step is the one that --step takes
        text = f"{self._title}: step {step.step} ({where}), {done}, relative gap {step.rel_gap:.1e}"
        tell(f"{text}, {100.0 * step.rejection_ratio:.1f} % screened")

    def stop(self) -> None:
        """End the progress."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def summary(self, lines: list[tuple[str, str]]) -> None:
        """Print the closing table."""
        if self.quiet:
            return
        lines = [(what, shown(self.words(value))) for what, value in lines]
        if self.terminal:
            from screenpath.report.rich_parts import print_table

            print_table(lines)
            return
        width = max(len(what) for what, _ in lines)
        for what, value in lines:
            print(f"{what:<{width}}  {value}", file=sys.stderr)
        sys.stderr.flush()
