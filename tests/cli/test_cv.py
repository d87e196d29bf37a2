"""cv: what it writes is what folds computed by hand say; the same for any number of processes; clear errors."""

import itertools
import json
import re

import numpy as np
import pytest

import screenpath
from screenpath import kernel_svm_path, svm_path
from screenpath.cv.folds import draw_folds
from screenpath.errors import RunFolderError
from screenpath.inputs import load
from screenpath.walk import workers
from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times

GRID = ("--c-list", "0.01,0.1,1")


def regression(tmp_path, n=60):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=n)
    path = tmp_path / "targets.libsvm"
    path.write_text(libsvm_text(X, y))
    return path


def three_labels(tmp_path):
    rng = np.random.default_rng(3)
    y = np.array([2.0, 5.0, 7.0])[np.arange(90) % 3]
    X = rng.normal(size=(90, 6)) + 2.0 * np.eye(6)[np.arange(90) % 3]
    path = tmp_path / "three.libsvm"
    path.write_text(libsvm_text(X, y))
    return path, X, y


def record(folder):
    return json.loads((folder / "cv.json").read_text())


def test_scores_are_those_of_folds_made_by_hand(call, data, tmp_path):
    options = ("--scale", "standard", "--bias", 1, "--folds", 4, "--fold-seed", 9, "--out", "run", "--tol", 1e-9)
    assert call("cv", "svm", data, *GRID, *options).code == 0
    X, y = clouds()
    signs = np.where(y == 2.0, 1.0, -1.0)
    found = []
    for split in draw_folds(120, 4, 1, 9, signs):
        training = split.training(120)
        path = svm_path(X[training], signs[training], grid=[0.01, 0.1, 1.0], scale="standard", bias=1.0, tol=1e-9)
        products = X[split.held_out] @ path.coefficients.T + path.intercepts
        found.append(((products > 0.0) == (signs[split.held_out, None] > 0.0)).mean(axis=0))
    found = np.array(found)
    rows = read_csv(tmp_path / "run" / "cv.csv")
    np.testing.assert_allclose([float(r["mean"]) for r in rows], found.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose([float(r["se"]) for r in rows], found.std(axis=0, ddof=1) / 2.0, rtol=1e-12)
    cells = read_csv(tmp_path / "run" / "folds.csv")
    assert [float(r["score"]) for r in cells] == pytest.approx(found.ravel().tolist())
    assert {r["status"] for r in cells} == {"certified"}
    best = int(found.mean(axis=0).argmax())
    assert [r["best"] for r in rows] == ["1" if k == best else "0" for k in range(3)]
    said = record(tmp_path / "run")
    assert said["best"]["step"] == best
    assert said["fold_sizes"] == [30, 30, 30, 30]
    steps = read_csv(tmp_path / "run" / "steps.csv")
    assert [r["cv_accuracy"] for r in steps] == [r["mean"] for r in rows]
    assert [r["cv_accuracy_se"] for r in steps] == [r["se"] for r in rows]


@pytest.mark.parametrize("model", ["lad", "quantile", "svr"])
@pytest.mark.parametrize("score", [None, "mse"])
def test_regressions(call, tmp_path, model, score):
    path = regression(tmp_path)
    chosen = ("--score", score) if score else ()
    assert call("cv", model, path, *GRID, *chosen, "--out", "run").code == 0
    said = record(tmp_path / "run")
    assert said["score"] == (score or ("pinball" if model == "quantile" else "mae"))
    assert said["higher_is_better"] is False
    assert said["stratified"] is False
    means = [float(r["mean"]) for r in read_csv(tmp_path / "run" / "cv.csv")]
    assert said["best"]["step"] == int(np.argmin(means))
    assert call("predict", "run", path, "--step", "best").code == 0


def test_a_best_step_at_the_end_of_the_grid_is_said(call, tmp_path):
    found = call("cv", "lad", regression(tmp_path), "--c-list", "1e-5,1e-4,1e-3", "--out", "run")
    assert record(tmp_path / "run")["at_boundary"] == "C at the upper end of the grid"
    assert "a wider grid may hold a better one" in found.err


def test_fold_file_and_weights(call, data, tmp_path):
    (tmp_path / "folds").write_text("".join(f"{k % 3}\n" for k in range(120)))
    (tmp_path / "weights").write_text("".join(f"{1 + k % 2}\n" for k in range(120)))
    options = ("--fold-file", "folds", "--weights", "weights", "--class-weight", "balanced", "--out", "run")
    assert call("cv", "svm", data, *GRID, *options, "--jobs", 2).code == 0
    said = record(tmp_path / "run")
    assert (said["folds"], said["fold_sizes"], said["fold_seed"]) == (3, [40, 40, 40], None)
    X, y = clouds()
    k = np.arange(120)
    training = k % 3 != 0
    weights = (1.0 + k % 2)[training]
    path = svm_path(X[training], y[training], grid=[0.01, 0.1, 1.0], sample_weight=weights, class_weight="balanced")
    right = (X[~training] @ path.coefficients.T + path.intercepts > 0.0) == (y[~training, None] == 2.0)
    right = np.average(right, axis=0, weights=(1.0 + k % 2)[~training])
    cells = read_csv(tmp_path / "run" / "folds.csv")
    assert [float(r["score"]) for r in cells[:3]] == pytest.approx(right.tolist())


def test_weights_are_read_once(call, data, tmp_path, monkeypatch):
    """A file that is rewritten meanwhile: folds and path have the same weights, those that the run's hash is of."""
    ones, others = ("".join(f"{w(k)}\n" for k in range(120)) for w in (lambda k: 1, lambda k: 1 + 9 * (k % 2)))
    load_training = load.load_training

    def rewriting(*arguments):
        found = load_training(*arguments)
        (tmp_path / "weights").write_text(others)
        return found

    tables = []
    for change in (False, True):
        (tmp_path / "weights").write_text(ones)
        if change:
            monkeypatch.setattr(load, "load_training", rewriting)
        options = ("--weights", "weights", "--scale", "standard", "--out", f"run-{change}")
        assert call("cv", "svm", data, *GRID, *options).code == 0
        tables.append([row["score"] for row in read_csv(tmp_path / f"run-{change}" / "folds.csv")])
    assert (tmp_path / "weights").read_text() == others and tables[0] == tables[1]


def test_certify_says_when_the_budget_is_spent(call, data, tmp_path):
    options = ("--grid", 2, "--certify-to", 0, "--certify-points", 3, "--out", "run")
    found = call("cv", "svm", data, *options)
    said = record(tmp_path / "run")["certified"]
    assert said["reached"] is False
    assert said["added_points"] <= 3
    assert "--certify-to 0 was not reached" in found.err


def test_kernels(call, data, tmp_path):
    options = ("--kernel", "rbf", "--gamma", 0.01, "--folds", 3, "--tol", 1e-9, "--certify")
    for jobs in (1, 2):
        assert call("cv", "svm", data, *GRID, *options, "--jobs", jobs, "--out", f"run{jobs}").code == 0
    assert (tmp_path / "run1" / "cv.csv").read_bytes() == (tmp_path / "run2" / "cv.csv").read_bytes()
    X, y = clouds()
    scores = []
    for split in draw_folds(120, 3, 1, 0, np.where(y == 2.0, 1.0, -1.0)):
        training = split.training(120)
        path = kernel_svm_path(X[training], y[training], kernel="rbf", gamma=0.01, grid=[0.01, 0.1, 1.0], tol=1e-9)
        products = np.array([path.decision_function(X[split.held_out], k) for k in range(3)])
        scores.append(((products > 0.0) == (y[split.held_out] == 2.0)).mean(axis=1))
    found = [float(r["mean"]) for r in read_csv(tmp_path / "run1" / "cv.csv")]
    assert found == pytest.approx(np.mean(scores, axis=0).tolist())
    said = record(tmp_path / "run1")["certified"]
    assert said["lower_bound"] <= said["best_error"]


def test_one_vs_rest(call, tmp_path):
    path, X, y = three_labels(tmp_path)
    options = ("--one-vs-rest", *GRID, "--bias", 1, "--tol", 1e-9)
    assert call("svm", path, *options, "--test", path, "--out", "run").code == 0
    found = call("predict", "run", path, "--step", 2, "--decision")
    lines = [line.split(",") for line in found.out.splitlines()]
    assert lines[0] == ["label", "decision_2", "decision_5", "decision_7"]
    decisions = np.array([[float(v) for v in line[1:]] for line in lines[1:]])
    for k, label in enumerate((2.0, 5.0, 7.0)):
        alone = svm_path(X, y == label, grid=[1.0], bias=1.0, tol=1e-9)
        np.testing.assert_allclose(decisions[:, k], X @ alone.coefficients[0] + alone.intercepts[0], atol=1e-3)
    assert [line[0] for line in lines[1:]] == [f"{v:g}" for v in np.array([2.0, 5.0, 7.0])[decisions.argmax(axis=1)]]
    steps = read_csv(tmp_path / "run" / "steps.csv")
    share = np.mean([float(line[0]) == label for line, label in zip(lines[1:], y, strict=True)])
    assert float(steps[2]["test_accuracy"]) == pytest.approx(share)
    assert call("cv", "svm", path, *options, "--jobs", 2, "--score", "f1", "--out", "cv").code == 0
    assert record(tmp_path / "cv")["score"] == "f1"
    assert call("predict", "cv", path, "--step", "best").code == 0


def test_given_folds_that_lack_a_class_are_told_apart_from_drawn_ones(call, tmp_path):
    """`--stratify` and `--folds` are refused beside them: the advice must do without."""
    (tmp_path / "data").write_text("".join(f"{k % 2} 1:{k % 7} 2:{k % 3}\n" for k in range(20)))
    (tmp_path / "folds").write_text("".join(f"{k % 2 if k < 10 else 2}\n" for k in range(20)))
    command = ("cv", "svm", "data", "--fold-file", "folds", "--grid", 2, "--out", "run")
    found = call(*command, "--score", "auc")
    assert found.code == 1 and "spread its samples over the folds, or use --score accuracy" in found.err
    assert call(*command, "--score", "accuracy").code == 0


def test_one_vs_rest_of_two_labels_is_the_binary_path(call, data, tmp_path):
    assert call("svm", data, *GRID, "--out", "one").code == 0
    assert call("svm", data, *GRID, "--one-vs-rest", "--out", "two").code == 0
    assert (tmp_path / "one" / "coefficients.csv").read_bytes() == (tmp_path / "two" / "coefficients.csv").read_bytes()


@pytest.mark.parametrize(("arguments", "message"), [
    (("svm", "--folds", 61), "class 1 has 60 samples, fewer than the 61 folds"),
    (("svm", "--folds", 121, "--no-stratify"), "--folds 121 is more than the 120 samples"),
    (("svm", "--folds", 121), "use --folds 60 or fewer, or --folds loo"),
    (("svm", "--folds", 121, "--score", "auc"), "use --folds 60 or fewer\n"),
    (("lad", "--folds", 121), "use --folds 120 or fewer: 120 leave one out"),
    (("svm", "--score", "mae"), "--score mae is for regression"),
    (("lad", "--score", "accuracy"), "--score accuracy is for classification"),
    (("lad", "--stratify"), "--stratify needs classes"),
    (("svm", "--fold-file", "folds", "--folds", 3), "leave out --folds"),
    (("svm", "--fold-file", "missing"), "missing: no such file"),
    (("svm", "--out", "-"), "cv writes several tables"),
    (("svm", "--certify", "--score", "f1"), "--certify bounds the share of wrong decisions"),
    (("svm", "--certify", "--c-list", "1"), "--certify needs a range of C"),
    (("svm", "--certify-points", 5), "--certify-points is used only with --certify-to"),
    (("svm", "--certify", "--certify-points", 1000), "add --certify-to DIFFERENCE, or leave it out"),
    (("lad", "--turn-points", 5), "--turn-points is used only with --until-turn"),
    (("svm", "--one-vs-rest", "--certify"), "--certify bounds the error of two classes"),
    (("svm", "--one-vs-rest", "--positive", 1), "use one of the two"),
    (("l1svm", "--bias", 1), "l1svm has a free bias"), (("lad", "--certify"), "No such option"),
    (("svm", "--eps-path", "0.1"), "--eps-path is an option of screenpath svm, not of screenpath cv svm"),
])  # fmt: skip
def test_bad_input(call, data, tmp_path, arguments, message):
    model, *options = arguments
    found = call("cv", model, data, *options)
    assert found.code in (1, 2)
    assert message in found.err
    assert not (tmp_path / "runs").exists()  # refused before anything was computed or written


def test_a_folder_with_a_run_is_not_replaced_unasked(call, data):
    assert call("cv", "svm", data, *GRID, "--out", "run").code == 0
    assert "holds a finished run already" in call("cv", "svm", data, *GRID, "--out", "run").err


@pytest.mark.parametrize("part", [(), ("--part", "1/2")])
def test_uncertified_folds_are_told_where_the_path_is_certified(call, data, tmp_path, part):
    how = ("cv", "svm", data, "--c-list", ".1,10,1000", "--folds", 4, "--repeats", 2, *part, "--out", "run", "--force",
           "--max-epochs")  # fmt: skip
    # the largest budget that does not do: folds, of fewer rows each, come to need more than the path on all of them
    found = next(one for one in (call(*how, epochs) for epochs in range(40, 0, -1)) if one.code == 3)
    cells = read_csv(tmp_path / "run/folds.csv")
    unmet = [row for row in cells if row["status"] != "certified"]
    assert found.code == 3 and unmet and "3 of 3 steps" in found.err
    first = "repeat {repeat}, fold {fold}, step {step}".format(**unmet[0]).removeprefix("repeat 0, " if part else "")
    assert f"{len(unmet)} of {len(cells)} steps of the folds are not certified ({first}" in found.err
    assert "raise --max-epochs" in found.err
    said = " ".join(call("show", "run").out.split())
    assert f"{len(unmet)} of {len(cells)} steps of the folds are not certified ({first}" in said
    path = screenpath.load_run("run")
    assert all(step.status == "certified" for step in path) and not path.certified
    assert call("report", "run", "--out", "report.html").code == 0
    assert "steps of the folds are not certified" in (tmp_path / "report.html").read_text()
    assert call("cv", "svm", data, *GRID, "--out", "good").code == 0
    assert screenpath.load_run("good").certified and "steps of the folds" not in call("show", "good").out


def test_best_needs_scores(call, data):
    assert call("svm", data, *GRID, "--out", "run", "--test", data).code == 0
    assert "no standard errors" in call("predict", "run", data, "--step", "one-se").err


def test_a_time_limit_that_no_fold_meets(call, data, tmp_path):
    """It ends as any run that the limit stops: what is there is kept, no fold is called done, and it can go on."""
    limited = ("cv", "svm", data, *GRID, "--test", data, "--time-limit", 1e-9)
    found = call(*limited, "--out", "run")
    assert found.code == 3 and "--resume" in found.err and "time-limit" in found.err
    assert "0 of 5 done, not enough to choose a step" in found.err and "5 of 5" not in found.err
    assert {row["status"] for row in read_csv(tmp_path / "run/steps.csv")} == {"skipped"}
    assert not (tmp_path / "run/cv.json").exists()
    assert call(*limited, "--out", "run", "--resume", "--certify", "--force").code == 2
    assert call(*limited, "--out", "run", "--certify", "--force").code == 3
    assert call(*limited, "--out", "run", "--force").code == 3
    assert call(*limited[:-2], "--out", "run", "--resume").code == 0
    assert call(*limited[:-2], "--out", "whole").code == 0
    assert (tmp_path / "run/cv.csv").read_bytes() == (tmp_path / "whole/cv.csv").read_bytes()
    with pytest.raises(RunFolderError, match="resume"):
        screenpath.cross_validate("svm", data, grid=5, time_limit=1e-9, out="python", quiet=True)


TURN = {
    "svm": ("--cmin", 1e-3, "--cmax", 1e-1, "--grid", 5), "l1svm": ("--grid", 4),
}  # fmt: skip


@pytest.mark.parametrize("model", ["svm", pytest.param("l1svm", marks=pytest.mark.wide_only)])
def test_a_grid_goes_on_until_the_score_turns(call, data, tmp_path, monkeypatch, model):
    """What comes out is the cross-validation over the grid that was found, as if it had been asked for."""
    small = ("--folds", 3, "--quiet", *TURN[model])
    started, plain = [], workers.workers
    monkeypatch.setattr(workers, "workers", lambda *given: started.append(given[0]) or plain(*given))
    found = call("cv", model, data, *small, "--until-turn", "--turn-points", 40, "--jobs", 2, "--out", "run")
    assert found.code == 0 and started == [2]  # of several rounds
    said = record(tmp_path / "run")
    first = 5 if model == "svm" else 4
    assert said["until_turn"]["added_points"] == said["n_grid"] - first > 0
    assert said["until_turn"]["turned"] is True
    assert said["best"]["step"] < said["n_grid"] - 3
    rows = read_csv(tmp_path / "run" / "cv.csv")
    name = said["parameters"][0]
    assert said["until_turn"]["last"] == {name: float(rows[-1][name])}
    given = ",".join(row[name] for row in rows)
    option = "--c-list" if model == "svm" else "--lambda-list"
    assert call("cv", model, data, "--folds", 3, option, given, "--out", "at-once").code == 0
    for table in ("folds.csv", "steps.csv"):
        assert without_times(tmp_path / "run" / table) == without_times(tmp_path / "at-once" / table)
    assert (tmp_path / "run" / "cv.csv").read_bytes() == (tmp_path / "at-once" / "cv.csv").read_bytes()


def test_a_grid_that_does_not_turn_is_said(call, tmp_path):
    grid = ("--cmin", 1e-5, "--cmax", 1e-4, "--grid", 3, "--out", "run")
    data = regression(tmp_path)
    found = call("cv", "lad", data, *grid, "--until-turn", "--turn-points", 2)
    assert found.code == 0
    assert "has not turned within 2 further points to C = 0.001" in found.err
    assert "--cmax 0.01 may hold a better one" in found.err
    said = record(tmp_path / "run")
    assert (said["n_grid"], said["until_turn"]["turned"]) == (5, False)
    found = call("cv", "lad", data, *grid, "--force")
    assert "--cmax 0.001, or --until-turn, may hold a better one" in found.err
    assert record(tmp_path / "run")["until_turn"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--c-list", "1,2,3"), "leave out --c-list"), (("--part", "1/2"), "leave out one of the two"),
        (("--grid", 1), "use --grid with 2 or more points"), (("--rule", "ssnsv"), "use --rule auto"),
    ],
)  # fmt: skip
def test_until_turn_refuses(call, data, options, said):
    found = call("cv", "svm", data, *options, "--until-turn", "--out", "run")
    assert found.code == 2
    assert said in found.err.replace("\n", " ")


FEW = ["1 1:2", "2 1:3", "1 1:1", "2 1:1", "1 1:5"]


@pytest.mark.parametrize("model", ["svm", "l1svm", "lad"])
@pytest.mark.parametrize("score", [None, "auc"])
def test_a_number_of_folds_that_is_advised_is_possible(call, tmp_path, model, score):
    """Of two rows, of one row in a class, and of one row."""
    said = []
    for rows, folds in itertools.product((1, 2, 3, 4, 5), (3, 7)):
        (tmp_path / "few").write_text("\n".join(FEW[:rows]))
        words = ["cv", model, "few", "--grid", 2, "--out", "r", "--force", *(("--score", score) if score else ())]
        found = call(*words, "--folds", folds, "--quiet")
        said.append(found.err)
        for advised in re.findall("--folds ([0-9]+|loo)(?= or fewer|:|,|\n)", found.err.partition("\n")[2]):
            assert call(*words, "--quiet", "--folds", advised).code in (0, 3), (found.err, advised)
        assert "--folds 1 " not in found.err and "no-stratify" not in found.err
    if model != "lad":
        assert "add samples of it\n" in said[2] or "add samples of it, or use --folds loo\n" in said[2]
