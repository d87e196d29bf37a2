"""The unpenalised intercept of a sparse SVM of two classes, and dual points whose signed sum is 0.

For given scores ``z = X w`` the best intercept ``b`` is a root of ``g(b) = sum_i s_i y_i theta_i``, ``theta_i`` the
dual variable of the margin ``y_i (z_i + b)``: piecewise linear, and never rising. Dual variables that are screened
stay where they are. Layout of all arrays: see ``kernels/problem/sparse.py``.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.sparse import Samples, column_sum
from screenpath.kernels.rows.double import accumulate

STEPS = 200  # of a root search; a bracket that is halved each time has fewer
TIGHT, NEAR = 1e-2, 1e-10  # how far outside the roots their bound may be: of their extent, and of their size


@kernel(fastmath=SUMS, leaf=True)
def signed_sum(z, samples, status, b):
    """Return ``g(b)`` of the scores ``z``, and its fall per unit of ``b``."""
    labels, weights, _, _, gamma, kinks, low, high = samples
    total, slope, least, most = 0.0, 0.0, gamma * low, gamma * high
    for i in range(z.size):
        t = kinks[i] - labels[i] * (z[i] + b)
        value = min(max(t / gamma, low), high)
        inside = status[i] == 0 and least < t < most
        if status[i] != 0:
            value = high if status[i] > 0 else low
        total += labels[i] * (weights[i] * value)
        slope += weights[i] if inside else 0.0
    return total, slope / gamma


@kernel(leaf=True)
def ends(z, samples, status):
    """Return intercepts at which all free dual variables pull up, and at which all pull down, and the weights' sum."""
    weights, kinks, gamma = samples.weights, samples.kinks, samples.gamma
    least, most = gamma * samples.low, gamma * samples.high
    low, high, size = np.inf, -np.inf, 0.0
    for i in range(z.size):
        size += weights[i]
        if status[i] == 0 and weights[i] > 0.0:
            far = max(kinks[i] - least, most - kinks[i])
            low, high = min(low, -far - z[i]), max(high, far - z[i])
    return low, high, size


@kernel(leaf=True)
def root(z, samples, status, guess):
    """Return the best intercept for scores, by Newton's steps in a bracket that halves, and the sum of weights."""
    low, high, size = ends(z, samples, status)
    if not low < high:
        return guess, size
    small = 4.0 * UNIT * size
    b, last = min(max(guess, low), high), 2.0 * (high - low)
    for _ in range(STEPS):
        found, slope = signed_sum(z, samples, status, b)
        if abs(found) <= small:
            break
        low, high = (b, high) if found > 0.0 else (low, b)
        step = found / slope if slope > 0.0 else np.inf
        if abs(step) > 0.5 * last or not low < b + step < high:
            step = low + 0.5 * (high - low) - b
        if b + step == b or not low < b + step < high:
            break
        last, b = abs(step), b + step
    return b, size


@kernel(leaf=True)
def outer(z, side, samples, status, guess):
    """Return a bound of the best intercepts of all scores that ``z`` is not below (``side = 1``): a lower one; else an
    upper one, of all scores that ``z`` is not above.

    It is infinite if no dual variable can change.
    """
    b, size = root(z, samples, status, guess)
    low, high, _ = ends(z, samples, status)
    if not low < high:
        return -side * np.inf
    unsure = 4.0 * (z.size + 16) * UNIT * size
    step = 1e-12 * (1.0 + abs(b))
    inner, beyond = b, b
    while True:
        beyond = b - side * step
        if not low <= beyond <= high:
            beyond = low if side > 0.0 else high
            if not side * signed_sum(z, samples, status, beyond)[0] > unsure:
                return -side * np.inf
            break
        if side * signed_sum(z, samples, status, beyond)[0] > unsure:
            break
        inner, step = beyond, 8.0 * step
    for _ in range(STEPS):
        if abs(beyond - inner) <= TIGHT * abs(inner - b) + NEAR * (1.0 + abs(b)):
            break
        middle = 0.5 * (inner + beyond)
        if side * signed_sum(z, samples, status, middle)[0] > unsure:
            beyond = middle
        else:
            inner = middle
    return beyond


@kernel(leaf=True)
def settle(scores, samples, status, guess):
    """Add the best intercept (any, if there are several) to the scores; return it."""
    b, _ = root(scores, samples, status, guess)
    for i in range(scores.size):
        scores[i] += b
    return b


@kernel(leaf=True)
def level_ends(scores, samples):
    """Return how far the intercept could fall and rise with no dual variable changed: 0 if one is between its ends."""
    labels, weights, _, _, gamma, kinks, low, high = samples
    fall, rise, least, most = np.inf, np.inf, gamma * low, gamma * high
    for i in range(scores.size):
        if weights[i] == 0.0:
            continue
        own = labels[i]
        t = kinks[i] - own * scores[i]
        if least < t < most:
            return 0.0, 0.0
        # `t` falls with a rise of the intercept where the label is +1, and grows where it is -1.
        if t <= least:
            if own > 0:
                fall = min(fall, least - t)
            else:
                rise = min(rise, least - t)
        elif own > 0:
            rise = min(rise, t - most)
        else:
            fall = min(fall, t - most)
    return fall, rise


