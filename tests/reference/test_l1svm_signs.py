"""L1-regularised SVMs with weights of one sign beside a cone solver; no decision is wrong."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import l1_svm_path
from screenpath.errors import DataError
from screenpath.problem.l1svm import L1SVM
from screenpath.rows.columns import Columns
from screenpath.screen.l1svm import contradicted, parse_feature_rule
from screenpath.solve.l1cd import make_feature_solver
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.width import wide

cp = pytest.importorskip("cvxpy")
CLOSE = {name: 1e-11 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}


def problem(rng):
    """Return data, labels, weights, and signs of features: some that go the other way."""
    n, d = int(rng.integers(10, 40)), int(rng.integers(3, 20))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.5, 1.0])) + rng.choice([0.0, 2.0])
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weights = rng.uniform(0.5, 3.0, size=n) if rng.random() < 0.5 else np.ones(n)
    return X, y, weights, rng.integers(-1, 2, size=d)


def goes(X, y, weights, signs) -> bool:
    """Tell, in fractions, whether at ``w = 0`` the loss falls along any feature in a direction that is allowed."""
    weights, labels = [Fraction(float(value)) for value in weights], [int(label) for label in y]
    bias = sum(s * label for s, label in zip(weights, labels, strict=True)) / sum(weights)
    parts = [s * label * (1 - label * bias) for s, label in zip(weights, labels, strict=True)]
    falls = [sum(Fraction(float(v)) * part for v, part in zip(x, parts, strict=True)) for x in X.T]
    return any(fall * int(sign) > 0 if sign else fall != 0 for fall, sign in zip(falls, signs, strict=True))


@pytest.mark.parametrize("seed", range(wide(12, 200)))
def test_the_optimum_is_that_of_a_cone_solver(seed):
    """Where no feature goes an allowed way, a grid is refused, and of lambdas that are given every optimum is 0."""
    rng = np.random.default_rng(seed)
    X, y, weights, signs = problem(rng)
    signs = np.ones_like(signs) if seed % 3 == 0 else signs
    how = {
        "tol": 1e-11, "sample_weight": weights, "rule": ("none", "vi", "gap", "vi+gap")[seed % 4],
        "solver": ("auto", "cd")[seed % 5 == 4], **({"nonnegative": True} if seed % 3 == 0 else {"signs": signs}),
    }  # fmt: skip
    data, any_goes = X if seed % 2 else sp.csr_array(X), goes(X, y, weights, signs)
    if not any_goes:
        with pytest.raises(DataError, match="lambda_max is 0|bars every feature"):
            l1_svm_path(data, y, grid=5, **how)
    path = l1_svm_path(data, y, grid=5 if any_goes else [2.0, 1.0, 1e-3], **how)
    assert any_goes or not path.coefficients[:, : X.shape[1]].any()
    assert np.all(path.coefficients[:, : X.shape[1]] * signs >= 0.0)
    for step in path.steps[1:]:
        w, b, lam = cp.Variable(X.shape[1]), cp.Variable(), step.parameters["lambda"]
        loss = 0.5 * weights @ cp.square(cp.pos(1.0 - cp.multiply(y, X @ w + b)))
        value = cp.Problem(cp.Minimize(loss + lam * cp.norm1(w)), [cp.multiply(signs, w) >= 0.0])
        best = value.solve(solver="CLARABEL", **CLOSE)
        assert step.status == "certified" and abs(step.primal - best) <= 1e-8 * best, (seed, step)


@pytest.mark.parametrize("seed", range(wide(6, 60)))
def test_no_decision_is_wrong(seed):
    """Nor is any made where a feature goes the allowed way: with signs turned round, other features are screened."""
    X, y, weights, signs = problem(np.random.default_rng(seed))
    model = L1SVM(Columns(X, y), signs.astype(np.int8))
    if not model.lam_max > 0.0:
        return
    audit = Audit(make_feature_solver("auto"), PathOptions(tol=1e-10), contradicted)
    grid = [model.lam_max / k for k in (1.0, 1.5, 2.0, 4.0, 8.0)]
    steps = list(walk(model, grid, parse_feature_rule("vi+gap"), make_feature_solver("auto"),
                      PathOptions(tol=1e-9, audit=audit)))  # fmt: skip
    assert all(step.status == "certified" and step.extras["unsafe"] == 0 for step, _ in steps)
    assert all(np.all(found.w * signs >= 0.0) for _, found in steps)
    barred = np.array([np.abs(found.products) > 1.0 for _, found in steps])  # only where a sign forbids the weight
    assert np.all(signs * np.sign([found.products for _, found in steps]) * barred <= 0.0)
