"""Reduced data for other solvers: what they reach on `screenpath reduce` of a decade of C, judged on all rows.

    python examples/benchmarks/reduced.py
    python examples/benchmarks/reduced.py --only german_scale

Rows for C from 0.1 to 1, bias 1; dense data are standardised. Each solver is given the small file at C = 0.1, 0.3 and 1
and what is shown is the worst gap of its weights on *all* rows, over the optimum (a solve to 1e-11 there), and its CPU
seconds for the three, on the small data and on all rows; a trial that takes longer than CAP is ended: "> s".
scikit-learn (LIBLINEAR's code, with weights) and rehline take the weights of the rows. For solvers without, as plain
LIBLINEAR, the last column has copies: a mean row x that stands for rows of weight W is given as k copies of W/k x, k
larger than W y x.w, so that they stay within their margin, and the optimum is the same. (LIBLINEAR's own program ends
after 300 sweeps, whatever its tolerance: it misses 1e-6 on most of these sets with all rows, too.)
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import warnings
from pathlib import Path

import one_thread  # isort: skip  (before numpy)

import numpy as np
import scipy.sparse as sp
from problems import DATA, DENSE_ABOVE, ROOT, Missing
from sklearn.datasets import load_svmlight_file

import screenpath

LOW, HIGH = 0.1, 1.0
VALUES = (0.1, 0.3, 1.0)
CAP = 20.0  # seconds of a trial
COPIES = "sklearn, copies"
EPSILON = 0.1
SETS = {
    "breast_cancer": "svm", "german_scale": "svm", "winequality12": "svm", "magic04": "svm", "ijcnn1": "svm",
    "mushrooms": "svm", "digit1": "svm", "diabetes": "svr", "cpusmall": "svr", "cadata": "lad",
}  # fmt: skip


def data_of(name: str, model: str):
    """Return rows with a constant 1 as the last column, and targets; dense rows and real targets are standardised."""
    kind = "binary" if model == "svm" else "regression"
    places = (ROOT / "data_samples" / f"{name}.libsvm", DATA / kind / f"{name}.libsvm.gz")
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise Missing(f"{places[1]} is not there")
    X, y = load_svmlight_file(str(file))
    if X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]:
        X = X.toarray()
        spread = X.std(axis=0)
        X = sp.csr_matrix((X - X.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0])
    y = np.where(y == y.max(), 1.0, -1.0) if model == "svm" else (y - y.mean()) / y.std()
    return sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], 1))])), y


def losses(model: str, X, y, w) -> np.ndarray:
    forms = X @ w
    if model == "svm":
        return np.maximum(0.0, 1.0 - y * forms)
    return np.maximum(0.0, np.abs(y - forms) - (EPSILON if model == "svr" else 0.0))


def by_sklearn(model: str, X, y, s, C: float) -> np.ndarray:
    from sklearn.svm import LinearSVC, LinearSVR

    how = {"C": C, "fit_intercept": False, "tol": 1e-9, "max_iter": 2_000_000, "random_state": 0}
    if model == "svm":
        return LinearSVC(loss="hinge", **how).fit(X, y, sample_weight=s).coef_.ravel()
    return LinearSVR(epsilon=EPSILON if model == "svr" else 0.0, **how).fit(X, y, sample_weight=s).coef_


def by_rehline(model: str, X, y, s, C: float) -> np.ndarray:
    from rehline import ReHLine_solver

    slope = C * s
    if model == "svm":
        U, V = (-slope * y)[None], slope[None]
    else:
        far = EPSILON if model == "svr" else 0.0
        U, V = np.array([-slope, slope]), np.array([slope * (y - far), -slope * (y + far)])
    return ReHLine_solver(X.toarray(), U, V, max_iter=2_000_000, tol=1e-10, verbose=0).beta


SOLVERS = {"sklearn": by_sklearn, "rehline": by_rehline, COPIES: by_sklearn}


def copied(model: str, X, y, s, w):
    """Return data without weights that have the same optima: copies in place of rows of weight other than 1.

    ``w`` are optimal weights for some C. Of a regression, a copy has k times the row and the target, moved by what the
    loss leaves free, and lies on the same side.
    """
    heavy = s != 1.0
    rows, targets, counts = [X[~heavy]], [y[~heavy]], np.count_nonzero(heavy)
    for k in np.flatnonzero(heavy) if counts else ():
        row, weight = X[[int(k)]], s[k]
        if model != "svm":
            side = np.sign(y[k] - (row @ w[0])[0])
            free = EPSILON * side if model == "svr" else 0.0
            rows.append(weight * row)
            targets.append([weight * (y[k] - free) + free])
            continue
        copies = max(1, int(np.ceil(1.5 * weight * max(y[k] * float((row @ one)[0]) for one in w))) + 1)
        copies = min(copies, int(weight))
        rows.append(sp.vstack([weight / copies * row] * copies))
        targets.append(np.full(copies, y[k]))
    return sp.csr_matrix(sp.vstack(rows)), np.concatenate(targets)


def trial(solver: str, given: tuple, out) -> None:
    """Send weights for each C and the seconds of all."""
    import rehline  # noqa: F401  # before the clock
    import sklearn.svm  # noqa: F401

    warnings.simplefilter("ignore")
    began = time.process_time()
    found = [SOLVERS[solver](*given, C) for C in VALUES]
    out.send((found, time.process_time() - began))


def timed(solver: str, given: tuple):
    """Return what a trial has found, and its seconds; None where it takes too long."""
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=trial, args=(solver, given, send))
    process.start()
    found = receive.recv() if receive.poll(CAP) else None
    process.terminate()
    process.join()
    return found


def line_of(name: str, model: str, folder: Path) -> str:
    X, y = data_of(name, model)
    screenpath.write_libsvm(folder / name, X.toarray(), y)
    run = folder / "run"
    more = {"epsilon": EPSILON} if model == "svr" else {}
    screenpath.run(model, str(folder / name), out=str(run), force=True, quiet=True, intercept="none", **more)
    began = time.process_time()
    small = screenpath.reduce_run(run, LOW, HIGH)
    spent = time.process_time() - began
    path = {"svm": screenpath.svm_path, "svr": screenpath.svr_path, "lad": screenpath.lad_path}[model]
    best = path(X, y, grid=list(VALUES), tol=1e-11, intercept="none", **more)
    optimum = [best.coef(k) for k in range(len(VALUES))]
    cells = [f"{name} ({model})", f"{small.kept.size:,} of {y.size:,}", f"{spent:.2f}"]
    for solver in SOLVERS:
        kept, targets, s = sp.csr_matrix(small.X), small.y, small.weights
        if solver == COPIES:
            kept, targets = copied(model, kept, targets, s, optimum)
            s = np.ones(targets.size)
        found = timed(solver, (model, kept, targets, s))
        if found is None:
            cells.append(f"> {CAP:.0f} s")
            continue
        whole = None if solver == COPIES else timed(solver, (model, X, y, np.ones(y.size)))
        seconds = "" if solver == COPIES else f"; > {CAP:.0f}" if whole is None else f"; {whole[1]:.2g}"
        gaps = []
        for k, (C, w) in enumerate(zip(VALUES, found[0], strict=True)):
            step = best.steps[k]
            value = 0.5 * w @ w + C * losses(model, X, y, w).sum()
            gaps.append((value - step.dual) / step.primal)
        cells.append(f"{max(gaps):.0e}, {found[1]:.2g}{seconds}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    asked = parser.parse_args()
    one_thread.require()
    print(f"| data | rows kept | reduce, s | {' | '.join(f'{name}: gap, s; all rows, s' for name in SOLVERS)} |")
    print("|---|---|---:|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.only:
            try:
                print(line_of(name, SETS[name], Path(folder)), flush=True)
            except Missing as why:
                print(f"{name}: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
