"""What Newton's kernel knows of all rows of a reduced problem: their margins, and which of them have to be read again.

A row at the end that its margin asks for adds nothing to the gap, and stays there while ``w`` has moved less than the
row is from its kink, in units of its norm. ``DUE`` is what an odometer of ``w``'s moves will then show: until then the
row need not be read, and its margin may be that of an earlier ``w``. Margins of a working set are those that its solver
has updated. Neither are products with ``w`` any more, which ``fresh`` marks tell.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.barrier import LINE, half, meet, share
from screenpath.kernels.rows.newton_system import DIRECT, inner
from screenpath.kernels.rows.rows import four_products, sparse_product
from screenpath.kernels.solve import working_set as set_of
from screenpath.kernels.solve.working_set import SCALARS, line_search, slope_all, step_of

SMALL = 1e-150  # of a norm: a row of zeros has no kink that w could come to
SHARP = 1e150  # a sigma for which the envelope of a loss is the loss, and no product overflows

# Rows of a problem's vectors; T holds c_i - g_i.w, U by how much the last change of w has made it smaller, and DUE from
# where on, by the odometer, it has to be read again.
C, LO, HI, NORMS, ALPHA, T, U, DUE = range(8)
WHERE, ALIVE, KEPT, CHOSEN, NEAR = range(5)  # rows of its lists: in the data, not fixed, and room for what loops choose
SIGNS, INSIDE = range(2)  # rows of its marks
FRESH = INSIDE  # between two working sets


class Workspace(NamedTuple):
    """The survivors' problem, and work space for its solver."""

    # shape (8, k): the problem, ``T`` at the start; ``ALPHA`` is a feasible dual point to start from, overwritten by
    # the result
    vectors: np.ndarray
    # near, G, H: shape (8, k), (k, d), (d, d) or larger: work space for a working set; ``G`` is empty for sparse rows
    near: np.ndarray
    # int64 of shape (5, k): ``WHERE`` the rows are in the data; ``ALIVE`` counts from 0, and is overwritten by the rows
    # that the gap ball has not fixed
    lists: np.ndarray
    marks: np.ndarray  # int8 of shape (2, k): ``SIGNS``: a row is this times the one stored; and work space
    G: np.ndarray
    H: np.ndarray


def workspace(k, d, sparse) -> Workspace:
    """Return the workspace of a problem of ``k`` rows; the system gives no memory for unused parts.

    A working set of sparse rows may have few columns where all rows together have many.
    """
    order = min(d, DIRECT) if sparse or d <= DIRECT else 0
    return Workspace(
        np.empty((8, k)), np.empty((8, k)), np.empty((5, k), dtype=np.int64), np.empty((2, k), dtype=np.int8),
        np.empty((0 if sparse else k, d)), np.empty((order, order)),
    )  # fmt: skip


