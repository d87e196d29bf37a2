"""The regions' bounds against a cone solver and against sampled points, and their degenerate cases."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.kernels.screen.dome import dome_bounds
from screenpath.regions.geometry import ROUNDING, Ball, Dome, Lens, Point, lens_support

SEEDS = st.integers(0, 2**32 - 1)


def point(V, vector):
    return Point(vector, V @ vector, float(vector @ vector))


def random_dome(rng, d, offset=None):
    a = rng.normal(size=d)
    radius = rng.uniform(0.1, 3.0)
    share = rng.uniform(-1.0, 1.2) if offset is None else offset
    return rng.normal(size=d), radius, a / np.linalg.norm(a), share * radius


def random_lens(rng, d):
    """Return two balls that meet: crossing, or one inside the other."""
    r1, r2 = rng.uniform(0.2, 2.0, 2)
    direction = rng.normal(size=d)
    distance = rng.uniform(0.0, 0.999) * (r1 + r2)
    m1 = rng.normal(size=d)
    return m1, r1, m1 + distance * direction / np.linalg.norm(direction), r2


def bounds(region, V):
    return region.bounds(tuple(p.products for p in region.points), np.linalg.norm(V, axis=1))


def cone_maximum(v, d, constraints):
    x = cp.Variable(d)
    problem = cp.Problem(cp.Maximize(v @ x), constraints(x))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("kind", ["dome", "lens"])
@pytest.mark.parametrize("seed", range(8))
def test_domes_and_lenses_equal_the_cone_solver(kind, seed):
    rng = np.random.default_rng(seed + 100 * (kind == "lens"))
    d = int(rng.integers(2, 6))
    m, r, a, s = (random_dome if kind == "dome" else random_lens)(rng, d)  # of a lens the second ball
    V = rng.normal(size=(4, d))
    if kind == "dome":
        region, inside = Dome(point(V, m), r, point(V, a), s), lambda x: [cp.norm(x - m) <= r, a @ (x - m) <= s]
    else:
        region = Lens(Ball(point(V, m), r), Ball(point(V, a), s))
        inside = lambda x: [cp.norm(x - m) <= r, cp.norm(x - a) <= s]  # noqa: E731
    lower, upper = bounds(region, V)
    for i, v in enumerate(V):
        assert upper[i] == pytest.approx(cone_maximum(v, d, inside), abs=1e-6)
        assert lower[i] == pytest.approx(-cone_maximum(-v, d, inside), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, d=st.integers(1, 5))
def test_no_point_of_a_region_lies_outside_its_bounds(seed, d):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(6, d)) * 10.0 ** rng.uniform(-3, 3, (6, 1))
    c, r, a, offset = random_dome(rng, d)
    m1, r1, m2, r2 = random_lens(rng, d)
    slack = 1e-12 * (1.0 + np.linalg.norm(V, axis=1)) * 10
    cloud = rng.normal(size=(4000, d))
    cloud *= rng.uniform(0.0, 1.0, (4000, 1)) ** (1.0 / d) / np.linalg.norm(cloud, axis=1, keepdims=True)
    in_dome = c + r * cloud
    in_dome = in_dome[(in_dome - c) @ a <= offset]
    in_lens = m1 + r1 * cloud
    in_lens = in_lens[np.linalg.norm(in_lens - m2, axis=1) <= r2]
    dome = Dome(point(V, c), r, point(V, a), offset)
    lens = Lens(Ball(point(V, m1), r1), Ball(point(V, m2), r2))
    for region, points in ((Ball(point(V, c), r), c + r * cloud), (dome, in_dome), (lens, in_lens)):
        lower, upper = bounds(region, V)
        products = V @ points.T
        assert np.all(products >= (lower - slack)[:, None]) and np.all(products <= (upper + slack)[:, None])


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, d=st.integers(1, 6))
def test_intersections_are_never_wider_than_their_parts(seed, d):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(8, d))
    c, r, a, offset = random_dome(rng, d)
    m1, r1, m2, r2 = random_lens(rng, d)
    one, two = Ball(point(V, m1), r1), Ball(point(V, m2), r2)
    lower, upper = bounds(Lens(one, two), V)
    for ball in (one, two):
        assert np.all(lower >= bounds(ball, V)[0]) and np.all(upper <= bounds(ball, V)[1])
    lower, upper = bounds(Dome(point(V, c), r, point(V, a), offset), V)
    assert np.all(lower >= bounds(Ball(point(V, c), r), V)[0]) and np.all(upper <= bounds(Ball(point(V, c), r), V)[1])


def largest_in_dome(*given):
    return dome_bounds(*given)[1]


def test_dome_degenerates():
    V = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [-3.0, 4.0]])
    norms = np.linalg.norm(V, axis=1)
    c, a = np.array([0.5, -1.0]), np.array([1.0, 0.0])
    vc, va, off = V @ c, V @ a, ROUNDING * norms
    for offset in (2.0, 2.5, np.inf):  # the half-space holds the ball
        np.testing.assert_array_equal(largest_in_dome(vc, va, norms, 2.0, offset, off), vc + 2.0 * norms)
    for offset in (-2.0, -2.0 - 1e-9, -7.0):  # one point is left, or nothing but for rounding
        np.testing.assert_allclose(largest_in_dome(vc, va, norms, 2.0, offset, off), V @ (c - 2.0 * a), atol=1e-12)
    np.testing.assert_allclose(largest_in_dome(vc, va, norms, 0.0, 0.0, off), vc, atol=1e-15)  # a ball of radius 0
    assert largest_in_dome(vc, va, norms, 1.0, 0.3, off)[2] == 0.0  # v = 0


def test_lens_degenerates():
    V = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [-3.0, 4.0]])
    norms = np.linalg.norm(V, axis=1)
    m1, m2 = np.array([0.5, -1.0]), np.array([0.5, 1.0])
    v1, v2 = V @ m1, V @ m2

    def largest(second, distance, r1, r2):
        return lens_support(v1, second, norms, distance, r1, r2, 3.0)

    np.testing.assert_array_equal(largest(v1, 0.0, 1.0, 1.5), v1 + norms)  # the same centre
    np.testing.assert_array_equal(largest(v1, 0.0, 1.0, 1.0), v1 + norms)  # the same ball
    np.testing.assert_array_equal(largest(v2, 2.0, 0.5, 9.0), v1 + 0.5 * norms)  # the first inside the second
    np.testing.assert_array_equal(largest(v2, 2.0, 9.0, 0.5), v2 + 0.5 * norms)
    np.testing.assert_array_equal(largest(v2, 2.0, 3.0, 1.0), v2 + norms)  # inside and tangent
    np.testing.assert_array_equal(largest(v2, 2.0, 0.9, 1.0), v1 + 0.9 * norms)  # apart: rounding; the smaller answers
    thin = largest(v2, 2.0, 1.0 + 1e-9, 1.0 + 1e-9)  # almost tangent from outside: almost the point between
    np.testing.assert_allclose(thin, V @ ((m1 + m2) / 2), atol=2e-4)
    np.testing.assert_array_equal(largest(v2, 2.0, 0.0, 9.0), v1)  # a ball of radius 0
    assert largest(v2, 2.0, 1.5, 1.5)[2] == 0.0  # v = 0


def test_a_tiny_ball_cut_by_a_huge_one_keeps_its_digits():
    # In one dimension along v the lens is the interval [1 - 1e-6, 1 + cut], with 1e-14 of rounding.
    V, norms = np.array([[1.0], [-1.0]]), np.ones(2)
    for cut in (-0.9e-6, 0.0, 0.9e-6):
        upper = lens_support(V @ [1.0], V @ [-200.0], norms, 201.0, 1e-6, 201.0 + cut, 401.0)
        np.testing.assert_allclose(upper, [1.0 + cut, -1.0 + 1e-6], rtol=0, atol=1e-9)


def test_the_rounding_of_a_parallel_vector_does_not_cut_the_dome_short():
    # v almost along a: sqrt(|v|^2 - (v.a)^2) has no correct digit in floating point.
    tilt = 3e-9
    v, a = np.array([[1.0, tilt]]), np.array([1.0, 0.0])
    upper = largest_in_dome(np.zeros(1), v @ a, np.array([1.0]), 1.0, 0.0, np.array([ROUNDING]))
    assert upper[0] >= tilt
