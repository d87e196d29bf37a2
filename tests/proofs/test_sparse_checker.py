"""The checker of sparse SVMs against objectives formed anew, where what it sums is off by all that it may be."""

from fractions import Fraction
from itertools import pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.verify import certificate
from screenpath.verify.certificate import Pair, worst_ways
from screenpath.verify.exact import UNIT, Cells, bound, share
from screenpath.verify.products import check
from tests.proofs.disturbed import disturb, source, stored
from tests.width import wide

CLOSE = 1e-12
# What is off: sums over rows, products of rows, the balance of dual variables.
WHAT = {
    "sums": (0.05, 0.0, False), "products": (0.0, 0.05, False), "balance": (0.0, 0.0, True),
    "products and balance": (0.0, 0.2, True), "all": (0.02, 0.02, True),
}  # fmt: skip


def loss_of(t, gamma: float, squared: bool):
    """Return the losses, formed anew."""
    if squared:
        return 0.5 * np.maximum(t, 0.0) ** 2
    if gamma == 0.0:
        return np.maximum(t, 0.0)
    return np.where(t < 0.0, 0.0, np.where(t > gamma, t - 0.5 * gamma, t * t / (2.0 * gamma)))


class Truth:
    """A problem of two classes: objectives and gaps by their definitions."""

    def __init__(self, rng, kind: str, alpha: float, free: bool, weighted: bool):
        self.squared, self.gamma = kind == "squared", {"squared": 1.0, "smoothed": 0.4, "exact": 0.0}[kind]
        n, d = int(rng.integers(2, 5)), int(rng.integers(1, 3))
        self.X, self.y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
        self.v = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.3, 2.0, n)) if weighted else np.ones(n)
        self.v[0] = 1.0
        self.alpha, self.beta, self.free = alpha, float(rng.uniform(0.05, 0.3)), free
        self.w, self.b = rng.normal(size=d) * (rng.random(d) < 0.7), float(rng.normal()) if free else 0.0
        near = np.clip(self.slacks() / self.gamma, 0.0, 1.0) if self.gamma else (self.slacks() > 0.0) * 1.0
        self.theta = np.clip(near + rng.choice([0.0, 0.3], n) * rng.normal(size=n), 0.0, 1.0)

    def slacks(self):
        return 1.0 - self.y * (self.X @ self.w + self.b)

    @property
    def primal(self) -> float:
        mean = self.v @ loss_of(self.slacks(), self.gamma, self.squared) / self.v.sum()
        return float(mean + 0.5 * self.alpha * self.w @ self.w + self.beta * np.abs(self.w).sum())

    def gap(self, theta) -> float:
        """Return the gap of a dual point; at ``alpha = 0`` that of the largest part of it which is one."""
        n = self.v.sum()
        u = (self.v * theta * self.y) @ self.X / n
        if self.alpha == 0.0:
            theta = theta * min(1.0, self.beta / max(np.abs(u).max(), 1e-300))
            above = 0.0
        else:
            shrunk = np.maximum(np.abs(u) - self.beta, 0.0)
            above = shrunk @ shrunk / (2.0 * self.alpha)
        return self.primal - float(self.v @ (theta - 0.5 * self.gamma * theta * theta) / n - above)

    def least_gap(self) -> float:
        """Return the least gap of the dual points that differ in one row, by what the sum of theirs is off by."""
        rest = float(self.v @ (self.y * self.theta))
        if not self.free or rest == 0.0:
            return self.gap(self.theta)
        gaps = [np.inf]
        for i in np.flatnonzero(self.v):
            theta = self.theta.copy()
            theta[i] -= self.y[i] * rest / self.v[i]
            if theta[i] >= 0.0 and (theta[i] <= 1.0 or self.squared):
                gaps.append(self.gap(theta))
        return min(gaps)

    def check(self) -> Pair:
        header = {
            "model": "sparse-svm", "labels": {"+1": 1.0, "-1": -1.0}, "bias": float(self.free), "weights": self.v,
            "smoothing": self.gamma if not self.squared else 0.0, "loss": "squared-hinge" if self.squared else "hinge",
        }  # fmt: skip
        if self.free:
            header["intercept"] = "free"
        solution = np.append(self.w, self.b) if self.free else self.w
        index = np.flatnonzero(solution)
        entry = {
            "step": 0, "alpha": self.alpha, "beta": self.beta, "index": index, "values": solution[index],
            **stored(self.theta),
        }  # fmt: skip
        (pair,) = check(header, [entry], source(self.X, self.y, header["bias"]))
        assert pair.faults == []
        return pair


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("alpha", [0.5, 0.0])
@pytest.mark.parametrize("kind", ["smoothed", "exact", "squared"])
def test_no_gap_is_too_small_whatever_is_off(kind, alpha, what, monkeypatch):
    of_sums, of_products, unbalanced = WHAT[what]
    nearest = np.inf
    for seed in range(wide(60, 150)):
        rng = np.random.default_rng(seed)
        truth = Truth(rng, kind, alpha, unbalanced, seed % 3 > 0)
        with monkeypatch.context() as patch:
            disturb(patch, rng, of_sums, of_products)
            pair = truth.check()
            found, (value, error) = pair.gap, pair.primal
        assert abs(value - truth.primal) <= error + CLOSE, seed
        assert found >= truth.least_gap() - CLOSE, seed
        nearest = min(nearest, found - truth.least_gap()) if np.isfinite(found) else nearest
    assert nearest < (0.3 if of_products > 0.1 else 0.1)  # and none is much larger than it has to be


