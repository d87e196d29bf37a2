"""A free intercept: its best value, dual points whose signed sum is 0, and signless rows.

Everything here is *signless*: row ``i`` is ``x_i``, its kink ``c_i``, its dual variable in ``[lo_i, hi_i]``, and the
intercept adds the same ``b`` to every linear form. A row ``g_i = s_i x_i`` of a box model becomes one by the sign
``s_i``: kink ``s_i c_i``, and the box ``[lo_i, hi_i]`` or ``[-hi_i, -lo_i]``.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.problem.box import TINY, UNIT, product_errors

MANY, SAMPLE, MARGIN = 4096, 256, 0.12  # rows from which a sample is looked at, its size, and how sure it is
FEW = 32  # entries that are sorted rather than parted
GROUP, BLOCK = 256, 1024  # rows that are looked at together before any of them is, and summed up together
ROUNDED = 1e-8  # sums up to this part of a dual variable's range are rounding: one row takes them
TRIES = 3  # corrections of a sum of dual variables; the first leaves its rounding


# -- the best intercept ------------------------------------------------------------------------------------------------


@kernel(leaf=True)
def _sort_pairs(keys, weights, start, stop):
    """Sort a short stretch of keys, and their weights with them."""
    for i in range(start + 1, stop):
        key, weight, j = keys[i], weights[i], i
        while j > start and keys[j - 1] > key:
            keys[j], weights[j] = keys[j - 1], weights[j - 1]
            j -= 1
        keys[j], weights[j] = key, weight


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def _up_to(beta, width, key):
    """Return the width of all rows with at most this key."""
    total = 0.0
    for i in range(at(beta.size)):
        total += width[i] if beta[i] <= key else 0.0
    return total


@kernel
def _bracket(beta, width, need):
    """Return keys between which the sum of the widths of lower keys most likely passes ``need``."""
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


@kernel(leaf=True)
def _spanned(beta, rows):
    """Return keys a little outside those of some rows."""
    least, most, size = np.inf, -np.inf, 0.0
    for k in range(rows.size):
        key = beta[rows[k]]
        least, most, size = min(least, key), max(most, key), max(size, abs(key))
    room = (most - least) + 1e-12 * size
    return least - room, most + room


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def _lower(beta, width, least, most, start, stop):
    """Return the width of all keys below ``least``, and how many are not, but not above ``most``."""
    before, found = 0.0, 0.0
    for i in range(at(start), at(stop)):
        lower, within = 1.0 if beta[i] < least else 0.0, 1.0 if beta[i] <= most else 0.0
        before += lower * width[i]
        found += within - lower
    return before, found


@kernel(leaf=True)
def _between(beta, width, least, most, keys, weights):
    """Copy the keys between two others, and their widths; return how many, and the width of all lower keys."""
    n, before = 0, 0.0
    for s in range(0, beta.size, GROUP):  # most groups have none of them
        e = min(s + GROUP, beta.size)
        lower, found = _lower(beta, width, least, most, s, e)
        before += lower
        if found == 0.0:
            continue
        for i in range(at(s), at(e)):  # no branches: nobody could predict them
            keys[at(n)], weights[at(n)] = beta[i], width[i]
            n += (beta[i] >= least) & (beta[i] <= most) & (width[i] > 0.0)
    return n, before


@kernel(leaf=True)
def _next(keys, weights, n, high):
    """Return the next key beyond another that has a weight, and the weight of all equal to it; inf if there is none."""
    following, more = np.inf, 0.0
    for i in range(at(n)):
        if keys[i] > high and weights[i] > 0.0:
            if keys[i] < following:
                following, more = keys[i], 0.0
            more += weights[i] if keys[i] == following else 0.0
    return following, more


@kernel(leaf=True)
def best_interval(beta, width, level, slack, rows, room):
    """Return both ends of ``argmin_b sum_i phi_i(beta_i - b)``, a weighted quantile, in O(n).

    The slope of the sum at ``b`` is ``sum_{beta_i < b} width_i - level``, up to the widths of the rows at ``b``.

    ``beta`` are the rows' kinks, ``width`` is ``hi_i - lo_i >= 0``, and ``level`` is ``sum_i hi_i``, between 0 and the
    sum of the widths. A slope of at most ``slack`` counts as 0, which can only widen the interval. ``rows`` are some
    whose kinks probably enclose it, or none; ``room``, shape (2, n), is work space.
    """
    keys, weights = room[0], room[1]
    need, n, before = level - slack, 0, 0.0
    for source in range(3):
        if (source == 0 and rows.size == 0) or (source == 1 and beta.size <= MANY):
            continue
        least, most = -np.inf, np.inf
        if source == 0:
            least, most = _spanned(beta, rows)
        elif source == 1:  # a sample tells between which keys the quantile is, most likely
            least, most = _bracket(beta, width, need)
        n, before = _between(beta, width, least, most, keys, weights)
        found = before
        for i in range(n):
            found += weights[i]
        if before < need <= found:
            break
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
    low, passed = keys[stop - 1], False
    for i in range(start, stop):
        if passed and keys[i] != low:
            break
        before += weights[i]
        if not passed and before >= need:
            low, passed = keys[i], True
    high, reached = low, before if passed else _up_to(beta, width, low)
    while reached <= level + slack:
        following, more = _next(keys, weights, n, high)
        if following == np.inf:  # none of those copied
            following, more = _next(beta, width, beta.size, high)
        if following == np.inf:
            break
        high, reached = following, reached + more
    return low, high


# -- dual points that sum to nothing ----------------------------------------------------------------------------------


@kernel(leaf=True)
def _parts(signs, theta, large, start, stop, high, low):
    """Split ``signs theta`` into a multiple of ``large``'s last digit and the rest."""
    for i in range(at(start), at(stop)):
        value = signs[i] * theta[i]
        part = (value + large) - large
        high[i - at(start)], low[i - at(start)] = part, value - part


