"""predict: what it writes is what the run's coefficients say, for every model."""

import re

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import clouds, libsvm_text, read_csv


def three_clouds(n=90, d=6, seed=3):
    rng = np.random.default_rng(seed)
    y = np.array([2.0, 5.0, 7.0])[np.arange(n) % 3]
    X = rng.normal(size=(n, d))
    for k, label in enumerate((2.0, 5.0, 7.0)):
        X[y == label, k] += 3.0
    return X, y


@pytest.fixture
def targets(tmp_path):
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
    column = "test_pinball" if model == "quantile" else "test_mae"
    rows = read_csv(targets.parent / "run" / "steps.csv")
    best = float(min(rows, key=lambda row: float(row[column]))["test_mae"])
    assert error == pytest.approx(best, rel=1e-9)
    # Targets without noise leave errors near rounding, of which a sum's order changes the digits.
    told = re.search(r"mae: (\S+), r2: \S+ on 60 rows", found.err)
    assert told and float(told[1]) == pytest.approx(best, rel=1e-5, abs=1e-14)
    refused = call("predict", "run", targets, "--step", "0", "--decision")
    assert refused.code == 2 and "is a regression" in refused.err


def test_a_quantile_is_scored_by_its_own_loss(call, targets):
    """Test data had the absolute error alone, beside the pinball loss of cross-validation."""
    options = ("--tau", 0.9, "--c-list", "0.01,2", "--test", targets, "-q")
    assert call("quantile", targets, *options, "-o", "r").code == 0
    found = call("predict", "r", targets, "--step", 1, "-o", "values.csv")
    y = np.array([float(line.split()[0]) for line in targets.read_text().splitlines()])
    t = y - [float(row["value"]) for row in read_csv(targets.parent / "values.csv")]
    row = read_csv(targets.parent / "r" / "steps.csv")[1]
    pinball = np.maximum(-0.1 * t, 0.9 * t).mean()
    assert float(row["test_pinball"]) == pytest.approx(pinball, rel=1e-9)
    assert float(row["test_mae"]) == pytest.approx(np.abs(t).mean(), rel=1e-9)
    assert f"pinball: {pinball:.6g}, mae: {np.abs(t).mean():.6g}, r2: 1 on 60 rows" in found.err
    assert call("cv", "quantile", targets, *options, "--folds", 3, "-o", "c").code == 0
    shown = call("show", "c").out
    assert "pinball" in shown and "mae" in shown
    said = call("quantile", targets, "--tau", 0.9, "--c-list", "0.01,2", "--test", targets, "-o", "s").err
    assert "best on test data" in said and "pinball" in said and "mae" not in said


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
    path = screenpath.load_run("run")
    assert path.labels == ("rest", "5") and path.predict(three_clouds()[0]).tolist() == found.out.split()[1:]


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
        ("best", "without --test"), ("7", "no solution of step 7"), ("C=1.5", "no step is within"),
        ("C=0,1", "write C=0.1; "), ("lambda=1", "write C=VALUE"), ("C=x", "not a number"), ("last", "not a step"),
    ]:  # fmt: skip
        found = call("predict", "run", data, "--step", step)
        assert found.code == 2 and message in found.err, (step, found.err)
    assert "step 0 (C = 0.1); step 1 (C = 1)" in call("predict", "run", data, "--step", "7").err
    assert call("predict", "run", data, "--step", 0, "-o", "no/such/out.csv").code == 2


def test_what_may_be_typed_for_a_step_is_what_the_run_has(call, data):
    assert call("sparse-svm", data, "--betas", 1, "--alphas", 2, "--test", data, "-o", "scored").code == 0
    assert call("svm", data, "--grid", 2, "-o", "plain").code == 0
    done = call("predict", "scored", data, "--step", "last")
    assert "best, one-se, a number, or alpha=VALUE,beta=VALUE" in done.err
    assert "use --step best, or compute it with screenpath cv" in call("predict", "scored", data, "--step=one-se").err
    done = call("predict", "plain", data, "--step", "one-se")
    assert "compute it with screenpath cv" in done.err and "--step best" not in done.err


