"""From an estimator's arrays and parameters to the library's declared models: one problem, or one a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from screenpath.api.kernel import KernelPathResult
from screenpath.api.sparse import SparsePathResult
from screenpath.catalogue.scores import CLASSIFICATION, REGRESSION, choose_score
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import SPECS
from screenpath.cv.run import Samples, Task, model_of, rows_of
from screenpath.data.files.arrays import canonical
from screenpath.data.files.dataset import Dataset
from screenpath.data.files.prepare import Preparation, stored_dense
from screenpath.engine.result import PathResult, Result, walked
from screenpath.numbers import sparse as sp
from screenpath.rows.gram import TrainedRows
from screenpath.walk.loop import PathOptions


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
    known: dict | None


def class_targets(codes: np.ndarray, classes: np.ndarray, joint: bool) -> Targets:
    """Return the targets of a classifier.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
    classes : ndarray
        Labels as they were passed in.
    joint : bool
        Whether the model takes more than two classes at once; else each is set against the rest.
    """
    numbers, labels = codes.astype(np.float64), tuple(classes.tolist())
    if classes.size == 2:
        return Targets(numbers, [2.0 * numbers - 1.0], [labels], {"+1": 1.0, "-1": 0.0})
    if joint:
        return Targets(numbers, [codes], [labels], {"classes": list(range(classes.size))})
    parts = [np.where(codes == k, 1.0, -1.0) for k in range(classes.size)]
    return Targets(numbers, parts, [(False, True)] * classes.size, {"+1": 1.0, "-1": 0.0})


def real_targets(y: np.ndarray) -> Targets:
    """Return the targets of a regression."""
    return Targets(y, [y], [None], None)


class Problem:
    """A declared model, its options and its data.

    Parameters
    ----------
    name : str
        Of the model, as the command line has it.
    given : dict
        Options of its path that are not the defaults.
    X : ndarray or csr_array of shape (n, d)
    targets : Targets
    sample_weight : ndarray of shape (n,) or None
    class_weight : dict of class number to weight, "balanced" or None
    """

    def __init__(self, name: str, given: dict, X, targets: Targets, sample_weight=None, class_weight=None):
        spec = SPECS[name]
        options = spec.completed(given)
        self.spec: Spec = spec.resolved(spec, options)
        self.width, self.columns = X.shape[1], None
        if sp.issparse(X):
            narrow = Dataset(canonical(sp.csr_array(X)), targets.codes, "").narrowed()
            X, self.columns = narrow.X, narrow.columns
        self.targets = targets
        self.samples = Samples(X, targets.codes, targets.parts[0], sample_weight)
        storage = "dense" if stored_dense(X, options["storage"], options["scale"]) else "sparse"
        if storage == "sparse" and not sp.issparse(X):
            self.samples = replace(self.samples, X=sp.csr_array(X))
        score = choose_score(None, self.spec, self.kind, tau=options.get("tau"))
        self.task = Task(
            self.spec, options, score, targets.known, class_weight, storage, deadline=float("inf")
        )  # fmt: skip
        self._shared: tuple | None = None

    @property
    def kind(self) -> str:
        """Return ``classification`` or ``regression``."""
        return REGRESSION if self.targets.known is None else CLASSIFICATION

    @property
    def parts(self) -> list[Samples]:
        """Return the samples of every problem; they share all but their targets."""
        return [replace(self.samples, targets=part) for part in self.targets.parts]

    def grid(self):
        """Return the grid of all problems: of those that begin where a model is zero, the one that begins first."""
        if self.spec.parameter == "C":  # it hangs on no model, and need not wait for a kernel matrix
            return self.spec.grid(None, self.task.options)
        grids = (self.spec.grid(model, self.task.options) for model, _, _ in self._models())
        return max(grids, key=lambda grid: np.ravel(grid[0])[0])

    def paths(self, grid=None) -> list[Result]:
        """Return the walked path of every problem on all data.

        Parameters
        ----------
        grid : sequence, optional
            That of the options by default.
        """
        grid = self.grid() if grid is None else grid
        return [
            self._path(model, preparation, labels, grid)
            for (model, rows, preparation), labels in zip(self._models(), self.targets.labels, strict=True)
        ]

    def _path(self, model, preparation: Preparation, labels, grid) -> Result:
        o = self.task.options
        how = self.spec.rule(o["rule"]), self.spec.solver(o["solver"], o["seed"])
        options = PathOptions(tol=o["tol"], max_epochs=o["max_epochs"], certificates=False)
        steps = walked(model, grid, *how, options, blank=None)  # without a deadline, none is left out
        if self.spec.rows is not None:  # the kernel matrix is not kept
            return KernelPathResult(steps, preparation, labels, TrainedRows(model.rows.blocks))
        kind = SparsePathResult if "alpha" in steps[0].parameters else PathResult
        return kind(steps, preparation, labels)

    def _models(self) -> Iterator[tuple]:
        """Yield model, rows and preparation of each problem; all but kernel models share their rows."""
        for part in self.parts:
            if self._shared is None or self.spec.rows is not None:
                rows, preparation = rows_of(part, self.task)
                self._shared = rows, replace(preparation, columns=self.columns, width=self.width)
            rows, preparation = self._shared
            yield model_of(rows, part, self.task), rows, preparation
