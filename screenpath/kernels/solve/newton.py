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
from screenpath.kernels.rows.barrier import LINE, Team, half, make_board, meet, share
from screenpath.kernels.rows.matrix import Matrix, _relabel, add, matrix_of, taken
from screenpath.kernels.rows.newton_system import DIRECT, GRAM, inner
from screenpath.kernels.rows.rows import four_products, sparse_product
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve import working_set as set_of
from screenpath.kernels.solve.working_set import SCALARS, line_search, slope_all, solve_near, step_of

ZONE = 4  # the first sigma leaves about this many rows per feature unclipped
SIGMA_LEAST, SIGMA_MOST = 1e-3, 1e8  # and is at least and at most this over the mean squared row norm
ROUGH = 10.0  # first sigma, times the mean squared row norm, with conjugate gradients
NEAR_PER_FEATURE, NEAR_SHARE, NEAR_LEAST = 8, 0.2, 32  # rows of the first working set
POOR_START = 0.1  # relative gap from which all rows are near
LOOSE = 0.05  # of the gap: a working set is solved no closer before all rows are looked at again
MORE = 4.0  # times the last change of its margin: how near a row is, with each round that does not halve the gap
SHARP = 1e150  # a sigma for which the envelope of a loss is the loss, and no product overflows
AIM = 0.9  # and to this fraction of the target, at the end

# Rows of a problem's vectors; T holds c_i - g_i.w, and U by how much the last change of w has made it smaller.
C, LO, HI, NORMS, ALPHA, T, U = range(7)
WHERE, ALIVE, KEPT, CHOSEN, NEAR = range(5)  # rows of its lists: in the data, not fixed, and room for what loops choose
SIGNS, INSIDE = range(2)  # rows of its marks


class Workspace(NamedTuple):
    """The survivors' problem, and work space for its solver.

    Attributes
    ----------
    vectors : ndarray of shape (7, k)
        The problem, ``T`` at the start; ``ALPHA`` is a feasible dual point to start from, overwritten by the result.
    near, G, H : ndarray of shape (7, k), (k, d), (d, d) or larger
        Work space for a working set; ``G`` is empty for sparse rows.
    lists : ndarray of int64 of shape (5, k)
        ``WHERE`` the rows are in the data; ``ALIVE`` counts from 0, and is overwritten by the rows that the gap ball
        has not fixed.
    marks : ndarray of int8 of shape (2, k)
        ``SIGNS``: a row is this times the one stored; and work space.
    """

    vectors: np.ndarray
    near: np.ndarray
    lists: np.ndarray
    marks: np.ndarray
    G: np.ndarray
    H: np.ndarray


class How(NamedTuple):
    """How far to go: to a relative gap, or so many Newton iterations; ``screen`` fixes the rows that the gap ball of
    the current pair decides.
    """

    tol: float
    limit: int
    screen: bool
    errors: Errors


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


