"""Paths over a level of the loss, by commands: `quantile --tau-list`, `svr --epsilon-list`."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import libsvm_text, read_csv
from tests.cli.test_resume import same_run, stop_at  # noqa: F401  # a fixture

TAUS = "0.1,0.2,0.35,0.5,0.8"


@pytest.fixture
def targets(tmp_path, monkeypatch):
    """Return the rows, and their file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.round(X @ [1.0, 0.5, 0.0] + rng.standard_t(3, size=60), 3)
    Path("targets.libsvm").write_text(libsvm_text(X, y))
    return X, y


@pytest.mark.parametrize(
    ("model", "level", "values"), [("quantile", "tau", TAUS), ("svr", "epsilon", "0,0.1,0.5,1")], ids=("tau", "epsilon")
)
def test_a_path_over_a_level(call, targets, model, level, values):
    X, y = targets
    more = ("--c", "0.5", f"--{level}-list", values, "--audit", "--tol", "1e-9")
    assert call(model, "targets.libsvm", *more, "--quiet", "-o", "run").code == 0
    rows, record = read_csv("run/steps.csv"), json.loads(Path("run/run.json").read_text())
    assert record["parameters"] == [level] and [float(row[level]) for row in rows] == [
        float(value) for value in values.split(",")
    ]
    assert {row["unsafe"] for row in rows} == {"0"} and ("crossings" in rows[0]) == (level == "tau")
    function = getattr(screenpath, f"{model}_path")
    for row in rows:
        alone = function(X, y, grid=[0.5], tol=1e-9, **{level: float(row[level])})
        assert float(row["primal"]) == pytest.approx(alone[0].primal, rel=2e-9)
    path, between = screenpath.load_run("run"), record["between"]
    assert path.worst_between[0] == pytest.approx(between["worst_rel_gap"], rel=1e-6) and between["worst_rel_gap"] < 1.0
    at = 0.5 * (float(rows[1][level]) + float(rows[2][level]))
    found = path.at(at)
    assert f"{level} = {at:g}" in repr(found) and 0.0 < found.rel_gap <= between["worst_rel_gap"]
    best = function(X, y, grid=[0.5], tol=1e-9, **{level: at})[0].primal
    t = y - X @ found.coef - found.intercept
    loss = np.maximum(at * t, (at - 1.0) * t) if level == "tau" else np.maximum(np.abs(t) - at, 0.0)
    primal = 0.5 * found.coef @ found.coef + 0.5 * loss.sum()
    assert 0.0 <= primal - best <= found.gap
    np.testing.assert_allclose(path.predict(X, **{level: at}), X @ found.coef + found.intercept)
    said = call("predict", "run", "targets.libsvm", "--step", f"{level}={at}", "-o", "out.csv").err
    assert f"{level} = {at:g}, between steps 1 and 2" in said
    if level == "tau":
        assert f"pinball: {loss.mean():.6g}" in said
    exact = call("predict", "run", "targets.libsvm", "--step", f"{level}={at}", "--exact", "-o", "exact.csv")
    assert exact.code == 2 and "only linear paths over C are solved between their steps" in exact.err
    assert f"any {level} from" in call("show", "run").out and "C = 0.5" in call("show", "run").out
    for command in (("loo", "run", "--step", "1"), ("reduce", "run", "-o", "small")):
        assert call(*command).code == 2
    assert call("export", "run", "--step", "1", "-o", "model.json").code == 0
    assert call("report", "run", "-o", "run.html").code == call("plot", "run", "-o", "run.svg").code == 0


def test_a_stopped_path_goes_on(call, targets, stop_at, monkeypatch):  # noqa: F811
    more = ("quantile", "targets.libsvm", "--c", "0.5", "--tau-list", TAUS, "--quiet", "-o")
    assert call(*more, "whole").code == 0
    stop_at(signal.SIGTERM, 2)
    assert call(*more, "cut").code == 143
    with monkeypatch.context() as undone:
        undone.setattr("screenpath.report.console.Console.advance", lambda self, done: None)
        assert call(*more, "cut", "--resume").code == 0
    same_run("whole", "cut")
    between = [json.loads(Path(f"{name}/run.json").read_text())["between"] for name in ("whole", "cut")]
    assert between[0] == between[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tau-list", "0.1,0.5"), "a path over tau has one C\n  add --c VALUE"),
        (("--c", "1", "--tau-list", "0.1,0.5", "--tau", "0.3"), "leave out --tau"),
        (("--c", "1", "--tau-list", "0.1,0.5", "--grid", "3"), "leave out --grid"),
        (("--c", "1", "--tau-list", "0.1,0.5", "--test", "targets.libsvm"), "leave out --test"),
        (("--c", "1", "--tau-list", "0.1,0.5", "--rule", "essnsv"), "'essnsv' is for a path over C"),
        (("--c", "1", "--tau-list", "0.1,1.5"), "must lie between 0 and 1"),
        (("--c", "1", "--tau-list", "0.1,0.1"), "0.1 appears twice"),
        (("--c", "1", "--tau-list", "0.1,0.5", "--kernel", "rbf"), "of linear models\n  leave out --kernel"),
    ],
)
def test_what_does_not_go_together(call, targets, words, said):
    found = call("quantile", "targets.libsvm", *words)
    assert found.code == 2 and said in found.err
