"""Signed copies of sparse rows that are or were free, one behind the other, with their columns numbered anew.

Most of a step's rows are those of the step before: they are copied once. What has a seat here keeps it until the pool
is begun anew.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.matrix import Matrix, _number_on, borrowed, matrix_of

# Counts: rows, columns, steps since it was begun, rows that are surveyed, and rows that the last step has added.
SEATS, COLUMNS, STEPS, PARTED, ADDED = range(5)
MORE = 1.25  # room is made for so many times what is needed


class Pool(NamedTuple):
    """Copies of rows, each at its seat.

    Attributes
    ----------
    data, indices, indptr : ndarray
        CSR, with room for more.
    columns : ndarray of int64
        Which columns ``indices`` stands for.
    label : ndarray of int32 of shape (d,)
        The number that a column has in ``indices``, -1 where none of the rows has it.
    seat : ndarray of int64 of shape (N,)
        The seat that a row has, -1 where it has none.
    counts : ndarray of int64 of shape (5,)
        ``SEATS``, ``COLUMNS``, ``STEPS``, ``PARTED``, ``ADDED``.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    columns: np.ndarray
    label: np.ndarray
    seat: np.ndarray
    counts: np.ndarray


@kernel
def longer(array, used, needed):
    """Return an array that has its first entries, and room for as many as are needed."""
    if array.shape[0] >= needed:
        return array
    fresh = np.empty(int(MORE * needed) + 1, dtype=array.dtype)
    for i in range(used):  # element by element: assignments of slices compile for seconds
        fresh[i] = array[i]
    return fresh


@kernel
def no_rows(size, d):
    """Return the pool of none of ``size`` rows of ``d`` columns."""
    ends, label, seat = np.zeros(1, dtype=np.int64), np.full(d, -1, dtype=np.int32), np.full(size, -1, dtype=np.int64)
    few, none = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    return Pool(np.empty(0), few, ends, none, label, seat, np.zeros(5, dtype=np.int64))


@kernel
def admitted(pool, X, where, signs, listed, names):
    """Return the pool with further rows, and the seats of all that are listed.

    Parameters
    ----------
    pool : Pool
    X : Matrix
        Sparse rows.
    where, signs : ndarray of int64, and of int8
        Where rows are in ``X``, and what each is multiplied by.
    listed, names : ndarray of int64 of shape (n,)
        Which of these, and the numbers that they go by.
    """
    X, n, seat, label, counts = borrowed(X), listed.size, pool.seat, pool.label, pool.counts
    data, indices, indptr = X.data, X.indices, X.indptr
    seats, rows, stored = np.empty(n, dtype=np.int64), counts[SEATS], pool.indptr[counts[SEATS]]
    more, values, named = rows, stored, counts[COLUMNS]
    for k in range(n):
        i = where[listed[k]]
        if seat[names[k]] < 0:
            more += 1
            values += indptr[i + 1] - indptr[i]
    own, numbers = longer(pool.data, stored, values), longer(pool.indices, stored, values)
    ends = longer(pool.indptr, rows + 1, more + 1)
    columns = longer(pool.columns, named, min(label.size, named + values - stored) + 1)
    for k in range(n):
        seats[k] = seat[names[k]]
        if seats[k] >= 0:
            continue
        i, sign = where[listed[k]], signs[listed[k]]
        for q in range(at(indptr[i]), at(indptr[i + 1])):
            own[at(stored)], numbers[at(stored)] = sign * data[q], indices[q]
            stored += 1
        seats[k] = seat[names[k]] = rows
        rows += 1
        ends[rows] = stored
    counts[COLUMNS] = _number_on(numbers, pool.indptr[counts[SEATS]], stored, label, columns, named)
    counts[ADDED], counts[SEATS] = rows - counts[SEATS], rows
    return Pool(own, numbers, ends, columns, label, seat, counts), seats


@kernel
def copies(pool, X):
    """Return the rows by their seats; all else is that of ``X``."""
    return Matrix(X.dense, pool.data, pool.indices, pool.indptr, True)


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    X, index = matrix_of((np.ones(2), np.zeros(2, dtype=np.int32), np.array([0, 1, 2]))), np.arange(2)
    pool, _ = admitted(no_rows(2, 1), X, index, np.ones(2, dtype=np.int8), index, index)
    copies(pool, X)
