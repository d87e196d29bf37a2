"""Several steps of a box model in one compiled call: each is screened, solved and certified as by the loop.

Their parts (``compiled_steps``) are made of the kernels that the loop itself uses; this module has only their order.
A walk that does not read all rows (``lazy``) solves for those near their kinks, and for more of them until the gap is
met: the pair of one round is the reference of the next.
"""

from itertools import product

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem import box, intercept, partition
from screenpath.kernels.rows.barrier import WORD, Team, make_board
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.margins import SIGNS, T, table_of, workspace
from screenpath.kernels.solve.multiplier import minimise_free, shifted
from screenpath.kernels.solve.newton import How, minimise
from screenpath.kernels.walk import compiled_steps as step
from screenpath.kernels.walk import compiled_types as fields
from screenpath.kernels.walk import deadlines
from screenpath.kernels.walk import lazy as unread

MOST_ROUNDS, CLOSER = 9, 0.1  # solves of a step; its target after one that has brought no new row, times the last
ROUGH = 1e-4  # target of the first solve of a path


@kernel
def box_walk(X, problem, free, lazy, points, settings, changes, room, team):
    """Walk several steps; each is certified on all rows before it becomes the reference of the next.

    Sparse rows, a free intercept, and a walk that does not read all rows need a team of one thread; its table is that
    of ``margins.table_of``. With ``free`` the workspace has one column more. ``free`` and ``lazy`` are empty
    tuples where there is none, and where all rows are read: a tuple's length is known to the compiler, so that of each
    walk only its own kernels are compiled and loaded.

    Returns ``count``: steps that are done; ``refused``: whether the step after them did not reach its gap at once, is
    worse than zero, or is not above its reference.
    """
    X, room, team = unowned(X), unowned(room), unowned(team)
    problem, points, changes = unowned(problem), unowned(points), unowned(changes)
    c, lo, hi, bounds = problem.c, problem.lo, problem.hi, problem.bounds
    grid, w, total, theta, margins, numbers, decided = points
    n, d, me, board = c.size, w.shape[1], team.me, team.board
    new_w, old, new, v = w[0].copy(), total[0].copy(), np.empty(d), np.empty(d if len(free) == 0 else d + 1)
    known, now, kept = numbers[0].copy(), numbers[0].copy(), margins.shape[0]
    nothing, more_w = np.empty(n, dtype=np.int8), np.empty(v.size)
    for i in range(n):
        nothing[i] = 0
    forms, scratch, likely = margins[0], margins, changes.listed
    if len(free) > 0:
        own, forms, scratch, likely = unowned(free), np.empty(n), np.empty((2, n)), np.empty(n, dtype=np.int64)
    began, point, least = seconds(), theta[0], 1.0
    n_R, n_L, nonzero = step._ends(point, lo, hi, changes.ends, team)
    if len(lazy) > 0:
        known_rows = unowned(lazy)
        least = unread.begin(changes.ends, known_rows)
    k, rounds, near, last, aim = 1, 0, 0, 0, settings.aim
    spent, swept, screen_s, solve_s, certify_s = 0, 0, 0.0, 0.0, 0.0
    known_sq, known_xi, C0 = known[0], known[fields.XI], grid[0]
    while k < grid.size:
        C, clock, before, after = grid[k], seconds(), margins[(k - 1) % kept], margins[k % kept]
        status, epochs, work, touched = nothing, 0, 0, 0
        if rounds == 0:
            n_E, spent, swept, aim, solve_s, certify_s = n - n_R - n_L, 0, 0, settings.aim, 0.0, 0.0
            if not C > C0:  # a start from samples is too far away for many digits at once
                aim = max(aim, ROUGH)
            if len(lazy) == 0 and not C > C0:
                return k - 1, True
            if k > 1 and (n_E == 0 or partition.box_rests(point, lo, hi)):  # what follows may need no solve
                return k - 1, False
            if k > 1 and (n_E <= settings.between if len(lazy) == 0 else n_E > 2.0 * settings.between):
                return k - 1, False
            screened_R, screened_L, known_sq, known_xi = 0.0, 0.0, known[0], known[fields.XI]
            if theta.shape[0] > 1:
                point = step._copied(point, theta[k], team)
            if len(lazy) > 0:
                near, spent = unread.working_set(X, problem, C, new_w, point, old, n_E, known_rows)
                if settings.region == fields.PAIR_BALL:
                    ahead, radius, _ = step._ball(C, C0, known, settings.relative)
                    radius += C * known[fields.SHIFT]
                    reach, more = radius + (ahead - 1.0) * np.sqrt(known[0]), 0.0
                    if len(free) > 0:
                        ball = reach, radius
                        more, work = unread.levered(X, problem, C, ball, known[fields.RESIDUE], point, near, known_rows)
                        spent, work = spent + work, 0
                    screened_R, screened_L = unread.decided(reach, more / least, bounds, known_rows)
            elif settings.region == fields.PAIR_BALL:
                if len(free) == 0:
                    screened_R, screened_L = step._screen(C, C0, known, before, problem, settings, decided, team)
                else:
                    screened_R, screened_L, spent = step._levered(
                        C, C0, known, point, X, before, problem, own, settings, forms, decided
                    )
            elif settings.region == fields.GIVEN:
                screened_R, screened_L = numbers[k, fields.SCREENED], numbers[k, fields.SCREENED + 1]
            screen_s = seconds() - clock
        solving = seconds()
        if len(lazy) > 0:
            status, before, last = known_rows.sides, known_rows.margins, near
        elif settings.region != fields.NOTHING and screened_R + screened_L >= settings.few * n:
            status = decided
        size, count, linear, error, more_R, more_L, moved = step._begin(
            C, X, problem, known, status, point, before, changes, room, old, new, v, team
        )
        n_R, n_L, touched, rows = n_R + more_R, n_L + more_L, touched + moved, changes.listed[:count]
        errors, good, same = box.errors_of(C, error, settings.rounding, bounds), True, False
        dynamic = settings.dynamic and len(lazy) == 0
        how = How(aim, settings.limit - swept, dynamic, errors, len(lazy) > 0, settings.steep)
        if len(free) == 0:
            epochs, work, alive, _, _ = minimise(X, size, C * linear, v, new_w, how, 0.0, room, team)
        else:
            rest = intercept.rest_of(C, rows, status, changes.held[:count], point, problem.signs, False)
            for j in range(d):
                more_w[j] = new_w[j]
            shifted(size, room.vectors[T], room.marks[SIGNS], known[fields.INTERCEPT], room.vectors[T])
            epochs, work, _, _, b, good, extent = minimise_free(
                X, size, C * linear, rest, known[fields.INTERCEPT], own.typical, v, more_w, how, room, team
            )
            alive = -1  # what is fixed in a problem with a penalised intercept is nothing that could be told
            for j in range(d):
                new_w[j] = more_w[j]
        step._lift(size, C, lo, hi, room, point, team)
        if len(lazy) > 0:
            near, more = unread.widened(X, problem, new_w, last, point, known_rows)
            if near > last:
                spent, swept, rounds = spent + touched + work + more, swept + epochs, rounds + 1
                continue
            unread.at_ends(size, room, lo, hi, point)
        if settings.marked and alive >= 0 and me == 0:
            step._mark(size, alive, lo, hi, room.lists, point, decided)
        certifying = seconds()
        solve_s += certifying - solving
        if me == 0:
            board[WORD] = certifying - began > settings.slice_s
        for _ in range(2):
            if same:  # as `BoxModel.no_worse` has it
                for j in range(d):
                    new_w[j] = w[k - 1, j]
                if len(lazy) > 0:
                    b, extent = numbers[k - 1, fields.INTERCEPT], 0.0
                    touched += unread.back(X, problem, new_w, b, size, room, known_rows)
            if len(free) > 0 and good and len(lazy) > 0:
                good = unread.balanced(problem, own, new_w, (b, extent), size, same, point, room, known_rows, now)
            elif len(free) > 0 and good:
                good = step._balanced(
                    X, problem, own, new_w, point, rows, before, same, after, forms, scratch, likely, now
                )
            if not good:
                now[fields.GAP] = np.inf
                break
            if not same:
                more_R, more_L, nonzero, more = step._sum_up(
                    X, problem, settings.fresh_every, count, point, nonzero, known, now, changes, room, old, new, team
                )
                n_R, n_L, touched = n_R + more_R, n_L + more_L, touched + int(more)
            if len(lazy) > 0:
                near, more, good = unread.certify(X, problem, C, new_w, point, new, last, room, known_rows, now)
                touched += more
            else:
                step._certify(X, problem, free, C, new_w, point, new, before, same, after, forms, now, team)
                touched += 0 if same else n
            good = good and box.meets(now[fields.GAP], now[fields.PRIMAL], now[fields.PRIMAL + 1], settings.tol)
            if same or not good:
                break
            place = box.above_known(C, now[fields.PRIMAL], known_sq, known_xi, bounds)
            good, same = place != box.AT_ZERO, place == box.BEFORE
            if not same:
                break
        spent, swept, rounds = spent + touched + work, swept + epochs, rounds + 1
        if not good and len(lazy) > 0 and rounds < MOST_ROUNDS and swept < settings.limit and now[fields.GAP] < np.inf:
            if aim > settings.aim:
                aim = settings.aim
            elif near == last:
                aim *= CLOSER
            unread.enter(last, near, point, known_rows)
            certify_s += seconds() - certifying
        elif not good:
            if len(lazy) > 0:
                numbers[k, fields.EPOCHS + 2] = spent
            if me == 0 and theta.shape[0] == 1:
                if len(lazy) > 0:
                    unread.put_back(known_rows.near[:last], known_rows.held, point)
                else:
                    unread.put_back(rows, changes.held, point)
            return k - 1, True
        else:
            if len(lazy) > 0:
                unread.leave(problem, point, last, changes.ends, known_rows)
            if me == 0:
                step._note(now, float(n), n_R, n_L, screened_R, screened_L, swept, rounds, spent, screen_s, solve_s)
                step._record(k, now, new_w, new, numbers, w, total)
                numbers[k, fields.SECONDS + 2] = certify_s + seconds() - certifying
            if board[WORD] != 0:
                return k, False
            k, rounds = k + 1, 0
        C0, old, new, known, now = C, new, old, now, known
    return grid.size - 1, False


