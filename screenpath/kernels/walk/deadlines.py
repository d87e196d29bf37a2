"""Which rows are certainly not at their kinks, without reading them: what ``kernels.walk.lazy`` certifies with.

A row whose dual variable is exactly at the end that its margin asks for adds exactly 0 to the gap. It stays so while
``w`` has moved less than the row's distance from its kink. Each row keeps its margin at its last reading, the *version*
of ``w`` that this was for, and a *deadline*: the reading of an odometer of ``w``'s moves up to which the row has
certainly not reached its kink. Rows with a later deadline are not read. The others get a sharper test, which uses the
straight way to ``w`` from the nearest point of the plane of their version and the *base*, the first version, for which
all margins are known: ``w`` moves along a smooth curve, so that what leads away from the plane is far shorter. What
that cannot decide is read.

With a free intercept ``b``, a row ``x`` and its sign ``s`` have the form ``s ((x - mean).w + b + mean.w)``: moves are
those of ``w`` and of ``b + mean.w``, and a row has one entry more, 1.

Rounding: lengths of moves, sizes of rows and errors of margins are rounded up, deadlines down. ``dl >= odometer`` then
proves that the exact row is on its side of its exact kink, see :func:`_ahead`.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem import intercept
from screenpath.kernels.problem.box import ALL_KINKS, FEATURE_SUM, HIDDEN, ROW_SUM, TINY, UNIT
from screenpath.kernels.problem.partition import ROWS
from screenpath.kernels.rows.matrix import dot, listed_products, matrix_of
from screenpath.kernels.rows.newton_system import _factorise, inner
from screenpath.kernels.walk.compiled_types import Problem

SCANNED = 8  # deadlines of which the first is noted
COPIED = 128  # rows that are copied as columns at a time
BETWEEN = 2  # side of a row that is at neither end, outside of a working set
OPEN = -1.0  # deadline of a row that is not at the end its margin asks for
# Of the state: what w has moved, versions kept, length of the last step's move, and how far its working set went; then
# `c . theta`, the sum of the signed dual variables, and bounds on the errors of both. Where these are not all rows of
# the problem: the odometer up to which no other row comes to its kink, whether this was passed, how many others are at
# either end, their largest ratio, and the smallest size of all rows.
ODOMETER, VERSIONS, MOVE, REACH, LINEAR, LINEAR_ERROR, SIGNED, SIGNED_ERROR = range(8)
LIMIT, PASSED, OTHERS_R, OTHERS_L, RATIO, LEAST, STATE = range(8, 15)
# Of a version: bounds on the errors of its margins, then the way from there to the present `w`, see `_straight`: from
# which point, how long, what is lost by rounding, and what a free intercept adds to a margin.
ERROR_SLOPE, ERROR_FLOOR, LOOKED, SCALE, SHARE, MOST, AWAY, LOST_SLOPE, LOST_FLOOR, MOVED = range(10)
SOLVED = 256.0 * UNIT  # error of a solver's distances from the kinks, times the sizes of the intercept and the kinks

NONE = np.empty(0), np.empty(0), np.empty(0), np.empty(0, dtype=np.float32), np.empty((0, 0)), 0.0
RIDGE = 1e-6  # added to the second moments of columns that are about 1
FLAT = 1e-10  # squared sine of the angle between two versions, up to which they do not span a plane


class Lazy(NamedTuple):
    """What is known of the rows without reading them."""

    margins: np.ndarray  # margins, deadlines: shape (n,); deadlines are infinite in the working set
    deadlines: np.ndarray
    version: np.ndarray  # int32 of shape (n,): for which row of ``points`` the margin is
    # sizes, units: shape (n,), shape (d,): at least the norms of the exact rows, each column divided by its unit, in
    # which moves of ``w`` are measured: ``|g.move| <= ||g / units|| ||units move||``. So a column of large values does
    # not make every move look long
    sizes: np.ndarray
    units: np.ndarray
    # shape (d,) or (0,): with a free intercept: what is subtracted from the rows, any vector near their middle
    mean: np.ndarray
    ratios: np.ndarray  # float32 of shape (n,): at least the lengths by which a rule measures rows, over the ``sizes``
    # metric, lost: shape (d, d) or (0, 0), float: an upper triangle ``R``; the sizes then are those of ``R^-T (g /
    # units)``, and moves are ``R (units move)``: of second moments ``R'R``, correlated columns do not make moves look
    # long either. ``lost`` times the length of a move is at least what rounding hides of it
    metric: np.ndarray
    lost: float
    most: float  # with a free intercept: the largest kink
    firsts: np.ndarray  # shape (n / SCANNED,), rounded up: of so many rows, no deadline is earlier
    # int8 of shape (n,): ends of the dual variables; 0 of those in the working set. Written when a walk begins
    sides: np.ndarray
    base: np.ndarray  # shape (n,): margins of the first version, which is never forgotten
    points: np.ndarray  # shape (versions, d + 1): each ``w``, and its intercept
    placed: np.ndarray  # shape (versions, d) or (0, d): each ``R (units w)``, about, if there is a metric
    # shape (versions, 10): error bounds of each, and what is known of the way from there to the present ``w``
    facts: np.ndarray
    state: np.ndarray  # shape (STATE,)
    near: np.ndarray  # int64 of shape (n,): the working set
    held: np.ndarray  # shape (n,): its dual variables before the step
    found: np.ndarray  # int64 of shape (n + n / SCANNED,), rounded up: work space
    values: np.ndarray  # shape (max(n, d),): work space


def nothing(n=0, versions=0, d=0, measure=NONE, most=0.0) -> Lazy:
    """Return arrays of so many rows and versions, with nothing known but the ``measure``, ``sizes`` to ``lost``."""
    state, firsts = np.zeros(STATE), np.full(-(-n // SCANNED), np.inf)
    state[LIMIT] = state[LEAST] = np.inf
    return Lazy(
        np.empty(n), np.empty(n), np.zeros(n, dtype=np.int32), *measure, most, firsts,
        np.empty(n, dtype=np.int8), np.empty(n), np.empty((versions, d + 1)),
        np.empty((versions if measure[4].size else 0, d)), np.zeros((versions, 10)), state, np.empty(n, dtype=np.int64),
        np.empty(n), np.empty(n + firsts.size, dtype=np.int64), np.empty(max(n, d)),
    )  # fmt: skip


@kernel(fastmath=SUMS, leaf=True)
def column_squares(X, middle, squares):
    """Add the squares of all entries, ``middle`` subtracted from the rows, to ``squares``."""
    dense = X.dense
    for i in range(at(dense.shape[0])):
        for j in range(at(squares.size)):
            part = dense[i, j] - middle[j]
            squares[j] += part * part


@kernel(fastmath=SUMS, leaf=True)
def measure(X, middle, scales, more, sizes):
    """Write the norms of rows less ``middle``, columns times ``scales``, and of an entry that squares to ``more``."""
    dense = X.dense
    for i in range(at(sizes.size)):
        total = more
        for j in range(at(scales.size)):
            part = scales[j] * (dense[i, j] - middle[j])
            total += part * part
        sizes[i] = np.sqrt(total)


@kernel(leaf=True)
def _columns(dense, first, middle, scales, part):
    """Write rows from the ``first`` on to the columns of ``part``, as many as fit, then zeros; return how many."""
    count = min(part.shape[1], dense.shape[0] - first)
    for r in range(count):
        for j in range(at(scales.size)):
            part[j, r] = scales[j] * (dense[at(first + r), j] - middle[j])
    part[:, count:] = 0.0
    return count


@kernel(fastmath=SUMS)
def metric_of(X, middle, scales):
    """Return ``R`` of ``R'R``, the second moments of rows as in :func:`measure`, and a little more."""
    n, d = X.dense.shape
    moments, part = np.zeros((d, d)), np.empty((d, COPIED))
    for first in range(0, n, COPIED):
        _columns(X.dense, first, middle, scales, part)
        for j in range(d):
            for k in range(j + 1):
                moments[j, k] += inner(part[j], part[k])
    moments /= n
    for j in range(d):
        moments[j, j] += RIDGE
    _factorise(moments)
    for j in range(d):
        moments[j, j + 1 :] = 0.0
    return moments.T.copy()


