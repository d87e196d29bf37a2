"""Kernel paths against scikit-learn's SVC, in CPU seconds of one thread; and the memory that they take.

    python examples/benchmarks/kernel_targets.py DATA_FOLDER paths|folds|memory

Standardised dense rows of the folder's `binary` sets, drawn at random, RBF kernel with gamma = 1/d, a free intercept.
`paths` times a path at a certified relative gap, and SVC (tol 1e-3) at each C anew; of the largest sets SVC is timed at
some C, and the rest interpolated by the logarithm of C. `folds` times `cross_validate` over 8 and 10 values of gamma,
and SVC on one of five folds at each pair, fit and score, times five: what GridSearchCV does. `memory` prints by how
much the resident size of a process that has its data grows while it computes a path.
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)
import argparse
import multiprocessing
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from screenpath import cross_validate, kernel_svm_path, read_libsvm

PATHS = (  # set, rows, values of C, its ends, tolerance, every how many C SVC is fitted
    ("magic04", 5000, 20, 0.01, 100.0, 1e-3, 1), ("covtype20k", 5000, 20, 0.01, 100.0, 1e-3, 1),
    ("ijcnn1", 5000, 20, 0.01, 100.0, 1e-3, 1), ("magic04", 5000, 20, 0.01, 100.0, 1e-6, 1),
    ("ijcnn1", 5000, 20, 0.01, 100.0, 1e-6, 1), ("magic04", 5000, 11, 2.0**-5, 2.0**15, 1e-3, 0),
    ("ijcnn1", 5000, 11, 2.0**-5, 2.0**15, 1e-3, 0), ("ijcnn1", 20000, 10, 0.1, 10.0, 1e-3, 3),
    ("covtype20k", 20000, 10, 0.1, 10.0, 1e-3, 3), ("ijcnn1", 49990, 10, 0.1, 10.0, 1e-3, 9),
)  # fmt: skip
LARGE = 2.0**11  # where LIBSVM's grid of C is compared with one fit: its entries have no number of fits
FORK = multiprocessing.get_context("fork")
GAMMAS, FOLDS = np.geomspace(0.01, 10.0, 10), 5
SIZES = (5000, 10000, 20000, 49990)


def load(folder: Path, name: str, n: int):
    """Return rows, standardised, and signs."""
    data = read_libsvm(folder / "binary" / f"{name}.libsvm.gz")
    some = np.random.default_rng(0).permutation(data.y.size)[:n]
    X = (data.X.toarray() if hasattr(data.X, "toarray") else data.X)[some]
    X, deviation = X - X.mean(axis=0), X.std(axis=0)
    return np.ascontiguousarray(X[:, deviation > 0.0] / deviation[deviation > 0.0]), np.where(
        data.y[some] == data.y.max(), 1.0, -1.0
    )


def seconds(call):
    """Return the CPU seconds of a call and its result."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def svc(X, y, C: float, gamma: float) -> float:
    return seconds(lambda: SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y))[0]


def path_row(folder: Path, name, n, points, low, high, tol, every) -> tuple:
    """Measure one path twice, and SVC once between."""
    X, y = load(folder, name, n)
    gamma, grid, ours = 1.0 / X.shape[1], np.geomspace(low, high, points), []
    kernel_svm_path(X[:1500], y[:1500], gamma=gamma, grid=[1.0], tol=tol)  # loads the numerical code
    for k in range(2):
        spent, path = seconds(lambda: kernel_svm_path(X, y, gamma=gamma, grid=grid, tol=tol))
        ours.append(spent)
        if k == 0:
            fitted = grid[::every] if every else np.array([LARGE])
            each = [svc(X, y, C, gamma) for C in fitted]
    whole = float(np.exp(np.interp(np.log(grid), np.log(fitted), np.log(each))).sum()) if every else each[0]
    certified, mine = sum(step.status == "certified" for step in path.steps), float(np.mean(ours))
    note = {0: " (one fit at 2^11)", 1: ""}.get(every, f" ({len(fitted)} of {points} fitted)")
    of = f"{points} in [{low:g}, {high:g}]"
    return name, n, of, f"{tol:g}", certified, f"{mine:.2f}", f"{whole:.1f}{note}", f"{whole / mine:.1f}"


