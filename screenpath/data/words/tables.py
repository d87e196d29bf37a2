"""The step table as text: CSV or JSON, one line per step, floats with all their digits; the time of day for logs;
machine and versions for records.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import os
import re
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from screenpath import __version__
from screenpath.errors import RunFolderError, UsageError

SCHEMA_VERSION = 1
PLAIN = {str, int, bool, type(None)}  # types of values that JSON has as they are


def finite(value):
    """Return a value, also nested, as JSON has it: nan and infinities are None, labels with names their names."""
    kind = type(value)
    if kind is float:  # most cells of a table
        return value if math.isfinite(value) else None
    if kind in PLAIN:
        return value
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return getattr(value, "name", value) if isinstance(value, float) else value


def dump_json(value) -> str:
    return json.dumps(finite(value), allow_nan=False, ensure_ascii=False)


def short_json(value) -> str:
    text = dump_json(value)
    return text if len(text) <= 60 else text[:57] + "..."


def readable_json(value: dict, levels: int = 2, indent: str = "") -> str:
    """Return JSON text with one line per entry, down to the given level; long arrays stay on one line."""
    if levels == 0 or not isinstance(value, dict) or not value:
        return dump_json(value)
    inner = indent + "  "
    lines = [f"{inner}{dump_json(key)}: {readable_json(item, levels - 1, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


class CsvTable:
    """Step table with a header line; missing values are empty fields."""

    suffix = ".csv"

    def __init__(self, columns):
        self.columns = tuple(columns)

    def opening(self) -> str:
        return csv_text(self.columns, ())

    def record(self, row: dict, first: bool) -> str:
        """Return the text of one record; columns missing in ``row`` stay empty, or null."""
        return csv_text([_cell(row.get(name)) for name in self.columns], ())

    def closing(self) -> str:
        return ""


class JsonTable(CsvTable):
    """Step table as one JSON document ``{"schema_version": 1, "steps": [...]}`` with one record per line."""

    suffix = ".json"

    def opening(self) -> str:
        return f'{{"schema_version": {SCHEMA_VERSION}, "steps": ['

    def record(self, row: dict, first: bool) -> str:
        return ("\n" if first else ",\n") + dump_json({name: row.get(name) for name in self.columns})

    def closing(self) -> str:
        return "\n]}\n"


class JsonLines(CsvTable):
    """Step table as JSON lines, for a stream."""

    def opening(self) -> str:
        return ""

    def record(self, row: dict, first: bool) -> str:
        return dump_json({name: row.get(name) for name in self.columns}) + "\n"


def csv_text(columns, rows) -> str:
    """Return a whole table, rows of values, as the lines of :class:`CsvTable`."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([columns, *(map(_cell, row) for row in rows)])
    return out.getvalue()


def _cell(value):
    value = finite(value)
    return "" if value is None else repr(value) if isinstance(value, float) else value


def aligned(rows: list, left: int = 0) -> list[str]:
    """Return the lines of a table of texts; the first ``left`` columns begin, the others end at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    forms = "  ".join(f"{{:{'<' if k < left else '>'}{width}}}" for k, width in enumerate(widths))
    return [forms.format(*row).rstrip() for row in rows]


def need_parquet() -> None:
    """Check, before anything is computed, that tables can be written as Parquet."""
    if find_spec("pyarrow") is None:
        raise UsageError("`format=parquet` needs pyarrow", "pip install 'screenpath[parquet]', or use csv")


def parquet_of(text: str, texts: Sequence[str] = ()) -> bytes:
    """Return CSV text as Parquet: column types are inferred but for columns of ``texts``; empty fields are null."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow.csv
    import pyarrow.parquet

    how = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True, null_values=[""], true_values=[], false_values=[],
        column_types=dict.fromkeys(texts, pyarrow.string()),
    )  # fmt: skip
    with ThreadPoolExecutor(1) as pool:  # in the main thread pyarrow would take a signal, and cancel what is held
        table = pool.submit(pyarrow.csv.read_csv, io.BytesIO(text.encode()), convert_options=how).result()
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def check_same(path: Path, before: dict, now: dict, usual: dict | None = None) -> None:
    """Check that a resumed run was started with the same settings; the error lists all :func:`differences`."""
    parts = differences(before, now, usual)
    if parts:
        then = "bring back files and options" if any(part.startswith(OTHER) for part in parts) else "repeat the command"
        said = [re.sub(f"^{OTHER}(.*)", r"the \1 have changed since", part) for part in parts]
        hint = f"{then} of the first run with `resume`, or start again with `force`"
        raise RunFolderError(f"cannot resume {path}: " + "; ".join(said), hint)


OTHER = "other "  # begins what is said where the hashes of two contents differ
CONTENTS = {  # their names, else as the key
    "penalty": "penalty weights", "test": "test data", "names": "names of columns or labels",
    "folds": "folds (`fold_seed`, `stratify` or their file)", "rule": "lines of the rule's file",
    "solver": "lines of the solver's file",
}  # fmt: skip


def differences(before: dict, now: dict, usual: dict | None = None) -> list[str]:
    """Return the settings in which two runs differ, with both values; of files, and of folds, that they are others.

    ``usual`` are the values of settings that are not given.
    """
    now = json.loads(dump_json(now))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if {"data_sha256", "folds", "repeats"} & set(names):  # which decide what the folds are
        names = [name for name in names if name != "folds_sha256"]
    hashed = {name: name.removesuffix("_sha256") for name in names if name.endswith("_sha256")}
    return [
        f"{OTHER}{CONTENTS.get(hashed[name], hashed[name])}" if name in hashed
        else f"{name} was {_short(before.get(name), name, usual)}, now {_short(now.get(name), name, usual)}"
        for name in names
    ]  # fmt: skip


def _short(value, name: str, usual: dict | None) -> str:
    if value is None:
        default = (usual or {}).get(name)
        default = f"{default:g}" if isinstance(default, float) else default
        return "not given" if default is None else f"not given (default {default})"
    return short_json(value)


def circumstances() -> dict:
    """Return machine, processors (all, and those allowed to this process) and working directory, for run.json."""
    import platform  # which takes long to import

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = {"system": f"{platform.system()} {platform.release()}", "architecture": platform.machine()}
    machine = {"name": platform.node(), **kind, "processors": os.cpu_count(), "processors_allowed": allowed}
    return {"machine": machine, "working_directory": os.getcwd()}


@functools.cache  # a run reads three files for them
def versions() -> dict:
    import platform
    from importlib.metadata import version

    names = ("numpy", "scipy", "numba")
    return {"screenpath": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def now() -> str:
    """Return the time of day with its offset from UTC: ``2026-03-01T12:00:00.123+01:00``."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def clock() -> str:
    """Return ``12:00:00``."""
    return datetime.now().strftime("%H:%M:%S")
