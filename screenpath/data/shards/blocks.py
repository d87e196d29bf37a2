"""Data files in blocks for shards: whole lines of LIBSVM text, or rows of tables; streams become readable twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.data.files.csv_file import HEADER, header_of
from screenpath.data.files.dataset import Dataset, Form
from screenpath.data.files.libsvm import BLOCK, NEWLINE, Parser, last_line_end, whole_lines
from screenpath.data.files.read import is_table_file, opened
from screenpath.data.files.source import BUFFER, Begun, Kept, open_source
from screenpath.data.files.table import Reader, TableFile, Target, form_like, form_of
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards.shards import content_sha256
from screenpath.data.words.faults import Fault, first_is_word, words_of
from screenpath.data.words.numerals import MOST, FirstTexts, Spelled, Spellings
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp

BATCH = 1 << 17  # cells decoded at a time: they are transposed in the processor's cache
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
            if not _is_stream(source):
                found.append(source)
                continue
            stream, name = stack.enter_context(open_source(source))
            head = _head(stream)
            begun = Begun(head, stream, name)
            twice = header_of(head.lstrip(b"\xef\xbb\xbf\r\n")) is not None or first_is_word(head.splitlines())
            found.append(stack.enter_context(Kept(begun, name, folder)) if twice else begun)
        yield found


def _is_stream(source) -> bool:
    """Tell whether a source can be read only once: a stream, or the path of a pipe."""
    if hasattr(source, "read") or str(source) == "-":
        return True
    path = Path(source)
    return path.exists() and not path.is_file() and not path.is_dir()


def _head(stream) -> bytes:
    """Return the beginning of a stream: its lines up to the first that has a label."""
    head = b""
    while len(head) < HEADER:
        more = stream.read1(BUFFER)
        if not more:
            break
        head += more
        whole = head[: head.rfind(b"\n") + 1].lstrip(b"\xef\xbb\xbf\r\n")
        if whole and first_is_word(whole.splitlines()) is not None:
            break
    return head


def label_words(sources: Sequence, limit: MemoryLimit) -> tuple[str, ...]:
    """Return the text labels of LIBSVM text, sorted; empty if labels are numbers, as in sources that can be read only
    once.
    """
    found: set[str] = set()
    for source in sources:
        if isinstance(source, Begun):
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
        start, text = 0, self.text
        while start < text.size:
            stop = last_line_end(text, start, min(start + BLOCK, text.size))
            if not stop:  # a line longer than a piece
                stop = start + int(np.argmax(text[start:] == NEWLINE)) + 1
            parser.feed(text[start:stop])
            if parser.faults:
                raise parser.faults[0].error()
            start = stop
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


def settle(sources: Sequence, target: str | None, one_hot: str | Sequence[str]) -> Settled | None:
    """Return the form and text labels of tables; None if the files are LIBSVM text.

    Text labels and one-hot columns are read once for their values.
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
                f"{table.name}: labels are numbers in the first rows and texts after them",
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


def stored_as(X, dtype: np.dtype, name: str):
    """Return rows in the type that shards store; a number that float32 cannot hold is an error."""
    if dtype == np.float64:
        return X
    with np.errstate(over="ignore"):
        found = X.astype(dtype)
    finite = np.isfinite(found.data if sp.issparse(found) else found)
    if not finite.all():
        value = float((X.data if sp.issparse(X) else X)[~finite][0])
        raise DataError(f"{name}: the value {value!r} is too large for {dtype.name}", "convert with `dtype=float64`")
    return found
