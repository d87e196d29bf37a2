"""The kernel matrix: its values, its memory, and the same sums from a stored matrix, a cache and rounded values."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from screenpath.data.safe.memory import parse_bytes
from screenpath.errors import ResourceError, UsageError
from screenpath.rows import gram, kernel_functions
from screenpath.rows.gram import GramRows, plan_gram
from screenpath.rows.kernel_functions import KernelFunction, parse_gamma

FUNCTIONS = {
    "rbf": (KernelFunction("rbf", 0.3, constant=0.5), lambda X, Z: rbf_kernel(X, Z, 0.3) + 0.5),
    "linear": (KernelFunction("linear"), linear_kernel),
    "poly": (KernelFunction("poly", 0.3, 3, 1.0), lambda X, Z: polynomial_kernel(X, Z, 3, 0.3, 1.0)),
}


def problem(n=70, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    return X, rng.choice([-1.0, 1.0], size=n), rng.normal(size=n) * (rng.random(n) < 0.5)


def matrix(rows):
    return np.array([rows.weighted_sum(e) for e in np.eye(rows.n)])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("storage", ["dense", "sparse", "very sparse"])
@pytest.mark.parametrize("keep", ["full", "cache"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_are_those_of_the_definition(monkeypatch, name, storage, keep, dtype):
    if storage == "very sparse":  # as if the dense copy were too large
        monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0)
    X, signs, theta = problem()
    function, kernel = FUNCTIONS[name]
    rows = GramRows(X if storage == "dense" else sp.csr_array(X), function, signs, 1 << 24, dtype, keep)
    Q = signs[:, None] * kernel(X, X) * signs
    assert rows.plan.full == (keep == "full") and rows.sparse == (storage != "dense")
    np.testing.assert_allclose(rows.weighted_sum(theta), Q @ theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.norms, np.sqrt(np.diag(Q)), rtol=1e-13)
    target = np.array([3, 5, 40])
    loose = {"rtol": 1e-5, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(
        rows.sum_at(np.array([1, 7]), np.array([2.0, -1.0]), target), (2 * Q[1] - Q[7])[target], **loose
    )
    np.testing.assert_allclose(rows.square(target).rows(np.arange(3)), Q[np.ix_(target, target)], **loose)
    Z = np.random.default_rng(5).normal(size=(9, 4))
    new = rows.held_out(Z if storage == "dense" else sp.csr_array(Z))
    np.testing.assert_allclose(new @ theta, kernel(Z, X) @ theta, rtol=1e-12, atol=1e-12)
    assert not (new @ np.zeros(rows.n)).any()


@pytest.mark.parametrize("shape", ["dense", "sparse"])
def test_distances_do_not_cancel(monkeypatch, shape):
    """Rows 1e-3 apart at a distance of 1e6 from the origin; the exponent from inner products has an error of 1e-4."""
    monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0 if shape == "sparse" else 1 << 28)
    rng = np.random.default_rng(1)
    X = np.vstack([1e6 + 1e-3 * rng.normal(size=(20, 3)), -1e6 + 1e-3 * rng.normal(size=(20, 3))])
    rows = GramRows(sp.csr_array(X), KernelFunction("rbf", 1e5), np.ones(40))
    exact = np.exp(-1e5 * ((X[:, None].astype(np.longdouble) - X.astype(np.longdouble)) ** 2).sum(axis=2))
    np.testing.assert_allclose(matrix(rows), exact.astype(float), atol=3e-12 if shape == "sparse" else 1e-4)
    assert np.all(np.diag(matrix(rows)) == 1.0)


def test_a_cache_smaller_than_the_sum_gives_the_same_sum(monkeypatch):
    monkeypatch.setattr(gram, "LEAST_ROWS", 8)
    monkeypatch.setattr(gram, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(gram, "SQUARE", 8)
    X, signs, theta = problem(200)
    function, kernel = FUNCTIONS["rbf"]
    rows = GramRows(X, function, signs, 40_000, keep="cache")
    assert rows.plan.rows < 20
    Q = signs[:, None] * kernel(X, X) * signs
    for _ in range(3):
        np.testing.assert_allclose(rows.weighted_sum(theta), Q @ theta, rtol=1e-12, atol=1e-12)
    assert len(rows._slots) == rows.plan.rows and rows.nbytes <= 40_000
    first = rows.weighted_sum(theta)
    rows.forget()
    np.testing.assert_array_equal(rows.weighted_sum(theta), first)


def test_threads_do_not_change_the_matrix(monkeypatch):
    monkeypatch.setattr("screenpath.rows.gram.TILE", 16)
    X, signs, _ = problem(100)
    one, two = (GramRows(X, FUNCTIONS["rbf"][0], signs, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one._store, two._store)
    np.testing.assert_array_equal(one._store, one._store.T)


def test_memory_is_told_before_it_is_taken_and_refused_with_the_figure():
    said = []
    X, signs, _ = problem(100)
    GramRows(X, FUNCTIONS["rbf"][0], signs, 1 << 24, tell=said.append)
    assert len(said) == 1 and "100 x 100" in said[0] and "16.0 MB" in said[0]
    with pytest.raises(ResourceError, match="`max_memory=") as caught:
        GramRows(X, FUNCTIONS["rbf"][0], signs, 100_000, keep="full", tell=said.append)
    assert "float32" in str(caught.value) and len(said) == 1
    needed = str(caught.value).split("`max_memory=")[1].split("`")[0]
    assert plan_gram(100, 8, parse_bytes(needed), "full").full  # what the message says is enough
    with pytest.raises(ResourceError, match="cache of 64") as caught:
        plan_gram(100_000, 8, 1 << 20)
    needed = str(caught.value).split("`max_memory=")[1].split("`")[0]
    assert not plan_gram(100_000, 8, parse_bytes(needed)).full


def test_plans_stay_inside_what_is_allowed():
    for n in (50, 3000, 20_000, 200_000):
        for itemsize in (4, 8):
            for allowed in (1 << 29, 1 << 33):
                plan = plan_gram(n, itemsize, allowed)
                square = plan.square**2 - min(n, gram.SQUARE) ** 2
                assert plan.need + 8 * square <= allowed and plan.full == (plan.rows == n)
    assert plan_gram(1000, 8, 1 << 30, "cache").full is False
    with pytest.raises(UsageError, match="auto, full, cache"):
        plan_gram(10, 8, 1 << 30, "sometimes")


def test_what_users_type():
    assert [parse_bytes(text) for text in ("1000", "2K", "1.5M", "8GB", "1t")] == [
        1000, 2048, 3 << 19, 8 << 30, 1 << 40,
    ]  # fmt: skip
    assert [parse_gamma(text, 4) for text in ("1/d", "0.1/d", "2", 3)] == [0.25, 0.025, 2.0, 3.0]
    for text in ("", "x", "-1M", "nan"):
        with pytest.raises(UsageError):
            parse_bytes(text)
    for text in ("d", "1/e", "0", "-2/d", "1e999"):
        with pytest.raises(UsageError, match="gamma"):
            parse_gamma(text, 4)
    for bad in (
        {"name": "tanh"},
        {"name": "rbf", "gamma": 0.0},
        {"name": "poly", "degree": 0},
        {"name": "poly", "coef0": -1.0},
    ):
        with pytest.raises(UsageError):
            KernelFunction(**bad)
