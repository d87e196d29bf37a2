"""Leave one row out of a solved box model: the way of the other rows as its dual variable goes to zero.

Rows are signless (``problem.intercept``): ``t_j = k_j - x_j.w - b``. While the row's dual variable shrinks, members
(rows on their kinks) stay there, and ``w`` and ``b`` move along a line. A piece of it ends when a member reaches an end
of its box, or a row its kink. A row can do so only once ``(w, b)`` has moved by its ``ratio``, its distance from the
kink over its norm: rows are ordered by it, and only the first are read, see :class:`Band`.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel

# Where a row is, in place of an end, 0 or 1: between both, but not followed; and where it is not looked at:
# on its kink, left out, on its kink and a combination of members.
INSIDE, MEMBER, GONE, PARKED = range(2, 6)
PROVEN, SHORT, ENDLESS, LONG, FULL = range(5)  # how a removal ends; SHORT: the band has too few rows
MOST = 1000  # pieces
DEPENDS = 1e-10  # part of a squared norm outside of the members' span below which a row counts as inside of it
STILL = 1e-11  # part of both norms below which a row does not move against the members
WIDER = 1.0 + 1e-9  # factor for distances that decide which rows are read


class Band(NamedTuple):
    """The rows nearest to their kinks, by ``ratio``, with what is known at the solution of all rows."""

    X: np.ndarray  # shape (B, d): with a free intercept minus a vector of the caller's, on the columns that they have
    t: np.ndarray  # t, alpha, low, high, sqnorms, ratio, errors: shape (B,); ends and dual variables in units of C
    alpha: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sqnorms: np.ndarray
    ratio: np.ndarray
    errors: np.ndarray  # bounds on the errors of ``t``
    start: np.ndarray  # shape (B,): ``t`` from where the way begins; off where equal ones would lead in circles
    beyond: float  # ratio of the first row that is not in the band
    lift: float  # length that a move of the free intercept is divided by where lengths are compared; 0 without one


class Face(NamedTuple):
    """The members at the solution of all rows; with a free intercept the first one is it, with the number -1."""

    members: np.ndarray  # shape (k,)
    gram: np.ndarray  # shape (k, k): products of the members, that of the intercept with each row is 1
    inverse: np.ndarray  # shape (k, k)


class Gone(NamedTuple):
    """The rows to leave out, one at a time."""

    X: np.ndarray  # shape (m, d): as those of the band
    place: np.ndarray  # place, twin: shape (m,): of the row, and of another to leave out with it, in the band, or -1
    twin: np.ndarray
    alpha: np.ndarray  # alpha, sqnorms: shape (m,)
    sqnorms: np.ndarray
    outside: np.ndarray  # shape (m,): squared norm on columns that the band does not have
    middle: np.ndarray  # shape (m,): product there with the point from which lengths of rows are measured


class Work(NamedTuple):
    """Space for one removal after another."""

    members: np.ndarray  # shape (m,)
    gram: np.ndarray  # gram, inverse: shape (m, m)
    inverse: np.ndarray
    products: np.ndarray  # products, share, rest: shape (m,): with the row that goes; how fast members move; space
    share: np.ndarray
    rest: np.ndarray
    t: np.ndarray  # t, alpha, speed: shape (B,)
    alpha: np.ndarray
    speed: np.ndarray
    moved: np.ndarray  # moved, along: shape (d,): by how much ``w`` has moved, and how fast it does
    along: np.ndarray
    state: np.ndarray  # int8, shape (B,)


@kernel(fastmath=SUMS, leaf=True)
def inner(a, b):
    total = 0.0
    for j in range(at(a.size)):
        total += a[j] * b[j]
    return total


@kernel(leaf=True)
def add(step, x, out):
    for j in range(at(x.size)):
        out[j] += step * x[j]


@kernel(leaf=True, inner=True)
def solve(work, k, right, out):
    """Write the solution of the members' system to ``out``, corrected once."""
    for a in range(k):
        out[a] = inner(work.inverse[a, :k], right[:k])
    for a in range(k):
        work.rest[a] = right[a] - inner(work.gram[a, :k], out[:k])
    for a in range(k):
        out[a] += inner(work.inverse[a, :k], work.rest[:k])


@kernel(leaf=True)
def _leave(work, p, k, border):
    """Take member ``p`` out of the system; returns how many are left."""
    inverse, last = work.inverse, k - 1
    pivot = inverse[p, p]
    if last > border:
        for a in range(k):
            work.rest[a] = inverse[a, p]
        for a in range(k):
            add(-work.rest[a] / pivot, work.rest[:k], inverse[a, :k])
    work.members[p], work.products[p] = work.members[last], work.products[last]
    for matrix in (inverse, work.gram):  # the last member takes its place
        for b in range(last):
            matrix[p, b] = matrix[last, b]
            matrix[b, p] = matrix[last, b]
        matrix[p, p] = matrix[last, last]
    return last


