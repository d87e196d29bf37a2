"""Passes over rows: products with a vector, weighted sums, copies of survivors. Plain arrays only."""

import numpy as np

from screenpath.kernels import SUMS, at, kernel


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def four_products(x0, x1, x2, x3, w):
    """Return the products of four rows with ``w``, each value of which is read once."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(w.size):
        t0 += x0[j] * w[j]
        t1 += x1[j] * w[j]
        t2 += x2[j] * w[j]
        t3 += x3[j] * w[j]
    return t0, t1, t2, t3


@kernel(fastmath=SUMS, leaf=True)
def dense_products(X, w, out, start, stop):
    """Write ``X[i] . w`` to ``out[i]`` for ``start <= i < stop``.

    A product has the same bits wherever its row stands: the last rows are repeated to make up four.
    """
    d = X.shape[1]
    if 0 < d <= 3:  # the loop over so few columns would take longer than its work
        a, b, c = w[0], w[1] if d > 1 else 0.0, w[2] if d > 2 else 0.0
        for i in range(at(start), at(stop)):
            total = X[i, 0] * a
            if d > 1:
                total += X[i, 1] * b
            if d > 2:
                total += X[i, 2] * c
            out[i] = total
        return
    i = start
    while i + 4 <= stop:
        out[i], out[i + 1], out[i + 2], out[i + 3] = four_products(X[i], X[i + 1], X[i + 2], X[i + 3], w)
        i += 4
    if i < stop:
        j, k = min(i + 1, stop - 1), min(i + 2, stop - 1)
        out[i], out[j], out[k], _ = four_products(X[i], X[j], X[k], X[k], w)


@kernel(fastmath={"contract"}, forceinline=True, leaf=True, inner=True)
def sparse_product(data, indices, start, stop, w):
    """Return ``sum_p data_p w[indices_p]`` for ``start <= p < stop``.

    Four independent sums; by itself, the compiler gathers into vectors, which takes longer.
    """
    p, last = at(start), at(stop)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    while p + at(4) <= last:
        a += data[p] * w[at(indices[p])]
        b += data[p + at(1)] * w[at(indices[p + at(1)])]
        c += data[p + at(2)] * w[at(indices[p + at(2)])]
        d += data[p + at(3)] * w[at(indices[p + at(3)])]
        p += at(4)
    while p < last:
        a += data[p] * w[at(indices[p])]
        p += at(1)
    return (a + b) + (c + d)


@kernel(fastmath=SUMS, leaf=True)
def csr_products(data, indices, indptr, w, out, start, stop):
    """Write ``x_i . w`` to ``out[i]`` for the rows ``start <= i < stop`` of a CSR matrix."""
    for i in range(start, stop):
        out[i] = sparse_product(data, indices, indptr[i], indptr[i + 1], w)


@kernel(fastmath={"contract"}, leaf=True)
def add_rows(X, index, count, weights, out):
    """Add ``sum_k weights[index[k]] X[index[k]]`` over ``count`` rows of a list to ``out``.

    Row after row, so that the result does not depend on where a list is cut; four rows are read before a sum is
    written.
    """
    d, k = out.size, 0
    if 0 < d <= 3:  # the loop over so few columns would take longer than its work
        a, b, c = out[0], out[1] if d > 1 else 0.0, out[2] if d > 2 else 0.0
        for m in range(count):
            i = at(index[m])
            t = weights[i]
            a += t * X[i, 0]
            if d > 1:
                b += t * X[i, 1]
            if d > 2:
                c += t * X[i, 2]
        out[0] = a
        if d > 1:
            out[1] = b
        if d > 2:
            out[2] = c
        return
    while k + 4 <= count:
        i0, i1, i2, i3 = at(index[k]), at(index[k + 1]), at(index[k + 2]), at(index[k + 3])
        t0, t1, t2, t3 = weights[i0], weights[i1], weights[i2], weights[i3]
        x0, x1, x2, x3 = X[i0], X[i1], X[i2], X[i3]
        for j in range(d):
            out[j] = (((out[j] + t0 * x0[j]) + t1 * x1[j]) + t2 * x2[j]) + t3 * x3[j]
        k += 4
    for m in range(k, count):
        i = at(index[m])
        t = weights[i]
        for j in range(d):
            out[j] += t * X[i, j]


@kernel(fastmath=SUMS)
def dense_sum(X, theta, out, start, stop):
    """Add ``sum_i theta_i X[i]`` over the block to ``out``; return the rows touched (zeros are skipped)."""
    return dense_sum_listed(X, theta, out, start, stop, np.empty(max(stop - start, 1), dtype=np.int64))


@kernel(fastmath=SUMS, leaf=True, inner=True)
def dense_sum_listed(X, theta, out, start, stop, index):
    """:func:`dense_sum`, with room for a list of the block's rows."""
    touched, i = np.int64(0), start
    while i + 8 <= stop:  # most are often zero
        some = 0.0
        for k in range(at(i), at(i + 8)):
            some += abs(theta[k])
        if some != 0.0:
            for k in range(i, i + 8):
                index[at(touched)] = k  # kept where the next one does not overwrite it
                touched += theta[at(k)] != 0.0
        i += 8
    for k in range(i, stop):
        index[at(touched)] = k
        touched += theta[at(k)] != 0.0
    add_rows(X, index, touched, theta, out)
    return touched


