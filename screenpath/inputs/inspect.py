"""A look at a data file or a shard folder: shape, labels, ranges, and every fault in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.data.files.dataset import Dataset, FileLike
from screenpath.data.files.libsvm import Parser, parse_stream
from screenpath.data.files.read import opened, refuse_columns, refuse_indices
from screenpath.data.files.source import is_shard_folder
from screenpath.data.files.table import form_of, read_table
from screenpath.data.shards import checks
from screenpath.data.shards.column_shards import ColumnFolder, open_folder
from screenpath.data.shards.shards import META, ShardFault, ShardFolder, read_meta
from screenpath.data.words.faults import Fault
from screenpath.data.words.numerals import Spelled

DENSE_COLUMNS = 1_000_000  # with this many columns more than stored values, only those that occur are looked at
CLASSES = 100  # with more labels, or labels that are not whole numbers, the file is taken for regression


@dataclass(frozen=True)
class Inspection:
    """What a data file holds.

    Parameters
    ----------
    data : Dataset (or ShardData) or None
        The lines without fault; None where there is none.
    faults : list of Fault (or of ShardFault)
        In the order of the file, at most as many as asked for.
    complete : bool
        Whether the whole file was looked at.
    zero_based : bool
        How its indices were read.
    """

    data: Any
    faults: list[Fault] | list[ShardFault]
    complete: bool
    zero_based: bool

    @property
    def label_counts(self) -> dict[float, int] | None:
        """Return samples per label, or None for a regression target."""
        labels, counts = np.unique(self.data.y, return_counts=True)
        if labels.size > CLASSES or np.any(labels != np.round(labels)):
            return None
        return {float(a): int(c) for a, c in zip(labels, counts, strict=True)}

    def column_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns that store a value, and the smallest and largest value of each.

        Returns
        -------
        columns : ndarray of shape (k,)
            Increasing, from 0; the other d - k columns are empty. No array has d entries where d is far above
            the number of stored values.
        low, high : ndarray of shape (k,)
            A row that stores no value in a column counts as 0 there.
        """
        X = self.data.X
        if X.shape[1] <= DENSE_COLUMNS + X.nnz:
            found, place = np.arange(X.shape[1]), X.indices
            counts = np.bincount(place, minlength=found.size)
        else:
            found, place, counts = np.unique(X.indices, return_inverse=True, return_counts=True)
        # a column with a value in every row has no 0 of its own
        low = np.where(counts == X.shape[0], np.inf, 0.0)
        high = np.where(counts == X.shape[0], -np.inf, 0.0)
        np.minimum.at(low, place, X.data)
        np.maximum.at(high, place, X.data)
        stored = counts > 0
        return found[stored], low[stored], high[stored]

    def row_norms(self) -> np.ndarray:
        """Return the Euclidean norm of every row, scaled by its largest value so that squares stay in range."""
        return _row_norms(self.data.X)


@dataclass(frozen=True)
class ShardData:
    """The shards without fault, with the attributes of a :class:`Dataset`; their rows are not read yet."""

    source: str
    n: int
    d: int
    nnz: int
    y: np.ndarray  # shape (n,)
    notices: tuple[str, ...]
    names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    spelled: Spelled | None = None

    @classmethod
    def of(cls, folder: ShardFolder | ColumnFolder, whole: list[int], d: int, y: np.ndarray) -> ShardData:
        """Return the data of the shards ``whole`` of a folder, ``d`` features wide and with the labels ``y``."""
        nnz, notices = sum(folder.meta["shards"][k]["nnz"] for k in whole), tuple(folder.meta["notices"])
        spelled = Spelled.of_record(folder.meta.get("spelled"))
        return cls(str(folder.path), y.size, d, nnz, y, notices, folder.names, folder.label_names, spelled)

    @property
    def density(self) -> float:
        """Return stored values over cells."""
        return self.nnz / max(self.n * self.d, 1)


@dataclass(frozen=True)
class ShardInspection(Inspection):
    """What a shard folder holds, read one shard at a time.

    Parameters
    ----------
    folder : ShardFolder or None
        None where meta.json has a fault.
    whole : list of int
        The shards without fault.
    """

    folder: ShardFolder | None
    whole: list[int]

    def column_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        columns, ranges = np.empty(0, dtype=np.int64), np.empty((3, 0))
        for k in self.whole:
            part = self.folder.part(k, "ranges")
            here = np.arange(part.shape[1]) if self.folder.is_dense(k) else self.folder.part(k, "columns")
            both = np.union1d(columns, here)
            low, high, counts = np.full(both.size, np.inf), np.full(both.size, -np.inf), np.zeros(both.size)
            for place, (lows, highs, found) in ((columns, ranges), (here, part)):
                at = np.searchsorted(both, place)
                low[at], high[at] = np.minimum(low[at], lows), np.maximum(high[at], highs)
                counts[at] += found
            columns, ranges = both, np.vstack([low, high, counts])
        low, high, counts = ranges
        holes = counts < self.data.n
        low[holes], high[holes] = np.minimum(low[holes], 0.0), np.maximum(high[holes], 0.0)
        stored = counts > 0
        return columns[stored], low[stored], high[stored]

    def row_norms(self) -> np.ndarray:
        return np.concatenate([_row_norms(self.folder.shard(k).matrix(self.data.d)) for k in self.whole])