def test_a_c_between_steps(call, data):
    """What rounds to a step is that step; any other C of the range is interpolated, or solved if so asked."""
    assert call("svm", data, "--grid", "20", "--out", "run").code == 0
    labels = call("predict", "run", data, "--step", "C=0.1", "--decision")
    assert "svm: C = 0.1, between steps 6 and 7, relative gap at most " in labels.err and "accuracy" in labels.err
    exact = call("predict", "run", data, "--step", "C=0.1", "--exact", "--decision")
    assert "svm: C = 0.1, solved, relative gap at most " in exact.err
    forms = [np.array([float(line.split(",")[1]) for line in one.out.split()[1:]]) for one in (labels, exact)]
    assert 0.0 < np.abs(forms[0] - forms[1]).max() < 0.1 * np.abs(forms[1]).max()
    assert "step 5 (C = 0.0615848), certified" in call("predict", "run", data, "--step", "C=0.062").err
    for options, message in (
        (("C=11",), "no step is within 0.001 of C=11"), (("C=10", "--exact"), "is solved already"),
        (("C=-1", "--exact"), "C must be positive"), (("C=0.1", "--training", data), "needs no training data"),
    ):  # fmt: skip
        found = call("predict", "run", data, "--step", *options)
        assert found.code == 2 and message in found.err, (options, found.err)
    assert call("predict", "run", data, "--step", "C=20", "--exact").code == 0


def test_a_step_that_says_why_it_is_not_certified(call, data):
    """The words of the column `reason` are no damage to the run."""
    cut = ("--intercept", "none", "--solver", "cd", "--max-epochs", "1", "--tol", "1e-9", "--grid", "2", "--quiet")
    assert call("svm", data, *cut, "-o", "r").code == 3
    assert read_csv("r/steps.csv")[1]["reason"]
    assert call("predict", "r", data, "--step", "1", "-o", "labels.csv").code == 0
    assert call("report", "r", "-o", "r.html").code == 0


def test_a_run_of_cv_predicts_by_its_best_step(call, data):
    assert call("cv", "svm", data, "--grid", 4, "--folds", 3, "-o", "r", "-q").code == 0
    found = call("predict", "r", data)
    assert found.code == 0 and found.out == call("predict", "r", data, "--step", "best").out
    assert "note:" not in found.err
    assert call("export", "r", "--to", "json", "-o", "-").code == 0
    assert call("svm", data, "--c", 1, "-o", "one", "-q").code == 0
    assert "step 0 (C = 1)" in call("predict", "one", data).err  # there is only one
    assert call("svm", data, "--c-list", "0.1,1", "-o", "two", "-q").code == 0
    assert call("svm", data, "--c-list", "0.1,1", "--test", data, "-o", "scored", "-q").code == 0
    for command in (("predict", "scored", data), ("export", "scored", "--to", "json", "-o", "-")):
        asked = call(*command)
        assert asked.code == 2 and "name one with --step: best is the best by test_accuracy" in asked.err
    asked = call("predict", "two", data)
    assert "a run of screenpath cv has a best one" in asked.err
    assert asked.code == 2 and "which step of two? It has step 0 (C = 0.1) to step 1 (C = 1)" in asked.err


def test_a_step_chosen_by_test_data_says_so(call, data):
    assert call("svm", data, "--c-list", "0.1,1", "--test", data, "-o", "r", "-q").code == 0
    for command in (["predict", "r", data], ["export", "r", "--to", "json", "-o", "-"], ["show", "r"]):
        assert call(*command, "--step", "best").err.count("note: this step was chosen on the --test data") == 1
        assert "note:" not in call(*command, "--step", 1).err
        assert "note:" not in call(*command, "--step", "best", "--quiet").err
    assert "note: " in call("show", "r").err


