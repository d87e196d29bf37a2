"""Signed copies of sparse rows that are or were free, in two parts, with their columns renumbered.

Frequent columns have the first numbers. Each row has its entries in frequent columns in one place and those in rare
columns in another: a preconditioner reads the former, products with a direction only what the preconditioner has not
told them. Most of a step's rows are those of the step before: they are copied once. A row keeps its seat until the pool
is begun anew.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.matrix import Matrix, _number_on
from screenpath.kernels.rows.rows import sparse_product
from screenpath.kernels.rows.unowned import unowned

# Counts: rows, columns, steps since it was begun, rows that are surveyed, rows that the last step has added, and
# frequent columns.
SEATS, COLUMNS, STEPS, PARTED, ADDED, FREQUENT = range(6)
MORE = 1.25  # room is made for so many times what is needed
MANY = 200  # columns that are frequent, at most
FEWER = 8  # and at most one for so many rows
# Sum of the squares of a column of rows of norm 1, less what its entries cost a Gram matrix, from which it is frequent:
# HEAVY of so many rows or more, down to LIGHT of fewer, where the matrix is small.
LIGHT, HEAVY, ROWS, COST = 0.5, 1.0, 1500, 0.001
HALVINGS = 20  # of a range of weights


class Pool(NamedTuple):
    """Copies of rows, each at its seat."""

    data: np.ndarray  # data, indices, indptr: CSR of the entries in rare columns, with room for more
    indices: np.ndarray
    indptr: np.ndarray
    values: np.ndarray  # values, places, starts: CSR of those in frequent columns
    places: np.ndarray
    starts: np.ndarray
    columns: np.ndarray  # int64: which column each number stands for
    label: np.ndarray  # int32 of shape (d,): the number of each column, -1 if none of the rows has it
    seat: np.ndarray  # int64 of shape (N,): the seat of each row, -1 for none
    counts: np.ndarray  # int64 of shape (6,): ``SEATS``, ``COLUMNS``, ``STEPS``, ``PARTED``, ``ADDED``, ``FREQUENT``


class Parted(NamedTuple):
    """Rows in two parts, as in :class:`Pool`; dense ones have only rare columns."""

    rare: Matrix
    values: np.ndarray
    places: np.ndarray
    starts: np.ndarray


@kernel
def copies(pool, X):
    """Return sparse rows by their seats, and dense ones where they are stored."""
    rare = Matrix(X.dense, pool.data, pool.indices, pool.indptr, True) if X.sparse else X
    return Parted(rare, pool.values, pool.places, pool.starts)


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def frequent_dot(rows, i, w):
    """Return the frequent columns' part of ``x_i . w``."""
    if not rows.rare.sparse:
        return 0.0
    return sparse_product(rows.values, rows.places, rows.starts[i], rows.starts[i + 1], w)


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def frequent_add(rows, i, step, v):
    """Add ``step * x_i`` to the entries of ``v`` for frequent columns."""
    rare, values, places, starts = rows
    if not rare.sparse:
        return
    for q in range(at(starts[i]), at(starts[i + 1])):
        v[at(places[q])] += step * values[q]


@kernel(inner=True)
def longer(array, used, needed):
    """Return an array with the same first entries, and room for as many as are needed."""
    if array.shape[0] >= needed:
        return array
    fresh = np.empty(int(MORE * needed) + 1, dtype=array.dtype)
    for i in range(used):  # element by element: assignments of slices compile for seconds
        fresh[i] = array[i]
    return fresh


@kernel(leaf=True)
def heavy_of(rows):
    """Return the weight from which a column of so many rows is frequent."""
    return min(max(HEAVY * rows / ROWS, LIGHT), HEAVY)


@kernel(fastmath=SUMS, leaf=True)
def _least_weight(weights, least, most):
    """Return a weight, ``least`` or more, that at most ``most`` weights exceed, and few less."""
    low, high = least, least
    for weight in weights:
        high = max(high, weight)
    if weights.size <= most:
        return low
    for _ in range(HALVINGS):
        middle, above = 0.5 * (low + high), 0
        for weight in weights:
            above += weight > middle
        if above > most:
            low = middle
        else:
            high = middle
            if above == most:
                break
    return high


