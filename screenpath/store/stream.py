"""The step table on stdout: one line a step, as soon as it is done."""

from __future__ import annotations

from screenpath.data.words.tables import CsvTable, JsonLines
from screenpath.errors import failures_named


class Stream:
    """Sink of a path without a run folder; methods are those of ``RunFolder``; ``json`` is one object a line."""

    def __init__(self, file, format: str, columns):
        self.file = file
        self.table = (CsvTable if format == "csv" else JsonLines)(columns)
        self.count = 0

    def clear(self) -> None:
        """A stream holds nothing of earlier runs."""

    def open(
        self, columns, n_features, checkpoint=None, classes=None, unit="feature", numbers=None, names=None
    ) -> None:  # fmt: skip
        """Write the header."""
        self._write(self.table.opening())

    def write_run(self, record: dict) -> None:
        """A stream has no place for run.json."""

    def add(self, row: dict, coefficients=None) -> None:
        """Write a step; a stream has no place for coefficients."""
        self._write(self.table.record(row, first=self.count == 0))
        self.count += 1

    def due(self) -> bool:
        """A stream cannot be resumed, so no checkpoint is ever due."""
        return False

    def checkpoint(self, state: dict, tally) -> None:
        """A stream cannot be resumed."""

    def finish(self, record: dict, skipped) -> None:
        """Write the steps that were not reached."""
        for row in skipped:
            self.add(row)
        self._write(self.table.closing())

    def fail(self, record: dict) -> None:
        """What was written stays; there is nothing to complete."""

    def close(self) -> None:
        """Nothing to let go of: stdout belongs to the caller."""

    def _write(self, text: str) -> None:
        with failures_named("standard output"):
            self.file.write(text)
            self.file.flush()
