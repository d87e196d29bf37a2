"""Signals: wherever they arrive the command stops, says so once, and leaves nothing half done."""

import os
import signal
import subprocess
import sys
import time

import pytest

from screenpath.cli.signals import Signals, Stopped
from tests.cli.conftest import ROOT


class Trap:
    """Gets a signal in its destructor, out of which no exception comes."""

    def __init__(self, number=signal.SIGTERM):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


def wait(what, seconds=60.0) -> bool:
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
        (signal.SIGTERM, 143, 0.0, ("svm",)), (signal.SIGTERM, 143, 1.5, ("svm",)), (signal.SIGINT, 130, 3.0, ("svm",)),
        (signal.SIGTERM, 143, 2.0, ("cv", "sparse-svm")),
    ],
)  # fmt: skip
def test_a_signal_during_compilation(data, tmp_path, number, code, delay, model):
    """No kernel is in the cache: the command is stopped while it compiles, and has made nothing yet."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "screenpath", *model, str(data), "-o", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert "compiling" in process.stderr.readline()
        time.sleep(delay)
        process.send_signal(number)
        out, error = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (code, ""), error
    # Within an import there is nothing to say: the process just ends.
    assert error == "" or (error.count("\n") == 1 and error.startswith("stopping:"))
    assert sorted(os.listdir(tmp_path)) in ([data.name], sorted([data.name, "cache"]))
