"""Small problems for the tests of the sparse SVM, binary and multi-class, dense and sparse."""

import numpy as np
import scipy.sparse as sp

from screenpath.problem.sparse import SparseModel
from screenpath.rows.views import Views
from tests.conftest import ROOT

SDCA, ACC_SDCA = (f"{ROOT}/examples/papers/sdca.py:{name}" for name in ("ProximalSDCA", "AcceleratedSDCA"))  # plug-ins


def problem(classes=2, n=60, d=25, seed=0, density=0.4, dense=False, gamma=0.5, weights=None):
    """Return data, labels and the model at beta = 0; the first features carry the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < density)
    X[:, :classes] += 1.2 * np.eye(classes)[y]
    X[:, classes] += 0.3  # a full column
    codes = 2 * y - 1 if classes == 2 else y
    model = SparseModel(
        Views(X if dense else sp.csr_array(X)), codes.astype(np.int64), 1 if classes == 2 else classes, 0.0, gamma,
        weights,
    )  # fmt: skip
    return X, y, model


def dual_rows(X, y, classes):
    """Return the rows of the dual written out, one a dual variable, and the (class, sample) place of each."""
    n, d = X.shape
    rows, places = [], []
    for i in range(n):
        if classes == 2:
            rows.append((2 * y[i] - 1) * X[i])
            places.append(i)
            continue
        for c in range(classes):
            if c != y[i]:
                row = np.zeros((classes, d))
                row[y[i]] += X[i]
                row[c] -= X[i]
                rows.append(row.ravel())
                places.append(c * n + i)
    return np.array(rows), np.array(places)


def objectives(rows, n, w, theta, alpha, beta, gamma):
    """Return primal and dual objective from their definitions."""
    t = 1.0 - rows @ w
    loss = np.where(t < 0.0, 0.0, np.where(t <= gamma, t * t / (2.0 * gamma), t - gamma / 2.0)).sum() / n
    u = rows.T @ theta / n
    shrunk = np.sign(u) * np.maximum(np.abs(u) - beta, 0.0)
    primal = loss + 0.5 * alpha * w @ w + beta * np.abs(w).sum()
    return primal, theta.sum() / n - 0.5 * gamma / n * theta @ theta - 0.5 / alpha * shrunk @ shrunk
