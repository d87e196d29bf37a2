"""Training data that stay on disk: shards of rows, on this machine or on a cluster's workers, and shards of columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.data.files.prepare import checked_penalties, say_nearly_constant
from screenpath.data.safe.memory import MemoryLimit, in_force
from screenpath.data.safe.needs import Shape
from screenpath.data.safe.wide import is_wide
from screenpath.data.shards.column_shards import ColumnFolder
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import UsageError
from screenpath.inputs.loaded import Training
from screenpath.inputs.reading import learned, name_of, named_cluster, open_shards, read_weights
from screenpath.inputs.rows import with_free_bias
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


def _say_notices(folder, source: str, tell) -> None:
    """Tell what the conversion noticed."""
    for notice in folder.meta["notices"] if tell is not None else ():
        tell(f"{source}: {notice}")


def _stream_shards(spec, options: dict, limit: MemoryLimit, folder: ShardFolder, tell=None) -> Training:
    """Return the training data of a shard folder: its rows stay on disk."""
    if np.dtype(options["dtype"]) != folder.dtype and options["dtype"] != "float64":
        raise UsageError(
            f"{folder.path} holds {folder.dtype} values", f"convert with `dtype={options['dtype']}`, or leave it out"
        )
    limit.check_vectors(spec.needs.vectors(Shape(folder.n, folder.d, 0, True)), folder.n, folder.d, options["data"])
    _say_notices(folder, options["data"], tell)
    options, known = learned(spec, options, folder, folder.joined("targets"), options["data"])
    classes = len((known["labels"] or {}).get("classes", (0,)))
    rows = _shard_rows(
        folder, {**options, "tell": tell}, options["scale"], options["bias"], options["storage"], options["n_features"],
        limit=limit, weights=known["sample_weights"], free=options.get("intercept") == "free",
    )  # fmt: skip
    vectors = rows.needs(spec.needs, bool(options["scale"] != "none" or options["bias"]), classes)
    limit.check(vectors, f"a path on {options['data']} ({rows.n:,} x {rows.raw_d:,})")
    return _training(spec, folder, rows, (rows.n, rows.raw_d), vectors, options["data"], tell, known)


def _stream_columns(spec, options: dict, limit: MemoryLimit, folder: ColumnFolder, tell=None) -> Training:
    """Return the training data of a folder of shards by columns, which stay on disk."""
    source = options["data"]
    if options["dtype"] != "float64":
        raise UsageError("`dtype=float32` is that of values in memory", "leave it out: columns keep theirs on disk")
    folder.check_width(options["n_features"])
    _say_notices(folder, source, tell)
    bias = options["bias"]
    shape = Shape(folder.n, folder.columns.n + (bias != 0.0), folder.nnz, False)
    limit.check_vectors(spec.needs.vectors(shape), shape.n, shape.d, source)
    options, known = learned(spec, options, folder, folder.labels(), source)
    penalties = checked_penalties(read_weights(options.get("penalty_weights"), "feature"), folder.d, folder.numbers)
    given, classes = known["sample_weights"], len((known["labels"] or {}).get("classes", (0,)))
    columns = ColumnShards(folder, options["scale"], options["storage"], given, penalties, options["threads"], bias)
    vectors = spec.needs.vectors(replace(shape, stored=columns.size, dense=not columns.sparse, classes=classes))
    vectors += columns.passing
    limit.check(vectors, f"a path on {source} ({shape.n:,} x {shape.d:,})", SMALLER)
    return _training(
        spec, folder, columns, (folder.n, folder.d), vectors, source, tell, {**known, "penalties": penalties}
    )


def _training(spec, folder, rows, shape: tuple, vectors: int, source: str, tell, known: dict) -> Training:
    """Return what is known of data that stay in a folder; the limit in force promises their vectors."""
    in_force().promised = vectors
    say_nearly_constant(rows.preparation, folder.names, source, tell)
    return Training(
        path=source, rows=rows, preparation=with_free_bias(spec, rows.preparation), sha256=folder.sha256, shape=shape,
        nnz=folder.nnz, vectors=vectors, **known,
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
