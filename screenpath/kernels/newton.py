"""Semismooth Newton on the proximal dual (augmented Lagrangian) of a reduced box problem.

One proximal round fixes ``prev`` and ``sigma`` and minimises over ``w`` the smooth, strongly convex

    psi(w) = 1/2 ||w||^2 - base.w + sum_i envelope_i,   gradient  w - v(w),  v(w) = base + sum_i alpha_i(w) g_i,
    alpha_i(w) = clip(prev_i + sigma t_i, lo_i, hi_i),  t_i = c_i - g_i.w

by Newton's method: generalised Hessian ``I + sigma G_J'G_J``, ``J`` the rows not clipped, followed by a line search on
the piecewise linear directional derivative. Every iterate is a pair (w, alpha(w)) whose gap is known without
cancellation: ``1/2 ||w - v||^2 + sum_i (phi_i(t_i) - alpha_i t_i)``, both parts nonnegative. The proximal round ends
when the first part is small beside the second.

Newton iterations touch a working set of rows near their kink; the rest sits at the end its margin points to. When the
working set is solved, one pass over all rows finds those on the wrong side, and the gap of the whole reduced problem.
"""

import numpy as np

from screenpath.kernels import kernel

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
DIRECT = 600  # largest order of a factorised system; conjugate gradients beyond


@kernel(fastmath=SUMS)
def _inner(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel(fastmath=SUMS)
def _products(X, data, indices, indptr, sparse, w, out):
    """Write ``G w`` to ``out``."""
    if sparse:
        for i in range(out.size):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                total += data[p] * w[indices[p]]
            out[i] = total
    else:
        for i in range(out.size):
            total = 0.0
            for j in range(w.size):
                total += X[i, j] * w[j]
            out[i] = total


@kernel(fastmath=SUMS)
def _add(X, data, indices, indptr, sparse, i, step, v):
    """Add ``step * g_i`` to ``v``."""
    if sparse:
        for p in range(indptr[i], indptr[i + 1]):
            v[indices[p]] += step * data[p]
    else:
        for j in range(v.size):
            v[j] += step * X[i, j]


@kernel(fastmath=SUMS)
def _add_outer(X, data, indices, indptr, sparse, i, sign, H):
    """Add ``sign * g_i g_i'`` to the lower triangle of ``H``."""
    if sparse:
        for p in range(indptr[i], indptr[i + 1]):
            scaled = sign * data[p]
            row = indices[p]
            for q in range(indptr[i], indptr[i + 1]):
                if indices[q] <= row:
                    H[row, indices[q]] += scaled * data[q]
    else:
        for j in range(H.shape[0]):
            scaled = sign * X[i, j]
            for k in range(j + 1):
                H[j, k] += scaled * X[i, k]


@kernel(fastmath=SUMS)
def _factorise(A):
    """Overwrite the lower triangle of ``A`` by its Cholesky factor, row by row; pivots are kept positive.

    Written here rather than taken from LAPACK: as fast at these sizes, and a threaded library never joins in. Four
    entries of a row are formed at once, so that each value read serves four products.
    """
    n = A.shape[0]
    for i in range(n):
        ai = A[i]
        j = 0
        while j + 4 <= i:
            a0, a1, a2, a3 = A[j], A[j + 1], A[j + 2], A[j + 3]
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                x = ai[k]
                t0 += x * a0[k]
                t1 += x * a1[k]
                t2 += x * a2[k]
                t3 += x * a3[k]
            x0 = (ai[j] - t0) / a0[j]
            x1 = (ai[j + 1] - t1 - x0 * a1[j]) / a1[j + 1]
            x2 = (ai[j + 2] - t2 - x0 * a2[j] - x1 * a2[j + 1]) / a2[j + 2]
            x3 = (ai[j + 3] - t3 - x0 * a3[j] - x1 * a3[j + 1] - x2 * a3[j + 2]) / a3[j + 3]
            ai[j], ai[j + 1], ai[j + 2], ai[j + 3] = x0, x1, x2, x3
            j += 4
        for c in range(j, i):
            ai[c] = (ai[c] - _inner(ai[:c], A[c, :c])) / A[c, c]
        floor = 1e-14 * ai[i]
        ai[i] = np.sqrt(max(ai[i] - _inner(ai[:i], ai[:i]), floor))


@kernel(fastmath=SUMS)
def _solve_factored(L, x):
    """Solve ``L L' x = b`` in place."""
    n = L.shape[0]
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]


