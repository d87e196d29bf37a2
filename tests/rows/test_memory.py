"""Rows in memory: the same numbers from dense, CSR and float32 storage, whatever the number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.data.files.prepare import stored_dense
from screenpath.errors import UsageError
from screenpath.rows.memory import BLOCK, MemoryRows
from tests import plain


def matrix(n, d, density, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < density)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 40), d=st.integers(1, 12), density=st.sampled_from([0.0, 0.2, 1.0]), seed=st.integers(0, 2**31))
def test_dense_and_sparse_agree_with_numpy(n, d, density, seed):
    X = matrix(n, d, density, seed)
    rng = np.random.default_rng(seed)
    w, theta = rng.normal(size=d), rng.normal(size=n) * (rng.random(n) < 0.5)
    index = np.sort(rng.choice(n, size=rng.integers(0, n + 1), replace=False))
    signs = rng.choice([-1.0, 1.0], size=index.size)
    for rows in (MemoryRows(X), MemoryRows(sp.csr_array(X))):
        np.testing.assert_allclose(rows.margins(w), X @ w, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.weighted_sum(theta), X.T @ theta, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.norms, np.linalg.norm(X, axis=1), rtol=1e-12)
        taken = rows.take(index, signs)
        if rows.sparse:
            taken = sp.csr_array(taken, shape=(index.size, d)).toarray()
        np.testing.assert_array_equal(taken, signs[:, None] * X[index])
        assert rows.touched == n + np.count_nonzero(theta) + index.size


@pytest.mark.parametrize("sparse", [False, True])
def test_same_bytes_for_every_number_of_threads(sparse):
    X = matrix(3 * BLOCK + 17, 5, 0.8, 1)
    X = sp.csr_array(X) if sparse else X
    one, two = MemoryRows(X, threads=1), MemoryRows(X, threads=2)
    w, theta = np.arange(1.0, 6.0) / 7, np.linspace(-1, 1, X.shape[0])
    assert one.margins(w).tobytes() == two.margins(w).tobytes()
    assert one.weighted_sum(theta).tobytes() == two.weighted_sum(theta).tobytes()

    def weigh(margins, first, last):
        return np.where(margins > 0.1, theta[first:last], 0.0)

    found = []
    for rows in (one, two):
        before = rows.touched
        margins, total = rows.margins_and_sum(w, weigh)
        assert rows.touched == before + X.shape[0]
        assert margins.tobytes() == one.margins(w).tobytes()
        np.testing.assert_allclose(total, one.weighted_sum(weigh(margins, 0, margins.size)), rtol=1e-12)
        found.append(total.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("sparse", [False, True])
def test_float32_rows_compute_in_float64(sparse):
    X = matrix(50, 4, 0.7, 2).astype(np.float32)
    rows = MemoryRows(sp.csr_array(X) if sparse else X)
    w = np.linspace(0.1, 1, 4)
    assert rows.margins(w).dtype == np.float64
    np.testing.assert_allclose(rows.margins(w), X.astype(np.float64) @ w, rtol=1e-14, atol=1e-14)
    whole = rows.whole()
    assert (whole[0] if sparse else whole).dtype == np.float64


def test_storage_follows_density():
    thin = sp.random_array((40, 30), density=0.1, rng=np.random.default_rng(0), format="csr")
    assert not stored_dense(thin, "auto")
    assert not stored_dense(thin.toarray(), "auto")
    assert stored_dense(thin, "dense") and not stored_dense(thin.toarray(), "sparse")
    assert stored_dense(sp.csr_array(np.ones((3, 3))), "auto")
    with pytest.raises(UsageError, match="unknown storage"):
        stored_dense(thin, "disk")


def test_threads_must_be_positive():
    with pytest.raises(UsageError, match="at least 1"):
        MemoryRows(np.eye(2), threads=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 9])
def test_norms_of_dense_rows(d, dtype):
    X = np.random.default_rng(d).normal(size=(50, d)).astype(dtype)
    np.testing.assert_allclose(MemoryRows(X).norms, np.linalg.norm(X.astype(np.float64), axis=1), rtol=1e-14)


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_rows_that_must_not_be_written_to_are_read_where_they_are(intercept, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0.0, 1.0, -1.0)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = MemoryRows(mapped)
    assert rows.X.flags.writeable and np.shares_memory(rows.X, mapped)
    found, usual = (plain.svm_path(one, y, grid=4, intercept=intercept) for one in (mapped, X))
    assert found.certified and found.coefficients.tobytes() == usual.coefficients.tobytes()


@pytest.mark.compiled_only
def test_long_numbers_of_columns_are_those_that_kernels_take():
    short = sp.random_array((120, 3000), density=0.02, format="csr", rng=np.random.default_rng(3))
    arrays = short.data, short.indices.astype(np.int64), short.indptr.astype(np.int64)
    long = sp.csr_array(arrays, shape=short.shape)
    assert long.indices.dtype == np.int64
    assert MemoryRows(long).indices.dtype == np.int32
    y = np.where(np.arange(120) % 2, 1.0, -1.0)
    paths = [plain.svm_path(X, y, cmin=0.1, cmax=10.0, grid=30, storage="sparse") for X in (short, long)]
    assert paths[0].coefficients.tobytes() == paths[1].coefficients.tobytes()
