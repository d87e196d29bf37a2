"""The kernel matrix: its values, its memory, and the same sums from a stored matrix, a cache and rounded values."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from screenpath.data.safe.memory import parse_bytes
from screenpath.errors import ResourceError, UsageError
from screenpath.rows import gram, kernel_functions, pairs
from screenpath.rows.gram import GramRows, plan_gram
from screenpath.rows.kernel_functions import KernelFunction, parse_gamma

FUNCTIONS = {
    "rbf": (KernelFunction("rbf", 0.3, constant=0.5), lambda X, Z: rbf_kernel(X, Z, 0.3) + 0.5),
    "laplacian": (KernelFunction("laplacian", 0.3), lambda X, Z: laplacian_kernel(X, Z, 0.3)),
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
@pytest.mark.parametrize("whole", [True, False])
def test_sums_are_those_of_the_definition(monkeypatch, name, storage, whole):
    monkeypatch.setattr(gram, "WHOLE", 2048 if whole else 0)
    if storage == "very sparse":  # as if the dense copy were too large
        monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0)
    monkeypatch.setattr(gram, "HEIGHT", 16)
    monkeypatch.setattr(gram, "WIDTH", 32)
    X, signs, theta = problem()
    function, kernel = FUNCTIONS[name]
    rows = GramRows(X if storage == "dense" else sp.csr_array(X), function, signs, 1 << 24)
    Q = signs[:, None] * kernel(X, X) * signs
    assert rows.sparse == (storage != "dense") and rows.blocks.sparse == (storage == "very sparse")
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(rows.weighted_sum(theta), Q @ theta, **close)
    np.testing.assert_allclose(rows.norms, np.sqrt(np.diag(Q)), rtol=1e-13)
    target, touched = np.array([3, 5, 40]), rows.touched
    np.testing.assert_allclose(
        rows.sum_at(np.array([1, 7]), np.array([2.0, -1.0]), target), (2 * Q[1] - Q[7])[target], **close
    )
    assert rows.touched == touched + 2 * 3 / rows.n
    assert not rows.sum_at(np.zeros(0, dtype=np.int64), np.zeros(0)).any()
    Z = np.random.default_rng(5).normal(size=(9, 4))
    new = rows.held_out(Z if storage == "dense" else sp.csr_array(Z))
    np.testing.assert_allclose(new @ theta, kernel(Z, X) @ theta, rtol=1e-12, atol=1e-12)
    assert not (new @ np.zeros(rows.n)).any()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_square_follows_the_rows_in_use(monkeypatch, name):
    monkeypatch.setattr(gram, "HEIGHT", 16)
    monkeypatch.setattr(gram, "WHOLE", 0)
    X, signs, _ = problem(200)
    function, kernel = FUNCTIONS[name]
    rows, K, rng = GramRows(X, function, signs, 1 << 24), kernel(X, X), np.random.default_rng(2)
    # The second square in float32 finds the memory of a larger one.
    for dtype, close in ((np.float32, 1e-5), (np.float64, 1e-12), (np.float32, 1e-5)):
        rows.forget(fine=dtype == np.float64)
        assert rows.square.values.dtype == dtype and rows.square.values.size == 0
        for size in (30, 40, 20, 90, 80, 120, 200, 50):
            index = np.sort(rng.choice(200, size, replace=False))
            slots = rows.square.slots(index)
            np.testing.assert_allclose(rows.square.part(slots), K[np.ix_(index, index)], rtol=close, atol=close)
        assert rows.square.values.dtype == dtype and rows.square.values.shape[0] <= 200
        assert rows.sharpen() == (dtype == np.float32)
    assert rows.square.dtype == np.float64 and not rows.sharpen()


@pytest.mark.parametrize("storage", ["dense", "very sparse"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_square_is_kept_where_its_values_are_alike_whatever_was_formed_before(monkeypatch, name, storage):
    monkeypatch.setattr(gram, "HEIGHT", 16)
    monkeypatch.setattr(gram, "WHOLE", 0)
    monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0 if storage == "very sparse" else 1 << 28)
    X, signs, _ = problem(200, 11)
    X = X if storage == "dense" else sp.csr_array(X)
    rng, kept = np.random.default_rng(2), GramRows(X, FUNCTIONS[name][0], signs, 1 << 24)
    for size in (30, 41, 20, 90, 150, 50):
        index, alone = np.sort(rng.choice(200, size, replace=False)), GramRows(X, FUNCTIONS[name][0], signs, 1 << 24)
        kept.forget()
        found = kept.square.part(kept.square.slots(index)).copy()
        np.testing.assert_array_equal(found, alone.square.part(alone.square.slots(index)))
        np.testing.assert_array_equal(found, found.T)
    steady = name in ("rbf", "laplacian")
    assert kept.blocks.steady == steady and (kept.square._held.size > 50) == steady
    assert kept.sharpen()
    kept.forget()
    assert kept.square.dtype == np.float32 and kept.square._held.size == 0
    for _ in range(2):  # values in float64 depend on those that are formed with them
        kept.forget(fine=True)
        assert kept.square.dtype == np.float64 and kept.square._held.size == 0
        kept.square.slots(index)


def test_rows_far_from_each_other_or_with_many_columns_are_formed_in_float64():
    X, signs, _ = problem(50, 11)
    function, kernel = FUNCTIONS["laplacian"]
    for far in (X, 1e4 * X, np.hstack([X, np.zeros((50, 200))])):
        rows, out = GramRows(far, function, signs, 1 << 24), np.empty((50, 50), dtype=np.float32)
        rows.blocks.write(out, np.arange(50), np.arange(50), 0)
        assert rows.blocks.steady == (far is X)
        np.testing.assert_allclose(out, kernel(far, far), atol=1e-6)


def test_of_few_rows_the_whole_matrix_is_kept():
    X, signs, _ = problem(200)
    rows, index = GramRows(X, FUNCTIONS["rbf"][0], signs, 1 << 24), np.array([3, 9, 60])
    K = FUNCTIONS["rbf"][1](X, X)[np.ix_(index, index)]
    for close in (1e-6, 1e-12):  # parts of it are float32, until these do not get a solver on
        assert rows.plan.whole
        np.testing.assert_allclose(rows.square.part(rows.square.slots(index)), K, rtol=close)
        assert rows.sharpen() == (close == 1e-6)
    kept = rows.matrix
    rows.forget()
    assert rows.matrix is kept  # it is that of the data, whatever the path
    for less in ({"dtype": np.float32}, {"max_memory": 1_000_000}):
        assert not GramRows(X, FUNCTIONS["rbf"][0], signs, **{"max_memory": 1 << 24, **less}).plan.whole


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


def test_threads_do_not_change_sums(monkeypatch):
    monkeypatch.setattr(gram, "WIDTH", 16)
    monkeypatch.setattr(gram, "HEIGHT", 8)
    monkeypatch.setattr(gram, "WHOLE", 0)
    X, signs, theta = problem(100)
    one, two = (GramRows(X, FUNCTIONS["rbf"][0], signs, threads=t).weighted_sum(theta) for t in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_memory_is_told_before_it_is_taken_and_refused_with_the_figure():
    said = []
    X, signs, _ = problem(100)
    GramRows(X, FUNCTIONS["rbf"][0], signs, 1 << 24, tell=said.append)
    assert len(said) == 1 and "100 rows" in said[0] and "16.0 MB" in said[0]
    with pytest.raises(ResourceError, match="`max_memory=") as caught:
        GramRows(X, FUNCTIONS["rbf"][0], signs, 100_000, tell=said.append)
    assert len(said) == 1
    needed = str(caught.value).split("`max_memory=")[1].split("`")[0]
    assert plan_gram(100, 8, parse_bytes(needed)).square == 100  # what the message says is enough


def test_copies_in_float32_hold_no_values_whose_products_are_too_small_for_it():
    X, signs, _ = problem(200)
    rows, index = GramRows(10.0 * X, KernelFunction("rbf", 0.3), signs, 1 << 24), np.arange(200)
    exact = rows.matrix.copy()
    rough = rows.square.part(rows.square.slots(index)).copy()
    assert rough.dtype == np.float32 and np.count_nonzero((exact > 0.0) & (exact < 1e-30)) > 100
    np.testing.assert_array_equal(rough, np.where(exact < 2.0**-40, 0.0, exact).astype(np.float32))
    assert rows.sharpen()
    np.testing.assert_array_equal(rows.square.part(rows.square.slots(index)), exact)


def test_a_square_that_grows_keeps_its_smallest_values(monkeypatch):
    monkeypatch.setattr(gram, "WHOLE", 0)
    X, signs, _ = problem(200)
    grown, alone = (GramRows(10.0 * X, KernelFunction("rbf", 0.3), signs, 1 << 24) for _ in range(2))
    grown.square.slots(np.arange(20))
    slots = [rows.square.slots(np.arange(200)) for rows in (grown, alone)]
    found, exact = (rows.square.values[np.ix_(at, at)] for rows, at in zip((grown, alone), slots, strict=True))
    assert (exact[:20, :20] < gram.NOTHING).any()
    np.testing.assert_array_equal(found, exact)


def test_plans_stay_inside_what_is_allowed():
    for n in (50, 1000, 3000, 20_000, 200_000):
        for itemsize in (4, 8):
            for allowed in (1 << 29, 1 << 33):
                plan = plan_gram(n, itemsize, allowed)
                assert plan.most <= allowed and min(n, gram.SQUARE) <= plan.square <= min(n, gram.MOST_HELD)
                assert min(n, 100) <= plan.free <= plan.square
    assert plan_gram(200_000, 4, 1 << 33).most < 1 << 30  # it does not grow with the square of n


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
        {"name": "tanh"}, {"name": "rbf", "gamma": 0.0}, {"name": "poly", "degree": 0}, {"name": "poly", "coef0": -1.0},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            KernelFunction(**bad)


@pytest.mark.parametrize("most", [0, 4096])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_pair_of_labels_has_its_own_values(monkeypatch, name, most):
    """Whether its matrix is kept or not, and also where folds have given a matrix of other rows to all labels."""
    monkeypatch.setattr(pairs, "MOST", most)
    X, _, _ = problem(90)
    labels, (function, kernel) = np.arange(90) % 3, FUNCTIONS[name]
    rows = pairs.SharedRows(X, function, labels, 1 << 24)
    rows.take_matrix(np.eye(120), 0.0, np.arange(30, 120), (slice(0, 120),))
    signs, some, found = np.repeat([1.0, -1.0], 30), np.arange(5, 50), []
    for first, second in ((0, 1), (1, 2)):
        index = np.concatenate([np.flatnonzero(labels == first), np.flatnonzero(labels == second)])
        found.append((rows.part(index, signs), kernel(X[index], X[index])))
    for pair, _ in found:
        pair.begin(1e-3)
    for turn in range(3):  # in 4 bytes where that may be; then one of them no longer, then neither
        for pair, K in found:
            assert pair.keeps == (function.exponential and most > 0 and turn < 1 + (pair is found[1][0]))
            np.testing.assert_allclose(pair.square.part(pair.square.slots(some)), K[5:50, 5:50], rtol=1e-5, atol=1e-6)
            off = 60.0 * pair.error if pair.keeps else 1e-11
            np.testing.assert_allclose(pair.weighted_sum(np.ones(60)), signs * (K @ signs), rtol=1e-12, atol=off)
            pair.forget()
        found[min(turn, 1)][0].keep(False)
    later = rows.part(index, signs)
    later.begin(1e-6)
    assert not later.keeps and later.weighted_sum(np.ones(60)) == pytest.approx(signs * (K @ signs), rel=1e-12)


@pytest.mark.parametrize("kept", ["whole", "in 4 bytes", "square"])
def test_what_is_kept_is_free_with_the_rows(monkeypatch, kept):
    """At once, not when garbage is collected next: a path after the other would hold the values of all."""
    monkeypatch.setattr(gram, "WHOLE", 2048 if kept == "whole" else 0)
    monkeypatch.setattr(gram, "FEW", 0 if kept == "in 4 bytes" else 2048)
    X, signs, theta = problem(200)
    rows = GramRows(X, FUNCTIONS["rbf"][0], signs, 1 << 24)
    rows.weighted_sum(theta)
    rows.square.part(rows.square.slots(np.arange(50)))
    other = rows.signed(-signs)
    other.square.slots(np.arange(20))
    values, gone = weakref.ref(rows.square.values), weakref.ref(rows)
    assert rows.keeps == (kept == "in 4 bytes")
    gc.disable()
    try:
        del rows
        assert gone() is None and (values() is None) == (kept == "square")
        other.square.slots(np.arange(90))  # whose square is its own
        del other
        assert values() is None
    finally:
        gc.enable()
