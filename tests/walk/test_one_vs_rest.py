"""All classes in step give what each class against the rest gives alone."""

import numpy as np
import pytest

from screenpath import l1_svm_path
from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.specs import l1_model
from screenpath.problem.grid import lambda_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.solve import make_solver
from screenpath.solve.l1cd import make_feature_solver
from screenpath.walk.loop import PathOptions
from screenpath.walk.one_vs_rest import OneVsRest, walk_classes
from tests.plain import svm_path

GRID = np.array([0.01, 0.1, 1.0])


def three_classes():
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 3
    return rng.normal(size=(90, 4)) + 1.5 * np.eye(4)[codes], codes


def walked(model, rule="dvi+gap", reference=None, first=0, **limits):
    options = PathOptions(**limits)
    return list(walk_classes(model, GRID, parse_rule(rule), make_solver("auto", 0), options, reference, first))


@pytest.mark.parametrize("rule", ["dvi+gap", "ssnsv"])
def test_each_row_of_coefficients_is_the_path_of_its_class(rule):
    X, codes = three_classes()
    weights = np.linspace(0.5, 2.0, 90)
    found = walked(OneVsRest(LOSSES["svm"].model, MemoryRows(X), codes, weights), rule, tol=1e-9)
    for k in range(3):
        alone = svm_path(X, codes == k, grid=GRID, rule=rule, tol=1e-9, sample_weight=weights)
        for (step, _), single in zip(found, alone.steps, strict=True):
            np.testing.assert_array_equal(step.coefficients[k], single.coefficients)


def test_a_step_adds_up_its_classes():
    X, codes = three_classes()
    (step, certificates), *_ = walked(OneVsRest(LOSSES["svm"].model, MemoryRows(X), codes))
    assert step.status == "certified"
    assert step.primal == pytest.approx(sum(c.primal for c in certificates))
    assert step.gap <= step.gap_target
    assert step.n_R + step.n_L + step.n_E == 3 * 90
    assert 0.0 <= step.rejection_ratio <= 1.0


def test_one_class_that_misses_its_gap_spoils_the_step():
    X, codes = three_classes()
    found = walked(OneVsRest(LOSSES["svm"].model, MemoryRows(X), codes), tol=1e-9, max_epochs=1)
    assert {step.status for step, _ in found} == {"budget"}


def test_classes_of_the_l1_model_begin_together_and_count_features():
    X, codes = three_classes()
    weights = np.linspace(0.5, 2.0, 90)
    model = OneVsRest(l1_model, MemoryRows(X), codes, weights)
    grid = lambda_grid(model, 5)
    how = parse_feature_rule("vi+gap"), make_feature_solver("auto"), PathOptions(tol=1e-9)
    found = list(walk_classes(model, grid, *how))
    alone = [l1_svm_path(X, codes == k, grid=grid, tol=1e-9, sample_weight=weights) for k in range(3)]
    for at, (step, _) in enumerate(found):
        singles = [path.steps[at] for path in alone]
        np.testing.assert_array_equal(step.coefficients, [one.coefficients for one in singles])
        assert step.status == "certified" and step.primal == pytest.approx(sum(one.primal for one in singles))
        assert step.rejection_ratio == sum(one.n_features_screened for one in singles) / 12
        assert step.nnz_w == sum(one.nnz_w for one in singles)
    assert found[0][0].nnz_w == 0 and found[1][0].nnz_w > 0  # the grid begins where the last of them does
    again = OneVsRest(l1_model, MemoryRows(X), codes, weights)
    rest = list(walk_classes(again, grid, *how, reference=again.restore(model.state(found[1][1])), first=2))
    for (step, _), (other, _) in zip(found[2:], rest, strict=True):
        np.testing.assert_array_equal(step.coefficients, other.coefficients)


def test_the_deadline_ends_all_classes():
    X, codes = three_classes()
    assert walked(OneVsRest(LOSSES["svm"].model, MemoryRows(X), codes), deadline=0.0) == []
