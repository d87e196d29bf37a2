"""Writing a shard folder: parts under their own names in a folder that gets its name when all of them are there."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.data.files.prepare import DENSE_FROM
from screenpath.data.safe.atomic import LOCK, Appender, FolderLock, replacing, sync_folder
from screenpath.data.safe.values import are_words
from screenpath.data.shards.checks import entry_fits, is_count, record_crc
from screenpath.data.shards.ours import LOG, check_ours, marks_last, remove_ours
from screenpath.data.shards.shards import META, content_sha256, part_name
from screenpath.data.words.tables import check_same, dump_json, readable_json
from screenpath.errors import RunFolderError
from screenpath.kernels.rows import shards as kernels
from screenpath.kernels.rows.rows import csr_squared_norms, dense_squared_norms
from screenpath.numbers import sparse as sp

CELLS = 1 << 16  # of dense rows that are looked at at a time
SPARSE_WIDTH = 16  # columns a stored value from which the columns that occur are found by sorting


class ShardWriter:
    """The folder ``OUT.partial`` on its way to ``OUT``.

    Whatever stops a conversion, there is no half a folder under the name ``OUT``: the next call starts anew, or behind
    the shards that were done.

    Parameters
    ----------
    path : path-like
    force : bool, default False
        Replace what is there.
    settings : dict, optional
        All that decides the shards, beside the text.
    resume : bool, default False
        Keep the shards that an earlier call with these settings has made.

    Attributes
    ----------
    known : dict
        Records of the shards that are kept, by their numbers; see :meth:`note`.

    Raises
    ------
    RunFolderError
        If ``path`` exists already and ``force`` is not set, another process is writing it, what is to be resumed had
        other settings, or something under a name that is needed does not carry the mark of ``convert``.
    """

    def __init__(self, path, force: bool = False, settings: dict | None = None, resume: bool = False):
        self.path, settings = Path(path), settings or {}
        if self.path.name in ("", ".."):
            raise RunFolderError(f"{path} is no name for a new folder", "write the name that it is to have")
        self.partial = partial_folder(self.path)
        check_ours(self.partial)
        begun = _read_log(self.partial / LOG) if resume else None
        force = force or (begun is not None and begun[0]["replace"])
        if os.path.lexists(self.path):
            if not force:
                raise RunFolderError(f"{self.path} exists already", "use `force` to replace it, or another name")
            self._check_replaced()
        try:
            self.partial.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.partial)
        except OSError as error:
            raise RunFolderError(
                f"{self.partial} cannot be written: {error.strerror or error}", "choose a place that may be written"
            ) from None
        try:
            self._take_up(begun, settings, force)
        except BaseException:
            self._lock.release()
            raise

    def _check_replaced(self) -> None:
        """Make sure that the folder that is replaced, and the name it gets meanwhile, are ours."""
        if not (self.path / META).is_file():
            raise RunFolderError(f"{self.path} is not a folder of shards and is not replaced", "choose another name")
        check_ours(self.path)
        check_ours(_older(self.path))

    def _take_up(self, begun, settings: dict, replace: bool) -> None:
        """Open the log, and remove what does not belong to the shards it names."""
        self.known, size, self._noted = {}, 0, 0
        if begun is not None:
            head, records, size = begun
            check_same(self.partial, head["settings"], settings)
            self.known = {record["shard"]: record for record in records if self._is_whole(record)}
        keep = {part_name(k, name) for k, record in self.known.items() for name in record["entry"]["crc32"]}
        keep |= {self._lock.path.name, *([LOG] if begun is not None else [])}
        for file in marks_last(self.partial):
            if file.name not in keep:
                file.unlink()
        self._log, self._finished = Appender(self.partial / LOG, size, named=True), False
        if begun is None:
            self.note({"settings": settings, "replace": replace})

    def _is_whole(self, record: dict) -> bool:
        """Tell whether the files of a shard are there, each as it was."""
        k, hashes = record["shard"], record["entry"]["crc32"]
        return all(_crc32(self.partial / part_name(k, name)) == hashes[name] for name in hashes)

    def note(self, record: dict) -> None:
        """Log that a shard is done, by what :meth:`write` returns and whatever else a later call needs to keep it."""
        self._log.append((dump_json({**record, "crc32": record_crc(record)}) + "\n").encode())
        self._log.sync()
        self._noted += "shard" in record

    def write(self, k: int, rows, labels: np.ndarray, storage: str) -> dict:
        """Write one shard and return its number and its entry in meta.json; calls for different shards may run at once.

        Rows, shape (rows, width), are an ndarray, of which zeros are not stored, or a csr_array with sorted indices
        from 0.
        """
        parts = shard_parts(rows, labels, storage)
        hashes = {name: self._save(part_name(k, name), array) for name, array in parts.items()}
        entry = {
            "rows": rows.shape[0],
            "nnz": int(parts["ranges"][2].sum()),
            "dense": "dense" in parts,
            "columns": parts["ranges"].shape[1],
            "sha256": content_sha256(parts),
            "crc32": hashes,
        }
        return {"shard": k, "entry": entry}

    def write_file(self, name: str, array: np.ndarray) -> dict:
        """Write an array that belongs to no shard, and return what stands for its content."""
        return {"crc32": self._save(name, array), "sha256": content_sha256({name: array})}

    def _save(self, name: str, array: np.ndarray) -> int:
        """Write an array and return the CRC-32 of its file."""
        with replacing(self.partial / name) as file:
            hashed = _Hashed(file)
            np.save(hashed, array, allow_pickle=False)
        return hashed.crc32

    def finish(self, meta: dict) -> None:
        """Write meta.json and give the folder its name, in place of an older one."""
        with replacing(self.partial / META) as file:
            file.write((readable_json({**meta, "crc32": record_crc(meta)}) + "\n").encode())
        old = _older(self.path)
        if os.path.lexists(self.path):
            self._check_replaced()  # again: a conversion may take hours
            remove_ours(old)
            os.replace(self.path, old)
        self._log.abandon(remove=True)
        self._finished = True
        os.replace(self.partial, self.path)
        sync_folder(self.path.parent)
        (self.path / self._lock.path.name).unlink(missing_ok=True)
        self._lock.path = self.path / self._lock.path.name
        _remove_older(self.path)

    def close(self) -> None:
        """Let other processes write the folder; shards that are done stay in a partial folder until the next call."""
        if not self._finished:
            self._log.abandon()
        if not self._finished and not self.known and not self._noted:  # a wrong file name leaves no folder behind
            remove_ours(self.partial)
        self._lock.release()


def shard_parts(rows, labels: np.ndarray, storage: str) -> dict[str, Any]:
    """Return the parts of a shard by their names; arguments as of :meth:`ShardWriter.write`."""
    full = rows if isinstance(rows, np.ndarray) else None
    found = None if full is None else _dense_ranges(full)
    nnz = rows.nnz if found is None else found[2].sum()
    dense = storage == "dense" or (storage == "auto" and nnz >= DENSE_FROM * rows.shape[0] * rows.shape[1])
    if full is not None and dense:
        ranges = found
    else:
        rows = sp.csr_array(rows)
        count, rank, columns = _compact(rows.indices, rows.shape[1], dense)
        local = rows.indices.astype(np.int32) if dense else rank
        ranges = np.vstack([np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)])
        kernels.column_ranges(rows.data, local, *ranges)
    squares = np.zeros(rows.shape[0])
    parts = {"targets": labels, "sqnorms": squares, "ranges": ranges}
    if dense:  # as rows in memory compute them, to the last bit
        full = rows.toarray(order="C") if full is None else full
        dense_squared_norms(full, squares)
        parts["dense"] = full
    else:
        indptr = rows.indptr.astype(np.int64)
        csr_squared_norms(rows.data, indptr, squares)
        parts |= {"data": rows.data, "indices": local, "indptr": indptr, "columns": columns}
    return parts


class _Hashed:
    """A file that counts the CRC-32 of what is written to it."""

    def __init__(self, file):
        self._file, self.crc32 = file, 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.crc32 = zlib.crc32(data, self.crc32)


def _crc32(file: Path) -> int | None:
    """Return the CRC-32 of a file; None where there is none."""
    if not file.is_file():
        return None
    value = 0
    with open(file, "rb") as stream:
        while data := stream.read(1 << 20):
            value = zlib.crc32(data, value)
    return value


def partial_folder(path: Path) -> Path:
    """Return the folder in which the shards of a folder are made."""
    return path.with_name(path.name + ".partial")


def clear_leftovers(path: Path) -> None:
    """Remove what a crash in the last moment of a conversion leaves beside a complete folder and in it."""
    if (path / LOCK).exists():
        FolderLock(path).release()
    _remove_older(path)


def _older(path: Path) -> Path:
    """Return the name that a folder has while another takes its place."""
    return path.with_name(path.name + ".old")


def _remove_older(path: Path) -> None:
    with contextlib.suppress(RunFolderError):  # somebody else's: it is not in the way
        remove_ours(_older(path))


def _read_log(file: Path):
    """Return first record, other records and size of a log up to the first damaged line; None where there is none."""
    if not file.is_file():
        return None
    records: list[dict] = []
    size = 0
    for line in file.read_bytes().splitlines(keepends=True):
        record = _logged(line, first=not records)
        if record is None:  # stopped while it was written, or damaged: all that follows is made anew
            break
        records.append(record)
        size += len(line)
    return (records[0], records[1:], size) if records else None


def _logged(line: bytes, first: bool) -> dict | None:
    """Return the record of a line of the log; None where it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not line.endswith(b"\n") or type(record) is not dict or record.get("crc32") != record_crc(record):
        return None
    if first:
        fits = type(record.get("settings")) is dict and type(record.get("replace")) is bool
    else:
        fits = _is_shard_record(record)
    return record if fits else None


