"""Greedy pair steps on the dual of a box problem whose signed sum stays as it is: kernel models with a free intercept.

The equality ``sum s_i alpha_i = rest`` leaves no coordinate that could move alone. In each step one signless dual
variable rises and another falls by as much: LIBSVM's choice of the two by second-order gain (Fan, Chen and Lin 2005),
with the leaps of :mod:`screenpath.kernels.solve.smo`, which leave a sum alone too.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.intercept import best_interval
from screenpath.kernels.rows.gram import row_of
from screenpath.kernels.solve.smo import WINDOW, largest, leap


@kernel
def free_slack(t, signs, lo, hi, alpha):
    """Return these coordinates' part of the gap at the intercept that is best for them, and that intercept.

    The part is ``min_b sum_i phi_i(t_i - s_i b) - alpha_i (t_i - s_i b)``.
    """
    beta, width, level, total = np.empty(t.size), np.empty(t.size), 0.0, 0.0
    for i in range(t.size):
        beta[i], width[i] = signs[i] * t[i], hi[i] - lo[i]
        level += hi[i] - alpha[i] if signs[i] > 0.0 else alpha[i] - lo[i]
        total += width[i]
    if not total > 0.0:
        return 0.0, 0.0
    low, high = best_interval(beta, width, level, 0.0, np.empty(0, dtype=np.int64), np.empty((2, beta.size)))
    b, left = low + 0.5 * (high - low), 0.0
    for i in range(t.size):
        moved = t[i] - signs[i] * b
        left += max((hi[i] - alpha[i]) * moved, (lo[i] - alpha[i]) * moved)
    return left, b


@kernel(fastmath=SUMS)
def smo_free(square, diagonal, signs, lo, hi, alpha, t, limit, target):
    """Take up to ``limit`` steps of two coordinates each, in place; return their number.

    ``target`` is compared with :func:`free_slack`; other parameters are those of :func:`.smo.smo`. The sum of
    ``signs * alpha`` is kept.
    """
    size = t.size
    every, window = max(size // 4, 16), WINDOW * size
    gains = np.empty(size)
    before, gradient = alpha.copy(), t.copy()  # where the last leap has ended
    for step in range(limit):
        if step > 0 and step % window == 0:
            leap(lo, hi, alpha, t, before, gradient)
        if step % every == 0 and free_slack(t, signs, lo, hi, alpha)[0] <= target:
            return step
        least = np.inf  # signless gradient of those that can fall
        for k in range(size):
            room = alpha[k] - lo[k] if signs[k] > 0.0 else hi[k] - alpha[k]
            d = signs[k] * t[k]
            least = d if room > 0.0 and d < least else least
        for k in range(size):
            room = hi[k] - alpha[k] if signs[k] > 0.0 else alpha[k] - lo[k]
            gains[k] = max(signs[k] * t[k] - least, 0.0) if room > 0.0 else 0.0
        i = largest(gains)
        if i < 0:
            return step
        row, di, qi, si = row_of(square, i), signs[i] * t[i], diagonal[i], signs[i]
        for k in range(size):
            room = alpha[k] - lo[k] if signs[k] > 0.0 else hi[k] - alpha[k]
            above, both = max(di - signs[k] * t[k], 0.0), qi + diagonal[k]
            curvature = max(both - 2.0 * si * signs[k] * row[k], 1e-12 * both)
            gains[k] = above * above / curvature if room > 0.0 else 0.0
        j = largest(gains)
        if j < 0:
            return step
        sj, both = signs[j], qi + diagonal[j]
        rise = hi[i] - alpha[i] if si > 0.0 else alpha[i] - lo[i]
        fall = alpha[j] - lo[j] if sj > 0.0 else hi[j] - alpha[j]
        move = (di - sj * t[j]) / max(both - 2.0 * si * sj * row[j], 1e-12 * both)
        second = row_of(square, j)
        if move >= rise and rise <= fall:
            move = rise
            alpha[i] = hi[i] if si > 0.0 else lo[i]
        else:
            move = min(move, fall)
            alpha[i] = min(max(alpha[i] + si * move, lo[i]), hi[i])
        if move == fall:
            alpha[j] = lo[j] if sj > 0.0 else hi[j]
        else:
            alpha[j] = min(max(alpha[j] - sj * move, lo[j]), hi[j])
        first, other = si * move, sj * move
        for k in range(size):
            t[k] -= first * row[k] - other * second[k]
    return limit


def warm_up():
    one, signs = np.ones(2), np.array([1.0, -1.0])
    free_slack(one, signs, -one, one, np.zeros(2))
    for dtype in (np.float64, np.float32):
        filled, index = np.zeros(2, dtype=np.int8), np.arange(2)
        square = np.eye(2, dtype=dtype), index, np.empty((2, 2)), filled
        smo_free(square, one, signs, -one, one, np.zeros(2), one.copy(), 2, 0.0)
