"""Rounding of the penalised models and regions of SIFS, with units so large that every term counts."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.errors import DataError, UsageError
from screenpath.kernels.problem import l1svm as l1_kernels
from screenpath.kernels.problem.sparse import Samples
from screenpath.kernels.screen import sifs as kernels
from screenpath.numbers.rounding import UNIT as ROUNDED
from screenpath.numbers.rounding import gamma as terms_gamma
from screenpath.problem import penalised_rounding
from screenpath.problem.l1svm import halfway
from screenpath.problem.penalised_rounding import L1Rounding, SparseRounding, check_range
from screenpath.regions.geometry import ROUNDING
from screenpath.screen import l1svm as l1_rules
from screenpath.screen import sparse as rules

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SCALE, UNIT, TINY, OUTWARD = 1e-3, 0.004, 0.003, 1.25


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(penalised_rounding, "gamma", lambda depth: SCALE * depth)
    for name, value in (("UNIT", UNIT), ("TINY", TINY), ("OUTWARD", OUTWARD)):
        monkeypatch.setattr(penalised_rounding, name, value)


def test_the_imbalance_of_a_dual_point():
    for total, balance, rounding in ((3.0, -0.3, 0.01), (3.0, 0.0, 0.02), (3.0, 0.3, 0.0)):
        taken = 2.0 * (abs(balance) / total + rounding) * (1.0 + 4.0 * rounding)
        assert l1_kernels.imbalance(total, balance, rounding) == pytest.approx(taken)
        blur = (rounding + taken) * math.sqrt(5.0) * (1.0 + rounding)
        assert l1_kernels.blur(total, 5.0, balance, rounding) == pytest.approx(blur)
    assert l1_kernels.imbalance(3.0, 2.9, 0.0) == 1.0 and l1_kernels.imbalance(0.0, 0.0, 0.1) == 0.0
    assert l1_kernels.blur(0.0, 0.0, 0.0, 0.1) == 0.0


@pytest.mark.parametrize("units", [0.0, 3.0, 5.0, 37.5, 4000.0])
def test_values_that_are_off_by_more_are_counted_in_products_and_slacks(units):
    """A sum of products over all samples, of values that are off by ``data``, in exact arithmetic."""
    samples, unit = 30, Fraction(2.0**-53)
    bounds = L1Rounding(samples, 7, data=units * 2.0**-53)
    worst = (1 + unit) ** samples * (1 + Fraction(units) * unit) - 1
    assert worst <= Fraction(bounds.column) <= 2 * worst + 20 * unit
    lone = (1 + unit) ** 4 * (1 + Fraction(units) * unit) - 1
    assert lone <= Fraction(bounds.slack(3, 1.0, 0.0) - bounds.slack(3, 0.0, 0.0))


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.1])
def test_the_gap_of_the_l1_model(scale, coarse):
    samples, features, terms, lam, off = 40, 7, 3, 0.6, 0.05
    bounds = L1Rounding(samples, features)
    column, tail, all_terms = SCALE * (samples + 16), SCALE * (terms + 16), samples + features + 16
    assert (bounds.column, bounds.terms, bounds.root) == (column, all_terms, math.sqrt(samples))
    for length, root in ((None, math.sqrt(samples)), (9.0, 9.0), (4.0, 4.0)):
        slack = tail * (2.5 + 2.0 * root * 1.4) + all_terms * max(root, math.sqrt(samples)) * TINY
        weighted = L1Rounding(samples, features, length)
        assert weighted.slack(terms, 2.5, -0.4) == pytest.approx(slack)
        lost = 0.5 * penalised_rounding.WEIGHTS_ERROR + 2.0 * UNIT
        assert weighted.inexact == pytest.approx(0.0 if length is None else lost)
    for pull, hoped in ((0.5, 0.97), (1.1, 0.8), (0.9, 1.0)):
        total, squares, balance, weight, reach = 11.0, 7.0, -0.2, 1.7, 2.5
        kink = weight - scale * pull / lam
        found = bounds.proof(lam, scale, hoped, (total, squares, balance), (terms, weight, reach, kink), off)
        norm = math.sqrt(squares + samples * TINY) * (1.0 + column)
        floor = all_terms * TINY * (1.0 + (1.0 + scale) * weight)
        error = OUTWARD * ((norm + 0.5 * off) * off + column * squares + tail * lam * weight + floor)
        taken = l1_kernels.imbalance(total, balance, column)
        apart = (abs(1.0 - scale) + (taken + 4.0 * UNIT) * scale) * norm + off
        unsure = scale * l1_kernels.blur(total, squares, balance, column) * reach
        unsure = unsure + 2.0 * tail * (lam * weight + unsure) + floor
        gap = OUTWARD * (0.5 * apart**2 + max(lam * weight - scale * pull + unsure, 0.0))
        core = 0.5 * (1.0 - hoped) ** 2 * squares + max(lam * weight - hoped * pull, 0.0)
        expected = {"primal": 0.5 * squares + lam * weight, "primal_error": error, "gap": gap,
                    "rounding": max(gap - core, 0.0)}  # fmt: skip
        assert found == pytest.approx(expected)
    huge = bounds.proof(lam, scale, 1.0, (11.0, math.inf, 0.0), (terms, 1.0, 1.0, 1.0), off)
    beyond = bounds.proof(lam, 1.0, -100.0, (11.0, 7.0, 0.0), (terms, 1.0, 1.0, 0.0), 0.0)
    assert huge["gap"] == math.inf and huge["rounding"] == beyond["rounding"] == 0.0  # never below 0
    none = bounds.proof(lam, 0.0, 0.0, (11.0, 7.0, 0.0), (terms, 1.0, 1.0, 1.0), 0.0)
    assert none["gap"] - none["rounding"] == pytest.approx(3.5 + lam)  # the primal value: the dual point is 0


def views(n=6, d=4, row=3, column=5):
    """Return what the bounds ask of the views: a longest row of ``row``, a longest column of ``column`` values."""
    row_ends = np.concatenate([[0, row, row + 1], np.full(n - 2, row + 2)])
    column_ends = np.concatenate([[0, 1, 1 + column], np.full(d - 2, column + 2)])
    return SimpleNamespace(n=n, d=d, size=11, inexact=0.0, row_ends=row_ends, column_ends=column_ends,
                           row_sqnorms=np.arange(1.0, n + 1.0), column_sqnorms=np.arange(1.0, d + 1.0))  # fmt: skip


@pytest.mark.parametrize("units, more", [(0, 0), (4, 0), (10, 6), (1000, 16)])
def test_sums_of_a_sparse_model_count_what_values_are_off_by(units, more):
    """A few roundings of a value are counted anyway; a row's norm rounds as often as the row has values."""
    data = views()
    data.inexact, gamma = units * ROUNDED, terms_gamma
    b = SparseRounding(data, 1, 6, 0.5)
    assert b.data == min(data.inexact, gamma(3 + 16))
    assert (b.row, b.column) == (gamma(3 + 16 + more), gamma(5 + 1 + 16 + more))