def _is_shard_record(record: dict) -> bool:
    """Tell whether a record of a shard has all that a later call takes from it."""
    entry, seen = record.get("entry"), record.get("seen")
    if not is_count(record.get("shard")) or type(record.get("text")) is not str:
        return False
    if not entry_fits(entry) or entry.get("crc32") is None or type(seen) is not dict:
        return False
    return (
        is_count(seen.get("rows"))
        and is_count(seen.get("width"))
        and are_words(seen.get("notices"))
        and (seen.get("labels") is None or _are_counts(seen["labels"]))
    )


def _are_counts(labels) -> bool:
    """Tell whether a value of a log is a list of labels with the number of their rows."""
    pairs = type(labels) is list and all(type(pair) is list and len(pair) == 2 for pair in labels)
    return pairs and all(type(label) is float and is_count(count) for label, count in labels)


def _compact(indices: np.ndarray, width: int, dense: bool):
    """Return how many columns a shard has, the indices counted within them, and which columns they are."""
    if dense:
        return width, None, None
    if width > SPARSE_WIDTH * max(indices.size, 1 << 16):
        columns, rank = np.unique(indices, return_inverse=True)
        return columns.size, rank.astype(np.int32), _narrow(columns)
    rank = np.full(width, -1, dtype=np.int32)
    count = kernels.mark_columns(indices, rank)
    return count, rank[indices], _narrow(np.flatnonzero(rank >= 0))


def _dense_ranges(full: np.ndarray) -> np.ndarray:
    """Return smallest value, largest value and number of the values of each column that are not 0."""
    low, high, counts = (np.full(full.shape[1], value) for value in (np.inf, -np.inf, 0.0))
    step = max(1, CELLS // max(full.shape[1], 1))
    for start in range(0, full.shape[0], step):
        block = full[start : start + step]
        there = block != 0.0
        found = np.count_nonzero(there, axis=0)
        whole = bool((found == block.shape[0]).all())
        np.minimum(low, (block if whole else np.where(there, block, np.inf)).min(axis=0), out=low)
        np.maximum(high, (block if whole else np.where(there, block, -np.inf)).max(axis=0), out=high)
        counts += found
    return np.vstack([low, high, counts])


def _narrow(columns: np.ndarray) -> np.ndarray:
    return columns.astype(np.int64 if columns.size and columns[-1] > np.iinfo(np.int32).max else np.int32)
