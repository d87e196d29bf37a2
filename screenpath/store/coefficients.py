"""Coefficients of a path in the units of the data file, read and written in parts: sparse CSV, or a matrix."""

from __future__ import annotations

import csv
import io
import zipfile
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.data.safe.atomic import Appender, replacing
from screenpath.data.words.labels import are_texts, label_cells, quoted
from screenpath.errors import UsageError, shown
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import WIDEST, Csr, find
from screenpath.numbers.rounding import gamma
from screenpath.store.archive import FAULTS, array_header
from screenpath.store.record import RECORDS, damaged

LINES, PART = 1 << 12, 1 << 17  # coefficients written at once as text; read or written at once as numbers
RECORD = np.dtype([("step", "<i8"), ("feature", "<i8"), ("value", "<f8")])
CHUNK = 1 << 20  # bytes of text read at once
NPZ = "coefficients.npz"
HEAD, F8 = 1 << 10, 8  # bytes of the header of an array, and of a number


@dataclass(frozen=True)
class Layout:
    """What the coefficients of a run belong to."""

    width: int  # number of features, or of samples for a kernel model
    unit: str = "feature"  # or ``sample``
    classes: list | None = None  # labels of a model with weights for each class
    numbers: np.ndarray | None = None  # from 1: features that have a weight; None if all have one
    names: Sequence[str] | None = None  # of all features

    @property
    def blocks(self) -> int:
        return len(self.classes) if self.classes else 1


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

    def __init__(self, folder: Path, layout: Layout, keep: int = 0, sha256: str | None = None):
        super().__init__(folder / "coefficients.csv", keep, sha256=sha256)
        names, classes = layout.names, layout.classes
        self.classes = None if classes is None else label_cells(classes)
        self.names = None if names is None else ["intercept", *(quoted(shown(name)) for name in names)]
        if not keep:
            columns = ["step", *([] if classes is None else ["class"]), layout.unit, "value"]
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

    def __init__(self, folder: Path, layout: Layout, keep: int = 0, sha256: str | None = None):
        super().__init__(folder / RECORDS, keep, sha256=sha256)
        self.layout = layout
        self.target = folder / NPZ

    def add(self, step: int, features: np.ndarray, values: np.ndarray, block: int = 0) -> None:
        records = np.empty(features.size, dtype=RECORD)
        records["step"] = step * self.layout.blocks + block
        records["feature"], records["value"] = features, values
        self.append(records.tobytes())

    def finish(self, n_steps: int) -> tuple:
        """Write the matrix; return its file. The records stay, because a resumed run continues them."""
        self.sync()
        shape = n_steps * self.layout.blocks, 1 + self.layout.width
        with replacing(self.target) as file:
            save_matrix(file, records_of(self.partial, RECORD, self.size), shape)
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


# By the option; ``keep`` bytes of an earlier run, whose SHA-256 is ``sha256``, are continued.
WRITERS = {"csv": CsvCoefficients, "npz": NpzCoefficients}


# -- reading ---------------------------------------------------------------------------------------------------------


def read_matrix(stored: tuple, layout: Layout, last: int, asked: int, step: int | None) -> sp.csr_array:
    """Return the matrix of coefficients up to the step ``last``, or with the rows of one step alone; all are checked.

    ``stored`` is the file, and how many of its bytes belong to the steps. Coefficients after ``last``, whose row of the
    table was lost, are ignored; ``asked`` counts the steps of the whole path.
    """
    file, size = stored
    try:
        if ".csv" in file.name:
            parts = csv_parts(file, size, layout)
        elif file.name == NPZ:
            parts = npz_parts(file, 1 + layout.width, layout.blocks * asked)
        else:
            records = records_of(file, RECORD, size)
            parts = ([records[start : start + PART][name].copy() for name in RECORD.names or ()]
                     for start in range(0, records.size, PART))  # fmt: skip
        return _assembled(parts, layout, last, step)
    except FAULTS as error:
        raise damaged(file, str(error).splitlines()[0] if str(error) else "unreadable") from None


