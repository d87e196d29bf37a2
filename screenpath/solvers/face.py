"""Coordinate sweeps, and steps on the face that they find: for wide data.

Each round sweeps over the rows that are free or on the wrong side of their kink, and then moves the free ones together
by conjugate gradients (``kernels.face``). Near the solution, where a path starts from the line through its last two
points, two or three rounds do, and the later ones need no sweeps. Where rounds bring too little, it says that it has
not converged, and Newton's method is the one to go on.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels import face as kernels
from screenpath.kernels.matrix import matrix_of
from screenpath.kernels.pool import STEPS
from screenpath.kernels.survey import nothing_known
from screenpath.models.faces import Faces
from screenpath.models.reduced import Reduced
from screenpath.solvers.base import Budget, Solution, Solver
from screenpath.solvers.cd import Descent

# Of a round. Where the relative gap is below NEAR they would do more harm than good, but after a step cut short.
SWEEPS, NEAR = 3, 3e-3
PRODUCTS, FORCING = 80, 0.2  # of conjugate gradients: most of a system, and the relative residual to reach
CLOSER = 0.05  # times that below NEAR, in rounds whose first system leaves all free variables in the box
PROX, LEAST, MOST = 3e-3, 1e-4, 0.1  # of the first system, times the squared norms; and its bounds
WAY, HARDER, SOFTER = 0.5, 0.01, 10.0  # it grows where less than WAY of a step can be taken, and shrinks elsewhere
AHEAD = 100.0  # targets above which a start's gap is believed as it is foreseen, and no pass looks at it
SHARE = 0.6  # of the target, which the free rows may keep where nothing else is asked
# Where the free rows keep less than SURE of the target, after a round that began within CLOSE targets, hardly any other
# has left its side: the certificate may tell, without another pass over what is left.
SURE, CLOSE = 0.8, 1000.0
FINAL = 100.0  # targets that a round begins within, where it is meant to be the last
POOR, PATIENCE = 0.5, 2  # a round that leaves more than POOR of the gap is one too many, of which there may be some


class FaceDescent(Solver):
    """Coordinate sweeps and steps on the face of the box.

    Parameters
    ----------
    seed : int, default 0
        Of the order of the sweeps, see :class:`screenpath.solvers.cd.CoordinateDescent`.
    share : float, default SHARE
        Part of the target that the free rows may keep.
    """

    name = "cd+cg"

    def __init__(self, seed: int = 0, share: float = SHARE):
        self.seed, self.share = seed, share

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solvers.base.Solver`."""
        run = Descent(reduced, np.random.SeedSequence((self.seed, rank)), copied=not reduced.sparse)
        epochs, last, poor, prox, share = 0, np.inf, 0, PROX, 1.0
        while True:
            begins = last == np.inf and run.foresees(AHEAD * tol)
            converged = not begins and run.check(tol, dynamic)
            budget.note(run.gap, run.primal, run.touched)
            poor += run.gap > POOR * last
            if converged or not np.isfinite(run.gap) or run.alive.size == 0 or poor > PATIENCE:
                break
            if epochs >= budget.epochs or time.monotonic() > budget.deadline:
                break
            last, near = run.gap, not begins and run.gap <= NEAR * abs(run.primal) and share >= WAY
            sweeps, share, left = self._round(run, tol, prox, near, min(SWEEPS, budget.epochs - epochs), budget)
            prox = min(prox * SOFTER, MOST) if share < WAY else max(prox * HARDER, LEAST)
            epochs += sweeps
            target = tol * abs(run.primal)
            if last <= CLOSE * target and left + (1.0 - share) * last <= SURE * target:
                converged = True
                break
        return Solution(
            run.w, run.alpha, epochs, run.touched, converged, run.screened, self.name, lambda: run.decided,
            reduced.faces,
        )  # fmt: skip

    def _round(self, run: Descent, tol: float, prox: float, near: bool, sweeps: int, budget: Budget) -> tuple:
        """Sweep where it pays, then step; return the sweeps, 1 at least, the part of the step that was taken, and what
        the free rows keep of the gap after the whole step.
        """
        r, alpha = run.reduced, run.alpha
        rows, face = kernels.movable(r.c, run.margins, r.lo, r.hi, alpha, run.sqnorms, run.alive)
        if not near or face.size < rows.size:
            run.sweep(sweeps, False, budget, rows)
            rows.sort()  # the sweeps have permuted it
            face = rows[run.sqnorms[rows] > 0.0]
            face = face[(alpha[face] > r.lo[face]) & (alpha[face] < r.hi[face])]
        else:
            sweeps = 1
        if face.size == 0:
            return sweeps, 1.0, np.inf
        names, size, faces = r.index[face], r.theta.size, r.faces
        known = _recalled(r, faces)
        touched, share, left, *known = kernels.face_step(
            run.rows, run.where, run.signs, r.c, r.lo, r.hi, run.sqnorms, alpha, run.w, run.margins, run.moved,
            face, names, size, *known, prox, self.share * tol * abs(run.primal), FORCING, CLOSER if near else 1.0,
            run.gap <= FINAL * tol * abs(run.primal), PRODUCTS,
        )  # fmt: skip
        if r.sparse:
            r.faces = (faces or Faces()).then(names, size, prox, int(known[1][-1][STEPS]), known)
        run.touched += touched
        return sweeps, share, left


def _recalled(reduced: Reduced, faces: Faces | None) -> tuple:
    """Return what is known of rows from the steps before; it is made again where a path is resumed."""
    known = None if faces is None else faces.take()
    if known is not None:
        return known
    size, known = reduced.theta.size, tuple(map(tuple, nothing_known()))
    for names, prox in () if faces is None else faces.steps(size):
        assert reduced.fetch is not None  # the model that has kept them has it
        rows, norms = reduced.fetch(names)
        every, signs = np.arange(names.size), np.ones(names.size, dtype=np.int8)
        known = kernels.recalled(
            matrix_of(rows), every, signs, names, norms**2, size, reduced.start_w.size, *known, prox
        )  # fmt: skip
    return known
