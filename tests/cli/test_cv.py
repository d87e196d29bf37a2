"""cv: what it writes is what folds computed by hand say; the same for any number of processes; clear errors."""

import json

import numpy as np
import pytest

import screenpath
from screenpath import kernel_svm_path, svm_path
from screenpath.catalogue.scores import Sigmoid
from screenpath.cv import run as folds
from screenpath.cv.folds import draw_folds
from screenpath.errors import RunFolderError, UsageError
from screenpath.inputs import load
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


@pytest.mark.parametrize(
    "model", ["sparse-svm", *(pytest.param(name, marks=pytest.mark.wide_only) for name in ("svm", "l1svm"))]
)
def test_any_number_of_processes_gives_the_same(call, data, tmp_path, model):
    small = {"svm": GRID, "l1svm": ("--grid", 4), "sparse-svm": ("--betas", 2, "--alphas", 3)}[model]
    for jobs in (1, 2):
        options = ("--folds", 3, "--repeats", 2, "--jobs", jobs, "--out", f"run{jobs}")
        assert call("cv", model, data, *small, *options).code == 0
    one, two = tmp_path / "run1", tmp_path / "run2"
    assert (one / "cv.csv").read_bytes() == (two / "cv.csv").read_bytes()
    for name in ("folds.csv", "steps.csv"):
        assert without_times(one / name) == without_times(two / name)
    assert len(read_csv(one / "folds.csv")) == 6 * len(read_csv(one / "cv.csv"))


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


def test_predict_takes_best_and_one_se_from_the_run(call, data, tmp_path):
    assert call("cv", "svm", data, "--grid", 8, "--out", "run").code == 0
    said = record(tmp_path / "run")
    for word, name in (("best", "best"), ("one-se", "one_se")):
        found = call("predict", "run", data, "--step", word)
        assert found.code == 0
        assert f"step {said[name]['step']} " in found.err
    assert said["one_se"]["step"] <= said["best"]["step"]


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


def test_certify(call, data, tmp_path):
    options = ("--grid", 5, "--scale", "standard", "--certify-to", 0.05, "--out", "run")
    found = call("cv", "svm", data, *options)
    assert found.code == 0
    said = record(tmp_path / "run")["certified"]
    assert said["reached"] is True
    assert said["difference"] <= 0.05
    assert said["difference"] == pytest.approx(said["best_error"] - said["lower_bound"], abs=1e-15)
    rows = read_csv(tmp_path / "run" / "cv.csv")
    assert len(rows) == 5 + said["added_points"]
    assert said["best_error"] == pytest.approx(1.0 - max(float(r["mean"]) for r in rows))
    bounds = read_csv(tmp_path / "run" / "bounds.csv")
    ends = [b["C_from"] for b in bounds] + [bounds[-1]["C_to"]]
    assert ends == [r["C"] for r in rows]  # the segments cover the range without a hole
    assert min(float(b["lower"]) for b in bounds) == said["lower_bound"]
    assert all(float(b["lower"]) <= float(b["upper"]) for b in bounds)
    assert len(read_csv(tmp_path / "run" / "steps.csv")) == len(rows)
    assert "better anywhere in [0.01, 10]" in found.err
    call("cv", "svm", data, *GRID, "--out", "run", "--force")
    assert not (tmp_path / "run" / "bounds.csv").exists()


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


@pytest.mark.parametrize(
    "name", ["german_scale", "mushrooms", pytest.param("breast_cancer", marks=pytest.mark.wide_only)]
)
def test_certify_to_a_hundredth_on_real_data(call, shared_data, tmp_path, name):
    path = shared_data / "binary" / f"{name}.libsvm.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not among the larger data sets")
    assert call("cv", "svm", path, "--certify-to", 0.01, "--grid", 20, "--out", "run").code == 0
    said = record(tmp_path / "run")["certified"]
    assert said["difference"] <= 0.01
    assert said["reached"] is True


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


def test_one_vs_rest_of_two_labels_is_the_binary_path(call, data, tmp_path):
    assert call("svm", data, *GRID, "--out", "one").code == 0
    assert call("svm", data, *GRID, "--one-vs-rest", "--out", "two").code == 0
    assert (tmp_path / "one" / "coefficients.csv").read_bytes() == (tmp_path / "two" / "coefficients.csv").read_bytes()


