"""Data prepared, as rows: those of a file, of arrays, or of the training part of a fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from screenpath.catalogue.builders import row_weights
from screenpath.data.files.prepare import Preparation, prepare
from screenpath.rows.memory import prepared_rows


@dataclass(frozen=True)
class Samples:
    """The raw data."""

    X: Any  # csr_array or ndarray of shape (n, d): in the units of the file; an ndarray needs dense storage
    y: np.ndarray  # y, targets: shape (n,): labels of the file and what the model makes of them
    targets: np.ndarray
    # shape (n,): how often each sample stands in the data, in training and held-out parts alike
    weights: np.ndarray | None = None

    def part(self, index: np.ndarray) -> Samples:
        """Return some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        return Samples(self.X[index], self.y[index], self.targets[index], weights)


@dataclass(frozen=True)
class Prepared:
    """What a model is built of."""

    rows: Any
    targets: np.ndarray | None  # shape (n,), or None once the model has been built
    weights: np.ndarray | None  # shape (n,): class and sample weights together
    preparation: Preparation


def prepared(spec, options: dict, samples: Samples, class_weight=None, storage: str = "auto") -> Prepared:
    """Return samples as a model takes them; ``class_weight`` as of ``catalogue.builders.row_weights``."""
    X, preparation = shaped(spec, options, samples.X, storage, samples.weights)
    rows, preparation = rows_of(spec, options, X, samples.targets, preparation)
    return Prepared(rows, samples.targets, row_weights(samples.y, class_weight, samples.weights), preparation)


def shaped(spec, options: dict, X, storage: str, weights) -> tuple:
    """Return values stored, scaled and with the bias that the options ask for, and their preparation.

    Behind a kernel the bias and the type are the kernel's own.
    """
    if spec.rows is not None:
        return prepare(X, options["scale"], 0.0, storage, weights=weights)
    return prepare(
        X, options["scale"], options["bias"], storage, np.dtype(options["dtype"]), weights,
        penalties=options.get("penalty_weights"),
        free=options.get("intercept") == "free" or (spec.free_bias and np.dtype(options["dtype"]) != np.float64),
    )  # fmt: skip  # l1svm centres its columns itself, with centres of the type of the rows


def rows_of(spec, options: dict, X, targets, preparation: Preparation) -> tuple:
    """Return prepared values as the rows of a model, behind the kernel where there is one, and their preparation."""
    if spec.rows is not None:
        return spec.rows(X, targets, options, options.get("tell"), preparation.inexact), preparation
    return prepared_rows(X, preparation, options["threads"]), with_free_bias(spec, preparation)


def with_free_bias(spec, preparation: Preparation) -> Preparation:
    """Return the preparation with the bias that a model has of its own, last among its coefficients."""
    return replace(preparation, bias=1.0) if spec.free_bias else preparation
