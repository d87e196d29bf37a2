"""Sums in twice the precision, as unevaluated sums of two doubles (Dekker 1971; Ogita, Rump and Oishi 2005).

Nothing here may be reassociated or contracted: the errors of the operations are what is computed.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.unowned import unowned

SPLITTER = 134217729.0  # 2^27 + 1


@kernel(leaf=True)
def two_sum(a, b):
    """Return ``a + b`` rounded, and the rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel(leaf=True)
def two_product(a, b):
    """Return ``a b`` rounded, and the rounding error; exact unless it underflows, nan near overflow."""
    product = a * b
    big = SPLITTER * a
    a_high = big - (big - a)
    a_low = a - a_high
    big = SPLITTER * b
    b_high = big - (big - b)
    b_low = b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel(leaf=True)
def accumulate(high, low, a, b):
    """Return the two parts of a sum after adding ``a b``."""
    product, error = two_product(a, b)
    high, lost = two_sum(high, product)
    return high, low + (lost + error)


@kernel(leaf=True)
def double_products(X, w, out):
    """Write the products of rows with ``w`` to the two rows of ``out``: high parts, and remainders."""
    dense, data, indices, indptr, sparse = unowned(X)
    for i in range(out.shape[1]):
        high, low = 0.0, 0.0
        if sparse:
            for p in range(at(indptr[i]), at(indptr[i + 1])):
                high, low = accumulate(high, low, data[p], w[at(indices[p])])
        else:
            for j in range(w.size):
                high, low = accumulate(high, low, dense[i, j], w[j])
        out[0, i], out[1, i] = two_sum(high, low)


@kernel(leaf=True)
def double_sum(X, theta, out):
    """Add ``sum_i theta_i x_i`` to the two rows of ``out``."""
    dense, data, indices, indptr, sparse = unowned(X)
    for i in range(theta.size):
        t = theta[i]
        if sparse:
            for p in range(at(indptr[i]), at(indptr[i + 1])):
                j = at(indices[p])
                out[0, j], out[1, j] = accumulate(out[0, j], out[1, j], t, data[p])
        else:
            for j in range(out.shape[1]):
                out[0, j], out[1, j] = accumulate(out[0, j], out[1, j], t, dense[i, j])


@kernel(leaf=True)
def double_difference(w, C, total, out):
    """Write ``w - C (total[0] + total[1])`` to ``out``."""
    for j in range(w.size):
        product, error = two_product(C, total[0, j])
        apart, lost = two_sum(w[j], -product)
        out[j] = apart + (lost - (error + C * total[1, j]))


def warm_up():
    X, w = matrix_of(np.eye(2)), np.ones(2)
    double_products(X, w, np.empty((2, 2)))
    double_sum(X, w, np.zeros((2, 2)))
    double_difference(w, 1.0, np.ones((2, 2)), w.copy())
