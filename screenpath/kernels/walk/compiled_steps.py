"""The parts of a step of a compiled walk, and how the threads of a team share them (see ``barrier``).

Threads share the vectors of the length of the data or of a list of rows. Each has its own copy of vectors with an entry
for each feature.
"""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.problem import box, intercept, partition
from screenpath.kernels.problem.partition import ROWS
from screenpath.kernels.rows.barrier import SIZE, half, meet, share
from screenpath.kernels.rows.matrix import add, products, weighted_sum
from screenpath.kernels.rows.rows import add_rows
from screenpath.kernels.screen import lever
from screenpath.kernels.solve.margins import ALIVE, ALPHA, CHOSEN, NEAR, SIGNS, WHERE, T
from screenpath.kernels.solve.margins import C as KINK
from screenpath.kernels.walk import compiled_types as fields


@kernel(leaf=True)
def _part_of(count, team):
    """Return this thread's part of ``count`` things: the first, and one past the last."""
    size, me = team.board[SIZE], team.me
    return count * me // size, count * (me + 1) // size


@kernel(leaf=True)
def _own(edges, team):
    """Return this thread's blocks of a sum over rows: the first, and one past the last."""
    return _part_of(edges.size - 1, team)


@kernel(leaf=True)
def _zeros(out):
    """Fill with zeros, element by element: assignments of slices compile for long, as sums of arrays do."""
    for j in range(out.size):
        out[j] = 0.0


@kernel(leaf=True)
def _add(part, out):
    """Add ``part`` to ``out``."""
    for j in range(out.size):
        out[j] += part[j]


@kernel(leaf=True)
def _sum_rows(X, edges, weights, out, sums, team):
    """Write ``sum_i weights_i x_i`` to ``out``; return the rows touched. Each thread has written its own weights."""
    first, last = _own(edges, team)
    turn, touched = half(team), 0
    for b in range(first, last):
        part = sums[turn, b]
        _zeros(part)
        team.table[turn, b, 0] = weighted_sum(X, weights, part, edges[b], edges[b + 1])
    meet(team)
    _zeros(out)
    for b in range(edges.size - 1):
        _add(sums[turn, b], out)
        touched += int(team.table[turn, b, 0])
    return touched


@kernel(leaf=True)
def _ball(C, C0, known, relative):
    """Return the ball of the reference's pair: its centre as a multiple of ``w``, radius, and largest norm."""
    w_sq, total_sq, inner = known[0], known[1], known[2]
    radius = box.pair_radius(C, C0, w_sq, total_sq, inner, known[fields.SLACK], known[fields.SUM_ERROR], 0.0, relative)
    radius += 0.5 * box.pair_mismatch(C, C0, w_sq, total_sq, inner, 0.0, relative)
    ahead = 0.5 * (1.0 + C / C0)
    return ahead, radius, np.sqrt(ahead * ahead * w_sq) + radius


@kernel(leaf=True)
def _screen(C, C0, known, margins, problem, settings, status, team):
    """Decide with the ball of the reference's pair; ``known`` are its numbers."""
    c, norms, (ahead, radius, extent) = problem.c, problem.norms, _ball(C, C0, known, settings.relative)
    first, last, blocks = share(team, c.size, ROWS)
    out, n_R, n_L = team.table[half(team)], 0.0, 0.0
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        out[b, 0], out[b, 1] = box.box_decide_ball(
            margins, ahead, norms, radius, extent, c, settings.rounding, status, s, e
        )
    meet(team)
    for b in range(blocks):
        n_R, n_L = n_R + out[b, 0], n_L + out[b, 1]
    return n_R, n_L


@kernel
def _levered(C, C0, known, theta, X, margins, problem, free, settings, tau, status):
    """Decide with the ball of the reference's pair and a lever on either side; return ``n_R, n_L, touched``."""
    d, (ahead, radius, _) = free.mean.size, _ball(C, C0, known, settings.relative)
    radius += C * known[fields.SHIFT]
    extent = np.sqrt(ahead * ahead * known[0]) + radius
    own = lever.Rows(free.kinks, problem.signs, problem.norms, free.lo, free.hi)
    pair = lever.Pair(margins, ahead, theta, C, C * known[fields.RESIDUE], extent, settings.rounding)
    rows, weights = np.empty((2, lever.FEWER), dtype=np.int64), np.empty((2, lever.FEWER))
    offsets, centers, lengths, away = np.empty((2, 2)), np.empty((2, d)), np.empty(2), np.empty(2)
    if radius < lever.LEAST:
        radius = lever.LEAST
    first, second = lever.one_lever_each(own, pair, free.largest, radius, free.typical, tau, rows, weights, offsets)
    for h in range(2):
        m = first if h == 0 else second
        lever.lever_centers(
            X, rows[h, :m], weights[h : h + 1], free.mean, settings.lever, centers[h : h + 1],
            lengths[h : h + 1], away[h : h + 1],
        )  # fmt: skip
    n_R, n_L = lever.decide_by_one_each(own, pair, tau, free.spread, radius, offsets, away, status)
    return n_R, n_L, first + second