@kernel(fastmath={"reassoc", "nsz"}, leaf=True)
def _sums(high, low, count):
    """Return the sums of both parts, and of the sizes of the second."""
    total, rest, size = 0.0, 0.0, 0.0
    for i in range(at(count)):
        total += high[i]
        rest += low[i]
        size += abs(low[i])
    return total, rest, size


@kernel(fastmath={"reassoc", "nsz"}, leaf=True)
def _size(theta):
    total = 0.0
    for i in range(at(theta.size)):
        total += abs(theta[i])
    return total


@kernel
def excess(theta, signs):
    """Return ``sum_i signs_i theta_i`` and a bound on its error, 0 where every addition was exact.

    Each term is split at a digit so high that the sums of the upper parts are exact in any order, so that loops
    vectorise (Demmel and Nguyen 2013); the lower parts are so small that their sum has hardly any rounding error.
    """
    size = _size(theta)
    if not 0.0 < size < 2.0**960:
        return (0.0, 0.0) if size == 0.0 else (np.inf, np.inf)
    large, high, low = 3.0, np.empty(BLOCK), np.empty(BLOCK)
    while large < 8.0 * size:  # its last digit is 2^-51 of it: sums of up to `size` are multiples with 50 digits
        large *= 2.0
    while large > 16.0 * size:
        large *= 0.5
    found, rest, lost = 0.0, 0.0, 0.0
    for s in range(0, theta.size, BLOCK):
        e = min(s + BLOCK, theta.size)
        _parts(signs, theta, large, s, e, high, low)
        one, two, three = _sums(high, low, e - s)
        found, rest, lost = found + one, rest + two, lost + three
    error = UNIT * (1.0 + 8.0 * UNIT) * abs(found + rest) + 2.0 * (theta.size + 8.0) * UNIT * lost
    return found + rest, 0.0 if lost == 0.0 else error


@kernel(leaf=True)
def _nearest(i, t, theta, lo, hi, signs, least, found, sizes):
    """Remember row ``i`` if it can fall, or rise, and is nearer to its kink than those before."""
    size, down, up = abs(t[i]), theta[i] - lo[i], hi[i] - theta[i]
    if signs[i] < 0:
        down, up = up, down
    if size < sizes[0] and down >= least and down > 0.0:
        found[0], sizes[0] = i, size
    if size < sizes[1] and up >= least and up > 0.0:
        found[1], sizes[1] = i, size


@kernel
def nearest_movable(t, theta, lo, hi, signs, least, rows, only):
    """Return the rows nearest to their kink whose signless dual variable can fall, and rise, by ``least``; -1 for none.

    ``t``, ``theta``, ``lo`` and ``hi`` are those of the rows with their signs. Other rows are searched only if ``rows``
    lacks one of the two, and never if ``only``.
    """
    found, sizes = np.empty(2, dtype=np.int64), np.empty(2)
    found[0], found[1], sizes[0], sizes[1] = -1, -1, np.inf, np.inf
    for k in range(rows.size):
        _nearest(rows[k], t, theta, lo, hi, signs, least, found, sizes)
    if min(found[0], found[1]) < 0 and not only:
        for i in range(theta.size):
            _nearest(i, t, theta, lo, hi, signs, least, found, sizes)
    return found[0], found[1]


@kernel(leaf=True)
def _added(one, other):
    total = one[0] + other[0]
    return total, one[1] + other[1] + (0.0 if one[0] == 0.0 else UNIT * abs(total))


