"""Columns far from 0: what is subtracted from them, without rounding, from dense and from sparse ones."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.data.files import centring
from screenpath.rows.columns import Columns

SIGNS = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)


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
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 40) if weighted and dtype == np.float64 else None
    dense, sparse = Columns(X, SIGNS, 1, weights), Columns(sp.csr_array(X), SIGNS, 1, weights)
    assert dense.centres.tolist() == sparse.centres.tolist()
    assert np.flatnonzero(dense.centres).tolist() == list(range(6))
    filled = sp.csr_array((sparse.data, sparse.indices, sparse.indptr), shape=(9, 40)).toarray()
    np.testing.assert_array_equal(filled, dense.X)
    if weights is None:
        for column, stored, centre in zip(X.T, dense.X, dense.centres, strict=True):
            exact = [int(z) * (Fraction(float(x)) - Fraction(centre)) for x, z in zip(column, SIGNS, strict=True)]
            assert [Fraction(float(value)) for value in stored] == exact
    mean = np.average(X, axis=0, weights=weights).astype(dtype)
    np.testing.assert_allclose(dense.centres[:6], mean[:6], rtol=1e-6 if dtype == np.float32 else 1e-15)


def test_what_is_sparse_stays_so():
    X = sp.random_array((40, 30), density=0.3, rng=np.random.default_rng(2), format="csr")
    X.data += 1e7
    found = Columns(X, SIGNS)
    assert found.data.size == X.nnz and not found.centres.any()


def test_samples_without_weight_have_no_say():
    X, weights = raw(), np.ones(40)
    plain = Columns(X, SIGNS, 1, weights).centres
    weights[3] = 0.0
    X[3] = 0.0
    found = [Columns(kind(X), SIGNS, 1, weights) for kind in (np.asarray, sp.csr_array)]
    assert found[0].centres.tolist() == found[1].centres.tolist()
    assert np.flatnonzero(found[0].centres).tolist() == [0, 1, 2, 3, 4, 5, 8]
    np.testing.assert_allclose(found[0].centres[:6], plain[:6], rtol=1e-2)
    assert not found[0].X[:, 3].any()
    assert not centring.dense_centres(X, np.zeros(40)).any()


def test_columns_that_are_left_have_a_mean_of_few_spreads():
    """Below 3 sqrt(n): a factor of two takes one value away from the rest."""
    n = 10_000
    worst = np.full((n, 2), 1e7)
    worst[0] = 0.0, 2e7 + 1.0
    assert not centring.dense_centres(worst).any()
    assert np.all(np.abs(worst.mean(axis=0)) < 3.0 * np.sqrt(n) * worst.std(axis=0))
    worst[0] = 0.6e7, 2e7
    assert centring.dense_centres(worst).all()


def test_many_columns_are_looked_at_some_at_a_time(monkeypatch):
    X = raw()
    expected = Columns(X, SIGNS)
    monkeypatch.setattr(centring, "VALUES_AT_ONCE", 100)
    found = Columns(X, SIGNS)
    assert found.X.tobytes() == expected.X.tobytes() and found.centres.tobytes() == expected.centres.tobytes()
