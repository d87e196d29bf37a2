"""What is predicted of held-out rows for ranges of C, against refits at other values of C."""

from __future__ import annotations

import numpy as np
import pytest

from screenpath.solve import values
from screenpath.solve.removal import Solution
from tests.solve.test_removal import drawn, model_of, refit, signless, without
from tests.solve.test_sides import EXACT, proven
from tests.width import wide

GRID = np.geomspace(0.02, 2.0, 12)


def bounds(model, grid):
    """Return bounds between neighbouring values of C, shape (k - 1, 2, n)."""
    known = [values.Without(Solution(model, pair)) for pair in proven(model, grid)[1]]
    return np.array([values.between(*ends) for ends in zip(known, known[1:], strict=False)])


def contradicted(found, model, free, grid, rng):
    """Return how many bounds refits contradict, how many there are, and how wide they are."""
    X, k, low, high = signless(model)
    wrong, count, widths = 0, 0, []
    for (start, end), (lows, highs) in zip(zip(grid, grid[1:], strict=False), found, strict=True):
        for i in rng.permutation(model.rows.n)[: wide(5, 12)]:
            C = rng.choice([start, np.sqrt(start * end), rng.uniform(start, end), end])
            best = refit(*without((X, k, C * low, C * high), model, i), free)
            if best is None or not np.isfinite(highs[i]):
                continue
            w, *ends = best
            size = EXACT * (1.0 + np.abs(X[i]) @ np.abs(w) + abs(ends[0]))
            forms = [X[i] @ w + b for b in ends]
            wrong += min(forms) < lows[i] - size or max(forms) > highs[i] + size
            widths.append(highs[i] - lows[i])
            count += 1
    return wrong, count, widths


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", ["lad", "quantile", "svr", "svm"])
@pytest.mark.parametrize("shape", ["plain", "tied", "far from the origin", "sparse"])
@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_no_refit_contradicts_a_bound(name, shape, free, weighted):
    for seed in range(wide(1, 6)):
        X, y, weights = drawn(name, shape, seed, free, weighted)
        model = model_of(name, shape, X, y, weights, free)
        found = bounds(model, GRID)
        wrong, count, widths = contradicted(found, model, free, GRID, np.random.default_rng(seed))
        assert wrong == 0 and count > 0


@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_refits_contradict_bounds_of_a_gap_that_is_too_small(free, monkeypatch):
    """A control: with a hundredth of what is proven between the steps."""
    reach = values.reach
    monkeypatch.setattr(values, "reach", lambda gap, *more: reach(1e-4 * gap, *more))
    wrong = 0
    for seed in range(3):
        X, y, weights = drawn("lad", "plain", seed, free, False)
        model = model_of("lad", "plain", X, y, weights, free)
        wrong += contradicted(bounds(model, GRID), model, free, GRID, np.random.default_rng(seed))[0]
    assert wrong > 0


@pytest.mark.parametrize("name", ["lad", "quantile", "svr"])
@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_bounds_become_narrow_with_the_steps(name, free):
    X, y, weights = drawn(name, "plain", 3, free, False)
    model = model_of(name, "plain", X, y, weights, free)
    wide_ones, narrow = (np.diff(bounds(model, np.geomspace(0.1, 1.0, k)), axis=1) for k in (11, 81))
    assert np.median(narrow) < 0.3 * np.median(wide_ones) and np.isfinite(narrow).mean() > 0.9
