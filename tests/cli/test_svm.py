"""The svm command: its files, its options, its exit codes."""

import json
from datetime import datetime

import numpy as np
import pytest

from screenpath import svm_path
from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times

SHORT = ("--grid", "6", "--cmax", "0.5", "--quiet")
SWEEPS = ("--intercept", "none", "--solver", "cd")


def test_run_folder(call, data):
    result = call("svm", data, "--grid", 6, "--cmax", "0.5", "--scale", "standard")
    assert result.code == 0, result.err
    assert result.out == ""
    folder = data.parent / "runs" / "svm-clouds"
    assert sorted(p.name for p in folder.iterdir()) == ["coefficients.csv", "run.json", "steps.csv"]
    steps = read_csv(folder / "steps.csv")
    assert [row["status"] for row in steps] == ["certified"] * 6
    assert [int(row["step"]) for row in steps] == list(range(6))
    assert float(steps[0]["C"]) == 0.01 and float(steps[-1]["C"]) == 0.5
    assert all(float(row["gap"]) <= 1e-6 * float(row["primal"]) for row in steps)
    run = json.loads((folder / "run.json").read_text())
    assert run["schema_version"] == 2 and run["status"] == "complete"
    assert run["labels"] == {"+1": 2.0, "-1": 1.0}
    assert run["data"]["n_samples"] == 120 and run["data"]["n_features"] == 5
    assert len(run["data"]["sha256"]) == 64
    assert run["totals"]["certified"] == run["totals"]["n_steps"] == 6
    phases = ("reading", "compiling", "screening", "solving", "certifying", "writing")
    assert tuple(run["totals"]["seconds"]) == phases
    assert len(run["preparation"]["scale"]) == 5
    assert run["grid"] == {"points": 6, "first": {"C": 0.01}, "last": {"C": 0.5}}
    assert run["working_directory"] == str(data.parent) and run["machine"]["processors"] >= 1
    assert datetime.fromisoformat(run["started"]) <= datetime.fromisoformat(run["ended"])
    assert "\ntotal " in result.err
    assert "certified" in result.err and "6 of 6" in result.err


def test_no_coefficients(call, data):
    assert call("svm", data, *SHORT, "--coefficients", "none", "-o", "r").code == 0
    assert not (data.parent / "r" / "coefficients.csv").exists()


def test_json_table_holds_the_same_numbers(call, data):
    assert call("svm", data, *SHORT, "-o", "a").code == 0
    assert call("svm", data, *SHORT, "-o", "b", "--format", "json").code == 0
    rows = without_times("b/steps.json")
    for row, other in zip(rows, without_times("a/steps.csv"), strict=True):
        assert {name: str(value) for name, value in row.items()} == other


def test_streams_csv_and_json_lines(call, data):
    result = call("svm", data, *SHORT, "-o", "-")
    assert result.code == 0 and result.err == ""
    lines = result.out.splitlines()
    assert len(lines) == 7 and lines[0].startswith("step,C,status,primal")
    result = call("svm", data, *SHORT, "-o", "-", "--format", "json")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["step"] for row in rows] == list(range(6))
    assert not (data.parent / "runs").exists()


def test_no_nan_in_json(call, tmp_path):
    """A single row and features that are all zero leave ratios without a value, but never nan."""
    (tmp_path / "zero.libsvm").write_text("1\n2\n1 1:0\n")
    result = call("svm", "zero.libsvm", "--grid", 2, "-o", "-", "--format", "json", "--quiet", "--n-features", 2)
    assert result.code == 0, result.err
    assert "NaN" not in result.out and "Infinity" not in result.out
    assert len([json.loads(line) for line in result.out.splitlines()]) == 2


def test_grid_list(call, data):
    result = call("svm", data, "--c-list", "0.5,0.1,0.2", "-o", "-", "--quiet")
    assert [line.split(",")[1] for line in result.out.splitlines()[1:]] == ["0.1", "0.2", "0.5"]


def column(result, name):
    header, *lines = result.out.splitlines()
    where = header.split(",").index(name)
    return [line.split(",")[where] for line in lines]


def test_epoch_limit_leaves_steps_uncertified(call, data):
    result = call("svm", data, *SHORT, "-o", "-", "--max-epochs", 1, "--tol", "1e-9", *SWEEPS)
    assert result.code == 3
    assert "budget" in column(result, "status")
    assert len(column(result, "status")) == 6


def test_storage_dtype_and_threads(call, data):
    runs = {}
    for name, more in {
        "dense": ["--storage", "dense"], "sparse": ["--storage", "sparse"], "float32": ["--dtype", "float32"],
        "threads": ["--threads", "2"],
    }.items():  # fmt: skip
        assert call("svm", data, *SHORT, *more, "-o", name).code == 0
        runs[name] = json.loads((data.parent / name / "run.json").read_text())["data"]
    assert runs["dense"]["storage"] == "dense" and runs["sparse"]["storage"] == "sparse"
    assert runs["float32"]["bytes"] * 2 == runs["dense"]["bytes"]
    assert without_times("threads/steps.csv") == without_times("dense/steps.csv")
    primal = [[float(row["primal"]) for row in read_csv(f"{name}/steps.csv")] for name in runs]
    np.testing.assert_allclose(primal, primal[:1] * 4, rtol=2e-6)


def test_standard_scaling_of_sparse_rows_names_the_way_out(call, data):
    result = call("svm", data, *SHORT, "--storage", "sparse", "--scale", "standard")
    assert result.code == 2
    assert "maxabs" in result.err and "--storage dense" in result.err


