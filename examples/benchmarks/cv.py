"""Cross-validation against scikit-learn: ``screenpath cv svm`` and ``GridSearchCV`` over ``LinearSVC(loss="hinge")``.

Same folds, same values of C, the same penalised bias, the same number of processes. screenpath is timed as a command:
start, reading, folds, the path on all data, writing. scikit-learn is timed from data in memory, without the fit on all
data; with ``--every K`` it fits every K-th C only, and its seconds are multiplied by K (it has no warm start: its fits
do not depend on each other).

Accuracy is matched in scikit-learn's favour: screenpath certifies a relative gap of ``--tol`` at every C of every fold;
scikit-learn runs at ``--sklearn-tol``, and the suboptimality (P(w) - D)/P(w) it has reached is printed, judged at every
fitted C of the first fold by the dual value D of a path to 1e-9. The tolerance of screenpath should lie below it.

    python examples/benchmarks/cv.py [--data FILE] [--folds 5] [--grid 100] [--jobs 2] [--every 1] [--tol 1e-6]
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from problems import DATA, ROOT
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC


class Stopwatch:
    """Wall seconds, and CPU seconds of this process and of its children."""

    def __enter__(self):
        self.wall, self.cpu = time.perf_counter(), self._cpu()
        return self

    def __exit__(self, *exception):
        self.wall, self.cpu = time.perf_counter() - self.wall, self._cpu() - self.cpu

    @staticmethod
    def _cpu() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)


def screenpath(file, member, options, folder) -> tuple[Stopwatch, np.ndarray, list]:
    """Return the times, the mean score at every C, and the values of C."""
    (folder / "folds").write_text("".join(f"{k}\n" for k in member))
    command = [sys.executable, "-m", "screenpath", "cv", "svm", str(file), "--bias", "1", "--quiet"]
    command += ["--fold-file", str(folder / "folds"), "--grid", str(options.grid), "--tol", str(options.tol)]
    command += ["--jobs", str(options.jobs), "--out", str(folder / "run"), "--force"]
    paths = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    with Stopwatch() as watch:
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths})
    with open(folder / "run" / "cv.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    return watch, np.array([float(r["mean"]) for r in rows]), [float(r["C"]) for r in rows]


def scikit_learn(X, y, member, values, options) -> tuple[Stopwatch, np.ndarray]:
    """Return the times and the mean score at every fitted C."""
    splits = [(np.flatnonzero(member != k), np.flatnonzero(member == k)) for k in range(options.folds)]
    # Its processes take up the CPU time of this one only when they are waited for, so they are made anew in a child.
    with Stopwatch() as watch, tempfile.TemporaryDirectory() as folder:
        pipe, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.environ["PYTHONWARNINGS"], os.environ["JOBLIB_TEMP_FOLDER"] = "ignore", folder
            warnings.simplefilter("ignore")
            model = LinearSVC(loss="hinge", tol=options.sklearn_tol, random_state=0)
            search = GridSearchCV(model, {"C": values}, cv=splits, n_jobs=options.jobs, refit=False)
            scores = search.fit(X, y).cv_results_["mean_test_score"]
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True)
            os.write(end, json.dumps(scores.tolist()).encode())
            os._exit(0)
        os.close(end)
        with os.fdopen(pipe) as answer:
            scores = json.loads(answer.read())
        os.waitpid(child, 0)
    return watch, np.array(scores)


def suboptimality(X, y, member, values, options) -> np.ndarray:
    """Return (P - D)/P of scikit-learn's solutions at every fitted C of the first fold."""
    from screenpath import svm_path

    X, y = X[member != 0], y[member != 0]
    path = svm_path(X, y, grid=values, bias=1.0, tol=1e-9)
    found = []
    for C, step in zip(values, path.steps, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LinearSVC(loss="hinge", tol=options.sklearn_tol, C=C, random_state=0).fit(X, y)
        w, b = model.coef_[0], float(model.intercept_[0])
        losses = np.maximum(0.0, 1.0 - np.sign(y) * (X @ w + b)).sum()
        primal = 0.5 * (w @ w + b * b) + C * losses
        found.append((primal - step.dual) / primal)
    return np.array(found)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(DATA / "binary" / "ijcnn1.libsvm.gz"))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--grid", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="scikit-learn fits every K-th C; its seconds times K")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--sklearn-tol", type=float, default=1e-4)
    options = parser.parse_args()
    if not Path(options.data).exists():
        raise SystemExit(f"{options.data} is not here (set SCREENPATH_DATA, or name a file with --data)")
    X, y = load_svmlight_file(options.data)
    member = np.empty(y.size, dtype=int)
    folds = StratifiedKFold(options.folds, shuffle=True, random_state=0)
    for k, (_, held_out) in enumerate(folds.split(X, y)):
        member[held_out] = k
    with tempfile.TemporaryDirectory() as folder:
        ours, scores, grid = screenpath(options.data, member, options, Path(folder))
    few = slice(options.every // 2, None, options.every)
    theirs, their_scores = scikit_learn(X, y, member, grid[few], options)
    factor = len(grid) / len(grid[few])
    reached = suboptimality(X, y, member, grid[few], options)
    size = f"{y.size} rows, {options.folds} folds x {options.grid} C, {options.jobs} processes"
    print(f"{Path(options.data).name}: {size}")
    print("| | wall s | CPU s | relative suboptimality |\n|---|---:|---:|---|")
    print(f"| screenpath cv | {ours.wall:.1f} | {ours.cpu:.1f} | at most {options.tol:g}, certified at all points |")
    spread = f"median {np.median(reached):.1e}, worst {reached.max():.1e}, best {reached.min():.1e}"
    print(
        f"| GridSearchCV, {len(grid[few])} of {len(grid)} C, x {factor:g} | {factor * theirs.wall:.1f} | "
        f"{factor * theirs.cpu:.1f} | {spread} |"
    )
    print(f"| ratio | {factor * theirs.wall / ours.wall:.1f} | {factor * theirs.cpu / ours.cpu:.1f} | |")
    print(f"\nlargest difference of the mean accuracies: {np.abs(scores[few] - their_scores).max():.1e}")


if __name__ == "__main__":
    one_thread.require()
    main()
