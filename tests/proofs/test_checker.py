"""The checker of box certificates, with units of rounding so large that every term counts, and what is no claim."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.errors import DataError
from screenpath.verify import box
from screenpath.verify.box import Losses, Pair, claims_of, losses, refute, share_of
from screenpath.verify.exact import norm_above
from screenpath.verify.file import AFTER, BEFORE, BETWEEN, HIGH, LOW, NOTHING, OWN

UNIT, TINY, UP, GAMMA = 0.002, 0.003, 1.25, 0.01
N, D, FIRST = 9, 3, 4  # dual variables of the block, features, and dual variables before the block


@pytest.fixture
def coarse(monkeypatch):
    for name, value in (("UNIT", UNIT), ("TINY", TINY), ("UP", UP)):
        monkeypatch.setattr(box, name, value)
    monkeypatch.setattr(box, "gamma", lambda k: GAMMA * k)


def pack(codes):
    """Return codes of two bits, four in a byte."""
    codes = np.concatenate([codes, np.zeros(-len(codes) % 4, dtype=int)]).reshape(-1, 4)
    return (codes << np.array([0, 2, 4, 6])).sum(axis=1).astype(np.uint8)


def problem(seed=0, tails=False):
    """Return a block of sparse rows and their losses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.8)
    X[2] = 0.0
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    block = SimpleNamespace(
        labels=np.zeros(N), first=FIRST, values=values, columns=columns, rows=rows,
        indptr=np.searchsorted(rows, np.arange(N + 1)), tails=1e-3 * values if tails else None,
        bias=-1,
    )  # fmt: skip
    s = rng.uniform(0.5, 2.0, N)
    return rng, X, block, Losses(FIRST, rng.choice([-1.0, 1.0], N), rng.normal(size=N), -0.7 * s, 0.4 * s, np.zeros(N))


def pair_of(rng, states, values=(), C=0.8, claims=None, **more):
    before = np.zeros(FIRST, dtype=int)
    entry = {"step": 5, "C": C, "w": rng.normal(size=D), "between": np.array(values), **more}
    entry["states"] = pack(np.concatenate([before, states]))
    if claims is not None:
        entry["claims"] = pack(np.concatenate([before, claims]))
    return Pair(entry, FIRST + N, D)


STATES = np.array([LOW, HIGH, BETWEEN, LOW, HIGH, BETWEEN, LOW, HIGH, LOW])


def test_dual_variables_are_those_of_the_file_and_inside_their_boxes():
    rng, _, _, part = problem()
    values = 0.5 * part.hi[[2, 5]]
    pair = pair_of(rng, STATES, values)
    expected = np.where(STATES == HIGH, part.hi, part.lo)
    expected[[2, 5]] = values
    np.testing.assert_array_equal(pair.theta(part), expected)
    assert pair.faults == []
    for bad in (part.hi[5] * 1.001, part.lo[5] * 1.001, math.nan):
        pair = pair_of(rng, STATES, [values[0], bad])
        assert np.flatnonzero(np.isnan(pair.theta(part))).tolist() == [5]
        assert pair.faults == [f"row {FIRST + 6}: the dual variable is outside its box"]
    for edge in (part.hi[5], part.lo[5]):
        pair = pair_of(rng, STATES, [values[0], edge])
        assert pair.theta(part)[5] == edge and pair.faults == []
    states = STATES.copy()
    states[3] = 3
    pair = pair_of(rng, states, values)
    assert math.isnan(pair.theta(part)[3]) and pair.faults[0].startswith(f"row {FIRST + 4}")


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
            Pair(entry, FIRST + N, D)
    for width, w in ((0, {"w": np.zeros(D)}), (D, {})):
        with pytest.raises(DataError):
            Pair({"step": 5, "C": 0.8, "states": np.zeros(4, np.uint8), "between": np.zeros(0), **w}, FIRST + N, width)
    assert pair_of(rng, STATES, [0.0, 0.0], after=np.zeros(4, dtype=np.uint8)).claims == 0


