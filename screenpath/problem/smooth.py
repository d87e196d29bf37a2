"""Losses that are quadratic around their kinks, behind a kernel: Huber's loss is the absolute one, smoothed.

``phi_i(t) = max over a in [lo_i, hi_i] of a t - bend_i/2 a^2``, with ``bend_i`` the smoothing over the row's weight: so
the dual value is less by ``C/2 sum bend_i theta_i^2``. At one C that is a box model whose kernel has ``bend_i / C``
more on its diagonal, and the forms ``C (Q theta)_i + bend_i theta_i``; its solver and its intercepts serve. Its
certificate does not: there a row's share of the gap would be that of a kink.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem.share import row_shares
from screenpath.numbers.rounding import UNIT

SURE = 1.0 + 32.0 * UNIT  # factor of a bound: a share is formed in a few operations, and `bend` is rounded


def bends(smoothing: float, weights: np.ndarray) -> np.ndarray:
    """Return ``bend`` for rows of these weights; of a row without weight it plays no part."""
    with np.errstate(over="ignore"):
        found = np.divide(smoothing, weights, out=np.full_like(weights, smoothing), where=weights != 0.0)
    if not np.isfinite(found).all():
        what = f"`smoothing={smoothing:g}` over the weight of row {int(np.argmax(found)) + 1} is infinite"
        raise UsageError(what, "give the row the weight 0")
    return found


def sums(c, t, lo, hi, theta, errors, bend) -> tuple[float, ...]:
    """Return what :func:`kernels.problem.box.box_sums` does, for distances from kinks ``t`` that are off by ``errors``.

    Two more: half the sum of ``bend theta^2``, by which ``ell`` is less, so that ``C ell - C^2/2 theta'Q theta`` is the
    dual value; and what the errors may do to ``xi``, whose slope is small where a loss is. That ``bend`` is rounded
    moves the distances from the best forms, which are less by ``bend theta``.
    """
    own = bend * theta
    rows = row_shares(t, errors + 4.0 * UNIT * np.abs(own), theta, np.ones(theta.size), lo, hi, bend)
    xi, unsure, plain, more = (float(row.sum()) for row in rows)
    bent = 0.5 * float(theta @ own)
    return xi, float(theta @ c) - bent, plain, (plain + more) * SURE, bent, unsure * SURE
