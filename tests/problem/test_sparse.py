"""The sparse SVM's model: objectives, gap, closed forms, certificate, against their definitions and a cone solver."""

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import sparse_svr_path
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.problem.sparse_types import SparseVector
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from tests.sparse_problems import dual_rows, objectives, problem


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("dense", [True, False])
def test_certificate_is_the_definition_for_any_pair(classes, dense):
    X, y, base = problem(classes, dense=dense)
    rng = np.random.default_rng(1)
    rows, places = dual_rows(X, y, classes)
    model = base.at(0.4 * base.beta_max)
    w = rng.normal(size=rows.shape[1]) * (rng.uniform(size=rows.shape[1]) < 0.4)
    theta = np.zeros(model.ones.size)
    theta[places] = rng.uniform(size=places.size)
    alpha = 0.3
    found = model.certify(alpha, w, theta)
    primal, dual = objectives(rows, len(y), w, theta[places], alpha, model.beta, model.gamma)
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.dual == pytest.approx(dual, rel=1e-10)
    other = objectives(rows, len(y), w, theta[places], 0.11, model.beta, model.gamma)
    assert model.gap_at(found, 0.11) == pytest.approx(other[0] - other[1], rel=1e-9)
    t = (1.0 - rows @ w) / model.gamma
    assert found.apart_sq == pytest.approx(np.sum((theta[places] - np.clip(t, 0, 1)) ** 2), rel=1e-10)
    np.testing.assert_allclose(model.col_sq, np.sum(rows**2, axis=0), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_closed_form_is_optimal_down_to_alpha_max_and_no_further(classes):
    _, _, base = problem(classes)
    model = base.at(0.5 * base.beta_max)
    top = model.alpha_max()
    assert model.certify(top, None, model.ones).rel_gap < 1e-12
    assert model.certify(3.0 * top, None, model.ones).rel_gap < 1e-12
    assert model.certify(0.99 * top, None, model.ones).gap > 0.0
    assert model.exact_until(model.start(top), top)
    assert not model.exact_until(model.start(top), 0.99 * top)


@pytest.mark.parametrize("closed", [True, False])
def test_a_solve_that_ends_at_the_dual_point_of_the_start_is_not_the_start_once_restored(closed):
    """Else the step after it would be given the sums of the start, and count fewer passes."""
    base = problem()[2]
    grid, model = SparseGrid(base), base.at(0.5 * base.beta_max)
    found = model.certify(0.3, np.zeros(model.u_kinks.size), model.top if closed else model.top.copy())
    again = grid.restore({name: np.asarray(value) for name, value in grid.state(found).items()})
    np.testing.assert_array_equal(again.theta, found.theta)
    spent = []
    for reference in (found, again):
        before = base.rows.touched
        model.fallbacks(0.2, reference)
        spent.append(base.rows.touched - before)
    assert (again.theta is model.top) == closed and spent[0] == spent[1]


@pytest.mark.parametrize("classes", [2, 4])
def test_no_weights_are_kept_that_are_worse_than_zero_or_those_before(classes):
    _, _, base = problem(classes)
    model = base.at(0.4 * base.beta_max)
    rng = np.random.default_rng(2)
    near, far, theta = *(s * rng.normal(size=model.u_kinks.size) for s in (1e-3, 30.0)), 0.5 * model.ones
    zero, before = (model.certify(0.2, w, theta).primal for w in (0.0 * near, near))
    for w, primal in ((near, min(zero, before)), (far, zero)):
        reference, worse = model.certify(0.5, w, theta), model.certify(0.2, 2.0 * far, theta)
        found = model.no_worse(0.2, worse, reference)
        assert found.primal == pytest.approx(primal, rel=1e-12)
        assert found.dual == pytest.approx(worse.dual, rel=1e-7)
        assert model.no_worse(0.2, found, reference) is found


@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-12, 7.0])
def test_all_weights_are_zero_from_beta_max_on(factor):
    _, _, base = problem()
    model = base.at(factor * base.beta_max)
    assert model.alpha_max() == 0.0
    for alpha in (10.0, 1e-3):
        found = model.certify(alpha, None, model.ones)
        assert found.nonzero == 0
        assert found.gap <= 1e-20 * found.primal  # but for what rounding may have hidden


