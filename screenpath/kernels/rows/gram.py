"""Sums over rows of a stored kernel matrix, and its square parts; exponents of the RBF kernel from inner products,
recomputed from differences where those cancel.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel

# Not to be reassociated: a sum over m rows is one of about m/4 terms, and its bound on rounding counts on that.
ORDERED = {"contract", "nsz"}
EPSILON = 2.3e-16
UNDERFLOW = 750.0  # exp(-750) is 0


@kernel(fastmath=ORDERED)
def add_rows(Q, index, weights, out):
    """Add ``sum_k weights[k] * Q[index[k]]`` to ``out``; four rows at a time, in blocks that stay in the cache."""
    n, size = out.size, index.size
    width = 2048
    for start in range(0, n, width):
        stop = min(start + width, n)
        part = out[start:stop]
        k = 0
        while k + 4 <= size:
            a, b = Q[index[k], start:stop], Q[index[k + 1], start:stop]
            c, d = Q[index[k + 2], start:stop], Q[index[k + 3], start:stop]
            wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            for j in range(part.size):
                part[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
            k += 4
        while k < size:
            a, wa = Q[index[k], start:stop], weights[k]
            for j in range(part.size):
                part[j] += wa * a[j]
            k += 1


@kernel(fastmath=ORDERED)
def add_rows_at(Q, index, weights, columns, out):
    """Add ``sum_k weights[k] * Q[index[k], columns]`` to ``out``; four rows at a time."""
    size = index.size
    k = 0
    while k + 4 <= size:
        a, b, c, d = Q[index[k]], Q[index[k + 1]], Q[index[k + 2]], Q[index[k + 3]]
        wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(columns.size):
            at = columns[j]
            out[j] += wa * a[at] + wb * b[at] + wc * c[at] + wd * d[at]
        k += 4
    while k < size:
        a, wa = Q[index[k]], weights[k]
        for j in range(columns.size):
            out[j] += wa * a[columns[j]]
        k += 1


@kernel(fastmath={"reassoc", "contract", "nsz"})
def spread(weights, norms):
    """Return ``sum |weights| norms``."""
    total = 0.0
    for i in range(weights.size):
        total += abs(weights[i]) * norms[i]
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def spread_at(weights, norms, index):
    """Return ``sum |weights| norms[index]``."""
    total = 0.0
    for k in range(index.size):
        total += abs(weights[k]) * norms[index[k]]
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def inner(a, b):
    """Return ``a . b``, and the sum of the magnitudes of its terms."""
    total, magnitude = 0.0, 0.0
    for i in range(a.size):
        term = a[i] * b[i]
        total += term
        magnitude += abs(term)
    return total, magnitude


@kernel()
def fill(Q, index, wanted, part, filled):
    """Copy ``Q[index[k], index]`` to ``part[k]`` for the ``k`` in ``wanted`` that are not marked in ``filled``."""
    for m in range(wanted.size):
        k = wanted[m]
        if filled[k] == 0:
            filled[k] = 1
            row = Q[index[k]]
            for j in range(index.size):
                part[k, j] = row[index[j]]


@kernel()
def gather(Q, rows, columns, out):
    """Write ``Q[rows][:, columns]`` to ``out``."""
    for i in range(rows.size):
        row = Q[rows[i]]
        for j in range(columns.size):
            out[i, j] = row[columns[j]]


@kernel(fastmath=SUMS)
def dense_exponents(K, a, b, gamma, allowed, A, B):
    """Turn inner products ``K = A B'``, shape (p, q), into ``-gamma ||x - z||^2``, in place.

    ``a`` and ``b`` are the squared norms. Where cancellation may cost an exponent more than ``allowed``, its distance
    is summed over the features.
    """
    limit = allowed / (4.0 * EPSILON * gamma)
    # Beyond UNDERFLOW an exponent need not be exact, but what cancellation may have added to it does not count.
    cancelled = 2.0 * EPSILON * (A.shape[1] + 8.0) * gamma
    largest = 0.0
    for j in range(b.size):
        largest = max(largest, b[j])
    for i in range(a.size):
        for j in range(b.size):
            K[i, j] = min(gamma * (2.0 * K[i, j] - a[i] - b[j]), 0.0)
        if a[i] + largest <= limit:
            continue
        for j in range(b.size):
            if a[i] + b[j] > limit and K[i, j] > -UNDERFLOW - cancelled * (a[i] + b[j]):
                total = 0.0
                for k in range(A.shape[1]):
                    step = A[i, k] - B[j, k]
                    total += step * step
                K[i, j] = -gamma * total


@kernel(fastmath=SUMS)
def csr_exponents(K, a, b, gamma, allowed, data, indices, indptr, data_b, indices_b, indptr_b):
    """:func:`dense_exponents` for CSR rows with sorted columns."""
    limit = allowed / (4.0 * EPSILON * gamma)
    for i in range(a.size):
        for j in range(b.size):
            K[i, j] = min(gamma * (2.0 * K[i, j] - a[i] - b[j]), 0.0)
            terms = indptr[i + 1] - indptr[i] + indptr_b[j + 1] - indptr_b[j] + 8.0
            cancelled = 2.0 * EPSILON * terms * gamma * (a[i] + b[j])
            if a[i] + b[j] <= limit or K[i, j] <= -UNDERFLOW - cancelled:
                continue
            p, q, total = indptr[i], indptr_b[j], 0.0
            while p < indptr[i + 1] or q < indptr_b[j + 1]:
                step = 0.0
                left = indices[p] if p < indptr[i + 1] else np.iinfo(np.int32).max
                right = indices_b[q] if q < indptr_b[j + 1] else np.iinfo(np.int32).max
                if left <= right:
                    step += data[p]
                    p += 1
                if right <= left:
                    step -= data_b[q]
                    q += 1
                total += step * step
            K[i, j] = -gamma * total


def warm_up():
    index, weights = np.arange(2), np.ones(2)
    spread(weights, weights)
    spread_at(weights, weights, index)
    inner(weights, weights)
    for dtype in (np.float64, np.float32):
        Q = np.eye(2, dtype=dtype)
        add_rows(Q, index, weights, np.zeros(2))
        add_rows_at(Q, index, weights, index, np.zeros(2))
        gather(Q, index, index, np.empty((2, 2)))
        fill(Q, index, index, np.empty((2, 2)), np.zeros(2, dtype=np.int8))
    one, K = np.ones(2), np.eye(2)
    csr = np.ones(2), np.zeros(2, dtype=np.int32), np.arange(3, dtype=np.int64)
    dense_exponents(K, one, one, 1.0, 1e-13, np.eye(2), np.eye(2))
    csr_exponents(K, one, one, 1.0, 1e-13, *csr, *csr)
