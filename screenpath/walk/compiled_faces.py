"""Several steps at once on wide sparse rows: see :mod:`screenpath.walk.compiled`, and the kernel's ``face_walk``.

In addition to its reference such a walk begins from the step before that, and from the last steps on the face. It
hands both on with each of its certificates.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels.walk import face_walk as kernels
from screenpath.problem.reduced import Faces
from screenpath.solve.face import FaceDescent, begun, recalled
from screenpath.walk.compiled import CELLS, POINTS, CompiledWalk

SOLVE = 0.5  # seconds of a point's solve after which it is left to the loop, which hears of signals
STEPS = 4  # on the face, for which a log has room at each point: a stretch ends where they take more


class FaceWalk(CompiledWalk):
    """Walks a grid on sparse rows by one thread; ``again``: most solves of a step, and factor of its target."""

    solver, room = FaceDescent.name, 1

    def __init__(self, model, grid, screening, options, aim: float, solver: FaceDescent, again: tuple[int, float]):
        self.descent, self.again = solver, again
        super().__init__(model, grid, screening, options, aim)
        self.between = -1.0  # it reads all rows

    def points(self, reference, rank: int, most: int = POINTS) -> tuple:
        """Return steps and certificates as :meth:`CompiledWalk.points` does; none for an audit."""
        return ([], []) if self.options.audit is not None else super().points(reference, rank)

    def _most(self) -> int:
        cells = self.model.rows.d + (self.model.size if self.options.certificates else 0)
        return min(POINTS, 2 * CELLS // cells)

    def _workspace(self, blocks: int) -> tuple:
        return ()

    def _arrays(self, count: int, read: bool = True) -> tuple:
        n, d = self.model.size, self.model.rows.d
        rows = (count + 2 if self.options.certificates else 3) + self.room
        return np.empty((count + 1, d)), np.empty((rows, d)), np.empty((rows, n)), np.empty((rows, n))

    def _call(self, points, settings, reference, rank: int, lazy):
        r, count = reference, points.grid.size - 1
        before = 0.0
        if r.before is not None:
            before, theta, margins, total = r.before
            points.theta[-2], points.margins[-2], points.total[-2] = theta, margins, total
        self.log = begun(r.faces, self.model.size, STEPS * count + kernels.ROOM)
        self.until = np.zeros((count + 1, 2), dtype=np.int64)
        o, d, (rounds, closer) = self.options, self.descent, self.again
        ahead = kernels.Ahead(before, np.uint64(d.seed % 2**64), np.uint64(rank), rounds, closer)
        how = d.how(self.aim, self.screening.dynamic, o.max_epochs, min(SOLVE, o.deadline - time.monotonic()))
        memory = recalled(r.faces, self.model.size, self.model.rows.d, self.model.fetch)
        sums = kernels.Sums(np.empty(self.model.size), *np.empty((2, self.model.rows.d)))
        walk = kernels.Walk(self.X, self.problem, points, settings, how, ahead, self.log, sums)
        found, refused, memory = kernels.face_walk(walk, memory, self.until)
        self.made = found, None if refused else memory
        return found, refused

    def _certificate(self, reference, points, k: int):
        certificate, ahead, (used, steps) = super()._certificate(reference, points, k), k - 1, self.until[k].tolist()
        kept = ahead % (len(points.theta) - self.room)
        pair = points.theta[kept], points.margins[kept], points.total[kept]
        certificate.before = float(points.grid[ahead]), *pair
        if used > 0:
            rows, (last, made) = slice(used - steps, used), self.made
            certificate.faces = Faces(self.log.marks[rows], self.log.prox[rows], made if k == last else None)
        return certificate
