"""Scaling and bias: what the model sees, and coefficients in the file's units."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.data.files.prepare import SCALES, fit_preparation, prepare, say_nearly_constant
from screenpath.errors import DataError, UsageError

X = np.random.default_rng(0).normal(size=(30, 5)) * [1, 10, 0.1, 0, 3] + [0, 5, 0, 7, 0]


CHOICES = [(scale, storage) for scale in SCALES for storage in ("dense", "sparse")]
CHOICES.remove(("standard", "sparse"))  # refused, see below


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize(("scale", "storage"), CHOICES)
def test_decisions_agree_in_both_units(scale, bias, storage):
    prepared, preparation = prepare(X, scale, bias, storage)
    w = np.linspace(-1, 1, prepared.shape[1])
    coefficients, intercept = preparation.original(w)
    units = X / np.linalg.norm(X, axis=1)[:, None] if scale == "l2" else X
    np.testing.assert_allclose(prepared @ w, units @ coefficients + intercept, rtol=1e-11, atol=1e-11)
    assert prepared.shape[1] == X.shape[1] + (bias != 0)


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("scale", SCALES)
def test_new_rows_may_be_sparse_or_dense(scale, bias):
    _, preparation = prepare(X, scale, bias, "dense")
    found = preparation.apply(sp.csr_array(X))
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, preparation.apply(X), rtol=1e-14, atol=1e-14)


def test_scalings_do_what_they_say():
    standard, _ = prepare(X, "standard", 0.0, "dense")
    np.testing.assert_allclose(standard.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(standard.std(axis=0)[[0, 1, 2, 4]], 1.0)
    assert np.all(standard[:, 3] == 0.0)  # constant: centred, not blown up
    peak, _ = prepare(sp.csr_array(X), "maxabs", 0.0, "sparse")
    np.testing.assert_allclose(abs(peak).max(axis=0).toarray().ravel(), 1.0)
    unit, _ = prepare(np.vstack([X, np.zeros(5)]), "l2", 0.0, "dense")
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), np.r_[np.ones(30), 0.0])


def test_bad_choices_are_named():
    with pytest.raises(UsageError, match="unknown scaling"):
        fit_preparation(X, "minmax")
    with pytest.raises(UsageError, match="fill these sparse rows"):
        fit_preparation(sp.csr_array(X), "standard")
    with pytest.raises(UsageError, match="finite"):
        fit_preparation(X, "none", np.inf)


@pytest.mark.parametrize("size", [1e-146, 1e-200])
def test_rows_too_small_for_their_norm_are_named(size):
    """They were left as they are, or divided by a norm of few digits."""
    some = np.array([[3.0, -4.0], [0.0, 0.0], [3.0 * size, 4.0 * size]])
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(DataError, match="underflow: the squared norm of a row falls below .*`scale=l2` needs"):
            prepare(form(some), "l2")
        found = prepare(form(some[:2]), "l2", 0.0, "dense")[0]
        np.testing.assert_array_equal(found, [[0.6, -0.8], [0.0, 0.0]])
        np.testing.assert_allclose(prepare(form(some[2:] / size), "l2", 0.0, "dense")[0][0], [0.6, 0.8], rtol=1e-15)


@pytest.mark.parametrize("size", [1e155, 1e300])
def test_squares_that_overflow_are_named(size):
    """They were a warning of numpy's, and rows of l2 were 0."""
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(DataError, match="squared norm of a row exceeds .*`scale=l2` needs"):
            prepare(form(X * size), "l2")
        assert np.isfinite(prepare(form(X * size), "maxabs", 0.0, "dense")[0]).all()
    with pytest.raises(DataError, match="variance of feature 2 exceeds .*`scale=standard` needs"):
        prepare(X * [1.0, size, 1.0, 1.0, 1.0], "standard")
    with pytest.raises(DataError, match="variance of feature 2 falls below .*`scale=standard` needs"):
        prepare(X * [1.0, 1e-20 / size, 1.0, 1.0, 1.0], "standard")  # it was taken for a constant
    preparation = prepare(X, "l2")[1]
    with pytest.raises(DataError, match="squared norm of a row exceeds"):
        preparation.apply(X * size)


def test_norms_do_not_depend_on_the_order_of_the_array():
    X = np.random.default_rng(0).normal(size=(50, 37))
    paths = [screenpath.svm_path(values, np.sign(X[:, 0]), grid=3, scale="l2") for values in (X, np.asfortranarray(X))]
    assert np.array_equal(*(path.steps[-1].coefficients for path in paths))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_what_float32_cannot_hold_is_one_error(storage):
    with pytest.raises(DataError, match="overflow"):
        screenpath.svm_path([[1e50, 3], [2, 1], [1, 1]], [1, -1, 1], dtype="float32", storage=storage, grid=2)


ODD = (1.7e9, 1700000000123456789.0, 333333333333333.3, 0.1, -1e-300, 3e200)  # whose rounded means differ from them


def _with_constants(n: int):
    """Return rows of one column that varies and constant ones behind it."""
    varying = np.random.default_rng(1).normal(size=(n, 1))
    return np.hstack([varying, np.tile(ODD, (n, 1))])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
def test_constant_columns_are_told_exactly(form, weighted, dtype):
    rows = _with_constants(1000)
    weights = None
    if weighted:  # what stands in rows of weight 0 has no say
        weights = np.random.default_rng(2).integers(0, 3, size=1000).astype(float)
        rows[weights == 0.0, 1:] = 0.0
    prepared, preparation = prepare(form(rows), "standard", 0.0, "dense", dtype, weights)
    counted = slice(None) if weights is None else weights > 0.0
    assert np.all(prepared[counted, 1:] == 0.0)
    assert preparation.shift[1:].tolist() == list(ODD) and np.all(preparation.scale[1:] == 1.0)
    assert preparation.nearly is None and prepared[counted, 0].std() > 0.5


def test_a_column_of_one_value_and_zeros_is_not_constant():
    _, preparation = prepare(sp.csr_array([[5.0], [0.0], [5.0], [5.0]]), "standard", 0.0, "dense")
    assert preparation.scale[0] > 2.0 and preparation.shift[0] == 3.75


def test_nearly_constant_columns_have_the_right_mean_and_are_named():
    steps = np.random.default_rng(3).integers(0, 3, size=5000)
    start = 1.7e9 + 1 / 3
    column = start + steps * np.spacing(start)
    _, preparation = prepare(np.stack([column, steps * 1.0], axis=1), "standard", 0.0, "dense")
    exact = sum(map(Fraction, column.tolist())) / 5000
    spread = float(sum((Fraction(x) - exact) ** 2 for x in column.tolist()) / 5000) ** 0.5
    assert abs(Fraction(preparation.shift[0]) - exact) <= Fraction(np.spacing(start))
    np.testing.assert_allclose(preparation.scale[0], spread, rtol=1e-9)
    assert preparation.nearly.tolist() == [0]
    told = []
    say_nearly_constant(preparation, ("stamp", "steps"), "data.csv", told.append)
    assert len(told) == 1 and "'stamp' is nearly constant" in told[0] and "steps" not in told[0]
