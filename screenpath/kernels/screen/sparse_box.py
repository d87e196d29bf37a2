r"""Features zeroed over the dual points of the box that the gap of the reference leaves: a one-sided ellipsoid.

The gap ``G`` of any pair ``(w, theta)`` at the new parameter bounds more than a distance. By Fenchel and Young, and
as both objectives curve away from the optimum ``(w*, theta*)`` (``v`` weights of the samples, ``t`` margins of ``w``)

    n G >= sum_i v_i [F(t_i, theta*_i) + gamma/2 (theta*_i - theta_i)^2]
           + n alpha/2 (||w - w*||^2 + ||w_theta - w*||^2),

``F(t, x) = l(t) - x t + gamma/2 x^2 = gamma/2 (x - theta(t))^2 + rho |x - theta(t)|``, ``rho = max(-t, t - gamma, 0)``
(of a loss with the ends ``lo`` and ``hi``: ``max(gamma lo - t, t - gamma hi, 0)``).
The last bracket is at least ``1/2 ||w - w_theta||^2``, which the ``budget`` ``N = n (G - alpha/4 ||w - w_theta||^2)``
leaves out. Where ``theta_i = theta(t_i)``, the term of ``x_i = theta*_i - theta_i`` is ``gamma x_i^2 + rho |x_i|``. A
dual variable at an end of the box moves one way alone, and no farther than some ``room``: to the end of what is
known of it, or to where its own term takes up all of ``N``. So ``rho |x| >= rho/room x^2``, and with
``g = gamma + rho/room``

    sum_i v_i g_i x_i^2 <= N,   x_i >= 0 (t_i < 0),   x_i <= 0 (t_i > gamma).

Over this set a column's sum ``sum v_i a_i x_i`` is at most ``(N sum v_i a_i^2 / g_i)^1/2``, summed over the rows that
can move the way of ``a_i``. Where ``e_i = theta(t_i) - theta_i`` is not 0, the term is at least ``g_i (x_i - h e_i)^2``
with a ``g_i = gamma + rho`` and some ``h`` in [1/2, 1]: the root of ``N`` grows by that of ``sum v_i g_i e_i^2``, and
the variable counts for both ways. A small gamma, whose ball is as large as the box, leaves an ellipsoid that is not.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.sparse import Samples, outward, slack_of

WORTH = 0.1  # share of the features left that the mean weight of the rows must promise, for the columns to be read
SPARED = 2.0  # times the dual variables that the columns left must cost, for these to be looked at


@kernel
def answer(t, gamma, low, high):
    """Return ``theta(t)``, and how far ``t`` is outside of the quadratic zone."""
    return min(max(t / gamma, low), high), max(max(gamma * low - t, t - gamma * high), 0.0)


@kernel
def term(t, gamma, low, high, value, known):
    """Return how much of the budget a dual variable found to be ``known`` uses, being ``value`` in the reference."""
    best, rho = answer(t, gamma, low, high)
    far, apart = known - best, known - value
    return 0.5 * gamma * (far * far + apart * apart) + rho * abs(far)


@kernel
def row_terms(scores, samples, theta, status, lower, upper, budget, slope, room, way):
    """Write how a dual variable's term begins (``slope``: ``rho``), how far it may move, and which way.

    ``lower`` and ``upper`` bound the optimal margins; ``budget`` is ``N`` less the terms of the decided dual variables.
    ``way`` becomes 0 for both ways, ``room`` 0 for a decided variable. All have the shape (classes * n,).

    Returns ``sum v_i g_i e_i^2``; the terms of these variables begin as if ``rho`` were 0.
    """
    labels, weights, n, classes, gamma, kinks, least, most = samples
    spread, below = 0.0, gamma * least
    for i in range(n):
        own, weight = labels[i], weights[i]
        for c in range(classes):
            k = c * n + i
            slope[k], room[k], way[k] = 0.0, 0.0, 0.0
            if status[k] != 0 or weight == 0.0:
                continue
            t = slack_of(scores, own, kinks, n, classes, i, k)
            best, rho = answer(t, gamma, least, most)
            e = best - theta[k]
            high, low = (kinks[i] - lower[k]) / gamma, (kinks[i] - upper[k]) / gamma
            high, low = min(high + 8.0 * UNIT * abs(high), most), max(low - 8.0 * UNIT * abs(low), least)
            if e != 0.0:
                spread += weight * (gamma + rho) * (e * e)
                room[k] = 2.0  # any, as both ways count
            elif rho == 0.0:
                room[k] = max(high - theta[k], theta[k] - low) + 4.0 * UNIT
            else:
                limit = budget / weight
                far = 2.0 * limit / (rho + np.sqrt(rho * rho + 4.0 * gamma * limit)) * (1.0 + 16.0 * UNIT)
                slope[k], way[k] = rho, 1.0 if t < below else -1.0
                left = high - least - 4.0 * UNIT * least if t < below else most - low + 4.0 * UNIT
                room[k] = max(min(far, left), 0.0)
    return spread


@kernel
def row_weights(slope, room, way, labels, weights, n, classes, gamma, status, both, signed):
    """Write the rows' weights in the reach of a column ``x``: ``sum both_i x_i^2 +- sum signed_i x_i |x_i|``.

    Returns the mean of ``both`` over the dual variables that are left, weighted by samples.
    """
    total, left = 0.0, 0.0
    for i in range(n):
        own, weight = labels[i], weights[i]
        sum_both, sum_signed = 0.0, 0.0
        for c in range(classes):
            k = c * n + i
            both[k], signed[k] = 0.0, 0.0
            left += weight if status[k] == 0 else 0.0
            if room[k] == 0.0:
                continue
            if way[k] == 0.0:
                both[k] = weight / gamma
            else:
                both[k] = 0.5 * weight * room[k] / (gamma * room[k] + slope[k])
                signed[k] = way[k] * both[k]
            total += both[k]
            sum_both += both[k]
            sum_signed += signed[k]
            signed[k] *= own if classes == 1 else -1.0  # the row has the sample with this sign in this class
        if classes > 1:
            both[own * n + i], signed[own * n + i] = sum_both, sum_signed
    return total / left if left > 0.0 else 0.0


@kernel(fastmath=SUMS)
def column_reach(data, indices, start, stop, n, both, signed):
    """Return ``sum both_i x_i^2`` and ``sum signed_i x_i |x_i|`` of a column."""
    total, tilt = 0.0, 0.0
    if stop - start == n:
        column = data[start:stop]
        for i in range(n):
            x = np.float64(column[i])
            total += both[i] * (x * x)
            tilt += signed[i] * (x * abs(x))
    else:
        for p in range(at(start), at(stop)):
            x, i = np.float64(data[p]), at(indices[p])
            total += both[i] * (x * x)
            tilt += signed[i] * (x * abs(x))
    return total, tilt


@kernel
def stretch(scores, samples, status, square, size, most):
    """Return the multiple of the weights, from 1 to ``most``, with the smallest objective, within a thousandth.

    ``scores`` are those of the weights, ``square`` is ``alpha ||w||^2`` and ``size`` is ``beta ||w||_1``.
    """
    labels, weights, n, classes, gamma, kinks, least, largest = samples
    low, high = 1.0, most
    for _ in range(10):
        kappa, slope = 0.5 * (low + high), 0.0
        for i in range(n):
            own, pull = labels[i], 0.0
            for c in range(classes):
                k = c * n + i
                if classes > 1 and c == own:
                    continue
                margin = own * scores[i] if classes == 1 else scores[own * n + i] - scores[k]
                value = largest if status[k] > 0 else least
                if status[k] == 0:
                    value = min(max((kinks[i] - kappa * margin) / gamma, least), largest)
                pull += value * margin
            slope -= weights[i] * pull
        if slope / n + kappa * square + size > 0.0:
            high = kappa
        else:
            low = kappa
    return low


@kernel
def promised(sums, move, moved, col_part, live, active, beta, root, mean, n):
    """Return how many of the features left would be zeroed if every row had the ``mean`` weight, and how many are left
    that are not proven active; ``sums`` as in :func:`decide_boxed`.
    """
    u, u_slack, signs = sums
    tried, count = 0, 0
    for f in live:
        if active[f]:
            continue
        tried += 1
        value = outward(u[f] + (move[f] if moved else 0.0), signs[f]) + u_slack[f]
        count += value + root * np.sqrt(max(col_part[f], 0.0) * mean) / n <= beta
    return count, tried


@kernel
def decide_boxed(columns, sums, move, moved, reach, norms, n, beta, extent, slacks, left):
    """Zero features over the one-sided ellipsoid; list them in ``found``. Returns how many, and the values touched.

    ``sums``: column sums with the reference's dual point, bounds on their errors, and signs of weights; ``move``: their
    change by the decided dual variables (read if ``moved``); ``reach``: the rows' weights, both ways and signed, and
    the root of the budget, grown by that of the spread. The rest as in ``sifs.decide_features``.
    """
    (u, u_slack, signs), (both, signed, root), (keep, live, active, found) = sums, reach, left
    data, indices, indptr = columns
    d = indptr.size - 1
    rounding, lost, floor = slacks[1], slacks[3], slacks[4]
    count, touched = 0, 0
    for k in range(live.size):
        f = live[k]
        live[k - count] = f
        if active[f]:
            continue
        value = u[f] + (move[f] if moved else 0.0)
        limit = beta - rounding * (norms[f] * extent + beta) - u_slack[f]
        if outward(value, signs[f]) > limit:
            continue
        base, j = f // d * n, f % d
        start, stop = indptr[j], indptr[j + 1]
        total, tilt = column_reach(data, indices, start, stop, n, both[base : base + n], signed[base : base + n])
        touched += stop - start
        more = lost * total + floor
        up, down = root * np.sqrt(max(total + tilt, 0.0) + more), root * np.sqrt(max(total - tilt, 0.0) + more)
        above, below = value + up / n if signs[f] >= 0 else -np.inf, down / n - value if signs[f] <= 0 else -np.inf
        if max(above, below) <= limit:
            keep[f] = 0
            found[count] = f
            count += 1
    return count, touched


def warm_up():
    a = np.ones(2)
    samples = Samples(np.array([1, -1], dtype=np.int64), a, 2, 1, 0.5, a, 0.0, 1.0)
    stretch(a, samples, np.zeros(2, dtype=np.int8), 1.0, 1.0, 2.0)
