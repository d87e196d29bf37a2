"""The Python API: one function per model, each a thin way into the one loop of :mod:`screenpath.walk.loop`."""

from __future__ import annotations

import inspect
import numbers
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.api.keywords import ClassifierKeywords, ClassWeight, F, Grid, LossKeywords, checked_by
from screenpath.catalogue import losses
from screenpath.catalogue.builders import checked_weights, row_weights
from screenpath.catalogue.spec import with_intercept
from screenpath.data.files.arrays import Given
from screenpath.data.files.dataset import RowsLike
from screenpath.data.files.prepare import prepare
from screenpath.data.words.labels import binary_labels
from screenpath.engine.result import PathResult, path_options, walked
from screenpath.engine.saving import Origin
from screenpath.errors import DataError, UsageError
from screenpath.problem.grid import EpsilonGrid, explicit_grid, log_grid
from screenpath.rows.memory import prepared_rows

if TYPE_CHECKING:  # every type checker knows this module, installed or not
    from typing_extensions import Unpack


def make_grid(grid, cmin: float, cmax: float):
    """Return the grid for a count (log-spaced from ``cmin`` to ``cmax``), a list of parameters or an EpsilonGrid."""
    if isinstance(grid, EpsilonGrid):
        return grid
    if np.ndim(grid) > 0:
        return explicit_grid(grid)
    if not isinstance(grid, numbers.Integral) or isinstance(grid, bool):
        raise UsageError(
            f"grid={grid!r} is no number of grid points",
            "write grid=[0.1] for a single value, grid=100 for 100 values",
        )
    return log_grid(cmin, cmax, int(grid))


@checked_by("svm")
def loss_path(
    loss: losses.Loss, values: dict, X: RowsLike, y: ArrayLike, *,
    class_weight: ClassWeight = None, sample_weight: ArrayLike | None = None,
    grid: Grid = 100, cmin: float = 1e-2, cmax: float = 10.0,
    rule: str = "dvi+gap", chunk: int | None = None, chunk_form: str = "C",
    solver: str = "auto", tol: float = 1e-6,
    intercept: str | None = None, bias: float = 0.0,
    scale: str = "none", storage: str = "auto", dtype: DTypeLike = np.float64,
    threads: int = 1, seed: int = 0, max_epochs: int = 100_000, time_limit: float | None = None,
) -> PathResult:  # fmt: skip
    """Compute a certified path of a box model; the keywords of all the functions below.

    Parameters
    ----------
    loss : models.losses.Loss
    values : dict
        Of the loss's own options.
    X : ndarray, scipy.sparse or table (pandas, polars, pyarrow) of shape (n, d)
    y : array_like of shape (n,)
    class_weight : dict or "balanced", optional
        Classifiers: weight of each label in the loss.
    sample_weight : array_like of shape (n,), optional
        How often each sample stands in the data: the weight 2 equals the sample standing twice, in the loss, in
        ``scale`` and in ``class_weight="balanced"``.
    grid : int, sequence of float or EpsilonGrid, default 100
        Number of log-spaced values of C from ``cmin`` to ``cmax``, the values themselves (walked in increasing
        order), or an eps-path.
    cmin, cmax : float
        Ends of the log-spaced grid.
    rule : str, default "dvi+gap"
        ``none``, ``gap``, ``heuristic``, ``sieve``, a static rule (``dvi``, ``bt1``, ``bt2``, ``it``, ``ssnsv``,
        ``essnsv``), or a static rule with ``+gap``.
    chunk : int, optional
        ``ssnsv`` and ``essnsv``: grid points that one region serves (Ogawa 2013).
    chunk_form : {"C", "s"}
        See :class:`screenpath.screen.pathwise.Pathwise`.
    solver : {"auto", "newton", "cd"}
    tol : float, default 1e-6
        Relative duality gap of every grid point, on the full data.
    intercept : {"none", "free", "penalised"}, optional
        ``free``: not penalised, as in LIBSVM; the step table then has both ends of the interval of the best. With
        ``bias`` it is penalised, else there is none.
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
        Seconds for the whole call; grid points after it are steps ``skipped``, with coefficients of nan. A kernel that
        is being compiled, in a first call, is waited for.

    Returns
    -------
    PathResult

    Raises
    ------
    DataError
        For arrays that do not fit together or hold what is no number, and labels that the loss cannot take.
    UsageError
        For an option that is not valid, or contradicts another.
    """
    began = time.monotonic()
    data = Given.of(X, y, "labels" if loss.signed else "targets")
    if data.texts is not None and not loss.signed:
        raise DataError(f"{loss.name} is a regression, the targets are texts: {data.texts[0]}, ...", "pass numbers")
    points = make_grid(grid, cmin, cmax)
    given = checked_weights(data.y, sample_weight)
    kind: dict = {"intercept": intercept, "bias": bias}
    spec = with_intercept(loss.spec(), kind)
    if chunk is not None:
        spec = replace(spec, rule=partial(spec.rule, chunk=chunk, form=chunk_form))
    targets, weights, labels = data.y, row_weights(data.y, data.class_weight(class_weight), given), None
    if loss.signed:
        targets, labels = binary_labels(data.y, names=data.texts)[0], data.two_labels
    prepared, preparation = prepare(
        data.X, scale, kind["bias"], storage, dtype, given, narrow=True, free=spec.free_bias
    )
    model = loss.model(prepared_rows(prepared, preparation, threads), targets, weights, kind["intercept"], **values)
    if spec.free_bias:  # the model's own, last among its coefficients
        preparation = replace(preparation, bias=1.0)
    how = spec.rule(rule), spec.solver(solver, seed), path_options(tol, max_epochs, time_limit, began)
    found = walked(model, points, *how, blank=np.full(model.rows.d + spec.free_bias, np.nan))
    asked = {
        "rule": rule, "solver": solver, "tol": tol, **kind, "scale": scale, "storage": storage, "dtype": dtype,
        "threads": threads, "seed": seed, "max_epochs": max_epochs, "class_weight": class_weight,
        "weights": sample_weight, **({"chunk": chunk, "chunk_form": chunk_form} if chunk else {}), **values,
    }  # fmt: skip
    origin = Origin(loss.name, data.X, data.written, asked, data.mark())
    return PathResult(found, preparation, labels, origin=origin, feature_names=data.names)


