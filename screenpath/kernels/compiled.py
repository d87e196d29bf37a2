"""Several grid points of a box model in one compiled call: each is screened, solved and certified as by the loop.

The steps are made of the kernels that the loop itself uses; what stands here is their order, and how the threads of a
team share them (see ``barrier``). Vectors of the length of the data or of a list of rows are everybody's, those with an
entry for each feature are each thread's own, and the same.
"""

import numpy as np

from screenpath.kernels import at, box, kernel, partition
from screenpath.kernels.barrier import SIZE, WORD, half, make_board, meet, share
from screenpath.kernels.clock import seconds
from screenpath.kernels.newton import ALIVE, ALPHA, CHOSEN, NEAR, SIGNS, WHERE, T, minimise, table_of, workspace
from screenpath.kernels.newton import C as KINK
from screenpath.kernels.newton_system import add, products
from screenpath.kernels.partition import ROWS
from screenpath.kernels.rows import add_rows, csr_sum, dense_sum
from screenpath.kernels.unowned import unowned

# Columns of `numbers`, see `box_walk`.
FIELDS = (
    "w_sq", "total_sq", "inner", "xi", "ell", "slack", "error", "primal", "primal_error", "gap", "rounding",
    "sum_error", "updates", "n_R", "n_L", "n_E", "screened_R", "screened_L", "n_survivors", "nnz_w", "epochs",
    "touched", "rejection_ratio", "screening_rate", "screen_s", "solve_s", "certify_s",
)  # fmt: skip
XI, ELL, SLACK, PRIMAL, GAP = (FIELDS.index(name) for name in ("xi", "ell", "slack", "primal", "gap"))
# What screens the points of a walk: nothing, the ball of the reference's pair, or decisions that the caller has made.
NOTHING, PAIR_BALL, GIVEN = range(3)
SUM_ERROR, UPDATES, COUNTS = FIELDS.index("sum_error"), FIELDS.index("updates"), FIELDS.index("n_R")
SCREENED = FIELDS.index("screened_R")  # and screened_L
NNZ, EPOCHS, RATIO, SECONDS = (FIELDS.index(name) for name in ("nnz_w", "epochs", "rejection_ratio", "screen_s"))


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
    radius = box.pair_radius(C, C0, w_sq, total_sq, inner, known[SLACK], known[SUM_ERROR], 0.0, gap_rounding)
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
    return n_R, n_L


@kernel
def _ends(theta, lo, hi, ends, table, board, me):
    """Write at which end each dual variable is, see ``partition.box_ends``; return the counts."""
    first, last, blocks = share(board, me, theta.size, ROWS)
    out, n_R, n_L, nonzero = table[half(board, me)], 0.0, 0.0, 0.0
    for b in range(first, last):
        s, e = b * ROWS, min(theta.size, (b + 1) * ROWS)
        out[b, 0], out[b, 1], out[b, 2] = partition.box_ends(theta, lo, hi, ends, s, e)
    meet(board, me)
    for b in range(blocks):
        n_R, n_L, nonzero = n_R + out[b, 0], n_L + out[b, 1], nonzero + out[b, 2]
    return n_R, n_L, nonzero


@kernel
def _reduce(
    status, ends, C, c, lo, hi, signs, norms, theta, ell, margins, listed, held, vectors, lists, marks, table, board, me
):  # fmt: skip
    """Write the survivors' problem to ``vectors``, ``lists`` and ``marks``.

    All rows that are open, see ``partition.part_rows``, are listed with what they are in ``theta`` now.

    Returns
    -------
    k, count : int
        Survivors, open rows.
    linear : float
        ``c . theta`` of the fixed variables, at the ends where they belong; ``ell`` is that of all as they are.
    moved : int
        Fixed variables that are elsewhere.
    """
    first, last, blocks = share(board, me, c.size, ROWS)
    out, k, count, linear, moved = table[half(board, me)], np.int64(0), np.int64(0), ell, 0.0
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = partition.part_rows(
            status, ends, lo, hi, c, theta, lists[CHOSEN], lists[NEAR], s, s, e
        )
    meet(board, me)
    for b in range(blocks):
        s, n, m = b * ROWS, int(out[b, 0]), int(out[b, 1])
        if first <= b < last:
            _take(lists[CHOSEN, s : s + n], C, c, lo, hi, signs, norms, theta, margins, vectors, lists, marks, k)
            for r in range(m):
                i = lists[NEAR, at(s + r)]
                listed[at(count + r)], held[at(count + r)] = i, theta[at(i)]
        k, count, linear, moved = k + n, count + m, linear + out[b, 2], moved + out[b, 3]
    meet(board, me)
    return k, count, linear, int(moved)


