"""Where the linear form of each held-out row lies for every C between two solved steps: what regressions predict.

At both steps the model without the row is known (``solve.removal``). The mean of both pairs is one for each C between,
as in :mod:`screenpath.problem.between`, with a gap of at most::

    G = max(g0, g1) + K / 4,   K = (C1 - C0) (xi0 - xi1) - 1/2 ||w1 - w0||^2 - 1/2 ||v1 - v0||^2,

with the other rows' losses ``xi`` and the sums over rows ``v``. So all best forms are within ``||x_i|| sqrt(2 G)`` of
the mean of both forms (``kernels.solve.removal_proof``). With a free intercept another row, with room in its box, takes
over the part of the row: its length is added to ``||x_i||``, and its distance from its kink to the bound.
"""

from __future__ import annotations

import math

import numpy as np

from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import gamma
from screenpath.solve.removal import Solution, leave_out, reach

TRIED = 8  # rows that may take over a part: those nearest to their kinks


class Without:
    """The models without each of n rows at one C."""

    def __init__(self, of: Solution):
        n, pair, found = of.model.rows.n, of.certificate, leave_out(of, np.arange(of.model.rows.n))
        self.of, self.C, self.error, self.changes, self.gap = of, pair.C, found.error, found.changes, found.gap
        self.values, self.forms = found.values, found.values - found.middles
        X, more, sizes = of.model.rows.whole(), self.changes, abs(self.changes)
        X = sp.csr_array(X, shape=(n, of.model.rows.d)) if isinstance(X, tuple) else X
        moves = more @ X
        self.w = pair.point.vector + (moves.toarray() if sp.issparse(moves) else moves)
        self.away = of.rounding.distance + gamma(n + 16) * (sizes @ of.model.norms[:n])
        self.b = (pair.intercept or 0.0) + found.offsets - found.middles
        self.residue = (of.rounding.residue + np.abs(more.sum(axis=1)) + gamma(n + 16) * sizes.sum(axis=1)) * of.free
        self.total = of.alpha if not of.partner else of.alpha[:n] + of.alpha[n:]
        self.losses, self.losses_error = self._losses()

    def _losses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the other rows' losses less their shares of the gap, times C, and bounds on the errors.

        The sum of the shares ``phi_j(t_j) - alpha_j t_j`` is ``C xi - kinks.alpha + v.w + b sum(alpha)``.
        """
        of, more, n = self.of, self.changes, self.of.model.rows.n
        kinks = of.signs * of.model.c
        products = kinks * of.alpha

        def linear(total):
            if not of.partner:
                return kinks[more.indices] * total
            return np.where(total > 0.0, kinks[more.indices], kinks[more.indices + n]) * total

        before = self.total[more.indices]
        old, new = linear(before), linear(before + more.data)
        of_row = np.repeat(np.arange(n), np.diff(more.indptr))
        changed = np.bincount(of_row, new - old, n)
        size = float(np.abs(products).sum()) + np.bincount(of_row, np.abs(new) + np.abs(old), n)
        square = np.einsum("ij,ij->i", self.w, self.w)
        self.unbalanced = self.residue * np.abs(self.b)
        error = self.away * np.sqrt(square) + self.unbalanced + (gamma(of.model.rows.d + 16) + 1e-14) * (size + square)
        return math.fsum(products) + changed - square, error

    def room(self, e: np.ndarray, up: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return how far dual variables ``e`` are from ends, and rows from kinks, without each row: (n, e.size)."""
        of, n = self.of, self.of.model.rows.n
        values = self.total[e % n] + self.changes.tocsc()[:, e % n].toarray()
        room = of.high[e] - values if up else values - of.low[e]
        room[e % n, np.arange(e.size)] = -1.0
        forms = (sp.csr_array(of.rows(e)) @ self.w.T).T + self.b[:, None]
        size = (
            np.abs(of.signs * of.model.c)[e] + np.abs(forms) + np.outer(np.linalg.norm(self.w, axis=1), of.lengths[e])
        )
        return room, np.abs((of.signs * of.model.c)[e] - forms) + of.errors[e] + gamma(of.model.rows.d + 16) * size


def between(first: Without, second: Without) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of the forms of all best models without each row, for every C of two steps; inf if unproven."""
    moved = np.linalg.norm(second.w - first.w, axis=1) * (1.0 - 1e-12)
    moved -= 1e-14 * (np.linalg.norm(first.w, axis=1) + np.linalg.norm(second.w, axis=1))
    fall = (first.losses + first.losses_error + first.gap) / first.C - (second.losses - second.losses_error) / second.C
    bend = (second.C - first.C) * fall + first.unbalanced + second.unbalanced
    bend -= 0.5 * np.maximum(moved, 0.0) ** 2 + 0.5 * np.maximum(moved - first.away - second.away, 0.0) ** 2
    gap = (np.maximum(first.gap, second.gap) + 0.25 * np.maximum(bend, 0.0)) * (1.0 + 1e-12)
    down, up = (_reached(first, second, gap, one) + np.maximum(first.error, second.error) for one in (True, False))
    low, high = np.minimum(first.forms, second.forms) - down, np.maximum(first.forms, second.forms) + up
    sure = np.isfinite(low) & np.isfinite(high)
    return np.where(sure, low, -np.inf), np.where(sure, high, np.inf)


def _reached(first: Without, second: Without, gap: np.ndarray, up: bool) -> np.ndarray:
    """Return how far forms may be below the mean of both, or above; below, a row takes over that goes ``up``."""
    of, n, away = first.of, first.of.model.rows.n, np.maximum(first.away, second.away)
    if not of.free:
        return reach(gap, away, np.inf, of.lengths[:n], 0.0)
    half, residue = np.full(n, np.inf), np.maximum(first.residue, second.residue)
    both = of, second.of
    room = np.minimum(*((one.high - one.alpha if up else one.alpha - one.low) / one.certificate.C for one in both))
    far = np.maximum(*(np.where(np.abs(one.t) > 2.0 * one.errors, np.abs(one.t), 0.0) for one in both))
    able = np.flatnonzero(room > 0.0)
    e = able[np.lexsort((-room[able], far[able]))[:TRIED]]
    rooms, costs = (np.stack(one) for one in zip(first.room(e, up), second.room(e, up), strict=True))
    for k, length in enumerate(of.lengths[e].tolist()):
        left, cost = rooms[:, :, k].min(axis=0) - residue, costs[:, :, k].max(axis=0)
        off = away + residue * (length + of.rounding.shift)
        one = reach(gap + residue * cost, off, left, of.lengths[:n] + length, cost)
        half = np.fmin(half, np.where(left > 0.0, one, np.inf))
    return half
