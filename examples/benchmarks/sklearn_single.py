"""One ``SVMClassifier`` against one ``LinearSVC``: the time of a single C.

The same rows in memory, the same penalised intercept, one thread. All are fitted alternately, each a first time to warm
up; seconds are medians. screenpath certifies its default relative gap of 1e-6; LinearSVC runs at its default tolerance
and limit, once with the hinge loss, the model that ours is, and once as it is by default: with the squared hinge, which
is another model and an easier problem. Beside its hinge stands the relative gap of what it has found, from the dual
objective of ours, and the sets on which it said that it has not converged are marked ``*``.

    python examples/benchmarks/sklearn_single.py [NAME ...] [--C 1] [--repeats 5]
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import argparse

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC
from sklearn_cv import data_file, prepared, timed

from screenpath.sklearn import SVMClassifier

NAMES = (
    "breast_cancer", "german_scale", "winequality12", "magic04", "mushrooms", "digit1", "covtype20k", "ijcnn1", "w8a",
    "pcmac",
)  # fmt: skip


def objective(model, X, y, C: float) -> float:
    """Return the hinge objective with a penalised intercept."""
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
    return 0.5 * float((model.coef_**2).sum() + (model.intercept_**2).sum()) + C * float(losses.sum())


def compare(name: str, X, y, options) -> str:
    """Return a line of the table."""
    models = [
        SVMClassifier(options.C, bias=1.0),
        LinearSVC(C=options.C, loss="hinge", random_state=0),
        LinearSVC(C=options.C, random_state=0),
    ]
    seconds: list = [[], [], []]
    warned = [0, 0, 0]
    for turn in range(options.repeats + 1):
        for rank, model in enumerate(models):
            took, warned[rank] = timed(model, X, y)
            if turn:
                seconds[rank].append(took)
    if warned[0]:
        raise SystemExit(f"{name}: the fit of screenpath is not certified")
    ours, hinge, usual = (float(np.median(some)) for some in seconds)
    certified = models[0]
    lower = objective(certified, X, y, options.C) - certified.dual_gap_
    found = objective(models[1], X, y, options.C)
    marks = ["*" if some else "" for some in warned]
    kind = "sparse" if sparse.issparse(X) else "dense"
    return (
        f"| {name} ({X.shape[0]} x {X.shape[1]}, {kind}) | {1e3 * ours:.1f} | {1e3 * hinge:.1f}{marks[1]} | "
        f"{ours / hinge:.2f} | {(found - lower) / found:.0e} | {1e3 * usual:.1f}{marks[2]} | {ours / usual:.2f} |"
    )


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help="names of sets of two classes in SCREENPATH_DATA/binary, or files")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"C = {options.C:g}, milliseconds; ratios are ours over theirs\n")
    head = ("data", "ours", "LinearSVC, hinge", "ratio", "its gap", "LinearSVC, squared hinge", "ratio")
    print(f"| {' | '.join(head)} |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in options.data or NAMES:
        file = data_file(name)
        if not file.exists():
            print(f"{name}: {file} is not here (set SCREENPATH_DATA, or name a file)")
            continue
        print(compare(file.name.partition(".")[0], *prepared(file), options), flush=True)


if __name__ == "__main__":
    one_thread.require()
    main()