def test_labels_that_are_not_known(call, tmp_path):
    """0 is a label here: it must not stand for an unknown one."""
    data = tmp_path / "clouds"
    lines = libsvm_text(*clouds(labels=(0.0, 1.0))).splitlines()
    data.write_text("\n".join(lines) + "\n")
    assert call("svm", data, "--c", 1, "-o", "r", "-q").code == 0
    whole = call("predict", "r", data)
    assert "accuracy: " in whole.err and "on 120 rows" in whole.err
    features = [line.split(" ", 1)[1] for line in lines]
    some = tmp_path / "some"
    some.write_text("\n".join(["  ? " + features[0], "?\t" + features[1], *lines[2:]]) + "\n")
    found = call("predict", "r", some)
    assert found.out == whole.out and "on 118 rows" in found.err
    for text in ("? ", "", "7 "):
        (tmp_path / "none").write_text("\ufeff" + "\n".join(text + line for line in features))
        found = call("predict", "r", "none", "--no-labels")
        assert found.code == 0 and found.out == whole.out and "accuracy" not in found.err, text
    (tmp_path / "none").write_text("\n".join("? " + line for line in features))
    assert "no score: the data has no labels" in call("predict", "r", "none").err
    assert call("predict", "r", "none", "--no-labels", "--zero-based").code == 0
    wrong = call("svm", "none", "-o", "x")
    assert wrong.code == 1 and "?" in wrong.err
    (tmp_path / "none").write_text("\n".join(features))
    assert "--no-labels" in call("predict", "r", "none").err
    (tmp_path / "none").write_text("? 1:1\n? 2:x\n")
    assert "none, line 2" in call("predict", "r", "none").err


@pytest.mark.parametrize("kind", ["libsvm", "csv"])
def test_rows_with_the_label_0_are_said_where_it_is_none_of_the_run(call, tmp_path, kind):
    """They may be a class that the file calls 0 and the run -1: the score is that of the others alone."""
    X, y = clouds(labels=(-1.0, 1.0))
    (tmp_path / "train").write_text(libsvm_text(X, y))
    assert call("svm", "train", "--c", 1, "-o", "r", "-q").code == 0
    assert call("svm", "train", "--c", 0.1, "-o", "s", "-q").code == 0
    new = np.where(y > 0, 1.0, 0.0)
    new[0] = 1.0
    file = tmp_path / f"new.{kind}"
    table = ["target," + ",".join(f"f{j}" for j in range(X.shape[1]))]
    table += [",".join(map(repr, row)) for row in np.column_stack([new, X]).tolist()]
    file.write_text(libsvm_text(X, new) if kind == "libsvm" else "\n".join(table) + "\n")
    zeros = int((new == 0.0).sum())
    found = call("predict", "r", file, *(["--target", "target"] if kind == "csv" else []))
    said = [line for line in found.err.splitlines() if "not scored" in line]
    assert found.code == 0 and len(said) == 1 and f"on {120 - zeros} rows" in found.err
    assert said[0].startswith(f"{zeros} of 120 rows are not scored: the label 0 is none of the run (-1, 1)")
    assert "not scored" not in call("predict", "r", "train").err
    assert "not scored" not in call("predict", "r", file, "--no-labels").err
    if kind == "libsvm":
        compared = " ".join(call("runs", "r", "s", "--test", file, "--step", 0).out.split())
        assert compared.count(f"{zeros} of 120 rows are not scored") == 1
        file.write_text(libsvm_text(X, 0.0 * y))
        assert "not scored" not in call("predict", "r", file).err  # as files without labels have it


def test_targets_that_are_not_known(call, targets, tmp_path):
    assert call("lad", targets, "--c", 1, "-o", "r", "-q").code == 0
    lines = targets.read_text().splitlines()
    some = tmp_path / "some"
    some.write_text("\n".join(["? " + lines[0].split(" ", 1)[1], *lines[1:]]) + "\n")
    found = call("predict", "r", some)
    assert found.out == call("predict", "r", targets).out and "on 59 rows" in found.err
    assert "mae" not in call("predict", "r", some, "--no-labels").err


def test_fewer_features_than_at_training_are_said(call, data, tmp_path):
    assert call("svm", data, "--c", 1, "--out", "run", "-q").code == 0
    (tmp_path / "narrow").write_text("1 2:1.5\n")
    assert "the data shows 2 of the 5 features of the run" in call("predict", "run", "narrow").err
    assert "features of the run" not in call("predict", "run", data).err
