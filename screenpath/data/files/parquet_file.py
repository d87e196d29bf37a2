"""Parquet, read by pyarrow a batch of rows at a time.

The second part reads what the pages of a column unfold to from their own headers: the footer may promise less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from screenpath.data.files.cells import USUAL, Cells
from screenpath.data.files.table import ENCODE, MISSING, NOT_FINITE, Texts, check_columns
from screenpath.data.safe.memory import in_force
from screenpath.data.words.faults import Fault
from screenpath.data.words.numerals import WHOLE
from screenpath.errors import DataError, UsageError, needed

PLAIN = ("double", "float", "int64", "int32", "int16", "int8", "uint32", "uint16", "uint8")  # types of columns
PAGES = 1 << 20  # bytes of a column that are read at once
NUMBER = 24  # most bytes of a number in a file: stored twice, with its place, after a dictionary was abandoned


class ParquetFile:
    """A Parquet file, see :class:`screenpath.data.files.table.TableFile`."""

    def __init__(self, path, cells: Cells = USUAL):
        hint = "pip install 'screenpath[parquet]', or use CSV"
        with needed(f"{path} is Parquet, which needs pyarrow", hint, UsageError):
            import pyarrow.parquet
        self.name, self.cells = str(path), cells
        try:
            # A piece of each column at a time: a row group may be as large as the file.
            # Of texts the different ones only: many long ones may be few bytes of the file.
            names = [field.name for field in pyarrow.parquet.read_schema(path) if not _unbounded(field.type)]
            self._file = pyarrow.parquet.ParquetFile(path, read_dictionary=names, buffer_size=PAGES, pre_buffer=False)
            schema = self._file.schema_arrow
            index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
            self._found = {name.strip(): name for name in schema.names if name not in index}  # blanks: as in CSV
            self.columns = tuple(name.strip() for name in schema.names if name not in index)
        except (OSError, ValueError, AttributeError, TypeError, pyarrow.ArrowException) as error:
            raise damaged(self.name, error) from None
        self.notices: tuple[str, ...] = (f"the index of pandas is no feature: {', '.join(index)}",) if index else ()

    def batches(self, rows: int, wanted: Sequence[str]) -> Iterator[ParquetBatch]:
        import pyarrow

        first = 0
        check_columns(self, {*self.columns} - {*wanted})
        self._check(wanted)
        found = self._file.iter_batches(rows, columns=[self._found[name] for name in wanted], use_threads=False)
        while True:
            try:
                batch = next(found, None)
            except (OSError, pyarrow.ArrowException) as error:
                raise damaged(self.name, error) from None
            if batch is None:
                return
            if batch.num_rows:
                named = batch.rename_columns([name.strip() for name in batch.schema.names])
                yield ParquetBatch(self.name, first, named, self.cells)
                first += batch.num_rows

    def _check(self, wanted: Sequence[str]) -> None:
        """Refuse columns before decoding them: types that are not numbers, and texts that need too much memory.

        The rows of a batch bound the numbers; a text may have any length.
        """
        for name in wanted:
            kind = self._file.schema_arrow.field(self._found[name]).type
            if _unbounded(kind):
                raise not_numbers(self.name, 1, name, kind).error()
        with open(self.name, "rb") as file:
            try:
                groups = row_groups(file)
                if len(groups) != self._file.num_row_groups:
                    raise ValueError("the footer has other row groups than are read")
            except (OSError, ValueError) as error:
                raise damaged(self.name, error) from None
            for k, chunks in enumerate(groups):
                self._check_group(file, k, [one for one in chunks if one.column in {self._found[n] for n in wanted}])

    def _check_group(self, file, k: int, chunks: Sequence[Chunk]) -> None:
        """Refuse columns of a row group whose pages cannot be held, or do not say what they unfold to."""
        rows, needed = self._file.metadata.row_group(k).num_rows, 0
        what, hint = f"{self.name} (the texts of its row group {k})", "leave out columns of texts"
        for chunk in chunks:
            try:
                sizes = chunk.page_sizes(file)
            except (OSError, OverflowError, ValueError) as error:  # a place that no file has
                raise damaged(self.name, error) from None
            plain = str(self._file.schema_arrow.field(chunk.column).type) in PLAIN
            needed += max(sum(sizes) - (NUMBER * rows if plain else 0), 0)
            in_force().check_possible(needed, what, hint)
            if chunk.shared:
                why = f"{self.name}: the column {chunk.column} is encoded as DELTA_BYTE_ARRAY: it unpacks to any size"
                raise DataError(why, "write it with a dictionary, or leave it out")


def _unbounded(kind) -> bool:
    """Tell whether a cell may have any number of values or bytes; of texts only distinct ones are stored."""
    import pyarrow.types as types

    return types.is_nested(kind) or types.is_fixed_size_binary(kind)


def not_numbers(source: str, line: int, name: str, kind, hint: str = "") -> Fault:
    """Return the fault of a column whose type cannot be converted to numbers."""
    import pyarrow.types as types

    held = f"dates and times ({kind})" if types.is_temporal(kind) else kind
    message, remedy = f"the column holds {held}, not numbers", f"write numbers, or leave the column out{hint}"
    return Fault(source, line, "", message, remedy, name, "row")


def damaged(name: str, error: Exception) -> DataError:
    why = str(error).splitlines()[0] if str(error) else "unreadable"
    return DataError(f"{name} is damaged, or of a kind that pyarrow does not read: {why}", "write it again")


class ParquetBatch:
    """Rows of a Parquet file after ``first`` rows, a RecordBatch of pyarrow; see :class:`.table.Batch`."""

    def __init__(self, source: str, first: int, batch: Any, cells: Cells = USUAL):
        self.source, self.first, self.batch, self.size, self.how = source, first, batch, batch.num_rows, cells

    def fault(self, row: int, name: str, token: str, message: str, hint: str) -> Fault:
        return Fault(self.source, self.first + row + 1, token, message, hint, name, "row")

    def row_of(self, fault: Fault) -> int:
        return fault.line - self.first - 1

    def is_text(self, name: str) -> bool:
        """Tell whether the file declares a column as texts, or as true and false."""
        import pyarrow.types as types

        kind = self.batch.column(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        texts = types.is_string(kind) or types.is_large_string(kind) or kind == "string_view"
        return texts or types.is_boolean(kind)

    def block(self, names: Sequence[str]) -> np.ndarray | None:
        """Return columns of numbers together; None if a cell is missing, or a column does not have plain numbers."""
        out = np.empty((self.size, len(names)))
        for j, name in enumerate(names):
            column = self.batch.column(name)
            if column.null_count or str(column.type) not in PLAIN:
                return None
            out[:, j] = column.to_numpy(zero_copy_only=False)
        return out if np.isfinite(self.how.blanked(out)).all() else None

    def numbers(self, name: str, truth: bool = True, gaps: bool = False) -> tuple[np.ndarray, list[Fault]]:
        import pyarrow.types as types

        column = self.batch.column(name)
        kind = column.type
        if types.is_dictionary(kind):
            kind = kind.value_type
            column = column if self.is_text(name) or types.is_binary(kind) else column.dictionary_decode()
        if types.is_decimal(kind) or types.is_boolean(kind):
            column = column.cast("float64" if types.is_decimal(kind) else "uint8")
        elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)):
            hint = f", {ENCODE.format(name)}" if self.is_text(name) else ""
            return np.zeros(self.size), [not_numbers(self.source, self.first + 1, name, kind, hint)]
        if types.is_null(kind):
            values = np.full(self.size, np.nan)
        else:
            values = self.how.blanked(np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64))
            values = np.where(np.isnan(values), np.nan, values)  # whatever its bits
        wrong = np.isinf(values) if gaps else ~np.isfinite(values)
        faults = []
        for k in np.flatnonzero(wrong).tolist():
            token, words = ("", MISSING) if np.isnan(values[k]) else (repr(float(values[k])), NOT_FINITE)
            faults.append(self.fault(k, name, token, *words))
        return values, faults

    def label_texts(self, name: str) -> list[str] | None:
        """Return the cells of a numeric column as texts, if float64 may not represent them; else None."""
        import pyarrow.types as types

        column = self.batch.column(name)
        column = column.dictionary_decode() if types.is_dictionary(column.type) else column
        if types.is_floating(column.type) or types.is_null(column.type):
            return None
        values = column.drop_null().to_numpy(zero_copy_only=False)
        large = types.is_decimal(column.type) or np.any(values.astype(np.float64) >= WHOLE)
        large = large or np.any(values.astype(np.float64) <= -WHOLE)
        return ["" if value is None else str(value) for value in column.to_pylist()] if large else None

    def written(self, name: str) -> list[str]:
        return ["" if value is None else str(value) for value in self.batch.column(name).to_pylist()]

    def texts(self, name: str) -> Texts:
        import pyarrow.types as types

        column = self.batch.column(name)
        column = column if types.is_dictionary(column.type) else column.dictionary_encode()
        codes = np.array(column.indices.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        if column.null_count:
            codes[np.asarray(column.indices.is_null())] = -1
        # Only those of these rows, in their order: a dictionary may hold others.
        used, first = np.unique(codes[codes >= 0], return_index=True)
        used = used[np.argsort(first)]
        places = np.zeros(len(column.dictionary) + 1, dtype=np.int64)
        places[used] = np.arange(used.size)
        codes = np.where(codes < 0, -1, places[codes])
        try:
            values = column.dictionary.take(used).to_pylist()
        except UnicodeDecodeError as error:
            raise damaged(self.source, error) from None
        gone = [k for k, value in enumerate(values) if value is None or self.how.is_missing(_text(value).strip())]
        if gone:
            codes = np.where(np.isin(codes, gone), -1, codes)
        return Texts(codes, [_text(value) for value in values])


def _text(value) -> str:
    return f"{value:.17g}" if isinstance(value, float) else str(value)


MOST = 1 << 24  # bytes of a header: libraries read no longer one
FIRST = 1 << 10  # ... that are read at once: most have fewer
VARINT, DOUBLE, BINARY, LISTS, STRUCT = (4, 5, 6), 7, 8, (9, 10), 12  # types of Thrift's compact protocol
UNCOMPRESSED, COMPRESSED = 2, 3  # fields of a page header
GROUPS, COLUMNS, META = 4, 1, 3  # fields of the footer, of a row group, and of a column chunk
ENCODINGS, PATH, SIZE, DATA, DICTIONARY = 2, 3, 7, 9, 11  # fields of a column chunk's metadata
SHARED = 7  # DELTA_BYTE_ARRAY, in which a text takes its beginning from the one before


class Chunk(NamedTuple):
    """The values of a column in a row group."""

    column: str
    shared: bool  # whether texts are written as ``SHARED``
    begin: int  # place in the file
    size: int  # bytes in the file

    def page_sizes(self, file) -> list[int]:
        """Return the bytes of each page once it is unfolded; a ValueError if a header is none, or the pages do not end
        where the chunk does.
        """
        at, end, found = self.begin, self.begin + self.size, []
        while at < end:
            length, fields = _header(file, at)
            size, packed = fields.get(UNCOMPRESSED, -1), fields.get(COMPRESSED, -1)
            if not (isinstance(size, int) and isinstance(packed, int) and size >= 0 and packed >= 0):
                raise ValueError("the header of a page has no size")
            found.append(size)
            at += length + packed
        return found


def row_groups(file) -> list[list[Chunk]]:
    """Return the column chunks of each row group, as the footer of a Parquet file has them.

    pyarrow would end the process where the metadata of a column contradict themselves. ValueError: a damaged footer.
    """
    file.seek(-8, 2)
    length = int.from_bytes(file.read(8)[:4], "little")
    try:
        file.seek(-8 - length, 2)
        footer = _Reader(file.read(length)).struct()
        return [[_chunk(column[META]) for column in group[COLUMNS]] for group in footer.get(GROUPS, ())]
    except (OSError, IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        raise ValueError("the footer is damaged") from None


def _chunk(meta: dict) -> Chunk:
    path = ".".join(part.decode() for part in meta[PATH])
    begin = min(place for place in (meta.get(DICTIONARY), meta[DATA]) if place)
    return Chunk(path, SHARED in meta[ENCODINGS], begin, int(meta[SIZE]))


def _header(file, at: int) -> tuple[int, dict]:
    """Return the length of the page header at a place of the file, and its whole numbers by field."""
    for most in (FIRST, MOST):
        file.seek(at)
        reader = _Reader(file.read(most))
        try:
            fields = reader.struct()
            return reader.at, fields
        except IndexError:
            continue
    raise ValueError("the header of a page does not end")


class _Reader:
    """Thrift's compact protocol, as far as a page header has it."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value, shift = 0, 0
        while (byte := self.byte()) & 128:
            value, shift = value | (byte & 127) << shift, shift + 7
            if shift > 63:
                raise ValueError("a number of a page header is too long")
        return value | byte << shift

    def struct(self, depth: int = 0) -> dict:
        fields, number = {}, 0
        while (byte := self.byte()) & 15:
            number = number + (byte >> 4) if byte >> 4 else self._signed()
            fields[number] = self._value(byte & 15, depth)
        return fields

    def _signed(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def _value(self, kind: int, depth: int):
        if kind in VARINT:
            return self._signed()
        if kind == STRUCT and depth < 8:
            return self.struct(depth + 1)
        if kind in LISTS and depth < 8:
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.varint()
            return [self._value(head & 15 if head & 15 > 2 else 3, depth + 1) for _ in range(count)]
        if kind in (3, DOUBLE, BINARY):
            length = {3: 1, DOUBLE: 8}.get(kind) or self.varint()
            self.at += length
            if self.at > len(self.data):
                raise IndexError
            return self.data[self.at - length : self.at]
        if kind in (1, 2):  # true and false have no bytes
            return kind == 1
        raise ValueError("a field of a page header is of no known type")
