"""A run folder as the path that the Python functions return."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from screenpath.data.files.dataset import FileLike
from screenpath.data.files.prepare import Preparation
from screenpath.data.safe.wide import spread
from screenpath.data.words.labels import in_python
from screenpath.engine.predict import decision_values
from screenpath.engine.result import Result
from screenpath.errors import folder_of
from screenpath.numbers import sparse as sp
from screenpath.store.open import Run, open_run
from screenpath.walk.step import Step

if TYPE_CHECKING:
    from screenpath.engine.duals import Duals


@dataclass(frozen=True, repr=False)
class StoredPath(Result[int | str]):
    """A path in a run folder.

    Parameters
    ----------
    run : Run
        The folder, its record (``run.record``) and notices about it (``run.notices``).
    training : str, optional
        Training data of a kernel run, if they have moved.

    Attributes
    ----------
    coefficients : ndarray of shape (n_steps, d) or (n_steps, classes, d), or csr_array of shape (n_steps, d)
        In the units of the data; rows of nan for grid points that were not reached. Sparse where the data have many
        times more features than values, of several classes a list of one csr_array a step. Of a kernel run ``y_i
        alpha_i``, one a sample.
    intercepts : ndarray of shape (n_steps,) or (n_steps, classes)
    """

    steps: list[Step]  # type: ignore[assignment]  # with the attributes of Steps that Result asks for
    run: Run
    training: str | None = None

    @property
    def folder(self) -> Path:
        """Return the run folder."""
        return self.run.path

    def position(self, step: int | str | None = None, **parameters: float) -> int:
        """Return the place of a step, named as in Python or as the commands name it.

        Parameters
        ----------
        step : int or str, optional
            Its place (negative: from the end), or as ``--step`` has it: ``best``, ``one-se``, ``C=0.1``. By default the
            best one of a cross-validation, as of the commands; of a run without one the last.
        **parameters : float
            For example ``C=0.1``: the step whose parameters are nearest, if they agree to six digits.

        Raises
        ------
        UsageError
            Where there is no such step.
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

    def _each(self, part: int) -> np.ndarray:
        solved = {row["step"] for row in self.run.steps}
        found = [self.run.coefficients(s.cells)[part] if s.step in solved else None for s in self.steps]
        blank = np.full_like(next(one for one in found if one is not None), np.nan)
        stacked = np.array([blank if one is None else one for one in found])
        return stacked if self.run.classes else stacked[:, 0]

    @property
    def coefficients(self) -> np.ndarray | sp.csr_array | list[sp.csr_array]:
        """Return the weights of all steps."""
        return self._widened(self._each(0))

    @property
    def intercepts(self) -> np.ndarray:
        """Return the intercepts of all steps."""
        return self._each(1)

    def _widened(self, weights: np.ndarray) -> Any:
        """Return weights of all features: as they are, or as sparse arrays where few have a column."""
        if self.run.numbers is None or self.run.kernel:
            return weights
        if weights.ndim == 3:
            return [self._widened(some) for some in weights]
        return spread(np.atleast_2d(weights), self.run.numbers - 1, self.run.n_features)

    def coef(self, step: int | str | None = None, **parameters: float) -> np.ndarray | sp.csr_array:
        """Return the weights of a step, as ``coefficients`` has them, see :meth:`position`."""
        weights = self.run.coefficients(self.solved(step, **parameters).cells)[0]
        return self._widened(weights if self.run.classes else weights[0])

    def intercept(self, step: int | str | None = None, **parameters: float) -> float | np.ndarray:
        """Return the intercept of a step, or one for each class, see :meth:`position`."""
        found = self.run.coefficients(self.solved(step, **parameters).cells)[1]
        return found if self.run.classes else float(found[0])

    def best(self, one_se: bool = False) -> int:
        """Return the place of the step with the best score of cross-validation or test data.

        Parameters
        ----------
        one_se : bool, default False
            The most regularised within one standard error of it, after a cross-validation.

        Raises
        ------
        UsageError
            Where no step has a score.
        """
        return self.run.choose("one-se" if one_se else "best")["step"]

    def duals(self, step: int | str | None = None, **parameters: float) -> Duals:
        """Return the dual variables of a step: value, side and proof of every row, see :meth:`position`.

        For ``svm`` (with or without a kernel), ``lad``, ``quantile``, ``svr``, and ``sparse-svm`` with two labels. With
        ``certificate`` the run folder has them (not those of ``sparse-svm``); otherwise the problem of the step is
        solved again. Both read the labels from the training data.

        Returns
        -------
        Duals
            ``.support`` has the rows with a part in the weights (:meth:`support` of a linear path: its features).

        Raises
        ------
        UsageError, DataError, RunFolderError
        """
        from screenpath.engine.duals import duals_of

        return duals_of(self.run, self.solved(step, **parameters).cells, self.training)

    def _forms(self, X, step) -> np.ndarray:
        X = self._checked(X, self.run.numbers is not None)
        return decision_values(self.run, step.cells, sp.csr_array(X), self.training)[0]


def load_run(folder: FileLike, training: str | None = None) -> StoredPath:
    """Return the path in a run folder, checked against the hashes that the run wrote.

    Parameters
    ----------
    folder : path-like
    training : path-like, optional
        Training data of a kernel run, if they have moved.

    Returns
    -------
    StoredPath
        A stopped run has a step ``skipped`` for each grid point that it did not reach. Without a step, methods take the
        best one of a cross-validation, and the last one of other runs.

    Raises
    ------
    RunFolderError
        If there is no run, or it is damaged.

    Examples
    --------
    >>> import screenpath
    >>> path = screenpath.load_run("runs/svm-breast_cancer")  # doctest: +SKIP
    >>> path.predict(X, C=0.1)  # doctest: +SKIP
    >>> screenpath.load_run("runs/cv-svm-breast_cancer").predict(X, step="one-se")  # doctest: +SKIP
    """
    run = open_run(folder_of(folder))
    names = tuple(run.parameters)
    steps = [Step(row, names) for row in run.table]
    known = [label for label in run.sides if not isinstance(label, str)]  # a text stands for all others: rest
    places = dict(zip(known, in_python(known), strict=True))
    labels = tuple(places.get(label, label) for label in run.sides) or None
    p = run.record["preparation"]
    preparation = Preparation(p.get("scaling", "none"), None, None, 0.0, run.n_features)
    training = None if training is None else str(training)
    return StoredPath(steps, preparation, labels, run, training, feature_names=run.feature_names)
