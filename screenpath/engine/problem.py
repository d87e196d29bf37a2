"""From arrays and options to the declared models: one problem, or one a class; for functions, estimators and folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from screenpath.catalogue.builders import row_weights
from screenpath.catalogue.scores import CLASSIFICATION, REGRESSION, Score
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import SPECS
from screenpath.data.files.arrays import canonical
from screenpath.data.files.prepare import Preparation, checked_penalties, prepare, say_nearly_constant, stored_dense
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.safe.wide import occurring, on_columns
from screenpath.engine.result import (
    KernelPathResult,
    PathResult,
    Result,
    SparsePathResult,
    completed,
    path_options,
)  # fmt: skip
from screenpath.numbers import sparse as sp
from screenpath.problem.sparse_types import SparseVector
from screenpath.rows.gram import TrainedRows
from screenpath.rows.memory import prepared_rows
from screenpath.walk.loop import batches


@dataclass(frozen=True)
class Task:
    """What all folds have in common, small enough to be sent to every process."""

    spec: Spec  # model: ``build``, ``rule``, ``solver``, ``walk`` and ``weights``
    options: dict  # of the command
    score: Score
    labels: dict | None  # label map of the whole data
    class_weight: object  # dict, "balanced" or None
    storage: str  # {"dense", "sparse"}
    deadline: float  # ``time.monotonic()`` value
    certify: bool = False  # whether to keep what the certified bound needs
    run: str = ""  # what stands for the data and the options in the files of the folds
    limit: MemoryLimit | None = None  # of a process that computes folds for another one
    keep: bool = False  # whether to keep the linear forms of the held-out samples at every step
    grows: bool = False  # whether points may follow behind the end of a grid


@dataclass(frozen=True)
class Samples:
    """The raw data."""

    X: Any  # csr_array or ndarray of shape (n, d): in the units of the file; an ndarray needs dense storage
    y: np.ndarray  # y, targets: shape (n,): labels of the file and what the model makes of them
    targets: np.ndarray
    # shape (n,): how often each sample stands in the data, in training and held-out parts alike
    weights: np.ndarray | None = None

    def part(self, index: np.ndarray) -> Samples:
        """Return some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        return Samples(self.X[index], self.y[index], self.targets[index], weights)


def rows_of(samples: Samples, task: Task):
    """Return samples as the rows of a model, behind the kernel where there is one, and their preparation."""
    o, spec = task.options, task.spec
    if spec.rows is not None:
        X, preparation = prepare(samples.X, o["scale"], 0.0, task.storage, weights=samples.weights)
        return spec.rows(X, samples.targets, o, o.get("tell"), preparation.inexact), preparation
    dtype = np.dtype(o["dtype"])
    X, preparation = prepare(
        samples.X, o["scale"], o["bias"], task.storage, dtype, samples.weights, penalties=o.get("penalty_weights"),
        free=o.get("intercept") == "free",
    )  # fmt: skip
    if spec.free_bias:
        preparation = replace(preparation, bias=1.0)
    return prepared_rows(X, preparation, o["threads"]), preparation


def model_of(rows, samples: Samples, task: Task):
    """Return the model of samples whose rows are known, their weights and those of their classes included."""
    weights = row_weights(samples.y, task.class_weight, samples.weights)
    return task.spec.build(rows, samples.targets, weights, task.options)


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
    known: dict | None = None


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
        self.grid_given = given.get("grid") if getattr(given.get("grid"), "grows", False) else None
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
        self.task = Task(self.spec, options, None, targets.known, class_weight, storage, deadline=inf)
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
        if self.spec.parameter in ("C", "lambda"):
            return np.full(width, np.nan)
        codes = self.targets.parts[0]
        size = width * (1 if codes.min() < 0 else int(codes.max()) + 1)
        return SparseVector(np.arange(size), np.full(size, np.nan), size)

    def models(self) -> Iterator[tuple]:
        """Yield model, rows and preparation of each problem; all but kernel models share their rows."""
        for part in self.parts:
            if self._shared is None or self.spec.rows is not None:
                rows, preparation = rows_of(part, self.task)
                preparation = replace(preparation, columns=self.columns, width=self.width)
                say_nearly_constant(preparation, self.known.get("feature_names"), "X", _warn)
                self._shared = rows, preparation
            rows, preparation = self._shared
            yield model_of(rows, part, self.task), rows, preparation


def _warn(text: str) -> None:
    warnings.warn(text.replace("warning: ", ""), stacklevel=2)
