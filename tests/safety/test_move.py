"""Features zeroed by a move of their weight: no decision is wrong, by linear programs that know nothing of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from screenpath.kernels.screen import move
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.width import wide

SURE = 1e-7  # of weights, and of beta


class Problem:
    """The L1 penalty and a loss without curvature, as a model and as a linear program."""

    def __init__(self, rng, most: int = 80):
        n, d = int(rng.integers(12, 60)), int(rng.integers(10, most))
        self.free, hinge = bool(rng.integers(2)), rng.random() < 0.4
        X = rng.normal(size=(n, d)) + rng.choice([0.0, 0.0, 2.0])
        X[rng.random((n, d)) < rng.choice([0.0, 0.7])] = 0.0
        X[:, 0] = 1.0 + rng.random(n)
        y = X @ (rng.normal(size=d) * (rng.random(d) < 0.1)) + rng.standard_t(2.0, size=n)
        y = np.round(y) if rng.random() < 0.2 else y
        self.y = np.where(y > np.median(y), 1.0, -1.0) if hinge else y
        level = float(rng.uniform(0.1, 0.9))
        self.low, self.high = (0.0, 1.0) if hinge else rng.choice([[-1.0, 1.0], [level - 1.0, level]])
        self.signs = rng.integers(-1, 2, size=d).astype(np.int8) if rng.random() < 0.2 else np.zeros(d, np.int8)
        weights = rng.uniform(0.2, 3.0, n) if rng.random() < 0.4 else None
        self.s = np.ones(n) if weights is None else weights * (n / weights.sum())
        labels = (self.y if hinge else np.ones(n)).astype(np.int64)
        self.kinks, self.G = np.ones(n) if hinge else self.y, X * labels[:, None]
        self.labels, self.X = labels, sp.csr_array(X) if rng.random() < 0.4 else X
        self.model = sparse_model(
            Views(self.X), labels, 1, 0.0, weights, "free" if self.free else None, None if hinge else self.y,
            (self.low, self.high), self.signs,
        )  # fmt: skip

    def optimum(self, beta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return optimal weights and column sums of an optimal dual point, by a linear program."""
        n, d = self.G.shape
        t = np.hstack([-self.G, self.G, -self.labels[:, None] * np.array([[1.0, -1.0]]) * self.free])
        columns = t.shape[1]  # t = kinks + these, loss >= low t and >= high t
        above = np.vstack([np.hstack([end * t, -np.eye(n)]) for end in (self.low, self.high)])
        limits = np.concatenate([-end * self.kinks for end in (self.low, self.high)])
        most = [[0.0, 0.0 if sign < 0 else None] for sign in self.signs]
        least = [[0.0, 0.0 if sign > 0 else None] for sign in self.signs]
        bounds = most + least + [[0.0, None]] * (columns - 2 * d) + [[None, None]] * n
        costs = np.concatenate([np.full(2 * d, beta), np.zeros(columns - 2 * d), self.s / n])
        found = linprog(costs, above, limits, bounds=bounds, method="highs")
        assert found.status == 0
        duals = -found.ineqlin.marginals.reshape(2, n)
        theta = self.low * duals[0] + self.high * duals[1]
        return found.x[:d] - found.x[d : 2 * d], self.G.T @ theta


def references(rng, model):
    """Yield pairs: near an optimum at this and at another alpha, rough ones, and a moved one."""
    top = model.alpha_max()
    for alpha, tol in ((0.0, 1e-9), (0.0, 1e-3), (0.003 * top, 1e-8), (0.05 * top, 1e-5)):
        start = model.start(top)
        reduced = model.reduce(alpha, model.nothing_screened(), start)
        found = SparseNewton().solve(reduced, tol=tol, budget=Budget(600, np.inf), dynamic=False)
        pair = model.certify(alpha, found.w, found.alpha)
        yield pair
        yield model.certify(alpha, pair.w * rng.uniform(0.9, 1.1, pair.w.size), pair.theta)


