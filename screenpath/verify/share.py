r"""What one number of a solution adds to the gap: one function for rows, features and losses.

A number ``x`` lives on ``[lo, hi]`` (0 is in it) and costs ``psi(x) = curve/2 x^2 + kink |x|``; ``v`` is the product
that it meets. ``share(x, v) = psi(x) + psi*(v) - x v`` is never negative, and the gap is the sum of the shares

* of the rows: ``x`` the dual variable theta, ``v = t = c - g.w - b``, ``curve`` the width of the loss, no kink;
* of the features: ``x = w_j``, ``v = u_j = G'theta``, ``curve = alpha``, ``kink = beta``, no ends.

``share(0, t)`` is the loss. Every part of the formula is a product of numbers that are not negative: nothing cancels.
A share is convex in ``v``, so the larger one of its values at both ends of what is known of ``v`` bounds it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from screenpath.verify.exact import TINY, UNIT

GROW = 32.0 * UNIT  # relative error of a share, from the numbers that it is formed of


class Cells(NamedTuple):
    """Where numbers live and what they cost; ``lo`` and ``hi`` may be arrays."""

    lo: Any
    hi: Any
    curve: float
    kink: float = 0.0

    @property
    def barrier(self) -> bool:
        """Tell whether ``psi*`` is 0 up to the kink and infinite beyond it."""
        return self.curve == 0.0 and np.ndim(self.hi) == 0 and self.hi == math.inf


def share(cells: Cells, x, v, rest=0.0) -> tuple:
    """Return the shares for the products ``v + rest``, and by how much ``x`` misses its best value.

    The slope ``v - curve x`` is rounded: whoever calls this knows by how much. ``rest`` is 0 where there is a kink, or
    no curve. Where ``psi*`` is a barrier, the share is without it: a negative one says that
    ``v`` is beyond, and the caller sees to that.
    """
    lo, hi, curve, kink = cells
    inner = v if cells.barrier else np.clip(v, -kink, kink) if kink else 0.0
    slope = v - inner if kink else v
    if curve:
        slope = (slope - curve * x) + rest
    size, room = np.abs(slope), np.where(slope > 0.0, hi - x, x - lo)
    step = np.minimum(size / curve, room) if curve else np.where(size > 0.0, room, 0.0)
    found = step * (size - 0.5 * curve * step)
    return (found + np.abs(x) * (kink - np.sign(x) * inner) if kink else found), step


def bound(cells: Cells, x, low: tuple, high: tuple) -> tuple:
    """Return upper bounds of the shares, and of the steps, for all products between two ends, each ``(v, rest)``."""
    (one, left), (two, right) = share(cells, x, *low), share(cells, x, *high)
    top, step = np.maximum(one, two), np.maximum(left, right)
    some = (step > 0.0) | (x != 0.0 if cells.kink else False)  # their products may underflow
    return top + GROW * np.abs(top) + np.where(some, TINY, 0.0), step * (1.0 + GROW)
