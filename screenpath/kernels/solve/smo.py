"""Pair steps on a compact square of a kernel matrix: one dual variable rises, another falls by as much.

Everything is signless (:mod:`screenpath.kernels.problem.intercept`): ``K_ij = K(x_i, x_j)``, variables ``beta``
between ``lo`` and ``hi``, whose sum stays as it is, and ``t``, the gradient of the dual.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.intercept import best_interval

FLAT = 1e-12  # curvature of a pair at least, over the sum of both values on the diagonal, ...
NOTHING = 1e-300  # ... and where these are 0
SLIGHT, LEAST = np.float32(1e-7), np.float32(1e-36)  # the same, where a pair is chosen
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
FINE = np.float32(1e-3)  # violations below this are seen in smaller units
PART = 128  # numbers whose maximum is taken at a time
NEVER = np.float32(-1e15)  # stands for the gradient of a variable that cannot move that way


@kernel
def slack(t, lo, hi, beta, free):
    """Return these variables' part of the gap at the intercept that is best for them, and that intercept.

    The part is ``min_b sum_i max(lo_i (t_i - b), hi_i (t_i - b)) - beta_i (t_i - b)``; ``b`` is 0 unless ``free``.
    """
    b, left, level, width = 0.0, 0.0, 0.0, hi - lo
    if free:
        total = 0.0
        for i in range(t.size):
            level += hi[i] - beta[i]
            total += width[i]
        if not total > 0.0:
            return 0.0, 0.0
        likely = np.flatnonzero((lo < beta) & (beta < hi))
        low, high = best_interval(t, width, level, 0.0, likely, np.empty((2, t.size)))
        b = low + 0.5 * (high - low)
    for i in range(t.size):
        left += max((hi[i] - beta[i]) * (t[i] - b), (lo[i] - beta[i]) * (t[i] - b))
    return left, b


@kernel(leaf=True)
def _largest(bits):
    """Return the place of the largest number, the first of several, given the bits of float32 numbers.

    These are in the order of the numbers above 0, and below 0 for numbers below 0. Unlike that of numbers, their
    maximum is a loop that vectorises; the search for its place does not, and is that of one part.
    """
    most, first = bits[0], 0
    for start in range(0, bits.size, PART):
        part = bits[start : start + PART]
        largest = part[0]
        for k in range(part.size):
            largest = max(largest, part[k])
        if largest > most:
            most, first = largest, start
    part = bits[first : first + PART]
    for k in range(part.size):
        if part[k] == most:
            return first + k
    return 0


@kernel(fastmath=SUMS, leaf=True)
def _gains(row, unit, diagonal, down, own, top, gains):
    """Write what a variable gains with each partner, to second order (Fan, Chen and Lin 2005)."""
    for k in range(down.size):
        apart, both = max(top + down[k], ZERO), own + diagonal[k]
        gains[k] = apart * apart / max(both - TWO * np.float32(row[k] * unit), SLIGHT * both, LEAST)


@kernel(fastmath=SUMS, leaf=True)
def _step(first, second, move, t, ends, scale, up, down, rises, falls):
    """Move the gradients after one variable has risen by ``move``, another fallen; the rows of the two are given."""
    for k in range(t.size):
        t[k] -= move * first[k] - move * second[k]
    _see(t, ends, scale, up, down, rises, falls)


@kernel(fastmath=SUMS, leaf=True)
def _see(t, ends, scale, up, down, rises, falls):
    """Write by how much each gradient is above the lower and below the upper end, as far as its variable may move."""
    least, most = ends
    for k in range(t.size):
        up[k] = np.float32((t[k] - least) * scale) + rises[k]
        down[k] = np.float32((most - t[k]) * scale) + falls[k]


@kernel(leaf=True)
def _ends(t, rises, falls):
    """Return the least gradient of a variable that can fall, and the largest of one that can rise."""
    least, most = np.inf, -np.inf
    for k in range(t.size):
        most = max(most, t[k]) if rises[k] == ZERO else most
        least = min(least, t[k]) if falls[k] == ZERO else least
    return least, most


@kernel
def pairs(K, lo, hi, beta, t, limit, apart):
    """Take up to ``limit`` pair steps, in place; return their number.

    They end when no variable that can rise has a gradient larger by more than ``apart`` than one that can fall. Pairs
    are chosen in float32, in units of a violation not long ago and of the largest value on the diagonal.
    """
    size, unit = t.size, np.zeros(1, dtype=K.dtype)
    diagonal, gains = np.empty(size, dtype=np.float32), np.empty(size, dtype=np.float32)
    up, down = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
    rises, falls = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
    for k in range(size):
        unit[0] = max(unit[0], K[k, k])
        rises[k] = ZERO if beta[k] < hi[k] else NEVER
        falls[k] = ZERO if beta[k] > lo[k] else NEVER
    unit[0] = 1.0 / unit[0] if unit[0] > 0.0 else 1.0
    for k in range(size):
        diagonal[k] = K[k, k] * unit[0]
    ends, scale = (0.0, 0.0), 0.0
    for step in range(limit):
        i, low = _largest(up.view(np.int32)), _largest(down.view(np.int32))
        if not scale * apart < up[i] - ONE + down[low] > FINE:
            ends = _ends(t, rises, falls)
            if not ends[1] - ends[0] > apart:
                return step
            scale = 1.0 / (ends[1] - ends[0])
            _see(t, ends, scale, up, down, rises, falls)
            i = _largest(up.view(np.int32))
        top = up[i] - ONE
        _gains(K[i], unit[0], diagonal, down, diagonal[i], top, gains)
        gains[i] = ZERO  # a row of zeros has no curvature: what rounding leaves of its distance from itself would win
        j = _largest(gains.view(np.int32))
        while gains[j] > ZERO and not t[i] > t[j]:  # nor has its distance from another one with the same gradient
            gains[j] = ZERO
            j = _largest(gains.view(np.int32))
        both, rise, fall = float(K[i, i]) + float(K[j, j]), hi[i] - beta[i], beta[j] - lo[j]
        move = min((t[i] - t[j]) / max(both - 2.0 * float(K[i, j]), FLAT * both, NOTHING), rise, fall)
        if not move > 0.0:
            return step
        beta[i] = hi[i] if move == rise else min(beta[i] + move, hi[i])
        beta[j] = lo[j] if move == fall else max(beta[j] - move, lo[j])
        for k in (i, j):
            rises[k] = ZERO if beta[k] < hi[k] else NEVER
            falls[k] = ZERO if beta[k] > lo[k] else NEVER
        _step(K[i], K[j], move, t, ends, scale, up, down, rises, falls)
    return limit


def warm_up():
    one = np.ones(2)
    slack(one, -one, one, np.zeros(2), True)
    for dtype in (np.float64, np.float32):
        pairs(np.eye(2, dtype=dtype), -one, one, np.zeros(2), one.copy(), 2, 0.0)
