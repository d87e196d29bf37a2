"""Newton's method, coordinate descent and `auto` reach the same optimum, in any order of the rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve.auto import Auto
from screenpath.solve.cd import CoordinateDescent
from screenpath.solve.newton import Newton
from screenpath.walk.loop import PathOptions, walk

MODELS = ("svm", "lad", "quantile", "svr")
RULES = ("none", "gap", "dvi", "bt2+gap", "it", "ssnsv", "essnsv+gap")
OPTIONS = PathOptions(tol=1e-6)
GRID = np.geomspace(0.02, 2.0, 4)


def random_rows(rng, n, d, model):
    """Return rows with zeros, a duplicate and a zero row among them, their labels or targets, and weights."""
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 1.5, size=d)
    X[rng.random((n, d)) < 0.4] = 0.0
    X[1], X[2] = X[0], 0.0
    score = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
    y = np.where(score > 0.0, 1.0, -1.0) if model == "svm" else score
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=n)


def build(model, X, y, weights, sparse):
    """Return the model over rows of the given storage."""
    rows = MemoryRows(sp.csr_array(X) if sparse else X)
    if model == "svm":
        return SVM.model(rows, y, weights)
    if model == "lad":
        return LAD.model(rows, y, weights)
    if model == "quantile":
        return QUANTILE.model(rows, y, weights, tau=0.3)
    return SVR.model(rows, y, weights, epsilon=0.1)


def certified_path(model, rule, solver):
    """Walk the grid; return primal and dual values of each point, and which are certified.

    Coordinate descent may crawl on rows that are nearly dependent: a point may end with its epochs, and must say so.
    """
    steps = [step for step, _ in walk(model, GRID, parse_rule(rule), solver, OPTIONS)]
    certified = np.array([step.status == "certified" for step in steps])
    assert certified.all() or solver.name == "cd"
    assert all(step.epochs >= OPTIONS.max_epochs for step in steps if step.status != "certified")
    return np.array([step.primal for step in steps]), np.array([step.dual for step in steps]), certified


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS), rule=st.sampled_from(RULES), sparse=st.booleans(), weighted=st.booleans(),
    shape=st.sampled_from([(12, 3), (40, 6), (15, 30)]), seed=st.integers(0, 10_000),
)  # fmt: skip
@example(model="lad", rule="none", sparse=False, weighted=True, shape=(40, 6), seed=1190)
def test_solvers_agree(model, rule, sparse, weighted, shape, seed):
    X, y, weights = random_rows(np.random.default_rng(seed), *shape, model)
    problem = build(model, X, y, weights if weighted else None, sparse)
    primal, dual, _ = certified_path(problem, rule, Newton())
    for other in (CoordinateDescent(seed=seed), Auto()):
        other_primal, other_dual, certified = certified_path(problem, rule, other)
        slack = 1e-12 * (1.0 + primal)
        # Each primal value lies above every dual value, so two certified values differ by at most the tolerance.
        assert np.all(primal >= other_dual - slack) and np.all(other_primal >= dual - slack)
        close = np.abs(primal - other_primal) <= OPTIONS.tol * np.maximum(primal, other_primal) + slack
        assert np.all(close | ~certified)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("model", MODELS)
def test_optimum_does_not_depend_on_the_order_of_rows(model, sparse):
    rng = np.random.default_rng(5)
    X, y, weights = random_rows(rng, 60, 5, model)
    order = rng.permutation(y.size)
    tight = PathOptions(tol=1e-11)
    values = []
    for rows in (np.arange(y.size), order):
        problem = build(model, X[rows], y[rows], weights[rows], sparse)
        steps = [step for step, _ in walk(problem, GRID, parse_rule("dvi+gap"), Newton(), tight)]
        assert all(step.status == "certified" for step in steps)
        values.append([step.primal for step in steps])
    np.testing.assert_allclose(values[0], values[1], rtol=2e-11)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("model", MODELS)
def test_objectives_of_a_pair_depend_on_the_order_of_rows_by_rounding_only(model, sparse):
    rng = np.random.default_rng(6)
    X, y, weights = random_rows(rng, 500, 7, model)
    w, order = rng.normal(size=7), rng.permutation(y.size)
    first, second = build(model, X, y, weights, sparse), build(model, X[order], y[order], weights[order], sparse)
    theta = first.lo + rng.random(first.size) * (first.hi - first.lo)
    moved = np.concatenate([theta[: y.size][order], theta[y.size :][order]]) if model == "svr" else theta[order]
    a, b = first.certify(0.7, w, theta), second.certify(0.7, w, moved)
    np.testing.assert_allclose([a.primal, a.dual], [b.primal, b.dual], rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "patience", "solver"),
    [((150, 700), 2, "cd+cg"), ((1500, 700), 2, "cd+cg"), ((1500, 700), -1, "cd+cg+newton"), ((20, 5000), 2, "cd+cg")],
    ids=str,
)
def test_wide_rows_get_sweeps_and_where_these_do_not_suffice_newtons_method(shape, patience, solver):
    rng = np.random.default_rng(7)
    n, d = shape
    sparse = sp.random_array(shape, density=0.03, rng=rng, data_sampler=rng.standard_normal, format="csr")
    X = rng.normal(size=shape) if d == 5000 else sparse
    y = np.sign(X @ rng.normal(size=d) + 1e-3 * rng.normal(size=n))
    problem = SVM.model(MemoryRows(X), y)
    grid = np.array([0.5, 5.0])
    found = {}
    auto = Auto()
    assert auto.faces.patience == 2
    auto.faces.patience = patience
    for one in (auto, Newton()):
        steps = [step for step, _ in walk(problem, grid, parse_rule("dvi+gap"), one, PathOptions(tol=1e-8))]
        assert all(step.status == "certified" for step in steps)
        found[one.name] = steps
    assert {step.solver for step in found["auto"]} - {"cd+cg", "constant"} == {solver} - {"cd+cg"}
    values = [[step.primal for step in steps] for steps in found.values()]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)
