"""What a step counts and claims: each number from numbers that are known, none of which could stand for another."""

import math
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.catalogue.losses import LOSSES, SVM
from screenpath.errors import UsageError
from screenpath.problem.box_types import Screened
from screenpath.problem.grid import EpsilonGrid
from screenpath.regions.geometry import Ball, Point
from screenpath.rows.memory import MemoryRows
from screenpath.screen import Screening, parse_rule
from screenpath.solve import make_solver
from screenpath.solve.base import Solution, Solver
from screenpath.walk import loop, point
from screenpath.walk import step as steps
from screenpath.walk.loop import (
    OBJECTIVE_ROUNDING,
    SHARPER,
    Audit,
    PathOptions,
    batches,
    contradicted,
    far_end,
    restore_walk,
    walk,
    walk_state,
)
from screenpath.walk.one_vs_rest import OneVsOne, OneVsRest, joined, walk_classes
from screenpath.walk.point import best_known, solve_point
from screenpath.walk.step import Step, at_point, bytes_of, verdict
from tests.conftest import two_classes

SUMS = (  # of the classes of one-vs-rest
    "primal", "dual", "gap", "gap_target", "n_R", "n_L", "n_E", "screened_R", "screened_L", "n_survivors", "nnz_w",
    "n_features_screened", "epochs", "passes", "screen_s", "solve_s", "certify_s", "init_s",
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NOTHING = Screening(None, False, "none")
PART = {name: 10.0 ** (k % 7) + k for k, name in enumerate(SUMS)}


def a_step(**changes):
    names = {
        "step": 3, "parameters": {"C": 2.0}, "status": "certified", "rel_gap": 0.1, "rejection_ratio": 0.5,
        "screening_rate": 0.6, "solver": "newton", "rounds": 1, "coefficients": np.zeros(2),
    }  # fmt: skip
    cells = {**PART, **names, "reason": "", **changes}
    parameters, extras, weights = cells.pop("parameters"), cells.pop("extras", {}), cells.pop("coefficients")
    return Step({**cells, **parameters, **extras}, tuple(parameters), weights)


def changed(step, **cells):
    return Step({**step.cells, **cells}, step.names, step.coefficients)


def test_a_step_of_all_classes_adds_up_and_takes_the_worst():
    parts = [
        a_step(rounds=2, rel_gap=0.3, extras={"unsafe": 1, "audit_rel_gap": 0.5, "seen": 2}),
        a_step(rounds=4, rel_gap=0.2, extras={"unsafe": 3, "audit_rel_gap": 0.25, "seen": 5}, solver="cd",
               **{name: 3.0 * value for name, value in PART.items()}),
    ]  # fmt: skip
    found = joined(parts)
    for name, value in PART.items():
        assert getattr(found, name) == 4.0 * value, name
    screened, ends = found.screened_R + found.screened_L, found.n_R + found.n_L
    assert found.rejection_ratio == screened / (ends + found.n_E) and found.screening_rate == screened / ends
    assert (found.rel_gap, found.rounds, found.solver, found.step) == (0.3, 4, "newton/cd", 3)
    assert found.extras == {"unsafe": 4, "audit_rel_gap": 0.5, "seen": 7}
    assert (found.status, found.reason) == ("certified", "")
    sparse = a_step(n_features_screened=2, nnz_w=1, coefficients=np.zeros(6))  # five features and an intercept
    features = joined([sparse] * 2, of_features=True, shares=[0.25, 0.5])
    assert (features.rejection_ratio, features.screening_rate) == (0.4, 0.5)
    assert features.passes == 0.75 * PART["passes"]
    none = joined([a_step(n_R=0, n_L=0), a_step(n_R=0, n_L=0)])
    assert none.screening_rate == 0.0
    bad = changed(parts[1], status="budget", reason="b", rel_gap=0.1), changed(parts[1], status="failed", reason="f")
    assert (joined([parts[0], bad[0]]).status, joined([parts[0], bad[0]]).reason) == ("budget", "b")
    for order in (bad, bad[::-1]):  # the larger gap names the reason
        assert (joined([*order, parts[0]]).status, joined(order).reason) == ("failed", "f")


def test_classes_are_numbered_from_0_and_each_is_the_positive_one_of_its_model():
    codes = np.array([2, 0, 1, 2, 0])
    model = OneVsRest(LOSSES["svm"].model, MemoryRows(np.ones((5, 1))), codes)
    assert [one.signs.tolist() for one in model.parts] == [np.where(codes == k, 1, -1).tolist() for k in range(3)]


def test_classes_go_on_from_their_own_references():
    X, _ = two_classes(40, 3)
    model, grid = OneVsRest(LOSSES["svm"].model, MemoryRows(X), np.arange(40) % 3), np.array([0.01, 0.1])
    how = parse_rule("dvi"), make_solver("newton"), PathOptions(tol=1e-6)
    (start, first), (whole, _) = walk_classes(model, grid, *how)
    assert start.passes == pytest.approx(sum(next(walk(part, grid, *how))[0].passes for part in model.parts))
    rest = list(walk_classes(model, grid, *how, reference=first, first=1))
    assert len(rest) == 1 and rest[0][0].step == 1
    np.testing.assert_array_equal(rest[0][0].coefficients, whole.coefficients)
    poor = [one.certify(0.05, np.ones(3), np.zeros(40)) for one in model.parts]
    other = list(walk_classes(model, grid, *how, reference=poor, first=1))[0][0]
    assert (other.screened_R, other.screened_L) != (whole.screened_R, whole.screened_L)


def test_seconds_and_rows_are_those_since_the_clock_was_made(monkeypatch):
    now = iter([100.0, 100.5, 102.5, 110.5, 111.5])
    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(now))
    rows = SimpleNamespace(touched=70)
    clock = point._Clock(rows)
    for phase in ("solve", "certify", "screen", "solve"):
        clock.enter(phase)
    assert clock.seconds == {"screen": 0.5 + 1.0, "solve": 2.0, "certify": 8.0}
    rows.touched += 30
    assert clock.rows.touched == clock.stop() == 30
    assert rows.touched == 100