@kernel(leaf=True)
def _enter(band, work, p, x, k, border):
    """Make a row of the band a member; returns how many there are, -1 if it depends on the others."""
    row, square, inverse, gram = band.X[p], band.sqnorms[p], work.inverse, work.gram
    if k >= row.size + 2 * border:  # as many as there are dimensions, whatever rounding says
        return -1
    for a in range(k):
        gram[k, a] = 1.0 if work.members[a] < 0 else inner(band.X[work.members[a]], row)
        gram[a, k] = gram[k, a]
    gram[k, k] = square
    if border == 1 and k == 1:
        inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = -square, 1.0, 1.0, 0.0
    else:
        for a in range(k):
            work.rest[a] = inner(inverse[a, :k], gram[k, :k])
        left = square - inner(work.rest[:k], gram[k, :k])
        if not left > DEPENDS * square:
            return -1
        for a in range(k):
            add(work.rest[a] / left, work.rest[:k], inverse[a, :k])
            inverse[a, k] = -work.rest[a] / left
            inverse[k, a] = inverse[a, k]
        inverse[k, k] = 1.0 / left
    work.members[k], work.products[k], work.state[p] = p, inner(row, x), MEMBER
    return k + 1


@kernel(leaf=True)
def start(band, face, x, place, twin, work):
    """Set up the members without the row that goes; returns their number, and how many rows are looked at."""
    k, out, border = face.members.size, -1, 1 if band.lift > 0.0 else 0
    for a in range(k):
        e = face.members[a]
        work.members[a] = e
        work.products[a] = 1.0 if e < 0 else inner(band.X[e], x)
        for b in range(k):
            work.gram[a, b], work.inverse[a, b] = face.gram[a, b], face.inverse[a, b]
        if e >= 0 and e in (place, twin):
            out = a
    if out >= 0:
        k = _leave(work, out, k, border)
    seen = 0
    while seen < band.t.size and band.ratio[seen] == 0.0:
        look(band, place, twin, work, seen)
        seen += 1
    for a in range(border, k):
        work.state[work.members[a]] = MEMBER
    work.moved[:] = 0.0
    return k, seen


@kernel(leaf=True)
def _state(band, work, p):
    """Return where the dual variable of a row that is not followed is."""
    return 1 if work.alpha[p] >= band.high[p] else 0 if work.alpha[p] <= band.low[p] else INSIDE


@kernel(leaf=True)
def look(band, place, twin, work, p):
    """Begin to look at a row of the band: where it was at the solution of all rows."""
    work.t[p], work.alpha[p], work.speed[p] = band.start[p], band.alpha[p], 0.0
    work.state[p] = GONE if p in (place, twin) else _state(band, work, p)


@kernel(leaf=True)
def _direction(work, band, x, square, sign, k, border):
    """Write how ``w`` and the members move; returns how fast the row's dual variable and the intercept do."""
    work.along[:] = 0.0
    if border == 1 and k == 1:  # nobody can take over the row's part: the intercept moves until somebody can
        work.share[0] = 0.0
        return 0.0, -sign
    solve(work, k, work.products, work.share)
    add(-sign, x, work.along)
    for a in range(k):
        work.share[a] *= sign
        if a >= border:
            add(work.share[a], band.X[work.members[a]], work.along)
    if inner(work.along, work.along) <= 1e-18 * square:  # the row is a combination of members
        work.along[:] = 0.0
        return 1.0, 0.0
    return 1.0, work.share[0] if border == 1 else 0.0


@kernel(leaf=True)
def _first_member(band, work, k, border, most):
    """Return how far it is until a member reaches an end, at most ``most``, and which does; -1 if none."""
    first = -1
    for a in range(border, k):
        speed, e = work.share[a], work.members[a]
        if abs(speed) > 1e-13:
            room = max(((band.high[e] if speed > 0.0 else band.low[e]) - work.alpha[e]) / speed, 0.0)
            if room < most:
                most, first = room, a
    return most, first


@kernel(leaf=True)
def _meets(band, work, p, square, drift, most):
    """Write how fast a row's form moves, and return how far it is until it reaches its kink, at most ``most``."""
    state = work.state[p]
    if state > INSIDE:
        return most
    speed = inner(band.X[p], work.along) + drift
    if abs(speed) <= STILL * (np.sqrt(band.sqnorms[p] * square) + abs(drift)):
        speed = 0.0
    work.speed[p] = speed
    if state == INSIDE:
        return 0.0 if speed != 0.0 else most
    if (state == 1 and speed > 0.0) or (state == 0 and speed < 0.0):
        return min(most, max(work.t[p] / speed, 0.0))
    return most


@kernel(fastmath=SUMS, leaf=True)
def moved_by(moved, along, step, out, offset, outside, middle, lift):
    """Return how far ``(w, b)`` is from where it began after a ``step`` more, ``out`` of the row's part being gone."""
    square = out * out * outside
    for j in range(at(moved.size)):
        one = moved[j] + step * along[j]
        square += one * one
    if lift > 0.0:
        square += ((offset - out * middle) / lift) ** 2
    return np.sqrt(square)