def test_losses_of_the_models():
    y = np.array([2.0, -1.0])
    block = SimpleNamespace(labels=y, first=3)
    weights = np.arange(9.0)
    data = {"n_samples": 9}
    (lad,) = losses({"model": "lad"}, block)
    assert (lad.c.tolist(), lad.lo.tolist(), lad.hi.tolist(), lad.first) == ([2.0, -1.0], [-1.0] * 2, [1.0] * 2, 3)
    header = {"model": "svm", "weights": np.array([9.0, 9.0, 9.0, 2.0, 0.0]), "labels": {"+1": "2", "-1": "-1"}}
    (hinge,) = losses(header, block)
    assert (hinge.signs.tolist(), hinge.c.tolist()) == ([1.0, -1.0], [1.0, 1.0])
    assert (hinge.lo.tolist(), hinge.hi.tolist()) == ([0.0, 0.0], [2.0, 0.0])
    (tilted,) = losses({"model": "quantile", "tau": 0.3, "weights": weights}, block)
    np.testing.assert_allclose([tilted.lo, tilted.hi], [[-2.1, -2.8], [0.9, 1.2]])
    up, down = losses({"model": "svr", "epsilon": 0.5, "weights": weights, "data": data}, block)
    assert (up.c.tolist(), up.first, up.signs.tolist()) == ([1.5, -1.5], 3, [1.0, 1.0])
    assert (down.c.tolist(), down.first, down.signs.tolist()) == ([-2.5, 0.5], 12, [-1.0, -1.0])
    assert up.hi.tolist() == [3.0, 4.0] == down.hi.tolist() and up.lo.tolist() == [0.0, 0.0] == down.lo.tolist()
    weights[4] = 0.0
    assert [
        one.lo.tolist() for one in losses({"model": "svr", "epsilon": 0.5, "weights": weights, "data": data}, block)
    ] == [[0.0, 0.0]] * 2
    with pytest.raises(DataError, match="cannot be checked"):
        losses({"model": "x"}, block)


def test_pairs_have_the_lengths_of_the_problem(monkeypatch):
    asked = []
    source, entry = SimpleNamespace(n=5, d=7, passed=lambda indices: []), {"step": 3}
    for model, size in (("svr", 10), ("lad", 5)):
        box.pairs_of(lambda *a: asked.append(a), {"model": model}, [entry], source, 4)
        assert asked.pop() == (entry, size, 4)
    monkeypatch.setattr(box, "pairs_of", lambda *a: asked.append(a[-1]) or {})
    for bias, width in ((0.0, 7), (2.0, 8)):
        assert box.check({"bias": bias}, [], source) == [] and asked.pop() == width


def test_what_is_left_between_w_and_the_sum(coarse):
    rng = np.random.default_rng(1)
    pair = pair_of(rng, STATES, [0.0, 0.0])
    pair.sums.total, pair.sums.rest, pair.sums.error = np.array([0.5, 0.0, -2.0]), np.array([0.1, 0.0, 0.2]), np.ones(3)
    w, C = pair.solution, 0.8
    pair.settle()
    rough, tail = w - C * pair.sums.total, C * pair.sums.rest
    np.testing.assert_allclose(pair.apart, rough - tail, rtol=1e-12)
    error = UP * C * np.ones(3) + np.array([0.0, TINY * C, 0.0]) * 0.0
    error = error + np.where(pair.sums.total == 0.0, 0.0, TINY * C)
    slack = UP * (error + 4.0 * UNIT * (np.abs(rough) + np.abs(tail)))
    np.testing.assert_allclose(pair.slack, slack, rtol=1e-12)
    assert pair.mismatch == pytest.approx(norm_above(np.abs(pair.apart) + slack))
    pair.terms, pair.losses, pair.spread = [0.4, 0.1], [1.0, 2.0], [0.2, 0.3]
    assert pair.term == pytest.approx(UP * C * 0.5 + TINY)
    assert pair.gap == pytest.approx(UP * (0.5 * pair.mismatch**2 + TINY + UP * C * 0.5) + TINY)
    value, error = pair.primal
    assert value == pytest.approx(0.5 * w @ w + C * 3.0)
    assert error == pytest.approx(UP * (C * 0.5 + 8.0 * UNIT * value) + TINY * 3)
    for other in (0.5, 0.8, 2.0):
        x = other / C
        ahead = (1.0 - x) * w
        away = np.abs(ahead + x * pair.apart) + x * slack
        away += 4.0 * UNIT * (np.abs(ahead) + x * (np.abs(w) + np.abs(pair.apart)))
        inner = 0.25 * norm_above(away) ** 2 + x * pair.term
        assert pair.radius(other) == pytest.approx(UP * (math.sqrt(UP * inner + TINY) + 0.5 * x * pair.mismatch))
    exact = pair_of(rng, STATES, [0.0, 0.0])
    exact.solution[:] = 0.0
    exact.settle()
    assert exact.mismatch == exact.gap == 0.0 and exact.primal == (0.0, 0.0)


