"""Coefficients of a path in the units of the data file, read and written in parts: sparse CSV, or a matrix."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from screenpath.data.safe.atomic import Appender, replacing
from screenpath.data.words.labels import NamedLabel, label_cells, quoted
from screenpath.errors import shown
from screenpath.store.archive import array_header
from screenpath.store.record import RECORDS

LINES, PART = 1 << 12, 1 << 17  # coefficients written at once as text; read or written at once as numbers
RECORD = np.dtype([("step", "<i8"), ("feature", "<i8"), ("value", "<f8")])
CHUNK = 1 << 20  # bytes of text read at once
HEAD, F8 = 1 << 10, 8  # bytes of the header of an array, and of a number


def sparse_coefficients(coefficients: np.ndarray, intercept: float, has_intercept: bool, numbers=None):
    """Return features (1-based as in the file, 0 for the intercept) and values of the non-zero coefficients.

    With ``has_intercept`` the intercept is included even if it is 0; ``numbers`` are the features, 1 to d by default.
    """
    where = np.flatnonzero(coefficients)
    features, values = where + 1 if numbers is None else numbers[where], coefficients[where]
    if has_intercept or intercept != 0.0:
        features, values = np.concatenate([[0], features]), np.concatenate([[intercept], values])
    return features, values


class CsvCoefficients(Appender):
    """``coefficients.csv`` with the columns step, feature, value; for several classes: step, class, feature, value.

    For a kernel model: step, sample, value, samples numbered from 1 as in the file. If features have names, a last
    column ``name`` has them.
    """

    def __init__(
        self, folder: Path, n_features: int, keep=0, classes=None, unit: str = "feature", sha256=None, names=None
    ):  # fmt: skip
        super().__init__(folder / "coefficients.csv", keep, sha256=sha256)
        self.classes = None if classes is None else label_cells(classes)
        self.names = None if names is None else ["intercept", *(quoted(shown(name)) for name in names)]
        if not keep:
            columns = ["step", *([] if classes is None else ["class"]), unit, "value"]
            self.append((",".join(columns + ([] if names is None else ["name"])) + "\n").encode())

    def add(self, step: int, features: np.ndarray, values: np.ndarray, block: int = 0) -> None:
        where = f"{step}" if self.classes is None else f"{step},{self.classes[block]}"
        for start in range(0, features.size, LINES):
            part = slice(start, start + LINES)
            pairs = zip(features[part].tolist(), values[part].tolist(), strict=True)
            if self.names is None:
                lines = [f"{where},{j},{v!r}\n" for j, v in pairs]
            else:
                lines = [f"{where},{j},{v!r},{self.names[j]}\n" for j, v in pairs]
            self.append("".join(lines).encode())

    def finish(self, n_steps: int) -> tuple:
        """Give the file its final name; return it and its entry in run.json."""
        self.complete()
        return self.path, {"bytes": self.size, "sha256": self.sha256}


class NpzCoefficients(Appender):
    """``coefficients.npz``: a matrix of shape (n_steps, 1 + d) for ``scipy.sparse.load_npz``.

    Column 0 is the intercept, column j feature j as numbered in the file (for a kernel model: sample j); with several
    classes each step has one row per class, in the order of their labels. During the run,
    ``coefficients.npz.records.partial`` holds plain records (``RECORD``).
    """

    def __init__(
        self, folder: Path, n_features: int, keep=0, classes=None, unit: str = "feature", sha256=None, names=None
    ):  # fmt: skip
        super().__init__(folder / RECORDS, keep, sha256=sha256)
        self.n_features, self.blocks = n_features, 1 if classes is None else len(classes)
        self.target = folder / "coefficients.npz"

    def add(self, step: int, features: np.ndarray, values: np.ndarray, block: int = 0) -> None:
        records = np.empty(features.size, dtype=RECORD)
        records["step"] = step * self.blocks + block
        records["feature"], records["value"] = features, values
        self.append(records.tobytes())

    def finish(self, n_steps: int) -> tuple:
        """Write the matrix; return its file. The records stay, because a resumed run continues them."""
        self.sync()
        with replacing(self.target) as file:
            save_matrix(file, records_of(self.partial, RECORD, self.size), (n_steps * self.blocks, 1 + self.n_features))
        self.abandon()
        return self.target, None


def save_matrix(file, records: np.ndarray, shape: tuple) -> None:
    """Write records, ordered by step, as a CSR matrix for ``scipy.sparse.load_npz``, in parts to save memory."""
    kind = np.int32 if max(records.size, *shape) <= np.iinfo(np.int32).max else np.int64
    counts = np.zeros(shape[0] + 1, dtype=np.int64)
    for start in range(0, records.size, PART):
        counts[1:] += np.bincount(records["step"][start : start + PART], minlength=shape[0])
    ends = np.cumsum(counts).astype(kind)
    arrays: dict = {"indices": ("feature", kind), "indptr": ends, "format": np.array(b"csr"), "shape": np.array(shape)}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {**arrays, "data": ("value", np.float64)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if not isinstance(array, tuple):
                    np.lib.format.write_array(member, array)
                    continue
                column, dtype = array
                head = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (records.size,)}
                np.lib.format.write_array_header_1_0(member, head)
                for start in range(0, records.size, PART):
                    member.write(records[column][start : start + PART].astype(dtype).tobytes())


WRITERS = {"csv": CsvCoefficients, "npz": NpzCoefficients}


def open_coefficients(
    kind: str, folder: Path, n_features: int, keep=0, classes=None, unit="feature", sha256=None, names=None
):  # fmt: skip
    """Return the writer of that kind; None for ``none``.

    ``keep`` bytes of an earlier run, whose SHA-256 is ``sha256``, are continued. ``classes`` are the labels of a model
    with weights for each class; weights belong to the ``unit`` feature or sample; ``names`` are those of all features.
    """
    return WRITERS[kind](folder, n_features, keep, classes, unit, sha256, names) if kind != "none" else None


def csv_parts(file: Path, size: int):
    """Yield the header of ``coefficients.csv``, then whole lines of it, from the first ``size`` bytes.

    An incomplete line at the end of a growing file is ignored.
    """
    with open(file, "rb") as stream:
        header = stream.readline(size)
        yield header
        left, rest = size - len(header), b""
        while left > 0 and (data := stream.read(min(CHUNK, left))):
            left -= len(data)
            lines, newline, tail = data.rpartition(b"\n")
            if newline:
                yield rest + lines + newline
                rest = tail
            else:
                rest += data
        if rest and file.suffix != ".partial":
            yield rest


def table_of(body: bytes, named: Sequence[NamedLabel] | None, width: int | None = None) -> np.ndarray:
    """Return lines of ``coefficients.csv`` as numbers.

    ``named`` are the classes if the second cell of a line is a class name; ``width`` is the number of cells to read if
    feature names follow them.
    """
    if not named:
        columns = None if width is None else range(width)
        return np.loadtxt(
            io.BytesIO(body), delimiter=",", ndmin=2, comments=None, encoding="utf-8", usecols=columns, quotechar='"'
        )
    try:
        rows = [row[:width] for row in csv.reader(io.StringIO(body.decode("utf-8")), strict=True)]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    cells = (next(csv.reader([cell])) for cell in label_cells(named))
    numbers = {cell[0]: float(label) for cell, label in zip(cells, named, strict=True)}
    if any(len(row) != 4 or row[1] not in numbers for row in rows):
        raise ValueError("a class is not among the labels of run.json, or a line does not have 4 cells")
    return np.array([[float(row[0]), numbers[row[1]], float(row[2]), float(row[3])] for row in rows])


def records_of(file: Path, dtype, size: int) -> np.ndarray:
    """Return the records in the first ``size`` bytes, mapped; an incomplete record at the end is ignored."""
    count = size // dtype.itemsize
    return np.memmap(file, dtype=dtype, mode="r", shape=(count,)) if count else np.zeros(0, dtype=dtype)


def record_parts(file: Path, dtype, size: int):
    records = records_of(file, dtype, size)
    for start in range(0, records.size, PART):
        part = np.array(records[start : start + PART])
        yield part["step"], part["feature"], part["value"]


def npz_parts(file: Path, width: int, most: int):
    """Yield rows, columns and values of a matrix written by ``scipy.sparse.save_npz``.

    It has ``width`` columns and at most ``most`` rows, so that no part expands to more memory.
    """
    with zipfile.ZipFile(file) as archive:
        if len(set(archive.namelist())) < len(archive.namelist()):
            raise ValueError("a part of it stands there twice")
        if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()):
            raise ValueError("it is compressed in a way that runs do not use")  # others could expand to any size
        if _whole(archive, "format", 3).tobytes() != b"csr":
            raise ValueError("it holds another kind of matrix")
        rows, columns = (int(v) for v in _whole(archive, "shape", 2))
        if columns != width:
            raise ValueError(f"{columns} columns in place of {width}")
        ends = _whole(archive, "indptr", most + 1)
        with archive.open("indices.npy") as indices, archive.open("data.npy") as data:
            kinds = [array_header(member, archive.getinfo(member.name).file_size) for member in (indices, data)]
            (shape, one), (same, other) = kinds
            fits = len(shape) == 1 and shape == same and ends.ndim == 1 and ends.size == rows + 1
            if not fits or ends.dtype.kind + one.kind + other.kind != "iif":
                raise ValueError("its parts do not fit together")
            if ends[0] != 0 or ends[-1] != shape[0] or np.any(np.diff(ends) < 0):
                raise ValueError("its rows do not fit together")
            for start in range(0, shape[0], PART):
                count = min(PART, shape[0] - start)
                found = np.searchsorted(ends, np.arange(start, start + count), side="right") - 1
                yield found, _read(indices, one, count), _read(data, other, count)
            if indices.read() or data.read():  # to the end, where the checksum is verified
                raise ValueError("there is more in it than its rows")


def _whole(archive: zipfile.ZipFile, name: str, most: int) -> np.ndarray:
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > HEAD + F8 * most:
        raise ValueError(f"its part {name} has {info.file_size:,} bytes, more than the run's steps have")
    with archive.open(info) as member:
        shape, dtype = array_header(member, info.file_size)
        return np.frombuffer(member.read(), dtype=dtype).reshape(shape)


def _read(member, dtype, count: int) -> np.ndarray:
    return np.frombuffer(member.read(count * dtype.itemsize), dtype=dtype)