@kernel(forceinline=True, leaf=True)
def _sizes(vectors, k, sparse, team):
    """Return the mean squared norm of the rows, and ``sum (hi - lo) norms``, to which rounding is relative; note that
    no margin has changed.
    """
    rows = step_of(k, sparse)
    first, last, blocks = share(team, k, rows)
    out, total, widths = team.table[half(team)], 0.0, 0.0
    for b in range(first, last):
        s, e = b * rows, min(k, (b + 1) * rows)
        norms = vectors[NORMS, s:e]
        vectors[U, s:e] = 0.0
        out[b, 0], out[b, 1] = inner(norms, norms), inner(vectors[HI, s:e], norms) - inner(vectors[LO, s:e], norms)
    meet(team)
    for b in range(blocks):
        total, widths = total + out[b, 0], widths + out[b, 1]
    return total / max(k, 1), widths


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _losses(alive, every, vectors, start, stop):
    """Return ``sum_i phi_i(t_i)``, ``sum_i alpha_i t_i`` and ``sum_i alpha_i c_i`` over alive rows."""
    lo, hi, c, t, alpha = vectors[LO], vectors[HI], vectors[C], vectors[T], vectors[ALPHA]
    loss, linear, ell = 0.0, 0.0, 0.0
    if every:  # without the list the loop vectorises
        for i in range(at(start), at(stop)):
            loss += max(lo[i] * t[i], hi[i] * t[i])
            linear += alpha[i] * t[i]
            ell += alpha[i] * c[i]
        return loss, linear, ell
    for r in range(at(start), at(stop)):
        i = at(alive[r])
        loss += max(lo[i] * t[i], hi[i] * t[i])
        linear += alpha[i] * t[i]
        ell += alpha[i] * c[i]
    return loss, linear, ell


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _losses_all(count, every, sparse, vectors, lists, team):
    """:func:`_losses` in blocks that the team shares."""
    rows = step_of(count, sparse)
    first, last, blocks = share(team, count, rows)
    out = team.table[half(team)]
    for b in range(first, last):
        out[b, 0], out[b, 1], out[b, 2] = _losses(lists[ALIVE], every, vectors, b * rows, min(count, (b + 1) * rows))
    meet(team)
    loss, linear, ell = 0.0, 0.0, 0.0
    for b in range(blocks):
        loss += out[b, 0]
        linear += out[b, 1]
        ell += out[b, 2]
    return loss, linear, ell


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _part(X, reach, rounding, border, times, bias, room, start, stop, v):
    """Separate alive rows: fixed by the ball around w, put at the end that their margin points to; far from their kink
    and at this end; and near ones. Changes go into ``v``.

    Near are those within ``border`` of their kink, or so many ``times`` what the last change of w has moved them by.

    Returns
    -------
    n_kept, n_near : int
        Rows not fixed, rows that are near, which are listed from ``start`` on in ``KEPT`` and ``CHOSEN``.
    known, linear : float
        ``c . alpha`` of the rows fixed, and of the far ones.
    touched : int
    """
    vectors, lists = room.vectors, room.lists
    c, lo, hi = vectors[C], vectors[LO], vectors[HI]
    norms, t, alpha, u = vectors[NORMS], vectors[T], vectors[ALPHA], vectors[U]
    alive, where, signs = lists[ALIVE], lists[WHERE], room.marks[SIGNS]
    kept, near, moved = lists[KEPT], lists[CHOSEN], lists[NEAR]  # the last of which is filled later
    n_kept, n_near, n_moved, known, linear = start, start, start, 0.0, 0.0
    for r in range(at(start), at(stop)):  # no branches: nobody could predict them
        i = at(alive[r])
        size = abs(t[i])
        fixed = (reach >= 0.0) & (size > reach * norms[i] + rounding * abs(c[i]))
        value = hi[i] if t[i] > 0.0 else lo[i]
        close = ((size <= border + times * abs(u[i])) | (alpha[i] != value)) & (not fixed)
        kept[at(n_kept)], near[at(n_near)], moved[at(n_moved)] = alive[r], alive[r], alive[r]  # unless overwritten
        n_kept += not fixed
        n_near += close
        n_moved += fixed & (value != alpha[i])
        u[i] = 0.0 if fixed else u[i]
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
def _part_all(X, reach, rounding, border, times, bias, count, v, room, team):
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
            X, reach, rounding, border, times, bias, room, s, e, part
        )
    meet(team)
    # Numbers that are known to the compiler would be types of their own, each with its copy of what it is passed to.
    kept, n, touched, known, linear = np.int64(0), np.int64(0), 0.0, 0.0, 0.0
    for b in range(blocks):
        n_kept, n_near = int(out[b, 0]), int(out[b, 1])
        if first <= b < last:
            s = b * rows
            for r in range(n_kept):  # element by element: assignments of slices compile for seconds
                lists[ALIVE, kept + r] = lists[KEPT, s + r]
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
    near[set_of.U, first:last] = 0.0
    for k in range(at(chosen.size)):
        i = at(chosen[k])
        c[k], lo[k], hi[k], t[k] = vectors[C, i], vectors[LO, i], vectors[HI, i], vectors[T, i]
        prev[k] = alpha[k] = vectors[ALPHA, i]
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
def _look(X, alive, where, signs, c, w, bias, t, u, start, stop):
    """Update the margins of alive rows to w."""
    dense, data, indices, indptr, sparse = X
    last, d = stop - 1, w.size if bias == 0.0 else w.size - 1
    more = 0.0 if bias == 0.0 else bias * w[d]
    if not sparse and d > 3:
        own = w[:d]
        for r in range(start, stop, 4):  # four at a time, the last ones again where there are fewer
            i0, i1 = at(alive[r]), at(alive[min(r + 1, last)])
            i2, i3 = at(alive[min(r + 2, last)]), at(alive[min(r + 3, last)])
            p0, p1, p2, p3 = four_products(dense[where[i0]], dense[where[i1]], dense[where[i2]], dense[where[i3]], own)
            t0, t1 = c[i0] - signs[i0] * (p0 + more), c[i1] - signs[i1] * (p1 + more)
            t2, t3 = c[i2] - signs[i2] * (p2 + more), c[i3] - signs[i3] * (p3 + more)
            u0, u1, u2, u3 = t[i0] - t0, t[i1] - t1, t[i2] - t2, t[i3] - t3
            u[i0], u[i1], u[i2], u[i3] = u0, u1, u2, u3
            t[i0], t[i1], t[i2], t[i3] = t0, t1, t2, t3
        return
    a, b, e = w[0] if d > 0 else 0.0, w[1] if d > 1 else 0.0, w[2] if d > 2 else 0.0
    for r in range(at(start), at(stop)):
        i = at(alive[r])
        row, product = at(where[i]), more
        if sparse:
            product += sparse_product(data, indices, indptr[row], indptr[row + at(1)], w)
        else:
            product += dense[row, 0] * a  # the loop over so few columns would take longer than its work
            if d > 1:
                product += dense[row, 1] * b
            if d > 2:
                product += dense[row, 2] * e
        value = c[i] - signs[i] * product
        u[i], t[i] = t[i] - value, value