@kernel(fastmath=SUMS, leaf=True)
def csr_sum(data, indices, indptr, theta, out, start, stop):
    """Add ``sum_i theta_i x_i`` over the block to ``out``; return the rows touched (zeros are skipped)."""
    touched = 0
    for i in range(start, stop):
        t = theta[i]
        if t != 0.0:
            touched += 1
            for p in range(at(indptr[i]), at(indptr[i + 1])):
                out[at(indices[p])] += t * data[p]
    return touched


@kernel(fastmath=SUMS, leaf=True)
def dense_squared_norms(X, out):
    """Write the squared norm of every dense row to ``out``."""
    for i in range(at(out.size)):
        total = 0.0
        for j in range(X.shape[1]):
            value = np.float64(X[i, j])
            total += value * value
        out[i] = total


@kernel(fastmath=SUMS, leaf=True)
def csr_squared_norms(data, indptr, out):
    """Write the squared norm of every CSR row to ``out``."""
    for i in range(out.size):
        total = 0.0
        for p in range(at(indptr[i]), at(indptr[i + 1])):
            value = np.float64(data[p])
            total += value * value
        out[i] = total


@kernel(leaf=True)
def dense_take(X, index, signs, out):
    """Copy the rows ``signs[k] * X[index[k]]`` to ``out`` (float64)."""
    for k in range(index.size):
        i = index[k]
        s = signs[k]
        for j in range(X.shape[1]):
            out[k, j] = s * X[i, j]


@kernel(leaf=True)
def csr_take(data, indices, indptr, index, signs, out_data, out_indices, out_indptr):
    """Copy the CSR rows ``signs[k] * x_index[k]`` to the (large enough) output arrays."""
    q = at(0)
    out_indptr[0] = 0
    for k in range(index.size):
        begin, size, sign = at(indptr[index[k]]), at(indptr[index[k] + 1] - indptr[index[k]]), signs[k]
        for p in range(size):
            out_data[q + p] = sign * data[begin + p]
            out_indices[q + p] = indices[begin + p]
        q += size
        out_indptr[k + 1] = q


def warm_up():
    theta = np.ones(2)
    index = np.array([1, 0], dtype=np.int64)
    X, w, out = np.eye(2), np.ones(2), np.zeros(2)
    dense_products(X, w, out, 0, 2)
    dense_sum(X, theta, out, 0, 2)
    dense_take(X, index, theta, np.empty((2, 2)))
    data, indices, indptr = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    csr_products(data, indices, indptr, w, out, 0, 2)
    csr_sum(data, indices, indptr, theta, out, 0, 2)
    csr_squared_norms(data, indptr, out)
    dense_squared_norms(X, out)
    taken = np.empty(2), np.empty(2, dtype=np.int32), np.empty(3, dtype=np.int64)
    csr_take(data, indices, indptr, index, theta, *taken)
