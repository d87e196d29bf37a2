"""The l1svm command and its comparison: files, options, exit codes."""

import csv
import io
import json

import numpy as np
import pytest

from screenpath import l1_svm_path
from tests.cli.conftest import clouds, read_csv, without_times


def test_grids_and_resume(call, data):
    assert call("l1svm", data, "--log", "--grid", 5, "--lambda-min-ratio", 0.01, "-o", "a", "--quiet").code == 0
    values = [float(row["lambda"]) for row in read_csv("a/steps.csv")]
    assert values[-1] == pytest.approx(0.01 * values[0])
    listed = ",".join(map(repr, values[:3]))
    assert call("l1svm", data, "--lambda-list", listed, "-o", "b", "--quiet").code == 0
    assert without_times("b/steps.csv") == without_times("a/steps.csv")[:3]
    assert call("l1svm", data, "--lambda-list", listed, "-o", "b", "--resume").code == 0


def test_weights_of_samples_classes_and_features(call, data, tmp_path):
    """The numbers of the function; a path, a cross-validation and the checker; resumed with the same weights alone."""
    X, y = clouds()
    rng = np.random.default_rng(2)
    s, p = rng.integers(0, 3, y.size) + 0.5, rng.uniform(0.5, 2.0, X.shape[1])
    for name, values in (("s", s), ("p", p)):
        (tmp_path / name).write_text("\n".join(map(repr, values.tolist())))
    options = ("--weights", "s", "--class-weight", "2=3", "--penalty-weights", "p", "--scale", "maxabs", "--quiet")
    grid = ("--grid", 5, "--certificate", "--audit")
    assert call("l1svm", data, *options, *grid, "-o", "r").code == 0
    path = l1_svm_path(X, y, grid=5, sample_weight=s, class_weight={2.0: 3.0}, penalty_weights=p, scale="maxabs")
    steps = read_csv("r/steps.csv")
    assert [row["primal"] for row in steps] == [repr(step.primal) for step in path.steps]
    assert {row["unsafe"] for row in steps} == {"0"} and "p_j" in json.loads((tmp_path / "r/run.json").read_text())[
        "objective"
    ]
    assert call("verify", "r").code == 0
    assert "weight in the penalty" in call("show", "r", "--step", 4).out
    found = call("l1svm", data, *options[:4], *options[6:], *grid, "-o", "r", "--resume")
    assert "the penalty weights have changed since" in found.err
    assert "one line a feature" in call("l1svm", data, "--penalty-weights", ".").err
    assert "the weights have changed since" in call("l1svm", data, *options[4:], *grid, "-o", "r", "--resume").err
    assert call("cv", "l1svm", data, *options, "--grid", 5, "--folds", 3, "-o", "cv").code == 0
    assert call("sparse-svm", data, *options[:4], "--betas", 2, "--alphas", 3, "--certificate", "--audit",
                "--quiet", "-o", "e").code == 0  # fmt: skip
    assert {row["unsafe"] for row in read_csv("e/steps.csv")} == {"0"}
    assert call("verify", "e").code == 0
    assert call("show", "e", "--step", 5, "--duals", "duals.csv").code == 0
    u = X.T @ [float(row["value"]) for row in read_csv("duals.csv")]
    at = read_csv("e/steps.csv")[5]
    w = np.sign(u) * np.maximum(np.abs(u) - float(at["beta"]), 0.0) / float(at["alpha"])
    found = np.zeros(X.shape[1] + 1)
    for row in read_csv("e/coefficients.csv"):
        found[int(row["feature"])] = float(row["value"]) if row["step"] == "5" else found[int(row["feature"])]
    np.testing.assert_allclose(found[1:], w, atol=5e-3 * np.abs(w).max())
    assert call("cv", "sparse-svm", data, *options[:4], "--betas", 2, "--alphas", 3, "--folds", 3, "--quiet", "-o",
                "f").code == 0  # fmt: skip


def test_each_class_against_the_rest(call, data):
    text = data.read_text().splitlines(True)
    data.write_text("".join(("3 " + line[2:]) if k % 3 == 0 else line for k, line in enumerate(text)))
    assert "or fit all: --one-vs-rest" in call("l1svm", data, "-o", "r").err
    assert call("l1svm", data, "--one-vs-rest", "--grid", 5, "--quiet", "-o", "r").code == 0
    assert json.loads((data.parent / "r/run.json").read_text())["labels"] == {"classes": [1.0, 2.0, 3.0]}
    found = call("predict", "r", data, "--step", 4, "--quiet").out.split()
    assert set(found[1:]) <= {"1", "2", "3"} and len(found) == len(text) + 1
    assert call("cv", "l1svm", data, "--one-vs-rest", "--grid", 4, "--folds", 3, "--quiet", "-o", "cv").code == 0
    assert "use one of the two" in call("l1svm", data, "--one-vs-rest", "--positive", 1).err


def test_compare(call, data):
    table = ("--repeats", 1, "--format", "csv")
    result = call("compare", "l1svm", data, "--grid", 5, *table)
    assert result.code == 0, result.err
    rows = list(csv.DictReader(io.StringIO(result.out)))
    names = ["org", "warm", "shr", "warm+shr", "scr", "warm+scr", "scr+shr", "warm+scr+gap", "default"]
    assert [row["configuration"] for row in rows] == names
    assert {row["certified"] for row in rows} == {"5"}
    result = call("compare", "l1svm", data, "--grid", 5, "--configurations", "scr", "--steps", *table)
    assert [row["step"] for row in csv.DictReader(io.StringIO(result.out))] == list("01234")
    assert call("compare", "l1svm", data, "--grid", 3, "--max-epochs", 1, "--configurations", "org", *table).code == 3
    assert call("compare", "l1svm", data, "--configurations", "fast").code == 2
