"""A result answers for itself: steps by place or parameter, weights, predictions, words; wrong questions are errors."""

import inspect
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import l1_svm_path
from screenpath.errors import DataError, ResourceError, UsageError
from tests.conftest import two_classes
from tests.plain import kernel_svm_path, lad_path, quantile_path, sparse_svm_path, svm_path, svr_path

X, SIGNS = two_classes(n=60, d=4, seed=3, noise=1.0)
NAMED = np.where(SIGNS > 0, 7.0, 3.0)
CLASSIFIERS = {
    "svm": lambda X, **o: svm_path(X, NAMED, grid=5, bias=1.0, **o),
    "kernel": lambda X, **o: kernel_svm_path(X, NAMED, grid=5, kernel="linear", bias=1.0, **o),
    "l1": lambda X, **o: l1_svm_path(X, NAMED, grid=5, **o),
    "sparse": lambda X, **o: sparse_svm_path(X, NAMED, betas=2, alphas=3, beta_min_ratio=0.01, bias=1.0, **o),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("scale", ["none", "standard", "l2"])
def test_predictions_are_labels_that_fit_the_training_data(name, scale):
    path = CLASSIFIERS[name](X, scale=scale)
    for rows in (X, sp.csr_array(X)):
        forms = path.decision_function(rows)
        np.testing.assert_array_equal(path.predict(rows), np.where(forms > 0, 7.0, 3.0))
    assert np.mean(path.predict(X) == NAMED) > 0.7
    if name != "kernel" and scale != "l2":
        np.testing.assert_allclose(forms, X @ path.coef(-1) + path.intercept(-1), atol=1e-12)
        np.testing.assert_array_equal(path.coef(-1), path.coefficients[-1])


def test_more_than_two_classes():
    y = np.arange(60) % 3 + 1.0
    path = sparse_svm_path(X + 2.0 * y[:, None] * np.eye(4)[0], y, betas=2, alphas=3, beta_min_ratio=0.01, bias=1.0)
    forms = path.decision_function(X)
    assert forms.shape == (60, 3) and path.coef().shape == (3, 4) and path.intercept().shape == (3,)
    assert set(path.predict(X)) <= {1.0, 2.0, 3.0}
    assert path.grid.shape == (6, 2)
    at = dict(zip(("alpha", "beta"), path.grid[4], strict=True))
    assert path.position(**at) == 4 and path.solved(**at) is path[4]


def test_regressions_predict_values():
    y = X @ [1.0, 2.0, 0.0, -1.0] + 3.0
    for function in (lad_path, quantile_path, svr_path):
        path = function(X, y, grid=[100.0], bias=1.0)
        np.testing.assert_allclose(path.predict(X), y, atol=0.3)


def test_steps_by_place_and_by_parameter():
    path = svm_path(X, SIGNS, grid=[10.0, 0.1, 1.0])
    assert path.grid.tolist() == [0.1, 1.0, 10.0] and len(path) == 3
    assert path[0] is path.steps[0] and path.solved() is path[2] and path.solved(-3) is path[0]
    assert path.position(C=1.0000001) == 1
    assert repr(path) == "<PathResult: 3 of 3 steps certified, C = 0.1 to C = 10>"
    for name in ("rejection_ratio", "status", "n_E"):
        assert path[name].tolist() == [row[name] for row in path.table()]
    with pytest.raises(UsageError, match="no column 'rejection'"):
        path["rejection"]
    for question, answer in (
        ({"step": 3}, "there is no step 3"), ({"step": -4}, "there is no step -4"),
        ({"C": 20.0}, "there is no step with C=20\n  the nearest has C=10"), ({"lam": 1.0}, "named by C, not lam"),
        ({"step": 0, "C": 0.1}, "by its place or by its parameters"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=answer):
            path.coef(**question)
    for C, nearest in ((2.0, "1"), (0.5, "1"), (0.3, "0.1")):  # in the logarithm: 0.5 is a factor of 2 from 1
        with pytest.raises(UsageError, match=f"there is no step with C={C:g}\n  the nearest has C={nearest}$"):
            path.solved(C=C)
    with pytest.raises(DataError, match="the new rows are 60 x 3; the path was computed with 4 features"):
        path.predict(X[:, :3])
    with pytest.raises(DataError, match="the new rows must have two dimensions .*, not 1"):
        path.decision_function(X[0])


def test_keywords_are_known_and_scalars_are_no_grids():
    assert {"tau", "grid", "sample_weight"} <= set(inspect.signature(quantile_path).parameters)
    assert "class_weight" not in inspect.signature(lad_path).parameters
    with pytest.raises(TypeError, match=r"svm_path\(\): got an unexpected keyword argument 'gird'"):
        svm_path(X, SIGNS, gird=5)
    for strange, meant in (("gird", "grid"), ("C", "grid"), ("Cs", "grid"), ("c_list", "grid"), ("n_jobs", "threads"),
                           ("weights", "sample_weight"), ("fit_intercept", "intercept")):  # fmt: skip
        with pytest.raises(TypeError, match=rf"svm_path\(\): .*'{strange}'; did you mean '{meant}'\?$"):
            svm_path(X, SIGNS, **{strange: 1})
    with pytest.raises(TypeError, match=r"missing a required argument: 'y'$"):
        svm_path(X, C=1)
    for grid in (1.0, True, "0.1"):
        with pytest.raises(UsageError, match="is no number of grid points"):
            svm_path(X, SIGNS, grid=grid)
    assert len(svm_path(X, SIGNS, grid=np.int64(2))) == 2


def test_frames_need_pandas(monkeypatch):
    path = svm_path(X, SIGNS, grid=2)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pandas", None)
        with pytest.raises(ResourceError, match="needs pandas"):
            path.frame()
    pandas = pytest.importorskip("pandas", reason="frame() needs pandas")
    assert isinstance(path.frame(), pandas.DataFrame) and path.frame()["C"].tolist() == [0.01, 10.0]
