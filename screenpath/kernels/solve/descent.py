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
from screenpath.kernels.rows.matrix import listed_products, listed_sum
from screenpath.kernels.rows.newton_system import inner
from screenpath.kernels.rows.unowned import unowned
from screenpath.kernels.solve import cd
from screenpath.kernels.solve.face import System, face_step, movable
from screenpath.kernels.solve.survey import nameless, nothing_known

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


class Log(NamedTuple):
    """Steps on the face in the order in which they were taken, one row each."""

    # uint8 of shape (steps, N / 8): a bit for each dual variable of the full problem, as ``numpy.packbits`` packs them:
    # whether it was free
    marks: np.ndarray
    prox: np.ndarray  # shape (steps,): ridge of the step's system, divided by the squared norms
    used: np.ndarray  # int64 of shape (1,): how many rows have been written


class How(NamedTuple):
    """How to descend."""

    tol: float
    share: float  # part of the relative gap ``tol`` that the free rows may keep by default
    dynamic: bool  # screen with the gap ball at every evaluation
    epochs: int  # sweeps at most
    patience: int  # rounds that may bring too little
    slice_s: float  # seconds after which no further round is begun


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


@kernel(leaf=True)
def _evaluate(task, point, alive):
    """Write the gap and the primal value of the alive rows; return ``||w||^2`` and the sum of their terms' sizes."""
    own, a, n, w, now = _of(point.margins, alive), _of(point.alpha, alive), alive.size, point.w, point.now
    c, lo, hi = _of(task.c, alive), _of(task.lo, alive), _of(task.hi, alive)
    loss, linear, magnitude = box.box_summary(c, own, lo, hi, a, 0, n)
    w_sq = inner(w, w)
    pull = w_sq - inner(a, own)  # the sum of the fixed rows, times w
    now[PRIMAL] = 0.5 * w_sq - pull + loss + now[OFFSET]
    now[GAP] = w_sq - pull + loss - linear
    return w_sq, w_sq + abs(pull) + loss + magnitude


@kernel(inner=True, leaf=True)
def foresees(task, point, alive, targets):
    """Tell whether the predicted gap of the start is above so many relative targets."""
    _evaluate(task, point, alive)
    now = point.now
    return targets * abs(now[PRIMAL]) < now[GAP] < np.inf


@kernel
def look(task, point, alive, how):
    """Evaluate the gap of the alive rows; if ``how.dynamic``, screen with its ball.

    Screened rows stay at the end of their box. Should ``w`` leave one of them on the wrong side of its kink, the
    certificate on the full data shows it.

    Returns the rows that no ball has fixed, ascending, and whether the gap is at most the target.
    """
    w, margins, now = point.w, point.margins, point.now
    if now[TOLD] != KNOWN:
        own, where, signs = np.empty(alive.size), np.empty_like(alive), task.signs
        for r in range(alive.size):
            where[r] = task.where[alive[r]]
        listed_products(task.X, where, w, own)
        for r in range(alive.size):
            margins[alive[r]] = signs[alive[r]] * own[r]
        now[TOUCHED] += alive.size
        now[TOLD] = KNOWN
    w_sq, size = _evaluate(task, point, alive)
    if now[GAP] <= how.tol * abs(now[PRIMAL]):
        return alive, True
    if how.dynamic and np.isfinite(now[GAP]):
        radius = box.radius_around(  # ``w`` is the sum over rows itself
            now[GAP], size, np.sqrt(w_sq), 0.0, now[WIDTHS], task.c.size, now[TOUCHED], task.errors
        )
        alive = _screen(task, point, alive, radius, w_sq)
    return alive, False


@kernel
def _screen(task, point, alive, radius, w_sq):
    """Fix the rows that the ball around ``w`` decides; return the others."""
    status, n, margins, now = np.empty(alive.size, dtype=np.int8), alive.size, point.margins, point.now
    own, norms, c = _of(margins, alive), _of(task.norms, alive), _of(task.c, alive)
    n_R, n_L = box.box_decide_ball(
        own, 1.0, norms, radius, np.sqrt(w_sq) + radius, c, task.errors.rounding, status, 0, n
    )  # fmt: skip
    if n_R + n_L == 0:
        return alive
    alive, fresh, values = cd.parted(status, alive, task.lo, task.hi, point.decided)
    place(task, point, fresh, values)
    for r in range(fresh.size):
        now[OFFSET] += task.c[fresh[r]] * values[r]
    now[SCREENED] += fresh.size
    return alive


