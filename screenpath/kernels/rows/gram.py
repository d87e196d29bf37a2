"""Sums over rows of a stored kernel matrix, and its square parts; exponents of the RBF kernel from inner products,
recomputed from differences where those cancel; of the Laplacian kernel from differences.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.unowned import unowned

# Not to be reassociated: a sum over m rows is one of about m/4 terms, and its bound on rounding counts on that.
ORDERED = {"contract", "nsz"}
EPSILON = 2.3e-16
UNDERFLOW = 750.0  # exp(-750) is 0
EXP = 6.0 * 2.0**-53  # relative error of :func:`_exponentials`, ...
LOWEST = -708.0  # ... whose smallest value, of this, is a normal number
LOG2E, TURN = 1.4426950408889634, 1.5 * 2.0**52
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # their sum; the first has 32 digits
# The same in float32; the first part of log 2 has 9 digits
ROUGH_LOWEST, ROUGH_TURN, ROUGH_HIGH, ROUGH_LOW = -87.0, 1.5 * 2.0**23, 0.693359375, -2.12194440e-4
ROUGH_EXP = 8.0 * 2.0**-24  # relative error of :func:`rough_exponentials` without a constant, ...
ROUGH_LEAST = -60.0  # ... from this exponent on; smaller values times weights would be no normal numbers


@kernel(fastmath=ORDERED, leaf=True)
def add_rows(Q, index, weights, out, first):
    """Add ``sum_k weights[k] * Q[index[k]]``, from the column ``first`` on, to ``out``; four rows at a time, in blocks
    that stay in the cache.
    """
    n, size = out.size, index.size
    width = 2048
    for before in range(0, n, width):
        part = out[before : min(before + width, n)]
        start, stop = first + before, first + before + part.size
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


@kernel(fastmath=ORDERED, leaf=True)
def add_rows_at(Q, index, weights, columns, out):
    """Add ``sum_k weights[k] * Q[index[k], columns]`` to ``out``; four rows at a time."""
    size = index.size
    k = 0
    while k + 4 <= size:
        a, b, c, d = Q[index[k]], Q[index[k + 1]], Q[index[k + 2]], Q[index[k + 3]]
        wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(columns.size):
            place = columns[j]
            out[j] += wa * a[place] + wb * b[place] + wc * c[place] + wd * d[place]
        k += 4
    while k < size:
        a, wa = Q[index[k]], weights[k]
        for j in range(columns.size):
            out[j] += wa * a[columns[j]]
        k += 1


@kernel(fastmath={"reassoc", "contract", "nsz"}, leaf=True)
def spread(weights, norms):
    """Return ``sum |weights| norms``."""
    total = 0.0
    for i in range(weights.size):
        total += abs(weights[i]) * norms[i]
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"}, leaf=True)
def spread_at(weights, norms, index):
    """Return ``sum |weights| norms[index]``."""
    total = 0.0
    for k in range(index.size):
        total += abs(weights[k]) * norms[index[k]]
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"}, leaf=True)
def inner(a, b):
    """Return ``a . b``, and the sum of the magnitudes of its terms."""
    total, magnitude = 0.0, 0.0
    for i in range(a.size):
        term = a[i] * b[i]
        total += term
        magnitude += abs(term)
    return total, magnitude


@kernel(leaf=True)
def gather(Q, rows, columns, unit, out, least):
    """Write ``unit Q[rows][:, columns]`` to ``out``, with 0 for values smaller than ``least``."""
    small, zero = out.dtype.type(least), out.dtype.type(0.0)
    for i in range(rows.size):
        row, found = Q[rows[i]], out[i]
        for j in range(columns.size):
            found[j] = unit * row[at(columns[j])]
        for j in range(columns.size if least > 0.0 else 0):
            found[j] = zero if abs(found[j]) < small else found[j]


@kernel(leaf=True)
def to_fixed(K, scale, out, first, left):
    """Write ``K scale``, at least 0 and rounded to whole numbers, to ``out`` from row ``first``, column ``left``."""
    for i in range(K.shape[0]):
        row = out[first + i, left : left + K.shape[1]]
        for j in range(row.size):
            row[j] = np.int32(K[i, j] * scale + 0.5)


@kernel(fastmath=SUMS, leaf=True)
def _apart(A, i, B, j, city):
    """Return ``||a_i - b_j||^2``, or with ``city`` ``||a_i - b_j||_1``; the columns of sparse rows are sorted."""
    total = 0.0
    if not A.sparse:
        for k in range(A.dense.shape[1]):
            step = A.dense[i, k] - B.dense[j, k]
            total += abs(step) if city else step * step
        return total
    p, q = A.indptr[i], B.indptr[j]
    while p < A.indptr[i + 1] or q < B.indptr[j + 1]:
        step = 0.0
        left = A.indices[p] if p < A.indptr[i + 1] else np.iinfo(np.int32).max
        right = B.indices[q] if q < B.indptr[j + 1] else np.iinfo(np.int32).max
        if left <= right:
            step += A.data[p]
            p += 1
        if right <= left:
            step -= B.data[q]
            q += 1
        total += abs(step) if city else step * step
    return total


@kernel(fastmath=SUMS)
def city_exponents(K, gamma, A, B, values):
    """Write ``-gamma ||x - z||_1`` to ``K``, shape (p, q), or with ``values`` the exponentials of these."""
    K, A, B, turns = unowned(K), unowned(A), unowned(B), np.empty(K.shape[1])
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            K[i, j] = -gamma * _apart(A, i, B, j, True)
    for i in range(K.shape[0] if values else 0):  # in one loop the distances take longer
        _exponentials(K[i], turns)


@kernel
def exponents(K, a, b, gamma, allowed, A, B, values):
    """Turn inner products ``K = A B'``, shape (p, q), into ``-gamma ||x - z||^2``, or with ``values`` into the
    exponentials of these, in place: a row at a time, which stays in the nearest cache.

    ``a`` and ``b`` are the squared norms. Where cancellation may cost an exponent more than ``allowed``, its distance
    is summed over the features.
    """
    K, A, B, turns = unowned(K), unowned(A), unowned(B), np.empty(b.size)
    limit, largest = allowed / (4.0 * EPSILON * gamma), 0.0
    for j in range(b.size):
        largest = max(largest, b[j])
    for i in range(a.size):
        _exponents(K[i], i, a[i], b, gamma, (limit, largest), A, B)
        if values:
            _exponentials(K[i], turns)


@kernel(fastmath=SUMS, leaf=True)
def _exponents(row, i, own, b, gamma, limits, A, B):
    """Turn the inner products of one row, whose squared norm is ``own``; ``limits`` are that of the sum of two squared
    norms from which on they may cancel, and the largest ``b``.
    """
    (limit, largest), terms = limits, A.dense.shape[1] + 8.0
    for j in range(b.size):
        row[j] = min(gamma * (2.0 * row[j] - own - b[j]), 0.0)
    if own + largest <= limit:
        return
    for j in range(b.size):
        if A.sparse:
            terms = A.indptr[i + 1] - A.indptr[i] + B.indptr[j + 1] - B.indptr[j] + 8.0
        # Beyond UNDERFLOW an exponent need not be exact, but what cancellation may have added does not count.
        cancelled = 2.0 * EPSILON * terms * gamma * (own + b[j])
        if own + b[j] > limit and row[j] > -UNDERFLOW - cancelled:
            row[j] = -gamma * _apart(A, i, B, j, False)


@kernel
def exponentials(X, scale, constant, K, first):
    """Write ``exp(scale X) + constant``, of ``scale X <= 0``, to the beginnings of rows of ``K`` from ``first`` on."""
    X, K, turns = unowned(X), unowned(K), np.empty(X.shape[1])
    for i in range(X.shape[0]):
        row = K[first + i, : X.shape[1]]
        for j in range(row.size):
            row[j] = scale * X[i, j]
        _exponentials(row, turns)
        for j in range(row.size if constant != 0.0 else 0):
            row[j] += constant


@kernel(fastmath={"contract"}, leaf=True)
def _exponentials(row, turns):
    """Replace values ``x <= 0`` by ``exp(x)``, in place, off by at most ``EXP`` of itself, and alike on all machines
    that round products and sums together.

    ``x = k log 2 + r`` with ``|r| <= log(2) / 2``. ``k`` times the first part of log 2, and its difference from ``x``,
    are exact; the rest of ``r`` is rounded by 0.35 units. The polynomial of degree 11, that of Taylor less the last of
    its Chebyshev parts, is off by 0.1 units of ``exp(r)``, and in Horner's form rounded by less than 4, by less still
    where products and sums are rounded together. Times ``2^k`` is exact: ``k``, which ``TURN`` has moved to the last
    digits of a number, is added to the exponent. Values below ``LOWEST`` count as that.
    """
    bits, added = row.view(np.int64), turns.view(np.int64)
    for j in range(row.size):
        x = LOWEST if row[j] < LOWEST else row[j]
        turns[j] = x * LOG2E + TURN
        k = turns[j] - TURN
        r = (x - k * LOG2_HIGH) - k * LOG2_LOW
        p = 2.5114923206989166e-08
        p = p * r + 2.7632697009842825e-07
        p = p * r + 2.755722472411198e-06
        p = p * r + 2.480148524172348e-05
        p = p * r + 1.9841269909510242e-04
        p = p * r + 1.388888895257993e-03
        p = p * r + 8.333333333309378e-03
        p = p * r + 4.166666666648701e-02
        p = p * r + 0.16666666666666702
        p = p * r + 0.5000000000000019
        p = p * r + 1.0
        row[j] = p * r + 1.0
    for j in range(row.size):
        bits[j] += added[j] << 52


@kernel(fastmath={"contract"}, leaf=True)
def rough_exponents(A, B, city, out, first):
    """Write ``-||a - b||^2``, or with ``city`` ``-||a - b||_1``, of rows ``A``, shape (p, d), and columns ``B``, shape
    (d, q), to the beginnings of float32 rows from ``first`` on.

    ``d`` is a multiple of 4. Each number is summed in the same order, whatever others are formed with it.
    """
    width, zero = 512, np.float32(0.0)
    for start in range(0, B.shape[1], width):
        stop = min(start + width, B.shape[1])
        for i in range(A.shape[0]):
            row = out[first + i, start:stop]
            for j in range(row.size):
                row[j] = zero
            for k in range(0, A.shape[1], 4):
                p, q, r, s = A[i, at(k)], A[i, at(k + 1)], A[i, at(k + 2)], A[i, at(k + 3)]
                P, Q = B[at(k), start:stop], B[at(k + 1), start:stop]
                R, S = B[at(k + 2), start:stop], B[at(k + 3), start:stop]
                if city:
                    for j in range(row.size):
                        row[j] = row[j] - abs(P[j] - p) - abs(Q[j] - q) - abs(R[j] - r) - abs(S[j] - s)
                else:
                    for j in range(row.size):
                        e, f, g, h = P[j] - p, Q[j] - q, R[j] - r, S[j] - s
                        row[j] = row[j] - e * e - f * f - g * g - h * h


@kernel(leaf=True)
def rough_arguments(K, a, b):
    """Turn inner products ``2 gamma A B'``, float32 of shape (p, q), into ``-gamma ||x - z||^2``, or ``ROUGH_LEAST``
    where that is more; ``a`` and ``b`` are gamma times the squared norms.
    """
    least = np.float32(ROUGH_LEAST)
    for i in range(K.shape[0]):
        row, own = K[i], a[i]
        for j in range(row.size):
            x = row[j] - own - b[j]
            row[j] = least if x < least else x


@kernel(fastmath={"contract"})
def rough_exponentials(K, first, last, size, constant):
    """Replace ``x <= 0``, the first ``size`` values of float32 rows from ``first`` to before ``last``, by
    ``exp(x) + constant``, off by some 1e-7.

    As :func:`_exponentials`, with a polynomial of degree 6: its rest is 2.9 units of ``exp(r)``, its rounding 2, and
    that of ``r`` 0.8 units.
    """
    turns = np.empty(size, dtype=np.float32)
    added, least, more = turns.view(np.int32), np.float32(ROUGH_LOWEST), np.float32(constant)
    log2e, turn = np.float32(LOG2E), np.float32(ROUGH_TURN)
    high, low = np.float32(ROUGH_HIGH), np.float32(ROUGH_LOW)
    c6, c5, c4, c3 = np.float32(1.0 / 720.0), np.float32(1.0 / 120.0), np.float32(1.0 / 24.0), np.float32(1.0 / 6.0)
    c2, c1 = np.float32(0.5), np.float32(1.0)
    for i in range(first, last):
        row = K[i, :size]
        bits = row.view(np.int32)
        for j in range(row.size):
            x = least if row[j] < least else row[j]
            turns[j] = x * log2e + turn
            k = turns[j] - turn
            r = (x - k * high) - k * low
            row[j] = (((((c6 * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + c1
        for j in range(row.size):
            bits[j] += added[j] << np.int32(23)
        for j in range(row.size):
            row[j] += more


@kernel(leaf=True)
def mirror(K, first, stop):
    """Copy what is below the diagonal, in rows from ``first`` to before ``stop``, to the other side of it, in parts
    that stay in the cache.
    """
    width = 32
    for top in range(first, stop, width):
        bottom = min(top + width, stop)
        for left in range(0, bottom, width):
            for i in range(top, bottom):
                row = K[i, left : min(left + width, i)]
                for j in range(row.size):
                    K[at(left + j), at(i)] = row[j]


def warm_up():
    index, weights = np.arange(2), np.ones(2)
    spread(weights, weights)
    spread_at(weights, weights, index)
    inner(weights, weights)
    for dtype in (np.float64, np.float32, np.int32):
        Q = np.eye(2, dtype=dtype)
        add_rows(Q, index, weights, np.zeros(2), 0)
        add_rows_at(Q, index, weights, index, np.zeros(2))
        mirror(Q, 0, 2)
        gather(Q, index, index, 1.0, np.empty((2, 2)), 0.0)
        gather(Q, index, index, 1.0, np.empty((2, 2), dtype=np.float32), 0.0)
    to_fixed(np.eye(2), 1.0, np.eye(2, dtype=np.int32), 0, 0)
    X = matrix_of(np.eye(2))
    exponentials(-np.eye(2), 1.0, 0.0, np.eye(2), 0)
    rough = np.zeros((4, 4), dtype=np.float32)
    rough_exponents(rough, rough, False, rough.copy(), 0)
    rough_arguments(rough, rough[0], rough[0])
    rough_exponentials(rough, 0, 2, 2, 0.0)
    exponents(np.eye(2), weights, weights, 1.0, 1e-13, X, X, True)
    city_exponents(np.eye(2), 1.0, X, X, True)
