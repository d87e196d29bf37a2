"""The exception tree: each error carries its exit code and says what to type next.

Options stand in messages as Python has them, between backquotes: `` `threads` ``, `` `scale=maxabs` ``. The command
line turns them into flags. What is said to people may hold text of theirs (names of files, tokens): :func:`shown` makes
it harmless for a terminal.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import shlex
import signal
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

NARROWEST = 20  # columns of a terminal below which lines are left to it
OPTION = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`]*))?`")


def flags(text: str) -> str:
    """Return a message with its options as the command line has them: ``--threads``, ``--scale maxabs``."""

    def flag(found) -> str:
        name = found[1].replace("_", "-")
        if found[2] == "False":
            return f"--no-{name}"
        value = found[2] if found[2] is None or found[2].startswith("'") else shlex.quote(found[2])
        return f"--{name}" if value is None else f"--{name} {value}"

    return OPTION.sub(flag, text)


def shown(text: str) -> str:
    """Return text on one line with everything that does not print shown as an escape: a name may hold commands.

    A terminal obeys control characters, and characters without a glyph can reverse or hide what stands around them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown_lines(text: str) -> str:
    """Return :func:`shown` of each line of a text that has several by itself."""
    return "\n".join(shown(line.replace("\t", "  ")) for line in text.split("\n"))


def fitted(text: str) -> str:
    """Return a line for stderr: folded between words where that is a narrower terminal, else as it is."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # no terminal, or no file at all
        return text
    if not NARROWEST <= width < len(text):
        return text
    start = text[: len(text) - len(text.lstrip())]
    lines = textwrap.TextWrapper(width, start, f"{start}  ", break_long_words=False, break_on_hyphens=False)
    return lines.fill(text.lstrip())


def tell(text: str) -> None:
    """Print one line of text to stderr."""
    write(fitted(shown(text)))


def write(line: str) -> None:
    """Write a line to stderr at once: where a signal came within another line, Python's own stream lets none in."""
    with unheard():
        try:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        except RuntimeError:
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))


def unheard():
    """Return a block in which stderr may fail: no work ends for want of words (a log on a full disk, ``| head``)."""
    return contextlib.suppress(OSError)


def folder_of(run, remedy: str = "write it to one with its method save(DIR), and pass DIR") -> Path:
    """Return the folder of a run that a Python function was given: its name, or the run as an object.

    Anything else is a :class:`UsageError`, with the remedy for a path that is in memory.
    """
    try:
        return Path(getattr(run, "folder", run))
    except TypeError:
        if hasattr(run, "save"):
            raise UsageError("this path is in memory, in no run folder", remedy) from None
        raise UsageError(f"a run is named by its folder, not by {brief(run)}") from None


def file_name(value, option: str, hint: str | None = None) -> str:
    """Return the name of a file that a Python function was given as an option; else a :class:`UsageError`."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise UsageError(f"`{option}` must be the name of a file or a folder, not {brief(value)}", hint) from None


def brief(value) -> str:
    """Return a value as Python writes it; of one that has many lines or words, such as an array, only its kind."""
    text = repr(value)
    return text if isinstance(value, str) or len(text) <= 80 and "\n" not in text else type(value).__name__


def waits(function: Callable) -> Callable:
    """Return a function within which Ctrl-C waits for the end, where Python's own handler would raise there and then.

    For imports, and for what compiles or loads a kernel: numba builds its tables of types and functions as it goes,
    and LLVM owns what it was just given. An exception from a signal's handler would leave either half done, and every
    later call of the process would fail for it. So does a handler whose object says ``patient``; others are left alone.
    """

    @functools.wraps(function)
    def waiting(*arguments, **keywords):
        handler: Any = signal.getsignal(signal.SIGINT)
        patient = handler is signal.default_int_handler or getattr(getattr(handler, "__self__", None), "patient", False)
        if not patient or threading.current_thread() is not threading.main_thread():  # others hear of no signal
            return function(*arguments, **keywords)
        came: list = []
        signal.signal(signal.SIGINT, lambda *what: came.append(what))
        try:
            return function(*arguments, **keywords)
        finally:
            signal.signal(signal.SIGINT, handler)
            if came:
                handler(*came[0])

    return waiting


class ScreenpathError(Exception):
    """Base of every error that the tool explains itself: what is wrong, with file, line and token where they exist, and
    as a ``hint`` what to type or change next; ``more`` are further lines, where there are several faults of a kind.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None, more: tuple[str, ...] = ()):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.more = more

    def __str__(self) -> str:
        return "\n  ".join(filter(None, (self.message, *self.more, self.hint)))


class DataError(ScreenpathError):
    """The data cannot be read or cannot be used for this model (exit code 1)."""


class RunFolderError(ScreenpathError):
    """A run folder is damaged, locked, or belongs to another run (exit code 1)."""


class InUseError(RunFolderError):
    """Another process is writing to the folder (exit code 1)."""


class ResourceError(ScreenpathError):
    """Memory, disk or a library that is needed is not there (exit code 1)."""


class UsageError(ScreenpathError):
    """Options that contradict each other or the model (exit code 2)."""

    exit_code = 2


class NoStep(UsageError):
    """No step of a path has the parameters that were ``wanted`` (exit code 2)."""

    def __init__(self, message: str, hint: str, wanted: dict):
        super().__init__(message, hint)
        self.wanted = wanted


@contextlib.contextmanager
def needed(message: str, hint: str, kind: type[ScreenpathError] = ResourceError):
    """Say what to install where a block imports a package that is not there."""
    try:
        yield
    except ImportError:
        raise kind(message, hint) from None


@contextlib.contextmanager
def failures_named(path: Path | str):
    """Name the file that a write failed on; numpy's "16 requested and 11 written" means that the disk is full."""
    try:
        yield
    except OSError as error:
        raise failure_named(error, path) from None


def failure_named(error: OSError, path: Path | str) -> OSError:
    """Return the error of a write with the name of the file, where it has none."""
    if error.filename is not None:
        return error
    number = errno.ENOSPC if error.errno is None else error.errno
    return OSError(number, os.strerror(number), str(path))
