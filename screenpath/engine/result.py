"""What the Python functions return: the whole grid that was asked for, reached or not, and whether all of it is proven.

A grid point that a path did not reach is a step ``skipped`` with its reason; its numbers and coefficients are nan.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from screenpath.catalogue.scores import pairs_of, votes
from screenpath.catalogue.spec import Later
from screenpath.data.files.arrays import new_rows
from screenpath.data.files.cells import completed
from screenpath.data.files.dataset import FileLike, Form, RowsLike
from screenpath.data.files.prepare import Preparation
from screenpath.engine.interpolated import Interpolated, at_missing, check_linear, followed, interpolated, worst_between
from screenpath.errors import NoStep, UsageError, needed
from screenpath.numbers import sparse as sp
from screenpath.problem import INTERVAL
from screenpath.walk.step import CERTIFIED, SKIPPED, Step, Steps, in_units

if TYPE_CHECKING:
    import pandas

    from screenpath.rows.kernel_functions import KernelBlocks

Place = TypeVar("Place")  # what a step is named by: its place, or in a run folder also a word
WEIGHTS = "weights", "penalty_weights", "signs", "groups"  # options whose arrays are copied
TINY = 1e-300  # in place of a parameter that is 0, for what lies apart from it by a part of it


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


@dataclass(frozen=True, repr=False)
class Result(ABC, Generic[Place]):
    """A walked grid: a sequence of its steps.

    ``steps`` has a Step for each grid point, in the order of the walk: C grows, lambda, alpha and beta fall, whatever
    the order of a list; one is ``skipped`` where a time limit left it out. ``preparation`` is the scaling (and bias)
    that was applied, ``labels`` are those of a classifier, the one behind -1 first (None for a regression), and
    ``feature_names`` those of a table's columns.
    """

    steps: Steps
    preparation: Preparation
    labels: tuple | None
    origin: Origin | None = field(default=None, kw_only=True, compare=False)  # for :meth:`save`
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    form: Form | None = field(default=None, kw_only=True)  # of a table whose columns are encoded

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, step: int) -> Step: ...
    @overload
    def __getitem__(self, step: slice) -> list[Step]: ...
    @overload
    def __getitem__(self, step: str) -> np.ndarray: ...
    def __getitem__(self, step: int | slice | str) -> Step | list[Step] | np.ndarray:
        """Return a step by its place, steps, or a column of the step table by its name; unknown numbers are nan."""
        if not isinstance(step, str):
            return self.steps[step]
        rows = self.table()
        if rows and step not in rows[0]:
            raise UsageError(f"the step table has no column '{step}'", f"its columns are {', '.join(rows[0])}")
        cells = [row[step] for row in rows]
        texts = any(isinstance(one, str) for one in cells)
        return np.array(cells if texts else [nan if one is None else one for one in cells])

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        if not len(self):
            return f"<{type(self).__name__}: no steps>"
        met = sum(step.status == CERTIFIED for step in self.steps)
        ends = (", ".join(f"{k} = {v:.4g}" for k, v in self.steps[at].parameters.items()) for at in (0, -1))
        return f"<{type(self).__name__}: {met} of {len(self)} steps certified, {' to '.join(ends)}>"

    @property
    def grid(self) -> np.ndarray:
        """Return the parameters of the steps, of shape (n_steps,), or (n_steps, 2) for pairs (alpha, beta)."""
        values = np.array([list(step.parameters.values()) for step in self.steps])
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values

    @property
    def certified(self) -> bool:
        """Tell whether every grid point that was asked for met its gap target on the full data."""
        return len(self.steps) > 0 and all(step.status == CERTIFIED for step in self.steps)

    def table(self) -> list[dict]:
        """Return the step table, one dict a step, with the columns of ``steps.csv``."""
        return [step.record() for step in self.steps]

    def frame(self) -> pandas.DataFrame:
        """Return the step table as a pandas DataFrame, which needs pandas."""
        with needed("frame() needs pandas", "install it, or take table(), a list of dicts"):
            import pandas
        return pandas.DataFrame(self.table())

    def plot(self, kind: str | None = None) -> Any:
        """Return a picture of the path, which notebooks show; needs matplotlib. Its ``figure`` is matplotlib's, its
        ``save(FILE)`` writes it.

        ``kind`` is rejection, coefficients, gap, time, cv, grid, loo or influence; by default the most telling one.
        """
        return Later("report.notebook", "plot_of")(self, kind)

    def _repr_html_(self) -> str:
        return Later("report.notebook", "html_of")(self)

    def position(self, step: Place | None = None, **parameters: float) -> int:
        """Return the place of a step, named by its place (negative: from the end) or by its parameters: ``C=0.1`` is
        the step whose parameters are nearest, if they agree to six digits.

        It is the last one by default. The path of a run folder has names for steps, too: :meth:`StoredPath.position`.
        """
        if not parameters:
            try:
                at, size = operator.index(-1 if step is None else step), len(self)  # type: ignore[arg-type]
            except TypeError:
                what = f"a step is named by its place, a whole number, or by its parameters, not by {step!r}"
                raise UsageError(what, f"for example {next(iter(self.steps[0].parameters))}=0.1") from None
            if not -size <= at < size:
                raise UsageError(f"there is no step {at}", f"the path has {size} steps: 0 to {size - 1}")
            return at % size
        if step is not None:
            raise UsageError("a step is named by its place or by its parameters", "leave one of the two out")
        first = self.steps[0].parameters
        if set(parameters) != set(first):
            raise UsageError(f"the steps of this path are named by {', '.join(first)}, not {', '.join(parameters)}")
        try:
            wanted = np.array([float(parameters[name]) for name in first])
        except (TypeError, ValueError, OverflowError):
            given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
            raise UsageError(f"the parameters of a step are numbers, not {given}") from None
        scale = np.where(wanted == 0.0, TINY, np.abs(wanted))  # 0, of alpha, is met by 0 alone
        with np.errstate(invalid="ignore", divide="ignore"):  # nothing is near infinity
            values = self.grid.reshape(len(self), -1)
            ratios = np.abs(np.log(values) - np.log(wanted))  # as grids are spaced
            apart = np.where((values > 0.0) & (wanted > 0.0), ratios, np.abs(values - wanted) / scale).max(axis=1)
        at = int(np.argmin(apart))
        if not apart[at] < 1e-6:
            near = ", ".join(f"{name}={value:.6g}" for name, value in self.steps[at].parameters.items())
            given = ", ".join(f"{name}={value:.6g}" for name, value in parameters.items())
            nearest = f"the nearest has {near}"
            raise NoStep(f"there is no step with {given}", nearest, dict(zip(first, wanted.tolist(), strict=True)))
        return at

    def solved(self, step: Place | None = None, **parameters: float) -> Step:
        """Return the step at a position, see :meth:`position`; a :class:`UsageError` if it has no solution."""
        found = self.steps[self.position(step, **parameters)]
        if found.status == SKIPPED:
            where = ", ".join(f"{name} = {value:.6g}" for name, value in found.parameters.items())
            raise UsageError(f"step {found.step} ({where}) has no solution: {found.reason}", "name a step before it")
        return found

    def support(self, step: Place | None = None, **parameters: float) -> np.ndarray:
        """Return the numbers (from 0) of what has a weight in a step, see :meth:`position`: features, or samples of a
        kernel model.
        """
        weights = self.coef(step, **parameters)
        if sp.issparse(weights):
            return np.unique(sp.csr_array(weights).nonzero()[1])
        return np.flatnonzero(np.any(np.atleast_2d(weights) != 0.0, axis=0))

    def save(self, folder: FileLike, *, force: bool = False) -> None:
        """Write the path to a run folder: for :func:`screenpath.load_run`, and for all commands that take a RUN; with
        ``force`` in place of the run that is there.

        A :class:`UsageError` refuses a path that is in a folder already, or whose data have changed.
        """
        from screenpath.engine.saved import save

        if self.origin is None:
            raise UsageError("there is nothing to save: the path is in a run folder already, or an estimator's")
        save(self, self.origin, folder, force)

    def predict(self, X: RowsLike, step: Place | None = None, **parameters: float) -> np.ndarray:
        """Return labels, or the values of a regression, of shape (m,), for rows as of :meth:`decision_function`.

        A form of exactly 0 belongs to the label behind -1, as in LIBLINEAR.
        """
        return self._labelled(self.decision_function(X, step, **parameters))

    def _labelled(self, forms: np.ndarray) -> np.ndarray:
        if self.labels is None:
            return forms
        forms = votes(forms) if self._voting else forms
        codes = forms.argmax(axis=1) if forms.ndim == 2 else (forms > 0.0).astype(np.int64)
        return np.array(self.labels)[codes]

    def decision_function(self, X: RowsLike, step: Place | None = None, **parameters: float) -> np.ndarray:
        """Return ``x.w + b``, or ``sum_i y_i alpha_i K(x_i, x)``, for new rows in the units of the training data.

        Parameters
        ----------
        X : ndarray, scipy.sparse or table of shape (m, d)
            Columns of a table are found by name where the training data had names: in any order, others are ignored
            with a warning.
        step, **parameters
            See :meth:`position`, also for the default.

        Returns
        -------
        ndarray of shape (m,), or (m, classes) with more than two labels
        """
        rows = self._rows(X)
        return self._mean(lambda found: self._forms(rows, found), step, parameters)

    def at(self, C: float) -> Interpolated:
        """Return the model at any ``C`` of the path's range, with its proven gap: the mean of the steps around it.

        Nothing is solved, and no data are read. For linear paths over C; of one over tau or epsilon, at such a level.

        Examples
        --------
        >>> path = screenpath.svm_path(X, y)  # doctest: +SKIP
        >>> path.at(0.37).rel_gap, path.at(0.37).predict(X)  # doctest: +SKIP
        """
        check_linear(self, levels=True)
        try:
            found = interpolated(self, float(C))
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"C is a number, not {C!r}") from None
        if found is None:
            name = followed(self)
            ends = (f"{step.cells[name]:.6g}" for step in (self.steps[0], self.steps[-1]))
            raise UsageError(f"no steps of the path lie around {name}={C:g}", f"its range is {' to '.join(ends)}")
        return found

    @property
    def worst_between(self) -> tuple[float, float]:
        """Return the largest relative gap of :meth:`at` over all C of the range that is possible, and the C it is at.

        It is proven for every C, not for samples of them.
        """
        check_linear(self, levels=True)
        worst = worst_between(self)
        return worst.rel_gap, worst.C

    def _mean(self, of, step, parameters: dict) -> Any:
        """Return ``of`` a step; for a C between two of them the mean of both, see :meth:`at`."""
        try:
            found = self.solved(step, **parameters)
        except NoStep as missing:
            return at_missing(self, missing).mean(of)
        return of(found)

    @property
    def coefficients(self) -> Any:
        """Return the weights of all steps in the units of the data, see the attributes of the class."""
        return self._widened(np.array([self._solution(step)[0] for step in self.steps]))

    @property
    def intercepts(self) -> np.ndarray:
        """Return the intercepts of all steps in the units of the data, of shape (n_steps,) or (n_steps, classes)."""
        return np.array([self._solution(step)[1] for step in self.steps])

    def coef(self, step: Place | None = None, **parameters: float) -> np.ndarray | sp.csr_array:
        """Return the weights of a step in the units of the data, as ``coefficients`` has them (:meth:`position`).

        Any C within the range of a linear path will do: :meth:`at` tells how far from the optimum they are.
        """
        return self._mean(self.weights_of, step, parameters)

    def weights_of(self, step: Step) -> Any:
        """Return the weights of one of the steps."""
        weights = self._solution(step)[0]
        wide = self.preparation.columns is not None and not self._of_samples
        return self._widened(np.atleast_2d(weights)) if wide else np.array(weights)  # a copy: theirs who asked

    def intercept(self, step: Place | None = None, **parameters: float) -> float | np.ndarray:
        """Return the intercept of a step in the units of the data, or one a class, see :meth:`position`."""
        return self._mean(lambda found: self._solution(found)[1], step, parameters)

    @abstractmethod
    def _solution(self, step) -> tuple:
        """Return weights and intercept of a step in the units of the data; a row and a number for each of several.

        The weights are those of the features that have a column, or of samples behind a kernel.
        """

    def _forms(self, X, step) -> np.ndarray:
        """Return the linear forms of new rows, of shape (m, features that have a column)."""
        weights, intercept = self._solution(step)
        X = completed(X, self.preparation.fill)
        if self.preparation.kind == "l2":  # the only scaling that the weights do not undo
            X = replace(self.preparation, bias=0.0).apply(X)
        return X @ np.asarray(weights).T + intercept

    @property
    def _of_samples(self) -> bool:
        """Tell whether the weights belong to samples: those of a kernel model."""
        return False

    @property
    def _voting(self) -> bool:
        """Tell whether the forms are of pairs of labels, whose votes decide."""
        return self.labels is not None and len(self.labels) > 2

    @property
    def _shape(self) -> tuple:
        """Return the shape of the intercepts of a step."""
        return (len(pairs_of(len(self.labels))),) if self._voting and self.labels else ()

    def _widened(self, weights: np.ndarray) -> Any:
        return weights if self._of_samples else self.preparation.widened(weights)

    def _rows(self, X):
        return new_rows(X, self.preparation, self.feature_names, self.form)


@dataclass(frozen=True, repr=False)
class PathResult(Result[int]):
    """A walked path of a linear model.

    Attributes
    ----------
    coefficients : ndarray or csr_array of shape (n_steps, d)
        Weights in the units of the data that was passed in; rows of nan for grid points that were not reached. Sparse
        where the data was sparse with many times more columns than stored values (a million at least): only features
        that occur have a column in the computation, their numbers are ``preparation.columns``.
    intercepts : ndarray of shape (n_steps,)
    """

    def table(self) -> list[dict]:
        """Return the step table, one dict a step, with the columns of ``steps.csv``."""
        rows = super().table()
        if not rows or INTERVAL[0] not in rows[0]:
            return rows
        return [in_units(row, self._moved(step)) for row, step in zip(rows, self.steps, strict=True)]

    def _moved(self, step) -> float:
        """Return by how much the units of the data move the intercept of a step, the last of its coefficients."""
        return nan if step.coefficients is None else float(self._solution(step)[1] - self._blocks(step)[-1])

    def _blocks(self, step) -> np.ndarray:
        """Return the coefficients of a step as the model sees them."""
        return step.coefficients

    def _penalised(self, step) -> tuple[np.ndarray, float]:
        """Return the penalised weights of a step as the model sees them, and a bound on their rounding error."""
        return step.coefficients[: -1 if INTERVAL[0] in step.cells else None], 0.0

    def _solution(self, step) -> tuple:
        if step.coefficients is None:
            return np.full((*self._shape, self.preparation.n_features), np.nan), np.full(self._shape, np.nan)
        return self.preparation.original(self._blocks(step))


@dataclass(frozen=True, repr=False)
class SparsePathResult(PathResult):
    """A walked grid, the rows of one ``beta`` after the other; more than two labels have one block of weights each."""

    @property
    def classes(self) -> np.ndarray:
        """Return the sorted labels: numbers as float64, texts as they are. Of two, the larger is +1."""
        return np.array(self.labels)

    def _blocks(self, step) -> np.ndarray:
        return step.coefficients.dense().reshape(*self._shape, -1)

    @property
    def _voting(self) -> bool:
        return False

    @property
    def _shape(self) -> tuple:
        return (self.classes.size,) if self.classes.size > 2 else ()


@dataclass(frozen=True, repr=False)
class KernelPathResult(Result[int]):
    """A walked path of kernel SVMs.

    Attributes
    ----------
    dual_coefficients : ndarray of shape (n_steps, n)
        ``y_i alpha_i`` with ``alpha = C theta``; 0 for all but the support vectors. Rows of nan for grid points that
        were not reached.
    intercepts : ndarray of shape (n_steps,)
        Free intercepts; zeros without one.
    """

    rows: KernelBlocks  # the training data behind its kernel

    @property
    def dual_coefficients(self) -> np.ndarray:
        return self.coefficients

    @property
    def _of_samples(self) -> bool:
        return True

    def _solution(self, step) -> tuple:
        n = self.rows.n
        if step.coefficients is None:
            return np.full((*self._shape, n), np.nan), np.full(self._shape, np.nan)
        return step.coefficients[..., :n], step.coefficients[..., n:].sum(axis=-1)

    def _forms(self, X, step) -> np.ndarray:
        return self.rows.held_out(self.preparation.apply(X)) @ step.coefficients.T