@pytest.mark.parametrize(("arguments", "message"), [
    (("svm", "--folds", 61), "class 1 has 60 samples, fewer than the 61 folds"),
    (("svm", "--folds", 121, "--no-stratify"), "--folds 121 is more than the 120 samples"),
    (("svm", "--folds", 121), "use --folds 120 with --no-stratify (leave one out)"),
    (("lad", "--folds", 121), "use --folds 120 (leave one out)"),
    (("svm", "--score", "mae"), "--score mae is for regression"),
    (("lad", "--score", "accuracy"), "--score accuracy is for classification"),
    (("lad", "--stratify"), "--stratify needs classes"),
    (("svm", "--fold-file", "folds", "--folds", 3), "leave out --folds"),
    (("svm", "--fold-file", "missing"), "missing: the folds cannot be read"),
    (("svm", "--out", "-"), "cv writes several tables"),
    (("svm", "--certify", "--score", "f1"), "--certify bounds the share of wrong decisions"),
    (("svm", "--certify", "--c-list", "1"), "--certify needs a range of C"),
    (("svm", "--certify-points", 5), "--certify-points is used only with --certify-to"),
    (("svm", "--certify", "--certify-points", 1000), "add --certify-to DIFFERENCE, or leave it out"),
    (("lad", "--turn-points", 5), "--turn-points is used only with --until-turn"),
    (("svm", "--one-vs-rest", "--certify"), "--certify bounds the error of two classes"),
    (("svm", "--one-vs-rest", "--positive", 1), "use one of the two"),
    (("svm", "--one-vs-rest", "--kernel", "rbf"), "--one-vs-rest does not support kernels"),
    (("l1svm", "--bias", 1), "l1svm has a free bias"),
    (("lad", "--certify"), "No such option"),
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


def test_an_uncertified_fold_is_told_by_the_exit_code(call, data, tmp_path):
    found = call("cv", "svm", data, *GRID, "--max-epochs", 1, "--solver", "cd", "--intercept", "none",
                 "--tol", 1e-12, "--out", "run")  # fmt: skip
    assert found.code == 3
    assert "budget" in {r["status"] for r in read_csv(tmp_path / "run" / "folds.csv")}


@pytest.mark.parametrize("part", [(), ("--part", "1/2")])
def test_uncertified_folds_are_told_where_the_path_is_certified(call, data, tmp_path, part):
    budget = ("--folds", 4, "--repeats", 2, "--max-epochs", 23, "--tol", 1e-8, "--intercept", "none")
    found = call("cv", "svm", data, *GRID, *budget, *part, "--out", "run")
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


def test_folds_that_the_deadline_cuts_are_not_counted(call, data, monkeypatch):
    """The first fold is finished, the second one cut short."""
    real, plain = folds.time.monotonic, folds.FoldFile.save

    def save(self, rows, *others):
        plain(self, rows, *others)
        if len(rows) == 3:
            monkeypatch.setattr(folds.time, "monotonic", lambda: real() + 1e6)

    monkeypatch.setattr(folds.FoldFile, "save", save)
    found = call("cv", "svm", data, *GRID, "--time-limit", 1000, "--out", "run", "--progress")
    assert found.code == 3 and "cv svm: 1 of 5 folds done" in found.err and "2 of 5" not in found.err
    assert "1 of 5 done, not enough to choose a step" in found.err


TURN = {
    "svm": ("--cmin", 1e-3, "--cmax", 1e-1, "--grid", 5),
    "l1svm": ("--grid", 4),
}


@pytest.mark.parametrize("model", ["svm", pytest.param("l1svm", marks=pytest.mark.wide_only)])
def test_a_grid_goes_on_until_the_score_turns(call, data, tmp_path, monkeypatch, model):
    """What comes out is the cross-validation over the grid that was found, as if it had been asked for."""
    small = ("--folds", 3, "--quiet", *TURN[model])
    started, plain = [], folds.workers
    monkeypatch.setattr(folds, "workers", lambda *given: started.append(given[0]) or plain(*given))
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
        (("--c-list", "1,2,3"), "leave out --c-list"),
        (("--part", "1/2"), "leave out one of the two"),
        (("--grid", 1), "use --grid with 2 or more points"),
        (("--rule", "ssnsv"), "use --rule auto"),
    ],
)
def test_until_turn_refuses(call, data, options, said):
    found = call("cv", "svm", data, *options, "--until-turn", "--out", "run")
    assert found.code == 2
    assert said in found.err.replace("\n", " ")


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
