"""``sparse-svm`` of several classes with every command, and certificates that ``verify`` checks."""

import json

import numpy as np
import pytest

import screenpath
import screenpath.verify.file
from tests.cli.conftest import libsvm_text, read_csv, without_times
from tests.sparse_problems import SDCA

GRID = ("--betas", 2, "--alphas", 4, "--beta-min-ratio", 0.2, "--scale", "standard", "--quiet")
KINDS = {
    "penalised": {"intercept": "penalised", "weights": "weights", "audit": True},
    "none": {"smoothing": 0.3},
    "exact": {"smoothing": 0.0},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("classes")
    y = np.concatenate([np.arange(48) % 3, np.zeros(12, dtype=int)])
    X = rng.normal(size=(60, 4)) + 3.0
    X[:, :3] += 2.0 * np.eye(3)[y]
    (folder / "three").write_text(libsvm_text(X, y + 4))
    (folder / "weights").write_text("".join(f"{1 + k % 3}\n" for k in range(60)))
    for name, how in KINDS.items():
        options = {**how, "weights": folder / "weights"} if "weights" in how else how
        screenpath.run(
            "sparse-svm", folder / "three", betas=2, alphas=4, beta_min_ratio=0.2, scale="standard", certificate=True,
            test=folder / "three", out=folder / name, **options,
        )  # fmt: skip
    return folder


def test_a_run_and_the_commands_on_it(runs, call):
    run = runs / "penalised"
    table, record = read_csv(run / "steps.csv"), json.loads((run / "run.json").read_text())
    found = [row for row in read_csv(run / "coefficients.csv") if row["feature"] == "0"]
    assert "x_i.(w_yi - w_c)" in record["objective"]
    assert len(found) == 3 * len(table) == 24 and [row["class"] for row in found[:3]] == ["4.0", "5.0", "6.0"]
    for row in table:
        assert row["status"] == "certified" and row["unsafe"] == "0" and "intercept_low" not in row
    for command in (("report", "-o", "page.html"), ("plot", "-o", "picture.svg")):
        done = call(command[0], run, *command[1:])
        assert done.code == 0, done.err
    shown = call("show", run, "--step", 7).out
    assert "intercept penalised" in shown and "4: " in shown and "6: " in shown
    done = call("predict", run, runs / "three", "-o", "-", "--step", 7)
    assert done.code == 0 and "accuracy" in done.err
    path = screenpath.load_run(run)
    assert path.intercepts.shape == (8, 3)
    model = call("export", run, "--step", 7, "--to", "liblinear", "-o", "-", "--quiet").out.splitlines()
    assert "bias 1" in model
    np.testing.assert_allclose([float(value) for value in model[-1].split()], path.intercepts[7])


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_of_several_classes_are_checked(runs, call, kind):
    done = call("verify", runs / kind)
    assert done.code == 0 and "8 of 8 steps proven" in done.out + done.err


def rejected(runs, kind, change) -> set:
    header, steps = screenpath.verify.file.read_certificate(runs / kind / "certificate.bin")
    entry = next(entry for entry in reversed(steps) if entry["between"].size > 2)
    change(entry)
    return {step for step, _ in screenpath.verify.check(header, steps, runs / "three").faults}, entry["step"]


def flow(entry):
    entry["between"] = entry["between"] * np.where(np.arange(entry["between"].size) == 0, 0.9, 1.0)


def lose(entry):
    entry["values"] = entry["values"] * np.where(np.arange(entry["values"].size) == 0, 0.5, 1.0)


def own(entry):
    """Give a sample a dual variable of its own class; the first one is of class 0."""
    entry["states"] = entry["states"].copy()
    entry["states"][0] |= 1


@pytest.mark.parametrize("kind", ["penalised", "none"])
@pytest.mark.parametrize("change", [flow, lose, own])
def test_a_certificate_that_was_changed_is_rejected(runs, kind, change):
    found, step = rejected(runs, kind, change)
    assert found == {step}


@pytest.mark.parametrize("column", ["value", "class"])
def test_coefficients_that_were_changed_are_found(runs, call, tmp_path, column):
    text = (runs / "penalised" / "coefficients.csv").read_text().splitlines()
    cells = text[-1].split(",")
    cells[3 if column == "value" else 1] = "0.125" if column == "value" else "4.0"
    kept = (runs / "penalised" / "coefficients.csv").read_bytes()
    try:
        (runs / "penalised" / "coefficients.csv").write_text("\n".join([*text[:-1], ",".join(cells)]) + "\n")
        assert call("verify", runs / "penalised").code == 1
    finally:
        (runs / "penalised" / "coefficients.csv").write_bytes(kept)


def test_labels_may_be_texts(runs, call, tmp_path):
    lines = [line.split() for line in (runs / "three").read_text().splitlines()]
    names = {"4": "red", "5": "light blue", "6": "7"}
    rows = [",".join([names[y], *(value.partition(":")[2] for value in values)]) for y, *values in lines]
    (tmp_path / "t.csv").write_text("\n".join(["y,a,b,c,d", *rows]) + "\n")
    for kind in ("csv", "npz"):
        own = ("--intercept", "penalised", "--certificate", "--coefficients", kind, "-o", kind)
        assert call("sparse-svm", "t.csv", "--target", "y", *own, *GRID).code == 0
        assert call("verify", kind).code == 0


def test_python_jobs_resume_and_weights_agree(runs, call):
    data = screenpath.read_libsvm(runs / "three")
    path = screenpath.sparse_svm_path(
        data.X, data.y, betas=2, alphas=4, beta_min_ratio=0.2, scale="standard", intercept="penalised"
    )
    own = ("sparse-svm", runs / "three", "--intercept", "penalised", *GRID)
    assert call(*own, "-o", "whole").code == 0 and call(*own, "--jobs", 2, "-o", "shared").code == 0
    assert screenpath.load_run("whole").intercepts.tolist() == path.intercepts.tolist()
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    for name in ("shared", "part"):
        assert without_times(f"{name}/steps.csv") == without_times("whole/steps.csv")
    twice = np.vstack([data.X.toarray(), data.X.toarray()[:20]]), np.concatenate([data.y, data.y[:20]])
    how = {"alphas": [0.05], "betas": [0.02], "intercept": "penalised", "tol": 1e-10}
    weights = np.where(np.arange(data.y.size) < 20, 2.0, 1.0)
    one = screenpath.sparse_svm_path(*twice, **how)
    other = screenpath.sparse_svm_path(data.X, data.y, sample_weight=weights, **how)
    assert other[0].primal == pytest.approx(one[0].primal, rel=1e-9)
    np.testing.assert_allclose(other.intercepts, one.intercepts, atol=1e-4)


def test_cross_validation_and_comparison(runs, call):
    own = ("sparse-svm", runs / "three", "--intercept", "penalised", *GRID)
    done = call("cv", *own, "--folds", 3, "-o", "cv")
    assert done.code == 0, done.err
    assert call("predict", "cv", runs / "three", "-o", "labels.txt").code == 0
    rules = ("--rules", "none,sifs+gap", "--repeats", 1, "--format", "csv", "-o", "table.csv")
    assert call("compare-rules", *own, *rules).code == 0
    assert [row["certified"] for row in read_csv("table.csv")] == ["8", "8"]


@pytest.mark.parametrize("how", [(), ("--smoothing", 0), ("--loss", "squared-hinge"), ("--solver", SDCA)])
def test_a_free_intercept_is_for_two_labels(runs, call, how):
    own = ("sparse-svm", runs / "three", *how, *GRID, "-o", "refused")
    found = call(*own, "--intercept", "free")
    assert found.code == 2 and "for two labels" in found.err and "--positive LABEL" in found.err
    advised = ("--intercept", "penalised"), ("--intercept", "free", "--positive", "4")
    for advice in advised[: 1 if SDCA in how else 2]:  # a solver of the papers has no free intercept at all
        assert call(*own, *advice, "--force").code == 0
