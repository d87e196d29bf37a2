"""A cross-validation that is stopped and continued: the files of one that was left alone."""

import json
import os
import re
import resource
import signal
from pathlib import Path

import pytest

from screenpath.cv import run, saved
from tests.cli.conftest import in_process, read_csv, screenpath
from tests.cli.test_cv import regression, three_labels
from tests.engine.damaged import content
from tests.width import WIDE

GRID = ("--c-list", "0.01,0.1,1,10", "--quiet", "--folds", 3)
EACH = (*GRID, "--certificate")  # a fold of it is kept after each step, not after several that are taken in one call
MODELS = {
    "svm": ("svm", *GRID, "--scale", "standard", "--bias", 1, "--certify-to", 0.1, "--certify-points", 20),
    "kernel": ("svm", *GRID, "--kernel", "rbf", "--gamma", 0.1, "--certify-to", 0.2, "--certify-points", 8),
    "free": ("svm", *GRID, "--scale", "standard", "--intercept", "free", "--certify-to", 0.2, "--certify-points", 4),
    "chunk": ("svm", *GRID, "--rule", "ssnsv", "--chunk", 2, "--intercept", "free"),
    "one-vs-rest": ("svm", *GRID, "--one-vs-rest", "--predictions", "held_out.csv"),
    "lad": ("lad", *GRID, "--repeats", 2),
    "l1svm": ("l1svm", "--grid", 5, "--quiet", "--folds", 3, "--calibrate"),
    "until-turn": (
        "svm", "--cmin", 1e-3, "--cmax", 1e-1, "--grid", 4, "--quiet", "--folds", 3, "--until-turn", "--certify"
    ),
    "sparse-svm": ("sparse-svm", "--betas", 2, "--alphas", 4, "--quiet", "--folds", 3),
}  # fmt: skip
STOPS = {"until-turn": (2, 12, 4)}  # within the first grid, behind its end, and behind that of a further one


@pytest.fixture
def stop_at(monkeypatch):
    """Return a function that has a signal sent when a fold is written for the n-th time, each step being written."""
    plain = saved.FoldFile.save

    def function(count, number=signal.SIGTERM):
        calls = []

        def save(self, *arguments):
            plain(self, *arguments)
            calls.append(self.path)
            if len(calls) == count:
                signal.raise_signal(number)

        monkeypatch.setattr(saved, "EVERY", 0.0)
        monkeypatch.setattr(saved, "SHARE", 1e9)
        monkeypatch.setattr(saved.FoldFile, "save", save)

    return function


@pytest.mark.parametrize("name", MODELS)
def test_stopped_anywhere_and_resumed(call, data, stop_at, monkeypatch, tmp_path, name):
    """Stopped within a fold, at a fold's end, and again: the bytes are those of a run that was left alone."""
    model, *options = MODELS[name]
    path = {"lad": regression, "one-vs-rest": lambda p: three_labels(p)[0]}.get(name, lambda p: data)(tmp_path)
    assert call("cv", model, path, *options, "--out", "whole").code == 0
    if "--predictions" in options:
        os.rename("held_out.csv", "whole.csv")
    for k, count in enumerate(STOPS.get(name, (2, 4, 3))):  # a fold has four steps and more
        with monkeypatch.context() as patch:
            stop_at(count)
            found = call("cv", model, path, *options, "--out", "cut", *(["--resume"] if k else []))
            assert found.code == 143, found.err
            patch.undo()
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert json.loads(Path("cut/run.json").read_text())["status"] == "interrupted"
    assert "finished folds and steps are kept" in found.err
    jobs = 2 if name == "sparse-svm" or (WIDE and name in ("chunk", "until-turn")) else 1
    assert call("cv", model, path, *options, "--out", "cut", "--resume", "--jobs", jobs).code == 0
    assert content(Path("cut")) == content(Path("whole"))
    if "--predictions" in options:
        assert Path("held_out.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert sorted(os.listdir("cut")) == sorted(os.listdir("whole"))
    assert call("cv", model, path, *options, "--out", "cut", "--resume").code == 0  # complete, refined grid or not


def test_finished_folds_are_not_computed_again(call, data, stop_at, monkeypatch, tmp_path):
    stop_at(8)  # the end of the second fold
    found = call("cv", "svm", data, *EACH, "--out", "cut")
    assert found.code == 143 and re.search(r"2 of [35] folds are kept: continue with --resume", found.err)
    assert " interrupted in the folds " in call("runs").out
    found = call("predict", "cut", data, "--step", 0)
    assert found.code == 1 and "no finished step" in found.err
    assert "use --resume to continue it" in call("cv", "svm", data, *EACH, "--out", "cut").err
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    computed, plain = [], run.prepared
    monkeypatch.setattr(run, "prepared", lambda *given, **more: computed.append(given) or plain(*given, **more))
    assert call("cv", "svm", data, *EACH, "--out", "cut", "--resume").code == 0
    assert len(computed) == 1
    found = call("cv", "svm", data, *EACH[:2], "--folds", 3, "--certificate", "--out", "cut", "--resume")
    assert found.code == 0 and "complete already" in found.err
    assert len(computed) == 1


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (("--fold-seed", 1), "the folds (--fold-seed, --stratify or their file) have changed since"),
        (("--repeats", 5), "cut: repeats was 1, now 5\n"), (("--folds", 4), "folds was"),
        (("--score", "f1"), "score was"), (("--certify",), "certify was"), (("--calibrate",), "calibrate "),
        (("--tol", 1e-5), "tol was"), (("--c-list", "0.01,0.1,1"), "c_list was"),
    ],
)  # fmt: skip
def test_resume_names_what_differs(call, data, stop_at, more, name):
    stop_at(3)
    assert call("cv", "svm", data, *GRID, "--out", "cut").code == 143
    found = call("cv", "svm", data, *GRID, *more, "--out", "cut", "--resume")
    assert found.code == 1 and name in found.err and "--force" in found.err and "sha256" not in found.err


