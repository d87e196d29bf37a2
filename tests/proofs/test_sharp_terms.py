"""Sharpened certificates: each bound with units of rounding so large that every term counts, and what is tried when."""

import math
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, QUANTILE, SVR
from screenpath.kernels.problem import box as kernels
from screenpath.problem import sharp
from screenpath.problem.box import BoxModel
from screenpath.rows.memory import MemoryRows
from tests.conftest import set_constant
from tests.safety.rational import Exact

SCALE = 1e-3


def large(depth):
    """Return an error of ``depth`` operations as if units of rounding were 2e12 times what they are."""
    return SCALE * depth


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(sharp, "gamma", large)
    for name, value in (("UNIT", 0.004), ("TINY", 0.003), ("OUTWARD", 1.25)):
        monkeypatch.setattr(sharp, name, value)
    set_constant(monkeypatch, kernels, "UNDERFLOW", 0.07)


def problem(seed=0, kind="quantile", n=12, d=3, C=0.6):
    """Return a model whose products count as rough, and the certificate of some pair."""
    rng = np.random.default_rng(seed)
    rows, y, s = MemoryRows(rng.normal(size=(n, d))), rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    if kind == "below":  # a loss of targets that are missed from above, and of nothing else
        model = BoxModel(rows, y, -s, 0.0 * s)
    else:
        model = QUANTILE.model(rows, y, s, tau=0.3) if kind == "quantile" else SVR.model(rows, y, s, epsilon=0.25)
    theta = np.where(rng.random(model.size) < 0.5, model.lo, model.lo + (model.hi - model.lo) * rng.random(model.size))
    theta = np.where(rng.random(model.size) < 0.3, model.hi, theta)
    return model, model.certify(C, rng.normal(size=d), theta)


def with_rows(model, pair, tol, sum_error, distance):
    """Return primal, its error, the gap and the rounding in it, a row at a time, and which rows were formed again."""
    d, w, C = model.rows.d, pair.point.vector, pair.C
    size = float(np.linalg.norm(w)) * (1.0 + SCALE * (d + 8)) if w.any() else 0.0
    slope, floor = model.errors_of(pair)
    kinks, rests = model.kinks_of(pair)
    exact = (4.0 * (SCALE * (d + 8)) ** 2 + model.rows.inexact) * size
    G = np.array([[float(v) for v in row] for row in Exact(model, C).G])
    slack = plain = xi = unsure = 0.0
    again = []
    for i in range(model.size):
        lo, hi, theta, c, norm, rest = (
            float(a[i]) for a in (model.lo, model.hi, pair.theta, kinks, model.norms, rests)
        )
        t, e, steep = c - pair.point.products[i], slope * norm + floor, max(abs(lo), abs(hi))
        open_row = max((hi - theta) * (t + e), (theta - lo) * (e - t)) > 0.0
        loose = C * steep * e > 1e-3 * tol * max(pair.primal, 0.0) / model.size
        if open_row or (loose and (hi * (t + e) > 0.0 or lo * (t - e) > 0.0)):
            again.append(i)
            t, e = c - float(G[i] @ w) + rest, exact * (norm + floor) + (d + 1) * 0.003 + 4.0 * 0.004 * abs(rest)
        e += 2.0 * 0.004 * abs(t)
        slack += max((hi - theta) * (t + e), (theta - lo) * (e - t), 0.0)
        plain += max((hi - theta) * t, (lo - theta) * t, 0.0)
        xi += max(lo * t, hi * t)
        if hi * (t + e) > 0.0 or lo * (t - e) > 0.0:
            unsure += steep * e
    rows = SCALE * (model.size + 16)
    all_rows, inexact = 1.0 + SCALE * (model.size + 64), model.inexact
    slack, unsure = slack * (all_rows + inexact) + pair.cost + 2.0 * inexact * xi, unsure + (rows + inexact) * xi
    apart = w - C * pair.total
    if distance is None:
        distance = np.linalg.norm(apart) * (1.0 + SCALE * (d + 8)) + 2.0 * 0.004 * C * math.sqrt(pair.total_sq)
        distance += C * sum_error
    distance += C * inexact * math.sqrt(pair.total_sq) * 1.25 + C * pair.shift
    gap = (0.5 * distance**2 + C * slack) * 1.25 + (
        0.07 * (1.0 + C) if slack > 0.0 or w.any() or pair.theta.any() else 0.0
    )
    primal_error = (SCALE * (d + 8) * pair.point.sqnorm + C * unsure) * 1.25
    found = 0.5 * float(apart @ apart) + C * plain
    return (0.5 * pair.point.sqnorm + C * xi, primal_error, gap, max(gap - found, 0.0)), again


class Far:
    """What stands for a sum in twice the precision: its distance is known."""

    def __init__(self, away):
        self.away = away

    def distance(self, w):
        return self.away