@kernel(forceinline=True, leaf=True)
def _moved(k, back, sparse, vectors, team):
    """Take so much of the last change of the margins back, in blocks that the team shares."""
    rows = step_of(k, sparse)
    first, last, _ = share(team, k, rows)
    for r in range(min(first * rows, k), min(last * rows, k)):
        vectors[T, r] += back * vectors[U, r]
    meet(team)


@kernel(fastmath=SUMS)
def best_share(X, k, old, w, v, vectors, team):
    """Move ``w``, and the margins, to where on the way from ``old`` the primal value of all rows is least; return the
    share of the way.

    The dual value has grown, but ``w`` may have thrown rows that are not in the working set far over their kinks. No
    row is read.
    """
    p, d = np.empty(w.size), w.size
    for j in range(d):
        p[j] = w[j] - old[j]
    rest = inner(old, p) - inner(v, p)
    _moved(k, 1.0, X.sparse, vectors, team)
    slope, _ = slope_all(X, SHARP, p, 0.0, False, vectors, k, team)
    best = 0.0
    if rest + slope < 0.0:
        best = line_search(X, SHARP, p, rest, rest + slope, False, vectors, k, team)
    _moved(k, -best, X.sparse, vectors, team)
    for j in range(d):
        w[j] = old[j] + best * p[j]
    return best


@kernel(forceinline=True, leaf=True)
def _look_all(X, count, n, w, bias, room, team):
    """Copy back the dual variables of the working set, then :func:`_look`, both in blocks that the team shares."""
    vectors, near, lists = room.vectors, room.near, room.lists
    rows = step_of(n, X.sparse)
    first, last, _ = share(team, n, rows)
    for r in range(min(first * rows, n), min(last * rows, n)):
        vectors[ALPHA, lists[NEAR, r]] = near[set_of.ALPHA, r]
    rows = step_of(count, X.sparse)
    first, last, _ = share(team, count, rows)
    for b in range(first, last):
        _look(
            X, lists[ALIVE], lists[WHERE], room.marks[SIGNS], vectors[C], w, bias, vectors[T], vectors[U],
            b * rows, min(count, (b + 1) * rows),
        )  # fmt: skip
    meet(team)


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _first_sigma(near, n, d, mean_sq, team):
    """Return the proximal parameter whose zone between the clips holds about ``ZONE * d`` rows."""
    widest, lo, hi = 0.0, near[set_of.LO, :n], near[set_of.HI, :n]
    for r in range(n):
        widest = max(widest, hi[r] - lo[r])
    zone = _border(near[set_of.T, :n], ZONE * d + 5, team)
    if mean_sq == 0.0 or widest == 0.0:
        return 1.0
    sigma = widest / zone if zone > 0.0 else np.inf  # margins that are all 0 up to rounding leave no zone
    return min(max(sigma, SIGMA_LEAST / mean_sq), SIGMA_MOST / mean_sq)


