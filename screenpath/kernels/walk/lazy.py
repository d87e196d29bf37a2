"""Certificates that read only the rows near their kinks (``deadlines``), for a compiled walk.

With a free intercept the best one for ``w`` is found among the rows that are read: the others stay on their sides.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem import box, intercept
from screenpath.kernels.problem.box import (
    ALL_KINKS,
    ALL_NORMS,
    ALL_ONES,
    FEATURE_SUM,
    HIDDEN,
    KINK,
    PRODUCT,
    ROW_SUM,
    SLOPE,
    UNIT,
)
from screenpath.kernels.rows.matrix import add, listed_products
from screenpath.kernels.solve.margins import ALPHA, HI, LO, WHERE, T
from screenpath.kernels.walk import compiled_types as fields
from screenpath.kernels.walk import deadlines as of
from screenpath.kernels.walk.deadlines import _left, deadline, distance, look, new_version, put_off

NEARBY = 0.3  # of the last step's move: rows that such a move brings to their kink are solved for
SHRINK, GROW, TRIES = 0.5, 2.0, 18  # of how far a working set goes: from step to step, and while it has too few rows
ASTRAY = 32.0  # how far a solve may move w, in units of how far its working set goes
ABLE = 16.0  # how far the dual variables of a working set can move the sum over rows, for what it is away from w
FEW = 2.0  # rows of a working set for each that is between its ends, at least
CLOSE = 0.25  # of a step's move: rows read for a certificate join the working set if they are so close to their kink
ROOM = 11  # versions for which there has to be room when a step begins
APART = 4.0  # times the sizes of the intercept and the kinks: what a solver's distances may have been computed from


@kernel(leaf=True)
def enter(first, last, theta, lazy):
    """Add the rows of the list ``near`` from ``first`` to ``last`` to the working set."""
    for q in range(first, last):
        i = lazy.near[q]
        lazy.sides[i], lazy.held[q], lazy.deadlines[i] = 0, theta[i], np.inf


@kernel
def leave(problem, theta, count, ends, lazy):
    """Empty the working set: its rows are at the ends that they have now, or have no deadline; sums follow."""
    state, values, signs = lazy.state, np.empty(2 * count), np.empty(2 * count, dtype=np.int8)
    state[of.LINEAR], state[of.LINEAR_ERROR] = _linear(problem.c, theta, count, lazy)
    for q in range(count):
        i = lazy.near[q]
        values[2 * q], values[2 * q + 1], signs[2 * q : 2 * q + 2] = theta[i], -lazy.held[q], problem.signs[i]
        lazy.sides[i] = ends[i] if ends[i] != 0 else of.BETWEEN
        put_off(i, deadline(_left(i, problem, lazy), state), lazy)
    moved, error = intercept.excess(values, signs)
    state[of.SIGNED] += moved
    state[of.SIGNED_ERROR] += error + UNIT * abs(state[of.SIGNED])


@kernel(inner=True, leaf=True)
def working_set(X, problem, C, w, theta, total, n_E, lazy):
    """Choose the rows that a step solves for: all that a move of ``w`` like the last ones could bring to their kinks.

    They are more than the ``n_E`` between their ends, and their dual variables could move the sum ``total`` over rows
    by more than it is away from ``w``: else ``w`` would move too far. Returns how many rows, and how many were read.
    """
    read, (versions, _), state = 0, lazy.points.shape, lazy.state
    if state[of.VERSIONS] + ROOM > versions:
        read = renew(X, problem, w, lazy)
    apart, able = 0.0, 0.0
    for j in range(w.size):
        apart += (w[j] - C * total[j]) ** 2
    near, state[of.REACH] = 0, max(NEARBY * state[of.MOVE], SHRINK * state[of.REACH])
    for _ in range(TRIES):
        first = near
        near, more = look(X, problem, w, state[of.REACH], state[of.REACH], first, lazy)
        enter(first, near, theta, lazy)
        read += more
        for q in range(first, near):
            i = lazy.near[q]
            able += C * (problem.hi[i] - problem.lo[i]) * problem.norms[i]
        if near >= FEW * n_E + w.size and able >= ABLE * np.sqrt(apart):
            break
        state[of.REACH] *= GROW
    state[of.MOVE] = 0.0
    return near, read


@kernel(inner=True, leaf=True)
def widened(X, problem, w, count, theta, lazy):
    """Add rows to the working set, ``count`` of them in it, if a step's first solve has moved ``w`` too far for them:
    it has thrown others over their kinks. Then ``w`` and the dual variables become what they were before.

    Returns how many rows there are now, and how many were read.
    """
    state, near, read = lazy.state, count, 0
    before = lazy.points[int(state[of.VERSIONS]) - 1]
    if state[of.MOVE] > 0.0:
        return near, read
    move = distance(w, 1.0, before, 0.0, before, lazy, problem.bounds)
    while near < FEW * count and move > ASTRAY * state[of.REACH]:
        state[of.REACH] *= GROW
        first = near
        near, more = look(X, problem, before[: w.size], state[of.REACH], state[of.REACH], first, lazy)
        enter(first, near, theta, lazy)
        read += more
    if near > count:
        put_back(lazy.near[:count], lazy.held, theta)
        for j in range(w.size):
            w[j] = before[j]
    return near, read


@kernel(inner=True, leaf=True)
def begin(ends, lazy):
    """Note the ends of all dual variables; the working set is empty. Returns the smallest size of a row."""
    least = lazy.state[of.LEAST]
    for i in range(ends.size):
        lazy.sides[i] = ends[i] if ends[i] != 0 else of.BETWEEN
        least = min(least, lazy.sizes[i])
    return least


@kernel(inner=True, leaf=True)
def at_ends(size, room, lo, hi, theta):
    """Put the dual variables that a solve has brought to an end exactly there: ``C hi / C`` need not be ``hi``."""
    for r in range(size):
        i, alpha = room.lists[WHERE, r], room.vectors[ALPHA, r]
        if alpha == room.vectors[HI, r]:
            theta[i] = hi[i]
        elif alpha == room.vectors[LO, r]:
            theta[i] = lo[i]


@kernel(inner=True, leaf=True)
def put_back(listed, held, theta):
    """Undo the changes of a step that is refused."""
    for q in range(listed.size):
        theta[listed[q]] = held[q]


@kernel(inner=True, leaf=True)
def back(X, problem, w, b, size, room, lazy):
    """Write the distances from the kinks at another point to the solver's workspace; return how many."""
    where, t = room.lists[WHERE, :size], room.vectors[T]
    listed_products(X, where, w, lazy.values)
    for r in range(size):
        i = at(where[r])
        t[r] = problem.c[i] - problem.signs[i] * (lazy.values[r] + b)
    return size


