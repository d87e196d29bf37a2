"""A step on the face of a box problem: its free dual variables move together, by conjugate gradients.

Coordinate sweeps soon find which dual variables are free, but are slow to find their values if the free rows are
far from orthogonal. On the face they solve the linear system ``G_F G_F' x = t_F``. Variables that leave the box stop at
its end; variables that their margin draws away from an end become free again. The system of the new free set is solved
from there, until the set no longer changes. The step ends where the dual is largest on the way.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.rows.matrix import add, dot, matrix_of
from screenpath.kernels.rows.newton_system import inner
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve.cd import example
from screenpath.kernels.solve.pool import ADDED, COLUMNS, Pool, copies, frequent_add, frequent_dot
from screenpath.kernels.solve.preconditioner import (
    Along,
    Stop,
    closed,
    diagonal,
    frequent_share,
    gap_of,
    precondition,
    solve_rows,
)
from screenpath.kernels.solve.survey import Survey, nameless, nothing_known, surveyed

SYSTEMS, MORE = 8, 2  # at most, and further ones of a final step
AT = 2  # row of a box that says where the variables are; the others are its ends


class System(NamedTuple):
    """How to solve for a step on the face."""

    prox: float  # ridge, relative to the squared norms: duplicate rows would make the system singular
    aim: float  # the variables' share of the gap at which to stop
    forcing: float  # relative residual of a system
    closer: float  # its factor for the later systems, once the first one has shown that the set is right
    final: bool  # solve these too if the set had to be found first: no other step will follow
    limit: int  # products of a system at most


@kernel
def movable(c, margins, lo, hi, alpha, sqnorms, alive):
    """Return the alive rows whose dual variable is inside its box, or drawn there; and those that are not 0."""
    rows, face, n, m = np.empty_like(alive), np.empty_like(alive), 0, 0
    for i in alive:
        t = c[i] - margins[i]  # without branches: which are drawn inside is hard to guess
        inward = ((alpha[i] > lo[i]) | (t > 0.0)) & ((alpha[i] < hi[i]) | (t < 0.0))
        rows[n], face[m] = i, i  # kept where the next one does not overwrite it
        n += inward
        m += inward & (sqnorms[i] > 0.0)
    return rows[:n].copy(), face[:m].copy()


@kernel(fastmath=SUMS, leaf=True)
def _clip(rows, where, part, box, step, change):
    """Take a part of a step as far as the box allows; return how many variables have stopped at its ends.

    ``change`` is ``G'`` times the whole part, and becomes ``G'`` times what is taken.
    """
    stopped = 0
    for k in range(part.size):
        wanted = box[AT, k] + part[k]
        value = min(max(wanted, box[0, k]), box[1, k])
        step[k] += value - box[AT, k]
        box[AT, k] = value
        if value != wanted:
            add(rows.rare, where[k], value - wanted, change)
            frequent_add(rows, where[k], value - wanted, change)
            stopped += 1
    return stopped


@kernel(fastmath=SUMS, leaf=True)
def _open(residual, box, opened):
    """Mark the variables that are inside the box, or drawn there; return how many of the marks are new."""
    others = 0
    for k in range(residual.size):
        low, high, before = box[AT, k] <= box[0, k], box[AT, k] >= box[1, k], opened[k]
        opened[k] = (not low or residual[k] > 0.0) and (not high or residual[k] < 0.0)
        others += opened[k] != before
    return others


@kernel(fastmath=SUMS)
def _settle(rows, where, d, t, M, ridge, sqnorms, box, system):
    """Solve for the step of rows that are ``t`` away from their kinks and begin at ``box``.

    Returns a step, shape (n,), that keeps all variables in their box, and ``G' step``, shape (d,): the one with the
    largest dual value, not always the last. Then the rows touched, and the rows' share of the gap after that step;
    infinite if it is not the last one.
    """
    n, moves, touched, (_, aim, forcing, closer, final, limit) = t.size, 0, 0, system
    residual, part, more = t.copy(), np.empty(n), np.empty(d)
    step, centre, change, opened, weights = np.zeros(n), np.zeros(n), np.zeros(d), np.full(n, True), np.empty(n)
    goal, best, best_step, best_change, last = 0.0, 0.0, np.zeros(n), np.zeros(d), False
    along, curve = Along(np.zeros(n), np.zeros(d), np.zeros(n), np.zeros(n)), 0.0
    for k in range(n):
        goal += (forcing * t[k]) ** 2 / sqnorms[k]
    for _ in range(SYSTEMS + MORE if final else SYSTEMS):
        for k in range(n):
            weights[k] = 1.0 / sqnorms[k] if opened[k] else 0.0
        stop = Stop(weights, goal, limit, aim)
        read, curve = solve_rows(rows, where, closed(M, opened), ridge, residual, part, more, stop, box, along, curve)
        touched += read
        for j in range(d):
            change[j] += more[j]
        stopped, others = _clip(rows, where, part, box, step, change), 0
        rise = inner(t, step) - 0.5 * inner(change, change)
        last = rise >= best  # equal where nothing was left to solve
        if last:
            best, best_step[:], best_change[:] = rise, step, change
        if stopped > 0 or moves > 0:  # else the residual is known, and all are free as they were
            touched += stopped
            for k in range(n):
                if stopped > 0 or not opened[k]:
                    product = dot(rows.rare, where[k], change) + frequent_dot(rows, where[k], change)
                    residual[k] = t[k] - product - ridge[k] * (step[k] - centre[k])
                    touched += 1
            others = _open(residual, box, opened)
            curve = 0.0 if others > 0 else curve
        moves += others
        if touched > limit * n or (others == 0 and ((moves > 0 and not final) or closer == 1.0)):
            break
        if others == 0:  # the set is right: the ridge holds the step back from here on
            for k in range(n):
                residual[k] += ridge[k] * (step[k] - centre[k])
                centre[k], part[k] = step[k], 0.0
            goal *= closer * closer
            if gap_of(box, part, residual) <= aim:
                break
    for k in range(n):
        residual[k] += ridge[k] * (step[k] - centre[k])
        part[k] = 0.0
    left = gap_of(box, part, residual) if last else np.inf
    if M.factor.size > 0:  # what preconditioners have told is off by more than the rounding of a sum
        best_change[: M.factor.shape[0]] = 0.0
        for k in range(n):
            frequent_add(rows, where[k], best_step[k], best_change)
        touched += int(n * frequent_share(rows, where))
    return best_step, best_change, touched, left


@kernel(fastmath=SUMS)
def face_step(task, point, moved, face, memory, system):
    """Move the free dual variables towards the point at which their rows are at their kink; update ``alpha`` and ``w``.

    The rows of ``face`` have dual variables that are free, or at an end that their margin draws them away from; none is
    0. ``moved`` tells whether ``w`` has moved since ``margins`` were computed, so that they must be recomputed.
    ``memory`` has the :class:`Survey` of the rows of earlier steps and their :class:`Pool`, both used up.

    Returns the rows touched, the part of the step that was taken (0 if it did not raise the dual), the variables' share
    of the gap after the whole step (infinite if unknown), and ``memory`` with the rows ``face``. Plain tuples: for
    named ones Python code would run, and a signal handler's error would be raised where numba expects none.
    """
    X, where, signs, c, lo, hi, _, sqnorms, _, names, size = unowned(task)
    (alpha, w, margins, _, _, _), n, added = unowned(point), face.size, 0
    survey, copied = Survey(*memory[0]), Pool(*memory[1])
    if X.sparse:
        survey, copied, seats, order = surveyed(
            survey, copied, X, where, signs, face, names[face], sqnorms[face], size, w.size
        )  # fmt: skip
        face, added, columns = face[order], copied.counts[ADDED], copied.columns[: copied.counts[COLUMNS]].copy()
        squares = sqnorms[face]
        ridge = system.prox * squares
        M = precondition(survey, unowned(copies(copied, X)), seats, ridge)
    else:
        squares, seats, columns = sqnorms[face], where[face], np.arange(w.size)
        ridge = system.prox * squares
        M = diagonal(ridge + squares)
    t, box, own, rows = np.empty(n), np.empty((3, n)), w[columns], unowned(copies(copied, X))  # `copied` is kept
    for k in range(n):
        i, r = face[k], seats[k]
        t[k] = c[i] - (dot(rows.rare, r, own) + frequent_dot(rows, r, own) if moved else margins[i])
        box[0, k], box[1, k], box[AT, k] = lo[i], hi[i], alpha[i]
    step, change, touched, left = _settle(rows, seats, columns.size, t, M, ridge, squares, box, system)
    rise, square = inner(t, step), inner(change, change)
    share = min(rise / square, 1.0) if rise > 0.0 and square > 0.0 else 0.0
    for k in range(n):
        i = at(face[k])
        alpha[i] = min(max(alpha[i] + share * step[k], lo[i]), hi[i])
    for j in range(columns.size):
        w[columns[j]] += share * change[j]
    return touched + added + n * int(moved), share, left, nameless(survey, copied)


@kernel
def recalled(X, where, signs, names, sqnorms, size, d, memory, prox):
    """Return the survey and the pool that a step on these rows of ``d`` columns leaves, without the step.

    The other arguments are those of :func:`face_step`, of the rows of the step.
    """
    survey, copied, seats, order = surveyed(
        Survey(*memory[0]), Pool(*memory[1]), X, where, signs, np.arange(names.size), names, sqnorms, size, d
    )
    precondition(survey, unowned(copies(copied, X)), seats, prox * sqnorms[order])
    return nameless(survey, copied)


def warm_up():
    one, rows, signs = np.ones(2), np.arange(2), np.ones(2, dtype=np.int8)
    movable(one, one, -one, one, one, one, rows)
    nothing = nameless(*nothing_known())
    face_step(*example(), True, rows, nothing, System(1e-3, 0.0, 0.1, 0.1, True, 9))
    sparse = matrix_of((one, np.zeros(2, np.int32), np.array([0, 1, 2])))
    recalled(sparse, rows, signs, rows, one, 2, 1, nothing, 1e-3)
