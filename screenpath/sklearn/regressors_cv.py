"""Regressions whose C is chosen by cross-validation, whole paths at a time."""

from __future__ import annotations

from typing import Any

from screenpath.sklearn.crossval import WeightedSearch, c_grid
from screenpath.sklearn.regressors import LADRegressor, QuantileRegressor, SVMRegressor


class LADRegressorCV(WeightedSearch, LADRegressor):
    """:class:`LADRegressor` with C chosen by cross-validation.

    One certified path for every fold and one on all data, warm-started and screened.

    Parameters
    ----------
    grid : int or sequence of float, default 100
        Number of log-spaced values of C from ``cmin`` to ``cmax``, or the values.
    cmin, cmax : float
        Ends of the log-spaced grid.
    cv : int, splitter or iterable, optional
        As everywhere in scikit-learn; 5 folds by default, of classifiers stratified.
    scoring : str or callable, optional
        ``neg_mean_absolute_error`` (default), ``neg_mean_squared_error``, ``pinball``; of held-out samples.
        Or any scorer of scikit-learn, or ``f(estimator, X, y)``: the estimator knows the rows of a fold alone.
    step : {"best", "one-se"}
        Best mean score, of equal ones the most regularised; or the most regularised within one standard error of it.
    n_jobs : int, optional
        Processes that share the folds; the results are the same. A script needs ``if __name__ == "__main__":``.
    intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressor`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    coef_, intercept_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`LADRegressor`; ``path_`` has all steps of the grid.
    """

    def __init__(
        self, grid=100, cmin=1e-2, cmax=10.0, *, cv=None, scoring=None, step="best", n_jobs=None, intercept=None,
        bias=0.0, scale="none", rule="dvi+gap", solver="auto", tol=1e-6, max_epochs=100_000, threads=1, seed=0,
    ):  # fmt: skip
        self.grid = grid
        self.cmin = cmin
        self.cmax = cmax
        self.cv = cv
        self.scoring = scoring
        self.step = step
        self.n_jobs = n_jobs
        self.intercept = intercept
        self.bias = bias
        self.scale = scale
        self.rule = rule
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.threads = threads
        self.seed = seed

    def _grid_options(self) -> dict[str, Any]:
        return c_grid(self.grid, self.cmin, self.cmax)


class QuantileRegressorCV(WeightedSearch, QuantileRegressor):
    """:class:`QuantileRegressor` with C chosen by cross-validation.

    One certified path for every fold and one on all data, warm-started and screened.

    Parameters
    ----------
    grid : int or sequence of float, default 100
        Number of log-spaced values of C from ``cmin`` to ``cmax``, or the values.
    cmin, cmax : float
        Ends of the log-spaced grid.
    cv : int, splitter or iterable, optional
        As everywhere in scikit-learn; 5 folds by default, of classifiers stratified.
    scoring : str or callable, optional
        ``pinball`` at ``tau`` (default), ``neg_mean_absolute_error``, ``neg_mean_squared_error``; of held-out samples.
        Or any scorer of scikit-learn, or ``f(estimator, X, y)``: the estimator knows the rows of a fold alone.
    step : {"best", "one-se"}
        Best mean score, of equal ones the most regularised; or the most regularised within one standard error of it.
    n_jobs : int, optional
        Processes that share the folds; the results are the same. A script needs ``if __name__ == "__main__":``.
    tau, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`QuantileRegressor`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    coef_, intercept_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`QuantileRegressor`; ``path_`` has all steps of the grid.
    """

    def __init__(
        self, grid=100, cmin=1e-2, cmax=10.0, *, cv=None, scoring=None, step="best", n_jobs=None, tau=0.5,
        intercept=None, bias=0.0, scale="none", rule="dvi+gap", solver="auto", tol=1e-6, max_epochs=100_000, threads=1,
        seed=0,
    ):  # fmt: skip
        self.grid = grid
        self.cmin = cmin
        self.cmax = cmax
        self.cv = cv
        self.scoring = scoring
        self.step = step
        self.n_jobs = n_jobs
        self.tau = tau
        self.intercept = intercept
        self.bias = bias
        self.scale = scale
        self.rule = rule
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.threads = threads
        self.seed = seed

    def _grid_options(self) -> dict[str, Any]:
        return c_grid(self.grid, self.cmin, self.cmax)


class SVMRegressorCV(WeightedSearch, SVMRegressor):
    """:class:`SVMRegressor` with C chosen by cross-validation.

    One certified path for every fold and one on all data, warm-started and screened.

    Parameters
    ----------
    grid : int or sequence of float, default 100
        Number of log-spaced values of C from ``cmin`` to ``cmax``, or the values.
    cmin, cmax : float
        Ends of the log-spaced grid.
    cv : int, splitter or iterable, optional
        As everywhere in scikit-learn; 5 folds by default, of classifiers stratified.
    scoring : str or callable, optional
        ``neg_mean_absolute_error`` (default), ``neg_mean_squared_error``, ``pinball``; of held-out samples.
        Or any scorer of scikit-learn, or ``f(estimator, X, y)``: the estimator knows the rows of a fold alone.
    step : {"best", "one-se"}
        Best mean score, of equal ones the most regularised; or the most regularised within one standard error of it.
    n_jobs : int, optional
        Processes that share the folds; the results are the same. A script needs ``if __name__ == "__main__":``.
    epsilon, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`SVMRegressor`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    coef_, intercept_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`SVMRegressor`; ``path_`` has all steps of the grid.
    """

    def __init__(
        self, grid=100, cmin=1e-2, cmax=10.0, *, cv=None, scoring=None, step="best", n_jobs=None, epsilon=0.1,
        intercept=None, bias=0.0, scale="none", rule="dvi+gap", solver="auto", tol=1e-6, max_epochs=100_000, threads=1,
        seed=0,
    ):  # fmt: skip
        self.grid = grid
        self.cmin = cmin
        self.cmax = cmax
        self.cv = cv
        self.scoring = scoring
        self.step = step
        self.n_jobs = n_jobs
        self.epsilon = epsilon
        self.intercept = intercept
        self.bias = bias
        self.scale = scale
        self.rule = rule
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.threads = threads
        self.seed = seed

    def _grid_options(self) -> dict[str, Any]:
        return c_grid(self.grid, self.cmin, self.cmax)
