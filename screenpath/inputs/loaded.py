"""What is known of the data of a run once they are read: rows, targets, and what is said about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from screenpath.data.files.form import Form
from screenpath.data.words.labels import are_texts
from screenpath.data.words.numerals import Spelled
from screenpath.data.words.tables import finite
from screenpath.inputs.rows import Prepared


@dataclass(frozen=True)
class Described:
    """What is said about rows that are gone."""

    sparse: bool
    nbytes: int
    on_disk: bool = False

    def check(self) -> None:
        """There is nothing to check."""


@dataclass(frozen=True, kw_only=True)
class Training(Prepared):
    """Data of a run."""

    path: str
    labels: dict | None  # map from +1 and -1 to the labels of the file
    sha256: str  # fingerprint of the values read
    shape: tuple[int, ...]  # samples, and features of the file
    nnz: int
    vectors: int = 0  # bytes that a path's vectors take, as far as there is a limit
    names: tuple[str, ...] | None = None  # of the features, where the data was a table
    label_names: tuple[str, ...] | None = None  # of the labels 0, 1, ..., where they are texts
    label_texts: tuple[str, ...] | Spelled | None = None  # these, or how the file writes labels that are numbers
    form: Form | None = None  # what the columns of a file with named columns are
    sample_weights: np.ndarray | None = None  # those of the samples alone, where the rows are in memory
    penalties: np.ndarray | None = None  # weights in the penalty of the features that have a column

    @property
    def sides(self) -> list:
        """Return the labels of a classifier; none of a regression."""
        labels = self.labels or {}
        return labels.get("classes") or list(labels.values())

    @property
    def weights_sha256(self) -> str | None:
        """Return the SHA-256 of the weights."""
        return None if self.weights is None else hashlib.sha256(self.weights.tobytes()).hexdigest()

    def identity(self) -> dict:
        """Return what stands for the data where runs are compared: values, weights, names and labels' own texts."""
        names = None
        if self.names is not None or self.label_names is not None:
            names = hashlib.sha256(repr((self.names, self.label_names)).encode("utf-8", "backslashreplace")).hexdigest()
        numbers = [label for label in self.sides if label != "rest"] if isinstance(self.label_texts, Spelled) else []
        penalties = None if self.penalties is None else hashlib.sha256(self.penalties.tobytes()).hexdigest()
        return {
            "data_sha256": self.sha256,
            "weights_sha256": self.weights_sha256,
            **({} if names is None else {"names_sha256": names}),
            **({"labels": finite(self.labels)} if numbers and are_texts(numbers) else {}),
            **({} if penalties is None else {"penalty_sha256": penalties}),
        }

    def description(self) -> dict:
        """Return what run.json says about the data."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "n_samples": self.shape[0],
            "n_features": self.shape[1],
            "nnz": self.nnz,
            "storage": "shards" if self.on_disk else "sparse" if self.rows.sparse else "dense",
            "bytes": self.rows.nbytes,
            **({} if self.names is None else {"feature_names": list(self.names)}),
            **({} if self.label_names is None else {"label_names": list(self.label_names)}),
            **({} if self.form is None else {"table": self.form.record()}),
        }

    def check(self) -> None:
        """Raise where files that are read in every pass have changed since the last one."""
        self.rows.check()

    def without_rows(self) -> Training:
        """Return the same for a model that does not need the rows any more; what is on disk stays there."""
        return self if self.on_disk else replace(self, rows=Described(self.rows.sparse, self.rows.nbytes))

    @property
    def on_disk(self) -> bool:
        """Tell whether passes read the data from files."""
        return self.rows.on_disk

    def close(self) -> None:
        """Let go of threads and cluster."""
        if self.on_disk:
            self.rows.close()

    def preparation_record(self) -> dict:
        """Return scaling and bias as run.json keeps them, so that new data can be prepared alike."""
        p = self.preparation
        record = {"scaling": p.kind, "scale": p.scale, "shift": p.shift, "bias": p.bias}
        return record if p.columns is None else {**record, "features": p.numbers}


@dataclass(frozen=True)
class TestData:
    """Data of ``--test``, prepared like the training data."""

    path: str
    # ndarray or csr_array of shape (m, d) or (m, d + 1), or HeldOutRows: what the weights of a step are multiplied with
    X: Any
    targets: np.ndarray  # shape (m,)
    sha256: str

    def description(self) -> dict:
        """Return what run.json says about the test data."""
        return {"path": self.path, "sha256": self.sha256, "n_samples": self.X.shape[0]}
