"""A solution that stays optimal for all larger C is polished where its gap passes the tolerance, not solved again."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar, nnls

import screenpath
from screenpath.problem import ends
from screenpath.problem.ends import CONSTANT
from screenpath.rows.gram import GramRows
from tests import plain

GRID = np.logspace(-5, 3, 41)


def wide() -> tuple:
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 240)) * 4.3, np.where(rng.random(60) < 0.5, 1.0, -1.0)


def one_hot() -> tuple:
    rng = np.random.default_rng(0)
    sizes, n = (70, 60, 50, 40, 26, 14, 4), 200
    X = np.hstack([np.eye(size)[rng.integers(0, size, n)] for size in sizes])
    return X, np.where(X @ rng.normal(size=X.shape[1]) > 0.0, 1.0, -1.0)


@pytest.mark.covering(2)
@pytest.mark.parametrize("loss", ["svm", "lad"])
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("size", [150.0, 1500.0])  # of the rows: C x^2 is up to 3e8
def test_a_path_may_begin_where_every_row_is_on_its_kink(size, intercept, loss):
    """There Newton's method cycles: it left steps uncertified after thousands of iterations."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 800)) * size / np.sqrt(800)
    y = np.where(X[:, 0] + rng.normal(size=200) > 0.0, 1.0, -1.0)
    path = getattr(screenpath, f"{loss}_path")(X, y, grid=[100.0, 150.0], intercept=intercept)
    assert path.certified and path.steps[0].epochs < 400 and path.steps[1].solver == CONSTANT
    triangle = np.linalg.cholesky(y[:, None] * (X @ X.T) * y)

    def least(b: float) -> float:
        """Return the least 1/2 ||w||^2 without a loss, by its dual."""
        target = np.linalg.solve(triangle, 1.0 - y * b)
        return 0.5 * float(target @ target - (nnls(triangle.T, target)[1] ** 2 if loss == "svm" else 0.0))

    optimum = least(0.0) if intercept == "none" else minimize_scalar(least, (-0.5, 0.5), tol=1e-4).fun
    assert [step.primal for step in path.steps] == pytest.approx([optimum] * 2, rel=2e-6)


