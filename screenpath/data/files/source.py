"""Open a file, a compressed file or standard input as one stream of bytes."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from screenpath.data.safe.memory import in_force
from screenpath.errors import DataError, ResourceError, file_name

_under_way: list = []  # open files, the last opened at the end


def reading() -> tuple[str, int, int] | None:
    """Return name, bytes read and size of the file being read; None if there is none or nothing is known.

    Another thread may ask at any moment, so the file may be closed by then.
    """
    try:
        raw = _under_way[-1]
        size = os.fstat(raw.fileno()).st_size
        return (raw.name, raw.tell(), size) if size else None
    except (IndexError, OSError, ValueError):
        return None


def to_come(so_far: int) -> int:
    """Return the bytes that the rest of the file being read will take, and two copies of all rows, for a path.

    Rows to come are like those that take ``so_far`` bytes; the first are taken to be as large as their text.
    """
    _, read, size = reading() or ("", 0, 0)
    so_far = so_far or read
    whole = so_far * size // read if read else so_far
    return 3 * whole - so_far


NUMPY, PARQUET = b"\x93NUMPY", b"PAR1"
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (NUMPY, "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (PARQUET, "a Parquet file"),
)
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # byte order marks
FOREIGN = "unpack or convert it to LIBSVM text, CSV or Parquet first; screenpath.write_libsvm(FILE, X, y) writes arrays"
BLANK = b"\xef\xbb\xbf\r\n"  # bytes before the first line that says something
BUFFER = 1 << 16  # bytes read at once from an archive
_HEAD = 6  # first bytes, which identify a compression
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


@contextmanager
def open_source(source, encoded: bool = False):
    """Open a path, ``-`` or a binary file, decompressed; yield stream and name. ``encoded``: it may not be UTF-8."""
    if isinstance(source, StreamCopy):
        source.seek(0)
    if hasattr(source, "read"):
        yield from _decompressed(source, getattr(source, "name", "<stream>"), encoded)
        return
    if str(source) == "-":
        yield from _decompressed(sys.stdin.buffer, "standard input", encoded)
        return
    path = Path(file_name(source, "source"))
    try:
        raw = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by the with statement below)
    except (FileNotFoundError, ValueError):  # or a name that no file can have
        raise DataError(f"{path}: no such file", "check the path; '-' reads standard input") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a data file", "name a file of LIBSVM text, CSV or Parquet") from None
    except OSError as error:
        raise _unreadable(str(path), error) from None
    with raw:
        _under_way.append(raw)
        try:
            yield from _decompressed(raw, str(path), encoded)
        finally:
            _under_way.remove(raw)


def _decompressed(raw, name: str, encoded: bool = False):
    opener = None
    try:
        head = beginning(raw, lambda head: len(head) >= _HEAD, _HEAD)
        for magic, what in _FOREIGN:
            if head.startswith(magic):
                hint = "name the file: Parquet is not read from a stream" if magic == PARQUET else FOREIGN
                hint = f"with `kernel=precomputed`, it is a kernel; or {FOREIGN}" if magic == NUMPY else hint
                raise DataError(f"{name} is {what}, not LIBSVM text", hint)
        if head.startswith(UTF16) and b"\0" in head and not encoded:
            raise DataError(f"{name} is UTF-16 text, not UTF-8", "read a table with `encoding=utf-16`")
        opener = next((opener for magic, opener in _MAGIC if head.startswith(magic)), None)
        buffered = io.BufferedReader(Rejoined(head, raw), BUFFER)
        yield (buffered if opener is None else opener(buffered)), name
    except _DAMAGED as error:
        raise _damaged(name, error) from None
    except OSError as error:
        raise (_unreadable if opener is None else _damaged)(name, error) from None


def beginning(stream, enough, most: int = BUFFER) -> bytes:
    """Return the first bytes of a stream, read until they are ``enough``; a pipe may deliver them one by one."""
    read, head = getattr(stream, "read1", stream.read), b""
    while not enough(head) and (more := read(most)):
        if isinstance(more, str):
            raise TypeError("the stream gives text; open it in binary mode ('rb')")
        head += more
    return head


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"{name} cannot be read: {error.strerror or error}", "check that it exists and may be read")


def _damaged(name: str, error: Exception) -> DataError | ResourceError:
    if isinstance(error, lzma.LZMAError) and "limit" in str(error):
        most = "`max_memory`" if in_force() else "this machine has"
        return ResourceError(f"{name}: unpacking it takes more than {most}", "unpack it first, with xz")
    return DataError(
        f"{name}: the compressed data is damaged or cut short ({error})", "fetch or compress the file again"
    )


class _Streams(io.RawIOBase):
    """The content of all compressed streams of a file, to its last byte.

    ``bz2.open`` and ``lzma.open`` silently drop what follows a stream and does not begin like another one: a damaged
    second stream would lose its rows. Here that is an error, as in ``xz``; ``gzip.open`` raises by itself.
    ``decoder()`` makes a decompressor; zeros may follow a stream, in multiples of ``padding``, 0 for none.
    """

    def __init__(self, raw, decoder, padding: int):
        self.raw, self.make, self.padding = raw, decoder, padding
        self.decoder, self.held = decoder(), b""

    def readable(self):
        return True

    def readinto(self, target):
        while True:
            if self.decoder.eof and not self._next_stream():
                return 0
            if self.decoder.needs_input and not self.held:
                self.held = self.raw.read(BUFFER)
                if not self.held:
                    raise EOFError("it ends before its end-of-stream marker")
            data = self.decoder.decompress(self.held, max_length=len(target))
            self.held = b""
            if data:
                target[: len(data)] = data
                return len(data)

    def _next_stream(self) -> bool:
        rest, zeros = self.decoder.unused_data, 0
        while True:
            begin = rest.lstrip(b"\0") if self.padding else rest
            zeros += len(rest) - len(begin)
            rest = begin or self.raw.read(BUFFER)
            if begin or not rest:
                break
        if zeros and zeros % self.padding:
            raise EOFError(f"{zeros} zeros behind a stream: not a multiple of {self.padding}")
        if rest:
            self.decoder, self.held = self.make(), rest
        return bool(rest)


class StreamCopy(io.BufferedRandom):
    """A temporary copy of a stream in ``folder``, without a name, that can be read more than once."""

    name = ""

    def __init__(self, stream, name: str, folder):
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed with this object)
        super().__init__(file)
        self.name = name
        shutil.copyfileobj(stream, self, BUFFER)
        self.flush()


class PartlyRead(io.BufferedReader):
    """A stream whose first bytes have been read already."""

    name = ""

    def __init__(self, head: bytes, rest, name: str):
        super().__init__(Rejoined(head, rest), BUFFER)
        self.name = name


def _xz():
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, in_force().room)


_MAGIC = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", lambda raw: io.BufferedReader(_Streams(raw, bz2.BZ2Decompressor, 0), BUFFER)),
    (b"\xfd7zXZ\x00", lambda raw: io.BufferedReader(_Streams(raw, _xz, 4), BUFFER)),
)


class Rejoined(io.RawIOBase):
    """The first bytes of a stream, read already, and then the rest."""

    def __init__(self, head: bytes, rest):
        self.head, self.rest = head, rest

    def readable(self):
        return True

    def readinto(self, target):
        data, self.head = (self.head, b"") if self.head else (None, b"")
        if data is None and hasattr(self.rest, "readinto"):
            return self.rest.readinto(target)
        if data is None:
            data = self.rest.read(len(target))
        self.head = data[len(target) :]
        data = data[: len(target)]
        target[: len(data)] = data
        return len(data)


def recoded(raw, encoding: str) -> io.BufferedReader:
    """Return a stream of text as UTF-8; bytes that are no text stay as they are."""
    recoder = codecs.EncodedFile(raw, "utf-8", encoding, "surrogateescape")
    return io.BufferedReader(Rejoined(b"", SimpleNamespace(read=recoder.read)), BUFFER)


def begins_with(path, magic: bytes) -> bool:
    """Tell whether a path names a file that begins with these bytes; a pipe, which would lose them, is not read."""
    if not isinstance(path, (str, Path)) or str(path) == "-" or not Path(path).is_file():
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:  # reading it will report why
        return False


def is_stream(source) -> bool:
    """Tell whether a source can be read only once: a stream of which there is no copy, or the path of a pipe."""
    if isinstance(source, StreamCopy):
        return False
    if hasattr(source, "read") or str(source) == "-":
        return True
    path = Path(file_name(source, "source"))
    return path.exists() and not path.is_file() and not path.is_dir()


def is_shard_folder(path) -> bool:
    """Tell whether a path is a folder (which must then be one of shards)."""
    return str(path) != "-" and Path(file_name(path, "source")).is_dir()
