"""The Python API of the sparse SVM: a grid of (alpha, beta), binary and multi-class."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.api.keywords import ClassWeight, Values, checked_by
from screenpath.catalogue.builders import checked_weights, row_weights
from screenpath.catalogue.spec import free_sparse_intercept, with_intercept
from screenpath.catalogue.specs import SPARSE_SVM, hinge_width
from screenpath.data.files.arrays import Given
from screenpath.data.files.dataset import RowsLike
from screenpath.data.files.prepare import prepare
from screenpath.engine.result import PathResult, completed, path_options
from screenpath.engine.saving import Origin
from screenpath.errors import DataError
from screenpath.problem.grid import beta_values, explicit_grid, grid_pairs
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.problem.sparse_model import sparse_model
from screenpath.problem.sparse_types import SparseVector
from screenpath.rows.views import Views, check_not_zero
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.walk.workers import walk_grid


@dataclass(frozen=True, repr=False)
class SparsePathResult(PathResult):
    """A walked grid, the rows of one ``beta`` after the other; more than two labels have one block of weights each."""

    @property
    def classes(self) -> np.ndarray:
        """Return the labels, sorted: numbers as float64, texts as they are. Two: the larger is +1."""
        return np.array(self.labels)

    def _weights(self, step) -> tuple:
        blocks = self._blocks(step)
        return self.preparation.original(blocks[0] if len(blocks) == 1 else blocks)

    def _blocks(self, step) -> np.ndarray:
        return step.coefficients.dense().reshape(1 if self.classes.size == 2 else self.classes.size, -1)

    def _original(self) -> tuple:
        return self._each(0), self._each(1)

    def _each(self, part: int) -> np.ndarray:
        found = [[self.preparation.original(w)[part] for w in self._blocks(step)] for step in self.steps]
        out = np.array(found)
        return out[:, 0] if self.classes.size == 2 else out

    @property
    def coefficients(self) -> np.ndarray:
        """Return the weights in the units of the data, of shape (steps, d) or (steps, classes, d).

        Sparse where :class:`PathResult` has them so; of several classes then a list with a csr_array a step.
        """
        return self.preparation.widened(self._each(0))

    @property
    def intercepts(self) -> np.ndarray:
        """Return the intercepts in the units of the data, of shape (steps,) or (steps, classes)."""
        return self._each(1)


def encode_labels(y):
    """Return the sorted labels, a code for each sample, and the number of weight blocks.

    Returns
    -------
    classes : ndarray
    codes : ndarray of int64 of shape (n,)
        -1 and +1 for two labels (the larger is +1), else numbers from 0.
    blocks : int
        1 for two labels, else the number of labels.

    Raises
    ------
    DataError
        For fewer than two labels.
    """
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise DataError(f"all labels are {classes[0]:g}: a classifier needs at least two", "check the label column")
    codes = codes.astype(np.int64).ravel()
    if classes.size == 2:
        return classes, 2 * codes - 1, 1
    return classes, codes, int(classes.size)


@checked_by("sparse-svm")
def sparse_svm_path(
    X: RowsLike, y: ArrayLike, *,
    betas: int | Values = 10, alphas: int | Values = 100, beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01,
    references: int = 0, loss: str = "hinge", smoothing: float = 0.5,
    class_weight: ClassWeight = None, sample_weight: ArrayLike | None = None,
    rule: str = "sifs+gap", first: str = "features", solver: str = "auto", jobs: int = 1, tol: float = 1e-6,
    intercept: str | None = None, bias: float = 0.0,
    scale: str = "none", storage: str = "auto", dtype: DTypeLike = np.float64,
    seed: int = 0, max_epochs: int = 100_000, time_limit: float | None = None,
) -> SparsePathResult:  # fmt: skip
    r"""Compute a certified grid of sparse SVMs: smoothed hinge with an elastic net (Hong 2019).

    ``min 1/s sum s_i l(1 - m) + alpha/2 ||W||^2 + beta ||W||_1``, ``m`` the margin ``y_i x_i.w`` of two classes, or of
    more the margins ``x_i.(w_{y_i} - w_c)`` over all other classes ``c``; ``s`` is the sum of the weights ``s_i``, the
    number of samples where there are none.

    Parameters
    ----------
    X : ndarray, scipy.sparse or table (pandas, polars, pyarrow) of shape (n, d)
    y : array_like of shape (n,)
        At least two labels.
    betas : int or sequence of float, default 10
        Number of values of ``beta``, log-spaced from ``beta_max`` down to ``beta_min_ratio * beta_max``; or the values.
    alphas : int or sequence of float, default 100
        Number of values of ``alpha`` for each ``beta``, log-spaced from ``alpha_max(beta)`` down to
        ``alpha_min_ratio * alpha_max(beta)``; or the values. 0 may be one of them, the last of each ``beta``: the L1
        penalty alone, certified by dual points with ``|u_j| <= beta`` for every feature.
    beta_min_ratio, alpha_min_ratio : float
        In (0, 1].
    references : int, default 0
        With explicit ``alphas``: further grid points, log-spaced, before each of them; screening needs near ones.
    loss : {"hinge", "squared-hinge"}
        ``l``: the hinge, smoothed, or ``1/2 max(0, 1 - m)^2``, whose free intercept is for two labels.
    smoothing : float, default 0.5
        ``gamma`` of the smoothed hinge, in [0, 1). With 0 the hinge is the exact one: each point is solved by a
        continuation of smoothed problems, and certified with the exact hinge; a free intercept is then for two labels.
    class_weight, sample_weight
        Weights ``s_i``, as of :func:`screenpath.api.losses.loss_path`.
    rule : str, default "sifs+gap"
        ``sifs``, ``iss``, ``ifs``, each also with ``+gap``; ``gap`` or ``none``.
    first : {"features", "samples"}
        Which triggering SIFS begins with; the decisions are the same.
    solver : {"auto", "newton", "sdca", "acc-sdca"}
    jobs : int, default 1
        Processes; the rows of different ``beta`` are shared out. Results do not depend on it.
    intercept : {"none", "free", "penalised"}, optional
        As of :func:`screenpath.api.losses.loss_path`; ``free`` is for Newton's solver. Of more than two labels each has
        one; with the features as the model sees them their sum is 0.
    tol, bias, scale, storage, dtype, seed, max_epochs, time_limit
        As of :func:`screenpath.api.losses.loss_path`.

    Returns
    -------
    SparsePathResult

    Raises
    ------
    DataError, UsageError

    Examples
    --------
    >>> from screenpath import sparse_svm_path
    >>> X = [[2.0, 0.1], [1.5, -0.2], [-1.0, 0.1], [-2.0, -0.1]]
    >>> path = sparse_svm_path(X, [1, 1, -1, -1], betas=2, alphas=3)
    >>> [step.status for step in path.steps][:2], path.coefficients.shape
    (['certified', 'certified'], (6, 2))
    """
    began = time.monotonic()
    data = Given.of(X, y)
    classes, codes, blocks = encode_labels(data.y)
    options = path_options(tol, max_epochs, time_limit, began)
    kind: dict = {"intercept": intercept, "bias": bias}
    asked_alpha = None if np.ndim(alphas) == 0 else explicit_grid(alphas, zero=True).tolist()
    width = hinge_width({"loss": loss, "smoothing": smoothing, "rule": rule, "solver": solver, "alpha": asked_alpha})
    spec = with_intercept(SPARSE_SVM, kind, free_sparse_intercept)
    bias = kind["bias"]
    screening, chosen = parse_sparse_rule(rule, first), spec.solver(solver, seed)
    given = checked_weights(data.y, sample_weight)
    weights = row_weights(data.y, data.class_weight(class_weight), given)
    prepared, preparation = prepare(data.X, scale, bias, storage, dtype, given, narrow=True, free=spec.free_bias)
    rows = Views(prepared)
    check_not_zero(rows)
    model = sparse_model(rows, codes, blocks, width, weights, kind["intercept"])
    if spec.free_bias:  # the model's own, last among its coefficients
        preparation = replace(preparation, bias=1.0)
    values = beta_values(model, betas, beta_min_ratio)
    pairs = grid_pairs(model, values, alphas, alpha_min_ratio, references)
    grid = SparseGrid(model)
    found = [step for step, _ in walk_grid(grid, pairs, screening, chosen, options, jobs=jobs)]
    size = blocks * (rows.d + spec.free_bias)
    blank = SparseVector(np.arange(size), np.full(size, np.nan), size)
    asked = {
        "betas" if np.ndim(betas) == 0 else "beta": betas, "alphas" if np.ndim(alphas) == 0 else "alpha": alphas,
        "references": references, "loss": loss, "smoothing": smoothing, "rule": rule, "first": first, "solver": solver,
        "tol": tol,
        "intercept": kind["intercept"], "bias": bias, "scale": scale, "storage": storage, "dtype": dtype, "seed": seed,
        "max_epochs": max_epochs, "class_weight": class_weight, "weights": sample_weight,
        **({"beta_min_ratio": beta_min_ratio} if np.ndim(betas) == 0 else {}),
        **({"alpha_min_ratio": alpha_min_ratio} if np.ndim(alphas) == 0 else {}),
    }  # fmt: skip
    labels = data.two_labels if data.truths else data.texts or tuple(classes.tolist())
    origin = Origin("sparse-svm", data.X, data.written, asked, data.mark())
    steps = completed([found], grid, pairs, blank)
    return SparsePathResult(steps, preparation, labels, origin=origin, feature_names=data.names)
