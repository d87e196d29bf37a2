"""Regressions: at one value of C, and with C chosen by cross-validation, whole paths at a time."""

from __future__ import annotations

from screenpath.sklearn.base import AtC, Regressor, estimator
from screenpath.sklearn.crossval import SearchedC


class LAD(Regressor):
    """The absolute error."""

    _model = "lad"


class Quantile(Regressor):
    """The pinball loss."""

    _model = "quantile"


class SVR(Regressor):
    """The absolute error beyond a tube."""

    _model = "svr"


@estimator
class LADRegressor(AtC, LAD):
    """Certified least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Examples
    --------
    >>> from screenpath.sklearn import LADRegressor
    >>> LADRegressor(C=10.0).fit([[1.0], [2.0], [3.0], [4.0]], [3.0, 5.0, 60.0, 9.0]).predict([[5.0]]).round(3).tolist()
    [11.0]
    """


@estimator
class QuantileRegressor(AtC, Quantile):
    """Certified quantile regression, loss ``max((tau - 1) t, tau t)`` of ``t = y - x.w``."""


@estimator
class SVMRegressor(AtC, SVR):
    """Certified support vector regression, loss ``max(0, |y - x.w| - epsilon)``."""


@estimator
class LADRegressorCV(SearchedC, LAD):
    """:class:`LADRegressor` with C chosen by cross-validation, as of :class:`screenpath.sklearn.SVMClassifierCV`."""


@estimator
class QuantileRegressorCV(SearchedC, Quantile):
    """:class:`QuantileRegressor` with C chosen by cross-validation, as of :class:`LADRegressorCV`."""


@estimator
class SVMRegressorCV(SearchedC, SVR):
    """:class:`SVMRegressor` with C chosen by cross-validation, as of :class:`LADRegressorCV`."""
