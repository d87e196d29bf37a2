"""Newton steps for the L1-regularised squared hinge on a working set of features.

The Hessian over the samples inside the margin, with the bias eliminated, makes a small Lasso; its solution is the
direction of a line search. ``columns``, ``slack`` and ``bias`` are as in ``l1svm``; ``point`` is ``w`` (of all
columns), ``slack`` and ``bias``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.l1svm import bias_root, columns_add, evaluate
from screenpath.kernels.problem.sparse import outward
from screenpath.kernels.rows.newton_system import solve_factored


class Problem(NamedTuple):
    """What stays while a problem is solved; ``norms`` and ``rounding`` are as for ``l1svm.evaluate``."""

    columns: tuple
    y: np.ndarray
    lam: float
    sqnorms: np.ndarray  # ``||f_j||^2``
    norms: np.ndarray
    rounding: float
    allowed: np.ndarray  # int8: signs that weights may have, 0 for any


@kernel()
def pick(indices, begin, end, index, marked):
    """Return the offsets of the stored values of marked samples, column by column, and where each column's end.

    ``marked`` has one byte (0 or 1) per sample. Most are not marked: so few bytes stay in the nearest cache, and
    unsigned offsets need no check for negative ones.
    """
    total = 1
    for k in range(index.size):
        total += end[index[k]] - begin[index[k]]
    picked, ends = np.empty(total, dtype=np.int64), np.empty(index.size, dtype=np.int64)
    count = np.uint64(0)
    for k in range(index.size):
        for p in range(np.uint64(begin[index[k]]), np.uint64(end[index[k]])):  # without branches
            picked[count] = p
            count += np.uint64(marked[np.uint32(indices[p])])
        ends[k] = count
    return picked[: ends[-1] if ends.size else 0], ends


@kernel(inner=True)
def by_sample(data, indices, picked, ends, place, count):
    """Return picked values by sample, which ``place`` numbers: values, places of columns, where each sample starts."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for h in range(picked.size):
        starts[place[indices[picked[h]]] + 1] += 1
    for c in range(count):
        starts[c + 1] += starts[c]
    at = starts[:-1].copy()
    values, columns = np.empty(picked.size), np.empty(picked.size, dtype=np.int32)
    h = 0
    for k in range(ends.size):
        while h < ends[k]:
            p = picked[h]
            c = place[indices[p]]
            values[at[c]] = data[p]
            columns[at[c]] = k
            at[c] += 1
            h += 1
    return values, columns, starts


@kernel(fastmath=SUMS)
def sparse_gram(columns, index, slack, y, member, gram, sums):
    """Bring ``gram = F_S F_S'`` and ``sums = F_S y_S`` up to date with the samples S of positive slack.

    Only samples that entered or left ``member`` are added or subtracted (lower triangle). Returns
    ``||y_S||^2``: without weights the size of S.
    """
    data, indices, begin, end = columns
    marked = np.zeros(slack.size, dtype=np.uint8)
    place, who = np.empty(slack.size, dtype=np.int32), np.empty(slack.size, dtype=np.int32)
    size, changed = 0.0, 0
    for i in range(slack.size):
        inside = 1 if slack[i] > 0.0 else 0
        size += inside * y[i] * y[i]
        if inside != member[i]:
            marked[i] = 1
            place[i] = changed
            who[changed] = i
            changed += 1
            member[i] = inside
    if changed == 0:
        return size
    picked, ends = pick(indices, begin, end, index, marked)
    values, owners, starts = by_sample(data, indices, picked, ends, place, changed)
    for c in range(changed):
        i = who[c]
        sign = 1.0 if member[i] == 1 else -1.0
        for p in range(starts[c], starts[c + 1]):
            a = owners[p]
            value = sign * values[p]
            sums[a] += value * y[i]
            row = gram[a]
            for q in range(at(starts[c]), at(p + 1)):
                row[at(owners[q])] += value * values[q]
    return size


@kernel(fastmath=SUMS)
def dense_gram(columns, index, slack, y, member, gram, sums):
    """:func:`sparse_gram` for full columns; the samples that changed are gathered and multiplied at once."""
    data, _, begin, _ = columns
    changed, size = 0, 0.0
    for i in range(slack.size):
        if slack[i] > 0.0:
            size += y[i] * y[i]
        if (slack[i] > 0.0) != (member[i] == 1):
            changed += 1
    if changed == 0:
        return size
    where = np.empty(changed, dtype=np.int64)
    sign = np.empty(changed)
    c = 0
    for i in range(slack.size):
        if (slack[i] > 0.0) != (member[i] == 1):
            where[c] = i
            sign[c] = 1.0 if slack[i] > 0.0 else -1.0
            member[i] = 1 if slack[i] > 0.0 else 0
            c += 1
    block = np.empty((index.size, changed))
    for k in range(index.size):
        for c in range(changed):
            block[k, c] = data[begin[index[k]] + where[c]]
    for k in range(index.size):
        total = 0.0
        for c in range(changed):
            total += sign[c] * block[k, c] * y[where[c]]
        sums[k] += total
        for h in range(k + 1):
            total = 0.0
            for c in range(changed):
                total += sign[c] * block[k, c] * block[h, c]
            gram[k, h] += total
    return size


