"""A weights file has one number a line; what is empty below the last one says nothing."""

import pytest

from screenpath.errors import DataError
from screenpath.inputs.load import read_weights


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n \t\n\n", "\r\n\r\n"])
def test_empty_lines_at_the_end_are_no_weights(tmp_path, end):
    path = tmp_path / "weights.txt"
    path.write_bytes(b"1\n0.5\n2" + end.encode())
    assert read_weights(str(path)).tolist() == [1.0, 0.5, 2.0]


@pytest.mark.parametrize(("text", "line"), [("1\n\n2\n", 2), ("\n1\n", 1), ("1\n \n\n2\n\n", 2)])
def test_an_empty_line_above_a_number_is_named(tmp_path, text, line):
    path = tmp_path / "weights.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=f"line {line}: the line is empty"):
        read_weights(str(path))
