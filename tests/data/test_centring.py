"""Columns far from 0: what is subtracted from them, without rounding, from dense and from sparse ones."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.data.files import centring
from screenpath.data.files.centring import far_centres


def raw(seed=0, n=40):
    """Return columns far above and below 0, one of one value, and some that nothing is subtracted from."""
    rng = np.random.default_rng(seed)
    far = rng.normal(size=(n, 5)) + [1e7, -1e7, 30.0, 1e15, -3e200]
    near = np.column_stack([rng.normal(size=n), rng.uniform(1.0, 2.3, n), np.full(n, 1e7)])
    near[:2, 1] = 1.0, 2.3  # a factor above two
    near[3, 2] = 0.0
    return np.column_stack([far, np.full(n, 0.1), near])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_differences_are_exact_and_the_same_from_sparse_columns(dtype, weighted):
    X = raw()
    X[:, 4] = X[:, 4] if dtype == np.float64 else -3e20
    X = X.astype(dtype)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 40) if weighted else None
    dense, sparse = far_centres(X, weights, 1.0), far_centres(sp.csr_array(X), weights, 1.0)
    assert dense.tolist() == sparse.tolist()
    assert np.flatnonzero(dense).tolist() == list(range(6))
    for column, centred, centre in zip(X.T, (X - dense).T, dense, strict=True):
        assert column.min() <= centre <= column.max() or centre == 0.0
        exact = [Fraction(float(x)) - Fraction(float(centre)) for x in column]
        assert [Fraction(float(value)) for value in centred] == exact


def test_what_is_sparse_stays_so():
    X = sp.random_array((40, 30), density=0.3, rng=np.random.default_rng(2), format="csr")
    X.data += 1e7
    assert far_centres(X) is None


def test_samples_without_weight_have_no_say():
    X, weights = raw(), np.ones(40)
    weights[3] = 0.0
    X[3] = 0.0
    found = [far_centres(kind(X), weights, 1.0) for kind in (np.asarray, sp.csr_array)]
    assert found[0].tolist() == found[1].tolist()
    assert np.flatnonzero(found[0]).tolist() == [0, 1, 2, 3, 4, 5, 8]
    assert far_centres(X, np.zeros(40)) is None


def test_many_columns_are_looked_at_some_at_a_time(monkeypatch):
    X = raw()
    expected = far_centres(X)
    monkeypatch.setattr(centring, "VALUES_AT_ONCE", 100)
    assert far_centres(X).tobytes() == expected.tobytes()