@kernel(fastmath=SUMS, leaf=True)
def centred(gram, sums, count, sqnorms, ridge, out):
    """Write ``gram - sums sums' / count`` plus a small ridge to the full symmetric ``out`` (the bias eliminated)."""
    for k in range(sums.size):
        for h in range(k + 1):
            value = gram[k, h] - sums[k] * sums[h] / count
            out[k, h] = value
            out[h, k] = value
        out[k, k] = max(out[k, k], 0.0) + ridge * sqnorms[k]


@kernel(fastmath=SUMS)
def lasso(H, rho, lam, u, allowed, tol, limit):
    """Minimise ``1/2 u'Hu - rho.u + lam ||u||_1`` in place for a positive definite ``H``; return the sweeps, up to
    ``limit``. ``allowed`` are the signs of ``u``, 0 for any.

    Coordinate descent finds the support; once signs repeat, the equations on the support are solved by Cholesky and
    the point moves there, at most to the first change of sign. Stops when no coordinate's gradient moved by more than
    ``tol``.
    """
    k = u.size
    gradient = rho.copy()  # rho - H u
    for j in range(k):
        if u[j] != 0.0:
            for i in range(k):
                gradient[i] -= u[j] * H[j, i]
    signs = np.sign(u)
    steady, patience = 0, 1
    for sweep in range(limit):
        worst, same = 0.0, True
        for j in range(k):
            old, h = u[j], H[j, j]
            if h <= 0.0:
                continue
            t = gradient[j] + h * old
            up, down = t > lam and allowed[j] >= 0, t < -lam and allowed[j] <= 0
            new = (t - lam) / h if up else ((t + lam) / h if down else 0.0)
            if new != old:
                change = new - old
                worst = max(worst, abs(change) * h)
                u[j] = new
                for i in range(k):
                    gradient[i] -= change * H[j, i]
            sign = np.sign(new)
            if sign != signs[j]:
                signs[j] = sign
                same = False
        if worst <= tol:
            return sweep + 1
        steady = steady + 1 if same else 0
        if steady < patience:
            continue
        steady = 0
        support = np.flatnonzero(u)
        target = support_solution(H, rho, lam, signs, support)
        if target.size != support.size or support.size == 0:
            patience = 2 * patience
            continue
        # As far as the first sign change: the objective is quadratic up to there and falls all the way.
        step, hit = 1.0, -1
        for s in range(support.size):
            now = u[support[s]]
            if now * target[s] <= 0.0 and now != target[s]:  # equal ones whose product underflows
                reach = now / (now - target[s])
                if reach < step:
                    step, hit = reach, s
        for s in range(support.size):
            j = support[s]
            new = 0.0 if s == hit else u[j] + step * (target[s] - u[j])
            change = new - u[j]
            u[j] = new
            if change != 0.0:
                for i in range(k):
                    gradient[i] -= change * H[j, i]
        if hit >= 0:
            signs[support[hit]] = 0.0
            patience = min(2 * patience, 16)
        else:
            patience = 1
    return limit


@kernel(fastmath=SUMS, inner=True)
def support_solution(H, rho, lam, signs, support):
    """Solve ``H_AA x = rho_A - lam signs_A`` by Cholesky; return an empty array where H_AA is not positive definite."""
    k = support.size
    L = np.empty((k, k))
    for a in range(k):
        i = support[a]
        for b in range(a + 1):
            total = H[i, support[b]]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            if a == b:
                if total <= 1e-13 * H[i, i]:
                    return np.empty(0)
                L[a, a] = np.sqrt(total)
            else:
                L[a, b] = total / L[b, b]
    x = np.empty(k)
    for a in range(k):
        x[a] = rho[support[a]] - lam * signs[support[a]]
    solve_factored(L, x)
    return x


@kernel(fastmath=SUMS, inner=True, leaf=True)
def line_search(slack, change, w, direction, lam, slope):
    """Halve the step until the objective falls by a fixed share of the model's slope; move ``slack`` and ``w`` there.

    ``slack - t change`` belongs to the step ``t``; ``slope`` is the (negative) predicted change per unit step. Returns
    the step taken, 0 if none lowers the objective.
    """
    t = 1.0
    for _ in range(40):
        rise = 0.0
        for i in range(slack.size):
            before = max(slack[i], 0.0)
            after = max(slack[i] - t * change[i], 0.0)
            rise += (after - before) * (after + before)
        penalty = 0.0
        for k in range(w.size):
            penalty += abs(w[k] + t * direction[k]) - abs(w[k])
        if 0.5 * rise + lam * penalty <= 1e-4 * t * slope:
            for i in range(slack.size):
                slack[i] -= t * change[i]
            for k in range(w.size):
                w[k] += t * direction[k]
            return t
        t *= 0.5
    return 0.0


