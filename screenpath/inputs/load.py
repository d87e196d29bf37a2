"""From the names of files, or arrays, to rows, targets and their descriptions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.data.files.arrays import canonical
from screenpath.data.files.dataset import Dataset
from screenpath.data.files.frames import found_in
from screenpath.data.files.prepare import checked_penalties, say_nearly_constant, stored_dense
from screenpath.data.files.read import read_like
from screenpath.data.safe import needs
from screenpath.data.safe.memory import MemoryLimit, in_force, private_size
from screenpath.data.safe.needs import Bytes, Shape
from screenpath.data.safe.wide import check_width
from screenpath.data.words.labels import are_targets, recoded
from screenpath.errors import UsageError
from screenpath.inputs.loaded import TestData, Training
from screenpath.inputs.reading import (
    TOO_LARGE,
    coded,
    is_shards,
    learned,
    name_of,
    named_cluster,
    read_data,
    read_weights,
)
from screenpath.inputs.rows import rows_of, shaped
from screenpath.numbers import sparse as sp
from screenpath.rows.budget import Allowance, free_memory

ON_DISK = "leave the columns on disk: convert the data with `by=columns` (screenpath convert), and name the folder"
FILLED = 0.25  # share of the free memory that rows may take which are kept dense for their scaling


def read_training(options: dict):
    """Return the training data as the file says, in memory; of wide data the columns that occur."""
    data = read_data(options["data"], options, in_force(), options["n_features"]).narrowed()
    check_width(name_of(options["data"]), data.width)
    return data


def say_notices(data: Dataset, source, tell) -> None:
    """Tell what was ignored in a file."""
    for notice in data.notices:
        tell(f"{name_of(source)}: {notice}")


def load_training(spec, options: dict, tell=None, data=None) -> Training:
    """Read and prepare the training data; the limit in force promises what the path will take.

    ``tell`` hears of what is ignored in the data, and what a kernel model says about its memory. ``data`` is what
    :func:`read_training` has returned already, and somebody keeps.
    """
    limit, kept, source = in_force(), data is not None, name_of(options["data"])
    _check_cluster(spec, options)
    if data is None and is_shards(options["data"]) and (spec.streams or spec.streams_columns):
        from screenpath.inputs.on_disk import streamed

        training = streamed(spec, options, limit, tell)
        if training is not None:
            return training
    data = read_training(options) if data is None else data
    if tell is not None and not kept:
        say_notices(data, source, tell)
    (n, d), columns = data.stored.shape, data.columns
    limit.check_vectors(spec.needs.vectors(Shape(n, d, 0, True)), n, d, source)
    options, known = learned(spec, options, data, data.y, source, data.text_label)
    many = "classes" in (known["labels"] or {}) and data.label_names is None
    if tell is not None and many and are_targets(np.array(known["labels"]["classes"])):
        count = len(known["labels"]["classes"])
        tell(f"hint: {count} labels look like the targets of a regression: see lad, svr and quantile")
    known |= {"sha256": data.fingerprint(), "shape": (n, data.width), "nnz": data.nnz}
    known["penalties"] = checked_penalties(
        read_weights(options.get("penalty_weights"), "feature"), data.width or d, columns
    )
    options = filled(options, data, source, limit, tell)
    vectors = ask_for_rows(spec, options, data, known["labels"], kept, limit)
    options = {**options, "penalty_weights": known["penalties"], "tell": tell}
    if spec.rows is not None:
        options = {**kernel_options(options, data), "matrix_memory": matrix_memory(spec, options, data, kept)}
    X, preparation = shaped(spec, options, data.stored, options["storage"], known["sample_weights"])
    preparation = replace(preparation, columns=columns, width=data.width)
    say_nearly_constant(preparation, data.names, source, tell)
    del data
    rows, preparation = rows_of(spec, options, X, known["targets"], preparation)
    if spec.rows is not None:
        limit.promised = vectors
    return Training(path=source, rows=rows, preparation=preparation, vectors=vectors, **known)


def filled(options: dict, data: Dataset, source: str, limit: MemoryLimit, tell) -> dict:
    """Return options in which sparse rows are kept dense where ``scale=standard`` would fill them, if they fit so."""
    if options["scale"] != "standard" or options["storage"] != "auto" or stored_dense(data.stored, "auto"):
        return options
    size, free = 8 * data.n * (data.d + 1), free_memory()
    if size > FILLED * (free if limit.left is None else min(free, limit.left)):
        return options  # which prepare refuses, and names what else to do
    if tell is not None:
        tell(f"{source}: `scale=standard` subtracts the mean: the rows are kept dense, {size / 1e6:,.0f} MB")
    return {**options, "storage": "dense"}


def kernel_options(options: dict, data: Dataset) -> dict:
    """Return options in which a gamma of ``NUMBER/d`` counts all features of the file, those without a column too."""
    if data.columns is None or options.get("gamma") is None:
        return options
    from screenpath.rows.kernel_functions import parse_gamma

    return {**options, "gamma": parse_gamma(options["gamma"], data.width)}


def ask_for_rows(spec, options: dict, data: Dataset, labels: dict | None, kept: bool, limit: MemoryLimit) -> int:
    """Ask for what preparing the data and walking a path on them takes, and promise what of it is taken later.

    Returns the bytes of the path's vectors; 0 without a limit. ``kept``: the data stays in memory when its prepared
    rows are there.
    """
    if not limit:
        return 0
    shape = shape_of(data, spec, options, labels)
    asked = Bytes.of(spec.needs, shape, data.nnz, options)
    X, source = data.stored, name_of(options["data"])
    left = [] if kept else [X.data, X.indices, X.indptr] if shape.dense or options["bias"] else [X.data]
    freed = 0 if asked.rows == 16 * data.n else private_size(*left)
    hint = ON_DISK if spec.streams_columns and spec.in_memory(options) is None else TOO_LARGE
    limit.check(asked.peak(freed), f"a path on {source} ({data.n:,} x {data.d:,})", hint)
    limit.promised = asked.vectors + asked.build
    return asked.vectors


def matrix_memory(spec, options: dict, data: Dataset, kept: bool) -> Allowance | None:
    """Return what ``--max-memory`` leaves for a kernel matrix; in a cross-validation each fold has one as well.

    It follows from the data and the options alone: the same command takes the same steps.
    """
    if options["max_memory"] is None:
        return None
    folds = options.get("folds_at_once", 0)
    workers = folds if folds > 1 else 0
    shape = shape_of(data, spec, options, None)
    one = spec.needs.vectors(shape) + spec.needs.build(shape) + shape.rows + (12 * data.nnz + 8 * data.n) * kept
    return Allowance.of(options["max_memory"], one * (1 + folds) + needs.KERNEL_PROCESS * (1 + workers), 1 + folds)


def shape_of(data, spec, options: dict, labels: dict | None) -> Shape:
    """Return the shape of the prepared rows of a data set."""
    o = {**options, "bias": 0.0, "dtype": "float64"} if spec.rows is not None else options
    dense = stored_dense(data.stored, options["storage"])
    return needs.shape_of(data.n, data.d, data.nnz, o, dense, len((labels or {}).get("classes", (0,))))


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


def load_test(spec, options: dict, training: Training) -> TestData:
    """Read the test data and prepare it like the training data.

    Features that the training data lacks have no coefficient and are left out.
    """
    limit = in_force()
    data = _read_test(options, training, limit)
    places = found_in(data.names, training.names)
    source = name_of(options["test"])
    y = recoded(data.y, data.label_names, training.label_names, source, data.spelled, training.sides)
    options = coded(options, training.label_texts)
    targets, _ = spec.targets(y, options, training.labels or {})
    d = training.preparation.n_features
    limit.check(held_out_bytes(data, d, training.rows.sparse, options), f"{source}, prepared", "leave it out")
    X = sp.csr_array(data.X) if places is None else canonical(sp.csr_array(data.X)[:, places])
    X = training.preparation.narrowed(X)
    if X.shape[1] > d:
        X = X[:, :d]
    elif X.shape[1] < d:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    prepared = training.preparation.apply(X if training.rows.sparse else X.toarray())
    digest = data.fingerprint()
    del data, X
    if spec.rows is not None:
        prepared = training.rows.held_out(prepared)  # behind a kernel they are GramRows
    return TestData(source, prepared, targets, digest)


def _read_test(options: dict, training: Training, limit: MemoryLimit) -> Dataset:
    """Read the test data; of a table the columns that the training data has, by their names."""
    path = options["test"]
    if training.form is None or not isinstance(path, str) or is_shards(path):
        return read_data(path, {**options, "target": None, "one_hot": ()}, limit)
    return read_like(path, form=training.form, limit=limit)


def held_out_bytes(data: Dataset, d: int, sparse: bool, options: dict) -> int:
    """Return the bytes of test data prepared like the training data, copies on the way included."""
    cut = 12 * data.nnz if data.d > d else 0
    shape = needs.shape_of(data.n, d, data.nnz, options, not sparse)
    rows, way = needs.preparing(shape, data.nnz, options)
    return cut + way + (3 * rows if shape.dense else rows)
