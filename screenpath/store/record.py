"""run.json and the step table: the names of a run folder's files, the seal of the record, and the checks of both.

Since schema version 2 the record holds the SHA-256 of every finished file (``files``) and of its own content
(``sha256``, last). Version 1 had neither: its folders are read with the plain checks alone.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
from functools import partial
from pathlib import Path

from screenpath.catalogue.option import part_numbers
from screenpath.catalogue.scores import CONFUSION, SCORES
from screenpath.data.files.dataset import is_form
from screenpath.data.safe import values as kinds
from screenpath.data.safe.atomic import prefix_sha256
from screenpath.data.words.labels import are_labels
from screenpath.errors import RunFolderError, UsageError
from screenpath.walk import step as steps

SCHEMA_VERSION = 2
UNSEALED = 1  # the last schema version without hashes
RUN = "run.json"
OURS, HEAD = b'"screenpath"', 200  # what tells ours from those of other programs, within that many bytes
RUNNING, COMPLETE, TIME_LIMIT, INTERRUPTED, FAILED = "running", "complete", "time-limit", "interrupted", "failed"
EMPTIED = "emptied"  # its run is being replaced; the rest is not a run
STATUSES = (RUNNING, COMPLETE, TIME_LIMIT, INTERRUPTED, FAILED, EMPTIED)

# Files of a finished run, further files of one in progress, and its folder of folds.
FOLDS_FILE, ROWS_FILE = "folds.bin", "rows.npz"
OUTPUTS = (
    "steps.csv", "steps.json", "coefficients.csv", "certificate.bin", "coefficients.npz", "cv.csv", "cv.json",
    "folds.csv", "bounds.csv", "gammas.csv", "steps.parquet", FOLDS_FILE, ROWS_FILE,
)  # fmt: skip
CHECKPOINT, PROGRESS, RECORDS, PARTS = "checkpoint.npz", "progress.partial", "coefficients.npz.records", "parts.partial"
EARLIER = "earlier.partial"  # the run that `force` replaces, until the new one is complete
FILES = (RUN, *OUTPUTS, *(f"{name}.partial" for name in (*OUTPUTS[:4], RECORDS)), CHECKPOINT, PROGRESS)

SCALINGS = ("none", "maxabs", "standard", "l2")
KERNELS = ("linear", "poly", "rbf", "laplacian", "precomputed")


def damaged(what, why: str | Exception) -> RunFolderError:
    if isinstance(why, PermissionError):
        return RunFolderError(f"{what} cannot be read: {why.strerror}", "ask for the right to read it")
    why = getattr(why, "strerror", None) or str(why)
    return RunFolderError(f"{what} is damaged: {why}", "compute the path again with `force`, or restore the folder")


# -- hashes ----------------------------------------------------------------------------------------------------------


def digest(value) -> str:
    """Return the SHA-256 of a JSON value, independent of the order of entries and of blanks."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def sealed(record: dict) -> dict:
    """Return a record (plain JSON values) with the hash of its own content as the last entry."""
    return {**record, "sha256": digest(record)}


def file_entry(file: Path) -> dict:
    with open(file, "rb") as stream:
        found, size = prefix_sha256(stream.fileno(), os.fstat(stream.fileno()).st_size)
    return {"bytes": size, "sha256": found.hexdigest()}


def check_files(path: Path, record: dict) -> None:
    """Check that the finished files are those of run.json; one that is missing, as a large table may be, is no error.
    """
    for name, entry in record.get("files", {}).items():
        file = path / name
        try:
            same = not file.exists() or (file.is_file() and file_entry(file) == entry)
        except OSError as error:
            raise damaged(file, error) from None
        if not same:
            raise damaged(file, f"it is not the file that {RUN} was written with (its hash differs)")


# -- reading ---------------------------------------------------------------------------------------------------------


def strict_json(data: bytes):
    """Return a JSON value; nan, infinity, numbers beyond float64 and endless nesting raise ValueError."""

    def refuse(word):
        raise ValueError(f"{word} is not a number")

    def number(text):
        value = float(text)
        return value if math.isfinite(value) else refuse(text[:40])

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_record(path: Path) -> dict:
    """Return the checked content of the run.json of a folder; FileNotFoundError if there is none."""
    file = path / RUN
    try:
        record = strict_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(str(file)) from None
    except (OSError, ValueError) as error:
        raise damaged(file, error) from None
    version = record.get("schema_version") if isinstance(record, dict) else None
    if not kinds.is_whole(1)(version):
        raise damaged(file, "there is no schema_version")
    if version > SCHEMA_VERSION:
        what = f"{file} has schema version {version}; this program knows up to {SCHEMA_VERSION}"
        raise RunFolderError(what, "use the version of screenpath that wrote it, or a newer one")
    if version > UNSEALED or "sha256" in record:
        _check_seal(file, record)
    _check_entries(file, record)
    return record


