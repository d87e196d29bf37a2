"""Bounds on what is left of a problem without one row, and on this row's linear form, formed afresh where the way of a
removal (``removal``) has ended: nothing that the way has computed but its dual variables and its intercept is used.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem.box import UNIT, relative_error
from screenpath.kernels.solve import removal
from screenpath.kernels.solve.removal import add, faced, follow, inner, look, moved_by, solve, solved, start

NARROW = 1e-4  # width of an interval, beside 1 and the change of the form, that rounding of dual variables may leave


class Rounding(NamedTuple):
    """Bounds on errors, those of ``kernels.problem.box``."""

    product: float  # relative, of a product
    end: float  # relative, of an end of a box
    distance: float  # of ``w`` from the sum over rows of the dual variables
    residue: float  # of the sum of the dual variables from 0, with a free intercept
    shift: float  # norm of what was subtracted from the rows
    gram: float  # of a product of two rows over their norms, where rows are vectors with such products; else 0


class Found(NamedTuple):
    """What is known of each removal; arrays of shape (m,)."""

    change: np.ndarray  # of the row's own linear form, see ``down`` and ``up`` for how far it may be from the best one
    down: np.ndarray
    up: np.ndarray
    gap: np.ndarray  # upper bound of the sum of the other rows' shares of the duality gap
    distance: np.ndarray  # by which w has moved
    intercept: np.ndarray  # by which the intercept has moved
    pieces: np.ndarray  # int64
    read: np.ndarray  # int64: rows that the proof reads
    status: np.ndarray  # int8
    count: np.ndarray  # int64: dual variables of other rows that have moved
    places: np.ndarray  # places, changes: shape (m, most): which, and by how much
    changes: np.ndarray


@kernel(leaf=True, inner=True)
def form_move(band, x, part, alpha, work, seen, out):
    """Write the move of ``w`` that the dual variables stand for if a ``part`` of the row's is gone; returns sums of
    their changes, of the sizes of these, of these times the rows' norms, and how many there are.
    """
    out[:] = 0.0
    add(-part, x, out)
    balance, sizes, lengths, count = -part, abs(part), 0.0, 1
    for p in range(seen):
        if work.state[p] != removal.GONE and alpha[p] != band.alpha[p]:
            change = alpha[p] - band.alpha[p]
            add(change, band.X[p], out)
            balance, sizes, count = balance + change, sizes + abs(change), count + 1
            lengths += abs(change) * np.sqrt(band.sqnorms[p])
    return balance, sizes, lengths, count


@kernel(leaf=True, inner=True)
def _to_kinks(band, work, k, balance, offset):
    """Write by how much members have to change to be on their kinks, with a sum that is less by ``balance``."""
    for a in range(k):
        e = work.members[a]
        work.products[a] = -balance if e < 0 else band.t[e] - inner(band.X[e], work.moved) - offset
    solve(work, k, work.products, work.share)


@kernel(leaf=True)
def _correct(band, x, alpha, work, k, border, offset, seen):
    """Take the rounding of the way out of members and intercept: one step of Newton's method; returns the latter."""
    balance = form_move(band, x, alpha, work.alpha, work, seen, work.moved)[0]
    _to_kinks(band, work, k, balance, offset)
    for a in range(border, k):
        e = work.members[a]
        work.alpha[e] = min(max(work.alpha[e] + work.share[a], band.low[e]), band.high[e])
    return offset + work.share[0] if border == 1 else offset


@kernel(leaf=True)
def _onto_kinks(band, work, k, border, offset, most):
    """Move ``w`` and the intercept to where members are on their kinks, which dual variables that are rounded do not
    reach where rows are long; returns the intercept's move and how far ``w`` has gone: nowhere if beyond ``most``.
    """
    _to_kinks(band, work, k, 0.0, offset)
    work.along[:] = 0.0
    for a in range(border, k):
        add(work.share[a], band.X[work.members[a]], work.along)
    gone = np.sqrt(inner(work.along, work.along)) * (1.0 + 1e-12)
    if not gone <= most:
        return offset, 0.0
    add(1.0, work.along, work.moved)
    return offset + work.share[0] if border == 1 else offset, gone


@kernel(leaf=True, inner=True)
def all_seen(band, gone, r, work, reach, seen):
    """Look at all rows that such a move may bring over their kinks; returns how many, -1 if the band is too short."""
    while seen < band.t.size and band.ratio[seen] <= reach:
        look(band, gone.place[r], gone.twin[r], work, seen)
        seen += 1
    return -1 if seen == band.t.size and band.beyond <= reach and band.beyond < np.inf else seen


