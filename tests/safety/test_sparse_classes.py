"""The sparse SVM of several classes with free intercepts: no decision is wrong, no certificate claims too much."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.kernels.screen import sparse_levers
from screenpath.problem.sparse_classes import FreeClassesModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.problem.sparse_sharp import sharpened
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.audit import Audit
from screenpath.walk.loop import PathOptions, walk
from tests.safety.rational_penalised import Sparse, fractions, hostile, random_weights
from tests.safety.test_rational_sparse import points
from tests.safety.test_sparse_free import attack, solved
from tests.width import wide


def problem(rng) -> FreeClassesModel:
    """Return a small model at ``beta = 0``: 3 to 5 classes, mostly out of balance, far from 0; now and then weights."""
    classes, n, d = int(rng.integers(3, 6)), int(rng.integers(15, 60)), int(rng.integers(2, 15))
    y = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=rng.dirichlet(2.0 * np.ones(classes)))])
    if rng.random() < 0.3:  # as many of each class
        n -= n % classes
        y = np.arange(n) % classes
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + 3.0 * rng.normal(size=d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.6])] = 0.0
    X[:, : min(classes, d)] += (rng.uniform(0.0, 4.0) * np.eye(classes))[y][:, : min(classes, d)]
    weights = rng.integers(0, 4, size=n).astype(float) if rng.random() < 0.4 else None
    if weights is not None:
        weights[:classes] = 1.0
    views = Views(sp.csr_array(X) if rng.random() < 0.5 else X)
    return FreeClassesModel(views, y.astype(np.int64), classes, 0.0, float(rng.choice([0.5, 0.1, 0.9])), weights)


def test_no_decision_is_wrong():
    count = wide(20, 60)
    made, wrong = attack(range(count), problem)
    assert made > 160 * count and wrong == 0


# -- negative control: regions that are 5 % too small ------------------------------------------------------------------

SHRUNK = 0.95


def chained(alpha=1e3):
    """Return a model whose optimal intercepts are at the end of what a lever proves, the optimum, and a reference.

    No feature helps. The dual point differs from the optimal one by a flow around the three classes, for which the
    light class 0 has to move its dual variables far, the heavy others theirs hardly at all: what the gap allows, that
    class takes up.
    """
    y = np.repeat(np.arange(3), 4)
    weights = np.array([1.0, 2e4, 5e4])[y]
    base = FreeClassesModel(Views(np.cos(np.arange(12.0))[:, None]), y, 3, 0.0, 0.9, weights)
    model = base.at(2.0 * base.beta_max)
    best = solved(model, alpha)
    theta = best.theta.copy().reshape(3, 12)
    step = 0.2
    for p, q in ((0, 1), (1, 2), (2, 0)):
        theta[q, y == p] -= step * model.weights[0] / model.weights[4 * p]
    return model, best, model.certify(alpha, best.w, theta.ravel())


def levers(model, reference, best):
    """Return, for each two classes, how far the optimal intercepts are below what a lever proves of them."""
    r = rules._regions(model, reference, reference.alpha)
    few = sparse_levers.between_classes(reference.theta, model.samples, model.free, reference.off)
    b, found, size = best.intercept, np.full((model.classes, model.classes), np.inf), model.classes
    for p in range(size):
        for q in range(size):
            mean = np.empty(model.d)
            here = [few[0][few[1][k] : few[1][k + 1]] for k in (p * size + q, q * size + p)] if p != q else []
            if p != q:
                known, rest, *_ = sparse_levers.lever(
                    p, q, np.concatenate(here), model.views.by_row, model.samples, reference.scores, reference.theta,
                    r.budget, reference.off, model.row_norm, mean,
                )  # fmt: skip
                found[p, q] = known + rest - (b[p] - b[q])
    return found


def test_a_lever_is_as_long_as_it_has_to_be(monkeypatch):
    model, best, reference = chained()
    assert best.nonzero == 0 and reference.off < 1e-12
    margin = levers(model, reference, best)
    assert margin.min() > 0.0
    whole = rules._regions
    monkeypatch.setattr(rules, "_regions", lambda *a: whole(*a)._replace(budget=SHRUNK**2 * whole(*a).budget))
    assert levers(model, reference, best).min() < 0.0


@pytest.mark.parametrize("which", ["primal_sq", "second_sq", "budget"])
def test_the_attack_finds_regions_that_are_far_too_small(which, monkeypatch):
    whole = rules._regions
    share = 0.02 if which == "second_sq" else 0.1 if which == "primal_sq" else 0.01

    def less(*given, **more):
        found = whole(*given, **more)
        return found._replace(**{which: share * getattr(found, which)})

    monkeypatch.setattr(rules, "_regions", less)
    assert any(attack([seed], problem)[1] for seed in range(60))


def test_the_attack_finds_columns_that_are_centred_too_much(monkeypatch):
    whole = FreeClassesModel.nothing_screened

    def more(model):
        found = whole(model)
        found.col_total *= 1.5
        return found

    monkeypatch.setattr(FreeClassesModel, "nothing_screened", more)
    assert any(attack([seed], problem)[1] for seed in range(60))


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_screened_and_unscreened_paths_agree(seed):
    base = problem(np.random.default_rng(200 + seed))
    betas = 0.5 * base.beta_max, 0.05 * base.beta_max
    pairs = [(base.at(beta).alpha_max() * share, beta) for beta in betas for share in (1.0, 0.9, 0.3, 0.05)]
    options = PathOptions(tol=1e-9, audit=Audit(SparseNewton(), PathOptions(tol=1e-9), rules.contradicted))
    paths = [
        list(walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options))
        for rule in ("none", "sifs", "sifs+gap", "gap")
    ]
    for steps in zip(*paths, strict=True):
        for step, found in steps:
            assert step.status == "certified" and step.extras["unsafe"] == 0
            assert found.dual <= steps[0][1].highest * (1 + 1e-12) and abs(found.intercept.sum()) < 1e-9
            flows = base.weigh(found.theta).reshape(base.classes, -1)
            assert np.abs(flows.sum(axis=1)).max() <= 1e-12 * np.abs(flows).sum()
    assert sum(step.screened_R + step.screened_L + step.n_features_screened for step, _ in paths[1]) > 0


class FreeClasses(Sparse):
    """The same in rational arithmetic, with an intercept as the last weight of each class."""

    def __init__(self, X, labels, classes: int, gamma: float, weights=None):
        super().__init__(np.column_stack([X, np.ones(len(X))]), labels, classes, gamma, weights)
        self.labels = [int(label) for label in labels]

    def excess(self, theta) -> list:
        """Return by how much more flows out of each class than into it."""
        found = [Fraction(0)] * self.classes
        for k, value in theta.items():
            found[self.labels[k % self.n]] += self.weight(k) * value
            found[k // self.n] -= self.weight(k) * value
        return found

    def balanced(self, theta: dict, slopes: dict) -> dict | None:
        """Return the dual point whose flows are in balance, along ways of small slopes; None where there is no room."""
        theta = dict(theta)
        for _ in range(self.classes):
            found = self.excess(theta)
            out, into = max(range(self.classes), key=found.__getitem__), min(range(self.classes), key=found.__getitem__)
            amount = min(found[out], -found[into])
            if amount == 0:
                return theta
            edges = {}
            for k, value in theta.items():
                own, other, step = (
                    self.labels[k % self.n],
                    k // self.n,
                    amount / (self.weight(k) or Fraction(1, 10**30)),
                )
                for ends, sign in (((own, other), 1), ((other, own), -1)):
                    if self.weight(k) and 0 <= value + sign * step <= 1:
                        edges[ends] = min(edges.get(ends, (abs(slopes[k]) + step, k, sign * step)),
                                          (abs(slopes[k]) + step, k, sign * step))  # fmt: skip
            way = self._way(into, out, edges)
            if way is None:
                return None
            for ends in pairwise(way):
                _, k, step = edges[ends]
                theta[k] += step
        return None

    def _way(self, first: int, last: int, edges: dict) -> list | None:
        best = {first: (Fraction(0), [first])}
        for _ in range(self.classes):
            for (a, b), (cost, *_) in edges.items():
                if a in best and (b not in best or best[a][0] + cost < best[b][0]):
                    best[b] = best[a][0] + cost, [*best[a][1], b]
        return best[last][1] if last in best else None

    def gap_of(self, c, alpha: float) -> tuple:
        """Return primal and dual value of a certificate's pair at ``alpha``; no dual value where no row has room."""
        alpha, beta, d = Fraction(alpha), Fraction(c.beta), self.d - 1
        w = [
            v
            for k in range(self.classes)
            for v in (*fractions(c.w[k * d : (k + 1) * d]), Fraction(float(c.intercept[k])))
        ]
        kept = [j for j in range(len(w)) if j % self.d != d]
        t, best = self.respond(w)
        loss = sum(self.weight(k) * best[k] * (t[k] - self.gamma / 2 * best[k]) for k in self.free) / self.n
        primal = loss + alpha / 2 * sum(w[j] * w[j] for j in kept) + beta * sum(abs(w[j]) for j in kept)
        values = fractions(c.theta)
        theta = {k: values[k] for k in self.free}
        theta = self.balanced(theta, {k: t[k] - self.gamma * theta[k] for k in self.free})
        if theta is None:
            return primal, None
        u = self.sums(theta)
        over = [max(abs(u[j]) - beta, Fraction(0)) for j in kept]
        linear = sum(self.weight(k) * (v - self.gamma / 2 * v * v) for k, v in theta.items()) / self.n
        return primal, linear - sum(v * v for v in over) / (2 * alpha)


