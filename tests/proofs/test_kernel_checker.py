"""The checker of kernel models against exact arithmetic, also where its numbers have few digits, or hardly any."""

import decimal
from decimal import Decimal
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.verify import products
from screenpath.verify.data import Block
from screenpath.verify.file import HIGH, OWN, pack
from screenpath.verify.model import Model
from tests.proofs.disturbed import source, stored

EPS = float(np.finfo(np.float32).eps)
KINDS = {
    "linear": {"kernel": "linear", "constant": 0.25},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 1.0, "constant": 0.25},
    "rbf": {"kernel": "rbf", "gamma": 0.5, "constant": 0.25},
    "laplacian": {"kernel": "laplacian", "gamma": 0.5, "constant": 0.25},
}


def fractions(values):
    return [F(float(v)) for v in np.ravel(values)]


def exact_value(what: dict, x, z) -> F:
    """Return a kernel value; exponentials to 80 digits."""
    gamma, constant = F(what.get("gamma", 0)), F(what["constant"])
    if what["kernel"] in ("rbf", "laplacian"):
        power = 2 if what["kernel"] == "rbf" else 1
        square = sum(abs(a - b) ** power for a, b in zip(x, z, strict=True)) * gamma
        with decimal.localcontext() as context:
            context.prec = 80
            return F((Decimal(-square.numerator) / Decimal(square.denominator)).exp()) + constant
    inner = sum(a * b for a, b in zip(x, z, strict=True))
    return ((gamma * inner + F(what["coef0"])) ** what["degree"] if what["kernel"] == "poly" else inner) + constant


class Problem:
    """A small problem behind a kernel, a dual point, and what both come to in fractions.

    ``tails`` are what the rows have beside the doubles that they are given in.
    """

    def __init__(self, what: dict, X, y, s, C: float, theta, tails=None, b=None):
        self.what, self.X, self.y, self.s, self.C, self.theta = what, X, y, s, C, np.asarray(theta, dtype=float)
        self.tails, self.b = tails, b
        more = np.zeros(X.shape) if tails is None else tails
        rows = [
            [F(a) + F(b) for a, b in zip(x, t, strict=True)] for x, t in zip(X.tolist(), more.tolist(), strict=True)
        ]
        given = [F(sign) * value for sign, value in zip(y.tolist(), fractions(theta), strict=True)]
        self.products = [sum(g * exact_value(what, x, z) for g, z in zip(given, rows, strict=True)) for x in rows]
        self.square = F(C) ** 2 * sum(g * p for g, p in zip(given, self.products, strict=True))
        forms = [F(C) * p + F(b or 0) for p in self.products]
        self.t = [1 - F(sign) * form for sign, form in zip(y.tolist(), forms, strict=True)]
        tops, shares = fractions(s), fractions(theta)
        self.loss = sum(v * max(t, 0) for v, t in zip(tops, self.t, strict=True))
        self.primal = self.square / 2 + F(C) * self.loss
        self.gap = F(C) * sum(
            (v - a) * max(t, 0) + a * max(-t, 0) for v, a, t in zip(tops, shares, self.t, strict=True)
        )

    def check(self, more=(), **entry):
        """Return what the checker finds of the pair, and of the further ones of ``more``."""
        n = self.y.size
        header = {"model": "svm", "labels": {"+1": 1.0, "-1": -1.0}, "weights": self.s, "bias": 0.0,
                  "data": {"n_samples": n}, "kernel": self.what}  # fmt: skip
        states = stored(self.theta)  # of samples with weights the upper end is written out
        own = {"step": 0, "C": self.C, "claims": pack(np.zeros(n, np.uint8)), "primal": float(self.primal),
               **states, **entry}  # fmt: skip
        if self.b is not None:
            own["b"] = self.b
        data = source(self.X, self.y)
        if self.tails is not None:
            ends, columns = np.arange(n + 1) * self.X.shape[1], np.tile(np.arange(self.X.shape[1]), n)
            block = Block(0, self.y, ends, columns, self.X.ravel().copy(), self.tails.ravel().copy())
            data = SimpleNamespace(n=n, d=self.X.shape[1], passed=lambda indices: [block])
        header |= {} if self.b is None else {"intercept": "free"}
        return products.check(header, [own, *more], data)