@pytest.mark.parametrize(("classes", "gamma"), [(2, 0.5), (2, 0.05), (3, 0.5), (5, 0.9)])
def test_objective_agrees_with_a_cone_solver_at_random_grid_points(classes, gamma):
    X, y, base = problem(classes, n=40, d=12, gamma=gamma, seed=classes)
    rows, _ = dual_rows(X, y, classes)
    rng = np.random.default_rng(3)
    for share in rng.uniform(0.05, 0.9, size=2):
        model = base.at(share * base.beta_max)
        grid = model.alpha_max() * np.array([0.7, rng.uniform(0.01, 0.5)])
        steps = [s for s, _ in walk(model, np.sort(grid)[::-1], parse_sparse_rule("sifs+gap"),
                                    make_sparse_solver("auto"), PathOptions(tol=1e-9))]  # fmt: skip
        for step in steps:
            w = cp.Variable(rows.shape[1])
            t = 1.0 - rows @ w
            # l(t) = min_s s^2/(2 gamma) + max(t - s, 0) over s in [0, gamma]
            s = cp.Variable(rows.shape[0])
            loss = (cp.sum_squares(s) / (2.0 * gamma) + cp.sum(cp.pos(t - s))) / len(y)
            alpha = step.parameters["alpha"]
            objective = loss + alpha / 2 * cp.sum_squares(w) + model.beta * cp.norm1(w)
            value = cp.Problem(cp.Minimize(objective), [s >= 0, s <= gamma]).solve(solver="CLARABEL")
            assert step.status == "certified"
            assert step.primal == pytest.approx(value, rel=1e-6)
            np.testing.assert_allclose(step.coefficients.dense(), w.value, atol=1e-4)


def test_sparse_vector_returns_what_it_was_given():
    dense = np.array([0.0, -2.0, 0.0, 3.5])
    kept = SparseVector.of(dense)
    assert kept.index.size == 2
    np.testing.assert_array_equal(kept.dense(), dense)


@pytest.mark.compiled_only
@pytest.mark.parametrize(("classes", "rule"), [(2, "sifs"), (2, "none"), (4, "sifs+gap"), (4, "gap")])
def test_sums_that_are_only_bounded_change_no_value_of_a_certificate(classes, rule):
    _, _, base = problem(classes, n=80, d=300, density=0.1)
    model = base.at(0.5 * base.beta_max)
    grid = model.alpha_max() * np.geomspace(0.98, 0.05, 30)
    left_out = 0
    for _, found in walk(model, grid, parse_sparse_rule(rule), make_sparse_solver("auto"), PathOptions()):
        exact = model.certify(found.alpha, found.w, found.theta)
        assert not exact.u_slack.any()
        assert (found.primal, found.gap, found.lag_sq) == (exact.primal, exact.gap, exact.lag_sq)
        bounded = found.u_slack > 0.0
        left_out += np.count_nonzero(bounded)
        np.testing.assert_array_equal(found.u[~bounded], exact.u[~bounded])
        assert np.all(np.abs(found.u - exact.u) <= found.u_slack)
        assert np.all(np.abs(exact.u[bounded]) <= model.beta) and not found.w[bounded].any()
        for alpha in (found.alpha, 0.9 * found.alpha):  # the decisions are those of the exact sums
            ours, theirs = (parse_sparse_rule("sifs").before(model, c, alpha) for c in (found, exact))
            np.testing.assert_array_equal(ours.status, theirs.status)
    assert left_out > 1000


@pytest.mark.parametrize("classes", [2, 4])
def test_no_dual_point_within_the_room_of_a_certificate_wakes_a_feature_outside_its_list(classes):
    X, y, base = problem(classes, n=80, d=300, density=0.1)
    rows, places = dual_rows(X, y, classes)
    model = base.at(0.5 * base.beta_max)
    grid = model.alpha_max() * np.geomspace(0.98, 0.3, 12)
    tried = 0
    for _, found in walk(model, grid, parse_sparse_rule("sifs"), make_sparse_solver("auto"), PathOptions()):
        outside = np.setdiff1d(model.every, found.formed)
        assert not found.w[outside].any()
        # The farthest that the ball reaches: along the feature's own column.
        columns = rows[:, outside]
        reached = np.abs(columns.T @ found.theta[places]) + found.room * np.linalg.norm(columns, axis=0)
        assert np.all(reached / len(y) <= model.beta)
        tried += outside.size if found.room > 0.0 else 0
    assert tried > 300


@pytest.mark.parametrize("rule", ["sifs", "iss", "ifs"])
@pytest.mark.parametrize("classes", [2, 3])
def test_where_the_closed_form_holds_it_decides_everything(classes, rule):
    _, _, base = problem(classes)
    model = base.at(0.5 * base.beta_max)
    top = 1.5 * model.alpha_max()
    found = parse_sparse_rule(rule).before(model, model.start(top), top)
    samples, features = rule != "ifs", rule != "iss"
    np.testing.assert_array_equal(found.duals, np.where(model.free < 0, -1, samples))
    solution = model.certify(top, None, model.ones).w
    np.testing.assert_array_equal(found.keep, (solution != 0.0) if features else model.all_kept)
    assert found.record.max() == max(samples * model.pairs, features * np.count_nonzero(solution == 0.0))


