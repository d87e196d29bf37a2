"""What the shell does, from Python: the same options, defaults, files and numbers."""

import inspect
import json
import os
import signal
import threading
import time

import click
import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.catalogue.elastic import NETS
from screenpath.catalogue.options import CELLS
from screenpath.catalogue.specs import SPECS
from screenpath.cli import rules as comparisons
from screenpath.cli.app import cli
from screenpath.cli.models import command_of, make_command
from screenpath.data.shards.convert import convert
from screenpath.engine.studies import study_options
from screenpath.errors import DataError, RunFolderError, UsageError
from screenpath.report.console import Console
from tests.cli.conftest import ROOT, call, clouds, libsvm_text, read_csv, without_times  # noqa: F401 (fixtures)

PAIRS = "sparse-svm", *NETS
MORE = {"quantile": {"tau": 0.3}, "svr": {"epsilon": 0.2}, **dict.fromkeys(PAIRS, {"betas": 2, "alphas": 3})}
QUIET = {"quiet": True}


def three_classes(n=90, seed=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return np.round(rng.normal(size=(n, 4)) + np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0]])[y], 6), y + 1.0


def problem(model):
    X, y = clouds(60, 4, seed=3)
    X = np.round(X, 6)
    if SPECS[model].score != "accuracy":
        y = np.round(X @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(0).standard_t(3, size=60), 2)
    return X, np.asarray(y, dtype=float)


def shell_options(command: click.Command) -> dict:
    """Return the options of a command and what they are where nothing is given."""
    given = command.make_context("x", ["svm", "DATA"][-sum(isinstance(p, click.Argument) for p in command.params) :])
    return {p.name: given.params[p.name] for p in command.params if isinstance(p, click.Option)}


@pytest.mark.parametrize("model", SPECS)
@pytest.mark.parametrize("cv", [False, True])
def test_options_and_defaults_are_those_of_the_shell(model, cv):
    shell = shell_options(make_command(model) if cv else command_of(model))
    python = {name: default for name, (default, _) in screenpath.options_of(model, cv).items()}
    assert set(shell) == set(python)
    for name, default in shell.items():
        assert default == python[name] or (default in (None, ()) and python[name] in (None, ())), name


def keywords(function) -> set:
    known = set(inspect.signature(function).parameters)
    return known | {one.name for one in CELLS if "cells" in known}


def test_options_that_are_no_keywords_are_in_the_guide():
    """It said that all are keywords: generate(out=...) and compare(quiet=True) were TypeErrors."""
    guide = (ROOT / "examples" / "guide" / "python.md").read_text()
    functions = {
        "merge": screenpath.merge_runs, "export": screenpath.export_run, "show": screenpath.show_run,
        "runs": screenpath.compare_runs, "plot": screenpath.plot_run, "report": screenpath.report_run,
        "convert": convert, "inspect": screenpath.inspect, "generate": screenpath.generate,
        "verify": screenpath.verify_certificate,
    }  # fmt: skip
    missing = set()
    for name, function in functions.items():
        options = {p.name for p in cli.get_command(None, name).params if isinstance(p, click.Option)}
        missing |= options - keywords(function) - {"kind"}  # of export: `to`
    shell = {p.name for p in comparisons.study_command("svm").params if isinstance(p, click.Option)}
    missing |= shell - {one.name for one in study_options("svm")}
    shown = {"quiet", "format", "log_format", "terminal", "plot", "explain", "step"}
    assert missing == shown | {"out", "force", "duals", "training"}
    assert all(f"`{name}`" in guide for name in missing)


@pytest.mark.parametrize("model", ["svm", "l1svm", "sparse-svm"])
def test_a_comparison_has_the_options_of_the_shell(model):
    command = comparisons.study_command(model)
    assert {one.name for one in study_options(model)} == set(shell_options(command)) - {
        "format", "out", "plot", "force", "quiet", "log_format",
    }  # fmt: skip


