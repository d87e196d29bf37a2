"""Estimators for scikit-learn: the library's models behind ``fit`` and ``predict``.

Each is a declared model (``screenpath.catalogue.specs``) with its options as parameters, under the same names and with
the same defaults but for the intercept: as everywhere in scikit-learn there is one unless it is declined, a free one
(``bias=B``: a penalised one, that of a constant feature of this value; :class:`SparseSVMClassifier` has no other).
``C`` multiplies the sum of losses, as in scikit-learn. More than two classes are set each
against the rest; :class:`SparseSVMClassifier` takes them at once.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("screenpath.sklearn needs scikit-learn 1.6 or newer: pip install 'screenpath[sklearn]'")

from screenpath.sklearn.classifiers import (
    L1SVMClassifier,
    L1SVMClassifierCV,
    SparseSVMClassifier,
    SparseSVMClassifierCV,
    SVMClassifier,
    SVMClassifierCV,
)
from screenpath.sklearn.export import fitted
from screenpath.sklearn.regressors import (
    LADRegressor,
    LADRegressorCV,
    QuantileRegressor,
    QuantileRegressorCV,
    SVMRegressor,
    SVMRegressorCV,
)

__all__ = [
    "L1SVMClassifier",
    "L1SVMClassifierCV",
    "LADRegressor",
    "LADRegressorCV",
    "QuantileRegressor",
    "QuantileRegressorCV",
    "SVMClassifier",
    "SVMClassifierCV",
    "SVMRegressor",
    "SVMRegressorCV",
    "SparseSVMClassifier",
    "SparseSVMClassifierCV",
    "fitted",
]
