"""Objectives of the box models against independent solvers, at every grid point."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor
from sklearn.svm import LinearSVC, LinearSVR

from tests.catalogue.test_targets import regression
from tests.conftest import two_classes
from tests.plain import lad_path, quantile_path, svm_path, svr_path

GRID = [0.002, 0.04, 0.5, 6.0]


def cone_value(X, y, C, loss, weights):
    w = cp.Variable(X.shape[1])
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * cp.sum(cp.multiply(weights, loss(X, y, w)))))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value


CASES = {
    "svm": (svm_path, {}, lambda X, y, w: cp.pos(1 - cp.multiply(y, X @ w))),
    "lad": (lad_path, {}, lambda X, y, w: cp.abs(y - X @ w)),
    "quantile": (quantile_path, {"tau": 0.9}, lambda X, y, w: cp.maximum(-0.1 * (y - X @ w), 0.9 * (y - X @ w))),
    "svr": (svr_path, {"epsilon": 0.4}, lambda X, y, w: cp.pos(cp.abs(y - X @ w) - 0.4)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_equals_the_cone_solvers(name, weighted):
    path, options, loss = CASES[name]
    X, y = two_classes(50, 4, seed=3) if name == "svm" else regression(50, 4, seed=3)
    weights = np.random.default_rng(4).uniform(0.0, 2.0, 50) if weighted else np.ones(50)
    found = path(X, y, grid=GRID, tol=1e-9, sample_weight=weights if weighted else None, **options)
    for C, step in zip(GRID, found.steps, strict=True):
        assert step.primal == pytest.approx(cone_value(X, y, C, loss, weights), rel=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_between_steps_the_cone_solver_is_not_better_by_more_than_the_gap(name):
    path, options, loss = CASES[name]
    X, y = two_classes(50, 4, seed=3) if name == "svm" else regression(50, 4, seed=3)
    found = path(X, y, grid=GRID, tol=1e-9, **options)
    for C in (0.003, 0.1, 3.0):
        here = found.at(C)
        value = 0.5 * here.coef @ here.coef + C * loss(X, y, here.coef).value.sum()
        apart = value - cone_value(X, y, C, loss, np.ones(50))
        assert -1e-7 * value <= apart <= here.gap + 1e-8 * value


def test_objective_is_not_above_scikit_learns():
    X, y = two_classes(80, 5, seed=5)
    Z, target = regression(80, 5, seed=5)
    svm, lad = svm_path(X, y, grid=GRID, tol=1e-9), lad_path(Z, target, grid=GRID, tol=1e-9)
    svr = svr_path(Z, target, epsilon=0.4, grid=GRID, tol=1e-9)
    how = {"fit_intercept": False, "tol": 1e-9, "max_iter": 10**6, "random_state": 0}
    for k, C in enumerate(GRID):
        w = LinearSVC(loss="hinge", C=C, **how).fit(X, y).coef_.ravel()
        primal = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        assert svm.steps[k].dual <= primal * (1 + 1e-12) and svm.steps[k].primal == pytest.approx(primal, rel=1e-5)
        for epsilon, found in ((0.0, lad), (0.4, svr)):
            w = LinearSVR(C=C, epsilon=epsilon, **how).fit(Z, target).coef_
            primal = 0.5 * w @ w + C * np.maximum(0.0, np.abs(target - Z @ w) - epsilon).sum()
            assert found.steps[k].dual <= primal * (1 + 1e-12)
            assert found.steps[k].primal == pytest.approx(primal, rel=1e-5)


def test_a_large_c_approaches_plain_quantile_regression():
    X, y = regression(60, 3, seed=6)
    found = quantile_path(X, y, tau=0.7, grid=[1e5], tol=1e-10)
    plain = QuantileRegressor(quantile=0.7, alpha=0.0, fit_intercept=False, solver="highs").fit(X, y)
    np.testing.assert_allclose(found.coefficients[0], plain.coef_, atol=1e-3)
