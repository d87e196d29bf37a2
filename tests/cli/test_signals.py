"""Signals: wherever they arrive the command stops, says so once, and leaves nothing half done."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from types import FunctionType

import pytest

from screenpath.cli.signals import Signals, Stopped
from screenpath.cv import saved
from screenpath.data.words import tables
from screenpath.store import archive, folder
from tests.cli.conftest import ROOT, unmeasured
from tests.conftest import HANGS


class Trap:
    def __init__(self, number=signal.SIGTERM):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


def wait(what, seconds=HANGS) -> bool:
    """Wait for something, in steps that let a handler run."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.001)
    return False


def test_a_signal_in_a_destructor_is_not_lost(capfd):
    with Signals():
        trap = Trap()
        with pytest.raises(Stopped) as caught:
            del trap
            wait(lambda: False)
    assert caught.value.number == signal.SIGTERM
    error = capfd.readouterr().err
    assert error.count("stopping:") == 1 and "Traceback" not in error and "ignored" not in error


def test_a_signal_that_was_lost_waits_while_it_is_held(capfd):
    with Signals() as signals:
        trap = Trap(signal.SIGINT)
        del trap
        with pytest.raises(Stopped), signals.held():
            assert wait(lambda: not signals._told)  # it was raised again, and put off
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("module", ["llvmlite.binding.module", "numba.core.serialize"])
def test_a_signal_within_a_call_that_must_not_raise_waits_for_its_end(capfd, module):
    ended = []

    def calls():
        signal.raise_signal(signal.SIGTERM)
        ended.append(wait(lambda: False, 0.1))  # it comes again meanwhile

    there = {**globals(), "__name__": module}
    within = FunctionType(calls.__code__, there, closure=calls.__closure__)
    with pytest.raises(Stopped), Signals():
        within()
        wait(lambda: False)
    assert ended == [False] and capfd.readouterr().err.count("stopping:") == 1


def test_what_fails_for_want_of_what_a_signal_cut_is_the_signal():
    with pytest.raises(Stopped) as caught, Signals() as signals, signals.cutting():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            raise ValueError("it is open still")
    assert caught.value.number == signal.SIGTERM


def test_what_fails_before_a_signal_or_while_it_is_held_is_told():
    with pytest.raises(ValueError, match="before"), Signals() as signals, signals.cutting():
        raise ValueError("before")
    with pytest.raises(ValueError, match="held"), Signals() as signals, signals.cutting(), signals.held():
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("held")
    with pytest.raises(ValueError, match="completing"), Signals() as signals, signals.cutting():
        with contextlib.suppress(Stopped):
            signal.raise_signal(signal.SIGTERM)
        signals.hold()
        raise ValueError("completing")


def test_a_signal_while_a_table_becomes_parquet_is_held(monkeypatch):
    """pyarrow takes signals of its own in the main thread, and cancels what it reads."""
    pytest.importorskip("pyarrow", reason="needs pyarrow (extra: parquet)")

    class Signalling(io.BytesIO):
        left = [signal.SIGINT]

        def read(self, *size):
            if self.left:  # once: a second one ends the process
                os.kill(os.getpid(), self.left.pop())
            return super().read(*size)

    text = "step,C\n" + 300_000 * "0,0.1\n"  # more than a block
    written = tables.parquet_of(text)
    monkeypatch.setattr(tables.io, "BytesIO", Signalling)
    with pytest.raises(Stopped), Signals() as signals, signals.held():
        found = tables.parquet_of(text)
    assert found == written


@pytest.mark.parametrize("model", [("svm",), ("cv", "svm")])
def test_a_signal_in_the_middle_of_an_archive(data, tmp_path, call, monkeypatch, model):
    """A part that is still open keeps its archive from being closed, which is not what is to be told."""
    args = (*model, data, "--grid", "4", "-o", tmp_path / "run")
    close = archive.zipfile._ZipWriteFile.close

    def interrupted(member):
        monkeypatch.setattr(archive.zipfile._ZipWriteFile, "close", close)
        signal.raise_signal(signal.SIGTERM)
        close(member)

    monkeypatch.setattr(folder, "EVERY", 0.0)
    monkeypatch.setattr(saved, "EVERY", 0.0)
    monkeypatch.setattr(archive.zipfile._ZipWriteFile, "close", interrupted)
    result = call(*args)
    assert (result.code, result.err.count("stopping:"), result.err.count("error")) == (143, 1, 0), result.err
    assert call(*args, "--resume").code == 0


def test_a_signal_while_handlers_are_installed(data, tmp_path, call, monkeypatch):
    install = signal.signal

    def interrupted(number, handler):
        found = install(number, handler)
        if number == signal.SIGTERM:
            monkeypatch.setattr(signal, "signal", install)
            signal.raise_signal(number)
        return found

    monkeypatch.setattr(signal, "signal", interrupted)
    result = call("svm", data, "-o", tmp_path / "run")
    assert (result.code, result.err.count("\n")) == (143, 1), result.err
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_other_errors_of_destructors_are_shown(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)

    class Broken:
        def __del__(self):
            raise ValueError("broken")

    with Signals():
        broken = Broken()
        del broken
    assert [str(found.exc_value) for found in shown] == ["broken"]


@pytest.mark.parametrize(
    ("number", "code", "delay", "model"),
    [
        (signal.SIGTERM, 143, 0.0, ("svm",)), (signal.SIGTERM, 143, 0.75, ("svm",)),
        pytest.param(signal.SIGINT, 130, 3.0, ("svm",), marks=pytest.mark.wide_only),
        pytest.param(signal.SIGTERM, 143, 2.0, ("cv", "sparse-svm"), marks=pytest.mark.wide_only),
    ],
)  # fmt: skip
def test_a_signal_during_compilation(data, tmp_path, number, code, delay, model):
    """No kernel is in the cache: the command is stopped while it compiles, and has made nothing yet."""
    environment = {**unmeasured(), "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "screenpath", *model, str(data), "-o", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert "compiling" in process.stderr.readline()
        time.sleep(delay)
        process.send_signal(number)
        out, error = process.communicate(timeout=HANGS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (code, ""), error
    # Within an import there is nothing to say: the process just ends.
    assert error == "" or (error.count("\n") == 1 and error.startswith("stopping:"))
    assert sorted(os.listdir(tmp_path)) in ([data.name], sorted([data.name, "cache"]))