@kernel(inner=True)
def balanced(problem, free, w, place, size, same, theta, room, lazy, now):
    """Find the best intercept and balance the dual point, as ``_balanced`` does for all rows, by the ``size`` rows of
    the solver's workspace; whether the others are on their sides is for :func:`certify` to say.

    ``place`` is the intercept for which the solver has the distances from the kinks, and the largest that it has
    computed them from. Returns whether this was possible: of the ``same`` dual point, as it is.
    """
    where, own, level, n, (b, extent) = room.lists[WHERE], room.vectors[T], 0.0, 0, place
    if size == 0 or not extent <= APART * (abs(b) + lazy.most):
        return False
    keys, widths, norms, values, lo, hi, t = np.zeros((7, 2 * size))
    likely, signs = np.empty(size, dtype=np.int64), np.empty(2 * size, dtype=np.int8)
    for r in range(size):  # their sum changes by these values, and those before the step subtracted
        i, j = at(where[r]), at(lazy.near[r])
        values[r], lo[r], hi[r], signs[r] = theta[i], problem.lo[i], problem.hi[i], problem.signs[i]
        values[size + r], signs[size + r] = -lazy.held[r], problem.signs[j]
        keys[r], widths[r], norms[r] = signs[r] * own[r], hi[r] - lo[r], problem.norms[i]
        level += hi[r] - values[r] if signs[r] > 0 else values[r] - lo[r]
    low, high = intercept.best_interval(keys[:size], widths[:size], level, free.slack, likely[:0], np.empty((2, size)))
    middle = intercept.best_of(low, high)
    now[fields.INTERCEPT], now[fields.LOW], now[fields.HIGH] = b + middle, b + low, b + high
    for r in range(size):
        own[r] -= signs[r] * middle
        t[r], likely[at(n)] = own[r], r
        n += (lo[r] < values[r]) & (values[r] < hi[r])
    before = lazy.state[of.SIGNED], lazy.state[of.SIGNED_ERROR]
    residue, fall, rise, moved, left = intercept.balance(
        before, values, t, lo, hi, signs, free.largest, likely[:n], True
    )  # fmt: skip
    if not residue < np.inf:  # a rough solve has left so few between their ends: some other takes what rounding leaves
        for r in range(size):
            likely[r] = r
        residue, fall, rise, more, left = intercept.balance(
            before, values, t, lo, hi, signs, free.largest, likely, True
        )  # fmt: skip
        moved += more
    for r in range(size):
        theta[where[r]] = values[r]
    slope, floor = intercept.form_errors(w, now[fields.INTERCEPT], problem.bounds)
    floor += of.SOLVED * (abs(b) + lazy.most)
    now[fields.SHIFT], now[fields.COST] = intercept.residue_costs(residue, fall, rise, norms, t, slope, floor)
    now[fields.RESIDUE] = residue * (1.0 + 8.0 * UNIT)
    return left == 0.0 and residue < np.inf and not (same and moved > 0)


