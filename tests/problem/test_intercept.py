"""The best intercept, dual points that sum to nothing, and certificates, against sorting and exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.catalogue.losses import LOSSES, SVM
from screenpath.errors import UsageError
from screenpath.kernels.problem import intercept as kernels
from screenpath.numbers.rounding import gamma
from screenpath.problem.intercept import Signless, balanced
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve.newton import Newton
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests.free_problems import SHAPES, free_problem, free_walk, objective
from tests.kernel_problems import kernel_svm_model
from tests.width import wide


def exact_interval(beta, lo, hi):
    """Return both ends of the minimisers of ``sum max(lo (beta - b), hi (beta - b))``, by trying every kink."""

    def value(b):
        return sum(max(low * (k - b), high * (k - b)) for k, low, high in zip(beta, lo, hi, strict=True))

    values = [value(b) for b in beta]
    best = [b for b, v in zip(beta, values, strict=True) if v == min(values)]
    return min(best), max(best)


@settings(max_examples=wide(50, 100), deadline=None)
@given(st.data())
def test_the_best_intercepts_are_those_of_every_kink_tried(data):
    n = data.draw(st.integers(2, 90))
    whole = st.integers(-4, 4)
    beta = data.draw(st.lists(whole, min_size=n, max_size=n))
    weights = [(1, 1), *data.draw(st.lists(st.tuples(*2 * [st.integers(0, 3)]), min_size=n - 1, max_size=n - 1))]
    lo, hi = [Fraction(-a) for a, _ in weights], [Fraction(b) for _, b in weights]
    found = Signless.of(*(np.array(v, dtype=float) for v in (beta, lo, hi)), np.ones(n, dtype=np.int8))
    kept = [k for k in range(n) if lo[k] < hi[k]]  # the others have no kink
    expected = exact_interval([Fraction(beta[k]) for k in kept], [lo[k] for k in kept], [hi[k] for k in kept])
    assert found.interval(np.zeros(n)) == tuple(map(float, expected))


def test_the_interval_of_many_different_kinks_holds_the_median():
    beta = np.random.default_rng(0).permutation(np.arange(1001.0))
    ones = np.ones(1001)
    found = Signless.of(beta, -ones, ones, np.ones(1001, dtype=np.int8))
    assert found.interval(np.zeros(1001)) == (500.0, 500.0)
    even = Signless.of(beta[beta > 0.0], -ones[1:], ones[1:], np.ones(1000, dtype=np.int8))
    assert even.interval(np.zeros(1000)) == (500.0, 501.0)


@pytest.mark.parametrize("n", [40, 300, 6000])
def test_rows_that_are_likely_change_nothing_but_the_time(n):
    """Whether the interval lies among them, beside them, or right at their end."""
    rng = np.random.default_rng(n)
    for k in range(20):
        beta = np.round(rng.normal(size=n), 3 if k % 2 else 12)
        weights = rng.integers(0, 3, n).astype(float) if k % 3 else np.ones(n)
        weights[:2] = 1.0
        found = Signless.of(beta, -weights, weights * (1.0 + (k % 5)), np.ones(n, dtype=np.int8))
        plain = found.best(beta)
        order = np.argsort(beta)
        near = int(np.searchsorted(beta[order], plain[0]))
        for first in (0, max(near - 9, 0), max(near - 1, 0), near, min(near + 1, n - 9), n - 9):
            assert found.best(beta, np.sort(order[first : first + 9])) == plain


def test_where_all_rows_pull_one_way_there_is_no_best_intercept():
    with pytest.raises(UsageError, match="two classes"):
        SVM.model(MemoryRows(np.eye(3)), np.ones(3), None, "free")
    with pytest.raises(UsageError, match="two classes"):
        SVM.model(MemoryRows(np.eye(3)), np.array([1.0, -1.0, 1.0]), np.array([1.0, 0.0, 2.0]), "free")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_balanced_dual_point_sums_to_what_is_said(data):
    n = data.draw(st.integers(2, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    scale = 10.0 ** data.draw(st.integers(-6, 6))
    lo, hi = -scale * rng.integers(0, 3, n), scale * rng.integers(0, 3, n)
    lo[0], hi[0], signs = -scale, scale, rng.choice([-1, 1], n).astype(np.int8)
    theta = np.clip(lo + (hi - lo) * rng.uniform(-0.5, 1.5, n), lo, hi)
    t, given_point = rng.normal(size=n), theta.copy()
    found = balanced(theta, t, lo, hi, signs, float(np.maximum(-lo, hi).max()))
    assert np.array_equal(theta, given_point) and np.all(found.theta >= lo) and np.all(found.theta <= hi)
    exact = abs(sum(Fraction(float(v)) * int(s) for v, s in zip(found.theta, signs, strict=True)))
    assert exact <= Fraction(found.residue)
    assert found.residue <= 1e-14 * scale * n
    assert balanced(found.theta, t, lo, hi, signs, float(np.maximum(-lo, hi).max())).theta is found.theta


def test_rows_nearest_to_their_kink_are_moved_first():
    ones, signs = np.ones(5), np.ones(5, dtype=np.int8)
    theta, t = np.array([1.0, 1.0, 1.0, 0.0, -1.0]), np.array([3.0, 0.2, 2.0, 0.1, -1.0])
    # The sum of 2: the row at 0.1 falls by its room of 1, then that at 0.2 by what is left.
    assert balanced(theta, t, -ones, ones, signs, 1.0).theta.tolist() == [1.0, 0.0, 1.0, -1.0, -1.0]


def test_the_sum_that_is_looked_at_is_bounded():
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e16):
        values = rng.normal(size=2000) * np.where(rng.random(2000) < 0.5, 1.0, scale)
        signs = rng.choice([-1, 1], 2000).astype(np.int8)
        found, error = kernels.excess(values, signs)
        exact = sum(Fraction(float(v)) * int(s) for v, s in zip(values, signs, strict=True))
        assert abs(Fraction(found) - exact) <= Fraction(error)
    for n, scale in ((1, 1e-300), (1023, 1e-5), (1024, 1e280), (1025, 3.0), (4000, 1.0)):
        values, signs = scale * rng.normal(size=n), rng.choice([-1, 1], n).astype(np.int8)
        found, error = kernels.excess(values, signs)
        exact = sum(Fraction(float(v)) * int(s) for v, s in zip(values, signs, strict=True))
        assert abs(Fraction(found) - exact) <= Fraction(error) <= 1e-12 * float(np.abs(values).sum())
    ends = rng.choice([0.0, 1.0, 0.75], 3000)  # whose sum is exact
    assert kernels.excess(ends, np.ones(3000, dtype=np.int8)) == (ends.sum(), 0.0)
    assert kernels.excess(np.zeros(3), np.ones(3, dtype=np.int8)) == (0.0, 0.0)
    assert kernels.excess(np.array([0.5, 0.25, -0.75]), np.ones(3, dtype=np.int8)) == (0.0, 0.0)


def exact_gap(model, C, w, b, theta) -> Fraction:
    """Return primal - dual of a pair whose dual point is feasible but for its sum, in exact arithmetic.

    The dual point is the nearest exact one: what the sum is off by is taken from the row nearest to its kink that can
    take it; the smallest gap over these rows is returned.
    """
    X = model.rows.X
    G = [[Fraction(float(v)) * int(s) for v in X[i % model.rows.n]] for i, s in enumerate(model.signs)]
    C, b, w = Fraction(C), Fraction(b), [Fraction(float(v)) for v in w]
    c, lo, hi = ([Fraction(float(v)) for v in a] for a in (model.c, model.lo, model.hi))
    signs, theta = [int(s) for s in model.signs], [Fraction(float(v)) for v in theta]
    t = [
        k - sum(x * v for x, v in zip(g, w, strict=True)) - s * b for k, g, s in zip(c, G, signs, strict=True)
    ]  # fmt: skip
    primal = sum(v * v for v in w) / 2 + C * sum(max(p * v, q * v) for p, q, v in zip(lo, hi, t, strict=True))
    off, gaps = sum(s * v for s, v in zip(signs, theta, strict=True)), []
    for i in range(len(theta)) if off else range(1):
        moved = list(theta)
        moved[i] -= signs[i] * off
        if not lo[i] <= moved[i] <= hi[i]:
            continue
        u = [sum(v * g[j] for v, g in zip(moved, G, strict=True)) for j in range(len(w))]
        dual = C * sum(k * v for k, v in zip(c, moved, strict=True)) - C * C * sum(v * v for v in u) / 2
        gaps.append(primal - dual)
    return min(gaps)


@pytest.mark.parametrize("name", LOSSES)
def test_no_certificate_is_below_the_gap_in_exact_arithmetic(name):
    """The bound on the gap holds for an exact dual point beside the stored one, rounding counted, sharpened or not."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scale = 10.0 ** rng.integers(-3, 5)
        X = rng.normal(size=(6, 2)) * scale + rng.choice([0.0, 1e5])
        y = np.where(np.arange(6) % 2, 1.0, -1.0) if name == "svm" else rng.normal(size=6)
        weights = rng.uniform(0.1, 3.0, 6)
        model = LOSSES[name].model(MemoryRows(X), y, weights, "free")
        for C in (1e-3 / scale, 1.0):
            for w in (rng.normal(size=2) / scale, None):
                start = rng.uniform(model.lo, model.hi)
                found = model.certify(C, w, model.certify(C, np.zeros(2), start).theta)
                for one in (found, model.sharpened(found, 1e-9)):
                    exact = exact_gap(model, C, one.point.vector, one.intercept, one.theta)
                    assert exact <= Fraction(one.gap), (seed, C)
                    value = objective(model, C, one.point.vector, one.intercept)
                    assert one.primal == pytest.approx(value, rel=1e-9)
            for step, one in free_walk(model, [C], tol=1e-12):
                assert exact_gap(model, C, one.point.vector, one.intercept, one.theta) <= Fraction(one.gap)
                assert step.gap == one.gap


