"""A label is the text of the file, in every command that says one."""

import csv
import json
import signal
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.errors import UsageError
from screenpath.report.console import Console

# two labels as a file writes them, the smaller number first
SPELLINGS = {
    "plain": ("1", "2"), "sign": ("-1", "+1"), "point": ("0.0", "1.0"), "zeros": ("007", "010"),
    "exponent": ("1e0", "1E1"), "large": ("9007199254740993", "9007199254740995"),
    "negative": ("-4503599627370496", "4503599627370497"), "fraction": ("0.10", ".5"),
}  # fmt: skip
ROWS = [(-2.0, 0.3), (-1.0, -0.4), (-1.5, 0.1), (1.0, 0.2), (2.0, -0.1), (1.5, 0.4)]


def written(kind: str, labels) -> str:
    """Write a file of six rows with these labels and return its name."""
    if kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        a, b = np.array(ROWS).T
        parquet.write_table(pyarrow.table({"a": a, "b": b, "target": labels}), "data.parquet")
        return "data.parquet"
    if kind == "csv":
        lines = ["a,b,target", *(f"{a},{b},{label}" for (a, b), label in zip(ROWS, labels, strict=True))]
    else:
        lines = [f"{label} 1:{a} 2:{b}" for (a, b), label in zip(ROWS, labels, strict=True)]
    Path(f"data.{kind}").write_text("\n".join(lines) + "\n")
    return f"data.{kind}"


def of_table(file) -> list[str]:
    """Return the first column of a file that predict has written."""
    return [row[0] for row in list(csv.reader(Path(file).read_text().splitlines()))[1:]]


@pytest.mark.parametrize("kind", ["svm", "csv"])
@pytest.mark.parametrize("labels", SPELLINGS.values(), ids=SPELLINGS)
def test_two_labels_are_the_texts_of_the_file(call, labels, kind):
    low, high = labels
    data = written(kind, [low] * 3 + [high] * 3)
    assert call("svm", data, "--c", "1", "-o", "run", "-q", "--certificate").code == 0
    assert call("predict", "run", data, "-o", "out.csv", "-q").code == 0
    assert of_table("out.csv") == [low] * 3 + [high] * 3
    assert f"{low} (-1)" in call("show", "run").out or f"{low}" in call("show", "run").out.split()
    assert high in call("show", "run").out and high in call("inspect", data).out
    if kind == "svm":
        assert call("verify", "run", data).code == 0
    assert call("convert", data, "shards").code == 0
    assert call("svm", "shards", "--c", "1", "-o", "streamed", "-q").code == 0
    assert call("predict", "streamed", data, "-o", "again.csv", "-q").code == 0
    assert of_table("again.csv") == of_table("out.csv")
    found = [str(label) for label in screenpath.load_run("run").labels]
    assert found in ([low, high], [str(float(low)), str(float(high))])
    if labels in (SPELLINGS["zeros"], SPELLINGS["large"], SPELLINGS["exponent"]):
        assert found == [low, high]  # a number would not say what the file says
    text = json.loads(Path("run/run.json").read_text())["labels"]["+1"]
    assert text == high or text == float(high) and high in ("2", "4503599627370497")


@pytest.mark.parametrize("kind", ["svm", "csv"])
def test_several_labels_are_the_texts_of_the_file(call, kind):
    labels = ["007", "007", "+8", "+8", "9007199254740993", "9007199254740993"]
    data = written(kind, labels)
    assert call("sparse-svm", data, "--betas", "1", "--alphas", "1", "-o", "run", "-q", "--certificate").code == 0
    assert call("predict", "run", data, "--step", "0", "-o", "out.csv", "-q").code == 0
    assert set(of_table("out.csv")) <= set(labels)
    said = call("show", "run", "--step", "0").out
    assert all(label in said for label in set(labels))
    if kind == "svm":
        assert call("verify", "run", data).code == 0
    assert call("export", "run", "--to", "json", "--step", "0", "-o", "model.json").code == 0
    assert json.loads(Path("model.json").read_text())["labels"]["classes"] == ["007", "+8", "9007199254740993"]


