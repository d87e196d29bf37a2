"""Bounds of kernel values and of sums of kernel rows, against exact arithmetic."""

import decimal
import math
from fractions import Fraction as F

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels.rows import gram as gram_kernels
from screenpath.kernels.rows import precise
from screenpath.numbers.rounding import gamma
from screenpath.regions.geometry import KernelPoint
from screenpath.rows import gram, kernel_functions
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction, exact_shift
from screenpath.screen import parse_kernel_rule
from screenpath.solve.smo import Run, make_kernel_solver
from screenpath.walk.loop import PathOptions, solve_point, walk
from tests.kernel_problems import kernel_svm_model
from tests.safety.rational import exact_kernel

FUNCTIONS = (
    KernelFunction("linear"), KernelFunction("linear", constant=1e4), KernelFunction("poly", 0.37, 1),
    KernelFunction("poly", 0.37, 2, 1.0), KernelFunction("poly", 3.1, 5, 0.25, 2.0), KernelFunction("rbf", 0.2),
    KernelFunction("rbf", 40.0, constant=3.0), KernelFunction("laplacian", 0.2),
    KernelFunction("laplacian", 40.0, constant=3.0),
)  # fmt: skip
SHAPES = ("plain", "far from the origin", "two clouds far apart", "one huge row", "tiny", "with a row of zeros")


def rows_of(rng, shape, n=5, d=4):
    X = rng.normal(size=(n, d))
    if shape == "far from the origin":
        X += 10.0 ** rng.uniform(1.0, 8.0, d)
    if shape == "two clouds far apart":
        X = 1e-2 * X + np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None] * 10.0 ** rng.uniform(1.0, 10.0)
    if shape == "one huge row":
        X[0] *= 1e6
    if shape == "tiny":
        X *= 10.0 ** rng.uniform(-170.0, -100.0)
    if shape == "with a row of zeros":
        X[1] = 0.0
    return X


def fractions(X):
    return [[F(float(v)) for v in row] for row in X]


@pytest.fixture(params=["dense", "csr"])
def storage(request, monkeypatch):
    """Return what turns dense rows into those of a storage."""
    if request.param == "dense":
        return np.asarray
    monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0)
    return sp.csr_array


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_within_their_bounds(function, shape, storage):
    rng = np.random.default_rng(0)
    for _ in range(4):
        X = rows_of(rng, shape)
        blocks, exact = KernelBlocks(storage(X), function), fractions(X)
        plain, sharp = blocks.block(slice(None)), blocks.precise_error(5)
        sums = blocks.precise_sums(np.arange(5), np.arange(5), np.eye(5))
        assert sharp < 1e-20
        assert blocks.error < (1e-11 if function.name == "rbf" else 1e-13)
        for i in range(5):
            assert F(blocks.sizes[i]) ** 2 >= exact_kernel(function, exact[i], exact[i])
            assert abs(blocks.sizes[i] - math.sqrt(blocks.diagonal[i])) <= 1e-13 * blocks.sizes[i] + 2.0**-440
            for j in range(5):
                value, size = exact_kernel(function, exact[i], exact[j]), F(blocks.sizes[i]) * F(blocks.sizes[j])
                assert abs(F(plain[i, j]) - value) <= F(blocks.error) * size
                found = F(sums[j, 0, i]) + F(sums[j, 1, i])  # row j of the weights is that unit vector
                assert abs(found - value) <= F(sharp) * size


def test_bounds_of_values_are_not_wasted():
    """Products of long rows of the same sign lose a good part of what the bound allows for."""
    X = np.tile(np.random.default_rng(2).uniform(0.5, 1.0, 4000).astype(np.float32).astype(float) / 3.0, (2, 1))
    blocks = KernelBlocks(X, KernelFunction("poly", 1.0, 3))
    value = exact_kernel(blocks.function, *fractions(X))
    off = abs(F(blocks.block(slice(None))[0, 1]) - value)
    assert 0 < off <= F(blocks.error) * value and blocks.error < 3.2 * gamma(4008)


def test_scaled_rows_add_what_their_values_are_off_by():
    rng = np.random.default_rng(3)
    inexact, X = 1e-9, rng.normal(size=(6, 3)) + 4.0
    moved = X * (1.0 + inexact * rng.choice([-1.0, 1.0], size=X.shape))
    for function in FUNCTIONS:
        blocks, exact = KernelBlocks(moved, function, inexact), fractions(X)
        assert blocks.error > 1e-10
        for i in range(6):
            for j in range(6):
                value, size = exact_kernel(function, exact[i], exact[j]), F(blocks.sizes[i]) * F(blocks.sizes[j])
                assert abs(F(blocks.block(slice(None))[i, j]) - value) <= F(blocks.error) * size * (1 + F(1, 10**6))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_origin_is_subtracted_exactly(shape):
    X = rows_of(np.random.default_rng(4), shape)
    shift = exact_shift(X)
    if shape == "far from the origin":
        assert np.all(np.abs((X - shift).mean(axis=0)) < 1e-3 * np.abs(X.mean(axis=0)))
    for row in X if shift is not None else ():
        assert all(F(float(x)) - F(float(s)) == F(float(x - s)) for x, s in zip(row, shift, strict=True))


