"""What a column holds and what to do with it: ``inspect``, hints, and a command line that works when typed."""

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import ROOT


def write(path, **columns):
    """Write a CSV table of texts, names with commas and blanks in quotes, and return its path."""
    names = [f'"{name}"' for name in columns]
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    Path(path).write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    age = np.round(rng.normal(50, 10, n), 1)
    return {
        "id": [f"p{k}" for k in range(n)], "name, first": [f"n{k % 40}" for k in range(n)],
        "born": [f"{k % 28 + 1}.3.1990" for k in range(n)],
        "age (years)": ["unknown" if k % 20 == 3 else age[k] for k in range(n)],
        "income": ["" if k % 7 == 2 else round(float(rng.exponential(3)), 2) for k in range(n)],
        "home town": [("Graz", "Wels", "Linz")[k % 3] for k in range(n)], "row": list(range(1, n + 1)),
        "smoker": np.where(age + rng.normal(0, 4, n) > 50, "yes", "no").tolist(),
    }  # fmt: skip


def test_a_line_a_column_and_a_command_line(call):
    write("t.csv", **people())
    found = call("inspect", "t.csv")
    assert found.code == 1  # as it stands, it cannot be read
    lines = {line.split("  ")[0]: line.split("  ", 1)[1].split() for line in found.out.splitlines() if "  " in line}
    assert lines["id"][:3] == ["text", "60", "0"] and lines["id"][-3:] == ["--id", "or", "--drop"]
    assert lines["name, first"][:3] == ["text", "40", "0"] and lines["name, first"][-1] == "--drop"
    assert lines["born"][0] == "dates" and lines["born"][-1] == "--drop"
    assert lines["age (years)"][:2] == ["numbers,", "texts"] and lines["age (years)"][-2:] == ["--na", "unknown"]
    assert lines["income"][0] == "numbers" and lines["income"][2] == "9" and lines["income"][-1] == "--missing"
    assert lines["home town"][-1] == "--one-hot" and lines["row"][-1] == "--drop"
    assert lines["smoker"][-2:] == ["the", "target"]
    typed = shlex.split(found.out.splitlines()[-1])
    assert typed[:4] == ["screenpath", "cv", "svm", "t.csv"]
    assert call(*typed[1:], "--grid", "3", "-o", "r", "--quiet").code == 0
    record = screenpath.load_run("r").run.record
    assert record["data"]["table"]["columns"] == ["age (years)", "income", "home town"]
    assert call("predict", "r", "t.csv").out.startswith("id,label\np0,")


@pytest.mark.parametrize("name", ["clinic", "penguins", "rare", "numbers", "classes", "zeros", "endless"])
def test_the_command_line_works_when_typed(call, name):
    rng = np.random.default_rng(1)
    tables = {
        "rare": {"a": rng.normal(size=40), "y": ["yes" if k < 3 else "no" for k in range(40)]},
        "numbers": {"a": rng.normal(size=40), "b": np.where(np.arange(40) % 5, "NA", "1.5"), "y": rng.normal(size=40)},
        "classes": {"a": rng.normal(size=60), "b": rng.normal(size=60), "kind": ["ash", "elm", "oak"] * 20},
        "zeros": {"row": range(40), "a:b": rng.normal(size=40), "c": [""] * 40, "y": ["", "1", "2", "2"] * 10},
    }
    tables["endless"] = {"a": ["inf" if k == 3 else 0.1 * k for k in range(40)], "y": [k % 2 for k in range(40)]}
    path = write("t.csv", **tables[name]) if name in tables else ROOT / "data_samples" / f"{name}.csv"
    typed = shlex.split(call("inspect", path).out.splitlines()[-1])
    model = {"numbers": "lad", "classes": "sparse-svm"}.get(name, "svm")
    assert model in typed[1:3] and ("cv" in typed) == (name != "rare")
    few = ("--betas", "2", "--alphas", "2") if model == "sparse-svm" else ("--grid", "2")
    found = call(*typed[1:], *few, "--quiet", "-o", "r")
    assert found.code == 0, found.err


def test_faults_come_all_at_once_by_column(call):
    write("t.csv", **people())
    found = call("svm", "t.csv", "--target", "smoker", "--missing", "drop", "-o", "r")
    assert found.code == 1
    first, *columns, hint = found.err.splitlines()
    assert "5 columns cannot be read as they are" in first
    names = [line.split("'")[1] for line in columns]
    assert names == ["id", "name, first", "born", "age (years)", "home town"]
    assert "line 2" in columns[0] and "59 more such lines" in columns[0] and "2 more such lines" in columns[3]
    typed = shlex.split(hint.split(" ends with")[0])
    assert call(*typed[1:]).out.splitlines()[-2] == "to learn 'smoker', type"