def test_a_tail_of_the_product_is_not_lost():
    pair = pair_of(np.random.default_rng(2), STATES, [0.0, 0.0], C=1.0 + 2.0**-30)
    pair.sums.total[:] = 1.0 + 2.0**-29
    pair.solution[:] = pair.entry["C"] * pair.sums.total
    pair.settle()
    np.testing.assert_array_equal(pair.apart, np.full(3, -(2.0**-59)))
    np.testing.assert_allclose(pair.slack, 4.0 * 2.0**-53 * 2.0**-59, rtol=1e-9)


def test_products_and_norms(coarse):
    rng, X, block, _ = problem(3)
    w = rng.normal(size=D)
    products, error = box.products_of(block, w)
    np.testing.assert_allclose(products, X @ w, rtol=1e-12, atol=1e-15)
    longest = np.count_nonzero(X, axis=1).max()
    bound = GAMMA * (longest + 4) * (np.abs(X) @ np.abs(w)) + TINY * (longest + np.abs(w).sum())
    np.testing.assert_allclose(error, bound, rtol=1e-12)
    assert not box.products_of(block, np.zeros(D))[1].any()
    size = np.abs(X).max()
    squares = ((X / size) ** 2).sum(axis=1) + TINY * np.count_nonzero(X, axis=1)
    np.testing.assert_allclose(box.norms_of(block), UP * size * np.sqrt(squares) * (1.0 + GAMMA * (longest + 8)))


@pytest.mark.parametrize("tails", [False, True])
@pytest.mark.parametrize("exactly", [False, True])
def test_shares_of_the_gap_and_of_the_losses(tails, exactly, coarse):
    again = set()
    for seed in range(8):
        rng, X, block, part = problem(seed, tails)
        pair = pair_of(rng, STATES, [part.lo[2] * 0.3, part.hi[5]], C=1.3)
        w, theta = pair.solution, pair.theta(part)
        products = X @ w, np.full(N, 0.2)
        share_of(pair, block, part, products, exactly)
        terms, lost, spread, shares = 0.0, 0.0, 0.0, 0
        for i in range(N):
            t, e = part.c[i] - part.signs[i] * products[0][i], 0.2
            e += UNIT * abs(t)
            upper, lower = part.hi[i] - theta[i], theta[i] - part.lo[i]
            open_row = upper * (t + e) > 0.0 or lower * (e - t) > 0.0
            again.add(open_row)
            if exactly and open_row:
                weights = -part.signs[i] * w[X[i] != 0.0]
                p = X[i][X[i] != 0.0] * weights
                e = 0.0  # no product is so small that its rest is lost
                t = part.c[i] + p.sum()
                if tails:
                    t += 1e-3 * p.sum()
                    e += 32.0 * UNIT**2 * np.abs(p).sum() + TINY * np.abs(weights).sum()
                e = UP * (UNIT * abs(t) + (e if p.size else 0.0))
            terms += max(upper * (t + e), lower * (e - t), 0.0)
            shares += upper * (t + e) > 0.0 or lower * (e - t) > 0.0
            lost += max(part.lo[i] * t, part.hi[i] * t)
            steep = part.hi[i] if t > e else -part.lo[i] if t < -e else max(-part.lo[i], part.hi[i])
            spread += steep * (e + 2.0 * UNIT * abs(t))
        assert pair.terms == pytest.approx([UP * terms + TINY * shares])
        assert pair.losses == pytest.approx([lost]) and pair.spread == pytest.approx([UP * spread])
    assert again == {False, True}


