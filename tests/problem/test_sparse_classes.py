"""The sparse SVM of several classes with free intercepts: optima of a cone solver, intercepts, the closed form."""

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.errors import UsageError
from screenpath.kernels.problem import sparse_levels as kernels
from screenpath.problem.sparse_classes import FreeClassesModel, largest_cycle_mean, ways
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.problem.sparse_types import SparseVector
from screenpath.rows.views import Views
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import PathOptions, walk
from screenpath.walk.step import FAILED, INFEASIBLE, broken_by, verdict

GAMMA = 0.5


def problem(seed, classes=4, n=36, d=7, weighted=False, even=False, storage=np.asarray):
    """Return data, labels and model at ``beta = 0``; the classes are out of balance unless ``even``."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    if not even:
        y[classes : n // 2] = 0
    X = rng.normal(size=(n, d)) + 2.0
    X[:, :classes] += 1.2 * np.eye(classes)[y]
    X[rng.random((n, d)) < 0.3] = 0.0
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else None
    return X, y, FreeClassesModel(Views(storage(X)), y, classes, 0.0, GAMMA, weights)


def cone_optimum(X, y, s, alpha, beta, classes) -> float:
    """Return the optimum of an interior-point method; the smoothed hinge is the least ``q^2/(2 gamma) + (t - q)_+``."""
    W, b, loss = cp.Variable((classes, X.shape[1])), cp.Variable(classes), 0.0
    forms = (X - X.mean(axis=0)) @ W.T
    for c in range(classes):
        rows = np.flatnonzero(y != c)
        sign = np.eye(classes)[np.full(rows.size, c)] - np.eye(classes)[y[rows]]
        q, t = cp.Variable(rows.size), 1.0 + cp.sum(cp.multiply(sign, forms[rows]), axis=1) + sign @ b
        loss += cp.sum(cp.multiply(s[rows], cp.square(q) / (2.0 * GAMMA) + cp.pos(t - q))) / s.sum()
    penalty = alpha / 2.0 * cp.sum_squares(W) + beta * cp.sum(cp.abs(W))
    found = cp.Problem(cp.Minimize(loss + penalty), [cp.sum(b) == 0.0])
    found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(found.value)


@pytest.mark.parametrize(("storage", "weighted"), [(np.asarray, False), (sp.csr_array, True)])
def test_the_optimum_is_that_of_a_cone_solver(weighted, storage):
    X, y, base = problem(3, weighted=weighted, storage=storage)
    pairs = [(a, b) for b in (0.6 * base.beta_max, 0.05 * base.beta_max) for a in (1.0, 0.1, 0.01)]
    for step, found in walk(
        SparseGrid(base), pairs, parse_sparse_rule("sifs+gap"), SparseNewton(), PathOptions(tol=1e-10)
    ):
        best = cone_optimum(X, y, base.given, *found.at, base.classes)
        assert step.status == "certified" and step.primal == pytest.approx(best, rel=1e-8)
        both = step.coefficients.dense().reshape(base.classes, -1)
        assert np.array_equal(both[:, -1], found.intercept) and np.array_equal(both[:, :-1].ravel(), found.w)
    grid = SparseGrid(base)
    again = grid.restore(grid.state(found))  # of a checkpoint
    assert again.gap == found.gap and np.array_equal(again.scores, found.scores)
    assert np.array_equal(again.intercept, found.intercept)


@pytest.mark.parametrize("seed", range(12))
def test_the_intercepts_are_the_best_ones_for_the_weights(seed):
    rng = np.random.default_rng(seed)
    _, y, model = problem(seed, weighted=seed % 2 == 0)
    z = (10.0 ** rng.uniform(-2, 3) * rng.normal(size=model.ones.size)) if seed else np.zeros(model.ones.size)
    scores, guess = z.copy(), rng.normal(size=model.classes) if seed % 3 else 0.0
    level = model.placed(scores, guess=guess)
    assert abs(level.intercept.sum()) <= 1e-9 * max(level.size, 1.0)
    np.testing.assert_allclose(scores, z + np.repeat(level.intercept, y.size), atol=1e-9 * max(np.abs(z).max(), 1.0))
    slope, curve = np.empty(model.classes), np.empty((model.classes, model.classes))
    kernels.slopes(z, model.samples, model.free, level.intercept, slope, curve)
    assert np.abs(slope).max() <= 1e-12 * model.n

    # A convex function with this gradient is least there; and it is a gradient.
    def loss(b):
        t = 1.0 - (z.reshape(-1, y.size) + b[:, None])[y, np.arange(y.size)] + z.reshape(-1, y.size) + b[:, None]
        each = np.where(t < 0, 0, np.where(t <= GAMMA, t * t / (2 * GAMMA), t - GAMMA / 2))
        each[y, np.arange(y.size)] = 0.0
        return each.sum(axis=0) @ model.weights

    at = level.intercept + rng.normal(size=model.classes)
    kernels.slopes(z, model.samples, model.free, at, slope, curve)
    for c in range(model.classes):
        step = 1e-5 * np.eye(model.classes)[c]
        assert (loss(at + step) - loss(at - step)) / 2e-5 == pytest.approx(slope[c], abs=1e-5 * model.n)


def nearly_even(seed, imbalance=0.0, classes=5, n=120):
    """Return labels out of balance, weights that make up for it but for rounding or a little more, and scores."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=rng.dirichlet(np.ones(classes)))])
    given = rng.random(n) + 0.1
    given *= (given.sum() / classes / np.bincount(y, given, classes) * (1.0 + imbalance * rng.normal(size=classes)))[y]
    shift, noise = 10.0 ** rng.uniform(-1.5, 0.5), 10.0 ** rng.uniform(-3.0, 0.0)
    return y, given, (shift * rng.normal(size=(classes, 1)) + noise * rng.normal(size=(classes, n))).ravel()


