"""Stopping and resuming: by signals, kills, the time limit and full disks."""

import errno
import json
import os
import resource
import shlex
import signal
from pathlib import Path

import pytest

from screenpath.data.safe.atomic import FolderLock
from screenpath.report.console import Console
from screenpath.store.folder import RunFolder
from screenpath.store.open import open_run
from tests.cli.conftest import in_process, out_of_time_at, read_csv, screenpath, without_times

GRID = ("--grid", "12", "--cmax", "1", "--quiet")


def same_run(one, two, name="steps.csv"):
    assert without_times(Path(one) / name) == without_times(Path(two) / name)
    assert (Path(one) / "coefficients.csv").read_bytes() == (Path(two) / "coefficients.csv").read_bytes()


@pytest.fixture
def stop_at(monkeypatch):
    """Return a function that has a signal sent to this process when a step is done."""

    def function(number, step):
        def advance(self, done):
            if done.step == step:
                signal.raise_signal(number)

        monkeypatch.setattr(Console, "advance", advance)

    yield function


@pytest.mark.parametrize(
    ("number", "code", "step", "rule"),
    [
        (signal.SIGINT, 130, 0, "dvi+gap"), (signal.SIGTERM, 143, 4, "none"), (signal.SIGTERM, 143, 7, "dvi+gap"),
        (signal.SIGINT, 130, 10, "gap"),
    ],
)  # fmt: skip
def test_signal_then_resume(call, data, stop_at, monkeypatch, number, code, step, rule):
    """Finished steps are kept, and resuming gives the numbers of a run that was never stopped."""
    more = (*GRID, "--rule", rule, "--bias", "1")
    assert call("svm", data, *more, "-o", "whole").code == 0
    stop_at(number, step)
    assert call("svm", data, *more, "-o", "cut").code == code
    monkeypatch.undo()
    monkeypatch.chdir(data.parent)
    rows = read_csv("cut/steps.csv")
    assert [row["status"] for row in rows] == ["certified"] * (step + 1) + ["skipped"] * (11 - step)
    assert rows[-1]["reason"] == "a signal ended the path before this point"
    assert json.loads(Path("cut/run.json").read_text())["status"] == "interrupted"
    assert call("svm", data, *more, "-o", "cut").code == 1
    result = call("svm", data, *more, "-o", "cut", "--resume")
    assert result.code == 0, result.err
    same_run("whole", "cut")
    assert sorted(p.name for p in Path("cut").iterdir()) == ["coefficients.csv", "run.json", "steps.csv"]
    records = [json.loads(Path(f"{name}/run.json").read_text()) for name in ("whole", "cut")]
    assert records[0]["between"] == records[1]["between"] and records[0]["between"]["worst_rel_gap"] > 1e-6
    whole, cut = (record["totals"] for record in records)
    for name in ("certified", "epochs", "passes", "mean_rejection_ratio", "worst_rel_gap"):
        assert cut[name] == pytest.approx(whole[name], rel=1e-12)


KILL = """
import os, signal, sys
from screenpath.report.console import Console
from screenpath.store.open import open_run
from screenpath.store.folder import RunFolder
saved, killed = int(sys.argv.pop(1)), int(sys.argv.pop(1))
RunFolder.due = lambda self: self.count == saved
def advance(self, step):
    if step.step == killed:
        os.kill(os.getpid(), signal.SIGKILL)
Console.advance = advance
from screenpath.cli import main
main()
"""


def test_a_run_in_the_way_tells_what_differs_and_the_next_free_name(call, data, tmp_path):
    """The name that it offers works when typed, also one that a shell would split."""
    first = ["svm", data, *GRID, "--rule", "none", "-q"]
    assert call(*first, "-o", "my run").code == 0
    same = call(*first, "-o", "my run")
    assert same.code == 1 and "holds a finished run already: of the same data and options" in same.err
    assert same.err.splitlines()[1] == "  use it as it is, --force to replace it, or --out 'my run-2'"
    found = call(*first, "--tol", 1e-3, "--rule", "dvi", "-o", "my run")
    assert 'rule was "none", now "dvi"' in found.err and "tol was 1e-06, now 0.001" in found.err
    assert "cmin was not given (default 0.01), now 0.5" in call(*first, "--cmin", 0.5, "-o", "my run").err
    offered = shlex.split(found.err.splitlines()[1].rpartition(", or ")[2])
    assert call(*first, "--tol", 1e-3, *offered).code == 0 and (tmp_path / "my run-2" / "run.json").exists()
    assert "--out 'my run-3'" in call(*first, "-o", "my run").err
    other = call("lad", data, *GRID, "-o", "my run")
    assert 'already: model was "svm", now "lad"\n' in other.err
    many = call("svm", data, *GRID, "--tol", 1e-3, "--scale", "l2", "--bias", 1, "--seed", 5, "-o", "my run")
    assert many.err.count(";") == 3 and "; and 3 more\n" in many.err
    data.write_text(data.read_text().replace("1:", "1:9", 1))
    assert "already: other data" in call(*first, "-o", "my run").err


