"""One lever on either side, against the formulas written out."""

import numpy as np
import pytest
from scipy.optimize import minimize

from screenpath.kernels import lever as kernels
from screenpath.kernels import lever_distances as distances
from screenpath.kernels.matrix import matrix_of
from screenpath.models.geometry import Ball, Point
from screenpath.models.lever import ONE, LeverBall
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
            region = LeverBall(Ball(center, radius), 1.0, found.theta, found.residue, ONE)
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


def best_shown(X, x, tau, tau_x, room, kappa, radius):
    """Return by how much a row is shown to be above its kink at most, by any lever of these rows: a convex problem."""

    def falls(v):
        apart = np.linalg.norm(x - v @ X)
        width = radius * apart if kappa * apart >= 2.0 * radius else radius**2 / kappa + 0.25 * kappa * apart**2
        return -(v @ tau - tau_x - width)

    start = np.minimum(room / room.sum(), 1.0)
    total = {"type": "eq", "fun": lambda v: v.sum() - 1.0}
    return -minimize(falls, start, bounds=[(0.0, r / kappa) for r in room], constraints=total, method="SLSQP").fun


def test_levers_aimed_at_a_row_decide_no_more_than_the_best_one_and_most_of_that():
    rng, slack, possible, found = np.random.default_rng(3), np.zeros(40), 0, 0
    for _ in range(30):
        X, kappa, radius = rng.normal(size=(40, 3)), float(rng.uniform(0.5, 2.0)), float(rng.uniform(0.1, 0.5))
        near, others, tau = np.arange(8), np.arange(8, 40), rng.normal(size=40)
        near = near[np.argsort(-tau[:8])]
        room = rng.uniform(0.1, 1.0, 8)
        offsets, weights = np.empty((1, 2)), np.empty((1, 8))
        kernels.lever_weights(
            tau[near], slack[:8], room, np.array([kappa]), np.ones(1, dtype=np.int64), 1.0, 0.0, offsets, weights
        )
        status = np.zeros(40, dtype=np.int8)
        distances.decide_by_aimed(
            matrix_of(X), near, tau[near], slack[:8], room, weights, offsets[:, 1].copy(), 3, others, others,
            np.linalg.norm(X, axis=1), tau, slack, radius, 1.0, 1e-15, 1e-12, status,
        )  # fmt: skip
        for i in others:
            best = best_shown(X[near], X[i], tau[near], tau[i], room, offsets[0, 1], radius)
            assert status[i] == 0 or best > -1e-6
            possible += best > 1e-3
            found += bool(status[i])
    assert 0.9 * possible < found and possible > 100
