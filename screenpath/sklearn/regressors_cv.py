"""Regressions whose C is chosen by cross-validation, whole paths at a time."""

from __future__ import annotations

from dataclasses import dataclass

from screenpath.sklearn.crossval import SearchedC
from screenpath.sklearn.regressors import LAD, SVR, Quantile


@dataclass(eq=False, repr=False)
class LADRegressorCV(SearchedC, LAD):
    """:class:`LADRegressor` with C chosen by cross-validation, as of :class:`screenpath.sklearn.SVMClassifierCV`.

    Parameters
    ----------
    grid, cmin, cmax, cv, step, n_jobs, until_turn, turn_points
        As of :class:`screenpath.sklearn.SVMClassifierCV`.
    scoring : str or callable, optional
        ``neg_mean_absolute_error`` (default), ``neg_mean_squared_error``, ``pinball``; of held-out samples.
        Or any scorer of scikit-learn, or ``f(estimator, X, y)``: the estimator knows the rows of a fold alone.
    intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressor`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    coef_, intercept_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`LADRegressor`; ``path_`` has all steps of the grid.
    """


@dataclass(eq=False, repr=False)
class QuantileRegressorCV(SearchedC, Quantile):
    """:class:`QuantileRegressor` with C chosen by cross-validation, as of :class:`LADRegressorCV`.

    Parameters
    ----------
    grid, cmin, cmax, cv, step, n_jobs, until_turn, turn_points
        As of :class:`LADRegressorCV`.
    intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressorCV`.
    scoring : str or callable, optional
        As of :class:`LADRegressorCV`, but that the default is ``pinball`` at ``tau``.
    tau : float, default 0.5
        Level, between 0 and 1.
    """


@dataclass(eq=False, repr=False)
class SVMRegressorCV(SearchedC, SVR):
    """:class:`SVMRegressor` with C chosen by cross-validation, as of :class:`LADRegressorCV`.

    Parameters
    ----------
    grid, cmin, cmax, cv, scoring, step, n_jobs, until_turn, turn_points
        As of :class:`LADRegressorCV`.
    intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressorCV`.
    epsilon : float, default 0.1
        Half width of the tube without loss, in the units of ``y``.
    """
