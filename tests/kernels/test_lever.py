"""One lever on either side, against the formulas written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.screen import lever as kernels
from screenpath.regions.geometry import Ball, Point
from screenpath.regions.lever import LeverBall
from tests.free_problems import free_problem


def written_out(model, region):
    """Return what the levers decide, formed row by row from exact distances' bounds."""
    C, own = region.C, model.signless
    radius, (mean, spread, typical) = region.ball.radius, model.around
    tau = own.kinks - model.signs * region.ball.center.products
    alpha, decided = C * model.signs * region.theta, np.zeros(model.size)
    size = kernels.LENGTH * 2.0 * radius / typical
    X = np.stack([model.signs * model.margins(e) for e in np.eye(model.rows.d)], axis=1)
    for side, room in ((1.0, C * own.hi - alpha), (-1.0, alpha - C * own.lo)):
        least = kernels.LITTLE * min(size / kernels.SHARING, C * model.largest)
        order = [i for i in np.argsort(-side * tau, kind="stable") if room[i] > least][: kernels.FEWER]
        order = [i for i in order if abs(tau[i] - tau[order[0]]) <= kernels.FAR * radius * typical]
        share, left = [], size
        for i in order:
            share.append(min(max(left, 0.0), room[i], size / kernels.SHARING))
            left -= min(room[i], size / kernels.SHARING)
        kappa, weights = sum(share), np.array(share) / sum(share)
        away = spread + np.linalg.norm(weights @ X[order] - mean)
        width = np.where(kappa * away >= 2.0 * radius, radius * away, radius**2 / kappa + 0.25 * kappa * away**2)
        decided -= side * (side * (weights @ tau[order] - tau) > width * (1.0 + 1e-9))  # both, if no pair has this ball
    return decided * model.signs


@pytest.mark.parametrize("name", ["svm", "lad", "quantile", "svr"])
def test_decisions_are_those_of_the_formulas(name):
    decided = 0
    for seed in range(8):
        model = free_problem(name, "sparse" if seed % 2 else "plain", seed, n=150, weighted=seed > 3)
        found = model.certify(
            1.0, np.full(model.rows.d, 0.05 * seed), np.clip(0.3, model.lo, model.hi) * np.ones(model.size)
        )
        center = Point(found.point.vector, found.point.products, found.point.sqnorm)
        for radius in (1e-3, 0.03, 0.3):
            region = LeverBall(Ball(center, radius), 1.0, found.theta, found.residue, True)
            mine, slow = model.decide(region) * model.signs, written_out(model, region)
            assert np.array_equal(mine, slow)
            decided += np.count_nonzero(mine)
    assert decided > 100


def test_no_row_has_more_than_its_share_or_its_room():
    rng = np.random.default_rng(0)
    tau, room = np.sort(rng.normal(size=40))[::-1].copy(), rng.uniform(0.0, 0.3, 40)
    sizes, offsets, weights = np.array([0.1, 1.0, 50.0]), np.empty((3, 2)), np.empty((3, 40))
    for sharing in (1, 12):
        kernels.lever_weights(tau, np.full(40, 1e-3), room, sizes, np.full(3, sharing), 1.0, 1e-12, offsets, weights)
        for (tau_mu, kappa), own, size in zip(offsets, weights, sizes, strict=True):
            assert own.sum() == pytest.approx(1.0) and np.all(own * kappa <= room)
            assert np.all(own * kappa <= size / sharing) and tau_mu < own @ tau
        assert offsets[2, 1] == pytest.approx(np.minimum(room, 50.0 / sharing).sum())


# -- whatever rounding has done: slacks, distances and products that are off by a lot ---------------------------------


def width(distance, radius, kappa):
    """Return by how much a linear form may pass the lever's, by the formula."""
    far = kappa * distance >= 2.0 * radius
    return np.where(far, radius * distance, radius**2 / kappa + 0.25 * kappa * distance**2)


def test_a_row_is_decided_where_its_slack_and_the_farthest_distance_leave_it_beyond_its_kink():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, radius, count = 200, float(rng.uniform(0.1, 1.0)), 3
        tau, slack, spread = rng.normal(size=n), rng.uniform(0.0, 0.5, n), rng.uniform(0.0, 1.0, n)
        offsets = np.column_stack([rng.normal(size=2 * count), rng.uniform(0.05, 3.0, 2 * count)])
        offsets[:count, 0] += 0.3
        offsets[count:, 0] -= 0.3
        away, status = rng.uniform(0.0, 1.0, 2 * count), np.empty(n, dtype=np.int8)
        kernels.decide_by_levers(tau, slack, spread, radius, count, offsets, away, status, np.empty(n, dtype=np.int64))
        room = offsets[:, 0][:, None] - tau
        room[count:] *= -1.0
        shown = room - slack - width(spread + away[:, None], radius, offsets[:, 1][:, None])
        above, below = shown[:count].max(axis=0), shown[count:].max(axis=0)
        assert np.all(above[status < 0] > -1e-12) and np.all(below[status > 0] > -1e-12)
        assert np.all(status[np.maximum(above, below) > 1e-12] != 0) and np.count_nonzero(status) > 10


