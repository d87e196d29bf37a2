"""The parameters of a walk: known beforehand, or found with it."""

from __future__ import annotations

import numpy as np

from screenpath.problem.grid import EpsilonGrid


class FixedGrid(list):
    """Parameters that are known before the walk, as Python's own floats, whose arithmetic is faster than an array's."""

    grows = False

    @property
    def high(self):
        return max(self)


def as_grid(points) -> FixedGrid | EpsilonGrid:
    """Return parameters as a walk takes them: with ``grows`` and ``high``; rows of an array stay arrays."""
    if isinstance(points, EpsilonGrid):
        return points
    return FixedGrid(points.tolist() if isinstance(points, np.ndarray) and points.ndim == 1 else points)
