"""Several steps of a box model in one compiled call: each is screened, solved and certified as by the loop.

Their parts (``compiled_steps``) are made of the kernels that the loop itself uses; this module has only their order.
"""

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem import box, partition
from screenpath.kernels.rows.barrier import WORD, Team, make_board
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import borrowed, matrix_of
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.newton import lent, minimise, table_of, workspace
from screenpath.kernels.walk.compiled_steps import (
    _begin,
    _certify,
    _changes_lent,
    _copied,
    _ends,
    _lift,
    _mark,
    _note,
    _points_lent,
    _problem_lent,
    _put_back,
    _record,
    _screen,
    _sum_up,
)  # fmt: skip
from screenpath.kernels.walk.compiled_types import (
    FIELDS,
    GAP,
    GIVEN,
    NOTHING,
    PAIR_BALL,
    PRIMAL,
    SCREENED,
    SECONDS,
    XI,
    Changes,
    Points,
    Problem,
    Settings,
)  # fmt: skip


@kernel
def box_walk(X, problem, points, settings, changes, room, team):
    """Walk several steps; each is certified on all rows before it becomes the reference of the next.

    Sparse rows need a team of one thread; its table is that of ``newton.table_of``.

    Returns
    -------
    count : int
        Steps that are done.
    refused : bool
        Whether the step after them did not reach its gap at once, is worse than zero, or is not above its reference.
    """
    X, room, team = borrowed(X), lent(room), Team(unowned(team.table), unowned(team.board), team.me)
    problem, points, changes = _problem_lent(problem), _points_lent(points), _changes_lent(changes)
    c, lo, hi, bounds = problem.c, problem.lo, problem.hi, problem.bounds
    grid, w, total, theta, margins, numbers, decided = points
    n, d, me, board = c.size, w.shape[1], team.me, team.board
    new_w, old, new, v = w[0].copy(), total[0].copy(), np.empty(d), np.empty(d)
    known, now = numbers[0].copy(), numbers[0].copy()
    nothing, kept = np.zeros(n, dtype=np.int8), margins.shape[0]
    began, point = seconds(), theta[0]
    n_R, n_L, nonzero = _ends(point, lo, hi, changes.ends, team)
    for k in range(1, grid.size):
        C, C0, clock, before, after = grid[k], grid[k - 1], seconds(), margins[(k - 1) % kept], margins[k % kept]
        if not C > C0:
            return k - 1, True
        if k > 1 and (n_R + n_L == n or partition.box_rests(point, lo, hi)):  # what follows may need no solve
            return k - 1, False
        screened_R, screened_L = 0.0, 0.0
        if settings.region == PAIR_BALL:
            screened_R, screened_L = _screen(C, C0, known, before, problem, settings, decided, team)
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
        n_R, n_L = n_R + more_R, n_L + more_L
        epochs, work, alive, _, _ = minimise(
            X, size, C * linear, v, new_w, settings.aim, settings.limit, settings.dynamic,
            box.errors_of(C, error, settings.rounding, bounds), 0.0, room, team,
        )  # fmt: skip
        _lift(size, C, lo, hi, room, point, team)
        if settings.marked and me == 0:
            _mark(size, alive, lo, hi, room.lists, point, decided)
        certifying = seconds()
        if me == 0:
            board[WORD] = certifying - began > settings.slice_s
        more_R, more_L, nonzero, more = _sum_up(
            X, problem, settings.fresh_every, count, point, nonzero, known, now, changes, room, old, new, team
        )
        n_R, n_L, touched = n_R + more_R, n_L + more_L, touched + int(more)
        place, same = box.NOWHERE, False
        for _ in range(2):
            if same:  # as `BoxModel.no_worse` has it
                for j in range(d):
                    new_w[j] = w[k - 1, j]
            _certify(X, problem, C, new_w, point, new, before, same, after, now, team)
            if same or not box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], settings.tol):
                break
            place = box.above_known(C, now[PRIMAL], known[0], known[XI], bounds)
            same = place == box.BEFORE
            if not same:
                break
        if place == box.AT_ZERO or not box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], settings.tol):
            if me == 0 and theta.shape[0] == 1:
                _put_back(changes.listed[:count], changes.held, point)
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
    box_walk(matrix_of(np.eye(2)), problem, points, settings, changes, workspace(2, 2, False), team)
