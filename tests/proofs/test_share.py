"""The share of rows and columns in every gap, against its definition in fractions."""

from fractions import Fraction as F
from math import inf, nan

import numpy as np
import pytest

from screenpath.kernels.problem import share as kernels
from screenpath.kernels.problem.share import column_shares, row_shares
from tests.width import wide


def penalty(x: F, curve: F, kink: F) -> F:
    return curve / 2 * x * x + kink * abs(x)


def conjugate(v: F, lo: float, hi: float, curve: F, kink: F) -> F:
    """Return ``max_x x v - psi(x)``: a concave function, largest at an end, at 0, or where its slope is 0."""
    points = [F(end) for end in (lo, hi) if abs(end) < inf] + [F(0)]
    for slope in (v - kink, v + kink) if curve else ():
        points.append(slope / curve)
    return max(x * v - penalty(x, curve, kink) for x in points if lo <= x <= hi)


def share(x, v, lo, hi, curve, kink) -> F:
    x, v, curve, kink = (F(value) for value in (x, v, curve, kink))
    return penalty(x, curve, kink) + conjugate(v, lo, hi, curve, kink) - x * v


def one_row(t, off, theta, weight, lo, hi, curve):
    return row_shares(*(np.array([value]) for value in (t, off, theta, weight, lo, hi, curve)))[:, 0]


def one_column(w, u, off, curve, kink, sign=0):
    w, u, off = (np.array([value]) for value in (w, u, off))
    return column_shares(w, u, np.array([sign], dtype=np.int8), off, curve, kink)[:, 0]


@pytest.mark.parametrize(("lo", "hi"), [(0.0, 1.0), (0.0, inf), (-2.0, 1.0)])
def test_a_row_has_its_share_and_the_larger_one_of_both_ends(lo, hi):
    rng, tight = np.random.default_rng(int(hi == inf)), 0
    for _ in range(wide(250, 600)):
        curve = 1.0 if hi == inf else float(rng.choice([0.5, 1e-3, 2.0**-30]))
        scale = float(10.0 ** rng.integers(-9, 10))
        t = float(rng.choice([0.0, curve, curve * scale, -scale, rng.normal() * scale, rng.normal() * curve]))
        off = float(rng.choice([0.0, 1e-12, 0.1, 3.0])) * abs(t)
        best = min(max(t / curve, lo), hi)
        theta = float(rng.choice([0.0, best, best * (1.0 + 2.0**-50), rng.uniform(lo, 1.0) * scale]).clip(lo, hi))
        weight = float(rng.choice([0.0, 1.0, rng.uniform(0.3, 3.0)]))
        own = 4.0 * 2.0**-53 * (abs(t) + curve * abs(theta))  # for the rounding of a share's terms
        loss, loss_off, plain, more = one_row(t, off, theta, weight, lo, hi, curve)

        def at(away, theta=theta, t=t, weight=weight, curve=curve):
            return F(weight) * share(theta, F(t) + away, lo, hi, curve, 0.0)

        ends = [at(way * (F(off) + 3 * F(own))) * (1 + F(10) ** -15) for way in (-1, 1)]
        assert 0.0 <= plain <= max(at(-2 * F(own)), at(2 * F(own))) * (1 + F(10) ** -15)
        assert max(at(way * F(off)) for way in (-1, 0, 1)) <= (F(plain) + F(more)) * (1 + F(10) ** -15) <= max(ends)
        value = F(weight) * conjugate(F(t), lo, hi, F(curve), F(0))
        assert abs(F(loss) - value) <= F(10) ** -15 * value
        for way in (-1, 1):
            there = F(weight) * conjugate(F(t) + way * F(off), lo, hi, F(curve), F(0))
            assert abs(there - value) <= F(loss_off) * (1 + F(10) ** -15)
        tight += more > 0.0
    assert tight > wide(40, 100)
    assert one_row(2.0, 0.0, 0.5, 3.0, 0.0, 1.0, 0.5)[1] == 24.0 * 2.0**-53  # of t, where the loss has the slope 1