def drawn(seed: int, what: dict, n: int, tails=False, digits=None, b=None, scale=1.0) -> Problem:
    """Return a problem of random numbers, ``digits`` bits of each."""
    rng = np.random.default_rng(seed)

    def few(values):
        return np.asarray(values) if digits is None else np.round(np.asarray(values) * 2.0**digits) / 2.0**digits

    X, s = few(scale * rng.normal(size=(n, 2))), np.ones(n)
    theta = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), few(rng.uniform(size=n)))
    beside = X * rng.uniform(-(2.0**-53), 2.0**-53, X.shape) if tails else None
    y, C = rng.choice([-1.0, 1.0], n), float(few(rng.uniform(0.5, 2.0)))
    return Problem(what, X, y, s, C, theta, beside, b)


def long_fraction(value) -> F:
    high = float(value)
    return F(high) + F(float(value - type(value)(high)))


@pytest.mark.parametrize("tails", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_a_pair_holds_in_exact_arithmetic(kind, tails):
    for seed in range(25):
        truth = drawn(seed, KINDS[kind], 1 + seed % 4, tails)
        (pair,) = truth.check()
        value, error = pair.primal
        assert pair.faults == [] and F(pair.gap) >= truth.gap and abs(F(value) - truth.primal) <= F(error)
        norm, off = pair.norm_squared()
        assert abs(F(norm) - truth.square) <= F(off)
        assert pair.gap <= float(truth.gap) + 2.0**-45 * float(truth.primal) and error <= 2.0**-45 * float(truth.primal)


def test_a_gap_is_claimed_to_as_many_digits_as_numbers_have():
    """To this part of the primal value: more of it would be no claim."""
    header, source = {"model": "svm", "labels": {"+1": 1.0, "-1": -1.0}}, SimpleNamespace(n=3, d=2)
    for more in ({"kernel": {}, "bias": 1.0, "intercept": "free"}, {"kernel": KINDS["rbf"], "bias": 0.0},
                 {"kernel": KINDS["rbf"], "bias": 0.0, "intercept": "free"}):  # fmt: skip
        assert 2.0**-60 < Model(header | more, source).digits < 2.0**-40
    assert Model(header | {"bias": 1.0}, source).digits == 0.0


@pytest.fixture
def single(monkeypatch):
    """Let the longest numbers be those of 24 bits, and no product be formed again."""
    monkeypatch.setattr(products, "LONG", np.float32)
    for name, value in (("LAST", EPS), ("EXP", 16.0 * EPS), ("UNSURE", np.inf), ("TINY", 2.0**-120)):
        monkeypatch.setattr(products, name, value)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_holds_where_numbers_have_few_digits(kind, single):
    for seed in range(40):
        truth = drawn(seed, KINDS[kind], 1 + seed % 4, b=0.75 if seed % 3 == 0 else None)
        truth.theta[:] = np.where(truth.theta == 0.0, 0.25, truth.theta)
        truth = Problem(truth.what, truth.X, truth.y, truth.s, truth.C, truth.theta, None, truth.b)
        (pair,) = truth.check()
        value, error = pair.primal
        norm, off = pair.norm_squared()
        assert abs(F(value) - truth.primal) <= F(error) and abs(F(norm) - truth.square) <= F(off)
        if truth.b is None:
            assert F(pair.gap) >= truth.gap and pair.gap <= float(truth.gap) + 1e-3 * float(truth.primal)


def test_distances_of_rows_far_from_0_are_off_by_what_each_row_is(single):
    """Each number is off by a unit in the last place, and all of them so that rows are nearer, or further apart."""
    what, tight = {"kernel": "rbf", "gamma": 0.5, "constant": 0.0}, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        what["gamma"], d = float(rng.choice([0.25, 1.0, 4.0])), int(rng.choice([1, 1, 2, 5]))
        X = 10.0 ** rng.uniform(3.0, 6.5) * rng.choice([-1.0, 1.0], (1, d)) / what["gamma"] ** 0.5
        Z = X + rng.uniform(0.0, 8.0) * rng.choice([-1.0, 0.0, 1.0], (1, d)) / what["gamma"] ** 0.5
        given = [part.astype(np.float32) for part in (X, Z)]
        X, Z = (part.astype(float) for part in given)
        way = np.where(X > Z, 1.0, -1.0) * rng.choice([-1.0, 1.0])
        X, Z = X + 0.999 * EPS * np.abs(X) * way, Z - 0.999 * EPS * np.abs(Z) * way
        true = np.exp(-what["gamma"] * ((X - Z) ** 2).sum())
        found, error = (float(part[0, 0]) for part in products.values(what, *given))
        assert abs(found - true) <= error
        tight += np.isfinite(error) and abs(found - true) > 0.2 * error
    assert tight > 20


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_kernel_values_term_by_term(kind, monkeypatch):
    """Units so large that every term counts; the roots of an exponent's error are those of both rows'."""
    last, up, tiny, d, rng = 0.01, 1.25, 0.003, 3, np.random.default_rng(7)
    for name, value in (("LAST", last), ("UP", up), ("TINY", tiny), ("EXP", 0.16)):
        monkeypatch.setattr(products, name, value)
    monkeypatch.setattr(products, "gamma", lambda depth, unit: unit * depth / 10)
    what, seen = KINDS[kind], set()
    X, Z = (rng.normal(size=(n, d)) * np.geomspace(0.01, 9.0, n)[:, None] for n in (5, 4))
    K, error = products.values(what, X, Z)
    for i, j in np.ndindex(5, 4):
        x, z, rate, constant = X[i], Z[j], what.get("gamma", 1.0), what["constant"]
        if kind in ("rbf", "laplacian"):
            power = 2 if kind == "rbf" else 1
            size, far = sum(np.linalg.norm(v, power) for v in (x, z)), (np.abs(x - z) ** power).sum()
            off, each = 0.007 * far + d * tiny, 1.007 * size * last
            root = 2.0 * up * each * np.sqrt(far + off) + 2.0 * (up * each) ** 2
            off = up * rate * (off + (root if kind == "rbf" else each) + 4.0 * last * far)
            value = np.exp(-rate * far)
            most = up * value * (2.0 * off + 0.16) + tiny if off < 0.5 else np.inf
            seen.add(off < 0.5)
        else:
            value, most = x @ z, 0.015 * np.linalg.norm(x) * np.linalg.norm(z) + d * tiny
            if kind == "poly":
                base = rate * value + 1.0
                most = up * (rate * most + 2.0 * last * (abs(rate * value) + abs(base))) + tiny
                value, top = base**3, abs(base) + most
                most = up * 1.012 * (3.0 * top**2 * most + 0.006 * top**3) + tiny
        value += constant
        most = up * (most + 0.04 * (abs(value) + constant))
        assert (float(K[i, j]), float(error[i, j])) == pytest.approx((value, most))
    assert len(seen) != 1


def test_what_a_pair_says_beside_its_products(monkeypatch):
    up, b = 1.25, 0.75
    for name, value in (("UNIT", 0.01), ("TINY", 0.003), ("UP", up), ("UNSURE", np.inf), ("LAST", 0.1)):
        monkeypatch.setattr(products, name, value)
    monkeypatch.setattr(products, "gamma", lambda depth, unit: unit * depth / 10)
    monkeypatch.setattr(products, "values", lambda what, X, Z: (X @ Z.T + 0.25, np.full((len(X), len(Z)), 0.02)))
    told, of, truth = [], products.Kernels.of, drawn(3, KINDS["linear"], 4, b=b)
    monkeypatch.setattr(products.Kernels, "of", lambda *given: told.append(of(*given)) or told[-1])
    (pair,) = truth.check()
    C, forms = truth.C, truth.C * np.array(truth.products, dtype=float)
    growth = 0.01 * (np.count_nonzero(truth.theta) + 2)  # of a sum, and of the sum of the errors
    sizes = growth * np.abs(truth.X @ truth.X.T + 0.25) + 0.02
    error = up * (C * (up * (1.0 + growth) * sizes @ truth.theta + 0.003) + 0.1 * np.abs(forms)) + 0.003
    found = np.concatenate([[part[0] for part in block[0]] for block, _ in told], axis=1)
    np.testing.assert_allclose(found.astype(float), [forms, error])
    off = up**2 * (C * truth.theta * (error + 0.04 * np.abs(forms)) + 0.003).sum()
    square, balance = sum(pair.norm_squared()), float(truth.y @ truth.theta)
    assert pair.norm_squared()[1] == pytest.approx(off) and forms.any()
    assert [float(part[0]) for part in pair.residue] == pytest.approx([balance, up * 0.01 * abs(balance)])
    pair.model.inexact = 0.25  # of the weights: w is that of the dual point but for it
    far = [up * part * (up * square) ** 0.5 for part in (up * 0.25, 0.5 + 0.02 + 0.5 * up * 0.25)]
    assert pair.columns[:2] == pytest.approx((0.5 * far[0] ** 2, far[0])) and pair.away(0.5) == pytest.approx(far[1])


class Full(Problem):
    """All samples at the upper end with a large margin to it: so they are at any smaller C, and w is C times a sum."""

    def __init__(self, seed: int, C: float):
        rng = np.random.default_rng(seed)
        y = np.array([1.0, -1.0, 1.0])
        X = y[:, None] * rng.integers(1, 4, (3, 2)) / 64.0
        super().__init__({"kernel": "linear", "constant": 0.0}, X, y, np.ones(3), C, np.ones(3))


def test_the_optimum_is_in_the_ball_where_it_is_known_exactly():
    """Of samples that are all at the upper end ``w*(C) = C G'1``: the bound is attained, also for C next to C0."""
    for seed in range(20):
        C0 = float(np.random.default_rng(seed).uniform(0.5, 2.0))
        truth = Full(seed, C0)
        assert min(truth.t) > 0 and truth.gap == 0
        (pair,) = truth.check()
        for C in (C0, 0.5 * C0, 0.9 * C0, *(C0 * (1.0 - k * 2.0**-52) for k in range(1, 8)), 1.25 * C0):
            assert min(Full(seed, C).t) > 0
            away = abs(F(C) - F(C0)) / (2 * F(C0))  # times w, from (1 + x)/2 w to x w
            found = pair.radius(C)
            assert F(found) ** 2 >= away**2 * truth.square
            weights = (C / C0 * pair.term) ** 0.5  # they may be products that were rounded: all there is of the sum
            assert weights < 1e-7 * (1.0 + pair.primal[0])
            assert found <= float(away) * float(truth.square) ** 0.5 * (1.0 + 1e-9) + weights + 1e-15


def test_a_row_is_not_proven_at_its_end_where_only_rounding_says_so():
    """One row and two C: the radius at which its claim fails is known, and so is whether the claim holds."""
    what = {"kernel": "linear", "constant": 0.0}
    for k in range(-4, 5):
        # w = C x, and its ball at C has the radius |1 - x|/2 ||w||: the row is at its end while C x^2 < 1.
        for x, C in ((0.5, 4.0 * (1.0 + k * 2.0**-52)), (0.25, 16.0 * (1.0 + k * 2.0**-52)), (0.5, 3.0), (0.5, 5.0)):
            truth = Problem(what, np.array([[x]]), np.ones(1), np.ones(1), C, np.ones(1))
            claims = pack(np.full(1, OWN, np.uint8))
            (pair,) = truth.check(claims=claims, states=pack(np.full(1, HIGH, np.uint8)))
            proven = pair.faults == []
            assert not proven or C * x * x < 1.0, k
            assert proven or C != 3.0


# -- products formed again --------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Let decimal numbers have 12 digits, and all products be formed of them that count."""
    monkeypatch.setattr(products, "DIGITS", 12)
    monkeypatch.setattr(products, "UNSURE", 0.0)
    monkeypatch.setattr(products, "values", rough(products.values))


def rough(values):
    """Return the kernel, off by a lot, as its errors say."""

    def call(*arguments):
        K, error = values(*arguments)
        return K + K.dtype.type(0.25), error + 0.25

    return call


def found_of(monkeypatch, truth: Problem) -> list:
    """Return products of the rows and bounds of their errors behind those that are formed again."""
    seen: list = []
    again = products._exactly

    def spy(what, pair, part, rows, p, e):
        found = again(what, pair, part, rows, p, e)
        seen.extend(zip(p.copy(), e.copy(), strict=True))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(products, "_exactly", spy)
        truth.check()
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_products_formed_again_are_within_their_bounds(kind, few, monkeypatch):
    """Also of a dual point next to which all products vanish: what rounding leaves is not small beside them."""
    tight = 0
    for seed in range(30):
        what = {**KINDS[kind], "constant": 0.25 if seed % 2 else 0.0}
        truth = drawn(seed, what, 3, scale=30.0 if seed % 2 and kind not in ("rbf", "laplacian") else 1.0)
        if seed % 3 == 0:  # two rows next to each other pull in opposite ways
            truth.X[1], truth.y[:2] = truth.X[0] * (1.0 + 1e-9), (1.0, -1.0)
            truth.theta[:] = 0.3, 0.3, 0.0
        truth.theta[:2] = np.clip(truth.theta[:2], 0.125, 0.875)
        truth = Problem(what, truth.X, truth.y, truth.s, truth.C, truth.theta)
        for (p, e), exact in zip(found_of(monkeypatch, truth), truth.products, strict=True):
            assert abs(long_fraction(p) - exact) <= long_fraction(e)
            tight += e < 1e-4
    assert tight > 30


@pytest.mark.parametrize("kind", KINDS)
def test_products_formed_again_have_all_digits_of_the_longest_numbers(kind, monkeypatch):
    monkeypatch.setattr(products, "UNSURE", 0.0)
    monkeypatch.setattr(products, "values", rough(products.values))
    last = float(np.finfo(np.longdouble).eps)
    for seed in range(10):
        truth = drawn(seed, KINDS[kind], 3)
        truth.theta[:] = np.clip(truth.theta, 0.125, 0.875)
        truth = Problem(truth.what, truth.X, truth.y, truth.s, truth.C, truth.theta)
        for (p, e), exact in zip(found_of(monkeypatch, truth), truth.products, strict=True):
            assert abs(long_fraction(p) - exact) <= long_fraction(e)
            assert e <= 4.5 * last * abs(p) + 1e-40


def test_a_product_that_vanishes_is_off_by_what_its_parts_are():
    """Values of 12 digits, whose sum is nothing but their rounding."""
    what = {"kernel": "rbf", "gamma": 0.5, "constant": 0.0}
    x, z = [Decimal("0.3"), Decimal("1.1")], [Decimal("-0.7"), Decimal("0.2")]
    with decimal.localcontext() as context:
        context.prec = 12
        value, size = products._decimal(what, x, z)
        assert products._decimal({**what, "constant": 0.5}, x, z) == (value + Decimal("0.5"), Decimal("1.5"))
        assert products._decimal(what, x, x) == (1, 1)
        poly = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 2.0, "constant": 0.5}
        inner, most = Decimal("0.01"), Decimal("0.43")
        expected = (inner / 2 + 2) ** 2 + Decimal("0.5"), (most / 2 + 2) ** 2 + Decimal("0.5")
        assert products._decimal(poly, x, z) == expected
    assert abs(float(value) - np.exp(-0.5 * (1.0 + 0.81))) < 1e-12 and size == 1


