"""No feature of the optimum is ever screened, whatever the accuracy of the reference."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.regions.geometry import Ball, Dome, Point
from screenpath.screen.l1svm import VariationalInequality, gap_ball
from tests.conftest import two_classes
from tests.l1_problems import l1_svm_model
from tests.screen.test_l1svm import reference_at


def difficult(seed, n, d, offset):
    """Unbalanced classes, correlated, duplicated and constant columns, columns far from 0."""
    X, y = two_classes(n=n, d=d, seed=seed)
    rng = np.random.default_rng(seed + 1000)
    y[: n // 5] = 1.0
    X = X @ (np.eye(d) + 0.3 * rng.normal(size=(d, d))) + offset * rng.normal(size=d)
    return np.hstack([X, X[:, :2], np.ones((n, 1)), np.zeros((n, 1))]), y


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000), shape=st.sampled_from([(20, 50), (60, 10), (30, 30)]),
    offset=st.sampled_from([0.0, 3.0, 1e3]), ratio=st.floats(1.01, 20.0), step=st.floats(1.0001, 4.0),
    noise=st.sampled_from([0.0, 1e-8, 1e-4, 1e-2, 0.3, 10.0]),
)  # fmt: skip
def test_no_active_feature_is_screened(seed, shape, offset, ratio, step, noise):
    X, y = difficult(seed, *shape, offset)
    model, _ = l1_svm_model(X, y)
    lam1 = model.lam_max / ratio
    lam2 = lam1 / step
    rng = np.random.default_rng(seed)
    w = reference_at(model, lam1, 1e-6).w
    near = w * (1 + noise * rng.normal(size=w.size)) + noise * np.abs(w).max() * (rng.random(w.size) < 0.1)
    reference = model.certify(lam1, near)
    best = reference_at(model, lam2, 1e-12)
    active = np.flatnonzero(best.w)

    region = VariationalInequality().region(model, reference, lam2)
    moved = best.theta - region.center.vector
    tolerance = 1e-6 * region.extent  # of the optimum, known to a gap of 1e-12
    assert np.linalg.norm(moved) <= region.radius + tolerance
    if isinstance(region, Dome):
        assert region.normal.vector @ moved <= region.offset + tolerance
    assert np.isin(active, model.screen(region).index).all()
    assert np.isin(active, model.screen(region, model.slack_of(reference)).index).all()

    ball = gap_ball(model.certify(lam2, near))
    assert np.linalg.norm(best.theta - ball.center.vector) <= ball.radius + tolerance
    assert np.isin(active, model.screen(ball).index).all()


def test_the_gap_ball_is_as_small_as_it_can_be():
    """For some pairs the optimum is on its surface: a smaller one were wrong. It decides more than the dual's own."""
    farthest, decided, before = 0.0, 0, 0
    for seed in range(45):
        X, y = difficult(seed, *[(20, 50), (60, 10), (30, 30)][seed % 3], [0.0, 3.0, 1e3][seed % 3])
        model, _ = l1_svm_model(X, y)
        rng = np.random.default_rng(seed)
        lam = model.lam_max / rng.uniform(1.05, 10.0)
        best = reference_at(model, lam, 1e-13)
        for noise in (1e-2, 0.3):
            pair = model.certify(lam, best.w * (1.0 + noise * rng.normal(size=best.w.size)))
            ball = gap_ball(pair)
            farthest = max(farthest, np.linalg.norm(best.theta - ball.center.vector) / ball.radius)
            assert farthest <= 1.0 + 1e-6
            dual = Ball(Point(pair.theta, pair.products, pair.theta @ pair.theta), np.sqrt(2.0 * pair.theta_gap) / lam)
            decided += model.size - model.screen(ball).index.size
            before += model.size - model.screen(dual).index.size
    assert farthest > 0.999 and decided > 1.05 * before > 0
