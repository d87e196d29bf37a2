"""A free intercept of the box models: the problem without signs, the best intercept, dual points with a signed sum of
0.

With ``b`` added to every linear form and not penalised, the dual has one more constraint:

Objective   min_{w,b}  1/2 ||w||^2 + C sum_i phi_i(c_i - g_i.w - s_i b),   s_i the sign of row i, g_i = s_i x_i
Dual        max        C c.theta - 1/2 ||C G'theta||^2,   theta_i in [lo_i, hi_i],   sum_i s_i theta_i = 0

By the signs every row becomes ``x_i`` with the kink ``s_i c_i`` and a box of its own (:class:`Signless`): then ``b``
adds the same to all. For given ``w`` the best ``b`` is a weighted quantile of ``beta_i = s_i (c_i - g_i.w)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import intercept as kernels
from screenpath.numbers.rounding import UNIT

NONE = np.empty(0, dtype=np.int64)
ONE_CLASS = (
    "a free intercept needs two classes: of one alone, or with weight 0 for the other, none is best",
    "use `intercept=none`, or give both classes samples of positive weight",
)


def inside(theta: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Return the rows whose dual variable is between the ends of its box."""
    return np.flatnonzero((lo < theta) & (theta < hi))


@dataclass(frozen=True, slots=True)
class Signless:
    """Rows without their signs."""

    signs: np.ndarray
    kinks: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    width: np.ndarray  # ``hi - lo``
    level: float  # ``sum hi``
    slack: float  # rounding error of a sum of widths

    @classmethod
    def of(cls, c, lo, hi, signs) -> Signless:
        """Return a box model's rows without signs; a UsageError if all pull the intercept one way."""
        negative = signs < 0
        kinks, low, high = signs * c, np.where(negative, -hi, lo), np.where(negative, -lo, hi)
        level, least = float(high.sum()), float(low.sum())
        if not least < 0.0 < level:
            raise UsageError(*ONE_CLASS)
        slack = 4.0 * c.size * UNIT * (level - least)
        return cls(signs, kinks, low, high, high - low, level, slack)

    def interval(self, products: np.ndarray, likely=NONE) -> tuple[float, float]:
        """Return both ends of the best intercepts for products with ``w``; ``likely`` rows shorten the search."""
        return self.best(kernels.places(self.kinks, self.signs, products), likely)

    def best(self, beta: np.ndarray, likely=NONE) -> tuple[float, float]:
        """Return both ends of the best intercepts for rows with kinks at ``beta``."""
        return kernels.best_interval(beta, self.width, self.level, self.slack, likely, np.empty((2, beta.size)))


@dataclass(slots=True)
class Balanced:
    """A dual point whose signed sum is 0 up to ``residue``."""

    theta: np.ndarray  # shape (N,): the argument itself if nothing had to be moved
    residue: float  # at least the size of its signed sum: an exact point differs by this in one of two rows
    fall: int  # fall, rise: these rows; -1 for none
    rise: int


def balanced(theta, t, lo, hi, signs, largest: float, likely=NONE) -> Balanced:
    """Return a dual point of the box whose signed sum is 0: rows nearest to their kink are moved, for the least loss.

    ``theta`` is inside its box and not changed; ``t = c_i - g_i.w - s_i b`` at the best intercept; ``largest`` is that
    of the ends of the box; the rows ``likely`` are tried first.
    """
    found, error = kernels.excess(theta, signs)
    if found == 0.0 == error:
        return Balanced(theta, 0.0, -1, -1)
    moved, times = theta.copy(), 0
    for _ in range(kernels.TRIES):
        residue, fall, rise, count, left = kernels.balance((0.0, 0.0), moved, t, lo, hi, signs, largest, likely, False)
        times += count
        if left == 0.0:
            break
        _fill(moved, t, lo, hi, signs, left)
        times += 1
    return Balanced(moved if times else theta, residue, fall, rise)


def balanced_to(theta, t, lo, hi, signs, rest: float) -> np.ndarray:
    """Return a point of the box with signed sum ``rest``, or the nearest: the argument itself if nothing moves."""
    moved, size = theta, float(np.abs(theta).sum())
    for _ in range(kernels.TRIES):
        found = kernels.excess(moved, signs)[0] - rest
        if not abs(found) > 4.0 * UNIT * size:
            break
        moved = moved.copy()
        _fill(moved, t, lo, hi, signs, found)
    return moved


def _fill(theta, t, lo, hi, signs, found: float) -> None:
    """Move rows in the order of their distance from their kink until the signed sum has changed by ``-found``."""
    room = np.where((signs > 0) == (found > 0.0), theta - lo, hi - theta)
    rows = np.flatnonzero(room > 0.0)
    rows = rows[np.argsort(np.abs(t[rows]), kind="stable")]
    reach = np.cumsum(room[rows])
    count = int(np.searchsorted(reach, abs(found)))
    whole = rows[:count]
    down = (signs[whole] > 0) == (found > 0.0)
    theta[whole] = np.where(down, lo[whole], hi[whole])
    if count < rows.size:
        row, left = rows[count], abs(found) - (reach[count - 1] if count else 0.0)
        step = left if found > 0.0 else -left
        theta[row] = min(max(theta[row] - signs[row] * step, lo[row]), hi[row])
