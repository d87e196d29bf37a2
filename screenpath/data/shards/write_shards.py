"""Write a shard folder: its parts are written to a temporary folder, which gets the final name when complete."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.data.files.prepare import dense_form
from screenpath.data.safe.atomic import LOCK, Appender, FolderLock, replacing, sync_folder
from screenpath.data.safe.values import are_words, is_flag, is_mapping, is_number, is_text, list_of, wrong_entries
from screenpath.data.shards.checks import entry_fits, is_count, record_crc
from screenpath.data.shards.shards import META, content_sha256, part_name
from screenpath.data.words.tables import check_same, dump_json, readable_json
from screenpath.errors import RunFolderError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import short

SPARSE_WIDTH = 16  # from this many columns per stored value, occurring columns are found by sorting
LOG = "progress.jsonl"  # of an unfinished folder: its settings, then a line per finished shard
MARKS = {META: b'{\n  "schema_version": ', LOG: b'{"settings": {"schema_version": '}
TOOL, HEAD = b'\n  "tool": "screenpath"', 80  # stands within so many first bytes of meta.json
_PART = r"\d{6,}-(targets|sqnorms|ranges|dense|data|indices|indptr|columns)\.npy"
_NAMES = re.compile(
    rf"({_PART}|labels\.npy|{re.escape(META)})(\.new(-[0-9a-f]{{16}})?)?|{re.escape(LOG)}|{re.escape(LOCK)}"
)


class ShardWriter:
    """The folder ``OUT.partial`` on its way to ``OUT``.

    An interrupted conversion leaves no incomplete folder named ``OUT``; the next call starts again, or with ``resume``
    after the finished shards, whose records (see :meth:`note`) ``known`` has by number. ``settings`` are everything
    that determines the shards, apart from the text.

    A RunFolderError is raised if ``path`` exists and ``force`` is not set, another process is writing it, the
    conversion to resume had other settings, or a needed name is taken by something without the mark of ``convert``.
    """

    def __init__(self, path, force: bool = False, settings: dict | None = None, resume: bool = False):
        self.path, settings = Path(path), settings or {}
        if self.path.name in ("", ".."):
            raise RunFolderError(f"{path} is no name for a new folder", "write the name that it is to have")
        self.partial = partial_folder(self.path)
        check_ours(self.partial)
        begun = _read_log(self.partial / LOG) if resume else None
        force = force or (begun is not None and begun[0]["replace"])
        if os.path.lexists(self.path):
            if not force:
                raise RunFolderError(f"{self.path} exists already", "use `force` to replace it, or another name")
            self._check_replaced()
        try:
            self.partial.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.partial)
        except OSError as error:
            what = f"{self.partial} cannot be written: {error.strerror or error}"
            raise RunFolderError(what, "choose a place that may be written") from None
        try:
            self._take_up(begun, settings, force)
        except BaseException:
            self._lock.release()
            raise

    def _check_replaced(self) -> None:
        """Check that the replaced folder, and the one under its temporary name, are ours."""
        if not (self.path / META).is_file():
            raise RunFolderError(f"{self.path} is not a folder of shards and is not replaced", "choose another name")
        check_ours(self.path)
        check_ours(_older(self.path))

    def _take_up(self, begun, settings: dict, replace: bool) -> None:
        """Open the log, and remove everything that does not belong to the shards in it."""
        self.known, size, self._noted = {}, 0, 0
        if begun is not None:
            head, records, size = begun
            check_same(self.partial, head["settings"], settings)
            self.known = {record["shard"]: record for record in records if self._is_whole(record)}
        keep = {part_name(k, name) for k, record in self.known.items() for name in record["entry"]["crc32"]}
        keep |= {self._lock.path.name, *([LOG] if begun is not None else [])}
        for file in marks_last(self.partial):
            if file.name not in keep:
                file.unlink()
        self._log, self._finished = Appender(self.partial / LOG, size, named=True), False
        if begun is None:
            self.note({"settings": settings, "replace": replace})

    def _is_whole(self, record: dict) -> bool:
        k, hashes = record["shard"], record["entry"]["crc32"]
        files = {self.partial / part_name(k, name): value for name, value in hashes.items()}
        return all(file.is_file() and _crc32(file) == value for file, value in files.items())

    def note(self, record: dict) -> None:
        """Log a finished shard: what :meth:`write` returns and what else a later call needs to keep it."""
        self._log.append((dump_json({**record, "crc32": record_crc(record)}) + "\n").encode())
        self._log.sync()
        self._noted += "shard" in record

    def write(self, k: int, rows, labels: np.ndarray, storage: str) -> dict:
        """Write one shard and return its number and its entry in meta.json; calls for different shards may run
        concurrently.

        Rows, shape (rows, width), are an ndarray, whose zeros are not stored, or a csr_array with sorted indices from
        0.
        """
        parts = shard_parts(rows, labels, storage)
        hashes = {name: self._save(part_name(k, name), array) for name, array in parts.items()}
        entry = {
            "rows": rows.shape[0], "nnz": _stored(rows), "dense": "dense" in parts,
            "columns": rows.shape[1] if "dense" in parts else parts["columns"].size, "sha256": content_sha256(parts),
            "crc32": hashes,
        }  # fmt: skip
        return {"shard": k, "entry": entry}

    def write_file(self, name: str, array: np.ndarray) -> dict:
        return {"crc32": self._save(name, array), "sha256": content_sha256({name: array})}

    def _save(self, name: str, array: np.ndarray) -> int:
        with replacing(self.partial / name) as file:
            np.save(file, array, allow_pickle=False)
        return _crc32(self.partial / name)

    def finish(self, meta: dict) -> None:
        """Write meta.json and give the folder its name, replacing an older one."""
        with replacing(self.partial / META) as file:
            file.write((readable_json({**meta, "crc32": record_crc(meta)}) + "\n").encode())
        old = _older(self.path)
        if os.path.lexists(self.path):
            self._check_replaced()  # again: a conversion may take hours
            remove_ours(old)
            os.replace(self.path, old)
        self._log.abandon(remove=True)
        self._finished = True
        self._lock.let_rename()
        os.replace(self.partial, self.path)
        sync_folder(self.path.parent)
        (self.path / self._lock.path.name).unlink(missing_ok=True)
        self._lock.path = self.path / self._lock.path.name
        _remove_older(self.path)

    def close(self) -> None:
        """Release the folder; finished shards stay in the partial folder until the next call."""
        if not self._finished:
            self._log.abandon()
        if not self._finished and not self.known and not self._noted:  # a wrong file name leaves no folder behind
            remove_ours(self.partial)
        self._lock.release()


def shard_parts(rows, labels: np.ndarray, storage: str) -> dict[str, Any]:
    """Return the parts of a shard by name; arguments as of :meth:`ShardWriter.write`."""
    full = isinstance(rows, np.ndarray)
    if dense_form(storage, rows.shape, lambda: _stored(rows)):
        return {"targets": labels, "dense": rows if full else rows.toarray(order="C")}
    rows = sp.csr_array(rows)
    columns, local = _compact(rows.indices, rows.shape[1])
    indptr = rows.indptr.astype(np.int64)
    return {"targets": labels, "data": rows.data, "indices": local, "indptr": indptr, "columns": columns}


def _stored(rows) -> int:
    return int(np.count_nonzero(rows) if isinstance(rows, np.ndarray) else rows.nnz)


def _crc32(file: Path) -> int:
    value = 0
    with open(file, "rb") as stream:
        while data := stream.read(1 << 20):
            value = zlib.crc32(data, value)
    return value


def partial_folder(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def clear_leftovers(path: Path) -> None:
    """Remove what a crash at the end of a conversion leaves next to and in a complete folder."""
    if (path / LOCK).exists():
        FolderLock(path).release()
    _remove_older(path)


def _older(path: Path) -> Path:
    """Return the temporary name of a folder that is being replaced."""
    return path.with_name(path.name + ".old")


def _remove_older(path: Path) -> None:
    with contextlib.suppress(RunFolderError):  # somebody else's: it is not in the way
        remove_ours(_older(path))


def _read_log(file: Path):
    """Return first record, other records and size of a log up to the first damaged line; None if there is none."""
    if not file.is_file():
        return None
    records: list[dict] = []
    size = 0
    for line in file.read_bytes().splitlines(keepends=True):
        record = _logged(line, first=not records)
        if record is None:  # incomplete or damaged: everything after it is made again
            break
        records.append(record)
        size += len(line)
    return (records[0], records[1:], size) if records else None


def _logged(line: bytes, first: bool) -> dict | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not line.endswith(b"\n") or not is_mapping(record) or record.get("crc32") != record_crc(record):
        return None
    needed, possible = (_HEAD, {}) if first else (_FINISHED, _SEEN)
    return None if any(wrong_entries(record, needed, possible)) else record


def _are_ranges(far) -> bool:
    """Tell whether a value of a log is a list of columns with lists of their smallest and of their largest values."""
    lists = list_of(list_of(is_number))(far) and [*map(len, far)] == 3 * [len(far[0])]
    return lists and all(map(is_count, far[0])) and all(type(end) is float for end in far[1] + far[2])


def _are_counts(labels) -> bool:
    pairs = list_of(list_of(is_number))(labels) and all(len(pair) == 2 for pair in labels)
    return pairs and all(type(label) is float and is_count(count) for label, count in labels)


# Entries of the first record of a log, and of the record of a finished shard.
_HEAD = {"settings": is_mapping, "replace": is_flag}
_FINISHED = {
    "shard": is_count, "text": is_text, "entry": entry_fits, "entry.crc32": is_mapping,
    "seen.rows": is_count, "seen.width": is_count, "seen.notices": are_words,
}  # fmt: skip
_SEEN = {"seen.labels": _are_counts, "seen.far": _are_ranges}


def _compact(indices: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which columns occur in a shard, and the indices counted within them."""
    if width > SPARSE_WIDTH * max(indices.size, 1 << 16):
        columns, rank = np.unique(indices, return_inverse=True)
    else:
        there = np.zeros(width, dtype=bool)
        there[indices] = True
        columns, rank = np.flatnonzero(there), (np.cumsum(there, dtype=np.int32) - np.int32(1))[indices]
    return short(columns, int(columns.max(initial=0))), rank.astype(np.int32, copy=False)


