"""Several grid points in one compiled call.

The loop (:mod:`screenpath.walk.loop`) asks for a stretch of points before it takes one itself. For little data that
saves the time between the loop and its kernels; for much data, threads that stay in one call share more than passes
over the rows. Each point of a stretch has been screened, solved and certified in turn by the kernels that the loop
uses, on the same contracts: the next point's reference is a certificate on all rows. Where a point does not reach its
gap at once, the stretch ends before it and the loop takes over. The numbers are the loop's to the last bit: they do not
depend on where the rows live, on how many threads there are, or on where a path was interrupted.

A region that the kernels do not form is asked of the screening before the call. A stretch then is one point long.
"""

from __future__ import annotations

import time
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from screenpath.kernels.compilation import clock
from screenpath.kernels.problem.partition import ROWS
from screenpath.kernels.rows.barrier import Team, can_share, leave, make_board
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve.margins import table_of, workspace
from screenpath.kernels.walk import compiled
from screenpath.kernels.walk import compiled_types as kernels
from screenpath.problem import INTERVAL, ends, unread
from screenpath.problem.base import PathModel
from screenpath.problem.box import FEW
from screenpath.problem.box_types import Certificate, Unread
from screenpath.regions.geometry import ROUNDING, Point
from screenpath.screen.base import PathScreening
from screenpath.solve.base import Solver
from screenpath.solve.newton import CALL_ITERATIONS, Newton, steepness
from screenpath.walk.sample import near
from screenpath.walk.step import CERTIFIED, COLUMNS, Stretch

SHARED = 100_000  # values of dense data from which threads share a point: it takes more than some meetings
POINTS, CELLS = 100, 1 << 19  # points of one call, and margins they may take together
SCREENED, SCREEN_S = kernels.SCREENED, kernels.FIELDS.index("screen_s")
SOLVE_S, EPOCHS = SCREEN_S + 1, kernels.EPOCHS
TOUCHED = kernels.FIELDS.index("touched")
PROVEN = [kernels.FIELDS.index(name) for name in ("w_sq", "sum_error", "primal")]
WHOLE = kernels.FIELDS[kernels.COUNTS : TOUCHED]  # columns of whole numbers
EACH = 15  # rows for each column: with fewer, and a free intercept, many rows are between their ends
BETWEEN = 10  # rows for each that is between its ends, from which the others are not worth reading at each step
FAR = 4.0  # times the C of a reference: from there on samples of the rows are a better start
TINY = np.finfo(np.float64).tiny
SLICE = 0.05  # seconds of one call, or of one point: bounds the time until a signal or a deadline is noticed
PAUSE = 32  # points that the loop takes in a row, at most, where others before them were refused


def can_compile(model: PathModel, screening: PathScreening, solver: Solver) -> bool:
    """Tell whether the compiled walk can be used: whether model, rows, screening and solver all support it."""
    rows: Any = model.rows  # what they are of a model that is compiled, see PathModel
    able = model.compiled and (rows.compiled or rows.staged) and screening.compiled is not None
    kernel = solver.compiled(rows) if able else None
    if kernel is None:
        return False
    # With a free intercept threads do not walk together.
    brief = rows.brief and (model.free is None or not (kernel.on_faces or _shared(rows)))
    return brief or (not kernel.on_faces and _skips(model, screening))


def _skips(model, screening) -> bool:
    """Tell whether rows may be left unread: whether nobody asks for the decisions on all of them."""
    usual = screening.compiled == kernels.PAIR_BALL and not screening.counts_all
    many = model.size >= unread.MANY and (model.free is None or model.size >= EACH * model.rows.d)
    return usual and many


def _is_zero(certificate) -> bool:
    """Tell whether ``w = 0``, as where a path with a free intercept begins."""
    return not certificate.point.vector.any()


def _shared(rows) -> bool:
    """Tell whether several threads walk together."""
    return rows.threads > 1 and can_share() and rows.size >= SHARED


class FixedGrid(list):
    """Parameters that are known before the walk, as Python's own floats, whose arithmetic is faster than an array's."""

    grows = False

    @property
    def high(self):
        return max(self)


