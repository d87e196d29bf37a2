"""Certified bounds of cross-validation against every value of C tried, and in fractions."""

import math
from dataclasses import fields
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.cv import certify
from screenpath.cv.certify import ErrorBounds, FreeLine, HeldOut, Line, bend, certified_line, whole_weights
from screenpath.problem.box_types import Certificate
from screenpath.regions.geometry import GAP_ROUNDING, KernelPoint
from tests.cv.test_certify_rounding import fractions, inner
from tests.free_problems import free_problem
from tests.proofs.test_regions import best, problem, reference

COUNT = 101


def test_whole_weights_are_in_the_same_proportion():
    rng = np.random.default_rng(0)
    cases = [
        [2.0, 4.0, 6.0], [0.5, 0.25, 3.0], [0.1, 0.2, 0.3], [0.0, 0.0], [2.0**62, 2.0**61], [3.0 * 2.0**60, 2.0], [],
        [3.0 * 2.0**62, 2.0**62 + 2.0**20],
        [1e300, 1.0, 3e-300], [2.0**62, 0.5, 0.0], list(rng.uniform(0.0, 5.0, 6)), [6.0, 9.0], [0.75, 1.5],
    ]  # fmt: skip
    for given in cases:
        found = whole_weights(given)
        exact = [F(w) for w in given]
        assert all(isinstance(v, int) for v in found.tolist()) and math.gcd(*found.tolist()) in (0, 1)
        total, whole = sum(exact), sum(found.tolist())
        assert all(F(v) * total == w * whole for v, w in zip(found.tolist(), exact, strict=True))
        assert (total == 0) == (whole == 0) and (found.dtype == np.int64) == (whole < 2**62)


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_the_line_of_a_pair_holds_its_optimum_and_counts_what_w_gets_wrong(size):
    for seed in range(8):
        model = problem(seed, "svm", size)
        pair = reference(model, 0.7, seed)
        rng = np.random.default_rng(seed)
        X, signs = rng.normal(size=(20, 2)), rng.choice([-1.0, 1.0], 20)
        products = X @ pair.point.vector
        products[:3] = 0.0
        fold = HeldOut.of(X, signs, [], rng.integers(1, 5, 20).astype(float))
        line = certified_line(pair, X, products, fold)
        w, _ = best(model, 0.7)
        away = sum((a - F(float(b))) ** 2 for a, b in zip(w, line.center, strict=True))
        assert away <= F(line.radius_sq) <= 1.5 * float(away) + 3.0 * pair.gap
        wrong = [w for w, p, s in zip(fold.weights.tolist(), products.tolist(), signs.tolist(), strict=True)
                 if (p > 0.0) != (s > 0.0)]  # fmt: skip
        assert line.errors == sum(wrong) and (line.xi, line.xi_error, line.C) == (pair.xi, pair.error, 0.7)


def test_a_centre_that_cancels_is_rounded_as_its_parts_are():
    rng = np.random.default_rng(1)
    for C in (0.3, 7.0):
        total = rng.normal(size=6)
        w = -C * total * (1.0 + 1e-15 * rng.normal(size=6))
        point = SimpleNamespace(vector=w, sqnorm=float(w @ w))
        pair = SimpleNamespace(
            C=C, point=point, total=total, total_sq=float(total @ total), xi=1.0, error=0.0, inner=float(total @ w),
            slack=0.0, sum_error=0.0, total_error=0.0, relative=0.0, intercept=None,
        )  # fmt: skip
        size = 1e5 if C < 1.0 else 1.0
        X = size * rng.normal(size=(200, 6))
        fold = HeldOut.of(X, np.ones(200), [])
        line = certified_line(pair, X, X @ w, fold)
        exact = [(a + F(C) * b) / 2 for a, b in zip(fractions(w), fractions(total), strict=True)]
        for side in (1, -1):
            found = fold.margins(line, np.full(200, float(side)))
            true = [side * sum(a * b for a, b in zip(fractions(x), exact, strict=True)) for x in X]
            assert all(F(float(m)) <= t for m, t in zip(found, true, strict=True))
            assert found.min() > -1e-10 * size


