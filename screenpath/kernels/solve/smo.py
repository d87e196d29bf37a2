"""Greedy coordinate ascent on the dual of a box problem: pairs chosen by their second-order gain.

LIBSVM's working-set selection (Fan, Chen and Lin 2005) for problems without an equality constraint (Steinwart, Hush and
Scovel 2011): the first of the pair has the largest gain on its own, the second the largest gain together with it. After
some steps for every coordinate, their summed direction is searched as well.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.rows.gram import row_of

WINDOW = 2  # steps between leaps, for one coordinate
FARTHEST = 100.0  # lengths of what was gone so far: a longer leap would make too much of the gradient's rounding


@kernel(fastmath=SUMS)
def _pair(qi, qj, q, ti, tj, li, ui, lj, uj):
    """Steps (si, sj) inside their ranges that maximise ``t.s - s'Q s / 2`` over two coordinates."""
    det = qi * qj - q * q
    if det > 1e-12 * qi * qj:
        si, sj = (ti * qj - tj * q) / det, (tj * qi - ti * q) / det
        if li <= si <= ui and lj <= sj <= uj:
            return si, sj
    best, bi, bj = -1.0, 0.0, 0.0
    for edge in range(4):  # the maximum lies on an edge of the rectangle
        if edge < 2:
            si = li if edge == 0 else ui
            sj = min(max((tj - q * si) / qj, lj), uj)
        else:
            sj = lj if edge == 2 else uj
            si = min(max((ti - q * sj) / qi, li), ui)
        gain = ti * si + tj * sj - 0.5 * (qi * si * si + 2.0 * q * si * sj + qj * sj * sj)
        if gain > best:
            best, bi, bj = gain, si, sj
    return bi, bj


@kernel(fastmath=SUMS)
def slack(t, lo, hi, alpha):
    """Return ``sum_i phi_i(t_i) - alpha_i t_i``, these coordinates' part of the gap."""
    total = 0.0
    for i in range(t.size):
        total += max(lo[i] * t[i], hi[i] * t[i]) - alpha[i] * t[i]
    return total


@kernel(fastmath=SUMS, forceinline=True)  # it stands in two kernels: a symbol could come from either
def leap(lo, hi, alpha, t, before, gradient):
    """Continue in the direction of the last steps, from ``before`` to ``alpha``, as far as the dual rises; tell whether
    it did.

    Many small steps along a flat valley become a large one. The gradient is linear, so that it needs no row of Q.
    Updates ``alpha`` and ``t``; ``before`` and ``gradient``, where the steps began, become where they end.
    """
    slope, curvature, room = 0.0, 0.0, np.inf
    for i in range(t.size):
        d = alpha[i] - before[i]
        slope += d * t[i]
        curvature += d * (gradient[i] - t[i])
        if d > 0.0:
            room = min(room, (hi[i] - alpha[i]) / d)
        elif d < 0.0:
            room = min(room, (lo[i] - alpha[i]) / d)
    share = min(slope / curvature, room, FARTHEST) if slope > 0.0 and curvature > 0.0 else 0.0
    for i in range(t.size):
        d, change = alpha[i] - before[i], t[i] - gradient[i]
        if share > 0.0:
            alpha[i] = min(max(alpha[i] + share * d, lo[i]), hi[i])
            t[i] += share * change
        before[i], gradient[i] = alpha[i], t[i]
    return share > 0.0


