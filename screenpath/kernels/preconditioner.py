"""Systems with the Gram matrix of sparse rows and a ridge, ``K = G G' + diag(ridge)``: conjugate gradients with a
preconditioner that knows text.

What makes such a matrix ill-conditioned are columns that many rows have (a text's frequent words), and rows that are
nearly alike. The former enter as they are, ``A`` of shape (n, f); of the other columns the squared norms ``D`` of the
rows stay, and the product of a row with one like it: ``M = L D L' + A A'``, ``L`` with one entry below the diagonal at
most in each row. By Woodbury an inverse takes the factor of ``W = I + A' (L D L')^-1 A``, of order f, and two
traversals of ``A``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.matrix import add, borrowed, dot, matrix_of
from screenpath.kernels.newton_system import _factorise, inner, solve_factored
from screenpath.kernels.unowned import unowned

FREQUENT = 200  # columns that enter as they are, at most
FEWER = 8  # and at most one for so many rows
HEAVY = 1.0  # sum of the squares of a column of rows of norm 1, from which it is one of them
ALIKE = 0.5  # cosine, without the frequent columns, from which two rows are alike
LEAST = 1e-12  # of a squared norm is left of a row that stands twice, at least: rounding
KEYS, DEEP = 3, 4  # a row's heaviest columns (`_part` knows how many), and rows with one of them that are looked at
HALVINGS = 20  # of a range of weights


class Survey(NamedTuple):
    """What is known of rows, whatever the ridge.

    Attributes
    ----------
    values, columns, starts : ndarray
        ``A`` by rows, of ``frequent`` columns.
    like : ndarray of int64 of shape (n,)
        The row, itself like no other, that a row has an entry of ``L`` for; -1 where there is none.
    shared, rest : ndarray of shape (n,)
        The product with that row, and the squared norm, without the frequent columns.
    frequent : int
    place : ndarray of int32
        Numbers of the frequent columns, -1 for all others.
    keys : ndarray of int64 of shape (n, KEYS)
        The heaviest of each row's other columns, -1 where there are not as many.
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


class Preconditioner(NamedTuple):
    """What :func:`preconditioned` needs.

    Attributes
    ----------
    values, columns, starts, like : ndarray
        As of the :class:`Survey`.
    slope, pivot : ndarray of shape (n,)
        The entry of ``L`` that a row has, and ``D``.
    factor : ndarray of shape (f, f)
        Cholesky factor of ``W``.
    """

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    like: np.ndarray
    slope: np.ndarray
    pivot: np.ndarray
    factor: np.ndarray


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
def _part(X, r, place, columns, values, numbers, count, keys):
    """Write a row's part of ``A`` from ``count`` on, to one place behind it too, and its heaviest other columns to its
    ``keys``; return where the part ends, and the squared norm of the other columns.
    """
    _, data, indices, indptr, _ = X
    rest, none = 0.0, at(columns.size)
    most, more, some, first, second, third = 0.0, 0.0, 0.0, none, none, none
    for q in range(at(indptr[r]), at(indptr[r + 1])):
        value, column = data[q], at(indices[q])
        j = place[column]
        values[at(count)], numbers[at(count)] = value, j  # kept where the next one does not overwrite it
        count += j >= 0
        size = 0.0 if j >= 0 else abs(value)
        rest += size * size
        if size > some:
            if size > most:
                most, more, some, first, second, third = size, most, more, column, first, second
            elif size > more:
                more, some, second, third = size, more, column, second
            else:
                some, third = size, column
    keys[r, 0] = columns[first] if first < none else -1
    keys[r, 1] = columns[second] if second < none else -1
    keys[r, 2] = columns[third] if third < none else -1
    return count, rest


@kernel(fastmath=SUMS)
def _lay(X, place, r, line, there):
    """Write the rare columns of a row to ``line``, or 0 in their places."""
    _, data, indices, indptr, _ = X
    for q in range(at(indptr[r]), at(indptr[r + 1])):
        j = at(indices[q])
        line[j] = data[q] if there and place[j] < 0 else 0.0


