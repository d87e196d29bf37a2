"""What levers decide about each row with a free intercept (``regions.lever``); rows are signless, as in ``intercept``.

``tau``: distance of each row from its kink at the ball's centre; ``slack``: rounding error of a comparison;
``room``: how far its dual variable can move one way. ``offsets`` has a row for each lever: its ``tau`` at the centre,
rounding included, and ``kappa``; a lever with ``kappa`` 0 decides nothing. ``side``: 1 for levers that bound
``x.w + b`` from below, -1 from above. ``spread`` (per row) and ``distances`` (per lever): at least the distance from
one fixed centre, the middle of the rows.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.rows.matrix import add, dot, matrix_of
from screenpath.kernels.rows.unowned import unowned

CHOSEN, FEWER = 64, 32  # rows at most that a lever is made of, or a single one
SHARING = 12  # rows at least that share a lever: its centre is nearer to the middle of all rows then
GROUP = 64  # rows that are looked at together before any of them is
LITTLE = 0.01  # part of a share of a lever, or of a box, that a row must have room for
FAR = 8.0  # a row further from its kink than the foremost, over r times a typical distance, costs more than it brings
LEAST = 1e-100  # radius of a ball, so that a lever's size is a number above 0
LENGTH = 2.0  # of a single lever: `kappa` times a typical distance of a row, over 2 r


class Rows(NamedTuple):
    """Rows with a free intercept: ``kinks``, ``lo`` and ``hi`` are signless."""

    kinks: np.ndarray
    signs: np.ndarray
    norms: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class Pair(NamedTuple):
    """A ball's centre, ``factor`` times the point of the ``products``, and the dual point ``theta`` at ``C``.

    Both with the rows' signs. A product is off by at most ``rounding (norm extent + |kink|)``; ``off`` is subtracted
    from the room of a dual variable on either side.
    """

    products: np.ndarray
    factor: float
    theta: np.ndarray
    C: float
    off: float
    extent: float
    rounding: float


class Levers(NamedTuple):
    """Levers in order: the first half bounds ``x.w + b`` from below, the other from above.

    ``offsets``, shape (2 k, 2); ``away``, shape (2 k,): distances from the fixed centre, as a decision asks for them;
    ``centers``, shape (2 k, d), and their norms ``lengths``.
    """

    offsets: np.ndarray
    away: np.ndarray
    centers: np.ndarray
    lengths: np.ndarray


@kernel(leaf=True)
def seen_from(rows, pair, tau, slack, down, up):
    """Write what levers need of each row: ``tau`` at the ball's centre, ``slack``, and room down and up."""
    (kinks, signs, norms, lo, hi), (products, factor, theta, C, off, size, rounding) = rows, pair
    for i in range(at(tau.size)):
        tau[i] = kinks[i] - signs[i] * (factor * products[i])
        slack[i] = rounding * (norms[i] * size + abs(kinks[i]))
        value = signs[i] * theta[i]
        down[i] = C * (value - lo[i]) - off  # no difference of products, whose rounding may be more than the room
        up[i] = C * (hi[i] - value) - off


@kernel(leaf=True)
def _insert(row, value, rows, values, count):
    """Insert a row into the list of the largest values, in falling order; return the list's length."""
    count = min(count + 1, rows.size)
    j = count - 1
    while j > 0 and values[j - 1] < value:
        values[j], rows[j] = values[j - 1], rows[j - 1]
        j -= 1
    values[j], rows[j] = value, row
    return count


@kernel
def foremost(tau, room):
    """Return up to ``CHOSEN`` rows with room and the largest ``tau``, in falling order."""
    rows, values, count = np.empty(CHOSEN, dtype=np.int64), np.empty(CHOSEN), 0
    for i in range(tau.size):
        if room[i] > 0.0 and (count < CHOSEN or tau[i] > values[count - 1]):
            count = _insert(i, tau[i], rows, values, count)
    return rows[:count].copy()


