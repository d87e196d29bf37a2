"""The sparse SVM with a free intercept: no decision is wrong, no certificate claims more than is true."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.problem.penalised_sharp import sharpened
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.safety.rational_penalised import Sparse, fractions, hostile, random_weights
from tests.safety.test_rational_sparse import points
from tests.width import wide

WHAT = ((True, True), (True, False), (False, True))
SURE = 1e-5  # an optimum is known to less than that


def problem(rng, gamma=None) -> FreeSparseModel:
    """Return a small model at ``beta = 0``: labels out of balance, a mean far from 0, now and then weights."""
    n, d = int(rng.integers(12, 50)), int(rng.integers(2, 20))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + 3.0 * rng.normal(size=d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.6])] = 0.0
    forms = X @ rng.normal(size=d)
    y = np.where(forms + 0.3 * forms.std() * rng.normal(size=n) > np.quantile(forms, rng.uniform(0.1, 0.9)), 1, -1)
    y[:2] = 1, -1
    if rng.random() < 0.3:  # as many of one class as of the other
        y = 2 * (np.arange(n) % 2) - 1
    weights = rng.integers(0, 4, size=n).astype(float) if rng.random() < 0.4 else None
    if weights is not None:
        weights[:2] = 1.0
    views = Views(sp.csr_array(X) if rng.random() < 0.5 else X)
    gamma = float(rng.choice([0.5, 0.1, 0.9])) if gamma is None else gamma
    return FreeSparseModel(views, y.astype(np.int64), 1, 0.0, gamma, weights)


exact_hinge, squared_hinge = partial(problem, gamma=0.0), partial(problem, gamma=np.inf)


def solved(model, alpha: float, steps: int = 300):
    """Return a certificate at ``alpha`` after some steps of Newton's method."""
    reduced = model.reduce(alpha, model.nothing_screened(), model.start(alpha))
    tol = 1e-12 if model.sharp else 1e-14  # beyond it widths only fall
    found = SparseNewton().solve(reduced, tol=tol, budget=Budget(steps, np.inf), dynamic=False)
    return model.certify(alpha, found.w, found.alpha)


def references(model, alpha: float, rng):
    """Yield pairs at ``alpha``: accurate, after a step, rough, and of points that have little to do with each other."""
    best, rough = solved(model, alpha), solved(model, alpha, 1)
    noise = 0.1 * rng.normal(size=best.w.size) * np.abs(best.w).max()
    far = model.certify(alpha, best.w + noise, None)
    yield from (best, rough, far)
    zero = np.zeros_like(best.w)
    for w, theta in ((best.w, far.theta), (far.w, rough.theta), (zero, best.theta), (best.w, model.top)):
        yield model.certify(alpha, w, theta)


def wrong_decisions(model, at, best) -> tuple[int, int]:
    """Return decisions made, and those that the optimum contradicts."""
    counts = (np.tile(model.weights, model.classes) > 0.0) & (model.free == 0)
    wrong = np.sum((at.duals < 0) & (best.theta > model.low + SURE) & counts)
    wrong += np.sum((at.duals > 0) & (best.theta < model.high - SURE) & counts)
    wrong += np.sum((at.keep == 0) & (model.outward(best.u) > model.beta * (1.0 + SURE)) & (np.abs(best.w) > SURE))
    return int(np.count_nonzero(at.duals[model.free == 0]) + np.sum(at.keep == 0)), int(wrong)


def attack(seeds, make=problem) -> tuple[int, int]:
    """Return decisions made and wrong ones over random problems and references, before a solve and within one."""
    made = wrong = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        base = make(rng)
        model = base.at(base.beta_max * float(10.0 ** rng.uniform(-1.5, -0.05)))
        alpha = model.alpha_max() * float(10.0 ** rng.uniform(-2.0, 0.0))
        for ratio in (1.0, 0.97, 0.7, 1.1):
            best = solved(model, ratio * alpha)
            if best.rel_gap > 1e-11:
                continue
            for reference in references(model, alpha, rng):
                at = rules.screen(model, reference, ratio * alpha, *WHAT[seed % 3], seed % 2 == 0)
                pairs = [wrong_decisions(model, at, best)]
                if ratio == 1.0 and not model.sharp:  # decisions on top of decisions, from a pair that agrees with them
                    inside = model.certify(alpha, np.where(at.keep != 0, best.w, 0.0), None)
                    pairs += [wrong_decisions(model, at, best)] if rules.tighten(model, at, inside, alpha) else []
                made, wrong = made + sum(p[0] for p in pairs), wrong + sum(p[1] for p in pairs)
    return made, wrong


