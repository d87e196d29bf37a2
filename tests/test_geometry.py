"""Support functions against a cone solver and brute force, and all degenerate shapes."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.geometry import Ball, Dome, Lens, Point, condition, dome_support, lens_support


def point(x):
    return Point(np.asarray(x, dtype=float), None, float(np.dot(x, x)))


def bounds(region, V):
    products = tuple(V @ p.vector for p in region.points)
    return region.bounds(products, np.linalg.norm(V, axis=1))


def cone_bounds(V, constraints, x):
    lower, upper = [], []
    for v in V:
        for values, goal in ((lower, cp.Minimize), (upper, cp.Maximize)):
            problem = cp.Problem(goal(v @ x), constraints)
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
            values.append(problem.value)
    return np.array(lower), np.array(upper)


@pytest.mark.parametrize("seed", range(6))
def test_dome_and_lens_against_a_cone_solver(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    V = rng.normal(size=(6, d))
    c1, c2, r1 = rng.normal(size=d), rng.normal(size=d), rng.uniform(0.5, 2.0)
    a = rng.normal(size=d)
    a /= np.linalg.norm(a)
    offset = rng.uniform(-0.9, 0.9) * r1
    x = cp.Variable(d)
    dome = Dome(point(c1), r1, point(a), offset)
    expected = cone_bounds(V, [cp.norm(x - c1) <= r1, a @ (x - c1) <= offset], x)
    np.testing.assert_allclose(bounds(dome, V), expected, atol=1e-6)
    r2 = max(np.linalg.norm(c1 - c2) - r1, 0.0) + rng.uniform(0.1, 1.5) * r1
    lens = Lens(Ball(point(c1), r1), Ball(point(c2), r2))
    expected = cone_bounds(V, [cp.norm(x - c1) <= r1, cp.norm(x - c2) <= r2], x)
    np.testing.assert_allclose(bounds(lens, V), expected, atol=1e-6)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**31), d=st.integers(1, 5), share=st.floats(-1.0, 1.5))
def test_no_point_of_the_region_lies_outside_the_bounds(seed, d, share):
    rng = np.random.default_rng(seed)
    c1, c2, a = rng.normal(size=(3, d))
    a /= np.linalg.norm(a)
    r1, r2 = rng.uniform(0.0, 2.0, size=2)
    X = c1 + r1 * (z := rng.normal(size=(400, d))) / np.linalg.norm(z, axis=1)[:, None] * rng.random((400, 1))
    V = np.vstack([rng.normal(size=(5, d)), np.zeros((1, d)), a, -a])
    products = V @ X.T
    for region, inside in (
        (Ball(point(c1), r1), np.ones(400, bool)),
        (Dome(point(c1), r1, point(a), share * r1), (X - c1) @ a <= share * r1),
        (Lens(Ball(point(c1), r1), Ball(point(c2), r2)), np.linalg.norm(X - c2, axis=1) <= r2),
    ):
        if not inside.any():
            continue
        lower, upper = bounds(region, V)
        assert np.all(products[:, inside].max(axis=1) <= upper + 1e-9)
        assert np.all(products[:, inside].min(axis=1) >= lower - 1e-9)
        assert np.all(np.linalg.norm(X[inside], axis=1) <= region.extent + 1e-9)


def test_degenerate_domes():
    V = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [0.0, 0.0]])
    norms = np.linalg.norm(V, axis=1)
    c, a = np.array([0.3, -0.2]), np.array([1.0, 0.0])
    ball = V @ c + 2.0 * norms
    np.testing.assert_allclose(dome_support(V @ c, V @ a, norms, 2.0, 2.0), ball)  # the plane touches the ball
    np.testing.assert_allclose(dome_support(V @ c, V @ a, norms, 2.0, 9.0), ball)  # and far outside
    point_only = V @ (c - 2.0 * a)
    np.testing.assert_allclose(dome_support(V @ c, V @ a, norms, 2.0, -2.0), point_only, atol=1e-12)
    np.testing.assert_allclose(
        dome_support(V @ c, V @ a, norms, 2.0, -3.0), point_only, atol=1e-12
    )  # empty by rounding
    np.testing.assert_allclose(dome_support(V @ c, V @ a, norms, 0.0, 0.0), V @ c)


def test_degenerate_lenses():
    V = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [0.0, 0.0]])
    norms = np.linalg.norm(V, axis=1)
    m1, m2 = np.array([0.0, 0.0]), np.array([1.0, 0.0])

    def support(r1, r2, m2=m2):
        return lens_support(V @ m1, V @ m2, norms, float(np.linalg.norm(m1 - m2)), r1, r2)

    np.testing.assert_allclose(support(0.2, 3.0), V @ m1 + 0.2 * norms)  # the first lies in the second
    np.testing.assert_allclose(support(3.0, 0.2), V @ m2 + 0.2 * norms)  # and the other way round
    np.testing.assert_allclose(support(1.0, 1.0, m1), V @ m1 + norms)  # the same ball twice
    tangent = V @ [0.5, 0.0]
    assert np.all(support(0.5, 0.5) >= tangent) and np.all(support(0.5, 0.5) <= V @ m1 + 0.5 * norms)
    np.testing.assert_allclose(support(0.4, 0.5), V @ m1 + 0.4 * norms)  # apart by rounding: the smaller ball
    np.testing.assert_allclose(support(0.0, 2.0), V @ m1)


def test_condition_is_the_slice_of_the_ball():
    center, radius = condition(np.array([1.0, 2.0, 3.0]), 2.0, np.array([False, True, True]), np.array([2.0, 4.0]))
    np.testing.assert_allclose(center, [1.0, 2.0, 4.0])
    assert radius == pytest.approx(np.sqrt(3.0))
    assert condition(np.array([1.0, 5.0]), 1.0, np.array([True, False]), 9.0)[1] == 0.0  # empty by rounding
    rng = np.random.default_rng(0)
    c, known = rng.normal(size=5), np.array([True, False, True, False, False])
    for _ in range(200):
        x = c + (z := rng.normal(size=5)) / np.linalg.norm(z) * rng.random()
        tight, r = condition(c, 1.0, known, x[known])
        assert np.linalg.norm(x - tight) <= r + 1e-12