@pytest.mark.parametrize("kind", ["quantile", "svr", "below"])
@pytest.mark.parametrize("tol", [1e-9, 10.0, 30.0, 90.0, 1e4])
def test_a_sharper_certificate_term_by_term(kind, tol, coarse, monkeypatch):
    formed = set()
    plain = sharp._taken
    monkeypatch.setattr(sharp, "_taken", lambda model, index: taken.append(index) or plain(model, index))
    for seed in range(12):
        model, pair = problem(seed, kind)
        model.bounds[kernels.PRODUCT], model.bounds[kernels.TINY] = (0.02, 0.3)[seed % 2], 0.01
        model.rows.inexact, model.inexact, model.tail = 0.013, 0.017, np.linspace(-0.2, 0.3, model.size)
        pair = replace(pair, shift=0.11, cost=0.19)  # of a free intercept
        for distance in (None, 0.7):
            taken = []
            found = sharp._with_rows(model, pair, tol, 0.2, None if distance is None else Far(distance))
            expected, again = with_rows(model, pair, tol, 0.2, distance)
            numbers = found.primal, found.primal_error, found.gap, found.rounding
            np.testing.assert_allclose(numbers, expected, rtol=1e-11)
            assert np.concatenate(taken).tolist() == again if again else not taken
            formed.add(len(again) < model.size)
    assert True in formed or tol < 20.0


def test_nothing_is_uncertain_of_a_pair_of_zeros(coarse):
    model, pair = problem()
    zero = model.certify(0.6, np.zeros(3), np.zeros(model.size))
    for one in (zero, replace(zero, theta=pair.theta), model.certify(0.6, np.array([0.0, 1.0, 0.0]), zero.theta)):
        expected, _ = with_rows(model, one, 1e-6, 0.0, 0.0)
        found = sharp._with_rows(model, one, 1e-6, None, Far(0.0))
        np.testing.assert_allclose((found.primal, found.primal_error, found.gap, found.rounding), expected, rtol=1e-12)
    assert math.isfinite(found.gap)


def test_a_negative_primal_value_leaves_no_row_out(coarse):
    model, pair = problem(3)
    model.bounds[kernels.PRODUCT] = 0.02
    pair = replace(pair, primal=-5.0)
    expected, _ = with_rows(model, pair, 1.0, 0.2, None)
    found = sharp._with_rows(model, pair, 1.0, 0.2, None)
    np.testing.assert_allclose((found.primal, found.primal_error, found.gap, found.rounding), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [3, 12])
def test_the_distance_of_a_sum_in_twice_the_precision(count, coarse, monkeypatch):
    monkeypatch.setattr(sharp, "CHUNK", 5)
    model, pair = problem(4)
    model.rows.inexact = 0.013
    theta = np.where(np.arange(12) < count, model.hi, 0.0)
    pair = model.certify(0.6, pair.point.vector, theta)
    apart = sharp.Apart(model, pair)
    np.testing.assert_allclose(apart.total.sum(axis=0), model.weighted_sum(theta), rtol=1e-14)
    size = float(np.abs(theta) @ model.norms) * (1.0 + SCALE * 12)
    assert apart.error == pytest.approx((4.0 * (SCALE * (2 * count + 8)) ** 2 + 0.013) * size + count * 0.003)
    w = pair.point.vector
    length = np.linalg.norm(w - 0.6 * apart.total[0]) * (1.0 + SCALE * 11)
    whole = (length + 16.0 * 0.004**2 * 0.6 * np.linalg.norm(apart.total[0]) + 0.6 * apart.error) * 1.25
    assert apart.distance(w) == pytest.approx(whole)
    none = sharp.Apart(model, model.certify(0.6, w, np.zeros(12)))
    assert none.distance(np.zeros(3)) == 0.0 and none.distance(w) > 0.0
    none.total[0] = w / none.C
    assert none.distance(none.C * none.total[0]) > 0.0  # the sum itself may be off


def test_a_sharper_gap_is_above_the_exact_one_and_hardly():
    rng = np.random.default_rng(5)
    for scale in (1e-150, 1e-8, 1.0, 1e8, 1e100):
        X, y = rng.normal(size=(4, 2)), rng.normal(size=4)
        model = LAD.model(MemoryRows(scale * X), y)
        C = 1.0 / scale**2 if 1e-100 < scale < 1e100 else 1.0
        theta = np.clip(rng.normal(size=4), -1.0, 1.0)
        pair = model.certify(C, C * model.weighted_sum(theta), theta)
        exact = Exact(model, C)
        w = [F(float(v)) for v in pair.point.vector]
        gap = exact.primal(w) - exact.dual(theta)
        for found in (sharp._with_rows(model, pair, 1e-6, pair.sum_error, None),
                      sharp._with_rows(model, pair, 1e-6, None, sharp.Apart(model, pair))):  # fmt: skip
            assert F(found.gap) >= gap and F(found.gap) <= gap * (1 + F(1, 10**12)) + F(2.0**-1000)
            assert F(found.primal) - F(found.primal_error) <= exact.primal(w) <= F(found.primal) + F(found.primal_error)


