"""The coefficients of a run folder, compared with the solutions that were checked."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np

from screenpath.errors import RunFolderError, shown
from screenpath.verify.exact import fsum, gamma
from screenpath.verify.problem import feature_names

HALVED = 32  # numpy adds up to 128 numbers in eight rows, longer vectors half by half: roundings in a row, but log2
UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, zipfile.BadZipFile)


def coefficient_faults(folder: Path, header: dict, n_steps: int, solutions: dict) -> list:
    """Compare the coefficients with the solutions that were checked, scaled back; a kernel's belong to samples."""
    of_samples, found = "kernel" in header, []
    written = _written(folder, _cells(header), _columns(header))
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
        expected[0] = fsum(parts)
        features, values = written.get((step, block), ((), ()))
        got = np.zeros(1 + d)
        places = np.minimum(np.searchsorted(numbers, np.asarray(features, dtype=np.int64)), d)
        if np.any(numbers[places] != features):
            found.append((step, f"a {unit} that the data does not have has a coefficient"))
            continue
        got[places] = values
        different = np.flatnonzero(got != expected)
        if abs(got[0] - expected[0]) <= gamma(min(d, HALVED + d.bit_length()) + 4) * fsum(
            [abs(part) for part in parts]
        ):
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


def _columns(header: dict) -> tuple[list[str], list[str] | None]:
    """Return the columns of ``coefficients.csv``, and the names of intercept and features, where these have some."""
    several, table = "classes" in (header["labels"] or {}), header["data"].get("table")
    unit = "sample" if "kernel" in header else "feature"
    names = None if table is None or unit == "sample" else ["intercept", *map(shown, feature_names(table))]
    return ["step", *(["class"] if several else []), unit, "value", *([] if names is None else ["name"])], names


def _written(folder: Path, cells: dict, columns: tuple) -> dict:
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
            head, *lines = csv.reader(text)
            if head != columns[0]:
                raise ValueError(f"its columns are not {', '.join(columns[0])}")
            for line in lines:
                step, *cell, feature, value = line[: 4 if cells else 3]
                block = cells[cell[0]] if cells else 0
                if len(line) != len(head) or columns[1] is not None and line[-1] != columns[1][int(feature)]:
                    raise ValueError(f"step {step}: a coefficient has the name of another feature")
                features, values = found.setdefault((int(step), block), ([], []))
                features.append(int(feature))
                values.append(float(value))
        return found
    except UNREADABLE as error:
        raise unreadable(file, error) from None


def unreadable(file: Path, error: Exception) -> RunFolderError:
    """Return the error for a file of a run folder that is lost, or holds something else."""
    again = "compute the path again with `certificate` and `force`"
    if isinstance(error, FileNotFoundError):
        return RunFolderError(
            f"{file.parent} has lost its {file.name}", f"copy it from where the run was made, or {again}"
        )
    return RunFolderError(f"{file} is damaged: {error}", again)
