"""Solvers of the sparse SVM, by name."""

from __future__ import annotations

from screenpath.errors import UsageError

NAMES = ("auto", "newton", "sdca")


def make_sparse_solver(name: str, seed: int = 0, warm: bool = True):
    """Return the solver of that name; ``auto`` is Newton, which was the faster one on every data set tried.

    Without ``warm``, each grid point starts from ``theta = 0``; only ``sdca`` offers that.

    Raises
    ------
    UsageError
        For an unknown name, or a cold start of Newton.
    """
    from screenpath.solvers.sdca import ProximalSDCA
    from screenpath.solvers.sparse_newton import SparseNewton

    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm and name != "sdca":
        raise UsageError(f"the solver '{name}' starts from the previous grid point", "use cold starts with sdca")
    return ProximalSDCA(seed, warm) if name == "sdca" else SparseNewton()
