"""Several steps of a box model in one compiled call: each is screened, solved and certified as by the loop.

Their parts (``compiled_steps``) are made of the kernels that the loop itself uses; this module has only their order.
"""

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem import box, intercept, partition
from screenpath.kernels.rows.barrier import WORD, Team, make_board
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.multiplier import minimise_free, shifted
from screenpath.kernels.solve.newton import SIGNS, How, T, minimise, table_of, workspace
from screenpath.kernels.walk.compiled_steps import (
    _balanced,
    _begin,
    _certify,
    _copied,
    _ends,
    _levered,
    _lift,
    _mark,
    _note,
    _put_back,
    _record,
    _screen,
    _sum_up,
)  # fmt: skip
from screenpath.kernels.walk.compiled_types import (
    FIELDS,
    GAP,
    GIVEN,
    INTERCEPT,
    NOTHING,
    PAIR_BALL,
    PRIMAL,
    SCREENED,
    SECONDS,
    XI,
    Changes,
    Free,
    Points,
    Problem,
    Settings,
)  # fmt: skip


@kernel
def box_walk(X, problem, free, points, settings, changes, room, team):
    """Walk several steps; each is certified on all rows before it becomes the reference of the next.

    Sparse rows, and a free intercept, need a team of one thread; its table is that of ``newton.table_of``. With a
    ``free`` intercept (else None) the workspace has one column more.

    Returns
    -------
    count : int
        Steps that are done.
    refused : bool
        Whether the step after them did not reach its gap at once, is worse than zero, or is not above its reference.
    """
    X, room, team = unowned(X), unowned(room), unowned(team)
    problem, points, changes = unowned(problem), unowned(points), unowned(changes)
    c, lo, hi, bounds = problem.c, problem.lo, problem.hi, problem.bounds
    grid, w, total, theta, margins, numbers, decided = points
    n, d, me, board = c.size, w.shape[1], team.me, team.board
    new_w, old, new, v = w[0].copy(), total[0].copy(), np.empty(d), np.empty(d if free is None else d + 1)
    known, now, kept = numbers[0].copy(), numbers[0].copy(), margins.shape[0]
    nothing, more_w = np.zeros(n, dtype=np.int8), np.empty(v.size)
    forms, scratch, likely = margins[0], margins, changes.listed
    if free is not None:
        own, forms, scratch, likely = unowned(free), np.empty(n), np.empty((2, n)), np.empty(n, dtype=np.int64)
    began, point = seconds(), theta[0]
    n_R, n_L, nonzero = _ends(point, lo, hi, changes.ends, team)
    for k in range(1, grid.size):
        C, C0, clock, before, after = grid[k], grid[k - 1], seconds(), margins[(k - 1) % kept], margins[k % kept]
        if not C > C0:
            return k - 1, True
        if k > 1 and (n_R + n_L == n or partition.box_rests(point, lo, hi)):  # what follows may need no solve
            return k - 1, False
        screened_R, screened_L, read = 0.0, 0.0, 0
        if settings.region == PAIR_BALL:
            if free is None:
                screened_R, screened_L = _screen(C, C0, known, before, problem, settings, decided, team)
            else:
                screened_R, screened_L, read = _levered(
                    C, C0, known, point, X, before, problem, own, settings, forms, decided
                )
        elif settings.region == GIVEN:
            screened_R, screened_L = numbers[k, SCREENED], numbers[k, SCREENED + 1]
        solving = seconds()
        if theta.shape[0] > 1:
            point = _copied(point, theta[k], team)
        enough = settings.region != NOTHING and screened_R + screened_L >= settings.few * n
        status = decided if enough else nothing
        size, count, linear, error, more_R, more_L, touched = _begin(
            C, X, problem, known, status, point, before, changes, room, old, new, v, team
        )
        n_R, n_L, touched, rows = n_R + more_R, n_L + more_L, touched + read, changes.listed[:count]
        errors, good, same = box.errors_of(C, error, settings.rounding, bounds), True, False
        how = How(settings.aim, settings.limit, settings.dynamic, errors)
        if free is None:
            epochs, work, alive, _, _ = minimise(X, size, C * linear, v, new_w, how, 0.0, room, team)
        else:
            rest = intercept.rest_of(C, rows, status, changes.held[:count], point, problem.signs, False)
            for j in range(d):
                more_w[j] = new_w[j]
            shifted(size, room.vectors[T], room.marks[SIGNS], known[INTERCEPT], room.vectors[T])
            epochs, work, _, _, _, good = minimise_free(
                X, size, C * linear, rest, known[INTERCEPT], own.typical, v, more_w, how, room, team
            )
            alive = -1  # what is fixed in a problem with a penalised intercept is nothing that could be told
            for j in range(d):
                new_w[j] = more_w[j]
        _lift(size, C, lo, hi, room, point, team)
        if settings.marked and alive >= 0 and me == 0:
            _mark(size, alive, lo, hi, room.lists, point, decided)
        certifying = seconds()
        if me == 0:
            board[WORD] = certifying - began > settings.slice_s
        for _ in range(2):
            if same:  # as `BoxModel.no_worse` has it
                for j in range(d):
                    new_w[j] = w[k - 1, j]
            if free is not None:
                good = good and _balanced(
                    X, problem, own, new_w, point, rows, before, same, after, forms, scratch, likely, now
                )
                if not good:
                    break
            if not same:
                more_R, more_L, nonzero, more = _sum_up(
                    X, problem, settings.fresh_every, count, point, nonzero, known, now, changes, room, old, new, team
                )
                n_R, n_L, touched = n_R + more_R, n_L + more_L, touched + int(more)
            _certify(X, problem, free, C, new_w, point, new, before, same, after, forms, now, team)
            good = box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], settings.tol)
            if same or not good:
                break
            place = box.above_known(C, now[PRIMAL], known[0], known[XI], bounds)
            good, same = place != box.AT_ZERO, place == box.BEFORE
            if not same:
                break
        if not good:
            if me == 0 and theta.shape[0] == 1:
                _put_back(rows, changes.held, point)
            return k - 1, True
        if me == 0:
            _note(
                now, float(n), n_R, n_L, screened_R, screened_L, epochs, 1, touched + work + n, solving - clock,
                certifying - solving,
            )  # fmt: skip
            _record(k, now, new_w, new, numbers, w, total)
            numbers[k, SECONDS + 2] = seconds() - certifying
        if board[WORD] != 0:
            return k, False
        old, new = new, old
        known, now = now, known
    return grid.size - 1, False


def warm_up():
    one, marks, index = np.ones(2), np.ones(2, dtype=np.int8), np.zeros(2, dtype=np.int64)
    pairs, rows = np.full((2, 2), 0.1), np.zeros((2, len(FIELDS)))
    problem = Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(box.TINY + 1))
    points = Points(
        np.array([0.1, 0.2]), pairs, np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, marks.copy()
    )  # fmt: skip
    settings = Settings(1e-6, 1e-6, 9, PAIR_BALL, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, 1e-12)
    changes = Changes(marks.copy(), index, one.copy(), np.empty((2, 1, 2)))
    team = Team(table_of(1, 2), make_board(1), 0)
    box_walk(matrix_of(np.eye(2)), problem, None, points, settings, changes, workspace(2, 2, False), team)
    problem, lo = problem._replace(signs=np.array([1, -1], dtype=np.int8)), np.array([0.0, -1.0])
    free = Free(one * problem.signs, lo, lo + 1.0, one, one, one, 1.0, 0.0, 1.0, 1.0, 1.0)
    team, room = Team(table_of(1, 3), make_board(1), 0), workspace(2, 3, False)
    box_walk(matrix_of(np.eye(2)), problem, free, points, settings, changes, room, team)
