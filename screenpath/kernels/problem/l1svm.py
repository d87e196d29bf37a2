"""L1-regularised squared hinge: objectives, exact bias, coordinate descent over features.

``columns`` is a tuple ``(data, indices, begin, end)``: the values of a column and their samples are one slice
``begin[j]:end[j]``; screened columns lie between those of a reduced problem. A column with as many values as there are
samples has them in order, so that its indices need not be read (and are not stored for dense data). ``index``,
``active`` and ``chosen`` (int64) list columns. ``slack_i = |z_i| - (F'w)_i - z_i b``; the loss is half the sum of its
squared positive parts ``r = max(slack, 0)``. A sample of weight ``s_i`` has ``z_i = y_i sqrt(s_i)`` and ``f_ij = z_i
x_ij``; without weights ``z`` are the labels -1 and +1, and every product with them is exact. ``y`` below is ``z``.

``total``, ``squares`` and ``balance`` are ``|y|.r``, ``||r||^2`` and ``y.r``.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.share import kink_share
from screenpath.kernels.problem.sparse import add_column, column_sum, outward

# Exact solves of the bias within a sweep: so many, whatever screening left, but none before the columns visited since
# the last one hold as many values as there are samples.
BIAS_SOLVES = 8


@kernel(fastmath=SUMS, leaf=True)
def bias_root(slack, y, bias):
    """Return the bias that minimises the loss, by Newton steps in a bracket that end exactly; move ``slack`` to it."""
    shift, low, high = 0.0, -np.inf, np.inf
    for step in range(200):
        total, size, count = 0.0, 0.0, 0.0
        for i in range(slack.size):
            r = max(slack[i] - y[i] * shift, 0.0)
            total += y[i] * r
            size += abs(y[i] * r)
            count += y[i] * y[i] if r > 0.0 else 0.0
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


@kernel(fastmath=SUMS, leaf=True)
def evaluate(columns, index, y, slack, w, norms, allowed, rounding, lam, known, products):
    """Write ``f_j . r`` to ``products[k]`` for ``j = index[k]`` unless known, and compute both objectives.

    ``allowed`` (int8) are the signs that weights may have, 0 for any.

    Returns primal, gap and scale (:func:`dual_scale`) of the problem on these columns; ``total``, ``squares``,
    ``balance``; ``sum |w_j|`` and ``sum |w_j| ||f_j||`` over ``index``.
    """
    data, indices, begin, end = columns
    alpha, total, squares, balance = positive_part(slack, y)
    largest, weight, reach = 0.0, 0.0, 0.0
    unsure = blur(total, squares, balance, rounding)
    for k in range(index.size):
        j = index[k]
        if not known:
            products[k] = column_sum(data, indices, begin[j], end[j], alpha.size, alpha)
        largest = max(largest, outward(products[k], allowed[j]) + unsure * norms[j])
        weight += abs(w[j])
        reach += abs(w[j]) * norms[j]
    scale = dual_scale(lam, total, squares, largest)
    primal = 0.5 * squares + lam * weight
    return primal, primal - scale * (total - 0.5 * scale * squares), scale, total, squares, balance, weight, reach


@kernel(leaf=True)
def dual_scale(lam, total, squares, largest):
    """Return the factor that makes ``r >= 0``, of a ``largest`` exact ``|f_j.r|``, feasible and best along its ray."""
    if squares == 0.0:
        return 0.0
    best = total / squares
    return min(best, lam / largest) if largest > 0.0 else best


@kernel(leaf=True)
def blur(total, squares, balance, rounding):
    """Return the error bound of a product with a dual point ``r >= 0``, for a column of norm 1.

    ``y.r`` is not quite 0. It is, once the entries of the larger class are all multiplied by the ratio of the two
    classes' sums: a point at a distance of at most ``|y.r| / (|y|.r / 2) ||r||`` is feasible. ``rounding`` is the
    relative error of a product, and of the three sums.
    """
    if total == 0.0:
        return 0.0
    return (rounding + imbalance(total, balance, rounding)) * np.sqrt(squares) * (1.0 + rounding)


@kernel(leaf=True)
def imbalance(total, balance, rounding):
    """Return the share of one class's entries that must go so that ``y.r = 0`` (see :func:`blur`)."""
    return min(2.0 * (abs(balance) / total + rounding) * (1.0 + 4.0 * rounding), 1.0) if total > 0.0 else 0.0