@pytest.mark.parametrize("alpha", [0.5, 0.0])
@pytest.mark.parametrize("what", ["sums", "products", "balance"])
def test_without_its_count_gaps_are_too_small(what, alpha, monkeypatch):
    """Of sums and of products: shares in the middle of what is known; of the balance: nothing has to flow."""
    (of_sums, of_products, unbalanced), small, kinds = WHAT[what], 0, ("smoothed", "exact", "squared")

    def middle(cells, x, low, high):
        return share(cells, x, 0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]))

    for seed in range(150):
        rng = np.random.default_rng(seed)
        truth = Truth(rng, kinds[seed % 3], alpha, unbalanced, seed % 2 > 0)
        with monkeypatch.context() as patch:
            disturb(patch, rng, of_sums, of_products)
            patch.setattr(certificate, "bound", middle)
            if unbalanced:
                patch.setattr(Pair, "costs", (0.0, 0.0, 0.0))
            small += truth.check().gap < truth.least_gap() - CLOSE
    assert small > 10


def test_shares_and_losses_hold_between_the_ends_of_what_is_known():
    rng = np.random.default_rng(0)
    t, theta = rng.normal(size=4000), np.where(rng.random(4000) < 0.2, 0.0, rng.random(4000))
    for gamma, squared in ((0.0, False), (0.4, False), (1.0, True)):
        cells, e = Cells(0.0, np.inf if squared else 1.0, gamma), rng.uniform(0.0, 0.3, t.size)
        (most, _), (loss, _) = bound(cells, theta, (t - e, 0.0), (t + e, 0.0)), share(cells, 0.0, t)
        steep = bound(cells, 0.0, (t - e, 0.0), (t + e, 0.0))[1]
        np.testing.assert_allclose(loss, loss_of(t, gamma, squared), rtol=1e-12)
        for part in np.linspace(-1.0, 1.0, 9):
            found = loss_of(t + part * e, gamma, squared)
            assert np.all(found + 0.5 * gamma * theta**2 - theta * (t + part * e) <= most + CLOSE)
            assert np.all(np.abs(found - loss) <= steep * e + CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [1, 3])
