"""Numbers as people write them, delimiters and encodings, and texts of few values: read, learned and checked."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.data.files.read import read_data
from screenpath.errors import DataError, UsageError
from tests.cli.conftest import ROOT, without_times

CLINIC = ROOT / "data_samples" / "clinic.csv"
LEARN = ("--target", "returned", "--id", "visit", "--drop", "patient,seen", "--one-hot", "auto", "--missing", "mean")
GRID = ("--grid", "3", "--scale", "standard", "--quiet", "--certificate")


def read(text, written="utf-8", **options):
    return read_data(io.BytesIO(text.encode(written)), **options)


@pytest.mark.parametrize(
    ("options", "cells", "values"),
    [
        ({"decimal": ","}, "1,5 -,25 3, 2e1 +7", [1.5, -0.25, 3, 20, 7]),
        ({"decimal": ",", "thousands": "."}, "1.234,5 12.345.678 0,1 12", [1234.5, 12345678, 0.1, 12]),
        ({"thousands": "'"}, "1'234.5 999 -1'000", [1234.5, 999, -1000]), ({"thousands": " "}, "1_234 5", [1234, 5]),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(options, cells, values):
    rows = "".join(f"{cell.replace('_', ' ')};{k % 2}\n" for k, cell in enumerate(cells.split(" ")))
    assert read("a;y\n" + rows, **options).X.toarray().ravel().tolist() == values
    labels = "".join(f"1;{cell.replace('_', ' ')}\n" for cell in cells.split(" "))
    assert read("a;y\n" + labels, **options).y.tolist() == values


@pytest.mark.parametrize("cell", ["1.5", "1.2,5", "1.23,5", "1,2,3", "3.1.2024", "x", ","])
def test_what_is_no_number_with_these_marks(cell):
    with pytest.raises(DataError, match=f"line 3, column 'a': this is not a number: '{cell}'"):
        read(f"a;y\n1,5;1\n{cell};2\n", decimal=",", thousands=".")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decimal": ",,"}, "`decimal=,,` is no mark"), ({"decimal": "7"}, "is no mark"),
        ({"decimal": ",", "thousands": ","}, "`decimal` and `thousands` are both ','"),
        ({"encoding": "klingon"}, "is not known"), ({"delimiter": "ab"}, "is no mark"),
    ],
)  # fmt: skip
def test_marks_that_are_none(options, words):
    with pytest.raises(UsageError, match=words):
        read("a;y\n1;1\n", **options)


def test_delimiters_and_encodings(tmp_path):
    text = "größe|y\n1|ä\n2|ö\n"
    for encoding in ("utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le"):
        data = read(text, encoding, delimiter="|", encoding=encoding)
        assert data.names == ("größe",) and data.label_names == ("ä", "ö")
    with pytest.raises(DataError, match=r"no known delimiter[\s\S]*`delimiter=|`"):
        read("a|y\n1|2\n", target="y")
    with pytest.raises(DataError, match=r"line 3, byte 3: 0xe9 is not UTF-8 text[\s\S]*`encoding=latin-1`"):
        read("a,y\n1,a\n2,\xe9\n", "latin-1")
    with pytest.raises(DataError, match="line 2, byte 1: 0xe9 is not ASCII text"):
        read("a,y\n\xe9,1\n", "latin-1", encoding="ascii")
    with pytest.raises(DataError, match="`encoding=utf-16`"):
        read("a,y\n1,2\n", "utf-16")
    wide = "a;y\n" + "".join(f"{k},5;é{k % 2}\n" for k in range(50_000))  # more than a buffer holds
    data = read(wide, "utf-16", encoding="utf-16", decimal=",")
    assert data.X.sum() == 50_000 * 25_000.0 and data.label_names == ("é0", "é1")


def test_a_run_reads_checks_and_predicts_as_it_learned(call):
    """The same table in another spelling gives the same bytes, and the checker reads it, too."""
    text = CLINIC.read_text()
    Path("plain.csv").write_text(text)
    Path("other.csv").write_text(text.replace(",", ";").replace(".", ",").replace("north", "nörd"), encoding="latin-1")
    Path("plain.csv").write_text(text.replace("north", "nörd"))
    marks = ("--decimal", ",", "--encoding", "latin-1")
    assert call("svm", "plain.csv", *LEARN, *GRID, "-o", "p").code == 0
    assert call("svm", "other.csv", *LEARN, *marks, *GRID, "-o", "o").code == 0
    assert without_times("p/steps.csv") == without_times("o/steps.csv")
    assert Path("p/coefficients.csv").read_bytes() == Path("o/coefficients.csv").read_bytes()
    assert call("verify", "o", "other.csv").code == 0 and call("verify", "p", "plain.csv").code == 0
    assert call("verify", "o", "plain.csv").code == 1
    found = call("predict", "o", "other.csv", "--step", "C=10", "-q")
    assert found.code == 0 and found.out == call("predict", "p", "plain.csv", "--step", "C=10", "-q").out
    assert call("convert", "other.csv", "s", *marks, "--target", "returned", "--columns", "site,blood", "--one-hot",
                "auto", "--quiet").code == 0  # fmt: skip
    assert screenpath.read_data(CLINIC, target="returned", columns="site,blood", one_hot="auto").d == 7


def test_auto_encodes_few_texts_and_two_are_one_feature(call, tmp_path):
    lines = [f"{k},n{k},{'ab'[k % 2]},{'xyz'[k % 3]},{k % 2}" for k in range(30)]
    Path("t.csv").write_text("\n".join(["num,name,two,three,y", *lines]) + "\n")
    options = ("--target", "y", "--drop", "name", "--one-hot", "auto", *GRID)
    assert call("svm", "t.csv", *options, "-o", "r").code == 0
    run = screenpath.load_run("r").run
    assert run.feature_names == ("num", "two=b", "three=x", "three=y", "three=z")
    assert run.record["data"]["table"]["base"] == {"two": "a"}
    assert call("verify", "r", "t.csv").code == 0
    Path("new.csv").write_text("num,two,three\n1,a,x\n1,b,x\n1,c,x\n")
    found = call("predict", "r", "new.csv", "--step", "C=10", "--decision")
    one, other, strange = (line.split(",")[1] for line in found.out.splitlines()[1:])
    assert one != other and strange == one and "1 row has a value of 'two'" in found.err
    assert call("svm", "t.csv", *options[:4], "--one-hot", "two,three", *GRID, "-o", "e").code == 0
    assert screenpath.load_run("e").run.feature_names[1:3] == ("two=a", "two=b")  # who names a column gets all values
    assert call("convert", "t.csv", "s", *options[:6], "--quiet").code == 0
    assert json.loads(Path("s/meta.json").read_text())["table"]["base"] == {"two": "a"}
    rows = [screenpath.load_run(name).coefficients for name in ("r",)]
    assert call("svm", "s", "--grid", "3", "--scale", "standard", "--storage", "dense", "--quiet", "-o", "d").code == 0
    np.testing.assert_allclose(screenpath.load_run("d").coefficients, rows[0], rtol=1e-3, atol=1e-4)
    refused = call("svm", "-", *options, "-o", "x")
    assert refused.code != 0
    with pytest.raises(UsageError, match="reads the data twice.*\n.*name the columns: `one_hot=a,b`"):
        read("two,y\na,1\nb,2\n", one_hot="auto")
