"""The certified bound: never above the true cross-validation error, whatever the accuracy of the solutions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.catalogue.losses import SVM
from screenpath.cv.certify import ErrorBounds, HeldOut, Line, bend, certified_line, heaviest
from screenpath.cv.choice import new_points, refine
from screenpath.cv.folds import draw_folds
from screenpath.problem.grid import log_grid
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_kernel_rule, parse_rule
from screenpath.screen.box import pair_radius
from screenpath.solve import make_solver
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import two_classes
from tests.kernel_problems import kernel_svm_model

FINE = 2000


def certificates(X, signs, grid, tol, max_epochs=100_000):
    """Return the model and the certificates of a path."""
    model = SVM.model(MemoryRows(X), signs)
    options = PathOptions(tol=tol, max_epochs=max_epochs)
    return model, [c for _, c in walk(model, grid, parse_rule("dvi+gap"), make_solver("auto", 0), options)]


def held_out(X, signs, split, grid, tol, max_epochs=100_000):
    """Return what the bound is made of for one fold."""
    training = split.training(signs.size)
    _, found = certificates(X[training], signs[training], grid, tol, max_epochs)
    test, true = X[split.held_out], signs[split.held_out]
    fold = HeldOut.of(test, true, [])
    fold.lines.extend(certified_line(c, test, test @ c.point.vector, fold) for c in found)
    return fold


def true_errors(X, signs, splits, grid):
    """Return the largest and the smallest cross-validation error that the optima at each C can have."""
    shares = []
    for split in splits:
        training = split.training(signs.size)
        _, found = certificates(X[training], signs[training], grid, 1e-11)
        test, true = X[split.held_out], signs[split.held_out]
        norms = np.linalg.norm(test, axis=1)
        margins = true * (test @ np.array([c.point.vector for c in found]).T).T
        slack = np.array([np.sqrt(2.0 * c.gap) for c in found])[:, None] * norms + 1e-12
        shares.append([(margins <= slack).mean(axis=1), (margins < -slack).mean(axis=1)])
    return np.mean(shares, axis=0)


def kernel_fold(X, signs, split, grid, tol):
    """Return certificates and held-out record of one fold behind an RBF kernel."""
    training = split.training(signs.size)
    rows = GramRows(X[training], KernelFunction("rbf", gamma=0.2), signs[training])
    options = PathOptions(tol=tol)
    model = kernel_svm_model(rows)
    found = [c for _, c in walk(model, grid, parse_kernel_rule("dvi+gap"), make_kernel_solver("auto"), options)]
    test, true = rows.held_out(X[split.held_out]), signs[split.held_out]
    products = [test @ (signs[training] * c.point.vector) for c in found]
    fold = HeldOut.of(test, true, [])
    fold.lines.extend(certified_line(c, test, p, fold) for c, p in zip(found, products, strict=True))
    return found, np.array(products), fold


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-6])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bound_behind_a_kernel_never_exceeds_the_true_error(seed, tol):
    X, signs = two_classes(n=60, d=3, seed=seed)
    splits = draw_folds(60, 3, 1, seed, signs)
    certified = ErrorBounds([kernel_fold(X, signs, split, log_grid(0.01, 10.0, 12), tol)[2] for split in splits])
    fine = log_grid(0.01, 10.0, 300)
    shares = []
    for split in splits:
        found, products, record = kernel_fold(X, signs, split, fine, 1e-10)
        slack = np.array([np.sqrt(2.0 * c.gap) for c in found])[:, None] * record.norms + 1e-12
        margins = record.signs * products
        shares.append([(margins <= slack).mean(axis=1), (margins < -slack).mean(axis=1)])
    most, least = np.mean(shares, axis=0)
    bounds = np.array([bound_at(certified, C) for C in fine])
    assert np.all(bounds[:, 0] <= most + 1e-12)
    assert np.all(bounds[:, 1] >= least - 1e-12)
    if tol == 1e-6:
        assert bounds[:, 0].max() > 0.0


def bound_at(certified, C):
    """Return the bounds of the segment that holds C."""
    k = min(np.searchsorted(certified.grid, C, side="right") - 1, len(certified.segments) - 1)
    segment = certified.segments[k]
    return segment.lower / certified.denominator, segment.upper / certified.denominator


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10_000), tol=st.sampled_from([0.5, 0.1, 1e-2, 1e-4, 1e-8]), points=st.integers(2, 30),
    epochs=st.sampled_from([1, 3, 100_000]),
)  # fmt: skip
def test_the_bound_never_exceeds_the_true_error(seed, tol, points, epochs):
    X, signs = two_classes(n=60, d=4, seed=seed)
    splits = draw_folds(60, 3, 1, seed, signs)
    grid = log_grid(1e-3, 10.0, points)
    certified = ErrorBounds([held_out(X, signs, split, grid, tol, epochs) for split in splits])
    fine = log_grid(1e-3, 10.0, FINE)
    most, least = true_errors(X, signs, splits, fine)
    bounds = np.array([bound_at(certified, C) for C in fine])
    assert np.all(bounds[:, 0] <= most + 1e-12)
    assert np.all(bounds[:, 1] >= least - 1e-12)
    assert certified.lower / certified.denominator <= most.min() + 1e-12


def test_the_bound_says_something():
    X, signs = two_classes(n=120, d=4, seed=1)
    splits = draw_folds(120, 4, 1, 0, signs)
    grid = log_grid(1e-2, 10.0, 60)
    certified = ErrorBounds([held_out(X, signs, split, grid, 1e-8) for split in splits])
    assert certified.lower > 0
    assert certified.difference <= 3 / 120
    assert min(certified.errors) / certified.denominator >= certified.lower / certified.denominator


def test_the_ball_between_two_points_is_not_smaller_than_that_of_the_interpolated_pair():
    X, signs = two_classes(n=80, d=5, seed=3)
    for tol in (1e-1, 1e-3, 1e-9):
        model, (first, second) = certificates(X, signs, [0.05, 0.2], tol)
        fold = HeldOut.of(X, signs, [])
        lines = [certified_line(c, X, X @ c.point.vector, fold) for c in (first, second)]
        K = bend(*lines)
        for s in np.linspace(0.0, 1.0, 21):
            C = (1 - s) * 0.05 + s * 0.2
            theta = ((1 - s) * 0.05 * first.theta + s * 0.2 * second.theta) / C
            pair = model.certify(C, (1 - s) * first.point.vector + s * second.point.vector, np.clip(theta, 0.0, 1.0))
            found = (1 - s) * lines[0].radius_sq + s * lines[1].radius_sq + s * (1 - s) * K
            assert found >= pair_radius(pair, C) ** 2 * (1 - 1e-9) - 1e-12
            center = 0.5 * (pair.point.vector + C * pair.total)
            np.testing.assert_allclose(center, (1 - s) * lines[0].center + s * lines[1].center, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_undecided_intervals_are_those_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    m, d = 40, 3
    X, signs = rng.normal(size=(m, d)), np.ones(m)
    centers = rng.normal(size=d) + np.outer([0.0, 1.0], rng.normal(size=d) * rng.choice([0.0, 0.3]))
    r0, r1 = rng.choice([0.0, 0.1, 0.5], size=2)
    xi = rng.choice([0.0, 2.0])
    first = Line(1.0, centers[0], centers[0], r0 * r0, xi, 0.0, X @ centers[0], 1.0, 0)
    second = Line(2.0, centers[1], centers[1], r1 * r1, 0.0, 0.0, X @ centers[1], 1.0, 0)
    fold = HeldOut.of(X, signs, [first, second])
    start, end = first.undecided(fold, second, signs)
    K = bend(first, second)
    s = np.linspace(0.0, 1.0, 501)
    radius = np.sqrt((1 - s) * r0**2 + s * r1**2 + s * (1 - s) * K)
    value = X @ ((1 - s) * centers[0][:, None] + s * centers[1][:, None]) - np.linalg.norm(X, axis=1)[:, None] * radius
    inside = (s >= start[:, None]) & (s <= end[:, None])
    assert np.all(inside[value <= 0.0])  # nothing is called certain that is not
    assert np.all(~inside[value > 1e-3])  # and nothing that is clearly certain is given away


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=12))
def test_the_heaviest_point_is_found_exactly(triples):
    starts = np.array([min(a, b) for a, b, _ in triples]) / 9.0
    ends = np.array([max(a, b) for a, b, _ in triples]) / 9.0
    weights = np.array([w for _, _, w in triples])
    weight, point = heaviest(starts, ends, weights)
    brute = max(int(weights[(starts <= at) & (at <= ends)].sum()) for at in np.arange(10) / 9.0)
    assert weight == brute == int(weights[(starts <= point) & (point <= ends)].sum())
    assert heaviest(starts, ends, weights.astype(object))[0] == brute


def test_folds_of_unequal_size_weigh_alike():
    X, signs = two_classes(n=50, d=3, seed=2)
    splits = draw_folds(50, 4, 1, 0, signs)  # 13, 13, 12, 12
    grid = log_grid(0.01, 1.0, 5)
    folds = [held_out(X, signs, split, grid, 1e-8) for split in splits]
    certified = ErrorBounds(folds)
    for k in range(5):
        mean = np.mean([fold.lines[k].errors / fold.signs.size for fold in folds])
        assert certified.errors[k] / certified.denominator == pytest.approx(mean, abs=1e-15)


def refined(tol, target, budget):
    X, signs = two_classes(n=100, d=4, seed=4)
    splits = draw_folds(100, 3, 1, 0, signs)
    state = {"folds": [held_out(X, signs, split, log_grid(1e-2, 10.0, 4), tol) for split in splits]}
    certified, tols = ErrorBounds(state["folds"]), []

    def solve(points, tol):
        tols.append(tol)
        more = [held_out(X, signs, split, np.array(points), tol) for split in splits]
        merged = []
        for old, new in zip(state["folds"], more, strict=True):
            lines = {line.C: line for line in (*old.lines, *new.lines)}
            merged.append(HeldOut(old.signs, old.norms, old.weights, [lines[C] for C in sorted(lines)]))
        state["folds"] = merged
        certified.update(merged, again=points)
        return True

    return certified, refine(certified, target, budget, tol, solve), tols


def test_refining_reaches_the_target_from_a_coarse_and_inaccurate_start():
    certified, added, tols = refined(0.1, 0.02, 200)
    assert certified.difference <= 0.02
    assert 0 < added <= 200
    assert min(tols) < 0.1  # inaccurate solutions were made better
    assert len(certified.grid) == 4 + added


def test_refining_stops_at_the_budget():
    certified, added, _ = refined(1e-6, 0.0, 3)
    assert added <= 3
    assert len(certified.grid) == 4 + added


def test_new_points_lie_inside_weak_segments():
    certified, _, _ = refined(1e-6, 1.0, 0)
    points = new_points(certified, 0.0, 100)
    assert points == sorted(points)
    for point in points:
        segment = next(s for s in certified.segments if s.low < point < s.high)
        assert segment in certified.weak(0.0)
    assert len(new_points(certified, 0.0, 1)) == min(1, len(points))
