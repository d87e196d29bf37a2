"""Search for false certificates: tiny box problems at hostile scales, judged in exact arithmetic.

Usage: python tests/safety/fuzz_rounding.py --steps 100000 [--seed 0] [--kernels]

Rows and targets have sizes from 1e-150 to 1e150, and C from 1e-12 to 1e12; what a step claims is compared with
the optimum in fractions (``rational.py``). A step that says that it is not certified claims only that its numbers are
bounds.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.catalogue.losses import SVM
from screenpath.errors import DataError
from screenpath.rows import kernel_functions
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_kernel_rule, parse_rule
from screenpath.solve import make_solver
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests.kernel_problems import kernel_svm_model
from tests.safety.problems import judged, regression
from tests.safety.rational import LOSSES, ExactKernel, faults

RULES = ("none", "dvi+gap", "it", "essnsv", "gap")
KERNEL_RULES = ("none", "dvi", "bt2+gap", "it", "gap")
SIZES = ("one", "one for all", "one a feature", "one a row", "far from the origin")


def random_problem(rng):
    kind, sizes = str(rng.choice(LOSSES)), str(rng.choice(SIZES))
    n, d = int(rng.integers(2, 3 if kind == "svr" else 5)), int(rng.integers(1, 4))
    X, reach = random_rows(rng, n, d, sizes, [3.0, 12.0, 60.0, 150.0])
    rows = MemoryRows(sp.csr_array(X) if rng.random() < 0.3 else X)
    weights = random_weights(rng, n)
    if kind == "svm":
        model = SVM.model(rows, np.where(rng.random(n) < 0.5, -1.0, 1.0), weights)
    else:
        y = rng.normal(size=n) * (1.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-reach, reach))
        model = regression(rng, kind, rows, y, weights)
    return model, random_grid(rng), f"{kind}, {'csr' if rows.sparse else 'dense'}, size {sizes}"


def random_rows(rng, n, d, sizes, reaches):
    """Return rows whose sizes are as the words say, up to ten to the power of one of ``reaches``, and which it is."""
    X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 17)))
    reach = float(rng.choice(reaches))
    if sizes == "one for all":
        X *= 10.0 ** rng.uniform(-reach, reach)
    elif sizes == "one a feature":
        X *= 10.0 ** rng.uniform(-reach, reach, d)
    elif sizes == "one a row":
        X *= 10.0 ** rng.uniform(-reach, reach, (n, 1))
    elif sizes == "far from the origin":
        X += 10.0 ** rng.uniform(0.0, 12.0, d)
    if rng.random() < 0.2:
        X[-1] = X[0]
    return X, reach


def random_weights(rng, n):
    return 10.0 ** rng.uniform(-3.0, 3.0, n) if rng.random() < 0.3 else None


def random_grid(rng):
    return np.unique(10.0 ** rng.uniform(-12.0, 12.0, int(rng.integers(1, 4))))


def random_kernel(rng, d, size):
    """Return a kernel; that of an RBF kernel is as wide as the rows are large, now and then."""
    name = str(rng.choice(kernel_functions.NAMES))
    gamma = 10.0 ** rng.uniform(-3.0, 2.0)
    if name == "rbf" and rng.random() < 0.7:
        gamma /= d * max(size, 1e-140) ** 2
    coef0, constant = float(rng.choice([0.0, 1.0, 1e6])), float(rng.choice([0.0, 0.0, 1.0, 1e4]))
    return KernelFunction(name, gamma, int(rng.integers(1, 5)), coef0, constant)


def check_kernel_path(seed: int):
    """Walk one random path of a kernel model; yields as :func:`check_path` does."""
    rng = np.random.default_rng(seed)
    n, d, sizes = int(rng.integers(2, 5)), int(rng.integers(1, 4)), str(rng.choice(SIZES))
    X, _ = random_rows(rng, n, d, sizes, [3.0, 12.0, 60.0])
    function = random_kernel(rng, d, float(np.abs(X - X.mean(axis=0)).max()))
    storage, dtype = (str(rng.choice(words)) for words in (("dense", "csr"), ("float64", "float32")))
    signs, dense_bytes = np.where(rng.random(n) < 0.5, -1.0, 1.0), kernel_functions.DENSE_BYTES
    try:
        kernel_functions.DENSE_BYTES = 0 if storage == "csr" else dense_bytes
        with np.errstate(all="ignore"):
            rows = GramRows(X if storage == "dense" else sp.csr_array(X), function, signs, 1 << 26, dtype)
            model = kernel_svm_model(rows, random_weights(rng, n))
    except DataError:  # overflow, by name
        return
    finally:
        kernel_functions.DENSE_BYTES = dense_bytes
    grid, rule, solver = random_grid(rng), str(rng.choice(KERNEL_RULES)), str(rng.choice(["newton", "smo"]))
    tol = float(rng.choice([1e-3, 1e-6, 1e-9, 1e-12]))
    words = f"{function}, {storage}, {dtype}, size {sizes}, {rule}, {solver}, tol {tol:g}"
    options = PathOptions(tol=tol, max_epochs=200)
    with np.errstate(all="ignore"):
        for step, certificate in walk(model, grid, parse_kernel_rule(rule), make_kernel_solver(solver), options):
            C = step.parameters["C"]
            found = faults(model, C, tol, step, certificate, ExactKernel(model, X, C))
            yield step.status, found, f"{words}, C {C:.3g}"


def check_path(seed: int):
    """Walk one random path; yield status, false claims and words of each step."""
    rng = np.random.default_rng(seed)
    model, grid, words = random_problem(rng)
    rule, solver = str(rng.choice(RULES)), str(rng.choice(["newton", "newton", "cd"]))
    tol = float(rng.choice([1e-3, 1e-6, 1e-9, 1e-12]))
    options = PathOptions(tol=tol, max_epochs=2000)
    words = f"{words}, {rule}, {solver}, tol {tol:g}"
    with np.errstate(all="ignore"):
        for step, certificate in walk(model, grid, parse_rule(rule), make_solver(solver), options):
            C = step.parameters["C"]
            yield step.status, faults(model, C, tol, step, certificate), f"{words}, C {C:.3g}"


def fuzz(steps: int, seed: int = 0, report=None, check=check_path):
    """Walk paths until there are ``steps`` steps; return the counts by status and a list of (seed, claim, words)."""
    statuses, found, problem = Counter(), [], seed
    while sum(statuses.values()) < steps:
        for status, false, words in check(problem):
            statuses[status] += 1
            found.extend((problem, claim, words) for claim in false)
            for claim in false if report else ():
                report(f"seed {problem}: {claim} ({words})")
        problem += 1
        if report and problem % 500 == 0:
            report(f"{dict(statuses)}, {len(found)} false claims")
    return statuses, found


def finds(which, steps: int, seed: int = 0, check=check_path) -> bool:
    """Tell whether ``steps`` steps have a false claim ``which`` is true of: a control needs to see no more than one."""
    done, problem = 0, seed
    while done < steps:
        for _, false, _ in check(problem):
            done += 1
            if any(which(claim) for claim in false):
                return True
        problem += 1
    return False


def search(doc: str, steps: int, check_of, **flags) -> int:
    """Run a script: return 0 where no claim was false, else 1; ``check_of`` makes of the arguments what is checked."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    for name, more in flags.items():
        parser.add_argument(f"--{name}", **more)
    arguments = parser.parse_args()
    report = partial(print, file=sys.stderr)
    statuses, found = fuzz(arguments.steps, arguments.seed, report, check_of(arguments))
    print(f"{sum(statuses.values())} steps ({dict(statuses)}), {len(found)} false claims")
    return judged(found, "seed {}: {} ({})")


if __name__ == "__main__":
    kernels = {"action": "store_const", "const": check_kernel_path, "default": check_path, "help": "of kernel models"}
    sys.exit(search(__doc__, 100_000, lambda given: given.kernels, kernels=kernels))
