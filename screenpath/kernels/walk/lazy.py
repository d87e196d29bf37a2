"""Certificates that read only the rows near their kinks, for a compiled walk.

A row whose dual variable is exactly at the end that its margin asks for adds exactly 0 to the gap. It stays so while
``w`` has moved less than the row's distance from its kink. Each row keeps its margin at its last reading, the *version*
of ``w`` that this was for, and a *deadline*: the reading of an odometer of ``w``'s moves up to which the row has
certainly not reached its kink. Rows with a later deadline are not read. The others get a sharper test, which uses the
straight way from their version to ``w``; what that cannot decide is read.

Rounding: lengths of moves, sizes of rows and errors of margins are rounded up, deadlines down. ``dl >= odometer`` then
proves that the exact row is on its side of its exact kink, see :func:`_ahead`.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem import box
from screenpath.kernels.problem.box import (
    ALL_KINKS,
    ALL_NORMS,
    ALL_ONES,
    FEATURE_SUM,
    HIDDEN,
    KINK,
    PRODUCT,
    ROW_SUM,
    SLOPE,
    UNIT,
)
from screenpath.kernels.problem.partition import ROWS
from screenpath.kernels.rows.matrix import dot, listed_products, matrix_of
from screenpath.kernels.solve.newton import ALPHA, HI, LO, WHERE, T, workspace
from screenpath.kernels.walk.compiled_types import ERROR, FIELDS, GAP, PRIMAL, ROUNDING, SUM_ERROR, Problem

SCANNED = 128  # deadlines that are compared at a time
NEARBY = 0.3  # of the last step's move: rows that such a move brings to their kink are solved for
SHRINK, GROW, TRIES = 0.5, 3.0, 12  # of how far a working set goes: from step to step, and while it has too few rows
ABLE = 4.0  # how far the dual variables of a working set can move the sum over rows, for what it is away from w
FEW = 2.0  # rows of a working set for each that is between its ends, at least
CLOSE = 0.25  # of a step's move: rows read for a certificate join the working set if they are so close to their kink
ROOM = 10  # versions for which there has to be room when a step begins
BETWEEN = 2  # side of a row that is at neither end, outside of a working set
OPEN = -1.0  # deadline of a row that is not at the end its margin asks for
# Of the state: what w has moved, versions kept, length of the last step's move, and how far its working set went.
ODOMETER, VERSIONS, MOVE, REACH = range(4)
SQUARE, ERROR_SLOPE, ERROR_FLOOR, LOOKED, SCALE, SCALED, PLAIN = range(7)  # of a version, see `_straight`


NONE = np.empty(0)


class Lazy(NamedTuple):
    """What is known of the rows without reading them; arrays of length 0 where every row is read.

    Attributes
    ----------
    margins, deadlines : ndarray of shape (n,)
    version : ndarray of int32 of shape (n,)
        For which row of ``points`` the margin is.
    sizes, units : ndarray of shape (n,), ndarray of shape (d,)
        At least the norms of the exact rows, each column divided by its unit, in which moves of ``w`` are measured:
        ``|g.move| <= ||g / units|| ||units move||``. So a column of large values does not make every move look long.
    sides : ndarray of int8 of shape (n,)
        Ends of the dual variables; 0 of those in the working set. Written when a walk begins.
    points : ndarray of shape (versions, d)
    facts : ndarray of shape (versions, 7)
        Squared norm and error bounds of each, and what is known of the way from there to the present ``w``.
    state : ndarray of shape (4,)
    near : ndarray of int64 of shape (n,)
        The working set.
    held : ndarray of shape (n,)
        Its dual variables before the step.
    found, values : ndarray of int64, and of float64, of shape (n,)
        Work space.
    """

    margins: np.ndarray
    deadlines: np.ndarray
    version: np.ndarray
    sizes: np.ndarray
    units: np.ndarray
    sides: np.ndarray
    points: np.ndarray
    facts: np.ndarray
    state: np.ndarray
    near: np.ndarray
    held: np.ndarray
    found: np.ndarray
    values: np.ndarray


def nothing(n=0, versions=0, d=0, sizes=NONE, units=NONE) -> Lazy:
    """Return arrays of so many rows and versions, with nothing known yet; of none, every row is read."""
    return Lazy(
        np.empty(n), np.empty(n), np.zeros(n, dtype=np.int32), sizes, units,
        np.empty(n, dtype=np.int8), np.empty((versions, d)), np.zeros((versions, 7)), np.zeros(4),
        np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64), np.empty(n),
    )  # fmt: skip


@kernel(fastmath=SUMS, leaf=True)
def distance(w, scale, point, units, bounds):
    """Return an upper bound of ``||units (w - scale * point)||``; the units, powers of two, round nothing."""
    square, part = 0.0, 0.0
    for j in range(w.size):
        scaled = scale * point[j]
        step = units[j] * (w[j] - scaled)
        part += (units[j] * scaled) * (units[j] * scaled)
        square += step * step
    rounded = 0.0 if scale == 1.0 else 4.0 * UNIT * np.sqrt(part)
    return (np.sqrt(square) + rounded + bounds[HIDDEN]) * (1.0 + 2.0 * bounds[FEATURE_SUM])


@kernel
def new_version(w, problem, lazy):
    """Move the odometer to ``w`` and list it as a version; return its number and how far it is from the last one."""
    state, now, move = lazy.state, int(lazy.state[VERSIONS]), 0.0
    if now > 0:
        move = distance(w, 1.0, lazy.points[now - 1], lazy.units, problem.bounds)
    _describe(now, w, problem.bounds, lazy)
    for r in range(now):
        lazy.facts[r, LOOKED] = 0.0
    state[ODOMETER] = (state[ODOMETER] + move) * (1.0 + 2.0 * UNIT)
    state[VERSIONS] = now + 1
    return now, move


@kernel
def _describe(r, w, bounds, lazy):
    """Write ``w`` as version ``r``, the present one."""
    points, facts, square = lazy.points, lazy.facts, 0.0
    for j in range(w.size):
        points[r, j] = w[j]
        square += w[j] * w[j]
    facts[r, SQUARE], (facts[r, ERROR_SLOPE], facts[r, ERROR_FLOOR]) = square, box.product_errors(w, bounds)
    facts[r, LOOKED], facts[r, SCALE], facts[r, SCALED], facts[r, PLAIN] = 1.0, 1.0, 0.0, 0.0


@kernel
def _straight(r, now, lazy, bounds):
    """Write the way from version ``r`` to the present: the multiple of it that is nearest, and both distances."""
    points, facts = lazy.points, lazy.facts
    inner = 0.0
    for j in range(points.shape[1]):
        inner += points[r, j] * points[now, j]
    scale = inner / facts[r, SQUARE] if facts[r, SQUARE] > 0.0 else 1.0
    facts[r, LOOKED], facts[r, SCALE] = 1.0, scale
    facts[r, SCALED] = distance(points[now], scale, points[r], lazy.units, bounds)
    facts[r, PLAIN] = distance(points[now], 1.0, points[r], lazy.units, bounds)


@kernel(leaf=True)
def _ahead(i, side, c, norm, lazy):
    """Return a lower bound of how far ``w`` may move before the row reaches its kink; negative if it may have.

    ``side`` is 1 for a row whose dual variable is at its upper end, where ``c - g.w`` has to be positive, else -1. For
    any ``scale``, ``g.w`` is within ``||g|| ||w - scale * point||`` of ``scale * margin``, whose own error is that of
    the margin. All numbers of the version have been found by :func:`_straight`.
    """
    facts, size, margin = lazy.facts[at(lazy.version[i])], lazy.sizes[i], lazy.margins[i]
    error = facts[ERROR_SLOPE] * norm + facts[ERROR_FLOOR]
    known, scale = abs(c) + abs(margin), facts[SCALE]
    plain = side * (c - margin) - (error + 8.0 * UNIT * known + size * facts[PLAIN]) * (1.0 + 8.0 * UNIT)
    most = max(abs(scale), 1.0)
    lost = (most * (error + 8.0 * UNIT * known) + size * facts[SCALED]) * (1.0 + 8.0 * UNIT)
    left = max(plain, side * (c - scale * margin) - lost)
    return left / size * (1.0 - 8.0 * UNIT if left > 0.0 else 1.0)


@kernel(leaf=True)
def _left(i, problem, lazy):
    """Return :func:`_ahead` of a row outside of the working set; negative if it is not at an end."""
    if problem.lo[i] == problem.hi[i]:
        return np.inf
    side = lazy.sides[i]
    return OPEN if side == BETWEEN else _ahead(i, float(side), problem.c[i], problem.norms[i], lazy)


@kernel(leaf=True)
def deadline(ahead, state):
    """Return the odometer's reading up to which a row is certainly ``ahead`` of its kink."""
    return (state[ODOMETER] + ahead) * (1.0 - 4.0 * UNIT) if ahead >= 0.0 else OPEN


