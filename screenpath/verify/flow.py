r"""What a free intercept asks of a dual point: sums that are 0, and of what rounding has left of them, a way.

A dual variable adds to the sum of one node (``own``) and takes from that of another (``other``): classes, or the one
sum and a ground. Sums that are not 0 become so where some of theta flows on from node to node, a variable on each step
of the way that has room for it. Nothing is moved: at most ``size`` flows through any variable, so that the gap grows by
no more than ``size`` times the slopes along the worst way, ``|t - curve theta| + curve size / v`` each, and u moves by
no more than ``size`` times the norms of its rows (and the root of 2, if a row moves the sums of two classes).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from screenpath.verify.exact import UNIT, UP, fsum
from screenpath.verify.model import Part


class Flow:
    """Of each step from node to node the variable at which the gap grows least: slopes, norms, and ``1 / v``."""

    def __init__(self, nodes: int):
        self.found = np.full((3, nodes, nodes), math.inf)
        self.value = np.full((nodes, nodes), math.inf)  # by which variables are compared

    @staticmethod
    def size(value: np.ndarray, off: np.ndarray) -> float:
        """Return the most that has to flow where the sums have these values, each off by so much."""
        found = UP * fsum(np.abs(value) + off)
        return found if value.size == 1 else 0.5 * found

    def look(self, part: Part, theta, growth: tuple, size: float, pull: tuple[float, float]) -> None:
        """Look for variables of a block, rows' slopes and norms as ``growth``, at which the gap grows less.

        ``size`` is infinite where it is not known yet: then variables that have room for anything will do.
        """
        (slopes, norms), (lo, hi, curve, _) = growth, part.cells
        with np.errstate(divide="ignore", invalid="ignore"):
            value = slopes + norms * (pull[0] + pull[1] * norms) + (curve * size / part.v if size < math.inf else 0.0)
            for away, into, room in ((part.other, part.own, hi - theta), (part.own, part.other, theta - lo)):
                room = np.where(part.v > 0.0, part.v * room * (1.0 - 4.0 * UNIT), 0.0)
                able, steps = (room >= size) & (room > 0.0), away * len(self.value) + into
                for step in np.unique(steps[able]).tolist():
                    (a, b), rows = divmod(step, len(self.value)), np.flatnonzero(able & (steps == step))
                    best = rows[np.argmin(value[rows])]
                    if value[best] < self.value[a, b]:
                        self.value[a, b] = value[best]
                        self.found[:, a, b] = slopes[best], norms[best], 1.0 / part.v[best]

    def costs(self, value: np.ndarray, off: np.ndarray, curve: float) -> tuple[float, float, float]:
        """Return bounds of what the gap grows by, of how far u moves, and of the square of theta's move; before W.

        That square is weighted: ``sum_i v_i curve/2 d_i^2``.
        """
        size, single = self.size(value, off), value.size == 1
        if size == 0.0:
            return 0.0, 0.0, 0.0
        if single:
            value, off = np.array([value[0], -value[0]]), np.append(off, off)
        (slopes, norms, inverse), rate = self.found, curve * size
        curved = rate * inverse if rate else np.where(np.isinf(slopes), math.inf, 0.0)
        ways = worst_ways(np.stack([slopes + curved, norms, curved]))
        ends = np.ix_(value + off > 0.0, value - off < 0.0)  # from where there is too much to where there is too little
        cost, norm, square = (UP * size * float(np.max(part[ends], initial=0.0)) for part in ways)
        return cost, (1.0 if single else 1.5) * norm, 0.5 * square


def worst_ways(parts: np.ndarray) -> np.ndarray:
    """Return the sums of parts along a way from each node to each other one, each a way of small first parts."""
    parts, every = parts.copy(), range(parts.shape[1])
    parts[:, every, every] = 0.0
    for k, p, q in product(every, every, every):
        if p != q and p != k and q != k and parts[0, p, k] + parts[0, k, q] < parts[0, p, q]:
            parts[:, p, q] = UP * (parts[:, p, k] + parts[:, k, q])
    return parts
