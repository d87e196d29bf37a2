"""show: a run in words, and its dual variables as a table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, clouds, libsvm_text, read_csv
from tests.conftest import HANGS


def test_a_run_with_scores(call, data):
    assert call("cv", "svm", data, "--grid", 4, "--folds", 3, "--test", data, "-o", "r", "--quiet").code == 0
    found = call("show", "r")
    assert found.code == 0 and found.err == ""
    best = next(row for row in read_csv("r/cv.csv") if row["best"] == "1")
    assert f"step {best['step']} (C = " in found.out
    flat = " ".join(found.out.split())
    assert f"accuracy {float(best['mean']):.6g} +- {float(best['se']):.2g} (standard error over 3 folds)" in flat
    assert "on 120 test rows; 95 % interval" in flat
    constant = "baseline 0.5 (always the most frequent label)"
    assert flat.split("scores")[1].split(" step ")[0].count(constant) == 2
    one_se = next(row["step"] for row in read_csv("r/cv.csv") if row["one_se"] == "1")
    assert f"chosen: step {best['step']} is the best, step {one_se} one-se" in flat
    assert call("show", "r", "--duals", "-", "--quiet").out.count("\n") == 121
    assert call("show", "r", "--step", "one-se", "--top", 1).out.count("\n") < found.out.count("\n")


def test_a_regression_has_a_baseline_and_r2(call, data):
    (found, by_mse) = (call("lad", data, "--grid", 4, "--test", data, "-o", "r"),
                       call("cv", "lad", data, "--grid", 4, "--folds", 3, "--score", "mse", "-o", "c"))  # fmt: skip
    assert "baseline on test data 0.5 (always the median" in " ".join(found.err.split())
    constants = json.loads(Path("c/cv.json").read_text())["baselines"]
    assert constants == pytest.approx([0.25] * 3, rel=0.02)
    said = f"baseline {sum(constants) / 3:.6g} (always the mean)"
    assert said in " ".join(by_mse.err.split()) and said in " ".join(call("show", "c").out.split())
    rows = read_csv("r/steps.csv")
    best = min(rows, key=lambda row: float(row["test_mae"]))
    flat = " ".join(call("show", "r", "--step", "best").out.split())
    assert f"r2 {float(best['test_r2']):.6g} on 120 test rows" in flat
    assert "baseline 0.5 (always the median)" in flat


@pytest.mark.parametrize(
    ("command", "said", "unsaid"),
    [
        ("sparse-svm --smoothing 0", "exact hinge, elastic net;l(t) = max(0, t);", "smoothed;gamma"),
        ("sparse-svm --smoothing 0.2", "smoothed hinge, elastic net;gamma = 0.2", "exact"),
        ("sparse-svm --loss squared-hinge", "squared hinge, elastic net;1/2 max(0, t)^2", "smoothed;gamma"),
        ("quantile --tau 0.9", "quantile regressions;tau = 0.9", "epsilon"),
        ("svr --epsilon 0.3", "epsilon-insensitive support vector regressions;epsilon = 0.3", "tau"),
        ("svm --kernel rbf", "kernel SVMs", "linear"),
    ],
)
def test_the_problem_that_was_solved(call, data, command, said, unsaid):
    size = ("--alphas", 2, "--betas", 1) if command.startswith("sparse") else ("--grid", 2)
    assert call(*command.split(), data, *size, "-o", "r", "--quiet").code == 0
    flat = " ".join(call("show", "r").out.split())
    assert all(text in flat for text in said.split(";")) and not any(text in flat for text in unsaid.split(";"))
    assert call("report", "r", "-o", "r.html", "--quiet").code == 0
    assert said.split(";")[0] in Path("r.html").read_text()


def test_what_is_no_run_folder_leads_to_one(call, data, tmp_path):
    assert call("svm", data, "--grid", 2, "-o", "runs/a", "-q").code == 0
    for words in (("show", "a"), ("show", "runs"), ("predict", "a", data)):
        found = call(*words)
        assert found.code == 1 and found.err.endswith("no run.json\n  did you mean runs/a?\n")
    found = call("predict", data, "runs/a")
    assert "is not a run folder" in found.err and found.err.endswith("wrote (--out DIR), before the data\n")
    assert call("svm", data, "--grid", 2, "-o", "runs/linear", "-q").code == 0
    assert "did you mean runs/linear?" in call("show", "runs/liner").err
    (tmp_path / "empty").mkdir()
    assert "give the folder that a path command wrote (--out DIR)" in call("show", "empty").err


def test_wrong_usage(call, data):
    assert call("svm", data, "--c-list", "0.1,1", "-o", "r", "--quiet").code == 0
    assert "no solution of step 9" in call("show", "r", "--step", 9).err
    assert "without --test" in call("show", "r", "--step", "best").err
    assert "--duals" in call("show", "r", "--training", data).err
    assert call("show", "nothing").code == 1
    found = call("show", "r", "--duals", data)
    assert found.code == 2 and "is read by this command" in found.err and found.out == ""
    assert call("show", "r", "--duals", "r/steps.csv", "--force").code == 2


def test_dual_variables(call, data):
    how = ("--c-list", "0.1,1", "--intercept", "none", "--certificate")
    assert call("svm", data, *how, "-o", "r", "--quiet").code == 0
    found = call("show", "r", "--step", 1, "--duals", "d.csv")
    assert found.code == 0 and "sides certified" in found.err and "certificate.bin" in found.err
    rows = read_csv("d.csv")
    X, y = clouds()
    assert [row["row"] for row in rows] == [str(k + 1) for k in range(120)]
    assert [float(row["label"]) for row in rows] == y.tolist()
    values = [float(row["value"]) for row in rows]
    weights = {int(row["feature"]): float(row["value"]) for row in read_csv("r/coefficients.csv") if row["step"] == "1"}
    for j, weight in weights.items():
        assert abs(sum(v * x for v, x in zip(values, X[:, j - 1], strict=True)) - weight) < 1e-3
    steps = read_csv("r/steps.csv")
    assert sum(row["side"] == "R" for row in rows) == int(steps[1]["n_R"])
    assert call("show", "r", "--step", 1, "--duals", "d.csv").code == 2
    assert call("show", "r", "--step", 1, "--duals", "d.csv", "--force", "--quiet").err == ""
    table = call("show", "r", "--step", 1, "--duals", "-")
    assert table.out == Path("d.csv").read_text()


def test_where_there_are_no_dual_variables(call, data):
    assert call("l1svm", data, "--grid", 3, "-o", "r", "--quiet").code == 0
    found = call("show", "r", "--duals", "d.csv")
    assert found.code == 2 and "svm, lad, quantile, svr, sparse-svm, huber, sparse-lad" in found.err
    assert "sparse-svr, not for l1svm" in found.err
    assert not os.path.exists("d.csv")


def test_plain_text_wherever_it_goes(call, tmp_path):
    data = tmp_path / "d\u00e9j\u00e0-\u4e2d.libsvm"
    data.write_text(libsvm_text(*clouds(40, 3)))
    assert call("svm", data, "--grid", 3, "-o", "r", "--quiet").code == 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "screenpath", "show", "r"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    assert "svm on d\\xe9j\\xe0-\\u4e2d.libsvm" in text and "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_training_data_that_moved_with_the_run_are_found(call, tmp_path):
    (tmp_path / "a").mkdir()
    os.chdir(tmp_path / "a")
    (tmp_path / "a" / "clouds").write_text(libsvm_text(*clouds()))
    assert call("svm", "clouds", "--c", 1, "--kernel", "rbf", "-o", "runs/r", "--quiet").code == 0
    os.chdir(tmp_path)
    os.rename("a", "b")
    found = call("predict", "b/runs/r", "b/clouds", "--step", 0)
    assert found.code == 0 and "accuracy" in found.err
    assert call("show", "b/runs/r", "--duals", "-").code == 0
