"""Solver of a kernel model with a free intercept: that of :mod:`screenpath.solve.smo`, with one sum that is kept.

Pair steps raise one signless dual variable and lower another by as much (:mod:`screenpath.kernels.solve.smo_free`);
Newton steps on a face of the box have the sum as a constraint, for which the factor in use is asked once more. The
intercept is the best for the iterate wherever the gap is looked at.
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels.problem import intercept as intercept_kernels
from screenpath.kernels.solve import smo_free as kernels
from screenpath.numbers.rounding import UNIT, gamma
from screenpath.problem.free_kernel import FreeKernelReduced
from screenpath.problem.intercept import NONE, balanced_to
from screenpath.problem.kernel import sum_error
from screenpath.regions.geometry import ROUNDING
from screenpath.regions.lever import KernelLevered
from screenpath.solve.face_newton import FaceNewton
from screenpath.solve.plugins import takes_plugins
from screenpath.solve.smo import Run, Smo, solver_named


class FreeSmo(Smo):
    """Greedy pair steps that keep a sum, with or without shrinking and Newton steps; parameters as of :class:`Smo`."""

    def run(self, reduced) -> Run:
        return FreeRun(reduced)


@takes_plugins
def make_free_kernel_solver(name: str, seed: int = 0, shrinking: bool = True, warm: bool = True) -> FreeSmo:
    """Return the solver of that name for kernel models with a free intercept, see ``smo.make_kernel_solver``."""
    return solver_named(FreeSmo, name, shrinking, warm)


class FreeRun(Run):
    """State of one solve, on the survivors."""

    reduced: FreeKernelReduced

    def __init__(self, reduced: FreeKernelReduced):
        self.signs, self.signed = reduced.signs.astype(np.int8), reduced.signs
        self.b = 0.0
        super().__init__(reduced)
        self.newton: SumNewton = SumNewton(reduced.rows.plan.free)
        self.width = reduced.hi - reduced.lo
        self.level = float(np.where(self.signed > 0.0, reduced.hi, -reduced.lo).sum()) - reduced.rest
        self.balance()

    # -- the intercept and the sum -------------------------------------------------------------------------------

    def best(self, products: np.ndarray) -> float:
        """Return the intercept that is best for products."""
        if not self.width.any():
            return 0.0
        beta, slack = self.signed * (self.reduced.c - products), 4.0 * UNIT * self.width.size * float(self.width.sum())
        low, high = intercept_kernels.best_interval(beta, self.width, self.level, slack, NONE, np.empty((2, beta.size)))
        return low + 0.5 * (high - low)

    def kinks_at(self, products: np.ndarray) -> np.ndarray:
        """Return where products have their kinks, with the intercept that is best for them."""
        return self.reduced.c - self.signed * self.best(products)

    def place(self) -> None:
        """Take the intercept that is best now."""
        self.b = self.best(self.products)
        self.kinks, self.floor = self.reduced.c - self.signed * self.b, 2.0 * UNIT * abs(self.b)

    def balance(self) -> None:
        """Bring the sum of the dual variables back to what it must be: those nearest to their kinks are moved."""
        r = self.reduced
        if not r.size:
            return
        self.place()
        free = self.decided == 0
        lo, hi = np.where(free, r.lo, self.alpha), np.where(free, r.hi, self.alpha)
        found = balanced_to(self.alpha, self.kinks - self.products, lo, hi, self.signs, r.rest)
        if found is not self.alpha:
            step = found - self.alpha
            index = np.flatnonzero(step)
            self.alpha = found
            self.move(index, step[index])

    # -- gap and screening ---------------------------------------------------------------------------------------

    def terms(self) -> tuple[float, float]:
        self.place()
        return super().terms()[0], float(self.alpha @ self.reduced.c)

    def decide(self, gap: float) -> np.ndarray:
        """Return what the ball of the iterate and its levers decide."""
        r = self.reduced
        found, error = intercept_kernels.excess(self.alpha, self.signs)
        residue = abs(found - r.rest) + error + r.rest_error + 4.0 * UNIT * abs(r.rest)
        t, free = self.kinks - self.products, self.decided == 0
        lo, hi = np.where(free, r.lo, self.alpha), np.where(free, r.hi, self.alpha)
        near = intercept_kernels.inside(self.alpha, lo, hi)
        found = intercept_kernels.nearest_movable(t, self.alpha, lo, hi, self.signs, residue, near, False)
        rows = [k for k in found if k >= 0]
        status = np.zeros(r.size, dtype=np.int8)
        if len(rows) < 2:
            return status
        off = residue * max(abs(t[k]) + self.error * r.norms[k] + self.floor for k in rows)
        radius = self.radius(gap + off) + residue * max(r.norms[k] for k in rows)
        slack = ROUNDING * (r.norms * self.extent(radius) + np.abs(r.c))
        up, down = hi - self.alpha - residue, self.alpha - lo - residue
        flipped = self.signed < 0.0
        seen = KernelLevered(
            self.signed * (r.c - self.products), np.where(flipped, up, down), np.where(flipped, down, up), slack,
            r.typical, r.norms, self._combined,
        )  # fmt: skip
        return np.where(free, seen.decide(radius) * self.signs, self.decided).astype(np.int8)

    def _combined(self, index: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the products of the survivors, without signs, with a combination of some; and their error."""
        r, order = self.reduced, np.argsort(index)
        index, weights = index[order], weights[order]
        out = r.rows.sum_at(r.index[index], weights * self.signed[index], r.index)
        spread = float(weights @ r.norms[index]) * (1.0 + gamma(index.size + 8))
        return out * self.signed, sum_error(r.rows, index.size, spread, True)

    def _screen(self, gap: float) -> None:
        before = self.screened
        super()._screen(gap)
        if self.screened > before:
            self.balance()

    # -- one epoch -----------------------------------------------------------------------------------------------

    def left(self, W: np.ndarray, lo, hi, alpha, t) -> float:
        return kernels.free_slack(t, self.signed[W], lo, hi, alpha)[0]

    def pairs(self, W: np.ndarray, diagonal, lo, hi, alpha, t, limit: int, target: float) -> int:
        self.newton.signs = self.signed[W]
        return kernels.smo_free(*self.square.parts, diagonal, self.newton.signs, lo, hi, alpha, t, limit, target)


