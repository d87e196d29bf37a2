"""From arrays and options to paths: one problem, or one a class; for functions, estimators and folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from screenpath.catalogue.scores import CLASSIFICATION, REGRESSION
from screenpath.catalogue.specs import SPECS
from screenpath.data.files.arrays import canonical
from screenpath.data.files.prepare import checked_penalties, checked_signs, say_nearly_constant, stored_dense
from screenpath.engine.path import Path, limits_of, ways
from screenpath.engine.result import KernelPathResult, PathResult, Result, SparsePathResult
from screenpath.inputs.groups import read_groups
from screenpath.inputs.rows import Prepared, Samples, prepared
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import occurring, on_columns


@dataclass(frozen=True)
class Targets:
    """What the problems learn."""

    codes: np.ndarray  # float64, shape (n,): numbers of the classes, or the targets of a regression
    parts: list  # of ndarray of shape (n,), a problem each: signs, class numbers if the model takes them, or targets
    labels: list  # a tuple for each problem, the label behind -1 first; None of a regression
    known: dict | None = None  # the label map of the model


class Problem:
    """A declared model, by the ``name`` of its command, with the options ``given`` for its path and its data.

    ``X`` has the shape (n, d), ``sample_weight`` (n,); ``class_weight`` is a dict of number in ``targets.codes`` to
    weight, "balanced" or None. ``more`` are no options: ``tell``, called with sentences about memory, and ``solver``,
    keywords of the solver.
    """

    def __init__(self, name: str, given: dict, X, targets: Targets, sample_weight=None, class_weight=None, **more):
        self.grid_given = given.get("grid") if getattr(given.get("grid"), "grows", False) else None
        if self.grid_given is not None:
            given = {key: value for key, value in given.items() if key != "grid"}
        options = SPECS[name].completed(given)
        several = targets.parts[0].max() > 1.0  # of a classifier
        self.spec = SPECS[name].resolved(SPECS[name], options).of_classes(several, options)
        self.width, self.columns, self.more = X.shape[1], None, more.get("solver", {})
        ways(self.spec, options, **self.more)  # a wrong name is refused before anything is prepared
        if sp.issparse(X):
            X = canonical(sp.csr_array(X))
            self.columns = occurring(X)
            X = X if self.columns is None else on_columns(X, self.columns)
        if options.get("penalty_weights") is not None:
            options["penalty_weights"] = checked_penalties(options["penalty_weights"], self.width, self.columns)
        if options.get("signs") is not None:
            options["signs"] = checked_signs(options["signs"], self.width, self.columns)
        if options.get("groups") is not None:
            options["groups"] = read_groups(options["groups"], self.width, None, self.columns)
        self.options = options | {"matrix_memory": options["max_memory"], "tell": more.get("tell"), "width": self.width}
        self.targets, self.class_weight = targets, class_weight
        self.storage = "dense" if stored_dense(X, options["storage"], options["scale"]) else "sparse"
        X = sp.csr_array(X) if self.storage == "sparse" and not sp.issparse(X) else X
        self.samples = Samples(X, targets.codes, targets.parts[0], sample_weight)
        self.known: dict[str, Any] = {}  # fields of the results: ``origin``, ``feature_names``
        self._shared: Prepared | None = None

    @property
    def kind(self) -> str:
        return REGRESSION if self.targets.known is None else CLASSIFICATION

    @property
    def parts(self) -> list[Samples]:
        """Return the samples of every problem; only their targets differ."""
        return [replace(self.samples, targets=part) for part in self.targets.parts]

    def grid(self):
        """Return the grid of all problems: that of the problem whose weights become nonzero first."""
        if self.grid_given is not None:
            return self.grid_given
        if self.spec.parameter == "C":  # independent of the model: no kernel matrix is needed
            return self.spec.grid(None, self.options)
        return max((path.grid for path, _ in self.paths_on()), key=lambda grid: np.ravel(grid[0])[0])

    def paths(self, grid=None, began: float | None = None) -> list[Result]:
        """Return the walked path of every problem on all data.

        ``grid`` is that of the options by default; ``time_limit`` counts from ``began``, a ``time.monotonic()`` value.
        """
        if grid is None and (self.grid_given is not None or len(self.targets.parts) > 1):
            grid = self.grid()
        found: list[Result] = []
        for (path, data), labels in zip(self.paths_on(grid, began), self.targets.labels, strict=True):
            steps, p = path.steps(), data.preparation
            if self.spec.rows is not None:  # the kernel matrix is not kept
                found.append(KernelPathResult(steps, p, labels, data.rows.blocks, **self.known))
            else:
                kind = SparsePathResult if "alpha" in steps[0].parameters else PathResult
                found.append(kind(steps, p, labels, **self.known))
        return found

    def paths_on(self, grid=None, began: float | None = None) -> Iterator[tuple[Path, Prepared]]:
        """Yield the path of each problem and its data; all but kernel models share their rows."""
        for part in self.parts:
            if self._shared is None or self.spec.rows is not None:
                data = prepared(self.spec, self.options, part, self.class_weight, self.storage)
                preparation = replace(data.preparation, columns=self.columns, width=self.width)
                say_nearly_constant(preparation, self.known.get("feature_names"), "X", _warn)
                self._shared = replace(data, preparation=preparation)
            data = replace(self._shared, targets=part.targets)
            limits = limits_of(self.options, began, certificates=False)
            yield Path.of(self.spec, self.options, data, grid, ways(self.spec, self.options, **self.more), limits), data


def _warn(text: str) -> None:
    warnings.warn(text.replace("warning: ", ""), stacklevel=2)