@pytest.mark.parametrize("classes", [1, 3])
def test_bounds_of_a_sparse_model(classes, coarse):
    pairs = 6 if classes == 1 else 12
    b, data = SparseRounding(views(), classes, pairs, 0.5), views()
    assert b.row == pytest.approx(SCALE * 19) and b.column == pytest.approx(SCALE * (5 + classes + 16))
    assert b.total == pytest.approx(SCALE * (classes * 6 + 16)) and b.weights == 4 * classes
    assert b.penalty == pytest.approx(SCALE * (4 * classes + 16)) and b.root == pytest.approx(math.sqrt(pairs))
    far = SparseRounding(views(), classes, pairs, 0.5, kinks_sq=9.0, width=2.0)
    assert (far.kinks, far.steep, b.kinks) == pytest.approx((3.0 * (1.0 + 2.0 * b.total), 2.0 * b.root, b.root))
    assert b.spread == pytest.approx(1.0 if classes == 1 else math.sqrt(6.0))
    assert (b.lost_pairs, b.lost_sums) == pytest.approx((pairs * TINY, 8.0 * TINY * math.sqrt(4 * classes)))
    norm = math.sqrt(data.row_sqnorms.sum() + 2.0 * 12 * TINY) * (1.0 + SCALE * 27)
    assert b.upper_norms(21.0, 11) == pytest.approx(norm) and b.size == pytest.approx(norm * math.sqrt(classes) / 6)
    s, column = b.slacks, 5 * classes
    assert (s.rows, s.columns) == pytest.approx((SCALE * (24 + 128), SCALE * (8 * column + 128)))
    assert (s.row_norms, s.column_norms) == pytest.approx((SCALE * 22, SCALE * (2 * column + 16)))
    assert s.squares == pytest.approx(SCALE * (2 * max(4 * classes, 6 * classes) + 128)) and s.floor == 2.0**-1022
    assert b.grown == pytest.approx(1.0 + 16.0 * b.total)
    assert b.floor(2.0, 3.0) == pytest.approx(16.0 * TINY * (pairs + b.weights + 2.0 + math.sqrt(b.weights) * 3.0))


def test_slacks_of_a_sparse_model_have_a_least_size():
    b = SparseRounding(views(), 1, 6, 0.5)
    assert (b.slacks.rows, b.slacks.columns, b.slacks.row_norms, b.slacks.column_norms) == (
        ROUNDING, ROUNDING, 1e-13, 1e-13,
    )  # fmt: skip
    assert b.grown == 1.0 + ROUNDING
    for bad in (np.array([1.0, math.inf]), np.array([math.nan])):
        with pytest.raises(DataError, match=f"feature {bad.size} exceeds"):
            check_range(bad, "feature")
    check_range(np.ones(3), "sample")
    wide = SparseRounding(views(n=2, d=100), 1, 2, 0.5)
    assert wide.slacks.squares == pytest.approx((2 * 100 + 128) * 2.0**-53)


def certificate(**changes):
    numbers = {
        "alpha": 0.7, "beta": 0.3, "loss": 2.0, "loss_slack": 0.11, "kink": 0.07, "lag_sq": 0.05, "lag_w": -0.02,
        "w_sq": 1.3, "w_l1": 2.1, "theta_sq": 2.9, "apart_sq": 0.4, "t_error": 0.2, "u_error": 0.15, "floor": 0.01,
        "gap": 0.0, "rounding": 0.0, "theta_sum": 3.5, "intercept": 0.0, "off": 0.0, "shift": 0.0, "cost": 0.0,
        "part": 1.0,
    }  # fmt: skip
    return SimpleNamespace(**{**numbers, **changes})


