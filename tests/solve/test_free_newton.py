"""Newton's method with a free intercept: in a compiled walk or not, far from the origin, from bad guesses."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.catalogue.losses import LAD
from screenpath.problem import INTERVAL
from screenpath.rows.memory import MemoryRows
from screenpath.solve.base import Budget
from screenpath.solve.newton import Newton
from screenpath.walk import loop
from tests.free_problems import SHAPES, cone_solution, free_problem, free_walk

GRID = np.geomspace(0.01, 5.0, 6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["svm", "lad", "quantile", "svr"])
def test_all_ways_lead_to_the_value_of_a_cone_solver(name, shape, monkeypatch):
    model = free_problem(name, shape, seed=3, weighted=shape == "tied")
    walked = free_walk(model, GRID)
    monkeypatch.setattr(loop, "can_compile", lambda *_: False)
    looped = free_walk(model, GRID)
    other = free_walk(model, GRID, "none")
    for C, *found in zip(GRID, walked, looped, other, strict=True):
        steps = [step for step, _ in found]
        assert {step.status for step in steps} == {"certified"}
        assert steps[0].primal == steps[1].primal and steps[0].epochs == steps[1].epochs
        assert steps[0].coefficients.tobytes() == steps[1].coefficients.tobytes()
        assert [steps[0].extras[end] for end in INTERVAL] == [steps[1].extras[end] for end in INTERVAL]
        if shape != "far from the origin":  # where a cone solver has few digits left
            best = cone_solution(model, C)[0]
            assert [step.primal for step in steps] == pytest.approx([best] * 3, rel=3e-8)
        else:
            assert steps[0].primal == pytest.approx(steps[2].primal, rel=2e-8)


def first_problem(name, seed):
    model = free_problem(name, "plain", seed)
    return model, model.reduce(1.0, model.nothing_screened(), model.start(1.0))


@pytest.mark.parametrize("away", [0.0, 3.0, -30.0])
@pytest.mark.parametrize("name", ["svm", "lad"])
def test_a_bad_first_intercept_is_mended(name, away):
    model, reduced = first_problem(name, 5)
    reduced.free = replace(reduced.free, intercept=reduced.free.intercept + away)
    found = Newton().solve(reduced, tol=1e-9, budget=Budget(1000, np.inf), dynamic=True)
    assert found.converged
    w, theta = model.lift(1.0, reduced, found)
    certificate = model.certify(1.0, w, theta)
    assert certificate.gap <= 2e-9 * certificate.primal
    assert certificate.primal == pytest.approx(cone_solution(model, 1.0)[0], rel=1e-8)


def test_iterations_that_are_used_up_are_said():
    _, reduced = first_problem("svm", 5)
    found = Newton().solve(reduced, tol=1e-9, budget=Budget(2, np.inf), dynamic=False)
    assert not found.converged and found.epochs <= 2


def test_dual_variables_of_a_solution_sum_to_what_is_left_for_them():
    _, reduced = first_problem("quantile", 7)
    reduced.free = replace(reduced.free, rest=0.03)  # as if others were fixed
    found = Newton().solve(reduced, tol=1e-9, budget=Budget(1000, np.inf), dynamic=True)
    assert found.converged and reduced.free.signs @ found.alpha == pytest.approx(0.03, rel=1e-9)
    assert np.all((reduced.lo <= found.alpha) & (found.alpha <= reduced.hi))


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_far_from_the_origin_are_solved_around_their_mean(sparse, copied):
    """In place such rows leave Newton's method no digits; shifted, they have those of rows at the origin."""
    solutions, plain = [], free_problem("lad", "sparse" if sparse else "plain", 11)
    X = plain.rows.stored
    X = sp.csr_array(X, shape=(plain.rows.n, plain.rows.d)).toarray() if sparse else X
    for shift in (0.0, 1e6):
        far = X + shift * np.array([1.0, -1.0, 0.0, 0.0])  # two columns, which all rows then have
        model = LAD.model(MemoryRows(sp.csr_array(far) if sparse else far), plain.c, None, "free")
        reduced = model.reduce(1.0, model.nothing_screened(), model.start(1.0))
        if copied:
            reduced.copy()
        found = Newton().solve(reduced, tol=1e-9, budget=Budget(5000, np.inf), dynamic=True)
        assert found.converged
        solutions.append(found.w)
    np.testing.assert_allclose(*solutions, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_columns_of_sparse_rows_may_be_far_from_the_origin(storage):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 8)) * (rng.random((300, 8)) < 0.3)
    X[:, :2] = np.array([1e3, -1e3]) + rng.normal(size=(300, 2))
    target = X[:, 2:6].sum(axis=1) + 0.3 * rng.normal(size=300) + 0.5 * (X[:, 0] - 1e3)
    path = screenpath.lad_path(sp.csr_array(X), target + 1e3, intercept="free", grid=8, storage=storage)
    assert path.certified
