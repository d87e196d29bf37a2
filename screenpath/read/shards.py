"""A shard folder: the rows of a data set in binary parts that can be mapped, and meta.json about them.

Shard ``k`` has the files ``k-targets.npy``, ``k-sqnorms.npy`` (squared row norms), ``k-ranges.npy`` (for each of its
columns: smallest value, largest value, number of stored values) and its rows, in one of two forms:

* ``k-dense.npy`` of shape (rows, width), for rows of which 0.3 or more is stored;
* CSR: ``k-data.npy``, ``k-indices.npy`` (int32), ``k-indptr.npy`` (int64), and ``k-columns.npy``. The indices count the
  columns that occur in the shard, ``columns`` says which these are: a pass costs what the shard holds, however wide
  the data set is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from screenpath.errors import DataError
from screenpath.read.dataset import Dataset

SCHEMA_VERSION = 1
META = "meta.json"
KEPT_FILES = 400  # mapped files that stay open between passes: mapping again costs about as much as a pass reads
SMALL = 1 << 12  # bytes below which a file is read instead of mapped
AGAIN = "convert the text again: screenpath convert DATA... OUT --force"


@dataclass(frozen=True)
class Shard:
    """One shard, mapped.

    Parameters
    ----------
    dense : ndarray of shape (rows, width) or None
    data, indices, indptr, columns : ndarray or None
        CSR rows; ``columns[indices]`` are the columns of the data set, from 0.
    """

    dense: np.ndarray | None
    data: np.ndarray | None
    indices: np.ndarray | None
    indptr: np.ndarray | None
    columns: np.ndarray | None

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.dense.shape[0] if self.dense is not None else self.indptr.size - 1

    def head(self) -> Shard:
        """Return the first row alone."""
        if self.dense is not None:
            return Shard(self.dense[:1], None, None, None, None)
        indptr = self.indptr[:2]
        return Shard(None, self.data[: indptr[-1]], self.indices[: indptr[-1]], indptr, self.columns)

    def matrix(self, d: int) -> sp.csr_array:
        """Return the rows as CSR with ``d`` columns (a copy of dense rows)."""
        if self.dense is not None:
            X = sp.csr_array(self.dense)
            return sp.csr_array((X.data, X.indices, X.indptr), shape=(self.rows, d))
        return sp.csr_array((self.data, self.columns[self.indices], self.indptr), shape=(self.rows, d))


class ShardFolder:
    """A folder that ``screenpath convert`` has written.

    Parameters
    ----------
    path : path-like

    Attributes
    ----------
    meta : dict
        Content of meta.json.
    n, d, nnz : int
    starts : ndarray of int64 of shape (shards + 1,)
        First row of each shard, and ``n``.
    dtype : numpy.dtype
        Of the stored values.

    Raises
    ------
    DataError
        If meta.json is missing, damaged or from a newer version.
    """

    def __init__(self, path):
        self.path = Path(path)
        file = self.path / META
        try:
            self.meta = json.loads(file.read_text(encoding="utf-8"))
            version = self.meta["schema_version"]
            rows = [shard["rows"] for shard in self.meta["shards"]]
            self.n, self.d, self.nnz = (int(self.meta[name]) for name in ("n", "d", "nnz"))
            self.dtype, self.sha256 = np.dtype(self.meta["dtype"]), self.meta["sha256"]
        except FileNotFoundError:
            raise DataError(
                f"{self.path} is a folder, but not one of shards", "name a LIBSVM text file, or a converted folder"
            ) from None
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror or error}", "check that it may be read") from None
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{file} is damaged", AGAIN) from None
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{self.path} has the format {version}, this version reads {SCHEMA_VERSION}",
                "use the version of screenpath that wrote it, or " + AGAIN,
            )
        self.starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        self._kept: dict[int, Shard] = {}

    @property
    def count(self) -> int:
        """Return the number of shards."""
        return self.starts.size - 1

    @property
    def density(self) -> float:
        """Return stored values over cells."""
        return self.nnz / max(self.n * self.d, 1)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the parts that a pass reads."""
        width = self.dtype.itemsize
        return sum(
            shard["rows"] * shard["columns"] * width
            if shard["dense"]
            else shard["nnz"] * (width + 4) + 8 * shard["rows"]
            for shard in self.meta["shards"]
        )

    def part(self, k: int, name: str) -> np.ndarray:
        """Map one part of shard ``k``.

        Raises
        ------
        DataError
            If the file is missing or cut short.
        """
        file = self.path / part_name(k, name)
        try:
            # Mapped copy-on-write: pages are shared with the file, and yet it is an ordinary array to compiled code.
            mode = "c" if file.stat().st_size > SMALL else None
            return np.asarray(np.load(file, mmap_mode=mode, allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{file} is missing or damaged ({error})", AGAIN) from None

    def shard(self, k: int) -> Shard:
        """Map the rows of shard ``k``; of the first shards the mapping is kept."""
        if k in self._kept:
            return self._kept[k]
        if self.meta["shards"][k]["dense"]:
            shard, files = Shard(self.part(k, "dense"), None, None, None, None), 1
        else:
            parts = ("data", "indices", "indptr", "columns")
            shard, files = Shard(None, *(self.part(k, name) for name in parts)), len(parts)
        if files * (len(self._kept) + 1) <= KEPT_FILES:
            self._kept[k] = shard
        return shard

    def checked_width(self, n_features: int) -> int:
        """Return the width that was asked for, if the data fits into it."""
        if n_features < self.d:
            raise DataError(
                f"{self.path} has {self.d} features, more than --n-features {n_features}",
                f"use --n-features {self.d} or more",
            )
        return n_features

    def joined(self, name: str) -> np.ndarray:
        """Return a part with one number a row (``targets``, ``sqnorms``) of all shards together, shape (n,)."""
        out = np.empty(self.n)
        for k in range(self.count):
            out[self.starts[k] : self.starts[k + 1]] = self.part(k, name)
        return out

    def ranges(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest value of every column, shape (d,); 0 counts where a row stores none."""
        low, high, counts = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d)
        for k in range(self.count):
            dense = self.meta["shards"][k]["dense"]
            part = self.part(k, "ranges")
            columns = np.arange(part.shape[1]) if dense else self.part(k, "columns")
            low[columns] = np.minimum(low[columns], part[0])
            high[columns] = np.maximum(high[columns], part[1])
            counts[columns] += part[2]
        holes = counts < self.n
        low[holes], high[holes] = np.minimum(low[holes], 0.0), np.maximum(high[holes], 0.0)
        return low, high

    def dataset(self, n_features: int | None = None) -> Dataset:
        """Return all rows in memory, as reading the text would."""
        d = self.d if n_features is None else self.checked_width(n_features)
        blocks = [self.shard(k).matrix(d) for k in range(self.count)]
        X = blocks[0] if len(blocks) == 1 else sp.csr_array(sp.vstack(blocks, format="csr"))
        return Dataset(X, self.joined("targets"), str(self.path), tuple(self.meta["notices"]))


def part_name(k: int, name: str) -> str:
    """Return the file name of a part."""
    return f"{k:06d}-{name}.npy"


def is_shard_folder(path) -> bool:
    """Tell whether a path names a folder (which must then be one of shards)."""
    return str(path) != "-" and Path(path).is_dir()
