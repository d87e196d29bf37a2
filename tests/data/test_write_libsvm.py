"""LIBSVM text as it is written; the round trip is in tests/read."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.write_libsvm import libsvm_lines, write_libsvm
from screenpath.errors import DataError


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.bool_, np.float32, np.float64])
def test_every_type_of_value(dtype):
    assert list(libsvm_lines(np.array([[1, 0], [0, 1]], dtype=dtype), np.array([1, -1]))) == ["1 1:1\n", "-1 2:1\n"]


def test_unsorted_rows_and_duplicates_are_put_in_order():
    X = sp.csr_array((np.array([2.0, 1.0, 3.0]), np.array([4, 0, 4]), np.array([0, 3])), shape=(1, 5))
    assert list(libsvm_lines(X, [0.5])) == ["0.5 1:1 5:5\n"]
    assert X.data.tolist() == [2.0, 1.0, 3.0]  # the caller's matrix is left alone


def test_file_objects_are_written_to_and_left_open():
    out = io.BytesIO()
    write_libsvm(out, np.array([[0.1, -2.0]]), [1])
    assert out.getvalue() == b"1 1:0.1 2:-2\n"


def test_labels_that_are_words(tmp_path):
    labels = np.array(["spam", "h\u00e4m", "spam"])
    write_libsvm(tmp_path / "w", np.eye(3), labels)
    data = read_libsvm(tmp_path / "w")
    assert [data.label_names[int(code)] for code in data.y] == labels.tolist()
    for bad in ("", "a b", "a:b", "a,b", "C#", "1a", "nan", "_a", "a\n1 1:1"):
        with pytest.raises(DataError, match="cannot be written as LIBSVM text"):
            list(libsvm_lines(np.eye(2), ["ham", bad]))


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_files_read_back_bit_for_bit(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 30), density=0.2, rng=rng, format="csr")
    y = rng.normal(size=50)
    path = tmp_path / f"data.libsvm{suffix}"
    write_libsvm(path, X, y)
    data = read_libsvm(path, n_features=30)
    assert data.y.tobytes() == y.tobytes() and data.X.data.tobytes() == X.data.tobytes()
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())


@pytest.mark.parametrize(("X", "y"), [([[np.nan]], [1]), ([[1.0]], [np.inf]), ([[1.0]], [1, 2])])
def test_what_the_format_has_no_word_for(X, y, tmp_path):
    with pytest.raises(DataError):
        write_libsvm(tmp_path / "out", np.array(X), y)
    assert list(tmp_path.iterdir()) == []
