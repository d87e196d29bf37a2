"""L1-regularised squared hinge: bias root, coordinate descent over features, and the pieces of a Newton step.

Columns are stored one after the other: dense as the rows of ``F`` of shape (k, n), sparse as ``data, indices, indptr``
with one slice a column. ``slack_i = 1 - (F'w)_i - y_i b``; the loss is half the sum of its squared positive parts.
"""

import numpy as np

from screenpath.kernels import kernel

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
BIAS_EVERY = 8  # values visited, in samples, between two exact solves of the bias within a sweep


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
        for p in range(indptr[j], indptr[j + 1]):
            mean += data[p] * y[indices[p]]
        mean /= n
        total = (n - (indptr[j + 1] - indptr[j])) * mean * mean
        for p in range(indptr[j], indptr[j + 1]):
            off = data[p] * y[indices[p]] - mean
            total += off * off
        out[j] = np.sqrt(total)


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
        total, size, count = 0.0, 0.0, 0
        for i in range(slack.size):
            r = slack[i] - y[i] * shift
            if r > 0.0:
                total += y[i] * r
                size += r
                count += 1
        if count == 0 or abs(total) <= 1e-16 * size:
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
def evaluate(F, data, indices, indptr, sparse, index, slack, w, norms, rounding, products):
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
            for p in range(indptr[j], indptr[j + 1]):
                product += data[p] * alpha[indices[p]]
        else:
            for i in range(alpha.size):
                product += F[j, i] * alpha[i]
        products[k] = product
        largest = max(largest, abs(product) + reach * norms[j])
        weight += abs(w[j])
    return total, squares, largest, weight


@kernel(fastmath=SUMS)
def columns_add(F, data, indices, indptr, sparse, index, weights, out):
    """Add ``sum_k weights[k] f_index[k]`` to ``out`` (one entry a sample)."""
    for k in range(index.size):
        t = weights[k]
        if t == 0.0:
            continue
        j = index[k]
        if sparse:
            for p in range(indptr[j], indptr[j + 1]):
                out[indices[p]] += t * data[p]
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
def dome_parts(theta, y, null_bias, here, there):
    """Return the vectors and products of the dome between ``here = 1/lambda_1`` and ``there = 1/lambda_2``.

    With ``u = 1 - null_bias y``, the projection of 1 on the complement of ``y``: the centre ``(there u + theta) / 2``
    and its square, the normal ``here u - theta`` and its square, ``||there u - theta||^2``, and the product of the
    latter two vectors.
    """
    middle, normal = np.empty(theta.size), np.empty(theta.size)
    middle_sq, normal_sq, toward_sq, product = 0.0, 0.0, 0.0, 0.0
    for i in range(theta.size):
        one = 1.0 - null_bias * y[i]
        middle[i] = 0.5 * (there * one + theta[i])
        toward = there * one - theta[i]
        normal[i] = here * one - theta[i]
        middle_sq += middle[i] * middle[i]
        normal_sq += normal[i] * normal[i]
        toward_sq += toward * toward
        product += toward * normal[i]
    return middle, middle_sq, normal, normal_sq, toward_sq, product


@kernel(fastmath=SUMS)
def dome_products(null, products, here, there):
    """Return the products of all columns with the centre and the normal of :func:`dome_parts`."""
    center, normal = np.empty(null.size), np.empty(null.size)
    for j in range(null.size):
        center[j] = 0.5 * (there * null[j] + products[j])
        normal[j] = here * null[j] - products[j]
    return center, normal


