"""Files, locks, memory and signals on systems that lack calls of Linux: the calls are taken away here."""

import ctypes
import errno
import fcntl
import os
import resource
import signal
import struct
import sys
from types import SimpleNamespace

import pytest

from screenpath.cli import signals
from screenpath.cli.signals import Signals, Stopped
from screenpath.data.safe import atomic, memory, system
from screenpath.data.safe.atomic import Appender, FolderLock, open_own, replacing, sync_folder
from screenpath.errors import InUseError, RunFolderError
from tests.cli.conftest import clouds, in_process, libsvm_text
from tests.cli.test_signals import Trap, wait

FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY")


@pytest.fixture
def windows(monkeypatch):
    """Take away what Windows lacks for files; its lock of a byte is one of this system."""

    def locking(descriptor, mode, count):
        assert (mode, count) == (2, 1) and os.lseek(descriptor, 0, os.SEEK_CUR) == system.PLACE
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    monkeypatch.setattr(system, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2), raising=False)
    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(atomic, "fcntl", None)
    monkeypatch.setattr(system, "NO_LINKS", 0)
    monkeypatch.setattr(system, "AT_ONCE", 0)
    for name in ("pread", *FLAGS):
        monkeypatch.delattr(os, name)


def test_a_folder_is_locked_and_let_go_without_fcntl(windows, tmp_path):
    lock = FolderLock(tmp_path)
    with pytest.raises(InUseError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path)
    lock.release()
    lock.release()  # once more is harmless
    FolderLock(tmp_path).release()  # its file has stayed, and is nobody's
    assert [file.name for file in tmp_path.iterdir()] == [atomic.LOCK]


def test_links_are_refused_without_a_flag_for_it(windows, tmp_path):
    (tmp_path / "there").write_text("kept")
    (tmp_path / "link").symlink_to("there")
    with pytest.raises(RunFolderError, match="a symbolic link"):
        open_own(tmp_path / "link")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "there").read_text() == "kept" and (tmp_path / "link").read_bytes() == b"new"


def test_records_are_appended_and_read_without_pread(windows, tmp_path):
    file = Appender(tmp_path / "steps.csv")
    file.append(b"one\n")
    kept = file.sha256
    file.append(b"two\n")
    file.sync()
    again = Appender(tmp_path / "steps.csv", keep=4, sha256=kept)  # which reads them
    again.complete()
    file.abandon()
    assert (tmp_path / "steps.csv").read_bytes() == b"one\n"
    sync_folder(tmp_path)


def test_windows_tells_memory(monkeypatch):
    def fill(told, size, values):
        assert len(told) == size and struct.unpack_from("<I", told)[0] == size
        for place, value in values.items():
            struct.pack_into("<Q", told, place, value)
        return 1

    def of_process(handle, told, size):
        assert handle.value == ctypes.c_void_p(-1).value
        return fill(told, size, {8: 5, 16: 4, 56: 3})

    kernel32 = SimpleNamespace(
        GlobalMemoryStatusEx=lambda told: fill(told, 64, {8: 1 << 34, 16: 1 << 33}), K32GetProcessMemoryInfo=of_process,
    )  # fmt: skip
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel32), raising=False)
    monkeypatch.setattr(system, "resource", None)
    monkeypatch.delattr(os, "sysconf")
    assert (system.physical_bytes(), system.free_bytes(), system.peak_bytes()) == (1 << 34, 1 << 33, 3)
    kernel32.GlobalMemoryStatusEx = lambda told: 0
    with pytest.raises(OSError, match="GlobalMemoryStatusEx does not answer"):
        system.physical_bytes()


def test_macos_tells_less_of_memory_and_in_bytes(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "STATUS", tmp_path / "status")  # there is no /proc
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=1 << 20))
    assert memory.private_bytes() == 1 << 30
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory.private_bytes() == 1 << 20
    monkeypatch.delitem(os.sysconf_names, "SC_AVPHYS_PAGES")
    assert 0 < system.free_bytes() == system.physical_bytes() // 2


@pytest.fixture
def no_timers(monkeypatch):
    """Take away timers; SIGUSR1 stands for Ctrl-Break."""
    monkeypatch.setattr(signals, "TIMERS", False)
    monkeypatch.setattr(signals, "ALARM", signal.SIGUSR1)
    monkeypatch.delattr(signal, "setitimer")


