"""One lever on either side, against the formulas written out."""

import numpy as np
import pytest

from screenpath.kernels import lever as kernels
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
