"""Where our time goes, and how it grows: reading, compiling, screening, solving, certifying; n, d, grid size.

The first run on fresh data pays for compiling (or loading compiled code); the second does not: the difference is
the compile cost. Growth is measured on subsamples of one data set and fitted as seconds = a * size^exponent.
``python examples/benchmarks/scaling.py [--only NAME] [--markdown FILE]``
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np
from adapters import OURS, adapter
from problems import Problem, arguments_of, present, publish, wang_grid
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from screenpath.data.files.prepare import DENSE_FROM

PHASES = ("screen_s", "solve_s", "certify_s")
DEFAULT = ("breast_cancer", "ijcnn1", "w8a")


def phases(problem: Problem, tol: float, storage: str = "auto") -> dict[str, float]:
    """Wall seconds of one path: each phase, the rest of the loop ('other'), and the total."""
    ours = adapter(OURS)
    data = ours.prepare(problem, storage)
    began = time.perf_counter()
    result = ours.run(data, problem.grid, tol)
    total = time.perf_counter() - began
    found = {phase: sum(getattr(step, phase) for step in result.steps) for phase in PHASES}
    passes = sum(step.passes for step in result.steps) / len(result.steps)
    return found | {"other": total - sum(found.values()), "total": total, "passes": passes}


def reading_seconds(problem: Problem) -> float:
    """Wall seconds to read the problem back from LIBSVM text, compiled code already loaded."""
    from screenpath import read_libsvm

    with tempfile.TemporaryDirectory() as folder:
        tiny, whole = Path(folder) / "tiny", Path(folder) / "whole"
        rows = sparse.csr_matrix(problem.X)
        dump_svmlight_file(rows[:50], problem.y[:50], str(tiny), zero_based=False)
        dump_svmlight_file(rows, problem.y, str(whole), zero_based=False)
        read_libsvm(tiny)
        began = time.perf_counter()
        read_libsvm(whole)
        return time.perf_counter() - began


def split_row(name: str, problem: Problem, tol: float) -> str:
    storage = "dense" if problem.density >= DENSE_FROM else "sparse"  # a small head might be stored otherwise
    first = phases(problem.head(), tol, storage)["total"]
    second = phases(problem.head(), tol, storage)["total"]
    found = phases(problem, tol, storage)
    columns = [reading_seconds(problem), max(0.0, first - second), *(found[phase] for phase in PHASES)]
    columns += [found["other"], found["total"]]
    return f"| {name} | {' | '.join(f'{value:.3f}' for value in columns)} | {found['passes']:.1f} |"


def subsamples(problem: Problem, axis: str, rng) -> list[tuple[int, Problem]]:
    """Up to four problems, halving the rows, the columns, or the grid (its range is kept)."""
    sizes = {"n": problem.X.shape[0], "d": problem.X.shape[1], "grid": len(problem.grid)}
    found = []
    for size in sorted({max(2, sizes[axis] // divisor) for divisor in (8, 4, 2, 1)}):
        if axis == "n":
            rows = np.sort(rng.permutation(sizes["n"])[:size])
            smaller = dataclasses.replace(problem, X=problem.X[rows], y=problem.y[rows])
        elif axis == "d":
            columns = np.sort(rng.permutation(sizes["d"])[:size])
            X = problem.X[:, columns]
            smaller = dataclasses.replace(problem, X=X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X))
        else:
            smaller = dataclasses.replace(problem, grid=wang_grid(size))
        found.append((size, smaller))
    return found


def growth_row(name: str, problem: Problem, axis: str, tol: float, rng) -> str:
    """Least of two runs at each size, and the slope of log seconds over log size."""
    sizes, seconds = [], []
    for size, smaller in subsamples(problem, axis, rng):
        sizes.append(size)
        seconds.append(min(phases(smaller, tol)["total"] for _ in range(2)))
    fitted = "–"  # fewer than three sizes say nothing about growth
    if len(sizes) >= 3:
        fitted = f"{np.polyfit(np.log(sizes), np.log(seconds), 1)[0]:.2f}"
    measured = ", ".join(f"{size}: {value:.3f}" for size, value in zip(sizes, seconds, strict=True))
    return f"| {name} | {axis} | {measured} | {fitted} |"


def main(arguments: list[str] | None = None) -> int:
    options = arguments_of(__doc__, DEFAULT).parse_args(arguments)
    one_thread.require()
    split = [
        f"## Where the seconds go (wall, one thread, relative gap ≤ {options.tol:.0e}, {options.points} values of C)",
        "",
        "| data | read | compile or load | screen | solve | certify | other | path total | passes a point |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    growth = ["## Growth on subsamples", ""]
    growth += ["| data | size of | size: seconds | fitted exponent |", "|---|---|---|---:|"]
    for name, problem in present(options.only or DEFAULT, options.points):
        split.append(split_row(name, problem, options.tol))
        rng = np.random.default_rng(0)
        growth += [growth_row(name, problem, axis, options.tol, rng) for axis in ("n", "d", "grid")]
    publish("\n".join([*split, "", *growth, ""]), options.markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
