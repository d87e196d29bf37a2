"""``compiled.box_walk`` on wide sparse rows: from the line through the last two steps, by a descent on the face.

Sums over rows are computed as in the loop (``BoxModel.updated_sum``), by one thread.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem import box, partition
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import Matrix, matrix_of
from screenpath.kernels.rows.rows import csr_products, csr_sum
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve import cd, descent
from screenpath.kernels.solve.pool import STEPS
from screenpath.kernels.solve.survey import nameless, nothing_known
from screenpath.kernels.walk import compiled_types as fields
from screenpath.kernels.walk.compiled_steps import _ball, _goes_by_changes, _note

ROOM = 16  # steps on the face for which a log is to have room when a point begins


class Ahead(NamedTuple):
    """Arguments of such a walk in addition to its reference."""

    C: float  # parameter of the step before the reference, which is in the last row of the points but one; 0 for none
    seed: np.uint64  # seed, rank: see ``cd.draws``; of the first step
    rank: np.uint64
    rounds: int  # solves of a step at most
    closer: float  # factor of the target from one solve of a step to the next


class Sums(NamedTuple):
    """Work space for sums over rows: weights of shape (n,), and two vectors of shape (d,)."""

    weights: np.ndarray
    total: np.ndarray
    part: np.ndarray


class Walk(NamedTuple):
    """What the steps of a walk share."""

    X: Matrix
    problem: fields.Problem
    # ``total``, ``theta`` and ``margins`` have one row more than steps and reference, or three used in turn, and one
    # row of work space; the last row but that is of the step before the reference. ``decided`` is given, or work space
    points: fields.Points
    settings: fields.Settings
    how: descent.How  # of a step's first solve. One that takes longer than its slice of time is left to the loop
    ahead: Ahead
    log: descent.Log  # the steps before, with room for more
    sums: Sums


@kernel(leaf=True)
def _copy(values, out):
    """Copy element by element: slices compile for seconds."""
    for i in range(values.size):
        out[i] = values[i]


@kernel(leaf=True)
def _signed_sum(walk):
    """Write the sum over rows with the weights to ``sums.total``, in blocks; return the rows touched."""
    X, edges, (weights, total, part) = walk.X, walk.problem.edges, walk.sums
    touched, total[:] = 0, 0.0
    for b in range(edges.size - 1):
        part[:] = 0.0
        touched += csr_sum(X.data, X.indices, X.indptr, weights, part, edges[b], edges[b + 1])
        for j in range(total.size):
            total[j] += part[j]
    return touched


@kernel(leaf=True)
def _sum_up(walk, theta, known, reference, earlier, total, now):
    """Write the sum over all rows to ``total``, from an ``earlier`` one or anew, as ``BoxModel.updated_sum`` computes
    it.

    The earlier sum belongs to the dual point ``reference``, whose numbers are ``known``. Returns the rows touched.
    """
    problem, sums, fresh_every = walk.problem, walk.sums, walk.settings.fresh_every
    changed, nonzero = box.difference(theta, reference, problem.signs, sums.weights, 0, theta.size)
    if _goes_by_changes(known, float(changed), float(nonzero), fresh_every, problem.bounds, now):
        touched = _signed_sum(walk) if changed > 0 else 0
        for j in range(total.size):
            total[j] = earlier[j] + sums.total[j] if changed > 0 else earlier[j]
        return touched
    box.signed(theta, problem.signs, sums.weights, 0, theta.size)
    touched = _signed_sum(walk)
    _copy(sums.total, total)
    return touched


@kernel(leaf=True)
def _certify(C, problem, w, theta, total, margins, now):
    """Write what ``box.box_certificate`` finds to ``now``."""
    _, c, lo, hi, norms, _, bounds = problem
    found = box.box_certificate(C, w, theta, total, now[fields.SUM_ERROR], margins, c, lo, hi, norms, bounds)
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10], _, _ = found
    now[fields.COUNTS], now[fields.COUNTS + 1] = found[11], found[12]


@kernel
def _begin(walk, C, C0, C1, known, last, before, status, theta, w):
    """Write the dual point that a solve starts from to ``theta``, and its ``w``, as ``BoxModel.reduce`` finds them.

    ``C``, ``C0``, ``C1``: of the step, its reference, and the one before that; 0 if nothing is predicted. ``known``:
    numbers of the reference. ``last``, ``before``: rows of the reference and of the step before it.

    Returns ``part``: the survivors; their numbers, see ``partition.box_survivors``; ``c . theta`` of the fixed
    variables; the ``box.Errors``; ``touched``.
    """
    problem, points, sums, settings = walk.problem, walk.points, walk.sums, walk.settings
    c, lo, hi, signs = problem.c, problem.lo, problem.hi, problem.signs
    start, total, margins = points.theta[last], points.total[last], points.margins[last]
    linear, touched, sums.weights[:] = known[fields.ELL], 0, 0.0
    if C1 > 0.0:
        start, linear = partition.box_line(C1, points.theta[before], C0, start, C, lo, hi, signs, c, sums.weights)
        total = partition.sum_line(C1, points.total[before], C0, total, C)
        margins = partition.margin_line(C1, points.margins[before], C0, margins, C)
    _copy(start, theta)
    index, linear, moved = partition.box_part(status, lo, hi, c, theta, linear)
    some = moved.size > 0 or C1 > 0.0
    if some:
        partition.box_moves(moved, status, lo, hi, signs, theta, sums.weights)
        touched = _signed_sum(walk)
    for j in range(w.size):
        w[j] = C * (total[j] + sums.total[j] if some else total[j])
    out = np.empty((6, index.size))
    partition.box_survivors(index, C, c, lo, hi, problem.norms, start, margins, out, 0)
    error = box.start_error(
        C1, C0, C, known[fields.SUM_ERROR], float(moved.size), float(c.size), settings.fresh_every, problem.bounds
    )
    return (index, out, linear, box.errors_of(C, error, settings.rounding, problem.bounds)), touched


@kernel
def _solve(walk, C, part, told, theta, w, random, memory, how):
    """Descend from a start to ``theta`` and ``w``; return whether that met the target, epochs, rows, ``memory``."""
    (index, out, linear, errors), problem = part, walk.problem
    signs, decided = np.empty(index.size, dtype=np.int8), np.zeros(index.size, dtype=np.int8)
    sqnorms, alive = np.empty(index.size), np.arange(index.size)
    for k in range(index.size):
        signs[k], sqnorms[k] = problem.signs[index[k]], out[3, k] * out[3, k]
    task = cd.Task(walk.X, index, signs, out[0], out[1], out[2], out[3], sqnorms, errors, index, theta.size)
    now = descent.begun(task, C * linear, told)
    point = cd.Iterate(out[4], w, out[5], decided, random, now)
    _, became, memory = descent.descend(task, point, alive, memory, walk.log, how)
    partition.box_lift(theta, index, out[4], C, problem.lo, problem.hi)
    return became == descent.MET, int(now[descent.EPOCHS]), now[descent.TOUCHED], memory


@kernel(leaf=True)
def _decide(C, C0, known, margins, problem, settings, status):
    """Decide with the ball of a pair whose numbers are ``known``, as ``compiled_steps._screen`` does."""
    ahead, radius, extent = _ball(C, C0, known, settings.relative)
    return box.box_decide_ball(
        margins, ahead, problem.norms, radius, extent, problem.c, settings.rounding, status, 0, status.size
    )


@kernel(leaf=True)
def _goes_on(now, tol, epochs, rounds, limit, most, log):
    """Tell whether a step that misses its gap is solved again here: the loop handles all unusual cases."""
    primal, error, gap = now[fields.PRIMAL], now[fields.PRIMAL + 1], now[fields.GAP]
    sharper = box.meets_but_for_rounding(gap, now[fields.ROUNDING], primal, error, tol)
    left = epochs < limit and rounds < most and log.used[0] < log.prox.size
    return left and np.isfinite(gap) and np.isfinite(primal) and not sharper


@kernel
def _solve_point(walk, k, C1, rows, status, memory, reference, held, now):
    """Solve and certify a step, and again from the result while it misses its gap (``point.solve_point``).

    ``k``: number of the step. ``C1``: see :func:`_begin`. ``rows``: rows of ``total``, ``theta`` and ``margins``: of
    the step, its reference, the one before that, and work space. ``status`` (int8 of shape (n,)): decisions before the
    first solve. ``reference``, ``held``, ``now``: numbers of the reference, of the pair that a solve begins from (work
    space), and of the result (written).

    Returns ``good``: whether it is certified; ``epochs``, ``rounds``; ``touched``; ``solve_s``, ``certify_s``;
    ``memory``.
    """
    X, problem, points, settings, how, ahead, log, _ = walk
    grid, w, total, theta, margins, _, _ = points
    (at, last, before, room), n, target, C, C0 = rows, problem.c.size, how.tol, grid[k], grid[k - 1]
    epochs, rounds, touched, solve_s, certify_s, began = 0, 0, 0.0, 0.0, 0.0, seconds()
    again = np.empty(n, dtype=np.int8)
    _copy(reference, held)
    while True:
        part, moved = _begin(walk, C, C0, C1, held, last, before, status, theta[at], w[k])
        told = descent.FORESEEN if C1 > 0.0 else descent.STALE
        random = cd.draws(ahead.seed, ahead.rank + np.uint64(k - 1))
        left = descent.How(target, how.share, how.dynamic, how.epochs - epochs, how.patience, how.slice_s)
        met, swept, work, memory = _solve(walk, C, part, told, theta[at], w[k], random, memory, left)
        epochs, rounds, touched, certifying = epochs + swept, rounds + 1, touched + work + moved, seconds()
        solve_s += certifying - began
        if not met:
            return False, epochs, rounds, touched, solve_s, certify_s, memory
        touched += n + _sum_up(walk, theta[at], held, theta[last], total[last], total[at], now)
        csr_products(X.data, X.indices, X.indptr, w[k], margins[at], 0, n)
        box.sign(margins[at], problem.signs, 0, n)
        _certify(C, problem, w[k], theta[at], total[at], margins[at], now)
        good, began = box.meets(now[fields.GAP], now[fields.PRIMAL], now[fields.PRIMAL + 1], settings.tol), seconds()
        certify_s += began - certifying
        if good or not _goes_on(now, settings.tol, epochs, rounds, how.epochs, ahead.rounds, log):
            return good, epochs, rounds, touched, solve_s, certify_s, memory
        last, C1, C0 = room, 0.0, C
        _copy(now, held)
        _copy(theta[at], theta[room])
        _copy(total[at], total[room])
        _copy(margins[at], margins[room])
        if how.dynamic:
            n_R, n_L = _decide(C, C, held, margins[at], problem, settings, again)
            if n_R + n_L < settings.few * n:
                again[:] = 0
            status = again
        target = min(ahead.closer * target, how.tol)


@kernel(leaf=True)
def _no_worse(C, problem, points, k, rows, reference, tol, now):
    """Use the reference's ``w`` if better, as ``BoxModel.no_worse``; return whether to go on: not if zero is better."""
    at, last, _, _ = rows
    place = box.above_known(C, now[fields.PRIMAL], reference[0], reference[fields.XI], problem.bounds)
    if place != box.BEFORE:
        return place != box.AT_ZERO
    _copy(points.w[k - 1], points.w[k])
    _copy(points.margins[last], points.margins[at])
    _certify(C, problem, points.w[k], points.theta[at], points.total[at], points.margins[at], now)
    return box.meets(now[fields.GAP], now[fields.PRIMAL], now[fields.PRIMAL + 1], tol)


