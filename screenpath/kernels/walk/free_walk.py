"""``compiled.box_walk`` with a free intercept: a lever on either side, multipliers, a dual point that sums to 0."""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.problem import box, intercept, partition
from screenpath.kernels.problem.partition import ROWS
from screenpath.kernels.rows.barrier import Team, make_board
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import borrowed, matrix_of, products
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.screen import lever
from screenpath.kernels.solve.multiplier import minimise_free, shifted
from screenpath.kernels.solve.newton import SIGNS, T, lent, table_of, workspace
from screenpath.kernels.walk.compiled_steps import (
    _ball,
    _begin,
    _changes_lent,
    _copied,
    _ends,
    _lift,
    _note,
    _points_lent,
    _problem_lent,
    _put_back,
    _record,
    _sum_up,
)  # fmt: skip
from screenpath.kernels.walk.compiled_types import (
    COST,
    ERROR,
    FIELDS,
    GAP,
    HIGH,
    INTERCEPT,
    LOW,
    NOTHING,
    PAIR_BALL,
    PRIMAL,
    RESIDUE,
    SCREENED,
    SECONDS,
    SHIFT,
    SUM_ERROR,
    XI,
    Changes,
    Free,
    Points,
    Problem,
    Settings,
)  # fmt: skip


@kernel
def _free_lent(free):
    kinks, lo, hi, width, spread, mean, level, slack, typical, largest, largest_kink = free
    return Free(
        unowned(kinks), unowned(lo), unowned(hi), unowned(width), unowned(spread), unowned(mean), level, slack, typical,
        largest, largest_kink,
    )  # fmt: skip


@kernel
def _levered(C, C0, known, theta, X, margins, problem, free, settings, tau, status):
    """Decide with the ball of the reference's pair, whose numbers are ``known``, and a lever on either side.

    Returns ``n_R, n_L, touched``.
    """
    d, (ahead, radius, _) = free.mean.size, _ball(C, C0, known, settings.relative)
    radius += C * known[SHIFT]
    extent = np.sqrt(ahead * ahead * known[0]) + radius
    rows, weights = np.empty((2, lever.FEWER), dtype=np.int64), np.empty((2, lever.FEWER))
    offsets, centers, lengths, away = np.empty((2, 2)), np.empty((2, d)), np.empty(2), np.empty(2)
    if radius < lever.LEAST:
        radius = lever.LEAST
    first, second = lever.one_lever_each(
        free.kinks, problem.signs, margins, ahead, problem.norms, extent, settings.rounding, theta, C, free.lo, free.hi,
        C * known[RESIDUE], free.largest, radius, free.typical, tau, rows, weights, offsets,
    )  # fmt: skip
    for h in range(2):
        m = first if h == 0 else second
        lever.lever_centers(
            X, rows[h, :m], weights[h : h + 1], free.mean, settings.lever, centers[h : h + 1],
            lengths[h : h + 1], away[h : h + 1],
        )  # fmt: skip
    n_R, n_L = lever.decide_by_one_each(
        tau, free.kinks, problem.signs, problem.norms, extent, settings.rounding, free.spread, radius, offsets, away,
        status, 0, tau.size,
    )  # fmt: skip
    return n_R, n_L, first + second