@kernel(leaf=True)
def excess(theta, labels, given):
    """Return ``sum_i given_i y_i theta_i`` and a bound on its error: products and sums in twice the precision."""
    total, rest, size, n = 0.0, 0.0, 0.0, float(theta.size)
    for i in range(theta.size):
        total, rest = accumulate(total, rest, given[i], labels[i] * theta[i])
        size += abs(given[i] * theta[i])
    return total + rest, UNIT * abs(total + rest) + 4.0 * (n + 4.0) * (n + 4.0) * UNIT * UNIT * size


@kernel(leaf=True)
def nearest(scores, theta, samples, given, found, least):
    """Return the row that can take ``-found`` of the signed sum at the smallest loss, -1 for none; and that loss.

    The sign of ``found`` tells whether the sum has to fall or to rise; a row must be able to take at least ``least``.
    """
    labels, _, _, _, gamma, kinks, low, high = samples
    best, cost = -1, np.inf
    for i in range(theta.size):
        if given[i] <= 0.0:
            continue
        down = (labels[i] > 0) == (found > 0.0)
        room = theta[i] - low if down else high - theta[i]
        if room * given[i] * (1.0 - 8.0 * UNIT) < least or room == 0.0:
            continue
        off = abs(kinks[i] - labels[i] * scores[i] - gamma * theta[i])
        if off < cost or (off == cost and given[i] > given[best]):
            best, cost = i, off
    return best, cost


@kernel(leaf=True)
def plane_sums(theta, samples, status, kink_part, theta_part, planes):
    """Write the weights that can still answer, a bound of all signed sums, and those of both dual centres."""
    labels, weights, n, kinks = samples.labels, samples.weights, samples.n, samples.kinks
    left, whole, first, second = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        whole += weights[i] * max(1.0, abs(kinks[i]))
        left += weights[i] if status[i] == 0 else 0.0
        first += labels[i] * weights[i] * (kink_part * kinks[i] + theta_part * theta[i])
        second += labels[i] * weights[i] * theta[i]
    planes[0], planes[1], planes[2], planes[3] = left, whole, first, second


@kernel
def keep_totals(columns, samples, status, live, col_total):
    """Sum the columns of the surviving features, active ones too, over the surviving dual variables; return the values
    touched.

    The squared norms may cover more dual variables than survive, which is safe. If the sums did too, the mean could
    subtract too much and make the norms too small.
    """
    (data, indices, indptr), n, touched = columns, samples.n, 0
    left = np.zeros(n)
    for i in range(n):
        left[i] = samples.weights[i] if status[i] == 0 else 0.0
    for f in live:
        start, stop = indptr[f], indptr[f + 1]
        col_total[f] = column_sum(data, indices, start, stop, n, left)
        touched += stop - start
    return touched


@kernel(leaf=True)
def centred(col_part, col_total, moved, move_first, move_second, planes, n, part, first, second):
    """Write column norms and moves of the dual centres within the plane of the points whose signed sum is right.

    The weights of the surviving dual variables, ``planes[0]``, are all that can still answer: the centres have signed
    sums, which these must take, each by as much; a column then counts by its distance from its mean over them.
    """
    left, _, sigma_first, sigma_second = planes
    for f in range(part.size):
        total = col_total[f]
        mean = total / left if left > 0.0 else 0.0
        part[f] = max(col_part[f] - total * mean, 0.0)
        first[f] = (move_first[f] if moved else 0.0) - sigma_first * mean / n
        second[f] = (move_second[f] if moved else 0.0) - sigma_second * mean / n


@kernel(inner=True)
def with_intercepts(lower, upper, samples, status, rounding):
    """Move bounds on margins, of scores without the free intercept, by the bounds of that.

    The best intercepts for all scores at their upper ends and for all at their lower ends bound the optimal one.
    """
    labels, n = samples.labels, samples.n
    least, most = np.empty(n), np.empty(n)
    for i in range(n):
        least[i], most[i] = (lower[i], upper[i]) if labels[i] > 0 else (-upper[i], -lower[i])
    low = outer(most, 1.0, samples, status, 0.0)
    high = outer(least, -1.0, samples, status, 0.0)
    low -= rounding * abs(low)
    high += rounding * abs(high)
    for i in range(n):
        lower[i] += low if labels[i] > 0 else -high
        upper[i] += high if labels[i] > 0 else -low


def warm_up():
    labels, status = np.array([1, -1], dtype=np.int64), np.zeros(2, dtype=np.int8)
    a = np.ones(2)
    samples = Samples(labels, a, 2, 1, 0.5, a, 0.0, 1.0)
    settle(a.copy(), samples, status, 0.0)
    level_ends(a, samples)
    excess(a, labels, a)
    nearest(a, a, samples, a, 1.0, 0.0)
