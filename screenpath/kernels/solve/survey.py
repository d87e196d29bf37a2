"""What a preconditioner knows of sparse rows: which of them are alike, and the sums of their frequent columns.

Most of a step's rows are those of the step before, and their numbers are kept, unless too much is kept for other rows.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.matrix import dot, matrix_of
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.pool import (
    COLUMNS,
    FREQUENT,
    PARTED,
    SEATS,
    STEPS,
    Pool,
    admitted,
    begun,
    copies,
    longer,
)

ALIKE = 0.2  # cosine, without the frequent columns, from which two rows are alike
KEYS, DEEP = 6, 8  # a row's heaviest rare columns, and rows with one of them that are looked at
KNOWN = 0.5  # share of the rows that the last step must have had, for the frequent columns to be theirs
MOST, LONG = 1.3, 32  # rows of a pool, times those of the step, and steps, after which it is begun anew
SIZE, SPOT = 0x7FFFFFFFFFF00000, 0xFFFFF  # bits of a value that say how large it is, and of its spot within the row


class Survey(NamedTuple):
    """What is known of a pool's rows, by their seats. Only ``slope``, ``pivot`` and ``gram`` depend on the ridge."""

    like: np.ndarray  # int64: the seat of the row that a row is linked to, -1 for none. The links make trees
    shared: np.ndarray  # the product with that row, without the frequent columns
    rest: np.ndarray  # the squared norm, without them
    keys: np.ndarray  # int64, ``KEYS`` for each row: its heaviest rare columns, filled up with -1
    # slope, pivot: the entries of ``T`` and ``D`` with which a row has entered ``gram``; pivot 0 if it has not
    slope: np.ndarray
    pivot: np.ndarray
    spot: np.ndarray  # int64: its place among the rows of the last step, -1 for none
    # shape (f, f): ``A' (L D L')^-1 A`` of the rows that have entered, ``A`` being their frequent columns, in halves:
    # each pair of entries on either side of the diagonal, and half of it
    gram: np.ndarray


@kernel(leaf=True)
def _heaviest(rare, sizes, r, keys, heavy):
    """Write a row's heaviest rare columns to its ``keys``; ``heavy`` is work space for ``KEYS`` numbers.

    Without branches, which are hard to predict here. ``sizes`` are the bits of the values: the spot within the row
    replaces those of the sign and the last digits, and the largest such number is the heaviest.
    """
    _, _, indices, indptr, _ = rare
    first, spot = at(indptr[r]), np.int64(0)
    for key in range(KEYS):
        heavy[key] = 0
    for q in range(first, at(indptr[r + 1])):
        size = (sizes[q] & SIZE) | (spot & SPOT)
        spot += 1
        for key in range(KEYS):  # the smaller one of two goes on down the list
            other = heavy[key]
            heavy[key], size = (size, other) if size > other else (other, size)
    for key in range(KEYS):
        keys[KEYS * r + key] = indices[first + at(heavy[key] & SPOT)] if heavy[key] > SPOT else -1


@kernel(fastmath=SUMS, leaf=True)
def _square(rows, r):
    """Return the squared norm of a row's part of ``A``."""
    _, values, _, starts = rows
    total = 0.0
    for q in range(at(starts[r]), at(starts[r + 1])):
        total += values[q] * values[q]
    return total


@kernel(fastmath=SUMS, leaf=True)
def _lay(rare, r, line, there):
    """Write the rare entries of a row to ``line``, or 0 in their places."""
    _, data, indices, indptr, _ = rare
    for q in range(at(indptr[r]), at(indptr[r + 1])):
        line[at(indices[q])] = data[q] if there else 0.0


@kernel(leaf=True)
def _tree(over, r):
    """Return the first row of the tree that a row is in; shortens the ways in ``over``."""
    while over[r] != r:
        over[r] = over[over[r]]
        r = over[r]
    return r


@kernel(fastmath=SUMS)
def _compare(rare, columns, seats, keys, fresh, like, shared, rest):
    """Find for fresh rows the one that each is most like, among the others and the fresh rows before it.

    Rows alike share one of their heaviest columns. Links never make a circle: these are trees.
    """
    n, line, first = seats.size, np.zeros(columns), np.full(columns, -1, dtype=np.int64)
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
                    _lay(rare, r, line, True)
                    laid = True
                product = dot(rare, other, line)
                if product * product > most * rest[other] * rest[r] and _tree(over, other) != _tree(over, r):
                    most, like[r] = product * product / (rest[other] * rest[r]), other
                    shared[r] = product
                entry, left = following[entry], left - 1
        if laid:
            _lay(rare, r, line, False)
        if like[r] >= 0:
            over[_tree(over, r)] = _tree(over, like[r])
        _list(keys, r, k, first, following)


@kernel(leaf=True)
def _list(keys, r, k, first, following):
    """List a row under its heaviest columns."""
    for key in range(KEYS):
        heavy = keys[KEYS * r + key]
        if heavy >= 0:
            following[KEYS * k + key], first[heavy] = first[heavy], KEYS * k + key


@kernel(fastmath=SUMS, leaf=True)
def enter(known, rows, r, slope, weight, own, where):
    """Add ``weight b b'`` to the ``gram`` of a survey, ``b`` being a row's part of ``A`` less ``slope`` times that of
    the row it is like; ``own`` and ``where`` are work space for both.
    """
    _, values, places, starts = rows
    other, gram, count = known.like[r], known.gram, 0
    for q in range(at(starts[r]), at(starts[r + 1])):
        own[at(count)], where[at(count)] = values[q], places[q]
        count += 1
    if other >= 0:  # columns that both have are listed twice: their products add up
        for q in range(at(starts[other]), at(starts[other + 1])):
            own[at(count)], where[at(count)] = -slope * values[q], places[q]
            count += 1
    # Columns that are listed twice meet in more ways than one: there both orders count, half each.
    whole = weight if other < 0 else 0.5 * weight
    for p in range(count):
        scaled, line = whole * own[p], gram[where[p]]
        for q in range(at(p if other < 0 else count)):
            line[at(where[q])] += scaled * own[q]
        if other < 0:
            line[where[p]] += 0.5 * scaled * own[p]


