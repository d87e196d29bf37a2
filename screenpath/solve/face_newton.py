"""Projected Newton steps on the dual of a box problem with a stored matrix, for coordinates inside their box.

The sets of coordinates that two steps solve for differ little. One Cholesky factor serves them all: coordinates that
join or leave enter through the Schur complement of a bordered system, a triangular solve for each.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, get_blas_funcs, get_lapack_funcs

from screenpath.kernels.rows import gram as gram_kernels
from screenpath.kernels.solve import smo as kernels
from screenpath.rows.gram import MOST_FREE, Space

STEPS = 30  # of one call
FACES = 10  # solves on ever smaller faces of the box before a step is taken
RIDGE = 1e-4  # first ridge, relative to the largest diagonal entry
SMALLEST, LARGEST = 1e-14, 1e-2  # ridges
ROUGH = 5e-5  # ridges from which on a float32 factor does for a matrix in float32: in half the time
BORDER = 0.25  # coordinates that may join or leave a factor, as a share of its own
STIFF = 0.1  # share of the slope that the matrix takes up on a step; below it the ridge has made the step short
SLOW = 0.5  # share of the gap; a step that leaves more raises the ridge if it was cut, and may need a new factor


class FaceNewton:
    """Newton steps with a ridge that adapts; with ``free`` they keep the sum of the coordinates.

    A ridge ``1/sigma`` makes a step that of the proximal dual, ``max D(alpha) - ||alpha - alpha_k||^2 / (2 sigma)``.
    If the matrix is singular (a linear kernel has the rank of the features) it keeps the step from running along
    directions that change nothing until it meets the box. Steps that stay inside the box lower it, as do those that it
    has made short itself; others that are cut and leave much of the gap raise it, and so does rounding. ``most`` limits
    the coordinates of one step, whose factor must fit in memory.
    """

    def __init__(self, most: int = MOST_FREE, free: bool = False, space: Space | None = None):
        self.ridge, self.most, self.free, self.space = RIDGE, min(most, MOST_FREE), free, space or Space()
        self.factor: Factor | None = None

    def improve(self, Q, lo, hi, alpha, t, target: float) -> None:
        """Take steps on the coordinates inside their box or pulled into it; update ``alpha`` and the gradient ``t``.

        Each step goes towards the maximum over a face of the box, shortened to the maximum on the way: the dual never
        decreases. Ends when these coordinates' part of the gap is at most ``target``.
        """
        self.factor = None  # of another part of the matrix
        left, pull = self.measure(t, lo, hi, alpha)
        for _ in range(STEPS):
            if left <= target:
                break
            free = np.flatnonzero(((alpha > lo) | (pull > 0.0)) & ((alpha < hi) | (pull < 0.0)))
            if free.size == 0 or free.size > self.most:
                break
            fresh = self.factor is None
            step, cut = self.face_step(Q, free, pull[free], lo[free] - alpha[free], hi[free] - alpha[free])
            moved = step != 0.0
            image = np.zeros(t.size)
            gram_kernels.add_rows(Q, free[moved], step[moved], image, 0)
            slope, curvature, before = float(step @ pull[free]), float(step @ image[free]), left
            if slope > 0.0:
                length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
                alpha[free] = np.minimum(np.maximum(alpha[free] + length * step, lo[free]), hi[free])
                t -= length * image
                left, pull = self.measure(t, lo, hi, alpha)
            elif fresh:
                self.ridge = min(100.0 * self.ridge, LARGEST)  # of the next call: here rounding is all there is
                break
            slow = left > SLOW * before
            if not cut or curvature < STIFF * slope:
                self.ridge = max(self.ridge / 10.0, SMALLEST)
            elif slow:
                self.ridge = min(10.0 * self.ridge, LARGEST)
            # Without a slope its rounding may be to blame.
            if not slope > 0.0 or (slow and self.factor is not None and not self.factor.serves(self.ridge)):
                self.factor = None

    def measure(self, t, lo, hi, alpha) -> tuple[float, np.ndarray]:
        """Return the coordinates' part of the gap, and the pull on each."""
        left, b = kernels.slack(t, lo, hi, alpha, self.free)
        return left, t - b

    def face_step(self, Q, free, t, low, high) -> tuple[np.ndarray, bool]:
        """Return a step of the coordinates ``free`` inside their box, towards the maximum of ``t.s - s'Qs / 2`` over a
        face of it.

        Coordinates that the maximum without bounds would push out are fixed at the bound they cross, and the rest is
        solved for again, until nothing is pushed out; whether any was is told, too. ``t``, ``low`` and ``high`` are
        gradient and room of ``free``.
        """
        step, inside = np.zeros(t.size), np.ones(t.size, dtype=bool)
        pull, cut = t.copy(), False
        for _ in range(FACES):
            where = np.flatnonzero(inside)
            full = self.on_face(Q, free, where, pull, step)
            step[where] = np.minimum(np.maximum(full, low[where]), high[where])
            out = where[step[where] != full]
            if out.size == 0:
                break
            cut = True
            inside[out] = False
            if out.size == where.size:
                break
            fixed = out[step[out] != 0.0]
            image = np.zeros(Q.shape[0])
            gram_kernels.add_rows(Q, free[fixed], step[fixed], image, 0)
            pull -= image[free]
        if self.free:  # what bounds have cut off one side comes off the other
            rise, fall = float(step[step > 0.0].sum()), -float(step[step < 0.0].sum())
            step *= np.where(step > 0.0, min(fall / rise, 1.0), min(rise / fall, 1.0)) if rise * fall > 0.0 else 0.0
        return step, cut

    def on_face(self, Q, free, where, pull, step) -> np.ndarray:
        """Return the maximum without bounds over ``where``, entries of ``free``; the others have their step."""
        right = np.ones((where.size, 2 if self.free else 1))
        right[:, 0] = pull[where]
        found = self.solve(Q, free[where], right)
        if not self.free:
            return found[:, 0]
        found, along = found.T
        over = float(found.sum()) + float(step.sum()) - float(step[where].sum())
        return found - along * (over / float(along.sum())) if along.sum() > 0.0 else found

    def solve(self, Q, where, right) -> np.ndarray:
        """Solve ``(Q + ridge) x = right`` on ascending coordinates; a ridge too small for a factor is raised."""
        if self.factor is not None:
            found = self.factor.solve(Q, where, right)
            if found is not None:
                return found
        dtype = Q.dtype if self.ridge >= ROUGH else np.float64
        while True:
            try:
                self.factor = factor = Factor(Q, where, self.ridge, self.space.array(where.size, where.size, dtype))
                return factor.solve(Q, where, right)
            except LinAlgError:
                if dtype != np.float64:
                    dtype = np.float64
                    continue
                if self.ridge >= 1.0:  # not a kernel matrix, rounded or not
                    raise
                self.ridge = max(100.0 * self.ridge, SMALLEST)