@kernel(fastmath=SUMS)
def measure_by(X, middle, scales, more, metric, sizes):
    """Write as :func:`measure`, in a metric: norms of ``z``, ``R'z = g``; :func:`distance` counts their rounding."""
    part, squares = np.empty((scales.size, COPIED)), np.empty(COPIED)
    for first in range(0, sizes.size, COPIED):
        count = _columns(X.dense, first, middle, scales, part)
        squares[:] = more
        for j in range(scales.size):
            own = part[j]
            for k in range(j):
                weight, other = metric[k, j], part[k]
                for r in range(COPIED):
                    own[r] -= weight * other[r]
            for r in range(COPIED):
                own[r] /= metric[j, j]
                squares[r] += own[r] * own[r]
        for r in range(count):
            sizes[first + r] = np.sqrt(squares[r])


@kernel(fastmath=SUMS, leaf=True)
def distance(w, scale, point, share, base, lazy, bounds):
    """Bound the length of ``w - scale * point - share * base`` in units (powers of two) and metric; overwrite some
    ``values``.
    """
    square, part, units, metric, step = 0.0, 0.0, lazy.units, lazy.metric, lazy.values
    for j in range(at(w.size)):
        scaled, shared = scale * point[j], share * base[j]
        size = units[j] * (abs(scaled) + abs(shared))
        step[j] = units[j] * (w[j] - (scaled + shared))
        part += size * size
        square += step[j] * step[j]
    rounded = lazy.lost * np.sqrt(square) if metric.size > 0 else 0.0
    rounded += 0.0 if scale == 1.0 and share == 0.0 else lazy.lost * np.sqrt(part)
    if metric.size > 0:
        square = 0.0
        for j in range(at(w.size)):
            total = 0.0
            for k in range(j, at(w.size)):
                total += metric[j, k] * step[k]
            square += total * total
    return (np.sqrt(square) + rounded + bounds[HIDDEN]) * (1.0 + 2.0 * bounds[FEATURE_SUM])