def warm_up():
    for free, lazy in product((False, True), repeat=2):
        warm(free, lazy)


def warm(free: bool, lazy: bool) -> None:
    """Compile the walk with or without a ``free`` intercept, and the ``lazy`` one or that which reads all rows."""
    one, marks, index = np.ones(2), np.ones(2, dtype=np.int8), np.zeros(2, dtype=np.int64)
    pairs, rows = np.full((2, 2), 0.1), np.zeros((2, len(fields.FIELDS)))
    problem, more = fields.Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(box.TINY + 1)), ()
    points = fields.Points(one[:1], pairs, np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, marks.copy())
    settings = fields.Settings(
        1e-6, 1e-6, 9, fields.PAIR_BALL, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, 1e-12, -1.0, 1.0
    )  # fmt: skip
    changes = fields.Changes(marks.copy(), index, one.copy(), np.empty((2, 1, 2)))
    if free:
        problem, lo = problem._replace(signs=np.array([1, -1], dtype=np.int8)), np.array([0.0, -1.0])
        more = fields.Free(one * problem.signs, lo, lo + 1.0, one, one, one, 1.0, 0.0, 1.0, 1.0, 1.0)
    team, room = Team(table_of(1, 2 + free), make_board(1), 0), workspace(2, 2 + free, False)
    measure = one, one, one, np.ones(2, dtype=np.float32), np.eye(2), 0.0
    seen = deadlines.nothing(2, 16, 2, measure) if lazy else ()
    box_walk(matrix_of(np.eye(2)), problem, more, seen, points, settings, changes, room, team)
