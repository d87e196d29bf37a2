"""CSV with a header line: numpy reads plain numbers, the standard library everything else."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from screenpath.data.files.advice import COMMAS
from screenpath.data.files.cells import USUAL, Cells
from screenpath.data.files.source import BLANK, BUFFER, Rejoined, beginning
from screenpath.data.files.table import ENCODE, MISSING, NOT_FINITE, Texts
from screenpath.data.safe.memory import in_force
from screenpath.data.words.faults import Fault
from screenpath.data.words.labels import TRUTH
from screenpath.data.words.numerals import is_number, is_numberlike, number_of
from screenpath.errors import DataError

DELIMITERS = ",;\t"
CELLS = 1 << 17  # most cells of a batch: each is a Python object if numpy cannot read it
FREE = 1 << 22  # bytes of pending text that need no request
COPIES = 4  # of pending text: bytes, pieces, their sum, cells
HEADER = 1 << 20  # most bytes of the header line
# index:value of LIBSVM text, or a label with a comment behind it
ENTRY = re.compile(r"(?:^|\s)[0-9]+:|^\s*[-+0-9.eE?]*\s*#")


def header_of(text: bytes, delimiter: str = "") -> tuple[str, list[str]] | None:
    """Return delimiter and column names from the beginning of a file; None if it is not CSV with a header."""
    try:
        line = text.decode("utf-8-sig").lstrip("\r\n")
    except UnicodeDecodeError:
        return None
    first = line.split("\n", 1)[0]
    if not first.replace("\t", " ").rstrip("\r").isprintable() or ENTRY.search(first):
        return None
    found = delimiter or max(DELIMITERS, key=lambda delimiter: len(_fields(line, delimiter)))
    names = _fields(line, found)
    if len(names) < 2 or all(not name or is_number(name) for name in names):
        return None
    return found, names


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [])]
    except csv.Error:
        return []


def first_line(stream) -> tuple[bytes, io.BufferedReader]:
    """Return the first non-empty line of a stream with what precedes it, and a stream that begins anew."""
    head = beginning(stream, lambda head: len(head) >= HEADER or b"\n" in head.lstrip(BLANK))
    lead = len(head) - len(head.lstrip(BLANK))
    end = head.find(b"\n", lead)
    line = head if end < 0 else head[: end + 1]
    return line, io.BufferedReader(Rejoined(head, stream), BUFFER)


class Bounded(io.BufferedIOBase):
    """A stream that requests memory for text that has not become rows yet: a line may have no end."""

    def __init__(self, stream, name: str):
        self._stream, self.name, self._held, self._asked = stream, name, 0, FREE

    def readable(self):
        return True

    def read1(self, size=-1):
        data = self._stream.read1(size)
        self._held += len(data)
        if self._held > self._asked:
            self._asked = 2 * self._held
            what = f"{self.name}: a row this long, or so many long rows,"
            in_force().check_possible(COPIES * self._asked, what, "check the file")
        return data

    def used(self) -> None:
        """Record that all text read so far has become rows."""
        self._held, self._asked = 0, FREE


class CsvFile:
    """A stream of CSV, read once from its beginning; see :class:`screenpath.data.files.table.TableFile`."""

    notices = ()

    def __init__(self, stream, name: str, delimiter: str, cells: Cells = USUAL):
        self.name, self.delimiter, self.cells = name, delimiter, cells
        # invalid bytes become surrogates: the decoder reads ahead and could not name their line
        self._bounded = Bounded(stream, name)
        text = io.TextIOWrapper(self._bounded, encoding="utf-8-sig", newline="", errors="surrogateescape")
        self._text = self._checked(text)
        self._line = 0  # that has been read
        header = next(rows for _, rows in self._rows(self._text, 1) if rows[0])
        self.columns = tuple(cell.strip() for cell in header[0])
        self.places = {name: k for k, name in enumerate(self.columns)}

    def _rows(self, lines: Iterable[str], count: int) -> Iterator[tuple[int, list[list[str]]]]:
        """Yield the line number before some rows, and their cells; an empty line is a row without cells."""
        before, reader = self._line, csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            while rows := list(islice(reader, count)):
                self._bounded.used()
                self._line = before + reader.line_num
                yield self._line - sum(map(_span, rows)), rows
        except csv.Error as error:
            hint = 'a cell that begins with " ends with one, and a quote inside of it is doubled: "a ""quoted"" word"'
            raise DataError(f"{self.name}, line {before + reader.line_num}: this is not CSV ({error})", hint) from None

    def _checked(self, lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if not line.isascii():
                try:
                    line.encode()
                except UnicodeEncodeError as error:
                    where = f"line {number}, byte {len(line[: error.start].encode()) + 1}"
                    byte = f"0x{ord(line[error.start]) - 0xDC00:02x}"
                    what = f"{self.name}, {where}: {byte} is not {self.cells.encoding.upper()} text"
                    hint = "save the file as UTF-8, or name its encoding, such as `encoding=latin-1`"
                    raise DataError(what, hint) from None
            yield line

    def batches(self, rows: int, wanted: Sequence[str]) -> Iterator[CsvBatch]:
        width = len(self.columns)
        rows = max(1, min(rows, CELLS // width))
        while True:
            lines = list(islice(self._text, rows))
            self._bounded.used()
            if not lines:
                return
            quoted = '"' in "".join(lines)  # a cell may continue on the next line: read cells, not lines, from here on
            if not quoted and {line.count(self.delimiter) for line in lines} == {width - 1}:
                yield LineBatch(self, self._line, lines)
                self._line += len(lines)
                continue
            for before, found in self._rows(chain(lines, self._text) if quoted else lines, rows):
                batch = CsvBatch(self, before, found)
                self._check_width(batch)
                if batch.size:
                    yield batch

    def _check_width(self, batch: CsvBatch) -> None:
        width = len(self.columns)
        for k, row in enumerate(batch.rows):
            if len(row) != width:
                hint = "numbers of rows, too, have a name in the header; cells that hold the delimiter stand in quotes"
                raise DataError(f"{self.name}, line {batch.line(k)}: {len(row)} cells, the header has {width}", hint)


def _span(cells: list[str]) -> int:
    return 1 + sum(cell.count("\n") for cell in cells)


class CsvBatch:
    """Rows of a CSV file after ``before`` lines, see :class:`.table.Batch`; empty lines are rows without cells."""

    def __init__(self, file: CsvFile, before: int, rows: list):
        self.rows = rows if all(rows) else [row for row in rows if row]
        self.file, self.size = file, len(self.rows)
        self._before, self._all = before, rows
        self._lines: list[int] | None = None
        self._cells: dict | None = None

    def line(self, row: int) -> int:
        """Return the last line of a row."""
        if self._lines is None:
            ends = (self._before + np.cumsum([_span(cells) for cells in self._all])).tolist()
            self._lines = [end for end, cells in zip(ends, self._all, strict=True) if cells]
        return self._lines[row]

    def cells(self, name: str) -> tuple[str, ...]:
        if self._cells is None:
            columns = zip(*self.rows, strict=True)
            self._cells = dict(zip(self.file.columns, columns, strict=True))
        return self._cells[name]

    def is_text(self, name: str) -> bool:
        return False

    def block(self, names: Sequence[str]) -> np.ndarray | None:
        return None

    def fault(self, row: int, name: str, token: str, message: str, hint: str) -> Fault:
        return Fault(self.file.name, self.line(row), token, message, hint, name)

    def row_of(self, fault: Fault) -> int:
        self.line(0)
        return self._lines.index(fault.line)  # type: ignore[union-attr]

    def numbers(self, name: str, truth: bool = True, gaps: bool = False) -> tuple[np.ndarray, list[Fault]]:
        cells, how = self.cells(name), self.file.cells
        written = cells if how.usual else [how.number(cell) for cell in cells]
        whole = "".join(written)
        try:
            if "_" in whole or not whole.isascii():  # Python accepts more than a file may contain
                raise ValueError
            values = np.fromiter(map(float, written), dtype=np.float64, count=len(cells))
        except ValueError:
            known = TRUTH if truth else {}
            values = np.array([_number(cell, known) for cell in written])
        values = how.blanked(values)
        wrong = np.flatnonzero(~np.isfinite(values)).tolist()
        wrong = [k for k in wrong if not how.is_missing(cells[k].strip())] if gaps else wrong
        return values, [self.fault(k, name, cells[k].strip(), *_words(cells[k].strip(), name, how)) for k in wrong]

    def label_texts(self, name: str) -> list[str] | None:
        return [self.file.cells.number(cell.strip()) for cell in self.cells(name)]

    def written(self, name: str) -> list[str]:
        return [cell.strip() for cell in self.cells(name)]

    def texts(self, name: str) -> Texts:
        cells = [cell.strip() for cell in self.cells(name)]
        values = sorted(value for value in set(cells) if not self.file.cells.is_missing(value))
        places = {value: k for k, value in enumerate(values)}
        return Texts(np.array([places.get(cell, -1) for cell in cells], dtype=np.int64), values)


class LineBatch(CsvBatch):
    """Rows without quotes, one per line, all with the right number of cells: numpy reads their numbers."""

    def __init__(self, file: CsvFile, before: int, lines: list[str]):
        self.file, self.size, self._before, self._text = file, len(lines), before, lines

    def line(self, row: int) -> int:
        return self._before + row + 1

    def row_of(self, fault: Fault) -> int:
        return fault.line - self._before - 1

    def block(self, names: Sequence[str]) -> np.ndarray | None:
        if not self.file.cells.usual:
            return None
        places = [self.file.places[name] for name in names]
        try:
            found = np.loadtxt(self._text, delimiter=self.file.delimiter, usecols=places, comments=None, ndmin=2)
        except ValueError:
            return None
        return found if np.isfinite(self.file.cells.blanked(found)).all() else None

    def numbers(self, name: str, truth: bool = True, gaps: bool = False) -> tuple[np.ndarray, list[Fault]]:
        found = self.block([name])
        return super().numbers(name, truth, gaps) if found is None else (found[:, 0], [])

    def cells(self, name: str) -> tuple[str, ...]:
        place, delimiter = self.file.places[name], self.file.delimiter
        behind = len(self.file.columns) - place
        if place < behind:
            return tuple(line.split(delimiter, place + 1)[place] for line in self._text)
        return tuple(line.rsplit(delimiter, behind)[-behind] for line in self._text)


def _number(cell: str, known: dict[str, float]) -> float:
    try:
        return number_of(cell)
    except ValueError:
        return known.get(cell.strip().lower(), math.nan)


def _words(cell: str, name: str, how: Cells) -> tuple[str, str]:
    """Return message and hint for a cell that holds no finite number."""
    if how.is_missing(cell):
        return MISSING
    if is_number(how.number(cell)) or is_numberlike(cell):
        return NOT_FINITE
    if how.usual and COMMAS.fullmatch(cell):
        return "a number with a comma", "say what the comma is: `decimal=,` or `thousands=,`"
    return "this is not a number", f"write a number, {ENCODE.format(name)}"
