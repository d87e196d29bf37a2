"""Writing a shard folder: parts under their own names in a folder that gets its name when all of them are there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np

from screenpath.errors import RunFolderError
from screenpath.kernels import shards as kernels
from screenpath.kernels.rows import csr_squared_norms, dense_squared_norms
from screenpath.read.shards import META, part_name
from screenpath.rows.memory import DENSE_FROM
from screenpath.write.atomic import LOCK, Appender, FolderLock, replacing, sync_folder
from screenpath.write.folder import check_same
from screenpath.write.tables import dump_json, readable_json

LOG = "progress.jsonl"  # of an unfinished folder: how it is made, then a line for each shard that is done
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
        If ``path`` exists already and ``force`` is not set, another process is writing it, or what is to be resumed had
        other settings.
    """

    def __init__(self, path, force: bool = False, settings: dict | None = None, resume: bool = False):
        self.path, settings = Path(path), settings or {}
        self.partial = partial_folder(self.path)
        begun = _read_log(self.partial / LOG) if resume else None
        force = force or (begun is not None and begun[0]["replace"])
        if self.path.exists() and not force:
            raise RunFolderError(f"{self.path} exists already", "use --force to replace it, or another name")
        if self.path.exists() and not (self.path / META).is_file():
            raise RunFolderError(f"{self.path} is not a folder of shards and is not replaced", "choose another name")
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

    def _take_up(self, begun, settings: dict, replace: bool) -> None:
        """Open the log, and remove what does not belong to the shards it names."""
        self.known, size, self._noted = {}, 0, 0
        if begun is not None:
            head, records, size = begun
            check_same(self.partial, head["settings"], settings)
            self.known = {record["shard"]: record for record in records if self._is_whole(record)}
        keep = {name for record in self.known.values() for name in record["files"]}
        keep |= {self._lock.path.name, *([LOG] if begun is not None else [])}
        for file in self.partial.iterdir():
            if file.name not in keep:
                file.unlink()
        self._log = Appender(self.partial / LOG, size, named=True)
        if begun is None:
            self.note({"settings": settings, "replace": replace})

    def _is_whole(self, record: dict) -> bool:
        """Tell whether the files of a shard are there, each as long as it was."""
        files = ((self.partial / name, size) for name, size in record["files"].items())
        return all(file.is_file() and file.stat().st_size == size for file, size in files)

    def note(self, record: dict) -> None:
        """Log that a shard is done, so that a later call can keep it.

        Parameters
        ----------
        record : dict
            As returned by :meth:`write`, with whatever else the later call needs.
        """
        self._log.append((dump_json(record) + "\n").encode())
        self._log.sync()
        self._noted += "shard" in record

    def write(self, k: int, rows, labels: np.ndarray, storage: str) -> dict:
        """Write one shard; calls for different shards may run at once.

        Parameters
        ----------
        k : int
        rows : scipy.sparse.csr_array of shape (rows, width)
            Sorted indices from 0.
        labels : ndarray of shape (rows,)
        storage : {"auto", "dense", "sparse"}

        Returns
        -------
        dict
            ``shard`` is the number, ``entry`` the entry in meta.json, ``files`` are the sizes by name.
        """
        cells = rows.shape[0] * rows.shape[1]
        dense = storage == "dense" or (storage == "auto" and rows.nnz >= DENSE_FROM * cells)
        count, rank, columns = _compact(rows.indices, rows.shape[1], dense)
        local = rows.indices.astype(np.int32) if dense else rank
        squares, indptr = np.zeros(rows.shape[0]), rows.indptr.astype(np.int64)
        if dense:  # as rows in memory compute them, to the last bit
            full = rows.toarray(order="C")
            dense_squared_norms(full, squares)
        else:
            csr_squared_norms(rows.data, indptr, squares)
        ranges = np.vstack([np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)])
        kernels.column_ranges(rows.data, local, *ranges)
        parts = {"targets": labels, "sqnorms": squares, "ranges": ranges}
        if dense:
            parts["dense"] = full
        else:
            parts |= {"data": rows.data, "indices": local, "indptr": indptr, "columns": columns}
        digest, files = hashlib.sha256(), {}
        for name, array in parts.items():
            with replacing(self.partial / part_name(k, name)) as file:
                np.save(file, array, allow_pickle=False)
                files[part_name(k, name)] = file.tell()
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        entry = {
            "rows": rows.shape[0],
            "nnz": int(rows.nnz),
            "dense": bool(dense),
            "columns": count,
            "sha256": digest.hexdigest(),
        }
        return {"shard": k, "entry": entry, "files": files}

    def finish(self, meta: dict) -> None:
        """Write meta.json and give the folder its name, in place of an older one."""
        with replacing(self.partial / META) as file:
            file.write((readable_json(meta) + "\n").encode())
        old = _older(self.path)
        if self.path.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.replace(self.path, old)
        self._log.abandon(remove=True)
        self._log = None
        os.replace(self.partial, self.path)
        sync_folder(self.path.parent)
        (self.path / self._lock.path.name).unlink(missing_ok=True)
        self._lock.path = self.path / self._lock.path.name
        shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Let other processes write the folder; shards that are done stay in a partial folder until the next call."""
        unfinished = self._log is not None
        if unfinished:
            self._log.abandon()
        empty = unfinished and not self.known and not self._noted
        if empty:  # no shard worth keeping: a wrong file name leaves no folder behind
            shutil.rmtree(self.partial, ignore_errors=True)
        self._lock.release()


def partial_folder(path: Path) -> Path:
    """Return the folder in which the shards of a folder are made."""
    return path.with_name(path.name + ".partial")


def clear_leftovers(path: Path) -> None:
    """Remove what a crash in the last moment of a conversion leaves beside a complete folder and in it."""
    if (path / LOCK).exists():
        FolderLock(path).release()
    shutil.rmtree(_older(path), ignore_errors=True)


def _older(path: Path) -> Path:
    """Return the name that a folder has while another takes its place."""
    return path.with_name(path.name + ".old")


def _read_log(file: Path):
    """Return first record, other records and size of a log without half a line at its end; None where there is none."""
    if not file.is_file():
        return None
    text = file.read_bytes()
    text = text[: text.rfind(b"\n") + 1]
    try:
        head, *records = (json.loads(line) for line in text.splitlines())
        head["settings"], head["replace"], [(record["shard"], record["files"]) for record in records]
    except (ValueError, KeyError, TypeError):
        return None  # stopped before its first line was written, or no log of ours: all is made anew
    return head, records, len(text)


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


def _narrow(columns: np.ndarray) -> np.ndarray:
    return columns.astype(np.int64 if columns.size and columns[-1] > np.iinfo(np.int32).max else np.int32)
