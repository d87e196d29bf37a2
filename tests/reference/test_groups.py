"""Groups of features beside a cone solver: every loss, share of the L1 norm, intercept, ``alpha`` above 0 and 0."""

import contextlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import sparse_svm_path
from tests.width import wide

cp = pytest.importorskip("cvxpy")
TOLERANCES = "tol_gap_abs", "tol_gap_rel", "tol_feas"


def optimum(X, y, weights, gamma, alpha, beta, labels, tau, intercept) -> float | None:
    """Return the optimal value by a cone solver; ``gamma`` is None for the squared hinge.

    It gives up now and then: then with less accuracy, and in the end None.
    """
    w, b = cp.Variable(X.shape[1]), cp.Variable() if intercept != "none" else 0.0
    t = cp.pos(1.0 - cp.multiply(y, X @ w + b))
    losses = 0.5 * cp.square(t) if gamma is None else cp.huber(t, gamma) / (2.0 * gamma)
    penalty = tau * cp.norm1(w)
    for label in np.unique(labels):
        index = np.flatnonzero(labels == label)
        penalty += (1.0 - tau) * np.sqrt(index.size) * cp.norm(w[index])
    ridge = cp.sum_squares(w)
    if intercept == "penalised":
        penalty, ridge = penalty + cp.abs(b), ridge + cp.square(b)
    value = weights @ losses / weights.sum() + 0.5 * alpha * ridge + beta * penalty
    found = cp.Problem(cp.Minimize(value))
    for tol in (1e-10, 1e-9, 3e-9):
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.simplefilter("ignore")
            found.solve(solver="CLARABEL", **dict.fromkeys(TOLERANCES, tol))
            if found.status == "optimal":
                return found.value
    return None


def judged(seed: int) -> int:
    """Compare the steps of a random path with their optima; return how many have one."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 50)), int(rng.integers(3, 20))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.5, 1.0]))
    X[0] = 1.0
    labels = rng.choice(["a", "b", "c", "d", "e", "f"], size=d)
    y = np.where(X @ (rng.normal(size=d) * np.isin(labels, ["a", "b"])) + rng.normal(size=n) > 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    gamma, intercept = (0.5, 0.1, None)[seed % 3], ("free", "none", "penalised")[seed // 3 % 3]
    tau, weights = (0.0, 0.3, 0.7)[seed // 9 % 3], rng.uniform(0.5, 3.0, size=n) if seed % 4 == 0 else np.ones(n)
    path = sparse_svm_path(
        X if seed % 5 else sp.csr_array(X), y, groups=labels, l1_share=tau, intercept=intercept, tol=1e-10,
        rule=("none", "sifs", "gap", "sifs+gap")[seed % 4], alphas=[float(10.0 ** rng.uniform(-3, 0)), 0.0],
        betas=10.0 ** rng.uniform(-2.5, -0.7, size=2), sample_weight=weights if seed % 4 == 0 else None,
        **({"loss": "squared-hinge"} if gamma is None else {"smoothing": gamma}),
    )  # fmt: skip
    assert len(path.steps) == 4
    found = 0
    for step in path.steps:
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        best = optimum(X, y, weights, gamma, alpha, beta, labels, tau, intercept)
        assert step.status == "certified", (seed, step)
        assert best is None or abs(step.primal - best) <= 1e-8 * best, (seed, step)
        found += best is not None
    return found


def test_the_optimum_is_that_of_a_cone_solver():
    problems = wide(24, 240)
    assert sum(judged(seed) for seed in range(problems)) > 0.9 * 4 * problems
