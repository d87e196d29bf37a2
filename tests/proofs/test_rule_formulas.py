"""Radii, offsets and floors of the box models' rules, with errors so large that every term counts, in fractions."""

import math
from dataclasses import replace
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, QUANTILE, SVM
from screenpath.kernels.problem import box as kernels
from screenpath.numbers.rounding import gamma
from screenpath.problem.box_types import Screened
from screenpath.problem.grid import log_grid
from screenpath.regions.geometry import ROUNDING, Ball, Dome, KernelPoint, Point
from screenpath.regions.lever import LeverRange
from screenpath.rows.memory import MemoryRows
from screenpath.screen import Screening, parse_rule, pathwise
from screenpath.screen.box import ESSNSV, SSNSV, feasible_dome, guess_ball, pair_ball, pair_radius
from screenpath.screen.pathwise import (
    Dual,
    Heuristic,
    Pathwise,
    Sieve,
    ball_floor,
    feasible_point,
    loss_floor,
    nearer_pair,
    primal_value,
)
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, solve_point, walk
from tests.conftest import set_constant, two_classes

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def model_and_pair(seed=0, C=0.8, n=6, **errors):
    """Return a quantile model and the certificate of some pair, its errors as given."""
    rng = np.random.default_rng(seed)
    model = QUANTILE.model(MemoryRows(rng.normal(size=(n, 3))), rng.normal(size=n), rng.uniform(0.5, 2.0, n), tau=0.3)
    theta = np.where(rng.random(n) < 0.5, model.lo, model.lo + (model.hi - model.lo) * rng.random(n))
    return model, replace(model.certify(C, rng.normal(size=3), theta), **errors)


def root(value) -> F:
    return F(math.sqrt(value))


def near(value, exact):
    return value == pytest.approx(float(exact), rel=1e-9)


LARGE = {"error": 0.3, "relative": 0.07, "sum_error": 0.11, "total_error": 0.05}


@pytest.mark.parametrize("seed", range(3))
def test_the_ball_of_a_pair(seed):
    _, pair = model_and_pair(seed, **LARGE, shift=0.07)
    for C in (0.3, 0.8, 1.7):
        ratio, found = F(C) / F(pair.C), pair_ball(pair, C)
        np.testing.assert_allclose(found.center.vector, 0.5 * (1.0 + C / pair.C) * pair.point.vector, rtol=1e-14)
        total_sq, ahead_sq = F(C) ** 2 * F(pair.total_sq), ratio**2 * F(pair.point.sqnorm)
        apart_sq = total_sq - 2 * F(C) * ratio * F(pair.inner) + ahead_sq
        apart_sq += F(pair.relative) * (total_sq + ahead_sq) + F(C) ** 2 * F(pair.total_error)
        assert near(found.radius, F(pair_radius(pair, C)) + root(apart_sq) / 2 + F(C) * F(0.07))


@pytest.mark.parametrize("seed", range(3))
def test_the_ball_of_a_guess(seed, monkeypatch):
    model, pair = model_and_pair(seed, **LARGE)
    set_constant(monkeypatch, kernels, "LEAST", 0.05)  # what a root of squares may lose by underflow
    for C in (0.3, 1.7):
        plain = type(model).middle
        model.middle = lambda reference, guess, C, plain=plain: (*plain(model, reference, guess, C)[:2], 0.21, 0.13)
        found = guess_ball(model, pair, C)
        s = np.where(model.c > (C + pair.C) / (2.0 * pair.C) * pair.point.products, model.hi, model.lo)
        total = model.weighted_sum(s)
        center = 0.5 * (pair.point.vector + C * total)
        np.testing.assert_allclose(found.center.vector, center, rtol=1e-12)
        error = 2 * F(C) * F(pair.error) + F(0.21)
        error += F(pair.relative) * (F(pair.point.sqnorm) + F(C) ** 2 * F(float(total @ total)))
        inside = max(F(float(center @ center)) + F(C) * (F(pair.xi) - F(float(model.c @ s))), F(0)) + error
        assert near(found.radius, root(inside) + F(0.13) + (1 + F(C) + F(C) / F(pair.C)) * F(0.05))