def test_sums_are_divided_within_their_bounds(classes, weighted):
    """The sum, the quotient and, of weights, the number that divides are rounded; the truth is a fraction."""
    rng, worst = np.random.default_rng(1), Fraction(0)
    labels = {"+1": 1.0, "-1": -1.0} if classes == 1 else {"classes": [0.0, 1.0, 2.0]}
    header = {"model": "sparse-svm", "labels": labels, "bias": 0.0, "smoothing": 0.4}
    header |= {"weights": np.ones(7)} if weighted else {}
    entry = {"step": 0, "alpha": 1.0, "beta": 1.0, "index": np.zeros(0, int), "values": np.zeros(0)}
    nothing = SimpleNamespace(n=7, d=1, passed=lambda indices: [])
    for _ in range(1000):
        parts = rng.uniform(1.0, 2.0, 7)
        header |= {"weights": parts} if weighted else {}
        (pair,) = check(header, [entry | stored(np.zeros(7 * classes))], nothing)
        for sums in pair.sums:
            sums.total[:], sums.rest[:] = rng.uniform(1.0, 2.0), rng.uniform(0.0, 1e-15)
        u, rest, off = pair.u
        exact = sum(map(Fraction, parts.tolist())) if weighted else Fraction(7)
        for k, sums in enumerate(pair.sums):
            truth = (Fraction(sums.total[0]) + Fraction(sums.rest[0])) / exact
            far = abs(truth - Fraction(float(u[k])) - Fraction(float(rest[k])))
            assert far <= Fraction(float(off[k])) <= Fraction(100 * UNIT**2)
            worst = max(worst, far)
    assert worst > Fraction(0.1 * UNIT**2)


