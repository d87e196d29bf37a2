"""SIFS: alternate the screening of samples and of features until nothing new is found (Hong 2019, Algorithm 1).

One traversal per triggering: of the lines that went, or of those that stay, whichever touches fewer values (see
``kernels/screen/conditioning.py``). Layout of all arrays: see ``kernels/problem/sparse.py``.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.sparse import Samples, column_sum, outward
from screenpath.kernels.problem.sparse_intercept import centred, keep_totals, plane_sums, with_intercepts
from screenpath.kernels.screen import conditioning
from screenpath.kernels.screen.sifs_types import Constants, Found, Reference, Regions


@kernel(leaf=True)
def lens_top(v1, v2, norm, apart_sq, r1_sq, r2_sq):
    """Return a bound of ``v.x`` over the intersection of two balls; infinite where one of them alone is as good.

    For every share ``s`` in [0, 1] the intersection lies in the ball with centre ``s c1 + (1 - s) c2`` and squared
    radius ``s r1^2 + (1 - s) r2^2 - s (1 - s) ||c1 - c2||^2``. The best share gives the exact support (Lagrange); what
    rounding does to it costs tightness, not safety.

    ``v1, v2, norm`` are ``v.c1``, ``v.c2`` and ``||v||``; ``apart_sq`` is at most ``||c1 - c2||^2``.
    """
    middle = r1_sq - r2_sq - apart_sq
    inside = 4.0 * apart_sq * r2_sq - middle * middle  # positive where the spheres meet
    tilt = (v2 - v1) / norm if norm > 0.0 else 0.0
    rest = apart_sq - tilt * tilt
    if not (inside > 0.0 and rest > 0.0):
        return np.inf
    share = (tilt * np.sqrt(inside / rest) - middle) / (2.0 * apart_sq)
    if not 0.0 < share < 1.0:
        return np.inf
    square = share * r1_sq + (1.0 - share) * r2_sq - share * (1.0 - share) * apart_sq
    square = max(square, 0.0) + 8.0 * UNIT * (r1_sq + r2_sq + apart_sq)
    return share * v1 + (1.0 - share) * v2 + norm * np.sqrt(square)


@kernel(fastmath=SUMS, leaf=True)
def margin_bounds(scores, samples, c, ball, rows, slacks, free, lower, upper):
    """Write bounds on the margins of class ``c`` over a ball, rounding errors included, without the free intercept.

    ``ball``: ``scale`` and ``radius`` of ``(scale w, radius)``, and the largest norm of its points. ``rows``:
    ``row_part, row_sq, row_norm``, see :class:`Constants` and :class:`Found`. ``free`` (or None): with a free
    intercept, the part of a row's squared distance in addition to ``row_part``, and the size of the intercept in
    ``scores``. The score of a row then moves with its distance from a fixed point.
    """
    (labels, _, n, classes, gamma, kinks, low, high), (scale, radius, extent) = samples, ball
    row_part, row_sq, row_norm = rows
    part, score = row_part[c * n : (c + 1) * n], scores[c * n : (c + 1) * n]
    rounding, lost, floor = slacks[0], slacks[2], slacks[4]
    base, size = 0.0, gamma * max(-low, high) if low < 0.0 else 0.0
    if free is not None:
        base, size = free[0], size + scale * free[1]
    if classes == 1:
        for i in range(n):
            center, far = scale * labels[i] * score[i], part[i] + base
            norm_sq = (far if far > 0.0 else 0.0) + (lost * row_sq[i] + floor)
            reach = radius * np.sqrt(norm_sq) + rounding * (row_norm[i] * extent + (abs(kinks[i]) + size))
            lower[i], upper[i] = center - reach, center + reach
        return
    for i in range(n):
        own = labels[i] * n + i
        center = scale * (scores[own] - score[i])
        norm_sq = max(row_part[own], 0.0) + max(part[i], 0.0) + 2.0 * (lost * row_sq[i] + floor)
        reach = radius * np.sqrt(norm_sq) + rounding * (2.0 * row_norm[i] * extent + 1.0)
        lower[i], upper[i] = center - reach, center + reach


@kernel
def decide_samples(scores, samples, ball, rows, slacks, free, status, found):
    """ISS: fix dual variables over a ball (see :func:`margin_bounds`); list them in ``found`` and return how many."""
    n, count = samples.n, 0
    lower, upper = np.empty(n), np.empty(n)
    for c in range(samples.classes):
        margin_bounds(scores, samples, c, ball, rows, slacks, free, lower, upper)
        if free is not None:
            with_intercepts(lower, upper, samples, status, slacks[0])
        for i in range(n):
            kink = samples.kinks[i]
            above, below = lower[i] > kink - samples.gamma * samples.low, upper[i] < kink - samples.gamma * samples.high
            t = c * n + i
            if status[t] == 0 and (above or below):
                status[t] = -1 if above else 1
                found[count] = t
                count += 1
    return count


@kernel
def narrow(indptr, n, keep, left, formed):
    """Zero all features but ``formed`` if these cost less than half of ``left``; return those, and how many went."""
    count, stay = 0, np.empty(formed.size, dtype=np.int64)
    for f in formed:
        stay[count] = f
        count += keep[f] != 0
    stay = stay[:count]
    if 2.0 * conditioning.lines_cost(indptr, n, stay) >= left:
        return stay, 0
    before = 0
    for f in range(keep.size):
        before += keep[f] != 0
    keep[:] = 0
    for f in stay:
        keep[f] = 1
    return stay, before - count


@kernel(leaf=True)
def decide_features(columns, n, beta, sums, parts, moves, norms, balls, extent, slacks, left):
    """IFS: zero features over the two dual balls (or their lens); list them in ``found`` and return how many.

    ``sums`` are ``psi, u, u_slack, u_kinks, signs``, ``parts`` those of the first one's centre (see :class:`Regions`),
    ``norms`` ``col_part, col_sq, col_norm``, ``balls`` the two squared radii, the squared distance of the centres, and
    whether the first ball is used, ``left`` the arrays ``keep, live, active, found``. A sum ``u`` known up to
    ``u_slack`` is recomputed, in place, where that bound does not decide. ``active`` marks the features whose weight is
    proven not to be 0: no smaller region will zero them, they are not tried again. ``moves`` tells whether the centres
    have moved, and by what (not read otherwise). ``live`` holds the surviving features, in order; those that stay are
    moved to its beginning.
    Also returns the values touched, the cost of the surviving columns, and of those that are to be tried again.
    """
    (data, indices, indptr), (psi, u, u_slack, u_kinks, signs) = columns, sums
    (kink_part, theta_part), (keep, live, active, found) = parts, left
    (moved, move_first, move_second), (col_part, col_sq, norms) = moves, norms
    r1_sq, r2_sq, between_sq, paper = balls
    d = indptr.size - 1
    rounding, lost, floor = slacks[1], slacks[3], slacks[4]
    r1, r2 = np.sqrt(r1_sq), np.sqrt(r2_sq)
    count, touched, stay, undecided = 0, 0, 0.0, 0.0
    dense = indptr[d] == n * d
    for k in range(live.size):
        f = live[k]
        live[k - count] = f  # overwritten by the next one if it is found to be zero
        cost = 0.25 * n if dense else conditioning.line_cost(indptr, f % d, n)
        if active[f]:
            stay += cost
            continue
        move1, move2 = (move_first[f], move_second[f]) if moved else (0.0, 0.0)
        sign = signs[f]
        norm = np.sqrt(max(col_part[f], 0.0) + (lost * col_sq[f] + floor)) / n
        limit = beta - rounding * (norms[f] * extent + beta)
        if u_slack[f] > 0.0:
            top = np.inf
            if paper:
                off = outward(kink_part * u_kinks[f] + theta_part * u[f] + move1, sign)
                top = off + abs(theta_part) * u_slack[f] + r1 * norm
            top = min(top, outward(u[f] + move2, sign) + u_slack[f] + r2 * norm)
            if top <= limit:
                keep[f] = 0
                found[count] = f
                count += 1
                continue
            c = f // d
            start, stop = indptr[f - c * d], indptr[f - c * d + 1]
            u[f] = (1.0 / n) * column_sum(data, indices, start, stop, n, psi[c * n : (c + 1) * n])
            u_slack[f] = 0.0
            touched += stop - start
        v1 = kink_part * u_kinks[f] + theta_part * u[f] + move1
        v2 = u[f] + move2
        out1, out2 = outward(v1, sign), outward(v2, sign)
        if (paper and out1 - r1 * norm > 2.0 * beta - limit) or out2 - r2 * norm > 2.0 * beta - limit:
            active[f] = True
            stay += cost
            continue
        top = np.inf
        if paper:
            top = out1 + r1 * norm
        top = min(top, out2 + r2 * norm)
        if top > limit and paper:
            above = min(lens_top(v1, v2, norm, between_sq, r1_sq, r2_sq), v1 + r1 * norm, v2 + r2 * norm)
            below = min(lens_top(-v1, -v2, norm, between_sq, r1_sq, r2_sq), r1 * norm - v1, r2 * norm - v2)
            top = max(above, below) if sign == 0 else above if sign > 0 else below
        if top <= limit:
            keep[f] = 0
            found[count] = f
            count += 1
            continue
        stay += cost
        undecided += cost
    return count, touched, stay, undecided


@kernel
def in_plane(answering, whole, sigma_first, sigma_second, apart, first_sq, second_sq, between_sq, extent, slacks):
    """Return squared radii and distance of the dual balls cut by the plane of the points whose signed sum is right.

    ``answering``, ``whole``: weights of the surviving dual variables, and of all. ``sigma_first``, ``sigma_second``,
    ``apart``: signed sums of both centres, and their rounding error.

    Returns ``first_sq``, ``second_sq``, ``between_sq``, ``extent``; ``slacks``.
    """
    if not answering > 0.0:
        return first_sq, second_sq, between_sq, extent, slacks
    far1, far2 = max(abs(sigma_first) - apart, 0.0), max(abs(sigma_second) - apart, 0.0)
    between = abs(sigma_first - sigma_second) + 2.0 * apart
    part, root = whole / answering, np.sqrt(answering)
    # What rounding has left of the signed sums, and of the columns' sums, moves the centres.
    size = max(abs(sigma_first), abs(sigma_second)) / root
    grown = extent + apart / (slacks[1] * root) + size * (1.0 + np.sqrt(part) * slacks[3] / slacks[1])
    lost = slacks[3] * (1.0 + 4.0 * np.sqrt(part))
    return (max(first_sq - far1 * far1 / answering, 0.0), max(second_sq - far2 * far2 / answering, 0.0),
            max(between_sq - between * between / answering, 0.0), grown,
            (slacks[0], slacks[1], slacks[2], lost, slacks[4], slacks[5]))  # fmt: skip


@kernel(inner=True)
def cut_by_plane(planes, parts, n, col_part, col_total, moves, norms, balls, extent, slacks, cut):
    """Return moves, norms, balls, extent and slacks of :func:`decide_features` within the plane of the signed sum.

    ``planes`` are those of ``sparse_intercept.plane_sums``; ``cut`` is overwritten, see ``sparse_intercept.centred``.
    """
    centred(col_part, col_total, *moves, planes, n, *cut)
    (part, first, second), (_, col_sq, col_norm), (first_sq, second_sq, between_sq, paper) = cut, norms, balls
    answering, whole, sigma_first, sigma_second = planes
    # What rounding does to the signed sums.
    apart = 8.0 * UNIT * (n + 32) * whole * (abs(parts[0]) + abs(parts[1]) + 1.0)
    first_sq, second_sq, between_sq, size, bounds = in_plane(
        answering, whole, sigma_first, sigma_second, apart, first_sq, second_sq, between_sq, extent, slacks
    )
    return (True, first, second), (part, col_sq, col_norm), (first_sq, second_sq, between_sq, paper), size, bounds


@kernel
def sifs(constants, samples, beta, reference, regions, what, slacks, found, record, planes):
    """Alternate ISS and IFS to the fixed point.

    Norms and distances of dual points count each variable with its sample's weight.

    ``what``: which of the two screenings run, samples and features; whether features are first. ``slacks``: for
    rounding, see ``problem.penalised_rounding.Slacks``. ``record`` (int64 of shape (triggerings, 2)): written: found by
    each triggering: column 0 samples, column 1 features; -1 if it did not take place. ``planes`` (shape (4,) or None):
    with a free intercept, overwritten, see ``sparse_intercept.plane_sums``. With None, their code is not compiled.

    Returns ``touched``, ``used``: values touched; triggerings that took place.
    """
    columns, rows, signs, u_kinks, row_sq, row_norm, col_sq, col_norm, twice, column_ends, row_ends = constants
    labels, n = samples.labels, samples.n
    before, w, theta, psi, u, u_slack, formed, room, level, w_norm = reference
    scale, primal_sq, kink_part, theta_part, first_sq, second_sq, between_sq, theta_norm, paper = regions
    status, keep, row_part, col_part, col_total, known_keep, known_part = found
    by_samples, by_features, features_first = what
    d, scores = columns[2].size - 1, before.copy()
    moved, move_first, move_second = False, np.empty(0), np.empty(0)
    new_rows, new_cols = np.empty(theta.size, dtype=np.int64), np.empty(w.size, dtype=np.int64)
    n_rows, n_cols, dropped = 0, 0, 0
    touched, used = 0, 0
    record[:, :] = -1
    active = np.zeros(w.size, dtype=np.bool_)
    live = np.flatnonzero(keep)  # surviving features, in order
    left = conditioning.lines_cost(column_ends, n, live)  # of the columns that stay
    gone = 0.0  # of those screened last
    undecided = left  # of those that are not proven active
    turn = 1 if by_features and (features_first or not by_samples) else 0
    rounding, squares = slacks[1], slacks[5]
    primal_sq *= 1.0 + squares  # for what is subtracted from it
    shape = w.size if planes is not None else 0
    if planes is not None:
        plane_sums(theta, samples, status, kink_part, theta_part, planes)
    in_planes = np.empty(shape), np.empty(shape), np.empty(shape)
    parts, row_arrays = (kink_part, theta_part), (row_part, row_sq, row_norm)
    for trigger in range(record.shape[0]):
        if turn == 0:
            if n_cols + dropped > 0:
                lost = 0.0
                for k in range(n_cols):
                    lost += w[new_cols[k]] * w[new_cols[k]]
                primal_sq = max(primal_sq - scale * scale * lost, 0.0)
                if gone <= left:
                    touched += conditioning.drop_columns(columns, n, w, new_cols[:n_cols], twice, scores, row_part)
                else:
                    touched += conditioning.keep_columns(
                        columns, n, w, keep, live, new_cols[:n_cols], twice, scores, row_part, known_keep, known_part
                    )
            radius = np.sqrt(primal_sq)
            ball = scale, radius, scale * w_norm + radius
            if planes is not None:
                base = 0.0
                for f in range(keep.size):
                    base += 0.25 * twice[f] * twice[f] if keep[f] != 0 else 0.0
                n_rows = decide_samples(scores, samples, ball, row_arrays, slacks, (base, level), status, new_rows)
            else:
                n_rows = decide_samples(scores, samples, ball, row_arrays, slacks, None, status, new_rows)
            record[trigger, 0] = n_rows
            fresh = n_rows
        elif undecided == 0.0:
            n_cols, dropped, fresh = 0, 0, 0
            record[trigger, 1] = 0
        else:
            if n_rows > 0:
                pending = new_rows[:n_rows]
                rows_gone = conditioning.lines_cost(row_ends, d, pending)
                if not moved:  # for what is subtracted from them, all in all
                    first_sq += squares * first_sq + 8.0 * UNIT * theta_norm * np.sqrt(first_sq)
                    second_sq += squares * second_sq + 8.0 * UNIT * theta_norm * np.sqrt(second_sq)
                    between_sq -= squares * between_sq + 8.0 * UNIT * theta_norm * np.sqrt(between_sq)
                for t in pending:
                    weight, e1, e2 = conditioning.from_centres(t, samples, theta, parts, status)
                    first_sq -= weight * (e1 * e1)
                    second_sq -= weight * (e2 * e2)
                    between_sq -= weight * ((e1 - e2) * (e1 - e2))
                    if planes is not None:
                        planes[0] -= weight
                        planes[2] += labels[t] * (weight * e1)
                        planes[3] += labels[t] * (weight * e2)
                first_sq, second_sq, between_sq = max(first_sq, 0.0), max(second_sq, 0.0), max(between_sq, 0.0)
                if not moved:
                    move_first, move_second = np.empty(w.size), np.empty(w.size)
                shifts = move_first, move_second
                if rows_gone <= undecided:
                    if not moved:
                        move_first[:], move_second[:] = 0.0, 0.0
                    conditioning.drop_rows(rows, d, samples, theta, parts, status, pending, shifts, col_part, col_total)
                    touched += conditioning.lines_size(row_ends, pending)
                else:
                    touched += conditioning.keep_rows(
                        columns, samples, theta, parts, status, live, active, shifts, col_part
                    )
                    if planes is not None:
                        touched += keep_totals(columns, samples, status, live, col_total)
                moved = True
            dropped = 0
            if not moved and np.sqrt(second_sq) * (1.0 + rounding) + rounding * theta_norm <= room:
                stay, dropped = narrow(column_ends, n, keep, left, formed)
                if dropped > 0:
                    live = stay
            sums, balls = (psi, u, u_slack, u_kinks, signs), (first_sq, second_sq, between_sq, paper)
            moves, norms = (moved, move_first, move_second), (col_part, col_sq, col_norm)
            extent, bounds = theta_norm, slacks
            if planes is not None:
                moves, norms, balls, extent, bounds = cut_by_plane(
                    planes, parts, n, col_part, col_total, moves, norms, balls, theta_norm, slacks, in_planes
                )
            n_cols, summed, stay, undecided = decide_features(
                columns, n, beta, sums, parts, moves, norms, balls, extent, bounds,
                (keep, live, active, new_cols),
            )  # fmt: skip
            live = live[: live.size - n_cols]
            left, gone = stay, left - stay
            touched += summed
            fresh = n_cols + dropped
            record[trigger, 1] = fresh
        used = trigger + 1
        if not (by_samples and by_features) or (fresh == 0 and trigger > 0):
            break
        turn = 1 - turn
    return touched, used


def warm_up(planes=None):
    """Compile the canonical signatures on tiny arrays; with ``planes``, of shape (4,), those of a free intercept."""
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    labels, record = np.array([1, -1], dtype=np.int64), np.zeros((4, 2), dtype=np.int64)
    a, status, keep = np.ones(2), np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)
    constants = Constants(view, view, status, a, a, a, a, a, a, view[2], view[2])
    samples = Samples(labels, a, 2, 1, 0.5, a, 0.0, 1.0)
    reference = Reference(a, a, a, a, a.copy(), a.copy(), np.arange(1), 0.0, 0.0, 1.0)
    regions = Regions(1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, True)
    totals = np.empty(0) if planes is None else a.copy()
    found = Found(status, keep, a.copy(), a.copy(), totals, keep.copy(), a.copy())
    sifs(constants, samples, 1.0, reference, regions, (True, True, False), (1e-12,) * 6, found, record, planes)
