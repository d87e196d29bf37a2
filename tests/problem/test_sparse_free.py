"""The sparse SVM with a free intercept: optima of a cone solver, the exact intercept, and the closed form."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels.problem import sparse_intercept as kernels
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import PathOptions, walk

GAMMA = 0.5


def problem(seed, n=30, d=8, share=0.3, weighted=False, storage=np.asarray, gamma=GAMMA):
    """Return data, signs and model at ``beta = 0``; a share of the samples is of the class +1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2.0
    X[rng.random((n, d)) < 0.3] = 0.0
    forms = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n)
    y = np.where(np.argsort(np.argsort(forms)) >= round((1.0 - share) * n), 1, -1)
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else None
    return X, y, FreeSparseModel(Views(storage(X)), y, 1, 0.0, gamma, weights)


def cone_optimum(X, y, s, alpha, beta, gamma=GAMMA) -> float:
    """Return the optimum of an interior-point method; the smoothed hinge is the least ``q^2/(2 gamma) + (t - q)_+``."""
    w, b, q = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(y.size)
    t = 1.0 - cp.multiply(y, (X - X.mean(axis=0)) @ w + b)
    hinge = cp.square(q) / (2.0 * gamma) + cp.pos(t - q) if gamma > 0.0 else cp.pos(t)
    loss = cp.sum(cp.multiply(s, hinge)) / s.sum()
    found = cp.Problem(cp.Minimize(loss + alpha / 2.0 * cp.sum_squares(w) + beta * cp.norm1(w)))
    found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(found.value)