def test_weights_that_are_rounded_move_losses_and_penalties(coarse):
    b, c = SparseRounding(views(), 1, 6, 0.5, inexact=0.02), certificate()
    for alpha, ratio in ((0.4, 0.4 / 0.7), (1.4, 2.0), (0.0, 1.0)):
        bound = 2.0 * 0.02 * (2.0 + 0.5 * ratio * 1.3 + 0.3 * 2.1)
        assert b.of_weights(c, alpha) == pytest.approx(bound)
        plain = SparseRounding(views(), 1, 6, 0.5)
        assert plain.of_weights(c, alpha) == 0.0
        if alpha > 0.0:
            assert b.parts(c, alpha)[2] - plain.parts(c, alpha)[2] == pytest.approx(bound)


def parts_of(b, c, alpha):
    lag_sq, unsure = c.lag_sq, b.penalty * (c.kink + c.lag_sq) + c.floor
    if alpha != c.alpha:
        ratio, step = c.alpha / alpha, (c.alpha - alpha) / c.alpha
        lag_sq = max(ratio * (c.lag_sq + 2.0 * step * c.lag_w + step**2 * c.w_sq), 0.0)
        sizes = math.sqrt(c.lag_sq) + abs(step) * math.sqrt(c.w_sq)
        unsure += ratio * (b.penalty * sizes**2 + c.floor * (1.0 + step**2))
    samples = (math.sqrt(c.apart_sq + b.lost_pairs) + 0.5 * c.t_error / b.smoothing) * c.t_error
    samples = min(samples, b.steep * c.t_error) / b.n
    penalty = (math.sqrt(lag_sq) / math.sqrt(alpha) + 0.5 * c.u_error / alpha) * c.u_error if alpha else c.u_error
    error = samples + penalty + unsure + b.total * (c.loss_slack + UNIT * c.loss) + c.cost + b.of_weights(c, alpha)
    return c.loss_slack + c.kink, lag_sq, error


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gap_of_a_sparse_model(classes, weighted, coarse):
    weights, pairs = np.arange(1.0, 7.0), 6 if classes == 1 else 12
    given = {"weights": weights, "unit": 0.8, "inexact": 0.02, "kinks_sq": 9.0, "width": 2.0} if weighted else {}
    b = SparseRounding(views(), classes, pairs, 0.5, **given)
    if weighted:
        root = math.sqrt(pairs * 0.8) * (1.0 + b.total)
        size = b.upper_norms(weights @ views().row_sqnorms, 11) * math.sqrt(classes) / 6
        expected = root, math.sqrt(6.0) * OUTWARD, 3.0 * (1.0 + 2.0 * b.total), 2.0 * root, size
        assert (b.root, b.peak, b.kinks, b.steep, b.size) == pytest.approx(expected)
    for c in (certificate(), certificate(t_error=40.0), certificate(lag_w=-9.0, w_sq=0.01)):
        for alpha in (0.7, 0.5, 1.3):
            assert b.parts(c, alpha) == pytest.approx(parts_of(b, c, alpha))
    free = {"intercept": -0.8, "off": 0.05, "shift": 0.03, "cost": 0.02}  # what an intercept adds
    for reach, active, most, more in (
        (0.2, 9.0, 0.0, {}), (60.0, 0.0, 0.0, {}), (0.2, 9.0, 0.0, free), (0.2, 0.0, 0.0, {"alpha": 0.0}),
        (0.2, 0.0, 0.26, free | {"alpha": 0.0}), (0.2, 0.0, 0.28, free | {"alpha": 0.0}), (0.2, 9.0, 9.0, free),
    ):  # fmt: skip
        c = certificate(**more)
        b.finish(c, reach, active, most)
        theta, best, wide = math.sqrt(2.9), math.sqrt(2.9) + math.sqrt(0.4), reach + abs(c.intercept) * b.root / 6
        T = b.row * (b.spread * 6 * wide * b.peak + 4.0 * b.kinks)
        own = 2.0 * 0.3 * math.sqrt(active) + math.sqrt(c.alpha) * (math.sqrt(0.05) + 2.0 * math.sqrt(1.3))
        U = b.column * theta * b.size + 4.0 * UNIT * own + b.lost_sums + c.shift
        if not c.alpha:
            U = b.column * b.spread * b.peak * theta * wide + (8.0 * (UNIT * 0.3 + TINY) + c.shift) * 2.1
        assert c.cost == pytest.approx(more.get("cost", 0.0) + c.off * T / 6)
        penalty, floor = 0.5 * 1.3 + 0.3 * 2.1, b.floor(2.1, math.sqrt(c.alpha) * math.sqrt(0.05))
        off = min((best + 0.5 * T / 0.5) * T, b.root * T) / 6
        error = OUTWARD * (off + (b.total + b.inexact) * 2.0 + b.penalty * penalty + floor)
        assert (c.t_error, c.u_error, c.primal, c.floor) == pytest.approx((T, U, 2.0 + penalty, floor))
        rest, lag_sq, rounding = parts_of(b, c, c.alpha)
        gap, part = OUTWARD * (rest + 0.5 * lag_sq + rounding), 1.0
        if most + c.shift > 0.3 and not c.alpha:  # the dual point is too large for the penalty, and is made smaller
            part = 0.3 / (most + c.shift) / OUTWARD
            scaled = OUTWARD * (part * gap + OUTWARD * (1.0 - part) * (c.primal + error))
            gap, rounding = scaled, rounding + max(scaled - gap, 0.0)
        assert (c.primal_error, c.rounding, c.gap, c.part) == pytest.approx((error, rounding, gap, part))
    for bad in (math.inf, math.nan):
        c = certificate(kink=bad)
        b.finish(c, 0.2, 9.0)
        assert (c.gap, c.rounding) == (math.inf, 0.0)


