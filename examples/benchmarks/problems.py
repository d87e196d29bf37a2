"""The data sets of the benchmark, as problems min 1/2 |w|^2 + C sum(loss) over 100 values of C.

Real sets come from the folder named by SCREENPATH_DATA (default ``../shared/data`` beside the repository);
a set whose file is absent is left out with its reason. Reading is done with scikit-learn, so that the
benchmark's input does not depend on the reader under test.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SCREENPATH_DATA", ROOT.parent / "shared" / "data"))
DENSE_ABOVE = 0.35  # share of non-zeros from which every solver is handed a dense array


class Missing(Exception):
    """The file of a data set is not on this machine."""


@dataclass(frozen=True)
class Problem:
    """One data set, in float64, with its model (`svm` or `lad`) and increasing values of C.

    The targets are +1 and -1 for `svm`, real numbers for `lad`.
    """

    name: str
    model: str
    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    grid: np.ndarray

    @property
    def density(self) -> float:
        n, d = self.X.shape
        return (self.X.nnz if sparse.issparse(self.X) else np.count_nonzero(self.X)) / (n * d)

    def head(self, rows: int = 60, points: int = 3) -> Problem:
        """A tiny problem of the same storage and types, to warm up compiled code.

        Rows of both labels are taken alternately, so that it is still a classification problem.
        """
        order = np.argsort(np.argsort(-self.y, kind="stable") % max(1, len(self.y) // rows), kind="stable")
        take = np.sort(order[:rows])
        return Problem(self.name, self.model, self.X[take], self.y[take], self.grid[:points])


def wang_grid(points: int = 100) -> np.ndarray:
    """100 values of C, log-spaced in [1e-2, 10] (Wang et al. 2014, Section 7)."""
    return np.geomspace(1e-2, 10.0, points)


def wang_toy(mean: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of 1000 points, N(+-(mean, mean), 0.75^2 I) (Wang et al. 2014, Section 7.1)."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], 1000)
    return y[:, None] * mean + 0.75 * rng.standard_normal((2000, 2)), y


def read(file: str) -> tuple[sparse.csr_matrix, np.ndarray]:
    """A LIBSVM file of the shared data folder, or of ``data_samples`` (explicit zeros dropped)."""
    for path in (DATA / file, ROOT / "data_samples" / Path(file).name):
        for candidate in (path, path.with_name(f"{path.name}.gz")):
            if candidate.exists():
                X, y = load_svmlight_file(str(candidate))
                X.eliminate_zeros()
                return X, y
    raise Missing(f"{file} is neither in {DATA} nor in {ROOT / 'data_samples'}; set SCREENPATH_DATA")


def standardise(X: sparse.csr_matrix) -> np.ndarray:
    """Columns to mean 0 and standard deviation 1, dense; constant columns become 0."""
    X = X.toarray()
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def maxabs(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Columns divided by their largest absolute value."""
    largest = abs(X).max(axis=0).toarray().ravel()
    return (X @ sparse.diags(1.0 / np.where(largest > 0, largest, 1.0))).tocsr()


def _stored(X: np.ndarray | sparse.csr_matrix) -> np.ndarray | sparse.csr_matrix:
    """Dense or CSR by density: one choice for every solver of the comparison."""
    if sparse.issparse(X):
        X = X.tocsr()
        if X.nnz / (X.shape[0] * X.shape[1]) < DENSE_ABOVE:
            X.sort_indices()
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # some rivals take no other
            return X
        X = X.toarray()
    return np.ascontiguousarray(X, dtype=np.float64)


def _toy(mean: float) -> Callable[[], tuple]:
    return lambda: wang_toy(mean)


def _svm(file: str, scale: Callable | None = None) -> Callable[[], tuple]:
    def load():
        X, y = read(file)
        y = np.where(y == y.max(), 1.0, -1.0)
        return (scale(X) if scale else X), y

    return load


def _labels(file: str, *groups: tuple[int, ...]) -> Callable[[], tuple]:
    """Some labels of a file against others, or against all others; words that none of their rows has are left out."""

    def load():
        X, y = read(file)
        keep = np.isin(y, np.concatenate(groups)) if len(groups) > 1 else np.full(y.size, True)
        X, y = X[np.flatnonzero(keep)], y[keep]
        X = X[:, np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))]
        return X, np.where(np.isin(y, groups[0]), 1.0, -1.0)

    return load


