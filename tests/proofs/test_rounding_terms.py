"""Bounds on rounding, term by term, against the same formulas in fractions: nothing missing, nothing wasted."""

import math
from fractions import Fraction as F

import numpy as np
import pytest

from screenpath.kernels.problem import box as kernels
from screenpath.kernels.rows import double
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.numbers import rounding

U = F(1, 2**53)


def close(value, exact, wide=1e-12):
    """Tell whether a bound is at least the exact formula, and hardly more."""
    return F(value) >= exact * (1 - F(1, 10**15)) and F(value) <= exact * (1 + F(wide))


def gamma(k):
    return k * U / (1 - k * U)


class Plain:
    """What ``rounding`` asks of a certificate."""

    def __init__(self, primal, gap, rounding=0.0, primal_error=0.0):
        self.primal, self.gap, self.rounding, self.primal_error = primal, gap, rounding, primal_error


class Whole(Plain, rounding.Proven):
    pass


def test_gamma_is_higham_lemma_3_1():
    for k in (1, 7, 1000.0, 1e9):
        assert close(rounding.gamma(k), gamma(F(k)))
        assert kernels.relative_error(k) == rounding.gamma(k)
    for k in (2.0**52, 2.0**53, 1e30):
        assert rounding.gamma(k) == math.inf == kernels.relative_error(k)
    assert rounding.gamma(0.999 * 2.0**52) < math.inf


def test_tolerances_are_met_whatever_the_rounding_of_the_primal():
    assert rounding.meets(Plain(2.0, 1.9e-6), 1e-6) and not rounding.meets(Plain(2.0, 2.1e-6), 1e-6)
    assert not rounding.meets(Plain(2.0, 1.9e-6, primal_error=0.2), 1e-6)
    assert rounding.meets(Plain(2.0, 1.7e-6, primal_error=0.2), 1e-6)
    assert not rounding.meets(Plain(2.0, 2e-6), 1e-6)  # the product of two floats may lie above the exact one
    assert rounding.meets(Plain(0.0, 0.0), 1e-6) and not rounding.meets(Plain(0.0, 0.0, primal_error=1e-9), 1e-6)
    assert not rounding.meets(Plain(math.inf, math.inf), 1e-6)  # nor is infinity a part of infinity
    assert not rounding.meets(Plain(0.0, 1e-300), 1e-6) and not rounding.meets(Plain(1.0, math.nan), 1e-6)
    for gap, primal, error in (
        (1e-6, 1.0, 0.0), (9e-7, 1.0, 0.05), (9e-7, 1.0, 5e-7), (9e-7, 1.0, 0.2), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0),
        (math.inf, math.inf, 0.0),
    ):  # fmt: skip
        plain = Plain(primal, gap, 0.0, error)  # a compiled walk leaves a blurred primal value to the loop
        sure = rounding.meets(plain, 1e-6) and not rounding.blurred(plain, 1e-6)
        assert kernels.meets(gap, primal, error, 1e-6) == sure
    assert close(rounding.target(Plain(3.0, 0.0, primal_error=1.0), 0.5), F(1) / (1 + 8 * U))


def test_only_rounding_stands_between():
    for plain, tol, alone in (
        (Plain(1.0, 5.0, 4.999999), 1e-5, True), (Plain(1.0, 5.0, 4.9), 1e-5, False),
        (Plain(math.inf, math.inf, 1.0), 1e-5, False), (Plain(1.0, 3e-6, 0.0, 3.0), 1e-6, True),
        (Plain(1.0, 3e-6, 0.0, 1.0), 1e-6, False), (Plain(100.0, 5e-4, 0.0), 1e-5, True),
        (Plain(0.01, 1e-6, 0.0), 1e-5, False),
    ):  # fmt: skip
        assert rounding.meets_but_for_rounding(plain, tol) == alone
        numbers = plain.gap, plain.rounding, plain.primal, plain.primal_error
        assert kernels.meets_but_for_rounding(*numbers, tol) == alone


def test_rounding_is_most_of_a_gap_beyond_its_half():
    assert rounding.is_most(Plain(1.0, 4.0, 2.1)) and not rounding.is_most(Plain(1.0, 4.0, 1.9))
    assert not rounding.is_most(Plain(1.0, 0.0)) and not rounding.is_most(Plain(1.0, math.inf, math.nan))


