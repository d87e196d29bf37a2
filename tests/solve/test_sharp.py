"""The exact hinge of a sparse SVM: certified points against a cone solver, rules against none, what is refused."""

import cvxpy as cp
import numpy as np
import pytest

from screenpath.errors import UsageError
from screenpath.problem.sparse import SHARP, SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.rows.views import Views
from screenpath.screen.sparse import contradicted, parse_sparse_rule, screen
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.plain import sparse_svm_path
from tests.sparse_problems import ACC_SDCA, dual_rows, problem

RULES = ("none", "gap", "sifs", "sifs+gap", "iss")


def path(model, grid, rule="sifs+gap", tol=1e-7, **how):
    return list(
        walk(model, grid, parse_sparse_rule(rule), make_sparse_solver("auto"), PathOptions(tol=tol, **how))
    )  # fmt: skip


def values(rows, n, s, w, theta, alpha, beta):
    """Return the objectives of primal and dual with the exact hinge, from their definitions."""
    u = rows.T @ (s * theta) / n
    shrunk = np.sign(u) * np.maximum(np.abs(u) - beta, 0.0)
    primal = s @ np.maximum(1.0 - rows @ w, 0.0) / n + 0.5 * alpha * w @ w + beta * np.abs(w).sum()
    return primal, s @ theta / n - 0.5 / alpha * shrunk @ shrunk


@pytest.mark.parametrize(("classes", "weighted"), [(2, False), (2, True), (3, False), (4, True)])
def test_every_point_is_certified_with_the_exact_hinge_and_agrees_with_a_cone_solver(classes, weighted):
    n, rng = 60, np.random.default_rng(classes)
    weights = rng.uniform(0.1, 3.0, n) if weighted else None
    X, y, base = problem(classes, n=n, d=15, seed=classes, gamma=0.0, weights=weights)
    rows, places = dual_rows(X, y, classes)
    s = (np.ones(n) if weights is None else weights / weights.mean())[places % n]
    w = cp.Variable(rows.shape[1])
    loss = s @ cp.pos(1.0 - rows @ w) / n
    for share in (0.4, 0.05):
        model = base.at(share * base.beta_max)
        grid = model.alpha_max() * np.geomspace(1.0, 0.003, 8)
        for step, found in path(model, grid):
            alpha = step.parameters["alpha"]
            assert step.status == "certified" and step.gap <= 1e-7 * step.primal
            primal, dual = values(rows, n, s, found.w, found.theta[places], alpha, model.beta)
            assert step.primal == pytest.approx(primal, rel=1e-12) and primal - dual <= 1.01e-7 * primal
            assert np.all((found.theta >= 0.0) & (found.theta <= 1.0))
        objective = loss + alpha / 2 * cp.sum_squares(w) + model.beta * cp.norm1(w)
        value = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
        assert step.primal == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(found.w, w.value, atol=2e-3)


def test_rules_agree_and_decide():
    X, y, base = problem(n=120, d=80, seed=3, gamma=0.0)
    model = base.at(0.1 * base.beta_max)
    grid = model.alpha_max() * np.geomspace(1.0, 0.01, 12)
    audit = Audit(make_sparse_solver("auto"), PathOptions(tol=1e-9), contradicted)
    primal = {rule: [step.primal for step, _ in path(model, grid, rule)] for rule in RULES}
    for rule in RULES[1:]:
        np.testing.assert_allclose(primal[rule], primal["none"], rtol=2e-7)
    steps = [step for step, _ in path(model, grid, "sifs", audit=audit)]
    assert sum(step.extras["unsafe"] for step in steps) == 0
    assert np.mean([step.rejection_ratio for step in steps[1:]]) > 0.1
    assert sum(step.n_features_screened for step in steps[1:]) > 0  # by a move: the dual has no ball
    assert {step.solver for step in steps[1:]} == {"newton+continuation"}


