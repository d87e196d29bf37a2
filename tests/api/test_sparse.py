"""The sparse SVM from Python: grids, options, classes, processes, bad input."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.errors import DataError, UsageError
from screenpath.problem.grid import alpha_grid, beta_grid
from tests.plain import sparse_svm_path
from tests.sparse_problems import SDCA, problem

SHORT = {"betas": 3, "alphas": 5}


def test_grid_is_the_papers():
    X, y, model = problem()
    path = sparse_svm_path(X, y, betas=3, alphas=4, beta_min_ratio=0.1, alpha_min_ratio=0.02)
    assert path.certified
    assert [step.step for step in path.steps] == list(range(12))
    betas = np.array([step.parameters["beta"] for step in path.steps]).reshape(3, 4)
    alphas = np.array([step.parameters["alpha"] for step in path.steps]).reshape(3, 4)
    np.testing.assert_allclose(betas[:, 0] / model.beta_max, [1.0, np.sqrt(0.1), 0.1])
    assert np.all(betas == betas[:, :1])
    for row in (1, 2):
        top = model.at(betas[row, 0]).alpha_max()
        np.testing.assert_allclose(alphas[row] / top, np.geomspace(1.0, 0.02, 4))
    assert all(step.nnz_w == 0 for step in path.steps[:4])  # beta_max: no weight, whatever alpha
    assert path.coefficients.shape == (12, X.shape[1])


def test_float32_rows_are_certified_in_float64():
    X, y, _ = problem()
    path = sparse_svm_path(X, y, **SHORT, dtype=np.float32)
    assert path.certified
    assert path.steps[-1].primal == pytest.approx(sparse_svm_path(X, y, **SHORT).steps[-1].primal, rel=1e-4)


def test_labels_scaling_and_bias_come_back_in_the_units_of_the_data():
    X, y, _ = problem(3)
    X = X * np.linspace(1.0, 50.0, X.shape[1])
    names = np.array([3.0, 7.0, -1.0])[y]
    path = sparse_svm_path(X, names, betas=[0.02], alphas=[1e-3], references=10, scale="maxabs", bias=1.0)
    np.testing.assert_array_equal(path.classes, [-1.0, 3.0, 7.0])
    assert path.coefficients.shape == (11, 3, X.shape[1]) and path.intercepts.shape == (11, 3)
    scores = X @ path.coefficients[-1].T + path.intercepts[-1]
    assert np.mean(path.classes[scores.argmax(axis=1)] == names) > 0.8
    assert np.any(path.intercepts[-1] != 0.0)


def test_explicit_pairs_and_references():
    X, y, model = problem()
    path = sparse_svm_path(X, y, betas=[0.1, 0.3], alphas=[0.01], references=3)
    assert [step.parameters["beta"] for step in path.steps] == [0.3] * 4 + [0.1] * 4
    assert path.steps[3].parameters["alpha"] == path.steps[7].parameters["alpha"] == 0.01
    row = np.array([step.parameters["alpha"] for step in path.steps[4:]])
    np.testing.assert_allclose(np.diff(np.log(np.concatenate([[model.at(0.1).alpha_max()], row]))), np.log(
        0.01 / model.at(0.1).alpha_max()) / 4)  # fmt: skip
    alone = sparse_svm_path(X, y, betas=[0.1], alphas=[0.01])
    assert alone.steps[0].primal == pytest.approx(path.steps[7].primal, rel=1e-6)


@pytest.mark.parametrize("betas", [[1e6], [1e6, 0.1]])
def test_beta_above_beta_max_answers_zero(betas):
    X, y, _ = problem()
    for alphas in (3, [0.5, 1e-4]):
        path = sparse_svm_path(X, y, betas=betas, alphas=alphas)
        assert path.certified
        first = [step for step in path.steps if step.parameters["beta"] == 1e6]
        assert first and all(step.nnz_w == 0 and step.gap <= 1e-20 for step in first)


@pytest.mark.parametrize("solver", ["newton", SDCA])
@pytest.mark.parametrize("rule", ["sifs+gap", "none"])
def test_memory_stays_below_three_times_the_data(solver, rule):
    rng = np.random.default_rng(0)
    n, d = 2000, 1500
    X = sp.random(n, d, density=0.1, rng=rng, format="csr")
    y = np.sign(X @ rng.normal(size=d))
    options = {"betas": [1e-4], "alphas": 6, "rule": rule, "solver": solver}
    sparse_svm_path(X[:50], y[:50], **options)
    data = X.data.nbytes + X.indices.nbytes
    tracemalloc.start()
    path = sparse_svm_path(X, y, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.certified and path.steps[-1].nnz_w > d // 4  # much survives
    assert peak <= 2 * data + 50 * 8 * (n + d)  # beside the caller's own copy


def test_extras_count_each_triggering():
    X, y, _ = problem(n=80, d=60)
    for step in sparse_svm_path(X, y, betas=4, alphas=20, rule="sifs").steps:
        found = [sum(int(v) for v in step.extras[name].split(";") if v) for name in ("iss_found", "ifs_found")]
        assert found == [step.screened_R + step.screened_L, step.n_features_screened]
        share = 1 - step.n_survivors * (60 - step.n_features_screened) / (80 * 60)
        assert step.extras["scaling_ratio"] == pytest.approx(share)


@pytest.mark.parametrize("smoothing", [1.0, -0.5, 2.0, np.nan])
def test_smoothing_outside_its_range(smoothing):
    X, y, _ = problem()
    with pytest.raises(UsageError, match="smoothing"):
        sparse_svm_path(X, y, smoothing=smoothing)


@pytest.mark.parametrize("option", ["beta_min_ratio", "alpha_min_ratio"])
@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.5, np.nan])
def test_ratio_outside_its_range(option, ratio):
    X, y, _ = problem()
    with pytest.raises(UsageError, match="min_ratio"):
        sparse_svm_path(X, y, **{option: ratio})


@pytest.mark.parametrize(
    "options",
    [{"rule": "dvi"}, {"rule": "sifs+sifs"}, {"rule": "gap+sifs"}, {"first": "rows"}, {"solver": "cd"}, {"jobs": 0},
     {"tol": 0.0}, {"betas": 0}, {"betas": [0.1, -1.0]}, {"alphas": []}, {"references": -1}],
)  # fmt: skip
def test_wrong_options(options):
    X, y, _ = problem()
    with pytest.raises(UsageError):
        sparse_svm_path(X, y, **options)


def test_features_that_are_all_zero():
    y = np.arange(10) % 2
    for X in (np.zeros((10, 3)), sp.csr_array((10, 3))):
        with pytest.raises(DataError, match="every feature is 0 in all samples"):
            sparse_svm_path(X, y)


def test_a_zero_column_and_a_zero_row_are_harmless():
    X, y, _ = problem()
    X[:, 5], X[7] = 0.0, 0.0
    path = sparse_svm_path(X, y, **SHORT)
    assert path.certified
    assert np.all(path.coefficients[:, 5] == 0.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_with_one_sample(classes):
    X, y, _ = problem(classes)
    y = np.where(np.arange(y.size) == 3, classes, np.minimum(y, classes - 1))
    y[y == classes - 1] = classes - 2 if classes > 2 else 0
    path = sparse_svm_path(X, y, **SHORT)
    assert path.certified
    assert np.sum(y == path.classes[-1]) == 1


def test_one_label_only():
    with pytest.raises(DataError, match="two"):
        sparse_svm_path(np.eye(3), np.ones(3))


def test_grids_by_themselves():
    np.testing.assert_allclose(beta_grid(3, 8.0, 0.25), [8.0, 4.0, 2.0])
    np.testing.assert_array_equal(beta_grid([1.0, 9.0], 8.0, 0.5), [9.0, 1.0])
    np.testing.assert_array_equal(alpha_grid(1, 5.0, 0.1), [5.0])
    np.testing.assert_allclose(alpha_grid([2.0], 8.0, 0.1, 1), [4.0, 2.0])
    np.testing.assert_array_equal(alpha_grid([20.0], 8.0, 0.1, 2), [20.0])  # beyond alpha_max: known at once
    with pytest.raises(UsageError, match="range"):
        alpha_grid(3, 5.0, 1.0)
