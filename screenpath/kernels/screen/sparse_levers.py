r"""Bounds on the best intercepts of several classes, and what they decide: levers of dual variables near their kinks.

The gap ``G`` of any pair ``(w, theta)``, the flows of ``theta`` being in balance, bounds more than distances. With the
optimum ``(w*, b*)``, its slacks ``t*_k = 1 - m*_k``, weights ``s`` and ``F(t, x) = l(t) - x t + gamma/2 x^2 >= 0``,

    sum_k s_k F(t*_k, theta_k) <= N,   N = n (G - alpha/4 ||w - w_theta||^2)

(``P(w, b) >= P* + alpha/2 ||w - w*||^2``, and ``P* - D(theta)`` is the sum over n and at least ``alpha/2 ||w_theta -
w*||^2``: of balanced flows ``b*`` drops out). ``F`` is convex in ``a = t - gamma theta`` with the conjugate
``gamma/2 y^2`` for ``-theta <= y <= 1 - theta``. So for any ``v >= 0`` and all ``lam > 0`` with ``v_k <= lam s_k
room_k``, ``room`` being ``1 - theta`` for a bound from above and ``theta`` for one from below,

    sum_k v_k (t*_k - gamma theta_k)  <=  lam N + gamma/(2 lam) sum_k v_k^2 / s_k.

Dual variables between the classes ``p`` and ``q`` have ``1 - t*_k = +-(x_k.(w*_p - w*_q) + b*_p - b*_q)``: with
``v = s room / sum(s room)``, ``mu = sum v_k x_k`` and any fixed ``c`` that bounds

    D_pq = c.(w*_p - w*_q) + b*_p - b*_q  <=  sum_k v_k (+-)(1 - gamma theta_k) - (mu - c).(w_p - w_q)
                                              + r ||mu - c|| sqrt(2) + the bound above,

for *every* optimal ``b*``, in the ball of radius ``r`` around ``w``. A row ``x`` of the class ``p`` then has the margin
``(x - c).(w*_p - w*_q) + D_pq``. The best ``c`` is near the ``mu`` of both ``D_pq`` and ``D_qp``; with the mean
of all rows for every two classes, ``D_pq <= D_pk + D_kq`` where these have nothing between them.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.sparse import column_sum
from screenpath.kernels.problem.sparse_samples import slack_of


@kernel
def between_classes(theta, samples, status, off):
    """Return the surviving dual variables between their ends, those of each two classes together.

    Also returns where the flows from class ``a`` to class ``b`` begin, at ``a classes + b`` of an array one longer.
    """
    labels, weights, n, classes, _ = samples
    first = np.zeros(classes * classes + 1, dtype=np.int64)
    for write in range(2):
        if write == 0:
            listed, filled = np.empty(0, dtype=np.int64), first[1:]
        else:
            for k in range(classes * classes):
                first[k + 1] += first[k]
            listed, filled = np.empty(first[classes * classes], dtype=np.int64), first[:-1].copy()
        for c in range(classes):
            for i in range(n):
                k = c * n + i
                if status[k] != 0 or weights[i] == 0.0 or c == labels[i]:
                    continue
                small = off / np.sqrt(weights[i])
                if small < theta[k] < 1.0 - small:
                    if write == 1:
                        listed[filled[labels[i] * classes + c]] = k
                    filled[labels[i] * classes + c] += 1
    return listed, first


@kernel
def single_levers(scores, theta, samples, status, budget, off, rows):
    """Write, for each two classes, the dual variable whose lever promises most; -1 for none.

    ``rows[p, q]`` is for the bound of ``D_pq`` from above.
    """
    labels, weights, n, classes, gamma = samples
    rows[:, :] = -1
    least = np.full((classes, classes), np.inf)
    for i in range(n):
        own, weight = labels[i], weights[i]
        if weight == 0.0:
            continue
        small = off / np.sqrt(weight)
        for c in range(classes):
            k = c * n + i
            if c == own or status[k] != 0:
                continue
            apart = abs(slack_of(scores, own, n, classes, i, k) - gamma * theta[k])
            for p, q, room in ((own, c, theta[k] - small), (c, own, 1.0 - theta[k] - small)):
                if room > 0.0 and apart + budget / (weight * room) < least[p, q]:
                    least[p, q], rows[p, q] = apart + budget / (weight * room), k


@kernel
def lever(p, q, listed, rows, samples, scores, theta, budget, off, row_norm, mean):
    """Return what the dual variables ``listed`` say about ``D_pq`` from above.

    ``off`` is the distance of ``theta`` from a point whose flows are in balance; ``mean``, shape (d,), receives ``mu``.

    Returns
    -------
    known, rest : float
        ``sum v (+-)(1 - gamma theta)``; the bound of ``sum v (t* - gamma theta)``. Infinite if there is no room.
    apart, size : float
        ``sum v (score_p - score_q)`` and ``sum v ||x||``.
    """
    (data, indices, indptr), (labels, weights, n, _, gamma) = rows, samples
    d, kappa = mean.size, 0.0
    mean[:] = 0.0
    for k in listed:
        small = off / np.sqrt(weights[k % n])
        kappa += weights[k % n] * max((theta[k] if labels[k % n] == p else 1.0 - theta[k]) - small, 0.0)
    if not kappa > 0.0:
        return np.inf, np.inf, 0.0, 0.0
    known, apart, size, square, least = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in listed:
        i = k % n
        sign, small = 1.0 if labels[i] == p else -1.0, off / np.sqrt(weights[i])
        room = max((theta[k] if sign > 0.0 else 1.0 - theta[k]) - small, 0.0)
        v = weights[i] * room / kappa
        start, stop = indptr[i], indptr[i + 1]
        full = stop - start == d
        values, places = data[start:stop], indices[start:stop]
        for r in range(values.size):
            mean[at(r) if full else at(places[r])] += v * values[r]
        known += v * (sign * (1.0 - gamma * theta[k]))
        apart += v * (scores[p * n + i] - scores[q * n + i])
        square += v * room / kappa
        size += v * row_norm[i]
        least += v * small
    lam, quarter = 1.0 / kappa, 0.5 * gamma * square
    if budget > 0.0:
        lam = max(lam, np.sqrt(quarter / budget))
    rest = (lam * budget + quarter / lam) * (1.0 + 16.0 * (n + 16.0) * UNIT) + gamma * least
    return known, rest, apart, size


@kernel
def distance(p, q, first, second, d, keep):
    """Return the distance of two points of the weights' space, in the features that both classes keep."""
    total = 0.0
    for j in range(d):
        square = (first[j] - second[j]) * (first[j] - second[j])
        total += (square if keep[p * d + j] != 0 else 0.0) + (square if keep[q * d + j] != 0 else 0.0)
    return np.sqrt(total)


