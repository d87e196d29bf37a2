"""The sparse SVM with the squared hinge: against a cone solver, and by its own definitions."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.errors import DataError, UsageError
from screenpath.problem.grid import beta_grid, grid_pairs
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.problem.sparse_sums import width_beyond
from screenpath.rows.views import Views
from screenpath.screen.sparse import contradicted, parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk import workers
from screenpath.walk.loop import PathOptions, walk
from tests.plain import sparse_svm_path

WEIGHTS = ("none", "near", "far")


def problem(seed=0, classes=1, weights="none", n=50, d=25):
    """Return data of different scales, labels and weights; one class is larger."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1.0, 1.0, size=d) * (rng.random(size=(n, d)) < 0.6)
    X[:, 3] += 2.0
    scores = X[:, :4] @ rng.normal(size=(4, max(classes, 2))) + 0.5 * rng.normal(size=(n, max(classes, 2)))
    y = np.where(scores[:, 0] > scores[:, 1] + 0.7, 1, -1)
    if classes > 1:
        y = (scores - scores.mean(axis=0)).argmax(axis=1)
    s = {"none": None, "near": rng.uniform(0.5, 2.0, size=n), "far": 10.0 ** rng.uniform(-3.0, 2.0, size=n)}[weights]
    return X, y.astype(np.int64), s


def objective(X, y, s, W, b, alpha, beta):
    """Return the primal value from its definition, and the margins."""
    s = np.ones(y.size) if s is None else s
    if y.min() < 0:
        t = (1.0 - y * (X @ W + b))[:, None]
    else:
        scores = X @ W.T
        t = 1.0 - scores[np.arange(y.size), y][:, None] + scores
        t[np.arange(y.size), y] = 0.0
    loss = 0.5 * (s @ (np.maximum(t, 0.0) ** 2).sum(axis=1)) / s.sum()
    return loss + 0.5 * alpha * (W**2).sum() + beta * np.abs(W).sum(), t


def optimum(X, y, s, alpha, beta, free):
    """Return the optimum by an interior-point method."""
    s, d, classes = np.ones(y.size) if s is None else s, X.shape[1], 1 if y.min() < 0 else y.max() + 1
    if classes == 1:
        W, b = cp.Variable(d), cp.Variable() if free else 0.0
        loss = s @ cp.square(cp.pos(1.0 - cp.multiply(y, X @ W + b)))
    else:
        W = cp.Variable((classes, d))
        scores, own = X @ W.T, np.eye(classes)[y]
        t = 1.0 - cp.sum(cp.multiply(own, scores), axis=1)[:, None] @ np.ones((1, classes)) + scores
        loss = s @ cp.sum(cp.multiply(1.0 - own, cp.square(cp.pos(t))), axis=1)
    value = 0.5 * loss / s.sum() + 0.5 * alpha * cp.sum_squares(W) + beta * cp.sum(cp.abs(W))
    task = cp.Problem(cp.Minimize(value))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("classes", "intercept"), [(1, "none"), (1, "free"), (3, "none")])
def test_paths_reach_the_optimum(classes, intercept, weights):
    X, y, s = problem(1, classes, weights)
    given = sp.csr_array(X) if weights == "near" else X
    path = sparse_svm_path(
        given, y, loss="squared-hinge", betas=2, alphas=6, beta_min_ratio=0.1, sample_weight=s, intercept=intercept,
        tol=1e-9,
    )  # fmt: skip
    W, b = (path.coefficients.toarray() if sp.issparse(path.coefficients) else path.coefficients), path.intercepts
    assert all(step.status == "certified" for step in path.steps) and path.steps[-1].nnz_w > 3
    for k in range(2, 12, 3):
        step, alpha, beta = path.steps[k], path.steps[k].parameters["alpha"], path.steps[k].parameters["beta"]
        here, t = objective(X, y, s, W[k], b[k], alpha, beta)
        best = optimum(X, y, s, alpha, beta, intercept == "free")
        assert step.primal == pytest.approx(here, rel=1e-11)
        assert best * (1.0 - 1e-8) <= here <= best * (1.0 + 1e-8)
        assert step.dual <= best * (1.0 + 1e-9) and step.n_L == 0
        assert np.abs(t).max() < width_beyond(y.size, classes, s)


def test_the_width_is_the_next_power_of_two():
    for n in range(1, 70):
        for classes in (1, 2, 3, 7):
            for weights, share in ((None, 1.0), ([0.0, 3.0] + [5.0] * n, 3.0 * n / (3.0 + 5.0 * n))):
                needed = n * max(classes - 1, 1) / share
                assert needed < width_beyond(n, classes, weights) ** 2 <= 4.05 * needed


