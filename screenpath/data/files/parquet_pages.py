"""What the pages of a Parquet column unfold to, by their own headers: the footer may promise less."""

from __future__ import annotations

from typing import NamedTuple

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
        """Return the bytes of each page once it is unfolded.

        Raises
        ------
        ValueError
            If a header is none, or the pages do not end where the chunk does.
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

    pyarrow would end the process where the metadata of a column contradict themselves.

    Raises
    ------
    ValueError
        If the footer is damaged.
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
        """Return the values of a struct by field."""
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
