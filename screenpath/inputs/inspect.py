"""A look at a data file or a shard folder: shape, labels, ranges, and every fault in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.data.files.advice import Column, columns_of, command_of, target_of
from screenpath.data.files.cells import Cells
from screenpath.data.files.dataset import FileLike
from screenpath.data.files.libsvm import Parser, parse_stream
from screenpath.data.files.read import auto_columns, opened, refuse_columns, refuse_indices
from screenpath.data.files.reader import read_table
from screenpath.data.files.source import is_shard_folder
from screenpath.data.files.table import TARGETS, form_of
from screenpath.data.shards import checks
from screenpath.data.shards.shards import META, ROWWISE, ShardFault, ShardFolder, read_meta
from screenpath.data.words.faults import Fault
from screenpath.data.words.numerals import Spelled

DENSE_COLUMNS = 1_000_000  # with this many columns more than stored values, only those that occur are looked at
CLASSES = 100  # with more labels, or labels that are not whole numbers, the file is taken for regression


@dataclass(frozen=True)
class Inspection:
    """What a data file holds."""

    data: Any  # Dataset or ShardData: the lines without fault; None where there is none
    faults: list[Fault] | list[ShardFault]  # in the order of the file, at most as many as asked for
    complete: bool  # whether the whole file was looked at
    zero_based: bool  # how its indices were read
    columns: list[Column] = field(default_factory=list, kw_only=True)  # what each column of a table file holds
    # Its column of labels or targets: without a ``target`` or a column called so, the most likely one.
    target: str | None = field(default=None, kw_only=True)
    command: str | None = field(default=None, kw_only=True)  # which reads the table and learns its target

    @property
    def label_counts(self) -> dict[float, int] | None:
        """Return samples per label, or None for a regression target."""
        labels, counts = np.unique(self.data.y, return_counts=True)
        if labels.size > CLASSES or np.any(labels != np.round(labels)):
            return None
        return {float(a): int(c) for a, c in zip(labels, counts, strict=True)}

    def column_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns that store a value, increasing from 0, and their smallest and largest values; shape (k,).

        The other d - k columns are empty: no array has d entries where d is far above the number of stored values. A
        row that stores no value in a column counts as 0 there.
        """
        columns, ranges = np.empty(0, dtype=np.int64), np.empty((3, 0))
        for _, numbers, X in self._blocks():
            if X.shape[1] <= DENSE_COLUMNS + X.nnz:
                found, place = np.arange(X.shape[1]), X.indices
            else:
                found, place = np.unique(X.indices, return_inverse=True)
            here = found if numbers is None else numbers[found]
            part = np.vstack([np.full(found.size, np.inf), np.full(found.size, -np.inf), np.zeros(found.size)])
            np.fmin.at(part[0], place, X.data)  # nan: a missing value
            np.fmax.at(part[1], place, X.data)
            part[2] += np.bincount(place, minlength=found.size)
            both = np.union1d(columns, here)
            low, high, counts = np.full(both.size, np.inf), np.full(both.size, -np.inf), np.zeros(both.size)
            for these, (lows, highs, stored) in ((columns, ranges), (here, part)):
                at = np.searchsorted(both, these)
                low[at], high[at] = np.minimum(low[at], lows), np.maximum(high[at], highs)
                counts[at] += stored
            columns, ranges = both, np.vstack([low, high, counts])
        low, high, counts = ranges[:, ranges[2] > 0]
        holes = counts < self.data.n
        low[holes], high[holes] = np.minimum(low[holes], 0.0), np.maximum(high[holes], 0.0)
        return columns[ranges[2] > 0], low, high

    def row_norms(self) -> np.ndarray:
        """Return the norm of every row; squares stay in range, and a missing value counts as 0."""
        norms = np.zeros(self.data.n)
        for start, _, X in self._blocks():
            np.hypot.at(norms, start + np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.nan_to_num(X.data))
        return norms

    def _blocks(self):
        """Yield the data block by block: the first row of a block, its columns (None: all of them), and its values."""
        yield 0, None, self.data.X


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

    @property
    def density(self) -> float:
        return self.nnz / max(self.n * self.d, 1)