@kernel(leaf=True)
def lever_weights(tau, slack, room, sizes, sharing, side, rounding, offsets, weights):
    """Choose the weights of a lever of each size, from rows in the order of their use; none has more than its share.

    ``tau``, ``slack`` and ``room``, shape (m,), are of these rows; ``room`` is above 0. ``sizes``, shape (k,), has
    ``kappa`` in rising order; if the rows cannot carry more than before, ``kappa`` becomes 0. ``sharing``, int64 of
    shape (k,), has the fewest rows that share each lever, if there are as many; ``kappa`` rises among those of the
    same.

    Writes ``offsets``, shape (k, 2), whose ``kappa`` is a little less than the rows carry, and ``weights``, shape (k,
    m), which sum up to 1, or are 0 for a lever that decides nothing.
    """
    carried = 0.0
    for k in range(sizes.size):
        total, left, share = 0.0, sizes[k], sizes[k] / sharing[k]
        if k > 0 and sharing[k] != sharing[k - 1]:
            carried = 0.0
        for r in range(tau.size):
            total += min(max(left, 0.0), min(room[r], share))
            left -= min(room[r], share)
            weights[k, r] = 0.0
        offsets[k, 0] = offsets[k, 1] = 0.0
        if total <= carried * (1.0 + rounding):
            continue
        carried, left, off, offset = total, sizes[k], 0.0, 0.0
        for r in range(tau.size):
            weight = min(max(left, 0.0), min(room[r], share)) / total
            left -= min(room[r], share)
            if weight <= 0.0:
                break
            weights[k, r] = weight
            offset += weight * tau[r]
            off = max(off, slack[r])
        offsets[k, 0], offsets[k, 1] = offset - side * off, total * (1.0 - rounding)


@kernel(fastmath=SUMS, leaf=True)
def lever_centers(X, where, weights, mean, rounding, centers, lengths, away):
    """Write ``centers`` of levers from the ``weights`` of rows, their norms, and at least how far ``away`` they are."""
    X, base = unowned(X), 0.0
    for j in range(mean.size):
        base += mean[j] * mean[j]
    for k in range(weights.shape[0]):
        for j in range(mean.size):
            centers[k, j] = 0.0
        for r in range(where.size):
            if weights[k, r] > 0.0:
                add(X, where[r], weights[k, r], centers[k])
        square, apart = 0.0, 0.0
        for j in range(mean.size):
            square += centers[k, j] * centers[k, j]
            apart += (centers[k, j] - mean[j]) ** 2
        lengths[k] = np.sqrt(square)
        away[k] = np.sqrt(apart) + rounding * (lengths[k] + np.sqrt(base))


@kernel(fastmath={"contract", "nsz"}, forceinline=True, leaf=True)
def _width(distance, radius, kappa, least):
    """Return how far ``x.w + b`` may pass ``x.c + tau`` at this distance from the lever's centre; ``least`` at 0."""
    return radius * distance if kappa * distance >= 2.0 * radius else least + 0.25 * kappa * distance * distance


@kernel(fastmath=SUMS, leaf=True)
def _candidates(rows, pair, tau, least, cuts, start, stop):
    """Return how many rows may be among the foremost of either side, those beyond ``cuts``."""
    (_, signs, _, lo, hi), (_, _, theta, C, off, _, _), count = rows, pair, 0.0
    for i in range(at(start), at(stop)):
        value = signs[i] * theta[i]
        up, down = C * (hi[i] - value) - off, C * (value - lo[i]) - off
        count += 1.0 if ((tau[i] > cuts[0]) & (up > least)) | ((-tau[i] > cuts[1]) & (down > least)) else 0.0
    return count


