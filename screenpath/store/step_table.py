"""Read the step table of a run folder."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from screenpath.store.record import damaged, strict_json
from screenpath.walk.step import BUDGET, CERTIFIED, FAILED, ROUNDING, SKIPPED

WORDS = ("status", "solver", "reason", "iss_found", "ifs_found")  # columns that hold text
STATUSES = (CERTIFIED, BUDGET, ROUNDING, SKIPPED, FAILED)


def read_steps(file: Path, size: int, record: dict) -> list:
    """Return the rows of a step table, numbers as numbers; missing values are None.

    ``size`` bytes belong to the steps; a ``.partial`` table may lack its end. ``record`` is the checked run.json.
    """
    try:
        data = file.read_bytes()
        open_ended = file.suffix == ".partial" or size < len(data)
        text = data[:size].decode("utf-8")
        rows = _json_rows(text, open_ended) if ".json" in file.name else _csv_rows(text, open_ended)
        steps = [{column: _cell(column, row[column]) for column in record["columns"]} for row in rows]
        for row in steps:
            _check(row, record["parameters"])
    except (ValueError, KeyError, TypeError, OverflowError, OSError, csv.Error) as error:
        raise damaged(file, f"{error}" if not isinstance(error, KeyError) else f"no column {error}") from None
    if [row["step"] for row in steps] != list(range(len(steps))):
        raise damaged(file, "the steps are not numbered 0, 1, ...")
    return steps


def _csv_rows(text: str, open_ended: bool) -> list:
    if open_ended:  # the last line may be incomplete
        text = text[: text.rfind("\n") + 1]
    rows = list(csv.DictReader(io.StringIO(text), strict=True))
    if any(None in row or None in row.values() for row in rows):
        raise ValueError("a line has the wrong number of fields")
    return rows


def _json_rows(text: str, open_ended: bool) -> list:
    if not open_ended:
        return _rows_in(text)
    try:
        return _rows_in(text + "\n]}")
    except ValueError:  # the last record may be incomplete
        whole = text[: text.rfind("\n")].rstrip(",")
        return _rows_in(whole + "\n]}")


def _rows_in(text: str) -> list:
    found = strict_json(text.encode())["steps"]
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ValueError("a row is no record")
    return found


def _cell(column: str, value):
    if value in (None, ""):
        return None
    if column in WORDS:
        if isinstance(value, str) and value.isprintable():
            return value
        raise ValueError(f"{column} is no text")
    number = value
    if isinstance(value, str):  # floats are written with a point or an exponent
        number = int(value) if column == "step" or value.removeprefix("-").isdecimal() else float(value)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise ValueError(f"{column} is not a finite number")
    return number


def _check(row: dict, parameters: list) -> None:
    if row["status"] not in STATUSES:
        raise ValueError("a status is none that a step can have")
    if any(row[name] is None for name in ("step", *parameters)):
        raise ValueError("a step has no number or no parameter")
    if row["primal"] is not None and row["status"] == SKIPPED:
        raise ValueError("a skipped step has a solution")
