"""Sparse SVM grid: screenpath beside skglm with a custom datafit, both to the same certified gap at every pair.

    python examples/benchmarks/sparse_svm.py                     # 1k x 1k, 10k x 1k, 1k x 10k, 10 x 100 pairs each
    python examples/benchmarks/sparse_svm.py --only 1000x1000 --runs 5

The sets are Hong 2019's (section 6.1): 2 % dense informative features, the rest with density 2 %. One thread, CPU
seconds, compilation excluded, both sides in one process and alternating. skglm's tolerance is not a gap: the loosest
of a ladder is used with which every pair has a relative gap of at most 1e-6, as judged by this script. Both sides walk
the same grid from the same closed-form start, warm-started. skglm is handed the matrix by columns and its datafit and
penalty compiled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from numba import float64  # noqa: E402
from skglm.datafits.base import BaseDatafit  # noqa: E402
from skglm.penalties import L1_plus_L2  # noqa: E402
from skglm.solvers import AndersonCD  # noqa: E402
from skglm.utils.jit_compilation import compiled_clone  # noqa: E402

from screenpath import sparse_svm_path  # noqa: E402
from screenpath.data.files.generate import generate  # noqa: E402

SIZES = ("1000x1000", "10000x1000", "1000x10000")  # samples x features
TARGET = 1e-6
GAMMA = 0.5
LADDER = [10.0 ** (-k / 2) for k in range(6, 19)]


class SmoothedHinge(BaseDatafit):
    """Mean smoothed hinge of ``1 - y Xw``."""

    def __init__(self, gamma):
        self.gamma = gamma

    def get_spec(self):
        return (("gamma", float64),)

    def params_to_dict(self):
        return {"gamma": self.gamma}

    def initialize(self, X, y):
        pass

    def initialize_sparse(self, X_data, X_indptr, X_indices, y):
        pass

    def get_lipschitz(self, X, y):
        return (X**2).sum(axis=0) / (self.gamma * len(y))

    def get_lipschitz_sparse(self, X_data, X_indptr, X_indices, y):
        out = np.zeros(len(X_indptr) - 1)
        for j in range(len(out)):
            out[j] = (X_data[X_indptr[j] : X_indptr[j + 1]] ** 2).sum() / (self.gamma * len(y))
        return out

    def value(self, y, w, Xw):
        total = 0.0
        for i in range(len(y)):
            t = 1.0 - y[i] * Xw[i]
            best = min(max(t / self.gamma, 0.0), 1.0)
            total += best * (t - 0.5 * self.gamma * best)
        return total / len(y)

    def gradient_scalar(self, X, y, w, Xw, j):
        total = 0.0
        for i in range(len(y)):
            total -= X[i, j] * y[i] * min(max((1.0 - y[i] * Xw[i]) / self.gamma, 0.0), 1.0)
        return total / len(y)

    def gradient_scalar_sparse(self, X_data, X_indptr, X_indices, y, Xw, j):
        total = 0.0
        for p in range(X_indptr[j], X_indptr[j + 1]):
            i = X_indices[p]
            total -= X_data[p] * y[i] * min(max((1.0 - y[i] * Xw[i]) / self.gamma, 0.0), 1.0)
        return total / len(y)

    def full_grad_sparse(self, X_data, X_indptr, X_indices, y, Xw):
        out = np.zeros(len(X_indptr) - 1)
        for j in range(len(out)):
            out[j] = self.gradient_scalar_sparse(X_data, X_indptr, X_indices, y, Xw, j)
        return out


def soft(u, beta):
    return np.sign(u) * np.maximum(np.abs(u) - beta, 0.0)


def rel_gap(X, y, w, alpha, beta):
    """Return the relative gap of ``w`` and its own dual point, in plain numpy."""
    n = len(y)
    t = 1.0 - y * (X @ w)
    theta = np.clip(t / GAMMA, 0.0, 1.0)
    shrunk = soft(X.T @ (y * theta) / n, beta)
    primal = np.mean(theta * (t - 0.5 * GAMMA * theta)) + 0.5 * alpha * w @ w + beta * np.abs(w).sum()
    dual = np.mean(theta) - 0.5 * GAMMA * np.mean(theta**2) - 0.5 / alpha * shrunk @ shrunk
    return (primal - dual) / primal


class Rival:
    """skglm over the same grid."""

    def __init__(self, X, y):
        self.X, self.y = sp.csc_matrix(X), y
        self.datafit = compiled_clone(SmoothedHinge(GAMMA))
        self.penalty = compiled_clone(L1_plus_L2(1.0, 0.5))

    def run(self, grid, tol, keep=None):
        solver = AndersonCD(tol=tol, fit_intercept=False, max_iter=100, warm_start=True)
        u = self.X.T @ self.y / len(self.y)
        for beta, alphas in grid:
            w = soft(u, beta) / alphas[0]
            Xw = self.X @ w
            for alpha in alphas:
                self.penalty.alpha, self.penalty.l1_ratio = alpha + beta, beta / (alpha + beta)
                w, *_ = solver.solve(self.X, self.y, self.datafit, self.penalty, w, Xw, run_checks=False)
                if keep is not None:
                    keep.append(w.copy())

    def loosest(self, grid):
        """Return the loosest tolerance of the ladder with which every pair meets the target, and the worst gap."""
        points = [(alpha, beta) for beta, alphas in grid for alpha in alphas]
        for tol in LADDER:
            found = []
            self.run(grid, tol, found)
            pairs = zip(found, points, strict=True)
            worst = max(rel_gap(self.X, self.y, w, alpha, beta) for w, (alpha, beta) in pairs)
            if worst <= TARGET:
                return tol, worst
        raise SystemExit("skglm reached the target with no tolerance of the ladder")


def cpu(run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def compare(size: str, betas: int, alphas: int, runs: int, seed: int) -> None:
    n, p = map(int, size.split("x"))
    X, y = generate("hong-syn1", seed, n=n, p=p)
    sparse_svm_path(X, y, betas=2, alphas=2, intercept="none")
    path = sparse_svm_path(X, y, betas=betas, alphas=alphas, tol=TARGET, intercept="none")
    grid = {}
    for step in path.steps:
        grid.setdefault(step.parameters["beta"], []).append(step.parameters["alpha"])
    grid = list(grid.items())
    rival = Rival(X, y)
    rival.run(grid[:2], 1e-2)
    tol, worst = rival.loosest(grid)
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(cpu(lambda: sparse_svm_path(X, y, betas=betas, alphas=alphas, tol=TARGET, intercept="none")))
        theirs.append(cpu(lambda: rival.run(grid, tol)))
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    print(
        f"{size}: screenpath {statistics.median(ours):.2f} s (worst gap {max(s.rel_gap for s in path.steps):.1e}, "
        f"{np.mean([s.passes for s in path.steps]):.1f} passes a pair, all certified: {path.certified}); "
        f"skglm {statistics.median(theirs):.2f} s (tol {tol:.0e}, worst gap {worst:.1e}); ratio {ratio:.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NxP", action="append", help=f"sizes instead of {', '.join(SIZES)}")
    parser.add_argument("--betas", type=int, default=10)
    parser.add_argument("--alphas", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for size in options.only or SIZES:
        compare(size, options.betas, options.alphas, options.runs, options.seed)


if __name__ == "__main__":
    main()