@pytest.mark.parametrize("model", SPECS)
def test_a_run_is_the_command(here, call, model):  # noqa: F811
    X, y = problem(model)
    (here / "data").write_text(libsvm_text(X, y))
    options = {**({} if model in PAIRS else {"grid": 5}), **MORE.get(model, {})}
    flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert call(model, "data", *flags, "-o", "shell", "--quiet").code == 0
    path = screenpath.run(model, here / "data", out=here / "python", **options, **QUIET)
    assert path.certified and path.model == model and len(path) == len(read_csv("shell/steps.csv"))
    assert without_times("shell/steps.csv") == without_times("python/steps.csv")
    assert (here / "shell/coefficients.csv").read_bytes() == (here / "python/coefficients.csv").read_bytes()
    arrays = screenpath.run(model, (sp.csr_array(X), y), out="arrays", **options, **QUIET)
    assert (here / "shell/coefficients.csv").read_bytes() == (here / "arrays/coefficients.csv").read_bytes()
    assert json.loads((here / "arrays/run.json").read_text())["data"]["path"] == "arrays"
    np.testing.assert_array_equal(arrays.coefficients, path.coefficients)
    assert call("predict", "shell", "data", "--step", "2", "-o", "told").code == 0
    column = "label" if path.labels else "value"
    told = [float(row[column]) for row in read_csv("told")]
    np.testing.assert_array_equal(path.predict(X, 2), told)
    again = screenpath.load_run("python")
    assert again.table() == path.table() and repr(again) == repr(path)
    assert repr(again.run) == f"<Run: {again.model} in {again.folder}, {len(path)} steps>"
    assert again["primal"].tolist() == [row["primal"] for row in path.table()]
    assert f"{len(path)} of {len(path)} steps certified" in repr(path)


FUNCTIONS = {
    "svm": lambda X, y: screenpath.svm_path(X, y, grid=4, bias=1.0, scale="standard"),
    "lad": lambda X, y: screenpath.lad_path(X, y, grid=4, bias=1.0, scale="standard"),
    "l1svm": lambda X, y: screenpath.l1_svm_path(X, y, grid=4, scale="standard"),
}


@pytest.mark.parametrize("model", FUNCTIONS)
def test_a_run_and_a_function_agree(here, model):
    X, y = problem(model)
    bias = {} if model == "l1svm" else {"bias": 1.0}
    stored = screenpath.run(model, (X, y), grid=4, scale="standard", storage="dense", out="r", **bias, **QUIET)
    made = FUNCTIONS[model](X, y)
    np.testing.assert_array_equal(stored.grid, made.grid)
    np.testing.assert_allclose(stored.coefficients, made.coefficients, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(stored.intercepts, made.intercepts, rtol=1e-12, atol=1e-12)
    at = {next(iter(made.steps[1].parameters)): made.grid[1]}
    np.testing.assert_array_equal(stored.support(**at), made.support(**at))
    np.testing.assert_allclose(stored.decision_function(X, **at), made.decision_function(X, **at), atol=1e-12)


def test_lists_have_the_forms_of_functions_and_of_the_shell(here):
    X, y = clouds(30, 3)
    found = [
        screenpath.run("svm", (X, y), out=f"r{k}", quiet=True, **grid).table()
        for k, grid in enumerate(({"grid": [0.1, 1.0]}, {"grid": np.array([0.1, 1.0])}, {"c_list": "0.1,1"}))
    ]
    assert [[row["C"] for row in table] for table in found] == [[0.1, 1.0]] * 3
    two = screenpath.run("huber", (X, X[:, 0]), betas=[0.1], alphas=[0.1, 0.01], out="huber", quiet=True)
    assert [row["alpha"] for row in two.table()] == [0.1, 0.01]
    rows = screenpath.compare("svm", (X, y), rules=["none", "dvi"], grid=[0.1, 1.0], repeats=1)
    assert [row["rule"] for row in rows] == ["none", "dvi"]
    with pytest.raises(TypeError, match="did you mean 'folds'"):
        screenpath.cross_validate("svm", (X, y), cv=5)
    with pytest.raises(UsageError, match="`grid` and `c_list` both list the values"):
        screenpath.run("svm", (X, y), grid=[0.1], c_list=[0.1])


def test_kernels_classes_and_wide_data(here):
    X, y = problem("svm")
    path = screenpath.run("svm", (X, y), kernel="rbf", gamma=0.5, grid=3, out="k", **QUIET)
    made = screenpath.kernel_svm_path(X, y, kernel="rbf", gamma=0.5, grid=3)
    np.testing.assert_array_equal(path.coefficients, made.dual_coefficients)
    np.testing.assert_array_equal(path.support(), made.support())
    (here / "data").write_text(libsvm_text(X, y))
    path = screenpath.run("svm", "data", kernel="rbf", gamma=0.5, grid=3, out="k2", **QUIET)
    np.testing.assert_allclose(path.decision_function(X, 1), made.decision_function(X, 1), rtol=1e-12)
    X3, y3 = three_classes()
    path = screenpath.run("svm", (X3, y3), one_vs_rest=True, grid=3, bias=1.0, out="c", **QUIET)
    assert path.coefficients.shape == (3, 3, 4) and path.intercepts.shape == (3, 3) and path.coef(0).shape == (3, 4)
    assert np.mean(path.predict(X3) == y3) > 0.7 and set(path.predict(X3)) <= {1.0, 2.0, 3.0}
    wide = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [5, 7, 5, 999_999_99])), shape=(4, 100_000_000))
    path = screenpath.run("svm", (wide, [1, -1, 1, -1]), grid=2, out="w", **QUIET)
    assert path.coefficients.shape == (2, 100_000_000) and path.support(0).tolist() == [5, 7, 99_999_999]
    assert path.predict(wide).tolist() == [1, -1, 1, -1]


