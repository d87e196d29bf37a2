"""A free intercept by multipliers: box problems with a penalised one around a guess, which Newton's kernel solves.

With a free intercept the dual variables of ``minimise_free``'s rows have to sum up to ``rest``. The augmented
Lagrangian of that is a box problem of rows with one column more, ``s_i rho^1/2``, whose kinks are ``c_i - s_i mu``: an
intercept penalised around ``mu``. The amount ``m`` by which its solution misses the sum falls piecewise linearly with
``mu``, and its intercept is ``mu + rho m``. Near a good guess the sum is so nearly right that the dual variables
between their ends can share the difference; the gap of the problem itself says whether that was good enough.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.box import Errors
from screenpath.kernels.rows.barrier import alone
from screenpath.kernels.rows.matrix import add, dot, matrix_of
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.margins import ALIVE, ALPHA, HI, LO, NORMS, SIGNS, WHERE, C, T, table_of, workspace
from screenpath.kernels.solve.newton import How, minimise

RHO, FIRST = 4.0, 100.0  # times the square of a typical distance; where w is 0, and the intercept not much of a guess
TIED = 1e6  # and none at all, most rows being at their kink, as those of a larger class are
TIGHT = 0.9  # times the tolerance: of the penalised problems
MOST, SHARES = 8, 4  # problems, and times that dual variables share out what is missing
EXACT = 1e-12  # relative error of a sum that is right


@kernel(leaf=True)
def next_multiplier(mu, missing, mu_before, before, otherwise):
    """Return the zero of the line through two pairs of a multiplier and its ``missing`` amount."""
    if mu_before == mu_before and mu_before != mu:
        slope = (missing - before) / (mu - mu_before)
        if slope < 0.0:
            return mu - missing / slope
    return otherwise


@kernel(fastmath=SUMS, leaf=True)
def summed(k, rest, lo, hi, alpha, signs):
    """Return the excess of the signed dual variables over ``rest``, the sum of their sizes, and how many are free."""
    total, size, free = -rest, abs(rest), 0.0
    for r in range(at(k)):
        total += signs[r] * alpha[r]
        size += abs(alpha[r])
        free += 1.0 if (lo[r] < alpha[r]) & (alpha[r] < hi[r]) else 0.0
    return total, size, free


@kernel(leaf=True)
def share_out(X, k, missing, free, v, where, lo, hi, alpha, signs):
    """Subtract the excess of the sum from the dual variables between their ends, as far as they allow."""
    share = missing / free
    for r in range(k):
        if lo[r] < alpha[r] < hi[r]:
            value = min(max(alpha[r] - signs[r] * share, lo[r]), hi[r])
            add(X, where[r], signs[r] * (value - alpha[r]), v)
            alpha[r] = value


@kernel(fastmath=SUMS, leaf=True)
def _slackness(count, k, alive, lo, hi, alpha, t):
    """Return ``sum (phi_i(t_i) - alpha_i t_i)`` over the alive rows, no term of which is negative."""
    total = 0.0
    if count == k:  # without the list the loop vectorises
        for i in range(at(k)):
            total += max((hi[i] - alpha[i]) * t[i], (lo[i] - alpha[i]) * t[i])
        return total
    for r in range(at(count)):
        i = at(alive[r])
        total += max((hi[i] - alpha[i]) * t[i], (lo[i] - alpha[i]) * t[i])
    return total


@kernel(fastmath=SUMS, leaf=True)
def _widened(k, rho, norms):
    """Update the norms of rows for one more column, of ``rho^1/2``."""
    for r in range(at(k)):
        norms[r] = np.sqrt(norms[r] * norms[r] + rho)


@kernel(inner=True, leaf=True)
def shifted(k, values, signs, b, out):
    """Write ``values - signs b`` of ``k`` rows to ``out``, which may be ``values``."""
    for r in range(at(k)):
        out[r] = values[r] - signs[r] * b


@kernel
def minimise_free(X, k, offset, rest, b, typical, v, w, how, room, team):
    """Minimise a reduced box problem of ``k`` rows with a free intercept to a relative gap.

    ``offset`` is ``c . alpha`` of the rows fixed beforehand, ``rest`` the required sum of the signed dual variables of
    the ``k`` rows, ``b`` the intercept at the start, and ``typical`` a typical distance of the rows from their middle,
    above 0. ``v``, ``w`` and ``room`` are those of :func:`newton.minimise`, the points with an entry that is
    overwritten, the room with ``d + 1`` columns, without the intercept's; its ``T`` holds ``c_i - g_i.w - s_i b``;
    kinks, norms and ``ALIVE`` are overwritten. The gap ball of ``how`` is that of a penalised problem, and its
    decisions are not reported. ``team`` has one thread.

    Returns iterations, rows touched, gap, primal objective and intercept of the returned pair, whether its gap is
    small enough and its dual variables sum up to ``rest`` up to rounding, and the largest intercept, or part of one,
    that ``T`` has been computed from.
    """
    X, room, d, (tol, limit, screen, errors, _, steep) = unowned(X), unowned(room), w.size - 1, how
    vectors, where, signs, alive = room.vectors, room.lists[WHERE], room.marks[SIGNS], room.lists[ALIVE]
    c, lo, hi, alpha, t = vectors[C], vectors[LO], vectors[HI], vectors[ALPHA], vectors[T]
    kinks, tied, size = c[:k].copy(), 0, 0.0
    for r in range(k):
        tied += t[r] == 0.0
    for j in range(d):
        size += abs(w[j])
    rho = typical * typical * (RHO if size > 0.0 else (TIED if 2 * tied > k else FIRST))
    bias = np.sqrt(rho)
    _widened(k, rho, vectors[NORMS])
    missing, size, free = summed(k, rest, lo, hi, alpha, signs)
    mu, mu_before, before = b - rho * missing, np.nan, 0.0
    low, high = -np.inf, np.inf  # between which the sum is right: it falls with mu
    iterations, touched, gap, primal, solved, extent = 0, 0, np.inf, 0.0, False, abs(b)
    for _ in range(MOST):
        extent = max(extent, max(abs(mu), abs(rho * missing)))
        shifted(k, kinks, signs, mu, c)
        v[d] = w[d] = bias * missing
        tight = How(TIGHT * tol, limit - iterations, screen, errors, True, steep)
        done, work, count, gap, primal = minimise(X, k, offset + mu * rest, v, w, tight, bias, room, team)
        iterations, touched, primal, b = iterations + done, touched + work, primal - 0.5 * w[d] ** 2, mu + bias * w[d]
        extent = max(extent, abs(bias * w[d]))
        missing, size, free = summed(k, rest, lo, hi, alpha, signs)
        following = next_multiplier(mu, missing, mu_before, before, mu + rho * missing)
        mu_before, before = mu, missing
        low, high = (max(low, mu), high) if missing > 0.0 else (low, min(high, mu))
        if not low < following < high and high - low < np.inf:
            following = 0.5 * (low + high)
        for _ in range(SHARES):
            if free == 0.0 or abs(missing) <= EXACT * size:
                break
            share_out(X, k, missing, free, v, where, lo, hi, alpha, signs)
            touched += int(free)
            missing, size, free = summed(k, rest, lo, hi, alpha, signs)
        gap = _slackness(count, k, alive, lo, hi, alpha, t)
        for j in range(d):
            gap += 0.5 * (w[j] - v[j]) ** 2
        solved = gap <= tol * abs(primal) and abs(missing) <= EXACT * size
        if solved or iterations >= limit or not gap < np.inf:
            break
        mu = following
        start = mu + rho * missing  # the intercept that the next problem begins with
        for r in range(k):
            alive[r] = r
            if count < k:  # those that a gap ball has fixed have not been looked at since
                t[r] = kinks[r] - signs[r] * (dot(X, where[r], w[:d]) + start)
            else:
                t[r] -= signs[r] * (start - b)
        touched += k if count < k else 0
    for r in range(k):
        c[r] = kinks[r]
    return iterations, touched, gap, primal, b, solved, extent


def warm_up():
    room, team = workspace(2, 3, False), alone()._replace(table=table_of(1, 3))
    room.vectors[:] = np.array([[1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]]).T
    room.lists[WHERE], room.lists[ALIVE], room.marks[SIGNS] = np.arange(2), np.arange(2), np.array([1, -1])
    w = np.zeros(3)
    X, where, ends, signs = matrix_of(np.eye(2)), np.arange(2), np.ones(2), np.ones(2, dtype=np.int8)
    missing, _, free = summed(2, 0.0, -ends, ends, np.zeros(2), signs)
    share_out(X, 2, missing, free, w.copy(), where, -ends, ends, np.zeros(2), signs)
    how = How(1e-6, 9, True, Errors(1e-12, 1e-15, 0.0, 0.0), True)
    minimise_free(X, 2, 0.0, 0.0, 0.0, 1.0, w.copy(), w, how, room, team)
