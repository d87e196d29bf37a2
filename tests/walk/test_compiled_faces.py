"""Stretches on wide sparse rows: what the loop finds point by point, whatever their length and what ends them."""

import time
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numba import config

from screenpath.catalogue.losses import LAD, QUANTILE, SVM
from screenpath.problem.grid import EpsilonGrid, log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk import compiled, compiled_faces, loop
from screenpath.walk.compiled_faces import FaceWalk
from screenpath.walk.loop import Audit, PathOptions, walk

GRID = log_grid(0.02, 20.0, 14)
RULES = ("none", "gap", "dvi", "dvi+gap", "it+gap", "bt2", "essnsv")
NAMES = ("svm", "weighted", "lad", "quantile")


def model_of(name="svm", n=60, d=640, seed=0):
    rng = np.random.default_rng(seed)
    G = (rng.random((n, d)) < np.minimum(0.6, 6.0 / (1.0 + np.arange(d)))) * rng.random((n, d))
    G[np.arange(n), rng.integers(0, d, n)] = 0.5
    G[1::9] = G[0 : G[1::9].shape[0] * 9 : 9]  # some stand twice
    rows = MemoryRows(sp.csr_array(G / np.linalg.norm(G, axis=1)[:, None]))
    y, weights = np.where(rng.random(n) < 0.5, -1.0, 1.0), rng.uniform(0.0, 3.0, n)
    weights[::9] = 0.0
    target = G @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return {
        "svm": lambda: SVM.model(rows, y), "weighted": lambda: SVM.model(rows, y, weights),
        "lad": lambda: LAD.model(rows, target, weights), "quantile": lambda: QUANTILE.model(rows, target, tau=0.8),
    }[name]()  # fmt: skip


def walked(model, rule="dvi+gap", grid=GRID, tol=1e-7, solver=None, **more):
    solver = solver or make_solver("auto")
    return list(walk(model, grid, parse_rule(rule), solver, PathOptions(tol=tol, **more)))


def numbers(model, found):
    every = []
    for step, certificate in found:
        row = {k: getattr(v, "item", lambda v=v: v)() for k, v in step.record().items() if not k.endswith("_s")}
        state = {} if certificate is None else {k: np.asarray(v).tobytes() for k, v in model.state(certificate).items()}
        every.append((repr(row), step.coefficients.tobytes(), state))
    return every


@pytest.fixture
def taken(monkeypatch):
    """Count the points of each stretch that is asked for."""
    counts, points = [], FaceWalk.points

    def counted(self, reference, rank):
        found = points(self, reference, rank)
        counts.append(len(found[0]))
        return found

    monkeypatch.setattr(FaceWalk, "points", counted)
    return counts


def alone(monkeypatch, *arguments, **more):
    """Walk by the loop alone."""
    with monkeypatch.context() as patch:
        patch.setattr(loop, "can_compile", lambda *_: False)
        return walked(*arguments, **more)


@pytest.mark.covering(2)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_stretches_are_those_of_the_loop(name, rule, monkeypatch, taken):
    model = model_of(name)
    found = walked(model, rule)
    assert sum(taken) >= 6
    assert numbers(model, found) == numbers(model, alone(monkeypatch, model, rule))


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="too slow where nothing is compiled")
def test_a_point_that_misses_its_gap_is_solved_again(monkeypatch, taken):
    """... from what it has found, in the same stretch; with a dynamic rule its rows are screened anew."""
    grid, rounds = log_grid(0.02, 20.0, 24), dict.fromkeys(("dvi+gap", "dvi"), 0)
    for name, rule, seed in product(NAMES, rounds, range(6)):
        model = model_of(name, seed=seed)
        found = walked(model, rule, grid, tol=1e-4)
        rounds[rule] += sum(step.rounds > 1 for step, _ in found)
        assert numbers(model, found) == numbers(model, alone(monkeypatch, model, rule, grid, tol=1e-4))
    assert sum(taken) > 500 and min(rounds.values()) > 3


