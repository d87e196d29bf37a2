"""Solvers of the sparse SVM, by name."""

from __future__ import annotations

from screenpath.errors import UsageError
from screenpath.solve.plugins import takes_plugins

NAMES = ("auto", "newton")


@takes_plugins
def make_sparse_solver(name: str, seed: int = 0, warm: bool = True):
    """Return the solver of that name; ``auto`` is Newton, which takes the best free intercept at every point.

    Raises
    ------
    UsageError
        For an unknown name, or a cold start.
    """
    from screenpath.solve.sparse_newton import SparseNewton

    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm:
        raise UsageError(f"the solver '{name}' starts from the previous grid point", "leave out cold starts")
    return SparseNewton()
