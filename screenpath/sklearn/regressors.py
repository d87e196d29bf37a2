"""Regressors: at one value of C, and with C chosen by cross-validation."""

from __future__ import annotations

from screenpath.sklearn.base import AtC, Regressor, estimator
from screenpath.sklearn.crossval import SearchedC


@estimator
class LADRegressor(AtC, Regressor):
    """Certified least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Examples
    --------
    >>> from screenpath.sklearn import LADRegressor
    >>> LADRegressor(C=10.0).fit([[1.0], [2.0], [3.0], [4.0]], [3.0, 5.0, 60.0, 9.0]).predict([[5.0]]).round(3).tolist()
    [11.0]
    """

    _model = "lad"


@estimator
class QuantileRegressor(AtC, Regressor):
    """Certified quantile regression, loss ``max((tau - 1) t, tau t)`` of ``t = y - x.w``."""

    _model = "quantile"


@estimator
class SVMRegressor(AtC, Regressor):
    """Certified support vector regression, loss ``max(0, |y - x.w| - epsilon)``."""

    _model = "svr"


@estimator
class LADRegressorCV(SearchedC, Regressor):
    """:class:`LADRegressor` with C chosen by cross-validation, like :class:`screenpath.sklearn.SVMClassifierCV`."""

    _model = "lad"


@estimator
class QuantileRegressorCV(SearchedC, Regressor):
    """:class:`QuantileRegressor` with C chosen by cross-validation, like :class:`LADRegressorCV`."""

    _model = "quantile"


@estimator
class SVMRegressorCV(SearchedC, Regressor):
    """:class:`SVMRegressor` with C chosen by cross-validation, like :class:`LADRegressorCV`."""

    _model = "svr"