def test_one_lever_of_either_side_leaves_what_the_slack_may_be():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, radius, extent, rounding = 200, float(rng.uniform(0.1, 1.0)), 2.0, 0.05
        tau, kinks, spread = 2.0 * rng.normal(size=n), rng.normal(size=n), rng.uniform(0.0, 1.0, n)
        norms, signs = rng.uniform(0.0, 2.0, n), rng.choice([-1, 1], n).astype(np.int8)
        offsets, away = np.array([[0.3, 1.5], [-0.3, 0.8]]), rng.uniform(0.0, 0.5, 2)
        status = np.empty(n, dtype=np.int8)
        own, pair = kernels.Rows(kinks, signs, norms, tau, tau), kernels.Pair(tau, 1.0, tau, 1.0, 0.0, extent, rounding)
        counts = kernels.decide_by_one_each(own, pair, tau, spread, radius, offsets, away, status)
        slack = rounding * (norms * extent + np.abs(kinks))
        over = 0.3 - tau - slack > width(spread + away[0], radius, 1.5)
        under = tau + 0.3 - slack > width(spread + away[1], radius, 0.8)
        expected = (under.astype(int) - over) * signs
        assert np.array_equal(status, expected) and np.count_nonzero(status) > 20
        assert counts == (np.count_nonzero(expected < 0), np.count_nonzero(expected > 0))


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_products_that_are_off_decide_nothing_that_the_true_distance_does_not(side):
    nearest = np.inf
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, radius, off, kappa = 100, float(rng.uniform(0.1, 1.0)), 0.1, float(rng.uniform(0.3, 3.0))
        X, center = rng.normal(size=(n, 2)), rng.normal(size=2)
        norms, tau, slack = np.linalg.norm(X, axis=1), rng.normal(size=n), rng.uniform(0.0, 0.3, n)
        products = X @ center + off * norms * rng.choice([-1.0, 1.0], n)
        status = np.zeros(n, dtype=np.int8)
        square, own = float(center @ center), (0.5 * side, kappa)
        kernels.decide_by_products((tau, slack), norms, products, square, off, radius, side, own, 1e-12, status)
        shown = side * (0.5 * side - tau) - slack - width(np.linalg.norm(X - center, axis=1), radius, kappa)
        assert np.all(shown[status != 0] > -1e-9) and set(status) <= {0, int(-side)}
        nearest = min(nearest, shown[status != 0].min(initial=np.inf))
    assert nearest < 0.05


@pytest.mark.parametrize("sparse", [False, True])
def test_exact_distances_are_enlarged_by_what_they_may_be_off(sparse):
    nearest = np.inf
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, radius, off, rounding = 100, float(rng.uniform(0.1, 1.0)), 0.02, 0.01
        X, centers = rng.normal(size=(n, 2)), rng.normal(size=(2, 2))
        X[rng.random((n, 2)) < 0.2] = 0.0
        tau, slack, kappa = rng.normal(size=n), rng.uniform(0.0, 0.3, n), float(rng.uniform(0.3, 3.0))
        norms, lengths = np.linalg.norm(X, axis=1), np.linalg.norm(centers, axis=1)
        offsets, status = np.array([[0.5, kappa], [-0.5, kappa]]), np.zeros(n, dtype=np.int8)
        few, every = sp.csr_array(X), np.arange(n)
        rows = matrix_of((few.data, few.indices, few.indptr) if sparse else X)
        levers = kernels.Levers(offsets, lengths, centers, lengths)
        kernels.decide_exactly(rows, every, every, norms, (tau, slack), radius, levers, off, rounding, status)
        for k, side in ((0, 1.0), (1, -1.0)):
            square = ((X - centers[k]) ** 2).sum(axis=1)
            most = (norms + lengths[k]) ** 2
            square = square + (off * most if sparse else 0.0) + rounding * 2.0 * most
            shown = side * (offsets[k, 0] - tau) - slack - width(np.sqrt(square), radius, kappa)
            decided = status == -side
            assert np.all(shown[decided] > -1e-9)
            nearest = min(nearest, shown[decided].min(initial=np.inf))
    assert nearest < 0.05


def test_room_is_what_the_sum_of_the_dual_variables_leaves():
    rng = np.random.default_rng(5)
    signs, kinks, theta = rng.choice([-1, 1], 50).astype(np.int8), rng.normal(size=50), rng.uniform(-0.5, 0.5, 50)
    products, norms, lo, hi = rng.normal(size=50), rng.uniform(0.0, 2.0, 50), np.full(50, -1.0), np.full(50, 2.0)
    tau, slack, down, up = np.empty((4, 50))
    own, pair = kernels.Rows(kinks, signs, norms, lo, hi), kernels.Pair(products, 0.5, theta, 2.0, 0.125, 3.0, 0.01)
    kernels.seen_from(own, pair, tau, slack, down, up)
    np.testing.assert_allclose(tau, kinks - 0.5 * signs * products, atol=1e-15)
    np.testing.assert_allclose(slack, 0.01 * (3.0 * norms + np.abs(kinks)))
    # What is taken from one variable can be given to another one: all of it may be in the one that is moved.
    np.testing.assert_allclose([down, up], [2.0 * (signs * theta + 1.0) - 0.125, 2.0 * (2.0 - signs * theta) - 0.125])
