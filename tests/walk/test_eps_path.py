"""The eps-path: every C of the range is solved to within epsilon by a listed step."""

import json

import numpy as np
import pytest

import screenpath
from screenpath import EpsilonGrid
from screenpath.catalogue.losses import SVM
from screenpath.cli.app import run
from screenpath.errors import UsageError
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, walk
from tests.catalogue.test_targets import regression
from tests.conftest import two_classes
from tests.plain import lad_path, svm_path


@pytest.mark.parametrize("epsilon", [1e-1, 1e-2, 1e-3])
def test_the_pair_of_a_step_is_optimal_up_to_the_next(epsilon):
    X, y = two_classes(80, 5)
    model = SVM.model(MemoryRows(X), y)
    grid = EpsilonGrid(1e-2, 5.0, epsilon)
    found = list(walk(model, grid, parse_rule("dvi+gap"), make_solver("newton"), PathOptions(tol=epsilon / 100)))
    points = np.array([step.parameters["C"] for step, _ in found])
    assert points[0] == 1e-2 and points[-1] == 5.0 and np.all(np.diff(points) > 0)
    assert list(grid) == points.tolist()
    assert points.size <= grid.most(epsilon / 100) <= 3 + 2 * np.log(500) / np.sqrt(epsilon)
    rng = np.random.default_rng(0)
    for C in np.concatenate([np.exp(rng.uniform(np.log(1e-2), np.log(5.0), 60)), points[1:]]):
        at = max(int(np.searchsorted(points, C, side="left")) - 1, 0)
        certificate = found[at][1]
        moved = model.certify(C, certificate.point.vector, certificate.theta)
        assert moved.gap <= epsilon * moved.dual * (1 + 1e-9)


def test_strides_are_as_long_as_the_guarantee_allows():
    X, y = two_classes(80, 5)
    model = SVM.model(MemoryRows(X), y)
    grid = EpsilonGrid(1e-2, 5.0, 1e-2)
    found = list(walk(model, grid, parse_rule("dvi"), make_solver("newton"), PathOptions(tol=1e-6)))
    for (_, certificate), (step, _) in zip(found[:-2], found[1:-1], strict=True):
        C = step.parameters["C"] * 1.001
        moved = model.certify(C, certificate.point.vector, certificate.theta)
        assert moved.gap > 1e-2 * moved.dual


def test_api_and_regressions():
    X, y = regression()
    path = lad_path(X, y, grid=EpsilonGrid(0.1, 10.0, 1e-2))
    assert path.certified and path.steps[-1].parameters["C"] == 10.0
    fewer = lad_path(X, y, grid=EpsilonGrid(0.1, 10.0, 1e-1))
    assert len(fewer.steps) < len(path.steps)


def test_a_path_too_rough_for_its_own_guarantee_is_an_error():
    X, y = two_classes(80, 5, noise=3.0)
    with pytest.raises(UsageError, match="too large for an eps-path"):
        svm_path(X, y, grid=EpsilonGrid(1.0, 10.0, 1e-8), tol=1e-3)
    for bad in ((0.0, 1.0, 0.1), (1.0, 1.0, 0.1), (0.1, 1.0, 0.0), (0.1, 1.0, 1.0)):
        with pytest.raises(UsageError):
            EpsilonGrid(*bad)


def test_command_line_records_the_guarantee_and_resumes(samples, tmp_path):
    base = ["svm", str(samples / "wang_toy3.libsvm"), "--eps-path", "0.01", "--quiet"]
    assert run([*base, "--out", str(tmp_path / "a")]) == 0
    record = json.loads((tmp_path / "a" / "run.json").read_text())
    assert record["guarantee"] == {"epsilon": 0.01, "from": 0.01, "to": 10.0}
    steps = (tmp_path / "a" / "steps.csv").read_text().splitlines()
    assert record["totals"]["n_steps"] == len(steps) - 1
    assert run([*base, "--out", str(tmp_path / "b"), "--time-limit", "1e-9"]) == 3
    assert json.loads((tmp_path / "b" / "run.json").read_text())["guarantee"] is None  # nothing is known of any C
    assert run([*base, "--grid", "5", "-o", "-"]) == 2
    assert run([*base, "--tol", "0.1", "-o", "-"]) == 2


def test_of_many_rows_begins_with_samples_too():
    X, y = two_classes(9000, 5)
    model = SVM.model(MemoryRows(X), y)
    grid = EpsilonGrid(1e-2, 1.0, 0.1)
    found = list(walk(model, grid, parse_rule("auto"), make_solver("auto"), PathOptions(tol=1e-3)))
    assert len(found) > 1 and all(step.status == "certified" for step, _ in found)


def test_single_problem_from_one_reference(samples, capsys):
    data = str(samples / "wang_toy1.libsvm")
    assert run(["svm", data, "--c", "1", "--reference", "0.9", "-o", "-", "--quiet"]) == 0
    header, first, second = (line.split(",") for line in capsys.readouterr().out.splitlines())
    C, rejection = header.index("C"), header.index("rejection_ratio")
    assert (first[C], second[C]) == ("0.9", "1.0") and float(second[rejection]) > 0.5
    assert run(["svm", data, "--c", "1", "-o", "-", "--quiet"]) == 0
    assert run(["svm", data, "--reference", "1", "-o", "-", "--quiet"]) == 2
    assert run(["svm", data, "--c", "1", "--grid", "3", "-o", "-", "--quiet"]) == 2


def test_a_stopped_path_guarantees_no_more_than_its_last_step_serves():
    """The point after a step that was solved but not kept is known, and nothing in the folder proves it."""
    grid = EpsilonGrid(0.1, 10.0, 0.1)
    grid._known, grid._size = {0: 0.1, 1: 0.2, 2: 0.4}, 3  # step 1 was late
    assert grid.guarantee(1) == {"epsilon": 0.1, "from": 0.1, "to": 0.2}
    assert grid.guarantee(3)["to"] == 0.4


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_a_tube_that_holds_all_targets_is_optimal_for_every_C(tmp_path, intercept):
    """Nothing is lost, and no relative gap says how little; negative control: of a target outside something is."""
    X, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([0.5, -0.25, 0.0, 0.375, -0.5, 0.125])
    for top, few in ((0.5, True), (3.0, False)):
        rows = zip(np.where(y == 0.5, top, y).tolist(), X.tolist(), strict=True)
        (tmp_path / "data").write_text("".join(f"{label} 1:{a!r} 2:{b!r}\n" for label, (a, b) in rows))
        about = {"epsilon": 1.0, "eps_path": 0.01, "cmin": 0.01, "cmax": 10.0, "intercept": intercept, "quiet": True}
        path = screenpath.run("svr", tmp_path / "data", **about, certificate=True, out=tmp_path / "run", force=True)
        assert path.certified and (len(path.steps) == 2) == few and (path.steps[-1].primal == 0.0) == few
        assert path.run.record["guarantee"] == {"epsilon": 0.01, "from": 0.01, "to": 10.0}
        assert screenpath.verify_certificate(tmp_path / "run").holds
