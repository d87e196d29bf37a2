"""Solvers of reduced problems, by name."""

from __future__ import annotations

from screenpath.errors import UsageError
from screenpath.solve.plugins import takes_plugins

NAMES = ("auto", "newton", "cd")
FREE = ("auto", "newton")  # with a free intercept


@takes_plugins
def make_solver(name: str, seed: int = 0, shrinking: bool = True, warm: bool = True):
    """Return the solver of that name; ``seed`` is that of its coordinate sweeps, shrinking is an option of ``cd``.

    Without ``warm``, each solve starts from the dual point nearest to zero; only ``cd`` offers that.
    """
    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(NAMES)}")
    if not warm and name != "cd":
        raise UsageError(f"the solver '{name}' starts from the previous grid point", "use cold starts with cd")
    if name == "auto":
        from screenpath.solve.auto import Auto

        return Auto(seed)
    if name == "newton":
        from screenpath.solve.newton import Newton

        return Newton()
    from screenpath.solve.cd import CoordinateDescent

    return CoordinateDescent(seed, shrinking, warm)


@takes_plugins
def make_free_solver(name: str, seed: int = 0, shrinking: bool = True, warm: bool = True):
    """Return the solver of that name for models with a free intercept: ``auto`` or ``newton``, see :func:`make_solver`.
    """
    if name not in NAMES:
        raise UsageError(f"unknown solver '{name}'", f"use one of {', '.join(FREE)}")
    if name not in FREE:
        raise UsageError(
            f"with a free intercept, the default, there is no solver '{name}'",
            f"use one of {', '.join(FREE)}; or `intercept=none`",
        )
    if not warm:
        raise UsageError(
            "with a free intercept, the default, a solver starts from the previous grid point",
            "leave out `start`, or add `intercept=none`",
        )
    return make_solver(name, seed)