@kernel(fastmath=SUMS, leaf=True)
def along(w, scale, point, share, base, mean, bounds):
    """Return ``mean.(w - scale * point - share * base)``, and a bound on its error."""
    total, size = 0.0, 0.0
    for j in range(w.size):
        scaled, shared = scale * point[j], share * base[j]
        total += mean[j] * (w[j] - (scaled + shared))
        size += abs(mean[j]) * (abs(w[j] - (scaled + shared)) + abs(scaled) + abs(shared))
    return total, (bounds[FEATURE_SUM] + 4.0 * UNIT) * size + bounds[TINY]


@kernel(leaf=True)
def new_version(w, b, problem, lazy):
    """Move the odometer to ``w`` and its intercept, a new version; return its number, and how far the last one is."""
    state, now, move = lazy.state, int(lazy.state[VERSIONS]), 0.0
    if now > 0:
        last = lazy.points[now - 1]
        move = distance(w, 1.0, last, 0.0, last, lazy, problem.bounds)
        if lazy.mean.size > 0:
            more, error = along(w, 1.0, last, 0.0, last, lazy.mean, problem.bounds)
            more = abs(b - last[w.size] + more) + error + 4.0 * UNIT * (abs(b - last[w.size]) + abs(more))
            move = np.sqrt(move * move + more * more) * (1.0 + 8.0 * UNIT)
    _describe(now, w, b, problem.bounds, lazy)
    for r in range(now):
        lazy.facts[r, LOOKED] = 0.0
    state[ODOMETER] = (state[ODOMETER] + move) * (1.0 + 2.0 * UNIT)
    state[VERSIONS] = now + 1
    return now, move


@kernel(leaf=True)
def _describe(r, w, b, bounds, lazy):
    """Write ``w`` and its intercept as version ``r``, the present one."""
    points, facts, units, metric = lazy.points, lazy.facts, lazy.units, lazy.metric
    for j in range(w.size):
        points[r, j] = w[j]
    for j in range(at(metric.shape[0])):
        total = 0.0
        for k in range(j, at(w.size)):
            total += metric[j, k] * (units[k] * w[k])
        lazy.placed[r, j] = total
    slope, floor = intercept.form_errors(w, b, bounds)
    points[r, w.size] = b
    facts[r, ERROR_SLOPE], facts[r, ERROR_FLOOR] = slope, floor + SOLVED * (abs(b) + lazy.most)
    _write_way(r, 1.0, 0.0, 0.0, b, 0.0, lazy)


@kernel(fastmath=SUMS, leaf=True)
def _nearest(r, now, lazy):
    """Return ``scale`` and ``share`` for which ``scale * points[r] + share * base`` is about nearest to the present
    ``w``, as moves are measured.
    """
    metric, units, places = lazy.metric.size > 0, lazy.units, lazy.placed if lazy.metric.size > 0 else lazy.points
    pp, pq, qq, pw, qw = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(at(units.size)):
        weight = 1.0 if metric else units[j]
        p, q, w = weight * places[r, j], weight * places[0, j], weight * places[now, j]
        pp, pq, qq, pw, qw = pp + p * p, pq + p * q, qq + q * q, pw + p * w, qw + q * w
    det = pp * qq - pq * pq
    if det > FLAT * pp * qq:
        return (pw * qq - qw * pq) / det, (qw * pp - pw * pq) / det
    return pw / pp if pp > 0.0 else 1.0, 0.0


