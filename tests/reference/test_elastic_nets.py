"""Elastic nets with Huber's loss and the smoothed hinge beside a cone solver: free intercept, weights of one sign."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import huber_path, sparse_svm_path
from tests.width import wide

cp = pytest.importorskip("cvxpy")
CLOSE = {name: 1e-12 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}


def optimum(X, y, weights, gamma, alpha, beta, free, hinge=False, nonnegative=False) -> float:
    """Return the optimal value by a cone solver."""
    w, b = cp.Variable(X.shape[1], nonneg=nonnegative), cp.Variable() if free else 0.0
    t = cp.pos(1.0 - cp.multiply(y, X @ w + b)) if hinge else y - X @ w - b
    losses = cp.huber(t, gamma) / (2.0 * gamma)
    value = weights @ losses / weights.sum() + 0.5 * alpha * cp.sum_squares(w) + beta * cp.norm1(w)
    return cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL", **CLOSE)


@pytest.mark.parametrize("seed", range(wide(12, 200)))
def test_the_optimum_is_that_of_a_cone_solver(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 40)), int(rng.integers(2, 15))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.5, 1.0]))
    X[0] = 1.0
    y = X @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + rng.standard_t(1.5, size=n) + rng.choice([0.0, 3.0])
    gamma, free = float(10.0 ** rng.uniform(-1.5, 0.7)), bool(seed % 2)
    weights = rng.uniform(0.5, 3.0, size=n) if seed % 3 else np.ones(n)
    rule = ("none", "sifs", "gap", "sifs+gap")[seed // 2 % 4]
    alphas, betas = 10.0 ** rng.uniform(-4, 0, size=2), 10.0 ** rng.uniform(-4, -0.5, size=2)
    path = huber_path(
        X if seed % 5 else sp.csr_array(X), y, smoothing=gamma, alphas=alphas, betas=betas, tol=1e-11, rule=rule,
        intercept="free" if free else "none", sample_weight=weights if seed % 3 else None,
    )  # fmt: skip
    for step in path.steps:
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        best = optimum(X, y, weights, gamma, alpha, beta, free)
        assert step.status == "certified" and abs(step.primal - best) <= 1e-8 * best, (seed, step)


@pytest.mark.parametrize("seed", range(wide(12, 200)))
def test_the_optimum_of_weights_of_one_sign_is_that_of_a_cone_solver(seed):
    rng = np.random.default_rng(1000 + seed)
    n, d, hinge, free = int(rng.integers(8, 40)), int(rng.integers(2, 15)), bool(seed % 2), bool(seed // 2 % 2)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.5, 1.0]))
    X[0] = 1.0
    y = X @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + rng.standard_t(1.5, size=n)
    gamma = float(rng.uniform(0.05, 0.95))
    y = np.where(y > np.median(y), 1.0, -1.0) if hinge else y
    alphas, betas = 10.0 ** rng.uniform(-4, 0, size=2), 10.0 ** rng.uniform(-4, -0.5, size=2)
    path = (sparse_svm_path if hinge else huber_path)(
        X if seed % 5 else sp.csr_array(X), y, smoothing=gamma, alphas=alphas, betas=betas, tol=1e-11,
        nonnegative=True, rule=("none", "sifs", "gap", "sifs+gap")[seed // 4 % 4], intercept="free" if free else "none",
    )  # fmt: skip
    assert path.coefficients.min() >= 0.0
    for step in path.steps:
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        best = optimum(X, y, np.ones(n), gamma, alpha, beta, free, hinge, True)
        assert step.status == "certified" and abs(step.primal - best) <= 1e-8 * best, (seed, step)