@pytest.mark.parametrize("classes", [2, 3])
def test_samples_are_decided_safely_for_references_of_any_accuracy(classes):
    rng = np.random.default_rng(classes)
    X, y, base = problem(classes, n=80, d=20, seed=8, gamma=0.0)
    model = base.at(0.1 * base.beta_max)
    start, decided = 0.3 * model.alpha_max(), 0
    exact = path(model, [start], "none", 1e-11)[0][1]
    for ratio in (1.0, 0.97, 0.8, 1.2):
        best = path(model, [ratio * start], "none", 1e-11)[0][1]
        for noise in (0.0, 1e-3, 0.1):
            theta = np.clip(exact.theta + noise * rng.normal(size=exact.theta.size), 0.0, 1.0) * (model.free == 0)
            reference = model.certify(start, exact.w * (1.0 + noise * rng.normal(size=exact.w.size)), theta)
            at = screen(model, reference, ratio * start, True, True, True)
            real = model.free == 0
            assert np.all(best.theta[real & (at.duals < 0)] < 1e-4)
            assert np.all(best.theta[real & (at.duals > 0)] > 1.0 - 1e-4)
            decided += np.count_nonzero(at.duals[real])
    assert decided > 100


def test_a_smoothed_optimum_has_the_gap_of_its_quadratic_zone():
    """And so a certificate with the exact hinge does not mistake it for an optimum."""
    _, _, base = problem(n=60, d=10, seed=1, gamma=0.0)
    model = base.at(0.1 * base.beta_max)
    alpha, gamma = 0.05 * model.alpha_max(), 0.3
    smooth = model.smoothed(gamma)
    found = path(smooth, [alpha], "none", 1e-12)[0][1]
    exact = model.certify(alpha, found.w, found.theta)
    zone = gamma / model.n * found.theta @ (1.0 - found.theta)
    assert zone > 1e-3 and exact.gap == pytest.approx(zone, rel=1e-6)
    assert model.sharp and model.gamma == SHARP and not smooth.sharp and model.rounding.smoothing == SHARP


@pytest.mark.parametrize("kind", [SparseModel, FreeSparseModel])
def test_rows_many_times_over_are_no_obstacle(kind):
    """All are at the kink: the smoothed gap falls with the width alone, the line through two widths is exact."""
    X, y, _ = problem(n=12, d=4, seed=2, dense=True)
    X, labels = np.repeat(X, 40, axis=0), np.repeat(2 * y - 1, 40).astype(np.int64)
    base = kind(Views(X), labels, 1, 0.0, 0.0)
    model = base.at(0.05 * base.beta_max)
    points = path(model, model.alpha_max() * np.geomspace(0.5, 0.01, 6))
    assert all(step.status == "certified" and step.epochs < 60 for step, _ in points)
    found = points[-1][1]
    assert np.count_nonzero((found.theta > 0.0) & (found.theta < 1.0)) >= 40


def test_a_budget_that_is_used_up_is_said():
    _, _, base = problem(n=60, d=10, seed=1, gamma=0.0)
    model = base.at(0.1 * base.beta_max)
    step, found = path(model, [0.01 * model.alpha_max()], max_epochs=1)[0]
    assert step.status == "budget" and step.epochs == 1 and found.gap > 1e-7 * found.primal
    reduced = model.reduce(0.1, model.nothing_screened(), model.start(0.1))
    late = make_sparse_solver("auto").solve(reduced, tol=1e-9, budget=Budget(100, -np.inf), dynamic=False)
    assert not late.converged and late.epochs == 0


REFUSED = (
    ({"solver": ACC_SDCA}, "SDCA crawls"),
)


@pytest.mark.parametrize(("option", "named"), REFUSED)
def test_what_is_not_possible_is_refused_by_name(option, named):
    X, y, _ = problem()
    with pytest.raises(UsageError, match=named):
        sparse_svm_path(X, y, smoothing=0, **option)
