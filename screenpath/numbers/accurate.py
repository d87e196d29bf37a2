"""Sums of products whose only rounding is that of the result, for the few sums that need a tighter error bound.

A product of two doubles is the sum of two doubles (Dekker 1971), and ``math.fsum`` rounds the sum of any number of
doubles once. Factors are scaled by powers of two first, so that nothing overflows and underflow is negligible.
"""

from __future__ import annotations

import math

import numpy as np

from screenpath.numbers.rounding import TINY, UNIT

SPLIT = 2.0**27 + 1.0
LOST = 2.0**-960  # error by underflow of one term, relative to the largest product


def two_sum(a, b):
    """Return ``a + b`` rounded, and the rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_products(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``a b`` rounded, and the rounding errors, for entries of at most 1 in size (Dekker's product)."""
    product = a * b
    wide, other = SPLIT * a, SPLIT * b
    a_high, b_high = wide - (wide - a), other - (other - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def scaled(a: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the array divided by a power of two, so that it lies in [-1, 1], and the exponent."""
    exponent = int(np.frexp(np.abs(a).max(initial=0.0))[1])
    return np.ldexp(a.astype(np.float64), -exponent), exponent


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return ``a . b``, rounded as usual: the last digit of BLAS depends on where the arrays lie in memory."""
    return float(np.sum(a * b))


def norm(a: np.ndarray) -> float:
    """Return ``||a||``, as :func:`dot`."""
    return math.sqrt(dot(a, a))


def inner(a: np.ndarray, b: np.ndarray, start: float = 0.0) -> tuple[float, float]:
    """Return ``start + a . b``, all finite, and a bound on its error: usually half a unit in the last place."""
    nonzero = (a != 0.0) & (b != 0.0)
    (a, first), (b, second) = scaled(a[nonzero]), scaled(b[nonzero])
    exponent = first + second
    beyond = int(np.frexp(start)[1]) > exponent + 960  # so large that the rounding of the products is negligible
    if not a.size or exponent < -960 or exponent > 960 or beyond:  # exponents to which a double can be scaled and back
        value = start + math.ldexp(math.fsum(a * b), exponent) if a.size and exponent <= 960 else start
        return value, (a.size + 2) * (2.0**-900 + UNIT * abs(value)) if exponent <= 960 else math.inf
    high, low = two_products(a, b)
    value = math.ldexp(math.fsum([*high.tolist(), *low.tolist(), math.ldexp(start, -exponent)]), exponent)
    return value, UNIT * abs(value) + math.ldexp((a.size + 1) * LOST, exponent) + TINY


def largest(values: np.ndarray, errors: np.ndarray, form) -> float:
    """Return the largest size of values, shape (m,), that exceed their errors; 0 if none does.

    ``form(k)`` returns value ``k`` with less error, and a bound on that error. It is called for values that may be only
    rounding, and may be the largest.
    """
    sizes = np.abs(values)
    sure = sizes > errors
    top = float(np.max(sizes, where=sure, initial=0.0))
    for k in np.flatnonzero(~sure & (sizes + errors > top)):
        value, error = form(int(k))
        if abs(value) > max(error, top):
            top = abs(value)
    return top
