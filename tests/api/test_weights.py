"""Weights of the L1-SVM and of the sparse SVM: repetition, every rule and storage, another solver's optimum."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import l1_svm_path
from screenpath.errors import DataError, UsageError
from tests.plain import sparse_svm_path
from tests.sparse_problems import SDCA

L1_RULES, SPARSE_RULES = ("none", "vi", "gap", "vi+gap"), ("none", "iss", "ifs", "gap", "sifs", "sifs+gap")


def data(classes, n=40, d=25):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[:, 5], X[:, 6] = 7.0, X[:, 6] + 100.0  # a constant column and one far from 0
    y = np.argmax(X[:, :classes] + 0.5 * rng.normal(size=(n, classes)), axis=1)
    return X, y, rng.integers(0, 4, n)


def same(one, other, tol):
    assert one.certified and other.certified
    for a, b in zip(one.steps, other.steps, strict=True):
        assert a.primal == pytest.approx(b.primal, rel=2.0 * tol)
        assert list(a.parameters.values()) == pytest.approx(list(b.parameters.values()), rel=1e-9)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize("rule", L1_RULES)
def test_a_weight_is_a_number_of_repetitions_l1(rule, tol, storage):
    X, y, times = data(2)
    how = {"grid": 8, "rule": rule, "storage": storage, "tol": tol}
    repeated = l1_svm_path(np.repeat(X, times, axis=0), np.repeat(y, times), **how)
    for solver in ("newton", "cd") if tol == 1e-3 else ("newton",):
        weighted = l1_svm_path(X, y, sample_weight=times, solver=solver, **how)
        same(weighted, repeated, tol)
    if tol == 1e-9:
        found, right = ([step.n_features_screened for step in path.steps] for path in (weighted, repeated))
        assert found == right and (rule in ("none", "gap") or sum(found) > 8)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rule", SPARSE_RULES)
def test_a_weight_is_a_number_of_repetitions_sparse(rule, classes, storage):
    X, y, times = data(classes)
    for solver, tol in (("newton", 1e-9), (SDCA, 1e-3), ("newton", 1e-2)):
        how = {"betas": 2, "alphas": 6, "rule": rule, "storage": storage, "solver": solver, "tol": tol}
        weighted = sparse_svm_path(X, y, sample_weight=times, **how)
        repeated = sparse_svm_path(np.repeat(X, times, axis=0), np.repeat(y, times), **how)
        same(weighted, repeated, tol)
        if tol == 1e-9 and "fs" in rule:
            found, right = ([step.n_features_screened for step in path.steps] for path in (weighted, repeated))
            assert found == right and sum(found) > 20


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_weights_of_one_change_no_coefficient(storage):
    """A weight may be a product that was rounded, which gaps count: nothing else differs."""
    X, y, _ = data(2)
    ones = np.ones(y.size)
    for path, how in ((l1_svm_path, {"grid": 6}), (sparse_svm_path, {"betas": 2, "alphas": 4})):
        plain, weighted = path(X, y, storage=storage, **how), path(X, y, storage=storage, sample_weight=ones, **how)
        assert plain.coefficients.tobytes() == weighted.coefficients.tobytes()
        for one, other in zip(plain.steps, weighted.steps, strict=True):
            assert one.gap <= other.gap <= one.gap + 20.0 * 2.0**-53 * one.primal


def test_class_weights_multiply_those_of_samples():
    X, y, times = data(2)
    labels, given = np.array(["no", "yes"])[y], times + 0.5
    for path, how in ((l1_svm_path, {"grid": 5}), (sparse_svm_path, {"betas": 2, "alphas": 3})):
        named = path(X, labels, class_weight={"yes": 3.0}, sample_weight=given, **how)
        direct = path(X, y, sample_weight=np.where(y == 1, 3.0, 1.0) * given, **how)
        assert named.coefficients.tobytes() == direct.coefficients.tobytes()
        balanced = path(X, y, class_weight="balanced", sample_weight=given, **how)
        counts = np.bincount(y, given)
        direct = path(X, y, sample_weight=(given.sum() / (2.0 * counts))[y] * given, **how)
        np.testing.assert_allclose(balanced.coefficients, direct.coefficients, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_another_solver_finds_the_same_optimum(storage):
    X, y, _ = data(2, n=30, d=8)
    X[:, 6] -= 100.0
    signs, weights = 2.0 * y - 1.0, 10.0 ** np.random.default_rng(5).uniform(-2.0, 2.0, y.size)
    rows, how = sp.csr_array(X) if storage == "sparse" else X, {"sample_weight": weights, "tol": 1e-9}
    w, b = cp.Variable(8), cp.Variable()

    def optimum(objective):
        return cp.Problem(cp.Minimize(objective)).solve(cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11)

    squared = 0.5 * cp.sum(cp.multiply(weights, cp.square(cp.pos(1.0 - cp.multiply(signs, X @ w + b)))))
    for step in l1_svm_path(rows, y, grid=4, **how).steps[1:]:
        assert step.primal == pytest.approx(optimum(squared + step.parameters["lambda"] * cp.norm1(w)), rel=1e-7)
    # The smoothed hinge of t is the smallest (t - v)^2 / (2 gamma) + v over v >= 0.
    gamma, v = 0.5, cp.Variable(30, nonneg=True)
    terms = cp.square(cp.pos(1.0 - cp.multiply(signs, X @ w) - v)) / (2.0 * gamma) + v
    mean = weights @ terms / weights.sum()
    for step in sparse_svm_path(rows, y, betas=2, alphas=3, smoothing=gamma, **how).steps[3:]:
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        expected = optimum(mean + 0.5 * alpha * cp.sum_squares(w) + beta * cp.norm1(w))
        assert step.primal == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard"])
def test_penalty_weights(scale):
    X, y, _ = data(2, n=30, d=7)
    X = X[:, :6]
    signs, p = 2.0 * y - 1.0, np.array([0.3, 2.0, 1.0, 5.0, 0.7, 1.5])
    spread = {"maxabs": np.abs(X).max(axis=0), "standard": X.std(axis=0)}.get(scale, np.ones(6))
    spread[spread == 0.0] = 1.0
    path = l1_svm_path(X, y, grid=4, scale=scale, penalty_weights=p, tol=1e-9)
    w, b = cp.Variable(6), cp.Variable()
    loss = 0.5 * cp.sum(cp.square(cp.pos(1.0 - cp.multiply(signs, X @ w + b))))
    for step, coefficients in zip(path.steps[1:], path.coefficients[1:], strict=True):
        problem = cp.Problem(cp.Minimize(loss + step.parameters["lambda"] * cp.norm1(cp.multiply(p * spread, w))))
        assert step.primal == pytest.approx(problem.solve(cp.CLARABEL), rel=1e-6)
        np.testing.assert_allclose(coefficients, w.value, atol=1e-3)
    plain, even = (l1_svm_path(X, y, grid=4, scale=scale, penalty_weights=q) for q in (None, np.ones(6)))
    np.testing.assert_allclose(plain.coefficients, even.coefficients, rtol=1e-9, atol=1e-12)


def test_processes_get_the_weights():
    X, y, times = data(3)
    how = {"betas": 2, "alphas": 3, "sample_weight": times / 3.0}
    one, two = (sparse_svm_path(X, y, jobs=jobs, **how) for jobs in (1, 2))
    assert one.coefficients.tobytes() == two.coefficients.tobytes()


def test_what_cannot_be_weighted():
    X, y, _ = data(2)
    with pytest.raises(UsageError, match="weights would be rounded to `dtype=float32`"):
        l1_svm_path(X, y, sample_weight=np.full(y.size, 2.0), dtype=np.float32)
    with pytest.raises(DataError, match="all samples have the same label, or nearly all the weight"):
        l1_svm_path(X, y, sample_weight=(y == 1).astype(float))
    for given, message in (
        (np.ones(24), "24 penalty weights for 25 features"), (np.zeros(25), "penalty weight 1 is 0"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            l1_svm_path(X, y, penalty_weights=given)
    with pytest.raises(UsageError, match="scale=l2"):
        l1_svm_path(X, y, penalty_weights=np.ones(25), scale="l2")
    for path in (l1_svm_path, sparse_svm_path):
        with pytest.raises(UsageError, match="all weights are 0"):
            path(X, y, sample_weight=np.zeros(y.size))
        with pytest.raises(UsageError, match="39 weights for 40 samples"):
            path(X, y, sample_weight=np.ones(39))