@kernel(inner=True, leaf=True)
def certify(X, problem, C, w, theta, total, count, room, lazy, now):
    """Write what ``box.box_objectives`` finds to ``now``, for a new version ``w``, reading the rows that may matter.

    The losses are ``sum c theta - w.total + sum (phi_i(t_i) - theta_i t_i)``: no margin of a row at its end enters.

    ``count``: rows of the working set. They are those in the solver's workspace ``room``, which has their exact
    distances from the kinks.

    Returns ``near``, ``read``: see :func:`look`: rows that a further solve should add to the working set follow those
    of it; ``best``: whether the intercept is the best one of all rows.
    """
    c, lo, hi, norms, bounds = problem.c, problem.lo, problem.hi, problem.norms, problem.bounds
    b = now[fields.INTERCEPT]
    version, move = new_version(w, b, problem, lazy)
    lazy.state[of.MOVE] += move
    slope, floor = lazy.facts[version, of.ERROR_SLOPE], lazy.facts[version, of.ERROR_FLOOR]
    plain, slack, inner, w_sq, total_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(count):
        i, t = at(room.lists[WHERE, r]), room.vectors[T, r]
        error = slope * norms[i] + floor + 8.0 * UNIT * (2.0 * abs(c[i]) + abs(t))  # of a start that was good enough
        _, part, most = box.row_terms(t, 0.0, lo[i], hi[i], theta[i], error)
        plain, slack = plain + part, slack + most
        lazy.margins[i], lazy.version[i] = c[i] - t - problem.signs[i] * b, version
    half, best, free = 0.5 * (now[fields.HIGH] - now[fields.LOW]), True, lazy.mean.size > 0
    near, read = look(X, problem, w, half, max(half, CLOSE * lazy.state[of.MOVE]), count, lazy)
    for q in range(count, near):
        i = at(lazy.near[q])
        form = lazy.margins[i] + problem.signs[i] * b
        _, part, most = box.row_terms(c[i], form, lo[i], hi[i], theta[i], slope * norms[i] + floor)
        plain, slack = plain + part, slack + most
        best = best and not (free and (part > 0.0 or abs(c[i] - form) < half))
    ell, ell_error = _linear(c, theta, count, lazy)
    for j in range(w.size):
        inner, w_sq, total_sq = inner + w[j] * total[j], w_sq + w[j] * w[j], total_sq + total[j] * total[j]
    xi = max(ell - inner + plain, 0.0)
    size_w, size_v = np.sqrt(w_sq) + bounds[HIDDEN], np.sqrt(total_sq) + bounds[HIDDEN]
    off = size_w * (now[fields.SUM_ERROR] + bounds[HIDDEN] + bounds[SLOPE] * bounds[ALL_NORMS])
    off += bounds[FEATURE_SUM] * size_w * size_v + (slack - plain) + (bounds[ROW_SUM] + 8.0 * UNIT) * slack
    off += ell_error + (bounds[SLOPE] + 8.0 * UNIT) * bounds[ALL_KINKS] + bounds[KINK] * bounds[ALL_ONES]
    off += abs(b) * (now[fields.RESIDUE] + bounds[SLOPE] * bounds[ALL_ONES])
    off = (off + 8.0 * UNIT * (abs(ell) + abs(inner))) * (1.0 + 4.0 * bounds[FEATURE_SUM])
    found_ = box.box_objectives(
        C, w, total, now[fields.SUM_ERROR] + now[fields.SHIFT], xi, ell, plain, slack + now[fields.COST], slope, floor,
        bounds,
    )  # fmt: skip
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10] = found_
    now[fields.ERROR] = 2.0 * off + now[fields.COST] + now[fields.RESIDUE] * lazy.most
    now[fields.PRIMAL + 1] = (bounds[FEATURE_SUM] * w_sq + C * off) * (1.0 + 8.0 * UNIT)
    now[fields.GAP] += 4.0 * C * bounds[SLOPE] * off
    now[fields.ROUNDING] += 4.0 * C * bounds[SLOPE] * off
    return near, read, best


