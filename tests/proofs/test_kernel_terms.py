"""What a kernel model bounds, with units of rounding so large that every term counts."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.kernels.problem import box as kernels
from screenpath.problem import kernel, kernel_products, sharp
from screenpath.problem.box_types import Screened
from screenpath.problem.kernel import KernelModel, Multiplied
from screenpath.regions.geometry import Ball, KernelPoint
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from tests.conftest import set_constant

SCALE, UNIT, OUTWARD, UNDERFLOW = 1e-3, 0.004, 1.25, 0.07
C = 0.6


def large(depth):
    """Return an error of ``depth`` operations as if units of rounding were 1e13 times what they are."""
    return SCALE * depth


@pytest.fixture
def coarse(monkeypatch):
    for module in (kernel, kernel_products, sharp):
        for name, value in (("gamma", large), ("UNIT", UNIT), ("OUTWARD", OUTWARD)):
            monkeypatch.setattr(module, name, value)
    set_constant(monkeypatch, kernels, "UNDERFLOW", UNDERFLOW)


def problem(n=14, seed=0):
    """Return a model, its matrix, and a dual point of it with some entries at 0 and at each end."""
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    rows = GramRows(rng.normal(size=(n, 3)), KernelFunction("poly", 0.5, 2, 1.0), signs, 1 << 24)
    rows.error = 0.013
    model = KernelModel(rows, rng.normal(size=n), -rng.uniform(0.0, 2.0, n), rng.uniform(0.5, 2.0, n))
    theta = model.lo + (model.hi - model.lo) * rng.random(n)
    theta[:2], theta[2:5], theta[5:7] = model.lo[:2], model.hi[2:5], 0.0
    return model, np.array([rows.weighted_sum(e) for e in np.eye(n)]), theta


def spread_of(model, weights):
    return float(np.abs(weights) @ model.norms) * (1.0 + SCALE * (model.size + 8))


def sum_error_of(model, weights, spread=None):
    terms = np.count_nonzero(weights)
    spread = spread_of(model, weights) if spread is None else spread
    return (0.013 + (SCALE * model.rows.depth(terms) + 2.0 * UNIT) * 1.013) * spread * OUTWARD


def drift_of(error, spread):
    return (error + 2.0 * UNIT * (spread + error)) * OUTWARD


def test_sums_of_kernel_rows(coarse):
    rows = SimpleNamespace(error=0.02, depth=lambda m: 2.0 * m + 5.0)
    for terms in (1, 40):
        expected = (0.02 + (SCALE * (2 * terms + 5) + 2.0 * UNIT) * 1.02) * 0.7 * OUTWARD
        assert kernel.sum_error(rows, terms, 0.7) == pytest.approx(expected, rel=1e-12)
    assert kernel.sum_error(rows, 0, 0.7) == 0.0
    assert kernel.drift(0.3, 0.7) == pytest.approx((0.3 + 2.0 * UNIT) * OUTWARD, rel=1e-12)


def test_bounds_of_a_kernel_model(coarse):
    rng = np.random.default_rng(1)
    norms, c, hi = rng.random(3000), rng.normal(size=3000), rng.random(3000)
    lo = -rng.random(3000)
    tail = np.where(c > 0.0, 1e-3, -2e-3)
    found = KernelModel._bounds(SimpleNamespace(norms=norms, c=c, tail=tail, lo=lo, hi=hi, size=3000, inexact=0.25))
    steep, wide = np.maximum(-lo, hi), 1.0 + SCALE * 3008
    expected = {
        kernels.ROW_SUM: SCALE * (1024 + 2 + 16), kernels.ALL_NORMS: wide * (steep @ norms),
        kernels.ALL_KINKS: wide * (steep @ np.abs(c)), kernels.ZERO: np.maximum(lo * c, hi * c).sum(),
        kernels.SLOPE: 0.25, kernels.ALL_ONES: wide * steep.sum(), kernels.KINK: 2e-3,
    }  # fmt: skip
    np.testing.assert_allclose([found[k] for k in expected], list(expected.values()), rtol=1e-12)
    assert found.size == kernels.TINY + 1 and np.count_nonzero(found) == 7


def test_a_point_halfway(coarse):
    model, Q, theta = problem()
    reference = model.certify(0.4, None, np.roll(theta, 1))
    center, dual_sq, rounding, rest = model.middle(reference, theta, C)
    guess, point = model._guess, reference.point
    assert guess.product_error == pytest.approx(sum_error_of(model, theta), rel=1e-12) and guess.updates == 0
    spread = 0.5 * (C * spread_of(model, theta) + point.spread) * OUTWARD
    error = (0.5 * (C * guess.product_error + point.error) + 4.0 * UNIT * spread) * OUTWARD
    vector, products = 0.5 * (point.vector + C * theta), 0.5 * (point.products + C * (Q @ theta))
    np.testing.assert_allclose(center.vector, vector)
    np.testing.assert_allclose(center.products, products)
    terms = SCALE * (14 + 8) * np.abs(vector * products).sum()
    expected = (spread * (error + 4.0 * UNIT * (spread + error)) + terms) * OUTWARD
    found = center.sqnorm, center.spread, center.error, dual_sq, rounding, rest
    expected = vector @ products, spread, error, C * C * (theta @ Q @ theta), expected, 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    negative = replace(reference, point=replace(point, products=-100.0 * np.sign(point.vector)))
    assert model.middle(negative, theta, C)[0].sqnorm == 0.0


def test_products_are_updated_from_where_fewer_entries_differ(monkeypatch):
    model, _, _ = problem()
    monkeypatch.setattr(kernel, "FEW", 2)
    monkeypatch.setattr(kernel, "moved", lambda known, rows, index, step, spread: (known, index.size, spread))
    monkeypatch.setattr(kernel, "formed", lambda rows, theta: kernel.Multiplied(theta, theta, 0, "fresh"))
    theta, before = np.ones(14), model.fresh_every

    def known(changed, updates=3, error=0.1):
        point = np.where(np.arange(14) < changed, 2.0, 1.0)
        return SimpleNamespace(theta=point, total=point, updates=updates, product_error=error)

    def updated(near, reference):
        found = model._updated(theta, near, reference, 0.7)
        assert found.theta is theta
        return found.total, found.updates, found.product_error

    for changed, other, source in (
        (1, 0, "near"), (5, 6, "near"), (6, 6, "near"), (1, 14, "near"), (6, 5, "reference"), (14, 5, "reference"),
        (14, 14, "fresh"),
    ):  # fmt: skip
        near, reference = known(changed), known(other)
        found = updated(near, reference)
        if source == "fresh":
            assert found[1:] == (0, "fresh")
        else:
            expected = (near, changed) if source == "near" else (reference, other)
            assert found[0] is expected[0] and found[1:] == (expected[1], 0.7)
    same = known(0, error=0.2)
    assert updated(known(0), known(3))[1:] == (3, 0.1)
    for near in (None, known(0, before), known(3, before), known(5)):
        assert updated(near, same)[1:] == (3, 0.2)
    assert updated(known(0, before), None)[1:] == (0, "fresh")
    assert updated(known(0, before - 1), same)[1:] == (before - 1, 0.1)
    assert updated(None, known(0, before))[1:] == (0, "fresh")


def test_an_update_adds_its_error(coarse):
    model, Q, theta = problem()
    known = Multiplied(theta, Q @ theta, 4, 0.3)
    index, step = np.array([3, 8, 9]), np.array([0.5, -0.25, 1.0])
    total, updates, error = kernel.moved(known, model.rows, index, step, 1.7)
    np.testing.assert_allclose(total, Q @ theta + step @ Q[index])
    added = sum_error_of(model, step, float(np.abs(step) @ model.norms[index]) * (1.0 + SCALE * (3 + 8)))
    assert updates == 5 and error == pytest.approx(drift_of(0.3 + added, 1.7), rel=1e-12)


def pair_of(model, C, theta, total, product_error, spread, b=0.0, floor=0.0, shift=0.0, cost=0.0):
    """Return what a certificate says, a row at a time; of an intercept ``b`` with its errors."""
    off = C * (product_error + 4.0 * UNIT * (spread + product_error)) * OUTWARD
    xi = ell = plain = slack = terms = 0.0
    given = model.lo, model.hi, model.c, theta, model.norms, total, model.signs
    for lo, hi, c, at, norm, own, sign in zip(*given, strict=True):
        t, e = c - C * own - sign * b, off * norm + floor
        xi, ell, terms = xi + max(hi * t, lo * t), ell + c * at, terms + abs(at * own)
        plain += max((hi - at) * t, (lo - at) * t)
        slack += max((hi - at) * (t + e), (at - lo) * (e - t))
    slope = model.bounds[kernels.SLOPE]
    nonzero, rows = np.count_nonzero(theta), SCALE * (1024 + 16) + slope
    total_sq = max(theta @ total, 0.0)
    total_error = (spread * product_error + SCALE * (nonzero + 8) * terms) * (1.0 + SCALE * model.size)
    moved, slack = ((1 + model.mirrored) * UNIT + slope) * C * spread, (slack + cost) * (1.0 + rows) + 2.0 * slope * xi
    gap = (0.5 * (moved + C * shift) ** 2 + C * slack) * OUTWARD
    gap += UNDERFLOW * (1.0 + C) if nonzero or slack > 0.0 else 0.0
    w_sq_error = C * C * (total_error + 8.0 * UNIT * total_sq) + moved * (2.0 * C * math.sqrt(total_sq) + moved)
    loss_error = rows * xi + off * model.bounds[kernels.ALL_NORMS] + floor * model.bounds[kernels.ALL_ONES]
    return {
        "C": C, "total_sq": total_sq, "inner": C * total_sq, "xi": xi, "ell": ell, "slack": slack,
        "error": loss_error + rows * (xi + 2.0 * model.bounds[kernels.ALL_KINKS]),
        "primal": 0.5 * C * C * total_sq + C * xi, "primal_error": (C * loss_error + 0.5 * w_sq_error) * OUTWARD,
        "gap": gap, "rounding": gap - C * plain, "total_error": total_error, "product_error": product_error,
        "n_R": np.count_nonzero(theta == model.lo), "n_L": np.count_nonzero(theta == model.hi),
    }, (C * C * total_sq, C * spread * OUTWARD, off)  # fmt: skip


@pytest.mark.parametrize("case", ["some", "at zero", "no loss", "negative square"])
def test_a_certificate_term_by_term(case, coarse):
    for seed in range(6):
        model, Q, theta = problem(seed=seed)
        total, product_error, spread = Q @ theta, 0.3, spread_of(model, theta)
        if case == "negative square":
            total, spread = -total, 0.5
        if case in ("at zero", "no loss"):
            theta, total, product_error, spread = np.zeros(14), np.zeros(14), 0.0, 0.0
        if case == "no loss":
            model.lo = np.zeros(14)
            model.c = -np.abs(model.c)
        found = model._pair(C, Multiplied(theta, total, 7, product_error), spread)
        expected, point = pair_of(model, C, theta, total, product_error, spread)
        for name, value in expected.items():
            assert getattr(found, name) == pytest.approx(value, rel=1e-12, abs=1e-300), name
        model.mirrored, model.bounds[kernels.SLOPE], more = True, 0.05, (0.21, 0.07, 0.03)
        several = model._numbers(C, Multiplied(theta, total, 7, product_error), spread, more[0], 0.4, *more[1:])
        for name, value in pair_of(model, C, theta, total, product_error, spread, 0.4, *more)[0].items():
            assert several[name] == pytest.approx(value, rel=1e-12, abs=1e-300), name
        assert (found.point.sqnorm, found.point.spread, found.point.error) == pytest.approx(point, rel=1e-12)
        np.testing.assert_allclose(found.point.vector, C * theta)
        np.testing.assert_allclose(found.point.products, C * total)
        assert found.updates == 7 and (found.gap == 0.0) == (case == "no loss")


def test_a_start_is_at_most_at_its_end(coarse):
    model, Q, _ = problem()
    s, total, limit = model.closed_form()
    for asked, at in ((0.25 * limit, 0.25 * limit), (7.0 * limit, limit)):
        found = model.start(asked)
        assert (found.C, found.updates) == (at, 0)
        assert found.product_error == pytest.approx(sum_error_of(model, s), rel=1e-12)
    model.range_of = lambda slope: 0.0  # no such parameter
    assert model.start(3.0).C == 3.0


def test_what_a_state_and_a_ball_carry(coarse):
    model, _, theta = problem()
    pair = model.certify(C, None, theta)
    assert model.state(pair)["guess"].size == 0 and model.state(pair)["guess_updates"] == model.fresh_every
    model.middle(pair, np.roll(theta, 2).clip(model.lo, model.hi), C)
    state, guess = model.state(pair), model._guess
    assert state["guess"] is guess.theta and state["guess_error"] == guess.product_error
    other = problem()[0]
    again = other.restore(state)
    assert (again.gap, again.primal, again.primal_error) == (pair.gap, pair.primal, pair.primal_error)
    assert other._guess.product_error == guess.product_error
    ball = Ball(KernelPoint(theta, theta, 4.0, 1.0, 0.3), 0.5)
    assert model.extent(ball) == pytest.approx(2.5 + 0.3 / model.rounding * OUTWARD)


def test_coefficients_are_those_of_the_data_rows():
    model, _, theta = problem()
    pair = model.certify(C, None, theta)
    found = model.counts(pair, Screened(np.zeros(14, dtype=np.int8), 0, 0))["coefficients"]
    np.testing.assert_array_equal(found, np.where(np.arange(14) % 2 == 0, -1.0, 1.0) * pair.point.vector)


def test_a_pair_goes_on_where_a_known_one_is_better():
    model, _, theta = problem()
    reference = model.certify(C, None, theta)
    zero, before = C * model.bounds[kernels.ZERO], 0.5 * reference.point.sqnorm + C * reference.xi
    for primal, on in ((0.999 * min(zero, before), False), (1.001 * min(zero, before), True)):
        assert model.goes_on(C, replace(reference, primal=primal), reference) is on


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_a_start_add_the_errors_of_its_steps(share, fixed, turned, coarse, monkeypatch):
    model, Q, theta = problem()
    other = np.roll(theta, 3).clip(model.lo, model.hi)
    reference = replace(model.certify(0.4, None, theta), updates=2, product_error=0.2)
    step_back = np.where(np.arange(14) == 12, 0.5 * (model.lo + model.hi) - theta, 0.0)
    asked = []

    def turn(C, screened, start, total, step):
        asked.append(1)
        step[:] = step_back
        return total + Q @ step_back if turned else None

    monkeypatch.setattr(model, "_turned", turn)
    for guess_updates, guess_error in ((5, 0.1), (1, 0.6)):
        asked.clear()
        guess = Multiplied(other, Q @ other, guess_updates, guess_error)
        monkeypatch.setattr(model, "_toward", lambda C, screened, reference, guess=guess: (guess, share))
        status = np.zeros(14, dtype=np.int8)
        if fixed:
            status[9:11] = -1, 1
        reduced = model.reduce(C, Screened(status, int(fixed), int(fixed)), reference)
        way = theta + share * (other - theta)
        start = np.where(status < 0, model.lo, np.where(status > 0, model.hi, way))
        error, updates = 0.2, 2
        if share:
            both = spread_of(model, theta) + spread_of(model, other)
            error, updates = drift_of(max(0.2, guess_error), 4.0 * both), max(2, guess_updates) + 1
        if fixed:
            error = drift_of(error + sum_error_of(model, start - way), spread_of(model, start))
            updates = max(2, guess_updates) + 1
        if turned and not share:
            start, updates = start + step_back, updates + 1
            error = drift_of(error + sum_error_of(model, step_back), spread_of(model, start))
        assert len(asked) == (share == 0.0)
        known, made = model._start
        assert known is reference and made.updates == updates
        assert made.product_error == pytest.approx(error, rel=1e-12)
        np.testing.assert_allclose(made.theta, start)
        np.testing.assert_allclose(made.total, Q @ start)
        most = model.bounds[kernels.ALL_NORMS]
        assert reduced.error == pytest.approx(C * drift_of(error, most) * OUTWARD, rel=1e-12)
        assert reduced.reach == most
        assert reduced.w_sq == pytest.approx(C * C * (start @ Q @ start))
        assert reduced.offset == pytest.approx(C * float(model.c[status != 0] @ start[status != 0]))
        np.testing.assert_allclose(reduced.alpha, C * start[status == 0])
    negative = replace(reference, total=-reference.total)
    monkeypatch.setattr(model, "_toward", lambda C, screened, reference: (reference, 0.0))
    assert model.reduce(C, Screened(np.zeros(14, dtype=np.int8), 0, 0), negative).w_sq == 0.0


@pytest.mark.parametrize("better", [False, True])
def test_a_sharper_certificate_of_a_kernel_model(better, coarse, monkeypatch):
    rng = np.random.default_rng(3)
    model, Q, theta = problem()
    pair, model.inexact, model.tail = replace(model.certify(C, None, theta), gap=5.0, shift=0.3), 0.02, rng.random(14)
    alpha, index = pair.point.vector, np.array([1, 4, 5, 11])
    margins, totals = rng.normal(size=(2, 2, 4)) * np.array([1.0, 1e-3])[:, None]
    seen = []

    def matter(model, certificate, t, e, tol):
        assert tol == 1.0  # what a row may add to the primal value, not to the gap
        np.testing.assert_allclose(t, model.c - pair.point.products)
        np.testing.assert_allclose(e, pair.point.error * model.norms + model.tail)
        return index

    def precise_sums(target, weights):
        np.testing.assert_array_equal(target, index)
        np.testing.assert_array_equal(weights, [alpha, theta])
        return (margins, totals), 0.03

    def terms(model, certificate, t, e, square, apart):
        seen.append((t.copy(), e.copy(), square, apart))
        return replace(certificate, gap=4.0 if better else 5.0)

    monkeypatch.setattr(sharp, "that_matter", matter)
    monkeypatch.setattr(sharp, "with_terms", terms)
    monkeypatch.setattr(model.rows, "precise_sums", precise_sums)
    found = model.sharpened(pair, 1e-6)
    t, e = model.c - pair.point.products, pair.point.error * model.norms + model.tail
    t[index] = model.c[index] - margins.sum(axis=0) + model.tail[index]
    e[index] = 0.03 * pair.point.spread * OUTWARD * model.norms[index] + 4.0 * UNIT * model.tail[index]
    e[index] += np.abs(margins.sum(axis=0) - C * totals.sum(axis=0)) * OUTWARD
    size = np.abs(alpha) @ (np.abs(model.c) + np.abs(t))
    error = (np.abs(alpha) @ (e + 2.0 * UNIT * np.abs(t)) + SCALE * (14 + 16) * size) * OUTWARD
    moved = (UNIT + 0.02) * pair.point.spread * OUTWARD + C * 0.3
    ((now, off, square, apart),) = seen
    np.testing.assert_allclose(now, t, rtol=1e-12)
    np.testing.assert_allclose(off, e, rtol=1e-12)
    products = pair.point.products.copy()
    products[index] = margins[0]  # and not kinks less t, which has what the kinks are off by as well
    assert square == pytest.approx((max(float(alpha @ products), 0.0), error), rel=1e-12)
    assert apart == pytest.approx((0.5 * moved**2, 0.0), rel=1e-12)
    assert (found is pair) != better
    for array, at, was in (
        (found.point.products, margins[0], pair.point.products), (found.total, totals[0], pair.total)
    ):  # fmt: skip
        expected = was.copy()
        if better:
            expected[index] = at
        np.testing.assert_array_equal(array, expected)
    margins[0] = -1e3 * np.sign(alpha[index])
    model.sharpened(pair, 1e-6)
    assert seen[-1][2][0] == 0.0


def test_a_pair_is_kept_at_another_parameter(coarse, monkeypatch):
    """Where w is constant, theta falls as C grows; the guesses of the next steps know what that adds to the errors."""
    model, Q, theta = problem()
    reference, at = replace(model.certify(C, None, theta), rough=np.full(14, 0.3), updates=3), 1.6 * C
    for name, ratio in ((kernel.ends.CONSTANT, 1.0 / 1.6), ("closed", 1.0)):
        monkeypatch.setattr(kernel.ends, "known", lambda *given, name=name: name)
        monkeypatch.setattr(model, "certify", lambda *given: (*given, *model._start))
        told, named = model.held(reference, at)
        drifted = drift_of(ratio * reference.product_error, spread_of(model, ratio * theta))
        error, rough = (drifted, 0.3 * ratio * OUTWARD) if ratio < 1.0 else (reference.product_error, 0.3)
        np.testing.assert_allclose(told[2], ratio * theta, rtol=1e-12)
        np.testing.assert_allclose(told[5].total, Q @ (ratio * theta))
        assert (told[:2], told[3:5], told[5].updates, named) == ((at, None), (reference, reference), 3, name)
        assert (told[5].product_error, told[5].rough[0]) == pytest.approx((error, rough), rel=1e-12)
    for rounding, gaps, hasty in ((0.5, [0.9], [1]), (0.5, [1.0, 0.3], [1, 0]), (1.0, [1.0], [0]), (0.5, [None], [1])):
        found, seen = [gap and SimpleNamespace(gap=gap) for gap in gaps], []
        left = iter(found)
        monkeypatch.setattr(kernel.ends, "refined", lambda *of, s=seen, f=left: s.append(model.rows.hasty) or next(f))
        assert model.polished(replace(reference, rounding=rounding), at, 1.0) is found[-1]
        assert seen == hasty and not model.rows.hasty
