"""What two solved steps prove about every C between them, without a solve (piecewise-linear losses with L2 penalty).

At ``C = (1 - s) C0 + s C1`` take the same mean of both primal points, intercepts included, and of both dual points
times C. It is feasible, and as the losses are convex its gap is at most::

    gap(s) = (1 - s) G0 + s G1 + s (1 - s) K,   K = (C1 - C0) (xi0 - xi1) - 1/2 ||w1 - w0||^2 - 1/2 ||v1 - v0||^2,

with the gaps ``G``, the sums of losses ``xi = (P - 1/2 ||w||^2) / C`` and the primal points ``v = C G'theta`` of the
dual ones. While no row reaches or leaves its kink, ``K`` is 0. A gap is at least ``1/2 ||w - v||^2``, so ``||v1 - v0||
>= ||w1 - w0|| - sqrt(2 G0) - sqrt(2 G1)``: the row of the step table and the weights are all that is needed. Several
classes, one against the rest, are one problem with one long ``w``; their objectives are sums.

Over a level of the loss at one C (:mod:`screenpath.problem.levels`) the same holds with the levels for C0 and C1, and
the derivatives of the objective for ``xi``: the size of step times change; the dual value may lie below the mean of
both by ``s (1 - s)`` times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.regions.geometry import ROUNDING

FEW = 16.0 * UNIT  # relative error of a few operations, and of a C that is given by its share of the way


def sum_error(size: int) -> float:
    """Return a bound on the relative error of a sum of so many squares, in any order."""
    return 2.0 * (size + 8) * UNIT


@dataclass(frozen=True)
class Solved:
    """A solved step: ``dual`` and ``gap`` with rounding counted, ``w`` all penalised weights as the model sees them."""

    C: float  # or the level
    primal: float
    dual: float  # lower bound of the exact dual value
    gap: float
    w: np.ndarray  # shape (d,)
    off: float = 0.0  # bound on the norm of the rounding error of ``w``
    slope: tuple[float, float] | None = None  # of a path over a level: the derivative by it, and a bound on its error

    @property
    def loss(self) -> tuple[float, float]:
        """Return the sum of the losses, the derivative by C, or that by the level; and a bound on its error."""
        if self.slope is not None:
            return self.slope
        half = 0.5 * float(self.w @ self.w)
        off = max(self.primal - self.gap - self.dual, 0.0) + sum_error(self.w.size) * half
        off += self.off * (math.sqrt(2.0 * half) + self.off) + FEW * (abs(self.primal) + half)
        return (self.primal - half) / self.C, OUTWARD * off / self.C


@dataclass(frozen=True)
class Between:
    """All C between two solved steps; ``bend`` is ``K``, raised to at least 0."""

    first: Solved
    second: Solved
    bend: float
    sag: float = 0.0  # what the dual value of the mean may be below the mean of both, over ``s (1 - s)``

    @classmethod
    def of(cls, first: Solved, second: Solved) -> Between:
        (loss, off), (later, off_later) = first.loss, second.loss
        with np.errstate(over="ignore", invalid="ignore"):
            moved = float(np.linalg.norm(second.w - first.w)) * (1.0 - sum_error(first.w.size))
        moved = max(moved - first.off - second.off, 0.0)
        dual_moved = max(moved - OUTWARD * (math.sqrt(2.0 * first.gap) + math.sqrt(2.0 * second.gap)), 0.0)
        step, off = second.C - first.C, off + off_later + FEW * (abs(loss) + abs(later))
        change = step * (loss - later)  # a single problem's reference may have the larger C
        gained = (change if first.slope is None else abs(change)) + abs(step) * off
        bend = gained - (1.0 - FEW) * 0.5 * (moved * moved + dual_moved * dual_moved)
        sag = 0.0 if first.slope is None else OUTWARD * gained
        return cls(first, second, math.inf if math.isnan(bend) else max(OUTWARD * bend, 0.0), sag)

    def share(self, C: float) -> float:
        """Return ``s``."""
        return (C - self.first.C) / (self.second.C - self.first.C)

    def gap(self, C: float) -> float:
        """Return an upper bound of the gap of the mean at ``C``."""
        if C in (self.first.C, self.second.C):
            return (self.first if self.first.C == C else self.second).gap
        s = self.share(C)
        return self._rounded((1.0 - s) * self.first.gap + s * self.second.gap + s * (1.0 - s) * self.bend)

    def dual(self, C: float) -> float:
        """Return a lower bound of the dual value of the mean, and so of the optimum, at ``C``."""
        s = self.share(C)
        value = (1.0 - s) * self.first.dual + s * self.second.dual - s * (1.0 - s) * self.sag
        return value - FEW * (abs(self.first.dual) + abs(self.second.dual))

    def rel_gap(self, C: float) -> float:
        """Return an upper bound of the gap over the primal value of the mean at ``C``."""
        return relative(self.gap(C), self.dual(C))

    @property
    def worst(self) -> tuple[float, float]:
        """Return the C at which the bound on the gap is largest, ends included, and the bound."""
        low, high, step = self.first.gap, self.second.gap, self.second.C - self.first.C
        if not self.bend > abs(high - low):
            return (self.first.C, low) if low >= high else (self.second.C, high)
        if math.isinf(self.bend):
            return self.first.C + 0.5 * step, math.inf
        s = 0.5 * (self.bend + high - low) / self.bend
        return self.first.C + s * step, self._rounded(low + s * s * self.bend)

    @property
    def worst_rel_gap(self) -> float:
        """Return an upper bound of the relative gap of the mean at every C between the steps."""
        ends = self.first, self.second
        return relative(self.worst[1], min(self.dual(end.C) for end in ends) - 0.25 * OUTWARD * self.sag)

    def _rounded(self, gap: float) -> float:
        return OUTWARD * gap + FEW * (abs(self.first.primal) + abs(self.second.primal))


def relative(gap: float, dual: float) -> float:
    """Return a gap over the largest primal value that it allows, an upper bound of gap over primal."""
    primal = dual + gap
    if math.isinf(gap) or math.isnan(gap) or primal <= 0.0:
        return 0.0 if gap == 0.0 else math.inf
    return OUTWARD * gap / primal


def open_shares(p0, p1, norms, r0: float, r1: float, K: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the closed intervals of ``s`` in [0, 1] on which linear forms of rows are not certainly positive.

    The centre of a ball moves linearly from products ``p0`` to ``p1`` with the rows of these ``norms``, shape (m,), and
    its squared radius is ``(1 - s) r0 + s r1 + s (1 - s) K`` at most, ``K >= 0``. Start and end have the shape (m,);
    ``start > end`` where a form is positive for all ``s``.
    """
    square = norms**2
    # p(s)^2 - ||x||^2 r(s)^2 = A s^2 + B s + D, lowered by what rounding can make of it
    A = (p1 - p0) ** 2 + square * K
    D = p0 * p0 - square * r0 - 8.0 * ROUNDING * (p0 * p0 + p1 * p1 + square * (r0 + r1 + K))
    return not_above(A, 2.0 * p0 * (p1 - p0) - square * (r1 - r0 + K), D, p0 > 0.0, p1 > 0.0)


