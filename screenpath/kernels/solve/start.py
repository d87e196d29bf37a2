"""Where the solver of a kernel model starts: between the reference's dual point and the rule's guess.

The products of both with all rows are known, and with them those of every point between the two. The best of these says
how many variables change ends of their box, and which. ``total`` and ``guess_total`` are ``Q`` times the two points,
and a ``share`` is a part of the way from the first to the second.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel

WORTH = 0.25  # part of the gap that is left by going, at most
# Each variable that leaves its end on the way may have to be brought back: so many at most for one inside its box.
LEAVING = 0.5
LISTED = 64  # entries that are compared at a time
TURNED = 32  # variables that change ends in one go, at least: the effect of fewer is not that of the way's part


@kernel(fastmath=SUMS, leaf=True)
def start_share(status, c, lo, hi, theta, total, guess, guess_total, C, share):
    """Return ``share`` if the survivors have a far smaller gap at that part of the way, else 0.

    Also 0 if many of them would leave the end of their box: their effects on the gap may cancel out, but each of them
    is one more variable to solve for.
    """
    here, there, leaving, inside = 0.0, 0.0, 0.0, 0.0
    for i in range(c.size):
        alive = 1.0 if status[i] == 0 else 0.0
        t = c[i] - C * total[i]
        here += alive * (max(lo[i] * t, hi[i] * t) - theta[i] * t)
        u = t - share * C * (guess_total[i] - total[i])
        there += alive * (max(lo[i] * u, hi[i] * u) - (theta[i] + share * (guess[i] - theta[i])) * u)
        held = (theta[i] <= lo[i]) | (theta[i] >= hi[i])
        leaving += alive if held & (guess[i] != theta[i]) else 0.0
        inside += 0.0 if held else alive
    return share if there < WORTH * here and leaving <= LEAVING * inside else 0.0


@kernel(fastmath=SUMS)
def start_part(status, c, lo, hi, theta, total, guess, guess_total, share, start, start_total, step):
    """Write the starting point: fixed variables at their end, survivors on the way from ``theta`` to ``guess``.

    ``start_total`` belongs to the point on the way; ``step`` is the difference of ``start`` from it.

    Returns
    -------
    index : ndarray of int64
        The survivors.
    linear : float
        ``c . start`` over the fixed variables.
    changed : int
        Entries of ``step`` that are not 0.
    """
    index = np.empty(status.size, dtype=np.int64)
    k, changed, linear = 0, 0, 0.0
    for i in range(status.size):
        index[k] = i  # kept where the next one does not overwrite it
        k += status[i] == 0
    for i in range(status.size):
        point = min(max(theta[i] + share * (guess[i] - theta[i]), lo[i]), hi[i])
        end = point if status[i] == 0 else (lo[i] if status[i] < 0 else hi[i])
        start[i], step[i] = end, end - point
        start_total[i] = total[i] + share * (guess_total[i] - total[i])
        changed += end != point
        linear += 0.0 if status[i] == 0 else c[i] * end
    return index[:k].copy(), linear, changed


@kernel(fastmath=SUMS, leaf=True)
def start_gap(status, c, lo, hi, point, total, C):
    """Return ``sum phi_i(t_i) - point_i t_i`` over the survivors, ``t = c - C total``: their gap, over C."""
    gap = 0.0
    for i in range(c.size):
        t = c[i] - C * total[i]
        part = max(lo[i] * t, hi[i] * t) - point[i] * t
        gap += part if status[i] == 0 else 0.0
    return gap


@kernel(fastmath=SUMS)
def start_turns(status, c, lo, hi, start, total, guess, guess_total, C, step):
    """Choose survivors to move from one end of their box to the other, with the effect of a part of the way.

    The dual is largest a part ``p`` of the way from ``start`` to ``guess``. There every variable that the guess sees at
    its other end is between its ends, where hardly any belongs. Instead the part ``p`` of them goes all the way: those
    whose gradient at that point asks for it most.

    ``step`` becomes ``guess - start`` for a chosen variable, else 0. Returns how many are chosen: 0 if they would be
    few, or the gap at that point is not far smaller.
    """
    slope, curvature, turning = 0.0, 0.0, 0
    for i in range(c.size):
        d = guess[i] - start[i]
        slope += d * (c[i] - C * total[i])
        curvature += d * (guess_total[i] - total[i])
        held = (start[i] <= lo[i]) | (start[i] >= hi[i])
        turning += held & (d != 0.0) & (status[i] == 0)
    part = min(slope / (C * curvature), 1.0) if slope > 0.0 and curvature > 0.0 else 0.0
    chosen = int(part * turning)
    if chosen < TURNED:
        return 0
    here, there = 0.0, 0.0
    outward = np.empty(c.size)
    for i in range(c.size):
        d, t = guess[i] - start[i], c[i] - C * total[i]
        u = t - part * C * (guess_total[i] - total[i])
        alive, held = status[i] == 0, (start[i] <= lo[i]) | (start[i] >= hi[i])
        here += max(lo[i] * t, hi[i] * t) - start[i] * t if alive else 0.0
        there += max(lo[i] * u, hi[i] * u) - (start[i] + part * d) * u if alive else 0.0
        outward[i] = (-u if d > 0.0 else u) if alive & held & (d != 0.0) else np.inf
    if there >= WORTH * here:
        return 0
    last = np.partition(outward, chosen - 1)[chosen - 1]
    chosen = 0
    for i in range(c.size):
        turns = outward[i] <= last
        step[i] = guess[i] - start[i] if turns else 0.0
        chosen += turns
    return chosen


@kernel(fastmath=SUMS)
def start_survivors(index, C, c, lo, hi, norms, start, total):
    """Return the survivors' part of the starting point, multiplied by C, and ``start . total`` over all variables.

    The rows of the former are ``c``, ``C lo``, ``C hi``, norms, ``C start`` and ``C total``.
    """
    out = np.empty((6, index.size))
    for r in range(index.size):
        i = index[r]
        out[0, r], out[1, r], out[2, r] = c[i], C * lo[i], C * hi[i]
        out[3, r], out[4, r], out[5, r] = norms[i], C * start[i], C * total[i]
    square = 0.0
    for i in range(start.size):
        square += start[i] * total[i]
    return out, square


@kernel(leaf=True)
def start_lift(index, start_alpha, alpha, C, lo, hi, theta):
    """Write the survivors' ``alpha / C``, clipped to their box, to ``theta``, unless it has not moved."""
    for r in range(index.size):
        if alpha[r] != start_alpha[r]:
            i = index[r]
            theta[i] = min(max(alpha[r] / C, lo[i]), hi[i])


