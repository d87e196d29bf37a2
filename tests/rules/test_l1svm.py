"""The dome in the slice y.theta = 0: against a cone solver and against the three cases of Zhao 2014."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from screenpath.api_l1 import l1_svm_model, lambda_grid
from screenpath.errors import UsageError
from screenpath.geometry import ROUNDING, Ball, Dome
from screenpath.kernels import l1svm as kernels
from screenpath.path import PathOptions, solve_point
from screenpath.rules.l1svm import VariationalInequality, parse_feature_rule
from screenpath.solvers.l1cd import FeatureDescent
from tests.conftest import two_classes


def reference_at(model, lam, tol=1e-13):
    screening = parse_feature_rule("none")
    options = PathOptions(tol=tol, max_epochs=2000)
    return solve_point(model, lam, 0, model.start(lam), screening, FeatureDescent(), options)[1]


def exact(certificate):
    return replace(certificate, dual=certificate.primal, error=0.0)


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
    region = VariationalInequality().region(model, certificate, lam2)
    assert isinstance(region, Dome)
    found = largest(region, tuple(p.products for p in region.points), model.spreads)
    # The same region written in the original space, with the hyperplane as a constraint.
    theta1, gap = certificate.theta, (certificate.gap + certificate.error) / lam1**2
    theta = cp.Variable(y.size)
    center, radius = 0.5 * (1 / lam2 + theta1), 0.5 * np.linalg.norm(1 / lam2 - theta1)
    slack = gap + np.sqrt(2 * gap) * 2 * region.radius
    inside = [
        cp.norm(theta - center) <= radius,
        (1 / lam1 - theta1) @ (theta - theta1) <= slack,
        y @ theta == 0,
    ]
    for j in range(0, 40, 5):
        best = []
        for sign in (1, -1):
            conic = cp.Problem(cp.Maximize(sign * F[:, j] @ theta), inside)
            conic.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
            best.append(conic.value)
        assert found[j] == pytest.approx(max(best), rel=1e-6)


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
        region = VariationalInequality().region(model, certificate, lam2)
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
    region = VariationalInequality().region(model, model.start(model.lam_max), model.lam_max / 2)
    assert isinstance(region, Ball)
    kept = model.screen(region).index
    assert kept.size < model.size
    assert np.all(np.isin(np.flatnonzero(reference_at(model, model.lam_max / 2).w), kept))


def test_one_traversal_decides_as_the_bounds_do():
    _, _, model = problem(5)
    values = lambda_grid(model, 6)
    for before, lam in zip(values[1:-1], values[2:], strict=True):
        region = VariationalInequality().region(model, reference_at(model, before, 1e-5), lam)
        products = tuple(point.products for point in region.points)
        for offset in (region.offset, 0.3 * region.radius, -0.5 * region.radius, 2 * region.radius, -2 * region.radius):
            dome = replace(region, offset=offset)
            slack = ROUNDING * (1 + model.rows.norms * dome.extent)
            expected = np.flatnonzero(largest(dome, products, model.spreads) >= 1 - slack)
            found = kernels.dome_keep(
                *products, model.spreads, model.rows.norms, dome.radius, dome.offset, dome.extent, ROUNDING
            )
            np.testing.assert_array_equal(found, expected)


def test_unknown_rules_are_named():
    for text in ("dvi", "vi+none", "gap+gap", ""):
        with pytest.raises(UsageError, match="l1svm"):
            parse_feature_rule(text)
    assert parse_feature_rule("GAP + vi").dynamic
