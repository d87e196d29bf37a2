"""LIBSVM text to CSR and labels, in blocks, with bounded extra memory."""

from __future__ import annotations

import codecs
import math
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from screenpath.data.files.arrays import stored_as, stored_type
from screenpath.data.files.dataset import LARGER_THAN_MEMORY, Dataset, Growing
from screenpath.data.files.source import open_source, to_come
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.words.faults import Fault, Words, name_fault, not_finite
from screenpath.data.words.labels import sorted_labels
from screenpath.data.words.numerals import NUMBER, Spellings
from screenpath.errors import DataError, UsageError
from screenpath.kernels.rows import parse
from screenpath.numbers.csr import counted_csr

BLOCK = 1 << 20  # bytes of text parsed at once
NEWLINE = 10
RECENT = 256  # labels of a block that are recognised
PARSED = 28  # bytes of scratch space for each byte of a block
MOST = 2**53  # features: their numbers are exact as float64
GIVEN, MARKED, ABSENT = "given", "marked", "absent"
NUMERIC = b"+-.0123456789"  # a number begins with one of these
SPARE = 1 << 14  # bytes
UNKNOWN = b"-1.7976931348623157e308"  # stands for an unknown label during parsing
MARK = re.compile(rb"^((?:\xef\xbb\xbf)?[ \t]*)\?(?=[ \t\r\n])", re.MULTILINE)
BARE = re.compile(rb"^((?:\xef\xbb\xbf)?[ \t]*)(?=[0-9]+:)", re.MULTILINE)


