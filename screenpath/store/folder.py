"""A run folder: run.json, the step table, the coefficients, and what it takes to resume.

run.json is written first: it marks the folder as ours. A folder without this mark is neither replaced nor removed.
A run that is replaced stays in ``earlier.partial``, a run folder too, until the new one is complete.

run.json has the hash of every finished file (``files``). During a run, each step adds a line to ``progress.partial``:
steps done, then bytes and SHA-256 of the step table and of the coefficients so far. Readers of an unfinished run use
what the last whole line covers; ``--resume`` goes back to the checkpoint, which has such a line too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import stat
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.data.safe.atomic import LOCK, TEMPORARY, Appender, FolderLock, check_kept, remove_temporaries, replacing
from screenpath.data.words.tables import CsvTable, JsonTable, differences, finite, parquet_of, readable_json
from screenpath.errors import RunFolderError
from screenpath.store import record as records
from screenpath.store.archive import Damaged, load_archive, save_archive
from screenpath.store.coefficients import WRITERS, Layout, sparse_coefficients
from screenpath.store.record import COMPLETE, FAILED, INTERRUPTED, RUNNING, TIME_LIMIT  # noqa: F401 (words of this module)

NAMED = 3  # most differences that the error about a run in the way names
EVERY = 1.0  # seconds between two checkpoints, each with one fsync per file
RESERVED = {*records.FILES, records.PARTS, records.EARLIER}
FOLD = re.compile(r"[0-9]+-[0-9]+\.npz")  # file of a fold
STATE = "state-"
TOOL = "screenpath"
OPENING = b'{\n  "schema_version": '  # of every run.json, also of older versions
CHECK = 16  # letters of a line's check
NONE = hashlib.sha256().hexdigest()  # of no bytes
LINE = re.compile(rb"([0-9]{1,18}) ([0-9]{1,18}) ([0-9a-f]{64}) ([0-9]{1,18}) ([0-9a-f]{64}) ([0-9a-f]{16})\n")


@dataclass(frozen=True)
class Checkpoint:
    """Where a path can continue."""

    progress: Progress  # steps done; bytes and hashes of the step table and of the coefficients at that moment
    tally: np.ndarray  # totals so far (``report.tally.Tally.array``)
    state: dict  # arrays of the reference certificate (``model.state``)


class RunFolder:
    """Sink of a path: a folder, made if it is missing, that no other process writes to.

    The format ``parquet`` is CSV and, when the run is complete, the same table as Parquet. Coefficients are stored as
    ``csv``, ``npz``, or ``none``.
    """

    _table: CsvTable
    _steps: Appender
    _progress: Appender
    _coefficients: Any  # one of `WRITERS`, or None
    _numbers: np.ndarray | None

    def __init__(self, path: Path, format: str, coefficients: str):
        self.path, self.format, self.kind = path, "json" if format == "json" else "csv", coefficients
        self.parquet = format == "parquet"
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunFolderError(f"{path} is not a folder", "choose another one with `out`") from None
        except OSError as error:
            raise RunFolderError(f"{path} cannot be made: {error.strerror}", "choose another folder") from None
        self._lock, self._earlier, self.replaces = FolderLock(path), path / records.EARLIER, False
        self._table = self._steps = self._coefficients = self._progress = self._numbers = None
        self.files: dict[str, dict] = {}  # entries of ``record.file_entry``, of other writers too
        self._key = ""
        self._saved = time.monotonic()
        self.count, self.whole_only = 0, False  # the latter: this run, which has failed, cannot be continued

    # -- an earlier run -------------------------------------------------------------------------------------------

    def previous(self, replace: bool = False) -> dict | None:
        """Return the run.json of an earlier run; None if there is none, or if it, which must be ours, is replaced."""
        self._put_back()
        try:
            record = records.read_record(self.path)
        except FileNotFoundError:
            if os.path.lexists(self.path / records.RUN):
                what = f"{self.path / records.RUN} is a link to nothing"
                raise RunFolderError(what, "remove it, or choose another `out`") from None
            self._check_free(replace)
            return None
        except RunFolderError:
            if not replace:
                raise
        if replace:
            self._check_ours()
            return None
        if record["status"] == records.EMPTIED:
            return None
        file = self.path / records.RUN
        if record["schema_version"] != records.SCHEMA_VERSION:
            what = f"{file} has schema version {record['schema_version']}; this program writes {records.SCHEMA_VERSION}"
            hint = "use the program that wrote it, choose another `out`, or start again with `force`"
            raise RunFolderError(what, hint)
        totals = record.get("totals") or {}
        if not record.get("identity") or None in (totals.get(name) for name in ("n_steps", "certified", "unsafe")):
            raise records.damaged(file, "there is no identity, or there are no totals")
        if record["status"] == COMPLETE:
            records.check_files(self.path, record)
        return record

    def _check_free(self, replace: bool) -> None:
        """Check that a folder without run.json holds nothing with a name of ours."""
        there = {TEMPORARY.sub(r"\1", name) for name in os.listdir(self.path)} - {LOCK, records.RUN}
        taken = sorted(there & RESERVED)
        if taken:
            what = f"{self.path} holds {taken[0]}, but no run.json: it is not a run folder, and is left as it is"
            raise RunFolderError(what, "choose another `out`")
        if replace and there:
            what = f"{self.path} is not a run folder: it holds {min(there)} and no run.json; `force` replaces runs"
            raise RunFolderError(what, "choose another `out`, or leave out `force` to put a run beside what is there")

    def _check_ours(self) -> None:
        """Check that screenpath wrote run.json, even partially, and that nothing of ours is a link."""
        file = self.path / records.RUN
        with open(file, "rb") as stream:
            data = stream.read(1 << 20)
        mark = f'"tool": "{TOOL}"'.encode()
        if not (OPENING.startswith(data[: len(OPENING)]) or data.startswith(OPENING) or mark in data):
            what = f"{file} was not written by screenpath: the folder is not replaced"
            raise RunFolderError(what, "choose another `out`")
        for name in sorted(RESERVED):
            mode = _mode(self.path / name)
            wanted = stat.S_IFDIR if name in (records.PARTS, records.EARLIER) else stat.S_IFREG
            if mode is not None and stat.S_IFMT(mode) != wanted:
                what = "a symbolic link" if stat.S_ISLNK(mode) else "not what a run has made"
                why = f"{self.path / name} is {what}: the run is not replaced"
                raise RunFolderError(why, "remove it, or choose another `out`")

    def refuse(
        self, previous: dict, identity: dict | None = None, usual: dict | None = None, resumable: bool = False
    ) -> None:
        """Raise the error about a run in the way: what differs from this ``identity``, and the next free folder."""
        # we hold the lock: a "running" run was killed, unless it is on a machine that does not see the lock
        known = {COMPLETE: "a finished run", RUNNING: "a run that was killed (or still runs on another machine)"}
        what = known.get(previous["status"], f"a run that ended as '{previous['status']}'")
        other = [] if identity is None else differences(previous["identity"], identity, usual)
        if other and identity is not None and previous["identity"].get("model") != identity["model"]:
            other = [one for one in other if one.startswith("model ")]  # each has options of its own
        more = [f"and {len(other) - NAMED} more"] if len(other) > NAMED else []
        said = "; ".join([*other[:NAMED], *more]) or ("of the same data and options" if identity is not None else "")
        free = next(one for k in count(2) if not os.path.lexists(one := f"{self.path}-{k}"))
        ways = ["`resume` to continue it"] if resumable and not other and previous["status"] != COMPLETE else []
        ways += ["it as it is"] if identity is not None and not other and previous["status"] == COMPLETE else []
        ways += ["`force` to replace it", f"`out={shlex.quote(free)}`"]
        said = f": {said}" if said else ""
        raise RunFolderError(f"{self.path} holds {what} already{said}", f"use {', '.join(ways[:-1])}, or {ways[-1]}")

    def check_complete(self, previous: dict) -> None:
        lost = [name for name in previous.get("files") or () if not os.path.lexists(self.path / name)]
        if lost:
            raise RunFolderError(f"{self.path} has lost its {lost[0]}", "compute it again with `force`")

    def load_checkpoint(self, identity: dict) -> Checkpoint | None:
        """Return where the earlier run with this identity can continue; None if it must start at the first step."""
        file = self.path / records.CHECKPOINT
        if not os.path.lexists(file):
            return None
        try:
            content = load_archive(file)
            progress = Progress.of_line(content.pop("progress").tobytes(), run_key(identity))
            if progress is None or (progress.steps < 1 and not any(name.startswith(STATE) for name in content)):
                raise Damaged("it does not say how far this run had come")
            tally = content.pop("tally")
        except (ValueError, KeyError) as error:
            raise self.damaged_checkpoint(error) from None
        check_kept(self.path / f"steps.{self.format}", progress.table_bytes, progress.table_sha256)
        if self.kind != "none":
            file = self.path / (records.RECORDS if self.kind == "npz" else "coefficients.csv")
            check_kept(file, progress.coefficient_bytes, progress.coefficient_sha256)
        state = {name.removeprefix(STATE): value for name, value in content.items() if name.startswith(STATE)}
        return Checkpoint(progress, tally, state)

    def damaged_checkpoint(self, why) -> RunFolderError:
        why = f"there is no {why}" if isinstance(why, KeyError) else why
        return RunFolderError(f"{self.path / records.CHECKPOINT} is damaged ({why})", "start again with `force`")

    def fold_folder(self, number: int) -> Path:
        """Return the folder for the files of the folds over one grid, which are kept until the run is complete."""
        folder = self.path / records.PARTS / str(number)
        for place in (folder.parent, folder):
            mode = _mode(place)
            if mode is None:
                place.mkdir()
            elif not stat.S_ISDIR(mode):
                raise RunFolderError(f"{place} is not a folder of ours", "remove it, or choose another `out`")
        remove_temporaries(folder, FOLD.fullmatch)
        return folder

    def remove_leftovers(self) -> None:
        """Remove what a complete run does not need."""
        names = {records.CHECKPOINT, records.PROGRESS, f"{records.RECORDS}.partial"}
        _remove(file for file in files_of(self.path) if file.name in names or FOLD.fullmatch(file.name))
        _remove(self._aside())
        _remove_folders(self.path)
        remove_temporaries(self.path, RESERVED.__contains__)

    def clear(self) -> None:
        """Set an earlier run aside, whole, until this one is complete; an unfinished one goes where one is aside."""
        remove_temporaries(self.path, RESERVED.__contains__)
        try:
            if self.kept is None:
                _remove(self._aside())  # a kill left them
                _move(files_of(self.path), self.path, self._earlier)
            self.replaces = self.kept is not None
            _remove(reversed(files_of(self.path)))
            _remove_folders(self.path)
        except BaseException:  # a signal: what is half aside is no run that commands could read
            self._put_back()
            raise

    @property
    def kept(self) -> Path | None:
        """Return the folder of the run that the unfinished one here is to replace; None if there is none."""
        with contextlib.suppress(FileNotFoundError, RunFolderError):
            if records.read_record(self.path)["status"] == COMPLETE:
                return None
        return self._earlier if self._earlier / records.RUN in self._aside() else None

    def _aside(self) -> list[Path]:
        return files_of(self._earlier) if stat.S_ISDIR(_mode(self._earlier) or 0) else []

    def _put_back(self, failed: bool = False) -> None:
        """Give an earlier run its place again where the new one has not begun, or has ``failed`` with nothing done."""
        there = self._aside()
        if self._earlier / records.RUN in there:
            if not failed and _mode(self.path / records.RUN) is not None:
                return
            _remove(reversed(files_of(self.path)))
        if there:
            _move(reversed(there), self._earlier, self.path)
            _remove_folders(self._earlier)
            _remove_folders(self.path)

    # -- the run -------------------------------------------------------------------------------------------------

    def open(self, columns, layout: Layout, checkpoint: Checkpoint | None = None) -> None:
        """Start writing, after the checkpoint's steps or from nothing; run.json exists already."""
        self._numbers = layout.numbers
        remove_temporaries(self.path, RESERVED.__contains__)
        if checkpoint is None:
            names = ("steps.", "coefficients.", "certificate.", records.CHECKPOINT)
            _remove(file for file in files_of(self.path) if file.name.startswith(names))
        kept = checkpoint.progress if checkpoint else Progress()
        self._progress = Appender(self.path / records.PROGRESS, named=True)
        if checkpoint is not None:
            self._progress.append(kept.line(self._key))
        self._table = (CsvTable if self.format == "csv" else JsonTable)(columns)
        self._steps = Appender(self.path / f"steps{self._table.suffix}", kept.table_bytes, sha256=kept.table_sha256)
        if self.kind != "none":
            kept_bytes = kept.coefficient_bytes, kept.coefficient_sha256
            self._coefficients = WRITERS[self.kind](self.path, layout, *kept_bytes)
        if checkpoint is None:
            self._steps.append(self._table.opening().encode())
        else:
            self.count = kept.steps

    def write_run(self, record: dict) -> None:
        """Write run.json: the record, the hashes of all finished files, its own."""
        self._key = self._key or run_key(record["identity"])
        self._write_json(record)

    def _write_json(self, record: dict) -> None:
        whole = records.sealed({**finite(record), "files": self.files})
        with replacing(self.path / records.RUN) as file:
            # A file name may hold invalid bytes, which JSON escapes.
            file.write((readable_json(whole) + "\n").encode("utf-8", "backslashreplace"))

    def write_output(self, name: str, content: str | bytes) -> None:
        """Write a further file of the run, one of ``record.OUTPUTS``; the next run.json has its hash."""
        with replacing(self.path / name) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        self.files[name] = records.file_entry(self.path / name)

    def add(self, row: dict, coefficients=None) -> None:
        """Append a step as soon as it is done.

        ``coefficients`` are weights and intercept in the units of the data, and whether the model has an intercept;
        with several classes one row of weights and one intercept each.
        """
        found = []
        if self._coefficients is not None and coefficients is not None:
            weights, intercepts, has_intercept = coefficients
            pairs = zip(np.atleast_2d(weights), np.atleast_1d(intercepts), strict=True)
            found = [sparse_coefficients(one, float(b), has_intercept, self._numbers) for one, b in pairs]
        self.add_sparse(row, found)

    def add_sparse(self, row: dict, coefficients) -> None:
        """Append a step with coefficients of ``coefficients.sparse_coefficients``, one pair per class."""
        for block, found in enumerate(coefficients):
            self._coefficients.add(row["step"], *found, block)
        self._add_row(row)
        self._progress.append(self._reached().line(self._key))

    def _add_row(self, row: dict) -> None:
        self._steps.append(self._table.record(row, first=self.count == 0).encode())
        self.count += 1

    def _reached(self) -> Progress:
        steps, coefficients = self._steps, self._coefficients
        if coefficients is None:
            return Progress(self.count, steps.size, steps.sha256)
        return Progress(self.count, steps.size, steps.sha256, coefficients.size, coefficients.sha256)

    def due(self) -> bool:
        """Tell whether the last checkpoint is a second old."""
        return time.monotonic() - self._saved >= EVERY

    def checkpoint(self, state: dict, tally: np.ndarray) -> None:
        """Write where the path can continue: arrays of the next step's reference, and the totals so far."""
        self._steps.sync()
        if self._coefficients is not None:
            self._coefficients.sync()
        arrays = {"progress": np.frombuffer(self._reached().line(self._key), dtype=np.uint8), "tally": tally}
        arrays |= {STATE + name: value for name, value in state.items()}
        save_archive(self.path / records.CHECKPOINT, arrays)
        self._saved = time.monotonic()

    def finish(self, record: dict, skipped) -> None:
        """Complete all files: rows of steps that were not reached, names, run.json; then remove leftovers."""
        complete = record["status"] == COMPLETE
        for row in skipped:
            self._add_row(row)
        self._steps.append(self._table.closing().encode())
        self._steps.complete()
        if self.parquet and complete:
            self.write_output("steps.parquet", parquet_of(self._steps.path.read_text(encoding="utf-8")))
        self.files[self._steps.path.name] = {"bytes": self._steps.size, "sha256": self._steps.sha256}
        if self._coefficients is not None:
            file, entry = self._coefficients.finish(self.count)
            self.files[file.name] = entry or records.file_entry(file)
        self._progress.abandon()
        self.write_run(record)
        if complete:
            self.remove_leftovers()

    def fail(self, record: dict) -> None:
        """Record in run.json how the run ended. The finished steps stay under their partial names."""
        for file in (self._steps, self._coefficients, self._progress):
            if file is not None:
                file.abandon()
        with contextlib.suppress(OSError):  # the disk may be what failed
            self.write_run(record)

    def close(self) -> None:
        done = [file for file in files_of(self.path) if file.name == records.CHECKPOINT or FOLD.fullmatch(file.name)]
        if self.replaces and self.kept and (self.whole_only or not self.count and not done):
            with contextlib.suppress(OSError):
                self._put_back(failed=True)
        self._lock.release()


