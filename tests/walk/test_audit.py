"""The audit counts wrong decisions, whoever made them."""


import numpy as np
import pytest

from screenpath.catalogue.losses import SVM
from screenpath.engine.record import Tally, all_good, audit_words
from screenpath.regions.geometry import Ball
from screenpath.rows.memory import MemoryRows
from screenpath.screen import Screening, parse_rule
from screenpath.screen.base import StaticRule
from screenpath.solve import make_solver
from screenpath.walk.loop import Audit, PathOptions, added, solve_point, walk
from screenpath.walk.step import Step

OPTIONS = PathOptions(tol=1e-6)
CELLS = {
    "status": "certified", "epochs": 1, "passes": 1.0, "rejection_ratio": 0.5, "rel_gap": 1e-7, "solver": "newton",
    "C": 1.0, "screen_s": 0.0, "solve_s": 0.0, "init_s": 0.0, "certify_s": 0.0,
}  # fmt: skip
NOTHING = Screening(None, False, "none")


class TooBold(StaticRule):
    """An unsafe rule: a ball of no size around the previous solution."""

    name = "bold"

    def region(self, model, reference, C):
        """Return the previous solution as if nothing could change."""
        return Ball(reference.point, 0.0)


@pytest.fixture
def model():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    signs = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    return SVM.model(MemoryRows(X), signs)


def audited(model, screening, grid=(0.01, 0.5, 5.0)):
    solver = make_solver("cd")
    options = PathOptions(tol=1e-6, max_epochs=2000, audit=Audit(solver, PathOptions(tol=1e-6, max_epochs=20000)))
    return [step for step, _ in walk(model, grid, screening, solver, options)]


@pytest.mark.parametrize("rule", ["dvi", "gap", "dvi+gap"])
def test_safe_rules_pass(model, rule):
    steps = audited(model, parse_rule(rule))
    assert [step.extras["unsafe"] for step in steps] == [0, 0, 0]
    assert all(step.extras["audit_rel_gap"] <= 1e-8 for step in steps)


def test_an_unsafe_rule_is_caught(model):
    steps = audited(model, Screening(TooBold(), False, "bold"))
    assert sum(step.extras["unsafe"] for step in steps) > 0


def test_flipped_decisions_are_counted_one_by_one(model):
    reference = model.start(0.5)
    solver = make_solver("cd")
    _, certificate = solve_point(model, 0.5, 0, reference, NOTHING, solver, OPTIONS)
    status = model.screen(parse_rule("dvi").static.region(model, certificate, 0.5)).status
    decided = np.zeros_like(status)
    wrong = np.flatnonzero(status)[:7]
    decided[wrong] = -status[wrong]
    assert Audit(solver, OPTIONS)(model, 0.5, 0, reference, certificate, decided)["unsafe"] == 7
    assert Audit(solver, OPTIONS)(model, 0.5, 0, reference, certificate, status)["unsafe"] == 0


def test_dynamic_decisions_reach_the_audit(model):
    """The gap rule decides inside the solver; the audit must see those rows."""
    seen = []

    def audit(model, parameter, rank, reference, certificate, decided):
        seen.append(np.count_nonzero(decided))
        return {}

    options = PathOptions(tol=1e-9, audit=audit)
    list(walk(model, (0.01, 0.5, 5.0), parse_rule("gap"), make_solver("cd"), options))
    assert max(seen) > 0


def test_audits_of_the_same_grid_solve_a_point_once(model):
    """They find what they find alone; a solution that missed its tolerance is not shared."""
    known, solver = {}, make_solver("newton")

    def unsafe(screening, audit):
        options = PathOptions(tol=1e-6, max_epochs=2000, audit=audit)
        return [step.extras["unsafe"] for step, _ in walk(model, (0.01, 0.5, 5.0), screening, solver, options)]

    assert unsafe(parse_rule("dvi"), Audit(solver, OPTIONS, known=known)) == [0, 0, 0]
    assert sorted(known) == [(1, 0.01), (2, 0.5), (3, 5.0)]
    bold, unsolved = Screening(TooBold(), False, "bold"), PathOptions(tol=1e-6, max_epochs=0)
    shared = unsafe(bold, Audit(solver, unsolved, known=known))  # it could not solve one itself
    assert sum(shared) > 0 and shared == unsafe(bold, Audit(solver, OPTIONS))
    none: dict = {}
    assert None in unsafe(parse_rule("dvi"), Audit(solver, unsolved, known=none)) and len(none) < 3


def test_an_audit_that_did_not_solve_counts_nothing(model):
    """A solve cut short finds no decision wrong, which does not mean that none is."""
    reference = model.start(0.01)
    solver = make_solver("cd")
    _, certificate = solve_point(model, 5.0, 0, reference, NOTHING, solver, OPTIONS)
    nothing = np.zeros(model.size, dtype=np.int8)
    found = Audit(solver, PathOptions(tol=1e-6, max_epochs=1))(model, 5.0, 0, reference, certificate, nothing)
    assert found["unsafe"] is None and found["audit_rel_gap"] > 1e-6
    assert [added([0, None]), added([2, None]), added([0, 0])] == [None, 2, 0]


def test_what_the_audit_did_not_solve_is_in_the_words_and_the_exit_status():
    tally = Tally()
    for unsafe in (0, None):
        tally.add(Step({**CELLS, "unsafe": unsafe}, ("C",)))
    totals = tally.record()
    assert totals["unaudited"] == 1 and "not solved at 1 step" in audit_words(totals)
    assert not all_good({"totals": {**totals, "n_steps": 2}})
    assert Tally.restored(tally.array()).unaudited == 1