def table_of(blocks, d):
    """Return a table for block sums, a whole number of cache lines each."""
    return np.empty((2, max(blocks, set_of.BLOCKS), (SCALARS + d + LINE - 1) // LINE * LINE))


@kernel(fastmath=SUMS)
def minimise(X, k, offset, v, w, how, bias, room, team):
    """Minimise a reduced box problem of ``k`` rows to a relative gap, by all threads of a team.

    The arrays may have room for more than ``k`` rows. ``v`` and ``w``, of shape (d,), are the thread's own.

    Parameters
    ----------
    X : Matrix
        Sparse rows need a team of one thread.
    offset : float
        ``c . alpha`` of the rows fixed beforehand.
    v : ndarray
        ``base + G'alpha`` at the start, ``base`` the sum of the rows fixed beforehand; overwritten.
    w : ndarray
        Primal point to start from; overwritten by the result.
    how : How
    bias : float
        If not 0, each row has one more column than in ``X``, with this times its sign; the norms count it.
    room : Workspace
    team : Team
        With a table from :func:`table_of`.

    Returns
    -------
    iterations, touched : int
    count : int
        Rows that the gap ball has not fixed.
    gap, primal : float
        Of the returned pair.
    """
    X, room, team, (tol, limit, screen, errors) = unowned(X), unowned(room), unowned(team), how
    v, w = unowned(v), unowned(w)
    vectors, near, lists, sparse = room.vectors, room.near, room.lists, X.sparse
    count, touched, iterations = k, 0, 0
    mean_sq, widths = _sizes(vectors, k, sparse, team)
    rows = Matrix(room.G, X.data, X.indices, X.indptr, sparse)
    n_w, n_v, columns = w, v, lists[NEAR, :0].copy()
    sigma, last, idle, every, times, part, old = -1.0, np.inf, False, False, 0.0, 1.0, w.copy()
    known = offset  # with the rows that screening fixes here
    while True:
        loss, linear, ell = _losses_all(count, count == k, sparse, vectors, lists, team)
        apart = 0.0  # ||w - v||^2
        for j in range(w.size):
            apart += (w[j] - v[j]) ** 2
        gap = 0.5 * apart + loss - linear
        w_sq = inner(w, w)
        primal = 0.5 * w_sq - inner(v, w) + ell - linear + loss + known
        stalled = gap > 0.5 * last
        if stalled and part < 0.0:
            part = best_share(X, k, old, w, v, vectors, team)
            continue
        # Idle and stalled: all rows were near and nothing moved, the accuracy of the arithmetic is reached.
        if gap <= tol * abs(primal) or iterations >= limit or (idle and every and stalled) or not gap < np.inf:
            break
        last, reach, part = gap, -1.0, -1.0
        for j in range(w.size):
            old[j] = w[j]
        if screen:
            size = np.sqrt(w_sq)
            radius = radius_around(
                loss - linear, loss + abs(linear), size, np.sqrt(apart), widths, k, float(touched), errors
            )
            reach = radius + errors.rounding * (size + radius)
        # Working set: the rows on their wrong side, at first those closest to their kink, too, later those that another
        # such change of w could bring there.
        border = np.inf
        want = max(NEAR_PER_FEATURE * w.size, int(NEAR_SHARE * count), NEAR_LEAST)
        if times > 0.0:
            border = np.inf if idle else 0.0
            times *= MORE if stalled else 1.0
        elif want < count and gap < POOR_START * abs(primal):
            border = _border(vectors[T, :count], want, team)
        alive = count
        count, n, fixed, linear, work = _part_all(
            X, reach, errors.rounding, border, times, bias, count, v, room, team
        )  # fmt: skip
        known += fixed
        touched += work + n
        if sigma < 0.0:
            if w.size > DIRECT and n > GRAM and mean_sq > 0.0:
                sigma = ROUGH / mean_sq
            else:
                sigma = _first_sigma(near, n, w.size, mean_sq, team)
        apart = 0.0
        if sparse:  # of the columns that no near row has, w = v is optimal; the vectors of the rest are short
            rows = taken(X, lists[WHERE], room.marks[SIGNS], lists[NEAR, :n], bias, w.size - 1)
            columns = _relabel(rows.indices, w.size)
            n_w, n_v = w[columns], v[columns]
            for j in range(w.size):
                w[j] = v[j]
            apart = inner(v, v) - inner(n_v, n_v)
        loose = LOOSE * gap / abs(primal) if gap < SHARP * abs(primal) else 0.0
        done, work, sigma = solve_near(
            rows, known + linear - 0.5 * apart, n_w, n_v, AIM * max(tol, loose), sigma,
            limit - iterations, near, room.marks[INSIDE, :n], room.H, team,
        )  # fmt: skip
        if sparse:
            for r in range(columns.size):
                w[columns[r]], v[columns[r]] = n_w[r], n_v[r]
        iterations += done
        idle, every, times = done == 0, n == alive, max(times, 1.0)
        _look_all(X, count, n, w, bias, room, team)
        touched += work + count
    if part >= 0.0 and part != 1.0:  # margins that are no products
        _look_all(X, count, n, w, bias, room, team)
        touched += count
    return iterations, touched, count, gap, primal


def workspace(k, d, sparse) -> Workspace:
    """Return the workspace of a problem of ``k`` rows; the system gives no memory for unused parts.

    A working set of sparse rows may have few columns where all rows together have many.
    """
    order = min(d, DIRECT) if sparse or d <= DIRECT else 0
    return Workspace(
        np.empty((7, k)),
        np.empty((7, k)),
        np.empty((5, k), dtype=np.int64),
        np.empty((2, k), dtype=np.int8),
        np.empty((0 if sparse else k, d)),
        np.empty((order, order)),
    )


def warm_up():
    room, team = workspace(2, 2, False), Team(table_of(1, 2), make_board(1), 0)
    room.vectors[:] = np.array([[1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]]).T
    room.lists[WHERE], room.lists[ALIVE], room.marks[SIGNS] = np.arange(2), np.arange(2), 1
    X, w = matrix_of(np.eye(2)), np.zeros(2)
    minimise(X, 2, 0.0, w.copy(), w, How(1e-6, 9, True, Errors(1e-12, 1e-15, 0.0, 0.0)), 0.0, room, team)
