"""Coefficients of a path in the units of the data file: sparse CSV, or a compressed matrix."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from screenpath.write.atomic import Appender, replacing

RECORD = np.dtype([("step", "<i8"), ("feature", "<i8"), ("value", "<f8")])


def sparse_coefficients(coefficients: np.ndarray, intercept: float, has_intercept: bool):
    """Return features (1-based as in the file, 0 for the intercept) and values of the non-zero coefficients.

    Parameters
    ----------
    coefficients : ndarray of shape (d,)
    intercept : float
    has_intercept : bool
        Whether to name the intercept even where it is 0.
    """
    where = np.flatnonzero(coefficients)
    features, values = where + 1, coefficients[where]
    if has_intercept or intercept != 0.0:
        features, values = np.concatenate([[0], features]), np.concatenate([[intercept], values])
    return features, values


class CsvCoefficients(Appender):
    """``coefficients.csv`` with the columns step, feature, value; of several classes: step, class, feature, value.

    Of a kernel model: step, sample, value, the samples numbered from 1 as in the file.
    """

    def __init__(self, folder: Path, n_features: int, keep: int = 0, classes=None, unit: str = "feature"):
        super().__init__(folder / "coefficients.csv", keep)
        self.classes = classes
        if not keep:
            self.append(f"step,{unit},value\n".encode() if classes is None else b"step,class,feature,value\n")

    def add(self, step: int, features: np.ndarray, values: np.ndarray, block: int = 0) -> None:
        """Append the coefficients of one step, or of one class of it."""
        where = f"{step}" if self.classes is None else f"{step},{self.classes[block]!r}"
        lines = [f"{where},{j},{v!r}\n" for j, v in zip(features.tolist(), values.tolist(), strict=True)]
        self.append("".join(lines).encode())

    def finish(self, n_steps: int, complete: bool) -> None:
        """Give the file its final name."""
        self.complete()


class NpzCoefficients(Appender):
    """``coefficients.npz``: a matrix of shape (n_steps, 1 + d) for ``scipy.sparse.load_npz``.

    Column 0 is the intercept, column j feature j as numbered in the file (for a kernel model: sample j); of several
    classes each step has one row a class, in the order of their labels. While the run goes on,
    ``coefficients.npz.records.partial`` holds plain records (``RECORD``).
    """

    def __init__(self, folder: Path, n_features: int, keep: int = 0, classes=None, unit: str = "feature"):
        super().__init__(folder / "coefficients.npz.records", keep)
        self.n_features, self.blocks = n_features, 1 if classes is None else len(classes)
        self.target = folder / "coefficients.npz"

    def add(self, step: int, features: np.ndarray, values: np.ndarray, block: int = 0) -> None:
        """Append the coefficients of one step, or of one class of it."""
        records = np.empty(features.size, dtype=RECORD)
        records["step"] = step * self.blocks + block
        records["feature"], records["value"] = features, values
        self.append(records.tobytes())

    def finish(self, n_steps: int, complete: bool) -> None:
        """Write the matrix. The records stay until the run is complete: a resumed run continues them."""
        from scipy.sparse import csr_array, save_npz

        records = np.frombuffer(self.read(), dtype=RECORD)
        shape = (n_steps * self.blocks, 1 + self.n_features)
        matrix = csr_array((records["value"], (records["step"], records["feature"])), shape=shape)
        with replacing(self.target) as file:
            save_npz(file, matrix)
        self.sync()
        self.abandon(remove=complete)


WRITERS = {"csv": CsvCoefficients, "npz": NpzCoefficients}


def open_coefficients(kind: str, folder: Path, n_features: int, keep: int = 0, classes=None, unit: str = "feature"):
    """Return the writer of that kind; None for ``none``. ``classes``: labels of a model with weights for each."""
    return WRITERS[kind](folder, n_features, keep, classes, unit) if kind != "none" else None


def remove_coefficients(folder: Path) -> None:
    """Remove what any of the writers may have left."""
    for name in os.listdir(folder):
        if name.startswith("coefficients."):
            (folder / name).unlink()
