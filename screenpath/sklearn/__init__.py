"""Estimators for scikit-learn: the library's models behind ``fit`` and ``predict``.

Each is a declared model (``screenpath.catalogue.specs``); its options are parameters with the same names and defaults.
The intercept is free, as elsewhere in scikit-learn (``bias=B`` makes a penalised one; :class:`SparseSVMClassifier` with
more than two classes has no other). ``C`` multiplies the sum of losses, as in scikit-learn. More than two classes are
learned one against the rest, or each pair of them (``SVMClassifier(multi_class="ovo")``), by
:class:`SparseSVMClassifier` jointly.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("screenpath.sklearn needs scikit-learn 1.6 or newer: pip install 'screenpath[sklearn]'")

from screenpath.sklearn import estimators  # noqa: F401  # which makes those of ``ESTIMATORS``
from screenpath.sklearn.base import ESTIMATORS
from screenpath.sklearn.export import fitted

globals().update(ESTIMATORS)
__all__ = [*sorted(ESTIMATORS), "fitted"]
