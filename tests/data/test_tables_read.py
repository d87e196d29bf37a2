"""CSV and Parquet: what is read, what is refused and in which words, and shards made of them."""

import gzip
import io
import os
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

import screenpath
from screenpath.data.files.columns import features
from screenpath.data.files.csv_file import CsvFile
from screenpath.data.files.libsvm import MARKED
from screenpath.data.files.read import read_data, read_like
from screenpath.data.shards.convert import convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import DataError, UsageError
from screenpath.inputs.inspect import inspect

PLAIN = "age,height,class\n1,2.5,1\n0,-3,2\n4,0,1\n"
X = [[1.0, 2.5], [0.0, -3.0], [4.0, 0.0]]


def csv(text, **options):
    return read_data(io.BytesIO(text.encode()), **options)


def parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def same(data, text):
    other = screenpath.read_libsvm(io.BytesIO(text), n_features=data.d)
    assert data.fingerprint() == other.fingerprint() and data.X.dtype == other.X.dtype
    assert data.X.indices.dtype == other.X.indices.dtype


@pytest.mark.parametrize(
    "text",
    [
        PLAIN, PLAIN.replace(",", ";"), PLAIN.replace(",", "\t"), PLAIN.replace("\n", "\r\n"), "\ufeff" + PLAIN,
        "\n" + PLAIN + "\n\n", PLAIN.strip(), '"age","height","class"\n"1","2.5","1"\n0,-3,2\n4,0,1\n',
        "age, height, class\n 1, 2.5, 1\n0 ,-3,2\n4,0,1\n",
    ],
)  # fmt: skip
def test_csv_is_what_the_same_text_in_the_other_format_is(text):
    data = csv(text)
    same(data, b"1 1:1 2:2.5\n2 2:-3\n1 1:4\n")
    assert data.names == ("age", "height") and data.label_names is None
    assert (data.form.target, data.form.columns) == ("class", ("age", "height"))


def test_compressed_csv_from_a_file(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(PLAIN.encode()))
    same(read_data(tmp_path / "a"), b"1 1:1 2:2.5\n2 2:-3\n1 1:4\n")


def test_parquet_is_the_same(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = parquet(
        tmp_path / "a", age=np.array([1, 0, 4], dtype=np.int8), height=pa.array([2.5, -3.0, 0.0]),
        wed=[True, False, True], y=[1, 2, 1],
    )  # fmt: skip
    data = read_data(path)
    assert repr(data) == f"<Dataset: {data.n:,} rows, {data.width:,} features, from {data.source}>"
    same(data, b"1 1:1 2:2.5 3:1\n2 2:-3\n1 1:4 3:1\n")
    assert data.names == ("age", "height", "wed")
    with pytest.raises(DataError, match="not read from a stream"), open(path, "rb") as stream:
        read_data(stream)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="is damaged"):
        read_data(path)


def test_labels_that_are_texts(tmp_path):
    text = "a,label\n1,no\n2,yes\n3,no\n"
    data = csv(text)
    assert data.label_names == ("no", "yes") and data.y.tolist() == [0.0, 1.0, 0.0]
    pa = pytest.importorskip("pyarrow")
    for labels in (["no", "yes", "no"], pa.array(["no", "yes", "no"]).dictionary_encode()):
        other = read_data(parquet(tmp_path / "a", a=[1.0, 2.0, 3.0], label=labels))
        assert other.fingerprint() == data.fingerprint() and other.label_names == data.label_names
    assert csv("a,label\n1,2\n2,other\n3,2\n").label_names == ("2", "other")


def test_labels_true_and_false_keep_their_names(tmp_path):
    data = csv("a,label\n1,True\n2,False\n")
    assert data.label_names == ("False", "True") and data.y.tolist() == [1.0, 0.0]
    assert csv("on,label\nTrue,1\nFalse,2\n").X.toarray().ravel().tolist() == [1.0, 0.0]
    pytest.importorskip("pyarrow")
    other = read_data(parquet(tmp_path / "a", a=[1, 2], label=[True, False]))
    assert other.label_names == data.label_names and other.fingerprint() == data.fingerprint()


def test_bytes_that_are_no_utf8_have_their_line():
    lines = ["a,city,class", *(f"{k},Graz,{k % 2}" for k in range(3000))]
    lines[2500] = lines[2500].replace("Graz", "Gr\xe4z")
    for first in ("0,Graz,0", '0,"Gr,z",0'):
        lines[1] = first
        with pytest.raises(DataError, match=r"line 2501, byte 8: .*\n  save the file as UTF-8"):
            read_data(io.BytesIO("\n".join(lines).encode("latin-1")), one_hot=["city"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "idna"])
