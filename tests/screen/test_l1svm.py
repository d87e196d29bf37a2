"""The dome in the slice y.theta = 0: against a cone solver and against the three cases of Zhao 2014."""

from dataclasses import replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

from screenpath.errors import UsageError
from screenpath.kernels.screen.dome import dome_bounds
from screenpath.problem.grid import lambda_grid
from screenpath.regions.geometry import Ball, Dome
from screenpath.screen.l1svm import DIRECTION, VariationalInequality, parse_feature_rule
from screenpath.solve.l1cd import FeatureDescent
from screenpath.walk.loop import PathOptions, solve_point
from tests.conftest import two_classes
from tests.l1_problems import l1_svm_model


def dome(model, reference, lam):
    return VariationalInequality().region(model, reference, lam)


def kept_by(model, reference, lam):
    return model.screen(dome(model, reference, lam), model.slack_of(reference)).index


def reference_at(model, lam, tol=1e-13):
    screening = parse_feature_rule("none")
    options = PathOptions(tol=tol, max_epochs=2000)
    return solve_point(model, lam, 0, model.start(lam), screening, FeatureDescent(), options)[1]


def exact(certificate):
    return replace(certificate, theta_gap=0.0)


def largest(region, products, norms):
    lower, upper = region.bounds(products, norms)
    return np.maximum(upper, -lower)


def problem(seed=0, d=40):
    X, y = two_classes(n=24, d=d, seed=seed)
    y[:5] = 1.0
    model, _ = l1_svm_model(X, y)
    return X, y, model


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_dome_against_a_cone_solver(noise):
    X, y, model = problem()
    F = y[:, None] * X
    lam1, lam2 = model.lam_max / 3, model.lam_max / 4
    w = reference_at(model, lam1).w
    certificate = model.certify(lam1, w + noise * np.random.default_rng(1).normal(size=w.size) * (w != 0))
    region = dome(model, certificate, lam2)
    assert isinstance(region, Dome)
    found = largest(region, tuple(p.products for p in region.points), model.spreads)
    # The same region written in the original space, with the hyperplane as a constraint.
    theta1, gap = certificate.theta, certificate.theta_gap / lam1**2
    theta = cp.Variable(y.size)
    center, radius = 0.5 * (1 / lam2 + theta1), 0.5 * np.linalg.norm(1 / lam2 - theta1)
    slack = gap + np.sqrt(2 * gap) * 2 * region.radius
    inside = [
        cp.norm(theta - center) <= radius, (1 / lam1 - theta1) @ (theta - theta1) <= slack, y @ theta == 0,
    ]  # fmt: skip
    for j in range(0, 40, 5):
        best = []
        for sign in (1, -1):
            conic = cp.Problem(cp.Maximize(sign * F[:, j] @ theta), inside)
            conic.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
            best.append(conic.value)
        assert found[j] == pytest.approx(max(best), rel=1e-6)


def test_what_rounding_adds_to_the_dome():
    """In the paper's space, with products that are off by a thirtieth of both norms."""
    rng, lam1, lam2, gap, rounding, total = np.random.default_rng(2), 1.7, 1.1, 0.3, 0.03, 8.0
    u, theta, *known = rng.normal(size=(4, 5))
    reference = SimpleNamespace(lam=lam1, theta=theta, products=known[0], theta_gap=gap)
    model = SimpleNamespace(slack_of=lambda _: rounding, null_slack=u, null_products=known[1], total=total)
    found, center, normal = dome(model, reference, lam2), 0.5 * (u / lam2 + theta), u / lam1 - theta
    radius, length = 0.5 * np.linalg.norm(u / lam2 - theta), np.linalg.norm(normal)
    axis = rounding * (1.0 + np.sqrt(total) / (lam1 * length))
    offset = (gap / lam1**2 + np.sqrt(2.0 * gap) / lam1 * 2.0 * radius - normal @ (center - theta)) / length
    offset += 2.0 * (axis * radius + rounding * np.linalg.norm(center))
    assert (found.radius, found.offset, found.axis) == pytest.approx((radius, offset, axis))
    for point, vector, products in (
        (found.center, center, 0.5 * (known[1] / lam2 + known[0])),
        (found.normal, normal / length, (known[1] / lam1 - known[0]) / length),
    ):
        np.testing.assert_allclose(point.vector, vector)
        np.testing.assert_allclose(point.products, products)
        assert point.sqnorm == pytest.approx(vector @ vector)
    for scale, kind in ((1.1, Dome), (0.9, Ball)):  # a normal that may be nothing but rounding
        reference.theta, model.total = u / lam1 + 1.0, 5.0 * (lam1 / (scale * DIRECTION)) ** 2
        found = dome(model, reference, lam2)
        assert type(found) is kind and found.radius == pytest.approx(0.5 * np.linalg.norm(u / lam2 - reference.theta))


