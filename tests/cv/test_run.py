"""Paths of folds, stopped and continued, without the command line."""

import csv
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.catalogue.scores import CLASSIFICATION, choose_score
from screenpath.catalogue.specs import LINEAR_SVM
from screenpath.cv import run, saved
from screenpath.cv.folds import draw_folds
from screenpath.cv.run import Task, fold_path, fold_paths
from screenpath.cv.saved import FoldFile
from screenpath.cv.session import CvSession
from screenpath.errors import RunFolderError
from screenpath.inputs.rows import Samples
from screenpath.walk import compiled, sample, workers
from tests.conftest import two_classes

GRID = [0.01, 0.1, 1.0, 10.0]
OPTIONS = {
    "tol": 1e-6, "max_epochs": 1000, "rule": "dvi+gap", "solver": "auto", "seed": 0, "scale": "standard", "bias": 1.0,
    "dtype": "float64", "threads": 1, "jobs": 1,
}  # fmt: skip


def svm_task(n=80, certify=False):
    """Return samples and what the folds of an SVM have in common."""
    X, signs = two_classes(n=n, d=4, seed=4)
    score = choose_score(None, LINEAR_SVM, CLASSIFICATION, 2, None)
    samples = Samples(sp.csr_array(X), signs, signs)
    return samples, Task(LINEAR_SVM, OPTIONS, score, {"+1": 1.0, "-1": -1.0}, None, "dense", float("inf"), certify)