def test_bytes_have_a_column_where_rows_count_them():
    assert bytes_of(SimpleNamespace(read=None, moved=None)) == {}
    assert bytes_of(SimpleNamespace(read=0, moved=None)) == {"bytes_read": 0}
    assert bytes_of(SimpleNamespace(read=7, moved=9)) == {"bytes_read": 7, "bytes_moved": 9}


@pytest.mark.parametrize("before", [0, 0.7, 1e9 + 1 / 3])
def test_fractions_of_rows_add_up_alike_whatever_came_before(before):
    """A run that was resumed counts the passes of a step as one that was not stopped: to the last digit."""
    rows = SimpleNamespace(touched=before, moved=None)
    clock = point._Clock(rows)
    for _ in range(3):
        rows.touched += 0.1
    assert clock.stop() == 0.1 + 0.1 + 0.1 and rows.touched >= before


def model_of(n=30, noise=1.0, **more):
    X, y = two_classes(n, 3, noise=noise, **more)
    return SVM.model(MemoryRows(X), y)


def a_record(model, certificate, **extras):
    screened, work = Screened(np.zeros(30, np.int8), 3, 4), {"solver": "cd", "epochs": 7, "rounds": 2}
    seconds = {"screen": 1.0, "solve": 20.0, "certify": 300.0}
    judged = verdict(certificate, 1e-3)
    return at_point(model, 0.5, 4, certificate, screened, 1e-3, judged, work, 45.0, seconds, extras)


