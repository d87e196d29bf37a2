"""``SVMClassifierCV`` against ``GridSearchCV(LinearSVC)``: the time to choose C, and what the choice is worth.

Same values of C, same folds, the same penalised intercept, one process, data in memory. Both are fitted alternately
on the same training part of each data set, ours a first time on a few rows to warm up; seconds are medians. Held-out
accuracy is that of the chosen and refitted model on rows that neither has seen; ``noise`` is the standard error of the
difference, from the rows on which the two decide differently. screenpath certifies a relative gap of ``--tol`` at
every C of every fold and of the refit; LinearSVC runs at its defaults but for ``--loss``, and the fits that it says did
not converge are counted.

    python examples/benchmarks/sklearn_cv.py breast_cancer german_scale w8a [--grid 100] [--folds 5] [--loss hinge]
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from problems import DATA, DENSE_ABOVE
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC

from screenpath.sklearn import SVMClassifierCV


def data_file(name: str) -> Path:
    """Return the file of a set of two classes, which may be missing: a path, or a name of the data folder."""
    return Path(name) if Path(name).exists() else DATA / "binary" / f"{name}.libsvm.gz"


def prepared(file) -> tuple:
    """Return the rows of a file, centred where they are dense and of the spread 1, and their labels."""
    X, y = load_svmlight_file(str(file))
    dense = X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]
    return (StandardScaler().fit_transform(X.toarray()) if dense else MaxAbsScaler().fit_transform(X)), y


def timed(model, X, y) -> tuple[float, int]:
    """Fit a model; return the seconds and how many fits warned that they had not converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    return seconds, sum(issubclass(one.category, ConvergenceWarning) for one in caught)


def compare(name: str, X, y, options) -> str:
    """Return a line of the table."""
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    grid, cv = np.geomspace(1e-2, 10.0, options.grid), StratifiedKFold(options.folds, shuffle=True, random_state=0)
    ours = SVMClassifierCV(grid, cv=cv, bias=1.0, tol=options.tol)
    theirs = GridSearchCV(LinearSVC(loss=options.loss, random_state=0), {"C": grid}, cv=cv)
    few = np.concatenate([np.flatnonzero(y == label)[:20] for label in np.unique(y)])
    ours.fit(X[few], y[few])
    seconds: list = [[], []]
    for _ in range(options.repeats):
        for rank, model in enumerate((ours, theirs)):
            took, warned = timed(model, X, y)
            seconds[rank].append(took)
            if rank == 0 and warned:
                raise SystemExit(f"{name}: a fit of screenpath is not certified")
    first, second = (float(np.median(some)) for some in seconds)
    found, other = (model.predict(X_new) == y_new for model in (ours, theirs))
    noise = np.sqrt(np.count_nonzero(found != other)) / y_new.size
    kind = "sparse" if sparse.issparse(X) else "dense"
    return (
        f"| {name} ({X.shape[0]} x {X.shape[1]}, {kind}) | {first:.3f} | {second:.2f} | {second / first:.0f} | "
        f"{found.mean():.4f} | {other.mean():.4f} | {noise:.4f} | {ours.C_:.3g} | {theirs.best_params_['C']:.3g} | "
        f"{warned} |"
    )


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="names of sets of two classes in SCREENPATH_DATA/binary, or files")
    parser.add_argument("--grid", type=int, default=100)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--loss", choices=("hinge", "squared_hinge"), default="hinge", help="of LinearSVC")
    options = parser.parse_args()
    print(f"{options.grid} values of C x {options.folds} folds, LinearSVC(loss={options.loss!r})\n")
    head = ("data", "ours, s", "GridSearchCV, s", "ratio", "held out, ours", "theirs", "noise", "C, ours", "theirs")
    print(f"| {' | '.join((*head, 'unconverged'))} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in options.data:
        file = data_file(name)
        if not file.exists():
            print(f"{name}: {file} is not here (set SCREENPATH_DATA, or name a file)")
            continue
        print(compare(file.name.partition(".")[0], *prepared(file), options), flush=True)


if __name__ == "__main__":
    one_thread.require()
    main()