def test_text_that_is_not_in_the_encoding(encoding):
    with pytest.raises(DataError, match=f"is not {encoding.upper()} text\n  leave out `encoding`"):
        read_data(io.BytesIO("a,city,class\n1,Gr\xe4z,0\n".encode()), encoding=encoding)


@pytest.mark.parametrize("delimiter", ["|", " "])
def test_other_delimiters_are_told(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text(PLAIN.replace(",", delimiter))
    for read in (read_data, inspect, lambda *a, **k: convert([a[0]], tmp_path / "shards", **k)):
        with pytest.raises(DataError, match="a comma, a semicolon or a tab"):
            read(path, target="class")
    with pytest.raises(DataError, match="a comma, a semicolon or a tab" if delimiter == "|" else "without ':'"):
        read_data(path)


def test_a_quote_that_does_not_end():
    with pytest.raises(DataError, match='begins with " ends with one'):
        csv('a,class\n"1,1\n2,2\n')


def test_utf16_is_named():
    for order in ("utf-16", "utf-16-le", "utf-16-be"):
        text = PLAIN if order == "utf-16" else "\ufeff" + PLAIN
        with pytest.raises(DataError, match=r"is UTF-16 text.*\n.*`encoding=utf-16`"):
            read_data(io.BytesIO(text.encode(order)))


def test_the_text_among_numbers_is_known(tmp_path):
    labels = ["3", "5", "high", "4"]
    text = "\n".join(["a,class", *(f"1,{label}" for label in labels)])
    found = csv(text).text_label
    assert "line 4, column 'class': this is not a number: 'high'" in str(found)
    assert csv("a,class\n1,yes\n2,no\n").text_label is None
    (tmp_path / "t.csv").write_text(text)
    assert any("line 4, column 'class'" in notice for notice in inspect(tmp_path / "t.csv").data.notices)
    pytest.importorskip("pyarrow")
    assert "row 3, column 'y'" in str(read_data(parquet(tmp_path / "a", a=[1, 2, 3, 4], y=labels)).text_label)


def test_a_target_of_dates_is_not_missing(tmp_path):
    pytest.importorskip("pyarrow")
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[s]")
    with pytest.raises(DataError, match=r"row 1, column 'y': the column holds dates") as caught:
        read_data(parquet(tmp_path / "a", a=[1, 2], y=days))
    assert "`target=COLUMN`" in str(caught.value)


def test_blanks_around_names_of_columns_are_none(tmp_path):
    pytest.importorskip("pyarrow")
    data = read_data(parquet(tmp_path / "a", **{" a ": [1, 2], "b": [3, 4], " y": [1, 2]}))
    assert data.names == ("a", "b") and data.form.target == "y"
    old = replace(data.form, columns=(" a ", "b"))  # of a run that has kept them
    assert read_like(io.BytesIO(b"b,a,y\n3,1,1\n"), form=old).X.toarray().tolist() == [[1.0, 3.0]]


def test_a_run_has_settled_what_is_encoded():
    form = csv("a,class\n1,1\n2,2\n").form
    with pytest.raises(DataError, match="write a number, as in the training data") as caught:
        read_like(io.BytesIO(b"a,class\nhigh,1\n"), form=form)
    assert "one_hot" not in str(caught.value)
    with pytest.raises(DataError, match="test data have labels; .* use screenpath predict") as caught:
        read_like(io.BytesIO(b"a,z\n1,2\n"), form=form)
    assert caught.value.message.endswith("has no column 'class' of labels")


def test_new_data_with_another_decimal_mark_hear_of_that_of_the_run():
    form = csv("a;b;class\n1,5;2;1\n2;3,5;2\n", decimal=",").form
    for new in (b"a;b;class\n38.4;2,5;1\n", b"a;b;class\n38.4;2.5;1\n"):
        with pytest.raises(DataError, match="the run reads numbers with a decimal ',': write 38,4") as caught:
            read_like(io.BytesIO(new), form=form)
        assert "drop" not in str(caught.value) and "inspect" not in str(caught.value)


def test_labels_do_not_hang_on_where_the_first_text_stands(monkeypatch):
    monkeypatch.setattr("screenpath.data.files.reader.CELLS", 4)
    rows = ["1,1.0", "2,2", "3,1", "4,other", "5,2.0", "6,other"]
    for turned in (rows, rows[::-1], rows[3:] + rows[:3]):
        data = csv("\n".join(["a,class", *turned]))
        assert data.label_names == ("1", "2", "other")
        assert data.y[np.argsort(data.X.toarray().ravel())].tolist() == [0.0, 1.0, 0.0, 2.0, 1.0, 2.0]


def test_one_hot_columns(tmp_path):
    text = "size,colour,y,age\n0,red,1,5\n2,blue,2,0\n3,red,1,1\n"
    data = csv(text, one_hot=["colour"])
    assert data.names == ("size", "colour=blue", "colour=red", "age")
    assert data.X.toarray().tolist() == [[0, 0, 1, 5], [2, 1, 0, 0], [3, 0, 1, 1]]
    other = parquet(tmp_path / "a", size=[0, 2, 3], colour=["red", "blue", "red"], y=[1, 2, 1], age=[5, 0, 1])
    assert read_data(other, one_hot=["colour"]).fingerprint() == data.fingerprint()
    new = io.BytesIO(b"age,colour,size,more\n1,green,2,0\n0,blue,0,0\n")
    new = read_like(new, form=data.form, labels=MARKED)
    assert new.X.toarray().tolist() == [[2, 0, 0, 1], [0, 1, 0, 0]] and np.isnan(new.y).all()
    assert "more" in new.notices[0] and "1 row has a value of 'colour'" in new.notices[1]
    assert csv(text, one_hot=["colour", "size", "age"]).d == 8  # numbers may be kinds, too


def test_a_text_is_the_name_of_one_column(tmp_path):
    """It was taken for the list of its letters: the advice `one_hot=city` said that there is no column 'c'."""
    text, file = "age,city,class\n3,Bern,1\n2,Rome,2\n", tmp_path / "a.csv"
    file.write_text(text)
    assert csv(text, one_hot="city").names == ("age", "city=Bern", "city=Rome")
    assert inspect(file, one_hot="city").faults == []
    assert convert([file], tmp_path / "shards", one_hot="city").d == 3


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b,y\n1,2,1\n1,x,2\n", {}, r"line 3, column 'b': this is not a number: 'x'[\s\S]*`one_hot=b`"),
        ("a;b;y\n1,5;2;1\n", {}, r"line 2, column 'a': a number with a comma: '1,5'\n.*`decimal=,`"),
        ('a,b,y\n1,"-1,234.5e3",1\n', {}, "a number with a comma: '-1,234.5e3'"),
        ("a;b;y\n1,x;2;1\n", {}, r"not a number: '1,x'\n.*`one_hot=a`"),
        ("a,b,y\n1,2,1\n1,,2\n", {}, "line 3, column 'b': the value is missing"),
        ("a,b,y\n1,2,1\n1,nan,2\n", {}, "line 3, column 'b': the value is missing: 'nan'"),
        ("a,b,y\n1,2,1\n\n1,2,\n", {}, "line 4, column 'y': the value is missing"),
        ("a,b,y\n1,2,1\n1,2,?\n", {}, r"line 3, column 'y': the value is missing: '\?'"),
        ("a,b,y\n1,2,1\n1,2,inf\n", {}, "line 3, column 'y': nan or infinity: 'inf'\n  write a number"),
        ('a,"b\nc",y\n', {}, "holds no samples"), ("a,b,y\n1,2,1\n1,2\n", {}, "line 3: 2 cells, the header has 3"),
        ("a,b,y\n1,2,1\n1,2,3,4\n", {}, "line 3: 4 cells"), ('a,b,y\n1,2,1\n1,"2,3\n', {}, "line 3: this is not CSV"),
        ("y,a,b,y\n1,2,1,1\n", {}, "columns 1 and 4 have the name 'y'\n  rename one of them$"),
        ("a,b,c\n1,2,1\n", {}, r"which column is the target\?[\s\S]*there are a, b, c"),
        ("a,y,label\n1,2,1\n", {}, "y and label may be"),
        ("a,b,c\n1,2,1\n", {"target": "d"}, r"no column 'd' \(`target=d`\)[\s\S]*there are a, b, c"),
        ("a,b,y\n1,2,1\n", {"one_hot": ["d"]}, r"no column 'd' \(`one_hot=d`\)"),
        ("a,b,y\n1,2,1\n", {"one_hot": ["y"]}, "is the target"),
        ("a,b,y\n1,2,1\n", {"zero_based": True}, "is about LIBSVM text"),
        ("a,b,y\n1,2,1\n", {"n_features": 5}, "is about LIBSVM text"), ("a,b,y\n", {}, "holds no samples"),
        ("a,b,y\n" + "".join(f"1,2,{k}.5\n" for k in range(150)) + "1,2,high\n", {}, "line 152, column 'y'.*'high'"),
        ("1 2:3\n", {"target": "y"}, "names a column of CSV or Parquet"),
        ("1 2:3\n", {"drop": ["2"]}, "names a column of CSV or Parquet"),
        ("1,2,3\n4,5,6\n", {}, "first line has the names"), ("1,2 1:3 2:4\n", {}, "a list of labels"),
    ],
)  # fmt: skip
def test_faults_name_line_column_token_and_remedy(text, options, words):
    with pytest.raises((DataError, UsageError), match=words):
        csv(text, **options)


