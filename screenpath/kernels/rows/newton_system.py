"""Newton directions: solve ``(I + sigma G_J'G_J) p = -gradient`` for dense or CSR rows.

Three ways: a Cholesky factorisation of order d whose matrix ``G_J'G_J`` is kept and updated by the rows that enter and
leave J; the Gram matrix of the rows of J (Woodbury) where |J| is well below d; conjugate gradients where both are
large, without a preconditioner (Jacobi's needed more iterations). No call of BLAS or LAPACK: a threaded library would
cost more than it saves at these sizes, and change the last digits with the number of threads.

The threads of a team share the rows of ``G_J'G_J``; each computes the rest by itself.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.barrier import SIZE, meet
from screenpath.kernels.rows.matrix import add, dot
from screenpath.kernels.rows.rows import dense_products
from screenpath.kernels.rows.unowned import unowned

DIRECT = 600  # largest number of features whose Hessian is factorised
GRAM = 150  # with more features: largest |J| whose Gram matrix is factorised; conjugate gradients beyond
FORCING, PRODUCTS = 0.1, 300  # relative accuracy and longest run of conjugate gradients
RIDGE = 1e-14  # added to a matrix, times its largest diagonal entry


@kernel(fastmath=SUMS, leaf=True)
def inner(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def advance(out, residual, search, image, square, curvature):
    """Take a step of conjugate gradients along ``search``; return the square of the new residual.

    ``image`` is the matrix times ``search``, ``square`` is ``||residual||^2`` and ``curvature`` is ``search . image``.
    """
    length, fresh = square / curvature, 0.0
    for k in range(out.size):
        out[k] += length * search[k]
        residual[k] -= length * image[k]
        fresh += residual[k] * residual[k]
    turn = fresh / square
    for k in range(out.size):
        search[k] = residual[k] + turn * search[k]
    return fresh


@kernel(fastmath=SUMS, leaf=True)
def _add_outer(X, i, sign, H, top, end):
    """Add ``sign * g_i g_i'`` to the lower triangle of ``H``, between the rows ``top`` and ``end``."""
    dense, data, indices, indptr, sparse = X
    if sparse:
        for p in range(indptr[i], indptr[i + 1]):
            scaled = sign * data[p]
            row = indices[p]
            if not top <= row < end:
                continue
            for q in range(indptr[i], indptr[i + 1]):
                if indices[q] <= row:
                    H[row, indices[q]] += scaled * data[q]
    else:
        for j in range(top, end):
            scaled = sign * dense[i, j]
            for k in range(j + 1):
                H[j, k] += scaled * dense[i, k]


@kernel(fastmath=SUMS, leaf=True)
def _add_four(X, moved, H, top, end):
    """:func:`_add_outer` for four dense rows at once; ``~r`` subtracts row ``r``."""
    r0, r1, r2, r3 = moved[0], moved[1], moved[2], moved[3]
    x0, x1, x2, x3 = X[max(r0, ~r0)], X[max(r1, ~r1)], X[max(r2, ~r2)], X[max(r3, ~r3)]
    for j in range(top, end):
        h = H[j]
        s0, s1 = x0[j] if r0 >= 0 else -x0[j], x1[j] if r1 >= 0 else -x1[j]
        s2, s3 = x2[j] if r2 >= 0 else -x2[j], x3[j] if r3 >= 0 else -x3[j]
        for k in range(j + 1):
            h[k] += s0 * x0[k] + s1 * x1[k] + s2 * x2[k] + s3 * x3[k]


@kernel(leaf=True)
def _enter(X, moved, anew, d, H, team):
    """Add rows to ``H``, or subtract them (``~r``); each thread has rows of ``H`` with about as many entries."""
    top, end = 0, d
    size, me = team.board[SIZE], team.me
    if size > 1:
        top, end = int(d * np.sqrt(me / size)), int(d * np.sqrt((me + 1) / size))
    if anew:
        for j in range(top, end):
            for k in range(j + 1):
                H[j, k] = 0.0
    k = 0
    while k + 4 <= moved.size and not X.sparse:
        _add_four(X.dense, moved[k : k + 4], H, top, end)
        k += 4
    for m in range(k, moved.size):
        r = moved[m]
        row, sign = (r, 1.0) if r >= 0 else (~r, -1.0)
        _add_outer(X, row, sign, H, top, end)
    meet(team)


@kernel(fastmath=SUMS, leaf=True)
def _factorise(A):
    """Overwrite the lower triangle of ``A`` by its Cholesky factor, row by row; pivots are kept positive.

    As fast as LAPACK at these sizes, and without its threads. Four entries of a row are computed at once, so that each
    value read serves four products.
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
            ai[c] = (ai[c] - inner(ai[:c], A[c, :c])) / A[c, c]
        floor = 1e-14 * ai[i]
        ai[i] = np.sqrt(max(ai[i] - inner(ai[:i], ai[:i]), floor))


@kernel(fastmath=SUMS, leaf=True, inner=True)
def solve_factored(L, x):
    """Solve ``L L' x = b`` in place: four entries at once, so that each value read serves four products."""
    n = L.shape[0]
    last = n - n % 4
    for i in range(0, last, 4):
        a, b, c, d = L[i], L[i + 1], L[i + 2], L[i + 3]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for k in range(i):
            y = x[k]
            p += a[k] * y
            q += b[k] * y
            r += c[k] * y
            s += d[k] * y
        p = (x[i] - p) / a[i]
        q = (x[i + 1] - q - b[i] * p) / b[i + 1]
        r = (x[i + 2] - r - c[i] * p - c[i + 1] * q) / c[i + 2]
        s = (x[i + 3] - s - d[i] * p - d[i + 1] * q - d[i + 2] * r) / d[i + 3]
        x[i], x[i + 1], x[i + 2], x[i + 3] = p, q, r, s
    for i in range(last, n):
        p = x[i]
        for k in range(i):
            p -= L[i, k] * x[k]
        x[i] = p / L[i, i]
    for i in range(n - 1, last - 1, -1):
        p = x[i] / L[i, i]
        x[i] = p
        for k in range(i):
            x[k] -= L[i, k] * p
    for i in range(last - 4, -1, -4):
        a, b, c, d = L[i], L[i + 1], L[i + 2], L[i + 3]
        s = x[i + 3] / d[i + 3]
        r = (x[i + 2] - d[i + 2] * s) / c[i + 2]
        q = (x[i + 1] - d[i + 1] * s - c[i + 1] * r) / b[i + 1]
        p = (x[i] - d[i] * s - c[i] * r - b[i] * q) / a[i]
        x[i], x[i + 1], x[i + 2], x[i + 3] = p, q, r, s
        for k in range(i):
            x[k] -= a[k] * p + b[k] * q + c[k] * r + d[k] * s


