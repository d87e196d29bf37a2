"""Chunks under a free intercept: what is decided once holds at every C of the range, whatever reference and far end."""

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, SVM
from screenpath.regions import lever
from screenpath.regions.lever import LeverRange, RangeLevers
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule, pathwise
from screenpath.screen.pathwise import Dual, ball_floor, loss_floor, nearer_pair, primal_value
from screenpath.solve.newton import Newton
from screenpath.walk.loop import Audit, PathOptions, contradicted, solve_point, walk
from tests.conftest import two_classes
from tests.free_problems import cone_solution, free_walk
from tests.safety.test_intercept import (
    ACCURACIES,
    SURE,
    accurate,
    agreed,
    contradictions,
    drawn,
    hostile,
    reference,
    truth_of,
)
from tests.width import wide

WITHIN = (0.0, 0.03, 0.5, 1.0)  # of the way from one end of a range to the other, by ratio


def optimum(model, C: float):
    return truth_of(model, accurate(model, C))


SPANS = (0.3, 0.9), (0.6, 1.0), (0.9, 1.1), (1.0, 1.0), (1.05, 1.2), (1.0, 1.5), (1.5, 4.5)  # of the pair's own C


def attack_ranges(seeds, spans=SPANS) -> tuple[int, int]:
    """Return decisions by levers that are to hold over a range of C, and those that are wrong somewhere in it."""
    made = wrong = 0
    for seed in seeds:
        rng, model, C0 = drawn(seed)
        low, high = (C0 * end for end in spans[rng.integers(len(spans))])
        truths = [optimum(model, low * (high / low) ** share) for share in WITHIN]
        for accuracy in ACCURACIES:
            found = model.screen(LeverRange(reference(rng, model, C0, accuracy), low, high))
            made += found.n_R + found.n_L
            wrong += sum(contradictions(model, found.status, truth) for truth in truths if truth is not None)
    return made, wrong


def far_end(rng, model, C: float):
    """Return a pair at C, rough or accurate."""
    return reference(rng, model, C, str(rng.choice(ACCURACIES)))


def attack_walks(seeds, form: str, dynamic_share: float = 0.3) -> tuple[int, int]:
    """Return what the steps of chunks claim to have decided, proven or withdrawn, and what is wrong of it.

    The walks end however they may: by a loose tolerance, or out of epochs.
    """
    made = wrong = 0
    for seed in seeds:
        rng, model, C0 = drawn(seed)
        grid = C0 * np.cumprod(rng.choice([1.0, 1.03, 1.3, 2.0], size=5))
        truths = [optimum(model, C) for C in grid]
        if None in truths:
            continue
        rule = str(rng.choice(["ssnsv", "essnsv"])) + ("+gap" if rng.random() < dynamic_share else "")
        screening, claims = parse_rule(rule, int(rng.integers(1, 5)), form), []
        screening.begin(grid, far_end(rng, model, grid[-1] * rng.uniform(1.0, 2.0)), resumed=False)
        near = reference(rng, model, C0, str(rng.choice(ACCURACIES)))
        options = PathOptions(
            tol=float(rng.choice([0.1, 1e-2, 1e-3, 1e-6])), max_epochs=int(rng.choice([1, 5, 400])),
            audit=lambda *arguments, claims=claims: claims.append(arguments[-1]) or {},
        )  # fmt: skip
        for rank, (C, truth) in enumerate(zip(grid, truths, strict=True)):
            step, near = solve_point(model, C, rank, near, screening, Newton(), options)
            made += int(np.count_nonzero(claims[-1]))
            wrong += contradictions(model, claims[-1], truth)
            if not screening.dynamic:
                wrong += (step.screened_R, step.screened_L) != tuple(np.count_nonzero(claims[-1] == k) for k in (-1, 1))
    return made, wrong


def test_a_grid_point_that_is_there_twice_lengthens_no_chunk():
    made, wrong = attack_walks([2682, 7001658, 7001747], "C")
    assert made > 200 and wrong == 0


def attack_floors(seeds) -> tuple[int, int]:
    """Return how many lower bounds of the loss at an optimum were found, and how many of them are above it."""
    found = wrong = 0
    for seed in seeds:
        rng, model, C0 = drawn(seed)
        C = C0 * float(rng.choice([1.0, 1.05, 1.5, 3.0]))
        truth = optimum(model, C)
        if truth is None:
            continue
        most = truth[2].xi + SURE * float(np.maximum(-model.lo, model.hi) @ (truth[1] - truth[0]))
        for accuracy in ACCURACIES:
            near, far = reference(rng, model, C0, accuracy), far_end(rng, model, C * rng.uniform(1.0, 2.0))
            pair, further = nearer_pair(model, near, far, C)
            primal = min(primal_value(near, C), primal_value(far, C))
            made = ball_floor(pair, further, Dual.of(near), Dual.of(far))
            floor = max(loss_floor(near, C, primal), loss_floor(far, C, primal), made)
            found += floor > 0.0
            wrong += floor > most
    return found, wrong


def test_no_decision_by_levers_is_wrong_within_its_range():
    count = wide(20, 60)
    made, wrong = attack_ranges(range(count))
    assert made > 50 * count and wrong == 0


@pytest.mark.parametrize("broken", ["radius", "lower end alone", "upper end alone"])
def test_the_attack_finds_levers_that_are_nearly_right(monkeypatch, broken):
    radius, shows = lever._radius, RangeLevers.shows
    if broken == "radius":
        monkeypatch.setattr(lever, "_radius", lambda *given: 0.95 * radius(*given))
    else:

        def at_one_end(self, k, rows, apart, norms, low, high, kinks=0.0):
            end = low if broken.startswith("lower") else high
            return shows(self, k, rows, apart, norms, end, end, kinks)

        monkeypatch.setattr(RangeLevers, "shows", at_one_end)
    spans = {"lower end alone": [(1.05, 5.0)], "upper end alone": [(0.2, 0.95)]}.get(broken, SPANS)
    assert any(attack_ranges([seed], spans)[1] for seed in range(60))


