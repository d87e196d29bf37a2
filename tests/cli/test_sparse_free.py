"""``sparse-svm --intercept free`` with every command, and refused by name where it is not possible."""

import json

import numpy as np
import pytest

import screenpath
import screenpath.verify.file
from screenpath.errors import UsageError
from screenpath.verify.file import NAME, read_certificate
from screenpath.verify.problem import objective_of
from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times
from tests.sparse_problems import SDCA

GRID = ("--betas", 2, "--alphas", 4, "--scale", "standard", "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("free")
    X, y = clouds(60, 4, seed=5)
    (folder / "two").write_text(libsvm_text(X[10:] + 4.0, y[10:]))
    screenpath.run(
        "sparse-svm", folder / "two", intercept="free", betas=2, alphas=4, scale="standard", audit=True,
        certificate=True, test=folder / "two", out=folder / "run",
    )  # fmt: skip
    return folder


def test_an_objective_with_intercepts_of_classes_is_that_of_an_older_run(runs):
    header, _ = read_certificate(runs / "run" / NAME)
    objective = json.loads((runs / "run" / "run.json").read_text())["objective"]
    older = objective.replace("(w_yi - w_c)", "(w_yi - w_c) + b_yi - b_c") + "; the b_c sum to 0"
    assert objective_of(header, False, objective) == objective_of(header, False, older + ".") == objective
    assert objective_of(header, False, older) == older


def test_a_run_and_the_commands_on_it(runs, call):
    table, record = read_csv(runs / "run" / "steps.csv"), json.loads((runs / "run" / "run.json").read_text())
    found = [row for row in read_csv(runs / "run" / "coefficients.csv") if row["feature"] == "0"]
    assert "y_i (x_i.w + b)" in record["objective"]
    for row, one in zip(table, found, strict=True):
        assert row["status"] == "certified" and row["unsafe"] == "0"
        assert float(row["intercept_low"]) - 1e-9 <= float(one["value"]) <= float(row["intercept_high"]) + 1e-9
    for command in (("verify",), ("report", "-o", "page.html"), ("plot", "-o", "picture.svg")):
        done = call(command[0], runs / "run", *command[1:])
        assert done.code == 0, done.err
    assert "intercept free" in call("show", runs / "run", "--step", 7).out
    done = call("predict", runs / "run", runs / "two", "-o", "-", "--step", 7)
    assert done.code == 0 and "accuracy" in done.err
    path = screenpath.load_run(runs / "run")
    model = call("export", runs / "run", "--step", 7, "--to", "liblinear", "-o", "-", "--quiet").out.splitlines()
    assert "bias 1" in model and float(model[-1]) == pytest.approx(float(path.intercepts[7]))
    duals = path.duals(7)
    assert abs(duals.values.sum() if hasattr(duals, "values") else np.sum(duals)) < 1e-12


def test_a_certificate_that_was_changed_is_rejected(runs, call, tmp_path):
    header, steps = screenpath.verify.file.read_certificate(runs / "run" / "certificate.bin")
    entry = next(entry for entry in reversed(steps) if entry["between"].size)
    entry["between"] = 0.5 * entry["between"]  # the signed sum is not 0 any more
    found = screenpath.verify.check(header, steps, runs / "two")
    assert {step for step, _ in found.faults} == {entry["step"]}


def test_python_jobs_resume_and_weights_agree(runs, call, tmp_path):
    data = screenpath.read_libsvm(runs / "two")
    path = screenpath.sparse_svm_path(data.X, data.y, betas=2, alphas=4, scale="standard", intercept="free")
    stored = screenpath.load_run(runs / "run")
    assert path.intercepts.tolist() == stored.intercepts.tolist() and np.all(path.intercepts[4:] != 0.0)
    own = ("sparse-svm", runs / "two", "--intercept", "free", *GRID)
    assert call(*own, "-o", "whole").code == 0 and call(*own, "--jobs", 2, "-o", "shared").code == 0
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    for name in ("shared", "part"):
        assert without_times(f"{name}/steps.csv") == without_times("whole/steps.csv")
    twice = np.vstack([data.X.toarray(), data.X.toarray()[:20]]), np.concatenate([data.y, data.y[:20]])
    how = {"alphas": [0.05], "betas": [0.02], "intercept": "free", "tol": 1e-10}
    weights = np.where(np.arange(data.y.size) < 20, 2.0, 1.0)
    one = screenpath.sparse_svm_path(*twice, **how)
    other = screenpath.sparse_svm_path(data.X, data.y, sample_weight=weights, **how)
    assert other[0].primal == pytest.approx(one[0].primal, rel=1e-9)
    assert other.intercepts == pytest.approx(one.intercepts, abs=1e-4)


def test_the_rules_agree(runs, call):
    own = ("--intercept", "free", "--rules", "none,sifs+gap", "--repeats", 1, "--format", "csv", "-o", "table.csv")
    assert call("compare-rules", "sparse-svm", runs / "two", *own, *GRID).code == 0
    assert [row["certified"] for row in read_csv("table.csv")] == ["8", "8"]


def test_cross_validation(runs, call):
    done = call("cv", "sparse-svm", runs / "two", "--intercept", "free", "--folds", 3, *GRID, "-o", "cv")
    assert done.code == 0, done.err
    assert call("predict", "cv", runs / "two", "-o", "labels.txt").code == 0


def test_what_is_not_possible_is_refused_by_name(runs, call, tmp_path):
    own = ("sparse-svm", runs / "two", "--intercept", "free", "-o", "refused")
    found = call(*own, "--solver", SDCA)
    assert found.code == 2 and "moves one dual variable at a time" in found.err
    assert "use --solver newton, or --intercept none" in found.err
    found = call("compare-rules", "sparse-svm", runs / "two", "--intercept", "free", "--start", "cold")
    assert found.code == 2 and "leave out cold starts" in found.err
    found = call(*own, "--bias", 1)
    assert found.code == 2 and "--bias makes a penalised intercept" in found.err
    with pytest.raises(UsageError, match="needs two classes"):
        X, y = clouds(20, 2, seed=1)
        screenpath.sparse_svm_path(X, y, intercept="free", sample_weight=(y > y.min()).astype(float))
