"""Random box problems, references of every quality, and optima so accurate that they can contradict a rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.rows.memory import MemoryRows
from screenpath.screen import Screening
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, solve_point

MODELS = ("svm", "lad", "quantile", "svr")
STORAGES = ("dense", "csr", "dense32", "csr32")
WEIGHTS = ("none", "random", "some zero", "wide")
SHAPES = ("plain", "separable", "badly scaled", "far from the origin", "repeated rows", "more features than rows")
# How a reference was made: the closed-form start, an arbitrary feasible pair, sweeps of coordinate descent, converged.
ACCURACIES = ("start", "arbitrary", "1 epoch", "3 epochs", "10 epochs", "60 epochs", "1e-6", "1e-12")
UNSCREENED = Screening(None, False, "none")


def judged(faults: list, words: str) -> int:
    """Print the first faults an attack has found, and return its exit code."""
    for fault in faults[:50]:
        print(words.format(*fault))
    return 1 if faults else 0


def random_problem(rng):
    kind, storage, weighting, shape = (str(rng.choice(a)) for a in (MODELS, STORAGES, WEIGHTS, SHAPES))
    n, d = int(rng.integers(8, 50)), int(rng.integers(1, 8))
    if shape == "more features than rows":
        n, d = int(rng.integers(4, 12)), int(rng.integers(12, 30))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.uniform(0.3, 1.0))
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    X += signs[:, None] * (3.0 if shape == "separable" else rng.uniform(0.0, 1.0))
    if shape == "badly scaled":
        X *= 10.0 ** rng.uniform(-3.0, 3.0, d)
        X += 10.0 ** rng.uniform(-2.0, 3.0)
    if shape == "far from the origin":  # all rows nearly parallel: sums over rows lose digits
        X += 10.0 ** rng.uniform(2.0, 6.0, X.shape[1])
    if shape == "repeated rows":
        X[n // 2 :] = X[: n - n // 2]
        X[0] = 0.0
    if rng.random() < 0.5:
        X = np.hstack([X, np.ones((n, 1))])
    X = X.astype(np.float32 if storage.endswith("32") else np.float64)
    rows = MemoryRows(sp.csr_array(X) if storage.startswith("csr") else X)
    weights = {
        "none": None, "random": rng.uniform(0.1, 3.0, n), "some zero": rng.integers(0, 3, n).astype(float),
        "wide": 10.0 ** rng.uniform(-3.0, 3.0, n),
    }[weighting]  # fmt: skip
    if kind == "svm":
        model = SVM.model(rows, signs, weights)
    else:
        y = X.astype(float) @ rng.normal(size=X.shape[1]) + rng.standard_t(2, n)
        model = regression(rng, kind, rows, y, weights)
    return model, f"{kind}, {storage}, weights {weighting}, {shape}"


def regression(rng, kind: str, rows, y, weights):
    """Return a model of targets; its level or its tube is drawn."""
    return {
        "lad": lambda: LAD.model(rows, y, weights),
        "quantile": lambda: QUANTILE.model(rows, y, weights, tau=rng.uniform(0.05, 0.95)),
        "svr": lambda: SVR.model(rows, y, weights, epsilon=rng.uniform(0.0, 1.0)),
    }[kind]()


def random_scale(rng, model) -> float:
    """Return a C in the range where the solution changes: some orders of magnitude above the closed form."""
    _, _, limit = model.closed_form()
    low = limit if 0.0 < limit < np.inf else 1e-3
    return float(low * 10.0 ** rng.uniform(-0.5, 3.5))


def reference(rng, model, C: float, accuracy: str):
    """Return a certificate at C (or, for the start, below it)."""
    if accuracy == "start":
        return model.start(C)
    if accuracy == "arbitrary":
        theta = model.lo + (model.hi - model.lo) * rng.choice([0.0, 1.0, rng.random()], size=model.size)
        w = C * model.weighted_sum(theta)
        return model.certify(C, rng.uniform(0.0, 1.2) * w + rng.normal(size=w.size) * rng.uniform(0.0, 0.3), theta)
    if "epoch" in accuracy:
        options = PathOptions(tol=1e-14, max_epochs=int(accuracy.split()[0]))
        solver = make_solver("cd", int(rng.integers(100)))
    else:
        options, solver = PathOptions(tol=float(accuracy), max_epochs=400), make_solver("newton")
    return solve_point(model, C, 0, model.start(C), UNSCREENED, solver, options)[1]


@dataclass(frozen=True)
class Optimum:
    """A ball around the optimum in extended precision; ``low`` and ``high`` bound ``g_i.w`` over it."""

    G: np.ndarray
    center: np.ndarray
    radius: float
    low: np.ndarray
    high: np.ndarray


def dense_rows(model):
    """Return ``G`` as it is stored, signs applied, in extended precision."""
    X = model.rows.X if not model.rows.sparse else _dense(model.rows)
    G = np.vstack([X, X]) if model.mirrored else X
    return model.signs[:, None] * G.astype(np.longdouble)


def _dense(rows):
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n, rows.d)).toarray()


def optimum(model, G, C: float) -> Optimum:
    """Solve without screening, sharpen on the rows at their kink, and bound what is left in extended precision.

    Nothing of the rules is used. The radius is recomputed here from the definition of the two objectives.
    """
    start = reference(None, model, C, "1e-12")
    best = _pair_ball(model, G, C, start.theta.astype(np.longdouble), start.point.vector)
    for theta in _sharpened(model, G, C, start.theta):
        best = min(best, _pair_ball(model, G, C, theta, None), key=lambda ball: ball[1])
    center, radius = best
    middle, reach = G @ center, radius * np.sqrt((G * G).sum(axis=1))
    return Optimum(G, center, radius, middle - reach, middle + reach)


def _sharpened(model, G, C, theta):
    """Yield dual points whose free rows lie on their kinks: least squares with a correction in extended precision."""
    free = (theta > model.lo) & (theta < model.hi)
    if not free.any():
        return
    theta = theta.astype(np.longdouble)
    rows = G[free].astype(np.float64)
    for _ in range(3):
        residual = model.c[free] - G[free] @ (C * (G.T @ theta))
        step = np.linalg.lstsq(C * rows @ rows.T, residual.astype(np.float64), rcond=1e-12)[0]
        theta = theta.copy()
        theta[free] = np.clip(theta[free] + step, model.lo[free], model.hi[free])
        yield theta


def _pair_ball(model, G, C, theta, w):
    C = np.longdouble(C)
    total = C * (G.T @ theta)
    w = total if w is None else w.astype(np.longdouble)
    t = model.c - G @ w
    center = (w + total) / 2
    loss, linear = np.maximum(model.lo * t, model.hi * t), model.c * theta
    squared = center @ center + C * (loss.sum() - linear.sum())
    noise = np.longdouble(1e-17) * (center @ center + C * (np.abs(loss).sum() + np.abs(linear).sum()))
    noise += np.longdouble(1e-17) * C * (np.abs(model.hi) + np.abs(model.lo)) @ (np.abs(G) @ np.abs(w))
    return center, np.sqrt(max(squared, 0.0) + noise)
