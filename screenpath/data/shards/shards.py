"""A shard folder: the rows of a data set in binary parts that can be mapped, described by meta.json.

Shard ``k`` has the file ``k-targets.npy`` and its rows, in one of two forms:

* ``k-dense.npy`` of shape (rows, width), if 0.3 or more is stored;
* CSR: ``k-data.npy``, ``k-indices.npy`` (int32), ``k-indptr.npy`` (int64), and ``k-columns.npy``. Indices count the
  columns that occur in the shard, which ``columns`` lists: the cost of a pass does not depend on the width of the data.

A folder by columns is one of the transposed data, for models that screen features: a line of a shard is a feature,
whose number (from 0) is its target; indices count samples. ``labels.npy`` holds the labels of the samples. In wide data
only the features that occur have a line. In a folder by rows the lines are the samples.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from screenpath.data.files.dataset import Dataset, Form
from screenpath.data.shards import checks
from screenpath.data.shards.checks import Mapped, NotAnArray, map_array, signature
from screenpath.data.words.numerals import Spelled
from screenpath.errors import DataError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import WIDEST, row_pointers, shared_csr

SCHEMA_VERSION, READ = 2, (1, 2)  # format 1 had two more parts: squared norms of rows, ranges of columns
META = "meta.json"
ROWWISE, COLUMNWISE = "rows", "columns"
LABELS = "labels.npy"
ROWS = ("dense", "data", "indices", "indptr", "columns")  # parts of the rows, in the order of Shard
KEPT_FILES = 400  # mapped files that stay open between passes: mapping again costs about as much as a pass
AGAIN = "convert the text again, with `force`"


@dataclass(frozen=True)
class Shard:
    """One shard, mapped."""

    dense: np.ndarray | None  # shape (rows, width)
    # data, indices, indptr, columns: CSR rows, None if they are dense; ``columns[indices]`` are the columns of the
    # data set, from 0
    data: Any  # not Optional: callers check ``dense`` first
    indices: Any
    indptr: Any
    columns: Any

    @property
    def rows(self) -> int:
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
        return shared_csr(self.data, self.columns[self.indices], self.indptr, (self.rows, d))


@dataclass(frozen=True)
class ShardFault:
    file: Path
    what: str
    hint: str = AGAIN

    def __str__(self) -> str:
        return f"{self.file} is missing or damaged: {self.what}"

    def error(self) -> DataError:
        return DataError(str(self), self.hint)


class ShardFolder:
    """A folder written by ``screenpath convert``, by rows or by columns; ``by`` is what it must be, None for either.

    ``content``: compare the SHA-256 of shards too, because a resumed run must have the same data, not only undamaged
    data. If meta.json is missing, damaged or from a newer version, a DataError is raised.
    """

    n: int  # n, d: samples and features
    d: int
    numbers: np.ndarray | None  # int64: features that have a line, from 0; None if all have one, or lines are samples
    meta: dict  # content of meta.json
    stamp: str  # identifies meta.json
    sha256: str  # identifies the content of all shards and labels

    def __init__(self, path, content: bool = False, by: str | None = ROWWISE):
        self.path, self.content = Path(path), content
        self.meta, self.stamp = read_meta(self.path)
        fault = next(checks.meta_faults(self.meta), None)
        if fault is not None:
            raise ShardFault(self.path / META, fault).error()
        self.by = self.meta.get("by", ROWWISE)
        if by not in (None, self.by):
            raise DataError(f"{self.path} was converted by {self.by}", f"convert again with `by={by}`")
        # Lines of all shards, and entries of each: samples and features, or the other way round; stored values.
        self.lines, self.length, self.nnz = (self.meta[name] for name in ("n", "d", "nnz"))
        self.n, self.d, self.numbers = self.lines, self.length, None
        self.dtype, self.sha256 = np.dtype(self.meta["dtype"]), self.meta["sha256"]
        self.starts = row_pointers([entry["rows"] for entry in self.meta["shards"]])  # first line of each shard
        names, table = self.meta.get("label_names"), self.meta.get("table")
        self.label_names: tuple[str, ...] | None = None if names is None else tuple(names)  # of the labels 0, 1, ...
        self.spelled = Spelled.of_record(self.meta.get("spelled"))
        self.form = None if table is None else Form.of_record(table)  # of the table it was made from
        self.read, self._counting = 0, Lock()  # bytes of lines, as whoever reads them notes
        self._kept: dict[int, Shard] = {}
        self._files_seen: dict[str, tuple] = {}  # states in which files were found without fault
        self._shards_seen: dict[int, dict] = {}  # and those of all parts of a shard together
        if self.by == COLUMNWISE:
            self.n, self.d, self.numbers = self.length, self.meta["width"], self._numbers()
            whole = f"{self.sha256} {self.meta['labels_file']['sha256']} {self.d}"
            self.sha256 = hashlib.sha256(whole.encode()).hexdigest()

    def _numbers(self) -> np.ndarray | None:
        numbers = self.targets()
        good = bool(np.all(numbers == np.floor(numbers)) and np.all(np.diff(numbers) > 0.0))
        if not good or numbers[0] < 0.0 or numbers[-1] >= self.meta["width"] or self.meta["width"] > WIDEST:
            raise ShardFault(self.path / META, "its features are not numbered from 0 up").error()
        return None if numbers.size == self.meta["width"] else numbers.astype(np.int64)

    @property
    def names(self) -> tuple[str, ...] | None:
        return None if self.form is None else self.form.names

    @property
    def count(self) -> int:
        return self.starts.size - 1

    @property
    def nbytes(self) -> int:
        """Return the bytes of the parts that a pass reads."""
        return sum(map(self.bytes_of, range(self.count)))

    def bytes_of(self, k: int) -> int:
        """Return the bytes of the lines of shard ``k``."""
        shard, width = self.meta["shards"][k], self.dtype.itemsize
        rows, nnz = shard["rows"], shard["nnz"]
        return rows * shard["columns"] * width if shard["dense"] else nnz * (width + 4) + 8 * rows

    def note(self, k: int, lines: int) -> None:
        """Count so many lines of shard ``k`` as read, each with the bytes that the shard's have on average."""
        with self._counting:
            self.read += self.bytes_of(k) * lines // self.meta["shards"][k]["rows"] if lines else 0

    # -- parts, checked before use -------------------------------------------------------------------------------------

    def part(self, k: int, name: str) -> np.ndarray:
        """Map one part of shard ``k``; a missing, damaged or invalid file is an error."""
        found, faults = self._part(k, name)
        if found is None or faults:
            raise faults[0].error()
        return found.array

    def shard(self, k: int) -> Shard:
        """Map the rows of shard ``k``, as :meth:`part`; the mappings of the first shards are kept.

        A mapping shows what is written to its file, so files that have changed are checked again.
        """
        if k in self._kept and self._unchanged(k):
            return self._kept[k]
        self._kept.pop(k, None)
        parts, faults = self._open(k)
        if faults:
            raise faults[0].error()
        shard = Shard(*(parts.get(name) for name in ROWS))
        if sum(name in parts for name in ROWS) * (len(self._kept) + 1) <= KEPT_FILES:
            self._kept[k] = shard
        return shard

    def check(self) -> None:
        """Check every shard, unless its files are unchanged since an earlier check, and the labels of columns."""
        for k in range(self.count):
            if not (self._shards_seen.get(k) and self._unchanged(k)):
                self.shard(k)
        if self.by == COLUMNWISE:
            self.labels()

    def faults(self, k: int) -> list[ShardFault]:
        return self._open(k)[1]

    def is_dense(self, k: int) -> bool:
        return self.meta["shards"][k]["dense"]

    def check_indices(self, zero_based: bool) -> None:
        """Refuse ``--zero-based`` for data converted with indices from 1."""
        if zero_based and not self.meta["zero_based"]:
            what = f"{self.path} was converted with indices from 1"
            raise UsageError(what, "leave out `zero_based`, or convert again with it")

    def _open(self, k: int) -> tuple[dict, list[ShardFault]]:
        mapped, faults = {}, []
        for name in checks.part_names(self.meta["shards"][k]):
            found, wrong = self._part(k, name)
            if found is not None:
                mapped[name] = found
            faults += wrong
        if faults:
            return {}, faults
        parts = {name: found.array for name, found in mapped.items()}
        states = {name: found.signature for name, found in mapped.items()}
        if self._shards_seen.get(k) != states:
            faults = list(self._shard_faults(k, parts))
            if not faults:
                self._shards_seen[k] = states
        return parts, faults

    def _unchanged(self, k: int) -> bool:
        states = self._shards_seen.get(k, {})
        try:
            return all(
                signature(os.stat(self.path / part_name(k, name))) == state
                for name, state in states.items()
                if name in ROWS
            )
        except OSError:  # whoever maps it says why
            return False

    def _part(self, k: int, name: str) -> tuple[Mapped | None, list[ShardFault]]:
        entry = self.meta["shards"][k]
        form, crc = checks.part_form(name, entry, self.dtype), (entry.get("crc32") or {}).get(name)
        return self._mapped(part_name(k, name), form, crc, lambda a: checks.part_fault(name, a, entry, self.length))

    def _mapped(self, name: str, form: tuple, crc: int | None, fault) -> tuple[Mapped | None, list[ShardFault]]:
        """Map one file, and return its faults; unchanged files without fault are not checked again."""
        file = self.path / name
        try:
            found = map_array(file, *form)
        except (OSError, NotAnArray) as error:
            return None, [ShardFault(file, getattr(error, "strerror", None) or str(error))]
        if self._files_seen.get(name) == found.signature:
            return found, []
        whats = [fault(found.array)]
        if crc is not None and found.crc32() != crc:
            whats.insert(0, "its content is not what was written (CRC-32)")
        faults = [ShardFault(file, what) for what in whats if what is not None]
        if not faults:
            self._files_seen[name] = found.signature
        return found, faults

    def _shard_faults(self, k: int, parts: dict) -> Iterator[ShardFault]:
        entry = self.meta["shards"][k]
        if (self.content or entry.get("crc32") is None) and content_sha256(parts) != entry["sha256"]:
            yield ShardFault(self.path / part_name(k, "*"), "its content is not what was written (SHA-256)")
        row = None if entry["dense"] else checks.unsorted_row(parts["indices"], parts["indptr"])
        if row is not None:
            yield ShardFault(self.path / part_name(k, "indices"), f"the indices of its row {row} do not increase")

    def checked_width(self, n_features: int | None) -> int:
        """Return the requested number of features, if the data fits into it; columns are as many as they are."""
        if n_features is None or n_features == self.d:
            return self.d
        if self.by == COLUMNWISE:
            what = f"{self.path} was converted by columns, with {self.d} features"
            raise UsageError(what, "give `n_features` to convert")
        if n_features < self.d:
            what = f"{self.path} has {self.d} features, more than `n_features={n_features}`"
            raise DataError(what, f"use `n_features={self.d}` or more")
        return n_features

    def targets(self) -> np.ndarray:
        """Return the targets of all shards, shape (n,)."""
        # All parts are looked at before an array is made of what meta.json promises.
        return np.concatenate([self.part(k, "targets") for k in range(self.count)])

    def labels(self) -> np.ndarray:
        """Return the labels or targets of the samples, shape (n,)."""
        if self.by == ROWWISE:
            return self.targets()
        found, faults = self._labels()
        if found is None or faults:
            raise faults[0].error()
        return np.array(found.array)

    def labels_faults(self) -> list[ShardFault]:
        """Return the faults of the labels of a folder by columns."""
        return self._labels()[1]

    def _labels(self) -> tuple[Mapped | None, list[ShardFault]]:
        entry = self.meta["labels_file"]

        def fault(array: np.ndarray) -> str | None:
            if self.content and content_sha256({LABELS: array}) != entry["sha256"]:
                return "its content is not what was written (SHA-256)"
            return checks.part_fault("targets", array, entry, self.length)

        return self._mapped(LABELS, ((np.float64,), (self.n,)), entry["crc32"], fault)

    def dataset(self, n_features: int | None = None) -> Dataset:
        """Return all rows in memory, as reading the text would."""
        width = self.checked_width(n_features)
        X = self._stacked(width if self.by == ROWWISE else self.n)
        self.check()
        if self.by == COLUMNWISE:
            X = sp.csr_array(X.T)
            if self.numbers is not None:
                X = sp.csr_array((X.data, self.numbers[X.indices], X.indptr), shape=(self.n, self.d))
        return Dataset(
            X, self.labels(), str(self.path), tuple(self.meta["notices"]), names=self.names,
            label_names=self.label_names, form=self.form, spelled=self.spelled,
        )  # fmt: skip

    def _stacked(self, length: int) -> sp.csr_array:
        """Return the lines of all shards as one array; only one shard's parts are in memory at a time."""
        shards = [self.shard(k) for k in range(self.count)]
        sizes = [s.indptr[-1] if s.dense is None else np.count_nonzero(s.dense) for s in shards]
        ends = row_pointers(sizes)
        kind = sp.index_type(max(int(ends[-1]), length))
        data, indices = np.empty(ends[-1], dtype=self.dtype), np.empty(ends[-1], dtype=kind)
        indptr = np.zeros(self.lines + 1, dtype=kind)
        for k, shard in enumerate(shards):
            block, part = shard.matrix(length), slice(ends[k], ends[k + 1])
            data[part], indices[part] = block.data, block.indices
            indptr[self.starts[k] + 1 : self.starts[k + 1] + 1] = ends[k] + block.indptr[1:]
        return sp.csr_array((data, indices, indptr), shape=(self.lines, length))

    def dataset_bytes(self) -> int:
        """Return an upper bound of the private bytes of :meth:`dataset`: the lines, and rows made of columns."""
        largest = max((shard["nnz"] for shard in self.meta["shards"]), default=0)
        one, width = 8 if self.length > np.iinfo(np.int32).max else 4, self.dtype.itemsize
        stacked = (width + one) * self.nnz + (width + one + 8) * largest + 24 * self.lines
        return stacked if self.by == ROWWISE else 2 * stacked + 16 * self.nnz + 24 * self.n


