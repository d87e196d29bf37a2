"""Free intercepts against LIBSVM (SVC and SVR of scikit-learn) and Clarabel: are the optimal values the same?

    python examples/benchmarks/intercept.py ../shared/data --rows 400
    python examples/benchmarks/intercept.py ../shared/data --rejection

On every set, thinned out to some rows, the path at four values of C is compared with both at each of them: linear
``svm``, ``svr`` and ``lad``, and ``svm`` behind an RBF kernel. Both rivals are given the Gram matrix, formed here by
numpy. LIBSVM's value is that of its dual point, formed here too; Clarabel's that of the dual problem, as it reports it.
The exit code is 1 where a value differs by more than 1e-6 of it.

``--rejection`` says instead which share of the rows the rule ``dvi`` fixes before a solve: the mean over 99 steps of
100 values of C from 0.01 to 10, standardised features and targets, 500 rows of each set (569 of breast_cancer, 442 of
diabetes, 250 of ``svr``, which has two dual variables a row) drawn by a seed, references to 1e-9.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import clarabel
import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC, SVR

from screenpath import kernel_svm_path, lad_path, quantile_path, read_libsvm, svm_path, svr_path

GRID = (0.01, 0.1, 1.0, 10.0)
EPSILON, SPARSE, AGREE = 0.1, 0.05, 1e-6
SETS = {
    "binary": ("breast_cancer", "chowdary", "covtype20k", "covtype20k_6v7", "digit1", "german_scale", "ijcnn1",
               "magic04", "mushrooms", "pcmac", "rcv1sub.binary", "w8a", "winequality12"),
    "multiclass": ("dna", "news20", "reuters_r8", "satimage", "shuttle", "usps"),
    "regression": ("cadata", "cpusmall", "diabetes"),
}  # fmt: skip

SCREENED = (
    *((name, "svm") for name in ("breast_cancer", "german_scale", "ijcnn1", "magic04", "winequality12", "w8a",
                                 "mushrooms", "covtype20k", "digit1")),
    ("cpusmall", "lad"), ("cadata", "lad"), ("diabetes", "quantile"), ("cpusmall", "svr"),
)  # fmt: skip


def thinned(file: Path, kind: str, rows: int) -> tuple:
    """Return evenly spaced rows: standardised, unless they are sparse; of several classes the largest is +1."""
    data = read_libsvm(file)
    index = np.unique(np.linspace(0, data.X.shape[0] - 1, rows).astype(int))
    X, y = sp.csr_array(data.X)[index], np.asarray(data.y)[index]
    if kind != "regression":
        labels, counts = np.unique(y, return_counts=True)
        y = np.where(y == (labels[np.argmax(counts)] if labels.size > 2 else labels[1]), 1.0, -1.0)
    if X.nnz < SPARSE * X.shape[0] * X.shape[1]:
        return X, y
    dense = X.toarray()
    spread = dense.std(axis=0)
    return (dense - dense.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), y


def gram(X, gamma: float | None) -> np.ndarray:
    """Return the inner products of rows, or ``exp(-gamma ||x - z||^2)``."""
    K = X @ X.T
    K = K.toarray() if sp.issparse(K) else K
    if gamma is None:
        return K
    squares = K.diagonal()
    return np.exp(-gamma * np.maximum(squares[:, None] + squares - 2.0 * K, 0.0))


def signless(model: str, y) -> tuple:
    """Return which row each dual variable belongs to, kinks and ends of the box, without signs."""
    every, ones = np.arange(y.size), np.ones(y.size)
    if model == "svm":
        return every, y, np.minimum(y, 0.0), np.maximum(y, 0.0)
    if model == "lad":
        return every, y, -ones, ones
    return (
        np.concatenate([every, every]), np.concatenate([y - EPSILON, y + EPSILON]),
        np.concatenate([0.0 * ones, -ones]), np.concatenate([ones, 0.0 * ones]),
    )  # fmt: skip


def clarabel_value(K, problem: tuple, C: float) -> float | None:
    """Return the largest ``c.a - a'Ka / 2`` over ``C lo <= a <= C hi`` with the sum 0; None where Clarabel gives up."""
    rows, c, lo, hi = problem
    n, unit = c.size, float(K.diagonal().mean())  # rows of length about 1 are what its tolerances are made for
    K, C = K / unit, C * unit
    A = sp.vstack([sp.eye_array(n), -sp.eye_array(n), sp.csr_array(np.ones((1, n)))]).tocsc()
    b = np.concatenate([C * hi, -C * lo, [0.0]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sp.csc_array(np.triu(K[np.ix_(rows, rows)]))
    cones = [clarabel.NonnegativeConeT(2 * n), clarabel.ZeroConeT(1)]
    found = clarabel.DefaultSolver(P, -c, A, b, cones, settings).solve()
    return -found.obj_val / unit if found.status == clarabel.SolverStatus.Solved else None


def libsvm_value(model: str, K, y, C: float) -> float | None:
    """Return the dual value of LIBSVM's solution; None for a model that it does not have."""
    if model == "lad":
        return None
    common = {"kernel": "precomputed", "C": C, "tol": 1e-9, "max_iter": 20_000_000, "cache_size": 500}
    found = (SVC(**common) if model == "svm" else SVR(epsilon=EPSILON, **common)).fit(K, y)
    beta = np.zeros(y.size)
    beta[found.support_] = found.dual_coef_[0]
    linear = np.abs(beta).sum() if model == "svm" else beta @ y - EPSILON * np.abs(beta).sum()
    return float(linear - 0.5 * beta @ K @ beta)


def compared(model: str, X, y, gamma: float | None) -> dict:
    """Return the worst differences over the grid, relative to the value, and how much of the path is certified."""
    options: dict = {"grid": GRID, "tol": 1e-9, "intercept": "free"}
    if gamma is not None:
        path = kernel_svm_path(X, y, gamma=gamma, **options)
    elif model == "svr":
        path = svr_path(X, y, epsilon=EPSILON, **options)
    else:
        path = (svm_path if model == "svm" else lad_path)(X, y, **options)
    K, problem, off = gram(X, gamma), signless(model, y), {"LIBSVM": [], "Clarabel": []}
    for C, step in zip(GRID, path.steps, strict=True):
        size = max(abs(step.primal), 1e-12 * C * float(np.abs(y).sum()))
        values = {"Clarabel": clarabel_value(K, problem, C), "LIBSVM": libsvm_value(model, K, y, C)}
        for name, value in values.items():
            off[name] += [] if value is None else [abs(step.primal - value) / size]
    certified = sum(step.status == "certified" for step in path.steps)
    return {"certified": certified, "gap": [max(step.rel_gap for step in path.steps)], **off}


def cell(values: list, points: int) -> str:
    """Return the worst of some differences, and at how many points they are known where that is not all."""
    if not values:
        return "-"
    return f"{max(values):.0e}" + (f" ({len(values)} of {points})" if len(values) < points else "")


def drawn(file: Path, model: str) -> tuple:
    """Return rows drawn at random, standardised like the targets of a regression; small sets are taken whole."""
    data = read_libsvm(file)
    X, y = sp.csr_array(data.X), np.asarray(data.y)
    if y.size > 600:
        index = np.random.default_rng(0).permutation(y.size)[: 250 if model == "svr" else 500]
        X, y = X[index], y[index]
    X = X.toarray()
    spread = X.std(axis=0)
    y = y if model == "svm" else (y - y.mean()) / y.std()
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), y


def rejection(model: str, X, y) -> float:
    """Return the mean share of rows that ``dvi`` fixes."""
    more = {"svr": {"epsilon": EPSILON}, "quantile": {"tau": 0.9}}.get(model, {})
    function = {"svm": svm_path, "lad": lad_path, "quantile": quantile_path, "svr": svr_path}[model]
    path = function(X, y, grid=100, rule="dvi", tol=1e-9, intercept="free", **more)
    return float(np.mean([step.rejection_ratio for step in path.steps[1:]]))


def rejections(folder: Path, named: list | None) -> int:
    """Print the shares of all sets."""
    print("| data | model | dvi |\n|---|---|---:|")
    for name, model in SCREENED:
        file = next(iter(folder.glob(f"*/{name}.libsvm.gz")), None)
        if file is not None and (named is None or name in named):
            print(f"| {name} | {model} | {rejection(model, *drawn(file, model)):.3f} |", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with the folders binary, multiclass and regression")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--rejection", action="store_true", help="the rules' shares of rows instead")
    parser.add_argument("--sets", help="some of the sets, joined by commas")
    given = parser.parse_args()
    named, worst = given.sets.split(",") if given.sets else None, 0.0
    if given.rejection:
        return rejections(given.folder, named)
    print(
        "| data | rows x features | model | certified | worst gap | LIBSVM | Clarabel |\n|---|---|---|---|---|---|---|"
    )
    for kind, names in SETS.items():
        for name in names:
            file = given.folder / kind / f"{name}.libsvm.gz"
            if named is not None and name not in named:
                continue
            if not file.exists():
                print(f"{name}: left out, {file} is not there", file=sys.stderr)
                continue
            X, y = thinned(file, kind, given.rows)
            runs = (
                [("svr", None), ("lad", None)] if kind == "regression" else [("svm", None), ("svm", 1.0 / X.shape[1])]
            )
            for model, gamma in runs:
                found = compared(model, X, y, gamma)
                cells = [cell(found["gap"], 1), *(cell(found[k], len(GRID)) for k in ("LIBSVM", "Clarabel"))]
                worst = max(worst, *found["LIBSVM"], *found["Clarabel"])
                title = model if gamma is None else f"{model}, RBF"
                cells = [name, f"{X.shape[0]} x {X.shape[1]}", title, f"{found['certified']} of {len(GRID)}", *cells]
                print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\nworst difference: {worst:.1e}")
    return int(worst > AGREE)


if __name__ == "__main__":
    sys.exit(main())
