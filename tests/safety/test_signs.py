"""Weights with signs, of sparse SVMs and Huber regression: no decision is wrong, no certificate claims too much."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.kernels.problem import sparse as kernels
from screenpath.kernels.screen import sifs
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.safety.rational_penalised import Sparse, hostile, random_weights
from tests.safety.test_huber import ENDS, targets_of
from tests.safety.test_huber import problem as regression
from tests.safety.test_rational_sparse import points
from tests.safety.test_sparse_free import FreeSparse, attack
from tests.safety.test_sparse_free import problem as labelled
from tests.sparse_problems import problem as classified
from tests.width import wide


def again(model, signs, intercept):
    """Return the same model with signs of its weights."""
    targets = model.kinks if model.regression else None
    return sparse_model(
        model.views, model.labels, model.classes, model.width, model.given, intercept, targets, (model.low, model.high),
        signs,
    )  # fmt: skip


def problem(rng, kind=None):
    """Return a model of two labels, of three, or of targets, with a free intercept or without."""
    kind, intercept = int(rng.integers(3)) if kind is None else kind, ("free", None)[int(rng.integers(2))]
    if kind == 2:
        model, intercept = classified(classes=3, n=30, d=8, seed=int(rng.integers(1000)), weights=np.ones(30))[2], None
    else:
        model = labelled(rng) if kind == 0 else regression(rng, intercept)
    return again(model, rng.choice([-1, 0, 1, 1], size=model.d).astype(np.int8), intercept)


def test_no_decision_is_wrong():
    count = wide(24, 90)
    made, wrong = attack(range(count), problem)
    assert made > 100 * count and wrong == 0


def test_the_attack_finds_signs_that_are_turned_round(monkeypatch):
    whole = rules.kernels.Constants

    def turned(columns, rows, signs, *rest):
        return whole(columns, rows, -signs, *rest)

    monkeypatch.setattr(rules.kernels, "Constants", turned)
    assert rules.kernels is sifs and any(attack([seed], problem)[1] for seed in range(30))


@pytest.mark.parametrize("seed", range(6))
def test_screened_and_unscreened_paths_agree(seed):
    base = problem(np.random.default_rng(100 + seed), seed % 3)
    betas = 0.5 * base.beta_max, 0.05 * base.beta_max
    pairs = [(base.at(beta).alpha_max() * share, beta) for beta in betas for share in (1.0, 0.3, 0.05, 0.0)]
    options = PathOptions(tol=1e-9, audit=Audit(SparseNewton(), PathOptions(tol=1e-9), rules.contradicted))
    paths = [
        list(walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options))
        for rule in ("none", "sifs", "sifs+gap", "gap", "ifs", "iss")
    ]
    for steps in zip(*paths, strict=True):
        for step, found in steps:
            assert step.status == "certified" and step.extras["unsafe"] == 0
            assert found.dual <= steps[0][1].highest * (1 + 1e-12) and np.all(found.w * base.signs >= 0.0)
    assert sum(step.n_features_screened for step, _ in paths[1]) > 0


@settings(max_examples=wide(20, 80), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9, 1e-12]))
def test_no_step_claims_more_than_is_true(seed, tol):
    rng = np.random.default_rng(seed)
    X, labels = hostile(rng)
    intercept, gamma = (None, "free")[seed % 2], float(rng.choice([0.5, 0.9, 0.05, 1e-3]))
    y, ends = (labels, (0, 1)) if rng.random() < 0.5 else (None, ENDS)
    labels = np.ones(len(X), dtype=np.int64) if y is None else y.astype(np.int64)
    targets = None
    if y is None:
        targets, gamma = targets_of(rng, X)
    weights, signs = random_weights(seed, labels), rng.choice([-1, 0, 1], size=X.shape[1]).astype(np.int8)
    base = sparse_model(Views(X), labels, 1, gamma, weights, intercept, targets, ends, signs)
    more = gamma, weights, targets, ends
    twin = FreeSparse(X, labels, *more) if intercept else Sparse(X, labels, 1, *more)
    twin.signs = [int(sign) for sign in signs]
    rule, options = ("none", "sifs", "gap", "sifs+gap")[seed // 2 % 4], PathOptions(tol=tol, max_epochs=300)
    pairs = points(rng, base)
    for step, c in walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options) if pairs else ():
        assert np.all(c.w * signs >= 0.0)
        for alpha, gap in ((c.alpha, c.gap), (0.7 * c.alpha, base.at(c.beta).gap_at(c, 0.7 * c.alpha))):
            primal, dual = twin.gap_of(c, alpha) if intercept else twin.objectives(c.w, c.theta, alpha, c.beta)
            assert gap == np.inf or Fraction(gap) >= primal - dual, (seed, step)
            if alpha == c.alpha:
                assert abs(Fraction(step.primal) - primal) <= Fraction(c.primal_error), (seed, step)
        assert step.status != "certified" or step.gap <= tol * step.primal


def test_the_threshold_of_a_weight_with_a_sign_has_one_side():
    w, u, signs = np.array([0.0, 0.0, 0.3, -0.2, 0.3]), np.array([2.0, -2.0, -2.0, -2.0, 0.5]), [-1, 1, 1, -1, 0]
    terms = kernels.feature_terms(w, u, np.array(signs, dtype=np.int8), np.arange(5), np.ones(5), 2.0, 0.4)
    shrunk = np.array([0.0, 0.0, 0.0, -1.6, 0.1])
    expected = np.sum(w**2) + np.sum(0.4 * np.abs(w)) + np.sum(shrunk**2) / 4.0 - w @ u
    assert terms[2] + 0.5 * terms[3] == pytest.approx(expected) and terms[6:] == (3, 3)
