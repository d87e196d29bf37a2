"""Semismooth Newton on the proximal dual (augmented Lagrangian) of a reduced box problem.

One proximal round fixes ``prev`` and ``sigma`` and minimises over ``w`` the smooth, strongly convex

    psi(w) = 1/2 ||w||^2 - base.w + sum_i envelope_i,   gradient  w - v(w),  v(w) = base + sum_i alpha_i(w) g_i,
    alpha_i(w) = clip(prev_i + sigma t_i, lo_i, hi_i),  t_i = c_i - g_i.w

``base`` (the sum of the fixed rows) is never formed: ``base.w = v.w - sum_i alpha_i g_i.w``, whose products are known.

by Newton's method: generalised Hessian ``I + sigma G_J'G_J``, ``J`` the rows not clipped, followed by a line search on
the piecewise linear directional derivative. Every iterate is a pair (w, alpha(w)) whose gap is known without
cancellation: ``1/2 ||w - v||^2 + sum_i (phi_i(t_i) - alpha_i t_i)``, both parts nonnegative. The proximal round ends
when the first part is small beside the second.

Newton iterations touch a working set of rows near their kink; the rest sits at the end its margin points to. When the
working set is solved, one pass over all rows finds those on the wrong side, and the gap of the whole reduced problem.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.newton_system import DIRECT, GRAM, add, direction, gather, inner, products

SUMS = {"reassoc", "contract", "nsz", "arcp"}  # lets sums vectorise; nan and inf keep their meaning
ZONE = 10  # the first sigma leaves about this many rows per feature unclipped
SIGMA_LEAST, SIGMA_MOST = 1e-3, 1e8  # and is at least and at most this over the mean squared row norm
BALANCE = 0.5  # a proximal round ends when the gap of its minimisation is below this fraction of its slackness
FAST, MEDIUM, SLOW = 10.0, 4.0, 2.0  # growth of sigma after rounds of at most 2, at most 5, and more iterations
ROUGH, STEADY = 10.0, 2.0  # first sigma, times the mean squared row norm, and its growth with conjugate gradients
SHORT, SMOOTHER = 0.2, 0.1  # two steps shorter than SHORT in a row, and sigma is multiplied by SMOOTHER
LONG = 30  # and after each LONG iterations of a proximal round
NEAR_PER_FEATURE, NEAR_SHARE, NEAR_LEAST = 8, 0.2, 64  # rows of the first working set
POOR_START = 0.1  # relative gap from which all rows are near
AIM = 0.9  # the working set is solved to this fraction of the gap's target


@kernel(fastmath=SUMS)
def _slope(prev, sigma, t, u, lo, hi, alpha, s, slope0, quadratic):
    """First and second derivative of psi along the direction at step ``s``; ``u = G p``, ``slope0`` that at 0."""
    first, second = 0.0, 0.0
    for r in range(t.size):
        z = prev[r] + sigma * (t[r] - s * u[r])
        a = min(max(z, lo[r]), hi[r])
        first += (alpha[r] - a) * u[r]
        second += u[r] * u[r] if a == z else 0.0
    return first + slope0 + s * quadratic, sigma * second + quadratic


@kernel(fastmath=SUMS)
def _line_search(prev, sigma, t, u, lo, hi, alpha, slope0, quadratic):
    """Step length at which the directional derivative, increasing and piecewise linear, is nearly 0.

    A full step is kept where it brings the derivative below a quarter of its start. Otherwise Newton steps on the
    derivative, safeguarded by its bracket; none of them touches a row.
    """
    low, high = 0.0, np.inf
    s = 1.0
    for trial in range(30):
        first, second = _slope(prev, sigma, t, u, lo, hi, alpha, s, slope0, quadratic)
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
def _clip(prev, sigma, t, lo, hi, c, alpha, inside):
    """Bring ``alpha`` to ``t``; mark the rows not clipped.

    Returns ``sum_i phi_i(t_i)``, ``sum_i alpha_i t_i`` and ``sum_i alpha_i c_i``.
    """
    loss, linear, ell = 0.0, 0.0, 0.0
    for r in range(t.size):
        z = prev[r] + sigma * t[r]
        a = min(max(z, lo[r]), hi[r])
        alpha[r] = a
        inside[r] = lo[r] < a < hi[r]
        loss += max(lo[r] * t[r], hi[r] * t[r])
        linear += a * t[r]
        ell += a * c[r]
    return loss, linear, ell


@kernel(fastmath=SUMS)
def _solve_near(X, data, indices, indptr, sparse, c, lo, hi, prev, alpha, t, offset, w, v, tol, sigma, limit):
    """Minimise the problem of the working set; all arrays but the rows are compact copies.

    ``prev``, ``alpha``, ``t``, ``w`` and ``v`` hold the start and are overwritten.

    Returns
    -------
    iterations, touched : int
    sigma : float
        The last proximal parameter.
    """
    n, d = t.size, w.size
    iterative = d > DIRECT and n > GRAM  # a better conditioned system is worth a round more
    order = d if d <= DIRECT else 0
    H, scratch = np.zeros((order, order)), np.zeros((order, order))
    members, inside = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    J = np.empty(n, dtype=np.int64)
    old, u, p = np.empty(n), np.empty(n), np.empty(d)
    iterations, in_round, touched, short, cautious = 0, 0, 0, 0, False
    while True:
        old[:] = alpha
        loss, linear, ell = _clip(prev, sigma, t, lo, hi, c, alpha, inside)
        for r in range(n):
            if alpha[r] != old[r]:
                add(X, data, indices, indptr, sparse, r, alpha[r] - old[r], v)
                touched += 1
        for j in range(d):
            p[j] = v[j] - w[j]
        half, slackness = 0.5 * inner(p, p), loss - linear
        primal = abs(0.5 * inner(w, w) - inner(v, w) + ell - linear + loss + offset)
        if half + slackness <= tol * primal or iterations >= limit:
            break
        if in_round > 0 and (half <= BALANCE * slackness or half <= 1e-30 * primal):
            prev[:] = alpha  # the next proximal round
            growth = FAST if in_round <= 2 else (MEDIUM if in_round <= 5 else SLOW)
            sigma *= STEADY if iterative else (min(growth, MEDIUM) if cautious else growth)
            in_round, short = 0, 0
            continue
        touched += n + direction(X, data, indices, indptr, sparse, inside, members, H, scratch, J, sigma, p)
        products(X, data, indices, indptr, sparse, p, u)
        slope = inner(w, p) - inner(v, p)
        step = _line_search(prev, sigma, t, u, lo, hi, alpha, slope, inner(p, p))
        for j in range(d):
            w[j] += step * p[j]
        for r in range(n):
            t[r] -= step * u[r]
        iterations += 1
        in_round += 1
        short = short + 1 if step < SHORT else 0
        # The kinks are too sharp for where w stands, or for the arithmetic: between two of them the iterates can cycle.
        if short >= 2 or in_round % LONG == 0:
            sigma *= SMOOTHER
            short, cautious = 0, True
    return iterations, touched, sigma


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
def _relabel(indices, d):
    """Number the columns of gathered CSR rows anew, in place, in the order of their first appearance.

    Frequent columns come first then, and what is often used stays close together. Returns the old numbers.
    """
    label = np.full(d, -1, dtype=np.int64)
    columns = np.empty(min(d, indices.size), dtype=np.int64)
    count = 0
    for q in range(indices.size):
        j = indices[q]
        if label[j] < 0:
            label[j] = count
            columns[count] = j
            count += 1
        indices[q] = label[j]
    return columns[:count].copy()


@kernel(fastmath=SUMS)
def _screen(
    X, data, indices, indptr, sparse, where, signs, alive, radius, slack, rounding, c, lo, hi, norms, t, alpha, v
):  # fmt: skip
    """Fix the rows that the ball around w decides; what they change goes into ``v``.

    Returns
    -------
    survivors : ndarray of int64
    linear : float
        ``c . alpha`` of the rows fixed.
    touched : int
    """
    kept, touched, linear = 0, 0, 0.0
    survivors = np.empty(alive.size, dtype=np.int64)
    for r in range(alive.size):
        i = at(alive[r])
        if abs(t[i]) <= (radius + slack) * norms[i] + rounding * abs(c[i]):
            survivors[kept] = alive[r]
            kept += 1
            continue
        value = hi[i] if t[i] > 0.0 else lo[i]
        if value != alpha[i]:
            add(X, data, indices, indptr, sparse, where[i], signs[i] * (value - alpha[i]), v)
            touched += 1
            alpha[i] = value
        linear += value * c[i]
    return survivors[:kept].copy(), linear, touched


@kernel(fastmath=SUMS)
def _part(X, data, indices, indptr, sparse, where, signs, alive, border, c, lo, hi, t, alpha, v):
    """Part the rows near their kink from the far ones, which go to the end that their margin points to.

    Returns the near rows, ``c . alpha`` of the far ones, and the rows touched.
    """
    count, touched, linear = 0, 0, 0.0
    near = np.empty(alive.size, dtype=np.int64)
    for r in range(alive.size):
        i = at(alive[r])
        if abs(t[i]) <= border or lo[i] < alpha[i] < hi[i]:
            near[count] = alive[r]
            count += 1
            continue
        value = hi[i] if t[i] > 0.0 else lo[i]
        if value != alpha[i]:
            add(X, data, indices, indptr, sparse, where[i], signs[i] * (value - alpha[i]), v)
            touched += 1
            alpha[i] = value
        linear += value * c[i]
    return near[:count].copy(), linear, touched


@kernel(fastmath=SUMS)
def _look(X, data, indices, indptr, sparse, where, signs, alive, c, w, t):
    """Bring the margins of all alive rows to w; return the largest change."""
    drift = 0.0
    for r in range(alive.size):
        i = at(alive[r])
        row, product = where[i], 0.0
        if sparse:
            for q in range(at(indptr[row]), at(indptr[row + 1])):
                product += data[q] * w[at(indices[q])]
        else:
            for j in range(w.size):
                product += X[row, j] * w[j]
        value = c[i] - signs[i] * product
        drift = max(drift, abs(value - t[i]))
        t[i] = value
    return drift


@kernel(fastmath=SUMS)
def _losses(alive, lo, hi, c, t, alpha):
    """Return ``sum_i phi_i(t_i)``, ``sum_i alpha_i t_i`` and ``sum_i alpha_i c_i`` over the alive rows."""
    loss, linear, ell = 0.0, 0.0, 0.0
    for r in range(alive.size):
        i = at(alive[r])
        loss += max(lo[i] * t[i], hi[i] * t[i])
        linear += alpha[i] * t[i]
        ell += alpha[i] * c[i]
    return loss, linear, ell


@kernel(fastmath=SUMS)
def _first_sigma(lo, hi, t, d, mean_sq):
    """Return the proximal parameter whose zone between the clips holds about ``ZONE * d`` rows."""
    widest = 0.0
    for r in range(t.size):
        widest = max(widest, hi[r] - lo[r])
    zone = _border(np.abs(t), ZONE * d + 5)
    if mean_sq == 0.0 or widest == 0.0:
        return 1.0
    sigma = widest / zone if zone > 0.0 else np.inf  # margins that are all 0 up to rounding leave no zone
    return min(max(sigma, SIGMA_LEAST / mean_sq), SIGMA_MOST / mean_sq)


@kernel(fastmath=SUMS)
def newton_box(
    X, data, indices, indptr, sparse, where, signs, c, lo, hi, norms, offset, alpha, v, w, margins, tol, limit, screen,
    rounding, gap_rounding,
):  # fmt: skip
    """Minimise a reduced box problem to a relative gap.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Dense rows; empty for sparse rows.
    data, indices, indptr : ndarray
        CSR rows; empty for dense rows.
    sparse : bool
    where, signs : ndarray of int64 and of int8, of shape (k,)
        ``g_r`` is ``signs[r]`` times the stored row ``where[r]``.
    c, lo, hi, norms : ndarray of shape (k,)
    offset : float
    alpha : ndarray of shape (k,)
        Feasible dual point to start from; overwritten by the result.
    v : ndarray of shape (d,)
        ``base + G'alpha`` at the start, ``base`` the sum of the rows fixed beforehand; overwritten.
    w : ndarray of shape (d,)
        Primal point to start from; overwritten by the result.
    margins : ndarray of shape (k,)
        ``G w`` at the start.
    tol : float
        Relative gap to reach.
    limit : int
        Newton iterations at most.
    screen : bool
        Fix rows that the gap ball of the current pair decides.
    rounding, gap_rounding : float
        Slacks of a screening comparison and of a squared radius.

    Returns
    -------
    iterations, touched : int
        Newton iterations, rows touched.
    alive : ndarray of int64
        Rows that the gap ball has not fixed.
    gap, primal : float
        Of the returned pair.
    """
    alive, t = np.arange(c.size), c - margins
    touched, iterations = 0, 0
    mean_sq = inner(norms, norms) / max(c.size, 1)
    sigma, drift, last, idle = -1.0, np.inf, np.inf, False
    known = offset  # with the rows that screening fixes here
    while True:
        loss, linear, ell = _losses(alive, lo, hi, c, t, alpha)
        apart = 0.0  # ||w - v||^2
        for j in range(w.size):
            apart += (w[j] - v[j]) ** 2
        gap = 0.5 * apart + loss - linear
        w_sq = inner(w, w)
        primal = 0.5 * w_sq - inner(v, w) + ell - linear + loss + known
        stalled = gap > 0.5 * last
        # Idle and stalled: all rows were near and nothing moved, the accuracy of the arithmetic is reached.
        if gap <= tol * abs(primal) or iterations >= limit or (idle and stalled):
            break
        last = gap
        if screen:
            # The pair's ball has its centre at (w + v)/2; it is moved to w, whose margins are known.
            error = gap_rounding * (w_sq + inner(v, v) + loss + abs(linear))
            radius = np.sqrt(max(gap - 0.25 * apart, 0.0) + error) + 0.5 * np.sqrt(apart)
            slack = rounding * (np.sqrt(w_sq) + radius)
            alive, linear, work = _screen(
                X, data, indices, indptr, sparse, where, signs, alive, radius, slack, rounding, c, lo, hi, norms, t,
                alpha, v,
            )  # fmt: skip
            touched += work
            known += linear
        # Working set: at first the rows closest to their kink, later those that the last change of margins could move.
        border = np.inf
        want = max(NEAR_PER_FEATURE * w.size, int(NEAR_SHARE * alive.size), NEAR_LEAST)
        if drift < np.inf and not stalled:
            border = drift
        elif drift == np.inf and want < alive.size and gap < POOR_START * abs(primal):
            border = _border(np.abs(t[alive]), want)
        near, linear, work = _part(
            X, data, indices, indptr, sparse, where, signs, alive, border, c, lo, hi, t, alpha, v
        )  # fmt: skip
        GX, G_data, G_indices, G_indptr = gather(X, data, indices, indptr, sparse, where, signs, near)
        touched += work + near.size
        n_lo, n_hi, n_prev, n_t = lo[near], hi[near], alpha[near], t[near]
        if sigma < 0.0:
            if w.size > DIRECT and near.size > GRAM and mean_sq > 0.0:
                sigma = ROUGH / mean_sq
            else:
                sigma = _first_sigma(n_lo, n_hi, n_t, w.size, mean_sq)
        n_alpha = n_prev.copy()
        n_w, n_v, apart = w, v, 0.0
        if sparse:  # of the columns that no near row has, w = v is optimal; the vectors of the rest are short
            columns = _relabel(G_indices, w.size)
            n_w, n_v = w[columns], v[columns]
            w[:] = v
            apart = inner(v, v) - inner(n_v, n_v)
        done, work, sigma = _solve_near(
            GX, G_data, G_indices, G_indptr, sparse, c[near], n_lo, n_hi, n_prev, n_alpha, n_t,
            known + linear - 0.5 * apart, n_w, n_v, AIM * tol, sigma, limit - iterations,
        )  # fmt: skip
        if sparse:
            w[columns], v[columns] = n_w, n_v
        alpha[near] = n_alpha
        iterations += done
        idle = done == 0 and near.size == alive.size
        drift = _look(X, data, indices, indptr, sparse, where, signs, alive, c, w, t)
        touched += work + alive.size
    return iterations, touched, alive, gap, primal


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    one, zero = np.ones(2), np.zeros(2)
    nothing = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    newton_box(
        np.eye(2), *nothing, False, np.arange(2), np.ones(2, dtype=np.int8), one, zero, one, one, 0.0, np.zeros(2),
        np.zeros(2), np.zeros(2), np.zeros(2), 1e-6, 9, True, 1e-12, 1e-14,
    )  # fmt: skip
