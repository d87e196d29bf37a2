"""svm --one-vs-one from the command line: predictions, scores, folds, an interrupted run, what is refused."""

import json

import numpy as np
import pytest

import screenpath
from screenpath.errors import UsageError
from screenpath.walk import one_vs_rest
from tests.certificates.compare import by_fractions
from tests.cli.conftest import out_of_time_at, read_csv

GRID = ("--grid", 4, "--cmin", 0.1, "--cmax", 10)
RBF = ("--kernel", "rbf", "--gamma", 0.3)
WAYS = ("one-vs-one", "one-vs-rest")


@pytest.mark.parametrize("kernel", [(), RBF])
def test_prediction_scores_and_folds(call, three, tmp_path, kernel):
    assert call("svm", three, "--one-vs-one", *GRID, *kernel, "--test", three, "-o", "run").code == 0
    found = call("predict", "run", three, "--step", 2, "--decision")
    assert found.code == 0
    lines = [line.split(",") for line in found.out.splitlines()]
    assert lines[0] == ["label", "decision_7/2", "decision_7/5", "decision_2/5"]
    for label, *forms in lines[1:]:
        a, b, c = (float(form) > 0.0 for form in forms)
        counts = {"7": a + b, "2": (not a) + c, "5": (not b) + (not c)}
        assert label == max(counts, key=counts.get)  # of equally many the first
    y = [line.split()[0] for line in (tmp_path / three).read_text().splitlines()]
    share = np.mean([line[0] == label for line, label in zip(lines[1:], y, strict=True)])
    assert f"accuracy: {share:.6g} on 90 rows" in found.err
    assert float(read_csv(tmp_path / "run" / "steps.csv")[2]["test_accuracy"]) == pytest.approx(share)
    assert read_csv(tmp_path / "run" / "coefficients.csv")[0]["class"] == "7/2"
    for name, jobs in (("one", 1), ("two", 2)):
        folds = ("--folds", 3, "--jobs", jobs, "--predictions", f"{name}.csv", "-o", name)
        assert call("cv", "svm", three, "--one-vs-one", *GRID, *kernel, *folds).code == 0
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    held_out = read_csv(tmp_path / "one.csv")
    assert {"decision_7/2", "decision_7/5", "decision_2/5"} < set(held_out[0])
    right = np.mean([row["label"] == row["predicted"] for row in held_out])
    assert max(float(row["mean"]) for row in read_csv(tmp_path / "one" / "cv.csv")) == pytest.approx(right)
    assert call("predict", "one", three).code == 0
    assert call("show", "run").code == 0 and call("show", "one").code == 0
    counts = json.loads((tmp_path / "one" / "cv.json").read_text())["confusion"]["counts"]
    assert np.trace(counts) / 90 == pytest.approx(right) and np.sum(counts) == 90
    if kernel:
        refused = call("export", "run", "--step", 2, "--to", "libsvm", "-o", "model", "--compress", 0.1)
        assert refused.code == 2 and "a model for each pair of labels" in refused.err


