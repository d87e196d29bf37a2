"""Solvers of the sparse SVM, by name."""

from __future__ import annotations

from screenpath.errors import UsageError
from screenpath.solve.plugins import takes_plugins

NAMES = ("auto", "newton", "sdca", "acc-sdca")
SDCA = ("sdca", "acc-sdca")  # those that can start from zero


@takes_plugins
def make_free_sparse_solver(name: str, seed: int = 0, warm: bool = True):
    """Return the solver of that name with a free intercept: Newton's, which takes the best one at every point.

    Raises
    ------
    UsageError
        For any other.
    """
    if name in SDCA:
        raise UsageError(
            f"the solver '{name}' moves one dual variable at a time, which `intercept=free` does not allow",
            "use `solver=newton`, or `intercept=penalised`",
        )
    return make_sparse_solver(name, seed, warm)


@takes_plugins
def make_sparse_solver(name: str, seed: int = 0, warm: bool = True):
    """Return the solver of that name; ``auto`` is Newton, which was the faster one on every data set tried.

    Without ``warm``, each grid point starts from ``theta = 0``; only ``sdca`` and ``acc-sdca`` offer that.

    Raises
    ------
    UsageError
        For an unknown name, or a cold start of Newton.
    """
    from screenpath.solve.acc_sdca import AcceleratedSDCA
    from screenpath.solve.sdca import ProximalSDCA
    from screenpath.solve.sparse_newton import SparseNewton

    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm and name not in SDCA:
        raise UsageError(f"the solver '{name}' starts from the previous grid point", "use cold starts with sdca")
    if name in SDCA:
        return (ProximalSDCA if name == "sdca" else AcceleratedSDCA)(seed, warm)
    return SparseNewton()
