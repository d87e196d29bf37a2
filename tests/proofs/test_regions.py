"""Regions of the box models' rules on tiny problems: each holds the exact optimum, and none is larger than it says."""

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.regions.geometry import Ball, Dome, Lens
from screenpath.rows.memory import MemoryRows
from screenpath.screen.box import BT2, DVI, ESSNSV, IT, SSNSV, feasible_dome, guess_ball, pair_ball, pair_radius
from screenpath.screen.pathwise import Dual, Pathwise, ball_floor, loss_floor, nearer_pair, primal_value
from tests.safety.rational import Exact, dot

# As plain Python, kernels warn of numbers that they then do not choose; machine code does not.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
KNOWN = {}  # problems that have been solved
BUILD = {
    "svm": lambda rows, y: SVM.model(rows, np.where(y > 0.0, 1.0, -1.0)), "lad": LAD.model,
    "quantile": lambda rows, y: QUANTILE.model(rows, y, tau=0.75),
    "svr": lambda rows, y: SVR.model(rows, y, epsilon=0.25),
}  # fmt: skip


def problem(seed, kind="svm", size=1.0):
    """Return a model of 3 rows (svr: 2)."""
    rng = np.random.default_rng(seed)
    n = 2 if kind == "svr" else 3
    return BUILD[kind](MemoryRows(size * rng.normal(size=(n, 2))), rng.normal(size=n))


def best(model, C):
    """Return the exact optimum and the exact dual point, as fractions."""
    numbers = model.take(np.arange(model.size)), model.c, model.lo, model.hi
    key = C, *(part.tobytes() for part in numbers)
    if key not in KNOWN:
        KNOWN[key] = _best(model, C)
    return KNOWN[key]


def _best(model, C):
    exact = Exact(model, C)
    found = None
    for theta in exact.candidates():
        w = [exact.C * sum(t * g[j] for t, g in zip(theta, exact.G, strict=True)) for j in range(len(exact.G[0]))]
        if found is None or exact.primal(w) < exact.primal(found[0]):
            found = w, theta
    return found


def reference(model, C, seed=0, exact=False):
    """Return a certificate of a feasible pair at ``C``: the rounded optimum, or something near it."""
    w, theta = best(model, C)
    w, theta = np.array(w, dtype=float), np.clip(np.array(theta, dtype=float), model.lo, model.hi)
    if not exact:
        rng = np.random.default_rng(seed)
        w = w * rng.uniform(0.7, 1.3, w.size)
        theta = np.clip(theta + 0.2 * rng.normal(size=theta.size), model.lo, model.hi)
    return model.certify(C, w, theta)


def away(w, point):
    """Return the squared distance of a fraction from a float, exactly."""
    return sum((a - F(float(b))) ** 2 for a, b in zip(w, point, strict=True))


def holds(region, w) -> bool:
    """Tell whether a region contains a point, exactly."""
    if isinstance(region, Ball):
        return away(w, region.center.vector) <= F(region.radius) ** 2
    if isinstance(region, Lens):
        return holds(region.first, w) and holds(region.second, w)
    assert isinstance(region, Dome)
    ahead = sum(F(float(a)) * (b - F(float(c))) for a, b, c in zip(
        region.normal.vector, w, region.center.vector, strict=True))  # fmt: skip
    return away(w, region.center.vector) <= F(region.radius) ** 2 and ahead <= F(region.offset)


