"""Semismooth Newton on the proximal dual (augmented Lagrangian) of a reduced box problem.

One proximal round fixes ``prev`` and ``sigma`` and minimises over ``w`` the smooth, strongly convex

    psi(w) = 1/2 ||w||^2 - base.w + sum_i envelope_i,   gradient  w - v(w),  v(w) = base + sum_i alpha_i(w) g_i,
    alpha_i(w) = clip(prev_i + sigma t_i, lo_i, hi_i),  t_i = c_i - g_i.w

by Newton's method: generalised Hessian ``I + sigma G_J'G_J``, ``J`` the rows not clipped, followed by a line search on
the piecewise linear directional derivative. ``base`` (the sum of the fixed rows) is never formed: ``base.w = v.w -
sum_i alpha_i g_i.w``, whose products are known. Every iterate is a pair (w, alpha(w)) whose gap is known without
cancellation: ``1/2 ||w - v||^2 + sum_i (phi_i(t_i) - alpha_i t_i)``, both parts nonnegative. The proximal round ends
when the first part is small beside the second.

Newton iterations touch a working set of rows near their kink; the rest sits at the end its margin points to. When the
working set is solved, one pass over all rows finds those on the wrong side, and the gap of the whole reduced problem.

The threads of a team share the loops over rows (see ``barrier``); ``w`` and ``v`` are each thread's own, and the same.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.box import Errors, radius_around
from screenpath.kernels.rows.barrier import Team, half, make_board, meet, share
from screenpath.kernels.rows.matrix import Matrix, _relabel, add, matrix_of, taken
from screenpath.kernels.rows.newton_system import DIRECT, GRAM, inner
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve import margins
from screenpath.kernels.solve import working_set as set_of
from screenpath.kernels.solve.margins import ALIVE, ALPHA, CHOSEN, HI, LO, NEAR, NORMS, SIGNS, WHERE, C, T
from screenpath.kernels.solve.working_set import SCALARS, solve_near, step_of

ZONE = 4  # the first sigma leaves about this many rows per feature unclipped
SIGMA_LEAST, SIGMA_MOST = 1e-3, 1e8  # and is at least and at most this over the mean squared row norm
ROUGH = 10.0  # first sigma, times the mean squared row norm, with conjugate gradients
NEAR_PER_FEATURE, NEAR_FREE, NEAR_SHARE, NEAR_LEAST = 1, 2, 0.1, 16  # rows of the first working set
POOR_START = 0.1  # relative gap from which all rows are near
LOOSE = 0.05  # of the gap: a working set is solved no closer before all rows are looked at again
MORE = 4.0  # times the last change of its margin: how near a row is, with each round that does not halve the gap
AIM = 0.9  # and to this fraction of the target, at the end

class How(NamedTuple):
    """How far to go: to a relative gap, or so many Newton iterations; ``screen`` fixes the rows that the gap ball of
    the current pair decides. ``exact`` asks for margins, ``T``, that are products with the result. ``steep``: the first
    sigma, times what leaves as many rows between the clips as ``ZONE`` says.
    """

    tol: float
    limit: int
    screen: bool
    errors: Errors
    exact: bool = False
    steep: float = 1.0


@kernel(fastmath=SUMS, leaf=True)
def _border(t, want, team):
    """Return a value that about ``want`` of the ``|t|`` do not exceed; within a factor of 1.5, which is enough."""
    rows = step_of(t.size, False)
    first, last, blocks = share(team, t.size, rows)
    border = -1.0
    for _ in range(100):
        out, found = team.table[half(team)], 0.0
        for b in range(first, last):
            s, e = b * rows, min(t.size, (b + 1) * rows)
            out[b, 0] = _most(t, s, e) if border < 0.0 else _within(t, border, s, e)
        meet(team)
        for b in range(blocks):
            found = max(found, out[b, 0]) if border < 0.0 else found + out[b, 0]
        if border < 0.0:
            border = found
        elif found <= want:
            break
        else:
            border /= 1.5
    return max(border, 0.0)


@kernel(fastmath=SUMS, leaf=True)
def _most(t, start, stop):
    most = 0.0
    for r in range(at(start), at(stop)):
        most = max(most, abs(t[r]))
    return most


@kernel(fastmath=SUMS, leaf=True)
def _within(t, border, start, stop):
    count = 0
    for r in range(at(start), at(stop)):
        count += abs(t[r]) <= border
    return float(count)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _part(X, reach, odometer, rounding, border, times, bias, room, start, stop, v):
    """Separate alive rows: fixed by the ball around w, put at the end that their margin points to; far from their kink
    and at this end; and near ones. Changes go into ``v``.

    Near are those within ``border`` of their kink, or so many ``times`` what the last change of w has moved them by.

    Returns ``n_kept``, ``n_near``: rows not fixed, rows that are near, which are listed from ``start`` on in ``KEPT``
    and ``CHOSEN``; ``known``, ``linear``: ``c . alpha`` of the rows fixed, and of the far ones; ``touched``.
    """
    vectors, lists = room.vectors, room.lists
    c, lo, hi = vectors[C], vectors[LO], vectors[HI]
    norms, t, alpha, u, due = vectors[NORMS], vectors[T], vectors[ALPHA], vectors[margins.U], vectors[margins.DUE]
    alive, where, signs = lists[ALIVE], lists[WHERE], room.marks[SIGNS]
    kept, near, moved = lists[margins.KEPT], lists[CHOSEN], lists[NEAR]  # the last of which is filled later
    n_kept, n_near, n_moved, known, linear = start, start, start, 0.0, 0.0
    for r in range(at(start), at(stop)):  # no branches: nobody could predict them
        i = at(alive[r])
        size = abs(t[i])
        # Not more than this is sure of a row that was not read for w.
        sure = min(size, (due[i] - odometer) * norms[i]) if norms[i] > 0.0 else size
        fixed = (reach >= 0.0) & (sure > reach * norms[i] + rounding * abs(c[i]))
        value = hi[i] if t[i] > 0.0 else lo[i]
        close = ((size <= border + times * abs(u[i])) | (alpha[i] != value)) & (not fixed)
        kept[at(n_kept)], near[at(n_near)], moved[at(n_moved)] = alive[r], alive[r], alive[r]  # unless overwritten
        n_kept += not fixed
        n_near += close
        n_moved += fixed & (value != alpha[i])
        u[i] = 0.0
        term = 0.0 if close else value * c[i]
        linear += term
        known += term if fixed else 0.0
    for m in range(start, n_moved):
        i = at(moved[m])
        value = hi[i] if t[i] > 0.0 else lo[i]
        add(X, where[i], signs[i] * (value - alpha[i]), v)
        if bias != 0.0:
            v[v.size - 1] += signs[i] * (value - alpha[i]) * bias
        alpha[i] = value
    return n_kept - start, n_near - start, known, linear - known, n_moved - start


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _part_all(X, reach, odometer, rounding, border, times, bias, count, v, room, team):
    """:func:`_part` in blocks that the team shares; then the lists are closed up, and the working set is copied."""
    lists, rows = room.lists, step_of(count, X.sparse)
    first, last, blocks = share(team, count, rows)
    out = team.table[half(team)]
    for b in range(first, last):
        s, e = b * rows, min(count, (b + 1) * rows)
        part = v if X.sparse else out[b, SCALARS : SCALARS + v.size]
        if not X.sparse:
            for j in range(v.size):
                part[j] = 0.0
        out[b, 0], out[b, 1], out[b, 2], out[b, 3], out[b, 4] = _part(
            X, reach, odometer, rounding, border, times, bias, room, s, e, part
        )
    meet(team)
    # Numbers that are known to the compiler would be types of their own, each with its copy of what it is passed to.
    kept, n, touched, known, linear = np.int64(0), np.int64(0), 0.0, 0.0, 0.0
    for b in range(blocks):
        n_kept, n_near = int(out[b, 0]), int(out[b, 1])
        if first <= b < last:
            s = b * rows
            for r in range(n_kept):  # element by element: assignments of slices compile for seconds
                lists[ALIVE, kept + r] = lists[margins.KEPT, s + r]
            for r in range(n_near):
                lists[NEAR, n + r] = lists[CHOSEN, s + r]
            _gather(X, lists[NEAR, n : n + n_near], n, bias, room)
        kept, n = kept + n_kept, n + n_near
        known += out[b, 2]
        linear += out[b, 3]
        touched += out[b, 4]
        if not X.sparse:
            for j in range(v.size):
                v[j] += out[b, SCALARS + j]
    meet(team)
    return kept, n, known, linear, int(touched)


@kernel(forceinline=True, leaf=True)
def _gather(X, chosen, first, bias, room):
    """Copy the vectors of chosen rows to the working set, from its row ``first`` on; sparse rows are copied later."""
    vectors, near, where, signs = room.vectors, room.near, room.lists[WHERE], room.marks[SIGNS]
    last = first + chosen.size
    c, lo, hi = near[set_of.C, first:last], near[set_of.LO, first:last], near[set_of.HI, first:last]
    prev, alpha, t = near[set_of.PREV, first:last], near[set_of.ALPHA, first:last], near[set_of.T, first:last]
    u, begin = near[set_of.U, first:last], near[set_of.START, first:last]
    for k in range(at(chosen.size)):
        u[k] = 0.0
    for k in range(at(chosen.size)):
        i = at(chosen[k])
        c[k], lo[k], hi[k], t[k] = vectors[C, i], vectors[LO, i], vectors[HI, i], vectors[T, i]
        prev[k] = alpha[k] = begin[k] = vectors[ALPHA, i]
    if not X.sparse:
        dense, G = X.dense, room.G
        for k in range(chosen.size):
            i, r = at(where[at(chosen[k])]), at(first + k)
            sign = float(signs[at(chosen[k])])
            for j in range(dense.shape[1]):
                G[r, j] = sign * dense[i, j]
            if bias != 0.0:
                G[r, dense.shape[1]] = sign * bias


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _first_sigma(near, n, want, mean_sq, steep, team):
    """Return ``steep`` times the proximal parameter whose zone between the clips holds about ``ZONE * d`` rows."""
    widest, lo, hi = 0.0, near[set_of.LO, :n], near[set_of.HI, :n]
    for r in range(n):
        widest = max(widest, hi[r] - lo[r])
    zone = _border(near[set_of.T, :n], want, team)
    if mean_sq == 0.0 or widest == 0.0:
        return 1.0
    sigma = steep * widest / zone if zone > 0.0 else np.inf  # margins that are all 0 up to rounding leave no zone
    return min(max(sigma, SIGMA_LEAST / mean_sq), SIGMA_MOST / mean_sq)


@kernel(fastmath=SUMS)
def minimise(X, k, offset, v, w, how, bias, room, team):
    """Minimise a reduced box problem of ``k`` rows to a relative gap, by all threads of a team.

    The arrays may have room for more than ``k`` rows. ``v`` and ``w``, of shape (d,), are the thread's own.

    ``X``: sparse rows need a team of one thread. ``offset``: ``c . alpha`` of the rows fixed beforehand. ``v``: ``base
    + G'alpha`` at the start, ``base`` the sum of the rows fixed beforehand; overwritten. ``w``: primal point to start
    from; overwritten by the result. ``bias``: if not 0, each row has one more column than in ``X``, with this times its
    sign; the norms count it. ``team``: with a table from :func:`margins.table_of`.

    Returns ``iterations``, ``touched``; ``count``: rows that the gap ball has not fixed; ``gap``, ``primal``: of the
    returned pair.
    """
    X, room, team, (tol, limit, screen, errors, exact, steep) = unowned(X), unowned(room), unowned(team), how
    v, w = unowned(v), unowned(w)
    vectors, near, lists, sparse = room.vectors, room.near, room.lists, X.sparse
    count, touched, iterations = k, 0, 0
    mean_sq, widths, free = margins.sizes(vectors, k, sparse, team)
    rows = Matrix(room.G, X.data, X.indices, X.indptr, sparse)
    n_w, n_v, columns, move = w, v, lists[NEAR, :0].copy(), 0.0
    sigma, last, idle, every, times, part, old = -1.0, np.inf, False, False, 0.0, 1.0, w.copy()
    known, odometer, length = offset, 0.0, 0.0  # with the rows that screening fixes here; of w's moves, and all steps
    while True:
        loss, linear, ell = margins.losses(count, count == k, sparse, vectors, lists, team)
        apart = 0.0  # ||w - v||^2
        for j in range(w.size):
            apart += (w[j] - v[j]) ** 2
        gap = 0.5 * apart + loss - linear
        w_sq = inner(w, w)
        primal = 0.5 * w_sq - inner(v, w) + ell - linear + loss + known
        stalled = gap > 0.5 * last
        if stalled and part < 0.0:
            part = margins.best_share(X, k, old, w, v, room, team)
            odometer += move * (1.0 - part)
            continue
        # Idle and stalled: all rows were near and nothing moved, the accuracy of the arithmetic is reached.
        if gap <= tol * abs(primal) or iterations >= limit or (idle and every and stalled) or not gap < np.inf:
            break
        last, reach, rounding, part = gap, -1.0, 0.0, -1.0
        for j in range(w.size):
            old[j] = w[j]
        if screen:
            # A margin that the solver has updated is off by what each of its steps has rounded.
            steps = 4.0 * (iterations + 1.0) if length > 0.0 else 1.0
            size = np.sqrt(w_sq) + steps * length
            radius = radius_around(
                loss - linear, steps * (loss + abs(linear)), size, np.sqrt(apart), widths, k, float(touched), errors
            )
            reach, rounding = radius + errors.rounding * (size + radius), errors.rounding * steps
        # Working set: the rows on their wrong side, at first those closest to their kink, too, later those that another
        # such change of w could bring there.
        border = np.inf
        want = max(NEAR_PER_FEATURE * w.size, NEAR_FREE * free, int(NEAR_SHARE * count), NEAR_LEAST)
        if times > 0.0:
            border = np.inf if idle else 0.0
            times *= MORE if stalled else 1.0
        elif want < count and gap < POOR_START * abs(primal):
            border = _border(vectors[T, :count], want, team)
        alive = count
        count, n, fixed, linear, work = _part_all(
            X, reach, odometer, rounding, border, times, bias, count, v, room, team
        )  # fmt: skip
        known += fixed
        touched += work + n
        if sigma < 0.0:
            if w.size > DIRECT and n > GRAM and mean_sq > 0.0:
                sigma = ROUGH / mean_sq
            else:
                sigma = _first_sigma(near, n, min(ZONE * w.size, max(2 * free, w.size)) + 5, mean_sq, steep, team)
        apart = 0.0
        if sparse:  # of the columns that no near row has, w = v is optimal; the vectors of the rest are short
            rows = taken(X, lists[WHERE], room.marks[SIGNS], lists[NEAR, :n], bias, w.size - 1)
            columns = _relabel(rows.indices, w.size)
            n_w, n_v = np.empty(columns.size), np.empty(columns.size)
            for r in range(columns.size):
                n_w[r], n_v[r] = w[columns[r]], v[columns[r]]
            for j in range(w.size):
                w[j] = v[j]
            apart = inner(v, v) - inner(n_v, n_v)
        loose = LOOSE * gap / abs(primal) if gap < margins.SHARP * abs(primal) else 0.0
        goal, rest = (AIM * max(tol, loose), limit - iterations, screen), known + linear - 0.5 * apart
        done, work, sigma, way = solve_near(
            rows, rest, n_w, n_v, goal, sigma, near, room.marks[margins.INSIDE, :n], room.H, team
        )
        if sparse:
            for r in range(columns.size):
                w[columns[r]], v[columns[r]] = n_w[r], n_v[r]
        iterations += done
        idle, every, times, move = done == 0, n == alive, max(times, 1.0), 0.0
        for j in range(w.size):
            move += (w[j] - old[j]) ** 2
        move, length = np.sqrt(move) * (1.0 + 1e-12), length + way
        odometer += move
        touched += work + margins.look(X, count, n, w, bias, odometer, False, room, team)
    if exact and times > 0.0:
        touched += margins.look(X, count, 0, w, bias, odometer, True, room, team)
    return iterations, touched, count, gap, primal


def warm_up():
    room, team = margins.workspace(2, 2, False), Team(margins.table_of(1, 2), make_board(1), 0)
    room.vectors[:] = np.array([[1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]]).T
    room.lists[WHERE], room.lists[ALIVE], room.marks[SIGNS] = np.arange(2), np.arange(2), 1
    X, w = matrix_of(np.eye(2)), np.zeros(2)
    minimise(X, 2, 0.0, w.copy(), w, How(1e-6, 9, True, Errors(1e-12, 1e-15, 0.0, 0.0), True), 0.0, room, team)
