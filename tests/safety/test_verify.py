"""The checker's bounds at hostile scales, against rational arithmetic (changed certificates: tests/certificates)."""

from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.verify.data import Source, scaled
from screenpath.verify.file import pack
from screenpath.verify.products import check as check_steps
from screenpath.verify.products import values
from tests.safety.judge import ExactPair, exact_losses, l1_values
from tests.safety.rational import dot, exact_kernel
from tests.safety.rational_penalised import Sparse
from tests.width import wide


def libsvm(X, y) -> str:
    rows = [[repr(t), *(f"{j}:{x!r}" for j, x in enumerate(row, 1) if x != 0.0)] for row, t in zip(X, y, strict=True)]
    return "\n".join(map(" ".join, rows)) + "\n"


def problem(rng, scaling: str):
    """Return a header, one step and its data: scales from 1e-150 to 1e150, pairs good and bad."""
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    widest = float(rng.choice([0.0, 10.0, 70.0]))
    X = rng.normal(size=(n, d)) * 10.0 ** (rng.uniform(-widest, widest, (n, 1)) + rng.uniform(-widest, widest, d))
    X[rng.random((n, d)) < 0.2] = 0.0
    y = rng.normal(size=n) * 10.0 ** rng.uniform(-widest, widest)
    model = str(rng.choice(["svm", "lad", "quantile", "svr"]))
    if model == "svm":
        y = rng.choice([1.0, 2.0], n)
    header = {
        "model": model, "labels": {"+1": 2.0, "-1": 1.0}, "scaling": scaling, "bias": float(rng.choice([0.0, 1.0])),
        "tau": 0.3, "epsilon": abs(float(y[0])) / 3.0, "tol": 1e-6,
        "data": {"sha256": "", "n_samples": n, "n_features": d, "zero_based": False},
    }  # fmt: skip
    if scaling in ("maxabs", "standard"):
        header["scale"] = np.where(np.abs(X).max(axis=0) > 0.0, np.abs(X).max(axis=0), 1.0) * rng.uniform(0.5, 2.0, d)
    if scaling == "standard":
        header["shift"] = X.mean(axis=0)
    exact = exact_losses(header, X.tolist(), y.tolist())
    size, lo, hi = len(exact[1]), np.array([float(v) for v in exact[2]]), np.array([float(v) for v in exact[3]])
    states = rng.integers(0, 3, size).astype(np.uint8)
    theta = np.where(states == 1, hi, lo)
    inside = lo + (hi - lo) * rng.random(size) ** float(rng.choice([1.0, 30.0]))
    theta[states == 2] = np.clip(inside, lo, hi)[states == 2]
    C = float(10.0 ** rng.uniform(-12.0, 12.0))
    v = [F(C) * sum((F(a) * row[j] for a, row in zip(theta.tolist(), exact[0], strict=True)), F(0))
         for j in range(len(exact[0][0]))]  # fmt: skip
    w = np.array([float(x) if abs(x) < 10**300 else 0.0 for x in v])
    if rng.random() < 0.5:
        w *= 1.0 + 10.0 ** rng.uniform(-16.0, 0.0) * rng.normal(size=w.size)
    entry = {
        "step": 0, "status": "certified", "C": C, "gap": 0.0, "primal": 0.0, "primal_error": 0.0, "w": w,
        "states": pack(states), "between": theta[states == 2], "claims": pack(np.zeros(size, np.uint8)),
    }  # fmt: skip
    return header, entry, X, y, exact


class Unchecked(Source):
    """Data without a fingerprint."""

    def passed(self, indices: bool):
        return (scaled(block, self.header, self.d) for block in self._blocks())


@pytest.mark.parametrize("scaling", ["none", "maxabs", "standard", "l2"])
def test_bounds_hold_against_rational_arithmetic_at_hostile_scales(tmp_path, scaling):
    rng, tight, known = np.random.default_rng(3), 0, 0
    count = wide(20, 60)
    for _ in range(count):
        header, entry, X, y, exact = problem(rng, scaling)
        (tmp_path / "d").write_text(libsvm(X.tolist(), y.tolist()))
        source = Unchecked(tmp_path / "d", header, int(rng.integers(1, 9)))
        with np.errstate(all="ignore"):
            (pair,) = check_steps(header, [entry], source)
            gap, (primal, error) = pair.gap, pair.primal
            other = float(entry["C"] * 10.0 ** rng.uniform(-1.0, 1.0))
            radius = pair.radius(other)
        true = ExactPair(exact, entry)
        assert true.valid and not pair.faults
        if not all(map(np.isfinite, (gap, primal, error, radius))):
            continue  # overflow: nothing is claimed
        known += 1
        assert F(gap) >= true.gap
        assert abs(F(primal) - true.primal) <= F(error)
        x = F(other) / true.C
        away = sum(((a - x * b) ** 2 for a, b in zip(true.w, true.v, strict=True)), F(0))
        assert F(radius) ** 2 >= away / 4 + x * true.C * true.slope
        tight += F(gap) <= true.gap * (1 + F(1, 10**9)) + F(1, 10**300)
    assert known > 0.6 * count and tight > wide(6, 8) / 10 * known


