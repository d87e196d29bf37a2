"""Text to shards: the same rows, in bounded memory, all or nothing."""

import gzip
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.safe.atomic import FolderLock
from screenpath.data.shards import convert as module
from screenpath.data.shards.checks import record_crc
from screenpath.data.shards.convert import DataCacheWarning, cached_shards, convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.data.shards.write_shards import ShardWriter
from screenpath.errors import DataError, ResourceError, RunFolderError
from screenpath.inputs.inspect import inspect
from tests import shard_folders
from tests.safety.artefacts import text_of


def content(folder) -> dict:
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
    columns, low, high = inspect(folder.path).column_ranges()
    dense = data.X.toarray()
    assert columns.tolist() == list(range(folder.d))
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
    with pytest.raises(DataError, match="lies beyond `n_features=1`"):
        (tmp_path / "good").write_text("1 2:1\n")
        convert([tmp_path / "good"], tmp_path / "s", n_features=1)


def test_one_line_longer_than_a_block(tmp_path, small_blocks):
    cells = " ".join(f"{j}:{j % 7 + 0.5}" for j in range(1, 20001))
    (tmp_path / "wide").write_text(f"1 {cells}\n-1 {cells}\n1 1:1\n")
    folder = convert([tmp_path / "wide"], tmp_path / "s", block_mb=small_blocks)
    assert (folder.n, folder.d, folder.nnz) == (3, 20000, 40001)
    with pytest.raises(ResourceError, match="`max_memory"):
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


def users_folder(path) -> dict:
    path.mkdir()
    (path / "notes.txt").write_text("mine")
    (path / "000000-dense.npy").write_text("mine as well")
    return content(path)


@pytest.mark.parametrize("options", [{}, {"force": True}, {"resume": True}])
def test_a_folder_of_the_user_under_the_partial_name_is_left_alone(tmp_path, options):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    before = users_folder(tmp_path / "s.partial")
    with pytest.raises(RunFolderError, match="s.partial holds 'notes.txt', which convert did not write") as caught:
        convert([tmp_path / "a"], tmp_path / "s", **options)
    assert content(tmp_path / "s.partial") == before and "move it away" in caught.value.hint
    (tmp_path / "s.partial" / "notes.txt").unlink()
    with pytest.raises(RunFolderError, match="s.partial does not carry the mark of convert"):
        convert([tmp_path / "a"], tmp_path / "s", **options)
    (tmp_path / "s.partial" / "progress.jsonl").write_text('{"my": "log"}\n')
    with pytest.raises(RunFolderError, match="does not carry the mark"):
        convert([tmp_path / "a"], tmp_path / "s", **options)
    assert len(content(tmp_path / "s.partial")) == 2 and not (tmp_path / "s").exists()