@kernel(fastmath=SUMS)
def _hessian_direction(H, sigma, scratch, p):
    """Turn ``p = -gradient`` into the Newton direction with the kept ``H = G_J'G_J``."""
    d = p.size
    peak = 0.0
    for j in range(d):
        peak = max(peak, H[j, j])
    for j in range(d):
        for k in range(j + 1):
            scratch[j, k] = sigma * H[j, k]
        scratch[j, j] += 1.0 + 1e-14 * sigma * peak
    _factorise(scratch)
    _solve_factored(scratch, p)


@kernel(fastmath=SUMS)
def _woodbury_direction(X, data, indices, indptr, sparse, J, sigma, p):
    """Turn ``p = -gradient`` into the Newton direction through the |J| x |J| Gram matrix."""
    n, d = J.size, p.size
    right = np.empty(n)
    K = np.empty((n, n))
    if sparse:
        row = np.zeros(d)
        for r in range(n):
            i = J[r]
            _add(X, data, indices, indptr, sparse, i, 1.0, row)
            for s in range(r + 1):
                total = 0.0
                for q in range(indptr[J[s]], indptr[J[s] + 1]):
                    total += data[q] * row[indices[q]]
                K[r, s] = total
            total = 0.0
            for q in range(indptr[i], indptr[i + 1]):
                row[indices[q]] = 0.0
                total += data[q] * p[indices[q]]
            right[r] = total
    else:
        GJ = np.empty((n, d))
        for r in range(n):
            for j in range(d):
                GJ[r, j] = X[J[r], j]
        for r in range(n):
            _products(GJ[: r + 1], data, indices, indptr, False, GJ[r], K[r, : r + 1])
        _products(GJ, data, indices, indptr, False, p, right)
    peak = 0.0
    for r in range(n):
        peak = max(peak, K[r, r])
    for r in range(n):
        K[r, r] += 1.0 / sigma + 1e-14 * peak
    _factorise(K)
    _solve_factored(K, right)
    for r in range(n):
        _add(X, data, indices, indptr, sparse, J[r], -right[r], p)


@kernel(fastmath=SUMS)
def _conjugate_direction(X, data, indices, indptr, sparse, J, sigma, tolerance, limit, p):
    """Turn ``p = -gradient`` into an approximate Newton direction by conjugate gradients; return the products formed."""
    residual = p.copy()
    search = p.copy()
    image = np.empty(p.size)
    p[:] = 0.0
    square = _inner(residual, residual)
    target = tolerance * tolerance * square
    formed = 0
    while formed < limit and square > target:
        image[:] = search
        for r in range(J.size):  # one traversal: dot, then scatter, row by row
            i = J[r]
            total = 0.0
            if sparse:
                for q in range(indptr[i], indptr[i + 1]):
                    total += data[q] * search[indices[q]]
            else:
                for j in range(p.size):
                    total += X[i, j] * search[j]
            _add(X, data, indices, indptr, sparse, i, sigma * total, image)
        formed += 1
        length = square / _inner(search, image)
        for j in range(p.size):
            p[j] += length * search[j]
            residual[j] -= length * image[j]
        fresh = _inner(residual, residual)
        turn = fresh / square
        square = fresh
        for j in range(p.size):
            search[j] = residual[j] + turn * search[j]
    return formed


@kernel(fastmath=SUMS)
def _slope(prev, sigma, t, u, lo, hi, s, linear, quadratic):
    """First and second derivative of psi along the direction at step ``s``; ``u = G p``."""
    first, second = 0.0, 0.0
    for r in range(t.size):
        z = prev[r] + sigma * (t[r] - s * u[r])
        a = min(max(z, lo[r]), hi[r])
        first -= a * u[r]
        second += u[r] * u[r] if a == z else 0.0
    return first + linear + s * quadratic, sigma * second + quadratic