@kernel()
def dome_keep(vc, va, norms, lengths, radius, offset, extent, rounding):
    """Return the columns whose ``|f_j.theta|`` can reach 1 in a dome: :meth:`geometry.Dome.bounds` in one traversal.

    Parameters
    ----------
    vc, va, norms : ndarray of shape (m,)
        Products with centre and unit normal, norms in the slice of the dome.
    lengths : ndarray of shape (m,)
        Norms of the columns themselves, for the rounding slack ``rounding * (1 + ||f_j|| extent)``.
    radius, offset, extent, rounding : float
    """
    index = np.empty(vc.size, dtype=np.int64)
    kept = 0
    offset = min(max(offset, -radius), radius)
    cap = np.sqrt(max(radius * radius - offset * offset, 0.0))
    for j in range(vc.size):
        goal = 1.0 - rounding * (1.0 + lengths[j] * extent)
        if abs(vc[j]) + radius * norms[j] < goal:  # the ball alone decides, as for most columns
            continue
        largest = -np.inf
        rim = cap * np.sqrt(max(norms[j] * norms[j] - va[j] * va[j], 0.0))
        for sign in (1.0, -1.0):
            if sign * va[j] * radius <= offset * norms[j]:
                value = sign * vc[j] + radius * norms[j]
            else:
                value = sign * (vc[j] + offset * va[j]) + rim
            largest = max(largest, value)
        if largest >= goal:
            index[kept] = j
            kept += 1
    return index[:kept].copy()


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
def descend(F, data, indices, indptr, sparse, y, lam, sqnorms, w, slack, bias, active, shrinking, sweeps):
    """Cyclic coordinate descent with one-dimensional Newton steps, in place (Yuan et al. 2010, LIBLINEAR's method).

    The bias is solved exactly after each sweep, and within it whenever that costs little beside the columns visited.
    A step whose decrease the quadratic bound ``||f_j||^2`` does not guarantee is checked and halved.

    Parameters
    ----------
    F, data, indices, indptr, sparse
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
    violation, room = np.inf, np.inf
    for _ in range(sweeps):
        worst = 0.0
        k = 0
        while k < size:
            j = active[k]
            visited += 1
            gradient, curvature = 0.0, 0.0
            if sparse:
                since += indptr[j + 1] - indptr[j]
                for p in range(indptr[j], indptr[j + 1]):
                    r = slack[indices[p]]
                    value = data[p] if r > 0.0 else 0.0
                    gradient -= value * r
                    curvature += value * value
            else:
                since += n
                for i in range(n):
                    value = F[j, i] if slack[i] > 0.0 else 0.0
                    gradient -= value * slack[i]
                    curvature += value * value
            old = w[j]
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
            curvature = max(curvature, 1e-12 * sqnorms[j])
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
                        for p in range(indptr[j], indptr[j + 1]):
                            slack[indices[p]] -= change * data[p]
                    else:
                        for i in range(n):
                            slack[i] -= change * F[j, i]
                    break
                rise = 0.0  # of the loss, from the weight before the step to the one after it
                if sparse:
                    for p in range(indptr[j], indptr[j + 1]):
                        i = indices[p]
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
            if since >= BIAS_EVERY * n:
                since = 0
                bias[0] = bias_root(slack, y, bias[0])
        bias[0] = bias_root(slack, y, bias[0])
        violation = worst
        room = worst
        if size == 0 or worst == 0.0:
            break
    return visited, violation


@kernel()
def by_sample(data, indices, indptr, index, n):
    """Return some columns of sparse data sample by sample: values, places in ``index``, start offsets."""
    starts = np.zeros(n + 1, dtype=np.int64)
    for k in range(index.size):
        j = index[k]
        for p in range(indptr[j], indptr[j + 1]):
            starts[indices[p] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    values = np.empty(starts[n])
    columns = np.empty(starts[n], dtype=np.int64)
    for k in range(index.size):
        j = index[k]
        for p in range(indptr[j], indptr[j + 1]):
            q = place[indices[p]]
            values[q] = data[p]
            columns[q] = k
            place[indices[p]] = q + 1
    return values, columns, starts


@kernel(fastmath=SUMS)
def sparse_gram(values, columns, starts, slack, y, member, gram, sums):
    """Bring ``gram = F_S F_S'`` and ``sums = F_S y_S`` up to date with the samples S of positive slack.

    Only samples that entered or left ``member`` are added or subtracted (lower triangle; columns of a sample are in
    increasing order). Returns the size of S.
    """
    size = 0
    for i in range(slack.size):
        inside = 1 if slack[i] > 0.0 else 0
        size += inside
        if inside == member[i]:
            continue
        sign = 1.0 if inside == 1 else -1.0
        member[i] = inside
        for p in range(starts[i], starts[i + 1]):
            a = columns[p]
            value = sign * values[p]
            sums[a] += value * y[i]
            for q in range(starts[i], p + 1):
                gram[a, columns[q]] += value * values[q]
    return size


@kernel(fastmath=SUMS)
def dense_gram(F, index, slack, y, member, gram, sums):
    """:func:`sparse_gram` for dense columns; the samples that changed are gathered and multiplied at once."""
    changed, size = 0, 0
    for i in range(slack.size):
        if slack[i] > 0.0:
            size += 1
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
            block[k, c] = F[index[k], where[c]]
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


@kernel(fastmath=SUMS)
def centred(gram, sums, count, sqnorms, ridge, out):
    """Write ``gram - sums sums' / count`` plus a small ridge to the full symmetric ``out`` (the bias eliminated)."""
    for k in range(sums.size):
        for h in range(k + 1):
            value = gram[k, h] - sums[k] * sums[h] / count
            out[k, h] = value
            out[h, k] = value
        out[k, k] = max(out[k, k], 0.0) + ridge * sqnorms[k]