@pytest.mark.parametrize("kind", ["svm", "csv"])
def test_one_number_is_one_label_and_its_first_text_comes_back(call, kind):
    data = written(kind, ["-1", "-1.0", "-1e0", "+1", "1", "1.0"])
    assert call("svm", data, "--c", "1", "-o", "run", "-q").code == 0
    assert call("predict", "run", data, "-o", "out.csv", "-q").code == 0
    assert of_table("out.csv") == ["-1"] * 3 + ["+1"] * 3


@pytest.mark.parametrize("kind", ["svm", "csv"])
def test_labels_that_float64_merges_are_an_error(call, kind):
    data = written(kind, ["9007199254740992"] * 3 + ["9007199254740993"] * 3)
    found = call("svm", data, "--c", "1", "-o", "run", "-q")
    assert found.code == 1 and "9007199254740992 and 9007199254740993 are one number" in found.err
    assert call("convert", data, "shards").code == 0
    found = call("svm", "shards", "--c", "1", "-o", "run", "-q")
    assert found.code == 1 and "9007199254740992 and 9007199254740993 are one number" in found.err
    assert call("lad", data, "--c", "1", "-o", "lad", "-q").code in (0, 3)  # targets are numbers


def test_a_table_has_the_numbers_of_libsvm_text(call):
    data = written("csv", ["1_0"] * 3 + ["10"] * 3)
    assert call("svm", data, "--c", "1", "-o", "run", "-q").code == 0
    assert call("predict", "run", data, "-o", "out.csv", "-q").code == 0
    assert set(of_table("out.csv")) == {"1_0", "10"}
    data = written("csv", ["a", "a", "nan", "b", "b", "b"])
    found = call("svm", data, "--c", "1", "-o", "nan", "-q")
    assert found.code == 1 and "line 4" in found.err and "missing" in found.err
    Path("year.csv").write_text("year,target\n2020_1,1\n2021,2\n")
    found = call("svm", "year.csv", "-o", "year", "-q")
    assert found.code == 1 and "2020_1" in found.err


def test_options_and_weights_have_the_numbers_of_libsvm_text(call):
    data = written("svm", ["1", "1", "1", "2", "2", "2"])
    for option in (("--c", "1_0"), ("--c", "nan"), ("--tol", "1_0e-7"), ("--positive", "1_0")):
        assert call("svm", data, *option, "-o", "run", "-q").code == 2
    Path("weights.txt").write_text("1\n1_0\n1\n1\n1\n1\n")
    found = call("svm", data, "--c", "1", "--weights", "weights.txt", "-o", "run", "-q")
    assert found.code == 1 and "line 2" in found.err


def test_labels_of_a_text_column_keep_their_zeros(call):
    data = written("csv", ["007", "007", "007", "bond", "bond", "bond"])
    assert call("svm", data, "--c", "1", "-o", "run", "-q").code == 0
    assert call("predict", "run", data, "-o", "out.csv", "-q").code == 0
    assert of_table("out.csv") == ["007"] * 3 + ["bond"] * 3


def test_whole_numbers_of_parquet_beyond_float64(call):
    numbers = [9007199254740993] * 3 + [9007199254740995] * 3
    written("parquet", numbers)
    assert call("svm", "data.parquet", "--c", "1", "-o", "run", "-q", "--certificate").code == 0
    assert call("predict", "run", "data.parquet", "-o", "out.csv", "-q").code == 0
    assert of_table("out.csv") == [str(number) for number in numbers]
    found = call("verify", "run")
    assert found.code == 0 and "how labels that are numbers are written" not in found.out  # they are compared


