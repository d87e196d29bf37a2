"""Solvers of the kernel model: they agree, they stop where asked, they manage singular matrices and small memory."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from screenpath import kernel_lad_path, lad_path
from screenpath.errors import UsageError
from screenpath.kernels.solve import smo as kernels
from screenpath.kernels.solve.active_set import members, settle
from screenpath.rows import gram
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.solve import face_newton, smo
from screenpath.solve.active_set import ActiveSet
from screenpath.solve.smo import make_kernel_solver
from tests.conftest import two_classes
from tests.plain import kernel_svm_path
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


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_features_of_unlike_sizes_take_few_newton_steps(monkeypatch, intercept):
    """Of rank 4: a ridge that rises with each cut step keeps all of them short, and float32 hides the small features.
    """
    left, face_step = iter(range(1000)), face_newton.FaceNewton.face_step
    monkeypatch.setattr(face_newton.FaceNewton, "face_step", lambda *a: (next(left), face_step(*a))[1])
    X, y = two_classes(200, 4, seed=2, noise=1.5)
    found = path(X * [1.0, 1e2, 1e4, 2.0], y, kernel="linear", gamma=1.0, intercept=intercept, tol=1e-6)
    assert found.certified and next(left) > 0


@pytest.mark.parametrize(("size", "kept"), [(1.0, np.float32), (300.0, np.float64)])
@pytest.mark.parametrize("asked", [np.float32, np.float64])
def test_a_square_starts_in_float64_where_float32_would_blur_the_kinks(monkeypatch, size, kept, asked):
    seen, slots = [], gram.Square.slots
    monkeypatch.setattr(gram.Square, "slots", lambda square, index: seen.append(square.dtype) or slots(square, index))
    X, y = two_classes(60, 3, seed=3, noise=1.5)
    assert path(size * X, y, kernel="linear", grid=[1.0], tol=1e-3, dtype=asked).certified
    assert seen[0] == min(np.dtype(kept), np.dtype(asked))


def test_repeated_rows_and_rows_of_zeros():
    X, y = two_classes(60, 3, seed=3)
    X = np.vstack([X, X, X, np.zeros((4, 3))])
    y = np.concatenate([y, y, -y, [1.0, 1.0, -1.0, -1.0]])
    for kernel in ("rbf", "linear"):
        assert path(X, y, kernel=kernel, **({} if kernel == "rbf" else {"gamma": 1.0})).certified


@pytest.mark.parametrize("solver", ["newton", "smo"])
@pytest.mark.parametrize("seed", [73, 74, 178, 185])
def test_many_rows_of_zeros_with_equal_targets(solver, seed):
    """Two of one target have equal gradients and a distance of 0: no step between them changes anything."""
    rng = np.random.default_rng(seed)
    X, y, grid = rng.normal(size=(12, 2)), None, [0.01, 0.1**0.5, 10.0]
    X[:8], y = 0.0, np.round(rng.normal(size=12) + 5.0)
    found = kernel_lad_path(X, y, kernel="linear", intercept="free", grid=grid, solver=solver)
    other = lad_path(X, y, intercept="free", grid=grid)
    assert found.certified and other.certified
    for a, b in zip(found.steps, other.steps, strict=True):
        assert a.primal == pytest.approx(b.primal, rel=2e-6)


def test_newton_steps_on_rows_of_zeros_have_a_ridge():
    newton = face_newton.FaceNewton()
    found = newton.solve(np.zeros((3, 3), dtype=np.float32), np.arange(3), np.ones((3, 1)))
    assert np.all(np.isfinite(found)) and np.all(found > 0.0)


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
    """How many rows the paths of a test use at once, in turn."""
    found, planned = [], gram.GramRows.__init__

    def noted(rows, *arguments, **options):
        planned(rows, *arguments, **options)
        found.append(rows.plan)

    monkeypatch.setattr(gram.GramRows, "__init__", noted)
    return found


def test_an_active_set_that_does_not_fit_is_solved_in_parts(monkeypatch, plans):
    monkeypatch.setattr(gram, "SQUARE", 40)
    monkeypatch.setattr(gram, "WHOLE", 0)
    X, y = two_classes(200, 4, seed=6, noise=1.5)
    grid = GRID[: wide(3, 5)]  # the last take most of the time, and many parts' sums are rounded too often
    whole = path(X, y, grid=grid)
    parts = path(X, y, max_memory=8 * 200 * gram.HEIGHT + 60_000, tol=1e-6, grid=grid)
    assert plans[-1].square < 60 and [step.status for step in parts.steps[:3]] == ["certified"] * 3
    assert {step.status for step in parts.steps} <= {"certified", "rounding"}
    for a, b in zip(parts.steps, whole.steps, strict=True):
        assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_square_of_rounded_values_leads_to_gaps_of_exact_ones(monkeypatch, dtype):
    monkeypatch.setattr(gram, "WHOLE", 0)
    X, y = two_classes(150, 5, seed=7, noise=1.5)
    for kernel in ("rbf", "linear", "poly"):
        found, other = (path(X, y, dtype=t, tol=1e-6, kernel=kernel, gamma=1.0) for t in (dtype, np.float64))
        assert found.certified
        for a, b in zip(found.steps, other.steps, strict=True):
            assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


def test_values_beyond_the_range_of_float32_are_kept_in_float64():
    X, y = two_classes(60, 3, seed=3, noise=1.5)
    options = {"kernel": "poly", "degree": 9, "gamma": 3e4, "grid": [1e-42, 1e-40], "tol": 1e-4}
    assert path(X, y, dtype=np.float32, **options).certified


def test_a_matrix_that_is_no_kernel_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        face_newton.FaceNewton().solve(np.array([[1.0, 5.0], [5.0, 1.0]]), np.arange(2), np.ones((2, 1)))


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-8), (np.float32, 2e-2)])
def test_a_factor_solves_on_other_coordinates(dtype, close):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 20))
    Q, base = A @ A.T, np.sort(rng.choice(60, 40, replace=False))
    factor = face_newton.Factor(Q, base, 1e-3, np.empty((base.size, base.size), dtype=dtype))
    assert factor.lower.dtype == dtype
    for left, joined in ((0, 0), (3, 0), (0, 4), (5, 5)):
        others = np.setdiff1d(np.arange(60), base)
        where = np.union1d(rng.choice(base, 40 - left, replace=False), rng.choice(others, joined, replace=False))
        right = rng.normal(size=(where.size, 2))
        expected = np.linalg.solve(Q[np.ix_(where, where)] + factor.shift * np.eye(where.size), right)
        np.testing.assert_allclose(factor.solve(Q, where, right), expected, rtol=close, atol=close)
    assert factor.solve(Q, np.setdiff1d(np.arange(60), base), np.ones((20, 2))) is None


def test_a_factor_is_float32_where_its_ridge_allows_it(monkeypatch):
    A = np.random.default_rng(0).normal(size=(200, 3))
    Q, newton, right = (A @ A.T).astype(np.float32), face_newton.FaceNewton(), np.ones((200, 1))

    def dtype_at(ridge, Q):
        newton.ridge, newton.factor = ridge, None
        found = newton.solve(Q, np.arange(200), right)
        np.testing.assert_allclose(Q @ found + newton.factor.shift * found, right, atol=0.02)
        return newton.factor.lower.dtype

    assert [dtype_at(ridge, Q) for ridge in (1e-2, 1e-4, 1e-6)] == [np.float32, np.float32, np.float64]
    assert dtype_at(1e-2, Q.astype(float)) == np.float64
    monkeypatch.setattr(face_newton, "ROUGH", 0.0)
    low = Q - np.float32(0.5e-7 * Q.max()) * np.eye(200, dtype=np.float32)
    assert dtype_at(2e-7, low) == np.float64 and newton.factor.ridge == 2e-7  # float32 breaks down there


def test_members_are_those_inside_and_the_worst_of_either_side():
    t, lo, hi = np.array([0.5, -0.2, 0.9, -3.0, 2.0, 0.1, -0.4]), np.zeros(7), np.ones(7)
    beta = np.array([0.0, 0.0, 0.5, 1.0, 1.0, 0.0, 1.0])  # 2 is inside; 0, 1 and 5 can rise, 3, 4 and 6 fall
    for room, most, expected in ((9, 9, range(7)), (1, 9, (0, 2, 3)), (2, 9, (0, 2, 3, 5, 6)), (9, 4, (0, 2, 3))):
        assert members(t, lo, hi, beta, room, most, -np.inf, np.inf).tolist() == list(expected)
    assert members(t, lo, hi, beta, 9, 9, 0.0, -1.0).tolist() == [0, 2, 3, 5]
    assert members(np.zeros(7), lo, hi, beta, 1, 9, -np.inf, np.inf).tolist() == [0, 2, 3]  # the first of equal ones
    inside = members(t, lo, hi, np.full(7, 0.5), 9, 4, -np.inf, np.inf)  # a quarter of 4 from either end
    assert inside.tolist() == [3, 4]


def test_gradients_follow_what_has_moved():
    rng = np.random.default_rng(0)
    K, slots, W = np.cov(rng.normal(size=(9, 9))), np.array([7, 1, 3, 8, 0]), np.array([0, 2, 3])
    beta, t = rng.normal(size=5), rng.normal(size=5)
    moved, before = beta[W] + np.array([0.5, 0.0, -2.0]), (beta.copy(), t.copy())
    assert settle(K, 1.0, slots, W, moved, beta, t) and not settle(K, 1.0, slots, W, moved, beta, t)
    np.testing.assert_array_equal(beta[W], moved)
    np.testing.assert_allclose(t, before[1] - K[np.ix_(slots, slots)] @ (beta - before[0]), atol=1e-14)


def quadratic(m=12, seed=0):
    """Return a matrix, a gradient at zero, and a box of signless dual variables."""
    rng = np.random.default_rng(seed)
    A, c = rng.normal(size=(m, m)), np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    return A @ A.T / m, c, np.minimum(0.0, 2.0 * c), np.maximum(0.0, 2.0 * c)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pair_steps_keep_the_sum_and_end_at_the_optimum(dtype):
    K, c, lo, hi = quadratic()
    K, beta, t = K.astype(dtype), np.zeros(12), c.copy()
    steps = kernels.pairs(K, lo, hi, beta, t, 10_000, 1e-9)
    assert 0 < steps < 10_000 and abs(beta.sum()) < 1e-12 and np.all((lo <= beta) & (beta <= hi))
    np.testing.assert_allclose(t, c - K.astype(float) @ beta, atol=1e-12)
    assert t[beta < hi].max() - t[beta > lo].min() <= 1e-9
    left, b = kernels.slack(t, lo, hi, beta, True)
    assert abs(left) < 1e-8 and t[beta > lo].min() - 1e-9 <= b <= t[beta < hi].max() + 1e-9
    again = beta.copy()
    assert kernels.pairs(K, lo, hi, again, t, 5, 1e-9) == 0 and np.array_equal(again, beta)


@pytest.mark.parametrize("place", [0, 127, 128, 299])
def test_a_pair_is_the_worst_wherever_it_stands(place):
    """Of 300 variables, whose largest violation is searched for in parts."""
    rng = np.random.default_rng(place)
    t, other = rng.uniform(-1.0, 1.0, 300), (place + 150) % 300
    t[place], t[other] = 3.0, -3.0
    beta = np.zeros(300)
    assert kernels.pairs(np.eye(300, dtype=np.float32), -np.ones(300), np.ones(300), beta, t, 1, 0.0) == 1
    assert np.flatnonzero(beta).tolist() == sorted((place, other)) and beta[place] == 1.0


def test_pair_steps_stop_where_they_are_told():
    K, c, lo, hi = quadratic()
    beta, t = np.zeros(12), c.copy()
    assert kernels.pairs(K, lo, hi, beta, t, 3, 0.0) == 3 and np.count_nonzero(beta) <= 6


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("newton", [True, False])
def test_an_active_set_is_solved_with_and_without_an_intercept(free, newton):
    X, y = two_classes(80, 4, seed=9, noise=1.5)
    rows = GramRows(X, KernelFunction("rbf", 0.3), y, 1 << 24)
    lo, hi, beta, t = np.minimum(0.0, 5.0 * y), np.maximum(0.0, 5.0 * y), np.zeros(80), y.copy()
    part = ActiveSet(rows.square, np.arange(80), t, lo, hi, beta)
    part.solve(1e-10, face_newton.FaceNewton(free=free) if newton else None, free)
    K = rbf_kernel(X, gamma=0.3)
    gap, b = kernels.slack(y - K @ part.beta, lo, hi, part.beta, free)
    assert gap < 1e-9 and (abs(part.beta.sum()) < 1e-11 if free else b == 0.0)


def test_a_first_point_of_fewer_rows_leaves_little_to_do(monkeypatch):
    X, y = two_classes(1400, 4, seed=3, noise=1.5)
    some = (y > 0) | (np.arange(1400) % 3 == 0)  # with as many of each class another start is known
    X, y = X[some], y[some]
    monkeypatch.setattr(smo, "LEAST", 200)
    monkeypatch.setattr(smo, "WRONG", 50)
    monkeypatch.setattr(smo, "MORE", 20)
    found = {}
    for level in (6, 10**6):
        monkeypatch.setattr(smo, "LEVEL" if level == 6 else "LEAST", level)
        found[level] = path(X, y, gamma=0.1, grid=[1.0], tol=1e-4, intercept="free", rule="none").steps[0]
    assert found[6].status == found[10**6].status == "certified"
    assert found[6].dual <= found[10**6].primal and found[10**6].dual <= found[6].primal
    assert found[6].epochs < found[10**6].epochs


def test_unknown_solver():
    with pytest.raises(UsageError, match="auto, newton, smo"):
        make_kernel_solver("cd")
