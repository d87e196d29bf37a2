"""The Python functions of arrays, one for each model; their keywords are the declared options."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from screenpath.catalogue import options as o
from screenpath.catalogue.keywords import as_options, bound, documented, keywords_of, parameters
from screenpath.catalogue.option import Option
from screenpath.catalogue.spec import class_targets, real_targets
from screenpath.catalogue.specs import SPECS
from screenpath.catalogue.targets import checked_weights
from screenpath.data.files.arrays import Given
from screenpath.data.files.dataset import RowsLike
from screenpath.data.words.labels import binary_labels
from screenpath.engine.problem import Problem, Targets
from screenpath.engine.result import KernelPathResult, Origin, PathResult, SparsePathResult
from screenpath.errors import DataError

F = TypeVar("F", bound=Callable)
# Keywords that are not options, those that a saved run does not record, and those of the grid.
ARRAYS = ("penalty_weights", "signs", "groups")  # options that are files of a command
OWN = ("class_weight", "sample_weight", *ARRAYS, "tell", "shrinking")
# Keywords that accept more than the option of that name (lists, types, mappings): checked where they are used.
WIDER = {"grid", "betas", "alphas", "dtype", "gamma", *OWN} - {"shrinking"}
UNSAVED = {"time_limit", "jobs"}
GRID = {"grid", "cmin", "cmax", "c_list", "log", "lambda_min_ratio", "lambda_list"}
ROWS = """X : ndarray, scipy.sparse or table (pandas, polars, pyarrow) of shape (n, d)
y : array_like of shape (n,)
    Targets of a regression, or labels; of two, the larger is +1."""
ERRORS = """Raises
------
DataError
    For arrays that do not fit together or hold values that are not numbers, and labels that the loss cannot use.
UsageError
    For an invalid option, or one that contradicts another.
ResourceError
    If something does not fit into memory."""

BEHIND_KERNEL = {one.name for one in o.KERNEL}
UNKNOWN_TO_KERNEL = ("chunk", "chunk_form", "seed")
WITH_KERNEL = (
    replace(o.KERNEL[0], default="rbf", about=o.KERNEL[0].about.partition(" None fits")[0]),
    replace(o.MAX_MEMORY, about="Of the kernel matrix: bytes, or text like ``8G``; by default half of what is free."),
    Option("shrinking", True, "flag", "Let the solver set aside rows that seem to stay at a bound.", group="limits"),
    Option("tell", type="Callable[[str], object]", help="Called with a sentence about memory before it is allocated."),
)  # fmt: skip


def takes(model: str, *more: Option, without: tuple | set = ()) -> Callable[[F], F]:
    """Give a function of ``X``, ``y`` and options the keywords of a model: signature, checks and documentation."""
    left_out = {*without, *(one.name for one in more)}
    own = (one for one in keywords_of(SPECS[model], "paths", "models") if one.name not in left_out)
    known = {one.name: one for one in (*own, *more)}
    defaults = {name: one.default for name, one in known.items()}

    def decorate(function: F) -> F:
        given = inspect.signature(function)
        rows = [one.replace(kind=one.POSITIONAL_OR_KEYWORD) for one in list(given.parameters.values())[:2]]
        signature = given.replace(parameters=[*rows, *parameters(known.values())])

        @wraps(function)
        def checked(*arguments, **keywords):
            if len(arguments) != 2 or not known.keys() >= keywords.keys():  # to bind takes longer than many a solve
                found = bound(signature, function.__name__, *arguments, **keywords)
                arguments, keywords = found.args, found.kwargs
            options = {name: known[name].checked(one) if name not in WIDER else one for name, one in keywords.items()}
            return function(*arguments, **{**defaults, **options})

        checked.__signature__ = signature  # type: ignore[attr-defined]  # where `inspect` looks for it
        returns = f"Returns\n-------\n{given.return_annotation}\n\n{ERRORS}"
        checked.__doc__ = documented(function.__doc__, known.values(), ROWS, returns)
        return cast(F, checked)

    return decorate


def problem_of(model: str, X, y, keywords: dict[str, Any]) -> Problem:
    """Return the problem of a function's arrays and keywords; its results know their origin and feature names."""
    spec = SPECS[model]
    regression = spec.targets is real_targets
    columns, drop = keywords.pop("columns", None), keywords.pop("drop", None)
    missing, one_hot = keywords.get("missing", "error"), keywords.pop("one_hot", None)
    what = "targets" if regression else "labels"
    data = Given.of(X, y, what, columns, drop, missing=missing, one_hot=one_hot)
    if data.texts is not None and regression:
        raise DataError(f"{model} is a regression, the targets are texts: {data.texts[0]}, ...", "pass numbers")
    class_weight, sample_weight, *arrays, tell, shrinking = (keywords.get(name) for name in OWN)
    named = dict(zip(ARRAYS, arrays, strict=True))
    given = as_options(spec, {n: value for n, value in keywords.items() if n not in OWN}, data.X.shape[1])
    given |= {name: one for name, one in named.items() if one is not None}
    weights, solver = checked_weights(data.y, sample_weight), {} if shrinking is None else {"shrinking": shrinking}
    targets, balance = _targets(spec, data), data.class_weight(class_weight)
    problem = Problem(model, given, data.X, targets, weights, balance, tell=tell, solver=solver)
    left_out = UNSAVED | GRID if spec.parameter in ("C", "lambda") else UNSAVED
    asked = {name: problem.options[name] for name in given.keys() - left_out}
    asked |= {"class_weight": class_weight, "weights": sample_weight, **named}
    if "gamma" in asked:
        asked["gamma"] = keywords["gamma"]
    origin = Origin(model, data.X, data.written, asked, data.mark())
    problem.known = {"origin": origin, "feature_names": data.names, "form": data.form}
    return problem


