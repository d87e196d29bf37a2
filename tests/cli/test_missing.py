"""Missing values: one notion of them, what takes their place, and where that is learned, kept and applied."""

import csv
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.data.files.cells import fill_of
from screenpath.data.files.libsvm import MARKED
from screenpath.data.files.read import read_data, read_like
from screenpath.errors import DataError, UsageError
from screenpath.numbers import sparse as sp
from tests.cli.conftest import read_csv
from tests.run_folders import seal

GAPS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?", "n/a")
GRID = ("--grid", "4", "--cmax", "1", "--scale", "standard", "--intercept", "free", "--quiet")


def messy(seed=0, n=60):
    """Return rows (age, income, colour) with gaps, and labels that hang on age."""
    rng = np.random.default_rng(seed)
    age, income = np.round(rng.normal(50, 10, n), 1), np.round(rng.exponential(3.0, n), 2)
    labels = np.where(age + rng.normal(0, 5, n) > 50, "yes", "no")
    age[rng.random(n) < 0.2], income[rng.random(n) < 0.1] = np.nan, np.nan
    return age, income, np.array(["red", "blue", ""])[rng.integers(0, 3, n)], labels


def table(path, age, income, colour, labels=None, gap="NA"):
    """Write a table, with or without labels, and return its path."""
    cells = ([gap if np.isnan(one) else repr(float(one)) for one in column] for column in (age, income))
    columns = [*cells, colour] + ([] if labels is None else [labels])
    names = ["age", "income", "colour", "y"][: len(columns)]
    lines = [names, *zip(*columns, strict=True)]
    Path(path).write_text("\n".join(",".join(line) for line in lines) + "\n")
    return path


