"""The checker of the L1-SVM against its objectives formed anew, where what it sums is off by all that it may be."""

from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.errors import DataError
from screenpath.verify import products
from screenpath.verify.certificate import Pair
from screenpath.verify.model import Model
from tests.proofs.disturbed import disturb, source

CLOSE = 1e-9
WHAT = {"sums": (0.05, 0.0), "products": (0.0, 0.1), "imbalance": (0.0, 0.0), "both": (0.02, 0.05)}


def least_gap(X, y, v, w, b, lam, a) -> float:
    """Return the least gap among the multiples of the dual points ``a``, one row larger so that the classes balance."""
    primal = 0.5 * v @ np.maximum(1.0 - y * (X @ w + b), 0.0) ** 2 + lam * np.abs(w).sum()
    rest, gaps = float((v * a) @ y), []
    for i in np.flatnonzero(y * rest <= 0.0):
        moved = a.copy()
        moved[i] += abs(rest) / v[i]
        most, mass, square = np.abs((v * moved * y) @ X).max(), v @ moved, v @ (moved * moved)
        r = min(lam / most, mass / square) if square else 1.0
        gaps.append(primal - r * mass + 0.5 * r * r * square)
    return min(gaps)


@pytest.mark.parametrize("what", WHAT)
def test_no_gap_is_too_small_whatever_is_off(what, monkeypatch):
    nearest, finite, (of_sums, of_products) = np.inf, 0, WHAT[what]
    for seed in range(250):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 6)), int(rng.integers(1, 3))
        X, y, v = rng.normal(size=(n, d)), np.where(np.arange(n) % 2, 1.0, -1.0), rng.uniform(0.3, 2.0, n)
        w, lam = rng.normal(size=d) * (rng.random(d) < 0.7), float(rng.uniform(0.1, 1.5))
        b = float(np.clip(0.5 * rng.normal(), -0.9, 0.9)) if what == "imbalance" else 0.1 * float(rng.normal())
        index = np.flatnonzero(w)
        entry = {"step": 0, "index": index, "values": w[index], "lambda": lam, "b": b}
        header = {"model": "l1svm", "labels": {"+1": 1.0, "-1": -1.0}, "bias": 1.0, "weights": v}
        with monkeypatch.context() as patch:
            disturb(patch, rng, of_sums, of_products)
            seen, add = [], Pair.add
            patch.setattr(Pair, "add", lambda *given, seen=seen, add=add: seen.append(given[-1]) or add(*given))
            (pair,) = products.check(header, [entry], source(X, y, 1.0))
            found, (value, error) = pair.gap, pair.primal
        slack = 1.0 - y * (X @ w + b)
        primal = 0.5 * v @ np.maximum(slack, 0.0) ** 2 + lam * np.abs(w).sum()
        assert abs(value - primal) <= error + CLOSE, seed
        if np.isfinite(found):
            finite += 1
            truth = least_gap(X, y, v, w, b, lam, np.concatenate(seen))
            assert found >= truth - CLOSE, seed
            nearest = min(nearest, found - truth)
    assert finite > 50 and nearest < 0.3


@pytest.mark.parametrize(
    "change",
    [
        {"index": [0, 0]}, {"index": [1, 0]}, {"index": [-1, 1]}, {"index": [0, 2]}, {"values": [1.0]},
        {"values": [np.inf, 1.0]}, {"lambda": 0.0}, {"lambda": np.inf}, {"lambda": 1}, {"b": np.nan}, {"b_off": np.inf},
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit_the_data_are_refused(change):
    entry = {"step": 0, "index": [0, 1], "values": [1.0, 2.0], "lambda": 0.5, "b": 0.0}
    header = {"model": "l1svm", "labels": {"+1": 1.0, "-1": -1.0}, "bias": 1.0}
    model = Model(header, SimpleNamespace(n=3, d=2))
    for given, fits in ((entry, True), (entry | change, False)):
        given = given | {name: np.array(given[name]) for name in ("index", "values")}
        if fits:
            assert model.solution(given).tolist() == [[1.0, 2.0, 0.0]]
            continue
        with pytest.raises(DataError):
            model.solution(given)
