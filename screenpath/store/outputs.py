"""Where a command writes: one policy for every output file, and for the step table on stdout.

An input of the command and a part of a run folder are never written to, under any name; another existing file only with
``--force``. ``-`` is standard output; descriptors and devices are written to directly.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from pathlib import Path

from screenpath.data.safe.atomic import LOCK, TEMPORARY, replacing
from screenpath.data.words.tables import CsvTable, JsonLines, need_parquet
from screenpath.errors import RunFolderError, UsageError, failures_named
from screenpath.store.record import EARLIER, FILES, PARTS, RUN

DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]+)")
STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
OTHER = "choose another file"
KNOWN = ("csv", "html", "json", "markdown", "parquet", "pdf", "png", "svg", "tex", "tsv", "xlsx")  # ends of names


class Output:
    """An output file, checked before any work is done and again before it gets its name.

    ``name`` is as the user wrote it, ``-`` for standard output. ``inputs`` are files and folders that the command
    reads, including run folders; ``-`` is not one of them.
    """

    def __init__(self, name: str, force: bool = False, inputs=()):
        self.name, self.path, self.force = name, Path(name), force
        self.inputs = [Path(one) for one in inputs if one is not None and str(one) != "-"]
        found = DESCRIPTOR.fullmatch(name)
        self.descriptor = int(found[1]) if found else STREAMS.get(name)
        self.check()

    @property
    def stdout(self) -> bool:
        return self.descriptor == 1

    def check(self) -> None:
        """Check again that the file may be written."""
        if self.descriptor is not None:
            return
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:  # or a dangling link
            mode = stat.S_IFREG if os.path.islink(self.path) else None
        except OSError as error:
            raise UsageError(f"{self.name} cannot be written: {error.strerror}", OTHER) from None
        if mode is not None and _is_device(mode):
            return
        where = _input_that_is(self.path, self.inputs)
        if where is not None:
            raise UsageError(f"{self.name} is read by this command ({where}) and is never overwritten", OTHER)
        if _is_part(self.path):
            raise UsageError(f"{self.name} is part of a run folder and is never overwritten", OTHER)
        if mode is None:
            return
        if not stat.S_ISREG(mode):
            raise UsageError(f"{self.name} is not a file that can be written", OTHER)
        if not self.force:
            raise UsageError(f"{self.name} exists already", f"use `force` to replace it, or {OTHER}")

    @contextlib.contextmanager
    def open(self, parents: bool = False):
        """Open the output, with ``parents`` after making its folders; a file appears whole, and only without an error.
        """
        if self.descriptor is not None:
            with failures_named("standard output" if self.stdout else self.name):
                sys.stdout.flush()
                if self.stdout:
                    yield sys.stdout.buffer
                    sys.stdout.buffer.flush()
                    return
                with self._opened(lambda: open(os.dup(self.descriptor), "wb")) as file:
                    yield file
            return
        with self._explained():
            if parents:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            device = os.path.exists(self.path) and _is_device(os.stat(self.path).st_mode)
        if device:
            with failures_named(self.path), self._opened(lambda: open(self.path, "wb")) as file:
                yield file
            return
        with self._opened(lambda: replacing(self.path, self.check)) as file:
            yield file

    @contextlib.contextmanager
    def _opened(self, make):
        """Enter a context that yields a file; only errors of opening it name the user's file."""
        with contextlib.ExitStack() as stack:
            with self._explained():
                file = stack.enter_context(make())
            yield file

    @contextlib.contextmanager
    def _explained(self):
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError, PermissionError) as error:
            raise UsageError(f"{self.name} cannot be written: {error.strerror}", OTHER) from None
        except OSError as error:
            if self.descriptor is None:
                raise
            raise UsageError(f"{self.name} is not open: {error.strerror}", OTHER) from None

    def write(self, text: str | bytes) -> None:
        with self.open() as file:
            file.write(text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text)


def form_of(name: str | None, forms, usual: str, asked: str | None = None) -> str:
    """Return the format that is asked for, or that a file's name ends in, or ``usual``; ``forms`` are all there are."""
    form = asked or Path(name or "").suffix.lower()[1:].replace("md", "markdown")
    if form in KNOWN and form not in forms:
        raise UsageError(f"`out={name}`: what is written is {' or '.join(forms)}", f"end the name in .{forms[0]}")
    if form == "parquet":
        need_parquet()
    return form if form in forms else usual


def refuse_inputs(folder: Path, inputs) -> None:
    """Refuse to write a folder that the same command reads, wholly or one of its files, or that cannot be made."""
    above = next(one for one in (folder, *folder.absolute().parents) if os.path.exists(one))
    if above != folder and not os.access(above, os.W_OK):  # before anything is read or compiled
        raise RunFolderError(f"{folder} cannot be made: {above} is closed to you", "choose another folder with `out`")
    names = [folder / name for name in (*FILES, LOCK)]
    for one in (Path(one) for one in inputs if str(one) != "-"):
        for path in [folder, folder / EARLIER] if one.is_dir() else names:
            if _same(path, one):
                what = f"{one} is read by this command and would be written by it"
                raise UsageError(what, "choose another folder with `out`")


def _input_that_is(path: Path, inputs) -> str | None:
    """Return the input that an output file is, or is part of, under any name; None if there is none."""
    for one in inputs:
        run = (one / RUN).exists()
        if run:  # pictures and models may be stored in a run folder
            files = [*(one / name for name in (*FILES, LOCK)), *(one / PARTS).rglob("*")]
        else:  # a file, or a folder of data
            files = [one, *(one.rglob("*") if one.is_dir() else ())]
        if any(_same(path, file) for file in files) or (not run and _same(path.parent, one)):
            return str(one)
    return None


def _is_part(path: Path) -> bool:
    """Tell whether a path has the name of a part of a run folder, even if that part does not exist yet."""
    for name in {os.path.join(os.path.realpath(path.parent), path.name), os.path.realpath(path)}:
        place = Path(name)
        if (place.parent / RUN).exists() and TEMPORARY.sub(r"\1", place.name) in (*FILES, PARTS, LOCK):
            return True
        if any(above.name == PARTS and (above.parent / RUN).exists() for above in place.parents):
            return True
    return False


def _is_device(mode: int) -> bool:
    """Tell whether writing overwrites nothing: a pipe, a terminal."""
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


class Stream:
    """The step table on stdout, a line a step (``json``: an object), with the methods of ``RunFolder``."""

    def __init__(self, file, format: str, columns):
        self.file = file
        self.table = (CsvTable if format == "csv" else JsonLines)(columns)
        self.count = 0

    def clear(self) -> None:
        """A stream holds nothing of earlier runs."""

    def open(self, columns, layout, checkpoint=None) -> None:
        self._write(self.table.opening())

    def write_run(self, record: dict) -> None:
        """A stream has no run.json."""

    def add(self, row: dict, coefficients=None) -> None:
        """Write a step, without coefficients."""
        self._write(self.table.record(row, first=self.count == 0))
        self.count += 1

    def due(self) -> bool:
        """A stream cannot be resumed, so it needs no checkpoint."""
        return False

    def checkpoint(self, state: dict, tally) -> None: ...

    def finish(self, record: dict, skipped) -> None:
        for row in skipped:
            self.add(row)
        self._write(self.table.closing())

    def fail(self, record: dict) -> None:
        """Nothing to complete: what was written stays."""

    def close(self) -> None: ...

    def _write(self, text: str) -> None:
        with failures_named("standard output"):
            self.file.write(text)
            self.file.flush()
