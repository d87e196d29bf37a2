"""Paths with a free intercept beside those without, LIBSVM (SVC) and rehline: 100 values of C, relative gap 1e-6.

    python examples/benchmarks/free_intercept.py                      # all sets, all sides
    python examples/benchmarks/free_intercept.py --only ijcnn1 --rivals rehline

One thread, CPU seconds, compilation excluded, sides alternating in one process. rehline has no free intercept: its form
of one is a constant column, whose value makes its weight nearly free of cost. Of values and tolerances the first is
taken with which every C is within 1e-6 of the optimum, relatively, as judged in plain numpy: the rival's weights with
their best intercept, against dual values of a path to 1e-9. SVC has no warm start. A trial ends after 30 times our
seconds, or 5 s where that is more: "> x".
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from functools import partial
from pathlib import Path

import one_thread  # isort: skip  (before numpy)

import numpy as np
from adapters import rehline_path
from problems import DATA, DENSE_ABOVE, Problem, wang_grid
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

from screenpath import lad_path, svm_path

TARGET, FINE, CAP, LEAST = 1e-6, 1e-9, 30.0, 5.0
SETS = {"breast_cancer": "svm", "ijcnn1": "svm", "pcmac": "svm", "cpusmall": "lad"}
SETTINGS = ((10.0, 1e-6), (30.0, 1e-7), (100.0, 1e-7), (300.0, 1e-8))  # rehline: value of the constant, tolerance


def problem_of(name: str) -> Problem | None:
    """Return a set, standardised if it is dense and of a classifier; None where its file is not there."""
    model = SETS[name]
    file = Path(DATA) / ("binary" if model == "svm" else "regression") / f"{name}.libsvm.gz"
    if not file.is_file():
        return None
    X, y = load_svmlight_file(str(file))
    if X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]:
        X = X.toarray()
        if model == "svm":
            spread = X.std(axis=0)
            X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    else:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # SVC takes no others
    return Problem(name, model, X, np.where(y == y.max(), 1.0, -1.0) if model == "svm" else y, wang_grid())


def best_value(problem: Problem, C: float, w) -> float:
    """Return the objective of weights with their best intercept."""
    y, apart = problem.y, problem.y - problem.X @ w  # kinks: from there on the intercept is too large, or too small
    if problem.model == "svm":
        low, high = np.minimum(y, 0.0), np.maximum(y, 0.0)
    else:
        low, high = -np.ones(y.size), np.ones(y.size)
    order = np.argsort(apart)
    slopes = high.sum() - np.cumsum((high - low)[order])  # minus the right derivative behind each kink
    t = apart - apart[order[np.argmax(slopes <= 0.0)]]
    return 0.5 * float(w @ w) + C * float(np.maximum(low * t, high * t).sum())


def ours(problem: Problem, intercept: str, tol: float = TARGET):
    """Return our path."""
    path = svm_path if problem.model == "svm" else lad_path
    return path(problem.X, problem.y, grid=problem.grid, tol=tol, intercept=intercept)


def svc(problem: Problem, setting) -> list:
    """Return the weights of SVC at each C."""
    path = []
    for C in problem.grid:
        w = SVC(kernel="linear", C=float(C), tol=setting, cache_size=1000).fit(problem.X, problem.y).coef_
        path.append(np.asarray(w.todense() if sparse.issparse(w) else w).ravel())
    return path


def rehline(problem: Problem, setting) -> list:
    """Return the weights of rehline at each C, with a constant column."""
    value, tolerance = setting
    column = np.full((problem.y.size, 1), value)
    wide = sparse.hstack([problem.X, column]).tocsr() if sparse.issparse(problem.X) else np.hstack([problem.X, column])
    data = rehline_path.prepare(Problem(problem.name, problem.model, wide, problem.y, problem.grid))
    return [beta[:-1] for beta in rehline_path.solve_path(data, problem.grid, tolerance)]


RIVALS = {
    "SVC": (svc, (1e-3, 1e-4, 1e-5, 1e-6)),
    "rehline": (rehline, SETTINGS),
}


def timed(make) -> tuple:
    """Return what a function returns, and its CPU seconds."""
    since = time.process_time()
    found = make()
    return found, time.process_time() - since


def send(pipe, rival, problem: Problem, setting) -> None:
    """Send a rival's path and its seconds."""
    pipe.send(timed(partial(rival, problem, setting)))


def tried(rival, problem: Problem, setting, cap: float) -> tuple | None:
    """Return a rival's path and its seconds, or None where it takes longer than ``cap``: a process can be stopped."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=send, args=(theirs, rival, problem, setting))
    process.start()
    found = ours.recv() if ours.poll(cap) else None
    process.terminate()
    process.join()
    return found


def setting_of(rival, settings, problem: Problem, duals, cap: float) -> tuple:
    """Return the first setting that reaches the target, or None; the seconds of the last; and what is to be said."""
    said, seconds = "", cap
    for setting in settings:
        found = tried(rival, problem, setting, cap)
        if found is None:
            return None, cap, f"{said}over the cap at {setting}"
        path, seconds = found
        values = np.array([best_value(problem, C, w) for C, w in zip(problem.grid, path, strict=True)])
        said = f"{setting}: within {np.max((values - duals) / values):.0e}; "
        if np.max((values - duals) / values) <= TARGET * 1.01:
            return setting, seconds, said
    return None, seconds, said


def compare(problem: Problem, rivals: list[str], runs: int) -> None:
    """Print a line a side for one problem."""
    path = ours(problem, "free")
    pairs = [[timed(partial(ours, problem, kind))[1] for kind in ("none", "free")] for _ in range(max(runs, 3))]
    free, longer = statistics.median(two for _, two in pairs), statistics.median(two / one for one, two in pairs)
    shape = " x ".join(map(str, problem.X.shape))
    print(f"{problem.name} ({problem.model}, {shape}): free {free:.4f} s, {longer:.2f} times none, {path.certified=}")
    duals = np.array([step.dual for step in ours(problem, "free", FINE).steps]) if rivals else None
    for who in rivals:
        if who == "SVC" and problem.model != "svm":
            continue
        rival, settings = RIVALS[who]
        setting, seconds, said = setting_of(rival, settings, problem, duals, max(CAP * free, LEAST))
        if setting is None:
            print(f"    {who}: > {seconds / free:.0f} x ({said})", flush=True)
            continue
        ratios = []
        for _ in range(runs):
            own = timed(partial(ours, problem, "free"))[1]
            ratios.append(timed(partial(rival, problem, setting))[1] / own)
        print(f"    {who}: {statistics.median(ratios):.1f} x ({said})", flush=True)


def main() -> None:
    """Compare on the sets that are present."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(SETS), help="these sets alone")
    parser.add_argument("--rivals", default=",".join(RIVALS))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    one_thread.require()
    for name in options.only or SETS:
        problem = problem_of(name)
        if problem is None:
            print(f"{name}: left out, its file is not in {DATA}")
            continue
        ours(problem, "free")
        compare(problem, [who for who in options.rivals.split(",") if who], options.runs)


if __name__ == "__main__":
    main()
