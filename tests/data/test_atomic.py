import os

import pytest

from screenpath.data.safe.atomic import Appender, FolderLock, open_own, replacing
from screenpath.errors import RunFolderError


def test_replacing_is_all_or_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_text("good")
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "good"
    with replacing(path) as file:
        file.write(b"better")
    assert path.read_text() == "better"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_short_write_of_an_array_is_a_full_disk(tmp_path):
    with pytest.raises(OSError, match="No space left on device.*checkpoint"), replacing(tmp_path / "checkpoint"):
        raise OSError("16992 requested and 11234 written")
    assert list(tmp_path.iterdir()) == []


def test_appender_completes_and_continues(tmp_path):
    path = tmp_path / "a"
    appender = Appender(path)
    appender.append(b"one\n")
    keep = appender.size
    appender.append(b"two\n")
    assert appender.partial.read_bytes() == b"one\ntwo\n" and not path.exists()
    appender.complete()
    assert path.read_bytes() == b"one\ntwo\n"
    again = Appender(path, keep)
    assert not path.exists()
    again.append(b"three\n")
    again.complete()
    assert path.read_bytes() == b"one\nthree\n"


def test_appender_refuses_a_file_that_lost_its_end(tmp_path):
    (tmp_path / "a.partial").write_bytes(b"on")
    with pytest.raises(RunFolderError, match="damaged"):
        Appender(tmp_path / "a", 4)


def test_appender_drops_half_a_record(tmp_path, monkeypatch):
    appender = Appender(tmp_path / "a")
    appender.append(b"one\n")
    real = os.write

    def short(descriptor, data):
        if len(data) > 2:
            return real(descriptor, bytes(data[:2]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space"):
        appender.append(b"two\n")
    monkeypatch.undo()
    appender.abandon()
    assert (tmp_path / "a.partial").read_bytes() == b"one\n"


def test_lock_excludes_and_is_released(tmp_path):
    lock = FolderLock(tmp_path)
    with pytest.raises(RunFolderError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path)
    lock.release()
    FolderLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_second_name_is_not_written_to(tmp_path):
    (tmp_path / "mine").write_text("mine\n")
    for name in (".lock", "steps.csv.partial"):
        os.link(tmp_path / "mine", tmp_path / name)
        with pytest.raises(RunFolderError, match="a second name"):
            open_own(tmp_path / name)


def test_stale_lock_file_does_not_block(tmp_path):
    """The process that wrote it is gone, and its lock with it."""
    (tmp_path / ".lock").write_text("12345\n")
    FolderLock(tmp_path).release()


def test_lock_on_a_removed_file_does_not_count(tmp_path, monkeypatch):
    """The former owner unlinks the file between our open and our lock: we must lock the new one."""
    import fcntl

    real, calls = fcntl.flock, []

    def flock(descriptor, flags):
        real(descriptor, flags)
        if not calls:
            os.unlink(tmp_path / ".lock")
        calls.append(descriptor)

    monkeypatch.setattr(fcntl, "flock", flock)
    FolderLock(tmp_path)
    assert len(calls) == 2
    with pytest.raises(RunFolderError):
        FolderLock(tmp_path)