@dataclass(frozen=True)
class ColumnInspection(ShardInspection):
    """What a folder of shards by columns holds: their rows are features, numbered by their targets."""

    def column_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = []
        for k in self.whole:
            X = self.folder.shard(k).matrix(self.data.n)
            stored = np.diff(X.indptr) > 0
            ends = (part.toarray().ravel()[stored] for part in (X.min(axis=1), X.max(axis=1)))
            found.append((self.folder.part(k, "targets")[stored].astype(np.int64), *ends))
        columns, low, high = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return columns, low, high

    def row_norms(self) -> np.ndarray:
        """Return the Euclidean norm of every row over the features in shards without fault."""
        blocks = [self.folder.shard(k).matrix(self.data.n) for k in self.whole]
        largest = np.zeros(self.data.n)
        for X in blocks:
            np.maximum.at(largest, X.indices, np.abs(X.data))
        scale, total = np.where(largest > 0, largest, 1.0), np.zeros(self.data.n)
        for X in blocks:
            np.add.at(total, X.indices, (X.data / scale[X.indices]) ** 2)
        return largest * np.sqrt(total)


def _row_norms(X) -> np.ndarray:
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    largest = np.zeros(X.shape[0])
    np.maximum.at(largest, rows, np.abs(X.data))
    scale = np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(np.bincount(rows, weights=(X.data / scale[rows]) ** 2, minlength=X.shape[0]))


def inspect(
    source: FileLike,
    *,
    max_faults: int = 20,
    zero_based: bool = False,
    target: str | None = None,
    one_hot: str | Sequence[str] = (),
) -> Inspection:
    """Look at a data file or at a shard folder, whatever is wrong with single rows.

    Parameters
    ----------
    source : path-like or binary file object
        LIBSVM text, CSV, Parquet, or a folder of shards.
    max_faults : int, default 20
        Reading ends at this many.
    zero_based : bool, default False
        Of LIBSVM text.
    target, one_hot : str, str or sequence of str
        Columns of a table, see :func:`screenpath.read_data`.

    Returns
    -------
    Inspection

    Raises
    ------
    DataError
        If the file cannot be opened or is a damaged archive.
    """
    if not hasattr(source, "read") and is_shard_folder(source):
        refuse_columns(str(source), target, one_hot)
        return _inspect_shards(Path(source), max_faults, zero_based)
    with opened(source) as (table, stream, name):
        if table is None:
            refuse_columns(name, target, one_hot, stream)
            return _inspect_text(stream, name, max_faults, zero_based)
        refuse_indices(name, zero_based, None)
        data, faults = read_table(table, form_of(table, target, one_hot), max_faults=max_faults)
        data = data and replace(data, notices=(*data.notices, *_mixed_labels(data)))
        return Inspection(data, faults, len(faults) < max_faults, False)


def _mixed_labels(data: Dataset) -> tuple[str, ...]:
    """Return a notice where some labels are texts and others numbers: a regression cannot use the texts."""
    text = data.text_label
    if text is None:
        return ()
    return (f"{text}; other labels are numbers: lad, svr and quantile want all to be, to classifiers it is a label",)


def _inspect_shards(path: Path, max_faults: int, zero_based: bool) -> ShardInspection:
    """Look at every file of a shard folder; a ``zero_based`` other than the folder's is refused.

    Raises
    ------
    DataError, UsageError
        If there is no meta.json, or none that could be read.
    """
    faults = [ShardFault(path / META, what) for what in checks.meta_faults(read_meta(path)[0])]
    if faults:
        return ShardInspection(None, faults[:max_faults], True, zero_based, None, [])
    opened = open_folder(path)
    opened.check_indices(zero_based)
    folder = opened if isinstance(opened, ShardFolder) else opened.columns
    whole: list[int] = []
    for k in range(folder.count):
        found = folder.faults(k)
        if not found:
            whole.append(k)
        faults += found
        if len(faults) >= max_faults:
            break
    if not isinstance(opened, ShardFolder):
        return _of_columns(opened, faults, whole, max_faults)
    targets = np.concatenate([np.empty(0), *(folder.part(k, "targets") for k in whole)])
    if len(whole) == folder.count and not _labels_agree(folder.meta["labels"], targets, folder.label_names):
        faults.append(ShardFault(path / META, "the counts of the labels are not those of the rows"))
    data = None
    if targets.size:
        data = ShardData.of(folder, whole, folder.d, targets)
    complete = len(faults) < max_faults
    return ShardInspection(data, faults[:max_faults], complete, folder.meta["zero_based"], folder, whole)


def _of_columns(folder: ColumnFolder, faults: list[ShardFault], whole: list[int], max_faults: int) -> ShardInspection:
    """Return what a folder by columns holds; without labels only its faults."""
    data, fault = None, folder.labels_fault()
    if fault is not None:
        faults.append(fault)
    elif whole:
        data = ShardData.of(folder, whole, folder.d, folder.labels())
    complete = len(faults) < max_faults
    return ColumnInspection(data, faults[:max_faults], complete, folder.meta["zero_based"], folder.columns, whole)


def _labels_agree(labels: dict | None, targets: np.ndarray, names) -> bool:
    if labels is None:
        return True
    if names is not None:
        labels = {str(names.index(label)): count for label, count in labels.items() if label in names}
    found = zip(*(part.tolist() for part in np.unique(targets, return_counts=True)), strict=True)
    try:
        return {float(label): count for label, count in labels.items()} == dict(found)
    except ValueError:
        return False


def _inspect_text(stream, name: str, max_faults: int, zero_based: bool) -> Inspection:
    parser = Parser(name, zero_based, max_faults=max_faults)
    parse_stream(stream, parser)
    data = parser.dataset(None) if parser.labels.size else None
    return Inspection(data, parser.faults, not parser.full, zero_based)