def fold_rows(folder: Path, name: str):
    """Measure cross-validations over C and the first 8 gammas, up to 2.15 / d, and all 10."""
    X, y = load(folder, name, 5000)
    gammas, grid, fold = GAMMAS / X.shape[1], np.geomspace(0.01, 100.0, 20), np.arange(y.size) % FOLDS

    def ours(X, y, *values):
        gammas, grid = (",".join(f"{value:.6e}" for value in some) for some in values)
        with tempfile.TemporaryDirectory() as out:
            found = dict(gammas=gammas, c_list=grid, scale="none", tol=1e-3, folds=FOLDS, jobs=1, quiet=True)
            return cross_validate("svm", (X, y), kernel="rbf", out=f"{out}/run", **found)

    ours(X[:500], y[:500], [0.1], [1.0])
    theirs, before = 0.0, 0
    for count in (8, 10):
        mine = seconds(lambda count=count: ours(X, y, gammas[:count], grid))[0]
        for gamma in gammas[before:count]:
            for C in grid:
                spent, model = seconds(lambda C=C, gamma=gamma: SVC(C=C, gamma=gamma).fit(X[fold > 0], y[fold > 0]))
                theirs += FOLDS * (spent + seconds(lambda model=model: model.score(X[fold == 0], y[fold == 0]))[0])
        yield name, 5000, f"{FOLDS} x {count} x 20", f"{mine:.1f}", f"{theirs:.0f}", f"{theirs / mine:.1f}"
        before = count


def memory_row(folder: Path, n: int) -> tuple:
    """Measure what a path of ten C takes, in a process of its own, to which the data have been given."""
    X, y = load(folder, "ijcnn1", n)
    receive, send = FORK.Pipe(duplex=False)
    child = FORK.Process(target=grown, args=(X, y, send))
    child.start()
    taken = receive.recv()
    child.join()
    return n, f"{X.nbytes / 2**20:.0f}", f"{taken / 2**20:.0f}", f"{taken / n:.0f}"


def grown(X, y, pipe) -> None:
    """Send the bytes by which this process grows at most."""
    kernel_svm_path(X[:200], y[:200], gamma=1.0 / X.shape[1], grid=[1.0], tol=1e-3)  # loads the numerical code
    before = resident("VmRSS")
    kernel_svm_path(X, y, gamma=1.0 / X.shape[1], grid=np.geomspace(0.1, 10.0, 10), tol=1e-3)
    pipe.send(resident("VmHWM") - before)


def resident(name: str) -> int:
    """Return a number of bytes that Linux knows of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def table(columns: tuple, rows) -> None:
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)


def main(arguments) -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=("paths", "folds", "memory"))
    parser.add_argument("--only", default="", help="sets, or SET:ROWS, that begin so")
    options = parser.parse_args(arguments)
    one_thread.require()
    warnings.simplefilter("ignore")
    if options.what == "paths":
        some = [row for row in PATHS if f"{row[0]}:{row[1]}".startswith(options.only)]
        columns = ("data", "n", "C", "tol", "certified", "screenpath s", "SVC s", "SVC / screenpath")
        table(columns, (path_row(options.folder, *row) for row in some))
    elif options.what == "folds":
        some = [name for name in ("magic04", "ijcnn1") if name.startswith(options.only)]
        columns = ("data", "n", "folds x gamma x C", "screenpath s", "SVC s", "SVC / screenpath")
        table(columns, (row for name in some for row in fold_rows(options.folder, name)))
    else:
        columns = ("n", "data, MB", "path of 10 C beside them, MB", "bytes a row")
        table(columns, (memory_row(options.folder, n) for n in SIZES))


if __name__ == "__main__":
    main(sys.argv[1:])
