"""The problem of a run folder, from its training data: to solve it again, at any of its parameters."""

from __future__ import annotations

import contextlib
import math
import pathlib

from screenpath.catalogue.specs import SPECS
from screenpath.engine.interpolated import Interpolated
from screenpath.engine.path import Path
from screenpath.engine.result import PathResult
from screenpath.errors import DataError, RunFolderError, UsageError
from screenpath.inputs.load import ARRAYS, load_training, name_of
from screenpath.inputs.run_data import HINT, training_path
from screenpath.store.open import Run
from screenpath.walk.step import CERTIFIED, Steps

# Options of the walk, not of the problem. A rule or a solver that a folder names may be a file with code: never run it.
WALKED = ("rule", "solver", "c", "c_list", "grid", "cmin", "cmax", "eps_path", "chunk", "chunk_form", "reference",
          "scheduler", "resume", "cache", "test", "out")  # fmt: skip

COLUMNS = ("fold_column", "group_column")  # of a cross-validation's table, which are no features


@contextlib.contextmanager
def problem_of_run(run: Run, training: str | tuple | None = None, tol: float = math.inf):
    """Yield declared model, options and data of a run; ``training`` are its data if they have moved.

    The tolerance is that of the run, or ``tol`` if this is smaller. A :class:`DataError` if weights are lost or others,
    or if the data change meanwhile.
    """
    path = training_path(run, training)
    declared, followed = SPECS[run.model], run.parameters[0]
    if f"{followed}_list" in {one.name for one in declared.options} - {"c_list"}:
        raise UsageError(f"{run.path} is a path over {followed}, which is not solved again", "use a path over C")
    named = {one.name for one in declared.path_options}.difference(WALKED)
    kept = {name: value for name, value in run.record["options"].items() if name in named}
    columns = {name: value for name, value in run.record["options"].items() if name in COLUMNS}
    rule = "none" if kept.get("kernel") and kept.get("smoothing") else "gap"  # a smoothed loss has no other
    options = {**declared.completed(kept), **columns, "data": path, "rule": rule, "time_limit": None}
    options["tol"] = min(options["tol"], tol)
    if "gamma" in (run.record["kernel"] or {}):  # cross-validation may have chosen it
        options["gamma"] = run.record["kernel"]["gamma"]
    if run.form is None:
        options["n_features"] = run.n_features
    weights = options.get("weights")
    if weights == ARRAYS or (weights and not pathlib.Path(weights).exists()):
        hint = "compute the run with a file of them" if weights == ARRAYS else "put them back"
        raise DataError(f"the sample weights of the run are not there: {weights}", hint)
    spec = declared.resolved(declared, options)
    data = load_training(spec, options)
    try:
        if data.sha256 != run.record["data"]["sha256"]:
            raise DataError(f"{name_of(path)} is not the training data of {run.path}: its values differ", HINT)
        known, found = run.record.get("identity") or {}, data.identity()
        files = {"weights": "weights of the samples", "signs": "signs of the weights", "groups": "groups of features"}
        for name, what in files.items():
            if found.get(f"{name}_sha256") != known.get(f"{name}_sha256"):
                raise DataError(f"the {what} are not those of the run", f"restore the file of `{name}`")
        yield spec, options, data
        data.check()
    finally:
        data.close()


def exact_at(run: Run, C: float, training: str | tuple | None = None) -> Interpolated:
    """Return the certified model at ``C``, solved from the training data."""
    with problem_of_run(run, training) as (spec, options, data):
        found, _ = next(iter(Path.of(spec, options, data, [C]).walk()))
        if found.status != CERTIFIED:
            raise RunFolderError(f"C = {C:g} could not be certified: {found.reason}", "leave out `exact`")
        path = PathResult(Steps([[found]]), data.preparation, tuple(run.sides) or None)
        return Interpolated(path, C, (found,), 0.0, found.gap, found.rel_gap)
