"""The problem of an active set: few dual variables of a kernel model, and the square of their kernel values.

Everything is signless, as in :mod:`screenpath.kernels.solve.smo`. A round takes those inside their box and the worst
violators of the rest, copies their square, which then fits in the processor's cache, and makes pair steps in bursts:
these find out who belongs inside. If a burst does not end, Newton steps solve for these at once.
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels.solve import active_set as kernels
from screenpath.kernels.solve.smo import pairs
from screenpath.rows.gram import Square
from screenpath.solve.face_newton import FaceNewton

BESIDES = 128  # variables at an end of their box that a set takes, beside those that violate and those inside
ROUNDS, BURSTS = 60, 8  # of an active set, and of pair steps in a round
STEPS, LONG = 8, 100  # pair steps of a burst, for a variable: with Newton steps after it, and without
VIOLATION = 0.1  # part of the violation of optimality that a round leaves
NEARLY = 0.75  # of the variables of the last round: a round of so many of them, and no others, takes its square
FAR = 1e290  # ends of a box that nothing reaches


class ActiveSet:
    """Dual variables ``beta`` between ``lo`` and ``hi`` with the gradient ``t``, all of shape (m,), of the rows
    ``index``. The diagonal of their square has ``ridge`` more than the kernel.
    """

    def __init__(self, square: Square, index, t, lo, hi, beta, ridge=None):
        self.square, self.slots, self.ridge = square, square.slots(index), ridge
        self.lo, self.hi, self.beta, self.t = lo, hi, beta, t

    def solve(self, target: float, newton: FaceNewton | None, free: bool) -> None:
        """Bring the variables' part of the gap to ``target``, or as near as rounds get."""
        lo, hi, beta, t = self.lo, self.hi, self.beta, self.t
        W, within = np.empty(0, dtype=np.int64), np.zeros(t.size, dtype=bool)
        for _ in range(ROUNDS):
            wanted, violation, every = kernels.violators(t, lo, hi, beta, free, target, BESIDES, within)
            if not wanted.size:
                break
            if wanted.size < NEARLY * W.size or not every:
                W, within[:] = wanted, False
                within[W], square = True, self.square.part(self.slots[W])
                if self.ridge is not None:
                    square[np.diag_indices(W.size)] += self.ridge[W]
            part = lo[W], hi[W], beta[W], t[W]
            self._climb(square, part, VIOLATION * violation, target, newton, free)
            if self.ridge is not None:
                t[W] -= self.ridge[W] * (part[2] - beta[W])
            if not kernels.settle(self.square.values, self.square.unit, self.slots, W, part[2], beta, t):
                break

    def _climb(self, square, part, apart: float, target: float, newton: FaceNewton | None, free: bool) -> None:
        """Take bursts of pair steps on compact arrays, in place, and Newton steps between them."""
        lo, hi, beta, t = part
        limit = (STEPS if newton is not None else LONG) * t.size
        wider = square if free else np.pad(square, (0, 1))
        for _ in range(BURSTS):
            if free:
                done = pairs(square, lo, hi, beta, t, limit, apart)
            else:  # another variable takes up whatever the sum changes by
                alone = [np.append(values, end) for values, end in zip(part, (-FAR, FAR, 0.0, 0.0), strict=True)]
                done = pairs(wider, *alone, limit, apart)
                beta[:], t[:] = alone[2][:-1], alone[3][:-1]
            if done < limit:
                break
            if newton is not None:
                newton.improve(square, lo, hi, beta, t, target)