@pytest.mark.parametrize("intercept", [None, "free"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("make", [wide, one_hot])
def test_only_the_first_pair_is_solved(make, storage, intercept):
    X, y = make()
    how = {} if intercept is None else {"intercept": intercept}
    grid = GRID * (1e2 if make is one_hot else 1.0)
    path = plain.svm_path(sp.csr_matrix(X), y, grid=grid, storage=storage, **how)
    assert all(step.status == "certified" for step in path.steps)
    first = next(k for k, step in enumerate(path.steps) if step.solver == CONSTANT)
    after = path.steps[first:]
    # One solve more at most: where rows leave their ends within the tolerance of the first pair.
    assert sum(step.epochs > 0 for step in after) <= 1 and sum(step.passes for step in after) < 60 + 8 * len(after)
    w, b = path.coefficients[-1][: X.shape[1]], path.intercepts[-1]
    t = 1.0 - y * (X @ w + b)
    assert t.max() < 1e-5  # separable: at a large C no sample is within the margin
    primal = 0.5 * float(w @ w)
    assert [step.primal for step in after] == pytest.approx([primal] * len(after), rel=2e-6)


@pytest.mark.parametrize("tau", [0.9, 0.95])
def test_no_step_is_polished_where_rows_are_proven_off_their_kinks(tau):
    """A pair within the tolerance may have all rows between their ends, though 10 features cannot meet 442 kinks."""
    data = screenpath.read_libsvm("data_samples/diabetes.libsvm")
    path = screenpath.quantile_path(data.X, data.y, tau=tau, scale="standard", rule="none")
    assert path.certified and max(step.passes for step in path.steps) < 100  # 6,025 where a polish was tried in vain
    assert any(step.n_E == 442 for step in path.steps)


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("name", ["svm", "svr"])
def test_behind_a_kernel_the_end_is_solved_once(name, intercept):
    """Refined once, the pair is good for every C: its rows are beyond their kinks by what rounding may be."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 4)), rng.normal(size=80)
    y = np.sign(y) if name == "svm" else y
    more = {"epsilon": 0.1} if name == "svr" else {}
    walk = screenpath.kernel_svm_path if name == "svm" else screenpath.kernel_svr_path
    path = walk(X, y, gamma=0.5, grid=[*np.logspace(-2, 9, 45), 1e15], intercept=intercept, **more)
    first = next(k for k, step in enumerate(path.steps) if step.solver == CONSTANT)
    after = path.steps[first:]
    assert path.steps[first].C < 1000.0 and all(step.solver == CONSTANT and step.epochs == 0 for step in after)
    assert path.certified and sum(step.passes for step in after) < 40
    K, alpha, b = np.exp(-0.5 * np.square(X[:, None] - X).sum(2)), path.dual_coefficients[-1], path.intercepts[-1]
    used = np.flatnonzero(alpha)
    target = y[used] - more.get("epsilon", 0.0) * np.sign(alpha[used]) - b
    np.testing.assert_allclose(np.linalg.solve(K[np.ix_(used, used)], target), alpha[used], rtol=1e-6, atol=1e-6)
    loss = np.abs(y - K @ alpha - b) - 0.1 if name == "svr" else 1.0 - y * (K @ alpha + b)
    assert loss[used].min() > -1e-8 and loss.max() <= 0.0 and (intercept == "none" or abs(alpha.sum()) < 1e-9)


def test_numbers_whose_squares_vanish_are_no_division_by_zero():
    """Rows of 1e-118 beside rows of 1e43: a polish meets a direction of conjugate gradients with ``w @ w = 0``."""
    X = np.array([[-1.75e-118, 4.04e-119], [-1.497e43, -1.739e43]])
    y = np.array([4.03e-139, 5.47e-139])
    path = screenpath.lad_path(X, y, grid=[7.85e7, 7.46e8], intercept="none", tol=1e-12)
    assert all(step.gap_target >= step.gap or step.status != "certified" for step in path.steps)


@pytest.mark.parametrize("spoiled", [False, True])
def test_behind_a_kernel_sums_in_twice_the_precision_are_formed_only_where_those_of_float64_do_not_do(
    spoiled, monkeypatch
):
    found, refined, sums = [], ends.refined, GramRows.precise_sums

    def noted(model, *more):
        found.append(model.rows.hasty)
        return refined(model, *more)

    def off(self, target, weights):
        values, error = sums(self, target, weights)
        return values * (1.0 + 1e-3 * (spoiled and self.hasty)), error

    monkeypatch.setattr(ends, "refined", noted)
    monkeypatch.setattr(GramRows, "precise_sums", off)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 4)), rng.normal(size=80)
    path = screenpath.kernel_svm_path(X, np.sign(y), gamma=0.5, grid=np.logspace(-2, 9, 45), intercept="none")
    assert path.certified and path.steps[-1].solver == CONSTANT and path.steps[-1].epochs == 0
    assert True in found and (False in found) == spoiled


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize(("model", "options"), [("lad", {}), ("quantile", {"tau": 0.3}), ("svr", {"epsilon": 0.1})])
def test_targets_that_are_all_the_same_are_the_intercept(model, options, kernel):
    """The objective is 0, and so is the target of the gap: rounding of a dual variable was more than that."""
    options = options | ({"kernel": kernel} if kernel else {})
    path = getattr(screenpath, f"{'kernel_' if kernel else ''}{model}_path")
    X = np.random.default_rng(0).normal(size=(20, 3))
    for target in (0.0, 3.7, -1e5):
        found = path(X, np.full(20, target), grid=[0.01, 1.0], intercept="free", **options)
        assert found.certified and [step.gap for step in found.steps] == [0.0, 0.0]
        assert abs(found.intercepts - target).max() <= options.get("epsilon", 0.0)
        assert not found.steps[0].primal and found.predict(X) == pytest.approx(found.intercepts[-1])
    far = path(X, np.where(np.arange(20) == 3, 9.0, 3.7), grid=[0.01, 1.0], intercept="free", **options)
    assert far.certified and far.steps[0].primal > 0.0