def test_a_signal_in_a_destructor_is_not_lost_without_timers(no_timers, capfd):
    with Signals():
        trap = Trap()
        with pytest.raises(Stopped) as caught:
            del trap
            wait(lambda: False)
    assert caught.value.number == signal.SIGTERM
    assert capfd.readouterr().err.count("stopping:") == 1


def test_a_long_step_has_its_time_without_timers(no_timers, monkeypatch):
    monkeypatch.setattr(signals, "GRACE", 0.01)
    with pytest.raises(Stopped), Signals(lambda text: None) as running:
        running.softly = lambda: True
        signal.raise_signal(signal.SIGINT)
        assert running.received == signal.SIGINT  # and nothing raised yet
        wait(lambda: False)


def test_a_bell_that_is_not_needed_does_not_ring(no_timers, monkeypatch):
    with Signals(lambda text: None) as running:
        running.softly = lambda: True
        signal.raise_signal(signal.SIGINT)
        bell = running._bell
    assert bell.finished.is_set() and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_ctrl_break_stops_as_ctrl_c_does(no_timers):
    with pytest.raises(Stopped) as caught, Signals(lambda text: None):
        signal.raise_signal(signal.SIGUSR1)
    assert caught.value.number == signal.SIGUSR1


TAKEN_AWAY = """
import multiprocessing.spawn, os, signal, subprocess, sys, tempfile, types
import click, numba, numpy, rich.console, rich.progress, scipy.linalg, scipy.sparse
import fcntl

def locking(descriptor, mode, count):
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

def tell(told, *size):
    told[56:64] = (200 << 20).to_bytes(8, "little") if size else bytes(8)
    told[8:24] = (1 << 33).to_bytes(8, "little") * 2
    return 1

for name in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[name] = None  # an ImportError
for module, names in (
    (os, ["sysconf", "pread", "sched_getaffinity", "getuid", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"]),
    (signal, ["SIGALRM", "setitimer", "pthread_sigmask"]),
):
    for name in names:
        delattr(module, name)
signal.SIGBREAK = signal.SIGUSR1
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
import ctypes
ctypes.windll = types.SimpleNamespace(kernel32=types.SimpleNamespace(
    GlobalMemoryStatusEx=tell, K32GetProcessMemoryInfo=lambda process, told, size: tell(told, size)))
import pathlib
replace, unlink = os.replace, os.unlink

def is_open(path):
    path = os.path.realpath(path)
    for link in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        there = os.readlink("/proc/self/fd/" + link) if os.path.lexists("/proc/self/fd/" + link) else ""
        if there == path or there.startswith(path + os.sep):
            raise PermissionError(13, "it is open", path)

def replace_closed(source, target):
    is_open(source), is_open(target)
    replace(source, target)

def unlink_closed(path, **where):
    is_open(path)
    unlink(path, **where)

os.replace, os.unlink = replace_closed, unlink_closed
exists = pathlib.Path.exists
pathlib.Path.exists = lambda self, **options: not str(self).startswith(("/proc", "/sys")) and exists(self, **options)

from screenpath.cli.app import run
data, out = sys.argv[1:]
for words in (
    ["svm", data, "--grid", "3", "--certificate", "-o", out, "--max-memory", "900M", "--quiet"],
    ["verify", out], ["predict", out, data, "--step", "1", "-o", out + ".csv"],
    ["svm", data, "--grid", "3", "-o", out, "--resume", "--certificate", "--max-memory", "900M", "--quiet"],
    ["convert", data, out + "-shards", "--quiet"], ["convert", data, out + "-shards", "--quiet", "--force"],
    ["svm", out + "-shards", "--grid", "3", "-o", out + "2", "--quiet"],
    ["cv", "svm", data, "--grid", "3", "--folds", "2", "--jobs", "2", "-o", out + "3", "--quiet"],
):
    code = run(words)
    assert code == 0, (words, code)
"""


def test_commands_work_where_all_of_these_calls_are_missing(tmp_path):
    data = tmp_path / "clouds.libsvm"
    data.write_text(libsvm_text(*clouds()))
    result = in_process(TAKEN_AWAY, data, tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
