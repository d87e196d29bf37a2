"""L1-regularised squared hinge with a free bias: screenpath against LIBLINEAR and cyanure over 20 values of lambda.

    PYTHONPATH=. python examples/benchmarks/l1svm.py [SET ...] [--repeats 5] [--cap 120]

Every solver gets the loosest tolerance of its list at which the worst point of the path is within 1e-6 (relative) of
the optimum. LIBLINEAR (-s 5 -B 1 -R) has no warm start for this model and solves each lambda anew; cyanure starts from
the previous solution. The timed runs alternate in one process on one thread, and CPU seconds are compared: data in
memory, compiled code warm. Objectives are evaluated here in plain numpy; lower bounds are dual values of a run to 1e-9.
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import argparse
import os
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

TARGET = 1e-6
SETS = ("breast_cancer", "breast_cancer:standard", "chowdary", "rcv1sub.binary")
DATA = Path(os.environ.get("SCREENPATH_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))


def load(name: str):
    """Return data (dense from a density of 0.3) and signs; ``:standard`` behind the name scales the columns."""
    name, _, scale = name.partition(":")
    X, y = load_svmlight_file(str(DATA / "binary" / f"{name}.libsvm.gz"))
    if X.nnz > 0.3 * X.shape[0] * X.shape[1]:
        X = X.toarray()
    if scale == "standard":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.where(y == y.max(), 1.0, -1.0)


def objective(X, y, w, b, lam) -> float:
    """Return ``1/2 sum max(0, 1 - y (x.w + b))^2 + lam ||w||_1``."""
    return 0.5 * float(np.sum(np.maximum(0.0, 1.0 - y * (X @ w + b)) ** 2)) + lam * float(np.abs(w).sum())


class Screenpath:
    """The whole path with the defaults of ``l1_svm_path``; the tolerance is its relative gap on the full data."""

    tolerances = (1e-6,)

    def __init__(self, X, y, lams):
        self.X, self.y, self.lams = X, y, lams

    def run(self, tolerance):
        from screenpath import l1_svm_path

        path = l1_svm_path(self.X, self.y, grid=self.lams, tol=tolerance)
        self.dual = np.array([step.dual for step in path.steps])
        return list(zip(path.coefficients, path.intercepts, strict=True))


class Liblinear:
    """``-s 5 -B 1 -R``; its ``||w||_1 + C sum max(0, .)^2`` is ours over lambda with ``C = 1 / (2 lambda)``."""

    tolerances = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 5e-4, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7)

    def __init__(self, X, y, lams):
        from liblinear.liblinearutil import problem

        self.d, self.lams, self.data = X.shape[1], lams, problem(y, sp.csr_matrix(X))

    def run(self, tolerance):
        from liblinear.liblinearutil import parameter, train

        path = []
        for lam in self.lams:
            options = parameter(f"-s 5 -c {0.5 / float(lam)!r} -B 1 -R -e {tolerance!r} -q")
            model = train(self.data, options)
            w, b = model.get_decfun()
            sign = 1.0 if model.get_labels()[0] == 1 else -1.0
            weights = np.zeros(self.d)
            weights[: len(w)] = w
            path.append((sign * weights, sign * b))
        return path


class Cyanure:
    """``sqhinge`` with ``l1``, unpenalised intercept, warm starts; its mean over samples is ours over n."""

    tolerances = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)

    def __init__(self, X, y, lams):
        self.X, self.y, self.lams = (sp.csr_matrix(X) if sp.issparse(X) else X), y, lams

    def run(self, tolerance):
        from cyanure.estimators import Classifier

        model = Classifier(
            loss="sqhinge", penalty="l1", fit_intercept=True, tol=tolerance, max_iter=100_000, warm_start=True,
            verbose=False, n_threads=1,
        )  # fmt: skip
        path = []
        for lam in self.lams:
            model.lambda_1 = lam / self.y.size
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # its own notes on convergence; the objective decides here
                model.fit(self.X, self.y)
            path.append((np.ravel(model.coef_).copy(), float(np.ravel(model.intercept_)[0])))
        return path


def timed(solver, tolerance):
    """Return the path and its CPU seconds."""
    since = time.process_time()
    path = solver.run(tolerance)
    return path, time.process_time() - since


def worst(X, y, lams, bounds, path) -> float:
    """Return the largest relative distance of a path to the lower bounds."""
    values = np.array([objective(X, y, w, b, lam) for (w, b), lam in zip(path, lams, strict=True)])
    relative = (values - bounds) / bounds
    if relative.min() < -1e-10:
        raise SystemExit(f"a lower bound is wrong by {-relative.min():.1e}")
    return float(relative.max())


def loosest(solver, X, y, lams, bounds, cap):
    """Return the loosest tolerance of a solver that reaches the target, with its accuracy, or None and the best met."""
    best = np.inf
    spent = 0.0
    for tolerance in solver.tolerances:
        path, seconds = timed(solver, tolerance)
        accuracy = worst(X, y, lams, bounds, path)
        best, spent = min(best, accuracy), spent + seconds
        if accuracy <= TARGET:
            return tolerance, accuracy
        if spent > cap:
            break
    return None, best


RIVALS = {"liblinear": Liblinear, "cyanure": Cyanure}


def compare(name: str, repeats: int, cap: float, others=tuple(RIVALS)) -> None:
    """Print one line a solver for one data set."""
    from screenpath import l1_svm_path

    X, y = load(name)
    lams = l1_svm_path(X, y, time_limit=1e-9).grid  # the grid alone
    ours = Screenpath(X, y, lams)
    ours.run(1e-9)
    bounds = ours.dual.copy()
    rivals = {"screenpath": ours, **{who: RIVALS[who](X, y, lams) for who in others}}
    settings = {who: loosest(solver, X, y, lams, bounds, cap) for who, solver in rivals.items()}
    seconds = {who: [] for who in rivals}
    for _ in range(repeats):
        for who, solver in rivals.items():
            if settings[who][0] is not None and sum(seconds[who]) < cap:
                seconds[who].append(timed(solver, settings[who][0])[1])
    base = statistics.median(seconds["screenpath"])
    for who, (tolerance, accuracy) in settings.items():
        if tolerance is None:
            print(f"{name:24} {who:12} never reached 1e-6 (best {accuracy:.1e}) within {cap:g} s")
            continue
        middle = statistics.median(seconds[who])
        print(f"{name:24} {who:12} tol {tolerance:7.0e}  worst {accuracy:7.1e}  {middle:9.4f} s  x{middle / base:.1f}")


def main() -> None:
    """Compare on the sets that are present."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), help="names of data sets, :standard scales the columns")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cap", type=float, default=120.0, help="CPU seconds for one rival on one set")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=list(RIVALS))
    options = parser.parse_args()
    one_thread.require()
    for name in options.sets:
        if not (DATA / "binary" / f"{name.partition(':')[0]}.libsvm.gz").is_file():
            print(f"{name:24} left out: not in {DATA}")
            continue
        compare(name, options.repeats, options.cap, options.rivals)


if __name__ == "__main__":
    main()
