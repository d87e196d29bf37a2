"""What a dual point out of balance is counted with, against the best dual points near it, by other solvers."""

import cvxpy as cp
import numpy as np
import pytest

from screenpath.kernels.problem import sparse_intercept
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.rows.views import Views

GAMMA = 0.5


def problem(seed, n=10, d=3, weighted=True, given=1.0, size=1.0):
    """Return a small model, its labels, and what dual variables add to the signed sum, shape (1, n).

    ``given`` is a typical weight as it is given, ``size`` one of a value.
    """
    rng = np.random.default_rng(seed)
    X, s = size * rng.normal(size=(n, d)), given * (rng.uniform(0.3, 3.0, n) if weighted else np.ones(n))
    labels = np.where(np.arange(n) % 3 == 0, 1, -1)
    return X, labels, FreeSparseModel(Views(X), labels, 1, 0.1, GAMMA, s), (s * labels)[None, :]


def sums_of(X, labels, model):
    """Return the matrix from dual variables to sums over the data, over n."""
    return (X * (labels * model.weights)[:, None]).T / X.shape[0]


def slopes(labels, model, scores, theta):
    """Return by how much the gap changes at first with each dual variable, over its weight."""
    return 1.0 - labels * scores - GAMMA * theta


def drawn(seed, labels, model):
    """Return scores and a dual point; ones at the ends among its variables."""
    rng = np.random.default_rng([seed, 7])
    size = model.ones.size
    theta = np.where(rng.random(size) < 0.3, rng.integers(0, 2, size), rng.uniform(size=size)) * model.ones
    return 2.0 * rng.normal(size=size), theta


def balanced_near(labels, model, flows, theta, way):
    """Return variables and constraints of a change that leaves nothing of the signed sums but ``way``."""
    step = cp.Variable(theta.size)
    inside = (model.ones > 0.0).astype(float)
    return step, [flows @ (theta + step) == way, theta + step >= 0.0, theta + step <= inside]