@kernel(leaf=True)
def _expired(deadlines, sides, limit, found):
    """List the rows outside of the working set whose deadline is not at least ``limit``; return how many."""
    count = 0
    for s in range(0, deadlines.size, SCANNED):
        e, late = min(s + SCANNED, deadlines.size), 0
        for i in range(at(s), at(e)):
            late += not deadlines[i] >= limit  # so that what is not a number counts
        if late == 0:
            continue
        for i in range(at(s), at(e)):
            found[at(count)] = i
            count += (not deadlines[i] >= limit) & (sides[i] != 0)
    return count


@kernel
def look(X, problem, w, reach, keep, count, lazy):
    """Bring rows up to date that a move of ``w`` by ``reach`` could bring to their kink, and list the near ones.

    Parameters
    ----------
    w : ndarray of shape (d,)
        The last version.
    reach, keep : float
        Rows that the sharper test does not leave further than ``reach`` from their kink are read; those then nearer
        than ``keep`` are listed in ``near``, from ``count`` on, with all that are not at their end.

    Returns
    -------
    near, read : int
        Rows of the list ``near`` then; rows read.
    """
    margins, deadlines, version, sides, state = lazy.margins, lazy.deadlines, lazy.version, lazy.sides, lazy.state
    now, found, values = int(state[VERSIONS]) - 1, lazy.found, lazy.values
    late, read, near = _expired(deadlines, sides, state[ODOMETER] + reach, found), 0, count
    for q in range(late):
        i = at(found[q])
        r = version[i]
        if lazy.facts[r, LOOKED] == 0.0:
            _straight(r, now, lazy, problem.bounds)
        ahead = _left(i, problem, lazy)
        if ahead > reach:
            deadlines[i] = deadline(ahead, state)
        elif r == now:
            lazy.near[at(near)] = found[q]
            near += 1
        else:
            found[at(read)] = found[q]
            read += 1
    listed_products(X, found[:read], w, values)
    for q in range(read):
        i = at(found[q])
        margins[i], version[i] = problem.signs[i] * values[q], now
        ahead = _left(i, problem, lazy)
        deadlines[i] = deadline(ahead, state)
        if not ahead > keep:
            lazy.near[at(near)] = found[q]
            near += 1
    return near, read


