"""Rows in memory-mapped shards: passes read shard by shard, only requested rows are copied.

Scaling and bias never touch the files: they are applied to the few rows that a pass processes at a time. The arithmetic
is that of :class:`rows.memory.MemoryRows`: rows go through the same kernels, and sums over rows are computed in the
same blocks, each in the order of its rows. So a path that reads all rows has the bytes of the path in memory; one that
copies those near their kinks (``walk.staged``) has its numbers up to rounding.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from screenpath.data.files.centring import is_far, midpoints
from screenpath.data.files.prepare import CHUNK_CELLS, Preparation, dense_form, fit_preparation, peaks
from screenpath.data.safe.memory import BOX, F8, SCREEN_MORE, MemoryLimit, Shape
from screenpath.data.shards.shards import Shard, ShardFolder, in_order
from screenpath.kernels.rows import rows as kernels
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr, row_pointers, shared_csr
from screenpath.rows.base import Counted, Rows
from screenpath.rows.memory import squared_norms, sum_blocks, usable_threads

STAGED = 1000  # columns up to which some sparse rows may be copied as dense ones
ON_ITS_WAY = 3  # temporary copies of the rows that a task takes from its shard


@dataclass(frozen=True)
class Plan:
    """How rows of a shard become rows of a model."""

    dense: bool  # form of the model's rows
    raw_d: int  # columns of the data set
    preparation: Preparation  # of the shard's columns

    @property
    def d(self) -> int:
        return self.raw_d + bool(self.preparation.bias)

    def columns(self, shard: Shard):
        """Return the columns of prepared rows of a shard, as an index into all of them; None for all."""
        if self.dense or shard.dense is not None:
            return None
        return np.append(shard.columns, self.raw_d) if self.preparation.bias else shard.columns

    def prepared(self, shard: Shard, start: int, stop: int):
        """Yield (first row, count, arrays) for the rows ``start <= i < stop`` of a shard, prepared, a chunk at a time.

        Dense rows are one array of ``d`` columns, sparse ones data, indices, indptr, whose indices count
        :meth:`columns`.
        """
        p = self.preparation
        plain = p.plain
        if not self.dense:
            if plain and shard.dense is None:
                indptr = shard.indptr[start : stop + 1]  # offsets into the whole arrays: nothing is copied
                yield start, stop - start, (shard.data, shard.indices, indptr)
                return
            yield start, stop - start, self._sparse(shard, np.arange(start, stop))
            return
        if plain and shard.dense is not None and shard.dense.shape[1] == self.raw_d:
            yield start, stop - start, (shard.dense[start:stop],)
            return
        step = max(1, CHUNK_CELLS // self.d)
        for first in range(start, stop, step):
            count = min(step, stop - first)
            yield first, count, (self._dense(shard, np.arange(first, first + count)),)

    def take(self, shard: Shard, index, signs):
        """Return prepared rows ``signs[k] * x_index[k]``; indices of sparse ones count all columns."""
        if self.dense:
            return self._dense(shard, index) * signs[:, None]
        data, indices, indptr = self._sparse(shard, index)
        columns = self.columns(shard)
        return data * np.repeat(signs, np.diff(indptr)), indices if columns is None else columns[indices], indptr

    def _dense(self, shard: Shard, index) -> np.ndarray:
        if shard.dense is None:
            X = shard.matrix(self.raw_d)[index].toarray()
        elif shard.dense.shape[1] == self.raw_d:
            X = shard.dense[index]
        else:
            X = np.zeros((index.size, self.raw_d), dtype=shard.dense.dtype)
            X[:, : shard.dense.shape[1]] = shard.dense[index]
        return np.ascontiguousarray(self.preparation.apply(X), dtype=np.float64)

    def _sparse(self, shard: Shard, index):
        if shard.dense is not None:
            X = shard.matrix(self.raw_d)
        else:
            X = shared_csr(shard.data, shard.indices, shard.indptr, (shard.rows, shard.columns.size))
        X = sp.csr_array(self.preparation.apply(X[index]))
        return X.data.astype(np.float64, copy=False), X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)


def shard_checked(shard: Shard, plan: Plan) -> None:
    """Do nothing more: the folder has checked the shard when it was opened, here or on a worker."""


# -- the contribution of one shard to a pass; `v` and `carry` have an entry for each of its columns --------------------


def shard_products(shard: Shard, plan: Plan, v):
    out, products = np.empty(shard.rows), kernels.dense_products if plan.dense else kernels.csr_products
    for first, count, rows in plan.prepared(shard, 0, shard.rows):
        products(*rows, v, out[first:], 0, count)
    return out


def shard_sum(shard: Shard, plan: Plan, start: int, stop: int, theta, carry):
    """Add ``sum_i theta_i x_i`` over rows of a shard to ``carry``, row by row; return it and the rows touched."""
    touched, add = 0, kernels.dense_sum if plan.dense else kernels.csr_sum
    for first, count, rows in plan.prepared(shard, start, stop):
        touched += add(*rows, theta[first - start :], carry, 0, count)
    return carry, touched


def shard_squared_norms(shard: Shard, plan: Plan):
    return np.concatenate([squared_norms(rows) for _, _, rows in plan.prepared(shard, 0, shard.rows)] or [np.empty(0)])


def shard_peaks(shard: Shard, plan: Plan, weights):
    """Return the largest magnitude of each column of the shard, over rows whose weight is not 0."""
    if shard.dense is not None:
        return peaks(shard.dense, weights)
    return peaks(Csr(shard.data, shard.indices, shard.indptr, (shard.rows, shard.columns.size)), weights)


def shard_take(shard: Shard, plan: Plan, index, signs):
    return plan.take(shard, index, signs)


def shard_blocks(shard: Shard, plan: Plan, function, *arguments):
    """Return ``function(X, *arguments)`` for matrices of some rows each, dense whatever their form."""
    found, step = [], max(1, CHUNK_CELLS // plan.d)
    for start in range(0, shard.rows, step):
        index = np.arange(start, min(start + step, shard.rows))
        X = plan.take(shard, index, np.ones(index.size))
        X = X if plan.dense else sp.csr_array(X, shape=(index.size, plan.d)).toarray()
        found.append(function(matrix_of(X), *arguments))
    return tuple(found)


class OnDisk(Counted):
    """Lines of a shard folder that passes read from disk, ``at_once`` shards at a time."""

    on_disk, touched = True, 0

    def __init__(self, folder: ShardFolder, at_once: int):
        self.folder, self._at_once = folder, at_once
        self._pool = ThreadPoolExecutor(at_once) if at_once > 1 else None

    @property
    def nbytes(self) -> int:
        return self.folder.nbytes

    @property
    def read(self) -> int:  # type: ignore[override]  # computed, not set
        return self.folder.read

    def check(self) -> None:
        """Raise if the files have changed since the last pass: no result may mix two states of the data."""
        self.folder.check()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(self, function, tasks):
        """Yield ``function(*arguments)`` for each of ``tasks``, in order; a bounded number run at once."""
        yield from in_order(self._pool, self._at_once, function, tasks)


class ShardRows(OnDisk, Rows):
    """Sample rows of a shard folder, prepared in each pass by ``scale`` (see ``prepare.prepare``).

    ``bias`` is the value of a constant last feature, 0 for none. ``storage`` is the form of the model's rows; ``auto``
    goes by the density of all of them. ``n_features`` is at least the width of the folder. ``weights``, shape (n,), are
    how often each row counts in the scaling. With a ``free`` intercept dense columns far from 0 are centred.
    """

    def __init__(
        self, folder: ShardFolder, scale="none", bias=0.0, storage="auto", n_features=None, *, threads=1, limit=None,
        weights=None, free=False,
    ):  # fmt: skip
        self.limit, self.raw_d = limit or MemoryLimit(), folder.checked_width(n_features)
        self.n, self.d = folder.n, self.raw_d + bool(bias)
        self.sparse = not dense_form(storage, (self.n, self.raw_d), lambda: folder.nnz)
        self.staged = not (self.sparse and self.d > STAGED)
        self.threads = usable_threads(threads)
        super().__init__(folder, self._tasks_at_once())
        self.limit.check_vectors(self.needs(BOX, bool(scale != "none" or bias)), self.n, self.d, str(folder.path))
        self.preparation = Preparation("none", None, None, 0.0, self.raw_d)
        deque(self._each(shard_checked, ((k,) for k in range(folder.count))), maxlen=0)  # checks all shards first
        self.preparation = self._prepare(scale, bias, weights, free)
        self.norms = np.sqrt(self._by_row(shard_squared_norms))
        self._blocks = sum_blocks(self.n, self.size, self.d)

    @property
    def inexact(self) -> float:  # type: ignore[override]  # computed, not set
        return self.preparation.inexact

    stored, brief = None, False  # compiled code cannot read these rows in place

    @property
    def sum_edges(self) -> np.ndarray:
        return np.array([0, *(stop for _, stop in self._blocks)], dtype=np.int64)

    @property
    def size(self) -> int:
        return self.folder.nnz + self.n * (self.d - self.raw_d) if self.sparse else self.n * self.d

    @property
    def kinds(self):
        indices = np.int64 if self.d > np.iinfo(np.int32).max else np.int32
        return np.dtype(np.float64), np.dtype(indices) if self.sparse else None

    def needs(self, model, prepared: bool, classes: int = 1) -> int:
        """Return the bytes of a path's vectors, and of shards in process; ``prepared``: scaled, or with a bias."""
        largest = max((shard["nnz"] if self.sparse else 0 for shard in self.folder.meta["shards"]), default=0)
        passing = 12 * ON_ITS_WAY * largest if prepared else 0
        passing += 0 if self.sparse else ON_ITS_WAY * F8 * CHUNK_CELLS
        shape = Shape(self.n, self.d, self.size, not self.sparse, classes=classes)
        return model.vectors(shape) + (self._at_once + 1) * passing

    def warm_up(self) -> None:
        """Compile the kernels of the passes on the first row of a shard of each form."""
        forms: dict[bool, int] = {}
        for k, entry in enumerate(self.folder.meta["shards"]):
            if entry["rows"]:
                forms.setdefault(entry["dense"], k)
        for k in forms.values():
            shard = self.folder.shard(k).head()
            vector = np.zeros(self.d)
            shard_products(shard, self._plan(k), self._part(k, vector))
            shard_sum(shard, self._plan(k), 0, 1, np.ones(1), self._part(k, vector))

    def _tasks_at_once(self) -> int:
        return self.threads

    # -- the contract of rows --------------------------------------------------------------------------------------

    def margins(self, w: np.ndarray) -> np.ndarray:
        self.touched += self.n
        self._note_all()
        return self._by_row(shard_products, np.ascontiguousarray(w, dtype=np.float64))

    def _note_all(self) -> None:
        for k, entry in enumerate(self.folder.meta["shards"]):
            self.folder.note(k, entry["rows"])

    def blockwise(self, function, *arguments) -> list:
        self._note_all()
        tasks = ((k, function, *arguments) for k in range(self.folder.count))
        return [one for found in self._each(shard_blocks, tasks) for one in found]

    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        total = np.zeros(0)
        for part, touched in self._block_sums(theta):
            total = np.add(total, part, out=total) if total.size else part  # in the order of the blocks
            self.touched += touched
        return total

    def take(self, index: np.ndarray, signs: np.ndarray):
        """Return the copy, if memory allows."""
        signs, d = np.asarray(signs, dtype=np.float64), self.d
        if not self.sparse:
            self._ask(index.size, F8 * index.size * d, 0)
            self.touched += index.size
            out = np.empty((index.size, d))
            for where, rows in self._taken(index, signs):
                out[where] = rows
            return out
        counts = self._counts(index)
        total, kind = int(counts.sum()), self.kinds[1]
        self._ask(index.size, (F8 + kind.itemsize) * total, index.size)
        self.touched += index.size
        data, indices, indptr = np.empty(total), np.empty(total, dtype=kind), row_pointers(counts)
        for where, rows in self._taken(index, signs):
            part = slice(indptr[where.start], indptr[where.stop])
            data[part], indices[part] = rows[0], rows[1]
        return data, indices, indptr

    def _counts(self, index) -> np.ndarray:
        """Return the numbers of stored values of prepared sparse rows."""
        counts = np.empty(index.size, dtype=np.int64)
        for a, b, k in self._runs(index):
            shard, where = self.folder.shard(k), index[a:b] - self.folder.starts[k]
            if shard.dense is None:
                counts[a:b] = shard.indptr[where + 1] - shard.indptr[where]
            else:
                counts[a:b] = np.count_nonzero(shard.dense[where], axis=1)
        return counts + bool(self.preparation.bias)

    def _ask(self, count: int, copy: int, rows: int) -> None:
        """Check the memory for the copy of some rows, and for the temporary copies of a shard's share of it."""
        most = max((shard["rows"] for shard in self.folder.meta["shards"]), default=0)
        share = min(1.0, most * (self._at_once + 1) / max(count, 1)) if count else 0.0
        self.limit.check(
            int(copy * (1.0 + ON_ITS_WAY * share)) + 16 * rows, f"solving for {count:,} of {self.n:,} rows", SCREEN_MORE
        )

    def whole(self):
        touched = self.touched
        found = self.take(np.arange(self.n), np.ones(self.n))
        self.touched = touched
        return found

    # -- passes over the shards --------------------------------------------------------------------------------------

    def _run(self, task, k: int, *arguments):
        return task(self.folder.shard(k), self._plan(k), *arguments)

    def _each(self, task, tasks):
        yield from self.each(lambda k, *arguments: self._run(task, k, *arguments), tasks)

    def _by_row(self, task, *vectors) -> np.ndarray:
        """Return the results of a task of every shard, one per row; vectors have an entry per column."""
        out, starts = np.empty(self.n), self.folder.starts
        tasks = ((k, *(self._part(k, vector) for vector in vectors)) for k in range(self.folder.count))
        for k, found in enumerate(self._each(task, tasks)):
            out[starts[k] : starts[k + 1]] = found
        return out

    def _block_sums(self, theta):
        """Yield each block's sum and the rows it touched, in order."""

        def one(start, stop):
            total, touched = np.zeros(self.d), 0
            for k, first, last in self._pieces(start, stop):
                weights = theta[self.folder.starts[k] + first : self.folder.starts[k] + last]
                if weights.any():
                    # each shard adds its rows to the sum of those before it
                    found, rows = self._run(shard_sum, k, first, last, weights, self._part(k, total))
                    total[self._columns(k)] = found
                    touched += rows
                    self.folder.note(k, rows)
            return total, touched

        yield from self.each(one, self._blocks)

    def _pieces(self, start: int, stop: int):
        """Return (shard, first, last) for the parts of the rows ``start <= i < stop`` that lie in one shard each."""
        starts = self.folder.starts
        k = int(np.searchsorted(starts, start, side="right")) - 1
        pieces = []
        while k < self.folder.count and starts[k] < stop:
            first, last = max(start, int(starts[k])), min(stop, int(starts[k + 1]))
            if first < last:
                pieces.append((k, first - int(starts[k]), last - int(starts[k])))
            k += 1
        return pieces

    def _taken(self, index, signs):
        runs = self._runs(index)
        for a, b, k in runs:
            self.folder.note(k, b - a)
        tasks = ((k, index[a:b] - self.folder.starts[k], signs[a:b]) for a, b, k in runs)
        for (a, b, _), rows in zip(runs, self._each(shard_take, tasks), strict=True):
            yield slice(a, b), rows

    def _runs(self, index):
        """Return (start, stop, shard) for every longest run of entries of ``index`` in one shard."""
        if not index.size:
            return []
        shards = np.searchsorted(self.folder.starts, index, side="right") - 1
        starts = np.concatenate([[0], np.flatnonzero(np.diff(shards)) + 1])
        stops = np.append(starts[1:], index.size)
        return [(int(a), int(b), int(shards[a])) for a, b in zip(starts, stops, strict=True)]

    def _columns(self, k: int):
        """Return the model's columns of the prepared rows of shard ``k``, as an index."""
        if not self.sparse or self.folder.is_dense(k):
            return slice(None)
        columns = self.folder.part(k, "columns")
        return np.append(columns, self.raw_d) if self.preparation.bias else columns

    def _plan(self, k: int) -> Plan:
        p = self.preparation
        if self.sparse and not self.folder.is_dense(k):
            columns = self.folder.part(k, "columns")
            p = replace(p, scale=None if p.scale is None else p.scale[columns], n_features=columns.size)
        return Plan(not self.sparse, self.raw_d, p)

    def _part(self, k: int, vector):
        return vector[self._columns(k)]

    # -- preparation ---------------------------------------------------------------------------------------------------

    def _prepare(self, scale: str, bias: float, weights, free: bool) -> Preparation:
        """Measure the scaling, as ``prepare.fit_preparation`` does for data in memory."""
        measured = fit_preparation(self, scale, bias, weights, not self.sparse, ShardRows._peaks, self._float_blocks)
        if free and not self.sparse and scale in ("none", "maxabs"):
            return replace(measured, shift=self._far_centres(weights))
        return measured

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of the data."""
        return self.n, self.raw_d

    def _peaks(self, weights) -> np.ndarray:
        peak, starts = np.zeros(self.raw_d), self.folder.starts  # values that are not stored are 0
        tasks = [(k, None if weights is None else weights[starts[k] : starts[k + 1]]) for k in range(starts.size - 1)]
        for k, found in enumerate(self._each(shard_peaks, tasks)):
            columns = slice(found.size) if self.folder.is_dense(k) else self.folder.part(k, "columns")
            peak[columns] = np.maximum(peak[columns], found)
        return peak

    def _far_centres(self, weights) -> np.ndarray | None:
        """Return what is subtracted from columns far from 0, see ``centring.far_centres``; None for no column."""
        low, high = np.full(self.raw_d, np.inf), np.full(self.raw_d, -np.inf)
        for first, rows in self._float_blocks():
            counted = rows if weights is None else rows[weights[first : first + len(rows)] > 0.0]
            np.minimum(low, counted.min(axis=0, initial=np.inf), out=low)
            np.maximum(high, counted.max(axis=0, initial=-np.inf), out=high)
            far = np.flatnonzero(is_far(low, high) | (low > high))
            if not far.size:  # most data end here, at their first rows
                return None
        return midpoints(self.raw_d, far, *(ends[far].astype(self.folder.dtype) for ends in (low, high)))

    def _float_blocks(self):
        """Yield (first row, rows as a dense array of float64), a few rows at a time."""
        for k in range(self.folder.count):
            shard, begin = self.folder.shard(k), int(self.folder.starts[k])
            for first, _, (rows,) in self._plan(k).prepared(shard, 0, shard.rows):
                yield begin + first, rows