def paper_neg_min(f, y, theta1, lam1, lam2):
    """Return ``-min theta.f`` and the case, by Algorithm 1 and eqs. 31, 40, 44 of the paper."""

    def off(u, v):  # P_u(v)
        return v - (v @ u) / (u @ u) * u

    norm, one = np.linalg.norm, np.ones(y.size)
    a, b = 1 / lam1 - theta1, 0.5 * (1 / lam2 - theta1)
    a = a / norm(a)
    ya, yb, yf = off(y, a), off(y, b), off(y, f)
    if ya @ yf <= -norm(ya) * norm(yf) * (1 - 1e-12):
        return norm(yf) / norm(ya) * (a @ theta1), 1
    if ya @ (yb / norm(yb) - yf / norm(yf)) <= 0:
        return norm(yb) * norm(yf) - yb @ yf - theta1 @ f, 2
    ay = off(a, y)
    p, q = off(ay, off(a, one)), off(ay, off(a, f))
    return 0.5 * (1 / lam2 - 1 / lam1) * (norm(p) * norm(q) - p @ off(a, f)) - theta1 @ f, 3


def test_one_formula_equals_the_three_cases_of_the_paper():
    seen = set()
    for seed in range(4):
        X, y, model = problem(seed, d=60)
        lam1, lam2 = model.lam_max / (2 + seed), model.lam_max / (3 + 3 * seed)
        certificate = exact(reference_at(model, lam1))
        # The first case needs a feature opposite to the half-space's normal; such a one is made up.
        made = -(1 / lam1 - certificate.theta)
        F = np.hstack([y[:, None] * X, made[:, None], -made[:, None]])
        region = dome(model, certificate, lam2)
        centred = F - np.outer(y, y @ F) / y.size
        products = tuple(centred.T @ point.vector for point in region.points)
        np.testing.assert_allclose(products[0][:-2], region.center.products, atol=1e-12)
        np.testing.assert_allclose(products[1][:-2], region.normal.products, atol=1e-10)
        found = largest(region, products, np.linalg.norm(centred, axis=0))
        for j in range(F.shape[1]):
            sides = [paper_neg_min(sign * F[:, j], y, certificate.theta, lam1, lam2) for sign in (1, -1)]
            seen.update(case for _, case in sides)
            # Parallel to the half-space's normal, a rounding of 1e-12 counts by its square root.
            slack = 2e-6 * region.radius * np.linalg.norm(centred[:, j])
            assert found[j] == pytest.approx(max(value for value, _ in sides), rel=1e-8, abs=slack)
    assert seen == {1, 2, 3}


def test_ball_at_lambda_max_where_the_normal_vanishes():
    _, _, model = problem()
    region = dome(model, model.start(model.lam_max), model.lam_max / 2)
    assert isinstance(region, Ball)
    kept = model.screen(region).index
    assert kept.size < model.size
    assert np.all(np.isin(np.flatnonzero(reference_at(model, model.lam_max / 2).w), kept))


def test_the_rule_decides_what_the_vectors_of_its_dome_say():
    """Written down with vectors in the paper's space, without regard to rounding."""
    sizes = set()
    for seed in range(3, 6):
        X, y, _ = problem(seed)
        X = np.hstack([X, np.full((y.size, 1), 3.0)])  # with a constant column
        model, _ = l1_svm_model(X, y)
        u = 1.0 - model.null_bias * y
        centred = y[:, None] * (X - X.mean(axis=0))
        norms = np.linalg.norm(centred, axis=0)
        values = lambda_grid(model, 6)
        for tol in (1e-1, 1e-3, 1e-5, 1e-12):
            for before, lam in zip(values[:-1], values[1:], strict=True):
                reference = reference_at(model, before, tol)
                theta, gap = reference.theta, reference.theta_gap / before**2
                middle, a = 0.5 * (u / lam + theta), u / before - theta
                radius = np.linalg.norm(u / lam - theta) / 2
                offset = radius
                if np.linalg.norm(a) > 1e-9 * np.linalg.norm(u / before):
                    offset = (gap + np.sqrt(2 * gap) * 2 * radius - a @ (middle - theta)) / np.linalg.norm(a)
                    a /= np.linalg.norm(a)
                lower, upper = dome_bounds(centred.T @ middle, centred.T @ a, norms, radius, offset, 0.0 * norms)
                most = np.where(norms > 1e-9, np.maximum(upper, -lower), 0.0)
                kept = np.isin(np.arange(model.size), kept_by(model, reference, lam))
                np.testing.assert_array_equal(kept, most >= 1.0, err_msg=str(most[kept != (most >= 1.0)]))
                sizes.add(int(kept.sum()))
    assert len(sizes) > 10  # many regions, not always the same few features


def test_what_is_no_number_decides_nothing():
    _, _, model = problem()
    reference = reference_at(model, model.lam_max / 3)
    reference.products[1] = np.nan
    assert 1 in kept_by(model, reference, model.lam_max / 4)


def test_the_half_space_of_a_reference_close_to_lambda_max():
    X, y, model = problem(7)
    for distance in (1e-3, 1e-6, 1e-9, 1e-12):
        reference = reference_at(model, model.lam_max * (1 - distance), 1e-14)
        lam = 0.9 * model.lam_max
        kept = kept_by(model, reference, lam)
        assert kept.size < model.size
        assert np.isin(np.flatnonzero(reference_at(model, lam).w), kept).all()


def test_unknown_rules_are_named():
    for text in ("dvi", "vi+none", "gap+gap", ""):
        with pytest.raises(UsageError, match="l1svm"):
            parse_feature_rule(text)
    assert parse_feature_rule("GAP + vi").dynamic
