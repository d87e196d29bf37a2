"""Several grid points in one compiled call.

The loop of ``path.py`` asks for a stretch of points before it takes one itself. For little data that saves the time
between the loop and its kernels; for much data, threads that stay in one call share more than passes over the rows.
Each point of a stretch has been screened, solved and certified in turn by the kernels that the loop uses, on the same
contracts: the next point's reference is a certificate on all rows. Where a point does not reach its gap at once, the
stretch ends before it and the loop takes over. The numbers are the loop's to the last bit: they do not depend on where
the rows live, on how many threads there are, or on where a path was interrupted.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath import steps
from screenpath.geometry import GAP_ROUNDING, ROUNDING, Point
from screenpath.grid import EpsilonGrid
from screenpath.kernels import newton
from screenpath.kernels import stretch as kernels
from screenpath.kernels.box import ROWS
from screenpath.kernels.team import can_team, leave, make_board
from screenpath.models.box import FEW, BoxModel, Certificate, Screened
from screenpath.rows.memory import MemoryRows
from screenpath.rules import Screening
from screenpath.rules.box import DVI
from screenpath.solvers.auto import Auto
from screenpath.solvers.newton import CALL_ITERATIONS, NO_CSR, NO_DENSE, Newton

LARGEST, LONGEST = 20_000_000, 1_000_000  # stored values and rows up to which a signal can wait for a point to end
SHARED = 100_000  # values of dense data from which threads share a point: it takes more than some meetings
POINTS, CELLS = 100, 1 << 19  # points of one call, and margins they may take together
SLICE = 0.05  # seconds of one call, or of one point: bounds the time until a signal or a deadline is noticed


def takes_stretches(model, screening, solver) -> bool:
    """Tell whether a path can be walked in stretches: dense or narrow rows in memory, BT1 or no rule, Newton.

    Several threads share stretches of dense data, and passes over sparse data.
    """
    rows = model.rows
    return (
        type(model) is BoxModel
        and not model.mirrored
        and isinstance(rows, MemoryRows)
        and rows.stored is not None
        and rows.size <= LARGEST
        and rows.n <= LONGEST
        and (rows.threads == 1 or not rows.sparse)
        and type(screening) is Screening
        and (screening.static is None or isinstance(screening.static, DVI))
        and (isinstance(solver, Newton) or (isinstance(solver, Auto) and not solver.sweeps_first(rows.sparse, rows.d)))
    )


class Stretches:
    """Walks the points of one grid.

    Parameters
    ----------
    model : BoxModel
    grid : sequence or EpsilonGrid
    screening : Screening
    options : path.PathOptions
    aim : float
        Relative gap of the reduced problems.
    """

    def __init__(self, model, grid, screening: Screening, options, aim: float):
        self.model, self.grid, self.screening, self.options, self.aim = model, grid, screening, options, aim
        alone = options.audit is not None or isinstance(grid, EpsilonGrid)  # each point is looked at before the next
        self.length = 1 if alone else max(1, min(POINTS, CELLS // model.size))
        rows, n = model.rows, model.size
        self.arrays = (NO_DENSE, *rows.stored, True) if rows.sparse else (rows.stored, *NO_CSR, False)
        self.arrays += (rows.sum_edges, model.c, model.lo, model.hi, model.signs, model.norms)
        blocks = rows.sum_edges.size - 1
        self.room = *newton.room(n, rows.d, rows.sparse), np.empty(n), np.empty((2, blocks, rows.d))
        self.room += (newton.table_of(max(blocks, -(-n // ROWS)), 0 if rows.sparse else rows.d),)
        self.threads = rows.threads if can_team() and rows.size >= SHARED else 1
        self.refused = None  # a point that took more than one round

    def points(self, reference, rank: int) -> list:
        """Return steps and certificates of the next grid points, none if the first of them needs more than one round.

        Parameters
        ----------
        reference : Certificate
            Of the point before ``grid[rank]``.
        rank : int

        Returns
        -------
        list of (Step, Certificate)
        """
        if rank == self.refused:
            return []
        m, o = self.model, self.options
        count = min(self.length, len(self.grid) - rank)
        parameters = [self.grid[at] for at in range(rank, rank + count)]
        w, total = np.empty((2, count + 1, m.rows.d))
        theta, margins = np.empty((2, count + 1, m.size))
        numbers, decided = np.zeros((count + 1, len(kernels.FIELDS))), np.empty(m.size, dtype=np.int8)
        r = reference
        w[0], total[0], theta[0], margins[0] = r.point.vector, r.total, r.theta, r.point.products
        numbers[0, : kernels.UPDATES + 1] = (
            r.point.sqnorm, r.total_sq, r.inner, r.xi, r.ell, r.error, r.primal, r.dual, r.n_R, r.n_L, r.updates
        )  # fmt: skip
        found, refused = self._call(
            *self.arrays, np.array([r.C, *parameters]), w, theta, total, margins, numbers, decided,
            o.tol, self.aim, min(o.max_epochs, CALL_ITERATIONS), self.screening.static is not None,
            self.screening.dynamic, FEW, m.fresh_every, ROUNDING, GAP_ROUNDING,
            min(SLICE, o.deadline - time.monotonic()), o.audit is not None, *self.room,
        )  # fmt: skip
        values, made = numbers.tolist(), []
        for k in range(1, found + 1):
            C = parameters[k - 1]
            certificate = _certificate(C, w[k], theta[k], total[k], margins[k], values[k])
            step = self._step(C, rank + k - 1, certificate, values[k])
            if o.audit:
                step.extras = {**step.extras, **o.audit(m, C, step.step, reference, certificate, decided)}
            made.append((step, certificate))
        self.refused = rank + found if refused else None
        return made

    def _call(self, *arguments):
        """Have all threads make the same call."""
        board = make_board(self.threads)
        if self.threads == 1:
            return kernels.box_stretch(*arguments, board, 0)

        def help_out(me: int):
            try:
                kernels.box_stretch(*arguments, board, me)
            except BaseException:
                leave(board)
                raise

        others = []
        try:
            for me in range(1, self.threads):
                others.append(self.model.rows.pool.submit(help_out, me))
            found = kernels.box_stretch(*arguments, board, 0)
        except BaseException as error:
            leave(board)
            causes = [other.exception() for other in others]  # when it has ended
            if isinstance(error, RuntimeError) and any(causes):
                raise next(filter(None, causes)) from error
            raise
        for other in others:
            other.result()
        return found

    def _step(self, C: float, rank: int, certificate, values: list):
        n_R, n_L, epochs, touched, screen_s, solve_s, certify_s = values[kernels.UPDATES + 1 :]
        self.model.rows.touched += int(touched)
        seconds = {"screen": screen_s, "solve": solve_s, "certify": certify_s}
        return steps.at_point(
            self.model, C, rank, certificate, Screened(None, int(n_R), int(n_L)), tol=self.options.tol, certified=True,
            solver=Newton.name, epochs=int(epochs), rounds=1, touched=touched, seconds=seconds,
        )  # fmt: skip


def _certificate(C: float, w, theta, total, margins, values: list) -> Certificate:
    w_sq, total_sq, inner, xi, ell, error, primal, dual, n_R, n_L, updates = values[: kernels.UPDATES + 1]
    return Certificate(
        C, Point(w, margins, w_sq), theta, total, total_sq, inner, xi, ell, error, primal, dual, int(n_R), int(n_L),
        int(updates),
    )  # fmt: skip