@pytest.mark.parametrize("C", [1.0, 2.0**20])
@pytest.mark.parametrize("seed", range(6))
def test_products_are_formed_again_where_a_claim_needs_them_and_there_alone(seed, C, monkeypatch):
    """With numbers of few digits the gap is proven as if they had many, by the rows that have a share of it."""
    monkeypatch.setattr(products, "LONG", np.float32)
    for name, value in (("LAST", EPS), ("EXP", 16.0 * EPS)):
        monkeypatch.setattr(products, name, value)
    rng, formed = np.random.default_rng(seed), []
    n, what = 12, {"kernel": "linear", "constant": 0.0}
    y = rng.choice([-1.0, 1.0], n)
    X = np.round(512.0 * (y[:, None] * rng.uniform(2.0, 4.0, (n, 1)))) / 512.0
    theta = np.zeros(n)
    theta[:3] = 0.125, 1.0, 0.25  # all others are far beyond their kink, at the lower end
    truth = Problem(what, X / np.sqrt(C), y, np.ones(n), C, theta)
    assert max(truth.t[3:]) < -1
    own = products._decimal
    monkeypatch.setattr(products, "_decimal", lambda *given: formed.append(1) or own(*given))
    (pair,) = truth.check()
    assert len(formed) == 9 and F(pair.gap) >= truth.gap
    assert pair.gap - float(truth.gap) < 8.0 * EPS * float(truth.primal)


