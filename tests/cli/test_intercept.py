"""``--intercept``: a free one works with every command that it is not refused by, and is refused by name elsewhere."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.errors import UsageError
from screenpath.report.console import Console
from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times

SMALL = ("--grid", 4, "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("free")
    X, y = clouds(80, 3, seed=5)
    (folder / "two").write_text(libsvm_text(X + 4.0, y))
    (folder / "real").write_text(libsvm_text(X + 4.0, np.round(X @ [1.0, -1.0, 0.5] + 20.0, 6)))
    for model, data in (("svm", "two"), ("svr", "real")):
        screenpath.run(
            model, folder / data, intercept="free", grid=4, scale="standard", audit=True, test=folder / data,
            out=folder / model,
        )  # fmt: skip
    return folder


def test_the_table_has_both_ends_in_the_units_of_the_file(runs):
    for model in ("svm", "svr"):
        table, record = read_csv(runs / model / "steps.csv"), json.loads((runs / model / "run.json").read_text())
        intercepts = [r for r in read_csv(runs / model / "coefficients.csv") if r["feature"] == "0"]
        assert (
            record["options"]["intercept"] == "free" and "+ b)" in record["objective"] or " - b" in record["objective"]
        )
        for row, found in zip(table, intercepts, strict=True):
            assert row["status"] == "certified" and row["unsafe"] == "0"
            assert float(row["intercept_low"]) - 1e-9 <= float(found["value"]) <= float(row["intercept_high"]) + 1e-9


def test_the_commands_on_a_run(runs, call):
    folder = runs / "svm"
    found = call("predict", folder, runs / "two", "-o", "-", "--step", 3)
    assert found.code == 0 and "accuracy" in found.err
    shown, row = call("show", folder, "--step", 3).out, read_csv(folder / "steps.csv")[3]
    low, high = (f"{float(row[name]):.6g}" for name in ("intercept_low", "intercept_high"))
    assert "in the units of the file" in shown
    assert ("no other is as good" if low == high else f"any from {low} to {high} is as good") in shown
    model = call("export", folder, "--step", 3, "--to", "liblinear", "-o", "-", "--quiet").out.splitlines()
    path = screenpath.load_run(folder)
    assert "bias 1" in model and float(model[-1]) == pytest.approx(float(path.intercepts[3]))
    for command in (("plot", folder, "-o", "rejection.svg"), ("report", folder, "-o", "page.html")):
        assert call(*command).code == 0
    page = Path("page.html").read_text()
    assert ">free<" in page and "constant feature" not in page
    X, y = clouds(80, 3, seed=5)
    assert (path.predict(X + 4.0, step=3) == y).mean() > 0.7
    duals, row = path.duals(step=3), read_csv(folder / "steps.csv")[3]
    assert np.count_nonzero(duals.certified) > 20 and (duals.sides != "E").sum() >= duals.certified.sum()
    assert abs(duals.values.sum()) < 1e-12 * float(row["C"]) * 80  # with their signs they sum to nothing
    w = duals.values @ ((X + 4.0 - (X + 4.0).mean(axis=0)) / X.std(axis=0))
    apart = 2.0 * np.sqrt(2.0 * float(row["gap_target"]))  # of two pairs that are certified, at most
    np.testing.assert_allclose(w / X.std(axis=0), path.coef(step=3), rtol=0.0, atol=apart / X.std(axis=0).min())


def test_a_kernel_run_is_resumed_predicts_and_is_cross_validated(runs, call, monkeypatch, tmp_path):
    own = ("--intercept", "free", "--kernel", "rbf", "--scale", "standard", "--quiet")
    options = ("svm", runs / "two", *own, "--grid", 8, "--test", runs / "two")
    assert call(*options, "-o", "whole").code == 0
    monkeypatch.setattr(Console, "advance", lambda self, done: done.step != 3 or signal.raise_signal(signal.SIGTERM))
    assert call(*options, "-o", "cut").code == 143
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert call(*options, "-o", "cut", "--resume").code == 0
    assert without_times("whole/steps.csv") == without_times("cut/steps.csv")
    assert Path("whole/coefficients.csv").read_bytes() == Path("cut/coefficients.csv").read_bytes()

    table, path = read_csv("whole/steps.csv"), screenpath.load_run("whole")
    X, y = clouds(80, 3, seed=5)
    other = screenpath.kernel_svm_path(X + 4.0, y, grid=8, scale="standard", intercept="free")
    for row, step, b in zip(table, other.steps, path.intercepts, strict=True):
        assert row["status"] == "certified" and float(row["primal"]) == step.primal
        assert float(row["intercept_low"]) <= b == other.intercept(step.step) <= float(row["intercept_high"])
    np.testing.assert_allclose(path.decision_function(X + 4.0), other.decision_function(X + 4.0), rtol=1e-9, atol=1e-9)
    found = call("predict", "whole", runs / "two", "--step", 7)
    assert f"accuracy: {float(table[7]['test_accuracy']):.6g} on 80 rows" in found.err
    shown = call("show", "whole", "--step", 7).out
    assert "intercept free" in shown and f"{path.intercepts[7]:.6g}" in shown
    other.save("saved")
    assert screenpath.load_run("saved").intercepts.tolist() == other.intercepts.tolist()
    found = call("cv", "svm", runs / "two", *own, "--grid", 4, "--folds", 3, "-o", "cv")
    assert found.code == 0 and {row["status"] for row in read_csv("cv/steps.csv")} == {"certified"}


def test_cross_validation_weights_and_eps_path(runs, call):
    found = call("cv", "lad", runs / "real", "--intercept", "free", "--folds", 3, *SMALL, "-o", "cv")
    assert found.code == 0, found.err
    assert {row["status"] for row in read_csv("cv/steps.csv")} == {"certified"}
    found = call("svm", runs / "two", "--intercept", "free", "--eps-path", 0.1, "--class-weight", "balanced", "--quiet")
    assert found.code == 0, found.err
    found = call("quantile", runs / "real", "--tau", 0.9, "--intercept", "free", "--dtype", "float32", "--storage",
                 "sparse", *SMALL)  # fmt: skip
    assert found.code == 0, found.err


def test_each_class_against_the_rest(call):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    X[np.arange(60), y] += 2.0
    with open("three", "w") as file:
        file.write(libsvm_text(X + 10.0, y))
    found = call("svm", "three", "--one-vs-rest", "--intercept", "free", *SMALL, "-o", "run")
    assert found.code == 0, found.err
    table = read_csv("run/steps.csv")
    assert "intercept_low" not in table[0] and {row["status"] for row in table} == {"certified"}
    path = screenpath.load_run("run")
    assert (path.predict(X + 10.0) == y).mean() > 0.8 and np.abs(path.intercepts).min() > 0.0


REFUSED = {
    "rule": ({"rule": "heuristic+gap"}, "unknown rule 'heuristic.gap'"), "solver": ({"solver": "cd"}, "no solver 'cd'"),
    "bias": ({"bias": 1.0}, "leave one of the two out"),
    "kernel rule": ({"kernel": "rbf", "rule": "sieve"}, "no rule 'sieve'"),
    "kernel and bias": ({"kernel": "rbf", "bias": 1.0}, "leave one of the two out"),
    "kernel solver": ({"kernel": "rbf", "solver": "cd"}, "no solver 'cd'"),
    "chunk": ({"chunk": 3, "rule": "dvi"}, "use ssnsv, essnsv"),
    "chunk and heuristic": ({"chunk": 3, "rule": "heuristic"}, "use ssnsv, essnsv"),
    "kernel chunk": ({"chunk": 3, "rule": "dvi", "kernel": "rbf"}, "is for linear models"),
    "chunk form": ({"chunk_form": "s", "rule": "essnsv"}, "`chunk_form` needs chunks"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_refused_by_name(runs, tmp_path, name):
    options, words = REFUSED[name]
    with pytest.raises(UsageError, match=words):
        screenpath.run("svm", runs / "two", intercept="free", out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kernel", [(), ("--kernel", "rbf", "--gamma", 0.2)])
def test_bounds_of_cross_validation(runs, call, kernel):
    options = ("cv", "svm", runs / "two", "--intercept", "free", "--folds", 3, "--grid", 20, *kernel, "--quiet")
    assert call(*options, "--certify-to", 0.2, "-o", "whole").code == 0
    found = json.loads(Path("whole/cv.json").read_text())["certified"]
    assert 0.0 <= found["lower_bound"] <= found["best_error"] and found["difference"] <= 0.2


def test_where_no_weights_help_a_hint_says_so(call):
    X = np.array([[0.0], [0.0], [-1.0], [1.0], [-2.0], [2.0]])
    Path("middle").write_text(libsvm_text(X, [1, 1, -1, -1, -1, -1]))
    found = call("svm", "middle", "--intercept", "free", "--grid", 6)
    assert found.code == 0 and "up to C = 10 an intercept alone is as good as any weights with it: w = 0" in found.err
    assert json.loads(Path("runs/svm-middle/run.json").read_text())["closed_form_until"] > 1e6
    assert {row["solver"] for row in read_csv("runs/svm-middle/steps.csv")} == {"closed-form"}
    found = call("svm", "middle", "--intercept", "free", "--eps-path", 0.1, "-o", "eps")
    assert found.code == 0 and "up to C = 10 an intercept alone" in found.err


def test_a_step_without_a_proof_is_no_reason_to_say_that_no_weights_help(runs, call):
    found = call("svm", runs / "two", "--c", 1e300, "-o", "run")
    assert found.code == 3 and "intercept alone" not in found.err


def test_the_penalised_form_has_two_names(runs, call):
    for name, options in (("one", ("--bias", 1)), ("other", ("--intercept", "penalised"))):
        assert call("svm", runs / "two", *options, *SMALL, "-o", name).code == 0
    tables = [read_csv(f"{name}/coefficients.csv") for name in ("one", "other")]
    assert tables[0] == tables[1]
    found = call("svm", runs / "two", "--intercept", "none", "--bias", 1)
    assert found.code == 2 and "--bias makes a penalised intercept, and --intercept none asks for another" in found.err


def test_one_class_alone_is_a_usage_error():
    X, y = clouds(20, 2)
    with pytest.raises(UsageError, match="two classes"):
        screenpath.svm_path(X, y, intercept="free", sample_weight=(y > 1.0).astype(float))


def test_the_default_is_free_in_shell_and_python(runs, call):
    """``cv`` too; ``none`` and ``bias`` have to be asked for, and a run that had another one is not continued by it."""
    for name, more in (("plain", ()), ("free", ("--intercept", "free")), ("none", ("--intercept", "none"))):
        assert call("svm", runs / "two", *more, *SMALL, "-o", name).code == 0
    plain, free, none = (Path(f"{name}/coefficients.csv").read_bytes() for name in ("plain", "free", "none"))
    assert plain == free != none
    assert call("cv", "lad", runs / "real", "--folds", 3, *SMALL, "-o", "cv").code == 0
    assert json.loads(Path("cv/run.json").read_text())["options"]["intercept"] == "free"
    X, y = clouds(80, 3, seed=5)
    for path in (screenpath.svm_path, screenpath.kernel_svm_path, screenpath.sparse_svm_path):
        assert path(X, y).intercepts.any() and not path(X, y, intercept="none").intercepts.any()
    found = call("svm", runs / "two", *SMALL, "-o", "none", "--resume")
    assert found.code == 1 and 'intercept was "none", now "free"' in found.err
    assert call("svm", runs / "two", "--intercept", "none", *SMALL, "-o", "none", "--resume").code == 0


def test_more_than_two_labels_of_a_sparse_svm_have_none_and_the_run_says_so(call):
    rng, y = np.random.default_rng(2), np.arange(60) % 3
    X = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[y] + 10.0
    Path("three").write_text(libsvm_text(X, y))
    small = ("--betas", 1, "--alphas", 3)
    for words in (("sparse-svm",), ("cv", "sparse-svm"), ("compare-rules", "sparse-svm")):
        found = call(*words, "three", *small, *(("--repeats", 1) if len(words) > 1 and words[0] != "cv" else ()))
        assert found.code == 0 and "here is none (--intercept penalised adds one)" in found.err, found.err
        assert "--intercept free" not in found.err
    assert call("sparse-svm", "three", *small, "--intercept", "none", "-o", "none", "--quiet").code == 0
    for folder in ("runs/sparse-svm-three", "runs/cv-sparse-svm-three"):
        assert json.loads(Path(folder, "run.json").read_text())["options"]["intercept"] == "none"
        assert "--intercept free" not in call("show", folder).out
    assert Path("runs/sparse-svm-three/coefficients.csv").read_bytes() == Path("none/coefficients.csv").read_bytes()
    path = screenpath.sparse_svm_path(X, y, betas=1, alphas=3)
    assert not path.intercepts.any() and call("sparse-svm", "three", *small, "--resume").code == 0
    path.save("saved")
    assert "intercept" in call("sparse-svm", "three", *small, "--intercept", "free", "-o", "free").err


@pytest.mark.parametrize("words", [("svm", "--solver", "cd"), ("compare-rules", "svm", "--start", "cold")])
def test_what_has_no_free_intercept_says_how_to_go_on(runs, call, words):
    model = words[: 1 + (words[0] == "compare-rules")]
    command = (*model, runs / "two", *words[len(model) :], "--grid", 3)
    found = call(*command)
    assert found.code == 2 and "a free intercept, the default," in found.err and "--intercept none" in found.err
    assert call(*command, "--intercept", "none").code == 0
