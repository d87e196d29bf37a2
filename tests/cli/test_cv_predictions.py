"""cv: predictions of held-out rows, thresholds, probabilities and several scores; each row left out."""

import json

import numpy as np
import pytest

import screenpath
from screenpath import svm_path
from screenpath.catalogue.scores import Sigmoid
from screenpath.errors import UsageError
from tests.cli.conftest import clouds, libsvm_text, read_csv
from tests.cli.test_cv import GRID, record, regression, three_labels


@pytest.mark.parametrize("model", ["svm", "lad"])
def test_predictions_of_held_out_rows(call, data, tmp_path, model):
    """They are those of the folds made by hand, and have the best score; more processes write the same."""
    options = ("--folds", 4, "--tol", 1e-9, "--scale", "standard", "--bias", 1, "--predictions", "p.csv", "-o", "r")
    assert call("cv", model, data, *GRID, *options).code == 0
    said, rows, (X, y) = record(tmp_path / "r"), read_csv(tmp_path / "p.csv"), clouds()
    assert [row["row"] for row in rows] == [str(k + 1) for k in range(120)]
    truth, signs = [row["label" if model == "svm" else "target"] for row in rows], np.where(y == 2.0, 1.0, -1.0)
    assert [float(one) for one in truth] == y.tolist()
    fold = np.array([int(row["fold"]) for row in rows])
    if model == "lad":
        errors = np.abs(y - [float(row["predicted"]) for row in rows])
        assert np.mean([errors[fold == k].mean() for k in range(4)]) == pytest.approx(said["best"]["mean"])
        return
    right = np.array([row["predicted"] == row["label"] for row in rows])
    assert np.mean([right[fold == k].mean() for k in range(4)]) == pytest.approx(said["best"]["mean"])
    counts = [[sum(r["label"] == a and r["predicted"] == b for r in rows) for b in "12"] for a in "12"]
    assert sorted(said["confusion"]["labels"]) == ["1", "2"]
    assert said["confusion"]["counts"] == (counts if said["confusion"]["labels"] == ["1", "2"] else
                                           [row[::-1] for row in counts[::-1]])  # fmt: skip
    shown = [line.split() for line in call("show", "r").out.splitlines()]
    labels, counts = said["confusion"]["labels"], said["confusion"]["counts"]
    for label, line, row in zip(labels, shown[shown.index(["label", *labels]) + 1 :], counts, strict=False):
        assert line == [label, *map(str, row)]
    worse = next(k for k in range(3) if k != said["best"]["step"])
    assert "held-out rows by label" not in call("show", "r", "--step", worse).out
    at = [said["best"]["parameters"]["C"]]
    for k in range(4):
        path = svm_path(X[fold != k], signs[fold != k], grid=at, scale="standard", bias=1.0, tol=1e-9)
        forms = X[fold == k] @ path.coefficients[0] + path.intercepts[0]
        decisions = [float(row["decision"]) for row in rows if int(row["fold"]) == k]
        np.testing.assert_allclose(decisions, forms, atol=1e-3)
    found = call("cv", model, data, *GRID, *options)
    assert found.code == 2 and "p.csv exists already" in found.err
    assert call("cv", model, data, *GRID, *options, "--jobs", 2, "--force").code == 0
    assert read_csv(tmp_path / "p.csv") == rows
    more = {"c_list": [0.01, 0.1, 1.0], "folds": 4, "tol": 1e-9, "scale": "standard", "bias": 1.0, "quiet": True}
    screenpath.cross_validate("svm", data, out=tmp_path / "s", predictions=tmp_path / "q.csv", **more)
    assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


def test_predictions_of_several_classes_and_repeats(call, tmp_path):
    path, _, y = three_labels(tmp_path)
    options = ("--one-vs-rest", *GRID, "--folds", 3, "--repeats", 2, "--predictions", "p.csv", "-o", "r")
    assert call("cv", "svm", path, *options).code == 0
    rows = read_csv(tmp_path / "p.csv")
    assert list(rows[0]) == ["repeat", "row", "fold", "label", "predicted", "decision_2", "decision_5", "decision_7"]
    assert [(row["repeat"], int(row["row"])) for row in rows] == [(r, k) for r in "01" for k in range(1, 91)]
    for row, label in zip(rows, [*y, *y], strict=True):
        assert float(row["label"]) == label
        assert row["predicted"] == max("257", key=lambda one: float(row[f"decision_{one}"]))
    counts = [[sum(r["label"] == a and r["predicted"] == b for r in rows) for b in "257"] for a in "257"]
    assert record(tmp_path / "r")["confusion"] == {"labels": list("257"), "counts": counts}


