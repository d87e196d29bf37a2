"""Is this build slower than an earlier one on the sets of the README? Both are timed in turn, A B A B, on this machine.

usage: python examples/benchmarks/gate.py BASE [--only NAME] [--rounds 7]      (BASE: a git revision)

A set fails where its median is above the earlier build's by more than 5 % *and* 20 ms of processor time; exit 1. Each
build runs in a process of its own, which has read the data and compiled before the first round.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from problems import PROBLEMS, ROOT, arguments_of, load, present
from scipy import sparse

README = ("breast_cancer", "winequality12", "mushrooms", "covtype20k", "ijcnn1", "pcmac")
SLOWER, SECONDS = 1.05, 0.02  # above both a set fails
WORKER = """
import sys, time
import numpy as np
from scipy import sparse
import screenpath
folder, model = sys.argv[1:]
X = sparse.load_npz(folder + "/X.npz").tocsr() if model.endswith("*") else np.load(folder + "/X.npy")
y, grid = np.load(folder + "/y.npy"), np.load(folder + "/grid.npy")
path = {"svm": screenpath.svm_path, "lad": screenpath.lad_path}[model.rstrip("*")]
path(X, y, grid=grid, intercept="none")
for line in sys.stdin:
    began = time.process_time()
    found = path(X, y, grid=grid, intercept="none")
    spent = time.process_time() - began
    print(spent, sum(step.status == "certified" for step in found.steps), flush=True)
"""


def worker(checkout: Path, folder: str, model: str) -> subprocess.Popen:
    """Start a process that walks the path in a folder once for each line that it reads."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER, folder, model]
    return subprocess.Popen(command, cwd=checkout, env=environment, stdin=-1, stdout=-1, text=True)


def timed(process: subprocess.Popen) -> tuple[float, int]:
    """Walk once; return processor seconds and certified steps."""
    assert process.stdin and process.stdout
    process.stdin.write("go\n")
    process.stdin.flush()
    seconds, certified = process.stdout.readline().split()
    return float(seconds), int(certified)


def compared(name: str, base: Path, rounds: int) -> tuple[list, list]:
    """Return (seconds, certified) of every round, of the earlier build and of this one."""
    problem = load(name)
    with tempfile.TemporaryDirectory() as folder:
        wide = sparse.issparse(problem.X)
        if wide:
            sparse.save_npz(f"{folder}/X.npz", problem.X)
        else:
            np.save(f"{folder}/X.npy", problem.X)
        np.save(f"{folder}/y.npy", problem.y)
        np.save(f"{folder}/grid.npy", problem.grid)
        both = [worker(place, folder, problem.model + "*" * wide) for place in (base, ROOT)]
        pairs = [[timed(process) for process in both] for _ in range(rounds)]
        for process in both:
            process.communicate()
    then, now = zip(*pairs, strict=True)
    return list(then), list(now)


def main() -> None:
    """Print a row a set; exit 1 if one is slower."""
    parser = arguments_of(__doc__.partition("\n")[0], README)
    parser.add_argument("base", metavar="BASE", help="git revision")
    parser.add_argument("--rounds", type=int, default=7)
    options, failed = parser.parse_args(), False
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "base")
        subprocess.run(["git", "worktree", "add", "-q", "--detach", base, options.base], cwd=ROOT, check=True)
        try:
            for name, _ in present(options.only or [n for n in README if n in PROBLEMS], options.points):
                then, now = compared(name, base, options.rounds)
                before, after = (statistics.median(seconds for seconds, _ in one) for one in (then, now))
                slower = after > SLOWER * before and after > before + SECONDS
                failed |= slower
                certified = f"certified {then[0][1]}, {now[0][1]}"
                print(f"{name:16} {before:7.3f} s {after:7.3f} s  x {after / before:4.2f}  {certified}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", base], cwd=ROOT, check=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
