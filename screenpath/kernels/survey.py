"""What a preconditioner is told of sparse rows: their frequent columns, which rows are alike, and what they add up to.

Most of a step's rows are those of the step before, and what is known of these is taken over, as long as it is not too
much else.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.matrix import borrowed, dot, matrix_of
from screenpath.kernels.pool import COLUMNS, PARTED, SEATS, STEPS, Pool, admitted, copies, longer, no_rows

FREQUENT = 200  # columns that enter as they are, at most
FEWER = 8  # and at most one for so many rows
# Sum of the squares of a column of rows of norm 1, less what reading its entries costs, from which it is one of them.
HEAVY, COST = 1.0, 0.001
ALIKE = 0.2  # cosine, without the frequent columns, from which two rows are alike
KEYS, DEEP = 6, 8  # a row's heaviest columns, and rows with one of them that are looked at
HALVINGS = 20  # of a range of weights
KNOWN = 0.5  # share of the rows that the last step must have had, for the frequent columns to be theirs
MOST, LONG = 1.3, 32  # rows of a pool, times those of the step, and steps, after which it is begun anew
SIZE, SPOT = 0x7FFFFFFFFFF00000, 0xFFFFF  # bits of a value that say how large it is, and of its spot within the row


class Survey(NamedTuple):
    """What is known of a pool's rows, by their seats: whatever the ridge, but for ``slope``, ``pivot`` and ``gram``.

    Attributes
    ----------
    values, columns, starts : ndarray
        ``A`` by rows, of frequent columns.
    like : ndarray of int64
        The seat of the row that a row is linked to, -1 where there is none. The links make trees.
    shared, rest : ndarray of float64
        The product with that row, and the squared norm, without the frequent columns.
    keys : ndarray of int64, ``KEYS`` for each row
        The heaviest of its other columns, -1 where there are not as many.
    slope, pivot : ndarray of float64
        The entry of ``T`` and that of ``D`` with which a row has entered ``gram``; a pivot of 0 where it has not.
    spot : ndarray of int64
        Which of the rows of the last step it is, -1 where it is none of them.
    place : ndarray of int32
        Numbers of the frequent columns, -1 for all others.
    gram : ndarray of shape (f, f)
        ``A' (L D L')^-1 A`` of the rows that have entered, in halves: each pair of entries on either side of the
        diagonal, and half of it.
    """

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    like: np.ndarray
    shared: np.ndarray
    rest: np.ndarray
    keys: np.ndarray
    slope: np.ndarray
    pivot: np.ndarray
    spot: np.ndarray
    place: np.ndarray
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
            weights[at(indices[q])] += scale * data[q] * data[q] - COST
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
def _part(X, sizes, r, place, values, numbers, count, keys, heavy):
    """Write a row's part of ``A`` from ``count`` on, to one place behind it too, and its heaviest other columns to its
    ``keys``; return where the part ends, and its squared norm. ``heavy`` is room for ``KEYS`` numbers.

    Without branches, since which columns are frequent is hard to guess. ``sizes`` are the bits of the values: those of
    the sign and the last digits make room for the spot within the row, and the largest such number is the heaviest.
    """
    _, data, indices, indptr, _ = X
    square, begin, first, spot = 0.0, at(count), at(indptr[r]), np.int64(0)
    for key in range(KEYS):
        heavy[key] = 0
    for q in range(first, at(indptr[r + 1])):
        j = np.int64(place[at(indices[q])])
        rare = j >> 63  # all ones, or 0
        values[at(count)], numbers[at(count)] = data[q], j  # kept where the next one does not overwrite it
        count += rare + 1
        size = ((sizes[q] & SIZE) | (spot & SPOT)) & rare
        spot += 1
        for key in range(KEYS):  # the smaller one of two goes on down the list
            other = heavy[key]
            heavy[key], size = (size, other) if size > other else (other, size)
    for q in range(begin, at(count)):
        square += values[q] * values[q]
    for key in range(KEYS):
        keys[KEYS * r + key] = indices[first + at(heavy[key] & SPOT)] if heavy[key] > SPOT else -1
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
def _compare(X, place, seats, keys, fresh, like, shared, rest):
    """Find for fresh rows the one that each is most like, among the others and the fresh rows before it.

    Rows alike share one of their heaviest columns. No row is like itself by way of others: these are trees.
    """
    n, line, first = seats.size, np.zeros(place.size), np.full(place.size, -1, dtype=np.int64)
    following, over = np.empty(KEYS * n, dtype=np.int64), np.arange(rest.size)
    for k in range(n):
        r = seats[k]
        if not fresh[k]:
            _list(keys, r, k, first, following)
        if like[r] >= 0:
            over[_tree(over, r)] = _tree(over, like[r])
    for k in range(n):
        if not fresh[k]:
            continue
        r, most, laid = seats[k], ALIKE * ALIKE, False
        for key in range(KEYS):
            heavy = keys[KEYS * r + key]
            entry, left = first[heavy] if heavy >= 0 else -1, DEEP
            while entry >= 0 and left > 0:
                other = seats[entry // KEYS]
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
        _list(keys, r, k, first, following)


@kernel
def _list(keys, r, k, first, following):
    """List a row under its heaviest columns."""
    for key in range(KEYS):
        heavy = keys[KEYS * r + key]
        if heavy >= 0:
            following[KEYS * k + key], first[heavy] = first[heavy], KEYS * k + key


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
def room(known, rows):
    """Return room for the parts of two of the first ``rows`` rows."""
    longest, starts = 0, known.starts
    for r in range(rows):
        longest = max(longest, starts[r + 1] - starts[r])
    return np.empty(2 * longest), np.empty(2 * longest, dtype=np.int32)


@kernel
def _begun(pool, X, seats, sqnorms):
    """Return the survey of none of the rows, whose frequent columns are those of the listed ones."""
    ends, none, more = np.zeros(1, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64)
    place = np.empty(pool.counts[COLUMNS], dtype=np.int32)
    frequent = _number(X, seats.size, sqnorms, place)
    few, gram = np.empty(0, dtype=np.int32), np.zeros((frequent, frequent))
    return Survey(none, few, ends, more, none, none, more, none, none, more, place, gram)


@kernel
def _with_room(known, pool):
    """Return the survey with room for all rows and columns of the pool, those that it lacks being in no step."""
    counts, place = pool.counts, known.place
    done, rows, columns, stored = counts[PARTED], counts[SEATS], place.size, known.starts[counts[PARTED]]
    needed = stored + pool.indptr[rows] - pool.indptr[done] + 1
    if columns < counts[COLUMNS]:
        place = np.full(counts[COLUMNS], -1, dtype=np.int32)
        for j in range(columns):
            place[j] = known.place[j]
    like, slope = longer(known.like, done, rows), longer(known.slope, done, rows)
    pivot, spot = longer(known.pivot, done, rows), longer(known.spot, done, rows)
    for r in range(done, rows):
        like[r], slope[r], pivot[r], spot[r] = -1, 0.0, 0.0, -1
    return Survey(
        longer(known.values, stored, needed), longer(known.columns, stored, needed),
        longer(known.starts, done + 1, rows + 1), like, longer(known.shared, done, rows),
        longer(known.rest, done, rows), longer(known.keys, KEYS * done, KEYS * rows), slope, pivot, spot, place,
        known.gram,
    )  # fmt: skip


@kernel(fastmath=SUMS)
def _bring_up(known, pool, X, seats, sqnorms):
    """Add what is not known of rows yet; let those that are gone leave, and find for each the row that it is like."""
    n, counts, place, keys, starts = seats.size, pool.counts, known.place, known.keys, known.starts
    sizes, done, rows, fresh = X.data.view(np.int64), counts[PARTED], counts[SEATS], np.full(seats.size, False)
    like, pivot, spot, now = known.like, known.pivot, known.spot, np.full(rows, -1, dtype=np.int64)
    heavy = np.empty(KEYS, dtype=np.int64)
    for k in range(n):
        r = seats[k]
        now[r] = k
        if r >= done:  # new ones have their seats in this order
            count, square = _part(X, sizes, r, place, known.values, known.columns, starts[r], keys, heavy)
            starts[r + 1], known.rest[r] = count, max(sqnorms[k] - square, 0.0)
    own, where = room(known, rows)
    for r in range(rows):
        kept = now[r] >= 0 and spot[r] >= 0 and (like[r] < 0 or now[like[r]] >= 0)
        if pivot[r] > 0.0 and not kept:  # it is gone, or what it was like is
            enter(known, r, known.slope[r], -1.0 / pivot[r], own, where)
            pivot[r] = 0.0
        if not kept:
            like[r] = -1
        if now[r] >= 0:
            fresh[now[r]] = not kept
    for r in range(rows):
        spot[r] = now[r]
    counts[PARTED] = rows
    _compare(X, place, seats, keys, fresh, like, known.shared, known.rest)


@kernel
def _stale(known, pool, names):
    """Tell whether to begin anew: few of the rows were in the last step, or much is kept that is none of them."""
    counts, seat, met, more = pool.counts, pool.seat, 0, 0
    for k in range(names.size):
        r = seat[names[k]]
        met += r >= 0 and known.spot[r] >= 0
        more += r < 0
    return met < KNOWN * names.size or counts[SEATS] + more > MOST * names.size or counts[STEPS] >= LONG


@kernel
def surveyed(known, pool, X, where, signs, listed, names, sqnorms, size, d):
    """Return what is known of the rows of a step from what was known before, which is used up.

    Parameters
    ----------
    known, pool : Survey, Pool
    X : Matrix
        Sparse rows.
    where, signs : ndarray of int64, and of int8
        Where rows are in ``X``, and what each is multiplied by.
    listed : ndarray of int64 of shape (n,)
        Which of these are in the step. None is 0.
    names : ndarray of int64 of shape (n,)
        Numbers that they go by, the same in every step, below ``size``.
    sqnorms : ndarray of shape (n,)
        Their squared norms.
    size, d : int
        Number of rows of which a step may have some, and of columns.

    Returns
    -------
    known, pool : Survey, Pool
    seats : ndarray of int64 of shape (n,)
        Of the rows, in the pool.
    """
    anew = pool.counts[STEPS] == 0 or _stale(known, pool, names)
    if anew:
        pool = no_rows(size, d)
    pool, seats = admitted(pool, X, where, signs, listed, names)
    rows = borrowed(copies(pool, X))
    if anew:
        known = _begun(pool, rows, seats, sqnorms)
    known = _with_room(known, pool)
    _bring_up(known, pool, rows, seats, sqnorms)
    pool.counts[STEPS] += 1
    return known, pool, seats


@kernel
def nameless(known, pool):
    """Return both as plain tuples, for Python."""
    values, columns, starts, like, shared, rest, keys, slope, pivot, spot, place, gram = known
    data, indices, indptr, numbers, label, seat, counts = pool
    return (
        (values, columns, starts, like, shared, rest, keys, slope, pivot, spot, place, gram),
        (data, indices, indptr, numbers, label, seat, counts),
    )  # fmt: skip


def nothing_known() -> tuple[Survey, Pool]:
    """Return the survey of no rows, and a pool without any, in which the next step begins."""
    none, ends, few = np.empty(0), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
    known = Survey(none, few, ends, ends[1:], none, none, ends[1:], none, none, ends[1:], few, np.empty((0, 0)))
    return known, Pool(none, few, ends, ends[1:], few, ends[1:], np.zeros(5, dtype=np.int64))


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    X, rows, one = matrix_of((np.ones(2), np.zeros(2, dtype=np.int32), np.array([0, 1, 2]))), np.arange(2), np.ones(2)
    known, pool, _ = surveyed(*nothing_known(), X, rows, np.ones(2, dtype=np.int8), rows, rows, one, 2, 1)
    enter(known, 0, 0.0, 1.0, *room(known, 2))
