"""Text to shards: the same rows, in bounded memory, all or nothing."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from screenpath import convert as module
from screenpath.convert import cached_shards, convert
from screenpath.errors import DataError, ResourceError, RunFolderError
from screenpath.read.libsvm import read_libsvm
from screenpath.read.shards import ShardFolder
from screenpath.write.atomic import FolderLock
from screenpath.write.shards import ShardWriter


def content(folder) -> dict:
    """Return the bytes of all files of a folder."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 2 kB, so that small files make many shards."""
    monkeypatch.setattr(module, "BLOCK", 1 << 11)
    return 2 / 1024


@pytest.mark.parametrize("name", ["breast_cancer.libsvm", "diabetes.libsvm"])
def test_same_rows_as_reading(samples, tmp_path, small_blocks, name):
    source = samples / name
    folder = convert([source], tmp_path / "s", block_mb=small_blocks, storage="sparse")
    data = read_libsvm(source)
    again = folder.dataset()
    assert folder.count > 1 and (folder.n, folder.d, folder.nnz) == (data.n, data.d, data.nnz)
    assert again.fingerprint() == data.fingerprint()
    low, high = folder.ranges(folder.d)
    dense = data.X.toarray()
    np.testing.assert_array_equal(low, dense.min(axis=0))
    np.testing.assert_array_equal(high, dense.max(axis=0))