@pytest.mark.parametrize("model, far", [("sparse-svm", False), ("l1svm", False), ("l1svm", True)])
def test_bounds_of_models_with_few_weights(tmp_path, model, far):
    rng, tight, known = np.random.default_rng(4), 0, 0
    count = wide(20, 60)
    for _ in range(count):
        n, d, widest = int(rng.integers(2, 8)), int(rng.integers(1, 5)), float(rng.choice([0.0, 3.0, 40.0]))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-widest, widest, d)
        y = rng.choice([1.0, 2.0], n)
        y[:2] = 1.0, 2.0
        signs = np.where(y > 1.0, 1.0, -1.0)
        header = {
            "model": model, "labels": {"+1": 2.0, "-1": 1.0}, "scaling": "none", "bias": float(model == "l1svm"),
            "smoothing": float(rng.uniform(0.01, 0.99)), "data": {"n_samples": n, "n_features": d, "zero_based": False},
        }  # fmt: skip
        w = rng.normal(size=d) / np.abs(X).max(axis=0) * 10.0 ** rng.uniform(-3.0, 0.5) * (rng.random(d) < 0.7)
        index = np.flatnonzero(w)
        entry = {"step": 0, "status": "certified", "index": index, "values": w[index]}
        if model == "l1svm":
            b = bias_of(X @ w, signs)
            alpha = np.maximum(1.0 - signs * (X @ w + b), 0.0)
            if far:  # columns moved away from 0, and how they are off the rounded bias
                origin = np.abs(X).max(axis=0) * 10.0 ** rng.uniform(1.0, 13.0, d) * rng.choice([-1.0, 1.0], d)
                X = (X + origin) - origin  # what is left of them
                b, alpha = bias_of(X @ w, signs), np.maximum(1.0 - signs * (X @ w + bias_of(X @ w, signs)), 0.0)
            lam = float(np.abs(X.T @ (signs * alpha)).max() * 10.0 ** rng.uniform(-1.0, 1.0))
            entry |= {"b": b, "lambda": lam or 1.0}
            if far:
                moved = F(b) - sum(F(m) * F(v) for m, v in zip(origin.tolist(), w.tolist(), strict=True))
                entry |= {"b": float(moved), "b_off": float(moved - F(float(moved)))}
                X = X + origin
        else:
            states = rng.integers(0, 3, n).astype(np.uint8)
            entry |= {"states": pack(states), "between": rng.random(np.count_nonzero(states == 2))}
            entry |= {"alpha": float(10.0 ** rng.uniform(-6.0, 6.0)), "beta": float(10.0 ** rng.uniform(-6.0, 1.0))}
        (tmp_path / "d").write_text(libsvm(X.tolist(), y.tolist()))
        with np.errstate(all="ignore"):
            (pair,) = check_steps(header, [entry], Unchecked(tmp_path / "d", header, 3))
            gap, (primal, error) = pair.gap, pair.primal
        if model == "l1svm":
            rows, weights = [[F(x) for x in row] for row in X.tolist()], [F(x) for x in w.tolist()]
            true, value = l1_values(entry, rows, [int(s) for s in signs], weights)
            # P is that of b, its dual point that of b + b_off: the bound counts what lies between, with either sign.
            slack = [1 - int(s) * (dot(row, weights) + F(entry["b"])) for s, row in zip(signs, rows, strict=True)]
            between = abs(F(entry.get("b_off", 0.0))) * sum(max(t, F(0)) for t in slack)
        else:
            theta = np.where(states == 2, 0.0, states)
            theta[states == 2] = entry["between"]
            exact = Sparse(X, signs.astype(int), 1, header["smoothing"])
            value, dual = exact.objectives(w, theta, entry["alpha"], entry["beta"])
            true, between = value - dual, F(0)
        if not np.isfinite(gap):
            continue
        known += 1
        assert F(gap) >= true and abs(F(primal) - value) <= F(error)
        tight += F(gap) <= true * (1 + F(1, 10**8)) + value * F(1, 10**12) + 2 * between
    assert known > 0.6 * count and tight > 0.9 * known  # all of 60


def bias_of(products, signs) -> float:
    """Return the bias that minimises the loss, to the last bits."""
    low, high = -2.0 - np.abs(products).max(), 2.0 + np.abs(products).max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        slope = float(signs @ np.maximum(1.0 - signs * (products + middle), 0.0))
        low, high = (middle, high) if slope > 0.0 else (low, middle)
    return 0.5 * (low + high)


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_kernel_values_are_within_their_bounds(name):
    rng, tight = np.random.default_rng(5), 0
    for _ in range(40):
        kernel = {"kernel": name, "gamma": float(10.0 ** rng.uniform(-4.0, 1.0)), "degree": int(rng.integers(1, 6)),
                  "coef0": float(rng.choice([0.0, 1.0])), "constant": float(rng.choice([0.0, 0.25]))}  # fmt: skip
        scale = 10.0 ** rng.uniform(-3.0, 3.0)
        X = (rng.normal(size=(4, 3)) + rng.choice([0.0, 100.0])) * scale
        function = SimpleNamespace(name=name, **kernel)
        K, error = values(kernel, X[:2].astype(np.longdouble), X.astype(np.longdouble))
        for i, j in np.ndindex(K.shape):
            exact = exact_kernel(function, [F(x) for x in X[i].tolist()], [F(x) for x in X[j].tolist()])
            if np.isfinite(error[i, j]):
                assert abs(long_fraction(K[i, j]) - exact) <= long_fraction(error[i, j])
                tight += error[i, j] <= 1e-12 * abs(K[i, j]) + 1e-300
    assert tight > 200


def long_fraction(value) -> F:
    high = float(value)
    middle = float(value - np.longdouble(high))
    return F(high) + F(middle)
