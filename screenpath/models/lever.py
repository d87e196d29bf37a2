r"""The lever: what a ball around the optimal ``w`` decides of rows whose linear forms have a free intercept.

Let ``(w, b)`` and a feasible ``theta`` have the pair's ball of centre ``c`` and radius ``r``. Take weights ``v >= 0``,
``sum v = 1``, with ``theta + kappa v`` in the box (rows without signs, ``models.intercept``), ``mu = X'v`` and
``tau_mu = sum_i v_i (c_i - x_i.c)``. Were the linear form of a row ``x`` below

    x.c + tau_mu - rho,   rho = r D where C kappa D >= 2 r, else r^2/(C kappa) + C kappa/4 D^2,   D = ||x - mu||

then the dual point with the rows of ``v`` raised and ``x`` lowered would have an empty ball: so it is not, for any
optimal ``(w, b)``. With ``theta - kappa v`` in the box, the same from above. It is the ball's own bound with ``x - mu``
in place of ``x``: the intercept costs nothing where the lever is long enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from screenpath.kernels import intercept as kernels
from screenpath.models.geometry import ROUNDING, Ball
from screenpath.models.reduced import arrays_of

# Sizes kappa of the levers that are tried, times 2 r over the typical distance of a row from the mean (dual at C = 1).
SIZES = (0.25, 1.0, 4.0, 16.0)
LEAST = 1e-100  # radius, so that a lever's size is a number above 0


@dataclass(slots=True)
class LeverBall:
    """A ball around the optimal ``w`` with the dual point from which levers are made.

    Parameters
    ----------
    ball : Ball
        Of a pair at ``C``; the products of its centre with the rows are known.
    C : float
    theta : ndarray of shape (N,)
    residue : float
        What the signed sum of ``theta`` is off by at most.
    """

    ball: Ball
    C: float
    theta: np.ndarray
    residue: float


@dataclass(slots=True)
class Levered:
    """Signless rows as a ball around ``w`` sees them, the dual scaled by C.

    Parameters
    ----------
    tau : ndarray of shape (n,)
        ``c_i - x_i.c``, at the ball's centre c.
    down, up : ndarray of shape (n,)
        By how much a dual variable can fall and rise within its box; negative counts as 0.
    slack : ndarray of shape (n,)
        What rounding may have added to ``tau``, and to what it is compared with.
    norms, spread : ndarray of shape (n,)
        ``||x_i||``, and at least the distance of ``x_i`` from ``mean``.
    mean : ndarray of shape (d,)
        Any fixed point; near the middle of the rows the bounds are sharp.
    typical : float
        Median of the distances of all rows from it.
    take : callable
        ``take(index)`` returns a copy of rows: shape (k, d), or tuple (data, indices, indptr).
    product : float
        Relative error of a product with a row.
    """

    tau: np.ndarray
    down: np.ndarray
    up: np.ndarray
    slack: np.ndarray
    norms: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    typical: float
    take: Callable
    product: float

    def decide(self, radius: float) -> np.ndarray:
        """Return -1 where ``x.w + b`` is above the kink of a row at every optimum, +1 where it is below, else 0."""
        radius = max(radius, LEAST)
        sizes = np.array(SIZES) * (2.0 * radius / (self.typical or 1.0))
        fore, aft = kernels.foremost(self.tau, self.up), kernels.foremost(-self.tau, self.down)
        rows = arrays_of(self.take(np.concatenate([fore, aft])))
        offsets, centers = np.empty((2 * sizes.size, 2)), np.empty((2 * sizes.size, self.mean.size))
        lengths, away = np.empty((2, 2 * sizes.size))
        for side, first, chosen, room in ((1.0, 0, fore, self.up), (-1.0, fore.size, aft, self.down)):
            half = slice(0, sizes.size) if side > 0.0 else slice(sizes.size, None)
            kernels.make_levers(
                *rows, first, self.tau[chosen], self.slack[chosen], room[chosen], sizes, side, self.mean, ROUNDING,
                offsets[half], centers[half], lengths[half], away[half],
            )  # fmt: skip
        status, unsure = np.empty(self.tau.size, dtype=np.int8), np.empty(self.tau.size, dtype=np.int64)
        count = kernels.decide_by_levers(
            self.tau, self.slack, self.spread, radius, sizes.size, offsets, away, status, unsure
        )
        if count:
            index = unsure[:count]
            found = np.empty(count, dtype=np.int8)
            kernels.decide_exactly(
                *arrays_of(self.take(index)), self.norms[index], self.tau[index], self.slack[index], radius,
                sizes.size, offsets, centers, lengths, 4.0 * self.product, ROUNDING, found,
            )  # fmt: skip
            status[index] = found
        return status