def test_what_is_left_of_the_balance_is_counted_with_all_that_it_may_cost(monkeypatch):
    """Sums are off by what is said of them: the nearest dual point in balance is not further than that, in each way."""
    known, ways_found, sharp = 0, set(), 0
    for seed in range(18):
        given, size = ((1.0, 1.0), (0.05, 10.0), (20.0, 0.1))[seed // 2 % 3]
        X, labels, model, flows = problem(seed, given=given, size=size)
        off, row = 0.05 * given, (0.0, 1.0)[seed % 3 == 0]
        monkeypatch.setattr(model.rounding, "row", row)
        scores, theta = drawn(seed, labels, model)
        found = flows @ theta
        if seed % 2:  # next to balance, where the sign is not known
            step, constraints = balanced_near(labels, model, flows, theta, 0.0)
            cp.Problem(cp.Minimize(cp.sum_squares(step)), constraints).solve(solver=cp.CLARABEL)
            theta = np.clip(theta + step.value, 0.0, 1.0)
            found = flows @ theta
        else:
            theta = np.clip(theta - 0.9 * np.linalg.pinv(flows) @ found, 0.0, 1.0) * model.ones
            found = flows @ theta
        rng = np.random.default_rng(seed)
        error = off * rng.choice([-1.0, 1.0], found.size)
        with monkeypatch.context() as patch:
            patch.setattr(sparse_intercept, "excess", lambda *of, sums=(float(found[0] + error[0]), off): sums)
            counted = model.residue(scores, theta, 3.0)
        if not np.isfinite(counted["cost"]):
            continue
        known += 1
        weights = np.tile(model.weights, model.classes) / labels.size
        slope = np.abs(slopes(labels, model, scores, theta)) + row * (model.rounding.spread * 3.0 + 4.0)
        step, constraints = balanced_near(labels, model, flows, theta, 0.0)
        least = {}
        for name, size in (("cost", (weights * slope) @ cp.abs(step)),
                           ("off", cp.norm(cp.multiply(np.sqrt(weights * labels.size), step))),
                           ("shift", cp.norm(sums_of(X, labels, model) @ step))):  # fmt: skip
            least[name] = cp.Problem(cp.Minimize(size), constraints).solve(solver=cp.CLARABEL)
            assert counted[name] >= least[name] - 1e-7, (seed, name)
        ways_found.add(bool(abs(found[0]) < 1e-6))
        sharp += counted["cost"] < 50.0 * least["cost"] + 2.0
    assert known > 9 and ways_found == {True, False} and sharp > 6


@pytest.mark.parametrize("unsure", [False, True])
def test_one_row_takes_a_sum_of_either_sign(unsure, monkeypatch):
    """All single rows are tried: some row with room for it moves no further than is said in any of three ways.

    Scores are off by what is said of them; where the sign of the sum is not known, it may be the true one.
    """
    tight = []
    for seed in range(60):
        X, labels, model, flows = problem(seed)
        scores, theta = drawn(seed, labels, model)
        s, n = flows[0] * labels, labels.size
        theta = np.clip(theta - 0.8 * labels * (flows[0] @ theta) / (s @ s) * s, 0.0, 1.0)
        rest = float(flows[0] @ theta)
        monkeypatch.setattr(model.rounding, "row", 0.01)
        with monkeypatch.context() as patch:
            if unsure:
                patch.setattr(sparse_intercept, "excess", lambda *of, rest=rest: (0.0, abs(rest)))
            found = model.residue(scores, theta, 3.0)
        off = 0.01 * (3.0 + 4.0)
        slope = np.abs(slopes(labels, model, scores, theta)) + off
        rows = []
        for i in range(n):
            moved = theta[i] - rest / flows[0, i]
            if 0.0 <= moved <= 1.0:
                more, weight = abs(moved - theta[i]), model.weights[i] / n
                rows.append((more * np.sqrt(model.weights[i]), weight * more * np.linalg.norm(X[i]),
                             weight * more * (slope[i] + GAMMA * more)))  # fmt: skip
        if not np.isfinite(found["cost"]):
            assert unsure or not rows or min(1.0 - abs(rest) / s) < 0.5
            continue
        given = found["off"], found["shift"], found["cost"]
        within = [r for r in rows if np.all(np.array(r) <= np.array(given) * (1.0 + 1e-12))]
        assert within
        tight.append(min(max(g / max(v, 1e-300) for g, v in zip(given, r, strict=True)) for r in within))
    assert len(tight) > 20 and (max(tight) < 1.0 + 1e-6 or unsure)


def test_a_sum_that_vanishes_exactly_costs_nothing_and_one_that_no_row_takes_everything():
    X, labels, model, flows = problem(0, weighted=False)
    none = np.zeros(labels.size)
    assert model.residue(none, none, 1.0) == {}
    full = np.where(labels > 0, 1.0, 0.0)  # the sum is larger than what any row can take
    assert model.residue(none, full, 1.0) == {"off": np.inf, "shift": np.inf, "cost": np.inf}


@pytest.mark.parametrize("hinge", [GAMMA, 0.0])
def test_what_rounding_leaves_is_taken_by_dual_variables_inside_their_box(hinge):
    """A dual point that is off by much more than rounding is in balance behind it, and hardly another one."""
    for seed in range(20):
        given = (1.0, 0.05, 20.0)[seed % 3]
        X, labels, model, flows = problem(seed, given=given)
        if hinge == 0.0:
            model = FreeSparseModel(Views(X), labels, 1, 0.1, 0.0, model.given)
        scores, theta = drawn(seed, labels, model)
        step, constraints = balanced_near(labels, model, flows, theta, 0.0)
        cp.Problem(cp.Minimize(cp.sum_squares(step)), constraints).solve(solver=cp.CLARABEL)
        theta = np.clip(theta + step.value, 0.0, 1.0) * model.ones
        before = theta.copy()
        rest = np.abs(flows @ theta).max()
        moved = model.balance(scores, theta)
        assert np.all((theta >= 0.0) & (theta <= 1.0)) and moved == (not np.array_equal(theta, before))
        left = np.abs(flows @ theta).max()
        assert left <= max(0.01 * rest, 1e-14 * given), seed
        assert np.abs(theta - before).max() <= 40.0 * rest / given + 1e-13


def test_with_the_exact_hinge_rows_at_their_kink_take_what_is_left():
    for seed in range(20):
        X, labels, model, flows = problem(seed)
        model = FreeSparseModel(Views(X), labels, 1, 0.1, 0.0, model.given)
        rng = np.random.default_rng(seed)
        scores = 3.0 * rng.normal(size=labels.size)
        tied = rng.permutation(labels.size)[:6]
        scores[tied] = labels[tied]  # at their kink
        theta = np.where(1.0 - labels * scores > 0.0, 1.0, 0.0)
        theta[tied] = rng.integers(0, 2, 6)
        others = np.setdiff1d(np.arange(labels.size), tied)
        least = sum(min(0.0, flows[0, i]) for i in tied) + flows[0, others] @ theta[others]
        most = sum(max(0.0, flows[0, i]) for i in tied) + flows[0, others] @ theta[others]
        before = theta.copy()
        model.balance(scores, theta)
        assert np.all((theta >= 0.0) & (theta <= 1.0))
        if least < -1e-9 and most > 1e-9:
            assert abs(flows[0] @ theta) < 1e-12 and np.array_equal(theta[others], before[others])


@pytest.mark.parametrize("gamma", [GAMMA, 0.0])
def test_the_intercept_is_the_best_one_and_all_that_are_as_good(gamma):
    """By the loss at many intercepts; one that is given is taken as it is, and the best ones are still known."""
    flat = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, labels, model, _ = problem(seed)
        model = FreeSparseModel(Views(X), labels, 1, 0.1, gamma, rng.integers(1, 3, labels.size).astype(float))
        z = rng.normal(size=labels.size) * rng.choice([0.2, 3.0])

        def loss(b, z=z, labels=labels, model=model):
            t = 1.0 - labels * (z + np.asarray(b)[..., None])
            small = 0.5 * gamma if gamma else 0.0
            inside = t * t / (2.0 * gamma) if gamma else np.maximum(t, 0.0)
            return np.where(t <= 0.0, 0.0, np.where(t <= gamma, inside, t - small)) @ model.weights

        for given in (None, float(rng.normal())):
            scores = z.copy()
            level = model.placed(scores, given)
            np.testing.assert_allclose(scores, z + level.intercept, atol=1e-12)
            assert given is None or level.intercept == given
            tried = np.linspace(-12.0, 12.0, 4801)
            values = loss(tried)
            best = min(values.min(), loss(level.intercept)) if given is None else values.min()
            if given is None:
                assert loss(level.intercept) <= best + 1e-9 and level.low <= level.intercept <= level.high
                assert level.intercept == pytest.approx(0.5 * (level.low + level.high), abs=1e-9)
                as_good = tried[values <= best + 1e-10]
                assert np.all((as_good >= level.low - 1e-6) & (as_good <= level.high + 1e-6))
                assert loss(level.low) <= best + 1e-8 and loss(level.high) <= best + 1e-8
                flat += level.high > level.low + 1e-3
    assert flat > 3


def test_the_closed_form_of_no_weights():
    """The loss with the best intercept alone, by a cone solver, and its dual point's balance and value."""
    for seed in range(4):
        X, labels, model, flows = problem(seed)
        s, n = model.weights, labels.size
        b, q = cp.Variable(), cp.Variable(n)
        t = 1.0 - cp.multiply(labels, b * np.ones(n))
        best = cp.Problem(cp.Minimize(s @ (cp.square(q) / (2.0 * GAMMA) + cp.pos(t - q)) / n)).solve(solver=cp.CLARABEL)
        assert model.null_loss == pytest.approx(best, rel=1e-6)
        assert np.abs(flows @ model.top).max() < 1e-12
        assert s @ (model.top - 0.5 * GAMMA * model.top**2) / n == pytest.approx(best, rel=1e-6)
        np.testing.assert_allclose(model.u_top, sums_of(X, labels, model) @ model.top, atol=1e-12)
        np.testing.assert_allclose(model.col_total, s @ X, atol=1e-12)
        mean = s @ X / n
        np.testing.assert_allclose(model.twice, 2.0 * mean)
        np.testing.assert_allclose(model.row_sq + mean @ mean, ((X - mean) ** 2).sum(axis=1), atol=1e-12)
        assert np.all(model.row_sizes >= (np.linalg.norm(X, axis=1) + np.linalg.norm(mean)) ** 2 * (1.0 - 1e-12))
        assert not model.even


def test_what_an_intercept_can_answer_is_a_line_of_length_1():
    rng = np.random.default_rng(0)
    _, labels, model, _ = problem(0)
    every = np.arange(labels.size)
    for inside in (every, np.sort(rng.choice(every, every.size // 2, replace=False))):
        (line,) = model.answers(inside)
        change = labels[inside] * np.sqrt(model.weights[inside])
        assert line @ line == pytest.approx(1.0)
        np.testing.assert_allclose((line @ change) * line, change, atol=1e-12)
    assert model.answers(np.empty(0, dtype=np.int64)).size == 0


def test_the_closed_form_ends_where_two_rows_of_different_classes_are_too_far_apart():
    """Half the largest distance of two scores of rows that count, the one of +1 being above, by trying all pairs."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, labels, n = rng.normal(size=(8, 2)), np.array([1, -1] * 4), 8
        weights = np.ones(n)
        weights[:2] = 0.0
        model = FreeSparseModel(Views(X), labels, 1, 0.1, GAMMA, weights)
        scores, error = rng.normal(size=n), rng.uniform(0.0, 0.3, n)
        scores[0], scores[1] = 9.0, -9.0
        most = max((scores[i] + error[i]) - (scores[j] - error[j])
                   for i in range(2, n) for j in range(2, n) if labels[i] > 0 > labels[j])  # fmt: skip
        assert model._most(scores[None, :], error) == pytest.approx(0.5 * most)
        assert model.even and not problem(seed)[2].even


def test_of_uneven_classes_no_closed_form_is_known_but_that_of_no_weights():
    _, _, model, _ = problem(0)
    start = model.certify(1.0, None, model.top)
    assert not model.exact_until(start, 1.0) and not model.exact_until(start, 1e9)
    model = model.at(2.0 * model.beta_max)
    start = model.certify(1.0, None, model.top)
    assert model.exact_until(start, 1.0)
