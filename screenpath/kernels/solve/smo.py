"""Pair steps on a compact square of a kernel matrix: one dual variable rises, another falls by as much.

Everything is signless (:mod:`screenpath.kernels.problem.intercept`): ``K_ij = K(x_i, x_j)``, variables ``beta``
between ``lo`` and ``hi``, whose sum stays as it is, and ``t``, the gradient of the dual.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.intercept import best_interval

NEVER = 1e300  # stands for the gradient of a variable that cannot move that way
# Minima and maxima of a loop vectorise only if no number is assumed to be missing; no subscript depends on them.
EXTREMES = {*SUMS, "nnan"}
FLAT = 1e-12  # curvature of a pair at least, over the sum of both values on the diagonal, ...
NOTHING = 1e-300  # ... and where these are 0


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
        low, high = best_interval(t, width, level, 0.0, np.empty(0, dtype=np.int64), np.empty((2, t.size)))
        b = low + 0.5 * (high - low)
    for i in range(t.size):
        left += max((hi[i] - beta[i]) * (t[i] - b), (lo[i] - beta[i]) * (t[i] - b))
    return left, b


@kernel(fastmath=EXTREMES, leaf=True)
def _rising(up):
    """Return the place of the largest number, the first of several, and the number."""
    most, place = -NEVER, 0
    for k in range(up.size):
        most = max(most, up[k])
    for k in range(up.size):
        if up[k] == most:
            place = k
            break
    return place, most


@kernel(fastmath=EXTREMES, leaf=True)
def _falling(row, diagonal, down, own, most, gains):
    """Return the place of the partner with which a variable gains most, that gain, and the least gradient of all.

    Fan, Chen and Lin (2005): the gain to second order.
    """
    least, best, place = NEVER, 0.0, 0
    for k in range(down.size):
        apart, both = max(most - down[k], 0.0), own + diagonal[k]
        gain = apart * apart / max(both - 2.0 * row[k], FLAT * both, NOTHING)
        gains[k] = gain
        best, least = max(best, gain), min(least, down[k])
    for k in range(down.size):
        if gains[k] == best:
            place = k
            break
    return place, best, least


@kernel(fastmath=EXTREMES, leaf=True)
def _step(first, second, move, t, up, down):
    """Move the gradients after one variable has risen by ``move``, another fallen; the rows of the two are given."""
    for k in range(t.size):
        change = move * first[k] - move * second[k]
        t[k] -= change
        up[k] -= change
        down[k] -= change


@kernel
def pairs(K, lo, hi, beta, t, limit, apart):
    """Take up to ``limit`` pair steps, in place; return their number.

    They end when no variable that can rise has a gradient larger by more than ``apart`` than one that can fall.
    """
    size = t.size
    diagonal, up, down, gains = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for k in range(size):
        diagonal[k] = K[k, k]
        up[k] = t[k] if beta[k] < hi[k] else -NEVER
        down[k] = t[k] if beta[k] > lo[k] else NEVER
    for step in range(limit):
        i, most = _rising(up)
        j, gain, least = _falling(K[i], diagonal, down, diagonal[i], most, gains)
        if not most - least > apart or not gain > 0.0:
            return step
        both, rise, fall = diagonal[i] + diagonal[j], hi[i] - beta[i], beta[j] - lo[j]
        move = min((most - down[j]) / max(both - 2.0 * K[i, j], FLAT * both, NOTHING), rise, fall)
        beta[i] = hi[i] if move == rise else min(beta[i] + move, hi[i])
        beta[j] = lo[j] if move == fall else max(beta[j] - move, lo[j])
        _step(K[i], K[j], move, t, up, down)
        for k in (i, j):
            up[k] = t[k] if beta[k] < hi[k] else -NEVER
            down[k] = t[k] if beta[k] > lo[k] else NEVER
    return limit


def warm_up():
    one = np.ones(2)
    slack(one, -one, one, np.zeros(2), True)
    for dtype in (np.float64, np.float32):
        pairs(np.eye(2, dtype=dtype), -one, one, np.zeros(2), one.copy(), 2, 0.0)
