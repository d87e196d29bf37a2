"""No rule is ever unsafe, and the papers' theorems hold at every grid point of every sample set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
        far = far_end(model, grid, solver, options)
        reference = model.start(grid[0])
        more = 0
        for k, C in enumerate(grid):
            status = {
                rule.name: model.screen(rule.region(model, reference, C)).status
                for rule in (DVI(), BT2(), IT(), SSNSV(far), ESSNSV(far))
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
        assert path.steps[0].extras["init_s"] > 0.0 and path.steps[1].extras["init_s"] == 0.0


def test_far_end_rules_refuse_the_way_back():
    X, y = two_classes()
    model = svm_model(MemoryRows(X), y)
    options, solver = PathOptions(), make_solver("newton")
    found = walk(model, [1.0, 0.5], parse_rule("ssnsv"), solver, options)
    with pytest.raises(UsageError, match="rule ssnsv needs a reference below"):
        list(found)