@pytest.mark.parametrize("weights", [[1e-310, 1, 1, 1], [1e-300, 1e12, 1, 1], [5e-324, 1e99, 1, 1]])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_a_weight_that_is_nothing_beside_the_others_is_refused(weights, intercept):
    """The width would be too large for squares; one just above that is none."""
    X, y = [[1.0, 2], [2, -1], [-1.0, 0], [0.3, 0.3]], [1.0, 1, -1, -1]
    options = {"loss": "squared-hinge", "betas": 1, "alphas": 2, "intercept": intercept}
    with pytest.raises(DataError, match="too small"):
        sparse_svm_path(X, y, sample_weight=weights, **options)
    sparse_svm_path(X, y, sample_weight=[1e-305, 1, 1, 1], **options)
    assert width_beyond(4, 1, [1e-305, 0.0, 1, 1]) > 1e152


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", [SparseModel, FreeSparseModel])
def test_the_gap_is_that_of_the_squared_hinge(kind, weights):
    """Of a pair that is far from optimal: its own objectives, with dual variables that may be above 1."""
    X, y, s = problem(2, 1, weights)
    model, rng, n = kind(Views(X), y, 1, 0.02, np.inf, s), np.random.default_rng(0), y.size
    shares = (np.ones(n) if s is None else s) * n / (n if s is None else s.sum())
    for size in (0.0, 1e-3, 1e-2):
        w = size * rng.normal(size=X.shape[1])
        c = model.certify(0.3, w, None)
        value, t = objective(X, y, s, w, c.intercept, 0.3, 0.02)
        v = model.gamma * c.theta
        np.testing.assert_allclose(v, np.maximum(t[:, 0], 0.0), rtol=1e-9, atol=1e-9)
        u = X.T @ (shares * y * v) / n
        shrunk = np.sign(u) * np.maximum(np.abs(u) - 0.02, 0.0)
        dual = (shares @ (v - 0.5 * v * v)) / n - shrunk @ shrunk / 0.6
        assert c.primal == pytest.approx(value, rel=1e-12) and c.gap == pytest.approx(value - dual, rel=1e-9)
        if kind is FreeSparseModel:
            assert abs(shares @ (y * v)) < 1e-9 * n
        if size == 0.0:
            assert c.primal == pytest.approx(model.null_loss, rel=1e-12)
            np.testing.assert_allclose(c.theta, model.top, rtol=1e-9)


@pytest.mark.parametrize("rule", ["sifs", "iss", "ifs", "sifs+gap", "gap"])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_no_decision_is_wrong(rule, intercept):
    """Every rule against a solution of high accuracy; all but one find something here."""
    found = 0
    for seed, weights in enumerate(WEIGHTS):
        X, y, s = problem(3 + seed, 1, weights)
        base = sparse_model(Views(X), y, 1, np.inf, s, intercept)
        model = SparseGrid(base)
        pairs = grid_pairs(base, beta_grid(2, base.beta_max, 0.3), 20, 1e-3)
        screening, accurate = parse_sparse_rule(rule), PathOptions(tol=1e-13)
        how = parse_sparse_rule("none"), make_sparse_solver("newton"), accurate
        before = None
        for pair, (_, exact) in zip(pairs, walk(model, pairs, *how), strict=True):
            before = model.start(pair) if before is None or before.beta != exact.beta else before
            row, before, alpha = model.bound(before, pair)
            screened = screening.before(row, before, alpha) if rule != "gap" else screening.again(row, exact, alpha)
            assert contradicted(row, exact, alpha, screened.status) == 0
            assert not np.any(exact.w[screened.keep == 0]) and not np.any(exact.theta[screened.duals < 0] > 0.0)
            assert not np.any(screened.duals > 0)
            found += int(np.count_nonzero(screened.status))
            before = exact
    assert found > 50 or (rule, intercept) == ("iss", "free")


def test_above_beta_max_no_feature_has_a_weight():
    for intercept in ("none", "free"):
        X, y, s = problem(5, 1, "near")
        base = sparse_model(Views(X), y, 1, np.inf, s, intercept)
        top = base.beta_max
        how = parse_sparse_rule("sifs+gap"), make_sparse_solver("newton"), PathOptions(tol=1e-10)
        for beta, alpha in ((1.001 * top, 1e-3), (0.98 * top, 1e-3)):
            ((step, c),) = walk(SparseGrid(base), [(alpha, beta)], *how)
            assert step.status == "certified" and (c.nonzero > 0) == (beta < top)
            if beta > top:
                assert step.solver == "closed-form" and c.primal == pytest.approx(base.null_loss)


def test_weights_count_as_copies_and_by_their_ratios_alone():
    X, y, _ = problem(6)
    counts = np.random.default_rng(0).integers(1, 4, size=y.size)
    how = {"loss": "squared-hinge", "alphas": [0.3, 0.03], "betas": [0.05], "tol": 1e-11, "intercept": "free"}
    one = sparse_svm_path(np.repeat(X, counts, axis=0), np.repeat(y, counts), **how)
    for factor in (1.0, 1e-7):
        other = sparse_svm_path(X, y, sample_weight=factor * counts, **how)
        np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-6)
        np.testing.assert_allclose(other.intercepts, one.intercepts, atol=1e-6)


def test_a_worker_makes_the_same_model():
    X, y, s = problem(7, 1, "near")
    for intercept in ("none", "free"):
        model = sparse_model(Views(X), y, 1, np.inf, s, intercept)
        again = sparse_model(*workers._parts(model))
        assert type(again) is type(model) and again.gamma == model.gamma
        np.testing.assert_array_equal(again.u_top, model.u_top)


def test_what_cannot_be():
    X, y, _ = problem(8, 3)
    for more, said in (
        ({"smoothing": 0.3}, "another loss"), ({"intercept": "free"}, "two labels"), ({"loss": "log"}, "squared-hinge"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            sparse_svm_path(X, y, **{"loss": "squared-hinge", **more})
