"""From arrays and keywords to the declared models: one problem, or one a class; for functions and estimators alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from numbers import Integral
from typing import Any

import numpy as np

from screenpath.catalogue.scores import CLASSIFICATION, REGRESSION
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import PARAMETERS, SPECS
from screenpath.cv.run import Samples, Task, model_of, rows_of
from screenpath.data.files.arrays import canonical, stored_type
from screenpath.data.files.prepare import Preparation, checked_penalties, stored_dense
from screenpath.data.safe.wide import occurring, on_columns
from screenpath.engine.result import (
    KernelPathResult,
    PathResult,
    Result,
    SparsePathResult,
    completed,
    path_options,
)  # fmt: skip
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.problem.grid import EpsilonGrid, explicit_grid
from screenpath.problem.sparse_types import SparseVector
from screenpath.rows.gram import TrainedRows
from screenpath.rows.kernel_functions import parse_gamma
from screenpath.walk.loop import batches

ENDS = {
    "grid": ("cmin", "cmax", "log", "lambda_min_ratio"), "betas": ("beta_min_ratio",), "alphas": ("alpha_min_ratio",),
}  # fmt: skip
LISTS = {"C": {"grid": "c_list"}, "lambda": {"grid": "lambda_list"}}  # by what the grid is made of; else:
PAIRS = {"betas": "beta", "alphas": "alpha"}


def as_options(spec: Spec, keywords: dict[str, Any], width: int) -> dict[str, Any]:
    """Return keywords as options of a path: a list of values is that of the grid; what others make void is left out."""
    o = dict(keywords)
    for name, listed in LISTS.get(spec.parameter, PAIRS).items():
        if name not in o:
            continue
        value = o[name]
        if isinstance(value, EpsilonGrid) and spec.parameter == "C":
            for other in ENDS[name]:
                o.pop(other, None)
        elif np.ndim(value) > 0:
            explicit_grid(value, zero=name == "alphas")  # refuses what is no list of parameters
            o[listed] = np.asarray(list(value), dtype=np.float64).ravel().tolist()
            for other in (name, *ENDS[name]):
                o.pop(other, None)
        else:
            o[name] = _counted(name, value)
    if not o.get("log"):
        o.pop("lambda_min_ratio", None)
    if "alpha" not in o:
        o.pop("references", None)
    if o.get("chunk") is None:
        o.pop("chunk_form", None)
    for name in set(PARAMETERS["poly"]).difference(PARAMETERS.get(str(o.get("kernel")), ())):
        o.pop(name, None)
    if "gamma" in o:
        o["gamma"] = repr(parse_gamma(o["gamma"], width))
    if "dtype" in o:
        o["dtype"] = stored_type(o["dtype"]).name
    return o


def _counted(name: str, value) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise UsageError(
            f"{name}={value!r} is no number of grid points or a list of values",
            f"write {name}=[0.1] for a single value, {name}=100 for 100 values",
        )
    if value < 1:
        raise UsageError(f"a grid needs at least 1 point, not {value}", f"use `{name}=N` with N >= 1")
    return int(value)


@dataclass(frozen=True)
class Targets:
    """What is learned.

    Parameters
    ----------
    codes : ndarray of float64 of shape (n,)
        Numbers of the classes, or the targets of a regression.
    parts : list of ndarray of shape (n,)
        What each problem learns: signs, class numbers of a model that takes them, or real targets.
    labels : list of tuple or None
        Of each problem, the label behind -1 first; None of a regression.
    known : dict or None
        The label map that the model asks for.
    """

    codes: np.ndarray
    parts: list
    labels: list
    known: Any = None


class Problem:
    """A declared model, its options and its data.

    Parameters
    ----------
    name : str
        Of the model, as the command line has it.
    given : dict
        Options of its path that are not the defaults.
    X : ndarray, csr_array or csc_array of shape (n, d)
    targets : Targets
    sample_weight : ndarray of shape (n,) or None
    class_weight : dict of number in ``targets.codes`` to weight, "balanced" or None
    more : dict
        What is no option: ``tell``, who hears about the memory of a kernel matrix, and keywords of the ``solver``.
    """

    def __init__(self, name: str, given: dict, X, targets: Targets, sample_weight=None, class_weight=None, **more):
        self.grid_given = given.get("grid") if isinstance(given.get("grid"), EpsilonGrid) else None
        if self.grid_given is not None:
            given = {key: value for key, value in given.items() if key != "grid"}
        options = SPECS[name].completed(given)
        self.spec = SPECS[name].resolved(SPECS[name], options)
        self.width, self.columns, self.more = X.shape[1], None, more.get("solver", {})
        self._how(options)  # a wrong name is refused before anything is prepared
        if sp.issparse(X):
            X = canonical(sp.csr_array(X))
            self.columns = occurring(X)
            X = X if self.columns is None else on_columns(X, self.columns)
        if options.get("penalty_weights") is not None:
            options["penalty_weights"] = checked_penalties(options["penalty_weights"], self.width, self.columns)
        options |= {"matrix_memory": options["max_memory"], "tell": more.get("tell")}
        self.targets = targets
        storage = "dense" if stored_dense(X, options["storage"], options["scale"]) else "sparse"
        X = sp.csr_array(X) if storage == "sparse" and not sp.issparse(X) else X
        self.samples = Samples(X, targets.codes, targets.parts[0], sample_weight)
        score: Any = None  # who scores folds has one
        self.task = Task(self.spec, options, score, targets.known, class_weight, storage, deadline=inf)
        self.known: dict[str, Any] = {}  # fields of the results: ``origin``, ``feature_names``
        self._shared: tuple | None = None

    @property
    def kind(self) -> str:
        """Return ``classification`` or ``regression``."""
        return REGRESSION if self.targets.known is None else CLASSIFICATION

    @property
    def parts(self) -> list[Samples]:
        """Return the samples of every problem; they share all but their targets."""
        return [replace(self.samples, targets=part) for part in self.targets.parts]

    def grid(self, models: list | None = None):
        """Return the grid of all problems: of those that begin where a model is zero, the one that begins first."""
        if self.grid_given is not None:
            return self.grid_given
        if self.spec.parameter == "C":  # it hangs on no model, and need not wait for a kernel matrix
            return self.spec.grid(None, self.task.options)
        grids = (self.spec.grid(model, self.task.options) for model, _, _ in models or self.models())
        return max(grids, key=lambda grid: np.ravel(grid[0])[0])

    def paths(self, grid=None, began: float | None = None) -> list[Result]:
        """Return the walked path of every problem on all data.

        Parameters
        ----------
        grid : sequence, optional
            That of the options by default.
        began : float, optional
            ``time.monotonic()`` value from which ``time_limit`` counts.
        """
        built = list(self.models()) if grid is None and len(self.targets.parts) == 1 else None  # it serves for both
        grid = self.grid(built) if grid is None else grid
        pairs = zip(built or self.models(), self.targets.labels, strict=True)
        return [self._path(one, labels, grid, began) for one, labels in pairs]

    def _path(self, built: tuple, labels, grid, began) -> Result:
        (model, rows, preparation), o = built, self.task.options
        how, options = self._how(o), path_options(o["tol"], o["max_epochs"], o["time_limit"], began)
        if o.get("jobs", 1) > 1:
            found = [[step for step, _ in self.spec.walk(o)(model, grid, *how, options)]]
        else:
            found = [batch for batch, _ in batches(model, grid, *how, options)]
        steps = completed(found, model, grid, self._blank(rows, preparation))
        if self.spec.rows is not None:  # the kernel matrix is not kept
            return KernelPathResult(steps, preparation, labels, TrainedRows(rows.blocks), **self.known)
        kind = SparsePathResult if "alpha" in steps[0].parameters else PathResult
        return kind(steps, preparation, labels, **self.known)

    def _how(self, o: dict) -> tuple[Any, Any]:
        return self.spec.rule(o["rule"]), self.spec.solver(o["solver"], o["seed"], **self.more)

    def _blank(self, rows, preparation: Preparation):
        """Return the coefficients of a step that was not reached."""
        if self.spec.rows is not None:
            return np.full(rows.n + self.spec.free_bias, np.nan)
        width = preparation.n_features + bool(preparation.bias)  # a free intercept is one of these
        if self.spec.parameter in LISTS:
            return np.full(width, np.nan)
        codes = self.targets.parts[0]
        size = width * (1 if codes.min() < 0 else int(codes.max()) + 1)
        return SparseVector(np.arange(size), np.full(size, np.nan), size)

    def models(self) -> Iterator[tuple]:
        """Yield model, rows and preparation of each problem; all but kernel models share their rows."""
        for part in self.parts:
            if self._shared is None or self.spec.rows is not None:
                rows, preparation = rows_of(part, self.task)
                self._shared = rows, replace(preparation, columns=self.columns, width=self.width)
            rows, preparation = self._shared
            yield model_of(rows, part, self.task), rows, preparation
