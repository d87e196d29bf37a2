"""L1-regularised squared hinge with a free bias: objectives, closed form, certificate, difficult data."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import l1_svm_path
from screenpath.errors import DataError
from screenpath.problem.grid import lambda_grid
from screenpath.problem.l1svm import L1SVM
from screenpath.rows.columns import Columns
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.solve.l1cd import make_feature_solver
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import two_classes
from tests.l1_problems import l1_svm_model


def objective(X, y, w, b, lam):
    return 0.5 * np.sum(np.maximum(0.0, 1.0 - y * (X @ w + b)) ** 2) + lam * np.abs(w).sum()


def reference_objective(X, y, lam):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = 0.5 * cp.sum_squares(cp.pos(1 - cp.multiply(y, X @ w + b)))
    problem = cp.Problem(cp.Minimize(loss + lam * cp.norm1(w)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_objective_equals_the_conic_solver(storage):
    X, y = two_classes(n=60, d=25, seed=1)
    path = l1_svm_path(X, y, grid=8, storage=storage, tol=1e-9)
    assert path.certified
    for step, w, b in zip(path.steps, path.coefficients, path.intercepts, strict=True):
        lam = step.parameters["lambda"]
        assert step.primal == pytest.approx(reference_objective(X, y, lam), rel=1e-7)
        assert step.primal == pytest.approx(objective(X, y, w, b, lam), rel=1e-12)


def test_dual_point_is_feasible_and_the_gap_true():
    X, y = two_classes(n=80, d=12, seed=2)
    model, _ = l1_svm_model(X, y)
    rng = np.random.default_rng(0)
    for lam in model.lam_max * np.array([2.0, 0.7, 0.1]):
        w = rng.normal(size=12) * (rng.random(12) < 0.5)
        certificate = model.certify(lam, w)
        alpha = lam * certificate.theta
        assert alpha.min() >= 0.0
        assert abs(y @ alpha) <= 1e-12 * alpha.sum()
        assert np.abs((y[:, None] * X).T @ alpha).max() <= lam * (1 + 1e-12)
        dual = alpha.sum() - 0.5 * alpha @ alpha
        assert certificate.dual <= dual <= certificate.dual + 2.0 * (certificate.rounding + certificate.primal_error)
        assert certificate.rounding <= 1e-11 * certificate.primal
        assert certificate.primal == pytest.approx(objective(X, y, w, certificate.bias, lam), rel=1e-12)
        for shift in (-1e-4, 1e-4):  # the bias is the exact minimiser
            assert objective(X, y, w, certificate.bias + shift, lam) > certificate.primal
        np.testing.assert_allclose(certificate.products, (y[:, None] * X).T @ certificate.theta, atol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_closed_form_from_lambda_max_up(storage):
    X, y = two_classes(n=50, d=9, seed=3)
    y[:7] = 1.0  # unbalanced: the bias is not 0
    model, _ = l1_svm_model(X, y, storage=storage)
    direct = np.abs(((y - y.mean())[:, None] * X).sum(axis=0)).max()  # eq. 7
    assert model.lam_max == pytest.approx(direct, rel=1e-13)
    above = l1_svm_path(X, y, grid=[1.0 * model.lam_max, 3.0 * model.lam_max], storage=storage)
    assert above.certified and [step.solver for step in above.steps] == ["closed-form"] * 2
    assert not above.coefficients.any()
    np.testing.assert_allclose(above.intercepts, y.mean())
    below = l1_svm_path(X, y, grid=[0.999 * model.lam_max], storage=storage, tol=1e-12)
    assert below.steps[0].nnz_w == 1


def test_constant_columns_get_no_weight():
    X, y = two_classes(n=60, d=5, seed=4)
    X = np.hstack([X, np.full((60, 1), 1e6), np.zeros((60, 1)), np.full((60, 1), 0.1)])
    for rule in ("none", "vi+gap"):
        path = l1_svm_path(X, y, grid=10, rule=rule, storage="dense")
        assert path.certified
        assert not path.coefficients[:, 5:].any()
    plain = l1_svm_path(X[:, :5], y, grid=10)
    np.testing.assert_allclose([s.primal for s in path.steps], [s.primal for s in plain.steps], rtol=2e-6)


def test_duplicate_columns_are_certified():
    X, y = two_classes(n=60, d=5, seed=5)
    doubled = np.hstack([X, X, -X])
    for solver in ("auto", "cd"):
        path, plain = (l1_svm_path(data, y, grid=10, solver=solver, tol=1e-8) for data in (doubled, X))
        assert path.certified
        np.testing.assert_allclose([s.primal for s in path.steps], [s.primal for s in plain.steps], rtol=2e-8)


def test_separable_data_is_certified_far_down():
    X, y = two_classes(n=40, d=60, seed=6, noise=0.05)
    assert l1_svm_path(X, y, grid=30, log=True, lambda_min_ratio=1e-5).certified


def test_only_constant_columns():
    y = np.array([1.0, -1.0, 1.0])
    with pytest.raises(DataError, match="lambda_max is 0"):
        l1_svm_path(np.ones((3, 2)), y)
    path = l1_svm_path(np.ones((3, 2)), y, grid=[0.5])
    assert path.certified and path.steps[0].nnz_w == 0


def test_one_class_is_an_error():
    X = sp.csr_array(np.eye(3))
    with pytest.raises(DataError, match="same label"):
        L1SVM(Columns(X, np.ones(3)))
    with pytest.raises(DataError):
        l1_svm_path(X, [1, 1, 1])


def test_more_features_than_samples_unscaled():
    rng = np.random.default_rng(7)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    X = 1e4 * rng.random((30, 400)) + 300.0 * y[:, None] * (np.arange(400) < 5)
    model, _ = l1_svm_model(X, y)
    values = lambda_grid(model, 20)
    path = l1_svm_path(X, y, grid=values)
    assert path.certified
    assert path.steps[-1].primal == pytest.approx(reference_objective(X / 1e4, y, values[-1] / 1e4), rel=1e-5)


def far(n=60, d=12, seed=8):
    """Return data whose means are 1e7 spreads, the same data near 0, and labels."""
    X, y = two_classes(n=n, d=d, seed=seed)
    far = X + 1e7 * X.std(axis=0) * np.where(np.arange(d) % 3, 1.0, -1.0)
    return far, far - far[0], y


@pytest.fixture(scope="module")
def objectives_far():
    """Return values of lambda and the smallest objectives at some of them, from data centred by hand."""
    _, near, y = far()
    near -= near.mean(axis=0)
    lams = lambda_grid(l1_svm_model(near, y)[0], 20)
    return lams, {k: reference_objective(near, y, lams[k]) for k in (4, 19)}


@pytest.mark.covering(9)
@pytest.mark.parametrize("solver", ["auto", "newton", "cd"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_mean_of_1e7_spreads_is_certified_all_along_the_path(storage, solver, objectives_far):
    X, _, y = far()
    lams, best = objectives_far
    path = l1_svm_path(X, y, grid=20, storage=storage, solver=solver)
    assert path.certified and len(path.steps) == 20
    np.testing.assert_allclose([step.parameters["lambda"] for step in path.steps], lams, rtol=1e-8)
    for k, value in best.items():
        assert path.steps[k].primal == pytest.approx(value, rel=2e-6)
    assert max(step.epochs for step in path.steps) < 1000
    w, b = path.coefficients[-1], path.intercepts[-1]
    exact = [sum((Fraction(a) * Fraction(v) for a, v in zip(row, w, strict=True)), Fraction(b)) for row in X]
    margins = np.array([float(value) for value in exact])
    loss = 0.5 * np.sum(np.maximum(0.0, 1.0 - y * margins) ** 2) + lams[-1] * np.abs(w).sum()
    assert loss == pytest.approx(path.steps[-1].primal, rel=1e-7)  # of what is reported, on the data as they come


@pytest.mark.parametrize("options", [
    {"scale": "maxabs"}, {"penalty_weights": np.linspace(0.3, 3.0, 12)},
    {"class_weight": "balanced", "sample_weight": np.linspace(0.1, 3.0, 60)},
])  # fmt: skip
def test_scaled_and_weighted_data_far_from_0(options):
    X, near, y = far()
    for storage in ("dense", "sparse"):
        path = l1_svm_path(X, y, storage=storage, **options)
        assert path.certified and path.steps[-1].nnz_w > 3
    if "sample_weight" in options or "penalty_weights" in options:
        plain = l1_svm_path(near, y, grid=[step.parameters["lambda"] for step in path.steps], **options)
        np.testing.assert_allclose([s.primal for s in path.steps], [s.primal for s in plain.steps], rtol=2e-6)


def test_columns_of_1e15_spreads_are_those_near_0():
    """All that is subtracted is exact: path and certificate are those of the differences."""
    y = np.tile([1.0, -1.0], 20)
    near = 16.0 * (np.random.default_rng(9).integers(-3, 4, size=(40, 3)) + y[:, None])
    path, plain = (l1_svm_path(X, y, grid=[50.0, 20.0, 5.0], tol=1e-9) for X in (1e17 + near, near))
    assert path.certified and plain.certified
    np.testing.assert_allclose([s.primal for s in path.steps], [s.primal for s in plain.steps], rtol=2e-9)
    np.testing.assert_allclose(path.coefficients, plain.coefficients, atol=1e-6)


def test_a_walk_that_is_continued_counts_the_passes_of_one_that_was_not_stopped():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 120)) * (rng.uniform(size=(80, 120)) < 0.1)
    y = np.where(X[:, :30].sum(axis=1) + 0.3 * rng.normal(size=80) > 0.0, 1.0, -1.0)

    def make():
        return L1SVM(Columns(sp.csr_array(X), y))

    model, how = make(), (parse_feature_rule("vi+gap"), make_feature_solver("newton"), PathOptions(tol=1e-6))
    grid = model.lam_max / np.arange(1.0, 9.0)
    whole = list(walk(model, grid, *how))
    for first in range(1, grid.size):
        again = make()
        reference = again.restore(model.state(whole[first - 1][1]))
        step, certificate = next(walk(again, grid, *how, reference, first))
        assert step.passes == whole[first][0].passes and step.primal == whole[first][0].primal
        assert certificate.w.tobytes() == whole[first][1].w.tobytes()
