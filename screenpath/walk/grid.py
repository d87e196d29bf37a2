"""The points of a walk: known beforehand, or found with it."""

from __future__ import annotations

import numpy as np

from screenpath.problem.grid import EpsilonGrid


class FixedGrid(list):
    """Grid points that are known before the walk.

    A point's arithmetic is on single numbers, which Python's own floats do faster than those of an array.
    """

    grows = False

    @property
    def high(self):
        """Return the largest parameter."""
        return max(self)


def as_grid(points) -> FixedGrid | EpsilonGrid:
    """Return grid points as a walk takes them: with ``grows`` and ``high``; rows of an array stay arrays."""
    if isinstance(points, EpsilonGrid):
        return points
    return FixedGrid(points.tolist() if isinstance(points, np.ndarray) and points.ndim == 1 else points)
