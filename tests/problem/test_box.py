"""The box model: objectives, certificate, closed-form start, reduced problem."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.problem.box import BoxModel
from screenpath.regions.geometry import Ball, Lens, Point
from screenpath.rows.memory import MemoryRows
from screenpath.screen.box import pair_ball
from tests.conftest import two_classes


def random_box(seed, kind="svm", n=60, d=4, sparse=False):
    rng = np.random.default_rng(seed)
    X, signs = two_classes(n, d, seed)
    rows = MemoryRows(sp.csr_array(X) if sparse else X)
    if kind == "svm":
        return BoxModel(rows, np.ones(n), np.zeros(n), rng.uniform(0.5, 2.0, n), signs=signs), signs[:, None] * X
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    if kind == "lad":
        return BoxModel(rows, y, -np.ones(n), np.ones(n)), X
    ends = np.zeros(2 * n), np.ones(2 * n)
    return BoxModel(rows, np.concatenate([y - 0.1, -y - 0.1]), *ends, mirrored=True), np.vstack([X, -X])


def objectives(model, G, C, w, theta):
    t = model.c - G @ w
    primal = 0.5 * w @ w + C * np.sum(np.maximum(model.lo * t, model.hi * t))
    w_theta = C * G.T @ theta
    return primal, C * model.c @ theta - 0.5 * w_theta @ w_theta


@pytest.mark.parametrize("kind", ["svm", "lad", "svr"])
def test_no_primal_point_is_kept_that_is_worse_than_zero_or_the_one_before(kind):
    model, G = random_box(5, kind)
    rng = np.random.default_rng(6)
    theta, near, far = rng.uniform(model.lo, model.hi), 0.01 * rng.normal(size=4), 50.0 * rng.normal(size=4)
    zero, dual = objectives(model, G, 0.3, 0.0 * near, theta)
    good, bad = (objectives(model, G, 0.1, w, theta)[0] for w in (near, far))
    assert good < bad
    expected = min(objectives(model, G, 0.3, near, theta)[0], zero)
    for w, primal in ((near, expected), (far, zero)):
        reference, worse = model.certify(0.1, w, theta), model.certify(0.3, 2.0 * far, theta)
        touched = model.rows.touched
        found = model.no_worse(0.3, worse, reference)
        assert model.rows.touched == touched
        assert found.primal == pytest.approx(primal, rel=1e-12)
        assert found.gap == pytest.approx(primal - dual, rel=1e-9)
        assert model.no_worse(0.3, found, reference) is found


@pytest.mark.parametrize("kind", ["svm", "lad", "svr"])
@pytest.mark.parametrize("sparse", [False, True])
def test_certificate_is_the_objectives_written_out(kind, sparse):
    model, G = random_box(3, kind, sparse=sparse)
    rng = np.random.default_rng(4)
    w = rng.normal(size=G.shape[1])
    theta = model.lo + (model.hi - model.lo) * rng.random(model.size)
    certificate = model.certify(0.7, w, theta)
    primal, dual = objectives(model, G, 0.7, w, theta)
    assert certificate.primal == pytest.approx(primal, rel=1e-12)
    assert certificate.dual == pytest.approx(dual, rel=1e-10) and certificate.dual <= dual + 1e-13 * abs(primal)
    assert certificate.gap == pytest.approx(primal - dual, rel=1e-10)
    assert certificate.gap >= primal - dual - 1e-13 * abs(primal)
    np.testing.assert_allclose(certificate.point.products, G @ w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["svm", "lad", "svr"])
def test_updated_sum_is_the_fresh_sum(kind):
    model, G = random_box(5, kind)
    rng = np.random.default_rng(6)
    theta = rng.choice([-1.0, 0.0, 1.0], size=model.size).clip(model.lo, model.hi)
    certificate = model.certify(1.0, None, theta)
    for _ in range(2 * BoxModel.fresh_every):
        theta = theta.copy()
        changed = rng.integers(0, model.size, size=3)
        theta[changed] = model.lo[changed] + 0.3 * (model.hi - model.lo)[changed]
        certificate = model.certify(1.0, None, theta, certificate)
        np.testing.assert_allclose(certificate.total, G.T @ theta, rtol=1e-11, atol=1e-11)
        assert certificate.updates <= BoxModel.fresh_every


@pytest.mark.parametrize("kind", ["svm", "lad", "svr"])
def test_closed_form_is_optimal_up_to_its_end_and_not_beyond(kind):
    model, _ = random_box(7, kind)
    s, total, limit = model.closed_form()
    assert 0 < limit < np.inf
    scale = model.certify(limit, None, s).primal
    assert model.certify(limit, None, s).gap <= 1e-12 * scale
    assert model.certify(0.3 * limit, None, s).gap <= 1e-12 * scale
    assert model.certify(1.5 * limit, None, s).gap > 1e-6 * scale
    assert model.start(10 * limit).gap <= 1e-12 * scale
    np.testing.assert_allclose(total, model.weighted_sum(s))


def test_start_without_a_closed_form_is_still_a_feasible_pair():
    X = np.array([[1.0, 2.0], [2.0, -1.0], [0.5, 0.5]])
    model = BoxModel(MemoryRows(X), np.array([0.0, 1.0, -2.0]), -np.ones(3), np.ones(3))
    reference = model.start(1.0)
    assert reference.C > 0.0 and reference.gap >= 0.0


def test_hinge_closed_form_is_ogawa_lemma_9():
    model, G = random_box(8)
    model.hi[:] = 1.0
    assert model.closed_form()[2] == pytest.approx(1.0 / np.max(G @ (G.T @ np.ones(model.size))), rel=1e-12)


@pytest.mark.parametrize("kind", ["svm", "lad", "svr"])
@pytest.mark.parametrize("sparse", [False, True])
def test_reduced_problem_has_the_gap_of_the_full_one(kind, sparse):
    model, _ = random_box(9, kind, sparse=sparse)
    reference = model.start(0.02)
    screened = model.screen(pair_ball(reference, 0.02))
    assert 0 < screened.n_R + screened.n_L < model.size
    reduced = model.reduce(0.02, screened, reference)
    rows = sp.csr_array(reduced.rows, shape=(reduced.size, model.rows.d)).toarray() if reduced.sparse else reduced.rows
    alpha = reduced.start_alpha
    base = reduced.start_sum - rows.T @ alpha
    assert_allclose = np.testing.assert_allclose
    assert_allclose(reduced.theta[reduced.index], alpha / 0.02, rtol=1e-12)
    assert reduced.offset + reduced.c @ alpha == pytest.approx(0.02 * (model.c @ reduced.theta), rel=1e-10)
    theta = reduced.theta.copy()
    theta[reduced.index] = 0.0
    w = model.weighted_sum(0.02 * theta) + rows.T @ alpha
    assert_allclose(w, reduced.start_sum, rtol=1e-10, atol=1e-12)
    t = reduced.c - rows @ w
    loss = np.sum(np.maximum(reduced.lo * t, reduced.hi * t))
    gap = w @ w - base @ w + loss - reduced.c @ alpha
    theta[reduced.index] = alpha / 0.02
    full = model.certify(0.02, None, theta)
    assert_allclose(w, full.point.vector, rtol=1e-10, atol=1e-12)
    wrong = model.lo * 0  # rows that w leaves on the wrong side of their kink count in the full gap only
    t = model.c - full.point.products
    fixed = screened.status != 0
    wrong = np.maximum(model.lo * t, model.hi * t)[fixed] - (theta * t)[fixed]
    assert full.gap == pytest.approx(gap + 0.02 * wrong.sum(), rel=1e-9, abs=1e-12)


def test_two_balls_decide_what_their_bounds_decide():
    """The kernel looks at one side of each row only; the bounds of both sides give the same decisions."""
    rng = np.random.default_rng(3)
    decided = []
    for seed in range(60):
        model, _ = random_box(seed)
        centers = rng.normal(size=(2, 4)) * 10.0 ** rng.uniform(-1, 1)
        apart = np.linalg.norm(centers[0] - centers[1])
        radii = apart * rng.uniform(0.05, 1.2, 2)
        radii[1] = max(radii[1], 1.001 * (apart - radii[0]))  # they meet
        balls = [Ball(Point(m, model.margins(m), float(m @ m)), r) for m, r in zip(centers, radii, strict=True)]
        lens = Lens(*balls)
        lower, upper = lens.bounds(tuple(p.products for p in lens.points), model.norms)
        status = model.screen(lens).status
        clear = np.minimum(np.abs(lower - model.c), np.abs(upper - model.c)) > 1e-9
        expected = np.where(lower > model.c, -1, np.where(upper < model.c, 1, 0))
        np.testing.assert_array_equal(status[clear], expected[clear])
        decided.append(np.count_nonzero(status))
    assert 0 < sum(decided) < 60 * 60


@pytest.mark.parametrize("kind", ["svm", "lad", "svr"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_stored_sum_that_the_dual_point_does_not_have_is_refused(kind, sparse):
    """By a part in 10^9 of it, which would shift every later gap; the state itself comes back to the byte."""
    model, _ = random_box(7, kind, sparse=sparse)
    first = model.certify(0.1, None, np.random.default_rng(7).uniform(model.lo, model.hi))
    found = model.certify(0.2, None, model.corner(first.point.products)[0], first)
    state, touched = model.state(found), model.rows.touched
    again = model.restore(state)
    assert again.gap == found.gap and np.array_equal(again.total, found.total)
    assert model.rows.touched - touched == model.rows.n  # that of the margins
    for place in range(found.total.size):
        for wrong in (found.total[place] * (1.0 + 1e-9) + 1e-9, np.nan, np.inf, 1e300):
            total = found.total.copy()
            total[place] = wrong
            with pytest.raises(ValueError):
                model.restore({**state, "total": total})
    model.restore(state)


def test_margins_of_the_closed_form_are_restored_to_the_byte():
    """They are multiples of its slope: those of a pass differ in their last digits, and so would the next gap."""
    model, _ = random_box(3, "lad")
    found = model.start(0.7 * model.closed_until)
    products = found.point.products
    assert not np.array_equal(products, model.margins(found.point.vector))
    state = model.state(found)
    np.testing.assert_array_equal(model.restore(state).point.products, products)
    for wrong in (products + 1e-12, np.where(np.arange(products.size) == 7, np.nan, products)):
        with pytest.raises(ValueError, match="margins"):
            model.restore({**state, "margins": wrong})
