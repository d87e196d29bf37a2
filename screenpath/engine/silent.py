"""A run that nobody listens to."""

from __future__ import annotations

import contextlib


class Silent:
    """In place of a console (:class:`screenpath.report.console.Console`): nobody hears anything."""

    quiet = True
    progress = False

    def say(self, text: str, event: str = "message") -> None:
        """Keep quiet."""

    def start(self, title: str, total: int, done: int, bound: bool = False, covered=None, pulse=None) -> None:
        """Keep quiet."""

    def busy(self, title: str, look=None, unit: str = "", total: float = 0.0):
        """Return a context in which nothing is said of what is under way."""
        return contextlib.nullcontext()

    def advance(self, step) -> None:
        """Keep quiet."""

    def count(self, done: float, step=None, always: bool = False, more: str = "") -> None:
        """Keep quiet."""

    def stop(self) -> None:
        """Keep quiet."""

    def summary(self, lines: list) -> None:
        """Keep quiet."""

    def compiling(self, check=None, usual: float = 0.0):
        """Return a context in which nothing is said of compilation."""
        return contextlib.nullcontext()
