"""predict: what it writes is what the run's coefficients say, for every model."""

import numpy as np
import pytest

from tests.cli.conftest import clouds, libsvm_text, read_csv


def three_clouds(n=90, d=6, seed=3):
    """Return three classes, labels 2, 5 and 7."""
    rng = np.random.default_rng(seed)
    y = np.array([2.0, 5.0, 7.0])[np.arange(n) % 3]
    X = rng.normal(size=(n, d))
    for k, label in enumerate((2.0, 5.0, 7.0)):
        X[y == label, k] += 3.0
    return X, y


@pytest.fixture
def targets(tmp_path):
    """Path of a regression file."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    path = tmp_path / "targets.libsvm"
    path.write_text("".join(libsvm_text(x[None], [0.0]).replace("0 ", f"{t!r} ", 1)
                            for x, t in zip(X, (X @ [1.0, -2.0, 0.5, 0.0]).tolist(), strict=True)))  # fmt: skip
    return path


def file_coefficients(folder, step, d):
    """Return weights and intercept of a step by the words of the file format."""
    w = np.zeros(d + 1)
    for row in read_csv(folder / "coefficients.csv"):
        if int(row["step"]) == step:
            w[int(row["feature"])] = float(row["value"])
    return w[1:], w[0]


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard", "l2"])
def test_binary_labels_and_decisions_with_every_scaling(call, data, scale):
    options = ("--scale", scale, "--bias", 1, "--out", "run", "--test", data)
    assert call("svm", data, "--c-list", "0.1,1", *options).code == 0
    found = call("predict", "run", data, "--step", "C=1", "--decision")
    assert found.code == 0
    rows = [line.split(",") for line in found.out.splitlines()]
    assert rows[0] == ["label", "decision"]
    X, y = clouds()
    w, b = file_coefficients(data.parent / "run", 1, 5)
    if scale == "l2":
        X = X / np.linalg.norm(X, axis=1)[:, None]
    np.testing.assert_allclose([float(r[1]) for r in rows[1:]], X @ w + b, rtol=1e-10, atol=1e-10)
    labels = np.where(X @ w + b > 0, "2", "1").tolist()
    assert [r[0] for r in rows[1:]] == labels
    steps = read_csv(data.parent / "run" / "steps.csv")
    assert f"accuracy: {float(steps[1]['test_accuracy']):.6g} on 120 rows" in found.err


@pytest.mark.parametrize("model", ["lad", "quantile", "svr"])
def test_regression_values(call, targets, model):
    options = ("--out", "run", "--coefficients", "npz", "--test", targets)
    assert call(model, targets, "--c-list", "0.5,2", *options).code == 0
    found = call("predict", "run", targets, "--step", "best", "-o", "values.csv")
    assert found.code == 0 and found.out == ""
    values = [float(row["value"]) for row in read_csv(targets.parent / "values.csv")]
    X = np.random.default_rng(1).normal(size=(60, 4))
    error = np.abs(X @ [1.0, -2.0, 0.5, 0.0] - values).mean()
    best = min(float(row["test_mae"]) for row in read_csv(targets.parent / "run" / "steps.csv"))
    assert error == pytest.approx(best, rel=1e-9)
    assert f"mae: {best:.6g} on 60 rows" in found.err
    refused = call("predict", "run", targets, "--step", "0", "--decision")
    assert refused.code == 2 and "is a regression" in refused.err


def test_free_bias(call, data):
    assert call("l1svm", data, "--grid", 5, "--out", "run", "--test", data).code == 0
    found = call("predict", "run", data, "--step", 4, "--decision")
    w, b = file_coefficients(data.parent / "run", 4, 5)
    decisions = [float(line.split(",")[1]) for line in found.out.splitlines()[1:]]
    assert b != 0.0
    np.testing.assert_allclose(decisions, clouds()[0] @ w + b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_several_classes(call, tmp_path, kind):
    data = tmp_path / "three.libsvm"
    X, y = three_clouds()
    data.write_text(libsvm_text(X, y))
    grid = ("--betas", 2, "--alphas", 3, "--bias", 1)
    assert call("sparse-svm", data, *grid, "--out", "run", "--coefficients", kind, "--test", data).code == 0
    found = call("predict", "run", data, "--step", "best", "--decision")
    rows = [line.split(",") for line in found.out.splitlines()]
    assert rows[0] == ["label", "decision_2", "decision_5", "decision_7"]
    forms = np.array([[float(v) for v in row[1:]] for row in rows[1:]])
    predicted = np.array([float(row[0]) for row in rows[1:]])
    assert np.array_equal(predicted, np.array([2.0, 5.0, 7.0])[forms.argmax(axis=1)])
    best = max(float(row["test_accuracy"]) for row in read_csv(tmp_path / "run" / "steps.csv"))
    assert np.mean(predicted == y) == pytest.approx(best)
    assert best > 0.6


def test_positive_label_against_the_rest(call, tmp_path):
    data = tmp_path / "three.libsvm"
    data.write_text(libsvm_text(*three_clouds()))
    assert call("svm", data, "--positive", 5, "--c", 1, "--out", "run").code == 0
    found = call("predict", "run", data, "--step", 0)
    assert set(found.out.split()[1:]) == {"5", "rest"}
    assert "accuracy: " in found.err


def test_width_labels_and_first_index(call, data, tmp_path):
    assert call("svm", data, "--c", 1, "--out", "run").code == 0
    narrow, wide, zero = (tmp_path / name for name in ("narrow", "wide", "zero"))
    narrow.write_text("0 2:1.5\n")
    wide.write_text("0 2:1.5 9:3\n")
    zero.write_text("0 1:1.5 8:3\n")
    found = call("predict", "run", narrow, "--step", 0, "--decision")
    assert "no score" in found.err and "ignored" not in found.err
    other = call("predict", "run", wide, "--step", 0, "--decision")
    assert other.out == found.out and other.err.count("above 5") == 1
    assert call("predict", "run", zero, "--step", 0, "--decision", "--zero-based").out == found.out
    assert call("predict", "run", wide, "--step", 0, "--quiet").err == ""


def test_data_of_another_task(call, data, targets):
    assert call("svm", data, "--c", 1, "--out", "run").code == 0
    found = call("predict", "run", targets, "--step", 0, "-o", "out.csv")
    assert found.code == 1 and found.out == ""
    assert "classifier of the labels 1, 2" in found.err
    assert not (data.parent / "out.csv").exists()


def test_steps_that_do_not_exist(call, data):
    assert call("svm", data, "--c-list", "0.1,1", "--out", "run").code == 0
    for step, message in [
        ("best", "without --test"), ("7", "no solution of step 7"), ("C=0.5", "no step is within"),
        ("lambda=1", "write C=VALUE"), ("C=x", "not a number"), ("last", "not a step"),
    ]:  # fmt: skip
        found = call("predict", "run", data, "--step", step)
        assert found.code == 2 and message in found.err, (step, found.err)
    assert "step 0 (C = 0.1); step 1 (C = 1)" in call("predict", "run", data, "--step", "7").err
    assert call("predict", "run", data, "--step", 0, "-o", "no/such/out.csv").code == 2


def test_a_step_that_says_why_it_is_not_certified(call, data):
    """The words of the column `reason` are no damage to the run."""
    cut = ("--solver", "cd", "--max-epochs", "1", "--tol", "1e-9", "--grid", "2", "--quiet")
    assert call("svm", data, *cut, "-o", "r").code == 3
    assert read_csv("r/steps.csv")[1]["reason"]
    assert call("predict", "r", data, "--step", "1", "-o", "labels.csv").code == 0
    assert call("report", "r", "-o", "r.html").code == 0