def test_cross_validation_is_the_command(here, call):  # noqa: F811
    X, y = problem("svm")
    (here / "data").write_text(libsvm_text(X, y))
    assert call("cv", "svm", "data", "--grid", "4", "--folds", "3", "--certify", "-o", "shell", "--quiet").code == 0
    path = screenpath.cross_validate("svm", (X, y), grid=4, folds=3, certify=True, out="python", **QUIET)
    for name in ("cv.csv", "bounds.csv"):
        assert (here / "shell" / name).read_bytes() == (here / "python" / name).read_bytes()
    chosen = json.loads((here / "python/cv.json").read_text())
    assert path.best() == chosen["best"]["step"] and path.best(one_se=True) == chosen["one_se"]["step"]
    assert path.certified and path[0].cv_accuracy > 0.5 and np.isfinite(path[0].cv_accuracy_se)


def test_the_step_of_a_cross_validation_is_the_best_as_in_the_shell(here, call):  # noqa: F811
    X, y = clouds(60, 4, seed=6)
    X = np.round(X, 6)
    (here / "data").write_text(libsvm_text(X, y))
    how = {"intercept": "none", "grid": 6, "cmin": 1e-4, "cmax": 100.0}
    path = screenpath.cross_validate("svm", "data", folds=3, out="r", **how, **QUIET)
    best, one_se, last = path.best(), path.best(one_se=True), len(path) - 1
    assert len({best, one_se, last}) == 3
    forms = [path.decision_function(X, step=k) for k in (best, one_se)]
    for found, step in ((path, {}), (screenpath.load_run("r"), {"step": "best"})):
        assert np.array_equal(found.decision_function(X, **step), forms[0])
        assert np.array_equal(found.coef(**step), path.coef(best)) and found.intercept(**step) == path.intercept(best)
        assert np.array_equal(found.duals(**step).values, path.duals(best).values)
    assert np.array_equal(path.decision_function(X, "one-se"), forms[1])
    assert path.position(f"C={path[0].C:.8g}") == 0 and path.position("3") == 3 == path.position(3)
    printed = call("predict", "r", "data", "--quiet", "-o", "-").out.split()
    assert printed[1:] == [f"{label:g}" for label in path.predict(X)]
    with pytest.raises(UsageError, match="leave one of the two out"):
        path.predict(X, "best", C=1.0)
    plain = screenpath.run("svm", "data", grid=3, out="plain", **QUIET)
    assert plain.position() == 2
    with pytest.raises(UsageError, match="no step is known to be the best"):
        plain.predict(X, step="best")


