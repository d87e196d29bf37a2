"""Where the bytes come from: files, archives, pipes, and what cannot be read."""

import bz2
import gzip
import io
import lzma

import pytest

from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.source import open_source
from screenpath.data.safe import memory
from screenpath.data.safe.memory import MemoryLimit, private_bytes
from screenpath.errors import DataError, ResourceError


def read(text: bytes, **options):
    return read_libsvm(io.BytesIO(text), **options)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_copies_are_told_by_their_first_bytes(pack, tmp_path):
    text = b"1 1:0.5\n-1 2:2\n" * 1000
    path = tmp_path / "data with spaces é.libsvm"
    path.write_bytes(pack(text))
    for source in (path, str(path), io.BytesIO(pack(text))):
        data = read_libsvm(source)
        assert data.fingerprint() == read(text).fingerprint()


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(gzip.compress(b"1 1:1\n-1 1:2\n")))

    monkeypatch.setattr("sys.stdin", Stdin)
    assert read_libsvm("-").n == 2


class Trickle:
    def __init__(self, content):
        self.content = io.BytesIO(content)

    def read(self, size):
        return self.content.read(min(size, 1))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("text", [b"1 1:0.5\n-1 2:2", b"1"])
def test_a_slow_pipe(pack, text):
    assert read_libsvm(Trickle(pack(text))).fingerprint() == read(text).fingerprint()


PACK = [gzip.compress, bz2.compress, lzma.compress]
ROWS = b"1 1:1\n-1 2:2\n", b"1 3:3\n" * 2000


@pytest.mark.parametrize("pack", PACK)
def test_several_streams_are_one_file(pack):
    one, other = map(pack, ROWS)
    assert read(one + other).n == 2002
    assert read(other + one + one).n == 2004
    assert read(Trickle(one + other).content.read()).n == read_libsvm(Trickle(one + other)).n == 2002


@pytest.mark.parametrize("pack", PACK)
def test_a_damaged_second_stream_loses_no_rows_in_silence(pack):
    """What does not begin as a stream does was taken for rubbish behind the first one, and dropped."""
    one, other = map(pack, ROWS)
    for at in range(5):
        damaged = bytearray(one + other)
        damaged[len(one) + at] ^= 0x10
        if pack is gzip.compress and at == 4:  # a byte of the time at which it was compressed
            continue
        with pytest.raises(DataError, match="the compressed data is damaged or cut short"):
            read(bytes(damaged))
    for cut in (1, 2, 3, 5, 7, 12, len(other) // 2, len(other) - 1):
        with pytest.raises(DataError, match="the compressed data is damaged or cut short"):
            read(one + other[:cut])


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("rubbish", [b"x", b"1 1:1\n", b"\0x", b"BZ", b"\xfd7zXZ", b"\x1f"])
def test_rubbish_behind_a_stream(pack, rubbish):
    with pytest.raises(DataError, match="the compressed data is damaged or cut short"):
        read(pack(ROWS[0]) + rubbish)


def test_zeros_behind_a_stream():
    """As the tools have it: gzip ignores them, xz takes them in multiples of four, bzip2 knows of none."""
    for zeros in (1, 4, 8, 100_000):
        assert read(gzip.compress(ROWS[0]) + bytes(zeros)).n == 2
        with pytest.raises(DataError):
            read(bz2.compress(ROWS[0]) + bytes(zeros))
    one, other = map(lzma.compress, ROWS)
    for zeros in (4, 8, 100_000):
        assert read(one + bytes(zeros)).n == 2
        assert read(one + bytes(zeros) + other).n == 2002
    for zeros in (1, 2, 3, 5, 99_999):
        for end in (b"", other):
            with pytest.raises(DataError, match="not a multiple of 4"):
                read(one + bytes(zeros) + end)


def test_text_streams_are_refused():
    with pytest.raises(TypeError, match="binary mode"):
        read_libsvm(io.StringIO("1 1:1\n"))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_archives(pack):
    whole = pack("".join(f"1 1:{k}\n" for k in range(5000)).encode())
    for cut in (7, len(whole) // 2, len(whole) - 1):
        with pytest.raises(DataError, match="damaged or cut short") as caught:
            read(whole[:cut])
        assert caught.value.hint
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    with pytest.raises(DataError, match="damaged or cut short|line"):
        read(bytes(damaged))


@pytest.mark.parametrize(
    ("head", "what"),
    [(b"PK\x03\x04\x14\0", "a zip archive"), (b"\x28\xb5\x2f\xfd\x04", "a Zstandard"), (b"\x93NUMPY", "a NumPy array")],
)
def test_other_formats_are_named(head, what, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(head + bytes(100))
    with pytest.raises(DataError, match=f"is {what}") as caught:
        read_libsvm(path)
    assert "convert" in caught.value.hint


def test_paths_that_cannot_be_read(tmp_path):
    for path, message in (
        (tmp_path / "absent.libsvm", "no such file"), ("\ud800", "no such file"), ("a\0b", "no such file"),
        (tmp_path, "is a folder"), (tmp_path / ("x" * 300), "cannot be read: File name too long"),
        (tmp_path / "file" / "below", "cannot be read: Not a directory"),
    ):  # fmt: skip
        (tmp_path / "file").touch()
        with pytest.raises(DataError, match=message) as caught:
            read_libsvm(path)
        assert str(path) in caught.value.message and caught.value.hint


def test_a_stream_that_fails_midway():
    class Broken(Trickle):
        def read(self, size):
            data = super().read(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    with pytest.raises(DataError, match="<stream> cannot be read: Input/output error"):
        read_libsvm(Broken(b"1 1:1\n-1 1:2\n"))


def test_the_dictionary_of_an_xz_file_counts_in_the_memory_limit(tmp_path):
    """Its header says how much unpacking takes: up to 4 GB for a few bytes."""
    chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]
    (tmp_path / "d.xz").write_bytes(lzma.compress(b"1 1:1\n", filters=chain))
    with open_source(tmp_path / "d.xz") as (stream, _):
        assert stream.read() == b"1 1:1\n"
    taken = private_bytes() + (64 << 20)
    limited, refused = MemoryLimit(taken).in_force(), pytest.raises(ResourceError, match="max_memory")
    with limited, refused, open_source(tmp_path / "d.xz") as (stream, _):
        stream.read()


def test_the_dictionary_of_an_xz_file_is_bounded_by_the_machine_where_nobody_sets_a_limit(tmp_path, monkeypatch):
    chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]
    (tmp_path / "d.xz").write_bytes(lzma.compress(b"1 1:1\n", filters=chain))
    monkeypatch.setattr(memory, "physical_bytes", lambda: 1 << 27)
    with pytest.raises(ResourceError, match="unpacking it takes more than this machine has"):
        read_libsvm(tmp_path / "d.xz")


def test_a_line_is_bounded_by_the_machine_where_nobody_sets_a_limit(monkeypatch):
    monkeypatch.setattr(memory, "physical_bytes", lambda: 1 << 24)
    text = b"1 1:1" + bytes([32]) * (1 << 19) + b"\n"
    assert read_libsvm(io.BytesIO(b"1 1:1\n"), block=1 << 10).n == 1
    with pytest.raises(ResourceError, match="a line this long needs"):
        read_libsvm(io.BytesIO(text), block=1 << 10)
