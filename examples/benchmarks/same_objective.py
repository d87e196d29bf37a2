"""Objectives of kernel models beside those of scikit-learn: 15 sets, 4 kernels, a free intercept and none.

    python examples/benchmarks/same_objective.py DATA [ROWS]

DATA is the folder of data sets, with ``binary`` and ``regression`` below it; ROWS rows of a set count (500), drawn at
random, columns divided by their largest magnitude; sets of over 10,000 columns are left out. A cell is the relative
difference of the certified primal value from that of the other program: with a free intercept the dual value of ``SVC``
or ``SVR``, without one the primal value of ``LinearSVC`` or ``LinearSVR`` on a factor of the kernel matrix. C = 1,
gamma = 1/d, tolerances 1e-8.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from screenpath import kernel_svm_path, kernel_svr_path, read_libsvm

KERNELS = {"rbf": {}, "laplacian": {}, "poly": {"degree": 3, "coef0": 1.0}, "linear": {}}
TOL, EPSILON = 1e-8, 0.1
WIDEST = 10_000  # columns


def other(K: np.ndarray, y: np.ndarray, free: bool, classes: bool) -> float:
    """Return the value of scikit-learn's solution."""
    if free:
        model = (SVC if classes else SVR)(kernel="precomputed", tol=TOL, **({} if classes else {"epsilon": EPSILON}))
        model.fit(K, y)
        a = np.zeros(y.size)
        a[model.support_] = model.dual_coef_[0]
    else:
        low, Q = np.linalg.eigh(K)
        factor = Q * np.sqrt(np.maximum(low, 0.0))
        how = {"fit_intercept": False, "tol": TOL, "max_iter": 10**6, "dual": True, "random_state": 0}
        model = LinearSVC(loss="hinge", **how) if classes else LinearSVR(epsilon=EPSILON, **how)
        w = np.ravel(model.fit(factor, y).coef_)
        t = 1.0 - y * (factor @ w) if classes else np.abs(y - factor @ w) - EPSILON
        return 0.5 * float(w @ w) + float(np.maximum(t, 0.0).sum())
    return float(np.abs(a).sum() if classes else a @ y - EPSILON * np.abs(a).sum()) - 0.5 * float(a @ K @ a)


def cell(X: np.ndarray, y: np.ndarray, kernel: str, free: bool, classes: bool) -> float:
    """Return the relative difference of the two objectives."""
    own = {} if kernel == "linear" else {"gamma": 1.0 / X.shape[1]}
    options = {**own, **KERNELS[kernel]}
    K = pairwise_kernels(X, metric=kernel, **options)
    path = kernel_svm_path if classes else kernel_svr_path
    more = {} if classes else {"epsilon": EPSILON}
    found = path(X, y, kernel=kernel, grid=[1.0], tol=TOL, intercept="free" if free else "none", **options, **more)
    assert found.certified
    return abs(found.steps[0].primal - other(K, y, free, classes)) / found.steps[0].primal


def main(folder: Path, count: int) -> None:
    print(f"| set | {' | '.join(f'{name}, {how}' for name in KERNELS for how in ('free', 'none'))} |")
    print("|---|" + "---:|" * (2 * len(KERNELS)))
    worst = 0.0
    for kind in ("binary", "regression"):
        for file in sorted((folder / kind).glob("*.libsvm.gz")):
            if file.name.endswith(".t.libsvm.gz"):  # test data
                continue
            data = read_libsvm(file)
            rows = np.random.default_rng(0).permutation(data.y.size)[:count]
            if data.d > WIDEST:
                continue
            X, y = np.asarray(data.X[rows].toarray()), data.y[rows]
            X = X[:, X.any(axis=0)]
            X /= np.abs(X).max(axis=0)
            classes = kind == "binary"
            y = np.where(y == y.max(), 1.0, -1.0) if classes else (y - y.mean()) / y.std()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cells = [cell(X, y, name, free, classes) for name in KERNELS for free in (True, False)]
            worst = max(worst, *cells)
            print(f"| {file.name.split('.')[0]} | {' | '.join(f'{one:.0e}' for one in cells)} |", flush=True)
    print(f"\nLargest: {worst:.1e}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500)