def test_jobs_and_compression_give_the_same_bytes(samples, tmp_path, small_blocks):
    source = samples / "breast_cancer.libsvm"
    (tmp_path / "breast_cancer.libsvm").write_bytes(gzip.compress(source.read_bytes()))
    convert([source], tmp_path / "one", block_mb=small_blocks)
    convert([tmp_path / "breast_cancer.libsvm"], tmp_path / "two", block_mb=small_blocks, jobs=3)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_several_files_and_what_meta_says(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n\n# comment\n2 3:1 # one more")  # no newline at the end
    (tmp_path / "b").write_text("\ufeff2 2:0.5 4:0\n")
    folder = convert([tmp_path / "a", tmp_path / "b"], tmp_path / "s")
    assert folder.dataset().X.toarray().tolist() == [[2, 0, 0, 0], [0, 0, 1, 0], [0, 0.5, 0, 0]]
    meta = json.loads((tmp_path / "s/meta.json").read_text())
    assert meta["labels"] == {"1": 1, "2": 2} and meta["sources"] == ["a", "b"]
    assert len(meta["sha256"]) == 64 and meta["dtype"] == "float64"


def test_faults_name_the_line_of_the_file(tmp_path, small_blocks):
    lines = [f"1 1:{k} 2:3.25" for k in range(1000)]
    lines[777] = "1 2:1 1:1"
    (tmp_path / "bad").write_text("\n".join(lines))
    with pytest.raises(DataError, match="bad, line 778: the indices are not in increasing order"):
        convert([tmp_path / "bad"], tmp_path / "s", block_mb=small_blocks, jobs=2)
    assert not (tmp_path / "s").exists()
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(DataError, match="holds no samples"):
        convert([tmp_path / "empty"], tmp_path / "s")
    with pytest.raises(DataError, match="lies beyond --n-features 1"):
        (tmp_path / "good").write_text("1 2:1\n")
        convert([tmp_path / "good"], tmp_path / "s", n_features=1)


def test_one_line_longer_than_a_block(tmp_path, small_blocks):
    cells = " ".join(f"{j}:{j % 7 + 0.5}" for j in range(1, 20001))
    (tmp_path / "wide").write_text(f"1 {cells}\n-1 {cells}\n1 1:1\n")
    folder = convert([tmp_path / "wide"], tmp_path / "s", block_mb=small_blocks)
    assert (folder.n, folder.d, folder.nnz) == (3, 20000, 40001)
    with pytest.raises(ResourceError, match="--max-memory"):
        convert([tmp_path / "wide"], tmp_path / "t", block_mb=small_blocks, max_memory=1 << 20)


def test_what_is_there_is_not_replaced_by_chance(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    first = convert([tmp_path / "a"], tmp_path / "s").sha256
    with pytest.raises(RunFolderError, match="exists already"):
        convert([tmp_path / "a"], tmp_path / "s")
    (tmp_path / "a").write_text("1 1:2\n-1 1:4\n")
    assert convert([tmp_path / "a"], tmp_path / "s", force=True).sha256 != first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "s"]
    (tmp_path / "mine").mkdir()
    with pytest.raises(RunFolderError, match="not a folder of shards"):
        convert([tmp_path / "a"], tmp_path / "mine", force=True)


def test_leftovers_are_removed_and_a_second_writer_is_refused(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    partial = tmp_path / "s.partial"
    partial.mkdir()
    (partial / "000007-dense.npy").write_bytes(b"left over")
    lock = FolderLock(partial)
    with pytest.raises(RunFolderError, match="in use"):
        convert([tmp_path / "a"], tmp_path / "s")
    lock.release()
    convert([tmp_path / "a"], tmp_path / "s")
    assert not partial.exists() and "000007-dense.npy" not in content(tmp_path / "s")


def test_damaged_and_newer_folders(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    convert([tmp_path / "a"], tmp_path / "s")
    meta = tmp_path / "s/meta.json"
    text = meta.read_text()
    meta.write_text(text.replace('"schema_version": 1', '"schema_version": 99'))
    with pytest.raises(DataError, match="has the format 99"):
        ShardFolder(tmp_path / "s")
    meta.write_text(text[:40])
    with pytest.raises(DataError, match="meta.json is damaged"):
        ShardFolder(tmp_path / "s")
    meta.unlink()
    with pytest.raises(DataError, match="not one of shards"):
        ShardFolder(tmp_path / "s")


def test_cache_parses_a_file_once(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("1 1:2 2:0\n-1 1:3\n")
    first = cached_shards(tmp_path / "a", tmp_path / "cache")
    assert first.dataset().fingerprint() == read_libsvm(tmp_path / "a").fingerprint()
    with monkeypatch.context() as patch:
        patch.setattr(module, "convert", None)  # nothing is converted
        assert cached_shards(tmp_path / "a", tmp_path / "cache").path == first.path
    (tmp_path / "a").write_text("1 1:2 2:0\n-1 1:4\n")
    assert cached_shards(tmp_path / "a", tmp_path / "cache").path != first.path
    assert cached_shards(tmp_path / "a", tmp_path / "cache", zero_based=True).d == 3


@pytest.fixture
def stopped(samples, tmp_path, small_blocks, monkeypatch):
    """Return a function that converts into ``s``, failing at shard ``k`` as on a full disk, and the numbers parsed."""
    parsed, plain = [], ShardWriter.write

    def function(k, **options):
        def write(self, number, *arguments):
            if number == k:
                raise OSError(28, "No space left on device")
            parsed.append(number)
            return plain(self, number, *arguments)

        monkeypatch.setattr(ShardWriter, "write", write)
        source = tmp_path / "breast_cancer.libsvm"
        if not source.exists():
            source.write_bytes((samples / source.name).read_bytes())
        parsed.clear()
        return convert([source], tmp_path / "s", block_mb=4 * small_blocks, **options)

    return function, parsed


@pytest.mark.parametrize("jobs", [1, 3])
def test_resume_keeps_what_is_done(stopped, tmp_path, jobs):
    """Stopped twice, with half a line in the log: each shard is parsed once, and the bytes are the same."""
    function, parsed = stopped
    whole = content(function(None).path)
    count = len(parsed)
    (tmp_path / "s").rename(tmp_path / "whole")
    assert count > 12
    done = 0
    for k in (4, 10):
        with pytest.raises(OSError, match="No space"):
            function(k, resume=True, jobs=jobs)
        log = (tmp_path / "s.partial/progress.jsonl").read_text()
        assert not (tmp_path / "s").exists()
        kept = log.count('"shard"')
        assert k - jobs <= kept <= k and min(parsed) == done
        done = kept
        with open(tmp_path / "s.partial/progress.jsonl", "a") as file:
            file.write('{"shard": 4')
    function(None, resume=True, jobs=jobs)
    assert parsed and min(parsed) == done and len(parsed) == count - done
    assert content(tmp_path / "s") == whole
    assert not (tmp_path / "s.partial").exists()
    function(None, resume=True)
    assert parsed == []  # complete already


def test_resume_makes_lost_files_again(stopped, tmp_path):
    function, parsed = stopped
    whole = content(function(None).path)
    (tmp_path / "s").rename(tmp_path / "whole")
    with pytest.raises(OSError, match="No space"):
        function(6)
    (tmp_path / "s.partial/000001-targets.npy").write_bytes(b"")
    (tmp_path / "s.partial/000003-dense.npy").unlink()
    function(None, resume=True)
    assert parsed[:3] == [1, 3, 6]
    assert content(tmp_path / "s") == whole


def test_resume_refuses_another_text_and_another_form(stopped, tmp_path):
    function, parsed = stopped
    with pytest.raises(OSError, match="No space"):
        function(6)
    with pytest.raises(RunFolderError, match="dtype was .*float64.*, now .*float32"):
        function(None, resume=True, dtype=np.float32)
    source = tmp_path / "breast_cancer.libsvm"
    text = source.read_text()
    source.write_text(text.replace("0", "1", 1))
    with pytest.raises(RunFolderError, match="in shard 0 has changed"):
        function(None, resume=True)
    source.write_text(text)
    assert function(None, resume=True).n == 569
    with pytest.raises(RunFolderError, match="zero_based was false, now true"):
        function(None, resume=True, zero_based=True)


def test_resume_of_a_replacement(stopped, tmp_path):
    """What was begun with force is continued, and takes the place of the older folder."""
    function, parsed = stopped
    function(None)
    with pytest.raises(OSError, match="No space"):
        function(6, force=True, storage="sparse")
    assert ShardFolder(tmp_path / "s").meta["shards"][0]["dense"]
    parsed.clear()
    folder = function(None, resume=True, storage="sparse")
    assert min(parsed) == 6 and not folder.meta["shards"][0]["dense"]