@kernel
def by_class(samples):
    """Return the samples of each class, one class after the other, and where each begins."""
    labels, _, n, classes, _ = samples
    first, listed = np.zeros(classes + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i in range(n):
        first[labels[i] + 1] += 1
    for c in range(classes):
        first[c + 1] += first[c]
    place = first[:-1].copy()
    for i in range(n):
        listed[place[labels[i]]] = i
        place[labels[i]] += 1
    return listed, first


@kernel
def decide_pair(p, q, here, rows, samples, scores, status, middle, ahead, back, far, way, scale, radius, extent,
                level, row_part, row_sq, row_norm, slacks, found):  # fmt: skip
    """Fix dual variables of the samples ``here``, of class ``p``, against class ``q``; return how many.

    Parameters
    ----------
    middle : float
        ``score_p - score_q`` of the point that rows are seen from.
    ahead, back : float
        Bounds of ``D_pq`` and ``D_qp``.
    far : tuple of three float
        Parts of a row's squared distance in addition to ``row_part`` and ``-2 x.way``, and the size rounding refers to.
    way : ndarray of shape (d,)
        From the mean of all rows to that point, times how many of both classes' weights are left; empty for none.
    """
    (data, indices, indptr), (_, _, n, _, gamma) = rows, samples
    rounding, lost, floor = slacks[0], slacks[2], slacks[4]
    unsure, count = rounding + 16.0 * (n + 16.0) * UNIT, 0
    base, beside, size = far
    for i in here:
        k = q * n + i
        if status[k] != 0:
            continue
        square = row_part[p * n + i] + row_part[k] + base
        if way.size > 0:
            start, stop = indptr[i], indptr[i + 1]
            square += beside - 2.0 * column_sum(data, indices, start, stop, way.size, way)
        reach = radius * np.sqrt(max(square, 0.0) + 4.0 * (lost * (row_sq[i] + size) + floor))
        margin = scale * ((scores[p * n + i] - scores[k]) - middle)
        reach += unsure * (4.0 * row_norm[i] * extent + 4.0 + 4.0 * scale * level + abs(margin))
        above, below = margin - reach - back > 1.0, margin + reach + ahead < 1.0 - gamma
        if above or below:
            status[k] = -1 if above else 1
            found[count] = k
            count += 1
    return count


@kernel
def decide_levels(rows, samples, scores, theta, status, keep, twice, scale, radius, budget, off, extent, level,
                  row_part, row_sq, row_norm, slacks, found):  # fmt: skip
    """ISS with a free intercept a class: fix dual variables over the ball ``(scale w, radius)`` and what levers prove;
    list them in ``found`` and return how many.
    """  # fmt: skip
    _, weights, n, classes, _ = samples
    d, count, typical, point, budget = twice.size, 0, 0.0, 0.0, max(budget, 0.0)
    unsure, center = slacks[0] + 16.0 * (n + 16.0) * UNIT, 0.5 * twice
    means, base, most = np.zeros(classes), np.zeros(classes), np.zeros((classes, classes))
    for i in range(n):
        typical += weights[i] * row_norm[i] / n
    for j in range(d):
        point += center[j] * center[j]
    for c in range(classes):
        for i in range(n):
            means[c] += weights[i] * scores[c * n + i]
        means[c] /= n
        for j in range(d):
            base[c] += center[j] * center[j] if keep[c * d + j] != 0 else 0.0
    sizes = 4.0 + 4.0 * (scale * level + extent * typical)
    listed, first = between_classes(theta, samples, status, off)
    those, begin = by_class(samples)
    alone, none = np.empty((classes, classes), dtype=np.int64), np.empty(0)
    single_levers(scores, theta, samples, status, budget, off, alone)
    one, two, way = np.empty(d), np.empty(d), np.empty(d)
    for p in range(classes):
        for q in range(p):
            ahead, back = p * classes + q, q * classes + p
            both = np.concatenate((listed[first[ahead] : first[ahead + 1]], listed[first[back] : first[back + 1]]))
            middle = means[p] - means[q]
            for a, b, mean, sign in ((p, q, one, 1.0), (q, p, two, -1.0)):
                known, rest, apart, size = lever(a, b, alone[a, b : b + 1] if alone[a, b] >= 0 else both[:0], rows,
                                                 samples, scores, theta, budget, off, row_norm, mean)  # fmt: skip
                reach = radius * (distance(a, b, mean, center, d, keep) + unsure * 2.0 * (size + np.sqrt(point)))
                most[a, b] = (
                    known + rest - scale * (apart - sign * middle) + reach + unsure * (2.0 * extent * size + sizes)
                )
            known1, rest1, apart1, size1 = lever(p, q, both, rows, samples, scores, theta, budget, off, row_norm, one)
            known2, rest2, apart2, size2 = lever(q, p, both, rows, samples, scores, theta, budget, off, row_norm, two)
            if not (known1 < np.inf and known2 < np.inf):
                continue
            error = unsure * (4.0 * extent * (size1 + size2) + 2.0 * sizes)
            lost = unsure * 2.0 * (size1 + size2 + np.sqrt(point))
            reach = radius * (distance(p, q, one, center, d, keep) + lost)
            most[p, q] = min(most[p, q], known1 + rest1 - scale * (apart1 - middle) + reach + error)
            reach = radius * (distance(q, p, two, center, d, keep) + lost)
            most[q, p] = min(most[q, p], known2 + rest2 - scale * (apart2 + middle) + reach + error)
            # From half-way between the two means: no score of a row has to bridge more than that.
            reach = 0.5 * radius * (distance(p, q, one, two, d, keep) + lost)
            middle, half = 0.5 * (apart1 - apart2), 0.5 * (apart1 + apart2)
            ahead1, back1 = known1 + rest1 - scale * half + reach + error, known2 + rest2 - scale * half + reach + error
            beside = 0.0
            for j in range(d):
                step = 0.5 * (one[j] + two[j]) - center[j]
                left = (1.0 if keep[p * d + j] != 0 else 0.0) + (1.0 if keep[q * d + j] != 0 else 0.0)
                way[j] = step * left
                beside += (2.0 * center[j] + step) * way[j]
            far = base[p] + base[q], beside, 4.0 * (size1 + size2 + np.sqrt(point)) ** 2
            for a, b, up, down, sign in ((p, q, ahead1, back1, 1.0), (q, p, back1, ahead1, -1.0)):
                count += decide_pair(a, b, those[begin[a] : begin[a + 1]], rows, samples, scores, status, sign * middle,
                                     up, down, far, way, scale, radius, extent, level, row_part, row_sq,
                                     row_norm, slacks, found[count:])  # fmt: skip
    for k in range(classes):
        for p in range(classes):
            for q in range(classes):
                if p != q and p != k and q != k:
                    through = most[p, k] + most[k, q]
                    most[p, q] = min(most[p, q], through + 4.0 * UNIT * (abs(most[p, k]) + abs(most[k, q])))
    for p in range(classes):
        for q in range(classes):
            if p != q:
                far = base[p] + base[q], 0.0, 0.0
                count += decide_pair(p, q, those[begin[p] : begin[p + 1]], rows, samples, scores, status,
                                     means[p] - means[q], most[p, q], most[q, p], far, none, scale, radius,
                                     extent, level, row_part, row_sq, row_norm, slacks, found[count:])  # fmt: skip
    return count
