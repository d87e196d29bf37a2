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

from screenpath.kernels import at, kernel
from screenpath.kernels.matrix import add, borrowed, dot, matrix_of
from screenpath.kernels.newton_system import _factorise, inner, solve_factored

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
FREQUENT = 200  # columns that enter as they are, at most
FEWER = 16  # and at most one for so many rows
ALIKE = 0.5  # cosine, without the frequent columns, from which two rows are alike
LEAST = 1e-12  # of a squared norm is left of a row that stands twice, at least: rounding
KEYS, DEEP = 3, 4  # a row's heaviest columns, and rows with one of them as theirs that are looked at


class Preconditioner(NamedTuple):
    """What :func:`preconditioned` needs.

    Attributes
    ----------
    values, columns, starts : ndarray
        ``A`` by rows.
    like : ndarray of int64 of shape (n,)
        The earlier row that a row has an entry of ``L`` for, itself like no other; -1 where there is none.
    slope, pivot : ndarray of shape (n,)
        That entry, and ``D``.
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
def _number(X, n, place):
    """Number the frequent columns in ``place``, -1 for all others; return how many they are."""
    weights, most = np.zeros(place.size), min(FREQUENT, n // FEWER)
    for r in range(n):
        for q in range(at(X.indptr[r]), at(X.indptr[r + 1])):
            weights[at(X.indices[q])] += X.data[q] * X.data[q]
    least = 0.0
    if most < place.size:
        least = np.partition(weights, place.size - most - 1)[place.size - most - 1]
    count = 0
    for j in range(place.size):
        place[j] = -1
        if weights[j] > least:
            place[j] = count
            count += 1
    return count


@kernel(fastmath=SUMS)
def _frequent_part(X, n, place):
    """Return the part ``A`` of the rows, as CSR."""
    starts, count = np.zeros(n + 1, dtype=np.int64), 0
    for r in range(n):
        for q in range(at(X.indptr[r]), at(X.indptr[r + 1])):
            count += place[at(X.indices[q])] >= 0
        starts[r + 1] = count
    values, columns = np.empty(count), np.empty(count, dtype=np.int32)
    for r in range(n):
        s = starts[r]
        for q in range(at(X.indptr[r]), at(X.indptr[r + 1])):
            j = place[at(X.indices[q])]
            if j >= 0:
                values[s], columns[s] = X.data[q], j
                s += 1
    return values, columns, starts


@kernel(fastmath=SUMS)
def _compare(X, n, place, like, slope, pivot):
    """Find for each row an earlier one that it is like; ``pivot`` holds the squared norms, ridge included.

    Rows alike share one of their heaviest columns. A row that is like another stands for no third one.
    """
    line, first = np.zeros(place.size), np.full(place.size, -1, dtype=np.int64)
    following, keys, weights = np.empty(KEYS * n, dtype=np.int64), np.empty(KEYS, dtype=np.int64), np.empty(KEYS)
    for r in range(n):
        weights[:] = 0.0
        keys[:] = -1
        for q in range(at(X.indptr[r]), at(X.indptr[r + 1])):
            j = at(X.indices[q])
            if place[j] >= 0:
                continue
            line[j], k = X.data[q], KEYS
            while k > 0 and abs(X.data[q]) > weights[k - 1]:
                k -= 1
                if k + 1 < KEYS:
                    weights[k + 1], keys[k + 1] = weights[k], keys[k]
                weights[k], keys[k] = abs(X.data[q]), X.indices[q]
        most, like[r] = ALIKE * ALIKE, -1
        for k in range(KEYS):
            entry, left = first[keys[k]] if keys[k] >= 0 else -1, DEEP
            while entry >= 0 and left > 0:
                other, product = entry // KEYS, 0.0
                for q in range(at(X.indptr[other]), at(X.indptr[other + 1])):
                    product += X.data[q] * line[at(X.indices[q])]
                if product * product > most * pivot[other] * pivot[r]:
                    most, like[r] = product * product / (pivot[other] * pivot[r]), other
                    slope[r] = product / pivot[other]
                entry, left = following[entry], left - 1
        if like[r] >= 0:
            pivot[r] = max(pivot[r] - slope[r] * slope[r] * pivot[like[r]], LEAST * pivot[r])
        else:
            for k in range(KEYS):
                if keys[k] >= 0:
                    following[KEYS * r + k], first[keys[k]] = first[keys[k]], KEYS * r + k
        for q in range(at(X.indptr[r]), at(X.indptr[r + 1])):
            line[at(X.indices[q])] = 0.0


@kernel(fastmath=SUMS)
def _woodbury(values, columns, starts, like, slope, pivot, f):
    """Return ``W``."""
    n = pivot.size
    longest = 0
    for r in range(n):
        longest = max(longest, starts[r + 1] - starts[r])
    W, own, where = np.zeros((f, f)), np.empty(2 * longest), np.empty(2 * longest, dtype=np.int32)
    for j in range(f):
        W[j, j] = 1.0
    for r in range(n):
        count, other = 0, like[r]
        for q in range(starts[r], starts[r + 1]):
            own[count], where[count] = values[q], columns[q]
            count += 1
        if other >= 0:  # columns that both have are listed twice: their products add up
            for q in range(starts[other], starts[other + 1]):
                own[count], where[count] = -slope[r] * values[q], columns[q]
                count += 1
        for p in range(count):
            scaled, line = own[p] / pivot[r], W[where[p]]
            for q in range(at(count)):
                line[at(where[q])] += scaled * own[q]
    return W


@kernel
def diagonal(pivot):
    """Return the preconditioner that divides by ``pivot``."""
    n, none = pivot.size, np.empty(0)
    like, starts = np.full(n, -1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    return Preconditioner(none, np.empty(0, dtype=np.int32), starts, like, np.zeros(n), pivot, np.empty((0, 0)))


@kernel(fastmath=SUMS)
def precondition(X, ridge, d):
    """Return the preconditioner of the rows' Gram matrix with ``diag(ridge)``.

    Parameters
    ----------
    X : Matrix
        Of n rows, sparse.
    ridge : ndarray of shape (n,)
        Above 0.
    d : int
        Columns.
    """
    X, n, place = borrowed(X), ridge.size, np.empty(d, dtype=np.int32)
    like, slope, pivot = np.full(n, -1, dtype=np.int64), np.zeros(n), np.empty(n)
    f = _number(X, n, place)
    values, columns, starts = _frequent_part(X, n, place)
    for r in range(n):
        square = ridge[r]
        for q in range(at(X.indptr[r]), at(X.indptr[r + 1])):
            if place[at(X.indices[q])] < 0:
                square += X.data[q] * X.data[q]
        pivot[r] = square
    _compare(X, n, place, like, slope, pivot)
    W = _woodbury(values, columns, starts, like, slope, pivot, f)
    _factorise(W)
    return Preconditioner(values, columns, starts, like, slope, pivot, W)


@kernel
def closed(M, opened):
    """Return the preconditioner for the rows that are marked alone: it writes 0 for all others.

    The factor is left as it is, which makes ``M`` larger than these rows would.
    """
    like, pivot = M.like.copy(), M.pivot.copy()
    for k in range(opened.size):
        if not opened[k]:
            like[k], pivot[k] = -1, np.inf
        elif like[k] >= 0 and not opened[like[k]]:
            pivot[k] += M.slope[k] * M.slope[k] * M.pivot[like[k]]
            like[k] = -1
    return Preconditioner(M.values, M.columns, M.starts, like, M.slope, pivot, M.factor)


@kernel(fastmath=SUMS, forceinline=True)
def _apart(M, r, out):
    """Write ``(L D L')^-1 r`` to ``out``, which may be ``r``."""
    for k in range(out.size):
        other = M.like[k]  # an earlier one, itself like no other
        out[k] = r[k] if other < 0 else r[k] - M.slope[k] * r[other]
    for k in range(out.size):
        out[k] /= M.pivot[k]
    for k in range(out.size):
        if M.like[k] >= 0:
            out[M.like[k]] -= M.slope[k] * out[k]


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


@kernel(fastmath=SUMS)
def gap_of(box, step, t):
    """Return the share of the gap that the rows have after a step that leaves ``t``, as far as they tell."""
    total = 0.0
    for k in range(step.size):
        lo, hi = box[0, k], box[1, k]
        a = min(max(box[2, k] + step[k], lo), hi)
        total += max(lo * t[k], hi * t[k]) - a * t[k]
    return total


@kernel(fastmath=SUMS)
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
    stored, count = 0, 0  # values, rows
    for k in range(n):
        stored += X.indptr[where[k] + 1] - X.indptr[where[k]] if X.sparse else change.size
        count += weights[k] > 0.0
    return int(formed * count * (1.0 + M.values.size / max(stored, 1)))


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    data, ends = np.ones(2), np.array([0, 1, 2])
    X = matrix_of((data, np.zeros(2, dtype=np.int32), ends))
    M = precondition(X, data, 1)
    diagonal(data)
    closed(M, np.full(2, True))
    preconditioned(M, data, np.empty(2), np.empty(M.factor.shape[0]))
    solve_rows(X, np.arange(2), M, data, data.copy(), data.copy(), np.empty(1), data, 0.1, 2, np.ones((3, 2)), -1.0)
