"""Held-out labels that are proven for ranges of C, against refits at other values of C."""

from __future__ import annotations

import numpy as np
import pytest

from screenpath.screen import parse_rule
from screenpath.solve import sides
from screenpath.solve.newton import Newton
from screenpath.solve.polish import polished
from screenpath.solve.removal import Solution, leave_out
from screenpath.walk.loop import PathOptions, walk
from tests.solve.test_removal import drawn, model_of, refit, signless, without
from tests.width import wide

EXACT = 1e-6  # relative accuracy of a refit's form


def proven(model, grid):
    """Return what is proven along a path, and its polished certificates."""
    path = walk(model, list(grid), parse_rule("dvi+gap"), Newton(), PathOptions(tol=1e-8))
    certificates = [polished(model, pair) for _, pair in path]
    return sides.held(certificates, model), certificates


def claims(found, C):
    """Return the proven side of each row at a C, 0 where nothing is proven."""
    segment = min(np.searchsorted(found.C, C, side="right") - 1, found.C.size - 2)
    side = found.whole[segment].astype(float)
    for row, _, value, low, high in found.parts[found.parts[:, 1] == segment]:
        if low <= C <= high:
            side[int(row)] = value
    return side


def contradicted(found, model, free, values):
    """Return how many claims at some values of C refits contradict, and how many there are."""
    X, k, low, high = signless(model)
    wrong = count = 0
    for C in values:
        for i in np.flatnonzero(side := claims(found, C)):
            best = refit(*without((X, k, C * low, C * high), model, i), free)
            if best is None:
                continue
            w, *ends = best
            size = EXACT * (1.0 + np.abs(X[i]) @ np.abs(w) + abs(ends[0]))
            wrong += any(side[i] * (X[i] @ w + b) < -size for b in ends)
            count += 1
    return wrong, count


@pytest.mark.covering(2)
@pytest.mark.parametrize("shape", ["plain", "tied", "far from the origin", "sparse"])
@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_no_refit_contradicts_a_proven_side(shape, free, weighted):
    claimed = able = 0
    for seed in range(wide(1, 6)):
        X, y, weights = drawn("svm", shape, seed, free, weighted)
        model = model_of("svm", shape, X, y, weights, free)
        found, certificates = proven(model, np.geomspace(0.02, 5.0, 12))
        inside = np.exp(np.random.default_rng(seed).uniform(np.log(0.02), np.log(5.0), size=3))
        wrong, count = contradicted(found, model, free, inside)
        assert wrong == 0, (seed, wrong, count)
        claimed, able = claimed + count, able + 3 * np.count_nonzero(X.any(axis=1) | free)  # 0.w has no side
        for step, pair in enumerate(certificates):  # exact at the steps
            exact = leave_out(Solution(model, pair), np.arange(30))
            side = np.where(exact.low > 0.0, 1, np.where(exact.high < 0.0, -1, 0))
            assert (found.at[step] == side).all()
        joint = (found.whole != 0) & (found.at[:-1] != 0)
        assert (found.whole[joint] == found.at[:-1][joint]).all()
    assert claimed > 0.8 * able, (claimed, able)  # 0.96 of many problems


@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_refits_contradict_proofs_that_leave_out_the_way_between(free, monkeypatch):
    """A control: labels that are the same at both ends may differ between them."""
    wrong = 0
    monkeypatch.setattr(sides, "_open", lambda e0, e1, bend, exact=sides._open: exact(e0, e1, -np.ones_like(bend)))
    for seed in range(4):
        X, y, _ = drawn("svm", "plain", seed, free, False)
        model = model_of("svm", "plain", X, y, None, free)
        found, _ = proven(model, [1e-3, 10.0])
        wrong += contradicted(found, model, free, [0.02, 0.1, 0.5])[0]
    assert wrong > 3


def test_a_label_that_changes_is_proven_up_to_near_its_change():
    X, y, _ = drawn("svm", "plain", 3, False, False, n=60)
    model = model_of("svm", "plain", X, y, None, False)
    found, _ = proven(model, np.geomspace(0.01, 10.0, 40))
    width = np.diff(np.log(found.C))
    shares = (found.whole != 0).T @ width
    np.add.at(shares, found.parts[:, 0].astype(int), np.log(found.parts[:, 4] / found.parts[:, 3]))
    assert shares.mean() / width.sum() > 0.985 and np.all(shares <= width.sum() * (1.0 + 1e-9))
    changes = (found.at[0] != found.at[-1]) & (found.at[0] != 0) & (found.at[-1] != 0)
    assert changes.any() and np.all(shares[changes] < width.sum())


def test_few_solutions_serve_many_steps_and_memory_may_be_short(monkeypatch):
    X, y, _ = drawn("svm", "plain", 1, True, False, n=80)
    model = model_of("svm", "plain", X, y, None, True)
    grid = np.geomspace(0.01, 10.0, 60)
    found, certificates = proven(model, grid)
    open_pairs = np.count_nonzero(found.whole == 0)
    assert found.solved < 20 * 80 and open_pairs < 80 * 3
    monkeypatch.setattr(sides, "NUMBERS", 10**9)  # no solution is kept
    again = sides.held(certificates, model)
    np.testing.assert_array_equal(found.whole, again.whole)
    np.testing.assert_array_equal(found.parts, again.parts)
