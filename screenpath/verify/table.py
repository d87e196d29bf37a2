"""The checker's own reader of tables (CSV, Parquet): cells to the entries that the certificate's columns name."""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

from screenpath.errors import DataError, ResourceError, needed
from screenpath.verify.data import Source, need_file, usual
from screenpath.verify.file import memory
from screenpath.verify.shards import ShardSource

PARQUET = b"PAR1"
PAGES = 1 << 20  # bytes of a column that are read at once
NUMBER = 24  # bytes that a number takes at most in a file of Parquet
SAME = "name the table that the run was computed on, or the same one in the other format"
DELIMITERS = ",;\t"
NA = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")  # stand for a missing value, besides the user's
TRUTH = {"true": 1.0, "false": 0.0}


class TableSource(Source, ABC):
    """Rows of a table, block by block; columns are found by their names, which stand in ``header["data"]["table"]``."""

    wrong, other = "a cell is no number", SAME

    def __init__(self, path, header: dict, rows: int):
        super().__init__(path, header, rows)
        self.base = 0
        table = header["data"]["table"]
        self.target, hot, self.cells, at = table["target"].strip(), table["one_hot"], [], 0
        self.names: list[str] = []  # of all columns of the file, once its rows are read
        self.marks: dict[str, int] = {}  # features that tell where a column lacks a value
        self.pending = 0  # bytes since the last row: quoted line breaks may make one of many lines
        for name in table["columns"]:  # the feature of a number; the features of each value
            values = {value: at + k for k, value in enumerate(hot[name])} if name in hot else None
            self.cells.append((name.strip(), at, values))
            at += 1 if values is None else len(values)
            if name in table.get("indicated", ()):
                self.marks[name.strip()], at = at, at + 1
        how, self.bases = table.get("cells", {}), {name.strip(): text for name, text in table.get("base", {}).items()}
        self.encoding, self.delimiters = how.get("encoding", "utf-8"), how.get("delimiter", DELIMITERS)
        self.decimal, self.thousands = how.get("decimal", "."), how.get("thousands", "")
        self.missing, self.na = how.get("missing", "error"), (*NA, *how.get("na", ()))
        self.codes = [code for code in map(number, how.get("na", ())) if not math.isnan(code)]

    def _entries(self):
        for label, cells in self._rows():
            columns, values = [], []
            pairs = zip(self.cells, cells, strict=True)
            gaps = [cell not in (places or ()) and self._gap(cell) for (_, _, places), cell in pairs]
            if self.missing != "error" and (self._gap(label) or self.missing == "drop" and any(gaps)):
                continue
            for (name, feature, places), cell, gap in zip(self.cells, cells, gaps, strict=True):
                if places is not None and not gap and cell not in places:
                    if cell != self.bases.get(name):
                        raise self._other()
                    continue
                if places is None and (gap or cell != 0.0):
                    columns.append(feature)
                    values.append(math.nan if gap else cell)
                elif places is not None and not gap:
                    columns.append(places[str(cell)])
                    values.append(1.0)
                if gap and name in self.marks:
                    columns.append(self.marks[name])
                    values.append(1.0)
            yield self.label(label), columns, values

    def _gap(self, cell) -> bool:
        """Tell whether a cell, a number or a text, is missing."""
        if isinstance(cell, float):
            return math.isnan(cell) or cell in self.codes
        return cell in self.na or bool(self.codes) and number(cell) in self.codes

    @abstractmethod
    def _rows(self) -> Iterator[tuple[str, list]]:
        """Yield the text of each row's label, and its cells: numbers, and texts of one-hot encoded columns."""

    def label(self, text: str) -> float:
        """Return the number of a label; where labels are texts, one number that is written in two ways has one name."""
        if not self.places:
            value = number(text)
            if self.spells:
                self.texts.setdefault(value, text)
            return value
        if text not in self.places and (exact := exactly(text)) is not None:
            same = [k for name, k in self.places.items() if exactly(name) == exact]
            self.places |= {text: same[0]} if same else {}
        return super().label(text)


class CsvSource(TableSource):
    """Rows of a CSV file, plain or compressed."""

    def _rows(self):
        lines = (self._text(number, line) for number, line in enumerate(self._lines(), start=1))
        try:
            head = next((line for line in lines if line.strip("\r\n")), "")
            wanted = {self.target, *(name for name, _, _ in self.cells)}
            for delimiter in self.delimiters:
                names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
                if wanted <= set(names):
                    break
            else:
                raise self._other()
            y, at = names.index(self.target), [names.index(name) for name, _, _ in self.cells]
            self.names = names
            for row in csv.reader(lines, delimiter=delimiter, strict=True):
                self.pending = 0
                if row and len(row) != len(names):
                    raise self._other()
                if row:
                    cells = [row[k].strip() for k in at]
                    numbers = [
                        cell if places is not None else self._number(cell)
                        for (_, _, places), cell in zip(self.cells, cells, strict=True)
                    ]
                    yield row[y].strip(), numbers
        except csv.Error as error:
            raise DataError(f"{self.path} is not CSV: {error}", SAME) from None

    def _number(self, cell: str) -> float:
        """Return a number; a text that is none, and does not stand for a missing value, is no data of a certificate."""
        plain = (cell.replace(self.thousands, "") if self.thousands else cell).replace(self.decimal, ".")
        value = number(plain)
        if math.isnan(value) and self.missing != "error" and not self._gap(cell):
            raise self._other()
        return value

    def _text(self, line_number: int, line: bytes) -> str:
        self.pending += len(line)
        if self.pending > self.longest:
            raise DataError(f"{self.path}, line {line_number}: a row of {self.pending:,} bytes or more", SAME)
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError:
            raise DataError(f"{self.path}, line {line_number}: these bytes are not text", SAME) from None


