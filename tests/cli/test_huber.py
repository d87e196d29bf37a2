"""Huber regression with every command, in Python, and its refusals."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError, UsageError
from screenpath.verify.file import NAME, read_certificate
from tests.cli.conftest import ROOT, libsvm_text, read_csv, without_times
from tests.sparse_problems import SDCA

GRID = ("--betas", 2, "--alphas", 4, "--scale", "standard", "--quiet")


def targets(n=60, d=5):
    """Return data and targets with outliers and a mean far from 0."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, d)) + 1.0
    return X, np.round(X @ [1.0, -2.0, 0.5, 0.0, 0.0] + rng.standard_t(2, size=n) + 4.0, 3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a data file, and a run with certificate, audit and scores for each kind of intercept."""
    folder = tmp_path_factory.mktemp("huber")
    (folder / "data").write_text(libsvm_text(*targets()))
    for kind in ("none", "free", "penalised"):
        screenpath.run(
            "huber", folder / "data", intercept=kind, betas=2, alphas=4, scale="standard", audit=True,
            certificate=True, test=folder / "data", out=folder / kind, smoothing=0.7,
        )  # fmt: skip
    return folder


@pytest.mark.parametrize("kind", ["none", "free", "penalised"])
def test_a_run_and_the_commands_on_it(runs, call, kind):
    table, record = read_csv(runs / kind / "steps.csv"), json.loads((runs / kind / "run.json").read_text())
    assert ("x_i.w - b" in record["objective"]) == (kind == "free") and record["options"]["smoothing"] == 0.7
    assert all(row["status"] == "certified" and row["unsafe"] == "0" for row in table)
    assert float(table[-1]["test_mae"]) < float(table[0]["test_mae"])
    for command in (("verify",), ("report", "-o", "page.html"), ("plot", "-o", "picture.svg")):
        done = call(command[0], runs / kind, *command[1:])
        assert done.code == 0, done.err
    assert "gamma = 0.7" in call("show", runs / kind, "--step", 7).out
    done = call("predict", runs / kind, runs / "data", "-o", "-", "--step", 7)
    assert done.code == 0 and "mae" in done.err
    model = call("export", runs / kind, "--step", 7, "--to", "liblinear", "-o", "-", "--quiet").out.splitlines()
    assert "solver_type L2R_L1LOSS_SVR_DUAL" in model
    checker = ROOT / "examples" / "certificate" / "check.py"
    said = subprocess.run([sys.executable, checker, runs / kind, runs / "data"], capture_output=True, text=True)
    assert said.stdout == "holds\n", said


def test_its_dual_variables_make_the_weights(runs, call):
    path, X = screenpath.load_run(runs / "free"), targets()[0]
    (alpha, beta), duals = path.grid[7], path.duals(7)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    sums = duals.values @ Z
    w = np.sign(sums) * np.maximum(np.abs(sums) - beta, 0.0) / alpha
    np.testing.assert_allclose(w, path.coef(7) * X.std(axis=0), rtol=1e-3, atol=1e-4)
    assert abs(duals.values.sum()) < 1e-12 and set(duals.sides) == {"R", "L", "E"} and duals.certified.any()
    residuals = targets()[1] - path.predict(X, step=7)
    assert np.all(residuals[duals.sides == "R"] < -0.69) and np.all(residuals[duals.sides == "L"] > 0.69)


def test_a_certificate_that_was_changed_is_rejected(runs):
    for change in ("between", "states"):
        header, steps = read_certificate(runs / "none" / NAME)
        entry = next(entry for entry in reversed(steps) if entry["between"].size)
        entry["between"] = entry["between"] * 0.5 if change == "between" else np.full_like(entry["between"], -1.5)
        found = screenpath.verify.check(header, steps, runs / "data")
        assert {step for step, _ in found.faults} == {entry["step"]}
    header, steps = read_certificate(runs / "none" / NAME)
    with pytest.raises(DataError, match="smoothing is not positive"):
        screenpath.verify.check({**header, "smoothing": 0.0}, steps, runs / "data")
    found = screenpath.verify.check({**header, "smoothing": 0.9}, steps, runs / "data")
    assert found.faults


def test_python_jobs_resume_and_weights_agree(runs, call):
    X, y = targets()
    path = screenpath.huber_path(X, y, betas=2, alphas=4, scale="standard", intercept="free", smoothing=0.7)
    assert path.intercepts.tolist() == screenpath.load_run(runs / "free").intercepts.tolist()
    own = ("huber", runs / "data", "--intercept", "free", *GRID)
    assert call(*own, "-o", "whole").code == 0 and call(*own, "--jobs", 2, "-o", "shared").code == 0
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    for name in ("shared", "part"):
        assert without_times(f"{name}/steps.csv") == without_times("whole/steps.csv")
    twice, how = (np.vstack([X, X[:20]]), np.append(y, y[:20])), {"alphas": [0.05], "betas": [0.02], "tol": 1e-10}
    one = screenpath.huber_path(*twice, **how, intercept="free")
    weights = np.where(np.arange(y.size) < 20, 2.0, 1.0)
    other = screenpath.huber_path(X, y, sample_weight=weights, **how, intercept="free")
    assert other[0].primal == pytest.approx(one[0].primal, rel=1e-9)
    np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-4)


def test_rows_on_disk_give_the_same_numbers(runs, call):
    assert call("convert", runs / "data", "shards", "--by", "columns").code == 0
    assert call("huber", "shards", *GRID, "-o", "disk").code == 0
    assert call("huber", runs / "data", *GRID, "-o", "memory").code == 0
    disk, memory = (read_csv(f"{name}/steps.csv") for name in ("disk", "memory"))
    for one, other in zip(disk, memory, strict=True):
        assert float(one["primal"]) == pytest.approx(float(other["primal"]), rel=2e-6)


def test_comparisons_and_folds(runs, call):
    own = ("--intercept", "free", "--rules", "none,iss,ifs,sifs+gap", "--repeats", 1, "--format", "csv", "-o", "t.csv")
    assert call("compare-rules", "huber", runs / "data", *own, *GRID).code == 0
    assert [row["certified"] for row in read_csv("t.csv")] == ["8"] * 4
    done = call("compare-rules", "huber", "--attack", 8, "--rules", "sifs+gap", "--format", "csv", "--quiet")
    assert done.code == 0 and ",0," in done.out
    done = call("cv", "huber", runs / "data", "--folds", 3, "--intercept", "free", *GRID, "-o", "cv")
    assert done.code == 0 and json.loads(Path("cv/cv.json").read_text())["score"] == "mae", done.err


@pytest.mark.parametrize("alpha", [0.1, 0.0])
def test_a_wide_loss_is_least_squares_and_a_narrow_one_least_deviations(alpha):
    X, y = targets()
    gamma, plain = 1e3 * np.abs(y).max(), {"intercept": "none", "tol": 1e-10}
    wide = screenpath.huber_path(X, y, smoothing=gamma, alphas=[alpha / gamma], betas=[0.05 / gamma], **plain)
    w = wide.coefficients[0]
    squares = 0.5 * np.mean((y - X @ w) ** 2)
    assert gamma * wide[0].primal == pytest.approx(squares + 0.5 * alpha * w @ w + 0.05 * np.abs(w).sum(), rel=1e-9)
    narrow = screenpath.huber_path(X, y, smoothing=1e-6, alphas=[alpha], betas=[0.05], **plain)
    w = narrow.coefficients[0]
    value = np.mean(np.abs(y - X @ w)) + 0.5 * alpha * w @ w + 0.05 * np.abs(w).sum()
    assert narrow[0].primal == pytest.approx(value, abs=1e-6)


def test_what_is_refused(runs, call, tmp_path):
    done = call("huber", runs / "data", "--smoothing", 0, "-o", "-")
    assert done.code == 2 and "--smoothing must be a positive number, not 0" in done.err
    done = call("huber", runs / "data", "--loss", "squared-hinge")
    assert done.code == 2 and "--loss is an option of sparse-svm, not of huber" in done.err
    X, y = targets()
    with pytest.raises(UsageError, match="SDCA is written for the hinge"):
        screenpath.huber_path(X, y, solver=SDCA, betas=2, alphas=2)
    with pytest.raises(DataError, match="centred features may need `intercept=free`"):
        screenpath.huber_path(X, y + 100.0, scale="standard", smoothing=0.1, intercept="none")
    with pytest.raises(DataError, match="squares of the targets exceed"):
        screenpath.huber_path(X, y * 1e200)
