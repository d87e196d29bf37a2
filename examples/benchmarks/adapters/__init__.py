"""One module per solver, all with the same five names.

name                        the solver, as printed in the tables
ladder(target)              its tolerance settings, loosest first, to try for a target suboptimality
supports(problem)           whether it solves this problem, unchanged
prepare(problem)            the data in the solver's own format; not timed
solve_path(data, grid, tolerance)   timed: yields one w, shape (d,), for each C of the increasing grid

Whatever a solver keeps from one C to the next (a warm start) is its own business inside solve_path.
"""

from importlib import import_module

OURS = "screenpath"
RIVALS = ("rehline", "rehline_cold", "sklearn", "liblinear", "skglm")


def adapter(solver: str):
    """The adapter module of `solver`; ImportError when its package is not installed."""
    return import_module(f"adapters.{solver}_path")