def test_predictions_carry_names_and_come_from_certified_folds(call, tmp_path):
    X, y = clouds()
    lines = ["name,y,a,b", *(f"n{k},{label:g},{a!r},{b!r}" for k, (label, (a, b)) in
                             enumerate(zip(y, X[:, :2].tolist(), strict=True)))]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = ("--target", "y", "--id", "name", "--folds", 3, "--grid", 4, "--predictions", "p.csv", "-o", "r")
    assert call("cv", "svm", "t.csv", *options, "--certify-to", 0.02, "--certify-points", 8).code == 0
    rows, said = read_csv(tmp_path / "p.csv"), record(tmp_path / "r")
    assert [row["name"] for row in rows] == [f"n{k}" for k in range(120)]
    right = np.mean([row["predicted"] == row["label"] for row in rows])
    assert right == pytest.approx(said["best"]["mean"])
    found = call("cv", "svm", "t.csv", "--target", "y", "--part", "1/3", "--predictions", "q.csv", "-o", "s")
    assert found.code == 2 and "chosen by all folds at once" in found.err
    found = call("cv", "svm", "t.csv", "--target", "y", "--predictions", "t.csv", "-o", "s", "--force")
    assert found.code == 2 and "is read by this command" in found.err


def test_several_scores(call, data, tmp_path):
    """The first chooses as alone, each other has the numbers of a run by it alone; parts of the folds give the same."""
    options = (*GRID, "--folds", 4, "-q")
    assert call("cv", "svm", data, *options, "--score", "auc,accuracy", "--jobs", 2, "-o", "both").code == 0
    assert call("cv", "svm", data, *options, "--score", "auc", "-o", "auc").code == 0
    assert call("cv", "svm", data, *options, "-o", "accuracy").code == 0
    both, auc, accuracy = (read_csv(tmp_path / name / "cv.csv") for name in ("both", "auc", "accuracy"))
    more = [{"accuracy": one["mean"], "accuracy_se": one["se"]} for one in accuracy]
    assert [one | two for one, two in zip(auc, more, strict=True)] == both
    rows, said = read_csv(tmp_path / "both" / "steps.csv"), record(tmp_path / "both")
    assert [row["cv_accuracy"] for row in rows] == [row["mean"] for row in accuracy]
    assert said["best"]["further"]["accuracy"]["mean"] == float(accuracy[said["best"]["step"]]["mean"])
    assert said["best"]["step"] == record(tmp_path / "auc")["best"]["step"]
    assert said["further"]["accuracy"] == record(tmp_path / "accuracy")["baselines"]
    shown = " ".join(call("show", "both").out.split())
    assert "baseline 0.5 (always the most frequent label) accuracy" in shown
    score = said["best"]["mean"] - said["best"]["optimism"]
    assert f"corrected: auc {score:.6g}, allowing for the choice among 3 steps" in shown
    for k in (1, 2):
        assert call("cv", "svm", data, *options, "--score", "auc,accuracy", "--part", f"{k}/2", "-o", f"p{k}").code == 0
    assert call("merge", "p1", "p2", "-o", "merged", "-q").code == 0
    assert (tmp_path / "merged" / "cv.csv").read_bytes() == (tmp_path / "both" / "cv.csv").read_bytes()
    merged = record(tmp_path / "merged")
    assert {**merged, "seconds": 0} == {**said, "seconds": 0}
    for score, words in (("auc,auc", "joined by commas"), ("auc,mae", "for regression"), ("", "joined by commas")):
        found = call("cv", "svm", data, "--score", score, "-o", "wrong")
        assert found.code == 2 and words in " ".join(found.err.split())


