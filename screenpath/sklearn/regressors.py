"""Regressions at one value of C."""

from __future__ import annotations

from typing import Any

from screenpath.sklearn.base import Regressor, value_errors
from screenpath.sklearn.classifiers import C_VALUE


class LADRegressor(Regressor):
    """Certified least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Parameters
    ----------
    C : float, default 1
        Weight of the sum of losses.
    intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`screenpath.sklearn.SVMClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`screenpath.sklearn.SVMClassifier`.

    Examples
    --------
    >>> from screenpath.sklearn import LADRegressor
    >>> LADRegressor(C=10.0).fit([[1.0], [2.0], [3.0], [4.0]], [3.0, 5.0, 60.0, 9.0]).predict([[5.0]]).round(3).tolist()
    [11.0]
    """

    _model = "lad"

    def __init__(
        self, C=1.0, *, intercept=None, bias=0.0, scale="none", rule="dvi+gap", solver="auto", tol=1e-6,
        max_epochs=100_000, threads=1, seed=0,
    ):  # fmt: skip
        self.C = C
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
        return {"c": C_VALUE.checked(self.C)}

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame of shape (n, d)
        y : array_like of shape (n,)
        sample_weight : array_like of shape (n,), optional
            How often each sample stands in the data.

        Returns
        -------
        estimator
            Itself.
        """
        with value_errors():
            self._take(self._problem(X, y, sample_weight).paths(), 0)
        return self


class QuantileRegressor(LADRegressor):
    """Certified quantile regression, loss ``max((tau - 1) t, tau t)`` of ``t = y - x.w``.

    Parameters
    ----------
    C, intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressor`.
    tau : float, default 0.5
        Level, between 0 and 1.
    """

    _model = "quantile"
    _options = ("tau", *LADRegressor._options)

    def __init__(
        self, C=1.0, *, tau=0.5, intercept=None, bias=0.0, scale="none", rule="dvi+gap", solver="auto", tol=1e-6,
        max_epochs=100_000, threads=1, seed=0,
    ):  # fmt: skip
        super().__init__(
            C, intercept=intercept, bias=bias, scale=scale, rule=rule, solver=solver, tol=tol, max_epochs=max_epochs,
            threads=threads, seed=seed,
        )  # fmt: skip
        self.tau = tau


class SVMRegressor(LADRegressor):
    """Certified support vector regression, loss ``max(0, |y - x.w| - epsilon)``.

    Parameters
    ----------
    C, intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressor`.
    epsilon : float, default 0.1
        Half width of the tube without loss, in the units of ``y``.
    """

    _model = "svr"
    _options = ("epsilon", *LADRegressor._options)

    def __init__(
        self, C=1.0, *, epsilon=0.1, intercept=None, bias=0.0, scale="none", rule="dvi+gap", solver="auto", tol=1e-6,
        max_epochs=100_000, threads=1, seed=0,
    ):  # fmt: skip
        super().__init__(
            C, intercept=intercept, bias=bias, scale=scale, rule=rule, solver=solver, tol=tol, max_epochs=max_epochs,
            threads=threads, seed=seed,
        )  # fmt: skip
        self.epsilon = epsilon
