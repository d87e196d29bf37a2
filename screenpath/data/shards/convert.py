"""Convert data files to a folder of binary shards, block by block, so that data larger than memory can be converted.

Shards by blocks of columns are made from shards by rows, which are transposed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from screenpath import __version__
from screenpath.data.files.arrays import stored_as
from screenpath.data.files.cells import Cells
from screenpath.data.files.centring import SINGLE, far_ranges, is_far
from screenpath.data.files.libsvm import BLOCK, no_features
from screenpath.data.files.prepare import ROUNDED_AWAY, column_names, dense_form
from screenpath.data.files.read import opened, refuse_columns, refuse_indices
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards import blocks
from screenpath.data.shards.checks import joint_sha256
from screenpath.data.shards.shards import COLUMNWISE, LABELS, ROWWISE, SCHEMA_VERSION, ShardFolder, in_order
from screenpath.data.shards.write_shards import ShardWriter, clear_leftovers, partial_folder, remove_ours
from screenpath.data.words.labels import label_text
from screenpath.data.words.numerals import FirstTexts, Spelled
from screenpath.data.words.tables import check_same
from screenpath.errors import DataError, InUseError, ResourceError, RunFolderError, UsageError
from screenpath.numbers.csr import check_width

BLOCK_MB = 32
SAMPLED = 1 << 16  # bytes of both ends of a file that identify it
CLASSES = 100  # more labels are not listed
VALUE = 12  # bytes of a stored value and its index
# entries of meta.json that shards by columns have of those by rows
FROM_ROWS = ("zero_based", "dtype", "notices", "sources", "block_bytes", "label_names", "table", "spelled")


def convert(
    sources, out, *, block_mb: float = BLOCK_MB, jobs: int = 1, zero_based: bool = False, n_features: int | None = None,
    storage: str = "auto", dtype=np.float64, max_memory: int | None = None, force: bool = False, resume: bool = False,
    target: str | None = None, one_hot: str | Sequence[str] = (), columns: str | Sequence[str] = (),
    drop: str | Sequence[str] = (), id: str | None = None, progress=None, origin: dict | None = None, by: str = ROWWISE,
    **cells: Any,
) -> ShardFolder:  # fmt: skip
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
    target, one_hot, columns, drop, id : str, or (of those in the middle) sequence of str
        Columns of tables, see :func:`screenpath.read_data`.
    **cells
        How their cells are read, as there; nothing takes the place of a missing one.
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
    limit, how_read = MemoryLimit(max_memory), Cells.of(cells)
    for name in {"missing", "weight_column", "group_column"} & how_read.record().keys():
        raise UsageError(f"`{name}` is about rows in memory, shards have features alone", "name the table with a model")
    size = max(int(block_mb * (1 << 20)), BLOCK)
    needed = blocks.MEMORY_FACTOR * size * (jobs + 1)
    limit.check(needed, f"converting {jobs} + 1 blocks of {block_mb:g} MB", "use a smaller `block_mb`")
    if by not in (ROWWISE, COLUMNWISE):
        raise UsageError(f"shards are by rows or by columns, not by '{by}'", "use `by=rows` or `by=columns`")
    folders = [source for source in sources if isinstance(source, (str, Path)) and Path(source).is_dir()]
    if folders:
        if by != COLUMNWISE or len(sources) > 1:
            raise UsageError(f"{folders[0]} is a folder", "name files; or one folder of shards, with `by=columns`")
        refuse_columns(str(folders[0]), target, one_hot, None, columns, drop, id, how_read)
        rows = checked_rows(Path(folders[0]), zero_based, n_features, np.dtype(dtype))
        return convert_columns(rows, out, size, storage, limit, force, resume)
    chosen = {"target": target, "one_hot": one_hot, "columns": columns, "drop": drop, "id": id, "cells": how_read}
    how = _How(size, jobs, limit, zero_based, n_features, storage, np.dtype(dtype), chosen, progress)
    if by == COLUMNWISE:
        if Path(out).exists() and not (force or resume):  # before hours are spent on its rows
            raise RunFolderError(f"{out} exists already", "use `force` to replace it, or another name")
        asked = {"by": by, "zero_based": zero_based, "dtype": np.dtype(dtype).name, "sources": _names(sources)}
        done = finished(COLUMNWISE, out, {**asked, "column_bytes": size}) if resume else None
        if done is not None:
            return done
        rows = _by_rows(sources, rows_folder(Path(out)), not resume, resume, how)
        folder = convert_columns(rows, out, size, storage, limit, force, resume)
        remove_ours(rows.path)
        return folder
    return _by_rows(sources, out, force, resume, how, origin)


class _How(NamedTuple):
    """How files become shards, see :func:`convert`; ``size`` is in bytes, ``chosen`` has the columns of a table."""

    size: int
    jobs: int
    limit: MemoryLimit
    zero_based: bool
    n_features: int | None
    storage: str
    dtype: np.dtype
    chosen: dict[str, Any]
    progress: Callable[[int, int], None] | None


def _by_rows(sources, out, force: bool, resume: bool, how: _How, origin: dict | None = None) -> ShardFolder:
    with blocks.rereadable(sources, Path(out).resolve().parent) as kept:
        return _convert(kept, sources, out, force, resume, how, origin)


def _convert(sources, names, out, force, resume, how: _How, origin) -> ShardFolder:
    """Convert sources that can be read repeatedly; ``names`` are those for messages."""
    size, jobs, limit, zero_based, n_features, storage, dtype, chosen, progress = how
    settled = blocks.settle(sources, **chosen)
    words: tuple[str, ...] = ()
    if settled is None:
        asked = any(value for name, value in chosen.items() if name != "cells")
        if asked and isinstance(sources[0], str | os.PathLike) and os.path.isfile(sources[0]):
            with opened(sources[0]) as (_, stream, _):
                refuse_columns(str(names[0]), stream=stream, **chosen)
        refuse_columns(str(names[0]), **chosen)
        words = blocks.label_words(sources, limit)
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
                if writer.known[k]["text"] != digest:
                    what = f"cannot resume: the text of {block.name} in shard {k} has changed"
                    raise RunFolderError(what, "start again without `resume`")
                return writer.known[k], block.nbytes
            data = block.read(zero_based, words, n_features)
            seen = _Seen.of(data.X, data.y, dtype, data.notices, data.spelled)
            X = stored_as(data.X, dtype, block.name)
            return {**writer.write(k, X, data.y, storage), "text": digest, "seen": seen}, block.nbytes

        parts: Any = blocks.text_blocks(sources, size, limit)
        if settled is not None:
            parts = blocks.table_blocks(sources, settled, size, limit)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for record, read in in_order(pool, jobs, one, enumerate(parts)):
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
        counts, texts = seen.labels, table.get("label_names")
        meta = {  # which does not depend on when or where it is written
            "schema_version": SCHEMA_VERSION, "tool": "screenpath", "n": seen.rows, "d": n_features or seen.width,
            "nnz": sum(shard["nnz"] for shard in shards), **known, **seen.record, "sha256": joint_sha256(shards),
            "labels": None if counts is None else {label_text(one, texts): counts[one] for one in sorted(counts)},
            "notices": seen.notices_of(settled.form.names if settled else None), "shards": shards,
        }  # fmt: skip
        writer.finish(meta if origin is None else {**meta, "origin": origin})
    return ShardFolder(out)


def rows_folder(out: Path) -> Path:
    """Return the name of the temporary shards by rows."""
    return out.with_name(out.name + ".by-rows")


def convert_columns(
    rows: ShardFolder, out, size: int, storage: str, limit: MemoryLimit, force=False, resume=False
) -> ShardFolder:
    """Transpose shards by rows into shards by blocks of columns of about ``size`` bytes; see ``convert.convert``."""
    check_width(rows.path, rows.d)
    known: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION, "by": COLUMNWISE, "width": rows.d, "rows_sha256": rows.sha256,
        "column_bytes": size, **{name: rows.meta[name] for name in FROM_ROWS if name in rows.meta},
    }  # fmt: skip
    found = finished(COLUMNWISE, out, known) if resume else None
    if found is not None:
        return found
    settings = {**known, "tool_version": __version__, "storage": storage}
    with closing(ShardWriter(out, force, settings, resume)) as writer:
        numbers, counts = blocks.occurring_columns(rows)
        dense = dense_form(storage, (rows.n, numbers.size), lambda: rows.nnz)
        sizes = np.full(numbers.size, 8 * rows.n) if dense else VALUE * counts + 16
        cuts = blocks.cut(sizes, size)
        entries = []
        for group in blocks.groups(cuts, sizes, limit):
            left = [k for k in group if k not in writer.known]
            first, last = cuts[group[0]][0], cuts[group[-1]][1]
            columns: Any = blocks.turned_over(rows, numbers[first:last], counts[first:last]) if left else None
            for k in group:
                start, stop = cuts[k]
                if k in writer.known:  # of the same rows, as the settings say
                    entries.append(writer.known[k]["entry"])
                    continue
                labels = numbers[start:stop].astype(np.float64)
                record = writer.write(k, columns[start - first : stop - first], labels, storage)
                seen = {"rows": stop - start, "width": rows.n, "notices": [], "labels": None}
                writer.note({**record, "text": rows.sha256, "seen": seen})
                entries.append(record["entry"])
        meta = {
            "schema_version": SCHEMA_VERSION, "tool": "screenpath", **known, "n": numbers.size, "d": rows.n,
            "nnz": sum(entry["nnz"] for entry in entries), "labels": None, "sha256": joint_sha256(entries),
            "labels_file": writer.write_file(LABELS, rows.targets()), "shards": entries,
        }  # fmt: skip
        writer.finish(meta)
    return ShardFolder(out, by=COLUMNWISE)


def finished(by: str, out, known: dict) -> ShardFolder | None:
    """Return the folder that an earlier call completed with these settings; None if there is none."""
    if not Path(out).exists() or partial_folder(Path(out)).exists():
        return None
    folder = ShardFolder(out, by=by)
    check_same(folder.path, {name: folder.meta.get(name) for name in known}, known)
    clear_leftovers(folder.path)
    if by == COLUMNWISE:
        remove_ours(rows_folder(folder.path))
    return folder


def checked_rows(path: Path, zero_based: bool, n_features: int | None, dtype: np.dtype) -> ShardFolder:
    """Return the shards by rows to transpose; other indices, widths or types cannot be requested."""
    folder = ShardFolder(path)
    folder.check_indices(zero_based)
    if n_features not in (None, folder.d):
        raise UsageError(f"{path} has {folder.d} features, which `by=columns` keeps", "leave out `n_features`")
    if dtype not in (folder.dtype, np.dtype(np.float64)):
        raise UsageError(f"{path} holds {folder.dtype} values, which `by=columns` keeps", "leave out `dtype`")
    return folder


class DataCacheWarning(UserWarning):
    """``--cache`` cannot store its copy; the run continues without it."""


def cached_shards(
    path, cache, zero_based: bool = False, max_memory: int | None = None, target: str | None = None, one_hot=(), **more
) -> ShardFolder | None:
    """Return a data file as shards from a cache folder, after converting it if they are missing or damaged.

    An entry is used if it was made from this state of this file, read in this way, and no part has a fault. Returns
    None while another process makes the same entry, and (with a warning) if it cannot be made.
    """
    path = Path(path)
    more = {name: given if isinstance(given, str) else list(given) for name, given in more.items() if given}
    origin = {**_origin(path, zero_based), "target": target, "one_hot": list(one_hot), **more}
    key = {name: value for name, value in origin.items() if name not in ("inode", "changed_ns")}
    name = hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:32]
    entry = Path(cache) / f"{path.name}-{name}.shards"
    try:
        folder = ShardFolder(entry)
        if folder.meta.get("origin") != origin:
            raise DataError(f"{entry} was not made of this file")
        folder.check()
        return folder
    except DataError:  # missing or damaged: convert (again)
        pass
    try:
        # sparse: keeps the stored zeros of the file
        convert(
            [path], entry, block_mb=block_within(max_memory), zero_based=zero_based, storage="sparse",
            max_memory=max_memory, force=True, origin=origin, target=target, one_hot=one_hot,
            **more,
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
    return BLOCK_MB if left is None else min(BLOCK_MB, max(left / (2 * blocks.MEMORY_FACTOR << 20), 1.0))


class _Seen:
    """Totals of the shards so far."""

    def __init__(self):
        self.rows, self.width, self.notices = 0, 1, ()
        self.far: dict[int, list] | None = None  # columns far from 0, with their smallest and largest values
        self.labels: dict | None = {}
        self.first = FirstTexts()

    @staticmethod
    def of(X, y, dtype, notices=(), spelled=None) -> dict:
        labels, counts = np.unique(y, return_counts=True)
        pairs = None if labels.size > CLASSES else list(zip(labels.tolist(), counts.tolist(), strict=True))
        return {
            "rows": X.shape[0], "width": X.shape[1], "notices": list(notices), "labels": pairs,
            "spelled": None if spelled is None else spelled.record(),
            "far": None if dtype == np.float64 else [part.tolist() for part in far_ranges(X)],
        }  # fmt: skip

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
        spelled = self.first.spelled
        return {} if spelled is None else {"spelled": spelled.record()}


def _names(sources) -> list:
    """Return file names, escaped if they are not valid text."""
    return [Path(str(source)).name.encode("utf-8", "backslashreplace").decode() for source in sources]