class _Scratch:
    """Arrays that one block is parsed into; a block of b bytes holds at most b/2 rows and b/4 entries."""

    def __init__(self, size: int, max_faults: int):
        self.labels = np.empty(size // 2 + 2)
        self.indptr = np.zeros(size // 2 + 3, dtype=np.int64)
        self.values = np.empty(size // 4 + 2)
        self.indices = np.empty(size // 4 + 2, dtype=np.int64)
        self.hard = np.empty((size // 2 + 2, 3), dtype=np.int64)
        self.faults = np.empty((min(max_faults, size // 2 + 2), 4), dtype=np.int64)


class Parser:
    """Blocks of text in, arrays and faults out.

    ``source`` is the name used in messages, ``line`` the number of its lines before the first block. Values are stored
    as ``dtype``, float64 or float32; parsing stops at ``max_faults``; the ``limit`` is checked as the arrays grow.
    ``labels`` are as of :func:`read_libsvm`; ``names`` are all of them if they are known to be words, and empty if they
    are known to be numbers.
    """

    def __init__(
        self, source: str, zero_based: bool, dtype=np.float64, max_faults: int = 1, line=0, limit=None, labels="given",
        names: Sequence[str] | None = None,
    ):  # fmt: skip
        self.known, self.words = labels, Words(names)
        self.source, self.zero_based, self.max_faults = source, zero_based, max_faults
        self.labels, self.counts = Growing(np.float64), Growing(np.int64)
        self.values, self.indices = Growing(stored_type(dtype)), Growing(np.int32)
        self.seen = np.array([0, -1], dtype=np.int64)
        self.faults: list[Fault] = []
        self.lines, self.limit = line, limit
        self._spellings, self._recent = Spellings(), np.empty((RECENT, 2), dtype=np.int64)
        self._scratch: _Scratch | None = None

    def feed(self, text: np.ndarray) -> None:
        """Parse whole lines; the last byte is a newline."""
        text = text if self.known == GIVEN else relabelled(text, self.known)
        stop = text.size
        if self._scratch is None or self._scratch.labels.size < stop // 2 + 2:
            size = stop + SPARE  # so that a block that ends in a longer line needs no other
            self._ask(PARSED * size)
            self._scratch = _Scratch(size, self.max_faults)
        if self.lines == 0 and text[:3].tobytes() == codecs.BOM_UTF8:
            text[:3] = 32  # a byte order mark, which some editors write, becomes blanks
        s = self._scratch
        widest = self.seen[1]
        rows, nnz, lines, n_hard, n_faults = parse.parse_lines(
            text, stop, 0 if self.zero_based else 1, (parse.POWERS_OF_FIVE, parse.EXACT_POWERS),
            parse.Lines.of(s.labels, s.indptr, s.values, s.indices, s.hard),
            s.faults[: self.max_faults - len(self.faults)], self.seen,
        )  # fmt: skip
        for code, line, start, end in s.faults[:n_faults]:
            whole = _line_around(text, start)
            self.faults.append(name_fault(self.source, self.lines + line + 1, code, bytes(text[start:end]), whole))
        ends = s.indptr[1 : rows + 1]
        counts = np.diff(ends, prepend=0)
        labels, values, indices = s.labels[:rows], s.values[:nnz], s.indices[:nnz]
        if self.known != ABSENT and not self.words.texts and not self._spellings.full:
            self._spell(text)
        faulty = self._settle(text, s.hard[:n_hard], labels, values, ends)
        if faulty:  # a faulty line gives no row
            kept = np.ones(rows, dtype=bool)
            kept[faulty] = False
            entries = np.repeat(kept, counts)
            labels, counts, values, indices = labels[kept], counts[kept], values[entries], indices[entries]
            self.seen[1] = max(widest, indices.max(initial=-1))
        values = stored_as(values, self.values.array.dtype, self.source)
        self.lines += lines
        if self.seen[1] > np.iinfo(np.int32).max and self.indices.array.dtype == np.int32:
            self._ask(2 * self.indices.array.nbytes)
            self.indices.array = self.indices.array.astype(np.int64)
        # Arrays so far count as taken; the row pointers are made at the end.
        new = labels.nbytes + counts.nbytes + values.nbytes + indices.nbytes
        self._ask(new + 8 * (self.labels.size + rows), new)
        self.labels.extend(labels)
        self.counts.extend(counts)
        self.values.extend(values)
        self.indices.extend(indices)

    def _spell(self, text) -> None:
        starts = np.flatnonzero(text[:-1] == NEWLINE) + 1
        starts = np.concatenate([np.zeros(1, dtype=np.int64), starts])
        found = np.empty((starts.size, 3), dtype=np.int64)
        count = parse.unusual_labels(text, starts, self._recent, found)
        first = max(self.labels.size - len(self.faults), 0)  # at most the row: faulty lines give none
        for row, start, end in found[:count].tolist():
            token = text[start:end].tobytes()
            if token != UNKNOWN and NUMBER.fullmatch(token.decode("latin-1")):
                self._spellings.note(first + row, float(token), token.decode())

    def _ask(self, needed: int, new: int = 0) -> None:
        """Request memory, of which ``new`` bytes stay; the limit that is suggested is enough for the whole file."""
        if self.limit is not None:
            so_far = new + sum(part.size * part.array.itemsize for part in (self.labels, self.values, self.indices))
            what = f"{self.source}: reading beyond line {self.lines:,}"
            self.limit.check(needed, what, LARGER_THAN_MEMORY, known=to_come(so_far))

    def _settle(self, text, hard, labels, values, ends) -> list[int]:
        """Convert tokens that the kernel left over; return the rows of those that are faults."""
        view, words, found = memoryview(text), [], []
        for slot, start, end in hard.tolist():
            token = bytes(view[start:end])
            if slot < 0 and token[0] not in NUMERIC:
                words.append((-slot - 1, start, token))
                continue
            value = float(token)
            if not math.isfinite(value):
                row = -slot - 1 if slot < 0 else int(np.searchsorted(ends, slot, "right"))
                found.append((row, start, partial(not_finite, token=token)))
            elif slot < 0:
                labels[-slot - 1] = value
            else:
                values[slot] = value
        if self.known != ABSENT and (words or self.words.texts is not False):
            known = np.ones(labels.size, dtype=bool) if self.known == GIVEN else labels != float(UNKNOWN)
            known[[row for row, _, _ in words]] = True
            known[[row for row, _, _ in found]] = False
            found += self.words.take(words, labels, known)
        if found:
            self._note(text, found)
        return [row for row, _, _ in found]

    def _note(self, text, found) -> None:
        """Add faults of rows, one per line, in the order of lines."""
        newlines, noted, starts = np.flatnonzero(text == NEWLINE), set(), None
        faulty = {fault.line - self.lines - 1 for fault in self.faults}
        for row, start, words in found:
            if start is None:  # a label that the kernel has read: found by its row
                starts = _row_starts(text, faulty) if starts is None else starts
                start = starts[row]
            line = self.lines + 1 + int(np.searchsorted(newlines, start))
            if line not in noted:
                self.faults.append(words(self.source, line))
                noted.add(line)
        self.faults.sort(key=lambda fault: fault.line)
        del self.faults[self.max_faults :]

    @property
    def full(self) -> bool:
        """Tell whether parsing has met the largest number of faults to report."""
        return len(self.faults) >= self.max_faults

    def dataset(self, n_features: int | None) -> Dataset:
        width = int(self.seen[1]) + (1 if self.zero_based else 0) if self.seen[1] >= 0 else 0
        if n_features is not None and n_features < width:
            largest = self.seen[1]
            what = f"{self.source}: the index {largest} lies beyond `n_features={n_features}`"
            raise DataError(what, f"use `n_features={width}` or more")
        if n_features is not None and n_features > MOST:
            raise DataError(f"{self.source}: `n_features={n_features}` is too much", "no index is beyond 2^53")
        d = max(width, 1) if n_features is None else n_features
        indices, values, counts = self.indices.finish(), self.values.finish(), self.counts.finish()
        if not self.zero_based:
            indices -= 1
        X = counted_csr(values, indices, counts, d)
        notices = ("query ids (qid:) are ignored",) if self.seen[0] else ()
        y = self.labels.finish()
        if self.known != GIVEN:
            y[(y == float(UNKNOWN)) | (self.known == ABSENT)] = np.nan
        if self.known == ABSENT or not self.words.texts:
            return Dataset(X, y, self.source, notices, spelled=self._spellings.settled(y))
        if not X.nnz and not self.words.closed:
            raise no_features(self.source)
        y, names = sorted_labels(y, self.words.names)
        return Dataset(X, y, self.source, notices, label_names=names)


def no_features(source: str) -> DataError:
    """Return the error for text of single words, which are not labels."""
    return DataError(
        f"{source} has words, and not one feature: this is not LIBSVM text",
        "a line is 'label index:value index:value ...'",
    )


def relabelled(text: np.ndarray, labels: str) -> np.ndarray:
    """Return a block in which unknown labels, written ``?`` or left out, become the number ``UNKNOWN``."""
    block = text.tobytes()
    if b"?" in block:
        block = MARK.sub(rb"\g<1>" + UNKNOWN, block)
    if labels == ABSENT:
        block = BARE.sub(rb"\g<1>" + UNKNOWN + b" ", block)
    return np.frombuffer(bytearray(block), dtype=np.uint8)


def whole_lines(stream, size: int, limit: MemoryLimit, name: str, factor: int) -> Iterator[np.ndarray]:
    """Cut a stream of text into blocks of whole lines, of about ``size`` bytes and at least one line.

    The last byte of a block is a newline. ``factor`` bytes of memory are needed for each byte of a line.
    """
    text, filled = np.empty(size, dtype=np.uint8), 0
    while True:
        while filled < text.size:
            got = stream.readinto(text.data[filled:])
            if not got:
                if filled:  # the last line may have no newline
                    yield text[:filled] if text[filled - 1] == NEWLINE else np.append(text[:filled], np.uint8(NEWLINE))
                return
            filled += got
        stop = text[:filled].tobytes().rfind(b"\n") + 1
        if not stop:  # a line longer than the block
            limit.check_possible(2 * factor * text.size, f"{name}: a line this long", "check the file")
            text = np.concatenate([text, np.empty(text.size, dtype=np.uint8)])
            continue
        held = text[stop:filled].copy()
        yield text[:stop]
        text, filled = np.empty(max(size, held.size), dtype=np.uint8), held.size
        text[:filled] = held


def parse_stream(stream, parser: Parser, block: int = BLOCK) -> None:
    """Feed a stream to a parser, block by block, in whole lines."""
    for text in whole_lines(stream, block, parser.limit or MemoryLimit(), parser.source, PARSED):
        parser.feed(text)
        if parser.full:
            return


def read_libsvm(
    source: str | os.PathLike[str] | BinaryIO, *, zero_based: bool = False, n_features: int | None = None,
    dtype: DTypeLike = np.float64, block: int = BLOCK, limit: MemoryLimit | None = None, labels: str = "given",
) -> Dataset:  # fmt: skip
    """Read LIBSVM text, plain or compressed.

    Labels are all numbers, or all words: ``label_names`` then has them, sorted, and ``y`` numbers them from 0. A word
    begins with a letter and holds no colon, comma or ``#``.

    Parameters
    ----------
    source : str, Path or binary file object
        ``-`` is standard input. gzip, bzip2 and xz are recognised by their first bytes.
    zero_based : bool, default False
        Indices start at 0.
    n_features : int, optional
        Width of the data, at least the largest index.
    dtype : float64 or float32
    block : int
        Bytes parsed at once.
    limit : MemoryLimit, optional
        Of the private memory of this process.
    labels : {"given", "marked", "absent"}
        ``given``: every line has one. ``marked``: ``?`` stands for an unknown one. ``absent``: labels are ignored, and
        lines may begin with the first index. An unknown label is nan.

    Raises
    ------
    DataError
        With file, line, token and remedy.

    Examples
    --------
    >>> import io
    >>> from screenpath import read_libsvm
    >>> data = read_libsvm(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1e-3\\n"))
    >>> data.X.toarray().tolist(), data.y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]], [1.0, -1.0])
    """
    with open_source(source) as (stream, name):
        return read_stream(
            stream, name, zero_based=zero_based, n_features=n_features, dtype=dtype, block=block, limit=limit,
            labels=labels,
        )  # fmt: skip


def read_stream(
    stream, name: str, *, zero_based=False, n_features=None, dtype=np.float64, block=BLOCK, limit=None, labels=GIVEN
) -> Dataset:
    if labels not in (GIVEN, MARKED, ABSENT):
        raise UsageError(f"`labels={labels}` is not known", f"use {GIVEN}, {MARKED} or {ABSENT}")
    parser = Parser(name, zero_based, dtype, limit=limit, labels=labels)
    parse_stream(stream, parser, block)
    if parser.faults:
        raise parser.faults[0].error()
    if parser.labels.size == 0:
        raise DataError(f"{name} holds no samples", "a line is 'label index:value index:value ...'")
    return parser.dataset(n_features)


def _row_starts(text: np.ndarray, faulty: set[int]) -> list[int]:
    """Return where the rows of a block begin; ``faulty`` lines, counted from 0, give no row."""
    found, at = [], 0
    for number, line in enumerate(text.tobytes().split(b"\n")):
        begun = line.lstrip(b" \t\r\v\f")
        if begun and not begun.startswith(b"#") and number not in faulty:
            found.append(at)
        at += len(line) + 1
    return found


def _line_around(text: np.ndarray, at: int) -> bytes:
    window = bytes(text[max(0, at - 4096) : at + 4096])
    middle = at - max(0, at - 4096)
    start = window.rfind(b"\n", 0, middle) + 1
    end = window.find(b"\n", middle)
    return window[start : end if end >= 0 else len(window)]
