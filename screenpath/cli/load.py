"""From the file names of a command to rows, targets and their descriptions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from screenpath.errors import DataError, UsageError
from screenpath.models.builders import row_weights
from screenpath.prepare import Preparation, prepare
from screenpath.read.libsvm import read_libsvm
from screenpath.rows.gram import GramRows
from screenpath.rows.memory import MemoryRows


@dataclass(frozen=True)
class Training:
    """Data of a run.

    Parameters
    ----------
    path : str
    rows : MemoryRows or GramRows
    targets : ndarray of shape (n,)
    labels : dict or None
        Map from +1 and -1 to the labels of the file.
    weights : ndarray of shape (n,) or None
        Class and sample weights together.
    preparation : Preparation
    sha256 : str
        Fingerprint of the values read.
    shape : tuple of int
    nnz : int
    """

    path: str
    rows: MemoryRows | GramRows
    targets: np.ndarray
    labels: dict | None
    weights: np.ndarray | None
    preparation: Preparation
    sha256: str
    shape: tuple
    nnz: int

    @property
    def weights_sha256(self) -> str | None:
        """Return the SHA-256 of the weights."""
        return None if self.weights is None else hashlib.sha256(self.weights.tobytes()).hexdigest()

    def description(self) -> dict:
        """Return what run.json says about the data."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "n_samples": self.shape[0],
            "n_features": self.shape[1],
            "nnz": self.nnz,
            "storage": "sparse" if self.rows.sparse else "dense",
            "bytes": self.rows.nbytes,
        }

    def preparation_record(self) -> dict:
        """Return scaling and bias as run.json keeps them, so that new data can be prepared alike."""
        p = self.preparation
        return {"scaling": p.kind, "scale": p.scale, "shift": p.shift, "bias": p.bias}


@dataclass(frozen=True)
class HeldOut:
    """Data of ``--test``, prepared like the training data.

    Parameters
    ----------
    path : str
    X : ndarray or csr_array of shape (m, d) or (m, d + 1), or HeldOutRows
        What the weights of a step are multiplied with.
    targets : ndarray of shape (m,)
    sha256 : str
    """

    path: str
    X: object
    targets: np.ndarray
    sha256: str

    def description(self) -> dict:
        """Return what run.json says about the test data."""
        return {"path": self.path, "sha256": self.sha256, "n_samples": self.X.shape[0]}


def load_training(spec, options: dict, tell=None) -> Training:
    """Read and prepare the training data; ``tell`` hears what a kernel model says about its memory."""
    data = read_libsvm(options["data"], n_features=options["n_features"], zero_based=options["zero_based"])
    targets, labels = spec.targets(data.y, options)
    weights = row_weights(data.y, class_weights(options.get("class_weight")), read_weights(options.get("weights")))
    digest, shape, nnz = data.fingerprint(), data.X.shape, data.X.nnz
    if spec.rows is not None:
        X, preparation = prepare(data.X, options["scale"], 0.0, options["storage"])
        rows = spec.rows(X, targets, options, tell)
        return Training(options["data"], rows, targets, labels, weights, preparation, digest, shape, nnz)
    dtype = np.dtype(options["dtype"])
    X, preparation = prepare(data.X, options["scale"], options["bias"], options["storage"], dtype)
    if spec.free_bias:  # the model's own, last among its coefficients
        preparation = replace(preparation, bias=1.0)
    rows = MemoryRows(X, options["threads"])
    return Training(options["data"], rows, targets, labels, weights, preparation, digest, shape, nnz)


def class_weights(given):
    """Return the values of ``--class-weight`` as :func:`row_weights` takes them.

    Raises
    ------
    UsageError
        For anything but ``balanced`` alone or LABEL=WEIGHT with every label once.
    """
    if not given:
        return None
    if tuple(given) == ("balanced",):
        return "balanced"
    weights = {}
    for text in given:
        label, _, weight = text.partition("=")
        try:
            pair = float(label), float(weight)
        except ValueError:
            raise UsageError(
                f"--class-weight '{text}' is not LABEL=WEIGHT", "write for example --class-weight 1=5, or balanced"
            ) from None
        if pair[0] in weights:
            raise UsageError(f"--class-weight names the label {label} twice", "give each label one weight")
        weights[pair[0]] = pair[1]
    return weights


def read_weights(path):
    """Return the numbers of a weights file, one a line; None without a file.

    Raises
    ------
    DataError
        With file, line and token, for a file that cannot be read or a line that is not a number.
    """
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the weights cannot be read ({getattr(error, 'strerror', None) or error})",
            "one number a line, one line a sample",
        ) from None
    weights = np.empty(len(lines))
    for k, line in enumerate(lines):
        try:
            weights[k] = float(line)
        except ValueError:
            raise DataError(
                f"{path}, line {k + 1}: the weight is not a number: '{line.strip()}'",
                "one number a line, one line a sample",
            ) from None
    return weights


def load_test(spec, options: dict, training: Training) -> HeldOut:
    """Read the test data and prepare it like the training data.

    Features that the training data lacks have no coefficient and are left out.
    """
    data = read_libsvm(options["test"], zero_based=options["zero_based"])
    targets, _ = spec.targets(data.y, options, training.labels or {})
    d = training.shape[1]
    X = sp.csr_array(data.X)
    if X.shape[1] > d:
        X = X[:, :d]
    elif X.shape[1] < d:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    prepared = training.preparation.apply(X if training.rows.sparse else X.toarray())
    if spec.rows is not None:
        prepared = training.rows.held_out(prepared)
    return HeldOut(options["test"], prepared, targets, data.fingerprint())
