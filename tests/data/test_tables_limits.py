"""Tables that are damaged, or whose rows, cells and texts unfold to more than there is room for."""

import io

import numpy as np
import pytest

from screenpath.data.files.parquet_file import ParquetFile, row_groups
from screenpath.data.files.read import read_data
from screenpath.data.safe import memory
from screenpath.data.safe.memory import MemoryLimit, private_bytes
from screenpath.errors import DataError, ResourceError, UsageError
from tests.data.test_tables_read import csv, parquet
from tests.width import wide


def is_refused(path, source) -> bool:
    """Tell whether changed bytes of a table are refused, with a hint; otherwise they are read."""
    path.write_bytes(source.tobytes())
    try:
        assert read_data(path, one_hot=["city"]).n > 0
    except (DataError, UsageError) as error:
        assert error.hint
        return True
    return False


def test_changed_bytes_are_read_or_one_error(tmp_path):
    """Whatever stands in a file: a data set, or an error that says what to do."""
    rng = np.random.default_rng(7)
    text = b'age,"he,ight",city,y\n1,2.5,Graz,u\n"3",4,"We\nls",v\n6,1,x,?\n'
    whole = parquet(tmp_path / "a", age=np.arange(50.0), city=["x", "y"] * 25, y=["u", "v"] * 25).read_bytes()
    marks = np.frombuffer(b',;"\n\r\t \x00\xff\xc309.eE-:#?a', dtype=np.uint8)
    refused = 0
    for k in range(400):
        source = np.frombuffer(text if k % 4 else whole, dtype=np.uint8).copy()
        at = rng.integers(4 if k % 4 == 0 else 0, source.size, size=3)
        source[at] = rng.choice(marks, 3) if k % 4 else rng.integers(0, 256, 3)
        refused += is_refused(tmp_path / "b", source)
    assert 200 < refused < 400


@pytest.mark.parametrize("seed", range(wide(3, 30)))
def test_a_changed_footer_of_parquet_is_read_or_one_error(tmp_path, seed):
    """Metadata of columns that contradict themselves ended the process within pyarrow, which wrote its own message."""
    rng = np.random.default_rng(seed)
    whole = parquet(tmp_path / "a", age=np.arange(50.0), city=["x", "y"] * 25, y=["u", "v"] * 25).read_bytes()
    footer, refused = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), 0
    for _ in range(60):
        source = np.frombuffer(whole, dtype=np.uint8).copy()
        at = rng.integers(footer, source.size - 4, size=int(rng.integers(1, 4)))
        source[at] = rng.integers(0, 256, at.size)
        refused += is_refused(tmp_path / "b", source)
    assert 20 < refused < 60