@kernel(leaf=True)
def balance(before, theta, t, lo, hi, signs, largest, likely, only):
    """Bring the signed sum of ``theta``, which only rounding separates from 0, to 0 by moving rows nearest their kink.

    ``before`` is added to it, and to the bound on its error. ``theta`` is changed in place. All arrays but
    ``signs`` are those of the rows with signs.

    ``largest`` is that of the ends of the box. The rows ``likely`` are tried first; no others are if ``only``.

    Returns ``residue``, at least the size of the sum: an exact point differs by this in one of the rows ``fall`` and
    ``rise``; inf if no row can move. Then these rows, -1 if none is needed, how often a row was moved, and the sum, if
    it is more than rounding or no row can compensate it; else 0.
    """
    found, error = _added(before, excess(theta, signs))
    moved = 0
    for _ in range(TRIES):
        if not abs(found) > 4.0 * UNIT * largest + error:
            break
        fall, rise = nearest_movable(t, theta, lo, hi, signs, abs(found), likely, only)
        row = fall if found > 0.0 else rise
        if row < 0 or not abs(found) <= ROUNDED * largest:
            return np.inf, -1, -1, moved, found
        theta[row] = min(max(theta[row] - signs[row] * found, lo[row]), hi[row])
        moved += 1
        found, error = _added(before, excess(theta, signs))
    residue = abs(found) + error
    if residue == 0.0:
        return 0.0, -1, -1, moved, 0.0
    fall, rise = nearest_movable(t, theta, lo, hi, signs, residue, likely, only)
    both = error >= abs(found)
    if (both or found > 0.0) and fall < 0 or (both or not found > 0.0) and rise < 0:
        return np.inf, fall, rise, moved, found if only else 0.0
    return residue, fall if both or found > 0.0 else -1, rise if both or not found > 0.0 else -1, moved, 0.0


@kernel(leaf=True)
def residue_costs(residue, fall, rise, norms, t, slope, floor):
    """Return what a signed sum off by ``residue`` adds to the error of the sum over rows, and to the slackness."""
    if residue == 0.0:
        return 0.0, 0.0
    if not residue < np.inf:
        return np.inf, np.inf
    norm, most = 0.0, 0.0
    for row in (fall, rise):
        if row >= 0:
            norm, most = max(norm, norms[row]), max(most, abs(t[row]) + slope * norms[row])
    more = residue * (1.0 + 8.0 * UNIT)
    return more * norm, more * (most + floor)


@kernel(leaf=True)
def form_errors(w, b, bounds):
    """Return what ``box.product_errors`` does for ``g.w + s b``, as if ``b`` were one coefficient more."""
    slope, floor = product_errors(w, bounds)
    if slope == 0.0:  # w = 0: nothing is added to the intercept
        return slope, floor
    return 1.25 * slope, floor + 2.0 * UNIT * abs(b)


@kernel(leaf=True)
def best_of(low, high):
    """Return the intercept to report: any of the interval has the same objective; LIBSVM takes the midpoint."""
    return low if low == high else low + 0.5 * (high - low)


@kernel(leaf=True)
def rest_of(C, rows, status, before, now, signs, every):
    """Return the sum of the survivors' signed dual variables; the sum over all rows stays 0.

    ``rows`` are the survivors, and rows whose fixed dual variable was elsewhere; all rows if ``every``. ``before`` has
    their dual variables before, in their order, ``now``, shape (n,), those of fixed rows at their ends.
    """
    total = 0.0
    for r in range(at(before.size)):  # no branches: nobody could predict them
        i = at(r) if every else at(rows[r])
        total += signs[i] * (before[r] - (0.0 if status[i] == 0 else now[i]))
    return C * total


@kernel
def places(kinks, signs, products):
    """Return the kinks of signless rows, ``kinks - signs products``."""
    out = np.empty(kinks.size)
    for i in range(at(kinks.size)):
        out[i] = kinks[i] - signs[i] * products[i]
    return out


@kernel(leaf=True)
def distances(c, products, signs, b, out):
    """Write ``c - (products + signs b)``."""
    for i in range(at(c.size)):
        out[i] = c[i] - (products[i] + signs[i] * b)


def warm_up():
    a, signs = np.ones(2), np.ones(2, dtype=np.int8)
    rows = np.empty(0, dtype=np.int64)
    best_interval(places(a, signs, a), a, 1.0, 0.0, rows, np.empty((2, 2)))
    excess(a, signs)
    nearest_movable(a, a, a, a, signs, 0.0, rows, False)
    balance((0.0, 0.0), a.copy(), a, a, a, signs, 1.0, rows, False)
    residue_costs(0.0, -1, -1, a, a, 0.0, 0.0)
    form_errors(a, 0.0, np.zeros(TINY + 1))
    best_of(0.0, 1.0)
    rest_of(1.0, rows, signs, a, a, signs, True)
    distances(a, a, signs, 0.0, a.copy())