@kernel
def enter(first, last, theta, lazy):
    """Add the rows of the list ``near`` from ``first`` to ``last`` to the working set."""
    for q in range(first, last):
        i = lazy.near[q]
        lazy.sides[i], lazy.held[q] = 0, theta[i]


@kernel
def leave(count, ends, lazy):
    """Empty the working set: its rows are at the ends that their dual variables have now, or have no deadline."""
    for q in range(count):
        end = ends[lazy.near[q]]
        lazy.sides[lazy.near[q]] = end if end != 0 else BETWEEN


@kernel
def working_set(X, problem, C, w, theta, total, n_E, lazy):
    """Choose the rows that a step solves for: all that a move of ``w`` like the last ones could bring to their kinks.

    They are more than the ``n_E`` between their ends, and their dual variables could move the sum ``total`` over rows
    by more than it is away from ``w``: else ``w`` would move too far. Returns how many rows, and how many were read.
    """
    read, (versions, _), state = 0, lazy.points.shape, lazy.state
    if state[VERSIONS] + ROOM > versions:
        read = renew(X, problem, w, lazy)
    apart, able = 0.0, 0.0
    for j in range(w.size):
        apart += (w[j] - C * total[j]) ** 2
    near, state[REACH] = 0, max(NEARBY * state[MOVE], SHRINK * state[REACH])
    for _ in range(TRIES):
        first = near
        near, more = look(X, problem, w, state[REACH], state[REACH], first, lazy)
        enter(first, near, theta, lazy)
        read += more
        for q in range(first, near):
            i = lazy.near[q]
            able += C * (problem.hi[i] - problem.lo[i]) * problem.norms[i]
        if near >= FEW * n_E + w.size and able >= ABLE * np.sqrt(apart):
            break
        state[REACH] *= GROW
    state[MOVE] = 0.0
    return near, read


@kernel
def begin(ends, lazy):
    """Note the ends of all dual variables; the working set is empty."""
    for i in range(ends.size):
        lazy.sides[i] = ends[i] if ends[i] != 0 else BETWEEN


