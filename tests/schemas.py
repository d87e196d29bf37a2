"""What a file of screenpath has to look like, by the schemas that others may rely on (folder ``schemas``)."""

from __future__ import annotations

import csv
import functools
import io
import json
from pathlib import Path

import pytest

from screenpath.store.folder import RunFolder

FOLDER = Path(__file__).resolve().parents[1] / "schemas"
KINDS = {"integer": int, "number": float, "string": str}


@functools.cache
def validator(name: str):
    """Return the validator of a JSON schema; the test is skipped where there is none to make it."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    kind = jsonschema.Draft202012Validator
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    kind.check_schema(schema)
    return kind(schema)


def faults(name: str, value) -> list[str]:
    """Return what a JSON value has that its schema does not allow."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(value)]


def table_faults(name: str, text: str) -> list[str]:
    """Return what a CSV table has that its table schema does not allow."""
    schema = json.loads((FOLDER / f"{name}.table.json").read_text())
    head, *rows = csv.reader(io.StringIO(text))
    found, known = [], {field["name"]: field for field in schema["fields"]}
    if schema["fieldsMatch"] == "subset":
        found += [f"no column {field}" for field in known if field not in head]
    for number, row in enumerate(rows, 1):
        if len(row) != len(head):
            found.append(f"row {number}: {len(row)} cells in {len(head)} columns")
        for column, cell in zip(head, row, strict=False):
            if column in known:
                found += [f"row {number}, {column}: {fault}" for fault in _cell_faults(known[column], schema, cell)]
    for key in schema.get("primaryKey", ()):
        cells = [row[head.index(key)] for row in rows] if key in head else []
        found += [f"{key} is not unique"] * (len(set(cells)) < len(cells))
    return found


def _cell_faults(field: dict, schema: dict, cell: str) -> list[str]:
    bounds = field.get("constraints", {})
    if cell in schema["missingValues"]:
        return ["is missing"] if bounds.get("required") else []
    try:
        value = KINDS[field["type"]](cell)
    except ValueError:
        return [f"{cell!r} is no {field['type']}"]
    wrong = value not in bounds.get("enum", [value]) or value < bounds.get("minimum", value)
    return [f"{cell!r} is not allowed"] if wrong else []


def folder_faults(folder: Path) -> list[str]:
    """Return what the files of a run folder have that the schemas do not allow."""
    found = []
    for name in ("run", "cv", "steps"):
        file = folder / f"{name}.json"
        if file.exists() and not file.is_symlink():  # links are somebody else's, and are not followed
            found += [f"{file.name}: {fault}" for fault in faults(name, json.loads(file.read_text("utf-8")))]
    if (folder / "steps.csv").exists():
        found += table_faults("steps", (folder / "steps.csv").read_text("utf-8"))
    return found


def watched(monkeypatch) -> None:
    """Check every run folder that is finished in this process while the patch lasts."""
    real = RunFolder.finish

    def finish(self, *arguments, **named):
        real(self, *arguments, **named)
        assert folder_faults(self.path) == []

    monkeypatch.setattr(RunFolder, "finish", finish)
