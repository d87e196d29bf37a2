"""What levers (``lever``) decide by the exact distances of rows from their centres, or aimed at a row."""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.rows.matrix import add, borrowed, dot, listed_products, matrix_of
from screenpath.kernels.rows.newton_system import inner
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
    X, where, index, norms, tau, slack, radius, levers, offsets, away, centers, lengths, off, rounding, every, status
):  # fmt: skip
    """Decide some rows by their distance from the centre of the lever that is the likeliest to do so, or of any.

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
    every : bool
        Ask all levers where the likeliest does not decide.
    status : ndarray of int8 of shape (n,)
        Written.
    """
    X, count = borrowed(X), offsets.shape[0]
    least, reach = np.empty(count), np.empty(count)
    for k in range(count):
        kappa = offsets[k, 1]
        least[k] = radius * radius / kappa if kappa > 0.0 else np.inf
    for r in range(at(index.size)):
        i = index[r]
        best, most = -1, -np.inf
        for k in range(count):
            room = offsets[k, 0] - tau[i]
            room = (room if k < levers else -room) - slack[i]
            reach[k] = -1.0
            if room <= least[k]:
                continue
            square, nearest = _reach(room, radius, least[k]) * (1.0 - rounding), norms[i] - lengths[k]
            if nearest * nearest > square:  # not even the least distance by the norms would do
                continue
            reach[k] = square
            if square - away[k] * away[k] > most:
                best, most = k, square - away[k] * away[k]
        if best < 0:
            continue
        if _shows(X, where[r], centers[at(best)], norms[i], lengths[best], off, rounding, reach[best]):
            status[i] = np.int8(-1 if best < levers else 1)
        elif every:
            for k in range(count):
                if k == best or reach[k] <= 0.0:
                    continue
                if _shows(X, where[r], centers[at(k)], norms[i], lengths[k], off, rounding, reach[k]):
                    status[i] = np.int8(-1 if k < levers else 1)
                    break


@kernel
def _fill(scores, room, kappa, weights):
    """Give rows what they have room for in falling order of their scores, until all is given; scores are lost."""
    left = 1.0
    for s in range(weights.size):
        weights[s] = 0.0
    while left > 0.0:
        best, most = -1, -np.inf
        for s in range(scores.size):
            if scores[s] > most:
                best, most = s, scores[s]
        if best < 0:
            break
        weights[best] = min(room[best] / kappa, left)
        left -= weights[best]
        scores[best] = -np.inf


@kernel
def _step(radius, kappa, square, slope, turn, gain):
    """Return how far to go from one lever to another: where what a row is shown to be above its kink is largest.

    Parameters
    ----------
    radius, kappa : float
    square : float
        Squared distance of the row from the first lever's centre; a part ``q`` of the way on it is
        ``square + 2 q slope + q^2 turn``.
    gain : float
        By which the offset rises over the whole way.
    """
    if turn <= 0.0:
        return 1.0 if gain > 0.0 else 0.0
    if kappa * kappa * square < 4.0 * radius * radius:
        return min(max((2.0 * gain / kappa - slope) / turn, 0.0), 1.0)
    rate = gain / (radius * np.sqrt(turn))
    if rate >= 1.0:
        return 1.0
    aside = np.sqrt(max(square - slope * slope / turn, 0.0))
    return min(max((rate * aside * np.sqrt(turn / (1.0 - rate * rate)) - slope) / turn, 0.0), 1.0)


@kernel(fastmath=SUMS)
def _aim(tau, room, side, gram, products, square, weights, pulled, own, kappa, radius, other, moved):
    """Move a lever towards a row, as far as pays, by a step of Frank and Wolfe; roundings do not matter.

    What a row ``x`` is shown to be above its kink rises fastest where weight goes to the rows of the largest
    ``tau_j + x_j.(x - mu) r / ||x - mu||``: they are given what they can carry.

    Parameters
    ----------
    tau, room : ndarray of shape (m,)
        Of the lever's rows.
    gram : ndarray of shape (m, m)
        Their inner products.
    products : ndarray of shape (m,)
        Those with the row, of which ``square`` is the squared norm.
    weights, pulled : ndarray of shape (m,)
        The lever's, and ``gram @ weights``; ``own`` is the product of the two.
    other : ndarray of shape (2, m)
        The second is written: weights of what comes out.
    moved : ndarray of int64 of shape (m,)
        Work.

    Returns
    -------
    square : float
        Squared distance of the row from the centre of what comes out.
    """
    crossed = 0.0
    for s in range(tau.size):
        crossed += weights[s] * products[s]
    apart = max(square - 2.0 * crossed + own, 0.0)
    rate = radius / np.sqrt(apart) if kappa * kappa * apart >= 4.0 * radius * radius else 0.5 * kappa
    scores, ahead, turn, slope, gain, count = other[0], other[1], 0.0, 0.0, 0.0, 0
    for s in range(tau.size):
        scores[s] = side * tau[s] + rate * (products[s] - pulled[s])
    _fill(scores, room, kappa, ahead)
    for s in range(tau.size):
        ahead[s] -= weights[s]
        if ahead[s] != 0.0:
            slope += ahead[s] * (pulled[s] - products[s])
            gain += ahead[s] * side * tau[s]
            moved[count] = s
            count += 1
    for s in range(count):
        part = 0.0
        for t in range(count):
            part += gram[moved[s], moved[t]] * ahead[moved[t]]
        turn += part * ahead[moved[s]]
    share = _step(radius, kappa, apart, slope, turn, gain)
    for s in range(tau.size):
        ahead[s] = weights[s] + share * ahead[s]
    return apart + share * (2.0 * slope + share * turn)


