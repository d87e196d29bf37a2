"""From the file names of a command to rows, targets and their descriptions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from screenpath.cli.options import named_cluster
from screenpath.convert import cached_shards
from screenpath.errors import DataError, UsageError
from screenpath.memory import MemoryLimit
from screenpath.models.builders import row_weights
from screenpath.prepare import Preparation, prepare
from screenpath.read.dataset import Dataset
from screenpath.read.libsvm import read_libsvm
from screenpath.read.shards import ShardFolder, is_shard_folder
from screenpath.rows.gram import GramRows
from screenpath.rows.memory import DENSE_FROM, MemoryRows
from screenpath.rows.shards import ShardRows

TOO_LARGE = "convert the file (screenpath convert) and name the folder with a model that streams it, or raise the limit"


@dataclass(frozen=True)
class Training:
    """Data of a run.

    Parameters
    ----------
    path : str
    rows : MemoryRows, ShardRows or GramRows
    targets : ndarray of shape (n,), or None once the model has been built
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
    rows: MemoryRows | ShardRows | GramRows
    targets: np.ndarray | None
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
            "storage": "shards" if isinstance(self.rows, ShardRows) else "sparse" if self.rows.sparse else "dense",
            "bytes": self.rows.nbytes,
        }

    def close(self) -> None:
        """Let go of threads and cluster."""
        if isinstance(self.rows, ShardRows):
            self.rows.close()

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


def read_training(options: dict):
    """Return the training data as the file says, in memory."""
    return read_data(options["data"], options, MemoryLimit(options["max_memory"]), options["n_features"])


def load_training(spec, options: dict, tell=None, data=None) -> Training:
    """Read and prepare the training data.

    Parameters
    ----------
    spec : ModelSpec
    options : dict
    tell : callable, optional
        Hears what a kernel model says about its memory.
    data : Dataset, optional
        What :func:`read_training` has returned already.
    """
    limit = MemoryLimit(options["max_memory"])
    _check_cluster(spec, options)
    if data is None and spec.streams and is_shard_folder(options["data"]):
        return _stream_shards(spec, options, limit)
    data = read_training(options) if data is None else data
    limit.check_vectors(data.n, data.d, options["data"])
    targets, labels = spec.targets(data.y, options)
    weights = row_weights(data.y, class_weights(options.get("class_weight")), read_weights(options.get("weights")))
    digest, shape, nnz = data.fingerprint(), data.X.shape, data.X.nnz
    if spec.rows is not None:
        X, preparation = prepare(data.X, options["scale"], 0.0, options["storage"])
        rows = spec.rows(X, targets, options, tell)
        return Training(options["data"], rows, targets, labels, weights, preparation, digest, shape, nnz)
    dtype = np.dtype(options["dtype"])
    dense = data.density >= DENSE_FROM if options["storage"] == "auto" else options["storage"] == "dense"
    values = data.n * (data.d + 1) if dense else 1.5 * nnz
    limit.check(int(dtype.itemsize * values), f"the rows of {options['data']} ({data.n:,} x {data.d:,})", TOO_LARGE)
    X, preparation = prepare(data.X, options["scale"], options["bias"], options["storage"], dtype)
    if spec.free_bias:  # the model's own, last among its coefficients
        preparation = replace(preparation, bias=1.0)
    rows = MemoryRows(X, options["threads"])
    return Training(options["data"], rows, targets, labels, weights, preparation, digest, shape, nnz)


def _stream_shards(spec, options: dict, limit: MemoryLimit) -> Training:
    """Return the training data of a shard folder: its rows stay on disk."""
    folder = open_shards(options)
    if np.dtype(options["dtype"]) != folder.dtype and options["dtype"] != "float64":
        raise UsageError(
            f"{folder.path} holds {folder.dtype} values", f"convert with --dtype {options['dtype']}, or leave it out"
        )
    y = folder.joined("targets")
    targets, labels = spec.targets(y, options)
    weights = row_weights(y, class_weights(options.get("class_weight")), read_weights(options.get("weights")))
    del y
    rows = _shard_rows(
        folder, options, options["scale"], options["bias"], options["storage"], options["n_features"], limit=limit
    )
    shape = rows.n, rows.raw_d
    return Training(options["data"], rows, targets, labels, weights, rows.preparation, folder.sha256, shape, folder.nnz)


def _shard_rows(folder: ShardFolder, options: dict, *arguments, limit: MemoryLimit) -> ShardRows:
    """Return the rows of a folder on this machine, or on the cluster that was asked for."""
    scheduler, local = options.get("scheduler"), options.get("local_cluster")
    if scheduler is None and local is None:
        return ShardRows(folder, *arguments, threads=options["threads"], limit=limit)
    from screenpath.cluster import close, connect
    from screenpath.rows.cluster import ClusterRows

    client, cluster = connect(scheduler, local)
    try:
        return ClusterRows(client, cluster, folder, *arguments, limit=limit)
    except BaseException:
        close(client, cluster)
        raise


def _check_cluster(spec, options: dict) -> None:
    """Refuse cluster options that have nothing to spread."""
    if not named_cluster(options) or spec.spreads:
        return
    if spec.rows is not None:
        raise UsageError("a kernel run does not go on a cluster: its kernel matrix is in one memory", "leave it out")
    if not spec.streams:
        raise UsageError(
            f"{spec.name} does not run on a cluster: it needs the columns of the data in memory",
            "svm, lad, quantile, svr and sparse-svm do, and the folds of cv",
        )
    if not is_shard_folder(options["data"]):
        raise UsageError("a cluster reads shards, not text", "convert first: screenpath convert DATA SHARDS")


def open_shards(options: dict) -> ShardFolder:
    """Open the shard folder DATA."""
    folder = ShardFolder(options["data"])
    if options["zero_based"] and not folder.meta["zero_based"]:
        raise UsageError(
            f"{folder.path} was converted with indices from 1", "leave out --zero-based, or convert again with it"
        )
    return folder


def read_data(path, options: dict, limit: MemoryLimit, n_features: int | None = None) -> Dataset:
    """Read a text file, a shard folder or what ``--cache`` kept of a text file into memory.

    Raises
    ------
    DataError, UsageError, ResourceError
    """
    zero_based = options["zero_based"]
    if is_shard_folder(path):
        folder = open_shards({**options, "data": path})
    elif options.get("cache"):
        if str(path) == "-":
            raise UsageError("--cache keeps files, not standard input", "leave out --cache, or name a file")
        folder = cached_shards(path, options["cache"], zero_based, options["max_memory"])
    else:
        folder = None
    if folder is None:
        return read_libsvm(path, n_features=n_features, zero_based=zero_based, limit=limit)
    limit.check(3 * folder.nbytes, f"{path} in memory", TOO_LARGE)
    return folder.dataset(n_features)


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
    data = read_data(options["test"], options, MemoryLimit(options["max_memory"]))
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
