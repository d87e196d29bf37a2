"""The unpenalised intercepts of a sparse SVM of several classes, one per class; they sum to 0.

A dual variable of sample ``i`` and class ``c`` is a flow from the sample's own class to ``c``: with the best intercepts
as much flows into each class as out of it, ``sum_i psi_ci = 0`` for every ``c``. For given scores the objective is
convex and piecewise quadratic in the intercepts; its Hessian is the Laplacian of a graph with the classes as nodes and
an edge for each dual variable strictly between 0 and 1. Layout of all arrays: see ``kernels/problem/sparse.py``.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.sparse_intercept import settle
from screenpath.kernels.problem.sparse_samples import Samples, slack_of
from screenpath.kernels.rows.double import accumulate
from screenpath.kernels.rows.newton_system import _factorise, solve_factored

STEPS = 100  # of Newton's method, and of one line search
PART, IDLE = 1e-8, 1  # sums of that part of the weights are lowered by whole steps, until so many do not lower them
UNSURE = 8.0  # a pull counts that is more than so many times the error to be expected of sums of so many terms
NEAR, ALIKE = 0.5, 0.1  # part of its slope to which a line search goes: of a whole Newton step, and of any other


@kernel(fastmath=SUMS)
def slopes(scores, samples, status, b, gradient, hessian):
    """Write the gradient of the summed losses in the intercepts ``b``, and their Hessian times ``gamma``."""
    labels, weights, n, classes, gamma = samples
    gradient[:] = 0.0
    hessian[:, :] = 0.0
    for i in range(n):
        own, weight = labels[i], weights[i]
        base = 1.0 - scores[own * n + i] - b[own]
        out = 0.0
        for c in range(classes):
            k = c * n + i
            if c == own or status[k] < 0:
                continue
            t = base + scores[k] + b[c]
            value = min(max(t / gamma, 0.0), 1.0)
            if status[k] > 0:
                value = 1.0
            elif 0.0 < t < gamma:
                hessian[own, c] -= weight
                hessian[c, own] -= weight
                hessian[own, own] += weight
                hessian[c, c] += weight
            value *= weight
            gradient[c] += value
            out += value
        gradient[own] -= out


@kernel(fastmath=SUMS)
def slope_along(scores, samples, status, b, way):
    """Return the derivative of the summed losses at ``b`` along ``way``, and the second one."""
    labels, weights, n, classes, gamma = samples
    first, second = 0.0, 0.0
    for i in range(n):
        own, weight = labels[i], weights[i]
        base = 1.0 - scores[own * n + i] - b[own]
        for c in range(classes):
            k = c * n + i
            if c == own or status[k] < 0:
                continue
            t, step = base + scores[k] + b[c], way[c] - way[own]
            value = min(max(t / gamma, 0.0), 1.0)
            if status[k] > 0:
                value = 1.0
            elif 0.0 < t < gamma:
                second += weight * (step * step)
            first += weight * (value * step)
    return first, second / gamma


@kernel
def parts_of(hessian, part):
    """Number the connected parts of a Laplacian's graph in ``part``; return how many there are."""
    size, count = part.size, 0
    part[:] = -1
    waiting = np.empty(size, dtype=np.int64)
    for first in range(size):
        if part[first] >= 0:
            continue
        part[first], waiting[0], left = count, first, 1
        while left > 0:
            left -= 1
            k = waiting[left]
            for c in range(size):
                if part[c] < 0 and hessian[k, c] != 0.0:
                    part[c], waiting[left] = count, c
                    left += 1
        count += 1
    return count


@kernel
def line_search(scores, samples, status, b, way, slope, whole, farthest):
    """Return a step along ``way`` at which the derivative is a small part of ``slope < 0``, its value at 0.

    Beyond ``farthest`` nothing changes any more: 0 if the derivative has not risen by then.
    """
    low, high, step = 0.0, np.inf, 1.0
    for count in range(STEPS):
        found, second = slope_along(scores, samples, status, b + step * way, way)
        if abs(found) <= (NEAR if whole and count == 0 else ALIKE) * abs(slope):
            return step
        if found < 0.0 and step > farthest:
            return 0.0
        low, high = (step, high) if found < 0.0 else (low, step)
        ahead = step - found / second if second > 0.0 else (2.0 * step if found < 0.0 else low)
        if not low < ahead < high:
            ahead = 2.0 * step if high == np.inf else low + 0.5 * (high - low)
        if ahead == step or not np.isfinite(ahead):
            break
        step = ahead
    return low if low > 0.0 else step


