"""Systems with the Gram matrix of sparse rows and a ridge, ``K = G G' + diag(ridge)``: conjugate gradients with a
preconditioner that knows text.

What makes such a matrix ill-conditioned are columns that many rows have (a text's frequent words), and rows that are
nearly alike. The former enter as they are, ``A`` of shape (n, f). Of the other columns the squared norms of the rows
stay, and the products of rows with one like each; what these links make are trees (Chow and Liu 1968), so that the
inverse of a factor has one entry in each row beside the diagonal: ``M = L D L' + A A'``, ``L^-1 = I - T``. By Woodbury
an inverse takes the factor of ``W = I + A' (L D L')^-1 A``, of order f, and two traversals of ``A``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.matrix import add, borrowed, dot, matrix_of
from screenpath.kernels.newton_system import _factorise, inner, solve_factored
from screenpath.kernels.survey import enter, nothing_known, room, surveyed

LEAST = 1e-12  # of a squared norm is left of a row that stands twice, at least: rounding
DRIFT = 0.05  # share of a pivot by which it may be off, before it is brought up to date


class Preconditioner(NamedTuple):
    """What :func:`preconditioned` needs.

    Attributes
    ----------
    values, columns, starts : ndarray
        As of the :class:`Survey`, by seats.
    seats, like : ndarray of int64 of shape (n,)
        The seat of each row, and the row that it is linked to, -1 where there is none.
    slope, pivot : ndarray of shape (n,)
        The entry of ``T`` that a row has, and ``D``.
    level : ndarray of shape (n,)
        The squared norms without the frequent columns, and the ridge.
    factor : ndarray of shape (f, f)
        Cholesky factor of ``W``.
    """

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    seats: np.ndarray
    like: np.ndarray
    slope: np.ndarray
    pivot: np.ndarray
    level: np.ndarray
    factor: np.ndarray


@kernel
def diagonal(pivot):
    """Return the preconditioner that divides by ``pivot``."""
    n, none = pivot.size, np.empty(0)
    like, starts, seats = np.full(n, -1, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(n, dtype=np.int64)
    few, slope, factor = np.empty(0, dtype=np.int32), np.zeros(n), np.empty((0, 0))
    return Preconditioner(none, few, starts, seats, like, slope, pivot, pivot, factor)


@kernel(fastmath=SUMS)
def precondition(known, seats, ridge):
    """Return the preconditioner of rows' Gram matrix with ``diag(ridge)``.

    Parameters
    ----------
    known : Survey
    seats : ndarray of int64 of shape (n,)
        Of the rows of its last step. Those that its ``gram`` lacks enter, and those whose pivot another ridge has left
        enter anew.
    ridge : ndarray of shape (n,)
        Above 0.
    """
    n, f, gram = ridge.size, known.gram.shape[0], known.gram
    like, slope, pivot, level = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.empty(n)
    factor, (own, where) = np.empty((f, f)), room(known, seats.max() + 1 if n > 0 else 0)
    for k in range(n):
        r = seats[k]
        other = known.like[r]
        like[k], level[k] = known.spot[other] if other >= 0 else -1, known.rest[r] + ridge[k]
    for k in range(n):
        r, tilt, left = seats[k], 0.0, level[k]
        if like[k] >= 0:
            tilt = known.shared[r] / level[like[k]]
            left = max(left - tilt * known.shared[r], LEAST * left)
        before, weight = known.pivot[r], 1.0 / left
        if abs(left - before) > DRIFT * before:
            if before > 0.0 and tilt == known.slope[r]:
                weight -= 1.0 / before
            elif before > 0.0:
                enter(known, r, known.slope[r], -1.0 / before, own, where)
            enter(known, r, tilt, weight, own, where)
            known.slope[r], known.pivot[r] = tilt, left
        slope[k], pivot[k] = known.slope[r], known.pivot[r]
    for i in range(f):
        for j in range(i + 1):
            factor[i, j] = gram[i, j] + gram[j, i]
        factor[i, i] += 1.0
    _factorise(factor)
    return Preconditioner(known.values, known.columns, known.starts, seats, like, slope, pivot, level, factor)


@kernel
def closed(M, opened):
    """Return the preconditioner for the rows that are marked alone: it writes 0 for all others.

    The factor is left as it is, which makes ``M`` larger than these rows would.
    """
    if opened.all():
        return M
    like, pivot = M.like.copy(), M.pivot.copy()
    for k in range(opened.size):
        if not opened[k]:
            like[k], pivot[k] = -1, np.inf
        elif like[k] >= 0 and not opened[like[k]]:
            like[k], pivot[k] = -1, M.level[k]
    return Preconditioner(M.values, M.columns, M.starts, M.seats, like, M.slope, pivot, M.level, M.factor)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _apart(M, r, half, out):
    """Write ``(L D L')^-1 r`` to ``out``, which may be ``r``; ``half`` is room for as much."""
    like, slope, pivot = M.like, M.slope, M.pivot
    for k in range(r.size):
        other = like[k]
        half[k] = (r[k] if other < 0 else r[k] - slope[k] * r[at(other)]) / pivot[k]
    for k in range(r.size):
        out[k] = half[k]
    for k in range(r.size):
        if like[k] >= 0:
            out[at(like[k])] -= slope[k] * half[k]


@kernel(fastmath=SUMS)
def preconditioned(M, r, out, half, sums):
    """Write ``M^-1 r`` to ``out``; ``half`` and ``sums`` are room for n and f numbers."""
    values, columns, starts, seats = M.values, M.columns, M.starts, M.seats
    _apart(M, r, half, out)
    sums[:] = 0.0
    for k in range(r.size):
        for q in range(at(starts[seats[k]]), at(starts[seats[k] + 1])):
            sums[at(columns[q])] += values[q] * out[k]
    solve_factored(M.factor, sums)
    for k in range(r.size):
        total = r[k]
        for q in range(at(starts[seats[k]]), at(starts[seats[k] + 1])):
            total -= values[q] * sums[at(columns[q])]
        out[k] = total
    _apart(M, out, half, out)


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


@kernel(fastmath=SUMS, leaf=True)
def _advance(length, p, search, image, step, change, residual):
    """Go so far in a direction."""
    for k in range(p.size):
        step[k] += length * p[k]
        residual[k] -= length * image[k]
    for j in range(change.size):
        change[j] += length * search[j]


@kernel(fastmath=SUMS)
def solve_rows(X, where, M, ridge, residual, step, change, weights, goal, limit, box, aim, p, search, image, curve):
    """Solve ``(G G' + diag(ridge)) step = residual`` by preconditioned conjugate gradients.

    It may go on from the last direction of another system with nearly the same matrix, which it then knows of.

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
    p, search, image : ndarray of shape (n,), (d,) and (n,)
        The last direction, ``G'`` times it, and the matrix times it; finite, and updated.
    curve : float
        The first times the last; 0 where there is no direction to go on from.

    Returns
    -------
    touched : int
        Rows; those that the preconditioner reads a part of count for that part.
    curve : float
    """
    X, n, z = borrowed(X), ridge.size, np.empty(ridge.size)
    half, sums = np.empty(n), np.empty(M.factor.shape[0])
    step[:] = 0.0
    change[:] = 0.0
    formed = 0
    if curve > 0.0:  # the right-hand side may have what this direction reaches
        _advance(inner(residual, p) / curve, p, search, image, step, change, residual)
    while formed < limit and _sized(weights, residual) > goal:
        if aim >= 0.0 and gap_of(box, step, residual) <= aim:
            break
        preconditioned(M, residual, z, half, sums)
        turn = -inner(z, image) / curve if curve > 0.0 else 0.0
        search[:] = 0.0
        curve = 0.0
        for k in range(n):
            p[k] = z[k] + turn * p[k] if weights[k] > 0.0 else 0.0
            if weights[k] > 0.0:
                add(X, where[k], p[k], search)
        for k in range(n):
            image[k] = dot(X, where[k], search) + ridge[k] * p[k] if weights[k] > 0.0 else 0.0
            curve += p[k] * image[k]
        formed += 1
        if not curve > 0.0:  # solved, but for rounding
            break
        _advance(inner(residual, p) / curve, p, search, image, step, change, residual)
    stored, parts, count, indptr = 0, 0, 0, X.indptr  # values, those that the preconditioner reads, rows
    for k in range(n):
        stored += indptr[where[k] + 1] - indptr[where[k]] if X.sparse else change.size
        parts += M.starts[M.seats[k] + 1] - M.starts[M.seats[k]]
        count += weights[k] > 0.0
    return int(formed * count * (1.0 + parts / max(stored, 1))), curve


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    data, ends = np.ones(2), np.array([0, 1, 2])
    X = matrix_of((data, np.zeros(2, dtype=np.int32), ends))
    rows, signs = np.arange(2), np.ones(2, dtype=np.int8)
    known, _, seats = surveyed(*nothing_known(), X, rows, signs, rows, rows, data, 2, 1)
    M = precondition(known, seats, data)
    diagonal(data)
    closed(M, np.full(2, True))
    preconditioned(M, data, np.empty(2), np.empty(2), np.empty(M.factor.shape[0]))
    solve_rows(
        X, np.arange(2), M, data, data.copy(), data.copy(), np.empty(1), data, 0.1, 2, np.ones((3, 2)), -1.0,
        data.copy(), np.empty(1), data.copy(), 0.0,
    )  # fmt: skip
