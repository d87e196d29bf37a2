"""Several grid points of a box model in one compiled call: each is screened, solved and certified as by the loop.

The steps are made of the kernels that the loop itself uses; what stands here is their order, and how the threads of a
team share them (see ``team``). Vectors of the length of the data or of a list of rows are everybody's, those with an
entry for each feature are each thread's own, and the same.
"""

import numpy as np

from screenpath.kernels import box, kernel
from screenpath.kernels.box import ROWS
from screenpath.kernels.clock import seconds
from screenpath.kernels.newton import ALIVE, ALPHA, CHOSEN, SIGNS, WHERE, T, minimise, room, table_of
from screenpath.kernels.newton import C as KINK
from screenpath.kernels.newton_system import products
from screenpath.kernels.rows import csr_sum, dense_sum
from screenpath.kernels.team import SIZE, WORD, half, make_board, meet, share

# Columns of `numbers`, see `box_stretch`.
FIELDS = (
    "w_sq", "total_sq", "inner", "xi", "ell", "error", "primal", "dual", "n_R", "n_L", "updates", "screened_R",
    "screened_L", "epochs", "touched", "screen_s", "solve_s", "certify_s",
)  # fmt: skip
UPDATES = FIELDS.index("updates")


@kernel
def _own(edges, board, me):
    """Return which blocks of a sum over rows are this thread's: the first, and one past the last."""
    blocks = edges.size - 1
    return blocks * me // board[SIZE], blocks * (me + 1) // board[SIZE]


@kernel
def _sum_block(X, data, indices, indptr, sparse, edges, b, weights, out):
    """Write a block's part of ``sum_i weights_i x_i`` to ``out``; return the rows touched."""
    out[:] = 0.0
    if sparse:
        return csr_sum(data, indices, indptr, weights, out, edges[b], edges[b + 1])
    return dense_sum(X, weights, out, edges[b], edges[b + 1])


@kernel
def _sum_rows(X, data, indices, indptr, sparse, edges, weights, out, sums, table, board, me):
    """Write ``sum_i weights_i x_i`` to ``out``; return the rows touched. Each thread has written its own weights."""
    first, last = _own(edges, board, me)
    turn, touched = half(board, me), 0
    for b in range(first, last):
        table[turn, b, 0] = _sum_block(X, data, indices, indptr, sparse, edges, b, weights, sums[turn, b])
    meet(board, me)
    out[:] = 0.0
    for b in range(edges.size - 1):
        out += sums[turn, b]
        touched += int(table[turn, b, 0])
    return touched


@kernel
def _screen(C, C0, known, margins, norms, c, rounding, gap_rounding, status, table, board, me):
    """Decide with the ball of the reference's pair (``rules.box.pair_ball``); ``known`` are its numbers."""
    w_sq, total_sq, inner = known[0], known[1], known[2]
    radius = box.pair_radius(C, C0, w_sq, total_sq, inner, known[3], known[4], known[5], 0.0, gap_rounding)
    radius += 0.5 * box.pair_mismatch(C, C0, w_sq, total_sq, inner, 0.0, gap_rounding)
    ahead = 0.5 * (1.0 + C / C0)
    extent = np.sqrt(ahead * ahead * w_sq) + radius
    first, last, blocks = share(board, me, c.size, ROWS)
    out, n_R, n_L = table[half(board, me)], 0.0, 0.0
    for b in range(first, last):
        out[b, 0], out[b, 1] = box.box_decide_ball(
            margins, ahead, norms, radius, extent, c, rounding, status, b * ROWS, min(c.size, (b + 1) * ROWS)
        )
    meet(board, me)
    for b in range(blocks):
        n_R, n_L = n_R + out[b, 0], n_L + out[b, 1]
    return int(n_R), int(n_L)


@kernel
def _reduce(status, C, c, lo, hi, signs, norms, theta, margins, fixed, vectors, lists, marks, table, board, me):
    """Write the survivors' problem to ``vectors``, ``lists`` and ``marks``, the fixed variables to ``fixed``.

    Returns
    -------
    k : int
        Survivors.
    linear : float
        ``c . fixed``.
    changed : int
        Fixed variables that differ from ``theta``.
    """
    first, last, blocks = share(board, me, c.size, ROWS)
    out, k, linear, changed = table[half(board, me)], np.int64(0), 0.0, 0.0
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        out[b, 0], out[b, 1], out[b, 2] = box.part_rows(status, lo, hi, c, theta, fixed, lists[CHOSEN], s, s, e)
    meet(board, me)
    for b in range(blocks):
        s, n = b * ROWS, int(out[b, 0])
        if first <= b < last:
            _take(lists[CHOSEN, s : s + n], C, c, lo, hi, signs, norms, theta, margins, vectors, lists, marks, k)
        k, linear, changed = k + n, linear + out[b, 1], changed + out[b, 2]
    meet(board, me)
    return k, linear, int(changed)