def test_texts_that_are_numbers_are_no_places(call):
    """A text column of 1, 2, 10, as Parquet may have: no program is told the places 0, 1, 2 for them."""
    labels = ["1", "1", "2", "2", "10", "10"]
    data = written("parquet", labels)
    assert call("svm", data, "--one-vs-rest", "--c", "1", "-o", "run", "-q").code == 0
    assert call("predict", "run", data, "-o", "out.csv", "-q").code == 0
    assert set(of_table("out.csv")) <= set(labels)
    assert screenpath.load_run("run").labels == ("1", "10", "2")
    assert set(screenpath.load_run("run").predict(np.array(ROWS))) <= set(labels)
    assert call("export", "run", "--to", "liblinear", "-o", "model").code == 0
    assert "label 1 10 2" in Path("model").read_text().splitlines()
    assert {line.split(",")[1] for line in Path("run/coefficients.csv").read_text().splitlines()[1:]} == {*labels}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_number_among_texts_is_written_in_several_ways(call, kind):
    data = written(kind, ["007", "07", "7.0", "a  b", "a  b", "a  b"])
    options = ("--positive", "7", "--class-weight", "7.0=2")
    assert call("svm", data, *options, "--c", "1", "-o", "run", "-q", "--certificate").code == 0
    assert json.loads(Path("run/run.json").read_text())["labels"] == {"+1": "007", "-1": "a  b"}
    assert call("verify", "run").code == 0
    betas = ("--betas", "2", "--alphas", "2")
    data = written(kind, ["007", "07", "a\tb", "a\tb", "a  b", "a  b"])
    assert call("sparse-svm", data, *betas, "-o", "several", "-q", "--certificate").code == 0
    assert call("verify", "several").code == 0
    assert len(Path("several/coefficients.csv").read_text().splitlines()) > 1


