"""The Python API of the L1-regularised squared-hinge SVM."""

import numpy as np
import pytest

from screenpath import l1_svm_path
from screenpath.errors import UsageError
from screenpath.problem.grid import lambda_grid
from tests.conftest import two_classes
from tests.l1_problems import l1_svm_model


def test_grids():
    X, y = two_classes(seed=1)
    model, _ = l1_svm_model(X, y)
    np.testing.assert_allclose(lambda_grid(model, 4) / model.lam_max, [1, 1 / 2, 1 / 3, 1 / 4])
    logged = lambda_grid(model, 5, log=True, lambda_min_ratio=1e-2)
    assert logged[0] == model.lam_max and logged[-1] == pytest.approx(1e-2 * model.lam_max)
    np.testing.assert_allclose(np.diff(np.log(logged)), np.log(1e-2) / 4)
    np.testing.assert_array_equal(lambda_grid(model, [1.0, 3.0, 2.0]), [3.0, 2.0, 1.0])
    assert lambda_grid(model, 1, log=True).tolist() == [model.lam_max]


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "dvi"}, {"solver": "sgd"}, {"grid": 0}, {"log": True, "lambda_min_ratio": 1.5}, {"grid": [1.0, -1.0]},
        {"tol": 0.0},
    ],
)  # fmt: skip
def test_wrong_options_are_usage_errors(options):
    X, y = two_classes()
    with pytest.raises(UsageError):
        l1_svm_path(X, y, **options)


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard", "l2"])
def test_coefficients_are_in_the_units_of_the_data(scale):
    X, y = two_classes(seed=2)
    X = X * np.array([1.0, 10.0, 0.1, 3.0, 1.0, 1.0]) + 2.0
    path = l1_svm_path(X, y, grid=6, scale=scale, tol=1e-9)
    rows = X / np.linalg.norm(X, axis=1)[:, None] if scale == "l2" else X
    spread = {"maxabs": np.abs(X).max(axis=0), "standard": X.std(axis=0)}.get(scale, np.ones(6))
    for step, w, b in zip(path.steps, path.coefficients, path.intercepts, strict=True):
        loss = 0.5 * np.sum(np.maximum(0.0, 1.0 - y * (rows @ w + b)) ** 2)
        assert step.primal == pytest.approx(loss + step.parameters["lambda"] * np.abs(w * spread).sum(), rel=1e-10)


def test_rerun_gives_the_same_numbers():
    X, y = two_classes(seed=4, d=30)
    a, b = (l1_svm_path(X, y, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(a.coefficients, b.coefficients)
    np.testing.assert_array_equal(a.intercepts, b.intercepts)


def test_records_count_features():
    X, y = two_classes(n=40, d=200, seed=5)
    for step in l1_svm_path(X, y, grid=5, rule="vi").steps:
        row = step.record()
        assert row["lambda"] == step.parameters["lambda"]
        assert 0 <= step.nnz_w <= 200 - step.n_features_screened
        assert step.n_R + step.n_E == 40 and step.nnz_w == np.count_nonzero(step.coefficients[:-1])
        assert step.rejection_ratio == step.n_features_screened / 200