def run_key(identity: dict) -> str:
    return records.digest(finite(identity))


def _mode(path: Path) -> int | None:
    """Return the mode of a path without following links; None if it does not exist."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None


def _folds(run: Path) -> list[Path]:
    """Return the folders of a run's folds, ignoring links."""
    if not stat.S_ISDIR(_mode(run / records.PARTS) or 0):
        return []
    there = [folder for folder in (run / records.PARTS).iterdir() if folder.name.isdecimal()]
    return [folder for folder in there if stat.S_ISDIR(_mode(folder) or 0)]


def files_of(run: Path) -> list[Path]:
    """Return the files in a folder that belong to a run, also to an unfinished one; run.json is the last."""
    folds = [file for folder in _folds(run) for file in folder.iterdir() if FOLD.fullmatch(file.name)]
    files = [*folds, *(run / name for name in reversed(records.FILES))]
    return [file for file in files if stat.S_ISREG(_mode(file) or 0)]


def _remove(files) -> None:
    for file in files:
        file.unlink()


def _move(files, source: Path, target: Path) -> None:
    """Move files to another folder; of those that it has already, run.json alone."""
    for file in files:
        new = target / file.relative_to(source)
        if file.name == records.RUN or _mode(new) is None:
            new.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, new)


def _remove_folders(run: Path) -> None:
    """Remove the folders of a run's folds, and of the run that it replaces, if nothing else is in them."""
    for folder in _folds(run):
        remove_temporaries(folder, FOLD.fullmatch)
    for folder in (*_folds(run), run / records.PARTS, run / records.EARLIER):
        with contextlib.suppress(OSError):
            folder.rmdir()


