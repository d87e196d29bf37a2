"""Write a path that a Python function has computed to a run folder."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from screenpath.catalogue.specs import SPECS
from screenpath.data.files.arrays import Given
from screenpath.engine.session import Session
from screenpath.errors import UsageError, file_name
from screenpath.store.folder import REPLACE
from screenpath.walk.step import SKIPPED

CHANGED = "the data have changed since the path was computed", "compute it again"
WEIGHTS = "weights", "penalty_weights"  # options whose arrays are copied


@dataclass(frozen=True)
class Origin:
    """The model, data and options of a computed path."""

    model: str
    X: object  # X, y: array_like: as they were passed in; not copied
    y: object
    options: dict  # by the names of the model's options; arrays of weights are copied
    mark: int  # checksum of the data (data.arrays.Given.mark)

    def __post_init__(self):
        kept = {name: np.array(value) for name, value in self.options.items() if name in WEIGHTS and value is not None}
        object.__setattr__(self, "options", {**self.options, **kept})


class Silent:
    """In place of a console (:class:`screenpath.report.console.Console`): prints nothing."""

    quiet, progress = True, False

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **more: contextlib.nullcontext()


class SavedSession(Session):
    """A session that writes known steps instead of computing them."""

    refusal = f"use {REPLACE}"

    def __init__(self, steps, names, *arguments, **more):
        super().__init__(*arguments, **more)
        self.steps, self.names = steps, names

    def read(self) -> None:
        """Read the arrays, and put back the names of a table's columns, which arrays do not have."""
        super().read()
        self.data = replace(self.data, names=self.names)

    def found(self, reference, first: int):
        """Yield the steps, without certificates to continue from."""
        for step in self.steps:
            if step.status == SKIPPED:
                return
            if step.parameters != self.model.parameters(self.grid[step.step]):
                raise UsageError(*CHANGED)
            yield step, None


def save(result, origin: Origin, folder, force: bool = False) -> None:
    if Given.of(origin.X, origin.y).mark() != origin.mark:
        raise UsageError(*CHANGED)
    if all(step.status == SKIPPED for step in result.steps):
        raise UsageError("there is nothing to save: no step was reached", "give it more time (`time_limit`)")
    declared = SPECS[origin.model]
    grid = {"C": {"c_list": result.grid}, "lambda": {"lambda_list": result.grid}}.get(declared.parameter, {})
    own = {one.name for one in declared.path_options}
    given = {name: value for name, value in origin.options.items() if name in own}
    options = declared.completed({**given, **grid, "out": file_name(folder, "folder"), "force": force, "quiet": True})
    spec = declared.resolved(declared, options)
    options["data"] = (origin.X, origin.y)
    SavedSession(result.steps, result.feature_names, spec, options, Silent(), command=["save"]).run()