def test_no_decision_is_wrong():
    count = wide(20, 60)
    made, wrong = attack(range(count))
    assert made > 160 * count and wrong == 0


def test_no_decision_is_wrong_with_the_exact_hinge():
    count = wide(12, 24)
    made, wrong = attack(range(count), exact_hinge)
    assert made > 40 * count and wrong == 0


def test_no_decision_is_wrong_with_the_squared_hinge():
    count = wide(14, 40)
    made, wrong = attack(range(count), squared_hinge)
    assert made > 25 * count and wrong == 0


# -- negative control: balls that are 5 % too small --------------------------------------------------------------------

SHRUNK = 0.95


def tight_feature() -> tuple[int, int]:
    """Return decisions and wrong ones where the optimal dual point is at the end of its ball, along a column.

    Every row is at its kink; with a large ``alpha`` the dual point hardly depends on the column, and the gap of its
    multiple is all curvature.
    """
    y = 2 * (np.arange(20) % 2) - 1
    base = FreeSparseModel(Views(np.column_stack([y, np.cos(np.arange(20))])), y, 1, 0.0, 1.0 - 1e-6)
    model = base.at(0.99)
    best = solved(model, 1e3)
    reference = model.certify(1e3, best.w, 0.6 * best.theta)
    at = rules.screen(model, reference, 1e3, False, True, True)
    return int(np.sum(at.keep == 0)), int(np.sum((at.keep == 0) & (np.abs(best.u) > model.beta * (1.0 + SURE))))


def tight_samples(gamma=0.5) -> tuple[int, int]:
    """Return decisions and wrong ones where the optimal ``w`` is at the end of its ball, and the intercept is known.

    Heavy rows at the origin, which is the mean of all, hold the intercept where it is. One row pulls the only weight;
    rows that hardly count tell where it is.
    """
    probes = np.linspace(3.0, 6.0, 301)
    x = np.concatenate([[0.0, 0.0, 2.0, -1.0], probes, -probes])
    y = np.concatenate([[1, -1, 1, -1], np.ones(probes.size), -np.ones(probes.size)]).astype(np.int64)
    weights = np.concatenate([[1e4, 1e6, 1.0, 2.0], np.full(2 * probes.size, 1e-7)])
    model = FreeSparseModel(Views(x[:, None]), y, 1, 0.0, gamma, weights)
    pull = 2.0 * model.weights[2] / x.size
    model = model.at(0.1 * pull)
    alpha = 0.9 * pull / 0.4
    best = solved(model, alpha)
    reference = model.certify(alpha, np.array([0.1]), best.theta)
    at = rules.screen(model, reference, alpha, True, False, True)
    return wrong_decisions(model, at, best)


@pytest.mark.parametrize("which", ["primal_sq", "first_sq", "second_sq", "primal_sq of the exact hinge"])
def test_the_attack_finds_a_ball_that_is_too_small(which, monkeypatch):
    which, _, exact = which.partition(" ")
    tight = partial(tight_samples, 0.0 if exact else 0.5) if which == "primal_sq" else tight_feature
    assert tight()[1] == 0
    whole = rules._regions

    def less(*given, **more):
        found = whole(*given, **more)
        return found._replace(**{which: SHRUNK**2 * getattr(found, which)})

    monkeypatch.setattr(rules, "_regions", less)
    assert tight()[1] > 0


def test_the_attack_finds_columns_that_are_centred_too_much(monkeypatch):
    monkeypatch.setattr(FreeSparseModel, "nothing_screened", _centred_too_much)
    assert any(attack([seed])[1] for seed in range(60))


def _centred_too_much(model):
    found = SparseModel.nothing_screened(model)
    found.col_total *= 1.5
    return found


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "make"), [*((seed, problem) for seed in range(6)), (0, exact_hinge), (2, exact_hinge), (1, squared_hinge)]
)
def test_screened_and_unscreened_paths_agree(seed, make):
    base = make(np.random.default_rng(100 + seed))
    betas = 0.5 * base.beta_max, 0.05 * base.beta_max
    pairs = [(base.at(beta).alpha_max() * share, beta) for beta in betas for share in (1.0, 0.3, 0.05)]
    options = PathOptions(tol=1e-9, audit=Audit(SparseNewton(), PathOptions(tol=1e-9), rules.contradicted))
    paths = [
        list(walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options))
        for rule in ("none", "sifs", "sifs+gap", "gap")
    ]
    for steps in zip(*paths, strict=True):
        for step, found in steps:
            assert step.status == "certified" and step.extras["unsafe"] == 0
            assert found.dual <= steps[0][1].highest * (1 + 1e-12) and found.low <= found.intercept <= found.high
            signed = found.theta * base.labels * base.given
            assert abs(signed.sum()) <= 1e-12 * np.abs(signed).sum()
    assert sum(step.screened_R + step.screened_L + step.n_features_screened for step, _ in paths[1]) > 0


