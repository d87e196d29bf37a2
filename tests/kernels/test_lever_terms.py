"""What levers are made of and what they show, against brute force and against numbers off by all that is allowed."""

from fractions import Fraction as F

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq

from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.screen import lever as kernels
from tests.kernels.test_lever import width

SIDES = pytest.mark.parametrize("side", [1.0, -1.0])


def test_room_is_that_of_the_box_times_C():
    rng = np.random.default_rng(5)
    signs, theta, C = rng.choice([-1, 1], 50).astype(np.int8), rng.uniform(-0.5, 0.5, 50), 2.0
    lo, hi = -rng.uniform(0.6, 2.0, 50), rng.uniform(0.6, 2.0, 50)
    zero, (tau, slack, down, up) = np.zeros(50), np.empty((4, 50))
    own, pair = kernels.Rows(zero, signs, zero, lo, hi), kernels.Pair(zero, 0.5, theta, C, 0.125, 3.0, 0.01)
    kernels.seen_from(own, pair, tau, slack, down, up)
    np.testing.assert_allclose(down + 0.125, C * (signs * theta - lo))
    np.testing.assert_allclose(up + 0.125, C * (hi - signs * theta))


def test_room_of_a_row_next_to_its_bound_is_not_made_by_rounding():
    """A bit below the bound, the difference of two rounded products is up to twice the room, or where there is none."""
    rng = np.random.default_rng(6)
    n, C = 400, 1.0 / 3.0
    hi, ones, zero = rng.uniform(0.5, 2.0, n), np.ones(n, dtype=np.int8), np.zeros(n)
    theta = np.nextafter(hi, 0.0)
    tau, slack, down, up = np.empty((4, n))
    kernels.seen_from(kernels.Rows(zero, ones, zero, -hi, hi), kernels.Pair(zero, 1.0, theta, C, 0.0, 1.0, 0.0), tau,
                      slack, down, up)  # fmt: skip
    exact = [F(C) * (F(h) - F(t)) for h, t in zip(hi.tolist(), theta.tolist(), strict=True)]
    limit = 1 + F(2) ** -52
    assert all(F(u) <= limit * e for u, e in zip(up.tolist(), exact, strict=True))
    apart = C * hi - C * theta
    assert any(F(u) > limit * e for u, e in zip(apart.tolist(), exact, strict=True))


@pytest.mark.parametrize("n", [40, 300])
def test_the_foremost_rows_are_those_of_the_largest_numbers_with_room(n):
    rng = np.random.default_rng(n)
    tau, room = rng.normal(size=n), rng.uniform(-0.5, 1.0, n)
    room[:5], tau[:5] = 0.0, 9.0
    expected = [i for i in np.argsort(-tau) if room[i] > 0.0][: kernels.CHOSEN]
    assert kernels.foremost(tau, room).tolist() == expected