@pytest.mark.parametrize("kind", [SparseModel, FreeSparseModel])
@pytest.mark.parametrize("off", [0.0, 1e-300, 1e-9])
def test_an_optimum_of_exactly_0_is_certified_and_nothing_else_as_one(kind, off):
    """Huber's loss of targets that w = 0 meets, and a tube that holds all of them."""
    X, level = np.random.default_rng(0).normal(size=(12, 4)), -1.0 if kind is FreeSparseModel else 0.0
    targets = np.full(12, level)
    targets[3] += off  # lost beside -1, if it is 1e-300
    model = kind(Views(X), np.ones(12, dtype=np.int64), 1, 0.1, 0.5, None, targets, (-1.0, 1.0))
    pair = model.certify(0.1, np.zeros(4), np.zeros(12), intercept=level or None)
    found = model.sharpened(pair, 1e-6)
    assert (found.gap == found.primal == found.primal_error == 0.0) == bool(np.all(targets == level))


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_a_tube_that_holds_all_targets_has_a_certified_path(intercept):
    X, targets = np.random.default_rng(0).normal(size=(6, 4)), np.array([-0.1, -0.05, 0.0, 0.02, 0.07, 0.1])
    for off in (0.0, 1e-9):
        targets[-1] += off
        (step,) = sparse_svr_path(X, targets, epsilon=0.1, intercept=intercept, alphas=[0.1], betas=[0.1]).steps
        assert step.status == "certified" and (step.gap == step.primal == 0.0) == (off == 0.0)


def screened_pair(classes, intercept, seed):
    """Return a model, a pair whose sums are all uncertain, and regions of any size, with slacks that count."""
    rng, n, d = np.random.default_rng(seed), 14, 30
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    X[:, :3] += 1.0
    codes = rng.integers(0, 3, n) if classes == 3 else np.where(np.arange(n) % 2 == 0, 1, -1)
    base = sparse_model(Views(sp.csr_array(X)), codes, classes, 0.5, rng.uniform(0.5, 2.0, n), intercept)
    model, theta = base.at(0.5 * base.beta_max), rng.uniform(size=classes * n)
    if classes == 3:
        theta[codes * n + np.arange(n)] = 0.0
    size = model.u_kinks.size
    reference = model.certify(0.3, 0.1 * rng.normal(size=size) * (rng.random(size) < 0.2), theta)
    reference.u_slack = 0.1 * rng.uniform(0.1, 1.0, size) * model.beta
    slack = {"columns": 0.05} if seed % 4 < 2 else {"column_norms": 0.3}
    model.rounding.slacks = model.rounding.slacks._replace(**slack)
    ratio, *squares = *rng.uniform(-0.5, 0.5, 1), *10.0 ** rng.uniform(-2.0, 0.5, 2)
    regions = rules.kernels.Regions(1.0, 1.0, ratio, rng.uniform(0.5, 1.0), *squares, 0.0, 3.0 * rng.random(), seed % 2)
    return model, reference, regions, rng


@pytest.mark.parametrize(("classes", "intercept"), [(1, "none"), (1, "free"), (3, "none")])
def test_columns_that_are_read_are_known_before(classes, intercept):
    """At the first look a column is read whose sum is not known well enough; more of them are marked with a free
    intercept, whose part of a column's norm is not known without it."""
    marked = 0
    for seed in range(16):
        model, reference, regions, rng = screened_pair(classes, intercept, seed)
        at = model.nothing_screened()
        at.keep[::7] = 0
        kept, seen = at.keep != 0, rules._open(model, reference, at, regions)
        reference.formed = np.flatnonzero(rng.random(kept.size) < 0.05)
        formed = np.isin(np.arange(kept.size), reference.formed)
        counts = np.tile(np.diff(model.views.column_ends), classes)
        costs = np.where(counts == 14, 3.5, counts)
        slack = model.rounding.slacks.columns
        reach = np.sqrt(regions.second_sq) * (1.0 + slack) + slack * regions.theta_norm
        for room in (0.999 * reach, reach):  # of what is known of the columns that have been formed
            reference.room = room
            wanted = kept & ((reference.w != 0.0) | seen | (formed & (room == reach)))
            expected = wanted if 2.0 * costs[wanted].sum() < costs[kept].sum() else kept
            for what in ((False, True, True), (True, True, True), (False, True, False)):
                np.testing.assert_array_equal(rules.could_be_read(model, reference, at, regions, what), expected)
            marked += expected is wanted
        assert not rules.could_be_read(model, reference, at, regions, (True, False, True)).any()
        np.testing.assert_array_equal(rules.could_be_read(model, reference, at, regions, (True, True, False)), kept)
        reference.room, reference.w = 0.0, np.zeros(kept.size)
        rules._run(model, reference, at, regions, (False, True, True))
        read = kept & (reference.u_slack == 0.0)
        assert not np.any(read & ~seen) and (intercept == "free" or np.array_equal(read, kept & seen))
    assert 4 < marked < 32


