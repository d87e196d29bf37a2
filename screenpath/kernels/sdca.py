"""Proximal stochastic dual coordinate ascent for the sparse SVM (Shalev-Shwartz & Zhang 2016)."""

import numpy as np

from screenpath.kernels import kernel

SUMS = {"reassoc", "contract", "nsz", "arcp"}


@kernel
def gather_rows(data, indices, indptr, by_column, dense, n, d, labels, classes, status, keep):
    """Copy the rows with surviving dual variables and the columns with surviving weights.

    Of few columns of dense data only these are fetched, from ``by_column``: the values column by column.

    Returns
    -------
    lines, columns : ndarray of int64
        Numbers of the copied samples and features.
    data, indices, indptr : ndarray
        CSR arrays of the copy; ``indices`` is empty where the data is dense.
    """
    alive = np.zeros(n, dtype=np.bool_)
    for t in range(status.size):
        if status[t] == 0:
            alive[t % n] = True
    rank = np.full(d, -1, dtype=np.int64)
    for f in range(keep.size):
        if keep[f] != 0:
            rank[f % d] = 0
    width = 0
    for j in range(d):
        if rank[j] == 0:
            rank[j] = width
            width += 1
    columns = np.empty(width, dtype=np.int64)
    for j in range(d):
        if rank[j] >= 0:
            columns[rank[j]] = j
    lines = np.flatnonzero(alive)
    ptr = np.zeros(lines.size + 1, dtype=np.int64)
    for k in range(lines.size):
        i = lines[k]
        count = 0
        if dense:
            count = width
        else:
            for p in range(indptr[i], indptr[i + 1]):
                count += rank[indices[p]] >= 0
        ptr[k + 1] = ptr[k] + count
    out = np.empty(ptr[lines.size], dtype=data.dtype)
    where = np.empty(0 if dense else out.size, dtype=indices.dtype)
    if dense and 8 * width <= d:  # else every cache line of a row holds a value that is wanted
        for j in range(width):
            column = by_column[columns[j] * n : (columns[j] + 1) * n]
            for k in range(lines.size):
                out[k * width + j] = column[lines[k]]
        return lines, columns, out, where, ptr
    for k in range(lines.size):
        i = lines[k]
        q = ptr[k]
        start = indptr[i]
        if dense:
            for j in range(width):
                out[q + j] = data[start + columns[j]]
            continue
        for p in range(start, indptr[i + 1]):
            j = rank[indices[p]]
            if j >= 0:
                out[q], where[q] = data[p], j
                q += 1
    return lines, columns, out, where, ptr


@kernel(fastmath=SUMS)
def sweeps(data, indices, indptr, dense, labels, classes, n, width, gamma, alpha, shrink, sqnorms, status, theta, v,
           order, count, random):  # fmt: skip
    """Run sweeps over the surviving dual variables in random order, in place.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Gathered rows, ``k`` lines of ``width`` columns. ``labels``, ``sqnorms``: of these lines.
    n : int
        Samples of the full problem (the loss is a mean over them).
    shrink : ndarray of shape (classes * width,)
        Threshold of every weight: ``beta``, or infinite for a screened one.
    status, theta : ndarray of shape (classes * k,)
        ``theta`` is updated where ``status`` is 0.
    v : ndarray of shape (classes * width,)
        ``X' psi(theta) / n``, updated; the weights are ``S_shrink(v) / alpha``.
    order : ndarray of int64
        Dual variables to visit; permuted in place.
    count : int
        Sweeps.
    random : ndarray of uint64 of shape (1,)
        State of the generator (xorshift64*), updated.

    Returns
    -------
    touched : int
        Values touched.
    """
    k = labels.size
    touched = 0
    by_alpha, by_alpha_n = 1.0 / alpha, 1.0 / (alpha * n)
    for _ in range(count):
        for a in range(order.size - 1, 0, -1):
            random[0] ^= random[0] >> np.uint64(12)
            random[0] ^= random[0] << np.uint64(25)
            random[0] ^= random[0] >> np.uint64(27)
            draw = (random[0] * np.uint64(2685821657736338717)) >> np.uint64(33)
            b = np.int64((draw * np.uint64(a + 1)) >> np.uint64(31))  # draw has 31 bits
            order[a], order[b] = order[b], order[a]
        for a in range(order.size):
            t = order[a]
            c = t // k
            i = t - c * k
            own = labels[i]
            start, stop = indptr[i], indptr[i + 1]
            base = c * width
            margin = 0.0
            if dense:
                line, point, limits = data[start:stop], v[base : base + width], shrink[base : base + width]
                for j in range(width):
                    x = point[j]
                    margin += line[j] * (max(x - limits[j], 0.0) + min(x + limits[j], 0.0))
            else:
                for p in range(start, stop):
                    x = v[base + indices[p]]
                    s = shrink[base + indices[p]]
                    margin += data[p] * (max(x - s, 0.0) + min(x + s, 0.0))
            if classes == 1:
                margin *= own
                curvature = sqnorms[i]
            else:
                second = own * width
                margin = -margin
                for p in range(start, stop):
                    j = p - start if dense else indices[p]
                    x = v[second + j]
                    s = shrink[second + j]
                    margin += data[p] * (max(x - s, 0.0) + min(x + s, 0.0))
                curvature = 2.0 * sqnorms[i]
            touched += stop - start
            value = theta[t] + (1.0 - margin * by_alpha - gamma * theta[t]) / (gamma + curvature * by_alpha_n)
            value = min(max(value, 0.0), 1.0)
            step = value - theta[t]
            if step == 0.0:
                continue
            theta[t] = value
            step = step / n if classes > 1 else own * step / n
            sign = -1.0 if classes > 1 else 1.0
            if dense:
                line, point = data[start:stop], v[base : base + width]
                for j in range(width):
                    point[j] += sign * step * line[j]
            else:
                for p in range(start, stop):
                    v[base + indices[p]] += sign * step * data[p]
            if classes > 1:
                for p in range(start, stop):
                    j = p - start if dense else indices[p]
                    v[own * width + j] += step * data[p]
            touched += stop - start
    return touched


@kernel
def reduced_terms(scores, labels, n, classes, gamma, status, theta):
    """Sum over the reduced problem, where the loss of a fixed dual variable is 0 (R) or linear (L).

    Returns
    -------
    loss, slack, apart_sq : float
        As ``sample_terms`` of ``kernels/sparse.py``; the last two over survivors.
    """
    loss, slack, apart_sq = 0.0, 0.0, 0.0
    for i in range(n):
        own = labels[i]
        for c in range(classes):
            k = c * n + i
            if status[k] < 0:
                continue
            t = 1.0 - own * scores[i] if classes == 1 else 1.0 - scores[own * n + i] + scores[k]
            if status[k] > 0:
                loss += t - 0.5 * gamma
                continue
            value = theta[k]
            best = min(max(t / gamma, 0.0), 1.0)
            loss += best * (t - 0.5 * gamma * best)
            slack += (best - value) * (t - 0.5 * gamma * (best + value))
            apart_sq += (best - value) * (best - value)
    return loss, slack, apart_sq


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    labels, status = np.array([1, -1], dtype=np.int64), np.zeros(2, dtype=np.int8)
    a, keep, random = np.ones(2), np.ones(2, dtype=np.int8), np.ones(1, dtype=np.uint64)
    gather_rows(*view, view[0], False, 2, 2, labels, 1, status, keep)
    sweeps(*view, False, labels, 1, 2, 2, 0.5, 1.0, a, a, status, a.copy(), a.copy(), np.arange(2), 1, random)
    reduced_terms(a, labels, 2, 1, 0.5, status, a)
