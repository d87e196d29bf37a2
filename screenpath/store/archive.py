"""Arrays on disk with a hash: an NPZ file whose comment is the SHA-256 of everything before it."""

from __future__ import annotations

import os
import zipfile
import zlib
from math import prod
from pathlib import Path

import numpy as np

from screenpath.data.safe.atomic import prefix_sha256, replacing
from screenpath.data.safe.system import read_at

HASH = 64  # letters of a SHA-256
FAULTS = (
    ValueError, KeyError, TypeError, IndexError, OSError, EOFError, OverflowError, RuntimeError, SyntaxError,
    zipfile.BadZipFile, zlib.error, MemoryError, UserWarning,
)  # fmt: skip


class Damaged(ValueError):
    """An archive has changed since it was written."""


def save_archive(path: Path, arrays: dict) -> None:
    """Write arrays of numbers or bytes by name, replacing an older file."""
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.comment = bytes(HASH)  # reserves its place
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        size = file.tell() - HASH
        file.flush()
        digest, _ = prefix_sha256(file.fileno(), size)
        file.seek(size)
        file.write(digest.hexdigest().encode("ascii"))


def load_archive(path: Path) -> dict:
    """Return the arrays of :func:`save_archive`; :class:`Damaged` if the hash differs or it is no such archive."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size - HASH
            digest, _ = prefix_sha256(file.fileno(), size)
            if size < 0 or read_at(file.fileno(), HASH, size) != digest.hexdigest().encode("ascii"):
                raise Damaged("it was changed after it was written, or is not whole (its hash differs)")
            return read_npz(file)
    except Damaged:
        raise
    except FAULTS as error:
        raise Damaged(str(error).splitlines()[0] if str(error) else type(error).__name__) from None


def read_npz(file) -> dict:
    """Return the arrays of an NPZ file, plain ones, none larger than the file says; else raise one of ``FAULTS``."""
    found = {}
    with zipfile.ZipFile(file) as archive:
        left = archive.start_dir  # bytes before the directory
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name == info.filename or name in found:
                raise ValueError(f"there is no place for the part {info.filename!a}")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > info.compress_size:
                raise ValueError("a part is compressed, as none of ours is")  # it could expand to any size
            left -= info.file_size
            if left < 0:
                raise ValueError("its parts are more than the file")  # they could share the same bytes
            with archive.open(info) as member:
                array_header(member, info.file_size)
            with archive.open(info) as member:
                found[name] = np.lib.format.read_array(member, allow_pickle=False)
                member.read()  # to the end, where the checksum is verified
    return found


def array_header(member, size: int) -> tuple:
    """Return shape and type of an array in a file of ``size`` bytes, before allocating it."""
    version = np.lib.format.read_magic(member)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if reader is None:
        raise ValueError("an array has an unknown form")
    shape, _, dtype = reader(member)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError("an array does not hold plain numbers")
    if prod(shape) * dtype.itemsize != size - member.tell() or min(shape, default=0) < 0:
        raise ValueError("an array has another length than its header says")
    return shape, dtype
