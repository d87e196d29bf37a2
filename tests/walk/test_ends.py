"""Ends of a path: what needs no solve is said so, costs no pass, and is what a solver finds."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import LAD, SVM, SVR
from screenpath.cli.app import run
from screenpath.problem import ends
from screenpath.problem.box import BoxModel
from screenpath.problem.kernel import KernelModel
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk import loop
from screenpath.walk.loop import PathOptions, walk
from tests import plain
from tests.cli.conftest import libsvm_text
from tests.safety.rational import Exact

GRID = np.geomspace(1e-4, 1e3, 29)


def separable(n=24, d=60, seed=0):
    """Return fewer rows than features: every labelling is separable, and every target is met exactly."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)


def model_of(name, seed=0):
    X, y = separable(seed=seed)
    if name == "kernel":
        rows = GramRows(X, KernelFunction("poly", 0.5, 2, 1.0), y, 1 << 24)
        return KernelModel(rows, np.ones(y.size), np.zeros(y.size), np.ones(y.size))
    if name == "svr-wide":
        return SVR.model(MemoryRows(sp.csr_array(np.pad(X, ((0, 0), (0, 600))))), X[:, 0] + y, epsilon=0.1)
    if "wide" in name:
        intercept = ("free",) if "free" in name else ()
        return SVM.model(MemoryRows(sp.csr_array(np.pad(X, ((0, 0), (0, 600))))), y, None, *intercept)
    if name == "free":
        return SVM.model(MemoryRows(X), y, None, "free")
    rows = MemoryRows(sp.csr_array(X) if name == "sparse" else X)
    if name == "lad":
        return LAD.model(rows, X[:, 0] + y)
    return SVR.model(rows, X[:, 0] + y, epsilon=0.1) if name == "svr" else SVM.model(rows, y)


def solver_of(name):
    if name == "kernel":
        return make_kernel_solver("auto")
    return make_solver("auto")


def rule_of(name, rule="dvi+gap"):
    return parse_rule(rule)


def steps_of(model, name, grid=GRID, rule="dvi+gap", **more):
    return list(walk(model, grid, rule_of(name, rule), solver_of(name), PathOptions(**more)))


@pytest.mark.parametrize("name", ["dense", "sparse", "wide", "lad", "svr", "kernel", "free", "free-wide"])
def test_what_is_not_solved_is_what_a_solver_finds(name, monkeypatch):
    known = [step for step, _ in steps_of(model_of(name), name)]
    for way in ("held", "polished"):
        monkeypatch.setattr(type(model_of(name)), way, lambda *_: None)
    solved = [step for step, _ in steps_of(model_of(name), name)]
    named = [step.solver for step in known]
    assert "constant" in named[-2:] and named.count("constant") > 5  # the last one may be due for another solve
    assert not {"constant"} & {step.solver for step in solved}
    reading = 0
    for one, other in zip(known, solved, strict=True):
        assert one.status == other.status == "certified"
        assert abs(one.primal - other.primal) <= 1e-6 * other.primal
        if one.solver == "constant":
            assert one.epochs == 0
            reading += one.passes > 0.0
    assert reading <= 3 or "free" in name  # a polish reads rows, and serves a decade of C at least


def test_below_the_least_c_the_closed_form_is_taken(monkeypatch):
    model = model_of("dense")
    steps = [step for step, _ in steps_of(model, "dense")]
    closed = [step for step in steps if step.solver == "closed-form"]
    assert len(closed) == int((model.closed_until >= GRID).sum()) > 2
    assert all(step.passes == 0.0 and step.n_L == model.size for step in closed[1:])
    monkeypatch.setattr(BoxModel, "held", lambda *_: None)
    solved = [step for step, _ in steps_of(model_of("dense"), "dense")]
    np.testing.assert_allclose([s.primal for s in steps], [s.primal for s in solved], rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["dense", "lad", "svr", "wide"])
def test_no_bound_is_smaller_than_the_exact_gap(name, seed):
    """Judged in rational numbers, along a chain that is long enough for sums to be formed anew."""
    model, judged = model_of(name, seed), 0
    exact, grid = Exact(model, 1.0), np.geomspace(1e-4, 1e3, 60)
    for step, certificate in steps_of(model, name, grid):
        if step.solver not in ("constant", "closed-form"):
            continue
        there = exact.at(certificate.C)
        gap = there.primal(certificate.point.vector) - there.dual(certificate.theta)
        assert 0 <= gap <= certificate.gap
        judged += 1
    assert judged > 20


def test_a_sum_that_is_not_scaled_is_noticed(monkeypatch):
    """The judge of the test before, on a certificate that is wrong."""
    right = ends.constant

    def wrong(model, reference, C):
        w, theta, _, *others = right(model, reference, C)
        return (w, theta, reference.total * reference.C / C * (1.0 + 1e-7), *others)

    monkeypatch.setattr(ends, "constant", wrong)
    model, caught = model_of("dense"), 0
    for step, certificate in steps_of(model, "dense"):
        if step.solver == "constant":
            exact = Exact(model, certificate.C)
            moved = certificate.total - model.weighted_sum(certificate.theta)
            caught += np.linalg.norm(moved) > certificate.sum_error
            assert exact.dual(certificate.theta) > 0
    assert caught > 5


@pytest.mark.parametrize("rule", ["dvi+gap", "none", "it"])
@pytest.mark.parametrize("name", ["dense", "lad"])
def test_the_compiled_walk_has_the_bytes_of_the_loop(name, rule, monkeypatch):
    found = []
    for compiles in (True, False):
        if not compiles:
            monkeypatch.setattr(loop, "can_compile", lambda *_: False)
        model = model_of(name)
        pairs = steps_of(model, name, rule=rule)
        found.append([(s.solver, s.passes, s.primal, s.coefficients.tobytes(), c.theta.tobytes()) for s, c in pairs])
    assert found[0] == found[1]
    assert "constant" in {one[0] for one in found[0]}


