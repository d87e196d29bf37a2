"""Sums without rounding but that of their result, and exponents that do not cancel, against fractions."""

import math
from fractions import Fraction as F

import numpy as np
import pytest

from screenpath.kernels.rows import gram as distances
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.numbers.accurate import LOST, inner, largest, scaled, two_products, two_sum

U = F(1, 2**53)


def dot(a, b):
    return sum((F(float(x)) * F(float(y)) for x, y in zip(a, b, strict=True)), F(0))


def test_sums_and_products_of_two_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1.0, 1.0, (2, 300)) * 10.0 ** rng.uniform(-30.0, 0.0, (2, 300))
    for x, y, *parts in zip(a, b, *two_products(a, b), *two_sum(a, b), strict=True):
        high, low, total, lost = map(F, parts)
        assert high + low == F(x) * F(y) and high == x * y and total + lost == F(x) + F(y) and total == x + y


def test_factors_are_scaled_by_a_power_of_two():
    for size in (1e-300, 1e-3, 1.0, 3.0, 2.0**700):
        a = size * np.array([0.3, -1.0, 0.0])
        found, exponent = scaled(a)
        assert 0.5 <= np.abs(found).max() < 1.0 and np.all(np.ldexp(found, exponent) == a)
    assert scaled(np.zeros(0))[1] == 0 and scaled(np.zeros(2))[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("scale", [1e-120, 1e-100, 1e-3, 1.0, 1e60, 1e140])
def test_an_inner_product_is_rounded_once(scale):
    rng = np.random.default_rng(1)
    for _ in range(40):
        k = int(rng.integers(1, 9))
        a, b = rng.normal(size=(2, k)) * 10.0 ** rng.uniform(-9.0, 0.0, (2, k))
        a, b = a * scale, b * scale * rng.choice([1.0, 1e-3])
        if rng.random() < 0.5:  # it cancels
            a, b = np.concatenate([a, -a]), np.concatenate([b, b * (1.0 + 2.0**-40)])
        start = float(rng.choice([0.0, 1.0, -1e-9])) * scale * scale
        value, error = inner(a, b, start)
        exact, exponent = F(start) + dot(a, b), sum(int(np.frexp(np.abs(v).max())[1]) for v in (a, b))
        assert abs(F(value) - exact) <= F(error)
        stated = U * abs(F(value)) + (a.size + 1) * F(LOST) * F(2) ** exponent + F(2.0**-1074)
        assert abs(F(error) - stated) <= stated / 10**12 + F(2.0**-1074)


def test_zeros_are_not_terms():
    a, b = np.array([1.0, 0.0, 2.0, 0.0]), np.array([3.0, 5.0, 0.0, 0.0])
    value, error = inner(a, b, 0.5)
    assert value == 3.5 and error == 3.5 * 2.0**-53 + 2.0 * LOST * 2.0**3
    assert inner(a[1:2], b[1:2], 0.5) == (0.5, 2.0 * (2.0**-900 + 2.0**-53 * 0.5)) and inner(a[:0], b[:0])[0] == 0.0


def test_products_at_the_end_of_the_range():
    one, two = np.array([0.5, 0.5]), np.array([0.5, 0.25])
    for first, second in ((480, 480), (960, 0), (-480, -480), (1000, -60)):  # the exponent is that of the two largest
        a, b = np.ldexp(one, first), np.ldexp(two, second)
        value, error = inner(a, b)
        assert F(value) == dot(a, b) and 0.0 < error <= 2.0**-52 * value + math.ldexp(1.0, -1000 + first + second)
    value, error = inner(np.ldexp(one, 500), np.ldexp(two, 461), 7.0)
    assert (value, error) == (7.0, math.inf)
    for first, second, start in ((-500, -461, 0.0), (-600, -600, 0.0), (-500, -461, 1.0), (-1000, 0, -3.0)):
        a, b = np.ldexp(one, first), np.ldexp(two, second)
        value, error = inner(a, b, start)
        assert abs(F(value) - dot(a, b) - F(start)) <= F(error)
        assert error == 4.0 * (2.0**-900 + 2.0**-53 * abs(value)) and (start or value == float(dot(a, b)))


def test_what_underflow_may_take_from_products_that_cancel():
    a, b = np.array([1.0, -1.0]), np.ones(2)
    assert inner(a, b) == (0.0, 3.0 * LOST * 2.0**2)
    assert inner(np.ldexp(a, -480), np.ldexp(b, -480)) == (0.0, 2.0**-1074)


@pytest.mark.parametrize("start", [2.0**100, -1e300])
def test_a_start_beyond_all_products_is_no_overflow(start):
    a = np.ldexp([0.5, 0.5], -480)
    value, error = inner(a, a, start)
    assert value == start and 2.0**-53 * abs(start) <= error <= 2.0**-50 * abs(start)
    a = np.ldexp([0.5, 0.25], -400)  # as far from it as a double can be scaled
    assert inner(a, a, 2.0**158) == (2.0**158, 2.0**105 + math.ldexp(3.0 * LOST, -800))


def test_only_values_that_may_be_the_largest_are_formed_again():
    asked = []

    def form(k):
        asked.append(k)
        return formed[k]

    values, errors = np.array([3.0, -5.0, 1.0, -4.0, 0.5, 2.0]), np.array([1.0, 0.5, 2.0, 4.0, 6.0, 3.0])
    formed = {3: (-6.0, 1.0), 4: (6.5, 7.0)}
    assert largest(values, errors, form) == 6.0 and asked == [3, 4]  # 1 +- 2 and 2 +- 3 are not above 5
    asked.clear()
    formed = {3: (4.5, 0.1), 4: (6.5, 0.1)}
    assert largest(values, errors, form) == 6.5 and asked == [3, 4]
    formed = {0: (0.3, 0.1), 1: (0.2, 0.3), 2: (-0.25, 0.1)}
    assert largest(np.array([0.3, 0.2, -0.1]), np.array([0.4, 0.4, 0.4]), form) == 0.3
    formed = {0: (0.1, 0.1)}
    assert largest(np.array([0.1]), np.array([0.1]), form) == 0.0  # nothing but rounding
    assert largest(np.zeros(0), np.zeros(0), form) == 0.0 and largest(np.array([-2.0]), np.zeros(1), form) == 2.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_over_stored_rows(dtype):
    """In whole numbers, of which every order gives the same sums."""
    rng, index = np.random.default_rng(3), np.array([5, 0, 3, 6, 1, 4, 2])
    Q, weights = rng.integers(-9, 10, (7, 2050)).astype(dtype), rng.choice([-3.0, -2.0, 1.0, 2.0, 5.0], 7)
    for size in (7, 8, 3):
        some, out = np.resize(index, size), np.ones(2050)
        distances.add_rows(Q, some, np.resize(weights, size), out, 0)
        np.testing.assert_array_equal(out, 1.0 + np.resize(weights, size) @ Q[some])
        later = np.ones(2047)
        distances.add_rows(Q, some, np.resize(weights, size), later, 3)
        np.testing.assert_array_equal(later, out[3:])
        columns, found = rng.permutation(2050)[:9], np.full(9, 2.0)
        distances.add_rows_at(Q, some, np.resize(weights, size), columns, found)
        np.testing.assert_array_equal(found, 1.0 + out[columns])
    for least in (0.0, 4.0):
        found = np.empty((2, 9), dtype=dtype)
        distances.gather(Q, index[:2], columns, 3.0, found, least)
        exact = 3.0 * Q[np.ix_(index[:2], columns)]
        np.testing.assert_array_equal(found, np.where(np.abs(exact) < least, 0.0, exact))
    norms, ones, large = np.array([3.0, 0.0, 5.0, 1.0, 7.0, 2.0, 4.0]), np.ones((8, 1), dtype=dtype), 2.0**53
    assert distances.spread(weights, norms) == np.abs(weights) @ norms
    assert distances.spread_at(weights, norms, index) == np.abs(weights) @ norms[index]
    assert distances.inner(weights, norms) == (weights @ norms, np.abs(weights * norms).sum())
    out, found = np.full((2, 1), large)  # four are added at once: one by one, each would be lost
    distances.add_rows(ones, np.arange(8), ones[:, 0].astype(float), out, 0)
    distances.add_rows_at(ones, np.arange(8), ones[:, 0].astype(float), np.zeros(1, dtype=np.int64), found)
    assert out[0] == found[0] == large + 8.0


def test_rough_exponents_are_those_of_rounded_rows():
    rng = np.random.default_rng(4)
    A, B = (rng.integers(-5, 6, shape).astype(np.float32) for shape in ((3, 8), (8, 515)))
    steps = np.abs(A[:, :, None] - B)
    for city, exact in ((True, -steps.sum(axis=1)), (False, -np.square(steps).sum(axis=1))):
        out = np.full((5, 517), 7.0, dtype=np.float32)
        distances.rough_exponents(A, B, city, out, 1)
        np.testing.assert_array_equal(out[1:4, :515], exact)
        assert np.all(out[[0, 4]] == 7.0) and np.all(out[:, 515:] == 7.0)
    K, a, b = np.full((2, 3), 9.0, dtype=np.float32), np.float32([3.0, 5.0]), np.float32([4.0, 64.0, 66.0])
    distances.rough_arguments(K, a, b)
    np.testing.assert_array_equal(K, [[2.0, -58.0, -60.0], [0.0, -60.0, -60.0]])


def csr(X):
    data = [row[row != 0.0] for row in X]
    indices = [np.flatnonzero(row).astype(np.int32) for row in X]
    indptr = np.concatenate([[0], np.cumsum([part.size for part in data])]).astype(np.int64)
    return np.concatenate(data), np.concatenate(indices), indptr


def exponents(K, A, B, gamma, allowed, sparse):
    """Return what the kernels make of ``K``."""
    K, a, b = K.copy(), (A * A).sum(axis=1), (B * B).sum(axis=1)
    A, B = (matrix_of(csr(X) if sparse else X) for X in (A, B))
    values = K.copy()
    distances.exponents(values, a, b, gamma, allowed, A, B, True)
    distances.exponents(K, a, b, gamma, allowed, A, B, False)
    same = K.copy()
    distances.exponentials(same, 1.0, 0.0, same, 0)
    np.testing.assert_array_equal(values, same)
    return K


@pytest.mark.parametrize("sparse", [False, True])
def test_exponents_are_off_by_no_more_than_is_allowed(sparse):
    rng = np.random.default_rng(2)
    for shift, gamma in ((0.0, 0.5), (1e4, 3.0), (1e6, 1e-6), (30.0, 1e-3)):
        A = (rng.normal(size=(5, 4)) + shift) * (rng.random((5, 4)) < 0.7)
        B = np.vstack([A[:2] + 1e-3 * rng.normal(size=(2, 4)), A[2], rng.normal(size=(2, 4)), np.full(4, shift + 1.0)])
        found = exponents(A @ B.T, A, B, gamma, 1e-13, sparse)
        for i, x in enumerate(A):
            for j, z in enumerate(B):
                exact = -F(gamma) * sum((F(float(p)) - F(float(q))) ** 2 for p, q in zip(x, z, strict=True))
                if exact > -740:
                    assert abs(F(float(found[i, j])) - exact) <= F(1e-13) + abs(exact) / 10**14
                else:
                    assert found[i, j] < -739.0


@pytest.mark.parametrize("sparse", [False, True])
def test_distances_are_summed_where_products_could_cancel_and_only_there(sparse):
    """Products that are wrong on purpose tell which of the two forms was taken."""
    A, B = np.array([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0]]), np.array([[0.0, 5.0, 12.0], [3.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    wrong, gamma = np.array([[90.0, 20.0, 10.0], [80.0, 14.0, -0.5]]), 0.25
    a, b = (A * A).sum(axis=1), (B * B).sum(axis=1)
    plain = np.minimum(gamma * (2.0 * wrong - a[:, None] - b), 0.0)
    summed = -gamma * np.square(A[:, None] - B).sum(axis=2)
    assert not np.isclose(plain, summed).any() and (plain == 0.0).sum() == 1
    for limit in (1.5, 2.5, 25.5, 26.5, 50.5, 169.5, 170.5, 193.5, 194.5):
        found = exponents(wrong, A, B, gamma, limit * 4.0 * distances.EPSILON * gamma, sparse)
        np.testing.assert_allclose(found, np.where(a[:, None] + b > limit, summed, plain), rtol=1e-12)
    far = exponents(wrong - 2000.0, A, B, gamma, 1e-16, sparse)  # exp of it is 0 whatever the rounding
    np.testing.assert_allclose(far, gamma * (2.0 * (wrong - 2000.0) - a[:, None] - b))
    big, count = 2.0**25, (A != 0.0).sum(axis=1)[:, None] + (B != 0.0).sum(axis=1) if sparse else 3
    both = big * big * (a[:, None] + b)
    unsure = 2.0 * distances.EPSILON * (count + 8.0) * gamma * both  # what cancellation may have added
    for part in (0.8, 1.2):
        wrong = 0.5 * (both - (distances.UNDERFLOW + part * unsure) / gamma)
        found = exponents(wrong, big * A, big * B, gamma, 1e-16, sparse)
        np.testing.assert_allclose(found, big * big * summed if part < 1.0 else gamma * (2.0 * wrong - both), rtol=1e-3)
    distances.city_exponents(wrong, gamma, *(matrix_of(csr(X) if sparse else X) for X in (A, B)), False)
    np.testing.assert_allclose(wrong, -gamma * np.abs(A[:, None] - B).sum(axis=2))
