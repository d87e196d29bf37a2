"""The coefficients of a run folder, compared with the solutions that were checked."""

from __future__ import annotations

import csv
import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from screenpath.errors import RunFolderError, shown
from screenpath.verify.data import usual
from screenpath.verify.exact import fsum, gamma
from screenpath.verify.problem import feature_names

HALVED = 32  # numpy adds up to 128 numbers in eight rows, longer vectors half by half: roundings in a row, but log2
HEAD, NUMBER = 1 << 10, 8  # bytes of the header of an array, and of a number
UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile,
    zlib.error, csv.Error,
)  # fmt: skip


def coefficient_faults(file: Path, content: bytes | None, header: dict, n_steps: int, solutions: dict) -> list:
    """Compare the coefficients with the solutions that were checked, scaled back; a kernel's belong to samples.

    ``content`` are the bytes of the file, None where there is none.
    """
    of_samples, found = "kernel" in header, []
    unit, d = ("sample", header["data"]["n_samples"]) if of_samples else ("feature", header["data"]["n_features"])
    width = 1 + (header["columns"].size if "columns" in header and not of_samples else d)
    written = _written(file, content, _cells(header), _columns(header), (n_steps, width))
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
    numbers = [float(label if names is None else names.index(label)) for label in labels]
    texts = [shown(label) if isinstance(label, str) else usual(label) for label in labels]
    return {**{text: k for k, text in enumerate(texts)}, **{repr(value): k for k, value in enumerate(numbers)}}


def _columns(header: dict) -> tuple[list[str], list[str] | None]:
    """Return the columns of ``coefficients.csv``, and the names of intercept and features, where these have some."""
    several, table = "classes" in (header["labels"] or {}), header["data"].get("table")
    unit = "sample" if "kernel" in header else "feature"
    names = None if table is None or unit == "sample" else ["intercept", *map(shown, feature_names(table))]
    return ["step", *(["class"] if several else []), unit, "value", *([] if names is None else ["name"])], names


def _written(file: Path, content: bytes | None, cells: dict, columns: tuple, shape: tuple[int, int]) -> dict:
    """Return features and values of the coefficients by step and number of the class, which is 0 where there is one.

    Of ``shape``, steps and coefficients of each, are those that a matrix has at most.
    """
    try:
        if content is None:
            raise FileNotFoundError(file)
        if file.suffix == ".npz":
            blocks = max(len(set(cells.values())), 1)
            rows = shape[0] * blocks
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                edges = _array(archive, "indptr", rows + 1)
                indices, data = (_array(archive, name, rows * shape[1]) for name in ("indices", "data"))
            if not edges[0] == 0 <= np.diff(edges).min(initial=0) <= edges[-1] == indices.size == data.size:
                raise ValueError("its rows are not those of a matrix")
            parts = [(indices[a:b], data[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
            return {divmod(row, blocks): part for row, part in enumerate(parts)}
        found: dict[tuple[int, int], tuple[list[int], list[float]]] = {}
        lines = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline=""))
        head = next(lines, [])
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


def _array(archive: zipfile.ZipFile, name: str, most: int) -> np.ndarray:
    """Return a vector of an archive of numpy's; none of more than ``most`` numbers is unfolded."""
    about = archive.getinfo(f"{name}.npy")
    if about.file_size > HEAD + NUMBER * most:
        raise ValueError(f"{name} has {about.file_size:,} bytes: more than the certificate's steps have coefficients")
    if about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others may take any memory
        raise ValueError(f"{name} is compressed in a way that runs do not use")
    with archive.open(about) as member:
        stream = io.BytesIO(member.read(about.file_size))
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is not of the format that runs write")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if len(shape) != 1 or dtype.kind not in "if" or dtype.itemsize > NUMBER:
        raise ValueError(f"{name} is not a vector of numbers")
    return np.frombuffer(stream.read(), dtype, *shape)


def unreadable(file: Path, error: Exception) -> RunFolderError:
    """Return the error for a file of a run folder that is lost, or holds something else."""
    again = "compute the path again with `certificate` and `force`"
    if isinstance(error, FileNotFoundError):
        return RunFolderError(
            f"{file.parent} has lost its {file.name}", f"copy it from where the run was made, or {again}"
        )
    return RunFolderError(f"{file} is damaged: {error}", again)