def test_neighbours_far_from_the_origin_are_not_taken_for_strangers(storage):
    """From inner products their exponent is -1e4, which would be a kernel value of 0."""
    X = np.array([[1e10], [1e10 + 1e-3], [-1e10], [-1e10 + 1e-3]])
    K = KernelBlocks(storage(X), KernelFunction("rbf", 1.0)).block(slice(None))
    assert np.all(np.abs(K - np.kron(np.eye(2), np.ones((2, 2)))) < 1e-5)


def test_the_exponential_in_twice_the_precision():
    rng = np.random.default_rng(5)
    for t in [0.0, 1e-300, 1e-17, 0.25, 0.5 * math.log(2.0), 600.0, *10.0 ** rng.uniform(-8.0, 2.8, 200)]:
        low = t * 2.0**-54 * rng.uniform(-1.0, 1.0)
        high, rest = precise.exp_minus(t, low)
        with decimal.localcontext() as context:
            context.prec = 60
            exact = F((-(decimal.Decimal(float(t)) + decimal.Decimal(float(low)))).exp())
        assert abs(F(high) + F(rest) - exact) <= F(precise.EXP) * exact + F(1, 2**1074)
    assert precise.exp_minus(800.0, 0.0) == (0.0, 0.0)


def test_exponentials_are_within_their_bound():
    rng, log2 = np.random.default_rng(8), math.log(2.0)
    ties = [-(k + 0.5) * log2 * (1.0 + e) for k in (0, 1, 2, 500, 1020) for e in (-1e-16, 0.0, 1e-16)]
    x = np.array([0.0, -5e-324, -1e-17, -log2, *ties, gram_kernels.LOWEST, *-(10.0 ** rng.uniform(-12.0, 2.85, 400))])
    K, worst = x[None].copy(), F(0)
    gram_kernels.exponentials(K, 1.0, 0.0, K, 0)
    with decimal.localcontext() as context:
        context.prec = 60
        for value, found in zip(x.tolist(), K[0].tolist(), strict=True):
            exact = F(decimal.Decimal(max(value, gram_kernels.LOWEST)).exp())
            worst = max(worst, abs(F(found) - exact) / exact)
    assert K[0, 0] == 1.0 and F(2.0**-54) < worst <= F(gram_kernels.EXP)
    K = np.array([[np.nan, -np.inf, -1e9]])
    gram_kernels.exponentials(K, 1.0, 0.0, K, 0)
    assert np.isnan(K[0, 0]) and 0.0 < K[0, 1] == K[0, 2] < 2.0**-1000


def test_rough_exponentials_are_as_good_as_float32():
    x = -np.concatenate([[0.0, 1e-30, 87.5, 800.0], 10.0 ** np.random.default_rng(9).uniform(-9.0, 1.9, 400)])
    out = np.full((3, x.size + 2), 7.0, dtype=np.float32)
    out[1, : x.size] = x
    gram_kernels.rough_exponentials(out, 1, 2, x.size, 0.25)
    apart = np.abs(out[1, : x.size] - (np.exp(x) + 0.25))
    assert out[1, 0] == 1.25 and apart.max() < 2.0**-22
    assert np.all(out[[0, 2]] == 7.0) and np.all(out[1, x.size :] == 7.0)


def test_what_is_below_the_diagonal_is_mirrored_from_a_row_on():
    K = np.random.default_rng(10).normal(size=(100, 104))
    before = K.copy()
    gram_kernels.mirror(K, 40, 90)
    for i in range(100):
        for j in range(104):
            copied = i < j and 40 <= j < 90
            assert K[i, j] == (before[j, i] if copied else before[i, j])


def problem(function, n=9, seed=0, dtype="float64", far=0.0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)) + far, np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    rows = GramRows(X, function, y, 1 << 24, dtype)
    model, exact = kernel_svm_model(rows, rng.uniform(0.5, 2.0, n)), fractions(X)
    Q = [[int(y[i] * y[j]) * exact_kernel(function, exact[i], exact[j]) for j in range(n)] for i in range(n)]
    return model, Q