@pytest.mark.compiled_only
def test_length_changes_no_byte(monkeypatch, taken):
    model = model_of()
    whole, most = numbers(model, walked(model)), sum(taken)
    for name, value in (("POINTS", 1), ("POINTS", 3), ("STEPS", 0), ("SOLVE", -1.0)):
        taken.clear()
        with monkeypatch.context() as patch:
            patch.setattr(compiled_faces, name, value)
            assert numbers(model, walked(model)) == whole
        assert max(taken) == 1 if value == 1 else max(taken) <= 3 if value == 3 else True
        assert sum(taken) < 0.5 * most if value == -1.0 else sum(taken) == most
    monkeypatch.setattr(compiled, "SLICE", -1.0)  # no time is left after any point
    taken.clear()
    assert numbers(model, walked(model)) == whole
    assert max(taken) == 1


@pytest.mark.compiled_only
def test_of_a_stretch_the_last_certificate_is_enough(taken):
    model = model_of()
    every, last = walked(model), walked(model, certificates=False)
    assert [step.coefficients.tobytes() for step, _ in every] == [step.coefficients.tobytes() for step, _ in last]
    assert max(taken) > 3 and any(certificate is None for _, certificate in last)
    known = [k for k, (_, certificate) in enumerate(last) if certificate is not None]
    pairs = [numbers(model, [found[k] for k in known]) for found in (every, last)]
    assert pairs[0] == pairs[1]


@pytest.mark.compiled_only
def test_what_does_not_converge_is_left_to_the_loop(monkeypatch, taken):
    """A stretch is asked for less and less often then."""
    model, solver = model_of(), make_solver("auto")
    solver.faces.patience = -1
    found = walked(model, grid=log_grid(0.02, 20.0, 60), solver=solver)
    solved = [step for step, _ in found if step.solver not in ("constant", "closed-form")]
    assert {step.status for step in solved} == {"certified"} and len(solved) > 25
    assert sum(taken) < 4  # whose first look is the last one
    again = make_solver("auto")
    again.faces.patience = -1
    other = alone(monkeypatch, model, grid=log_grid(0.02, 20.0, 60), solver=again)
    assert numbers(model, found) == numbers(model, other)
    calls = []
    monkeypatch.setattr(FaceWalk, "_call", lambda self, *_: calls.append(1) or (0, True))
    walked(model, grid=log_grid(0.02, 20.0, 60))
    assert 0 < len(calls) < 0.3 * len(solved)


@pytest.mark.compiled_only
def test_epochs_that_do_not_suffice(monkeypatch):
    model = model_of()
    steps = [step for step, _ in walked(model, tol=1e-9, max_epochs=4)]
    assert {step.status for step in steps} == {"certified", "budget"} and all(step.epochs <= 4 for step in steps)
    found = alone(monkeypatch, model, tol=1e-9, max_epochs=4)
    assert [(s.status, s.epochs, s.primal) for s in steps] == [(s.status, s.epochs, s.primal) for s, _ in found]


@pytest.mark.compiled_only
def test_audit_and_eps_path_see_each_point_before_the_next(taken):
    model, solver = model_of(), make_solver("auto")
    audited = walked(model, audit=Audit(solver, PathOptions(tol=1e-7)))
    assert sum(taken) == 0 and all(step.extras["unsafe"] == 0 for step, _ in audited)
    plain = walked(model)
    assert [step.coefficients.tobytes() for step, _ in plain] == [step.coefficients.tobytes() for step, _ in audited]
    taken.clear()
    grid = EpsilonGrid(0.02, 2.0, 1e-2)
    steps = [step for step, _ in walked(model, grid=grid)]
    assert len(steps) == len(grid) and all(step.status == "certified" for step in steps)
    assert max(taken) == 1


def test_deadline_ends_a_stretch():
    assert len(walked(model_of(), deadline=time.monotonic() + 1e-9)) <= 1