@kernel
def one_lever_each(rows, pair, largest, radius, typical, tau, listed, weights, offsets):
    """Make one lever for either side, see :func:`seen_from` and :func:`lever_weights`; return how many rows each has.

    ``largest`` is that of the ends of the boxes: rows with hardly any room relative to it, or to their share of a
    lever, are left out. ``radius`` is that of the ball, ``typical`` a typical distance of the rows from their middle.

    Writes ``tau``, shape (n,), ``listed``, int64 of shape (2, FEWER), the rows of the lever that bounds from below, and
    from above, and of these ``weights``, shape (2, FEWER), and ``offsets``, shape (2, 2).
    """
    (kinks, signs, norms, lo, hi), (products, factor, theta, C, off, extent, rounding) = rows, pair
    highest, lowest, upper, lower = np.empty(FEWER), np.empty(FEWER), listed[0], listed[1]
    counts, cuts, sizes, sharing = np.empty(2, dtype=np.int64), np.empty(2), np.empty(1), np.empty(1, dtype=np.int64)
    counts[0], counts[1], cuts[0], cuts[1] = 0, 0, -np.inf, -np.inf
    sizes[0], sharing[0] = LENGTH * (2.0 * radius / typical), SHARING
    least = LITTLE * min(sizes[0] / SHARING, C * largest)
    for s in range(0, tau.size, GROUP):
        e = min(s + GROUP, tau.size)
        for i in range(at(s), at(e)):
            tau[i] = kinks[i] - signs[i] * (factor * products[i])
        if _candidates(rows, pair, tau, least, cuts, s, e) == 0.0:
            continue
        for i in range(s, e):
            value = signs[i] * theta[i]
            if C * (hi[i] - value) - off > least and tau[i] > cuts[0]:
                counts[0] = _insert(i, tau[i], upper, highest, counts[0])
                cuts[0] = highest[FEWER - 1] if counts[0] == FEWER else -np.inf
            if C * (value - lo[i]) - off > least and -tau[i] > cuts[1]:
                counts[1] = _insert(i, -tau[i], lower, lowest, counts[1])
                cuts[1] = lowest[FEWER - 1] if counts[1] == FEWER else -np.inf
    for h in range(2):
        side, m = 1.0 if h == 0 else -1.0, counts[h]
        while m > 1 and abs(tau[listed[h, m - 1]] - tau[listed[h, 0]]) > FAR * radius * typical:
            m -= 1
        counts[h] = m
        own, slack, room = np.empty(m), np.empty(m), np.empty(m)
        for r in range(m):
            i = listed[h, r]
            value = signs[i] * theta[i]
            own[r], slack[r] = tau[i], rounding * (norms[i] * extent + abs(kinks[i]))
            room[r] = C * (hi[i] - value if h == 0 else value - lo[i]) - off
        lever_weights(own, slack, room, sizes, sharing, side, rounding, offsets[h : h + 1], weights[h : h + 1])
    return counts[0], counts[1]


@kernel(fastmath=SUMS, leaf=True)
def decide_by_one_each(rows, pair, tau, spread, radius, offsets, distances, status):
    """Decide rows by one lever on either side, using upper bounds of their distances from its centre.

    ``tau`` and ``offsets`` are those of :func:`one_lever_each`. Writes ``status``, for the rows with their signs;
    returns ``n_R, n_L``.
    """
    kinks, signs, norms, extent, rounding = rows.kinks, rows.signs, rows.norms, pair.extent, pair.rounding
    n_R, n_L = 0.0, 0.0
    first, above, second, below = offsets[0, 0], offsets[0, 1], offsets[1, 0], offsets[1, 1]
    least1 = radius * radius / above if above > 0.0 else np.inf
    least2 = radius * radius / below if below > 0.0 else np.inf
    near, far = distances[0], distances[1]
    for i in range(at(tau.size)):
        slack = rounding * (norms[i] * extent + abs(kinks[i]))
        over = 1.0 if (first - tau[i]) - slack > _width(spread[i] + near, radius, above, least1) else 0.0
        under = 1.0 if (tau[i] - second) - slack > _width(spread[i] + far, radius, below, least2) else 0.0
        side = (under - over) * signs[i]
        status[i] = np.int8(side)
        n_R += 1.0 if side < 0.0 else 0.0
        n_L += 1.0 if side > 0.0 else 0.0
    return int(n_R), int(n_L)


@kernel(leaf=True)
def decide_by_levers(tau, slack, spread, radius, levers, offsets, distances, status, unsure):
    """Decide rows by their distance from one fixed centre, near which the levers' centres are.

    ``offsets`` and ``distances`` begin with as many ``levers`` that bound ``x.w + b`` from below; as many follow that
    bound it from above. Writes ``status``: -1 where ``x.w + b > c`` is certain, +1 where ``<`` is. Lists the rows that
    exact distances might decide in ``unsure``, and returns their number.
    """
    count = 0
    for i in range(tau.size):
        status[i], possible = 0, False
        for k in range(offsets.shape[0] - 1, -1, -1):  # the longest, which come last, decide most
            kappa = offsets[k, 1]
            if kappa <= 0.0:
                continue
            side = 1.0 if k < levers else -1.0
            room, least = side * (offsets[k, 0] - tau[i]) - slack[i], radius * radius / kappa
            if room <= least:
                continue
            if room > _width(spread[i] + distances[k], radius, kappa, least):
                status[i] = np.int8(-side)
                possible = False
                break
            possible |= room > _width(max(spread[i] - distances[k], 0.0), radius, kappa, least)
        if possible:
            unsure[count] = i
            count += 1
    return count


