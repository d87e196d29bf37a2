"""Lower bounds of the loss at an optimum, against numbers that are off by all that is allowed, and in fractions."""

from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.screen import pathwise as floors
from screenpath.screen.box import pair_radius
from screenpath.screen.pathwise import Dual, ball_floor, nearer_pair
from tests.proofs.test_regions import BUILD, best, problem, reference
from tests.safety.rational import Exact, dot


def test_the_dual_point_of_a_certificate_is_as_much_worse_as_its_sums_are_off():
    """The pieces of a certificate's error are each as large as all others."""
    total = np.ones(2)
    for ell in (3.0, -3.0):
        pair = SimpleNamespace(ell=ell, error=0.5, relative=0.25, total=total, sum_error=0.125, shift=0.0625)
        found = Dual.of(pair)
        assert found.ell == ell - (0.5 + 0.75) and found.error == 0.1875 and found.total is total


def test_what_dual_points_say_term_by_term(monkeypatch):
    """Units so large that every term of their rounding counts."""
    monkeypatch.setattr(floors, "UNIT", 0.01)
    monkeypatch.setattr(floors, "gamma", lambda depth: 1e-3 * depth)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one, two = (Dual(float(rng.normal()), rng.normal(size=3), e) for e in rng.uniform(size=2).tolist())
        share, center, radius = float(rng.uniform()), rng.normal(size=3), float(rng.uniform(0.1, 2.0))
        found, lengths = one.mixed(two, share), [float(np.linalg.norm(dual.total)) for dual in (one, two)]
        lost = 0.04 * (abs(one.ell) + abs(two.ell))
        assert found.ell == pytest.approx((1.0 - share) * one.ell + share * two.ell - lost)
        assert found.error == pytest.approx(max(one.error, two.error) + 0.04 * sum(lengths))
        np.testing.assert_allclose(found.total, one.total + share * (two.total - one.total))
        reach, value = np.linalg.norm(center) + radius, one.ell - one.total @ center - radius * lengths[0]
        lost = (one.error + 1e-3 * 22 * lengths[0]) * reach + 0.08 * (abs(one.ell) + abs(value))
        assert one.floor(center, radius) == pytest.approx(value - lost)


def test_what_is_said_of_a_ball_is_below_what_any_sum_says_of_any_point_of_it():
    """In one dimension all is known exactly; what cancels is nothing but rounding."""
    tight = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        total, radius = float(10.0 ** rng.uniform(-6.0, 6.0) * rng.normal()), float(10.0 ** rng.uniform(-3.0, 3.0))
        center = -radius * np.sign(total) * (1.0 if seed % 2 else float(rng.uniform(0.0, 2.0)))
        ell, error = float(rng.choice([0.0, rng.normal()])), float(rng.choice([0.0, 0.1 * abs(total)]))
        found = Dual(ell, np.array([total]), error).floor(np.array([center]), radius)
        worst = min(
            F(ell) - (F(total) + e) * w
            for e in (F(error), -F(error))
            for w in (F(center) + F(radius), F(center) - F(radius))
        )
        # Points of the ball and sums are looked at by their sizes alone: none is said more of than of the worst one.
        assert F(found) <= worst
        size = (abs(total) + error) * (abs(center) + radius) + abs(ell)
        tight += found >= float(worst) - 2.0 * error * radius - 1e-13 * size
    assert tight > 100


def test_the_best_of_several_dual_points_and_of_those_between_is_taken(monkeypatch):
    model = problem(4)
    pair, other = reference(model, 0.7, 1), reference(model, 0.35, exact=True)
    pair.shift = 0.03125
    seen = []
    monkeypatch.setattr(Dual, "floor", lambda self, center, radius: seen.append((center, radius)) or self.ell)
    duals = [Dual(ell, np.zeros(2), 0.0) for ell in (2.0, -1.0)]
    assert ball_floor(pair, *duals) == 2.0
    assert len(seen) == 3 + 3 * len(floors.SHARES)
    for center, radius in seen:  # the intercept's part moves the sum, and so the centre
        np.testing.assert_array_equal(center, 0.5 * (pair.point.vector + 0.7 * pair.total))
        assert radius >= pair_radius(pair, 0.7) + 0.7 * 0.03125 * (1.0 - 1e-12)
    assert other.C == 0.35


@pytest.mark.parametrize("kind", BUILD)
def test_the_further_dual_point_is_one_and_says_no_more_than_it_may(kind, monkeypatch):
    """Whatever is off in its sum: then all that it says is as much less."""
    for seed in range(2 if kind == "svr" else 5):
        model = problem(seed, kind)
        C = 0.9
        near, far = reference(model, 0.5, exact=True), reference(model, 3.0, exact=True)
        corner, summed, seen = model.corner, model.updated_sum, []

        def spied(margins, seen=seen, corner=corner):
            seen.append((margins, corner(margins)))
            return seen[-1][1]

        with monkeypatch.context() as patch:
            patch.setattr(model, "corner", spied)
            pair, dual = nearer_pair(model, near, far, C)
        ((margins, (guess, _, _)),) = seen
        np.testing.assert_allclose(margins, pair.point.products, atol=1e-12)  # those of its own w
        w, _ = best(model, C)
        exact = Exact(model, C)
        loss = (exact.primal(w) - dot(w, w) / 2) / exact.C
        # What it says of the optimum and of others holds in fractions.
        for point in (w, [F(v) * 2 for v in w], [F(1), F(-3)], [F(0), F(0)]):
            true = (exact.primal(point) - dot(point, point) / 2) / exact.C
            said = F(dual.ell) - sum(F(float(a)) * b for a, b in zip(dual.total, point, strict=True))
            reach = sum(abs(b) for b in point) * F(dual.error)
            assert said - reach <= true
        assert F(ball_floor(pair, dual)) <= loss
        # Of those between the reference's dual variables and the others none is better for the pair's w.
        np.testing.assert_allclose(model.weighted_sum(guess), dual.total, atol=1e-12)
        assert dual.ell == pytest.approx(model.c @ guess, abs=1e-12)
        values = []
        for share in np.linspace(0.0, 1.0, 201):
            theta = near.theta + share * (guess - near.theta)
            total = model.weighted_sum(theta)
            values.append(model.c @ theta - 0.5 * C * total @ total)
        own = model.c @ pair.theta - 0.5 * C * pair.total @ pair.total
        assert own >= max(values) - 1e-9
        with monkeypatch.context() as patch:  # what a corner's sums, and its own, may be off by
            patch.setattr(model, "corner", lambda margins, ask=corner: (ask(margins)[0], 0.25, 0.125))
            patch.setattr(model, "updated_sum", lambda *of, ask=summed: (*ask(*of)[:2], 0.0625))
            patch.setattr(floors, "gamma", lambda depth: 1e-3 * depth)
            dual = nearer_pair(model, near, far, C)[1]
        terms = model.c * guess
        lost = 1e-3 * model.size * np.abs(terms).sum() + 0.25
        assert dual.ell == pytest.approx(terms.sum() - lost, abs=1e-9) and dual.error == 0.1875
