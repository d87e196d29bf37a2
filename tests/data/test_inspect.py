"""A look at a file: its facts, and all its faults."""

import io

import numpy as np
import pytest

from screenpath.data.files.libsvm import read_libsvm
from screenpath.errors import DataError
from screenpath.inputs.inspect import inspect as look


def inspect(text: bytes, **options):
    return look(io.BytesIO(text), **options)


def test_inspect_reports_every_fault_and_the_rest(samples):
    seen = look(samples / "malformed" / "several.libsvm")
    assert [f.line for f in seen.faults] == [2, 4, 5] and seen.complete
    assert seen.data.n == 3 and seen.label_counts == {-1.0: 2, 1.0: 1}
    columns, low, high = seen.column_ranges()
    assert columns.tolist() == [0, 1]
    assert low.tolist() == [0.0, 0.0] and high.tolist() == [3.0, 2.0]
    np.testing.assert_allclose(seen.row_norms(), [1.0, 2.0, 3.0])
    assert [f.line for f in look(samples / "malformed" / "several.libsvm", max_faults=2).faults] == [2, 4]
    full = look(io.BytesIO(b"0.5 1:2\n1.5 1:3\n"))
    assert full.label_counts is None and full.column_ranges()[1].tolist() == [2.0]
    assert look(io.BytesIO(b"?\n")).data is None
    with pytest.raises(DataError, match="words, and not one feature"):
        look(io.BytesIO(b"x\n"))


def test_ranges_without_an_array_over_all_columns():
    seen = inspect(b"1 2:-5 900000000000000000:7\n-1 2:-6\n")
    columns, low, high = seen.column_ranges()
    assert columns.tolist() == [1, 899999999999999999]
    assert low.tolist() == [-6.0, 0.0] and high.tolist() == [-5.0, 7.0]


def test_empty_columns_are_left_out():
    columns, low, high = inspect(b"1 2:0 5:1\n-1 5:2\n").column_ranges()
    assert columns.tolist() == [1, 4] and low.tolist() == [0.0, 1.0] and high.tolist() == [0.0, 2.0]


def test_norms_of_extreme_values():
    norms = inspect(b"1 1:3e200 2:4e200\n1 1:3e-200 2:-4e-200\n1\n").row_norms()
    np.testing.assert_allclose(norms, [5e200, 5e-200, 0.0], rtol=1e-15)


def test_a_number_beyond_float64_takes_its_row_out():
    seen = inspect(b"1 1:1\n2 3:1e999 4:1e999\n1e999 9:1\n-1 2:5\n")
    assert [(f.line, f.token) for f in seen.faults] == [(2, "1e999"), (3, "1e999")]
    assert seen.data.y.tolist() == [1, -1] and seen.data.X.toarray().tolist() == [[1, 0], [0, 5]]


def test_more_faults_than_were_asked_for():
    text = b"1 1:1e999\n1 x:1\n" * 1000
    for most in (1, 2, 7, 10**12):
        seen = inspect(text, max_faults=most)
        assert [f.line for f in seen.faults] == list(range(1, min(most, 2000) + 1))
        assert seen.complete == (most > 2000) and seen.data is None


def test_all_malformed_files_are_inspected_or_refused_with_a_remedy(samples):
    for path in sorted((samples / "malformed").iterdir()):
        if path.name in ("README.md", "one_label.libsvm", "table.csv"):
            continue
        try:
            seen = look(path)
        except DataError as error:
            assert path.suffix == ".gz" and error.hint
            continue
        assert seen.faults or seen.data is None, path.name
        assert all(fault.hint for fault in seen.faults)
        with pytest.raises(DataError) as caught:
            read_libsvm(path)
        if seen.faults:
            assert caught.value.message == str(seen.faults[0])
