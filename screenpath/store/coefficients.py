"""Coefficients of a path in the units of the data file: sparse CSV, or a compressed matrix."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from screenpath.data.safe.atomic import Appender, replacing
from screenpath.data.words.labels import label_cells, quoted
from screenpath.errors import shown
from screenpath.store.read_coefficients import records_of
from screenpath.store.record import RECORDS

LINES, PART = 1 << 12, 1 << 17  # coefficients written at once, as text and as numbers
RECORD = np.dtype([("step", "<i8"), ("feature", "<i8"), ("value", "<f8")])


def sparse_coefficients(coefficients: np.ndarray, intercept: float, has_intercept: bool, numbers=None):
    """Return features (1-based as in the file, 0 for the intercept) and values of the non-zero coefficients.

    The intercept is named even where it is 0 if ``has_intercept``; ``numbers`` are those of the features, 1 to d by
    default.
    """
    where = np.flatnonzero(coefficients)
    features, values = where + 1 if numbers is None else numbers[where], coefficients[where]
    if has_intercept or intercept != 0.0:
        features, values = np.concatenate([[0], features]), np.concatenate([[intercept], values])
    return features, values


class CsvCoefficients(Appender):
    """``coefficients.csv`` with the columns step, feature, value; of several classes: step, class, feature, value.

    Of a kernel model: step, sample, value, the samples numbered from 1 as in the file. Where features have names there
    is one column more, ``name``.
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
        """Append the coefficients of one step, or of one class of it."""
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
        """Give the file its final name; return it and what run.json says about it."""
        self.complete()
        return self.path, {"bytes": self.size, "sha256": self.sha256}


class NpzCoefficients(Appender):
    """``coefficients.npz``: a matrix of shape (n_steps, 1 + d) for ``scipy.sparse.load_npz``.

    Column 0 is the intercept, column j feature j as numbered in the file (for a kernel model: sample j); of several
    classes each step has one row a class, in the order of their labels. While the run goes on,
    ``coefficients.npz.records.partial`` holds plain records (``RECORD``).
    """

    def __init__(
        self, folder: Path, n_features: int, keep=0, classes=None, unit: str = "feature", sha256=None, names=None
    ):  # fmt: skip
        super().__init__(folder / RECORDS, keep, sha256=sha256)
        self.n_features, self.blocks = n_features, 1 if classes is None else len(classes)
        self.target = folder / "coefficients.npz"

    def add(self, step: int, features: np.ndarray, values: np.ndarray, block: int = 0) -> None:
        """Append the coefficients of one step, or of one class of it."""
        records = np.empty(features.size, dtype=RECORD)
        records["step"] = step * self.blocks + block
        records["feature"], records["value"] = features, values
        self.append(records.tobytes())

    def finish(self, n_steps: int) -> tuple:
        """Write the matrix; return its file. The records stay, for a resumed run continues them."""
        self.sync()
        with replacing(self.target) as file:
            save_matrix(file, records_of(self.partial, RECORD, self.size), (n_steps * self.blocks, 1 + self.n_features))
        self.abandon()
        return self.target, None


def save_matrix(file, records: np.ndarray, shape: tuple) -> None:
    """Write records as a CSR matrix for ``scipy.sparse.load_npz``, a part at a time: all of them may be much memory.

    They are in the order of their steps.
    """
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

    ``keep`` bytes of an earlier run, whose SHA-256 is ``sha256``, are continued. A model with weights for each of some
    ``classes`` has their labels; weights belong to the ``unit`` feature or sample; ``names`` are those of all features.
    """
    return WRITERS[kind](folder, n_features, keep, classes, unit, sha256, names) if kind != "none" else None
