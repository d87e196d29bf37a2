"""Levers of a ball, of two balls, and of a range of C, against brute force and numbers off by all that is allowed."""

from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.screen import lever as kernels
from screenpath.regions import lever
from screenpath.regions.geometry import Ball, KernelPoint, Point
from screenpath.regions.lever import (
    SHARES,
    Distances,
    KernelLevered,
    LeverBall,
    Levered,
    LeverPencil,
    LeverRange,
    RangeLevers,
    Seen,
    chosen,
    pair_levers,
)
from tests.free_problems import cone_solution, free_problem, free_walk
from tests.kernels.test_lever import width

SIZES = (0.25, 1.0, 4.0)


def fractions(values):
    return [F(float(v)) for v in np.ravel(values)]


# -- two balls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("touching", [False, True])
def test_the_balls_between_two_hold_what_these_have_in_common(touching):
    """For x in both, ``|x - c|^2 <= s r1^2 + (1 - s) r2^2 - s (1 - s) |a - b|^2``, in fractions."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, b = 10.0 ** rng.uniform(-2.0, 2.0) * rng.normal(size=(2, 3))
        apart = float(np.linalg.norm(a - b))
        share = float(rng.choice(SHARES[1:-1]))
        r1 = (1.0 - share) * apart  # with these the point of the way is all that they have in common
        r2 = share * apart
        if not touching:
            r1, r2 = apart * rng.uniform(0.5, 2.0, 2)
        theta = rng.normal(size=(2, 5))
        theta[:, -1] = (0.0 if touching else 0.25) - theta[:, :-1].sum(axis=1)
        off = [abs(sum(fractions(t))) for t in theta]
        balls = [LeverBall(Ball(Point(c, None, float(c @ c)), float(r)), 1.5, t, float(o))
                 for c, r, t, o in zip((a, b), (r1, r2), theta, off, strict=True)]  # fmt: skip
        products = rng.normal(size=(2, 7))
        found = LeverPencil(*balls).balls(tuple(products))
        assert len(found) == len(SHARES)
        distance = sum((x - y) ** 2 for x, y in zip(fractions(a), fractions(b), strict=True))
        for s, ball in zip(SHARES, found, strict=True):
            part = F(s)
            least = part * F(float(r1)) ** 2 + (1 - part) * F(float(r2)) ** 2 - part * (1 - part) * distance
            square = F(ball.ball.radius) ** 2
            size = max(r1, r2) ** 2 + (np.linalg.norm(a) + np.linalg.norm(b)) * apart
            assert least <= square <= float(max(least, 0)) + 1e-11 * size and ball.C == 1.5
            np.testing.assert_allclose(ball.ball.center.vector, s * a + (1.0 - s) * b, atol=1e-12 * np.abs(a).max())
            np.testing.assert_allclose(ball.ball.center.products, s * products[0] + (1.0 - s) * products[1])
            np.testing.assert_allclose(ball.theta, s * theta[0] + (1.0 - s) * theta[1], atol=1e-12)
            assert abs(sum(fractions(ball.theta))) <= F(ball.residue)
            assert ball.residue <= (0.0 if touching else 0.25) + 1e-14 * np.abs(theta).sum()


# -- one ball ---------------------------------------------------------------------------------------------------------


def seen(seed, n=50, d=2):
    """Return rows away from 0, as a ball sees them."""
    rng = np.random.default_rng(seed)
    X, tau, slack = 2.0 + rng.normal(size=(n, d)), 2.0 * rng.normal(size=n), rng.uniform(0.0, 0.1, n)
    down, up = rng.uniform(-0.3, 1.0, (2, n))
    return X, tau, down, up, slack, float(rng.uniform(0.5, 2.0)), np.linalg.norm(X, axis=1)


def levered(X, tau, down, up, slack, typical, norms, product=0.0):
    mean = X.mean(axis=0)
    return Levered(tau, down, up, slack, typical, norms, np.linalg.norm(X - mean, axis=1) * (1.0 + 1e-12), mean,
                   lambda index: (matrix_of(X), index), product)  # fmt: skip


def shown_by_all(X, tau, down, up, slack, typical, radius, sizes, shared):
    """Return by how much levers show rows to be above their kinks, and below, levers and distances written out."""
    found = []
    for side, room in ((1.0, up), (-1.0, down)):
        order = [i for i in np.argsort(-side * tau) if room[i] > 0.0][: kernels.CHOSEN]
        most = np.full(tau.size, -np.inf)
        for size, sharing in [*((s, 1) for s in sizes), *((s, kernels.SHARING) for s in shared)]:
            kappa, carried, left = size * 2.0 * radius / typical, [], size * 2.0 * radius / typical
            for i in order:
                carried.append(max(min(left, room[i], kappa / sharing), 0.0))
                left -= min(room[i], kappa / sharing)
            total, used = sum(carried), [i for i, c in zip(order, carried, strict=True) if c > 0.0]
            if not used:
                continue
            v = np.array([c for c in carried if c > 0.0]) / total
            apart = np.linalg.norm(X - v @ X[used], axis=1)
            room_for = side * (v @ tau[used] - tau) - slack[used].max() - slack
            most = np.maximum(most, room_for - width(apart, radius, total))
        found.append(most)
    return found


@pytest.mark.parametrize("sizes", [(SIZES, ()), ((), (2.0,))])
def test_a_ball_decides_what_its_levers_show(sizes):
    """Of several the one that is likely to decide a row is asked: most of what any shows; of one, all."""
    decided, missed = 0, 0
    for seed in range(30):
        given = seen(seed)
        X, tau, down, up, slack, typical, _ = given
        radius = float(np.random.default_rng(seed).uniform(0.05, 0.6))
        found = levered(*given).decide(radius, *sizes)
        above, below = shown_by_all(X, tau, down, up, slack, typical, radius, *sizes)
        # No problem has these numbers: some rows are shown to be on both sides.
        assert np.all(above[found < 0] > -1e-9) and np.all(below[found > 0] > -1e-9)
        missed += np.count_nonzero((found == 0) & (np.maximum(above, below) > 1e-9))
        decided += np.count_nonzero(found)
    assert decided > 50 and missed < 0.1 * decided and (sizes[0] or not missed)


def test_levers_of_either_side_are_as_long_as_asked_and_lose_the_slack_of_their_rows():
    for seed in range(10):
        _, tau, down, up, slack, typical, _ = seen(seed)
        both = chosen(Seen(tau, 0.1 * down, 0.1 * up, slack, typical), 0.2, (0.05, 0.25, 1.0), (0.5,))
        for side, made, room in zip((1.0, -1.0), both, (0.1 * up, 0.1 * down), strict=True):
            own, can = tau[made.rows], room[made.rows]
            assert np.all(np.diff(side * own) <= 0.0) and np.all(can > 0.0)
            for (offset, kappa), weights, size in zip(made.offsets, made.weights, (0.05, 0.25, 1.0, 0.5), strict=True):
                asked = size * 2.0 * 0.2 / typical
                assert np.all(weights * kappa <= can) and weights.sum() == pytest.approx(1.0)
                if size != 0.5:
                    assert kappa == pytest.approx(min(asked, can.sum()))
                else:
                    assert np.all(weights * kappa <= asked / kernels.SHARING)
                worst = slack[made.rows][weights > 0.0].max()
                assert side * offset == pytest.approx(side * (weights @ own) - worst)


def test_without_rows_that_have_room_nothing_is_decided():
    X, tau, down, up, slack, typical, norms = seen(0)
    for few in (levered(X, tau, -down**2, -up**2, slack, typical, norms),
                levered(X, tau, -down**2, -up**2, slack, 0.0, norms)):  # fmt: skip
        assert not few.decide(0.1, SIZES, (2.0,)).any()


def test_what_products_may_be_off_by_is_passed_on(monkeypatch):
    """The square of a distance is formed of three products: each may be off by that part of the sizes."""
    asked, own = [], lever.kernels.decide_exactly

    def spied(*given):
        asked.append(given[7:9])
        return own(*given)

    monkeypatch.setattr(lever.kernels, "decide_exactly", spied)
    levered(*seen(0), 0.25).decide(2.0, SIZES, ())
    ((product, rounding),) = asked
    assert product >= 0.5 and rounding >= 1e-13


@pytest.mark.parametrize("off", [0.0, 0.05])
def test_behind_a_kernel_a_ball_decides_what_its_levers_show(off):
    """Products are off by as much as is said, at random signs."""
    decided = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, tau, down, up, slack, typical, norms = seen(seed)
        radius = float(rng.uniform(0.05, 0.6))

        def combined(index, weights, X=X, norms=norms, rng=rng):
            return X @ (weights @ X[index]) + off * norms * rng.choice([-1.0, 1.0], norms.size), off

        rows = KernelLevered(tau, down, up, slack, typical, norms, combined)
        found = rows.decide(radius, SIZES)
        above, below = shown_by_all(X, tau, down, up, slack, typical, radius, SIZES, ())
        assert np.all(above[found < 0] > -1e-9) and np.all(below[found > 0] > -1e-9)
        if not off:
            assert np.all(found[above > 1e-6] == -1) and np.all(found[(below > 1e-6) & (above < -1e-9)] == 1)
        decided += np.count_nonzero(found)
    assert decided > 50


def test_the_squared_norm_of_a_centre_is_not_below_what_it_may_be():
    """All products are too small by what they may be off by."""
    off = 0.1
    for seed in range(40):
        X, tau, down, up, slack, typical, norms = seen(seed)

        def combined(index, weights, X=X, norms=norms):
            center = weights @ X[index]
            # the worst of both: the centre seems nearer to 0 than it is, and the rows nearer to the centre
            found = X @ center + off * norms
            found[index] = X[index] @ center - off * norms[index]
            return found, off

        rows = KernelLevered(tau, down, up, slack, typical, norms, combined)
        found = rows.decide(0.4, SIZES)
        above, below = shown_by_all(X, tau, down, up, slack, typical, 0.4, SIZES, ())
        assert np.all(above[found < 0] > -1e-9) and np.all(below[found > 0] > -1e-9)


# -- a range of C -----------------------------------------------------------------------------------------------------


def drawn(seed, m=80):
    """Return levers of a pair with numbers drawn at random, and what else a question needs."""
    rng = np.random.default_rng(seed)
    w, total = rng.normal(size=(2, 2))
    C0 = float(rng.uniform(0.5, 2.0))
    pair = np.array([w @ w, total @ total, w @ total, rng.uniform(0.0, 0.5), 0.01, 0.01, 0.01, 0.02, 0.05])
    forms = rng.normal(size=(2, m)) * 3.0
    levers = np.array([[0.5, 0.2, -0.4, -0.1], [0.1, -0.2, 0.2, 0.1], rng.uniform(0.2, 4.0, 4)])
    return rng, RangeLevers(C0, pair, forms, levers)


def test_what_a_lever_shows_holds_for_every_C_of_the_range_whatever_rounding_has_done():
    """At each C the best length of the lever is tried; forms are off by their rounding."""
    shown, whole = 0, 0
    for seed in range(40):
        rng, levers = drawn(seed)
        m = levers.forms.shape[1]
        apart, norms, kinks = rng.uniform(0.0, 2.0, m), rng.uniform(0.0, 1.0, m), rng.normal(size=m)
        low = levers.C * float(rng.uniform(0.5, 1.0))
        high, rows = low * float(rng.uniform(1.0, 1.8)), rng.permutation(m)[:60]
        for k in range(4):
            assert levers.sign(k) == (1.0 if k < 2 else -1.0)
            given = apart[rows], norms[rows]
            found = levers.shows(k, rows, *given, low, high, kinks[rows])
            least = np.full(rows.size, np.inf)
            for C in np.linspace(low, high, 21):
                r = levers.radius(C)
                tau = levers.levers[0, k] + C * levers.levers[1, k]
                form = 0.5 * (levers.forms[0, rows] + C * levers.forms[1, rows]) + tau - kinks[rows]
                most = levers.levers[2, k] * np.linspace(0.01, 1.0, 400)[:, None]
                wide = (r * r / (C * most) + 0.25 * C * most * given[0] ** 2).min(axis=0)
                off = 0.05 * (1.0 + C / levers.C) * given[1]
                least = np.minimum(least, levers.sign(k) * form - off - wide)
            assert np.all(least[found] > -1e-9)
            # At a single C nothing is lost but by rounding.
            one = levers.shows(k, rows, *given, low, low, kinks[rows])
            r, tau = levers.radius(low), levers.levers[0, k] + low * levers.levers[1, k]
            form = 0.5 * (levers.forms[0, rows] + low * levers.forms[1, rows]) + tau - kinks[rows]
            wide = width(given[0], r, low * levers.levers[2, k])
            margin = levers.sign(k) * form - wide - 0.05 * (1.0 + low / levers.C) * given[1]
            assert np.array_equal(one[np.abs(margin) > 1e-6], (margin > 0.0)[np.abs(margin) > 1e-6])
            shown, whole = shown + np.count_nonzero(found), whole + np.count_nonzero(one)
    assert 100 < shown < whole


def test_the_radius_of_a_range_counts_all_that_a_pair_is_off_by():
    for seed in range(20):
        _, levers = drawn(seed)
        w_sq, total_sq, inner, slack, sum_error, total_error, relative, shift, _ = levers.pair
        for C in (levers.C, 0.6 * levers.C, 1.7 * levers.C):
            apart = np.sqrt(max(w_sq - 2.0 * C * inner + C * C * total_sq, 0.0))
            least = np.sqrt(0.25 * apart**2 + C * slack)
            found = levers.radius(C)
            assert found >= least + C * shift + 0.5 * C * sum_error
            apart = np.sqrt(apart**2 + relative * (w_sq + C * C * total_sq) + (C * C + levers.C**2) * total_error)
            most = np.sqrt(0.25 * (apart + C * sum_error) ** 2 + C * slack) + C * shift + 0.5 * C * sum_error
            assert found == pytest.approx(most, rel=1e-9)


def test_what_only_rounding_puts_beyond_a_kink_is_not_shown():
    """Kinks within a few units in the last place of what a lever shows, in fractions; forms and kinks nearly cancel."""
    close, shown = 0, 0
    for seed in range(40):
        rng, levers = drawn(seed, 40)
        levers.pair[8] = 0.0
        size = 10.0 ** rng.uniform(0.0, 5.0)
        levers.forms[:] *= size
        C, apart, rows = levers.C, rng.uniform(0.1, 2.0, 40), np.arange(40)
        for k in range(4):
            side, r = levers.sign(k), levers.radius(C)
            form = 0.5 * (levers.forms[0] + C * levers.forms[1]) + levers.levers[0, k] + C * levers.levers[1, k]
            off = 2.0**-52 * (np.abs(form) + 1.0) * rng.integers(-8, 9, 40)
            off[:5] = 1e-10 * (np.abs(form[:5]) + 1.0)
            kinks = form - side * (width(apart, r, C * levers.levers[2, k]) + off)
            found = levers.shows(k, rows, apart, np.zeros(40), C, C, kinks)
            for i in rows:
                exact = (F(levers.forms[0, i]) + F(C) * F(levers.forms[1, i])) / 2 - F(kinks[i])
                exact += F(levers.levers[0, k]) + F(C) * F(levers.levers[1, k])
                carried, far = F(C) * F(levers.levers[2, k]), F(apart[i])
                long = carried * far >= 2 * F(r)
                wide = F(r) * far if long else F(r) ** 2 / carried + carried * far**2 / 4
                assert not found[i] or F(int(side)) * exact > wide
                close += i >= 5 and not found[i]
            shown += np.count_nonzero(found[:5])
    assert shown > 700 and close > 3000


def test_the_radius_is_rounded_up():
    for C in (0.1, 0.3, 0.7, 1.7):
        levers = RangeLevers(
            C, np.array([4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0]), np.zeros((2, 0)), np.zeros((3, 2))
        )
        assert 1 + F(C) * F(0.1) <= F(levers.radius(C)) <= (1 + F(C) * F(0.1)) * (1 + F(1, 10**11))


def test_distances_are_not_below_the_true_ones_whatever_is_off():
    rng, off = np.random.default_rng(4), 1e-3
    X = 3.0 + rng.normal(size=(30, 3))
    samples = np.concatenate([X[:12] + 0.05 * rng.normal(size=(12, 3)), 3.0 + rng.normal(size=(10, 3))])
    nearest = np.inf
    for _ in range(60):
        ways = rng.choice([-1.0, 1.0], 3)

        def mixture(index, share, ways=ways):
            center = share @ X[index]
            return center, float(center @ center) * (1.0 + off * ways[0])

        def products(center, ways=ways):
            return samples @ center + off * ways[1] * np.linalg.norm(samples, axis=1) * np.linalg.norm(center)

        model = SimpleNamespace(norms=np.linalg.norm(X, axis=1), mixture=mixture)
        squares = np.square(samples).sum(axis=1) * (1.0 + off * ways[2])
        index = rng.permutation(12)[:2]
        share = rng.dirichlet(np.ones(2))
        found = Distances(model, squares, products, off).of(index, share)
        true = np.linalg.norm(samples - share @ X[index], axis=1)
        assert np.all(found >= true)
        nearest = min(nearest, (found**2 - true**2).min())
        assert np.all(found**2 <= true**2 + 8.1 * off * (np.linalg.norm(samples, axis=1) + 9.0) ** 2)
    assert nearest < 1.0


@pytest.mark.parametrize("name", ["svm", "quantile", "svr"])
def test_levers_of_a_pair_lie_in_the_box_and_their_offsets_are_not_too_good(name):
    for seed in range(6):
        model = free_problem(name, "plain", seed, n=60, weighted=seed % 2 == 1)
        C = 0.8
        rng = np.random.default_rng(seed)
        theta = rng.uniform(model.lo, model.hi)
        found = model.certify(C, rng.normal(size=model.rows.d), theta)
        found.residue, found.intercept = 0.01, 3.0
        ready = pair_levers(found, model, 1.2 * C)
        count, own = ready.levers.shape[1], model.signless
        assert len(ready.rows) == count and count % 2 == 0
        np.testing.assert_allclose(ready.duals, model.margins(found.total))
        G = np.stack([model.margins(e) for e in np.eye(model.rows.d)], axis=1)
        start, said = model.signs * found.theta, 0
        center = 0.5 * (found.point.vector + C * found.total)
        foremost = own.kinks - model.signs * (G @ center)  # at the pair's own parameter
        for k in range(count):
            index, share = ready.rows[k]
            side = 1.0 if 2 * k < count else -1.0
            carried = ready.levers[2, k]
            if carried <= 0.0:
                continue
            assert share.sum() == pytest.approx(1.0) and np.all(share > 0.0)
            room = (own.hi - start if side > 0 else start - own.lo) - 0.01
            order = [i for i in np.argsort(-side * foremost) if room[i] > 0.0]
            assert index.tolist() == order[: index.size]
            assert carried == pytest.approx(room[index[:-1]].sum() + share[-1] * carried)
            moved = start[index] + side * share * carried
            assert np.all(moved <= own.hi[index] - 0.01 * (side > 0) + 1e-12)
            assert np.all(moved >= own.lo[index] + 0.01 * (side < 0) - 1e-12)
            for at in (0.3, 1.0, 4.0):
                c = 0.5 * (found.point.vector + at * found.total)
                tau = share @ (own.kinks[index] - model.signs[index] * (G[index] @ c))
                off = model.rounding * share @ (np.abs(own.kinks[index]) + model.norms[index] * 0.5 * (
                    np.linalg.norm(found.point.vector) + at * np.linalg.norm(found.total)))  # fmt: skip
                given = ready.levers[0, k] + at * ready.levers[1, k]
                assert side * given <= side * tau - 0.9 * off
                assert side * given >= side * tau - 2.0 * off - 1e-11
            said += 1
        assert said > 4
        numbers = ready.pair
        assert numbers[:3] == pytest.approx([found.point.sqnorm, found.total_sq, found.inner])
        sizes = np.sqrt(found.point.sqnorm) + C * np.sqrt(found.total_sq)
        assert numbers[8] == pytest.approx(model.rounding * 0.5 * sizes)
        np.testing.assert_array_equal(numbers[3:8], [
            found.slack, found.sum_error, found.total_error, found.relative, found.shift,
        ])  # fmt: skip


def test_behind_a_kernel_the_rounding_of_a_pair_is_that_of_its_sums():
    model = free_problem("svm", "plain", 0, n=40)
    found = model.certify(1.0, np.ones(model.rows.d), 0.5 * np.ones(model.size))
    plain = pair_levers(found, model, 1.0)
    point = KernelPoint(found.theta, found.point.products, found.point.sqnorm, 1.0, 0.0)
    other = SimpleNamespace(**{name: getattr(found, name) for name in (
        "C", "theta", "residue", "total_sq", "inner", "slack", "sum_error", "relative", "shift", "intercept")},
        point=point, total=model.margins(found.total), total_error=1e-6)  # fmt: skip
    behind = pair_levers(other, model, 1.0)
    assert behind.duals is other.total
    assert behind.pair[8] == pytest.approx(plain.pair[8] + model.rounding * np.sqrt(1e-6 / 1e-14))


@pytest.mark.parametrize("name", ["svm", "lad", "quantile"])
def test_what_is_decided_for_a_range_holds_at_each_of_its_optima(name):
    decided = 0
    for seed in range(2):
        model = free_problem(name, "plain", seed, n=60, d=3)
        grid = [0.05, 0.055]
        (_, near), _ = free_walk(model, grid, tol=1e-9)
        low, high = 0.05, 0.06
        G = np.stack([model.signs * model.margins(e) for e in np.eye(model.rows.d)], axis=1)
        found = LeverRange(near, low, high).decide(model, lambda center, G=G: G @ center)
        for C in (low, 0.055, high):
            _, t = cone_solution(model, C)
            below = model.signs * t  # of forms without signs
            assert np.all(below[found < 0] < 1e-5) and np.all(below[found > 0] > -1e-5)
        decided += np.count_nonzero(found)
    assert decided > 20
