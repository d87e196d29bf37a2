"""Paths under every rule are certified and agree; chunks and guesses are audited (single decisions: test_fuzz.py)."""


import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, SVM
from screenpath.errors import UsageError
from screenpath.problem.grid import EpsilonGrid, log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_free_solver, make_solver
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.conftest import two_classes
from tests.plain import svm_path


@pytest.mark.parametrize("rule", ["ssnsv", "essnsv", "essnsv+gap"])
@pytest.mark.parametrize("form", ["C", "s"])
@pytest.mark.parametrize("chunk", [1, 3, 50])
@pytest.mark.parametrize("turn", [1, -1])  # a rising grid, and a falling one
def test_one_rule_for_a_chunk_is_safe_and_agrees(rule, form, chunk, turn):
    for seed in range(2):
        X, y = two_classes(90, 4, seed=seed, noise=1.0 + seed)
        model = SVM.model(MemoryRows(X), y)
        grid, options = log_grid(1e-3, 10.0, 14)[::turn], PathOptions(tol=1e-8)
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
        found = walk(SVM.model(rows, y), grid, parse_rule("essnsv", chunk), make_solver("newton"), options)
        return np.array([step.screened_R + step.screened_L for step, _ in found])

    assert screened(1)[:30].sum() > screened(None)[:30].sum()


@pytest.mark.parametrize("rule", ["heuristic", "sieve"])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_guesses_are_certified_however_wrong_they_are(intercept, rule):
    parse, make = (parse_rule, make_solver) if intercept == "none" else (parse_rule, make_free_solver)
    for seed in range(4):
        X, y = two_classes(120, 5, seed=seed, noise=2.0)
        grid = [0.001, 0.1, 100.0]  # far apart: many guesses are wrong
        model = SVM.model(MemoryRows(X + 1.0), y, None, intercept)
        found = list(walk(model, grid, parse(rule), make("newton"), PathOptions(tol=1e-8)))
        plain = list(walk(model, grid, parse("none"), make("newton"), PathOptions(tol=1e-8)))
        assert all(step.status == "certified" for step, _ in found)
        for (a, _), (b, _) in zip(found, plain, strict=True):
            assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)
    assert any(step.rounds > 1 for step, _ in found)


def test_rules_that_cannot_be_combined_are_named():
    for text, chunk in (
        ("dvi", 5), ("none", 2), ("heuristic+gap", None), ("sieve+gap", None), ("dvi+it", None), ("fast", None),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            parse_rule(text, chunk)
    with pytest.raises(UsageError, match="at least 1 grid point"):
        parse_rule("ssnsv", 0)
    with pytest.raises(UsageError, match="unknown form"):
        parse_rule("ssnsv", 2, "z")


def one_feature(seed):
    """Return a small regression on one feature: half of its rows lie near the line."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 60))
    X = rng.normal(size=(n, 1)) * 10 ** rng.uniform(-1, 1)
    y = rng.normal() * X[:, 0] + rng.standard_t(2, n) * 10 ** rng.uniform(-2, 1)
    return X, y, np.geomspace(1e-3, 10.0, int(rng.integers(5, 40)))


@pytest.mark.parametrize("rule", ["essnsv", "essnsv+gap"])
def test_no_decision_outlives_a_far_point_that_stays_unproven(rule):
    """With a loose tolerance the gap is met at once, while the guessed loss of the far point is wrong."""
    decided = withdrawn = 0
    for seed in (0, 13, 50, 52, 89, 109, 110, 115, 120, 143):
        X, y, grid = one_feature(seed)
        model, claims = LAD.model(MemoryRows(X), y), []
        check = Audit(make_solver("newton"), PathOptions(tol=1e-3))

        def audit(*arguments, claims=claims, check=check):
            claims.append(arguments[-1])
            return check(*arguments)

        screening = parse_rule(rule, 5, "s")
        plain = screening.corrected
        withdrawals = []
        screening.corrected = lambda *a, plain=plain, kept=withdrawals: kept.append(a[-1] == 0) or plain(*a)
        found = list(walk(model, grid, screening, make_solver("auto"), PathOptions(tol=1e-3, audit=audit)))
        for (step, _), claim in zip(found, claims, strict=True):
            assert (step.status, step.extras["unsafe"]) == ("certified", 0), (seed, step.step)
            if rule == "essnsv":  # the counts are those of the decisions that were proven
                assert (step.screened_R, step.screened_L) == (np.sum(claim < 0), np.sum(claim > 0))
            assert step.n_survivors == model.size - step.screened_R - step.screened_L
            assert step.rejection_ratio == pytest.approx((step.screened_R + step.screened_L) / model.size)
        decided += sum(step.screened_R + step.screened_L for step, _ in found)
        withdrawn += sum(withdrawals)
    assert decided > 1000 and withdrawn > 10


def test_a_row_of_weight_0_is_not_unsafe():
    """Both ends of its dual variable are 0, so no decision about it can be wrong."""
    X, y = two_classes(60, 4, noise=2.0)
    weights = np.arange(60) % 3.0
    options = PathOptions(tol=1e-4, audit=Audit(make_solver("newton"), PathOptions(tol=1e-4)))
    model = SVM.model(MemoryRows(X), y, weights)
    found = list(walk(model, log_grid(1e-3, 10.0, 8), parse_rule("gap"), make_solver("newton"), options))
    assert [step.extras["unsafe"] for step, _ in found] == [0] * 8


def test_a_chunk_needs_a_known_grid():
    X, y = two_classes(30, 3)
    with pytest.raises(UsageError, match="known beforehand"):
        svm_path(X, y, grid=EpsilonGrid(0.01, 1.0, 1e-3), rule="ssnsv", chunk=3)
    assert svm_path(X, y, grid=EpsilonGrid(0.01, 1.0, 1e-3), rule="ssnsv").certified