def test_force_forgets_the_folds(call, data, stop_at, monkeypatch, tmp_path):
    stop_at(8)
    assert call("cv", "svm", data, *EACH, "--out", "cut").code == 143
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    damaged = Path("cut/parts.partial/0/0-0.npz")
    damaged.write_bytes(damaged.read_bytes()[:-30])
    found = call("cv", "svm", data, *EACH, "--out", "cut", "--resume")
    assert found.code == 1 and "0-0.npz is damaged" in found.err and "remove it" in found.err
    assert call("cv", "svm", data, *EACH, "--out", "cut", "--force").code == 0
    assert call("cv", "svm", data, *EACH, "--out", "whole").code == 0
    assert content(Path("cut")) == content(Path("whole"))


def test_a_file_of_another_grid_is_refused(call, data, stop_at, tmp_path):
    stop_at(8)
    assert call("cv", "svm", data, *EACH, "--out", "cut").code == 143
    parts = tmp_path / "cut" / "parts.partial" / "0"
    os.replace(parts / "0-0.npz", parts / "0-1.npz")
    found = call("cv", "svm", data, *EACH, "--out", "cut", "--resume")
    assert found.code == 1 and "another run, fold or grid" in found.err


@pytest.mark.parametrize("name", ["plain", "svm", "until-turn"])
def test_time_limit(call, data, monkeypatch, tmp_path, name):
    """The deadline comes in the middle of a fold; its step under way is dropped, what is done is kept."""
    model, *options = ("svm", *EACH) if name == "plain" else MODELS[name]
    options = (model, data, *options)
    assert call("cv", *options, "--out", "whole").code == 0
    real, plain = run.time.monotonic, saved.FoldFile.save
    for k, count in enumerate((2, 14 if name == "until-turn" else 9)):
        calls = []

        def save(self, *arguments, calls=calls, count=count):
            plain(self, *arguments)
            calls.append(self.path)
            if len(calls) == count:
                monkeypatch.setattr(run.time, "monotonic", lambda: real() + 1e6)

        monkeypatch.setattr(saved, "EVERY", 0.0)
        monkeypatch.setattr(saved, "SHARE", 1e9)
        monkeypatch.setattr(saved.FoldFile, "save", save)
        found = call("cv", *options, "--time-limit", 1000, "--out", "cut", *(["--resume"] if k else []))
        assert found.code == 3, found.err
        assert json.loads((tmp_path / "cut/run.json").read_text())["status"] == "time-limit"
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
    assert call("cv", *options, "--out", "cut", "--resume").code == 0
    assert content(Path("cut")) == content(Path("whole"))


def test_workers_end_with_their_parent():
    """A worker process that waits for a task does not outlive a parent that was killed."""
    script = """
import os, signal, sys
from screenpath.walk.workers import follow_parent, workers
def main():
    with workers(1, follow_parent, ()) as pool:
        print(*pool.map(os.getpgid, [0]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    main()
"""
    done = in_process(script)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert int(done.stdout) > 0  # the worker has the pipes of its parent: the call returns when both have ended


def test_full_disk_keeps_finished_folds(call, data, monkeypatch, tmp_path):
    """A limit on the size of files stands for a full disk: the file of a fold fits, that of the whole run does not."""
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        monkeypatch.delenv(name)

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python keeps byte code that was cut off

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (24000, 24000))

    options = ("svm", data, "--grid", 60, "--cmax", 1, "--folds", 3, "--quiet")
    done = screenpath("cv", *options, "--out", tmp_path / "cut", preexec_fn=limited)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error:") and "Traceback" not in done.stderr
    assert len(list((tmp_path / "cut/parts.partial/0").iterdir())) == 3
    assert not list((tmp_path / "cut").rglob("*.new"))
    computed = []
    monkeypatch.setattr(run, "prepared", lambda *given, **more: computed.append(given))
    assert call("cv", *options, "--out", "cut", "--resume").code == 0
    assert computed == []  # all folds are there
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert call("cv", *options, "--out", "whole").code == 0
    assert content(Path("cut")) == content(Path("whole"))
    assert len(read_csv("cut/folds.csv")) == 180