@kernel
def _take(index, C, c, lo, hi, signs, norms, theta, margins, vectors, lists, marks, first):
    """Write survivors to their places from ``first`` on."""
    box.box_survivors(index, C, c, lo, hi, norms, theta, margins, vectors, first)
    for r in range(index.size):
        i, k = index[r], first + r
        vectors[T, k] = vectors[KINK, k] - vectors[T, k]
        lists[WHERE, k], lists[ALIVE, k], marks[SIGNS, k] = i, k, signs[i]


@kernel
def _lift(k, C, lo, hi, vectors, lists, theta, board, me):
    """Write the survivors' solution to their places in ``theta``."""
    s, e = k * me // board[SIZE], k * (me + 1) // board[SIZE]
    box.box_lift(theta, lists[WHERE, s:e], vectors[ALPHA, s:e], C, lo, hi)
    meet(board, me)


@kernel
def _mark(k, count, lo, hi, lists, theta, decided):
    """Write what the dynamic rule has fixed: all survivors but those still alive."""
    for r in range(k):
        i = lists[WHERE, r]  # it is at the nearer end, up to the rounding of a division by C
        decided[i] = -1 if theta[i] - lo[i] <= hi[i] - theta[i] else 1
    for r in range(count):
        decided[lists[WHERE, lists[ALIVE, r]]] = 0


@kernel
def _renew(
    X, data, indices, indptr, sparse, edges, signs, theta, held, total, updates, fresh_every, step, out, sums, table,
    board, me,
):  # fmt: skip
    """Write ``G'theta`` to ``out`` as ``BoxModel.updated_sum`` finds it: from ``total``, that of ``held``, or anew.

    Returns
    -------
    updates, touched : int
    """
    first, last = _own(edges, board, me)
    turn, changed, nonzero, touched = half(board, me), 0.0, 0.0, 0
    if updates < fresh_every:
        for b in range(first, last):
            s, e, line = edges[b], edges[b + 1], table[turn, b]
            line[0], line[1] = box.difference(theta, held, signs, step, s, e)
            line[2] = _sum_block(X, data, indices, indptr, sparse, edges, b, step, sums[turn, b])
        meet(board, me)
        out[:] = 0.0
        for b in range(edges.size - 1):
            line = table[turn, b]
            changed, nonzero, touched = changed + line[0], nonzero + line[1], touched + int(line[2])
            out += sums[turn, b]
        if changed < nonzero:
            out += total
            return updates + (changed > 0.0), touched
    box.signed(theta, signs, step, edges[first], edges[last])
    return 0, _sum_rows(X, data, indices, indptr, sparse, edges, step, out, sums, table, board, me)


@kernel
def _certify(
    X, data, indices, indptr, sparse, c, lo, hi, signs, C, w, theta, total, margins, gap_rounding, now, table, board, me
):  # fmt: skip
    """Write ``G w`` to ``margins`` and what ``box.box_certificate`` finds to ``now``."""
    first, last, blocks = share(board, me, c.size, ROWS)
    out = table[half(board, me)]
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        products(X, data, indices, indptr, sparse, w, margins, s, e)
        box.sign(margins, signs, s, e)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3], out[b, 4] = box.box_summary(c, margins, lo, hi, theta, s, e)
    meet(board, me)
    xi, ell, magnitude, n_R, n_L = 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(blocks):
        line = out[b]
        xi, ell, magnitude, n_R, n_L = xi + line[0], ell + line[1], magnitude + line[2], n_R + line[3], n_L + line[4]
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7] = box.box_objectives(
        C, w, total, xi, ell, magnitude, gap_rounding
    )
    now[8], now[9] = n_R, n_L