class ParquetSource(TableSource):
    """Rows of a Parquet file."""

    def _rows(self):
        with needed(f"{self.path} is Parquet, which needs pyarrow", "pip install pyarrow", DataError):
            import pyarrow.parquet
        names = [name for name, _, _ in self.cells]
        try:
            schema = pyarrow.parquet.read_schema(self.path)
            found = {name.strip(): name for name in schema.names}
            self.names = list(found)
            if not {self.target, *names} <= set(found):
                raise self._other()
            wanted = [found[name] for name in (self.target, *names)]
            kinds = [schema.field(name).type for name in wanted]
            if any(pyarrow.types.is_nested(kind) or pyarrow.types.is_fixed_size_binary(kind) for kind in kinds):
                raise self._other()  # a cell may have any number of values or bytes
            # Of texts the different ones only: many long ones may be few bytes of the file.
            file = pyarrow.parquet.ParquetFile(self.path, read_dictionary=wanted, buffer_size=PAGES, pre_buffer=False)
            if self.missing == "error" and file.metadata.num_rows != self.n:
                raise self._other()
            # Of row groups, not of columns: pyarrow ends the process where their metadata contradict themselves.
            for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                size = group.total_byte_size - NUMBER * group.num_rows * group.num_columns
                if size > memory():
                    raise ResourceError(f"{self.path}: texts of {size:,} bytes, more than this machine can hold", SAME)
            for batch in file.iter_batches(1 << 14, columns=wanted):
                cells = [self._column(batch.column(found[name]), places) for name, _, places in self.cells]
                labels = listed(batch.column(found[self.target]))
                for k, label in enumerate(labels):
                    text = "" if label is None else usual(label) if isinstance(label, float) else str(label)
                    yield text, [column[k] for column in cells]
        except (OSError, pyarrow.ArrowException) as error:
            raise DataError(f"{self.path} cannot be read: {error}", "check the file, or name another copy") from None

    def _column(self, column, places) -> list:
        cells = listed(column)
        if places is None:
            return [number(cell) for cell in cells]
        return ["" if cell is None else f"{cell:.17g}" if isinstance(cell, float) else str(cell) for cell in cells]


def listed(column) -> list:
    """Return the cells of a column of Parquet; equal texts are one object."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    values = column.dictionary.to_pylist()
    return [None if k is None else values[k] for k in column.indices.to_pylist()]


def number(cell) -> float:
    """Return the number that a cell is; nan for one that is none."""
    try:
        return math.nan if cell is None else float(cell)
    except (TypeError, ValueError):
        return TRUTH.get(str(cell).strip().lower(), math.nan)


def exactly(text: str) -> Decimal | None:
    """Return the number that a text is, to its last digit; None for one that is none."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def features(names: list[str], target: str, columns: list, drop: list) -> set[str] | None:
    """Return the columns that options select; None if a pattern does, which may take any time, or no column is meant.

    ``columns`` are the features, by default all, ``drop`` what is none: names, ``a,b``, ranges ``a:c``, ``!name``.
    """
    places, found = {name: k for k, name in enumerate(names)}, []
    for selectors in (columns, drop):
        some: set[str] = set()
        cut = ([text] if text in places else filter(str.strip, text.split(",")) for text in selectors)
        pieces = [one for texts in cut for one in texts]
        for k, piece in enumerate(one if one in places else one.strip() for one in pieces):
            out = piece.startswith("!") and piece not in places
            name = piece[out:].strip()
            cuts = [(name, name), *((name[:j], name[j + 1 :]) for j in range(len(name)) if name[j] == ":")]
            ends = [(places.get(first.strip()), places.get(last.strip())) for first, last in cuts]
            start, end = next((pair for pair in ends if None not in pair), (None, None))
            if start is None or end is None:
                return None
            if out and k == 0:
                some = set(names)
            these = names[start : end + 1]
            some = some.difference(these) if out else some.union(these)
        found.append(some)
    return (found[0] if columns else set(names)) - found[1] - {target}


def open_data(path, header: dict, rows: int) -> Source:
    """Return the data of a certificate, by what the file holds; parameters as of the class."""
    if Path(path).is_dir():
        return ShardSource(path, header, rows)
    need_file(Path(path))
    if header["data"].get("table") is None:
        return Source(path, header, rows)
    try:
        with open(path, "rb") as file:
            parquet = file.read(len(PARQUET)) == PARQUET
    except OSError:  # whoever reads the rows says why
        parquet = False
    return (ParquetSource if parquet else CsvSource)(path, header, rows)
