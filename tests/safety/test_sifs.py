"""No rule of the sparse SVM decides wrongly, whatever the accuracy of the reference; the order does not matter."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels.screen import move
from screenpath.problem.sparse import SparseModel
from screenpath.rows.views import Views
from screenpath.screen.sparse import parse_sparse_rule, regions_of, screen
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from tests.safety.sparse_attack import references, solved
from tests.sparse_problems import SDCA, dual_rows, objectives, problem


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1.0, 0.02])  # small data: the dual is nothing but its quadratic term
def test_regions_contain_the_optimum(classes, size):
    rng = np.random.default_rng(5)
    X, y, base = problem(classes, n=40, d=20, seed=11)
    base = SparseModel(Views(size * X), base.labels, base.classes, 0.0, base.gamma)
    for share, place in itertools.product((0.1, 0.5), (0.7, 0.1)):
        model = base.at(share * base.beta_max)
        start = place * model.alpha_max()
        for alpha in (start, 0.99 * start, 0.8 * start, 1.2 * start):
            best = solved(model, alpha)
            for reference in references(model, start, rng):
                r = regions_of(model, reference, alpha)
                first = r.kink_part * model.ones + r.theta_part * reference.theta
                slack = 1.0 + 1e-5
                assert np.sum((best.w - r.scale * reference.w) ** 2) <= slack * r.primal_sq + 1e-12 * best.w_sq
                assert np.sum((best.theta - first) ** 2) <= slack * r.first_sq + 1e-10
                assert np.sum((best.theta - reference.theta) ** 2) <= slack * r.second_sq + 1e-10
                between = np.sum((first - reference.theta) ** 2)
                assert r.between_sq == pytest.approx(between, rel=1e-6, abs=1e-9)


def with_moves(classes, seeds):
    """Return decisions, how many of them moves add to the balls, and wrong ones, where gamma is small."""
    decisions, added, wrong = 0, 0, 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        weights = rng.uniform(0.2, 3.0, 60) if seed % 2 else None
        _, _, base = problem(classes, n=60, d=150, seed=seed, dense=seed % 3 == 0, gamma=0.04, weights=weights)
        for share, place in itertools.product((0.1, 0.3), (0.6, 0.15)):
            model = base.at(share * base.beta_max)
            start = place * model.alpha_max()
            exact = solved(model, start)
            theta = np.clip(exact.theta + 1e-3 * rng.normal(size=model.ones.size), 0.0, 1.0) * (model.free == 0)
            rough = model.certify(start, 1.01 * exact.w, theta)
            for ratio in (0.97, 0.9):
                best = solved(model, ratio * start)
                for reference in (exact, rough):
                    found = screen(model, reference, ratio * start, True, True, True)
                    balls = screen(model, reference, ratio * start, True, True, True, alone=False)
                    count, before = (np.sum(at.keep == 0) + np.sum(at.duals != 0) for at in (found, balls))
                    decisions, added = decisions + count, added + count - before
                    sure = best.theta * (model.free == 0)
                    wrong += np.sum((found.keep == 0) & (np.abs(best.w) > 1e-7))
                    wrong += np.sum((found.duals < 0) & (sure > 1e-5))
                    wrong += np.sum((found.duals > 0) & (sure < 1.0 - 1e-5))
    return decisions, added, wrong


@pytest.mark.parametrize("classes", [2, 4])
def test_moves_decide_what_the_balls_do_not_and_nothing_wrongly(classes):
    decisions, added, wrong = with_moves(classes, range(3))
    assert wrong == 0 and added > 200, (decisions, added, wrong)


def test_the_attack_finds_a_budget_that_is_too_small(monkeypatch):
    whole = move.pair_to_move
    monkeypatch.setattr(move, "pair_to_move", lambda *given: whole(*given[:5], 0.01 * given[5], given[6]))
    assert with_moves(2, range(2))[2] > 0


@pytest.mark.parametrize("classes", [2, 3])
def test_order_of_the_triggerings_does_not_matter(classes):
    """Hong 2019, Theorem 12."""
    _, _, base = problem(classes, n=80, d=60, seed=4)
    several = 0
    for share, ratio in itertools.product((0.1, 0.3, 0.6), (0.97, 0.9, 0.8)):
        model = base.at(share * base.beta_max)
        start = 0.5 * model.alpha_max()
        reference = solved(model, start)
        one = screen(model, reference, ratio * start, True, True, True)
        two = screen(model, reference, ratio * start, True, True, False)
        np.testing.assert_array_equal(one.keep, two.keep)
        np.testing.assert_array_equal(one.duals, two.duals)
        several += one.record.shape[0] > 2
    assert several > 0  # some of them needed the alternation


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_partial_norms_are_those_of_the_survivors(classes, dense, dtype):
    X, y, base = problem(classes, n=80, d=60, seed=4)
    X = X.astype(dtype)
    base = SparseModel(Views(X if dense else sp.csr_array(X)), base.labels, base.classes, 0.0, base.gamma)
    square = X.astype(float) ** 2
    seen = set()
    for share, ratio, first in itertools.product((0.1, 0.6), (0.99, 0.8), (True, False)):
        model = base.at(share * base.beta_max)
        start = 0.5 * model.alpha_max()
        at = screen(model, solved(model, start), ratio * start, True, True, first)
        keep, real = at.keep.reshape(base.classes, -1), (at.duals == 0).reshape(base.classes, -1)
        if at.record[at.record[:, 1] >= 0].size and at.record[-1, 1] != 0:
            continue  # what the last triggering found is not subtracted any more
        last_features = np.flatnonzero(at.record[:, 1] > 0)
        last_samples = np.flatnonzero(at.record[:, 0] > 0)
        if last_features.size and at.record[last_features[-1] :, 0].max() >= 0:
            np.testing.assert_allclose(at.row_part.reshape(base.classes, -1), (square @ keep.T).T, atol=1e-11)
            seen.add("rows")
        if last_samples.size and at.record[last_samples[-1] :, 1].max() >= 0:
            if base.classes == 1:
                weights = real.astype(float)
            else:
                own = y == np.arange(classes)[:, None]
                weights = np.where(own, real.sum(axis=0), real)
            expected = weights @ square
            found = at.col_part.reshape(base.classes, -1)
            # Of a feature that is proven active the norm is left as it was, which is never too small.
            zero = (keep == 1) & (solved(model, ratio * start).w.reshape(keep.shape) == 0.0)
            np.testing.assert_allclose(found[zero], expected[zero], atol=1e-11)
            assert np.all(found[keep == 1] >= expected[keep == 1] - 1e-11)
            seen.add("columns")
    assert seen == {"rows", "columns"}


def test_exact_reference_gives_the_papers_balls():
    """With an exact reference and no conditioning ISS is Theorem 11 with the ball of Lemma 5."""
    X, y, base = problem(seed=2)
    model = base.at(0.3 * base.beta_max)
    start = 0.4 * model.alpha_max()
    alpha = 0.93 * start
    reference = solved(model, start)
    decided = screen(model, reference, alpha, True, False, True)
    signed = (2 * y - 1)[:, None] * X
    center = (start + alpha) / (2.0 * alpha) * reference.w
    radius = (start - alpha) / (2.0 * alpha) * np.linalg.norm(reference.w)
    upper = 1.0 - signed @ center + radius * np.linalg.norm(signed, axis=1)
    lower = 1.0 - signed @ center - radius * np.linalg.norm(signed, axis=1)
    clear = (np.abs(upper) > 1e-5) & (np.abs(lower - model.gamma) > 1e-5)  # away from ties
    np.testing.assert_array_equal((decided.duals < 0)[clear], (upper < 0.0)[clear])
    np.testing.assert_array_equal((decided.duals > 0)[clear], (lower > model.gamma)[clear])
    # IFS decides at least what Theorem 9 does: it has a second ball.
    only = screen(model, reference, alpha, False, True, True)
    c = (alpha - start) / (2.0 * model.gamma * alpha) + (start + alpha) / (2.0 * alpha) * reference.theta
    r = (start - alpha) / (2.0 * alpha) * np.linalg.norm(reference.theta - 1.0 / model.gamma)
    s = (np.abs(signed.T @ c) + np.linalg.norm(signed, axis=0) * r) / len(y)
    assert np.all(only.keep[s <= model.beta * (1.0 - 1e-4)] == 0)


@pytest.mark.parametrize("rule", ["sifs", "iss", "ifs", "gap", "sifs+gap", "none"])
@pytest.mark.parametrize("solver", ["newton", SDCA])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_rule_with_every_solver_reaches_the_same_optimum(rule, solver, classes):
    X, y, base = problem(classes, seed=5, dense=rule == "ifs")
    model = base.at(0.2 * base.beta_max)
    grid = model.alpha_max() * np.geomspace(1.0, 0.05, 6)
    rows, places = dual_rows(X, y, classes)
    found = walk(model, grid, parse_sparse_rule(rule), make_sparse_solver(solver), PathOptions(tol=1e-8))
    for step, certificate in found:
        assert step.status == "certified"
        theta, alpha = certificate.theta[places], step.parameters["alpha"]
        primal, dual = objectives(rows, len(y), certificate.w, theta, alpha, model.beta, model.gamma)
        assert primal - dual <= 1.01e-8 * primal
        assert step.n_survivors + step.screened_R + step.screened_L == places.size
