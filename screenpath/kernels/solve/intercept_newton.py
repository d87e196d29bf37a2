"""Newton's method on the proximal dual of signless rows, the free intercept eliminated exactly.

The problem is that of ``kernels.problem.intercept``.

One proximal round fixes ``prev`` and ``sigma`` and minimises over ``w``, with the best ``b`` for each,

    1/2 ||w||^2 - base.w - b rest + sum_i envelope_i,   alpha_i(w, b) = clip(prev_i + sigma t_i, lo_i, hi_i),
    t_i = c_i - x_i.w - b

For each ``w``, ``b`` is the root of ``sum_i alpha_i(w, b) = rest``, monotone and piecewise linear: so every iterate is
feasible in the dual. The function of ``w`` is smooth, with the gradient ``w - v``, ``v = base + sum_i alpha_i x_i``,
and the generalised Hessian ``I + sigma X_J'(I - 11'/|J|)X_J``, ``J`` the rows not clipped. The rows enter centred,
through a projection, so that sparse rows stay sparse. The gap of ``(w, b)`` and ``alpha`` is ``1/2 ||w - v||^2 +
sum_i (phi_i(t_i) - alpha_i t_i)``.

``z - sigma b`` are the dual variables before clipping, ``s`` the products with ``w``, ``u`` those with a direction.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.barrier import alone
from screenpath.kernels.rows.matrix import borrowed, matrix_of, products
from screenpath.kernels.rows.newton_system import DIRECT, GRAM, direction, inner
from screenpath.kernels.rows.rows import csr_sum, dense_sum_listed
from screenpath.kernels.solve.working_set import BALANCE, FAST, LONG, MEDIUM, SHORT, SLOW, SMOOTHER, STEADY

TRIALS = 200  # evaluations in a search for the intercept; a handful, as a rule


@kernel(fastmath=SUMS)
def _balance(z, sigma, lo, hi, rest, b):
    """Return the sum of ``clip(z - sigma b, lo, hi)`` less ``rest``; how many rows a larger b moves, and a smaller."""
    total, down, up = 0.0, 0.0, 0.0
    for i in range(at(z.size)):
        value = z[i] - sigma * b
        total += min(max(value, lo[i]), hi[i])
        down += 1.0 if (value > lo[i]) & (value <= hi[i]) else 0.0
        up += 1.0 if (value >= lo[i]) & (value < hi[i]) else 0.0
    return total - rest, down, up


@kernel(fastmath=SUMS)
def _next_kink(z, sigma, lo, hi, b, larger):
    """Return the next ``b`` above (``larger``) or below at which a row begins to move; b if there is none."""
    found = np.inf if larger else -np.inf
    for i in range(at(z.size)):
        if larger:
            kink = (z[i] - hi[i]) / sigma
            found = min(found, kink if (kink > b) & (hi[i] > lo[i]) else np.inf)
        else:
            kink = (z[i] - lo[i]) / sigma
            found = max(found, kink if (kink < b) & (hi[i] > lo[i]) else -np.inf)
    return found if abs(found) < np.inf else b


@kernel(fastmath=SUMS)
def balanced(z, sigma, lo, hi, rest, b, small):
    """Return the ``b`` with ``sum clip(z - sigma b, lo, hi) = rest``, up to ``small``, from a first guess.

    Newton's method on a monotone, piecewise linear function, within the bracket that it has found so far.
    """
    low, high = -np.inf, np.inf
    for _ in range(TRIALS):
        found, down, up = _balance(z, sigma, lo, hi, rest, b)
        if abs(found) <= small:
            break
        if found > 0.0:
            low = b
        else:
            high = b
        moving = down if found > 0.0 else up
        following = b + found / (sigma * moving) if moving > 0.0 else _next_kink(z, sigma, lo, hi, b, found > 0.0)
        if following == b:  # nothing moves any more, or no number lies between
            break
        if not low < following < high:
            following = 0.5 * (low + high)
            if following <= low or following >= high:
                break
        b = following
    return b


@kernel(fastmath=SUMS)
def _clip(X, sigma, z, b, c, lo, hi, s, alpha, change, inside, moved, v):
    """Set ``alpha`` to the clipped ``z - sigma b``, update ``v``, and mark the rows not clipped.

    Returns ``sum_i phi_i(t_i)``, ``sum_i alpha_i t_i``, ``sum_i alpha_i c_i``, and the rows touched.
    """
    loss, linear, ell = 0.0, 0.0, 0.0
    for r in range(at(alpha.size)):
        t = c[r] - s[r] - b
        a = min(max(z[r] - sigma * b, lo[r]), hi[r])
        change[r] = a - alpha[r]
        alpha[r] = a
        loss += max(lo[r] * t, hi[r] * t)
        linear += a * t
        ell += a * c[r]
    for r in range(at(alpha.size)):
        inside[r] = lo[r] < alpha[r] < hi[r]
    first, last = np.int64(0), np.int64(alpha.size)
    if X.sparse:
        touched = csr_sum(X.data, X.indices, X.indptr, change, v, first, last)
    else:
        touched = dense_sum_listed(X.dense, change, v, first, last, moved)
    return loss, linear, ell, touched


@kernel(fastmath=SUMS)
def _slope(z0, sigma, step, b, lo, hi, alpha, u):
    """Return ``sum (alpha - alpha(step)) u`` and the sum over moving rows of ``(u - mean u)^2``, and that mean."""
    first, count, linear, square = 0.0, 0.0, 0.0, 0.0
    for r in range(at(u.size)):
        value = z0[r] - sigma * (step * u[r] + b)
        a = min(max(value, lo[r]), hi[r])
        first += (alpha[r] - a) * u[r]
        free = 1.0 if a == value else 0.0
        count += free
        linear += free * u[r]
        square += free * u[r] * u[r]
    mean = linear / count if count > 0.0 else 0.0
    return first, max(square - linear * mean, 0.0), mean


@kernel(fastmath=SUMS)
def _search(sigma, quadratic, slope0, z0, z, b, rest, small, lo, hi, alpha, u, mean):
    """Return a step at which the derivative, increasing and piecewise linear, is nearly 0, and the intercept there.

    As in ``working_set``, with the best intercept at every trial.
    """
    low, high, s = 0.0, np.inf, 1.0
    b = b - mean  # where b goes if no row begins or ceases to move
    for trial in range(30):
        for r in range(at(u.size)):
            z[r] = z0[r] - sigma * s * u[r]
        b = balanced(z, sigma, lo, hi, rest, b, small)
        first, second, mean = _slope(z0, sigma, s, b, lo, hi, alpha, u)
        first += slope0 + s * quadratic
        second = quadratic + sigma * second
        if abs(first) <= (0.25 if trial == 0 else 0.05) * abs(slope0):
            break
        if first > 0.0:
            high = s
        else:
            low = s
        before = s
        s -= first / second
        if not low < s < high:
            s = 0.5 * (low + high) if high < np.inf else 2.0 * low
        b -= (s - before) * mean
    return s, b


@kernel(fastmath=SUMS)
def evaluate(c, s, b, lo, hi, alpha, t):
    """Update the distances ``t`` from the kinks to the products ``s`` and the intercept.

    Returns the sums of ``phi_i(t_i)``, ``alpha_i t_i`` and ``alpha_i c_i``, and the largest change of ``t``.
    """
    loss, linear, ell, far = 0.0, 0.0, 0.0, 0.0
    for i in range(at(t.size)):
        value = c[i] - s[i] - b
        far = max(far, abs(value - t[i]))
        t[i] = value
        loss += max(lo[i] * value, hi[i] * value)
        linear += alpha[i] * value
        ell += alpha[i] * c[i]
    return loss, linear, ell, far


@kernel(fastmath=SUMS)
def part(t, status, lo, hi, alpha, border, ends, near, moved):
    """List the rows within ``border`` of their kink, and those of the others that are not at the end they belong to.

    All rows between their ends count as near. Writes ``ends``, the end that a row belongs to, and the lists ``near``
    and ``moved``.

    Returns
    -------
    count, away : int
        Lengths of the two lists.
    fixed, least, most : float
        Sum of the ends of the others; of the lower, and the upper ends of the near ones.
    """
    count, away, fixed, least, most = 0, 0, 0.0, 0.0, 0.0
    for i in range(at(t.size)):
        upper = status[i] > 0 if status[i] != 0 else t[i] > 0.0
        ends[i] = end = hi[i] if upper else lo[i]
        between = (lo[i] < alpha[i]) & (alpha[i] < hi[i])
        is_near = (status[i] == 0) & (lo[i] < hi[i]) & ((abs(t[i]) <= border) | between)
        near[at(count)], moved[at(away)] = i, i
        count += is_near
        away += (not is_near) & (alpha[i] != end)
        fixed += 0.0 if is_near else end
        least += lo[i] if is_near else 0.0
        most += hi[i] if is_near else 0.0
    return count, away, fixed, least, most


@kernel(fastmath=SUMS)
def minimise_centred(
    X, offset, rest, b, w, v, tol, sigma, limit, c, lo, hi, alpha, s, team
):  # fmt: skip
    """Minimise the problem of a few rows with a free intercept to a relative gap; return its iterations and rows
    touched, the intercept, and the gap.

    Parameters
    ----------
    offset : float
        ``c . alpha`` of all other rows.
    rest : float
        Sum of the dual variables of these rows: minus the sum of all others.
    b, sigma : float
        Start of the search for the intercept; first proximal parameter.
    w, v : ndarray of shape (d,)
        Primal point, and ``base + sum_i alpha_i x_i``; overwritten, as are ``alpha`` and ``s``.
    limit : int
        Iterations.
    team : Team
        Of one thread.
    """
    X, n, d = borrowed(X), alpha.size, w.size
    iterative = d > DIRECT and n > GRAM
    order = d if d <= DIRECT else 0
    H, scratch, p = np.empty((order, order)), np.empty((order, order)), np.empty(d)
    prev, z, change, u = alpha.copy(), np.empty(n), np.empty(n), np.empty(n)
    inside, members = np.zeros(n, dtype=np.int8), np.zeros(n, dtype=np.int8)
    moved = np.empty(n + 1, dtype=np.int64)
    size, first, last = 0.0, np.int64(0), np.int64(n)
    for r in range(n):
        size += max(abs(lo[r]), abs(hi[r]))
    small = 1e-16 * size
    iterations, in_round, touched, short, cautious = 0, 0, 0, 0, False
    gap = np.inf
    while True:
        for r in range(n):
            z[r] = prev[r] + sigma * (c[r] - s[r])
        b = balanced(z, sigma, lo, hi, rest, b, small)
        loss, linear, ell, work = _clip(
            X, sigma, z, b, c, lo, hi, s, alpha, change, inside, moved, v
        )  # fmt: skip
        touched += work
        for j in range(d):
            p[j] = v[j] - w[j]
        half_sq, slackness = 0.5 * inner(p, p), loss - linear
        primal = abs(0.5 * inner(w, w) - inner(v, w) + ell - linear + loss + offset)
        gap = half_sq + slackness
        if gap <= tol * primal or iterations >= limit or not gap < np.inf:
            break
        if in_round > 0 and (half_sq <= BALANCE * slackness or half_sq <= 1e-30 * primal):
            prev[:] = alpha
            growth = FAST if in_round <= 2 else (MEDIUM if in_round <= 5 else SLOW)
            sigma *= STEADY if iterative else (min(growth, MEDIUM) if cautious else growth)
            in_round, short = 0, 0
            continue
        touched += n + direction(
            X, inside, members, moved, H, scratch, True, sigma, p, team
        )  # fmt: skip
        products(X, p, u, first, last)
        mean, count = 0.0, 0.0
        for r in range(n):
            mean += u[r] if inside[r] else 0.0
            count += inside[r]
        slope = inner(w, p) - inner(v, p)
        step, b = _search(
            sigma, inner(p, p), slope, z.copy(), z, b, rest, small, lo, hi, alpha, u, mean / max(count, 1.0)
        )  # fmt: skip
        for j in range(d):
            w[j] += step * p[j]
        for r in range(n):
            s[r] += step * u[r]
        iterations += 1
        in_round += 1
        short = short + 1 if step < SHORT else 0
        if short >= 2 or in_round % LONG == 0:  # see `working_set`
            sigma *= SMOOTHER
            short, cautious = 0, True
    return iterations, touched, b, gap


def warm_up():
    a, zero = np.array([1.0, -1.0]), np.zeros(2)
    lo, hi = np.array([0.0, -1.0]), np.array([1.0, 0.0])
    balanced(a, 1.0, lo, hi, 0.0, 0.0, 0.0)
    rows, status = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int8)
    evaluate(a, a, 1.0, lo, hi, a, a.copy())
    part(a, status, lo, hi, a, 1.0, a.copy(), rows, rows.copy())
    X, w, v, alpha, s = matrix_of(np.eye(2)), zero.copy(), zero.copy(), zero.copy(), zero.copy()
    minimise_centred(X, 0.0, 0.0, 0.0, w, v, 1e-6, 1.0, 9, a, lo, hi, alpha, s, alone())