def test_behind_a_kernel_the_rounding_is_that_of_sums_over_the_rows():
    rng, C = np.random.default_rng(2), 3.0
    vector, products = rng.normal(size=5), rng.normal(size=5)
    point = KernelPoint(vector, products, 4.0, 1.0, 0.0)
    pair = SimpleNamespace(C=C, point=point, total=products, total_sq=0.25, xi=1.5, error=0.125, inner=0.0, slack=2.0,
                           sum_error=0.0, total_error=1e-10, relative=0.0, intercept=None)  # fmt: skip
    fold = HeldOut(np.ones(4), np.ones(4), np.ones(4, dtype=np.int64), [])
    line = certified_line(pair, None, np.ones(4), fold)
    assert line.center is vector and line.trained is products and line.radius_sq > 2.0 * C
    own = 0.5 * (2.0 + C * 0.5)
    # 4 GAP_ROUNDING extent^2 is what is added for the rounding of a distance: at least that of the two sums
    assert line.extent == pytest.approx(own + C * math.sqrt(1e-10 / GAP_ROUNDING))


def test_a_bend_is_hardly_above_what_it_may_be():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        centers, (xi0, xi1) = rng.normal(size=(2, 3)), 10.0 * rng.normal(size=2)
        first, second = (Line(C, c, c, 0.1, xi, 0.0, c[:1], 4.0, 0)
                         for C, c, xi in zip((1.0, 3.0), centers, (xi0, xi1), strict=True))  # fmt: skip
        exact = 2 * (F(xi0) - F(xi1)) - inner(centers[0] - centers[1], centers[0] - centers[1])
        assert max(float(exact), 0.0) <= bend(first, second) + 1e-12 <= max(float(exact), 0.0) + 1e-10


def test_no_point_outside_an_interval_is_uncertain_in_fractions():
    """Bends that are all of the radius between the ends, and others that are nothing beside it."""
    inside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, scale = 12, 10.0 ** rng.uniform(-8.0, 12.0)
        norms, (r0, r1) = rng.uniform(0.5, 2.0, n), 10.0 ** (rng.uniform(-4.0, 4.0, 2) if seed % 2 else np.zeros(2))
        edge = [norms * np.sqrt(r) * (1.0 + 10.0 ** rng.uniform(-16.0, 0.5, n)) for r in (r0, r1)]
        edge[0][:3] *= 1.0 - 2.0**-52 * rng.integers(0, 3, 3)
        fold, center = HeldOut(np.ones(n), norms, np.ones(n, dtype=np.int64), []), np.zeros(1)
        first = Line(1.0, center, center, float(r0), scale, 0.0, edge[0], 0.0, 0)
        second = Line(2.0, center, center, float(r1), 0.0, 0.0, edge[1], 0.0, 0)
        start, end = first.undecided(fold, second, np.ones(n))
        K = F(bend(first, second))
        for i in range(n):
            p0, p1, norm = F(float(edge[0][i])), F(float(edge[1][i])), F(float(norms[i]))
            ends = [F(float(start[i])), F(float(end[i]))]
            tried = [F(0), F(1), F(1, 2), F(1, 10**6)]
            tried += [s * (1 - F(1, 2**60)) for s in ends[:1]] + [1 - (1 - s) * (1 - F(1, 2**60)) for s in ends[1:]]
            for s in tried:
                if ends[0] <= s <= ends[1]:
                    continue
                p = (1 - s) * p0 + s * p1
                assert p > 0 and p * p > norm**2 * ((1 - s) * F(float(r0)) + s * F(float(r1)) + s * (1 - s) * K), seed
            inside += 0.0 < start[i] <= end[i] < 1.0
    assert inside > 50