@pytest.mark.parametrize("kind", KINDS)
def test_products_formed_again_are_known_to_more_digits_than_the_longest_numbers(kind, monkeypatch):
    """A share of the gap may be less than what rounds a product off, and its row heavy."""
    monkeypatch.setattr(products, "LONG", np.float32)
    for name, value in (("LAST", EPS), ("EXP", 16.0 * EPS), ("UNSURE", 0.0)):
        monkeypatch.setattr(products, name, value)
    for seed in range(20):
        truth = drawn(seed, KINDS[kind], 3, digits=10)
        (pair,) = truth.check()
        assert F(pair.gap) >= truth.gap and abs(F(pair.primal[0]) - truth.primal) <= F(pair.primal[1])
        assert pair.gap <= float(truth.gap) + 2.0**-45 * float(truth.primal)


@pytest.mark.parametrize("way", [1.0, -1.0])  # from 0 up to 2, or from -2 up to 0
def test_products_are_formed_again_whose_errors_count_for_their_rows(way):
    """Rows at the far end, between and at the near end, with errors below and above what each may have."""
    what, Z, C, n = {"kernel": "linear", "constant": 0.0}, np.arange(1.0, 10.0)[:, None], 4.0, 9
    theta = way * np.array([0.5, 0.5, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    exact, small = float(theta @ Z[:, 0]) * Z[:, 0], 2.0**-43 / (C * C * 2.0 * n)
    entry, signs = {"primal": 16.0}, np.ones(n)
    few, many = small * 2.0**-6, small * 2.0**14  # an error may be worth 2^-52 of the primal value, or 2^-34 more
    errors = np.array([few, small, small, many, small, small, many, many, small])
    beyond = np.array([0.0, 0.0, 9.0, 9.0, -9.0, 9.0, -0.25, -0.5 * C * many, 0.5 * C * small])
    ends = (0.0, np.full(n, 2.0)) if way > 0.0 else (np.full(n, -2.0), np.zeros(n))
    kinks = C * exact + way * (0.25 + beyond + C)  # of products that are off
    part = SimpleNamespace(cells=(*ends, 0.0, 0.0), first=0, c=kinks, signs=signs)
    pair = SimpleNamespace(num=C, b=0.25 * way, shares=theta, entry=entry)
    p, e = (exact + way).astype(np.longdouble), errors.astype(np.longdouble)
    products._exactly(what, pair, [part], (Z, Z[theta != 0.0], np.flatnonzero(theta)), p, e)
    formed = np.array([False, True, False, True, False, True, False, True, True])
    np.testing.assert_array_equal(p, np.where(formed, exact, exact + way))
    np.testing.assert_array_equal(e != errors, formed)
