"""Data in blocks for shards: whole lines of LIBSVM text, rows of tables, columns of shards by rows.

Streams become readable twice. Each pass over the rows fills as many blocks of columns as memory allows.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import numpy as np

from screenpath.data.files.cells import USUAL, Cells
from screenpath.data.files.csv_file import HEADER, header_of
from screenpath.data.files.dataset import Dataset, Form
from screenpath.data.files.libsvm import BLOCK, NEWLINE, Parser, parse_stream, whole_lines
from screenpath.data.files.read import auto_columns, is_table_file, opened
from screenpath.data.files.reader import Reader
from screenpath.data.files.source import BLANK, PartlyRead, StreamCopy, beginning, is_stream, open_source
from screenpath.data.files.table import FILL_IN, MISSING, TableFile, Target, form_like, form_of
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards.shards import ShardFolder, content_sha256
from screenpath.data.words.faults import Fault, first_is_word, words_of
from screenpath.data.words.numerals import MOST, FirstTexts, Spelled, Spellings
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import find, is_wide, row_pointers, shared_csr

BATCH = 1 << 17  # cells decoded at a time: they are transposed in the processor's cache
AT_ONCE = 1 << 30  # bytes of columns filled in one pass over the rows, without a lower limit
SHARE = 0.25  # of what the limit leaves, for them: writing them takes as much again
MEMORY_FACTOR = 8  # bytes that a job needs per byte of its block: text, parsed entries, binary parts


@contextmanager
def rereadable(sources: Sequence, folder):
    """Yield sources; tables, and text with words as labels, can be read more than once.

    Sources are paths, also of pipes, ``-`` for standard input, or binary file objects. A stream of text with numeric
    labels is read as it comes; a stream that must be read twice is copied to ``folder`` meanwhile.
    """
    with ExitStack() as stack:
        found = []
        for source in sources:
            if not is_stream(source):
                found.append(source)
                continue
            stream, name = stack.enter_context(open_source(source))
            head = beginning(stream, _shows_label)
            begun = PartlyRead(head, stream, name)
            twice = header_of(head.lstrip(BLANK)) is not None or first_is_word(head.splitlines())
            found.append(stack.enter_context(StreamCopy(begun, name, folder)) if twice else begun)
        yield found


def _shows_label(head: bytes) -> bool:
    """Tell whether a line with a label is among the first whole lines of a stream, or so many bytes have none."""
    whole = head[: head.rfind(b"\n") + 1].lstrip(BLANK)
    return len(head) >= HEADER or first_is_word(whole.splitlines()) is not None


def label_words(sources: Sequence, limit: MemoryLimit) -> tuple[str, ...]:
    """Return the text labels of LIBSVM text, sorted; empty if labels are numbers, as in sources that can be read only
    once.
    """
    found: set[str] = set()
    for source in sources:
        if isinstance(source, PartlyRead):
            continue
        with open_source(source) as (stream, name):
            if not found and not first_is_word(stream):
                return ()
        for block in text_blocks([source], BLOCK, limit):
            found |= words_of(block.text.tobytes())
    return tuple(sorted(found))


@dataclass(frozen=True)
class TextBlock:
    name: str
    line: int  # lines of the file before the block
    text: np.ndarray  # uint8: ends in a newline

    @property
    def nbytes(self) -> int:
        return self.text.size

    def digest(self) -> str:
        """Return what a resumed conversion compares."""
        return hashlib.sha256(self.text.data).hexdigest()

    def read(self, zero_based: bool, names: Sequence[str], n_features: int | None) -> Dataset:
        """Parse the block in pieces, because the parser needs many times the size of its input as scratch space."""
        parser = Parser(self.name, zero_based, line=self.line, names=names)
        parse_stream(io.BytesIO(self.text.data), parser)
        if parser.faults:
            raise parser.faults[0].error()
        return parser.dataset(n_features)


def text_blocks(sources, size: int, limit: MemoryLimit) -> Iterator[TextBlock]:
    """Cut text into blocks of whole lines, of about ``size`` bytes and at least one line."""
    for source in sources:
        with open_source(source) as (stream, name):
            lines = 0
            for text in whole_lines(stream, size, limit, name, MEMORY_FACTOR):
                yield TextBlock(name, lines, text)
                lines += int(np.count_nonzero(text == NEWLINE))


@dataclass(frozen=True)
class Settled:
    """What is known of tables before their rows are converted."""

    form: Form
    label_names: tuple[str, ...] | None  # of the labels 0, 1, ..., where they are texts

    def record(self) -> dict:
        names = None if self.label_names is None else list(self.label_names)
        return {"table": self.form.record(), "label_names": names}


@dataclass(frozen=True)
class TableBlock:
    name: str  # file of the last row
    X: np.ndarray | sp.csr_array  # ndarray of float64, or csr_array, of shape (rows, features)
    y: np.ndarray  # shape (rows,)
    spelled: Spelled | None = None  # unusual spellings of labels up to here
    notices = ()

    @property
    def nbytes(self) -> int:
        return self.X.nbytes if isinstance(self.X, np.ndarray) else 12 * self.X.nnz

    def digest(self) -> str:
        X = self.X
        parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
        return content_sha256(dict(enumerate([*parts, self.y])))

    def read(self, *_) -> TableBlock:
        """Return the rows, which are parsed already."""
        return self


def settle(sources: Sequence, one_hot: str | Sequence[str], cells: Cells = USUAL, **more) -> Settled | None:
    """Return the form and text labels of tables; None if the files are LIBSVM text.

    Text labels and one-hot columns are read once for their values; arguments are those of ``form_of``.
    """
    kinds = [is_table_file(source, cells) for source in sources]
    if not any(kinds):
        return None
    if not all(kinds):
        one, other = sources[kinds.index(True)], sources[kinds.index(False)]
        raise DataError(f"{one} is a table, {other} is not", "convert files of one kind into one folder")
    with opened(sources[0], cells) as (first, _, _):
        assert first is not None
        form = form_of(first, one_hot=one_hot, auto=auto_columns(sources[0], first, one_hot), **more)
    if not form.one_hot and not any(_has_texts(source, form) for source in sources):
        return Settled(form, None)
    found = Target(form.target), Reader(form, first)
    few = (*form.one_hot, form.target)
    for source in sources:
        with opened(source, cells) as (table, _, _):
            form_like(table, form, form.target)
            for batch in table.batches(BATCH // len(table.columns) + 1, few):
                _raise(found[0].take(batch))
                _raise(found[1].hot(batch)[1])
    return Settled(found[1].settled(), found[0].finish()[1])


def _has_texts(source, form: Form) -> bool:
    with opened(source, form.cells) as (table, _, _):
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
            table, _, name = stack.enter_context(opened(source, settled.form.cells))
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
            what = f"{table.name}: labels are numbers in the first rows and texts after them"
            raise DataError(what, "write all labels as texts, or all as numbers")
        spelled, full = target.spelled, target.spellings.full
        y = target.numbers.array[: target.numbers.size].copy()
        target.spellings = target.spellings if full else Spellings()
        target.numbers.size = 0
        yield block, codes, y, spelled


def _whole(reader: Reader, X: np.ndarray, places: np.ndarray):
    return X if not reader.vocabularies else reader.rows(sp.csr_array(X), places)


def _raise(faults: list[Fault]) -> None:
    if faults:
        first = min(faults, key=lambda fault: fault.line)
        raise (replace(first, hint=FILL_IN) if first.message == MISSING[0] else first).error()


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
        numbers, place = np.unique(np.concatenate([numbers, columns]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, found]), numbers.size).astype(np.int64)
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
    kind = sp.index_type(max(rows.n, int(indptr[-1])))
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
    places, known = find(numbers, shard.columns)
    X = shared_csr(shard.data, shard.indices, shard.indptr, (shard.rows, shard.columns.size))
    return places[known], sp.csr_array(X[:, np.flatnonzero(known)].T)
