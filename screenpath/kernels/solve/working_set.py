"""Newton iterations on a working set, whose rows and vectors are compact copies.

After a step ``s`` along ``p = (I + sigma G_J'G_J)^-1 (v - w)``, ``J`` the rows not clipped, ``v`` would have changed by
``-s sigma G_J'G_J p = s (p - (v - w))`` if none had come to a clip, or from one: only those that have are read for it.

The threads of a team share the loops over rows; ``w``, ``v`` and the direction are each thread's own, and the same.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.barrier import half, meet, share
from screenpath.kernels.rows.matrix import products
from screenpath.kernels.rows.newton_system import DIRECT, GRAM, direction, inner
from screenpath.kernels.rows.rows import csr_sum, dense_sum_listed
from screenpath.kernels.rows.unowned import unowned

BALANCE = 0.5  # a proximal round ends when the gap of its minimisation is below this fraction of its slackness
FAST, MEDIUM, SLOW = 10.0, 4.0, 2.0  # growth of sigma after rounds of at most 2, at most 5, and more iterations
STEADY = 2.0  # its growth with conjugate gradients
SHORT, SMOOTHER = 0.2, 0.1  # two steps shorter than SHORT in a row, and sigma is multiplied by SMOOTHER
LONG = 30  # and after each LONG iterations of a proximal round
SAME = 1e-14  # of a box: up to which a row is where ``v`` has followed it
DRIFT = 1e-6  # of the target: what the errors of systems that ``v`` follows may add to the gap, about
# Rows of the vectors of a working set; U holds the products with the direction, START the dual variables at first.
C, LO, HI, PREV, ALPHA, T, U, START = range(8)
SCALARS = 5  # numbers that a block gives, before its part of the change of v
BLOCKS, LEAST = 8, 256  # a loop is cut into so many blocks, of at least so many rows


@kernel(inner=True, leaf=True)
def step_of(size, sparse):
    """Return the rows of a block. Sparse rows form one block: a block's part of v could be longer than its data."""
    if sparse:
        return max(size, 1)
    return LEAST if size <= BLOCKS * LEAST else (size + BLOCKS - 1) // BLOCKS


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _clip(X, sigma, step, shift, near, inside, moved, start, stop, v):
    """Move ``t`` by ``-step u``, bring ``alpha`` to it, and ``v`` to ``alpha``; mark the rows not clipped.

    If ``shift`` is not 0, ``v`` has followed a change by ``-shift u`` of the rows that were not clipped before.

    Returns ``sum_i phi_i(t_i)``, ``sum_i alpha_i t_i``, ``sum_i alpha_i c_i``, and the rows touched.
    """
    c, lo, hi, prev, alpha, t, u = near[C], near[LO], near[HI], near[PREV], near[ALPHA], near[T], near[U]
    first, end, same = at(start), at(stop), SAME if shift != 0.0 else 0.0
    # Loops that write to one array each: with more, the compiler gives up telling them apart, and does not vectorise.
    for r in range(first, end):
        t[r] -= step * u[r]
    for r in range(first, end):
        a, follows = alpha[r], shift * u[r]
        u[r] = a - (follows if (lo[r] < a) & (a < hi[r]) else 0.0)  # free until the next direction
    loss, linear, ell = 0.0, 0.0, 0.0
    for r in range(first, end):
        a = min(max(prev[r] + sigma * t[r], lo[r]), hi[r])
        alpha[r] = a
        loss += max(lo[r] * t[r], hi[r] * t[r])
        linear += a * t[r]
        ell += a * c[r]
    for r in range(first, end):
        change = alpha[r] - u[r]
        u[r] = 0.0 if abs(change) <= same * (hi[r] - lo[r]) else change
    for r in range(first, end):
        inside[r] = lo[r] < alpha[r] < hi[r]
    if X.sparse:
        touched = csr_sum(X.data, X.indices, X.indptr, u, v, start, stop)
    else:
        touched = dense_sum_listed(X.dense, u, v, start, stop, moved)
    return loss, linear, ell, touched


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _clip_all(X, sigma, step, shift, near, inside, moved, v, team):
    """:func:`_clip` in blocks that the team shares."""
    n, rows = inside.size, step_of(inside.size, X.sparse)
    first, last, blocks = share(team, n, rows)
    out = team.table[half(team)]
    for b in range(first, last):
        s, e = b * rows, min(n, (b + 1) * rows)
        part = v if X.sparse else out[b, SCALARS : SCALARS + v.size]
        if not X.sparse:
            for j in range(v.size):
                part[j] = 0.0
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = _clip(X, sigma, step, shift, near, inside, moved, s, e, part)
    meet(team)
    loss, linear, ell, touched = 0.0, 0.0, 0.0, 0.0
    for b in range(blocks):
        loss += out[b, 0]
        linear += out[b, 1]
        ell += out[b, 2]
        touched += out[b, 3]
        if not X.sparse:
            for j in range(v.size):
                v[j] += out[b, SCALARS + j]
    return loss, linear, ell, int(touched)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _slope(near, sigma, s, start, stop):
    """Return the rows' part of the first and second derivative of psi along the direction at step ``s``."""
    lo, hi, prev, alpha, t, u = near[LO], near[HI], near[PREV], near[ALPHA], near[T], near[U]
    first, second = 0.0, 0.0
    for r in range(at(start), at(stop)):
        z = prev[r] + sigma * (t[r] - s * u[r])
        a = min(max(z, lo[r]), hi[r])
        first += (alpha[r] - a) * u[r]
        second += u[r] * u[r] if a == z else 0.0
    return first, second


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def slope_all(X, sigma, p, s, forming, near, n, team):
    """:func:`_slope` in blocks that the team shares; computes the products with ``p`` as well if asked to."""
    rows = step_of(n, X.sparse)
    first, last, blocks = share(team, n, rows)
    out = team.table[half(team)]
    for b in range(first, last):
        i, e = b * rows, min(n, (b + 1) * rows)
        if forming:
            products(X, p, near[U], i, e)
        out[b, 0], out[b, 1] = _slope(near, sigma, s, i, e)
    meet(team)
    one, two = 0.0, 0.0
    for b in range(blocks):
        one += out[b, 0]
        two += out[b, 1]
    return one, sigma * two


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def line_search(X, sigma, p, rest, slope0, forming, near, n, team):
    """Return a step length at which the directional derivative, increasing and piecewise linear, is nearly 0.

    ``rest`` is what the rows do not add to the derivative at 0, ``slope0``; their products with the direction are
    computed if asked to. A full step is kept where it brings the derivative below a quarter of its start.
    Otherwise Newton steps on the derivative, safeguarded by its bracket; none of them touches a row.
    """
    quadratic = inner(p, p)
    low, high = 0.0, np.inf
    s = 1.0
    for trial in range(30):
        first, second = slope_all(X, sigma, p, s, forming and trial == 0, near, n, team)
        first += rest + s * quadratic
        second += quadratic
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


