"""Run folders to be damaged."""

import os
import shutil
import signal

import pytest

from screenpath.cli.app import run as screenpath
from screenpath.cv import saved
from screenpath.report.console import Console
from screenpath.store import folder as folders
from tests.cli.conftest import bare_pages, call, clouds, libsvm_text  # noqa: F401 (fixtures)
from tests.engine.damaged import COMMANDS, CUT, stop_among_folds


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    where, patch = tmp_path_factory.mktemp("damage"), pytest.MonkeyPatch()
    (where / "data").write_text(libsvm_text(*clouds(n=60)))
    patch.chdir(where)
    for module in (folders, saved):
        patch.setattr(module, "EVERY", 0.0)  # a checkpoint a step
    patch.setattr(saved, "SHARE", 1e9)

    def stop(self, done):
        if done.step == CUT:
            signal.raise_signal(signal.SIGTERM)

    for name, command in COMMANDS.items():
        assert screenpath([*command, "-o", f"whole-{name}"]) == 0
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Console, "advance", stop)
            assert screenpath([*command, "-o", f"cut-{name}"]) == 143
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(folders.RunFolder, "finish", lambda self, record, skipped: None)
            assert screenpath([*command, "-o", f"killed-{name}"]) == 0
    with pytest.MonkeyPatch.context() as inner:
        stop_among_folds(inner)
        assert screenpath([*COMMANDS["cv"], "-o", "folds-cv"]) == 143
    yield where
    patch.undo()


@pytest.fixture
def copy(made, tmp_path, call):  # noqa: F811
    """Return a function that copies a run folder to the name ``t``; the current folder has the data."""
    os.symlink(made / "data", tmp_path / "data")

    def function(name):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(made / name, tmp_path / "t")
        return tmp_path / "t"

    return function