def test_a_record_holds_what_it_is_told():
    model = model_of()
    certificate = replace(model.start(0.5), primal=8.0, gap=1e-4, primal_error=0.0, rounding=0.0)
    found = a_record(model, certificate)
    assert (found.gap_target, found.passes, found.seconds) == (8e-3, 1.5, 321.0) and found.extras == {}
    assert changed(found, init_s=4000.0).seconds == 4321.0
    assert a_record(model, certificate, more=1).extras == {"more": 1}
    assert (found.status, found.reason) == ("certified", "")
    counts = model.counts
    model.counts = lambda *a: {**counts(*a), "extras": {"own": 2}}
    assert a_record(model, certificate).extras == {"own": 2}
    assert a_record(model, certificate, more=1).extras == {"own": 2, "more": 1}
    model.rows.n = 0
    assert a_record(model, certificate).passes == 45.0
    unmet = replace(certificate, gap=1.0)
    assert verdict(unmet, 1e-3, spent=True)[0] == steps.BUDGET and verdict(unmet, 1e-3)[0] == steps.ROUNDING
    assert verdict(unmet, 1e-3, broken="b") == (steps.FAILED, "b")
    assert verdict(replace(unmet, gap=math.nan), 1e-3) == (steps.FAILED, steps.OVERFLOW)
    assert verdict(unmet, 1e-3)[1] == steps.STUCK and verdict(unmet, 1e-3, settled=True)[1] == steps.DISAGREE
    assert verdict(replace(unmet, gap=math.inf, rounding=math.inf), 1e-3)[0] == steps.FAILED
    assert verdict(replace(unmet, rounding=1.0), 1e-3, spent=True)[0] == steps.ROUNDING
    assert verdict(replace(unmet, gap=math.inf, primal=math.inf), 1e-3) == (steps.FAILED, steps.OVERFLOW)


class Scripted(Solver):
    """A solver that leaves the start where it is until its turn comes, and says what it is told."""

    name = "scripted"

    def __init__(self, good=math.inf, epochs=5):
        self.good, self.epochs, self.asked = good, epochs, []

    def solve(self, reduced, *, tol, budget, dynamic, rank):
        self.asked.append((tol, budget.epochs, dynamic, reduced.size))
        if len(self.asked) >= self.good:
            found = make_solver("newton").solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
            return replace(found, epochs=self.epochs, touched=1000.0)
        w = np.zeros_like(reduced.start_w)
        return Solution(w, reduced.start_alpha.copy(), self.epochs, 1000.0, False, 0, self.name)


def test_rounds_epochs_and_targets():
    model = model_of(noise=2.0)
    solver = Scripted(good=3)
    before = model.rows.touched
    step, _ = solve_point(model, 1.0, 0, model.start(1.0), NOTHING, solver, PathOptions(tol=1e-6, max_epochs=100))
    assert (step.status, step.rounds, step.epochs, step.solver) == ("certified", 3, 15, "newton")
    targets, left, *_ = zip(*solver.asked, strict=True)
    np.testing.assert_allclose(targets, [0.8e-6, 0.8e-7, 0.8e-8])
    assert left == (100, 95, 90)
    own = model.rows.touched - before - 2 * 30  # the start's passes, before the clock was made
    assert own > 0 and step.passes == pytest.approx((3000.0 + own) / 30)
    solver = Scripted()
    step, _ = solve_point(model, 1.0, 0, model.start(1.0), NOTHING, solver, PathOptions(tol=1e-6))
    assert (step.rounds, len(solver.asked), step.status) == (point.MAX_ROUNDS, point.MAX_ROUNDS, "rounding")
    for limits in ({"max_epochs": 10}, {"deadline": time.monotonic() - 1.0}):
        solver = Scripted()
        step, _ = solve_point(model, 1.0, 0, model.start(1.0), NOTHING, solver, PathOptions(tol=1e-6, **limits))
        assert step.status == "budget" and len(solver.asked) == (2 if "max_epochs" in limits else 1)
    easy = model.closed_until * 0.5
    step, _ = solve_point(model, easy, 0, model.start(1.0), NOTHING, Scripted(), PathOptions())
    assert (step.solver, step.epochs, step.rounds) == ("closed-form", 0, 1)


def test_a_pair_that_meets_its_gap_is_not_sharpened():
    model = model_of()
    asked = []
    model.sharpened = lambda certificate, tol: asked.append(tol) or certificate
    solve_point(model, 0.5, 0, model.start(0.5), NOTHING, make_solver("newton"), PathOptions(tol=1e-6))
    assert asked == []
    plain = model.certify
    model.certify = lambda *a: replace(found := plain(*a), gap=found.gap + 1.0, rounding=1.0)
    step, _ = solve_point(model, 0.5, 0, model.start(0.5), NOTHING, make_solver("newton"), PathOptions(tol=1e-6))
    assert asked[0] == 1e-6 and step.status == "rounding"