@kernel(fastmath=SUMS, leaf=True)
def certified_terms(w, products, features, lam, rounding, grown, total, squares, balance, inside):
    """Write the products of a dual point over ``lam`` to ``inside``; return what a certificate needs of the columns.

    ``features`` are the norms of the columns, ``spreads`` and the signs that weights may have. A product with ``r`` is
    off by at most :func:`blur` times the norm of its column, and not above ``||r||`` times the norm of the column after
    centring, ``spreads``. One that is no number can be of any size. ``grown`` is a factor for bounds that take a few
    operations to compute.

    Returns ``scale``, ``hoped``: :func:`dual_scale` of the largest product that rounding allows, and of the smallest;
    the dual point is ``scale r``; ``terms``: weights that are not 0; ``weight``, ``reach``, ``kink``: sums of ``|w_j|``
    and ``|w_j| ||f_j||``, and of the columns' shares of the gap over ``lam``.
    """
    (norms, spreads, allowed), length = features, np.sqrt(squares) * grown
    unsure = blur(total, squares, balance, rounding)
    largest, least, sizes = 0.0, 0.0, 0.0
    for j in range(w.size):
        size, blurred, bound = outward(products[j], allowed[j]), unsure * norms[j], spreads[j] * length
        most = size + blurred
        most = bound if bound < most else most
        largest = most if most > largest else largest
        least = size - blurred if size - blurred > least else least
        sizes += abs(size)
    largest = largest * grown if sizes < np.inf else np.inf
    scale, hoped = dual_scale(lam, total, squares, largest), dual_scale(lam, total, squares, least)
    terms, weight, reach, kink, part = 0, 0.0, 0.0, 0.0, scale / lam
    for j in range(w.size):  # apart from the sums: where these write as well, their order depends on addresses
        inside[j] = products[j] * part
    for j in range(w.size):
        value = w[j]
        terms += value != 0.0
        weight += abs(value)
        reach += abs(value) * norms[j]
        kink += kink_share(value, inside[j], 1.0)
    return scale, hoped, terms, weight, reach, kink


@kernel(fastmath=SUMS, leaf=True)
def columns_add(columns, index, weights, out):
    """Add ``sum_k weights[k] f_index[k]`` to ``out`` (one entry a sample)."""
    data, indices, begin, end = columns
    for k in range(index.size):
        j = index[k]
        add_column(data, indices, begin[j], end[j], out.size, weights[k], out)


@kernel(fastmath=SUMS)
def positive_part(slack, y):
    """Return ``r``, ``total``, ``squares`` and ``balance``."""
    alpha = np.empty(slack.size)
    total, squares, balance = 0.0, 0.0, 0.0
    for i in range(slack.size):  # apart from the sums, see certified_terms
        alpha[i] = max(slack[i], 0.0)
    for i in range(slack.size):
        r = alpha[i]
        part = y[i] * r
        total += abs(part)
        squares += r * r
        balance += part
    return alpha, total, squares, balance