@kernel(fastmath=SUMS)
def begun(X, where, listed, sqnorms, size, d):
    """Return an empty pool for ``size`` rows of ``d`` columns; frequent columns are those of the listed rows.

    The parameters are those of :func:`admitted`, and their squared norms.
    """
    X, weights, heavy, found, count, light = unowned(X), np.zeros(d), np.empty(d), 0, 0, heavy_of(listed.size)
    data, indices, indptr = X.data, X.indices, X.indptr
    for k in range(listed.size):
        i, scale = where[listed[k]], 1.0 / sqnorms[k]
        for q in range(at(indptr[i]), at(indptr[i + 1])):
            weights[at(indices[q])] += scale * data[q] * data[q] - COST
    for j in range(d):
        heavy[found] = weights[j]  # kept where the next one does not overwrite it
        found += weights[j] > light
    least = _least_weight(heavy[:found], light, min(MANY, listed.size // FEWER))
    label, columns = np.full(d, -1, dtype=np.int32), np.empty(found, dtype=np.int64)
    for j in range(d):
        if weights[j] > least:
            label[j], columns[count] = count, j
            count += 1
    counts = np.zeros(6, dtype=np.int64)
    counts[COLUMNS] = counts[FREQUENT] = count
    none, few, ends = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    seat = np.full(size, -1, dtype=np.int64)
    return Pool(none, few, ends, none, few, ends.copy(), columns, label, seat, counts)


@kernel
def _stably_by(sizes, order):
    """Return an order of numbers by their sizes, which are not negative; ties keep the given order."""
    largest = 0
    for size in sizes:
        largest = max(largest, size)
    starts, found = np.zeros(largest + 2, dtype=np.int64), np.empty_like(order)
    for size in sizes:
        starts[size + 1] += 1
    for size in range(largest):
        starts[size + 1] += starts[size]
    for k in order:
        found[starts[sizes[k]]] = k
        starts[sizes[k]] += 1
    return found


@kernel
def _fresh(pool, X, where, listed, names):
    """Return the listed rows without a seat, sorted by their number of frequent entries, then of rare ones; and both
    numbers.

    A loop over short rows takes a third less time where the next row is as long as the last.
    """
    label, frequent, count, indices, indptr = pool.label, pool.counts[FREQUENT], 0, X.indices, X.indptr
    rows = np.empty_like(listed)
    for k in range(listed.size):
        rows[count] = k  # kept where the next one does not overwrite it
        count += pool.seat[names[k]] < 0
    often, rare = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for k in range(count):
        i, found = where[listed[rows[k]]], 0
        for q in range(at(indptr[i]), at(indptr[i + 1])):
            number = label[at(indices[q])]
            found += (number >= 0) & (number < frequent)
        often[k], rare[k] = found, indptr[i + 1] - indptr[i] - found
    return rows[_stably_by(often, _stably_by(rare, np.arange(count)))], often.sum(), rare.sum()


@kernel(inner=True)
def admitted(pool, X, where, signs, listed, names):
    """Return the pool with further rows, and the seats of all that are listed.

    ``listed`` of the sparse rows ``where`` are taken, which have the numbers ``names``. Also returns the seats, in
    ascending order, and which of the listed rows has each.
    """
    X, seat, label, counts = unowned(X), pool.seat, pool.label, pool.counts
    fresh, more_often, more_rare = _fresh(pool, X, where, listed, names)
    data, indices, indptr, frequent = X.data, X.indices, X.indptr, counts[FREQUENT]
    rows, named = counts[SEATS], counts[COLUMNS]
    rare, often, more = pool.indptr[rows], pool.starts[rows], rows + fresh.size
    first, second = rare + more_rare + 1, often + more_often + 1  # one more each: an entry is written to both
    own, numbers = longer(pool.data, rare, first), longer(pool.indices, rare, first)
    values, places = longer(pool.values, often, second), longer(pool.places, often, second)
    ends, starts = longer(pool.indptr, rows + 1, more + 1), longer(pool.starts, rows + 1, more + 1)
    columns = longer(pool.columns, named, min(label.size, named + more_rare) + 1)
    for k in fresh:
        i, sign = where[listed[k]], signs[listed[k]]
        for q in range(at(indptr[i]), at(indptr[i + 1])):  # without branches: which are frequent is hard to guess
            j = indices[q]
            number, value = label[at(j)], sign * data[q]
            both = (number >= 0) & (number < frequent)
            own[at(rare)], numbers[at(rare)] = value, j  # kept where the next one does not overwrite it
            values[at(often)], places[at(often)] = value, number
            often += both
            rare += 1 - both
        seat[names[k]] = rows
        rows += 1
        ends[rows], starts[rows] = rare, often
    counts[COLUMNS] = _number_on(numbers, pool.indptr[counts[SEATS]], rare, label, columns, named)
    counts[ADDED], counts[SEATS] = fresh.size, rows
    seats, order = _seated(seat, names, rows)
    return Pool(own, numbers, ends, values, places, starts, columns, label, seat, counts), seats, order


@kernel
def _seated(seat, names, rows):
    """Return the seats of rows in ascending order, and which of the rows has each."""
    seats, order, there, count = np.empty_like(names), np.empty_like(names), np.full(rows, -1, dtype=np.int64), 0
    for k in range(names.size):
        there[seat[names[k]]] = k
    for r in range(rows):
        if there[r] >= 0:
            seats[count], order[count] = r, there[r]
            count += 1
    return seats, order