class SumNewton(FaceNewton):
    """Newton steps on faces of the box that keep the signed sum of the coordinates; ``signs`` are those of the working
    set.
    """

    signs: np.ndarray

    def measure(self, t, lo, hi, alpha) -> tuple[float, np.ndarray]:
        left, b = kernels.free_slack(t, self.signs, lo, hi, alpha)
        return left, t - b * self.signs

    def on_face(self, Q, free, where, pull, step) -> np.ndarray:
        """Return the maximum without bounds of those in ``where`` that keeps the sum."""
        signs, others = self.signs[free], step.copy()
        others[where] = 0.0
        own = signs[where]
        found, along = self.solve(Q, free[where], pull[where]), self.solve(Q, free[where], own)
        bent = float(own @ along)
        return found - along * ((float(own @ found) + float(signs @ others)) / bent) if bent > 0.0 else found

    def face_step(self, Q, free, t, low, high) -> np.ndarray:
        """Return a step as :meth:`FaceNewton.face_step` does, cut so that it keeps the sum where bounds have cut it."""
        step = super().face_step(Q, free, t, low, high)
        moves = self.signs[free] * step
        rise, fall = float(moves[moves > 0.0].sum()), -float(moves[moves < 0.0].sum())
        if rise > fall:
            step[moves > 0.0] *= fall / rise
        elif fall > rise:
            step[moves < 0.0] *= rise / fall
        return step
