"""Supports of domes and lenses where products are uncertain by much, against a search; what points and balls carry."""

import math
from dataclasses import replace

import numpy as np
import pytest

from screenpath.regions import geometry
from screenpath.regions.geometry import (
    ROUNDING,
    Ball,
    Dome,
    KernelPoint,
    Lens,
    Point,
    axis_uncertainty,
    between,
    lens_support,
)
from tests.proofs.lenses import lens_sup

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def dome_most(vc, va, norm, radius, offset):
    """Return the largest ``v.x`` over a dome, ``v.a`` being known."""
    if va * radius <= offset * norm:
        return vc + radius * norm
    across = math.sqrt(max((radius * radius - offset * offset) * (norm * norm - va * va), 0.0))
    return min(vc + radius * norm, vc + offset * va + across)


def within(va, norm, uncertainty):
    """Return values that an uncertain ``v.a`` may have."""
    return np.clip(np.linspace(va - uncertainty * norm, va + uncertainty * norm, 4001), -norm, norm)


@pytest.mark.parametrize("uncertainty", [0.0, 0.02, 0.3])
def test_a_dome_takes_the_least_favourable_product_within_reach(uncertainty):
    rng = np.random.default_rng(0)
    for _ in range(25):
        radius, norm = rng.uniform(0.2, 3.0, 2)
        offset, vc, va = rng.uniform(-radius, radius), rng.normal(), rng.uniform(-norm, norm)
        one = [np.array([v]) for v in (vc, va, norm)]
        at = Point(np.zeros(1), None, 0.0)
        found = Dome(at, radius, at, offset, uncertainty).bounds(one[:2], one[2])[1][0]
        expected = max(dome_most(vc, value, norm, radius, offset) for value in within(va, norm, uncertainty))
        assert found == pytest.approx(expected, abs=2e-3 * norm * radius if uncertainty else 1e-12)
        assert found >= expected - 1e-12


def lens_most(v1, v2, away, norm, distance, r1, r2):
    """Return the largest ``v.x`` over a lens, ``r1 <= r2``, ``away`` being ``v.(m1 - m2)`` over the distance."""
    height = (distance * distance - r2 * r2 + r1 * r1) / (2.0 * distance)
    second, first = v2 + r2 * norm, v1 + r1 * norm
    in_first = away * r2 >= (distance - height) * norm
    most = second if in_first else dome_most(v1, away, norm, r1, -height)
    return min(most, first, second)


