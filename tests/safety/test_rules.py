"""No rule is ever unsafe, and the papers' theorems hold at every grid point of every sample set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.audit import Audit
from screenpath.errors import UsageError
from screenpath.grid import log_grid
from screenpath.models.builders import lad_model, svm_model
from screenpath.path import PathOptions, far_end, solve_point, walk
from screenpath.prepare import prepare
from screenpath.read.libsvm import read_libsvm
from screenpath.rows.memory import MemoryRows
from screenpath.rules import STATIC, parse_rule
from screenpath.rules.box import BT2, DVI, ESSNSV, IT, SSNSV, pair_ball
from screenpath.solvers import make_solver
from tests.conftest import two_classes
from tests.safety.harness import EPOCHS, MODELS, STORAGES, attack


@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(MODELS),
    storage=st.sampled_from(STORAGES),
    rule=st.sampled_from(sorted(STATIC)),
    epochs=st.sampled_from(EPOCHS),
)
def test_no_decision_is_unsafe(seed, kind, storage, rule, epochs):
    assert attack(seed, kind, storage, rule, epochs)[1] == 0


def test_the_harness_sees_a_wrong_rule(monkeypatch):
    """A rule with half the radius must be caught, or the test above proves nothing."""
    from screenpath.geometry import Ball

    class Greedy(DVI):
        def region(self, model, reference, C):
            ball = pair_ball(reference, C)
            return Ball(ball.center, 0.3 * ball.radius)

    monkeypatch.setitem(STATIC, "dvi", Greedy)
    assert sum(attack(seed, "svm", "dense", "dvi", 400)[1] for seed in range(40)) > 0


def sample_models(samples):
    for name in ("breast_cancer", "wang_toy1", "wang_toy3", "diabetes"):
        data = read_libsvm(samples / f"{name}.libsvm")
        X, _ = prepare(data.X, "standard" if name in ("breast_cancer", "diabetes") else "none", 0.0, "dense")
        if name == "diabetes":
            yield name, lad_model(MemoryRows(X), (data.y - data.y.mean()) / data.y.std())
        else:
            yield name, svm_model(MemoryRows(X), np.where(data.y == data.y.max(), 1.0, -1.0))


def test_theorems_hold_at_every_grid_point(samples):
    grid = log_grid(1e-2, 10.0, 20)
    options, solver = PathOptions(tol=1e-9), make_solver("newton")
    for name, model in sample_models(samples):
        _, far = far_end(model, grid, solver, options)
        reference = model.start(grid[0])
        more = 0
        for k, C in enumerate(grid):
            status = {
                rule.name: model.screen(rule.region(model, reference, C, *([far] * rule.needs_far_end))).status
                for rule in (DVI(), BT2(), IT(), SSNSV(), ESSNSV())
            }
            for strong, weak in (("it", "dvi"), ("it", "bt2"), ("essnsv", "ssnsv")):
                kept = status[weak] != 0
                assert np.array_equal(status[strong][kept], status[weak][kept]), (name, k, strong, weak)
            more += np.count_nonzero(status["dvi"]) - np.count_nonzero(status["ssnsv"])
            _, reference = solve_point(model, C, k, reference, parse_rule("gap"), solver, options)
        assert more > 0  # Wang 2014, Fig. 2: DVI rejects far more than SSNSV


def test_the_gap_rule_rejects_all_that_is_strictly_inactive_in_the_end(samples):
    for name, model in sample_models(samples):
        _, exact = solve_point(
            model, 1.0, 0, model.start(1.0), parse_rule("gap"), make_solver("newton"), PathOptions(tol=1e-13)
        )
        ball = pair_ball(exact, 1.0)
        status = model.screen(ball).status
        strict = np.abs(model.c - exact.point.products) > 3.0 * ball.radius * model.norms + 1e-9
        assert strict.mean() > 0.5 and np.all(status[strict] != 0), name


@pytest.mark.parametrize("rule", ["bt2", "it", "ssnsv", "essnsv", "it+gap", "essnsv+gap"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_paths_agree_with_and_without_the_rule(rule, storage):
    from screenpath import svm_path

    X, y = two_classes()
    grid = log_grid(1e-3, 10.0, 12)
    path = svm_path(X, y, grid=grid, rule=rule, storage=storage, tol=1e-8)
    plain = svm_path(X, y, grid=grid, rule="none", solver="cd", tol=1e-8)
    assert path.certified
    for a, b in zip(path.steps, plain.steps, strict=True):
        assert a.dual <= b.primal * (1 + 1e-13) and b.dual <= a.primal * (1 + 1e-13)
    if "ssnsv" in rule:
        assert path.steps[0].init_s > 0.0 and path.steps[1].init_s == 0.0


@pytest.mark.parametrize("rule", ["ssnsv", "essnsv", "essnsv+gap"])
@pytest.mark.parametrize("form", ["C", "s"])
@pytest.mark.parametrize("chunk", [1, 3, 50])
def test_one_rule_for_a_chunk_is_safe_and_agrees(rule, form, chunk):
    for seed in range(3):
        X, y = two_classes(90, 4, seed=seed, noise=1.0 + seed)
        model = svm_model(MemoryRows(X), y)
        grid, options = log_grid(1e-3, 10.0, 14), PathOptions(tol=1e-8)
        audit = Audit(make_solver("newton"), options)
        checked = PathOptions(tol=1e-8, audit=audit)
        found = list(walk(model, grid, parse_rule(rule, chunk, form), make_solver("cd"), checked))
        assert [step.status for step, _ in found] == ["certified"] * 14
        assert sum(step.extras["unsafe"] for step, _ in found) == 0


def test_the_line_search_is_worth_its_name():
    """A point nearer than the far end makes the dome smaller: more rows are screened early on the path."""
    X, y = two_classes(200, 4, seed=1)
    grid, options = log_grid(1e-2, 1e3, 60), PathOptions(tol=1e-9)
    rows = MemoryRows(X)

    def screened(chunk):
        found = walk(svm_model(rows, y), grid, parse_rule("essnsv", chunk), make_solver("newton"), options)
        return np.array([step.screened_R + step.screened_L for step, _ in found])

    assert screened(1)[:30].sum() > screened(None)[:30].sum()


def test_heuristic_is_certified_however_wrong_it_guesses():
    for seed in range(4):
        X, y = two_classes(120, 5, seed=seed, noise=2.0)
        grid = [0.001, 0.1, 100.0]  # far apart: many guesses are wrong
        model = svm_model(MemoryRows(X), y)
        found = list(walk(model, grid, parse_rule("heuristic"), make_solver("newton"), PathOptions(tol=1e-8)))
        plain = list(walk(model, grid, parse_rule("none"), make_solver("newton"), PathOptions(tol=1e-8)))
        assert all(step.status == "certified" for step, _ in found)
        for (a, _), (b, _) in zip(found, plain, strict=True):
            assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)
    assert any(step.rounds > 1 for step, _ in found)


def test_rules_that_cannot_be_combined_are_named():
    for text, chunk in (("dvi", 5), ("none", 2), ("heuristic+gap", None), ("dvi+it", None), ("fast", None)):
        with pytest.raises(UsageError):
            parse_rule(text, chunk)
    with pytest.raises(UsageError, match="at least 1 grid point"):
        parse_rule("ssnsv", 0)
    with pytest.raises(UsageError, match="unknown form"):
        parse_rule("ssnsv", 2, "z")