@pytest.mark.parametrize(
    ("column", "advised", "never"),
    [
        ("id", ("--drop", "--id"), "--one-hot"), ("name, first", ("--drop",), "--one-hot"),
        ("born", ("--drop",), "--one-hot"), ("age (years)", ("--na",), "--one-hot"),
        ("home town", ("--drop", "--one-hot"), "--na"),
    ],
)  # fmt: skip
def test_each_way_out_that_a_hint_names_works(call, column, advised, never):
    write("t.csv", **people())
    options = ("svm", "t.csv", "--target", "smoker", "--grid", "2", "--quiet", "-o", "r", "--force")
    found = call(*options, "--columns", column, "--columns", "row")
    hint = found.err.splitlines()[-1]
    assert never not in hint and all(one in hint for one in advised)
    words = shlex.split(hint.replace(",", " ") if "," not in column else hint.replace(": --", " --"))
    for flag in advised:
        more = [flag, words[words.index(flag) + 1].rstrip(",")]
        more += ["--missing", "mean"] if flag == "--na" else []
        kept = ("--columns", "row") if flag in ("--drop", "--id") else ("--columns", column, "--columns", "row")
        assert call(*options, *kept, *more).code == 0


def test_the_command_line_keeps_what_the_user_has_chosen(call):
    write("t.csv", **people())
    options = ("--target", "smoker", "--id", "row", "--drop", "home town,id", "--one-hot", "born", "--na", "unknown")
    typed = shlex.split(call("inspect", "t.csv", *options, "--missing", "zero").out.splitlines()[-1])
    assert typed[typed.index("--id") + 1] == "row" and typed[typed.index("--one-hot") + 1] == "born"
    dropped = [typed[k + 1] for k, word in enumerate(typed) if word == "--drop"]
    assert dropped == ["id,home town", "name, first"] and typed[typed.index("--missing") + 1] == "0.0"
    assert call(*typed[1:], "--grid", "2", "-o", "r", "--quiet").code == 0
    assert "missing values 0.0" in call("show", "r").out


def test_columns_from_python(tmp_path):
    path = write(tmp_path / "t.csv", **people())
    seen = screenpath.inspect(path, na="unknown", missing="median")
    assert seen.target == "smoker" and "--na unknown --missing median" in seen.command
    kinds = {column.name: (column.kind, column.different, column.missing, column.option) for column in seen.columns}
    assert kinds["age (years)"][0] == "numbers" and kinds["age (years)"][2:] == (3, None)
    assert kinds["id"] == ("text", 60, 0, "id") and kinds["row"] == ("numbers", 60, 0, "drop")
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet

    some = {name: values for name, values in people().items() if name != "age (years)"}
    some["income"] = [None if value == "" else value for value in some["income"]]
    pyarrow.parquet.write_table(pa.table(some), tmp_path / "t.parquet")
    other = screenpath.inspect(tmp_path / "t.parquet", na="unknown")
    for column in other.columns:
        assert (column.kind, column.different, column.missing, column.option) == kinds[column.name]


def test_the_comma_is_named_as_the_command_line_names_it(call):
    for mark, cell in (("thousands", "1,234.5"), ("decimal", "1.234,5"), ("thousands", "1,234"), ("decimal", "0,234")):
        Path("t.csv").write_text("a;y\n" + f"{cell};0\n{cell};1\n")
        (row,) = (line for line in call("inspect", "t.csv").out.splitlines() if line.startswith("a "))
        assert row.endswith(f"--{mark}")


def test_prices_look_like_targets_however_they_are_written(call):
    Path("t.csv").write_text("a,y\n1,2.50\n2,3.75\n3,4.10\n")
    found = call("svm", "t.csv")
    assert "4.10 (1 sample)" in found.err and "targets of a regression: use lad, svr or quantile" in found.err


def test_numbers_without_names_are_told_how_to_get_them(call):
    Path("t.csv").write_text("1,2.5,0\n2,3.5,1\n3,4.5,0\n")
    found = call("inspect", "t.csv")
    assert found.code == 1 and found.out.count("fault: ") == 3
    assert found.out.count("CSV is read where") == 2 and found.out.count("cat OLD") == 1
    typed = found.out.split("labels: ")[1].split("; in LIBSVM")[0]
    subprocess.run(typed.replace("OLD", "t.csv").replace("NEW", "new.csv"), shell=True, check=True)
    assert call("svm", "new.csv", "--grid", 2, "-o", "r").code == 0
    Path("empty").write_text("")
    found = call("inspect", "empty")
    assert found.code == 1 and found.err == "error: empty holds no samples\n  add a row for each sample\n"


