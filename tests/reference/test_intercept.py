"""Free intercepts against a cone solver and scikit-learn, at every grid point."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC, SVR

from screenpath.catalogue.losses import LOSSES
from tests.free_problems import SHAPES, cone_optimum, free_problem, free_walk, objective
from tests.plain import lad_path, quantile_path, svm_path, svr_path

GRID = [0.003, 0.05, 0.4, 5.0]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_a_cone_solver(name, shape, weighted):
    model = free_problem(name, shape, seed=7, weighted=weighted)
    for step, found in free_walk(model, GRID, tol=1e-8):
        C, best = step.parameters["C"], cone_optimum(model, step.parameters["C"])
        size = max(best, 1e-3 * C * model.size)
        assert step.status == "certified"
        value = objective(model, C, step.coefficients[:-1], step.coefficients[-1])
        assert step.primal == pytest.approx(value, rel=1e-9, abs=1e-9 * size)
        assert abs(step.primal - best) <= 1e-6 * size and step.dual <= best + 1e-6 * size
        low, high = step.extras["intercept_low"], step.extras["intercept_high"]
        assert low <= found.intercept == step.coefficients[-1] <= high
        for end in (low, high):  # all that lies between has the same objective
            assert objective(model, C, step.coefficients[:-1], end) == pytest.approx(value, rel=1e-12, abs=1e-12 * size)


@pytest.mark.parametrize("rule", ["none", "gap", "dvi", "bt1+gap", "bt2", "it+gap", "ssnsv", "essnsv+gap"])
@pytest.mark.parametrize("name", LOSSES)
def test_screening_on_and_off_agree(rule, name):
    model = free_problem(name, "plain", seed=11, n=80, d=3)
    grid = np.geomspace(1e-2, 10.0, 25)
    found = free_walk(model, grid, rule)
    for (one, _), (other, _) in zip(found, free_walk(model, grid), strict=True):
        assert one.status == other.status == "certified"
        assert one.dual <= other.primal * (1 + 1e-13) and other.dual <= one.primal * (1 + 1e-13)
    before = sum(step.screened_R + step.screened_L for step, _ in found)
    assert (before == 0) if rule in ("none", "gap") else (before > 100)


def test_the_objective_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) + 2.0
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=120) > 2.0, 1.0, -1.0)  # a quarter of them positive
    target = X @ [1.0, 0.0, -2.0, 0.5] + 30.0 + rng.standard_t(3, size=120)
    weights = rng.uniform(0.2, 2.0, size=120)
    svm = svm_path(X, y, grid=GRID, tol=1e-9, intercept="free", sample_weight=weights)
    svr = svr_path(sp.csr_array(X), target, grid=GRID, tol=1e-9, intercept="free", epsilon=0.5, storage="sparse")
    assert svm.certified and svr.certified
    for k, C in enumerate(GRID):
        other = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y, sample_weight=weights)
        w, b = other.coef_[0], other.intercept_[0]
        primal = 0.5 * w @ w + C * (weights * np.maximum(0.0, 1.0 - y * (X @ w + b))).sum()
        assert svm.steps[k].dual <= primal and svm.steps[k].primal == pytest.approx(primal, rel=1e-5)
        other = SVR(kernel="linear", C=C, epsilon=0.5, tol=1e-8).fit(X, target)
        w, b = other.coef_[0], other.intercept_[0]
        primal = 0.5 * w @ w + C * np.maximum(0.0, np.abs(target - X @ w - b) - 0.5).sum()
        assert svr.steps[k].dual <= primal and svr.steps[k].primal == pytest.approx(primal, rel=1e-5)


def test_where_no_weights_help_the_path_is_one_point():
    """The minority's mean is in the middle of the majority: w = 0 is best for every C."""
    X = np.array([[0.0], [-1.0], [1.0], [-2.0], [2.0]])
    path = svm_path(X, [1, -1, -1, -1, -1], grid=[1e-3, 1.0, 1e3], tol=1e-8, intercept="free")
    assert path.certified and np.abs(path.coefficients).max() == pytest.approx(0.0, abs=1e-6)
    assert path.intercepts == pytest.approx(-1.0, abs=1e-6)


def test_shifted_rows_and_targets_shift_the_intercept_alone():
    rng = np.random.default_rng(3)
    X, noise = rng.normal(size=(60, 3)), rng.normal(size=60)
    y = X @ [1.0, 2.0, 0.0] + noise
    for path, options in ((lad_path, {}), (quantile_path, {"tau": 0.3})):
        one = path(X, y, grid=GRID, tol=1e-10, intercept="free", **options)
        other = path(X + 100.0, y - 50.0, grid=GRID, tol=1e-10, intercept="free", **options)
        assert other.coefficients == pytest.approx(one.coefficients, abs=1e-4)
        assert [s.primal for s in other.steps] == pytest.approx([s.primal for s in one.steps], rel=1e-9)
        moved = one.intercepts - 50.0 - 100.0 * one.coefficients.sum(axis=1)
        assert other.intercepts == pytest.approx(moved, abs=1e-2)