@kernel
def _products_with(X, i, near, row, out):
    """Write the products of a row with others to ``out``; ``row`` is 0 before and after."""
    add(X, i, 1.0, row)
    listed_products(X, near, row, out)
    row[:] = 0.0


@kernel
def decide_by_aimed(
    X, near, near_tau, near_slack, near_room, levers, kappas, width, where, index, norms, tau, slack, radius, side,
    off, rounding, status,
):  # fmt: skip
    """Decide rows by levers of one side that are moved towards each of them.

    Parameters
    ----------
    X : Matrix
    near : ndarray of int64 of shape (m,)
        Which of them levers are made of.
    near_tau, near_slack, near_room : ndarray of shape (m,)
        Theirs; ``near_room`` is above 0.
    levers : ndarray of shape (k, m)
        Weights of those that are moved.
    kappas : ndarray of shape (k,)
        Theirs; one that says nothing has 0.
    width : int
        Number of columns.
    where, index, norms, tau, slack, radius, off, rounding, status
        As of :func:`decide_exactly`; ``status`` is updated where it is 0.
    side : float
        1 where they bound from below, -1 from above.
    """
    X, m = borrowed(X), near.size
    gram, products, other, moved = np.empty((m, m)), np.empty(m), np.empty((2, m)), np.empty(m, dtype=np.int64)
    row, ahead, pulled, own = np.zeros(width), -np.inf, np.zeros(levers.shape), np.zeros(kappas.size)
    for s in range(m):
        _products_with(X, near[s], near, row, gram[s])
        ahead = max(ahead, side * near_tau[s])
    for k in range(kappas.size):
        for s in range(m):
            for t in range(m):
                pulled[k, s] += gram[s, t] * levers[k, t]
            own[k] += levers[k, s] * pulled[k, s]
    weights, longest = other[1], np.max(kappas)
    for r in range(at(index.size)):
        i = index[r]
        if status[i] != 0 or (ahead - side * tau[i] - slack[i]) * longest <= radius * radius:
            continue
        _products_with(X, where[r], near, row, products)
        for k in range(kappas.size):
            kappa = kappas[k] * (1.0 - rounding)
            if kappa <= 0.0:
                continue
            likely = _aim(
                near_tau, near_room, side, gram, products, norms[i] ** 2, levers[k], pulled[k], own[k], kappa, radius,
                other, moved,
            )  # fmt: skip
            offset, loss = 0.0, 0.0
            for s in range(m):
                offset += weights[s] * near_tau[s]
                loss = max(loss, near_slack[s] if weights[s] > 0.0 else 0.0)
            room, least = side * (offset - tau[i]) - loss - slack[i], radius * radius / kappa
            if room <= least:
                continue
            square = _reach(room, radius, least) * (1.0 - rounding)
            if likely > square:
                continue
            for s in range(m):
                if weights[s] > 0.0:
                    add(X, near[s], weights[s], row)
            shown = _shows(X, where[r], row, norms[i], np.sqrt(inner(row, row)), off, rounding, square)
            row[:] = 0.0
            if shown:
                status[i] = np.int8(-side)
                break


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    a, status, X, where = np.ones(2), np.zeros(2, dtype=np.int8), matrix_of(np.eye(2)), np.zeros(2, dtype=np.int64)
    pair, rows = np.ones((2, 2)), np.eye(2)
    decide_exactly(X, where, where, a, a, a, 1.0, 1, pair, a, rows, a, 1e-15, 1e-12, False, status)
    decide_by_aimed(X, where, a, a, a, rows, a, 2, where, where, a, a, a, 1.0, 1.0, 1e-15, 1e-12, status)
