r"""The guarantee of an eps-path, formed again: each step's pair serves up to the C of the next one.

With ``x = C / C0`` and Gamma of :mod:`screenpath.verify.box`, the gap at C of the pair of C0 is
``1/2 ||w - x v||^2 + x Gamma``, convex in C, and its dual value is concave: ``gap <= epsilon * dual`` at both ends
holds in between.
"""

from __future__ import annotations

import numpy as np

from screenpath.verify.box import Pair
from screenpath.verify.exact import UNIT, UP, fsum, norm_above
from screenpath.verify.kernel import KernelPair


def judged(pair) -> bool:
    """Tell whether the guarantee behind a pair can be formed again: with a free intercept it is not."""
    return type(pair) in (Pair, KernelPair)


def serves(pair, C: float, epsilon: float) -> bool:
    """Tell whether a pair has, up to ``C``, a gap of at most ``epsilon`` times its dual value."""
    x, lost = C / pair.entry["C"], fsum(pair.spread)
    if isinstance(pair, KernelPair):
        square, error = pair.norm_squared()
        away = UP * (abs(1.0 - x) + 4.0 * UNIT * x) ** 2 * (square + error)
        half = 0.5 * (square - error)
    else:
        ahead = (1.0 - x) * pair.w
        apart = np.abs(ahead + x * pair.apart) + x * pair.slack
        apart += 4.0 * UNIT * (np.abs(ahead) + x * (np.abs(pair.w) + np.abs(pair.apart)))
        away, half = UP * norm_above(apart) ** 2, 0.5 * fsum(pair.w * pair.w) * (1.0 - 8.0 * UNIT)
    gap = UP * (0.5 * away + UP * x * pair.term)
    primal = (half + C * (fsum(pair.losses) - lost)) * (1.0 - 8.0 * UNIT)
    return bool((1.0 + epsilon) * gap <= epsilon * primal)
