"""The kernel model: where the solver starts, what a certificate has to sum again, what a resumed path knows."""


import numpy as np
import pytest

from screenpath.kernels.solve import start as kernels
from screenpath.problem import kernel
from screenpath.rows import gram
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.screen import parse_kernel_rule
from screenpath.solve.base import Solution
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import two_classes
from tests.kernel_problems import kernel_svm_model
from tests.plain import kernel_svm_path

OPTIONS = PathOptions(tol=1e-5)


def problem(n=90, seed=0, gamma=1.0):
    """Return a kernel SVM of two overlapping clouds, and its matrix."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    rows = GramRows(rng.normal(size=(n, 3)) + 0.7 * y[:, None], KernelFunction("rbf", gamma), y, 1 << 24)
    Q = np.array([rows.weighted_sum(e) for e in np.eye(n)])
    return kernel_svm_model(rows, rng.integers(1, 4, n).astype(float)), Q


def walked(model, rule, grid, reference=None, first=0):
    solver = make_kernel_solver("smo")
    return list(walk(model, grid, parse_kernel_rule(rule), solver, OPTIONS, reference, first))


def reduced_at(model, rule, C=8.0, grow=1.1):
    """Return the reference at C, what the rule decides at the next parameter, and the problem it leaves."""
    reference = walked(model, rule, np.geomspace(0.5, C, 12))[-1][1]
    screened = parse_kernel_rule(rule).before(model, reference, grow * reference.C)
    return reference, screened, model.reduce(grow * reference.C, screened, reference)


def gap_of(model, Q, C, theta, alive):
    """Return the gap that the survivors make."""
    t = model.c - C * (Q @ theta)
    return float(np.sum((np.maximum(model.lo * t, model.hi * t) - theta * t)[alive]))


@pytest.mark.parametrize("rule", ["none", "dvi", "bt2", "it"])
def test_the_start_is_feasible_and_its_sums_are_right(rule):
    model, Q = problem()
    reference, screened, reduced = reduced_at(model, rule)
    C, start = 1.1 * reference.C, reduced.near.theta
    assert np.all((start >= model.lo) & (start <= model.hi))
    assert np.array_equal(start[screened.status < 0], model.lo[screened.status < 0])
    assert np.array_equal(start[screened.status > 0], model.hi[screened.status > 0])
    np.testing.assert_allclose(reduced.alpha, C * start[reduced.index])
    np.testing.assert_allclose(reduced.products, C * (Q @ start)[reduced.index], rtol=1e-12, atol=1e-12)
    assert reduced.w_sq == pytest.approx(C * C * start @ Q @ start)
    fixed = screened.status != 0
    assert reduced.offset == pytest.approx(C * model.c[fixed] @ start[fixed])
    if rule in ("none", "dvi"):  # no guess is known
        assert np.array_equal(start[reduced.index], reference.theta[reduced.index])


@pytest.mark.parametrize("gamma", [1e-3, 30.0])
def test_the_start_leaves_the_reference_for_a_far_smaller_gap(gamma):
    model, Q = problem(gamma=gamma)
    moved = 0
    for grow in (1.02, 1.1, 1.5, 4.0):
        reference, screened, reduced = reduced_at(model, "it", grow=grow)
        C, alive = grow * reference.C, screened.status == 0
        guess = np.where(model.c > 0.5 * (1.0 + grow) * reference.point.products, model.hi, model.lo)
        near = reference.theta + (1.0 - 1.0 / grow) * (guess - reference.theta)
        moved += not np.array_equal(reduced.near.theta[alive], reference.theta[alive])
        here, there = (gap_of(model, Q, C, theta, alive) for theta in (reference.theta, near))
        expected = near if there < kernels.WORTH * here else reference.theta
        np.testing.assert_allclose(reduced.near.theta[alive], expected[alive], rtol=1e-13)
    assert (moved > 0) == (gamma > 1.0)


def test_the_start_stays_where_many_would_leave_their_end():
    n, lo, hi = 12, np.zeros(12), np.ones(12)
    c, status, total, guess_total = np.ones(n), np.zeros(n, dtype=np.int8), np.zeros(n), np.full(n, 0.5)
    problem = status, c, lo, hi
    theta = np.array([0.5] * 8 + [0.0] * 4)  # the gap of a variable is max(t, 0) - theta t, t = 1 here and 0 there
    for leaving, expected in ((0, 1.0), (4, 1.0), (5, 0.0)):
        point = theta.copy()
        point[7] = 0.5 if leaving < 5 else 0.0
        guess = point.copy()
        guess[n - leaving :] = 1.0
        assert kernels.start_share(problem, (point, total, guess, guess_total), 1.0, 1.0) == 0.0  # t = 0.5
        assert kernels.start_share(problem, (point, total, guess, 2.0 * guess_total), 1.0, 1.0) == expected
    status[:] = 1  # no survivors: there is no gap to make smaller
    assert kernels.start_share(problem, (theta, total, 1.0 - theta, guess_total), 1.0, 1.0) == 0.0


def turning(n=240, gamma=1e-3):
    """Return a kernel SVM on whose first points many of the larger class change ends, and its matrix."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 4 == 0, -1.0, 1.0)
    rows = GramRows(rng.normal(size=(n, 3)) + 0.7 * y[:, None], KernelFunction("rbf", gamma), y, 1 << 24)
    return kernel_svm_model(rows), np.array([rows.weighted_sum(e) for e in np.eye(n)])