@kernel
def _balanced(X, problem, free, w, theta, listed, before, same, margins, t, scratch, likely, now):
    """Write the margins, find the best intercept and balance the dual point; ``t`` and ``scratch`` are work space.

    The margins are those in ``before`` if ``w`` is the ``same``; then no dual variable may change.

    Returns whether listed rows were enough to balance.
    """
    c, lo, hi, signs = problem.c, problem.lo, problem.hi, problem.signs
    for s in range(0, c.size, ROWS):
        e = min(c.size, s + ROWS)
        if same:
            for i in range(at(s), at(e)):
                margins[i] = before[i]
        else:
            products(X, w, margins, s, e)
            box.sign(margins, signs, s, e)
        for i in range(at(s), at(e)):
            t[i] = free.kinks[i] - signs[i] * margins[i]
    n = 0
    for r in range(at(listed.size)):
        i = at(listed[r])
        likely[at(n)] = listed[r]
        n += (lo[i] < theta[i]) & (theta[i] < hi[i])
    low, high = intercept.best_interval(t, free.width, free.level, free.slack, likely[:n], scratch)
    b = intercept.best_of(low, high)
    for r in range(n):  # of no other row it is asked
        i = likely[r]
        t[i] = c[i] - (margins[i] + signs[i] * b)
    residue, fall, rise, moved, left = intercept.balance(theta, t, lo, hi, signs, free.largest, likely[:n], True)
    slope, floor = intercept.form_errors(w, b, problem.bounds)
    now[SHIFT], now[COST] = intercept.residue_costs(residue, fall, rise, problem.norms, t, slope, floor)
    now[RESIDUE] = residue * (1.0 + 8.0 * box.UNIT)
    now[INTERCEPT], now[LOW], now[HIGH] = b, low, high
    return left == 0.0 and residue < np.inf and not (same and moved > 0)


@kernel
def _certify(C, problem, free, w, theta, total, margins, forms, now):
    """Write what ``box.box_certificate`` finds, except the counts, of a pair with a free intercept to ``now``."""
    _, c, lo, hi, norms, signs, bounds = problem
    b = now[INTERCEPT]
    slope, floor = intercept.form_errors(w, b, bounds)
    xi, ell, plain, slack = 0.0, 0.0, 0.0, 0.0
    for s in range(0, c.size, ROWS):
        e = min(c.size, s + ROWS)
        for i in range(at(s), at(e)):
            forms[i] = margins[i] + signs[i] * b
        one, two, three, four = box.box_terms(c, forms, lo, hi, theta, norms, slope, floor, s, e)
        xi, ell, plain, slack = xi + one, ell + two, plain + three, slack + four
    found = box.box_objectives(
        C, w, total, now[SUM_ERROR] + now[SHIFT], xi, ell, plain, slack + now[COST], slope, floor, bounds
    )
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10] = found
    now[ERROR] += now[COST] + now[RESIDUE] * free.largest_kink


