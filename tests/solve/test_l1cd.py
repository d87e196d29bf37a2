"""Feature descent: kernels against plain references, all ways of solving agree."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from screenpath.kernels.problem import l1svm as kernels
from screenpath.kernels.solve import l1newton
from screenpath.problem.grid import lambda_grid
from screenpath.rows.columns import Columns, as_columns
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.solve.l1cd import FeatureDescent
from tests.conftest import two_classes
from tests.l1_problems import l1_path, l1_svm_model

WAYS = [
    {"shrinking": False, "working_sets": False, "warm": False}, {"shrinking": True, "working_sets": False},
    {"shrinking": True, "newton": False}, {"shrinking": True},
]  # fmt: skip


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), spread=st.sampled_from([1e-6, 1.0, 1e4]))
def test_bias_root_is_exact(seed, n, spread):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    slack = 1.0 + spread * rng.normal(size=n)

    def slope(b):
        return y @ np.maximum(slack - y * b, 0.0)

    moved = slack.copy()
    bias = kernels.bias_root(moved, y, 5.0) - 5.0
    np.testing.assert_allclose(moved, slack - y * bias, atol=1e-12 * spread)
    size = np.maximum(moved, 0.0).sum()
    assert abs(slope(bias)) <= 1e-13 * max(size, spread)
    if size > 1e-9 * spread:  # else every point of an interval is a root
        reach = 10 * (spread + 1) * n
        assert bias == pytest.approx(brentq(slope, -reach, reach, xtol=1e-13 * spread), abs=1e-9 * spread)


ANY = np.zeros(50, dtype=np.int8)  # signs of weights


@pytest.mark.parametrize("sparse", [False, True])
def test_spreads_are_the_centred_norms(sparse):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 8)) * (rng.random((30, 8)) < 0.4) + (0.0 if sparse else 1e5)
    y = np.where(np.arange(30) % 4 == 0, 1.0, -1.0)
    model, _ = l1_svm_model(sp.csr_array(X) if sparse else X, y, storage="sparse" if sparse else "dense")
    np.testing.assert_allclose(model.spreads, np.linalg.norm(X - X.mean(axis=0), axis=0), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_small_lasso_meets_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 20))
    H, rho, lam = A.T @ A + 1e-8 * np.eye(20), A.T @ rng.normal(size=12), 0.5
    u = rng.normal(size=20) * (seed % 2)
    l1newton.lasso(H, rho, lam, u, np.zeros(u.size, np.int8), 1e-12, 5000)
    gradient = rho - H @ u
    assert np.abs(gradient).max() <= lam + 1e-8
    np.testing.assert_allclose(gradient[u != 0], lam * np.sign(u[u != 0]), atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_hessian_follows_the_margin(sparse):
    rng = np.random.default_rng(2)
    F = rng.normal(size=(6, 25)) * (rng.random((6, 25)) < 0.5)
    y = np.where(np.arange(25) % 2 == 0, 1.0, -1.0)
    index = np.array([0, 2, 5])
    columns = sp.csr_array(F)
    indptr = columns.indptr.astype(np.int64)
    arrays = columns.data, columns.indices, indptr[:-1], indptr[1:]
    full, gram, sums, member = as_columns(F), np.zeros((3, 3)), np.zeros(3), np.zeros(25, dtype=np.int8)
    for _ in range(4):
        slack = rng.normal(size=25)
        if sparse:
            inside = l1newton.sparse_gram(arrays, index, slack, y, member, gram, sums)
        else:
            inside = l1newton.dense_gram(full, index, slack, y, member, gram, sums)
        chosen = F[index][:, slack > 0]
        assert inside == (slack > 0).sum()
        np.testing.assert_allclose(np.tril(gram), np.tril(chosen @ chosen.T), atol=1e-12)
        np.testing.assert_allclose(sums, chosen @ y[slack > 0], atol=1e-12)


def test_samples_that_leave_are_subtracted():
    rng = np.random.default_rng(4)
    X = sp.csr_array(rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5))
    y = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    columns, index = Columns(X, y), np.array([1, 2, 6])
    F = (y[:, None] * X.toarray()).T[index]
    gram, sums = F @ F.T, F @ y
    member, slack = np.ones(40, dtype=np.int8), rng.normal(size=40) + 1.0
    l1newton.sparse_gram(columns.slices(), index, slack, y, member, gram, sums)
    inside = F[:, slack > 0]
    np.testing.assert_allclose(np.tril(gram), np.tril(inside @ inside.T), atol=1e-12)
    np.testing.assert_allclose(sums, inside @ y[slack > 0], atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_newton_steps_are_the_same_however_many_a_call_takes(sparse):
    """They end at the gap asked for, or where it falls no more, and report the gap of the point where they are."""
    X, y = two_classes(n=60, d=12, seed=3)
    X[np.abs(X) < 0.4] = 0.0
    columns = Columns(sp.csr_array(X) if sparse else X, y)
    chosen, lam = np.array([0, 2, 3, 7, 8, 11]), 2.0
    stored = columns.some(chosen)
    products = np.empty(chosen.size)

    def sums(w, slack):
        return kernels.evaluate(stored, chosen, y, slack, w, columns.norms, ANY, 1e-14, lam, False, products)

    def walked(limit, target):
        w, slack, bias = np.zeros(12), np.ones(60), np.zeros(1)
        bias[0] = kernels.bias_root(slack, y, 0.0)
        sums(w, slack)
        here, squares, found, best = np.zeros((6, 6)), np.zeros(6), [], np.inf
        member = np.zeros(60, dtype=np.int8)
        while True:
            problem = l1newton.Problem(stored, y, lam, columns.norms**2, columns.norms, 1e-14, ANY)
            tried, taken, going, gap = l1newton.newton_steps(
                problem, chosen, (w, slack, bias), products, (here, squares, member), np.array([1e-2, 1000.0, 1e-11]),
                target, best, limit,
            )  # fmt: skip
            assert tried <= limit and taken == tried - (not going)
            found.append(gap)
            if not going or gap <= target or not gap < best:
                return w, bias, slack, found
            best = gap

    w, bias, slack, (gap,) = walked(100, 1e-9)
    one_by_one = walked(1, 1e-9)
    for ours, theirs in zip((w, bias, slack), one_by_one, strict=False):
        np.testing.assert_array_equal(ours, theirs)
    assert one_by_one[3][-1] == gap and len(one_by_one[3]) > 2 and one_by_one[3][-2] > 1e-9 >= gap
    np.testing.assert_allclose(slack, 1.0 - y * (X @ w + bias), rtol=0.0, atol=1e-12)
    assert sums(w, slack)[1] == gap
    *_, falling = walked(1, -1.0)  # cannot be met
    assert not falling[-1] < falling[-2] and all(a > b for a, b in zip(falling, falling[1:-1], strict=False))


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("rule", ["none", "vi", "gap", "vi+gap"])
def test_every_way_of_solving_gives_the_same_path(storage, rule):
    X, y = two_classes(n=70, d=90, seed=8)
    X[np.abs(X) < 0.5] = 0.0
    model, _ = l1_svm_model(X, y, storage=storage)
    values = lambda_grid(model, 8)
    best = l1_path(model, values, parse_feature_rule("none"), FeatureDescent(), tol=1e-11)
    for way in WAYS:
        steps = l1_path(model, values, parse_feature_rule(rule), FeatureDescent(**way), tol=1e-7)
        assert [step.status for step in steps] == ["certified"] * 8
        np.testing.assert_allclose([s.primal for s in steps], [s.primal for s in best], rtol=1.1e-7)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_mean_costs_no_sweeps(storage, weighted):
    """Steps take the bias with them, also where columns are not centred beforehand: these values cross 0."""
    X, y = two_classes(n=80, d=10, seed=9)
    X += 3.0 * X.std(axis=0)
    weights = np.linspace(0.2, 2.0, 80) if weighted else None
    sweeps = {}
    for name, data in (("raw", X), ("centred", X - np.average(X, axis=0, weights=weights))):
        model, _ = l1_svm_model(data, y, storage=storage, sample_weight=weights)
        for way in (WAYS[0], WAYS[2]):
            found = l1_path(model, lambda_grid(model, 8), parse_feature_rule("none"), FeatureDescent(**way))
            assert all(step.status == "certified" for step in found)
            sweeps.setdefault(name, []).append(sum(step.epochs for step in found))
    assert sweeps["raw"] == sweeps["centred"]


def test_full_and_other_columns_side_by_side():
    """Sweeps over sparse columns of which some are full, and so centred, end at the optimum of the dense ones."""
    X, y = two_classes(n=80, d=10, seed=10)
    X += 3.0 * X.std(axis=0)
    X[np.random.default_rng(1).random(X.shape) < 0.4 * (np.arange(10) % 2)] = 0.0
    found = {}
    for storage in ("dense", "sparse"):
        model, _ = l1_svm_model(X, y, storage=storage)
        how = parse_feature_rule("none"), FeatureDescent(working_sets=False), 1e-10
        found[storage] = l1_path(model, lambda_grid(model, 8), *how)
        assert all(step.status == "certified" for step in found[storage])
    for dense, sparse in zip(found["dense"], found["sparse"], strict=True):
        np.testing.assert_allclose(dense.coefficients, sparse.coefficients, atol=1e-4)
        assert sparse.epochs <= 3 * dense.epochs + 10


def test_shrinking_and_working_sets_touch_less():
    X, y = two_classes(n=60, d=400, seed=9)
    model, _ = l1_svm_model(X, y)
    values = lambda_grid(model, 6)
    passes = [
        sum(step.passes for step in l1_path(model, values, parse_feature_rule("none"), FeatureDescent(**way)))
        for way in WAYS
    ]
    assert passes[3] <= min(passes[1], passes[2]) and max(passes[1], passes[2]) < 0.2 * passes[0]


def test_budget_and_time_limit_are_kept():
    X, y = two_classes(n=60, d=40, seed=10)
    model, _ = l1_svm_model(X, y)
    values = lambda_grid(model, 6)
    solver = FeatureDescent(working_sets=False)
    steps = l1_path(model, values, parse_feature_rule("none"), solver, tol=1e-12, max_epochs=3)
    assert steps[0].status == "certified"  # closed form
    assert steps[-1].status == "budget" and steps[-1].epochs == 3
    assert steps[-1].gap > 0.0
    late = l1_path(model, values, parse_feature_rule("none"), solver, time_limit=1e-9)
    assert [step.status for step in late] == ["skipped"] * len(values)