def not_above(A, B, D, first, second) -> tuple[np.ndarray, np.ndarray]:
    """Return the closed intervals of ``s`` in [0, 1] where ``A s^2 + B s + D`` is not above 0 (``A >= 0``), if any.

    Values at 0 and 1 count as above 0 only where ``first`` and ``second`` say so.
    """
    at_first, at_second = first & (D > 0.0), second & (A + B + D > 0.0)
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(B * B - 4.0 * A * D, 0.0))
        half = -0.5 * (B + np.copysign(root, B))
        roots = np.sort(np.nan_to_num(np.stack([half / A, D / half]), nan=np.inf), axis=0)
    start = np.where(at_first, np.clip(roots[0], 0.0, 1.0), 0.0)
    end = np.where(at_second, np.clip(roots[1], 0.0, 1.0), 1.0)
    # certain at both ends, and no root between
    lowest = -0.5 * B
    free = at_first & at_second & ((lowest <= 0.0) | (lowest >= A) | (B * B < 4.0 * A * D))
    return np.where(free, 1.0, start), np.where(free, 0.0, end)


@dataclass
class Range:
    """The worst C of all those between the steps of a path so far, and what is proven there."""

    first: float = 0.0  # C of the first step
    C: float = 0.0
    rel_gap: float = 0.0
    last: Solved | None = None

    def add(self, step: Solved) -> None:
        """Take in the next step, of a larger C."""
        if self.last is None:
            C, found, self.first = step.C, relative(step.gap, step.dual), step.C
        else:
            between = Between.of(self.last, step)
            C, found = between.worst[0], between.worst_rel_gap
        if not found <= self.rel_gap or self.last is None:
            self.C, self.rel_gap = C, found
        self.last = step

    def record(self, name: str = "C") -> dict:
        """Return the entry ``between`` of run.json, for the parameter that a path follows; none without two steps."""
        if self.last is None or self.first == self.last.C:
            return {}
        low, high = sorted((self.first, self.last.C))
        return {"between": {"from": low, "to": high, "worst_rel_gap": self.rel_gap, name: self.C}}

    def state(self) -> list[float]:
        """Return numbers from which :meth:`restored` makes the same, but for ``w`` of the last step."""
        last = self.last or NONE
        return [self.first, self.C, self.rel_gap, last.primal, last.gap, last.C, last.dual, *(last.slope or NO_SLOPE)]

    @classmethod
    def restored(cls, state: list[float]) -> Range:
        """Undo :meth:`state`; a ValueError if it cannot have made these numbers."""
        if any(math.isnan(number) for number in state) or min(state[:5]) < 0.0:
            raise ValueError("the worst gap between steps is not a number of at least 0")
        first, C, rel_gap, primal, gap, last, dual, *slope = state
        known = Solved(last, primal, dual, gap, NONE.w, slope=None if slope == NO_SLOPE else (slope[0], slope[1]))
        return cls(first, C, rel_gap, known if last >= 0.0 else None)


NO_SLOPE = [0.0, -1.0]  # in place of a slope and the bound on its error
NONE = Solved(-1.0, 0.0, 0.0, 0.0, np.empty(0))