def test_no_column_is_searched_among_all():
    """Of 16,000 columns the search for each took 14 s, reading them 0.3 s."""
    file = CsvFile(io.BytesIO(b"a,b\n1,2\n"), "t", ",")
    file.columns = dict.fromkeys(file.columns)  # has no `index`
    (batch,) = file.batches(2, ["b"])
    assert batch.block(["b"]).tolist() == [[2.0]] and batch.written("b") == ["2"] and batch.written("a") == ["1"]


def test_two_columns_of_parquet_with_one_name(tmp_path):
    """The library finds neither by its name, so whoever looks at all columns says so."""
    pyarrow, file = pytest.importorskip("pyarrow"), tmp_path / "t"
    table = pyarrow.table([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [0, 1]], names=list("abay"))
    pytest.importorskip("pyarrow.parquet").write_table(table, file)
    assert read_data(file, drop="a").names == ("b",)
    for function in (read_data, lambda file: inspect(file, drop="a")):
        with pytest.raises(DataError, match="columns 1 and 3 have the name 'a'"):
            function(file)


def test_faults_of_parquet(tmp_path):
    for columns, words in (
        ({"a": [1.0, None]}, "row 2, column 'a': the value is missing"),
        ({"a": [1.0, float("nan")]}, "row 2, column 'a': the value is missing"),
        ({"a": [1.0, float("inf")]}, "row 2, column 'a': nan or infinity"),
        ({"a": ["u", "v"]}, r"column 'a': the column holds string, not numbers[\s\S]*`one_hot=a`"),
        ({"a": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")}, "holds dates"),
    ):
        with pytest.raises(DataError, match=words):
            read_data(parquet(tmp_path / "a", **columns, y=[1, 2]))
    path = parquet(tmp_path / "a", a=[1.0, 2.0], y=["u", None])
    with pytest.raises(DataError, match="row 2, column 'y': the value is missing"):
        read_data(path)


def test_without_pyarrow_parquet_is_one_clear_error(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a", a=[1.0, 2.0], y=[1, 2])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"which needs pyarrow[\s\S]*screenpath\[parquet\]"):
        read_data(path)


def test_new_data_by_name_and_by_place():
    form = csv(PLAIN).form
    new = read_like(io.BytesIO(b"class,height,age\n2,7,0\n,8,1\n?,0,2\n"), form=form, labels=MARKED)
    assert new.X.toarray().tolist() == [[0, 7], [1, 8], [2, 0]]
    assert new.y[0] == 2.0 and np.isnan(new.y[1:]).all()
    with pytest.raises(DataError, match="lacks columns of the training data: height"):
        read_like(io.BytesIO(b"age,class\n2,7\n"), form=form, labels=MARKED)
    assert read_like(io.BytesIO(b"p,q\n2,7\n"), width=2, labels=MARKED).X.toarray().tolist() == [[2, 7]]
    assert read_like(io.BytesIO(b"p,y,q\n2,1,7\n"), width=2, labels=MARKED).X.toarray().tolist() == [[2, 7]]


def test_inspect_lists_the_faults_and_the_rest(tmp_path):
    (tmp_path / "a").write_text("a,b,y\n1,2,u\nx,2,v\n3,,u\n4,5,v\n5,6,\n")
    seen = inspect(tmp_path / "a")
    assert [(fault.line, fault.column) for fault in seen.faults] == [(3, "a"), (4, "b"), (6, "y")]
    assert seen.data.X.toarray().tolist() == [[1, 2], [4, 5]] and seen.data.label_names == ("u", "v")
    assert len(inspect(tmp_path / "a", max_faults=2).faults) == 2


def test_inspect_lists_the_first_fault_of_a_kind_and_counts_the_others(tmp_path):
    rows = "".join(f"{k},{'Rome' if k % 10 else 1},{'' if k == 7 else 2},{k % 2}\n" for k in range(50))
    (tmp_path / "a").write_text("a,city,b,y\n" + rows)
    seen = inspect(tmp_path / "a")
    found = [(fault.line, fault.column, fault.more) for fault in seen.faults]
    assert found == [(3, "city", 44), (9, "b", 0)]
    assert "this is not a number: 'Rome' (and 44 more such lines)" in str(seen.faults[0])
    assert seen.complete and seen.data.n == 5
    cut = inspect(tmp_path / "a", max_faults=1)
    assert [(fault.line, fault.more) for fault in cut.faults] == [(3, 44)] and not cut.complete


# -- shards ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    """Columns of numbers, some 0, and of texts."""
    rng = np.random.default_rng(0)
    numbers = np.round(rng.normal(size=(500, 3)), 3)
    numbers[rng.random(numbers.shape) < 0.2] = 0.0
    return numbers, rng.choice(["red", "green", "blue"], 500), np.where(rng.random(500) < 0.5, "no", "yes")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("hot", [False, True], ids=["numbers", "one-hot"])
def test_shards_of_tables_hold_what_reading_gives(rows, tmp_path, kind, hot, monkeypatch):
    numbers, colours, labels = rows
    columns = {**dict(zip("abc", numbers.T, strict=True)), **({"colour": colours} if hot else {}), "label": labels}
    files = []
    for k, part in enumerate((slice(0, 123), slice(123, 500))):
        files.append(tmp_path / str(k))
        if kind == "csv":
            lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
            files[k].write_text("\n".join([lines[0], *lines[1:][part]]))
        else:
            parquet(files[k], **{name: column[part] for name, column in columns.items()})
    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)
    one_hot = ["colour"] if hot else []
    folder = convert(files, tmp_path / "s", block_mb=1e-3, jobs=2, one_hot=one_hot)
    assert folder.count > 3 and ShardFolder(folder.path, content=True).check() is None
    found, whole = folder.dataset(), [read_data(file, one_hot=one_hot) for file in files]
    assert np.array_equal(found.X.toarray(), np.vstack([one.X.toarray() for one in whole]))
    assert np.array_equal(found.y, np.concatenate([one.y for one in whole]))
    assert found.names == whole[0].names and found.label_names == ("no", "yes") and found.form == whole[0].form
    assert inspect(folder.path).faults == []
    again = convert(files, tmp_path / "s2", block_mb=1e-3, one_hot=one_hot, storage="sparse")
    assert np.array_equal(again.dataset().X.toarray(), found.X.toarray())


def test_a_conversion_of_a_table_is_resumed_and_refuses_other_rows(rows, tmp_path, monkeypatch):
    numbers, _, _ = rows
    path = parquet(tmp_path / "a", a=numbers[:, 0], b=numbers[:, 1], y=np.sign(numbers[:, 2]))
    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)

    def stop(seen, size):
        if seen > 200:
            raise KeyboardInterrupt

    whole = convert([path], tmp_path / "whole", block_mb=1e-3)
    for change in (0.0, 1.0):
        with pytest.raises(KeyboardInterrupt):
            convert([path], tmp_path / f"s{change}", block_mb=1e-3, progress=stop)
        parquet(path, a=numbers[:, 0] + change, b=numbers[:, 1], y=np.sign(numbers[:, 2]))
        if change:
            with pytest.raises(screenpath.data.shards.convert.RunFolderError, match="has changed"):
                convert([path], tmp_path / f"s{change}", block_mb=1e-3, resume=True)
        else:
            done = convert([path], tmp_path / f"s{change}", block_mb=1e-3, resume=True)
            assert done.sha256 == whole.sha256 and done.meta == whole.meta


def test_tables_and_text_do_not_go_into_one_folder(tmp_path):
    (tmp_path / "a").write_text(PLAIN)
    (tmp_path / "b").write_text("1 1:2\n")
    with pytest.raises(DataError, match="is a table"):
        convert([tmp_path / "a", tmp_path / "b"], tmp_path / "s")
    (tmp_path / "b").write_text("age,class\n1,2\n")
    with pytest.raises(DataError, match="lacks columns"):
        convert([tmp_path / "a", tmp_path / "b"], tmp_path / "s")
    with pytest.raises(DataError, match="too large for float32"):
        (tmp_path / "b").write_text("age,class\n1e300,2\n")
        convert([tmp_path / "b"], tmp_path / "s", dtype="float32")


@pytest.mark.parametrize(
    "text",
    ["1\t\n2 1:3\n", "1 # a, b\n2 1:3\n", "? # a,b\n", "# a,b\n1 1:2\n", "1 1:2 # a,b\n", "+1\n-1\n", "1 1:2,\n", ""],
)
def test_libsvm_text_is_not_taken_for_csv(text):
    try:
        found = csv(text)
    except DataError as error:
        assert "cells" not in str(error) and "column" not in str(error)
    else:
        assert found.form is None


def test_tables_that_other_libraries_write(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"a": [1.5, 0.0, 2.0], "b": [True, False, True], "class": ["u", "v", "u"]})
    frame.index = [7, 8, 9]
    frame.to_parquet(tmp_path / "index")
    frame.rename_axis("id").to_parquet(tmp_path / "named")
    frame.astype({"class": "category"}).reset_index(drop=True).to_parquet(tmp_path / "plain")
    frame.to_csv(tmp_path / "csv", index=False)
    polars.from_pandas(frame).write_parquet(tmp_path / "polars")
    polars.from_pandas(frame).with_columns(polars.col("class").cast(polars.Categorical)).write_parquet(
        tmp_path / "kinds"
    )
    whole = csv("a,b,class\n1.5,1,u\n0,0,v\n2,1,u\n")
    for name in ("index", "named", "plain", "csv", "polars", "kinds"):
        found = read_data(tmp_path / name)
        assert found.fingerprint() == whole.fingerprint() and found.label_names == ("u", "v"), name
        assert ("the index of pandas" in "".join(found.notices)) == (name in ("index", "named"))