@pytest.mark.parametrize("alpha", [0.5, 0.0])
def test_a_move_of_the_sums_is_counted_in_addition_to_their_errors(alpha, monkeypatch):
    """Whatever the sums are within their errors, and wherever the move of a dual point takes them."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        beta, d = 0.3, int(rng.integers(1, 3))
        w, u, off = rng.normal(size=d) * (rng.random(d) < 0.8), rng.normal(size=d), rng.uniform(0.0, 0.3, d)
        u = np.clip(0.2 * u, -0.2, 0.2) if alpha == 0.0 else u  # inside, whatever it is moved by
        header = {"model": "sparse-svm", "labels": {"+1": 1.0, "-1": -1.0}, "bias": 1.0, "smoothing": 0.4,
                  "intercept": "free"}  # fmt: skip
        index = np.flatnonzero(w)
        entry = {"step": 0, "alpha": alpha, "beta": beta, "index": index, "values": w[index]} | stored(np.zeros(1))
        (pair,) = check(header, [entry], SimpleNamespace(n=1, d=d, passed=lambda indices: []))
        off = 0.2 * off if alpha == 0.0 else off
        pair.sums[0].total[:-1], pair.sums[0].error[:-1] = u, off
        shift, cost = float(rng.uniform(0.0, 0.04 if alpha == 0.0 else 1.0)), float(rng.uniform(0.0, 0.1))
        monkeypatch.setattr(Pair, "costs", (cost, shift, 0.0))
        most = pair.gap
        for _ in range(20):
            true = u + rng.choice([-1.0, 1.0], d) * off
            shrunk = np.sign(true) * np.maximum(np.abs(true) - beta, 0.0)
            way = (shrunk - alpha * w) if rng.random() < 0.7 else rng.normal(size=d)
            way = (way if alpha else -w) / (np.linalg.norm(way if alpha else w) or 1.0)
            true = true + shift * way
            shrunk = np.sign(true) * np.maximum(np.abs(true) - beta, 0.0)
            apart = ((alpha * w - shrunk) ** 2).sum() / (2.0 * alpha) if alpha else 0.0
            assert apart + (beta * np.abs(w) - w * (true - shrunk)).sum() + cost <= most + CLOSE, seed


# -- several classes --------------------------------------------------------------------------------------------------


class ClassesTruth:
    """A problem of three classes."""

    def __init__(self, rng, gamma: float, alpha: float, free: bool, weighted: bool):
        self.gamma, self.alpha, self.beta, self.free = gamma, alpha, float(rng.uniform(0.05, 0.3)), free
        n, d = int(rng.integers(3, 6)), int(rng.integers(1, 3))
        self.X, self.y = rng.normal(size=(n, d)), rng.permutation(np.arange(n) % 3)
        self.v = rng.uniform(0.3, 2.0, n) if weighted else np.ones(n)
        self.W, self.b = rng.normal(size=(3, d)) * (rng.random((3, d)) < 0.7), rng.normal(size=3) * free
        t = self.slacks()
        near = np.clip(t / gamma, 0.0, 1.0) if gamma else (t > 0.0) * 1.0
        self.theta = np.clip(near + rng.choice([0.0, 0.3], (3, n)) * rng.normal(size=(3, n)), 0.0, 1.0)
        self.theta[self.y, np.arange(n)] = 0.0

    def slacks(self):
        scores = self.W @ self.X.T + self.b[:, None]
        return 1.0 - scores[self.y, np.arange(self.y.size)] + scores

    @property
    def others(self):
        return np.arange(3)[:, None] != self.y

    def flows(self, theta):
        """Return what flows out of each class, less what flows into it, sample by sample."""
        out = -self.v * theta
        for i, own in enumerate(self.y):
            out[own, i] = self.v[i] * theta[:, i].sum()
        return out

    @property
    def primal(self) -> float:
        losses = np.where(self.others, loss_of(self.slacks(), self.gamma, False), 0.0)
        penalty = 0.5 * self.alpha * (self.W**2).sum() + self.beta * np.abs(self.W).sum()
        return float((self.v * losses).sum() / self.v.sum() + penalty)

    def gap(self, theta) -> float:
        n = self.v.sum()
        shrunk = np.maximum(np.abs(self.flows(theta) @ self.X / n) - self.beta, 0.0)
        dual = (self.v * (theta - 0.5 * self.gamma * theta**2)).sum() / n - (shrunk**2).sum() / (2.0 * self.alpha)
        return self.primal - float(dual)

    def least_gap(self) -> float:
        """Return the least gap of the dual points in balance that differ by what flows along ways of few classes."""
        found = self.flows(self.theta).sum(axis=1)
        if not self.free or np.abs(found).max() < 1e-14:
            return self.gap(self.theta)
        gaps = [np.inf]
        for order in permutations(range(3)):  # what is too much flows on, from class to class in turn
            self._along(self.theta, found, order, gaps)
        return min(gaps)

    def _along(self, theta, found, order, gaps) -> None:
        if np.abs(found).max() < 1e-14:
            gaps.append(self.gap(theta))
            return
        if len(order) < 2:
            return
        p, q = order[:2]
        amount = found[p]  # so much less has to flow from p to q
        rest = found.copy()
        rest[p], rest[q] = 0.0, found[q] + amount
        for i in range(self.y.size):
            for c, sign in ((q, -1.0), (p, 1.0)):
                if self.y[i] == (p if c == q else q):
                    moved = theta.copy()
                    moved[c, i] += sign * amount / self.v[i]
                    if 0.0 <= moved[c, i] <= 1.0:
                        self._along(moved, rest, order[1:], gaps)

    def check(self):
        header = {
            "model": "sparse-svm", "labels": {"classes": [0.0, 1.0, 2.0]}, "smoothing": self.gamma,
            "bias": float(self.free), "weights": self.v,
        }  # fmt: skip
        if self.free:
            header["intercept"] = "free"
        solution = (np.column_stack([self.W, self.b]) if self.free else self.W).ravel()
        index = np.flatnonzero(solution)
        entry = {
            "step": 0, "alpha": self.alpha, "beta": self.beta, "index": index, "values": solution[index],
            **stored(self.theta),
        }  # fmt: skip
        (pair,) = check(header, [entry], source(self.X, self.y.astype(float), header["bias"]))
        assert pair.faults == []
        return pair


def ways_that_are_there(truth, pair) -> None:
    """Look for the dual variable that can let so much more flow from a class to another, at no more than is said."""
    t, size, (slopes, norms, curves) = truth.slacks(), pair.flow_size, pair.flow.found
    for p, q in permutations(range(3), 2):
        if not np.isfinite(slopes[p, q]):
            continue
        found, slope = False, slopes[p, q] + size * curves[p, q]
        for i in range(truth.y.size):
            for c, sign in ((q, -1.0), (p, 1.0)):
                if truth.y[i] != (p if c == q else q):
                    continue
                before, after = truth.theta[c, i], truth.theta[c, i] + sign * size / truth.v[i]
                shares = [0.5 * truth.gamma * x * x - x * t[c, i] for x in (before, after)]
                cheap = truth.v[i] * (shares[1] - shares[0]) <= slope * size + CLOSE
                short = np.linalg.norm(truth.X[i]) <= norms[p, q]
                found |= bool(cheap and short and -CLOSE <= after <= 1.0 + CLOSE)
        assert found


def test_the_worst_of_the_cheapest_ways():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(3, 5))
        slopes = np.where(rng.random((size, size)) < 0.3, np.inf, rng.uniform(0.0, 1.0, (size, size)) ** 3)
        norms = np.where(np.isfinite(slopes), rng.uniform(0.5, 2.0, (size, size)), np.inf)
        found = worst_ways(np.stack([slopes, norms]))
        for p, q in permutations(range(size), 2):
            between = [k for k in range(size) if k not in (p, q)]
            ways = [(p, *way, q) for length in range(size - 1) for way in permutations(between, length)]
            cost, length = min(
                tuple(sum(part[a, b] for a, b in pairwise(way)) for part in (slopes, norms)) for way in ways
            )
            np.testing.assert_allclose(found[:, p, q], (cost, length), rtol=1e-12)
        assert not found[:, range(size), range(size)].any()


def test_what_flows_on_costs_what_its_ways_do(monkeypatch):
    """Half of all that is too much or too little flows, and each variable on its way moves the sums of two classes."""
    truth = ClassesTruth(np.random.default_rng(0), 0.4, 0.5, True, False)
    truth.theta = np.where(truth.others, 0.5 / np.bincount(truth.y)[truth.y] + 0.02 * truth.theta, 0.0)
    pair = truth.check()
    found = truth.flows(truth.theta).sum(axis=1)
    moved = 0.5 * np.abs(found).sum() / truth.v.sum()
    slopes, norms, curves = pair.flow.found
    slopes = slopes + pair.flow_size * curves
    ways = worst_ways(np.stack([slopes, norms]))[:, found > 0.0][:, :, found < 0.0]
    cost, shift, square = pair.costs
    assert moved * ways[0].max() <= cost < 1.01 * moved * ways[0].max()
    assert np.sqrt(2.0) * moved * ways[1].max() <= shift < 1.6 * moved * ways[1].max()
    assert 0.0 < square <= cost


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("gamma", [0.4, 0.0])
def test_no_gap_of_several_classes_is_too_small_whatever_is_off(gamma, what, monkeypatch):
    of_sums, of_products, unbalanced = WHAT[what]
    if unbalanced and gamma == 0.0:
        pytest.skip("there is no such model")
    nearest, finite = np.inf, 0
    for seed in range(wide(50, 80)):
        rng = np.random.default_rng(seed)
        alpha = 0.02 if what == "balance" else 0.5
        truth = ClassesTruth(rng, gamma, alpha, unbalanced, seed % 3 > 0)
        if unbalanced:
            few = truth.theta * (rng.random(truth.theta.shape) < 0.3)
            truth.theta = few if seed % 2 else np.where(truth.others, 0.5 + 0.1 * few, 0.0)
        with monkeypatch.context() as patch:
            disturb(patch, rng, of_sums, of_products)
            pair = truth.check()
            found, (value, error) = pair.gap, pair.primal
        assert abs(value - truth.primal) <= error + CLOSE, seed
        if unbalanced:
            assert pair.flow_size >= 0.5 * np.abs(truth.flows(truth.theta).sum(axis=1)).sum() - CLOSE
            ways_that_are_there(truth, pair)
        if np.isfinite(found):
            finite += 1
            assert found >= truth.least_gap() - CLOSE, seed
            nearest = min(nearest, found - truth.least_gap())
    assert nearest < 0.6 and finite > wide(5, 10)