@kernel
def free_walk(X, problem, free, points, settings, changes, room, team):
    """Walk several steps; each is certified on all rows before it becomes the reference of the next.

    Arguments and results are those of ``compiled.box_walk``, by one thread; the workspace has one column more.
    """
    X, room, team = borrowed(X), lent(room), Team(unowned(team.table), unowned(team.board), team.me)
    problem, free = _problem_lent(problem), _free_lent(free)
    points, changes = _points_lent(points), _changes_lent(changes)
    c, lo, hi, bounds, signs = problem.c, problem.lo, problem.hi, problem.bounds, problem.signs
    grid, w, total, theta, margins, numbers, decided = points
    n, d = c.size, w.shape[1]
    new_w, old, new, v, more_w = w[0].copy(), total[0].copy(), np.empty(d), np.empty(d + 1), np.empty(d + 1)
    known, now, likely = numbers[0].copy(), numbers[0].copy(), np.empty(n, dtype=np.int64)
    nothing, kept, forms = np.zeros(n, dtype=np.int8), margins.shape[0], np.empty(n)
    scratch = np.empty((2, n))
    began, point = seconds(), theta[0]
    n_R, n_L, nonzero = _ends(point, lo, hi, changes.ends, team)
    for k in range(1, grid.size):
        C, C0, clock, before, after = grid[k], grid[k - 1], seconds(), margins[(k - 1) % kept], margins[k % kept]
        if not C > C0:
            return k - 1, True
        if k > 1 and (n_R + n_L == n or partition.box_rests(point, lo, hi)):  # what follows may need no solve
            return k - 1, False
        screened_R, screened_L, touched = 0.0, 0.0, 0
        if settings.region == PAIR_BALL:
            screened_R, screened_L, touched = _levered(
                C, C0, known, point, X, before, problem, free, settings, forms, decided
            )
        elif settings.region != NOTHING:
            screened_R, screened_L = numbers[k, SCREENED], numbers[k, SCREENED + 1]
        solving = seconds()
        if theta.shape[0] > 1:
            point = _copied(point, theta[k], team)
        enough = settings.region != NOTHING and screened_R + screened_L >= settings.few * n
        status = decided if enough else nothing
        size, count, linear, error, more_R, more_L, moved = _begin(
            C, X, problem, known, status, point, before, changes, room, old, new, v, team
        )
        n_R, n_L, touched, rows = n_R + more_R, n_L + more_L, touched + moved, changes.listed[:count]
        rest = intercept.rest_of(C, rows, status, changes.held[:count], point, signs, False)
        for j in range(d):
            more_w[j] = new_w[j]
        shifted(size, room.vectors[T], room.marks[SIGNS], known[INTERCEPT], room.vectors[T])
        epochs, work, _, _, _, solved = minimise_free(
            X, size, C * linear, rest, known[INTERCEPT], free.typical, v, more_w, settings.aim, settings.limit,
            settings.dynamic, box.errors_of(C, error, settings.rounding, bounds), room, team,
        )  # fmt: skip
        for j in range(d):
            new_w[j] = more_w[j]
        _lift(size, C, lo, hi, room, point, team)
        certifying = seconds()
        good, same = solved, False
        for _ in range(2):
            if same:  # as `BoxModel.no_worse` has it
                for j in range(d):
                    new_w[j] = w[k - 1, j]
            if not good or not _balanced(
                X, problem, free, new_w, point, rows, before, same, after, forms, scratch, likely, now
            ):
                good = False
                break
            if not same:
                more_R, more_L, nonzero, more = _sum_up(
                    X, problem, settings.fresh_every, count, point, nonzero, known, now, changes, room, old, new, team
                )
                n_R, n_L, touched = n_R + more_R, n_L + more_L, touched + int(more)
            _certify(C, problem, free, new_w, point, new, after, forms, now)
            good = box.meets(now[GAP], now[PRIMAL], now[PRIMAL + 1], settings.tol)
            if same or not good:
                break
            place = box.above_known(C, now[PRIMAL], known[0], known[XI], bounds)
            good, same = place != box.AT_ZERO, place == box.BEFORE
            if not same:
                break
        if not good:
            _put_back(rows, changes.held, point)
            return k - 1, True
        _note(
            now, float(n), n_R, n_L, screened_R, screened_L, epochs, 1, touched + work + n, solving - clock,
            certifying - solving,
        )  # fmt: skip
        _record(k, now, new_w, new, numbers, w, total)
        numbers[k, SECONDS + 2] = seconds() - certifying
        if certifying - began > settings.slice_s:
            return k, False
        old, new = new, old
        known, now = now, known
    return grid.size - 1, False


def warm_up():
    one, marks, index = np.ones(2), np.array([1, -1], dtype=np.int8), np.zeros(2, dtype=np.int64)
    pairs, rows, lo = np.full((2, 2), 0.1), np.zeros((2, len(FIELDS))), np.array([0.0, -1.0])
    problem = Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(box.TINY + 1))
    points = Points(
        np.array([0.1, 0.2]), pairs, np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, marks.copy()
    )  # fmt: skip
    settings = Settings(1e-6, 1e-6, 9, PAIR_BALL, True, 0.05, 16, 1e-12, 1e-14, 1.0, True, 1e-12)
    changes = Changes(marks.copy(), index, one.copy(), np.empty((2, 1, 2)))
    team = Team(table_of(1, 3), make_board(1), 0)
    free = Free(one * marks, lo, lo + 1.0, one, one, one, 1.0, 0.0, 1.0, 1.0, 1.0)
    free_walk(matrix_of(np.eye(2)), problem, free, points, settings, changes, workspace(2, 3, False), team)
