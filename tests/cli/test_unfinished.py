"""A long step that a limit or a signal cuts short: its pair is written, and its solver goes on from it."""

import json
import signal
from pathlib import Path

import pytest

from screenpath.engine import record, session
from screenpath.solve.base import Pulse
from tests.cli.conftest import read_csv, without_times

CD = ("--grid", "4", "--cmin", "1", "--cmax", "50", "--bias", "1", "--rule", "dvi", "--solver", "cd")
CASES = [("svm", CD), ("svm", ("--c", "50", "--intercept", "none", "--rule", "none", "--solver", "cd")),
         ("svm", ("--grid", "4", "--cmin", "1", "--cmax", "100", "--kernel", "rbf", "--solver", "smo"))]  # fmt: skip


@pytest.fixture
def cut(monkeypatch):
    """Return a function: once the gap at a grid point was looked at twice, end the run as asked for."""

    def function(rank, how):
        monkeypatch.setattr(record, "LONG", 0.0)
        monkeypatch.setattr(session, "LONG", 0.0)
        begin, note, begun, noted = Pulse.begin, Pulse.note, [], []

        def begin_counted(self, *known):
            begun.append(known)
            begin(self, *known)

        def note_counted(self, *known):
            note(self, *known)
            noted.extend([known] if len(begun) == rank + 1 else [])
            if len(noted) == 2:
                how(self)

        monkeypatch.setattr(Pulse, "begin", begin_counted)
        monkeypatch.setattr(Pulse, "note", note_counted)

    return function


def time_is_up(pulse):
    pulse.stopped = True


def a_signal(pulse):
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("how", "code"), [(time_is_up, 3), (a_signal, 143)])
@pytest.mark.parametrize(("model", "options"), CASES)
def test_the_pair_is_written_and_gone_on_from(call, data, cut, monkeypatch, model, options, how, code):
    command, rank = (model, data, *options, "-q", "-o"), 0 if "--c" in options else 2
    assert call(*command, "whole").code == 0
    cut(rank, how)
    assert call(*command, "cut").code == code
    monkeypatch.undo()
    monkeypatch.chdir(data.parent)
    row, *others = read_csv("cut/steps.csv")[rank:]
    assert row["status"] == "budget" and 1e-6 < float(row["rel_gap"]) < 1e3 and float(row["solve_s"]) > 0.0
    assert row["reason"] == "the run was stopped within this step" and all(r["status"] == "skipped" for r in others)
    assert call("predict", "cut", data, "--step", rank).code == 0  # what there is of it can be used
    result = call(*command[:-2], "-o", "cut", "--resume")
    assert result.code == 0 and f"continuing within step {rank}" in result.err
    merged, whole = without_times("cut/steps.csv"), without_times("whole/steps.csv")
    assert merged[:rank] == whole[:rank] and {r["status"] for r in merged} == {"certified"}
    for one, other in zip(merged, whole, strict=True):
        assert float(one["dual"]) <= float(other["primal"]) and float(other["dual"]) <= float(one["primal"])
    assert json.loads(Path("cut/run.json").read_text())["continued"] == [rank]
    assert int(merged[rank]["epochs"]) > int(row["epochs"])  # the work of both
    assert "continued" not in json.loads(Path("whole/run.json").read_text())


def test_a_short_step_is_repeated_with_the_numbers_of_one_run(call, data, cut, monkeypatch):
    command = ("svm", data, *CD, "-q", "-o")
    assert call(*command, "whole").code == 0
    cut(2, time_is_up)
    monkeypatch.setattr(record, "LONG", 10.0)
    assert call(*command, "cut").code == 3
    assert read_csv("cut/steps.csv")[2]["status"] == "skipped"
    monkeypatch.undo()
    monkeypatch.chdir(data.parent)
    assert call(*command, "cut", "--resume").code == 0
    assert without_times("cut/steps.csv") == without_times("whole/steps.csv")
    assert Path("cut/coefficients.csv").read_bytes() == Path("whole/coefficients.csv").read_bytes()


def test_a_stop_before_the_pair_has_come_any_further_loses_nothing(call, data, cut, monkeypatch):
    command = ("svm", data, *CD, "-q", "-o", "cut")
    cut(2, time_is_up)
    assert call(*command).code == 3
    monkeypatch.undo()
    monkeypatch.chdir(data.parent)
    monkeypatch.setattr(Pulse, "begin", lambda self, *known: signal.raise_signal(signal.SIGINT))
    assert call(*command, "--resume").code == 130
    monkeypatch.undo()
    monkeypatch.chdir(data.parent)
    assert "within step 2" in call("svm", data, *CD, "-o", "cut", "--resume").err
    assert json.loads(Path("cut/run.json").read_text())["continued"] == [2]
