"""Kernel values, and sums of them, in twice the precision, for the few sums on which a certificate depends.

A number is a pair of doubles ``(high, low)``. A product of such pairs is off by less than ``UNIT`` of its size, a sum
by less than ``UNIT`` of the sizes of its terms (at most 10 units of 2^-106: Joldes, Muller and Popescu 2017), unless
something underflows. As in `double`, nothing here may be reassociated or contracted. The columns of sparse rows are
sorted.
"""

import math
from fractions import Fraction

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.rows.double import accumulate, two_product, two_sum
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.unowned import unowned

LINEAR, POLY, RBF, LAPLACIAN = range(4)
PRODUCTS, DISTANCES, SQUARES = range(3)  # what is summed over the columns of two rows
UNIT = 2.0**-102
# exp(-t) = 2^-k exp(-r), r = t - k ln 2: r is off by less than 2^-94, as t is at most 2^10; exp(-r / 2^8), by 9 terms
# of its series, is squared 8 times, which multiplies its relative error of a few units by 2^8.
EXP = 2.0**-90
BEYOND = 746.0  # exp(-746) is below half of the smallest number
HALVINGS, TERMS = 8, 9
LN2, LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17
INVERSES = np.array([1.0 / n for n in range(1, TERMS + 1)])
INVERSES_LOW = np.array([float(Fraction(1, n) - Fraction(float(v))) for n, v in enumerate(INVERSES, 1)])


@kernel(leaf=True)
def times(a, a_low, b, b_low):
    """Return the product of two pairs."""
    product, error = two_product(a, b)
    return two_sum(product, error + (a * b_low + a_low * b))


@kernel(leaf=True)
def plus(a, a_low, b, b_low):
    """Return the sum of two pairs."""
    total, error = two_sum(a, b)
    return two_sum(total, error + (a_low + b_low))


@kernel(leaf=True)
def exp_minus(t, t_low):
    """Return ``exp(-(t + t_low))`` for a pair of at least 0."""
    if t > BEYOND:
        return 0.0, 0.0
    k = np.floor(t / LN2 + 0.5)
    product, error = two_product(k, LN2)
    r, r_low = plus(t, t_low, -product, -error)
    product, error = two_product(k, LN2_LOW)
    r, r_low = plus(r, r_low, -product, -error)
    scale = -(2.0**-HALVINGS)
    r, r_low = scale * r, scale * r_low
    value, low = 1.0, 0.0
    for n in range(TERMS - 1, -1, -1):  # 1 + r (1 + r/2 (1 + r/3 ...))
        value, low = times(value, low, r, r_low)
        value, low = times(value, low, INVERSES[n], INVERSES_LOW[n])
        value, low = plus(1.0, 0.0, value, low)
    for _ in range(HALVINGS):
        value, low = times(value, low, value, low)
    return math.ldexp(value, -int(k)), math.ldexp(low, -int(k))


@kernel(leaf=True)
def added(high, low, a, b, what):
    """Return the two parts of a sum after adding ``a b``, ``|a - b|`` or ``(a - b)^2``."""
    if what == PRODUCTS:
        return accumulate(high, low, a, b)
    step, rest = two_sum(a, -b)
    if what == DISTANCES:
        high, low = accumulate(high, low, abs(step), 1.0)
        return high, low + (rest if step > 0.0 else -rest)
    high, low = accumulate(high, low, step, step)
    return high, low + 2.0 * step * rest


@kernel(leaf=True)
def inner(X, i, j, what):
    """Return the inner product of two rows, the sum of their distances in each column, or of the squares of these."""
    dense, data, indices, indptr, sparse = X
    high, low = 0.0, 0.0
    if not sparse:
        for k in range(dense.shape[1]):
            high, low = added(high, low, dense[i, k], dense[j, k], what)
        return two_sum(high, low)
    p, q = indptr[i], indptr[j]
    while p < indptr[i + 1] or q < indptr[j + 1]:
        left = indices[p] if p < indptr[i + 1] else np.iinfo(np.int32).max
        right = indices[q] if q < indptr[j + 1] else np.iinfo(np.int32).max
        if what != PRODUCTS or left == right:
            high, low = added(high, low, data[p] if left <= right else 0.0, data[q] if right <= left else 0.0, what)
        p += left <= right
        q += right <= left
    return two_sum(high, low)


@kernel(leaf=True)
def value(X, i, j, kind, gamma, degree, coef0, constant):
    """Return the kernel of two rows; parameters as in ``rows.kernel_functions``."""
    if kind in (RBF, LAPLACIAN):
        high, low = inner(X, i, j, SQUARES if kind == RBF else DISTANCES)
        high, low = times(high, low, gamma, 0.0)
        high, low = exp_minus(high, low)
    else:
        high, low = inner(X, i, j, PRODUCTS)
        if kind == POLY:
            base, base_low = times(high, low, gamma, 0.0)
            base, base_low = plus(base, base_low, coef0, 0.0)
            high, low = base, base_low
            for _ in range(degree - 1):
                high, low = times(high, low, base, base_low)
    return plus(high, low, constant, 0.0) if constant != 0.0 else (high, low)


@kernel(leaf=True)
def sums(X, rows, support, weights, kind, gamma, degree, coef0, constant, out):
    """Write ``sum_k weights[w, k] K(x_i, x_support[k])`` for the rows ``i`` to ``out[w]``, as sums of two doubles.

    ``weights`` has the shape (q, s), ``out`` (q, 2, m). ``kind`` is ``LINEAR``, ``POLY``, ``RBF`` or ``LAPLACIAN``.
    """
    X = unowned(X)
    out[:] = 0.0
    for r in range(rows.size):
        for k in range(support.size):
            found, rest = value(X, rows[r], support[k], kind, gamma, degree, coef0, constant)
            for w in range(weights.shape[0]):
                high, low = accumulate(out[w, 0, r], out[w, 1, r], weights[w, k], found)
                out[w, 0, r], out[w, 1, r] = high, low + weights[w, k] * rest
        for w in range(weights.shape[0]):
            out[w, 0, r], out[w, 1, r] = two_sum(out[w, 0, r], out[w, 1, r])


def warm_up():
    X, index = matrix_of(np.eye(2)), np.arange(2)
    sums(X, index, index, np.ones((2, 2)), RBF, 1.0, 3, 1.0, 0.0, np.empty((2, 2, 2)))
