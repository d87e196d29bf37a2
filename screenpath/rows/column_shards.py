"""Feature columns in memory-mapped shards: passes over all features read from disk, survivors stay in memory.

A pass prepares the columns block by block: it centres and scales them and multiplies them by the signs of the samples.
Quantities of a column are computed from it alone, by the kernels of :class:`rows.columns.Columns`, and sums over
columns in the same blocks and order: a path on such shards has the bytes of the path in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from screenpath.data.files.centring import far_centres
from screenpath.data.files.prepare import Preparation, dense_form, fit_preparation
from screenpath.data.safe.memory import F8, in_force
from screenpath.data.shards.shards import Shard, ShardFolder
from screenpath.errors import UsageError
from screenpath.kernels.rows import rows as sums
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import row_pointers, shared_csr
from screenpath.rows.base import FeatureColumns
from screenpath.rows.columns import Columns, as_columns, sign_sparse, spread, weighted_signs
from screenpath.rows.memory import squared_norms, sum_blocks, usable_threads
from screenpath.rows.shards import OnDisk

COPIES = 4  # of a block: converted, scaled, signed, and temporary
FEWER = "stop at a larger lambda, where fewer features have a weight"
SPARE = 2  # at most this many times the requested columns stay in memory


class ColumnShards(OnDisk):
    """Columns of a shard folder, scaled in each pass; the signed columns of a model are made from them.

    Parameters are those of ``rows.shards.ShardRows``, of columns: the constant one, of value ``bias``, is a shard of
    its own. ``penalties``, shape (features,), are further divisors of the columns. ``n`` and ``d`` are the samples and
    the features that have a column; the columns of shard ``k`` are those from ``starts[k]`` to ``starts[k + 1]``.
    """

    def __init__(
        self,
        folder: ShardFolder,
        scale="none",
        storage="auto",
        weights=None,
        penalties=None,
        threads: int = 1,
        bias: float = 0.0,
        free: bool = False,
    ):
        if scale == "l2":
            raise UsageError("`scale=l2` scales rows, the shards have columns", "convert again with `by=rows`")
        self.n, self.d = folder.n, folder.lines
        self.starts = folder.starts
        self.sparse = not dense_form(storage, (self.n, self.d), lambda: folder.nnz)
        if scale == "standard" and self.sparse:
            raise UsageError(
                "`scale=standard` subtracts the mean, which would fill these sparse columns",
                "use `scale=maxabs`, or `storage=dense` if the survivors fit in memory as dense columns",
            )
        self.threads = usable_threads(threads)
        super().__init__(folder, self.threads)
        self.counts = np.full(self.d, self.n)
        folder.check()
        self.preparation = Preparation("none", None, None, bias, self.d)
        self.preparation = self._prepare(scale, weights, penalties, free and scale in ("none", "maxabs"))
        if bias != 0.0:
            self.d += 1
            self.counts, self.starts = np.append(self.counts, self.n), np.append(self.starts, self.d)

    @property
    def kinds(self) -> tuple:
        """Return the types of values and indices, for the toy data of a warm-up."""
        return np.dtype(np.float64), self._index_type if self.sparse else None

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    @property
    def passing(self) -> int:
        starts = self.starts
        value = F8 if not self.sparse else F8 + self._index_type.itemsize
        largest = max(int(self.counts[a:b].sum()) for a, b in zip(starts[:-1], starts[1:], strict=True))
        return COPIES * (self.threads + 1) * value * largest

    @property
    def _index_type(self) -> np.dtype:
        return np.dtype(np.int32 if self.n <= np.iinfo(np.int32).max else np.int64)

    @property
    def plain(self) -> bool:
        p = self.preparation
        return p.scale is None and p.shift is None and self.folder.dtype == np.float64

    def block(self, k: int, chosen=None) -> Any:
        """Return (chosen) columns of shard ``k``, scaled: an array (columns, samples), or (data, indices, indptr)."""
        if k == self.folder.count:
            values = np.full(self.n, self.preparation.bias)
            whole = np.arange(self.n, dtype=self._index_type), np.array([0, self.n], dtype=np.int64)
            return (values, *whole) if self.sparse else values[None, :]
        shard, start = self.folder.shard(k), int(self.starts[k])
        columns = start + (np.arange(shard.rows) if chosen is None else chosen)
        self.folder.note(k, columns.size)
        p = self.preparation
        if not self.sparse:
            F = self._dense(shard, chosen)
            if p.shift is not None:
                F -= p.shift[columns, None]
            if p.scale is not None:
                F /= p.scale[columns, None]
            return F
        data, indices, indptr = self._sparse(shard, chosen)
        if p.shift is not None:
            data -= np.repeat(p.shift[columns], np.diff(indptr))
        if p.scale is not None:
            data *= np.repeat(1.0 / p.scale[columns], np.diff(indptr))
        return data, indices, indptr

    def _dense(self, shard: Shard, chosen) -> np.ndarray:
        if shard.dense is not None:
            return np.array(shard.dense if chosen is None else shard.dense[chosen], dtype=np.float64, order="C")
        X = sp.csr_array(self._sparse(shard, chosen), shape=(shard.rows if chosen is None else chosen.size, self.n))
        return X.toarray(order="C")

    def _sparse(self, shard: Shard, chosen) -> tuple:
        if shard.dense is not None:
            X = sp.csr_array(shard.dense if chosen is None else shard.dense[chosen])
            samples = X.indices
        else:  # other columns are not read
            X = shared_csr(shard.data, shard.indices, shard.indptr, (shard.rows, shard.columns.size))
            X = X if chosen is None else X[chosen]
            samples = shard.columns[X.indices]
        return np.array(X.data, dtype=np.float64), samples.astype(self._index_type), X.indptr.astype(np.int64)

    def _prepare(self, scale: str, weights, penalties, free: bool) -> Preparation:
        """Measure the scaling, centres if ``free``, and how many values each column stores."""
        factors = np.ones(self.d) if scale != "none" else None
        shift = np.zeros(self.d)
        starts, nearly = self.starts, []
        for k in range(self.folder.count if self.sparse or free or scale != "none" else 0):
            part, block = slice(int(starts[k]), int(starts[k + 1])), self.block(k)
            if self.sparse:
                self.counts[part] = np.diff(block[2])
            if factors is None and not free:
                continue
            shape = (part.stop - part.start, self.n)
            X = sp.csr_array(sp.csr_array(block, shape=shape).T) if self.sparse else block.T
            if free and (centres := far_centres(X, None if self.sparse else weights)) is not None:
                shift[part] = centres
            if factors is None:
                continue
            found = fit_preparation(X, scale, 0.0, weights, not self.sparse)
            factors[part] = found.scale
            if scale == "standard":
                shift[part] = found.shift
            if found.nearly is not None:
                nearly.append(part.start + found.nearly)
        if penalties is not None:
            factors = penalties if factors is None else factors * penalties
        moved = shift if scale == "standard" or shift.any() else None
        return replace(
            self.preparation, kind=scale, scale=factors, shift=moved, columns=self.folder.numbers, width=self.folder.d,
            nearly=np.concatenate(nearly) if nearly else None,
        )  # fmt: skip


class HeldColumns:
    """Columns of ``source``, a ColumnShards, of which requested ones stay in memory, up to ``SPARE`` times as many as
    the last request.
    """

    sparse: bool

    def __init__(self, source: Any):
        self.source, self.sparse, self._starts = source, source.sparse, source.starts
        self._held, self._where = np.empty(0, dtype=np.int64), np.full(source.d, -1)
        self._arrays: tuple = self._empty()

    def _part(self, k: int, chosen: np.ndarray) -> tuple:
        found = self.source.block(k, chosen)
        return found if self.sparse else (found,)

    def hold(self, index: np.ndarray) -> None:
        """Load columns into memory; those already there stay."""
        if not np.any(self._where[index] < 0):
            return
        wanted = np.union1d(self._held, index)
        if wanted.size > SPARE * index.size:
            wanted = np.unique(index)
        counts = self.source.counts[wanted]
        value = F8 + (self._arrays[1].dtype.itemsize if self.sparse else 0)
        in_force().check(value * int(counts.sum()), f"{wanted.size:,} columns of {self.source.d:,}", FEWER)
        arrays = self._empty(wanted.size, counts)
        old = self._where[wanted]
        for here in np.split(np.arange(wanted.size), np.searchsorted(wanted, self._starts[1:-1])):
            kept, read = here[old[here] >= 0], here[old[here] < 0]
            self._copy(arrays, kept, self._arrays, old[kept])
            if read.size:
                k = int(np.searchsorted(self._starts, wanted[read[0]], side="right")) - 1
                found = self._part(k, wanted[read] - self._starts[k])
                self._copy(arrays, read, found, np.arange(read.size))
        self._where[self._held] = -1
        self._where[wanted] = np.arange(wanted.size)
        self._held, self._arrays = wanted, arrays

    def _empty(self, count: int = 0, counts=()) -> tuple:
        if not self.sparse:
            return (np.empty((count, self.source.n)),)
        indptr = row_pointers(counts)
        return np.empty(indptr[-1]), np.empty(indptr[-1], dtype=self.source.kinds[1]), indptr

    def _copy(self, to: tuple, places, of: tuple, rows) -> None:
        if not places.size:
            return
        if not self.sparse:
            to[0][places] = of[0][rows]
            return
        length = of[2][rows + 1] - of[2][rows]
        steps = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        target, origin = np.repeat(to[2][places], length) + steps, np.repeat(of[2][rows], length) + steps
        to[0][target], to[1][target] = of[0][origin], of[1][origin]


class ShardColumns(HeldColumns, FeatureColumns):
    """Signed feature columns on disk; requested ones stay in memory, up to twice as many as the last request.

    ``signs`` are labels -1 and +1, ``weights`` at least 0, both of shape (samples,).
    """

    moved = None

    @property
    def read(self) -> int:  # type: ignore[override]  # computed, not set
        return self.source.read

    def __init__(self, source: ColumnShards, signs, weights=None):
        HeldColumns.__init__(self, source)
        self.inexact, self.n, self.d, self.touched = source.preparation.inexact, source.d, source.n, 0
        self.signs, self._weights = weighted_signs(signs, weights), weights
        self._blocks = sum_blocks(self.n, source.size, self.d)
        self.norms = np.sqrt(self._by_column(lambda k: squared_norms(self._signed(k))))

    # -- passes --------------------------------------------------------------------------------------------------

    def products(self, v: np.ndarray) -> np.ndarray:
        """Return ``f_j . v`` for every feature, in one pass over the files."""
        v = np.ascontiguousarray(v, dtype=np.float64)
        product, signed = sums.csr_products if self.sparse else sums.dense_products, self.signs * v

        def one(k: int):
            found = np.empty(int(self._starts[k + 1] - self._starts[k]))
            shard = self._as_stored(k)
            if shard is None:
                product(*self._signed(k), v, found, 0, found.size)
            elif self.sparse:
                product(shard.data, shard.indices, shard.indptr, signed[shard.columns], found, 0, found.size)
            else:
                product(shard.dense, signed, found, 0, found.size)
            return found

        self.touched += self.n
        return self._by_column(one)

    def _by_column(self, function) -> np.ndarray:
        """Return the results of ``function(k)`` for every shard, one per column."""
        return np.concatenate(list(self.source.each(function, ((k,) for k in range(self._starts.size - 1)))))

    def _as_stored(self, k: int) -> Shard | None:
        """Return shard ``k`` if its columns are those of the model up to signs -1 and +1, which are exact; else
        None.
        """
        if not self.source.plain or self._weights is not None:
            return None
        shard = self.source.folder.shard(k)
        if (shard.dense is None) != self.sparse:
            return None
        self.source.folder.note(k, shard.rows)
        return shard

    def _signed(self, k: int, chosen=None) -> tuple:
        block = self.source.block(k, chosen)
        if not self.sparse:
            return (block * self.signs,)
        sign_sparse(block[0], block[1], self.signs)
        return block

    _part = _signed

    # -- columns in memory ---------------------------------------------------------------------------------------

    def combine(self, w: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(w)
        self.hold(support)
        add, theta = sums.csr_sum if self.sparse else sums.dense_sum, w[self._held]
        partial = np.zeros((len(self._blocks), self.d))
        for total, ends in zip(partial, self._blocks, strict=True):
            first, last = np.searchsorted(self._held, ends).tolist()
            self.touched += add(*self._arrays, theta, total, first, last)
        return partial[0] if len(partial) == 1 else partial.sum(axis=0)

    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if self._where[j] < 0 and self.source.counts[j]:
            k = int(np.searchsorted(self._starts, j, side="right")) - 1
            arrays, place = self._signed(k, np.array([j - self._starts[k]])), 0
        else:
            arrays, place = self._arrays, int(self._where[j])
        if not self.sparse:
            return arrays[0][place], np.arange(self.d)
        if not self.source.counts[j]:
            return np.empty(0), np.empty(0, dtype=self._arrays[1].dtype)
        stored = slice(arrays[2][place], arrays[2][place + 1])
        return arrays[0][stored], arrays[1][stored]

    def slices(self, index: np.ndarray) -> tuple:
        self.hold(index)
        data, indices, begin, end = as_columns(*self._arrays)
        places = self._where[index]
        return data, indices, begin[places], end[places]

    def some(self, index: np.ndarray) -> tuple:
        return spread(self, index)


def columns_of(rows, signs, threads: int = 1, weights=None) -> Columns | ShardColumns:
    """Return the signed columns of sample rows in memory (a copy), or of columns on disk."""
    if isinstance(rows, ColumnShards):
        return ShardColumns(rows, signs, weights)
    return Columns.of_rows(rows, signs, threads, weights)
