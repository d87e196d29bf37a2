r"""Features zeroed by a move of their weight: the rule of losses whose dual has no curvature, and of L1 alone.

With the ``t`` of any weights ``w``, any ``theta`` of the box, and ``G`` no less than ``P(w) - D*``, every dual optimum
obeys, for every step ``eta > 0`` and both signs (Fenchel and Young, row by row, at the point that is moved to)

    eta n (+-u*_j) <= n G + eta n (+-u_j) + A(eta),   A = sum_i s_i [F(t_i +- eta g_ij, theta_i) - F(t_i, theta_i)],

``u = G's theta / n`` and ``F`` the share of a row (``kernels/problem/share.py``). A feature has no weight if both sides
stay below ``beta``: if ``H(eta) = n G + A(eta) - eta n r``, ``r = beta - (+-u_j)``, is not above 0 somewhere. ``H`` is
convex and begins at ``n G``, so that Newton's steps from the left meet its first root, or pass its lowest point.
Without curvature the best step makes this the fractional knapsack: entries of ``theta*`` leave their end in the order
of ``|g_ij| / |t_i|`` until ``n G`` is spent. A free intercept asks for ``sum s_i y_i theta*_i = 0``, so that any ``m``
may be added to a column: ``+-(u_j + m sigma)`` takes the place of ``+-u_j``, ``n sigma`` the signed sum of ``theta``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel

TRIES = 12  # steps that are tried for a side of a feature
BEYOND = 1.0 + 1e-9  # of a Newton step: what rounding leaves of a root lies behind it
PROBES, WORTH = 32, 0.5  # features that are tried first, and the share of them that makes others worth the pass


class Move(NamedTuple):
    """The pair that is moved, numbers for each row, and its losses."""

    t: np.ndarray
    theta: np.ndarray
    shares: np.ndarray  # ``s_i F(t_i, theta_i)``, or 0 as the weights
    weights: np.ndarray  # ``s_i``; 0 where a dual variable is known to be what it is
    labels: np.ndarray
    budget: float  # ``n G``, and what rounding does to ``A``
    blur: float  # relative error of a sum of shares
    whole: float  # sum of the shares
    losses: tuple  # gamma, its inverse, low and high


@kernel(forceinline=True, leaf=True)
def moved(i, step, move):
    """Return the share of row ``i`` where its ``t`` is moved by ``step``, and its slope."""
    (gamma, inverse, low, high), t, theta = move.losses, move.t[i] + step, move.theta[i]
    best = min(max(t * inverse, low), high)
    apart = best - theta
    return move.weights[i] * (abs(apart) * (abs(t - gamma * best) + 0.5 * gamma * abs(apart))), move.weights[i] * apart


@kernel(fastmath=SUMS, leaf=True)
def rise(view, j, eta, mean, move):
    """Return an upper bound of ``A`` where the weight of feature ``j`` is moved by ``eta``, and its slope.

    ``mean`` is added to a column that stores all its values.
    """
    data, indices, indptr = view
    after, before, slope, labels = 0.0, 0.0, 0.0, move.labels
    start, stop = indptr[j], indptr[j + 1]
    if stop - start == labels.size:
        column, before = data[start:stop], move.whole
        for i in range(labels.size):
            g = labels[i] * (column[i] + mean)
            here, tilt = moved(i, eta * g, move)
            after += here
            slope += tilt * g
    else:
        for p in range(at(start), at(stop)):
            i = at(indices[p])
            g = labels[i] * data[p]
            here, tilt = moved(i, eta * g, move)
            after += here
            before += move.shares[i]
            slope += tilt * g
    return after - before + move.blur * (after + before), slope


@kernel(leaf=True)
def stays_below(view, j, side, room, mean, move):
    """Tell whether ``side u*_j`` is surely below ``beta``, ``room`` above ``side u_j``; and the passes that it took."""
    n = move.t.size
    if not room > 0.0:
        return False, 0
    eta = move.budget / (n * room)
    for k in range(TRIES):
        found, slope = rise(view, j, side * eta, mean, move)
        height, fall = move.budget + found - eta * n * room, n * room - side * slope
        if height <= 0.0:
            return True, k + 1
        if not fall > 0.0:
            return False, k + 1
        eta += BEYOND * height / fall
    return False, TRIES


@kernel(leaf=True)
def gone(view, j, u, limits, signs, move, means, sigma):
    """Tell whether feature ``j`` surely has no weight; and the passes over its column."""
    mean = means[j] if view[2][j + 1] - view[2][j] == move.t.size else 0.0
    value, total = u[j] + mean * sigma, 0
    for side in (1.0, -1.0):
        if side * signs[j] >= 0.0:
            good, passes = stays_below(view, j, side, limits[j] - side * value, mean, move)
            total += passes
            if not good:
                return False, total
    return True, total


@kernel(leaf=True)
def decide_moved(view, u, limits, signs, move, means, sigma, keep):
    """Zero features by a move; return how many, and the values touched.

    ``limits``: ``beta`` less what is not known of ``u``; ``means``, ``sigma``: what is added to the columns, and the
    signed sum of ``theta`` over n. Where few of the features that are tried first can be zeroed, others are not tried.
    """
    count, touched, indptr, every = 0, 0, view[2], max(u.size // PROBES, 1)
    for turn in range(2):
        tried = 0
        for j in range(0, u.size, every if turn == 0 else 1):
            if keep[j] == 0 or (turn == 1 and j % every == 0):
                continue
            good, passes = gone(view, j, u, limits, signs, move, means, sigma)
            touched += passes * (indptr[j + 1] - indptr[j])
            tried += 1
            if good:
                keep[j] = 0
                count += 1
        if turn == 0 and count < WORTH * tried:
            break
    return count, touched


def warm_up():
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    a, keep = np.ones(2), np.ones(2, dtype=np.int8)
    decide_moved(view, a, a, keep, Move(a, a, a, a, a, 1.0, 0.0, 1.0, (0.5, 2.0, 0.0, 1.0)), a, 0.0, keep.copy())
