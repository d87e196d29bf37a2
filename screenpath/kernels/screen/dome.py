"""The support function of a dome (``regions.geometry.Dome``)."""

import numpy as np

from screenpath.kernels import kernel


@kernel(forceinline=True, leaf=True)
def _reach(va, norm, radius, offset, cap, share, off):
    """Return the largest ``v.(x - c)``; where a product is no number, that over the ball."""
    worst = share * norm  # at this v.a, and below it, the ball's maximiser satisfies the half-space
    near = va + min(max(worst - va, -off), off)
    near = min(max(near, -norm), norm)
    cut, ball = offset * near + cap * np.sqrt((norm - near) * (norm + near)), radius * norm
    return cut if (near > worst) & (cut < ball) else ball


@kernel
def dome_bounds(vc, va, norms, radius, offset, off):
    """Return the smallest and largest ``v.x`` over a dome, from ``v.c``, ``v.a``, ``||v||``, ``r`` and ``delta``.

    ``v.a`` is known up to ``off``. The square root above would turn an error of 1e-16 into one of 1e-8, so the least
    favourable ``v.a`` within reach is taken.
    """
    lower, upper = np.empty(vc.size), np.empty(vc.size)
    offset = min(max(offset, -radius), radius)
    share, cap = offset / radius if radius > 0.0 else 1.0, np.sqrt((radius - offset) * (radius + offset))
    for i in range(vc.size):
        lower[i] = vc[i] - _reach(-va[i], norms[i], radius, offset, cap, share, off[i])
    for i in range(vc.size):
        upper[i] = vc[i] + _reach(va[i], norms[i], radius, offset, cap, share, off[i])
    return lower, upper


def warm_up():
    a = np.ones(2)
    dome_bounds(a, a, a, 1.0, 0.5, a)