@kernel(fastmath=SUMS)
def lasso(H, rho, lam, u, tol, limit):
    """Minimise ``1/2 u'Hu - rho.u + lam ||u||_1`` in place.

    Coordinate descent finds the support; once signs repeat, the equations on the support are solved by Cholesky and
    the point moves there, at most to the first change of sign.

    Parameters
    ----------
    H : ndarray of shape (k, k)
        Symmetric, positive definite.
    rho, u : ndarray of shape (k,)
    lam, tol : float
        Stop when no coordinate's gradient moved by more than ``tol``.
    limit : int
        Sweeps at most.

    Returns
    -------
    int
        Sweeps.
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
            new = (t - lam) / h if t > lam else ((t + lam) / h if t < -lam else 0.0)
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
            if now * target[s] <= 0.0:
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


@kernel(fastmath=SUMS)
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
        total = rho[support[a]] - lam * signs[support[a]]
        for c in range(a):
            total -= L[a, c] * x[c]
        x[a] = total / L[a, a]
    for a in range(k - 1, -1, -1):
        x[a] /= L[a, a]
        for c in range(a):
            x[c] -= L[a, c] * x[a]
    return x


@kernel(fastmath=SUMS)
def line_search(slack, change, w, direction, lam, slope):
    """Halve the step until the objective falls by a fixed share of the model's slope; move ``slack`` and ``w`` there.

    Parameters
    ----------
    slack, change : ndarray of shape (n,)
        ``slack - t change`` belongs to the step ``t``.
    w, direction : ndarray of shape (k,)
    lam, slope : float
        ``slope`` is the (negative) predicted change per unit step.

    Returns
    -------
    float
        The step taken, 0 where none lowers the objective.
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


@kernel(fastmath=SUMS)
def newton_step(
    F, data, indices, indptr, sparse, chosen, y, lam, sqnorms, w, slack, bias, products, gram, sums, inside, options
):
    """Take one Newton step on the features ``chosen``, in place.

    With the Hessian over the samples inside the margin and the bias eliminated, the model of the objective is a Lasso
    in the new weights; its solution is the direction of a line search on the objective itself.

    Parameters
    ----------
    F, data, indices, indptr, sparse
        Columns.
    chosen : ndarray of int64 of shape (k,)
    w, slack, bias
        Weights of all columns, slack of all samples, bias (shape (1,)); updated.
    products : ndarray of shape (k,)
        ``f_j . max(slack, 0)``.
    gram, sums, inside
        From :func:`dense_gram` or :func:`sparse_gram`; number of samples inside the margin.
    options : ndarray of shape (3,)
        Accuracy of the Lasso relative to the violation at its start, its sweeps at most, and the ridge.

    Returns
    -------
    float
        The step taken, 0 where none lowers the objective.
    """
    k = chosen.size
    hessian = np.empty((k, k))
    centred(gram, sums, inside, sqnorms[chosen], options[2], hessian)
    old = w[chosen]
    rho = products.copy()
    worst = 0.0
    for a in range(k):
        if old[a] == 0.0:
            worst = max(worst, abs(products[a]) - lam)
            continue
        worst = max(worst, abs(products[a] - lam * np.sign(old[a])))
        for b in range(k):
            rho[b] += old[a] * hessian[a, b]
    new = old.copy()
    lasso(hessian, rho, lam, new, max(options[0] * worst, 1e-13 * lam), int(options[1]))
    direction = new - old
    shift, slope = 0.0, 0.0
    for a in range(k):
        shift -= sums[a] * direction[a] / inside
        slope += lam * (abs(new[a]) - abs(old[a])) - products[a] * direction[a]
    if slope >= 0.0:
        return 0.0
    change = shift * y
    columns_add(F, data, indices, indptr, sparse, chosen, direction, change)
    taken = line_search(slack, change, old, direction, lam, slope)
    if taken > 0.0:
        for a in range(k):
            w[chosen[a]] = old[a]
        bias[0] = bias_root(slack, y, bias[0] + taken * shift)
    return taken
