"""Tables of pandas, polars and pyarrow wherever Python functions take rows, and what becomes of their names."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import screenpath
from screenpath.data.files.arrays import is_table
from screenpath.errors import DataError, RunFolderError, UsageError
from screenpath.store.record import _check_entries
from tests.cli.conftest import clouds
from tests.conftest import HANGS, ROOT

NAMES = ("age", "height in $", "[red]weight", "x" * 40)
LIBRARIES = ("pandas", "polars", "pyarrow")


def table(library, columns):
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


@pytest.fixture
def data():
    return clouds(60, 4, seed=1)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_path_function_takes_tables(data, library):
    X, y = data
    frame = table(library, dict(zip(NAMES, X.T, strict=True)))
    assert is_table(frame) and not is_table(X) and not is_table(X.tolist())
    for function, options in (
        (screenpath.svm_path, {"grid": [0.1, 1.0]}), (screenpath.lad_path, {"grid": [0.1, 1.0]}),
        (screenpath.l1_svm_path, {"grid": 3}), (screenpath.sparse_svm_path, {"betas": 2, "alphas": 2}),
        (screenpath.kernel_svm_path, {"grid": [0.1, 1.0]}),
    ):  # fmt: skip
        plain, found = function(X, y, **options), function(frame, y, **options)
        assert found.feature_names == NAMES and plain.feature_names is None
        assert np.array_equal(found.coef(), plain.coef())
        assert np.array_equal(found.decision_function(frame), plain.decision_function(X))
        assert np.array_equal(found.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_types_of_columns(library):
    y = [1, -1, 1]
    whole = {"a": np.array([1, 2, 3], dtype=np.int8), "b": [True, False, True], "c": np.array([0.5, 1, 2], dtype="f4")}
    path = screenpath.svm_path(table(library, whole), y, grid=[1.0])
    assert np.array_equal(path.coef(), screenpath.svm_path([[1, 1, 0.5], [2, 0, 1], [3, 1, 2]], y, grid=[1.0]).coef())
    with pytest.raises(DataError, match="the column 'b' holds String, not numbers"):
        screenpath.svm_path(table(library, {"a": [1.0, 2.0, 3.0], "b": ["u", "v", "w"]}), y)
    with pytest.raises(DataError, match="nan or infinite"):
        screenpath.svm_path(table(library, {"a": [1.0, None, 3.0]}), y)


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_of_new_rows_are_found_by_their_names(data, library):
    X, y = data
    columns = dict(zip(NAMES, X.T, strict=True))
    turned = table(library, dict(reversed(columns.items())))
    more = table(library, {"name": ["text"] * 60, **dict(reversed(columns.items()))})
    for function, options in (
        (screenpath.svm_path, {"grid": [1.0], "scale": "standard"}), (screenpath.kernel_svm_path, {"grid": [1.0]}),
        (screenpath.sparse_svm_path, {"betas": [0.01], "alphas": [0.1]}),
    ):  # fmt: skip
        path = function(table(library, columns), y, **options)
        expected = path.decision_function(X)
        assert np.array_equal(path.decision_function(turned), expected)
        with pytest.warns(UserWarning, match="does not use are ignored: name$"):
            assert np.array_equal(path.decision_function(more), expected)
        for few in (dict(list(columns.items())[:3]), {**dict(list(columns.items())[:3]), "other": X[:, 3]}):
            with pytest.raises(DataError, match="are missing: .*\n.*found by their names, in any order"):
                path.predict(table(library, few))


def test_no_two_columns_have_one_name(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    with pytest.raises(DataError, match="columns 1 and 2 of the table have the name 'a'"):
        screenpath.svm_path(pandas.DataFrame(X[:, :2], columns=["a", "a"]), y)


def test_a_run_keeps_the_names(data, tmp_path, capsys):
    polars = pytest.importorskip("polars")
    X, y = data
    frame = polars.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    run = screenpath.run("svm", (frame, y), grid=3, test=(frame, y), out=tmp_path / "run", quiet=True)
    assert run.feature_names == NAMES and screenpath.load_run(run.folder).feature_names == NAMES
    assert run.predict(frame).tolist() == run.predict(X).tolist()
    turned = frame.select(NAMES[::-1])
    assert run.predict(turned).tolist() == run.predict(X).tolist()
    other = screenpath.run("svm", (frame, y), grid=3, test=(turned, y), out=tmp_path / "other", quiet=True)
    assert [step.test_accuracy for step in other] == [step.test_accuracy for step in run]
    with pytest.raises(DataError, match="are missing: height in .*"):
        short = frame.select([NAMES[0], *NAMES[2:]])
        screenpath.run("svm", (frame, y), grid=3, test=(short, y), out=tmp_path / "short", quiet=True)
    path = screenpath.svm_path(frame, y, grid=3)
    path.save(tmp_path / "saved")
    assert screenpath.load_run(tmp_path / "saved").feature_names == NAMES
    plain = screenpath.run("svm", (X, y), grid=3, out=tmp_path / "plain", quiet=True)
    assert plain.feature_names is None and np.array_equal(plain.coefficients, run.coefficients)
    screenpath.export_run(run, "json", tmp_path / "model.json", step=0)
    assert json.loads((tmp_path / "model.json").read_text())["feature_names"] == list(NAMES)
    screenpath.export_run(plain, "json", tmp_path / "plain.json", step=0)
    assert "feature_names" not in json.loads((tmp_path / "plain.json").read_text())
    screenpath.write_libsvm(tmp_path / "text", frame, y)
    assert np.array_equal(screenpath.read_libsvm(tmp_path / "text").X.toarray(), X)
    cv = screenpath.cross_validate("svm", (frame, y), grid=3, folds=3, out=tmp_path / "cv", quiet=True)
    assert cv.feature_names == NAMES
    command = [sys.executable, "-m", "screenpath", "plot", str(run.folder), "--kind", "coefficients", "--terminal"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGS).stdout
    assert "age" in shown and "[red]weight" in shown


def test_names_stand_in_pictures(data, tmp_path):
    pytest.importorskip("matplotlib")
    pandas = pytest.importorskip("pandas")
    X, y = data
    run = screenpath.run("svm", (pandas.DataFrame(X, columns=NAMES), y), grid=3, out=tmp_path / "run", quiet=True)
    screenpath.plot_run(run, "coefficients", tmp_path / "picture.svg")
    screenpath.report_run(run, tmp_path / "report.html")
    text = (tmp_path / "picture.svg").read_text()
    assert (
        all(name in text for name in ("age", "height in $", "[red]weight", "x" * 23 + "…")) and "feature 1" not in text
    )


def test_names_of_another_number_of_features_are_damage(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data
    run = screenpath.run("svm", (pandas.DataFrame(X, columns=NAMES), y), grid=3, out=tmp_path / "run", quiet=True)
    record = json.loads((run.folder / "run.json").read_text())
    assert record["data"]["feature_names"] == list(NAMES)
    record["data"]["feature_names"].pop()
    with pytest.raises(RunFolderError, match="feature_names"):
        _check_entries(run.folder / "run.json", record)


def test_arrays_need_no_reader_of_tables():
    script = "import sys, screenpath; screenpath.svm_path([[1.0], [2.0]], [1, -1]); print('narwhals' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=HANGS)
    assert done.stdout == "False\n", done


def test_a_table_without_its_reader_is_one_clear_error(monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(UsageError, match="need narwhals") as caught:
        screenpath.svm_path(pandas.DataFrame({"a": [1.0, 2.0]}), [1, -1])
    assert "screenpath[frames]" in caught.value.hint


def test_names_stand_in_words_on_any_terminal(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=["größe", *NAMES[1:]])
    run = screenpath.run("svm", (frame, y), grid=3, out=tmp_path / "run", quiet=True)
    text = str(screenpath.show_run(run))
    assert "größe" in text and NAMES[1] in text and "x" * 24 in text and "x" * 25 not in text
    command = [sys.executable, "-m", "screenpath", "show", str(run.folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, done.stderr) == (0, "") and r"gr\xf6\xdfe" in done.stdout


def test_labels_that_are_texts_in_python(data, tmp_path):
    X, y = data
    texts = np.where(y == y.max(), "yes", "no")
    weights = {"no": 3.0, "yes": 1.0}
    for function, options, own in (
        (screenpath.svm_path, {"grid": [0.1, 1.0]}, {"class_weight": weights}),
        (screenpath.l1_svm_path, {"grid": 3}, {}), (screenpath.sparse_svm_path, {"betas": 2, "alphas": 2}, {}),
        (screenpath.kernel_svm_path, {"grid": [0.1, 1.0]}, {"class_weight": weights}),
    ):  # fmt: skip
        numbers = {"class_weight": {y.min(): 3.0, y.max(): 1.0}} if own else {}
        plain, found = function(X, y, **options, **numbers), function(X, texts.tolist(), **options, **own)
        assert found.labels == ("no", "yes") and np.array_equal(found.coef(), plain.coef())
        assert np.array_equal(found.predict(X) == "yes", plain.predict(X) == y.max())
    path = screenpath.svm_path(X, texts.astype(object), grid=[0.1, 1.0])
    path.save(tmp_path / "run")
    stored = screenpath.load_run(tmp_path / "run")
    assert stored.labels == ("no", "yes") and np.array_equal(stored.predict(X), path.predict(X))
    run = screenpath.run("svm", (X, texts), grid=2, positive="no", out=tmp_path / "other", quiet=True)
    assert run.labels == ("yes", "no")
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for series in (pandas.Series(texts), pandas.Series(texts, dtype="category"), polars.Series(texts.tolist())):
        assert np.array_equal(screenpath.svm_path(X, series, grid=[0.1, 1.0]).coef(), path.coef())
    with pytest.raises(DataError, match="neither all numbers nor all texts"):
        screenpath.svm_path(X, [None, *texts.tolist()[1:]])
    with pytest.raises(DataError, match="the targets are texts"):
        screenpath.lad_path(X, texts)
    with pytest.raises(UsageError, match="among the labels of the data"):
        screenpath.svm_path(X, texts, class_weight={"maybe": 2.0})


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_that_are_no_features(data, library, tmp_path):
    X, y = data
    columns = {"name": ["text"] * 60, **dict(zip(NAMES, X.T, strict=True))}
    frame, plain = table(library, columns), screenpath.svm_path(X[:, 1:], y, grid=[1.0])
    some = {"columns": ["height in $:[red]weight", NAMES[3]]}
    for chosen in ({"drop": "name:age"}, some, {"drop": "/a.*e/,!/[$d]/"}):
        path = screenpath.svm_path(frame, y, grid=[1.0], **chosen)
        assert path.feature_names == NAMES[1:] and np.array_equal(path.coef(), plain.coef())
        with pytest.warns(UserWarning, match="does not use are ignored: name, age$"):
            assert np.array_equal(path.decision_function(frame), plain.decision_function(X[:, 1:]))
    more = {"c_list": [1.0], "test": (frame, y), "out": tmp_path / "run", "quiet": True}
    run = screenpath.run("svm", (frame, y), drop=["name", "age"], **more)
    assert run.feature_names == NAMES[1:] and np.array_equal(run.coef(0), plain.coef())
    with pytest.raises(UsageError, match="no column 'nam'.*\n?.*"):
        screenpath.svm_path(frame, y, drop="nam")
    with pytest.raises(UsageError, match="the data has no names"):
        screenpath.svm_path(X, y, drop="name")


def test_a_column_that_is_missing_is_named_as_the_table_calls_it():
    """Its features are not columns; a table that has the features themselves is read as it is."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 0.5], "b": [0.0, 1.0, 0.0, 2.0], "c": ["u", "v", "w", "u"]})
    path = screenpath.svm_path(frame, [1, 2, 1, 2], grid=[1.0], one_hot="c")
    with pytest.raises(DataError, match=r"lacks columns of the training data: b\n"):
        path.predict(frame[["c", "a"]])
    encoded = pandas.get_dummies(frame, prefix_sep="=", dtype=float)
    assert path.decision_function(encoded).tolist() == path.decision_function(frame).tolist()
