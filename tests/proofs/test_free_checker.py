"""The checkers of box models with a free intercept, or behind a kernel, against objectives formed anew."""

from itertools import product

import numpy as np
import pytest

from screenpath.verify import products
from screenpath.verify.certificate import Flow
from screenpath.verify.file import pack
from tests.proofs.disturbed import disturb, source, stored
from tests.width import wide

CLOSE = 1e-12
# What is off: sums over rows, products of rows, the balance of dual variables.
WHAT = {"sums": (0.05, 0.0), "products": (0.0, 0.1), "balance": (0.0, 0.0), "both": (0.02, 0.05)}
KERNELS = {"linear": {"kernel": "linear", "constant": 0.3},
           "poly": {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0, "constant": 0.0}}  # fmt: skip


class Truth:
    """A small box model: objectives and gaps by their definitions, through its matrix of inner products."""

    def __init__(self, rng, model: str, intercept: bool, kind: str | None):
        n, d = int(rng.integers(2, 4 if model == "svr" else 5)), int(rng.integers(1, 3))
        self.model, self.free, self.kind, self.C = model, intercept, kind, float(rng.uniform(0.3, 2.0))
        self.X, self.v = rng.normal(size=(n, d)), rng.uniform(0.3, 2.0, n)
        self.y = rng.choice([-1.0, 1.0], n) if model == "svm" else rng.normal(size=n)
        v = self.v
        if model == "svm":
            self.s, self.c, self.lo, self.hi = self.y, np.ones(n), 0.0 * v, v
        elif model == "quantile":
            self.s, self.c, self.lo, self.hi = np.ones(n), self.y, -0.7 * v, 0.3 * v
        else:
            self.s, self.c = np.repeat([1.0, -1.0], n), np.concatenate([self.y - 0.2, -self.y - 0.2])
            self.lo, self.hi = np.zeros(2 * n), np.tile(v, 2)
        rows = np.tile(self.X, (2, 1)) if model == "svr" else self.X
        inner = rows @ rows.T
        if kind is not None:
            inner = inner + 0.3 if kind == "linear" else (0.5 * inner + 1.0) ** 2
        self.Q = self.s[:, None] * inner * self.s
        self.norms = np.sqrt(np.diag(inner))
        self.theta = rng.uniform(self.lo, self.hi)
        ends = rng.random(self.theta.size)
        self.theta = np.where(ends < 0.3, self.lo, np.where(ends > 0.8, self.hi, self.theta))
        self.b = float(rng.normal()) if intercept else 0.0
        self.w = self.C * (self.s * self.theta) @ rows + 0.3 * rng.normal(size=d) * (rng.random() < 0.5)
        self.forms = self.C * self.Q @ self.theta if kind is not None else self.s * (rows @ self.w)
        self.square = self.C * self.theta @ self.forms if kind is not None else self.w @ self.w
        self.rows = rows

    @property
    def t(self):
        return self.c - self.forms - self.s * self.b

    @property
    def primal(self) -> float:
        return float(0.5 * self.square + self.C * np.maximum(self.lo * self.t, self.hi * self.t).sum())

    def gap(self, theta) -> float:
        return self.primal - float(self.C * self.c @ theta - 0.5 * self.C**2 * theta @ self.Q @ theta)

    def least_gap(self) -> float:
        """Return the least gap of the dual points that differ in one row, by what the sum of theirs is off by."""
        rest = float(self.s @ self.theta)
        if not self.free or rest == 0.0:
            return self.gap(self.theta)
        gaps = [np.inf]
        for i in range(self.theta.size):
            moved = self.theta.copy()
            moved[i] -= self.s[i] * rest
            if self.lo[i] <= moved[i] <= self.hi[i]:
                gaps.append(self.gap(moved))
        return min(gaps)

    def optimum(self, C: float):
        """Return the optimal dual point without an intercept: of all faces of the box, the best point."""
        best, found = -np.inf, None
        for states in product((0, 1, 2), repeat=self.theta.size):
            states = np.array(states)
            theta, inside = np.where(states == 1, self.hi, self.lo), states == 2
            if inside.any():
                right = self.c[inside] / C - self.Q[np.ix_(inside, ~inside)] @ theta[~inside]
                theta[inside] = np.linalg.lstsq(self.Q[np.ix_(inside, inside)], right, rcond=None)[0]
            if np.all((theta >= self.lo - CLOSE) & (theta <= self.hi + CLOSE)):
                value = C * self.c @ theta - 0.5 * C**2 * theta @ self.Q @ theta
                best, found = (value, theta) if value > best else (best, found)
        return found

    def check(self):
        header = {
            "model": self.model, "labels": {"+1": 1.0, "-1": -1.0}, "tau": 0.3, "epsilon": 0.2, "weights": self.v,
            "bias": float(self.free and self.kind is None), "data": {"n_samples": self.X.shape[0]},
        }  # fmt: skip
        entry = {"step": 0, "C": self.C, "claims": pack(np.zeros(self.theta.size, np.uint8)),
                 **stored(self.theta, self.lo, self.hi)}  # fmt: skip
        if self.kind is not None:
            header["kernel"] = KERNELS[self.kind]
            entry |= {"b": self.b} if self.free else {}
        else:
            entry["w"] = np.append(self.w, self.b) if self.free else self.w
        if self.free:
            header["intercept"] = "free"
        (pair,) = products.check(header, [entry], source(self.X, self.y, header["bias"]))
        assert pair.faults == []
        return pair