@pytest.mark.parametrize("shape", SHAPES)
def test_a_certificate_is_restored_to_the_byte(shape):
    model = free_problem("svr", shape, 3)
    for _, found in free_walk(model, [0.01, 0.5]):
        again = model.restore(model.state(found))
        assert (again.gap, again.intercept, again.low, again.high) == (
            found.gap, found.intercept, found.low, found.high,
        )  # fmt: skip
        assert again.primal == found.primal and again.sum_error == found.sum_error


def exact_kernel_gap(Q, signs, C, b, theta) -> Fraction:
    """Return primal - dual at ``w = C sum theta_i z_i``, the nearest exact dual point taken, for the hinge loss."""
    C, b, theta = Fraction(C), Fraction(b), [Fraction(float(v)) for v in theta]
    n = len(theta)

    def products(point):
        return [sum(q * v for q, v in zip(row, point, strict=True)) for row in Q]

    w = [Fraction(float(float(C) * float(v))) for v in theta]  # the coefficients that are reported
    forms = products(w)
    primal = sum(a * f for a, f in zip(w, forms, strict=True)) / 2
    primal += C * sum(max(Fraction(0), 1 - f - s * b) for f, s in zip(forms, signs, strict=True))
    off, gaps = sum(s * v for s, v in zip(signs, theta, strict=True)), []
    for i in range(n) if off else range(1):
        moved = list(theta)
        moved[i] -= signs[i] * off
        if 0 <= moved[i] <= 1:
            own = products(moved)
            gaps.append(primal - C * sum(moved) + C * C * sum(v * q for v, q in zip(moved, own, strict=True)) / 2)
    return min(gaps)