@kernel(fastmath=SUMS)
def _compare(X, place, d, keys, fresh, like, shared, rest):
    """Find for fresh rows one that each is like, among the others and the fresh rows before it.

    Rows alike share one of their heaviest columns. A row that is like another stands for no third one.
    """
    n, line, first = fresh.size, np.zeros(place.size), np.full(d, -1, dtype=np.int64)
    following = np.empty(KEYS * n, dtype=np.int64)
    for r in range(n):
        if not fresh[r] and like[r] < 0:
            _list(keys, r, first, following)
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
                if product * product > most * rest[other] * rest[r]:
                    most, like[r] = product * product / (rest[other] * rest[r]), other
                    shared[r] = product
                entry, left = following[entry], left - 1
        if laid:
            _lay(X, place, r, line, False)
        if like[r] < 0:
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
    values, numbers = np.empty(stored + 1), np.empty(stored + 1, dtype=np.int32)
    starts = np.zeros(n + 1, dtype=np.int64)
    like, shared, rest = np.full(n, -1, dtype=np.int64), np.zeros(n), np.empty(n)
    keys, everywhere = np.empty((n, KEYS), dtype=np.int64), np.full(d, -1, dtype=np.int32)
    frequent, count = _number(X, n, sqnorms, place), 0
    everywhere[columns] = place
    for r in range(n):
        count, rest[r] = _part(X, r, place, columns, values, numbers, count, keys)
        starts[r + 1] = count
    _compare(X, place, d, keys, np.full(n, True), like, shared, rest)
    return Survey(values[:count], numbers[:count], starts, like, shared, rest, frequent, everywhere, keys)


@kernel(fastmath=SUMS)
def surveyed(known, before, X, rows, columns, size):
    """Return what is known of sparse rows from the survey of others.

    Parameters
    ----------
    known : Survey
        Of the rows ``before``.
    before, rows : ndarray of int64
        Numbers of rows, below ``size``.
    X : Matrix
        The ``rows``, with some of the columns.
    columns : ndarray of int64
        Which these are.
    size : int
    """
    X, n, count, stored = borrowed(X), rows.size, 0, known.values.size
    indptr = X.indptr
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
    old_values, old_numbers, old_starts, old_like, old_shared, old_rest, _, _, old_keys = known
    for r in range(n):
        p = seat[rows[r]]
        if p < 0:
            count, rest[r] = _part(X, r, place, columns, values, numbers, count, keys)
        else:
            other = old_like[p]
            fresh[r] = other >= 0 and moved[other] < 0  # what it was like is gone
            rest[r], keys[r] = old_rest[p], old_keys[p]
            if other >= 0 and not fresh[r]:
                like[r], shared[r] = moved[other], old_shared[p]
            for q in range(at(old_starts[p]), at(old_starts[p + 1])):
                values[at(count)], numbers[at(count)] = old_values[q], old_numbers[q]
                count += 1
        starts[r + 1] = count
    _compare(X, place, known.place.size, keys, fresh, like, shared, rest)
    frequent = known.frequent
    return Survey(values[:count], numbers[:count], starts, like, shared, rest, frequent, known.place, keys)


@kernel(fastmath=SUMS)
def _woodbury(known, slope, pivot):
    """Return the lower triangle of ``W``."""
    n, f, longest = pivot.size, known.frequent, 0
    values, columns, starts, like = known.values, known.columns, known.starts, known.like
    for r in range(n):
        longest = max(longest, starts[r + 1] - starts[r])
    W, own, where = np.zeros((f, f)), np.empty(2 * longest), np.empty(2 * longest, dtype=np.int32)
    lines = unowned(W)
    for j in range(f):
        W[j, j] = 0.5
    for r in range(n):  # each pair of entries once, on whichever side of the diagonal; on it, half
        count, other = 0, like[r]
        for q in range(at(starts[r]), at(starts[r + 1])):
            own[at(count)], where[at(count)] = values[q], columns[q]
            count += 1
        if other >= 0:  # columns that both have are listed twice: their products add up
            for q in range(at(starts[other]), at(starts[other + 1])):
                own[at(count)], where[at(count)] = -slope[r] * values[q], columns[q]
                count += 1
        # Columns that are listed twice meet in more ways than one: there both orders count, half each.
        whole = 1.0 / pivot[r] if other < 0 else 0.5 / pivot[r]
        for p in range(count):
            scaled, line = whole * own[p], lines[where[p]]
            for q in range(at(p if other < 0 else count)):
                line[at(where[q])] += scaled * own[q]
            if other < 0:
                line[where[p]] += 0.5 * scaled * own[p]
    for i in range(f):
        for j in range(i):
            W[i, j] += W[j, i]
        W[i, i] *= 2.0
    return W


