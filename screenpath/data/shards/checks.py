"""Checks of a shard folder, whoever wrote it.

Hashes reveal damage, but a forged folder can have fitting hashes. So everything that compiled code relies on is
checked separately, and what follows from the rows (norms, ranges) is not stored.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from screenpath.data.files.form import Form, is_form
from screenpath.data.safe.values import are_words, is_flag, is_mapping, is_text, is_whole
from screenpath.data.words.numerals import is_spelled

BLOCK = 1 << 20  # values checked at a time
LONGEST = 1 << 62  # largest possible length or width
SHA256 = re.compile(r"[0-9a-f]{64}")
DTYPES = ("float64", "float32")
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


def _are_labels(value) -> bool:
    return value is None or (is_mapping(value) and all(map(is_count, value.values())))


def _is_hash(value) -> bool:
    return is_text(value) and SHA256.fullmatch(value) is not None


_FIELDS = {
    "n": is_count,
    "d": is_count,
    "nnz": is_count,
    "block_bytes": is_count,
    "dtype": lambda value: value in DTYPES,
    "zero_based": is_flag,
    "labels": _are_labels,
    "notices": are_words,
    "sources": are_words,
    "sha256": _is_hash,
    "shards": lambda value: isinstance(value, list),
}


def _is_file(value) -> bool:
    return is_mapping(value) and _is_hash(value.get("sha256")) and _is_crc(value.get("crc32"))


# Fields of some folders: those of tables, those by columns.
_OF_SOME = {
    "label_names": are_words, "table": is_form, "by": lambda value: value == "columns", "width": is_count,
    "labels_file": _is_file, "spelled": is_spelled,
}  # fmt: skip
_OF_COLUMNS = ("width", "labels_file")


def meta_faults(meta: dict) -> Iterator[str]:
    """Yield the faults of the content of meta.json."""
    if "crc32" in meta and meta["crc32"] != record_crc(meta):
        yield "its content is not what was written (CRC-32)"
    wrong = [name for name, fits in _FIELDS.items() if name not in meta or not fits(meta[name])]
    wrong += [name for name, fits in _OF_SOME.items() if meta.get(name) is not None and not fits(meta[name])]
    wrong += [name for name in _OF_COLUMNS if meta.get("by") is not None and meta.get(name) is None]
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
    if not is_mapping(entry) or not all(is_count(entry.get(name)) for name in ("rows", "nnz", "columns")):
        return False
    if not is_flag(entry.get("dense")) or not _is_hash(entry.get("sha256")):
        return False
    hashes = entry.get("crc32")
    if hashes is None:
        return True
    return is_mapping(hashes) and sorted(hashes) == sorted(part_names(entry)) and all(map(_is_crc, hashes.values()))


def joint_sha256(entries) -> str:
    """Return the SHA-256 that identifies all shards together."""
    return hashlib.sha256("".join(entry["sha256"] for entry in entries).encode()).hexdigest()


# -- one part ----------------------------------------------------------------------------------------------------------


def part_form(name: str, entry: dict, dtype: np.dtype) -> tuple[tuple, tuple]:
    """Return the types that a part may have, and its shape."""
    rows, nnz, columns = entry["rows"], entry["nnz"], entry["columns"]
    whole = (np.int32, np.int64)
    return {
        "targets": ((np.float64,), (rows,)),
        "sqnorms": ((np.float64,), (rows,)),
        "ranges": ((np.float64,), (3, columns)),
        "dense": ((dtype,), (rows, columns)),
        "data": ((dtype,), (nnz,)),
        "indices": ((np.int32,), (nnz,)),
        "indptr": ((np.int64,), (rows + 1,)),
        "columns": (whole, (columns,)),
    }[name]


def part_fault(name: str, array: np.ndarray, entry: dict, d: int) -> str | None:
    """Return the fault of a part's values, as far as the part alone shows it."""
    if name in ("targets", "dense", "data"):
        return None if _all(np.isfinite, array) else "it holds nan or infinity"
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


def _all(holds, array: np.ndarray) -> bool:
    flat = array.reshape(-1)
    return all(holds(flat[block]).all() for block in _blocks(flat.size))


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


def shard_fault(parts: dict) -> tuple[str, str] | None:
    """Return the part that contradicts the others, none of which has a fault of its own, and how; None if none does."""
    row = None if "dense" in parts else _unsorted_row(parts["indices"], parts["indptr"])
    return None if row is None else ("indices", f"the indices of its row {row} do not increase")


def _unsorted_row(indices: np.ndarray, indptr: np.ndarray) -> int | None:
    for block in _blocks(indices.size - 1):
        falls = indices[block.start + 1 : block.stop + 1] <= indices[block]  # entry p + 1 against entry p
        first = np.searchsorted(indptr, block.start + 1, side="left")
        starts = indptr[first : np.searchsorted(indptr, block.stop, side="right")]
        falls[starts - 1 - block.start] = False  # from one row to the next they may fall
        if falls.any():
            entry = block.start + 1 + int(falls.argmax())
            return int(np.searchsorted(indptr, entry, side="right")) - 1
    return None