@kernel(leaf=True)
def _first_row(band, gone, r, work, seen, most, rates, now):
    """Return how far it is until a row reaches its kink, at most ``most``; which one, -1 if none, -2 if the band is too
    short to tell; and how many rows are looked at now.

    ``rates`` are those of the removed row's dual variable and of the intercept, ``now`` what is gone of the one and has
    been added to the other. Rows seen so far are tried first: what they leave of ``most`` says which others to look at.
    """
    square, first, p = gone.sqnorms[r], -1, 0
    while True:
        if p == seen:
            reach = np.inf
            if most < np.inf:
                ahead = now[0] + rates[0] * most, now[1] + rates[1] * most
                reach = WIDER * moved_by(
                    work.moved, work.along, most, *ahead, gone.outside[r], gone.middle[r], band.lift
                )  # fmt: skip
            if seen == band.t.size:
                return most, -2 if band.beyond <= reach and band.beyond < np.inf else first, seen
            if band.ratio[seen] > reach:
                return most, first, seen
            look(band, gone.place[r], gone.twin[r], work, seen)
            work.t[seen] -= inner(band.X[seen], work.moved) + now[1]
            seen += 1
        length = _meets(band, work, p, square, rates[1], most)
        if length < most:
            most, first = length, p
        p += 1


@kernel(leaf=True)
def _go(work, seen, k, border, step):
    """Go a step along the direction."""
    for a in range(border, k):
        work.alpha[work.members[a]] += step * work.share[a]
    add(step, work.along, work.moved)
    for p in range(seen):
        if work.state[p] != MEMBER:
            work.t[p] -= step * work.speed[p]


@kernel(leaf=True)
def _stop(band, work, member, seen):
    """Let a member stay at the end of its box that it has reached; rows that depended on it are looked at again."""
    e, up = work.members[member], work.share[member] > 0.0
    work.alpha[e], work.t[e], work.speed[e] = band.high[e] if up else band.low[e], 0.0, 0.0
    work.state[e] = PARKED
    for p in range(seen):
        if work.state[p] == PARKED:
            work.state[p] = _state(band, work, p)


@kernel(leaf=True, inner=True)
def sign_of(alpha, form):
    """Return from which side a row's dual variable goes to 0 and beyond; if it is 0, from that which its form is on."""
    return 1.0 if alpha > 0.0 or (alpha == 0.0 and form > 0.0) else -1.0


@kernel(leaf=True, inner=True)
def follow(band, gone, r, work, begun, last, form, pieces):
    """Follow a row's dual variable, of which so much is ``left``, to the ``last`` or until the row's form is 0.

    ``begun`` are the members, the rows seen, what is left, and the move of the intercept. Where ``form`` is nan, it has
    no part. Returns how it ended, these four as they are now, the form, and the pieces.
    """
    k, seen, left, offset = begun
    border, sign = 0, sign_of(gone.alpha[r], form)
    if band.lift > 0.0:
        border = 1
    for piece in range(pieces):
        rate, drift = _direction(work, band, gone.X[r], gone.sqnorms[r], sign, k, border)
        speed = inner(gone.X[r], work.along) + drift - sign * rate * gone.outside[r]
        limit = left - last if rate > 0.0 else np.inf
        if form * speed < 0.0:
            limit = min(limit, -form / speed)
        most, member = _first_member(band, work, k, border, limit)
        row = -1
        if rate == 0.0 or work.along.any():
            rates, now = (sign * rate, drift), (gone.alpha[r] - sign * left, offset)
            most, row, seen = _first_row(band, gone, r, work, seen, most, rates, now)
        else:
            work.speed[:seen] = 0.0
        if row == -2:
            return SHORT, k, seen, left, offset, form, piece
        if not most < np.inf:
            return ENDLESS, k, seen, left, offset, form, piece
        left, offset, form = left - rate * most, offset + drift * most, form + speed * most
        _go(work, seen, k, border, most)
        if row >= 0:
            if k + 1 >= work.members.size:
                return FULL, k, seen, left, offset, form, piece
            work.t[row] = work.speed[row] = 0.0
            now = _enter(band, work, row, gone.X[r], k, border)
            if now < 0:
                work.state[row] = PARKED
            k = max(k, now)
        elif member >= 0:
            _stop(band, work, member, seen)
            k = _leave(work, member, k, border)
        else:
            return PROVEN, k, seen, left, offset, form, piece + 1
    return LONG, k, seen, left, offset, form, pieces


@kernel(leaf=True)
def faced(band, members, x, work):
    """Make rows of the band members of a system without any, as far as they are independent; returns their number."""
    k = 0
    if band.lift > 0.0:
        work.members[0], work.products[0], work.gram[0, 0], k = -1, 1.0, 0.0, 1
    border = k
    for p in members:
        now = _enter(band, work, p, x, k, border)
        k = k if now < 0 else now
    return k


@kernel
def solved(work, k, right):
    """Return the solution of the members' system."""
    out = np.empty(k)
    solve(work, k, right, out)
    return out