@kernel(fastmath=SUMS)
def smo(square, diagonal, lo, hi, alpha, t, limit, target):
    """Take up to ``limit`` pair steps, in place; return their number.

    ``square``, see ``gram.row_of``, has ``Q = source[index][:, index]``, ``source`` of shape (n, n); a row is copied
    when a step first needs it. ``diagonal`` of Q is positive. The gradient of the dual ``t = c - (Q alpha)``, fixed
    rows included, is updated. Steps end when these coordinates' part of the gap, ``sum_i phi_i(t_i) - alpha_i t_i``, is
    at most ``target``.
    """
    size = t.size
    every = max(size // 4, 16)
    inverse, gains = 1.0 / diagonal, np.zeros(size)
    for j in range(size):
        s = min(max(t[j] * inverse[j], lo[j] - alpha[j]), hi[j] - alpha[j])
        gains[j] = max(s * (t[j] - 0.5 * s * diagonal[j]), 0.0)
    window = WINDOW * size
    before, gradient = alpha.copy(), t.copy()  # where the last leap has ended
    for step in range(limit):
        if step > 0 and step % window == 0 and leap(lo, hi, alpha, t, before, gradient):
            for j in range(size):
                s = min(max(t[j] * inverse[j], lo[j] - alpha[j]), hi[j] - alpha[j])
                gains[j] = max(s * (t[j] - 0.5 * s * diagonal[j]), 0.0)
        if step % every == 0 and slack(t, lo, hi, alpha) <= target:
            return step
        i = largest(gains)
        if i < 0:
            return step
        row, ti, qi = row_of(square, i), t[i], diagonal[i]
        for j in range(size):
            tj, qj, q = t[j], diagonal[j], row[j]
            room = hi[j] - alpha[j] if tj > 0.0 else alpha[j] - lo[j]
            det = max(qi * qj - q * q, 1e-12 * qi * qj)
            gain = max((ti * ti * qj - 2.0 * ti * tj * q + tj * tj * qi) / det, 0.0)
            gains[j] = gain if room > 0.0 else 0.0
        gains[i] = 0.0
        j = largest(gains)
        if j < 0:  # no other coordinate can move
            j, si, sj = i, min(max(ti / qi, lo[i] - alpha[i]), hi[i] - alpha[i]), 0.0
        else:
            low_i, high_i, low_j, high_j = lo[i] - alpha[i], hi[i] - alpha[i], lo[j] - alpha[j], hi[j] - alpha[j]
            si, sj = _pair(qi, diagonal[j], row[j], ti, t[j], low_i, high_i, low_j, high_j)
        second = row_of(square, j)
        alpha[i] = min(max(alpha[i] + si, lo[i]), hi[i])
        alpha[j] = min(max(alpha[j] + sj, lo[j]), hi[j])
        for k in range(size):  # the gradient, and with it what each coordinate would gain alone
            tk = t[k] - (si * row[k] + sj * second[k])
            s = min(max(tk * inverse[k], lo[k] - alpha[k]), hi[k] - alpha[k])
            t[k] = tk
            gains[k] = max(s * (tk - 0.5 * s * diagonal[k]), 0.0)
    return limit


@kernel()
def take(W, c, products, lo, hi, norms, alpha, decided):
    """Return ``alpha``, ``t``, ``lo``, ``hi`` and ``diagonal`` of the coordinates ``W`` for :func:`smo`.

    Coordinates that ``decided`` marks stay where they are.
    """
    out = np.empty((5, W.size))
    for k in range(W.size):
        i = W[k]
        free = decided[i] == 0
        out[0, k], out[1, k] = alpha[i], c[i] - products[i]
        out[2, k], out[3, k] = lo[i] if free else alpha[i], hi[i] if free else alpha[i]
        out[4, k] = max(norms[i] * norms[i], 1e-300)
    return out


@kernel()
def put(W, moved, alpha):
    """Write ``moved`` to ``alpha[W]``; return which entries of ``alpha`` have changed, and by how much."""
    index, step = np.empty(W.size, dtype=np.int64), np.empty(W.size)
    changed = 0
    for k in range(W.size):
        i = W[k]
        index[changed], step[changed] = i, moved[k] - alpha[i]  # kept where the next one does not overwrite it
        changed += step[changed] != 0.0
        alpha[i] = moved[k]
    return index[:changed], step[:changed]


@kernel()
def active(c, products, lo, hi, alpha, candidates, share, besides, spare):
    """Return the candidates that may have to move.

    Left out are those at an end of their box whose gradient points outward by more than any other violates its
    optimality, and, of the others there, the farthest: the nearest stays, and after it ``besides`` and ``share`` times
    the number of those inside their box or violating. If fewer than ``spare`` are left, up to ``spare`` more than
    the nearest stay whose gradient is less than twice the largest violation.
    """
    largest, near = 0.0, 0
    outward = np.empty(candidates.size)
    for k in range(candidates.size):
        i = candidates[k]
        t = c[i] - products[i]
        low, high = alpha[i] <= lo[i], alpha[i] >= hi[i]
        largest = max(largest, 0.0 if high else t, 0.0 if low else -t)
        outward[k] = max(t, -t) if low and high else (-t if low else (t if high else 0.0))
        near += outward[k] <= 0.0
    held = 0
    for k in range(candidates.size):
        held += 0.0 < outward[k] <= largest
    room = int(share * near) + besides
    if held < spare:
        largest, room = 2.0 * largest, spare
        held = np.sum((outward > 0.0) & (outward <= largest))
    if held > room:
        largest = np.partition(outward[(outward > 0.0) & (outward <= largest)], room)[room]
    return candidates[outward <= largest]


@kernel()
def largest(gains):
    """Return the position of the largest of non-negative numbers, the first of several; -1 if all are 0.

    Their bits are compared as integers, which have the same order: that vectorises.
    """
    bits = gains.view(np.int64)
    best = 0
    for j in range(bits.size):
        best = max(best, bits[j])
    if best == 0:
        return -1
    for j in range(bits.size):
        if bits[j] == best:
            return j
    return -1


def warm_up():
    one = np.ones(2)
    slack(one, one, one, one)
    active(one, one, one, one, one, np.arange(2), 1.0, 0, 0)
    take(np.arange(2), one, one, one, one, one, one, np.zeros(2, dtype=np.int8))
    put(np.arange(2), one, one.copy())
    for dtype in (np.float64, np.float32):
        filled, index = np.zeros(2, dtype=np.int8), np.arange(2)
        square = np.eye(2, dtype=dtype), index, np.empty((2, 2)), filled
        smo(square, one, -one, one, np.zeros(2), one.copy(), 2, 0.0)
