"""Regressions at one value of C."""

from __future__ import annotations

from dataclasses import dataclass

from screenpath.sklearn.base import AtC, BoxEstimator, Regressor


class LAD(Regressor, BoxEstimator):
    """The absolute error."""

    _model = "lad"


@dataclass(eq=False, repr=False, kw_only=True)
class Quantile(Regressor, BoxEstimator):
    """The pinball loss."""

    tau: float = 0.5

    _model = "quantile"


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(Regressor, BoxEstimator):
    """The absolute error beyond a tube."""

    epsilon: float = 0.1

    _model = "svr"


@dataclass(eq=False, repr=False)
class LADRegressor(AtC, LAD):
    """Certified least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Parameters
    ----------
    C, intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
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


@dataclass(eq=False, repr=False)
class QuantileRegressor(AtC, Quantile):
    """Certified quantile regression, loss ``max((tau - 1) t, tau t)`` of ``t = y - x.w``.

    Parameters
    ----------
    C, intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressor`.
    tau : float, default 0.5
        Level, between 0 and 1.
    """


@dataclass(eq=False, repr=False)
class SVMRegressor(AtC, SVR):
    """Certified support vector regression, loss ``max(0, |y - x.w| - epsilon)``.

    Parameters
    ----------
    C, intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`LADRegressor`.
    epsilon : float, default 0.1
        Half width of the tube without loss, in the units of ``y``.
    """
