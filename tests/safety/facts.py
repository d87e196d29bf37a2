"""Run folders in which one fact was changed, hashes and all: whatever is not named as not covered must be refused."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from pathlib import Path

import numpy as np

from screenpath.cli.app import run
from screenpath.errors import ScreenpathError
from screenpath.verify import verify_certificate
from screenpath.verify.problem import leaves
from tests.plain import words
from tests.run_folders import seal

# Options of the runs whose folders are changed; the first word besides the model is the name of the data.
RUNS = (
    ("svm", "two", "--scale", "standard", "--intercept", "free", "--grid", "4", "--cmin", "0.05", "--cmax", "2"),
    ("svm", "table", "--target", "t", "--one-hot", "g", "--scale", "standard", "--class-weight", "yes=2", "--weights",
     "weights", "--grid", "3", "--cmin", "0.05", "--cmax", "2"),
    ("svm", "two", "--kernel", "rbf", "--gamma", "1/d", "--bias", "1", "--c-list", "0.1,1,5"),
    ("svm", "two", "--eps-path", "0.2", "--cmin", "0.2", "--cmax", "2", "--format", "json"),
    ("svr", "targets", "--epsilon", "0.3", "--scale", "maxabs", "--grid", "3", "--cmin", "0.1", "--cmax", "1"),
    ("lad", "targets", "--c", "1", "--reference", "0.1", "--scale", "l2", "--bias", "0.5", "--coefficients", "none"),
    ("sparse-svm", "three", "--betas", "2", "--alphas", "2"),
    ("sparse-svm", "two", "--beta", "0.02", "--alphas", "3", "--weights", "weights", "--coefficients", "npz"),
    ("l1svm", "two", "--scale", "standard", "--class-weight", "balanced", "--grid", "3", "--log"),
    ("sparse-svm", "two", "--eps-path", "0.3"),
)  # fmt: skip


def make_folders(folder: Path, n: int = 24) -> list[Path]:
    """Compute a small run for each of :data:`RUNS`; return the folders."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(n, 3)) * [1.0, 3.0, 0.2] + [0.0, 5.0, 0.0], 3)
    for name, y in (
        ("two", np.where(np.arange(n) % 3 == 0, 1, 2)), ("three", 1 + np.arange(n) % 3),
        ("targets", np.round(X @ [1.0, -1.0, 2.0] + rng.normal(size=n), 3)),
    ):  # fmt: skip
        lines = [" ".join([str(t), *(f"{j}:{v}" for j, v in enumerate(row, 1))]) for t, row in zip(y, X, strict=True)]
        (folder / name).write_text("\n".join(lines) + "\n")
    rows = [f"{'yes' if k % 3 else 'no'},{','.join(map(str, X[k]))},{'uvw'[k % 4 % 3]}" for k in range(n)]
    (folder / "table").write_text("\n".join(["t,a,b,c,g", *rows]) + "\n")
    (folder / "weights").write_text("\n".join(str(round(0.5 + (k % 5) / 4, 2)) for k in range(n)) + "\n")
    found = []
    for k, (model, data, *options) in enumerate(RUNS):
        options = [str(folder / "weights") if one == "weights" else one for one in options]
        found.append(folder / f"run{k}")
        options += words(model, options)
        assert run([model, str(folder / data), *options, "--certificate", "--quiet", "-o", str(found[-1])]) == 0
    return found


def other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.001 * value if value else 0.5
    if isinstance(value, list) and value and isinstance(value[-1], float):
        return [*value[:-1], 1.001 * value[-1]]
    if isinstance(value, list) and value:
        # What stands in a list once may stand there twice and mean the same: columns to encode, for one.
        return [*value[1:], value[0]] if len(set(map(str, value))) > 1 else [other(value[0]), *value[1:]]
    return 7 if value is None else ["1=3"] if isinstance(value, list) else {"x": 1} if value == {} else f"{value}x"


def changed_records(folder: Path):
    """Yield name of the fact, and the record, for every fact of run.json changed alone, options as their copies are."""
    record = json.loads((folder / "run.json").read_text())
    for place, value in leaves({name: part for name, part in record.items() if name not in ("files", "sha256")}):
        forged = json.loads(json.dumps(record))
        # Around the worst C the bound is flat: a small change of it is none.
        _put(forged, place, 1.1 * value if place == ("between", "C") else other(value))
        if place[0] == "options" and place[1] in record["identity"]:
            _put(forged, ("identity", place[1]), other(value))
        yield f"run.json: {'.'.join(place)}", forged


