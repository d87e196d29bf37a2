"""Runs that are killed at random moments, again and again: what --resume completes has the bytes of a run left alone.

A quarter of the kills below in a narrow run (`tests/width.py`), which leaves out what differs from another run by its
model or the form of its files; SCREENPATH_KILLS multiplies the number of a wide one.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from screenpath.cli import THREAD_VARIABLES
from screenpath.cli.app import run as run_here
from tests.cli.conftest import ROOT, clouds, libsvm_text, unmeasured
from tests.conftest import HANGS
from tests.engine.damaged import content
from tests.width import WIDE

MANY = float(os.environ.get("SCREENPATH_KILLS", "1" if WIDE else "0.25"))
SVM = ("--grid", "40", "--cmax", "1", "--bias", "1", "--quiet")
SPARSE = ("--betas", "3", "--alphas", "12", "--quiet")
TARGETS = ("process", "group", "worker")
CV = ("--folds", "3", "--quiet", "-o")
CERTIFIED = ("--grid", "4", "--certify-to", "0.02", "--certify-points", "12")
# Name, command up to the folder, kills.
RUNS = [
    ("svm", ["svm", "DATA", *SVM, "-o"], 8), ("shards", ["svm", "SHARDS", *SVM, "--format", "json", "-o"], 6),
    ("npz", ["lad", "DATA", *SVM, "--coefficients", "npz", "-o"], 4),
    ("sparse-svm", ["sparse-svm", "DATA", *SPARSE, "-o"], 6),
    ("sparse-svm-jobs", ["sparse-svm", "DATA", *SPARSE, "--jobs", "2", "-o"], 6),
    ("cv", ["cv", "svm", "DATA", *CERTIFIED, *CV], 10),
    ("cv-certify-jobs", ["cv", "svm", "DATA", *CERTIFIED, "--jobs", "2", *CV], 6),
    ("cv-certify-kernel", ["cv", "svm", "DATA", "--kernel", "rbf", *CERTIFIED, *CV], 6),
    ("cv-jobs", ["cv", "svm", "DATA", "--grid", "10", "--jobs", "2", *CV], 10),
    ("cv-sparse-svm", ["cv", "sparse-svm", "DATA", "--betas", "2", "--alphas", "4", *CV], 6),
    ("convert", ["convert", "DATA", "--block-mb", "1", "--jobs", "2", "--quiet"], 10),
]  # fmt: skip
CHOSEN = [run for run in RUNS if WIDE or run[0] not in ("npz", "sparse-svm", "cv-certify-kernel", "cv-sparse-svm")]


class Zygote:
    """A warm process that forks and kills commands; see ``zygote.py``."""

    def __init__(self, commands, where):
        # As the command line does before it imports anything: no threads of the linear algebra library.
        pinned = dict.fromkeys(THREAD_VARIABLES, "1")
        environment = {**unmeasured(), **pinned, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py")), json.dumps(commands)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=where,
        )  # fmt: skip
        for line in self.process.stdout:
            if line == "ready\n":
                return
        self.close()
        raise AssertionError("the commands do not run")

    def run(self, argv, after=None, number=signal.SIGKILL, whom="process"):
        """Return exit status, seconds and stderr of a command that is stopped ``after`` some seconds, or never."""
        request = {"argv": [str(a) for a in argv], "after": after, "signal": int(number), "whom": whom}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return found["status"], found["seconds"], found["stderr"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=HANGS)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A folder with a data file, its shards and an uninterrupted run of every command."""
    folder = tmp_path_factory.mktemp("kills")
    (folder / "data.libsvm").write_text(libsvm_text(*clouds(n=400)))
    return folder


def arguments(run, folder, resumed=True):
    """Return the command line of a run into a folder."""
    names = {"DATA": "data.libsvm", "SHARDS": "shards"}
    return [*(names.get(a, a) for a in run[1]), folder, *(["--resume"] if resumed else [])]


@pytest.fixture(scope="module")
def zygote(where):
    """The process that forks; making it computes what every run must give."""
    first = [["convert", "data.libsvm", "shards", "--block-mb", "1", "--quiet"]]
    process = Zygote([*first, *(arguments(run, f"whole-{run[0]}", False) for run in CHOSEN)], where)
    yield process
    process.close()


@pytest.mark.parametrize("run", CHOSEN, ids=[run[0] for run in CHOSEN])
def test_killed_runs(zygote, where, run):
    """A run is killed up to three times, resumed after each kill, and compared with the one left alone.

    It is killed alone (its worker processes have to notice), with its worker processes, or loses one of these.
    """
    rng = np.random.default_rng(len(run[0]))
    expected, kills, lost, folders = content(where / f"whole-{run[0]}"), 0, 0, 0
    _, seconds, _ = zygote.run(arguments(run, f"timed-{run[0]}"))
    wanted, targets = round(MANY * run[2]), TARGETS if "--jobs" in run[1] and run[0] != "convert" else TARGETS[:2]
    while kills < wanted or lost < ("worker" in targets):  # those that meet a run under way
        folders += 1
        assert folders < 100 * wanted  # who kills at once always meets one
        folder = f"cut-{run[0]}-{folders}"
        for _ in range(int(rng.integers(1, 4))):
            number = signal.SIGKILL if rng.random() < 0.75 else signal.SIGTERM
            whom, after = targets[rng.integers(len(targets))], float(rng.uniform(0.0, 0.9) * seconds)
            status, took, said = zygote.run(arguments(run, folder), after, number, whom)
            if status not in ((0, 1) if whom == "worker" else (0, -number, 128 + number)):
                pytest.fail(f"signal {number} to the {whom} ends in status {status}:\n{said}")  # all of it
            kills += status != 0
            lost += status == 1
            if status == 0:  # it was over before: the next ones are killed earlier, until enough meet a run under way
                seconds = min(0.9 * seconds, took)
                break
        status, _, said = zygote.run(arguments(run, folder))
        assert status == 0, said
        assert content(where / folder) == expected