def products(Q, theta):
    return [sum(q * F(float(t)) for q, t in zip(row, theta, strict=True)) for row in Q]


@pytest.mark.covering(9)
@pytest.mark.parametrize("function", [FUNCTIONS[1], FUNCTIONS[4], FUNCTIONS[6]], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_of_a_path_are_within_their_bounds(function, dtype):
    """Formed anew, updated from step to step, and started between the reference and the guess; with float32 they are
    formed from the data, else from the whole matrix."""
    model, Q = problem(function, dtype=dtype, far=2.0)
    options = PathOptions(tol=1e-3, max_epochs=60)
    updated = 0
    for rule in ("it", "none"):
        grid = np.geomspace(1e-5, 1e2, 40)
        with np.errstate(invalid="ignore"):  # of a lens whose balls are nested, what is not asked for may be no number
            found = list(walk(model, grid, parse_kernel_rule(rule), make_kernel_solver("smo"), options))
        for _, c in found:
            exact, updated = products(Q, c.theta), updated + (c.updates > 1)
            for i in range(model.size):
                size = F(model.norms[i])
                assert abs(F(c.total[i]) - exact[i]) <= F(c.product_error) * size
                own = sum(q * F(float(a)) for q, a in zip(Q[i], c.point.vector, strict=True))
                assert abs(F(c.point.products[i]) - own) <= F(c.point.error) * size
            assert c.product_error <= (1e-11 if function.name == "rbf" else 1e-13) * float(model.hi @ model.norms)
            square = sum(F(float(t)) * p for t, p in zip(c.theta, exact, strict=True))
            assert abs(F(c.total_sq) - square) <= F(c.total_error)
    assert updated > 3  # in the tail of the path the sums are scaled


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_of_a_solve_are_within_their_bounds(dtype):
    model, Q = problem(FUNCTIONS[4], dtype=dtype, far=1.0)
    C, screening = 0.01, parse_kernel_rule("none")
    near = solve_point(model, C, 0, model.start(C), screening, make_kernel_solver("smo"), PathOptions(tol=1e-2))[1]
    reduced = model.reduce(3.0 * C, screening.before(model, near, 3.0 * C), near)
    run = Run(reduced)
    for _ in range(4):
        alpha = np.zeros(model.size)
        alpha[reduced.index] = run.alpha
        for k, i in enumerate(reduced.index):
            exact = sum(q * F(float(a)) for q, a in zip(Q[i], alpha, strict=True))
            assert abs(F(run.products[k]) - exact) <= F(run.error) * F(reduced.norms[k])
        run.epoch(0.0, True, False)
    assert run.error < 1e-10 * float(np.abs(run.alpha) @ reduced.norms)


def test_sums_over_rows_are_as_deep_as_they_say(monkeypatch):
    rng = np.random.default_rng(6)
    n = 203
    for height, whole in ((256, 0), (32, 0), (256, 2048)):
        monkeypatch.setattr(gram, "HEIGHT", height)
        monkeypatch.setattr(gram, "WHOLE", whole)
        rows = GramRows(rng.normal(size=(n, 3)), KernelFunction("rbf", 0.1), np.ones(n), 1 << 24)
        assert rows.depth(200) <= min(height, 200) + 7 + 12 and rows.depth(3) >= 3
        Q = np.array([rows.weighted_sum(e) for e in np.eye(n)])
        theta = rng.normal(size=n)
        found = rows.weighted_sum(theta)
        for j in range(0, n, 20):
            exact = sum(F(a) * F(b) for a, b in zip(Q[:, j].tolist(), theta.tolist(), strict=True))
            size = sum(abs(F(a) * F(b)) for a, b in zip(Q[:, j].tolist(), theta.tolist(), strict=True))
            assert abs(F(found[j]) - exact) <= F(gamma(rows.depth(n))) * size


def point_of(model, vector):
    return KernelPoint(vector, model.rows.weighted_sum(vector), 0.0, model._spread(vector), model._sum_error(vector))


def test_distances_of_points_are_rounded_down():
    model, Q = problem(FUNCTIONS[1], seed=7)
    rng = np.random.default_rng(8)
    for apart in (1.0, 1e-4, 1e-7, 0.0):
        theta = rng.random(model.size)
        other = theta + apart * rng.normal(size=model.size)
        a, b = (point_of(model, vector) for vector in (theta, other))
        step = [F(x) - F(y) for x, y in zip(theta.tolist(), other.tolist(), strict=True)]
        exact = sum(s * q * t for s, row in zip(step, Q, strict=True) for q, t in zip(row, step, strict=True))
        assert F(a.distance(b)) ** 2 <= exact
        assert apart < 1e-3 or a.distance(b) > 0.99 * math.sqrt(exact)
