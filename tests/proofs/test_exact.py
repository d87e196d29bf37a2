"""What the checker of certificates builds on, against fractions: exact pairs, sums by column, bounds that hold."""

import math
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.verify import exact
from screenpath.verify.exact import TINY, UNIT, ColumnSums, divided, fsum, gamma, norm_above, two_product, two_sum

U = F(UNIT)


def test_pairs_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300)) * 10.0 ** rng.uniform(-60.0, 60.0, (2, 300))
    for x, y in zip(a, b, strict=True):
        assert sum(map(F, two_sum(x, y))) == F(x) + F(y) and sum(map(F, two_product(x, y))) == F(x) * F(y)
    s, e = two_sum(a, b)
    p, r = two_product(a, b)
    assert np.all(s == a + b) and np.all(p == a * b) and np.all(np.abs(e) <= UNIT * np.abs(s))
    assert np.all(np.abs(r) <= UNIT * np.abs(p))


def test_quotients_of_pairs():
    rng = np.random.default_rng(1)
    for scale in (1e-200, 1.0, 1e200):
        for _ in range(100):
            a, s = float(rng.normal()), float(rng.normal()) * scale
            b, t = a * UNIT * rng.uniform(-1.0, 1.0), s * UNIT * rng.uniform(-1.0, 1.0)
            q, r = divided(a, b, s, t)
            value = (F(a) + F(b)) / (F(s) + F(t))
            assert abs(F(float(q)) + F(float(r)) - value) <= 16 * U * U * abs(value) + F(TINY) and q == a / s


def test_bounds_are_above_and_hardly():
    for k in (1, 10, 5000.0):
        value = F(k) * U / (1 - F(k) * U)
        assert value <= F(gamma(k)) <= value * (1 + 18 * U)
        assert F(gamma(k)) >= value * (1 + 14 * U)
    assert fsum(np.array([1e16, 1.0, -1e16])) == 1.0 == fsum([0.25, 0.75])
    assert exact.squared(-3.0) == 9.0 and exact.squared(1e200) == math.inf
    assert math.isnan(fsum([1e308, 1e308])) and math.isnan(fsum([math.inf, -math.inf]))
    for values in ([3.0, 4.0], [3e-200, 4e-200], [3e200, 4e200], np.full(10000, 0.1).tolist()):
        square = sum(F(v) ** 2 for v in values)
        found = F(norm_above(np.array(values)))
        assert square <= found**2 <= square * (1 + F(4 * gamma(len(values) + 30)))
        assert found**2 >= square * (1 + F(gamma(len(values))))
    assert norm_above(np.zeros(3)) == 0.0 and norm_above(np.zeros(0)) == 0.0
    assert norm_above(np.array([1.0, math.inf])) == math.inf and math.isnan(norm_above(np.array([1.0, math.nan])))


def block(columns, values, tails, unknown=None):
    """Return what is asked of a block of rows, each of one value."""
    return SimpleNamespace(
        rows=np.arange(columns.size), columns=columns, values=values, tails=tails, unknown=unknown, bias=-1
    )


@pytest.mark.parametrize("tailed", [False, True])
def test_sums_by_column_are_off_by_no_more_than_they_say(tailed):
    rng = np.random.default_rng(2)
    for scale in (1e-150, 1.0, 1e100):
        sums, terms = ColumnSums(4), [[] for _ in range(4)]
        sums.add(block(np.zeros(0, dtype=int), np.zeros(0), None), np.zeros(0))
        for _ in range(5):
            size = int(rng.integers(1, 60))
            columns, weights = rng.integers(0, 3, size), rng.normal(size=size) * 10.0 ** rng.uniform(-6.0, 0.0, size)
            values = scale * rng.normal(size=size) * 10.0 ** rng.uniform(-12.0, 0.0, size)
            weights[-1] = -weights[0]
            tails = values * UNIT * rng.uniform(-1.0, 1.0, size) if tailed else None
            sums.add(block(columns, values, tails), weights)
            for k, column in enumerate(columns):
                terms[column].append(F(weights[k]) * (F(values[k]) + (F(tails[k]) if tailed else 0)))
        for j in range(4):
            value, size = sum(terms[j], F(0)), sum(map(abs, terms[j]), F(0))
            off = abs(F(sums.total[j]) + F(sums.rest[j]) - value)
            assert off <= F(sums.error[j])
            # Nearly what the sum of two doubles can hold: no bound that anything would pass.
            assert F(sums.error[j]) <= F(1, 2**80) * size + 400 * F(TINY) + 2**20 * U * U * abs(value)
        assert sums.total[3] == sums.rest[3] == 0.0 <= sums.error[3]


