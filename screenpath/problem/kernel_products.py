"""What is known of a dual point behind a kernel, its products ``Q theta`` with all rows, and the problem that screening
leaves, in which a solver moves the point.

Where nobody asks for the products of all rows, some may be rough. A row whose dual variable is 0, the lower end of its
box, and whose kink is beyond what its product may be off by, adds exactly 0 to losses, ``w`` and gap, whatever the
product is. Rough rows wait until the problem of all others is solved; then their products follow, in float32, with a
bound for each of them (:meth:`KernelBlocks.rough_sums`). Those that come near their kinks are formed in float64, and
are rough no longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from screenpath.kernels.rows import gram
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.problem.reduced import Freed

if TYPE_CHECKING:
    from screenpath.rows.gram import GramRows

FAINT = 1e-12  # sum of changes of dual variables times norms that counts as an error of products
BLUR = 0.25  # of what is asked for: more of it is not to be lost to values of 4 bytes
FAR = 0.15  # distance of a row at the lower end 0 beyond its kink, from which float32 does


def sum_error(rows: GramRows, terms: int, spread: float) -> float:
    """Return the error of products with a sum of kernel rows, relative to the norm of each row.

    ``terms`` rows are summed, and ``spread`` is ``sum |weight| ||z||`` over them; each weight may be off by ``UNIT`` of
    itself.
    """
    value = rows.error
    return (value + (gamma(rows.depth(terms)) + 2.0 * UNIT) * (1.0 + value)) * spread * OUTWARD if terms else 0.0


def drift(error: float, spread: float) -> float:
    """Return an error of products after one more rounding of each; ``spread`` is that of the point."""
    return (error + 2.0 * UNIT * (spread + error)) * OUTWARD


@dataclass(slots=True)
class Multiplied:
    """A dual point and its products."""

    theta: np.ndarray  # theta, total: shape (n,): the point and ``Q theta``
    total: np.ndarray
    updates: int  # times ``total`` has been updated since it was last formed from all rows
    product_error: float  # each entry of ``total`` is off by at most this times the norm of its row
    # Rough rows, whose dual variables are 0: their products are those of the dual point ``since``, and off by ``rough``
    # more, which is 0 for all others. Both of shape (n,), or None for no such rows.
    rough: np.ndarray | None = None
    since: np.ndarray | None = None

    def roughen(self, index: np.ndarray) -> None:
        """Let some rows be rough from now on, if their dual variables are 0; all products are those of the point."""
        self.rough = np.zeros(self.theta.size) if self.rough is None else self.rough.copy()
        index = index[(self.theta[index] == 0.0) & (self.rough[index] == 0.0)]
        self.rough[index], self.since, self.updates = np.finfo(float).tiny, self.theta, max(self.updates, 1)

    def settled(self, rows: GramRows, index: np.ndarray, spread: float) -> Multiplied:
        """Return the same with products of some rows in float64; ``spread`` is that of the point."""
        if self.rough is None or not index.size:
            return self
        total, rough, support = self.total.copy(), self.rough.copy(), np.flatnonzero(self.theta)
        total[index], rough[index] = rows.sum_at(support, self.theta[support], index), 0.0
        error = max(self.product_error, sum_error(rows, support.size, spread))
        return replace(self, total=total, product_error=error, rough=rough)

    def followed(self, rows: GramRows, C: float) -> Multiplied:
        """Return the same with the products of all rows those of the point. Changes that are next to nothing count as
        an error; others are summed, in float32 if that is likely to leave most rows beyond their kinks at ``C``.
        """
        if self.rough is None or self.since is self.theta:
            return self
        step, target = self.theta - self.since, np.flatnonzero(self.rough)
        index, total, rough = np.flatnonzero(step), self.total.copy(), self.rough.copy()
        spread = spread_of(step, rows.norms)
        if spread <= FAINT:
            rough[target] += 2.0 * spread * rows.norms[target]
        elif C * spread * rows.blocks.rough_error > FAR:
            total[target] += rows.sum_at(index, step[index], target)
        else:
            sums, off = rows.rough_sum_at(index, step[index], target)
            total[target], rough[target] = total[target] + sums, (rough[target] + off) * OUTWARD
        return replace(self, total=total, rough=rough, since=self.theta)


def moved(known, rows: GramRows, index: np.ndarray, step: np.ndarray, spread: float) -> tuple[np.ndarray, int, float]:
    """Return products, their updates and their error for a point that differs from a known one in a few entries,
    whose spread is given. Those of rough rows stay as they are.
    """
    if known.rough is None:
        total = known.total + rows.sum_at(index, step)
    else:
        total, firm = known.total.copy(), np.flatnonzero(known.rough == 0.0)
        total[firm] += rows.sum_at(index, step, firm)
    error = sum_error(rows, index.size, gram.spread_at(step, rows.norms, index) * (1.0 + gamma(step.size + 8)))
    return total, known.updates + 1, drift(known.product_error + error, spread)


def formed(rows: GramRows, theta: np.ndarray) -> Multiplied:
    """Return a dual point with its products, summed from all rows."""
    total, terms = rows.weighted_sum(theta), int(np.count_nonzero(theta))
    return Multiplied(theta, total, 0, sum_error(rows, terms, spread_of(theta, rows.norms)))


def combined(
    rows: GramRows, index: np.ndarray, weights: np.ndarray, target: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Return the products of rows ``target``, or all, with a combination of some, no signs counted; and their error."""
    order, signs = np.argsort(index), rows.signs if target is None else rows.signs[target]
    index, weights = index[order], weights[order]
    out = rows.sum_at(index, weights * rows.signs[index], target)
    spread = float(weights @ rows.norms[index]) * (1.0 + gamma(index.size + 8))
    return out * signs, sum_error(rows, index.size, spread)


