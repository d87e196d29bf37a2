"""No certificate is false for rounding: named cases, random hostile problems, and controls that must fail."""

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, SVM
from screenpath.errors import DataError
from screenpath.kernels.problem import box as kernels
from screenpath.numbers.rounding import meets
from screenpath.problem import box
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, walk
from tests.safety import fuzz_rounding
from tests.safety.rational import Exact, faults
from tests.width import wide

HUGE_C = [1e-12, 1e-4, 1.0, 1e4, 1e12]


def walked(model, grid, tol, rule="dvi+gap", solver="newton", **more):
    options = PathOptions(tol=tol, **more)
    with np.errstate(all="ignore"):
        return list(walk(model, np.array(grid), parse_rule(rule), make_solver(solver), options))


@pytest.mark.parametrize("rule", ["none", "dvi+gap"])
@pytest.mark.parametrize("tol", [1e-6, 1e-12])
def test_a_hinge_of_1e_16_counts_as_much_as_C_weighs_it(rule, tol):
    """Two rows of norm about 1: a relative gap of 1.7e-16 was reported at C = 1e12, where it was 1.1e-5."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = SVM.model(MemoryRows(rng.normal(size=(2, 2))), np.array([1.0, -1.0]))
        found = walked(model, HUGE_C, tol, rule)
        for (step, certificate), C in zip(found, HUGE_C, strict=True):
            assert faults(model, C, tol, step, certificate) == []
        assert [step.status for step, _ in found[:4]] == ["certified"] * 4


def test_a_few_units_in_the_last_place_remove_a_hinge_of_1e_16():
    """Weighed by 1e12, the hinges of 1e-16 that the solver leaves would cost more than the tolerance."""
    X, y = np.array([[0.3, 0.8], [-0.5, 0.9]]), np.array([1.0, -1.0])
    model = SVM.model(MemoryRows(X), y)
    best = Exact(model, 1e12)
    solved = walked(model, [1e12], 1e-12)[-1][1]
    short = model.certify(1e12, solved.point.vector * (1.0 - 2.0**-51), solved.theta)
    assert not meets(short, 1e-6) and not meets(model.certify(1e12, short.point.vector, short.theta), 1e-6)
    mended = model.sharpened(short, 1e-6)
    assert meets(mended, 1e-6)
    assert best.primal(mended.point.vector) - best.optimum() <= 1e-6 * best.primal(mended.point.vector)


@pytest.mark.parametrize("build", [SVM.model, LAD.model])
def test_rows_of_size_1e12(build):
    """A gap of 0 was reported where it was 1."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = build(MemoryRows(1e12 * rng.normal(size=(3, 2))), np.where(rng.random(3) < 0.5, -1.0, 1.0))
        for step, certificate in walked(model, [1e-6, 1.0, 1e6], 1e-6):
            assert faults(model, step.parameters["C"], 1e-6, step, certificate) == []


def test_features_of_size_1e_6_to_1e5_end_in_numbers():
    """At C = 1e12 a solve went on for 100,000 iterations in nan and left nan coefficients."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(4, 3)) * 10.0 ** rng.uniform(-6.0, 5.0, (4, 1))
        model = SVM.model(MemoryRows(X), np.where(rng.random(4) < 0.5, -1.0, 1.0))
        for step, certificate in walked(model, [1e-3, 1e12], 1e-6, max_epochs=5000):
            assert faults(model, step.parameters["C"], 1e-6, step, certificate) == []
            assert step.reason if step.status != "certified" else not step.reason


def test_a_certified_pair_is_not_worse_than_zero():
    """Dual solvers may stop within the tolerance at a w whose objective is above that of w = 0."""
    for seed in (1001526, 1002219, 1006029, 1009258, 1010127):
        found = list(fuzz_rounding.check_path(seed))
        assert found and all(false == [] for _, false, _ in found)
        assert "certified" in [status for status, _, _ in found]


def test_a_large_c_weighs_what_underflow_hides():
    """A gap of 3.361e-315 was reported where it was 3.364e-315: C = 2e9 multiplies sums that are denormal."""
    assert [false for _, false, _ in fuzz_rounding.check_path(1003320)] == [[]] * 3


def test_random_problems_at_hostile_scales():
    count = wide(50, 100)
    statuses, found = fuzz_rounding.fuzz(count, seed=4321)
    assert found == []
    assert statuses["certified"] > 0.4 * count


def test_without_the_bounds_false_certificates_are_found(monkeypatch):
    blind = np.zeros(kernels.TINY + 1)
    blind[kernels.ZERO] = np.inf
    monkeypatch.setattr(box.BoxModel, "_bounds", lambda self: blind)
    monkeypatch.setattr(box.BoxModel, "sharpened", lambda self, certificate, tol: certificate)
    assert fuzz_rounding.finds(lambda claim: "certified" in claim or "gap" in claim, 100, 4321)


def test_overflow_is_named():
    X = np.array([[1e200, 1.0], [-1e200, 1.0], [1.0, -1e200]])
    y = np.array([1.0, -1.0, 1.0])
    with np.errstate(all="ignore"), pytest.raises(DataError, match="overflow: the squared norm of row 1"):
        SVM.model(MemoryRows(X), y)
    model = LAD.model(MemoryRows(X * 1e-50), y)
    steps = [step for step, _ in walked(model, [1.0, 1e12], 1e-6, max_epochs=500)]
    for step in steps:
        assert np.all(np.isfinite([step.primal, step.gap, step.dual, *step.coefficients]))
        assert bool(step.reason) == (step.status != "certified")


def test_raw_data_is_certified_with_rounding_counted():
    """Sums of 569 rows of norm 2000 lose digits; the bound must not cost the certificate."""
    from screenpath import read_libsvm, svm_path

    data = read_libsvm("data_samples/breast_cancer.libsvm")
    path = svm_path(data.X, data.y, grid=12, tol=1e-9)
    assert path.certified and all(step.primal - step.dual >= step.gap for step in path.steps)