def slope_left(y, given, scores, guess=0.0) -> float:
    """Return the largest sum that is left at the intercepts found, as a share of the weights."""
    model = FreeClassesModel(Views(np.ones((y.size, 1))), y, int(y.max()) + 1, 0.0, GAMMA, given)
    level = model.placed(scores.copy(), guess=guess)
    slope, curve = np.empty(model.classes), np.empty((model.classes, model.classes))
    kernels.slopes(scores, model.samples, model.free, level.intercept, slope, curve)
    return float(np.abs(slope).max() / model.n)


@pytest.mark.parametrize("imbalance", [0.0, 1e-12, 1e-10, 1e-8])
def test_intercepts_of_classes_that_weigh_nearly_the_same_are_the_best_ones(imbalance):
    assert max(slope_left(*nearly_even(seed, imbalance)) for seed in range(40)) <= 1e-13


def test_a_first_step_that_leads_far_away_is_undone():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(5), rng.choice(5, 195, p=[0.7, 0.2, 0.05, 0.03, 0.02])])
    cases = [(0.3 * rng.normal(size=5 * y.size), 2.0 * rng.normal(size=5)) for _ in range(200)]
    assert max(slope_left(y, np.ones(y.size), scores, guess) for scores, guess in cases) <= 1e-13


@pytest.mark.parametrize(("seed", "weighted"), [(0, False), (1, False), (8, True)])
def test_paths_of_classes_that_weigh_the_same_but_for_rounding_are_certified(seed, weighted):
    rng, classes, n, d = np.random.default_rng(seed), 5, 400, 8
    y = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=[0.5, 0.25, 0.13, 0.07, 0.05])])
    X = rng.normal(size=(n, d))
    X = (X @ rng.normal(size=(d, d)) / np.sqrt(d) if weighted else X) + 3.0 * rng.normal(size=(classes, d))[y]
    given = rng.random(n) + 0.1 if weighted else np.ones(n)
    given *= (given.sum() / classes / np.bincount(y, given))[y]
    base = FreeClassesModel(Views(X), y, classes, 0.0, GAMMA, given)
    pairs = [(base.at(beta).alpha_max(), beta) for beta in np.array([0.9, 0.3, 0.05]) * base.beta_max]
    for rule in ("none", "sifs+gap"):
        steps = list(walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), PathOptions(tol=1e-9)))
        assert [step.status for step, _ in steps] == ["certified"] * len(pairs)
    step, found = steps[-1]
    best = cone_optimum(X, y, base.given, *found.at, classes)
    assert found.nonzero > 0 and step.primal == pytest.approx(best, rel=1e-8)


def test_a_dual_point_without_room_is_not_called_an_overflow():
    _, _, base = problem(5)
    model = base.at(0.5 * base.beta_max)
    found = model.certify(1.0, np.zeros(model.u_ones.size), model.ones)  # which is out of balance by whole samples
    assert found.gap == np.inf and np.isfinite(found.primal) and not found.feasible
    assert verdict(found, 1e-6) == (FAILED, INFEASIBLE)
    known = model.certify(1.0, np.zeros(model.u_ones.size), None)
    assert known.feasible and broken_by(known) == ""


