"""From the names of files, or arrays, to rows, targets and their descriptions."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from screenpath.data import needs
from screenpath.data.arrays import dataset_of
from screenpath.data.convert import cached_shards
from screenpath.data.dataset import Dataset
from screenpath.data.frames import check_names
from screenpath.data.labels import are_targets
from screenpath.data.libsvm import BLOCK, read_libsvm
from screenpath.data.memory import MemoryLimit, in_force, private_size
from screenpath.data.needs import Shape
from screenpath.data.prepare import Preparation, prepare, stored_dense
from screenpath.data.shards import ShardFolder, is_shard_folder
from screenpath.data.wide import is_wide
from screenpath.errors import DataError, UsageError
from screenpath.models.builders import checked_weights, row_weights
from screenpath.rows.budget import Allowance
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import parse_gamma
from screenpath.rows.memory import MemoryRows, prepared_rows
from screenpath.rows.shards import ShardRows
from screenpath.runs.record import WIDEST

ARRAYS = "arrays"  # in place of a file's name
TOO_LARGE = "convert the file (screenpath convert) and name the folder with a model that streams it"


@dataclass(frozen=True)
class Described:
    """What is said about rows that are gone.

    Parameters
    ----------
    sparse : bool
    nbytes : int
    """

    sparse: bool
    nbytes: int


@dataclass(frozen=True)
class Training:
    """Data of a run.

    Parameters
    ----------
    path : str
    rows : MemoryRows, ShardRows, GramRows or Described
    targets : ndarray of shape (n,), or None once the model has been built
    labels : dict or None
        Map from +1 and -1 to the labels of the file.
    weights : ndarray of shape (n,) or None
        Class and sample weights together.
    preparation : Preparation
    sha256 : str
        Fingerprint of the values read.
    shape : tuple of int
        Samples, and features of the file.
    nnz : int
    vectors : int
        Bytes that a path's vectors take, as far as there is a limit.
    names : tuple of str or None
        Of the features, where the data was a table.
    """

    path: str
    rows: MemoryRows | ShardRows | GramRows | Described
    targets: np.ndarray | None
    labels: dict | None
    weights: np.ndarray | None
    preparation: Preparation
    sha256: str
    shape: tuple
    nnz: int
    vectors: int = 0
    names: tuple[str, ...] | None = None

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
            **({} if self.names is None else {"feature_names": list(self.names)}),
        }

    def without_rows(self) -> Training:
        """Return the same for a model that does not need the rows any more."""
        return replace(self, rows=Described(self.rows.sparse, self.rows.nbytes))

    @property
    def mapped_bytes(self) -> int:
        """Return the bytes of files that passes map."""
        return self.rows.nbytes if isinstance(self.rows, ShardRows) else 0

    def close(self) -> None:
        """Let go of threads and cluster."""
        if isinstance(self.rows, ShardRows):
            self.rows.close()

    def preparation_record(self) -> dict:
        """Return scaling and bias as run.json keeps them, so that new data can be prepared alike."""
        p = self.preparation
        record = {"scaling": p.kind, "scale": p.scale, "shift": p.shift, "bias": p.bias}
        return record if p.columns is None else {**record, "features": p.numbers}


@dataclass(frozen=True)
class TestData:
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
    X: Any
    targets: np.ndarray
    sha256: str

    def description(self) -> dict:
        """Return what run.json says about the test data."""
        return {"path": self.path, "sha256": self.sha256, "n_samples": self.X.shape[0]}


def named_cluster(options: dict) -> bool:
    """Tell whether the options name a cluster, and refuse two of them."""
    named = [name for name in ("scheduler", "local_cluster") if options.get(name) is not None]
    if len(named) == 2:
        raise UsageError("`scheduler` and `local_cluster` are two clusters", "use one of them")
    if named and options.get("jobs", 1) > 1:
        raise UsageError("`jobs` are processes here, a cluster has its own workers", "use one of the two")
    return bool(named)


def name_of(data) -> str:
    """Return what a run calls its data: the name of a file, or that they are arrays."""
    return data if isinstance(data, str) else ARRAYS


def is_shards(data) -> bool:
    """Tell whether the data are a shard folder."""
    return isinstance(data, str) and is_shard_folder(data)


def read_training(options: dict):
    """Return the training data as the file says, in memory; of wide data the columns that occur."""
    data = read_data(options["data"], options, in_force(), options["n_features"]).narrowed()
    if data.width > WIDEST:  # its number would not be exact as a float64, which files of coefficients are read as
        raise DataError(
            f"{name_of(options['data'])} has {data.width:,} features: no number of a feature is beyond 2^53",
            "check the largest index of the data",
        )
    return data


def say_notices(data: Dataset, source, tell) -> None:
    """Tell what was ignored in a file."""
    for notice in data.notices:
        tell(f"{name_of(source)}: {notice}")


def load_training(spec, options: dict, tell=None, data=None) -> Training:
    """Read and prepare the training data; the limit in force promises what the path will take.

    Parameters
    ----------
    spec : models.spec.Spec
    options : dict
    tell : callable, optional
        Hears of what is ignored in the data, and what a kernel model says about its memory.
    data : Dataset, optional
        What :func:`read_training` has returned already, and somebody keeps.
    """
    limit, kept, source = in_force(), data is not None, name_of(options["data"])
    _check_cluster(spec, options)
    if data is None and spec.streams and is_shards(options["data"]):
        folder = open_shards(options)
        if not _fits_narrowed(folder, options):
            return _stream_shards(spec, options, limit, folder, tell)
    data = read_training(options) if data is None else data
    if tell is not None:
        say_notices(data, source, tell)
    limit.check_vectors(spec.needs.vectors(Shape(data.n, data.d, 0, True)), data.n, data.d, source)
    targets, labels = spec.targets(data.y, options)
    if tell is not None and "classes" in (labels or {}) and are_targets(np.array(labels["classes"])):
        tell(f"hint: {len(labels['classes'])} labels look like the targets of a regression: see lad, svr and quantile")
    given = checked_weights(data.y, read_weights(options.get("weights")))
    weights = row_weights(data.y, class_weights(options.get("class_weight")), given)
    digest, shape, nnz, columns = data.fingerprint(), (data.n, data.width), data.X.nnz, data.columns
    names = data.names
    vectors = ask_for_rows(spec, options, data, labels, kept, limit)
    if spec.rows is not None:
        options = {**kernel_options(options, data), "matrix_memory": matrix_memory(spec, options, data, kept)}
        X, preparation = prepare(data.X, options["scale"], 0.0, options["storage"], weights=given)
        preparation = replace(preparation, columns=columns, width=shape[1])
        del data
        rows = spec.rows(X, targets, options, tell, preparation.inexact)
        limit.promised = vectors
        return Training(source, rows, targets, labels, weights, preparation, digest, shape, nnz, vectors, names)
    dtype = np.dtype(options["dtype"])
    X, preparation = prepare(data.X, options["scale"], options["bias"], options["storage"], dtype, given)
    preparation = replace(preparation, columns=columns, width=shape[1])
    if spec.free_bias:  # the model's own, last among its coefficients
        preparation = replace(preparation, bias=1.0)
    rows = prepared_rows(X, preparation, options["threads"])
    return Training(source, rows, targets, labels, weights, preparation, digest, shape, nnz, vectors, names)


def _fits_narrowed(folder: ShardFolder, options: dict) -> bool:
    """Tell whether a shard folder is so wide that its values in memory take less than one vector of all features."""
    width = folder.d if options["n_features"] is None else folder.checked_width(options["n_features"])
    return is_wide(width, folder.nnz) and not named_cluster(options)


def kernel_options(options: dict, data: Dataset) -> dict:
    """Return options in which a gamma of ``NUMBER/d`` counts all features of the file, those without a column too."""
    if data.columns is None or options.get("gamma") is None:
        return options
    return {**options, "gamma": parse_gamma(options["gamma"], data.width)}


def ask_for_rows(spec, options: dict, data: Dataset, labels: dict | None, kept: bool, limit: MemoryLimit) -> int:
    """Ask for what preparing the data and walking a path on them takes, and promise what of it is taken later.

    Returns the bytes of the path's vectors; 0 without a limit.

    Parameters
    ----------
    spec : models.spec.Spec
    options : dict
    data : Dataset
    labels : dict or None
        Map of the labels; more than two classes have weights each.
    kept : bool
        Whether the data stays in memory when its prepared rows are there.
    limit : MemoryLimit

    Raises
    ------
    ResourceError
    """
    if not limit:
        return 0
    shape = shape_of(data, spec, options, labels)
    rows, way = needs.preparing(shape, data.nnz, options)
    vectors = spec.needs.vectors(shape)
    later = vectors + spec.needs.build(shape)
    X, source = data.X, name_of(options["data"])
    left = [] if kept else [X.data, X.indices, X.indptr] if shape.dense or options["bias"] else [X.data]
    freed = 0 if rows == 16 * data.n else private_size(*left)
    limit.check(max(rows + way, rows + later - freed), f"a path on {source} ({data.n:,} x {data.d:,})", TOO_LARGE)
    limit.promised = later
    return vectors


def matrix_memory(spec, options: dict, data: Dataset, kept: bool) -> Allowance | None:
    """Return what ``--max-memory`` leaves for a kernel matrix; in a cross-validation each fold has one as well.

    It follows from the data and the options alone: the same command takes the same steps.
    """
    if options["max_memory"] is None:
        return None
    folds = options.get("folds_at_once", 0)
    workers = folds if folds > 1 else 0
    one = spec.needs.beside(shape_of(data, spec, options, None)) + (12 * data.nnz + 8 * data.n) * kept
    return Allowance.of(options["max_memory"], one * (1 + folds) + needs.KERNEL_PROCESS * (1 + workers), 1 + folds)


def shape_of(data, spec, options: dict, labels: dict | None) -> Shape:
    """Return the shape of the prepared rows of a data set."""
    o = {**options, "bias": 0.0, "dtype": "float64"} if spec.rows is not None else options
    dense = stored_dense(data.X, options["storage"])
    return needs.shape_of(data.n, data.d, data.nnz, o, dense, len((labels or {}).get("classes", (0,))))


def _stream_shards(spec, options: dict, limit: MemoryLimit, folder: ShardFolder, tell=None) -> Training:
    """Return the training data of a shard folder: its rows stay on disk."""
    if np.dtype(options["dtype"]) != folder.dtype and options["dtype"] != "float64":
        raise UsageError(
            f"{folder.path} holds {folder.dtype} values", f"convert with `dtype={options['dtype']}`, or leave it out"
        )
    limit.check_vectors(spec.needs.vectors(Shape(folder.n, folder.d, 0, True)), folder.n, folder.d, options["data"])
    y = folder.joined("targets")
    targets, labels = spec.targets(y, options)
    given = checked_weights(y, read_weights(options.get("weights")))
    weights = row_weights(y, class_weights(options.get("class_weight")), given)
    classes = len((labels or {}).get("classes", (0,)))
    del y
    told = {**options, "tell": tell}
    rows = _shard_rows(
        folder, told, options["scale"], options["bias"], options["storage"], options["n_features"], limit=limit,
        weights=given,
    )  # fmt: skip
    vectors = rows.needs(spec.needs, bool(options["scale"] != "none" or options["bias"]), classes)
    limit.check(vectors, f"a path on {options['data']} ({rows.n:,} x {rows.raw_d:,})")
    limit.promised = vectors
    shape, p = (rows.n, rows.raw_d), rows.preparation
    return Training(options["data"], rows, targets, labels, weights, p, folder.sha256, shape, folder.nnz, vectors)


def _shard_rows(folder: ShardFolder, options: dict, *arguments, limit: MemoryLimit, **more) -> ShardRows:
    """Return the rows of a folder on this machine, or on the cluster that was asked for."""
    scheduler, local = options.get("scheduler"), options.get("local_cluster")
    if scheduler is None and local is None:
        return ShardRows(folder, *arguments, threads=options["threads"], limit=limit, **more)
    if local is not None:
        limit.lend(local, needs.DASK_WORKER, 0, f"{local} workers", "use a smaller `local_cluster`")
    from screenpath.rows.cluster import ClusterRows
    from screenpath.rows.dask_cluster import close, connect

    client, cluster = connect(scheduler, local, options["connect_timeout"], options.get("tell"))
    try:
        return ClusterRows(client, cluster, folder, *arguments, limit=limit, **more)
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
    if not is_shards(options["data"]):
        raise UsageError("a cluster reads shards, not text", "convert first: screenpath convert DATA SHARDS")


def open_shards(options: dict) -> ShardFolder:
    """Open the shard folder DATA; what is resumed must hold the same data, so its content is compared too."""
    folder = ShardFolder(options["data"], content=bool(options.get("resume")))
    folder.check_indices(options["zero_based"])
    return folder


def read_data(path, options: dict, limit: MemoryLimit, n_features: int | None = None) -> Dataset:
    """Read a text file, a shard folder or what ``--cache`` kept of a text file into memory.

    Raises
    ------
    DataError, UsageError, ResourceError
    """
    if not isinstance(path, str):
        return dataset_of(path, ARRAYS)
    zero_based = options["zero_based"]
    if is_shard_folder(path):
        folder = open_shards({**options, "data": path})
    elif options.get("cache"):
        if str(path) == "-":
            raise UsageError("`cache` keeps files, not standard input", "leave out `cache`, or name a file")
        folder = cached_shards(path, options["cache"], zero_based, options["max_memory"])
    else:
        folder = None
    if folder is None:
        block = BLOCK // 4 if limit else BLOCK  # what a block is parsed into is many times its size
        return read_libsvm(path, n_features=n_features, zero_based=zero_based, block=block, limit=limit)
    limit.check(folder.dataset_bytes(), f"{path} in memory", TOO_LARGE)
    return folder.dataset(n_features)


def class_weights(given):
    """Return the values of ``class_weight`` as :func:`row_weights` takes them.

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
                f"`class_weight='{text}'` is not LABEL=WEIGHT", "write for example `class_weight=1=5`, or balanced"
            ) from None
        if pair[0] in weights:
            raise UsageError(f"`class_weight` names the label {label} twice", "give each label one weight")
        weights[pair[0]] = pair[1]
    return weights