@kernel(leaf=True)
def _bound(gap, away, room, length, cost):
    """Return how far a form of this ``length`` may be from the best one, see :func:`_prove`."""
    loss = gap + 0.5 * away * away
    if not room > 0.0:
        return np.inf
    if loss == 0.0 or length == 0.0:
        return cost + away * length + loss / room
    step = min(room, np.sqrt(2.0 * loss) / length)
    return (cost + loss / step + 0.5 * step * length * length + away * length) * (1.0 + 16.0 * UNIT)


@kernel(leaf=True)
def distance(band, rounding, move, moved, offset, p):
    """Return a row's distance from its kink after a move of ``w``, of length ``moved``, and a bound on its error."""
    form = inner(band.X[p], move) + offset
    t = band.t[p] - form
    error = band.errors[p] + (rounding.product + UNIT) * (np.sqrt(band.sqnorms[p]) * moved + abs(offset))
    return t, error + 4.0 * UNIT * (abs(form) + abs(t))


@kernel(leaf=True)
def shares(band, work, rounding, alpha, move, stray, offset, seen):
    """Return an upper bound of the sum of the rows' shares of the gap of dual variables and a move of ``w``; bounds of
    the rows' distances from their kinks replace ``t``. ``stray`` is what the move may miss in a product, over the norm
    of the row.
    """
    moved, gap = np.sqrt(inner(move, move)) + stray, 0.0
    for p in range(seen):
        if work.state[p] == removal.GONE:
            continue
        t, error = distance(band, rounding, move, moved, offset, p)
        error += np.sqrt(band.sqnorms[p]) * stray
        up, down = band.high[p] - alpha[p], alpha[p] - band.low[p]
        share = max(up * (t + error), down * (error - t), 0.0)
        if up > 0.0 and down > 0.0:
            share += 2.0 * rounding.end * max(abs(band.high[p]), abs(band.low[p])) * (abs(t) + error)
        gap += share
        work.t[p] = abs(t) + error
    return gap * (1.0 + relative_error(seen + 8.0))


@kernel(leaf=True)
def _taken_over(band, gone, r, rounding, work, loss, residue, move, seen):
    """Bound the row's form where another takes over its part, see :func:`_prove`; tell if the band has enough rows."""
    low, high, length, p = np.inf, np.inf, np.sqrt(gone.sqnorms[r]), 0
    (gap, away), (reach, moved, stray, offset) = loss, move
    # Beyond the rows read, distances are too much, unless several intercepts are best: those end at such a row's kink.
    while p < seen or (p < band.t.size and band.lift * (band.ratio[p] - reach) < max(low, high)):
        if p >= seen:
            look(band, gone.place[r], gone.twin[r], work, p)
            t, error = distance(band, rounding, work.moved, moved, offset, p)
            work.t[p] = abs(t) + error + np.sqrt(band.sqnorms[p]) * stray
        if work.state[p] != removal.GONE:
            own, cost = np.sqrt(band.sqnorms[p]), work.t[p]
            more = gap + residue * cost, away + residue * own
            low = min(low, _bound(*more, band.high[p] - work.alpha[p] - residue, own + length, cost))
            high = min(high, _bound(*more, work.alpha[p] - band.low[p] - residue, own + length, cost))
        p += 1
    enough = p < band.t.size or band.lift * (band.beyond - reach) >= max(low, high) or not band.beyond < np.inf
    return low, high, enough