class CompiledWalk:
    """Walks the steps of one grid; ``aim`` is the relative gap of the reduced problems."""

    solver = Newton.name
    room = 0  # rows of `_arrays` that are of no point

    def __init__(self, model, grid, screening: PathScreening, options, aim: float):
        self.model, self.grid, self.screening, self.options, self.aim = model, grid, screening, options, aim
        self.spent, self.free, self.between = 0.0, model.free, -1.0
        self.brief = model.rows.brief and (self.free is None or not _shared(model.rows))
        self.region: Any = screening.compiled  # an int, as `can_compile` has seen
        self.given = self.region == kernels.GIVEN
        alone = options.audit is not None or grid.grows or self.given  # each point is looked at before the next
        self.length = 1 if alone else max(1, min(POINTS, self._most()))
        rows, edges = model.rows, model.rows.sum_edges
        self.X: Any = None if rows.stored is None else matrix_of(rows.stored)
        self.problem = kernels.Problem(edges, model.c, model.lo, model.hi, model.norms, model.signs, model.bounds)
        if _skips(model, screening) and options.audit is None:
            self.between = model.size / BETWEEN
        self.workspace = self._workspace(edges.size - 1)
        self.threads = rows.threads if _shared(rows) else 1
        # The first point that is not left to the loop; how many are after a refusal. Where all rows may lie on their
        # kinks a path begins far from its first solution, which takes the loop's other solvers.
        self.resumes, self.pause = int(not rows.sparse and rows.d >= model.size), 1

    @np.errstate(over="ignore", invalid="ignore")  # as of `point.solve_point`
    def points(self, reference, rank: int, most: int = POINTS) -> tuple:
        """Return the next steps and their certificates, none if the first of them is one for the loop.

        ``reference`` is the certificate of the step before ``grid[rank]``. Only the last certificate is returned,
        unless all are wanted. ``spent`` then has the rows that were read in vain.
        """
        self.spent = 0.0
        C = self.grid[rank]
        m, o, r = self.model, self.options, reference
        begins = r.memory is not None and C == r.C  # from samples, see `near`
        ahead = C > r.C or (C == r.C and self.between >= 0.0 and _is_zero(r))
        if not begins and (not ahead or ends.known(m, r, C) or m.exact_until(r, C)):
            return [], []
        more = np.zeros(len(kernels.FIELDS))
        lazy, r = self._known(r, C, more)
        self.spent = float(more[TOUCHED])
        dense = C > r.C and rank >= self.resumes and self.brief and r.memory is None
        if lazy is None and not dense:
            return [], []
        count = min(self.length, len(self.grid) - rank, most)
        parameters = [self.grid[rank]] if count == 1 else self.grid[rank : rank + count]
        if lazy is not None:  # a step that is far away has a call of its own, as where a path is resumed before it
            count = next((k for k in range(1, count) if parameters[k] > FAR * parameters[k - 1]), count)
            parameters = parameters[:count]
        w, total, theta, margins = self._arrays(count, lazy is None)
        numbers = np.zeros((count + 1, len(kernels.FIELDS)))
        decided = self._decisions(r, parameters[0], numbers[1])
        screen_s, touched = numbers[1, SCREEN_S], numbers[1, TOUCHED]
        w[0], total[0], theta[0] = r.point.vector, r.total, r.theta
        if lazy is None:
            margins[0] = r.point.products
        numbers[0, : kernels.COUNTS] = (
            r.point.sqnorm, r.total_sq, r.inner, r.xi, r.ell, r.slack, r.error, r.primal, r.primal_error, r.gap,
            r.rounding, r.sum_error, r.updates,
        )  # fmt: skip
        if self.free is not None:
            numbers[0, kernels.INTERCEPT :] = r.intercept, r.low, r.high, r.residue, r.shift, r.cost
        fresh = m.fresh_every if lazy is None else m.fresh_unread
        settings = kernels.Settings(
            o.tol, self.aim, min(o.max_epochs, CALL_ITERATIONS), self.region, self.screening.dynamic,
            FEW, fresh, m.rounding, m.relative, min(SLICE, o.deadline - time.monotonic()), o.audit is not None,
            ROUNDING, self.between, 1.0 if lazy is not None else steepness(m.size, m.rows.d),
        )  # fmt: skip
        points = kernels.Points(np.array([r.C, *parameters]), w, total, theta, margins, numbers, decided)
        found, refused = self._call(points, settings, r, rank, lazy)
        self.pause = 1 if found else self.pause
        if refused and lazy is None:
            self.resumes, self.pause = rank + found + self.pause, min(2 * self.pause, PAUSE)
        if refused and lazy is not None:
            if found > 0:  # once more without it, which has changed what is known of the rows
                return self.points(reference, rank, found)
            self.spent += numbers[1, TOUCHED]
        if found == 0:
            return [], []
        if lazy is not None:  # the next call would not go on from a step of which rounding leaves too little
            sizes, errors, primal = numbers[1:found, PROVEN].T
            unclear = np.flatnonzero(unread.blurred(m, points.grid[1:found], sizes, errors, primal, o.tol))
            if unclear.size:
                return self.points(reference, rank, int(unclear[0]) + 1)
        numbers[1] += more
        certificates: list = [None] * found
        for k in range(1 if o.certificates else found, found + 1):
            certificates[k - 1] = self._certificate(r, points, k)
        if lazy is not None:
            certificates[-1].memory = lazy
            for k in range(1, found if o.certificates else 0):
                certificates[k - 1].memory = partial(self._again, reference, rank, k)
        m.rows.touched += int(numbers[1 : found + 1, TOUCHED].sum() + touched)
        if self.given:
            numbers[1, [SCREEN_S, TOUCHED]] += screen_s, touched
        numbers, w = numbers[1 : found + 1], w[1 : found + 1]
        made = stretch(m, rank, parameters[:found], numbers, w, o.tol, self.solver)
        if o.audit:
            made[0].cells.update(o.audit(m, parameters[0], rank, reference, certificates[0], decided))
        return made, certificates

    def _known(self, reference, C: float, more) -> tuple:
        """Return what is known of the rows for a walk that does not read all of them, None for one that does; and the
        reference to begin from, which is one from samples where the given one is far away.

        That depends on the reference alone: a path has the same numbers wherever it was interrupted. Work is added to
        ``more``, numbers of a step.
        """
        model, n_E = self.model, self.model.size - reference.n_R - reference.n_L
        known, most = reference.memory, self.between if reference.memory is None else 2.0 * self.between
        if self.between < 0.0 or (n_E > most and not _is_zero(reference)):
            return None, reference
        if not (C > FAR * reference.C or _is_zero(reference)):
            if self._blurred(reference):
                return None, reference
            return unread.begun(model, reference) if known is None else unread.copied(reference.unread), reference
        before, began = model.rows.touched, clock()
        start, more[EPOCHS], read = near(self, C, self.options.max_epochs)
        more[SOLVE_S] = clock() - began
        more[TOUCHED], model.rows.touched = read + model.rows.touched - before, before
        if start is None or self._blurred(start):
            return None, reference
        return start.unread, start

    def _blurred(self, one) -> bool:
        """Tell whether rounding may be too much beside what the primal value of a certificate is a difference of."""
        return unread.blurred(self.model, one.C, one.point.sqnorm, one.sum_error, one.primal, self.options.tol)

    def _again(self, reference, rank: int, count: int):
        """Return what is known of the rows after so many steps, by walking them once more: it is seldom asked for."""
        again, touched, end = copy(self), self.model.rows.touched, rank + count
        while rank < end:
            _, certificates = again.points(reference, rank, end - rank)
            rank, reference = rank + len(certificates), certificates[-1]
        self.model.rows.touched = touched
        return reference.unread

    def _most(self) -> int:
        """Return how many points the memory of one call is for."""
        return CELLS // self.model.size if self.options.certificates else POINTS

    def smaller(self, model, points: list, options, aim: float) -> CompiledWalk:
        """Return a walk on some of the rows, in memory."""
        return CompiledWalk(model, FixedGrid(points), self.screening, options, aim)

    def _workspace(self, blocks: int) -> tuple:
        rows, size, more = self.model.rows, self.model.size, 0 if self.free is None else 1
        return rows.lent(("stretch", size, more), lambda: make_workspace(size, rows.d, rows.sparse, blocks, more))

    def _arrays(self, count: int, read: bool = True) -> tuple:
        """Return ``w``, ``total``, ``theta`` of so many steps and their reference, and margins if rows are ``read``."""
        w, total = np.empty((2, count + 1, self.model.rows.d))
        # What nobody asks for takes no memory: what is written once and never read costs more than it seems.
        every = self.options.certificates
        n, rows = self.model.size, count + 1
        return w, total, np.empty((rows if every else 1, n)), np.empty((rows if every else 2, n if read else 0))

    def _certificate(self, reference, points, k: int) -> Certificate:
        """Return the certificate of the ``k``-th point."""
        _, w, total, theta, margins, numbers, _ = points
        model, C = self.model, float(points.grid[k])
        w_sq, *proven, sum_error, updates, n_R, n_L = numbers[k, : kernels.COUNTS + 2].tolist()
        proven += [int(n_R), int(n_L), int(updates), sum_error]
        r, s, t = (k % (len(rows) - self.room) for rows in (margins, theta, total))
        point = Point(w[k], margins[r], w_sq) if margins.size else Unread(w[k], w_sq, model)
        pair = point, theta[s], total[t]
        if model.free is None:
            return Certificate(C, *pair, *proven, relative=model.relative)
        more = dict(zip(kernels.FIELDS[kernels.INTERCEPT :], numbers[k, kernels.INTERCEPT :].tolist(), strict=True))
        return Certificate(C, *pair, *proven, relative=model.relative, **more)

    def _decisions(self, reference, parameter, numbers) -> np.ndarray:
        """Return room for the decisions; where the walk does not make them itself, they are made here and counted.

        ``numbers`` are those of the point. Of the rows, what was touched is not booked: a point that is refused will be
        screened again.
        """
        if not self.given:
            return np.zeros(self.model.size, dtype=np.int8)
        began, rows = clock(), self.model.rows
        before = rows.touched
        screened = self.screening.before(self.model, reference, parameter)
        numbers[SCREENED : SCREENED + 2] = screened.n_R, screened.n_L
        numbers[[SCREEN_S, TOUCHED]] = clock() - began, rows.touched - before
        rows.touched = before
        return screened.status

    def _call(self, points, settings, reference, rank: int, lazy):
        """Have all threads make the same call; return how many points are done, and whether the next one is refused."""
        threads = self.threads if lazy is None else 1
        board, (changes, room, table) = make_board(threads), self.workspace
        arguments = self.X, self.problem, self.free or (), lazy or (), points, settings, changes, room
        if threads == 1:
            return compiled.box_walk(*arguments, Team(table, board, 0))

        def help_out(me: int):
            try:
                compiled.box_walk(*arguments, Team(table, board, me))
            except BaseException:
                leave(board)
                raise

        others = []
        try:
            for me in range(1, threads):
                others.append(self.model.rows.pool.submit(help_out, me))
            found = compiled.box_walk(*arguments, Team(table, board, 0))
        except BaseException as error:
            leave(board)
            causes = [other.exception() for other in others]  # when it has ended
            if isinstance(error, RuntimeError) and any(causes):
                raise next(filter(None, causes)) from error
            raise
        for other in others:
            other.result()
        return found


