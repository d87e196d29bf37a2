"""Whole RBF paths against scikit-learn's SVC (LIBSVM) fitted anew for every C, in CPU seconds of one process.

    python examples/benchmarks/kernel_svm.py DATA_FOLDER [--points 20] [--repeats 3] [--sets breast_cancer,dna]

Both get the same dense rows, gamma = 1/d and C log-spaced in [0.01, 1e4], and run in alternation on one core. The time
of screenpath holds its kernel matrix and every certificate (relative gap 1e-6 on the full data). SVC stops by its own
criterion (tol 1e-3 on the gradient) and has a free bias besides. Prints a Markdown table; ratios are medians.
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)
import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from screenpath import kernel_svm_path, read_libsvm
from screenpath.data.files.prepare import prepare
from screenpath.problem.grid import log_grid

SETS = {  # file, label against the rest, scaling
    "breast_cancer": ("binary/breast_cancer.libsvm.gz", None, "none"),
    "breast_cancer, standardised": ("binary/breast_cancer.libsvm.gz", None, "standard"),
    "dna": ("multiclass/dna.libsvm.gz", 3.0, "none"),
    "mushrooms": ("binary/mushrooms.libsvm.gz", None, "none"),
}
COLUMNS = ("data", "n", "d", "certified", "screenpath s", "SVC s", "SVC / screenpath")


def load(folder: Path, name: str):
    """Return dense rows and signs."""
    file, positive, scale = SETS[name]
    data = read_libsvm(folder / file)
    X, _ = prepare(data.X, scale, 0.0, "dense")
    return X, np.where(data.y == (data.y.max() if positive is None else positive), 1.0, -1.0)


def seconds(function):
    """Return the CPU seconds of a call and its result."""
    began = time.process_time()
    found = function()
    return time.process_time() - began, found


def fit_all(X, y, grid):
    """Fit SVC at every C, each from nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for C in grid:
            SVC(C=C, gamma=1.0 / X.shape[1]).fit(X, y)


def row(folder: Path, name: str, points: int, repeats: int) -> tuple:
    """Measure one set."""
    X, y = load(folder, name)
    grid = log_grid(1e-2, 1e4, points)
    kernel_svm_path(X[::10], y[::10], grid=grid, intercept="none")  # loads the numerical code
    ours, theirs = [], []
    for _ in range(repeats):
        path = None  # its matrix makes room for the next
        spent, path = seconds(lambda: kernel_svm_path(X, y, grid=grid, intercept="none"))
        ours.append(spent)
        theirs.append(seconds(lambda: fit_all(X, y, grid))[0])
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    certified = sum(step.status == "certified" for step in path.steps)
    mine, other = statistics.median(ours), statistics.median(theirs)
    return name, *X.shape, f"{certified} of {points}", f"{mine:.3g}", f"{other:.3g}", f"{ratio:.1f}"


def main(arguments) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", help=f"of {', '.join(SETS)}; all by default")
    options = parser.parse_args(arguments)
    one_thread.require()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for name in options.sets.split(",") if options.sets else SETS:
        if not (options.folder / SETS[name][0]).exists():
            print(f"{name}: left out, {SETS[name][0]} is not there", file=sys.stderr)
            continue
        cells = row(options.folder, name, options.points, options.repeats)
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
