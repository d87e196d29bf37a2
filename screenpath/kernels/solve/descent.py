"""A descent on a reduced box problem: evaluations of its gap, and rounds of coordinate sweeps and steps on the face.

Each round sweeps over the rows that are free or on the wrong side of their kink, and then moves the free ones together
by conjugate gradients (``face``). Near the solution, where a path starts from the line through its last two points, two
or three rounds suffice, and the later ones need no sweeps.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel
from screenpath.kernels.problem import box
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.matrix import listed_products, listed_sum, matrix_of
from screenpath.kernels.rows.newton_system import inner
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve import cd
from screenpath.kernels.solve.face import face_step, movable
from screenpath.kernels.solve.survey import nothing_known

# Of a round. Where the relative gap is below NEAR they would do more harm than good, but after a step cut short.
SWEEPS, NEAR = 3, 3e-3
PRODUCTS, FORCING = 80, 0.2  # of conjugate gradients: most of a system, and the relative residual to reach
CLOSER = 0.05  # times that below NEAR, in rounds whose first system leaves all free variables in the box
PROX, LEAST, MOST = 3e-3, 1e-4, 0.1  # of the first system, times the squared norms; and its bounds
WAY, HARDER, SOFTER = 0.5, 0.01, 10.0  # it grows where less than WAY of a step can be taken, and shrinks elsewhere
AHEAD = 100.0  # targets above which a start's gap is believed as it is foreseen, and no pass looks at it
# Where the free rows keep less than SURE of the target, after a round that began within CLOSE targets, hardly any other
# has left its side: the certificate may tell, without another pass over what is left.
SURE, CLOSE = 0.8, 1000.0
FINAL = 100.0  # targets that a round begins within, where it is meant to be the last
POOR = 0.5  # a round that leaves more than this part of the gap is one too many

# Numbers of a descent: the gap and the primal value at the last look, `c . alpha` of what is fixed, rows touched, rows
# screened, `sum (hi - lo) ||g||`, sweeps, the gap before the last round, poor rounds, what was added to the last
# system's diagonal, the part of its step that was taken, and what the margins are.
GAP, PRIMAL, OFFSET, TOUCHED, SCREENED, WIDTHS, EPOCHS, LAST, POORLY, SOFT, TAKEN, TOLD = range(12)
STALE, KNOWN, FORESEEN = 0.0, 1.0, 2.0  # the margins: not those of ``w``, its products, or what these may be
UNDER_WAY, ENDED, MET = range(3)  # what has become of a descent: ended short of its target, or met it


class Task(NamedTuple):
    """A reduced problem of k rows. Dense rows are stored with their signs: their ``signs`` are 1."""

    where: np.ndarray
    signs: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    sqnorms: np.ndarray
    errors: box.Errors


class Log(NamedTuple):
    """Steps on the face in the order in which they were taken, one row each.

    Attributes
    ----------
    marks : ndarray of uint8 of shape (steps, N / 8)
        A bit for each dual variable of the full problem, as ``numpy.packbits`` packs them: whether it was free.
    prox : ndarray of shape (steps,)
        Ridge of the step's system, divided by the squared norms.
    used : ndarray of int64 of shape (1,)
        How many rows have been written.
    """

    marks: np.ndarray
    prox: np.ndarray
    used: np.ndarray


class How(NamedTuple):
    """How to descend.

    Attributes
    ----------
    share : float
        Part of the relative gap ``tol`` that the free rows may keep by default.
    dynamic : bool
        Screen with the gap ball at every evaluation.
    epochs : int
        Sweeps at most.
    patience : int
        Rounds that may bring too little.
    slice_s : float
        Seconds after which no further round is begun.
    """

    tol: float
    share: float
    dynamic: bool
    epochs: int
    patience: int
    slice_s: float


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def begun(task, offset, told):
    """Return the state of a descent that begins."""
    now, widths = np.zeros(12), 0.0
    for k in range(task.lo.size):
        widths += (task.hi[k] - task.lo[k]) * task.norms[k]
    now[OFFSET], now[WIDTHS], now[TOLD] = offset, widths, told
    now[LAST], now[SOFT], now[TAKEN] = np.inf, PROX, 1.0
    return now


@kernel
def _of(values, alive):
    """Return the values of the alive rows."""
    if alive.size == values.size:
        return values
    some = np.empty(alive.size)
    for r in range(alive.size):
        some[r] = values[alive[r]]
    return some


@kernel
def _evaluate(task, alive, alpha, w, margins, now):
    """Write the gap and the primal value of the alive rows; return ``||w||^2`` and the sum of their terms' sizes."""
    own, a, n = _of(margins, alive), _of(alpha, alive), alive.size
    c, lo, hi = _of(task.c, alive), _of(task.lo, alive), _of(task.hi, alive)
    loss, linear, magnitude = box.box_summary(c, own, lo, hi, a, 0, n)
    w_sq = inner(w, w)
    pull = w_sq - inner(a, own)  # the sum of the fixed rows, times w
    now[PRIMAL] = 0.5 * w_sq - pull + loss + now[OFFSET]
    now[GAP] = w_sq - pull + loss - linear
    return w_sq, w_sq + abs(pull) + loss + magnitude


