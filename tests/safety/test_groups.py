"""Screening of groups attacked: inexact references of every kind, judged by a solution without screening."""

import numpy as np
import pytest

from screenpath import sparse_svm_path
from screenpath.problem import groups as groups_of_model
from screenpath.problem.groups import Groups, group_model
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen import groups as rules
from screenpath.solve import groups as solver
from screenpath.solve.groups import GroupNewton
from screenpath.walk.loop import PathOptions, solve_point
from tests.width import wide

ACCURATE = PathOptions(1e-12, 10_000)


def problem(seed: int):
    """Return a random model at a ``beta`` with weights, and its generator."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 60)), int(rng.integers(4, 24))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + rng.choice([0.0, 0.5])
    y = np.where(X @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + rng.normal(size=n) > 0.0, 1, -1)
    y[:2] = 1, -1
    of = np.unique(rng.integers(0, max(d // int(rng.integers(1, 5)), 1), size=d), return_inverse=True)[1].ravel()
    groups = Groups(of, rng.uniform(0.5, 2.0, size=of.max() + 1), float(rng.choice([0.0, 0.3, 0.8])))
    weights = rng.choice([0.5, 1.0, 2.0], size=n) if seed % 3 == 0 else None
    gamma = float(rng.choice([0.1, 0.5, np.inf]))
    model = group_model(Views(X), y.astype(np.int64), gamma, weights, ("free", None)[seed % 2], groups)
    return model.at(model.beta_max * 10.0 ** rng.uniform(-1.3, -0.05)), rng


def solved(model, alpha: float, reference=None):
    reference = model.start(alpha) if reference is None else reference
    plain = rules.parse_group_rule("none")
    return solve_point(model, alpha, 0, reference, plain, GroupNewton(), ACCURATE)[1]


def references(model, alpha: float, rng):
    """Yield pairs: solutions elsewhere, rough ones, other multiples, and pairs of two different points."""
    for ratio in (1.02, 1.3, 3.0, 0.8):
        best = solved(model, ratio * alpha)
        yield best
        for noise in (1e-4, 1e-2, 0.1):
            w = best.w * (1.0 + noise * rng.normal(size=best.w.size))
            yield model.certify(ratio * alpha, w, None)
            theta = np.clip(best.theta + noise * rng.normal(size=best.theta.size), model.low, model.high)
            model.balance(best.scores, theta)
            yield model.certify(ratio * alpha, w * rng.uniform(0.8, 1.2), theta)


def unsafe_of(model, best, at, alpha: float) -> int:
    """Return the decisions that a solution's own gap disproves, by weights and dual variables, not by the rules."""
    far = np.sqrt(2.0 * best.gap / alpha) if alpha else 1e4 * best.gap / model.beta
    apart = np.sqrt(2.0 * model.n * best.gap / model.gamma / model.weights)
    wrong = np.sum((at.keep == 0) & (np.abs(best.w) > far))
    wrong += np.sum((at.duals < 0) & (best.theta - apart > model.low))
    return int(wrong + np.sum((at.duals > 0) & (best.theta + apart < model.high)))


def attack(seeds) -> tuple[int, int]:
    """Return how many decisions were taken, and how many were wrong."""
    decided = wrong = 0
    for seed in seeds:
        model, rng = problem(seed)
        alpha = 0.0 if seed % 5 == 4 else float(10.0 ** rng.uniform(-3, 0))
        best = solved(model, alpha) if alpha else solved(model, 0.0, model.start(0.01))
        assert best.gap <= 1e-9 * best.primal, seed
        for reference in references(model, alpha or 1e-4, rng):
            for what, paper in (((True, True), True), ((False, True), False), ((True, True), False)):
                at = rules.screen_groups(model, model.nothing_screened(), reference, alpha, what, paper)
                decided += int(np.count_nonzero(at.duals) + np.count_nonzero(at.keep == 0))
                wrong += unsafe_of(model, best, at, alpha)
    return decided, wrong


def test_no_decision_is_unsafe():
    decided, wrong = attack(range(wide(40, 400)))
    assert decided > wide(10_000, 100_000) and wrong == 0


def test_rows_without_weight_and_few_rows_are_no_obstacle():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(5, 12)), int(rng.integers(8, 24))
        X, weights = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-8, 0, 8]), rng.integers(0, 3, size=n).astype(float)
        weights[:2] = 1.0
        y = np.where(np.arange(n) % 2, -1, 1)
        groups = rng.integers(0, 3, size=d)
        path = sparse_svm_path(X, y, groups=groups, l1_share=0.5, betas=2, alphas=3, sample_weight=weights)
        assert all(step.status == "certified" for step in path.steps), seed


def test_a_reference_is_restored_byte_for_byte():
    for seed in range(6):
        model, _ = problem(seed)
        grid, best = SparseGrid(model), solved(model, 0.1)
        again = grid.restore(grid.state(best))
        assert (again.gap, again.primal, again.rounding) == (best.gap, best.primal, best.rounding)
        assert np.array_equal(again.scores, best.scores) and np.array_equal(again.u, best.u)


def test_copies_of_columns_are_asked_for_before_they_are_made(monkeypatch):
    """A limit that the columns of one working set would exceed is an error with what to do, not a larger process."""
    model, _ = problem(1)
    asked = []

    class Limit:
        def check(self, needed, what, hint):
            asked.append((needed, what, hint))

    for room in (solver, groups_of_model):
        monkeypatch.setattr(room, "in_force", Limit)
    solved(model, 0.1)
    copied = [needed for needed, what, _ in asked if what.endswith("columns of groups")]
    worked = [needed for needed, what, _ in asked if what.startswith("a working set of")]
    assert copied and min(copied) >= 16 * model.n and worked and min(worked) > 16 * model.n
    assert all("larger alpha" in hint for *_, hint in asked)


@pytest.mark.parametrize("name, part", [("primal_sq", 0.25), ("first_sq", 0.25), ("second_sq", 0.04)])
def test_with_a_smaller_radius_decisions_are_wrong(name, part, monkeypatch):
    """The last ball, moved to the reference's own point, has room beyond what these pairs need."""
    whole = rules.regions_of

    def smaller(*given, **more):
        found = whole(*given, **more)
        return found._replace(**{name: part * getattr(found, name)})

    monkeypatch.setattr(rules, "regions_of", smaller)
    assert attack(range(40))[1] > 0