def test_weights_and_tests_may_be_arrays(here, call):  # noqa: F811
    X, y = problem("svm")
    weights = np.arange(y.size) % 3 + 1.0
    (here / "data").write_text(libsvm_text(X, y))
    (here / "w").write_text("".join(f"{w}\n" for w in weights))
    flags = ["--weights", "w", "--test", "data", "--class-weight", "1=2.5", "--grid", "3", "-o", "shell", "--quiet"]
    assert call("svm", "data", *flags).code == 0
    more = {"weights": weights, "test": (X, y), "class_weight": {1.0: 2.5}, "grid": 3, "audit": True}
    path = screenpath.run("svm", (X, y), out="python", **more, **QUIET)
    assert (here / "shell/coefficients.csv").read_bytes() == (here / "python/coefficients.csv").read_bytes()
    assert [s.test_accuracy for s in path] == [float(row["test_accuracy"]) for row in read_csv("shell/steps.csv")]
    assert [s.unsafe for s in path] == [0, 0, 0] and path.best() in (0, 1, 2)


def test_a_time_limit_leaves_steps_to_resume(here):
    X, y = problem("svm")
    with pytest.raises(RunFolderError, match="no finished step"):
        screenpath.run("svm", (X, y), grid=6, time_limit=1e-9, out="r", **QUIET)
    path = screenpath.run("svm", (X, y), grid=6, out="r", resume=True, **QUIET)
    assert path.certified and len(path) == 6
    assert screenpath.run("svm", (X, y), grid=6, out="r", resume=True, **QUIET).table() == path.table()
    with pytest.raises(RunFolderError, match="`force` to replace it, or `out=r-2`"):
        screenpath.run("svm", (X, y), grid=6, out="r", **QUIET)


def test_ctrl_c_keeps_what_is_finished(here, monkeypatch):
    X, y = problem("svm")
    plain, done = Console.advance, []

    def press(self, step):
        plain(self, step)
        done.append(step)
        if len(done) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    how = {"grid": 8, "rule": "dvi", "solver": "cd", "intercept": "none"}
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(Console, "advance", press)
        with pytest.raises(KeyboardInterrupt):
            screenpath.run("svm", (X, y), **how, out="r", **QUIET)
    assert signal.getsignal(signal.SIGINT) is before
    kept = screenpath.load_run("r")
    assert [step.status for step in kept] == ["certified"] * 3 + ["skipped"] * 5 and not kept.certified
    with pytest.raises(UsageError, match="a signal ended the path"):
        kept.predict(X)
    assert np.isnan(kept.coefficients[3:]).all() and not np.isnan(kept.coefficients[:3]).any()
    path = screenpath.run("svm", (X, y), **how, out="r", resume=True, **QUIET)
    whole = screenpath.run("svm", (X, y), **how, out="whole", **QUIET)
    np.testing.assert_array_equal(path.coefficients, whole.coefficients)


