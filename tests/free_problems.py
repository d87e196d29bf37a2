"""Random box problems with a free intercept, and their optima by a cone solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from screenpath.catalogue.losses import LOSSES
from screenpath.problem.free import FreeModel
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve.newton import Newton
from screenpath.walk.loop import PathOptions, walk

VALUES = {"quantile": {"tau": 0.8}, "svr": {"epsilon": 0.3}}
SHAPES = ("plain", "tied", "sparse", "far from the origin")


def drawn(name: str, shape: str, seed: int, n: int, d: int, weighted: bool, far: float, least: int) -> tuple:
    """Return rows, targets and weights; ``tied`` rows and targets are whole numbers, some of them several times there.

    The first ``least`` rows have weight 1 and, of classes, one label after the other.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + rng.normal(size=d)
    if shape == "tied":
        X = np.round(2.0 * X)
        X[n // 2 : n // 2 + 4] = X[:4]
    if shape == "far from the origin":
        X += far
    if shape == "sparse":
        X[rng.random((n, d)) < 0.6] = 0.0
    forms = X @ rng.normal(size=d)
    forms = (forms - np.median(forms)) / max(forms.std(), 1e-9)
    y = np.round(3.0 * forms + rng.normal(size=n), 0 if shape == "tied" else 6)
    if name == "svm":
        y = np.where(forms + 0.5 * rng.normal(size=n) > rng.uniform(-0.8, 0.8), 1.0, -1.0)
        y[:least] = np.resize([1.0, -1.0], least)
    weights = rng.integers(0, 4, size=n).astype(float) if weighted else None
    if weighted:
        weights[:least] = 1.0
    return X, y, weights


def free_problem(name: str, shape: str, seed: int, n: int = 40, d: int = 4, weighted: bool = False) -> FreeModel:
    """Return a small model."""
    X, y, weights = drawn(name, shape, seed, n, d, weighted, 1e4, 2)
    rows = MemoryRows(sp.csr_array(X) if shape == "sparse" else X)
    return LOSSES[name].model(rows, y, weights, "free", **VALUES.get(name, {}))


def free_walk(model, grid, rule: str = "dvi+gap", tol: float = 1e-8, **more) -> list:
    """Return the steps and certificates of a path."""
    return list(walk(model, grid, parse_rule(rule), Newton(), PathOptions(tol=tol, **more)))


def objective(model, C: float, w, b: float) -> float:
    """Return the primal value, formed anew."""
    t = model.c - model.margins(np.asarray(w)) - model.signs * b
    return float(0.5 * np.dot(w, w) + C * np.maximum(model.lo * t, model.hi * t).sum())


def cone_optimum(model, C: float) -> float:
    """Return the optimum by an interior-point method."""
    return cone_solution(model, C)[0]


def cone_solution(model, C: float) -> tuple[float, np.ndarray]:
    """Return the optimum by an interior-point method, and how far each linear form is below its kink there."""
    d = model.rows.d
    w, b = cp.Variable(d), cp.Variable()
    G = np.stack([model.margins(column) for column in np.eye(d)], axis=1)
    signs = model.signs.astype(float)  # any shift of the rows is one of the intercept
    shift = (model.signs[:, None] * G).mean(axis=0)
    t = model.c - (G - signs[:, None] * shift) @ w - cp.multiply(signs, b)
    loss = cp.sum(cp.maximum(cp.multiply(model.lo, t), cp.multiply(model.hi, t)))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * loss))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value), np.asarray(t.value)
