"""Shard folders as other hands make them: with hashes that fit whatever is there, or with none."""

from __future__ import annotations

import contextlib
import json
import zlib
from pathlib import Path

import numpy as np

from screenpath.data.shards.checks import joint_sha256, part_names, record_crc
from screenpath.data.shards.shards import META, content_sha256, part_name
from screenpath.data.words.tables import readable_json


def at(place, value):
    """Return a change of one value of an array."""

    def change(array):
        array.flat[place] = value

    return change


def read(folder) -> dict:
    """Return the content of meta.json."""
    return json.loads((Path(folder) / META).read_text())


def write(folder, meta: dict, crc: bool = True) -> None:
    """Write meta.json, with a CRC-32 that fits or as it is."""
    meta = {**meta, "crc32": record_crc(meta)} if crc else meta
    (Path(folder) / META).write_text(readable_json(meta) + "\n")


def seal(folder) -> None:
    """Make all hashes fit what is there, as far as it can be read."""
    meta = read(folder)
    with contextlib.suppress(Exception):  # the rest stays as it is
        for k, entry in enumerate(meta["shards"]):
            files = {name: Path(folder) / part_name(k, name) for name in part_names(entry)}
            if "crc32" in entry:
                entry["crc32"] = {name: zlib.crc32(file.read_bytes()) for name, file in files.items()}
            entry["sha256"] = content_sha256({name: np.load(file) for name, file in files.items()})
        meta["sha256"] = joint_sha256(meta["shards"])
    write(folder, meta, "crc32" in meta)


def to_format_1(folder) -> None:
    """Turn a folder into one of format 1: with squared norms and ranges of columns, whatever their values."""
    meta = {**read(folder), "schema_version": 1}
    for k, entry in enumerate(meta["shards"]):
        for name, shape in (("sqnorms", (entry["rows"],)), ("ranges", (3, entry["columns"]))):
            np.save(Path(folder) / part_name(k, name), np.zeros(shape))
            entry["crc32"][name] = 0
    write(folder, meta)
    seal(folder)


def without_hashes(folder) -> None:
    """Turn a folder into one that version 0.1.0 wrote, in format 1: a SHA-256 for each shard, no CRC-32."""
    to_format_1(folder)
    meta = read(folder)
    del meta["crc32"]
    for entry in meta["shards"]:
        del entry["crc32"]
    write(folder, meta, crc=False)


def edit(folder, k: int, name: str, change) -> None:
    """Replace a part of a shard by what ``change`` makes of it (or does to it)."""
    file = Path(folder) / part_name(k, name)
    array = np.load(file)
    changed = change(array)
    np.save(file, array if changed is None else changed)


def flip(file: Path, at: int, bit: int = 0) -> None:
    """Flip a bit of a file; ``at`` may count from its end."""
    content = bytearray(file.read_bytes())
    content[at] ^= 1 << bit
    file.write_bytes(content)
