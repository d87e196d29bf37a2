"""Solvers of the kernel model: they agree, they stop where asked, they manage singular matrices and small memory."""

import numpy as np
import pytest

from screenpath import kernel_svm_path
from screenpath.errors import UsageError
from screenpath.kernels.solve import smo as kernels
from screenpath.rows import gram
from screenpath.solve import face_newton, smo
from screenpath.solve.smo import make_kernel_solver
from tests.conftest import two_classes
from tests.width import wide

GRID = [0.01, 0.2, 3.0, 40.0, 500.0]


def path(X, y, **options):
    return kernel_svm_path(X, y, **{"gamma": 0.3, "grid": GRID, "tol": 1e-8, **options})


@pytest.mark.parametrize("solver", ["newton", "smo"])
@pytest.mark.parametrize("shrinking", [True, False])
def test_solvers_agree(solver, shrinking):
    X, y = two_classes(200, 5, seed=1, noise=1.3)
    one, other = path(X, y, solver=solver, shrinking=shrinking), path(X, y, solver="newton", rule="none")
    assert one.certified and other.certified
    for a, b in zip(one.steps, other.steps, strict=True):
        assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
def test_singular_matrices_take_few_epochs(options):
    """Of rank 5 and 21: without a ridge the Newton steps run into the box along directions that change nothing."""
    X, y = two_classes(200, 5, seed=2, noise=1.5)
    found = path(X, y, **options)
    assert found.certified and max(step.epochs for step in found.steps) < 60


def test_repeated_rows_and_rows_of_zeros():
    X, y = two_classes(60, 3, seed=3)
    X = np.vstack([X, X, X, np.zeros((4, 3))])
    y = np.concatenate([y, y, -y, [1.0, 1.0, -1.0, -1.0]])
    for kernel in ("rbf", "linear"):
        assert path(X, y, kernel=kernel, **({} if kernel == "rbf" else {"gamma": 1.0})).certified


def test_an_epoch_limit_leaves_points_uncertified():
    X, y = two_classes(200, 5, seed=4, noise=2.0)
    found = path(X, y, solver="smo", max_epochs=1, tol=1e-12)
    assert "budget" in [step.status for step in found.steps] and not found.certified
    assert all(step.primal >= step.dual for step in found.steps)


def test_a_gap_below_the_rounding_ends():
    X, y = two_classes(80, 5, seed=5, noise=1.5)
    found = path(X, y, bias=1e4, tol=1e-13, grid=[50.0])
    assert not found.certified and found.steps[0].epochs < 5000


@pytest.fixture
def plans(monkeypatch):
    """How the matrices of the paths of a test are kept, in turn."""
    found, planned = [], gram.GramRows.__init__

    def noted(rows, *arguments, **options):
        planned(rows, *arguments, **options)
        found.append((rows.plan, rows.nbytes))

    monkeypatch.setattr(gram.GramRows, "__init__", noted)
    return found


def test_a_working_set_that_does_not_fit_is_solved_in_parts(monkeypatch, plans):
    monkeypatch.setattr(gram, "LEAST_ROWS", 20)
    monkeypatch.setattr(gram, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(gram, "SQUARE", 40)
    X, y = two_classes(200, 4, seed=6, noise=1.5)
    grid = GRID[: wide(3, 5)]  # the last take most of the time
    whole = path(X, y, grid=grid)
    for kept in ("cache", "full"):
        parts = path(X, y, max_memory=120_000 if kept == "cache" else 400_000, gram=kept, tol=1e-6, grid=grid)
        assert plans[-1][0].square < 100 and parts.certified
        for a, b in zip(parts.steps, whole.steps, strict=True):
            assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


def test_rounded_values_are_certified_in_double_precision(plans):
    X, y = two_classes(150, 5, seed=7, noise=1.5)
    rounded, whole = path(X, y, dtype=np.float32, tol=1e-6), path(X, y)
    assert rounded.certified and plans[0][1] == 4 * 150 * 150
    for a, b in zip(rounded.steps, whole.steps, strict=True):
        assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


def test_a_matrix_that_is_no_kernel_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        face_newton.FaceNewton().solve(np.array([[1.0, 5.0], [5.0, 1.0]]), np.arange(2), np.ones(2))


def test_a_factor_solves_on_other_coordinates():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 20))
    Q, base = A @ A.T, np.sort(rng.choice(60, 40, replace=False))
    factor = face_newton.Factor(Q, base, 1e-3)
    for left, joined in ((0, 0), (3, 0), (0, 4), (5, 5)):
        others = np.setdiff1d(np.arange(60), base)
        where = np.union1d(rng.choice(base, 40 - left, replace=False), rng.choice(others, joined, replace=False))
        right = rng.normal(size=where.size)
        expected = np.linalg.solve(Q[np.ix_(where, where)] + factor.shift * np.eye(where.size), right)
        np.testing.assert_allclose(factor.solve(Q, where, right), expected, rtol=1e-8)
    assert factor.solve(Q, np.setdiff1d(np.arange(60), base), np.ones(20)) is None