def test_a_threshold_is_chosen_by_held_out_rows_and_used_by_predict(call, data, tmp_path):
    options = (*GRID, "--folds", 4, "--predictions", "p.csv", "--test", data, "-o", "r")
    assert call("cv", "svm", data, *options).code == 0
    plain = read_csv(tmp_path / "p.csv")
    found = call("cv", "svm", data, *options, "--threshold", "recall=0.9", "--force")
    assert found.code == 0
    rows, said = read_csv(tmp_path / "p.csv"), record(tmp_path / "r")["best"]
    value, table = said["threshold"]["value"], read_csv(tmp_path / "r" / "steps.csv")
    decided = np.array([float(row["decision"]) for row in plain]) > value
    high = max(row["label"] for row in rows)
    assert [row["predicted"] == high for row in rows] == decided.tolist()
    true = np.array([row["label"] == high for row in rows])
    assert (decided & true).sum() / true.sum() == said["threshold"]["recall"] >= 0.9
    assert (decided & true).sum() / decided.sum() == said["threshold"]["precision"]
    assert float(table[said["step"]]["threshold"]) == value != 0.0
    assert f"recall=0.9: decisions above {value:.6g} are +1" in " ".join(found.err.split())
    assert f"recall=0.9: decisions above {value:.6g} are +1" in " ".join(call("show", "r").out.split())
    other = next(k for k in range(3) if k not in (said["step"], record(tmp_path / "r")["one_se"]["step"]))
    assert f"decisions above {float(table[other]['threshold']):.6g} are +1" in call("show", "r", "--step", other).out
    found = call("predict", "r", data, "--step", "C=0.5", "--exact", "-o", "-")
    assert found.code == 2 and "leave out --exact" in found.err
    # New data: labels by the threshold; the scores of --test and its confusion table are those of predict.
    assert call("predict", "r", data, "--decision", "-o", "labels.csv").code == 0
    path, (X, y) = screenpath.load_run("r"), clouds()
    forms = X @ path.coef(step="best") + path.intercept(step="best")
    new = read_csv(tmp_path / "labels.csv")
    np.testing.assert_allclose([float(row["decision"]) for row in new], forms - value, rtol=1e-9, atol=1e-9)
    assert [row["label"] for row in new] == ["2" if form > value else "1" for form in forms]
    assert path.predict(X).tolist() == [float(row["label"]) for row in new]
    pairs = [(label, row["label"]) for label, row in zip(y, new, strict=True)]
    counts = [pairs.count((one, other)) for one in (1, 2) for other in "12"]
    assert table[said["step"]]["confusion"] == " ".join(map(str, counts))
    assert float(table[said["step"]]["test_accuracy"]) == pytest.approx((counts[0] + counts[3]) / 120)


@pytest.mark.parametrize("more", (
    (), ("--threshold", "recall=0.9"), ("--kernel", "rbf", "--gamma", 0.1, "--scale", "standard"), ("--jobs", 2)
))  # fmt: skip
def test_probabilities_are_fitted_to_held_out_rows(call, data, tmp_path, more):
    options = (*GRID, "--folds", 4, "--test", data, *more)
    assert call("cv", "svm", data, *options, "-o", "plain").code == 0
    # The decisions of held-out rows, which a threshold would lower.
    decisions = (*GRID, "--folds", 4, *(more if "--kernel" in more else ()))
    assert call("cv", "svm", data, *decisions, "--predictions", "p.csv", "-o", "held").code == 0
    found = call("cv", "svm", data, *options, "--calibrate", "-o", "r")
    assert found.code == 0
    said, rows = record(tmp_path / "r")["best"], read_csv(tmp_path / "p.csv")
    sign = np.where(np.array([row["label"] for row in rows]) == "2", 1.0, -1.0)
    fitted = vars(Sigmoid.fitted(np.array([float(row["decision"]) for row in rows]), sign))
    assert said["calibrate"] == pytest.approx(fitted, rel=1e-9)
    words = f"held out: log-loss {fitted['log_loss']:.4g}, Brier score {fitted['brier']:.4g}"
    assert words in " ".join(found.err.split()) and words in " ".join(call("show", "r").out.split())
    table, before = read_csv(tmp_path / "r" / "steps.csv"), read_csv(tmp_path / "plain" / "steps.csv")
    assert float(table[said["step"]]["sigmoid_slope"]) == said["calibrate"]["slope"] < 0
    assert np.isfinite([float(row[name]) for row in table for name in ("sigmoid_slope", "sigmoid_offset")]).all()
    assert [row["test_accuracy"] for row in table] == [row["test_accuracy"] for row in before]
    # New data: the decision without a threshold; the label is that of the run without probabilities.
    path, (X, _) = screenpath.load_run("r"), clouds()
    threshold = path.table()[said["step"]].get("threshold") or 0.0
    q = fitted["slope"] * (path.decision_function(X) + threshold) + fitted["offset"]
    found = path.predict_proba(X)
    np.testing.assert_allclose(found, np.column_stack([1 / (1 + np.exp(-q)), 1 / (1 + np.exp(q))]), rtol=1e-7)
    assert path.labels == (1, 2)
    for run in ("r", "plain"):
        assert call("predict", run, data, "-o", f"{run}.csv").code == 0
    new = read_csv(tmp_path / "r.csv")
    assert list(new[0]) == ["label", "probability"]
    assert [float(row["probability"]) for row in new] == found[:, 1].tolist()
    assert [row["label"] for row in new] == [row["label"] for row in read_csv(tmp_path / "plain.csv")]
    if "--kernel" not in more:  # the decision by exported weights
        assert call("export", "r", "--to", "json", "-o", "m.json").code == 0
        model = json.loads((tmp_path / "m.json").read_text())
        q = model["sigmoid"]["slope"] * path.decision_function(X) + model["sigmoid"]["offset"]
        np.testing.assert_allclose(1 / (1 + np.exp(q)), found[:, 1], rtol=1e-9)
        assert "probabilities are known at the steps" in call("predict", "r", data, "--step", "C=0.5").err
    with pytest.raises(UsageError, match="has no probabilities at step"):
        screenpath.load_run("plain").predict_proba(X)
    edited = (tmp_path / "r" / "cv.json").read_text().replace('"log_loss"', '"logloss"', 1)
    (tmp_path / "r" / "cv.json").write_text(edited)
    assert call("show", "r").code == 1