@kernel(leaf=True)
def _linear(c, theta, count, lazy):
    """Return ``c . theta`` from that before the step, and a bound on its error."""
    moved, size = 0.0, 0.0
    for q in range(count):
        i = at(lazy.near[q])
        moved += c[i] * (theta[i] - lazy.held[q])
        size += abs(c[i]) * (abs(theta[i]) + abs(lazy.held[q]))
    linear = lazy.state[of.LINEAR] + moved
    return linear, lazy.state[of.LINEAR_ERROR] + box.relative_error(count + 4.0) * size + 2.0 * UNIT * abs(linear)


@kernel(inner=True)
def levered(X, problem, C, ball, residue, theta, near, lazy):
    """Return how much more than the reach of the ball times its ``spread`` the form of a row may change up to any
    optimum at ``C``, for the intercept; inf if unknown. Also returns the rows read, the ``near`` that can compensate.

    ``ball`` has the reach of the ball of the present pair from ``w``, and its radius ``r``; ``residue`` is that of the
    pair. With ``v`` in proportion to the room of rows in their boxes, ``kappa`` in all, ``mu = sum v_i x_i`` and
    ``t_v = sum v_i t_i``, an optimal form ``x.w + b`` differs from the present one by at most ``reach ||x - mu|| +
    |t_v| + r^2 / (C kappa)``: the lever of ``regions.lever``, not as wide as ``r ||x - mu|| + r^2 / (C kappa)``.
    """
    bounds, d, now = problem.bounds, lazy.units.size, int(lazy.state[of.VERSIONS]) - 1
    b, slope, floor = lazy.points[now, d], lazy.facts[now, of.ERROR_SLOPE], lazy.facts[now, of.ERROR_FLOOR]
    center, total, apart, size, count = np.zeros(d), 0.0, 0.0, 0.0, 0
    for q in range(near):
        i = lazy.near[q]
        c, margin, norm, sign = problem.c[i], lazy.margins[i], problem.norms[i], problem.signs[i]
        room = min(theta[i] - problem.lo[i], problem.hi[i] - theta[i])
        if room > 0.0:
            error = slope * norm + floor + 8.0 * UNIT * (abs(c) + abs(margin) + abs(b))
            total, size, apart = total + room, size + room * norm, apart + room * (abs(c - margin - sign * b) + error)
            add(X, i, room * sign, center)
            count += 1
    rounded = box.relative_error(count + 8.0)
    kappa = total * (1.0 - rounded) - residue
    if not kappa > 0.0:
        return np.inf, count
    square, length = 0.0, 0.0
    for j in range(d):
        square, length = square + (center[j] / total - lazy.mean[j]) ** 2, length + lazy.mean[j] ** 2
    away = np.sqrt(square) + (rounded + 4.0 * bounds[PRODUCT]) * (size / total + np.sqrt(length)) + bounds[HIDDEN]
    reach, radius = ball
    return (reach * away + apart / total + radius * radius / (C * kappa)) * (1.0 + 4.0 * rounded), count


