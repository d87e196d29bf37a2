"""Elastic nets beside a cone solver: Huber's loss, the hinges, the losses of regressions, smoothed or not."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import huber_path, sparse_lad_path, sparse_quantile_path, sparse_svm_path, sparse_svr_path
from tests.width import wide

cp = pytest.importorskip("cvxpy")
CLOSE = ("tol_gap_abs", "tol_gap_rel", "tol_feas")


def least(objective) -> float:
    """Return the optimal value by a cone solver.

    At 1e-12 it may stop just short of its own bounds and call an optimum inaccurate that is right to the last digit;
    then it is asked for less, which is still far more than what is compared. What it never calls optimal fails.
    """
    problem = cp.Problem(cp.Minimize(objective))
    for accuracy, step in ((1e-12, 0.99), (1e-12, 0.9), (1e-11, 0.99), (1e-10, 0.9)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            best = problem.solve(solver="CLARABEL", max_step_fraction=step, **dict.fromkeys(CLOSE, accuracy))
        if problem.status == cp.OPTIMAL:
            return best
    raise AssertionError(problem.status)


def optimum(X, y, weights, gamma, alpha, beta, free, hinge=False, nonnegative=False) -> float:
    """Return the optimal value by a cone solver."""
    w, b = cp.Variable(X.shape[1], nonneg=nonnegative), cp.Variable() if free else 0.0
    t = cp.pos(1.0 - cp.multiply(y, X @ w + b)) if hinge else y - X @ w - b
    losses = cp.huber(t, gamma) / (2.0 * gamma)
    value = weights @ losses / weights.sum() + 0.5 * alpha * cp.sum_squares(w) + beta * cp.norm1(w)
    return least(value)


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


def smoothed(t, low: float, high: float, gamma: float):
    """Return ``max theta t - gamma/2 theta^2`` over ``low <= theta <= high`` for a cone solver."""
    sides = ((cp.pos(t), high), (cp.pos(-t), -low))
    return sum(cp.huber(side, gamma * end) / (2.0 * gamma) if gamma else end * side for side, end in sides if end)


def losses_of(kind: str, t, y, gamma: float, level: float):
    """Return the losses of residuals ``t``; ``level`` is the quantile, or half the width of the tube."""
    if kind == "svr":
        return smoothed(t - level, 0.0, 1.0, gamma) + smoothed(-t - level, 0.0, 1.0, gamma)
    if kind == "svm":
        return smoothed(1.0 - cp.multiply(y, y - t), 0.0, 1.0, gamma)
    return smoothed(t, *((-1.0, 1.0) if kind == "lad" else (level - 1.0, level)), gamma)


PATHS = {"lad": sparse_lad_path, "quantile": sparse_quantile_path, "svr": sparse_svr_path, "svm": sparse_svm_path}


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("seed", range(wide(6, 200)))
def test_the_optimum_of_each_loss_is_that_of_a_cone_solver(kind, seed):
    """Exact and smoothed losses; tied targets; an elastic net, its L1 part alone and its L2 part alone."""
    rng = np.random.default_rng(2000 + seed)
    n, d, free = int(rng.integers(8, 40)), int(rng.integers(2, 15)), bool(seed % 2)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.5, 1.0]))
    X[0] = 1.0
    y = X @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + rng.standard_t(1.5, size=n) + rng.choice([0.0, 3.0])
    y = np.where(y > np.median(y), 1.0, -1.0) if kind == "svm" else np.round(y) if seed % 7 == 1 else y
    gamma = float(rng.choice([0.0, 0.0, rng.uniform(0.02, 0.9)]))
    level = float(rng.uniform(0.1, 0.9)) if kind == "quantile" else float(rng.choice([0.0, 0.1, 1.0]))
    weights = rng.uniform(0.5, 3.0, size=n) if seed % 3 else np.ones(n)
    own = {"quantile": {"tau": level}, "svr": {"epsilon": level}}.get(kind, {})
    alphas, betas = 10.0 ** rng.uniform(-4, 0, size=2), 10.0 ** rng.uniform(-4, -0.5, size=2)
    penalty = ("elastic-net", "elastic-net", "l1", "l2")[seed % 4]
    own |= {"alphas": alphas} if penalty != "l1" else {}
    own |= {"betas": betas} if penalty != "l2" else {}
    path = PATHS[kind](
        X if seed % 5 else sp.csr_array(X), y, smoothing=gamma, penalty=penalty, tol=1e-11 if penalty != "l1" else 1e-8,
        rule=("none", "sifs", "gap", "sifs+gap", "ifs")[seed % 5], intercept="free" if free else "none",
        sample_weight=weights if seed % 3 else None, **own,
    )  # fmt: skip
    for step in path.steps:
        w, b = cp.Variable(d), cp.Variable() if free else 0.0
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        loss = weights @ losses_of(kind, y - X @ w - b, y, gamma, level) / weights.sum()
        value = loss + 0.5 * alpha * cp.sum_squares(w) + beta * cp.norm1(w)
        best = least(value)
        assert step.status == "certified" and abs(step.primal - best) <= 1e-8 * best + 1e-12, (seed, step)


@pytest.mark.parametrize("path", [sparse_lad_path, sparse_quantile_path, sparse_svr_path])
def test_targets_of_many_millions_are_targets_in_other_units(path):
    """Without a warning: over a smoothing of almost 0, where a path begins, such targets are beyond floating point."""
    X, y = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, 1.0]]), np.array([1.0, 2.0, -3.0, 5.0])
    units, tube = 2.0**30, 0.25 if path is sparse_svr_path else None

    def of(scale):
        return path(X, y * scale, penalty="l1", betas=[0.3, 0.1], **({} if tube is None else {"epsilon": tube * scale}))

    small, large = of(1.0), of(units)
    assert small.certified and large.certified
    for one, other in zip(small.steps, large.steps, strict=True):
        assert units * one.primal == pytest.approx(other.primal, rel=2e-6)