def test_the_reported_dual_is_below_and_the_relative_gap_is_of_the_primal():
    one = Whole(5.0, 1.0, primal_error=0.25)
    assert (one.dual, one.highest, one.rel_gap) == (3.75, 5.25, 0.2)
    assert (
        Whole(0.0, 0.0).rel_gap == 0.0 and Whole(0.0, 1.0).rel_gap == math.inf and Whole(-1.0, 0.5).rel_gap == math.inf
    )


def some_bounds():
    rng = np.random.default_rng(5)
    bounds = 10.0 ** rng.uniform(-9.0, -3.0, kernels.TINY + 1)
    bounds[[kernels.ALL_NORMS, kernels.ALL_KINKS, kernels.ALL_ONES]] = 50.0, 30.0, 7.0
    bounds[kernels.LARGEST], bounds[kernels.UPDATE] = 2.0, 11.0
    return bounds


def test_sums_over_rows_drift_by_what_is_added():
    b = some_bounds()
    fresh, most, reach = F(b[kernels.FRESH]), F(b[kernels.ALL_NORMS]), F(b[kernels.LARGEST])
    for nonzero in (0.0, 3.0, 24.0, 26.0, 1000.0):
        assert close(kernels.sum_error(nonzero, b), fresh * min(F(nonzero) * reach, most))
    for changed in (1.0, 40.0, 60.0, 5000.0):
        each = gamma(F(changed) + 11) + F(b[kernels.PRODUCT])
        exact = F(0.125) + each * min(F(changed) * reach, 2 * most) + U * most
        assert close(kernels.sum_drift(0.125, changed, b), exact * (1 + 8 * U))


def test_a_product_is_off_by_the_norms_of_its_factors():
    b = some_bounds()
    w = np.array([3.0, -4.0, 0.0])
    a, rest = kernels.product_errors(w, b)
    exact = F(b[kernels.PRODUCT]) * (5 * (1 + F(b[kernels.FEATURE_SUM])) + F(b[kernels.HIDDEN]))
    assert close(a, exact) and close(rest, exact * F(b[kernels.HIDDEN]) + F(b[kernels.TINY]) + F(b[kernels.KINK]))
    assert kernels.product_errors(np.zeros(3), b) == (0.0, b[kernels.KINK])
    assert kernels.product_errors(np.array([1e-200, 0.0]), b)[0] > 0.0
    assert kernels.product_errors(np.array([0.0, 1e-200]), b)[1] > 0.0
    assert math.isnan(kernels.product_errors(np.array([math.nan, 0.0]), b)[0])


def exact_share(t, lo, hi, theta):
    return max(F(hi) * t, F(lo) * t) - F(theta) * t


def test_terms_of_a_row_for_every_margin_within_its_error():
    rng = np.random.default_rng(1)
    for _ in range(400):
        lo, hi = -float(rng.integers(0, 3)), float(rng.integers(0, 3))
        theta = float(rng.choice([lo, hi, lo + (hi - lo) * rng.random()]))
        c, margin, error = (float(v) for v in rng.integers(-40, 40, 3) / 8)
        error = abs(error)
        loss, share, most = kernels.row_terms(c, margin, lo, hi, theta, error)
        t = F(c) - F(margin)
        assert loss == max(F(hi) * t, F(lo) * t) and close(1 + share, 1 + exact_share(t, lo, hi, theta))
        worst = max(exact_share(t + F(error), lo, hi, theta), exact_share(t - F(error), lo, hi, theta))
        assert close(1 + most, 1 + worst)


def random_pair(rng, n=6, d=3):
    G = rng.normal(size=(n, d))
    lo, hi = -rng.uniform(0.0, 2.0, n), rng.uniform(0.0, 2.0, n)
    theta = np.where(rng.random(n) < 0.3, lo, np.where(rng.random(n) < 0.4, hi, lo + (hi - lo) * rng.random(n)))
    return G, rng.normal(size=n), lo, hi, theta, rng.normal(size=d), float(10.0 ** rng.uniform(-2.0, 2.0))


