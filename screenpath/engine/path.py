"""A path as a value: problem, grid, rule, solver and limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from screenpath.catalogue.kernel_models import function_of
from screenpath.errors import DataError
from screenpath.inputs.load import class_weights
from screenpath.inputs.rows import Prepared
from screenpath.walk.loop import PathOptions, batches, walk
from screenpath.walk.step import LATE, Steps, Stretch


def ways(spec, options: dict, **more) -> tuple[Any, Any]:
    """Return rule and solver that the options name; ``more`` are keywords of the solver."""
    return spec.rule(options["rule"]), spec.solver(options["solver"], options["seed"], **more)


def asked_grid(spec, options: dict):
    """Return the grid if options alone tell it, else None; refuse values that no data could mend."""
    class_weights(options.get("class_weight"), None, lambda name, *_: name)
    several = options.get("gammas")
    for gamma in several.split(",") if several else [options["gamma"]] if spec.rows is not None else ():
        function_of({**options, "gamma": gamma}, np.ones((1, 1)))
    return spec.grid(None, options)


def limits_of(options: dict, began: float | None = None, **more) -> PathOptions:
    """Return the limits of a walk; ``time_limit`` counts from ``began``, a ``time.monotonic()`` value, or now."""
    limit = options.get("time_limit")
    deadline = inf if limit is None else (time.monotonic() if began is None else began) + limit
    return PathOptions(options["tol"], options["max_epochs"], deadline, **more)


def built(spec, options: dict, data: Prepared):
    """Return the model of a declared one on data, whose signs and groups stand for the files of the options."""
    return spec.build(data.rows, data.targets, data.weights, {**options, "signs": data.signs, "groups": data.groups})


@dataclass(frozen=True, eq=False)
class Path:
    model: Any  # PathModel
    grid: Any  # sequence or EpsilonGrid: parameters in the order of the walk
    screening: Any
    solver: Any
    limits: PathOptions
    shared: Callable | None = None  # replaces screenpath.walk.loop.walk where classes or processes share the grid

    @classmethod
    def of(cls, spec, options: dict, data: Prepared, grid=None, how: tuple | None = None, limits=None) -> Path:
        """Return the path of a declared model on data; ``spec`` is resolved by the options (``Spec.resolved``).

        By default grid, rule and solver (``how``) and limits are those of the options.
        """
        model = built(spec, options, data)
        try:
            grid = spec.grid(model, options) if grid is None else grid
        except DataError:
            signs = "nonnegative" if options.get("nonnegative") else "signs"
            if signs == "signs" and data.signs is None:
                raise
            without = {**options, "nonnegative": False}
            spec.grid(built(spec, without, replace(data, signs=None)), without)  # raises where signs are not the reason
            what = f"`{signs}` bars every feature that could help: w = 0 is optimal at every step of a grid"
            raise DataError(what, f"leave out `{signs}`, or give the values of the grid themselves") from None
        screening, solver = ways(spec, options) if how is None else how
        limits = limits_of(options) if limits is None else limits
        return cls(model, grid, screening, solver, limits, spec.walk and spec.walk(options))

    def walk(self, reference=None, first: int = 0, **begun):
        """Yield the steps from number ``first`` on, each with its certificate; see ``walk.loop.batches``."""
        how = self.screening, self.solver, self.limits
        return (self.shared or walk)(self.model, self.grid, *how, reference, first, **begun)

    def steps(self) -> Steps:
        """Return a step for each point of the grid, reached in time or not."""
        if self.shared is None:
            how = self.screening, self.solver, self.limits
            found = [several for several, _ in batches(self.model, self.grid, *how)]
        else:
            found = [[step for step, _ in self.walk()]]
        reached = sum(map(len, found))
        left = [self.model.parameters(self.grid[rank]) for rank in range(reached, len(self.grid))]
        return Steps([*filter(len, found), *([Stretch.missing(reached, left, LATE)] if left else [])])