def _lad(file: str, scale_target: bool = False) -> Callable[[], tuple]:
    def load():
        X, y = read(file)
        if scale_target:
            y = (y - y.mean()) / y.std()
        return standardise(X), y

    return load


# name -> (model, loader, in the quick run?). The targets of the LAD sets are standardised too, which is the
# harder problem; "-raw-y" keeps them, as `--scale standard` does: without a bias nearly all residuals then have
# one sign, and screening alone all but solves the path.
PROBLEMS: dict[str, tuple[str, Callable[[], tuple], bool]] = {
    "toy1": ("svm", _toy(1.5), True),
    "toy2": ("svm", _toy(0.75), True),
    "toy3": ("svm", _toy(0.5), True),
    "breast_cancer": ("svm", _svm("binary/breast_cancer.libsvm", standardise), True),
    "winequality12": ("svm", _svm("binary/winequality12.libsvm", standardise), True),
    "ijcnn1": ("svm", _svm("binary/ijcnn1.libsvm"), True),
    "w8a": ("svm", _svm("binary/w8a.libsvm"), False),
    "mushrooms": ("svm", _svm("binary/mushrooms.libsvm"), False),
    "covtype20k": ("svm", _svm("binary/covtype20k.libsvm", maxabs), False),
    "digit1": ("svm", _svm("binary/digit1.libsvm"), False),
    "rcv1sub": ("svm", _svm("binary/rcv1sub.binary.libsvm"), False),
    "pcmac": ("svm", _svm("binary/pcmac.libsvm"), False),
    "reuters_r8": ("svm", _labels("multiclass/reuters_r8.libsvm", (3,)), False),
    "news20-2v3": ("svm", _labels("multiclass/news20.libsvm", (2,), (3,)), False),
    "news20-8v16": ("svm", _labels("multiclass/news20.libsvm", (8,), (16,)), False),
    "news20-comp-rec": ("svm", _labels("multiclass/news20.libsvm", (2, 3, 4, 5, 6), (8, 9, 10, 11)), False),
    "news20-halves": ("svm", _labels("multiclass/news20.libsvm", tuple(range(1, 11))), False),
    "diabetes": ("lad", _lad("regression/diabetes.libsvm", scale_target=True), True),
    "cpusmall": ("lad", _lad("regression/cpusmall.libsvm", scale_target=True), True),
    "cpusmall-raw-y": ("lad", _lad("regression/cpusmall.libsvm"), False),
    "cadata": ("lad", _lad("regression/cadata.libsvm", scale_target=True), False),
    "cadata-raw-y": ("lad", _lad("regression/cadata.libsvm"), False),
}


def load(name: str, points: int = 100) -> Problem:
    """The problem called `name`; raises Missing when its file is absent."""
    model, loader, _ = PROBLEMS[name]
    X, y = loader()
    return Problem(name, model, _stored(X), np.asarray(y, dtype=np.float64), wang_grid(points))


def present(names, points: int, absent: list | None = None) -> Iterator[tuple[str, Problem]]:
    """The problems whose files are there, by their names; which ones are not is said, and noted in `absent`."""
    for name in names:
        try:
            problem = load(name, points)
        except Missing as reason:
            print(f"{name}: left out, {reason}", file=sys.stderr)
            if absent is not None:
                absent.append(f"{name}: {reason}")
            continue
        print(f"{name} {problem.X.shape}", file=sys.stderr, flush=True)
        yield name, problem


def arguments_of(about: str, names) -> argparse.ArgumentParser:
    """A parser with what every table of paths asks for."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--only", action="append", metavar="NAME", help=f"data sets (default {', '.join(names)})")
    parser.add_argument("--tol", type=float, default=1e-6, help="relative gap (default %(default)s)")
    parser.add_argument("--points", type=int, default=100, help="values of C in [0.01, 10] (default %(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    return parser


def publish(text: str, file: Path | None) -> None:
    """Print the tables, and write them to a file if one is named."""
    print(text)
    if file:
        file.write_text(text, encoding="utf-8")
