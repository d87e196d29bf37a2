"""What a narrow run leaves out, and that it leaves out nothing else."""

from itertools import combinations, product
from types import SimpleNamespace

import pytest

from tests.width import covering, narrowed

ROWS = [dict(zip("abc", values, strict=True)) for values in product(range(4), range(3), range(2))]


@pytest.mark.parametrize(("strength", "most"), [(1, 4), (2, 13), (3, 24), (9, 24)])
def test_any_values_meet(strength, most):
    places = covering(ROWS, strength)
    assert len(places) == len(set(places)) <= most
    for names in combinations("abc", min(strength, 3)):
        kept = {tuple(ROWS[k][name] for name in names) for k in places}
        assert kept == {tuple(row[name] for name in names) for row in ROWS}


def item(name, mark=None, argument=None, **params):
    """Return what stands for a test."""
    marks = {mark: SimpleNamespace(args=[argument])} if mark else {}
    parameters = {"callspec": SimpleNamespace(params=params)} if params else {}
    return type("Item", (), {"nodeid": name, "get_closest_marker": staticmethod(marks.get), **parameters})()


def test_only_what_is_marked_is_left_out():
    plain = [item("f.py::whole"), *(item(f"f.py::all[{k}]", a=k) for k in range(5))]
    packing = [item("f.py::wheel", "wide_only"), item("f.py::slow", "compiled_only")]
    some = [item(f"f.py::some[{a}-{b}]", "covering", 1, a=a, b=b) for a in range(3) for b in range(2)]
    kept, left = narrowed([*plain, *packing, *some])
    assert kept[: len(plain)] == plain and set(kept) | set(left) == {*plain, *packing, *some}
    assert packing[0] in left and packing[1] in kept and set(packing) <= set(narrowed(packing, True)[1])
    assert len(left) == 4 and kept == [one for one in [*plain, *packing, *some] if one in kept]
    values = [one.callspec.params for one in kept if one in some]
    assert {one["a"] for one in values} == {0, 1, 2} and {one["b"] for one in values} == {0, 1}
    pairs = [item(one.nodeid, "covering", 2, **one.callspec.params) for one in some]
    assert (len(narrowed(pairs)[0]), len(narrowed(pairs, True)[0])) == (6, 3)


@pytest.mark.parametrize("a", [5, 6])
@pytest.mark.parametrize("b", ["x"])
def test_pytest_tells_the_values_of_a_test(request, a, b):
    """It once told their places, and later the same place for all: a narrow run was a wide one."""
    assert request.node.callspec.params == {"a": a, "b": b}
