"""Attack leave-one-out: claims of small random problems, at steps and between them, against refits by a cone solver.

    .venv/bin/python -m tests.safety.fuzz_loo [CLAIMS]

prints how many claims were checked, and exits with 1 if a refit contradicts one.
"""

from __future__ import annotations

import sys

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.solve import removal
from tests.free_problems import SHAPES
from tests.solve.test_removal import checked, drawn, model_of, solved
from tests.solve.test_sides import contradicted, proven


def attack(claims: int) -> tuple[int, int]:
    """Return how many claims refits contradict, and how many there are."""
    rng, wrong, count = np.random.default_rng(0), 0, 0
    for seed in range(10**9):
        if count >= claims:
            break
        name, shape = rng.choice(list(LOSSES)), rng.choice(list(SHAPES))
        free, weighted = rng.random() < 0.5, rng.random() < 0.3
        n, d = int(rng.integers(12, 60)), int(rng.integers(1, 9))
        X, y, weights = drawn(name, shape, seed, free, weighted, n=n, d=d)
        model, C = model_of(name, shape, X, y, weights, free), float(10.0 ** rng.uniform(-2.0, 1.0))
        of = removal.Solution(model, solved(model, C))
        found = removal.leave_out(of, np.arange(n))
        bad, _ = checked(model, C, found, of)
        wrong, count = wrong + len(bad), count + 2 * n  # both ends of each row
        if name == "svm":
            held, _ = proven(model, np.geomspace(0.01, 10.0, int(rng.integers(3, 30))))
            more = contradicted(held, model, free, 10.0 ** rng.uniform(-2.0, 1.0, size=4))
            wrong, count = wrong + more[0], count + more[1]
        if bad or wrong:
            print(f"seed {seed}: {name}, {shape}, free {free}, weighted {weighted}, n {n}, d {d}, C {C}: {wrong} wrong")
    return wrong, count


if __name__ == "__main__":
    contradictions, checks = attack(int(sys.argv[1]) if len(sys.argv) > 1 else 10**5)
    print(f"{checks:,} claims, {contradictions} contradicted")
    sys.exit(bool(contradictions))
