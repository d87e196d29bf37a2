"""Hints: said where they help, and nowhere else."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times

NONE = ("--intercept", "none")


def hints(result) -> list:
    return [line for line in result.err.splitlines() if line.startswith("hint: ")]


@pytest.fixture
def centred(tmp_path):
    """Path of a file whose rows lie around the origin, and whose features are alike."""
    X, y = clouds()
    path = tmp_path / "centred.libsvm"
    path.write_text(libsvm_text((X - X.mean(axis=0)) / X.std(axis=0), y))
    return path


def test_data_that_want_nothing(call, centred):
    assert hints(call("svm", centred, "--grid", 6, "-o", "r")) == []


def test_features_of_different_size(call, data, tmp_path):
    X, y = clouds(300, 4)
    wide = tmp_path / "wide"
    wide.write_text(libsvm_text((X - X.mean(axis=0)) * [1e3, 1e-2, 1.0, 1.0], y))
    grid = ("--cmin", 1, "--cmax", 10, "--grid", 6)
    (said,) = hints(call("svm", wide, *grid, "-o", "a"))
    assert "hardly anything was screened" in said and "--scale standard" in said and "`" not in said
    (said,) = hints(call("svm", wide, *grid, "-o", "b", "--storage", "sparse"))
    assert "--scale maxabs" in said
    wide.write_text(libsvm_text((X - X.mean(axis=0)) * [100.0, 1.0, 1.0, 1.0], y))
    common = ("svm", wide, *grid, "-o", "c", "--force")
    assert hints(call(*common)) and not hints(call(*common, "--storage", "sparse"))  # as rare words are
    for more in (["--scale", "standard"], ["--rule", "none"], ["--quiet"], ["--grid", 3]):
        assert hints(call("svm", wide, *grid, *more, "-o", "c", "--force")) == []


def test_the_best_step_at_an_end(call, centred):
    def said(*more):
        return hints(call("svm", centred, *NONE, "--test", centred, "--grid", 6, *more, "-o", "r", "--force"))

    (one,) = said("--cmin", 0.01, "--cmax", 0.053)
    assert "C at the upper end of the grid: --cmax 0.53 may" in one
    scores = [float(row["test_accuracy"]) for row in read_csv("r/steps.csv")]
    assert scores[5] > max(scores[:5])
    assert said("--cmin", 1e-5, "--cmax", 1e-4) == []  # all of them are as good
    listed = "0.01,0.015,0.017,0.02,0.053"
    result = call("svm", centred, *NONE, "--test", centred, "--c-list", listed, "-o", "r", "--force")
    assert any("a wider grid may hold" in one for one in hints(result))
    assert hints(call("svm", centred, "--grid", 6, "--cmin", 0.01, "--cmax", 0.053, "-o", "r", "--force")) == []


def test_no_intercept(call, centred, tmp_path):
    X, y = clouds()
    off = tmp_path / "off"
    off.write_text(libsvm_text((X - X.mean(axis=0)) / X.std(axis=0) + 5.0, y))
    for more in (NONE, [*NONE, "--storage", "sparse"]):
        (said,) = hints(call("svm", off, "--grid", 2, *more, "-o", "r", "--force"))
        assert "no intercept" in said and "--intercept free or --bias 1 may" in said
    for more in ([], ["--bias", 1], [*NONE, "--scale", "standard"], [*NONE, "--kernel", "rbf"]):
        assert hints(call("svm", off, "--grid", 2, *more, "-o", "r", "--force")) == []
    assert hints(call("l1svm", off, "--grid", 2, "-o", "r", "--force")) == []
    (said,) = hints(call("sparse-svm", off, *NONE, "--betas", 1, "--alphas", 2, "-o", "r", "--force"))
    assert "origin: --intercept free or --bias 1 may" in said
    several = tmp_path / "several"
    several.write_text(libsvm_text((X - X.mean(axis=0)) / X.std(axis=0) + 5.0, np.arange(y.size) % 3))
    (said,) = hints(call("sparse-svm", several, "--betas", 1, "--alphas", 2, "-o", "r", "--force"))
    shown = " ".join(call("show", "r", "--step", 1).out.split())
    assert "origin: --bias 1 may" in said and "(--bias B adds one)" in shown


@pytest.mark.parametrize(
    "model", ["lad", "svr", pytest.param("quantile", marks=pytest.mark.wide_only)]
)
def test_no_intercept_though_the_targets_of_a_regression_are_far_from_0(call, tmp_path, model):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4))
    X -= X.mean(axis=0)
    y = X @ [20.0, -30.0, 5.0, 0.0] + rng.normal(size=60)
    for name, targets in (("off", y - y.mean() - 152.0), ("centred", y - y.mean()), ("wide", y - y.mean() + 10.0)):
        lines = zip(targets.tolist(), libsvm_text(X, np.zeros(60)).splitlines(), strict=True)
        (tmp_path / name).write_text("".join(f"{t!r}{line[line.index(' ') :]}\n" for t, line in lines))
    common = ("--grid", 2, "-o", "r", "--force")
    for more in (NONE, [*NONE, "--scale", "standard"]):  # whose shift of the rows is no intercept
        (said,) = hints(call(model, "off", *common, *more))
        assert "the targets lie around -152: --intercept free may fit them better" in said
        for name in ("centred", "wide"):
            assert hints(call(model, name, *common, *more)) == []
    for more in ([], ["--bias", 1], ["--intercept", "penalised"]):
        assert hints(call(model, "off", *common, *more)) == []
    (said,) = hints(call("cv", model, "off", *NONE, *common, "--folds", 2))
    assert "--intercept free" in said
    (tmp_path / "weights").write_text("1\n" * 60)
    assert hints(call(model, "off", *NONE, *common, "--weights", "weights"))
    level = {"quantile": ("--tau-list", "0.2,0.5"), "svr": ("--epsilon-list", "5,1")}.get(model)
    for name in ("off", "centred") if level else ():
        result = call(model, name, *NONE, *common[2:], "--c", 1, *level)
        assert result.code == 0 and len(hints(result)) == (name == "off")


def test_targets_of_a_regression(call, tmp_path):
    rng = np.random.default_rng(0)
    data = tmp_path / "targets"
    data.write_text("".join(f"{t!r} 1:{x!r}\n" for t, x in rng.normal(size=(30, 2)).tolist()))
    result = call("svm", data, "-o", "r")
    assert result.code == 1 and "lad, svr or quantile" in result.err
    for command in (["svm", "--one-vs-rest", "--c", 1], ["sparse-svm", "--betas", 1, "--alphas", 1]):
        result = call(command[0], data, *command[1:], "-o", "r", "--force")
        assert hints(result)[0].startswith("hint: 30 labels look like the targets of a regression: see lad")
        assert call(command[0], data, *command[1:], "-o", "r", "--force", "--quiet").err == ""
    data.write_text("".join(f"{k % 3} 1:{x!r}\n" for k, x in enumerate(rng.normal(size=30).tolist())))
    result = call("svm", data, "-o", "r")
    assert result.code == 1 and "lad" not in result.err and "--one-vs-rest" in result.err
    data.write_text("".join(f"{k} 1:{k}\n" for k in range(40)))
    assert "for targets of a regression use lad, svr or quantile" in call("svm", data, "-o", "r").err


def test_query_ids_are_ignored_and_said(call, data, tmp_path):
    queries = tmp_path / "queries"
    queries.write_text("\n".join(line.replace(" ", " qid:3 ", 1) for line in data.read_text().splitlines()) + "\n")
    for command in (["svm"], ["cv", "svm", "--folds", 2]):
        result = call(*command, queries, "--grid", 2, "-o", "r", "--force")
        assert result.code == 0 and result.err.count("query ids (qid:) are ignored") == 1
        assert "qid" not in call(*command, queries, "--grid", 2, "-o", "r", "--force", "--quiet").err


def test_the_summary_names_the_best_score(call, data):
    result = call("svm", data, "--grid", 6, "--test", data, "-o", "r", "--scale", "standard")
    scores = [float(row["test_accuracy"]) for row in read_csv("r/steps.csv")]
    best = int(np.argmax(scores))
    line = next(line for line in result.err.splitlines() if line.startswith("best on test data"))
    assert f"accuracy {scores[best]:.6g} at step {best} (C = " in line
    assert "best on test data" in call("svm", data, "--grid", 3, "--test", data, "-o", "-").err
    assert "best on test data" not in call("svm", data, "--grid", 3, "-o", "-").err
    result = call("cv", "svm", data, "--grid", 3, "--folds", 3, "--test", data, "-o", "c")
    chosen = next(row for row in read_csv("c/steps.csv") if row["step"] == [
        one["step"] for one in read_csv("c/cv.csv") if one["best"] == "1"
    ][0])  # fmt: skip
    line = next(line for line in result.err.splitlines() if line.startswith("best, on test data"))
    assert f"accuracy {float(chosen['test_accuracy']):.6g} at step {chosen['step']} (C = " in line


def test_the_best_score_of_a_resumed_run(call, data):
    options = ("--grid", 40, "--test", data, "-o", "r", "--scale", "standard", "--time-limit")
    assert call("svm", data, *options, 1e-9).code == 3
    result = call("svm", data, *options, 500, "--resume")
    whole = call("svm", data, "--grid", 40, "--test", data, "-o", "w", "--scale", "standard")
    lines = [next(line for line in one.err.splitlines() if line.startswith("best on")) for one in (result, whole)]
    assert lines[0] == lines[1]


def test_a_cross_validation_at_an_end_says_what_to_type(call, centred):
    result = call("cv", "svm", centred, "--folds", 3, "--c-list", "1e-6,0.05", "-o", "r", "--seed", 0)
    assert "warning" in result.err and "a wider grid may" in result.err
    result = call("cv", "svm", centred, "--folds", 3, "--cmin", 1e-6, "--cmax", 0.05, "--grid", 2, "-o", "s")
    end = "--cmax 0.5, or --until-turn, may" if "upper end" in result.err else "--cmin 1e-07 may"
    assert end in result.err and "hint" not in result.err
    result = call("cv", "svm", centred, "--folds", 3, "--cmin", 0.01, "--cmax", 0.05, "--grid", 9, "-o", "e")
    assert "one standard error  step 0 " in result.err and "best                step 0 " not in result.err
    assert "one-se has C at the lower end of the grid: --cmin 0.001 may hold a simpler one" in result.err


def test_sparse_rows_that_are_filled_are_said_and_have_the_numbers_of_dense_ones(call, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 20)) < 0.1, rng.normal(size=(80, 20)), 0.0)
    (tmp_path / "thin").write_text(libsvm_text(X, np.arange(80) % 2))
    standard = ("--scale", "standard", "--grid", 3, "-o")
    assert "kept dense" not in call("svm", "thin", *standard, "small").err
    monkeypatch.setattr("screenpath.inputs.load.TOLD", 0.0)
    for command in (("svm",), ("cv", "svm")):
        result = call(*command, "thin", *standard, "filled", "--force")
        assert result.code == 0 and "--scale standard subtracts the mean: the rows are kept dense" in result.err
        assert call(*command, "thin", *standard, "dense", "--force", "--storage", "dense").code == 0
        assert without_times("filled/steps.csv") == without_times("dense/steps.csv")
    monkeypatch.setattr("screenpath.inputs.load.FILLED", 0.0)
    result = call("svm", "thin", *standard, "none")
    assert result.code == 2 and "would fill these sparse rows" in result.err and "--scale maxabs" in result.err


@pytest.mark.parametrize(
    "options", [[], ["--kernel", "poly"], ["--storage", "sparse"]], ids=["linear", "kernel", "sparse"]
)
@pytest.mark.parametrize("what", ["column", "row"])
def test_columns_and_rows_that_are_decades_apart_are_named(call, what, options):
    X = np.array([[1.0, 2.0], [-2.0, 1.5], [1.5, -1.0], [3.0, 4.0]])
    if "sparse" in options and what == "row":  # more columns than rows
        X = np.hstack([X, np.zeros((4, 3)), X[:, :1]])
    X = X * [1e9, 1e-9] if what == "column" else X * np.array([[1e9], [1.0], [1e-9], [1.0]])
    Path("apart").write_text(libsvm_text(X, [1, -1, 1, -1]))
    result = call("svm", "apart", "--tol", "1e-15", "--max-epochs", "1", "--grid", "3", "-o", "run", *options)
    (hint,) = (line for line in hints(result) if "decades" in line)
    ends = ("column 2", "column 1") if what == "column" else ("row 3", "row 1")
    assert result.code == 3 and all(f" in {end}" in hint for end in ends)
    scale = hint.partition("--scale ")[2].split()[0]
    again = call("svm", "apart", "--tol", "1e-15", "--grid", "3", "-o", "scaled", "--scale", scale, *options)
    assert again.code in (0, 3) and "decades" not in again.err


@pytest.mark.parametrize("model", ["l1svm", "sparse-svm", "huber", "lad --penalty l1"])
@pytest.mark.parametrize("how", ["--nonnegative", "--signs signs"])
def test_signs_that_bar_every_feature_are_named(call, tmp_path, model, how):
    """All weights would be negative; where the features say nothing, the error is about these."""
    (tmp_path / "data").write_text("1 1:2 2:3\n2 1:-3 2:-1\n1 1:4 2:1\n2 1:-1 2:-1\n2 1:-5 2:-4\n")
    (tmp_path / "signs").write_text("1\n1\n")
    found = call(*model.split(), "data", *how.split(), "--quiet", "-o", "r")
    assert found.code == 1 and f"{how.split()[0]} bars every feature that could help" in found.err
    assert call(*model.split(), "data", "--quiet", "-o", "r").code == 0
    (tmp_path / "data").write_text("1 1:2\n2 1:2\n1 1:3\n2 1:3\n")
    (tmp_path / "signs").write_text("1\n")
    found = call(*model.split(), "data", *how.split(), "--quiet", "-o", "s")
    assert found.code == 1 and "is 0 but for rounding: no feature" in found.err