def test_the_smallest_radius_at_which_a_claim_fails(coarse):
    rng, X, block, part = problem(6)
    states = np.where(STATES == BETWEEN, HIGH, STATES)
    claims = np.array([OWN, OWN, BEFORE, NOTHING, AFTER, OWN, BEFORE, NOTHING, AFTER])
    later = np.array([NOTHING, BEFORE, OWN, AFTER, NOTHING, NOTHING, NOTHING, BEFORE, OWN])
    norms = rng.uniform(0.5, 2.0, N)
    for after in (None, later):
        more = {} if after is None else {"after": pack(np.concatenate([np.zeros(FIRST, int), after]))}
        pairs = {k: pair_of(rng, states, C=C, claims=claims, **more) for k, C in ((4, 0.5), (5, 0.8), (6, 1.5))}
        products = {k: (part.c * part.signs * rng.uniform(0.0, 3.0, N), rng.uniform(0.0, 0.05, N)) for k in pairs}
        claims_of(pairs, 5, part, products, norms)
        whole = claims if after is None else np.where(claims == NOTHING, after, claims)
        pair = pairs[5]
        assert pair.claims == np.count_nonzero(whole) and pair.faults == []
        for code, k in ((OWN, 5), (BEFORE, 4), (AFTER, 6)):
            radii = {}
            for i in np.flatnonzero(whole == code):
                half = 0.5 * (1.0 + 0.8 / pairs[k].entry["C"])
                p, c = half * part.signs[i] * products[k][0][i], part.c[i]
                margin = p - c if states[i] == LOW else c - p
                margin -= UP * (half * products[k][1][i] + 8.0 * UNIT * (abs(p) + abs(c)))
                radii[FIRST + i] = margin / norms[i] * (1.0 - 8.0 * UNIT) if margin > 0.0 else -1.0
            worst = min(radii, key=radii.get)
            assert pair.allowed[code] == (pytest.approx(radii[worst]), worst)
        kept = dict(pair.allowed)
        claims_of(pairs, 5, part, products, 1e9 * norms)  # a block of rows that allow less, and one that allows more
        assert all(pair.allowed[code] <= kept[code] for code in kept)
        least = dict(pair.allowed)
        claims_of(pairs, 5, part, products, norms)
        assert pair.allowed == least


def test_claims_that_nothing_proves():
    rng, _, _, part = problem(7)
    claims = np.where(np.arange(N) == 3, BEFORE, NOTHING)
    states = np.where(STATES == BETWEEN, HIGH, STATES)
    products = {5: (np.zeros(N), np.zeros(N))}
    pair = pair_of(rng, states, claims=claims)
    claims_of({5: pair, 6: pair}, 5, part, products, np.ones(N))  # there is no step before
    assert pair.faults == [f"row {FIRST + 4}: it is claimed to be fixed, and nothing proves it"] and not pair.allowed
    claims = np.where(np.arange(N) == 2, OWN, NOTHING)
    pair = pair_of(rng, STATES, [0.0, 0.0], claims=claims)  # the claimed row is between the ends
    claims_of({5: pair}, 5, part, products, np.ones(N))
    assert pair.faults == [f"row {FIRST + 3}: it is claimed to be fixed, and nothing proves it"]
    asked = []
    one = SimpleNamespace(allowed={OWN: (2.0, 8), AFTER: (3.0, 1)}, entry={"C": 0.8}, faults=[], radius=lambda C: 2.0)
    two = SimpleNamespace(allowed={}, entry={"C": 1.0}, faults=[], radius=lambda C: asked.append(C) or 2.9)
    refute({5: one, 6: two})
    assert one.faults == ["row 9: it is not proven to be at its end in the optimum"] and asked == [0.8]
    one.allowed, one.faults = {OWN: (math.nan, 8)}, []
    refute({5: one})
    assert one.faults
