"""What a move of ``kernels/screen/move.py`` decides against the set that the gap leaves, by a cone solver."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels.problem.box import UNIT
from screenpath.kernels.problem.sparse import Samples
from screenpath.kernels.screen import move
from tests.sparse_problems import dual_rows

N, D, GAMMA = 12, 3, 0.1


def case(classes, rng, off=0.0, more=GAMMA):
    """Return rows of the dual, numbers of each, and what the kernels make of them, for a reference of no merit."""
    X, y = rng.normal(size=(N, D)), np.arange(N) % classes
    labels = (2 * y - 1 if classes == 2 else y).astype(np.int64)
    blocks = 1 if classes == 2 else classes
    rows, places = dual_rows(X, y, classes)
    weights, scores = rng.uniform(0.2, 3.0, N), rng.normal(size=blocks * N)
    sample = places % N
    margins = labels * scores if classes == 2 else scores[y[sample] * N + sample] - scores[places]
    t, theta, status = 1.0 - margins, np.zeros(blocks * N), np.full(blocks * N, -1, dtype=np.int8)
    status[places] = 0
    theta[places] = np.clip(t / GAMMA, 0.0, 1.0)
    theta[places] += off * (rng.uniform(size=places.size) - theta[places])
    status[places[::5]] = 1
    budget = float(rng.uniform(0.3, 1.0))
    samples = Samples(labels, weights, N, blocks, GAMMA, np.ones(N), 0.0, 1.0)
    pair = move.pair_to_move(scores, samples, theta, status, more, budget, 0.0)
    known = dict(t=t, theta=theta[places], v=weights[sample], left=status[places] == 0, budget=budget, more=more,
                 given=(scores, samples, theta, status), places=places)  # fmt: skip
    return rows, X, known, pair


def most(a, known):
    """Return the largest ``sum v_i a_i x_i`` that the terms of the gap leave, by a cone solver."""
    t, theta, v, left = (known[name] for name in ("t", "theta", "v", "left"))
    best, rho = np.clip(t / GAMMA, 0.0, 1.0), np.maximum(np.maximum(-t, t - GAMMA), 0.0)
    x = cp.Variable(theta.size)
    apart = x + theta - best
    terms = 0.5 * (GAMMA * cp.square(apart) + known["more"] * cp.square(x)) + cp.multiply(rho, cp.abs(apart))
    within = [cp.sum(cp.multiply(v, terms)[left]) <= known["budget"], x[~left] == 0.0]
    within += [(x + theta)[left] >= 0.0, (1.0 - x - theta)[left] >= 0.0]
    return cp.Problem(cp.Maximize((v * a) @ x), within).solve(solver="CLARABEL")


@pytest.mark.covering(1)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("off", "more"), [(0.0, GAMMA), (0.01, GAMMA), (0.0, 0.0), (0.3, 0.0)])
@pytest.mark.parametrize("dense", [False, True])
def test_a_move_bounds_a_column_as_well_as_the_gap_allows(classes, off, more, dense):
    rng = np.random.default_rng(classes)
    for _ in range(2):
        rows, X, known, pair = case(classes, rng, off, more)
        data = np.ascontiguousarray(X.T).ravel()
        stop = np.arange(D + 1) * N
        if not dense:  # a stored value of 0 more in each column: none has as many as there are samples
            data, stop = np.insert(data, stop[1:], 0.0), np.arange(D + 1) * (N + 1)
        indices = np.tile(np.append(np.arange(N), np.arange(0 if dense else 1)), D).astype(np.int32)
        view = data, indices, stop.astype(np.int64)
        for f in range(rows.shape[1]):
            for side in (1.0, -1.0):
                exact = most(side * rows[:, f], known) / N
                assert not move.stays_below(view, f, side, exact - 1e-4 * abs(exact) - 1e-7, 0.0, pair)[0], (f, side)
                enough = exact * 1.01 + 1e-6  # a sum that cannot but fall is not looked for
                assert move.stays_below(view, f, side, enough, 0.0, pair)[0] or exact < 0.0, (f, side, exact)


def test_a_move_is_tried_no_more_than_a_few_times_and_each_counts(monkeypatch):
    rng = np.random.default_rng(5)
    rows, X, known, pair = case(2, rng)
    view = np.ascontiguousarray(X.T).ravel(), np.tile(np.arange(N, dtype=np.int32), D), np.arange(D + 1) * N
    rooms = np.geomspace(1e-3, 10.0, 60)
    found = [move.stays_below(view, 0, 1.0, room, 0.0, pair) for room in rooms]
    decided = [good for good, _ in found]
    assert decided == sorted(decided) and {False, True} == set(decided)  # more room is easier
    assert max(passes for _, passes in found) <= 8 and found[-1] == (True, 1)
    assert move.stays_below(view, 0, 1.0, 0.0, 0.0, pair) == (False, 0)
    tried, rise = [], move.rise
    monkeypatch.setattr(move, "rise", lambda *given: tried.append(1) or rise(*given))
    for data in (view[0], np.full(N * D, np.nan)):
        for room in rooms:
            tried.clear()
            _, passes = move.stays_below.function((data, *view[1:]), 0, 1.0, room, 0.0, pair)
            assert passes == len(tried)


def share(theta, t, curve, low):
    best = np.clip(t / curve, low, 1.0)
    return (best - theta) * t - 0.5 * curve * (best**2 - theta**2)


@pytest.mark.parametrize("more", [0.0, GAMMA])
@pytest.mark.parametrize("low", [0.0, -0.5])
@pytest.mark.parametrize("classes", [2, 3])
def test_what_a_move_may_spend_and_what_a_column_takes_of_it(classes, low, more):
    """Sums over the rows of the dual that have a value in the column, and the part of them that rounding may be."""
    rng, blur = np.random.default_rng(classes), 0.25
    rows, X, known, _ = case(classes, rng, 0.5)
    scores, samples, theta, status = known["given"]
    samples, x, t, curve = samples._replace(low=low), known["theta"], known["t"], GAMMA + more
    v, moved = known["v"] * known["left"], t + more * x
    before, whole = v @ share(x, t, GAMMA, low), v * share(x, moved, curve, low)
    pair = move.pair_to_move(scores, samples, theta, status, more, 0.7, blur)
    np.testing.assert_allclose(pair.shares[known["places"]], whole, rtol=1e-9, atol=1e-12)
    assert pair.budget == pytest.approx(0.7 - (before - whole.sum()) + blur * (before + whole.sum()))
    theta[known["places"]] = np.clip(t / GAMMA, low, 1.0)  # nothing to move away from but what the scores may be off by
    least = move.pair_to_move(scores, samples, theta.copy(), status, 0.0, 0.0, 0.0).budget
    assert least / UNIT == pytest.approx(16.0 * (1.0 - low) * np.sqrt(v.sum() * (v @ np.square(t))), rel=1e-2)
    theta[known["places"]], X[:, 2:] = x, X[:, 2:] * (rng.random((N, D - 2)) < 0.6)
    rows, stored = dual_rows(X, np.arange(N) % classes, classes)[0], sp.csc_array(X)
    view = stored.data, stored.indices.astype(np.int32), stored.indptr.astype(np.int64)
    for f, eta, mean in itertools.product(range(rows.shape[1]), (-0.7, 0.3), (0.0, 0.4)):
        g = rows[:, f].copy()
        if f < 2 and classes == 2:  # full columns
            g += mean * (2.0 * (np.arange(N) % 2) - 1.0)
        elif mean:
            continue
        after, held = v * share(x, moved + eta * g, curve, low), rows[:, f] != 0.0
        found, slope = move.rise(view, f, eta, mean, pair)
        assert found == pytest.approx((after - whole)[held].sum() + blur * (after + whole)[held].sum())
        assert slope == pytest.approx((v * (np.clip((moved + eta * g) / curve, low, 1.0) - x)) @ g)


def test_features_are_zeroed_that_stay_below_on_the_sides_they_may_leave():
    """Few of them first, and the others where enough of these were zeroed."""
    rng, d = np.random.default_rng(6), 75
    pair = case(3, rng)[3]._replace(budget=0.2)
    X = rng.normal(size=(N, d // 3)) * ((rng.random((N, d // 3)) < 0.7) | (np.arange(d // 3) % 3 == 0))
    stored = sp.csc_array(X)
    view = stored.data, stored.indices.astype(np.int32), stored.indptr.astype(np.int64)
    full = np.tile(np.all(X, axis=0), 3)
    u, limits, signs = rng.normal(size=d), rng.uniform(0.2, 1.5, d), rng.integers(-1, 2, d).astype(np.int8)
    keep, means, sigma, gone, passes = np.ones(d, dtype=np.int8), 0.5 * rng.normal(size=d), 0.7, [], []
    keep[::5] = 0
    for j in range(d):
        mean, taken, below = means[j] if full[j] else 0.0, 0, True
        for side in (side for side in (1.0, -1.0) if signs[j] in (0, side)):
            if below:
                room = limits[j] - side * (u[j] + mean * sigma)
                below, more = move.stays_below(view, j, side, room, mean, pair)
                taken += more
        gone.append(below)
        passes.append(taken)
    first = (np.arange(d) % 2 == 0) & (keep == 1)
    part = np.mean(np.array(gone)[first])
    assert 0.2 < part < 0.8 and full.any() and not full.all()
    for worth, tried in ((part - 0.01, keep == 1), (part, keep == 1), (part + 0.01, first)):
        mine, zeroed = keep.copy(), np.array(gone) & tried
        found = move.decide_moved(view, u, limits, signs, pair, means, sigma, worth, mine)
        assert found == (zeroed.sum(), (np.array(passes) * np.tile(np.diff(view[2]), 3))[tried].sum())
        np.testing.assert_array_equal(mine, keep * ~zeroed)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_multiple_of_weights_is_the_best(classes):
    rng = np.random.default_rng(3)
    rows, X, known, _ = case(classes, rng)
    blocks = 1 if classes == 2 else classes
    labels = (2 * (np.arange(N) % 2) - 1 if classes == 2 else np.arange(N) % classes).astype(np.int64)
    w = 0.2 * np.abs(rng.normal(size=blocks * D)) * np.sign(rows.sum(axis=0))
    scores, status = (w.reshape(blocks, D) @ X.T).ravel(), np.zeros(blocks * N, dtype=np.int8)
    status[known["places"]] = fixed = rng.choice([-1, 0, 0, 0, 1], rows.shape[0])
    samples = Samples(labels, np.ones(N), N, blocks, GAMMA, np.ones(N), 0.0, 1.0)
    margins, square, size = rows @ w, 0.2 * w @ w, 0.01 * np.abs(w).sum()

    def value(kappa):
        t = 1.0 - kappa * margins
        best = np.where(fixed == 0, np.clip(t / GAMMA, 0.0, 1.0), fixed > 0)
        return (best * (t - 0.5 * GAMMA * best)).sum() / N + 0.5 * kappa**2 * square + kappa * size

    tried = np.linspace(1.0, 9.0, 16001)
    found = move.stretch(scores, samples, status, square, size, 9.0)
    assert 1.1 < found < 8.9
    assert found == pytest.approx(tried[np.argmin([value(kappa) for kappa in tried])], abs=0.02)
    assert move.stretch(scores, samples, status, 1e6, size, 9.0) == 1.0