def test_the_largest_beta_has_no_weight_and_the_best_intercepts():
    X, y, base = problem(1)
    flows = base.weigh(base.top).reshape(base.classes, -1)
    assert (
        not base.even
        and np.abs(flows.sum(axis=1)).max() < 1e-12
        and base.top.min(where=base.ones > 0, initial=1.0) > 0.0
    )
    for share, zero in ((1.0 + 1e-9, True), (0.99, False)):
        model = base.at(share * base.beta_max)
        found = model.certify(0.01, None, model.top)
        assert (found.nonzero == 0) == zero and (found.rel_gap < 1e-12) == zero
        if zero:
            assert found.loss == pytest.approx(model.null_loss)
            assert cone_optimum(X, y, base.given, *found.at, base.classes) == pytest.approx(found.primal, rel=1e-8)
    model = base.at(0.5 * base.beta_max)
    assert not model.exact_until(model.start(model.alpha_max()), model.alpha_max())


def test_equal_classes_begin_in_closed_form():
    _, y, base = problem(2, even=True)
    model = base.at(0.5 * base.beta_max)
    top = model.alpha_max()
    start = model.start(top)
    assert base.even and start.rel_gap < 1e-12 and model.exact_until(start, top)
    assert not model.exact_until(start, 0.999 * top) and model.certify(0.99 * top, None, model.top).gap > 0.0


def test_a_class_without_weight_is_refused():
    X, y, _ = problem(2)
    with pytest.raises(UsageError, match="positive weight in every class"):
        FreeClassesModel(Views(X), y, 4, 0.0, GAMMA, (y > 0).astype(float))


def test_a_shift_of_the_features_changes_the_intercepts_alone():
    X, y, here = problem(4)
    there = FreeClassesModel(Views(X + 50.0), y, here.classes, 0.0, GAMMA)
    assert there.beta_max == pytest.approx(here.beta_max, rel=1e-10)
    pairs = [(0.05, 0.3 * here.beta_max), (0.02, 0.3 * here.beta_max)]
    paths = [
        list(walk(SparseGrid(base), pairs, parse_sparse_rule("sifs"), SparseNewton(), PathOptions(tol=1e-12)))
        for base in (here, there)
    ]
    for (one, a), (other, b) in zip(*paths, strict=True):
        np.testing.assert_allclose(a.w, b.w, atol=1e-6)
        moved = -50.0 * a.w.reshape(here.classes, -1).sum(axis=1)
        np.testing.assert_allclose(b.intercept, a.intercept + moved - moved.mean(), atol=1e-4)
        assert abs(one.n_features_screened - other.n_features_screened) <= 1  # what is screened does not depend on it
        assert abs(one.screened_R + one.screened_L - other.screened_R - other.screened_L) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_ways_and_cycles_are_those_of_all_permutations(seed):
    rng = np.random.default_rng(seed)
    size = 3 + seed % 3
    lengths = rng.normal(size=(size, size))
    np.fill_diagonal(lengths, -np.inf)
    cycles = [c for k in range(2, size + 1) for c in permutations(range(size), k)]
    means = [sum(lengths[a, b] for a, b in zip(c, (*c[1:], c[0]), strict=True)) / len(c) for c in cycles]
    assert largest_cycle_mean(lengths) == pytest.approx(max(means))
    costs, beside = np.abs(rng.normal(size=(size, size))), rng.random((size, size))
    costs[0, 1] = np.inf
    first, least, along = ways(costs, beside)
    for p, q in permutations(range(size), 2):
        every = [(p, *mid, q) for k in range(size - 1) for mid in permutations(set(range(size)) - {p, q}, k)]
        best = min(every, key=lambda way: sum(costs[a, b] for a, b in zip(way, way[1:], strict=False)))
        steps = list(zip(best, best[1:], strict=False))
        assert least[p, q] == pytest.approx(sum(costs[e] for e in steps)) and first[p, q] == best[1]
        assert along[p, q] == pytest.approx(sum(beside[e] for e in steps))


def test_intercepts_stand_behind_the_weights_of_their_class():
    some = SparseVector(np.array([1, 2, 5]), np.array([7.0, 8.0, 9.0]), 6)
    found = some.extended(np.array([0.0, -1.0]))
    assert found.dense().tolist() == [0.0, 7.0, 8.0, 0.0, 0.0, 0.0, 9.0, -1.0] and found.index.tolist() == [
        1,
        2,
        3,
        6,
        7,
    ]
    assert some.extended(np.array([4.0])).dense().tolist() == [0.0, 7.0, 8.0, 0.0, 0.0, 9.0, 4.0]
