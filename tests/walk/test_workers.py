"""Rows of a grid as they are walked by a worker of a cluster, in this process."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import time

import numpy as np
import pytest

from screenpath.data.files.prepare import prepare
from screenpath.errors import ResourceError
from screenpath.problem.grid import beta_grid, grid_pairs
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk import workers as parallel
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import HANGS, two_classes


@pytest.fixture
def grid():
    """Return a model and two rows of its grid; the closed form is the solution all along the first."""
    X, signs = two_classes(n=60, d=5, seed=2)
    model = SparseModel(Views(prepare(X, "none", 0.0, "dense", np.float64)[0]), signs.astype(np.int64), 1, 0.0, 0.5)
    return SparseGrid(model), grid_pairs(model, beta_grid(2, model.beta_max, 0.1), 4, 0.01)


@pytest.mark.parametrize("done", [0, 1, 3, 4, 6])
def test_rows_that_were_sent(grid, done):
    """Continued behind any step, closed form or not, the rows of a worker are those of one process."""
    model, pairs = grid
    how = parse_sparse_rule("sifs+gap"), make_sparse_solver("auto", 0), PathOptions(tol=1e-8)
    whole = list(walk(model, pairs, *how))
    assert [step.solver for step, _ in whole][:4] == ["closed-form"] * 4
    state = model.state(whole[done - 1][1]) if done else None
    found = []
    for first in (0, 4):
        row = range(max(first, done), first + 4)
        if row:
            task = [pairs[rank] for rank in row], row[0], state if row[0] == done else None
            sent = pickle.loads(pickle.dumps(((pickle.dumps(parallel._parts(model.base), 5), how), task)))
            assert pickle.loads(sent[0][0])[0].by_row[0].flags.writeable  # as compiled code is compiled for
            found += parallel._walk_sent_row(*sent, float("inf"))
    assert len(found) == len(pairs) - done
    for (step, kept), (expected, certificate) in zip(found, whole[done:], strict=True):
        for name in ("step", "parameters", "status", "primal", "dual", "solver", "epochs", "passes", "rejection_ratio"):
            assert getattr(step, name) == getattr(expected, name), name
        np.testing.assert_array_equal(step.coefficients.dense(), expected.coefficients.dense())
        np.testing.assert_array_equal(kept.theta, certificate.theta)
        assert kept.resumable == (step.step % 4 == 3)  # the last of its row
        if kept.resumable:
            np.testing.assert_array_equal(kept.u, certificate.u)


def nothing():
    """Set up a worker process that needs no more."""


def signal_to_oneself(parent):
    """Send the worker that this is what a terminal and a scheduler send, before it follows its parent and after."""
    assert os.getppid() == parent
    for _ in range(2):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        parallel.follow_parent()


def task_of_a_worker(size):
    """Return so many bytes; a negative size fails."""
    if size < 0:
        raise OSError(f"no {size} bytes")
    return bytes(size)


@pytest.fixture
def forked(monkeypatch):
    monkeypatch.setattr(parallel, "START", "fork")


def test_tasks_come_back_in_order(forked):
    with parallel.workers(3, nothing, ()) as pool:
        for sizes in ([5, 1_000_000, 0, 7, 3, 2], [], [1]):
            assert [len(found) for found in pool.map(task_of_a_worker, sizes)] == sizes
    assert not multiprocessing.active_children()


def slow_to_kill(monkeypatch):
    """Have processes live on for a while after they were told to die, as they do on a busy machine."""
    kill = multiprocessing.process.BaseProcess.kill
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "kill", lambda self: time.sleep(0.2) or kill(self))


@pytest.mark.covering(1)
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("ends", ["with results", "with an error"])
def test_workers_end_without_a_word(monkeypatch, capfd, start, ends):
    """A worker that waits for a task, or has a result to send, must not see its pipe closed before it is killed."""
    monkeypatch.setattr(parallel, "START", start)
    slow_to_kill(monkeypatch)
    expected = contextlib.nullcontext() if ends == "with results" else pytest.raises(OSError, match="no -1 bytes")
    with expected, parallel.workers(3, nothing, ()) as pool:
        list(pool.map(task_of_a_worker, [1, 2, 3] if ends == "with results" else [-1, 3_000_000, 3_000_000]))
    assert not multiprocessing.active_children()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("busy", [False, True])
def test_a_worker_whose_parent_is_gone_ends_without_a_word(capfd, busy):
    """The end of the pipe is no error to it, neither before a task nor behind one."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def serve():
        ours.close()  # a forked process has this end too
        parallel._serve(theirs, nothing, ())

    process = context.Process(target=serve)
    process.start()
    theirs.close()
    if busy:
        ours.send((task_of_a_worker, 5_000_000))
        assert ours.poll(HANGS)  # it is in the middle of sending
    ours.close()
    process.join(HANGS)
    assert process.exitcode == 0 and capfd.readouterr().err == ""


def test_workers_are_deaf_to_signals_from_their_first_moment(monkeypatch, capfd, tmp_path):
    """Ctrl-C on a terminal goes to all processes; one that hears it within its imports would show a traceback."""
    monkeypatch.setattr(parallel, "START", "spawn")
    with parallel.workers(1, signal_to_oneself, (os.getpid(),)) as pool:
        assert [len(found) for found in pool.map(task_of_a_worker, [4])] == [4]
    assert capfd.readouterr().err == ""


def test_error_of_a_task_is_raised_as_it_is(forked):
    with pytest.raises(OSError, match="no -1 bytes"), parallel.workers(2, nothing, ()) as pool:
        list(pool.map(task_of_a_worker, [3, -1, 4]))
    assert not multiprocessing.active_children()


def test_worker_that_ends_by_an_exception_names_scripts_that_begin_anew(forked, capfd):
    """As one does that reads a script without a guard: it comes upon the same call."""
    with pytest.raises(ResourceError, match="__main__"), parallel.workers(1, os.listdir, ("/no/such",)) as pool:
        list(pool.map(task_of_a_worker, [1]))
    assert "FileNotFoundError" in capfd.readouterr().err and not multiprocessing.active_children()


@pytest.mark.parametrize("size", [0, 5_000_000])
def test_worker_that_is_killed_between_messages_or_in_one(forked, size):
    """What does not fit into a pipe keeps its worker writing until somebody reads."""
    with pytest.raises(ResourceError, match="a worker process has died"), parallel.workers(1, nothing, ()) as pool:
        found = pool.map(task_of_a_worker, [1, size, 2])
        assert len(next(found)) == 1
        time.sleep(0.3)
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)
        list(found)
    assert not multiprocessing.active_children()
