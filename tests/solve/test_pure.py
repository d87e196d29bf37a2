"""Sparse SVMs at ``alpha = 0``: certified points against HiGHS and a cone solver, and what is refused."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from screenpath.errors import UsageError
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.problem.sparse_types import SparseReduced
from screenpath.screen.sparse import contradicted, parse_sparse_rule
from screenpath.solve import sharp
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import Audit, PathOptions, solve_point, walk
from tests.plain import sparse_svm_path
from tests.sparse_problems import ACC_SDCA, SDCA, dual_rows, problem

BETAS = (0.5, 0.1, 0.02)  # of beta_max
HOW = ((2, False), (2, True), (3, True))


def linear_program(rows, s, beta, free=None):
    """Return the smallest ``sum s max(0, 1 - rows w) + beta ||w||_1``; ``free`` is a column that is not penalised."""
    n, d = rows.shape
    parts = [-rows, rows, -sp.eye_array(n)] + ([] if free is None else [-free[:, None], free[:, None]])
    cost = np.concatenate([np.full(2 * d, beta), s, np.zeros(0 if free is None else 2)])
    left = sp.hstack([sp.csr_array(part) for part in parts], format="csr")
    return linprog(cost, A_ub=left, b_ub=-np.ones(n), bounds=(0, None), method="highs").fun


def drawn(classes, weighted, seed=0, dense=False, **how):
    """Return the model at beta = 0, the rows of its dual with their places, and their shares of the loss."""
    n = 60
    weights = np.random.default_rng(seed).uniform(0.1, 3.0, n) if weighted else None
    X, y, base = problem(classes, n=n, d=15 + 45 * (seed % 2), seed=seed, weights=weights, dense=dense, **how)
    rows, places = dual_rows(X, y, classes)
    s = np.ones(n) if weights is None else weights / weights.mean()
    return base, rows, places, s[places % n] / n


def points(base, alphas, rule="sifs+gap", tol=1e-6, **how):
    """Yield step, certificate and model at ``alpha = 0`` for each value of beta."""
    for share in BETAS:
        model = base.at(share * base.beta_max)
        grid = [alpha * model.alpha_max() for alpha in alphas]
        solver = make_sparse_solver("auto")
        for step, found in walk(model, grid, parse_sparse_rule(rule), solver, PathOptions(tol=tol, **how)):
            if step.parameters["alpha"] == 0.0:
                yield step, found, model


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(("classes", "weighted"), HOW)
def test_the_exact_hinge_agrees_with_a_linear_program(classes, weighted, dense):
    for seed in range(3):
        base, rows, places, s = drawn(classes, weighted, seed, dense, gamma=0.0)
        for alphas in ((0.0,), (0.5, 0.05, 0.0)):
            for step, found, model in points(base, alphas):
                assert step.status == "certified" and step.solver == "newton+continuation"
                best = linear_program(rows, s, model.beta)
                assert step.primal == pytest.approx(best, rel=1e-6)
                assert step.gap >= (step.primal - best) - 1e-9 * best and step.dual <= best * (1.0 + 1e-9)
                primal = s @ np.maximum(1.0 - rows @ found.w, 0.0) + model.beta * np.abs(found.w).sum()
                assert step.primal == pytest.approx(primal, rel=1e-12)
                assert np.abs(rows.T @ (s * found.theta[places])).max() <= model.beta * (1.0 + 1e-14)
                assert step.gap == pytest.approx(primal - s @ found.theta[places], abs=1e-12)


@pytest.mark.parametrize(("classes", "weighted"), HOW)
@pytest.mark.parametrize("gamma", [0.5, None])
def test_other_losses_agree_with_a_cone_solver(classes, weighted, gamma):
    base, rows, _, s = drawn(classes, weighted, seed=1)
    X, y, _ = problem(classes, n=60, d=60, seed=1)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, 60) if weighted else None
    loss = {"loss": "squared-hinge"} if gamma is None else {"smoothing": gamma}
    betas = [0.3 * base.beta_max, 0.03 * base.beta_max]
    path = sparse_svm_path(X, y, betas=betas, alphas=[0.01, 0.0], sample_weight=weights, tol=1e-7, **loss)
    assert path.certified
    w, beta = cp.Variable(rows.shape[1]), cp.Parameter(nonneg=True)
    over = 1.0 - rows @ w
    if gamma is None:
        objective = s @ cp.square(cp.pos(over)) / 2
    else:  # the hinge, smoothed, is an infimum
        part = cp.Variable(rows.shape[0], nonneg=True)
        objective = s @ (cp.square(part) / (2 * gamma) + cp.pos(over - part))
    program = cp.Problem(cp.Minimize(objective + beta * cp.norm1(w)))
    for step in path.steps[1::2]:
        assert step.parameters["alpha"] == 0.0
        beta.value = step.parameters["beta"]
        assert step.primal == pytest.approx(program.solve(solver="CLARABEL"), rel=1e-6)


def test_free_intercepts_agree_with_a_linear_program_and_a_cone_solver():
    X, y, base = problem(n=61, d=12, seed=3)
    signs = 2.0 * y - 1.0
    rows, s = signs[:, None] * X, np.full(61, 1 / 61)
    for gamma in (0.0, 0.3):
        path = sparse_svm_path(X, y, betas=[0.1, 0.01], alphas=[0.0], smoothing=gamma, intercept="free", tol=1e-7)
        assert path.certified and np.all(path.intercepts != 0.0)
        for step in path.steps:
            beta = step.parameters["beta"]
            if gamma == 0.0:
                best = linear_program(rows, s, beta, signs)
            else:
                w, b, part = cp.Variable(12), cp.Variable(), cp.Variable(61, nonneg=True)
                loss = s @ (cp.square(part) / (2 * gamma) + cp.pos(1.0 - rows @ w - signs * b - part))
                best = cp.Problem(cp.Minimize(loss + beta * cp.norm1(w))).solve(solver="CLARABEL")
            assert step.primal == pytest.approx(best, rel=1e-6)


def test_a_free_intercept_of_the_squared_hinge_is_certified():
    X, y, _ = problem(3, n=60, d=10, seed=2)
    assert sparse_svm_path(X, y == 1, betas=3, alphas=[0.0], intercept="free", loss="squared-hinge").certified


def test_rules_agree_and_an_audit_finds_nothing():
    base, *_ = drawn(2, True, seed=1)
    audit = Audit(make_sparse_solver("auto"), PathOptions(tol=1e-9), contradicted)
    primal = []
    for rule in ("none", "gap", "sifs", "sifs+gap", "ifs"):
        steps = [step for step, *_ in points(base, (0.3, 0.0), rule, audit=audit)]
        assert sum(step.extras["unsafe"] for step in steps) == 0
        assert all(step.n_survivors == 60 for step in steps)  # the primal has no ball
        assert (steps[0].n_features_screened > 0) == ("ifs" in rule)  # but features are moved
        primal.append([step.primal for step in steps])
    for found in primal[1:]:
        np.testing.assert_allclose(found, primal[0], rtol=2e-6)


def test_without_weights_nothing_is_solved():
    base, *_ = drawn(2, False, gamma=0.0)
    model = base.at(1.5 * base.beta_max)
    step, found = solve_point(
        model, 0.0, 0, model.start(0.0), parse_sparse_rule("sifs"), make_sparse_solver("auto"), PathOptions()
    )
    assert (step.status, step.epochs, step.nnz_w, step.primal) == ("certified", 0, 0, 1.0)
    assert step.gap < 1e-10 and step.n_features_screened == model.d and not found.w.any()


def test_a_budget_that_is_used_up_is_said():
    base, *_ = drawn(2, False, gamma=0.0)
    model = base.at(0.02 * base.beta_max)
    options = PathOptions(max_epochs=2)
    [(step, found)] = walk(model, [0.0], parse_sparse_rule("none"), make_sparse_solver("auto"), options)
    assert step.status == "budget" and found.gap > 1e-6 * found.primal and step.epochs <= 3
    reduced = SparseReduced(model, 0.0, model.nothing_screened(), model.start(0.0))
    late = make_sparse_solver("auto").solve(reduced, tol=1e-9, budget=Budget(100, -np.inf), dynamic=False)
    assert not late.converged and late.epochs == 0


def test_the_line_through_two_problems_is_what_ends_it_early(monkeypatch):
    """Without it alpha has to fall until its violation is within the tolerance."""
    base, *_ = drawn(2, False, seed=1)
    found = sum(step.epochs for step, *_ in points(base, (0.0,), tol=1e-9))
    monkeypatch.setattr(sharp, "_at_zero", lambda model, alpha, before, now, near: near)
    assert found < sum(step.epochs for step, *_ in points(base, (0.0,), tol=1e-9))


@pytest.mark.parametrize("kind", [SparseModel, FreeSparseModel])
def test_a_checkpoint_brings_back_the_same_pair(kind):
    base, *_ = drawn(2, True, gamma=0.0)
    grid = SparseGrid(kind(base.views, base.labels, 1, 0.0, 0.0, base.given))
    pairs = [(alpha, 0.05 * base.beta_max) for alpha in (0.1, 0.0)]
    *_, (_, found) = walk(grid, pairs, parse_sparse_rule("sifs+gap"), make_sparse_solver("auto"), PathOptions())
    again = SparseGrid(grid.base).restore(grid.state(found))
    assert again.alpha == 0.0 and again.gap == pytest.approx(found.gap, rel=1e-6)
    assert again.primal == pytest.approx(found.primal, rel=1e-14)
    assert np.array_equal(again.theta, found.theta) and np.array_equal(again.u, found.u)


REFUSED = (
    ({"solver": SDCA}, "SDCA crawls where"), ({"solver": ACC_SDCA}, "values of `alpha` above 0"),
    ({"alphas": [0.0, 0.0]}, "the parameter 0 appears twice"), ({"alphas": [0.0, -1.0]}, "positive and finite, or 0"),
    ({"betas": [0.0]}, "`alpha` and `beta` are 0: there is no penalty"),
)  # fmt: skip


@pytest.mark.parametrize(("option", "named"), REFUSED)
def test_what_is_not_possible_is_refused_by_name(option, named):
    X, y, _ = problem()
    with pytest.raises(UsageError, match=named):
        sparse_svm_path(X, y, **{"alphas": [0.0], **option})


def test_references_lead_up_to_values_above_0():
    X, y, _ = problem()
    path = sparse_svm_path(X, y, betas=[0.1], alphas=[0.01, 0], references=2)
    found = [step.parameters["alpha"] for step in path.steps]
    assert len(found) == 4 and found[2:] == [0.01, 0.0] and path.certified
