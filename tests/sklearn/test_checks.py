"""All checks that scikit-learn has for estimators, with none expected to fail."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from screenpath.sklearn import (
    L1SVMClassifier,
    L1SVMClassifierCV,
    LADRegressor,
    LADRegressorCV,
    QuantileRegressor,
    QuantileRegressorCV,
    SparseSVMClassifier,
    SparseSVMClassifierCV,
    SVMClassifier,
    SVMClassifierCV,
    SVMRegressor,
    SVMRegressorCV,
)

# One check compares a fit with weights and a fit of repeated samples to 1e-7, another asks for what takes an intercept.
CLOSE = {"tol": 1e-10, "bias": 1.0}
ESTIMATORS = [
    SVMClassifier(**CLOSE),
    SVMClassifier(kernel="rbf", **CLOSE),
    L1SVMClassifier(),
    SparseSVMClassifier(),
    LADRegressor(**CLOSE),
    QuantileRegressor(**CLOSE),
    SVMRegressor(**CLOSE),
    SVMClassifierCV(grid=5, **CLOSE),
    L1SVMClassifierCV(grid=5),
    SparseSVMClassifierCV(betas=2, alphas=3),
    LADRegressorCV(grid=5, **CLOSE),
    QuantileRegressorCV(grid=5, **CLOSE),
    SVMRegressorCV(grid=5, **CLOSE),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def probable():
    """Return the checks of an estimator with probabilities, but for those that they decide as ``predict`` does."""
    checks = estimator_checks_generator(SVMClassifierCV(grid=5, calibration="sigmoid", **CLOSE))
    return [(e, check) for e, check in checks if getattr(check, "func", check).__name__ != "check_classifiers_train"]


@pytest.mark.parametrize(
    ("estimator", "check"), probable(), ids=lambda one: getattr(getattr(one, "func", one), "__name__", "")
)
def test_scikit_learn_checks_of_probabilities(estimator, check):
    check(estimator)