def test_rounding_is_bounded_anew_where_it_hides_something():
    asked = []
    plain = SimpleNamespace(primal=1.0, primal_error=0.0, gap=1.0, rounding=0.0)

    def sharpened(refines, **changes):
        asked.clear()
        model = SimpleNamespace(refines=refines, sharpened=lambda certificate, tol: asked.append(tol) or "sharp")
        certificate = SimpleNamespace(**{**vars(plain), **changes})
        found = point._sharp(model, certificate, 1e-3)
        assert found == "sharp" if asked else found is certificate
        return asked == [1e-3]

    for refines in (False, True):
        assert not sharpened(refines, gap=1e-4, rounding=1e-4)  # met as it is
        assert sharpened(refines, rounding=0.9999)  # met but for rounding
        assert sharpened(refines, rounding=0.6) == refines  # a solver that goes on from it may see more
        assert not sharpened(refines, rounding=0.4) and not sharpened(refines, gap=math.inf, rounding=math.inf)

    blurred = SimpleNamespace(**{**vars(plain), "gap": 1e-5, "primal_error": 0.1})
    for error, gap, better in ((0.05, 1e-5, True), (0.2, 1e-5, False), (0.05, 1.0, False)):
        found = SimpleNamespace(**{**vars(plain), "gap": gap, "primal_error": error})
        kept = point._sharp(SimpleNamespace(sharpened=lambda *given, found=found: found), blurred, 1e-3)
        assert kept is (found if better else blurred)
    polished = SimpleNamespace(polished=lambda reference, C, gap: asked.append((C, gap)), refines=False)
    asked.clear()
    for C in (0.5, 1.0, 2.0):
        assert point._polished(polished, C, SimpleNamespace(primal=-4.0, at=(1.0,)), 1e-3) is None
    assert asked == [(2.0, pytest.approx(point.HELD * 4e-3))]


def test_a_point_under_way_aims_lower_for_its_answer_and_counts_what_it_touched():
    at, budgets = object.__new__(point._Point), []
    at.clock = SimpleNamespace(enter=lambda phase: None, rows=SimpleNamespace(touched=5.0))
    at.options = PathOptions(tol=1e-3, max_epochs=30)
    at.model = at.certificate = at.reference = at.faces = at.decided = at.parameter = at.rank = None
    nothing = Screened(np.zeros(3, dtype=np.int8), 0, 0)
    at.screening = SimpleNamespace(corrected=lambda *given: nothing, dynamic=False)
    for rounds, target, aim in ((2, 9.0, 9.0), (point.MAX_ROUNDS - 1, 9.0, 8e-4), (point.MAX_ROUNDS - 1, 1e-9, 1e-9)):
        at.rounds, at.target, at.screened = rounds, target, None
        at.screen_again()
        assert at.target == pytest.approx(aim) and at.screened is nothing
    solution = Solution(None, None, 4, 7.0, True, 0, "x")
    at.solver = SimpleNamespace(solve=lambda reduced, budget, **how: budgets.append(budget) or solution)
    at.model = SimpleNamespace(reduce=lambda *given: None, lift=lambda *given: "pair", exact_until=None)
    at.epochs, at.touched = 11, 2.0
    assert at.solve() == "pair" and (at.epochs, at.touched) == (15, 9.0)
    assert (budgets[0].epochs, budgets[0].touched) == (19, 7.0)