class Drawn(FreeLine):
    """A line whose samples are undecided on intervals that are drawn for each side, or on none."""

    def __init__(self, C, seed, m, errors, certain):
        super().__init__(C, *(np.zeros(0) for _ in range(4)), errors)
        object.__setattr__(self, "drawn", (seed, m, certain))

    def undecided(self, fold, second, side):
        seed, m, _ = self.drawn
        assert second.C > self.C
        rng = np.random.default_rng([seed, int(np.all(side == fold.signs))])
        ends = np.sort(rng.choice(COUNT, (2, m)), axis=0) / (COUNT - 1)
        none = rng.random(m) < 0.3
        return np.where(none, 1.0, ends[0]), np.where(none, 0.0, ends[1])

    def certain_errors(self, fold):
        return self.drawn[2]


def folds_of(seed, grid, large=False):
    found = []
    for k in range(3):
        rng = np.random.default_rng([seed, k])
        m = int(rng.integers(4, 9))
        weights = rng.integers(1, 5, m).astype(np.int64)
        if large:
            weights[0] = 2**50 + int(rng.integers(1, 99))
        signs, top = rng.choice([-1.0, 1.0], m), int(weights.sum())
        lines = [Drawn(C, round(1e4 * C) + k, m, *rng.integers(0, top, 2).tolist()) for C in grid]
        found.append(HeldOut(signs, np.ones(m), weights, lines))
    return found


@pytest.mark.parametrize("large", [False, True])
def test_bounds_over_a_grid_are_those_of_every_value_of_C(large):
    """Means over folds of different weights, in fractions; the weakest point of a segment reaches its bound."""
    for seed in range(10):
        grid = [1.0, 1.5, 4.0, 5.0]
        folds = folds_of(seed, grid, large)
        bounds = ErrorBounds(folds)
        share = [F(1, fold.total * 3) for fold in folds]
        errors = [sum(v * fold.lines[k].errors for v, fold in zip(share, folds, strict=True)) for k in range(4)]
        assert [F(e, bounds.denominator) for e in bounds.errors] == errors and bounds.grid == grid
        sure = [sum(v * fold.lines[k].drawn[2] for v, fold in zip(share, folds, strict=True)) for k in range(4)]
        lowest, first = min(errors), errors.index(min(errors))
        lowers = []
        for k, segment in enumerate(bounds.segments):
            at = {True: [], False: []}  # of every s: the weight of samples not certainly wrong, not certainly right
            for wrong, values in at.items():
                cut = [fold.lines[k].undecided(fold, fold.lines[k + 1], (-1.0 if wrong else 1.0) * fold.signs)
                       for fold in folds]  # fmt: skip
                for s in np.arange(COUNT) / (COUNT - 1):
                    values.append(sum(
                        v * int(fold.weights[(start <= s) & (s <= end)].sum())
                        for v, fold, (start, end) in zip(share, folds, cut, strict=True)
                    ))  # fmt: skip
            lowers.append(1 - max(at[True]))
            assert F(segment.lower, bounds.denominator) == lowers[-1]
            assert F(segment.upper, bounds.denominator) == max(at[False])
            assert (segment.low, segment.high) == (grid[k], grid[k + 1])
            place = (segment.weakest - segment.low) / (segment.high - segment.low) * (COUNT - 1)
            near = [at[True][i] for i in {math.floor(place + 1e-6), math.ceil(place - 1e-6)}]
            assert max(near) == max(at[True])
        assert bounds.best == first and F(bounds.lower, bounds.denominator) == min(lowers)
        difference = max(lowest - min(lowers), F(0))
        assert bounds.difference == pytest.approx(float(difference), abs=1e-15)
        record = bounds.record()
        assert (record["cmin"], record["cmax"], record["best_C"]) == (1.0, 5.0, grid[first])
        assert record["best_error"] == pytest.approx(float(lowest))
        assert record["lower_bound"] == pytest.approx(float(min(lowers)))
        assert record["difference"] == bounds.difference
        for target in (0.0, 0.1, 0.3, float(difference)):
            limit = lowest - F(target)
            weak = sorted((low, C) for low, C in zip(lowers, grid, strict=False) if low < limit)
            assert [s.low for s in bounds.weak(target)] == [C for _, C in weak]
            assert bounds.loose(target) == [C for C, e in zip(grid, sure, strict=True) if e < limit]