def test_no_certificate_behind_a_kernel_is_below_the_gap_in_exact_arithmetic():
    """A cube of an inner product is exact in rational numbers; points near the optimum have the smallest gaps."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(7, 2)) + rng.choice([0.0, 30.0]), np.where(np.arange(7) % 3, 1.0, -1.0)
        model = kernel_svm_model(GramRows(X, KernelFunction("poly", 0.5, 3, 1.0), y), None, "free")
        rows = [[Fraction(float(v)) for v in row] for row in X]
        signs = [int(v) for v in y]
        cubes = [[(sum(u * v for u, v in zip(p, q, strict=True)) / 2 + 1) ** 3 for q in rows] for p in rows]
        Q = [[a * b * k for b, k in zip(signs, line, strict=True)] for a, line in zip(signs, cubes, strict=True)]
        scale = 1.0 / float(np.median(model.norms)) ** 2
        for C in (0.1 * scale, 30.0 * scale):
            rough = model.certify(C, None, rng.uniform(size=7))
            solver, options = make_kernel_solver("auto"), PathOptions(tol=1e-13)
            solved = [one for _, one in walk(model, [C], parse_rule("none"), solver, options)]
            for found in (rough, *solved):
                for one in (found, model.sharpened(found, 1e-9)):
                    gap = exact_kernel_gap(Q, signs, C, one.intercept, one.theta)
                    assert gap <= Fraction(one.gap) <= gap + Fraction(1e-9 * one.primal), (seed, C)
            again = model.restore(model.state(rough))
            assert (again.intercept, again.gap, again.residue) == (rough.intercept, rough.gap, rough.residue)


def closed_problem(name: str):
    """Return a model whose path begins with a closed form: as many rows on either side, or one in the middle."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30 if name != "one" else 31, 3)) + 2.0
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=len(X))
    if name == "svm":
        return SVM.model(MemoryRows(X), np.where(y > np.median(y), 1.0, -1.0), None, "free")
    if name == "kernel":
        rows = GramRows(X, KernelFunction("rbf", 0.3), np.where(y > np.median(y), 1.0, -1.0))
        return kernel_svm_model(rows, None, "free")
    return LOSSES["lad"].model(MemoryRows(X), y, None, "free")