def test_a_difference_of_two_doubles_is_right_to_the_last_place():
    rng = np.random.default_rng(6)
    for _ in range(200):
        high = rng.normal(size=3) * 10.0 ** rng.uniform(-3.0, 3.0, 3)
        low = high * 2.0**-54 * rng.uniform(-1.0, 1.0, 3)
        c = rng.choice([high, high * (1.0 + 2.0**-50), rng.normal(size=3)])
        for value, a, b, e in zip(sharp.difference(c, high, low), c, high, low, strict=True):
            exact = F(a) - F(b) - F(e)
            assert abs(F(value) - exact) <= abs(exact) * F(101, 100 * 2**53)


def scripted(monkeypatch, gaps, finite=True):
    """Sharpen a pair where the certificates tried have these gaps; return what came of it and what was tried."""
    model, pair = problem(n=4)
    pair = replace(pair, gap=5.0, primal=1.0, primal_error=0.0)
    tried, left = [], iter(gaps)

    def with_rows_of(model, certificate, tol, sum_error, apart):
        tried.append((certificate.point.vector, sum_error, apart))
        return replace(certificate, gap=next(left))

    monkeypatch.setattr(sharp, "_with_rows", with_rows_of)
    model.moved = lambda certificate, w: replace(certificate, point=replace(certificate.point, vector=w))
    if not finite:
        with np.errstate(over="ignore", invalid="ignore"):
            pair = replace(pair, C=1e308)
            pair.total[:] = 1e300
            pair.theta[:] = 1e300
            return pair, sharp.sharpened(model, pair, 1e-2), tried
    return pair, sharp.sharpened(model, pair, 1e-2), tried


def test_neighbours_are_tried_until_one_is_good_enough(monkeypatch):
    good = 9e-3
    pair, found, tried = scripted(monkeypatch, [good])
    assert found.gap == good and len(tried) == 1 and tried[0][1:] == (pair.sum_error, None)
    pair, found, tried = scripted(monkeypatch, [1.0, good])
    assert found.gap == good and len(tried) == 2 and tried[1][1] is None and tried[1][2] is not None
    pair, found, tried = scripted(monkeypatch, [1.0, 2.0, 1.5, good])
    assert found.gap == good and len(tried) == 4
    np.testing.assert_allclose(tried[2][0], pair.C * pair.total, rtol=1e-12)
    for gaps, least in (([6.0, 5.5, 4.0, 3.0, 4.5, 3.5, 6.0], 3.0), ([9.0, 5.5] + [5.2] * 5, 5.0), ([5.0] * 7, 5.0)):
        pair, found, tried = scripted(monkeypatch, gaps)
        assert found.gap == least and len(tried) == 7 and (found is pair) == (least == 5.0)
    for k, ulps in enumerate((1, 2, 4, 8)):
        np.testing.assert_array_equal(tried[3 + k][0], pair.point.vector * (1.0 + ulps * 2.0**-52))
    _, _, tried = scripted(monkeypatch, [6.0, 5.5, 4.0, 3.0, 4.5, 3.5, 6.0], finite=False)
    assert len(tried) == 6  # the dual's own point is not finite


def test_a_kernel_certificate_is_sharpened_as_far_as_it_needs_to_be(monkeypatch):
    """Pairs of gap and primal error; a tenth is good enough of either."""
    model, pair = problem(n=4)
    for given, found, asked, result in (
        ((5.0, 0.0), [(4.0, 0.0)], [1.0], 1), ((5.0, 0.0), [(5.0, 0.0)], [1.0], 0),
        ((0.05, 0.9), [(0.06, 0.0)], [1.0], 1),  # the gap is no smaller, and proves what the other does not
        ((0.05, 0.05), [(0.05, 0.05)], [None], 0), ((0.05, 0.2), [(0.05, 0.05)], [None], 1),
        ((0.05, 0.2), [(0.05, 0.15), (0.05, 0.05)], [None, 0.1], 2), ((0.05, 0.2), [(0.05, 0.3)] * 2, [None, 0.1], 0),
        ((0.05, 0.2), [(0.05, 0.15), (0.2, 0.01)], [None, 0.1], 1),
    ):  # fmt: skip
        pairs = [replace(pair, primal=1.0, gap=gap, primal_error=error) for gap, error in (given, *found)]
        targets, left = [], iter(pairs[1:])
        monkeypatch.setattr(
            sharp, "_kernel_formed", lambda *of, targets=targets, left=left: targets.append(of[2]) or next(left)
        )
        assert sharp.kernel_sharpened(model, pairs[0], 0.1) is pairs[result] and targets == asked
