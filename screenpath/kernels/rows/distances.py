"""Exponents of the RBF kernel from inner products, recomputed from differences where those cancel."""

import numpy as np

from screenpath.kernels import SUMS, kernel

EPSILON = 2.3e-16
UNDERFLOW = 750.0  # exp(-750) is 0


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
    one, K = np.ones(2), np.eye(2)
    csr = np.ones(2), np.zeros(2, dtype=np.int32), np.arange(3, dtype=np.int64)
    dense_exponents(K, one, one, 1.0, 1e-13, np.eye(2), np.eye(2))
    csr_exponents(K, one, one, 1.0, 1e-13, *csr, *csr)