@kernel(fastmath=SUMS, leaf=True)
def _hessian_direction(H, sigma, scratch, p):
    """Turn ``p = -gradient`` into the Newton direction with the kept ``H = G_J'G_J``; return as :func:`direction`."""
    d, peak = p.size, 0.0
    for j in range(d):
        peak = max(peak, H[j, j])
    for j in range(d):
        for k in range(j + 1):
            scratch[j, k] = sigma * H[j, k]
        scratch[j, j] += 1.0 + RIDGE * sigma * peak
    _factorise(scratch)
    solve_factored(scratch, p)
    return RIDGE * (1.0 + sigma * peak) * np.sqrt(inner(p, p))


@kernel(fastmath=SUMS)
def _woodbury_direction(X, J, sigma, p):
    """Turn ``p = -gradient`` into the Newton direction through the |J| x |J| Gram matrix; return as
    :func:`direction`.
    """
    n, d, first, right, K = J.size, p.size, np.int64(0), np.empty(J.size), np.empty((J.size, J.size))
    stored, _, indices, indptr, sparse = X
    if sparse:
        row = np.empty(d)
        for j in range(d):
            row[j] = 0.0
        for r in range(n):
            i = J[r]
            add(X, i, 1.0, row)
            for s in range(r + 1):
                K[r, s] = dot(X, J[s], row)
            for q in range(at(indptr[i]), at(indptr[i + 1])):
                row[at(indices[q])] = 0.0
            right[r] = dot(X, i, p)
    else:
        GJ = np.empty((n, d))
        for r in range(n):
            for j in range(d):
                GJ[r, j] = stored[J[r], j]
        for r in range(n):
            dense_products(GJ, GJ[r], K[r], first, r + 1)
        dense_products(GJ, p, right, first, n)
    peak = 0.0
    for r in range(n):
        peak = max(peak, K[r, r])
    for r in range(n):
        K[r, r] += 1.0 / sigma + RIDGE * peak
    _factorise(K)
    solve_factored(K, right)
    for r in range(n):
        add(X, J[r], -right[r], p)
    return RIDGE * (1.0 + sigma * peak) * np.sqrt(peak * inner(right, right))


@kernel(fastmath=SUMS)
def _conjugate_direction(X, J, sigma, p):
    """Turn ``p = -gradient`` into an approximate Newton direction by conjugate gradients; return products formed."""
    residual, search, image = np.empty(p.size), np.empty(p.size), np.empty(p.size)
    for j in range(p.size):
        residual[j], search[j], p[j] = p[j], p[j], 0.0
    square = inner(residual, residual)
    target = FORCING * FORCING * square
    formed = 0
    while formed < PRODUCTS and square > target:
        for j in range(p.size):
            image[j] = search[j]
        for r in range(J.size):  # one traversal: dot, then scatter, row by row
            add(X, J[r], sigma * dot(X, J[r], search), image)
        formed += 1
        square = advance(p, residual, search, image, square, inner(search, image))
    return formed


@kernel(inner=True, leaf=True)
def direction(X, inside, members, moved, H, scratch, sigma, p, team):
    """Turn ``p = -gradient``, shape (d,), into the Newton direction by the cheapest of three ways.

    Returns the rows touched, and about the norm of the system's residual: infinite if it is not solved as such.

    All arrays but ``H`` and the rows are each thread's own.

    ``inside`` and ``members``, int8 of shape (n,), mark the rows of J, and the rows in ``H``: none before the first
    call. ``H``, shape (d, d) or larger, is the kept matrix; ``moved``, int64 of shape (n,), and ``scratch``, of the
    shape of ``H``, are work space, the latter for a factor. ``H`` and ``scratch`` are empty beyond ``DIRECT`` features.
    """
    X, d = unowned(X), p.size
    size, changed = 0, 0
    for r in range(inside.size):
        moved[at(size)] = r  # kept where the next one does not overwrite it
        size += inside[r] > 0
        changed += inside[r] != members[r]
    if size == 0:
        return 0, RIDGE
    if 2 * size < d and (d <= DIRECT or size <= GRAM):
        return size, _woodbury_direction(X, moved[:size], sigma, p)
    if d > DIRECT:
        return size * (1 + _conjugate_direction(X, moved[:size], sigma, p)), np.inf
    anew = changed >= size  # cheaper than letting rows enter and leave
    if not anew:
        size = 0
        for r in range(inside.size):
            moved[at(size)] = r if inside[r] else ~r
            size += inside[r] != members[r]
    for r in range(inside.size):
        members[r] = inside[r]
    _enter(X, moved[:size], anew, d, H, team)
    return size, _hessian_direction(H, sigma, scratch, p)