def test_a_dual_point_that_underflows_is_not_taken_for_0():
    b = SparseRounding(views(), 1, 6, 0.5)
    c = certificate(theta_sq=0.0, lag_sq=0.0, w_sq=0.0)
    b.finish(c, 0.0, 0.0)
    assert c.u_error == pytest.approx(b.column * 1e-150 * b.size, rel=1e-9)


def sparse_model(b):
    return SimpleNamespace(
        n=6, gamma=0.5, pairs=b.pairs, mass=b.pairs, rounding=b, gap_at=lambda ref, alpha: 0.23 * alpha, sharp=False,
        kinks_sq=b.pairs, low=0.0, high=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(("alpha", "free", "sharp"), [(0.7, 0, 0), (0.4, 1, 0), (0.4, 1, 1), (0.0, 0, 1), (0.0, 1, 0)])
def test_the_budget_of_a_move(alpha, free, sharp, coarse, monkeypatch):
    """What the distance of both points takes of the gap is left out; what rounding does to margins counts."""
    b, given, decided = SparseRounding(views(), 1, 6, 0.5, inexact=0.02), [], []
    monkeypatch.setattr(rules, "TINY", TINY)
    model, columns = sparse_model(b), np.arange(24.0).reshape(4, 6) % 5.0
    model.d, model.intercept, model.samples, model.col_norm, model.beta = 4, free, None, np.arange(1.0, 5.0), 0.3
    model.views, model.signs, model.sharp = SimpleNamespace(columns=lambda keep: None), np.zeros(4, np.int8), sharp
    model.rows, model.labels, model.weights = SimpleNamespace(touched=0), np.array([1, -1] * 3), np.arange(1.0, 7.0)
    model.twice, model.column_sums = np.array([9.0, 2.0, 3.0, 9.0]), lambda given: columns @ given / 6
    at = SimpleNamespace(duals=np.array([0, 1, 1, -1, -1, 0], np.int8), keep=np.ones(4), record=np.empty((0, 2), int),
                         row_part=np.full(6, 0.5))  # fmt: skip

    def decide(*told):
        decided.append(told)
        at.keep[1:3] = 0
        return 2, 9

    monkeypatch.setattr(rules.move, "pair_to_move", lambda *a: given.append(a))
    monkeypatch.setattr(rules.move, "decide_moved", decide)
    monkeypatch.setattr(rules, "excess", lambda theta, labels, weights: ((weights * labels) @ theta, 0.06))
    theta = np.array([0.5, 1.0, 0.9, 0.0, 0.1, 1.0])
    c = certificate(off=0.3, cost=0.02, theta=theta, scores=None, u=np.ones(4), u_slack=np.full(4, 0.01), w=np.ones(4))
    first, c.alpha, c.gap = certificate(**{**vars(c), "alpha": 0.7 if alpha == 0.0 else alpha}), alpha, 0.37
    model.certify = lambda at, w, theta, point: c if (at, w is c.w, point) == (0.0, True, first) else None
    assert rules.by_a_move(model, at, first if alpha == 0.0 else c, alpha, 0.4) == 2
    _, _, moved, known, more, budget, blur = given.pop()
    assert moved is theta and known.tolist() == [0, 1, 0, -1, 0, 0] and blur == b.total + 0.08
    rest, lag_sq, error = parts_of(b, c, alpha) if alpha else (0.37, 0.0, 0.0)
    assert more == (0.5 if alpha else 0.0)
    most = 6 * (rest + lag_sq / 4 + 2.0 * error) + b.root * c.t_error + 0.5 * more * 0.3 * (2.0 * b.root + 0.3)
    assert budget == pytest.approx(b.grown * most + TINY)
    means, sigma, off = np.zeros(4), 0.0, 0.0
    if free and (sharp or alpha == 0.0):
        inside = np.where((theta > 0.0) & (theta < 1.0), model.weights, 0.0)
        means, sigma, off = -columns @ inside / inside.sum(), (model.weights * model.labels) @ theta / 6, 0.01
    _, u, limits, _, _, found_means, found_sigma, worth, keep = decided.pop()
    np.testing.assert_allclose(found_means, means)
    sizes = model.col_norm + np.abs(means) * math.sqrt(6.0) / 6
    slack = (b.slacks.columns + 4.0 * b.column) * (sizes * 2.0 * math.sqrt(6.0) + 0.3)
    np.testing.assert_allclose(limits, 0.3 - slack - 0.01 - np.abs(means) * off)
    assert found_sigma == pytest.approx(sigma) and worth == 0.4 and u is c.u and keep is at.keep
    # Features that go are not read for the distances of the rows, which keep the larger part of what they add.
    np.testing.assert_allclose(at.row_part, 0.5 + (0.25 * (4.0 + 9.0) if free else 0.0))
    assert at.record.tolist() == [[-1, 2]] and model.rows.touched == 9
    c.loss_slack = c.gap = math.inf
    assert rules.by_a_move(model, at, c, alpha) == 0 and not given


@pytest.mark.parametrize("alpha", [0.7, 0.4, 1.1])
def test_the_regions_of_sifs(alpha, coarse):
    b = SparseRounding(views(), 1, 6, 0.5)
    for c in (
        certificate(), certificate(apart_sq=0.0), certificate(theta_sum=5.3), certificate(apart_sq=9.0, t_error=0.4),
        certificate(off=0.3, cost=0.02), certificate(t_error=40.0),
    ):  # fmt: skip
        model = sparse_model(b)
        model.low, model.high = -0.5, 1.5
        r = rules.regions_of(model, c, alpha)
        rest, lag_sq, error = parts_of(b, c, alpha)
        moved = (math.sqrt(0.7) * math.sqrt(c.lag_sq) + c.u_error) / alpha
        primal = math.sqrt((rest + lag_sq / 4 + 2.0 * error) / alpha) + moved / 2
        ratio, inverse = 0.5 * (0.7 - alpha) / alpha, 2.0
        to_ones = c.theta_sq - 2.0 * inverse * c.theta_sum + 6 * inverse**2
        blur = 4.0 * b.total * 6 * inverse**2
        off = c.off + math.sqrt(2.0 * 6 * inverse * 0.23 * 0.7)
        first = abs(ratio) * math.sqrt(max(to_ones, 0.0) + blur) + (1.0 + ratio + abs(ratio)) * off
        apart, unsure = math.sqrt(c.apart_sq), min(c.t_error * inverse, 2.0 * math.sqrt(6.0))
        most = rest + lag_sq / 4 + 2.0 * error
        second_sq = 6 * most * inverse - 0.25 * c.apart_sq + 0.5 * apart * unsure
        second = math.sqrt(max(second_sq, 0.0)) + 0.5 * (apart + unsure) + c.off
        expected = (1.0 + ratio, b.grown * primal**2, -ratio * inverse, 1.0 + ratio, b.grown * first**2,
                    b.grown * second**2, ratio**2 * max(to_ones - blur, 0.0))  # fmt: skip
        found = r.scale, r.primal_sq, r.kink_part, r.theta_part, r.first_sq, r.second_sq, r.between_sq
        assert found == pytest.approx(expected) and r.paper and rules.finite(r)
        assert r.theta_norm == pytest.approx(math.sqrt(6.0) * (abs(r.kink_part) + r.theta_part + 1.0))
        model.sharp = True  # the exact hinge: of the regions the primal ball alone is left
        exact = rules.regions_of(model, c, alpha)
        assert (exact.scale, exact.primal_sq) == pytest.approx((r.scale, r.primal_sq))
        assert not exact.paper and rules.finite(exact)
    below = certificate(lag_sq=0.0, loss_slack=0.0, kink=0.0, floor=0.0, apart_sq=300.0, t_error=0.0)
    second = rules.regions_of(sparse_model(b), below, 0.7).second_sq
    assert second == pytest.approx(b.grown * 0.25 * 300.0)  # a square below 0 counts as 0
    assert not rules.finite(rules.regions_of(sparse_model(b), certificate(theta_sq=math.inf), alpha))
    assert not rules.finite(rules.regions_of(sparse_model(b), certificate(t_error=math.nan), alpha))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("paper", [False, True])
def test_columns_are_open_from_a_limit_on(paper, free, monkeypatch):
    """Every term counts in the `beta` at which both balls just do, or do not, zero a feature."""
    monkeypatch.setattr(rules, "LOOSE", 0.05)
    monkeypatch.setattr(rules, "CANCELLED", 0.03)
    planes, told, D, n = (3.0, 7.0, 0.4, -0.6), [], 40, 6
    rng = np.random.default_rng(paper + 2 * free)
    u, kinks, *moved = rng.normal(size=(4, D)) * 3.0
    off, norm = rng.uniform(0.1, 1.0, (2, D))
    slacks = (9.0, 0.02, 9.0, 0.3, 5.0, 9.0)
    r = rules.kernels.Regions(1.0, 1.0, -0.3, 1.1, 0.36, 2.5, 0.8, 1.9, paper)

    def centre(*given):
        told.append(given[5].tolist())
        given[-2][:], given[-1][:] = moved

    def cut(*given):
        told.append(given)
        return (0.0, 0.0, 0.0, 2.3, (9.0, 9.0, 9.0, 0.6))

    monkeypatch.setattr(rules, "plane_sums", lambda *given: given[-1].__setitem__(slice(None), planes))
    monkeypatch.setattr(rules, "centred", centre)
    monkeypatch.setattr(rules.kernels, "in_plane", cut)
    model = SimpleNamespace(rounding=SimpleNamespace(slacks=slacks), intercept=free, samples=None, n=n, col_norm=norm,
                            u_kinks=kinks, outward=np.abs)  # fmt: skip
    at = SimpleNamespace(keep=np.ones(D), duals=None, col_part=None, col_total=None)
    ref = SimpleNamespace(theta=None, u=u, u_slack=off)
    moves = np.array(moved) * free
    norms = norm * math.sqrt(1.6 if free else 1.3) + math.sqrt(5.0) / n
    first = np.abs(-0.3 * kinks + 1.1 * u + moves[0]) + 1.1 * off + 0.6 * norms
    second = np.abs(u + moves[1]) + off + math.sqrt(2.5) * norms
    least = np.minimum(first, second) if paper else second
    least = least * 1.05 + 0.03 * (np.abs(0.3 * kinks) + np.abs(1.1 * u) + np.abs(moves).sum(axis=0))
    grown = 0.02 * 1.05
    limit = (least + grown * norms * (2.3 if free else 1.9)) / (1.0 - 0.05 - grown)
    assert not paper or 5 < np.count_nonzero(first < second) < D - 5
    for part, found in ((1.0 - 1e-9, True), (1.0 + 1e-9, False)):
        for j in range(D):
            model.beta = limit[j] * part
            assert rules._open(model, ref, at, r)[j] == found
    if free:  # of a plane through the ball, with the rounding of its sums
        assert told[0] == list(planes)
        apart = 16.0 * rules.kernels.UNIT * (n + 32) * 7.0 * (0.3 + 1.1 + 1.0)
        assert told[1] == (*planes, pytest.approx(apart, abs=0.0), 0.36, 2.5, 0.8, 1.9, slacks)


def test_as_many_columns_are_read_as_what_stays_is_worth(monkeypatch):
    monkeypatch.setattr(rules, "LOOSE", 0.25)
    model = SimpleNamespace(n=4, classes=1, rounding=SimpleNamespace(slacks=SimpleNamespace(columns=0.5)))
    ref, at = SimpleNamespace(w=np.zeros(4), formed=[1]), SimpleNamespace(keep=np.array([1, 1, 1, 0]))
    regions = SimpleNamespace(second_sq=4.0, theta_norm=3.0)  # what is formed counts from a reach of 4.5 on
    monkeypatch.setattr(rules, "_open", lambda *given: np.array([True, False, False, True]))
    # The columns cost 1 (it is full), 1, as much as they have values, and nothing, as it is not kept.
    for last, room, read in ((3, 3.61, [1, 1, 1, 0]), (3, 3.59, [1, 0, 0, 0]), (0, 3.59, [1, 1, 1, 0])):
        model.views, ref.room = SimpleNamespace(column_ends=np.cumsum([0, 4, 1, last, 4])), room
        assert rules.could_be_read(model, ref, at, regions, (False, True, True)).tolist() == read


def test_what_the_triggerings_are_given(monkeypatch):
    given = []
    monkeypatch.setattr(rules.kernels, "sifs", lambda *a: given.append(a) or (7.0, 2))
    views_of = SimpleNamespace(
        whole=True, columns=lambda mark: None, rows=lambda mark: None, column_ends=None, row_ends=None
    )
    names = "labels", "weights", "classes", "u_kinks", "row_norm", "row_sizes", "col_sq", "col_norm", "beta", "gamma"
    names = *names, "intercept", "twice", "samples", "signs"
    at = SimpleNamespace(duals=np.zeros(6, np.int8), keep=None, row_part=None, col_part=None, col_total=None)
    model = SimpleNamespace(
        views=views_of, n=6, d=4, pairs=6, known_norms=(None, None),
        rounding=SimpleNamespace(slacks=()), psi_of=lambda ref: None, rows=SimpleNamespace(touched=100.0),
        nothing_screened=lambda: at, sharp=False, **dict.fromkeys(names),
    )  # fmt: skip
    ref = certificate(w=None, theta=None, u=None, u_slack=None, formed=None, room=None, scores=np.zeros(6))
    r = rules.kernels.Regions(1.1, 2.2, -0.3, 1.4, 5.5, 6.6, 7.7, 9.9, True)
    assert rules._run(model, ref, at, r, (True, False, True)).shape == (2, 2)
    told = given.pop()
    assert told[3].w_norm == pytest.approx(math.sqrt(1.3 / 0.7)) and told[3].scores is ref.scores
    assert told[4] is r and told[5] == (True, False, True) and model.rows.touched == 107.0
    # The radius of the gap ball is kept where features are screened and the other ball is no smaller.
    for features, second_sq, finite, reach in (
        (True, 4.0, True, 2.0), (True, 5.5, True, math.sqrt(5.5)), (True, 6.0, True, 0.0), (False, 4.0, True, 0.0),
        (True, 4.0, False, 0.0),
    ):  # fmt: skip
        r = rules.kernels.Regions(1.1 if finite else math.inf, 2.2, -0.3, 1.4, 5.5, second_sq, 7.7, 9.9, True)
        monkeypatch.setattr(rules, "regions_of", lambda *a, r=r, **how: r)
        found = rules.screen(model, ref, 0.5, True, features, True, alone=False)
        assert model.reach == reach and len(given) == finite and found is at
        given.clear()
        monkeypatch.setattr(rules, "_run", lambda *a: np.array([[-1, 2], [4, -1], [0, 3]]))
        assert rules.tighten(model, at, ref, 0.5) == (9 if finite else 0)
        monkeypatch.undo()
        monkeypatch.setattr(rules.kernels, "sifs", lambda *a: given.append(a) or (7.0, 2))


def test_what_the_closed_form_knows():
    at = SimpleNamespace(duals=np.array([0, -1, 0, 0], dtype=np.int8), keep=np.ones(4, dtype=np.int8), row_part=0,
                         col_part=0)  # fmt: skip
    model = SimpleNamespace(u_top=np.array([0.3, -0.5, -0.49, 0.7]), ones_error=0.01, beta=0.5, top=np.ones(4),
                            regression=False, outward=np.abs,
                            nothing_screened=lambda: at)  # fmt: skip
    found = rules.settled(model, True, True, True)
    assert found.keep.tolist() == [0, 1, 0, 1] and found.duals.tolist() == [1, -1, 1, 1]
    assert found.record.tolist() == [[-1, 2], [3, -1]]
    at.keep[:], at.duals[:], model.top[2] = 1, 0, 0.5  # with a free intercept some are between the ends
    found = rules.settled(model, True, True, False)
    assert found.record.tolist() == [[3, -1], [-1, 2]] and found.duals.tolist() == [1, 1, 0, 1]
    assert rules.settled(model, False, True, True).record.tolist() == [[-1, 2]]
    at.duals[:] = 0
    assert rules.settled(model, True, False, True).record.tolist() == [[3, -1]]


def test_contradictions_are_counted(monkeypatch):
    duals = np.array([1, -1, 0, 1], dtype=np.int8)
    monkeypatch.setattr(rules, "screen", lambda *a: SimpleNamespace(duals=duals))
    accurate = SimpleNamespace(w=np.array([0.9, -1.1, 1.1, 0.0]))
    model = SimpleNamespace(gap_at=lambda a, alpha: 0.5 * alpha, weights=np.ones(2), classes=2)
    decided = np.array([1, 1, 1, -1, 1, 1, 1, 0], dtype=np.int8)  # the radius is 1
    assert rules.contradicted(model, accurate, 0.5, decided) == 2 + 2
    assert rules.contradicted(model, accurate, 0.5, 0 * decided) == 0
    model.weights[0] = 0.0  # what a sample without weight is said to be matters to nobody
    assert rules.contradicted(model, accurate, 0.5, decided) == 2 + 2
    model.weights[1] = 0.0
    assert rules.contradicted(model, accurate, 0.5, decided) == 0 + 2
    one = SimpleNamespace(w=np.array([0.5, -2.0, 2.0, 1.0, 0.0]), gap=1.0)
    decided = np.array([1, 1, 0, -1, 1])
    assert l1_rules.contradicted(None, one, 1.0, decided) == 1 and l1_rules.contradicted(None, one, 4.0, decided) == 3
    theta = np.array([3.0, 4.0])
    known = SimpleNamespace(theta=theta, products=theta, theta_gap=8.0, lam=2.0, scale=0.0, off=0.0, slip=0.0)
    ball = l1_rules.gap_ball(known)
    assert ball.radius == 2.0 and ball.center.sqnorm == 25.0
    known.scale = 0.8  # r = 2 theta / 0.8 has the norm 12.5, and theta 10: the centre is at 11.25, of alpha
    ball = l1_rules.gap_ball(known)
    assert ball.radius == pytest.approx(math.sqrt(8.0 - 0.25 * 2.5**2) / 2.0)
    assert ball.center.sqnorm == pytest.approx(5.625**2)
    np.testing.assert_allclose(ball.center.vector, 1.125 * theta)
    np.testing.assert_allclose(ball.center.products, 1.125 * theta)
    known.off, known.slip = 0.1, 0.02  # 0.2 of a norm of 10
    assert l1_rules.gap_ball(known).radius == pytest.approx((math.sqrt(8.0 - 0.25 * 2.1**2) + 0.2) / 2.0)
    known.off = 2.0  # the ball of theta alone is smaller
    assert l1_rules.gap_ball(known).radius == 2.0
    part, radius = halfway(1.0, 0.5, 4.0, 0.0)
    assert part == 0.75 and 0.0 <= radius < 1e-7  # r and half of it are as far apart as the gap allows
    assert halfway(0.9, 0.5, 4.0, 0.0)[1] == 0.0 and halfway(0.9, 0.5, 4.0, 0.3)[1] > 0.3


def test_names_of_rules():
    for text, static in (
        ("sifs", (True, True)), ("iss+gap", (True, False)), ("ifs", (False, True)), ("gap", (False, False)),
    ):  # fmt: skip
        found = rules.parse_sparse_rule(text)
        assert ((found.samples, found.features), found.dynamic) == (static, "gap" in text) and found.features_first
    assert not rules.parse_sparse_rule("none", "samples").features_first
    for bad in ("sifs+none", "gap+gap", "none+gap", "x", "sifs+gap+gap"):
        with pytest.raises(UsageError):
            rules.parse_sparse_rule(bad)
    with pytest.raises(UsageError):
        rules.parse_sparse_rule("sifs", "rows")


def test_the_lens_of_sifs_is_that_of_its_points():
    rng = np.random.default_rng(0)
    tight = 0
    for _ in range(200):
        r1, r2 = rng.uniform(0.2, 2.0, 2)
        apart = rng.uniform(0.0, 1.2) * (r1 + r2)
        norm, v1 = rng.uniform(0.1, 2.0), rng.normal()
        along = norm * rng.uniform(-1.0, 1.0)
        v2 = v1 + apart * along
        found = kernels.lens_top(v1, v2, norm, apart**2, r1**2, r2**2)
        if not abs(r1 - r2) < apart < r1 + r2:
            continue
        turn = np.linspace(0.0, 2.0 * np.pi, 2001)
        rim = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        points = np.concatenate([r1 * rim, r2 * rim + [apart, 0.0]])
        inside = np.linalg.norm(points, axis=1) <= r1 + 1e-9
        inside &= np.linalg.norm(points - [apart, 0.0], axis=1) <= r2 + 1e-9
        v = np.array([along, math.sqrt(norm**2 - along**2)])
        expected = v1 + float((points[inside] @ v).max())
        both = min(found, v1 + r1 * norm, v2 + r2 * norm)
        assert expected - 1e-9 <= both + 1e-9 and both <= expected + 1e-2
        tight += found < min(v1 + r1 * norm, v2 + r2 * norm) - 1e-3
    assert tight > 20
    assert kernels.lens_top(1.0, 1.0, 0.0, 1.0, 1.0, 1.0) == pytest.approx(1.0)
    assert kernels.lens_top(0.0, 1.0, 1.0, 1.0, 1.0, 1.0) == math.inf  # along the axis: one ball alone is as good


def test_a_lens_that_is_hardly_more_than_a_point_keeps_what_rounding_may_be():
    square = 1.0 + 2.0**-49  # of both radii; the centres are 2 apart
    found = kernels.lens_top(0.0, 0.0, 1.0, 4.0, square, square)
    assert found == pytest.approx(math.sqrt(2.0**-49 + 8.0 * 2.0**-53 * (square + square + 4.0)), rel=1e-6)


@pytest.mark.parametrize(
    ("classes", "low", "free"),
    [(1, 0.0, None), (3, 0.0, None), (1, -0.7, None), (1, 0.0, (0.3, 0.6)), (1, -2.0, (-9, 1))],
)
def test_margins_over_a_ball(classes, low, free):
    rng = np.random.default_rng(1)
    n = 5
    labels = np.array([1, -1, 1, -1, 1]) if classes == 1 else np.array([0, 1, 2, 0, 1])
    scores, part = rng.normal(size=classes * n), rng.normal(size=classes * n)
    row_sq, kinks = rng.random(n), rng.uniform(-1.0, 1.5, n)
    row_norm = np.sqrt(row_sq)
    scale, radius, extent, gamma = 1.3, 0.4, 2.5, 0.5
    slacks = (0.01, 9.0, 0.02, 9.0, 0.003, 9.0)
    status, found, number = np.zeros(classes * n, dtype=np.int8), np.full(classes * n, -1), 0
    expected = np.zeros(classes * n)
    samples = Samples(labels, np.ones(n), n, classes, gamma, kinks, low, 1.2)
    ball, rows = (scale, radius, extent), (part, row_sq, row_norm)
    base, level = free or (0.0, 0.0)
    for c in range(classes):
        lower, upper = np.empty(n), np.empty(n)
        kernels.margin_bounds(scores, samples, c, ball, rows, slacks, free, lower, upper)
        for i in range(n):
            own, t = labels[i] * n + i, c * n + i
            if classes == 1:
                center, square = scale * labels[i] * scores[i], max(part[i] + base, 0.0) + 0.02 * row_sq[i] + 0.003
                size = abs(kinks[i]) + scale * level + (gamma * max(1.2, -low) if low else 0.0)
                reach = radius * math.sqrt(square) + 0.01 * (row_norm[i] * extent + size)
            else:
                center = scale * (scores[own] - scores[t])
                square = max(part[own], 0.0) + max(part[t], 0.0) + 2.0 * (0.02 * row_sq[i] + 0.003)
                reach = radius * math.sqrt(square) + 0.01 * (2.0 * row_norm[i] * extent + 1.0)
            assert (lower[i], upper[i]) == pytest.approx((center - reach, center + reach))
            above, below = center - reach > kinks[i] - gamma * low, center + reach < kinks[i] - gamma * 1.2
            expected[t] = -1 if above else 1 if below else 0
            number += expected[t] != 0
    if free is not None:  # what an intercept may add to these stands in kernels/problem/sparse_intercept.py
        return
    assert 0 < number < classes * n
    args = scores, samples, ball, rows, slacks, None, status, found
    assert kernels.decide_samples(*args) == number
    np.testing.assert_array_equal(status, expected)
    np.testing.assert_array_equal(found[:number], np.flatnonzero(expected))
    assert kernels.decide_samples(*args) == 0  # what is decided is not found again


def test_features_are_narrowed_to_those_formed_where_that_is_worth_it():
    indptr = np.array([0, 2, 5, 6, 10], dtype=np.int64)  # four columns of at most 5 values
    keep, formed = np.array([1, 1, 0, 1], dtype=np.int8), np.array([0, 2])
    for left, dropped in ((4.0, 0), (3.9, 0), (4.1, 2)):  # column 0 costs 2
        mine = keep.copy()
        live, count = kernels.narrow(indptr, 5, mine, left, formed)
        assert live.tolist() == [0] and count == dropped
        assert mine.tolist() == ([1, 0, 0, 0] if dropped else keep.tolist())
