"""The Python API: one function per model, each a thin way into the one loop of ``path.py``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from screenpath.errors import DataError, UsageError
from screenpath.grid import EpsilonGrid, explicit_grid, log_grid
from screenpath.models.builders import lad_model, quantile_model, row_weights, svm_model, svr_model
from screenpath.path import PathOptions, batches
from screenpath.prepare import Preparation, prepare
from screenpath.read.labels import binary_labels
from screenpath.rows.memory import MemoryRows
from screenpath.rules import parse_rule
from screenpath.solvers import make_solver
from screenpath.steps import CERTIFIED, Steps


@dataclass(frozen=True)
class PathResult:
    """A walked path.

    Parameters
    ----------
    steps : sequence of Step
        One per grid point, in the order of the grid.
    preparation : Preparation
        Scaling and bias that were applied.

    Attributes
    ----------
    coefficients : ndarray of shape (n_steps, d)
        Weights in the units of the data that was passed in.
    intercepts : ndarray of shape (n_steps,)
    """

    steps: Sequence
    preparation: Preparation

    def _original(self) -> tuple:
        if not self.steps:
            return np.empty((0, self.preparation.n_features)), np.empty(0)
        steps = self.steps if isinstance(self.steps, Steps) else Steps([self.steps])
        return self.preparation.original(steps.coefficients)

    @property
    def coefficients(self) -> np.ndarray:
        """Return the weights in the units of the data, one row a step."""
        return self._original()[0]

    @property
    def intercepts(self) -> np.ndarray:
        """Return the intercepts in the units of the data, one a step."""
        return self._original()[1]

    @property
    def certified(self) -> bool:
        """Tell whether every grid point met its gap target on the full data."""
        return all(step.status == CERTIFIED for step in self.steps)

    def table(self) -> list[dict]:
        """Return the step table, one dict a step, with the columns of ``steps.csv``."""
        return [step.record() for step in self.steps]


def check_data(X, y):
    """Return data and labels as arrays that every model accepts.

    Raises
    ------
    DataError
        For shapes that do not fit together, or values that are not finite.
    """
    if not sp.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise DataError(f"the data must have two dimensions (samples, features), not {X.ndim}")
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    y = np.asarray(y, dtype=np.float64).ravel()
    if y.size != X.shape[0]:
        raise DataError(f"{X.shape[0]} rows but {y.size} labels")
    if y.size == 0:
        raise DataError("the data has no rows")
    values = X.data if sp.issparse(X) else X
    if not np.all(np.isfinite(values)) or not np.all(np.isfinite(y)):
        raise DataError("the data holds nan or infinite values", "remove or impute them first")
    return X, y


def make_grid(grid, cmin: float, cmax: float):
    """Return the grid for a count (log-spaced from ``cmin`` to ``cmax``), a list of parameters or an EpsilonGrid."""
    if isinstance(grid, EpsilonGrid):
        return grid
    if np.ndim(grid) == 0:
        return log_grid(cmin, cmax, int(grid))
    return explicit_grid(grid)


def run_path(model, grid, *, rule, solver, tol, max_epochs, time_limit, seed, chunk=None, chunk_form="C"):
    """Walk a grid and return its steps."""
    if not 0.0 < tol < 1.0:
        raise UsageError(f"the tolerance must lie between 0 and 1, not {tol}")
    deadline = time.monotonic() + time_limit if time_limit is not None else float("inf")
    options = PathOptions(tol=tol, max_epochs=max_epochs, deadline=deadline, certificates=False)
    screening = parse_rule(rule, chunk, chunk_form)
    return Steps([found for found, _ in batches(model, grid, screening, make_solver(solver, seed), options)])


def box_path(
    X,
    y,
    build,
    *,
    grid=100,
    cmin=1e-2,
    cmax=10.0,
    rule="dvi+gap",
    chunk=None,
    chunk_form="C",
    solver="auto",
    tol=1e-6,
    bias=0.0,
    scale="none",
    storage="auto",
    dtype=np.float64,
    threads=1,
    seed=0,
    max_epochs=100_000,
    time_limit=None,
) -> PathResult:
    """Compute a certified path of a box model; the options of all the functions below.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : array_like of shape (n,)
    build : callable
        ``build(rows) -> BoxModel``.
    grid : int, sequence of float or EpsilonGrid, default 100
        Number of log-spaced values of C from ``cmin`` to ``cmax``, the values themselves, or an eps-path.
    cmin, cmax : float
        Ends of the log-spaced grid.
    rule : str, default "dvi+gap"
        ``none``, ``gap``, ``heuristic``, a static rule (``dvi``, ``bt1``, ``bt2``, ``it``, ``ssnsv``, ``essnsv``), or a
        static rule with ``+gap``.
    chunk : int, optional
        ``ssnsv`` and ``essnsv``: grid points that one region serves (Ogawa 2013).
    chunk_form : {"C", "s"}
        See :class:`screenpath.rules.pathwise.Pathwise`.
    solver : {"auto", "newton", "cd"}
    tol : float, default 1e-6
        Relative duality gap of every grid point, on the full data.
    bias : float, default 0
        Value of a constant feature, penalised like every other; 0 for none.
    scale : {"none", "maxabs", "standard", "l2"}
        Coefficients are reported in the units of ``X`` all the same.
    storage : {"auto", "dense", "sparse"}
    dtype : float64 or float32
        Type of the stored rows; everything that decides or certifies is float64.
    threads : int, default 1
        Threads for passes over all rows, and on dense rows for the solver; results do not depend on it.
    seed : int, default 0
    max_epochs : int
        Limit per grid point.
    time_limit : float, optional
        Seconds for the whole path; grid points after it are missing from the result.

    Returns
    -------
    PathResult

    Raises
    ------
    DataError, UsageError
    """
    X, y = check_data(X, y)
    values = make_grid(grid, cmin, cmax)
    prepared, preparation = prepare(X, scale, bias, storage, dtype)
    limits = {"tol": tol, "max_epochs": max_epochs, "time_limit": time_limit, "seed": seed}
    limits.update(chunk=chunk, chunk_form=chunk_form)
    found = run_path(build(MemoryRows(prepared, threads)), values, rule=rule, solver=solver, **limits)
    return PathResult(found, preparation)


def svm_path(X, y, *, class_weight=None, sample_weight=None, **options) -> PathResult:
    """Compute a certified path of linear SVMs, ``min 1/2 ||w||^2 + C sum s_i max(0, 1 - y_i x_i.w)``.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : array_like of shape (n,)
        Two labels; the larger is +1.
    class_weight : dict or "balanced", optional
        Weight of each label.
    sample_weight : array_like of shape (n,), optional
        Weight of each sample; the weight 2 equals the sample standing twice.
    **options
        Of :func:`box_path`.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> import numpy as np
    >>> from screenpath import svm_path
    >>> X = np.array([[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]])
    >>> path = svm_path(X, [1, 1, -1, -1], grid=[0.1, 1.0])
    >>> [step.status for step in path.steps]
    ['certified', 'certified']
    """
    X, y = check_data(X, y)
    signs, _ = binary_labels(y)
    weights = row_weights(y, class_weight, sample_weight)
    return box_path(X, y, lambda rows: svm_model(rows, signs, weights), **options)


def lad_path(X, y, *, sample_weight=None, **options) -> PathResult:
    """Compute a certified path of least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : array_like of shape (n,)
        Targets.
    sample_weight : array_like of shape (n,), optional
    **options
        Of :func:`box_path`.

    Returns
    -------
    PathResult
    """
    X, y = check_data(X, y)
    weights = row_weights(y, None, sample_weight)
    return box_path(X, y, lambda rows: lad_model(rows, y, weights), **options)


def quantile_path(X, y, *, tau=0.5, sample_weight=None, **options) -> PathResult:
    """Compute a certified path of quantile regressions, loss ``max((tau - 1) t, tau t)`` with ``t = y - x.w``.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : array_like of shape (n,)
    tau : float, default 0.5
        Level, between 0 and 1.
    sample_weight : array_like of shape (n,), optional
    **options
        Of :func:`box_path`.

    Returns
    -------
    PathResult
    """
    X, y = check_data(X, y)
    weights = row_weights(y, None, sample_weight)
    return box_path(X, y, lambda rows: quantile_model(rows, y, tau, weights), **options)


def svr_path(X, y, *, epsilon=0.1, sample_weight=None, **options) -> PathResult:
    """Compute a certified path of support vector regressions, loss ``max(0, |y - x.w| - epsilon)``.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : array_like of shape (n,)
    epsilon : float, default 0.1
        Half width of the insensitive tube, in the units of ``y``.
    sample_weight : array_like of shape (n,), optional
    **options
        Of :func:`box_path`.

    Returns
    -------
    PathResult
    """
    X, y = check_data(X, y)
    weights = row_weights(y, None, sample_weight)
    return box_path(X, y, lambda rows: svr_model(rows, y, epsilon, weights), **options)
