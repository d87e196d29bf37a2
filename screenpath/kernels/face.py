"""A step on the face of a box problem: its free dual variables move together, by conjugate gradients.

Coordinate sweeps find soon which dual variables are free, and are slow to find what they are where the free rows are
far from orthogonal. On the face they solve the linear system ``G_F G_F' x = t_F``, which takes conjugate gradients a
number of products that grows with the root of its condition only. What leaves the box is put to its end, where that
still raises the dual.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.matrix import add, borrowed, dot, matrix_of

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
LEAST = 1e-9  # of a step that is worth taking
SHORT = 0.05  # the shortest step whose clipped end is tried


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
def face_step(X, c, lo, hi, sqnorms, alpha, w, face, prox, aim, forcing, limit):
    """Move the free dual variables to where their rows are at their kink, or some way there.

    Parameters
    ----------
    X : Matrix
        Of k rows.
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
    X, n, d = borrowed(X), face.size, w.size
    t, r, p, step, image, scale = np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    change, search = np.zeros(d), np.empty(d)
    square = 0.0
    for k in range(n):
        i = face[k]
        t[k] = c[i] - dot(X, i, w)
        scale[k] = sqnorms[i]
        r[k] = t[k]
        p[k] = r[k] / scale[k]
        square += r[k] * p[k]
    target, formed = forcing * forcing * square, 0
    while formed < limit and square > target and _gap(face, lo, hi, alpha, step, r) > aim:
        for j in range(d):
            search[j] = 0.0
        for k in range(n):
            add(X, face[k], p[k], search)
        curve = 0.0
        for k in range(n):
            image[k] = dot(X, face[k], search) + prox * scale[k] * p[k]
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
            add(X, face[k], image[k], search)
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
    X = matrix_of(np.eye(2))
    face_step(X, one, -one, one, one, np.zeros(2), np.zeros(2), np.arange(2), 1e-3, 0.0, 0.1, 9)