@kernel
def settle_levels(scores, samples, status, level):
    """Add the best intercepts to the scores; ``level`` holds a guess of them, and is overwritten.

    Newton's method with an exact line search. If the graph falls into parts, these first move against each other as
    a whole, which brings dual variables of two parts between their ends; but not where the pull is only noise, as for
    classes whose weights differ only by rounding. Stops when the sums are only rounding.
    """
    _, weights, n, classes, gamma = samples
    size = 0.0
    for i in range(n):
        size += weights[i]
    small, extent = 4.0 * UNIT * size, 1.0 + np.max(np.abs(scores))
    noise = small + UNSURE * np.sqrt(float(n * classes)) * UNIT * size
    b, best, least, idle, apart = level.copy(), level.copy(), np.inf, 0, False
    gradient, hessian, way = np.empty(classes), np.empty((classes, classes)), np.empty(classes)
    part = np.empty(classes, dtype=np.int64)
    pull, count = np.empty(classes), np.empty(classes)
    for _ in range(STEPS):
        slopes(scores, samples, status, b, gradient, hessian)
        most = np.max(np.abs(gradient))
        # Parts that move may have to meet before anything is lowered.
        idle = 0 if apart or most < least or most > PART * size else idle + 1
        if most < least:
            best[:], least = b, most
        if most <= small or idle > IDLE:
            break
        parts = parts_of(hessian, part)
        pull[:], count[:] = 0.0, 0.0
        for c in range(classes):
            pull[part[c]] += gradient[c]
            count[part[c]] += 1.0
        apart = parts > 1 and np.max(np.abs(pull[:parts])) > noise
        if apart:
            for c in range(classes):
                way[c] = -pull[part[c]] / (size * count[part[c]])
        else:
            peak = 0.0
            for c in range(classes):
                peak = max(peak, hessian[c, c])
            for c in range(classes):
                for k in range(classes):  # within a part a Laplacian has no slope along the ones
                    hessian[c, k] += peak / count[part[c]] if part[c] == part[k] else 0.0
                way[c] = -gamma * (gradient[c] - pull[part[c]] / count[part[c]])
            _factorise(hessian)
            solve_factored(hessian, way)
        slope = 0.0
        for c in range(classes):
            slope += gradient[c] * way[c]
        if not slope < 0.0:
            break
        step = 1.0
        if apart or most > PART * size:
            reach = 4.0 * (extent + np.max(np.abs(b)))  # from here: a step may have led far away, and has to be undone
            step = line_search(scores, samples, status, b, way, slope, not apart, reach / np.max(np.abs(way)))
        if step == 0.0:
            break
        b += step * way
        b -= np.sum(b) / classes
    for c in range(classes):
        level[c] = best[c]
        for i in range(n):
            scores[c * n + i] += best[c]


@kernel
def place(scores, samples, status, level):
    """Add the best intercepts to the scores; they replace the guess in ``level``.

    ``level`` has one entry for each of several classes, one for two classes, and is empty without intercepts.
    """
    if level.size > 1:
        settle_levels(scores, samples, status, level)
    elif level.size == 1:
        level[0] = settle(scores, samples.labels, samples.weights, samples.gamma, status, level[0])


# -- dual points whose flows are in balance ---------------------------------------------------------------------------


@kernel
def excesses(theta, labels, given, classes, found, error):
    """Write each class's outflow minus inflow, and bounds on the errors, with sums in twice the precision."""
    n = labels.size
    rest, size = np.zeros(classes), np.zeros(classes)
    found[:] = 0.0
    for i in range(n):
        own = labels[i]
        for c in range(classes):
            if c == own or theta[c * n + i] == 0.0:
                continue
            value = theta[c * n + i]
            found[own], rest[own] = accumulate(found[own], rest[own], given[i], value)
            found[c], rest[c] = accumulate(found[c], rest[c], given[i], -value)
            size[own] += given[i] * value
            size[c] += given[i] * value
    terms = float(n * classes) + 4.0
    for c in range(classes):
        found[c] += rest[c]
        error[c] = UNIT * abs(found[c]) + 4.0 * terms * terms * UNIT * UNIT * size[c]


@kernel
def nearest_flows(scores, theta, samples, given, least, rows, costs):
    """Write to ``rows``, for each two classes, the dual variable that can let flow ``least`` more from one to the
    other.

    Of several it is the one with the smallest slope of the gap, which ``costs`` receives; -1 and infinity for none.
    """
    labels, _, n, classes, gamma = samples
    rows[:, :] = -1
    costs[:, :] = np.inf
    for i in range(n):
        own = labels[i]
        if given[i] <= 0.0:
            continue
        for c in range(classes):
            if c == own:
                continue
            k = c * n + i
            value = theta[k]
            off = abs(slack_of(scores, own, n, classes, i, k) - gamma * value)
            room = (1.0 - value) * given[i] * (1.0 - 8.0 * UNIT)
            if room >= least and room > 0.0 and off < costs[own, c]:
                costs[own, c], rows[own, c] = off, k
            room = value * given[i] * (1.0 - 8.0 * UNIT)
            if room >= least and room > 0.0 and off < costs[c, own]:
                costs[c, own], rows[c, own] = off, k


def warm_up():
    labels, status = np.array([0, 1, 2], dtype=np.int64), np.zeros(9, dtype=np.int8)
    a, b, square = np.ones(9), np.zeros(3), np.zeros((3, 3))
    samples = Samples(labels, np.ones(3), 3, 3, 0.5)
    place(a.copy(), samples, status, b)
    excesses(a, labels, b, 3, b.copy(), b.copy())
    nearest_flows(a, a, samples, b, 1.0, np.zeros((3, 3), dtype=np.int64), square)
