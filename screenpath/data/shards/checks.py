"""Checks of a shard folder, whoever wrote it.

Hashes reveal damage, but a forged folder can have fitting hashes. So everything that compiled code relies on is
checked separately, and what follows from the rows (norms, ranges) is not stored. ``numpy.load`` evaluates the header of
a file as Python and accepts any type; here a file that ``convert`` could not have written is refused.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import stat
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import numpy as np

from screenpath.data.files.dataset import Form, is_form
from screenpath.data.safe.memory import count_mapped
from screenpath.data.safe.system import AT_ONCE, BINARY
from screenpath.data.safe.values import are_words, has, is_flag, is_mapping, is_text, is_whole, wrong_entries
from screenpath.data.words.numerals import is_spelled

BLOCK = 1 << 20  # values checked at a time
LONGEST = 1 << 62  # largest possible length or width
SHA256 = re.compile(r"[0-9a-f]{64}")
DENSE_PARTS = ("dense",)
SPARSE_PARTS = ("data", "indices", "indptr", "columns")
FORMER_PARTS = ("sqnorms", "ranges")  # of folders in format 1; they follow from the rows


def part_names(entry: dict) -> tuple[str, ...]:
    """Return the names of a shard's parts, in the order of its SHA-256."""
    hashes = entry.get("crc32")  # which version 0.1.0 did not write
    former = (name for name in FORMER_PARTS if hashes is None or name in hashes)
    return ("targets", *former, *(DENSE_PARTS if entry["dense"] else SPARSE_PARTS))


def record_crc(record: dict) -> int:
    """Return the CRC-32 of a record without its own ``crc32``."""
    rest = {name: value for name, value in record.items() if name != "crc32"}
    return zlib.crc32(json.dumps(rest, sort_keys=True).encode())


# -- meta.json ---------------------------------------------------------------------------------------------------------


is_count = is_whole(0, LONGEST)
_is_crc = is_whole(0, (1 << 32) - 1)


def _is_hash(value) -> bool:
    return is_text(value) and SHA256.fullmatch(value) is not None


_FIELDS = {
    "n": is_count, "d": is_count, "nnz": is_count, "block_bytes": is_count, "zero_based": is_flag,
    "dtype": lambda value: value in ("float64", "float32"), "notices": are_words, "sources": are_words,
    "sha256": _is_hash, "shards": lambda value: isinstance(value, list),
}  # fmt: skip
_OF_SHARD = {**dict.fromkeys(("rows", "nnz", "columns"), is_count), "dense": is_flag, "sha256": _is_hash}
_OF_COLUMNS = {"width": is_count, "labels_file": has({"sha256": _is_hash, "crc32": _is_crc})}
# Fields of some folders: those of tables, those by columns.
_OF_SOME = {
    "labels": lambda value: is_mapping(value) and all(map(is_count, value.values())), "label_names": are_words,
    "table": is_form, "by": lambda value: value == "columns", "spelled": is_spelled, **_OF_COLUMNS,
}  # fmt: skip


def meta_faults(meta: dict) -> Iterator[str]:
    if "crc32" in meta and meta["crc32"] != record_crc(meta):
        yield "its content is not what was written (CRC-32)"
    needed = _FIELDS if meta.get("by") is None else {**_FIELDS, **_OF_COLUMNS}
    wrong = [name for name, _ in wrong_entries(meta, needed, _OF_SOME)] + ["labels"] * ("labels" not in meta)
    for name in wrong:
        yield f"'{name}' is missing or no value that it can have"
    if "shards" in wrong:
        return
    bad = [k for k, entry in enumerate(meta["shards"]) if not entry_fits(entry)]
    for k in bad:
        yield f"the entry of shard {k} is not complete"
    if bad or wrong:
        return
    for name, key in (("n", "rows"), ("nnz", "nnz")):
        total = sum(entry[key] for entry in meta["shards"])
        if total != meta[name]:
            yield f"'{name}' is {meta[name]}, the shards have {total}"
    if not meta["n"] or not meta["d"]:
        yield "there are no rows or no columns"
    width = meta["d"] if meta.get("by") is None else meta["width"]
    if meta.get("table") is not None and len(Form.of_record(meta["table"]).names) != width:
        yield f"'table' has the names of another number of columns than {width}"
    if any(entry["columns"] > meta["d"] for entry in meta["shards"]):
        yield f"a shard has more than {meta['d']} columns"
    if meta["labels"] is not None and sum(meta["labels"].values()) != meta["n"]:
        yield "the counts of the labels do not add up to the rows"
    if meta["sha256"] != joint_sha256(meta["shards"]):
        yield "'sha256' is not that of the shards"


def entry_fits(entry) -> TypeGuard[dict]:
    """Tell whether the entry of a shard has all fields, of the right types; ``crc32`` may be missing."""
    if not has(_OF_SHARD)(entry):
        return False
    hashes = entry.get("crc32")
    fit = is_mapping(hashes) and sorted(hashes) == sorted(part_names(entry)) and all(map(_is_crc, hashes.values()))
    return hashes is None or fit


def joint_sha256(entries) -> str:
    """Return the SHA-256 that identifies all shards together."""
    return hashlib.sha256("".join(entry["sha256"] for entry in entries).encode()).hexdigest()


# -- one part ----------------------------------------------------------------------------------------------------------


