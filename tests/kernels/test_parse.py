"""The byte parser on plain arrays; also runs uncompiled, so every branch is small."""

import numpy as np
import pytest

from screenpath.kernels.rows import parse


def run(text: bytes, smallest=1, max_faults=8):
    """Parse whole lines; return labels, row ends, values, indices, hard tokens, faults and what was seen."""
    size = len(text)
    buffer = np.frombuffer(text, dtype=np.uint8).copy()
    labels, values = np.zeros(size), np.zeros(size)
    indptr, indices = np.zeros(size + 1, dtype=np.int64), np.zeros(size, dtype=np.int64)
    hard = np.zeros((size, 3), dtype=np.int64)
    faults, seen = np.zeros((max_faults, 4), dtype=np.int64), np.array([0, -1], dtype=np.int64)
    rows, nnz, lines, n_hard, n_faults = parse.parse_lines(
        buffer, size, smallest, (parse.POWERS_OF_FIVE, parse.EXACT_POWERS),
        parse.Lines.of(labels, indptr, values, indices, hard), faults, seen,
    )  # fmt: skip
    left = [(int(slot), text[a:b]) for slot, a, b in hard[:n_hard]]
    wrong = [(int(code), int(line), text[a:b]) for code, line, a, b in faults[:n_faults]]
    return labels[:rows], indptr[: rows + 1].tolist(), values[:nnz], indices[:nnz].tolist(), left, wrong, seen, lines


def test_rows_comments_blanks_and_query_ids():
    text = b"# head\n\n+1 2:0.5\t4:-1e2 # tail\r\n -1 \n3 qid:7 1:0\n2 qid:1#x 9:9\n"
    labels, ends, values, indices, left, wrong, seen, lines = run(text)
    assert labels.tolist() == [1, -1, 3, 2] and ends == [0, 2, 2, 3, 3] and lines == 6
    assert values.tolist() == [0.5, -100, 0] and indices == [2, 4, 1]
    assert left == [] and wrong == [] and seen.tolist() == [1, 4]


DECIDED = [
    "0", "-0", "+1", "007", "1.", ".5", "00.001", "123.456e-3", "1E5", "1e+5",  # exact arithmetic
    "9007199254740993", "1e23", "8.5e22", "6929495644600919.5", "9007199254740991.6", "-2.5e-300", "1e-307",
    "9007199254740993e1", "9007199254740995e0", "123456789012345678e-30", "999999999999999999e280",
    "0.1000000000000000055511151231257827", "-12345678901234567890.5", "0.00012345678901234567890123e10",
]  # fmt: skip


@pytest.mark.parametrize("token", DECIDED)
def test_numbers_decided_by_the_kernel(token):
    labels, _, values, _, left, wrong, _, _ = run(f"{token} 1:{token}\n".encode())
    want = np.array([float(token)]).tobytes()
    assert left == [] and wrong == []
    assert labels.tobytes() == want and values.tobytes() == want


@pytest.mark.parametrize(
    "token",
    ["1e-320", "1e999", "1.7976931348623157e308", "2.2250738585072011e-308", "9007199254740993.00000001",
     "1e0000000000001"],
)  # fmt: skip
def test_numbers_left_to_the_caller(token):
    _, _, _, _, left, wrong, _, _ = run(f"{token} 1:{token}\n".encode())
    assert left == [(-1, token.encode()), (0, token.encode())] and wrong == []


FAULTS = [
    (b"sp:am 1:1", parse.LABEL, b"sp"), (b"a,b 1:1", parse.LABEL, b"a,b"), (b"C# 1:1", parse.LABEL, b"C"),
    (b"_a 1:1", parse.LABEL, b"_a"), (b"[a 1:1", parse.LABEL, b"[a"), (b"{a 1:1", parse.LABEL, b"{a"),
    (b"1,2 1:1", parse.LABEL, b"1,2"), (b":1", parse.LABEL, b":"), (b"1e 1:1", parse.LABEL, b"1e"),
    (b"1 x:1", parse.INDEX, b"x"), (b"1 0:1", parse.INDEX_ZERO, b"0"), (b"1 -2:1", parse.INDEX_NEGATIVE, b"-2"),
    (b"1 3:1 2:1", parse.UNSORTED, b"2"), (b"1 2:1 2:1", parse.DUPLICATE, b"2"),
    (b"1 1234567890123456789:1", parse.INDEX_HUGE, b"1234567890123456789"), (b"1 2:", parse.NO_VALUE, b"2:"),
    (b"1 2:#c", parse.NO_VALUE, b"2:"), (b"1 2:x", parse.VALUE, b"x"), (b"1 2:1:1", parse.VALUE, b"1:1"),
    (b"1 7", parse.NO_COLON, b"7"), (b"1 :5", parse.NO_COLON, b""), (b"\0", parse.CONTROL, b"\0"),
    (b"a\1", parse.CONTROL, b"\1"), (b"1\0 1:1", parse.CONTROL, b"\0"), (b"1 2:\0", parse.CONTROL, b"\0"),
    (b"1 2:x\0", parse.CONTROL, b"\0"), (b"1 2:1\x1f 3:1", parse.CONTROL, b"\x1f"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "token"), FAULTS)
def test_a_faulty_line_gives_no_row(line, code, token):
    labels, ends, values, indices, left, wrong, seen, lines = run(b"1 1:1\n" + line + b"\n-1 5:2\n")
    assert wrong == [(code, 1, token)] and lines == 3
    assert labels.tolist() == [1, -1] and ends == [0, 1, 2] and values.tolist() == [1, 2] and indices == [1, 5]
    assert left == [] and seen.tolist() == [0, 5]


def test_zero_based_and_leading_zeros():
    assert run(b"1 0:1 -0:1\n", smallest=0)[5] == [(parse.DUPLICATE, 0, b"-0")]
    assert run(b"1 0:1 +0000000000000000000000004:1\n", smallest=0)[3] == [0, 4]


def test_words_are_left_to_the_caller():
    words = [b"spam", b"Zz", b"\xc3\xa9", b"nan", b"e5", b"a;b"]
    labels, _, values, _, left, wrong, _, _ = run(b"".join(word + b"\t1:2\n" for word in words) + b"x\n-1\n")
    assert left == [(-1 - k, word) for k, word in enumerate([*words, b"x"])] and wrong == []
    assert labels.size == 8 and labels[7] == -1.0 and values.tolist() == [2.0] * 6


def test_parsing_ends_when_there_is_no_room_for_faults():
    *_, wrong, _, lines = run(b"?\n" * 5, max_faults=2)
    assert len(wrong) == 2 and lines == 2
