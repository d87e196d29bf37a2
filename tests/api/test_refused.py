"""What functions over runs and files refuse, in Python's words."""


import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.errors import DataError, UsageError
from tests.api.test_runs import QUIET, problem


@pytest.mark.parametrize("model", ["nonsense", "lad-path", None, ["svm"]])
def test_models_that_there_are_not(model):
    for function in (screenpath.rules_of, screenpath.options_of, lambda name: screenpath.run(name, "data")):
        with pytest.raises(UsageError, match=r"there is no model .*\n.*svm, lad, quantile, svr, l1svm, sparse-svm"):
            function(model)


def test_a_path_in_memory_is_no_run(here):
    """Functions over run folders say how to make one; each ended in a TypeError of a library's."""
    X, y = problem("svm")
    path = screenpath.svm_path(X, y, grid=3)
    functions = (
        screenpath.load_run, screenpath.show_run, screenpath.plot_run,
        lambda run: screenpath.report_run(run, "page.html"), lambda run: screenpath.export_run(run, "json", "m.json"),
        lambda run: screenpath.compare_runs([run, run]), lambda run: screenpath.merge_runs([run, run], "both"),
    )  # fmt: skip
    for function in functions:
        with pytest.raises(UsageError, match=r"path is in memory, in no run folder\n.*save\(DIR\), and pass DIR"):
            function(path)
        with pytest.raises(UsageError, match="a run is named by its folder, not by 3"):
            function(3)
    with pytest.raises(UsageError, match="path is in memory, in no run folder\n.*certificate=True"):
        screenpath.verify_certificate(path)


def test_names_of_files_that_are_none(here):
    """Each ended in a TypeError that named no option."""
    X, y = problem("svm")
    path = screenpath.svm_path(X, y, grid=3)
    path.save("run")
    calls = {
        "folder": lambda name: path.save(name), "out": lambda name: screenpath.report_run("run", name),
        "test": lambda name: screenpath.compare_runs(["run"], test=name),
        "data": lambda name: screenpath.convert([name], "out"),
    }  # fmt: skip
    for option, function in calls.items():
        with pytest.raises(UsageError, match=f"`{option}` must be the name of a file or a folder, not 3"):
            function(3)
    for function in (
        lambda: screenpath.plot_run("run", out=3), lambda: screenpath.export_run("run", "json", 3),
        lambda: screenpath.merge_runs(["run", "run"], 3), lambda: screenpath.convert("data", 3),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="`out` must be the name of a file or a folder, not 3"):
            function()


def test_sources_and_lists_that_are_none(here):
    X, y = problem("svm")
    for function in (screenpath.read_data, screenpath.read_libsvm, screenpath.inspect):
        for source in (3, None, ["a"]):
            with pytest.raises(UsageError, match="`source` must be the name of a file or a folder, not "):
                function(source)
    with pytest.raises(UsageError, match="`data` must be the name of a file or a folder, not 3"):
        screenpath.convert(3, "out")
    for function in (screenpath.compare_runs, lambda paths: screenpath.merge_runs(paths, "out")):
        for paths in ("run", 3, None):
            with pytest.raises(UsageError, match="`paths` must be a list of runs, not "):
                function(paths)
    with pytest.raises(UsageError, match="`path` must be the name of a file or a folder, not 3"):
        screenpath.write_libsvm(3, X, y)
    for rows in (3.0, [1.0, 2.0], "rows", [["a"]]):
        with pytest.raises(DataError, match="rows are numbers in two dimensions, not "):
            screenpath.write_libsvm("text", rows, y)
    with pytest.raises(DataError, match=r"60 rows with labels of shape \(\)"):
        screenpath.write_libsvm("text", X, None)
    for ends in (("a", 1.0, 0.1), (0.1, None, 0.1), (0.1, 1.0, [0.1])):
        with pytest.raises(UsageError, match="ends and accuracy of an eps-path are numbers"):
            screenpath.EpsilonGrid(*ends)
    run = screenpath.run("svm", (X, y), grid=2, out="run", **QUIET)
    with pytest.raises(UsageError, match="`top` must be a whole number of at least 0, not 'all'"):
        screenpath.show_run(run, top="all")
    with pytest.raises(UsageError, match="`class_weight` must be a text, or a list of texts"):
        screenpath.run("svm", (X, y), class_weight=[1.0, 2.0], out="other", **QUIET)