def spread_of(theta: np.ndarray, norms: np.ndarray) -> float:
    """Return an upper bound of ``sum_j |theta_j| ||z_j||``, to which the rounding of a product is relative."""
    return gram.spread(theta, norms) * (1.0 + gamma(theta.size + 8))


@dataclass(slots=True)
class KernelReduced:
    """What screening left to solve, with ``alpha = C theta``.

    ``near`` is a point of the whole problem, fixed rows included, with its products: where the solver starts, and where
    it is. Whoever moves it by :meth:`advance` has formed what the certificate needs.
    """

    rows: GramRows
    index: np.ndarray  # int64 of shape (k,): surviving samples
    c: np.ndarray  # c, lo, hi, norms: shape (k,): kinks, ends of the box multiplied by C, and ``sqrt(Q_ii)``
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    C: float
    box: tuple[np.ndarray, np.ndarray]  # ends of all dual variables, shape (n,)
    near: Multiplied
    reach: float  # at least ``sum |theta_i| ||z_i||`` for every point of the box, fixed rows included
    offset: float  # ``sum c_i alpha_i`` over the fixed rows
    slope: float  # largest part of a slope that was rounded away when the model was made
    tail: float = 0.0  # by which a kink is off, at most
    free: Freed | None = None
    formed: bool = False  # whether products were formed again, from finer values: see :meth:`leave_fixed`
    bend: np.ndarray | None = None  # shape (k,), of a smoothed loss: see :mod:`screenpath.problem.smooth`

    @property
    def size(self) -> int:
        """Return the number of survivors."""
        return self.c.size

    @property
    def alpha(self) -> np.ndarray:
        """Return the survivors' dual variables, shape (k,)."""
        return self.C * self.near.theta[self.index]

    @property
    def products(self) -> np.ndarray:
        """Return ``z_i.w`` of the survivors, shape (k,); their forms, where the loss is smoothed."""
        found = self.C * self.near.total[self.index]
        return found if self.bend is None else found + self.bend * self.near.theta[self.index]

    @property
    def error(self) -> float:
        """Return what each of these is off by, at most, over the norm of its row."""
        return self.C * drift(self.near.product_error, self.reach) * OUTWARD

    @property
    def w_sq(self) -> float:
        found = self.C * self.C * max(gram.inner(self.near.theta, self.near.total)[0], 0.0)
        return found if self.bend is None else found + self.C * float(self.bend @ self.near.theta[self.index] ** 2)

    @property
    def ridge(self) -> np.ndarray:
        """Return what the diagonal has more than the kernel, of a smoothed loss."""
        return np.asarray(self.bend) / self.C

    def part(self, some: np.ndarray, **more) -> KernelReduced:
        """Return the problem of some survivors; the others are where they are, at the lower end 0."""
        own = {name: getattr(self, name)[some] for name in ("index", "c", "lo", "hi", "norms")}
        return replace(self, **own, bend=None if self.bend is None else self.bend[some], **more)

    def firm(self) -> KernelReduced:
        """Return the problem without rough rows."""
        rough = None if self.near.rough is None else self.near.rough[self.index] > 0.0
        return self if rough is None or not rough.any() else self.part(np.flatnonzero(~rough))

    def leave_fixed(self, alpha: np.ndarray, tol: float) -> None:
        """Keep values in 4 bytes no longer, if for dual variables like ``alpha``, shape (k,), that would blur the
        certificate of a gap of ``tol`` relative to the primal value.
        """
        if self.rows.fixed is None:
            return
        spread, linear = float(np.abs(alpha) @ self.norms), self.offset + float(self.c @ alpha)
        fixed = self.near.theta.copy()
        fixed[self.index] = 0.0
        spread += self.C * spread_of(fixed, self.rows.norms)
        if self.rows.fixed.error * spread * (spread + self.C * self.reach) > BLUR * tol * abs(linear):
            self.formed = self.rows.keeps
            self.rows.keep(False)
            self.near = formed(self.rows, self.near.theta) if self.formed else self.near

    def follow(self, near: Multiplied) -> None:
        """Take a point, with the products of its rough rows brought up to date."""
        self.near = near.followed(self.rows, self.C)

    def settle(self, t: np.ndarray) -> None:
        """Let rows near their kinks, or beyond, be rough no longer; ``t`` are the distances of the survivors."""
        near = self.near
        if near.rough is not None:
            index = self.index[(t > -FAR) & (near.rough[self.index] > 0.0)]
            self.near = near.settled(self.rows, index, spread_of(near.theta, self.rows.norms))

    def advance(self, which: np.ndarray, alpha: np.ndarray, kinks: np.ndarray | None = None) -> float:
        """Move survivors ``which`` to ``alpha``; return the part of the way that was gone.

        This is all of it unless, with ``kinks`` of their products (less an intercept, which multiplies a sum that is 0
        but for rounding), the dual is found to be largest before. A kernel row is formed for each of them that moves.
        """
        near, index, (lo, hi) = self.near, self.index[which], self.box
        theta = np.minimum(np.maximum(alpha / self.C, lo[index]), hi[index])
        low, high = alpha <= self.lo[which], alpha >= self.hi[which]
        theta = np.where(low, lo[index], np.where(high, hi[index], theta))
        some = theta != near.theta[index]
        index, theta = index[some], theta[some]
        if not index.size:
            return 0.0
        step, point = theta - near.theta[index], near.theta.copy()
        point[index] = theta
        spread = spread_of(point, self.rows.norms)
        found = Multiplied(point, *moved(near, self.rows, index, step, spread), near.rough, near.since)
        if near.rough is not None:  # their dual variables were 0
            found = found.settled(self.rows, index[near.rough[index] > 0.0], spread)
        if kinks is not None:
            slope = float(step @ (kinks[some] - self.C * near.total[index]))
            bent = self.C * float(step @ (found.total - near.total)[index])
            if self.bend is not None:
                own = self.bend[which[some]] * step
                slope, bent = slope - float(own @ near.theta[index]), bent + float(own @ step)
            if not slope >= bent:
                share = slope / bent if slope > 0.0 else 0.0
                self.advance(which[some], self.C * (near.theta[index] + share * step))
                return share
        self.near = found
        return 1.0