def test_a_finer_grid_forgets_the_segments_of_what_was_solved_again():
    bounds = ErrorBounds(folds_of(0, [1.0, 2.0, 3.0]))
    first, second = bounds.segments
    finer = folds_of(0, [1.0, 2.0, 2.5, 3.0])
    for fold in finer:  # another line at 3
        fold.lines[2] = Drawn(2.5, 77, fold.signs.size, 0, 0)
    bounds.update(finer, again=[3.0])
    assert bounds.grid == [1.0, 2.0, 2.5, 3.0] and bounds.segments[0] is first and len(bounds.segments) == 3
    bounds.update(finer, again=[2.0])
    assert bounds.segments[0] is not first and bounds.segments[0] == first
    assert second not in bounds.segments


# -- with a free intercept --------------------------------------------------------------------------------------------


def free_drawn(seed, m=60):
    """Return a line of four levers, the third of which says nothing, and a fold of held-out samples."""
    rng = np.random.default_rng(seed)
    w, total = rng.normal(size=(2, 2))
    pair = np.array([w @ w, total @ total, w @ total, 0.1, 0.01, 0.01, 0.01, 0.02, 0.05])
    levers = np.array([[0.5, 0.2, 9.0, -0.1], [0.1, -0.2, 9.0, 0.1], [2.0, 0.4, 0.0, 1.0]])
    apart = rng.uniform(0.0, 2.0, (4, m))
    line = FreeLine(0.9, pair, 3.0 * rng.normal(size=(2, m)), levers, apart, 0)
    return line, HeldOut(rng.choice([-1.0, 1.0], m), rng.uniform(0.0, 1.0, m), rng.integers(1, 9, m), [])


def test_a_sample_is_certain_where_some_lever_of_its_side_shows_it():
    counts = np.zeros(2, dtype=int)
    for seed in range(20):
        line, fold = free_drawn(seed)
        m = fold.signs.size
        for low, high in ((0.9, 0.9), (0.8, 1.3)):
            shown = np.zeros((2, m), dtype=bool)
            for k in (0, 1, 3):
                shown[int(k == 3)] |= line.shows(k, np.arange(m), line.apart[k], fold.norms, low, high)
            for side in (fold.signs, -fold.signs):
                expected = np.where(side > 0.0, shown[0], shown[1])
                assert np.array_equal(line.certain(fold, low, high, side), expected)
                counts[int(low == high)] += np.count_nonzero(expected)
            if low == high:
                wrong = np.where(fold.signs < 0.0, shown[0], shown[1])
                assert line.certain_errors(fold) == fold.weights[wrong].sum()
    assert np.all(counts > 50) and counts[0] < counts[1]


class Piecewise(FreeLine):
    """A line that is sure of each sample for ranges within two pieces of its own."""

    def __init__(self, C, ranges):
        super().__init__(C, *(np.zeros(0) for _ in range(4)), 0)
        object.__setattr__(self, "ranges", ranges)

    def certain(self, fold, low, high, side):
        return np.any([(a <= low) & (high <= b) for a, b in self.ranges], axis=0)


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.3), (1.0, 20.0), (0.01, 0.9), (3.0, 3.0 + 1e-9)])
def test_what_is_undecided_between_two_lines_is_a_range_of_pieces(first, second):
    """A range of four pieces, each as long as the others by ratio: what is sure of three leaves the fourth."""
    cuts = first * (second / first) ** (np.arange(5) / 4.0)
    cuts[-1] = second
    slack = 1e-3 * (cuts[1] - cuts[0])
    for piece in range(4):
        for holes in ([piece], [piece, 3]):
            low = np.array([cuts[holes[0]]])
            high = np.array([cuts[max(holes) + 1]])
            none, every = np.full(1, np.inf), np.full(1, -np.inf)
            one = Piecewise(first, [(every, low + slack), (none, none)])
            two = Piecewise(second, [(high - slack, none), (none, none)])
            start, end = one.undecided(None, two, np.ones(1))
            step = second - first
            assert start == pytest.approx((low - first) / step, abs=1e-6)
            assert end == pytest.approx((high - first) / step, abs=1e-6)
            assert start <= (low - first) / step + 1e-12 and end >= (high - first) / step - 1e-12
    sure = Piecewise(first, [(np.full(1, -np.inf), np.full(1, np.inf))])
    start, end = sure.undecided(None, sure_of(second), np.ones(1))
    assert start > end