@pytest.fixture
def disturbed(monkeypatch):
    def call(rng, of_sums, of_products):
        disturb(monkeypatch, rng, of_sums, of_products)

        def off(found):
            return found + of_products * rng.choice([-1.0, 1.0], np.shape(found))

        def kernel_values(*arguments):
            K, error = KERNEL_VALUES(*arguments)
            return off(K), error + of_products

        monkeypatch.setattr(products, "values", kernel_values)
        monkeypatch.setattr(products, "_exactly", lambda *arguments: [])

    return call


KERNEL_VALUES = products.values


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("kind", [None, "linear", "poly"])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_gap_is_too_small_whatever_is_off(intercept, kind, what, disturbed):
    nearest, finite = np.inf, 0
    for seed in range(wide(50, 120)):
        rng = np.random.default_rng(seed)
        truth = Truth(rng, ("svm", "quantile", "svr")[seed % (3 if kind is None else 2)], intercept, kind)
        if intercept:  # a sum that some row has room for
            rest = truth.s @ truth.theta
            i = int(np.argmax(truth.hi - truth.lo))
            truth.theta[i] = np.clip(
                truth.theta[i] - truth.s[i] * (rest - 0.1 * rng.normal()), truth.lo[i], truth.hi[i]
            )
            truth.forms = truth.C * truth.Q @ truth.theta if kind is not None else truth.forms
            truth.square = truth.C * truth.theta @ truth.forms if kind is not None else truth.square
        disturbed(rng, *WHAT[what])
        pair = truth.check()
        found, (value, error) = pair.gap, pair.primal
        assert abs(value - truth.primal) <= error + CLOSE, seed
        if np.isfinite(found):
            finite += 1
            assert found >= truth.least_gap() - CLOSE, seed
            nearest = min(nearest, found - truth.least_gap())
    assert finite > wide(12, 30) and nearest < 0.3


@pytest.mark.parametrize("what", ["products", "balance", "both"])
@pytest.mark.parametrize("kind", [None, "linear", "poly"])
def test_the_optimum_is_in_the_ball_of_a_pair_whatever_is_off(kind, what, disturbed):
    nearest = np.inf
    for seed in range(wide(24, 40)):
        rng = np.random.default_rng(seed)
        truth = Truth(rng, ("svm", "quantile")[seed % 2], False, kind)
        disturbed(rng, *WHAT[what])
        pair = truth.check()
        for C in (truth.C, 0.5 * truth.C, 1.6 * truth.C):
            best, half = truth.optimum(C), 0.5 * (1.0 + C / truth.C)
            if kind is None:
                far = np.linalg.norm(C * (truth.s * best) @ truth.rows - half * truth.w)
            else:
                apart = C * best - half * truth.C * truth.theta
                far = np.sqrt(max(apart @ truth.Q @ apart, 0.0))
            assert far <= pair.radius(C) + 1e-7, (seed, C)
            nearest = min(nearest, 1.0 - far / pair.radius(C))
    assert nearest < 0.2


