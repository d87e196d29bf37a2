"""Proofs of the side on which a row lies for all models without it, as numbers that carry over to other values of C.

No best model without row ``i`` has a form of it on one side of 0 if the best of those that have is worse than another:
``P(w') < D(alpha)``, where the dual of the problem with that constraint lets ``alpha_i`` have the other side's sign.
Both are points on the way of the row's removal (``removal``): ``w'`` where ``alpha_i`` is
0, ``alpha`` where the form is 0, or nearer to it.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem.box import UNIT, relative_error
from screenpath.kernels.solve import removal
from screenpath.kernels.solve.removal import follow, inner, moved_by, sign_of, start
from screenpath.kernels.solve.removal_proof import all_seen, distance, example, form_move, shares


class Sides(NamedTuple):
    """What is known of each removal; arrays of shape (m,), moves of shape (m, d), on the columns of the band."""

    side: np.ndarray  # int8: sign of the form
    below: np.ndarray  # upper bound of ``P(w') - D(alpha)``: below 0, the side is proven
    gap: np.ndarray  # upper bound of the gap of the problem without the row, for the pair where its variable is 0
    loss: np.ndarray  # by how much the sum of the other rows' losses, times C, is more than that of ``w.move``
    loss_error: np.ndarray
    away: np.ndarray  # bound on the norm of the error of ``dual_move``
    change: np.ndarray  # of the row's form
    offset: np.ndarray  # of the intercept, as the band counts it
    part: np.ndarray  # of the row's dual variable that is gone where the form is 0
    move: np.ndarray  # of ``w``, to ``w'``
    dual_move: np.ndarray  # of the sum over rows, to that of ``alpha``
    status: np.ndarray  # int8


class Space(NamedTuple):
    alpha: np.ndarray  # shape (B,)
    move: np.ndarray  # shape (d,)


@kernel(leaf=True)
def _difference(band, gone, r, rounding, work, alpha, beta, move, offset, form, seen):
    """Return an upper bound of ``P(w + move) - D(alpha)``, the row's variable being ``beta`` and its form ``form`` at
    ``w + move``, and a bound on the error of the sum over rows, whose move is written to ``work.moved``.
    """
    part = gone.alpha[r] - beta
    balance, sizes, lengths, count = form_move(band, gone.X[r], part, alpha, work, seen, work.moved)
    total = shares(band, work, rounding, alpha, move, 0.0, offset, seen)
    away = rounding.distance
    away += (relative_error(count + 4.0) + rounding.product) * (lengths + abs(part) * np.sqrt(gone.sqnorms[r]))
    if band.lift > 0.0:  # some row takes over what the sum of the dual variables is off by
        residue = rounding.residue + abs(balance) + relative_error(count + 2.0) * sizes
        up = down = np.inf
        longest = 0.0
        for p in range(seen):
            if work.state[p] != removal.GONE:
                up = min(up, work.t[p]) if band.high[p] - alpha[p] > residue else up
                down = min(down, work.t[p]) if alpha[p] - band.low[p] > residue else down
                longest = max(longest, band.sqnorms[p])
        if not max(up, down) < np.inf:
            return np.inf, away
        total += residue * max(up, down)
        away += residue * (np.sqrt(longest) + rounding.shift)
    square = beta * beta * gone.outside[r]
    for j in range(move.size):
        one = move[j] - work.moved[j]
        square += one * one
    off = np.sqrt(square) * (1.0 + 1e-12) + away
    size = total + off * off + abs(beta * form)
    error = (rounding.product + 8.0 * UNIT) * np.sqrt(gone.sqnorms[r]) * np.sqrt(inner(move, move))
    error += 8.0 * UNIT * (abs(form) + abs(offset))
    return total + 0.5 * off * off + beta * form + abs(beta) * error + 1e-14 * size, away


@kernel(leaf=True)
def _losses(band, gone, r, work, rounding, move, offset, seen):
    """Return the change of the other rows' losses, less that of the line of each loss at ``w``, and its error."""
    total, error, moved = 0.0, 0.0, np.sqrt(inner(move, move)) * (1.0 + 1e-12)
    for p in range(seen):
        if work.state[p] != removal.GONE:
            t, off = distance(band, rounding, move, moved, offset, p)
            up, down = band.high[p] - band.alpha[p], band.low[p] - band.alpha[p]
            total += max(up * t, down * t) - max(up * band.t[p], down * band.t[p])
            error += (up - down) * (off + band.errors[p] + 4.0 * UNIT * (abs(t) + abs(band.t[p])))
    return total, error * (1.0 + relative_error(seen + 8.0))


