"""What a box model bounds, sums and hands to solvers, with units of rounding so large that every term counts."""

from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.errors import DataError
from screenpath.kernels.problem import box as kernels
from screenpath.problem import box_rounding
from screenpath.problem.box import FEW, BoxModel
from screenpath.problem.box_types import Screened
from screenpath.regions import geometry
from screenpath.regions.geometry import Ball, Lens, Point
from screenpath.rows.memory import MemoryRows

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
UNIT = 2.0**-53


def quantile(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return QUANTILE.model(MemoryRows(rng.normal(size=(n, d))), rng.normal(size=n), rng.uniform(0.5, 2.0, n), tau=0.3)


@pytest.mark.parametrize(("rows", "d", "mirrored"), [(40, 3, False), (20000, 1, False), (7, 3, True)])
def test_bounds_of_a_model_with_large_units(rows, d, mirrored, monkeypatch):
    model = quantile(rows, d)
    assert model.relative == 1e-14 and model.rounding == 1e-12
    monkeypatch.setattr(box_rounding, "gammas", lambda *depths: [1e-3 * depth for depth in depths])
    y, s = np.random.default_rng(1).normal(size=(2, rows))
    rest = {"tail": np.linspace(-3e-3, 2e-3, rows * (1 + mirrored)), "inexact": 0.25}
    ends = (0.0 * model.lo, -model.lo) if mirrored else (model.lo, model.hi)
    c, *ends = (np.tile(part, 1 + mirrored) for part in (y, *ends))
    ends[0][0] = ends[1][0] = 0.0  # its kink, which is off by most, does not count
    model = BoxModel(model.rows, c, *ends, np.where(s > 0.0, 1, -1), mirrored, **rest)
    n = model.size
    largest, wide = np.maximum(np.abs(model.lo), np.abs(model.hi)), 1.0 + 1e-3 * (n + d + 8)
    b, blocks = model.bounds, len(box_rounding.sum_blocks(rows, model.rows.size, d))
    expected = {
        kernels.PRODUCT: 1e-3 * (2 * d + 8), kernels.ROW_SUM: 1e-3 * (1024 + n // 1024 + 16),
        kernels.FEATURE_SUM: 1e-3 * (d + 8), kernels.ALL_NORMS: wide * (largest @ model.norms),
        kernels.ALL_KINKS: wide * (largest @ np.abs(model.c)), kernels.ALL_ONES: wide * largest.sum(),
        kernels.FRESH: 1e-3 * (-(-rows // blocks) + blocks + 8) + 1e-3 * (2 * d + 8), kernels.UPDATE: blocks + 8,
        kernels.LARGEST: wide * np.max((model.hi - model.lo) * model.norms),
        kernels.HIDDEN: np.sqrt(d) * 2.0**-537, kernels.TINY: (d + 1) * 2.0**-1074,
        kernels.ZERO: np.maximum(model.lo * model.c, model.hi * model.c).sum(), kernels.SLOPE: 0.25,
        kernels.KINK: -rest["tail"][1],
    }  # fmt: skip
    assert (n > 1024) == (blocks > 1)
    np.testing.assert_allclose([b[k] for k in expected], list(expected.values()), rtol=1e-12)
    assert model.relative == pytest.approx(2e-3 * (d + 8)) and model.rounding == pytest.approx(4e-3 * (2 * d + 8))


def test_rows_whose_squares_underflow_are_not_taken_for_nothing():
    s = np.array([3.0, 1.0, 2.0])
    model = QUANTILE.model(MemoryRows(np.full((3, 4), 1e-170)), np.ones(3), s, tau=0.25)
    assert not model.norms.any() or model.norms.max() < 1e-160
    model.norms[:] = 0.0
    b, hidden = model._bounds(), 2.0 * 2.0**-537
    assert b[kernels.ALL_NORMS] == hidden * 0.75 * 6.0 and b[kernels.LARGEST] == hidden * 3.0


def test_errors_in_the_numbers_of_a_reduced_problem():
    b, n = np.random.default_rng(5).uniform(0.1, 1.0, 14), 3
    errors, many = kernels.errors_of(3.0, 0.2, 0.04, b), 2.0**50
    total = 3.0 * (0.2 + b[kernels.SLOPE] * b[kernels.ALL_NORMS] + b[kernels.HIDDEN])
    relative = b[kernels.PRODUCT] + b[kernels.SLOPE]
    floor = 6.0 * b[kernels.ALL_ONES] * (b[kernels.KINK] + b[kernels.TINY])
    assert errors == pytest.approx((0.04, relative, total, floor))
    assert kernels.moved_by(0.0, 1.3, 0.4, 0.7) / UNIT == pytest.approx(64.0 * 4.5)
    moved = kernels.moved_by(many, 1.3, 0.4, 0.7)
    assert moved == pytest.approx(0.125 * (1.3 + 0.4 + 4.0 * 0.7))
    apart, depth = (1.0 + relative) * 0.4 + total + moved, kernels.relative_error(many + 16.0)
    for slack in (0.9, -0.3):
        found = kernels.radius_around(slack, 2.2, 1.3, 0.4, 0.7, many, many, errors)
        inside = max(slack, 0.0) + (depth + relative) * (2.2 + 1.3 * 0.7) + floor + apart**2 / 4.0
        assert np.sqrt(inside) + apart / 2.0 < found == pytest.approx(np.sqrt(inside) + apart / 2.0)
    line = kernels.sum_drift(kernels.largest_sum_error(n, 2, b), n, b)  # (C - C2) / (C2 - C1) goes on beyond C2
    assert line * 4.0 < kernels.start_error(1.0, 3.0, 6.0, 0.3, 2.0, n, 2, b) == pytest.approx(line * 4.0)
    assert kernels.start_error(0.0, 3.0, 6.0, 0.3, 2.0, n, 2, b) == kernels.sum_drift(0.3, 2.0, b)
    assert kernels.start_error(0.0, 3.0, 6.0, 0.3, 0.0, n, 2, b) == 0.3


def test_a_sum_is_updated_so_often_and_then_formed_anew():
    model = quantile()
    theta = model.hi.copy()
    pair = model.certify(1.0, None, theta)
    seen = []
    for k in range(20):
        theta = theta.copy()
        theta[k] = model.lo[k]
        pair = model.certify(1.0, None, theta, pair)
        seen.append(pair.updates)
        fresh = kernels.sum_error(float(np.count_nonzero(theta)), model.bounds)
        assert pair.sum_error > fresh if pair.updates else pair.sum_error == fresh
    assert seen == [*range(1, BoxModel.fresh_every + 1), 0, 1, 2, 3]
    again = model.certify(1.0, None, theta.copy(), pair)
    assert (again.updates, again.sum_error) == (pair.updates, pair.sum_error) and again.total is pair.total
    # As many changes as there are rows that count: the sum is formed anew.
    few = np.zeros(40)
    few[:3] = model.hi[:3]
    start = model.certify(1.0, None, few)
    for changed, updates in ((2, 1), (3, 0), (4, 0)):
        other = few.copy()
        other[:changed] *= 0.5
        assert model.certify(1.0, None, other, start).updates == updates


def test_a_corner_is_that_of_the_margins_with_the_intercept():
    rng = np.random.default_rng(6)
    X, y, w, b = rng.normal(size=(30, 3)), np.where(np.arange(30) % 3, 1.0, -1.0), rng.normal(size=3), 0.7
    model = SVM.model(MemoryRows(X), y, rng.uniform(0.5, 2.0, 30))
    margins, known = model.cornered(w, b)
    np.testing.assert_allclose(margins, y * (X @ w))
    np.testing.assert_array_equal(known.theta, np.where(y * (X @ w + b) < 1.0, model.hi, 0.0))
    np.testing.assert_array_equal(model.corner(margins)[0], np.where(margins < 1.0, model.hi, 0.0))
    np.testing.assert_allclose(known.total, (y * known.theta) @ X)
    assert known[2:] == (0, kernels.sum_error(float(np.count_nonzero(known.theta)), model.bounds))


def test_an_error_of_a_sum_is_at_most_that_of_all_updates(monkeypatch):
    model = quantile()
    fresh, way = model.weighted_sum(model.hi), np.array([0.6, 0.0, 0.8])
    monkeypatch.setattr(box_rounding, "OUTWARD", 1.25)
    monkeypatch.setattr(model, "updated_sum", lambda theta, reference: (fresh, 0, 0.2))
    box_rounding.check_sum(model, model.hi, fresh + 0.624 * way, 0.3)  # 1.25 (.2 + .3)
    with pytest.raises(ValueError, match="is not the sum"):
        box_rounding.check_sum(model, model.hi, fresh + 0.626 * way, 0.3)
    error = kernels.sum_error(40.0, model.bounds)
    for updates in range(BoxModel.fresh_unread + 1):
        assert box_rounding.largest_sum_error(model, updates) == error
        error = kernels.sum_drift(error, 40.0, model.bounds)
    with pytest.raises(ValueError, match="updates is 257"):
        box_rounding.largest_sum_error(model, BoxModel.fresh_unread + 1)


def test_a_row_beyond_floating_point_is_named():
    for mirrored in (False, True):
        rows = MemoryRows(np.eye(3))
        rows.norms[1] = np.inf
        y = np.ones(3)
        with pytest.raises(DataError, match="row 2 exceeds"):
            SVR.model(rows, y, epsilon=0.1) if mirrored else LAD.model(rows, y)


def test_a_smaller_primal_value_is_known_where_there_is_one():
    b = np.zeros(kernels.TINY + 1)
    b[kernels.ZERO] = 3.0
    for C, w_sq, xi, primal, place in (
        (2.0, 8.0, 2.0, 6.0, kernels.NOWHERE), (2.0, 8.0, 2.0, 6.001, kernels.AT_ZERO),  # 6 at zero, 8 before
        (2.0, 2.0, 1.0, 3.0, kernels.NOWHERE), (2.0, 2.0, 1.0, 3.001, kernels.BEFORE),  # 6 at zero, 3 before
        (2.0, 2.0, 1.0, 3.0 * (1.0 + 0.8 * kernels.ALIKE), kernels.NOWHERE),
        (2.0, 2.0, 1.0, 3.0 * (1.0 + 1.2 * kernels.ALIKE), kernels.BEFORE),
    ):  # fmt: skip
        assert kernels.above_known(C, primal, w_sq, xi, b) == place
    model = quantile()
    pair = model.certify(1.0, np.full(3, 9.0), model.lo)
    near = model.certify(1.0, np.zeros(3), model.hi)
    assert model.no_worse(1.0, near, pair) is near
    for reference, w in ((pair, np.zeros(3)), (model.certify(0.5, *(start := solved(model))), start[0])):
        found = model.no_worse(1.0, pair, reference)
        np.testing.assert_array_equal(found.point.vector, w)
        np.testing.assert_allclose(found.point.products, model.margins(w), rtol=1e-12)
        assert found.theta is pair.theta or np.array_equal(found.theta, pair.theta)
        assert found.primal < near.primal * (1.0 + 1e-12) and found.C == 1.0


def solved(model):
    """Return a pair whose primal value is below that of zero."""
    start = model.start(0.05)
    return 0.5 * start.point.vector, start.theta


def test_a_start_beyond_the_closed_form_is_its_end():
    model = quantile(seed=1)
    s, total, limit, _ = model._closed_form()
    for C, at in ((0.25 * limit, 0.25 * limit), (limit, limit), (7.0 * limit, limit)):
        start = model.start(C)
        assert [start.C, start.sum_error] == [at, kernels.sum_error(40.0, model.bounds)]
        np.testing.assert_allclose(start.point.vector, at * total)
        np.testing.assert_allclose(start.point.products, model.margins(at * total), rtol=1e-12)
        assert model.exact_until(start, at) and model.exact_until(start, 0.5 * at)
        assert not model.exact_until(start, at * 1.001)
    held = model.held(model.start(0.25 * limit), 0.5 * limit)[0]
    np.testing.assert_allclose(held.point.vector, 0.5 * limit * total)
    model._closed = None
    model.range_of = lambda slope: 0.0  # no such parameter
    assert model.start(3.0).C == 3.0
    np.testing.assert_allclose(model.start(3.0).point.vector, 3.0 * total)


def test_a_region_is_asked_with_the_slack_of_its_own_size(monkeypatch):
    model = LAD.model(MemoryRows(np.eye(2)), np.array([1.0, -1.0]))
    asked = []
    monkeypatch.setattr(geometry.kernels, "box_decide", lambda *a: asked.append(a))
    monkeypatch.setattr(geometry.kernels, "box_decide_ball", lambda *a: asked.append(a) or (0, 0))
    small, large = (Ball(Point(np.array([x, 0.0]), np.array([x, 0.0]), x * x), r) for x, r in ((2.0, 1.0), (3.0, 4.0)))
    for one, two in ((small, large), (large, small)):
        asked.clear()
        model.screen(Lens(one, two))
        both, *alone = asked
        assert (both[3], both[5]) == (7.0, model.rounding)
        assert [(a[3], a[4], a[6]) for a in alone] == [(b.radius, b.extent, model.rounding) for b in (one, two)]
    monkeypatch.undo()
    ball = Ball(Point(np.array([1.25, -1.25]), np.array([1.25, -1.25]), 3.125), 0.2)
    assert model.screen(ball).status.tolist() == [-1, 1]  # at the point itself, not at half of it
    assert model.screen(replace(ball, radius=0.3)).status.tolist() == [0, 0]


def test_a_reduced_problem_starts_where_its_reference_is_taken():
    model = quantile(100, 3)
    rng = np.random.default_rng(2)
    theta = np.where(rng.random(100) < 0.4, model.lo, model.lo + (model.hi - model.lo) * rng.random(100))
    pair, C = model.certify(0.5, rng.normal(size=3), theta), 2.5
    for n_R, n_L, size in ((0, 0, 100), (2, 2, 100), (4, 0, 100), (4, 1, 95), (1, 4, 95), (30, 30, 40)):
        status = np.zeros(100, dtype=np.int8)
        status[:n_R], status[50 : 50 + n_L] = -1, 1
        reduced = model.reduce(C, Screened(status, n_R, n_L), pair)
        assert reduced.size == size and FEW == 0.05
        if size == 100:
            status[:] = 0
        free = status == 0
        at = np.where(free, theta, np.where(status < 0, model.lo, model.hi))
        np.testing.assert_array_equal(reduced.index, np.flatnonzero(free))
        np.testing.assert_array_equal(reduced.theta, at)
        np.testing.assert_allclose(reduced.start_sum, C * model.weighted_sum(at), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(reduced.offset, C * float(model.c[~free] @ at[~free]), rtol=1e-9, atol=1e-12)
        for name, expected in (("c", model.c), ("lo", C * model.lo), ("hi", C * model.hi), ("norms", model.norms),
                               ("start_alpha", C * theta), ("start_margins", pair.point.products)):  # fmt: skip
            np.testing.assert_allclose(getattr(reduced, name), expected[free], rtol=1e-14, err_msg=name)
        np.testing.assert_array_equal(reduced.start_w, pair.point.vector)
    before = model.certify(0.3, rng.normal(size=3), np.roll(theta, 1).clip(model.lo, model.hi))
    assert model.after(before, pair).before is None and model.after(pair, before).before[0] == 0.3
    # The line through both is followed beyond them, not back.
    for at, known in ((0.45, theta), (2.5, reduced.theta)):
        there = model.reduce(at, Screened(np.zeros(100, dtype=np.int8), 0, 0), pair)
        assert np.array_equal(there.theta, known) == (at < 0.5)
        alone = model.reduce(at, Screened(np.zeros(100, dtype=np.int8), 0, 0), replace(pair, before=None))
        assert (there.errors == alone.errors) == (at < 0.5)


def test_counts_of_a_step():
    model = SVM.model(MemoryRows(np.eye(5)), np.ones(5))
    pair = model.certify(1.0, np.array([1.0, 0.0, 2.0, 0.0, 3.0]), np.array([0.0, 0.0, 1.0, 0.5, 0.25]))
    found = model.counts(pair, Screened(np.array([-1, 0, 1, 0, 1], dtype=np.int8), 1, 2))
    assert {k: v for k, v in found.items() if k != "coefficients"} == {
        "n_R": 2, "n_L": 1, "n_E": 2, "screened_R": 1, "screened_L": 2, "n_survivors": 2, "rejection_ratio": 0.6,
        "screening_rate": 1.0, "n_features_screened": 0, "nnz_w": 3,
    }  # fmt: skip


def test_what_covers_the_rounding_of_the_bounds_themselves():
    b = np.zeros(kernels.TINY + 1)
    b[kernels.UPDATE] = -4.0
    assert kernels.sum_drift(1.0, 4.0, b) == 1.0 + 8.0 * UNIT
    b[kernels.ALL_NORMS] = 1.0
    assert F(kernels.sum_drift(1.0, 4.0, b)) >= 1 + F(UNIT)
    b[:] = 0.0
    zero = np.zeros(2)
    gap, error = (kernels.box_objectives(1.0, zero, zero, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, b)[k] for k in (9, 8))
    assert (gap, error) == (1.0 + 16.0 * UNIT, 0.0)
    b[kernels.ALL_NORMS] = 1.0
    assert kernels.box_objectives(1.0, zero, zero, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, b)[8] == 1.0 + 8.0 * UNIT
    whole = kernels.box_objectives(1.0, zero, zero, 0.0, 0.0, 0.0, 0.0, 2.0**-1050, 0.0, 0.0, np.zeros(b.size))
    assert whole[5] == 2.0**-1050 + kernels.UNDERFLOW and whole[9] >= 2.0**-1050 + 2.0 * kernels.UNDERFLOW
    # The difference of w and C G'theta is off by what the rounding of C G'theta is, though it be 0 as computed.
    total = np.array([3.0, 4.0])
    for C in (0.5, 2.0):
        apart = 2.0 * UNIT * C * 5.0
        gap = kernels.box_objectives(C, C * total, total, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, b)[9]
        assert gap == pytest.approx(0.5 * apart * apart, rel=1e-12)
    b[:] = 0.0
    assert kernels.pair_radius(1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0) == 1.0 + 16.0 * UNIT
    none, nothing = kernels.errors_of(1.0, 0.0, 0.0, b), [0.0] * 7
    assert none.floor == kernels.UNDERFLOW
    for slack, radius in ((1.0, 1.0 + 16.0 * UNIT), (0.0, kernels.LEAST)):
        assert kernels.radius_around(slack, *nothing[:6], none._replace(floor=0.0)) == radius
    assert kernels.pair_radius(3.0, 2.0, *nothing) == 4.0 * kernels.LEAST
    assert kernels.pair_mismatch(3.0, 2.0, *nothing[:5]) == 4.5 * kernels.LEAST
    assert kernels.meets(1.0, 1.0 + 8.0 * UNIT, 0.0, 1.0) and not kernels.meets(1.0, 1.0 + 4.0 * UNIT, 0.0, 1.0)
    assert kernels.relative_error(0.9 * 2.0**52) < np.inf and kernels.relative_error(2.0**52) == np.inf


def test_radii_whose_squares_cancel_are_those_of_their_errors():
    """Numbers that are equal but for rounding: what is below 0 counts as 0, and the bound on it is what is left."""
    for w_sq, total_sq, inner in ((1.0, 1.0, 1.0), (1.0, 1.0, 1.001), (1.0, 1.0, 2.0)):
        found = kernels.pair_radius(1.0, 1.0, w_sq, total_sq, inner, 0.0, 0.0, 0.0, 0.02)
        assert found == pytest.approx(0.5 * np.sqrt(0.04), rel=1e-12)
        assert kernels.pair_mismatch(1.0, 1.0, w_sq, total_sq, inner, 0.0, 0.02) == pytest.approx(np.sqrt(0.04))
    C, C0 = 3.0, 2.0
    sum_error, total_error, relative = 0.3, 0.7, 0.05
    dual_sq, ahead_sq = 9.0 * 1.7, 2.25 * 4.1
    apart_sq = max(4.1 - 6.0 * 0.2 + dual_sq, 0.0) + relative * (4.1 + dual_sq) + 13.0 * total_error
    apart = np.sqrt(apart_sq) + C * sum_error
    expected = np.sqrt(0.25 * apart**2 + C * 0.6) + 0.5 * C * sum_error
    assert kernels.pair_radius(C, C0, 4.1, 1.7, 0.2, 0.6, sum_error, total_error, relative) == pytest.approx(expected)
    off_sq = dual_sq - 2.0 * C * 1.5 * 0.2 + ahead_sq + relative * (dual_sq + ahead_sq) + 9.0 * total_error
    assert kernels.pair_mismatch(C, C0, 4.1, 1.7, 0.2, total_error, relative) == pytest.approx(np.sqrt(off_sq))


def test_rows_beyond_a_part_count_like_all_others():
    rng = np.random.default_rng(3)
    n = 2 * 1024 + 100
    c, margins, lo, hi, norms = rng.normal(size=n), rng.normal(size=n), -rng.random(n), rng.random(n), rng.random(n)
    theta = np.where(rng.random(n) < 0.3, lo, np.where(rng.random(n) < 0.3, hi, 0.5 * (lo + hi)))
    w, total, b = rng.normal(size=2), rng.normal(size=2), np.full(kernels.TINY + 1, 0.01)
    found = kernels.box_certificate(0.7, w, theta, total, 0.2, margins, c, lo, hi, norms, b)
    terms = kernels.box_terms(c, margins, lo, hi, theta, norms, *kernels.product_errors(w, b), 0, n)
    expected = kernels.box_objectives(0.7, w, total, 0.2, *terms, *kernels.product_errors(w, b), b)
    np.testing.assert_allclose(found[:-2], expected, rtol=1e-12)
    assert found[-2:] == (np.sum(theta == lo), np.sum((theta == hi) & (lo < hi)))
    xi, ell, magnitude = kernels.box_summary(c, margins, lo, hi, theta, 3, n - 5)
    t, part = (c - margins)[3:-5], slice(3, -5)
    assert xi == pytest.approx(np.maximum(lo[part] * t, hi[part] * t).sum(), rel=1e-12)
    assert ell == pytest.approx((c * theta)[part].sum(), rel=1e-10)
    assert magnitude == pytest.approx(np.abs(c * theta)[part].sum(), rel=1e-12)


def test_points_of_a_kernel_halfway():
    rng = np.random.default_rng(4)
    vector, products, theta, total = rng.normal(size=(4, 6))
    point, both = np.empty(6), np.empty(6)
    sqnorm, dual_sq, terms = kernels.box_halfway(vector, products, theta, total, 1.7, point, both)
    np.testing.assert_allclose(point, 0.5 * (vector + 1.7 * theta))
    np.testing.assert_allclose(both, 0.5 * (products + 1.7 * total))
    assert sqnorm == pytest.approx(point @ both) and dual_sq == pytest.approx(theta @ total)
    assert terms == pytest.approx(np.abs(point * both).sum())
    apart, terms = kernels.apart_squared(vector, products, theta, total)
    assert apart == pytest.approx((vector - theta) @ (products - total))
    assert terms == pytest.approx(np.abs((vector - theta) * (products - total)).sum())


def test_no_kink_is_passed_before_the_end_of_the_range():
    c, slope = np.array([2.0, -3.0, 1.0, -1.0, 0.0, 4.0]), np.array([4.0, -1.0, -5.0, 5.0, 3.0, 0.0])
    assert kernels.box_range(c, slope) == 0.5 and kernels.box_range(-c[:4], -slope[:4]) == 0.5
    assert kernels.box_range(c[1:2], slope[1:2]) == 3.0 and kernels.box_range(c[2:4], slope[2:4]) == np.inf
    assert kernels.box_range(np.zeros(1), np.array([-1.0])) == 0.0  # a target that is met is left at once
    assert kernels.box_range(c[5:], slope[5:]) == np.inf


def test_signs_and_differences():
    values, signs, out = np.array([1.0, 2.0, -3.0, 4.0]), np.array([1, -1, -1, 1], dtype=np.int8), np.full(4, 9.0)
    kernels.signed(values, signs, out, 1, 3)
    assert out.tolist() == [9.0, -2.0, 3.0, 9.0]
    assert kernels.difference(values, np.array([1.0, 0.0, -3.0, 1.0]), signs, out, 0, 4) == (2, 4)
    assert out.tolist() == [0.0, -2.0, 0.0, 3.0]
    assert kernels.difference(np.array([0.0, 1.0]), np.ones(2), signs, out, 0, 2) == (1, 1)
    kernels.sign(values, signs, 1, 4)
    assert values.tolist() == [1.0, -2.0, 3.0, 4.0]