@pytest.mark.covering(2)
@pytest.mark.parametrize("gamma", [GAMMA, 0.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_that_of_a_cone_solver(weighted, storage, gamma):
    X, y, base = problem(3, weighted=weighted, storage=storage, gamma=gamma)
    pairs = [(a, b) for b in (0.6 * base.beta_max, 0.05 * base.beta_max) for a in (1.0, 0.1, 0.01)]
    for step, found in walk(
        SparseGrid(base), pairs, parse_sparse_rule("sifs+gap"), SparseNewton(), PathOptions(tol=1e-10)
    ):
        best = cone_optimum(X, y, base.given, *found.at, gamma)
        assert step.status == "certified" and step.primal == pytest.approx(best, rel=1e-8)
        assert found.low <= found.intercept <= found.high
        assert step.coefficients.dense()[-1] == found.intercept and step.coefficients.size == X.shape[1] + 1


@pytest.mark.parametrize("seed", range(5))
def test_the_intercept_is_the_best_one_for_the_weights(seed):
    rng = np.random.default_rng(seed)
    _, y, model = problem(seed, weighted=seed % 2 == 0)
    z = 10.0 ** rng.uniform(-2, 3) * rng.normal(size=y.size)
    scores = z.copy()
    level = model.placed(scores)
    np.testing.assert_allclose(scores, z + level.intercept, atol=1e-9 * np.abs(z).max())

    def loss(b):
        t = 1.0 - y * (z + b)
        return model.weights @ np.where(t < 0, 0, np.where(t <= GAMMA, t * t / (2 * GAMMA), t - GAMMA / 2))

    assert level.low <= level.intercept <= level.high
    for apart in (1e-6, 1e-3, 1.0, 100.0):
        for b in (level.low - apart, level.high + apart):
            assert loss(b) >= loss(level.intercept) - 1e-9
    for b in np.linspace(level.low, level.high, 3):
        assert loss(b) == pytest.approx(loss(level.intercept), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_with_the_exact_hinge_the_best_intercepts_are_an_interval(seed):
    """Many kinks are tied; the dual point of ``w`` moves rows there until the signed sum is 0."""
    rng = np.random.default_rng(seed)
    _, y, model = problem(seed, share=0.5, weighted=seed % 2 == 0, gamma=0.0)
    z = rng.choice([0.5, 1.0], size=y.size) * rng.integers(-2, 3, size=y.size)
    scores = z.copy()
    level = model.placed(scores)
    assert np.array_equal(scores, z + level.intercept) and level.low <= level.intercept <= level.high
    loss = {b: model.weights @ np.maximum(1.0 - y * (z + b), 0.0) for b in np.arange(-12.0, 13.0) / 4.0}
    best = [b for b, value in loss.items() if value <= min(loss.values()) + 1e-12]  # all kinks are among them
    assert (level.low, level.high) == (best[0], best[-1])
    theta = np.where(y * scores < 1.0, 1.0, 0.0)
    assert (theta @ (y * model.given) == 0.0) or model.balance(scores, theta)
    moved = theta != np.where(y * scores < 1.0, 1.0, 0.0)
    assert theta @ (y * model.given) == pytest.approx(0.0, abs=1e-12) and np.all((theta >= 0.0) & (theta <= 1.0))
    assert np.all(np.abs(1.0 - y * scores)[moved] < 1e-12)
    given = z.copy()
    assert model.placed(given, 0.25)[:] == (0.25, level.low, level.high) and np.array_equal(given, z + 0.25)


def test_bounds_of_the_intercept_hold_for_all_scores_within_reach():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        _, y, model = problem(seed, weighted=seed % 2 == 0)
        z, reach = rng.normal(size=y.size), rng.uniform(0.0, 0.4, size=y.size)
        status = rng.choice([-1, 0, 0, 0, 1], size=y.size).astype(np.int8)
        given = model.samples, status
        low, high = (kernels.outer(z + side * reach, side, *given, 0.0) for side in (1.0, -1.0))
        for _ in range(10):
            moved = z + reach * rng.uniform(-1.0, 1.0, size=y.size) * rng.choice([0.0, 1.0])
            b, _ = kernels.root(moved, *given, 0.0)
            found, _ = kernels.signed_sum(moved, *given, b)
            assert low <= b <= high or abs(found) > 1e-9  # where all are at their ends there is no root
        above, below = (kernels.outer(z, side, *given, 0.0) for side in (-1.0, 1.0))
        assert low <= below <= above <= high
    nobody = np.ones(y.size, dtype=np.int8)  # no dual variable could answer
    assert kernels.outer(z, 1.0, model.samples, nobody, 0.0) == -np.inf
    assert kernels.outer(z, -1.0, model.samples, nobody, 0.0) == np.inf


def test_the_largest_beta_has_no_weight_and_the_best_intercept():
    X, y, base = problem(1, share=0.2)
    assert base.ratio == pytest.approx(0.25) and set(np.round(base.top, 12)) == {1.0, 0.25}
    assert float(base.labels @ base.top) == pytest.approx(0.0, abs=1e-14)
    for share, zero in ((1.0 + 1e-9, True), (0.99, False)):
        model = base.at(share * base.beta_max)
        found = model.certify(0.01, None, model.top)
        assert (found.nonzero == 0) == zero and (found.rel_gap < 1e-12) == zero
        if zero:
            assert found.intercept == pytest.approx(-(1.0 - GAMMA * 0.25)) and found.loss == pytest.approx(
                model.null_loss
            )
    model = base.at(0.5 * base.beta_max)
    assert not model.exact_until(model.start(model.alpha_max()), model.alpha_max())


def test_two_equal_classes_begin_in_closed_form():
    _, y, base = problem(2, share=0.5)
    model = base.at(0.5 * base.beta_max)
    top = model.alpha_max()
    start = model.start(top)
    assert base.ratio == 1.0 and start.rel_gap < 1e-12 and model.exact_until(start, top)
    assert not model.exact_until(start, 0.999 * top) and model.certify(0.99 * top, None, model.top).gap > 0.0


def test_a_shift_of_the_features_changes_the_intercept_alone():
    X, y, here = problem(4)
    there = FreeSparseModel(Views(X + 50.0), y, 1, 0.0, GAMMA)
    assert there.beta_max == pytest.approx(here.beta_max, rel=1e-10)
    pairs = [(0.05, 0.3 * here.beta_max), (0.02, 0.3 * here.beta_max)]
    paths = [
        list(walk(SparseGrid(base), pairs, parse_sparse_rule("sifs"), SparseNewton(), PathOptions(tol=1e-12)))
        for base in (here, there)
    ]
    for (one, a), (other, b) in zip(*paths, strict=True):
        np.testing.assert_allclose(a.w, b.w, atol=1e-6)
        assert b.intercept == pytest.approx(a.intercept - 50.0 * a.w.sum(), abs=1e-4)
        assert abs(one.n_features_screened - other.n_features_screened) <= 1  # what is screened does not depend on it
        assert abs(one.screened_R + one.screened_L - other.screened_R - other.screened_L) <= 1
