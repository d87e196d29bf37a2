import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pytest

from screenpath.data.files.source import open_source, reading
from screenpath.engine.record import Tally
from screenpath.errors import flags, tell
from screenpath.report import console as module
from screenpath.report.console import Activity, Console, duration
from screenpath.solve.base import Pulse
from tests.conftest import HANGS


@dataclass
class Done:
    step: int = 0
    parameters: dict = field(default_factory=lambda: {"C": 0.5})
    rel_gap: float = 1e-7
    rejection_ratio: float = 0.25
    status: str = "certified"
    epochs: int = 3
    passes: float = 1.5
    solver: str = "newton"
    screen_s: float = 1.0
    solve_s: float = 2.0
    certify_s: float = 3.0
    init_s: float = 0.0
    extras: dict = field(default_factory=dict)

    @property
    def cells(self):
        return {**vars(self), **self.parameters, **self.extras}


def test_lines_every_tenth(capsys):
    console = Console(quiet=False, progress=True)
    console.start("svm", 100, 0)
    for k in range(100):
        console.advance(Done(k))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    clock, _, text = lines[-1].partition(" ")
    assert text == "svm: step 99 (C = 0.5), 100 of 100 done, relative gap 1.0e-07, 25.0 % screened"
    assert re.fullmatch("[0-2][0-9]:[0-5][0-9]:[0-5][0-9]", clock)
    console.stop()


def test_what_is_done_at_once_has_no_progress(capsys, monkeypatch):
    console = Console(quiet=False, progress=None)
    console.start("svm", 10, 0)
    console.advance(Done(0))
    console.advance(Done(1))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    late = Console(quiet=False, progress=None)
    late.start("svm", 10, 0)
    late.advance(Done(0))
    assert ", 1 of 10 done" in capsys.readouterr().err
    for one in (console, late):
        one.stop()


def test_the_time_gone_and_the_time_left(monkeypatch):
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0)
    a = Activity("svm", "steps", 100, 20)
    assert a.times() == "" and a.left is None  # nothing is known yet
    a.began, a.done = 940.0, 40
    assert a.times() == "1 min 0 s gone, about 3 min 0 s left"  # 20 steps a minute, 60 to go
    share = iter((0.0, 0.25, 0.25))
    grows = Activity("svm", "steps", 229, 0, bound=True, covered=lambda: next(share))
    grows.began = 990.0
    assert grows.count() == "0 of at most 229 done" and grows.left == 30.0
    assert [duration(s) for s in (0.4, 59.6, 7260)] == ["0 s", "1 min 0 s", "2 h 1 min"]


def test_a_long_step_is_heard_of(capsys, monkeypatch):
    """From the thread that watches: the gap and the passes that the solver has told last, and nothing made up."""
    monkeypatch.setattr(module, "BAR_EVERY_SECONDS", 0.001)
    monkeypatch.setattr(module, "LINE_EVERY_SECONDS", 0.0)
    pulse = Pulse()
    pulse.begin({"C": 0.5}, rows=10)
    console = Console(quiet=False, progress=None, log_format="json")
    console.start("svm", 100, 3, pulse=pulse)
    first = waited(capsys, lambda found: found)
    pulse.note(gap=0.2, primal=2.0, touched=25.0)
    second = waited(capsys, lambda found: found["rel_gap"])
    console.stop()
    assert first["event"] == "heartbeat" and first["parameters"] == {"C": 0.5} and first["rel_gap"] is None
    assert "gap not known yet; 3 of 100 done" in first["message"]
    assert second["rel_gap"] == 0.1 and second["passes"] == 2.5 and (second["done"], second["total"]) == (3, 100)
    assert "relative gap 1.0e-01 so far, 2.5 passes" in second["message"]


def waited(capsys, good) -> dict:
    """Return the first line of JSON that is as it should be."""
    until = time.monotonic() + HANGS
    while time.monotonic() < until:
        for line in capsys.readouterr().err.splitlines():
            if good(json.loads(line)):
                return json.loads(line)
        time.sleep(0.001)
    raise AssertionError("no such line")


def test_reading_a_file_is_heard_of(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "BAR_EVERY_SECONDS", 0.001)
    monkeypatch.setattr(module, "LINE_EVERY_SECONDS", 0.0)
    file = tmp_path / "data.libsvm"
    file.write_bytes(b"1 1:2\n" * 500_000)
    console = Console(quiet=False, progress=None, log_format="json")
    with open_source(file) as (stream, _), console.busy("reading", reading) as shown:
        stream.read(1_500_000)
        found = waited(capsys, lambda line: line["unit"] == "MB" and line["done"] >= 1.5)
        shown.turn("preparing the path")
        after = waited(capsys, lambda line: line["title"] == "preparing the path")
    assert reading() is None
    assert found["title"] == "reading data.libsvm" and 1.5 <= found["done"] <= 1.6 and found["total"] == 3.0
    assert after["left_s"] is None and after["unit"] is None