@kernel
def face_walk(walk, memory, until):
    """Walk several steps; each is certified on all (sparse) rows before it becomes the reference of the next.

    ``memory``: of the steps on the face before, see ``face.face_step``; used up. ``until`` (int64 of shape (points + 1,
    2)): written: how many rows of the log had been used after each step, and how many steps its pool then knew of.

    Returns ``count``: steps that are done; ``refused``: whether the step after them is one for the loop; ``memory``:
    after the last solve, which may be that of a step that is refused.
    """
    walk, began = unowned(walk), seconds()
    problem, points, settings, log = walk.problem, walk.points, walk.settings, walk.log
    grid, w, _, theta, margins, numbers, decided = points
    n, kept, region = problem.c.size, theta.shape[0] - 1, settings.region
    nothing = np.zeros(n, dtype=np.int8)
    reference, held, now = numbers[0].copy(), numbers[0].copy(), numbers[0].copy()
    for k in range(1, grid.size):
        C, C0, clock, rows = grid[k], grid[k - 1], seconds(), (k % kept, (k - 1) % kept, (k - 2) % kept, kept)
        if not C > C0:
            return k - 1, True, memory
        if k > 1:
            all_at_ends = now[fields.COUNTS] + now[fields.COUNTS + 1] == n
            rests = all_at_ends or partition.box_rests(theta[rows[1]], problem.lo, problem.hi)
            # Where a pair rests, what follows may need no solve.
            if rests or log.used[0] + ROOM > log.prox.size or clock - began > settings.slice_s:
                return k - 1, False, memory
            _copy(now, reference)
        n_R, n_L = numbers[k, fields.SCREENED], numbers[k, fields.SCREENED + 1]
        if region == fields.PAIR_BALL:
            n_R, n_L = _decide(C, C0, reference, margins[rows[1]], problem, settings, decided)
        status = decided if region != fields.NOTHING and n_R + n_L >= settings.few * n else nothing
        screen_s = seconds() - clock
        C1 = walk.ahead.C if k == 1 else grid[k - 2]
        good, epochs, rounds, touched, solve_s, certify_s, memory = _solve_point(
            walk, k, C1, rows, status, memory, reference, held, now
        )
        if not good or not _no_worse(C, problem, points, k, rows, reference, settings.tol, now):
            return k - 1, True, memory
        at_ends = now[fields.COUNTS], now[fields.COUNTS + 1]
        _note(now, float(n), *at_ends, n_R, n_L, epochs, rounds, touched, screen_s, solve_s)
        now[fields.SECONDS + 2], now[fields.NNZ] = certify_s, 0.0
        for j in range(w.shape[1]):
            now[fields.NNZ] += w[k, j] != 0.0
        _copy(now, numbers[k])
        until[k, 0], until[k, 1] = log.used[0], memory[1][-1][STEPS]
    return grid.size - 1, False, memory


def warm_up():
    one, marks = np.ones(2), np.ones(2, dtype=np.int8)
    pairs, rows = np.full((4, 2), 0.1), np.zeros((2, len(fields.FIELDS)))
    problem = fields.Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(box.TINY + 1))
    points = fields.Points(np.array([0.1, 0.2]), pairs, pairs.copy(), pairs.copy(), pairs.copy(), rows, marks.copy())
    settings = fields.Settings(
        1e-6, 1e-6, 9, fields.PAIR_BALL, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, 1e-12, -1.0, 1.0
    )  # fmt: skip
    how = descent.How(1e-6, 0.5, True, 9, 2, 1.0)
    log = descent.Log(np.zeros((40, 1), np.uint8), np.zeros(40), np.zeros(1, np.int64))
    ahead = Ahead(0.05, np.uint64(0), np.uint64(0), 6, 0.1)
    X = matrix_of((one, np.arange(2, dtype=np.int32), np.arange(3)))
    walk = Walk(X, problem, points, settings, how, ahead, log, Sums(one.copy(), one.copy(), one.copy()))
    face_walk(walk, nameless(*nothing_known()), np.zeros((2, 2), np.int64))
