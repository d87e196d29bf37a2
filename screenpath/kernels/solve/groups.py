"""Block coordinate descent on a quadratic with a penalty on groups: the small problem of a Newton step."""

from __future__ import annotations

import numpy as np

from screenpath.kernels import kernel


@kernel
def descend_blocks(H, starts, parts, limit, rates, z, r, sweeps):
    """Minimise ``1/2 z'Hz - c'z + sum_g parts_g ||z_g|| + limit ||z||_1`` by proximal steps, group after group.

    ``H`` (shape (k, k)): positive semidefinite. ``starts`` (int64 of shape (groups + 1,)): each group is a range of
    coordinates. ``rates`` (shape (groups,)): at least the largest eigenvalue of each group's block of ``H``. ``z``,
    ``r`` (shape (k,)): the point, and ``H z - c``: both are updated. Returns the norm of
    the largest proximal gradient in the last sweep.
    """
    largest, step = np.inf, np.empty(z.size)
    for _ in range(sweeps):
        largest = 0.0
        for g in range(starts.size - 1):
            first, last, rate = starts[g], starts[g + 1], rates[g]
            if rate == 0.0:
                continue
            norm = 0.0
            for j in range(first, last):
                v = z[j] - r[j] / rate
                v = max(abs(v) - limit / rate, 0.0) * np.sign(v)
                step[j] = v
                norm += v * v
            norm = np.sqrt(norm)
            factor = max(1.0 - parts[g] / rate / norm, 0.0) if norm > 0.0 else 0.0
            moved = 0.0
            for j in range(first, last):
                step[j] = factor * step[j] - z[j]
                moved += step[j] * step[j]
            if moved == 0.0:
                continue
            largest = max(largest, rate * np.sqrt(moved))
            for j in range(first, last):
                if step[j] != 0.0:
                    z[j] += step[j]
                    for k in range(z.size):
                        r[k] += step[j] * H[j, k]
        if largest == 0.0:
            break
    return largest


def warm_up():
    H, ends, one, two = np.eye(2), np.array([0, 2], dtype=np.int64), np.ones(1), np.ones(2)
    descend_blocks(H, ends, one, 0.5, one, two, two.copy(), 1)
