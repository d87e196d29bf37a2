"""A run folder as the path that the Python functions return."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from screenpath.catalogue.scores import probability, votes
from screenpath.data.files.dataset import FileLike, RowsLike
from screenpath.data.words.labels import in_python, label_text
from screenpath.engine.interpolated import Interpolated, at_missing, check_linear
from screenpath.engine.result import Result
from screenpath.errors import NoStep, UsageError, file_name, folder_of
from screenpath.inputs.run_data import kernel_values, of_width
from screenpath.numbers import sparse as sp
from screenpath.problem.plane import serving
from screenpath.store.coefficients import stored_weights
from screenpath.store.open import UNLABELLED, Run, open_run
from screenpath.walk.step import Step

if TYPE_CHECKING:
    from screenpath.engine.duals import Duals
    from screenpath.engine.every_c import EveryC, EveryValue
    from screenpath.engine.leave_out import LeaveOneOut
    from screenpath.engine.stable import StableLabels


@dataclass(frozen=True, repr=False)
class StoredPath(Result[int | str]):
    """A path in a run folder.

    Attributes
    ----------
    coefficients : ndarray of shape (n_steps, d) or (n_steps, classes, d), or csr_array of shape (n_steps, d)
        In the units of the data; rows of nan for grid points that were not reached. Sparse where the data have many
        times more features than values, of several classes a list of one csr_array a step. Of a kernel run ``y_i
        alpha_i``, one a sample.
    intercepts : ndarray of shape (n_steps,) or (n_steps, classes)
    """

    steps: list[Step]  # type: ignore[assignment]  # with the attributes of Steps that Result asks for
    run: Run  # the folder, its record (``run.record``) and notices about it (``run.notices``)
    training: str | tuple | None = None  # training data, if they have moved or were arrays

    @property
    def folder(self) -> Path:
        """Return the run folder."""
        return self.run.path

    def position(self, step: int | str | None = None, **parameters: float) -> int:
        """Return the place of a step, named as of :meth:`Result.position` or as ``--step`` has it: ``best``,
        ``one-se``, ``C=0.1``.

        By default it is the best one of a cross-validation, as of the commands; of a run without one the last.
        """
        if step is None and not parameters and self.run.cross_validated:
            step = "best"
        if isinstance(step, str) and not parameters:
            return self.run.choose(step)["step"]
        return super().position(step, **parameters)  # refuses a name together with parameters

    @property
    def certified(self) -> bool:
        """Tell whether every grid point met its gap target on the full data, in all folds of a cross-validation, too.

        Unfinished folds are not certified.
        """
        return super().certified and bool(self.run.record.get("folds_certified", True))

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self.run.model

    @property
    def _of_samples(self) -> bool:
        return bool(self.run.kernel)

    def _solution(self, step) -> tuple:
        if step.primal is None:
            weights, intercepts = self.run.blank()
        else:
            weights, intercepts = self.run.coefficients(step.cells)
        return (weights, intercepts) if self.run.classes else (weights[0], float(intercepts[0]))

    def _penalised(self, step) -> tuple[np.ndarray, float]:
        """Return the penalised weights of a step as the model saw them, and a bound on their rounding error."""
        self.run.matrix  # noqa: B018  # kept: one step alone would be read as slowly as all, and there are two at least
        return stored_weights(self.run, *self.run.coefficients(step.cells))

    def best(self, one_se: bool = False) -> int:
        """Return the place of the step with the best score of cross-validation or test data; with ``one_se``, after a
        cross-validation, of the most regularised within one standard error of it.
        """
        return self.run.choose("one-se" if one_se else "best")["step"]

    def duals(self, step: int | str | None = None, **parameters: float) -> Duals:
        """Return the dual variables of a step: value, side and proof of every row, see :meth:`position`.

        For ``svm`` (with or without a kernel), ``lad``, ``quantile``, ``svr``, and ``sparse-svm`` with two labels. With
        ``certificate`` the run folder has them (not those of ``sparse-svm``); otherwise the problem of the step is
        solved again. Both read the labels from the training data. ``.support`` of the result has the rows with a part
        in the weights (:meth:`support` of a linear path: its features).
        """
        from screenpath.engine.duals import duals_of

        return duals_of(self.run, self.solved(step, **parameters).cells, self.training)

    def loo(
        self, step: int | str | None = None, *, rows: int | None = None, seed: int = 0, **parameters: float
    ) -> LeaveOneOut:
        """Leave out each row of the training data in turn, exactly and proven, as ``screenpath loo`` does.

        For ``svm`` of two labels, with or without a kernel, ``lad``, ``quantile`` and ``svr``. The data are read again,
        and stay scaled and weighted as for all rows. The step is named as of :meth:`position`; ``rows`` leaves out so
        many rows, drawn at random with ``seed``.

        ``print`` the result; its arrays ``values``, ``low`` and ``high`` have an entry for each row left out.
        """
        from screenpath.engine.leave_out import leave_one_out

        return next(leave_one_out(self.run, [self.solved(step, **parameters).cells], self.training, rows, seed))

    def loo_every_c(self) -> EveryC | EveryValue:
        """Leave out each row at every C of the path, between the steps too, as ``screenpath loo --steps every-c`` does.

        For linear ``svm`` of two labels, ``lad``, ``quantile`` and ``svr``; the data are read again. ``print`` the
        result; its ``curve`` bounds the number of errors, or of a regression the score. ``intervals()`` says where each
        row's label is proven, ``low`` and ``high`` between what a regression predicts of it.
        """
        from screenpath.engine.every_c import every_c

        return every_c(self.run, self.training)

    def stable(self, X: RowsLike) -> StableLabels:
        """Return on which intervals of C the label of each new row is proven, between the steps too.

        For ``svm`` of two labels without a kernel; with a free intercept the training data are read, and the path is
        solved again. ``X`` as of :meth:`decision_function`. ``.intervals`` of the result has ``(label, low, high)`` for
        each row, ``.shares`` the share of the range that is proven.
        """
        from screenpath.engine.stable import StableLabels

        return StableLabels(self, sp.csr_array(self._rows(X)))

    def predict_proba(self, X: RowsLike, step: int | str | None = None, **parameters: float) -> np.ndarray:
        """Return the probabilities of the two labels, in the order of ``labels``, of shape (m, 2), after
        :func:`screenpath.cross_validate` with ``calibrate``; ``X`` as of :meth:`decision_function`.

        Labels of :meth:`predict` are those of the sign, not of the larger probability.
        """
        found = self.solved(step, **parameters)
        high = probability(self._forms(self._rows(X), found), **self.run.sigmoid(found.cells))
        return np.column_stack([1.0 - high, high])

    @property
    def _voting(self) -> bool:
        return self.run.voting

    def _forms(self, X, step) -> np.ndarray:
        X = X if self.run.kernel == "precomputed" and isinstance(X, np.ndarray) else sp.csr_array(X)
        if not self.run.kernel:
            return super()._forms(X, step) - (step.cells.get("threshold") or 0.0)
        return kernel_values(self.run, step.cells, X, self.training)


def load_run(folder: FileLike, training: FileLike | tuple | None = None) -> StoredPath:
    """Return the path in a run folder, checked against the hashes that the run wrote.

    A stopped run has a step ``skipped`` for each grid point that it did not reach. Without a step, methods take that
    chosen by a cross-validation, and the last one of other runs. A :class:`RunFolderError` tells that there is no run,
    or that it is damaged.

    Parameters
    ----------
    folder : path-like
    training : path-like or tuple of arrays (X, y), optional
        Training data, if they have moved, or were arrays: kernels, :meth:`StoredPath.loo`, :meth:`StoredPath.duals`
        and, with a free intercept or several labels, :meth:`StoredPath.stable` read them.

    Examples
    --------
    >>> import screenpath
    >>> path = screenpath.load_run("runs/svm-breast_cancer")  # doctest: +SKIP
    >>> path.predict(X, C=0.1)  # doctest: +SKIP
    >>> screenpath.load_run("runs/cv-svm-breast_cancer").predict(X, step="one-se")  # doctest: +SKIP
    """
    if isinstance(training, (tuple, list)):
        return _path_of(open_run(folder_of(folder)), tuple(training))
    named = None if training is None else file_name(training, "training", "or pass a pair of arrays: (X, y)")
    return _path_of(open_run(folder_of(folder)), named)


def _path_of(run: Run, training: str | tuple | None) -> StoredPath:
    names = tuple(run.parameters)
    steps = [Step(row, names) for row in run.table]
    labels = tuple(in_python(run.sides)) or None
    preparation = replace(run.preparation, scale=None, shift=None)  # coefficients are in the units of the data
    form = run.form
    form = None if form is None or form.plain else form
    return StoredPath(steps, preparation, labels, run, training, feature_names=run.feature_names, form=form)


# -- predictions on new data ------------------------------------------------------------------------------------------


def step_or_between(run: Run, text: str, exact: bool = False, training: str | None = None) -> dict | Interpolated:
    """Return the step that ``--step`` names, a row of the step table; for a C between two steps the model there.

    With ``exact`` such a model is solved from the training data, which may have moved to ``training``.
    """
    try:
        return run.choose(text)
    except NoStep as missing:
        path = _path_of(run, None)
        if "sigmoid_slope" in run.record["columns"]:
            raise UsageError("probabilities are known at the steps of the run alone", "name one of them") from None
        if not exact:
            plane = run.record.get("guarantee") or {}
            found = serving(run.steps, plane, **missing.wanted) if "alpha" in plane else None
            return at_missing(path, missing) if found is None else found
        check_linear(path)
        if "threshold" in run.record["columns"]:
            raise UsageError("the threshold is known at the steps of the run alone", "leave out `exact`") from None
        if not 0.0 < missing.wanted["C"] < np.inf:
            raise UsageError(f"`step={text}`: C must be positive and finite", "give for example C=0.1") from None
        from screenpath.engine.run_problem import exact_at

        return exact_at(run, missing.wanted["C"], training)


def decision_values(
    run: Run, step: dict | Interpolated, X, training: str | None = None
) -> tuple[np.ndarray, str | None]:
    """Return the linear forms of new data, (m,) or (m, classes); and which features are ignored or missing, or None.

    ``step`` is a row of the step table, or a model between two. ``X``, a csr_array with m rows, is in the units of the
    data file; features unknown to the model are ignored. The forms are ``x.w + intercept``, less the threshold of the
    step if it has one; for ``--scale l2`` with ``x`` divided by its norm. ``training`` are the training data of a
    kernel run, if they have moved.
    """
    d, notice = run.n_features, None
    if X.shape[1] > d:
        notice = f"features above {d}, the width of the run, are ignored"
    elif X.shape[1] < d:
        notice = f"the data shows {X.shape[1]:,} of the {d:,} features of the run; the others are 0 in every row"
    path = _path_of(run, training)
    rows = of_width(run, X)
    if isinstance(step, Interpolated):
        return step.mean(lambda one: step.path._forms(rows, one)), notice
    return path._forms(rows, Step(step, tuple(run.parameters))), notice


def stable_labels(run: Run, X, training: str | None = None) -> StableLabels:
    """Return the intervals of C on which the labels of new rows are proven; arguments of :func:`decision_values`."""
    from screenpath.engine.stable import StableLabels

    path = _path_of(run, training)
    return StableLabels(path, of_width(run, X))


def predicted_labels(run: Run, values: np.ndarray) -> np.ndarray:
    """Return labels as text, by the sign or the largest of the linear forms; 0 means -1, as in LIBLINEAR."""
    if run.classes:
        values = votes(values) if run.voting else values
        return np.array([label_text(label) for label in run.classes])[values.argmax(axis=1)]
    return np.where(values > 0.0, label_text(run.labels["+1"]), label_text(run.labels["-1"]))


def not_scored(run: Run, y: np.ndarray) -> str | None:
    """Return a notice where rows with the label 0 count as unlabelled, though other rows have labels."""
    known = run.known(y)
    count = int(np.count_nonzero(~known & (y == UNLABELLED)))
    if not count or not known.any():
        return None
    rows = f"{count} of {y.size} rows are" if count > 1 else f"1 of {y.size} rows is"
    names = ", ".join(label_text(label) for label in sorted(run.sides))
    return f"{rows} not scored: the label 0 is none of the run ({names}), and is taken as not known"
