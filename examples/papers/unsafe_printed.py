"""Count the unsafe decisions of the DVI formula as printed, where the references are a solver's and not exact.

Usage: python examples/papers/unsafe_printed.py [--points 100,1000,3000] [--max-iter 1000] [--out FILE]

Wang 2014 states DVI_s for the exact solution at the previous C. A solver's answer is not exact, and on a fine grid
the rule's radius, ``|C - C0| / (2 C0) ||w0||``, is smaller than the answer's error. For each pair of neighbours on
the grid, rows are decided three ways: by the printed formula from scikit-learn's solution (default options but for
--max-iter; decisions from solutions that it calls converged are counted apart); by the printed formula from this
package's solution (relative gap 1e-6); by this package's rule from that same solution. A decision is unsafe where the
ball of an accurate solution (relative gap 1e-12) proves that the row is on the other side of its kink.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from printed import DVI

from screenpath.catalogue.losses import SVM
from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.prepare import prepare
from screenpath.data.words.labels import binary_labels
from screenpath.problem.grid import log_grid
from screenpath.regions.geometry import Ball, Point
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.screen.box import pair_ball
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, walk

ROOT = Path(__file__).resolve().parents[2]
SETS = ("breast_cancer", "winequality12")
COLUMNS = (
    "data", "grid points", "rows x steps", "unsafe: printed, scikit-learn reference",
    "unsafe: printed, reference of gap 1e-6", "unsafe: this package, same reference", "rejected: printed",
    "rejected: this package", "of the first, from a reference called converged",
)  # fmt: skip
HEADER = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"


def load(name: str):
    """Return the z-scored SVM model of a data set and its dense rows and signs, or None where the file is absent."""
    shared = Path(os.environ.get("SCREENPATH_DATA", ROOT.parent / "shared" / "data")) / "binary"
    for path in (ROOT / "data_samples" / f"{name}.libsvm", shared / f"{name}.libsvm.gz"):
        if path.exists():
            data = read_libsvm(path)
            X, _ = prepare(data.X, scale="standard", storage="dense")
            signs = binary_labels(data.y)
            return SVM.model(MemoryRows(X), signs), X, signs
    return None


def printed_ball(model, w, C0: float, C: float) -> Ball:
    """Return DVI_s as printed, with w taken for the exact solution at C0."""
    return DVI().region(model, SimpleNamespace(C=C0, point=Point(w, model.margins(w), float(w @ w))), C)


def path(model, grid, tol: float) -> list:
    """Return the certificates along the grid."""
    options = PathOptions(tol=tol, max_epochs=2000)
    return [certificate for _, certificate in walk(model, grid, parse_rule("gap"), make_solver("newton"), options)]


def count(name: str, points: int, loaded, max_iter: int) -> str:
    """Return a line of the table."""
    from sklearn.svm import LinearSVC

    model, X, signs = loaded
    grid = log_grid(1e-2, 10.0, points)
    ours, sharp = path(model, grid, 1e-6), path(model, grid, 1e-12)
    from_converged = 0
    unsafe, rejected = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for k in range(1, points):
        C0, C = grid[k - 1], grid[k]
        proven = model.screen(pair_ball(sharp[k], C)).status
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it does not converge at every C within its default limit
            fitted = LinearSVC(loss="hinge", C=C0, fit_intercept=False, random_state=0, max_iter=max_iter)
            fitted.fit(X, signs)
        before = ours[k - 1]
        balls = (
            printed_ball(model, fitted.coef_.ravel(), C0, C),
            printed_ball(model, before.point.vector, C0, C),
            pair_ball(before, C),
        )
        for j, ball in enumerate(balls):
            status = model.screen(ball).status
            wrong = np.count_nonzero(status * proven < 0)
            unsafe[j] += wrong
            if j == 0 and fitted.n_iter_ < fitted.max_iter:
                from_converged += wrong
            rejected[j] += np.count_nonzero(status)
    rows = model.size * (points - 1)
    return (
        f"| {name} | {points} | {rows:,} | {unsafe[0]} | {unsafe[1]} | {unsafe[2]} "
        f"| {rejected[0] / rows:.3f} | {rejected[2] / rows:.3f} | {from_converged} |\n"
    )


def main() -> int:
    """Print the table; return 1 if this package's rule made an unsafe decision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="100,1000,3000", help="grid sizes, comma-separated")
    parser.add_argument("--data", default=",".join(SETS), help="data sets, comma-separated")
    parser.add_argument("--max-iter", type=int, default=1000, help="of scikit-learn's solver; its default is 1000")
    parser.add_argument("--out", type=Path, help="file of the Markdown table besides stdout")
    arguments = parser.parse_args()
    table = HEADER
    print(HEADER, end="", flush=True)
    for name in arguments.data.split(","):
        loaded = load(name)
        if loaded is None:
            print(f"{name}: skipped, the data is not here (set SCREENPATH_DATA to its folder)", file=sys.stderr)
            continue
        for points in arguments.points.split(","):
            line = count(name, int(points), loaded, arguments.max_iter)
            table += line
            print(line, end="", flush=True)
    if arguments.out:
        arguments.out.write_text(table)
    ours = [line.split("|")[6].strip() for line in table.splitlines()[2:]]
    return 0 if all(number == "0" for number in ours) else 1


if __name__ == "__main__":
    sys.exit(main())
