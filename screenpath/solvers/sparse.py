"""Solvers of the sparse SVM, by name."""

from __future__ import annotations

from screenpath.errors import UsageError

NAMES = ("auto", "newton", "sdca")


def make_sparse_solver(name: str, seed: int = 0):
    """Return the solver of that name; ``auto`` is Newton, which was the faster one on every data set tried.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    from screenpath.solvers.sdca import ProximalSDCA
    from screenpath.solvers.sparse_newton import SparseNewton

    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    return ProximalSDCA(seed) if name == "sdca" else SparseNewton()
