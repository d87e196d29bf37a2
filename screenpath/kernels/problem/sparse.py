"""Passes over the data and sums over samples and features of the sparse SVM, binary and multi-class.

Arrays over dual variables hold ``classes * n`` entries, arrays over weights ``classes * d``; entry ``c * n + i`` is
class ``c`` of sample ``i``. The binary model has one class and labels -1 and +1. In the multi-class model labels are
class numbers and the pair ``(label_i, i)`` is no dual variable: it stays at 0 and is counted nowhere.

A row's loss is ``max theta t - gamma/2 theta^2`` over ``low <= theta <= high``, of ``t = c - m``: ``c`` is its kink,
``m`` its margin. A hinge has the kink 1 and the ends 0 and 1; a regression has its targets as kinks, labels of 1, and
a ``low`` below 0. With several classes it is the hinge.

``weights`` holds how much each sample's loss counts; their mean is 1, and without weights every one of them is. Dual
variables stay between their ends whatever the weight, and so does what they say about a margin; sums, norms and
distances over them count each with its sample's weight: ``||theta||^2 = sum s_i theta_i^2``.

``psi`` is what dual variables weigh a sample with: ``s y theta`` (binary), or ``-s theta_ci`` for ``c != y_i`` and
``s sum_k theta_ki`` for ``c = y_i`` (multi-class), so that ``X' psi`` is the sum over all rows of the dual.

A view is a tuple ``(data, indices, indptr)``; a line with as many entries as its length allows has them in order, so
that its indices need not be read (and are not stored for dense data).
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.share import kink_share, step_share


class Samples(NamedTuple):
    """The samples' part of the losses: ``gamma``, labels (int64), weights, the number of classes, kinks and ends.

    ``n`` counts the samples of the whole data: the loss is a mean over them.
    """

    labels: np.ndarray
    weights: np.ndarray
    n: int
    classes: int
    gamma: float
    kinks: np.ndarray
    low: float
    high: float


class Earlier(NamedTuple):
    """Sums that were formed before, and the norms that bound how far others are from them."""

    psi: np.ndarray  # shape (classes * n,): the weights of the samples then
    u: np.ndarray  # shape (classes * d,): ``x^j . psi_c / n``
    slack: np.ndarray  # bounds on their errors
    norms: np.ndarray  # shape (d,): ``||x^j|| / n``
    dual_norms: np.ndarray  # the same with a line for every dual variable of a class


@kernel(forceinline=True, leaf=True)
def outward(u, sign):
    """Return how far ``u`` goes towards a weight that the sign allows: ``|u|``, or only the one side of it."""
    return abs(u) if sign == 0 else sign * u


@kernel(leaf=True)
def slack_of(scores, own, kinks, n, classes, i, k):
    """Return ``t = c - m`` of the dual variable ``k``, of sample ``i`` with the label ``own``."""
    return kinks[i] - own * scores[i] if classes == 1 else 1.0 - scores[own * n + i] + scores[k]


@kernel(forceinline=True, leaf=True, inner=True)
def response(t, state, gamma, low, high):
    """Return the dual variable of a row, and its loss: linear whatever ``t`` where it is screened (``state``)."""
    if state < 0 or (state == 0 and t <= gamma * low):
        return low, low * (t - 0.5 * gamma * low) if low != 0.0 else 0.0
    if state > 0 or t >= gamma * high:
        return high, high * (t - 0.5 * gamma * high)
    value = t / gamma
    return value, 0.5 * t * value


@kernel(leaf=True)
def respond(scores, samples, status, theta, psi):
    """Write ``theta(w)``, screened values as they are, and ``psi`` from the scores; return the sum of the losses."""
    labels, weights, n, classes, gamma, kinks, low, high = samples
    loss = 0.0
    if classes == 1:  # a loop of its own takes a third of the time
        for i in range(n):
            theta[i], share = response(kinks[i] - labels[i] * scores[i], status[i], gamma, low, high)
            loss += weights[i] * share
            psi[i] = weights[i] * (labels[i] * theta[i])
        return loss
    for i in range(n):
        own, weight = labels[i], weights[i]
        total = 0.0
        for c in range(classes):
            k = c * n + i
            if c == own:
                theta[k] = 0.0
                continue
            value, share = response(slack_of(scores, own, kinks, n, classes, i, k), status[k], gamma, low, high)
            loss += weight * share
            theta[k] = value
            total += value
            psi[k] = weight * -value
        psi[own * n + i] = weight * total
    return loss


@kernel(fastmath=SUMS, leaf=True)
def sample_terms(scores, samples, theta):
    """Sum what a certificate needs over the dual variables, each with its sample's weight.

    Returns ``loss``, ``slack``: sum of the (weighted) losses, and of the samples' shares of the gap, ``l(t) - theta t +
    gamma/2 theta^2``; ``theta_sum``, ``theta_sq``, ``apart_sq``: ``sum c theta``, ``sum theta^2`` and ``||theta -
    theta(w)||^2``; ``n_R``, ``n_L``: dual variables at their lower and at their upper end.
    """
    labels, weights, n, classes, gamma, kinks, low, high = samples
    loss, slack, theta_sum, theta_sq, apart_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    n_R, n_L = 0, 0
    for c in range(classes):
        for i in range(n):
            k, own, weight = c * n + i, labels[i], weights[i]
            if classes > 1 and c == own:
                continue
            t, value = slack_of(scores, own, kinks, n, classes, i, k), theta[k]
            best = min(max(t / gamma, low), high)
            loss += weight * (best * (t - 0.5 * gamma * best))
            slack += weight * step_share(value, t, best, low, high, gamma)
            apart_sq += weight * ((best - value) * (best - value))
            theta_sum += weight * (kinks[i] * value)
            theta_sq += weight * (value * value)
            n_R += value == low
            n_L += value == high
    return loss, slack, theta_sum, theta_sq, apart_sq, n_R, n_L


@kernel(fastmath=SUMS, leaf=True, inner=True)
def column_sum(data, indices, start, stop, n, psi):
    """Return ``x^j . psi`` for the column at ``start:stop``."""
    total = 0.0
    if stop - start == n:
        column = data[start:stop]
        for i in range(n):
            total += column[i] * psi[i]
    else:
        for p in range(at(start), at(stop)):
            total += data[p] * psi[at(indices[p])]
    return total


@kernel(fastmath=SUMS, leaf=True)
def add_column(data, indices, start, stop, n, value, out):
    """Add ``value x^j`` for the column at ``start:stop``."""
    if value == 0.0:
        return
    if stop - start == n:
        column = data[start:stop]
        for i in range(n):
            out[i] += value * column[i]
    else:
        for p in range(at(start), at(stop)):
            out[at(indices[p])] += value * data[p]


@kernel(fastmath=SUMS, leaf=True)
def column_sums(view, n, features, psi, scale, out):
    """Write ``scale * x^j . psi_c`` to ``out[f]`` for the features ``f = c d + j``; return the values touched."""
    data, indices, indptr = view
    d = indptr.size - 1
    touched = 0
    for k in range(features.size):
        f = features[k]
        c = f // d
        j = f - c * d
        base = c * n
        start, stop = indptr[j], indptr[j + 1]
        out[f] = scale * column_sum(data, indices, start, stop, n, psi[base : base + n])
        touched += stop - start
    return touched


@kernel(fastmath=SUMS, leaf=True, inner=True)
def bound_sums(w, signs, earlier, here, rate, room, limit, sums, formed):
    """Write the earlier sums of one class, ``here``, with their grown errors; mark in ``formed`` what is not enough."""
    old, old_slack, norms, dual_norms = earlier.u[here], earlier.slack[here], earlier.norms, earlier.dual_norms[here]
    w, signs, out, slack = w[here], signs[here], sums[0][here], sums[1][here]
    for j in range(w.size):
        error = old_slack[j] + rate * norms[j]
        out[j], slack[j] = old[j], error
        formed[j] = (w[j] != 0.0) | (outward(old[j], signs[j]) + error + room * dual_norms[j] > limit)


@kernel(fastmath=SUMS)
def pair_sums(view, w, signs, psi, earlier, beta, room, rounding, sums, multiply, scores):
    """Write ``x^j . psi_c / n`` where it is needed, and ``X w_c``; each column is touched once, or not at all.

    ``|x^j.(psi_c - before_c)| <= ||x^j|| ||psi_c - before_c||``: where ``w`` is 0 and an earlier sum, its error and
    this drift keep below ``beta``, the soft threshold of the sum is 0 whatever it is. The earlier sum then stays, with
    the grown error.

    ``w``: shape (classes * d,). ``psi`` (shape (classes * n,)): weights of the samples. ``room``: a sum is also
    computed if a dual point within this distance could take it over ``beta``. ``rounding``: relative, added to each
    drift. ``sums`` (tuple of two shape (classes * d,)): sums and bounds on their errors, written; 0 for computed sums.
    ``scores`` (shape (classes * n,)): ``X w_c``, written if ``multiply``.

    Returns ``touched``; ``features``: those whose sum was computed: all others contribute to neither objective.
    """
    (data, indices, indptr), (out, slack), before = view, sums, earlier.psi
    d = indptr.size - 1
    n = psi.size // (w.size // d)
    touched, count, done, scale = 0, 0, 0, 1.0 / n
    features, formed = np.empty(w.size, dtype=np.int64), np.empty(d, dtype=np.bool_)
    if multiply:
        scores[:] = 0.0
    for c in range(w.size // d):
        weights, then, block = psi[c * n : (c + 1) * n], before[c * n : (c + 1) * n], scores[c * n : (c + 1) * n]
        drift, size = 0.0, 0.0
        for i in range(n):
            drift += (weights[i] - then[i]) * (weights[i] - then[i])
            size += weights[i] * weights[i]
        drift, size = np.sqrt(drift), np.sqrt(size)
        here = slice(c * d, (c + 1) * d)
        rate, limit = drift + rounding * (drift + size), beta * (1.0 - rounding)
        bound_sums(w, signs, earlier, here, rate, room, limit, sums, formed)
        for j in range(d):
            if formed[j]:
                features[count] = c * d + j
                count += 1
                touched += indptr[j + 1] - indptr[j]
        for k in range(done, count):
            f = features[k]
            start, stop = indptr[f - c * d], indptr[f - c * d + 1]
            out[f], slack[f] = scale * column_sum(data, indices, start, stop, n, weights), 0.0
            if multiply:
                add_column(data, indices, start, stop, n, w[f], block)
        done = count
    return touched, features[:count].copy()


@kernel(fastmath=SUMS, leaf=True)
def products(view, n, w, out):
    """Add ``X w_c`` to ``out`` for every class from the columns of non-zero weights; return the values touched."""
    data, indices, indptr = view
    d = indptr.size - 1
    touched = 0
    for f in range(w.size):
        value = w[f]
        if value == 0.0:
            continue
        c = f // d
        start, stop = indptr[f - c * d], indptr[f - c * d + 1]
        add_column(data, indices, start, stop, n, value, out[c * n : (c + 1) * n])
        touched += stop - start
    return touched


@kernel(leaf=True)
def row_squares(view, n, squares, counts):
    """Add the squared values of each sample to ``squares``, and their number to ``counts``, column by column."""
    data, indices, indptr = view
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        if stop - start == n:
            column = data[start:stop]
            for i in range(n):
                x = np.float64(column[i])
                squares[i] += x * x
                counts[i] += 1
        else:
            for p in range(at(start), at(stop)):
                x, i = np.float64(data[p]), at(indices[p])
                squares[i] += x * x
                counts[i] += 1


@kernel(leaf=True)
def feature_terms(w, u, signs, features, norms, alpha, beta):
    """Sum what a certificate needs over the weights of ``features``; ``S = S_beta(u)`` is the soft threshold, of a
    weight with a sign (int8; 0 for any) its one side.

    ``alpha`` is shared out among the factors: ``w^2`` alone leaves the range of floating point where the data is tiny
    or large, ``alpha w^2`` does not. ``norms``, of shape (d,), are those of the columns.

    Returns ``w_sq``, ``w_l1``: ``alpha ||w||^2`` and ``||w||_1``; ``kink``: sum of ``beta |w| - w (u - S) >= 0``; at
    ``alpha = 0``, where ``S`` is 0 but for rounding, ``|w S|`` is added; ``lag_sq``, ``lag_w``: ``||S - alpha w||^2 /
    alpha`` and ``(S - alpha w) . w``, 0 at ``alpha = 0``. The features' shares of the gap (``kernels.problem.share``)
    sum up to ``kink + lag_sq / 2``; ``reach``: sum of ``|w_j| norms_j``; ``active``, ``nonzero``: features with a
    weight or ``S`` that is not zero, and with a weight that is not.
    """
    w_sq, w_l1, kink, lag_sq, lag_w, reach = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    active, nonzero, d = 0, 0, norms.size
    for f in features:
        x, v = u[f], w[f]
        inner = min(max(x, -beta), beta)
        if signs[f] * x < -beta:
            inner = x
        shrunk = x - inner
        if v == 0.0 and shrunk == 0.0:
            continue
        active += 1
        nonzero += v != 0.0
        w_l1 += abs(v)
        reach += abs(v) * norms[f if f < d else f % d]
        kink += kink_share(v, inner, beta)
        if alpha > 0.0:
            pull = alpha * v
            lag = shrunk - pull
            w_sq += pull * v
            lag_sq += lag / alpha * lag
            lag_w += lag * v
        else:
            kink += abs(v * shrunk)
    return w_sq, w_l1, kink, lag_sq, lag_w, reach, active, nonzero


@kernel(fastmath=SUMS, leaf=True)
def column_squares(view, n, classes, weights, out):
    """Write ``sum_i x_ij^2 weights_ci`` to ``out[c d + j]``."""
    data, indices, indptr = view
    d = indptr.size - 1
    for c in range(classes):
        for j in range(d):
            start, stop = indptr[j], indptr[j + 1]
            full = stop - start == n
            total = 0.0
            for p in range(start, stop):
                i = p - start if full else indices[p]
                total += np.float64(data[p]) * data[p] * weights[c * n + i]
            out[c * d + j] = total


def warm_up():
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    a, b = np.ones(2), np.ones(2)
    column_sums(view, 2, np.arange(2), a, 1.0, b)
    signs = np.zeros(2, dtype=np.int8)
    pair_sums(view, a, signs, a, Earlier(a, a, a, a, a), 1.0, 0.0, 1e-12, (b, b.copy()), True, b.copy())
    products(view, 2, a, b)
    row_squares(view, 2, b, np.zeros(2, dtype=np.int64))
    feature_terms(a, b, signs, np.arange(2), a, 1.0, 1.0)
    column_squares(view, 2, 1, a, b)
    samples = Samples(np.array([1, -1], dtype=np.int64), a, 2, 1, 0.5, a, 0.0, 1.0)
    status = np.zeros(2, dtype=np.int8)
    respond(a, samples, status, b, b.copy())
    sample_terms(a, samples, b)
