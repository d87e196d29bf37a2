"""Every proof of the sparse SVM at ``alpha = 0`` against rational arithmetic, on badly scaled problems."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.problem import sparse
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from tests.safety.rational_penalised import faults
from tests.safety.test_rational_sparse import problem
from tests.sparse_problems import problem as random_problem
from tests.width import wide


def walked(seed, tol, kind="smooth", rule="none"):
    """Yield every step of a path that ends at ``alpha = 0`` with its faults."""
    rng, base, exact = problem(seed, kind == "squared")
    if kind == "exact":
        base = SparseModel(base.views, base.labels, base.classes, 0.0, 0.0, base.given)
        exact.gamma = Fraction(0)
    top, pairs = base.beta_max, []
    for beta in top * 10.0 ** rng.uniform(-9, 1, size=2) if top > 0.0 else ():
        most = base.at(beta).alpha_max() * 10.0 ** rng.uniform(-9, 0)
        pairs += [(alpha, float(beta)) for alpha in (float(most), 0.0) if alpha == 0.0 or 0.0 < alpha < np.inf]
    if not pairs:  # no parameter of this problem is within the range of floating point
        return
    ceiling = (Fraction(1, 2) if kind == "squared" else 1 - exact.gamma / 2) * len(exact.free) / exact.n
    options = PathOptions(tol=tol, max_epochs=1000)
    for step, c in walk(SparseGrid(base), pairs, parse_sparse_rule(rule), make_sparse_solver("auto"), options):
        if c.alpha > 0.0:
            continue
        primal, dual = exact.objectives(c.w, c.theta, 0.0, c.beta)
        found = faults(step, c, primal, dual, tol, ceiling)
        if dual < 0:
            found.append("the dual point is none")
        if Fraction(step.gap) < primal - dual:
            found.append("the gap is larger than was said")
        if Fraction(step.dual) > dual:
            found.append("the dual value is smaller than was said")
        yield step, found


@settings(max_examples=wide(24, 60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_no_step_claims_more_than_is_true(seed, tol):
    kind, rule = ("smooth", "exact", "squared")[seed % 3], ("none", "sifs+gap", "gap")[seed // 3 % 3]
    for step, found in walked(seed, tol, kind, rule):
        assert found == [], (seed, kind, step)


def test_most_of_them_are_certified():
    for kind in ("smooth", "exact", "squared"):
        states = [step.status for seed in range(wide(8, 20)) for step, _ in walked(seed, 1e-6, kind)]
        assert states.count("certified") > 0.7 * len(states), (kind, states)


@pytest.mark.parametrize("name", ["INWARD", "WITHIN"])
def test_the_judge_notices_a_dual_point_that_is_scaled_too_little(monkeypatch, name):
    """Negative control: 1e-9 more than a dual point may have."""
    monkeypatch.setattr(sparse, "WITHIN", 1.0 + 1e-9)
    if name == "INWARD":
        monkeypatch.setattr(sparse, "INWARD", 1.0 + 1e-9)
    found = [one for seed in range(12) for _, wrong in walked(seed, 1e-6) for one in wrong]
    assert "the dual point is none" in found


@pytest.mark.parametrize("classes", [2, 3])
def test_any_point_of_the_box_leads_to_a_dual_point(classes):
    """And a dual point is left as it is: what is restored from a checkpoint has the same numbers."""
    rng = np.random.default_rng(classes)
    for weights in (None, rng.uniform(0.0, 3.0, 40)):
        _, _, base = random_problem(classes, n=40, d=12, seed=5, weights=weights)
        model = base.at(0.1 * base.beta_max)
        for share in (0.0, 1e-3, 1.0):
            theta = share * rng.uniform(size=model.ones.size) * model.ones
            w = rng.normal(size=model.u_kinks.size) * (rng.uniform(size=model.u_kinks.size) < 0.5)
            found = model.certify(0.0, w, theta)
            u = model.column_sums(model.weigh(found.theta))
            assert np.abs(u).max() <= model.beta and (share < 1.0 or np.abs(u).max() > (1.0 - 1e-12) * model.beta)
            again = model.certify(0.0, w, found.theta)
            assert again.theta is found.theta and again.gap == pytest.approx(found.gap, rel=1e-12)
            if share < 1.0:
                assert found.theta is theta
            losses = found.primal - model.beta * np.abs(w).sum()
            s = np.tile(model.weights, model.classes) * model.ones
            dual = s @ (found.theta - 0.5 * model.gamma * found.theta**2) / model.n
            assert losses > 0.0 and found.gap == pytest.approx(found.primal - dual, rel=1e-9)
