"""Opening a file, a compressed file or standard input as one stream of bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path

from screenpath.errors import DataError

_MAGIC = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


@contextmanager
def open_source(source):
    """Open ``source`` and undo its compression, told by its first bytes.

    Parameters
    ----------
    source : str, Path or binary file object
        ``-`` is standard input.

    Yields
    ------
    stream : binary file object
    name : str
        For messages.

    Raises
    ------
    DataError
        For a file that is missing, a folder, unreadable, or a damaged archive.
    """
    if hasattr(source, "read"):
        yield from _decompressed(source, getattr(source, "name", "<stream>"))
        return
    if str(source) == "-":
        yield from _decompressed(sys.stdin.buffer, "standard input")
        return
    path = Path(source)
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a data file", "name a LIBSVM text file")
    try:
        raw = open(path, "rb")  # noqa: SIM115 (closed by the with statement below)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file", "check the path; '-' reads standard input") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    with raw:
        yield from _decompressed(raw, str(path))


def _decompressed(raw, name: str):
    buffered = raw if hasattr(raw, "peek") else io.BufferedReader(_Raw(raw))
    head = buffered.peek(6)[:6]
    opener = next((opener for magic, opener in _MAGIC if head.startswith(magic)), None)
    stream = buffered if opener is None else opener(buffered, "rb")
    try:
        yield stream, name
    except _DAMAGED as error:
        raise _damaged(name, error) from None
    except OSError as error:
        if opener is None:
            raise DataError(f"{name} cannot be read: {error}") from None
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name}: the compressed data is damaged or cut short ({error})", "fetch or compress the file again"
    )


class _Raw(io.RawIOBase):
    """Give any object with ``read`` the interface that buffering needs."""

    def __init__(self, stream):
        self.stream = stream

    def readable(self):
        return True

    def readinto(self, target):
        data = self.stream.read(len(target))
        target[: len(data)] = data
        return len(data)
