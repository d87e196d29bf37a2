"""The commands on CSV and Parquet: numbers of the same data as LIBSVM text, and names everywhere."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times
from tests.run_folders import seal

GRID = ("--grid", "6", "--cmax", "1", "--quiet")
NAMES = ("age", "height", "weight", "pulse", "steps")


def csv_text(X, y, names=NAMES, target="class"):
    rows = [",".join([*(repr(v) for v in row.tolist()), str(label)]) for row, label in zip(X, y, strict=True)]
    return "\n".join([",".join([*names, target]), *rows]) + "\n"


@pytest.fixture
def table(data):
    path = data.parent / "clouds.csv"
    path.write_text(csv_text(*named()))
    return path


def named():
    X, y = clouds()
    return X, np.where(y == 2.0, "yes", "no")


def three():
    rng = np.random.default_rng(3)
    y = np.arange(90) % 3
    X = np.round(rng.normal(size=(90, 5)), 3)
    X[np.arange(90), y] += 3.0
    return X, np.array(["ash", "elm", "oak"])[y]


@pytest.mark.parametrize(
    "model",
    [
        ("svm", "--scale", "standard", "--bias", "1"), ("svm", "--kernel", "rbf"), ("l1svm",),
        ("sparse-svm", "--betas", "2", "--alphas", "3"), ("cv", "svm", "--folds", "3"),
    ],
    ids=lambda model: "-".join(model[:3]),
)  # fmt: skip
def test_a_run_has_the_bytes_of_that_on_libsvm_text(call, data, table, model):
    more = ("--quiet",) if "sparse-svm" in model or "l1svm" in model else GRID
    assert call(*model, data, *more, "-o", "text").code == 0
    assert call(*model, table, *more, "-o", "csv").code == 0
    assert without_times("text/steps.csv") == without_times("csv/steps.csv")
    header, *lines = Path("text/coefficients.csv").read_text().splitlines()
    with open("csv/coefficients.csv", newline="", encoding="utf-8") as file:
        own, *rows = csv.reader(file)
    if "kernel" in " ".join(model):
        assert (",".join(own), [",".join(row) for row in rows]) == (header, lines)
    else:  # the same but for the names
        assert own == [*header.split(","), "name"] and [",".join(row[:-1]) for row in rows] == lines
        assert all(row[-1] == ("intercept", *NAMES)[int(row[-3])] for row in rows)
    record = json.loads(Path("csv/run.json").read_text())
    assert record["labels"] == {"+1": "yes", "-1": "no"} and record["data"]["label_names"] == ["no", "yes"]
    assert record["data"]["feature_names"] == list(NAMES)
    assert record["data"]["table"] == {"target": "class", "columns": list(NAMES), "one_hot": {}}


def test_names_of_features_of_any_kind(call, tmp_path):
    """A name with commas, quotes and the end of a line does not keep a run from being read."""
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet

    X, y = named()
    odd = ("a,b", 'said "so"', "two\nlines", "ünïcode", " x")
    pyarrow.parquet.write_table(pa.table({**dict(zip(odd, X.T, strict=True)), "class": y}), "odd")
    assert call("svm", "odd", *GRID, "--bias", "1", "--certificate", "-o", "run").code == 0
    with open("run/coefficients.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["name"] for row in rows} == {"intercept", "a,b", 'said "so"', "two\\nlines", "ünïcode", "x"}
    run = screenpath.load_run("run")
    for step in (0, 2):
        want = {int(row["feature"]): float(row["value"]) for row in rows if row["step"] == str(step)}
        assert dict(enumerate(run.coef(step).tolist(), start=1)) == {j: v for j, v in want.items() if j}
    assert call("verify", "run", "odd").code == 0


def test_parquet_streamed_from_shards_has_them_too(call, data, table):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    X, y = named()
    pyarrow.parquet.write_table(pa.table({**dict(zip(NAMES, X.T, strict=True)), "class": y}), "p")
    assert call("convert", "p", "shards", "--quiet").code == 0
    for name, where in (("text", data), ("parquet", "p"), ("streamed", "shards"), ("cached", table)):
        more = ("--cache", "kept") if name == "cached" else ()
        assert call("svm", where, *GRID, "--test", table if name != "text" else data, *more, "-o", name).code == 0
    for name in ("parquet", "streamed", "cached"):
        assert without_times("text/steps.csv", "passes") == without_times(f"{name}/steps.csv", "passes")
    record = json.loads(Path("streamed/run.json").read_text())
    assert record["data"]["feature_names"] == list(NAMES) and record["labels"] == {"+1": "yes", "-1": "no"}
    found = [
        call("predict", name, where, "--step", 3).out for name, where in (("parquet", "p"), ("streamed", "shards"))
    ]
    assert found[0] == found[1] and found[0].startswith("label\n") and {"no", "yes"} == set(found[0].split()[1:])


def test_predict_finds_columns_by_name_and_writes_names_of_labels(call, data, table):
    assert call("svm", table, *GRID, "-o", "r").code == 0
    whole = call("predict", "r", table, "--step", 5, "--decision")
    assert whole.out.startswith("label,decision\n") and "accuracy: " in whole.err and "on 120 rows" in whole.err
    X, y = named()
    other = ("class", "extra", *NAMES[::-1])
    turned = [",".join([label, "0", *(repr(v) for v in row[::-1].tolist())]) for row, label in zip(X, y, strict=True)]
    (data.parent / "turned").write_text("\n".join([",".join(other), *turned]) + "\n")
    again = call("predict", "r", "turned", "--step", 5, "--decision")
    assert again.out == whole.out and "extra" in again.err
    (data.parent / "bare").write_text(csv_text(X, ["?"] * 120).replace("class", "nothing"))
    bare = call("predict", "r", "bare", "--step", 5, "--decision")
    assert bare.out == whole.out and "no score" in bare.err
    named_so = call("predict", "r", "turned", "--step", 5, "--decision", "--target", "class")
    assert named_so.out == whole.out
    as_text = call("predict", "r", data, "--step", 5, "--decision")
    assert as_text.code == 1 and "has the label 1; the labels of the training data are no, yes" in as_text.err
    assert call("predict", "r", data, "--step", 5, "--decision", "--no-labels").out == whole.out
    (data.parent / "strange").write_text(csv_text(X[:2], ["yes", "maybe"]))
    strange = call("predict", "r", "strange", "--step", 5)
    assert strange.code == 1 and "has the label maybe" in strange.err


def test_names_of_labels_in_options_and_in_what_is_said(call, data, table):
    assert call("svm", data, *GRID, "--positive", 1, "--class-weight", "1=3", "-o", "a").code == 0
    assert call("svm", table, *GRID, "--positive", "no", "--class-weight", "no=3", "-o", "b").code == 0
    assert without_times("a/steps.csv") == without_times("b/steps.csv")
    assert json.loads(Path("b/run.json").read_text())["labels"] == {"+1": "no", "-1": "yes"}
    found = call("predict", "b", table, "--step", 2)
    assert set(found.out.split()[1:]) == {"no", "yes"} and "accuracy" in found.err
    for option in (("--positive", "maybe"), ("--class-weight", "maybe=2"), ("--positive", "1")):
        result = call("svm", table, *GRID, *option, "-o", "c")
        assert result.code == 2 and "is not among the labels of the data (no, yes)" in result.err, result
    result = call("svm", data, *GRID, "--positive", "maybe", "-o", "c")
    assert result.code == 2 and "the labels of the data are numbers" in result.err
    result = call("lad", table, *GRID, "-o", "c")
    assert result.code == 1 and "the targets are texts: no" in result.err and "--target COLUMN" in result.err
    assert call("lad", table, *GRID, "--target", "age", "-o", "c").code == 1  # the column class is no number
    assert "--one-hot class" in call("lad", table, *GRID, "--target", "age", "-o", "c").err
    assert call("lad", table, *GRID, "--target", "age", "--one-hot", "class", "-o", "c").code == 0
    shown = call("show", "b").out
    assert "labels yes (-1) and no (+1)" in shown and "steps" in shown
    assert "labels            2 (no: 60, yes: 60)" in call("inspect", table).out
    duals = call("show", "b", "--duals", "-", "--quiet")
    assert call("svm", table, *GRID, "-o", "d").code == 0
    duals = call("show", "d", "--duals", "duals.csv")
    assert duals.code == 0 and {row["label"] for row in read_csv("duals.csv")} == {"no", "yes"}
    assert call("svm", table, *GRID, "--certificate", "-o", "e").code == 0
    assert call("verify", "e").code == 0
    path = screenpath.load_run("d")
    assert path.labels == ("no", "yes") and set(path.predict(clouds()[0])) == {"no", "yes"}


@pytest.mark.parametrize("model", [("svm", "--one-vs-rest", *GRID), ("sparse-svm", "--betas", "2", "--alphas", "3")])
def test_more_than_two_labels_with_names(call, tmp_path, model):
    X, y = three()
    (tmp_path / "t").write_text(csv_text(X, y))
    (tmp_path / "d").write_text(libsvm_text(X, np.unique(y, return_inverse=True)[1].astype(float)))
    for name, where in (("a", "d"), ("b", "t")):
        assert call(*model, where, "--bias", 1, "--quiet", "-o", name).code == 0
    assert without_times("a/steps.csv") == without_times("b/steps.csv")
    assert json.loads(Path("b/run.json").read_text())["labels"] == {"classes": ["ash", "elm", "oak"]}
    found = call("predict", "b", "t", "--step", 5, "--decision")
    assert found.out.startswith("label,decision_ash,decision_elm,decision_oak\n") and "accuracy" in found.err
    assert "labels ash, elm, oak" in call("show", "b").out
    exported = json.loads(call("export", "b", "--step", 5, "--to", "json", "-o", "-").out)
    assert [one["label"] for one in exported["weights"]] == ["ash", "elm", "oak"]
    assert {row["class"] for row in read_csv("b/coefficients.csv")} == {"ash", "elm", "oak"}
    weights = [screenpath.load_run(name).coef(5) for name in ("a", "b")]
    assert np.array_equal(*weights) and np.count_nonzero(weights[0])
    refused = call("export", "b", "--step", 5, "--to", "liblinear", "-o", "-")
    assert refused.code == 2 and "whole numbers, ash" in refused.err
    assert call("report", "b", "-o", "page.html").code == 0 and "ash" in Path("page.html").read_text()
    (tmp_path / "more").write_text(csv_text(X[:2], ["ash", "yew"]))
    assert "has the label yew" in call(*model, "t", "--test", "more", "-o", "c").err


def test_a_run_goes_on_with_the_same_names_alone(call, table):
    assert call("svm", table, *GRID, "--time-limit", "1e-9", "-o", "r").code == 3
    text = table.read_text()
    table.write_text(text.replace("yes", "ja"))
    refused = call("svm", table, *GRID, "-o", "r", "--resume")
    assert refused.code == 1 and "the names of columns or labels have changed since" in refused.err
    table.write_text(text)
    assert call("svm", table, *GRID, "-o", "r", "--resume").code == 0


def test_csv_from_standard_input(call, table, monkeypatch):
    import io
    import types

    text = table.read_bytes()
    assert call("svm", table, *GRID, "-o", "file").code == 0
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text)))
    assert call("svm", "-", *GRID, "-o", "stdin").code == 0
    assert without_times("file/steps.csv") == without_times("stdin/steps.csv")
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text)))
    assert call("convert", "-", "s").code == 0
    assert call("convert", table, "t").code == 0
    one, other = ({file.name: file.read_bytes() for file in Path(f).glob("*.npy")} for f in "st")
    assert one == other != {}


def test_words_for_labels(call, data, monkeypatch):
    """LIBSVM text whose labels are words has the numbers of numbered labels, however it is read."""
    import io
    import types

    text = data.read_text()
    words = "".join(("spam " if line[:2] == "2 " else "ham ") + line[2:] for line in text.splitlines(True))
    Path("words").write_text(words)
    assert call("svm", data, *GRID, "-o", "a").code == call("svm", "words", *GRID, "-o", "b").code == 0
    assert without_times("a/steps.csv") == without_times("b/steps.csv")
    assert json.loads(Path("b/run.json").read_text())["labels"] == {"+1": "spam", "-1": "ham"}
    predicted = call("predict", "b", "words", "--step", 3, "--quiet").out.splitlines()
    assert set(predicted[1:]) == {"ham", "spam"}
    Path("unknown").write_text(words.replace("spam ", "? ", 3))
    assert call("predict", "b", "unknown", "--step", 3, "--quiet").out.splitlines() == predicted
    assert "labels            2 (ham: " in call("inspect", "words").out
    for source in ("words", "-"):
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(words.encode())))
        assert call("convert", source, "s", "--block-mb", 1, "--force").code == 0
        assert call("svm", "s", *GRID, "-o", "c", "--force").code == 0
        assert without_times("c/steps.csv", "passes") == without_times("b/steps.csv", "passes")
        assert json.loads(Path("c/run.json").read_text())["labels"] == {"+1": "spam", "-1": "ham"}
    Path("mixed").write_text(words + "1 1:2\n")
    for command in (("svm", "mixed", "-o", "d"), ("convert", "mixed", "u"), ("inspect", "mixed")):
        said = call(*command)
        assert "a number where labels are texts: '1'" in said.out + said.err
    assert "lad is a regression" in call("lad", "words", "-o", "d").err


def test_tables_as_parquet(call, data, table, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    assert call("svm", table, *GRID, "--test", table, "--format", "parquet", "-o", "r").code == 0
    found = pq.read_table("r/steps.parquet").to_pylist()
    rows = read_csv("r/steps.csv")
    assert [list(row) for row in found] == [list(row) for row in rows]
    for one, other in zip(found, rows, strict=True):
        assert isinstance(one["step"], int) and isinstance(one["primal"], float) and one["status"] == "certified"
        assert {name: "" if v is None else str(v) for name, v in one.items()}["C"] == other["C"]
        assert repr(one["primal"]) == other["primal"] and one["reason"] is None
    assert "steps.parquet" in json.loads(Path("r/run.json").read_text())["files"]
    assert call("svm", table, *GRID, "--test", table, "--format", "parquet", "-o", "r", "--resume").code == 0
    Path("r/steps.parquet").write_bytes(b"other")
    assert "steps.parquet" in call("show", "r").err
    assert call("svm", table, *GRID, "--test", table, "--format", "parquet", "-o", "r", "--force").code == 0
    text = call("predict", "r", table, "--decision", "--step", 3).out
    assert call("predict", "r", table, "--decision", "--step", 3, "--format", "parquet", "-o", "p").code == 0
    labels = pq.read_table("p").to_pylist()
    assert [f"{row['label']},{row['decision']!r}" for row in labels] == text.split()[1:]
    compare = ("compare", "svm", data, "--grid", 2, "--repeats", 1, "--rules", "none,dvi", "--quiet")
    assert call(*compare, "--format", "parquet", "-o", "c").code == 0
    assert len(pq.read_table("c").to_pylist()) == 2
    assert call("svm", data, *GRID, "--format", "parquet", "-o", "-").code == 2
    monkeypatch.setattr("screenpath.data.words.tables.find_spec", lambda name: None)
    result = call("svm", data, *GRID, "--format", "parquet", "-o", "s")
    assert result.code == 2 and "screenpath[parquet]" in result.err and not Path("s").exists()


def test_kernel_runs_and_cross_validation_with_kinds_and_names(call, tmp_path):
    """Support vectors are read again with the columns of the run; folds name the labels."""
    X, y = three()
    kinds = np.array(["p", "q", "r"])[np.arange(90) % 3 - 1]
    lines = [f"{','.join(map(str, row))},{k},{label}" for row, k, label in zip(X.tolist(), kinds, y, strict=True)]
    (tmp_path / "t").write_text("\n".join([",".join([*NAMES, "kind", "class"]), *lines]) + "\n")
    more = ("--one-hot", "kind", "--positive", "oak", "--quiet")
    assert call("svm", "t", "--kernel", "rbf", "--c", 1, *more, "--test", "t", "-o", "k").code == 0
    assert json.loads(Path("k/run.json").read_text())["data"]["table"]["one_hot"] == {"kind": ["p", "q", "r"]}
    found = call("predict", "k", "t")
    assert found.code == 0 and set(found.out.split()[1:]) == {"oak", "rest"}
    assert call("show", "k", "--duals", "d.csv").code == 0 and len(read_csv("d.csv")) == 90
    assert call("predict", "k", "t", "--target", "kind").code == 1  # that is a feature, and its labels are others
    cv = ("--folds", 3, "--jobs", 2, "--one-hot", "kind", "--quiet", "-o", "cv")
    assert call("cv", "sparse-svm", "t", "--betas", 1, "--alphas", 3, *cv).code == 0
    assert call("predict", "cv", "t").code == 0
    (tmp_path / "few").write_text("\n".join([",".join([*NAMES, "kind", "class"]), *lines[:7]]) + "\n")
    assert "ash" in call("cv", "svm", "few", "--one-hot", "kind", "--positive", "ash", "--folds", 5, "-o", "x").err
    assert call("svm", "t", "--one-vs-rest", "--c", 1, "--one-hot", "kind", "--quiet", "-o", "a").code == 0
    (tmp_path / "numbers").write_text(csv_text(X, np.unique(y, return_inverse=True)[1]))
    assert call("svm", "numbers", "--one-vs-rest", "--c", 1, "--quiet", "-o", "b", "--test", "numbers").code == 0
    compared = call("runs", "a", "b")
    assert compared.code == 0 and "different labels: ash and elm and oak, and 0 and 1 and 2" in compared.err


def test_regressions_on_tables(call, tmp_path):
    X, _ = clouds(60)
    y = X[:, 0] - X[:, 1]
    (tmp_path / "t").write_text(csv_text(X, y.tolist(), target="Target"))
    (tmp_path / "d").write_text(
        "".join(libsvm_text(x[None], [0]).replace("0 ", f"{t!r} ", 1) for x, t in zip(X, y.tolist(), strict=True))
    )
    for name, data in (("a", "d"), ("b", "t")):
        assert call("lad", data, "--c", 1, "--bias", 1, "--test", data, "--quiet", "-o", name).code == 0
    assert without_times("a/steps.csv") == without_times("b/steps.csv")
    one, other = (call("predict", name, data, "--step", 0) for name, data in (("a", "d"), ("b", "t")))
    assert one.out == other.out and one.err == other.err and "mae: " in one.err
    (tmp_path / "some").write_text(csv_text(X[:3], ["", "?", 1.5], target="Target"))
    assert "on 1 rows" in call("predict", "b", "some", "--step", 0).err
    (tmp_path / "texts").write_text(csv_text(X[:3], ["low", "high", "low"], target="Target"))
    refused = call("predict", "b", "texts", "--step", 0)
    assert refused.code == 1 and "the targets are texts: high" in refused.err and "--no-labels" in refused.err
    assert call("predict", "b", "texts", "--step", 0, "--no-labels", "--quiet").out.count("\n") == 4


PEOPLE = "id,name,age,height,steps,smoker\n" + "".join(
    f"{k},P{k},{20 + 3 * k},{150 + 7 * k % 40},{k * k % 11},{'yes' if k % 3 else 'no'}\n" for k in range(1, 21)
)


def test_columns_that_are_no_features(call, tmp_path):
    """A run with --drop or --columns is the run on a table without these columns, here and in all that follows."""
    Path("people.csv").write_text(PEOPLE)
    Path("less.csv").write_text("".join(",".join(line.split(",")[2:]) + "\n" for line in PEOPLE.splitlines()))
    shared = ("--target", "smoker", "--grid", "4", "--scale", "standard", "--quiet", "--certificate")
    assert call("svm", "less.csv", *shared, "-o", "less").code == 0
    for k, chosen in enumerate((("--drop", "id,name"), ("--columns", "age:steps"), ("--columns", "!/^(id|na)/"))):
        assert call("svm", "people.csv", *shared, *chosen, "-o", f"run{k}").code == 0
        assert without_times("less/steps.csv") == without_times(f"run{k}/steps.csv")
        assert Path(f"run{k}/coefficients.csv").read_bytes() == Path("less/coefficients.csv").read_bytes()
    predicted = call("predict", "run0", "people.csv", "--step", 3)
    assert predicted.out == call("predict", "less", "less.csv", "--step", 3).out
    assert "columns that the model does not use are ignored: id, name" in predicted.err
    assert call("predict", "run0", "less.csv", "--step", 3).out == predicted.out
    again = call("svm", "people.csv", *shared, "--drop", "id:age", "--resume", "-o", "run0")
    assert again.code == 1 and 'drop was ["id,name"], now ["id:age"]' in again.err
    assert call("convert", "people.csv", "shards", "--target", "smoker", "--drop", "id,name", "--quiet").code == 0
    assert call("svm", "shards", *shared[:-1], "--test", "people.csv", "-o", "streamed").code == 0
    assert without_times("less/steps.csv", "passes", "test_accuracy", "confusion") == without_times(
        "streamed/steps.csv", "passes", "test_accuracy", "confusion"
    )
    assert call("svm", "shards", *shared, "--drop", "age", "-o", "two").code == 2  # the folder has its columns
    assert call("svm", "people.csv", *shared, "--drop", "id:name", "--cache", "kept", "-o", "cached").code == 0
    assert without_times("less/steps.csv") == without_times("cached/steps.csv")
    assert "features          3" in call("inspect", "people.csv", "--target", "smoker", "--drop", "id,name").out


def test_the_checker_knows_which_columns_are_features(call, tmp_path):
    Path("people.csv").write_text(PEOPLE)
    shared = ("people.csv", "--target", "smoker", "--grid", "2", "--quiet", "--certificate")
    for chosen, covered in (("--drop=id:name", True), ("--columns=!id,!name", True), ("--drop=/^(id|n)/", False)):
        assert call("svm", *shared, chosen, "-o", "run", "--force").code == 0
        checked = call("verify", "run")
        assert checked.code == 0
        (left,) = [line for line in checked.out.splitlines() if line.startswith("not covered, run.json")]
        assert ("drop" in left.split("options (")[1].split(")")[0].split(", ")) != covered
        record = json.loads(Path("run/run.json").read_text())
        for forged in (["id:age"], ["id,name,steps"], ["id"]):
            for part in (record["options"], record["identity"]):
                part |= {"columns": [], "drop": forged}
            Path("run/run.json").write_text(json.dumps(record))
            seal(Path("run"))
            found = call("verify", "run")
            assert found.code == 1 and "run.json has another drop" in found.out + found.err


def test_selectors_that_select_nothing(call, tmp_path):
    Path("people.csv").write_text(PEOPLE)
    for option, text, what, remedy in (
        ("--drop", "nme,id", "people.csv has no column 'nme' (--drop nme)", "did you mean name?"),
        ("--target", "smokr", "people.csv has no column 'smokr' (--target smokr)", "did you mean smoker?"),
        ("--target", "", "people.csv has no column ''", "there are "),
        ("--columns", "age:stps", "people.csv has no column 'stps'", "did you mean steps?"),
        ("--columns", "/^z/", "no column matches --columns '/^z/'", "there are id, name"),
        ("--columns", "steps:age", "'steps' stands after 'age'", "write age:steps"),
        ("--drop", "/(/", "is not a regular expression", "Python"),
        ("--drop", "id:name,smoker", "--drop smoker names the target", "leave it out of --drop"),
        ("--drop", "id:steps", "leave no column of features", "there are id"),
    ):
        for command in (("svm", "people.csv"), ("inspect", "people.csv")):
            said = call(*command, "--target", "smoker", option, text)
            assert said.code == 2 and what in said.err and remedy in said.err
    said = call("svm", "people.csv", "--target", "smoker")
    assert "leave the column out: --drop name, or let it name the rows: --id name" in said.err
    said = call("svm", "people.csv", "--target", "smoker", "--drop", "name", "--one-hot", "name")
    assert said.code == 2 and "leave it out of --one-hot" in said.err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_names_the_rows(call, tmp_path, kind):
    """The column of --id is no feature; predictions begin with its texts, as the file writes them."""
    text = PEOPLE.replace("\n1,P1,", '\n007,"P,1",').replace("\n2,P2", "\n,P2")
    Path("people").write_text(text)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        import pyarrow.csv
        import pyarrow.parquet

        how = pyarrow.csv.ConvertOptions(column_types={"id": "string"})
        pyarrow.parquet.write_table(pyarrow.csv.read_csv("people", convert_options=how), "people")
    shared = ("people", "--target", "smoker", "--grid", "2", "--quiet")
    assert call("svm", *shared, "--drop", "id,name", "-o", "plain").code == 0
    more = ("--certificate", "--test", "people")
    assert call("svm", *shared, "--drop", "name", "--id", "id", *more, "-o", "id").code == 0
    assert call("svm", *shared, "--drop", "id", "--id", "name", "--certificate", "-o", "name").code == 0
    assert Path("plain/coefficients.csv").read_bytes() == Path("id/coefficients.csv").read_bytes()
    for more in ((), ("--decision",)):
        plain = [line.split(",") for line in call("predict", "plain", "people", "--step", 1, *more).out.splitlines()]
        for run, first in (("id", ["007", "", "3"]), ("name", ["P,1", "P2", "P3"])):
            said = call("predict", run, "people", "--step", 1, *more)
            header, *rows = csv.reader(said.out.splitlines())
            assert header == [run, *plain[0]] and [row[1:] for row in rows] == plain[1:]
            assert [row[0] for row in rows[:3]] == first and f": {run}" not in said.err
    if kind == "parquet":
        assert call("predict", "id", "people", "--step", 1, "--format", "parquet", "-o", "p").code == 0
        assert pyarrow.parquet.read_table("p")["id"].to_pylist()[:3] == ["007", None, "3"]
    for run in ("id", "name"):
        assert call("verify", run).code == 0
        record = json.loads(Path(f"{run}/run.json").read_text())
        assert record["data"]["table"]["id"] == record["options"]["id"] == run
        for forged in (None, "age"):  # nobody needs to have asked for it: the folder of shards may have it
            record["options"]["id"] = record["identity"]["id"] = forged
            Path(f"{run}/run.json").write_text(json.dumps(record))
            seal(Path(run))
            assert call("verify", run).code == (0 if forged is None else 1)
    chosen = ("--target", "smoker", "--id", "id", "--drop", "name", "--quiet")
    assert call("convert", "people", "shards", *chosen).code == 0
    assert call("svm", "shards", *shared[1:], "-o", "streamed").code == 0
    said = call("predict", "streamed", "people", "--step", 1).out
    assert said.splitlines()[:2] == ["id,label", "007,yes"]
    Path("new.csv").write_text("steps,height,age\n1,160,30\n")
    said = call("predict", "streamed", "new.csv", "--step", 1)
    assert said.out.splitlines()[0] == "label" and "new.csv has no column 'id' of names" in said.err


def test_columns_that_cannot_name_rows(call, tmp_path):
    Path("people.csv").write_text(PEOPLE)
    for more, what in (
        (("--id", "smoker"), "is the target"), (("--id", "name", "--one-hot", "name"), "is a feature"),
        (("--id", "nam"), "has no column 'nam' (--id nam)"), (("--id", ""), "has no column ''"),
    ):  # fmt: skip
        said = call("svm", "people.csv", "--target", "smoker", *more)
        assert said.code == 2 and what in said.err
    Path("text").write_text("1 1:2\n-1 1:3\n")
    said = call("svm", "text", "--id", "name")
    assert said.code == 2 and "--id names a column of CSV or Parquet" in said.err
