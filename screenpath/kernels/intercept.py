"""A free intercept: where it is best, dual points that sum to nothing, and what a lever decides of each row.

Everything here is *signless*: row ``i`` is ``x_i``, its kink ``c_i``, its dual variable in ``[lo_i, hi_i]``, and the
intercept adds the same ``b`` to every linear form. A row ``g_i = s_i x_i`` of a box model becomes one by the sign
``s_i``: kink ``s_i c_i``, and the box ``[lo_i, hi_i]`` or ``[-hi_i, -lo_i]``.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.box import UNIT
from screenpath.kernels.newton_system import add

MANY, SAMPLE, MARGIN = 4096, 256, 0.12  # rows from which a sample is looked at, its size, and how sure it is
FEW = 32  # entries that are sorted rather than parted
CHOSEN = 64  # rows at most that a lever is made of


@kernel
def signless(values, low, high, signs, kinks, lo, hi):
    """Write kinks and ends of the box of signless rows."""
    for i in range(at(signs.size)):
        negative = signs[i] < 0
        kinks[i] = signs[i] * values[i]
        lo[i], hi[i] = (-high[i], -low[i]) if negative else (low[i], high[i])


# -- the best intercept ------------------------------------------------------------------------------------------------


@kernel
def _sort_pairs(keys, weights, start, stop):
    """Sort a short stretch of keys, and their weights with them."""
    for i in range(start + 1, stop):
        key, weight, j = keys[i], weights[i], i
        while j > start and keys[j - 1] > key:
            keys[j], weights[j] = keys[j - 1], weights[j - 1]
            j -= 1
        keys[j], weights[j] = key, weight


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def _up_to(beta, width, key):
    """Return the width of all rows with at most this key."""
    total = 0.0
    for i in range(at(beta.size)):
        total += width[i] if beta[i] <= key else 0.0
    return total


@kernel
def _bracket(beta, width, need):
    """Return keys between which the sum of the widths of lower keys passes ``need``, most likely."""
    keys, weights, total, sampled = np.empty(SAMPLE), np.empty(SAMPLE), 0.0, 0.0
    for i in range(beta.size):
        total += width[i]
    for k in range(SAMPLE):
        i = k * (beta.size - 1) // (SAMPLE - 1)
        keys[k], weights[k] = beta[i], width[i]
        sampled += width[i]
    _sort_pairs(keys, weights, 0, SAMPLE)
    least, most, reached = -np.inf, np.inf, 0.0
    for k in range(SAMPLE):
        reached += weights[k]
        if reached / sampled < need / total - MARGIN:
            least = keys[k]
        if reached / sampled > need / total + MARGIN:
            most = keys[k]
            break
    return least, most


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def _between(beta, width, least, most, keys, weights):
    """Copy the keys between two others, and their widths; return how many, and the width of all that are lower."""
    n, before = 0, 0.0
    for i in range(at(beta.size)):  # no branches: nobody could predict them
        keys[at(n)], weights[at(n)] = beta[i], width[i]
        n += (beta[i] >= least) & (beta[i] <= most) & (width[i] > 0.0)
        before += width[i] if beta[i] < least else 0.0
    return n, before


@kernel
def best_interval(beta, width, level, slack):
    """Return both ends of ``argmin_b sum_i phi_i(beta_i - b)``, a weighted quantile, in O(n).

    The slope of the sum at ``b`` is ``sum_{beta_i < b} width_i - level``, up to the widths of the rows at ``b``.

    Parameters
    ----------
    beta : ndarray of shape (n,)
        Where each row has its kink.
    width : ndarray of shape (n,)
        ``hi_i - lo_i``, at least 0.
    level : float
        ``sum_i hi_i``, between 0 and the sum of the widths.
    slack : float
        A slope of at most this size counts as 0, which can only widen the interval.

    Returns
    -------
    low, high : float
    """
    keys, weights = np.empty(beta.size), np.empty(beta.size)
    need, least, most = level - slack, -np.inf, np.inf
    if beta.size > MANY:  # a sample tells between which keys the quantile is, most likely
        least, most = _bracket(beta, width, need)
    n, before = _between(beta, width, least, most, keys, weights)
    inside = 0.0
    for i in range(n):
        inside += weights[i]
    if not before < need <= before + inside:
        n, before = _between(beta, width, -np.inf, np.inf, keys, weights)
    start, stop = 0, n
    while stop - start > FEW:
        a, b, c = keys[start], keys[(start + stop) // 2], keys[stop - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        # Three parts: below the pivot, at it, above it.
        i, under, over, below, equal = start, start, stop, 0.0, 0.0
        while i < over:
            key, weight = keys[i], weights[i]
            if key < pivot:
                keys[i], weights[i] = keys[under], weights[under]
                keys[under], weights[under] = key, weight
                below += weight
                under += 1
                i += 1
            elif key > pivot:
                over -= 1
                keys[i], weights[i] = keys[over], weights[over]
                keys[over], weights[over] = key, weight
            else:
                equal += weight
                i += 1
        if before + below >= need and under > start:
            stop = under
        elif before + below + equal >= need or over == stop:
            before += below
            start, stop = under, over
            break
        else:
            before += below + equal
            start = over
    if stop - start <= FEW:
        _sort_pairs(keys, weights, start, stop)
    low = keys[stop - 1]
    for i in range(start, stop):
        before += weights[i]
        if before >= need:
            low = keys[i]
            break
    high, reached = low, _up_to(beta, width, low)
    while reached <= level + slack:
        following, more = np.inf, 0.0
        for i in range(at(beta.size)):
            if beta[i] > high and width[i] > 0.0 and beta[i] < following:
                following = beta[i]
        if following == np.inf:
            break
        for i in range(at(beta.size)):
            more += width[i] if beta[i] == following else 0.0
        high, reached = following, reached + more
    return low, high


# -- dual points that sum to nothing ----------------------------------------------------------------------------------


@kernel
def excess(theta, signs):
    """Return ``sum_i signs_i theta_i`` and a bound on its error, 0 where every addition was exact (Neumaier's sum)."""
    total, rest, size, exact = 0.0, 0.0, 0.0, True
    for i in range(at(theta.size)):
        term = signs[i] * theta[i]
        added = total + term
        lost = (total - added) + term if abs(total) >= abs(term) else (term - added) + total
        exact &= lost == 0.0
        rest += lost
        total = added
        size += abs(term)
    found, n = total + rest, float(theta.size)
    return found, 0.0 if exact else UNIT * abs(found) + 2.0 * n * n * UNIT * UNIT * size


@kernel
def nearest_movable(t, theta, lo, hi, signs, least):
    """Return the rows nearest to their kink whose signless dual variable can fall, and rise, by ``least``; -1 for none.

    ``t``, ``theta``, ``lo`` and ``hi`` are those of the rows with their signs.
    """
    fall, rise, fall_at, rise_at = -1, -1, np.inf, np.inf
    for i in range(theta.size):
        size, down, up = abs(t[i]), theta[i] - lo[i], hi[i] - theta[i]
        if signs[i] < 0:
            down, up = up, down
        if size < fall_at and down >= least and down > 0.0:
            fall, fall_at = i, size
        if size < rise_at and up >= least and up > 0.0:
            rise, rise_at = i, size
    return fall, rise


# -- levers ------------------------------------------------------------------------------------------------------------


@kernel
def seen_from(kinks, signs, products, factor, norms, size, rounding, theta, C, lo, hi, off, tau, slack, down, up):
    """Write what levers ask of each row: distance from its kink at ``factor`` times a point, slack, and room.

    Parameters
    ----------
    kinks, lo, hi : ndarray of shape (n,)
        Signless; the others have signs.
    size, rounding : float
        A product is off by at most ``rounding (norm size + |kink|)``.
    off : float
        Taken from the room on either side.
    """
    for i in range(at(tau.size)):
        tau[i] = kinks[i] - signs[i] * (factor * products[i])
        slack[i] = rounding * (norms[i] * size + abs(kinks[i]))
        value = C * (signs[i] * theta[i])
        down[i] = value - C * lo[i] - off
        up[i] = C * hi[i] - value - off


@kernel
def distances(c, products, signs, b, out):
    """Write ``c - (products + signs b)``."""
    for i in range(at(c.size)):
        out[i] = c[i] - (products[i] + signs[i] * b)


@kernel
def foremost(tau, room):
    """Return up to ``CHOSEN`` rows with room, of the largest ``tau``, in falling order."""
    rows, values, count = np.empty(CHOSEN, dtype=np.int64), np.empty(CHOSEN), 0
    for i in range(tau.size):
        if room[i] > 0.0 and (count < CHOSEN or tau[i] > values[count - 1]):
            count = min(count + 1, CHOSEN)
            j = count - 1
            while j > 0 and values[j - 1] < tau[i]:
                values[j], rows[j] = values[j - 1], rows[j - 1]
                j -= 1
            values[j], rows[j] = tau[i], i
    return rows[:count].copy()


@kernel
def lever_weights(tau, slack, room, sizes, side, rounding, offsets, weights):
    """Choose the weights of a lever of each size, from rows in the order of their use.

    Parameters
    ----------
    tau, slack, room : ndarray of shape (m,)
        Of these rows; ``room`` is above 0.
    sizes : ndarray of shape (k,)
        ``kappa`` in rising order. Where the rows cannot carry more than before, the lever says nothing: ``kappa`` is 0.
    side : float
        1 where they bound from below, -1 from above.
    rounding : float
    offsets : ndarray of shape (k, 2)
        Written: ``tau`` at the centre, what rounding may have made of it included; and ``kappa``, a little less than
        what the rows carry.
    weights : ndarray of shape (k, m)
        Written: they sum up to 1, or are 0 for a lever that says nothing.
    """
    carried = 0.0
    for k in range(sizes.size):
        total, left = 0.0, sizes[k]
        for r in range(tau.size):
            total += min(max(left, 0.0), room[r])
            left -= room[r]
            weights[k, r] = 0.0
        offsets[k, 0] = offsets[k, 1] = 0.0
        if total <= carried * (1.0 + rounding):
            continue
        carried, left, off, offset = total, sizes[k], 0.0, 0.0
        for r in range(tau.size):
            weight = min(max(left, 0.0), room[r]) / total
            left -= room[r]
            if weight <= 0.0:
                break
            weights[k, r] = weight
            offset += weight * tau[r]
            off = max(off, slack[r])
        offsets[k, 0], offsets[k, 1] = offset - side * off, total * (1.0 - rounding)


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def lever_centers(X, data, indices, indptr, sparse, first, weights, mean, rounding, centers, lengths, away):
    """Form the centres of levers.

    Parameters
    ----------
    X, data, indices, indptr, sparse, first
        Copies of the rows, from the row ``first`` on.
    weights : ndarray of shape (k, m)
    mean : ndarray of shape (d,)
    rounding : float
    centers : ndarray of shape (k, d)
        Written, as are ``lengths`` and ``away``, of shape (k,): norms, and distances from the mean, at least.
    """
    base = 0.0
    for j in range(mean.size):
        base += mean[j] * mean[j]
    for k in range(weights.shape[0]):
        for j in range(mean.size):
            centers[k, j] = 0.0
        for r in range(weights.shape[1]):
            if weights[k, r] > 0.0:
                add(X, data, indices, indptr, sparse, first + r, weights[k, r], centers[k])
        square, apart = 0.0, 0.0
        for j in range(mean.size):
            square += centers[k, j] * centers[k, j]
            apart += (centers[k, j] - mean[j]) ** 2
        lengths[k] = np.sqrt(square)
        away[k] = np.sqrt(apart) + rounding * (lengths[k] + np.sqrt(base))


@kernel
def lever_width(distance, radius, kappa):
    """Return by how much ``x.w + b`` may pass ``x.c + tau``, for the distance of ``x`` from the lever's centre."""
    if kappa * distance >= 2.0 * radius:
        return radius * distance
    return radius * radius / kappa + 0.25 * kappa * distance * distance


@kernel
def _longest(offsets, start, stop):
    """Return which of some levers has the largest ``kappa``."""
    found = start
    for k in range(start, stop):
        if offsets[k, 1] > offsets[found, 1]:
            found = k
    return found


@kernel(fastmath={"contract", "nsz"})
def _decide_by_one(tau, slack, spread, radius, side, offset, kappa, distance, status, anew):
    """Decide rows by one lever on one side, for the distances that are known to be enough."""
    known, inverse = 0 if anew else 1, radius * radius / kappa if kappa > 0.0 else np.inf
    for i in range(at(tau.size)):
        D = spread[i] + distance
        width = radius * D if kappa * D >= 2.0 * radius else inverse + 0.25 * kappa * D * D
        found = np.int8(-side) if side * (offset - tau[i]) - slack[i] > width else np.int8(0)
        before = np.int8(status[i] * known)
        status[i] = before if before != 0 else found


@kernel
def decide_by_levers(tau, slack, spread, radius, levers, offsets, distances, status, unsure):
    """Decide rows by their distance from one fixed centre, from which the levers' centres are not far.

    Parameters
    ----------
    tau : ndarray of shape (n,)
        ``c_i - x_i.c`` at the ball's centre c.
    slack : ndarray of shape (n,)
        What rounding may have added to either side of a comparison.
    spread : ndarray of shape (n,)
        At least the distance of each row from the fixed centre.
    radius : float
    levers : int
        How many levers bound ``x.w + b`` from below; as many follow that bound it from above.
    offsets : ndarray of shape (2 * levers, 2)
        ``tau`` at the centre of each lever, and its ``kappa``; a ``kappa`` of 0 says nothing.
    distances : ndarray of shape (2 * levers,)
        At least the distance of each lever's centre from the fixed centre.
    status : ndarray of int8 of shape (n,)
        Written: -1 where ``x.w + b > c`` is certain, +1 where ``<`` is.
    unsure : ndarray of int64 of shape (n,)
        Written: rows that the exact distances might decide.

    Returns
    -------
    count : int
        Of these.
    """
    # The longest levers decide most of what can be decided: without branches for all, then in turn for the others.
    fore, aft = _longest(offsets, 0, levers), _longest(offsets, levers, 2 * levers)
    _decide_by_one(tau, slack, spread, radius, 1.0, offsets[fore, 0], offsets[fore, 1], distances[fore], status, True)
    _decide_by_one(tau, slack, spread, radius, -1.0, offsets[aft, 0], offsets[aft, 1], distances[aft], status, False)
    count = 0
    for i in range(tau.size):
        if status[i] != 0:
            continue
        possible = False
        for k in range(offsets.shape[0]):
            kappa = offsets[k, 1]
            if kappa <= 0.0:
                continue
            side = 1.0 if k < levers else -1.0
            room = side * (offsets[k, 0] - tau[i]) - slack[i]
            if room <= 0.0:
                continue
            if room > lever_width(spread[i] + distances[k], radius, kappa):
                status[i] = np.int8(-side)
                possible = False
                break
            possible |= room > lever_width(max(spread[i] - distances[k], 0.0), radius, kappa)
        if possible:
            unsure[count] = i
            count += 1
    return count


@kernel
def decide_exactly(
    X, data, indices, indptr, sparse, norms, tau, slack, radius, levers, offsets, centers, center_norms, off, rounding,
    status,
):  # fmt: skip
    """Decide rows by their distances from the centres of levers.

    Parameters
    ----------
    X, data, indices, indptr, sparse
        The rows.
    norms, tau, slack : ndarray of shape (n,)
    radius, levers, offsets
        As of :func:`decide_by_levers`.
    centers : ndarray of shape (2 * levers, d)
    center_norms : ndarray of shape (2 * levers,)
    off : float
        Relative error of a squared distance against the squared sum of the norms, where it is formed of products.
    rounding : float
        Relative error of anything else.
    status : ndarray of int8 of shape (n,)
        Written.
    """
    for i in range(tau.size):
        status[i] = 0
        for k in range(offsets.shape[0]):
            kappa = offsets[k, 1]
            if kappa <= 0.0:
                continue
            side = 1.0 if k < levers else -1.0
            room = side * (offsets[k, 0] - tau[i]) - slack[i]
            if room <= 0.0:
                continue
            most, square = norms[i] + center_norms[k], 0.0
            if room <= lever_width(abs(norms[i] - center_norms[k]) * (1.0 - rounding), radius, kappa):
                continue  # not even the least distance that the norms allow would do
            if sparse:
                product = 0.0
                for q in range(at(indptr[i]), at(indptr[i + 1])):
                    product += data[q] * centers[k, at(indices[q])]
                square = norms[i] * norms[i] - 2.0 * product + center_norms[k] * center_norms[k] + off * most * most
            else:
                for j in range(X.shape[1]):
                    apart = X[i, j] - centers[k, j]
                    square += apart * apart
            distance = np.sqrt(max(square, 0.0)) + rounding * most
            if room > lever_width(distance, radius, kappa):
                status[i] = np.int8(-side)
                break


@kernel
def decide_by_products(tau, slack, norms, products, square, off, radius, side, offset, kappa, rounding, status):
    """Decide rows by one lever whose products with them are known, as behind a kernel.

    Parameters
    ----------
    tau, slack, norms : ndarray of shape (n,)
    products : ndarray of shape (n,)
        Of the lever's centre with the rows.
    square : float
        At least the centre's squared norm.
    off : float
        Relative error of a product, to the norm of its row.
    radius, side, offset, kappa, rounding : float
    status : ndarray of int8 of shape (n,)
        Updated where it is 0.
    """
    length = np.sqrt(square)
    for i in range(tau.size):
        room = side * (offset - tau[i]) - slack[i]
        if status[i] != 0 or room <= 0.0:
            continue
        apart = norms[i] * norms[i] - 2.0 * products[i] + square + 2.0 * off * norms[i]
        distance = np.sqrt(max(apart, 0.0) + 8.0 * UNIT * (norms[i] + length) ** 2) * (1.0 + rounding)
        if room > lever_width(distance, radius, kappa):
            status[i] = np.int8(-side)


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    a, status, signs = np.ones(2), np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)
    signless(a, a, a, signs, a.copy(), a.copy(), a.copy())
    best_interval(a, a, 1.0, 0.0)
    excess(a, signs)
    nearest_movable(a, a, a, a, signs, 0.0)
    foremost(a, a)
    seen_from(a, signs, a, 1.0, a, 1.0, 1e-12, a, 1.0, a, a, 0.0, a.copy(), a.copy(), a.copy(), a.copy())
    distances(a, a, signs, 0.0, a.copy())
    lever_width(1.0, 1.0, 1.0)
    offsets, rows, csr = np.ones((2, 2)), np.eye(2), (np.ones(2), np.arange(2, dtype=np.int32), np.arange(3))
    decide_by_levers(a, a, a, 1.0, 1, offsets, a, status, np.zeros(2, dtype=np.int64))
    lever_weights(a, a, a, a, 1.0, 1e-12, offsets.copy(), rows.copy())
    decide_by_products(a, a, a, a, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1e-12, status)
    for sparse in (False, True):
        lever_centers(rows, *csr, sparse, 0, rows, a, 1e-12, rows.copy(), a.copy(), a.copy())
        decide_exactly(rows, *csr, sparse, a, a, a, 1.0, 1, offsets, rows, a, 1e-15, 1e-12, status)