@kernel(leaf=True)
def _ends(theta, lo, hi, ends, team):
    """Write at which end each dual variable is, see ``partition.box_ends``; return the counts."""
    first, last, blocks = share(team, theta.size, ROWS)
    out, n_R, n_L, nonzero = team.table[half(team)], 0.0, 0.0, 0.0
    for b in range(first, last):
        s, e = b * ROWS, min(theta.size, (b + 1) * ROWS)
        out[b, 0], out[b, 1], out[b, 2] = partition.box_ends(theta, lo, hi, ends, s, e)
    meet(team)
    for b in range(blocks):
        n_R, n_L, nonzero = n_R + out[b, 0], n_L + out[b, 1], nonzero + out[b, 2]
    return n_R, n_L, nonzero


@kernel(leaf=True)
def _reduce(status, C, problem, theta, ell, margins, changes, room, team):
    """Write the survivors' problem to the workspace.

    All open rows, see ``partition.part_rows``, are listed with their values in ``theta``. ``ell`` is ``c . theta``.

    Returns ``k``, ``count``: survivors, open rows; ``linear``: ``c . theta`` of the fixed variables, once at their
    ends; ``moved``: fixed variables that are elsewhere.
    """
    c, lists, listed, held = problem.c, room.lists, changes.listed, changes.held
    first, last, blocks = share(team, c.size, ROWS)
    out, k, count, linear, moved = team.table[half(team)], np.int64(0), np.int64(0), ell, 0.0
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = partition.part_rows(
            status, changes.ends, problem.lo, problem.hi, c, theta, lists[CHOSEN], lists[NEAR], s, s, e
        )
    meet(team)
    for b in range(blocks):
        s, n, m = b * ROWS, int(out[b, 0]), int(out[b, 1])
        if first <= b < last:
            _take(lists[CHOSEN, s : s + n], C, problem, theta, margins, room, k)
            for r in range(m):
                i = lists[NEAR, at(s + r)]
                listed[at(count + r)], held[at(count + r)] = i, theta[at(i)]
        k, count, linear, moved = k + n, count + m, linear + out[b, 2], moved + out[b, 3]
    meet(team)
    return k, count, linear, int(moved)


@kernel(leaf=True)
def _take(index, C, problem, theta, margins, room, first):
    """Write survivors to the workspace from ``first`` on."""
    vectors, lists, marks, signs = room.vectors, room.lists, room.marks, problem.signs
    partition.box_survivors(index, C, problem.c, problem.lo, problem.hi, problem.norms, theta, margins, vectors, first)
    for r in range(index.size):
        i, k = index[r], at(first + r)
        vectors[T, k] = vectors[KINK, k] - vectors[T, k]
        lists[WHERE, k], lists[ALIVE, k], marks[SIGNS, k] = i, first + r, signs[at(i)]


@kernel
def _copied(theta, out, team):
    """Return a copy of ``theta`` in ``out``, for which each thread copies its own rows."""
    first, last, _ = share(team, theta.size, ROWS)
    for i in range(first * ROWS, min(last * ROWS, theta.size)):
        out[i] = theta[i]
    return out


@kernel(leaf=True)
def _settle(status, lo, hi, listed, theta, team):
    """Put the open rows that are fixed at their ends."""
    first, last = _part_of(listed.size, team)
    for r in range(first, last):
        i = listed[r]
        if status[i] != 0:
            theta[i] = hi[i] if status[i] > 0 else lo[i]
    meet(team)


@kernel(leaf=True)
def _lift(k, C, lo, hi, room, theta, team):
    """Write the survivors' solution to their places in ``theta``."""
    s, e = _part_of(k, team)
    partition.box_lift(theta, room.lists[WHERE, s:e], room.vectors[ALPHA, s:e], C, lo, hi)
    meet(team)


@kernel(leaf=True)
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