@kernel(leaf=True)
def _straight(r, now, lazy, bounds):
    """Write the way to the present ``w`` from the nearest point of the plane of version ``r`` and the base."""
    points, d, error = lazy.points, lazy.units.size, 0.0
    scale, share = _nearest(r, now, lazy)
    w, moved, base = points[now, :d], points[now, d], points[0]
    away = distance(w, scale, points[r], share, base, lazy, bounds)
    if lazy.mean.size > 0:
        more, error = along(w, scale, points[r], share, base, lazy.mean, bounds)
        moved, error = moved + more, error + 2.0 * UNIT * (abs(moved) + abs(more))
    _write_way(r, scale, share, away, moved, error, lazy)


@kernel(leaf=True)
def _write_way(r, scale, share, away, moved, error, lazy):
    """Write the way from a version to the present ``w``, and what rounding adds to a margin on it."""
    way, base, most = lazy.facts[r], lazy.facts[0], max(abs(scale), 1.0)
    way[LOOKED], way[SCALE], way[SHARE], way[MOST], way[AWAY], way[MOVED] = 1.0, scale, share, most, away, moved
    way[LOST_SLOPE] = most * way[ERROR_SLOPE] + abs(share) * base[ERROR_SLOPE]
    way[LOST_FLOOR] = most * (way[ERROR_FLOOR] + error + 8.0 * UNIT * abs(moved)) + abs(share) * base[ERROR_FLOOR]


@kernel(leaf=True)
def _ahead(i, side, c, sign, norm, lazy):
    """Return a lower bound of how far ``w`` may move before the row reaches its kink; negative if it may have.

    ``side`` is 1 for a row whose dual variable is at its upper end, where ``c - g.w`` has to be positive, else -1. For
    any ``scale`` and ``share``, ``g.w`` is within ``||g|| ||w - scale * point - share * base||`` of ``scale * margin +
    share * (margin of the base)``, whose errors are those of the margins; with a free intercept ``g.w + sign b`` is as
    near to that and ``sign (b + mean.(w - scale * point - share * base))``, ``g`` around the mean. All numbers of the
    version have been found by :func:`_straight`.
    """
    way, size, margin, base = lazy.facts[at(lazy.version[i])], lazy.sizes[i], lazy.margins[i], lazy.base[i]
    shared = way[SHARE] * base
    lost = way[LOST_SLOPE] * norm + way[LOST_FLOOR] + size * way[AWAY]
    lost += 8.0 * UNIT * (way[MOST] * (abs(c) + abs(margin)) + abs(shared))
    left = side * (c - (way[SCALE] * margin + shared + sign * way[MOVED])) - lost * (1.0 + 16.0 * UNIT)
    return left / size * (1.0 - 8.0 * UNIT if left > 0.0 else 1.0)


@kernel(leaf=True)
def _left(i, problem, lazy):
    """Return :func:`_ahead` of a row outside of the working set; negative if it is not at an end."""
    side = lazy.sides[i]
    return OPEN if side == BETWEEN else _ahead(i, float(side), problem.c[i], problem.signs[i], problem.norms[i], lazy)


@kernel(leaf=True)
def deadline(ahead, state):
    """Return the odometer's reading up to which a row is certainly ``ahead`` of its kink."""
    return (state[ODOMETER] + ahead) * (1.0 - 4.0 * UNIT) if ahead >= 0.0 else OPEN


