"""Training data that stay on disk: shards of rows, on this machine or on a cluster's workers, and shards of columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from screenpath.catalogue.builders import checked_weights, row_weights
from screenpath.data.files.prepare import checked_penalties, say_nearly_constant
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.safe.needs import Shape
from screenpath.data.safe.wide import is_wide
from screenpath.data.shards.column_shards import ColumnFolder
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import UsageError
from screenpath.inputs.loaded import Training
from screenpath.inputs.reading import (
    class_weights,
    coded,
    name_of,
    named_cluster,
    open_shards,
    read_weights,
    targets_of,
)
from screenpath.rows.column_shards import ColumnShards
from screenpath.rows.shards import ShardRows

SMALLER = "convert with a smaller `block_mb`"


def streamed(spec, options: dict, limit: MemoryLimit, tell=None) -> Training | None:
    """Return the training data of a shard folder whose rows or columns stay on disk; None where they are to be read."""
    folder, source = open_shards(options), name_of(options["data"])
    if not isinstance(folder, ColumnFolder):
        stays = spec.streams and not _fits_narrowed(folder, options)
        return _stream_shards(spec, options, limit, folder, tell) if stays else None
    needed = spec.in_memory(options)
    if spec.streams_columns and needed is None:
        return _stream_columns(spec, options, limit, folder, tell)
    if spec.streams_columns and tell is not None:
        tell(f"{source}: `{needed}` needs the data in memory, where the columns are read")
    if named_cluster(options) and not spec.spreads:
        raise UsageError(f"{folder.path} was converted by columns", "convert again with `by=rows`")
    return None


def _stream_shards(spec, options: dict, limit: MemoryLimit, folder: ShardFolder, tell=None) -> Training:
    """Return the training data of a shard folder: its rows stay on disk."""
    if np.dtype(options["dtype"]) != folder.dtype and options["dtype"] != "float64":
        raise UsageError(
            f"{folder.path} holds {folder.dtype} values", f"convert with `dtype={options['dtype']}`, or leave it out"
        )
    limit.check_vectors(spec.needs.vectors(Shape(folder.n, folder.d, 0, True)), folder.n, folder.d, options["data"])
    y = folder.joined("targets")
    options = coded(options, folder.label_names or folder.spelled)
    targets, labels = targets_of(spec, options, y, options["data"])
    given = checked_weights(y, read_weights(options.get("weights")))
    weights = row_weights(y, class_weights(options.get("class_weight"), options["label_texts"]), given)
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
    say_nearly_constant(p, folder.names, options["data"], tell)
    if spec.free_bias:  # the model's own, last among its coefficients
        p = replace(p, bias=1.0)
    what: dict[str, Any] = {"names": folder.names, "label_names": folder.label_names, "form": folder.form}
    what["label_texts"] = options["label_texts"]
    return Training(
        options["data"], rows, targets, labels, weights, p, folder.sha256, shape, folder.nnz, vectors, **what
    )


def _stream_columns(spec, options: dict, limit: MemoryLimit, folder: ColumnFolder, tell=None) -> Training:
    """Return the training data of a folder of shards by columns, which stay on disk."""
    source = options["data"]
    if options["dtype"] != "float64":
        raise UsageError("`dtype=float32` is that of values in memory", "leave it out: columns keep theirs on disk")
    folder.check_width(options["n_features"])
    if tell is not None:
        for notice in folder.meta["notices"]:
            tell(f"{source}: {notice}")
    bias = options["bias"]
    shape = Shape(folder.n, folder.columns.n + (bias != 0.0), folder.nnz, False)
    limit.check_vectors(spec.needs.vectors(shape), shape.n, shape.d, source)
    y = folder.labels()
    options = coded(options, folder.label_names or folder.spelled)
    targets, labels = targets_of(spec, options, y, source)
    given = checked_weights(y, read_weights(options.get("weights")))
    weights = row_weights(y, class_weights(options.get("class_weight"), options["label_texts"]), given)
    penalties = checked_penalties(read_weights(options.get("penalty_weights"), "feature"), folder.d, folder.numbers)
    columns = ColumnShards(folder, options["scale"], options["storage"], given, penalties, options["threads"], bias)
    classes = len((labels or {}).get("classes", (0,)))
    vectors = spec.needs.vectors(replace(shape, stored=columns.size, dense=not columns.sparse, classes=classes))
    limit.check(vectors + columns.passing, f"a path on {source} ({shape.n:,} x {shape.d:,})", SMALLER)
    limit.promised = vectors + columns.passing
    p = columns.preparation
    say_nearly_constant(p, folder.names, source, tell)
    if spec.free_bias:  # the model's own, last among its coefficients
        p = replace(p, bias=1.0)
    what: dict[str, Any] = {"names": folder.names, "label_names": folder.label_names, "form": folder.form}
    what["label_texts"] = options["label_texts"]
    return Training(
        source, columns, targets, labels, weights, p, folder.sha256, (folder.n, folder.d), folder.nnz,
        vectors + columns.passing, penalties=penalties, **what,
    )  # fmt: skip


def _shard_rows(folder: ShardFolder, options: dict, *arguments, limit: MemoryLimit, **more) -> ShardRows:
    """Return the rows of a folder on this machine, or on the cluster that was asked for."""
    scheduler = options.get("scheduler")
    if scheduler is None:
        return ShardRows(folder, *arguments, threads=options["threads"], limit=limit, **more)
    from screenpath.rows.cluster import ClusterRows
    from screenpath.rows.dask_cluster import connect

    client = connect(scheduler, options["connect_timeout"], options.get("tell"))
    try:
        return ClusterRows(client, folder, *arguments, limit=limit, **more)
    except BaseException:
        client.close()
        raise


def _fits_narrowed(folder: ShardFolder, options: dict) -> bool:
    """Tell whether a shard folder is so wide that its values in memory take less than one vector of all features."""
    width = folder.d if options["n_features"] is None else folder.checked_width(options["n_features"])
    return is_wide(width, folder.nnz) and not named_cluster(options)