@pytest.mark.parametrize(("saved", "killed", "form"), [(99, 5, "csv"), (3, 7, "csv"), (6, 8, "json")])
def test_kill_keeps_steps_and_resume_gives_the_same_numbers(call, data, saved, killed, form):
    """The last checkpoint is older than the last step: what follows it is dropped and computed again."""
    more = (*GRID, "--format", form)
    assert call("svm", data, *more, "-o", "whole").code == 0
    done = in_process(KILL, saved, killed, "svm", data, *more, "-o", data.parent / "cut")
    assert done.returncode == -signal.SIGKILL, done.stderr
    text = Path(f"cut/steps.{form}.partial").read_text()
    assert text.count("certified") == killed + 1
    assert not Path(f"cut/steps.{form}").exists()
    assert json.loads(Path("cut/run.json").read_text())["status"] == "running"
    found = call("svm", data, *more, "-o", "cut").err
    assert "holds a run that was killed" in found and "use --resume to continue it, --force to replace it, or " in found
    assert call("svm", data, *more, "-o", "cut", "--resume").code == 0
    same_run("whole", "cut", f"steps.{form}")


def test_time_limit(call, data):
    more = (*GRID, "--coefficients", "none")
    result = call("svm", data, *more, "-o", "cut", "--time-limit", "1e-9")
    assert result.code == 3
    rows = read_csv("cut/steps.csv")
    assert len(rows) == 12 and {row["status"] for row in rows} == {"skipped"}
    assert all(row["C"] and not row["primal"] for row in rows)
    run = json.loads(Path("cut/run.json").read_text())
    assert run["status"] == "time-limit" and run["totals"]["certified"] == 0
    assert call("svm", data, *more, "-o", "cut", "--resume").code == 0
    assert call("svm", data, *more, "-o", "whole").code == 0
    assert without_times("cut/steps.csv") == without_times("whole/steps.csv")


def test_time_limit_between_steps(call, data, monkeypatch):
    """The step that ends behind the deadline is dropped: its solve may have been cut short."""
    assert call("svm", data, *GRID, "-o", "whole").code == 0
    with out_of_time_at(monkeypatch, 3):
        assert call("svm", data, *GRID, "-o", "cut", "--time-limit", "1000").code == 3
    rows = read_csv("cut/steps.csv")
    assert [row["status"] for row in rows] == ["certified"] * 4 + ["skipped"] * 8
    assert {row["reason"] for row in rows} == {"", "the time limit ended the path before this point"}
    assert len(open_run("cut").steps) == 4
    assert call("svm", data, *GRID, "-o", "cut", "--resume", "--time-limit", "1000").code == 0
    same_run("whole", "cut")


def test_resume_starts_and_ends(call, data):
    assert call("svm", data, *GRID, "-o", "r", "--resume").code == 0
    before = Path("r/steps.csv").read_bytes()
    result = call("svm", data, "--grid", "12", "--cmax", "1", "-o", "r", "--resume")
    assert result.code == 0 and "complete already" in result.err
    assert Path("r/steps.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["coefficients.csv", "steps.csv", "certificate.bin"])
def test_a_finished_run_that_has_lost_a_file_is_not_finished(call, data, name):
    command = ("svm", data, *GRID, "--certificate", "-o", data.parent / "r")
    assert call(*command).code == 0
    (data.parent / "r" / name).unlink()
    result = call(*command, "--resume")
    assert result.code == 1 and f"has lost its {name}\n  compute it again with --force" in result.err
    if name == "coefficients.csv":
        assert "has lost its coefficients.csv" in call("predict", data.parent / "r", data, "--step", 1).err
    assert call(*command, "--force").code == 0 and call(*command, "--resume").code == 0


@pytest.mark.parametrize(
    ("more", "name"),
    [(["--tol", "1e-4"], "tol"), (["--seed", "3"], "seed"), (["--cmax", "2"], "cmax"), (["--rule", "gap"], "rule")],
)
def test_resume_names_what_differs(call, data, stop_at, monkeypatch, more, name):
    stop_at(signal.SIGTERM, 2)
    call("svm", data, *GRID, "-o", "r")
    monkeypatch.undo()
    monkeypatch.chdir(data.parent)
    result = call("svm", data, *GRID, *more, "-o", "r", "--resume")
    assert result.code == 1 and f"{name} was" in result.err and "--force" in result.err


def test_an_eps_path_that_failed_behind_its_last_step(call, data, monkeypatch):
    """Its last value is known from the checkpoint alone."""
    words = ("svm", data, "--eps-path", 0.1, "--bias", 1, "--quiet", "-o")
    assert call(*words, "whole").code == 0
    with monkeypatch.context() as patch:
        patch.setattr("screenpath.store.folder.EVERY", 0.0)  # a checkpoint behind every step

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(RunFolder, "finish", full)
        assert call(*words, "cut").code == 1
    assert call(*words, "cut", "--resume").code == 0
    same_run("whole", "cut")
    whole, cut = (json.loads(Path(name, "run.json").read_text()) for name in ("whole", "cut"))
    assert cut["guarantee"] == whole["guarantee"] and cut["totals"]["n_steps"] == whole["totals"]["n_steps"]


def test_a_path_that_covers_the_plane_is_left_as_it_is(call, data, stop_at, monkeypatch, tmp_path):
    """It cannot be resumed: nothing is offered, and what is there stays readable."""
    command = ("sparse-svm", data, "--eps-path", 0.5, "--out", "cut")
    stop_at(signal.SIGINT, 3)
    assert call(*command).code == 130
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "cut").iterdir()}
    found = call(*command, "--resume")
    assert found.code == 2 and "cannot be resumed" in found.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "cut").iterdir()} == before
    found = call(*command)
    assert found.code == 1 and "--force" in found.err and "--resume" not in found.err


