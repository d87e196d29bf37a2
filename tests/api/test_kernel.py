"""kernel_svm_path: its options and its result."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath import EpsilonGrid
from screenpath.errors import DataError, UsageError
from screenpath.rows.gram import GramRows
from tests.conftest import two_classes
from tests.plain import kernel_svm_path


def test_result():
    X, y = two_classes(80, 4, seed=1)
    path = kernel_svm_path(X, y, grid=[0.1, 1.0], tell=None)
    assert path.certified and path.dual_coefficients.shape == (2, 80)
    assert [row["C"] for row in path.table()] == [0.1, 1.0]
    for k in range(2):
        assert path.steps[k].nnz_w == path.support(k).size
        np.testing.assert_array_equal(np.sign(path.dual_coefficients[k][path.support(k)]), y[path.support(k)])
    np.testing.assert_allclose(path.decision_function(sp.csr_array(X)), path.decision_function(X), atol=1e-12)


def test_every_c_of_an_epsilon_path_is_solved():
    X, y = two_classes(80, 4, seed=3)
    path = kernel_svm_path(X, y, grid=EpsilonGrid(0.1, 10.0, 1e-2), tol=1e-4)
    assert path.certified and path.steps[-1].parameters["C"] == 10.0
    step = len(path.steps) // 2
    C0, C1 = (path.steps[k].parameters["C"] for k in (step, step + 1))
    between = kernel_svm_path(X, y, grid=[0.5 * (C0 + C1)], tol=1e-9).steps[0]
    alpha = path.dual_coefficients[step] * y * 0.5 * (C0 + C1) / C0
    Q = y[:, None] * np.exp(-0.25 * ((X[:, None] - X) ** 2).sum(axis=2)) * y
    assert alpha.sum() - 0.5 * alpha @ Q @ alpha >= between.dual * (1 - 1e-2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "tanh"}, "`kernel` must be one of rbf, laplacian, linear, poly"),
        ({"rule": "heuristic"}, "no rule"), ({"rule": "dvi+it"}, "unknown rule"), ({"solver": "cd"}, "no solver"),
        ({"tol": 0.0}, "tol"), ({"max_memory": "many"}, "many"),
    ],
)  # fmt: skip
def test_options_are_checked(options, words):
    X, y = two_classes(20, 2)
    with pytest.raises(UsageError, match=words):
        kernel_svm_path(X, y, **options)


def test_rules_that_an_error_names_are_those_of_a_kernel():
    X, y = two_classes(20, 2)
    for wrong in ("vi", "sieve", "heuristic+gap"):
        with pytest.raises(UsageError) as refused:
            kernel_svm_path(X, y, rule=wrong)
        names = refused.value.hint.removeprefix("use ").split(";")[0].split(", ")
        assert len(names) == 9 and all(kernel_svm_path(X, y, rule=name, grid=[0.1]).certified for name in names)


def test_data_is_checked():
    X, y = two_classes(20, 2)
    with pytest.raises(DataError):
        kernel_svm_path(X, y[:-1])
    with pytest.raises(DataError):
        kernel_svm_path(np.full((20, 2), np.nan), y)


def test_a_power_that_overflows_is_one_error():
    """And no warning of numpy beside it."""
    X, y = two_classes(20, 3)
    with pytest.raises(DataError, match="overflow: the kernel of row [0-9]+ with itself"):
        kernel_svm_path(100.0 * X, y, kernel="poly", degree=300, grid=2)
    with pytest.raises(DataError) as refused:
        kernel_svm_path(1e200 * X, y, kernel="linear", grid=2)
    assert "gamma" not in refused.value.hint  # the linear kernel has none


@pytest.mark.parametrize("how", [{}, {"one_vs_one": True}, {"one_vs_rest": True}, {"gammas": [0.5, 1.0], "folds": 3}])
def test_the_memory_of_a_path_is_free_when_it_ends(tmp_path, monkeypatch, how):
    """At once, not when garbage is collected next: a program of many paths would hold them all."""
    made, init = [], GramRows.__init__

    def noted(self, *given, **more):
        init(self, *given, **more)
        made.append(weakref.ref(self))

    monkeypatch.setattr(GramRows, "__init__", noted)
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % (3.0 if "one" in str(how) else 2.0)
    gc.collect()
    gc.disable()
    try:
        make = screenpath.cross_validate if "folds" in how else screenpath.run
        make("svm", (X, y), kernel="rbf", c_list=[0.1, 1.0], out=tmp_path / "run", quiet=True, **how)
        assert made and [rows() for rows in made] == [None] * len(made)
    finally:
        gc.enable()