def _put(record, place, value) -> None:
    for name in place[:-1]:
        record = record[name]
    record[place[-1]] = value


def changed_tables(folder: Path):
    """Yield name of the column, file and its text, for each column of the step table changed in the last step."""
    file = next(folder / name for name in ("steps.csv", "steps.json") if (folder / name).exists())
    if file.suffix == ".json":
        table = json.loads(file.read_text())
        for name, value in table["steps"][-1].items():
            rows = [*table["steps"][:-1], {**table["steps"][-1], name: other(value)}]
            yield f"step table: {name}", file, json.dumps({**table, "steps": rows})
        return
    head, *rows = csv.reader(io.StringIO(file.read_text()))
    for k, name in enumerate(head):
        cell = rows[-1][k]
        new = "x" if name in ("status", "solver", "reason", "iss_found", "ifs_found") else repr(other(float(cell or 1)))
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([head, *rows[:-1], [*rows[-1][:k], new, *rows[-1][k + 1 :]]])
        yield f"step table: {name}", file, out.getvalue()


def changed_coefficients(folder: Path):
    """Yield name, file and content for coefficients of which one was changed by little, dropped, or given a class."""
    file = folder / "coefficients.csv"
    if file.exists():
        head, *rows = csv.reader(io.StringIO(file.read_text()))
        place = head.index("value")
        some = [k for k, row in enumerate(rows) if float(row[place])]
        for k in (some[0], some[-1]):
            row, value = rows[k], float(rows[k][place])
            for new in (
                -value, value * (1.0 + 1e-8), math.nextafter(value, math.inf) if row[place - 1] != "0" else 9.0,
            ):  # fmt: skip
                forged = [*rows[:k], [*row[:place], repr(new), *row[place + 1 :]], *rows[k + 1 :]]
                yield "coefficients", file, "\n".join(",".join(one) for one in [head, *forged, []])
            yield "coefficients", file, "\n".join(",".join(one) for one in [head, *rows[:k], *rows[k + 1 :], []])
        if "name" in head:
            forged = [[*row[:-1], {"a": "b", "b": "a"}.get(row[-1], row[-1])] for row in rows]
            yield "coefficients", file, "\n".join(",".join(one) for one in [head, *forged, []])
    file = folder / "coefficients.npz"
    if file.exists():
        with np.load(file) as stored:
            arrays = dict(stored)
        for change in ({"data": arrays["data"] * (1.0 + 1e-15)}, {"indices": arrays["indices"][::-1]}):
            out = io.BytesIO()
            np.savez(out, **{**arrays, **change})
            yield "coefficients", file, out.getvalue()


def forged(folder: Path):
    """Yield name of the fact, name of the file and whatever writes it into a copy, for every fact of a folder."""
    record = json.loads((folder / "run.json").read_text())
    for name, other_record in changed_records(folder):
        yield name, lambda copy, r=other_record: seal(copy, r)
    for name, file, content in (*changed_tables(folder), *changed_coefficients(folder)):

        def write(copy, file=file, content=content):
            data = content if isinstance(content, bytes) else content.encode()
            (copy / file.name).write_bytes(data)
            seal(copy, json.loads(json.dumps(record)))

        yield name, write


def verdict(folder: Path) -> tuple[bool, list[str]]:
    try:
        found = verify_certificate(folder)
    except ScreenpathError:
        return False, []
    return found.holds, found.uncovered


def attack(folders: list[Path], work: Path, limit: int | None = None) -> dict:
    """Change every fact of folders in turn; return how many were refused and named, and what was believed.

    ``limit`` is how many facts of each folder are changed, spread over all of them.
    """
    found: dict = {"refused": 0, "named": 0, "believed": []}
    for folder in folders:
        changes = list(forged(folder))
        for k in range(0, len(changes), 1 if limit is None else max(len(changes) // limit, 1)):
            name, write = changes[k]
            copy = work / "forged"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy)
            write(copy)
            accepted, uncovered = verdict(copy)
            if not accepted:
                found["refused"] += 1
            elif any(name == one or name.startswith(f"{one}.") for one in uncovered):
                found["named"] += 1
            else:
                found["believed"].append(f"{folder.name}: {name}")
    return found