@kernel(leaf=True, inner=True)
def put_off(i, value, lazy):
    """Write a deadline."""
    block = at(i // SCANNED)
    lazy.deadlines[i] = value
    if value < lazy.firsts[block]:
        lazy.firsts[block] = value


@kernel(leaf=True)
def _expired(limit, lazy):
    """List rows with a deadline before ``limit``, to be written again; return how many."""
    deadlines, firsts, found, n, count, blocks = lazy.deadlines, lazy.firsts, lazy.found, lazy.deadlines.size, 0, 0
    limit = limit if limit == limit else np.inf  # where w is not a number: all but the working set
    for block in range(firsts.size):  # no branches: nobody could predict them
        found[at(n + blocks)] = block
        blocks += not firsts[block] >= limit
    for q in range(n, n + blocks):
        block, first = found[at(q)], np.inf
        for i in range(at(block * SCANNED), at(min((block + 1) * SCANNED, n))):
            value = deadlines[i]
            late = not value >= limit  # what is not a number counts
            found[at(count)] = i
            count += late
            first = min(first, np.inf if late else value)
        firsts[block] = first
    return count


@kernel(leaf=True)
def look(X, problem, w, reach, keep, count, lazy):
    """Bring rows up to date that a move of ``w`` by ``reach`` could bring to their kink, and list the near ones.

    ``w`` (shape (d,)): the last version. ``reach``, ``keep``: rows that the sharper test does not leave further than
    ``reach`` from their kink are read; those then nearer than ``keep`` are listed in ``near``, from ``count`` on, with
    all that are not at their end.

    Returns ``near``, ``read``: rows of the list ``near`` then; rows read.
    """
    margins, version, state = lazy.margins, lazy.version, lazy.state
    now, found, values = int(state[VERSIONS]) - 1, lazy.found, lazy.values
    late, read, near = _expired(state[ODOMETER] + reach, lazy), 0, count
    if not state[ODOMETER] + reach <= state[LIMIT]:
        state[PASSED] = 1.0
    for q in range(late):
        r = version[at(found[q])]
        if lazy.facts[r, LOOKED] == 0.0:
            _straight(r, now, lazy, problem.bounds)
    for q in range(late):  # no branches: few rows are where the last one was, so that they wait for memory together
        values[q] = _left(at(found[q]), problem, lazy)
    for q in range(late):
        i, ahead = at(found[q]), values[q]
        if ahead > reach:
            put_off(i, deadline(ahead, state), lazy)
        elif version[i] == now:
            put_off(i, lazy.deadlines[i], lazy)
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
        put_off(i, deadline(ahead, state), lazy)
        if not ahead > keep:
            lazy.near[at(near)] = found[q]
            near += 1
    return near, read


@kernel(leaf=True)
def set_deadlines(problem, w, b, theta, lazy):
    """List ``w`` as the first version, whose margins are known of all rows, and write their deadlines and the sums."""
    lo, hi, state, linear = problem.lo, problem.hi, lazy.state, 0.0
    new_version(w, b, problem, lazy)
    for s in range(0, theta.size, ROWS):
        linear += _linear(problem.c, theta, s, min(s + ROWS, theta.size))
    state[LINEAR], state[LINEAR_ERROR] = linear, problem.bounds[ROW_SUM] * problem.bounds[ALL_KINKS]
    state[SIGNED], state[SIGNED_ERROR] = intercept.excess(theta, problem.signs)
    for i in range(theta.size):
        lazy.base[i] = lazy.margins[i]
        lazy.sides[i] = -1 if theta[i] == lo[i] else (1 if theta[i] == hi[i] else BETWEEN)
        put_off(i, deadline(_left(i, problem, lazy), lazy.state) if lo[i] < hi[i] else np.inf, lazy)


@kernel(fastmath=SUMS, leaf=True)
def _linear(c, theta, start, stop):
    total = 0.0
    for i in range(at(start), at(stop)):
        total += c[i] * theta[i]
    return total


@kernel(leaf=True)
def restore(X, problem, points, state, version, lazy):
    """Write versions of a walk, and each row's margin of its own; ``held`` is what another one may differ by."""
    d = lazy.units.size
    for r in range(points.shape[0]):
        _describe(r, points[r, :d], points[r, d], problem.bounds, lazy)
        lazy.facts[r, LOOKED] = 1.0 if r == points.shape[0] - 1 else 0.0
    for k in range(state.size):
        lazy.state[k] = state[k]
    for i in range(version.size):
        r, c = version[i], problem.c[i]
        margin, facts = problem.signs[i] * dot(X, i, points[r, :d]), lazy.facts[r]
        lazy.margins[i], lazy.version[i] = margin, r
        lazy.held[i] = 2.0 * (facts[ERROR_SLOPE] * problem.norms[i] + facts[ERROR_FLOOR])
        lazy.held[i] += 16.0 * UNIT * (abs(c) + abs(margin))


def warm_up():
    one, w, marks = np.ones(2), np.ones(2), np.ones(2, dtype=np.int8)
    problem = Problem(np.array([0, 2]), one, 0.0 * one, one, one, marks, np.zeros(TINY + 1))
    X, lazy = matrix_of(np.eye(2)), nothing(2, 16, 2, (one, one, one, np.ones(2, dtype=np.float32), np.eye(2), 0.0))
    column_squares(X, w, w.copy())
    measure(X, w, w, 1.0, w.copy())
    measure_by(X, w, w, 1.0, metric_of(X, 0.0 * w, w), w.copy())
    distance(w, 1.0, w, 0.0, w, lazy, problem.bounds)
    along(w, 1.0, w, 0.0, w, one, problem.bounds)
    set_deadlines(problem, w, 1.0, one, lazy)
    look(X, problem, w, 0.0, 0.0, 0, lazy)
    deadline(1.0, lazy.state)
    restore(X, problem, lazy.points[:1].copy(), lazy.state.copy(), lazy.version.copy(), lazy)
