"""The one-sided ellipsoid of ``kernels/screen/sparse_box.py`` against the set that it holds, by a cone solver."""

import cvxpy as cp
import numpy as np
import pytest

from screenpath.kernels.problem.sparse import Samples
from screenpath.kernels.screen import sparse_box as box
from tests.sparse_problems import dual_rows

N, D, GAMMA = 12, 3, 0.1


def case(classes, rng, off=0.0):
    """Return rows of the dual, their places, and what the kernels are given and write, for a reference of no merit."""
    X, y = rng.normal(size=(N, D)), np.arange(N) % classes
    labels = (2 * y - 1 if classes == 2 else y).astype(np.int64)
    blocks = 1 if classes == 2 else classes
    rows, places = dual_rows(X, y, classes)
    weights, scores = rng.uniform(0.2, 3.0, N), rng.normal(size=blocks * N)
    sample = places % N
    margins = labels * scores if classes == 2 else scores[y[sample] * N + sample] - scores[places]
    t, theta, status = 1.0 - margins, np.zeros(blocks * N), np.full(blocks * N, -1, dtype=np.int8)
    status[places] = 0
    theta[places] = np.clip(t / GAMMA, 0.0, 1.0)
    theta[places] += off * (rng.uniform(size=places.size) - theta[places])
    status[places[::5]] = 1
    lower, upper = np.full(blocks * N, -2.0), np.full(blocks * N, 2.0)
    lower[places] = margins - rng.uniform(0.0, 0.3, places.size)
    upper[places] = margins + rng.uniform(0.0, 0.3, places.size)
    budget = float(rng.uniform(0.1, 1.0))
    terms, both, signed = [np.empty(blocks * N) for _ in range(3)], np.empty(blocks * N), np.empty(blocks * N)
    samples = Samples(labels, weights, N, blocks, GAMMA, np.ones(N), 0.0, 1.0)
    spread = box.row_terms(scores, samples, theta, status, lower, upper, budget, *terms)
    mean = box.row_weights(*terms, labels, weights, N, blocks, GAMMA, status, both, signed)
    known = dict(X=X, t=t, theta=theta[places], v=weights[sample], left=status[places] == 0, budget=budget, mean=mean)
    low, high = np.clip((1.0 - upper[places]) / GAMMA, 0.0, 1.0), np.clip((1.0 - lower[places]) / GAMMA, 0.0, 1.0)
    return rows, {**known, "low": low, "high": high}, (both, signed, spread, blocks)


def most(a, known):
    """Return the largest ``sum v_i a_i x_i`` that the terms of the gap leave, by a cone solver."""
    t, theta, v, left = (known[name] for name in ("t", "theta", "v", "left"))
    best, rho = np.clip(t / GAMMA, 0.0, 1.0), np.maximum(np.maximum(-t, t - GAMMA), 0.0)
    x = cp.Variable(theta.size)
    apart = x + theta - best
    terms = 0.5 * GAMMA * (cp.square(apart) + cp.square(x)) + cp.multiply(rho, cp.abs(apart))
    within = [cp.sum(cp.multiply(v, terms)[left]) <= known["budget"], x[~left] == 0.0]
    within += [(x + theta - known["low"])[left] >= 0.0, (known["high"] - x - theta)[left] >= 0.0]
    return cp.Problem(cp.Maximize((v * a) @ x), within).solve(solver="CLARABEL")


def reach(column, both, signed, spread, budget):
    """Return the bounds of a column's sum and of its negative, as the kernel has them."""
    indices, stop = np.arange(N, dtype=np.int32), np.int64(column.size)
    total, tilt = box.column_reach(column, indices, np.int64(0), stop, N, both, signed)
    root = np.sqrt(budget) + np.sqrt(spread)
    return root * np.sqrt(total + tilt), root * np.sqrt(total - tilt)