def _assembled(parts, layout: Layout, last: int, step: int | None) -> sp.csr_array:
    k, unit, width = layout.blocks, layout.unit, layout.width
    shape = ((last + 1) * k, 1 + width)
    first, end = (0, shape[0]) if step is None else (step * k, (step + 1) * k)
    kept: list[list] = [[np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]]
    before = (-1, -1)
    for part in parts:
        rows, features, values = part
        if not rows.size:
            continue
        if rows.min() < 0 or features.min() < 0 or features.max() >= shape[1]:
            raise ValueError(f"a step or {unit} out of range; the data has {width} {unit}s")
        if not np.all(np.isfinite(values)):
            raise ValueError("a value is not a finite number")
        down, right = (np.diff(numbers, prepend=old) for numbers, old in zip(part, before, strict=False))
        if not np.all((down > 0) | ((down == 0) & (right > 0))):
            raise ValueError("a coefficient stands there twice, or not in its order")
        before, keep = (rows[-1], features[-1]), (rows >= first) & (rows < min(end, shape[0]))
        for numbers, found in zip(part, kept, strict=True):
            found.append(numbers[keep])
    rows, features, values = (np.concatenate(found) for found in kept)
    if layout.numbers is not None:
        features, known = find(np.append(0, layout.numbers), features)
        if not known.all():
            raise ValueError("a feature that the data does not have")
        shape = (shape[0], 1 + layout.numbers.size)
    if step is not None:  # without scipy
        return Csr(values, features, np.searchsorted(rows, np.arange(shape[0] + 1)), shape)
    return sp.csr_array((values, (rows, features)), shape=shape)


def csv_parts(file: Path, size: int, layout: Layout):
    """Yield rows, columns and values of whole lines of ``coefficients.csv``."""
    classes, lines = layout.classes, whole_lines(file, size)
    columns = next(lines).decode("utf-8").strip().split(",")
    expected = ["step", *(["class"] if classes else []), layout.unit, "value"]
    named = columns == [*expected, "name"]
    if columns != expected and not named:
        raise ValueError(f"the columns are not {', '.join(expected)}")
    how: dict = {"usecols": range(len(expected))} if named else {}
    if classes and are_texts(classes):
        cells = (next(csv.reader([cell]))[0] for cell in label_cells(classes))
        codes = dict(zip(cells, map(float, classes), strict=True))
        how["converters"] = {1: lambda cell: codes.get(cell, -1.0)}
    for body in lines:
        if not body.strip():
            continue
        table = np.loadtxt(
            io.BytesIO(body), delimiter=",", ndmin=2, comments=None, encoding="utf-8", quotechar='"', **how
        )
        if table.shape[1] != len(expected):
            raise ValueError(f"the lines do not have {len(expected)} numbers")
        whole = table[:, [0, -2]]
        if not np.array_equal(whole, np.floor(whole)) or np.any(np.abs(whole) > WIDEST):
            raise ValueError(f"a step or {layout.unit} is not a whole number")
        rows, features = whole.astype(np.int64).T
        if classes:
            block = np.minimum(np.searchsorted(classes, table[:, 1]), len(classes) - 1)
            if not np.array_equal(np.array(classes)[block], table[:, 1]):
                raise ValueError("a class is not among the labels of run.json")
            rows = rows * len(classes) + block
        yield rows, features, table[:, -1]


def whole_lines(file: Path, size: int):
    """Yield the first line, then whole lines, from the first ``size`` bytes of a file.

    An incomplete line at the end of a growing file is ignored.
    """
    with open(file, "rb") as stream:
        header = stream.readline(size)
        yield header
        left = size - len(header)
        while left > 0 and (lines := stream.readlines(min(CHUNK, left))):
            body = b"".join(lines)[:left]
            left -= len(body)
            yield body[: body.rfind(b"\n") + 1] if file.suffix == ".partial" else body


def records_of(file: Path, dtype, size: int) -> np.ndarray:
    """Return the records in the first ``size`` bytes, mapped; an incomplete record at the end is ignored."""
    count = size // dtype.itemsize
    return np.memmap(file, dtype=dtype, mode="r", shape=(count,)) if count else np.zeros(0, dtype=dtype)


