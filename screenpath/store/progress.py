"""How far a run has come: one line of text for each step that is on disk.

A line ends in a check of its own text and of what stands for the run: lines of another run are none of this one's.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

CHECK = 16  # letters that tell a line from a damaged one
NONE = hashlib.sha256().hexdigest()  # of no bytes
LINE = re.compile(rb"([0-9]{1,18}) ([0-9]{1,18}) ([0-9a-f]{64}) ([0-9]{1,18}) ([0-9a-f]{64}) ([0-9a-f]{16})\n")


@dataclass(frozen=True)
class Progress:
    """Steps done, and what proves them."""

    steps: int = 0
    table_bytes: int = 0  # of the step table, its opening included
    table_sha256: str = NONE  # of these bytes
    # coefficient_bytes, coefficient_sha256: the same of the coefficients; nothing where none are written
    coefficient_bytes: int = 0
    coefficient_sha256: str = NONE

    def line(self, run: str) -> bytes:
        """Return the line of ``progress.partial``; ``run`` is what stands for the run (``write.folder.run_key``)."""
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
        """Return what the last whole line says; nothing done where there is no whole line, None where it is damaged."""
        lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)
        return cls.of_line(lines[-1], run) if lines else cls()


def _check(text: bytes, run: str) -> str:
    return hashlib.sha256(text + b" " + run.encode()).hexdigest()[:CHECK]