@kernel(leaf=True)
def _prove(band, gone, r, rounding, work, offset, seen, k, found):
    """Bound the gap of the other rows' problem, and by it the row's form for all of its solutions; with ``k`` members,
    at a point where they are on their kinks.

    Let ``G`` be the sum of the other rows' shares ``phi_j(t_j) - alpha_j t_j``. For any ``alpha_i``, with which the sum
    over rows is ``v``, weak duality gives ``alpha_i (m* - m) <= G + 1/2 ||w - v||^2``, ``m`` the row's form. So a step
    of ``-s`` from 0 proves ``m* >= m - G/s - s/2 ||x_i||^2``; with a free intercept another row takes it over, whose
    share grows by ``s |t|``, in place of ``x_i`` the difference of both counts, and its box limits ``s``. Rows that are
    not read are at the end of their box that their kink asks for: their share is 0.
    """
    x, alpha, length = gone.X[r], gone.alpha[r], np.sqrt(gone.sqnorms[r])
    balance, sizes, lengths, count = form_move(band, x, alpha, work.alpha, work, seen, work.moved)
    whole, stray = lengths + abs(alpha) * length, 0.0
    if rounding.gram > 0.0:
        stray = (rounding.gram + relative_error(count + 4.0)) * whole
    lost, nearer, begun = (relative_error(count + 4.0) + rounding.product) * whole, 0.0, offset
    if k > 0:
        offset, nearer = _onto_kinks(band, work, k, 1 if band.lift > 0.0 else 0, offset, rounding.distance + lost)
    square = inner(work.moved, work.moved) + alpha * alpha * gone.outside[r] + stray * whole
    moved = np.sqrt(square) * (1.0 + 1e-12)
    reach = moved_by(work.moved, work.along, 0.0, alpha, offset, gone.outside[r], gone.middle[r], band.lift)
    reach = removal.WIDER * np.sqrt(reach * reach + stray * whole) if stray > 0.0 else removal.WIDER * reach
    seen = all_seen(band, gone, r, work, reach, seen)
    if seen < 0:
        return removal.SHORT
    gap = shares(band, work, rounding, work.alpha, work.moved, stray, offset, seen)
    residue = 0.0
    if band.lift > 0.0:
        residue = rounding.residue + abs(balance) + relative_error(count + 2.0) * sizes
    away = rounding.distance + residue * rounding.shift
    away += lost + nearer
    low = high = _bound(gap, away, np.inf, length, 0.0)
    if band.lift > 0.0:
        move = reach, moved + stray, stray, offset
        low, high, enough = _taken_over(band, gone, r, rounding, work, (gap, away), residue, move, seen)
        if not enough:
            return removal.SHORT
    form = inner(x, work.moved) + offset
    found.change[r], found.gap[r] = form - alpha * gone.outside[r], gap + 0.5 * away * away
    found.distance[r], found.intercept[r], found.read[r], found.count[r] = moved, begun, seen, count - 1
    error = 4.0 * UNIT * (abs(form) + abs(offset) + abs(alpha) * gone.outside[r])
    error += length * (rounding.product * moved + stray)
    found.down[r], found.up[r] = low + error, high + error
    return removal.PROVEN


@kernel
def removals(band, face, gone, rounding, work, found):
    """Leave out one row after another. Rows whose ``status`` is not ``PROVEN`` have no further entry."""
    for r in range(gone.alpha.size):
        k, seen = start(band, face, gone.X[r], gone.place[r], gone.twin[r], work)
        begun = k, seen, abs(gone.alpha[r]), 0.0
        status, k, seen, _, offset, _, pieces = follow(band, gone, r, work, begun, 0.0, np.nan, removal.MOST)
        found.pieces[r] = pieces
        border = 1 if band.lift > 0.0 else 0
        if status == removal.PROVEN:
            if k > border:
                offset = _correct(band, gone.X[r], gone.alpha[r], work, k, border, offset, seen)
            status = _prove(band, gone, r, rounding, work, offset, seen, 0, found)
            width = found.down[r] + found.up[r]
            wide = status == removal.PROVEN and width > NARROW * (1.0 + abs(found.change[r]))
            if wide and k > border and rounding.gram == 0.0:
                status = _prove(band, gone, r, rounding, work, offset, seen, k, found)
                if status != removal.PROVEN or not found.down[r] + found.up[r] < width:
                    status = _prove(band, gone, r, rounding, work, offset, seen, 0, found)
        if status == removal.PROVEN and found.count[r] > found.places.shape[1]:
            status = removal.FULL
        found.status[r] = status
        if status != removal.PROVEN:
            continue
        kept = 0
        for p in range(seen):
            if work.state[p] != removal.GONE and work.alpha[p] != band.alpha[p]:
                found.places[r, kept], found.changes[r, kept] = p, work.alpha[p] - band.alpha[p]
                kept += 1


def example() -> tuple:
    """Return a band of two rows, a face without members, rows that go, rounding and space, to compile kernels with."""
    X, ones, none = np.eye(2), np.ones(2), np.full(2, -1)
    band = removal.Band(X, ones, ones, 0.0 * ones, ones, ones, 0.0 * ones, 0.0 * ones, ones, np.inf, 0.0)
    face, gone = removal.Face(none[:0], X[:0, :0].copy(), X[:0, :0].copy()), removal.Gone(X, none, none, *4 * (ones,))
    work = removal.Work(none.copy(), X.copy(), X.copy(), *np.empty((8, 2)), np.empty(2, dtype=np.int8))
    return band, face, gone, Rounding(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), work


def warm_up():
    band, face, gone, exact, work = example()
    faced(band, face.members, band.t, work)
    solved(work, 0, band.t)
    found = Found(*np.empty((6, 2)), *np.empty((2, 2), dtype=np.int64), np.empty(2, dtype=np.int8), gone.place.copy(),
                  np.empty((2, 2), dtype=np.int64), band.X.copy())  # fmt: skip
    removals(band, face, gone, exact, work, found)
