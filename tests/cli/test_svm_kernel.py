"""svm --kernel: its files, its options, what predict makes of it, resuming."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from screenpath import kernel_svm_path
from tests.cli.conftest import clouds, libsvm_text, read_csv

GRID = ("--grid", "8", "--cmax", "100", "--quiet")


def coefficients(folder, step, n=120):
    found = np.zeros(n)
    for row in read_csv(Path(folder) / "coefficients.csv"):
        if int(row["step"]) == step:
            found[int(row["sample"]) - 1] = float(row["value"])
    return found


@pytest.mark.parametrize("scale", ["none", "standard", "l2"])
def test_run_folder_api_and_predict_agree(call, data, scale):
    options = (*GRID, "--kernel", "rbf", "--gamma", "0.2", "--bias", "2", "--scale", scale, "--test", data)
    assert call("svm", data, *options, "-o", "run").code == 0
    X, y = clouds()
    path = kernel_svm_path(X, y, gamma=0.2, bias=2.0, scale=scale, grid=8, cmax=100.0)
    steps = read_csv("run/steps.csv")
    for k, row in enumerate(steps):
        np.testing.assert_array_equal(coefficients("run", k), path.dual_coefficients[k])
        assert int(row["nnz_w"]) == path.support(k).size
    record = json.loads(Path("run/run.json").read_text())
    assert record["kernel"]["kernel"] == "rbf" and record["kernel"]["gamma"] == 0.2
    assert record["kernel"]["constant"] == 4.0 and record["kernel"]["rows_kept"] == 120

    (data.parent / "new.libsvm").write_text(libsvm_text(*clouds(n=40, seed=5)))
    found = call("predict", "run", "new.libsvm", "--step", "7", "--decision")
    assert found.code == 0, found.err
    values = np.array([float(line.split(",")[1]) for line in found.out.splitlines()[1:]])
    Z, _ = clouds(n=40, seed=5)
    np.testing.assert_allclose(values, path.decision_function(Z), rtol=1e-9, atol=1e-9)
    if scale == "none":
        K = rbf_kernel(Z, X, gamma=0.2) + 4.0
        np.testing.assert_allclose(values, K @ path.dual_coefficients[7], rtol=1e-9, atol=1e-9)
    labels = [line.split(",")[0] for line in found.out.splitlines()[1:]]
    assert labels == np.where(values > 0.0, "2", "1").tolist()
    score = call("predict", "run", data, "--step", "7")
    assert f"accuracy: {float(steps[7]['test_accuracy']):.6g} on 120 rows" in score.err


def test_predict_needs_the_training_data(call, data):
    assert call("svm", data, *GRID, "--kernel", "linear", "-o", "run", "--coefficients", "npz").code == 0
    before = call("predict", "run", data, "--step", "3", "--decision")
    data.rename("moved.libsvm")
    lost = call("predict", "run", "moved.libsvm", "--step", "3")
    assert lost.code == 1 and "rows of the training data" in lost.err and "--training" in lost.err
    found = call("predict", "run", "moved.libsvm", "--step", "3", "--decision", "--training", "moved.libsvm")
    assert found.code == 0 and found.out == before.out
    Path("other.libsvm").write_text(libsvm_text(*clouds(seed=9)))
    wrong = call("predict", "run", "moved.libsvm", "--step", "3", "--training", "other.libsvm")
    assert wrong.code == 1 and "not the training data" in wrong.err
    export = call("export", "run", "--step", "3", "--to", "liblinear", "-o", "-")
    assert export.code == 2 and "kernel run" in export.err


def test_memory_is_told_and_refused(call, data):
    told = call("svm", data, "--grid", 3, "--kernel", "rbf", "-o", "r")
    assert told.code == 0 and "kernel of 120 rows" in told.err and "allowed" in told.err
    refused = call("svm", data, *GRID, "--kernel", "rbf", "--max-memory", "150K", "-o", "s")
    assert refused.code == 1 and "--max-memory" in refused.err
    assert call("svm", data, *GRID, "--kernel", "rbf", "--dtype", "float32", "-o", "float32").code == 0
    for a, b in zip(read_csv("r/steps.csv"), read_csv("float32/steps.csv")[::3], strict=False):
        assert a["C"] != b["C"] or float(a["primal"]) == pytest.approx(float(b["primal"]), rel=1e-6)


def test_compare_has_the_six_variants(call, data):
    result = call(
        "compare", "svm", data, "--kernel", "rbf", "--rules", "none,bt1,it", "--shrinking", "both", "--eps-path",
        "1e-2", "--cmax", "10", "--repeats", "1", "--format", "json", "--quiet",
    )  # fmt: skip
    assert result.code == 0, result.err
    rows = json.loads(result.out)
    assert [(row["rule"], row["shrinking"]) for row in rows] == [
        (rule, shrinking) for shrinking in (True, False) for rule in ("none", "bt1", "it")
    ]
    assert len({row["points"] for row in rows}) == 1 and all(row["certified"] == row["points"] for row in rows)
    assert rows[2]["mean_rejection"] >= rows[1]["mean_rejection"] > rows[0]["mean_rejection"] == 0.0
    assert call("compare", "l1svm", data, "--kernel", "rbf").code == 2


@pytest.mark.parametrize("command", ["svm", "cv svm"])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_kept_rows_take_the_place_of_the_training_file(call, data, tmp_path, command, scale):
    """predict and export give the same bytes without the training file; a run that keeps nothing asks for it."""
    options = ("--kernel", "rbf", "--gamma", 0.2, "--scale", scale, "--c-list", "0.1,1")
    for name, more in (("keeps", ("--keep-rows",)), ("asks", ())):
        assert call(*command.split(), data, *options, *more, "-o", name).code == 0
    (tmp_path / "new").write_text(data.read_text())
    words = ("new", "--step", 1, "--decision")
    expected = call("predict", "asks", *words).out
    assert call("export", "asks", "--step", 1, "--to", "npz", "-o", "a.npz").code == 0
    data.unlink()
    assert call("predict", "keeps", *words).out == expected != ""
    assert call("export", "keeps", "--step", 1, "--to", "npz", "-o", "b.npz").code == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert call("predict", "asks", *words).code == 1
    file = tmp_path / "keeps/rows.npz"
    file.write_bytes(file.read_bytes()[:-40])
    assert call("predict", "keeps", *words).code == 1


def test_rows_that_cannot_be_kept(call, data):
    assert "is for kernels" in call("svm", data, *GRID, "--keep-rows").err
    assert "run folder" in call("svm", data, *GRID, "--kernel", "rbf", "--keep-rows", "-o", "-").err