def test_objects_a_line_for_machines(capsys):
    console = Console(quiet=False, progress=None, words=flags, log_format="json")
    console.say("use `grid=3`", "hint")
    console.start("svm", 1, 0)
    console.advance(Done())
    console.stop()
    console.summary([("warning", "a \x1b"), ("warning", "b")])
    hint, step, end = map(json.loads, capsys.readouterr().err.splitlines())
    assert (hint["event"], hint["level"], hint["message"]) == ("hint", "info", "use --grid 3")
    assert datetime.fromisoformat(step["time"]).utcoffset() is not None
    assert step["event"] == "progress" and step["step"] == 0 and step["parameters"] == {"C": 0.5}
    assert end["event"] == "summary" and [what for what, _ in end["items"]] == ["warning", "warning"]


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(capsys, monkeypatch, kind):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", kind)
    console = Console(quiet=False, progress=True)
    console.start("svm", 1, 0)
    console.advance(Done())
    console.stop()
    console.summary([("certified", "1 of 1 steps")])
    err = capsys.readouterr().err
    assert "svm: step 0" in err and "\x1b" not in err and err.endswith("certified  1 of 1 steps\n")


def test_a_line_after_a_while(capsys, monkeypatch):
    monkeypatch.setattr(module, "BAR_EVERY_SECONDS", HANGS)  # the thread that watches says nothing meanwhile
    console = Console(quiet=False, progress=None)
    console.start("svm", 1000, 0)
    now = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now + 31.0)
    console.advance(Done())
    console.advance(Done())
    console.stop()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_quiet_says_nothing(capsys):
    console = Console(quiet=True, progress=None)
    console.say("a")
    console.start("svm", 1, 0)
    console.advance(Done())
    console.stop()
    console.summary([("a", "b")])
    assert capsys.readouterr().err == ""


def test_bar_and_table_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    console = Console(quiet=False, progress=None)
    console.start("svm", 2, 0)
    console.advance(Done())
    console.stop()
    console.summary([("certified", "2 of 2 steps")])
    err = capsys.readouterr().err
    assert "2 of 2 steps" in err and "svm: step" not in err


def test_compiling_is_announced_once_and_only_if_it_happens(capsys, monkeypatch):
    from screenpath.kernels import compilation

    console = Console(quiet=False, progress=None)
    with console.compiling():
        recorder = compilation._recorder
        assert capsys.readouterr().err == ""
        recorder.announce()
    assert "compiling" in capsys.readouterr().err
    assert recorder.announce is None


def test_the_kernel_that_is_compiled_is_named_and_no_time_left_is_promised(capsys):
    """How many kernels the cache lacks is not known."""
    from screenpath.kernels import compilation

    recorder, console = compilation._recorder, Console(quiet=False, progress=None)
    with console.busy("reading") as activity, console.compiling():
        recorder.announce()
        recorder.each("box.box_decide")
        activity.turn("preparing the path")
        recorder.each("newton.minimise")
        activity.began -= 10.0
        assert activity.title.endswith("newton.minimise, number 2")
        assert activity.left is None and not activity.total and "left" not in activity.clocks
    assert recorder.each is None and "up to 4 minutes in a first run" in capsys.readouterr().err


def test_a_gap_that_overflowed_is_the_worst():
    tally = Tally()
    tally.add(Done(status="failed", rel_gap=float("nan")))
    assert tally.record()["worst_rel_gap"] == np.inf  # it was left out, and the worst one was 0


def test_tally_survives_a_checkpoint():
    tally = Tally()
    tally.add(Done())
    tally.add(Done(status="budget", rel_gap=1e-3, extras={"unsafe": 2}))
    tally.looked = 1.0
    tally.look(3.5)
    again = Tally.restored(tally.array())
    assert again.record() == tally.record() and again.record()["cpu_seconds"] == 2.5
    assert tally.record()["certified"] == 1 and tally.record()["unsafe"] == 2
    assert tally.record()["worst_rel_gap"] == 1e-3
    assert tally.record()["seconds"]["solving"] == pytest.approx(4.0)
    lines = dict(tally.lines(2))
    assert lines["certified"] == "1 of 2 steps" and lines["unsafe"] == "2 decisions, audited"
    assert dict(again.lines(2))["unsafe"] == "2 decisions"
    audited = Tally()
    assert "unsafe" not in dict(audited.lines(1))
    audited.add(Done(extras={"unsafe": 0}))
    assert dict(audited.lines(1))["unsafe"] == "0 decisions, audited"


def test_lines_are_folded_on_a_narrow_terminal_alone(monkeypatch, capsys):
    tell("a hint of several words: --scale standard")
    assert capsys.readouterr().err.count("\n") == 1  # a pipe gets lines as they are
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2, raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((24, 80)))
    Console(False, False, flags).say("a hint of several words: `scale=standard`")
    assert capsys.readouterr().err == "a hint of several words:\n  --scale standard\n"
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((0, 0)))  # its size is not known
    tell("a hint of several words: --scale standard")
    assert capsys.readouterr().err.count("\n") == 1