@pytest.mark.parametrize("curve", [0.0, 1e-3, 0.5, 1e9])
def test_a_column_has_its_share_and_the_larger_one_of_both_ends(curve):
    rng, seen = np.random.default_rng(3), 0
    for _ in range(wide(250, 600)):
        kink = float(rng.choice([0.3, 7.0]))
        u = float(rng.choice([0.0, kink, -kink, rng.normal() * kink, 0.99 * kink, 30.0 * rng.normal()]))
        off = float(rng.choice([0.0, 1e-12, 0.01]))
        beyond = np.sign(u) * max(abs(u) - kink, 0.0)
        sign = int(rng.integers(-1, 2))  # of a weight, if it may have one alone
        lo, hi = (0.0 if sign > 0 else -inf), (0.0 if sign < 0 else inf)
        w = float(rng.choice([0.0, beyond / (curve or 1.0), rng.normal(), -u]).clip(lo, hi))
        own = 4.0 * 2.0**-53 * (abs(u) + kink + curve * abs(w))
        plain, more = one_column(w, u, off, curve, kink, sign)
        assert plain >= 0.0
        ends = []
        for way in (F(-1), F(0), F(1)):
            there = F(u) + way * F(off)
            if curve == 0.0 and (sign * there if sign else abs(there)) > F(kink):
                continue  # of a dual point none is
            ends.append(share(w, there, lo, hi, curve, kink) if curve else F(kink) * abs(F(w)) - F(w) * there)
            assert (F(plain) + F(more)) * (1 + F(10) ** -15) >= ends[-1]
            seen += 1
        if curve and not abs(abs(u) - kink) < 4.0 * own:
            most = [share(w, F(u) + way * (F(off) + 3 * F(own)), lo, hi, curve, kink) for way in (-1, 1)]
            assert F(plain) + F(more) <= max(most) * (1 + F(10) ** -15)
    assert seen > wide(375, 900)
    assert one_column(1.0, 0.5, 0.0, 0.0, 1.0)[1] == 6.0 * 2.0**-53  # of u and the kink


def test_every_kind_of_row_has_its_share():
    """Losses of svm, lad, quantile and svr, smoothed or not: ends of both signs, with a kink and without a curve."""
    rng, zero = np.random.default_rng(5), 0
    for _ in range(1500):
        lo, hi, kink = ((0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), (-0.75, 0.25, 0.0), (-1.0, 1.0, 0.125))[rng.integers(4)]
        curve = float(rng.choice([0.0, 0.5, 2.0]))
        ends = curve * hi + kink, curve * lo - kink
        v = float(rng.choice([0.0, kink, -kink, *ends, rng.normal(), 9.0 * rng.normal()]))
        x = float(rng.choice([lo, 0.0, hi, rng.uniform(lo, hi)]))
        found, exact = kernels.share(x, v, lo, hi, curve, kink), share(x, v, lo, hi, curve, kink)
        assert found >= 0.0 and abs(F(found) - exact) <= F(2) ** -49 * (abs(F(v)) + F(curve) + F(kink))
        assert (found == 0.0) == (exact == 0) or curve
        zero += found == 0.0
    assert 200 < zero < 1200


@np.errstate(invalid="ignore")
def test_what_is_no_number_gives_none():
    for value in (nan, inf):
        for t, off in ((value, 0.0), (0.5, value)):
            assert not np.isfinite(sum(one_row(t, off, 0.25, 1.0, 0.0, 1.0, 0.5)[2:]))
        for curve in (0.0, 0.5):
            for u, off in ((value, 0.0), (0.1, value)):
                assert not np.isfinite(sum(one_column(1.0, u, off, curve, 0.3)))
                assert not np.isfinite(sum(one_column(0.0, u, off, curve, 0.3)))