@kernel(leaf=True)
def changes(theta, known, other, index, steps):
    """List where ``theta`` differs from ``known``, and by how much, at the beginning of ``index`` and ``steps``.

    Returns how many differ, how many of ``theta`` are not 0, and how many of it differ from ``other``.
    """
    changed, nonzero, apart = 0, 0, 0
    for start in range(0, theta.size, LISTED):
        stop, found = min(start + LISTED, theta.size), 0
        for i in range(start, stop):  # counts vectorise; most parts have nothing to list
            found += theta[i] != known[i]
            nonzero += theta[i] != 0.0
            apart += theta[i] != other[i]
        for i in range(start, stop if found else start):
            step = theta[i] - known[i]
            index[changed], steps[changed] = i, step  # kept where the next one does not overwrite it
            changed += step != 0.0
    return changed, nonzero, apart


def warm_up():
    a, status, index = np.ones(2), np.zeros(2, dtype=np.int8), np.zeros(1, dtype=np.int64)
    start_share(status, a, a, a, a, a, a, a, 1.0, 0.5)
    start_part(status, a, a, a, a, a, a, a, 0.5, a.copy(), a.copy(), a.copy())
    start_gap(status, a, a, a, a, a, 1.0)
    start_turns(status, a, a, a, a, a, a, a, 1.0, a.copy())
    start_survivors(index, 1.0, a, a, a, a, a, a)
    changes(a, a, a, np.zeros(3, dtype=np.int64), np.empty(3))
    start_lift(index, a[:1].copy(), a[:1].copy(), 1.0, a, a, a.copy())
