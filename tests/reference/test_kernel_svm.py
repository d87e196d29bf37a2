"""Kernel SVM paths against a cone solver, scikit-learn's SVC and the linear model, at every grid point."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from tests.conftest import two_classes
from tests.plain import kernel_svm_path, svm_path

GRID = [0.003, 0.05, 0.6, 8.0, 150.0]


def cone_value(Q, C, weights, y=None):
    """Return the optimal value of the dual, ``max sum alpha - alpha'Q alpha / 2``; of labels ``y.alpha`` is 0."""
    root = np.linalg.cholesky(Q + 1e-13 * np.trace(Q) * np.eye(len(Q)))
    alpha = cp.Variable(len(Q))
    limits = [alpha >= 0, alpha <= C * weights, *([] if y is None else [y @ alpha == 0])]
    problem = cp.Problem(cp.Maximize(cp.sum(alpha) - 0.5 * cp.sum_squares(root.T @ alpha)), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value


@pytest.mark.parametrize("options", [{"kernel": "rbf", "gamma": 0.4}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["newton", "smo"])
def test_objective_equals_the_cone_solvers(options, weighted, solver):
    X, y = two_classes(60, 4, seed=3, noise=1.5)
    weights = np.random.default_rng(4).uniform(0.1, 2.0, 60) if weighted else np.ones(60)
    found = kernel_svm_path(
        X, y, grid=GRID, tol=1e-9, solver=solver, sample_weight=weights if weighted else None, rule="it+gap", **options
    )
    K = (
        rbf_kernel(X, gamma=0.4)
        if options["kernel"] == "rbf"
        else polynomial_kernel(X, degree=2, coef0=1.0, gamma=0.25)
    )
    assert found.certified
    for C, step in zip(GRID, found.steps, strict=True):
        assert step.primal == pytest.approx(cone_value(y[:, None] * K * y, C, weights), rel=1e-7)


@pytest.mark.parametrize("bias", [10.0, 100.0])
def test_a_constant_kernel_reaches_scikit_learns_free_bias(bias):
    """SVC's bias is free; a constant feature of value B costs b^2 / (2 B^2) more, at most, and never less."""
    X, y = two_classes(120, 5, seed=7, noise=1.5)
    found = kernel_svm_path(X, y, gamma=0.2, bias=bias, grid=GRID, tol=1e-8)
    assert found.certified
    for C, step in zip(GRID, found.steps, strict=True):
        svc = SVC(C=C, gamma=0.2, tol=1e-8).fit(X, y)
        alpha = np.zeros(len(y))
        alpha[svc.support_] = svc.dual_coef_.ravel() * y[svc.support_]
        Q = y[:, None] * rbf_kernel(X, gamma=0.2) * y
        w_sq, slack = alpha @ Q @ alpha, np.maximum(0.0, 1.0 - y * svc.decision_function(X))
        primal, dual = 0.5 * w_sq + C * slack.sum(), alpha.sum() - 0.5 * w_sq
        assert primal - dual < 1e-4 * primal  # SVC's own accuracy
        price = 0.5 * svc.intercept_[0] ** 2 / bias**2
        assert step.dual <= (primal + price) * (1 + 1e-10) and step.primal >= dual * (1 - 1e-10)
        assert step.primal == pytest.approx(primal, rel=1e-4, abs=2 * price)


def test_a_path_without_bias_equals_svc_where_the_bias_makes_no_difference():
    """Every row stands once with each sign of both: the problem is odd, so the best bias is 0."""
    X, y = two_classes(40, 3, seed=8)
    X, y = np.vstack([X, -X]), np.concatenate([y, -y])
    found = kernel_svm_path(X, y, kernel="linear", grid=GRID, tol=1e-9)
    for C, step, coefficients in zip(GRID, found.steps, found.dual_coefficients, strict=True):
        svc = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
        w = svc.coef_.ravel()
        assert abs(svc.intercept_[0]) < 1e-4
        primal = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        assert step.dual <= primal and step.primal == pytest.approx(primal, rel=1e-5)  # SVC's own accuracy
        np.testing.assert_allclose(X.T @ coefficients, w, atol=1e-4)


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_linear_kernel_is_the_linear_model(scale, bias):
    X, y = two_classes(150, 6, seed=9)
    options = {"grid": 15, "cmin": 1e-3, "cmax": 50.0, "tol": 1e-10, "scale": scale, "bias": bias}
    kernel, linear = kernel_svm_path(X, y, kernel="linear", **options), svm_path(X, y, **options)
    for a, b in zip(kernel.steps, linear.steps, strict=True):
        assert a.primal == pytest.approx(b.primal, rel=1e-9)
        assert a.n_L == b.n_L
    values = X @ linear.coefficients.T + linear.intercepts
    for k in range(len(kernel.steps)):
        np.testing.assert_allclose(kernel.decision_function(X, k), values[:, k], atol=2e-4)