def make_workspace(n: int, d: int, sparse: bool, blocks: int, more: int) -> tuple:
    """Return work space for a call, shared by walks of several classes; ``more`` are columns that a solver adds."""
    room, sums = workspace(n, d + more, sparse), np.empty((2, blocks, d))
    table = table_of(max(blocks, -(-n // ROWS)), 0 if sparse else d + more)
    return kernels.Changes(np.empty(n, np.int8), np.empty(n, np.int64), np.empty(n), sums), room, table


def stretch(model, rank: int, values: list, numbers: np.ndarray, w: np.ndarray, tol: float, solver: str) -> Stretch:
    """Return the steps of a stretch as ``steps.at_point`` would make them, of the ``values`` of C from number ``rank``.

    ``numbers`` has shape (k, len(kernels.FIELDS)); a free intercept goes behind the coefficients ``w``, shape (k, d).
    """
    columns = dict(zip(kernels.FIELDS, numbers.T, strict=True))
    columns |= {name: columns[name].astype(np.int64) for name in WHOLE}
    primal, gap = columns["primal"], columns["gap"]
    # At a point that is certified the gap is 0 where the primal value is.
    columns |= {"dual": (primal - columns["primal_error"]) - gap, "rel_gap": gap / np.maximum(primal, TINY)}
    columns |= {"gap_target": tol * primal, "passes": columns["touched"] / model.rows.n}
    cells: dict = {"step": list(range(rank, rank + len(values)))}
    names = tuple(model.parameters(values[0]))
    cells[names[0]] = values
    shared = {"status": CERTIFIED, "n_features_screened": 0, "solver": solver, "init_s": 0.0, "reason": ""}
    for name in COLUMNS:
        cells[name] = shared[name] if name in shared else columns[name]
    if model.free is not None:
        w = np.column_stack([w, columns["intercept"]])
        cells |= {name: columns[end] for name, end in zip(INTERVAL, ("low", "high"), strict=True)}
    return Stretch(names, cells, w)
