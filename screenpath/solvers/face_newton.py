"""Projected Newton steps on the dual of a box problem with a stored matrix, for coordinates inside their box."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from screenpath.kernels import gram as gram_kernels
from screenpath.kernels import smo as kernels

MOST_FREE = 4000  # coordinates of one step: beyond it the factor takes longer than the pair steps it saves
STEPS = 8  # of one call
FACES = 10  # solves on ever smaller faces of the box before a step is taken
RIDGE = 1e-4  # first ridge, relative to the largest diagonal entry
SMALLEST, LARGEST = 1e-14, 1e-2  # ridges


class FaceNewton:
    """Newton steps with a ridge that adapts.

    A ridge ``1/sigma`` makes a step that of the proximal dual, ``max D(alpha) - ||alpha - alpha_k||^2 / (2 sigma)``.
    Where the matrix is singular (a linear kernel has the rank of the features) it keeps the step from running along
    directions that change nothing until it meets the box. Steps that stay inside the box lower it, those that are cut
    raise it.
    """

    def __init__(self):
        self.ridge = RIDGE

    def improve(self, Q, lo, hi, alpha, t, target: float) -> int:
        """Take steps on the coordinates inside their box or pulled into it, in place.

        Each step goes towards the maximum over a face of the box, shortened to the maximum on the way: the dual never
        decreases. Ends where the part of the gap that these coordinates make is at most ``target``.

        Parameters
        ----------
        Q : rows.gram.SquarePart
        lo, hi, alpha : ndarray of shape (k,)
            Box and dual point; ``alpha`` is updated.
        t : ndarray of shape (k,)
            Gradient of the dual; updated.
        target : float

        Returns
        -------
        touched : int
            Rows of Q summed over.
        """
        touched = 0
        for _ in range(STEPS):
            if kernels.slack(t, lo, hi, alpha) <= target:
                break
            free = np.flatnonzero(((alpha > lo) | (t > 0.0)) & ((alpha < hi) | (t < 0.0)))
            if free.size == 0 or free.size > MOST_FREE:
                break
            part, values = np.empty((free.size, free.size)), Q.rows(free)
            gram_kernels.gather(values, free, free, part)
            step = self.face_step(part, t[free], lo[free] - alpha[free], hi[free] - alpha[free])
            image = np.zeros(t.size)
            gram_kernels.add_rows(values, free, step, image)
            touched += 2 * free.size
            slope, curvature = float(step @ t[free]), float(step @ image[free])
            if not slope > 0.0:
                break
            length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
            alpha[free] = np.minimum(np.maximum(alpha[free] + length * step, lo[free]), hi[free])
            t -= length * image
        return touched

    def face_step(self, Q, t, low, high) -> np.ndarray:
        """Return a step inside its box towards the maximum of ``t.s - s'Qs / 2`` over a face of that box.

        Coordinates that the maximum without bounds would push out are fixed at the bound they cross, and the rest is
        solved for again, until nothing is pushed out.
        """
        step, inside = np.zeros(t.size), np.ones(t.size, dtype=bool)
        cut = False
        for _ in range(FACES):
            where, fixed = np.flatnonzero(inside), np.flatnonzero(~inside & (step != 0.0))
            pull = t[where] - Q[np.ix_(where, fixed)] @ step[fixed]
            full = self.solve(Q if where.size == t.size else Q[np.ix_(where, where)], pull)
            step[where] = np.minimum(np.maximum(full, low[where]), high[where])
            kept = step[where] == full
            if kept.all():
                break
            cut = True
            inside[where[~kept]] = False
            if not inside.any():
                break
        self.ridge = min(10.0 * self.ridge, LARGEST) if cut else max(self.ridge / 10.0, SMALLEST)
        return step

    def solve(self, Q, right) -> np.ndarray:
        """Return the solution of ``(Q + ridge) x = right``; a ridge too small for the factor is raised."""
        diagonal = np.diag_indices(right.size)
        largest = Q[diagonal].max()
        while True:
            part = Q.copy()
            part[diagonal] += self.ridge * largest
            try:
                return cho_solve(cho_factor(part, lower=True, overwrite_a=True, check_finite=False), right)
            except LinAlgError:
                if self.ridge >= 1.0:  # not a kernel matrix, rounded or not
                    raise
                self.ridge = max(100.0 * self.ridge, SMALLEST)
