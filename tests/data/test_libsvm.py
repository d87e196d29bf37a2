"""The reader: exact numbers, every odd but legal file, every fault with its place and remedy."""

import contextlib
import io
import lzma
import struct
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.write_libsvm import libsvm_lines
from screenpath.errors import DataError, UsageError


def read(text: bytes, **options):
    return read_libsvm(io.BytesIO(text), **options)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(finite, st.dictionaries(st.integers(0, 200), finite, max_size=6)), min_size=1, max_size=8),
    block=st.sampled_from([16, 64, 1 << 20]),
)
def test_what_is_written_reads_back_to_the_same_bits(rows, block):
    indptr = np.cumsum([0] + [len(pairs) for _, pairs in rows])
    indices = np.array([j for _, pairs in rows for j in sorted(pairs)], dtype=np.int32)
    values = np.array([pairs[j] for _, pairs in rows for j in sorted(pairs)])
    X = sp.csr_array((values, indices, indptr), shape=(len(rows), 201))
    y = np.array([label for label, _ in rows])
    data = read("".join(libsvm_lines(X, y)).encode(), n_features=201, block=block)
    assert data.X.data.view(np.uint64).tolist() == values.view(np.uint64).tolist()
    np.testing.assert_array_equal(data.X.indices, indices)
    np.testing.assert_array_equal(data.X.indptr, indptr)
    assert data.y.tobytes() == y.tobytes()


@settings(max_examples=400, deadline=None)
@given(bits=st.integers(0, 2**64 - 1), digits=st.integers(1, 40))
def test_numbers_are_correctly_rounded(bits, digits):
    value = struct.unpack("d", struct.pack("Q", bits))[0]
    if not np.isfinite(value):
        value = float(bits)
    for text in (repr(value), f"{value:.{digits}e}", f"{value:.{digits}g}"):
        if np.isfinite(float(text)):
            got = read(f"1 1:{text}\n".encode()).X.data
            assert got.tobytes() == np.array([float(text)]).tobytes(), text


@pytest.mark.parametrize(
    "text",
    ["9007199254740993", "9007199254740992.5", "1e23", "8.5e22", "2.2250738585072011e-308", "4.9e-324", "1e-400",
     "1.7976931348623157e308", "0.1e1", ".5", "5.", "-0", "123456789012345678901234567890", "1e0000000000000005",
     "0.000000000000000000000000000000000000001", "0.1000000000000000055511151231257827", "000.00123456789012345678901",
     "1234567890123456789.", "9007199254740993.0000000000000000001", "9007199254740993.000000000000000000",
     "123456789012345678901234567890e-10",
     "0.00000000000000000000000000000000000000000000000000000000012345678901234567890",
     "6929495644600919.5", "3.5e-323", "0e999999999999"],
)  # fmt: skip
def test_hard_numbers(text):
    assert read(f"1 1:{text}\n".encode()).X.data.tobytes() == np.array([float(text)]).tobytes()


