"""Regressions behind kernels against a cone solver and SVR, on random problems."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVR

from screenpath import kernel_lad_path, kernel_quantile_path, kernel_svr_path
from screenpath.catalogue.losses import LOSSES
from screenpath.errors import UsageError
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.screen import parse_kernel_rule
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import Audit, PathOptions, contradicted, walk
from tests.width import wide

GRID = [0.01, 0.3, 5.0, 60.0]
PATHS = {"lad": kernel_lad_path, "quantile": kernel_quantile_path, "svr": kernel_svr_path}


def problem(seed):
    """Return rows, targets, weights and the options of a path of some regression."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_t(3, n) + rng.uniform(-3.0, 3.0)
    if seed % 4 == 0:
        X[n // 2 :], y = X[: n - n // 2], y.round()  # rows again, and ties
    loss = ("lad", "quantile", "svr")[seed % 3]
    own: dict = {
        "quantile": {"tau": float(rng.uniform(0.1, 0.9))}, "svr": {"epsilon": float(rng.choice([0.02, 0.1, 1]))},
    }  # fmt: skip
    options = {"intercept": str(rng.choice(["none", "free"])), **own.get(loss, {})}
    kernel = {"kernel": "rbf", "gamma": 0.7} if rng.random() < 0.6 else {"kernel": "poly", "degree": 2, "coef0": 1.0}
    weights = rng.uniform(0.2, 2.0, n) if rng.random() < 0.5 else None
    return loss, X, y, weights, options, kernel


def matrix_of(X, kernel):
    return rbf_kernel(X, gamma=0.7) if kernel["kernel"] == "rbf" else polynomial_kernel(X, degree=2, coef0=1)


def losses_of(loss, t, options):
    if loss == "svr":
        return np.maximum(0.0, np.abs(t) - options["epsilon"])
    tau = options.get("tau", 0.5)
    return np.maximum((tau - 1.0) * t, tau * t) * (2.0 if loss == "lad" else 1.0)


def cone_value(K, y, C, s, loss, options):
    """Return the optimal value of the dual, in the differences ``beta`` of dual variables."""
    root = np.linalg.cholesky(K + 1e-12 * np.trace(K) * np.eye(y.size))
    beta = cp.Variable(y.size)
    low, high = {"lad": (-1.0, 1.0), "svr": (-1.0, 1.0)}.get(loss) or (options["tau"] - 1.0, options["tau"])
    value = y @ beta - 0.5 * cp.sum_squares(root.T @ beta) - options.get("epsilon", 0.0) * cp.norm1(beta)
    more = [cp.sum(beta) == 0] if options["intercept"] == "free" else []
    found = cp.Problem(cp.Maximize(value), [beta >= C * low * s, beta <= C * high * s, *more])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is less accurate than asked for: it need not be so accurate
        return found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


@pytest.mark.parametrize("seed", sorted({*range(wide(24, 200)), 107, 179}))  # the last two are svr of few rows
def test_the_objective_is_that_of_a_cone_solver(seed):
    loss, X, y, weights, options, kernel = problem(seed)
    K, s = matrix_of(X, kernel), np.ones(y.size) if weights is None else weights
    keywords = {**options, **kernel, **({"gamma": 1.0 / X.shape[1]} if kernel["kernel"] == "poly" else {})}
    path = PATHS[loss](X, y, grid=GRID, tol=1e-9, sample_weight=weights, **keywords)
    assert path.certified and max(step.epochs for step in path.steps) <= 10  # all rows are in the active set
    for k, C in enumerate(GRID):
        best, step = cone_value(K, y, C, s, loss, options), path.steps[k]
        assert step.primal == pytest.approx(best, rel=1e-6, abs=1e-9) and step.dual <= best * (1 + 1e-6) + 1e-9
        beta, b = path.dual_coefficients[k], path.intercepts[k]
        forms = K @ beta + b
        np.testing.assert_allclose(path.predict(X, C=C), forms, rtol=1e-9, atol=1e-9)
        value = 0.5 * beta @ K @ beta + C * (s * losses_of(loss, y - forms, options)).sum()
        assert value == pytest.approx(step.primal, rel=1e-9, abs=1e-12)
        assert options["intercept"] == "none" or abs(beta.sum()) < 1e-12 * C * y.size


def test_objectives_and_intercepts_are_those_of_svr():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=120) + 4.0
    path = kernel_svr_path(X, y, gamma=0.5, epsilon=0.1, grid=GRID, tol=1e-9)
    for C, step, b in zip(GRID, path.steps, path.intercepts, strict=True):
        svr = SVR(C=C, gamma=0.5, epsilon=0.1, tol=1e-8).fit(X, y)
        value = 0.5 * svr.dual_coef_ @ rbf_kernel(svr.support_vectors_, gamma=0.5) @ svr.dual_coef_.T
        value = value.item() + C * np.maximum(0.0, np.abs(y - svr.predict(X)) - 0.1).sum()
        assert step.dual <= value * (1 + 1e-12) and step.primal == pytest.approx(value, rel=1e-4)
        assert b == pytest.approx(svr.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("seed", range(wide(6, 60)))
def test_no_decision_of_a_path_is_unsafe(seed):
    loss, X, y, weights, options, kernel = problem(100 + seed)
    function = KernelFunction("rbf", 0.7) if kernel["kernel"] == "rbf" else KernelFunction("poly", 0.5, 2, 1.0)
    rows = GramRows(X, function, np.repeat([1.0, -1.0][: 1 + (loss == "svr")], y.size), 1 << 24)
    model = LOSSES[loss].model(rows, y, weights, options.pop("intercept"), **options)
    solver, audited = make_kernel_solver("auto"), PathOptions(tol=1e-6)
    audited = PathOptions(tol=1e-6, audit=Audit(solver, audited, contradicted))
    found = [step for step, _ in walk(model, np.geomspace(0.05, 20.0, 8), parse_kernel_rule("it+gap"), solver, audited)]
    audited = [step.extras["unsafe"] for step in found if step.extras["unsafe"] is not None]
    assert len(audited) >= 6 and sum(audited) == 0 and all(step.status == "certified" for step in found)
    assert sum(step.screened_R + step.screened_L for step in found) > 0


def test_a_tube_of_no_width_is_another_model():
    with pytest.raises(UsageError, match="use the model lad"):
        kernel_svr_path([[0.0], [1.0]], [0.0, 1.0], epsilon=0.0)


def test_a_row_in_the_tube_twice_is_kept_once():
    """Twins of one row share kernel values, and at most one of them has a share in the solution."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    rows = GramRows(X, KernelFunction("rbf", 0.5), np.repeat([1.0, -1.0], 60), 1 << 24)
    model, solver = LOSSES["svr"].model(rows, y, None, "free", epsilon=0.05), make_kernel_solver("auto")
    for step, certificate in walk(model, GRID, parse_kernel_rule("none"), solver, PathOptions(tol=1e-8)):
        first, second = np.split(certificate.theta, 2)
        assert step.status == "certified" and not np.any(first * second) and step.coefficients.size == 61
    slots = rows.square.slots(np.array([3, 63, 7]))
    assert slots[0] == slots[1] != slots[2]
    theta = rng.uniform(size=120)
    Q = np.kron([[1.0, -1.0], [-1.0, 1.0]], rbf_kernel(X, gamma=0.5))
    np.testing.assert_allclose(rows.weighted_sum(theta), Q @ theta, atol=1e-12)
    some, few = np.array([5, 65, 100]), np.array([1, 61, 119, 5])
    np.testing.assert_allclose(rows.sum_at(some, theta[some], few), Q[np.ix_(few, some)] @ theta[some], atol=1e-12)
