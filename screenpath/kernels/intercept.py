"""A free intercept: where it is best, dual points that sum to nothing, and what a lever decides of each row.

Everything here is *signless*: row ``i`` is ``x_i``, its kink ``c_i``, its dual variable in ``[lo_i, hi_i]``, and the
intercept adds the same ``b`` to every linear form. A row ``g_i = s_i x_i`` of a box model becomes one by the sign
``s_i``: kink ``s_i c_i``, and the box ``[lo_i, hi_i]`` or ``[-hi_i, -lo_i]``.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.box import UNIT
from screenpath.kernels.double import two_sum

MANY, SAMPLE, MARGIN = 4096, 256, 0.12  # rows from which a sample is looked at, its size, and how sure it is
FEW = 32  # entries that are sorted rather than parted


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


@kernel
def _spanned(beta, rows):
    """Return keys a little outside those of some rows."""
    least, most, size = np.inf, -np.inf, 0.0
    for k in range(rows.size):
        key = beta[rows[k]]
        least, most, size = min(least, key), max(most, key), max(size, abs(key))
    room = (most - least) + 1e-12 * size
    return least - room, most + room


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
def best_interval(beta, width, level, slack, rows):
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
    rows : ndarray of int64
        Those whose kinks the interval is likely to lie between; none where nothing is known.

    Returns
    -------
    low, high : float
    """
    keys, weights = np.empty(beta.size), np.empty(beta.size)
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
    """Return ``sum_i signs_i theta_i`` and a bound on its error, 0 where every addition was exact.

    Four sums that keep what they lose, since one waits for itself at each addition.
    """
    a, b, c, d, size, lost = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    rest_a, rest_b, rest_c, rest_d = 0.0, 0.0, 0.0, 0.0
    whole = theta.size - theta.size % 4
    for i in range(0, at(whole), 4):
        w, x, y, z = (
            signs[i] * theta[i], signs[i + 1] * theta[i + 1], signs[i + 2] * theta[i + 2], signs[i + 3] * theta[i + 3],
        )  # fmt: skip
        a, of_a = two_sum(a, w)
        b, of_b = two_sum(b, x)
        c, of_c = two_sum(c, y)
        d, of_d = two_sum(d, z)
        rest_a += of_a
        rest_b += of_b
        rest_c += of_c
        rest_d += of_d
        size += (abs(w) + abs(x)) + (abs(y) + abs(z))
        lost += (abs(of_a) + abs(of_b)) + (abs(of_c) + abs(of_d))
    rest = (rest_a + rest_b) + (rest_c + rest_d)
    for i in range(whole, theta.size + 3):
        term = b if i == theta.size else (c if i == theta.size + 1 else d)
        if i < theta.size:
            term = signs[i] * theta[i]
            size += abs(term)
        a, of_a = two_sum(a, term)
        rest += of_a
        lost += abs(of_a)
    found, n = a + rest, theta.size + 8.0
    return found, 0.0 if lost == 0.0 else UNIT * abs(found) + 2.0 * n * n * UNIT * UNIT * size


@kernel
def inside(theta, lo, hi):
    """Return the rows whose dual variable is between the ends of its box."""
    rows, n = np.empty(theta.size, dtype=np.int64), 0
    for i in range(at(theta.size)):
        rows[at(n)] = i
        n += (lo[i] < theta[i]) & (theta[i] < hi[i])
    return rows[:n].copy()


@kernel
def _nearest(i, t, theta, lo, hi, signs, least, found, sizes):
    """Note a row that is nearer to its kink than those before, and can fall, or rise."""
    size, down, up = abs(t[i]), theta[i] - lo[i], hi[i] - theta[i]
    if signs[i] < 0:
        down, up = up, down
    if size < sizes[0] and down >= least and down > 0.0:
        found[0], sizes[0] = i, size
    if size < sizes[1] and up >= least and up > 0.0:
        found[1], sizes[1] = i, size


@kernel
def nearest_movable(t, theta, lo, hi, signs, least, rows):
    """Return the rows nearest to their kink whose signless dual variable can fall, and rise, by ``least``; -1 for none.

    ``t``, ``theta``, ``lo`` and ``hi`` are those of the rows with their signs. Where ``rows`` has one of both kinds, no
    other is looked at.
    """
    found, sizes = np.full(2, -1), np.full(2, np.inf)
    for k in range(rows.size):
        _nearest(rows[k], t, theta, lo, hi, signs, least, found, sizes)
    if min(found[0], found[1]) < 0:
        for i in range(theta.size):
            _nearest(i, t, theta, lo, hi, signs, least, found, sizes)
    return found[0], found[1]


@kernel
def places(kinks, signs, products):
    """Return where signless rows have their kinks, ``kinks - signs products``."""
    out = np.empty(kinks.size)
    for i in range(at(kinks.size)):
        out[i] = kinks[i] - signs[i] * products[i]
    return out


@kernel
def distances(c, products, signs, b, out):
    """Write ``c - (products + signs b)``."""
    for i in range(at(c.size)):
        out[i] = c[i] - (products[i] + signs[i] * b)


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    a, signs = np.ones(2), np.ones(2, dtype=np.int8)
    signless(a, a, a, signs, a.copy(), a.copy(), a.copy())
    rows = inside(a, a, a)
    best_interval(places(a, signs, a), a, 1.0, 0.0, rows)
    excess(a, signs)
    nearest_movable(a, a, a, a, signs, 0.0, rows)
    distances(a, a, signs, 0.0, a.copy())
