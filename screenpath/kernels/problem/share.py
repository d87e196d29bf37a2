"""Rows and columns are one function: what a number and the number it is paired with lack of being optimal together.

``psi(x) = curve/2 x^2 + kink |x|`` on ``[lo, hi]``, which contains 0, and ``psi*(v) = max_x x v - psi(x)``. A row is
``(theta; t; lo, hi, curve, kink)``, where ``psi*`` is its loss; a feature is ``(w; u; -inf, inf, alpha, beta)``, where
``psi`` is its penalty. The gap of a pair is the sum of the shares of all rows, each times its weight, and columns.

A share is convex in ``v``: if that is off by ``e`` at most, the share is at most the larger one of those at both ends.
"""

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem.box import UNIT

LEAST = 2.0**-1071  # more than the products of a share lose by underflow


@kernel(forceinline=True, leaf=True, inner=True)
def kink_share(x, inner, kink):
    """Return ``kink |x| - x inner`` for a part of ``v`` within the kink: the share of a feature without ``curve``."""
    return abs(x) * max(kink - inner if x > 0.0 else kink + inner, 0.0)


@kernel(forceinline=True, leaf=True, inner=True)
def step_share(x, beyond, best, lo, hi, curve):
    """Return the share without a kink, or beyond it, of a number that is ``best`` there."""
    step, over = abs(best - x), abs(beyond - min(max(beyond, curve * lo), curve * hi))
    return step * (over + 0.5 * curve * step)


@kernel(forceinline=True, leaf=True)
def share(x, v, lo, hi, curve, kink):
    """Return ``psi(x) + psi*(v) - x v``, at least 0: a sum of products none of which is negative, so nothing cancels.

    Without ``curve`` the ends are finite. A feature's are then 0: what is beyond the kink, which for a dual point is
    rounding, counts by its size. A ``v`` that is no number gives none. Not to be reassociated: the error of ``v`` has
    to stay relative to it.
    """
    inner = min(max(v, -kink), kink)
    beyond = v - inner
    best = min(max(beyond / curve, lo), hi) if curve > 0.0 else (hi if beyond > 0.0 else lo)
    return step_share(x, beyond, best, lo, hi, curve) + kink_share(x, inner, kink)


@kernel(forceinline=True, leaf=True, inner=True)
def largest_share(x, v, off, lo, hi, curve, kink):
    """Return the largest share for a ``v`` that is off by ``off`` at most; no number where one of the ends is none."""
    below, above = share(x, v - off, lo, hi, curve, kink), share(x, v + off, lo, hi, curve, kink)
    return below if below > above else above


@kernel
def row_shares(t, off, theta, weights, lo, hi, curves):
    """Return rows' losses, their errors, shares, and what rounding adds to these at most, for ``t`` off by ``off``."""
    out = np.empty((4, t.size))
    for i in range(t.size):
        v, e, low, high, curve = t[i], off[i] + 4.0 * UNIT * abs(t[i]), lo[i], hi[i], curves[i]
        x, weight, flat = theta[i], weights[i], low == 0.0 and v + e <= 0.0
        best, plain = min(max(v / curve, low), high), share(x, v, low, high, curve, 0.0)
        out[0, i] = weight * (best * (v - 0.5 * curve * best))
        out[1, i] = 0.0 if flat else weight * (min(abs(best) + 0.5 * e / curve, max(high, -low)) * e)
        out[2, i] = weight * plain
        out[3, i] = weight * (largest_share(x, v, e, low, high, curve, 0.0) - plain)
    return out


@kernel
def column_shares(w, u, signs, off, curve, kink):
    """Return features' shares, and what rounding adds at most, for ``u`` off by ``off``; a sign puts an end at 0."""
    out, end = np.empty((2, w.size)), np.inf if curve > 0.0 else 0.0  # see share
    for j in range(w.size):
        low, high = 0.0 if signs[j] > 0 else -end, 0.0 if signs[j] < 0 else end
        own = 4.0 * UNIT * (abs(u[j]) + kink + curve * abs(w[j])) + LEAST
        out[0, j] = share(w[j], u[j], low, high, curve, kink)
        out[1, j] = largest_share(w[j], u[j], off[j] + own, low, high, curve, kink) - out[0, j]
    return out


def warm_up():
    a = np.ones(2)
    row_shares(a, a, a, a, a, a, a)
    column_shares(a, a, np.zeros(2, dtype=np.int8), a, 0.5, 0.5)
