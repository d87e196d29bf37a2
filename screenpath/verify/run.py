"""What else a run folder says, compared with the certificate that was checked: run.json, step table, coefficients."""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np

from screenpath.errors import RunFolderError
from screenpath.verify.file import CERTIFIED, PARAMETERS

OPTIONS = ("tol", "tau", "epsilon", "smoothing", "scaling", "bias")  # of the problem, named alike in run.json
INTERCEPT = 1e-9  # relative; an intercept is a sum, of which the order is not known here
UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, zipfile.BadZipFile)
UNSEALED = 1  # the last schema version of run.json without hashes
CHUNK = 1 << 20


def read_record(folder: Path) -> dict:
    """Return run.json."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        (
            record["data"]["path"],
            record["options"]["coefficients"],
            record["data"]["sha256"],
            record["preparation"]["bias"],
            [entry["sha256"] for entry in record.get("files", {}).values()],
        )
        return record
    except UNREADABLE as error:
        raise _damaged(folder / "run.json", error) from None


def differences(folder: Path, record: dict, header: dict, steps: list, solutions: dict) -> list:
    """Return (step or None, what differs) for all that the run folder says otherwise than its certificate."""
    run = {**record["options"], **record["preparation"]}
    other = [name for name in OPTIONS if name in header and run.get(name) != header[name]]
    other += [name for name in ("model", "labels") if record.get(name) != header[name]]
    other += ["intercept"] if (run.get("intercept") == "free") != (header.get("intercept") == "free") else []
    other += ["loss"] if run.get("loss", "hinge") != header.get("loss", "hinge") else []
    kernel = record.get("kernel") or {}
    other += [f"{name} of the kernel" for name, value in header.get("kernel", {}).items() if kernel.get(name) != value]
    other += ["data"] if record["data"]["sha256"] != header["data"]["sha256"] else []
    found = [(None, f"run.json has another {name} than the certificate") for name in other]
    found += [(None, f"{name} is not what the run wrote (its hash differs)") for name in _changed(folder, record)]
    table = _table(folder)
    if len(table) != len(steps):
        return [*found, (None, f"the step table has {len(table)} steps, the certificate {len(steps)}")]
    for row, entry in zip(table, steps, strict=True):
        names = ("status", *PARAMETERS, "primal", "gap") if entry["status"] == CERTIFIED else ("status",)
        for name in names:
            if name in entry and str(row.get(name)) != str(entry[name]):
                found.append((entry["step"], f"the step table says {name} {row.get(name)}, certified is {entry[name]}"))
    if record["options"]["coefficients"] != "none":
        found += _coefficients(folder, header, len(steps), solutions)
    return found


def _changed(folder: Path, record: dict) -> list:
    """Return the names of the files that are not those of the hashes in run.json, itself among them.

    A file that is not there is left to whoever needs it. Runs of schema version 1 have no hashes.
    """
    content = {name: value for name, value in record.items() if name != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    found = []
    if record.get("schema_version", UNSEALED) != UNSEALED or "sha256" in record:
        found += ["run.json"] if record.get("sha256") != hashlib.sha256(text.encode()).hexdigest() else []
    for name, entry in record.get("files", {}).items():
        file = folder / name
        try:
            if file.exists() and (file.parent != folder or _sha256(file) != entry["sha256"]):
                found.append(name)
        except UNREADABLE as error:
            raise _damaged(file, error) from None
    return found


def _sha256(file: Path) -> str:
    found = hashlib.sha256()
    with open(file, "rb") as stream:
        while data := stream.read(CHUNK):
            found.update(data)
    return found.hexdigest()


def _table(folder: Path) -> list:
    file = folder / "steps.json"
    try:
        if file.exists():
            return json.loads(file.read_text(encoding="utf-8"))["steps"]
        file = folder / "steps.csv"
        with open(file, newline="", encoding="utf-8") as text:
            return list(csv.DictReader(text))
    except UNREADABLE as error:
        raise _damaged(file, error) from None


def _coefficients(folder: Path, header: dict, n_steps: int, solutions: dict) -> list:
    """Compare the coefficients with the solutions that were checked, scaled back; a kernel's belong to samples."""
    of_samples, found = "kernel" in header, []
    written = _written(folder, _cells(header))
    unit, d = ("sample", header["data"]["n_samples"]) if of_samples else ("feature", header["data"]["n_features"])
    for (step, _), (features, _) in written.items():  # of steps that claim nothing too: no reader could tell which
        if not 0 <= step < n_steps:
            found.append((None, f"there are coefficients of a step {step}, which the path does not have"))
        elif np.unique(features).size != len(features):
            found.append((step, f"a {unit} has more than one coefficient"))
    if "columns" in header and not of_samples:
        numbers, d = np.append(0, header["columns"] + 1), header["columns"].size
    else:
        numbers = np.arange(1 + d)
    for step, block, solution in (
        (step, block, one) for step, several in solutions.items() for block, one in enumerate(np.atleast_2d(several))
    ):
        expected, parts = np.zeros(1 + d), []
        expected[1:] = solution[:d]
        if of_samples:
            parts += solution[d:].tolist()
        else:
            expected[1:] /= header.get("scale", 1.0)
            parts += [solution[d] * header["bias"]] if header["bias"] else []
            parts += (-expected[1:] * header["shift"]).tolist() if "shift" in header else []
        expected[0] = sum(parts)
        features, values = written.get((step, block), ((), ()))
        got = np.zeros(1 + d)
        places = np.minimum(np.searchsorted(numbers, np.asarray(features, dtype=np.int64)), d)
        if np.any(numbers[places] != features):
            found.append((step, f"a {unit} that the data does not have has a coefficient"))
            continue
        got[places] = values
        different = np.flatnonzero(got != expected)
        if abs(got[0] - expected[0]) <= INTERCEPT * sum(map(abs, parts)):
            different = different[different != 0]
        if different.size:
            j = different[0]
            name = f"{unit} {numbers[j]}"
            found.append((step, f"{name} has the coefficient {got[j]!r}, certified is {expected[j]!r}"))
    return found