def part_form(name: str, entry: dict, dtype: np.dtype) -> tuple[tuple, tuple]:
    """Return the types that a part may have, and its shape."""
    rows, nnz, columns = entry["rows"], entry["nnz"], entry["columns"]
    whole = (np.int32, np.int64)
    return {
        "targets": ((np.float64,), (rows,)), "sqnorms": ((np.float64,), (rows,)),
        "ranges": ((np.float64,), (3, columns)), "dense": ((dtype,), (rows, columns)), "data": ((dtype,), (nnz,)),
        "indices": ((np.int32,), (nnz,)), "indptr": ((np.int64,), (rows + 1,)), "columns": (whole, (columns,)),
    }[name]  # fmt: skip


def part_fault(name: str, array: np.ndarray, entry: dict, d: int) -> str | None:
    """Return the fault of a part's values, as far as the part alone shows it."""
    if name in ("targets", "dense", "data"):
        flat = array.reshape(-1)
        good = all(np.isfinite(flat[block]).all() for block in _blocks(flat.size))
        return None if good else "it holds nan or infinity"
    if name in FORMER_PARTS:  # nobody reads them
        return None
    if name == "indices":
        return _outside(array, entry["columns"])
    if name == "columns":
        return _outside(array, d) or (None if _rising(array) else "the columns do not increase")
    if array[0] != 0 or array[-1] != entry["nnz"]:
        return f"the row pointers go from {array[0]} to {array[-1]}, not from 0 to {entry['nnz']}"
    return None if _rising(array, equal=True) else "a row ends before it begins"


def _blocks(size: int, step: int = BLOCK):
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _outside(array: np.ndarray, size: int) -> str | None:
    for block in _blocks(array.size):
        for value in (array[block].min(), array[block].max()):
            if not 0 <= value < size:
                return f"it holds the index {value} where there are {size} columns"
    return None


def _rising(array: np.ndarray, equal: bool = False) -> bool:
    compare = np.less_equal if equal else np.less
    return all(
        compare(array[block], array[block.start + 1 : block.stop + 1]).all() for block in _blocks(array.size - 1)
    )


# -- the parts of a shard together -------------------------------------------------------------------------------------


def unsorted_row(indices: np.ndarray, indptr: np.ndarray) -> int | None:
    """Return the first row whose indices do not increase; None if all do. No part has a fault of its own."""
    for block in _blocks(indices.size - 1):
        falls = indices[block.start + 1 : block.stop + 1] <= indices[block]  # entry p + 1 against entry p
        first = np.searchsorted(indptr, block.start + 1, side="left")
        starts = indptr[first : np.searchsorted(indptr, block.stop, side="right")]
        falls[starts - 1 - block.start] = False  # from one row to the next they may fall
        if falls.any():
            entry = block.start + 1 + int(falls.argmax())
            return int(np.searchsorted(indptr, entry, side="right")) - 1
    return None


SMALL = 1 << 12  # smaller files (bytes) are read instead of mapped
MAGIC = b"\x93NUMPY\x01\x00"


class NotAnArray(ValueError):
    """A file is not an array as :func:`numpy.save` writes it; the message says why."""


@dataclass(frozen=True)
class Mapped:
    """An array and the bytes of its whole file, in one mapping; ``signature`` identifies this state of the file."""

    array: np.ndarray
    raw: np.ndarray
    signature: tuple

    def crc32(self) -> int:
        return zlib.crc32(self.raw.data)


def map_array(file: Path, dtypes, shape: tuple) -> Mapped:
    """Map a ``.npy`` file copy-on-write: pages are shared with the file, but compiled code sees an ordinary array.

    It must have one of ``dtypes`` and exactly that shape; otherwise :class:`NotAnArray` is raised.
    """
    descriptor = os.open(file, os.O_RDONLY | AT_ONCE | BINARY)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise NotAnArray("it is no regular file")
        if state.st_size > SMALL:
            raw = _mapped(descriptor, state.st_size)
        else:
            with open(descriptor, "rb", closefd=False) as opened:
                raw = np.frombuffer(bytearray(opened.read(state.st_size)), dtype=np.uint8)
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


def _mapped(descriptor: int, size: int) -> np.ndarray:
    count_mapped(size)  # before mapping, or the system may refuse it
    try:
        mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    except BaseException:
        count_mapped(-size)
        raise
    weakref.finalize(mapped, count_mapped, -size).atexit = False
    return np.frombuffer(mapped, dtype=np.uint8)


def _header(raw: np.ndarray, dtypes, shape: tuple) -> tuple[np.dtype, int]:
    """Return the type of the values, and where they begin, by comparing the header with the ones that numpy writes."""
    start = len(MAGIC) + 2 + int.from_bytes(raw[len(MAGIC) : len(MAGIC) + 2].tobytes(), "little")
    if raw[: len(MAGIC)].tobytes() != MAGIC or raw.size < start or start % 8:
        raise NotAnArray("it is no .npy file of ours")
    found = raw[len(MAGIC) + 2 : start].tobytes().rstrip().decode("latin-1")
    for dtype in map(np.dtype, dtypes):
        if found == f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape!r}, }}":
            return dtype, start
    kinds = " or ".join(np.dtype(dtype).str for dtype in dtypes)
    raise NotAnArray(f"its header is not that of {kinds} values of shape {shape}")