@pytest.mark.parametrize("model", ("l1svm", "sparse-svm"))
def test_probabilities_of_other_models(call, data, tmp_path, model):
    assert call("cv", model, data, "--folds", 3, "--calibrate", "-o", "r", "-q").code == 0
    said = record(tmp_path / "r")["best"]["calibrate"]
    assert said["log_loss"] < said["baseline_log_loss"] and said["brier"] < said["baseline_brier"]
    assert screenpath.load_run("r").predict_proba(clouds()[0]).sum(axis=1) == pytest.approx(1.0)


def test_probabilities_that_there_are_not(call, data, tmp_path):
    three, *_ = three_labels(tmp_path)
    for arguments, words in (
        (("svm", three, "--one-vs-rest"), "--calibrate is between two labels, and this run has several"),
        (("lad", data), "--calibrate is between two labels, and this run has no"),
        (("svm", data, "--part", "1/2"), "fitted to the rows of all folds"),
    ):
        found = call("cv", *arguments, "--calibrate", "-o", "r")
        assert found.code == 2 and words in " ".join(found.err.split())


def test_thresholds_that_there_are_not(call, data, tmp_path):
    three, *_ = three_labels(tmp_path)
    for arguments, words in (
        (("svm", three, "--one-vs-rest", "--threshold", "recall=0.9"), "between two labels, and this run has several"),
        (("lad", data, "--threshold", "recall=0.9"), "between two labels, and this run has no"),
        (("svm", data, "--threshold", "recall=0.9", "--part", "1/2"), "chosen by the rows of all folds"),
        (("svm", data, "--threshold", "recall"), "with its least value, such as recall=0.9"),
        (("svm", data, "--threshold", "auc=0.9"), "with its least value, such as recall=0.9"),
        (("svm", data, "--threshold", "recall=1.5"), "with its least value, such as recall=0.9"),
    ):
        found = call("cv", *arguments, "-o", "r")
        assert found.code == 2 and words in " ".join(found.err.split())
    rng = np.random.default_rng(0)
    (tmp_path / "noise").write_text(libsvm_text(rng.normal(size=(80, 2)), np.sign(np.arange(80) % 2 - 0.5)))
    found = call("cv", "svm", "noise", *GRID, "--folds", 4, "--threshold", "precision=1", "-o", "r")
    said = record(tmp_path / "r")
    if "threshold" not in said["best"]:
        assert "no threshold has --threshold precision=1" in " ".join(found.err.split())
        assert read_csv(tmp_path / "r" / "steps.csv")[said["best"]["step"]]["threshold"] == ""
    assert call("predict", "r", "noise", "-o", "labels.csv").code == 0
    assert (found.code, "threshold" in said["best"]) == (0, False)


