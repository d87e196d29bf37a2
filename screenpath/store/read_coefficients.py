"""Files of coefficients, read a part at a time: of many steps they may be much more memory than one."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from screenpath.data.words.labels import NamedLabel, label_cells
from screenpath.store.archive import array_header

CHUNK = 1 << 20  # bytes of text read at once
PART = 1 << 16  # coefficients in a part
HEAD, F8 = 1 << 10, 8  # bytes of the header of an array, and of a number


def csv_parts(file: Path, size: int):
    """Yield the header of ``coefficients.csv``, then whole lines of it, from the first ``size`` bytes.

    Half a line at the end of a file that is still growing has no say.
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

    ``named`` are the classes, where the second cell of a line is the name of one; ``width`` is how many cells of a line
    are read, where the names of features stand behind them.
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
    """Return the records in the first ``size`` bytes, mapped; half a record at the end has no say."""
    count = size // dtype.itemsize
    return np.memmap(file, dtype=dtype, mode="r", shape=(count,)) if count else np.zeros(0, dtype=dtype)


def record_parts(file: Path, dtype, size: int):
    """Yield rows, columns and values of the records in the first ``size`` bytes."""
    records = records_of(file, dtype, size)
    for start in range(0, records.size, PART):
        part = np.array(records[start : start + PART])
        yield part["step"], part["feature"], part["value"]


def npz_parts(file: Path, width: int, most: int):
    """Yield rows, columns and values of a matrix as ``scipy.sparse.save_npz`` writes it.

    It has ``width`` columns and at most ``most`` rows: no part that is read at once unfolds to more.
    """
    with zipfile.ZipFile(file) as archive:
        if len(set(archive.namelist())) < len(archive.namelist()):
            raise ValueError("a part of it stands there twice")
        if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()):
            raise ValueError("it is compressed in a way that runs do not use")  # others may take any memory
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
            if indices.read() or data.read():  # to the end: the checksum is looked at there
                raise ValueError("there is more in it than its rows")


def _whole(archive: zipfile.ZipFile, name: str, most: int) -> np.ndarray:
    """Return a vector of at most ``most`` numbers."""
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > HEAD + F8 * most:
        raise ValueError(f"its part {name} has {info.file_size:,} bytes, more than the run's steps have")
    with archive.open(info) as member:
        shape, dtype = array_header(member, info.file_size)
        return np.frombuffer(member.read(), dtype=dtype).reshape(shape)


def _read(member, dtype, count: int) -> np.ndarray:
    return np.frombuffer(member.read(count * dtype.itemsize), dtype=dtype)