@pytest.mark.parametrize("kernel", [(), RBF])
def test_a_run_that_was_cut_has_the_same_bytes(call, three, tmp_path, monkeypatch, kernel):
    monkeypatch.setattr(one_vs_rest, "TURN", 2)
    words = ("svm", three, "--one-vs-one", *GRID, *kernel, "--certificate")
    assert call(*words, "-o", "whole").code == 0
    with out_of_time_at(monkeypatch, 2):
        assert call(*words, "-o", "cut", "--time-limit", "1000").code == 3
    assert [row["status"] for row in read_csv("cut/steps.csv")] == ["certified"] * 3 + ["skipped"]
    again = call(*words, "-o", "cut", "--resume", "--time-limit", "1000")
    assert again.code == 0 and "continuing behind step" in again.err
    for name in ("certificate.bin", "coefficients.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    assert call("verify", "cut").code == 0
    refused = call("verify", "cut", "--explain", "--step", 0)
    assert refused.code == 2 and not refused.out and "one for each pair of labels" in refused.err
    _, _, refused, _ = by_fractions((tmp_path / "cut" / "certificate.bin").read_bytes(), tmp_path / three)
    assert "of a pair of labels" in refused


@pytest.mark.parametrize("way", ["one_vs_one", "one_vs_rest"])
def test_kept_rows_and_a_given_kernel_are_the_same_model(call, three, tmp_path, way):
    data = screenpath.read_libsvm(tmp_path / three)
    X = data.X.toarray()
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    how = {way: True, "c_list": [1.0], "tol": 1e-9, "quiet": True}
    screenpath.run("svm", (K, data.y), kernel="precomputed", out="given", **how)
    flag = f"--{way.replace('_', '-')}"
    assert call("svm", three, flag, "--c", 1, "--tol", 1e-9, *RBF, "--keep-rows", "-o", "rbf").code == 0
    (tmp_path / three).unlink()
    kept = screenpath.load_run("rbf").decision_function(X)
    np.testing.assert_allclose(screenpath.load_run("given").decision_function(K), kept, atol=1e-4)


@pytest.mark.parametrize(("kernel", "kind", "advice"), [
    (RBF, "onnx", "libsvm"), (RBF, "sklearn", "libsvm"), ((), "liblinear", "json"), ((), "libsvm", "json"),
])  # fmt: skip
def test_formats_without_votes_are_refused(call, three, kernel, kind, advice):
    assert call("svm", three, "--one-vs-one", "--c", 1, *kernel, "-o", "run", "-q").code == 0
    found = call("export", "run", "--to", kind, "-o", "model")
    assert found.code == 2 and "votes of pairs" in found.err and f"--to {advice}" in found.err
    assert call("export", "run", "--to", advice, "-o", "model").code == 0


def test_a_scaled_run_is_not_sent_from_format_to_format(call, three):
    assert call("svm", three, "--one-vs-one", *GRID, *RBF, "--scale", "standard", "-o", "run").code == 0
    for kind in ("onnx", "json", "sklearn", "libsvm"):
        found = call("export", "run", "--step", 1, "--to", kind, "-o", "model")
        assert found.code == 2 and "--scale none" in found.err and "to onnx or" not in found.err


def test_a_kernel_that_no_format_holds_with_votes(call, three):
    laplacian = ("--c", 1, "--kernel", "laplacian", "-q", "-o")
    assert call("svm", three, "--one-vs-one", *laplacian, "run").code == 0
    for kind in ("onnx", "json", "libsvm", "liblinear"):
        found = call("export", "run", "--to", kind, "-o", "model")
        assert found.code == 2 and "--one-vs-rest, and export --to json" in found.err
    assert call("svm", three, "--one-vs-rest", *laplacian, "rest").code == 0
    found = call("export", "rest", "--to", "liblinear", "-o", "model")
    assert found.code == 2 and "export --to json" in found.err and "libsvm" not in found.err
    assert call("export", "rest", "--to", "json", "-o", "model").code == 0


def test_two_labels_are_the_binary_path(call, three, tmp_path):
    lines = (tmp_path / three).read_text().splitlines()
    (tmp_path / "two").write_text("\n".join(line for line in lines if not line.startswith("5")) + "\n")
    for name, more in (("one", ()), ("other", ("--one-vs-one", "--certificate"))):
        assert call("svm", "two", *GRID, *more, "-o", name, "-q").code == 0
    assert (tmp_path / "one" / "coefficients.csv").read_text() == (tmp_path / "other" / "coefficients.csv").read_text()
    assert call("verify", "other").code == 0


def test_labels_of_votes_are_not_claimed_to_be_stable(call, three):
    """The largest form decides nothing here."""
    assert call("svm", three, "--one-vs-one", *GRID, "-o", "run", "-q").code == 0
    found = call("predict", "run", three, "--stable", "-o", "out.csv")
    assert found.code == 2 and "votes of pairs" in found.err
    with pytest.raises(UsageError, match="votes of pairs"):
        screenpath.load_run("run").stable(np.ones((1, 3)))


def test_rules_are_not_compared(call, three):
    found = call("compare-rules", "svm", three, "--one-vs-one", "--grid", 3)
    assert found.code == 2 and "--one-vs-one is an option of screenpath svm" in found.err


def test_labels_that_the_only_format_cannot_hold(call, three, tmp_path):
    rows = [line.split() for line in (tmp_path / three).read_text().splitlines()]
    lines = [",".join([f"label {row[0]}", *(cell.partition(":")[2] for cell in row[1:])]) for row in rows]
    (tmp_path / "words.csv").write_text("\n".join(["y,a,b,c", *lines]) + "\n")
    assert call("svm", "words.csv", "--one-vs-one", "--c", 1, *RBF, "-o", "run", "-q").code == 0
    found = call("export", "run", "--to", "libsvm", "-o", "model")
    assert found.code == 2 and "whole numbers" in found.err and "--to" not in found.err


@pytest.mark.parametrize("kernel", [(), RBF])
def test_runs_are_compared_by_their_votes(three, call, kernel):
    """With those of one against the rest, too, whose labels are sorted; the score is that of the step table."""
    for way in WAYS:
        assert call("svm", three, f"--{way}", *GRID, *kernel, "--test", three, "-o", way, "-q").code == 0
    best = [max(float(row["test_accuracy"]) for row in read_csv(f"{way}/steps.csv")) for way in WAYS]
    assert [side.score for side in screenpath.compare_runs(WAYS)] == pytest.approx(best)
    assert call("runs", *WAYS).code == 0