@kernel(fastmath=SUMS)
def _line_search(prev, sigma, t, u, lo, hi, slope0, linear, quadratic):
    """Step length at which the directional derivative, increasing and piecewise linear, is nearly 0.

    A full step is kept where it brings the derivative below a quarter of its start. Otherwise Newton steps on the
    derivative, safeguarded by its bracket; none of them touches a row.
    """
    low, high = 0.0, np.inf
    s = 1.0
    for trial in range(30):
        first, second = _slope(prev, sigma, t, u, lo, hi, s, linear, quadratic)
        if abs(first) <= (0.25 if trial == 0 else 0.05) * abs(slope0):
            break
        if first > 0.0:
            high = s
        else:
            low = s
        s -= first / second
        if not low < s < high:
            s = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return s


@kernel(fastmath=SUMS)
def _clip(prev, sigma, t, lo, hi, alpha, inside):
    """Bring ``alpha`` to ``t``; mark the rows not clipped; return ``sum_i phi_i(t_i)`` and ``sum_i alpha_i t_i``."""
    loss, linear = 0.0, 0.0
    for r in range(t.size):
        z = prev[r] + sigma * t[r]
        a = min(max(z, lo[r]), hi[r])
        alpha[r] = a
        inside[r] = lo[r] < a < hi[r]
        loss += max(lo[r] * t[r], hi[r] * t[r])
        linear += a * t[r]
    return loss, linear


@kernel(fastmath=SUMS)
def _direction(X, data, indices, indptr, sparse, inside, members, H, scratch, J, sigma, tolerance, p):
    """Turn ``p = -gradient`` into the Newton direction by the cheapest of three ways; return rows touched."""
    d = p.size
    size, moved = 0, 0
    for r in range(inside.size):
        if inside[r]:
            J[size] = r
            size += 1
        moved += inside[r] != members[r]
    if size == 0:
        return 0
    if size <= DIRECT and (2 * size < d):
        _woodbury_direction(X, data, indices, indptr, sparse, J[:size], sigma, p)
        return size
    if d > DIRECT:
        return size * _conjugate_direction(X, data, indices, indptr, sparse, J[:size], sigma, tolerance, 300, p)
    if moved >= size:  # forming H anew is cheaper than letting rows enter and leave
        H[:] = 0.0
        members[:] = False
        moved = size
    for r in range(inside.size):
        if inside[r] != members[r]:
            _add_outer(X, data, indices, indptr, sparse, r, 1.0 if inside[r] else -1.0, H)
            members[r] = inside[r]
    _hessian_direction(H, sigma, scratch, p)
    return moved


@kernel(fastmath=SUMS)
def _solve_near(
    X, data, indices, indptr, sparse, c, lo, hi, prev, alpha, t, base, offset, w, v, tol, sigma, limit, par
):
    """Minimise the problem of the working set; all arrays but the rows are compact copies.

    ``prev``, ``alpha``, ``t``, ``w`` and ``v`` hold the start and are overwritten. Returns iterations, rows touched,
    the last sigma, and the gap.
    """
    n, d = t.size, w.size
    order = d if d <= DIRECT else 0
    H, scratch = np.zeros((order, order)), np.zeros((order, order))
    members, inside = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    J = np.empty(n, dtype=np.int64)
    old, u, p = np.empty(n), np.empty(n), np.empty(d)
    iterations, inner, touched, short, cautious = 0, 0, 0, 0, False
    while True:
        old[:] = alpha
        loss, linear = _clip(prev, sigma, t, lo, hi, alpha, inside)
        for r in range(n):
            if alpha[r] != old[r]:
                _add(X, data, indices, indptr, sparse, r, alpha[r] - old[r], v)
                touched += 1
        half = 0.0
        for j in range(d):
            p[j] = v[j] - w[j]
            half += 0.5 * p[j] * p[j]
        rest = loss - linear
        primal = 0.5 * _inner(w, w) - _inner(base, w) + loss + offset
        target = tol * abs(primal)
        if half + rest <= target or iterations >= limit:
            break
        if inner > 0 and (half <= par[1] * rest or half <= 1e-30 * primal):
            prev[:] = alpha
            growth = par[2] if inner <= 2 else (par[3] if inner <= 5 else par[4])
            sigma *= min(growth, par[3]) if cautious else growth
            short = 0
            inner = 0
            continue
        slope0 = -2.0 * half
        touched += _direction(X, data, indices, indptr, sparse, inside, members, H, scratch, J, sigma, 0.1, p)
        _products(X, data, indices, indptr, sparse, p, u)
        touched += n
        slope0 = 0.0
        for j in range(d):
            slope0 += (w[j] - v[j]) * p[j]
        quadratic = _inner(p, p)
        step = _line_search(prev, sigma, t, u, lo, hi, slope0, _inner(w, p) - _inner(base, p), quadratic)
        for j in range(d):
            w[j] += step * p[j]
        for r in range(n):
            t[r] -= step * u[r]
        iterations += 1
        inner += 1
        short = short + 1 if step < par[10] else 0
        if short >= 2:
            # The kinks are too sharp for where w stands: smooth them. This restarts the proximal round.
            sigma *= par[11]
            short = 0
            cautious = True
    return iterations, touched, sigma, half + rest