@settings(max_examples=wide(4, 12), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), tol=st.sampled_from([1e-3, 1e-6, 1e-9, 1e-12]))
def test_no_step_claims_more_than_is_true(seed, tol):
    rng = np.random.default_rng(seed)
    X, y = hostile(rng)
    if len(y) < 3:
        return
    labels = rng.integers(0, 3, size=len(y))
    labels[:3] = 0, 1, 2
    weights = random_weights(seed, labels)
    gamma = float(rng.choice([0.5, 0.9, 0.05, 1e-3, 1e-8]))
    base = FreeClassesModel(Views(X if seed % 2 else sp.csr_array(X)), labels, 3, 0.0, gamma, weights)
    exact, rule = FreeClasses(X, labels, 3, gamma, weights), ("none", "sifs", "gap", "sifs+gap")[seed % 4]
    options = PathOptions(tol=tol, max_epochs=300)
    pairs = points(rng, base, each=2)
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
    for seed in range(wide(4, 8)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-3, 4, size=3)
        labels = np.array([1, 0, 1, 2, 0, 0, 1])
        weights = 10.0 ** rng.uniform(-3, 3, size=7) if seed % 2 else None
        exact, model = FreeClasses(X, labels, 3, 0.5, weights), FreeClassesModel(Views(X), labels, 3, 0.0, 0.5, weights)
        model = model.at(0.3 * model.beta_max)
        best = solved(model, 0.1 * model.alpha_max())
        found = sharpened(model, best, 1e-9)
        primal, dual = exact.gap_of(found, best.alpha)
        assert found.rounding <= best.rounding and Fraction(found.gap) >= primal - dual
        assert abs(Fraction(found.primal) - primal) <= Fraction(found.primal_error)