@kernel
def set_deadlines(problem, w, theta, lazy):
    """List ``w`` as the first version, whose margins are known of all rows, and write their deadlines."""
    lo, hi = problem.lo, problem.hi
    new_version(w, problem, lazy)
    for i in range(theta.size):
        lazy.sides[i] = -1 if theta[i] == lo[i] else (1 if theta[i] == hi[i] else BETWEEN)
        lazy.deadlines[i] = deadline(_left(i, problem, lazy), lazy.state)


@kernel
def restore(X, problem, points, state, version, lazy):
    """Write the versions of a walk that was interrupted, and the margins of the rows, each for its own version.

    Another margin of a row is as good as these if it differs by at most what is written to ``held``.
    """
    for r in range(points.shape[0]):
        _describe(r, points[r], problem.bounds, lazy)
        lazy.facts[r, LOOKED] = 1.0 if r == points.shape[0] - 1 else 0.0
    for k in range(state.size):
        lazy.state[k] = state[k]
    for i in range(version.size):
        r, c = version[i], problem.c[i]
        margin, facts = problem.signs[i] * dot(X, i, points[r]), lazy.facts[r]
        lazy.margins[i], lazy.version[i] = margin, r
        lazy.held[i] = 2.0 * (facts[ERROR_SLOPE] * problem.norms[i] + facts[ERROR_FLOOR])
        lazy.held[i] += 16.0 * UNIT * (abs(c) + abs(margin))


@kernel
def at_ends(size, room, lo, hi, theta):
    """Put the dual variables that a solve has brought to an end exactly there: ``C hi / C`` need not be ``hi``."""
    for r in range(size):
        i, alpha = room.lists[WHERE, r], room.vectors[ALPHA, r]
        if alpha == room.vectors[HI, r]:
            theta[i] = hi[i]
        elif alpha == room.vectors[LO, r]:
            theta[i] = lo[i]


@kernel
def put_back(count, theta, lazy):
    """Undo the changes of a step that is refused."""
    for q in range(count):
        theta[lazy.near[q]] = lazy.held[q]


@kernel
def certify(X, problem, C, w, theta, total, size, count, room, lazy, now):
    """Write what ``box.box_objectives`` finds to ``now``, for a new version ``w``, reading the rows that may matter.

    The losses are ``sum c theta - w.total + sum (phi_i(t_i) - theta_i t_i)``: no margin of a row at its end enters.

    Parameters
    ----------
    size : int
        Rows in the solver's workspace ``room``, which has their exact distances from the kinks.
    count : int
        Rows of the working set, which are the same.

    Returns
    -------
    near, read : int
        See :func:`look`: rows that a further solve should add to the working set follow those of it.
    """
    c, lo, hi, norms, bounds = problem.c, problem.lo, problem.hi, problem.norms, problem.bounds
    version, move = new_version(w, problem, lazy)
    lazy.state[MOVE] += move
    slope, floor = lazy.facts[version, ERROR_SLOPE], lazy.facts[version, ERROR_FLOOR]
    plain, slack, ell, inner, w_sq, total_sq = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(size):
        i, t = at(room.lists[WHERE, r]), room.vectors[T, r]
        error = slope * norms[i] + floor + 8.0 * UNIT * (2.0 * abs(c[i]) + abs(t))  # of a start that was good enough
        _, part, most = box.row_terms(t, 0.0, lo[i], hi[i], theta[i], error)
        plain, slack = plain + part, slack + most
        lazy.margins[i], lazy.version[i] = c[i] - t, version
        side = 1.0 if t > 0.0 else -1.0
        right = theta[i] == (hi[i] if t > 0.0 else lo[i])
        ahead = _ahead(i, side, c[i], norms[i], lazy) if right else OPEN
        lazy.deadlines[i] = deadline(ahead, lazy.state)
    near, read = look(X, problem, w, 0.0, CLOSE * lazy.state[MOVE], count, lazy)
    for q in range(count, near):
        i = at(lazy.near[q])
        _, part, most = box.row_terms(c[i], lazy.margins[i], lo[i], hi[i], theta[i], slope * norms[i] + floor)
        plain, slack = plain + part, slack + most
    for s in range(0, c.size, ROWS):
        ell += _linear(c, theta, s, min(s + ROWS, c.size))
    for j in range(w.size):
        inner, w_sq, total_sq = inner + w[j] * total[j], w_sq + w[j] * w[j], total_sq + total[j] * total[j]
    xi = max(ell - inner + plain, 0.0)
    size_w, size_v = np.sqrt(w_sq) + bounds[HIDDEN], np.sqrt(total_sq) + bounds[HIDDEN]
    off = size_w * (now[SUM_ERROR] + bounds[HIDDEN] + bounds[SLOPE] * bounds[ALL_NORMS])
    off += bounds[FEATURE_SUM] * size_w * size_v + (slack - plain) + (bounds[ROW_SUM] + 8.0 * UNIT) * slack
    off += (bounds[ROW_SUM] + bounds[SLOPE] + 8.0 * UNIT) * bounds[ALL_KINKS] + bounds[KINK] * bounds[ALL_ONES]
    off = (off + 8.0 * UNIT * (abs(ell) + abs(inner))) * (1.0 + 4.0 * bounds[FEATURE_SUM])
    found_ = box.box_objectives(C, w, total, now[SUM_ERROR], xi, ell, plain, slack, slope, floor, bounds)
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10] = found_
    now[ERROR] = 2.0 * off
    now[PRIMAL + 1] = (bounds[FEATURE_SUM] * w_sq + C * off) * (1.0 + 8.0 * UNIT)
    now[GAP] += 4.0 * C * bounds[SLOPE] * off
    now[ROUNDING] += 4.0 * C * bounds[SLOPE] * off
    return near, read


