"""Paths under every rule are certified and agree; chunks and guesses are audited (single decisions: test_fuzz.py)."""

import numpy as np
import pytest

from screenpath.api import svm_path
from screenpath.audit import Audit
from screenpath.errors import UsageError
from screenpath.grid import EpsilonGrid, log_grid
from screenpath.models.builders import svm_model
from screenpath.path import PathOptions, walk
from screenpath.rows.memory import MemoryRows
from screenpath.rules import parse_rule
from screenpath.solvers import make_solver
from tests.conftest import two_classes


@pytest.mark.parametrize("rule", ["bt2", "it", "ssnsv", "essnsv", "it+gap", "essnsv+gap"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_paths_agree_with_and_without_the_rule(rule, storage):
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


@pytest.mark.parametrize("form", ["C", "s"])
def test_a_chunk_of_a_falling_grid_is_safe(form):
    X, y = two_classes(90, 4, seed=2)
    options = PathOptions(tol=1e-8, audit=Audit(make_solver("newton"), PathOptions(tol=1e-8)))
    grid = log_grid(1e-2, 10.0, 10)[::-1]
    found = list(walk(svm_model(MemoryRows(X), y), grid, parse_rule("essnsv", 4, form), make_solver("newton"), options))
    assert all(step.status == "certified" and step.extras["unsafe"] == 0 for step, _ in found)


def test_a_chunk_needs_a_known_grid():
    X, y = two_classes(30, 3)
    with pytest.raises(UsageError, match="known beforehand"):
        svm_path(X, y, grid=EpsilonGrid(0.01, 1.0, 1e-3), rule="ssnsv", chunk=3)
    assert svm_path(X, y, grid=EpsilonGrid(0.01, 1.0, 1e-3), rule="ssnsv").certified
