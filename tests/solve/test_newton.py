"""Semismooth Newton on reduced box problems, against a cone solver and on the awkward cases."""

import itertools
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.kernels import kernel
from screenpath.kernels.problem.box import Errors
from screenpath.kernels.rows.barrier import Team, make_board
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import margins as kernels
from screenpath.problem.reduced import Reduced
from screenpath.solve import newton
from screenpath.solve.base import Budget
from screenpath.solve.face import FaceDescent
from screenpath.solve.newton import Newton
from screenpath.walk import loop
from tests.conftest import ROOT

LOSSES = {"hinge": (0.0, 1.0), "lad": (-1.0, 1.0), "quantile": (-0.3, 0.7)}
PLENTY = Budget(1000, float("inf"))


def reduced_problem(G, c, lo, hi, base=None, offset=0.0, sparse=False, start=None):
    """Return the reduced problem of the given rows, started at w = base + G'start."""
    G = np.asarray(G, dtype=float)
    k, d = G.shape
    base = np.zeros(d) if base is None else base
    alpha = np.clip(np.zeros(k) if start is None else start, lo, hi)
    w = base + G.T @ alpha
    rows = np.ascontiguousarray(G)
    if sparse:
        csr = sp.csr_array(G)
        rows = (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64))
    return Reduced(
        take=lambda: rows, sparse=sparse, place=None, index=np.arange(k), c=np.asarray(c, dtype=float),
        norms=np.linalg.norm(G, axis=1), lo=lo, hi=hi,
        offset=offset, errors=Errors(1e-12, 1e-14, 0.0, 0.0),
        start_alpha=alpha, start_sum=w, start_w=w, start_margins=G @ w, theta=np.zeros(k),
    )  # fmt: skip


def objectives(G, c, lo, hi, base, offset, w, alpha):
    """Return primal and dual, written straight from the definition."""
    t = c - G @ w
    primal = 0.5 * w @ w - base @ w + np.maximum(lo * t, hi * t).sum() + offset
    dual_w = base + G.T @ alpha
    return primal, c @ alpha - 0.5 * dual_w @ dual_w + offset


def optimum(G, c, lo, hi, base, offset):
    """Return the optimal value found by a cone solver."""
    w = cp.Variable(G.shape[1])
    t = c - G @ w
    loss = cp.sum(cp.maximum(cp.multiply(lo, t), cp.multiply(hi, t)))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) - base @ w + loss))
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    problem.solve(solver=cp.CLARABEL, **tight)
    return problem.value + offset


def solve_and_check(G, c, lo, hi, base=None, offset=0.0, sparse=False, tol=1e-9, dynamic=True, start=None):
    """Solve; check feasibility, the gap from the definition and the claim of convergence."""
    G = np.asarray(G, dtype=float)
    base = np.zeros(G.shape[1]) if base is None else base
    reduced = reduced_problem(G, c, lo, hi, base, offset, sparse, start)
    solution = Newton().solve(reduced, tol=tol, budget=PLENTY, dynamic=dynamic)
    assert solution.converged
    assert np.all(solution.alpha >= lo) and np.all(solution.alpha <= hi)
    primal, dual = objectives(G, c, lo, hi, base, offset, solution.w, solution.alpha)
    rounding = 1e-13 * (1.0 + abs(primal) + np.abs(c * solution.alpha).sum())
    assert -rounding <= primal - dual <= tol * abs(primal) * (1.0 + 1e-6) + rounding
    return primal, solution