def same(one, other):
    """Check that two paths of a fold are equal but for their seconds."""
    for a, b in zip(one.rows, other.rows, strict=True):
        assert {k: v for k, v in a.items() if not k.endswith("_s")} == {
            k: v for k, v in b.items() if not k.endswith("_s")
        }
    assert len(one.products) == len(other.products)
    np.testing.assert_array_equal(one.products, other.products)
    if one.held_out is not None:
        np.testing.assert_array_equal(one.held_out.norms, other.held_out.norms)
        for a, b in zip(one.held_out.lines, other.held_out.lines, strict=True):
            for name in ("C", "center", "trained", "radius_sq", "xi", "xi_error", "products", "extent", "errors"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("certify", [False, True])
def test_every_step_can_be_continued(tmp_path, monkeypatch, certify):
    """A fold continued behind each of its steps, from a file and from memory, is the fold walked at once."""
    samples, task = svm_task(certify=certify)
    monkeypatch.setattr(compiled, "POINTS", 1)  # else a fold may take several steps between two files
    split, task = draw_folds(80, 4, 1, 0)[1], replace(task, keep=True)
    whole = fold_path(samples, task, split, GRID, 1e-6)
    assert np.shape(whole.products) == (4, 20)
    monkeypatch.setattr(saved, "EVERY", 0.0)
    monkeypatch.setattr(saved, "SHARE", 1e9)
    kept, plain = [], FoldFile.save

    def save(self, *arguments):
        plain(self, *arguments)
        kept.append(self.path.read_bytes())

    monkeypatch.setattr(FoldFile, "save", save)
    file = FoldFile(tmp_path, split, GRID, 1e-6)
    same(fold_path(samples, task, split, GRID, 1e-6, file), whole)
    assert len(kept) == 4
    for done, content in enumerate(kept[:3], start=1):
        file.path.write_bytes(content)
        begun = file.load()
        assert len(begun.rows) == done and begun.state
        further = fold_path(samples, task, split, GRID, 1e-6, None, begun)
        same(further, whole)
        assert len(further.rows) == 4 and further.state == {}
        same(fold_path(samples, task, split, GRID, 1e-6, file), whole)
        assert file.load().state == {}


def test_finished_folds_come_from_their_files(tmp_path, monkeypatch):
    samples, task = svm_task(certify=True)
    splits = draw_folds(80, 3, 1, 0)
    first = list(fold_paths(samples, task, splits, GRID, 1e-6, folder=tmp_path))
    monkeypatch.setattr("screenpath.cv.run.fold_path", None)
    for one, other in zip(first, fold_paths(samples, task, splits, GRID, 1e-6, 1, tmp_path), strict=True):
        same(one, other)
    for other in ([0.01, 0.1, 1.0], [0.01, 0.1, 1.0, 11.0]):
        with pytest.raises(RunFolderError, match="another run, fold or grid"):
            list(fold_paths(samples, task, splits, other, 1e-6, folder=tmp_path))
    with pytest.raises(RunFolderError, match="another run, fold or grid"):
        list(fold_paths(samples, task, splits, GRID, 1e-7, folder=tmp_path))


def test_a_longer_grid_goes_on_with_the_folds(tmp_path, monkeypatch):
    """A path over the first points, and then over more of them, is the path over all at once."""
    samples, task = svm_task(certify=True)
    splits, task = draw_folds(80, 3, 1, 0), replace(task, grows=True, keep=True)
    whole = list(fold_paths(samples, task, splits, GRID, 1e-6))
    first = list(fold_paths(samples, task, splits, GRID[:2], 1e-6))
    assert all(len(fold.held_out.lines) == 2 and fold.state for fold in first)
    for jobs in (1, 2):
        for one, other in zip(whole, fold_paths(samples, task, splits, GRID, 1e-6, jobs, begun=first), strict=True):
            same(one, other)
            assert one.state.keys() == other.state.keys()
    assert all(len(fold.held_out.lines) == 2 for fold in first)  # what was found stays as it was
    # On disk the reference of the next point is kept, and a file without it is none of these.
    for folder, begun, grid in (("a", None, GRID[:2]), ("b", first, GRID)):
        (tmp_path / folder).mkdir()
        found = list(fold_paths(samples, task, splits, grid, 1e-6, folder=tmp_path / folder, begun=begun))
        with monkeypatch.context() as patch:
            patch.setattr("screenpath.cv.run.fold_path", None)
            for one, other in zip(
                found, fold_paths(samples, task, splits, grid, 1e-6, 1, tmp_path / folder), strict=True
            ):
                same(one, other)
                assert other.state.keys() == one.state.keys()
    with pytest.raises(RunFolderError, match="how far the fold had come"):
        list(fold_paths(samples, replace(task, grows=False), splits, GRID, 1e-6, folder=tmp_path / "b"))


def test_processes_are_kept_from_call_to_call(monkeypatch):
    samples, task = svm_task()
    splits, task = draw_folds(80, 3, 1, 0), replace(task, grows=True)
    started, plain = [], workers.workers
    monkeypatch.setattr(workers, "workers", lambda count, *more: started.append(count) or plain(count, *more))
    whole = list(fold_paths(samples, task, splits, GRID, 1e-6))
    with run.Processes(samples, task, 2) as processes:
        first = list(fold_paths(samples, task, splits, GRID[:2], 1e-6, processes))
        found = list(fold_paths(samples, task, splits, GRID, 1e-6, processes, begun=first))
        assert started == [2]
        for one, other in zip(whole, found, strict=True):
            same(one, other)
        # Who listens no longer leaves answers behind, which are nobody else's.
        left = fold_paths(samples, task, splits, GRID, 1e-6, processes)
        same(next(left), whole[0])
        left.close()
        for one, other in zip(whole, fold_paths(samples, task, splits, GRID, 1e-6, processes), strict=True):
            same(one, other)
        assert started == [2, 2]
        list(fold_paths(samples, task, splits[:1], GRID, 1e-6, processes))  # here: one alone is worth no process
    assert started == [2, 2]


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    """After a slow writing the next one is put off."""
    now = [0.0]
    monkeypatch.setattr(saved.time, "monotonic", lambda: now[0])
    plain = saved.save_archive

    def slow(path, arrays):
        now[0] += 3.0
        plain(path, arrays)

    monkeypatch.setattr(saved, "save_archive", slow)
    file = FoldFile(tmp_path, draw_folds(10, 2, 1, 0)[0], GRID, 1e-6)
    assert not file.due()
    now[0] += 1.0
    assert file.due()
    file.save([], None, {"w": np.zeros(2)}, [], [])
    now[0] += 59.0
    assert not file.due()
    now[0] += 1.0
    assert file.due()


def test_time_limit_keeps_the_steps_that_can_be_continued(monkeypatch):
    """Of several steps at once only the last one has what the next needs: the others are dropped, and walked again."""
    samples, task = svm_task()
    split, begun_at = draw_folds(80, 4, 1, 0)[1], run.time.monotonic()
    task = replace(task, keep=True, deadline=begun_at + 1000.0)
    whole, counts = fold_path(samples, task, split, GRID, 1e-6), set()
    for late in range(12):
        ticks = chain(repeat(begun_at, late), repeat(begun_at + 2000.0))
        with monkeypatch.context() as patched:
            patched.setattr(run.time, "monotonic", ticks.__next__)
            begun = fold_path(samples, task, split, GRID, 1e-6)
        counts.add(len(begun.rows))
        assert len(begun.rows) == len(begun.products)
        if 0 < len(begun.rows) < len(GRID):
            same(fold_path(samples, task, split, GRID, 1e-6, None, begun), whole)
    assert {0, len(GRID)} < counts


@pytest.mark.parametrize("more", [{"intercept": "free"}, {"bias": 1.0}])
def test_folds_begin_beside_the_solution_on_all_rows(tmp_path, monkeypatch, more):
    """They read fewer rows, count those of their beginning, and end as without it; the path on all rows is as ever."""
    X, y = two_classes(n=4000, d=5, seed=1)
    began = []

    def tables(name: str) -> tuple[list, list]:
        out = tmp_path / name
        screenpath.cross_validate("svm", (X, y), grid=6, folds=3, scale="standard", out=out, quiet=True, **more)
        return [list(csv.DictReader((out / table).read_text().splitlines())) for table in ("folds.csv", "steps.csv")]

    monkeypatch.setattr(run, "beside", lambda *given: began.append(given) or sample.beside(*given))
    folds, steps = tables("beside")
    assert len(began) == 3
    path = screenpath.run("svm", (X, y), grid=6, scale="standard", out=tmp_path / "path", quiet=True, **more)
    for step, alone in zip(steps, path.table(), strict=True):
        assert {name: float(step[name]) for name in ("primal", "gap", "passes")} == {
            name: alone[name] for name in ("primal", "gap", "passes")
        }
    monkeypatch.setattr(CvSession, "take_first", lambda self: None)
    plain, again = tables("plain")
    assert len(began) == 3 and [row["gap"] for row in again] == [row["gap"] for row in steps]
    for row, other in zip(folds, plain, strict=True):
        assert row["status"] == other["status"] == "certified"
        assert float(row["score"]) == pytest.approx(float(other["score"]), abs=2e-3)
    first, before = (sum(float(row["passes"]) for row in rows if row["step"] == "0") for rows in (folds, plain))
    assert 3.0 < first < 0.8 * before