def test_what_may_lose_to_zero_only_by_rounding_is_sharpened():
    model, asked = model_of(noise=2.0), []
    model.sharpened = lambda certificate, tol: asked.append(certificate) or certificate
    reference = model.start(0.5)
    zero = replace(model.fallbacks(0.5, reference)[0], gap=5.0)
    model.fallbacks = lambda parameter, reference: [zero, zero]
    for factor, gap, rounding, sharp in ((1.1, 2.0, 0.0, True), (0.9, 2.0, 1.5, True), (0.9, 2.0, 0.5, False),
                                         (1.1, math.inf, 0.0, False), (0.9, math.inf, math.inf, False)):  # fmt: skip
        asked.clear()
        mine = replace(zero, primal=factor * zero.primal, gap=gap, rounding=rounding)
        best_known(model, 0.5, mine, reference, 1e-6)
        assert (len(asked) == 1 and asked[0] is mine) if sharp else asked == []


@pytest.mark.parametrize("good", [1, 2])
def test_an_audit_sees_what_was_fixed_before_and_while_solving(good):
    """A second round of the dynamic rule screens all rows again; both count, what is undecided keeps what it was."""
    model, seen = model_of(60), []
    _, reference = solve_point(model, 0.3, 0, model.start(0.3), NOTHING, make_solver("newton"), PathOptions(tol=1e-8))

    class Again(Screening):
        def again(self, model, certificate, parameter):
            return Screened(np.r_[1, np.zeros(59)].astype(np.int8), 0, 1)

    dynamic = Again(parse_rule("dvi").static, True, "dvi+gap")
    solver, plain = Scripted(good=good), make_solver("newton").solve

    def solve(reduced, **how):
        solver.asked.append(how)
        if len(solver.asked) < good:
            return Solution(np.zeros(3), reduced.start_alpha.copy(), 5, 0.0, False, 0, "x")
        marks = np.zeros(reduced.size, dtype=np.int8)
        marks[1] = -1
        return replace(plain(reduced, **{**how, "dynamic": False}), decided=lambda: marks)

    solver.solve = solve
    options = PathOptions(tol=1e-6, audit=lambda *a: seen.append(a[-1]) or {"audited": 5})
    step, _ = solve_point(model, 0.31, 0, reference, dynamic, solver, options)
    first = dynamic.before(model, reference, 0.31).status
    expected = first.copy()
    if good == 2:
        expected[0] = 1
        left = np.arange(1, 60)
    else:
        left = np.flatnonzero(first == 0)
    assert 0 < np.count_nonzero(first) < 60
    if good == 2:  # one fixed row of 60 is too few for a copy of the others: all are handed over
        left = np.arange(60)
    expected[left[1]] = -1
    np.testing.assert_array_equal(seen[0], expected)
    assert step.extras == {"audited": 5}


def test_nothing_is_reported_that_is_worse_than_what_was_known():
    model, tol = model_of(noise=2.0), 1e-6
    model.sharpened = lambda certificate, tol: certificate
    reference = model.start(0.5)
    zero, *others = model.fallbacks(0.5, reference)
    least = min(one.gap for one in (zero, *others))
    for primal, gap, kept in ((zero.primal, least, True), (zero.primal * 1.01, least, False),
                              (zero.primal, least * 1.01 + 1e-9, False)):  # fmt: skip
        mine = replace(others[0], primal=primal, gap=gap, primal_error=zero.primal_error)
        assert (best_known(model, 0.5, mine, reference, tol) is mine) == kept
    combined = []
    model.combined = lambda parameter, one, other: combined.append((one, other)) or one
    low, high = replace(zero, primal=1e-3 * zero.primal, gap=9.0 * zero.gap), replace(zero, gap=math.inf)
    best_known(model, 0.5, low, reference, tol)
    one, other = combined.pop()
    assert one is low and other.dual == max(c.dual for c in (low, zero, *others))
    for bad in (high, replace(low, primal=math.nan), replace(zero, primal=-math.inf, gap=least * 2.0)):
        best_known(model, 0.5, bad, reference, tol)
        one, other = combined.pop()
        assert one is not bad and other is not bad
        assert one.primal == min(c.primal for c in (zero, *others))
    model.fallbacks = lambda C, reference: [replace(zero, primal=math.nan)] * 3
    best_known(model, 0.5, high, reference, tol)
    assert math.isnan(combined.pop()[0].primal)


class Stopping(Screening):
    """Says what type of parameter it is given."""

    def before(self, model, reference, parameter):
        raise TypeError("stop here" if isinstance(parameter, np.ndarray) else "not an array")


