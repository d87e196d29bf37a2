"""Kernels that do not count the users of arrays: which may be, and that nothing is lost or freed too early."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core.runtime import _nrt_python, rtsys

import screenpath.kernels as kernels
from screenpath.kernels.problem.box import box_range
from screenpath.kernels.rows import rows
from screenpath.kernels.solve import face

MAKES = {"empty", "zeros", "full", "ones", "arange", "array", "copy", "concatenate", "flatnonzero", "empty_like"}
FILES = sorted(Path(kernels.__file__).parent.rglob("*.py"))


def leaves():
    """Yield the functions that are declared to be leaves, as they are written."""
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any("leaf=True" in ast.unparse(d) for d in node.decorator_list):
                yield f"{file.stem}.{node.name}", node


def made_by(node) -> set:
    """Return the names of the functions that make arrays, of those that are called."""
    called = {call.func for call in ast.walk(node) if isinstance(call, ast.Call)}
    return {one.attr for one in called if isinstance(one, ast.Attribute)} & MAKES


def returned_by(node) -> set:
    """Return the names of arrays (what has subscripts) that are returned as they are."""
    subscripted = [one.value for one in ast.walk(node) if isinstance(one, ast.Subscript)]
    arrays = {one.id for one in subscripted if isinstance(one, ast.Name)}
    found = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
    found = [one for value in found for one in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return {one.id for one in found if isinstance(one, ast.Name)} & arrays


def test_leaves_make_no_array():
    found = dict(leaves())
    assert {"matrix.dot", "matrix.add", "rows.four_products", "margins._look"} <= set(found)
    assert not {name: made for name, node in found.items() if (made := made_by(node))}
    # Nor do they return one that they were given, which numba would let pass, and whose users were then too few.
    assert not {name: given for name, node in found.items() if (given := returned_by(node))}
    others = [n for f in FILES for n in ast.parse(f.read_text()).body if isinstance(n, ast.FunctionDef)]
    assert sum(bool(made_by(node)) for node in others) > 30  # which the same look finds
    assert sum(bool(returned_by(node)) for node in others) > 5


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="counts of compiled code")
def test_no_user_of_an_array_is_counted_twice():
    """Arrays are as many, and as often in use, as they were; those that were made are gone again."""
    X, w, out, place = np.arange(12.0).reshape(4, 3), np.ones(3), np.empty(4), np.arange(2)
    one = np.ones(4)
    given = X, w, out, place, one

    def work():
        rows.dense_products(X, w, out, 0, 4)
        box_range(one, out)
        face.movable(one, out, -one, one, one, one, place)

    _nrt_python.memsys_enable_stats()
    work()
    users, before = [sys.getrefcount(array) for array in given], rtsys.get_allocation_stats()
    for _ in range(50):
        work()
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert [sys.getrefcount(array) for array in given] == users
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    assert after.mi_alloc > before.mi_alloc  # `movable` makes some
    np.testing.assert_array_equal(out, X @ w)


def test_rows_that_can_move():
    """Inside of the box, or drawn there from an end; those that are 0 are no part of the face."""
    t = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 3.0, 1.0])
    alpha = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 0.0])
    sqnorms, alive = np.array([1.0, 1, 1, 1, 1, 1, 0, 1]), np.arange(7)
    found, on_face = face.movable(t + 2.0, np.full(8, 2.0), np.zeros(8), np.ones(8), alpha, sqnorms, alive)
    assert found.tolist() == [0, 3, 5, 6] and on_face.tolist() == [0, 3, 5]