@kernel(leaf=True)
def _copy(source, out, start, stop):
    for j in range(start, stop):
        out[j] = source[j]


@kernel(leaf=True)
def _set_out(band, work, move, offset, seen):
    """Let the way continue from a move of ``w``."""
    _copy(move, work.moved, 0, move.size)
    for p in range(seen):
        if work.state[p] < removal.GONE:
            work.t[p] = band.start[p] - inner(band.X[p], move) - offset


@kernel(leaf=True)
def _side(band, face, gone, r, form, rounding, work, space, found):
    x, alpha, sign = gone.X[r], gone.alpha[r], sign_of(gone.alpha[r], form)
    k, seen = start(band, face, x, gone.place[r], gone.twin[r], work)
    status, left, offset, beta, before, pieces = removal.PROVEN, abs(alpha), 0.0, alpha, seen, 0
    if sign * form > 0.0:
        begun = k, seen, left, offset
        status, k, seen, left, offset, _, pieces = follow(band, gone, r, work, begun, 0.0, form, removal.MOST)
    crossed = left > 0.0
    if crossed and status == removal.PROVEN:  # the form is 0, or on the other side already
        beta, before = sign * left, seen
        _copy(work.alpha, space.alpha, 0, seen)
        begun = k, seen, left, offset
        status, k, seen, left, offset, _, pieces = follow(band, gone, r, work, begun, 0.0, np.nan, removal.MOST)
    if status != removal.PROVEN:
        return status
    form_move(band, x, alpha, work.alpha, work, seen, space.move)
    out, middle = gone.outside[r], gone.middle[r]
    reach = removal.WIDER * moved_by(space.move, space.move, 0.0, alpha, offset, out, middle, band.lift)
    seen = all_seen(band, gone, r, work, reach, seen)
    if seen < 0:
        return removal.SHORT
    change = inner(x, space.move) + offset - alpha * out
    here = form + change
    found.change[r], found.offset[r], found.side[r] = change, offset, 1 if here > 0.0 else -1
    found.loss[r], found.loss_error[r] = _losses(band, gone, r, work, rounding, space.move, offset, seen)
    found.gap[r], found.away[r] = _difference(
        band, gone, r, rounding, work, work.alpha, 0.0, space.move, offset, here, seen
    )
    first = offset
    if crossed:
        _copy(band.alpha, space.alpha, before, seen)
    else:
        _set_out(band, work, space.move, offset, seen)
        begun = k, seen, 0.0, offset
        status, k, after, left, offset, _, _ = follow(band, gone, r, work, begun, -np.inf, here, pieces // 2 + 3)
        if left == 0.0 and status == removal.SHORT:
            return removal.SHORT
        beta, seen = sign * left, after
        _copy(work.alpha, space.alpha, 0, seen)
    found.below[r], away = _difference(band, gone, r, rounding, work, space.alpha, beta, space.move, first, here, seen)
    found.away[r], found.part[r] = max(found.away[r], away), alpha - beta
    _copy(space.move, found.move[r], 0, x.size)
    _copy(work.moved, found.dual_move[r], 0, x.size)
    return removal.PROVEN


@kernel
def sides(band, face, gone, forms, rounding, work, space, found):
    """Prove the side of one row after another, from its ``forms`` in the model of all rows."""
    for r in range(forms.size):
        found.status[r] = _side(band, face, gone, r, forms[r], rounding, work, space, found)


def warm_up():
    (band, face, gone, exact, work), side = example(), np.zeros(2, dtype=np.int8)
    found = Sides(side, *np.empty((8, 2)), band.X.copy(), band.X.copy(), side.copy())
    sides(band, face, gone, band.t, exact, work, Space(band.t.copy(), band.t.copy()), found)