def test_types_of_parquet_columns(tmp_path):
    import decimal

    pa = pytest.importorskip("pyarrow")
    path = parquet(
        tmp_path / "a", money=pa.array([decimal.Decimal("1.25"), decimal.Decimal("0")]),
        kinds=pa.array([3, 4]).dictionary_encode(), small=np.array([1.5, 2.5], dtype=np.float32),
        large=pa.array([2**60, 0], type=pa.uint64()), y=[True, False],
    )  # fmt: skip
    data = read_data(path, one_hot=["kinds"])
    assert data.names == ("money", "kinds=3", "kinds=4", "small", "large") and data.y.tolist() == [1.0, 0.0]
    assert data.label_names == ("False", "True")
    assert data.X.toarray().tolist() == [[1.25, 1, 0, 1.5, 2.0**60], [0, 0, 1, 2.5, 0]]
    with pytest.raises(DataError, match="row 2, column 'b': the value is missing"):
        read_data(parquet(tmp_path / "b", b=pa.array([True, None]), y=[1, 2]))
    with pytest.raises(DataError, match="row 1, column 'b': the value is missing"):
        read_data(parquet(tmp_path / "b", b=pa.nulls(2), y=[1, 2]))


@pytest.mark.parametrize("text", ["1 1:2\n2 1:3\n", "a,y\n1,2\n3,4\n", "ham 1:2\nspam 1:3\n"])
def test_a_pipe_is_opened_once(tmp_path, text):
    os.mkfifo(tmp_path / "pipe")

    def write():
        (tmp_path / "pipe").write_text(text)

    for convert_it in (False, True):
        writer = threading.Thread(target=write)
        writer.start()
        if not convert_it:
            assert read_data(tmp_path / "pipe").n == 2
        else:
            assert convert([tmp_path / "pipe"], tmp_path / "s").n == 2
        writer.join()


def test_selectors_of_columns():
    names = ("a", "b", "c", "a:c", "x1", "x2", "y", "d,e")
    for columns, drop, expected in (
        ((), (), ("a", "b", "c", "a:c", "x1", "x2", "d,e")),
        ("a:x1", (), ("a", "b", "c", "a:c", "x1")),
        ("a:c", (), ("a:c",)),  # a column of this name
        ("x2, a", (), ("a", "x2")),
        (["d,e", "/x[1,2]/"], (), ("x1", "x2", "d,e")),
        ("!b,!/x/", (), ("a", "c", "a:c", "d,e")),
        ("a:x2,!c", "a", ("b", "a:c", "x1", "x2")),
        ((), "/x/,!x2", ("a", "b", "c", "a:c", "x2", "d,e")),
        ((), "x1:y", ("a", "b", "c", "a:c", "d,e")),  # a range over the target leaves it
        ((), "a:c:x1", ("a", "b", "c", "x2", "d,e")),
    ):
        assert features(names, "y", columns, drop) == expected
