"""The l1svm command and its comparison: files, options, exit codes."""

import csv
import io
import json

import numpy as np
import pytest

from screenpath import l1_svm_path
from tests.cli.conftest import clouds, read_csv, without_times


def test_run_folder_holds_the_numbers_of_the_api(call, data):
    result = call("l1svm", data, "--grid", 6, "--scale", "standard", "--audit", "--quiet")
    assert result.code == 0, result.err
    folder = data.parent / "runs" / "l1svm-clouds"
    steps = read_csv(folder / "steps.csv")
    X, y = clouds()
    path = l1_svm_path(X, y, grid=6, scale="standard")
    assert [float(row["lambda"]) for row in steps] == [step.parameters["lambda"] for step in path.steps]
    assert [row["primal"] for row in steps] == [repr(step.primal) for step in path.steps]
    assert {row["unsafe"] for row in steps} == {"0"}
    found = np.zeros((6, 6))
    for row in read_csv(folder / "coefficients.csv"):
        found[int(row["step"]), int(row["feature"])] = float(row["value"])
    np.testing.assert_array_equal(found, np.column_stack([path.intercepts, path.coefficients]))
    assert json.loads((folder / "run.json").read_text())["preparation"]["bias"] == 1.0


def test_test_scores_use_the_free_bias(call, data):
    assert call("l1svm", data, "--grid", 4, "--test", data, "-o", "r", "--quiet").code == 0
    X, y = clouds()
    path = l1_svm_path(X, y, grid=4)
    for row, w, b in zip(read_csv("r/steps.csv"), path.coefficients, path.intercepts, strict=True):
        assert float(row["test_accuracy"]) == np.mean((X @ w + b > 0) == (y == 2.0))


def test_grids_and_resume(call, data):
    assert call("l1svm", data, "--log", "--grid", 5, "--lambda-min-ratio", 0.01, "-o", "a", "--quiet").code == 0
    values = [float(row["lambda"]) for row in read_csv("a/steps.csv")]
    assert values[-1] == pytest.approx(0.01 * values[0])
    listed = ",".join(map(repr, values[:3]))
    assert call("l1svm", data, "--lambda-list", listed, "-o", "b", "--quiet").code == 0
    assert without_times("b/steps.csv") == without_times("a/steps.csv")[:3]
    assert call("l1svm", data, "--lambda-list", listed, "-o", "b", "--resume").code == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--bias", "1"), ("--lambda-min-ratio", "0.1"), ("--lambda-list", "1,2", "--grid", "3"), ("--rule", "dvi"),
        ("--solver", "sdca"), ("--seed", "1"),
    ],
)  # fmt: skip
def test_wrong_usage(call, data, options):
    result = call("l1svm", data, *options)
    assert result.code == 2 and "error:" in result.err


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
