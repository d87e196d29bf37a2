"""L1-regularised squared hinge: screening, objectives, exact bias, coordinate descent over features.

Columns are stored one after the other: dense as the rows of ``F`` of shape (k, n), sparse as ``data, indices`` with one
slice ``begin[j]:end[j]`` a column; between the columns of a reduced problem lie those that were screened.
``slack_i = 1 - (F'w)_i - y_i b``; the loss is half the sum of its squared positive parts.
"""

import numpy as np

from screenpath.kernels import at, kernel

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
# Exact solves of the bias within a sweep: so many, whatever screening left, but none before the columns visited since
# the last one hold as many values as there are samples.
BIAS_SOLVES = 8


@kernel(fastmath=SUMS)
def dense_spreads(F, y, out):
    """Write the norm of every column after subtracting its mean; ``F`` holds ``y * x``."""
    k, n = F.shape
    for j in range(k):
        mean = 0.0
        for i in range(n):
            mean += F[j, i] * y[i]
        mean /= n
        total = 0.0
        for i in range(n):
            off = F[j, i] * y[i] - mean
            total += off * off
        out[j] = np.sqrt(total)


@kernel(fastmath=SUMS)
def sparse_spreads(data, indices, indptr, y, out):
    """:func:`dense_spreads` for sparse columns; values that are not stored count as zeros."""
    n = y.size
    for j in range(out.size):
        mean = 0.0
        for p in range(at(indptr[j]), at(indptr[j + 1])):
            mean += data[p] * y[at(indices[p])]
        mean /= n
        total = (n - (indptr[j + 1] - indptr[j])) * mean * mean
        for p in range(at(indptr[j]), at(indptr[j + 1])):
            off = data[p] * y[at(indices[p])] - mean
            total += off * off
        out[j] = np.sqrt(total)


@kernel(fastmath=SUMS)
def bias_sums(slack, y, shift):
    """Return ``sum y_i r_i``, ``sum r_i`` and the number of positive ``r_i = max(slack_i - y_i shift, 0)``."""
    total, size, count = 0.0, 0.0, 0.0
    for i in range(slack.size):
        r = max(slack[i] - y[i] * shift, 0.0)
        total += y[i] * r
        size += r
        count += 1.0 if r > 0.0 else 0.0
    return total, size, count


@kernel()
def bias_root(slack, y, bias):
    """Move the bias to the exact minimiser of the loss: the root of ``sum y_i max(slack_i, 0)``, decreasing in b.

    Newton steps on a piecewise linear function end exactly; a bracket keeps them from cycling.

    Parameters
    ----------
    slack : ndarray of shape (n,)
        Updated to the new bias.
    y : ndarray of shape (n,)
    bias : float

    Returns
    -------
    float
    """
    shift, low, high = 0.0, -np.inf, np.inf
    for step in range(200):
        total, size, count = bias_sums(slack, y, shift)
        if count == 0.0 or abs(total) <= 1e-16 * size:
            break
        if total > 0.0:
            low = shift
        else:
            high = shift
        trial = shift + total / count
        if trial <= low or trial >= high or step % 8 == 7:
            trial = shift + 2.0 * total / count if high - low == np.inf else 0.5 * (low + high)
        if trial in (shift, low, high):
            break
        shift = trial
    if shift != 0.0:
        for i in range(slack.size):
            slack[i] -= y[i] * shift
    return bias + shift


@kernel(fastmath=SUMS)
def evaluate(F, data, indices, begin, end, sparse, index, slack, w, norms, rounding, products):
    """Write ``f_j . max(slack, 0)`` to ``products[k]`` for ``j = index[k]`` and sum up both objectives.

    Returns
    -------
    total, squares : float
        ``sum max(slack, 0)`` and ``sum max(slack, 0)^2``.
    largest, weight : float
        Largest ``|products|``, with ``rounding ||f_j|| ||max(slack, 0)||`` added, and ``sum |w_j|`` over ``index``.
    """
    alpha, total, squares = positive_part(slack)
    largest, weight = 0.0, 0.0
    reach = rounding * np.sqrt(squares)
    for k in range(index.size):
        j = index[k]
        product = 0.0
        if sparse:
            for p in range(at(begin[j]), at(end[j])):
                product += data[p] * alpha[at(indices[p])]
        else:
            for i in range(alpha.size):
                product += F[j, i] * alpha[i]
        products[k] = product
        largest = max(largest, abs(product) + reach * norms[j])
        weight += abs(w[j])
    return total, squares, largest, weight


