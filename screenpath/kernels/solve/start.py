"""Where the solver of a kernel model starts: between the reference's dual point and the rule's guess.

The products of both with all rows are known, and with them those of every point between the two. The best of these says
how many variables change ends of their box, and which.

``problem`` is a tuple of ``status, c, lo, hi``, and ``way`` one of ``theta, total, guess, guess_total``: the two
points, each with ``Q`` times it. A ``share`` is a part of the way from the first to the second.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel

WORTH = 0.25  # part of the gap that is left by going, at most
# Each variable that leaves its end on the way may have to be brought back: so many at most for one inside its box.
LEAVING = 0.5
LISTED = 64  # entries that are compared at a time
TURNED = 32  # variables that change ends in one go, at least: the effect of fewer is not that of the way's part


@kernel(fastmath=SUMS, leaf=True)
def start_share(problem, way, C, share):
    """Return ``share`` if the survivors have a far smaller gap at that part of the way, else 0.

    Also 0 if many of them would leave the end of their box: their effects on the gap may cancel out, but each of them
    is one more variable to solve for.
    """
    (status, _, lo, hi), (theta, _, guess, _) = problem, way
    leaving, inside = 0, 0
    for i in range(theta.size):
        alive, held = status[i] == 0, (theta[i] <= lo[i]) | (theta[i] >= hi[i])
        leaving += alive & held & (guess[i] != theta[i])
        inside += 0 if held else alive
    here, there = start_gap(problem, way, 0.0, C), start_gap(problem, way, share, C)
    return share if there < WORTH * here and leaving <= LEAVING * inside else 0.0


@kernel(fastmath=SUMS)
def start_part(problem, way, share, start, start_total, step):
    """Write the starting point: fixed variables at their end, survivors on the way from ``theta`` to ``guess``.

    ``start_total`` belongs to the point on the way; ``step`` is the difference of ``start`` from it. Also returns the
    survivors, ``c . start`` over the fixed variables, and how many entries of ``step`` are not 0.
    """
    (status, c, lo, hi), (theta, total, guess, guess_total) = problem, way
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
def start_gap(problem, way, share, C):
    """Return the survivors' gap, over C, at a part of the way: ``sum phi_i(t_i) - point_i t_i``."""
    (status, c, lo, hi), (theta, total, guess, guess_total), gap = problem, way, 0.0
    for i in range(c.size):
        t = c[i] - C * (total[i] + share * (guess_total[i] - total[i]))
        part = max(lo[i] * t, hi[i] * t) - (theta[i] + share * (guess[i] - theta[i])) * t
        gap += part if status[i] == 0 else 0.0
    return gap


@kernel(fastmath=SUMS)
def start_turns(problem, way, C, step):
    """Choose survivors to move from one end of their box to the other, with the effect of a part of the way.

    The dual is largest at a part ``p`` of the way. There every variable that the guess sees at
    its other end is between its ends, where hardly any belongs. Instead the part ``p`` of them goes all the way: those
    whose gradient at that point asks for it most.

    ``step`` becomes ``guess - theta`` for a chosen variable, else 0. Returns how many are chosen: 0 if they would be
    few, or the gap at that point is not far smaller.
    """
    (status, c, lo, hi), (start, total, guess, guess_total) = problem, way
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
    if start_gap(problem, way, part, C) >= WORTH * start_gap(problem, way, 0.0, C):
        return 0
    outward = np.empty(c.size)
    for i in range(c.size):
        d, t = guess[i] - start[i], c[i] - C * (total[i] + part * (guess_total[i] - total[i]))
        turns = (status[i] == 0) & ((start[i] <= lo[i]) | (start[i] >= hi[i])) & (d != 0.0)
        outward[i] = (-t if d > 0.0 else t) if turns else np.inf
    last = np.partition(outward, chosen - 1)[chosen - 1]
    chosen = 0
    for i in range(c.size):
        turns = outward[i] <= last
        step[i] = guess[i] - start[i] if turns else 0.0
        chosen += turns
    return chosen


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
    a, index = np.ones(2), np.zeros(1, dtype=np.int64)
    problem, way = (np.zeros(2, dtype=np.int8), a, a, a), (a, a, a, a)
    start_share(problem, way, 1.0, 0.5)
    start_part(problem, way, 0.5, a.copy(), a.copy(), a.copy())
    start_gap(problem, way, 0.5, 1.0)
    start_turns(problem, way, 1.0, a.copy())
    changes(a, a, a, np.zeros(3, dtype=np.int64), np.empty(3))
    start_lift(index, a[:1].copy(), a[:1].copy(), 1.0, a, a, a.copy())