def test_columns_of_folds_and_groups_are_of_tables(call, data):
    for option in ("--fold-column", "--group-column"):
        assert f"{option} " in call("cv", "svm", data, option, "site").err


def test_blanks_between_cells_and_lines_above_the_names(call):
    rows = "".join(f"{k % 2} {k * k % 7}\n" for k in range(20))
    Path("t.txt").write_text(f"y a\n{rows}")
    found = call("svm", "t.txt")
    assert found.code == 1 and found.err.endswith("below the names of its columns, is read with --delimiter ' '\n")
    assert call("svm", "t.txt", "--delimiter", " ", "--grid", 2, "-q", "-o", "r").code == 0
    Path("t.csv").write_text(f"# of today\ny (all),a\n{rows}".replace(" ", ","))
    assert "remove the line above the names" in call("svm", "t.csv").err
    Path("t.svm").write_text("1 1:2 3,4\n")
    assert "delimiter" not in call("svm", "t.svm").err and "CSV" not in call("svm", "t.svm").err


def test_infinity_that_stands_for_a_missing_value(call):
    """In Parquet, where it is a number, as in CSV; with its sign."""
    table = {"a": [float("-inf") if k == 3 else 0.1 * k for k in range(40)], "y": [k % 2 for k in range(40)]}
    write("t.csv", **table)
    pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").table(table), "t.p")
    for file in ("t.csv", "t.p"):
        words = ("svm", file, "--missing", "median", "--grid", 3, "-q", "-o", f"r{file}", "--certificate")
        assert "nan or infinity" in call(*words, "--na", "inf").err
        assert call(*words, "--na", "-inf").code == 0 and call("verify", f"r{file}", file).code == 0


def test_nothing_to_learn_gives_no_command_line(call):
    Path("t.csv").write_text("a,y\n")
    for words in (("inspect", "t.csv"), ("svm", "t.csv", "--missing", "drop")):
        assert "t.csv holds no samples\n  add a row for each sample" in call(*words).err
    for text in ("a,y\n,\n,\n", "a,y\n1,1\n2,1\n"):
        Path("t.csv").write_text(text)
        found = call("inspect", "t.csv")
        assert "to learn" not in found.out and "what to do" in found.out
    Path("t.csv").write_text("a,y\n,1\n2,NA\n")
    found = call("svm", "t.csv", "--missing", "drop")
    assert found.code == 1 and "every row lacks a value" in found.err
    typed = shlex.split(found.err.splitlines()[-1].split(": ", 1)[1].removesuffix(" counts them"))
    assert "missing" in call(*typed[1:]).out


def test_few_rows_of_different_texts_are_not_encoded(call):
    write("t.csv", name=["Ann", "Bob", "Cy", "Di", "Ed"], a=[1, 2, 3, 4, 5], y=[1, 2, 1, 2, 1])
    found = call("svm", "t.csv")
    assert "--one-hot" not in found.err and "--id name" in found.err


@pytest.mark.parametrize(
    ("header", "said", "typed"),
    [(",a,b,y", "column 1 has no name\n  give it a name; row numbers are left out by", ""),
     ("a,b,,y", "column 3 has no name", ""), ("a,b,a,y", "columns 1 and 3 have the name 'a'", "a")],
)  # fmt: skip
def test_columns_without_a_name_of_their_own_can_be_left_out(call, header, said, typed):
    """As pandas and R write the numbers of rows, and as a comma at each line's end makes one."""
    rng = np.random.default_rng(0)
    rows = np.round(np.c_[rng.normal(size=(20, 3)), np.arange(20) % 2], 3).tolist()
    Path("t.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    for command in ("svm", "inspect"):
        refused = call(command, "t.csv")
        assert refused.code == 1 and said in refused.err and f"--drop {shlex.quote(typed)}" in refused.err
    assert call("svm", "t.csv", "--drop", typed, "--grid", "3", "--certificate", "-q", "-o", "r").code == 0
    assert {*screenpath.load_run("r").feature_names} == {*"ab"} - {typed} and call("verify", "r", "t.csv").code == 0
    shown = call("inspect", "t.csv", "--drop", typed)
    assert shown.code == 0 and call(*shlex.split(shown.out.splitlines()[-1])[1:], "--grid", "3", "-q").code == 0
    copied = call("predict", "r", "t.csv", "--step", "2", "-q", "--append")
    assert copied.out.startswith(f"{header},label\n") == (not typed)
    assert copied.code == (typed != "") and "--drop" not in copied.err  # two of one name have one place in the copy
