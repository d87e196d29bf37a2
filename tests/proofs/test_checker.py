"""The checker of certificates: shares and their rounding, what is no claim, and what the file may say."""

import math
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.errors import DataError
from screenpath.verify import certificate, products
from screenpath.verify.certificate import Pair
from screenpath.verify.exact import Cells, bound, share
from screenpath.verify.file import AFTER, BEFORE, BETWEEN, HIGH, LOW, NOTHING, OWN
from screenpath.verify.model import Model, Part

UNIT, TINY, UP, GAMMA = 0.002, 0.003, 1.25, 0.01
N, D, FIRST = 9, 3, 4  # dual variables of the block, features, and dual variables before the block


@pytest.fixture
def coarse(monkeypatch):
    for module in (certificate, products):
        for name, value in (("UNIT", UNIT), ("TINY", TINY), ("UP", UP)):
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(products, "gamma", lambda k, unit=None: GAMMA * k)


def pack(codes):
    """Return codes of two bits, four in a byte."""
    codes = np.concatenate([codes, np.zeros(-len(codes) % 4, dtype=int)]).reshape(-1, 4)
    return (codes << np.array([0, 2, 4, 6])).sum(axis=1).astype(np.uint8)


def problem(seed=0):
    """Return a block of sparse rows and their dual variables."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.8)
    X[2] = 0.0
    rows, columns = np.nonzero(X)
    block = SimpleNamespace(
        labels=np.zeros(N), first=FIRST, values=X[rows, columns], columns=columns, rows=rows,
        indptr=np.searchsorted(rows, np.arange(N + 1)), tails=None, bias=-1, unknown=None,
    )  # fmt: skip
    s, own = rng.uniform(0.5, 2.0, N), rng.integers(0, 2, N)
    cells, ones = Cells(-0.7 * s, 0.4 * s, 0.0), np.ones(N)
    part = Part(FIRST, own, 1 - own, rng.normal(size=N), np.zeros(N), ones, ones > 0.0, cells)
    return rng, X, block, part


def model_of(name="svm", n=FIRST + N, **more):
    header = {"model": name, "labels": {"+1": 2.0, "-1": -1.0}, "bias": 0.0, **more}
    return Model(header, SimpleNamespace(n=n, d=D))


def pair_of(rng, states, values=(), C=0.8, claims=None, **more):
    before = np.zeros(FIRST, dtype=int)
    entry = {"step": 5, "C": C, "w": rng.normal(size=D), "between": np.array(values), **more}
    entry["states"] = pack(np.concatenate([before, states]))
    if claims is not None:
        entry["claims"] = pack(np.concatenate([before, claims]))
    return Pair(model_of(), entry)


STATES = np.array([LOW, HIGH, BETWEEN, LOW, HIGH, BETWEEN, LOW, HIGH, LOW])


def exact_share(lo, hi, curve, kink, x, v):
    """Return ``psi(x) + psi*(v) - x v`` of fractions: ``psi*`` is taken at an end, at 0, or where the slope is 0."""

    def psi(z):
        return curve * z * z / 2 + kink * abs(z)

    points = [z for z in (lo, hi) if z is not None] + [F(0)]
    if curve:
        points += [max((v - kink) / curve, F(0)), min((v + kink) / curve, F(0))]
    points = [z for z in points if (lo is None or z >= lo) and (hi is None or z <= hi)]
    return psi(x) + max(v * z - psi(z) for z in points) - x * v


def drawn(rng):
    """Return numbers of a share, often at an end, at a kink, or next to the best value; None for an end at infinity."""
    endless = rng.random() < 0.3
    curve = float(rng.choice([0.0, 1.0, 10.0 ** rng.uniform(-9.0, 9.0)])) if not endless else 10.0 ** rng.uniform(-9, 9)
    kink = float(rng.choice([0.0, 10.0 ** rng.uniform(-9.0, 9.0)]))
    lo, hi = -rng.random() * (rng.random() < 0.6), rng.random() * 10.0 ** rng.uniform(-3.0, 3.0)
    v = float(rng.normal() * 10.0 ** rng.uniform(-9.0, 9.0)) if rng.random() < 0.8 else float(rng.choice([-kink, kink]))
    best = np.sign(v) * max(abs(v) - kink, 0.0) / (curve or 1.0) * (1.0 + rng.choice([0.0, 1e-15, 1e-9, 0.3]))
    x = float(rng.choice([lo, hi, 0.0, best]))
    return endless, curve, kink, lo, hi, x if endless else min(max(x, lo), hi), v


def test_shares_are_those_of_fractions_and_nothing_cancels():
    """The bound is attained to a few units of what the slope is off by, near the best value and far from it."""
    rng = np.random.default_rng(0)
    for _ in range(4000):
        endless, curve, kink, lo, hi, x, v = drawn(rng)
        cells = Cells(-math.inf, math.inf, curve, kink) if endless else Cells(np.array(lo), np.array(hi), curve, kink)
        e = 4.0 * 2.0**-53 * (abs(v) + curve * abs(x))  # of the slope
        true = exact_share(*(None if endless else F(end) for end in (lo, hi)), F(curve), F(kink), F(x), F(v))
        most, step = bound(cells, np.array(x), (v - e, 0.0), (v + e, 0.0))
        assert F(float(most)) >= true
        assert float(most) <= float(true) * (1.0 + 1e-14) + 2.5 * e * (float(step) + abs(x)) + 1e-300


def test_without_what_the_slope_is_off_by_shares_are_too_small():
    rng, small = np.random.default_rng(1), 0
    for _ in range(5000):
        endless, curve, kink, lo, hi, x, v = drawn(rng)
        if not endless:
            continue
        true = exact_share(None, None, F(curve), F(kink), F(x), F(v))
        small += F(float(share(Cells(-math.inf, math.inf, curve, kink), np.array(x), v)[0]) * (1.0 + 1e-15)) < true
    assert small > 20


def test_a_product_in_two_parts_loses_nothing_next_to_the_best_value():
    x, rest = 1.0 / 3.0, 2.0**-60
    found, step = share(Cells(-math.inf, math.inf, 1.0), np.array(x), np.array(x), rest)
    assert found == 0.5 * rest * rest and step == rest
    away = x + 2.0**-50
    for more in (rest, -rest):
        assert share(Cells(-math.inf, math.inf, 1.0), np.array(x), np.array(away), more)[1] == 2.0**-50 + more


def test_bounds_count_what_underflows_and_no_more():
    """Of steps that are none nothing can underflow: a gap of 0 stays 0."""
    end, tiny, endless = Cells(np.array(0.0), np.array(1.0), 0.0), 2.0**-1000, Cells(-math.inf, math.inf, 1.0)
    for cells, x, v, counts in (
        (end, tiny, -tiny, True), (end, 0.0, -1.0, False), (end, 1.0, 1.0, False), (end, 0.5, 0.0, False),
        (endless, 0.0, tiny, True), (endless, 0.5, 0.5, False), (endless._replace(kink=tiny), tiny, 0.0, True),
        (endless._replace(kink=1.0), 0.0, 0.5, False),
    ):  # fmt: skip
        most, step = bound(cells, np.array(x), (v, 0.0), (v, 0.0))
        ends = (None if cells.curve else F(float(limit)) for limit in (cells.lo, cells.hi))
        assert F(float(most)) >= exact_share(*ends, F(cells.curve), F(cells.kink), F(x), F(v))
        assert (most > 0.0) == counts and step >= share(cells, np.array(x), v)[1]


def test_steps_are_no_less_than_they_are():
    rng = np.random.default_rng(3)
    for _ in range(500):
        curve, x, v = (float(value) for value in rng.uniform(0.1, 1.0, 3))
        step = bound(Cells(-math.inf, math.inf, curve), np.array(x), (v, 0.0), (v, 0.0))[1]
        slope = v - curve * x
        assert F(float(step)) >= F(abs(slope)) / F(curve) and step <= abs(slope) / curve * (1.0 + 64.0 * 2.0**-53)


def test_a_barrier_is_left_to_the_caller():
    """Without a quadratic part the share is ``|x| (kink - sign(x) v)``, less than 0 beyond the kink."""
    cells = Cells(-math.inf, math.inf, 0.0, 0.5)
    assert cells.barrier and not Cells(0.0, 1.0, 0.0).barrier and not Cells(0.0, math.inf, 1.0).barrier
    found, step = share(cells, np.array([2.0, -2.0, 0.0]), np.array([0.75, 0.75, 9.0]))
    assert found.tolist() == [-0.5, 2.5, 0.0] and not step.any()


def test_dual_variables_are_those_of_the_file_and_inside_their_boxes():
    rng, _, _, part = problem()
    lo, hi = part.cells.lo, part.cells.hi
    values = 0.5 * hi[[2, 5]]
    pair = pair_of(rng, STATES, values)
    expected = np.where(STATES == HIGH, hi, lo)
    expected[[2, 5]] = values
    np.testing.assert_array_equal(pair.theta(part), expected)
    assert pair.faults == []
    for bad in (hi[5] * 1.001, lo[5] * 1.001, math.nan):
        pair = pair_of(rng, STATES, [values[0], bad])
        assert np.flatnonzero(np.isnan(pair.theta(part))).tolist() == [5]
        assert pair.faults == [f"row {FIRST + 6}: the dual variable is outside its box"]
    for edge in (hi[5], lo[5]):
        pair = pair_of(rng, STATES, [values[0], edge])
        assert pair.theta(part)[5] == edge and pair.faults == []
    states = STATES.copy()
    states[3] = 3
    pair = pair_of(rng, states, values)
    assert math.isnan(pair.theta(part)[3]) and pair.faults[0].startswith(f"row {FIRST + 4}")
    absent = part._replace(there=np.arange(N) != 7)  # a class has no dual variable of its own rows
    pair = pair_of(rng, STATES, values)
    assert math.isnan(pair.theta(absent)[7]) and pair.faults[0].startswith(f"row {FIRST + 8}")
    endless = part._replace(cells=Cells(0.0, math.inf, 1.0))
    pair = pair_of(rng, STATES, [7.0, math.inf])
    theta = pair.theta(endless)
    assert theta[2] == 7.0 and theta[1] == 1.0 and pair.faults[0].startswith(f"row {FIRST + 6}")


def test_numbers_that_do_not_fit_the_data_are_refused():
    rng = np.random.default_rng(0)
    for change in (
        {"w": np.zeros(D + 1)}, {"w": np.array([0.0, math.nan, 1.0])}, {"C": 0.0}, {"C": -1.0}, {"C": math.inf},
        {"C": 1}, {"between": np.zeros(1)}, {"between": np.zeros(3)}, {"after": np.zeros(9, dtype=np.uint8)},
        {"claims": np.zeros(4, dtype=np.int64)}, {"claims": np.zeros(3, dtype=np.uint8)},
    ):  # fmt: skip
        entry = {"step": 5, "C": 0.8, "w": np.zeros(D), "states": pack(np.concatenate([np.zeros(FIRST, int), STATES])),
                 "between": np.zeros(2), **change}  # fmt: skip
        with pytest.raises(DataError, match="step 5"):
            Pair(model_of(), entry)
    entry = {"step": 5, "C": 0.8, "states": np.zeros(4, np.uint8), "between": np.zeros(0)}
    for kernel, w in (({"kernel": "rbf"}, {"w": np.zeros(D)}), ({}, {})):
        with pytest.raises((DataError, KeyError)):
            Pair(model_of(kernel=kernel), {**entry, **w})
    assert pair_of(rng, STATES, [0.0, 0.0], after=np.zeros(4, dtype=np.uint8)).claims == 0


def parts_of(name, y, first=3, **more):
    model = model_of(name, n=9, **more)
    return model, model.parts(SimpleNamespace(labels=y, first=first))


def test_losses_of_the_models():
    y = np.array([2.0, -1.0])
    weights = np.array([9.0, 9.0, 9.0, 2.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    _, (lad,) = parts_of("lad", y)
    assert (lad.c.tolist(), lad.cells.lo.tolist(), lad.cells.hi.tolist(), lad.first) == (
        y.tolist(), [-1.0] * 2, [1.0] * 2, 3,
    )  # fmt: skip
    _, (hinge,) = parts_of("svm", y, weights=weights)
    assert (hinge.signs.tolist(), hinge.c.tolist(), hinge.v.tolist()) == ([1.0, -1.0], [1.0, 1.0], [1.0, 1.0])
    assert (hinge.cells.lo.tolist(), hinge.cells.hi.tolist()) == ([0.0, 0.0], [2.0, 0.0])
    _, (tilted,) = parts_of("quantile", y, tau=0.3, weights=weights)
    np.testing.assert_allclose([tilted.cells.lo, tilted.cells.hi], [[-1.4, 0.0], [0.6, 0.0]])
    model, (up, down) = parts_of("svr", y, epsilon=0.5, weights=weights)
    assert (up.c.tolist(), up.first, up.signs.tolist()) == ([1.5, -1.5], 3, [1.0, 1.0])
    assert (down.c.tolist(), down.first, down.signs.tolist()) == ([-2.5, 0.5], 12, [-1.0, -1.0])
    assert up.cells.hi.tolist() == [2.0, 0.0] == down.cells.hi.tolist() and model.penalty({"C": 3.0}) == (3.0, 1.0, 0.0)
    options = {"smoothing": 0.4, "weights": weights}
    model, (smooth,) = parts_of("sparse-svm", y, **options)
    assert smooth.cells == Cells(0.0, 1.0, 0.4) and smooth.v.tolist() == [2.0, 0.0]
    assert model.samples == weights.sum() and model.penalty({"alpha": 2.0, "beta": 3.0}) == (1.0, 2.0, 3.0)
    assert parts_of("sparse-svm", y, loss="squared-hinge", **options)[1][0].cells == Cells(0.0, math.inf, 1.0)
    model, (one,) = parts_of("l1svm", y, bias=1.0)
    assert one.cells == Cells(0.0, math.inf, 1.0) and model.penalty({"lambda": 3.0}) == (1.0, 0.0, 3.0) and model.free
    labels = {"classes": [-1.0, 1.0, 2.0]}
    model, several = parts_of("sparse-svm", y, smoothing=0.4, labels=labels)
    assert [part.first for part in several] == [3, 12, 21] and model.nodes == 3
    assert [part.v.tolist() for part in several] == [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    assert [(part.own.tolist(), part.other.tolist()) for part in several] == [([2, 0], [k, k]) for k in range(3)]
    with pytest.raises(DataError, match="cannot be checked"):
        model_of("x")
    for more in ({"labels": {"classes": [1.0, 2.0]}, "smoothing": 0.4}, {"labels": None, "smoothing": 0.4},
                 {"smoothing": 1.0}, {"smoothing": 0.4, "loss": "logistic"}, {"smoothing": 0.4, "intercept": "free"},
                 {"smoothing": 0.0, "intercept": "free", "bias": 1.0, "labels": labels},
                 {"smoothing": 0.4, "weights": np.zeros(3)}):  # fmt: skip
        with pytest.raises(DataError):
            model_of("sparse-svm", **more)


def test_pairs_have_the_lengths_of_the_problem():
    for name, size in (("svr", 10), ("lad", 5)):
        model = model_of(name, n=5, epsilon=0.5)
        good = {"step": 0, "C": 1.0, "w": np.zeros(D), "states": pack(np.zeros(size, int)), "between": np.zeros(0)}
        assert Pair(model, good).faults == []
        with pytest.raises(DataError):
            Pair(model, {**good, "states": pack(np.zeros(size + 4, int))})
    for more, width, penalised in (
        ({}, D, D), ({"bias": 2.0}, D + 1, D + 1), ({"bias": 1.0, "intercept": "free"}, D + 1, D),
    ):  # fmt: skip
        assert (model_of(**more).width, model_of(**more).penalised) == (width, penalised)


def test_a_tail_of_the_product_is_not_lost():
    """Of C times a sum: what two doubles hold of it, and no more than a few units of that are unknown."""
    pair = pair_of(np.random.default_rng(2), STATES, [0.0, 0.0], C=1.0 + 2.0**-30)
    pair.sums[0].total[:] = 1.0 + 2.0**-29
    pair.w[:] = pair.num * pair.sums[0].total
    own, step, apart, slack = pair.columns
    np.testing.assert_array_equal(apart, np.full(3, -(2.0**-59)))
    np.testing.assert_allclose(slack, 8.0 * 2.0**-53 * 2.0**-59, rtol=0.1)
    assert step == pytest.approx(3.0**0.5 * 2.0**-59) and own == pytest.approx(1.5 * 2.0**-118)


def test_products_and_norms(coarse):
    rng, X, block, _ = problem(3)
    w = rng.normal(size=D)
    found, error = products.products_of(block, w)
    np.testing.assert_allclose(found, X @ w, rtol=1e-12, atol=1e-15)
    longest = np.count_nonzero(X, axis=1).max()
    most = GAMMA * (longest + 4) * (np.abs(X) @ np.abs(w)) + TINY * (longest + np.abs(w).sum())
    np.testing.assert_allclose(error, most, rtol=1e-12)
    assert not products.products_of(block, np.zeros(D))[1].any()
    size = np.abs(X).max()
    squares = ((X / size) ** 2).sum(axis=1) + TINY * np.count_nonzero(X, axis=1)
    np.testing.assert_allclose(products.norms_of(block), UP * size * np.sqrt(squares) * (1.0 + GAMMA * (longest + 8)))
    block.unknown = np.array([0.0, 0.5, 0.25])
    off = products.products_of(block, w)[1]
    np.testing.assert_allclose(off - error, block.unknown @ np.abs(w), rtol=1e-9)
    assert np.all(
        products.norms_of(block)[[0, 1]] > np.sqrt(((np.abs(X) + block.unknown * (X != 0)) ** 2).sum(axis=1))[[0, 1]]
    )


def test_the_smallest_radius_at_which_a_claim_fails(coarse):
    rng, X, block, part = problem(6)
    states = np.where(STATES == BETWEEN, HIGH, STATES)
    claims = np.array([OWN, OWN, BEFORE, NOTHING, AFTER, OWN, BEFORE, NOTHING, AFTER])
    later = np.array([NOTHING, BEFORE, OWN, AFTER, NOTHING, NOTHING, NOTHING, BEFORE, OWN])
    norms = rng.uniform(0.5, 2.0, N)
    for after in (None, later):
        more = {} if after is None else {"after": pack(np.concatenate([np.zeros(FIRST, int), after]))}
        pairs = {k: pair_of(rng, states, C=C, claims=claims, **more) for k, C in ((4, 0.5), (5, 0.8), (6, 1.5))}
        found = {
            k: ((part.c * part.signs * rng.uniform(0.0, 3.0, N))[None], rng.uniform(0.0, 0.05, (1, N))) for k in pairs
        }
        pairs[5].keep(pairs, 5, part, found, norms)
        whole = claims if after is None else np.where(claims == NOTHING, after, claims)
        pair = pairs[5]
        assert pair.claims == np.count_nonzero(whole) and pair.faults == []
        for code, k in ((OWN, 5), (BEFORE, 4), (AFTER, 6)):
            radii = {}
            for i in np.flatnonzero(whole == code):
                half = 0.5 * (1.0 + 0.8 / pairs[k].entry["C"])
                p, c = half * part.signs[i] * found[k][0][0, i], part.c[i]
                margin = p - c if states[i] == LOW else c - p
                margin -= UP * (half * found[k][1][0, i] + 8.0 * UNIT * (abs(p) + abs(c)))
                radii[FIRST + i] = margin / norms[i] * (1.0 - 8.0 * UNIT) if margin > 0.0 else -1.0
            worst = min(radii, key=radii.get)
            assert pair.allowed[code] == (pytest.approx(radii[worst]), worst)
        kept = dict(pair.allowed)
        pairs[5].keep(pairs, 5, part, found, 1e9 * norms)  # a block of rows that allow less, and one that allows more
        assert all(pair.allowed[code] <= kept[code] for code in kept)
        least = dict(pair.allowed)
        pairs[5].keep(pairs, 5, part, found, norms)
        assert pair.allowed == least


def test_claims_that_nothing_proves():
    rng, _, _, part = problem(7)
    claims = np.where(np.arange(N) == 3, BEFORE, NOTHING)
    states = np.where(STATES == BETWEEN, HIGH, STATES)
    found = {5: (np.zeros((1, N)), np.zeros((1, N)))}
    pair = pair_of(rng, states, claims=claims)
    pair.keep({5: pair, 6: pair}, 5, part, found, np.ones(N))  # there is no step before
    assert pair.faults == [f"row {FIRST + 4}: it is claimed to be fixed, and nothing proves it"] and not pair.allowed
    claims = np.where(np.arange(N) == 2, OWN, NOTHING)
    pair = pair_of(rng, STATES, [0.0, 0.0], claims=claims)  # the claimed row is between the ends
    pair.keep({5: pair}, 5, part, found, np.ones(N))
    assert pair.faults == [f"row {FIRST + 3}: it is claimed to be fixed, and nothing proves it"]
    pair = pair_of(rng, states, claims=np.where(np.arange(N) == 2, OWN, NOTHING))
    pair.model.free = True
    pair.keep({5: pair}, 5, part, found, np.ones(N))
    assert pair.faults == [f"row {FIRST + 3}: it is claimed to be fixed, and nothing proves it"]


def test_claims_that_the_balls_do_not_prove(monkeypatch):
    """A radius that is not known to be below the one that is allowed proves nothing."""
    header = {"model": "lad", "labels": None, "bias": 0.0}
    entry = {"C": 0.8, "w": np.zeros(D), "states": pack(np.zeros(9, int)), "between": np.zeros(0)}
    source = SimpleNamespace(n=9, d=D, passed=lambda indices: [])
    for allowed, radius, proven in (
        (2.0, 1.9, True), (2.0, 2.0, False), (math.nan, 1.0, False), (2.0, math.nan, False),
    ):  # fmt: skip
        asked, keep = [], {AFTER: (allowed, 8)}
        monkeypatch.setattr(Pair, "radius", lambda self, C, a=asked, r=radius: a.append((self.entry["C"], C)) or r)
        monkeypatch.setattr(
            Pair, "allowed", property(lambda self, k=keep: k if self.entry["step"] == 5 else {}, lambda *_: 0), False
        )
        one, two = products.check(header, [{**entry, "step": 5}, {**entry, "step": 6, "C": 1.0}], source)
        assert asked == [(1.0, 0.8)] and two.faults == []
        assert one.faults == [] if proven else one.faults == ["row 9: it is not proven to be at its end in the optimum"]
