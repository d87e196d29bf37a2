"""No rule decides a row that the optimum contradicts, whatever the reference; and the search would notice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.regions.geometry import Ball
from screenpath.screen import box as rules
from screenpath.screen import pathwise
from tests.safety import fuzz as search
from tests.safety import fuzz_dynamic
from tests.safety.problems import ACCURACIES, dense_rows, optimum, random_problem, random_scale, reference
from tests.width import wide


@settings(max_examples=wide(6, 15), deadline=None)
@given(seed=st.integers(10**6, 2 * 10**6))
def test_no_rule_is_unsafe(seed):
    seen = set()
    for rule, accuracy, _, faults, words in search.check_problem(seed):
        seen.add((rule, accuracy))
        assert faults == 0, f"{rule} from a reference of accuracy '{accuracy}' ({words}, seed {seed})"
    assert {rule for rule, _ in seen} == set(search.RULES)
    assert {accuracy for _, accuracy in seen} == set(ACCURACIES)


def test_the_driver_counts():
    least = 45 * len(search.RULES)  # two problems
    done, decided, faults = search.fuzz(least, seed=3)
    assert sum(done.values()) >= least
    assert min(decided[rule] for rule in search.RULES if rule != "loss floor") > 0
    assert faults == []


def test_the_driver_counts_under_a_free_intercept():
    count = wide(30, 300)
    made, faults = fuzz_dynamic.fuzz(fuzz_dynamic.INTERCEPT, count, seed=1000)
    assert min(made[rule] for rule in fuzz_dynamic.INTERCEPT) >= count and faults == []


def finds_with(monkeypatch, module, name, broken, rule) -> bool:
    monkeypatch.setattr(module, name, broken)
    return search.finds(rule, 8000, seed=50)


def test_the_search_finds_a_radius_that_is_too_small(monkeypatch):
    right = rules.pair_radius
    assert finds_with(monkeypatch, rules, "pair_radius", lambda *a: 0.98 * right(*a), "dvi")


def test_the_search_finds_the_formula_for_exact_references(monkeypatch):
    def printed(near, C):
        ratio = C / near.C
        radius = 0.5 * abs(ratio - 1.0) * np.sqrt(near.point.sqnorm)
        return Ball(near.point.scaled(0.5 * (1.0 + ratio)), float(radius))

    assert finds_with(monkeypatch, rules, "pair_ball", printed, "dvi")


@pytest.mark.parametrize(("rule", "wrong"), [("loss floor", 1.001), ("chunk C", 1.2)])
def test_the_search_finds_a_loss_that_is_not_proven(monkeypatch, rule, wrong):
    right = pathwise.loss_floor
    module = search if rule == "loss floor" else pathwise
    assert finds_with(monkeypatch, module, "loss_floor", lambda *a: max(right(*a) * wrong, 1e-3), rule)


def test_the_search_finds_decisions_whose_far_point_is_not_proven(monkeypatch):
    """The s-form guesses the loss of its far point; the gap may be met before anybody has looked at the proof."""

    def believing(self, model, certificate, screened, decided):
        return screened, decided

    assert finds_with(monkeypatch, pathwise.Pathwise, "proven", believing, "chunk s")


def test_the_search_finds_a_far_end_that_is_taken_as_exact(monkeypatch):
    right = rules.feasible_dome

    def careless(near, far, parameters, enhanced):
        return right(near, Ball(far.center, 0.0), parameters, enhanced)

    assert finds_with(monkeypatch, rules, "feasible_dome", careless, "ssnsv")


def test_the_optima_are_accurate_enough_to_contradict():
    shares = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model, _ = random_problem(rng)
        C = random_scale(rng, model)
        truth = optimum(model, dense_rows(model), C)
        shares.append(float(truth.radius / (np.linalg.norm(truth.center.astype(float)) + 1e-300)))
        ball = rules.pair_ball(reference(rng, model, C, "1e-12"), C)
        assert np.linalg.norm((truth.center - ball.center.vector).astype(float)) <= ball.radius + truth.radius
    assert np.median(shares) < 1e-6