@kernel
def box_stretch(
    X, data, indices, indptr, sparse, edges, c, lo, hi, signs, norms, grid, w, theta, total, margins, numbers, decided,
    tol, aim, limit, static, dynamic, few, fresh_every, rounding, gap_rounding, slice_s, marked, vectors, near, lists,
    marks, G, H, step, sums, table, board, me,
):  # fmt: skip
    """Walk several grid points; each is certified on all rows before the next one takes it for its reference.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Dense rows; empty for sparse rows, with which there must be one thread only.
    data, indices, indptr : ndarray
        CSR rows; empty for dense rows.
    sparse : bool
    edges : ndarray of int64
        Of the blocks in which sums over rows are formed, as ``rows.memory`` forms them.
    c, lo, hi, norms : ndarray of shape (n,)
    signs : ndarray of int8 of shape (n,)
    grid : ndarray of shape (k + 1,)
        The reference's parameter, then those of the points.
    w, total : ndarray of shape (k + 1, d)
    theta, margins : ndarray of shape (k + 1, n)
        A row for the reference and one for each point, which is written.
    numbers : ndarray of shape (k + 1, len(FIELDS))
        Likewise.
    decided : ndarray of int8 of shape (n,)
        Written: what the static rule has fixed at the last point that was begun.
    tol, aim : float
        Relative gap on all rows, and that of the reduced problem.
    limit : int
        Newton iterations of a point.
    static, dynamic : bool
        Screen from the reference; screen with the gap ball while solving.
    few : float
        A smaller share of rows is not screened, see ``models.box.FEW``.
    fresh_every : int
        Updates of the sum over rows after which it is formed anew.
    rounding, gap_rounding : float
    slice_s : float
        Seconds after which no further point is begun.
    marked : bool
        Write to ``decided`` also what the dynamic rule has fixed.
    vectors, near, lists, marks, G, H
        Room for the solver, see ``newton.room``.
    step : ndarray of shape (n,)
        Room, as are ``sums`` of shape (2, blocks, d), and ``table``, see ``newton.table_of``.
    board : ndarray of int64
    me : int
        The team's board, and the number of the thread.

    Returns
    -------
    count : int
        Points that are done.
    refused : bool
        Whether the point behind them did not reach its gap at once, or is not above its reference.
    """
    n, d = c.size, w.shape[1]
    new_w, old, new = w[0].copy(), total[0].copy(), np.empty(d)
    known, now = numbers[0].copy(), numbers[0].copy()
    nothing = np.zeros(n, dtype=np.int8)
    began = seconds()
    for k in range(1, grid.size):
        C, C0, clock = grid[k], grid[k - 1], seconds()
        if not C > C0:
            return k - 1, True
        n_R, n_L = 0, 0
        if static:
            n_R, n_L = _screen(
                C, C0, known, margins[k - 1], norms, c, rounding, gap_rounding, decided, table, board, me
            )  # fmt: skip
        solving = seconds()
        size, linear, changed = _reduce(
            decided if static and n_R + n_L >= few * n else nothing, C, c, lo, hi, signs, norms, theta[k - 1],
            margins[k - 1], theta[k], vectors, lists, marks, table, board, me,
        )  # fmt: skip
        v, touched = old.copy(), 0
        if changed > 0:
            first, last = _own(edges, board, me)
            box.box_moves(decided, theta[k], theta[k - 1], signs, step, edges[first], edges[last])
            touched = _sum_rows(X, data, indices, indptr, sparse, edges, step, new, sums, table, board, me)
            v += new
        v *= C
        epochs, work, count, _, _ = minimise(
            X, data, indices, indptr, sparse, size, C * linear, v, new_w, aim, limit, dynamic, rounding, gap_rounding,
            vectors, near, lists, marks, G, H, table, board, me,
        )  # fmt: skip
        _lift(size, C, lo, hi, vectors, lists, theta[k], board, me)
        if marked and me == 0:
            _mark(size, count, lo, hi, lists, theta[k], decided)
        certifying = seconds()
        updates, more = _renew(
            X, data, indices, indptr, sparse, edges, signs, theta[k], theta[k - 1], old, int(known[UPDATES]),
            fresh_every, step, new, sums, table, board, me,
        )  # fmt: skip
        if me == 0:
            board[WORD] = seconds() - began > slice_s
        _certify(
            X, data, indices, indptr, sparse, c, lo, hi, signs, C, new_w, theta[k], new, margins[k], gap_rounding, now,
            table, board, me,
        )  # fmt: skip
        now[UPDATES] = updates
        if me == 0:
            w[k], total[k] = new_w, new
            now[11], now[12], now[13], now[14] = n_R, n_L, epochs, touched + work + more + n
            now[15], now[16], now[17] = solving - clock, certifying - solving, seconds() - certifying
            numbers[k] = now
        if not now[6] - now[7] <= tol * now[6]:
            return k - 1, True
        if board[WORD] != 0:
            return k, False
        old, new = new, old
        known, now = now, known
    return grid.size - 1, False


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    one, X = np.ones(2), np.eye(2)
    pairs, rows = np.full((2, 2), 0.1), np.zeros((2, len(FIELDS)))
    nothing = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    box_stretch(
        X, *nothing, False, np.array([0, 2]), one, 0.0 * one, one, np.ones(2, dtype=np.int8), one, np.array([0.1, 0.2]),
        pairs.copy(), np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, np.zeros(2, dtype=np.int8), 1e-6, 1e-6, 9,
        True, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, *room(2, 2, False), np.empty(2), np.empty((2, 1, 2)),
        table_of(1, 2), make_board(1), 0,
    )  # fmt: skip