def _with_keywords_of(shared: Callable, *without: str) -> Callable[[F], F]:
    """Give a function with ``**options`` the keywords of another: in its signature and in errors."""

    def decorate(function: F) -> F:
        given = inspect.signature(function)
        own = [p for p in given.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in own} | set(without)
        more = [p for p in inspect.signature(shared).parameters.values() if p.kind is p.KEYWORD_ONLY]
        signature = given.replace(parameters=[*own, *(p for p in more if p.name not in taken)])
        known = set(signature.parameters)

        @wraps(function)
        def checked(*arguments, **keywords):
            if not known.issuperset(keywords) or len(arguments) < 2:  # to bind each call takes longer than many a solve
                try:
                    signature.bind(*arguments, **keywords)
                except TypeError as error:
                    raise TypeError(f"{function.__name__}(): {error}") from None
            return function(*arguments, **keywords)

        checked.__signature__ = signature  # type: ignore[attr-defined]  # where `inspect` looks for it
        return cast(F, checked)

    return decorate


@_with_keywords_of(loss_path)
def svm_path(X: RowsLike, y: ArrayLike, **options: Unpack[ClassifierKeywords]) -> PathResult:
    """Compute a certified path of linear SVMs, ``min 1/2 ||w||^2 + C sum s_i max(0, 1 - y_i x_i.w)``.

    Parameters
    ----------
    X, y, **options
        See :func:`loss_path`; two labels, of which the larger is +1.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> from screenpath import svm_path
    >>> X = [[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]]
    >>> path = svm_path(X, [1, 1, -1, -1], grid=[0.1, 1.0])
    >>> path
    <PathResult: 2 of 2 steps certified, C = 0.1 to C = 1>
    >>> path.predict([[1.0, 1.0]], C=0.1).tolist()
    [1.0]
    """
    return loss_path(losses.SVM, {}, X, y, **options)


@_with_keywords_of(loss_path, "class_weight")
def lad_path(X: RowsLike, y: ArrayLike, **options: Unpack[LossKeywords]) -> PathResult:
    """Compute a certified path of least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Parameters
    ----------
    X, y, **options
        See :func:`loss_path`.

    Returns
    -------
    PathResult
    """
    return loss_path(losses.LAD, {}, X, y, **options)


@_with_keywords_of(loss_path, "class_weight")
def quantile_path(X: RowsLike, y: ArrayLike, *, tau: float = 0.5, **options: Unpack[LossKeywords]) -> PathResult:
    """Compute a certified path of quantile regressions, loss ``max((tau - 1) t, tau t)`` with ``t = y - x.w``.

    Parameters
    ----------
    X, y, **options
        See :func:`loss_path`.
    tau : float, default 0.5
        Level, between 0 and 1.

    Returns
    -------
    PathResult
    """
    return loss_path(losses.QUANTILE, {"tau": tau}, X, y, **options)


@_with_keywords_of(loss_path, "class_weight")
def svr_path(X: RowsLike, y: ArrayLike, *, epsilon: float = 0.1, **options: Unpack[LossKeywords]) -> PathResult:
    """Compute a certified path of support vector regressions, loss ``max(0, |y - x.w| - epsilon)``.

    Parameters
    ----------
    X, y, **options
        See :func:`loss_path`.
    epsilon : float, default 0.1
        Half width of the insensitive tube, in the units of ``y``.

    Returns
    -------
    PathResult
    """
    return loss_path(losses.SVR, {"epsilon": epsilon}, X, y, **options)