def test_the_ball_of_a_guess_with_a_free_intercept(monkeypatch):
    _, pair = model_and_pair(1, **LARGE)
    set_constant(monkeypatch, kernels, "LEAST", 0.05)
    monkeypatch.setattr("screenpath.screen.box.OUTWARD", 1.25)
    C, center, told = 1.7, Point(np.array([1.0, 2.0]), np.zeros(6), 5.0), []
    model = SimpleNamespace(
        guess=lambda products, part: told.append((products, part)) or ("theta", 0.3, 0.9),
        middle=lambda *given: (center, 2.0, 0.21, 0.13) if given == (pair, "theta", C) else None,
        largest_kink=1.4, largest_norm=2.6,
    )  # fmt: skip
    found = guess_ball(model, pair, C)
    assert told[0][0] is pair.point.products and told[0][1] == pytest.approx(0.5 * (1.0 + C / pair.C))
    error = 2.0 * C * pair.error + 0.21 + pair.relative * (pair.point.sqnorm + 2.0) + C * 0.9 * 1.4
    shift = 0.13 + 0.5 * C * 0.9 * 2.6 + (1.0 + C + C / pair.C) * 0.05
    assert found.ball.radius == pytest.approx((math.sqrt(5.0 + C * (pair.xi - 0.3) + error) + shift) * 1.25)
    assert (found.ball.center, found.C, found.theta, found.residue) == (center, C, "theta", 0.9)


def test_a_guess_whose_gap_is_below_zero_by_rounding_has_the_radius_of_its_error():
    model, pair = model_and_pair(1, **LARGE)
    pair = replace(pair, xi=-100.0)
    found, dual_sq = guess_ball(model, pair, 0.8), 0.0
    _, dual_sq, rounding, shift = model.middle(pair, np.where(model.c > pair.point.products, model.hi, model.lo), 0.8)
    error = 2 * 0.8 * pair.error + rounding + pair.relative * (pair.point.sqnorm + dual_sq)
    assert found.radius == pytest.approx(math.sqrt(error) + shift, rel=1e-12)


def test_the_middle_of_a_pair():
    model, pair = model_and_pair(2, **LARGE)
    theta, C = pair.theta.copy(), 1.7
    theta[:2] = model.hi[:2]
    center, dual_sq, rounding, shift = model.middle(pair, theta, C)
    total, _, error = model.updated_sum(theta, pair)
    assert error > pair.sum_error and near(shift, F(C) * F(error) / 2)
    np.testing.assert_allclose(center.vector, 0.5 * (pair.point.vector + C * total), rtol=1e-14)
    assert near(dual_sq, F(C) ** 2 * F(float(total @ total))) and near(center.sqnorm, center.vector @ center.vector)
    # (|x| + shift)^2 - |x|^2 for both ends, doubled for what they are themselves
    assert near(rounding, 4 * F(shift) * (root(dual_sq) + root(center.sqnorm) + F(shift)))