def _check_seal(file: Path, record: dict) -> None:
    content = {name: value for name, value in record.items() if name != "sha256"}
    if record.get("sha256") != digest(content):
        raise damaged(file, "it was changed after it was written (its hash differs)")
    files = record.get("files")
    good = isinstance(files, dict) and all(
        name in OUTPUTS and kinds.has({"bytes": kinds.is_whole(0), "sha256": kinds.is_text})(entry)
        for name, entry in files.items()
    )
    if not good:
        raise damaged(file, "files is not a list of hashes")


def run_folders(folder: Path) -> list[Path]:
    """Return the run folders up to two levels below a folder, the newest first; it is an error if there is none."""
    found = {}
    for file in (*folder.glob(RUN), *folder.glob(f"*/{RUN}"), *folder.glob(f"*/*/{RUN}")):
        with contextlib.suppress(OSError), open(file, "rb") as stream:  # one that is gone or closed to us
            if OURS in stream.read(HEAD):
                found[file.parent] = os.fstat(stream.fileno()).st_mtime_ns
    if not found:
        what = f"there is no run folder in {folder.resolve()}"
        raise UsageError(what, "name one, or compute one: screenpath svm DATA")
    return sorted(found, key=lambda path: (-found[path], path))


# -- allowed entries -------------------------------------------------------------------------------------------------


def _entries(*pairs: tuple) -> dict:
    """Return the tests of entries by name, from pairs of a test and the names that it is of."""
    return {name: good for good, names in pairs for name in names.split()}


NEEDED = _entries(
    (kinds.is_mapping, "data preparation options"), (kinds.are_names, "parameters columns"), (kinds.is_text, "model"),
    (kinds.one_of(STATUSES), "status"), (kinds.is_whole(1), "data.n_features"),
)  # fmt: skip
POSSIBLE = _entries(
    (kinds.is_mapping, "kernel versions totals identity files test totals.seconds between"),
    (kinds.are_words, "command data.feature_names data.label_names options.class_weight"),
    (kinds.is_text, "data.path data.sha256 data.storage test.path test.sha256 options.weights"),
    (kinds.is_whole(1), "data.n_samples test.n_samples kernel.degree"),
    (kinds.is_whole(0), "data.nnz options.seed totals.n_steps totals.steps_done totals.certified totals.unsafe"),
    (kinds.is_whole(0), "totals.unaudited kernel.rows_kept kernel.bytes"),
    (kinds.is_flag, "folds_certified options.zero_based options.audit"),
    (kinds.is_number, "preparation.bias options.tol"),
    (kinds.are_numbers, "preparation.shift preparation.fill"),
    (kinds.list_of(kinds.is_positive), "preparation.scale"), (kinds.is_positive, "kernel.gamma"),
    (kinds.is_at_least_0, "kernel.coef0 kernel.constant between.from between.to between.C between.tau"),
    (kinds.is_at_least_0, "between.epsilon between.worst_rel_gap"),
    (kinds.is_rule, "options.rule options.solver"), (kinds.is_label, "options.positive"),
    (kinds.list_of(kinds.is_whole(1)), "preparation.features"), (is_form, "data.table"),
    (kinds.one_of(SCALINGS), "preparation.scaling"), (kinds.one_of(KERNELS), "kernel.kernel"),
    (lambda value: kinds.is_text(value) and part_numbers(value) is not None, "options.part"),
    (lambda value: kinds.is_mapping(value) and all(map(kinds.is_number, value.values())), "test.baselines"),
)  # fmt: skip


def _check_entries(file: Path, record: dict) -> None:
    data = record.get("data")
    names = data.get("label_names") if isinstance(data, dict) else None
    names = names if isinstance(names, list) else None
    for name, there in kinds.wrong_entries(record, NEEDED, {**POSSIBLE, "labels": partial(are_labels, names=names)}):
        if there:
            raise damaged(file, f"the entry {name} has the wrong type or value")
        if record.get("status") != EMPTIED:
            raise damaged(file, f"there is no {name}")
    if record["status"] != EMPTIED:
        _check_together(file, record)