def test_a_folder_of_the_user_under_the_older_name_is_left_alone(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    convert([tmp_path / "a"], tmp_path / "s")
    before = users_folder(tmp_path / "s.old"), content(tmp_path / "s")
    with pytest.raises(RunFolderError, match="s.old holds 'notes.txt'"):
        convert([tmp_path / "a"], tmp_path / "s", force=True)
    assert convert([tmp_path / "a"], tmp_path / "s", resume=True).n == 2
    assert (content(tmp_path / "s.old"), content(tmp_path / "s")) == before
    assert convert([tmp_path / "a"], tmp_path / "t").n == 2  # nothing stands in its way


def test_a_file_of_the_user_within_the_folder_is_left_alone(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    convert([tmp_path / "a"], tmp_path / "s")
    (tmp_path / "s" / "notes.txt").write_text("mine")
    before = content(tmp_path / "s")
    with pytest.raises(RunFolderError, match="s holds 'notes.txt', which convert did not write"):
        convert([tmp_path / "a"], tmp_path / "s", force=True)
    assert content(tmp_path / "s") == before


def test_links_are_not_followed(tmp_path):
    """Nothing is written or removed behind a symbolic link."""
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    convert([tmp_path / "a"], tmp_path / "real")
    before = content(tmp_path / "real")
    target = tmp_path / "target"
    target.write_text("mine")
    for name in ("s.partial", "s"):
        (tmp_path / name).symlink_to("real")
        with pytest.raises(RunFolderError, match=f"{name} is a symbolic link"):
            convert([tmp_path / "a"], tmp_path / "s", force=True)
        (tmp_path / name).unlink()
    (tmp_path / "s").symlink_to("nowhere")
    with pytest.raises(RunFolderError, match="exists already"):
        convert([tmp_path / "a"], tmp_path / "s")
    (tmp_path / "s").unlink()
    for name in ("progress.jsonl", "000000-dense.npy.new", "meta.json.new", ".lock"):
        (tmp_path / "s.partial").mkdir()
        (tmp_path / "s.partial" / name).symlink_to(target)
        with pytest.raises(RunFolderError, match=f"holds '{name}'"):
            convert([tmp_path / "a"], tmp_path / "s")
        shutil.rmtree(tmp_path / "s.partial")
    assert content(tmp_path / "real") == before and target.read_text() == "mine"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_are_none(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    with pytest.raises(RunFolderError, match="is no name for a new folder"):
        convert(["a"], name, force=True)


def test_a_file_name_that_is_no_text(tmp_path):
    source = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    with open(source, "w") as file:
        file.write("1 1:2\n-1 1:3\n")
    assert convert([source], tmp_path / "s").meta["sources"] == ["\\udcff"]


@pytest.mark.parametrize("kept", ["", '{"settings": {"schema_v'])
def test_what_a_kill_leaves_of_a_beginning_is_taken_over(tmp_path, kept):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    (tmp_path / "s.partial").mkdir()
    (tmp_path / "s.partial/.lock").write_text("12345\n")
    (tmp_path / "s.partial/progress.jsonl").write_text(kept)
    assert convert([tmp_path / "a"], tmp_path / "s", resume=True).n == 2


def test_leftovers_are_removed_and_a_second_writer_is_refused(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 1:3\n")
    partial = tmp_path / "s.partial"
    partial.mkdir()
    (partial / "progress.jsonl").write_text('{"settings": {"schema_version": 1}, "replace": false}\n')
    (partial / "000007-dense.npy").write_bytes(b"left over")
    lock = FolderLock(partial)
    with pytest.raises(RunFolderError, match="in use"):
        convert([tmp_path / "a"], tmp_path / "s")
    lock.release()
    convert([tmp_path / "a"], tmp_path / "s")
    assert not partial.exists() and "000007-dense.npy" not in content(tmp_path / "s")


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
def cached(tmp_path):
    """A text file, its cache, the fingerprint of its rows and the files of its entry."""
    text = tmp_path / "a"
    text.write_bytes(text_of(rows=200, columns=50, density=0.2))
    entry = cached_shards(text, tmp_path / "cache").path
    return text, tmp_path / "cache", read_libsvm(text).fingerprint(), sorted(entry.iterdir())


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove", "array"])
def test_a_damaged_entry_of_the_cache_is_made_again(cached, damage, monkeypatch):
    """It was read as other numbers, or stopped every later run."""
    text, cache, fingerprint, files = cached
    before = content(files[0].parent)
    for file in files:
        if damage == "flip":
            shard_folders.flip(file, 150)
        elif damage == "cut":
            os.truncate(file, file.stat().st_size // 2)
        elif damage == "empty":
            file.write_bytes(b"")
        elif damage == "remove":
            file.unlink()
        elif file.suffix == ".npy":  # by a hand that makes the hashes fit
            np.save(file, np.load(file)[..., :-1])
            shard_folders.seal(file.parent)
        if file.name == "meta.json" and damage in ("empty", "remove"):
            continue  # the mark is gone: see the next test
        folder = cached_shards(text, cache)
        assert folder.dataset().fingerprint() == fingerprint
        assert content(file.parent) == before
    shutil.rmtree(files[0].parent)
    assert cached_shards(text, cache) is not None
    monkeypatch.setattr(module, "convert", None)
    assert cached_shards(text, cache).dataset().fingerprint() == fingerprint


def test_an_entry_that_cannot_be_replaced_is_gone_without(cached):
    text, cache, _, files = cached
    (files[0].parent / "meta.json").unlink()
    (files[0].parent / "notes.txt").write_text("mine")
    with pytest.warns(DataCacheWarning, match="going on without `cache=.*`: .* is not replaced"):
        assert cached_shards(text, cache) is None
    assert (files[0].parent / "notes.txt").read_text() == "mine"


def test_an_entry_of_another_file_is_not_used(cached, monkeypatch):
    """Names of folders are no proof, nor are size and time of a file: they can be set."""
    text, cache, fingerprint, files = cached
    other = text.with_name("b")
    other.write_bytes(text_of(rows=200, columns=50, density=0.2, seed=9))
    entry = cached_shards(other, cache).path
    shutil.rmtree(files[0].parent)
    entry.rename(files[0].parent)
    assert cached_shards(text, cache).dataset().fingerprint() == fingerprint
    state, data = text.stat(), bytearray(text.read_bytes() * 20)
    text.write_bytes(data)
    os.utime(text, ns=(state.st_atime_ns, state.st_mtime_ns))
    first = cached_shards(text, cache).dataset().fingerprint()
    middle = data.index(b"1:", len(data) // 2) + 2  # between the ends that are compared
    data[middle : middle + 1] = b"7" if data[middle : middle + 1] != b"7" else b"8"
    monkeypatch.setattr(module, "SAMPLED", 100)
    cached_shards(text, cache)
    text.write_bytes(data)
    os.utime(text, ns=(state.st_atime_ns, state.st_mtime_ns))
    changed = cached_shards(text, cache).dataset().fingerprint()
    assert changed == read_libsvm(text).fingerprint() != first


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(122, "Disk quota exceeded")])
def test_a_full_disk_under_the_cache_is_gone_without(tmp_path, monkeypatch, error):
    (tmp_path / "a").write_text("1 1:2 2:0\n-1 1:3\n")

    def full(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "write", full)
        with pytest.warns(DataCacheWarning, match=f"going on without `cache=.*`: {error.strerror}"):
            assert cached_shards(tmp_path / "a", tmp_path / "cache") is None
    assert list((tmp_path / "cache").iterdir()) == []
    assert cached_shards(tmp_path / "a", tmp_path / "cache").n == 2
    with pytest.warns(DataCacheWarning, match="Not a directory|File exists"):
        assert cached_shards(tmp_path / "a", tmp_path / "a") is None
    with pytest.warns(DataCacheWarning, match="more than `max_memory"):
        assert cached_shards(tmp_path / "a", tmp_path / "other", max_memory=1 << 20) is None
    (tmp_path / "bad").write_text("1 1:x\n")
    with pytest.raises(DataError, match="bad, line 1"):
        cached_shards(tmp_path / "bad", tmp_path / "cache")


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


def stopped_late(function, tmp_path):
    """Convert, put the folder aside, and convert again up to a full disk; return what the whole folder holds."""
    whole = content(function(None).path)
    (tmp_path / "s").rename(tmp_path / "whole")
    with pytest.raises(OSError, match="No space"):
        function(6)
    return whole


def test_resume_makes_lost_files_again(stopped, tmp_path):
    function, parsed = stopped
    whole = stopped_late(function, tmp_path)
    (tmp_path / "s.partial/000001-targets.npy").write_bytes(b"")
    (tmp_path / "s.partial/000003-dense.npy").unlink()
    shard_folders.flip(tmp_path / "s.partial/000004-dense.npy", 200)
    function(None, resume=True)
    assert parsed[:4] == [1, 3, 4, 6]
    assert content(tmp_path / "s") == whole


def test_a_damaged_log_keeps_what_stands_before_the_damage(stopped, tmp_path):
    function, parsed = stopped
    whole = stopped_late(function, tmp_path)
    log = tmp_path / "s.partial/progress.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    assert '"rows": ' in lines[3]
    lines[3] = lines[3].replace('"rows": ', '"rows": 1', 1)
    log.write_text("".join(lines))
    function(None, resume=True)
    assert parsed[0] == 2 and content(tmp_path / "s") == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(shard="../../x"), lambda record: record.update(entry=None),
        lambda record: record["entry"].update(crc32={"../x": 1}), lambda record: record["seen"].update(rows=-1),
        lambda record: record["seen"].update(labels=[[1.0]]), lambda record: record.pop("text"),
    ],
)  # fmt: skip
def test_a_log_that_somebody_made_up(stopped, tmp_path, change):
    function, parsed = stopped
    whole = content(function(None).path)
    (tmp_path / "s").rename(tmp_path / "whole")
    with pytest.raises(OSError, match="No space"):
        function(3)
    log = tmp_path / "s.partial/progress.jsonl"
    lines = log.read_text().splitlines()
    record = json.loads(lines[2])
    change(record)
    lines[2] = json.dumps({**record, "crc32": record_crc(record)})
    log.write_text("\n".join(lines) + "\n")
    function(None, resume=True)
    assert parsed[0] == 1 and content(tmp_path / "s") == whole


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
