"""Kernel SVMs with a free intercept against a cone solver and SVC, at every grid point."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from tests.conftest import two_classes
from tests.plain import kernel_svm_path, svm_path
from tests.reference.test_kernel_svm import cone_value

GRID = [0.003, 0.05, 0.6, 8.0, 150.0]


@pytest.mark.parametrize("options", [{"kernel": "rbf", "gamma": 0.4}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["newton", "smo"])
def test_the_objective_is_that_of_a_cone_solver(options, weighted, solver):
    X, y = two_classes(60, 4, seed=3, noise=1.5)
    y[:50] = -np.abs(y[:50])  # a few of one class
    weights = np.random.default_rng(4).uniform(0.1, 2.0, 60) if weighted else np.ones(60)
    found = kernel_svm_path(
        X, y, grid=GRID, tol=1e-9, solver=solver, sample_weight=weights if weighted else None, intercept="free",
        **options,
    )  # fmt: skip
    K = rbf_kernel(X, gamma=0.4) if options["kernel"] == "rbf" else polynomial_kernel(X, degree=2, coef0=1, gamma=0.25)
    assert found.certified and found.intercepts.all()
    for C, step, b, row in zip(GRID, found.steps, found.intercepts, found.table(), strict=True):
        best = cone_value(y[:, None] * K * y, C, weights, y)
        assert step.primal == pytest.approx(best, rel=1e-6) and step.dual <= best * (1 + 1e-7)
        coefficients = step.coefficients[:-1]
        assert abs(coefficients.sum()) < 1e-13 * C * 60 and row["intercept_low"] <= b <= row["intercept_high"]
        forms = K @ coefficients
        for end in (row["intercept_low"], b, row["intercept_high"]):
            loss = (weights * np.maximum(0.0, 1.0 - y * (forms + end))).sum()
            assert 0.5 * coefficients @ forms + C * loss == pytest.approx(step.primal, rel=1e-10)


def test_objective_and_intercept_are_those_of_svc():
    X, y = two_classes(150, 5, seed=7, noise=1.5)
    X, y = X[: 110 + np.argmax(np.cumsum(y[110:] > 0) > 15)], y[: 110 + np.argmax(np.cumsum(y[110:] > 0) > 15)]
    for rule in ("dvi+gap", "none"):
        found = kernel_svm_path(X, y, gamma=0.2, intercept="free", grid=GRID, tol=1e-9, rule=rule)
        assert found.certified
        for k, (C, step) in enumerate(zip(GRID, found.steps, strict=True)):
            svc = SVC(C=C, gamma=0.2, tol=1e-9).fit(X, y)
            alpha = np.zeros(y.size)
            alpha[svc.support_] = svc.dual_coef_.ravel()
            primal = 0.5 * alpha @ rbf_kernel(X, gamma=0.2) @ alpha
            primal += C * np.maximum(0.0, 1.0 - y * svc.decision_function(X)).sum()
            assert step.dual <= primal * (1 + 1e-12) and step.primal == pytest.approx(primal, rel=1e-5)
            low, high = (found.table()[k][name] for name in ("intercept_low", "intercept_high"))
            assert low - 1e-4 <= svc.intercept_[0] <= high + 1e-4
            np.testing.assert_allclose(found.decision_function(X, k), svc.decision_function(X), atol=2e-3)


def test_the_linear_kernel_is_the_linear_model():
    X, y = two_classes(150, 6, seed=9)
    options = {"grid": 12, "cmin": 1e-3, "cmax": 50.0, "tol": 1e-10, "scale": "standard", "intercept": "free"}
    kernel, linear = kernel_svm_path(X, y, kernel="linear", **options), svm_path(X, y, **options)
    assert kernel.certified and linear.certified
    values = X @ linear.coefficients.T + linear.intercepts
    for k, (a, b) in enumerate(zip(kernel.steps, linear.steps, strict=True)):
        assert a.primal == pytest.approx(b.primal, rel=1e-9)
        np.testing.assert_allclose(kernel.decision_function(X, k), values[:, k], atol=2e-4)


def test_where_no_weights_help_the_path_is_one_point():
    """The minority's mean is in the middle of the majority: w = 0 is best for every C."""
    X = np.array([[0.0], [-1.0], [1.0], [-2.0], [2.0]])
    path = kernel_svm_path(X, [1, -1, -1, -1, -1], kernel="linear", grid=[1e-3, 1.0, 1e3], tol=1e-8, intercept="free")
    assert path.certified and path.intercepts == pytest.approx(-1.0, abs=1e-6)
    assert np.abs(path.dual_coefficients @ X).max() == pytest.approx(0.0, abs=1e-6)