def test_a_walk_ends_at_its_deadline_and_goes_on_from_where_it_is_told():
    model, grid = model_of(), np.array([0.1, 0.2, 0.4])
    how = NOTHING, make_solver("cd")
    found = list(walk(model, grid, *how, PathOptions()))
    assert [step.step for step, _ in found] == [0, 1, 2]
    assert list(walk(model, grid, *how, PathOptions(deadline=time.monotonic() - 1.0))) == []
    rest = list(walk(model, grid, *how, PathOptions(), reference=found[0][1], first=1))
    assert [step.parameters["C"] for step, _ in rest] == [0.2, 0.4]
    assert isinstance(rest[0][1].C, float) and type(rest[0][1].C) is float
    pairs = np.array([[0.1], [0.2]])  # rows of a grid of two dimensions stay arrays
    asked = []
    model.start = lambda C: asked.append(C) or type(model).start(model, float(np.ravel(C)[0]))
    model.parameters = lambda C: {"C": float(np.ravel(C)[0])}
    with pytest.raises(TypeError, match="stop here"):
        next(walk(model, pairs, Stopping(None, False, "none"), Scripted(1), PathOptions()))
    assert isinstance(asked[0], np.ndarray)


def test_strides_of_a_walk_that_is_resumed(monkeypatch):
    model, how = model_of(), (NOTHING, make_solver("cd"), PathOptions(tol=1e-5))
    grid = EpsilonGrid(0.05, 1.0, 1e-1)
    found = list(walk(model, grid, *how))
    points = [step.parameters["C"] for step, _ in found]
    assert len(points) > 4
    assert [step.parameters["C"] for step, _ in walk(model, grid, *how)] == points  # it forgets another path's points
    again = EpsilonGrid(0.05, 1.0, 1e-1)
    rest = list(walk(model, again, *how, reference=found[2][1], first=3))
    assert [step.parameters["C"] for step, _ in rest] == points[3:]
    assert [step.step for step, _ in rest] == list(range(3, len(points)))
    fresh = EpsilonGrid(0.05, 1.0, 1e-1)
    zero = list(walk(model, fresh, *how, reference=model.start(0.05), first=0))
    assert [step.parameters["C"] for step, _ in zero] == points
    # A solve that the deadline cut short may be too rough for a stride: it is the last, without an error.
    late = EpsilonGrid(0.5, 1.0, 1e-9)
    clock = iter([0.0] + [2.0] * 1000)
    monkeypatch.setattr(loop.time, "monotonic", lambda: next(clock))
    rough = list(walk(model, late, NOTHING, Scripted(), PathOptions(tol=1e-12, deadline=1.0)))
    assert [step.status for step, _ in rough] == ["budget"]
    clock = iter([0.0] + [2.0] * 1000)
    monkeypatch.setattr("screenpath.problem.grid.epsilon_stride", lambda certificate, epsilon: 0.9)  # back is no stride
    assert len(list(walk(model, late, NOTHING, Scripted(), PathOptions(tol=1e-12, deadline=1.0)))) == 1
    monkeypatch.undo()
    with pytest.raises(UsageError, match="too large for an eps-path"):
        list(walk(model, EpsilonGrid(0.5, 1.0, 1e-9), NOTHING, Scripted(), PathOptions(tol=1e-12, max_epochs=1)))
    # One that is good enough for a stride makes it, however late it is.
    clock = iter([0.0] + [2.0] * 1000)
    monkeypatch.setattr(loop.time, "monotonic", lambda: next(clock))
    good = EpsilonGrid(0.5 * model.closed_until, 1.0, 1e-1)
    assert len(list(walk(model, good, NOTHING, Scripted(), PathOptions(deadline=1.0)))) == 1 and len(good) == 2


def test_the_far_end_is_the_largest_parameter_solved_further():
    model = model_of()
    step, certificate = far_end(model, [0.1, 0.7, 0.3], make_solver("newton"), PathOptions(tol=1e-3, audit=0))
    assert certificate.C == 0.7 and step.gap_target == pytest.approx(1e-5 * step.primal) and step.extras == {}
    assert far_end(model, EpsilonGrid(0.1, 0.9, 0.1), make_solver("newton"), PathOptions())[1].C == 0.9


