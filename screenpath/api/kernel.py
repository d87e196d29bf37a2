"""The Python API of the kernel SVM."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.api.keywords import ClassWeight, Grid, checked_by
from screenpath.api.losses import make_grid
from screenpath.catalogue.builders import checked_weights, kernel_svm_model, row_weights
from screenpath.catalogue.spec import with_intercept
from screenpath.catalogue.specs import KERNEL_SVM, PARAMETERS
from screenpath.data.files.arrays import Given, stored_type
from screenpath.data.files.dataset import RowsLike
from screenpath.data.files.prepare import prepare
from screenpath.data.words.labels import binary_labels
from screenpath.engine.result import Result, path_options, walked
from screenpath.engine.saving import Origin
from screenpath.rows.gram import GramRows, TrainedRows
from screenpath.rows.kernel_functions import KernelFunction, parse_gamma


@dataclass(frozen=True, repr=False)
class KernelPathResult(Result):
    """A walked path of kernel SVMs.

    Parameters
    ----------
    rows : rows.gram.GramRows or rows.gram.TrainedRows
        The training data behind its kernel.

    Attributes
    ----------
    dual_coefficients : ndarray of shape (n_steps, n)
        ``y_i alpha_i`` with ``alpha = C theta``; 0 for all but the support vectors. Rows of nan for grid points that
        were not reached.
    intercepts : ndarray of shape (n_steps,)
        Free intercepts; zeros without one.
    """

    rows: GramRows | TrainedRows

    @property
    def dual_coefficients(self) -> np.ndarray:
        """Return ``y_i alpha_i``, one row a step."""
        return self.steps.coefficients[:, : self.rows.blocks.n]

    @property
    def intercepts(self) -> np.ndarray:
        """Return the intercepts, one a step."""
        return self.steps.coefficients[:, self.rows.blocks.n :].sum(axis=1)

    def intercept(self, step: int | None = None, **parameters: float) -> float:
        """Return the intercept of a step, see :meth:`position`; 0 without one."""
        return float(self.solved(step, **parameters).coefficients[self.rows.blocks.n :].sum())

    def coef(self, step: int | None = None, **parameters: float) -> np.ndarray:
        """Return ``y_i alpha_i`` of a step, one a sample, see :meth:`position`."""
        return np.array(self.solved(step, **parameters).coefficients[: self.rows.blocks.n])

    def _forms(self, X, step) -> np.ndarray:
        return self.rows.held_out(self.preparation.apply(self._rows(X))) @ step.coefficients


@checked_by("svm")
def kernel_svm_path(
    X: RowsLike, y: ArrayLike, *,
    kernel: str = "rbf", gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
    intercept: str | None = None, bias: float = 0.0,
    grid: Grid = 100, cmin: float = 1e-2, cmax: float = 10.0,
    rule: str = "dvi+gap", solver: str = "auto", shrinking: bool = True, tol: float = 1e-6,
    class_weight: ClassWeight = None, sample_weight: ArrayLike | None = None,
    scale: str = "none", storage: str = "auto", dtype: DTypeLike = np.float64,
    max_memory: int | str | None = None, gram: str = "auto",
    threads: int = 1, max_epochs: int = 100_000, time_limit: float | None = None,
    tell: Callable[[str], object] | None = None,
) -> KernelPathResult:  # fmt: skip
    """Compute a certified path of kernel SVMs (Ogawa 2014, Section IV-D).

    Parameters
    ----------
    X : ndarray, scipy.sparse or table (pandas, polars, pyarrow) of shape (n, d)
    y : array_like of shape (n,)
        Two labels; the larger is +1.
    kernel : {"rbf", "linear", "poly"}
        ``exp(-gamma ||x - z||^2)``, ``x.z``, ``(gamma x.z + coef0)^degree``.
    gamma : float or str, default "1/d"
        A number, or ``NUMBER/d`` with the number of features ``d``.
    degree : int, default 3
    coef0 : float, default 0
    intercept : {"none", "free", "penalised"}, optional
        ``free``: not penalised, as in LIBSVM; ``penalised``: a constant feature of the value ``bias``, 1 where none is
        given. None by default, or penalised with ``bias``.
    bias : float, default 0
        A constant feature of this value: its square is added to the kernel.
    grid, cmin, cmax
        As of :func:`screenpath.api.losses.loss_path`.
    rule : str, default "dvi+gap"
        ``none``, ``gap``, ``dvi`` (= ``bt1``), ``bt2``, ``it``, or one of the last three with ``+gap``.
    solver : {"auto", "newton", "smo"}
        ``smo`` takes greedy pair steps only; ``newton`` (= ``auto``) finishes them with Newton steps.
    shrinking : bool, default True
    tol, class_weight, sample_weight, storage, max_epochs, time_limit
        As of :func:`screenpath.api.losses.loss_path`.
    scale : {"none", "maxabs", "standard", "l2"}
        Of the data, before the kernel.
    dtype : float64 or float32
        Type of the stored kernel values; everything that decides or certifies is float64.
    max_memory : int or str, optional
        For the kernel matrix: bytes, or text such as ``"8G"``; half of the free memory by default.
    gram : {"auto", "full", "cache"}
        Precompute the kernel matrix where it fits, always, or never: then rows are computed as they are needed.
    threads : int, default 1
        For blocks of the kernel matrix; results do not depend on it.
    tell : callable, optional
        Called with one sentence about the memory before it is allocated.

    Returns
    -------
    KernelPathResult

    Raises
    ------
    DataError, UsageError
    ResourceError
        If the kernel matrix, or the cache of its rows, does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from screenpath import kernel_svm_path
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> path = kernel_svm_path(X, [1, 1, -1, -1], gamma=2.0, grid=[1.0, 100.0])
    >>> np.sign(path.decision_function(X)).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    began = time.monotonic()
    data = Given.of(X, y)
    options = path_options(tol, max_epochs, time_limit, began)
    kind: dict = {"intercept": intercept, "bias": bias, "kernel": kernel}
    spec = with_intercept(KERNEL_SVM, kind)
    screening, chosen, bias = spec.rule(rule), spec.solver(solver, shrinking=shrinking), kind["bias"]
    signs, _ = binary_labels(data.y, names=data.texts)
    given = checked_weights(data.y, sample_weight)
    weights = row_weights(data.y, data.class_weight(class_weight), given)
    values = make_grid(grid, cmin, cmax)
    prepared, preparation = prepare(data.X, scale, 0.0, storage, weights=given, narrow=True)
    function = KernelFunction(kernel, parse_gamma(gamma, data.X.shape[1]), degree, coef0, bias * bias)
    rows = GramRows(prepared, function, signs, max_memory, stored_type(dtype), gram, threads, tell, preparation.inexact)
    model = kernel_svm_model(rows, weights, kind["intercept"])
    found = walked(model, values, screening, chosen, options, blank=np.full(rows.n + spec.free_bias, np.nan))
    own = {"gamma": gamma, "degree": degree, "coef0": coef0}
    asked = {
        **kind, **{name: own[name] for name in PARAMETERS[kernel]}, "gram": gram, "rule": rule, "solver": solver,
        "tol": tol, "scale": scale, "storage": storage, "dtype": dtype, "threads": threads, "max_epochs": max_epochs,
        "max_memory": max_memory, "class_weight": class_weight, "weights": sample_weight,
    }  # fmt: skip
    origin = Origin("svm", data.X, data.written, asked, data.mark())
    return KernelPathResult(found, preparation, data.two_labels, rows, origin=origin, feature_names=data.names)
