"""What the pages of a Parquet column unfold to, by their own headers: the footer may promise less."""

from __future__ import annotations

MOST = 1 << 24  # bytes of a header: libraries read no longer one
FIRST = 1 << 10  # ... that are read at once: most have fewer
VARINT, DOUBLE, BINARY, LISTS, STRUCT = (4, 5, 6), 7, 8, (9, 10), 12  # types of Thrift's compact protocol
UNCOMPRESSED, COMPRESSED = 2, 3  # fields of a page header


def page_sizes(file, column) -> list[int]:
    """Return the bytes of each page of a column chunk once it is unfolded.

    Parameters
    ----------
    file : binary file object
    column : pyarrow.parquet.ColumnChunkMetaData

    Raises
    ------
    ValueError
        If a header is none, or the pages do not end where the chunk does.
    """
    at = min(place for place in (column.dictionary_page_offset, column.data_page_offset) if place)
    end, found = at + column.total_compressed_size, []
    while at < end:
        length, fields = _header(file, at)
        size, packed = fields.get(UNCOMPRESSED, -1), fields.get(COMPRESSED, -1)
        if size < 0 or packed < 0:
            raise ValueError("the header of a page has no size")
        found.append(size)
        at += length + packed
    return found


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
        """Return the whole numbers of a struct by field; all else is passed over."""
        fields, number = {}, 0
        while (byte := self.byte()) & 15:
            number = number + (byte >> 4) if byte >> 4 else self._signed()
            value = self._value(byte & 15, depth)
            if byte & 15 in VARINT:
                fields[number] = value
        return fields

    def _signed(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def _value(self, kind: int, depth: int) -> int:
        if kind in VARINT:
            return self._signed()
        if kind == STRUCT and depth < 8:
            self.struct(depth + 1)
        elif kind in LISTS and depth < 8:
            head = self.byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self.varint()):
                self._value(head & 15 if head & 15 > 2 else 3, depth + 1)
        elif kind in (3, DOUBLE, BINARY):
            length = {3: 1, DOUBLE: 8}.get(kind) or self.varint()
            self.at += length
        elif kind not in (1, 2):  # true and false have no bytes
            raise ValueError("a field of a page header is of no known type")
        return 0