def test_labels_that_are_words():
    text = b"spam 1:2\r\n\n# c\n\xc3\xa9t\xc3\xa9\t3:1\n  ham 2:1 # x\nspam\n"
    for block in (4, 1 << 20):
        data = read(text, block=block)
        assert data.label_names == ("ham", "spam", "\u00e9t\u00e9") and data.y.tolist() == [1.0, 2.0, 0.0, 1.0]
        assert data.X.toarray().tolist() == [[2.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
        marked = read(b"? 1:1\n" + text, block=block, labels="marked")
        assert marked.label_names == data.label_names and np.isnan(marked.y[0])
        np.testing.assert_array_equal(marked.y[1:], data.y)
        assert read(text, block=block, labels="absent").label_names is None


@pytest.mark.parametrize(
    ("text", "line", "token", "message"),
    [(b"ham 1:1\n\n#\nspam 1:2\n3 1:1\n", 5, "3", "a number where labels are texts"),
     (b"ham 1:1\n# c\ninf 1:1\n", 3, "inf", "nan or infinity"),
     (b"1 1:1\nspam 1:1\n", 2, "spam", "the label is not a number"),
     (b"C# 1:1\n", 1, "C", "the label is not a number"),
     (b"a:b 1:1\n", 1, "a", "the label is not a number"),
     (b"a,b 1:1\n", 1, "a,b", "a list of labels"),
     (b"<html> 1:1\n", 1, "<html>", "the label is not a number"),
     (b"\xff\xfe 1:1\n", 1, "", "no plain text"),
     (b"ham world\n", 1, "world", "without ':'")],
)  # fmt: skip
def test_damage_is_no_word(text, line, token, message):
    for block in (4, 1 << 20):
        with pytest.raises(DataError, match=message) as caught:
            read(text, block=block)
        assert f"line {line}:" in caught.value.message and token in caught.value.message


def test_width_and_base():
    assert read(b"1 2:1\n", n_features=9).d == 9
    assert read(b"1 0:1 2:1\n", zero_based=True).X.toarray().tolist() == [[1, 0, 1]]
    assert read(b"1\n-1\n").X.shape == (2, 1)
    with pytest.raises(DataError, match="index 3 lies beyond `n_features=2`"):
        read(b"1 3:1\n", n_features=2)


def test_huge_indices_take_64_bits():
    data = read(b"1 5:1 3000000000:2\n-1 7:1\n")
    assert data.X.indices.dtype == np.int64 and data.d == 3000000000
    assert data.X[0, 2999999999] == 2.0
    assert read(b"1 5:1\n").X.indices.dtype == np.int32


def test_float32_values():
    data = read(b"1 1:0.1 2:3\n", dtype=np.float32)
    assert data.X.dtype == np.float32 and data.X.data.tolist() == [np.float32(0.1), 3.0]
    with pytest.raises(DataError, match="1e[+]?39 is too large for float32"):
        read(b"1 1:0.1 2:1e39\n", dtype=np.float32)


def test_index_with_leading_zeros():
    assert read(b"1 00000000000000000000002:5\n").X.toarray().tolist() == [[0, 5]]
    with pytest.raises(DataError, match="index is too large: '1000000000000000000'"):
        read(b"1 1000000000000000000:5\n")
    assert read(b"1 999999999999999999:5\n").d == 10**18 - 1


def test_lone_carriage_returns_are_named():
    with pytest.raises(DataError, match="line 1") as caught:
        read(b"1 1:1\r-1 2:2\r")
    assert "carriage returns" in caught.value.hint


def test_a_binary_file_with_a_carriage_return_has_no_lines_to_convert():
    with pytest.raises(DataError, match="a control byte: this is not text.*\n.*give LIBSVM text"):
        read_libsvm(io.BytesIO(b"\x7fELF\x02\x01\0\r1 1:1\n"))


def test_fingerprint_tells_data_apart():
    prints = {read(t).fingerprint() for t in (b"1 1:1\n", b"1 1:2\n", b"2 1:1\n", b"1 2:1\n", b"1 1:1\n1\n")}
    assert len(prints) == 5


def test_every_sample_agrees_with_scikit_learn(samples):
    found = [p for p in samples.iterdir() if ".libsvm" in p.suffixes]
    assert len(found) >= 9
    for path in found:
        with lzma.open(path) if path.suffix == ".xz" else contextlib.nullcontext(str(path)) as given:
            X, y = load_svmlight_file(given, zero_based=False)
        assert_same(read_libsvm(path), X, y)


@pytest.mark.parametrize(
    "name", ["binary/ijcnn1", "binary/w8a.t", "binary/pcmac", "multiclass/reuters_r8", "regression/cadata"]
)
def test_real_files_agree_with_scikit_learn(shared_data, name):
    path = shared_data / f"{name}.libsvm.gz"
    assert_same(read_libsvm(path), *load_svmlight_file(str(path), zero_based=False))


def assert_same(data, X, y):
    np.testing.assert_array_equal(data.y, y)
    assert data.X.shape == X.shape
    np.testing.assert_array_equal(data.X.indptr, X.indptr)
    np.testing.assert_array_equal(data.X.indices, X.indices)
    np.testing.assert_array_equal(data.X.data, X.data)


# file, line, token, what the message says, what the hint says
MALFORMED = [
    ("index_zero.libsvm", 3, "0", "index 0 in a file counted from 1", "`zero_based`"),
    ("negative_index.libsvm", 3, "-3", "a negative index", "indices from 1"),
    ("unsorted.libsvm", 3, "2", "not in increasing order", "sort"), ("duplicate.libsvm", 3, "2", "twice", "one value"),
    ("label_not_number.libsvm", 3, "spam", "the label is not a number", "label index:value"),
    ("value_not_number.libsvm", 3, "1.2.3", "the value is not a number", "label index:value"),
    ("index_not_number.libsvm", 3, "one", "not a whole number", "label index:value"),
    ("missing_value.libsvm", 3, "1:", "the value is missing", "leave the feature out"),
    ("missing_colon.libsvm", 3, "7", "without ':'", "label index:value"),
    ("nan.libsvm", 3, "nan", "nan or infinity", "impute"), ("infinity.libsvm", 3, "-inf", "nan or infinity", "impute"),
    ("overflow.libsvm", 3, "1e999", "too large for float64", "impute"),
    ("multilabel.libsvm", 3, "1,3", "a list of labels", "exactly one label"),
    ("huge_index.libsvm", 3, "99999999999999999999", "the index is too large", "below"),
    ("table.csv", 1, "label,a,b", "looks like CSV", "label index:value"),
    ("numbers.csv", 1, "1,0.5,2", "looks like CSV", "label index:value"),
    ("binary.libsvm", 1, r"\x00", "not text", "give LIBSVM text"),
    ("nul_byte.libsvm", 3, r"\x00", "not text", "give LIBSVM text"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "line", "token", "message", "hint"), MALFORMED)
def test_malformed_file_is_named_by_line_and_token(samples, name, line, token, message, hint):
    path = samples / "malformed" / name
    with pytest.raises(DataError) as caught:
        read_libsvm(path)
    assert f"{path}, line {line}:" in caught.value.message
    assert f"'{token}'" in caught.value.message and message in caught.value.message
    assert hint in caught.value.hint


REASONS = [
    ("a,b\xe9,y\n1,2,1\n".encode("latin1"), 1, "CSV that is not UTF-8", "encoding=latin-1"),
    (b'"a\nb",c,y\n1,2,1\n', 1, "CSV with a line break in a quoted cell", "on one line"),
    (b"a,b,y\r1,2,1\r", 1, "CSV whose lines end in lone carriage returns", "convert them: tr"),
    (b"# of last year\na,b,y\n1,2,1\n", 2, "CSV below other lines", "remove the line above"),
    (b"# a\n# b\na,b,y\n1,2,1\n", 3, "CSV below other lines", "remove the 2 lines above"),
    (b"1,2,1\n", 1, "looks like CSV, not LIBSVM text", "names of its columns"),
    (b"1:2.5 1:0.3 2:1\n", 1, "a label:weight", "`weights` names"),
    (b"-1 1:1\n+1:2e3\t1:0.3\n", 2, "a label:weight", "`no_labels`"),
    (b"1.5.1 1:0.3\n", 1, "the label is not a number", "label index:value"),
]


@pytest.mark.parametrize(("text", "line", "message", "hint"), REASONS)
def test_text_of_another_kind_is_told_why_it_is_not_read(text, line, message, hint):
    with pytest.raises(DataError) as caught:
        read_libsvm(io.BytesIO(text))
    assert f"line {line}: " in caught.value.message and message in caught.value.message
    assert hint in caught.value.hint


def test_every_malformed_file_is_tested(samples):
    tested = {row[0] for row in MALFORMED}
    tested |= {"empty.libsvm", "only_comments.libsvm", "one_label.libsvm", "truncated.libsvm.gz", "several.libsvm"}
    assert {p.name for p in (samples / "malformed").iterdir()} - {"README.md"} == tested


@pytest.mark.parametrize("first_index", [1, 3_000_000_000])
def test_extra_memory_is_bounded(first_index):
    line = b"1 " + b" ".join(b"%d:0.%d" % (first_index + j, 10**5 + j) for j in range(75)) + b"\n"
    stream = io.BytesIO(line * 4000)
    read(line)  # compiles
    tracemalloc.start()
    try:
        data = read_libsvm(stream, block=1 << 14)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    arrays = data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes + data.y.nbytes
    assert peak <= 2 * arrays


def test_widths_beyond_all_indices_are_refused():
    with pytest.raises(DataError, match="too much"):
        read_libsvm(io.BytesIO(b"1 1:2\n"), n_features=10**22)


def test_unknown_labels():
    """``?`` where it is allowed; with ``absent`` no label counts, and none need be there."""
    text = b"\xef\xbb\xbf? 1:1\n  ?\t2:2\r\n3 1:4\n?\n"
    marked = read_libsvm(io.BytesIO(text), labels="marked")
    assert np.isnan(marked.y).tolist() == [True, True, False, True] and marked.y[2] == 3.0
    assert marked.X.toarray().tolist() == [[1.0, 0.0], [0.0, 2.0], [4.0, 0.0], [0.0, 0.0]]
    absent = read_libsvm(io.BytesIO(text + b"1:5 2:6\n"), labels="absent", block=16)
    assert np.isnan(absent.y).all() and absent.X.toarray()[4].tolist() == [5.0, 6.0]
    with pytest.raises(DataError, match="line 1"):
        read_libsvm(io.BytesIO(text))
    with pytest.raises(UsageError, match="labels"):
        read_libsvm(io.BytesIO(text), labels="some")
