"""What is not ours in or under the name of a run folder: never followed, replaced or removed."""

import json
import os
import signal
from pathlib import Path

import pytest

from screenpath.cv import saved
from screenpath.report.console import Console
from screenpath.store import folder as folders
from screenpath.store import record as records
from tests.cli.test_outputs import everything

GRID = ("--grid", "4", "--quiet")
CV = ("--folds", "3", "--quiet", "--c-list", "0.1,1")
MINE = "mine\n"


@pytest.fixture
def victim(tmp_path):
    """A file of the user's, where links lead."""
    (tmp_path / "victim").write_text(MINE)
    return tmp_path / "victim"


LINKED = (
    ".lock", "run.json", "run.json.new", "steps.csv", "steps.csv.partial", "coefficients.csv", "progress.partial",
    "coefficients.csv.partial", "checkpoint.npz", "checkpoint.npz.new", "cv.csv", "cv.json", "folds.csv",
    "parts.partial", "earlier.partial",
)  # fmt: skip


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("more", [(), ("--force",), ("--resume",)])
def test_links_in_an_empty_folder_are_not_followed(call, data, victim, name, link, more):
    os.mkdir("r")
    link(victim, f"r/{name}")
    result = call("svm", data, *GRID, "-o", "r", *more)
    assert result.code in (0, 1) and "Traceback" not in result.err
    assert victim.read_text() == MINE and os.path.lexists(f"r/{name}")
    if result.code:
        assert "error: r" in result.err and name in result.err


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("model", [("svm", *GRID), ("cv", "svm", *CV), ("svm", *GRID, "--coefficients", "npz")])
def test_links_in_a_run_folder_are_not_followed(call, data, victim, monkeypatch, name, model):
    """While an unfinished run is continued, and while one is replaced."""
    command = [*model[: -len(GRID)], *model[-len(GRID) :]]
    for module in (folders, saved):
        monkeypatch.setattr(module, "EVERY", 0.0)
    for more in (("--resume",), ("--force",)):
        with monkeypatch.context() as patch:
            patch.setattr(Console, "advance", lambda self, done: signal.raise_signal(signal.SIGTERM))
            assert call(*command, data, "-o", f"r{more[0]}").code == 143
        file = Path(f"r{more[0]}", name)
        if file.is_dir():
            file.rename(f"was{more[0]}")
        elif file.exists():
            file.unlink()
        file.symlink_to(victim)
        result = call(*command, data, "-o", f"r{more[0]}", *more)
        assert result.code in (0, 1) and "Traceback" not in result.err
        assert result.code == 0 or (name in result.err and "error:" in result.err), result
        assert victim.read_text() == MINE


def test_force_replaces_run_folders_only(call, data, tmp_path):
    for k, names in enumerate((["notes.txt"], ["steps.csv"], ["coefficients.csv", "a"], ["parts.partial/0/0-0.npz"])):
        folder = tmp_path / f"mine-{k}"
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(MINE)
        before = everything(folder)
        result = call("svm", data, *GRID, "-o", folder, "--force")
        assert result.code == 1 and "not a run folder" in result.err and "--out" in result.err, result
        assert everything(folder) == before
        result = call("svm", data, *GRID, "-o", folder)
        assert result.code == (0 if names == ["notes.txt"] else 1)
        assert {name: text for name, text in everything(folder).items() if name in before} == before
    assert call("svm", data, *GRID, "-o", tmp_path / "mine-0", "--force").code == 0  # it holds a run by now
    assert (tmp_path / "mine-0/notes.txt").read_text() == MINE
    assert call("svm", data, *GRID, "-o", tmp_path / "new", "--force").code == 0


@pytest.mark.parametrize(
    "text", ['{"run": 1, "tool": "other"}', "[]", "run: json\n", '{"schema_version": 1, "tool": "wandb"}']
)
def test_the_run_json_of_another_program(call, data, tmp_path, text):
    os.mkdir("r")
    Path("r/run.json").write_text(text)
    Path("r/steps.csv").write_text(MINE)
    before = everything(tmp_path / "r")
    for more in ((), ("--force",), ("--resume",)):
        result = call("svm", data, *GRID, "-o", "r", *more)
        assert result.code == 1 and result.err.count("error:") == 1, result
        assert everything(tmp_path / "r") == before
    assert "not written by screenpath" in call("svm", data, *GRID, "-o", "r", "--force").err


def test_other_files_in_a_run_folder_stay(call, data, tmp_path):
    """Beside the parts of a run, among its folds, and under names that begin like ours."""
    assert call("cv", "svm", data, *CV, "-o", "r").code == 0
    names = ("coefficients.mine.csv", "parts.partial/0/notes", "parts.partial/x/0-0.npz", "steps.txt", "run.json.bak")
    names += ("parts.partial/0/0-0.npz.bak", "run.json.new", "model.new-0123456789abcdef")
    for name in names:
        Path("r", name).parent.mkdir(parents=True, exist_ok=True)
        Path("r", name).write_text(MINE)
    for more in ("--resume", "--force"):
        assert call("cv", "svm", data, *CV, "-o", "r", more).code == 0
        assert all(Path("r", name).read_text() == MINE for name in names)


def test_the_lock_of_another_program(call, data, tmp_path):
    os.mkdir("r")
    Path("r/.lock").write_text("{'host': 'a'}")
    result = call("svm", data, *GRID, "-o", "r")
    assert result.code == 1 and ".lock is not a lock of screenpath" in result.err
    assert Path("r/.lock").read_text() == "{'host': 'a'}"


@pytest.mark.parametrize("name", ["steps.csv", "coefficients.csv", "run.json"])
def test_a_run_does_not_replace_its_own_data(call, data, tmp_path, name):
    os.mkdir("r")
    data.rename(tmp_path / "r" / name)
    os.link(tmp_path / "r" / name, tmp_path / "same")
    before = everything(tmp_path)
    for path in (f"r/{name}", "same"):
        for more in ((), ("--force",), ("--resume",)):
            result = call("svm", path, *GRID, "-o", "r", *more)
            assert result.code == 2 and "is read by this command" in result.err, result
            assert everything(tmp_path) == before


def test_a_run_is_not_put_into_its_own_shards(call, data, tmp_path):
    assert call("convert", data, "shards", "--quiet").code == 0
    before = everything(tmp_path / "shards")
    result = call("svm", "shards", *GRID, "-o", "./shards")
    assert result.code == 2 and "is read by this command" in result.err
    assert everything(tmp_path / "shards") == before


def test_a_folder_that_an_earlier_version_emptied_is_no_run(call, data):
    """It said so before it removed a run: what is left is neither read nor resumed, and can be replaced."""
    os.mkdir("r")
    record = records.sealed({"schema_version": 2, "tool": "screenpath", "status": "emptied", "files": {}})
    Path("r/run.json").write_text(json.dumps(record))
    assert "holds no run" in call("plot", "r", "--terminal").err
    assert call("svm", data, "--grid", "3", "--quiet", "-o", "r", "--resume").code == 0
    assert len(Path("r/steps.csv").read_text().splitlines()) == 4
