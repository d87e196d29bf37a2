"""Certificates of the L1-SVM, the features that screening keeps, and the problem on these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from screenpath.numbers.rounding import OUTWARD, UNIT, Proven
from screenpath.problem.penalised_rounding import L1Rounding


@dataclass(slots=True)
class L1Certificate(Proven):
    """What is known about one pair on the full data; the reference of the next step."""

    lam: float  # parameter at which the pair was certified
    w: np.ndarray  # shape (m,)
    bias: float  # minimiser of the objective for this ``w``, as near as a double comes
    offset: float  # ``b + m.w``, the minimiser beside centred columns. Where these are none it is the bias.
    astray: float  # ``offset - m.w - bias``: the rounding of the bias, of which the slack below knows nothing
    slack: np.ndarray  # shape (n,): ``|z_i| - z_i ((x_i - m).w + offset)``
    # shape (n,); dual point, divided by ``lam``: feasible but for rounding, see ``problem/penalised_rounding.py``
    theta: np.ndarray
    products: np.ndarray  # shape (m,): ``f_j . theta``, at most 1 in size
    scale: float  # ``theta`` is ``max(slack, 0)`` times this over ``lam``
    off: float  # bound on the norm of the error of ``slack``
    slip: float  # how far ``theta`` is from the feasible point that the gap belongs to, relative to its norm
    # Upper bound of the gap between ``w`` and that point: what a region around ``theta`` is made of. A sharpened
    # certificate has a dual point of its own, and a smaller ``gap``.
    theta_gap: float
    primal: float  # primal, primal_error, gap, rounding: see :class:`screenpath.numbers.rounding.Proven`
    primal_error: float
    gap: float
    rounding: float
    # int64: columns whose inner products were kept then. What the next steps touch depends on it, no other number does.
    known: np.ndarray

    @property
    def at(self) -> tuple:
        return (self.lam,)


def halfway(gap: float, scale: float, norm: float, off: float) -> tuple[float, float]:
    """Return a ball with the dual optimum: its centre as a part of ``r = max(slack, 0)``, and its radius.

    Not only ``1/2 ||scale r - alpha*||^2`` is at most the distance of the feasible ``scale r``'s dual value from the
    optimum, but ``1/2 ||r - alpha*||^2`` also at most the primal's: ``slack.alpha* <= r.alpha*``,
    ``w.F alpha* <= lam ||w||_1`` and ``z.alpha* = 0``. The sum of both is the gap, so the centre is halfway
    between the two points, and the square of the radius ``gap - 1/4 ||r - scale r||^2`` (Tran et al. 2023, RYU). It is
    smaller than the ball of the dual point alone if the two are near each other.

    ``gap`` is not below the exact one, ``norm`` is ``||r||``, and ``off`` bounds the distance of ``r`` and ``scale r``
    from points of which this is true.
    """
    apart = max(abs(1.0 - scale) * norm - 2.0 * off, 0.0)
    square = gap * (1.0 + 16.0 * UNIT) - 0.25 * apart * apart * (1.0 - 16.0 * UNIT)
    return 0.5 * (1.0 + scale), sqrt(max(square, 0.0)) * OUTWARD + off


@dataclass(slots=True)
class KeptFeatures:
    """Features that screening kept: their numbers, increasing, of ``size`` in all.

    Those ``resting`` are not solved for, though nothing is known of them: see ``L1SVM.flat``.
    """

    index: np.ndarray
    size: int
    resting: np.ndarray

    @property
    def status(self) -> np.ndarray:
        """Return -1 for screened features and 0 for the others, shape (m,), int8."""
        status = np.full(self.size, -1, dtype=np.int8)
        status[self.index] = 0
        status[self.resting] = 0
        return status


@dataclass(slots=True)
class L1Reduced:
    """The problem on the surviving features."""

    # shape (c, n), or tuple (data, indices, begin, end): signed columns, float64. Perhaps those of all features: the
    # problem is on the ones in ``where``.
    columns: Any
    index: np.ndarray  # int64 of shape (k,): numbers of the features in the full problem
    where: np.ndarray  # int64 of shape (k,): and of their columns; the same array where these are all columns
    signs: np.ndarray  # shape (n,); ``z``, the column of the bias: labels -1 and +1, times the roots of the weights
    lam: float
    # sqnorms, spreads: shape (c,): squared norms of the columns, and norms of these centred; not below the exact ones
    sqnorms: np.ndarray
    spreads: np.ndarray
    blurs: np.ndarray  # shape (c,): see ``L1SVM.blurs``
    means: np.ndarray  # shape (c,): means of the columns, as computed
    rounding: L1Rounding
    start_w: np.ndarray  # shape (c,), 0 but in ``where``; the solver may write to it
    start_bias: float
    # shape (n,): ``|z| - z (x.w + b)`` of the start; None where a weight of the reference was screened away
    start_slack: np.ndarray | None
    # shape (k,): products of the survivors with ``max(start_slack, 0)``, where they are known
    start_products: np.ndarray | None
    # ``f_a . f_b`` and ``f_a . z`` for some of the columns, over all samples; for sparse columns
    inner_products: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    fresh: bool  # whether the starting point comes from another parameter (a cold start may then ignore it)

    @property
    def sparse(self) -> bool:
        return isinstance(self.columns, tuple)

    @property
    def size(self) -> int:
        return self.index.size
