"""Data prepared, as rows and targets: those of a file, of arrays, or of the training part of a fold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from screenpath.catalogue.targets import row_weights
from screenpath.data.files.dataset import Form
from screenpath.data.files.prepare import Preparation, prepare
from screenpath.data.words.labels import are_texts
from screenpath.data.words.numerals import Spelled
from screenpath.data.words.tables import finite
from screenpath.rows.memory import prepared_rows


@dataclass(frozen=True)
class Samples:
    """Raw data: what folds are cut from."""

    X: Any  # csr_array or ndarray of shape (n, d): in the units of the file; an ndarray needs dense storage
    y: np.ndarray  # y, targets: shape (n,): labels of the file and what the model makes of them
    targets: np.ndarray
    # shape (n,): how often each sample stands in the data, in training and held-out parts alike
    weights: np.ndarray | None = None

    def part(self, index: np.ndarray) -> Samples:
        weights = None if self.weights is None else self.weights[index]
        return Samples(self.X[index], self.y[index], self.targets[index], weights)


@dataclass(frozen=True)
class Prepared:
    """What a model is built from."""

    rows: Any
    targets: np.ndarray | None  # shape (n,), or None once the model has been built
    weights: np.ndarray | None  # shape (n,): class and sample weights together
    preparation: Preparation
    signs: np.ndarray | None = None  # int8: of the weights of the features that have a column
    groups: np.ndarray | None = None  # shape (d, 2): of these features, see `inputs.groups`


def prepared(
    spec, options: dict, samples: Samples, class_weight=None, storage: str = "auto", spent: bool = False
) -> Prepared:
    """Return samples as a model takes them; ``class_weight`` as of ``catalogue.targets.row_weights``.

    ``spent`` samples are nobody else's, and their values may be overwritten.
    """
    X, preparation = shaped(spec, options, samples.X, storage, samples.weights, spent)
    rows, preparation = rows_of(spec, options, X, samples.targets, preparation)
    weights = row_weights(samples.y, class_weight, samples.weights)
    return Prepared(rows, samples.targets, weights, preparation, options.get("signs"), options.get("groups"))


def shaped(spec, options: dict, X, storage: str, weights, spent: bool = False) -> tuple:
    """Return values stored, scaled and with the bias that the options ask for, and their preparation.

    Behind a kernel the bias and the type are the kernel's own.
    """
    if options.get("kernel") == "precomputed" and isinstance(X, np.ndarray):  # which stay where they are
        return X, Preparation("none", None, None, 0.0, X.shape[1], width=X.shape[1])
    if spec.rows is not None:
        return prepare(X, options["scale"], 0.0, storage, weights=weights, missing=options.get("missing"))
    return prepare(
        X, options["scale"], options["bias"], storage, np.dtype(options["dtype"]), weights,
        penalties=options.get("penalty_weights"),
        free=spec.free_bias or options.get("intercept") == "free", missing=options.get("missing"), spent=spent,
    )  # fmt: skip


def rows_of(spec, options: dict, X, targets, preparation: Preparation) -> tuple:
    """Return prepared values as the rows of a model, behind the kernel where there is one, and their preparation."""
    if spec.rows is not None:
        return spec.rows(X, targets, options, options.get("tell"), preparation.inexact), preparation
    return prepared_rows(X, preparation, options["threads"]), with_free_bias(spec, preparation)


def with_free_bias(spec, preparation: Preparation) -> Preparation:
    """Return the preparation with the bias that a model has of its own, last among its coefficients."""
    return replace(preparation, bias=1.0) if spec.free_bias else preparation


def digest_of(values: np.ndarray) -> str:
    """Return the SHA-256 of numbers as float64."""
    return hashlib.sha256(values.astype(np.float64).tobytes()).hexdigest()


@dataclass(frozen=True)
class Described:
    """Stands for rows that the model has taken over: what run.json reports about them."""

    sparse: bool
    nbytes: int
    on_disk: bool = False

    def check(self) -> None:
        """Do nothing: the rows are gone."""


@dataclass(frozen=True, kw_only=True)
class Training(Prepared):
    """The training data of a run: rows, targets, and what run.json reports about them."""

    path: str
    spec: Any  # the model, which may depend on the labels: ``Spec.of_classes``
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
    ids: tuple[str, ...] | None = None  # names of the rows, where the data have a column of them

    @property
    def sides(self) -> list:
        """Return the labels of a classifier; none of a regression."""
        labels = self.labels or {}
        return labels.get("classes") or list(labels.values())

    def identity(self) -> dict:
        """Return the hashes by which two runs are known to have the same data, weights, names and labels."""
        names = None
        if self.names is not None or self.label_names is not None:
            names = hashlib.sha256(repr((self.names, self.label_names)).encode("utf-8", "backslashreplace")).hexdigest()
        numbers = [label for label in self.sides if label != "rest"] if isinstance(self.label_texts, Spelled) else []
        of_features = {"penalty": self.penalties, "signs": self.signs, "groups": self.groups}
        given = {f"{name}_sha256": digest_of(values) for name, values in of_features.items() if values is not None}
        return {
            "data_sha256": self.sha256,
            "weights_sha256": None if self.weights is None else digest_of(self.weights),
            **({} if names is None else {"names_sha256": names}),
            **({"labels": finite(self.labels)} if numbers and are_texts(numbers) else {}),
            **given,
        }

    def description(self) -> dict:
        return {
            "path": self.path, "sha256": self.sha256, "n_samples": self.shape[0], "n_features": self.shape[1],
            "nnz": self.nnz, "storage": "shards" if self.on_disk else "sparse" if self.rows.sparse else "dense",
            "bytes": self.rows.nbytes, **({} if self.names is None else {"feature_names": list(self.names)}),
            **({} if self.label_names is None else {"label_names": list(self.label_names)}),
            **({} if self.form is None else {"table": self.form.record()}),
        }  # fmt: skip

    def check(self) -> None:
        """Raise where files that are read in every pass have changed since the last one."""
        self.rows.check()

    def without_rows(self) -> Training:
        """Return the same without its rows in memory, for a model with a copy of its own."""
        return self if self.on_disk else replace(self, rows=Described(self.rows.sparse, self.rows.nbytes))

    @property
    def on_disk(self) -> bool:
        """Tell whether passes read the data from files."""
        return self.rows.on_disk

    def close(self) -> None:
        """Free threads and cluster."""
        if self.on_disk:
            self.rows.close()

    def preparation_record(self) -> dict:
        """Return scaling and bias for run.json: new data are prepared alike."""
        p = self.preparation
        record = {"scaling": p.kind, "scale": p.scale, "shift": p.shift, "bias": p.bias}
        record |= {} if p.fill is None else {"fill": p.fill}
        return record if p.columns is None else {**record, "features": p.numbers}


@dataclass(frozen=True)
class TestData:
    """Data of ``--test``, prepared like the training data."""

    path: str
    # ndarray or csr_array of shape (m, d) or (m, d + 1), or HeldOutRows: what the weights of a step are multiplied with
    X: Any
    targets: np.ndarray  # shape (m,)
    sha256: str
    baselines: dict  # score of the best constant, by name; None for R^2

    def description(self) -> dict:
        known = {name: value for name, value in self.baselines.items() if value is not None}
        return {"path": self.path, "sha256": self.sha256, "n_samples": self.X.shape[0], "baselines": known}