@pytest.mark.parametrize("rule", ["none", "dvi", "bt2", "it"])
def test_survivors_that_change_ends_leave_a_far_smaller_gap(rule):
    model, Q = turning()
    grid = model.start(1e9).C * np.array([1.0, 1.46])
    reference = walked(model, rule, grid[:1])[-1][1]
    C = grid[1]
    screened = parse_kernel_rule(rule).before(model, reference, C)
    reduced = model.reduce(C, screened, reference)
    kept = np.where(screened.status < 0, model.lo, np.where(screened.status > 0, model.hi, reference.theta))
    turned = reduced.near.theta != kept
    if rule in ("none", "dvi"):  # no guess is known
        assert not turned.any()
        return
    alive = screened.status == 0
    assert kernels.TURNED <= turned.sum() < alive.sum() and alive[turned].all()
    assert np.array_equal(reduced.near.theta[turned], model.lo[turned])
    assert gap_of(model, Q, C, reduced.near.theta, alive) < kernels.WORTH * gap_of(model, Q, C, kept, alive)
    np.testing.assert_allclose(reduced.products, C * (Q @ reduced.near.theta)[reduced.index], rtol=1e-12, atol=1e-12)
    assert reduced.w_sq == pytest.approx(C * C * reduced.near.theta @ Q @ reduced.near.theta)
    certificate = walked(model, rule, grid)[-1][1]
    plain = walked(turning()[0], "none", grid)[-1][1]
    assert max(certificate.dual, plain.dual) <= min(certificate.primal, plain.primal)


@pytest.mark.parametrize("survivors, expected", [(100, 50), (80, 40), (60, 0)])
def test_as_many_change_ends_as_a_part_of_the_way_is_worth(survivors, expected):
    n, C, share = 100, 2.0, 0.5  # the dual is largest half of the way from all at 1 to all at 0
    lo, hi, start, guess = np.zeros(n), np.ones(n), np.ones(n), np.zeros(n)
    Q = np.full((n, n), 1.0 / (share * C * n))
    c = np.ones(n) - 1e-3 * np.random.default_rng(0).permutation(n) / n
    status = np.ones(n, dtype=np.int8)
    status[:survivors] = 0
    step = np.full(n, 9.0)
    box = (status, c, lo, hi)
    found = kernels.start_turns(box, (start, Q @ start, guess, Q @ guess), C, step)
    assert found == expected
    if not expected:  # too few for the part of the way to be what they do
        return
    turned = np.flatnonzero(step)
    assert turned.size == expected and np.all(step[turned] == -1.0)
    assert set(turned) == set(np.argsort(c[:survivors])[:expected])  # those that the gradient c - C Q theta asks for
    way = start, Q @ start, start + step, Q @ (start + step)
    here, there = (kernels.start_gap(box, way, share, C) for share in (0.0, 1.0))
    t = c - C * Q @ start
    assert here == pytest.approx(float(np.sum((np.maximum(t, 0.0) - start * t)[:survivors])))
    assert there < kernels.WORTH * here
    start[:] = 0.5  # none is at an end
    assert kernels.start_turns(box, (start, Q @ start, guess, Q @ guess), C, step) == 0