@kernel(fastmath=SUMS, leaf=True, inner=True)
def decided(reach, more, bounds, lazy):
    """Return how many rows are on one side wherever their form changes by at most ``reach`` times their length, which
    ``ratios`` are of, and by ``more`` times the smallest size: at either end.
    """
    n_R, n_L, odometer = 0, 0, lazy.state[of.ODOMETER]
    others = lazy.state[of.LIMIT] - odometer > reach * (1.0 + 4.0 * bounds[PRODUCT]) * lazy.state[of.RATIO] + more
    deadlines, ratios, sides = lazy.deadlines, lazy.ratios, lazy.sides
    reach *= 1.0 + 4.0 * bounds[PRODUCT]
    for i in range(at(ratios.size)):
        past = deadlines[i] - odometer > reach * ratios[i] + more
        n_R += past & (sides[i] < 0)
        n_L += past & (sides[i] > 0)
    return n_R + others * lazy.state[of.OTHERS_R], n_L + others * lazy.state[of.OTHERS_L]


@kernel
def renew(X, problem, w, lazy):
    """Make room for versions: forget those of no row, and read the rows of the older half; return how many."""
    read, state, n, found, values = 0, lazy.state, lazy.margins.size, lazy.found, lazy.values
    last = int(state[of.VERSIONS]) - 1
    used = np.zeros(last + 1, dtype=np.int32)
    for i in range(n):
        used[lazy.version[i]] = 1
    used[0], used[last], kept = 1, 1, 0  # the base is kept
    for r in range(last + 1):
        kept += used[r]
    if 2 * kept > lazy.points.shape[0]:
        drop = kept // 2
        for r in range(1, last):  # the oldest
            if used[r] > 0 and drop > 0:
                used[r], drop = 0, drop - 1
        for i in range(n):
            if used[lazy.version[i]] == 0:
                found[read] = i
                read += 1
        listed_products(X, found[:read], w, values)
        for q in range(read):
            i = at(found[q])
            lazy.margins[i], lazy.version[i] = problem.signs[i] * values[q], last
    kept = 0
    for r in range(last + 1):
        if used[r] > 0:
            for j in range(w.size + 1):
                lazy.points[kept, j] = lazy.points[r, j]
            for j in range(lazy.metric.shape[0]):
                lazy.placed[kept, j] = lazy.placed[r, j]
            for j in range(lazy.facts.shape[1]):
                lazy.facts[kept, j] = lazy.facts[r, j]
            used[r], kept = kept, kept + 1
    for i in range(n):
        lazy.version[i] = used[lazy.version[i]]
    state[of.VERSIONS] = kept
    return read