@kernel(fastmath=SUMS, inner=True)
def solve_near(X, offset, w, v, goal, sigma, near, inside, H, team):
    """Minimise the problem of a working set of signed rows; return its iterations, rows touched, last ``sigma``, and
    the length of all steps of ``w``.

    ``offset`` is ``c . alpha`` of all other rows, ``sigma`` at first the proximal parameter to begin with. ``w`` and
    ``v`` are overwritten. ``goal``: relative gap, iterations at most, and whether ``v`` has to be exact up to the
    rounding of a sum over rows. Of ``near``, shape (8, n), ``U`` is 0, and ``PREV``, ``ALPHA``, ``START`` and ``T``
    hold the start and are overwritten but ``START``. ``inside``, int8 of shape (n,), and ``H``, shape (d, d) or larger,
    are work space.
    """
    X, n, d, (tol, limit, exact) = unowned(X), inside.size, w.size, goal
    iterative = d > DIRECT and n > GRAM  # a better conditioned system is worth a round more
    order = d if d <= DIRECT else 0
    scratch, p, v_start, shift, drift = np.empty((order, order)), np.empty(d), v.copy(), 0.0, 0.0
    members, moved = np.empty(n, dtype=np.int8), np.empty(n + 1, dtype=np.int64)
    for r in range(n):
        members[r] = 0
    iterations, in_round, touched, short, cautious, step, length = 0, 0, 0, 0, False, 0.0, 0.0
    while True:
        loss, linear, ell, work = _clip_all(X, sigma, step, shift, near, inside, moved, v, team)
        touched, step, shift = touched + work, 0.0, 0.0
        for j in range(d):
            p[j] = v[j] - w[j]
        half_sq, slackness = 0.5 * inner(p, p), loss - linear
        primal = 0.5 * inner(w, w) - inner(v, w) + ell - linear + loss + offset
        dual, primal = primal - half_sq - slackness, abs(primal)
        if half_sq + slackness <= tol * primal or iterations >= limit:
            if drift == 0.0 or not exact:
                break
            _renew(near, START, ALPHA, n, X.sparse, team)
            for j in range(d):
                v[j] = v_start[j]
            drift = 0.0
            continue
        if in_round > 0 and (half_sq <= BALANCE * slackness or half_sq <= 1e-30 * primal):
            _renew(near, ALPHA, PREV, n, X.sparse, team)  # the next proximal round
            growth = FAST if in_round <= 2 else (MEDIUM if in_round <= 5 else SLOW)
            sigma *= STEADY if iterative else (min(growth, MEDIUM) if cautious else growth)
            in_round, short = 0, 0
            continue
        work, error = direction(X, inside, members, moved, H, scratch, sigma, p, team)
        touched += n + work
        slope = inner(w, p) - inner(v, p)
        step = line_search(X, sigma, p, slope, slope, True, near, n, team)
        length += step * np.sqrt(inner(p, p))
        iterations += 1
        in_round += 1
        short = short + 1 if step < SHORT else 0
        # The kinks are too sharp for where w stands, or for the arithmetic: between two of them the iterates can cycle.
        sharp = short >= 2 or in_round % LONG == 0
        # By the dual value, below the optimum: a primal value on the way may be far above it, and so the target.
        if (drift + step * error) ** 2 <= DRIFT * tol * max(dual, 0.0) and not sharp:
            shift, drift = sigma * step, drift + step * error
        for j in range(d):
            if shift != 0.0:
                v[j] += step * (p[j] - (v[j] - w[j]))
            w[j] += step * p[j]
        if sharp:
            sigma *= SMOOTHER
            short, cautious = 0, True
    return iterations, touched, sigma, length


@kernel(forceinline=True, leaf=True)
def _renew(near, source, target, n, sparse, team):
    """Copy a vector of the working set: the dual point becomes the centre of a round, or is what it was at first."""
    rows = step_of(n, sparse)
    first, last, _ = share(team, n, rows)
    for r in range(min(first * rows, n), min(last * rows, n)):
        near[target, r] = near[source, r]