def test_positive_label(call, tmp_path):
    X, _ = clouds()
    y = np.arange(120) % 3
    (tmp_path / "three.libsvm").write_text(libsvm_text(X, y))
    result = call("svm", "three.libsvm", *SHORT)
    assert result.code == 1 and "Traceback" not in result.err
    assert call("svm", "three.libsvm", *SHORT, "--positive", 2).code == 0
    assert json.loads((tmp_path / "runs/svm-three/run.json").read_text())["labels"] == {"+1": 2.0, "-1": "rest"}
    result = call("svm", "three.libsvm", *SHORT, "--positive", 7, "-o", "other")
    assert result.code == 1 and "not among the labels" in result.err


def test_n_features_and_zero_based(call, data, tmp_path):
    assert call("svm", data, *SHORT, "--n-features", 9, "-o", "wide").code == 0
    assert json.loads((tmp_path / "wide/run.json").read_text())["data"]["n_features"] == 9
    X, y = clouds()
    (tmp_path / "zero.libsvm").write_text(libsvm_text(np.roll(X, 0), y).replace(" 1:", " 0:"))
    assert call("svm", "zero.libsvm", *SHORT).code == 1
    assert call("svm", "zero.libsvm", *SHORT, "--zero-based", "-o", "zero").code == 0


def test_accuracy_on_test_data(call, data, tmp_path):
    X, y = clouds(seed=1)
    wide = np.column_stack([X, np.ones(120)])  # a feature that the training data lacks
    (tmp_path / "test.libsvm").write_text(libsvm_text(wide, y))
    for scale in ("standard", "maxabs", "l2"):
        for storage in ("dense", "sparse"):
            if (scale, storage) == ("standard", "sparse"):
                continue
            more = ("--scale", scale, "--storage", storage, "--bias", 1)
            result = call("svm", data, *SHORT, *more, "--test", "test.libsvm", "-o", "-")
            assert result.code == 0, result.err
            path = svm_path(*clouds(), grid=6, cmax=0.5, scale=scale, storage=storage, bias=1.0)
            Z = X / np.linalg.norm(X, axis=1)[:, None] if scale == "l2" else X
            products = path.coefficients @ Z.T + path.intercepts[:, None]
            expected = ((products > 0) == (y == 2)).mean(axis=1)
            assert [float(v) for v in column(result, "test_accuracy")] == expected.tolist()


def test_test_data_with_a_strange_label(call, data, tmp_path):
    (tmp_path / "test.libsvm").write_text("1 1:1\n5 1:2\n")
    result = call("svm", data, *SHORT, "--test", "test.libsvm")
    assert result.code == 1 and "label 5" in result.err and "\n  give test data of the same task" in result.err
    assert call("sparse-svm", data, "--betas", 1, "--alphas", 1, "--test", "test.libsvm").err.count("same task") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--c-list", "1,2", "--grid", "5"], "--c-list is the whole grid"),
        (["--c-list", "1,x"], "'x' is not a number"), (["--grid", "0"], "--grid"),
        (["--grid", "1e3"], "'1e3' is not a whole number"),
        (["--cmin", "2", "--cmax", "1"], "lower end"), (["--cmin", "-1"], "must be a positive number, not '-1'"),
        (["--cmin", "1", "--cmax", "1"], "--c-list 1"),
        (["--rule", "magic"], "unknown rule 'magic'"), (["--rule", "gap+gap"], "unknown rule 'gap+gap'"),
        (["--solver", "magic"], "unknown solver 'magic'"), (["--tol", "0"], "--tol"),
        (["--tol", "nan"], "'nan' is not a number"), (["--bias", "nan"], "'nan' is not a number"),
        (["--resume", "--force"], "use one of them"), (["--quiet", "--progress"], "use one of them"),
        (["-o", "-", "--resume"], "needs a run folder"), (["-o", "-", "--coefficients", "csv"], "step table only"),
        (["--no-such-option"], "No such option"), (["--gamma", "1/d"], "needs a kernel"),
        (["--kernel", "linear", "--gamma", "1"], "has no gamma"),
        (["--kernel", "rbf", "--degree", "2"], "has no degree"),
        (["--kernel", "rbf", "--gamma", "x"], "gamma must be"), (["--kernel", "rbf", "--rule", "sieve"], "no rule"),
        (["--kernel", "rbf", "--solver", "cd"], "no solver"), (["--kernel", "rbf", "--chunk", "3"], "--chunk"),
        (["--kernel", "rbf", "--scheduler", "tcp://a:1"], "cannot use a cluster"),
        (["--rule", "dvi", "--chunk", "3"], "ssnsv, essnsv"), (["--chunk-form", "s"], "--chunk"),
        (["--rule", "none", "--chunk", "3"], "ssnsv, essnsv"),
    ],
)  # fmt: skip
def test_wrong_usage(call, data, arguments, message):
    result = call("svm", data, *arguments)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""
    assert not (data.parent / "runs").exists()


def test_missing_file_and_folder_in_the_way(call, data):
    result = call("svm", "nowhere.libsvm")
    assert result.code == 1 and "nowhere.libsvm" in result.err and result.err.startswith("error:")
    result = call("svm", data, *SHORT, "-o", data)
    assert result.code == 1 and "not a folder" in result.err


def test_quiet_and_progress_lines(call, data):
    assert call("svm", data, "--grid", 4, "--quiet", "-o", "a").err == ""
    assert "svm: step" not in call("svm", data, "--grid", 4, "-o", "d").err  # it is done at once
    lines = call("svm", data, "--grid", 4, "-o", "b", "--progress").err
    for step in range(4):  # as the files and --step have them
        assert f"svm: step {step} (C = " in lines and f", {step + 1} of 4 done, relative gap" in lines
    silent = call("svm", data, "--grid", 4, "-o", "c", "--no-progress").err
    assert "svm: step" not in silent and "certified" in silent
