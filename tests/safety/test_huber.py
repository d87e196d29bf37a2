"""Huber regression with an elastic net: no decision is wrong, no certificate claims more than is true."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.problem.penalised_sharp import sharpened
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.safety.rational_penalised import Sparse, hostile, random_weights
from tests.safety.test_rational_sparse import points
from tests.safety.test_sparse_free import SHRUNK, FreeSparse, attack, solved
from tests.width import wide

ENDS = -1.0, 1.0
INTERCEPTS = pytest.mark.parametrize("intercept", [None, "free"])


def model_of(X, y, gamma, weights=None, intercept=None):
    """Return the model at ``beta = 0``."""
    return sparse_model(Views(X), np.ones(len(y), dtype=np.int64), 1, gamma, weights, intercept, y, ENDS)


def problem(rng, intercept=None):
    """Return a small model: outliers, targets with a mean far from 0 or without, now and then weights."""
    n, d = int(rng.integers(12, 50)), int(rng.integers(2, 20))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + rng.choice([0.0, 3.0]) * rng.normal(size=d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.6])] = 0.0
    forms = X @ (rng.normal(size=d) * (rng.random(d) < 0.5))
    y = forms + 0.3 * (forms.std() + 1.0) * rng.standard_t(1.5, size=n) + rng.choice([0.0, 5.0])
    y *= 10.0 ** rng.choice([-3.0, 0.0, 3.0])
    weights = rng.integers(0, 4, size=n).astype(float) if rng.random() < 0.4 else None
    if weights is not None:
        weights[:2] = 1.0
    gamma = float(np.std(y) * 10.0 ** rng.uniform(-2.0, 1.0))
    return model_of(sp.csr_array(X) if rng.random() < 0.5 else X, y, gamma, weights, intercept)


@INTERCEPTS
def test_no_decision_is_wrong(intercept):
    count = wide(12, 60)
    made, wrong = attack(range(count), partial(problem, intercept=intercept))
    assert made > 100 * count and wrong == 0


def tight() -> tuple[int, int]:
    """Return decisions and wrong ones where the optimal weight is at the end of its ball.

    One row pulls the only weight; rows that hardly count tell where it is.
    """
    probes = np.linspace(1.0, 1.5, 301)
    x = np.concatenate([[0.0, 0.0, 2.0], probes, -probes])
    y = np.concatenate([[9.0, -9.0, 9.0], np.ones(probes.size), np.ones(probes.size)])
    weights = np.concatenate([[1e4, 1e4, 1.0], np.full(2 * probes.size, 1e-7)])
    model = model_of(x[:, None], y, 0.5, weights)
    pull = 2.0 * model.weights[2] / x.size
    model, alpha = model.at(0.1 * pull), 0.9 * pull / 0.4
    best = solved(model, alpha)
    at = rules.screen(model, model.certify(alpha, np.array([0.1]), best.theta), alpha, True, False, True)
    here = best.theta[at.duals != 0]
    return int(np.sum(at.duals != 0)), int(np.sum(np.abs(here - at.duals[at.duals != 0]) > 1e-5))


def test_the_attack_finds_a_ball_that_is_too_small(monkeypatch):
    made, wrong = tight()
    assert made > 0 and wrong == 0
    whole = rules._regions

    def less(*given, **more):
        found = whole(*given, **more)
        return found._replace(primal_sq=SHRUNK**2 * found.primal_sq)

    monkeypatch.setattr(rules, "_regions", less)
    assert tight()[1] > 0


def test_the_attack_finds_dual_balls_that_are_too_small(monkeypatch):
    whole = rules._regions

    def less(*given, **more):
        found = whole(*given, **more)
        return found._replace(first_sq=0.25 * found.first_sq, second_sq=0.25 * found.second_sq, worth=np.inf)

    monkeypatch.setattr(rules, "_regions", less)
    assert any(attack([seed], problem)[1] for seed in range(60))


def test_the_attack_finds_a_distance_to_the_targets_that_leaves_them_out(monkeypatch):
    monkeypatch.setattr(SparseModel, "kinks_sq", property(lambda model: 0.0, lambda model, value: None), raising=False)
    assert any(attack([seed], problem)[1] for seed in range(60))


@INTERCEPTS
@pytest.mark.parametrize("seed", range(4))
def test_screened_and_unscreened_paths_agree(seed, intercept):
    base = problem(np.random.default_rng(100 + seed), intercept)
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
            assert found.dual <= steps[0][1].highest * (1 + 1e-12)
            if intercept is not None:
                signed = found.theta * base.given
                assert found.low <= found.intercept <= found.high
                assert abs(signed.sum()) <= 1e-12 * np.abs(signed).sum()
    assert sum(step.screened_R + step.screened_L + step.n_features_screened for step, _ in paths[1]) > 0




def targets_of(rng, X):
    """Return targets of hostile data and a width, both of any size."""
    y = rng.normal(size=len(X)) * 10.0 ** rng.choice([0, -6, 6, 12]) + rng.choice([0.0, 1.0, 1e6])
    return y, float((np.abs(y).max() or 1.0) * 10.0 ** rng.choice([-6.0, -2.0, 0.0, 0.0, 3.0]))


@settings(max_examples=wide(20, 80), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9, 1e-12]))
def test_no_step_claims_more_than_is_true(seed, tol):
    rng = np.random.default_rng(seed)
    X, _ = hostile(rng)
    y, gamma = targets_of(rng, X)
    weights = random_weights(seed, np.ones(len(y)))
    intercept = (None, "free")[seed % 2]
    base = model_of(X if seed % 3 else sp.csr_array(X), y, gamma, weights, intercept)
    ones = np.ones(len(y), dtype=np.int64)
    twin = FreeSparse(X, ones, gamma, weights, y, ENDS) if intercept else Sparse(X, ones, 1, gamma, weights, y, ENDS)
    rule, options = ("none", "sifs", "gap", "sifs+gap")[seed // 2 % 4], PathOptions(tol=tol, max_epochs=300)
    pairs = points(rng, base)
    for step, c in walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options) if pairs else ():
        for alpha, gap in ((c.alpha, c.gap), (0.7 * c.alpha, base.at(c.beta).gap_at(c, 0.7 * c.alpha))):
            if intercept:
                primal, dual = twin.gap_of(c, alpha)
                assert dual is not None or step.gap == np.inf, (seed, step)
            else:
                primal, dual = twin.objectives(c.w, c.theta, alpha, c.beta)
            if alpha == c.alpha:
                assert abs(Fraction(step.primal) - primal) <= Fraction(c.primal_error), (seed, step)
                assert step.gap == np.inf or Fraction(step.dual) <= dual, (seed, step)
            assert gap == np.inf or Fraction(gap) >= primal - dual, (seed, step)
        assert step.status != "certified" or step.gap <= tol * step.primal


@INTERCEPTS
def test_certificates_are_sharpened(intercept):
    for seed in range(wide(6, 24)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-3, 4, size=3)
        y, weights = rng.normal(size=7) + 1.0, 10.0 ** rng.uniform(-3, 3, size=7) if seed % 2 else None
        model, ones = model_of(X, y, 0.5, weights, intercept), np.ones(7, dtype=np.int64)
        model = model.at(0.3 * model.beta_max)
        best = solved(model, 0.1 * model.alpha_max())
        found = sharpened(model, best, 1e-9)
        if intercept:
            primal, dual = FreeSparse(X, ones, 0.5, weights, y, ENDS).gap_of(found, best.alpha)
        else:
            exact = Sparse(X, ones, 1, 0.5, weights, y, ENDS)
            primal, dual = exact.objectives(best.w, best.theta, best.alpha, best.beta)
        assert found.rounding <= 1.1 * best.rounding and Fraction(found.gap) >= primal - dual
        assert abs(Fraction(found.primal) - primal) <= Fraction(found.primal_error)
