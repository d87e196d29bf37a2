"""Solvers of reduced problems, by name."""

from __future__ import annotations

from screenpath.errors import UsageError

NAMES = ("auto", "newton", "cd")


def make_solver(name: str, seed: int = 0):
    """Return the solver of that name.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    from screenpath.solvers.cd import CoordinateDescent

    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    if name == "newton":
        from screenpath.solvers.newton import Newton

        return Newton()
    return CoordinateDescent(seed)
