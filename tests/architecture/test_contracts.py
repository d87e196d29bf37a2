"""Implementations are what their contract says, down to the names of arguments."""

import inspect

import pytest

from screenpath.solvers import make_solver
from screenpath.solvers.base import Solver
from screenpath.solvers.l1cd import FeatureDescent
from screenpath.solvers.smo import make_kernel_solver
from screenpath.solvers.sparse import make_sparse_solver

SOLVERS = [
    *(make_solver(name, 0) for name in ("auto", "cd", "newton")),
    *(make_kernel_solver(name) for name in ("newton", "smo")),
    *(make_sparse_solver(name, 0) for name in ("newton", "sdca")),
    FeatureDescent(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: f"{type(solver).__name__}-{solver.name}")
def test_solvers(solver):
    assert isinstance(solver, Solver) and isinstance(solver.name, str)
    expected = inspect.signature(Solver.solve).parameters
    found = inspect.signature(type(solver).solve).parameters
    assert list(found) == list(expected)
    assert [p.kind for p in found.values()] == [p.kind for p in expected.values()]
