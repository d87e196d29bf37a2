"""The steps of a path, some of which are made when they are looked at."""

import numpy as np
import pytest

from screenpath.catalogue.losses import SVM
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk import compiled
from screenpath.walk.loop import PathOptions, batches, walk
from screenpath.walk.step import COLUMNS, TABLE, Step, Steps
from tests.conftest import two_classes
from tests.plain import svm_path

GRID = np.geomspace(1e-3, 10.0, 12)


def walked(take, **options):
    X, y = two_classes(seed=7, noise=1.5)
    model, how = SVM.model(MemoryRows(X), y), (parse_rule("dvi+gap"), make_solver("auto"))
    return model, list(take(model, GRID, *how, PathOptions(tol=1e-8, **options)))


def numbers(steps):
    clocks = ("screen_s", "solve_s", "certify_s")
    return [{k: v for k, v in step.record().items() if k not in clocks} for step in steps]


@pytest.mark.parametrize("points", [1, 5, 100])
def test_certificates_that_nobody_wants_change_no_number(points, monkeypatch):
    monkeypatch.setattr(compiled, "POINTS", points)
    _, found = walked(walk)
    model, taken = walked(batches, certificates=False)
    steps = Steps([one for one, _ in taken])
    assert numbers(steps) == numbers([step for step, _ in found])
    assert len(taken) < len(GRID) or points == 1
    last = np.cumsum([len(one) for one, _ in taken]) - 1
    for (_, certificates), rank in zip(taken, last, strict=True):
        assert certificates[:-1] == [None] * (len(certificates) - 1)
        one, other = model.state(certificates[-1]), model.state(found[rank][1])
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])
        np.testing.assert_array_equal(certificates[-1].point.products, found[rank][1].point.products)


def test_point_that_is_refused_leaves_its_reference_as_it_was():
    """The last point before one that needs too many iterations is the reference of the loop, which ends there too."""
    _, found = walked(walk, max_epochs=5)
    model, taken = walked(batches, max_epochs=5, certificates=False)
    steps = Steps([one for one, _ in taken])
    assert {step.status for step in steps} == {"certified", "budget"}
    assert numbers(steps) == numbers([step for step, _ in found])
    reference = taken[0][1][-1]
    again = model.certify(reference.C, reference.point.vector, reference.theta)
    np.testing.assert_allclose(again.total, reference.total, rtol=1e-12)
    assert again.primal == reference.primal


def test_steps_are_a_sequence():
    X, y = two_classes(seed=7, noise=1.5)
    path = svm_path(X, y, grid=GRID, bias=1.0, scale="standard")
    assert len(path.steps) == len(GRID)
    assert path.steps[3] is path.steps[3] and path.steps[-1] in path.steps
    assert [step.step for step in path.steps] == list(range(len(GRID)))
    assert [step.step for step in path.steps[2:4]] == [2, 3]
    assert repr(path.steps).startswith("Steps([Step(step=0, ")
    for step, w, b in zip(path.steps, path.coefficients, path.intercepts, strict=True):
        np.testing.assert_array_equal((*path.preparation.original(step.coefficients),)[0], w)
        assert path.preparation.original(step.coefficients)[1] == b
    with pytest.raises(IndexError):
        path.steps[len(GRID)]


def test_every_column_is_an_attribute_of_a_step_and_says_what_it_is():
    _, taken = walked(batches)
    for step in (step for found, _ in taken for step in found):
        assert tuple(step.record()) == ("step", "C", *COLUMNS)
        assert step.parameters == {"C": step.C} and step.extras == {}
        with pytest.raises(AttributeError, match="a step has no column 'no'"):
            _ = step.no
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert all(f"{column.name} : {column.says}" in Step.__doc__ for column in TABLE)