class Factor:
    """Cholesky factor of ``Q + ridge`` on the coordinates ``base``, written to ``matrix``, and of its type; solves on
    sets that differ from these by a few.

    ``ridge`` is relative to the largest diagonal entry. If it is too small for the rounding, a LinAlgError is raised.
    """

    def __init__(self, Q, base, ridge, matrix):
        self.base, self.ridge = base, ridge
        gram_kernels.gather(Q, base, base, 1.0, matrix, 0.0)
        self.shift = ridge * (matrix.diagonal().max(initial=0.0) or 1.0)  # rows of zeros have none
        matrix[np.diag_indices(base.size)] += self.shift
        # The transposed is the same matrix in the order of columns that LAPACK wants.
        (potrf,), (self.trsm,) = get_lapack_funcs(("potrf",), (matrix,)), get_blas_funcs(("trsm",), (matrix,))
        self.lower, failed = potrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise LinAlgError("the matrix and its ridge are not positive definite")
        self.at = np.full(Q.shape[0], -1, dtype=np.int64)
        self.at[base] = np.arange(base.size)
        self.known = np.full(Q.shape[0], -1, dtype=np.int64)  # which column of the border a coordinate has
        self.border = np.empty((base.size, 0), dtype=matrix.dtype, order="F")

    def serves(self, ridge: float) -> bool:
        """Tell whether the factor's ridge is near enough to ``ridge``."""
        return 0.1 * ridge <= self.ridge <= 10.0 * ridge

    def solve(self, Q, where, right):
        """Return solutions on ``where`` in columns, or None if that differs too much from the factor's own coordinates.
        """
        at = self.at[where]
        common = at >= 0
        gone = np.ones(self.base.size, dtype=bool)
        gone[at[common]] = False
        joined, left = where[~common], self.base[gone]
        if joined.size + left.size > BORDER * self.base.size:
            return None
        z = np.zeros((self.base.size, right.shape[1]), dtype=self.border.dtype, order="F")
        z[at[common]] = right[common]
        z = self.trsm(1.0, self.lower, z, lower=1, overwrite_b=1)
        x = np.empty(right.shape)
        if joined.size + left.size:
            V = self._columns(Q, joined, left)
            S = -(V.T @ V)
            S[: joined.size, : joined.size] += Q[np.ix_(joined, joined)]
            S[np.diag_indices(joined.size)] += self.shift
            q = -(V.T @ z)
            q[: joined.size] += right[~common]
            y = np.linalg.solve(S, q)
            x[~common] = y[: joined.size]
            z -= V @ y
        z = self.trsm(1.0, self.lower, z, lower=1, trans_a=1, overwrite_b=1)
        x[common] = z[at[common]]
        return x

    def _columns(self, Q, joined, left) -> np.ndarray:
        """Return ``L^-1 U``: U has a column of Q for a coordinate that joined and a unit vector for one that left."""
        new_joined, new_left = joined[self.known[joined] < 0], left[self.known[left] < 0]
        new = new_joined.size + new_left.size
        if new:
            columns = np.zeros((self.base.size, new), dtype=self.border.dtype, order="F")
            gram_kernels.gather(Q, new_joined, self.base, 1.0, columns.T, 0.0)
            columns[self.at[new_left], np.arange(new_joined.size, new)] = 1.0
            columns = self.trsm(1.0, self.lower, columns, lower=1, overwrite_b=1)
            self.known[new_joined] = self.border.shape[1] + np.arange(new_joined.size)
            self.known[new_left] = self.border.shape[1] + np.arange(new_joined.size, new)
            self.border = np.asfortranarray(np.hstack([self.border, columns]))
        return self.border[:, self.known[np.concatenate([joined, left])]]