def test_terms_of_all_rows_are_the_sums_of_theirs():
    rng = np.random.default_rng(2)
    G, c, lo, hi, theta, w, _ = random_pair(rng)
    margins, norms = G @ w, np.linalg.norm(G, axis=1)
    a, b = 0.03, 0.002
    rows = [kernels.row_terms(c[i], margins[i], lo[i], hi[i], theta[i], a * norms[i] + b) for i in range(1, 5)]
    found = kernels.box_terms(c, margins, lo, hi, theta, norms, a, b, 1, 5)
    expected = [sum(r[0] for r in rows), c[1:5] @ theta[1:5], sum(r[1] for r in rows), sum(r[2] for r in rows)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_share_is_nothing_only_where_it_is_so_in_fractions():
    """Numbers whose products underflow, some of which vanish."""
    rng, small, share = np.random.default_rng(9), 2.0**-540, set()
    for _ in range(600):
        (c, margin), lo, hi, norm, b = small * rng.integers(-2, 3, 2), *(small * rng.integers(0, 3, 4) * [-1, 1, 1, 1])
        theta, a = rng.choice([lo, hi, 0.5 * (lo + hi)]), float(rng.integers(0, 2))
        numbers = (np.array([value]) for value in (c, margin, lo, hi, theta, norm))
        slack, t, error = kernels.box_terms(*numbers, a, b, 0, 1)[3], F(c) - F(margin), F(a) * F(norm) + F(b)
        worst = max(exact_share(t + error, lo, hi, theta), exact_share(t - error, lo, hi, theta))
        assert (slack > 0.0) == (worst > 0)
        share.add(worst > 0)
    assert share == {True, False}


def objectives(C, w, total, sum_error, xi, ell, plain, slack, a, b, bounds):
    """Return what ``box_objectives`` states, in fractions but for two roots."""
    C, xi, plain, slack, a, b = (F(v) for v in (C, xi, plain, slack, a, b))
    w, total = [F(v) for v in w], [F(v) for v in total]
    B = [F(v) for v in bounds]
    hidden, w_sq, total_sq = B[kernels.HIDDEN], sum(v * v for v in w), sum(v * v for v in total)
    apart_sq = sum((x - C * y) ** 2 for x, y in zip(w, total, strict=True))
    apart = F(math.sqrt(apart_sq)) * (1 + B[kernels.FEATURE_SUM])
    apart += (2 * U + B[kernels.SLOPE]) * C * F(math.sqrt(total_sq))
    apart += C * (F(sum_error) + hidden) + hidden
    rows = B[kernels.ROW_SUM] + B[kernels.SLOPE]
    slack = slack * (1 + rows) + 2 * B[kernels.SLOPE] * xi
    gap = (apart * apart / 2 + C * slack) * (1 + 16 * U)
    margins = a * B[kernels.ALL_NORMS] + b * B[kernels.ALL_ONES]
    error = rows * (xi + B[kernels.ALL_KINKS]) + margins
    primal_error = (B[kernels.FEATURE_SUM] * w_sq + C * (rows * xi + margins)) * (1 + 8 * U)
    inner = sum(x * y for x, y in zip(w, total, strict=True))
    return (
        w_sq, total_sq, inner, xi, F(ell), slack, error, w_sq / 2 + C * xi, primal_error, gap,
        gap - (apart_sq / 2 + C * plain),
    )  # fmt: skip


def test_objectives_are_bounds_of_what_they_are_made_of():
    rng = np.random.default_rng(3)
    for _ in range(30):
        *_, w, C = random_pair(rng)
        total = w / C + rng.normal(size=3) * rng.choice([0.0, 0.1])
        numbers = (C, w, total, *10.0 ** rng.uniform(-3.0, 0.0, 7), some_bounds())
        found, exact = kernels.box_objectives(*numbers), objectives(*numbers)
        for k, (value, expected) in enumerate(zip(found, exact, strict=True)):
            assert abs(F(float(value)) - expected) <= F(1, 10**12) * (abs(expected) + exact[9] * (k == 10)), k
        assert F(float(found[9])) >= exact[9] * (1 - F(1, 10**14))
    exactly = np.zeros(kernels.TINY + 1)
    nothing = kernels.box_objectives(2.0, np.zeros(2), np.zeros(2), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, exactly)
    assert nothing[9] == 0.0 == nothing[8]
    for w, total, slack in (
        ([1e-200, 0.0], [0.0, 0.0], 0.0), ([0.0, 0.0], [0.0, 1e-200], 0.0), ([0, 0], [0, 0], 1e-320),
    ):  # fmt: skip
        pair = np.array(w, dtype=float), np.array(total, dtype=float)
        assert kernels.box_objectives(1e-9, *pair, 0.0, 0.0, 0.0, 0.0, slack, 0.0, 0.0, exactly)[9] > 0.0


def test_decisions_keep_their_slack():
    norms, c = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 0.0]), np.array([1.0, 1.0, 1.0, -3.0, -3.0, 1.0])
    radius, extent, rounding_ = 0.5, 8.0, 1e-3
    reach = radius * norms + rounding_ * (norms * extent + np.abs(c))
    past = reach * np.array([1.001, 0.999, -1.001, -0.999, 1.001, -1.001])
    status = np.empty(6, dtype=np.int8)
    found = kernels.box_decide_ball(0.5 * (c + past), 2.0, norms, radius, extent, c, rounding_, status, 0, 6)
    assert status.tolist() == [-1, 0, 1, 0, -1, 1] and found == (2, 2)
    status[:] = 9
    assert kernels.box_decide_ball(c + past, 1.0, norms, radius, extent, c, rounding_, status, 1, 3) == (0, 1)
    assert status.tolist() == [9, 0, 1, 9, 9, 9]
    slack = rounding_ * (norms * extent + np.abs(c))
    lower, upper = (
        c + slack * np.array([1.01, 0.99, -9, -9, 1.01, -9]), c + slack * np.array([9, 9, -1.01, -0.99, 9, 0.5]),
    )  # fmt: skip
    assert kernels.box_decide(lower, upper, norms, extent, c, rounding_, status) == (2, 1)
    assert status.tolist() == [-1, 0, 1, 0, -1, 0]