def test_a_longer_lever_that_carries_no_more_says_nothing():
    tau, room, slack = np.arange(4.0)[::-1].copy(), np.full(4, 0.25), np.zeros(4)
    sizes, sharing = np.array([0.5, 0.52, 4.0, 8.0, 0.5, 4.0]), np.array([1, 1, 1, 1, 4, 4])
    offsets, weights = np.empty((6, 2)), np.empty((6, 4))
    kernels.lever_weights(tau, slack, room, sizes, sharing, 1.0, 0.1, offsets, weights)
    np.testing.assert_allclose(offsets[:, 1], 0.9 * np.array([0.5, 0.0, 1.0, 0.0, 0.5, 1.0]))
    np.testing.assert_allclose(weights.sum(axis=1), [1.0, 0.0, 1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_centre_is_at_least_as_far_from_the_middle_as_both_may_be_off(sparse):
    rng = np.random.default_rng(1)
    X, mean, rounding = rng.normal(size=(9, 3)), 2.0 + rng.normal(size=3), 0.05
    where, weights = np.array([7, 2, 4]), np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    few = sp.csr_array(X)
    centers, (lengths, away) = np.empty((2, 3)), np.empty((2, 2))
    rows = matrix_of((few.data, few.indices, few.indptr) if sparse else X)
    kernels.lever_centers(rows, where, weights, mean, rounding, centers, lengths, away)
    for k in range(2):
        true = weights[k] @ X[where]
        np.testing.assert_allclose(centers[k], true)
        assert lengths[k] == pytest.approx(np.linalg.norm(true))
        apart = true - mean
        far = apart + rounding * (np.linalg.norm(true) + np.linalg.norm(mean)) * apart / np.linalg.norm(apart)
        assert away[k] == pytest.approx(np.linalg.norm(far))


@pytest.mark.parametrize("far", [False, True])
def test_one_lever_of_either_side_is_made_of_the_foremost_rows_with_room(far):
    """Within what each can carry, and its offset is what slacks leave of it at worst."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, C, off, rounding, radius, typical, extent = 300, 1.7, 0.05, 0.02, 0.5, 100.0 if far else 0.8, 3.0
        signs, theta = rng.choice([-1, 1], n).astype(np.int8), rng.uniform(-0.7, 0.7, n)
        lo, hi = -rng.uniform(0.7, 2.0, n), rng.uniform(0.7, 1.5, n)
        little = rng.uniform(0.0, 0.08, 100)  # room for hardly more than what the sum is off by
        theta[:100], theta[100:200] = signs[:100] * (hi[:100] - little), signs[100:200] * (lo[100:200] + little)
        if seed % 3:  # room on one side alone
            theta = signs * (lo if seed % 3 == 1 else hi)
        kinks, products, norms = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.0, 2.0, n)
        rows, weights = np.zeros((2, kernels.FEWER), dtype=np.int64), np.zeros((2, kernels.FEWER))
        offsets, tau, largest = np.empty((2, 2)), np.empty(n), 0.05 if seed % 2 else 2.0
        own = kernels.Rows(kinks, signs, norms, lo, hi)
        pair = kernels.Pair(products, 0.5, theta, C, off, extent, rounding)
        counts = kernels.one_lever_each(own, pair, largest, radius, typical, tau, rows, weights, offsets)
        np.testing.assert_allclose(tau, kinks - 0.5 * signs * products)
        size = kernels.LENGTH * 2.0 * radius / typical
        least = kernels.LITTLE * min(size / kernels.SHARING, C * largest)
        alpha = C * signs * theta
        for h, (side, room) in enumerate(((1.0, C * hi - alpha - off), (-1.0, alpha - C * lo - off))):
            order = [i for i in np.argsort(-side * tau) if room[i] > least][: kernels.FEWER]
            order = [i for i in order if abs(tau[i] - tau[order[0]]) <= kernels.FAR * radius * typical]
            if not order:
                assert counts[h] == 0 and offsets[h, 1] == 0.0
                continue
            m, (offset, kappa) = counts[h], offsets[h]
            assert rows[h, :m].tolist() == order
            used = rows[h, :m][weights[h, :m] > 0.0]
            share = weights[h, : used.size]
            assert share.sum() == pytest.approx(1.0) and np.all(share * kappa <= room[used])
            assert kappa == pytest.approx(np.minimum(room[order], size / kernels.SHARING).sum(), rel=0.03) or (
                kappa == pytest.approx(size * (1.0 - rounding))
            )
            worst = max(rounding * (norms[i] * extent + abs(kinks[i])) for i in used)
            assert side * offset == pytest.approx(side * (share @ tau[used]) - worst)


# -- what is decided of rows ------------------------------------------------------------------------------------------


@SIDES
def test_a_single_lever_decides_what_it_shows_and_nothing_else(side):
    """Whatever stood in the decisions before; the lever of the other side says nothing."""
    undecided = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, radius, kappa = 100, float(rng.uniform(0.1, 2.0)), float(rng.choice([0.05, 0.3, 1.0, 5.0]))
        tau, slack, spread = 8.0 * rng.normal(size=n), rng.uniform(0.0, 0.5, n), rng.uniform(0.0, 3.0, n)
        own = [0.5 * side, kappa]
        offsets = np.array([own, [0.0, 0.0]] if side > 0 else [[0.0, 0.0], own])
        status, unsure = rng.integers(-1, 2, n).astype(np.int8), np.empty(n, dtype=np.int64)
        count = kernels.decide_by_levers(tau, slack, spread, radius, 1, offsets, np.full(2, 0.5), status, unsure)
        room = side * (0.5 * side - tau) - slack
        assert np.array_equal(status, np.where(room > width(spread + 0.5, radius, kappa), -side, 0.0))
        possible = (status == 0) & (room > width(np.maximum(spread - 0.5, 0.0), radius, kappa))
        assert np.array_equal(np.sort(unsure[:count]), np.flatnonzero(possible))
        undecided += count
    assert undecided > 100


@SIDES
def test_known_products_decide_what_the_distance_shows_and_nothing_else(side):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, radius, kappa = 100, float(rng.uniform(0.1, 2.0)), float(rng.choice([0.05, 0.3, 1.0, 5.0]))
        X, center, rounding = rng.normal(size=(n, 2)), rng.normal(size=2), float(rng.choice([0.0, 0.1]))
        tau, slack, off = 8.0 * rng.normal(size=n), rng.uniform(0.0, 0.3, n), float(rng.choice([0.0, 0.05]))
        before = np.where(rng.random(n) < 0.2, side, 0.0).astype(np.int8)
        status, norms = before.copy(), np.linalg.norm(X, axis=1)
        square, own = float(center @ center), (0.5 * side, kappa)
        kernels.decide_by_products((tau, slack), norms, X @ center, square, off, radius, side, own, rounding, status)
        apart = np.sqrt(((X - center) ** 2).sum(axis=1) + 2.0 * off * norms) * (1.0 + rounding)
        shown = side * (0.5 * side - tau) - slack - width(apart, radius, kappa)
        expected = np.where(before != 0, before, np.where(shown > 0.0, -side, 0.0))
        assert np.array_equal(status, expected)


def test_a_distance_of_products_that_cancel_is_not_below_the_true_one():
    rng = np.random.default_rng(2)
    n, center = 1500, 1e4 + rng.normal(size=2)
    X = center + 2e-4 * rng.normal(size=(n, 2)) * rng.uniform(0.0, 1.0, (n, 1))
    gaps = [[F(a) - F(b) for a, b in zip(x, center.tolist(), strict=True)] for x in X.tolist()]
    squares = [a * a + b * b for a, b in gaps]
    room = np.sqrt(np.array(squares, dtype=float)) * rng.uniform(0.1, 1.5, n) + 1e-6 * rng.random(n)
    norms, status = np.linalg.norm(X, axis=1), np.zeros(n, dtype=np.int8)
    square = float(center @ center) * (1.0 + 2.0**-52)
    # A long lever, so that a row is decided where its room is above its distance.
    known = norms, X @ center, square, 0.0, 1.0, 1.0, (0.0, 1e12), 0.0, status
    kernels.decide_by_products((-room, np.zeros(n)), *known)
    decided = np.flatnonzero(status)
    assert all(F(room[i]) ** 2 > squares[i] for i in decided)
    wide = rng.uniform(1e-3, 2e-3, n)
    kernels.decide_by_products((-wide, np.zeros(n)), *known)
    assert np.all(status == -1)


@pytest.mark.parametrize("sparse", [False, True])
def test_exact_distances_decide_what_the_likeliest_lever_shows(sparse):
    """It is the one whose reach is the largest beside its distance from the middle."""
    both = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, radius, count = 100, float(rng.uniform(0.1, 2.0)), 3
        X, centers = 3.0 + rng.normal(size=(n, 2)), 3.0 + 0.7 * rng.normal(size=(2 * count, 2))
        X[rng.random((n, 2)) < 0.2] = 0.0
        few, index = sp.csr_array(X), rng.permutation(n)[:80]
        rows = matrix_of((few.data, few.indices, few.indptr) if sparse else X)
        tau, slack, away = 3.0 * rng.normal(size=n), rng.uniform(0.0, 0.3, n), rng.uniform(0.0, 2.0, 2 * count)
        offsets = np.column_stack([rng.normal(size=2 * count), rng.uniform(0.05, 5.0, 2 * count)])
        offsets[1, 1] = offsets[4, 1] = 0.0
        status, lengths = np.zeros(n, dtype=np.int8), np.linalg.norm(centers, axis=1)
        norms, levers = np.linalg.norm(X, axis=1), kernels.Levers(offsets, away, centers, lengths)
        kernels.decide_exactly(rows, index, index, norms, (tau, slack), radius, levers, 0.0, 0.0, status)
        for i in index:
            shown, reach = np.full(2 * count, -np.inf), np.full(2 * count, -np.inf)
            for k in range(2 * count):
                kappa, room = offsets[k, 1], (offsets[k, 0] - tau[i]) * (1.0 if k < count else -1.0) - slack[i]
                if kappa > 0.0:
                    apart = np.linalg.norm(X[i] - centers[k])
                    shown[k] = room - width(apart, radius, kappa)
                    least = abs(np.linalg.norm(X[i]) - lengths[k])
                    if room > width(least, radius, kappa):  # the farthest distance at which it decides
                        reach[k] = brentq(lambda far, *of: width(far, *of[1:]) - of[0], 0.0, 1e3, (room, radius, kappa))
            if np.abs(shown).min() < 1e-9:
                continue
            value = np.where(np.isfinite(reach), reach**2 - away**2, -np.inf)
            best, order = int(np.argmax(value)), np.sort(value)
            if np.isfinite(order[-1]) and order[-1] - order[-2] > 1e-6:
                assert status[i] == (0 if shown[best] <= 0.0 else -1 if best < 3 else 1)
                both += 1
    assert both > 100


@SIDES
def test_what_a_lever_shows_is_rounded_against_it(side):
    """Rows that are opposite to the centre, seen from 0: the distance is the sum of the norms, and all of it is off."""
    rounding, radius, kappa, kinds = 0.05, 0.8, 2.0, set()
    n, rng = 400, np.random.default_rng(9)
    X = -rng.uniform(0.5, 3.0, (n, 1))
    X[0], center = 1.0, np.ones((1, 1))
    apart, every, zero = 1.0 - X[:, 0], np.arange(n), np.zeros(n)
    tau = -side * width(apart, radius, kappa) * rng.uniform(1.0, 1.5, n)
    tau[0] = 0.0
    norms, none = np.abs(X[:, 0]), np.zeros((1, 2))
    # Off by this part: the square of a distance, what it is compared with, and, of both norms, what they may be off by.
    far = apart * np.sqrt((1.0 + 3.0 * rounding) / (1.0 - rounding))
    expected = -side * tau > width(far, radius, kappa)
    status, own = np.zeros(n, dtype=np.int8), np.array([[0.0, kappa]])
    offsets = np.concatenate([own, none] if side > 0 else [none, own])
    centers = np.concatenate([center, center])
    levers = kernels.Levers(offsets, np.zeros(2), centers, np.ones(2))
    kernels.decide_exactly(matrix_of(X), every, every, norms, (tau, zero), radius, levers, 0.0, rounding, status)
    close = np.abs(-side * tau - width(far, radius, kappa)) < 1e-9
    assert np.array_equal((status != 0)[1:], (expected & ~close)[1:])
    kinds |= set(status.tolist())
    assert kinds == {0, int(-side)} and 20 < np.count_nonzero(status) < n - 20
