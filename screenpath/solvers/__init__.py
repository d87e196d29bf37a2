"""Solvers of reduced problems, by name."""

from __future__ import annotations

from screenpath.errors import UsageError

NAMES = ("auto", "newton", "cd")


def make_solver(name: str, seed: int = 0, shrinking: bool = True):
    """Return the solver of that name; seed and shrinking are those of its coordinate sweeps.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    if name == "auto":
        from screenpath.solvers.auto import Auto

        return Auto(seed, shrinking)
    if name == "newton":
        from screenpath.solvers.newton import Newton

        return Newton()
    if name == "cd":
        from screenpath.solvers.cd import CoordinateDescent

        return CoordinateDescent(seed, shrinking)
    raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