def test_a_table_alone_is_no_data(here):
    """Its truth value is ambiguous, said pandas."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    X, y = problem("svm")
    whole = pandas.DataFrame(X, columns=list("abcd")).assign(label=y)
    pair = whole[list("abcd")], whole["label"]
    for call_it in (
        lambda: screenpath.run("svm", whole, out="r", **QUIET),
        lambda: screenpath.cross_validate("svm", whole, out="r", **QUIET), lambda: screenpath.compare("svm", whole),
        lambda: screenpath.run("svm", pair, test=whole, out="r", **QUIET),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"must be a pair of arrays, \(X, y\), .*, not DataFrame\n.*LABELS"):
            call_it()
    with pytest.raises(DataError, match="`data` must be a pair .*, not ndarray"):
        screenpath.run("svm", X, out="r", **QUIET)
    assert screenpath.run("svm", pair, test=pair, grid=2, out="r", **QUIET).certified


def test_a_path_of_other_data_is_not_saved(here):
    X, y = problem("svm")
    for path in (
        lambda X: screenpath.svm_path(X, y, grid=3, scale="standard"), lambda X: screenpath.l1_svm_path(X, y, grid=4),
        lambda X: screenpath.sparse_svm_path(X, y, betas=2, alphas=2),
        lambda X: screenpath.kernel_svm_path(X, y, grid=2),
    ):  # fmt: skip
        for form in (np.array, np.asfortranarray, sp.csr_array):
            rows = form(X)
            found = path(rows)
            found.save("r", force=True)
            (rows.data if sp.issparse(rows) else rows)[-1:] *= 1.5
            with pytest.raises(UsageError, match="the data have changed"):
                found.save("r", force=True)
    for path, name in ((screenpath.svm_path, "sample_weight"), (screenpath.l1_svm_path, "penalty_weights")):
        weights = np.ones(60 if name == "sample_weight" else 4)
        found = path(X, y, grid=3, scale="standard", **{name: weights})
        weights[::2] = 5.0  # theirs who gave them: the path has its own
        found.save("r", force=True)
        np.testing.assert_array_equal(screenpath.load_run("r").coefficients, found.coefficients)
    targets = X @ [1.0, 2.0, 0.0, 1.0]
    found = screenpath.lad_path(X, targets, grid=3)
    targets[:] = -targets
    with pytest.raises(UsageError, match="the data have changed"):
        found.save("r", force=True)


def test_test_data_of_another_width(here):
    """Arrays have no names: rows that lack features, or have more, are not those of the path, as for predict."""
    X, y = problem("svm")
    d = X.shape[1]
    for other in (X[:, :2], np.column_stack([X, X]), sp.csr_matrix(X[:, :2])):
        said = f"the test data are {len(y)} x {other.shape[1]}; the path was computed with {d} features"
        with pytest.raises(DataError, match=said):
            screenpath.run("svm", (X, y), grid=2, test=(other, y), out="r", **QUIET)
    given = {"kernel": "precomputed", "grid": 2, "force": True, "out": "g", **QUIET}
    K = X @ X.T + np.eye(len(y))
    assert "test_accuracy" in screenpath.run("svm", (K, y), test=(K[:5], y[:5]), **given).table()[0]


def test_arrays_where_a_name_belongs(here):
    """Messages name the kind of an array, not all its values; a certificate is not damaged where the data are none."""
    X, y = problem("svm")
    screenpath.write_libsvm("data", X, y)
    run = screenpath.run("svm", "data", grid=2, certificate=True, out="r", **QUIET)
    calls = {
        r"`data` must be .*, not tuple\n.*checked against the file": lambda: screenpath.verify_certificate(run, (X, y)),
        "a run is named by its folder, not by ndarray": lambda: screenpath.verify_certificate(X),
        r"`test` must be .*, not tuple\n.*write_libsvm": lambda: screenpath.compare_runs([run, run], test=(X, y)),
        r"`training` must be .*, not ndarray\n.*\(X, y\)": lambda: screenpath.load_run("r", X),
        "`data` must be .*, not ndarray": lambda: screenpath.convert((X, y), "shards"),
        "`bias` must be .*, not ndarray": lambda: screenpath.svm_path(X, y, bias=X),
        r"`level` must lie between 0 and 1, not 'all'": lambda: screenpath.prediction_intervals(run, X[:2], "all"),
        r"`level` must lie between 0 and 1, not 1.5": lambda: run.loo().intervals(X[:2], 1.5),
    }
    for said, function in calls.items():
        with pytest.raises(UsageError, match=said) as found:
            function()
        assert len(str(found.value)) < 200


def test_names_that_scikit_learn_has_for_an_option():
    X, y = problem("svm")
    with pytest.raises(TypeError, match="did you mean 'weights'"):
        screenpath.run("svm", (X, y), sample_weight=y)
    with pytest.raises(TypeError, match="did you mean 'group_column'"):
        screenpath.cross_validate("svm", (X, y), groups=y)


def test_new_rows_of_a_leave_one_out_are_those_of_predictions(here):
    """A wrong width, nan and columns in another order had counts and intervals of other rows, without a word."""
    pandas = pytest.importorskip("pandas")
    X, y = problem("svm")
    table = pandas.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    run = screenpath.run("svm", (table, y), grid=2, out="r", **QUIET)
    found = run.loo()
    turned = table[table.columns[::-1]]
    for function in (found.intervals, found.removals):
        assert np.array_equal(function(turned), function(X))
        for rows, said in ((X[:, :2], "the new rows are"), (X * np.nan, "nan or infinite"), (X[0], "two dimensions")):
            with pytest.raises(DataError, match=said):
                function(rows)
    assert np.array_equal(found.intervals(turned, 0.8), screenpath.prediction_intervals(run, turned, 0.8))


def test_data_of_a_reduction_and_options_that_are_files(here):
    """Arrays were taken for a name that is too long, and an array of folds ended in Python's own error."""
    X, y = problem("svm")
    run = screenpath.run("svm", (X, y), grid=3, out="r", **QUIET)
    with pytest.raises(DataError, match="computed from arrays, and does not keep them"):
        screenpath.reduce_run("r")
    expected = screenpath.reduce_run(run)  # a run that knows its data
    for given in (screenpath.reduce_run("r", training=(X, y)), screenpath.reduce_run(screenpath.load_run("r", (X, y)))):
        assert np.array_equal(given.weights, expected.weights)
    with pytest.raises(UsageError, match="`low` must be a positive number, not 'a'"):
        screenpath.reduce_run(run, "a")
    with pytest.raises(UsageError, match="`fold_file` must be the name of a file or folder"):
        screenpath.cross_validate("svm", (X, y), fold_file=np.arange(len(y)) % 3)
    with pytest.raises(UsageError, match="`out` must be the name of a file or folder"):
        screenpath.run("svm", (X, y), out=["r"])
