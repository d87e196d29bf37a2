"""Two threads against one: the path of ijcnn1 stacked with noise copies to 91,701 rows.

Threads share passes, rule, solver and certificate. Both alternate A B A B in one process; wall seconds, median of the
ratios of neighbouring runs; the coefficients have to be the same bytes. CPU seconds over wall seconds tell whether the
machine had two processors for them: two threads that get one between them are as fast as one.
``python examples/benchmarks/threads.py [--rows N] [--threads N] [--repeats N]``
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import argparse
import time

import numpy as np
from problems import Missing, load, wang_grid

NOISE = 0.05  # of the copies, in units of each feature's standard deviation


def stacked(X, y, n: int, seed: int = 0):
    """Return ``n`` rows: the data, then copies with noise added to every entry."""
    rng = np.random.default_rng(seed)
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=float)
    spread = NOISE * X.std(axis=0)
    parts, labels, rows = [X], [y], X.shape[0]
    while rows < n:
        parts.append(X + spread * rng.normal(size=X.shape))
        labels.append(y)
        rows += X.shape[0]
    return np.ascontiguousarray(np.vstack(parts)[:n]), np.concatenate(labels)[:n]


def main() -> None:
    """Print seconds and ratios."""
    from screenpath import svm_path

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=91_701)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    one_thread.require()
    try:
        problem = load("ijcnn1")
    except Missing as missing:
        raise SystemExit(f"skipped: {missing}") from None
    X, y = stacked(problem.X, problem.y, asked.rows)

    def run(threads):
        began, busy = time.perf_counter(), time.process_time()
        result = svm_path(X, y, grid=wang_grid(), threads=threads, intercept="none")
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        loop = sum(step.screen_s + step.solve_s + step.certify_s for step in result.steps)
        return seconds, loop, np.asarray(result.coefficients).tobytes(), result, busy / seconds

    run(1), run(asked.threads)  # compiled code is loaded
    ratios, loops = [], []
    for _ in range(asked.repeats):
        one, many = run(1), run(asked.threads)
        if one[2] != many[2]:
            raise SystemExit("the coefficients differ between the numbers of threads")
        ratios.append(one[0] / many[0])
        loops.append(one[1] / many[1])
        print(
            f"{one[0]:.3f} s  {many[0]:.3f} s  ratio {ratios[-1]:.2f}, without preparation {loops[-1]:.2f}; "
            f"{many[4]:.2f} processors"
        )
    steps = one[3].steps
    passes = sum(step.passes for step in steps) / len(steps)
    share = sum(step.solve_s for step in steps) / one[1]
    print(f"{X.shape[0]} rows: {asked.threads} threads are {np.median(ratios):.2f} times as fast as one")
    print(f"without preparation {np.median(loops):.2f}; {passes:.1f} passes a point")
    print(f"{share:.0%} of one thread's time in the reduced problem's solver")


if __name__ == "__main__":
    main()