@pytest.mark.covering(1)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("off", [0.0, 0.01])
def test_no_dual_point_that_the_gap_leaves_is_beyond_the_ellipsoid(classes, off):
    rng = np.random.default_rng(classes)
    near = []
    for _ in range(3):
        rows, known, (both, signed, spread, blocks) = case(classes, rng, off)
        assert (spread > 1e-20) == (off > 0.0)
        for f in range(blocks * D):
            c, column = f // D, np.ascontiguousarray(known["X"][:, f % D])
            here = slice(c * N, (c + 1) * N)
            bounds = reach(column, both[here], signed[here], spread, known["budget"])
            for sign, bound in zip((1.0, -1.0), bounds, strict=True):
                exact = most(sign * rows[:, f], known)
                assert exact <= bound * (1.0 + 1e-6) + 1e-9, (f, sign)
                near.append(exact / bound if bound > 0.0 else 0.0)
    assert max(near) > 0.1  # a bound far above all of them is safe, and useless


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_weigh_by_how_far_and_which_way_they_may_move(classes):
    rows, known, (both, signed, _, blocks) = case(classes, np.random.default_rng(7))
    t, theta, v, left, budget = (known[name] for name in ("t", "theta", "v", "left", "budget"))
    rho = np.maximum(np.maximum(-t, t - GAMMA), 0.0)
    limit = (np.sqrt(rho**2 + 4.0 * GAMMA * budget / v) - rho) / (2.0 * GAMMA)
    room = np.minimum(np.where(t < 0.0, known["high"], 1.0 - known["low"]), limit)
    weight = np.where(rho > 0.0, v * room / np.where(rho > 0.0, GAMMA * room + rho, 1.0), v / GAMMA) * left
    up, down = (t <= GAMMA) * weight, (t >= 0.0) * weight
    for f in range(blocks * D):
        a, here = rows[:, f], slice(f // D * N, (f // D + 1) * N)
        expected = np.where(a > 0.0, up, down) @ a**2, np.where(a > 0.0, down, up) @ a**2
        found = reach(np.ascontiguousarray(known["X"][:, f % D]), both[here], signed[here], 0.0, 1.0)
        assert np.square(found) == pytest.approx(expected, rel=1e-12)
    halves = np.where(rho > 0.0, 0.5, 1.0) * weight
    assert known["mean"] == pytest.approx(halves.sum() / v[left].sum())


@pytest.mark.parametrize("value", [0.0, 0.02, 0.4, 1.0])
@pytest.mark.parametrize("t", [-0.7, 0.0, 0.03, 0.1, 2.0])
@pytest.mark.parametrize("end", [0.0, 1.0])
def test_what_a_decided_dual_variable_takes(t, value, end):
    loss = 0.0 if t < 0.0 else (t * t / (2.0 * GAMMA) if t <= GAMMA else t - 0.5 * GAMMA)
    expected = loss - end * t + 0.5 * GAMMA * end**2 + 0.5 * GAMMA * (end - value) ** 2
    assert box.term(t, GAMMA, 0.0, 1.0, value, end) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_multiple_of_weights_is_the_best(classes):
    rng = np.random.default_rng(3)
    rows, known, (_, _, _, blocks) = case(classes, rng)
    labels = (2 * (np.arange(N) % 2) - 1 if classes == 2 else np.arange(N) % classes).astype(np.int64)
    w = 0.2 * np.abs(rng.normal(size=blocks * D)) * np.sign(rows.sum(axis=0))
    scores, status = (w.reshape(blocks, D) @ known["X"].T).ravel(), np.zeros(blocks * N, dtype=np.int8)
    samples = Samples(labels, np.ones(N), N, blocks, GAMMA, np.ones(N), 0.0, 1.0)
    margins, square, size = rows @ w, 0.05 * w @ w, 0.01 * np.abs(w).sum()

    def value(kappa):
        t = 1.0 - kappa * margins
        best = np.clip(t / GAMMA, 0.0, 1.0)
        return (best * (t - 0.5 * GAMMA * best)).sum() / N + 0.5 * kappa**2 * square + kappa * size

    tried = np.linspace(1.0, 9.0, 16001)
    found = box.stretch(scores, samples, status, square, size, 9.0)
    assert 1.1 < found < 8.9
    assert found == pytest.approx(tried[np.argmin([value(kappa) for kappa in tried])], abs=0.02)
    assert box.stretch(scores, samples, status, 1e6, size, 9.0) == 1.0