@kernel(fastmath=SUMS)
def descend(columns, y, lam, features, w, slack, bias, active, shrinking, room, sweeps):
    """Cyclic coordinate descent with one-dimensional Newton steps, in place (Yuan et al. 2010, LIBLINEAR's method).

    A step along a column takes the bias with it: along ``f_j - means[j] y``, so that a mean does not stand between the
    weights and the bias. Where the mean is 0 the bias stays.
    The bias is solved exactly after each sweep, and a few times within it where that costs little beside the columns:
    the same number of times whether or not they were screened, so that screening does not change the sweeps needed.
    A step whose decrease a quadratic bound (the square of what it goes along) does not guarantee is checked and halved.

    ``features`` (tuple of shape (k,)): ``||f_j||^2``, approximate means of full columns (0 for others), and the signs
    that weights may have (int8). ``w``, ``slack``, ``bias`` (shape (k,), (n,), (1,)): updated. ``active`` (int64):
    columns to visit; permuted in place by shrinking. ``shrinking``: skip zero weights whose gradient is inside the
    constraint by more than the last sweep's worst violation. ``room``: that of the sweep before these, or inf.

    Returns ``visited``: columns visited; ``violation``: largest violation of optimality met in the last sweep;
    ``size``: columns that shrinking has left, the first of ``active``.
    """
    (data, indices, begin, end), n, (sqnorms, means, allowed) = columns, y.size, features
    size, visited, since = active.size, 0, 0
    values, balance, line, gathered, centring = 0, 0.0, np.empty(n), np.empty(n), np.any(means != 0.0)
    for i in range(n):
        balance += y[i] * max(slack[i], 0.0)
    for k in range(size):
        values += end[active[k]] - begin[active[k]]
    solve_after = max(values // BIAS_SOLVES, n)
    violation = np.inf
    for _ in range(sweeps):
        worst = 0.0
        k = 0
        while k < size:
            j = active[k]
            visited += 1
            old, mean, start, stop = w[j], means[j], begin[j], end[j]
            since += stop - start
            column, near = data[start:stop], slack
            if stop - start < n:  # what follows sees the column's own samples alone, one after the other
                near = gathered[: stop - start]
                for p in range(column.size):
                    near[p] = slack[at(indices[at(start) + at(p)])]
            gradient, curvature, square = mean * balance, 1e-12 * sqnorms[j], 0.0
            for p in range(column.size):
                gradient -= column[p] * max(near[p], 0.0)
            if old == 0.0:
                pull = outward(-gradient, allowed[j])
                miss = max(pull - lam, 0.0)
                if shrinking and pull < lam - room:
                    size -= 1
                    active[k], active[size] = active[size], active[k]
                    continue
            else:
                miss = abs(gradient + lam) if old > 0.0 else abs(gradient - lam)
            worst = max(worst, miss)
            k += 1
            if miss == 0.0 or 1e-12 * sqnorms[j] == 0.0:
                continue
            for p in range(column.size):
                line[p] = column[p] - mean * y[p]
            for p in range(column.size):
                square += line[p] * line[p]
                curvature += line[p] * line[p] if near[p] > 0.0 else 0.0
            if gradient + lam < curvature * old and allowed[j] >= 0:
                step = -(gradient + lam) / curvature
            elif gradient - lam > curvature * old and allowed[j] <= 0:
                step = -(gradient - lam) / curvature
            else:
                step = -old
            applied = 0.0
            for _ in range(40):
                penalty = lam * (abs(old + step) - abs(old))
                wanted = 0.01 * (gradient * step + penalty)
                change = step - applied
                applied = step
                if gradient * step + 0.5 * square * step * step + penalty <= wanted:
                    for p in range(column.size):
                        near[p] -= change * line[p]
                    break
                rise = 0.0  # of the loss, from the weight before the step to the one after it
                for p in range(column.size):
                    r = near[p] - change * line[p]
                    before = max(r + step * line[p], 0.0)
                    near[p] = r
                    r = max(r, 0.0)
                    rise += r * r - before * before
                if 0.5 * rise + penalty <= wanted:
                    break
                step *= 0.5
            if column.size < n:
                for p in range(column.size):
                    slack[at(indices[at(start) + at(p)])] = near[p]
            w[j] = old + applied
            bias[0] -= mean * applied
            if centring:
                balance = 0.0
                for i in range(n):
                    balance += y[i] * max(slack[i], 0.0)
            if since >= solve_after:
                since = 0
                bias[0], balance = bias_root(slack, y, bias[0]), 0.0
        bias[0], balance = bias_root(slack, y, bias[0]), 0.0
        violation = worst
        room = worst
        if size == 0 or worst == 0.0:
            break
    return visited, violation, size


def warm_up():
    y, w, norms, index = np.array([1.0, -1.0, 1.0]), np.zeros(2), np.ones(2), np.arange(2)
    allowed = np.zeros(2, dtype=np.int8)
    ends = np.array([0, 3, 6], dtype=np.int64)
    columns = np.array([1.0, -0.5, 2.0, 0.5, 1.0, -1.0]), np.array([0, 1, 2, 0, 1, 2], np.int32), ends[:-1], ends[1:]
    blur(1.0, 1.0, 0.0, 1e-14)
    positive_part(y, y)
    bias_root(np.ones(3), y, 0.0)
    certified_terms(w, norms, (norms, norms, allowed), 1.0, 1e-14, 1.0, 1.0, 1.0, 0.0, w.copy())
    imbalance(1.0, 0.0, 1e-14)
    evaluate(columns, index, y, np.ones(3), w, norms, allowed, 1e-14, 1.0, False, np.empty(2))
    descend(columns, y, 0.1, (norms, w, allowed), w.copy(), np.ones(3), np.zeros(1), index.copy(), True, np.inf, 1)
    columns_add(columns, index, -norms, np.ones(3))