def test_another_thread_has_no_signals(here):
    X, y = problem("svm")
    found = []
    thread = threading.Thread(target=lambda: found.append(screenpath.run("svm", (X, y), grid=2, out="r", **QUIET)))
    thread.start()
    thread.join()
    assert found[0].certified


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gird": 5}, TypeError, "did you mean 'grid'"),
        ({"grid": 0}, UsageError, "`grid` must be a whole number of at least 1 and at most 1000000, not 0"),
        ({"grid": 10**30}, UsageError, "`grid` must be a whole number of at least 1 and at most 1000000, not 10"),
        ({"grid": True}, UsageError, "`grid` must be a whole number"),
        ({"grid": 2.0}, UsageError, "`grid` must be a whole number"),
        ({"cmin": -1}, UsageError, "`cmin` must be a positive number"),
        ({"bias": float("nan")}, UsageError, "`bias` must be a number from -1e150 to 1e150"),
        ({"tol": 1.0}, UsageError, "`tol` must lie between 0 and 1"),
        ({"scale": "maximal"}, UsageError, "`scale` must be one of none, maxabs"),
        ({"c_list": "0.1,x"}, UsageError, "`c_list` must be a list of numbers"),
        ({"audit": "yes"}, UsageError, "`audit` is True or False"),
        ({"max_memory": "much"}, UsageError, "not an amount of memory"),
        ({"test": ""}, UsageError, "`test` must be the name of a file or folder, not ''"),
        ({"chunk_form": "s"}, UsageError, "`chunk_form` needs chunks"),
        ({"gamma": 1}, UsageError, "`gamma` needs a kernel"),
        ({"grid": 3, "c_list": [1.0]}, UsageError, "leave out `grid`"),
        ({"resume": True, "force": True}, UsageError, "`resume` continues a run and `force` replaces it"),
        ({"out": "-"}, UsageError, "`out=-` is the standard output"),
        ({"certificate": True}, UsageError, "the data are arrays"),
    ],
)
def test_errors_speak_python(here, options, error, message):
    with pytest.raises(error) as caught:
        screenpath.run("svm", problem("svm"), **{**QUIET, **options})
    assert message in str(caught.value) and "--" not in str(caught.value)
    assert not (here / "runs").exists()


def test_more_memory_than_the_system_can_count_is_no_limit(here):
    assert screenpath.run("svm", problem("svm"), **{**QUIET, "grid": 2, "max_memory": 10**30}).certified


def test_data_that_are_none(here):
    with pytest.raises(UsageError, match="there is no model 'svn'"):
        screenpath.run("svn", problem("svm"))
    with pytest.raises(DataError, match="a pair of arrays"):
        screenpath.run("svm", (np.ones((3, 2)),), **QUIET)
    with pytest.raises(DataError, match="3 rows but 2 labels"):
        screenpath.run("svm", (np.ones((3, 2)), [1, 2]), **QUIET)
    with pytest.raises(RunFolderError, match="not a run folder"):
        screenpath.load_run("nowhere")


def test_comparisons_pictures_pages_and_model_files(here):
    X, y = problem("svm")
    rows = screenpath.compare("svm", (X, y), rules="none,dvi", grid=3, repeats=1)
    assert [row["rule"] for row in rows] == ["none", "dvi"] and all(row["certified"] == 3 for row in rows)
    rows = screenpath.compare("l1svm", (X, y), configurations="org,default", grid=3, log=True, repeats=1)
    assert [row["configuration"] for row in rows] == ["org", "default"]
    rows = screenpath.compare("sparse-svm", (X, y), rules="none,sifs", betas=2, alphas=2, repeats=1)
    assert [row["rule"] for row in rows] == ["none", "sifs"]
    path = screenpath.run("svm", (X, y), grid=3, test=(X, y), out="r", **QUIET)
    assert screenpath.export_run(path, "json", "m.json", step=1).read_text().startswith("{")
    assert screenpath.export_run("r", "liblinear", "m.model").read_text().startswith("solver_type")
    with pytest.raises(UsageError, match="`force` to replace it"):
        screenpath.export_run(path, "json", "m.json")
    with pytest.raises(UsageError, match="is no format"):
        screenpath.export_run(path, "pmml", "m.pmml")
    assert screenpath.plot_run(path).read_bytes().startswith(b"\x89PNG")
    assert screenpath.report_run(path, "page.html").read_text().lower().startswith("<!doctype html>")
    (here / "data").write_text(libsvm_text(X, y))
    shards = screenpath.convert("data", "shards")
    streamed = screenpath.run("svm", shards, grid=3, storage="sparse", out="s", **QUIET)
    in_memory = screenpath.run("svm", "data", grid=3, storage="sparse", out="m", **QUIET)
    np.testing.assert_array_equal(streamed.coefficients, in_memory.coefficients)
    assert screenpath.inspect("data").data.n == 60