@dataclass(frozen=True)
class Progress:
    """How far a run has come: one line of ``progress.partial`` for each step on disk.

    A line ends in a check of its own text and of the run, so that lines of another run are recognised.
    """

    steps: int = 0
    table_bytes: int = 0  # of the step table, including its opening
    table_sha256: str = NONE  # of these bytes
    # coefficient_bytes, coefficient_sha256: the same of the coefficients, if any
    coefficient_bytes: int = 0
    coefficient_sha256: str = NONE

    def line(self, run: str) -> bytes:
        """Return the line for ``run``, a :func:`run_key`."""
        text = f"{self.steps} {self.table_bytes} {self.table_sha256} {self.coefficient_bytes} {self.coefficient_sha256}"
        return f"{text} {_check(text.encode(), run)}\n".encode()

    @classmethod
    def of_line(cls, line: bytes, run: str) -> Progress | None:
        """Undo :meth:`line`; None for anything else."""
        found = LINE.fullmatch(line)
        if not found or found[6].decode() != _check(line[: found.start(6) - 1], run):
            return None
        steps, table, table_hash, coefficients, coefficient_hash, _ = (part.decode() for part in found.groups())
        return cls(int(steps), int(table), table_hash, int(coefficients), coefficient_hash)

    @classmethod
    def last(cls, text: bytes, run: str) -> Progress | None:
        """Return the last whole line; nothing done if there is none, None if it is damaged."""
        lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)
        return cls.of_line(lines[-1], run) if lines else cls()


def _check(text: bytes, run: str) -> str:
    return hashlib.sha256(text + b" " + run.encode()).hexdigest()[:CHECK]