def test_a_sum_of_unknown_sign_is_taken_by_rows_of_either_kind():
    for value in (0.01, -0.01, 0.0):
        flow, given = Flow(2), (np.array([value]), np.array([0.05]))
        # Of rows that make the sum less, and more: slope, norm, and the curve over the weight.
        flow.found[:, 0, 1], flow.found[:, 1, 0] = (0.1, 2.0, 0.7), (3.0, 0.5, 2.8)
        cost, shift, square = flow.costs(*given)
        for true, (slope, norm, curve) in ((value + 0.05, flow.found[:, 0, 1]), (value - 0.05, flow.found[:, 1, 0])):
            assert cost >= abs(true) * slope + 0.5 * true**2 * curve and shift >= abs(true) * norm
            assert square >= 0.5 * true**2 * curve
        flow.found[:, 1, 0] = np.inf
        assert flow.costs(*given) == (np.inf, np.inf, np.inf)
        if value:  # whose sign is known
            flow.found[:, 0, 1] = (0.1, 2.0, 0.0) if value > 0.0 else np.inf
            flow.found[:, 1, 0] = (0.1, 2.0, 0.0) if value < 0.0 else np.inf
            cost, shift, _ = flow.costs(given[0], np.array([0.0]))
            assert (cost, shift) == pytest.approx((0.1 * abs(value), 2.0 * abs(value)))
    assert Flow(2).costs(np.zeros(1), np.zeros(1)) == (0.0, 0.0, 0.0)


@pytest.fixture
def single(monkeypatch):
    """Let the longest numbers be those of 24 bits: what is true is then known to many more digits."""
    monkeypatch.setattr(products, "LONG", np.float32)
    for name, value in (("LAST", EPS), ("EXP", 16.0 * EPS), ("TINY", 2.0**-120)):
        monkeypatch.setattr(products, name, value)
    monkeypatch.setattr(products, "_exactly", lambda *arguments: [])


EPS = float(np.finfo(np.float32).eps)


def short(values):
    """Return numbers of few digits, whose sums are exact."""
    return np.round(np.asarray(values) * 512.0) / 512.0


@pytest.mark.parametrize("name", ["linear", "poly", "rbf"])
def test_kernel_values_and_norms_are_within_their_bounds(name, single):
    """Rows are off by a unit in the last place of each value, all products and sums are rounded."""
    what = {"kernel": name, "gamma": 0.7, "degree": 3, "coef0": 1.5, "constant": 0.0}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        d, size = int(rng.choice([1, 2, 30])), float(rng.choice([0.1, 1.0, 30.0]))
        what["constant"] = 0.25 if seed % 4 == 0 else 0.0
        X, Z = size * rng.normal(size=(3, d)), size * rng.normal(size=(4, d))
        Z[:2] = X[:2] * (1.0 + 1e-3 * rng.normal(size=(2, 1)))
        given = [part.astype(np.float32) for part in (X, Z)]
        ways = rng.choice([-0.99, 0.99], 2) if seed % 2 else (0.0, 0.0)
        X, Z = (part.astype(float) * (1.0 + EPS * way) for part, way in zip(given, ways, strict=True))
        inner = X @ Z.T
        square = ((X[:, None] - Z) ** 2).sum(axis=2)
        true = {"linear": inner, "poly": (0.7 * inner + 1.5) ** 3, "rbf": np.exp(-0.7 * square)}[name]
        found, error = products.values(what, *given)
        assert found.dtype == np.float32
        assert np.all(np.abs(found.astype(float) - true - what["constant"]) <= error), seed
        own = (X * X).sum(axis=1)
        own = {"linear": own, "poly": (0.7 * own + 1.5) ** 3, "rbf": np.ones(3)}[name] + what["constant"]
        assert np.all(products._norms(what, given[0]) >= np.sqrt(own))


def test_norms_are_not_below_what_a_kernel_may_be(disturbed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2)).astype(products.LONG)
    disturbed(rng, 0.0, 0.2)
    assert np.all(products._norms(KERNELS["linear"], X) >= np.sqrt((X * X).sum(axis=1) + 0.3))


def test_an_intercept_far_away_rounds_no_form(single):
    errors = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = Truth(rng, "quantile", True, "linear")
        truth.X, truth.v, truth.b = short(truth.X), short(truth.v), float(short(1000.0 * rng.normal()))
        truth.lo, truth.hi = -0.7 * truth.v, (1.0 - 0.7) * truth.v
        truth.rows, truth.C = truth.X, 1.0
        truth.Q = truth.X @ truth.X.T + 0.3
        truth.theta = short(np.clip(truth.theta, truth.lo + 0.01, truth.hi - 0.01))
        truth.forms = truth.Q @ truth.theta
        truth.square = truth.theta @ truth.forms
        pair = truth.check()
        value, error = pair.primal
        assert abs(value - truth.primal) <= error, seed
        errors.append(error / value)
    assert np.median(errors) < 2.0**-26  # in the last sum each form would be rounded by 2^-24 of the intercept
