"""``sparse-svm --smoothing 0``: the exact hinge, its certificate, and the ways to a run."""

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import libsvm_text, read_csv, without_times
from tests.sparse_problems import SDCA
from tests.width import WIDE

GRID = ("--betas", 2, "--alphas", 4, "--smoothing", 0, "--quiet")


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(4)
    y = np.arange(70) % 2
    X = rng.normal(size=(70, 8)) + 0.8 * np.eye(8)[y]
    path = tmp_path / "two.libsvm"
    path.write_text(libsvm_text(X, y + 1.0))
    return path


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_a_run_its_certificate_and_what_goes_on_from_it(call, data, intercept):
    own = ("sparse-svm", data, *GRID, "--intercept", intercept)
    assert call(*own, "--certificate", "-o", "whole").code == 0
    assert call("verify", "whole").code == 0
    steps = read_csv("whole/steps.csv")
    loaded = screenpath.read_libsvm(data)
    path = screenpath.sparse_svm_path(loaded.X, loaded.y, betas=2, alphas=4, smoothing=0, intercept=intercept)
    assert [float(row["primal"]) for row in steps] == [step.primal for step in path.steps]
    signs, X = np.where(loaded.y > 1.5, 1.0, -1.0), loaded.X.toarray()
    for step, w, b in zip(path.steps, path.coefficients, path.intercepts, strict=True):
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        hinge = np.maximum(1.0 - signs * (X @ w + b), 0.0).mean()
        assert step.primal == pytest.approx(hinge + alpha / 2 * w @ w + beta * np.abs(w).sum(), rel=1e-12)
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    names = ["part"]
    if WIDE or intercept == "none":  # the processes are the same whatever they solve
        assert call(*own, "--jobs", 2, "-o", "shared").code == 0
        names.append("shared")
    for name in names:
        assert without_times(f"{name}/steps.csv") == without_times("whole/steps.csv")


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_a_certificate_of_another_hinge_or_another_point_is_rejected(call, data, intercept):
    assert call("sparse-svm", data, *GRID, "--intercept", intercept, "--certificate", "-o", "run").code == 0
    header, steps = screenpath.verify.file.read_certificate("run/certificate.bin")
    assert header["smoothing"] == 0.0 and not screenpath.verify.check(header, steps, data).faults
    entry = next(entry for entry in reversed(steps) if entry["between"].size)
    kept = entry["between"]
    entry["between"] = 0.9 * kept
    assert {step for step, _ in screenpath.verify.check(header, steps, data).faults} == {entry["step"]}
    entry["between"] = kept
    assert screenpath.verify.check(header | {"smoothing": 0.3}, steps, data).faults


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_audit_and_cross_validation(call, data, intercept):
    own = (data, *GRID, "--intercept", intercept)
    assert call("sparse-svm", *own, "--audit", "--rule", "sifs", "-o", "audited").code == 0
    assert {row["unsafe"] for row in read_csv("audited/steps.csv")} == {"0"}
    assert call("cv", "sparse-svm", *own, "--folds", 3, "-o", "cv").code == 0
    found = call("compare-rules", "sparse-svm", *own, "--rules", "none,iss,sifs+gap", "--repeats", 1)
    assert found.code == 0 and found.out.count("| warm |") == 3


def test_what_is_not_possible_is_refused_by_name(call, data):
    own = ("sparse-svm", data, "--smoothing", 0, "-o", "refused")
    found = call(*own, "--solver", SDCA, "--intercept", "none")
    assert found.code == 2 and "use --solver newton, or a --smoothing" in found.err, found.err
    found = call("sparse-svm", data, "--smoothing", 1)
    assert found.code == 2 and "--smoothing" in found.err and "0.0<=x<1.0" in found.err
