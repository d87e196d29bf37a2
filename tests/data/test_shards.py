"""A shard folder is looked at before it is believed, whoever wrote it."""

import json
import os
import shutil
import zlib

import numpy as np
import pytest

from screenpath.data.shards.checks import Mapped
from screenpath.data.shards.convert import convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import DataError, ResourceError
from screenpath.rows.shards import ShardRows
from tests import shard_folders
from tests.safety.artefacts import text_of
from tests.shard_folders import at

HUGE = 10**400


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of a dense shard (0) and a sparse one (1); its text is larger than what is read instead of mapped."""
    base = tmp_path_factory.mktemp("made")
    (base / "dense").write_bytes(text_of(rows=300))
    (base / "sparse").write_bytes(text_of(rows=200, columns=400, density=0.05))
    return convert([base / "dense", base / "sparse"], base / "shards").path


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "shards")


def fault(folder) -> str:
    """Return the words in which a folder is refused; both ways of reading it must."""
    with pytest.raises(DataError) as caught:
        ShardFolder(folder).dataset()
    with pytest.raises(DataError):
        rows = ShardRows(ShardFolder(folder))
        rows.margins(np.ones(rows.d))
    assert "convert the text again" in caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("at", [-1, 200, 100, 9, 0])
def test_a_flipped_bit_of_any_file_is_noticed(made, tmp_path, at):
    """On the version before this, values were used as they came."""
    files = sorted(path.name for path in made.iterdir())
    assert len(files) == 8
    for number, name in enumerate(files):
        copy = shutil.copytree(made, tmp_path / str(number))
        shard_folders.flip(copy / name, at, bit=2)
        assert name in fault(copy)


@pytest.mark.parametrize("size", [0, 5, 100, 129, -1])
def test_a_file_that_is_cut_short_is_noticed(made, tmp_path, size):
    for number, file in enumerate(sorted(made.iterdir())):
        copy = shutil.copytree(made, tmp_path / str(number)) / file.name
        os.truncate(copy, size if size >= 0 else copy.stat().st_size - 1 - (file.suffix == ".json"))
        assert file.name in fault(copy.parent)


def test_a_longer_file_and_one_of_another_shard_are_noticed(folder):
    targets = folder / "000000-targets.npy"
    before = targets.read_bytes()
    targets.write_bytes(before + b"\0")
    assert "000000-targets.npy is missing or damaged: it has 2529 bytes where 2528 belong" in fault(folder)
    targets.write_bytes(before[:-8] + b"01234567")
    assert "CRC-32" in fault(folder)
    targets.unlink()
    assert "No such file" in fault(folder)
    targets.mkdir()
    assert "no regular file" in fault(folder)
    targets.rmdir()
    os.mkfifo(targets)  # waits for a writer that never comes, if it is opened as a file is
    assert "no regular file" in fault(folder)


def swapped(array):
    array[[0, 1]] = array[[1, 0]]


FAULTS = [
    (0, "targets", at(3, np.nan), "nan or infinity"), (0, "dense", at(5, np.inf), "nan or infinity"),
    (0, "targets", lambda array: array[:-1], r"not that of <f8 values of shape \(300,\)"),
    (0, "dense", lambda array: array.astype(np.float32), "not that of <f8 values"),
    (0, "dense", np.asfortranarray, "not that of <f8 values"),
    (0, "dense", lambda array: array.reshape(-1), "not that of <f8 values"),
    (0, "dense", lambda array: array.astype(">f8"), "not that of <f8 values"),
    (1, "data", at(5, np.nan), "nan or infinity"),
    (1, "indices", at(5, 10**6), "the index 1000000 where there are 400 columns"),
    (1, "indices", at(5, -1), "the index -1 where"),
    (1, "indices", swapped, "the indices of its row 0 do not increase"),
    (1, "indices", lambda array: array.astype(np.int64), "not that of <i4 values"),
    (1, "indptr", at(-1, 10**9), "the row pointers go from 0 to 1000000000"),
    (1, "indptr", at(0, -5), "the row pointers go from -5"),
    (1, "indptr", at(50, 10**9), "a row ends before it begins"),
    (1, "indptr", at(50, 0), "a row ends before it begins"), (1, "columns", at(0, -1), "the index -1 where"),
    (1, "columns", at(-1, 10**7), "the index 10000000 where"), (1, "columns", swapped, "the columns do not increase"),
    (1, "columns", at(1, 0), "the columns do not increase"),
]  # fmt: skip


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("k", "name", "change", "words"), FAULTS)
def test_the_structure_is_checked_whatever_the_hashes_say(folder, k, name, change, words, old):
    """On the version before this, kernels read and wrote where such an index led them."""
    shard_folders.edit(folder, k, name, change)
    if old:
        shard_folders.without_hashes(folder)
    shard_folders.seal(folder)
    with pytest.raises(DataError, match=words):
        ShardFolder(folder).check()
    assert any(name in str(found) for found in ShardFolder(folder).faults(k))


META_FIELDS = [
    *((name, value) for name in ("n", "d", "nnz") for value in (-1, 0, 1, 2.0, "5", None, True, [], {}, HUGE)),
    ("n", 10**18), *(("dtype", value) for value in ("object", "int8", "O", None, 5, ["float64"], "../x")),
    *(("shards", value) for value in (None, {}, [], [None], "x", 7, [{}], [[]])),
    *(("labels", value) for value in (5, [], {"1": -1}, {"1": "x"}, {"1": 1}, {"1": HUGE})),
    *(("notices", value) for value in (None, "text", [5], [None])),
    *(("sources", value) for value in (None, "text", [5])),
    *(("sha256", value) for value in (None, "", "0" * 64, "x" * 64, 5, ["0" * 64])),
    *(("schema_version", value) for value in (None, "1", 1.0, True, 99, -1, [], HUGE)),
    *(("zero_based", value) for value in (None, 0, "false")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), META_FIELDS)
def test_fields_of_meta_json(folder, name, value):
    """Whatever stands there: one clear error."""
    shard_folders.write(folder, {**shard_folders.read(folder), name: value})
    with pytest.raises(DataError, match=r"meta\.json|has the format") as caught:
        ShardFolder(folder)
    assert caught.value.hint


ENTRY_FIELDS = [
    *((name, value) for name in ("rows", "nnz", "columns") for value in (-1, None, "5", 2.5, True, HUGE, 10**18, 7)),
    *(("dense", value) for value in (None, 1, "true", True)),
    *(("sha256", value) for value in (None, 5, "../../etc/passwd")),
    *(("crc32", value) for value in (5, [], {}, {"targets": 1}, {"../x": 1}, dict.fromkeys("abcdefg", 1))),
]


@pytest.mark.parametrize(("name", "value"), ENTRY_FIELDS)
def test_fields_of_an_entry(folder, name, value):
    meta = shard_folders.read(folder)
    meta["shards"][1][name] = value
    shard_folders.write(folder, meta)
    with pytest.raises(DataError, match=r"meta\.json|000001-.*\.npy"):
        ShardFolder(folder).check()


def test_fields_that_are_missing(folder):
    meta = shard_folders.read(folder)
    for name in meta:
        shard_folders.write(folder, {key: value for key, value in meta.items() if key != name}, crc=name != "crc32")
        if name in ("crc32", "tool", "block_bytes"):
            continue  # a folder without hash of meta.json is one of version 0.1.0; nobody asks for the others
        with pytest.raises(DataError, match=rf"meta\.json.*{name}|meta\.json is damaged"):
            ShardFolder(folder)


def test_meta_json_that_is_no_such_thing(folder):
    for text in (b"", b"{", b"[]", b"5", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b"9" * 5000):
        (folder / "meta.json").write_bytes(text)
        with pytest.raises(DataError, match=r"meta\.json is damaged"):
            ShardFolder(folder)


@pytest.mark.parametrize("hashed", [True, False])
def test_folders_of_format_1_are_read(made, folder, hashed):
    """They have two more parts, which follow from the rows; the oldest have no CRC-32."""
    if hashed:
        shard_folders.to_format_1(folder)
    else:
        shard_folders.without_hashes(folder)
        assert "crc32" not in (folder / "meta.json").read_text()
    one, other = ShardFolder(made), ShardFolder(folder, content=True)
    other.check()
    assert one.dataset().fingerprint() == other.dataset().fingerprint() and one.sha256 != other.sha256
    np.testing.assert_array_equal(ShardRows(one).norms, ShardRows(other).norms)
    if hashed:
        shard_folders.flip(folder / "000000-sqnorms.npy", 500)
        assert "000000-sqnorms.npy is missing or damaged" in fault(folder)
        return
    shard_folders.flip(folder / "000001-data.npy", 500)
    assert "000001-*.npy is missing or damaged: its content is not what was written (SHA-256)" in fault(folder)


def test_content_is_compared_where_it_is_asked_for(folder):
    """Somebody changes a target and makes the CRC-32 fit, but not the SHA-256 that stands for the data."""
    sha256 = [entry["sha256"] for entry in shard_folders.read(folder)["shards"]]
    shard_folders.edit(folder, 0, "targets", at(3, 7.0))
    shard_folders.seal(folder)
    meta = shard_folders.read(folder)
    for entry, digest in zip(meta["shards"], sha256, strict=True):
        entry["sha256"] = digest
    meta["sha256"] = shard_folders.joint_sha256(meta["shards"])
    shard_folders.write(folder, meta)
    ShardFolder(folder).check()
    with pytest.raises(DataError, match=r"000000-\*.npy .*SHA-256"):
        ShardFolder(folder, content=True).check()


def test_a_file_is_looked_at_once_and_again_when_it_has_changed(folder, monkeypatch):
    hashed, plain = [], Mapped.crc32

    def crc32(self):
        hashed.append(self.raw.size)
        return plain(self)

    monkeypatch.setattr(Mapped, "crc32", crc32)
    monkeypatch.setattr("screenpath.data.shards.shards.KEPT_FILES", 0)  # as behind the first hundreds of files
    opened = ShardFolder(folder)
    rows = ShardRows(opened)
    for _ in range(3):
        rows.margins(np.ones(rows.d))
        opened.targets()
    assert len(hashed) == 7
    before = rows.margins(np.ones(rows.d))
    content = (folder / "000001-data.npy").read_bytes()
    shard_folders.flip(folder / "000001-data.npy", 500)
    with pytest.raises(DataError, match="000001-data.npy"):
        rows.margins(np.ones(rows.d))
    (folder / "000001-data.npy").write_bytes(content)
    np.testing.assert_array_equal(rows.margins(np.ones(rows.d)), before)


def test_faults_beyond_one_block_are_found(tmp_path, monkeypatch):
    """Every check goes over all of an array, in blocks."""
    (tmp_path / "a").write_bytes(text_of(rows=40, columns=30, density=0.5))
    monkeypatch.setattr("screenpath.data.shards.checks.BLOCK", 7)
    folder = convert([tmp_path / "a"], tmp_path / "s", storage="sparse")
    folder.check()
    assert not folder.faults(0)
    indices, indptr = folder.part(0, "indices").copy(), folder.part(0, "indptr").copy()
    for entry in range(1, indices.size):
        if entry not in indptr:
            wrong = indices.copy()
            wrong[entry] = wrong[entry - 1]
            shard_folders.edit(folder.path, 0, "indices", lambda array, wrong=wrong: wrong)
            shard_folders.seal(folder.path)
            row = int(np.searchsorted(indptr, entry, side="right")) - 1
            with pytest.raises(DataError, match=f"the indices of its row {row} do not increase"):
                ShardFolder(folder.path).check()


def test_a_width_that_no_memory_holds(folder):
    shard_folders.write(folder, {**shard_folders.read(folder), "d": 10**18})
    with pytest.raises(ResourceError, match="check the largest index"):
        ShardRows(ShardFolder(folder))


def test_a_shard_without_rows(tmp_path):
    """A block of comments alone."""
    (tmp_path / "a").write_text("# nothing\n")
    (tmp_path / "b").write_text("1 1:2 3:1\n-1 2:1\n")
    for storage in ("dense", "sparse"):
        folder = convert([tmp_path / "a", tmp_path / "b"], tmp_path / storage, storage=storage)
        assert [entry["rows"] for entry in folder.meta["shards"]] == [0, 2]
        assert not folder.faults(0) and folder.dataset().n == 2
        rows = ShardRows(folder, "maxabs")
        assert rows.preparation.scale.tolist() == [2.0, 1.0, 1.0] and rows.margins(np.ones(3)).tolist() == [2.0, 1.0]


def test_headers_are_not_evaluated(folder, monkeypatch):
    """A header is text that numpy evaluates; ours are compared."""
    file = folder / "000000-targets.npy"
    values = file.read_bytes()[128:]
    for header in (
        "{'descr': '<f8', 'fortran_order': False, 'shape': (300,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (300,), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (300,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-300,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 100), }", "(" * 100,
    ):  # fmt: skip
        text = header.ljust(117).encode() + b"\n"
        file.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + values)
        shard_folders.write(folder, json.loads((folder / "meta.json").read_text()))
        meta = shard_folders.read(folder)
        meta["shards"][0]["crc32"]["targets"] = zlib.crc32(file.read_bytes())
        shard_folders.write(folder, meta)
        if header.endswith("False, 'shape': (300,), }") and "f8" in header:
            ShardFolder(folder).check()
            continue
        with pytest.raises(DataError, match="000000-targets.npy"):
            ShardFolder(folder).check()


def test_a_mapping_that_is_kept_is_left_when_its_file_is_written_to(folder):
    """A mapped page shows what is written to the file, and passes hold on to their mappings."""
    rows = ShardRows(ShardFolder(folder))
    w = np.ones(rows.d)
    rows.margins(w)
    assert rows.folder._kept
    for name in ("000000-dense.npy", "000001-data.npy"):
        file = folder / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-8] + np.array([7.5]).tobytes())
        with pytest.raises(DataError, match="its content is not what was written"):
            rows.margins(w)
        file.write_bytes(whole)  # the same again: another state of the file, without fault
        rows.margins(w)
