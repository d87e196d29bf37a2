"""The data of ``--test``, read and prepared like the training data."""

from __future__ import annotations

import numpy as np

from screenpath.data.files.arrays import canonical, dataset_like, found_in
from screenpath.data.files.dataset import Dataset
from screenpath.data.files.npy import is_npy
from screenpath.data.files.read import read_like
from screenpath.data.safe.memory import MemoryLimit, in_force, preparing, shape_of
from screenpath.data.words.labels import recoded
from screenpath.inputs.load import ARRAYS, CELL_OPTIONS, SEVERAL, coded, given_values, is_shards, name_of, read_data
from screenpath.inputs.rows import TestData, Training
from screenpath.numbers import sparse as sp


def load_test(spec, options: dict, training: Training) -> TestData:
    """Read the test data and prepare them like the training data; features unknown to the model are ignored."""
    limit = in_force()
    data = _read_test(options, training, limit)
    places = found_in(data.names, training.names)
    source = name_of(options["test"])
    y = recoded(data.y, data.label_names, training.label_names, source, data.spelled, training.sides)
    options = coded(options, training.label_texts)
    targets, _ = spec.targets(y, options, training.labels or {})
    d = training.preparation.n_features
    if isinstance(data.stored, np.ndarray):
        X = training.rows.held_out(data.stored)
        baselines = spec.baselines(np.asarray(training.targets), targets, options, training.sample_weights)
        return TestData(source, X, targets, data.fingerprint(), baselines)
    limit.check(held_out_bytes(data, d, training.rows.sparse, options), f"{source}, prepared", "leave it out")
    X = sp.csr_array(data.X) if places is None else canonical(sp.csr_array(data.X)[:, places])
    X = training.preparation.narrowed(X)
    X = X[:, :d] if X.shape[1] > d else X
    if X.shape[1] < d:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    prepared = training.preparation.apply(X if training.rows.sparse else X.toarray())
    digest = data.fingerprint()
    del data, X
    if spec.rows is not None:
        prepared = training.rows.held_out(prepared)  # behind a kernel they are GramRows
    baselines = spec.baselines(np.asarray(training.targets), targets, options, training.sample_weights)
    return TestData(source, prepared, targets, digest, baselines)


def _read_test(options: dict, training: Training, limit: MemoryLimit) -> Dataset:
    """Read the test data; of a table the columns of the training data, found by name."""
    path = options["test"]
    if options.get("kernel") == "precomputed" and is_npy(path):
        return given_values(path, {**options, "target": None}, training.shape[1])
    if not isinstance(path, str):
        data = dataset_like(path, ARRAYS, training.names, training.form, options["missing"])
        training.preparation.check_width(data.X.shape, "the test data")
        return data
    if training.form is None or is_shards(path):
        plain = {name: value for name, value in options.items() if name not in CELL_OPTIONS}
        given = {"target": None, "id": None, "training_rows": training.shape[1]}
        return read_data(path, {**plain, **given, **dict.fromkeys(SEVERAL, ())}, limit)
    return read_like(path, form=training.form, limit=limit)


def held_out_bytes(data: Dataset, d: int, sparse: bool, options: dict) -> int:
    """Return the bytes of prepared test data, copies during preparation included."""
    cut = 12 * data.nnz if data.d > d else 0
    shape = shape_of(data.n, d, data.nnz, options, not sparse)
    rows, way = preparing(shape, data.nnz, options)
    return cut + way + (3 * rows if shape.dense else rows)