@kernel(fastmath=SUMS, inner=True)
def newton_step(problem, chosen, point, products, gram, sums, inside, options):
    """Take one Newton step on the features ``chosen``; update the ``point``.

    With the Hessian over the samples inside the margin and the bias eliminated, the model of the objective is a Lasso
    in the new weights; its solution is the direction of a line search on the objective itself.

    ``products`` (shape (k,)): ``f_j . max(slack, 0)``. ``gram``, ``sums``, ``inside``: from :func:`dense_gram` or
    :func:`sparse_gram`; ``||y||^2`` over the samples inside the margin. ``options`` (shape (3,)): accuracy of the Lasso
    relative to the violation at its start, its sweeps at most, and the ridge.

    Returns the step taken, 0 if none lowers the objective.
    """
    (columns, y, lam, sqnorms, _, _, allowed), (w, slack, bias), k = problem, point, chosen.size
    hessian = np.empty((k, k))
    centred(gram, sums, inside, sqnorms[chosen], options[2], hessian)
    old, signs = w[chosen], allowed[chosen]
    rho = products.copy()
    worst = 0.0
    for a in range(k):
        if old[a] == 0.0:
            worst = max(worst, outward(products[a], signs[a]) - lam)
            continue
        worst = max(worst, abs(products[a] - lam * np.sign(old[a])))
        for b in range(k):
            rho[b] += old[a] * hessian[a, b]
    new = old.copy()
    lasso(hessian, rho, lam, new, signs, max(options[0] * worst, 1e-13 * lam), int(options[1]))
    direction = new - old
    shift, slope = 0.0, 0.0
    for a in range(k):
        shift -= sums[a] * direction[a] / inside
        slope += lam * (abs(new[a]) - abs(old[a])) - products[a] * direction[a]
    if slope >= 0.0:
        return 0.0
    change = shift * y
    columns_add(columns, chosen, direction, change)
    taken = line_search(slack, change, old, direction, lam, slope)
    if taken > 0.0:
        for a in range(k):
            w[chosen[a]] = old[a]
        bias[0] = bias_root(slack, y, bias[0] + taken * shift)
    return taken


@kernel(leaf=True)
def newton_steps(problem, chosen, point, products, hessian, options, target, best, limit):
    """Take up to ``limit`` Newton steps on the features ``chosen`` until their gap is at most ``target``, or falls no
    more.

    Updates what :func:`newton_step` does, and the products. ``hessian`` is ``gram``, ``sums`` and ``member`` (int8),
    which marks their samples; ``best`` is the smallest gap known.

    Returns ``tried``, ``taken``: steps computed, and those that lowered the objective; ``going``: whether the last one
    did; ``gap``: after the last one; inf before the first.
    """
    (columns, y, lam, _, norms, rounding, allowed), (w, slack, _), (gram, sums, member) = problem, point, hessian
    tried, taken, gap, sparse = 0, 0, np.inf, columns[1].size > 0
    while tried < limit:
        if sparse:
            inside = sparse_gram(columns, chosen, slack, y, member, gram, sums)
        else:
            inside = dense_gram(columns, chosen, slack, y, member, gram, sums)
        if inside == 0.0:
            return tried, taken, False, gap
        tried += 1
        if newton_step(problem, chosen, point, products, gram, sums, inside, options) == 0.0:
            return tried, taken, False, gap
        taken += 1
        gap = evaluate(columns, chosen, y, slack, w, norms, allowed, rounding, lam, False, products)[1]
        if gap <= target or not gap < best:
            break
        best = gap
    return tried, taken, True, gap


def warm_up():
    y, index, norms = np.array([1.0, -1.0, 1.0]), np.arange(2), np.ones(2)
    begin, end = np.array([0, 3]), np.array([3, 6])
    columns = np.array([1.0, -0.5, 2.0, 0.5, 1.0, -1.0]), np.array([0, 1, 2, 0, 1, 2], np.int32), begin, end
    gram, sums, member = np.zeros((2, 2)), np.zeros(2), np.zeros(3, dtype=np.int8)
    problem = Problem(columns, y, 0.1, norms, norms, 1e-14, np.zeros(2, dtype=np.int8))
    point = np.zeros(2), np.ones(3), np.zeros(1)
    options = np.array([1e-2, 10.0, 1e-11])
    newton_steps(problem, index, point, norms.copy(), (gram, sums, member), options, 0.0, np.inf, 1)
