"""What a preconditioner is told of sparse rows: their frequent columns, which rows are alike, and what they add up to.

Most of a step's rows are those of the step before, and what is known of these is taken over.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.matrix import borrowed, dot, matrix_of

FREQUENT = 200  # columns that enter as they are, at most
FEWER = 8  # and at most one for so many rows
HEAVY = 1.0  # sum of the squares of a column of rows of norm 1, from which it is one of them
ALIKE = 0.2  # cosine, without the frequent columns, from which two rows are alike
KEYS, DEEP = 3, 8  # a row's heaviest columns (`_part` knows how many), and rows with one of them that are looked at
HALVINGS = 20  # of a range of weights
SIZE, SPOT = 0x7FFFFFFFFFF00000, 0xFFFFF  # bits of a value that say how large it is, and of its spot within the row


class Survey(NamedTuple):
    """What is known of rows: whatever the ridge, but for ``slope``, ``pivot`` and ``gram``.

    Attributes
    ----------
    values, columns, starts : ndarray
        ``A`` by rows, of ``frequent`` columns.
    like : ndarray of int64 of shape (n,)
        The row that a row is linked to, -1 where there is none. The links make trees.
    shared, rest : ndarray of shape (n,)
        The product with that row, and the squared norm, without the frequent columns.
    frequent : int
    place : ndarray of int32
        Numbers of the frequent columns, -1 for all others.
    keys : ndarray of int64 of shape (n, KEYS)
        The heaviest of each row's other columns, -1 where there are not as many.
    slope, pivot : ndarray of shape (n,)
        The entry of ``T`` and that of ``D`` with which a row has entered ``gram``; a pivot of 0 where it has not.
    gram : ndarray of shape (frequent, frequent)
        ``A' (L D L')^-1 A`` of the rows that have entered, in halves: each pair of entries on either side of the
        diagonal, and half of it.
    """

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    like: np.ndarray
    shared: np.ndarray
    rest: np.ndarray
    frequent: int
    place: np.ndarray
    keys: np.ndarray
    slope: np.ndarray
    pivot: np.ndarray
    gram: np.ndarray


@kernel(fastmath=SUMS)
def _least_weight(weights, most):
    """Return a weight, ``HEAVY`` or more, that at most so many are above, and few less."""
    low, high = HEAVY, HEAVY
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
def _number(X, n, sqnorms, place):
    """Number the frequent columns in ``place``, -1 for all others; return how many they are."""
    _, data, indices, indptr, _ = X
    weights, heavy, size, count = np.zeros(place.size), np.empty(place.size), 0, 0
    for r in range(n):
        scale = 1.0 / sqnorms[r]
        for q in range(at(indptr[r]), at(indptr[r + 1])):
            weights[at(indices[q])] += scale * data[q] * data[q]
    for j in range(place.size):
        heavy[size] = weights[j]  # kept where the next one does not overwrite it
        size += weights[j] > HEAVY
    least = _least_weight(heavy[:size], min(FREQUENT, n // FEWER))
    for j in range(place.size):
        place[j] = -1
        if weights[j] > least:
            place[j] = count
            count += 1
    return count


@kernel(fastmath=SUMS, leaf=True)
def _part(X, sizes, r, place, columns, values, numbers, count, keys):
    """Write a row's part of ``A`` from ``count`` on, to one place behind it too, and its heaviest other columns to its
    ``keys``; return where the part ends, and its squared norm.

    Without branches, since which columns are frequent is hard to guess. ``sizes`` are the bits of the values: those of
    the sign and the last digits make room for the spot within the row, and the largest such number is the heaviest.
    """
    _, data, indices, indptr, _ = X
    square, begin, first, spot = 0.0, at(count), at(indptr[r]), np.int64(0)
    most, more, some = np.int64(0), np.int64(0), np.int64(0)
    for q in range(first, at(indptr[r + 1])):
        j = np.int64(place[at(indices[q])])
        rare = j >> 63  # all ones, or 0
        values[at(count)], numbers[at(count)] = data[q], j  # kept where the next one does not overwrite it
        count += rare + 1
        size = ((sizes[q] & SIZE) | (spot & SPOT)) & rare
        spot += 1
        less = size if size < most else most
        most = size if size > most else most
        least = less if less < more else more
        more = less if less > more else more
        some = least if least > some else some
    for q in range(begin, at(count)):
        square += values[q] * values[q]
    keys[r, 0] = columns[at(indices[first + at(most & SPOT)])] if most > SPOT else -1
    keys[r, 1] = columns[at(indices[first + at(more & SPOT)])] if more > SPOT else -1
    keys[r, 2] = columns[at(indices[first + at(some & SPOT)])] if some > SPOT else -1
    return count, square


@kernel(fastmath=SUMS)
def _lay(X, place, r, line, there):
    """Write the rare columns of a row to ``line``, or 0 in their places."""
    _, data, indices, indptr, _ = X
    for q in range(at(indptr[r]), at(indptr[r + 1])):
        j = at(indices[q])
        line[j] = data[q] if there and place[j] < 0 else 0.0


@kernel(leaf=True)
def _tree(over, r):
    """Return the first row of the tree that a row is in; ``over`` leads there, in shorter ways afterwards."""
    while over[r] != r:
        over[r] = over[over[r]]
        r = over[r]
    return r


@kernel(fastmath=SUMS)
def _compare(X, place, d, keys, fresh, like, shared, rest):
    """Find for fresh rows the one that each is most like, among the others and the fresh rows before it.

    Rows alike share one of their heaviest columns. No row is like itself by way of others: these are trees.
    """
    n, line, first, over = fresh.size, np.zeros(place.size), np.full(d, -1, dtype=np.int64), np.arange(fresh.size)
    following = np.empty(KEYS * n, dtype=np.int64)
    for r in range(n):
        if not fresh[r]:
            _list(keys, r, first, following)
        if like[r] >= 0:
            over[_tree(over, r)] = _tree(over, like[r])
    for r in range(n):
        if not fresh[r]:
            continue
        most, laid = ALIKE * ALIKE, False
        for k in range(KEYS):
            entry, left = first[keys[r, k]] if keys[r, k] >= 0 else -1, DEEP
            while entry >= 0 and left > 0:
                other = entry // KEYS
                if not laid:
                    _lay(X, place, r, line, True)
                    laid = True
                product = dot(X, other, line)
                if product * product > most * rest[other] * rest[r] and _tree(over, other) != _tree(over, r):
                    most, like[r] = product * product / (rest[other] * rest[r]), other
                    shared[r] = product
                entry, left = following[entry], left - 1
        if laid:
            _lay(X, place, r, line, False)
        if like[r] >= 0:
            over[_tree(over, r)] = _tree(over, like[r])
        _list(keys, r, first, following)


@kernel
def _list(keys, r, first, following):
    """List a row under its heaviest columns."""
    for k in range(KEYS):
        if keys[r, k] >= 0:
            following[KEYS * r + k], first[keys[r, k]] = first[keys[r, k]], KEYS * r + k


@kernel
def survey(X, sqnorms, columns, d):
    """Return what is known of sparse rows.

    Parameters
    ----------
    X : Matrix
        Of n rows, and of some of ``d`` columns.
    sqnorms : ndarray of shape (n,)
        Their squared norms, none of which is 0.
    columns : ndarray of int64
        Which these are.
    d : int
    """
    X, n, place, stored = borrowed(X), sqnorms.size, np.empty(columns.size, dtype=np.int32), X.data.size
    sizes = X.data.view(np.int64)
    values, numbers = np.empty(stored + 1), np.empty(stored + 1, dtype=np.int32)
    starts = np.zeros(n + 1, dtype=np.int64)
    like, shared, rest = np.full(n, -1, dtype=np.int64), np.zeros(n), np.empty(n)
    keys, everywhere = np.empty((n, KEYS), dtype=np.int64), np.full(d, -1, dtype=np.int32)
    frequent, count = _number(X, n, sqnorms, place), 0
    everywhere[columns] = place
    for r in range(n):
        count, square = _part(X, sizes, r, place, columns, values, numbers, count, keys)
        starts[r + 1], rest[r] = count, max(sqnorms[r] - square, 0.0)
    _compare(X, place, d, keys, np.full(n, True), like, shared, rest)
    nothing, gram = np.zeros(n), np.zeros((frequent, frequent))
    return Survey(
        values[:count], numbers[:count], starts, like, shared, rest, frequent, everywhere, keys, nothing,
        nothing.copy(), gram,
    )  # fmt: skip


@kernel(fastmath=SUMS, leaf=True)
def enter(known, r, slope, weight, own, where):
    """Add ``weight b b'`` to the ``gram`` of a survey, ``b`` being a row's part of ``A`` less ``slope`` times that of
    the row it is like; ``own`` and ``where`` are room for both.
    """
    values, columns, starts, other, gram = known.values, known.columns, known.starts, known.like[r], known.gram
    count = 0
    for q in range(at(starts[r]), at(starts[r + 1])):
        own[at(count)], where[at(count)] = values[q], columns[q]
        count += 1
    if other >= 0:  # columns that both have are listed twice: their products add up
        for q in range(at(starts[other]), at(starts[other + 1])):
            own[at(count)], where[at(count)] = -slope * values[q], columns[q]
            count += 1
    # Columns that are listed twice meet in more ways than one: there both orders count, half each.
    whole = weight if other < 0 else 0.5 * weight
    for p in range(count):
        scaled, line = whole * own[p], gram[where[p]]
        for q in range(at(p if other < 0 else count)):
            line[at(where[q])] += scaled * own[q]
        if other < 0:
            line[where[p]] += 0.5 * scaled * own[p]


@kernel
def room(known):
    """Return room for the parts of two rows."""
    longest, starts = 0, known.starts
    for r in range(starts.size - 1):
        longest = max(longest, starts[r + 1] - starts[r])
    return np.empty(2 * longest), np.empty(2 * longest, dtype=np.int32)


@kernel(fastmath=SUMS)
def surveyed(known, before, X, sqnorms, rows, columns, size):
    """Return what is known of sparse rows from the survey of others, which is used up.

    Parameters
    ----------
    known : Survey
        Of the rows ``before``. Its ``gram`` is handed on, less what these entered that are gone.
    before, rows : ndarray of int64
        Numbers of rows, below ``size``.
    X : Matrix
        The ``rows``, with some of the columns.
    sqnorms : ndarray
        Their squared norms.
    columns : ndarray of int64
        Which these are.
    size : int
    """
    X, n, count, stored = borrowed(X), rows.size, 0, known.values.size
    indptr, sizes = X.indptr, X.data.view(np.int64)
    seat, moved = np.full(size, -1, dtype=np.int64), np.full(before.size, -1, dtype=np.int64)
    for p in range(before.size):
        seat[before[p]] = p
    for r in range(n):
        p = seat[rows[r]]
        if p >= 0:
            moved[p] = r
        else:
            stored += indptr[r + 1] - indptr[r]
    values, numbers = np.empty(stored + 1), np.empty(stored + 1, dtype=np.int32)
    starts = np.zeros(n + 1, dtype=np.int64)
    like, shared, rest = np.full(n, -1, dtype=np.int64), np.zeros(n), np.empty(n)
    keys, place, fresh = np.empty((n, KEYS), dtype=np.int64), known.place[columns], np.full(n, True)
    slope, pivot = np.zeros(n), np.zeros(n)
    own, where = room(known)
    for p in range(before.size):
        r, other = moved[p], known.like[p]
        if r >= 0 and (other < 0 or moved[other] >= 0):
            slope[r], pivot[r] = known.slope[p], known.pivot[p]
        elif known.pivot[p] > 0.0:
            enter(known, p, known.slope[p], -1.0 / known.pivot[p], own, where)
    for r in range(n):
        p = seat[rows[r]]
        if p < 0:
            count, square = _part(X, sizes, r, place, columns, values, numbers, count, keys)
            rest[r] = max(sqnorms[r] - square, 0.0)
        else:
            other = known.like[p]
            fresh[r] = other >= 0 and moved[other] < 0  # what it was like is gone
            rest[r], keys[r] = known.rest[p], known.keys[p]
            if other >= 0 and not fresh[r]:
                like[r], shared[r] = moved[other], known.shared[p]
            for q in range(at(known.starts[p]), at(known.starts[p + 1])):
                values[at(count)], numbers[at(count)] = known.values[q], known.columns[q]
                count += 1
        starts[r + 1] = count
    _compare(X, place, known.place.size, keys, fresh, like, shared, rest)
    return Survey(
        values[:count], numbers[:count], starts, like, shared, rest, known.frequent, known.place, keys, slope, pivot,
        known.gram,
    )  # fmt: skip


@kernel
def nameless(known):
    """Return a survey as a plain tuple, for Python."""
    values, columns, starts, like, shared, rest, frequent, place, keys, slope, pivot, gram = known
    return values, columns, starts, like, shared, rest, frequent, place, keys, slope, pivot, gram


def nothing_known() -> Survey:
    """Return the survey of no rows."""
    none, ends, few = np.empty(0), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
    keys, gram = np.empty((0, KEYS), dtype=np.int64), np.empty((0, 0))
    return Survey(none, few, ends, ends[1:], none, none, 0, few, keys, none, none, gram)


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    data, ends = np.ones(2), np.array([0, 1, 2])
    X, rows, columns = matrix_of((data, np.zeros(2, dtype=np.int32), ends)), np.arange(2), np.arange(1)
    known = survey(X, data, columns, 1)
    enter(known, 0, 0.0, 1.0, *room(known))
    surveyed(known, rows, X, data, rows, columns, 2)