@kernel(fastmath=SUMS, leaf=True)
def _linear(c, theta, start, stop):
    total = 0.0
    for i in range(at(start), at(stop)):
        total += c[i] * theta[i]
    return total


@kernel(fastmath=SUMS, leaf=True)
def decided(reach, norms, bounds, lazy):
    """Return how many rows are on one side throughout a ball that reaches so far from ``w``: at either end."""
    n_R, n_L, odometer = 0.0, 0.0, lazy.state[ODOMETER]
    deadlines, sizes, sides = lazy.deadlines, lazy.sizes, lazy.sides
    reach *= 1.0 + 4.0 * bounds[PRODUCT]
    for i in range(at(norms.size)):
        past = (deadlines[i] - odometer) * sizes[i] > reach * norms[i]
        n_R += 1.0 if past & (sides[i] < 0) else 0.0
        n_L += 1.0 if past & (sides[i] > 0) else 0.0
    return n_R, n_L


@kernel
def renew(X, problem, w, lazy):
    """Make room for versions: forget those of no row, and those of the older half by reading their rows.

    Returns the rows read.
    """
    read, state, n, found, values = 0, lazy.state, lazy.margins.size, lazy.found, lazy.values
    last = int(state[VERSIONS]) - 1
    used = np.zeros(last + 1, dtype=np.int32)
    for i in range(n):
        used[lazy.version[i]] = 1
    used[last], kept = 1, 0
    for r in range(last + 1):
        kept += used[r]
    if 2 * kept > lazy.points.shape[0]:
        drop = kept // 2
        for r in range(last):  # the oldest
            if used[r] > 0 and drop > 0:
                used[r], drop = 0, drop - 1
        for i in range(n):
            if used[lazy.version[i]] == 0:
                found[read] = i
                read += 1
        listed_products(X, found[:read], w, values)
        for q in range(read):
            i = at(found[q])
            lazy.margins[i], lazy.version[i] = problem.signs[i] * values[q], last
    kept = 0
    for r in range(last + 1):
        if used[r] > 0:
            for j in range(w.size):
                lazy.points[kept, j] = lazy.points[r, j]
            for j in range(lazy.facts.shape[1]):
                lazy.facts[kept, j] = lazy.facts[r, j]
            used[r], kept = kept, kept + 1
    for i in range(n):
        lazy.version[i] = used[lazy.version[i]]
    state[VERSIONS] = kept
    return read


def warm_up():
    one, w, marks = np.ones(2), np.ones(2), np.ones(2, dtype=np.int8)
    problem = Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(box.TINY + 1))
    X, lazy, room = matrix_of(np.eye(2)), nothing(2, 16, 2, one, one), workspace(2, 2, False)
    distance(w, 1.0, w, one, problem.bounds)
    set_deadlines(problem, w, one, lazy)
    begin(marks, lazy)
    working_set(X, problem, 1.0, w, one.copy(), w, 0, lazy)
    put_back(0, one.copy(), lazy)
    at_ends(0, room, one, one, one.copy())
    certify(X, problem, 1.0, w, one, w, 0, 0, room, lazy, np.zeros(len(FIELDS)))
    leave(0, marks, lazy)
    decided(1.0, one, problem.bounds, lazy)
    deadline(1.0, lazy.state)
    restore(X, problem, lazy.points[:1].copy(), lazy.state.copy(), lazy.version.copy(), lazy)
