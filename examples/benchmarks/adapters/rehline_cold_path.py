"""ReHLine with a cold start at every C: on some data its warm start is the slower of the two."""

from __future__ import annotations

from adapters import rehline_path
from adapters.rehline_path import ladder, prepare, supports

name = "rehline cold"
__all__ = ["ladder", "name", "prepare", "solve_path", "supports"]


def solve_path(data, grid, tolerance):
    for C in grid:
        yield from rehline_path.solve_path(data, [C], tolerance)
