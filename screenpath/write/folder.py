"""A run folder: run.json, the step table, the coefficients, and what it takes to resume."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.errors import RunFolderError
from screenpath.write.atomic import Appender, FolderLock, replacing
from screenpath.write.coefficients import open_coefficients, remove_coefficients, sparse_coefficients
from screenpath.write.tables import SCHEMA_VERSION, CsvTable, JsonTable, dump_json, readable_json

RUNNING, COMPLETE, TIME_LIMIT, INTERRUPTED, FAILED = "running", "complete", "time-limit", "interrupted", "failed"
PARTS = "parts.partial"  # folder within the run folder: what a run has made before its first step
EVERY = 1.0  # seconds between two checkpoints, each with one fsync a file


@dataclass(frozen=True)
class Checkpoint:
    """Where a path can continue.

    Parameters
    ----------
    steps : int
        Steps done.
    sizes : tuple of int
        Bytes of the step table and of the coefficients at that moment.
    tally : ndarray
        Totals so far (``report.tally.Tally.array``).
    state : dict
        Arrays of the reference certificate (``model.state``).
    """

    steps: int
    sizes: tuple
    tally: np.ndarray
    state: dict


class RunFolder:
    """Sink of a path.

    Parameters
    ----------
    path : Path
        Created if missing.
    format : {"csv", "json"}
    coefficients : {"csv", "npz", "none"}

    Raises
    ------
    RunFolderError
        If another process writes to the folder.
    """

    def __init__(self, path: Path, format: str, coefficients: str):
        self.path, self.format, self.kind = path, format, coefficients
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunFolderError(f"{path} is not a folder", "choose another one with --out") from None
        self._lock = FolderLock(path)
        self._table = self._steps = self._coefficients = None
        self._saved = time.monotonic()
        self.count = 0

    # -- what is there already -----------------------------------------------------------------------------------

    def previous(self) -> dict | None:
        """Return the run.json of an earlier run; None where there is none."""
        file = self.path / "run.json"
        if not file.exists():
            return None
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            record["status"], record["identity"], record["totals"]
        except (ValueError, KeyError, TypeError):
            raise RunFolderError(f"{file} is damaged", "start again with --force, or choose another --out") from None
        if record.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
            raise RunFolderError(
                f"{file} has schema version {record['schema_version']}; this program writes {SCHEMA_VERSION}",
                "use the program that wrote it, choose another --out, or start again with --force",
            )
        return record

    def refuse(self, previous: dict) -> None:
        """Explain that the folder holds a run already."""
        what = "a finished run" if previous["status"] == COMPLETE else f"a run that ended as '{previous['status']}'"
        raise RunFolderError(
            f"{self.path} holds {what} already",
            "use --resume to continue it, --force to replace it, or another --out",
        )

    def check_identity(self, previous: dict, identity: dict) -> None:
        """Make sure that resuming would give the same numbers.

        Raises
        ------
        RunFolderError
            Naming each option, the data or the version that differs.
        """
        check_same(self.path, previous["identity"], identity)

    def load_checkpoint(self) -> Checkpoint | None:
        """Return where the earlier run can continue; None if it has to start at the first step."""
        file = self.path / "checkpoint.npz"
        if not file.exists():
            return None
        try:
            with np.load(file, allow_pickle=False) as stored:
                content = {name: stored[name] for name in stored.files}
            steps, table, coefficients = (int(v) for v in content.pop("progress"))
            return Checkpoint(steps, (table, coefficients), content.pop("tally"), content)
        except (ValueError, KeyError, OSError, EOFError) as error:
            raise RunFolderError(f"{file} is damaged ({error})", "start again with --force") from None

    @property
    def parts(self) -> Path:
        """Return the folder for what is kept until the run is complete."""
        return self.path / PARTS

    def remove_parts(self) -> None:
        """Remove what nobody needs behind a complete run."""
        if self.parts.exists():
            shutil.rmtree(self.parts)

    def clear(self) -> None:
        """Remove an earlier run, its record first: what is left of it is then never taken for a run."""
        (self.path / "run.json").unlink(missing_ok=True)
        self.remove_parts()
        self._remove_files()

    # -- the run -------------------------------------------------------------------------------------------------

    def open(self, columns, n_features: int, checkpoint=None, classes=None, unit="feature") -> None:
        """Start writing, behind the checkpoint's steps or from nothing.

        Parameters
        ----------
        columns : sequence of str
            Of the step table.
        n_features : int
            Coefficients of a step without the intercept.
        checkpoint : Checkpoint, optional
        classes : list of float, optional
            Labels of a model that has weights for each of them.
        unit : {"feature", "sample"}
            What the coefficients belong to.
        """
        if checkpoint is None:
            self._remove_files()
        keep = checkpoint.sizes if checkpoint else (0, 0)
        self._table = (CsvTable if self.format == "csv" else JsonTable)(columns)
        self._steps = Appender(self.path / f"steps{self._table.suffix}", keep[0])
        self._coefficients = open_coefficients(self.kind, self.path, n_features, keep[1], classes, unit)
        if checkpoint is None:
            self._steps.append(self._table.opening().encode())
        else:
            self.count = checkpoint.steps

    def _remove_files(self):
        for name in ("steps.csv", "steps.json", "steps.csv.partial", "steps.json.partial", "checkpoint.npz"):
            (self.path / name).unlink(missing_ok=True)
        remove_coefficients(self.path)

    def write_run(self, record: dict) -> None:
        """Write run.json."""
        with replacing(self.path / "run.json") as file:
            file.write((readable_json(record) + "\n").encode())

    def add(self, row: dict, coefficients=None) -> None:
        """Append a step as soon as it is done.

        Parameters
        ----------
        row : dict
            Record of the step table.
        coefficients : tuple (ndarray, float, bool), optional
            Weights and intercept in the units of the data, and whether the model has an intercept; with several
            classes one row of weights and one intercept each.
        """
        if self._coefficients is not None and coefficients is not None:
            weights, intercepts, has_intercept = coefficients
            pairs = zip(np.atleast_2d(weights), np.atleast_1d(intercepts), strict=True)
            for block, (one, intercept) in enumerate(pairs):
                found = sparse_coefficients(one, float(intercept), has_intercept)
                self._coefficients.add(row["step"], *found, block)
        self._steps.append(self._table.record(row, first=self.count == 0).encode())
        self.count += 1

    def due(self) -> bool:
        """Tell whether the last checkpoint is a second old."""
        return time.monotonic() - self._saved >= EVERY

    def checkpoint(self, state: dict, tally: np.ndarray) -> None:
        """Write where the path can continue.

        Parameters
        ----------
        state : dict
            Arrays of the reference of the next step.
        tally : ndarray
            Totals so far.
        """
        sizes = [self._steps.size, self._coefficients.size if self._coefficients is not None else 0]
        self._steps.sync()
        if self._coefficients is not None:
            self._coefficients.sync()
        with replacing(self.path / "checkpoint.npz") as file:
            np.savez(file, progress=np.array([self.count, *sizes], dtype=np.int64), tally=tally, **state)
        self._saved = time.monotonic()

    def finish(self, record: dict, skipped) -> None:
        """Complete all files: rows for the steps that were not reached, final names, run.json last.

        Parameters
        ----------
        record : dict
            Content of run.json.
        skipped : iterable of dict
            Records of the steps that were not reached.
        """
        for row in skipped:
            self.add(row)
        self._steps.append(self._table.closing().encode())
        self._steps.complete()
        if self._coefficients is not None:
            self._coefficients.finish(self.count, record["status"] == COMPLETE)
        if record["status"] == COMPLETE:
            for name in ("checkpoint.npz", "checkpoint.npz.new"):  # the second is what a kill left
                (self.path / name).unlink(missing_ok=True)
        self.write_run(record)
        if record["status"] == COMPLETE:
            self.remove_parts()

    def fail(self, record: dict) -> None:
        """Note in run.json how the run ended. The finished steps stay under their partial names."""
        if self._steps is not None:
            self._steps.abandon()
        if self._coefficients is not None:
            self._coefficients.abandon()
        with contextlib.suppress(OSError):  # the disk may be what failed
            self.write_run(record)

    def close(self) -> None:
        """Let other processes use the folder."""
        self._lock.release()


def check_same(path: Path, before: dict, now: dict) -> None:
    """Make sure that what is resumed was begun alike.

    Raises
    ------
    RunFolderError
        Naming all that differs.
    """
    now = json.loads(dump_json(now))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if names:
        parts = [f"{name} was {_short(before.get(name))}, now {_short(now.get(name))}" for name in names]
        raise RunFolderError(
            f"cannot resume {path}: " + "; ".join(parts),
            "repeat the first run's command with --resume, or start again with --force",
        )


def _short(value) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