def _cells(header: dict) -> dict:
    """Return the number of the class for each cell that may name it; empty where the coefficients are of no class."""
    labels = (header["labels"] or {}).get("classes", [])
    names = header["data"].get("label_names")
    found = {repr(float(label if names is None else names.index(label))): k for k, label in enumerate(labels)}
    if names is not None:
        found = {**{" ".join(label.split()): k for k, label in enumerate(labels)}, **found}
    return found


def _written(folder: Path, cells: dict) -> dict:
    """Return features and values of the coefficients by step and number of the class, which is 0 where there is one."""
    file = folder / "coefficients.npz"
    try:
        if file.exists():
            with np.load(file, allow_pickle=False) as stored:
                edges = stored["indptr"]
                parts = [(stored["indices"][a:b], stored["data"][a:b]) for a, b in zip(edges, edges[1:], strict=False)]
            blocks = max(len(set(cells.values())), 1)
            return {divmod(row, blocks): part for row, part in enumerate(parts)}
        file = folder / "coefficients.csv"
        found: dict[tuple[int, int], tuple[list[int], list[float]]] = {}
        with open(file, newline="", encoding="utf-8") as text:
            for step, *cell, feature, value in (line[: 4 if cells else 3] for line in list(csv.reader(text))[1:]):
                block = cells[cell[0]] if cells else 0  # a name may follow
                features, values = found.setdefault((int(step), block), ([], []))
                features.append(int(feature))
                values.append(float(value))
        return found
    except UNREADABLE as error:
        raise _damaged(file, error) from None


def _damaged(file: Path, error: Exception) -> RunFolderError:
    again = "compute the path again with `certificate` and `force`"
    if isinstance(error, FileNotFoundError):
        return RunFolderError(
            f"{file.parent} has lost its {file.name}", f"copy it from where the run was made, or {again}"
        )
    return RunFolderError(f"{file} is damaged: {error}", again)
