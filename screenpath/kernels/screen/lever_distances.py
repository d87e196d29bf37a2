"""What levers (``lever``) decide by the exact distances of rows from their centres."""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.rows.matrix import borrowed, dot, matrix_of
from screenpath.kernels.screen.lever import SUMS


@kernel(forceinline=True)
def _reach(room, radius, least):
    """Return the square of the distance at which a lever is as wide as ``room``: the inverse of :func:`_width`."""
    return (room * room if room >= 2.0 * least else 4.0 * least * (room - least)) / (radius * radius)


@kernel(fastmath=SUMS, forceinline=True)
def _apart(X, i, center, norm, length, off):
    """Return the squared distance of a row from a point, both of known norm."""
    if X.sparse:
        most = norm + length
        return max(norm * norm - 2.0 * dot(X, i, center) + length * length + off * most * most, 0.0)
    square, x = 0.0, X.dense[at(i)]
    for j in range(at(center.size)):
        apart = x[j] - center[j]
        square += apart * apart
    return square


@kernel(forceinline=True)
def _shows(X, i, center, norm, length, off, rounding, reach):
    """Tell whether a row is nearer to a lever's centre than what its ``reach`` is the square of."""
    square = _apart(X, i, center, norm, length, off)
    # What rounding e of a distance D adds to its square: (D + e)^2 <= (1 + r) D^2 + (1 + 1/r) e^2.
    return square + rounding * (square + 2.0 * (norm + length) ** 2) < reach


@kernel
def decide_exactly(
    X, where, index, norms, tau, slack, radius, levers, offsets, away, centers, lengths, off, rounding, status
):  # fmt: skip
    """Decide some rows by their distance from the centre of the lever that is the likeliest to do so.

    All distances from the fixed centre being right angles, it would be the one whose reach, the square of the distance
    up to which it decides, is the largest beside the square of its own distance.

    Parameters
    ----------
    X : Matrix
    where, index : ndarray of int64 of shape (k,)
        Which of them are to be decided, and their places in all that follows.
    norms, tau, slack : ndarray of shape (n,)
    radius, levers, offsets
        As of :func:`decide_by_levers`.
    away : ndarray of shape (2 * levers,)
        Distances of the levers' centres from the fixed one, to choose by.
    centers : ndarray of shape (2 * levers, d)
    lengths : ndarray of shape (2 * levers,)
        Their norms.
    off : float
        Relative error of a squared distance against the squared sum of the norms, where it is formed of products.
    rounding : float
        Relative error of anything else.
    status : ndarray of int8 of shape (n,)
        Written.
    """
    X, count = borrowed(X), offsets.shape[0]
    least = np.empty(count)
    for k in range(count):
        kappa = offsets[k, 1]
        least[k] = radius * radius / kappa if kappa > 0.0 else np.inf
    for r in range(at(index.size)):
        i = index[r]
        best, most, reach = -1, -np.inf, -1.0
        for k in range(count):
            room = offsets[k, 0] - tau[i]
            room = (room if k < levers else -room) - slack[i]
            if room <= least[k]:
                continue
            square, nearest = _reach(room, radius, least[k]) * (1.0 - rounding), norms[i] - lengths[k]
            if nearest * nearest > square:  # not even the least distance by the norms would do
                continue
            if square - away[k] * away[k] > most:
                best, most, reach = k, square - away[k] * away[k], square
        if best < 0:
            continue
        if _shows(X, where[r], centers[at(best)], norms[i], lengths[best], off, rounding, reach):
            status[i] = np.int8(-1 if best < levers else 1)


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    a, status, X, where = np.ones(2), np.zeros(2, dtype=np.int8), matrix_of(np.eye(2)), np.zeros(2, dtype=np.int64)
    pair, rows = np.ones((2, 2)), np.eye(2)
    decide_exactly(X, where, where, a, a, a, 1.0, 1, pair, a, rows, a, 1e-15, 1e-12, status)
