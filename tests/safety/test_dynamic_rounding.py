"""What the gap ball decides while solving, judged in fractions: columns far from 0, scales and costs far apart."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from screenpath.engine import problem as engine
from screenpath.kernels.problem import box as kernels
from tests import plain
from tests.width import wide

LOSSES = {
    "svm": (plain.svm_path, {}), "svr": (plain.svr_path, {"epsilon": 0.125}), "lad": (plain.lad_path, {}),
    "quantile": (plain.quantile_path, {"tau": 0.25}),
}  # fmt: skip


def optimum(g, c, lo, hi):
    """Return the exact minimiser of ``1/2 w^2 + sum max(lo t, hi t)`` with ``t = c - g w``, over one weight."""
    g, c = ([Fraction(float(value)) for value in values] for values in (g, c))
    kinks = sorted({b / a for a, b in zip(g, c, strict=True) if a})

    def pull(w):
        """Return ``-sum of slopes``: what ``w`` has to be where no row is at its kink."""
        terms = zip(g, c, lo, hi, strict=True)
        return sum((a * (up if b - a * w > 0 else low) for a, b, low, up in terms), Fraction(0))

    edges = [kinks[0] - 1, *kinks, kinks[-1] + 1] if kinks else [Fraction(-1), Fraction(1)]
    for k in range(len(edges) - 1):
        w = pull((edges[k] + edges[k + 1]) / 2)
        left, right = k > 0, k + 2 < len(edges)
        if right and w > edges[k + 1]:
            continue
        return max(w, edges[k]) if left else w  # below the piece: its left end is the kink that holds the optimum
    raise AssertionError("a convex function of one weight has a minimiser")


def problem(seed: int, loss: str):
    """Return rows of one value each, so that every column is a problem of its own, which column each has, targets."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 13)), int(rng.integers(1, 5))
    column, offset = rng.integers(0, d, n), rng.choice([0.0, 1e4, 1e8], d)
    scale = 10.0 ** rng.uniform(-6, 6, d)
    X = np.zeros((n, d))
    X[np.arange(n), column] = offset[column] + rng.normal(size=n) * scale[column]
    y = rng.choice([-1.0, 1.0], n) if loss == "svm" else rng.normal(size=n) * 10.0 ** rng.uniform(-3, 6)
    y[:2] = (-1.0, 1.0) if loss == "svm" else y[:2]
    return X, column, y, 10.0 ** rng.uniform(-3, 5) * np.array([1.0, 1.3, 3.0, 30.0])


def judged(monkeypatch, loss: str, seeds: range, **options) -> tuple[int, int]:
    """Return how many rows were decided, and how many of them on the wrong side of their kink."""
    found, make, count, wrong = [], engine.limits_of, 0, 0

    def kept(model, parameter, rank, reference, certificate, decided):
        found.append((model, parameter, decided.copy()))
        return {}

    monkeypatch.setattr(engine, "limits_of", lambda *a, **k: replace(make(*a, **k), audit=kept))
    path, more = LOSSES[loss]
    for seed in seeds:
        X, column, y, grid = problem(seed, loss)
        found.clear()
        path(X, y, grid=grid, tol=1e-8, max_epochs=2000, **more, **options)
        for model, C, decided in found:
            owner = np.tile(column, model.size // y.size)
            for j in np.unique(owner[decided != 0]):
                own, unit = owner == j, np.eye(X.shape[1])[j]
                g, c = model.margins(unit)[own], model.c[own]
                size = Fraction(float(C))
                ends = ([size * Fraction(float(v)) for v in end[own]] for end in (model.lo, model.hi))
                w = optimum(g, c, *map(list, ends))
                for a, b, side in zip(g, c, decided[own], strict=True):
                    t = Fraction(float(b)) - Fraction(float(a)) * w
                    count, wrong = count + (side != 0), wrong + int(side * t < 0)
    return count, wrong


@pytest.mark.parametrize("solver", ["cd", "newton"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_ball_decides_no_row_wrongly(monkeypatch, loss, storage, solver):
    count, wrong = 0, 0
    for rule in ("gap", "dvi+gap"):
        more, bad = judged(monkeypatch, loss, range(wide(6, 12)), rule=rule, storage=storage, solver=solver)
        count, wrong = count + more, wrong + bad
    assert count >= wide(10, 20)
    assert wrong == 0


def test_the_judge_sees_a_ball_that_is_too_small(monkeypatch):
    honest = kernels.errors_of
    monkeypatch.setattr(kernels, "errors_of", lambda *given: honest(*given)._replace(rounding=-0.5))
    count, wrong = judged(monkeypatch, "lad", range(12), rule="gap", storage="dense", solver="cd")
    assert count >= wrong > 0