def nothing(self, model, products):
    """Return what levers decide that decide nothing."""
    return np.zeros(model.size, dtype=np.int8)


@pytest.mark.parametrize("form", ["C", "s"])
def test_no_step_of_a_chunk_claims_what_is_wrong(form):
    count = wide(20, 60)
    made, wrong = attack_walks(range(count), form)
    assert made > 50 * count and wrong == 0


def test_domes_alone_claim_nothing_wrong_either(monkeypatch):
    """Levers decide so much that little is left to see of the domes beside them."""
    monkeypatch.setattr(pathwise.LeverRange, "decide", nothing)
    count = wide(20, 60)
    for form in "Cs":
        made, wrong = attack_walks(range(count), form)
        assert made > wide(15, 33) * count and wrong == 0


def test_the_attack_finds_a_loss_that_is_not_proven(monkeypatch):
    monkeypatch.setattr(pathwise.LeverRange, "decide", nothing)
    with monkeypatch.context() as patch:
        patch.setattr(pathwise, "loss_floor", lambda *given: max(1.2 * loss_floor(*given), 1e-3))
        assert any(attack_walks([seed], "C")[1] for seed in range(60))
    # The s-form proves its loss later, or gives up what it decided, however wrong the guess.
    monkeypatch.setattr(pathwise.Pathwise, "_guessed_floor", lambda self, found, C: found.xi)
    assert attack_walks(range(wide(12, 100)), "s")[1] == 0
    monkeypatch.setattr(pathwise.Pathwise, "proven", lambda self, model, found, screened, decided: (screened, decided))
    assert any(attack_walks([seed], "s")[1] for seed in range(100))


def test_the_loss_of_an_optimum_is_not_below_its_bounds(monkeypatch):
    count = wide(20, 60)
    found, wrong = attack_floors(range(count))
    assert found > 3 * count and wrong == 0
    radius = pathwise.pair_radius
    monkeypatch.setattr(pathwise, "pair_radius", lambda *given: 0.9 * radius(*given))
    assert any(attack_floors([seed])[1] for seed in range(60))


@pytest.mark.parametrize("form", ["C", "s"])
def test_the_decisions_are_those_of_an_interior_point_method(form):
    made, count = 0, wide(6, 12)
    for seed in range(count):
        rng, model, C0 = drawn(seed)
        grid = C0 * np.array([1.0, 1.05, 1.2, 1.5])
        screening = parse_rule("essnsv", 3, form)
        screening.begin(grid, reference(rng, model, grid[-1], "1e-11"), resumed=False)
        near = reference(rng, model, C0, "1e-4" if seed % 2 else "1e-11")
        screening.before(model, near, grid[0])
        for C in grid[1:]:
            status, (_, t) = screening.before(model, near, C).status, cone_solution(model, C)
            size = SURE * (1.0 + np.abs(model.c) + model.norms * np.sqrt(near.point.sqnorm))
            wrong = (((status < 0) & (t > size)) | ((status > 0) & (t < -size))) & (model.lo < model.hi)
            assert not (wrong.any() and screening.floor == -np.inf), (seed, C)
            made += np.count_nonzero(status)
    assert made > 16 * count


def test_levers_decide_more_than_the_interval_of_a_chunk(monkeypatch):
    X, y = two_classes(200, 4, seed=1)
    model, grid = SVM.model(MemoryRows(X), y, None, "free"), np.geomspace(1e-2, 10.0, 40)

    def decided():
        found = walk(model, grid, parse_rule("essnsv", 4), Newton(), PathOptions(tol=1e-8))
        return sum(step.screened_R + step.screened_L for step, _ in found)

    both = decided()
    monkeypatch.setattr(pathwise.LeverRange, "decide", nothing)
    assert both > 1.2 * decided()


def test_balls_of_no_size_are_no_trouble():
    """The optimum is known beforehand, for all C: a lever of nothing divides by nothing."""
    X = np.random.default_rng(0).normal(size=(9, 2))
    met = LAD.model(MemoryRows(X), np.full(9, 3.0), None, "free")  # by the intercept alone
    middle = SVM.model(MemoryRows(np.array([[0.0], [-1.0], [1.0], [-2.0], [2.0]])), [1.0, -1, -1, -1, -1], None, "free")
    for model in (met, middle):
        grid = np.geomspace(0.01, 10.0, 6)
        found = list(walk(model, grid, parse_rule("essnsv", 3), Newton(), PathOptions(tol=1e-8)))
        assert all(step.status == "certified" for step, _ in found)


def test_chunks_of_hostile_problems_agree_and_are_safe():
    audit, decided = Audit(Newton(), PathOptions(tol=1e-6, max_epochs=2000), contradicted), 0
    options = PathOptions(tol=1e-6, max_epochs=3000, audit=audit)
    count = wide(16, 40)
    for seed in range(count):
        model, C = hostile(seed)
        grid = [0.7 * C, C, 1.03 * C, 1.1 * C, 3.0 * C][:: 1 if seed % 3 else -1]
        screening = parse_rule("essnsv+gap" if seed % 2 else "ssnsv", 3, "Cs"[seed % 4 // 2])
        with np.errstate(all="ignore"):
            found = list(walk(model, grid, screening, Newton(), options))
            unscreened = free_walk(model, grid, "none", tol=1e-6, max_epochs=3000)
        decided += agreed(found, unscreened, seed)
    assert decided > 25 * count
