"""A path that is known already, written to a run folder."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from screenpath.catalogue.specs import SPECS
from screenpath.data.files.arrays import Given
from screenpath.engine.session import Session
from screenpath.errors import UsageError, file_name
from screenpath.walk import step as steps

CHANGED = "the data have changed since the path was computed", "compute it again"


class Silent:
    """In place of a console (:class:`screenpath.report.console.Console`): prints nothing."""

    quiet, progress = True, False

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **more: contextlib.nullcontext()


class SavedSession(Session):
    """A session that writes known steps instead of computing them."""

    continues = False

    def __init__(self, steps, names, *arguments, certificates=(), form=None, **more):
        super().__init__(*arguments, **more)
        self.steps, self.names, self.certificates, self.form = steps, names, certificates, form

    def read(self) -> None:
        """Read the arrays, and put back the names of a table's columns, which arrays do not have."""
        super().read()
        self.data = replace(self.data, names=self.names, form=self.form)

    def found(self, reference, first: int):
        """Yield the steps, with their certificates where these are given."""
        for step, certificate in zip_longest(self.steps, self.certificates):
            if step.status == steps.SKIPPED:
                return
            if step.parameters != self.model.parameters(self.grid[step.step]):
                raise UsageError(*CHANGED)
            yield step, certificate


def save(result, origin, folder, force: bool = False) -> None:
    """Write a path that a Python function has computed to a run folder; ``origin`` is that of ``result.Origin``."""
    if Given.of(origin.X, origin.y, missing=origin.options.get("missing")).mark() != origin.mark:
        raise UsageError(*CHANGED)
    if all(step.status == steps.SKIPPED for step in result.steps):
        raise UsageError("there is nothing to save: no step was reached", "give it more time (`time_limit`)")
    declared = SPECS[origin.model]
    grid = {"C": {"c_list": result.grid}, "lambda": {"lambda_list": result.grid}}.get(declared.parameter, {})
    own = {one.name for one in declared.path_options}
    given = {name: value for name, value in origin.options.items() if name in own}
    options = declared.completed({**given, **grid, "out": file_name(folder, "folder"), "force": force, "quiet": True})
    spec = declared.resolved(declared, options)
    options["data"] = (origin.X, origin.y)
    known = {"form": result.form, "command": ["save"]}
    SavedSession(result.steps, result.feature_names, spec, options, Silent(), **known).run()
