"""Solvers of the user's own in the place of built-in ones; what they return is checked, what they raise explained."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import numpy as np

from screenpath.data.safe.plugins import Plugin, PluginError, plugin_of
from screenpath.errors import UsageError
from screenpath.problem.sparse_types import SparseReduced
from screenpath.solve.base import Budget, Solution, Solver

F = TypeVar("F", bound=Callable)


def takes_plugins(make: F) -> F:
    """Let a function that makes a solver by its name make one of a plug-in too."""
    signature = inspect.signature(make)

    @wraps(make)
    def made(name, *arguments, **keywords):
        plugin = plugin_of(name)
        if plugin is None:
            return make(name, *arguments, **keywords)
        given = signature.bind(name, *arguments, **keywords)
        given.apply_defaults()
        return PluginSolver(plugin, **{key: given.arguments[key] for key in given.arguments if key != "name"})

    return cast(F, made)


class PluginSolver(Solver):
    """A solver of the user's own; ``options`` are ``seed``, ``warm`` and ``shrinking``, for a class that takes them."""

    def __init__(self, plugin: Plugin, **options):
        self.plugin, self.options, self.name = plugin, options, str(plugin)
        self.own = plugin.made(("solve",), **options)
        if not options.get("warm", True) and "warm" not in inspect.signature(type(self.own)).parameters:
            raise UsageError(f"the solver '{plugin}' starts from the previous grid point", "leave out cold starts")

    def __reduce__(self):
        return _again, (self.plugin, self.options)

    def looks_ahead(self, rows) -> bool:
        """Tell whether the plug-in wants starts on the line through the last two dual points."""
        ask = getattr(self.own, "looks_ahead", None)
        return bool(ask(rows)) if ask is not None else False

    def solve(self, reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Return the solution of the plug-in, if it has the shapes of the problem."""
        with self.plugin.guarded():
            found = self.own.solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
        if not isinstance(found, Solution):
            raise PluginError(f"{self.plugin}: solve() returned {type(found).__name__}", "return a Solution")
        sparse = isinstance(reduced, SparseReduced)
        w = getattr(getattr(reduced, "start", None), "w", getattr(reduced, "start_w", None))  # KernelReduced has none
        alpha = reduced.start.theta if sparse else getattr(reduced, "start_alpha", None)
        found.w, found.alpha = self._like("w", found.w, w), self._like("alpha", found.alpha, alpha)
        if found.w is None and w is not None and (alpha is None or found.alpha is None):
            raise PluginError(f"{self.plugin}: solve() returned neither w nor alpha", "return at least one of them")
        if sparse and found.alpha is not None:
            found.alpha = np.clip(found.alpha, 0.0, 1.0)  # the other models clip to their box when they lift
        found.solver = self.name if found.solver in ("", None) else found.solver
        return found

    def _like(self, what: str, values, start) -> np.ndarray | None:
        """Return an array in the form that kernels take, if it has the shape of the start."""
        if values is None or start is None:
            return values
        if np.shape(values) != start.shape:
            raise PluginError(
                f"{self.plugin}: {what} has shape {np.shape(values)}", f"it must have that of the start, {start.shape}"
            )
        return np.ascontiguousarray(values, dtype=np.float64)


def _again(plugin: Plugin, options: dict) -> PluginSolver:
    """Return a solver that was sent to another process."""
    return PluginSolver(plugin, **options)
