"""Clocks that are set while a command runs: no limit, lock or checkpoint goes by the time of day."""

import itertools
import math
import os
import re
import signal
import time
from pathlib import Path

import pytest

from screenpath.cv import saved
from screenpath.report.console import Console
from screenpath.rows import cluster
from screenpath.rows.cluster import Deadline
from screenpath.store import folder as folders
from tests.cli.conftest import ROOT
from tests.engine.damaged import content

GRID = ("--grid", "6", "--cmax", "1", "--quiet", "--time-limit", "1000")


@pytest.fixture
def jumping(monkeypatch):
    real, jumps = time.time, itertools.cycle((0.0, -1e9, 1e9, 5.0, -7e7))
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))


@pytest.mark.parametrize("command", [("svm",), ("cv", "svm", "--folds", "3", "--certify-to", "0.05")])
def test_a_run_and_its_resumption_do_not_notice(call, data, monkeypatch, jumping, command):
    with monkeypatch.context() as patch:
        for module in (folders, saved):
            patch.setattr(module, "EVERY", 0.0)
        patch.setattr(Console, "advance", lambda self, done: done.step != 2 or signal.raise_signal(signal.SIGTERM))
        assert call(*command, data, *GRID, "-o", "cut").code == 143
    for entry in os.scandir("cut"):
        os.utime(entry.path, (4e9, 4e9))  # files of the future
    assert call(*command, data, *GRID, "-o", "cut", "--resume").code == 0
    assert call(*command, data, *GRID, "-o", "whole").code == 0
    if command[0] == "cv":
        assert content(Path("cut")) == content(Path("whole"))
    assert call("predict", "cut", data, "--step", 3).out == call("predict", "whole", data, "--step", 3).out


def test_deadlines_of_this_machine_go_by_the_monotonic_clock(jumping):
    for at in (time.monotonic() + 100.0, math.inf, 0.0):
        sent = Deadline.of(at)
        assert [sent.here() for _ in range(7)] == [at] * 7


def test_deadlines_of_other_machines(monkeypatch):
    """The time that went by counts where the other clock shows it; one that was set back gives no more time."""
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: 50.0)
    sent = Deadline.of(80.0)
    monkeypatch.setattr(cluster, "machine", lambda: "another one")
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    assert sent.here() == 37.0
    now[0] += 10.0
    assert sent.here() == 27.0
    now[0] -= 500.0
    assert sent.here() == 37.0
    monkeypatch.setattr(cluster, "machine", lambda: "")
    assert Deadline(80.0, "", 30.0, now[0]).here() == 37.0


def test_nothing_else_goes_by_the_time_of_day():
    users = [
        str(path.relative_to(ROOT / "screenpath"))
        for path in (ROOT / "screenpath").rglob("*.py")
        if re.search(r"\btime\.time\(|\bdatetime\b|\bctime\b|\blocaltime\b", path.read_text())
    ]
    # the former says what time it is, for people
    assert sorted(users) == ["data/words/tables.py", "rows/cluster.py"]