@kernel(inner=True)
def room(starts, rows):
    """Return work space for the parts of two of the first ``rows`` rows."""
    longest = 0
    for r in range(rows):
        longest = max(longest, starts[r + 1] - starts[r])
    return np.empty(2 * longest), np.empty(2 * longest, dtype=np.int32)


@kernel
def _of_none(frequent):
    """Return the survey of no rows."""
    none, more = np.empty(0), np.empty(0, dtype=np.int64)
    return Survey(more, none, none, more, none, none, more, np.zeros((frequent, frequent)))


@kernel
def _with_room(known, counts):
    """Return the survey with room for all rows of the pool; new ones are in no step."""
    done, rows = counts[PARTED], counts[SEATS]
    like, slope = longer(known.like, done, rows), longer(known.slope, done, rows)
    pivot, spot = longer(known.pivot, done, rows), longer(known.spot, done, rows)
    for r in range(done, rows):
        like[r], slope[r], pivot[r], spot[r] = -1, 0.0, 0.0, -1
    shared, rest = longer(known.shared, done, rows), longer(known.rest, done, rows)
    return Survey(like, shared, rest, longer(known.keys, KEYS * done, KEYS * rows), slope, pivot, spot, known.gram)


@kernel(fastmath=SUMS)
def _bring_up(known, counts, parts, seats, sqnorms):
    """Add unknown rows, remove those that are gone, and find for each the row that it is like."""
    n, keys, done, rows, fresh = seats.size, known.keys, counts[PARTED], counts[SEATS], np.full(seats.size, False)
    some = False
    like, pivot, spot, now = known.like, known.pivot, known.spot, np.full(rows, -1, dtype=np.int64)
    sizes, heavy = parts.rare.data.view(np.int64), np.empty(KEYS, dtype=np.int64)
    for k in range(n):
        r = seats[k]
        now[r] = k
        if r >= done:
            _heaviest(parts.rare, sizes, r, keys, heavy)
            known.rest[r] = max(sqnorms[k] - _square(parts, r), 0.0)
    own, where = room(parts.starts, rows)
    for r in range(rows):
        kept = now[r] >= 0 and spot[r] >= 0 and (like[r] < 0 or now[like[r]] >= 0)
        if pivot[r] > 0.0 and not kept:  # it is gone, or what it was like is
            enter(known, parts, r, known.slope[r], -1.0 / pivot[r], own, where)
            pivot[r] = 0.0
        if not kept:
            like[r] = -1
        if now[r] >= 0:
            fresh[now[r]] = not kept
            some |= not kept
    for r in range(rows):
        spot[r] = now[r]
    counts[PARTED] = rows
    if some:
        _compare(parts.rare, counts[COLUMNS], seats, keys, fresh, like, known.shared, known.rest)


@kernel(leaf=True)
def _stale(known, pool, names):
    """Tell whether to begin anew: few of the rows were in the last step, or much is kept for others."""
    counts, seat, met, more = pool.counts, pool.seat, 0, 0
    for k in range(names.size):
        r = seat[names[k]]
        met += r >= 0 and known.spot[r] >= 0
        more += r < 0
    return met < KNOWN * names.size or counts[SEATS] + more > MOST * names.size or counts[STEPS] >= LONG


@kernel
def surveyed(known, pool, X, where, signs, listed, names, sqnorms, size, d):
    """Return what is known of the rows of a step from what was known before, which is used up.

    ``X`` has sparse rows. ``listed``, ``names`` and ``sqnorms``, shape (n,), say which of the rows ``where`` are in the
    step (none is 0), their numbers, the same in every step and below ``size``, and their squared norms. Also returns
    the pool, the seats of the rows in it, in ascending order, and which of the listed rows has each.
    """
    if pool.counts[STEPS] == 0 or _stale(known, pool, names):
        pool = begun(X, where, listed, sqnorms, size, d)
        known = _of_none(pool.counts[FREQUENT])
    pool, seats, order = admitted(pool, X, where, signs, listed, names)
    known = _with_room(known, pool.counts)
    _bring_up(known, pool.counts, unowned(copies(pool, X)), seats, sqnorms[order])
    pool.counts[STEPS] += 1
    return known, pool, seats, order


@kernel
def nameless(known, pool):
    """Return both as plain tuples, for Python."""
    like, shared, rest, keys, slope, pivot, spot, gram = known
    data, indices, indptr, values, places, starts, columns, label, seat, counts = pool
    return (
        (like, shared, rest, keys, slope, pivot, spot, gram),
        (data, indices, indptr, values, places, starts, columns, label, seat, counts),
    )


def nothing_known() -> tuple[Survey, Pool]:
    """Return the survey of no rows, and a pool without any, in which the next step begins."""
    none, ends, few = np.empty(0), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
    known = Survey(ends[1:], none, none, ends[1:], none, none, ends[1:], np.empty((0, 0)))
    return known, Pool(none, few, ends, none, few, ends, ends[1:], few, ends[1:], np.zeros(6, dtype=np.int64))


def warm_up():
    X, rows, one = matrix_of((np.ones(2), np.zeros(2, dtype=np.int32), np.array([0, 1, 2]))), np.arange(2), np.ones(2)
    surveyed(*nothing_known(), X, rows, np.ones(2, dtype=np.int8), rows, rows, one, 2, 1)
