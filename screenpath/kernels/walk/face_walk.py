"""``compiled.box_walk`` on wide sparse rows: from the line through the last two steps, by a descent on the face.

Sums over rows are computed as in the loop (``BoxModel.updated_sum``), by one thread.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem import box, partition
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.rows import csr_products, csr_sum
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve import cd, descent
from screenpath.kernels.solve.pool import STEPS
from screenpath.kernels.solve.survey import nothing_known
from screenpath.kernels.walk.compiled_steps import _ball, _goes_by_changes, _note
from screenpath.kernels.walk.compiled_types import (
    COUNTS,
    ELL,
    FIELDS,
    GAP,
    NNZ,
    NOTHING,
    PAIR_BALL,
    PRIMAL,
    SCREENED,
    SECONDS,
    SUM_ERROR,
    XI,
    Points,
    Problem,
    Settings,
)  # fmt: skip

ROOM = 16  # steps on the face for which a log is to have room when a point begins
ROUNDING = FIELDS.index("rounding")


class Ahead(NamedTuple):
    """Arguments of such a walk in addition to its reference.

    Attributes
    ----------
    C : float
        Parameter of the step before the reference, which is in the last row of the points but one; 0 for none.
    seed, rank : uint64
        See ``cd.draws``; of the first step.
    rounds : int
        Solves of a step at most.
    closer : float
        Factor of the target from one solve of a step to the next.
    """

    C: float
    seed: np.uint64
    rank: np.uint64
    rounds: int
    closer: float


class Sums(NamedTuple):
    """Work space for sums over rows: weights of shape (n,), and two vectors of shape (d,)."""

    weights: np.ndarray
    total: np.ndarray
    part: np.ndarray


@kernel(leaf=True)
def _copy(values, out):
    """Copy element by element: slices compile for seconds."""
    for i in range(values.size):
        out[i] = values[i]


@kernel
def _signed_sum(X, edges, sums):
    """Write the sum over rows with the weights to ``sums.total``, in blocks; return the rows touched."""
    weights, total, part = sums
    touched, total[:] = 0, 0.0
    for b in range(edges.size - 1):
        part[:] = 0.0
        touched += csr_sum(X.data, X.indices, X.indptr, weights, part, edges[b], edges[b + 1])
        for j in range(total.size):
            total[j] += part[j]
    return touched


@kernel
def _sum_up(X, problem, fresh_every, theta, known, reference, earlier, total, sums, now):
    """Write the sum over all rows to ``total``, from an ``earlier`` one or anew, as ``BoxModel.updated_sum`` computes
    it.

    The earlier sum belongs to the dual point ``reference``, whose numbers are ``known``. Returns the rows touched.
    """
    changed, nonzero = box.difference(theta, reference, problem.signs, sums.weights, 0, theta.size)
    if _goes_by_changes(known, float(changed), float(nonzero), fresh_every, problem.bounds, now):
        touched = _signed_sum(X, problem.edges, sums) if changed > 0 else 0
        for j in range(total.size):
            total[j] = earlier[j] + sums.total[j] if changed > 0 else earlier[j]
        return touched
    box.signed(theta, problem.signs, sums.weights, 0, theta.size)
    touched = _signed_sum(X, problem.edges, sums)
    _copy(sums.total, total)
    return touched


@kernel
def _certify(C, problem, w, theta, total, margins, now):
    """Write what ``box.box_certificate`` finds to ``now``."""
    _, c, lo, hi, norms, _, bounds = problem
    found = box.box_certificate(C, w, theta, total, now[SUM_ERROR], margins, c, lo, hi, norms, bounds)
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10], _, _ = found
    now[COUNTS], now[COUNTS + 1] = found[11], found[12]


@kernel
def _begin(X, problem, points, settings, C, C0, C1, known, last, before, status, theta, w, sums):
    """Write the dual point that a solve starts from to ``theta``, and its ``w``, as ``BoxModel.reduce`` finds them.

    Parameters
    ----------
    C, C0, C1 : float
        Of the step, its reference, and the one before that; 0 if nothing is predicted.
    known : ndarray
        Numbers of the reference.
    last, before : int
        Rows of the reference and of the step before it.

    Returns
    -------
    index : ndarray of int64
        The survivors.
    out : ndarray of shape (6, k)
        Their numbers, see ``partition.box_survivors``.
    linear : float
        ``c . theta`` of the fixed variables.
    errors : box.Errors
    touched : int
    """
    c, lo, hi, signs = problem.c, problem.lo, problem.hi, problem.signs
    start, total, margins = points.theta[last], points.total[last], points.margins[last]
    linear, touched, sums.weights[:] = known[ELL], 0, 0.0
    if C1 > 0.0:
        start, linear = partition.box_line(C1, points.theta[before], C0, start, C, lo, hi, signs, c, sums.weights)
        total = partition.sum_line(C1, points.total[before], C0, total, C)
        margins = partition.margin_line(C1, points.margins[before], C0, margins, C)
    _copy(start, theta)
    index, linear, moved = partition.box_part(status, lo, hi, c, theta, linear)
    some = moved.size > 0 or C1 > 0.0
    if some:
        partition.box_moves(moved, status, lo, hi, signs, theta, sums.weights)
        touched = _signed_sum(X, problem.edges, sums)
    for j in range(w.size):
        w[j] = C * (total[j] + sums.total[j] if some else total[j])
    out = np.empty((6, index.size))
    partition.box_survivors(index, C, c, lo, hi, problem.norms, start, margins, out, 0)
    error = box.start_error(
        C1, C0, C, known[SUM_ERROR], float(moved.size), float(c.size), settings.fresh_every, problem.bounds
    )
    return index, out, linear, box.errors_of(C, error, settings.rounding, problem.bounds), touched


@kernel
def _solve(X, problem, C, index, out, linear, errors, told, theta, w, random, known, pool, log, how):
    """Descend from a start, and write the result to ``theta`` and ``w``.

    Returns whether the target is met, epochs, rows touched, ``known`` and ``pool``.
    """
    where, signs = index, np.empty(index.size, dtype=np.int8)
    sqnorms, alive, decided = np.empty(index.size), np.arange(index.size), np.zeros(index.size, dtype=np.int8)
    for k in range(index.size):
        signs[k], sqnorms[k] = problem.signs[index[k]], out[3, k] * out[3, k]
    task = descent.Task(where, signs, out[0], out[1], out[2], out[3], sqnorms, errors)
    now = descent.begun(task, C * linear, told)
    _, became, known, pool = descent.descend(
        X, task, index, theta.size, out[4], w, out[5], alive, decided, random, known, pool, log, how, now
    )
    partition.box_lift(theta, index, out[4], C, problem.lo, problem.hi)
    return became == descent.MET, int(now[descent.EPOCHS]), now[descent.TOUCHED], known, pool


@kernel
def _decide(C, C0, known, margins, problem, settings, status):
    """Decide with the ball of a pair whose numbers are ``known``, as ``compiled_steps._screen`` does."""
    ahead, radius, extent = _ball(C, C0, known, settings.relative)
    return box.box_decide_ball(
        margins, ahead, problem.norms, radius, extent, problem.c, settings.rounding, status, 0, status.size
    )


@kernel
def _goes_on(now, tol, epochs, rounds, limit, most, log):
    """Tell whether a step that misses its gap is solved again here: the loop handles all unusual cases."""
    primal, error, gap = now[PRIMAL], now[PRIMAL + 1], now[GAP]
    sharper = box.meets_but_for_rounding(gap, now[ROUNDING], primal, error, tol)
    left = epochs < limit and rounds < most and log.used[0] < log.prox.size
    return left and np.isfinite(gap) and np.isfinite(primal) and not sharper


@kernel
def _solve_point(
    X, problem, points, k, C1, rows, status, settings, how, ahead, known, pool, log, sums, reference, held, now
):  # fmt: skip
    """Solve and certify a step, and again from the result while it misses its gap (``loop.solve_point``).

    Parameters
    ----------
    X, problem, points, settings, how, ahead, known, pool, log
        See :func:`face_walk`.
    k : int
        Number of the step.
    C1 : float
        See :func:`_begin`.
    rows : tuple of int
        Rows of ``total``, ``theta`` and ``margins``: of the step, its reference, the one before that, and work space.
    status : ndarray of int8 of shape (n,)
        Decisions before the first solve.
    reference, held, now : ndarray
        Numbers of the reference, of the pair that a solve begins from (work space), and of the result (written).

    Returns
    -------
    good : bool
        Whether it is certified.
    epochs, rounds : int
    touched : float
    solve_s, certify_s : float
    known, pool : tuple
    """
    grid, w, total, theta, margins, _, _ = points
    (at, last, before, room), n, target, C, C0 = rows, problem.c.size, how.tol, grid[k], grid[k - 1]
    epochs, rounds, touched, solve_s, certify_s, began = 0, 0, 0.0, 0.0, 0.0, seconds()
    again = np.empty(n, dtype=np.int8)
    _copy(reference, held)
    while True:
        index, out, linear, errors, moved = _begin(
            X, problem, points, settings, C, C0, C1, held, last, before, status, theta[at], w[k], sums
        )
        told = descent.FORESEEN if C1 > 0.0 else descent.STALE
        random = cd.draws(ahead.seed, ahead.rank + np.uint64(k - 1))
        left = descent.How(
            target, how.share, how.dynamic, how.epochs - epochs, how.patience, how.slice_s
        )  # fmt: skip
        met, swept, work, known, pool = _solve(
            X, problem, C, index, out, linear, errors, told, theta[at], w[k], random, known, pool, log, left
        )
        epochs, rounds, touched, certifying = epochs + swept, rounds + 1, touched + work + moved, seconds()
        solve_s += certifying - began
        if not met:
            return False, epochs, rounds, touched, solve_s, certify_s, known, pool
        touched += n + _sum_up(
            X, problem, settings.fresh_every, theta[at], held, theta[last], total[last], total[at], sums, now
        )
        csr_products(X.data, X.indices, X.indptr, w[k], margins[at], 0, n)
        box.sign(margins[at], problem.signs, 0, n)
        _certify(C, problem, w[k], theta[at], total[at], margins[at], now)
        good, began = box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], settings.tol), seconds()
        certify_s += began - certifying
        if good or not _goes_on(now, settings.tol, epochs, rounds, how.epochs, ahead.rounds, log):
            return good, epochs, rounds, touched, solve_s, certify_s, known, pool
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


@kernel
def _no_worse(C, problem, points, k, rows, reference, tol, now):
    """Use the reference's ``w`` if that has a smaller primal value, as ``BoxModel.no_worse`` does.

    Returns whether the walk can go on from the pair: it cannot if zero is better still.
    """
    at, last, _, _ = rows
    place = box.above_known(C, now[PRIMAL], reference[0], reference[XI], problem.bounds)
    if place != box.BEFORE:
        return place != box.AT_ZERO
    _copy(points.w[k - 1], points.w[k])
    _copy(points.margins[last], points.margins[at])
    _certify(C, problem, points.w[k], points.theta[at], points.total[at], points.margins[at], now)
    return box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], tol)


@kernel
def face_walk(X, problem, points, settings, how, ahead, known, pool, log, until):
    """Walk several steps; each is certified on all (sparse) rows before it becomes the reference of the next.

    Parameters
    ----------
    points : Points
        ``total``, ``theta`` and ``margins`` have one row more than steps and reference, or three used in turn, and one
        row of work space; the last row but that is of the step before the reference. ``decided`` is given, or work
        space.
    how : descent.How
        Of a step's first solve. One that takes longer than its slice of time is left to the loop.
    known, pool : tuple
        Of the steps on the face before, see ``face.face_step``; used up.
    log : descent.Log
        The steps before, with room for more.
    until : ndarray of int64 of shape (points + 1, 2)
        Written: how many rows of the log had been used after each step, and how many steps its pool then knew of.

    Returns
    -------
    count : int
        Steps that are done.
    refused : bool
        Whether the step after them is one for the loop.
    known, pool : tuple
        After the last solve, which may be that of a step that is refused.
    """
    X, problem, points, began = unowned(X), unowned(problem), unowned(points), seconds()
    grid, w, _, theta, margins, numbers, decided = points
    n, kept, region = problem.c.size, theta.shape[0] - 1, settings.region
    sums, nothing = Sums(np.empty(n), np.empty(w.shape[1]), np.empty(w.shape[1])), np.zeros(n, dtype=np.int8)
    reference, held, now = numbers[0].copy(), numbers[0].copy(), numbers[0].copy()
    for k in range(1, grid.size):
        C, C0, clock, rows = grid[k], grid[k - 1], seconds(), (k % kept, (k - 1) % kept, (k - 2) % kept, kept)
        if not C > C0:
            return k - 1, True, known, pool
        if k > 1:
            rests = now[COUNTS] + now[COUNTS + 1] == n or partition.box_rests(theta[rows[1]], problem.lo, problem.hi)
            # Where a pair rests, what follows may need no solve.
            if rests or log.used[0] + ROOM > log.prox.size or clock - began > settings.slice_s:
                return k - 1, False, known, pool
            _copy(now, reference)
        n_R, n_L = numbers[k, SCREENED], numbers[k, SCREENED + 1]
        if region == PAIR_BALL:
            n_R, n_L = _decide(C, C0, reference, margins[rows[1]], problem, settings, decided)
        status = decided if region != NOTHING and n_R + n_L >= settings.few * n else nothing
        screen_s = seconds() - clock
        good, epochs, rounds, touched, solve_s, certify_s, known, pool = _solve_point(
            X, problem, points, k, ahead.C if k == 1 else grid[k - 2], rows, status, settings, how, ahead, known, pool,
            log, sums, reference, held, now,
        )  # fmt: skip
        if not good or not _no_worse(C, problem, points, k, rows, reference, settings.tol, now):
            return k - 1, True, known, pool
        _note(now, float(n), now[COUNTS], now[COUNTS + 1], n_R, n_L, epochs, rounds, touched, screen_s, solve_s)
        now[SECONDS + 2], now[NNZ] = certify_s, 0.0
        for j in range(w.shape[1]):
            now[NNZ] += w[k, j] != 0.0
        _copy(now, numbers[k])
        until[k, 0], until[k, 1] = log.used[0], pool[-1][STEPS]
    return grid.size - 1, False, known, pool


def warm_up():
    one, marks = np.ones(2), np.ones(2, dtype=np.int8)
    pairs, rows = np.full((4, 2), 0.1), np.zeros((2, len(FIELDS)))
    problem = Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(box.TINY + 1))
    points = Points(np.array([0.1, 0.2]), pairs, pairs.copy(), pairs.copy(), pairs.copy(), rows, marks.copy())
    settings = Settings(1e-6, 1e-6, 9, PAIR_BALL, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, 1e-12)
    how = descent.How(1e-6, 0.5, True, 9, 2, 1.0)
    log = descent.Log(np.zeros((40, 1), np.uint8), np.zeros(40), np.zeros(1, np.int64))
    ahead = Ahead(0.05, np.uint64(0), np.uint64(0), 6, 0.1)
    X = matrix_of((one, np.arange(2, dtype=np.int32), np.arange(3)))
    face_walk(
        X, problem, points, settings, how, ahead, *map(tuple, nothing_known()), log, np.zeros((2, 2), np.int64)
    )  # fmt: skip
