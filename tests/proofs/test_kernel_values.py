"""What is bounded of kernel values, with units of rounding so large that every term counts, and parameters."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.errors import UsageError
from screenpath.kernels.rows import gram as distances
from screenpath.kernels.rows import precise
from screenpath.rows import kernel_functions
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction
from tests.conftest import set_constant

SCALE, UNIT, OUTWARD = 1e-3, 0.004, 1.25
LIBRARY, HIDDEN = 0.006, 0.0007
FUNCTIONS = (
    KernelFunction("linear"), KernelFunction("linear", constant=3.0), KernelFunction("poly", 0.37, 2),
    KernelFunction("poly", 1.7, 3, 0.25), KernelFunction("poly", 0.37, 5, 0.25, 2.0), KernelFunction("rbf", 0.2),
    KernelFunction("rbf", 9.0, constant=3.0), KernelFunction("laplacian", 0.2),
    KernelFunction("laplacian", 4.0, constant=1.0),
)  # fmt: skip


@pytest.fixture
def coarse(monkeypatch):
    """Make units of rounding 1e13 times what they are."""
    for name, value in (
        ("gamma", lambda depth: SCALE * depth), ("UNIT", UNIT), ("OUTWARD", OUTWARD), ("LIBRARY", LIBRARY),
        ("HIDDEN", HIDDEN), ("EXPONENT_ERROR", 0.8),
    ):  # fmt: skip
        monkeypatch.setattr(kernel_functions, name, value)
    set_constant(monkeypatch, distances, "EPSILON", 0.02)


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_sizes_of_rows(function, coarse):
    X, inexact, d = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, 0.2]]), 0.02, 3
    found = KernelBlocks(X, function, inexact).sizes
    for size, row in zip(found, X, strict=True):
        square = row @ row * (1.0 + SCALE * (d + 8) + 4.0 * inexact) + HIDDEN
        if function.exponential:
            square = 1.0
        if function.name == "poly":
            square = (function.gamma * square + function.coef0 + HIDDEN) * OUTWARD
            rounded = (1.0 + SCALE * 2 * function.degree) * (1.0 + 2.0 * LIBRARY)
            square = square**function.degree * rounded + HIDDEN
        plain = function.exponential and function.constant == 0.0
        assert size == pytest.approx(math.sqrt(square + function.constant) * (1.0 if plain else OUTWARD), rel=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_only_rows_of_zeros_have_no_size(storage, monkeypatch):
    monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0)
    X = storage(np.array([[0.0, 0.0], [1e-170, 0.0], [1.0, 2.0], [0.0, 0.0]]))
    for function, empty in (
        (KernelFunction("linear"), True), (KernelFunction("linear", coef0=2.0), True), (KernelFunction("poly"), True),
        (KernelFunction("linear", constant=1.0), False), (KernelFunction("poly", constant=1.0), False),
        (KernelFunction("poly", coef0=2.0), False), (KernelFunction("rbf"), False),
    ):  # fmt: skip
        assert (KernelBlocks(X, function).sizes > 0.0).tolist() == [not empty, True, True, not empty]


def test_small_sparse_rows_are_made_dense(monkeypatch):
    X = np.random.default_rng(5).normal(size=(4, 3))
    for most, sparse in ((96, False), (95, True)):
        monkeypatch.setattr(kernel_functions, "DENSE_BYTES", most)
        for rows, expected in ((X, False), (sp.csr_array(X), sparse)):
            blocks = KernelBlocks(rows, KernelFunction("linear"))
            assert blocks.sparse == sp.issparse(blocks.X) == expected
            np.testing.assert_allclose(blocks.block(slice(None)), X @ X.T)


def test_what_a_kernel_value_is_a_function_of(coarse):
    X = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, 0.2]])
    for name in ("linear", "poly"):
        assert KernelBlocks(X, KernelFunction(name))._inner_error() == pytest.approx(SCALE * 11)
    for rate in (0.2, 0.7, 9.0):
        blocks = KernelBlocks(X, KernelFunction("rbf", rate))
        blocks.squares = np.array([0.14, 5.25])  # those of shifted rows are others
        most = min(rate * 2.0 * 5.25, 0.8 / 0.08)
        assert blocks._inner_error() == pytest.approx(2.0 * SCALE * 11 * most, rel=1e-12)


@pytest.mark.parametrize("inexact", [0.0, 0.03])
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_errors_of_values(function, inexact, coarse, monkeypatch):
    X = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, 0.2]])
    blocks = KernelBlocks(X, function, inexact)
    blocks.squares, blocks.shift = np.array([0.14, 5.25]), np.array([0.3, 0.0, 0.4])
    far = (math.sqrt(5.25) + 0.5) * (1.0 + SCALE * 11)
    assert blocks._farthest() == pytest.approx(far, rel=1e-12)
    rows, constant = (2.0 + inexact) * inexact, function.constant != 0.0

    def expected(inner, library, unit):
        if function.name == "linear":
            error = inner + rows
        elif function.name == "poly":
            error = (1.0 + inner + rows + 4.0 * unit) ** function.degree - 1.0 + 2.0 * library
        else:
            error = math.expm1(inner + 2.0 * 11.0 * unit + 2.0 * library)
            steep = math.sqrt(function.gamma) if function.name == "rbf" else function.gamma * math.sqrt(3.0)
            error = min(error + steep * 2.0 * inexact * far, 1.0) + HIDDEN
        return (error + (2.0 * unit if constant else 0.0)) * OUTWARD

    for inner, library, unit in ((0.1, 0.06, 0.004), (0.02, 0.001, 0.0001), (2.0, 0.01, 0.004)):
        assert blocks.value_error(inner, library, unit) == pytest.approx(expected(inner, library, unit), rel=1e-9)
    monkeypatch.setattr(precise, "UNIT", 0.003)
    monkeypatch.setattr(precise, "EXP", 0.05)
    library = 0.05 if function.exponential else function.degree * 0.003
    whole = expected(4.0 * (SCALE * (2 * 3 + 16)) ** 2, library, 0.003) + 4.0 * (SCALE * (40 + 8)) ** 2
    assert blocks.precise_error(40) == pytest.approx(whole * OUTWARD, rel=1e-9)


def test_what_underflow_hides_of_sums_in_twice_the_precision(monkeypatch):
    monkeypatch.setattr(kernel_functions, "gamma", lambda depth: 0.0)
    monkeypatch.setattr(kernel_functions, "OUTWARD", 1.0)
    monkeypatch.setattr(precise, "UNIT", 0.0)
    blocks = KernelBlocks(np.ones((2, 3)), KernelFunction("linear"))
    assert blocks.precise_error(40) == (3 + 8 + 40 + 8) * 2.0**-160


def test_an_overflow_bounds_nothing():
    blocks = KernelBlocks(np.ones((2, 3)), KernelFunction("poly", degree=5))
    with np.errstate(over="ignore"):
        assert blocks.value_error(1e200, 0.0) == math.inf


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_values_on_the_diagonal(function):
    X = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, 0.2]])
    square = np.array([5.25, 0.14])
    plain = {"linear": square, "poly": (function.gamma * square + function.coef0) ** function.degree, "rbf": np.ones(2)}
    plain["laplacian"] = plain["rbf"]
    blocks = KernelBlocks(X, function)
    np.testing.assert_allclose(blocks.diagonal, plain[function.name] + function.constant, rtol=1e-14)
    np.testing.assert_allclose(blocks.block(slice(None)).diagonal(), blocks.diagonal, rtol=1e-14)


def test_sums_in_twice_the_precision_are_formed_so_many_at_a_time(monkeypatch):
    X, heights = np.random.default_rng(4).normal(size=(7, 3)), []
    blocks, plain = KernelBlocks(X, KernelFunction("linear")), precise.sums
    monkeypatch.setattr(precise, "sums", lambda *a: heights.append(a[1].size) or plain(*a))
    support, weights = np.array([0, 3]), np.array([[1.0, 2.0], [-1.0, 0.5]])
    for cells, expected in ((3 * 2 * (3 + 64), [3, 3, 1]), (10, [1] * 7), (1 << 24, [7])):
        heights.clear()
        monkeypatch.setattr(kernel_functions, "PRECISE_CELLS", cells)
        found = blocks.precise_sums(np.arange(7), support, weights)
        assert heights == expected
        np.testing.assert_allclose(found.sum(axis=1), weights @ X[support] @ X.T)
    tried, block = [], blocks.block
    monkeypatch.setattr(blocks, "block", lambda rows, *of: tried.append((rows.start, rows.stop)) or block(rows, *of))
    monkeypatch.setattr(kernel_functions, "BLOCK_BYTES", 40)
    coefficients = np.array([1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.25])  # two rows, and an intercept
    np.testing.assert_allclose(blocks.held_out(X[:5]) @ coefficients, X[:5] @ (X[0] + 2.0 * X[3]) + 0.25)
    assert tried == [(0, 2), (2, 4), (4, 6)]
    none = np.zeros(0, dtype=np.int64)
    assert not blocks.precise_sums(np.arange(7), none, np.zeros((2, 0))).any()


def test_bounds_of_sums_in_float32(monkeypatch):
    set_constant(monkeypatch, distances, "ROUGH_LEAST", -12.0)
    rng = np.random.default_rng(4)
    index, target, weights = rng.permutation(600)[:590], rng.permutation(600)[:5], 7.0 * rng.normal(size=590)
    weights[0], blocks = 0.0, KernelBlocks(rng.normal(size=(600, 3)), KernelFunction("rbf", 0.3))
    X, w = blocks.X, np.abs(weights)
    a = 0.3 * np.square(X).sum(axis=1)
    K = np.exp(-0.3 * np.square(X[index][:, None] - X[target]).sum(axis=2))
    units = kernel_functions.ROUGH_HEIGHT + 1.0 + distances.ROUGH_EXP / kernel_functions.ROUGH_UNIT
    units = (units + (3 + 8) * a[target]) * (w @ K) + (3 + 8) * (w * a[index]) @ K
    found, bound = blocks.rough_sums(index, weights, target)
    np.testing.assert_allclose(found, weights @ K, rtol=1e-3, atol=1e-2)
    expected = 1.05 * (kernel_functions.ROUGH_UNIT * units + 2.0 * np.exp(-12.0) * w.sum())
    np.testing.assert_allclose(bound, expected, rtol=1e-4)
    most = kernel_functions.ROUGHEST / (kernel_functions.ROUGH_UNIT * (3 + 8) * 2.0 * np.square(X).sum(axis=1).max())
    for part in (0.999, 1.001):
        assert KernelBlocks(X, KernelFunction("rbf", part * most)).roughens == (part < 1.0)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_only_rows_near_each_other_in_few_columns_are_formed_in_float32(name):
    X = np.random.default_rng(7).normal(size=(20, 3))
    far, most = KernelBlocks(X, KernelFunction(name)).squares.max(), kernel_functions.NEAR
    limit = most**2 / far if name == "rbf" else most / math.sqrt(3 * far)
    for part in (0.999, 1.001):
        assert KernelBlocks(X, KernelFunction(name, part * limit)).steady == (part < 1.0)
    some, out = KernelBlocks(X, KernelFunction(name, 0.3, constant=0.5)), np.zeros((9, 12), dtype=np.float32)
    some.write(out, np.arange(7, 0, -1), np.arange(12), 1)
    np.testing.assert_allclose(out[1:8], some.block(np.arange(7, 0, -1), np.arange(12)), atol=1e-6)
    for columns in (128, 129):
        wide = KernelBlocks(np.hstack([X, np.zeros((20, columns - 3))]), KernelFunction(name, 0.3, constant=0.5))
        assert wide.steady == (columns == 128)
        for kind in (np.float32, np.float64):  # of doubles the values are those of all others
            out = np.zeros((9, 12), dtype=kind)
            wide.write(out, np.arange(7), np.arange(12), 1)
            np.testing.assert_allclose(
                out[1:8], some.block(np.arange(7), np.arange(12)), rtol=1e-14, atol=1e-6 * (kind == np.float32)
            )
    far = KernelBlocks(100.0 + X, KernelFunction(name))
    assert (far.shift is None) == (name != "rbf") and np.array_equal(far.rows, 100.0 + X)


def test_parameters_of_a_kernel():
    for text, d, value in (("1/d", 4, 0.25), ("0.5 / d", 2, 0.25), ("0.1", 7, 0.1), (3, 7, 3.0), ("1/d", 0, 1.0)):
        assert kernel_functions.parse_gamma(text, d) == value
    X = np.array([[1.0, 0.0], [0.0, 4.0], [-2.0, 0.0]])
    for rows in (X, sp.csr_array(X)):  # a third column is missing
        variance = float(np.var(np.hstack([X, np.zeros((3, 1))])))
        assert kernel_functions.parse_gamma(" scale ", 3, rows) == pytest.approx(1.0 / (3.0 * variance))
    assert kernel_functions.parse_gamma("scale", 2, X) == pytest.approx(0.5 / np.var(X))
    assert kernel_functions.parse_gamma("scale", 3, np.ones((3, 2))) == pytest.approx(1.5)  # two thirds are 1
    for same, d in ((0.1, 2), (0.0, 3)):
        assert kernel_functions.parse_gamma("scale", d, np.full((3, 2), same)) == 1.0
    for text in ("0", "-1", "inf", "1/2", "e", "nan", "scale"):
        with pytest.raises(UsageError):
            kernel_functions.parse_gamma(text, 3)
    for more in ({"gamma": 0.0}, {"gamma": math.inf}, {"gamma": -1.0}, {"degree": 0}, {"degree": 1.5}, {"coef0": -1.0},
                 {"coef0": math.inf}):  # fmt: skip
        with pytest.raises(UsageError):
            KernelFunction("poly", **more)
    with pytest.raises(UsageError, match="unknown kernel 'sigmoid'"):
        KernelFunction("sigmoid")
    with pytest.raises(UsageError, match="unknown kernel"):
        KernelFunction("cosine")
    assert KernelFunction("poly", 1e-9, 1, 0.0).describe()["degree"] == 1
    assert KernelFunction("rbf").describe() == {"kernel": "rbf", "gamma": 1.0, "constant": 0.0}