def test_two_doubles_are_exact():
    rng = np.random.default_rng(6)
    for _ in range(300):
        a, b = (float(v) for v in rng.normal(size=2) * 10.0 ** rng.uniform(-100.0, 100.0, 2))
        assert sum(map(F, double.two_sum(a, b))) == F(a) + F(b)
        assert sum(map(F, double.two_product(a, b))) == F(a) * F(b)


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_in_twice_the_precision(sparse):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(9, 5)) * 10.0 ** rng.uniform(-8.0, 8.0, (9, 5))
    w, theta, C = rng.normal(size=5), rng.normal(size=9), 3.7
    csr = X.ravel(), np.tile(np.arange(5, dtype=np.int32), 9), np.arange(0, 46, 5)
    rows = matrix_of(csr if sparse else X)
    products, total, apart = np.empty((2, 9)), np.zeros((2, 5)), np.empty(5)
    double.double_products(rows, w, products)
    double.double_sum(rows, theta, total)
    double.double_difference(w, C, total, apart)
    for i in range(9):
        exact = sum(F(a) * F(b) for a, b in zip(X[i], w, strict=True))
        size = sum(abs(F(a) * F(b)) for a, b in zip(X[i], w, strict=True))
        assert abs(F(products[0, i]) + F(products[1, i]) - exact) <= 4 * gamma(13) ** 2 * size
        assert abs(products[1, i]) <= 2.0**-52 * abs(products[0, i])
    for j in range(5):
        exact = sum(F(t) * F(v) for t, v in zip(theta, X[:, j], strict=True))
        size = sum(abs(F(t) * F(v)) for t, v in zip(theta, X[:, j], strict=True))
        assert abs(F(total[0, j]) + F(total[1, j]) - exact) <= 4 * gamma(17) ** 2 * size
        left = F(w[j]) - F(C) * exact
        assert abs(F(apart[j]) - left) <= 4 * U * abs(left) + 200 * U * U * F(C) * size


def test_what_is_left_of_a_difference_that_cancels():
    rng = np.random.default_rng(8)
    for _ in range(50):
        C, total = float(10.0 ** rng.uniform(-3.0, 3.0)), rng.normal(size=(2, 4))
        total[1] *= 2.0**-54 * np.abs(total[0])
        w = C * total[0] * (1.0 + 2.0**-52 * rng.integers(-2, 3, 4))
        found = np.empty(4)
        double.double_difference(w, C, total, found)
        for j in range(4):
            exact = F(w[j]) - F(C) * (F(total[0, j]) + F(total[1, j]))
            assert abs(F(found[j]) - exact) <= 16 * U * U * abs(F(w[j]))