@kernel
def foresees(task, alive, alpha, w, margins, targets, now):
    """Tell whether the predicted gap of the start is above so many relative targets."""
    _evaluate(task, alive, alpha, w, margins, now)
    return targets * abs(now[PRIMAL]) < now[GAP] < np.inf


@kernel
def look(X, task, alive, alpha, w, margins, decided, how, now):
    """Evaluate the gap of the alive rows; if ``how.dynamic``, screen with its ball.

    Screened rows stay at the end of their box. Should ``w`` leave one of them on the wrong side of its kink, the
    certificate on the full data shows it. ``now`` tells whether ``margins`` belong to ``w = base + G'alpha``, see
    ``GAP``.

    Returns the rows that no ball has fixed, ascending, and whether the gap is at most the target.
    """
    if now[TOLD] != KNOWN:
        own, where, signs = np.empty(alive.size), np.empty_like(alive), task.signs
        for r in range(alive.size):
            where[r] = task.where[alive[r]]
        listed_products(X, where, w, own)
        for r in range(alive.size):
            margins[alive[r]] = signs[alive[r]] * own[r]
        now[TOUCHED] += alive.size
        now[TOLD] = KNOWN
    w_sq, size = _evaluate(task, alive, alpha, w, margins, now)
    if now[GAP] <= how.tol * abs(now[PRIMAL]):
        return alive, True
    if how.dynamic and np.isfinite(now[GAP]):
        radius = box.radius_around(  # ``w`` is the sum over rows itself
            now[GAP], size, np.sqrt(w_sq), 0.0, now[WIDTHS], task.c.size, now[TOUCHED], task.errors
        )
        alive = _screen(X, task, alive, alpha, w, margins, decided, radius, w_sq, now)
    return alive, False


@kernel
def _screen(X, task, alive, alpha, w, margins, decided, radius, w_sq, now):
    """Fix the rows that the ball around ``w`` decides; return the others."""
    status, n = np.empty(alive.size, dtype=np.int8), alive.size
    own, norms, c = _of(margins, alive), _of(task.norms, alive), _of(task.c, alive)
    n_R, n_L = box.box_decide_ball(
        own, 1.0, norms, radius, np.sqrt(w_sq) + radius, c, task.errors.rounding, status, 0, n
    )  # fmt: skip
    if n_R + n_L == 0:
        return alive
    alive, fresh, values = cd.parted(status, alive, task.lo, task.hi, decided)
    place(X, task, fresh, values, alpha, w, now)
    for r in range(fresh.size):
        now[OFFSET] += task.c[fresh[r]] * values[r]
    now[SCREENED] += fresh.size
    return alive


@kernel
def place(X, task, rows, values, alpha, w, now):
    """Change the dual variables of some rows to new values."""
    steps, where = np.empty(rows.size), np.empty_like(rows)
    for r in range(rows.size):
        i = rows[r]
        steps[r], where[r] = task.signs[i] * (values[r] - alpha[i]), task.where[i]
        alpha[i] = values[r]
    touched = listed_sum(X, where, steps, w)
    now[TOUCHED] += touched
    if touched > 0:
        now[TOLD] = STALE


@kernel
def noted(log, names, prox):
    """Write a step on the face of some dual variables to the log."""
    k = log.used[0]
    line = log.marks[k]
    for j in range(line.size):
        line[j] = 0
    for name in names:
        line[name >> 3] |= np.uint8(128 >> (name & 7))
    log.prox[k] = prox
    log.used[0] = k + 1


