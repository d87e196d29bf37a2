"""A step on the face of a box problem: its free dual variables move together, by conjugate gradients.

Coordinate sweeps find soon which dual variables are free, and are slow to find what they are where the free rows are
far from orthogonal. On the face they solve the linear system ``G_F G_F' x = t_F``, which takes conjugate gradients a
number of products that grows with the root of its condition only. What leaves the box is put to its end, where that
still raises the dual.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.newton_system import add

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
LEAST = 1e-9  # of a step that is worth taking
SHORT = 0.05  # the shortest step whose clipped end is tried


@kernel(fastmath=SUMS)
def _product(X, data, indices, indptr, sparse, i, w):
    total = 0.0
    if sparse:
        for q in range(at(indptr[i]), at(indptr[i + 1])):
            total += data[q] * w[at(indices[q])]
    else:
        for j in range(w.size):
            total += X[i, j] * w[j]
    return total


@kernel(fastmath=SUMS)
def _gap(face, lo, hi, alpha, step, t):
    """Return the share of the gap that the free rows have after a step that leaves ``t``, as far as they tell."""
    total = 0.0
    for k in range(face.size):
        i = at(face[k])
        a = min(max(alpha[i] + step[k], lo[i]), hi[i])
        total += max(lo[i] * t[k], hi[i] * t[k]) - a * t[k]
    return total


@kernel(fastmath=SUMS)
def face_step(X, data, indices, indptr, sparse, c, lo, hi, sqnorms, alpha, w, face, prox, aim, forcing, limit):
    """Move the free dual variables to where their rows are at their kink, or some way there.

    Parameters
    ----------
    X : ndarray of shape (k, d)
        Dense rows; empty for sparse rows.
    data, indices, indptr : ndarray
        CSR rows; empty for dense rows.
    sparse : bool
    c, lo, hi, sqnorms, alpha : ndarray of shape (k,)
        ``alpha`` is updated.
    w : ndarray of shape (d,)
        ``base + G'alpha``, updated.
    face : ndarray of int64
        Rows whose dual variables are free.
    prox : float
        Added to the system, times the squared norms: rows that stand twice would leave it singular.
    aim : float
        Their share of the gap at which to stop.
    forcing : float
        Relative size of the residual at which to stop.
    limit : int
        Products at most.

    Returns
    -------
    int
        Rows touched.
    """
    n, d = face.size, w.size
    t, r, p, step, image, scale = np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    change, search = np.zeros(d), np.empty(d)
    square = 0.0
    for k in range(n):
        i = face[k]
        t[k] = c[i] - _product(X, data, indices, indptr, sparse, i, w)
        scale[k] = sqnorms[i]
        r[k] = t[k]
        p[k] = r[k] / scale[k]
        square += r[k] * p[k]
    target, formed = forcing * forcing * square, 0
    while formed < limit and square > target and _gap(face, lo, hi, alpha, step, r) > aim:
        for j in range(d):
            search[j] = 0.0
        for k in range(n):
            add(X, data, indices, indptr, sparse, face[k], p[k], search)
        curve = 0.0
        for k in range(n):
            image[k] = _product(X, data, indices, indptr, sparse, face[k], search) + prox * scale[k] * p[k]
            curve += p[k] * image[k]
        length, fresh = square / curve, 0.0
        for k in range(n):
            step[k] += length * p[k]
            r[k] -= length * image[k]
            fresh += r[k] * r[k] / scale[k]
        for j in range(d):
            change[j] += length * search[j]
        for k in range(n):
            p[k] = r[k] / scale[k] + fresh / square * p[k]
        square = fresh
        formed += 1
    share, touched = 1.0, n * (1 + formed)
    while True:
        inside, rise = True, 0.0
        for k in range(n):
            i = at(face[k])
            wanted = alpha[i] + share * step[k]
            value = min(max(wanted, lo[i]), hi[i])
            inside &= value == wanted
            image[k] = value - alpha[i]
            rise += t[k] * image[k]
        if inside:
            for j in range(d):
                search[j] = share * change[j]
            break
        for j in range(d):
            search[j] = 0.0
        for k in range(n):
            add(X, data, indices, indptr, sparse, face[k], image[k], search)
        touched += n
        moved = 0.0
        for j in range(d):
            moved += search[j] * search[j]
        if rise > 0.5 * moved:
            break
        share *= 0.5
        if share < SHORT:  # as far as all of them can go
            for k in range(n):
                i = at(face[k])
                room = hi[i] - alpha[i] if step[k] > 0.0 else lo[i] - alpha[i]
                if abs(step[k]) * share > abs(room):
                    share = room / step[k]
            share = share if share > LEAST else 0.0
    for k in range(n):
        i = at(face[k])
        alpha[i] = min(max(alpha[i] + image[k], lo[i]), hi[i])
    for j in range(d):
        w[j] += search[j]
    return touched


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    one = np.ones(2)
    nothing = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    face_step(
        np.eye(2), *nothing, False, one, -one, one, one, np.zeros(2), np.zeros(2), np.arange(2), 1e-3, 0.0, 0.1, 9
    )