def read(text, **options):
    return read_data(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize("gap", GAPS)
def test_one_notion_for_numbers_texts_and_labels(gap):
    text = f"a,c,y\n1,u,1\n{gap},v,2\n3,{gap},1\n4,u,{gap}\n"
    with pytest.raises(DataError, match=r"3 columns .*\n *line 3, column 'a': the value is missing"):
        read(text, one_hot="c")
    with pytest.raises(DataError, match=r"line 4, column 'a': the value is missing.*\n.*`missing=drop`.*median`"):
        read(f"a,y\n1,1\n2,2\n{gap},2\n")
    data = read(text, one_hot="c", missing="drop")
    assert data.X.toarray().tolist() == [[1.0, 1.0, 0.0]] and "3 rows that lack a value are left out" in data.notices
    data = read(text, one_hot="c", missing="median", missing_indicator=True)
    assert data.names == ("a", "a is missing", "c=u", "c=v", "c is missing")
    rows = [[1, 0, 1, 0, 0], [np.nan, 1, 0, 1, 0], [3, 0, 0, 0, 1]]
    np.testing.assert_array_equal(data.X.toarray(), rows)
    assert data.notices == ("1 row that lacks a value is left out",)  # without a label there is nothing to learn
    new = read_like(io.BytesIO(f"a,c\n{gap},w\n3,{gap}\n".encode()), form=data.form, labels=MARKED, new=True)
    np.testing.assert_array_equal(new.X.toarray(), [[np.nan, 1, 0, 0, 0], [3, 0, 0, 0, 1]])  # w is new, not missing


def test_further_texts_and_numbers_are_missing():
    data = read("a,b,y\n-999,1,1\n2,none,2\n-999.0,-998,1\n", na=["none", "-999"], missing="zero")
    assert np.isnan(data.X.toarray()).tolist() == [[True, False], [False, True], [True, False]]
    data = read("a;y\n-1.999,5;1\n2,5;2\n", na="-1999.5", missing="zero", decimal=",", thousands=".")
    assert np.isnan(data.X.toarray()).ravel().tolist() == [True, False]
    with pytest.raises(UsageError, match="is no treatment"):
        read("a,y\n1,1\n", missing="1e999")
    with pytest.raises(TypeError, match="no option 'missin'"):
        read("a,y\n1,1\n", missin="drop")
    with pytest.raises(DataError, match="line 2, column 'a': the value is missing: '-999'"):
        read("a,b,y\n-999,1,1\n2,3,2\n", na="-999")


def test_means_and_medians_count_weights_and_zeros():
    X = np.array([[1.0, 0.0], [np.nan, 5.0], [2.0, np.nan], [9.0, 0.0]])
    for rows in (X, sp.csr_array(X)):
        assert fill_of(rows, "mean").tolist() == [4.0, 5.0 / 3.0]
        assert fill_of(rows, "median").tolist() == [2.0, 0.0]
        assert fill_of(rows, "mean", np.array([2.0, 1.0, 1.0, 0.0])).tolist() == [4.0 / 3.0, 5.0 / 3.0]
        assert fill_of(rows, "median", np.array([1.0, 3.0, 1.0, 0.0])).tolist() == [1.5, 5.0]
        assert fill_of(rows, "7").tolist() == [7.0, 7.0] and fill_of(rows, "drop") is None
    assert fill_of(np.full((2, 1), np.nan), "mean").tolist() == [0.0]
    assert np.isfinite(fill_of(np.full((3, 1), 1.5e308), "mean")).all()


def test_a_run_keeps_what_it_filled_in_and_predicts_with_it(call):
    age, income, colour, labels = messy()
    table("train.csv", age, income, colour, labels)
    options = ("--target", "y", "--one-hot", "colour", "--missing", "median")
    assert call("svm", "train.csv", *options, *GRID, "--certificate", "-o", "r").code == 0
    fill = json.loads(Path("r/run.json").read_text())["preparation"]["fill"]
    assert fill[:2] == [np.nanmedian(age), np.nanmedian(income)]
    filled = [np.where(np.isnan(one), value, one) for one, value in zip((age, income), fill, strict=False)]
    some = np.where(colour == "", "none", colour)
    table("whole.csv", *filled, some, labels)
    new = messy(seed=1)
    income_only = np.full(60, np.nan), new[1], new[2]
    for name, columns in (("new.csv", new[:3]), ("age.csv", income_only)):
        table(name, *columns, gap="?")
        whole = [np.where(np.isnan(one), value, one) for one, value in zip(columns[:2], fill, strict=False)]
        table("filled.csv", *whole, columns[2])
        found = call("predict", "r", name, "--step", "C=1", "--decision")
        assert found.code == 0 and found.out == call("predict", "r", "filled.csv", "--step", "C=1", "--decision").out
    assert call("verify", "r", "train.csv").code == 0
    record = json.loads(Path("r/run.json").read_text())
    record["preparation"]["fill"][0] += 1.0
    Path("r/run.json").write_text(json.dumps(record))
    seal(Path("r"))
    refused = call("verify", "r", "train.csv")
    assert refused.code == 1 and "preparation.fill" in refused.err


@pytest.mark.parametrize("how", ["mean", "drop", "2.5"])
def test_certificates_hold_on_tables_with_gaps(call, how):
    table("t.csv", *messy())
    more = () if how == "drop" else ("--missing-indicator",)
    options = ("--target", "y", "--one-hot", "colour", "--missing", how, *more, "--na", "31.7", "--certificate")
    for model in ("svm", "l1svm"):
        own = GRID if model == "svm" else ("--grid", "4", "--quiet")
        assert call(model, "t.csv", *options, *own, "-o", "r", "--force").code == 0
        found = call("verify", "r", "t.csv")
        assert found.code == 0, found.err
        assert ("missing" in found.out) == (how == "mean")  # not covered


def test_values_are_learned_on_the_training_part_of_each_fold(call):
    """The score of a fold is that of a run whose gaps were filled by hand, with the means of the training part."""
    age, income, _, labels = messy(n=90)
    age[:30] += 1000.0  # the mean of all rows would give it away
    fold = np.repeat([0, 1, 2], 30)
    colour = np.full(90, "red")
    table("t.csv", age, income, colour, labels)
    Path("folds").write_text("\n".join(map(str, fold)))
    options = ("--target", "y", "--drop", "colour", "--grid", "3", "--cmax", "1", "--intercept", "free", "--quiet")
    assert call("cv", "svm", "t.csv", *options, "--missing", "mean", "--fold-file", "folds", "-o", "cv").code == 0
    scores = {(row["fold"], row["step"]): float(row["score"]) for row in read_csv("cv/folds.csv")}
    for k in range(3):
        kept = fold != k
        filled = [np.where(np.isnan(one), np.nanmean(one[kept]), one) for one in (age, income)]
        for name, rows in (("train.csv", kept), ("test.csv", ~kept)):
            table(name, *(one[rows] for one in (*filled, colour, labels)))
        assert call("svm", "train.csv", *options, "--test", "test.csv", "-o", "r", "--force").code == 0
        for row in read_csv("r/steps.csv"):
            assert float(row["test_accuracy"]) == scores[str(k), row["step"]]


def test_a_row_that_cannot_be_predicted_has_an_empty_label_and_is_counted(call):
    Path("t.csv").write_text("id,a,c,y\n1,1,u,no\n2,2,v,yes\n3,3,v,yes\n4,0,u,no\n")
    assert call("svm", "t.csv", "--id", "id", "--one-hot", "c", *GRID, "-o", "r").code == 0
    Path("new.csv").write_text("id,a,c,y\n7,,u,no\n8,3,v,yes\n9,1,NA,\n")
    found = call("predict", "r", "new.csv", "--step", "C=1", "--decision")
    rows = list(csv.DictReader(io.StringIO(found.out)))
    assert [(row["id"], row["label"]) for row in rows] == [("7", ""), ("8", "yes"), ("9", "")]
    assert rows[0]["decision"] == "" and float(rows[1]["decision"]) > 0.0
    assert "2 rows lack a value that the run does not fill in" in found.err and "on 1 rows" in found.err
    Path("new.csv").write_text("id,a,c,y\n7,high,u,no\n")
    assert "line 2, column 'a': this is not a number: 'high'" in call("predict", "r", "new.csv", "--step", "C=1").err


def test_exports_fill_in_or_say_that_they_cannot(call):
    pytest.importorskip("sklearn")
    table("t.csv", *messy())
    options = ("--target", "y", "--drop", "colour", "--missing", "mean")
    assert call("svm", "t.csv", *options, *GRID, "-o", "r").code == 0
    new = np.column_stack(messy(seed=2)[:2])
    wanted = screenpath.load_run("r").predict(new, C=1.0)
    from screenpath.sklearn import fitted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays without names
        assert fitted("r", "C=1").predict(new).tolist() == list(wanted)
    refused = call("export", "r", "--to", "liblinear", "--step", "C=1", "-o", "m")
    assert refused.code == 2 and "does not fill in missing values" in refused.err
    assert call("export", "r", "--to", "json", "--step", "C=1", "-o", "m.json").code == 0
    model = json.loads(Path("m.json").read_text())
    assert len(model["missing"]) == 2 and model["table"]["cells"] == {"missing": "mean"}
    runtime = pytest.importorskip("onnxruntime")
    assert call("export", "r", "--step", "C=1", "-o", "m.onnx").code == 0
    session = runtime.InferenceSession("m.onnx")
    assert session.run(["label"], {"X": new})[0].tolist() == list(wanted)


def test_arrays_and_frames_have_the_same_option(tmp_path):
    age, income, _, labels = messy()
    X = np.column_stack([age, income])
    options = {"grid": [0.1, 1.0], "scale": "standard", "intercept": "free"}
    path = screenpath.svm_path(X, labels, missing="mean", **options)
    np.testing.assert_allclose(path.preparation.fill, np.nanmean(X, axis=0), rtol=1e-14)
    filled = np.where(np.isnan(X), path.preparation.fill, X)
    wanted = screenpath.svm_path(filled, labels, **options)
    assert path.coefficients.tolist() == wanted.coefficients.tolist()
    labelled = path.predict(X, C=1.0).tolist()
    assert labelled == wanted.predict(filled, C=1.0).tolist()
    behind = screenpath.kernel_svm_path(X, labels, missing="mean", grid=[1.0])
    other = screenpath.kernel_svm_path(filled, labels, grid=[1.0])
    assert behind.decision_function(X).tolist() == other.decision_function(filled).tolist()
    path.save(tmp_path / "r")
    assert screenpath.load_run(tmp_path / "r").predict(X, C=1.0).tolist() == labelled
    with pytest.raises(DataError, match="nan or infinite"):
        screenpath.svm_path(X, labels, **options)
    with pytest.raises(DataError, match="nan or infinite"):
        wanted.predict(X, C=1.0)
    with pytest.raises(UsageError, match="leaves out rows of a file"):
        screenpath.svm_path(X, labels, missing="drop", **options)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": age, "income": income})
    framed = screenpath.svm_path(frame, labels, missing="mean", **options)
    assert framed.predict(frame, C=1.0).tolist() == labelled


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--missing", "often"), "`--missing often` is no treatment|--missing often is no treatment"),
        (("--missing-indicator",), "add --missing median"),
        (("--missing", "mean", "--cache", "c"), "leave out --missing"),
    ],
)
def test_what_is_wrong_and_what_to_type(call, options, words):
    table("t.csv", *messy())
    found = call("svm", "t.csv", "--target", "y", "--drop", "colour", *GRID, *options, "-o", "r")
    assert found.code == 2 and len(found.err.splitlines()) == 2
    assert any(one in found.err for one in words.split("|"))


def test_only_tables_have_cells(call, data):
    for name in (data, "shards"):
        assert name == data or call("convert", data, "shards", "--quiet").code == 0
        found = call("svm", name, "--missing", "mean", *GRID, "-o", "r")
        assert found.code == 2 and "--missing" in found.err and "leave" in found.err