def computed(model: str, X, y, keywords: dict[str, Any]) -> Any:
    began = time.monotonic()
    return problem_of(model, X, y, keywords).paths(began=began)[0]


def _targets(spec, data: Given) -> Targets:
    """Return signs, class numbers or real targets, with the labels as the user passed them."""
    if spec.targets is real_targets:
        return Targets(data.y, [data.y], [None])
    if spec.targets is not class_targets:
        return Targets(data.y, [binary_labels(data.y, names=data.texts)], [data.two_labels])
    classes, codes = np.unique(data.y, return_inverse=True)
    if classes.size < 2:
        raise DataError(f"all labels are {classes[0]:g}: a classifier needs at least two", "check the label column")
    codes = codes.astype(np.int64).ravel()
    labels = data.two_labels if data.truths else data.texts or tuple(classes.tolist())
    return Targets(data.y, [2 * codes - 1 if classes.size == 2 else codes], [labels])


@takes("svm", without=BEHIND_KERNEL)
def svm_path(X: RowsLike, y: ArrayLike, **options) -> PathResult:
    """Compute a certified path of linear SVMs, ``min 1/2 ||w||^2 + C sum s_i max(0, 1 - y_i x_i.w)``.

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
    return computed("svm", X, y, options)


@takes("lad", without=BEHIND_KERNEL)
def lad_path(X: RowsLike, y: ArrayLike, **options) -> PathResult:
    """Compute a certified path of least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``."""
    return computed("lad", X, y, options)


@takes("quantile", without=BEHIND_KERNEL)
def quantile_path(X: RowsLike, y: ArrayLike, **options) -> PathResult:
    """Compute a certified path of quantile regressions, loss ``max((tau - 1) t, tau t)`` with ``t = y - x.w``."""
    return computed("quantile", X, y, options)


@takes("svr", without=BEHIND_KERNEL)
def svr_path(X: RowsLike, y: ArrayLike, **options) -> PathResult:
    """Compute a certified path of support vector regressions, loss ``max(0, |y - x.w| - epsilon)``."""
    return computed("svr", X, y, options)


@takes("sparse-lad")
def sparse_lad_path(X: RowsLike, y: ArrayLike, **options) -> SparsePathResult:
    r"""Compute a certified grid of least absolute deviations with an elastic net.

    ``min 1/s sum s_i |y_i - x_i.w| + alpha/2 ||w||^2 + beta ||w||_1``; ``s`` is the sum of the weights ``s_i``, by
    default the number of samples.

    Examples
    --------
    >>> from screenpath import sparse_lad_path
    >>> X, y = [[1.0, 0.5], [2.0, -1.0], [3.0, 0.0], [4.0, 1.0]], [2.0, 4.0, 60.0, 8.0]
    >>> sparse_lad_path(X, y, penalty="l1", betas=[0.1], intercept="none").coefficients.round(3).tolist()
    [[2.0, 0.0]]
    """
    return computed("sparse-lad", X, y, options)


@takes("sparse-quantile")
def sparse_quantile_path(X: RowsLike, y: ArrayLike, **options) -> SparsePathResult:
    """Compute a certified grid of quantile regressions with an elastic net, like :func:`sparse_lad_path`."""
    return computed("sparse-quantile", X, y, options)


@takes("sparse-svr")
def sparse_svr_path(X: RowsLike, y: ArrayLike, **options) -> SparsePathResult:
    """Compute a certified grid of support vector regressions with an elastic net, like :func:`sparse_lad_path`."""
    return computed("sparse-svr", X, y, options)


@takes("svm", *WITH_KERNEL, without=UNKNOWN_TO_KERNEL)
def kernel_svm_path(X: RowsLike, y: ArrayLike, **options) -> KernelPathResult:
    """Compute a certified path of kernel SVMs (Ogawa 2014, Section IV-D).

    Rules: ``none``, ``gap``, ``dvi`` (= ``bt1``), ``bt2``, ``it``, and the last three with ``+gap``. Solvers: ``smo``
    takes greedy pair steps only, ``newton`` (= ``auto``) finishes with Newton steps. The square of ``bias`` is added to
    the kernel; ``dtype`` is the type of the stored kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> from screenpath import kernel_svm_path
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> path = kernel_svm_path(X, [1, 1, -1, -1], gamma=2.0, grid=[1.0, 100.0])
    >>> np.sign(path.decision_function(X)).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    return computed("svm", X, y, options)