def test_a_working_set_holds_what_may_move():
    one = np.ones(5)
    t = np.array([0.5, -0.2, -0.4, -3.0, 2.0])  # the first violates, the next lie at their end, the last is held there
    alpha, lo, hi = np.array([0.0, 0.0, 0.0, 0.0, 1.0]), 0.0 * one, one
    index = np.arange(5)
    assert kernels.active(t, 0.0 * one, lo, hi, alpha, index, 9.0, 64, 0).tolist() == [0, 1, 2]
    many = np.concatenate([[0.5], -np.linspace(0.4, 0.1, 100)])
    zero = np.zeros(101)
    for share, besides, size in ((1.0, 64, 67), (0.0, 64, 66), (2.0, 0, 4), (0.0, 0, 2)):
        found = kernels.active(many, zero, zero, np.ones(101), zero, np.arange(101), share, besides, 0)
        assert found.tolist() == [0, *range(102 - size, 101)]  # of those held, the nearest


def test_a_working_set_with_spares_goes_up_to_twice_the_violation():
    t = np.array([0.1, -0.05, -0.15, -0.18, -0.19, -0.25])  # the first violates, the last is past twice as much
    zero, one, index = np.zeros(6), np.ones(6), np.arange(6)
    for spare, expected in ((0, [0, 1]), (1, [0, 1]), (2, [0, 1, 2, 3]), (9, [0, 1, 2, 3, 4])):
        assert kernels.active(t, zero, zero, one, zero, index, 9.0, 64, spare).tolist() == expected


@pytest.mark.parametrize("end", [1e9, 0.75])
def test_a_leap_maximises_the_dual_in_its_direction(end):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 5))
    Q, c, lo, hi = A @ A.T, rng.normal(size=8), np.full(8, -1e9), np.full(8, end)
    before, alpha = np.zeros(8), np.zeros(8)
    gradient = c - Q @ before
    alpha[:] = 1e-2 * gradient  # a small part of a steepest ascent
    direction, t, start = alpha.copy(), c - Q @ alpha, alpha.copy()
    dual = c @ alpha - 0.5 * alpha @ Q @ alpha
    assert kernels.leap(lo, hi, alpha, t, before, gradient)
    assert c @ alpha - 0.5 * alpha @ Q @ alpha > dual and np.all(alpha <= hi)
    share = (alpha - start)[0] / direction[0]
    np.testing.assert_allclose(alpha, start + share * direction)
    np.testing.assert_allclose(t, c - Q @ alpha, atol=1e-12)
    assert np.array_equal(before, alpha) and np.array_equal(gradient, t)
    assert abs(direction @ t) < 1e-12 or np.isclose(alpha.max(), end)
    assert not kernels.leap(lo, hi, alpha, t, before, gradient)  # nothing was gone since


def test_coordinates_of_a_working_set_are_taken_and_put_back():
    c, products, alpha = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 1.0]), np.array([0.1, 0.2, 0.3])
    lo, hi, norms, decided = np.zeros(3), np.ones(3), np.array([2.0, 0.0, 3.0]), np.array([0, 0, 1], dtype=np.int8)
    W = np.array([0, 2])
    found, t, low, high, diagonal = kernels.take(W, c, products, lo, hi, norms, alpha, decided)
    assert found.tolist() == [0.1, 0.3] and t.tolist() == [0.5, 2.0] and diagonal.tolist() == [4.0, 9.0]
    assert low.tolist() == [0.0, 0.3] and high.tolist() == [1.0, 0.3]  # the last one is decided: it stays
    index, step = kernels.put(W, np.array([0.6, 0.3]), alpha)
    assert index.tolist() == [0] and step.tolist() == [0.5] and alpha.tolist() == [0.6, 0.2, 0.3]


def test_a_working_set_that_is_kept_takes_longer_epochs(monkeypatch):
    X, y = two_classes(300, 5, seed=8, noise=2.0)
    options = {"solver": "smo", "gamma": 0.02, "tol": 1e-7}
    longer = path(X, y, **options)
    monkeypatch.setattr(smo, "LONGEST", 1)
    alike = path(X, y, **options)
    assert longer.certified and alike.certified
    assert sum(step.epochs for step in longer.steps) < 0.8 * sum(step.epochs for step in alike.steps)


def test_unknown_solver():
    with pytest.raises(UsageError, match="auto, newton, smo"):
        make_kernel_solver("cd")