GRID, PAIRS = ("--c-list", "0.01,0.1,1,5"), ("--beta", "0.2,0.05", "--alpha", "2,1")
LARGEST = "9007199254740999"
MODELS = {
    "svm": GRID, "svm rbf": (*GRID, "--kernel", "rbf"), "svm rest": (*GRID, "--one-vs-rest"),
    "l1svm": ("--lambda-list", "2,1,.5,.2"), "sparse-svm": PAIRS, "sparse-svm classes": PAIRS,
}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", ["svm", "csv", "parquet", "shards"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("spelling", ["sign", "zeros", "large", "fraction"])
def test_runs_that_are_resumed_or_put_together_have_the_texts(call, monkeypatch, kind, model, spelling):
    several = model in ("svm rest", "sparse-svm classes")
    own = (*SPELLINGS[spelling], *([LARGEST] if several else []))
    texts = [text for text in own for _ in range(6 // len(own))]
    data = written("csv" if kind == "shards" else kind, texts)
    training = data if model == "svm rbf" or kind != "shards" else "shards"  # a kernel's rows are in memory
    if training == "shards":
        assert call("convert", data, training).code == 0
    run = (model.split()[0], training, *MODELS[model], "--coefficients", "npz" if kind == "csv" else "csv", "-q")
    assert call(*run, "-o", "whole").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Console, "advance", lambda self, done: done.step or signal.raise_signal(signal.SIGTERM))
        assert call(*run, "-o", "cut").code == 143
    assert call(*run, "-o", "cut", "--resume").code == 0
    for k in (1, 2):
        assert call(*run, "--part", f"{k}/2", "-o", f"p{k}").code == 0
    assert call("merge", "p1", "p2", "-o", "merged", "-q").code == 0
    records = {name: json.loads(Path(name, "run.json").read_text()) for name in ("whole", "cut", "merged")}
    for name, record in records.items():
        assert record["labels"] == records["whole"]["labels"] and record["identity"] == records["whole"]["identity"]
        assert call("predict", name, data, "--step", "3", "-o", f"{name}.out", "-q").code == 0
        assert set(of_table(f"{name}.out")) <= set(own) and len(of_table(f"{name}.out")) == len(texts)
        said = call("show", name, "--step", "3").out
        assert all(text in said for text in own)
    if training == data and model != "svm rest":
        assert call(*run, "--certificate", "-o", "cut", "--force").code == 0
        assert call("verify", "cut").code == 0


@pytest.mark.parametrize("kind", ["svm", "csv"])
def test_runs_of_labels_that_are_written_otherwise_are_others(call, kind):
    """The values, and so the hash of the data, are the same."""
    for number, low in enumerate(("007", "7", "7.0"), start=1):
        data = written(kind, [low] * 3 + ["8"] * 3)
        assert call("svm", data, "--c-list", "1,2,3", "--part", f"{number}/3", "-o", f"p{number}", "-q").code == 0
        if number == 1:
            assert call("svm", data, "--c-list", "1,2", "-o", "run", "-q").code == 0
        else:
            found = call("svm", data, "--c-list", "1,2", "-o", "run", "-q", "--resume")
            assert found.code in (1, 2) and "labels was" in found.err and "007" in found.err
    found = call("merge", "p1", "p2", "p3", "-o", "merged")
    assert found.code == 2 and "labels is" in found.err and "007" in found.err
    written(kind, ["007"] * 3 + ["8"] * 3)
    assert call("svm", data, "--c-list", "1,2", "-o", "run", "-q", "--resume").code == 0


def test_a_label_beyond_float64_is_the_one_of_the_file_or_none(call, tmp_path):
    """9007199254740992 and ...993 are one double: everywhere a label is named, only the file's own is taken."""
    rows = "{0} 1:1 2:.5\n5 1:-1 2:.3\n{0} 1:2 2:.1\n5 1:-2 2:.4\n"
    mine, other = "9007199254740993", "9007199254740992"
    for name, label in (("mine", mine), ("other", other)):
        (tmp_path / name).write_text(rows.format(label))
    options = ("--positive", mine, "--class-weight", f"{mine}=2", "--grid", "2", "--quiet")
    assert call("svm", "mine", *options, "--test", "mine", "-o", "r").code == 0
    assert call("cv", "svm", "mine", *options, "--folds", "2", "-o", "cv").code == 0
    assert call("predict", "r", "mine", "--step", "1").code == 0
    assert call("svm", "mine", "--c", "1", "--certificate", "--quiet", "-o", "v").code == 0
    assert "how labels that are numbers are written" not in call("verify", "v").out  # they are compared
    for words in (
        ("svm", "mine", "--positive", other), ("svm", "mine", "--class-weight", f"{other}=2"),
        ("cv", "svm", "mine", "--folds", "2", "--class-weight", f"{other}=2"), ("svm", "mine", "--test", "other"),
    ):  # fmt: skip
        found = call(*words, "--grid", "2", "--quiet", "-o", "x")
        assert found.code in (1, 2) and other in found.err and mine in found.err, words
    found = call("predict", "r", "other", "--step", "1")
    assert found.code == 1 and f"has the label {other}" in found.err and mine in found.err
    with pytest.raises(UsageError, match=mine):
        screenpath.run("svm", str(tmp_path / "mine"), positive=int(other), grid=2, quiet=True, out=str(tmp_path / "y"))
    weights = {int(mine): 2.0}
    screenpath.run("svm", str(tmp_path / "mine"), class_weight=weights, grid=2, quiet=True, out=str(tmp_path / "z"))


@pytest.mark.parametrize(("kind", "own"), [("svm", ("007", "010")), ("csv", ("007", "010")), ("csv", ("no", "yes"))])
def test_errors_of_options_name_labels_as_the_file_does(call, kind, own):
    data = written(kind, [label for label in own for _ in range(3)])
    for option in (("--class-weight", "3=2"), ("--positive", "3"), ("--class-weight", f"{own[1]}=-1")):
        found = call("svm", data, *option, "-o", "run", "-q")
        assert found.code in (1, 2) and own[1] in found.err
