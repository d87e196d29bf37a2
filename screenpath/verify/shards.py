"""The checker's own reader of a folder of shards: one shard at a time is in memory, and hashed as it is used."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from screenpath.errors import DataError, ResourceError
from screenpath.verify.data import ENTRIES, Source
from screenpath.verify.file import memory, numbers_of

META, READ = "meta.json", 2  # and the layout of folders that this module reads
TOLD = ("table", "label_names")  # what is compared with the certificate
DENSE, SPARSE = ("targets", "dense"), ("targets", "data", "indices", "indptr", "columns")  # parts, in hashing order
SAME = "name the folder that the run was computed on, or the file it was made of"
AGAIN = "convert the file again, with `force`, or name the file itself"


class ShardSource(Source):
    """Rows of a folder that ``screenpath convert`` wrote, block by block; parameters as of :class:`Source`.

    The data are those of the certificate if its fingerprint is that of the folder (the SHA-256 of those of all shards,
    formed here from their bytes) or that of the text with the same rows.
    """

    wrong, other, converted = "a value is no finite number", SAME, True

    def __init__(self, path, header: dict, rows: int):
        super().__init__(path, header, rows)
        self.base, table = 0, header["data"].get("table") or {}
        self.names = [name for name in (table.get("target"), *table.get("columns", ()), table.get("id")) if name]
        try:
            meta = json.loads((self.path / META).read_bytes())
            self.shards = [(entry["rows"], DENSE if entry["dense"] else SPARSE) for entry in meta["shards"]]
            by, version = meta.get("by", "rows"), meta["schema_version"]
            told = [meta.get(name) for name in TOLD]
        except FileNotFoundError:
            raise DataError(f"{self.path} is a folder, but not one of shards", SAME) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{self.path / META} is damaged: {error}", AGAIN) from None
        if (by, version) != ("rows", READ):
            found = f"{self.path} holds {by} in format {version}"
            raise DataError(f"{found}, the checker reads rows in format {READ}", AGAIN)
        if told != [header["data"].get(name) for name in TOLD]:
            raise self._other()

    def same(self) -> bool:
        return self.whole.hexdigest() == self.header["data"]["sha256"] or super().same()

    def _blocks(self):
        self.whole, before = hashlib.sha256(), 0
        for k, (rows, names) in enumerate(self.shards):
            parts, n = self._parts(k, names), int(rows)
            y, X = parts["targets"], parts.get("dense")
            ends = parts["indptr"] if X is None else np.arange(n + 1) * X.shape[1]
            start = 0
            while start < n:
                most = np.searchsorted(ends, ends[start] + ENTRIES, "right") - 1
                stop = min(start + self.rows, n, max(start + 1, int(most)))
                if X is None:
                    some, counts = slice(ends[start], ends[stop]), ends[start : stop + 1] - ends[start]
                    columns, values = parts["columns"][parts["indices"][some]], parts["data"][some]
                else:
                    at, columns = np.nonzero(X[start:stop])
                    values, counts = X[start + at, columns], np.searchsorted(at, np.arange(stop - start + 1))
                yield self._block(before + start, y[start:stop], counts, columns, values)
                start = stop
            before += n

    def _parts(self, k: int, names: tuple) -> dict:
        """Return the arrays of a shard by name, and add what they hold to the fingerprint of the folder."""
        parts, digest, left = {}, hashlib.sha256(), memory() // 4  # blocks and their scaled copies take as much again
        for name in names:
            file = self.path / f"{k:06d}-{name}.npy"
            try:
                left -= file.stat().st_size
                if left < 0:
                    raise ResourceError(f"{file}: its shard is more than this machine can hold", AGAIN)
                parts[name] = array = numbers_of(file.read_bytes(), name, 1 + (name == "dense"))
            except (OSError, ValueError, EOFError) as error:
                why = getattr(error, "strerror", None) or error
                raise DataError(f"{file} is missing or damaged: {why}", AGAIN) from None
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.data)
        self.whole.update(digest.hexdigest().encode())
        self._check(k, parts)
        return parts

    def _check(self, k: int, parts: dict) -> None:
        n, ends = self.shards[k][0], parts.get("indptr")
        good = type(n) is int and len(parts["targets"]) == n and len(parts.get("dense", parts["targets"])) == n
        if good and ends is not None:
            at, count = parts["indices"], len(parts["columns"])
            good = ends.size == n + 1 and at.dtype.kind == ends.dtype.kind == parts["columns"].dtype.kind == "i"
            good = good and ends[0] == 0 <= np.diff(ends).min(initial=0) and ends[-1] == at.size == parts["data"].size
            good = good and at.min(initial=0) >= 0 and at.max(initial=-1) < count
        if not good:
            raise DataError(f"{self.path}, shard {k}: its parts do not fit together", AGAIN)