def read_meta(path: Path) -> tuple[dict, str]:
    """Return the content of a folder's meta.json and the SHA-256 of the file."""
    file = path / META
    try:
        text = file.read_bytes() if file.is_file() or not file.exists() else b""
        meta = json.loads(text)
        version = meta["schema_version"]
        if type(version) is not int:
            raise TypeError
    except FileNotFoundError:
        what = f"{path} is a folder, but not one of shards"
        raise DataError(what, "name a file of LIBSVM text, CSV or Parquet, or a folder of convert") from None
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}", "check that it may be read") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{file} is damaged", AGAIN) from None
    if version not in READ:
        what = f"{path} has the format {version}, this version reads {READ[0]} and {READ[1]}"
        raise DataError(what, "use the version of screenpath that wrote it, or " + AGAIN)
    return meta, hashlib.sha256(text).hexdigest()


def content_sha256(parts: dict) -> str:
    """Return the SHA-256 of the parts of a shard: names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, array in parts.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def part_name(k: int, name: str) -> str:
    return f"{k:06d}-{name}.npy"


def in_order(pool, most: int, function, tasks):
    """Yield ``function(*arguments)`` for each of ``tasks``, in order: ``most`` at once in a pool, or in this thread."""
    if pool is None:
        for arguments in tasks:
            yield function(*arguments)
        return
    waiting: deque = deque()
    for arguments in tasks:
        waiting.append(pool.submit(function, *arguments))
        if len(waiting) > most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
