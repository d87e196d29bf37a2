"""Data that come as arrays."""

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.data.files.arrays import canonical
from screenpath.sklearn import SVMClassifier


@pytest.fixture
def twice():
    """Sparse rows with places that are stored twice, out of order, and the same rows as they are meant."""
    rng = np.random.default_rng(0)
    rows, columns, values = np.sort(rng.integers(0, 40, 400)), rng.integers(0, 30, 400), 1.0 + rng.random(400)
    X = sp.csr_array((values, columns, np.searchsorted(rows, np.arange(41))), shape=(40, 30))
    return X, sp.csr_array(X.toarray())


def test_places_that_are_stored_twice_are_added_up(twice):
    X, meant = twice
    kept = X.data.copy(), X.indices.copy(), X.indptr.copy()
    y = np.where(np.arange(40) % 3, 1.0, -1.0)
    options = {"grid": 20, "storage": "sparse"}
    found, right = screenpath.svm_path(X, y, **options), screenpath.svm_path(meant, y, **options)
    assert np.array_equal(found.coefficients, right.coefficients)
    assert [s.screened_R for s in found] == [s.screened_R for s in right]
    assert np.array_equal(SVMClassifier().fit(X, y).coef_, SVMClassifier().fit(meant, y).coef_)
    assert all(np.array_equal(a, b) for a, b in zip(kept, (X.data, X.indices, X.indptr), strict=True))
    assert canonical(meant) is meant and canonical(X) is not X


def test_and_in_new_rows(twice):
    X, meant = twice
    y = np.where(np.arange(40) % 3, 1.0, -1.0)
    for path in (
        screenpath.kernel_svm_path(meant, y, grid=[1.0], storage="sparse"),
        screenpath.svm_path(meant, y, grid=[1.0], scale="l2"),
    ):
        assert np.array_equal(path.decision_function(X), path.decision_function(meant))
    model = SVMClassifier(scale="l2").fit(meant, y)
    assert np.array_equal(model.decision_function(X), model.decision_function(meant))


def test_complex_numbers_are_refused():
    with pytest.raises(screenpath.errors.DataError, match="complex"):
        screenpath.svm_path(np.eye(4) * 1j, [0, 1, 0, 1])