@kernel
def place(task, point, rows, values):
    """Change the dual variables of some rows to new values."""
    steps, where, alpha, now = np.empty(rows.size), np.empty_like(rows), point.alpha, point.now
    for r in range(rows.size):
        i = rows[r]
        steps[r], where[r] = task.signs[i] * (values[r] - alpha[i]), task.where[i]
        alpha[i] = values[r]
    touched = listed_sum(task.X, where, steps, point.w)
    now[TOUCHED] += touched
    if touched > 0:
        now[TOLD] = STALE


@kernel(leaf=True)
def noted(log, names, face, prox):
    """Write a step on the face of the dual variables ``names[face]`` to the log."""
    k = log.used[0]
    line = log.marks[k]
    for j in range(line.size):
        line[j] = 0
    for i in face:
        name = names[i]
        line[name >> 3] |= np.uint8(128 >> (name & 7))
    log.prox[k] = prox
    log.used[0] = k + 1


@kernel
def _round(task, point, alive, memory, log, near, how):
    """Sweep if it pays, then step; return what the free rows keep of the gap after the whole step, and ``memory``."""
    lo, hi, sqnorms, alpha, now = task.lo, task.hi, task.sqnorms, point.alpha, point.now
    rows, face = movable(task.c, point.margins, lo, hi, alpha, sqnorms, alive)
    sweeps = 1
    if not near or face.size < rows.size:
        sweeps, free, n = min(SWEEPS, how.epochs - int(now[EPOCHS])), rows.copy(), 0
        touched, _ = cd.cd_sweeps(task, point, free, False, sweeps)
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
        return np.inf, memory
    target = how.tol * abs(now[PRIMAL])
    system = System(
        now[SOFT], how.share * target, FORCING, CLOSER if near else 1.0, now[GAP] <= FINAL * target, PRODUCTS
    )  # fmt: skip
    touched, share, left, memory = face_step(task, point, now[TOLD] == STALE, face, memory, system)
    if task.X.sparse:
        noted(log, task.names, face, now[SOFT])
    now[TOUCHED] += touched
    now[TOLD], now[TAKEN] = STALE, share
    return left, memory


@kernel
def descend(task, point, alive, memory, log, how):
    """Descend by rounds, until the target is met, rounds bring too little, or the time is up.

    ``alive`` are the rows that are not fixed, ``memory`` is that of ``face.face_step``. The ``log`` of steps on sparse
    rows has room for at least one when a descent begins or continues. Returns ``alive``, what the descent became
    (``UNDER_WAY`` if the time is up, or the log is full), and ``memory``.
    """
    task, point, began = unowned(task), unowned(point), seconds()
    now = point.now
    while True:
        begins = now[TOLD] == FORESEEN and foresees(task, point, alive, AHEAD * how.tol)
        if not begins:
            alive, met = look(task, point, alive, how)
            if met:
                return alive, MET, memory
        now[POORLY] += now[GAP] > POOR * now[LAST]
        hopeless = not np.isfinite(now[GAP]) or alive.size == 0 or now[POORLY] > how.patience
        if hopeless or now[EPOCHS] >= how.epochs:
            return alive, ENDED, memory
        now[LAST] = now[GAP]
        near = not begins and now[GAP] <= NEAR * abs(now[PRIMAL]) and now[TAKEN] >= WAY
        left, memory = _round(task, point, alive, memory, log, near, how)
        share, target = now[TAKEN], how.tol * abs(now[PRIMAL])
        now[SOFT] = min(now[SOFT] * SOFTER, MOST) if share < WAY else max(now[SOFT] * HARDER, LEAST)
        if now[LAST] <= CLOSE * target and left + (1.0 - share) * now[LAST] <= SURE * target:
            return alive, MET, memory
        if seconds() - began > how.slice_s or log.used[0] >= log.prox.size:
            return alive, UNDER_WAY, memory


def warm_up():
    task, point = cd.example()
    log = Log(np.zeros((9, 1), np.uint8), np.zeros(9), np.zeros(1, np.int64))
    how, rows = How(1e-6, 0.5, True, 9, 2, 1.0), np.arange(2)
    point = point._replace(now=begun(task, 0.0, STALE))
    look(task, point, rows, how)
    place(task, point, rows, np.ones(2))
    descend(task, point, rows, nameless(*nothing_known()), log, how)
