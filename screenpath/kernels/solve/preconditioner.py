"""Systems with the Gram matrix of sparse rows and a ridge, ``K = G G' + diag(ridge)``: conjugate gradients with a
preconditioner made for text.

Such a matrix is ill-conditioned because of columns that many rows have (a text's frequent words), and of rows that are
nearly alike. The frequent columns enter as they are, ``A`` of shape (n, f). For the other columns the preconditioner
keeps the squared norms of the rows, and the product of each row with one similar row; these links make trees (Chow and
Liu 1968), so that the inverse of a factor has one entry in each row beside the diagonal: ``M = L D L' + A A'``,
``L^-1 = I - T``. By Woodbury an inverse takes the factor of ``W = I + A' (L D L')^-1 A``, of order f, and two
traversals of ``A``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.matrix import add, dot, matrix_of
from screenpath.kernels.rows.newton_system import _factorise, inner, solve_factored
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.pool import copies, frequent_add, frequent_dot
from screenpath.kernels.solve.survey import enter, nothing_known, room, surveyed

LEAST = 1e-12  # of a squared norm is left of a row that stands twice, at least: rounding
DRIFT = 0.05  # share of a pivot by which it may be off, before it is brought up to date


class Preconditioner(NamedTuple):
    """Arguments of :func:`preconditioned` in addition to the rows."""

    # int64 of shape (n,): the row that each is linked to, itself if none: branches on links are hard to predict
    like: np.ndarray
    slope: np.ndarray  # shape (n,): the entry of ``T`` in each row, 0 if it is not linked
    weight: np.ndarray  # shape (n,): ``D^-1``
    level: np.ndarray  # shape (n,): the squared norms without the frequent columns, and the ridge
    factor: np.ndarray  # shape (f, f): Cholesky factor of ``W``
    whole: bool  # whether ``W`` is that of all rows, so that it gives ``A' z`` of the solution ``z``


class Stop(NamedTuple):
    """When conjugate gradients stop."""

    weights: np.ndarray  # shape (n,): rows of weight 0 are as if they were not listed
    goal: float  # stop when ``sum weights residual^2 <= goal``
    limit: int  # products at most
    aim: float  # the rows' share of the gap at which to stop as well; none if it is negative


class Along(NamedTuple):
    """The last direction of conjugate gradients ``p``, shape (n,), and what is known of it; finite, and updated.

    ``search``, shape (d,), is ``G'p``, ``image``, shape (n,), the matrix times it, and ``share``, shape (n,), the
    frequent columns' part of that.
    """

    p: np.ndarray
    search: np.ndarray
    image: np.ndarray
    share: np.ndarray


@kernel
def diagonal(pivot):
    """Return the preconditioner that divides by ``pivot``."""
    n = pivot.size
    return Preconditioner(np.arange(n), np.zeros(n), 1.0 / pivot, pivot, np.empty((0, 0)), True)


@kernel(fastmath=SUMS)
def precondition(known, rows, seats, ridge):
    """Return the preconditioner of rows' Gram matrix with ``diag(ridge)``, ``ridge > 0``.

    ``seats`` are those of the survey's last step. Rows that its ``gram`` lacks enter; rows whose pivot belongs to
    another ridge enter anew.
    """
    n, f, gram = ridge.size, known.gram.shape[0], known.gram
    like, slope, weights, level = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.empty(n)
    factor, (own, where) = np.empty((f, f)), room(rows.starts, seats.max() + 1 if n > 0 else 0)
    for k in range(n):
        r = seats[k]
        other = known.like[r]
        like[k], level[k] = known.spot[other] if other >= 0 else k, known.rest[r] + ridge[k]
    for k in range(n):
        r, tilt, left = seats[k], 0.0, level[k]
        if like[k] != k:
            tilt = known.shared[r] / level[like[k]]
            left = max(left - tilt * known.shared[r], LEAST * left)
        before, weight = known.pivot[r], 1.0 / left
        if abs(left - before) > DRIFT * before:
            if before > 0.0 and tilt == known.slope[r]:
                weight -= 1.0 / before
            elif before > 0.0:
                enter(known, rows, r, known.slope[r], -1.0 / before, own, where)
            enter(known, rows, r, tilt, weight, own, where)
            known.slope[r], known.pivot[r] = tilt, left
        slope[k], weights[k] = known.slope[r] if like[k] != k else 0.0, 1.0 / known.pivot[r]
    for i in range(f):
        for j in range(i + 1):
            factor[i, j] = gram[i, j] + gram[j, i]
        factor[i, i] += 1.0
    _factorise(factor)
    return Preconditioner(like, slope, weights, level, factor, True)


@kernel
def closed(M, opened):
    """Return the preconditioner for the marked rows only: it writes 0 for all others.

    The factor stays as it is, which makes ``M`` larger than these rows would.
    """
    if opened.all():
        return M
    like, slope, weight = M.like.copy(), M.slope.copy(), M.weight.copy()
    for k in range(opened.size):
        if not (opened[k] and opened[like[k]]):
            weight[k] = 1.0 / M.level[k] if opened[k] else 0.0
            like[k], slope[k] = k, 0.0
    return Preconditioner(like, slope, weight, M.level, M.factor, False)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _apart(M, r, half, out):
    """Write ``(L D L')^-1 r`` to ``out``, which may be ``r``; ``half`` is work space of the same size."""
    like, slope, weight = M.like, M.slope, M.weight
    for k in range(r.size):
        half[k] = (r[k] - slope[k] * r[at(like[k])]) * weight[k]
    for k in range(r.size):
        out[k] = half[k]
    for k in range(r.size):
        out[at(like[k])] -= slope[k] * half[k]


@kernel(fastmath=SUMS, leaf=True)
def preconditioned(M, rows, where, r, out, half, sums, share):
    """Write ``z = M^-1 r`` to ``out`` and, if ``W`` is that of all rows, ``A'z`` to ``sums`` and ``A A'z`` to
    ``share``.

    ``half`` is work space for n numbers.
    """
    _apart(M, r, half, out)
    for j in range(at(sums.size)):
        sums[j] = 0.0
    for k in range(r.size):
        frequent_add(rows, where[k], out[k], sums)
    solve_factored(M.factor, sums)
    for k in range(r.size):
        share[k] = frequent_dot(rows, where[k], sums)
        out[k] = r[k] - share[k]
    _apart(M, out, half, out)


@kernel(fastmath=SUMS, leaf=True)
def _multiplied(M, rows, where, turn, p, sums, added, search, share):
    """Update ``search`` and ``share`` to ``G'p`` and its frequent columns' part of ``G G'p``.

    If the preconditioner has told ``z = p - turn p_before``, they follow from their last values and from ``sums`` and
    ``added``, without reading the rows' frequent columns.
    """
    f = sums.size
    for j in range(f):
        search[j] = sums[j] + turn * search[j] if M.whole else 0.0
    for j in range(at(f), at(search.size)):
        search[j] = 0.0
    for k in range(p.size):
        if p[k] != 0.0:
            add(rows.rare, where[k], p[k], search)
    if M.whole:
        for k in range(p.size):
            share[k] = added[k] + turn * share[k]
        return
    for k in range(p.size):
        if p[k] != 0.0:
            frequent_add(rows, where[k], p[k], search)
    for k in range(p.size):
        share[k] = frequent_dot(rows, where[k], search)


@kernel(fastmath=SUMS, leaf=True)
def gap_of(box, step, t):
    """Return the rows' estimated share of the gap after a step that leaves ``t``."""
    total = 0.0
    for k in range(step.size):
        lo, hi = box[0, k], box[1, k]
        a = min(max(box[2, k] + step[k], lo), hi)
        total += max(lo * t[k], hi * t[k]) - a * t[k]
    return total


@kernel(fastmath=SUMS, leaf=True)
def _beyond(weights, box, step):
    """Return what ending a step at its box will bring back of the residual, as ``_sized`` measures it, from rows' own
    products with themselves.
    """
    total = 0.0
    for k in range(step.size):
        wanted = box[2, k] + step[k]
        over = wanted - min(max(wanted, box[0, k]), box[1, k])
        total += over * over / weights[k] if weights[k] > 0.0 else 0.0
    return total


@kernel(fastmath=SUMS, leaf=True)
def _sized(weights, residual):
    total = 0.0
    for k in range(residual.size):
        total += weights[k] * residual[k] * residual[k]
    return total


@kernel(fastmath=SUMS, leaf=True)
def _advance(along, curve, step, change, residual):
    """Go along a direction, whose ``p . image`` is ``curve``, to where the residual is least."""
    p, search, image, _ = along
    length = inner(residual, p) / curve
    for k in range(p.size):
        step[k] += length * p[k]
        residual[k] -= length * image[k]
    for j in range(change.size):
        change[j] += length * search[j]


@kernel(fastmath=SUMS)
def solve_rows(rows, where, M, ridge, residual, step, change, stop, box, along, curve):
    """Solve ``(G G' + diag(ridge)) step = residual`` by preconditioned conjugate gradients.

    It may continue from the last direction of another system with nearly the same matrix, of which ``curve`` is
    ``p . image``; 0 if there is none. ``where`` has the n rows of ``G``. ``residual`` is overwritten; ``step``, shape
    (n,), and ``change``, shape (d,), are written: the solution, and ``G' step``. The latter's entries for frequent
    columns follow from the preconditioner: they may be off by more than the rounding of a sum. ``box``, shape (3, n),
    has ends and values of the dual variables; it is read if ``stop.aim`` is not negative. A system is then solved no
    further than what a step that must end there will leave of it.

    Returns the rows touched, those read in part counting for that part, and ``curve``.
    """
    rows, n, z, (p, search, image, share) = unowned(rows), ridge.size, np.empty(ridge.size), along
    weights = stop.weights
    half, sums, added = np.empty(n), np.empty(M.factor.shape[0]), np.empty(n)
    step[:] = 0.0
    change[:] = 0.0
    formed = 0
    if curve > 0.0:  # the right-hand side may have what this direction reaches
        _advance(along, curve, step, change, residual)
    while formed < stop.limit:
        left = _sized(weights, residual)
        if left <= stop.goal or (stop.aim >= 0.0 and gap_of(box, step, residual) <= stop.aim):
            break
        if formed > 0 and stop.aim >= 0.0 and left <= _beyond(weights, box, step):
            break
        preconditioned(M, rows, where, residual, z, half, sums, added)
        turn = -inner(z, image) / curve if curve > 0.0 else 0.0
        for k in range(n):
            p[k] = z[k] + turn * p[k] if weights[k] > 0.0 else 0.0
        _multiplied(M, rows, where, turn, p, sums, added, search, share)
        curve = 0.0
        for k in range(n):
            image[k] = dot(rows.rare, where[k], search) + share[k] + ridge[k] * p[k] if weights[k] > 0.0 else 0.0
            curve += p[k] * image[k]
        formed += 1
        if not curve > 0.0:  # solved, but for rounding
            break
        _advance(along, curve, step, change, residual)
    count = 0
    for k in range(n):
        count += weights[k] > 0.0
    # All parts are read twice, into a sum and against one; frequent columns twice more where not all rows are there.
    again = 0.0 if M.whole else frequent_share(rows, where)
    return int(formed * count * (1.0 + again)), curve


@kernel(inner=True, leaf=True)
def frequent_share(rows, where):
    """Return the frequent columns' part of the stored values of sparse rows."""
    often, rare, starts, indptr = 0, 0, rows.starts, rows.rare.indptr
    for k in range(where.size if rows.rare.sparse else 0):
        often += starts[where[k] + 1] - starts[where[k]]
        rare += indptr[where[k] + 1] - indptr[where[k]]
    return often / max(often + rare, 1)


def warm_up():
    data, ends = np.ones(2), np.array([0, 1, 2])
    X = matrix_of((data, np.zeros(2, dtype=np.int32), ends))
    index, signs = np.arange(2), np.ones(2, dtype=np.int8)
    known, pool, seats, _ = surveyed(*nothing_known(), X, index, signs, index, index, data, 2, 1)
    rows = copies(pool, X)
    M = precondition(known, rows, seats, data)
    diagonal(data)
    closed(M, np.full(2, True))
    stop, along = Stop(data, 0.1, 2, -1.0), Along(data.copy(), np.empty(1), data.copy(), data.copy())
    solve_rows(rows, seats, M, data, data.copy(), data.copy(), np.empty(1), stop, np.ones((3, 2)), along, 0.0)