@kernel
def nameless(known):
    """Return a survey as a plain tuple, for Python."""
    values, columns, starts, like, shared, rest, frequent, place, keys = known
    return values, columns, starts, like, shared, rest, frequent, place, keys


def nothing_known() -> Survey:
    """Return the survey of no rows."""
    none, ends = np.empty(0), np.zeros(1, dtype=np.int64)
    few = np.empty(0, dtype=np.int32)
    return Survey(none, few, ends, ends[1:], none, none, 0, few, np.empty((0, KEYS), dtype=np.int64))


@kernel
def diagonal(pivot):
    """Return the preconditioner that divides by ``pivot``."""
    n, none = pivot.size, np.empty(0)
    like, starts = np.full(n, -1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    return Preconditioner(none, np.empty(0, dtype=np.int32), starts, like, np.zeros(n), pivot, np.empty((0, 0)))


@kernel(fastmath=SUMS)
def precondition(known, ridge):
    """Return the preconditioner of rows' Gram matrix with ``diag(ridge)``.

    Parameters
    ----------
    known : Survey
        Of n rows.
    ridge : ndarray of shape (n,)
        Above 0.
    """
    n, slope, pivot, like, shared = ridge.size, np.zeros(ridge.size), known.rest + ridge, known.like, known.shared
    for r in range(n):
        other = like[r]
        if other >= 0:
            slope[r] = shared[r] / pivot[other]
            pivot[r] = max(pivot[r] - slope[r] * shared[r], LEAST * pivot[r])
    W = _woodbury(known, slope, pivot)
    _factorise(W)
    return Preconditioner(known.values, known.columns, known.starts, known.like, slope, pivot, W)


@kernel
def closed(M, opened):
    """Return the preconditioner for the rows that are marked alone: it writes 0 for all others.

    The factor is left as it is, which makes ``M`` larger than these rows would.
    """
    like, pivot, slope, pivots = M.like.copy(), M.pivot.copy(), M.slope, M.pivot
    for k in range(opened.size):
        if not opened[k]:
            like[k], pivot[k] = -1, np.inf
        elif like[k] >= 0 and not opened[like[k]]:
            pivot[k] += slope[k] * slope[k] * pivots[like[k]]
            like[k] = -1
    return Preconditioner(M.values, M.columns, M.starts, like, slope, pivot, M.factor)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _apart(M, r, out):
    """Write ``(L D L')^-1 r`` to ``out``, which may be ``r``."""
    like, slope, pivot = M.like, M.slope, M.pivot
    for k in range(out.size):
        other = like[k]  # an earlier one, itself like no other
        out[k] = r[k] if other < 0 else r[k] - slope[k] * r[at(other)]
    for k in range(out.size):
        out[k] /= pivot[k]
    for k in range(out.size):
        if like[k] >= 0:
            out[at(like[k])] -= slope[k] * out[k]


@kernel(fastmath=SUMS)
def preconditioned(M, r, out, sums):
    """Write ``M^-1 r`` to ``out``; ``sums`` is room for f numbers."""
    values, columns, starts = M.values, M.columns, M.starts
    _apart(M, r, out)
    sums[:] = 0.0
    for k in range(r.size):
        for q in range(at(starts[k]), at(starts[k + 1])):
            sums[at(columns[q])] += values[q] * out[k]
    solve_factored(M.factor, sums)
    for k in range(r.size):
        total = r[k]
        for q in range(at(starts[k]), at(starts[k + 1])):
            total -= values[q] * sums[at(columns[q])]
        out[k] = total
    _apart(M, out, out)


@kernel(fastmath=SUMS, leaf=True)
def gap_of(box, step, t):
    """Return the share of the gap that the rows have after a step that leaves ``t``, as far as they tell."""
    total = 0.0
    for k in range(step.size):
        lo, hi = box[0, k], box[1, k]
        a = min(max(box[2, k] + step[k], lo), hi)
        total += max(lo * t[k], hi * t[k]) - a * t[k]
    return total


@kernel(fastmath=SUMS, leaf=True)
def _sized(weights, residual):
    total = 0.0
    for k in range(residual.size):
        total += weights[k] * residual[k] * residual[k]
    return total


@kernel(fastmath=SUMS)
def solve_rows(X, where, M, ridge, residual, step, change, weights, goal, limit, box, aim):
    """Solve ``(G G' + diag(ridge)) step = residual`` by preconditioned conjugate gradients.

    Parameters
    ----------
    X : Matrix
    where : ndarray of int64 of shape (n,)
        Rows that ``G`` consists of.
    M : Preconditioner
    ridge : ndarray of shape (n,)
    residual, step, change : ndarray of shape (n,), (n,) and (d,)
        The first is overwritten, the others are written: the solution, and ``G' step``.
    weights, goal
        To be reached: ``sum weights residual^2 <= goal``. Rows of weight 0 are as if they were not listed.
    limit : int
        Products at most.
    box : ndarray of shape (3, n)
        Ends of the dual variables, and where they are; read where ``aim`` is not negative.
    aim : float
        Their share of the gap at which to stop as well.

    Returns
    -------
    int
        Rows touched; those that the preconditioner reads a part of count for that part.
    """
    X, n = borrowed(X), ridge.size
    p, z, image = np.empty(n), np.empty(n), np.empty(n)
    search, sums = np.empty(change.size), np.empty(M.factor.shape[0])
    step[:] = 0.0
    change[:] = 0.0
    p[:] = 0.0
    formed, last = 0, 0.0
    while formed < limit and _sized(weights, residual) > goal:
        if aim >= 0.0 and gap_of(box, step, residual) <= aim:
            break
        preconditioned(M, residual, z, sums)
        square = inner(residual, z)
        turn = square / last if formed > 0 else 0.0
        last = square
        search[:] = 0.0
        curve = 0.0
        for k in range(n):
            p[k] = z[k] + turn * p[k]
            if weights[k] > 0.0:
                add(X, where[k], p[k], search)
        for k in range(n):
            image[k] = dot(X, where[k], search) + ridge[k] * p[k] if weights[k] > 0.0 else 0.0
            curve += p[k] * image[k]
        length = square / curve
        for k in range(n):
            step[k] += length * p[k]
            residual[k] -= length * image[k]
        for j in range(change.size):
            change[j] += length * search[j]
        formed += 1
    stored, count, indptr = 0, 0, X.indptr  # values, rows
    for k in range(n):
        stored += indptr[where[k] + 1] - indptr[where[k]] if X.sparse else change.size
        count += weights[k] > 0.0
    return int(formed * count * (1.0 + M.values.size / max(stored, 1)))


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    data, ends = np.ones(2), np.array([0, 1, 2])
    X = matrix_of((data, np.zeros(2, dtype=np.int32), ends))
    rows, columns = np.arange(2), np.arange(1)
    known = survey(X, data, columns, 1)
    M = precondition(surveyed(known, rows, X, rows, columns, 2), data)
    diagonal(data)
    closed(M, np.full(2, True))
    preconditioned(M, data, np.empty(2), np.empty(M.factor.shape[0]))
    solve_rows(X, np.arange(2), M, data, data.copy(), data.copy(), np.empty(1), data, 0.1, 2, np.ones((3, 2)), -1.0)
