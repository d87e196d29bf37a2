r"""Sums and products whose rounding errors are known, and the share: what the checker's bounds are made of.

``UNIT`` bounds the relative error of one operation, ``TINY`` the absolute error of an operation that underflows (a few
of them). ``gamma(k)`` bounds the relative error of ``k`` operations in a row (Higham 2002, Lemma 3.1).

The share is what one number of a solution adds to the gap: one function for rows, features and losses. A number ``x``
lives on ``[lo, hi]`` (0 is in it) and costs ``psi(x) = curve/2 x^2 + kink |x|``; ``v`` is the product that it meets.
``share(x, v) = psi(x) + psi*(v) - x v`` is never negative, and the gap is the sum of the shares

* of the rows: ``x`` the dual variable theta, ``v = t = c - g.w - b``, ``curve`` the width of the loss, no kink;
* of the features: ``x = w_j``, ``v = u_j = G'theta``, ``curve = alpha``, ``kink = beta``, no ends.

``share(0, t)`` is the loss. Every part of the formula is a product of numbers that are not negative: nothing cancels.
A share is convex in ``v``, so the larger one of its values at both ends of what is known of ``v`` bounds it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

UNIT, TINY = 2.0**-53, 2.0**-1070
UP = 1.0 + 16.0 * UNIT  # a bound that was computed in a few operations is multiplied by this
GROW = 32.0 * UNIT  # relative error of a share, from the numbers that it is formed of


def gamma(k: float, unit: float = UNIT) -> float:
    """Return ``k u / (1 - k u)``, a little enlarged."""
    return UP * k * unit / (1.0 - k * unit)


def two_sum(a, b):
    """Return ``s, e`` with ``s + e = a + b`` exactly (Knuth)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def two_product(a, b):
    """Return ``p, e`` with ``p + e = a b`` exactly (Dekker), or to ``TINY`` where ``p`` is next to underflow."""
    p, x, y = a * b, 134217729.0 * a, 134217729.0 * b
    a1, b1 = x - (x - a), y - (y - b)
    a2, b2 = a - a1, b - b1
    return p, a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)


def divided(a, b, s, t):
    """Return ``q, r`` with ``q + r = (a + b) / (s + t)`` to ``16 UNIT^2`` of it and ``TINY``; b, t: tails of a, s."""
    _, exponent = np.frexp(s)  # with a divisor of about 1 the rest of the division does not underflow
    a, b, s, t = (np.ldexp(value, -exponent) for value in (a, b, s, t))
    q = a / s
    p, e = two_product(q, s)
    return q, (((a - p) - e) + (b - q * t)) / s


def fsum(values) -> float:
    """Return the sum, correctly rounded; nan where it is not a finite number."""
    try:
        return math.fsum(values.tolist() if isinstance(values, np.ndarray) else values)
    except (OverflowError, ValueError):
        return math.nan


def squared(value: float) -> float:
    """Return the square; infinite where it overflows, for which ``**`` raises."""
    return value * value


def norm_above(values) -> float:
    """Return an upper bound of the norm of a vector of bounds."""
    size = float(np.max(values, initial=0.0))
    if not 0.0 < size < math.inf:
        return size
    part = values / size
    return size * math.sqrt(float(part @ part) + TINY) * (1.0 + gamma(values.size + 8))


class ColumnSums:
    """Sums over rows, column by column, block after block: ``total + rest``, off by at most ``error``.

    The leading bits of each product are cut off so that their sums are exact in whatever order (Rump, Ogita, Oishi
    2008); what is left is so small that the rounding of its sum is bounded as any other.
    """

    def __init__(self, d: int):
        self.total, self.rest, self.error = np.zeros((3, d))

    def add(self, block, weights) -> None:
        weights = weights[block.rows]
        used = np.flatnonzero(weights)
        if not used.size:
            return
        columns, weights, values = block.columns[used], weights[used], block.values[used]
        d = self.total.size
        counts, tallest = np.bincount(columns, minlength=d), np.zeros(d)
        np.maximum.at(tallest, columns, np.abs(values))
        _, exponent = np.frexp(tallest * np.abs(weights).max())
        grid = np.ldexp(1.0, exponent + 1 + int(counts.max() + 2).bit_length())[columns]
        products, low = two_product(weights, values)
        high = (products + grid) - grid
        low += products - high
        error = 2.0 * UNIT * np.abs(low) + TINY
        if block.tails is not None:
            low += weights * block.tails[used]
            error += (columns != block.bias) * (32.0 * UNIT * UNIT * np.abs(products) + TINY * np.abs(weights))
            error += 2.0 * UNIT * np.abs(low)
        if block.unknown is not None:
            error += block.unknown[columns] * np.abs(weights)
        sums = np.bincount(columns, low, d)
        growth = gamma(counts.max() + 2)
        self.error += np.bincount(columns, error + growth * np.abs(low), d) * (1.0 + growth)
        self.total, lost = two_sum(self.total, np.bincount(columns, high, d))
        self.rest, more = two_sum(self.rest, sums + lost)
        self.error = UP * (self.error + np.abs(more) + 4.0 * UNIT * (np.abs(sums) + np.abs(lost)))


class Cells(NamedTuple):
    """Where numbers live and what they cost; ``lo``, ``hi`` and a ``curve`` above 0 may be arrays."""

    lo: Any
    hi: Any
    curve: Any
    kink: float = 0.0

    @property
    def barrier(self) -> bool:
        """Tell whether ``psi*`` is 0 up to the kink and infinite beyond it."""
        return np.ndim(self.curve) == 0 == self.curve and np.ndim(self.hi) == 0 and self.hi == math.inf


def share(cells: Cells, x, v, rest=0.0) -> tuple:
    """Return the shares for the products ``v + rest``, and by how much ``x`` misses its best value.

    The slope ``v - curve x`` is rounded: whoever calls this knows by how much. ``rest`` is 0 where there is a kink, or
    no curve. Where ``psi*`` is a barrier, the share is without it: a negative one says that
    ``v`` is beyond, and the caller sees to that.
    """
    lo, hi, curve, kink = cells
    inner = v if cells.barrier else np.clip(v, -kink, kink) if kink else 0.0
    slope = v - inner if kink else v
    curved = np.ndim(curve) > 0 or curve > 0.0
    if curved:
        slope = (slope - curve * x) + rest
    size, room = np.abs(slope), np.where(slope > 0.0, hi - x, x - lo)
    step = np.minimum(size / curve, room) if curved else np.where(size > 0.0, room, 0.0)
    found = step * (size - 0.5 * curve * step)
    return (found + np.abs(x) * (kink - np.sign(x) * inner) if kink else found), step


def bound(cells: Cells, x, low: tuple, high: tuple) -> tuple:
    """Return upper bounds of the shares, and of the steps, for all products between two ends, each ``(v, rest)``."""
    (one, left), (two, right) = share(cells, x, *low), share(cells, x, *high)
    top, step = np.maximum(one, two), np.maximum(left, right)
    some = (step > 0.0) | (x != 0.0 if cells.kink else False)  # their products may underflow
    return top + GROW * np.abs(top) + np.where(some, TINY, 0.0), step * (1.0 + GROW)