@pytest.mark.parametrize("first", [0, 1])
def test_the_far_end_is_paid_by_the_first_step(first):
    model, grid, how = model_of(), np.array([0.1, 0.2, 0.4]), (make_solver("newton"), PathOptions())
    end, _ = far_end(model, grid, *how)
    screening = parse_rule("ssnsv")
    told = []
    plain = screening.begin
    screening.begin = lambda *a, resumed: told.append(resumed) or plain(*a, resumed=resumed)
    reference = model.start(0.1) if first else None
    found = [step for step, _ in walk(model, grid, screening, *how, reference=reference, first=first)]
    assert told == [first > 0]
    assert [step.init_s > 0.0 for step in found] == [True, False, False][first:]
    if first == 0:
        screening = parse_rule("ssnsv")
        screening.begin(grid, far_end(model, grid, *how)[1], resumed=False)
        bare, _ = solve_point(model, 0.1, 0, model.start(0.1), screening, *how)
        assert found[0].passes == pytest.approx(bare.passes + end.passes) and end.passes > 0.0


def test_a_stretch_aims_as_far_below_the_tolerance_as_the_loop(monkeypatch):
    aims = []

    class CompiledWalk:
        spent = 0.0

        def __init__(self, model, grid, screening, solver, options, aim, again):
            aims.append(aim)

        def points(self, reference, rank):
            return [], []

    monkeypatch.setattr(loop, "compiled_walk", CompiledWalk)
    passes, squares = [], iter(np.arange(1, 20) ** 2)
    monkeypatch.setattr(steps, "bytes_of", lambda rows: {"read": next(squares)})
    for CompiledWalk.spent in (0.0, 60.0):  # of 30 rows
        found = list(walk(model_of(), np.array([0.1, 0.2]), NOTHING, make_solver("newton"), PathOptions(tol=1e-4)))
        passes.append(np.array([step.passes for step, _ in found]))
    np.testing.assert_allclose(passes[1] - passes[0], [2.0, 2.0])
    assert [step.cells["read"] for step, _ in found] == [49 - 36, 81 - 64]
    assert aims == 2 * [point.MARGIN * 1e-4] and PathOptions().tol == 1e-6


def test_chunks_need_points_that_are_known():
    model, how = model_of(), (make_solver("newton"), PathOptions())
    with pytest.raises(UsageError, match="known beforehand"):
        next(batches(model, EpsilonGrid(0.1, 1.0, 0.1), parse_rule("ssnsv", 2), *how))
    assert len(next(batches(model, EpsilonGrid(0.1, 1.0, 0.1), parse_rule("ssnsv"), *how))[0]) == 1
    assert len(list(batches(model, np.array([0.1, 1.0]), parse_rule("ssnsv", 2), *how))) == 2
    for kept, counted in ((False, False), (True, False), (False, True)):  # what asks for all rows spares none
        rule = type("Counting", (Screening,), {"counts_all": counted})(None, False, "none")
        next(batches(model, np.array([0.1]), rule, how[0], PathOptions(certificates=kept)))
        assert model.rows.spares == (not kept and not counted)


def test_a_checkpoint_is_of_its_own_grid_point():
    model, screening = model_of(), parse_rule("ssnsv", 2)
    certificate = model.start(0.01)
    screening.left, screening.floor, screening.status = 1, -2.0, np.zeros(30, dtype=np.int8)
    state = walk_state(model, screening, certificate)
    assert {"rule_left", "rule_floor", "rule_status", "theta"} <= set(state)
    other = parse_rule("ssnsv", 2)
    for parameter in (certificate.C, None):
        assert restore_walk(model, other, state, parameter).primal == certificate.primal
    assert (other.left, other.floor) == (1, -2.0)
    with pytest.raises(ValueError, match="another grid point"):
        restore_walk(model, other, state, 1.5 * certificate.C)


