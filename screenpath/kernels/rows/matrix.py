"""Rows, dense or sparse, as all kernels take them, and operations on a single row."""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.rows import (
    csr_products,
    csr_sum,
    dense_products,
    dense_sum,
    four_products,
    sparse_product,
)
from screenpath.kernels.rows.unowned import unowned


class Matrix(NamedTuple):
    """A matrix by rows: ``dense`` of shape (n, d), or CSR arrays; the unused ones are empty."""

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    sparse: bool


NO_DENSE, NO_CSR = np.empty((0, 0)), (np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64))


def matrix_of(stored) -> Matrix:
    """Return stored rows, an array or a tuple ``(data, indices, indptr)``, as a :class:`Matrix`.

    This takes about a microsecond, and so does each call from Python that passes it on.
    """
    return Matrix(NO_DENSE, *stored, True) if isinstance(stored, tuple) else Matrix(stored, *NO_CSR, False)


@kernel(fastmath=SUMS, leaf=True)
def products(X, w, out, start, stop):
    """Write ``x_i . w`` to ``out[i]`` for ``start <= i < stop``."""
    if X.sparse:
        csr_products(X.data, X.indices, X.indptr, w, out, start, stop)
    else:
        dense_products(X.dense, w, out, start, stop)


@kernel(fastmath=SUMS, leaf=True)
def weighted_sum(X, theta, out, start, stop):
    """Add ``sum_i theta_i x_i`` over the rows ``start <= i < stop`` to ``out``; return the rows touched."""
    if X.sparse:
        return csr_sum(X.data, X.indices, X.indptr, theta, out, start, stop)
    return dense_sum(X.dense, theta, out, start, stop)


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def dot(X, i, w):
    """Return ``x_i . w``."""
    dense, data, indices, indptr, sparse = X
    if sparse:
        return sparse_product(data, indices, indptr[i], indptr[i + 1], w)
    total = 0.0
    for j in range(w.size):
        total += dense[i, j] * w[j]
    return total


@kernel(fastmath=SUMS, leaf=True)
def listed_products(X, where, w, out):
    """Write ``x_i . w`` for the listed rows ``i`` to ``out``, at their positions in the list."""
    X, n = unowned(X), where.size
    dense = X.dense
    if X.sparse:
        for r in range(n):
            out[r] = dot(X, where[r], w)
        return
    for r0 in range(0, n, 4):  # four at a time, the last ones again where there are fewer
        r1, r2, r3 = min(r0 + 1, n - 1), min(r0 + 2, n - 1), min(r0 + 3, n - 1)
        x0, x1, x2, x3 = dense[where[r0]], dense[where[r1]], dense[where[r2]], dense[where[r3]]
        out[r0], out[r1], out[r2], out[r3] = four_products(x0, x1, x2, x3, w)


@kernel(fastmath=SUMS, inner=True, leaf=True)
def listed_sum(X, where, weights, v):
    """Add ``sum_r weights_r x_i`` over the listed rows ``i`` to ``v``; return how many weights are not 0."""
    X, touched = unowned(X), 0
    for r in range(where.size):
        if weights[r] != 0.0:
            add(X, where[r], weights[r], v)
            touched += 1
    return touched


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def add(X, i, step, v):
    """Add ``step * x_i`` to ``v``."""
    dense, data, indices, indptr, sparse = X
    if sparse:
        for p in range(at(indptr[i]), at(indptr[i + 1])):
            v[at(indices[p])] += step * data[p]
    else:
        for j in range(dense.shape[1]):  # `v` may have an entry more, see `newton.minimise`
            v[j] += step * dense[i, j]


@kernel
def taken(X, where, signs, near, bias, column):
    """Return copies of the signed rows ``where[near]`` of a sparse matrix; a ``bias`` adds one more column."""
    data, indices, indptr, more = X.data, X.indices, X.indptr, 1 if bias != 0.0 else 0
    starts = np.empty(near.size + 1, dtype=np.int64)
    starts[0] = 0
    for r in range(near.size):
        i = where[near[r]]
        starts[r + 1] = starts[r] + indptr[i + 1] - indptr[i] + more
    values, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=indices.dtype)
    for r in range(near.size):
        begin, first, sign = at(indptr[where[near[r]]]), at(starts[r]), signs[near[r]]
        for q in range(at(starts[r + 1] - starts[r] - more)):
            values[first + q] = sign * data[begin + q]
            columns[first + q] = indices[begin + q]
        if more > 0:
            values[starts[r + 1] - 1], columns[starts[r + 1] - 1] = sign * bias, column
    return Matrix(X.dense, values, columns, starts, True)


@kernel(leaf=True)
def _number_on(indices, start, stop, label, columns, count):
    """Number columns in the order of their first appearance, in place, after the ``count`` already numbered.

    ``label`` has the number of each column, -1 for none; ``columns`` lists the columns in their order, with room
    for one more than there are. Returns how many have numbers.
    """
    for q in range(at(start), at(stop)):  # without branches: which columns are new is hard to guess
        j = at(indices[q])
        before = label[j]
        columns[at(count)] = j  # kept where the next one does not overwrite it
        now = np.int32(count) if before < 0 else before
        count += before < 0
        label[j] = now
        indices[q] = now
    return count


@kernel
def _relabel(indices, d):
    """Renumber the columns of gathered CSR rows, in place, in the order of their first appearance.

    Frequent columns come first then, and what is often used stays close together. Returns the old numbers.
    """
    label, columns = np.empty(d, dtype=np.int32), np.empty(min(d, indices.size) + 1, dtype=np.int64)
    for j in range(d):
        label[j] = -1
    return columns[: _number_on(indices, 0, indices.size, label, columns, 0)].copy()


def warm_up():
    X, w, index = matrix_of(np.eye(2)), np.ones(2), np.arange(2)
    products(X, w, np.empty(2), 0, 2)
    weighted_sum(X, w, np.zeros(2), 0, 2)
    listed_products(X, index, w, np.empty(2))
    taken(X, index, np.ones(2, dtype=np.int8), index[:0], 0.0, 0)