def sure_of(C):
    return Piecewise(C, [(np.full(1, np.inf), np.full(1, -np.inf))])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_line_of_a_pair_with_an_intercept_knows_forms_and_distances(sparse, monkeypatch):
    model = free_problem("svm", "plain", 1, n=50)
    C, rng = 1.7, np.random.default_rng(3)
    pair = model.certify(C, 0.3 * rng.normal(size=4), 0.5 * np.ones(50))
    asked, own = [], certify.pair_levers
    monkeypatch.setattr(certify, "pair_levers", lambda *of: asked.append(of) or own(*of))
    X = np.column_stack([rng.normal(size=(20, 4)), np.ones(20)])
    forms = X[:, :4] @ pair.point.vector + pair.intercept
    forms[:4] = 0.0
    fold = HeldOut(rng.choice([-1.0, 1.0], 20), np.linalg.norm(X, axis=1), rng.integers(1, 9, 20), [])
    line = certified_line(pair, sp.csr_array(X) if sparse else X, forms, fold, model)
    assert line.C == C and asked[0][2] > C
    np.testing.assert_allclose(line.forms, [X[:, :4] @ pair.point.vector, X[:, :4] @ pair.total])
    assert line.errors == fold.weights[(forms > 0.0) != (fold.signs > 0.0)].sum()
    ready = own(*asked[0])
    known = 0
    for k, (index, share) in enumerate(ready.rows):
        if ready.levers[2, k] > 0.0:
            center, _ = model.mixture(index, share)
            true = np.linalg.norm(X[:, :4] - center, axis=1)
            assert np.all(line.apart[k] >= true) and np.all(line.apart[k] <= true + 1e-4)
            known += 1
        else:
            assert not line.apart[k].any()
    assert known > 3


def test_behind_a_kernel_the_forms_are_freed_of_the_intercept_and_products_are_as_off_as_is_said():
    model = free_problem("svm", "plain", 1, n=50)
    C, rng, off = 1.7, np.random.default_rng(3), 0.01
    plain = model.certify(C, 0.3 * rng.normal(size=4), 0.5 * np.ones(50))
    point = KernelPoint(plain.theta, plain.point.products, plain.point.sqnorm, 1.0, 0.0)
    values = {part.name: getattr(plain, part.name) for part in fields(Certificate)}
    total = model.margins(plain.total)
    pair = Certificate(**{**values, "point": point, "total": total, "intercept": 2.5})
    samples = rng.normal(size=(20, 4))
    norms = np.linalg.norm(samples, axis=1)

    class Held:
        """Held-out rows behind a kernel; products with a combination are too large by what they may be off by."""

        def __init__(self):
            self.norms, self.blocks = norms, SimpleNamespace(error=off)

        def __matmul__(self, center):
            return samples @ center + off * norms * np.linalg.norm(center)

    forms = samples @ plain.point.vector + 2.5
    fold = HeldOut(rng.choice([-1.0, 1.0], 20), norms, np.ones(20, dtype=np.int64), [])
    line = certified_line(pair, Held(), forms, fold, model)
    np.testing.assert_allclose(line.forms, [forms - 2.5, (forms - 2.5) / C])
    ready = certify.pair_levers(pair, model, certify.AHEAD * C)
    for k, (index, share) in enumerate(ready.rows):
        if ready.levers[2, k] > 0.0:
            center = model.mixture(index, share)[0]
            true = np.linalg.norm(samples - center, axis=1)
            reach = norms + share @ model.norms[index]
            assert np.all(line.apart[k] ** 2 >= true**2 + 4.0 * off * reach**2 - 2.0 * off * norms * reach)