@pytest.mark.parametrize("name", ["dense", "wide", "kernel", "free-wide"])
def test_a_path_goes_on_from_any_point_with_its_bytes(name):
    """Also where the solver starts from the line through the last two dual points, and where nothing is solved."""
    model = model_of(name)
    whole = steps_of(model, name)
    assert "wide" not in name or any(certificate.before is not None for _, certificate in whole)
    for k in range(1, len(GRID), 3):
        other = model_of(name)
        reference = other.restore(model.state(whole[k - 1][1]))
        again = walk(other, GRID, rule_of(name), solver_of(name), PathOptions(), reference, k)
        for (step, one), (same, other_one) in zip(whole[k:], again, strict=True):
            assert (step.solver, step.passes, step.primal) == (same.solver, same.passes, same.primal)
            assert one.theta.tobytes() == other_one.theta.tobytes()


def test_the_start_on_the_line_is_nearer():
    """Between two points at which the same rows are free, the start is the solution."""
    model = model_of("wide")
    C = 1.05 * model.closed_until  # a few rows are free
    *_, (_, one), (_, two) = steps_of(model, "wide", C * np.array([1.0, 1.0001, 1.0002]), tol=1e-12)
    two.before, C = (one.C, one.theta, one.point.products, one.total), 1.0003 * C
    assert 0 < model.size - two.n_R - two.n_L < model.size
    theta, total, linear, foreseen, apart = model._looking_ahead(C, two)
    ahead, plain = model.certify(C, None, theta), model.certify(C, None, two.theta)
    assert ahead.gap < plain.gap and linear == pytest.approx(ahead.ell, rel=1e-12)
    assert not apart.any()
    np.testing.assert_allclose(total, ahead.total, atol=1e-12)
    np.testing.assert_allclose(foreseen, ahead.point.products, atol=1e-9)
    assert np.abs(foreseen - two.point.products).max() > 1e-6
    one.before = None
    assert model._looking_ahead(C, one)[-2:] == (None, None)


@pytest.mark.parametrize(("name", "grid"), [("wide", [1.0, 1.6, 2.6]), ("svr-wide", [5.0, 20.0, 60.0])])
def test_what_the_line_leaves_is_added_to_its_sum(name, grid):
    """Between two points at which other rows are free; each is at one side of the line through both, or on it."""
    model = model_of(name)
    grid = np.array(grid) * model.closed_until
    *_, (_, one), (_, two) = steps_of(model, name, grid, tol=1e-9)
    two.before = one.C, one.theta, one.point.products, one.total
    for C in 4.0 * two.C, 400.0 * two.C:
        theta, total, _, _, apart = model._looking_ahead(C, two)
        assert 0 < np.count_nonzero(apart) < model.size
        reduced = model.reduce(C, model.nothing_screened(), two)
        np.testing.assert_array_equal(reduced.start_alpha, C * theta)
        np.testing.assert_allclose(reduced.start_sum, C * model.weighted_sum(theta), rtol=1e-9, atol=1e-9)
        assert np.abs(total - model.weighted_sum(theta)).max() > 1e-6  # the control
        on = theta * C == two.theta * two.C + (C - two.C) / (two.C - one.C) * (two.theta * two.C - one.theta * one.C)
        assert np.all((apart == 0.0) | ~on)


def test_all_of_what_a_start_is_foreseen_from_is_in_a_checkpoint():
    model = model_of("wide")
    *_, (_, two) = steps_of(model, "wide")[:9]
    assert two.before is not None
    for left in ("before_theta", "before_margins", "before_total"):
        with pytest.raises(ValueError, match=left):
            model.restore({name: value for name, value in model.state(two).items() if name != left})


@pytest.mark.parametrize("path", [plain.lad_path, plain.quantile_path])
@pytest.mark.parametrize("rule", ["dvi+gap", "none", "it", "essnsv", "sieve"])
def test_targets_that_zero_meets_need_no_solve(path, rule):
    """The primal value is 0 and the gap of (0, 0) exactly 0; a solver once sought a part of 0 in all epochs it had."""
    X, y = separable(n=60, d=5)
    y[1:] = 0.0
    counts = np.arange(60) % 2  # the one other target is that of a row of weight 0
    for given in ({"sample_weight": counts}, {"sample_weight": counts, "bias": 1.0, "storage": "sparse"}):
        found = path(X, y, grid=4, rule=rule, **given)
        assert [(step.status, step.primal, step.gap, step.epochs) for step in found] == [("certified", 0.0, 0.0, 0)] * 4
        assert not found.coefficients.any()


def test_the_run_says_from_which_c_on(tmp_path):
    X, y = separable()
    (tmp_path / "data.libsvm").write_text(libsvm_text(X, y))
    assert run(["svm", str(tmp_path / "data.libsvm"), "--cmax", "1000", "-o", str(tmp_path / "run"), "-q"]) == 0
    totals = json.loads((tmp_path / "run" / "run.json").read_text())["totals"]
    rows = (tmp_path / "run" / "steps.csv").read_text().splitlines()
    names, last = rows[0].split(","), [row.split(",") for row in rows[1:]]
    constant = [float(row[names.index("C")]) for row in last if row[names.index("solver")] == "constant"]
    assert 1e-2 < totals["constant_from"] < constant[-1]
