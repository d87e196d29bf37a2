"""A solver as a plug-in: accelerated projected gradient on the dual, in numpy, for losses without a free intercept.

screenpath svm data.libsvm --intercept none --solver examples/plugins/solver.py:FastGradient
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from screenpath.solve.base import Solution

LOOK = 10  # steps between two looks at the gap


class FastGradient:
    """FISTA with restarts, for ``max_alpha c.alpha - 1/2 ||base + G'alpha||^2`` over the box ``lo <= alpha <= hi``."""

    name = "fast-gradient"

    def solve(self, reduced, *, tol, budget, dynamic, rank=0):
        """Return a solution whose gap on the reduced problem is at most ``tol`` times its primal value."""
        G, r = rows_of(reduced), reduced
        base = r.start_sum - G.T @ r.start_alpha
        step, epochs, momentum = 1.0 / max(largest_square(G), 1e-300), 0, 1.0
        alpha = ahead = r.start_alpha.copy()
        while True:
            w = base + G.T @ alpha
            t = r.c - G @ w
            gap = float(np.sum(np.maximum(r.lo * t, r.hi * t) - alpha * t))
            primal = float(0.5 * w @ w - base @ w + r.offset + np.sum(np.maximum(r.lo * t, r.hi * t)))
            budget.note(gap, primal, epochs * r.size)
            done = gap <= tol * abs(primal)
            if done or epochs >= budget.epochs or time.monotonic() > budget.deadline:
                return Solution(w, alpha, epochs, 2.0 * epochs * r.size, done, 0, self.name)
            for _ in range(LOOK):
                pull = r.c - G @ (base + G.T @ ahead)
                found = np.clip(ahead + step * pull, r.lo, r.hi)
                if (ahead - found) @ (found - alpha) > 0.0:  # the momentum points uphill: begin anew
                    momentum = 1.0
                later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
                ahead = found + (momentum - 1.0) / later * (found - alpha)
                alpha, momentum, epochs = found, later, epochs + 1


def rows_of(reduced):
    """Return the surviving rows as a matrix of shape (k, d)."""
    shape = reduced.size, reduced.start_w.size
    return sp.csr_array(reduced.rows, shape=shape) if reduced.sparse else np.asarray(reduced.rows).reshape(shape)


def largest_square(G, rounds=30):
    """Return a bound of the largest eigenvalue of ``G G'``: power iterations, and a tenth more."""
    v = np.ones(G.shape[1])
    for _ in range(rounds):
        v = G.T @ (G @ v)
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return 0.0
        v /= size
    return 1.1 * size