@dataclass(frozen=True)
class ShardInspection(Inspection):
    """What a shard folder holds, read one shard at a time."""

    folder: ShardFolder | None  # None where meta.json has a fault
    whole: list[int]  # the shards without fault

    def _blocks(self):
        start, by_rows = 0, self.folder.by == ROWWISE
        for k in self.whole:
            X = self.folder.shard(k).matrix(self.folder.length)
            yield (start, None, X) if by_rows else (0, self.folder.part(k, "targets").astype(np.int64), X.T.tocsr())
            start += X.shape[0]


def inspect(
    source: FileLike, *, max_faults: int = 20, zero_based: bool = False, target: str | None = None,
    one_hot: str | Sequence[str] = (), columns: str | Sequence[str] = (), drop: str | Sequence[str] = (),
    id: str | None = None, **cells: Any,
) -> Inspection:  # fmt: skip
    """Look at a data file or at a shard folder, whatever is wrong with single rows; reading ends at ``max_faults``.

    Other parameters as of :func:`screenpath.read_data`. DataError: the file cannot be opened, or is a damaged archive.
    """
    how = Cells.of(cells)
    if not hasattr(source, "read") and is_shard_folder(source):
        refuse_columns(str(source), target, one_hot, None, columns, drop, id, how)
        return _inspect_shards(Path(source), max_faults, zero_based)
    with opened(source, how) as (table, stream, name):
        if table is None:
            refuse_columns(name, target, one_hot, stream, columns, drop, id, how)
            parser = Parser(name, zero_based, max_faults=max_faults)
            parse_stream(stream, parser)
            data = parser.dataset(None) if parser.labels.size else None
            return Inspection(data, parser.faults, not parser.full, zero_based)
        refuse_indices(name, zero_based, None)
        seen: dict[str, Any] = {}
        if hasattr(source, "__fspath__") or isinstance(source, str) and Path(source).is_file():
            with opened(source, how) as (again, _, _):
                assert again is not None
                seen["columns"] = columns_of(again)
            if target is None and sum(one.lower() in TARGETS for one in table.columns) != 1:
                target = target_of(seen["columns"]).name
        form = form_of(table, target, one_hot, columns, drop, id, auto_columns(source, table, one_hot))
        data, faults = read_table(table, form, max_faults=max_faults)
        faults.sort(key=lambda fault: table.columns.index(fault.column))
        if data is not None and data.text_label is not None:  # a regression cannot use the texts
            mixed = "other labels are numbers: lad, svr and quantile want all to be, to classifiers it is a label"
            data = replace(data, notices=(*data.notices, f"{data.text_label}; {mixed}"))
        if seen:
            seen |= {"target": form.target, "command": command_of(name, seen["columns"], form)}
        return Inspection(data, faults, len(faults) < max_faults, False, **seen)


def _inspect_shards(path: Path, max_faults: int, zero_based: bool) -> ShardInspection:
    """Look at every file of a shard folder; refuse a ``zero_based`` other than its own, and unreadable metadata."""
    faults = [ShardFault(path / META, what) for what in checks.meta_faults(read_meta(path)[0])]
    if faults:
        return ShardInspection(None, faults[:max_faults], True, zero_based, None, [])
    folder = ShardFolder(path, by=None)
    folder.check_indices(zero_based)
    whole: list[int] = []
    for k in range(folder.count):
        found = folder.faults(k)
        if not found:
            whole.append(k)
        faults += found
        if len(faults) >= max_faults:
            break
    if folder.by == ROWWISE:
        y = np.concatenate([np.empty(0), *(folder.part(k, "targets") for k in whole)])
        if len(whole) == folder.count and not _labels_agree(folder.meta["labels"], y, folder.label_names):
            faults.append(ShardFault(path / META, "the counts of the labels are not those of the rows"))
    else:
        wrong = folder.labels_faults()
        faults += wrong
        y = folder.labels() if whole and not wrong else np.empty(0)
    nnz, notices = sum(folder.meta["shards"][k]["nnz"] for k in whole), tuple(folder.meta["notices"])
    named = folder.names, folder.label_names, Spelled.of_record(folder.meta.get("spelled"))
    data = ShardData(str(folder.path), y.size, folder.d, nnz, y, notices, *named) if y.size else None
    complete = len(faults) < max_faults
    return ShardInspection(data, faults[:max_faults], complete, folder.meta["zero_based"], folder, whole)


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