@pytest.mark.parametrize("classes", [2, 4])
def test_a_stretched_pair_is_a_better_multiple_of_the_weights(classes):
    X, y, base = problem(classes)
    rows, places = dual_rows(X, y, classes)
    model, w = base.at(0.3 * base.beta_max), 0.1 * rows.sum(axis=0) / np.abs(rows.sum(axis=0)).max()
    reference = model.certify(0.3, w, 0.5 * model.ones)
    for whole in (True, False):
        at, touched = model.nothing_screened(), model.rows.touched
        at.keep[::3] = whole
        kept = at.keep != 0
        found = rules._stretched(model, at, reference, 0.02)
        kappa = found.w[kept][0] / w[kept][0]
        np.testing.assert_allclose(found.w, np.where(kept, kappa * w, 0.0))
        exact = model.certify(0.02, found.w, found.theta)
        np.testing.assert_allclose(found.scores, exact.scores)
        np.testing.assert_allclose(found.u[kept], exact.u[kept])
        np.testing.assert_allclose(found.theta[places], np.clip((1.0 - rows @ found.w) / model.gamma, 0.0, 1.0))
        assert found.primal == pytest.approx(exact.primal) and (not whole or found.gap == pytest.approx(exact.gap))
        near = (model.certify(0.02, k * found.w, found.theta).primal for k in (0.97, 1.03))
        assert 1.1 < kappa < 14.0 and exact.primal < min(near) and model.rows.touched > touched


def test_what_is_tried_after_the_balls(monkeypatch):
    """Of ten features, four of which had a weight: moves go on while they zero more than a tenth of what is left."""
    calls, counts, none = [], [], np.empty((0, 2), dtype=int)
    monkeypatch.setattr(rules, "regions_of", lambda *a: rules.kernels.Regions(*np.arange(8.0), True))
    monkeypatch.setattr(rules, "_run", lambda model, ref, at, regions, what: calls.append(what) or none)
    monkeypatch.setattr(rules, "_stretched", lambda *a: "other")
    monkeypatch.setattr(rules, "_tightened", lambda model, at, point, alpha: calls.append(point) or none)

    monkeypatch.setattr(
        rules, "by_a_move", lambda model, at, point, *how: calls.append((point == "other", how[1])) or counts.pop(0)
    )
    both, worth, own = (True, True, True), rules.move.WORTH, (False, 0.0)
    more = ["other", (True, 0.0)]
    for changes, zeroed, expected in (
        ({}, [3, 1, 0, 1, 0], [both, *more, *more, *more, own, *more]), ({}, [2, 0, 0], [both, *more, *more, own]),
        ({}, [1, 0], [both, *more, own]), ({"alone": False}, [], [both]), ({"intercept": True}, [0], [both, own]),
        ({"features": False}, [], [(True, False, True)]), ({"samples": False}, [5], [(False, True, True), own]),
        ({"alpha": 0.7}, [5], [both, own]), ({"alpha": 0.8}, [5], [both, own]), ({"known": 0}, [5], [both, own]),
        ({"known": 5}, [0], [both, own]), ({"sharp": True}, [5], [(True, False, True), own]),
        ({"sharp": True, "alone": False}, [5], [(True, False, True), (False, worth)]),
        ({"sharp": True, "samples": False}, [5], [own]), ({"alpha": 0.0}, [5], [own]),
        ({"alpha": 0.0, "alone": False}, [0], [(False, worth)]),
    ):  # fmt: skip
        case = {"alpha": 0.5, "samples": True, "features": True, "alone": True, "intercept": False, "known": 4,
                "sharp": False, **changes}  # fmt: skip
        at = SimpleNamespace(keep=np.ones(10), record=none)
        model = SimpleNamespace(nothing_screened=lambda at=at: at, sharp=case["sharp"], intercept=case["intercept"])
        ref, counts[:], calls[:] = SimpleNamespace(alpha=0.7, nonzero=case["known"]), zeroed, []
        rules.screen(model, ref, case["alpha"], case["samples"], case["features"], True, case["alone"])
        assert (calls, counts) == (expected, []), changes