@pytest.mark.parametrize("enhanced", [False, True])
def test_the_dome_of_a_feasible_point(enhanced):
    model, pair = model_and_pair(3, **LARGE, shift=0.07)
    far = Ball(Point(np.array([3.0, -1.0, 2.0]), np.zeros(model.size), 14.0), 0.4)
    parameters = (0.9, 2.0, 1.3)
    found = feasible_dome(pair, far, parameters, enhanced)
    size = root(14.0) * (1 + F(pair.relative))
    radius = size / 2 + F(0.4) if enhanced else size + F(0.4)
    center = far.center.vector * (0.5 if enhanced else 0.0)
    assert near(found.radius, radius)
    np.testing.assert_array_equal(found.center.vector, center)
    length = root(pair.point.sqnorm)
    normal = -pair.point.vector / float(length)
    np.testing.assert_allclose(found.normal.vector, normal, rtol=1e-14)
    # w0.w* >= (|w0|^2 + C w0.G'theta)/2 - |w0| r, by the ball of the pair at C
    radii = {C: F(pair_radius(pair, C)) + F(C) * F(0.07) for C in parameters}
    least = min((length + F(C) * F(pair.inner) / length) / 2 - radii[C] for C in parameters)
    slack = F(ROUNDING) * radius + F(pair.relative) * F(2.0) * root(pair.total_sq)
    assert near(found.offset, -least - F(float(normal @ center)) + slack)
    for rule in (SSNSV(), ESSNSV()):  # a rule's own far end is the ball of its pair
        assert rule.region(model, pair, 0.9, pair).radius > 0.0 and rule.enhanced == isinstance(rule, ESSNSV)
    exact = replace(pair, relative=0.0, shift=0.0)  # what is left is the slack of every comparison
    plain, unit = feasible_dome(exact, far, (0.9,), enhanced), root(exact.point.sqnorm)
    bare = (unit + F(0.9) * F(pair.inner) / unit) / 2 - F(pair_radius(exact, 0.9)) + F(float(normal @ center))
    assert abs((F(plain.offset) + bare) / F(plain.radius) - F(ROUNDING)) < F(ROUNDING) / 100