@pytest.mark.covering(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", BUILD)
def test_every_region_holds_the_optimum(kind, seed):
    for size in (1e-5, 1.0, 1e3):
        model = problem(seed, kind, size)
        C0 = 0.7 / size**2
        pairs = [
            (reference(model, C0, seed, exact), reference(model, 5.0 * C0, seed + 1, exact)) for exact in (True, False)
        ]
        for factor, (near, far) in itertools.product((0.4, 1.0, 1.05, 3.0, 5.0), pairs):
            C = factor * C0
            w, _ = best(model, C)
            rules = [DVI(), BT2(), IT()]
            regions = [rule.region(model, near, C) for rule in rules]
            regions += [rule.region(model, near, C, far) for rule in (SSNSV(), ESSNSV())]
            for region in regions:
                assert holds(region, w), (type(region), size, factor)
                status = model.screen(region).status
                margins = [dot(g, w) - c for g, c in zip(Exact(model, C).G, map(F, model.c), strict=True)]
                assert all(m > 0 for m, s in zip(margins, status, strict=True) if s < 0)
                assert all(m < 0 for m, s in zip(margins, status, strict=True) if s > 0)


@pytest.mark.parametrize("kind", BUILD)
def test_regions_of_an_exact_reference_are_the_papers(kind):
    model = problem(3, kind)
    C0, C = 0.5, 0.8
    near, far = reference(model, C0, exact=True), reference(model, 1.3, exact=True)
    w0, wb = near.point.vector, far.point.vector
    length = np.linalg.norm(w0)
    ball = pair_ball(near, C)
    np.testing.assert_allclose(ball.center.vector, (C + C0) / (2 * C0) * w0, rtol=1e-14)
    assert ball.radius == pytest.approx((C - C0) / (2 * C0) * length, rel=1e-6)
    assert pair_radius(near, C) == pytest.approx((C - C0) / (2 * C0) * length, rel=1e-6)
    guess = guess_ball(model, near, C)
    s = np.where(model.c > (C + C0) / (2 * C0) * near.point.products, model.hi, model.lo)
    total = model.weighted_sum(s)
    center = 0.5 * (w0 + C * total)
    np.testing.assert_allclose(guess.center.vector, center, rtol=1e-14)
    assert guess.radius == pytest.approx(math.sqrt(center @ center + C * (near.xi - model.c @ s)), rel=1e-6)
    for enhanced in (False, True):
        dome = feasible_dome(near, pair_ball(far, far.C), (C,), enhanced)
        np.testing.assert_allclose(dome.center.vector, 0.5 * wb if enhanced else 0.0 * wb, rtol=1e-14)
        assert dome.radius == pytest.approx(np.linalg.norm(wb) * (0.5 if enhanced else 1.0), rel=1e-5)
        np.testing.assert_allclose(dome.normal.vector, -w0 / length, rtol=1e-14)
        # w0.(w - w0) >= 0
        offset = -length + w0 @ dome.center.vector / length
        assert dome.offset == pytest.approx(offset, abs=1e-5 * length)
        several = feasible_dome(near, pair_ball(far, far.C), (C0, C, 1.3), enhanced)
        assert several.offset >= dome.offset


def test_a_region_at_the_origin_is_a_ball():
    model = problem(1)
    zero = model.certify(1.0, np.zeros(2), np.zeros(3))
    far = reference(model, 2.0, exact=True)
    assert isinstance(feasible_dome(zero, pair_ball(far, 2.0), (1.0,), True), Ball)


@pytest.mark.parametrize("kind", BUILD)
def test_floor_of_the_loss_is_below_it_and_meets_it(kind):
    model = problem(4, kind)
    for C in (0.3, 0.7, 2.0):
        exact = Exact(model, C)
        w, _ = best(model, C)
        loss = (exact.primal(w) - dot(w, w) / 2) / exact.C
        for seed, good in ((0, True), (1, False), (2, False)):
            pair = reference(model, C, seed, good)
            floor = loss_floor(pair, C, primal_value(pair, C))
            assert F(floor) <= loss
            if good:
                assert floor == pytest.approx(float(loss), rel=1e-4, abs=1e-5)
            assert F(primal_value(pair, C)) >= exact.primal(pair.point.vector)
        other = reference(model, 0.5 * C, exact=True)
        assert F(loss_floor(other, C, primal_value(other, C))) <= loss
        far = reference(model, 3.0 * C, exact=True)
        near, further = nearer_pair(model, other, far, C)
        assert F(ball_floor(near, further, Dual.of(other), Dual.of(far))) <= loss
        # At the optimum itself the bound is the loss, and it falls with every error that is counted.
        at = reference(model, C, exact=True)
        sharp = ball_floor(at)
        assert F(sharp) <= loss and sharp == pytest.approx(float(loss), rel=1e-4, abs=1e-5)
        at.error += 0.25
        lower = ball_floor(at)
        assert lower <= sharp - 0.25 * (1.0 - 1e-9)
        at.shift = 0.125  # the centre of the ball, and the sum, by what a free intercept moves
        length, reach = math.sqrt(at.total_sq), math.sqrt(at.point.sqnorm)
        assert ball_floor(at) <= lower - 0.125 * (C * length + reach) * (1.0 - 1e-3)
    assert primal_value(pair, 3.0) == pytest.approx(0.5 * pair.point.sqnorm + 3.0 * pair.xi, rel=1e-12)
    wider = reference(model, 2.0, 2)
    wider.sum_error, wider.error = 0.01, 0.02
    at = loss_floor(pair, 2.0, primal_value(pair, 2.0)), loss_floor(wider, 2.0, primal_value(pair, 2.0))
    assert at[1] < at[0] - 0.02


def test_chunks_count_what_they_decide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + 2.0
    X[20:] -= 4.0
    model = SVM.model(MemoryRows(X), np.where(np.arange(40) < 20, 1.0, -1.0))
    grid = np.array([1.0, 1.02, 1.05, 1.1])
    start, far = model.start(0.9), model.start(1.2)
    for form in "Cs":
        screening = Pathwise(ESSNSV(), False, "essnsv", chunk=3, form=form)
        screening.begin(grid, far, resumed=False)
        for C, left in zip(grid[:2], (0, 2), strict=True):  # the first point has a rule of its own
            found = screening.before(model, start, C)
            assert found.n_R == np.sum(found.status == -1) and found.n_L == np.sum(found.status == 1)
            assert screening.left == left


def test_a_point_between_two_dual_points_has_what_its_parts_have_in_exact_arithmetic():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        one, two = (Dual(float(rng.normal()), rng.normal(size=3), float(e)) for e in rng.choice([0.0, 1e-18], 2))
        share = float(rng.uniform())
        found, part, error = one.mixed(two, share), F(share), F(max(one.error, two.error))
        assert F(found.ell) <= (1 - part) * F(one.ell) + part * F(two.ell)
        exact = [(1 - part) * F(a) + part * F(b)
                 for a, b in zip(one.total.tolist(), two.total.tolist(), strict=True)]  # fmt: skip
        off = sum((F(a) - b) ** 2 for a, b in zip(found.total.tolist(), exact, strict=True))
        assert off <= (F(found.error) - error) ** 2 and F(found.error) >= error