def test_texts_of_parquet_stay_in_their_dictionary(tmp_path):
    """Long texts may be few bytes of the file; and a dictionary may hold values that no row has."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    codes = pyarrow.array([2, 0, 0, None, 2], pyarrow.int32())
    kind = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["blue", "no row has it", "red"]))
    table = pyarrow.table({"kind": kind, "plain": ["b", "a", "b", "b", "a"], "n": [1.0, 2.0, 3.0, 4.0, 5.0]})
    for stored in (True, False):
        parquet.write_table(table, tmp_path / "t.parquet", store_schema=stored)
        (batch,) = ParquetFile(tmp_path / "t.parquet").batches(10, ["kind", "plain", "n"])
        assert batch.texts("kind").values == ["red", "blue"] and batch.texts("kind").codes.tolist() == [0, 1, 1, -1, 0]
        assert batch.texts("plain").values == ["b", "a"] and batch.is_text("plain")
        assert pyarrow.types.is_dictionary(batch.batch.column("plain").type)  # a text of each kind once
        assert "not numbers" in batch.numbers("plain")[1][0].message


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1," + "2" * (1 << 24),  # a line without an end
        'a,b\n1,2\n1,"' + '\n","' * (1 << 22),  # a row whose quoted cells go on from line to line
        "a,b\n" + ("1,2" + " " * (1 << 14) + "\n") * (1 << 10),  # of a batch
    ],
    ids=["line", "quoted", "rows"],
)
def test_text_that_waits_for_being_rows_is_bounded_by_the_machine(monkeypatch, text):
    stream = io.BytesIO(text.encode())
    monkeypatch.setattr(memory, "physical_bytes", lambda: 1 << 25)
    with pytest.raises(ResourceError, match="a row this long"):
        read_data(stream, target="b")
    assert stream.tell() < len(text) // 2 + (1 << 20)  # while it is read, not behind


def test_a_line_without_an_end_is_bounded_by_the_limit():
    limit = memory.MemoryLimit(memory.private_bytes() + (96 << 20))
    with limit.in_force(), pytest.raises(ResourceError, match="a row this long.*max_memory"):
        csv("a,b\n1," + "2" * (1 << 26), target="b")


def test_long_text_that_is_rows_asks_for_nothing(monkeypatch):
    monkeypatch.setattr(memory, "physical_bytes", lambda: 1 << 21)
    text = "a,b\n" + "1.25,2.5\n" * (1 << 17)
    assert csv(text, target="b").n == 1 << 17
    assert csv(text.replace("2.5", '"2.5"'), target="b").n == 1 << 17


BIG = 1 << 24  # bytes that a cell of a small file unfolds to


@pytest.mark.parametrize("kind", ["list", "fixed", "struct", "list of texts"])
def test_cells_of_any_size_are_refused_before_they_are_unfolded(tmp_path, kind):
    """A list of nothing but zeros, and a dictionary of one long text, take a few bytes."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    zeros = pa.ListArray.from_arrays(pa.array([0, BIG // 8, BIG // 8], pa.int32()), pa.array(np.zeros(BIG // 8)))
    column = {
        "list": zeros, "fixed": pa.array([bytes(BIG)] * 2, pa.binary(BIG)),
        "struct": pa.StructArray.from_arrays([zeros], ["part"]), "list of texts": pa.array([["x"] * 1000, []]),
    }[kind]  # fmt: skip
    pq.write_table(pa.table({"a": column, "b": [1.0, 2.0], "y": [1, 2]}), tmp_path / "p", compression="zstd")
    assert (tmp_path / "p").stat().st_size < 1 << 14
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(DataError, match=r"row 1, column 'a': the column holds .*, not numbers"):
        read_data(tmp_path / "p")
    assert pa.default_memory_pool().max_memory() <= max(before, pa.total_allocated_bytes() + BIG // 4)


@pytest.mark.parametrize("use_dictionary", [False, True])
def test_texts_of_parquet_count_in_the_memory_limit_before_they_are_unfolded(tmp_path, use_dictionary):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": ["x" * 8 * BIG, "y"], "b": [1.0, 2.0], "y": [1, 2]})
    pq.write_table(table, tmp_path / "p", compression="zstd", use_dictionary=use_dictionary)
    assert (tmp_path / "p").stat().st_size < 1 << 15
    del table
    pa.default_memory_pool().release_unused()  # or it goes while the file is read, and leaves room
    limited = MemoryLimit(private_bytes() + 3 * BIG).in_force()
    with limited, pytest.raises(ResourceError, match="the texts of its row group 0.*more than `max_memory"):
        read_data(tmp_path / "p", one_hot=["a"])
    rows = 1 << 16  # numbers that take as much are read a piece at a time
    numbers = pa.table({f"c{k}": np.zeros(rows) for k in range(40)} | {"y": ["u", "v"] * (rows // 2)})
    pq.write_table(numbers, tmp_path / "q", compression="zstd", use_dictionary=False)
    assert numbers.nbytes > BIG
    del numbers
    with MemoryLimit(private_bytes() + 3 * BIG).in_force():
        assert read_data(tmp_path / "q").X.shape == (rows, 40)


def test_pages_of_parquet_count_whatever_the_footer_says(tmp_path):
    """Neither a column of texts that is not read, nor a footer that states less than the pages, hides what unfolds."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.array(["x" * 8 * BIG, "y"])
    table = pa.table({"a": texts, "b": [1.0, 2.0], "other": ["u", "v"], "y": [1, 2]})
    pq.write_table(table, tmp_path / "p", compression="zstd", use_dictionary=False, write_statistics=["b"])
    column = pq.ParquetFile(tmp_path / "p").metadata.row_group(0).column(0)
    with open(tmp_path / "p", "rb") as file:
        (size,) = row_groups(file)[0][0].page_sizes(file)
    assert 0 <= column.total_uncompressed_size - size < 100  # its header
    # The footer states the size as a varint: a smaller one of as many bytes.
    content = (tmp_path / "p").read_bytes()
    stated = varint(2 * column.total_uncompressed_size)
    assert content.count(stated) == 1
    (tmp_path / "p").write_bytes(content.replace(stated, b"\x82" + b"\x80" * (len(stated) - 2) + b"\x00"))
    assert pq.ParquetFile(tmp_path / "p").metadata.row_group(0).column(0).total_uncompressed_size == 1
    del table, texts
    pa.default_memory_pool().release_unused()
    with MemoryLimit(private_bytes() + 3 * BIG).in_force():
        with pytest.raises(ResourceError, match="the texts of its row group 0.*more than `max_memory"):
            next(ParquetFile(tmp_path / "p").batches(10, ["a", "y"]))
        assert next(ParquetFile(tmp_path / "p").batches(10, ["b", "y"])).size == 2  # what is not read does not count


def varint(number: int) -> bytes:
    """Return a number as Thrift writes it."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_are_found_by_their_headers(tmp_path, compression, version):
    """Judged by the file: pages fill their chunk, and headers with statistics and dictionaries are passed over."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=5000), "b": [f"{k % 70}" * 9 for k in range(5000)], "c": [None, 1] * 2500})
    pq.write_table(
        table, tmp_path / "p", compression=compression, data_page_size=1000, data_page_version=version,
        row_group_size=3000, write_page_checksum=True,
    )  # fmt: skip
    metadata = pq.ParquetFile(tmp_path / "p").metadata
    with open(tmp_path / "p", "rb") as file:
        groups = row_groups(file)
        assert [len(chunks) for chunks in groups] == [3] * metadata.num_row_groups
        for group, chunks in zip(map(metadata.row_group, range(2)), groups, strict=False):
            for column, chunk in zip(map(group.column, range(3)), chunks, strict=True):
                assert (chunk.column, chunk.size) == (column.path_in_schema, column.total_compressed_size)
                sizes = chunk.page_sizes(file)
                headers = column.total_uncompressed_size - sum(sizes)  # of 10 to 150 bytes each
                assert 10 * len(sizes) <= headers <= 150 * len(sizes)
    assert len(sizes) > 1


def test_texts_that_share_their_beginnings_are_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": ["x" * k for k in range(2, 8)], "y": [1, 2] * 3})
    pq.write_table(table, tmp_path / "p", use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY", "y": "PLAIN"})
    with pytest.raises(DataError, match="the column a is encoded as DELTA_BYTE_ARRAY"):
        read_data(tmp_path / "p", one_hot=["a"])
    pq.write_table(table, tmp_path / "p")
    assert read_data(tmp_path / "p", one_hot=["a"]).X.shape == (6, 6)
