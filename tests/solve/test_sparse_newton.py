"""Newton for the sparse SVM: every way to its step gives the same step, and its fallback makes progress."""

import numpy as np
import pytest

from screenpath.problem.sparse_grid import sparse_model
from screenpath.solve import sparse_newton
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import SparseNewton, _Run, make_sparse_solver
from tests.sparse_problems import ACC_SDCA, SDCA, dual_rows, problem


def hard_start(classes=2, dense=False, seed=0):
    """Return a reduced problem far from its start."""
    _, _, base = problem(classes, n=70, d=30, seed=seed, dense=dense)
    model = base.at(0.1 * base.beta_max)
    alpha = 0.02 * model.alpha_max()
    return model, model.reduce(alpha, model.nothing_screened(), model.start(alpha))


def exact_direction(model, run, X, y, classes, active, rhs):
    rows, places = dual_rows(X, y, classes)
    zone = (run.theta[places] > 0.0) & (run.theta[places] < 1.0)
    Z = rows[zone][:, active]
    return np.linalg.solve(run.alpha * np.eye(active.size) + Z.T @ Z / (model.n * model.gamma), rhs)


@pytest.mark.parametrize(("classes", "dense"), [(2, True), (2, False), (3, True), (3, False)])
@pytest.mark.parametrize("way", ["copied", "not copied"])
def test_every_way_to_the_step_solves_the_same_system(classes, dense, way, monkeypatch):
    X, y, _ = problem(classes, n=70, d=30, dense=dense)
    model, reduced = hard_start(classes, dense)
    run = _Run(reduced)
    for _ in range(3):
        run.step(1e-9)
    active = np.flatnonzero(run.w)
    rhs = np.random.default_rng(0).normal(size=active.size)
    expected = exact_direction(model, run, X, y, classes, active, rhs)
    if way == "not copied" and classes > 2:  # a copy of two classes is never larger than the data
        monkeypatch.setattr(type(model.views), "size", 0)
        monkeypatch.setattr(sparse_newton, "LITTLE", 0)
    asked, without = [], _Run._without_a_copy
    monkeypatch.setattr(_Run, "_without_a_copy", lambda *a: asked.append(1) or without(*a))
    found = run._direction(active, rhs, 1e-12)
    assert bool(asked) == (way == "not copied" and classes > 2)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dense", [True, False])
def test_a_free_intercept_answers_every_step(dense):
    X, y, base = problem(2, n=70, d=30, dense=dense)
    y[:20] = 1
    weights = np.where(np.arange(70) % 3, 1.0, 2.5)
    model = sparse_model(base.views, (2 * y - 1).astype(np.int64), 1, 0.5, weights, "free")
    model = model.at(0.05 * model.beta_max)
    alpha = 0.02 * model.alpha_max()
    run = _Run(model.reduce(alpha, model.nothing_screened(), model.start(alpha)))
    for _ in range(3):
        run.step(1e-9)
    active = np.flatnonzero(run.w)
    rhs = np.random.default_rng(0).normal(size=active.size)
    inside = np.flatnonzero((run.theta > 0.0) & (run.theta < 1.0))
    s = model.weights[inside % 70]
    rows, places = dual_rows(X, y, 2)
    ones, _ = dual_rows(np.ones((70, 1)), y, 2)
    of = np.searchsorted(places[order := np.argsort(places)], inside)
    Z, B = np.sqrt(s)[:, None] * rows[order][of][:, active], np.sqrt(s)[:, None] * ones[order][of]
    Z = Z - B @ np.linalg.pinv(B) @ Z  # what the best intercepts leave
    expected = np.linalg.solve(alpha * np.eye(active.size) + Z.T @ Z / (70 * 0.5), rhs)
    found = run._direction(active, rhs, 1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_steps_alone_decrease_the_objective_and_converge(classes, monkeypatch):
    _, reduced = hard_start(classes)
    plain, run = _Run.step, _Run(reduced)
    while run.step(1e-3, newton=False) and run.gap > 1e-2 * run.primal:
        pass
    assert run.gap <= 1e-2 * run.primal
    monkeypatch.setattr(_Run, "step", lambda self, tol, newton=True: not newton and plain(self, tol, False))
    found = SparseNewton().solve(reduced, tol=1e-2, budget=Budget(5000, np.inf), dynamic=False)
    assert found.converged
    assert found.epochs > 1


@pytest.mark.parametrize("name", ["newton", SDCA, ACC_SDCA])
def test_budget_and_deadline_end_a_solve(name):
    _, reduced = hard_start()
    solver = make_sparse_solver(name)
    found = solver.solve(reduced, tol=1e-14, budget=Budget(1, np.inf), dynamic=False)
    assert not found.converged
    assert found.epochs == 1
    assert solver.solve(reduced, tol=1e-14, budget=Budget(100, -np.inf), dynamic=False).epochs == 0


@pytest.mark.covering(9)
@pytest.mark.parametrize("name", ["newton", SDCA, ACC_SDCA])
@pytest.mark.parametrize("classes", [2, 3])
def test_dynamic_screening_changes_the_work_and_not_the_optimum(name, classes):
    model, reduced = hard_start(classes)
    solver = make_sparse_solver(name)
    plain = solver.solve(reduced, tol=1e-9, budget=Budget(2000, np.inf), dynamic=False)
    screened = solver.solve(reduced, tol=1e-9, budget=Budget(2000, np.inf), dynamic=True)
    assert plain.converged and screened.converged
    assert plain.screened == 0 and screened.screened > 0
    assert not reduced.screened.duals[model.free == 0].any()  # the rule's own decisions are left alone
    one, two = (model.certify(reduced.alpha, s.w, s.alpha) for s in (plain, screened))
    assert one.primal == pytest.approx(two.primal, rel=1e-8)


@pytest.mark.parametrize("name", [SDCA, ACC_SDCA])
def test_sdca_repeats_itself_for_a_seed(name):
    _, reduced = hard_start()
    runs = [
        make_sparse_solver(name, seed).solve(reduced, tol=1e-6, budget=Budget(50, np.inf), dynamic=True, rank=3)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0].alpha, runs[1].alpha)
    assert np.any(runs[0].alpha != runs[2].alpha)
