"""What rounding may have done to the certified bounds of cross-validation, against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.cv.certify import FreeLine, HeldOut, Line, bend
from screenpath.regions.lever import Distances


def line(C, center, radius_sq, xi, xi_error, products, extent):
    return Line(C, center, center, radius_sq, xi, xi_error, products, extent, 0)


def fractions(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def inner(a, b):
    return sum(x * y for x, y in zip(fractions(a), fractions(b), strict=True))


@pytest.mark.parametrize("size", [1.0, 1e-25])  # as float32 squares of the second are 0
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_margins_are_not_above_the_exact_ones_and_norms_not_below(storage, dtype, size):
    """Products of rows that nearly cancel, so that all that is left of them is rounding."""
    rng = np.random.default_rng(0)
    X, center = rng.normal(size=(60, 40)), rng.normal(size=40)
    X = (size * (X - np.outer(X @ center, center) / (center @ center))).astype(dtype)
    fold = HeldOut.of(storage(X), np.ones(60), [])
    one = line(1.0, center, 0.0, 0.0, 0.0, X @ center, float(np.linalg.norm(center)))
    for side in (1.0, -1.0):
        found = fold.margins(one, np.full(60, side))
        assert all(Fraction(float(m)) <= Fraction(side) * inner(x, center) for m, x in zip(found, X, strict=True))
    assert all(Fraction(float(norm)) ** 2 >= inner(x, x) for norm, x in zip(fold.norms, X, strict=True))


def test_a_bend_is_not_below_that_of_losses_as_large_and_as_small_as_they_may_be():
    nearest = np.inf
    for seed in range(200):
        rng = np.random.default_rng(seed)
        centers = 100.0 * rng.normal(size=3) + np.outer([0.0, 1.0], rng.normal(size=3) * rng.choice([0.0, 1e-6, 0.3]))
        (xi0, xi1), (e0, e1) = rng.normal(size=2), rng.uniform(0.0, 0.1, 2)
        extent = float(np.linalg.norm(centers, axis=1).max())
        first = line(1.0, centers[0], 0.1, xi0, e0, centers[:1], extent)
        second = line(2.0, centers[1], 0.1, xi1, e1, centers[:1], extent)
        step = [a - b for a, b in zip(fractions(centers[0]), fractions(centers[1]), strict=True)]
        exact = Fraction(xi0) + Fraction(e0) - Fraction(xi1) + Fraction(e1) - sum(v * v for v in step)
        found = bend(first, second)
        assert Fraction(found) >= max(exact, 0), seed
        nearest = min(nearest, found - float(exact))
    assert nearest < 1e-3


def test_no_sample_is_certain_whose_distance_only_seems_to_be_beyond_the_radius():
    """Samples within a few units of the last place of the radius at one end, and well beyond it at the other."""
    rng, close, n = np.random.default_rng(2), 0, 400
    for seed in range(10):
        norms, r = rng.uniform(0.5, 2.0, n), float(rng.uniform(0.1, 0.9))
        edge = norms * np.sqrt(r) * (1.0 + 2.0**-52 * rng.integers(-3, 4, n))
        far = norms * np.sqrt(r) * rng.uniform(1.1, 3.0, n)
        fold = HeldOut(np.ones(n), norms, np.ones(n, dtype=np.int64), [])
        center = np.zeros(1)
        ends = line(1.0, center, r, 0.0, 0.0, edge, 0.0), line(2.0, center, r, 0.0, 0.0, far, 0.0)
        for first, second in (ends, ends[::-1]):
            start, end = first.undecided(fold, second, np.ones(n))
            left = (start <= 0.0) & (start <= end) if first is ends[0] else (end >= 1.0) & (start <= end)
            exact = np.array([
                Fraction(p) ** 2 <= Fraction(x) ** 2 * Fraction(r)
                for p, x in zip(edge.tolist(), norms.tolist(), strict=True)
            ])  # fmt: skip
            assert np.all(left[exact]), seed
            close += int(np.count_nonzero(exact))
            assert np.all((start <= end).sum() <= n) and np.all(np.minimum(start, 1.0) >= 0.0)
    assert 0.2 < close / (20 * n) < 0.8


def test_distances_are_not_below_the_exact_ones():
    """Of samples next to a centre far from 0, whose distances cancel."""
    rng = np.random.default_rng(3)
    X = 1e3 + rng.normal(size=(30, 6))
    samples = np.concatenate([X[:10] + 1e-7 * rng.normal(size=(10, 6)), X[:1]])

    class Model:
        norms = np.linalg.norm(X, axis=1)

        @staticmethod
        def mixture(index, share):
            center = share @ X[index]
            return center, float(center @ center)

    distances = Distances(Model, np.square(samples).sum(axis=1), lambda center: samples @ center, 1e-13)
    for index in range(10):
        found = distances.of(np.array([index]), np.ones(1))
        for far, x in zip(found, samples, strict=True):
            apart = [a - b for a, b in zip(fractions(x), fractions(X[index]), strict=True)]
            assert Fraction(float(far)) ** 2 >= sum(v * v for v in apart)


def test_errors_are_certain_beyond_the_radius_alone():
    signs, norms = np.ones(5), np.full(5, 2.0)
    fold = HeldOut(signs, norms, np.array([1, 10, 100, 1000, 10000]), [])
    products = -2.0 * 0.5 * np.array([0.95, 1.0, 1.0 + 1e-9, -3.0, 3.0])
    assert line(1.0, np.zeros(1), 0.25, 0.0, 0.0, products, 0.0).certain_errors(fold) == 10100


class Known(FreeLine):
    """A line that is sure of each sample within a range of its own."""

    def __init__(self, C, low, high):
        super().__init__(C, *(np.zeros(0) for _ in range(4)), 0)
        object.__setattr__(self, "ranges", (low, high))

    def certain(self, fold, low, high, side):
        assert low <= high
        return (self.ranges[0] <= low) & (high <= self.ranges[1])


def test_between_two_lines_all_that_neither_is_sure_of_is_undecided():
    rng, whole, m = np.random.default_rng(6), 0, 300
    for first, second in ((1.0, 1.3), (0.01, 0.9), (3.0, 3.0 + 1e-9)):
        ends = (first, second)
        step, lines = second - first, []
        for C in ends:  # around the line's own C, or nothing at all
            below, above = C - step * rng.uniform(-0.1, 1.2, m), C + step * rng.uniform(-0.1, 1.2, m)
            lines.append(Known(C, below, above))
        start, end = lines[0].undecided(None, lines[1], np.ones(m))
        for s in np.linspace(0.0, 1.0, 201):
            C = (1.0 - s) * first + s * second if s < 1.0 else second
            sure = np.any([one.certain(None, C, C, None) for one in lines], axis=0)
            assert np.all(sure | ((start <= s + 1e-6) & (s - 1e-6 <= end)))
        whole += int(np.count_nonzero(start > end))
        assert start.min() >= 0.0 and end.max() <= 1.0
    assert whole > 30