def attack(seeds, most: int = 80) -> tuple[int, int]:
    """Return decisions made and wrong ones at ``alpha = 0``."""
    made = wrong = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        problem = Problem(rng, most)
        base = problem.model
        if not base.beta_max > 0.0:
            continue
        model = base.at(base.beta_max * float(10.0 ** rng.uniform(-1.3, -0.05)))
        w, u = problem.optimum(model.beta)
        active = (np.abs(w) > SURE) & (model.outward(u) > model.beta * (1.0 - SURE))
        for pair in references(rng, model):
            gone = rules.screen(model, pair, 0.0, True, True, True).keep == 0
            made, wrong = made + int(gone.sum()), wrong + int((gone & active).sum())
    return made, wrong


def test_no_decision_is_wrong():
    count = wide(16, 400)
    made, wrong = attack(range(count))
    assert made > 60 * count and wrong == 0


def test_the_attack_finds_a_budget_that_is_too_small(monkeypatch):
    whole = rules.move.pair_to_move
    monkeypatch.setattr(rules.move, "pair_to_move", lambda *given: whole(*given[:5], 1e-3 * given[5], given[6]))
    assert attack(range(20))[1] > 0


@pytest.mark.parametrize("seed", sorted({*range(wide(4, 40)), 9}))  # 9: rows after a move
def test_screened_and_unscreened_paths_agree(seed, monkeypatch):
    """Also where features are zeroed within a solve, which small data are spared."""
    monkeypatch.setattr("screenpath.solve.sharp.WORTH", 0)
    base = Problem(np.random.default_rng(500 + seed)).model
    beta = 0.6 * base.beta_max
    pairs = [(base.at(beta).alpha_max() * share, beta) for share in (0.2, 0.199, 0.197, 0.0)]
    options = PathOptions(tol=1e-8, audit=Audit(SparseNewton(), PathOptions(tol=1e-8), rules.contradicted))
    paths = [
        list(walk(SparseGrid(base), pairs, rules.parse_sparse_rule(rule), SparseNewton(), options))
        for rule in ("none", "ifs", "sifs+gap", "gap")
    ]
    for steps in zip(*paths, strict=True):
        for step, found in steps:
            assert step.status == "certified" and step.extras["unsafe"] == 0
            assert found.dual <= steps[0][1].highest * (1 + 1e-12)
    assert sum(step.n_features_screened for step, _ in paths[1]) > 0


def test_the_best_move_is_the_fractional_knapsack():
    """Entries leave their end in the order of what they cost, until the budget is spent."""
    rng, n = np.random.default_rng(0), 40
    for _ in range(wide(20, 200)):
        t, g, budget = rng.normal(size=n), rng.normal(size=n), float(10.0 ** rng.uniform(-1, 1))
        theta = (t > 0.0) * 1.0
        gain, cost = np.maximum(np.where(theta == 1.0, -g, g), 0.0), np.abs(t)
        order, most, left = np.argsort(-gain / cost), float(g @ theta), budget
        for k in order:
            part = min(1.0, left / cost[k])
            most, left = most + part * gain[k], left - part * cost[k]
        most /= n
        view = g, np.zeros(0, dtype=np.int32), np.array([0, n])
        ones, zeros = np.ones(n), np.zeros(n)
        losses, labels = (2.0**-1000, 2.0**1000, 0.0, 1.0), np.ones(n, dtype=np.int64)
        pair = move.Move(t, theta, zeros, zeros[:1], ones, ones, labels, budget, 0.0, losses)
        u = float(g @ theta) / n
        assert move.stays_below(view, 0, 1.0, most + 1e-3 * abs(most - u) - u, 0.0, pair)[0]
        assert not move.stays_below(view, 0, 1.0, most - 1e-9 * abs(most - u) - u, 0.0, pair)[0]