@pytest.mark.parametrize("model", ["svm", "lad", "quantile", "svr"])
@pytest.mark.parametrize("intercept", [("--bias", 1), ("--intercept", "free")], ids=["penalised", "free"])
def test_leaving_out_each_row_is_as_many_folds_as_rows(call, tmp_path, model, intercept):
    X, y = clouds(40, 3, seed=1)
    file = regression(tmp_path, 40)
    if model == "svm":
        file.write_text(libsvm_text(X, y))
    for name, more in (("loo", ()), (40, ("--no-stratify",) if model == "svm" else ())):
        options = ("--folds", name, "--out", f"run-{name}", "--predictions", f"{name}.csv", "--tol", 1e-10, *more)
        assert call("cv", model, file, "--c-list", "0.1,0.4,2", *intercept, *options).code == 0
    exact, drawn = (read_csv(tmp_path / f"run-{name}" / "cv.csv") for name in ("loo", 40))
    for column in ("mean", "se"):
        ours, theirs = ([float(row[column]) for row in rows] for rows in (exact, drawn))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-12)
    assert [row["best"] for row in exact] == [row["best"] for row in drawn]
    form = "decision" if model == "svm" else "predicted"
    ours, theirs = ([float(row[form]) for row in read_csv(f"{name}.csv")] for name in ("loo", 40))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    said = record(tmp_path / "run-loo")
    assert said["folds"] == 40 and said["leave_one_out"] and "optimism" not in said["best"]
    cells = read_csv(tmp_path / "run-loo" / "folds.csv")
    assert len(cells) == 3 and all(cell["status"] == "certified" for cell in cells)
    assert [float(cell["score"]) for cell in cells] == pytest.approx([float(row["mean"]) for row in exact])
    shown = call("show", "run-loo").out
    assert "over 40" in shown and "not reached" not in shown
    again = ("--folds", 10, "--out", "run-loo", "--tol", 1e-10)
    assert 'folds was "loo", now 10' in call("cv", model, file, "--c-list", "0.1,0.4,2", *intercept, *again).err


def test_the_only_row_of_a_class_is_an_error_where_it_is_left_out(call, tmp_path):
    X, _ = clouds(12, 3, seed=1)
    (tmp_path / "one").write_text(libsvm_text(X, np.where(np.arange(12) == 3, 1.0, -1.0)))
    assert call("cv", "svm", "one", "--c-list", "0.01,1,1000", "--folds", "loo", "--out", "run").code == 0
    assert all(float(row["mean"]) <= 11 / 12 for row in read_csv(tmp_path / "run" / "cv.csv"))
    assert all(row["status"] == "certified" for row in read_csv(tmp_path / "run" / "folds.csv"))


def test_weights_of_rows_left_out(call, data, tmp_path):
    weights = 1.0 + np.arange(120) % 2
    (tmp_path / "weights").write_text("".join(f"{one}\n" for one in weights))
    options = ("--weights", "weights", "--folds", "loo", "--score", "accuracy", "--out", "run", "--threshold")
    assert call("cv", "svm", data, *GRID, *options, "recall=0.9").code == 0
    for row in read_csv(tmp_path / "run" / "cv.csv"):
        found = screenpath.load_run(tmp_path / "run").loo(C=float(row["C"]))
        assert float(row["mean"]) == pytest.approx(found.scores["accuracy"])
    assert record(tmp_path / "run")["best"]["threshold"]["recall"] >= 0.9


def test_what_leaving_out_each_row_refuses(call, data, tmp_path, monkeypatch):
    for more, why in (
        (("--repeats", 2), "is of drawn folds"), (("--certify",), "is of drawn folds"), (("--jobs", 2), "is one path"),
        (("--certify-to", 0.1), "is of drawn folds"),
        (("--score", "auc"), "is of several rows, and --folds loo holds out one\n  use accuracy\n"),
    ):  # fmt: skip
        said = call("cv", "svm", data, *GRID, "--folds", "loo", *more)
        assert said.code == 2 and why in said.err, said.err
    for count, why in (("many", "a whole number of at least 2 or loo, not 'many'"), (1, "at least 2 or loo, not '1'")):
        said = call("cv", "svm", data, "--folds", count)
        assert said.code == 2 and why in said.err
    assert "not for l1svm" in call("cv", "l1svm", data, "--folds", "loo").err
    three, _, _ = three_labels(tmp_path)
    assert "for two labels" in call("cv", "svm", three, *GRID, "--one-vs-rest", "--folds", "loo").err
    monkeypatch.setattr("screenpath.engine.leave_out.SLOW", 0.0)
    said = call("cv", "svm", data, *GRID, "--folds", "loo")
    assert said.code == 0 and said.err.count("a step leaves out") == 1 and "such as --folds 10" in said.err


def test_a_step_with_an_open_row_is_not_certified(call, tmp_path):
    """Without row 1, any intercept from -1 to 1 is best, for w = 0 at a C this small."""
    file = tmp_path / "even"
    file.write_text(libsvm_text(np.array([[1.0], [1.1], [-1.0], [-1.1], [0.9]]), np.array([1, 1, -1, -1, 1])))
    said = call("cv", "svm", file, "--c-list", "1e-3", "--intercept", "free", "--folds", "loo", "--out", "run")
    assert said.code == 3 and "screenpath loo" in said.err
    assert read_csv(tmp_path / "run" / "folds.csv")[0]["status"] == "open"
