import sys
from dataclasses import dataclass, field

import pytest

from screenpath.report import console as module
from screenpath.report.console import Console
from screenpath.runs.tally import Tally


@dataclass
class Done:
    step: int = 0
    parameters: dict = field(default_factory=lambda: {"C": 0.5})
    rel_gap: float = 1e-7
    rejection_ratio: float = 0.25
    status: str = "certified"
    epochs: int = 3
    passes: float = 1.5
    screen_s: float = 1.0
    solve_s: float = 2.0
    certify_s: float = 3.0
    init_s: float = 0.0
    extras: dict = field(default_factory=dict)


def test_lines_every_tenth(capsys):
    console = Console(quiet=False, progress=None)
    console.start("svm", 100, 0)
    for k in range(100):
        console.advance(Done(k))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "svm: step 99 (C = 0.5), 100 of 100 done, relative gap 1.0e-07, 25.0 % screened"


def test_a_line_after_a_while(capsys, monkeypatch):
    console = Console(quiet=False, progress=None)
    console.start("svm", 1000, 0)
    now = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now + 31.0)
    console.advance(Done())
    console.advance(Done())
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


def test_tally_survives_a_checkpoint():
    tally = Tally()
    tally.add(Done())
    tally.add(Done(status="budget", rel_gap=1e-3, extras={"unsafe": 2}))
    again = Tally.restored(tally.array())
    assert again.record() == tally.record()
    assert tally.record()["certified"] == 1 and tally.record()["unsafe"] == 2
    assert tally.record()["worst_rel_gap"] == 1e-3
    assert tally.record()["seconds"]["solving"] == pytest.approx(4.0)
    lines = dict(tally.lines(2))
    assert lines["certified"] == "1 of 2 steps" and lines["unsafe"] == "2 decisions"