@pytest.mark.parametrize("enhanced", [False, True])
def test_what_sums_of_kernel_values_add_to_the_dome(enhanced, monkeypatch):
    monkeypatch.setattr("screenpath.screen.box.OUTWARD", 1.25)
    rng, (_, pair), parameters = np.random.default_rng(4), model_and_pair(3, **LARGE), (0.9, 2.0, 1.3)
    points = [KernelPoint(*rng.normal(size=(2, 6)), size, 1.5, 0.02) for size in (9.0, 14.0)]
    pair, far = replace(pair, point=points[0]), Ball(points[1], 0.4)
    found, plain = (feasible_dome(replace(pair, point=p), far, parameters, enhanced) for p in (points[0], Point(
        *(getattr(points[0], name) for name in ("vector", "products", "sqnorm")))))  # fmt: skip
    size = math.sqrt(14.0 + points[1].inner(points[1])[1]) * 1.07
    assert near(found.radius, size / 2 + 0.4 if enhanced else size + 0.4)
    lost, normal = points[0].inner(points[0])[1], points[0].scaled(-1.0 / 3.0)
    (across, off), apart = normal.inner(found.center), lost / 9.0
    slack = (off + 2.0 * apart * (3.0 * (1.0 + 2.0 / 0.8) + size)) * 1.25
    plain_across = float(normal.vector @ plain.center.vector)
    assert near(found.offset, plain.offset + plain_across - across + slack)
    assert found.axis == pytest.approx(ROUNDING + normal.error + apart) and plain.axis == ROUNDING
    assert (
        type(feasible_dome(replace(pair, point=replace(points[0], sqnorm=0.999 * lost)), far, (1.0,), enhanced)) is Ball
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shift", [0.0, 0.07])  # of a free intercept
def test_the_floor_of_the_loss(seed, shift):
    _, pair = model_and_pair(seed, **LARGE)
    pair = replace(pair, shift=shift)
    for C, primal in ((0.4, 30.0), (1.1, -2.0), (2.0, -50.0)):
        ell, total, relative = F(pair.ell) - F(pair.error), root(pair.total_sq), F(pair.relative)
        square = F(pair.total_sq) * (1 + relative) + F(pair.total_error)
        off = F(pair.sum_error) + F(shift)
        square += off * (2 * total + off)
        slack = relative * (abs(F(pair.ell)) + F(C) * square)
        gap = max(F(primal) - F(C) * ell + F(C) ** 2 * square / 2, F(0)) + F(C) * slack + relative * abs(F(primal))
        exact = ell - F(C) * square - root(2 * square * gap) * (1 + relative) - slack
        assert near(loss_floor(pair, C, primal), exact)
        value = (F(pair.point.sqnorm) / 2 + F(C) * (F(pair.xi) + F(pair.error))) * (1 + relative)
        assert near(primal_value(pair, C), value)


def test_what_rounding_of_the_margins_does_to_a_loss():
    model, pair = model_and_pair(5)
    point = Point(3.0 * pair.point.vector, pair.point.products[::-1] - 1.0, 9.0 * pair.point.sqnorm)
    other = replace(pair, point=point)
    product = F(gamma(2 * 3 + 8)) * (root(pair.point.sqnorm) + root(other.point.sqnorm))
    each = [
        max(abs(F(a)), abs(F(b))) * (product * F(norm) + F(gamma(8)) * (abs(F(c)) + abs(F(p)) + abs(F(q))))
        for a, b, norm, c, p, q in zip(
            model.lo, model.hi, model.norms, model.c, pair.point.products, other.point.products, strict=True)
    ]  # fmt: skip
    found = pathwise._loss_error(model, pair.point, other.point)
    assert F(found) >= sum(each) and near(found, sum(each) * (1 + F(gamma(6))))
    # each of the errors counts in full: at a floor of exactly their sum the far end is refused
    errors = replace(pair, error=0.5), replace(other, error=0.25)
    t = model.c - other.point.products
    loss = float(np.maximum(model.lo * t, model.hi * t).sum())
    assert feasible_point(model, *errors, loss + 0.75 - 1e-9) is None
    assert feasible_point(model, *errors, loss + 0.75 + 1e-9) is not None
    plain = model.losses
    model.losses = lambda near: lambda products: (plain(near)(products)[0], 0.125)  # and that of an intercept
    assert feasible_point(model, *errors, loss + 0.875 - 1e-9) is None
    assert feasible_point(model, *errors, loss + 0.875 + 1e-9) is not None
    model.losses = plain
    large = replace(errors[1], point=replace(other.point, sqnorm=1e28))
    error = pathwise._loss_error(model, pair.point, large.point)
    assert error > 0.1
    assert feasible_point(model, errors[0], large, loss + 0.75 + 0.99 * error) is None
    assert feasible_point(model, errors[0], large, loss + 0.75 + 1.01 * error) is not None


def test_a_loss_summed_in_floats_is_not_taken_for_a_smaller_one():
    """Many rows: what the sum itself may lose counts, and the margins' rounding is added, not taken off."""
    n = 4096
    model = LAD.model(MemoryRows(np.zeros((n, 1))), np.full(n, 0.1))
    pair = model.certify(1.0, np.zeros(1), np.zeros(n))
    pair = replace(pair, error=0.0)
    loss = float(np.abs(model.c).sum())
    error = pathwise._loss_error(model, pair.point, pair.point)
    assert near(error, sum(F(gamma(8)) * F(0.1) for _ in range(n)) * (1 + F(gamma(n))))
    assert feasible_point(model, pair, pair, loss * (1.0 + 0.9 * gamma(n))) is None
    assert feasible_point(model, pair, pair, loss * (1.0 + 1.1 * gamma(n)) + error) is not None


def test_a_line_search_ends_at_the_first_point_that_is_good_enough():
    model = LAD.model(MemoryRows(np.eye(2)), np.array([2.0, -0.5]))
    near_, far = (model.certify(1.0, np.array(w), np.zeros(2)) for w in ([0.0, 0.5], [2.0, -0.5]))
    found = feasible_point(model, near_, far, 1.2)  # the loss is (1 - s)(2 + 1)
    share = 0.6
    np.testing.assert_allclose(found.center.vector, [2.0 * share, 0.5 - share], rtol=1e-6)
    np.testing.assert_allclose(found.center.products, found.center.vector, rtol=1e-12)
    assert near(found.center.sqnorm, found.center.vector @ found.center.vector)
    at_start = feasible_point(model, near_, far, 3.0 + 1e-6)  # the near end itself is, but for a billionth of the way
    assert np.linalg.norm(at_start.center.vector - near_.point.vector) < 1e-8


def pathwise_rule(form, grid=(1.0, 1.2, 1.5, 2.0, 3.0), chunk=2, seed=0):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    model = SVM.model(MemoryRows(rng.normal(size=(30, 2)) + 1.5 * signs[:, None]), signs)
    screening = Pathwise(ESSNSV(), False, "essnsv", chunk=chunk, form=form)
    how = Screening(None, False, "none"), make_solver("newton"), PathOptions(tol=1e-8)
    start, far = (solve_point(model, C, 0, model.start(C), *how)[1] for C in (0.9, 9.0))
    screening.begin(np.array(grid), far, resumed=False)
    return model, screening, start, far


def test_a_chunk_is_served_for_the_parameters_it_holds(monkeypatch):
    seen, ticks = [], iter(np.arange(6) / 2)
    monkeypatch.setattr(pathwise, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    monkeypatch.setattr(pathwise, "feasible_dome", lambda ref, ball, served, enhanced: seen.append(list(served)))
    model, screening, start, far = pathwise_rule("C")
    model.screen = lambda region: Screened(np.full(30, seen.pop()[0] > 1.0, dtype=np.int8), 0, 0)
    screening.static.region = lambda model, reference, parameter, far: seen.append([parameter])
    decided = [screening.before(model, start, C) for C in (1.0, 1.2, 1.5, 2.0, 3.0)]
    # The first point has a rule of its own; then 1.2 and 1.5 share one, 2 and 3 the next.
    assert [int(one.status[0]) for one in decided] == [0, 1, 1, 1, 1] and screening.left == 0
    assert [(one.n_R, one.n_L) for one in decided] == [(0, 0)] + [(0, 30)] * 4
    assert screening.search_s == 1.0  # two searches
    screening.before(model, start, 1.2)  # a new chunk begins
    screening.begin(np.array([1.0, 1.2]), far, resumed=True)
    assert screening.left == 1  # goes on within the chunk
    screening.begin(np.array([1.0, 1.2]), far, resumed=False)
    assert screening.left == 0 and screening.floor == -np.inf


def test_levers_of_a_chunk_hold_from_its_first_parameter_to_its_last():
    _, screening, start, far = pathwise_rule("C")
    asked, by = [], {Dome: [1, 0, 0, -1], LeverRange: [0, 1, 0, -1]}
    region = Dome(start.point, 1.0, start.point, 0.0)
    model = SimpleNamespace(screen=lambda given: asked.append(given) or Screened.of(np.array(by[type(given)], np.int8)))
    for intercept, expected in ((None, [1, 0, 0, -1]), (0.3, [1, 1, 0, -1])):
        pair = SimpleNamespace(intercept=intercept)
        assert screening._chunk(model, pair, region, np.array([1.5, 1.0, 2.0])).tolist() == expected
    assert asked == [region, region, LeverRange(pair, 1.0, 2.0)]
    screening.again, pair.C = lambda *given: given, 2.0  # a rule for points without an intercept says nothing of it
    assert screening._safe(model, pair) == (model, pair, 2.0)


@pytest.mark.parametrize("form", ["C", "s"])
def test_the_loss_that_a_feasible_point_must_not_exceed(form, monkeypatch):
    model, screening, start, far = pathwise_rule(form)
    asked, served = [], []

    def search(model, a, b, floor):
        asked.append(floor)
        return Ball(Point(0.01 * far.point.vector, 0.01 * far.point.products, 1e-4 * far.point.sqnorm), 0.0)

    monkeypatch.setattr(pathwise, "feasible_point", search)

    def dome(ref, ball, parameters, enhanced):
        served.append(ball.radius)
        return feasible_dome(ref, ball, parameters, enhanced)

    monkeypatch.setattr(pathwise, "feasible_dome", dome)
    for C, last, beyond in ((1.0, 1.2, 1.5), (1.5, 2.0, 3.0), (3.0, 3.0, 3.0)):
        count, floor, _ = screening._new_rule(model, start, C, screening.chunk)
        assert count == (1 if C == 3.0 else 2) and served[-1] == 0.0
        if form == "C":  # proven, at the largest C that is served
            assert asked[-1] == screening.proven_floor(model, start, last) and floor == -np.inf
        else:  # tried, one point beyond
            share = math.log(beyond / start.C) / math.log(far.C / start.C)
            assert asked[-1] == floor == pytest.approx(start.xi ** (1 - share) * far.xi**share)
    for refused in (None, Ball(Point(far.point.vector, far.point.products, 100.0 * far.point.sqnorm), 0.0)):
        monkeypatch.setattr(pathwise, "feasible_point", lambda *a, refused=refused: refused)
        assert (
            screening._new_rule(model, start, 1.0, screening.chunk)[1] == -np.inf and served[-1] > 0.0
        )  # the ball of the far end


def test_the_floor_of_a_chunk_takes_the_best_of_three():
    model, screening, start, far = pathwise_rule("C")
    how = Screening(None, False, "none"), make_solver("newton"), PathOptions(tol=1e-10)
    best = []
    for C in (0.95, 1.2, 8.0):
        primal = min(primal_value(start, C), primal_value(far, C))
        pair, further = nearer_pair(model, start, far, C)
        near = ball_floor(pair, further, Dual.of(start), Dual.of(far))
        floors = [loss_floor(start, C, primal), loss_floor(far, C, primal), near]
        assert screening.proven_floor(model, start, C) == max(floors)
        assert max(floors) <= solve_point(model, C, 0, model.start(C), *how)[1].xi * (1.0 + 1e-9)
        best.append(int(np.argmax(floors)))
    assert set(best) == {1, 2}  # near the far end its own solution says more
    for a, b in ((0.0, 1.0), (1.0, 0.0)):
        screening.far = replace(far, xi=b)
        assert screening._guessed_floor(replace(start, xi=a), 2.0) == b
    screening.far = replace(far, xi=2.0, C=1.0)
    assert screening._guessed_floor(replace(start, xi=1.0, C=1.0), 1.0) == 2.0
    assert screening._guessed_floor(replace(start, xi=1.0, C=1.5), 1.0) == 2.0


def test_a_tried_loss_is_proven_by_the_certificate_or_given_up():
    model, screening, start, far = pathwise_rule("s")
    floor = loss_floor(start, start.C, primal_value(start, start.C))
    before = Screened(np.ones(30, dtype=np.int8), 0, 30)
    decided = before.status.copy()
    for at in (-np.inf, floor, np.nextafter(floor, -np.inf)):
        screening.floor, screening.left = at, 1
        assert screening.corrected(model, start, before, 1) is before and screening.left == 1
        assert screening.proven(model, start, before, decided) == (before, decided)
    screening.floor = np.nextafter(floor, np.inf)
    safe = model.screen(ESSNSV().region(model, start, start.C, far))
    kept, withdrawn = screening.proven(model, start, before, decided)
    np.testing.assert_array_equal(kept.status, np.where(safe.status == 1, 1, 0))
    assert 0 < np.count_nonzero(kept.status) < 30 and (kept.n_R, kept.n_L) == (0, np.count_nonzero(kept.status))
    np.testing.assert_array_equal(withdrawn, kept.status)
    assert screening.left == 0 and screening.floor == -np.inf
    screening.floor = np.nextafter(floor, np.inf)
    found = screening.corrected(model, start, before, 1)
    np.testing.assert_array_equal(found.status, safe.status)
    screening.floor = np.inf
    assert screening.proven(model, start, before, None)[1] is None


def test_guesses_are_the_previous_ends_beyond_the_kink():
    model = SVM.model(MemoryRows(np.eye(6)), np.ones(6))
    w = np.array([2.0, 2.0, 0.5, 0.5, 1.0, 1.0])
    theta = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    pair = model.certify(1.0, w, theta)
    guess = Heuristic().before(model, pair, 1.1)
    assert guess.status.tolist() == [-1, 0, 0, 1, 0, 0] and (guess.n_R, guess.n_L) == (1, 1)
    wrong = Screened(np.array([1, -1, -1, 1, 1, -1], dtype=np.int8), 3, 3)
    found = Heuristic().corrected(model, pair, wrong, 1)
    assert found.status.tolist() == [0, -1, 0, 1, 1, -1] and (found.n_R, found.n_L) == (2, 2)
    assert Heuristic().corrected(model, pair, guess, 1) is guess
    assert not Heuristic().corrected(model, pair, wrong, pathwise.GUESSES).status.any()


def test_a_sieve_frees_what_is_wrong_and_what_is_right_by_less_than_that():
    model = SVM.model(MemoryRows(np.eye(6)), np.ones(6))
    pair = model.certify(1.0, np.array([2.0, 0.9, 0.4, 3.0, 1.2, 1.0]), np.zeros(6))
    sieve = Sieve()
    # Margins below 1 contradict R (-1), by .1 and .6; 1.2 and the kink itself are right by less than .35.
    found = sieve.corrected(model, pair, Screened(np.full(6, -1, dtype=np.int8), 6, 0), 1)
    assert found.status.tolist() == [-1, 0, 0, -1, 0, 0] and (found.n_R, found.n_L) == (2, 0)
    assert sieve.corrected(model, pair, found, 2) is found  # nothing is wrong any more
    assert not sieve.corrected(model, pair, found, pathwise.SIEVED).status.any()


def test_a_sieve_looks_early_and_corrects_its_guesses_on_a_coarse_grid():
    X, y = two_classes(400, 6, seed=5)
    grid, model = log_grid(1e-2, 10.0, 4), SVM.model(MemoryRows(X), y)
    found = [step for step, _ in walk(model, grid, parse_rule("sieve"), make_solver("newton"), PathOptions(tol=1e-8))]
    assert all(step.status == "certified" and step.rel_gap <= 1e-8 for step in found)
    assert all(step.rounds > 1 for step in found)


class Stubborn(Sieve):
    """A sieve that insists on what is wrong as long as it may."""

    def corrected(self, model, certificate, screened, rounds):
        if rounds >= pathwise.SIEVED:
            return super().corrected(model, certificate, screened, rounds)
        return Screened(np.where(np.arange(model.size) < 5, 1, 0).astype(np.int8), 0, 5)  # at their upper ends


def test_a_sieve_that_never_gets_it_right_ends_with_all_rows_solved_to_the_tolerance():
    X, y = two_classes(200, 4, seed=8)
    model = SVM.model(MemoryRows(4.0 * X), y)
    step, _ = solve_point(model, 5.0, 0, model.start(5.0), Stubborn(), make_solver("newton"), PathOptions(tol=1e-9))
    assert step.rounds == pathwise.SIEVED + 1
    assert step.status == "certified" and step.rel_gap <= 1e-9


def test_a_kernel_guess_is_at_its_factor():
    guess = np.empty(3)
    c, products = np.array([1.0, 1.0, -1.0]), np.array([0.7, 0.3, -0.4])
    ell = kernels.box_guess(c, products, 2.0, np.array([-1.0, -2.0, -3.0]), np.array([4.0, 5.0, 6.0]), guess)
    assert guess.tolist() == [-1.0, 5.0, -3.0] and ell == 7.0