def random_problem(rng, k, d, loss, weighted, C):
    """Return rows, targets and box of a random problem of the given loss."""
    G = rng.normal(size=(k, d)) * rng.uniform(0.2, 3.0, size=d)
    G[rng.random((k, d)) < 0.3] = 0.0
    c = np.ones(k) if loss == "hinge" else G @ rng.normal(size=d) + rng.laplace(size=k)
    weights = rng.choice([0.0, 0.5, 1.0, 4.0], size=k) if weighted else np.ones(k)
    lo, hi = LOSSES[loss]
    return G, c, C * lo * weights, C * hi * weights


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_equals_the_cone_solvers(loss, weighted, sparse):
    rng = np.random.default_rng(0)
    for (k, d), C in itertools.product([(80, 3), (60, 20), (12, 30), (7, 1)], [0.05, 3.0]):
        G, c, lo, hi = random_problem(rng, k, d, loss, weighted, C)
        base, offset = rng.normal(size=d), 30.0
        primal, _ = solve_and_check(G, c, lo, hi, base, offset, sparse)
        assert primal == pytest.approx(optimum(G, c, lo, hi, base, offset), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("shape", [(900, 5), (400, 150), (60, 700), (700, 650)])
def test_every_way_to_solve_the_newton_system_reaches_the_tolerance(shape, sparse):
    """Factorised Hessian, Gram matrix of the rows, and conjugate gradients, by the sizes of rows and columns."""
    rng = np.random.default_rng(1)
    G, c, lo, hi = random_problem(rng, *shape, "hinge", False, 0.1)
    plain, _ = solve_and_check(G, c, lo, hi, sparse=sparse, dynamic=False)
    screened, _ = solve_and_check(G, c, lo, hi, sparse=sparse, dynamic=True)
    assert plain == pytest.approx(screened, rel=2e-9)


def test_wide_sparse_rows_of_few_columns_have_their_hessian_factorised():
    """More features than a factor is made for, but not in the rows near their kink."""
    rng = np.random.default_rng(7)
    G, c, lo, hi = random_problem(rng, 300, 5, "hinge", False, 0.1)
    narrow, _ = solve_and_check(G, c, lo, hi, sparse=True)
    wide = np.hstack([G, np.zeros((300, 700))])
    primal, first = solve_and_check(wide, c, lo, hi, sparse=True)
    _, again = solve_and_check(wide, c, lo, hi, sparse=True)
    assert primal == pytest.approx(narrow, rel=2e-9)
    np.testing.assert_array_equal(first.w, again.w)
    np.testing.assert_array_equal(first.alpha, again.alpha)


def degenerate_cases():
    """Yield named problems that break careless linear algebra."""
    rng = np.random.default_rng(2)
    G, one, zero = rng.normal(size=(40, 4)), np.ones(40), np.zeros(40)
    yield "duplicate rows", np.repeat(G[:4], 10, axis=0), one, zero, one
    yield "zero rows", np.where(np.arange(40)[:, None] % 3 == 0, 0.0, G), one, zero, one
    yield "all rows zero", np.zeros((40, 4)), one, zero, one
    yield "kink at a zero margin", np.zeros((40, 4)), zero, -one, one
    yield "zero weights", G, one, zero, zero
    yield "collinear columns", np.outer(G[:, 0], [1.0, 2.0, -1.0, 0.5]), one, zero, 10.0 * one
    yield "opposite rows", np.vstack([G[:20], -G[:20]]), one, zero, 5.0 * one
    yield "one feature", G[:, :1].copy(), one, zero, one
    yield "one row", G[:1], one[:1], zero[:1], one[:1]
    yield "far column scales", G * np.array([1e-4, 1.0, 1e2, 1e5]), one, zero, one
    yield "huge rows", 1e6 * G, one, zero, one
    yield "tiny rows", 1e-6 * G, one, zero, one
    yield "binary rows, tied margins", (G > 0.5).astype(float), one, zero, one


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("case", list(degenerate_cases()), ids=lambda case: case[0])
def test_degenerate_problems_are_certified(case, sparse):
    _, G, c, lo, hi = case
    for dynamic in (False, True):
        solve_and_check(G, c, lo, hi, sparse=sparse, dynamic=dynamic, tol=1e-8)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_without_rows_the_minimiser_is_the_sum_of_the_fixed_ones(sparse):
    base, nothing = np.array([1.0, -2.0]), np.zeros(0)
    reduced = reduced_problem(np.zeros((0, 2)), nothing, nothing, nothing, base, 7.0, sparse)
    reduced = replace(reduced, start_w=np.array([5.0, 5.0]))
    solution = Newton().solve(reduced, tol=1e-9, budget=PLENTY, dynamic=True)
    assert solution.converged
    assert solution.alpha.size == 0
    np.testing.assert_allclose(solution.w, base, rtol=1e-9)


def test_a_start_at_the_optimum_costs_no_iteration():
    rng = np.random.default_rng(3)
    G, c, lo, hi = random_problem(rng, 200, 4, "lad", False, 1.0)
    _, solution = solve_and_check(G, c, lo, hi, tol=1e-11)
    _, again = solve_and_check(G, c, lo, hi, tol=1e-9, start=solution.alpha)
    assert again.epochs == 0


def test_a_poor_start_does_not_matter():
    rng = np.random.default_rng(4)
    G, c, lo, hi = random_problem(rng, 500, 6, "hinge", False, 2.0)
    cold, _ = solve_and_check(G, c, lo, hi)
    opposite, _ = solve_and_check(G, c, lo, hi, start=hi)
    assert cold == pytest.approx(opposite, rel=2e-9)


@kernel
def best_share(X, k, old, w, v, room, team):
    return kernels.best_share(X, k, old, w, v, room, team)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_that_throws_rows_over_their_kinks_is_cut_where_all_rows_are_best_off(seed):
    rng = np.random.default_rng(seed)
    G, c, lo, hi = random_problem(rng, 40, 5, "hinge", False, 1.0)
    old = 0.1 * rng.normal(size=5)
    alpha = np.where(c - G @ old > 0.0, hi, lo)
    v = G.T @ alpha
    way = 4.0 * (v - old)  # down, and far too long
    w, room, team = old + way, kernels.workspace(40, 5, False), Team(kernels.table_of(1, 5), make_board(1), 0)
    room.vectors[:] = c, lo, hi, np.ones(40), alpha, c - G @ w, G @ way, np.ones(40)
    share, values = best_share(matrix_of(G), 40, old, w, v, room, team), []
    assert 0.0 < share < 1.0
    assert w == pytest.approx(old + share * way) and room.vectors[kernels.T] == pytest.approx(c - G @ w)
    for point in (w, *(old + s * way for s in np.linspace(0.0, 1.0, 201))):
        values.append(objectives(G, c, lo, hi, np.zeros(5), 0.0, point, alpha)[0])
    assert values[0] <= min(values) + 0.02 * (values[1] - min(values)) < values[1] < values[-1]


def test_a_start_with_every_margin_at_its_kink_does_not_cycle():
    """The one survivor of a step of wang_toy1, its margin 1 but for rounding: nothing there tells the zone's width."""
    row, base = np.array([1.1834851565441022, -0.9428993060375728]), np.array([-0.9243106101566491, 5.445335943279089])
    w, margins = np.array([2.7960005266305563, 2.448856528127239]), np.array([1.0000000000000029])
    start, hi = np.array([3.1599169769726783]), np.array([3.173229634734976])
    reduced = reduced_problem(row[None], np.ones(1), np.zeros(1), hi, base, 19.039377808409856, start=start)
    reduced = replace(reduced, start_w=w, start_margins=margins)
    solution = Newton().solve(reduced, tol=8e-7, budget=PLENTY, dynamic=True)
    assert solution.converged and solution.epochs < 50
    assert solution.alpha[0] == pytest.approx((1.0 - base @ row) / (row @ row), rel=1e-4)


def test_row_order_does_not_matter_beyond_the_tolerance():
    rng = np.random.default_rng(5)
    G, c, lo, hi = random_problem(rng, 800, 6, "hinge", True, 0.5)
    order = rng.permutation(800)
    _, solution = solve_and_check(G, c, lo, hi, tol=1e-11)
    _, shuffled = solve_and_check(G[order], c[order], lo[order], hi[order], tol=1e-11)
    np.testing.assert_allclose(solution.w, shuffled.w, atol=2e-4 * np.linalg.norm(solution.w))


def test_storage_changes_nothing_beyond_rounding():
    rng = np.random.default_rng(6)
    G, c, lo, hi = random_problem(rng, 300, 12, "quantile", False, 1.0)
    _, dense = solve_and_check(G, c, lo, hi, tol=1e-11)
    _, csr = solve_and_check(G, c, lo, hi, tol=1e-11, sparse=True)
    np.testing.assert_allclose(dense.w, csr.w, atol=1e-5)


def test_dynamic_screening_fixes_rows_and_says_how_many():
    rng = np.random.default_rng(7)
    G, c, lo, hi = random_problem(rng, 2000, 5, "hinge", False, 1.0)
    _, solution = solve_and_check(G, c, lo, hi, tol=1e-9, dynamic=True)
    _, plain = solve_and_check(G, c, lo, hi, tol=1e-9, dynamic=False)
    assert 0 < solution.screened <= 2000
    assert plain.screened == 0


def test_an_exhausted_budget_is_reported_and_the_pair_is_still_feasible():
    rng = np.random.default_rng(8)
    G, c, lo, hi = random_problem(rng, 500, 6, "hinge", False, 2.0)
    solution = Newton().solve(reduced_problem(G, c, lo, hi), tol=1e-12, budget=Budget(1, np.inf), dynamic=True)
    assert not solution.converged
    assert solution.epochs == 1
    assert np.all(solution.alpha >= lo) and np.all(solution.alpha <= hi)


def test_the_start_is_left_as_it_was():
    rng = np.random.default_rng(9)
    reduced = reduced_problem(*random_problem(rng, 100, 4, "lad", False, 1.0))
    before = reduced.start_w.copy(), reduced.start_alpha.copy(), reduced.start_margins.copy(), reduced.start_sum.copy()
    Newton().solve(reduced, tol=1e-9, budget=PLENTY, dynamic=True)
    after = reduced.start_w, reduced.start_alpha, reduced.start_margins, reduced.start_sum
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(("solver", "sparse"), [(Newton(), False), (Newton(), True), (FaceDescent(), True)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_rows_read_in_place_give_the_numbers_of_their_copy(solver, sparse, dynamic):
    rng = np.random.default_rng(3)
    G, c = rng.normal(size=(80, 60)) * (rng.random((80, 60)) < 0.3), rng.normal(size=80)
    copied = reduced_problem(G, c, -np.ones(80), np.ones(80), base=rng.normal(size=60), sparse=sparse)
    where, signs = rng.permutation(200)[:80], rng.choice([-1, 1], size=80).astype(np.int8)
    data = rng.normal(size=(200, 60))
    data[where] = signs[:, None] * G
    csr = sp.csr_array(data)
    stored = (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64)) if sparse else data
    placed = replace(copied, take=None, place=(stored, where, signs), faces=None)
    one, other = (solver.solve(r, tol=1e-9, budget=PLENTY, dynamic=dynamic) for r in (copied, placed))
    np.testing.assert_array_equal(placed.products(one.w), copied.products(one.w))
    assert one.converged and one.epochs == other.epochs and one.touched == other.touched
    np.testing.assert_array_equal(one.alpha, other.alpha)
    np.testing.assert_array_equal(one.w, other.w)


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_few_rows_for_each_column_begin_steeper_in_a_walk_and_in_the_loop(monkeypatch, intercept):
    def found():
        path = screenpath.svm_path(data.X, data.y, intercept=intercept, scale="standard", grid=20, cmin=0.1, cmax=1.0)
        assert path.certified
        return [step.epochs for step in path.steps], np.array([step.primal for step in path.steps])

    data = screenpath.read_libsvm(ROOT / "data_samples" / "breast_cancer.libsvm")
    steep, best = found()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "can_compile", lambda *_: False)
        assert found()[0] == steep
    monkeypatch.setattr(newton, "STEEP", 1.0)
    plain, same = found()
    assert sum(steep) < 0.85 * sum(plain) and best == pytest.approx(same, rel=2e-6)
    assert newton.steepness(3000, 30) == 1.0
