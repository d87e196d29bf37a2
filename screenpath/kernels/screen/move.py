r"""Features zeroed by a move of their weight: the most that the gap leaves of their column's sum with a dual point.

With the ``t`` of weights ``w``, ``x_i = theta*_i`` of any dual optimum, and ``G`` no less than ``P(w) - D*``, Fenchel
and Young bound the shares ``F`` of the rows (``kernels/problem/share.py``) by ``sum_i s_i F(t_i, x_i) <= n G``. With
an L2 term and a dual point ``theta`` the gap of the pair also bounds how far that is from the optimum,

    sum_i s_i [F(t_i, x_i) + e/2 (x_i - theta_i)^2] <= N = n (G - alpha/4 ||w - w_theta||^2),   e = gamma,

as both objectives curve away from it (without the term ``e = 0`` and ``N = n G``, for any ``theta`` of the box). The
bracket is the share of ``x_i`` at ``t_i + e theta_i`` with the curvature ``gamma + e``, ``F+`` below, but for a
constant. So for every step ``eta > 0`` and both signs

    eta n (+-u*_j) <= N + eta n (+-u_j) + sum_i s_i [F+(t_i + e theta_i +- eta g_ij, theta_i) - F(t_i, theta_i)],

``u = G's theta / n``. A feature has no weight if both sides stay below ``beta``: if ``H(eta) = N + A(eta) - eta n r``,
``r = beta - (+-u_j)`` and ``A`` the last sum, is not above 0 somewhere. ``H`` is convex, so that Newton's steps from
the left meet its first root, or pass its lowest point. The best step gives the exact maximum of ``+-u*_j`` under that
bound, and so never less than the ball of the same gap, however small ``gamma`` is.
Without curvature it is the fractional knapsack: entries of ``theta*`` leave their end in the order of ``|g_ij| /
|t_i|`` until ``N`` is spent. A free intercept asks for ``sum s_i y_i theta*_i = 0``, so that any ``m`` may be added to
a column: ``+-(u_j + m sigma)`` takes the place of ``+-u_j``, ``n sigma`` the signed sum of ``theta``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.share import share, step_share
from screenpath.kernels.problem.sparse import Samples, slack_of

TRIES = 12  # steps that are tried for a side of a feature
BEYOND = 1e-9  # part of a step that a Newton step goes on: what rounding leaves of a root lies behind it
PROBES, WORTH = 32, 0.5  # features that are tried first, and the share of them that makes others worth the pass


class Move(NamedTuple):
    """The pair that is moved, numbers for each dual variable, of shape (classes * n,), and the losses."""

    t: np.ndarray  # ``t_i + e theta_i``
    theta: np.ndarray
    shares: np.ndarray  # ``s_i F+`` there, or 0 as the weights
    sums: np.ndarray  # of shape (classes,): of the shares of a class
    weights: np.ndarray  # ``s_i``; 0 where a dual variable is known to be what it is
    signs: np.ndarray  # of the rows: the labels, or -1 for all of several classes
    labels: np.ndarray  # int64 of shape (n,)
    budget: float  # ``N`` less what the rows take without a move, and what rounding does to ``A``
    blur: float  # relative error of a sum of shares
    losses: tuple  # curvature, its inverse, low and high


@kernel
def pair_to_move(scores, samples, theta, status, more, budget, blur):
    """Return the pair of weights with these scores and of ``theta``; ``more`` is ``e``, ``budget`` is ``N`` with what
    the errors of the scores do to it.

    ``status`` is not 0 for dual variables that are at their end in ``theta`` as in every optimum.
    """
    labels, weights, n, classes, gamma, kinks, low, high = samples
    t, shares, given, signs = np.empty(theta.size), np.zeros(theta.size), np.zeros(theta.size), np.empty(theta.size)
    curve = gamma + more
    sums, before, size, mass = np.zeros(classes), 0.0, 0.0, 0.0
    for c in range(classes):
        for i in range(n):
            k = c * n + i
            here = slack_of(scores, labels[i], kinks, n, classes, i, k)
            t[k], signs[k] = here + more * theta[k], labels[i] if classes == 1 else -1.0
            if status[k] == 0:
                given[k] = weights[i]
                shares[k] = weights[i] * share(theta[k], t[k], low, high, curve, 0.0)
                before += weights[i] * share(theta[k], here, low, high, gamma, 0.0)
                sums[c] += shares[k]
                size += weights[i] * (t[k] * t[k])
                mass += weights[i]
    whole = sums.sum()
    unsure = 16.0 * UNIT * (high - low) * np.sqrt(mass * size) + blur * (before + whole)
    rest = budget - (before - whole) + unsure
    return Move(t, theta, shares, sums, given, signs, labels, rest, blur, (curve, 1.0 / curve, low, high))


@kernel(forceinline=True, leaf=True)
def moved(i, step, move):
    """Return the share of row ``i`` where its ``t`` is moved by ``step``, and its slope."""
    (curve, inverse, low, high), t, theta = move.losses, move.t[i] + step, move.theta[i]
    best = min(max(t * inverse, low), high)
    return move.weights[i] * step_share(theta, t, best, low, high, curve), move.weights[i] * (best - theta)


@kernel(fastmath=SUMS, leaf=True)
def rise(view, f, eta, mean, move):
    """Return a bound of ``A`` and its slope for a move of feature ``f`` by ``eta``; full columns grow by ``mean``."""
    (data, indices, indptr), n = view, move.labels.size
    d = indptr.size - 1
    c = f // d
    start, stop = indptr[f - c * d], indptr[f - c * d + 1]
    base, full = at(c * n), stop - start == n
    after, before, slope, signs = 0.0, 0.0, 0.0, move.signs
    if full:
        column, before = data[start:stop], move.sums[c]
        for i in range(n):
            g = signs[base + at(i)] * (column[i] + mean)
            here, tilt = moved(base + at(i), eta * g, move)
            after += here
            slope += tilt * g
    else:
        for p in range(at(start), at(stop)):
            k = base + at(indices[p])
            g = signs[k] * data[p]
            here, tilt = moved(k, eta * g, move)
            after += here
            before += move.shares[k]
            slope += tilt * g
    if move.t.size > n:  # a sample of the class itself has a dual variable for each of the others
        for p in range(at(start), at(stop)):
            i = p - at(start) if full else at(indices[p])
            for k in range(i if move.labels[i] == c else move.t.size, move.t.size, n):
                g = np.float64(data[p])
                here, tilt = moved(k, eta * g, move)
                after += here
                before += move.shares[k]
                slope += tilt * g
    return after - before + move.blur * (after + before), slope


@kernel(leaf=True)
def stays_below(view, j, side, room, mean, move):
    """Tell whether ``side u*_j`` is surely below ``beta``, ``room`` above ``side u_j``; and the passes that it took.

    The first step decides at once where ``A`` is a square. Then tangents of ``H``, which is above them, lead to a root
    from one side, or from both to where it is lowest, unless they meet above 0.
    """
    n, left, right = move.labels.size, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if not room > 0.0:
        return False, 0
    eta = 2.0 * move.budget / (n * room)
    for k in range(TRIES):
        found, slope = rise(view, j, side * eta, mean, move)
        height, fall = move.budget + found - eta * n * room, n * room - side * slope
        if height <= 0.0:
            return True, k + 1
        if fall > 0.0:
            left = eta, height, fall
        elif fall < 0.0:
            right = eta, height, fall
        else:  # also what is no number
            return False, k + 1
        eta = (eta + height / fall) * (1.0 + BEYOND if fall > 0.0 else 1.0 - BEYOND)
        if left[0] > 0.0 and right[0] > 0.0:
            apart = (left[1] - right[1] + right[2] * (left[0] - right[0])) / (left[2] - right[2])
            eta = left[0] + apart if left[2] * apart >= left[1] else 0.0
        if not eta > 0.0:
            return False, k + 1
    return False, TRIES


@kernel(leaf=True)
def gone(view, j, u, limits, signs, move, means, sigma):
    """Tell whether feature ``j`` surely has no weight; and the passes over its column."""
    d = view[2].size - 1
    mean = means[j] if view[2][j % d + 1] - view[2][j % d] == move.labels.size else 0.0
    value, total = u[j] + mean * sigma, 0
    for side in (1.0, -1.0):
        if side * signs[j] >= 0.0:
            good, passes = stays_below(view, j, side, limits[j] - side * value, mean, move)
            total += passes
            if not good:
                return False, total
    return True, total


@kernel(leaf=True)
def decide_moved(view, u, limits, signs, move, means, sigma, worth, keep):
    """Zero features by a move; return how many, and the values touched.

    ``limits``: ``beta`` less what is not known of ``u``; ``means``, ``sigma``: what is added to the columns, and the
    signed sum of ``theta`` over n. Where less than the share ``worth`` of the features that are tried first can be
    zeroed, others are not tried.
    """
    count, touched, indptr, d, every = 0, 0, view[2], view[2].size - 1, max(u.size // PROBES, 1)
    for turn in range(2):
        tried = 0
        for j in range(0, u.size, every if turn == 0 else 1):
            if keep[j] == 0 or (turn == 1 and j % every == 0):
                continue
            good, passes = gone(view, j, u, limits, signs, move, means, sigma)
            touched += passes * (indptr[j % d + 1] - indptr[j % d])
            tried += 1
            if good:
                keep[j] = 0
                count += 1
        if turn == 0 and count < worth * tried:
            break
    return count, touched


@kernel(leaf=True)
def stretch(scores, samples, status, square, size, most):
    """Return the multiple of the weights, from 1 to ``most``, of the least objective, within a thousandth."""
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


def warm_up():
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    a, keep, status = np.ones(2), np.ones(2, dtype=np.int8), np.zeros(2, dtype=np.int8)
    samples = Samples(np.array([1, -1], dtype=np.int64), a, 2, 1, 0.5, a, 0.0, 1.0)
    move = pair_to_move(a, samples, a, status, 0.5, 1.0, 0.0)
    decide_moved(view, a, a, keep, move, a, 0.0, 0.5, keep.copy())
    stretch(a, samples, status, 1.0, 1.0, 2.0)