def test_certified_runs_are_killed_while_they_refine(zygote, where):
    """The runs above have rounds of folds behind the first grid."""
    for run in (run for run in CHOSEN if "--certify-to" in run[1]):
        certified = json.loads((where / f"whole-{run[0]}" / "cv.json").read_text())["certified"]
        assert certified["added_points"] >= 4, run[0]


def test_killed_while_replacing(zygote, where):
    """A run that --force begins in place of another: what is left is the old run, or an unfinished new one."""
    rng, kills, number, expected = np.random.default_rng(7), 0, 0, content(where / "whole-svm")
    old = ["svm", "data.libsvm", "--grid", "30", "--tol", "1e-3", "--bias", "1", "--quiet", "-o"]
    new = arguments(RUNS[0], "folder", False)[:-1]
    seconds = zygote.run([*new, "timed-replaced"])[1]
    while kills < round(6 * MANY):
        number, folder = number + 1, f"replaced-{number}"
        assert number < round(600 * MANY)
        assert zygote.run([*old, folder])[0] == 0
        # Mostly at the beginning, where the old run goes.
        after = float(seconds * rng.choice([rng.uniform(0.0, 0.9), rng.uniform(0.0, 0.3)]))
        status, *_ = zygote.run([*new, folder, "--force"], after)
        kills += status != 0
        seconds *= 0.9 if status == 0 else 1.0
        there, aside = where / folder / "run.json", where / folder / "earlier.partial" / "run.json"
        record = json.loads((there if there.exists() else aside).read_text())  # aside alone: the new one has not begun
        resumed = zygote.run([*new, folder, "--resume"])[0]
        if record["status"] == "complete" and status != 0 and resumed != 0:  # not yet begun to be replaced
            assert record["options"]["tol"] == 1e-3
            resumed = zygote.run([*new, folder, "--force"])[0]
        assert resumed == 0
        assert content(where / folder) == expected


class Renames:
    """Stands for a function of ``os`` that changes names; the process ends in place of one of their calls."""

    left, end = 0, staticmethod(lambda: os._exit(KILLED))

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments, **more):
        if not Renames.left:
            Renames.end()
        Renames.left -= 1
        return self.function(*arguments, **more)


KILLED = 99
BEFORE, AFTER = ("--grid", "3", "--quiet"), ("--grid", "2", "--cmax", "5", "--quiet")


@pytest.mark.parametrize("model", [("svm",), ("cv", "svm", "--folds", "2")])
def test_force_loses_nothing_at_whatever_moment_it_is_killed(call, data, tmp_path, model):
    """Each removal and renaming in turn is the last: the old run is in its place, or aside, until the new one is whole.
    """
    assert call(*model, data, *BEFORE, "-o", "old").code == 0
    assert call(*model, data, *AFTER, "-o", "new").code == 0
    old, new, states = content(tmp_path / "old"), content(tmp_path / "new"), set()
    for at in range(100):
        folder = Path(f"r{at}")
        shutil.copytree("old", folder)
        child = os.fork()
        if child == 0:
            Renames.left = at
            for name in ("replace", "unlink", "mkdir", "rmdir"):
                setattr(os, name, Renames(getattr(os, name)))
            os._exit(run_here([*model, str(data), *AFTER, "-o", str(folder), "--force"]))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            break
        assert code == KILLED
        found = call(*model, data, *BEFORE, "-o", folder, "--resume")  # puts it back where the new one has not begun
        aside = folder / "earlier.partial"
        states.add((found.code, aside.exists()))
        if found.code == 0:
            assert content(folder) == old
        elif aside.exists() and json.loads((folder / "run.json").read_text())["status"] != "complete":
            assert content(aside) == old and str(aside) in call("show", folder).err
            assert call(*model, data, *BEFORE, "-o", aside, "--resume").code == 0
        if at % 2:
            assert call(*model, data, *AFTER, "-o", folder, "--resume" if found.code else "--force").code == 0
        else:
            assert call(*model, data, *AFTER, "-o", folder, "--force").code == 0
        assert content(folder) == new
    assert code == 0 and {(0, False), (1, True)} <= states


def test_force_stopped_by_a_signal_leaves_a_run_that_commands_read(call, data, tmp_path):
    """A signal at each renaming and removal in turn, before there is a step: the old run has its place again."""
    assert call("svm", data, *BEFORE, "-o", "old").code == 0
    old = content(tmp_path / "old")
    for at in range(100):
        folder = Path(f"r{at}")
        shutil.copytree("old", folder)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            Renames.left, Renames.end = at, lambda: (setattr(Renames, "left", 1000), signal.raise_signal(signal.SIGINT))
            for name in ("replace", "unlink", "mkdir", "rmdir"):
                setattr(os, name, Renames(getattr(os, name)))
            os._exit(run_here(["svm", str(data), *AFTER, "-o", str(folder), "--force"]))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            break
        assert code == 130 and content(folder) == old
    assert code == 0 and at > 5


def test_number_of_kills():
    assert sum(run[2] for run in RUNS) >= 50