class FreeSparse(Sparse):
    """The same in rational arithmetic, with an intercept as the last weight."""

    def __init__(self, X, labels, gamma: float, weights=None, kinks=None, ends=(0, 1)):
        super().__init__(np.column_stack([X, np.ones(len(X))]), labels, 1, gamma, weights, kinks, ends)
        self.labels = [int(label) for label in labels]

    def feasible(self, theta, slopes) -> list | None:
        """Return the dual point whose signed sum is 0 exactly, one row that loses little being moved."""
        rest = sum(s * y * v for s, y, v in zip(self.weights, self.labels, theta, strict=True))
        for i in sorted((i for i in range(self.n) if self.weights[i]), key=lambda i: abs(slopes[i])):
            value = theta[i] - self.labels[i] * rest / self.weights[i]
            if self.low <= value <= self.high:
                return [*theta[:i], value, *theta[i + 1 :]]
        return None

    def gap_of(self, c, alpha: float) -> tuple:
        """Return primal and dual value of a certificate's pair at ``alpha``; no dual value where no row has room."""
        alpha, beta, w = Fraction(alpha), Fraction(c.beta), [*fractions(c.w), Fraction(float(c.intercept))]
        t, best = self.respond(w)
        loss = sum(self.weight(k) * best[k] * (t[k] - self.gamma / 2 * best[k]) for k in self.free) / self.n
        primal = loss + alpha / 2 * sum(v * v for v in w[:-1]) + beta * sum(abs(v) for v in w[:-1])
        theta = fractions(c.theta)
        theta = self.feasible(theta, [t[k] - self.gamma * theta[k] for k in self.free])
        if theta is None:
            return primal, None
        over = [max(value - beta, Fraction(0)) for value in self.outward(self.sums(dict(enumerate(theta)))[:-1])]
        each = zip(self.weights, self.kinks, theta, strict=True)
        linear = sum(s * (c * v - self.gamma / 2 * v * v) for s, c, v in each) / self.n
        return primal, linear - sum(v * v for v in over) / (2 * alpha)


@settings(max_examples=wide(16, 60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9, 1e-12]))
def test_no_step_claims_more_than_is_true(seed, tol):
    rng = np.random.default_rng(seed)
    X, y = hostile(rng)
    labels, weights = y.astype(np.int64), random_weights(seed, y)
    gamma = float(rng.choice([0.5, 0.9, 0.05, 1e-3, 1e-8, 0.0, np.inf]))
    base = FreeSparseModel(Views(X if seed % 2 else sp.csr_array(X)), labels, 1, 0.0, gamma, weights)
    exact = FreeSparse(X, labels, base.gamma if gamma == np.inf else gamma, weights)
    exact.weights = [s * Fraction(base.unit) for s in exact.weights]
    rule = ("none", "sifs", "gap", "sifs+gap")[seed % 4]
    options = PathOptions(tol=tol, max_epochs=300)
    pairs = points(rng, base)
    for step, c in walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options) if pairs else ():
        primal, dual = exact.gap_of(c, c.alpha)
        assert abs(Fraction(step.primal) - primal) <= Fraction(c.primal_error), (seed, step)
        assert dual is not None or step.gap == np.inf, (seed, step)
        if step.gap < np.inf:
            assert Fraction(step.gap) >= primal - dual and Fraction(step.dual) <= dual, (seed, step)
        assert step.status != "certified" or step.gap <= tol * step.primal
        there = base.at(c.beta).gap_at(c, 0.7 * c.alpha)
        primal, dual = exact.gap_of(c, 0.7 * c.alpha)
        assert there == np.inf or Fraction(there) >= primal - dual, (seed, step)


def test_certificates_are_sharpened():
    for seed in range(wide(6, 12)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-3, 4, size=3)
        labels = np.array([1, -1, 1, -1, -1, -1, 1])
        weights = 10.0 ** rng.uniform(-3, 3, size=7) if seed % 2 else None
        exact, model = FreeSparse(X, labels, 0.5, weights), FreeSparseModel(Views(X), labels, 1, 0.0, 0.5, weights)
        model = model.at(0.3 * model.beta_max)
        best = solved(model, 0.1 * model.alpha_max())
        found = sharpened(model, best, 1e-9)
        primal, dual = exact.gap_of(found, best.alpha)
        assert found.rounding <= best.rounding and Fraction(found.gap) >= primal - dual
        assert abs(Fraction(found.primal) - primal) <= Fraction(found.primal_error)