@kernel
def _take(index, C, c, lo, hi, signs, norms, theta, margins, vectors, lists, marks, first):
    """Write survivors to their places from ``first`` on."""
    partition.box_survivors(index, C, c, lo, hi, norms, theta, margins, vectors, first)
    for r in range(index.size):
        i, k = index[r], at(first + r)
        vectors[T, k] = vectors[KINK, k] - vectors[T, k]
        lists[WHERE, k], lists[ALIVE, k], marks[SIGNS, k] = i, first + r, signs[at(i)]


@kernel
def _copied(theta, out, board, me):
    """Copy a thread's own rows, and return the copy."""
    first, last, _ = share(board, me, theta.size, ROWS)
    for i in range(first * ROWS, min(last * ROWS, theta.size)):
        out[i] = theta[i]
    return out


@kernel
def _settle(status, lo, hi, listed, theta, board, me):
    """Put the open rows that are fixed at their ends."""
    for r in range(listed.size * me // board[SIZE], listed.size * (me + 1) // board[SIZE]):
        i = listed[r]
        if status[i] != 0:
            theta[i] = hi[i] if status[i] > 0 else lo[i]
    meet(board, me)


@kernel
def _lift(k, C, lo, hi, vectors, lists, theta, board, me):
    """Write the survivors' solution to their places in ``theta``."""
    s, e = k * me // board[SIZE], k * (me + 1) // board[SIZE]
    partition.box_lift(theta, lists[WHERE, s:e], vectors[ALPHA, s:e], C, lo, hi)
    meet(board, me)


@kernel
def _rank(listed, row):
    """Return how many of the listed rows, which increase, are before ``row``."""
    low, high = np.int64(0), np.int64(listed.size)
    while low < high:
        middle = (low + high) // 2
        if listed[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _sum_changes(
    X, data, indices, indptr, sparse, edges, listed, theta, held, lo, hi, signs, ends, step, found, out, sums, table,
    board, me,
):  # fmt: skip
    """Write ``sum_i signs_i (theta_i - held_i) x_i`` over listed rows to ``out``; bring ``ends`` to ``theta``.

    Returns
    -------
    changed, n_R, n_L, nonzero : float
        See ``partition.changes``.
    """
    first, last = _own(edges, board, me)
    turn, changed, n_R, n_L, nonzero = half(board, me), 0.0, 0.0, 0.0, 0.0
    for b in range(first, last):
        s, e, line, part = _rank(listed, edges[b]), _rank(listed, edges[b + 1]), table[turn, b], sums[turn, b]
        line[0], line[1], line[2], line[3] = partition.changes(
            listed[s:e], theta, held[s:e], lo, hi, signs, ends, step, found[s:e]
        )
        part[:] = 0.0
        if sparse:
            for r in range(s, s + int(line[0])):
                add(X, data, indices, indptr, sparse, found[r], step[found[r]], part)
        else:
            add_rows(X, found[s:e], int(line[0]), step, part)
    meet(board, me)
    out[:] = 0.0
    for b in range(edges.size - 1):
        line = table[turn, b]
        changed, n_R, n_L, nonzero = changed + line[0], n_R + line[1], n_L + line[2], nonzero + line[3]
        out += sums[turn, b]
    return changed, n_R, n_L, nonzero


@kernel
def _mark(k, count, lo, hi, lists, theta, decided):
    """Write what the dynamic rule has fixed: all survivors but those still alive, which are listed in their order.

    Where the static rule has fixed so little that all rows were solved for, what it has fixed stays.
    """
    alive = 0
    for r in range(k):
        if alive < count and lists[ALIVE, alive] == r:
            alive += 1
        else:
            i = lists[WHERE, r]  # it is at the nearer end, up to the rounding of a division by C
            decided[i] = -1 if theta[i] - lo[i] <= hi[i] - theta[i] else 1


@kernel
def _certify(
    X, data, indices, indptr, sparse, c, lo, hi, signs, norms, bounds, C, w, theta, total, before, same, margins, now,
    table, board, me,
):  # fmt: skip
    """Write ``G w`` to ``margins`` and what ``box.box_certificate`` finds, but for the counts, to ``now``.

    The margins are those in ``before`` where ``w`` is the ``same``.
    """
    first, last, blocks = share(board, me, c.size, ROWS)
    out, (slope, floor) = table[half(board, me)], box.product_errors(w, bounds)
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        if same:
            for i in range(s, e):
                margins[i] = before[i]
        else:
            products(X, data, indices, indptr, sparse, w, margins, s, e)
            box.sign(margins, signs, s, e)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = box.box_terms(c, margins, lo, hi, theta, norms, slope, floor, s, e)
    meet(board, me)
    xi, ell, plain, slack = 0.0, 0.0, 0.0, 0.0
    for b in range(blocks):
        line = out[b]
        xi, ell, plain, slack = xi + line[0], ell + line[1], plain + line[2], slack + line[3]
    found = box.box_objectives(C, w, total, now[SUM_ERROR], xi, ell, plain, slack, slope, floor, bounds)
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10] = found


@kernel
def _record(k, now, new_w, new, numbers, w, total):
    """Write the pair and the numbers of point ``k`` to their rows, element by element: slices compile for seconds."""
    nonzero = 0.0
    for j in range(new_w.size):
        w[k, j], total[k, j] = new_w[j], new[j]
        nonzero += new_w[j] != 0.0
    now[NNZ] = nonzero
    for r in range(now.size):
        numbers[k, r] = now[r]


@kernel
def box_walk(
    X, data, indices, indptr, sparse, edges, c, lo, hi, signs, norms, bounds, grid, w, theta, total, margins, numbers,
    decided, tol, aim, limit, region, dynamic, few, fresh_every, rounding, gap_rounding, slice_s, marked, vectors, near,
    lists, marks, G, H, ends, listed, held, sums, table, board, me,
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
    bounds : ndarray
        On rounding, see ``box``.
    grid : ndarray of shape (k + 1,)
        The reference's parameter, then those of the points.
    w, total : ndarray of shape (k + 1, d)
        A row for the reference and one for each point, which is written.
    theta : ndarray of shape (k + 1, n) or (1, n)
        Likewise; or one row for all, which is left as of the last point that is done.
    margins : ndarray of shape (k + 1, n) or (2, n)
        Likewise; or two rows used in turn.
    numbers : ndarray of shape (k + 1, len(FIELDS))
        A row for the reference and one for each point, which is written; where decisions are given, their counts.
    decided : ndarray of int8 of shape (n,)
        What the static rule has fixed at the last point that was begun: written, or given for the only one. 0 before.
    tol, aim : float
        Relative gap on all rows, and that of the reduced problem.
    limit : int
        Newton iterations of a point.
    region : int
        What screens before each solve: ``NOTHING``, ``PAIR_BALL`` or ``GIVEN``.
    dynamic : bool
        Screen with the gap ball while solving.
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
        Workspace of the solver, see ``newton.workspace``.
    ends, listed, held : ndarray of int8, of int64 and of float of shape (n,)
        Room, as are ``sums`` of shape (2, blocks, d), and ``table``, see ``newton.table_of``.
    board : ndarray of int64
    me : int
        The team's board, and the number of the thread.

    Returns
    -------
    count : int
        Points that are done.
    refused : bool
        Whether the point behind them did not reach its gap at once, is worse than zero, or is not above its reference.
    """
    X, data, indices, indptr, edges = unowned(X), unowned(data), unowned(indices), unowned(indptr), unowned(edges)
    c, lo, hi, signs, norms = unowned(c), unowned(lo), unowned(hi), unowned(signs), unowned(norms)
    w, theta, total, margins, grid = unowned(w), unowned(theta), unowned(total), unowned(margins), unowned(grid)
    numbers, decided, vectors, near = unowned(numbers), unowned(decided), unowned(vectors), unowned(near)
    lists, marks, G, H, ends = unowned(lists), unowned(marks), unowned(G), unowned(H), unowned(ends)
    listed, held, sums = unowned(listed), unowned(held), unowned(sums)
    table, board = unowned(table), unowned(board)
    n, d = c.size, w.shape[1]
    new_w, old, new, step, found = w[0].copy(), total[0].copy(), np.empty(d), near[0], lists[NEAR]
    known, now = numbers[0].copy(), numbers[0].copy()
    nothing, kept = np.zeros(n, dtype=np.int8), margins.shape[0]
    began, point = seconds(), theta[0]
    n_R, n_L, nonzero = _ends(point, lo, hi, ends, table, board, me)
    for k in range(1, grid.size):
        C, C0, clock, before, after = grid[k], grid[k - 1], seconds(), margins[(k - 1) % kept], margins[k % kept]
        if not C > C0:
            return k - 1, True
        if k > 1 and (n_R + n_L == n or partition.box_rests(point, lo, hi)):  # what follows may need no solve
            return k - 1, False
        screened_R, screened_L = 0.0, 0.0
        if region == PAIR_BALL:
            screened_R, screened_L = _screen(
                C, C0, known, before, norms, c, rounding, gap_rounding, decided, table, board, me
            )  # fmt: skip
        elif region == GIVEN:
            screened_R, screened_L = numbers[k, SCREENED], numbers[k, SCREENED + 1]
        solving = seconds()
        if theta.shape[0] > 1:
            point = _copied(point, theta[k], board, me)
        status = decided if region != NOTHING and screened_R + screened_L >= few * n else nothing
        size, count, linear, moved = _reduce(
            status, ends, C, c, lo, hi, signs, norms, point, known[ELL], before, listed, held, vectors, lists, marks,
            table, board, me,
        )  # fmt: skip
        rows, values, v, touched = listed[:count], held[:count], old.copy(), 0
        if moved > 0:
            _settle(status, lo, hi, rows, point, board, me)
            changed, more_R, more_L, _ = _sum_changes(
                X, data, indices, indptr, sparse, edges, rows, point, values, lo, hi, signs, ends, step, found, new,
                sums, table, board, me,
            )  # fmt: skip
            n_R, n_L, touched = n_R + more_R, n_L + more_L, int(changed)
            v += new
        v *= C
        epochs, work, alive, _, _ = minimise(
            X, data, indices, indptr, sparse, size, C * linear, v, new_w, aim, limit, dynamic, rounding,
            gap_rounding, vectors, near, lists, marks, G, H, table, board, me,
        )  # fmt: skip
        _lift(size, C, lo, hi, vectors, lists, point, board, me)
        if marked and me == 0:
            _mark(size, alive, lo, hi, lists, point, decided)
        certifying = seconds()
        if me == 0:
            board[WORD] = certifying - began > slice_s
        changed, more_R, more_L, more = _sum_changes(
            X, data, indices, indptr, sparse, edges, rows, point, values, lo, hi, signs, ends, step, found, new, sums,
            table, board, me,
        )  # fmt: skip
        n_R, n_L, nonzero = n_R + more_R, n_L + more_L, nonzero + more
        # As `BoxModel.updated_sum` finds it: from the last sum, or anew.
        if known[UPDATES] < fresh_every and changed < nonzero:
            new += old
            now[UPDATES] = known[UPDATES] + (changed > 0.0)
            now[SUM_ERROR] = known[SUM_ERROR]
            if changed > 0.0:
                now[SUM_ERROR] = box.sum_drift(known[SUM_ERROR], changed, bounds)
            touched += int(changed)
        else:
            now[UPDATES], now[SUM_ERROR] = 0.0, box.sum_error(nonzero, bounds)
            first, last = _own(edges, board, me)
            box.signed(point, signs, step, edges[first], edges[last])
            touched += _sum_rows(X, data, indices, indptr, sparse, edges, step, new, sums, table, board, me)
        place, same = box.NOWHERE, False
        for _ in range(2):
            if same:  # as `BoxModel.no_worse` has it
                for j in range(d):
                    new_w[j] = w[k - 1, j]
            _certify(
                X, data, indices, indptr, sparse, c, lo, hi, signs, norms, bounds, C, new_w, point, new, before, same,
                after, now, table, board, me,
            )  # fmt: skip
            if same or not box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], tol):
                break
            place = box.above_known(C, now[PRIMAL], known[0], known[XI], bounds)
            same = place == box.BEFORE
            if not same:
                break
        if place == box.AT_ZERO or not box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], tol):
            if me == 0 and theta.shape[0] == 1:
                for r in range(count):
                    point[rows[r]] = values[r]
            return k - 1, True
        if me == 0:
            n_E, survivors, ratio, rate = partition.shares(float(n), n_R, n_L, screened_R, screened_L)
            now[COUNTS], now[COUNTS + 1], now[COUNTS + 2] = n_R, n_L, n_E
            now[SCREENED], now[SCREENED + 1], now[SCREENED + 2] = screened_R, screened_L, survivors
            now[EPOCHS], now[EPOCHS + 1] = epochs, touched + work + n
            now[RATIO], now[RATIO + 1] = ratio, rate
            now[SECONDS], now[SECONDS + 1], now[SECONDS + 2] = solving - clock, certifying - solving, 0.0
            _record(k, now, new_w, new, numbers, w, total)
            numbers[k, SECONDS + 2] = seconds() - certifying
        if board[WORD] != 0:
            return k, False
        old, new = new, old
        known, now = now, known
    return grid.size - 1, False


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    one, X, index = np.ones(2), np.eye(2), np.zeros(2, dtype=np.int64)
    pairs, rows, marks = np.full((2, 2), 0.1), np.zeros((2, len(FIELDS))), np.ones(2, dtype=np.int8)
    nothing = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    box_walk(
        X, *nothing, False, np.array([0, 2]), one, 0.0 * one, one, marks, one, np.zeros(box.TINY + 1),
        np.array([0.1, 0.2]), pairs.copy(), np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, marks.copy(), 1e-6,
        1e-6, 9, PAIR_BALL, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, *workspace(2, 2, False), marks.copy(), index,
        one.copy(), np.empty((2, 1, 2)), table_of(1, 2), make_board(1), 0,
    )  # fmt: skip
