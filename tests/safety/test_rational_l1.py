"""Every proof of the L1-SVM against rational arithmetic, on badly scaled problems; and every decision of its rules."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath import l1_svm_path
from screenpath.data.files.centring import far_centres
from screenpath.errors import DataError
from screenpath.kernels.problem import l1svm as kernels
from screenpath.numbers.rounding import UNIT
from screenpath.problem import penalised_rounding, penalised_sharp
from screenpath.problem.l1svm import L1SVM
from screenpath.rows.columns import Columns
from screenpath.screen.l1svm import VariationalInequality, gap_ball, parse_feature_rule
from screenpath.solve.l1cd import FeatureDescent
from screenpath.walk.loop import PathOptions, solve_point, walk
from tests.safety.rational_penalised import (
    L1,
    far_from_0,
    faults,
    hostile,
    overflows,
    random_weights,
    small_signal,
    tops_of_rounding,
)
from tests.width import wide


def walked(X, y, lams, tol, rule="none", newton=True, sparse=False, weights=None, scale=None):
    """Yield every step of a path, its certificate and its faults."""
    if not lams:
        return
    rows, inexact = (X, 0.0) if scale is None else (X / scale, 4.0 * UNIT)
    columns = Columns(sp.csr_array(rows) if sparse else rows, y, 1, weights, inexact)
    model, exact = L1SVM(columns), L1(X, y, weights, scale)
    options = PathOptions(tol=tol, max_epochs=3000)
    for step, c in walk(model, lams, parse_feature_rule(rule), FeatureDescent(newton=newton), options):
        ceiling = exact.primal([Fraction(0)] * exact.m, exact.center, Fraction(c.lam))
        primal, dual = exact.objectives(c.w, c.bias, c.lam)
        # Where slacks are not much more than rounding, those that were computed make dual points that are as good.
        slack, _ = penalised_sharp.l1_slacks(model, c, np.flatnonzero(c.w))
        kernels.bias_root(slack, model.signs, 0.0)
        for theta in (c.theta, np.maximum(slack, 0.0)):
            dual = max(dual, exact.dual(exact.evened(theta), Fraction(c.lam)))
        yield step, c, faults(step, c, primal, dual, tol, ceiling)


@settings(max_examples=wide(20, 80), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_no_step_claims_more_than_is_true_far_from_0(seed, tol):
    """Scaled columns were rounded before, relative to what they are."""
    rng = np.random.default_rng(seed)
    X, y = far_from_0(rng)
    scale = np.abs(X).max(axis=0) * rng.uniform(0.1, 1.0, X.shape[1]) if rng.integers(2) else None
    rule, newton, sparse = rng.choice(["none", "vi", "gap", "vi+gap"]), bool(rng.integers(2)), bool(rng.integers(2))
    weights = random_weights(seed, y)
    lams = grid(rng, X if scale is None else X / scale, y, weights)
    for step, _, found in walked(X, y, lams, tol, str(rule), newton, sparse, weights, scale):
        assert found == [], (seed, step)


def test_exact_sums_count_the_rounding_of_scaled_data():
    """All slacks are next to 0, where what a scaling has rounded is all that there is of them."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 5))
        X, y, scale = rng.normal(size=(n, n)), np.where(np.arange(n) % 2, 1.0, -1.0), rng.uniform(0.5, 2.0, n)
        model = L1SVM(Columns(X / scale, y, 1, None, 4.0 * UNIT))
        c = model.certify(1e-40, np.linalg.solve(X / scale, y))
        found = penalised_sharp.l1_sharpened(model, c)
        exact = L1(X, y, None, scale)
        primal, dual = exact.objectives(c.w, c.bias, c.lam)
        assert abs(Fraction(found.primal) - primal) <= Fraction(found.primal_error)
        assert Fraction(found.dual) <= primal and found.primal_error < 1e-22


def test_how_many_of_them_are_certified():
    for scaled, least in ((False, 0.9), (True, 0.9)):
        states = []
        for seed in range(wide(6, 12)):
            rng = np.random.default_rng(seed)
            X, y = far_from_0(rng)
            centres = far_centres(X)
            X = X if centres is None else X - centres
            sizes = np.abs(X).max(axis=0)
            scale = np.where(sizes > 0.0, sizes, 1.0) * rng.uniform(0.1, 1.0, X.shape[1]) if scaled else None
            lams = grid(rng, X / scale if scaled else X, y)
            states += [step.status for step, _, _ in walked(X, y, lams, 1e-6, scale=scale)]
        assert states.count("certified") > least * len(states), (states.count("certified"), len(states))


def grid(rng, X, y, weights=None):
    """Return some lambdas of a problem; none where it is refused, which has to be because a norm overflows."""
    if overflows(X.T, weights):
        with pytest.raises(DataError, match="overflow: the squared norm of feature"):
            L1SVM(Columns(X, y, 1, weights))
        return []
    top = L1SVM(Columns(X, y, 1, weights)).lam_max
    return [float(v) for v in np.sort(top * 10.0 ** rng.uniform(-12, 1, size=4))[::-1] if 0.0 < v < np.inf]