def check_ours(folder: Path) -> None:
    """Refuse to overwrite or remove a folder that exists and was not made by ``convert`` alone."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            what = "a symbolic link" if folder.is_symlink() else "no folder"
            raise _foreign(folder, f"is {what}")
        names = sorted(file.name for file in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise _foreign(folder, f"cannot be looked at ({error.strerror or error})") from None
    for name in names:
        if not _NAMES.fullmatch(name) or not stat.S_ISREG((folder / name).lstat().st_mode):
            raise _foreign(folder, f"holds '{name}', which convert did not write")
    log, meta = (_head(folder / name) for name in (LOG, META))
    marked = log.startswith(MARKS[LOG]) or (meta.startswith(MARKS[META]) and TOOL in meta)
    ours = MARKS[LOG].startswith(log[: len(MARKS[LOG])])  # or the first bytes of one, or missing
    if not (set(names) <= {LOCK, LOG} or marked) or not ours:
        raise _foreign(folder, "does not carry the mark of convert")


def remove_ours(folder: Path) -> None:
    """Remove a folder that ``convert`` made; any other is refused."""
    check_ours(folder)
    if not folder.exists():
        return
    for file in marks_last(folder):
        file.unlink(missing_ok=True)
    folder.rmdir()


def marks_last(folder: Path) -> list[Path]:
    """Return the files of a folder in an order of removal that leaves it recognisable whenever it is interrupted."""
    return sorted(folder.iterdir(), key=lambda file: (file.name in MARKS, file.name))


def _foreign(folder: Path, what: str) -> RunFolderError:
    return RunFolderError(f"{folder} {what}, so it is not changed", "move it away, or choose another name")


def _head(file: Path) -> bytes:
    if not file.is_file():
        return b""
    with open(file, "rb") as stream:
        return stream.read(HEAD)