@kernel(fastmath=SUMS)
def columns_add(F, data, indices, begin, end, sparse, index, weights, out):
    """Add ``sum_k weights[k] f_index[k]`` to ``out`` (one entry a sample)."""
    for k in range(index.size):
        t = weights[k]
        if t == 0.0:
            continue
        j = index[k]
        if sparse:
            for p in range(at(begin[j]), at(end[j])):
                out[at(indices[p])] += t * data[p]
        else:
            for i in range(out.size):
                out[i] += t * F[j, i]


@kernel(fastmath=SUMS)
def inner(a, b):
    """Return ``a . b``. A threaded library would spend more time on waking its threads."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=SUMS)
def dome_shape(theta, y, null_bias, here, there, gap):
    """Return the dome between ``here = 1/lambda_1`` and ``there = 1/lambda_2`` but for its products with columns.

    With ``u = 1 - null_bias y``, the projection of 1 on the complement of ``y``, the dome has the centre
    ``(there u + theta) / 2`` and the normal ``here u - theta``.

    Parameters
    ----------
    theta, y : ndarray of shape (n,)
    null_bias, here, there : float
    gap : float
        Of the reference, in the units of ``theta``: squared norms.

    Returns
    -------
    center : float
        Norm of the centre.
    radius : float
    length : float
        Norm of the normal.
    offset : float
        Of the half-space from the centre, times ``length``.
    """
    middle_sq, normal_sq, toward_sq, product = 0.0, 0.0, 0.0, 0.0
    for i in range(theta.size):  # differences first: products of u and theta would cancel where these are parallel
        one = 1.0 - null_bias * y[i]
        middle = 0.5 * (there * one + theta[i])
        toward = there * one - theta[i]
        normal = here * one - theta[i]
        middle_sq += middle * middle
        normal_sq += normal * normal
        toward_sq += toward * toward
        product += toward * normal
    radius = 0.5 * np.sqrt(toward_sq)
    offset = gap + np.sqrt(2.0 * gap) * 2.0 * radius - 0.5 * product
    return np.sqrt(middle_sq), radius, np.sqrt(normal_sq), offset


@kernel()
def dome_keep(theta, y, null_bias, products, null_products, norms, here, there, gap, direction, rounding):
    """Return the columns whose ``|f_j.theta|`` can reach 1 in a dome: :meth:`geometry.Dome.bounds` in one traversal.

    Parameters
    ----------
    theta, y, null_bias, here, there, gap
        As for :func:`dome_shape`.
    products : ndarray of shape (m,)
        ``f_j.theta``.
    null_products : ndarray of shape (m,)
        ``f_j.u``.
    norms : ndarray of float32 of shape (2, m)
        Norms in the slice of the dome and norms of the columns themselves, to which rounding is relative. Both are
        rounded up: the bounds grow with them, and the time of this traversal is that of reading memory.
    direction : float
        Smallest length of the normal, relative to the vectors it is the difference of, at which it is not yet rounding
        error. Below it the ball decides.
    rounding : float
        Slack of every comparison, relative to the magnitudes compared.
    """
    center, radius, across_length, offset = dome_shape(theta, y, null_bias, here, there, gap)
    across_null, across = 0.0, 0.0
    size = here * np.sqrt(y.size)
    axis = 0.0  # the product of a column with the unit normal is known to within this times its norm
    if across_length > direction * size:
        across_null, across = here / across_length, -1.0 / across_length
        offset = min(max(offset / across_length, -radius), radius)
        axis = rounding * (1.0 + size / across_length)
    else:
        offset = radius
    cap = np.sqrt(max(radius * radius - offset * offset, 0.0))
    goal = 1.0 - rounding
    reach = rounding * (center + radius) + axis * abs(offset)
    inner, whole = norms[0], norms[1]
    kept = np.zeros((products.size + 7) // 8 * 8, dtype=np.uint8)
    for j in range(products.size):  # without branches, so that the loop vectorises
        norm, length = np.float64(inner[j]), np.float64(whole[j])
        vc = 0.5 * (there * null_products[j] + products[j])
        va = across_null * null_products[j] + across * products[j]
        # The root would turn a rounding error of va into its square root: for columns along the normal it is granted.
        # So is the move of the edge from which on the rim's maximiser answers.
        square = (norm - va) * (norm + va) + 2.0 * axis * norm * length
        rim = cap * np.sqrt(square if square > 0.0 else 0.0)
        ball, edge, tilt = radius * norm, offset * norm + axis * radius * length, va * radius
        upper = vc + ball if tilt <= edge else vc + offset * va + rim
        lower = ball - vc if -tilt <= edge else rim - vc - offset * va
        kept[j] = (upper if upper > lower else lower) >= goal - length * reach
    index = np.empty(kept.sum(), dtype=np.int64)
    count = 0
    eights = kept.view(np.uint64)
    for k in range(eights.size):
        if eights[k] != 0:
            for j in range(8 * k, 8 * k + 8):
                if kept[j]:
                    index[count] = j
                    count += 1
    return index


@kernel(fastmath=SUMS)
def positive_part(slack):
    """Return ``max(slack, 0)``, its sum and its sum of squares."""
    alpha = np.empty(slack.size)
    total, squares = 0.0, 0.0
    for i in range(slack.size):
        r = max(slack[i], 0.0)
        alpha[i] = r
        total += r
        squares += r * r
    return alpha, total, squares


@kernel(fastmath=SUMS)
def descend(F, data, indices, begin, end, sparse, y, lam, sqnorms, w, slack, bias, active, shrinking, sweeps):
    """Cyclic coordinate descent with one-dimensional Newton steps, in place (Yuan et al. 2010, LIBLINEAR's method).

    The bias is solved exactly after each sweep, and a few times within it where that costs little beside the columns:
    the same number of times whether or not they were screened, so that screening does not change the sweeps needed.
    A step whose decrease the quadratic bound ``||f_j||^2`` does not guarantee is checked and halved.

    Parameters
    ----------
    F, data, indices, begin, end, sparse
        Columns.
    y, slack : ndarray of shape (n,)
    lam : float
    sqnorms, w : ndarray of shape (k,)
        ``||f_j||^2`` and the weights, updated.
    bias : ndarray of shape (1,)
        Updated.
    active : ndarray of int64
        Columns to visit; permuted in place by shrinking.
    shrinking : bool
        Skip zero weights whose gradient is inside the constraint by more than the last sweep's worst violation.
    sweeps : int

    Returns
    -------
    visited : int
        Columns visited.
    violation : float
        Largest violation of optimality met in the last sweep.
    """
    n = y.size
    size, visited, since = active.size, 0, 0
    values = 0
    for k in range(size):
        values += end[active[k]] - begin[active[k]] if sparse else n
    solve_after = max(values // BIAS_SOLVES, n)
    violation, room = np.inf, np.inf
    for _ in range(sweeps):
        worst = 0.0
        k = 0
        while k < size:
            j = active[k]
            visited += 1
            old = w[j]
            gradient, curvature = 0.0, 1e-12 * sqnorms[j]
            if sparse:
                start, stop = begin[j], end[j]
                since += stop - start
                if old == 0.0:
                    for p in range(at(start), at(stop)):
                        gradient -= data[p] * max(slack[at(indices[p])], 0.0)
                else:  # the curvature is needed too
                    for p in range(at(start), at(stop)):
                        value, r = data[p], slack[at(indices[p])]
                        gradient -= value * max(r, 0.0)
                        curvature += value * value if r > 0.0 else 0.0
            else:
                since += n
                for i in range(n):
                    gradient -= F[j, i] * max(slack[i], 0.0)
            if old == 0.0:
                miss = max(abs(gradient) - lam, 0.0)
                if shrinking and abs(gradient) < lam - room:
                    size -= 1
                    active[k], active[size] = active[size], active[k]
                    continue
            else:
                miss = abs(gradient + lam) if old > 0.0 else abs(gradient - lam)
            worst = max(worst, miss)
            k += 1
            if miss == 0.0 or sqnorms[j] == 0.0:
                continue
            if sparse and old == 0.0:
                for p in range(at(start), at(stop)):
                    curvature += data[p] * data[p] if slack[at(indices[p])] > 0.0 else 0.0
            elif not sparse:
                for i in range(n):
                    curvature += F[j, i] * F[j, i] if slack[i] > 0.0 else 0.0
            if gradient + lam < curvature * old:
                step = -(gradient + lam) / curvature
            elif gradient - lam > curvature * old:
                step = -(gradient - lam) / curvature
            else:
                step = -old
            applied = 0.0
            for _ in range(40):
                penalty = lam * (abs(old + step) - abs(old))
                wanted = 0.01 * (gradient * step + penalty)
                change = step - applied
                applied = step
                if gradient * step + 0.5 * sqnorms[j] * step * step + penalty <= wanted:
                    if sparse:
                        for p in range(at(begin[j]), at(end[j])):
                            slack[at(indices[p])] -= change * data[p]
                    else:
                        for i in range(n):
                            slack[i] -= change * F[j, i]
                    break
                rise = 0.0  # of the loss, from the weight before the step to the one after it
                if sparse:
                    for p in range(at(begin[j]), at(end[j])):
                        i = at(indices[p])
                        r = slack[i] - change * data[p]
                        before = max(r + step * data[p], 0.0)
                        slack[i] = r
                        r = max(r, 0.0)
                        rise += r * r - before * before
                else:
                    for i in range(n):
                        r = slack[i] - change * F[j, i]
                        before = max(r + step * F[j, i], 0.0)
                        slack[i] = r
                        r = max(r, 0.0)
                        rise += r * r - before * before
                if 0.5 * rise + penalty <= wanted:
                    break
                step *= 0.5
            w[j] = old + applied
            if since >= solve_after:
                since = 0
                bias[0] = bias_root(slack, y, bias[0])
        bias[0] = bias_root(slack, y, bias[0])
        violation = worst
        room = worst
        if size == 0 or worst == 0.0:
            break
    return visited, violation


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    y, w, norms, index = np.array([1.0, -1.0, 1.0]), np.zeros(2), np.ones(2), np.arange(2)
    dense = np.array([[1.0, -0.5, 2.0], [0.5, 1.0, -1.0]])
    no_csr = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    csr = dense.ravel().copy(), np.array([0, 1, 2, 0, 1, 2], dtype=np.int32), np.array([0, 3, 6], dtype=np.int64)
    dense_spreads(dense, y, np.empty(2))
    sparse_spreads(*csr, y, np.empty(2))
    dome_shape(np.ones(3), y, 0.1, 1.0, 2.0, 0.1)
    dome_keep(np.ones(3), y, 0.1, norms, norms, np.ones((2, 2), dtype=np.float32), 1.0, 2.0, 0.1, 1e-10, 1e-12)
    inner(y, y)
    positive_part(y)
    bias_root(np.ones(3), y, 0.0)
    for columns in ((dense, *no_csr, False), (np.empty((0, 0)), *csr[:2], csr[2][:-1], csr[2][1:], True)):
        slack = np.ones(3)
        evaluate(*columns, index, slack, w, norms, 1e-14, np.empty(2))
        descend(*columns, y, 0.1, norms, w.copy(), slack, np.zeros(1), index.copy(), True, 1)
        columns_add(*columns, index, -norms, slack)