def audited(model, accurate, certificate, decided, monkeypatch):
    asked = []

    def solved(*a):
        asked.append(a)
        return None, accurate

    monkeypatch.setattr(loop, "solve_point", solved)
    found = Audit(None, PathOptions(1e-4, 77, 5.0))(model, 0.5, 3, None, certificate, decided)
    options = asked[0][-1]
    assert (options.tol, options.max_epochs, options.deadline) == (SHARPER * 1e-4, 77, 5.0)
    return found


def test_intervals_that_do_not_meet_are_unsafe(monkeypatch):
    model = model_of()
    nothing = np.zeros(30, dtype=np.int8)
    exact = replace(model.start(0.5), primal=100.0, gap=0.0, primal_error=0.0)
    most = 100.0 * OBJECTIVE_ROUNDING
    for primal, unsafe in ((100.0 + 0.9 * most, 0), (100.0 + 1.2 * most, 1), (100.0 - 0.9 * most, 0),
                           (100.0 - 1.2 * most, 1), (50.0, 1), (200.0, 1)):  # fmt: skip
        for one, other in ((exact, replace(exact, primal=primal)), (replace(exact, primal=primal), exact)):
            assert audited(model, one, other, nothing, monkeypatch) == {"unsafe": unsafe, "audit_rel_gap": 0.0}
    wide = replace(exact, primal=200.0, gap=150.0)
    assert audited(model, exact, wide, nothing, monkeypatch)["unsafe"] == 0
    # The audit's own solve misses the tolerance: that it finds nothing proves nothing.
    assert audited(model, wide, exact, nothing, monkeypatch) == {"unsafe": None, "audit_rel_gap": 0.75}
    near = replace(exact, primal=50.0 - 100.0 * OBJECTIVE_ROUNDING)  # relative to the larger of both
    assert audited(model, near, wide, nothing, monkeypatch)["unsafe"] == 0
    tiny, huge = replace(exact, primal=1e-30), replace(exact, primal=OBJECTIVE_ROUNDING * 1e-31)
    assert audited(model, tiny, huge, nothing, monkeypatch)["unsafe"] == 1  # relative, not absolute
    assert [loop.added(part) for part in ([1, 2], [0, 0], [0, None], [None, 2])] == [3, 0, None, 2]  # of classes
    far = replace(exact, primal=-100.0, gap=0.0)
    assert audited(model, far, exact, nothing, monkeypatch)["unsafe"] == 1


def test_a_decision_is_contradicted_by_the_other_side_only():
    model = SVM.model(MemoryRows(np.eye(4)), np.ones(4), np.array([1.0, 1.0, 1.0, 0.0]))
    pair = model.certify(1.0, np.array([9.0, -9.0, 1.0, 9.0]), np.array([0.0, 1.0, 0.5, 0.0]))
    model.screen = lambda region: Screened(np.array([-1, 1, 0, -1], dtype=np.int8), 2, 1)
    for decided, count in (([-1, 1, 0, -1], 0), ([1, 1, 1, 1], 1), ([1, -1, -1, 1], 2), ([0, 0, 1, 0], 0)):
        assert contradicted(model, pair, 1.0, np.array(decided, dtype=np.int8)) == count
    assert isinstance(Ball(Point(np.zeros(4), None, 0.0), 1.0).extent, float)


def test_a_pair_of_classes_has_the_rows_of_both():
    rows, codes = SimpleNamespace(part=lambda place, signs: (place, signs)), np.array([0, 2, 1, 0, 1])
    weights = np.arange(5.0)
    for given in (weights, None):
        found = OneVsOne(lambda part, signs, own, more: (*part, signs, own, more), rows, codes, given, "more")
        for place, part, expected in zip(found.places, found.parts, ([0, 3, 2, 4], [0, 3, 1], [2, 4, 1]), strict=True):
            signs = np.where(codes[expected] == codes[expected[0]], 1.0, -1.0)
            assert place.tolist() == part[0].tolist() == expected and part[4] == "more"
            assert part[1].tolist() == part[2].tolist() == signs.tolist()
            assert part[3] is None if given is None else part[3].tolist() == weights[expected].tolist()
