"""Writing a shard folder: parts under their own names in a folder that gets its name when all of them are there."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np

from screenpath.errors import RunFolderError
from screenpath.kernels import shards as kernels
from screenpath.kernels.rows import csr_squared_norms
from screenpath.read.shards import META, part_name
from screenpath.rows.memory import DENSE_FROM
from screenpath.write.atomic import FolderLock, replacing, sync_folder
from screenpath.write.tables import readable_json

SPARSE_WIDTH = 16  # columns a stored value from which the columns that occur are found by sorting


class ShardWriter:
    """The folder ``OUT.partial`` on its way to ``OUT``.

    Whatever stops a conversion, there is no half a folder under the name ``OUT``: the next call starts anew.

    Parameters
    ----------
    path : path-like
    force : bool, default False
        Replace what is there.

    Raises
    ------
    RunFolderError
        If ``path`` exists already and ``force`` is not set, or another process is writing it.
    """

    def __init__(self, path, force: bool = False):
        self.path = Path(path)
        if self.path.exists() and not force:
            raise RunFolderError(f"{self.path} exists already", "use --force to replace it, or another name")
        if self.path.exists() and not (self.path / META).is_file():
            raise RunFolderError(f"{self.path} is not a folder of shards and is not replaced", "choose another name")
        self.partial = self.path.with_name(self.path.name + ".partial")
        try:
            self.partial.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.partial)
        except OSError as error:
            raise RunFolderError(
                f"{self.partial} cannot be written: {error.strerror or error}", "choose a place that may be written"
            ) from None
        for file in self.partial.iterdir():
            if file != self._lock.path:
                file.unlink()

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
            The shard's entry in meta.json.
        """
        cells = rows.shape[0] * rows.shape[1]
        dense = storage == "dense" or (storage == "auto" and rows.nnz >= DENSE_FROM * cells)
        count, rank, columns = _compact(rows.indices, rows.shape[1], dense)
        local = rows.indices.astype(np.int32) if dense else rank
        squares, indptr = np.zeros(rows.shape[0]), rows.indptr.astype(np.int64)
        if dense:  # as rows in memory compute them, to the last bit
            full = rows.toarray(order="C")
            squares = np.einsum("ij,ij->i", full, full, dtype=np.float64)
        else:
            csr_squared_norms(rows.data, indptr, squares)
        ranges = np.vstack([np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)])
        kernels.column_ranges(rows.data, local, *ranges)
        parts = {"targets": labels, "sqnorms": squares, "ranges": ranges}
        if dense:
            parts["dense"] = full
        else:
            parts |= {"data": rows.data, "indices": local, "indptr": indptr, "columns": columns}
        digest = hashlib.sha256()
        for name, array in parts.items():
            with replacing(self.partial / part_name(k, name)) as file:
                np.save(file, array, allow_pickle=False)
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return {
            "rows": rows.shape[0],
            "nnz": int(rows.nnz),
            "dense": bool(dense),
            "columns": count,
            "sha256": digest.hexdigest(),
        }

    def finish(self, meta: dict) -> None:
        """Write meta.json and give the folder its name, in place of an older one."""
        with replacing(self.partial / META) as file:
            file.write((readable_json(meta) + "\n").encode())
        old = self.path.with_name(self.path.name + ".old")
        if self.path.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.replace(self.path, old)
        os.replace(self.partial, self.path)
        sync_folder(self.path.parent)
        (self.path / self._lock.path.name).unlink(missing_ok=True)
        self._lock.path = self.path / self._lock.path.name
        shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Let other processes write the folder; what is not finished stays as a partial folder until the next call."""
        self._lock.release()


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
