"""Semismooth Newton for the sparse SVM. Layout of all arrays: see ``kernels/problem/sparse.py``.

``roots`` are the roots of the samples' weights.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.sparse import Samples, products, respond
from screenpath.kernels.problem.sparse_intercept import settle
from screenpath.kernels.rows.matrix import add, dot, matrix_of
from screenpath.kernels.rows.newton_system import advance, inner
from screenpath.kernels.rows.unowned import unowned


@kernel(leaf=True)
def pick(w, u, allowed, alpha, beta, features, active, signs, rhs):
    """List features whose weight is or becomes nonzero, their signs, and minus the gradient; return how many."""
    count = 0
    for k in range(features.size):
        f = features[k]
        if w[f] != 0.0:
            sign = 1.0 if w[f] > 0.0 else -1.0
        elif u[f] > beta and allowed[f] >= 0:
            sign = 1.0
        elif u[f] < -beta and allowed[f] <= 0:
            sign = -1.0
        else:
            continue
        active[count], signs[count] = f, sign
        rhs[count] = u[f] - alpha * w[f] - beta * sign
        count += 1
    return count


@kernel
def quadratic_zone(status, theta, ends, place):
    """Number the surviving dual variables strictly between ``ends`` in ``place`` (-1 elsewhere); return their list."""
    inside = np.empty(theta.size, dtype=np.int64)
    count, (low, high) = 0, ends
    for t in range(theta.size):
        if status[t] == 0 and low < theta[t] < high:
            place[t] = count
            inside[count] = t
            count += 1
        else:
            place[t] = -1
    return inside[:count].copy()


@kernel(leaf=True)
def gather(view, samples, roots, active, place, out_data, out_place, out_ptr):
    """Copy the rows of the quadratic zone and the active columns of the dual's matrix, column by column.

    Rows are multiplied by ``roots``. Returns the values copied; if the output arrays are too small, the copy is
    incomplete, and the number of values needed is returned.
    """
    (data, indices, indptr), labels, n, classes = view, samples.labels, samples.n, samples.classes
    d = indptr.size - 1
    q = 0
    room = out_data.size
    out_ptr[0] = 0
    for k in range(active.size):
        f = active[k]
        c = f // d
        j = f - c * d
        start, stop = indptr[j], indptr[j + 1]
        full = stop - start == n
        values, lines = data[start:stop], indices[start:stop]
        for r in range(values.size):
            i = at(r) if full else at(lines[r])
            x = roots[i] * values[r]
            own = labels[i]
            if classes > 1 and own == c:
                for other in range(classes):
                    if place[at(other * n) + i] >= 0:
                        if q < room:
                            out_data[q], out_place[q] = x, place[at(other * n) + i]
                        q += 1
            elif place[at(c * n) + i] >= 0:
                if q < room:
                    out_data[q], out_place[q] = (own * x if classes == 1 else -x), place[at(c * n) + i]
                q += 1
        out_ptr[k + 1] = q
    return q


@kernel(leaf=True)
def gather_dense(view, samples, roots, active, place, inside, out):
    """:func:`gather` of the binary model as a dense array, one column of the data in each line of ``out``."""
    (data, indices, indptr), labels, n = view, samples.labels, samples.n
    for k in range(active.size):
        j = active[k]
        start, stop = indptr[j], indptr[j + 1]
        if stop - start == n:
            column, line = data[start:stop], out[k]
            for e in range(inside.size):
                i = inside[e]
                line[e] = labels[i] * roots[i] * column[i]
        else:
            out[k, :] = 0.0
            for p in range(at(start), at(stop)):
                e = place[at(indices[p])]
                if e >= 0:
                    out[k, e] = labels[at(indices[p])] * roots[at(indices[p])] * data[p]


@kernel(fastmath=SUMS, leaf=True)
def without(level, image):
    """Subtract from ``image`` its components along the rows of ``level``, which have length 1 and are orthogonal."""
    for r in range(level.shape[0]):
        line, share = level[r], 0.0
        for e in range(line.size):
            share += line[e] * image[e]
        for e in range(line.size):
            image[e] -= share * line[e]


@kernel(fastmath=SUMS)
def conjugate_gradients(Z, zone, level, alpha, scale, rhs, tol, limit, out):
    """Solve ``(alpha I + scale Z'(I - L'L)Z) out = rhs``, ``Z`` a ``Matrix`` of a line for each weight, ``zone`` long.

    The rows of ``L = level`` have length 1 and are orthogonal: the directions in which free intercepts answer a step;
    there are none without intercepts. Ends with a residual of ``tol ||rhs||``, or after ``limit`` iterations.
    """
    Z, size, image = unowned(Z), rhs.size, np.empty(zone)
    residual, direction, product = rhs.copy(), rhs.copy(), np.empty(size)
    out[:] = 0.0
    rr = inner(rhs, rhs)
    stop = tol * tol * rr
    for _ in range(limit):
        if rr <= stop or rr == 0.0:
            break
        image[:] = 0.0
        for k in range(size):
            add(Z, k, direction[k], image)
        without(level, image)
        curvature = 0.0
        for k in range(size):
            product[k] = alpha * direction[k] + scale * dot(Z, k, image)
            curvature += product[k] * direction[k]
        if not curvature > 0.0:  # squares have left the range of floating point
            break
        rr = advance(out, residual, direction, product, rr, curvature)


@kernel(leaf=True)
def trial(view, samples, status, alpha, beta, w, way, step, new, level):
    """Move by ``step * direction``, weights that would change sign stopping at 0, and evaluate there.

    ``way`` are the active features, the sign of each, minus the gradient there, and the direction.
    Writes the point's weights, scores, ``theta`` and ``psi``, the arrays of ``new``. A free intercept is the best one,
    and part of the scores; it replaces the guess in ``level``, of shape (1,), which is None without one.

    Returns ``loss``, ``penalty``: the two parts of the objective of the reduced problem; ``expected``: decrease that
    the slope promises, ``-grad . (new_w - w)``; ``touched``.
    """
    n, (new_w, scores, theta, psi), (active, signs, rhs, direction) = samples.n, new, way
    new_w[:] = 0.0
    scores[:] = 0.0
    expected, w_sq, w_l1 = 0.0, 0.0, 0.0
    for k in range(active.size):
        f = active[k]
        value = w[f] + step * direction[k]
        if value * signs[k] < 0.0:
            value = 0.0
        expected += rhs[k] * (value - w[f])
        new_w[f] = value
        w_sq += alpha * value * value  # not w^2 alone: see kernels.sparse.feature_terms
        w_l1 += abs(value)
    touched = products(view, n, new_w, scores)
    if level is not None:
        level[0] = settle(scores, samples, status, level[0])
    loss = respond(scores, samples, status, theta, psi)
    return loss / n, 0.5 * w_sq + beta * w_l1, expected, touched


def warm_up():
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    labels, status = np.array([1, -1], dtype=np.int64), np.zeros(2, dtype=np.int8)
    a, index = np.full(2, 0.5), np.arange(2)
    samples = Samples(labels, a, 2, 1, 0.5, a, 0.0, 1.0)
    pick(a, a, status, 1.0, 1.0, index, index.copy(), a.copy(), a.copy())
    quadratic_zone(status, a, (0.0, 1.0), index.copy())
    out, ptr = np.empty(2), np.empty(3, dtype=np.int64)
    place = np.arange(2, dtype=np.int32)
    gather(view, samples, a, index, index, out, place, ptr)
    gather_dense(view, samples, a, index, index, index, np.empty((2, 2)))
    conjugate_gradients(matrix_of(np.eye(2)), 2, np.empty((0, 2)), 1.0, 1.0, a, 0.1, 5, np.empty(2))
    new = a.copy(), a.copy(), a.copy(), a.copy()
    trial(view, samples, status, 1.0, 1.0, a, (index, a, a, a), 1.0, new, None)