def table_of(blocks, d):
    """Return a table for block sums, a whole number of cache lines each."""
    return np.empty((2, max(blocks, set_of.BLOCKS), (SCALARS + d + LINE - 1) // LINE * LINE))


@kernel(forceinline=True, leaf=True, inner=True)
def sizes(vectors, k, sparse, team):
    """Return the rows' mean squared norm, ``sum (hi - lo) norms``, and how many are free; note unchanged margins."""
    rows = step_of(k, sparse)
    first, last, blocks = share(team, k, rows)
    out, total, widths, free = team.table[half(team)], 0.0, 0.0, 0.0
    lo, hi, alpha, t, u, due = vectors[LO], vectors[HI], vectors[ALPHA], vectors[T], vectors[U], vectors[DUE]
    for b in range(first, last):
        s, e = b * rows, min(k, (b + 1) * rows)
        norms, between = vectors[NORMS, s:e], 0.0
        for r in range(at(s), at(e)):
            u[r] = 0.0
        for r in range(at(s), at(e)):
            due[r] = abs(t[r]) / max(vectors[NORMS, r], SMALL)
            between += 1.0 if (lo[r] < alpha[r]) & (alpha[r] < hi[r]) else 0.0
        out[b, 2] = between
        out[b, 0], out[b, 1] = inner(norms, norms), inner(vectors[HI, s:e], norms) - inner(vectors[LO, s:e], norms)
    meet(team)
    for b in range(blocks):
        total, widths, free = total + out[b, 0], widths + out[b, 1], free + out[b, 2]
    return total / max(k, 1), widths, int(free)


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


@kernel(fastmath=SUMS, forceinline=True, leaf=True, inner=True)
def losses(count, every, sparse, vectors, lists, team):
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


@kernel(forceinline=True, leaf=True)
def _to_read(room, odometer, every, start, stop):
    """List alive rows in ``CHOSEN``, from ``start`` on, that are due, or ``every`` one whose margin is no product with
    w; return how many, and mark them.
    """
    alive, chosen, due, fresh = room.lists[ALIVE], room.lists[CHOSEN], room.vectors[DUE], room.marks[FRESH]
    count = start
    for r in range(at(start), at(stop)):
        i = at(alive[r])
        late = fresh[i] == 0 if every else not due[i] >= odometer  # what is not a number is due
        chosen[at(count)] = alive[r]
        fresh[i] = 1 if late else 0
        count += late
    return count - start


@kernel(fastmath=SUMS, forceinline=True, leaf=True)
def _look(X, alive, where, signs, c, w, bias, t, u, start, stop):
    """Update the margins of listed rows to w."""
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


@kernel(forceinline=True, leaf=True, inner=True)
def look(X, count, n, w, bias, odometer, every, room, team):
    """Take over dual variables and margins of the ``n`` rows of the working set, then read the alive rows that are due,
    or ``every`` one whose margin is no product with ``w``, in blocks that the team shares; return how many.
    """
    vectors, near, lists, touched = room.vectors, room.near, room.lists, 0.0
    t, u, due, norms = vectors[T], vectors[U], vectors[DUE], vectors[NORMS]
    rows = step_of(n, X.sparse)
    first, last, _ = share(team, n, rows)
    for r in range(min(first * rows, n), min(last * rows, n)):
        i = lists[NEAR, r]
        vectors[ALPHA, i], value = near[set_of.ALPHA, r], near[set_of.T, r]
        u[i], t[i], due[i] = t[i] - value, value, odometer + abs(value) / max(norms[i], SMALL)
    if n > 0:
        meet(team)
    rows = step_of(count, X.sparse)
    first, last, blocks = share(team, count, rows)
    out = team.table[half(team)]
    for b in range(first, last):
        s = b * rows
        e = s + _to_read(room, odometer, every, s, min(count, (b + 1) * rows))
        _look(X, lists[CHOSEN], lists[WHERE], room.marks[SIGNS], vectors[C], w, bias, t, u, s, e)
        for r in range(at(s), at(e)):
            i = at(lists[CHOSEN, r])
            due[i] = odometer + abs(t[i]) / max(norms[i], SMALL)
        out[b, 0] = e - s
    meet(team)
    for b in range(blocks):
        touched += out[b, 0]
    return int(touched)


@kernel(forceinline=True, leaf=True)
def _moved(k, back, sparse, vectors, fresh, team):
    """Take so much of the last change of the margins back, in blocks that the team shares."""
    rows = step_of(k, sparse)
    first, last, _ = share(team, k, rows)
    for r in range(min(first * rows, k), min(last * rows, k)):
        vectors[T, r] += back * vectors[U, r]
        fresh[r] = 0
    meet(team)


@kernel(fastmath=SUMS, inner=True)
def best_share(X, k, old, w, v, room, team):
    """Move ``w``, and the margins, to where on the way from ``old`` the primal value of all rows is least; return the
    share of the way.

    The dual value has grown, but ``w`` may have thrown rows that are not in the working set far over their kinks. No
    row is read.
    """
    p, d, vectors, fresh = np.empty(w.size), w.size, room.vectors, room.marks[FRESH]
    for j in range(d):
        p[j] = w[j] - old[j]
    rest = inner(old, p) - inner(v, p)
    _moved(k, 1.0, X.sparse, vectors, fresh, team)
    slope, _ = slope_all(X, SHARP, p, 0.0, False, vectors, k, team)
    best = 0.0
    if rest + slope < 0.0:
        best = line_search(X, SHARP, p, rest, rest + slope, False, vectors, k, team)
    _moved(k, -best, X.sparse, vectors, fresh, team)
    for j in range(d):
        w[j] = old[j] + best * p[j]
    return best
