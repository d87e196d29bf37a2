"""Data files to shards by blocks of columns: first to shards by rows, which are then transposed.

Each pass over the rows fills as many blocks of columns as memory allows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from screenpath import __version__
from screenpath.data.files.prepare import dense_form
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards.checks import joint_sha256
from screenpath.data.shards.shards import COLUMNWISE, LABELS, SCHEMA_VERSION, ShardFolder
from screenpath.data.shards.write_shards import ShardWriter, clear_leftovers, partial_folder, remove_ours
from screenpath.data.words.tables import check_same
from screenpath.errors import RunFolderError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import check_width, is_wide, row_pointers, shared_csr

AT_ONCE = 1 << 30  # bytes of columns filled in one pass over the rows, without a lower limit
SHARE = 0.25  # of what the limit leaves, for them: writing them takes as much again
VALUE = 12  # bytes of a stored value and its index
# entries of meta.json
FROM_ROWS = ("zero_based", "dtype", "notices", "sources", "block_bytes", "label_names", "table", "spelled")


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
        numbers, counts = occurring_columns(rows)
        dense = dense_form(storage, (rows.n, numbers.size), lambda: rows.nnz)
        sizes = np.full(numbers.size, 8 * rows.n) if dense else VALUE * counts + 16
        blocks = cut(sizes, size)
        entries = []
        for group in groups(blocks, sizes, limit):
            left = [k for k in group if k not in writer.known]
            first, last = blocks[group[0]][0], blocks[group[-1]][1]
            columns: Any = turned_over(rows, numbers[first:last], counts[first:last]) if left else None
            for k in group:
                start, stop = blocks[k]
                text = hashlib.sha256(f"{rows.sha256} {start} {stop}".encode()).hexdigest()
                if k in writer.known:
                    entries.append(_kept(writer.known[k], text, rows.path))
                    continue
                labels = numbers[start:stop].astype(np.float64)
                record = writer.write(k, columns[start - first : stop - first], labels, storage)
                seen = {"rows": stop - start, "width": rows.n, "notices": [], "labels": None}
                writer.note({**record, "text": text, "seen": seen})
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


def _kept(record: dict, text: str, path: Path) -> dict:
    """Return the entry of a block that an earlier call wrote, after checking that its columns are the same."""
    if record["text"] != text:
        raise RunFolderError(f"cannot resume: the columns of {path} are not the same", "start again without `resume`")
    return record["entry"]


def occurring_columns(rows: ShardFolder) -> tuple[np.ndarray, np.ndarray]:
    """Return the features that get a row (in wide data those that occur), and their numbers of values."""
    wide = is_wide(rows.d, rows.nnz)
    numbers = np.zeros(1, dtype=np.int64) if wide else np.arange(rows.d)
    counts = np.zeros(numbers.size, dtype=np.int64)
    for k in range(rows.count):
        shard = rows.shard(k)
        if shard.dense is not None:
            columns, found = np.arange(shard.dense.shape[1]), np.count_nonzero(shard.dense, axis=0)
        else:
            columns, found = shard.columns, np.bincount(shard.indices, minlength=shard.columns.size)
        if wide:
            both = np.union1d(numbers, columns)
            more = np.zeros(both.size, dtype=np.int64)
            more[np.searchsorted(both, numbers)] = counts
            numbers, counts = both, more
        counts[np.searchsorted(numbers, columns)] += found
    there = counts > 0 if wide and counts.any() else np.ones(numbers.size, dtype=bool)
    return numbers[there], counts[there]


def cut(sizes: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Cut columns into blocks of about ``size`` bytes, at least one column each."""
    blocks, ends = [], np.cumsum(sizes)
    start = 0
    while start < sizes.size:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + size, side="right")))
        blocks.append((start, stop))
        start = stop
    return blocks


def groups(blocks: list, sizes: np.ndarray, limit: MemoryLimit) -> Iterator[list[int]]:
    """Yield the numbers of blocks that are filled in one pass, as memory allows; a single one must fit."""
    weights = [int(sizes[start:stop].sum()) for start, stop in blocks]
    limit.check(2 * max(weights), "turning a block of columns over", "use a smaller `block_mb`")
    room = AT_ONCE if limit.left is None else min(AT_ONCE, int(SHARE * limit.left))
    group: list[int] = []
    for k, weight in enumerate(weights):
        if group and sum(weights[one] for one in group) + weight > room:
            yield group
            group = []
        group.append(k)
    yield group


def turned_over(rows: ShardFolder, numbers: np.ndarray, counts: np.ndarray) -> sp.csr_array:
    """Return some features as the rows of a CSR array over all samples, in one pass over the data."""
    indptr = row_pointers(counts)
    kind = sp.get_index_dtype(maxval=max(rows.n, int(indptr[-1])))
    data, samples = np.empty(indptr[-1], dtype=rows.dtype), np.empty(indptr[-1], dtype=kind)
    filled = indptr[:-1].copy()
    for k in range(rows.count):
        here, part = _columns_of(rows, k, numbers)
        found = np.diff(part.indptr)
        place = np.repeat(filled[here] - part.indptr[:-1], found) + np.arange(part.nnz)
        data[place], samples[place] = part.data, part.indices + samples.dtype.type(rows.starts[k])
        filled[here] += found
    return sp.csr_array((data, samples, indptr.astype(samples.dtype)), shape=(numbers.size, rows.n))


def _columns_of(rows: ShardFolder, k: int, numbers: np.ndarray) -> tuple[np.ndarray, sp.csr_array]:
    """Return which of the features a shard has, and these as the rows of a CSR array over its samples."""
    shard = rows.shard(k)
    if shard.dense is not None:
        there = numbers[numbers < shard.dense.shape[1]]
        return np.arange(there.size), sp.csr_array(np.ascontiguousarray(shard.dense[:, there].T))
    places = np.minimum(np.searchsorted(numbers, shard.columns), numbers.size - 1)
    known = numbers[places] == shard.columns
    X = shared_csr(shard.data, shard.indices, shard.indptr, (shard.rows, shard.columns.size))
    return places[known], sp.csr_array(X[:, np.flatnonzero(known)].T)


def check_source(sources, by: str) -> Path | None:
    """Return the folder of shards by rows to transpose; None if the sources are files."""
    folders = [source for source in sources if isinstance(source, (str, Path)) and Path(source).is_dir()]
    if not folders:
        return None
    if by != COLUMNWISE or len(sources) > 1:
        raise UsageError(f"{folders[0]} is a folder", "name files; or one folder of shards, with `by=columns`")
    return Path(folders[0])


def checked_rows(path: Path, zero_based: bool, n_features: int | None, dtype: np.dtype) -> ShardFolder:
    """Return the shards by rows to transpose; other indices, widths or types cannot be requested."""
    folder = ShardFolder(path)
    folder.check_indices(zero_based)
    if n_features not in (None, folder.d):
        raise UsageError(f"{path} has {folder.d} features, which `by=columns` keeps", "leave out `n_features`")
    if dtype not in (folder.dtype, np.dtype(np.float64)):
        raise UsageError(f"{path} holds {folder.dtype} values, which `by=columns` keeps", "leave out `dtype`")
    return folder


def refuse_out(out, force: bool, resume: bool) -> None:
    """Refuse an existing folder before hours are spent on its rows; the writer checks again."""
    if Path(out).exists() and not (force or resume):
        raise RunFolderError(f"{out} exists already", "use `force` to replace it, or another name")