@settings(max_examples=wide(20, 80), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_no_step_claims_more_than_is_true(seed, tol):
    rng = np.random.default_rng(seed)
    X, y = hostile(rng)
    rule, newton, sparse = rng.choice(["none", "vi", "gap", "vi+gap"]), bool(rng.integers(2)), bool(rng.integers(2))
    weights = random_weights(seed, y)
    for step, _, found in walked(X, y, grid(rng, X, y, weights), tol, str(rule), newton, sparse, weights):
        assert found == [], (seed, step)


def test_most_of_them_are_certified_and_some_need_exact_sums(monkeypatch):
    asked = []
    sharpened = penalised_sharp.l1_sharpened
    monkeypatch.setattr("screenpath.problem.l1svm.sharpened", lambda *a: asked.append(1) or sharpened(*a))
    states = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, y = hostile(rng)
        weights = random_weights(seed, y)
        states += [step.status for step, _, _ in walked(X, y, grid(rng, X, y, weights), 1e-6, weights=weights)]
    assert states.count("certified") > 0.6 * len(states)
    assert len(asked) > 5


def test_the_judge_notices_bounds_that_are_too_small(monkeypatch):
    """Negative control: without the bounds on rounding there are false claims among the same problems."""
    monkeypatch.setattr(penalised_rounding, "gamma", lambda depth: 0.0)
    monkeypatch.setattr("screenpath.problem.penalised_rounding.UNIT", 0.0)
    for name in ("blur", "imbalance"):
        monkeypatch.setattr(f"screenpath.kernels.problem.l1svm.{name}", lambda *sums: 0.0)
    terms = kernels.certified_terms
    monkeypatch.setattr(kernels, "certified_terms", lambda *a: terms(*a[:4], 0.0, 1.0, *a[6:8], 0.0, a[9]))  # no blur
    monkeypatch.setattr("screenpath.problem.l1svm.sharpened", lambda model, c: c)
    found = []
    for seed in (*range(10), 67, 125):
        rng = np.random.default_rng(seed)
        X, y = hostile(rng)
        for _, _, wrong in walked(X, y, grid(rng, X, y), 1e-6):
            found += wrong
    assert any("certified" in one for one in found)
    assert "the primal objective is off by more than its bound" in found
    assert "the lower bound of the optimum exceeds an objective" in found


@settings(max_examples=wide(20, 60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([0.5, 1e-2, 1e-5, 1e-10]))
def test_no_decision_is_wrong(seed, tol):
    """What a rule screens is strictly inside its constraint at the exact optimum, for references of any accuracy."""
    rng = np.random.default_rng(seed)
    X, y = far_from_0(rng) if seed % 3 == 0 else hostile(rng)
    weights = random_weights(seed, y)
    lams, none = grid(rng, X, y, weights), parse_feature_rule("none")
    if not lams:
        return
    model, exact = L1SVM(Columns(X, y, 1, weights)), L1(X, y, weights)

    def point(lam, wanted):
        options = PathOptions(tol=wanted, max_epochs=300)
        return solve_point(model, lam, 0, model.start(lam), none, FeatureDescent(), options)[1]

    for first, lam in zip(lams, lams[1:], strict=False):
        near = point(first, tol)
        for target in (lam, 0.9 * first):
            best = point(target, 1e-13)
            alpha = exact.optimum(best.w, best.bias, target)
            if alpha is None:
                continue
            products = [abs(p) for p in exact.products(alpha)]
            ball = point(target, tol)
            for kept in (
                parse_feature_rule("vi").before(model, near, target),
                model.screen(gap_ball(ball), model.slack_of(ball)),
            ):
                assert all(products[j] <= Fraction(target) for j in np.flatnonzero(kept.status)), (seed, target)


def test_decisions_are_judged_and_made():
    """Of the attack above: rules decide, and optima are found."""
    decided = judged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = hostile(rng)
        weights = random_weights(seed, y)
        model, exact = L1SVM(Columns(X, y, 1, weights)), L1(X, y, weights)
        if not model.lam_max > 0.0:
            continue
        lam = 0.6 * model.lam_max
        options = PathOptions(tol=1e-12, max_epochs=300)
        rule = parse_feature_rule("none")
        best = solve_point(model, lam, 0, model.start(lam), rule, FeatureDescent(), options)[1]
        judged += exact.optimum(best.w, best.bias, lam) is not None
        region = VariationalInequality().region(model, model.start(lam), lam)
        decided += np.count_nonzero(model.screen(region, model.slack_of(model.start(lam))).status)
    assert judged > 20 and decided > 5


def test_a_nearly_constant_column_is_not_taken_for_a_constant_one():
    """Its products were called 0, though they can be larger than lambda."""
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    column = 1e15 + 8.0 * (y > 0.0)
    X = np.column_stack([column, [0.1, -0.2, 0.3, 0.1, 0.0, 0.2]])
    for lam in (1e-2, 1e-6):
        for step, _, found in walked(X, y, [lam], 1e-6):
            assert found == [], step
    # Truly constant ones are, at any size.
    model = L1SVM(Columns(np.column_stack([np.full(6, 0.1), np.full(6, 1e200 / 1e60)]), y))
    assert model.lam_max == 0.0


@pytest.mark.parametrize("sparse", [False, True])
def test_tops_that_are_nothing_but_rounding(sparse):
    for X, labels in tops_of_rounding():
        X = sp.csr_array(X) if sparse else X
        with pytest.raises(DataError, match="(?s)lambda_max is 0 but for rounding.*give the values"):
            l1_svm_path(X, labels, storage="sparse" if sparse else "dense")
        assert l1_svm_path(X, labels, grid=[0.5]).certified


def test_the_top_is_that_of_the_signal_not_of_a_large_columns_rounding():
    X, y = small_signal()
    model = L1SVM(Columns(X, y))
    assert model.lam_max == pytest.approx(60 * 1e-7, rel=1e-8)


def test_an_overflow_is_named():
    X = np.array([[1e200, 1.0], [2.0, 1e190], [0.0, 1.0]])
    with pytest.raises(DataError, match="(?s)overflow: the squared norm of feature 1.*scale the data"):
        l1_svm_path(X, [1, -1, 1])