@kernel(leaf=True)
def _sum_changes(X, problem, count, theta, changes, room, out, team):
    """Write ``sum_i signs_i (theta_i - held_i) x_i`` over listed rows to ``out``; return as ``partition.changes``."""
    edges, listed, held, sums = problem.edges, changes.listed[:count], changes.held, changes.sums
    step, found = room.near[0], room.lists[NEAR]
    first, last = _own(edges, team)
    turn, changed, n_R, n_L, nonzero = half(team), 0.0, 0.0, 0.0, 0.0
    for b in range(first, last):
        s, e, line, part = _rank(listed, edges[b]), _rank(listed, edges[b + 1]), team.table[turn, b], sums[turn, b]
        line[0], line[1], line[2], line[3] = partition.changes(
            listed[s:e], theta, held[s:e], problem.lo, problem.hi, problem.signs, changes.ends, step, found[s:e]
        )  # fmt: skip
        _zeros(part)
        if X.sparse:
            for r in range(s, s + int(line[0])):
                add(X, found[r], step[found[r]], part)
        else:
            add_rows(X.dense, found[s:e], int(line[0]), step, part)
    meet(team)
    _zeros(out)
    for b in range(edges.size - 1):
        line = team.table[turn, b]
        changed, n_R, n_L, nonzero = changed + line[0], n_R + line[1], n_L + line[2], nonzero + line[3]
        _add(sums[turn, b], out)
    return changed, n_R, n_L, nonzero


@kernel
def _mark(k, count, lo, hi, lists, theta, decided):
    """Write what the dynamic rule has fixed: all survivors but the alive ones, which are listed in their order.

    Where the static rule has fixed so few rows that all rows were solved for, those stay fixed.
    """
    alive = 0
    for r in range(k):
        if alive < count and lists[ALIVE, alive] == r:
            alive += 1
        else:
            i = lists[WHERE, r]  # it is at the nearer end, up to the rounding of a division by C
            decided[i] = -1 if theta[i] - lo[i] <= hi[i] - theta[i] else 1


@kernel(leaf=True)
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
    residue, fall, rise, moved, left = intercept.balance(
        (0.0, 0.0), theta, t, lo, hi, signs, free.largest, likely[:n], True
    )
    slope, floor = intercept.form_errors(w, b, problem.bounds)
    now[fields.SHIFT], now[fields.COST] = intercept.residue_costs(residue, fall, rise, problem.norms, t, slope, floor)
    now[fields.RESIDUE] = residue * (1.0 + 8.0 * box.UNIT)
    now[fields.INTERCEPT], now[fields.LOW], now[fields.HIGH] = b, low, high
    return left == 0.0 and residue < np.inf and not (same and moved > 0)


@kernel(leaf=True)
def _certify(X, problem, free, C, w, theta, total, before, same, margins, forms, now, team):
    """Write ``G w`` to ``margins``, and what ``box.box_certificate`` finds, except the counts, to ``now``.

    The margins are those in ``before`` if ``w`` is the ``same``. With a free intercept :func:`_balanced` has written
    them, and what it adds to the certificate; ``forms`` is work space.
    """
    _, c, lo, hi, norms, signs, bounds = problem
    first, last, blocks = share(team, c.size, ROWS)
    out, (slope, floor) = team.table[half(team)], box.product_errors(w, bounds)
    if len(free) > 0:
        slope, floor = intercept.form_errors(w, now[fields.INTERCEPT], bounds)
    for b in range(first, last):
        s, e = b * ROWS, min(c.size, (b + 1) * ROWS)
        values = margins
        if len(free) > 0:
            values = forms
            for i in range(at(s), at(e)):
                forms[i] = margins[i] + signs[i] * now[fields.INTERCEPT]
        elif same:
            for i in range(s, e):
                margins[i] = before[i]
        else:
            products(X, w, margins, s, e)
            box.sign(margins, signs, s, e)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = box.box_terms(c, values, lo, hi, theta, norms, slope, floor, s, e)
    meet(team)
    xi, ell, plain, slack = 0.0, 0.0, 0.0, 0.0
    for b in range(blocks):
        line = out[b]
        xi, ell, plain, slack = xi + line[0], ell + line[1], plain + line[2], slack + line[3]
    found = box.box_objectives(
        C, w, total, now[fields.SUM_ERROR] + now[fields.SHIFT], xi, ell, plain, slack + now[fields.COST], slope, floor,
        bounds,
    )  # fmt: skip
    now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9], now[10] = found
    if len(free) > 0:
        now[fields.ERROR] += now[fields.COST] + now[fields.RESIDUE] * free.largest_kink