@takes("lad", *WITH_KERNEL, without=UNKNOWN_TO_KERNEL)
def kernel_lad_path(X: RowsLike, y: ArrayLike, **options) -> KernelPathResult:
    """Compute a certified path of least absolute deviations behind a kernel, like :func:`kernel_svm_path`."""
    return computed("lad", X, y, options)


@takes("quantile", *WITH_KERNEL, without=UNKNOWN_TO_KERNEL)
def kernel_quantile_path(X: RowsLike, y: ArrayLike, **options) -> KernelPathResult:
    """Compute a certified path of quantile regressions behind a kernel, like :func:`kernel_svm_path`."""
    return computed("quantile", X, y, options)


@takes("svr", *WITH_KERNEL, without=UNKNOWN_TO_KERNEL)
def kernel_svr_path(X: RowsLike, y: ArrayLike, **options) -> KernelPathResult:
    """Compute a certified path of support vector regressions behind a kernel, like :func:`kernel_svm_path`.

    The coefficients are ``alpha_i - alpha*_i``, as those of scikit-learn's ``SVR``.

    Examples
    --------
    >>> from screenpath import kernel_svr_path
    >>> path = kernel_svr_path([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 0.0, 1.0], gamma=2.0, grid=[0.1, 100.0])
    >>> path.predict([[0.0], [1.0]]).round(1).tolist()
    [0.1, 0.9]
    """
    return computed("svr", X, y, options)


@takes("l1svm")
def l1_svm_path(X: RowsLike, y: ArrayLike, **options) -> PathResult:
    r"""Compute a certified path of L1-regularised squared-hinge SVMs with a free bias (Zhao, Liu, Cox 2014).

    ``min_{w,b} 1/2 sum_i s_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1``; the bias is not penalised.

    Examples
    --------
    >>> from screenpath import l1_svm_path
    >>> X = [[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]]
    >>> path = l1_svm_path(X, [1, 1, -1, -1], grid=3)
    >>> [step.nnz_w for step in path.steps]
    [0, 1, 2]
    """
    return computed("l1svm", X, y, options)


@takes("sparse-svm")
def sparse_svm_path(X: RowsLike, y: ArrayLike, **options) -> SparsePathResult:
    r"""Compute a certified grid of sparse SVMs: smoothed hinge with an elastic net (Hong 2019).

    ``min 1/s sum s_i l(1 - m) + alpha/2 ||W||^2 + beta ||W||_1``, ``m`` the margin ``y_i x_i.w`` of two classes, or of
    more the margins ``x_i.(w_{y_i} - w_c)`` over all other classes ``c``; ``s`` is the sum of the weights ``s_i``, by
    default the number of samples. A free intercept needs Newton's solver, and two labels with the squared or the exact
    hinge. Otherwise each of more than two labels has one; for prepared features their sum is 0.

    Examples
    --------
    >>> from screenpath import sparse_svm_path
    >>> X = [[2.0, 0.1], [1.5, -0.2], [-1.0, 0.1], [-2.0, -0.1]]
    >>> path = sparse_svm_path(X, [1, 1, -1, -1], betas=2, alphas=3)
    >>> [step.status for step in path.steps][:2], path.coefficients.shape
    (['certified', 'certified'], (6, 2))
    """
    return computed("sparse-svm", X, y, options)


@takes("huber")
def huber_path(X: RowsLike, y: ArrayLike, **options) -> SparsePathResult:
    r"""Compute a certified grid of Huber regressions with an elastic net.

    ``min 1/s sum s_i h(y_i - x_i.w) + alpha/2 ||w||^2 + beta ||w||_1``, ``h(t) = t^2/(2 gamma)`` where ``|t| <= gamma``
    (`smoothing`), else ``|t| - gamma/2``; ``s`` is the sum of the weights ``s_i``, by default the number of samples.

    Examples
    --------
    >>> from screenpath import huber_path
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [2.0, 4.0, 60.0, 8.0]
    >>> huber_path(X, y, smoothing=0.1, betas=[1e-6], alphas=[1e-6]).coefficients.round(3).tolist()
    [[2.014]]
    """
    return computed("huber", X, y, options)