def _check_together(file: Path, record: dict) -> None:
    columns = record["columns"]
    lost = [name for name in ("step", "status", "primal", "nnz_w", *record["parameters"]) if name not in columns]
    if lost:
        raise damaged(file, f"there is no column {lost[0]}")
    for name in columns:
        score = name.removeprefix("test_").removeprefix("cv_").removesuffix("_se").replace("_", "-")
        if name.startswith(("test_", "cv_")) and score not in SCORES:
            raise damaged(file, f"the column {name} is no score")
    features, width = record["preparation"].get("features"), record["data"]["n_features"]
    names = record["data"].get("feature_names")
    if names is not None and len(names) != width:
        raise damaged(file, "data.feature_names are those of another number of features")
    if features is not None:
        if not features or features[-1] > width or any(a >= b for a, b in zip(features, features[1:], strict=False)):
            raise damaged(file, "preparation.features are not among the features of the data, in their order")
        width = len(features)
    for name in ("scale", "shift", "fill"):
        if name not in record["preparation"] and name != "fill":
            raise damaged(file, f"there is no preparation.{name}")
        values = record["preparation"].get(name)
        if values is not None and len(values) != width:
            raise damaged(file, f"preparation.{name} has {len(values)} values for another number of features")
    if record.get("kernel") is not None:
        needed = [("data", name) for name in ("n_samples", "path", "sha256", "storage")]
        needed += [("kernel", "kernel"), ("kernel", "constant"), ("preparation", "scaling")]
        needed += [] if record["kernel"].get("rows_kept") is None else [("kernel", "bytes")]
        lost = [f"{a}.{b}" for a, b in needed if record[a].get(b) is None]
        if lost:
            raise damaged(file, f"there is no {lost[0]}")


# -- the step table ---------------------------------------------------------------------------------------------------

# Columns of the step table that hold text, and the words of its column ``status``.
WORDS = ("status", "solver", "reason", "iss_found", "ifs_found", CONFUSION)
STEP_STATUSES = (steps.CERTIFIED, steps.BUDGET, steps.ROUNDING, steps.SKIPPED, steps.FAILED)


def read_steps(file: Path, size: int, record: dict) -> list:
    """Return the rows of a step table, numbers as numbers; missing values are None.

    ``size`` bytes belong to the steps; a ``.partial`` table may lack its end. ``record`` is the checked run.json.
    """
    try:
        data = file.read_bytes()
        open_ended = file.suffix == ".partial" or size < len(data)
        text = data[:size].decode("utf-8")
        rows = _json_rows(text, open_ended) if ".json" in file.name else _csv_rows(text, open_ended)
        found = [{column: _cell(column, row[column]) for column in record["columns"]} for row in rows]
        for row in found:
            _check_row(row, record["parameters"])
    except (ValueError, KeyError, TypeError, OverflowError, OSError, csv.Error) as error:
        raise damaged(file, error if not isinstance(error, KeyError) else f"no column {error}") from None
    if [row["step"] for row in found] != list(range(len(found))):
        raise damaged(file, "the steps are not numbered 0, 1, ...")
    return found


def _csv_rows(text: str, open_ended: bool) -> list:
    if open_ended:  # the last line may be incomplete
        text = text[: text.rfind("\n") + 1]
    rows = list(csv.DictReader(io.StringIO(text), strict=True))
    if any(None in row or None in row.values() for row in rows):
        raise ValueError("a line has the wrong number of fields")
    return rows


def _json_rows(text: str, open_ended: bool) -> list:
    try:
        found = strict_json((text + "\n]}" * open_ended).encode())["steps"]
    except ValueError:
        if not open_ended:
            raise
        found = strict_json((text[: text.rfind("\n")].rstrip(",") + "\n]}").encode())["steps"]  # its last is incomplete
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


def _check_row(row: dict, parameters: list) -> None:
    if row["status"] not in STEP_STATUSES:
        raise ValueError("a status is none that a step can have")
    if any(row[name] is None for name in ("step", *parameters)):
        raise ValueError("a step has no number or no parameter")
    if row["primal"] is not None and row["status"] == steps.SKIPPED:
        raise ValueError("a skipped step has a solution")
    if not all(count.isdecimal() for count in (row.get(CONFUSION) or "0").split(" ")):
        raise ValueError("a confusion table is none of whole numbers")