@kernel(fastmath=SUMS)
def _border(size, want):
    """Value that about ``want`` of the entries do not exceed; within a factor of 1.5, which is all it takes."""
    border = 0.0
    for r in range(size.size):
        border = max(border, size[r])
    for _ in range(100):
        count = 0
        for r in range(size.size):
            count += size[r] <= border
        if count <= want:
            break
        border /= 1.5
    return border


@kernel()
def _gather(X, data, indices, indptr, sparse, index):
    """Return contiguous copies of the rows ``index`` in the storage they come in."""
    if not sparse:
        out = np.empty((index.size, X.shape[1]))
        for r in range(index.size):
            for j in range(X.shape[1]):
                out[r, j] = X[index[r], j]
        return out, data, indices, indptr
    starts = np.empty(index.size + 1, dtype=np.int64)
    starts[0] = 0
    for r in range(index.size):
        starts[r + 1] = starts[r] + indptr[index[r] + 1] - indptr[index[r]]
    values, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=indices.dtype)
    for r in range(index.size):
        begin = indptr[index[r]]
        for q in range(starts[r + 1] - starts[r]):
            values[starts[r] + q] = data[begin + q]
            columns[starts[r] + q] = indices[begin + q]
    return X, values, columns, starts


@kernel(fastmath=SUMS)
def newton_box(
    X, data, indices, indptr, sparse, c, lo, hi, norms, base, offset, alpha, w, margins, tol, limit, screen, rounding,
    gap_rounding, par,
):  # fmt: skip
    k, d = c.size, w.size
    alive = np.arange(k)
    t, fresh_t = c - margins, np.empty(k)
    v = base.copy()
    touched = 0
    for i in range(k):
        if alpha[i] != 0.0:
            _add(X, data, indices, indptr, sparse, i, alpha[i], v)
            touched += 1
    mean_sq = 0.0
    for i in range(k):
        mean_sq += norms[i] * norms[i]
    mean_sq /= max(k, 1)
    sigma = -1.0
    iterations, screened, checks = 0, 0, 0
    drift, last_gap, idle = np.inf, np.inf, False
    gap, primal = np.inf, 0.0
    out_base, out_offset = base.copy(), offset
    while True:
        # gap of the whole reduced problem at (w, alpha), margins of all alive rows known
        half, loss, linear = 0.0, 0.0, 0.0
        for j in range(d):
            half += 0.5 * (w[j] - v[j]) ** 2
        for r in range(alive.size):
            i = alive[r]
            loss += max(lo[i] * t[i], hi[i] * t[i])
            linear += alpha[i] * t[i]
        gap = half + loss - linear
        primal = 0.5 * _inner(w, w) - _inner(out_base, w) + loss + out_offset
        if gap <= tol * abs(primal) or iterations >= limit:
            break
        stalled = gap > 0.5 * last_gap
        if stalled and idle:
            break  # all rows were near and nothing moved: the accuracy of the arithmetic is reached
        last_gap = gap
        # ---- screening with the gap ball around w (radius of pair ball + shift)
        if screen:
            error = gap_rounding * (_inner(w, w) + _inner(v, v) + loss + abs(linear))
            radius = np.sqrt(max(gap - 0.5 * half, 0.0) + error) + 0.5 * np.sqrt(2.0 * half)
            slack = rounding * (np.sqrt(_inner(w, w)) + radius)
            kept = 0
            survivors = np.empty(alive.size, dtype=np.int64)
            for r in range(alive.size):
                i = alive[r]
                reach = (radius + slack) * norms[i] + rounding * abs(c[i])
                if abs(t[i]) <= reach:
                    survivors[kept] = i
                    kept += 1
                    continue
                value = hi[i] if t[i] > 0.0 else lo[i]
                if value != alpha[i]:
                    _add(X, data, indices, indptr, sparse, i, value - alpha[i], v)
                    touched += 1
                    alpha[i] = value
                if value != 0.0:
                    _add(X, data, indices, indptr, sparse, i, value, out_base)
                    touched += 1
                    out_offset += value * c[i]
            screened += alive.size - kept
            alive = survivors[:kept].copy()
        # ---- working set
        m = alive.size
        size = np.empty(m)
        for r in range(m):
            size[r] = abs(t[alive[r]])
        if stalled:
            border = np.inf
        elif drift < np.inf:
            border = par[7] * drift
        else:
            want = int(max(par[5] * d, par[6] * m, 64))
            border = _border(size, want) if want < m and gap < 0.1 * abs(primal) else np.inf
        near = np.empty(m, dtype=np.int64)
        count = 0
        near_base, near_offset = v.copy(), out_offset
        for r in range(m):
            i = alive[r]
            value = hi[i] if t[i] > 0.0 else lo[i]
            if size[r] <= border or (lo[i] < alpha[i] < hi[i]):
                near[count] = i
                count += 1
                if alpha[i] != 0.0:
                    _add(X, data, indices, indptr, sparse, i, -alpha[i], near_base)
                continue
            if value != alpha[i]:
                _add(X, data, indices, indptr, sparse, i, value - alpha[i], near_base)
                _add(X, data, indices, indptr, sparse, i, value - alpha[i], v)
                alpha[i] = value
                touched += 1
            near_offset += value * c[i]
        near = near[:count].copy()
        if count == k:
            GX, Gd, Gi, Gp = X, data, indices, indptr
        else:
            GX, Gd, Gi, Gp = _gather(X, data, indices, indptr, sparse, near)
            touched += count
        n_c, n_lo, n_hi, n_prev, n_t = c[near], lo[near], hi[near], alpha[near], t[near]
        n_alpha = n_prev.copy()
        if sigma < 0.0:
            # zone of width hi - lo over sigma holds about par[0] * d rows
            top = 0.0
            for r in range(count):
                top = max(top, n_hi[r] - n_lo[r])
            width = _border(np.abs(n_t), min(int(par[0] * d) + 5, count))
            sigma = top / width if width > 0.0 and top > 0.0 else 1.0
            sigma = max(sigma, par[8] / mean_sq) if mean_sq > 0.0 else sigma
        done, work, sigma, near_gap = _solve_near(
            GX, Gd, Gi, Gp, sparse, n_c, n_lo, n_hi, n_prev, n_alpha, n_t, near_base, near_offset, w, v,
            par[9] * tol, sigma, limit - iterations, par,
        )  # fmt: skip
        iterations += done
        touched += work
        idle = done == 0 and count == m
        for r in range(count):
            alpha[near[r]] = n_alpha[r]
        # ---- look at all rows that are alive
        drift = 0.0
        for r in range(m):
            i = alive[r]
            total = 0.0
            if sparse:
                for q in range(indptr[i], indptr[i + 1]):
                    total += data[q] * w[indices[q]]
            else:
                for j in range(d):
                    total += X[i, j] * w[j]
            value = c[i] - total
            drift = max(drift, abs(value - t[i]))
            t[i] = value
        touched += m
        checks += 1
    return iterations, touched, screened, gap, primal, checks, sigma
