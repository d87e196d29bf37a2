"""Semismooth Newton on the proximal dual of a reduced box problem: certified in a few passes."""

from __future__ import annotations

import os

import numpy as np

from screenpath.geometry import GAP_ROUNDING, ROUNDING
from screenpath.kernels import newton as kernels
from screenpath.models.reduced import Reduced
from screenpath.solvers.base import Budget, Solution

PAR = np.array([2.0, 0.3, 10.0, 4.0, 2.0, 8.0, 0.2, 1.0, 1e-3, 0.5, 0.2, 0.1])
STAT = []


class Newton:
    """Semismooth Newton / augmented Lagrangian."""

    name = "newton"

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :meth:`screenpath.solvers.cd.CoordinateDescent.solve`."""
        if reduced.sparse:
            dense, csr = np.empty((0, 0)), reduced.rows
        else:
            dense, csr = reduced.rows, (np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64))
        alpha = np.minimum(np.maximum(reduced.start_alpha, reduced.lo), reduced.hi)
        w, margins = reduced.start_w.copy(), reduced.start_margins
        iterations, touched, screened, gap, primal, checks, sigma = kernels.newton_box(
            dense, *csr, reduced.sparse, reduced.c, reduced.lo, reduced.hi, reduced.norms, reduced.base,
            reduced.offset, alpha, w, margins, tol, min(budget.epochs, 1000), dynamic, ROUNDING, GAP_ROUNDING, PAR
        )  # fmt: skip
        STAT.append((reduced.size, iterations, checks, sigma, touched))
        return Solution(w, alpha, iterations, touched, gap <= tol * abs(primal), screened, self.name)
