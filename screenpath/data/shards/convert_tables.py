"""Tables to blocks of rows for shards: as many rows at a time as make a shard, whatever the files are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from screenpath.data.files.form import Form
from screenpath.data.files.read import is_table_file, opened
from screenpath.data.files.table import Reader, TableFile, Target, form_like, form_of
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.words.faults import Fault
from screenpath.data.words.numerals import MOST, FirstTexts, Spelled, Spellings
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp

BATCH = 1 << 17  # cells that are decoded at a time: rows and columns change places in the processor's cache


@dataclass(frozen=True)
class Settled:
    """What is known of tables before their rows are converted."""

    form: Form
    label_names: tuple[str, ...] | None  # of the labels 0, 1, ..., where they are texts

    def record(self) -> dict:
        """Return what meta.json says of it."""
        names = None if self.label_names is None else list(self.label_names)
        return {"table": self.form.record(), "label_names": names}


@dataclass(frozen=True)
class TableBlock:
    """Rows that make a shard."""

    name: str  # file of the last of them
    X: np.ndarray | sp.csr_array  # ndarray of float64, or csr_array, of shape (rows, features)
    y: np.ndarray  # shape (rows,)
    spelled: Spelled | None = None  # how labels are written up to here, where not as usual

    @property
    def nbytes(self) -> int:
        """Return the bytes of the rows."""
        return self.X.nbytes if isinstance(self.X, np.ndarray) else 12 * self.X.nnz


def settle(sources: Sequence, target: str | None, one_hot: str | Sequence[str]) -> Settled | None:
    """Return what the columns of tables are; None where the files are LIBSVM text.

    Labels that are texts, and one-hot columns, are read once for their values.
    """
    kinds = [is_table_file(source) for source in sources]
    if not any(kinds):
        return None
    if not all(kinds):
        one, other = sources[kinds.index(True)], sources[kinds.index(False)]
        raise DataError(f"{one} is a table, {other} is not", "convert files of one kind into one folder")
    with opened(sources[0]) as (first, _, _):
        form = form_of(first, target, one_hot)
    if not form.one_hot and not any(_has_texts(source, form) for source in sources):
        return Settled(form, None)
    found = Target(form.target), Reader(form, first)
    few = (*form.one_hot, form.target)
    for source in sources:
        with opened(source) as (table, _, _):
            form_like(table, form, form.target)
            for batch in table.batches(BATCH // len(table.columns) + 1, few):
                _raise(found[0].take(batch))
                _raise(found[1].hot(batch)[1])
    return Settled(found[1].settled(), found[0].finish()[1])


def _has_texts(source, form: Form) -> bool:
    """Tell whether labels are texts, by the first rows of a file."""
    with opened(source) as (table, _, _):
        form_like(table, form, form.target)
        target = Target(form.target)
        for batch in table.batches(BATCH, [form.target]):
            target.take(batch)
            return target.vocabulary is not None
    return False


def table_blocks(sources: Sequence, settled: Settled, size: int, limit: MemoryLimit) -> Iterator[TableBlock]:
    """Yield the rows of tables, about ``size`` bytes of numbers at a time."""
    width = max(len(settled.form.columns), 1)
    rows = max(1, size // (8 * width))
    numbers, hot = len(settled.form.numbers), len(settled.form.one_hot)
    limit.check(3 * 8 * rows * width, f"converting {rows:,} rows at a time", "use a smaller `block_mb`")
    X, places, at = np.empty((rows, numbers)), np.empty((rows, hot), dtype=np.int64), 0
    labels: list[np.ndarray] = []
    first = FirstTexts()
    with ExitStack() as stack:
        for source in sources:
            table, _, name = stack.enter_context(opened(source))
            reader = Reader(form_like(table, settled.form, settled.form.target)[0], table)
            few = min(rows, max(1, BATCH // width))
            for block, codes, y, spelled in _batches(table, reader, settled.label_names, few):
                if settled.label_names is None and len(first.texts) <= MOST:
                    first.add(np.unique(y).tolist(), spelled)
                start = 0
                while start < y.size:
                    part = slice(start, start + rows - at)
                    taken = y[part].size
                    X[at : at + taken], places[at : at + taken] = block[part], codes[part]
                    labels.append(y[part])
                    at, start = at + taken, part.stop
                    if at == rows:
                        yield TableBlock(name, _whole(reader, X, places), np.concatenate(labels), first.spelled)
                        X, places, at, labels = np.empty_like(X), np.empty_like(places), 0, []
        if at:
            yield TableBlock(name, _whole(reader, X[:at], places[:at]), np.concatenate(labels), first.spelled)


def _batches(table: TableFile, reader: Reader, names, rows: int):
    """Yield numbers, places of one-hot values and labels of some rows at a time."""
    target = Target(reader.form.target, True, names)
    for batch in table.batches(rows, reader.wanted):
        block, wrong = reader.block(batch)
        codes, missing = reader.hot(batch)
        _raise([*wrong, *missing, *target.take(batch)])
        if names is None and target.vocabulary is not None:
            raise DataError(
                f"{table.name}: labels are numbers in the first rows and texts behind them",
                "write all labels as texts, or all as numbers",
            )
        spelled, full = target.spelled, target.spellings.full
        y = target.numbers.array[: target.numbers.size].copy()
        target.spellings = target.spellings if full else Spellings()
        target.numbers.size = 0
        yield block, codes, y, spelled


def _whole(reader: Reader, X: np.ndarray, places: np.ndarray):
    return X if not reader.vocabularies else reader.rows(sp.csr_array(X), places)


def _raise(faults: list[Fault]) -> None:
    if faults:
        raise min(faults, key=lambda fault: fault.line).error()


def float32(block: TableBlock, dtype: np.dtype) -> TableBlock:
    """Return the rows in the type that shards keep; a number that float32 cannot hold is an error."""
    if dtype == np.float64:
        return block
    with np.errstate(over="ignore"):
        X = block.X.astype(dtype)
    values = X if isinstance(X, np.ndarray) else X.data
    if not np.isfinite(values).all():
        raise DataError(f"{block.name}: a value is too large for {dtype.name}", "keep float64")
    return replace(block, X=X)
