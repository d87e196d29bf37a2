"""Convert data files to a folder of binary shards, block by block, so that data larger than memory can be converted."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from screenpath import __version__
from screenpath.data.files.centring import SINGLE, far_ranges, is_far
from screenpath.data.files.libsvm import BLOCK, no_features
from screenpath.data.files.prepare import ROUNDED_AWAY, column_names
from screenpath.data.files.read import opened, refuse_columns, refuse_indices
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards.blocks import (
    MEMORY_FACTOR,
    label_words,
    rereadable,
    settle,
    stored_as,
    table_blocks,
    text_blocks,
)
from screenpath.data.shards.checks import joint_sha256
from screenpath.data.shards.convert_columns import (
    check_source,
    checked_rows,
    convert_columns,
    finished,
    refuse_out,
    rows_folder,
)
from screenpath.data.shards.shards import COLUMNWISE, ROWWISE, SCHEMA_VERSION, ShardFolder, in_order
from screenpath.data.shards.write_shards import ShardWriter, partial_folder, remove_ours
from screenpath.data.words.labels import label_text
from screenpath.data.words.numerals import FirstTexts, Spelled
from screenpath.errors import DataError, InUseError, ResourceError, RunFolderError, UsageError

BLOCK_MB = 32
SAMPLED = 1 << 16  # bytes of both ends of a file that identify it
CLASSES = 100  # more labels are not listed


def convert(
    sources,
    out,
    *,
    block_mb: float = BLOCK_MB,
    jobs: int = 1,
    zero_based: bool = False,
    n_features: int | None = None,
    storage: str = "auto",
    dtype=np.float64,
    max_memory: int | None = None,
    force: bool = False,
    resume: bool = False,
    target: str | None = None,
    one_hot: str | Sequence[str] = (),
    progress=None,
    origin: dict | None = None,
    by: str = ROWWISE,
) -> ShardFolder:
    """Convert LIBSVM text, CSV or Parquet to a shard folder.

    The blocks in progress bound the memory, about ``8 * block_mb * (jobs + 1)`` megabytes, whatever the size of the
    files. The shards do not depend on ``jobs``.

    Parameters
    ----------
    sources : sequence of path-like
        Files of one kind, whose rows are concatenated; ``-`` is standard input, LIBSVM text or CSV. Compressed files
        are accepted.
    out : path-like
        Folder to make. It appears when complete; after a crash the same call starts again, with ``resume`` after the
        finished shards.
    block_mb : float
        Megabytes of text, or of a table's numbers, per shard.
    jobs : int
        Threads that parse and write.
    zero_based, n_features, dtype
        As :func:`screenpath.read_libsvm`.
    storage : {"auto", "dense", "sparse"}
        ``auto`` stores a shard as a dense array if at least 0.3 of it is stored.
    max_memory : int, optional
        Bytes of private memory this process may take.
    force : bool
        Replace an older folder.
    resume : bool
        Continue an unfinished conversion, or begin it. The text is read again and compared with that of the finished
        shards, but not parsed again. A complete folder is left unchanged.
    target, one_hot : str, str or sequence of str
        Columns of tables, see :func:`screenpath.read_data`.
    progress : callable, optional
        ``progress(rows, bytes)`` after each shard.
    origin : dict, optional
        Stored in meta.json: the key of a cache entry.
    by : {"rows", "columns"}
        What a shard has whole. Shards by columns are made from shards by rows, either a given folder of these or a
        temporary one next to ``out``.

    Returns
    -------
    ShardFolder

    Raises
    ------
    DataError
        With file, line, token and remedy.
    ResourceError
        If ``max_memory`` is too small.
    RunFolderError
        If the folder exists, or the conversion to resume had another text or other settings.
    """
    limit = MemoryLimit(max_memory)
    size = max(int(block_mb * (1 << 20)), BLOCK)
    needed = MEMORY_FACTOR * size * (jobs + 1)
    limit.check(needed, f"converting {jobs} + 1 blocks of {block_mb:g} MB", "use a smaller `block_mb`")
    if by not in (ROWWISE, COLUMNWISE):
        raise UsageError(f"shards are by rows or by columns, not by '{by}'", "use `by=rows` or `by=columns`")
    given = check_source(sources, by)
    if given is not None:
        refuse_columns(str(given), target, one_hot)
        rows = checked_rows(given, zero_based, n_features, np.dtype(dtype))
        return convert_columns(rows, out, size, storage, limit, force, resume)
    how: dict[str, Any] = {
        "size": size, "jobs": jobs, "limit": limit, "zero_based": zero_based, "n_features": n_features,
        "storage": storage, "dtype": np.dtype(dtype), "target": target, "one_hot": one_hot, "progress": progress,
    }  # fmt: skip
    if by == COLUMNWISE:
        refuse_out(out, force, resume)
        asked = {"by": by, "zero_based": zero_based, "dtype": np.dtype(dtype).name, "sources": _names(sources)}
        done = finished(COLUMNWISE, out, {**asked, "column_bytes": size}) if resume else None
        if done is not None:
            return done
        rows = _by_rows(sources, rows_folder(Path(out)), not resume, resume, **how)
        folder = convert_columns(rows, out, size, storage, limit, force, resume)
        remove_ours(rows.path)
        return folder
    return _by_rows(sources, out, force, resume, **how, origin=origin)


def _by_rows(sources, out, force: bool, resume: bool, **how) -> ShardFolder:
    with rereadable(sources, Path(out).resolve().parent) as kept:
        return _convert(kept, sources, out, force, resume, **how)


def _convert(
    sources, names, out, force, resume, *, size, jobs, limit, zero_based, n_features, storage, dtype, target, one_hot,
    progress, origin=None,
) -> ShardFolder:  # fmt: skip
    """Convert sources that can be read repeatedly; ``names`` are those for messages."""
    settled = settle(sources, target, one_hot)
    words: tuple[str, ...] = ()
    if settled is None:
        if (target or one_hot) and isinstance(sources[0], str | os.PathLike) and os.path.isfile(sources[0]):
            with opened(sources[0]) as (_, stream, _):
                refuse_columns(str(names[0]), target, one_hot, stream)
        refuse_columns(str(names[0]), target, one_hot)
        words = label_words(sources, limit)
    else:
        refuse_indices(str(names[0]), zero_based, n_features)
    table = settled.record() if settled is not None else {"label_names": list(words)} if words else {}
    known = {
        "schema_version": SCHEMA_VERSION, "zero_based": zero_based, "dtype": dtype.name,
        "block_bytes": size, "sources": _names(names), **table,
    }  # fmt: skip
    done = finished(ROWWISE, out, known) if resume else None
    if done is not None:
        return done
    settings = {**known, "tool_version": __version__, "n_features": n_features, "storage": storage}
    with closing(ShardWriter(out, force, settings, resume)) as writer:
        shards: list[dict] = []
        seen = _Seen()

        def one(k, block):
            digest = block.digest()
            if k in writer.known:
                return _checked(writer.known[k], digest, block.name), block.nbytes
            data = block.read(zero_based, words, n_features)
            seen = _Seen.of(data.X, data.y, dtype, data.notices, data.spelled)
            X = stored_as(data.X, dtype, block.name)
            return {**writer.write(k, X, data.y, storage), "text": digest, "seen": seen}, block.nbytes

        blocks: Any = (
            text_blocks(sources, size, limit) if settled is None else table_blocks(sources, settled, size, limit)
        )
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for record, read in in_order(pool, jobs, one, enumerate(blocks)):
                    if record["shard"] not in writer.known:
                        writer.note(record)
                    shards.append(record["entry"])
                    seen.add(record["seen"])
                    if progress:
                        progress(seen.rows, read)
            finally:
                pool.shutdown(cancel_futures=True)
        if not seen.rows:
            named = ", ".join(str(source) for source in names)
            raise DataError(f"{named} holds no samples", "a line is 'label index:value index:value ...'")
        if words and not any(shard["nnz"] for shard in shards):
            raise no_features(str(names[0]))
        meta = _meta(names, shards, seen, zero_based, n_features, dtype, size, table.get("label_names"))
        meta = {**meta, **table, **seen.record, "notices": seen.notices_of(settled.form.names if settled else None)}
        writer.finish(meta if origin is None else {**meta, "origin": origin})
    return ShardFolder(out)


class DataCacheWarning(UserWarning):
    """``--cache`` cannot store its copy; the run continues without it."""


def cached_shards(
    path, cache, zero_based: bool = False, max_memory: int | None = None, target: str | None = None, one_hot=()
) -> ShardFolder | None:
    """Return a data file as shards from a cache folder, after converting it if they are missing or damaged.

    An entry is used if it was made from this state of this file, read in this way, and no part has a fault. Returns
    None while another process makes the same entry, and (with a warning) if it cannot be made.
    """
    path = Path(path)
    origin = {**_origin(path, zero_based), "target": target, "one_hot": list(one_hot)}
    key = {name: value for name, value in origin.items() if name not in ("inode", "changed_ns")}
    name = hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:32]
    entry = Path(cache) / f"{path.name}-{name}.shards"
    try:
        return _cached(entry, origin)
    except DataError:  # missing or damaged: convert (again)
        pass
    try:
        # sparse: keeps the stored zeros of the file
        convert(
            [path], entry, block_mb=block_within(max_memory), zero_based=zero_based, storage="sparse",
            max_memory=max_memory, force=True, origin=origin, target=target, one_hot=one_hot,
        )  # fmt: skip
        return ShardFolder(entry)
    except InUseError:
        return None
    except (RunFolderError, ResourceError, OSError) as error:
        with contextlib.suppress(RunFolderError, OSError):  # unfinished shards would keep a full disk full
            remove_ours(partial_folder(entry))
        why = (error.strerror or str(error)) if isinstance(error, OSError) else error.message
        warnings.warn(f"going on without `cache={cache}`: {why}", DataCacheWarning, stacklevel=2)
        return None


def _cached(entry: Path, origin: dict) -> ShardFolder:
    """Return an entry of a cache; a DataError if it is missing, damaged, or made from something else."""
    folder = ShardFolder(entry)
    if folder.meta.get("origin") != origin:
        raise DataError(f"{entry} was not made of this file")
    folder.check()
    return folder


def _origin(path: Path, zero_based: bool) -> dict:
    """Return what distinguishes a text file, and how it is read, from all others."""
    try:
        with open(path, "rb") as file:
            state = os.fstat(file.fileno())
            ends = hashlib.sha256(file.read(SAMPLED))
            file.seek(max(state.st_size - SAMPLED, 0))
            ends.update(file.read(SAMPLED))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", "check the path") from None
    return {
        "path": os.fsencode(path.resolve()).decode("utf-8", "backslashreplace"),
        "bytes": state.st_size,
        "inode": state.st_ino,
        "modified_ns": state.st_mtime_ns,
        "changed_ns": state.st_ctime_ns,  # set by the system, even if somebody resets the other one
        "ends_sha256": ends.hexdigest(),
        "zero_based": zero_based,
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
    }


def block_within(max_memory: int | None) -> float:
    """Return the megabytes of text per shard, fewer if the limit leaves little memory."""
    left = MemoryLimit(max_memory).left
    return BLOCK_MB if left is None else min(BLOCK_MB, max(left / (2 * MEMORY_FACTOR << 20), 1.0))


class _Seen:
    """Totals of the shards so far."""

    def __init__(self):
        self.rows, self.width, self.notices = 0, 1, ()
        self.far: dict[int, list] | None = None  # columns far from 0, with their smallest and largest values
        self.labels: dict | None = {}
        self.first = FirstTexts()

    @staticmethod
    def of(X, y, dtype, notices=(), spelled=None) -> dict:
        """Return the totals of one shard."""
        labels, counts = np.unique(y, return_counts=True)
        pairs = None if labels.size > CLASSES else list(zip(labels.tolist(), counts.tolist(), strict=True))
        return {
            "rows": X.shape[0],
            "width": X.shape[1],
            "notices": list(notices),
            "labels": pairs,
            "spelled": None if spelled is None else spelled.record(),
            "far": None if dtype == np.float64 else [part.tolist() for part in far_ranges(X)],
        }

    def add(self, shard: dict) -> None:
        self.rows += shard["rows"]
        self.width = max(self.width, shard["width"])
        self.notices = shard["notices"] or self.notices
        if shard["rows"] and shard.get("far") is not None:
            far = {j: ends for j, *ends in zip(*shard["far"], strict=True)}
            both = far if self.far is None else {j: ends + far[j] for j, ends in self.far.items() if j in far}
            self.far = {j: [min(ends), max(ends)] for j, ends in both.items()}
        here = Spelled.of_record(shard.get("spelled"))
        self.first.add(here.texts if here and shard["labels"] is None else [v for v, _ in shard["labels"] or ()], here)
        if self.labels is None or shard["labels"] is None:
            self.labels = None
            return
        for label, count in shard["labels"]:
            self.labels[label] = self.labels.get(label, 0) + count
        if len(self.labels) > CLASSES:
            self.labels = None

    def notices_of(self, names) -> list[str]:
        """Return what is to be known of the rows; ``names`` are those of their features, where they have some."""
        ends = (self.far or {}).items()
        lost = sorted(j for j, (low, high) in ends if low != high and is_far(low, high, SINGLE))
        rounded = f"{column_names(np.array(lost), names)} {ROUNDED_AWAY}: convert with `dtype=float64`"
        return [*self.notices, *([rounded] if lost else [])]

    @property
    def record(self) -> dict:
        """Return the spellings of labels for meta.json."""
        spelled = self.first.spelled
        return {} if spelled is None else {"spelled": spelled.record()}


def _names(sources) -> list:
    """Return file names, escaped if they are not valid text."""
    return [Path(str(source)).name.encode("utf-8", "backslashreplace").decode() for source in sources]


def _checked(record: dict, digest: str, name: str) -> dict:
    if record["text"] != digest:
        raise RunFolderError(
            f"cannot resume: the text of {name} in shard {record['shard']} has changed",
            "start again without `resume`",
        )
    return record


def _meta(sources, shards, seen: _Seen, zero_based: bool, n_features: int | None, dtype, size: int, names) -> dict:
    """Return the content of meta.json, which does not depend on when or where it is written."""
    labels = seen.labels
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": "screenpath",
        "n": seen.rows,
        "d": n_features or seen.width,
        "nnz": sum(shard["nnz"] for shard in shards),
        "dtype": np.dtype(dtype).name,
        "zero_based": zero_based,
        "labels": None if labels is None else {label_text(label, names): labels[label] for label in sorted(labels)},
        "sources": _names(sources),
        "block_bytes": size,
        "sha256": joint_sha256(shards),
        "shards": shards,
    }