@kernel
def _round(X, task, names, size, alpha, w, margins, alive, random, known, pool, log, near, how, now):
    """Sweep if it pays, then step.

    Returns what the free rows keep of the gap after the whole step, then ``known`` and ``pool``.
    """
    c, lo, hi, sqnorms = task.c, task.lo, task.hi, task.sqnorms
    rows, face = movable(c, margins, lo, hi, alpha, sqnorms, alive)
    sweeps = 1
    if not near or face.size < rows.size:
        sweeps, free, n = min(SWEEPS, how.epochs - int(now[EPOCHS])), rows.copy(), 0
        touched, _ = cd.placed_sweeps(
            X, task.where, task.signs, c, lo, hi, sqnorms, alpha, w, free, False, sweeps, random
        )  # fmt: skip
        now[TOUCHED] += touched
        now[TOLD] = STALE
        face = np.empty_like(rows)
        for i in rows:
            face[n] = i  # kept where the next one does not overwrite it
            n += (sqnorms[i] > 0.0) & (lo[i] < alpha[i]) & (alpha[i] < hi[i])
        face = face[:n].copy()
    now[EPOCHS] += sweeps
    if face.size == 0:
        now[TAKEN] = 1.0
        return np.inf, known, pool
    own = np.empty_like(face)
    for k in range(face.size):
        own[k] = names[face[k]]
    target = how.tol * abs(now[PRIMAL])
    touched, share, left, known, pool = face_step(
        X, task.where, task.signs, c, lo, hi, sqnorms, alpha, w, margins, now[TOLD] == STALE, face, own, size, known,
        pool, now[SOFT], how.share * target, FORCING, CLOSER if near else 1.0, now[GAP] <= FINAL * target, PRODUCTS,
    )  # fmt: skip
    if X.sparse:
        noted(log, own, now[SOFT])
    now[TOUCHED] += touched
    now[TOLD], now[TAKEN] = STALE, share
    return left, known, pool


@kernel
def descend(X, task, names, size, alpha, w, margins, alive, decided, random, known, pool, log, how, now):
    """Descend by rounds, until the target is met, rounds bring too little, or the time is up.

    Parameters
    ----------
    X, task, alpha, w, margins, alive, decided, how, now
        See :func:`look`.
    names : ndarray of int64 of shape (k,)
        Numbers of the rows, the same in every step and below ``size``.
    random : ndarray of uint64 of shape (1,)
        See ``cd.placed_sweeps``.
    known, pool : tuple
        See ``face.face_step``.
    log : Log
        Of steps on sparse rows; with room for at least one when a descent begins or continues.

    Returns
    -------
    alive : ndarray of int64
    became : int
        ``UNDER_WAY`` if the time is up, or the log is full.
    known, pool : tuple
    """
    X, began = unowned(X), seconds()
    while True:
        begins = now[TOLD] == FORESEEN and foresees(task, alive, alpha, w, margins, AHEAD * how.tol, now)
        if not begins:
            alive, met = look(X, task, alive, alpha, w, margins, decided, how, now)
            if met:
                return alive, MET, known, pool
        now[POORLY] += now[GAP] > POOR * now[LAST]
        hopeless = not np.isfinite(now[GAP]) or alive.size == 0 or now[POORLY] > how.patience
        if hopeless or now[EPOCHS] >= how.epochs:
            return alive, ENDED, known, pool
        now[LAST] = now[GAP]
        near = not begins and now[GAP] <= NEAR * abs(now[PRIMAL]) and now[TAKEN] >= WAY
        left, known, pool = _round(
            X, task, names, size, alpha, w, margins, alive, random, known, pool, log, near, how, now
        )  # fmt: skip
        share, target = now[TAKEN], how.tol * abs(now[PRIMAL])
        now[SOFT] = min(now[SOFT] * SOFTER, MOST) if share < WAY else max(now[SOFT] * HARDER, LEAST)
        if now[LAST] <= CLOSE * target and left + (1.0 - share) * now[LAST] <= SURE * target:
            return alive, MET, known, pool
        if seconds() - began > how.slice_s or log.used[0] >= log.prox.size:
            return alive, UNDER_WAY, known, pool


def warm_up():
    one, zero, rows, signs = np.ones(2), np.zeros(2), np.arange(2), np.ones(2, dtype=np.int8)
    task = Task(rows, signs, one, -one, one, one, one, box.Errors(1e-12, 1e-15, 0.0, 0.0))
    log = Log(np.zeros((9, 1), np.uint8), np.zeros(9), np.zeros(1, np.int64))
    how = How(1e-6, 0.5, True, 9, 2, 1.0)
    now, X, start, random = begun(task, 0.0, STALE), matrix_of(np.eye(2)), (zero, zero.copy()), np.ones(1, np.uint64)
    look(X, task, rows, *start, zero.copy(), signs.copy(), how, now)
    place(X, task, rows, one, *start, now)
    descend(
        X, task, rows, 2, *start, zero.copy(), rows, signs.copy(), random, *map(tuple, nothing_known()), log, how, now
    )  # fmt: skip
