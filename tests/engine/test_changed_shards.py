"""Shards that change during the last pass over them: no later pass sees it, and yet the result does not count."""

import json

import numpy as np
import pytest

import screenpath
from screenpath.data.shards.convert import convert
from screenpath.engine import compare as comparing
from screenpath.engine.session import Session
from screenpath.errors import DataError
from screenpath.store.folder import FAILED
from tests import plain, shard_folders
from tests.cli.conftest import libsvm_text


@pytest.fixture
def text(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4))
    (tmp_path / "d").write_text(libsvm_text(X, np.where(X[:, 0] > 0.3 * rng.normal(size=300), 1, -1)))
    return tmp_path / "d"


def flipped_after(monkeypatch, owner, name: str, file) -> None:
    """Have a byte of a file change when a function has returned."""
    function = getattr(owner, name)

    def changing(*arguments, **options):
        found = function(*arguments, **options)
        shard_folders.flip(file, 500)
        return found

    monkeypatch.setattr(owner, name, changing)


@pytest.mark.parametrize(("model", "by"), [("svm", "rows"), ("lad", "rows"), ("l1svm", "columns")])
def test_a_run_whose_shards_change_in_the_last_pass_fails(text, tmp_path, monkeypatch, model, by):
    folder = convert([text], tmp_path / "s", by=by)
    about = {"grid": 3, "quiet": True, "max_memory": None}
    assert plain.run(model, str(folder.path), out=str(tmp_path / "good"), **about).certified
    flipped_after(monkeypatch, Session, "keep_steps", next(folder.path.glob("000000-d*.npy")))
    with pytest.raises(DataError, match=r"000000-(dense|data).npy is missing or damaged"):
        plain.run(model, str(folder.path), out=str(tmp_path / "bad"), **about)
    assert json.loads((tmp_path / "bad" / "run.json").read_text())["status"] == FAILED


def test_a_comparison_whose_shards_change_in_the_last_pass_fails(text, tmp_path, monkeypatch):
    folder = convert([text], tmp_path / "s")
    screenpath.compare("svm", str(folder.path), rules="none,dvi", grid=3, repeats=1)
    flipped_after(monkeypatch, comparing, "compare", next(folder.path.glob("000000-d*.npy")))
    with pytest.raises(DataError, match="is missing or damaged"):
        screenpath.compare("svm", str(folder.path), rules="none,dvi", grid=3, repeats=1)


def test_shards_that_change_while_they_are_read_into_memory(text, tmp_path, monkeypatch):
    folder = convert([text], tmp_path / "s")
    flipped_after(monkeypatch, type(folder), "_stacked", next(folder.path.glob("000000-d*.npy")))
    with pytest.raises(DataError, match="is missing or damaged"):
        folder.dataset()
