"""Whole tasks on the workers of a cluster: every result once, whatever becomes of the workers."""

import os
import signal
import time
from dataclasses import replace

import numba
import numpy as np
import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed")

from screenpath.cv.folds import draw_folds
from screenpath.cv.run import fold_paths
from screenpath.cv.saved import FoldFile
from screenpath.errors import ResourceError
from screenpath.rows import cluster as module
from screenpath.rows.cluster import Spread, in_order
from tests.conftest import HANGS
from tests.cv.test_run import svm_task
from tests.width import WIDE

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="workers are the same as plain Python, only slower")


def scaled(shared, task, deadline):
    """Return a multiple of a shared vector, and the seconds left."""
    return task * shared, deadline - time.monotonic()


def fatal_once(shared, task, deadline):
    """Return the task; the worker that gets the file's task first dies of it."""
    marker, number = task
    if number == 2 and not os.path.exists(marker):
        with open(marker, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    return number, float(shared.sum())


def fatal(shared, task, deadline):
    """End the worker, whichever it is."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_results_in_order_and_deadline(client):
    shared = np.arange(3.0)
    found = list(in_order(Spread(client).run(scaled, shared, range(7))))
    assert [list(vector) for vector, _ in found] == [[0.0, k, 2.0 * k] for k in range(7)]
    assert {left for _, left in found} == {float("inf")}
    found = list(Spread(client).run(scaled, shared, range(3), time.monotonic() + 1000.0))
    assert sorted(rank for rank, _ in found) == [0, 1, 2]
    assert all(900.0 < left <= 1000.0 for _, (_, left) in found)


def test_a_lost_worker(client, tmp_path):
    """Its task is run again by another one, with what all tasks share."""
    tasks = [(str(tmp_path / "marker"), k) for k in range(6)]
    found = list(in_order(Spread(client).run(fatal_once, np.ones(5), tasks)))
    assert found == [(k, 5.0) for k in range(6)]
    assert (tmp_path / "marker").exists()
    client.wait_for_workers(2, timeout=HANGS)


def test_a_task_that_ends_every_worker(client, monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    with pytest.raises(ResourceError, match="the cluster lost task 1 of 1"):
        list(Spread(client).run(fatal, None, [0]))
    client.wait_for_workers(1, timeout=HANGS)  # Dask gives up on a worker that is lost while it starts


@pytest.mark.skipif(not WIDE, reason="in the wide run: Dask may wait for a worker that was killed until it times out")
def test_folds_while_workers_die(client, tmp_path):
    """The paths are those of this process, and each is on disk when it is yielded."""
    samples, task = svm_task(n=300, certify=True)
    splits, grid = draw_folds(300, 4, 1, 0), [0.01, 0.1, 1.0]
    here = list(fold_paths(samples, task, splits, grid, 1e-6))
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
    there = []
    for found in fold_paths(samples, task, splits, grid, 1e-6, folder=tmp_path, spread=Spread(client)):
        assert FoldFile(tmp_path, found.split, grid, 1e-6).load().state == {}
        there.append(found)
    grows = replace(task, grows=True)
    begun = list(fold_paths(samples, grows, splits, grid[:1], 1e-6))
    further = list(fold_paths(samples, grows, splits, grid, 1e-6, spread=Spread(client), begun=begun))
    for one, other in zip([*here, *here], [*there, *further], strict=True):
        same = [{k: v for k, v in row.items() if not k.endswith("_s")} for row in one.rows]
        assert same == [{k: v for k, v in row.items() if not k.endswith("_s")} for row in other.rows]
        for line, again in zip(one.held_out.lines, other.held_out.lines, strict=True):
            np.testing.assert_array_equal(line.center, again.center)
            assert line.radius_sq == again.radius_sq