@kernel(leaf=True)
def _record(k, now, new_w, new, numbers, w, total):
    """Write the pair and the numbers of step ``k`` to their rows, element by element: slices compile for seconds."""
    nonzero = 0.0
    for j in range(new_w.size):
        w[k, j], total[k, j] = new_w[j], new[j]
        nonzero += new_w[j] != 0.0
    now[fields.NNZ] = nonzero
    for r in range(now.size):
        numbers[k, r] = now[r]


@kernel(leaf=True)
def _begin(C, X, problem, known, status, point, before, changes, room, old, new, v, team):
    """Put fixed rows at their ends, write the survivors' problem to the workspace, ``C`` times the whole sum to ``v``.

    Returns ``size``, ``count``: survivors; open rows, which ``changes`` lists; ``linear``, ``error``: ``c . theta`` of
    the fixed ones; bound on the rounding of the sum; ``n_R``, ``n_L``: changes of the counts; ``touched``.
    """
    size, count, linear, moved = _reduce(status, C, problem, point, known[fields.ELL], before, changes, room, team)
    n_R, n_L, touched, error = 0.0, 0.0, 0, known[fields.SUM_ERROR]
    for j in range(old.size):
        v[j] = old[j]
    if moved > 0:
        _settle(status, problem.lo, problem.hi, changes.listed[:count], point, team)
        changed, n_R, n_L, _ = _sum_changes(X, problem, count, point, changes, room, new, team)
        touched, error = int(changed), box.sum_drift(error, changed, problem.bounds)
        for j in range(old.size):
            v[j] += new[j]
    for j in range(v.size):
        v[j] *= C
    return size, count, linear, error, n_R, n_L, touched


@kernel(leaf=True)
def _goes_by_changes(known, changed, nonzero, fresh_every, bounds, now):
    """Tell whether a sum over rows is updated by the ``changed`` rows, or computed anew from those that are not 0
    (as ``BoxModel.updated_sum`` has it; never anew if ``fresh_every`` is negative); write the number of the update, and
    its error bound.
    """
    if fresh_every < 0 or (known[fields.UPDATES] < fresh_every and changed < nonzero):
        now[fields.UPDATES], now[fields.SUM_ERROR] = known[fields.UPDATES] + (changed > 0.0), known[fields.SUM_ERROR]
        if changed > 0.0:
            now[fields.SUM_ERROR] = box.sum_drift(known[fields.SUM_ERROR], changed, bounds)
        return True
    now[fields.UPDATES], now[fields.SUM_ERROR] = 0.0, box.sum_error(nonzero, bounds)
    return False


@kernel(leaf=True)
def _sum_up(X, problem, fresh_every, count, point, nonzero, known, now, changes, room, old, new, team):
    """Write the sum to ``new`` as ``BoxModel.updated_sum``; return changes of ``n_R, n_L``, nonzero ones, and rows."""
    edges, bounds, touched = problem.edges, problem.bounds, 0.0
    changed, n_R, n_L, more = _sum_changes(X, problem, count, point, changes, room, new, team)
    nonzero += more
    if _goes_by_changes(known, changed, nonzero, fresh_every, bounds, now):
        _add(old, new)
        touched = changed
    else:
        first, last = _own(edges, team)
        step = room.near[0]
        box.signed(point, problem.signs, step, edges[first], edges[last])
        touched = float(_sum_rows(X, edges, step, new, changes.sums, team))
    return n_R, n_L, nonzero, touched


@kernel(leaf=True)
def _note(now, n, n_R, n_L, screened_R, screened_L, epochs, rounds, touched, screen_s, solve_s):
    """Write counts, shares and seconds of a step to its numbers."""
    n_E, survivors, ratio, rate = partition.shares(n, n_R, n_L, screened_R, screened_L)
    now[fields.COUNTS], now[fields.COUNTS + 1], now[fields.COUNTS + 2] = n_R, n_L, n_E
    now[fields.SCREENED], now[fields.SCREENED + 1], now[fields.SCREENED + 2] = screened_R, screened_L, survivors
    now[fields.EPOCHS], now[fields.EPOCHS + 1], now[fields.EPOCHS + 2] = epochs, rounds, touched
    now[fields.RATIO], now[fields.RATIO + 1] = ratio, rate
    now[fields.SECONDS], now[fields.SECONDS + 1], now[fields.SECONDS + 2] = screen_s, solve_s, 0.0
