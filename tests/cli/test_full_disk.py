"""A full disk, really: a small file system of its own, mounted by the test where that is allowed."""

import os
import subprocess
from pathlib import Path

import pytest

import screenpath
from tests.cli.conftest import clouds
from tests.conftest import HANGS

SVM = ("--grid", "400", "--cmax", "1", "--bias", "1", "--quiet")
CV = ("--grid", "12", "--folds", "3", "--certify-to", "0.02", "--certify-points", "30", "--quiet")
PAGE = 4096


class SmallDisk:
    """A file system in memory, mounted at a path."""

    def __init__(self, path: Path):
        self.path = path

    def resize(self, size: str) -> None:
        """Change how much it holds."""
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.path)], check=True, timeout=HANGS)

    def fill(self, left: int) -> Path:
        room = os.statvfs(self.path)
        file = self.path / "filler"
        file.write_bytes(bytes(max(room.f_bavail * room.f_frsize - left, 0)))
        return file


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100k,nr_inodes=200", "tmpfs", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    except OSError as error:
        pytest.skip(f"there is no mount command: {error}")
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield SmallDisk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True, timeout=HANGS)


def test_a_merge_or_a_saved_path_that_fails_leaves_the_earlier_run_in_its_place(call, data, disk):
    """What it has written cannot be continued."""
    run = disk.path / "run"
    for k in (1, 2):
        assert call("svm", data, *SVM, "--part", f"{k}/2", "-o", f"p{k}").code == 0
    assert call("svm", data, "--grid", "3", "--quiet", "-o", run).code == 0
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    disk.fill(8 * PAGE)
    clear_error(call("merge", "p1", "p2", "-o", run, "--force"), str(run), "--resume where the command has it")
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    path = screenpath.svm_path(*clouds(), grid=400)
    with pytest.raises(OSError, match="No space left"):
        path.save(run, force=True)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def clear_error(result, *words) -> None:
    """Check that a call ended with one message that names what is full."""
    assert result.code == 1 and result.out == "", result
    assert "No space left on device" in result.err and "free some space" in result.err
    assert result.err.count("error:") == 1 and "Traceback" not in result.err
    assert all(word in result.err for word in words), result.err


@pytest.mark.parametrize("left", range(0, 6 * PAGE, PAGE))
def test_no_room_from_the_beginning(call, data, disk, left):
    """Whatever a few pages leave behind does not stand in the way of the next run."""
    filler = disk.fill(left)
    run = disk.path / "run"
    clear_error(call("svm", data, *SVM, "-o", run), str(run))
    filler.unlink()
    disk.resize("20m")
    assert call("svm", data, *SVM, "-o", run, "--resume").code == 0
    assert sorted(os.listdir(run)) == ["coefficients.csv", "run.json", "steps.csv"]


def test_outputs_appear_whole_or_not_at_all(call, data, disk):
    assert call("svm", data, "--grid", "3", "--quiet", "-o", "run").code == 0
    disk.fill(0)
    (disk.path / "old").touch()
    for words in (
        ("predict", "run", data, "--step", 0), ("export", "run", "--step", 0, "--to", "json"),
        ("generate", "ogawa-toy"),
    ):  # fmt: skip
        clear_error(call(*words, "-o", disk.path / "new"), str(disk.path / "new"))
        clear_error(call(*words, "-o", disk.path / "old", "--force"), str(disk.path / "old"))
    assert sorted(os.listdir(disk.path)) == ["filler", "old"]


@pytest.mark.parametrize("left", [0, PAGE, 3 * PAGE, 12 * PAGE])
def test_force_on_a_full_disk_keeps_the_earlier_run(call, data, disk, left):
    """In its place where the new run has no step yet, else aside; --resume or --force complete the new one."""
    run, options = disk.path / "run", ("svm", data, *SVM, "--coefficients", "csv", "-o", disk.path / "run")
    assert call("svm", data, "--grid", "3", "--quiet", "-o", run).code == 0
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    filler = disk.fill(left)
    clear_error(call(*options, "--force"), str(run))
    aside = run / "earlier.partial"
    assert aside.exists() == (left == 12 * PAGE)
    kept = aside if aside.exists() else run
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == before
    assert call("show", kept).code == 0
    if kept == aside:
        assert f"{aside} holds the run that it is to replace" in call("show", run).err
    filler.unlink()
    disk.resize("20m")
    assert call(*options, "--resume" if kept == aside else "--force").code == 0
    assert sorted(os.listdir(run)) == ["coefficients.csv", "run.json", "steps.csv"]
