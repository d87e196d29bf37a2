"""A folder of shards by blocks of columns: the same data, feature by feature, for models that screen features.

It is a :class:`screenpath.data.shards.shards.ShardFolder` of the transposed data: a row of a shard is a feature, whose
number (from 0) is its target; indices count samples. ``labels.npy`` holds the labels of the samples. In wide data only
the features that occur have a row.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from screenpath.data.files.dataset import Dataset
from screenpath.data.safe.wide import WIDEST
from screenpath.data.shards.mapped import NotAnArray, map_array
from screenpath.data.shards.shards import COLUMNWISE, META, ShardFault, ShardFolder, content_sha256, read_meta
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp

LABELS = "labels.npy"


class ColumnFolder:
    """A folder written by ``screenpath convert --by columns``; ``content`` is as in :class:`ShardFolder`.

    Attributes
    ----------
    columns : ShardFolder
        Of the features: ``columns.n`` of them have a row, of ``columns.d`` samples.
    n, d, nnz : int
        Samples, features of the data, stored values.
    numbers : ndarray of int64 or None
        Features that have a row, from 0; None if all have one.
    sha256 : str
        Identifies the content of all shards and the labels.
    form, names, label_names, dtype, meta
        As in a :class:`ShardFolder`.
    """

    def __init__(self, path, content: bool = False):
        self.path, self.columns = Path(path), ShardFolder(path, content, COLUMNWISE)
        self.meta, self.dtype, self.nnz = self.columns.meta, self.columns.dtype, self.columns.nnz
        self.n, self.d = self.columns.d, self.meta["width"]
        numbers = self.columns.joined("targets")
        good = bool(np.all(numbers == np.floor(numbers)) and np.all(np.diff(numbers) > 0.0))
        if not good or numbers[0] < 0.0 or numbers[-1] >= self.d or self.d > WIDEST:
            raise ShardFault(self.path / META, "its features are not numbered from 0 up").error()
        self.numbers = None if numbers.size == self.d else numbers.astype(np.int64)
        whole = f"{self.columns.sha256} {self.meta['labels_file']['sha256']} {self.d}"
        self.sha256 = hashlib.sha256(whole.encode()).hexdigest()
        self.form, self.names, self.label_names = self.columns.form, self.columns.names, self.columns.label_names
        self.spelled = self.columns.spelled

    @property
    def count(self) -> int:
        """Return the number of shards."""
        return self.columns.count

    def labels(self) -> np.ndarray:
        """Return the labels or targets of the samples, shape (n,)."""
        found, fault = self._labels()
        if found is None or fault is not None:
            raise fault.error()
        return np.array(found)

    def labels_fault(self) -> ShardFault | None:
        return self._labels()[1]

    def _labels(self) -> tuple:
        file = self.path / LABELS
        try:
            found = map_array(file, (np.float64,), (self.n,))
        except OSError as error:
            return None, ShardFault(file, error.strerror or str(error))
        except NotAnArray as error:
            return None, ShardFault(file, str(error))
        if found.crc32() != self.meta["labels_file"]["crc32"]:
            return found.array, ShardFault(file, "its content is not what was written (CRC-32)")
        if self.columns.content and content_sha256({LABELS: found.array}) != self.meta["labels_file"]["sha256"]:
            return found.array, ShardFault(file, "its content is not what was written (SHA-256)")
        return found.array, None if np.isfinite(found.array).all() else ShardFault(file, "it holds nan or infinity")

    def check_indices(self, zero_based: bool) -> None:
        self.columns.check_indices(zero_based)

    def check_width(self, n_features: int | None) -> None:
        """Refuse another number of features than the folder has."""
        if n_features not in (None, self.d):
            raise UsageError(
                f"{self.path} was converted by columns, with {self.d} features", "give `n_features` to convert"
            )

    def check(self) -> None:
        self.columns.check()
        self.labels()

    def dataset(self, n_features: int | None = None) -> Dataset:
        self.check_width(n_features)
        found = self.columns.dataset()
        X = sp.csr_array(found.X.T)
        if self.numbers is not None:
            X = sp.csr_array((X.data, self.numbers[X.indices], X.indptr), shape=(self.n, self.d))
        return Dataset(
            X, self.labels(), str(self.path), found.notices, names=self.names, label_names=self.label_names,
            form=self.form, spelled=self.spelled,
        )  # fmt: skip

    def dataset_bytes(self) -> int:
        """Return an upper bound of the private bytes of :meth:`dataset`: the columns, and the rows made of them."""
        return 2 * self.columns.dataset_bytes() + 16 * self.nnz + 24 * self.n


def open_folder(path, content: bool = False) -> ShardFolder | ColumnFolder:
    """Open a folder of shards by rows or by columns, as its meta.json says; arguments as of :class:`ShardFolder`."""
    by_columns = read_meta(Path(path))[0].get("by") == COLUMNWISE
    return ColumnFolder(path, content) if by_columns else ShardFolder(path, content)
