"""What a sparse model (:mod:`screenpath.problem.sparse`) sums over its data: rows, weights, kinks, and passes."""

from __future__ import annotations

from math import fsum, inf, log2

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import sparse as kernels
from screenpath.problem.base import PathModel

SHARP = 2.0**-1000  # a hinge of this width is the exact one but for less than underflow, and nothing is divided by 0
WIDEST = 511  # binary exponent of a width: its square is a float64


class SparseSums(PathModel):
    """The data at one ``beta``; parameters as of :class:`screenpath.problem.sparse.SparseModel`."""

    def __init__(self, views, labels, classes: int, beta: float, gamma: float, weights, targets,
                 ends: tuple[float, float], signs):  # fmt: skip
        self.views, self.rows, self.labels, self.classes = views, views.meter, labels, classes
        self.squared = gamma == inf
        self.gamma = width_beyond(views.n, classes, weights) if self.squared else float(gamma) or SHARP
        self.unit = self.gamma if self.squared else 1.0  # what dual variables are in those of the loss
        # Mean of the weights: rows that are there twice count as one.
        self.mean = 2.0 if targets is not None and labels[-1] < 0 else self.unit
        self.beta, self.n, self.d = float(beta), views.n, views.d
        self.given = np.ones(self.n) if weights is None else np.array(weights, dtype=np.float64)
        self.weights = self.given * (self.n / fsum(self.given)) * self.mean
        self.roots, self.weighted = np.sqrt(self.weights), bool(np.any(self.weights != 1.0))
        (self.low, self.high), self.regression = ends, targets is not None
        self.signs = np.zeros(classes * self.d, dtype=np.int8) if signs is None else np.tile(signs, classes)
        self.every = np.arange(classes * self.d)
        self.free = np.zeros(classes * self.n, dtype=np.int8)
        self.ones = np.ones(classes * self.n)
        if classes > 1:
            own = labels * self.n + np.arange(self.n)
            self.free[own], self.ones[own] = -1, 0.0
        self.kinks = targets if self.regression else self.ones if classes == 1 else np.ones(self.n)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return ``X w_c``, shape (classes * n,), from the columns of the non-zero weights."""
        out = np.zeros(w.size // self.d * self.n)
        for part, view in self.views.blocks(w):
            here = w if part is None else w.reshape(-1, self.d)[:, part].ravel()
            self.rows.touched += kernels.products(view, self.n, here, out)
        return out

    @property
    def samples(self) -> kernels.Samples:
        return kernels.Samples(
            self.labels, self.weights, self.n, self.classes, self.gamma, self.kinks, self.low, self.high
        )

    def weigh(self, theta: np.ndarray) -> np.ndarray:
        """Return ``psi(theta)``: the dual variables' weight of every sample in every class."""
        if self.classes == 1:
            return self.labels * theta * self.weights
        weighed = theta.reshape(self.classes, self.n) * self.weights
        psi = -weighed
        psi[self.labels, np.arange(self.n)] = weighed.sum(axis=0)  # those of the class itself are 0
        return psi.ravel()

    def shrunk(self, u: np.ndarray, features=slice(None)) -> np.ndarray:
        """Return the soft threshold ``S_beta(u)``, of ``features`` alone."""
        signs = self.signs[features]
        return u - np.clip(u, np.where(signs > 0, -np.inf, -self.beta), np.where(signs < 0, np.inf, self.beta))

    def outward(self, u: np.ndarray) -> np.ndarray:
        """Return how far ``u`` goes towards weights that their signs allow, see ``kernels.problem.sparse.outward``."""
        return np.where(self.signs == 0, np.abs(u), np.where(self.signs < 0, -u, u))

    def dual_norm(self, u: np.ndarray, errors: np.ndarray) -> float:
        """Return the dual norm of the penalty over ``beta``, at most, of sums ``u`` that are off by ``errors``."""
        return float(np.max(self.outward(u) + errors, initial=0.0))

    def column_sums(self, psi: np.ndarray) -> np.ndarray:
        """Return ``X' psi / n`` over all features, shape (classes * d,); one data pass a class."""

        def form(view, out):
            every = self.every[: out.size]
            self.rows.touched += kernels.column_sums(view, self.n, every, psi, 1.0 / self.n, out)

        return self._of_columns(np.empty(psi.size // self.n * self.d), form)

    def _of_columns(self, out: np.ndarray, form) -> np.ndarray:
        """Let ``form(view, out)`` write something of every feature, in one piece or block by block."""
        for part, view in self.views.blocks():
            if part is None:
                form(view, out)
            else:
                here = np.empty(out.size // self.d * part.size)
                form(view, here)
                out.reshape(-1, self.d)[:, part] = here.reshape(-1, part.size)
        return out

    def _column_squares(self, classes: int, shares: np.ndarray) -> np.ndarray:
        """Return ``sum_i x_ij^2 shares_ci`` over all features, shape (classes * d,)."""
        return self._of_columns(
            np.empty(classes * self.d), lambda view, out: kernels.column_squares(view, self.n, classes, shares, out)
        )


def width_beyond(n: int, classes: int, weights) -> float:
    """Return a width of the smoothed hinge that no sample reaches with an objective not above that of ``w = 0``.

    ``t^2 s_i / (2 n) <= P(0) <= (classes - 1) / 2`` (or 1/2): ``t <= (n (classes - 1) / s_i)^1/2``.
    """
    least = 0.0  # log2, as the share of a weight among all may be no float64
    if weights is not None:
        given = np.asarray(weights, dtype=np.float64)
        least = log2(given[given > 0.0].min()) + log2(n) - log2(fsum(given))
    power = int(0.5 * (log2(1.01 * n * max(classes - 1, 1)) - least)) + 1  # with room for rounding
    if power > WIDEST:
        raise DataError(
            "a weight is too small beside the others for the squared hinge", "give such samples the weight 0"
        )
    return 2.0**power