@kernel(forceinline=True, leaf=True)
def _reach(room, radius, least):
    """Return the square of the distance at which a lever is as wide as ``room``: the inverse of :func:`_width`."""
    return (room * room if room >= 2.0 * least else 4.0 * least * (room - least)) / (radius * radius)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
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


@kernel(forceinline=True, leaf=True)
def _shows(X, i, center, norm, length, off, rounding, reach):
    """Tell whether a row is nearer to a lever's centre than what its ``reach`` is the square of."""
    square = _apart(X, i, center, norm, length, off)
    # What rounding e of a distance D adds to its square: (D + e)^2 <= (1 + r) D^2 + (1 + 1/r) e^2.
    return square + rounding * (square + 2.0 * (norm + length) ** 2) < reach


@kernel
def decide_exactly(X, where, index, norms, seen, radius, levers, off, rounding, status):
    """Decide some rows by their distance from the centre of the lever that is the likeliest to do so.

    All distances from the fixed centre being right angles, it would be the one whose reach, the square of the distance
    up to which it decides, is the largest beside the square of its own distance.

    The rows ``where`` are to be decided, whose places in all that follows are in ``index``, both of shape (k,).
    ``norms`` and, of ``seen``, ``tau`` and ``slack`` have the shape (n,), as has ``status``, which is written. ``off``
    is the relative error of a squared distance against the squared sum of the norms, where it is formed of products;
    ``rounding`` that of anything else.
    """
    X, (tau, slack), (offsets, away, centers, lengths) = unowned(X), seen, levers
    count = offsets.shape[0]
    half, least = count // 2, np.empty(count)
    for k in range(count):
        kappa = offsets[k, 1]
        least[k] = radius * radius / kappa if kappa > 0.0 else np.inf
    for r in range(at(index.size)):
        i = index[r]
        best, most, reach = -1, -np.inf, -1.0
        for k in range(count):
            room = offsets[k, 0] - tau[i]
            room = (room if k < half else -room) - slack[i]
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
            status[i] = np.int8(-1 if best < half else 1)


@kernel(leaf=True)
def decide_by_products(seen, norms, products, square, off, radius, side, lever, rounding, status):
    """Decide rows with ``status`` 0 by one lever whose ``products`` with them are known, as behind a kernel.

    ``seen`` is that of :func:`decide_exactly`, ``lever`` a row of ``offsets``; ``square`` is at least the squared norm
    of the lever's centre; ``off`` is the error of a product relative to its row's norm.
    """
    (tau, slack), (offset, kappa) = seen, lever
    length, least = np.sqrt(square), radius * radius / kappa
    for i in range(tau.size):
        room = side * (offset - tau[i]) - slack[i]
        if status[i] != 0 or room <= least:
            continue
        apart = norms[i] * norms[i] - 2.0 * products[i] + square + 2.0 * off * norms[i]
        distance = np.sqrt(max(apart, 0.0) + 8.0 * UNIT * (norms[i] + length) ** 2) * (1.0 + rounding)
        if room > _width(distance, radius, kappa, least):
            status[i] = np.int8(-side)


def warm_up():
    a, status, signs = np.ones(2), np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)
    foremost(a, a)
    own, pair = Rows(a, signs, a, a, a), Pair(a, 1.0, a, 1.0, 0.0, 1.0, 1e-12)
    seen_from(own, pair, a.copy(), a.copy(), a.copy(), a.copy())
    offsets, chosen, weights = np.ones((2, 2)), np.zeros((2, FEWER), dtype=np.int64), np.zeros((2, FEWER))
    one_lever_each(own, pair, 1.0, 1.0, 1.0, a.copy(), chosen, weights, offsets)
    decide_by_one_each(own, pair, a, a, 1.0, offsets, a, status.copy())
    rows, X, where = np.eye(2), matrix_of(np.eye(2)), np.zeros(2, dtype=np.int64)
    decide_by_levers(a, a, a, 1.0, 1, offsets, a, status, np.zeros(2, dtype=np.int64))
    lever_weights(a, a, a, a, np.ones(2, dtype=np.int64), 1.0, 1e-12, offsets.copy(), rows.copy())
    decide_by_products((a, a), a, a, 1.0, 0.0, 1.0, 1.0, (1.0, 1.0), 1e-12, status)
    lever_centers(X, where, rows, a, 1e-12, rows.copy(), a.copy(), a.copy())
    decide_exactly(X, where, where, a, (a, a), 1.0, Levers(offsets, a, rows, a), 1e-15, 1e-12, status)
