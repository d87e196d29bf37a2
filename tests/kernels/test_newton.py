"""The Newton kernels on problems small enough to run uncompiled: every way to a direction, both storages."""

import numpy as np
import pytest

from screenpath.kernels.rows import newton_system
from screenpath.solve.base import Budget
from screenpath.solve.cd import CoordinateDescent
from screenpath.solve.newton import Newton
from tests.solve.test_newton import reduced_problem

BUDGET = Budget(2000, float("inf"))


def problem(n, d, sparse, loss):
    rng = np.random.default_rng(n + d)
    G = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    lo, hi = (np.zeros(n), np.ones(n)) if loss == "hinge" else (-np.ones(n), np.ones(n))
    c = np.ones(n) if loss == "hinge" else rng.normal(size=n)
    return reduced_problem(G, c, lo, hi, sparse=sparse)


@pytest.mark.parametrize("shape", [(24, 3), (10, 30)])  # systems in d, and in the rows between the ends
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "lad"])
@pytest.mark.parametrize("direct", [600, 0])  # without a compiler, 0 leaves conjugate gradients only
def test_newton_and_sweeps_reach_the_same_value(monkeypatch, shape, sparse, loss, direct):
    monkeypatch.setattr(newton_system, "DIRECT", direct)
    reduced = problem(*shape, sparse, loss)
    found = [solver.solve(reduced, tol=1e-8, budget=BUDGET, dynamic=True) for solver in (Newton(), CoordinateDescent())]
    assert all(solution.converged for solution in found)
    values = []
    for solution in found:
        t = reduced.c - reduced.products(solution.w)
        values.append(0.5 * solution.w @ solution.w + np.maximum(reduced.lo * t, reduced.hi * t).sum())
    assert values[0] == pytest.approx(values[1], rel=1e-7)