@pytest.mark.parametrize("name", ["svm", "kernel", "one", "even"])
def test_the_closed_form_is_optimal_up_to_its_end_and_not_beyond(name):
    model = closed_problem(name)
    limit = model.closed_until
    assert 0.0 < limit < np.inf
    theta = model.closed_form()[0]
    for share, optimal in ((0.01, True), (0.999, True), (1.05, False)):
        found = model.certify(share * limit, None, theta)
        assert (found.gap <= 1e-9 * found.primal) == optimal, (share, found.gap / found.primal)
    solver = make_kernel_solver("auto") if name == "kernel" else Newton()
    grid = [0.3 * limit, 0.9 * limit, 1.3 * limit]
    steps = [step for step, _ in walk(model, grid, parse_rule("dvi"), solver, PathOptions(tol=1e-8))]
    assert [step.solver == "closed-form" for step in steps] == [True, True, False]
    assert all(step.status == "certified" for step in steps)


def test_with_more_of_one_class_no_closed_form_is_known_but_that_of_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.where(np.arange(20) < 6, 1.0, -1.0)
    assert SVM.model(MemoryRows(X), y, None, "free").closed_until == 0.0
    X[y > 0.0] = 1.0, 2.0  # every row of a class in one point, which is the mean of the other
    X[y < 0.0] = np.array([1.0, 2.0]) + np.repeat([[1.0, -1.0], [-1.0, 1.0]], 7, axis=0)
    model = SVM.model(MemoryRows(X), y, None, "free")
    assert model.closed_until > 1e5
    steps = [step for step, _ in free_walk(model, [1e-3, 1.0, 1e4])]
    assert {step.solver for step in steps} == {"closed-form"}
    assert all(step.status == "certified" and np.abs(step.coefficients[:-1]).max() < 1e-9 for step in steps)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_and_the_dual_point_that_products_alone_suggest(name):
    """A line search asks for the loss at the best intercept, and for a feasible corner of the box; rounding counts."""
    for seed in range(4):
        model = free_problem(name, "far from the origin" if seed % 2 else "plain", seed, n=24, weighted=seed > 1)
        rng = np.random.default_rng(seed)
        losses, near = model.losses(model.start(0.1)), gamma(model.size)
        products = model.margins(rng.normal(size=model.rows.d))
        found, off = losses(products)
        exact = [Fraction(float(c)) - Fraction(float(p)) for c, p in zip(model.c, products, strict=True)]
        ends = [[Fraction(float(v)) for v in values] for values in (model.lo, model.hi)]
        signs = model.signs.tolist()
        least = min(
            sum(max(lo * (t - s * b), hi * (t - s * b)) for t, s, lo, hi in zip(exact, signs, *ends, strict=True))
            for b in (s * t for s, t in zip(signs, exact, strict=True))
        )
        spread = float(np.maximum(-model.lo, model.hi) @ (np.abs(model.c) + np.abs(products))) * gamma(8)
        assert least <= Fraction(found * (1.0 + near) + off + spread)
        assert Fraction(found * (1.0 - near) - off - spread) <= least
        theta, lost, moved = model.corner(products)
        assert np.all((model.lo <= theta) & (theta <= model.hi))
        rest = abs(sum(s * Fraction(float(v)) for s, v in zip(signs, theta, strict=True)))
        assert rest * Fraction(model.largest_kink) <= Fraction(lost) * (1 + Fraction(1, 2**40))
        assert rest * Fraction(model.largest_norm) <= Fraction(moved) * (1 + Fraction(1, 2**40))
        between = (model.lo < theta) & (theta < model.hi)
        assert np.count_nonzero(between) <= 1  # a corner but for what makes up the sum
