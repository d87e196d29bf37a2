"""Which dual variables of a kernel model are worked on at once; signless, as in :mod:`.smo`."""

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.rows.gram import add_rows_at
from screenpath.kernels.solve.smo import slack


@kernel
def _mark(keys, rows, size, count, marks):
    """Mark ``count`` of the first ``size`` rows, those with the smallest keys, and of equal ones the first."""
    last, left = np.inf, size
    if count < size:
        if count == 0:
            return
        last, left = np.partition(keys[:size], count - 1)[count - 1], count
        for k in range(size):
            left -= keys[k] < last
    for k in range(size):
        if keys[k] < last or (keys[k] == last and left > 0):
            marks[rows[k]] = True
            left -= keys[k] == last


@kernel
def members(t, lo, hi, beta, room, most, low, high):
    """Return the variables inside their box, and ``room`` of either side: at the lower end those with the largest
    gradients, of those above ``low``; at the upper end those with the smallest below ``high``.

    At most ``most`` are returned: of too many inside, as of the others, those that ask most to move.
    """
    keys, rows, sizes = np.empty((3, t.size)), np.empty((3, t.size), dtype=np.int64), np.zeros(3, dtype=np.int64)
    for i in range(t.size):
        rises, falls = beta[i] < hi[i], beta[i] > lo[i]
        if rises and falls:
            kind = 0
        elif rises and t[i] > low:
            kind = 1
        elif falls and not rises and t[i] < high:
            kind = 2
        else:
            continue
        keys[kind, sizes[kind]], rows[kind, sizes[kind]] = -t[i] if kind == 1 else t[i], i
        sizes[kind] += 1
    marks, inside = np.zeros(t.size, dtype=np.bool_), sizes[0]
    if inside + min(sizes[1], room) + min(sizes[2], room) > most:
        inside, room = most // 4, min(room, most // 4)
        _mark(-keys[0], rows[0], sizes[0], inside, marks)
    _mark(keys[0], rows[0], sizes[0], inside, marks)
    for kind in (1, 2):
        _mark(keys[kind], rows[kind], sizes[kind], room, marks)
    return np.flatnonzero(marks)


@kernel
def signless_part(rows, signs, kinks, products, lo, hi, alpha):
    """Return gradients, both ends of the box and dual variables of some rows without their signs, shape (4, m); how
    many are inside their box, and how many at the wrong end of it.
    """
    out, inside, wrong = np.empty((4, rows.size)), 0, 0
    for k in range(rows.size):
        i, sign = rows[k], signs[rows[k]]
        t, one, other, beta = sign * (kinks[i] - products[i]), sign * lo[i], sign * hi[i], sign * alpha[i]
        low, high = min(one, other), max(one, other)
        out[0, k], out[1, k], out[2, k], out[3, k] = t, low, high, beta
        inside += low < beta < high
        wrong += (beta <= low and t > 0.0) or (beta >= high and t < 0.0)
    return out, inside, wrong


@kernel
def violators(t, lo, hi, beta, free, target, besides, known):
    """Return :func:`members` for a round, at least ``besides`` beside those inside, by how much optimality is violated,
    and whether all of them are ``known``; none if these variables' part of the gap is at most ``target``.
    """
    most, least, inside = -np.inf if free else 0.0, np.inf if free else 0.0, 0
    for i in range(t.size):
        rises, falls = beta[i] < hi[i], beta[i] > lo[i]
        most = max(most, t[i]) if rises else most
        least = min(least, t[i]) if falls else least
        inside += rises & falls
    if slack(t, lo, hi, beta, free)[0] <= target or not most > least:
        return np.empty(0, dtype=np.int64), 0.0, True
    found, every = members(t, lo, hi, beta, max(besides, inside // 2) // 2, t.size, least, most), True
    for i in found:
        every &= known[i]
    return found, most - least, every


@kernel
def settle(K, unit, slots, W, moved, beta, t):
    """Move the variables ``W`` to ``moved``, and with them all gradients, by kernel values at ``slots``, in a ``unit``;
    tell whether that changes any.
    """
    places, step, n = np.empty(W.size, dtype=np.int64), np.empty(W.size), 0
    for k in range(W.size):
        places[n], step[n] = slots[W[k]], unit * (moved[k] - beta[W[k]])
        n += step[n] != 0.0
        beta[W[k]] = moved[k]
    change = np.zeros(t.size)
    add_rows_at(K, places[:n], step[:n], slots, change)
    for i in range(t.size):
        t[i] -= change[i]
    return n > 0


def warm_up():
    one, place = np.ones(2), np.arange(2)
    for free in (True, False):
        violators(one, -one, one, np.zeros(2), free, 0.0, 2, one > 0.0)
    members(one, -one, one, np.zeros(2), 1, 2, 0.0, 0.0)
    signless_part(place, one, one, one, -one, one, one)
    for dtype in (np.float64, np.float32, np.int32):
        settle(np.eye(2, dtype=dtype), 1.0, place, place, one, np.zeros(2), one.copy())