def test_resume_notices_other_data_and_version(call, data, monkeypatch):
    assert call("svm", data, *GRID, "-o", "r").code == 0
    text = data.read_text()
    data.write_text(text.replace("\n", " 6:1\n", 1))
    result = call("svm", data, *GRID, "-o", "r", "--resume")
    assert result.code == 1 and "the data have changed since\n  bring back" in result.err
    data.write_text(text)
    monkeypatch.setattr("screenpath.engine.session.__version__", "9.9")
    result = call("svm", data, *GRID, "-o", "r", "--resume")
    assert result.code == 1 and "tool_version was" in result.err


def test_two_runs_into_one_folder(call, data, tmp_path):
    (tmp_path / "r").mkdir()
    lock = FolderLock(tmp_path / "r")
    result = call("svm", data, *GRID, "-o", "r")
    assert result.code == 1 and "in use by another run" in result.err
    lock.release()
    assert call("svm", data, *GRID, "-o", "r").code == 0


def test_full_disk_keeps_finished_steps(call, data, monkeypatch):
    """A limit on the size of files stands for a full disk: the write that crosses it fails."""
    limit = 8000

    # The limit holds for every file of the process, so a measurement of coverage could not be saved either.
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        monkeypatch.delenv(name)

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python keeps byte code that was cut off

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    folder = data.parent / "r"
    arguments = ("svm", data, "--grid", "60", "--cmax", "1", "--quiet", "-o", folder, "--coefficients", "none")
    done = screenpath(*arguments, preexec_fn=limited)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error:") and "Traceback" not in done.stderr
    text = (folder / "steps.csv.partial").read_text()
    assert 1 <= text.count("certified") < 60 and text.endswith("\n")
    assert not (folder / "steps.csv").exists()
    assert not list(folder.glob("*.new"))
    assert call(*arguments, "--resume").code == 0
    assert len(read_csv(folder / "steps.csv")) == 60


def test_out_of_memory_is_one_message(call, data, monkeypatch):
    def full(*arguments, **more):
        raise MemoryError

    monkeypatch.setattr("screenpath.inputs.rows.prepare", full)
    result = call("svm", data, *GRID)
    assert result.code == 1 and result.err.startswith("error: not enough memory")


def test_signal_while_a_step_is_written_waits_for_it(call, data, monkeypatch):
    real = RunFolder.add

    def add(self, row, coefficients=None):
        if row["step"] == 3 and row["status"] == "certified":
            signal.raise_signal(signal.SIGTERM)
        real(self, row, coefficients)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "add", add)
        assert call("svm", data, *GRID, "-o", "r").code == 143
    assert [row["status"] for row in read_csv("r/steps.csv")] == ["certified"] * 4 + ["skipped"] * 8


def test_signal_while_reading(call, data, monkeypatch):
    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("screenpath.inputs.load.read_file", interrupted)
    assert call("svm", data, *GRID, "-o", "r").code == 130
    assert not Path("r").exists()


def test_second_signal_aborts_at_once(data):
    """The first one arrives while a step is written (held), the second one ends the process."""
    script = """
import os, signal
from screenpath.store.folder import RunFolder
def add(self, row, coefficients=None):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("still alive")
RunFolder.add = add
from screenpath.cli import main
main()
"""
    done = in_process(script, "svm", data, *GRID, "-o", data.parent / "r")
    assert done.returncode == 130, done.stderr
    assert "stopping" in done.stderr and "Traceback" not in done.stderr