def test_the_error_of_a_sum_by_column_term_by_term(monkeypatch):
    """Units so large that every term counts; the products below are exact in few bits, so the sums are not off."""
    for name, value in (("UNIT", 0.01), ("TINY", 0.003), ("UP", 1.25)):
        monkeypatch.setattr(exact, name, value)
    monkeypatch.setattr(exact, "gamma", lambda k: 0.1 * k)
    for tails, unknown in ((None, None), (np.array([0.25, -0.5, 0.125]), np.array([0.5, 0.75]))):
        sums = ColumnSums(2)
        columns, weights, values = np.array([0, 1, 0]), np.array([2.0, -1.0, 4.0]), np.array([1.5, 3.0, 0.25])
        error, lows = np.zeros(2), np.zeros(2)
        for _ in range(2):
            sums.add(block(columns, values, tails, unknown), weights)
            each, low = np.full(3, 0.003), np.zeros(3)  # the products are on the grid: nothing is cut off
            if tails is not None:
                low = weights * tails
                each = each + 32.0 * 1e-4 * np.abs(weights * values) + 0.02 * np.abs(low) + 0.003 * np.abs(weights)
                each += unknown[columns] * np.abs(weights)
            lows = np.bincount(columns, low, 2)
            error = error + np.bincount(columns, each + 0.1 * 4 * np.abs(low), 2) * (1.0 + 0.1 * 4)
            error = 1.25 * (error + 0.04 * np.abs(lows))
        np.testing.assert_allclose(sums.error, error, rtol=1e-12)
        np.testing.assert_array_equal(sums.total, 2.0 * np.bincount(columns, weights * values, 2))
        np.testing.assert_array_equal(sums.rest, 2.0 * lows)


def test_many_large_terms_of_a_column_are_summed_exactly():
    """The leading bits have to leave room for as many terms as the fullest column has, and for the largest weight."""
    rng = np.random.default_rng(3)
    columns = np.append(np.zeros(5000, dtype=int), 1)
    weights, values = 2.0**20 * rng.uniform(0.9, 1.0, 5001), rng.uniform(0.9, 1.0, 5001)
    sums = ColumnSums(2)
    sums.add(block(columns, values, None), weights)
    value = sum(F(w) * F(v) for w, v in zip(weights[:-1], values[:-1], strict=True))
    assert abs(F(sums.total[0]) + F(sums.rest[0]) - value) <= F(sums.error[0]) <= value / 2**80


@pytest.mark.parametrize(("unit", "growth", "up"), [(0.01, 0.1, 1.25), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0)])
def test_errors_of_what_is_cut_off(unit, growth, up, monkeypatch):
    """One term a column and block: what is left of it behind the leading bits can be told from the sum itself."""
    for name, value in (("UNIT", unit), ("TINY", 0.0), ("UP", up)):
        monkeypatch.setattr(exact, name, value)
    monkeypatch.setattr(exact, "gamma", lambda k: growth * k)
    rng = np.random.default_rng(4)
    sums, error = ColumnSums(3), np.zeros(3)
    for _ in range(6):
        weights, values = rng.normal(size=3), rng.normal(size=3) * 10.0 ** rng.uniform(-9.0, 0.0, 3)
        alone = ColumnSums(3)
        alone.add(block(np.arange(3), values, None), weights)
        low = np.array([float(F(w) * F(v) - F(t)) for w, v, t in zip(weights, values, alone.total, strict=True)])
        _, lost = two_sum(sums.total, alone.total)
        _, more = two_sum(sums.rest, low + lost)
        sums.add(block(np.arange(3), values, None), weights)
        error = error + (2.0 * unit * np.abs(low) + 3.0 * growth * np.abs(low)) * (1.0 + 3.0 * growth)
        error = up * (error + np.abs(more) + 4.0 * unit * (np.abs(low) + np.abs(lost)))
    np.testing.assert_allclose(sums.error, error, rtol=1e-9, atol=1e-60)
    assert error.all()
