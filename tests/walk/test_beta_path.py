"""A path over beta at one alpha: each step begins at, and is screened from, the one before."""

import numpy as np
import pytest
from scipy.optimize import linprog

import screenpath
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk


def wide(n=60, d=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    X[:, :4] += 0.8 * y[:, None]
    return X, y, float(np.abs((X * y[:, None]).mean(axis=0)).max())


def along(X, y, betas, alpha=0.0, **how):
    return screenpath.sparse_svm_path(X, y, intercept="none", betas=betas, alphas=[alpha], **how).table()


def linear_program(X, y, beta):
    """Return the optimum of the exact hinge with an L1 penalty alone, by HiGHS."""
    n, d = X.shape
    rows = X * y[:, None]
    costs = np.r_[np.full(2 * d, beta), np.full(n, 1.0 / n)]
    sides = np.c_[-rows, rows, -np.eye(n)]
    return linprog(costs, A_ub=sides, b_ub=-np.ones(n), bounds=(0, None), method="highs").fun


def test_the_step_before_decides_the_features_of_the_exact_hinge():
    X, y, top = wide()
    betas = [0.4 * top, 0.396 * top]
    alone, behind = (along(X, y, values, smoothing=0.0, rule="ifs") for values in (betas[1:], betas))
    assert behind[1]["feature_screening_rate"] > 0.95
    assert alone[0]["feature_screening_rate"] < 0.5  # from the closed form, as before; else this tells nothing
    assert behind[1]["primal"] == pytest.approx(linear_program(X, y, betas[1]), rel=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.02])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_screened_or_not_is_the_same(alpha, smoothing):
    X, y, top = wide(seed=1)
    betas = (top * np.geomspace(0.9, 0.2, 8)).tolist()
    paths = [along(X, y, betas, alpha, smoothing=smoothing, rule=rule, tol=1e-8) for rule in ("none", "sifs", "gap")]
    for steps in zip(*paths, strict=True):
        assert {step["status"] for step in steps} == {"certified"}
        assert np.ptp([step["primal"] for step in steps]) <= 2e-8 * steps[0]["primal"]


def test_one_path_whatever_the_jobs():
    X, y, top = wide(seed=2)
    betas = (top * np.geomspace(0.9, 0.3, 5)).tolist()
    one, two = (along(X, y, betas, 0.05, jobs=jobs) for jobs in (1, 2))
    assert [step["primal"] for step in one] == [step["primal"] for step in two]


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("done", [1, 3])
def test_a_path_goes_on_with_the_same_numbers(alpha, done):
    X, y, top = wide(seed=3)
    pairs = [(alpha, beta) for beta in (top * np.geomspace(0.9, 0.3, 5)).tolist()]
    how = parse_sparse_rule("sifs+gap"), make_sparse_solver("auto", 0), PathOptions(tol=1e-8)
    model, fresh = (SparseGrid(SparseModel(Views(X), y.astype(np.int64), 1, 0.0, 0.5)) for _ in range(2))
    whole, states = [], []
    for step, certificate in walk(model, pairs, *how):
        whole.append(step)
        states.append({name: np.copy(value) for name, value in model.state(certificate).items()})
    rest = list(walk(fresh, pairs, *how, fresh.restore(states[done - 1]), done))
    for (step, _), expected in zip(rest, whole[done:], strict=True):
        assert (step.primal, step.epochs, step.passes) == (expected.primal, expected.epochs, expected.passes)
        np.testing.assert_array_equal(step.coefficients.dense(), expected.coefficients.dense())