def test_what_has_not_moved_since_the_start_is_not_summed_again():
    model, Q = problem(gamma=30.0)
    reference, _, reduced = reduced_at(model, "it")
    C = 1.1 * reference.C
    assert not np.array_equal(reduced.near.theta, reference.theta)
    alpha = reduced.alpha.copy()
    touched = model.rows.touched
    _, theta = model.lift(C, reduced, Solution(None, alpha, 0, 0.0, True, 0, "smo"))
    certificate = model.certify(C, None, theta, reference)
    assert model.rows.touched == touched and np.array_equal(theta, reduced.near.theta)
    np.testing.assert_allclose(certificate.total, Q @ theta, rtol=1e-12, atol=1e-12)
    again = model.certify(C, None, theta, reference)  # the start is known to the first certificate only
    assert model.rows.touched > touched
    np.testing.assert_allclose(again.total, certificate.total, rtol=1e-12, atol=1e-12)


def test_sums_of_a_long_path_stay_right():
    model, Q = problem()
    for _, certificate in walked(model, "it", np.geomspace(0.1, 1e3, 3 * model.fresh_every)):
        assert certificate.updates <= model.fresh_every
        error = np.abs(certificate.total - Q @ certificate.theta) / (np.abs(certificate.theta) @ model.norms)
        assert error.max() < 1e-14


@pytest.mark.parametrize("whole", [0, 2048])
@pytest.mark.parametrize("rule", ["none", "bt2", "it", "it+gap"])
def test_a_restored_path_goes_on_with_the_same_numbers(monkeypatch, rule, whole):
    monkeypatch.setattr(gram, "WHOLE", whole)
    grid = np.geomspace(0.1, 100.0, 9)
    model, _ = problem()
    whole, states = [], []
    for step, certificate in walk(model, grid, parse_kernel_rule(rule), make_kernel_solver("smo"), OPTIONS):
        whole.append(step)
        states.append({name: np.array(value) for name, value in model.state(certificate).items()})
    for k in range(grid.size - 1):
        other, _ = problem()
        for step, _ in walked(other, rule, grid, other.restore(states[k]), k + 1):
            same = whole[step.step]
            assert (step.primal, step.dual, step.passes) == (same.primal, same.dual, same.passes)


def test_a_list_of_changes_has_the_signs_of_the_differences():
    index, steps = np.empty(4, dtype=np.int64), np.empty(4)
    theta, known, other = np.array([1.0, 2.0, 0.0, 4.0]), np.array([1.0, 3.0, 5.0, 3.5]), np.array([1.0, 2.0, 1.0, 4.0])
    assert kernels.changes(theta, known, other, index, steps) == (3, 3, 1)
    assert index[:3].tolist() == [1, 2, 3] and steps[:3].tolist() == [-1.0, -5.0, 0.5]


def test_many_rows_begin_at_zero_where_the_closed_form_is_left_behind(monkeypatch):
    X, y = two_classes(90, 3, seed=2)
    rows = GramRows(X, KernelFunction("rbf", gamma=0.5), y)
    few = kernel_svm_model(rows)
    limit = few.closed_until
    monkeypatch.setattr(kernel, "MANY", 0)
    many = kernel_svm_model(rows)
    begun = many.start(0.5 * limit)
    assert begun.at == (0.5 * limit,) and begun.theta.all()
    assert not many.start(50.0 * limit).theta.any() and few.start(0.99 * limit).theta.all()
    found = kernel_svm_path(X, y, gamma=0.5, grid=[0.5 * limit, 2.0, 30.0], tol=1e-9)
    monkeypatch.undo()
    usual = kernel_svm_path(X, y, gamma=0.5, grid=[0.5 * limit, 2.0, 30.0], tol=1e-9)
    for one, other in zip(found.steps, usual.steps, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2e-9) and one.status == other.status == "certified"