SAVED = {
    "svm": lambda X, y: screenpath.svm_path(X, y, grid=4, bias=1.0, scale="standard", class_weight="balanced"),
    "dense": lambda X, y: screenpath.svm_path(X, y, grid=screenpath.EpsilonGrid(0.01, 1.0, 0.05), tol=1e-3),
    "chunk": lambda X, y: screenpath.svm_path(X, y, grid=4, rule="essnsv", chunk=2, chunk_form="s"),
    "lad": lambda X, y: screenpath.lad_path(X, X @ [1.0, 2.0, 0.0, 1.0], grid=4, sample_weight=np.arange(60) % 2 + 1),
    "quantile": lambda X, y: screenpath.quantile_path(X, X @ [1.0, 2.0, 0.0, 1.0], tau=0.2, grid=[0.1, 2.0]),
    "kernel": lambda X, y: screenpath.kernel_svm_path(X, y, kernel="poly", degree=2, coef0=1.0, grid=3),
    "l1svm": lambda X, y: screenpath.l1_svm_path(X, y, grid=4, log=True, scale="maxabs"),
    "sparse": lambda X, y: screenpath.sparse_svm_path(X, np.arange(60) % 3, betas=2, alphas=2),
    "pairs": lambda X, y: screenpath.sparse_svm_path(X, y, betas=[0.1], alphas=[0.5, 0.1], references=1),
    "cut short": lambda X, y: screenpath.svm_path(X, y, grid=4, time_limit=1e-9),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_path_is_the_path(here, name):
    X, y = problem("svm")
    path = SAVED[name](X, y)
    if name == "cut short":
        with pytest.raises(UsageError, match="no step was reached"):
            path.save("r")
        with pytest.raises(UsageError, match="nothing to draw: no step was reached"):
            path.plot()
        return
    path.save("r")
    stored = screenpath.load_run("r")
    assert stored.certified
    names = ("status", "primal", "dual", "gap", "n_R", "n_E", "n_survivors", "epochs", "passes", "solve_s")
    for kept, made in zip(stored.table(), path.table(), strict=True):
        assert {name: kept[name] for name in names} == {name: made[name] for name in names}
    np.testing.assert_array_equal(stored.grid, path.grid)
    np.testing.assert_array_equal(stored.support(1), path.support(1))
    if name != "kernel":
        np.testing.assert_array_equal(stored.coef(1), path.coef(1))
        np.testing.assert_allclose(stored.predict(X, 1), path.predict(X, 1), rtol=1e-12)
    with pytest.raises(UsageError, match="in a run folder already"):
        stored.save("again")
    with pytest.raises(RunFolderError, match="already: .*\n.*`force` to replace it"):  # save() resumes nothing
        path.save("r")
    path.save("r", force=True)


def test_a_folder_that_cannot_be_made(here, call):  # noqa: F811
    """The system's error came as it was, without the name of a remedy."""
    X, y = problem("svm")
    with pytest.raises(RunFolderError, match="cannot be made: .*\n.*choose another folder"):
        screenpath.svm_path(X, y, grid=2).save("x" * 300)
    (here / "data").write_text(libsvm_text(X, y))
    found = call("svm", "data", "--grid", 2, "-o", "x" * 300)
    assert found.code == 1 and "cannot be made: File name too long\n  choose another folder" in found.err


def test_a_run_in_words(tmp_path):
    (tmp_path / "two").write_text(libsvm_text(*clouds()))
    run = screenpath.run("svm", tmp_path / "two", grid=3, out=tmp_path / "r", quiet=True)
    found = screenpath.show_run(run, step="C=10", top=2)
    assert str(found) == str(screenpath.show_run(tmp_path / "r", 2, 2)) and len(found.features) == 2
    assert found.step["step"] == 2 and (found.certified, found.asked) == (3, 3)
    assert "svm on two" in str(found)
