"""Attack the sample-screening rules: any rule, model, reference accuracy, weights and storage must be safe.

``python -m tests.safety.harness --checks 100000`` runs as many decisions as asked for and prints the counts.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
import scipy.sparse as sp

from screenpath.models.builders import lad_model, quantile_model, svm_model, svr_model
from screenpath.path import PathOptions, solve_point
from screenpath.rows.memory import MemoryRows
from screenpath.rules import STATIC, Screening
from screenpath.rules.box import pair_ball
from screenpath.solvers import make_solver

MODELS = ("svm", "lad", "quantile", "svr")
STORAGES = ("dense", "sparse", "float32")
EPOCHS = (0, 1, 2, 5, 20, 400)  # of the reference's solve; 0 takes the closed-form start
DYNAMIC = Screening(None, True, "gap")


def random_model(rng, kind: str, storage: str):
    """Return a random model with random weights, badly scaled at times."""
    n, d = int(rng.integers(4, 60)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=d) if rng.random() < 0.3 else rng.normal(size=(n, d))
    X[rng.random(n) < 0.05] = 0.0
    signs = rng.choice([-1.0, 1.0], size=n)
    X += 0.5 * signs[:, None] * rng.random(d)
    if storage == "float32":
        X = X.astype(np.float32)
    rows = MemoryRows(sp.csr_array(X) if storage == "sparse" else X)
    weights = rng.uniform(0.0, 3.0, n) if rng.random() < 0.5 else None
    if kind == "svm":
        return svm_model(rows, signs, weights)
    y = X @ rng.normal(size=d) + rng.standard_t(2, size=n)
    if kind == "lad":
        return lad_model(rows, y, weights)
    if kind == "quantile":
        return quantile_model(rows, y, rng.uniform(0.05, 0.95), weights)
    return svr_model(rows, y, rng.uniform(0.0, 1.0), weights)


def reference_at(model, C: float, epochs: int, seed: int, far: bool = False):
    """Return a certified pair at C, as rough as the number of epochs makes it; a far end has to be at C itself."""
    start = model.start(C)
    if epochs == 0:
        return model.certify(C, None, start.theta) if far else start
    # Unrelated primal and dual points are references too: shake the primal point of the roughest ones.
    options = PathOptions(tol=1e-13, max_epochs=epochs)
    _, certificate = solve_point(model, C, seed, start, Screening(None, False, "none"), make_solver("cd"), options)
    if epochs <= 2:
        rng = np.random.default_rng(seed)
        w = certificate.point.vector * rng.uniform(0.5, 1.5) + 0.1 * rng.normal(size=certificate.point.vector.size)
        certificate = model.certify(C, w, certificate.theta)
    return certificate


def unsafe_decisions(model, rule: str, C0: float, C: float, far_C: float, epochs: int, seed: int) -> tuple[int, int]:
    """Return (decisions made, decisions that an accurate solution's own ball disproves)."""
    static = STATIC[rule]()
    reference = reference_at(model, C0, epochs, seed)
    if static.needs_far_end:
        static = static.bound_to(reference_at(model, far_C, epochs, seed + 1, far=True))
    screened = model.screen(static.region(model, reference, C))
    _, accurate = solve_point(
        model, C, 0, model.start(C), DYNAMIC, make_solver("newton"), PathOptions(tol=1e-12, max_epochs=3000)
    )
    proven = model.screen(pair_ball(accurate, C)).status
    return screened.n_R + screened.n_L, int(np.count_nonzero(proven * screened.status < 0))


def attack(seed: int, kind: str, storage: str, rule: str, epochs: int) -> tuple[int, int]:
    """Run one random problem."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, kind, storage)
    C0 = 10.0 ** rng.uniform(-3, 1)
    ratio = 10.0 ** rng.choice([1e-4, 1e-2, 0.1, 0.5])
    if not STATIC[rule]().needs_far_end and rng.random() < 0.3:
        ratio = 1.0 / ratio  # towards smaller C
    C = C0 * ratio
    return unsafe_decisions(model, rule, C0, C, C * 10.0 ** rng.choice([0.0, 0.3, 1.0]), epochs, seed % 1000)


def main() -> None:
    """Attack until the number of decisions is reached; exit 1 if one of them was unsafe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    made, wrong, seed = Counter(), Counter(), options.seed
    rng = np.random.default_rng(options.seed)
    while sum(made.values()) < options.checks:
        kind, storage, rule = rng.choice(MODELS), rng.choice(STORAGES), rng.choice(sorted(STATIC))
        decisions, unsafe = attack(seed, kind, storage, rule, int(rng.choice(EPOCHS)))
        made[rule] += decisions
        wrong[rule] += unsafe
        if unsafe:
            print(f"unsafe: seed {seed}, {kind}, {storage}, {rule}")
        seed += 1
    for rule in sorted(made):
        print(f"{rule:8} {made[rule]:8} decisions, {wrong[rule]} unsafe")
    raise SystemExit(1 if sum(wrong.values()) else 0)


if __name__ == "__main__":
    main()
