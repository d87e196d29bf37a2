"""glmnet's path of ridge-penalised logistic regressions beside screenpath's path of SVMs, at equal accuracy.

Another loss: glmnet has no hinge. Both minimise 1/2 |w|^2 + C sum(loss) without an intercept at the same 100 values of
C (glmnet's lambda is 1 / (n C)) on the same data. As for every other solver here, the loosest tolerance is looked for
with which the worst grid point is within the target of a lower bound on its optimum; here that is the dual objective of
a Newton solve in numpy. R's own clock around the call is what counts for glmnet; the two alternate.

    python examples/benchmarks/glmnet.py [--only breast_cancer] [--markdown FILE]
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from adapters import OURS, adapter
from problems import arguments_of, present, publish
from scipy import sparse
from scipy.special import expit, xlog1py, xlogy
from timing import SLACK, run_path

SETS = ("breast_cancer", "winequality12", "mushrooms", "covtype20k", "ijcnn1")
LADDER = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)  # glmnet's default first
CAP = 300.0  # wall seconds after which a path is stopped
BUDGET = 30.0  # wall seconds after which no further pair of paths is timed
HERE = Path(__file__).resolve().parent


class Glmnet:
    """An R process that holds the data of one problem and fits its path as often as it is asked."""

    def __init__(self, problem, folder: str):
        self.folder, self.problem = Path(folder), problem
        self._write()
        self.process = subprocess.Popen(
            ["Rscript", str(HERE / "glmnet_path.R"), folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()[1]

    def _write(self):
        X, n = self.problem.X, len(self.problem.y)
        arrays = {"shape": np.array(X.shape, dtype=np.int32), "y": self.problem.y}
        arrays["lambda"] = 1.0 / (n * self.problem.grid)
        if sparse.issparse(X):
            X = X.tocsc()
            X.sort_indices()
            arrays |= {"indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32), "X": X.data}
        else:
            arrays["X"] = X.T
        for name, array in arrays.items():
            np.ascontiguousarray(array).tofile(self.folder / name)

    def _answer(self) -> list[str]:
        line = self.process.stdout.readline()
        if not line:
            raise TimeoutError("R ended")
        return line.split()

    def path(self, tolerance: float, cap: float) -> tuple[np.ndarray, float]:
        """Coefficients of shape (n_C, d) and processor seconds; TimeoutError where R is stopped at the cap."""
        stop = threading.Timer(cap, self.process.kill)
        stop.start()
        try:
            self.process.stdin.write(f"{tolerance!r}\n")
            self.process.stdin.flush()
            seconds, fitted = self._answer()
        finally:
            stop.cancel()
        if int(fitted) != len(self.problem.grid):
            raise SystemExit(f"glmnet fitted {fitted} of {len(self.problem.grid)} values of lambda")
        return np.fromfile(self.folder / "beta").reshape(len(self.problem.grid), -1), float(seconds)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


def objectives(problem, w: np.ndarray, C: float) -> tuple[float, float, np.ndarray]:
    """Primal and dual objective at w, with the dual point theta = sigmoid(-y x.w) in [0, 1]^n.

    P(w) = 1/2 |w|^2 + C sum log(1 + exp(-y x.w));  D(theta) = C sum H(theta) - 1/2 |C X^T (y theta)|^2, H the entropy.
    """
    margins = problem.y * (problem.X @ w)
    theta = expit(-margins)
    entropy = -xlogy(theta, theta) - xlog1py(1.0 - theta, -theta)
    v = C * (problem.X.T @ (problem.y * theta))
    return 0.5 * w @ w + C * np.logaddexp(0.0, -margins).sum(), C * entropy.sum() - 0.5 * v @ v, theta


def lower_bounds(problem, rel_gap: float = 1e-10) -> np.ndarray:
    """Dual objectives of Newton solves along the path, each at a relative gap of `rel_gap`."""
    X, y = problem.X, problem.y
    w, found = np.zeros(X.shape[1]), []
    for C in problem.grid:
        for _ in range(100):
            value, bound, theta = objectives(problem, w, C)
            if value - bound <= rel_gap * value:
                break
            gradient = w - C * (X.T @ (y * theta))
            curved = X.T @ (sparse.diags_array(theta * (1.0 - theta)) @ X)
            hessian = C * (curved.toarray() if sparse.issparse(curved) else curved) + np.eye(len(w))
            step, size = np.linalg.solve(hessian, gradient), 1.0
            while objectives(problem, w - size * step, C)[0] > value - 0.25 * size * (gradient @ step) and size > 1e-6:
                size /= 2.0
            w = w - size * step
        else:
            raise SystemExit(f"{problem.name}: no reference at C = {C:g}")
        found.append(bound)
    return np.array(found)


def judge(problem, path: np.ndarray, bounds: np.ndarray) -> tuple[float, float]:
    """Worst relative suboptimality of the path, and its worst relative gap with the dual points of its own w."""
    values = np.array([objectives(problem, w, C)[:2] for w, C in zip(path, problem.grid, strict=True)])
    return float(((values[:, 0] - bounds) / bounds).max()), float(((values[:, 0] - values[:, 1]) / values[:, 0]).max())


def compare(problem, target: float, rounds: int) -> str:
    """A line of the table: the tolerance that reaches the target, and the seconds of alternating runs."""
    ours = adapter(OURS)
    data, tiny = ours.prepare(problem), problem.head()
    run_path(ours, ours.prepare(tiny), tiny.grid, 1e-3)  # compiled
    bounds = lower_bounds(problem)
    head = f"| {problem.name} | {problem.X.shape[0]:,} × {problem.X.shape[1]} |"
    with tempfile.TemporaryDirectory() as folder:
        glmnet = Glmnet(problem, folder)
        try:
            worst = gap = float("nan")
            for tolerance in LADDER:
                worst, gap = judge(problem, glmnet.path(tolerance, CAP)[0], bounds)
                if worst <= target * SLACK:
                    break
            else:
                return f"{head} – | never | {LADDER[-1]:.0e} | {worst:.1e} | {gap:.1e} |"
            pairs: list[tuple[float, float]] = []
            began = time.perf_counter()
            while not pairs or (len(pairs) < rounds and time.perf_counter() - began < BUDGET):
                mine = run_path(ours, data, problem.grid, target)[1]
                pairs.append((mine, glmnet.path(tolerance, CAP)[1]))
        except TimeoutError:
            return f"{head} – | > {CAP:.0f} s | | {worst:.1e} | {gap:.1e} |"
        finally:
            glmnet.close()
    mine, theirs = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    return f"{head} {mine:.3f} s | {theirs:.3f} s ({ratio:.1f}) | {tolerance:.0e} | {worst:.1e} | {gap:.1e} |"


def missing() -> str | None:
    """Return why glmnet cannot be called, or None."""
    if not shutil.which("Rscript"):
        return "Rscript is not installed"
    if subprocess.run(["Rscript", "-e", "library(glmnet)"], capture_output=True, check=False).returncode:
        return "R has no package glmnet"
    return None


def main() -> None:
    """Print the table, or one line where R or glmnet is missing."""
    parser = arguments_of(__doc__.splitlines()[0], SETS)
    parser.add_argument("--rounds", type=int, default=7, help="alternating runs (default %(default)s)")
    options = parser.parse_args()
    if reason := missing():
        print(f"left out: {reason} (r-base-core and r-cran-glmnet)")
        return
    lines = [
        "| data | samples × features | screenpath, hinge | glmnet, logistic (ratio) | thresh "
        "| worst suboptimality | worst gap |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for _, problem in present(options.only or SETS, options.points):
        one_thread.require()
        lines.append(compare(problem, options.tol, options.rounds))
        print(lines[-1], file=sys.stderr, flush=True)
    publish("\n".join(lines), options.markdown)


if __name__ == "__main__":
    main()