def npz_parts(file: Path, width: int, most: int):
    """Yield rows, columns and values of a matrix written by ``scipy.sparse.save_npz``.

    It has ``width`` columns and at most ``most`` rows, so that it expands to no more memory than they take.
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
        if ends.shape != (rows + 1,) or ends.dtype.kind != "i" or ends[0] != 0 or np.any(np.diff(ends) < 0):
            raise ValueError("its rows do not fit together")
        indices, values = (_whole(archive, name, min(int(ends[-1]), rows * width)) for name in ("indices", "data"))
    if indices.dtype.kind + values.dtype.kind != "if" or not indices.shape == values.shape == (ends[-1],):
        raise ValueError("its parts do not fit together")
    yield np.repeat(np.arange(rows), np.diff(ends)), indices, values


def _whole(archive: zipfile.ZipFile, name: str, most: int) -> np.ndarray:
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > HEAD + F8 * most:
        raise ValueError(f"its part {name} has {info.file_size:,} bytes, more than the run's steps have")
    with archive.open(info) as member:
        shape, dtype = array_header(member, info.file_size)
        return np.frombuffer(member.read(), dtype=dtype).reshape(shape)  # to the end, where the checksum is verified


# -- the penalised weights as the model saw them, and nu --------------------------------------------------------------


def stored_weights(run, weights: np.ndarray, intercepts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the penalised weights of a step of a run folder as the model saw them, and their rounding error.

    ``weights``, shape (k, d), and ``intercepts``, (k,), are in the units of the data file.
    """
    p = run.record["preparation"]
    scale, shift, bias = p.get("scale"), p.get("shift"), p.get("bias") or 0.0
    w = weights if scale is None else weights * np.array(scale)
    off = 0.0 if scale is None else gamma(4) * float(np.linalg.norm(w))
    if not bias or run.record["options"].get("intercept") == "free":
        return w.ravel(), off
    moved = np.zeros_like(weights) if shift is None else weights * np.array(shift)
    constant = (intercepts + moved.sum(axis=1)) / bias
    sizes = (np.abs(intercepts) + 2.0 * np.abs(moved).sum(axis=1)) / abs(bias)
    off += gamma(2 * weights.shape[1] + 16) * float(np.linalg.norm(sizes))
    return np.column_stack([w, constant]).ravel(), off


def nu_of(run, step: dict) -> float:
    """Return ``sum(alpha) / (n C)``, the nu of nu-SVC with the same decisions (Chang and Lin 2001, Theorem 5).

    With weights of features the sum is ``(P + ||w||^2 / 2) / C``, since ``alpha_i (1 - m_i)`` is C times the loss of
    row i in an optimum; with coefficients of samples it is the sum of their sizes.
    """
    weights, intercepts = run.coefficients(step)
    n, C = run.record["data"]["n_samples"], step["C"]
    if run.kernel:
        return float(np.abs(weights).sum()) / (n * C)
    w, _ = stored_weights(run, weights, intercepts)
    return float(step["primal"] + 0.5 * (w @ w)) / (n * C)


def step_of_nu(run, nu: float) -> dict:
    """Return the step whose nu is nearest in proportion, with its ``nu``, which falls along the path: nu-SVC by C."""
    weighted = any(run.record["options"].get(name) for name in ("weights", "weight_column", "class_weight"))
    if run.model != "svm" or run.classes or weighted or run.record["options"].get("smoothing"):
        what = "nu belongs to runs of svm with two labels, without weights and smoothing"
        raise UsageError(what, "name a step by its C")
    rows = [row for row in run.steps if row["primal"] is not None]
    ends = [nu_of(run, rows[0]), nu_of(run, rows[-1])]
    if not ends[1] * (1.0 - 1e-9) <= nu <= ends[0] * (1.0 + 1e-9):
        span = f"nu of its steps goes from {ends[0]:.3g} down to {ends[1]:.3g}"
        hint = "a smaller `cmin` has larger ones" if nu > ends[0] else "a larger `cmax` has smaller ones"
        raise UsageError(f"{run.path} has no step with nu near {nu:g}", f"{span}; {hint}")
    after = bisect(rows, -nu, 1, max(len(rows) - 1, 1), key=lambda row: -nu_of(run, row))
    found = [{**row, "nu": nu_of(run, row)} for row in rows[after - 1 : after + 1]]
    return min(found, key=lambda row: abs(np.log(max(row["nu"], 1e-300) / nu)))