def random_lenses(seed):
    """Yield what a lens is asked about, as :func:`lens_most` names it."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        r1, r2 = np.sort(rng.uniform(0.2, 3.0, 2))
        distance, norm, v1 = rng.uniform(r2 - r1, r1 + r2), rng.uniform(0.1, 2.0), rng.normal()
        away = rng.uniform(-norm, norm)
        yield v1, v1 - away * distance, away, norm, distance, r1, r2


@pytest.mark.parametrize("uncertainty", [0.0, 0.01, 0.2, 0.5])
def test_a_lens_takes_the_least_favourable_axis_within_reach(uncertainty):
    for v1, v2, away, norm, distance, r1, r2 in random_lenses(1):
        extent = distance * (uncertainty / ROUNDING - 1.0) if uncertainty else -distance
        one, two, norms = (np.array([v]) for v in (v1, v2, norm))
        found = lens_support(one, two, norms, distance, r1, r2, extent)[0]
        most = (lens_most(v1, v2, value, norm, distance, r1, r2) for value in within(away, norm, uncertainty))
        expected = max(most)
        assert found == pytest.approx(expected, abs=4e-3 * norm * r2 if uncertainty else 1e-12)
        assert found >= expected - 1e-12
        assert lens_support(two, one, norms, distance, r2, r1, extent)[0] == found


def test_lenses_that_are_a_ball():
    for distance in (1.0, 0.7):  # inside, or touching from inside: the smaller ball, though the larger reach is less
        assert lens_sup(3.0, 0.0, 1.0, distance, 1.0, 2.0, 0.0) == 4.0
    for distance in (3.0, 3.5):
        assert lens_sup(9.0, 0.0, 1.0, distance, 1.0, 2.0, 0.0) == 10.0
    # Products that cannot be, as rounding makes them: the axis is at most as long as the row.
    assert lens_sup(2.0, 0.0, 1.0, 1.5, 1.0, 2.0, 0.0) == 2.0


@pytest.mark.parametrize("rounding", [0.0, 0.03])
@pytest.mark.parametrize("nested", [False, True])
def test_two_balls_decide_by_themselves_or_together(rounding, nested):
    """Each ball with the slack of its own size, the intersection with that of the larger one."""
    rng = np.random.default_rng(3)
    seen = set()
    for k in range(60):
        r1, r2 = rng.uniform(0.2, 2.0, 2)
        distance = rng.uniform(0.0, abs(r1 - r2)) if nested else rng.uniform(abs(r1 - r2), r1 + r2)
        norms, v1 = rng.uniform(0.1, 2.0, 40), rng.normal(size=40)
        v2 = v1 - distance * norms * rng.uniform(-1.0, 1.0, 40)
        c = v1 + rng.uniform(-1.5, 1.5, 40) * (norms if k % 2 else r1 * norms)
        one, two = rng.uniform(0.5, 3.0, 2)
        both = max(one, two)
        balls = Ball(Point(np.zeros(1), None, 0.0), r1), Ball(Point(np.array([distance]), None, distance**2), r2)
        extents = {id(balls[0]): one, id(balls[1]): two}
        status, other = np.empty((2, 40), dtype=np.int8)
        counts = Lens(*balls).decide((v1, v2), norms, c, lambda ball: extents[id(ball)], rounding, status)  # noqa: B023
        off = axis_uncertainty(both, distance)
        for i in range(40):
            p1, p2, size = v1[i] - c[i], v2[i] - c[i], abs(c[i])
            reach = [r * norms[i] + rounding * (norms[i] * e + size) for r, e in ((r1, one), (r2, two))]
            limit = rounding * (norms[i] * both + size)
            upper = lens_sup(p1, p2, norms[i], distance, r1, r2, off * norms[i])
            lower = -lens_sup(-p1, -p2, norms[i], distance, r1, r2, off * norms[i])
            alone = p1 > reach[0] or p2 > reach[1], p1 < -reach[0] or p2 < -reach[1]
            expected = -1 if alone[0] or (not alone[1] and lower > limit) else 1 if alone[1] or upper < -limit else 0
            assert status[i] == expected, (k, i)
            seen.add((expected, any(alone)))
        assert counts == (np.sum(status == -1), np.sum(status == 1))
        Lens(*balls[::-1]).decide((v2, v1), norms, c, lambda ball: extents[id(ball)], rounding, other)  # noqa: B023
        np.testing.assert_array_equal(other, status)
    assert len(seen) >= (3 if nested else 5)


def test_an_axis_is_as_uncertain_as_its_ends_are_large():
    assert axis_uncertainty(6.0, 2.0) == 4.0 * ROUNDING and axis_uncertainty(0.0, 2.0) == ROUNDING
    assert axis_uncertainty(1.0, 0.0) == math.inf


def test_regions_bound_both_sides():
    V = np.array([[1.0, 2.0], [-3.0, 0.5]])
    norms = np.linalg.norm(V, axis=1)
    m1, m2, a = np.array([3.0, 4.0]), np.array([2.0, 4.5]), np.array([0.6, 0.8])
    one, two = Ball(Point(m1, V @ m1, 25.0), 2.0), Ball(Point(m2, V @ m2, float(m2 @ m2)), 1.5)
    lower, upper = one.bounds((V @ m1,), norms)
    np.testing.assert_allclose(lower, V @ m1 - 2.0 * norms)
    np.testing.assert_allclose(upper, V @ m1 + 2.0 * norms)
    assert one.extent == 7.0 and one.points == (one.center,)
    dome = Dome(one.center, 2.0, Point(a, V @ a, 1.0), 0.5)
    assert dome.extent == 7.0 and dome.points == (dome.center, dome.normal)
    lens = Lens(one, two)
    assert lens.extent == 7.0 and Lens(two, one).extent == 7.0 and lens.points == (one.center, two.center)
    assert lens.distance == pytest.approx(math.hypot(1.0, 0.5))
    for region, products in ((dome, (V @ m1, V @ a)), (lens, (V @ m1, V @ m2))):
        lower, upper = region.bounds(products, norms)
        turned = tuple(-p for p in products)
        np.testing.assert_allclose(-lower, region.bounds(turned, norms)[1], rtol=1e-13)
        turn = np.linspace(0.0, 2.0 * np.pi, 4001)
        points = m1 + 2.0 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
        if region is dome:
            inside = (points - m1) @ a <= 0.5
        else:
            rim = m2 + 1.5 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
            points = np.concatenate([points, rim])
            inside = np.array([np.linalg.norm(points - m, axis=1) <= r + 1e-9 for m, r in ((m1, 2.0), (m2, 1.5))])
            inside = inside.all(axis=0)
        values = points[inside] @ V.T
        np.testing.assert_allclose(upper, values.max(axis=0), atol=1e-2)
        np.testing.assert_allclose(lower, values.min(axis=0), atol=1e-2)


def test_points_of_a_kernel_scale_with_what_they_carry():
    Q = np.array([[2.0, 0.5], [0.5, 1.0]])
    alpha, beta = np.array([3.0, -4.0]), np.array([1.0, 2.0])
    spreads = (float(np.abs(a) @ np.sqrt(np.diag(Q))) for a in (alpha, beta))
    one, two = (KernelPoint(a, Q @ a, float(a @ Q @ a), s, 0.25) for a, s in zip((alpha, beta), spreads, strict=True))
    found = one.scaled(-2.0)
    np.testing.assert_array_equal(found.vector, -2.0 * alpha)
    np.testing.assert_allclose(found.products, -2.0 * Q @ alpha)
    assert found.sqnorm == pytest.approx(4.0 * one.sqnorm) and found.spread == pytest.approx(2.0 * one.spread)
    assert 0.5 < found.error <= 0.5 + 1e-12
    exact, (difference, reach) = (
        [replace(point, error=0.0) for point in (one, two)], (alpha - beta, one.spread + two.spread),
    )  # fmt: skip
    length = math.sqrt(difference @ Q @ difference)
    assert exact[0].distance(exact[1]) == pytest.approx(length) and exact[0].distance(exact[1]) <= length
    assert exact[0].distance(exact[0]) == 0.0
    near = [replace(point, error=e) for point, e in ((one, 0.1), (two, 0.3))]  # the distance is a lower bound
    assert near[0].distance(near[1]) == pytest.approx(math.sqrt(max(length**2 - 0.4 * reach, 0.0)))
    three, four = (KernelPoint(a, k * alpha, 0.0, 1.0, 0.0) for a, k in ((alpha, 1.0), (beta, 2.0)))
    assert three.distance(four) == 0.0  # its square is below 0, as rounding can make it
    point = Point(alpha, beta, 25.0).scaled(-2.0)
    assert point.vector.tolist() == [-6.0, 8.0] and point.products.tolist() == [-2.0, -4.0] and point.sqnorm == 100.0
    assert Point(alpha, None, 25.0).scaled(2.0).products is None
    assert Point(alpha, None, 25.0).distance(Point(beta, None, 5.0)) == pytest.approx(math.hypot(2.0, 6.0))


@pytest.fixture
def coarse(monkeypatch):
    """Make units of rounding so large that every term counts."""
    for name, value in (("UNIT", 0.004), ("OUTWARD", 1.25), ("gamma", lambda depth: 1e-3 * depth)):
        monkeypatch.setattr(geometry, name, value)


@pytest.mark.parametrize("factor", [-3.0, 0.7])
def test_a_scaled_point_of_a_kernel_is_rounded_once_more(factor, coarse):
    found = KernelPoint(np.ones(2), np.ones(2), 2.0, 5.0, 0.3).scaled(factor)
    spread = abs(factor) * 5.0 * 1.25
    assert found.spread == pytest.approx(spread)
    assert found.error == pytest.approx((abs(factor) * 0.3 + 4.0 * 0.004 * spread) * 1.25)


def test_a_distance_of_points_of_a_kernel_loses_what_rounding_may_have_added(coarse):
    one = KernelPoint(np.array([9.0, 4.0, -5.0]), np.array([7.0, -3.0, 2.0]), 0.0, 0.5, 0.3)
    two = KernelPoint(np.array([-2.0, 5.0, 1.0]), np.array([-1.0, -5.0, 6.0]), 0.0, 0.7, 0.1)
    terms = 88.0, -2.0, 24.0
    lost = 1e-3 * (3 + 8) * sum(map(abs, terms)) + 1.2 * (0.3 + 0.1 + 8.0 * 0.004 * 1.2)
    assert one.distance(two) == pytest.approx(math.sqrt(sum(terms) - lost * 1.25), rel=1e-12)
    assert two.distance(one) == one.distance(two)
    terms, error = (-9.0, -20.0, -30.0), 0.5 * 0.1 + 1e-3 * (3 + 8) * 59.0
    assert one.inner(two) == (sum(terms), pytest.approx(error * 1.25))


def test_a_point_between_two_carries_shares_of_what_both_do(coarse):
    vectors = [np.array(v) for v in ([9.0, 4.0], [7.0, -3.0], [-2.0, 5.0], [-1.0, -5.0])]
    found = between(KernelPoint(*vectors[:2], 4.0, 0.5, 0.3), KernelPoint(*vectors[2:], 9.0, 0.7, 0.1), 0.3)
    plain = between(Point(*vectors[:2], 4.0), Point(*vectors[2:], 9.0), 0.3)
    for point in (found, plain):
        np.testing.assert_allclose(point.vector, 0.3 * vectors[0] + 0.7 * vectors[2])
        np.testing.assert_allclose(point.products, 0.3 * vectors[1] + 0.7 * vectors[3])
        assert point.sqnorm == pytest.approx((0.3 * 2.0 + 0.7 * 3.0) ** 2)  # at most, as of two that point one way
    spread = (0.3 * 0.5 + 0.7 * 0.7) * 1.25
    error = (0.3 * 0.3 + 0.7 * 0.1 + 4.0 * 0.004 * spread) * 1.25
    assert type(plain) is Point and (found.spread, found.error) == pytest.approx((spread, error))
