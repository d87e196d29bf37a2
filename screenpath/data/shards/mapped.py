"""Arrays of ``.npy`` files, mapped, after checking header and length.

``numpy.load`` evaluates the header as Python and accepts any type. Here a file that ``convert`` could not have written
is refused.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
import weakref
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.data.safe.memory import count_mapped

SMALL = 1 << 12  # smaller files (bytes) are read instead of mapped
HASHED = 1 << 24  # bytes hashed at a time
MAGIC = b"\x93NUMPY\x01\x00"
HEADER_BYTES = 1 << 10  # a header of ours is far shorter
_HEADER = re.compile(r"\{'descr': '([<>|=][a-z]\d+)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n")


class NotAnArray(ValueError):
    """A file is not an array as :func:`numpy.save` writes it; the message says why."""


@dataclass(frozen=True)
class Mapped:
    """An array and the bytes of its whole file, in one mapping; ``signature`` identifies this state of the file."""

    array: np.ndarray
    raw: np.ndarray
    signature: tuple

    def crc32(self) -> int:
        value = 0
        for start in range(0, self.raw.size, HASHED):
            value = zlib.crc32(self.raw[start : start + HASHED].data, value)
        return value


def map_array(file: Path, dtypes, shape: tuple) -> Mapped:
    """Map a ``.npy`` file copy-on-write: pages are shared with the file, but compiled code sees an ordinary array.

    It must have one of ``dtypes`` and exactly that shape; otherwise :class:`NotAnArray` is raised.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe of that name must not hang us
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise NotAnArray("it is no regular file")
        raw = _bytes(descriptor, state.st_size)
    finally:
        os.close(descriptor)
    dtype, start = _header(raw, dtypes, shape)
    expected = start + dtype.itemsize * int(np.prod([int(size) for size in shape], dtype=object))
    if raw.size != expected:
        raise NotAnArray(f"it has {raw.size} bytes where {expected} belong")
    array = raw[start:].view(dtype).reshape(shape)
    return Mapped(array, raw, signature(state))


def signature(state: os.stat_result) -> tuple:
    """Return what distinguishes a state of a file from any other that the system knows of."""
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _bytes(descriptor: int, size: int) -> np.ndarray:
    if size > SMALL:
        count_mapped(size)  # before mapping, or the system may refuse it
        try:
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
        except BaseException:
            count_mapped(-size)
            raise
        weakref.finalize(mapped, count_mapped, -size).atexit = False
        return np.frombuffer(mapped, dtype=np.uint8)
    raw = np.empty(size, dtype=np.uint8)
    filled = 0
    while filled < size:
        got = os.readv(descriptor, [raw.data[filled:]])
        if not got:
            raise NotAnArray("it is cut short")
        filled += got
    return raw


def _header(raw: np.ndarray, dtypes, shape: tuple) -> tuple[np.dtype, int]:
    head = raw[: len(MAGIC) + 2].tobytes()
    size = int.from_bytes(head[len(MAGIC) :], "little")
    start = len(MAGIC) + 2 + size
    if not head.startswith(MAGIC) or size > HEADER_BYTES or raw.size < start or start % 8:
        raise NotAnArray("it is no .npy file of ours")
    found = _HEADER.fullmatch(raw[len(head) : start].tobytes().decode("latin-1"))
    if found is None:
        raise NotAnArray("its header is no .npy header of ours")
    dtype = next((dtype for dtype in map(np.dtype, dtypes) if dtype.str == found[1]), None)
    if dtype is None:
        raise NotAnArray(f"it holds values of type '{found[1]}', not {' or '.join(np.dtype(d).str for d in dtypes)}")
    there = tuple(found[2].replace(" ", "").rstrip(",").split(","))
    if there != tuple(str(size) for size in shape):
        raise NotAnArray(f"its shape is ({found[2]}), not {tuple(shape)}")
    return dtype, start