def read_weights(path):
    """Return the numbers of a weights file, one a line; arrays, and None, as they are.

    Raises
    ------
    DataError
        With file, line and token, for a file that cannot be read or a line that is not a number.
    """
    if path is None or not isinstance(path, str):
        return path
    weights = array("d")
    try:
        with open(path, encoding="utf-8") as file:
            for k, line in enumerate(file):
                try:
                    weights.append(float(line))
                except ValueError:
                    raise DataError(
                        f"{path}, line {k + 1}: the weight is not a number: '{line.strip()}'",
                        "one number a line, one line a sample",
                    ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the weights cannot be read ({getattr(error, 'strerror', None) or error})",
            "one number a line, one line a sample",
        ) from None
    return np.array(weights)


def load_test(spec, options: dict, training: Training) -> TestData:
    """Read the test data and prepare it like the training data.

    Features that the training data lacks have no coefficient and are left out.
    """
    limit = in_force()
    data = read_data(options["test"], options, limit)
    check_names(data.names, training.names)
    targets, _ = spec.targets(data.y, options, training.labels or {})
    d = training.preparation.n_features
    source = name_of(options["test"])
    limit.check(held_out_bytes(data, d, training.rows.sparse, options), f"{source}, prepared", "leave it out")
    X = training.preparation.narrowed(sp.csr_array(data.X))
    if X.shape[1] > d:
        X = X[:, :d]
    elif X.shape[1] < d:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    prepared = training.preparation.apply(X if training.rows.sparse else X.toarray())
    digest = data.fingerprint()
    del data, X
    if spec.rows is not None:
        prepared = training.rows.held_out(prepared)  # type: ignore[union-attr]  # behind a kernel they are GramRows
    return TestData(source, prepared, targets, digest)


def held_out_bytes(data: Dataset, d: int, sparse: bool, options: dict) -> int:
    """Return the bytes of test data prepared like the training data, copies on the way included."""
    cut = 12 * data.nnz if data.d > d else 0
    shape = needs.shape_of(data.n, d, data.nnz, options, not sparse)
    rows, way = needs.preparing(shape, data.nnz, options)
    return cut + way + (3 * rows if shape.dense else rows)
