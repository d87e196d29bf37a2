"""One-vs-one paths behind an RBF kernel beside one fit of scikit-learn's SVC (LIBSVM), in CPU seconds of one process.

    python examples/benchmarks/one_vs_one.py DATA_FOLDER [--repeats 3] [--sets usps,satimage]

A path of 10 values of C in [0.1, 10], gamma = scale, each certified to 1e-3 for every pair of labels, as a run without
coefficients; beside it single fits at C = 1, of dense and of sparse rows (SVC takes inner products of dense ones by
BLAS), in alternation. Prints a Markdown table; ratios are medians.
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import scipy.sparse as sp
from sklearn.svm import SVC

import screenpath

COLUMNS = ("data", "n", "d", "labels", "certified", "path s", "passes", "SVC dense s",
           "SVC sparse s", "path / dense", "path / sparse")  # fmt: skip


def seconds(function):
    """Return the CPU seconds of a call and its result."""
    began = time.process_time()
    found = function()
    return time.process_time() - began, found


def path(X, y, folder: Path):
    return screenpath.run(
        "svm", (X, y), one_vs_one=True, kernel="rbf", gamma="scale", intercept="free", grid=10, cmin=0.1, cmax=10.0,
        tol=1e-3, coefficients="none", out=str(folder), force=True, quiet=True,
    )  # fmt: skip


def row(name: str, data, repeats: int) -> tuple:
    """Measure one set."""
    X, y = data.X.toarray(), data.y
    ours, dense, sparse = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path(X[::20], y[::20], Path(folder))  # loads the numerical code
        for _ in range(repeats):
            spent, found = seconds(lambda: path(X, y, Path(folder)))
            ours.append(spent)
            for rows, times in ((X, dense), (sp.csr_matrix(X), sparse)):
                times.append(seconds(lambda rows=rows: SVC(C=1.0, gamma="scale", cache_size=1000).fit(rows, y))[0])
        steps = found.steps
    certified = sum(step.status == "certified" for step in steps)
    ratios = [statistics.median(a / b for a, b in zip(ours, other, strict=True)) for other in (dense, sparse)]
    times = [statistics.median(values) for values in (ours, dense, sparse)]
    return (
        name, *X.shape, len(set(y)), f"{certified} of {len(steps)}", f"{times[0]:.2f}",
        f"{sum(step.passes for step in steps):.0f}", *(f"{value:.2f}" for value in (*times[1:], *ratios)),
    )  # fmt: skip


def main(arguments) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", default="usps,satimage,dna")
    options = parser.parse_args(arguments)
    one_thread.require()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for name in options.sets.split(","):
        data = screenpath.read_libsvm(options.folder / f"multiclass/{name}.libsvm.gz")
        print("| " + " | ".join(map(str, row(name, data, options.repeats))) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
