"""Coordinate sweeps, and steps on the face that they find: for wide data, see :mod:`screenpath.kernels.solve.descent`.

If its rounds bring too little, the solution is marked as not converged, and Newton's method should continue.
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import descent
from screenpath.kernels.solve import face as kernels
from screenpath.kernels.solve.pool import STEPS
from screenpath.kernels.solve.survey import nameless, nothing_known
from screenpath.problem.reduced import Faces, Reduced
from screenpath.solve.base import Budget, Solution, Solver
from screenpath.solve.cd import Descent, draws

SHARE = 0.6  # of the target, which the free rows may keep where nothing else is asked
PATIENCE = 2  # rounds that bring too little, which there may be
SLICE = 0.05  # seconds of one call, or of one round: bounds the time until a signal or a deadline is noticed
MORE = 8  # steps that a log has room for at first, beside those from before


class FaceDescent(Solver):
    """Coordinate sweeps and steps on the face of the box.

    ``share`` is the part of the target that the free rows may keep; ``patience`` the number of rounds that may bring
    too little before it gives up. ``seed`` is as in :class:`screenpath.solve.cd.CoordinateDescent`.
    """

    name, on_faces = "cd+cg", True

    def __init__(self, seed: int = 0, share: float = SHARE):
        self.seed, self.share, self.patience = seed, share, PATIENCE

    def how(self, tol: float, dynamic: bool, epochs: int, slice_s: float) -> descent.How:
        """Return, for the kernels, how to descend to a relative gap."""
        return descent.How(tol, self.share, dynamic, epochs, self.patience, slice_s)

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        r, run = reduced, Descent(reduced, draws(self.seed, rank), copied=not reduced.sparse)
        how, size = self.how(tol, dynamic, budget.epochs, SLICE), r.theta.size
        log, memory = begun(r.faces, size, MORE), recalled(r.faces, size, r.start_w.size, r.fetch)
        while True:
            run.alive, became, memory = descent.descend(run.task, run.point, run.alive, memory, log, how)
            budget.note(run.gap, run.primal, run.touched)
            if became != descent.UNDER_WAY or budget.late:
                break
            if log.used[0] == log.prox.size:
                log = begun(ended(log, memory), size, MORE)
        faces = ended(log, memory) if r.sparse and log.used[0] > 0 else None
        return Solution(
            run.w, run.alpha, int(run.point.now[descent.EPOCHS]), run.touched, became == descent.MET, run.screened,
            self.name, lambda: run.decided, faces,
        )  # fmt: skip


def begun(faces: Faces | None, size: int, more: int) -> descent.Log:
    """Return a log of the earlier steps, of ``size`` dual variables, with room for ``more``."""
    before = 0 if faces is None else faces.prox.size
    marks, prox = np.empty((before + more, (size + 7) // 8), dtype=np.uint8), np.empty(before + more)
    if faces is not None:
        marks[:before], prox[:before] = faces.rows, faces.prox
    return descent.Log(marks, prox, np.array([before]))


def ended(log: descent.Log, memory: tuple) -> Faces:
    """Return the steps that the ``memory`` of a descent depends on."""
    used = int(log.used[0])
    first = used - int(memory[1][-1][STEPS])
    return Faces(log.marks[first:used], log.prox[first:used], memory)


def recalled(faces: Faces | None, size: int, d: int, fetch) -> tuple:
    """Return what is known of rows from the earlier steps; a resumed path computes it again.

    ``fetch(numbers)`` returns a copy of rows, and their norms; they are those of ``size`` dual variables, with ``d``
    columns.
    """
    made = None if faces is None else faces.take()
    if made is not None:
        return made
    memory = nameless(*nothing_known())
    for names, prox in () if faces is None else faces.steps(size):
        rows, norms = fetch(names)
        every, signs = np.arange(names.size), np.ones(names.size, dtype=np.int8)
        memory = kernels.recalled(matrix_of(rows), every, signs, names, norms**2, size, d, memory, prox)
    return memory
